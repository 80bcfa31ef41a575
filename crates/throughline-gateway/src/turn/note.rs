//! Notes: what a turn writes into its recording beside the events of the provider.
//!
//! A note is an event whose name begins with `throughline.`. There is one with what the turn began with, one behind
//! each answer with a digest of its events, one for each call that was run, one for each artifact, and one for the
//! end. Moments in them are for people: a replay gives others, and compares everything else.

use super::hands::Kept;
use super::{Task, settings};
use crate::config::Config;
use crate::view::outcome_name;
use std::borrow::Cow;
use throughline_core::{Call, Conclusion, EntryId, Outcome, Text};
use throughline_store::{Learned, Moment, ProviderEvent, Scope, Setting, Standing};
use throughline_wire::json::{Document, Edit, Node, Writer, patch};

/// What every note's name begins with.
const PREFIX: &str = "throughline.";
/// With what a turn began.
pub(super) const BEGUN: &str = "throughline.turn";
/// What came of a call.
pub(super) const TOOL: &str = "throughline.tool";
/// What was too long to be shown.
pub(super) const ARTIFACT: &str = "throughline.artifact";
/// How a turn ended.
pub(super) const ENDED: &str = "throughline.turn.end";
/// What came of a replay.
pub(super) const REPLAYED: &str = "throughline.replay";
/// What an answer was made of.
pub(super) const ANSWER: &str = "throughline.answer";

/// Says whether an event is ours and not the provider's.
#[must_use]
pub fn is_note(event: &ProviderEvent) -> bool {
    event.name.as_ref().is_some_and(|name| name.starts_with(PREFIX))
}

/// Takes the digest of an answer while it comes.
#[derive(Debug)]
pub(super) struct Answered {
    events: u64,
    /// Nothing, if what is kept is not what came.
    hasher: Option<blake3::Hasher>,
}

impl Answered {
    /// Begins with an answer; `is_exact` says that its events are kept as they come.
    pub(super) fn new(is_exact: bool) -> Self {
        Self { events: 0, hasher: is_exact.then(blake3::Hasher::new) }
    }

    pub(super) fn take_in(&mut self, events: &[ProviderEvent]) {
        for event in events {
            self.events += 1;
            let Some(hasher) = &mut self.hasher else { continue };
            for piece in [event.name.as_deref().unwrap_or("\0"), &event.data] {
                hasher.update(&(piece.len() as u64).to_le_bytes());
                hasher.update(piece.as_bytes());
            }
        }
    }

    pub(super) fn note(&self, at: Moment) -> ProviderEvent {
        note(ANSWER, at, |writer| {
            writer.field_uint("events", self.events);
            if let Some(hasher) = &self.hasher {
                writer.field_str("digest", &hasher.finalize().to_hex());
            }
        })
    }
}

/// Returns with what a turn begins: all that a replay needs besides what comes back to it.
pub(super) fn begun(task: &Task, config: &Config, standing: &Standing, at: Moment) -> ProviderEvent {
    note(BEGUN, at, |writer| {
        writer.field_str("turn", &task.id);
        writer.field_str("version", env!("CARGO_PKG_VERSION"));
        optional(writer, "behind", task.behind.as_ref().map(EntryId::as_str));
        let manner = &task.manner;
        optional(writer, "backend", manner.backend.as_deref());
        optional(writer, "model", manner.model.as_deref());
        optional(writer, "instructions", manner.instructions.as_deref());
        raw_list(writer, "tools", manner.tools.iter().map(Text::as_str));
        writer.field_uint("max_tool_calls", manner.max_tool_calls.into());
        raw_list(writer, "opening", task.opening.iter().map(String::as_str));
        writer.field_str("settings", &settings::written(config, task.compose.as_ref()));
        writer.field_bool("composes", task.compose.is_some());
        if config.privacy.is_active() {
            writer.field_bool("redacted", true);
        }
        write_standing(writer, config, standing);
    })
}

