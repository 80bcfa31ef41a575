//! Entries, written as messages.
//!
//! Whoever speaks, a message that is still whole and suits the target goes out as it came. Beyond that: what
//! system, developer and user say is a message each, and so is every result. A stretch of the assistant's
//! that holds calls is one message, because the results must follow it; text that stood between or behind
//! the calls moves before them, since a message has no order between the two.

use super::calls::{is_loose, is_sendable, write_call};
use super::content::{Holder, suits, write_content, write_result};
use super::extras::own;
use super::vocabulary::{Closed, vocabulary};
use crate::input::is_filled_in;
use crate::json::{Document, Writer};
use crate::segment::{Segment, segments, verbatim};
use std::sync::Arc;
use throughline_core::outcome::marked;
use throughline_core::{
    Action, Addition, Content, Dialect, Entry, Envelope, Extra, Kind, Outcome, Part, Place, Prompt, Report,
    Return, Role, Rules, Said, SentPlace, Side, Text, Trace, Treatment,
};

/// Writes the array of messages.
pub(super) fn write_messages(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let target = Taker::new(&prompt.entries, prompt.rules);
    let mut out = Messages { writer, rules: prompt.rules, report, target, count: 0 };
    out.writer.begin_array();
    for segment in segments(&prompt.entries) {
        match segment.side {
            Side::Assistant => out.assistant_segment(&segment),
            Side::System | Side::User => out.other_segment(&segment),
        }
    }
    out.writer.end_array();
}

/// Whoever is sent messages, and what may stay in them as it came.
struct Taker<'r> {
    rules: &'r Rules,
    /// The fields that it knows, where it refuses others.
    closed: Option<Closed>,
    /// Whether calls and results without ids go out as they came.
    loose_stay: bool,
}

impl<'r> Taker<'r> {
    fn new(entries: &[Entry], rules: &'r Rules) -> Self {
        let taker = Self { rules, closed: vocabulary(rules).closed, loose_stay: true };
        Self { loose_stay: taker.takes_loose_pairs(entries), ..taker }
    }

    /// Says whether all calls and results without ids can go out as they came.
    ///
    /// If only one half of such a pair did, nothing would say any more that they belong together.
    fn takes_loose_pairs(&self, entries: &[Entry]) -> bool {
        let stays = |segment: Segment<'_>| match segment.side {
            Side::Assistant => self.takes_segment(&segment),
            Side::System | Side::User => segment
                .messages()
                .filter(|message| message.iter().any(is_loose))
                .all(|message| self.as_it_came(message).is_some()),
        };
        !entries.iter().any(is_loose)
            || segments(entries).filter(|segment| segment.entries.iter().any(is_loose)).all(stays)
    }

    fn takes_segment(&self, segment: &Segment<'_>) -> bool {
        // Where roles take turns, all that the model says in a row is one message, reasoning included.
        let is_alone = !self.rules.alternate || segment.messages().count() == 1;
        is_alone
            && segment.is_verbatim(Dialect::Chat)
            && segment.messages().all(|message| self.takes(message))
    }

    /// Returns the message as it came, if it is whole and suits the target.
    fn as_it_came<'e>(&self, message: &'e [Entry]) -> Option<&'e str> {
        verbatim(message, Dialect::Chat).filter(|_| self.takes(message))
    }

    fn takes(&self, message: &[Entry]) -> bool {
        let has_calls = message.iter().any(|entry| entry.as_call().is_some());
        let has_reasoning = message.iter().any(|entry| matches!(entry.kind, Kind::Thought(_)));
        let lacks_reasoning = self.rules.reasoning.required_with_calls && has_calls && !has_reasoning;
        let envelope = message.first().and_then(|entry| entry.envelope.as_ref());
        let is_known = |closed: Closed| envelope.is_none_or(|(of, _)| closed.knows_all(&of.wire.text));
        !lacks_reasoning
            && !lists_no_calls(message)
            && message.iter().all(|entry| self.takes_entry(entry))
            && self.closed.is_none_or(is_known)
    }

    fn takes_entry(&self, entry: &Entry) -> bool {
        let fits = match &entry.kind {
            Kind::Called(call) => is_sendable(entry, call, self.rules),
            Kind::Returned(returned) => {
                result_suits(returned, self.rules)
                    && returned.parts.iter().all(|part| suits(part, self.rules))
            }
            Kind::Said(said) => said.parts.iter().all(|part| suits(part, self.rules)),
            _ => true,
        };
        fits && (self.loose_stay || !is_loose(entry))
    }
}

