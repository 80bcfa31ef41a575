//! A turn as it was recorded and as it was driven again, compared.

use super::Tape;
use crate::turn::{is_note, note};
use throughline_core::{Text, Usage};
use throughline_store::{
    Attempt, DocumentKind, Exchange, ExchangeId, Exchanges, History, ProviderEvent, Recording, StoreError,
    Which,
};
use throughline_wire::json::{Document, Kind, Node};

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which request it is about, from 1; none where it is about the whole.
    pub request: Option<usize>,
    /// What differs.
    pub place: Place,
    /// Where in it, if it is JSON.
    pub path: String,
    /// As it was recorded.
    pub recorded: String,
    /// As it came out now.
    pub replayed: String,
    /// The whole bodies, where it is one that differs.
    pub bodies: Option<Box<Bodies>>,
}

/// A body as it was sent, and as it would be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bodies {
    /// As it was recorded.
    pub recorded: String,
    /// As it came out now.
    pub replayed: String,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The body of a request.
    Request,
    /// To whom a request goes: which backend, in which dialect, for which model.
    Target,
    /// How an attempt was made, and what came of it.
    Attempt,
    /// The entries of the request.
    Before,
    /// The events of an answer, by their digest.
    Events,
    /// The entries of the answer.
    After,
    /// How an answer ended, or what it took.
    Ending,
    /// Which call was run.
    Call,
    /// What was noted about calls and the turn.
    Note,
    /// Whether there is such a request at all.
    Presence,
}

/// So much of a value is shown on each side of the place where it differs.
const AROUND: usize = 60;

impl Place {
    /// Returns what it is, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Request => "the body of the request",
            Self::Target => "the target of the request",
            Self::Attempt => "the attempt",
            Self::Before => "the entries of the request",
            Self::Events => "the events of the answer",
            Self::After => "the entries of the answer",
            Self::Ending => "the end of the answer",
            Self::Call => "the call that is run",
            Self::Note => "what is noted",
            Self::Presence => "the request",
        }
    }

    /// Returns what it does, behind those words.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Before | Self::Events | Self::After => "differ",
            _ => "differs",
        }
    }
}

impl Difference {
    pub(super) fn call(recorded: &Text, replayed: &Text) -> Self {
        Self::new(None, Place::Call, "", recorded, replayed)
    }

    fn new(request: Option<usize>, place: Place, path: &str, recorded: &str, replayed: &str) -> Self {
        let (recorded, replayed) = excerpts(recorded, replayed);
        Self { request, place, path: path.to_owned(), recorded, replayed, bodies: None }
    }

    /// Returns what it is sorted by: the first one is what the others follow from.
    pub(super) fn order(&self) -> (usize, Place) {
        (self.request.unwrap_or(usize::MAX), self.place)
    }
}

/// How a turn was driven again.
pub(super) struct Driven<'d> {
    /// What came of it.
    pub copy: &'d dyn History,
    /// Whether it was under other settings: every request is made in another way then, and only what is sent, and to
    /// whom, is compared.
    pub is_other: bool,
    /// Why it went no further, if it failed.
    pub failure: Option<Text>,
}

/// Compares a turn with how it was driven again.
pub(super) async fn turns(tape: &Tape, driven: &Driven<'_>) -> Result<Vec<Difference>, StoreError> {
    let mut differences = Vec::new();
    let missing = match &driven.failure {
        Some(failure) => format!("is not made: {failure}"),
        None => "is not made".to_owned(),
    };
    for (at, (recorded, recording)) in tape.exchanges.iter().enumerate() {
        let (request, is_redacted) = (at + 1, tape.is_redacted);
        let mut pair = Pair { request, is_redacted, missing: &missing, differences: &mut differences };
        match one(driven.copy, &recorded.id).await? {
            None => pair.differ(Place::Presence, "is there", &missing),
            Some((replayed, replay)) if driven.is_other => {
                pair.sent((recorded, recording), (&replayed, &replay), true);
            }
            Some((replayed, replay)) => {
                pair.compare((recorded, recording), (&replayed, &replay), tape.ended.is_some());
            }
        }
    }
    let made = crate::view::exchanges(driven.copy, &tape.conversation).await?;
    let made = made.iter().filter(|exchange| is_of(exchange, &tape.turn)).count();
    if tape.ended.is_some() && made > tape.exchanges.len() {
        let (request, more) = (tape.exchanges.len() + 1, made - tape.exchanges.len());
        let more = format!("{more} more");
        differences.push(Difference::new(Some(request), Place::Presence, "", "is not there", &more));
    }
    Ok(differences)
}

fn is_of(exchange: &Exchange, turn: &str) -> bool {
    exchange.client.as_deref().is_some_and(|client| client.ends_with(turn))
}

