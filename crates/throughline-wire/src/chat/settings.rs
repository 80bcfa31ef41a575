//! Sampling, limits, the form of the answer and the request for reasoning, both ways.
//!
//! Numbers keep their text. Which fields a server knows differs; a [`Vocabulary`] says so.
//!
//! A budget of reasoning tokens becomes an effort: up to 4,096 tokens `low`, up to 16,384 `medium`, beyond
//! that `high`. The other dialects' budgets start at 1,024, which is already more than `minimal` uses.

use super::extras::{filled, given};
use super::vocabulary::{Vocabulary, vocabulary};
use crate::json::{DecodeError, Kind, Node, Writer};
use throughline_core::{
    Action, Dialect, Extra, Format, Number, Prompt, Reasoning, Report, Rules, Settings, Text,
};

const EFFORT_BUDGETS: [(u64, &str); 2] = [(4_096, "low"), (16_384, "medium")];

/// The fields of a request that the canonical model expresses.
const EXPRESSED: &[&str] = &[
    "model",
    "messages",
    "n",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "logprobs",
    "top_logprobs",
    "stop",
    "parallel_tool_calls",
    "verbosity",
    "reasoning_effort",
    "metadata",
    "user",
    "prompt_cache_key",
    "service_tier",
    "store",
];

/// The fields by which clients of one server or another ask for reasoning.
pub(super) const REASONING_FIELDS: &[&str] =
    &["reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget", "include_reasoning"];

/// Says whether a field of a request is lost where only the canonical model is left of it.
pub(super) fn is_extra(name: &str, value: Node<'_>, settings: &Settings) -> bool {
    match name {
        "response_format" => settings.format.is_none(),
        "reasoning" => settings.reasoning.is_none(),
        "safety_identifier" => settings.user != value.as_text(),
        _ => !EXPRESSED.contains(&name),
    }
}

/// Reads the settings of a request.
pub(super) fn decode_settings(root: Node<'_>) -> Result<Settings, DecodeError> {
    let limit = number(root, "max_completion_tokens")?;
    Ok(Settings {
        max_output_tokens: limit.or(number(root, "max_tokens")?),
        temperature: number(root, "temperature")?,
        top_p: number(root, "top_p")?,
        top_k: number(root, "top_k")?,
        presence_penalty: number(root, "presence_penalty")?,
        frequency_penalty: number(root, "frequency_penalty")?,
        seed: number(root, "seed")?,
        top_logprobs: decode_logprobs(root)?,
        stop: decode_stop(root)?,
        parallel_calls: decode_parallel(root)?,
        max_tool_calls: None,
        format: decode_format(root)?,
        verbosity: text(root, "verbosity")?,
        reasoning: decode_reasoning(root)?,
        metadata: decode_metadata(root)?,
        user: text(root, "user")?.or(text(root, "safety_identifier")?),
        cache_key: text(root, "prompt_cache_key")?,
        service_tier: text(root, "service_tier")?,
        store: truth(root, "store")?,
    })
}

fn number(root: Node<'_>, name: &str) -> Result<Option<Number>, DecodeError> {
    let Some(value) = given(root, name) else { return Ok(None) };
    match value.kind() {
        Kind::Number => Ok(Some(value.raw_text())),
        kind => Err(value.error(format!("must be a number, not {kind}"))),
    }
}

fn text(root: Node<'_>, name: &str) -> Result<Option<Text>, DecodeError> {
    given(root, name).map(|value| value.expect_text()).transpose()
}

fn truth(root: Node<'_>, name: &str) -> Result<Option<bool>, DecodeError> {
    given(root, name).map(|value| value.expect_bool()).transpose()
}

fn decode_logprobs(root: Node<'_>) -> Result<Option<Number>, DecodeError> {
    let asked = truth(root, "logprobs")?.unwrap_or(false);
    Ok(number(root, "top_logprobs")?.or(asked.then(|| Text::from_static("0"))))
}

