//! A [`Prompt`] written as a request body.
//!
//! A request that came in this dialect keeps every field that nobody touched, in its place and as it came;
//! a request from another dialect is written anew. In both, a message whose entries are all there goes out
//! as it came, and so does every block that still says the same.

use super::blocks::write_entry;
use super::generation::Generation;
use super::kept::{OWN, own};
use super::parts::{BlockList, Destination, Head, write_parts};
use super::settings::SettingsWriter;
use super::{reasoning, tools};
use crate::input::is_filled_in;
use crate::json::{Document, Edit, Node, Writer, patch};
use crate::length::expected_length;
use crate::segment::{Segment, segments, verbatim};
use throughline_core::{
    Action, Content, Entry, Envelope, Kind, Part, Prompt, Report, Role, Said, SentPlace, Side, SystemRule,
    Text, Treatment,
};

/// Writes a request.
pub(crate) fn encode_request(prompt: &Prompt<'_>, report: &mut Report) -> String {
    let mut writer = Writer::with_capacity(expected_length(prompt));
    let conversation = Conversation::new(prompt);
    writer.begin_object();
    if prompt.stays_in_dialect() {
        write_kept(&mut writer, prompt, &conversation, report);
    } else {
        write_anew(&mut writer, prompt, &conversation, report);
    }
    writer.end_object();
    writer.into_string()
}

/// Writes the client's own fields, with what the prompt says in place of what it changed.
fn write_kept(
    writer: &mut Writer,
    prompt: &Prompt<'_>,
    conversation: &Conversation<'_>,
    report: &mut Report,
) {
    let fields = &prompt.ask.fields;
    // Of a key that is repeated the last counts, as it did when the request was read.
    let counts = |at: usize| fields[at + 1..].iter().all(|later| later.name != fields[at].name);
    for (_, field) in fields.iter().enumerate().filter(|(at, _)| counts(*at)) {
        match field.name.as_str() {
            "model" => write_model(writer, prompt),
            "system" => conversation.write_system(writer, report),
            "messages" => conversation.write_messages(writer, report),
            "tools" if !tools::are_untouched(prompt) => tools::write_tools(writer, &prompt.tools, report),
            "tool_choice" if !tools::choice_is_untouched(prompt) => {
                tools::write_choice(writer, prompt, asks_to_think(prompt), report);
            }
            "thinking" if prompt.without_reasoning => {}
            "context_management" if prompt.without_reasoning => {
                write_edits_without_thinking(writer, &field.value, report);
            }
            name => writer.field_raw(name, &field.value),
        }
    }
    let lacks = |name: &str| fields.iter().all(|field| field.name != name);
    if lacks("model") {
        write_model(writer, prompt);
    }
    if lacks("system") {
        conversation.write_system(writer, report);
    }
    if lacks("tools") {
        tools::write_tools(writer, &prompt.tools, report);
    }
    if lacks("tool_choice") && prompt.tool_choice != prompt.ask.tool_choice {
        tools::write_choice(writer, prompt, asks_to_think(prompt), report);
    }
}

/// Writes a request that came in another dialect.
fn write_anew(
    writer: &mut Writer,
    prompt: &Prompt<'_>,
    conversation: &Conversation<'_>,
    report: &mut Report,
) {
    let model = Generation::of(prompt.model.as_deref().unwrap_or_default());
    let plan = reasoning::plan(prompt, model, report);
    write_model(writer, prompt);
    writer.field_uint("max_tokens", plan.max_tokens);
    conversation.write_system(writer, report);
    conversation.write_messages(writer, report);
    tools::write_tools(writer, &prompt.tools, report);
    tools::write_choice(writer, prompt, plan.thinks(), report);
    SettingsWriter { prompt, model, plan }.write(writer, report);
}

fn write_model(writer: &mut Writer, prompt: &Prompt<'_>) {
    if let Some(model) = &prompt.model {
        writer.field_str("model", model);
    }
}

fn asks_to_think(prompt: &Prompt<'_>) -> bool {
    let reasoning = prompt.ask.settings.reasoning.as_ref();
    !prompt.without_reasoning && reasoning.is_some_and(|reasoning| !reasoning.is_off())
}

