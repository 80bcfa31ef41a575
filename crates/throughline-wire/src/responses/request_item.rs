//! Entries, written as items of a request.
//!
//! An item that came in this dialect and is intact goes out byte for byte. One that is built never carries an
//! id: the provider looks up the ids it knows, and refuses a call or a message whose reasoning item was left
//! out beside it.

use super::parts::{self, Voice};
use crate::input::{self, FREEFORM_FIELD};
use crate::json::{Document, Edit, Writer, patch};
use std::borrow::Cow;
use std::collections::BTreeSet;
use throughline_core::{
    Action, Call, Dialect, Entry, Input, Kind, Part, Report, Return, Role, Rules, Said, Seal, SentPlace,
    Text, Thought, Treatment, Wire, outcome,
};

/// Writes entries as the items of one list, in their order.
pub(super) struct ItemWriter<'w> {
    writer: &'w mut Writer,
    rules: &'w Rules,
    report: &'w mut Report,
    /// The ids of the calls that were written as calls of custom tools: their results are named alike.
    custom_calls: BTreeSet<Text>,
    /// The ids of all other calls.
    function_calls: BTreeSet<Text>,
    /// The ids of the items that went out as they came; of messages, which keep none, their text.
    sent: BTreeSet<Text>,
    /// How many items were written.
    count: u32,
}

/// Writes each entry as an item of its own; one that no item can say is left empty.
pub(crate) fn encode_items<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Vec<Option<String>> {
    let rules = Rules::of_dialect(Dialect::Responses);
    let (mut writer, mut report) = (Writer::new(), Report::default());
    let mut items = ItemWriter::new(&mut writer, &rules, &mut report);
    let item = |entry: &Entry| {
        items.write(entry);
        items.take()
    };
    entries.into_iter().map(item).collect()
}

impl<'w> ItemWriter<'w> {
    pub(super) fn new(writer: &'w mut Writer, rules: &'w Rules, report: &'w mut Report) -> Self {
        Self {
            writer,
            rules,
            report,
            custom_calls: BTreeSet::new(),
            function_calls: BTreeSet::new(),
            sent: BTreeSet::new(),
            count: 0,
        }
    }

    /// Writes one entry as an item; one that has no form here is reported instead.
    pub(super) fn write(&mut self, entry: &Entry) {
        let own = entry.wire.as_ref().filter(|wire| wire.dialect == Dialect::Responses);
        let changes = self.report.changes.len();
        let is_written = match (own, &entry.kind) {
            (Some(wire), Kind::Reference { .. }) => {
                self.writer.raw(&wire.text);
                true
            }
            (Some(wire), Kind::Opaque { .. }) => self.write_intact(wire, entry),
            (Some(wire), kind) if entry.intact && self.goes_as_it_came(kind) => {
                self.write_intact(wire, entry)
            }
            _ => self.build(entry, own),
        };
        if is_written {
            let is_adapted = self.report.changes.len() > changes || is_reworded(entry, own);
            self.land(entry, is_adapted || input::is_filled_in(entry));
        }
    }

    /// Notes where an entry was written, and whether it says something else there.
    fn land(&mut self, entry: &Entry, is_adapted: bool) {
        let at = SentPlace::within(self.count, 0);
        if is_adapted {
            self.report.provenance.land(at, &entry.trace.with(Treatment::Adapted));
        } else {
            self.report.provenance.land(at, &entry.trace);
        }
        self.count += 1;
    }

    /// Returns what was written since this was last asked, if anything was.
    fn take(&mut self) -> Option<String> {
        Some(std::mem::take(self.writer).into_string()).filter(|written| !written.is_empty())
    }

