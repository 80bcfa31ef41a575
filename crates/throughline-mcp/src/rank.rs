//! `search_history`: the best matches first.
//!
//! A store finds entries that hold a word, the latest first, and does not rank. Here each term is searched for by
//! itself; how many entries hold it says how much it tells. The sessions that hold the most telling terms are read, and
//! their pairs are scored: rare words count more than common ones, the call more than a long output, and whatever holds
//! all the words more than what holds some. Words in the title of a session count a little for everything in it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::{ConversationId, EntryId, Text};
use throughline_store::{History, Hit, Moment, Paging, Search, iso};

use crate::budget::{BudgetedText, clipped};
use crate::error::ToolError;
use crate::lookup;
use crate::query::{Term, Words};
use crate::request::{self, SearchRequest};
use crate::units::{Session, Unit};

/// How many entries are taken that hold a term. A word that more of them hold tells little.
const HITS_MAX: u32 = 120;

/// How many terms are searched for two by two; the most telling ones.
const PAIRED_MAX: usize = 5;

/// How many entries are taken that hold several terms.
const HITS_TOGETHER_MAX: u32 = 40;

/// How many sessions are read to score what is in them, and how many entries they have together at most.
const SESSIONS_MAX: usize = 12;
const ENTRIES_MAX: u64 = 20_000;

/// How many results are ranked; a page is a part of them.
const RANKED_MAX: usize = 200;

const RESULTS_USUAL: usize = 8;
const TOKENS_USUAL: u64 = 2_000;
const TITLE_CHARS: usize = 160;
const LINES_SHOWN: usize = 3;
const LINE_CHARS: usize = 200;

/// How much a word counts by where it stands.
const IN_CALL: f64 = 1.6;
const IN_RESULT: f64 = 1.0;
const IN_TALK: f64 = 0.7;
const IN_SESSION_TITLE: f64 = 0.3;

/// The length, in words, that a text is held against: what stands once in a short text says more about it.
const USUAL_WORDS: f64 = 200.0;

/// A term with what it tells.
struct Weighed {
    term: Term,
    weight: f64,
    hits: Vec<Hit>,
}

/// A result, with its session by index.
struct Ranked {
    session: usize,
    unit: Unit,
    score: f64,
    at: Moment,
    /// In how many other sessions the same pair stands, because they were resumed or copied.
    copies: usize,
}

/// Answers a search.
pub async fn search(history: &dyn History, asked: &SearchRequest, now: Moment) -> Result<String, ToolError> {
    let filter = filter(history, asked, now).await?;
    let terms = Term::parse(&asked.query);
    if terms.is_empty() {
        let is_narrowed = asked.failed
            || [&asked.tool, &asked.path, &asked.command, &asked.session].iter().any(|it| it.is_some());
        return match (asked.query.trim().is_empty(), is_narrowed) {
            (true, true) => latest(history, asked, filter).await,
            (true, false) => Err(ToolError::EmptySearch),
            (false, _) => Err(ToolError::NoWords(asked.query.clone())),
        };
    }
    let weighed = weigh(history, &filter, terms).await?;
    let together = together(history, &filter, &weighed).await?;
    let ids = promising(&weighed, &together);
    let sessions = load(history, &ids).await?;

    let entries: BTreeSet<EntryId> = weighed
        .iter()
        .map(|term| &term.hits)
        .chain(&together)
        .flatten()
        .map(|hit| hit.entry.clone())
        .collect();
    let ranked = rank(&sessions, &entries, &weighed);
    show(&sessions, &ranked, &weighed, asked)
}

async fn filter(history: &dyn History, asked: &SearchRequest, now: Moment) -> Result<Search, ToolError> {
    let conversation = match &asked.session {
        Some(typed) => Some(lookup::session_id(history, typed).await?),
        None => None,
    };
    Ok(Search {
        tool: asked.tool.as_deref().map(Text::from),
        path: asked.path.clone(),
        command: asked.command.clone(),
        failed: asked.failed,
        conversation,
        since: lookup::time("since", asked.since.as_deref(), now)?,
        until: lookup::time("until", asked.until.as_deref(), now)?,
        paging: Paging::first(HITS_MAX),
        ..Search::default()
    })
}