fn decode_stop(root: Node<'_>) -> Result<Vec<Text>, DecodeError> {
    match given(root, "stop") {
        None => Ok(Vec::new()),
        Some(stop) if stop.kind() == Kind::String => Ok(vec![stop.expect_text()?]),
        Some(stop) => stop.expect_array()?.items().map(|stop| stop.expect_text()).collect(),
    }
}

fn decode_parallel(root: Node<'_>) -> Result<Option<bool>, DecodeError> {
    // A client of the time before tools has nowhere to put a second call.
    let of_old = given(root, "functions").is_some() && given(root, "tools").is_none();
    Ok(truth(root, "parallel_tool_calls")?.or(of_old.then_some(false)))
}

fn decode_format(root: Node<'_>) -> Result<Option<Format>, DecodeError> {
    let Some(format) = given(root, "response_format") else { return Ok(None) };
    format.expect_object()?;
    Ok(match text(format, "type")?.as_deref() {
        Some("text") => Some(Format::Text),
        Some("json_object") => Some(Format::JsonObject),
        Some("json_schema") => {
            let named = format.expect_field("json_schema")?;
            let Some(schema) = given(named, "schema") else { return Ok(Some(Format::JsonObject)) };
            Some(Format::JsonSchema {
                name: text(named, "name")?,
                description: text(named, "description")?,
                schema: schema.expect_object()?.raw_text(),
                strict: truth(named, "strict")?,
            })
        }
        _ => None,
    })
}

/// Reads the request for reasoning: OpenAI's field, and the object that OpenRouter has for it.
fn decode_reasoning(root: Node<'_>) -> Result<Option<Reasoning>, DecodeError> {
    let object = given(root, "reasoning").filter(|reasoning| reasoning.kind() == Kind::Object);
    let of_object = |name| object.and_then(|reasoning| filled(reasoning, name));
    let budget = object.and_then(|reasoning| reasoning.field("max_tokens"));
    let reasoning = Reasoning {
        effort: text(root, "reasoning_effort")?.or_else(|| of_object("effort")),
        budget: budget.filter(|budget| budget.kind() == Kind::Number).map(|budget| budget.raw_text()),
        summary: of_object("summary"),
    };
    Ok(Some(reasoning).filter(|reasoning| *reasoning != Reasoning::default()))
}

fn decode_metadata(root: Node<'_>) -> Result<Option<Text>, DecodeError> {
    let Some(metadata) = given(root, "metadata") else { return Ok(None) };
    Ok(Some(metadata.expect_object()?)
        .filter(|metadata| !metadata.is_empty())
        .map(|metadata| metadata.raw_text()))
}

/// Writes the settings of a request that came in another dialect.
pub(super) fn write_settings(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let words = vocabulary(prompt.rules);
    let mut out = Fields { writer, words, report };
    let settings = &prompt.ask.settings;
    out.number(words.token_limit, settings.max_output_tokens.as_ref());
    out.number("temperature", settings.temperature.as_ref());
    out.number("top_p", settings.top_p.as_ref());
    out.number("top_k", settings.top_k.as_ref());
    out.number("presence_penalty", settings.presence_penalty.as_ref());
    out.number("frequency_penalty", settings.frequency_penalty.as_ref());
    out.number(words.seed, settings.seed.as_ref());
    out.logprobs(settings.top_logprobs.as_ref());
    out.stop(&settings.stop);
    if let Some(parallel) = settings.parallel_calls.filter(|_| !prompt.tools.is_empty()) {
        out.writer.field_bool("parallel_tool_calls", parallel);
    }
    if settings.max_tool_calls.is_some() {
        out.lost("max_tool_calls", "chat has no limit of tool calls");
    }
    out.format(settings.format.as_ref());
    out.text("verbosity", settings.verbosity.as_ref());
    if !prompt.without_reasoning {
        out.reasoning(settings.reasoning.as_ref(), prompt.rules);
    }
    out.number("metadata", settings.metadata.as_ref());
    out.text("user", settings.user.as_ref());
    out.text("prompt_cache_key", settings.cache_key.as_ref());
    out.service_tier(prompt.ask.dialect, settings.service_tier.as_ref());
    out.store(settings.store);
    if prompt.ask.stream {
        out.stream();
    }
}