/// Writes `context_management` without the edits that need thinking: they are refused where there is none.
fn write_edits_without_thinking(writer: &mut Writer, value: &str, report: &mut Report) {
    let document = Document::parse(value).ok();
    let edits = document.as_ref().and_then(|document| document.root().field("edits"));
    let Some(edits) = edits else { return writer.field_raw("context_management", value) };
    let is_on_thinking = |edit: &Node<'_>| {
        edit.field("type")
            .and_then(|kind| kind.as_str())
            .is_some_and(|kind| kind.starts_with("clear_thinking"))
    };
    let kept: Vec<Node<'_>> = edits.items().filter(|edit| !is_on_thinking(edit)).collect();
    if kept.len() == edits.len() {
        return writer.field_raw("context_management", value);
    }
    report.field(Action::Dropped, "context_management", "thinking is not cleared where there is none");
    if kept.is_empty() {
        return;
    }
    let mut list = Writer::new();
    list.begin_array();
    kept.iter().for_each(|edit| list.raw(edit.raw()));
    list.end_array();
    let list = list.into_string();
    if let Ok(patched) = patch(value, &[Edit::Set { name: "edits", value: &list }]) {
        writer.field_raw("context_management", &patched);
    }
}

/// What was said, split into what stands beside the conversation and what is in it.
struct Conversation<'p> {
    prompt: &'p Prompt<'p>,
    beside: &'p [Entry],
    within: &'p [Entry],
}

impl<'p> Conversation<'p> {
    fn new(prompt: &'p Prompt<'p>) -> Self {
        let count = prompt.entries.iter().take_while(|entry| stands_beside(entry, prompt)).count();
        let (beside, within) = prompt.entries.split_at(count);
        Self { prompt, beside, within }
    }

    /// Writes `system`: as it came if it is all there is, else as blocks.
    fn write_system(&self, writer: &mut Writer, report: &mut Report) {
        if let [entry] = self.beside
            && let Some(wire) = own(entry.wire.as_ref()).filter(|_| entry.intact)
        {
            report.provenance.land(SentPlace::beside(), &entry.trace);
            return writer.field_raw("system", &wire.text);
        }
        let mut list = BlockList::new(writer, Head::Field("system"));
        for entry in self.beside {
            let parts = entry.as_said().map_or(&[][..], |said| &said.parts);
            let (blocks, changes) = (list.count, report.changes.len());
            write_parts(
                &mut list,
                parts,
                &mut Destination { takes_media: false, place: entry.place, report },
            );
            if list.count > blocks {
                land(report, SentPlace::beside(), entry, changes);
            }
        }
        list.end();
    }

    fn write_messages(&self, writer: &mut Writer, report: &mut Report) {
        writer.key("messages");
        writer.begin_array();
        // How many messages were written.
        let mut count = 0;
        let mut segments = segments(self.within).peekable();
        while let Some(segment) = segments.next() {
            match segments.peek().is_none().then(|| trimmed(&segment, report)).flatten() {
                Some(entries) => {
                    let segment = Segment { side: segment.side, entries: &entries };
                    count += self.write_segment(writer, &segment, count, report);
                }
                None => count += self.write_segment(writer, &segment, count, report),
            }
        }
        writer.end_array();
    }

    /// Writes a segment as messages, of which the first is number `first`; returns how many those are.
    fn write_segment(
        &self,
        writer: &mut Writer,
        segment: &Segment<'_>,
        first: u32,
        report: &mut Report,
    ) -> u32 {
        if segment.is_verbatim(OWN) {
            let mut count = 0;
            for message in segment.messages() {
                let Some(text) = verbatim(message, OWN) else { continue };
                writer.raw(text);
                for (entry, nth) in message.iter().zip(0..) {
                    report.provenance.land(SentPlace::within(first + count, nth), &entry.trace);
                }
                count += 1;
            }
            return count;
        }
        let role = match segment.side {
            Side::System => "system",
            Side::User => "user",
            Side::Assistant => "assistant",
        };
        if let Some(text) = only_text(segment.entries) {
            if text.is_empty() {
                return 0;
            }
            report.provenance.land(SentPlace::within(first, 0), &segment.entries[0].trace);
            write_plain(writer, role, text, segment.entries);
            return 1;
        }
        let mut list = BlockList::new(writer, Head::Message(role));
        let needs_seal = self.prompt.rules.reasoning.needs_seal;
        // Results come before anything else that the user says, or the request is refused.
        let (results, others): (Vec<&Entry>, Vec<&Entry>) =
            segment.entries.iter().partition(|entry| matches!(entry.kind, Kind::Returned(_)));
        // What is said in a row is read as one entry, and everything else as one of its own.
        let mut last: Option<(u32, bool)> = None;
        for entry in results.into_iter().chain(others) {
            let (blocks, changes) = (list.count, report.changes.len());
            write_entry(&mut list, entry, needs_seal, report);
            if list.count == blocks {
                continue;
            }
            let is_spoken = matches!(entry.kind, Kind::Said(_) | Kind::Summarised(_) | Kind::Opaque { .. });
            let nth = match last {
                Some((nth, true)) if is_spoken => nth,
                Some((nth, _)) => nth + 1,
                None => 0,
            };
            last = Some((nth, is_spoken));
            land(report, SentPlace::within(first, nth), entry, changes);
        }
        if !list.end() {
            return 0;
        }
        end_message(writer, role, segment.entries);
        1
    }
}

