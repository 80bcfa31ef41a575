//! Writing a session: a line for each entry, each behind the one before.

use crate::ids::{hex, uuid};
use crate::write::{Header, messages};
use crate::{Written, moment};
use throughline_core::{Dialect, Kind, Rules, Side, Text};
use throughline_wire::json::{Document, Writer};

/// Writes a session.
pub(crate) fn write(header: &Header, entries: &[Written]) -> String {
    let mut session = Session {
        header,
        rules: Rules::of_dialect(Dialect::Messages),
        last: None,
        answer: 0,
        out: String::new(),
    };
    let mut before = Side::User;
    for (number, written) in entries.iter().enumerate() {
        let side = written.entry.side();
        // What the model said in one go has one id.
        session.answer += usize::from(side == Side::Assistant && before != Side::Assistant);
        before = side;
        if written.is_summary {
            session.boundary(number, written);
        }
        let messages = messages(&written.entry, &session.rules);
        let stop = stop_reason(&entries[number..]);
        for (part, message) in messages.iter().enumerate() {
            session.line(&format!("{number}.{part}"), written, message, stop);
        }
    }
    session.title();
    session.out
}

struct Session<'h> {
    header: &'h Header,
    rules: Rules,
    last: Option<String>,
    answer: usize,
    out: String,
}

impl Session<'_> {
    fn line(&mut self, number: &str, written: &Written, message: &str, stop: &str) {
        let Ok(document) = Document::parse(message) else { return };
        let content = document.root().field("content").map_or("[]", |content| content.raw());
        let is_answer = written.entry.side() == Side::Assistant;
        let id = uuid(&self.header.id, number);
        let mut writer = Writer::new();
        self.begin(&mut writer, self.last.as_deref());
        writer.field_str("type", if is_answer { "assistant" } else { "user" });
        writer.key("message");
        writer.begin_object();
        if is_answer {
            let model =
                written.entry.origin.as_ref().map(|origin| &origin.model).filter(|model| !model.is_empty());
            let model = model.or(self.header.model.as_ref()).map_or("unknown", Text::as_str);
            writer.field_str(
                "id",
                &format!("msg_{}", hex(&self.header.id, &format!("answer {}", self.answer))),
            );
            writer.field_str("type", "message");
            writer.field_str("role", "assistant");
            writer.field_str("model", model);
            writer.key("content");
            // An answer is always a list of blocks there.
            match document.root().field("content").and_then(|content| content.as_str()) {
                Some(text) => text_block(&mut writer, &text),
                None => writer.raw(content),
            }
            writer.field_str("stop_reason", stop);
            writer.field_null("stop_sequence");
            writer.field_raw("usage", r#"{"input_tokens":0,"output_tokens":0}"#);
        } else {
            writer.field_str("role", "user");
            writer.field_raw("content", content);
        }
        writer.end_object();
        if written.is_summary {
            writer.field_bool("isVisibleInTranscriptOnly", true);
            writer.field_bool("isCompactSummary", true);
        }
        self.end(writer, id, written.at);
    }

    /// Writes the mark behind which nothing of what came before is shown to the model.
    fn boundary(&mut self, number: usize, written: &Written) {
        let id = uuid(&self.header.id, &format!("{number} boundary"));
        let mut writer = Writer::new();
        let before = self.last.take();
        self.begin(&mut writer, None);
        if let Some(before) = before {
            writer.field_str("logicalParentUuid", &before);
        }
        writer.field_str("type", "system");
        writer.field_str("subtype", "compact_boundary");
        writer.field_str("content", "Conversation compacted");
        writer.field_bool("isMeta", false);
        writer.field_str("level", "info");
        writer.field_raw("compactMetadata", r#"{"trigger":"manual","preTokens":0}"#);
        self.end(writer, id, written.at);
    }

    fn title(&mut self) {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("type", "custom-title");
        writer.field_str("customTitle", &self.header.title);
        writer.field_str("sessionId", &self.header.id);
        writer.end_object();
        self.out.push_str(&writer.into_string());
        self.out.push('\n');
    }

    fn begin(&self, writer: &mut Writer, parent: Option<&str>) {
        writer.begin_object();
        match parent {
            Some(parent) => writer.field_str("parentUuid", parent),
            None => writer.field_null("parentUuid"),
        }
        writer.field_bool("isSidechain", false);
        writer.field_str("userType", "external");
        writer.field_str("cwd", &self.header.cwd);
        writer.field_str("sessionId", &self.header.id);
        writer.field_str("version", &self.header.version);
        writer.field_str("gitBranch", "");
    }

    fn end(&mut self, mut writer: Writer, id: String, at: i64) {
        writer.field_str("uuid", &id);
        writer.field_str("timestamp", &moment::iso(at));
        writer.end_object();
        self.out.push_str(&writer.into_string());
        self.out.push('\n');
        self.last = Some(id);
    }
}

fn text_block(writer: &mut Writer, text: &str) {
    writer.begin_array();
    writer.begin_object();
    writer.field_str("type", "text");
    writer.field_str("text", text);
    writer.end_object();
    writer.end_array();
}

/// Returns why the model stopped, as the rest of its answer shows.
fn stop_reason(rest: &[Written]) -> &'static str {
    let answer = rest.iter().take_while(|written| written.entry.side() == Side::Assistant);
    let calls = answer.filter(|written| matches!(written.entry.kind, Kind::Called(_))).count();
    if calls > 0 { "tool_use" } else { "end_turn" }
}