/// Finds the entries that hold each term. One that occurs nowhere is tried by its stem, and then counts for nothing.
async fn weigh(history: &dyn History, filter: &Search, terms: Vec<Term>) -> Result<Vec<Weighed>, ToolError> {
    let mut weighed = Vec::with_capacity(terms.len());
    for term in terms {
        let mut found = (find(history, filter, &term.for_store()).await?, term);
        if found.0.is_empty()
            && let Some(stem) = found.1.stemmed()
        {
            found = (find(history, filter, &stem.for_store()).await?, stem);
        }
        let (hits, term) = found;
        let weight = telling(&hits);
        weighed.push(Weighed { term, weight, hits });
    }
    Ok(weighed)
}

/// Returns how much it tells that something holds what only these hold.
fn telling(hits: &[Hit]) -> f64 {
    if hits.is_empty() { 0.0 } else { (1.0 + f64::from(HITS_MAX) / hits.len() as f64).ln() }
}

async fn find(history: &dyn History, filter: &Search, words: &str) -> Result<Vec<Hit>, ToolError> {
    let search = Search { words: words.to_owned(), ..filter.clone() };
    Ok(history.search(search).await?.items)
}

/// Finds entries that hold several terms at once, two by two and all together: where every word is common, those may be
/// none of the latest of any.
async fn together(
    history: &dyn History,
    filter: &Search,
    weighed: &[Weighed],
) -> Result<Vec<Vec<Hit>>, ToolError> {
    let mut occurring: Vec<&Weighed> = weighed.iter().filter(|term| !term.hits.is_empty()).collect();
    occurring.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let words: Vec<String> = occurring.iter().map(|term| term.term.for_store()).collect();
    let filter = &Search { paging: Paging::first(HITS_TOGETHER_MAX), ..filter.clone() };
    let mut found = Vec::new();
    for (at, one) in words.iter().enumerate().take(PAIRED_MAX) {
        for other in words.iter().take(PAIRED_MAX).skip(at + 1) {
            found.push(find(history, filter, &format!("{one} {other}")).await?);
        }
    }
    if words.len() > 2 {
        found.push(find(history, filter, &words.join(" ")).await?);
    }
    Ok(found)
}

/// Returns the sessions worth reading, the most promising first.
fn promising(weighed: &[Weighed], together: &[Vec<Hit>]) -> Vec<ConversationId> {
    let mut sessions: BTreeMap<ConversationId, (f64, Moment)> = BTreeMap::new();
    let mut credit = |hits: &[Hit], weight: f64| {
        let mut credited = BTreeSet::new();
        for hit in hits.iter().filter(|hit| credited.insert(&hit.conversation)) {
            let (score, latest) = sessions.entry(hit.conversation.clone()).or_default();
            *score += weight;
            *latest = hit.at.max(*latest);
        }
    };
    for term in weighed {
        credit(&term.hits, term.weight);
    }
    for hits in together {
        credit(hits, telling(hits));
    }

    let mut sessions: Vec<(ConversationId, (f64, Moment))> = sessions.into_iter().collect();
    sessions.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    sessions.into_iter().take(SESSIONS_MAX).map(|(id, _)| id).collect()
}

async fn load(history: &dyn History, ids: &[ConversationId]) -> Result<Vec<Session>, ToolError> {
    let mut sessions = Vec::new();
    let mut entries = 0;
    for id in ids {
        if let Some(session) = Session::load(history, id).await? {
            entries += session.heading.entries;
            sessions.push(session);
        }
        if entries > ENTRIES_MAX {
            break;
        }
    }
    Ok(sessions)
}