/// Notes where an entry was written; that changed what it says, if there are more `changes` now.
fn land(report: &mut Report, at: SentPlace, entry: &Entry, changes: usize) {
    let is_reworded =
        matches!(&entry.kind, Kind::Thought(thought) if !entry.intact || thought.seal.is_none());
    if report.changes.len() > changes || is_reworded || is_filled_in(entry) {
        report.provenance.land(at, &entry.trace.with(Treatment::Adapted));
    } else {
        report.provenance.land(at, &entry.trace);
    }
}

/// Says whether an entry that leads the conversation goes into the `system` field.
///
/// Where the backend takes system messages in the conversation, one that was there stays there.
fn stands_beside(entry: &Entry, prompt: &Prompt<'_>) -> bool {
    let Kind::Said(said) = &entry.kind else { return false };
    let was_within = entry.envelope.as_ref().is_some_and(|(envelope, _)| envelope.wire.dialect == OWN);
    let must_move = matches!(prompt.rules.system, SystemRule::Beside);
    said.role.side() == Side::System && (said.standing || must_move || !was_within)
}

/// Returns the text, if that is all there is in a message.
fn only_text(entries: &[Entry]) -> Option<&Text> {
    let [Entry { kind: Kind::Said(Said { parts, .. }), .. }] = entries else { return None };
    let [Part { content: Content::Text(text) | Content::Refusal(text), wire: None }] = parts.as_slice()
    else {
        return None;
    };
    Some(text)
}

fn write_plain(writer: &mut Writer, role: &str, text: &str, entries: &[Entry]) {
    writer.begin_object();
    writer.field_str("role", role);
    writer.field_str("content", text);
    end_message(writer, role, entries);
}

/// Ends a message with the fields that the messages of its entries had beside their content.
///
/// A field of a message that is now told in another role would say something else there.
fn end_message(writer: &mut Writer, role: &str, entries: &[Entry]) {
    let envelopes =
        entries.iter().filter_map(|entry| entry.envelope.as_ref()).map(|(envelope, _)| &**envelope);
    let mut names: Vec<&Text> = Vec::new();
    for envelope in envelopes.filter(|envelope| !envelope.wire.extras.is_empty() && had_role(envelope, role))
    {
        for extra in &envelope.wire.extras {
            if !names.contains(&&extra.name) {
                names.push(&extra.name);
                writer.field_raw(&extra.name, &extra.value);
            }
        }
    }
    writer.end_object();
}

fn had_role(envelope: &Envelope, role: &str) -> bool {
    let message = Document::parse(envelope.wire.text.as_str()).ok().filter(|_| envelope.wire.dialect == OWN);
    message.is_some_and(|message| message.root().field("role").is_some_and(|found| found.is_str(role)))
}

/// Returns the entries of the last segment without the white space at their end.
///
/// "final assistant content cannot end with trailing whitespace": the model is to go on right there.
fn trimmed(segment: &Segment<'_>, report: &mut Report) -> Option<Vec<Entry>> {
    let (last, before) = segment.entries.split_last()?;
    let said = last.as_said().filter(|said| said.role == Role::Assistant)?;
    let (part, parts) = said.parts.split_last()?;
    let text = part.as_text().filter(|text| text.ends_with(char::is_whitespace))?;
    report.entry(Action::Repaired, last.place, "white space at the end of the last message is refused");
    let mut parts = parts.to_vec();
    parts.push(Part::text(text.trim_end()));
    let said = Said { parts, ..said.clone() };
    let mut entries = before.to_vec();
    let trace = last.trace.with(Treatment::Adapted);
    entries.push(Entry { trace, ..last.altered(Kind::Said(said)) });
    Some(entries)
}

#[cfg(test)]
mod tests;
