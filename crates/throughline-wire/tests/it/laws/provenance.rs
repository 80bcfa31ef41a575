//! Where each entry landed, held against the body as it is read again (R39).
//!
//! Every place that decodes to an entry has exactly one row; every source is placed or absent; what is placed as
//! it is says the same word for word. Most texts occur several times, so that whoever went by the text would be
//! wrong; where a source has a token of its own, it is found where the rows say, and nowhere else.

use super::anything::{framed, frames};
use super::draft::body;
use super::entries::histories;
use super::plan::{Scope, plans};
use super::{cases, decode};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;
use throughline_core::plan::{Budget, Decisions, Measured, Planner, Policy, Tokens, ToolRules};
use throughline_core::{
    Absence, Ask, Content, Dialect, EmbedForm, Entry, ForeignReasoning, Input, Kind, Part, Provenance,
    Report, Row, Rules, Seal, SentPlace, Source, Strategy as Showing, Target, Text, Thought, Trace,
    Treatment, joined_text, prepare,
};
use throughline_wire::encode_request;

const SCOPE: Scope = Scope { any_input: true, media_in_results: true, blank: true };

/// How a history is shown.
#[derive(Clone, Debug)]
struct Way {
    rules: String,
    showing: Showing,
    foreign: ForeignReasoning,
    /// How many tokens may be shown, if that matters.
    room: Option<u64>,
}

fn ways() -> impl Strategy<Value = Way> {
    let names: Vec<String> = Rules::built_in().into_iter().map(|rules| rules.name.to_string()).collect();
    let showings = vec![
        Showing::Native,
        Showing::Native,
        Showing::TextEmbed(EmbedForm::Plain),
        Showing::TextEmbed(EmbedForm::Comments),
    ];
    let foreign = select(vec![ForeignReasoning::Drop, ForeignReasoning::AsText]);
    let room = prop_oneof![2 => Just(None), 1 => (20..200u64).prop_map(Some)];
    (select(names), select(showings), foreign, room).prop_map(|(rules, showing, foreign, room)| Way {
        rules,
        showing,
        foreign,
        room,
    })
}

/// Renders a request whose entries are those of a record; returns what was sent and what was noted about it.
fn rendered(ask: &Ask, way: &Way, rules: &Rules) -> (String, Provenance) {
    let mut planned = Report::default();
    let mut shown = ask.clone();
    if let Some(room) = way.room {
        shown.entries = shortened(&ask.entries, room, &mut planned);
    }
    let target = Target { strategy: way.showing, foreign_reasoning: way.foreign, ..Target::new(rules) };
    let (prompt, mut report) = prepare(&shown, &target);
    report.provenance.absent.splice(0..0, planned.provenance.absent);
    let sent = encode_request(&prompt, &mut report);
    report.provenance.settle(&ask.entries);
    (sent, report.provenance)
}

fn shortened(entries: &[Entry], room: u64, report: &mut Report) -> Vec<Entry> {
    let words = |text: &str| text.split_whitespace().count() as u64;
    let sizes = vec![Tokens(30); entries.len()];
    let budget = Budget {
        tool_history: Some(Tokens(room)),
        recent_calls_to_keep: Some(1),
        policy: if room.is_multiple_of(2) { Policy::Mask } else { Budget::default().policy },
        ..Budget::default()
    };
    let rules = ToolRules::default();
    let planner = Planner { budget: &budget, rules: &rules, count: &words, recall: true };
    let measured = Measured { entries, sizes: &sizes, besides: Tokens(0) };
    match planner.plan(measured, &Decisions::default()) {
        Ok(plan) => plan.apply(entries, report),
        Err(_) => entries.to_vec(),
    }
}

fn tracked(mut ask: Ask) -> Ask {
    for (entry, at) in ask.entries.iter_mut().zip(0..) {
        entry.trace = Trace::from(Source::Record(at));
    }
    ask
}

/// Returns where the entries of a body stand.
fn places(entries: &[Entry]) -> Vec<SentPlace> {
    let mut places: Vec<SentPlace> = Vec::new();
    for entry in entries {
        let message = entry.place.map(|place| place.message);
        let last = places.last().filter(|last| last.message == message);
        places.push(SentPlace { message, nth: last.map_or(0, |last| last.nth + 1) });
    }
    places
}

fn check(ask: Ask, way: &Way) -> Result<(), TestCaseError> {
    let ask = tracked(ask);
    let rules = Rules::from_name(&way.rules).expect("built in");
    let (sent, provenance) = rendered(&ask, way, &rules);
    let entries = decode(rules.dialect, &sent).entries;
    let at: Vec<SentPlace> = provenance.rows.iter().map(|row| row.at).collect();
    prop_assert_eq!(&at, &places(&entries), "\nsent {}\nnoted {:?}\nof {:?}", sent, provenance, ask.entries);

    let placed: BTreeSet<Source> =
        provenance.rows.iter().flat_map(|row| row.trace.shares()).map(|share| share.source).collect();
    for source in (0..).map(Source::Record).take(ask.entries.len()) {
        let why = provenance.absence(source);
        prop_assert_ne!(placed.contains(&source), why.is_some(), "{:?} in {:?}", source, provenance);
        prop_assert_ne!(why, Some(Absence::Unexplained), "{:?} of {:?}", source, ask.entries);
    }
    for (row, entry) in provenance.rows.iter().zip(&entries) {
        check_row(row, entry, &ask.entries, &sent)?;
    }
    prop_assert_eq!(Provenance::from_bytes(&provenance.to_bytes()), Ok(provenance));
    Ok(())
}