struct Fields<'w> {
    writer: &'w mut Writer,
    words: &'static Vocabulary,
    report: &'w mut Report,
}

impl Fields<'_> {
    fn lost(&mut self, name: &'static str, reason: &'static str) {
        self.report.field(Action::Dropped, name, reason);
    }

    /// Says whether the target knows the field; reports it if not.
    fn takes(&mut self, name: &'static str) -> bool {
        let known = !self.words.unknown.contains(&name);
        if !known {
            self.lost(name, "the target has no such setting");
        }
        known
    }

    /// Writes a field whose text is JSON already.
    fn number(&mut self, name: &'static str, value: Option<&Text>) {
        if let Some(value) = value
            && self.takes(name)
        {
            self.writer.field_raw(name, value);
        }
    }

    fn text(&mut self, name: &'static str, value: Option<&Text>) {
        if let Some(value) = value
            && self.takes(name)
        {
            self.writer.field_str(name, value);
        }
    }

    fn logprobs(&mut self, count: Option<&Number>) {
        if count.is_some() && self.takes("top_logprobs") {
            self.writer.field_bool("logprobs", true);
            self.number("top_logprobs", count);
        }
    }

    fn stop(&mut self, stop: &[Text]) {
        if stop.is_empty() {
            return;
        }
        // More than four are refused, and a request without some of them beats no request.
        const STOPS_MAX: usize = 4;
        if stop.len() > STOPS_MAX {
            self.lost("stop", "only the first four sequences are sent");
        }
        self.writer.key("stop");
        self.writer.begin_array();
        stop.iter().take(STOPS_MAX).for_each(|stop| self.writer.string(stop));
        self.writer.end_array();
    }

    fn format(&mut self, format: Option<&Format>) {
        // Free text is what comes anyway, and not every server knows the field.
        let Some(format) = format.filter(|format| **format != Format::Text) else { return };
        self.writer.key("response_format");
        self.writer.begin_object();
        if let Format::JsonSchema { name, description, schema, strict } = format {
            self.writer.field_str("type", "json_schema");
            self.writer.key("json_schema");
            self.writer.begin_object();
            if name.is_none() {
                let reason = "chat wants a name for the schema; it is called `response`";
                self.report.field(Action::Translated, "format", reason);
            }
            self.writer.field_str("name", name.as_ref().map_or("response", Text::as_str));
            if let Some(description) = description {
                self.writer.field_str("description", description);
            }
            self.writer.field_raw("schema", schema);
            if let Some(strict) = strict {
                self.writer.field_bool("strict", *strict);
            }
            self.writer.end_object();
        } else {
            self.writer.field_str("type", "json_object");
        }
        self.writer.end_object();
    }

    fn reasoning(&mut self, reasoning: Option<&Reasoning>, rules: &Rules) {
        let Some(reasoning) = reasoning else { return };
        if reasoning.summary.is_some() {
            self.lost("reasoning.summary", "chat shows no summaries of reasoning");
        }
        // DeepSeek and others have no effort that means none; their switch is a field of its own.
        if reasoning.is_off() && !rules.effort.has_none {
            return self.writer.field_raw("thinking", r#"{"type":"disabled"}"#);
        }
        let effort = match (&reasoning.effort, &reasoning.budget) {
            (Some(effort), _) if effort == "max" && !rules.effort.has_max => {
                self.report.field(
                    Action::Translated,
                    "reasoning.effort",
                    "the highest effort is `xhigh` here",
                );
                "xhigh"
            }
            (Some(effort), _) => effort.as_str(),
            (None, Some(budget)) => {
                let effort = effort_of(budget);
                let reason = format!("a budget of {budget} tokens is sent as the effort `{effort}`");
                self.report.field(Action::Translated, "reasoning.budget", reason);
                effort
            }
            (None, None) => return,
        };
        self.writer.field_str("reasoning_effort", effort);
    }

    fn service_tier(&mut self, from: Dialect, tier: Option<&Text>) {
        // The one tier that Messages has besides `auto`.
        let standard = Text::from_static("default");
        let is_standard = from == Dialect::Messages && tier.is_some_and(|tier| tier == "standard_only");
        self.text("service_tier", if is_standard { Some(&standard) } else { tier });
    }

    fn store(&mut self, store: Option<bool>) {
        match store {
            // A server that cannot store does what was asked.
            Some(false) if self.words.unknown.contains(&"store") => {}
            Some(store) if self.takes("store") => self.writer.field_bool("store", store),
            _ => {}
        }
    }

    fn stream(&mut self) {
        self.writer.field_bool("stream", true);
        // Without being asked most servers do not say what a streamed answer cost.
        if !self.words.unknown.contains(&"stream_options") {
            self.writer.field_raw("stream_options", r#"{"include_usage":true}"#);
        }
    }
}

fn effort_of(budget: &Number) -> &'static str {
    let budget: f64 = budget.parse().unwrap_or(f64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "the limits are small")]
    let fits = |(limit, _): &&(u64, &'static str)| budget <= *limit as f64;
    EFFORT_BUDGETS.iter().find(fits).map_or("high", |(_, effort)| effort)
}

