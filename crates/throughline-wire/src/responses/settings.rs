//! Settings, both ways: sampling, limits, output format, reasoning, and who asks.
//!
//! Read from the client's fields, and written only for requests that came in another dialect; those of this
//! dialect go out as they came.

use super::fields;
use crate::json::{DecodeError, Kind, Node, Writer};
use throughline_core::{Action, Dialect, Format, Prompt, Reasoning, Report, Settings, Text};

/// The least that `max_output_tokens` may be.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// The most characters of `safety_identifier` and `prompt_cache_key`.
const MAX_KEY_LENGTH: usize = 64;

/// Reads the settings; the names of sub-fields that have no canonical word are added to `extras`.
pub(super) fn decode_settings(root: Node<'_>, extras: &mut Vec<Text>) -> Result<Settings, DecodeError> {
    let safety_identifier = fields::text(root, "safety_identifier")?;
    let user = fields::text(root, "user")?;
    if safety_identifier.is_some() && user.is_some() && user != safety_identifier {
        extras.push(Text::from_static("user"));
    }
    let (format, verbosity) = decode_text(root, extras)?;
    Ok(Settings {
        max_output_tokens: fields::number(root, "max_output_tokens")?,
        temperature: fields::number(root, "temperature")?,
        top_p: fields::number(root, "top_p")?,
        top_k: lenient_number(root, "top_k", extras),
        presence_penalty: fields::number(root, "presence_penalty")?,
        frequency_penalty: fields::number(root, "frequency_penalty")?,
        seed: lenient_number(root, "seed", extras),
        top_logprobs: fields::number(root, "top_logprobs")?,
        stop: decode_stop(root, extras),
        parallel_calls: fields::flag(root, "parallel_tool_calls")?,
        max_tool_calls: fields::number(root, "max_tool_calls")?,
        format,
        verbosity,
        reasoning: decode_reasoning(root, extras)?,
        metadata: match fields::given(root, "metadata") {
            Some(metadata) => Some(metadata.expect_object()?.raw_text()),
            None => None,
        },
        user: safety_identifier.or(user),
        cache_key: fields::text(root, "prompt_cache_key")?,
        service_tier: fields::text(root, "service_tier")?,
        store: fields::flag(root, "store")?,
    })
}

/// Reads a setting that the specification does not have but local servers and their clients do.
fn lenient_number(root: Node<'_>, name: &'static str, extras: &mut Vec<Text>) -> Option<Text> {
    let value = fields::given(root, name)?;
    if value.kind() != Kind::Number {
        extras.push(Text::from_static(name));
        return None;
    }
    Some(value.raw_text())
}

/// Reads stop sequences, which the specification does not have but local servers and their clients do.
fn decode_stop(root: Node<'_>, extras: &mut Vec<Text>) -> Vec<Text> {
    let Some(stop) = fields::given(root, "stop") else { return Vec::new() };
    let sequences = match stop.as_text() {
        Some(sequence) => Some(vec![sequence]),
        None if stop.kind() == Kind::Array => stop.items().map(|item| item.as_text()).collect(),
        None => None,
    };
    sequences.unwrap_or_else(|| {
        extras.push(Text::from_static("stop"));
        Vec::new()
    })
}

fn decode_text(
    root: Node<'_>,
    extras: &mut Vec<Text>,
) -> Result<(Option<Format>, Option<Text>), DecodeError> {
    let Some(text) = fields::given(root, "text") else { return Ok((None, None)) };
    note_unknown(text.expect_object()?, "text", &["format", "verbosity"], extras);
    let format = match fields::given(text, "format") {
        Some(format) => decode_format(format, extras)?,
        None => None,
    };
    Ok((format, fields::text(text, "verbosity")?))
}

fn decode_format(format: Node<'_>, extras: &mut Vec<Text>) -> Result<Option<Format>, DecodeError> {
    let tag = fields::text(format.expect_object()?, "type")?.unwrap_or_default();
    Ok(match tag.as_str() {
        "text" => Some(Format::Text),
        "json_object" => Some(Format::JsonObject),
        "json_schema" => Some(Format::JsonSchema {
            name: fields::text(format, "name")?,
            description: fields::text(format, "description")?,
            schema: format.expect_field("schema")?.expect_object()?.raw_text(),
            strict: fields::flag(format, "strict")?,
        }),
        _ => {
            extras.push(Text::from_static("text.format"));
            None
        }
    })
}

