//! Our own form, out: everything that the history has of a conversation, a JSON object on each line.
//!
//! docs/formats.md lists the lines. The counterpart is `import/interchange.rs`.

use crate::exit::CommandError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use throughline_carry::interchange::{EntryWriter, VERSION};
use throughline_core::{ConversationId, Text};
use throughline_gateway::view;
use throughline_store::{
    Attempt, CompactionStep, Conversations, DocumentKind, Entries, Exchange, Heading, History, Kept, Moment,
    Recording, StepId, Which,
};
use throughline_wire::json::Writer;

/// Writes a conversation.
pub async fn write(history: &dyn History, id: &ConversationId) -> Result<String, CommandError> {
    let heading = history.conversations(Conversations::One(id.clone())).await?.items.into_iter().next();
    let mut out = Lines::default();
    out.line("throughline", |writer| writer.field_uint("version", VERSION));
    if let Some(heading) = &heading {
        out.line("conversation", |writer| write_heading(writer, heading));
    }
    let exchanges = view::exchanges(history, id).await?;
    for exchange in &exchanges {
        out.line("exchange", |writer| write_exchange(writer, exchange));
    }
    for step in history.compaction(id.clone()).await? {
        out.line("compaction", |writer| write_compaction(writer, &step));
    }
    let mut entries = EntryWriter::default();
    for kept in history.entries(Entries::Conversation(id.clone())).await? {
        if let Some(envelope) = entries.envelope(&kept.entry) {
            out.push(&envelope);
        }
        out.line("entry", |writer| {
            write_place(writer, &kept);
            entries.entry(writer, &kept.entry);
        });
    }
    for exchange in &exchanges {
        let recording = history.recording(exchange.id.clone(), Which::Everything).await?;
        out.recording(exchange.id.as_str(), &recording);
    }
    Ok(out.text)
}

#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn line(&mut self, kind: &str, write: impl FnOnce(&mut Writer)) {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("type", kind);
        write(&mut writer);
        writer.end_object();
        self.push(&writer.into_string());
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn recording(&mut self, exchange: &str, recording: &Recording) {
        for kind in DocumentKind::ALL {
            for (attempt, body) in recording.documents(kind) {
                self.line(document_name(kind), |writer| {
                    writer.field_str("exchange", exchange);
                    writer.field_uint("attempt", u64::from(*attempt));
                    match std::str::from_utf8(body) {
                        Ok(text) => writer.field_str("text", text),
                        Err(_) => writer.field_str("base64", &BASE64.encode(body)),
                    }
                });
            }
        }
        for (attempt, event) in &recording.events {
            self.line("event", |writer| {
                writer.field_str("exchange", exchange);
                writer.field_uint("attempt", u64::from(*attempt));
                moment(writer, "at", Some(event.at));
                optional(writer, "name", event.name.as_ref());
                writer.field_str("data", &event.data);
            });
        }
        if let Some(answer) = &recording.answer {
            self.line("answer", |writer| {
                writer.field_str("exchange", exchange);
                writer.field_str("json", answer);
            });
        }
    }
}

/// Returns what a line is called that holds a document.
pub const fn document_name(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Sent => "sent",
        DocumentKind::Received => "received",
        DocumentKind::Provenance => "provenance",
        DocumentKind::Report => "report",
    }
}

fn write_heading(writer: &mut Writer, heading: &Heading) {
    writer.field_str("id", heading.id.as_str());
    moment(writer, "created", Some(heading.created));
    moment(writer, "updated", Some(heading.updated));
    writer.field_str("identified", &heading.identified);
    optional(writer, "title", heading.title.as_ref());
    optional(writer, "backend", heading.backend.as_ref());
    optional(writer, "project", heading.project.as_ref());
    if let Some(parent) = &heading.parent {
        writer.field_str("parent", parent.as_str());
    }
}