/// Says whether the client wants to be told at the end of a stream what the answer cost.
pub(super) fn wants_usage(fields: &[Extra]) -> bool {
    let options = fields.iter().find(|field| field.name == "stream_options");
    options.and_then(|options| crate::json::Document::parse(options.value.as_str()).ok()).is_some_and(
        |options| options.root().field("include_usage").and_then(|wanted| wanted.as_bool()) == Some(true),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn decode(body: &str) -> Result<Settings, DecodeError> {
        decode_settings(Document::parse(body).unwrap().root())
    }

    #[test]
    fn the_newer_name_of_the_token_limit_wins() {
        let settings = decode(r#"{"max_tokens":1,"max_completion_tokens":2,"temperature":1.10}"#).unwrap();
        assert_eq!(settings.max_output_tokens.as_deref(), Some("2"));
        assert_eq!(settings.temperature.as_deref(), Some("1.10"));
    }

    #[test]
    fn a_format_of_a_wrong_type_is_refused_by_its_path() {
        let path = |format: &str| decode(&format!(r#"{{"response_format":{format}}}"#)).unwrap_err().path;
        assert_eq!(path("[]"), "response_format");
        assert_eq!(path(r#"{"type":7}"#), "response_format.type");
    }

    #[test]
    fn a_stop_is_a_string_or_several() {
        assert_eq!(decode(r#"{"stop":"END"}"#).unwrap().stop, ["END"]);
        assert_eq!(decode(r#"{"stop":["a","b"]}"#).unwrap().stop, ["a", "b"]);
        assert!(decode(r#"{"stop":null}"#).unwrap().stop.is_empty());
        assert_eq!(decode(r#"{"stop":7}"#).unwrap_err().path, "stop");
    }

    #[test]
    fn clients_of_the_time_before_tools_get_one_call_at_a_time() {
        assert_eq!(decode(r#"{"functions":[{}]}"#).unwrap().parallel_calls, Some(false));
        assert_eq!(decode(r#"{"tools":[]}"#).unwrap().parallel_calls, None);
    }

    #[test]
    fn budgets_become_efforts() {
        let efforts = ["1024", "4096", "4097", "16384", "31999", "odd"].map(|text| effort_of(&text.into()));
        assert_eq!(efforts, ["low", "low", "medium", "medium", "high", "high"]);
    }

    #[test]
    fn reasoning_is_asked_for_in_two_ways() {
        let of = |body| decode(body).unwrap().reasoning.unwrap();
        assert_eq!(of(r#"{"reasoning_effort":"high"}"#).effort.as_deref(), Some("high"));
        let object = of(r#"{"reasoning":{"effort":"low","max_tokens":2000,"exclude":true}}"#);
        assert_eq!((object.effort.as_deref(), object.budget.as_deref()), (Some("low"), Some("2000")));
        assert_eq!(decode(r#"{"reasoning":{"enabled":true}}"#).unwrap().reasoning, None);
    }
}