/// Says whether a message has a list of calls with none in it, which providers refuse and some clients write.
fn lists_no_calls(message: &[Entry]) -> bool {
    let envelope = message.first().and_then(|entry| entry.envelope.as_ref());
    let text = envelope.map_or("", |(envelope, _)| envelope.wire.text.as_str());
    text.contains("\"tool_calls\"")
        && Document::parse(text).is_ok_and(|document| {
            document.root().field("tool_calls").is_some_and(|calls| calls.items().next().is_none())
        })
}

/// Says whether the content of a result can go out as it came.
///
/// A list of no parts is refused everywhere; a result of nothing is an empty string. Where it must be a
/// string, only one that said nothing but its text is known to have been one: a mark of ours may have stood
/// in a list.
fn result_suits(returned: &Return, rules: &Rules) -> bool {
    let is_plain = returned.outcome == Outcome::Ok;
    let was_empty = is_plain && returned.parts.is_empty();
    let was_string = is_plain && matches!(&returned.parts[..], [part] if part.wire.is_none());
    !was_empty && (rules.parts_in_results || was_string)
}

struct Messages<'w> {
    writer: &'w mut Writer,
    rules: &'w Rules,
    report: &'w mut Report,
    target: Taker<'w>,
    /// How many messages were written.
    count: u32,
}

