//! Steps of compaction as earlier releases kept them: inside the reports of attempts, as JSON.
//!
//! The report of an attempt whose plan took a step had all decisions under `plan.decisions`, and later the words of a
//! model under `plan.retold`; reports of attempts that went on from there named its exchange under `plan.since`. Whoever
//! brings a database forward hands over its attempts in their order, and is told which rows they come to. A report that
//! cannot be read comes to none: what was decided there is decided anew.

use std::collections::BTreeMap;

use rusqlite::Connection;
use throughline_core::plan::Decisions;
use throughline_core::{ConversationId, Text};

use crate::{CompactionStep, ExchangeId, Moment, StepId, StoreError};

/// An attempt of a database from before there were steps.
#[derive(Debug)]
pub(crate) struct OldAttempt {
    pub conversation: ConversationId,
    pub id: StepId,
    pub backend: Text,
    pub model: Text,
    pub strategy: Option<Text>,
    pub started: Moment,
    pub report: Option<Text>,
}

/// What the report of an attempt comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FromReport {
    /// The row to append.
    pub step: Option<CompactionStep>,
    /// The step that the prompt of the attempt shows.
    pub shows: Option<StepId>,
}

/// Reads reports as JSON. This crate has no other reader of JSON, and needs none elsewhere.
pub(crate) struct ReportReader(Connection);

/// What an old report has for the row of its attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReportFacts {
    /// The report without what is kept elsewhere.
    pub report: String,
    /// Of the whole prompt as it came and as it is shown, and of its calls and results.
    pub tokens: [Option<i64>; 3],
    pub recall: Option<String>,
    /// Whether it went on from what the backend keeps.
    leans_on_state: bool,
}

/// Reads the reports of one database, from the first attempt to the last.
pub(crate) struct OldReports {
    json: Connection,
    /// The latest decisions of each conversation for each backend and model.
    latest: BTreeMap<(ConversationId, Text, Text), (StepId, Decisions)>,
    /// The step that an exchange took last for a backend.
    taken: BTreeMap<(ExchangeId, Text), StepId>,
    /// The words of a model for the step of an exchange, until the attempt comes that asked for them.
    words: BTreeMap<ExchangeId, CompactionStep>,
}

/// What attempts were called that asked a model for words.
const SUMMARY: &str = "summary";

/// What an old report says about decisions.
struct Said {
    decisions: Option<String>,
    words: Option<String>,
    since: Option<String>,
}

impl ReportReader {
    pub fn new() -> Result<Self, StoreError> {
        Ok(Self(Connection::open_in_memory()?))
    }

    /// Reads a report; one that is no JSON is kept as it is, and has nothing else.
    pub fn read(&self, report: &str) -> Result<ReportFacts, StoreError> {
        const READ: &str = "
            SELECT json_remove(?1, '$.plan'), json_extract(?1, '$.plan.tokens_before'),
                json_extract(?1, '$.plan.tokens_after'), json_extract(?1, '$.plan.tool_tokens'),
                json_extract(?1, '$.plan.recall'), json_extract(?1, '$.summary')
            WHERE json_valid(?1)";
        let mut statement = self.0.prepare_cached(READ)?;
        let mut rows = statement.query([report])?;
        let Some(row) = rows.next()? else {
            let report = report.to_owned();
            return Ok(ReportFacts { report, tokens: [None; 3], recall: None, leans_on_state: false });
        };
        let tokens = [1, 2, 3].map(|column| row.get::<_, Option<i64>>(column).ok().flatten());
        let text = |column| row.get::<_, Option<String>>(column).ok().flatten();
        let summary = text(5).unwrap_or_default();
        Ok(ReportFacts {
            report: text(0).unwrap_or_else(|| report.to_owned()),
            // One without the others says nothing.
            tokens: if tokens.iter().all(Option::is_some) { tokens } else { [None; 3] },
            recall: text(4),
            leans_on_state: summary.split(' ').any(|word| word == "state=provider"),
        })
    }
}

impl ReportFacts {
    /// Says whether there is anything for the row of the attempt.
    pub fn has_facts(&self) -> bool {
        self.tokens[0].is_some() || self.recall.is_some() || self.leans_on_state
    }

    /// Returns the response that the attempt went on from, which reports did not name.
    pub fn continues(&self) -> Option<&'static str> {
        self.leans_on_state.then_some("")
    }
}

impl OldReports {
    pub fn new() -> Result<Self, StoreError> {
        Ok(Self {
            json: Connection::open_in_memory()?,
            latest: BTreeMap::new(),
            taken: BTreeMap::new(),
            words: BTreeMap::new(),
        })
    }

    /// Takes in the next attempt.
    pub fn read(&mut self, attempt: OldAttempt) -> Result<FromReport, StoreError> {
        if attempt.strategy.as_deref() == Some(SUMMARY) {
            let step = self.words.remove(&attempt.id.exchange);
            let step = step.map(|step| CompactionStep { id: attempt.id, at: attempt.started, ..step });
            return Ok(FromReport { step, shows: None });
        }
        let Some(said) = self.said(attempt.report.as_deref())? else { return Ok(FromReport::default()) };
        if let Some(since) = said.since {
            let shows = self.taken.get(&(ExchangeId::new(since), attempt.backend)).cloned();
            return Ok(FromReport { step: None, shows });
        }
        let decisions = said.decisions.and_then(|text| Decisions::from_text(&text).ok());
        Ok(decisions.map_or_else(FromReport::default, |decisions| {
            self.step(attempt, decisions, said.words.map(Text::from))
        }))
    }