    /// Says whether the wire form of an intact entry is one that the backend takes.
    fn goes_as_it_came(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Called(call) => self.rules.custom_tools || matches!(call.input, Input::Arguments(_)),
            Kind::Returned(returned) => self.rules.custom_tools || !returned.freeform,
            // The wire form of instructions is a field, not an item.
            Kind::Said(said) => !said.standing,
            _ => true,
        }
    }

    fn write_intact(&mut self, wire: &Wire, entry: &Entry) -> bool {
        if let Kind::Called(call) = &entry.kind {
            let custom = matches!(call.input, Input::Freeform(_)) && !wire.text.contains(FREEFORM_FIELD);
            self.note_call(&call.id, custom);
        }
        let key = match &entry.kind {
            Kind::Thought(thought) => thought.item_id.clone(),
            Kind::Called(call) => call.item_id.clone(),
            Kind::Returned(returned) => returned.item_id.clone(),
            _ => Some(wire.text.clone()),
        };
        let came_before = key.is_some_and(|key| !self.sent.insert(key));
        let problem = if came_before {
            Some("an item of this id came before")
        } else {
            has_foreign_id(&entry.kind, &wire.text)
                .then_some("its id is not one that a server of this dialect gives")
        };
        match problem.and_then(|problem| Some((problem, without_id(&wire.text)?))) {
            Some((problem, anonymous)) => {
                self.report.entry(Action::Repaired, entry.place, problem);
                self.writer.raw(&anonymous);
            }
            None => self.writer.raw(&wire.text),
        }
        true
    }

    fn note_call(&mut self, id: &Text, custom: bool) {
        if custom {
            self.custom_calls.insert(id.clone())
        } else {
            self.function_calls.insert(id.clone())
        };
    }

    /// Writes an item anew; says whether there is one.
    fn build(&mut self, entry: &Entry, own: Option<&Wire>) -> bool {
        match &entry.kind {
            Kind::Said(said) => self.build_message(said, entry),
            Kind::Thought(thought) => self.build_reasoning(thought),
            Kind::Called(call) => self.build_call(call, entry),
            Kind::Returned(returned) => self.build_output(returned, entry),
            Kind::HandedOver(_) | Kind::Summarised(_) | Kind::Reference { .. } | Kind::Opaque { .. } => {
                let reason = "no item of responses can say this";
                self.report.entry(Action::Dropped, entry.place, reason);
                return false;
            }
        }
        for extra in own.iter().filter(|_| !is_standing(entry)).flat_map(|wire| &wire.extras) {
            self.writer.field_raw(&extra.name, &extra.value);
        }
        self.writer.end_object();
        true
    }

    fn build_message(&mut self, said: &Said, entry: &Entry) {
        let (role, voice) = match said.role {
            Role::System => ("system", Voice::Input),
            Role::Developer => ("developer", Voice::Input),
            Role::User => ("user", Voice::Input),
            Role::Assistant => ("assistant", Voice::Output),
        };
        self.begin("message");
        self.writer.field_str("role", role);
        self.writer.key("content");
        parts::write_parts(self.writer, &said.parts, voice, entry.place, self.report);
    }

    fn build_reasoning(&mut self, thought: &Thought) {
        self.begin("reasoning");
        self.writer.key("summary");
        self.write_texts("summary_text", &thought.summary);
        match &thought.seal {
            // The sealed form says it all, and the provider refuses plain content beside it.
            Some(Seal::Encrypted(sealed)) => self.writer.field_str("encrypted_content", sealed),
            _ if thought.content.is_empty() => {}
            _ => {
                self.writer.key("content");
                self.write_texts("reasoning_text", &thought.content);
            }
        }
    }

    fn write_texts(&mut self, tag: &str, texts: &[Text]) {
        self.writer.begin_array();
        for text in texts {
            self.writer.begin_object();
            self.writer.field_str("type", tag);
            self.writer.field_str("text", text);
            self.writer.end_object();
        }
        self.writer.end_array();
    }

    fn build_call(&mut self, call: &Call, entry: &Entry) {
        let custom = self.rules.custom_tools && matches!(call.input, Input::Freeform(_));
        self.note_call(&call.id, custom);
        self.begin(if custom { "custom_tool_call" } else { "function_call" });
        self.writer.field_str("call_id", &call.id);
        self.writer.field_str("name", &call.name);
        if let Some(namespace) = &call.namespace {
            self.writer.field_str("namespace", namespace);
        }
        if custom {
            self.writer.field_str("input", call.input.text());
        } else {
            let arguments = self.arguments_of(call, entry);
            self.writer.field_str("arguments", &arguments);
        }
    }

    /// Returns the arguments of a function call; nothing at all is written as an empty object.
    fn arguments_of<'c>(&mut self, call: &'c Call, entry: &Entry) -> Cow<'c, str> {
        let object = match &call.input {
            Input::Arguments(text) if !self.rules.object_arguments && !text.is_empty() => {
                return Cow::Borrowed(text.as_str());
            }
            input => input::as_object(input),
        };
        match (&call.input, &object) {
            (Input::Freeform(_), _) => {
                let reason = "the backend has no custom tools: the text is wrapped into an object";
                self.report.entry(Action::Translated, entry.place, reason);
            }
            (Input::Arguments(_), Cow::Owned(_)) => {
                let reason = "the arguments are no JSON object: wrapped into one";
                self.report.entry(Action::Repaired, entry.place, reason);
            }
            (Input::Arguments(_), Cow::Borrowed(_)) => {}
        }
        object
    }

    fn build_output(&mut self, returned: &Return, entry: &Entry) {
        self.begin(if self.answers_custom(returned) {
            "custom_tool_call_output"
        } else {
            "function_call_output"
        });
        if let Some(id) = &returned.call_id {
            self.writer.field_str("call_id", id);
        }
        self.writer.key("output");
        let parts = outcome::marked(&returned.parts, returned.outcome, false);
        match parts.as_slice() {
            [] => self.writer.string(""),
            [only] if is_plain_text(only) => self.writer.string(only.as_text().map_or("", |text| text)),
            parts => parts::write_parts(self.writer, parts, Voice::Input, entry.place, self.report),
        }
    }

    /// Says whether the result must be that of a custom tool: as its call was, if that is known.
    fn answers_custom(&self, returned: &Return) -> bool {
        match &returned.call_id {
            Some(id) if self.custom_calls.contains(id) => true,
            Some(id) if self.function_calls.contains(id) => false,
            _ => self.rules.custom_tools && returned.freeform,
        }
    }

    fn begin(&mut self, tag: &str) {
        self.writer.begin_object();
        self.writer.field_str("type", tag);
    }
}