impl Messages<'_> {
    /// Writes a message as it came.
    fn verbatim(&mut self, text: &str, entries: &[Entry]) {
        self.writer.raw(text);
        for (entry, nth) in entries.iter().zip(0..) {
            self.land(nth, entry, false);
        }
        self.count += 1;
    }

    /// Notes that an entry stands in the message under way, and whether it says something else there.
    fn land(&mut self, nth: u32, entry: &Entry, is_adapted: bool) {
        let at = SentPlace::within(self.count, nth);
        if is_adapted {
            self.report.provenance.land(at, &entry.trace.with(Treatment::Adapted));
        } else {
            self.report.provenance.land(at, &entry.trace);
        }
    }

    fn other_segment(&mut self, segment: &Segment<'_>) {
        for message in segment.messages() {
            match self.target.as_it_came(message) {
                Some(text) => self.verbatim(text, message),
                None => message.iter().for_each(|entry| self.other_entry(entry)),
            }
        }
    }

    fn other_entry(&mut self, entry: &Entry) {
        match &entry.kind {
            Kind::Said(said) => self.said(entry, said),
            Kind::Returned(returned) => self.returned(entry, returned),
            _ => self.skip(entry.place),
        }
    }

    fn skip(&mut self, place: Option<Place>) {
        self.report.entry(Action::Dropped, place, "chat has no form for it");
    }

    fn said(&mut self, entry: &Entry, said: &Said) {
        let (role, holder) = match said.role {
            Role::System => ("system", Holder::Text),
            Role::Developer if self.rules.developer_role => ("developer", Holder::Text),
            Role::Developer => ("system", Holder::Text),
            Role::User => ("user", Holder::Media),
            Role::Assistant => ("assistant", Holder::Text),
        };
        let changes = self.report.changes.len();
        self.writer.begin_object();
        self.writer.field_str("role", role);
        self.writer.key("content");
        let parts: Vec<&Part> = said.parts.iter().collect();
        write_content(self.writer, &parts, holder, self.rules, entry.place, self.report);
        let is_adapted = self.report.changes.len() > changes;
        self.envelope_extras(std::slice::from_ref(entry));
        self.writer.end_object();
        self.land(0, entry, is_adapted);
        self.count += 1;
    }

    fn returned(&mut self, entry: &Entry, returned: &Return) {
        let changes = self.report.changes.len();
        self.writer.begin_object();
        self.writer.field_str("role", "tool");
        if let Some(id) = &returned.call_id {
            self.writer.field_str("tool_call_id", id);
        }
        // The name is nothing that all servers take; it goes back only to where it came from.
        if let Some(name) = returned.name.as_ref().filter(|_| is_own(entry) && self.target.closed.is_none()) {
            self.writer.field_str("name", name);
        }
        if returned.parts.is_empty() && is_own(entry) && entry.intact {
            self.report.entry(Action::Repaired, entry.place, "a result of nothing is an empty string");
        }
        self.writer.key("content");
        let parts = marked(&returned.parts, returned.outcome, false);
        write_result(self.writer, &parts, self.rules, entry.place, self.report);
        let is_adapted = self.report.changes.len() > changes;
        self.envelope_extras(std::slice::from_ref(entry));
        self.writer.end_object();
        self.land(0, entry, is_adapted);
        self.count += 1;
    }

    fn assistant_segment(&mut self, segment: &Segment<'_>) {
        if self.target.takes_segment(segment) {
            let messages =
                segment.messages().filter_map(|message| Some((verbatim(message, Dialect::Chat)?, message)));
            return messages.for_each(|(text, message)| self.verbatim(text, message));
        }
        for message in segment.messages().filter(|message| lists_no_calls(message)) {
            let place = message.first().and_then(|entry| entry.place);
            self.report.entry(Action::Repaired, place, "it had a list of calls with none in it");
        }
        if self.rules.alternate || segment.entries.iter().any(is_call) {
            self.assistant(segment.entries);
        } else {
            self.talk(segment);
        }
    }

    /// Writes a segment without calls: a message for each thing said, with the reasoning before it.
    fn talk(&mut self, segment: &Segment<'_>) {
        let (mut unwritten, mut at) = (0, 0);
        for message in segment.messages() {
            let end = at + message.len();
            if let Some(text) = self.target.as_it_came(message) {
                self.talk_anew(&segment.entries[unwritten..at]);
                self.verbatim(text, message);
                unwritten = end;
            }
            at = end;
        }
        self.talk_anew(&segment.entries[unwritten..]);
    }

    fn talk_anew(&mut self, entries: &[Entry]) {
        for entries in entries.split_inclusive(|entry| entry.as_said().is_some()) {
            self.assistant(entries);
        }
    }

    /// Writes one assistant message.
    fn assistant(&mut self, entries: &[Entry]) {
        let gathered = self.gather(entries);
        if gathered.is_nothing() {
            return;
        }
        self.writer.begin_object();
        self.writer.field_str("role", "assistant");
        self.writer.key("content");
        let place = entries.first().and_then(|entry| entry.place);
        let changes = self.report.changes.len();
        let mut says_something = false;
        if gathered.parts.is_empty() && !gathered.calls.is_empty() {
            self.writer.null();
        } else {
            says_something =
                write_content(self.writer, &gathered.parts, Holder::Text, self.rules, place, self.report);
        }
        if !gathered.refusals.is_empty() {
            self.writer.key("refusal");
            write_joined(self.writer, &gathered.refusals);
            says_something = true;
        }
        // A refusal is read behind the text, and several as one.
        let refuses_besides =
            !gathered.refusals.is_empty() && gathered.refusals.len() + gathered.parts.len() > 1;
        let is_adapted = self.report.changes.len() > changes || refuses_besides;
        let mut thinks = self.reasoning(&gathered, place);
        let calls = self.calls(&gathered.calls);
        thinks |= self.envelope_extras(entries);
        self.writer.end_object();

        // Reasoning is read first, then what is said, then the calls.
        let mut nth = 0;
        if thinks {
            self.land_thoughts(entries);
            nth += 1;
        }
        if says_something || (gathered.calls.is_empty() && !thinks) {
            self.land_said(nth, entries, is_adapted);
            nth += 1;
        }
        for (entry, is_adapted) in calls {
            self.land(nth, entry, is_adapted);
            nth += 1;
        }
        self.count += 1;
    }

    fn land_thoughts(&mut self, entries: &[Entry]) {
        let mut is_there = false;
        for entry in entries {
            if let Kind::Thought(thought) = &entry.kind {
                // There is one text of reasoning in a message, and no seal.
                self.land(0, entry, thought.seal.is_some() || thought.content.len() != 1);
                is_there = true;
            }
        }
        if !is_there {
            let at = SentPlace::within(self.count, 0);
            self.report.provenance.land(at, &Trace::Added(Addition::EmptyReasoning));
        }
    }

    fn land_said(&mut self, nth: u32, entries: &[Entry], is_adapted: bool) {
        let is_empty = |entry: &Entry| entry.as_said().is_some_and(|said| said.parts.is_empty());
        let said = || entries.iter().filter(|entry| entry.as_said().is_some());
        let are_all_empty = said().all(is_empty);
        let first_call = entries.iter().position(is_call).unwrap_or(entries.len());
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.as_said().is_some()) {
            if is_empty(entry) && !are_all_empty {
                continue;
            }
            if at > first_call {
                let moved = Entry { trace: entry.trace.with(Treatment::Moved), ..entry.clone() };
                self.land(nth, &moved, is_adapted);
            } else {
                self.land(nth, entry, is_adapted);
            }
        }
    }

    /// Writes the reasoning of a message; says whether it has any.
    fn reasoning(&mut self, gathered: &Gathered<'_>, place: Option<Place>) -> bool {
        let is_missing = self.rules.reasoning.required_with_calls
            && !gathered.calls.is_empty()
            && gathered.reasoning.is_empty();
        if is_missing && !gathered.has_thought {
            let reason = "the target wants reasoning beside calls; it gets an empty one";
            self.report.entry(Action::Repaired, place, reason);
        }
        if is_missing || !gathered.reasoning.is_empty() {
            self.writer.key("reasoning_content");
            write_joined(self.writer, &gathered.reasoning);
        }
        is_missing || !gathered.reasoning.is_empty()
    }

    /// Writes the calls of a message; returns those that were written, and whether they say something else now.
    fn calls<'e>(&mut self, calls: &[&'e Entry]) -> Vec<(&'e Entry, bool)> {
        let mut written = Vec::with_capacity(calls.len());
        if calls.is_empty() {
            return written;
        }
        self.writer.key("tool_calls");
        self.writer.begin_array();
        for entry in calls {
            let changes = self.report.changes.len();
            match (&entry.kind, own(entry.wire.as_ref())) {
                (Kind::Called(call), _) => write_call(self.writer, entry, call, self.rules, self.report),
                (_, Some(wire)) => self.writer.raw(&wire.text),
                _ => continue,
            }
            written.push((*entry, self.report.changes.len() > changes || is_filled_in(entry)));
        }
        self.writer.end_array();
        written
    }

    fn gather<'e>(&mut self, entries: &'e [Entry]) -> Gathered<'e> {
        let mut gathered = Gathered::default();
        for entry in entries {
            match &entry.kind {
                Kind::Said(said) => {
                    if !gathered.calls.is_empty() && !said.parts.is_empty() {
                        self.report.entry(Action::Translated, entry.place, "text stands before the calls");
                    }
                    gathered.has_said = true;
                    said.parts.iter().for_each(|part| gathered.add_part(part));
                }
                Kind::Thought(thought) => {
                    gathered.has_thought = true;
                    let texts = if thought.content.is_empty() { &thought.summary } else { &thought.content };
                    gathered.reasoning.extend(texts);
                }
                Kind::Called(_) => gathered.calls.push(entry),
                Kind::Opaque { .. } if is_call(entry) => gathered.calls.push(entry),
                // A message of a role that nobody knows.
                Kind::Opaque { .. } => match own(entry.wire.as_ref()) {
                    Some(wire) => self.verbatim(&wire.text, std::slice::from_ref(entry)),
                    None => self.skip(entry.place),
                },
                _ => self.skip(entry.place),
            }
        }
        gathered
    }

    /// Writes the fields that stood beside the content in the messages that these entries came in; says whether
    /// reasoning is among them.
    fn envelope_extras(&mut self, entries: &[Entry]) -> bool {
        let mut written: Vec<&Text> = Vec::new();
        let mut last: Option<&Arc<Envelope>> = None;
        for (envelope, _) in entries.iter().filter_map(|entry| entry.envelope.as_ref()) {
            if envelope.wire.dialect != Dialect::Chat || last.is_some_and(|last| Arc::ptr_eq(last, envelope))
            {
                continue;
            }
            last = Some(envelope);
            for extra in &envelope.wire.extras {
                if self.target.closed.is_some_and(|closed| !closed.knows(&extra.name)) {
                    let reason = format!("the target refuses messages with a field {}", extra.name);
                    self.report.entry(Action::Dropped, entries[0].place, reason);
                } else if written.contains(&&extra.name) {
                    let reason = format!("the message has a field {} from another one already", extra.name);
                    self.report.entry(Action::Dropped, entries[0].place, reason);
                } else if may_return(extra, envelope, entries) {
                    self.writer.field_raw(&extra.name, &extra.value);
                    written.push(&extra.name);
                }
            }
        }
        written.iter().any(|name| *name == DETAILS)
    }
}

