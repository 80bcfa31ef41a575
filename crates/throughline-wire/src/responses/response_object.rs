//! The `response` object: 31 fields, all of them required, in replies and in the events that carry one.
//!
//! Most of it repeats the request with every default filled in. That part is made once per answer, since a
//! stream writes the object three times and tools are long. What depends on how far the answer has come is a
//! [`Verdict`].

use super::error::code_of;
use super::fields;
use super::settings::{Gaps, write_format};
use crate::Stamp;
use crate::json::{Document, Edit, Kind, Node, Writer, patch, quote};
use throughline_core::{Ask, Dialect, Ending, Format, Settings, Stop, Text, Usage};

/// The code of a response whose backend fell silent.
pub(super) const BROKEN_CODE: &str = "throughline_backend_stream_broken";

/// The code of a streamed response that was called off: no event of a stream says `cancelled`.
pub(super) const CANCELLED_CODE: &str = "throughline_cancelled";

/// The parts of the object that do not change while the answer is given.
#[derive(Debug)]
pub(super) struct ResponseObject {
    id: String,
    created_at: u64,
    model: Option<Text>,
    /// The request's own fields, as JSON.
    echo: Vec<(&'static str, String)>,
}

/// How far an answer has come, in this dialect's words.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The status.
    pub status: &'static str,
    /// Why it is incomplete, if it is.
    pub incomplete: Option<Text>,
    /// Code and message of the error, if there is one.
    pub error: Option<(Text, Text)>,
}

impl Verdict {
    /// The answer is being given.
    pub(super) const IN_PROGRESS: Self = Self { status: "in_progress", incomplete: None, error: None };

    /// Returns how an answer ended; `refused` says that it holds the words of a refusal.
    pub(super) fn of(ending: &Ending, refused: bool) -> Self {
        let incomplete = |reason| Self { status: "incomplete", incomplete: Some(reason), error: None };
        let failed =
            |code, message| Self { status: "failed", incomplete: None, error: Some((code, message)) };
        match ending {
            Ending::Stopped(stop) => match stop {
                Stop::MaxTokens | Stop::ContextWindow => incomplete(Text::from_static("max_output_tokens")),
                Stop::Filtered => incomplete(Text::from_static("content_filter")),
                // A refusal in words is a complete answer; one without is an answer that was cut off.
                Stop::Refusal if !refused => incomplete(Text::from_static("content_filter")),
                Stop::Paused => incomplete(Text::from_static("paused")),
                // Nobody knows that it is complete, and only this says so.
                Stop::Other(reason) => incomplete(reason.clone()),
                Stop::EndTurn | Stop::ToolCalls | Stop::Sequence(_) | Stop::Refusal => {
                    Self { status: "completed", incomplete: None, error: None }
                }
            },
            Ending::Failed(failure) => failed(code_of(failure), failure.message.clone()),
            Ending::Broken => failed(
                Text::from_static(BROKEN_CODE),
                Text::from_static("The backend's answer ended before it was complete."),
            ),
            Ending::Cancelled => Self { status: "cancelled", incomplete: None, error: None },
        }
    }

    /// Returns how a stream ended, which can be completed, incomplete or failed and nothing else.
    pub(super) fn of_stream(ending: &Ending, refused: bool) -> Self {
        if *ending != Ending::Cancelled {
            return Self::of(ending, refused);
        }
        let message = Text::from_static("The answer was called off.");
        Self { status: "failed", incomplete: None, error: Some((Text::from_static(CANCELLED_CODE), message)) }
    }

    /// Says whether the answer is all there.
    pub(super) fn is_complete(&self) -> bool {
        self.status == "completed"
    }
}

impl ResponseObject {
    /// Returns the object for the answer to `ask`.
    pub(super) fn new(stamp: &Stamp, ask: &Ask) -> Self {
        Self {
            id: format!("resp_{}", stamp.id),
            created_at: stamp.created_at,
            model: stamp.model.clone(),
            echo: Request { ask }.echo(),
        }
    }

    /// Gives the object the backend's model name, unless the client's is known.
    pub(super) fn learn_model(&mut self, model: Option<&Text>) {
        self.model = self.model.take().or_else(|| model.cloned());
    }