/// Scores what holds one of the entries that were found; the best first, and of equals the latest.
fn rank(sessions: &[Session], entries: &BTreeSet<EntryId>, weighed: &[Weighed]) -> Vec<Ranked> {
    let mut ranked = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        let title = Words::new(session.heading.title.as_deref().unwrap_or_default());
        for unit in session.units_of(entries) {
            let score = score(session, unit, &title, weighed);
            ranked.push(Ranked { session: number, unit, score, at: session.at(unit), copies: 0 });
        }
    }
    ranked.sort_by(by_score);
    let mut ranked = without_copies(sessions, ranked);
    ranked.truncate(RANKED_MAX);
    ranked
}

fn by_score(a: &Ranked, b: &Ranked) -> Ordering {
    b.score.total_cmp(&a.score).then(b.at.cmp(&a.at))
}

fn score(session: &Session, unit: Unit, title: &Words, weighed: &[Weighed]) -> f64 {
    let is_talk = matches!(unit, Unit::Talk(_));
    let output_weight = if is_talk { IN_TALK } else { IN_RESULT };
    let fields = [
        (Words::new(&session.input_text(unit)), IN_CALL),
        (Words::new(&session.output_text(unit)), output_weight),
    ];
    let sizes: Vec<f64> = fields.iter().map(|(words, _)| words.len() as f64).collect();

    let (mut score, mut covered, mut total) = (0.0, 0.0, 0.0);
    for Weighed { term, weight, .. } in weighed {
        total += weight;
        let in_field = |((words, field), size): (&(Words, f64), &f64)| {
            let count = term.count(words) as f64;
            let length = 0.3 + 0.7 * (size / USUAL_WORDS).min(4.0);
            field * count / (count + 0.8 * length)
        };
        let here = fields.iter().zip(&sizes).map(in_field).fold(0.0, f64::max);
        let in_title = if term.count(title) > 0 { IN_SESSION_TITLE } else { 0.0 };
        score += weight * here.max(in_title);
        covered += weight * if here > 0.0 { 1.0 } else { in_title };
    }
    let coverage = if total > 0.0 { covered / total } else { 0.0 };
    score * coverage * coverage
}

/// Keeps the best of results that are the same pair in several sessions.
fn without_copies(sessions: &[Session], ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut kept: Vec<Ranked> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for result in ranked {
        let session = &sessions[result.session];
        let key = match result.unit {
            Unit::Pair { .. } => session.handle(result.unit).to_string(),
            Unit::Talk(_) => session.output_text(result.unit),
        };
        match places.get(&key) {
            Some(at) => kept[*at].copies += 1,
            None => {
                places.insert(key, kept.len());
                kept.push(result);
            }
        }
    }
    kept
}

/// Answers a search without words: what the filters leave, the latest first.
async fn latest(history: &dyn History, asked: &SearchRequest, filter: Search) -> Result<String, ToolError> {
    let hits = history.search(filter).await?.items;
    let mut ids: Vec<ConversationId> = Vec::new();
    for hit in &hits {
        if !ids.contains(&hit.conversation) {
            ids.push(hit.conversation.clone());
        }
    }
    ids.truncate(SESSIONS_MAX);
    let sessions = load(history, &ids).await?;
    let entries = hits.into_iter().map(|hit| hit.entry).collect();
    let mut ranked = rank(&sessions, &entries, &[]);
    ranked.sort_by_key(|result| std::cmp::Reverse(result.at));
    show(&sessions, &ranked, &[], asked)
}