/// Returns what came of a call, with what was too long to be shown before it, as that is kept: without secrets.
pub(super) fn tool(
    call: &Call,
    outcome: Outcome,
    exit_code: Option<i32>,
    kept: &[Kept],
    (started, ended): (Moment, Moment),
) -> Vec<ProviderEvent> {
    let mut notes: Vec<ProviderEvent> = kept.iter().map(|kept| artifact(call, kept, ended)).collect();
    notes.push(note(TOOL, ended, |writer| {
        writer.field_str("call", &call.id);
        writer.field_str("tool", &call.name);
        writer.field_str("outcome", outcome_name(outcome));
        if let Some(code) = exit_code {
            writer.key("exit_code");
            writer.raw(&code.to_string());
        }
        writer.key("artifacts");
        writer.begin_array();
        for kept in kept {
            writer.begin_object();
            writer.field_str("name", &kept.name);
            writer.field_str("digest", &blake3::hash(&kept.bytes).to_hex());
            writer.end_object();
        }
        writer.end_array();
        writer.field_str("started", &crate::view::iso(started));
        writer.key("took_ms");
        writer.raw(&super::span(started, ended).to_string());
    }));
    notes
}

fn artifact(call: &Call, kept: &Kept, at: Moment) -> ProviderEvent {
    note(ARTIFACT, at, |writer| {
        writer.field_str("call", &call.id);
        writer.field_str("name", &kept.name);
        match std::str::from_utf8(&kept.bytes) {
            Ok(text) => writer.field_str("text", text),
            Err(_) => writer.field_str("hex", &hex(&kept.bytes)),
        }
    })
}

/// Returns how a turn ended.
pub(super) fn ended(
    conclusion: &Conclusion,
    calls: u32,
    tip: Option<&EntryId>,
    cancelled_at: Option<(u32, u32)>,
    at: Moment,
) -> ProviderEvent {
    note(ENDED, at, |writer| {
        writer.field_str("conclusion", conclusion.word());
        writer.field_uint("calls", calls.into());
        optional(writer, "tip", tip.map(EntryId::as_str));
        if let Some((answers, runs)) = cancelled_at {
            raw_list(
                writer,
                "cancelled_at",
                [answers.to_string(), runs.to_string()].iter().map(String::as_str),
            );
        }
    })
}

/// Returns a note without the moments in it.
pub(super) fn timeless(event: &ProviderEvent) -> Cow<'_, str> {
    if event.name.as_deref() != Some(TOOL) {
        return Cow::Borrowed(&event.data);
    }
    let edits = [Edit::Remove { name: "started" }, Edit::Remove { name: "took_ms" }];
    patch(&event.data, &edits).map_or(Cow::Borrowed(&*event.data), Cow::Owned)
}

/// Returns what an artifact's note has kept.
pub(super) fn read_artifact(data: &str) -> Option<(Text, Kept)> {
    let document = Document::parse(data).ok()?;
    let root = document.root();
    let text = |name| root.field(name).and_then(|value| value.as_text());
    let bytes = match text("text") {
        Some(text) => text.as_bytes().to_vec(),
        None => unhex(&text("hex")?)?,
    };
    Some((text("call")?, Kept { name: text("name")?.to_string(), bytes }))
}

fn write_standing(writer: &mut Writer, config: &Config, standing: &Standing) {
    writer.key("learned");
    writer.begin_array();
    for learned in standing.learned.iter().filter(|learned| config.backend(&learned.backend).is_some()) {
        writer.begin_object();
        writer.field_str("backend", &learned.backend);
        writer.field_str("model", &learned.model);
        writer.field_str("capability", &learned.capability);
        writer.field_str("verdict", &learned.verdict);
        writer.field_str("reason", &learned.reason);
        number(writer, "at", learned.at.0);
        if let Some(expires) = learned.expires {
            number(writer, "expires", expires.0);
        }
        writer.end_object();
    }
    writer.end_array();
    writer.key("switches");
    writer.begin_array();
    for setting in &standing.settings {
        let Some(value) = &setting.value else { continue };
        writer.begin_object();
        writer.field_str("name", &setting.name);
        writer.field_str("value", value);
        if let Scope::Conversation(conversation) = &setting.scope {
            writer.field_str("conversation", conversation.as_str());
        }
        writer.end_object();
    }
    writer.end_array();
}