async fn one(history: &dyn History, id: &ExchangeId) -> Result<Option<(Exchange, Recording)>, StoreError> {
    let found = history.exchanges(Exchanges::One(id.clone())).await?.items.into_iter().next();
    let Some(exchange) = found else { return Ok(None) };
    let recording = history.recording(id.clone(), Which::Everything).await?;
    Ok(Some((exchange, recording)))
}

struct Pair<'d> {
    request: usize,
    /// Whether secrets were taken out of what was recorded, so that it is not what was counted.
    is_redacted: bool,
    /// What is said of a request that is not made.
    missing: &'d str,
    differences: &'d mut Vec<Difference>,
}

impl Pair<'_> {
    fn compare(
        &mut self,
        (recorded, recording): (&Exchange, &Recording),
        (replayed, replay): (&Exchange, &Recording),
        is_finished: bool,
    ) {
        self.sent((recorded, recording), (replayed, replay), false);
        let id = |entry: &Option<throughline_core::EntryId>| {
            entry.as_ref().map_or("none", |id| id.as_str()).to_owned()
        };
        self.same(Place::Before, &id(&recorded.before), &id(&replayed.before));
        if recorded.ended.is_none() {
            return;
        }
        let is_exact = !self.is_redacted;
        let mine = attempts(&recorded.attempts, recording, is_exact);
        let others = attempts(&replayed.attempts, replay, is_exact);
        self.same(Place::Attempt, &mine, &others);
        self.same(Place::After, &id(&recorded.after), &id(&replayed.after));
        self.same(Place::Ending, &ending(recorded), &ending(replayed));
        let mine = notes(recording);
        let others = notes(replay);
        for (at, note) in mine.iter().enumerate() {
            match others.get(at) {
                Some(other) => self.notes(note, other),
                None if is_finished => self.differ(Place::Note, &note::timeless(note), "nothing"),
                None => {}
            }
        }
        if let Some(more) = others.get(mine.len()).filter(|_| is_finished) {
            self.differ(Place::Note, "nothing", &note::timeless(more));
        }
    }

    /// Compares what was sent and, if that may be another, to whom.
    fn sent(
        &mut self,
        (recorded, recording): (&Exchange, &Recording),
        (replayed, replay): (&Exchange, &Recording),
        with_targets: bool,
    ) {
        for (attempt, body) in &recording.sent {
            let Some((_, other)) = replay.sent.iter().find(|(at, _)| at == attempt) else {
                self.differ(Place::Presence, "is there", self.missing);
                continue;
            };
            if with_targets {
                self.same(Place::Target, &target(recorded, *attempt), &target(replayed, *attempt));
            }
            if other != body {
                self.bodies(body, other);
            }
        }
        let is_new = |attempt: &u32| !recording.sent.iter().any(|(at, _)| at == attempt);
        for (attempt, _) in replay.sent.iter().filter(|(attempt, _)| with_targets && is_new(attempt)) {
            let made = format!("is made again, to {}", target(replayed, *attempt));
            self.differ(Place::Presence, "is there once", &made);
        }
    }

    fn notes(&mut self, one: &ProviderEvent, other: &ProviderEvent) {
        let is_answer = one.name.as_deref() == Some(note::ANSWER);
        if is_answer && !one.data.contains("\"digest\"") {
            // Secrets were taken out of the events before they were written.
            return;
        }
        let place = if is_answer { Place::Events } else { Place::Note };
        let (one, other) = (note::timeless(one), note::timeless(other));
        self.same(place, &one, &other);
    }

    fn bodies(&mut self, recorded: &[u8], replayed: &[u8]) {
        let (one, other) = (String::from_utf8_lossy(recorded), String::from_utf8_lossy(replayed));
        let (path, mine, others) = pinpointed(&one, &other);
        let bodies = Bodies { recorded: one.into_owned(), replayed: other.into_owned() };
        let difference = Difference::new(Some(self.request), Place::Request, &path, &mine, &others);
        self.differences.push(Difference { bodies: Some(Box::new(bodies)), ..difference });
    }

    fn same(&mut self, place: Place, one: &str, other: &str) {
        if one != other {
            let (path, one, other) = pinpointed(one, other);
            self.differences.push(Difference::new(Some(self.request), place, &path, &one, &other));
        }
    }

    fn differ(&mut self, place: Place, one: &str, other: &str) {
        self.differences.push(Difference::new(Some(self.request), place, "", one, other));
    }
}

/// Returns to whom an attempt went.
fn target(exchange: &Exchange, attempt: u32) -> String {
    let Some(attempt) = exchange.attempts.get(attempt as usize) else { return "nobody".to_owned() };
    let model = attempt.model.as_deref().unwrap_or("no model");
    format!("{} ({}, {model})", attempt.backend, attempt.dialect)
}

fn notes(recording: &Recording) -> Vec<&ProviderEvent> {
    let events = recording.events.iter().map(|(_, event)| event);
    // With what it began is given to both, and verdicts of earlier replays are no part of the turn.
    let is_compared = |name: &str| name != note::BEGUN && name != note::REPLAYED;
    let compared = |event: &&ProviderEvent| is_note(event) && event.name.as_deref().is_some_and(is_compared);
    events.filter(compared).collect()
}