fn check_row(row: &Row, sent: &Entry, kept: &[Entry], body: &str) -> Result<(), TestCaseError> {
    prop_assert_ne!(&row.trace, &Trace::Untracked, "{:?} in {}", row, body);
    for share in row.trace.shares() {
        let Source::Record(at) = share.source else { continue };
        let kept = &kept[at as usize];
        let treated = |treatment| share.treatments.contains(treatment);
        if share.treatments.is_as_is() {
            prop_assert_eq!(said_by(kept), said_by(sent), "{:?} in {}", row, body);
        }
        if treated(Treatment::Renamed) && !treated(Treatment::Retold) {
            prop_assert_ne!(called_by(kept), called_by(sent), "{:?} in {}", row, body);
        }
        // Attachments of a result stand in a message of their own.
        if !treated(Treatment::Split) {
            prop_assert_eq!(treated(Treatment::Retold), is_retold(kept, sent), "{:?} in {}", row, body);
        }
        let is_whole = ![
            Treatment::Adapted,
            Treatment::Split,
            Treatment::Excerpted,
            Treatment::Masked,
            Treatment::Superseded,
            Treatment::Cleared,
        ]
        .into_iter()
        .any(treated);
        if is_whole && kept.as_return().is_some() && sent.as_call().is_none() {
            let own = token_of(kept);
            prop_assert!(own.is_none_or(|own| text_of(sent).contains(&own)), "{:?} in {}", row, body);
        }
    }
    Ok(())
}

/// Says whether something that was done became words, or the operator's words the user's.
fn is_retold(kept: &Entry, sent: &Entry) -> bool {
    match (&kept.kind, &sent.kind) {
        (Kind::Said(kept), Kind::Said(sent)) => kept.role.side() != sent.role.side(),
        (Kind::Summarised(_), _) => true,
        (Kind::Opaque { .. }, _) => false,
        (kept, sent) => std::mem::discriminant(kept) != std::mem::discriminant(sent),
    }
}

/// What an entry says, as far as it is the same in every dialect.
#[derive(Debug, PartialEq, Eq)]
struct Saying {
    called: Option<(Text, Option<Text>)>,
    text: String,
    media: usize,
    is_error: bool,
    seal: Option<Seal>,
}

fn said_by(entry: &Entry) -> Saying {
    let seal = match &entry.kind {
        Kind::Thought(thought) => thought.seal.clone(),
        _ => None,
    };
    let parts: &[Part] = match &entry.kind {
        Kind::Said(said) => &said.parts,
        Kind::Returned(returned) => &returned.parts,
        _ => &[],
    };
    let is_media = |part: &&Part| matches!(part.content, Content::Image(_) | Content::File(_));
    Saying {
        called: called_by(entry),
        // What came with a wire form of its own goes by that, and drawn reasoning need not agree with it.
        text: if seal.is_some() { String::new() } else { text_of(entry) },
        media: parts.iter().filter(is_media).count(),
        is_error: entry.as_return().is_some_and(|returned| returned.outcome.is_error()),
        seal,
    }
}

fn called_by(entry: &Entry) -> Option<(Text, Option<Text>)> {
    match &entry.kind {
        Kind::Called(call) => Some((call.id.clone(), Some(call.name.clone()))),
        Kind::Returned(returned) => Some((returned.call_id.clone().unwrap_or_default(), None)),
        _ => None,
    }
}

fn text_of(entry: &Entry) -> String {
    match &entry.kind {
        Kind::Said(said) => words(&said.parts),
        Kind::Returned(returned) => words(&returned.parts),
        Kind::Called(call) => match &call.input {
            Input::Arguments(text) | Input::Freeform(text) => text.to_string(),
        },
        Kind::Thought(Thought { content, summary, .. }) => {
            let texts = if content.is_empty() { summary } else { content };
            texts.iter().map(Text::as_str).collect::<Vec<_>>().join("\n\n")
        }
        Kind::Summarised(summary) => summary.text.to_string(),
        Kind::Reference { id } => id.to_string(),
        // A block that nobody knows may be read as a part of what is said.
        Kind::Opaque { .. } | Kind::HandedOver(_) => String::new(),
    }
}

/// Returns the words of parts, refusals among them; empty ones are nothing.
fn words(parts: &[Part]) -> String {
    let worded: Vec<Part> = parts
        .iter()
        .filter_map(|part| match &part.content {
            Content::Text(text) | Content::Refusal(text) if !text.is_empty() => {
                Some(Part::text(text.clone()))
            }
            _ => None,
        })
        .collect();
    joined_text(&worded).to_string()
}

/// Returns the token that the text of a result ends with.
fn token_of(entry: &Entry) -> Option<String> {
    let text = text_of(entry);
    let last = text.lines().last()?;
    (last.starts_with("tok") && last.ends_with("tok")).then(|| last.to_owned())
}

/// Returns a plan's conversation said twice over, so that every text, call and result occurs again.
fn repeated(dialect: Dialect, body: &str) -> Ask {
    let mut ask = decode(dialect, body);
    let again: Vec<Entry> = ask.entries.iter().filter(|entry| !entry.is_standing()).cloned().collect();
    ask.entries.extend(again);
    ask
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn every_entry_of_a_broken_history_is_accounted_for(
        entries in histories(),
        frame in frames(),
        way in ways(),
    ) {
        check(framed(frame, entries), &way)?;
    }

    #[test]
    fn every_entry_of_a_request_is_accounted_for(
        plan in plans(SCOPE),
        dialect in select(Dialect::ALL.to_vec()),
        wild: bool,
        way in ways(),
    ) {
        check(decode(dialect, &body(dialect, &plan, wild)), &way)?;
    }

    #[test]
    fn what_is_said_twice_is_told_apart(
        plan in plans(SCOPE),
        dialect in select(Dialect::ALL.to_vec()),
        way in ways(),
    ) {
        check(repeated(dialect, &body(dialect, &plan, false)), &way)?;
    }
}