/// Returns what held when a turn began; what expires does so as much later as `shift` says.
pub(super) fn read_standing(root: Node<'_>, at: Moment, shift: i64) -> Standing {
    let text =
        |node: Node<'_>, name: &str| node.field(name).and_then(|value| value.as_text()).unwrap_or_default();
    let moment = |node: Node<'_>, name: &str| {
        node.field(name).and_then(|value| value.as_u64()).map(|at| Moment(at.cast_signed() + shift))
    };
    let learned = |node: Node<'_>| Learned {
        backend: text(node, "backend"),
        model: text(node, "model"),
        capability: text(node, "capability"),
        verdict: text(node, "verdict"),
        reason: text(node, "reason"),
        at: moment(node, "at").unwrap_or(at),
        expires: moment(node, "expires"),
    };
    let switch = |node: Node<'_>| Setting {
        scope: match text(node, "conversation") {
            id if id.is_empty() => Scope::Everywhere,
            id => Scope::Conversation(throughline_core::ConversationId::new(id)),
        },
        name: text(node, "name"),
        value: Some(text(node, "value")),
        at,
    };
    let items = |name: &str| root.field(name).into_iter().flat_map(Node::items);
    Standing {
        learned: items("learned").map(learned).collect(),
        settings: items("switches").map(switch).collect(),
    }
}

pub(super) fn note(name: &'static str, at: Moment, write: impl FnOnce(&mut Writer)) -> ProviderEvent {
    let mut writer = Writer::new();
    writer.begin_object();
    write(&mut writer);
    writer.end_object();
    ProviderEvent { at, name: Some(Text::from_static(name)), data: writer.into_string().into() }
}

fn optional(writer: &mut Writer, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        writer.field_str(name, value);
    }
}

fn number(writer: &mut Writer, name: &str, value: i64) {
    writer.key(name);
    writer.raw(&value.to_string());
}

fn raw_list<'i>(writer: &mut Writer, name: &str, items: impl Iterator<Item = &'i str>) {
    writer.key(name);
    writer.begin_array();
    items.for_each(|item| writer.raw(item));
    writer.end_array();
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Input;

    fn call() -> Call {
        let input = Input::Arguments("{}".into());
        Call { id: "c".into(), item_id: None, name: "bash".into(), namespace: None, input }
    }

    #[test]
    fn artifacts_come_back_to_the_byte() {
        for bytes in [b"text \xc3\xa4".to_vec(), vec![0, 255, 254, 10]] {
            let kept = Kept { name: "stdout-1".into(), bytes };
            let note = artifact(&call(), &kept, Moment(0));
            assert_eq!(read_artifact(&note.data), Some(("c".into(), kept)));
        }
    }

    #[test]
    fn the_same_outcome_at_another_time_is_the_same() {
        let one = tool(&call(), Outcome::Ok, Some(-1), &[], (Moment(0), Moment(10)));
        let two = tool(&call(), Outcome::Ok, Some(-1), &[], (Moment(50), Moment(90)));
        assert_ne!(one, two);
        assert_eq!(timeless(&one[0]), timeless(&two[0]));
        assert!(timeless(&one[0]).contains("\"exit_code\":-1"));
        assert!(is_note(&one[0]));
    }

    #[test]
    fn a_digest_tells_any_two_answers_apart() {
        let digest = |events: &[(Option<&str>, &str)]| {
            let mut answered = Answered::new(true);
            let event = |(name, data): &(Option<&str>, &str)| ProviderEvent {
                at: Moment(0),
                name: name.map(Text::from),
                data: (*data).into(),
            };
            answered.take_in(&events.iter().map(event).collect::<Vec<_>>());
            answered.note(Moment(0)).data
        };
        let all = [
            digest(&[]),
            digest(&[(None, "ab")]),
            digest(&[(None, "a"), (None, "b")]),
            digest(&[(Some("a"), "b")]),
            digest(&[(Some(""), "ab")]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one));
        }
    }
}