    /// Writes the fields that an object of the backend's lacks; `has` says which ones it has.
    pub(super) fn write_missing(
        &self,
        writer: &mut Writer,
        verdict: &Verdict,
        usage: Option<Usage>,
        has: impl Fn(&str) -> bool,
    ) {
        let mut whole = Writer::with_capacity(2048);
        self.write(&mut whole, verdict, usage, |writer| writer.raw("[]"));
        let Ok(document) = Document::parse(whole.into_string()) else { return };
        for (name, value) in document.root().fields().filter(|(name, _)| !has(name)) {
            writer.field_raw(&name, value.raw());
        }
    }

    /// Writes the object; `output` writes the list of items.
    pub(super) fn write(
        &self,
        writer: &mut Writer,
        verdict: &Verdict,
        usage: Option<Usage>,
        output: impl FnOnce(&mut Writer),
    ) {
        writer.begin_object();
        writer.field_str("id", &self.id);
        writer.field_str("object", "response");
        writer.field_uint("created_at", self.created_at);
        // Nobody here reads a clock: the time of the stamp is the only one there is.
        match verdict.is_complete() {
            true => writer.field_uint("completed_at", self.created_at),
            false => writer.field_null("completed_at"),
        }
        writer.field_str("status", verdict.status);
        write_verdict(writer, verdict);
        writer.field_str("model", self.model.as_deref().unwrap_or_default());
        writer.key("output");
        output(writer);
        for (name, value) in &self.echo {
            writer.field_raw(name, value);
        }
        write_usage(writer, usage);
        writer.end_object();
    }
}

fn write_verdict(writer: &mut Writer, verdict: &Verdict) {
    writer.key("incomplete_details");
    match &verdict.incomplete {
        Some(reason) => {
            writer.begin_object();
            writer.field_str("reason", reason);
            writer.end_object();
        }
        None => writer.null(),
    }
    writer.key("error");
    match &verdict.error {
        Some((code, message)) => {
            writer.begin_object();
            writer.field_str("code", code);
            writer.field_str("message", message);
            writer.end_object();
        }
        None => writer.null(),
    }
}

/// Writes what an answer cost, with every count that the specification wants.
pub(super) fn write_usage(writer: &mut Writer, usage: Option<Usage>) {
    writer.key("usage");
    let Some(usage) = usage else { return writer.null() };
    writer.begin_object();
    writer.field_uint("input_tokens", usage.input);
    writer.key("input_tokens_details");
    writer.begin_object();
    writer.field_uint("cached_tokens", usage.cache_read);
    if usage.cache_written > 0 {
        writer.field_uint("cache_write_tokens", usage.cache_written);
    }
    writer.end_object();
    writer.field_uint("output_tokens", usage.output);
    writer.key("output_tokens_details");
    writer.begin_object();
    writer.field_uint("reasoning_tokens", usage.reasoning);
    writer.end_object();
    writer.field_uint("total_tokens", usage.input.saturating_add(usage.output));
    writer.end_object();
}

/// The request, seen as what an answer repeats of it.
struct Request<'a> {
    ask: &'a Ask,
}

