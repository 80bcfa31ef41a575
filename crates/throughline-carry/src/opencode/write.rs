//! Writing a session, as a document to be imported.

use crate::ids::opencode_id;
use crate::write::Header;
use crate::{Millis, Written};
use std::collections::BTreeMap;
use throughline_core::{
    Action, Call, Content, Entry, Input, Kind, Media, Outcome, Part, Report, Return, Side, Text, Thought,
    joined_text, outcome,
};
use throughline_wire::json::{Document, Kind as JsonKind, Writer};

/// Writes a session.
pub(crate) fn write<'w>(header: &'w Header, entries: &'w [Written]) -> String {
    let of = |written: &'w Written| {
        Some((written.entry.as_return()?.call_id.as_ref()?, (written.entry.as_return()?, written.at)))
    };
    let results = entries.iter().filter_map(of).collect();
    let mut session = Session { header, number: 0, question: String::new(), results, writer: Writer::new() };
    session.writer.begin_object();
    session.info();
    session.writer.key("messages");
    session.writer.begin_array();
    for message in messages(entries) {
        session.message(message);
    }
    session.writer.end_array();
    session.writer.end_object();
    session.writer.into_string()
}

/// Reports what of the entries a session cannot hold as it is.
pub(crate) fn note_losses(entries: &[Entry], report: &mut Report) {
    for entry in entries {
        let mut note = |action, reason: String| report.entry(action, entry.place, reason);
        let parts: &[Part] = match &entry.kind {
            Kind::Said(said) => &said.parts,
            Kind::Returned(returned) => &returned.parts,
            Kind::Called(call) => {
                if !matches!(&call.input, Input::Arguments(text) if is_object(text)) {
                    note(Action::Translated, "free text was wrapped into an object".to_owned());
                }
                continue;
            }
            Kind::Thought(thought) if words(thought).is_empty() => {
                note(Action::Dropped, "reasoning without words has no place there".to_owned());
                continue;
            }
            Kind::Opaque { kind } | Kind::Reference { id: kind } => {
                note(Action::Dropped, format!("`{kind}` has no counterpart here"));
                continue;
            }
            Kind::Thought(_) | Kind::Summarised(_) | Kind::HandedOver(_) => continue,
        };
        for part in parts {
            if let Content::Opaque { kind } = &part.content {
                note(Action::Dropped, format!("`{kind}` has no counterpart here"));
            }
        }
        let is_failure = entry.as_return().is_some_and(|returned| returned.outcome.is_error());
        if is_failure && parts.iter().any(is_media) {
            note(Action::Dropped, "a failure has no attachments there".to_owned());
        }
    }
}

fn is_media(part: &Part) -> bool {
    matches!(part.content, Content::Image(_) | Content::File(_))
}

/// Returns the words of a thought.
fn words(thought: &Thought) -> String {
    let texts: Vec<&str> = thought.content.iter().chain(&thought.summary).map(Text::as_str).collect();
    texts.join("\n\n")
}

/// Returns what makes a message: what the user says in one go, or the model, with the results of its calls.
fn messages(entries: &[Written]) -> Vec<&[Written]> {
    let is_answer = |written: &Written| written.entry.side() == Side::Assistant;
    let is_result = |written: &Written| written.entry.as_return().is_some();
    let goes_on = |a: &Written, b: &Written| {
        !a.is_summary
            && !b.is_summary
            && (is_answer(a) == is_answer(b) && !is_result(a) && !is_result(b) || is_result(b))
    };
    entries.chunk_by(goes_on).collect()
}

struct Session<'w> {
    header: &'w Header,
    number: u64,
    /// The id of what the user asked last.
    question: String,
    /// The result of each call: a prompt has one for every call, and each id once.
    results: BTreeMap<&'w Text, (&'w Return, Millis)>,
    writer: Writer,
}