fn show(
    sessions: &[Session],
    ranked: &[Ranked],
    weighed: &[Weighed],
    asked: &SearchRequest,
) -> Result<String, ToolError> {
    let missing: Vec<String> =
        weighed.iter().filter(|term| term.hits.is_empty()).map(|term| term.term.for_store()).collect();
    if ranked.is_empty() {
        return Ok(format!(
            "Nothing was found for {}. Try fewer or other words, a prefix such as migrat*, or without filters; \
             list_sessions shows what there is.",
            if asked.query.is_empty() { "these filters".to_owned() } else { format!("`{}`", asked.query) }
        ));
    }
    let offset = lookup::offset(asked.cursor.as_deref())?;
    let limit = request::limit(asked.limit, RESULTS_USUAL);
    let mut text = BudgetedText::new(request::budget(asked.max_tokens, TOKENS_USUAL));
    let mut shown = offset;
    for result in ranked.iter().skip(offset).take(limit) {
        if !text.push(&shown_result(&sessions[result.session], result, shown + 1, weighed)) {
            break;
        }
        shown += 1;
    }
    if shown < ranked.len() {
        text.push_anyway(&format!("{} more: pass cursor \"{shown}\".\n", ranked.len() - shown));
    }
    if !missing.is_empty() {
        text.push_anyway(&format!("Nowhere in the history: {}.\n", missing.join(", ")));
    }
    if offset > 0 && shown == offset {
        return Ok("There are no more results.".to_owned());
    }
    Ok(text.into_string())
}

fn shown_result(session: &Session, result: &Ranked, number: usize, weighed: &[Weighed]) -> String {
    let unit = result.unit;
    let ended = session.ended(unit).words();
    let ended = if ended.is_empty() { ended } else { format!(" → {ended}") };
    let copies =
        if result.copies > 0 { format!(" (and in {} others)", result.copies) } else { String::new() };
    let mut text = format!(
        "{number}. {} [{}]{ended}\n   {}{copies}\n",
        session.title(unit, TITLE_CHARS),
        session.unit_id(unit),
        session_line(session, session.at(unit)),
    );
    for (at, line) in telling_lines(&session.output_text(unit), weighed) {
        text.push_str(&format!("   {at}: {line}\n"));
    }
    text.push('\n');
    text
}

/// Returns a line that says which session something is from, and when it happened.
pub fn session_line(session: &Session, at: Moment) -> String {
    let title =
        session.heading.title.as_deref().map_or_else(|| "untitled".to_owned(), |title| clipped(title, 60));
    let client =
        session.client.as_deref().map(|client| format!(", {}", clipped(client, 40))).unwrap_or_default();
    format!("{} in \"{title}\"{client}", minute(at))
}

/// Returns a moment to the minute, which is what a model needs of it.
pub fn minute(at: Moment) -> String {
    iso(at).get(..16).unwrap_or_default().replace('T', " ")
}

/// Returns the lines of a text that hold the most telling terms, in their order and with their numbers; the first
/// ones where none does.
fn telling_lines(text: &str, weighed: &[Weighed]) -> Vec<(usize, String)> {
    let mut lines: Vec<(f64, usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let lower: String = line.chars().flat_map(char::to_lowercase).collect();
        let found: Vec<(f64, usize)> =
            weighed.iter().filter_map(|term| Some((term.weight, term.term.find(&lower)?))).collect();
        if let Some(first) = found.iter().map(|(_, at)| *at).min() {
            lines.push((found.iter().map(|(weight, _)| weight).sum(), at + 1, around(line, first)));
        }
    }
    if lines.is_empty() {
        let beginning = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).take(2);
        return beginning.map(|(at, line)| (at + 1, around(line, 0))).collect();
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    lines.truncate(LINES_SHOWN);
    lines.sort_by_key(|(_, at, _)| *at);
    lines.into_iter().map(|(_, at, line)| (at, line)).collect()
}

/// Returns what stands around a place in a long line, and a short line whole.
fn around(line: &str, at: usize) -> String {
    if line.chars().count() <= LINE_CHARS {
        return line.trim_end().to_owned();
    }
    let from = line.floor_char_boundary(at.min(line.len()).saturating_sub(LINE_CHARS / 3));
    let shown: String = line[from..].chars().take(LINE_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if from + shown.len() < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}