impl Request<'_> {
    fn echo(&self) -> Vec<(&'static str, String)> {
        let settings = &self.ask.settings;
        let number = |value: &Option<Text>, default: &str| value.as_deref().unwrap_or(default).to_owned();
        let mut echo = vec![
            ("previous_response_id", self.string_or_null("previous_response_id")),
            ("instructions", self.string_or_null("instructions")),
            ("tools", self.tools()),
            ("tool_choice", self.tool_choice()),
            ("truncation", self.string("truncation").unwrap_or_else(|| quote("disabled"))),
            ("parallel_tool_calls", settings.parallel_calls.unwrap_or(true).to_string()),
            ("text", text_field(settings)),
            ("top_p", number(&settings.top_p, "1.0")),
            ("presence_penalty", number(&settings.presence_penalty, "0.0")),
            ("frequency_penalty", number(&settings.frequency_penalty, "0.0")),
            ("top_logprobs", number(&settings.top_logprobs, "0")),
            ("temperature", number(&settings.temperature, "1.0")),
            ("reasoning", reasoning_field(settings)),
            ("max_output_tokens", number(&settings.max_output_tokens, "null")),
            ("max_tool_calls", number(&settings.max_tool_calls, "null")),
            ("store", settings.store.unwrap_or(true).to_string()),
            ("background", (self.raw("background") == Some("true")).to_string()),
            ("service_tier", quote(settings.service_tier.as_deref().unwrap_or("default"))),
            ("metadata", number(&settings.metadata, "{}")),
            ("safety_identifier", self.string_or_null("safety_identifier")),
            ("prompt_cache_key", settings.cache_key.as_deref().map_or_else(|| "null".to_owned(), quote)),
        ];
        // No field of the specification; OpenAI's clients look for it where they named a conversation.
        echo.extend(self.ask.conversation.as_deref().map(|id| ("conversation", conversation_field(id))));
        echo
    }

    /// Returns a field of the request as it came; only those of this dialect can be repeated.
    fn raw(&self, name: &str) -> Option<&str> {
        let is_own = self.ask.dialect == Dialect::Responses;
        let field = self.ask.fields.iter().rfind(|field| is_own && field.name == name);
        field.map(|field| field.value.as_str()).filter(|value| *value != "null")
    }

    fn string(&self, name: &str) -> Option<String> {
        self.raw(name).filter(|value| value.starts_with('"')).map(str::to_owned)
    }

    fn string_or_null(&self, name: &str) -> String {
        self.string(name).unwrap_or_else(|| "null".to_owned())
    }

    fn tools(&self) -> String {
        let Some(document) = self.raw("tools").and_then(|raw| Document::parse(raw).ok()) else {
            return "[]".to_owned();
        };
        let mut writer = Writer::with_capacity(document.text().len() + 64);
        writer.begin_array();
        document.root().items().for_each(|tool| write_tool(&mut writer, tool));
        writer.end_array();
        writer.into_string()
    }

    /// Returns the choice with its mode, which an answer must state though a request need not.
    fn tool_choice(&self) -> String {
        let Some(raw) = self.raw("tool_choice") else { return quote("auto") };
        let lacks_mode = Document::parse(raw).is_ok_and(|document| {
            let root = document.root();
            root.field("type").is_some_and(|tag| tag.is_str("allowed_tools"))
                && fields::given(root, "mode").is_none()
        });
        let auto = Edit::Set { name: "mode", value: r#""auto""# };
        let patched = lacks_mode.then(|| patch(raw, &[auto]).ok()).flatten();
        patched.unwrap_or_else(|| raw.to_owned())
    }
}

/// Writes a tool with everything that an answer must state about a function, if only `null`.
fn write_tool(writer: &mut Writer, tool: Node<'_>) {
    let is_function = tool.field("type").is_none_or(|tag| tag.is_str("function"));
    if tool.kind() != Kind::Object || !is_function {
        return writer.raw(tool.raw());
    }
    writer.begin_object();
    if tool.field("type").is_none() {
        writer.field_str("type", "function");
    }
    tool.fields().for_each(|(name, value)| writer.field_raw(&name, value.raw()));
    for name in ["description", "parameters", "strict"] {
        if tool.field(name).is_none() {
            writer.field_null(name);
        }
    }
    writer.end_object();
}

fn conversation_field(id: &str) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("id", id);
    writer.end_object();
    writer.into_string()
}

fn text_field(settings: &Settings) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.key("format");
    write_format(&mut writer, settings.format.as_ref().unwrap_or(&Format::Text), Gaps::Stated);
    // Must be one of these or absent; `null` fails validation.
    if let Some(verbosity @ ("low" | "medium" | "high")) = settings.verbosity.as_deref() {
        writer.field_str("verbosity", verbosity);
    }
    writer.end_object();
    writer.into_string()
}

fn reasoning_field(settings: &Settings) -> String {
    let Some(reasoning) = &settings.reasoning else { return "null".to_owned() };
    let mut writer = Writer::new();
    writer.begin_object();
    for (name, value) in [("effort", &reasoning.effort), ("summary", &reasoning.summary)] {
        match value {
            Some(value) => writer.field_str(name, value),
            None => writer.field_null(name),
        }
    }
    writer.end_object();
    writer.into_string()
}