impl Session<'_> {
    fn info(&mut self) {
        let (header, writer) = (self.header, &mut self.writer);
        writer.key("info");
        writer.begin_object();
        writer.field_str("id", &header.id);
        writer.field_str("slug", &format!("carried-{}", &header.id[header.id.len() - 6..]));
        writer.field_str("projectID", "global");
        writer.field_str("directory", &header.cwd);
        writer.field_str("title", &header.title);
        writer.field_str("version", &header.version);
        times(writer, &[("created", header.started), ("updated", header.started)]);
        writer.end_object();
    }

    fn message(&mut self, message: &[Written]) {
        let Some(first) = message.first() else { return };
        let is_answer = first.entry.side() == Side::Assistant || first.is_summary;
        if first.is_summary {
            self.compaction(first.at);
        }
        let id = self.next_id("msg", first.at);
        self.writer.begin_object();
        self.writer.key("info");
        if is_answer {
            self.answer_info(&id, message);
        } else {
            self.question_info(&id, first.at);
        }
        self.writer.key("parts");
        self.writer.begin_array();
        for written in message {
            self.part(&id, written);
        }
        self.writer.end_array();
        self.writer.end_object();
    }

    /// Writes the user's message that asks for what follows: a summary of everything before.
    fn compaction(&mut self, at: Millis) {
        let id = self.next_id("msg", at);
        self.writer.begin_object();
        self.writer.key("info");
        self.question_info(&id, at);
        self.writer.key("parts");
        self.writer.begin_array();
        self.begin_part(&id, "compaction", at);
        self.writer.field_bool("auto", false);
        self.writer.end_object();
        self.writer.end_array();
        self.writer.end_object();
    }

    fn question_info(&mut self, id: &str, at: Millis) {
        self.question = id.to_owned();
        let model = self.header.model.as_ref().map_or("unknown", Text::as_str);
        let writer = &mut self.writer;
        writer.begin_object();
        writer.field_str("id", id);
        writer.field_str("sessionID", &self.header.id);
        writer.field_str("role", "user");
        times(writer, &[("created", at)]);
        writer.field_str("agent", "build");
        writer.key("model");
        writer.begin_object();
        writer.field_str("providerID", "throughline");
        writer.field_str("modelID", model);
        writer.end_object();
        writer.end_object();
    }

    fn answer_info(&mut self, id: &str, message: &[Written]) {
        let (first, last) = (&message[0], &message[message.len() - 1]);
        let model = first.entry.origin.as_ref().map(|origin| &origin.model).filter(|model| !model.is_empty());
        let model = model.or(self.header.model.as_ref()).map_or("unknown", Text::as_str);
        let calls = message.iter().any(|written| written.entry.as_call().is_some());
        let writer = &mut self.writer;
        writer.begin_object();
        writer.field_str("id", id);
        writer.field_str("sessionID", &self.header.id);
        writer.field_str("role", "assistant");
        writer.field_str("parentID", &self.question);
        times(writer, &[("created", first.at), ("completed", last.at)]);
        writer.field_str("modelID", model);
        writer.field_str("providerID", "throughline");
        writer.field_str("mode", "build");
        writer.field_str("agent", "build");
        writer.key("path");
        writer.begin_object();
        writer.field_str("cwd", &self.header.cwd);
        writer.field_str("root", &self.header.cwd);
        writer.end_object();
        if first.is_summary {
            writer.field_bool("summary", true);
        }
        writer.field_uint("cost", 0);
        writer.field_raw("tokens", r#"{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}"#);
        writer.field_str("finish", if calls { "tool-calls" } else { "stop" });
        writer.end_object();
    }

    fn part(&mut self, message: &str, written: &Written) {
        match &written.entry.kind {
            Kind::Said(said) => {
                for part in &said.parts {
                    self.content(message, part, written.at);
                }
            }
            Kind::Thought(thought) if words(thought).is_empty() => {}
            Kind::Thought(thought) => {
                self.begin_part(message, "reasoning", written.at);
                self.writer.field_str("text", &words(thought));
                times_of(&mut self.writer, written.at, written.at);
                self.writer.end_object();
            }
            Kind::Called(call) => self.tool(message, call, written),
            _ => {}
        }
    }

    fn content(&mut self, message: &str, part: &Part, at: Millis) {
        match &part.content {
            Content::Text(text) | Content::Refusal(text) => {
                self.begin_part(message, "text", at);
                self.writer.field_str("text", text);
                self.writer.end_object();
            }
            Content::Image(image) => self.file(message, &image.media, None, at),
            Content::File(file) => self.file(message, &file.media, file.name.as_ref(), at),
            Content::Opaque { .. } => {}
        }
    }

    fn file(&mut self, message: &str, media: &Media, name: Option<&Text>, at: Millis) {
        let (mime, url) = match media {
            Media::Inline { media_type, base64 } => {
                (media_type.to_string(), format!("data:{media_type};base64,{base64}"))
            }
            Media::Url(url) | Media::Stored(url) => ("application/octet-stream".to_owned(), url.to_string()),
            Media::Plain(text) => ("text/plain".to_owned(), format!("data:text/plain,{text}")),
        };
        self.begin_part(message, "file", at);
        self.writer.field_str("mime", &mime);
        if let Some(name) = name {
            self.writer.field_str("filename", name);
        }
        self.writer.field_str("url", &url);
        self.writer.end_object();
    }

    fn tool(&mut self, message: &str, call: &Call, written: &Written) {
        let result = self.results.get(&call.id).copied();
        self.begin_part(message, "tool", written.at);
        self.writer.field_str("callID", &call.id);
        self.writer.field_str("tool", &call.name);
        self.writer.key("state");
        self.writer.begin_object();
        let end = result.map_or(written.at, |(_, at)| at);
        let is_error = result.is_none_or(|(returned, _)| returned.outcome.is_error());
        self.writer.field_str("status", if is_error { "error" } else { "completed" });
        self.writer.field_raw("input", &object(&call.input));
        let words = result.map_or_else(
            || outcome::mark(Outcome::Interrupted).to_owned(),
            |(returned, _)| {
                joined_text(&outcome::marked(&returned.parts, returned.outcome, true)).to_string()
            },
        );
        self.writer.field_str(if is_error { "error" } else { "output" }, &words);
        if !is_error {
            self.writer.field_str("title", "");
            self.writer.field_raw("metadata", "{}");
        }
        times_of(&mut self.writer, written.at, end);
        let attached: Vec<&Part> =
            result.iter().flat_map(|(returned, _)| &returned.parts).filter(|part| is_media(part)).collect();
        if !attached.is_empty() && !is_error {
            self.writer.key("attachments");
            self.writer.begin_array();
            for part in attached {
                self.content(message, part, end);
            }
            self.writer.end_array();
        }
        self.writer.end_object();
        self.writer.end_object();
    }

    fn begin_part(&mut self, message: &str, kind: &str, at: Millis) {
        let id = self.next_id("prt", at);
        self.writer.begin_object();
        self.writer.field_str("id", &id);
        self.writer.field_str("sessionID", &self.header.id);
        self.writer.field_str("messageID", message);
        self.writer.field_str("type", kind);
    }

    fn next_id(&mut self, prefix: &str, at: Millis) -> String {
        self.number += 1;
        opencode_id(prefix, &format!("{} {}", self.header.id, self.number), at, self.number)
    }
}

/// Returns what a tool was given as an object, which it must be there.
fn object(input: &Input) -> String {
    match input {
        Input::Arguments(text) if is_object(text) => text.to_string(),
        Input::Arguments(text) | Input::Freeform(text) => {
            let mut writer = Writer::new();
            writer.begin_object();
            writer.field_str("input", text);
            writer.end_object();
            writer.into_string()
        }
    }
}

fn is_object(text: &str) -> bool {
    Document::parse(text).is_ok_and(|document| document.root().kind() == JsonKind::Object)
}

fn times(writer: &mut Writer, times: &[(&str, Millis)]) {
    writer.key("time");
    writer.begin_object();
    for (name, at) in times {
        writer.field_uint(name, at.unsigned_abs());
    }
    writer.end_object();
}

fn times_of(writer: &mut Writer, start: Millis, end: Millis) {
    times(writer, &[("start", start), ("end", end)]);
}