fn decode_reasoning(root: Node<'_>, extras: &mut Vec<Text>) -> Result<Option<Reasoning>, DecodeError> {
    let Some(node) = fields::given(root, "reasoning") else { return Ok(None) };
    let known = ["effort", "summary", "generate_summary"];
    note_unknown(node.expect_object()?, "reasoning", &known, extras);
    let effort = fields::text(node, "effort")?;
    // `generate_summary` is what `summary` was called before.
    let summary = fields::text(node, "summary")?.or(fields::text(node, "generate_summary")?);
    let asked = effort.is_some() || summary.is_some();
    Ok(asked.then_some(Reasoning { effort, budget: None, summary }))
}

fn note_unknown(node: Node<'_>, field: &str, known: &[&str], extras: &mut Vec<Text>) {
    let unknown =
        node.fields().filter(|(name, value)| !known.contains(&&**name) && fields::is_significant(*value));
    extras.extend(unknown.map(|(name, _)| Text::from(format!("{field}.{name}"))));
}

/// Writes the settings of a request that came in another dialect.
pub(super) fn write_settings(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let settings = &prompt.ask.settings;
    write_max_output_tokens(writer, settings, report);
    let numbers = [
        ("temperature", &settings.temperature),
        ("top_p", &settings.top_p),
        ("presence_penalty", &settings.presence_penalty),
        ("frequency_penalty", &settings.frequency_penalty),
        ("top_logprobs", &settings.top_logprobs),
        ("max_tool_calls", &settings.max_tool_calls),
        ("metadata", &settings.metadata),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            writer.field_raw(name, value);
        }
    }
    if let Some(parallel) = settings.parallel_calls {
        writer.field_bool("parallel_tool_calls", parallel);
    }
    write_text(writer, settings);
    write_reasoning(writer, prompt, report);
    write_identity(writer, settings, report);
    write_service_tier(writer, settings, report);
    // A client of another dialect will never refer to a stored response.
    writer.field_bool("store", settings.store.unwrap_or(false));
    report_unsupported(prompt, report);
}

fn write_max_output_tokens(writer: &mut Writer, settings: &Settings, report: &mut Report) {
    let Some(limit) = &settings.max_output_tokens else { return };
    if limit.parse().is_ok_and(|tokens: u64| tokens < MIN_OUTPUT_TOKENS) {
        report.field(Action::Repaired, "max_output_tokens", "raised to 16, the least the backend accepts");
        return writer.field_uint("max_output_tokens", MIN_OUTPUT_TOKENS);
    }
    writer.field_raw("max_output_tokens", limit);
}

fn write_text(writer: &mut Writer, settings: &Settings) {
    if settings.format.is_none() && settings.verbosity.is_none() {
        return;
    }
    writer.key("text");
    writer.begin_object();
    if let Some(format) = &settings.format {
        writer.key("format");
        write_format(writer, format, Gaps::Omitted);
    }
    if let Some(verbosity) = &settings.verbosity {
        writer.field_str("verbosity", verbosity);
    }
    writer.end_object();
}

/// What becomes of a field that was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gaps {
    /// It is left out, as in a request.
    Omitted,
    /// It is `null`, as in a response, which must state every field.
    Stated,
}

/// Writes an output format.
pub(super) fn write_format(writer: &mut Writer, format: &Format, gaps: Gaps) {
    writer.begin_object();
    match format {
        Format::Text => writer.field_str("type", "text"),
        Format::JsonObject => writer.field_str("type", "json_object"),
        Format::JsonSchema { name, description, schema, strict } => {
            writer.field_str("type", "json_schema");
            // Required, though other dialects know schemas without a name.
            writer.field_str("name", name.as_deref().unwrap_or("answer"));
            match (description, gaps) {
                (Some(description), _) => writer.field_str("description", description),
                (None, Gaps::Stated) => writer.field_null("description"),
                (None, Gaps::Omitted) => {}
            }
            writer.field_raw("schema", schema);
            writer.field_bool("strict", strict.unwrap_or(false));
        }
    }
    writer.end_object();
}

/// Writes the request for reasoning, and asks for the sealed form of it, without which it cannot come back.
fn write_reasoning(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let mut include = Vec::new();
    if let Some(reasoning) = &prompt.ask.settings.reasoning
        && !prompt.without_reasoning
    {
        writer.key("reasoning");
        writer.begin_object();
        if let Some(effort) = effort_of(reasoning, report) {
            writer.field_str("effort", &effort);
        }
        if let Some(summary) = &reasoning.summary {
            writer.field_str("summary", summary);
        }
        writer.end_object();
        if !reasoning.is_off() {
            include.push("reasoning.encrypted_content");
        }
    }
    if prompt.ask.settings.top_logprobs.is_some() {
        include.push("message.output_text.logprobs");
    }
    if !include.is_empty() {
        writer.key("include");
        writer.begin_array();
        include.iter().for_each(|name| writer.string(name));
        writer.end_array();
    }
}