fn write_place(writer: &mut Writer, kept: &Kept) {
    writer.field_str("id", kept.id.as_str());
    if let Some(parent) = &kept.parent {
        writer.field_str("parent", parent.as_str());
    }
    if let Some(exchange) = &kept.exchange {
        writer.field_str("exchange", exchange.as_str());
    }
    moment(writer, "at", Some(kept.at));
}

fn write_exchange(writer: &mut Writer, exchange: &Exchange) {
    writer.field_str("id", exchange.id.as_str());
    for (name, entry) in [("before", &exchange.before), ("after", &exchange.after)] {
        if let Some(entry) = entry {
            writer.field_str(name, entry.as_str());
        }
    }
    writer.field_str("dialect", exchange.dialect.name());
    optional(writer, "client", exchange.client.as_ref());
    optional(writer, "asked_model", exchange.asked_model.as_ref());
    moment(writer, "started", Some(exchange.started));
    moment(writer, "ended", exchange.ended);
    optional(writer, "ending", exchange.ending.as_ref());
    status(writer, exchange.status);
    if let Some(usage) = exchange.usage {
        writer.key("usage");
        writer.begin_array();
        let counts = [usage.input, usage.cache_read, usage.cache_written, usage.output, usage.reasoning];
        counts.into_iter().for_each(|count| writer.uint(count));
        writer.end_array();
    }
    writer.key("attempts");
    writer.begin_array();
    exchange.attempts.iter().for_each(|attempt| write_attempt(writer, attempt));
    writer.end_array();
    if let Some(response) = &exchange.response {
        writer.key("response");
        writer.begin_object();
        writer.field_str("id", &response.id);
        writer.field_bool("stored", response.stored);
        writer.field_bool("deleted", response.deleted);
        writer.end_object();
    }
}

fn write_attempt(writer: &mut Writer, attempt: &Attempt) {
    writer.begin_object();
    writer.field_str("backend", &attempt.backend);
    writer.field_str("dialect", attempt.dialect.name());
    optional(writer, "model", attempt.model.as_ref());
    optional(writer, "strategy", attempt.strategy.as_ref());
    moment(writer, "started", Some(attempt.started));
    moment(writer, "ended", attempt.ended);
    status(writer, attempt.status);
    optional(writer, "failure", attempt.failure.as_ref());
    step_id(writer, "compaction", attempt.compaction.as_ref());
    if let Some(plan) = attempt.plan {
        writer.key("plan");
        writer.begin_array();
        [plan.before, plan.after, plan.tools].into_iter().for_each(|tokens| writer.uint(tokens));
        writer.end_array();
    }
    optional(writer, "continues", attempt.continues.as_ref());
    optional(writer, "recall", attempt.recall.as_ref());
    writer.end_object();
}

fn write_compaction(writer: &mut Writer, step: &CompactionStep) {
    writer.field_str("exchange", step.id.exchange.as_str());
    writer.field_uint("attempt", u64::from(step.id.attempt));
    writer.field_str("backend", &step.backend);
    writer.field_str("model", &step.model);
    moment(writer, "at", Some(step.at));
    step_id(writer, "follows", step.follows.as_ref());
    writer.field_str("decisions", &step.decisions);
    optional(writer, "summary", step.summary.as_ref());
}

fn step_id(writer: &mut Writer, name: &str, step: Option<&StepId>) {
    let Some(step) = step else { return };
    writer.key(name);
    writer.begin_object();
    writer.field_str("exchange", step.exchange.as_str());
    writer.field_uint("attempt", u64::from(step.attempt));
    writer.end_object();
}

fn optional(writer: &mut Writer, name: &str, text: Option<&Text>) {
    if let Some(text) = text {
        writer.field_str(name, text);
    }
}

fn moment(writer: &mut Writer, name: &str, moment: Option<Moment>) {
    if let Some(Moment(millis)) = moment {
        writer.field_raw(name, &millis.to_string());
    }
}

fn status(writer: &mut Writer, status: Option<u16>) {
    if let Some(status) = status {
        writer.field_uint("status", u64::from(status));
    }
}