/// The field that holds sealed reasoning.
const DETAILS: &str = "reasoning_details";

/// Says whether a field may go back to where it came from: sealed reasoning only beside its text.
fn may_return(extra: &Extra, envelope: &Arc<Envelope>, entries: &[Entry]) -> bool {
    let is_thought_of = |entry: &Entry| {
        matches!(entry.kind, Kind::Thought(_))
            && entry.envelope.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, envelope))
    };
    extra.name != DETAILS || entries.iter().any(is_thought_of)
}

fn is_own(entry: &Entry) -> bool {
    entry.envelope.as_ref().is_some_and(|(envelope, _)| envelope.wire.dialect == Dialect::Chat)
}

/// Says whether the entry stands among the calls of a message.
fn is_call(entry: &Entry) -> bool {
    match &entry.kind {
        Kind::Called(_) => true,
        // An opaque entry is a call of unknown type, or a whole message of unknown role.
        Kind::Opaque { .. } => {
            let whole = entry.envelope.as_ref().map(|(envelope, _)| &envelope.wire.text);
            own(entry.wire.as_ref()).is_some_and(|wire| Some(&wire.text) != whole)
        }
        _ => false,
    }
}

/// What goes into one assistant message.
#[derive(Default)]
struct Gathered<'e> {
    reasoning: Vec<&'e Text>,
    parts: Vec<&'e Part>,
    refusals: Vec<&'e Text>,
    calls: Vec<&'e Entry>,
    has_said: bool,
    has_thought: bool,
}