/// Says whether a message, a call or a result has an id that the provider would refuse: clients that keep the history
/// themselves number their items as they like. Those of reasoning stay, since reasoning is nothing without its id.
fn has_foreign_id(kind: &Kind, item: &str) -> bool {
    let (prefix, id) = match kind {
        Kind::Said(_) if item.contains("\"id\"") => ("msg", id_of(item)),
        Kind::Called(call) if matches!(call.input, Input::Arguments(_)) => ("fc", call.item_id.clone()),
        Kind::Returned(returned) if !returned.freeform => ("fc", returned.item_id.clone()),
        _ => return false,
    };
    let is_own = |id: &str| id.split_once('_').is_some_and(|(head, _)| head.starts_with(prefix));
    id.is_some_and(|id| !is_own(&id))
}

fn id_of(item: &str) -> Option<Text> {
    Document::parse(item).ok()?.root().field("id")?.as_text()
}

/// Returns an item without its id, if it has one: the provider takes each id only once.
fn without_id(item: &str) -> Option<String> {
    Document::parse(item).ok()?.root().field("id")?;
    patch(item, &[Edit::Remove { name: "id" }]).ok()
}

/// Says whether a thought that is written anew loses a part of what it was.
fn is_reworded(entry: &Entry, own: Option<&Wire>) -> bool {
    match &entry.kind {
        Kind::Thought(thought) if !(own.is_some() && entry.intact) => {
            let seals = matches!(thought.seal, Some(Seal::Encrypted(_)));
            !seals && thought.seal.is_some() || seals && !thought.content.is_empty()
        }
        _ => false,
    }
}

fn is_standing(entry: &Entry) -> bool {
    entry.as_said().is_some_and(|said| said.standing)
}

/// Says whether the part is text and nothing else, so that a bare string says as much.
fn is_plain_text(part: &Part) -> bool {
    let own_extras =
        part.wire.as_ref().is_some_and(|wire| wire.dialect == Dialect::Responses && !wire.extras.is_empty());
    part.as_text().is_some() && !own_extras
}
