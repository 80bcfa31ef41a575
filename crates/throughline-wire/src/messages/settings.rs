//! Everything that shapes the answer, both ways: sampling, stop sequences, format, identity.
//!
//! A request that stays in this dialect keeps its fields as they came, and nothing here is asked. One from
//! another dialect is written field by field, and every setting that has no counterpart is reported.

use super::generation::Generation;
use super::kept::{extras, given, given_number, given_text, is_significant};
use super::reasoning::{self, Plan};
use crate::json::{DecodeError, Document, Node, Writer};
use throughline_core::{Action, Format, Number, Prompt, Report, Settings, Text};

/// The fields that the canonical model expresses.
const KNOWN: [&str; 16] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "thinking",
    "output_config",
    "output_format",
    "metadata",
    "service_tier",
    "stream",
];

/// The longest `metadata.user_id`.
const USER_MAX: usize = 256;

/// Reads the settings of a request.
pub(super) fn decode(root: Node<'_>) -> Result<Settings, DecodeError> {
    let metadata = given(root, "metadata").map(|metadata| metadata.expect_object()).transpose()?;
    Ok(Settings {
        max_output_tokens: given_number(root, "max_tokens")?,
        temperature: given_number(root, "temperature")?,
        top_p: given_number(root, "top_p")?,
        top_k: given_number(root, "top_k")?,
        stop: decode_stop(root)?,
        format: decode_format(root)?,
        reasoning: reasoning::decode(root)?,
        user: metadata.map(|metadata| given_text(metadata, "user_id")).transpose()?.flatten(),
        service_tier: given_text(root, "service_tier")?,
        ..Settings::default()
    })
}

fn decode_stop(root: Node<'_>) -> Result<Vec<Text>, DecodeError> {
    let Some(stop) = given(root, "stop_sequences") else { return Ok(Vec::new()) };
    stop.expect_array()?.items().map(|sequence| sequence.expect_text()).collect()
}

/// Reads the form of the answer: `output_config.format`, or `output_format` as it was called in the beta.
fn decode_format(root: Node<'_>) -> Result<Option<Format>, DecodeError> {
    let config = given(root, "output_config").and_then(|config| given(config, "format"));
    let Some(format) = config.or_else(|| given(root, "output_format")) else { return Ok(None) };
    if format.expect_field("type")?.expect_str()? != "json_schema" {
        return Ok(None);
    }
    let schema = format.expect_field("schema")?.expect_object()?.raw_text();
    Ok(Some(Format::JsonSchema { name: None, description: None, schema, strict: Some(true) }))
}

/// Returns the names of the fields that say something the canonical model does not express.
pub(super) fn foreign_fields(root: Node<'_>) -> Vec<Text> {
    let lossy = [("output_config", &["effort", "format"][..]), ("metadata", &["user_id"][..])];
    let partly = lossy
        .into_iter()
        .filter(|(name, known)| given(root, name).is_some_and(|object| !extras(object, known).is_empty()));
    let unknown = root.fields().filter(|(name, value)| !KNOWN.contains(&&**name) && is_significant(*value));
    let mut names: Vec<Text> = unknown.map(|(name, _)| Text::from(&*name)).collect();
    names.extend(partly.map(|(name, _)| Text::from_static(name)));
    names
}

/// Writes the settings of a request that came in another dialect.
pub(super) struct SettingsWriter<'a> {
    /// The request.
    pub(super) prompt: &'a Prompt<'a>,
    /// What the model takes.
    pub(super) model: Generation,
    /// How it is asked to think.
    pub(super) plan: Plan,
}