    fn step(&mut self, attempt: OldAttempt, decisions: Decisions, words: Option<Text>) -> FromReport {
        let OldAttempt { conversation, id, backend, model, started, .. } = attempt;
        let key = (conversation.clone(), backend.clone(), model.clone());
        let continued = self.latest.get(&key).and_then(|(before, decided)| {
            let added = decisions.added_since(decided)?;
            Some((before.clone(), added))
        });
        let (follows, added) = match continued {
            Some((before, added)) => (Some(before), added.to_text()),
            None => (None, decisions.to_text()),
        };
        let step = CompactionStep {
            id: id.clone(),
            conversation,
            backend: backend.clone(),
            model,
            at: started,
            follows,
            decisions: added.into(),
            summary: None,
        };
        if let Some(words) = words {
            let words = CompactionStep {
                follows: Some(id.clone()),
                decisions: Decisions::default().to_text().into(),
                summary: Some(words),
                ..step.clone()
            };
            self.words.insert(id.exchange.clone(), words);
        }
        self.latest.insert(key, (id.clone(), decisions));
        self.taken.insert((id.exchange.clone(), backend), id.clone());
        FromReport { step: Some(step), shows: Some(id) }
    }

    fn said(&self, report: Option<&str>) -> Result<Option<Said>, StoreError> {
        const READ: &str = "
            SELECT json_extract(?1, '$.plan.decisions'), json_extract(?1, '$.plan.retold'),
                json_extract(?1, '$.plan.since')
            WHERE json_valid(?1)";
        let Some(report) = report else { return Ok(None) };
        let mut statement = self.json.prepare_cached(READ)?;
        let mut rows = statement.query([report])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let text = |column| row.get::<_, Option<String>>(column).ok().flatten();
        Ok(Some(Said { decisions: text(0), words: text(1), since: text(2) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r"decisions 1\n1 0000000000000007 abcdefgh 90 9 - m";
    const SECOND: &str =
        r"decisions 1\n1 0000000000000007 abcdefgh 90 9 - m\n3 0000000000000007 abcdefgh 90 9 - d";

    fn attempt(exchange: &str, number: u32, strategy: &str, plan: &str) -> OldAttempt {
        OldAttempt {
            conversation: ConversationId::new("c"),
            id: StepId { exchange: ExchangeId::new(exchange), attempt: number },
            backend: "own".into(),
            model: "m".into(),
            strategy: Some(strategy.into()),
            started: Moment(7),
            report: Some(format!("{{\"summary\":\"\",\"plan\":{plan},\"changes\":[]}}").into()),
        }
    }

    #[test]
    fn reports_come_to_steps_that_say_only_what_is_new() {
        let mut reports = OldReports::new().unwrap();
        let mut read = |attempt| reports.read(attempt).unwrap();
        let with_words = format!("{{\"decisions\":\"{FIRST}\",\"retold\":\"words\"}}");
        let first = read(attempt("x1", 0, "native", &with_words));
        assert_eq!(*first.step.as_ref().unwrap().decisions, FIRST.replace("\\n", "\n"));
        let id = first.shows.clone();
        assert_eq!((first.step.unwrap().follows, id.clone().unwrap().attempt), (None, 0));
        let words = read(attempt("x1", 1, SUMMARY, "{}")).step.unwrap();
        assert_eq!((words.summary.as_deref(), &words.follows, words.id.attempt), (Some("words"), &id, 1));
        let later = read(attempt("x2", 0, "native", "{\"since\":\"x1\"}"));
        assert_eq!(later, FromReport { step: None, shows: id.clone() });
        let second =
            read(attempt("x3", 0, "native", &format!("{{\"decisions\":\"{SECOND}\"}}"))).step.unwrap();
        assert_eq!((second.follows, second.decisions.lines().count()), (id, 2));
        let begun = read(attempt("x4", 0, "native", &format!("{{\"decisions\":\"{FIRST}\"}}"))).step.unwrap();
        assert_eq!(begun.follows, None, "what was taken back is begun anew");
    }

    #[test]
    fn what_lists_show_is_taken_out_of_reports() {
        let reader = ReportReader::new().unwrap();
        let plan = r#"{"tokens_before":9,"tokens_after":7,"tool_tokens":5,"recall":"recall"}"#;
        let report =
            format!(r#"{{"summary":"a=1 state=provider","plan":{plan},"changes":[{{"reason":"x"}}]}}"#);
        let facts = reader.read(&report).unwrap();
        assert_eq!(facts.report, r#"{"summary":"a=1 state=provider","changes":[{"reason":"x"}]}"#);
        assert_eq!((facts.tokens, facts.recall.as_deref()), ([Some(9), Some(7), Some(5)], Some("recall")));
        assert_eq!(facts.continues(), Some(""));
        let odd = reader.read("no JSON").unwrap();
        assert!(odd.report == "no JSON" && !odd.has_facts());
    }

    #[test]
    fn a_report_that_cannot_be_read_comes_to_nothing() {
        let mut reports = OldReports::new().unwrap();
        for plan in ["{", "{}", "7", "{\"decisions\":\"decisions 9\"}", "{\"since\":\"x9\"}"] {
            assert_eq!(reports.read(attempt("x1", 0, "native", plan)).unwrap(), FromReport::default());
        }
    }
}