impl<'e> Gathered<'e> {
    fn add_part(&mut self, part: &'e Part) {
        match &part.content {
            Content::Refusal(text) if own(part.wire.as_ref()).is_none() => self.refusals.push(text),
            _ => self.parts.push(part),
        }
    }

    fn is_nothing(&self) -> bool {
        !self.has_said && self.calls.is_empty() && self.reasoning.is_empty()
    }
}

fn write_joined(writer: &mut Writer, texts: &[&Text]) {
    writer.string_with(|sink| {
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                sink.push("\n\n");
            }
            sink.push(text);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::{decode_request, encode_request};
    use super::*;
    use crate::json::Document;
    use serde_json::{Value, json};
    use throughline_core::{Ask, Call, Input, Outcome, Target, Thought, prepare};

    fn decode(messages: &Value) -> Ask {
        let body = json!({"model": "m", "messages": messages});
        decode_request(&Document::parse(body.to_string()).unwrap()).unwrap()
    }

    /// Writes entries that came from nowhere.
    fn written(entries: Vec<Entry>, rules: &str) -> (Value, Report) {
        let mut ask = decode(&json!([]));
        ask.entries = entries;
        sent(&ask, rules)
    }

    fn sent(ask: &Ask, rules: &str) -> (Value, Report) {
        let rules = Rules::from_name(rules).unwrap();
        let (mut prompt, mut report) = prepare(ask, &Target::new(&rules));
        prompt.entries.clone_from(&ask.entries);
        report.changes.clear();
        let body: Value = serde_json::from_str(&encode_request(&prompt, &mut report)).unwrap();
        (body["messages"].clone(), report)
    }

    fn called(id: &str, input: Input) -> Entry {
        let call = Call { id: id.into(), item_id: None, name: "f".into(), namespace: None, input };
        Entry::new(Kind::Called(call))
    }

    fn thought(text: &str) -> Entry {
        Entry::new(Kind::Thought(Thought { content: vec![text.into()], ..Thought::default() }))
    }

    fn result(id: &str, parts: Vec<Part>, outcome: Outcome) -> Entry {
        let call_id = Some(id.into());
        Entry::new(Kind::Returned(Return {
            call_id,
            item_id: None,
            name: None,
            parts,
            outcome,
            freeform: false,
        }))
    }

    fn arguments(text: &str) -> Input {
        Input::Arguments(text.into())
    }

    #[test]
    fn a_stretch_with_calls_is_one_message() {
        let entries = vec![
            Entry::said(Role::Assistant, "First."),
            called("a", arguments("{}")),
            Entry::said(Role::Assistant, "Second."),
            called("b", arguments("{ \"x\": 1.10 }")),
            result("a", vec![Part::text("1")], Outcome::Ok),
            result("b", Vec::new(), Outcome::Error),
        ];
        let (messages, report) = written(entries, "openai-chat");
        let call = |id, arguments| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
        let text = |text| json!({"type": "text", "text": text});
        assert_eq!(
            messages,
            json!([
                {"role": "assistant", "content": [text("First."), text("Second.")],
                    "tool_calls": [call("a", "{}"), call("b", "{ \"x\": 1.10 }")]},
                {"role": "tool", "tool_call_id": "a", "content": "1"},
                {"role": "tool", "tool_call_id": "b", "content": "[tool error]"},
            ])
        );
        assert_eq!(report.changes.len(), 1);
        assert_eq!(report.changes[0].reason, "text stands before the calls");
    }

    #[test]
    fn reasoning_is_required_beside_calls_by_some() {
        let (messages, report) = written(vec![called("a", arguments("{}"))], "deepseek");
        assert_eq!((&messages[0]["content"], &messages[0]["reasoning_content"]), (&Value::Null, &json!("")));
        assert_eq!(report.count(Action::Repaired), 1);
        let entries = vec![thought("Hm."), called("a", arguments("{}"))];
        assert_eq!(written(entries, "deepseek").0[0]["reasoning_content"], json!("Hm."));
        // A message of this dialect that lacks it cannot go out as it came either.
        let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let ask = decode(&json!([{"role": "assistant", "content": null, "tool_calls": [call]}]));
        assert_eq!(sent(&ask, "deepseek").0[0]["reasoning_content"], json!(""));
        assert_eq!(sent(&ask, "openai-chat").0[0].get("reasoning_content"), None);
    }

    #[test]
    fn reasoning_stands_with_what_follows_it() {
        let entries = vec![
            thought("One."),
            Entry::said(Role::Assistant, "1"),
            thought("Two."),
            Entry::said(Role::Assistant, "2"),
            thought("Three."),
        ];
        assert_eq!(
            written(entries, "openai-chat").0,
            json!([
                {"role": "assistant", "content": "1", "reasoning_content": "One."},
                {"role": "assistant", "content": "2", "reasoning_content": "Two."},
                {"role": "assistant", "content": "", "reasoning_content": "Three."},
            ])
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_wrapped_for_those_who_parse_them() {
        let call = |arguments: Value| json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}});
        for odd in [json!("{\"path\": \"src"), json!(""), json!({"path": "a"}), Value::Null] {
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call(odd.clone())]});
            let ask = decode(&json!([message]));
            let arguments = &sent(&ask, "openai-chat").0[0]["tool_calls"][0]["function"]["arguments"];
            assert!(arguments.is_string(), "{arguments}");
            let (messages, _) = sent(&ask, "mistral");
            let arguments = messages[0]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object(), "{arguments}");
        }
    }

    #[test]
    fn free_text_is_wrapped_where_there_are_no_custom_tools() {
        let custom = json!({"id": "a", "type": "custom", "custom": {"name": "f", "input": "*** patch"}});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [custom]});
        let ask = decode(&json!([message]));
        assert_eq!(sent(&ask, "openai-chat").0, json!([message]));
        let (messages, report) = sent(&ask, "mistral");
        let wrapped = json!({"name": "f", "arguments": "{\"throughline_input\":\"*** patch\"}"});
        assert_eq!(messages[0]["tool_calls"][0]["function"], wrapped);
        assert_eq!(report.count(Action::Translated), 1);
    }

    #[test]
    fn pairs_without_ids_are_rebuilt_together() {
        let messages = json!([
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "1"},
        ]);
        let mut ask = decode(&messages);
        assert_eq!(sent(&ask, "openai-chat").0, messages);
        ask.entries[0].intact = false;
        let (messages, _) = sent(&ask, "openai-chat");
        assert_eq!(messages[0]["tool_calls"][0]["id"], json!("call_without_id_0_0"));
        assert_eq!(
            messages[1],
            json!({"role": "tool", "tool_call_id": "call_without_id_0_0", "name": "f", "content": "1"})
        );
    }

    #[test]
    fn a_rebuilt_message_keeps_the_fields_that_nobody_knows() {
        let call = json!({"id": "a", "type": "function", "extra_content": {"s": 1},
            "function": {"name": "f", "arguments": "{}", "x": 2}});
        let message = json!({"role": "assistant", "content": null, "reasoning": "Hm.", "reasoning_details": [{"data": "d"}],
            "x_score": 0.5, "tool_calls": [call]});
        let mut ask = decode(&json!([message]));
        for entry in &mut ask.entries {
            entry.intact = false;
        }
        assert_eq!(
            sent(&ask, "openai-chat").0,
            json!([{"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [call],
                "reasoning_details": [{"data": "d"}], "x_score": 0.5}])
        );
        // Sealed reasoning does not outlive the reasoning.
        ask.entries.remove(0);
        assert_eq!(sent(&ask, "openai-chat").0[0].get("reasoning_details"), None);
    }

    #[test]
    fn mistral_refuses_messages_with_fields_that_it_does_not_know() {
        let messages = json!([
            {"role": "user", "content": "Hi.", "name": "ida"},
            {"role": "assistant", "content": "Hello.", "refusal": null, "annotations": []},
        ]);
        let ask = decode(&messages);
        assert_eq!(sent(&ask, "openai-chat").0, messages);
        let (messages, report) = sent(&ask, "mistral");
        let told = |role, content| json!({"role": role, "content": content});
        assert_eq!(messages, json!([told("user", "Hi."), told("assistant", "Hello.")]));
        assert_eq!(report.count(Action::Dropped), 1);
    }

    #[test]
    fn a_result_in_parts_becomes_a_string_for_those_who_want_one() {
        let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let messages = json!([
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
        ]);
        let ask = decode(&messages);
        assert_eq!(sent(&ask, "openai-chat").0, messages);
        assert_eq!(sent(&ask, "mistral").0[1]["content"], json!("x\ny"));
        // One that bears a mark of ours is no string either.
        let mut messages = messages;
        messages[1]["content"] = json!([{"type": "text", "text": "[tool error]\nno"}]);
        let ask = decode(&messages);
        assert_eq!(sent(&ask, "openai-chat").0, messages);
        assert_eq!(sent(&ask, "mistral").0[1]["content"], json!("[tool error]\nno"));
    }
}