impl SettingsWriter<'_> {
    /// Writes all of them, but for `max_tokens`.
    pub(super) fn write(&self, writer: &mut Writer, report: &mut Report) {
        let settings = &self.prompt.ask.settings;
        self.write_sampling(writer, report);
        self.write_stop(writer, report);
        self.plan.write_thinking(writer);
        self.write_output(writer, report);
        self.write_identity(writer, report);
        self.write_tier(writer, report);
        if self.prompt.ask.stream {
            writer.field_bool("stream", true);
        }
        report_inexpressible(settings, report);
    }

    fn write_sampling(&self, writer: &mut Writer, report: &mut Report) {
        let settings = &self.prompt.ask.settings;
        let refused = match (self.model.samples, self.plan.thinks()) {
            (false, _) => Some("this model takes no sampling parameters"),
            (true, true) => Some("it cannot be set while the model thinks"),
            (true, false) => None,
        };
        if let Some(reason) = refused {
            let given = [&settings.temperature, &settings.top_p, &settings.top_k];
            for (name, _) in
                ["temperature", "top_p", "top_k"].into_iter().zip(given).filter(|(_, set)| set.is_some())
            {
                report.field(Action::Dropped, name, reason);
            }
            return;
        }
        if let Some(temperature) = &settings.temperature {
            writer.field_raw("temperature", &clamped(temperature, "temperature", report));
        }
        match &settings.top_p {
            Some(_) if self.model.one_sampler && settings.temperature.is_some() => {
                report.field(Action::Dropped, "top_p", "this model takes either `temperature` or `top_p`");
            }
            Some(top_p) => writer.field_raw("top_p", &clamped(top_p, "top_p", report)),
            None => {}
        }
        if let Some(top_k) = &settings.top_k {
            writer.field_raw("top_k", top_k);
        }
    }

    fn write_stop(&self, writer: &mut Writer, report: &mut Report) {
        let stop = &self.prompt.ask.settings.stop;
        let mut visible = stop.iter().filter(|sequence| !sequence.trim().is_empty()).peekable();
        if visible.clone().count() < stop.len() {
            report.field(Action::Dropped, "stop", "a stop sequence of nothing but white space is refused");
        }
        if visible.peek().is_none() {
            return;
        }
        writer.key("stop_sequences");
        writer.begin_array();
        visible.for_each(|sequence| writer.string(sequence));
        writer.end_array();
    }

    /// Writes `output_config`: the effort, and the schema of the answer.
    fn write_output(&self, writer: &mut Writer, report: &mut Report) {
        let schema = match &self.prompt.ask.settings.format {
            Some(Format::JsonSchema { schema, description, .. }) => {
                if description.is_some() {
                    report.field(
                        Action::Dropped,
                        "format.description",
                        "a schema has no description of its own here",
                    );
                }
                Some(schema)
            }
            Some(Format::JsonObject) => {
                report.field(Action::Dropped, "format", "JSON without a schema cannot be asked for");
                None
            }
            Some(Format::Text) | None => None,
        };
        if schema.is_none() && self.plan.effort.is_none() {
            return;
        }
        writer.key("output_config");
        writer.begin_object();
        if let Some(effort) = self.plan.effort {
            writer.field_str("effort", effort);
        }
        if let Some(schema) = schema {
            writer.key("format");
            writer.begin_object();
            writer.field_str("type", "json_schema");
            writer.field_raw("schema", schema);
            writer.end_object();
        }
        writer.end_object();
    }

    fn write_identity(&self, writer: &mut Writer, report: &mut Report) {
        let Some(user) = self.prompt.ask.settings.user.as_ref().filter(|user| !user.is_empty()) else {
            return;
        };
        if user.chars().count() > USER_MAX {
            return report.field(Action::Dropped, "user", format!("it is longer than {USER_MAX} characters"));
        }
        writer.key("metadata");
        writer.begin_object();
        writer.field_str("user_id", user);
        writer.end_object();
    }

    fn write_tier(&self, writer: &mut Writer, report: &mut Report) {
        let Some(tier) = &self.prompt.ask.settings.service_tier else { return };
        match tier.as_str() {
            "auto" => writer.field_str("service_tier", "auto"),
            "default" | "standard" | "standard_only" => writer.field_str("service_tier", "standard_only"),
            _ => report.field(
                Action::Dropped,
                "service_tier",
                format!("`{tier}` has no counterpart in messages"),
            ),
        }
    }
}