/// Returns the effort to ask for; a budget of tokens is put into words.
fn effort_of(reasoning: &Reasoning, report: &mut Report) -> Option<Text> {
    match (&reasoning.effort, &reasoning.budget) {
        (Some(effort), _) if effort == "max" => {
            report.field(Action::Translated, "reasoning", "effort `max` is called `xhigh` here");
            Some(Text::from_static("xhigh"))
        }
        (Some(effort), _) => Some(effort.clone()),
        (None, Some(budget)) => {
            let effort = match budget.parse() {
                Ok(0..=4_096_u64) => "low",
                Ok(4_097..=16_384) => "medium",
                _ => "high",
            };
            let reason = format!("a budget of {budget} tokens is asked for as effort `{effort}`");
            report.field(Action::Translated, "reasoning", reason);
            Some(Text::from_static(effort))
        }
        (None, None) => None,
    }
}

fn write_identity(writer: &mut Writer, settings: &Settings, report: &mut Report) {
    match &settings.user {
        Some(user) if user.chars().count() <= MAX_KEY_LENGTH => writer.field_str("safety_identifier", user),
        // Cut short, two users could become one.
        Some(_) => report.field(Action::Dropped, "user", "longer than the 64 characters that are accepted"),
        None => {}
    }
    if let Some(key) = &settings.cache_key {
        // Two conversations with one key merely share a cache, so here a cut does no harm.
        let end = key.char_indices().nth(MAX_KEY_LENGTH).map_or(key.len(), |(at, _)| at);
        if end < key.len() {
            report.field(Action::Shortened, "prompt_cache_key", "cut to the 64 characters that are accepted");
        }
        writer.field_str("prompt_cache_key", &key[..end]);
    }
}

fn write_service_tier(writer: &mut Writer, settings: &Settings, report: &mut Report) {
    match settings.service_tier.as_deref() {
        Some(tier @ ("auto" | "default" | "flex" | "priority" | "scale")) => {
            writer.field_str("service_tier", tier);
        }
        Some("standard_only") => {
            report.field(Action::Translated, "service_tier", "`standard_only` is called `default` here");
            writer.field_str("service_tier", "default");
        }
        Some(_) => report.field(Action::Dropped, "service_tier", "no such tier in responses"),
        None => {}
    }
}

fn report_unsupported(prompt: &Prompt<'_>, report: &mut Report) {
    let settings = &prompt.ask.settings;
    let stop = if prompt.ask.dialect == Dialect::Messages { "stop_sequences" } else { "stop" };
    let unsupported = [
        (stop, !settings.stop.is_empty()),
        ("top_k", settings.top_k.is_some()),
        ("seed", settings.seed.is_some()),
    ];
    for (name, _) in unsupported.into_iter().filter(|(_, given)| *given) {
        report.field(Action::Dropped, name, "no counterpart in responses");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn decode(json: &str) -> (Settings, Vec<Text>) {
        let mut extras = Vec::new();
        let settings = decode_settings(Document::parse(json).unwrap().root(), &mut extras).unwrap();
        (settings, extras)
    }

    #[test]
    fn numbers_keep_their_digits() {
        let (settings, _) = decode(r#"{"temperature":0.70,"top_p":1.0,"frequency_penalty":1e-1}"#);
        assert_eq!(settings.temperature.as_deref(), Some("0.70"));
        assert_eq!(settings.frequency_penalty.as_deref(), Some("1e-1"));
    }

    #[test]
    fn null_and_empty_mean_absent() {
        let (settings, extras) =
            decode(r#"{"reasoning":{},"text":{"format":null,"verbosity":null},"metadata":null,"stop":null}"#);
        assert_eq!(settings, Settings::default());
        assert!(extras.is_empty());
    }

    #[test]
    fn sub_fields_without_a_canonical_word_are_named() {
        let (settings, extras) = decode(
            r#"{"reasoning":{"effort":"high","context":"all_turns"},"text":{"format":{"type":"grammar"}},
                "user":"a","safety_identifier":"b","seed":"x"}"#,
        );
        assert_eq!(settings.user.as_deref(), Some("b"));
        assert_eq!(extras, ["user", "text.format", "seed", "reasoning.context"]);
    }

    #[test]
    fn a_budget_becomes_an_effort() {
        let effort = |budget: &str| {
            let reasoning = Reasoning { budget: Some(budget.into()), ..Reasoning::default() };
            effort_of(&reasoning, &mut Report::default()).unwrap()
        };
        assert_eq!(
            (effort("1024"), effort("10000"), effort("64000")),
            ("low".into(), "medium".into(), "high".into())
        );
    }
}