fn attempts(attempts: &[Attempt], recording: &Recording, is_exact: bool) -> String {
    let line = |(number, attempt): (u32, &Attempt)| {
        let text = |text: &Option<Text>| text.as_deref().unwrap_or("-").to_owned();
        let report = recording.document(number, DocumentKind::Report);
        let report = report.map_or_else(|| "-".into(), |report| String::from_utf8_lossy(report));
        // Where secrets were taken out, what was counted is not what is kept.
        let sizes = attempt.plan.filter(|_| is_exact);
        let sizes = sizes.map_or_else(String::new, |sizes| format!(" {} of {}", sizes.after, sizes.before));
        let status = attempt.status.map_or("-".to_owned(), |status| status.to_string());
        format!(
            "{} {} {} {status} {} {report}{sizes}",
            attempt.backend,
            text(&attempt.model),
            text(&attempt.strategy),
            text(&attempt.failure),
        )
    };
    (0_u32..).zip(attempts).map(line).collect::<Vec<_>>().join("\n")
}

fn ending(exchange: &Exchange) -> String {
    let usage = exchange.usage.map(|usage| {
        let Usage { input, cache_read, cache_written, output, reasoning } = usage;
        format!(" {input}/{cache_read}/{cache_written} in, {output}/{reasoning} out")
    });
    format!("{}{}", exchange.ending.as_deref().unwrap_or("none"), usage.unwrap_or_default())
}

/// Returns where two texts differ first, if they are JSON, and what stands there.
fn pinpointed(one: &str, other: &str) -> (String, String, String) {
    let documents = Document::parse(one).ok().zip(Document::parse(other).ok());
    let found = documents.as_ref().and_then(|(a, b)| first(a.root(), b.root()));
    match found {
        Some((Some(one), Some(other))) => (one.path(), one.raw().to_owned(), other.raw().to_owned()),
        Some((Some(one), None)) => (one.path(), one.raw().to_owned(), "nothing".to_owned()),
        Some((None, Some(other))) => (other.path(), "nothing".to_owned(), other.raw().to_owned()),
        _ => (String::new(), one.to_owned(), other.to_owned()),
    }
}

/// Returns the innermost values that differ first.
fn first<'d>(one: Node<'d>, other: Node<'d>) -> Option<(Option<Node<'d>>, Option<Node<'d>>)> {
    if one.raw() == other.raw() {
        return None;
    }
    let whole = Some((Some(one), Some(other)));
    match (one.kind(), other.kind()) {
        (Kind::Object, Kind::Object) => {
            for (name, value) in one.fields() {
                match other.field(&name) {
                    None => return Some((Some(value), None)),
                    Some(theirs) if theirs.raw() != value.raw() => return first(value, theirs),
                    Some(_) => {}
                }
            }
            let mine = |name: &str| one.field(name).is_none();
            other.fields().find(|(name, _)| mine(name)).map(|(_, value)| (None, Some(value))).or(whole)
        }
        (Kind::Array, Kind::Array) => {
            let mut theirs = other.items();
            for value in one.items() {
                match theirs.next() {
                    None => return Some((Some(value), None)),
                    Some(their) if their.raw() != value.raw() => return first(value, their),
                    Some(_) => {}
                }
            }
            theirs.next().map(|value| (None, Some(value))).or(whole)
        }
        _ => whole,
    }
}

/// Returns of two texts what stands around the place where they first differ.
#[must_use]
pub fn excerpts(one: &str, other: &str) -> (String, String) {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let from = text.floor_char_boundary(same.saturating_sub(AROUND));
        let to = text.floor_char_boundary((same + AROUND).min(text.len()));
        let (head, tail) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
        format!("{head}{}{tail}", text.get(from..to).unwrap_or_default())
    };
    (around(one), around(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_difference_is_named_by_its_path() {
        let one = r#"{"a":[1,{"b":"same","c":"one"}],"d":1}"#;
        let other = r#"{"a":[1,{"b":"same","c":"two"}],"d":2}"#;
        let (path, one, other) = pinpointed(one, other);
        assert_eq!((&*path, &*one, &*other), ("a[1].c", "\"one\"", "\"two\""));
        let (path, one, other) = pinpointed(r#"{"a":[1]}"#, r#"{"a":[1,2]}"#);
        assert_eq!((&*path, &*one, &*other), ("a[1]", "nothing", "2"));
        let (path, ..) = pinpointed(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#);
        assert_eq!(path, "", "the order of fields is a difference as well");
    }

    #[test]
    fn long_values_are_shown_around_the_place() {
        let long = "x".repeat(500);
        let (one, other) = excerpts(&format!("{long}A{long}"), &format!("{long}B{long}"));
        assert!(one.len() < 200 && one.starts_with('…') && one.contains("xA") && other.contains("xB"));
    }
}