/// Returns a number between zero and one; other dialects let the temperature go to two.
fn clamped(number: &Number, name: &'static str, report: &mut Report) -> Text {
    let bound = match number.parse::<f64>() {
        Ok(value) if value > 1.0 => "1",
        Ok(value) if value < 0.0 => "0",
        _ => return number.clone(),
    };
    report.field(Action::Repaired, name, format!("{number} is out of range, and was set to {bound}"));
    Text::from_static(bound)
}

/// Reports the settings that have no counterpart, unless they ask for nothing.
fn report_inexpressible(settings: &Settings, report: &mut Report) {
    let counts = |number: &Option<Number>| number.as_ref().is_some_and(|number| number.parse() != Ok(0.0));
    let notes = |metadata: &Option<Text>| {
        let document = metadata.as_ref().and_then(|metadata| Document::parse(metadata.as_str()).ok());
        document.is_some_and(|document| is_significant(document.root()))
    };
    let inexpressible = [
        ("presence_penalty", counts(&settings.presence_penalty)),
        ("frequency_penalty", counts(&settings.frequency_penalty)),
        ("seed", settings.seed.is_some()),
        ("top_logprobs", counts(&settings.top_logprobs)),
        ("max_tool_calls", settings.max_tool_calls.is_some()),
        ("verbosity", settings.verbosity.is_some()),
        ("metadata", notes(&settings.metadata)),
        ("prompt_cache_key", settings.cache_key.is_some()),
        ("store", settings.store == Some(true)),
    ];
    for (name, _) in inexpressible.into_iter().filter(|(_, says_something)| *says_something) {
        report.field(Action::Dropped, name, "no counterpart in messages");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Reasoning;

    fn document(text: &str) -> Document {
        Document::parse(text).unwrap()
    }

    #[test]
    fn the_three_forms_of_thinking_are_read() {
        let read = |text: &str| decode(document(text).root()).unwrap().reasoning;
        let budget = read(r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#).unwrap();
        assert_eq!(budget, Reasoning { budget: Some("2048".into()), ..Reasoning::default() });
        assert_eq!(read(r#"{"thinking":{"type":"adaptive"}}"#), Some(Reasoning::default()));
        assert!(read(r#"{"thinking":{"type":"disabled"}}"#).unwrap().is_off());
        let effort = read(r#"{"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}}"#).unwrap();
        assert_eq!(effort.effort, Some("max".into()));
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn the_format_is_read_under_both_its_names() {
        for text in [
            r#"{"output_config":{"format":{"type":"json_schema","schema":{"a": 1}}}}"#,
            r#"{"output_format":{"type":"json_schema","schema":{"a": 1}}}"#,
        ] {
            let format = decode(document(text).root()).unwrap().format;
            assert!(matches!(format, Some(Format::JsonSchema { schema, .. }) if schema == r#"{"a": 1}"#));
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        let settings = decode(document(r#"{"temperature":0.70,"max_tokens":1}"#).root()).unwrap();
        assert_eq!(settings.temperature, Some("0.70".into()));
    }

    #[test]
    fn a_known_field_of_the_wrong_type_is_named() {
        let error = decode(document(r#"{"stop_sequences":["a",1]}"#).root()).unwrap_err();
        assert_eq!(error.path, "stop_sequences[1]");
        assert!(decode(document(r#"{"temperature":"hot"}"#).root()).is_err());
        let error = decode(document(r#"{"output_config":{"format":{"type":7}}}"#).root()).unwrap_err();
        assert_eq!(error.path, "output_config.format.type");
    }

    #[test]
    fn fields_without_a_counterpart_are_named_unless_they_say_nothing() {
        let document = document(
            r#"{"model":"m","container":null,"betas":[],"speed":"fast","output_config":{"effort":"low","task_budget":{"total":1}}}"#,
        );
        assert_eq!(foreign_fields(document.root()), ["speed", "output_config"]);
    }
}
