//! The `THROUGHLINE_*` variables: one for each key that stands in no list, named after it.

use super::error::{ConfigError, Source, Sources, Warning};
use super::file::{ComposeSection, FileConfig};
use super::keys::{self, KEYS};
use super::source::Surroundings;
use super::values::{Ratio, from_text};
use crate::secret::SecretRef;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

const PREFIX: &str = "THROUGHLINE_";

/// Variables that no key stands for.
const OTHERS: [&str; 4] =
    ["THROUGHLINE_CONFIG", "THROUGHLINE_DATA", "THROUGHLINE_PAGER", "THROUGHLINE_COMPLETE"];

/// Overrides the file with what the variables say. An empty variable says nothing.
pub fn apply(
    surroundings: &dyn Surroundings,
    file: &mut FileConfig,
    sources: &mut Sources,
) -> Result<Vec<Warning>, Vec<ConfigError>> {
    let mut errors = Vec::new();
    for (key, name) in KEYS.iter().filter_map(|key| Some((key, keys::variable(key.path)?))) {
        let Some(text) = surroundings.variable(&name).filter(|text| !text.is_empty()) else { continue };
        let source = Source::Variable(name);
        match set(file, key.path, &text) {
            Ok(()) => drop(sources.insert(key.path.to_owned(), source)),
            Err(what) => errors.push(ConfigError::new(source, key.path, what)),
        }
    }
    if errors.is_empty() { Ok(misspelt(surroundings)) } else { Err(errors) }
}

fn set(file: &mut FileConfig, path: &str, text: &str) -> Result<(), String> {
    match path {
        "listen" => file.listen = Some(text.to_owned()),
        "active" => file.active = Some(text.to_owned()),
        "store.url" => file.store.url = Some(SecretRef::parse(text)),
        "store.on_failure" => file.store.on_failure = Some(word(text)?),
        "auth.keys" => {
            file.auth.keys = Some(text.split(',').map(|key| SecretRef::parse(key.trim())).collect());
        }
        "limits.body_bytes" => file.limits.body_bytes = Some(number(text)?),
        "limits.header_bytes" => file.limits.header_bytes = Some(number(text)?),
        "limits.answer_bytes" => file.limits.answer_bytes = Some(number(text)?),
        "limits.known_bytes" => file.limits.known_bytes = Some(number(text)?),
        "limits.concurrent_requests" => file.limits.concurrent_requests = Some(number(text)?),
        "limits.request_timeout" => file.limits.request_timeout = Some(word(text)?),
        "limits.memory_bytes" => file.limits.memory_bytes = Some(number(text)?),
        "limits.connections" => file.limits.connections = Some(number(text)?),
        "limits.header_timeout" => file.limits.header_timeout = Some(word(text)?),
        "limits.idle_timeout" => file.limits.idle_timeout = Some(word(text)?),
        "limits.write_timeout" => file.limits.write_timeout = Some(word(text)?),
        "history.recent_calls_to_keep" => file.history.recent_calls_to_keep = Some(number(text)?),
        "history.truncation_threshold" => file.history.truncation_threshold = Some(number(text)?),
        "history.budget" => file.history.budget = Some(word(text)?),
        "history.recall" => file.history.recall = Some(number(text)?),
        "history.policy" => file.history.policy = Some(word(text)?),
        "history.text_embed" => file.history.text_embed = Some(word(text)?),
        "handover.tool_context" => file.handover.tool_context = Some(number(text)?),
        "handover.mode" => file.handover.mode = Some(word(text)?),
        "handover.summary" => file.handover.summary = Some(word(text)?),
        "handover.summary_backend" => file.handover.summary_backend = Some(text.to_owned()),
        "handover.max_result_chars" => file.handover.max_result_chars = Some(number(text)?),
        "handover.max_tool_context_chars" => file.handover.max_tool_context_chars = Some(number(text)?),
        "telemetry.otlp_endpoint" => file.telemetry.otlp_endpoint = Some(text.to_owned()),
        "telemetry.otlp_headers" => file.telemetry.otlp_headers = pairs(text)?,
        "telemetry.service_name" => file.telemetry.service_name = Some(text.to_owned()),
        "privacy.secrets" => file.privacy.secrets = Some(number(text)?),
        "telemetry.sampling_ratio" => {
            file.telemetry.sampling_ratio = Some(Ratio::try_from(number::<f64>(text)?)?);
        }
        "tools.max_calls" => file.tools.max_calls = Some(number(text)?),
        "tools.approve" => file.tools.approve = Some(word(text)?),
        "tools.command_timeout" => file.tools.command_timeout = Some(word(text)?),
        "tools.readable" => file.tools.readable = Some(listed(text).map(Into::into).collect()),
        "tools.writable" => file.tools.writable = Some(listed(text).map(Into::into).collect()),
        "tools.network" => file.tools.network = Some(number(text)?),
        "tools.confinement" => file.tools.confinement = Some(word(text)?),
        "tools.pass" => file.tools.pass = Some(listed(text).map(str::to_owned).collect()),
        _ => return compose(&mut file.compose, path, text),
    }
    Ok(())
}

fn compose(section: &mut ComposeSection, path: &str, text: &str) -> Result<(), String> {
    match path {
        "compose.enabled" => section.enabled = Some(number(text)?),
        "compose.backend" => section.backend = Some(text.to_owned()),
        "compose.model" => section.model = Some(text.to_owned()),
        "compose.temperature" => section.temperature = Some(Ratio::try_from(number::<f64>(text)?)?),
        "compose.max_tokens" => section.max_tokens = Some(number(text)?),
        "compose.guidance" => section.guidance = Some(text.to_owned()),
        _ => return Err("this key cannot be set by a variable".to_owned()),
    }
    Ok(())
}

/// Reads a list with commas.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn word<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    from_text(text).map_err(|error| error.to_string())
}

/// Reads `NAME=SECRET,NAME=SECRET`; no error repeats a secret.
fn pairs(text: &str) -> Result<BTreeMap<String, SecretRef>, String> {
    let pair = |pair: &str| {
        let (name, secret) =
            pair.split_once('=').ok_or("expected NAME=SECRET, and a comma between several")?;
        Ok((name.trim().to_owned(), SecretRef::parse(secret.trim())))
    };
    text.split(',').map(pair).collect()
}

/// Reads what Rust itself can read: whole numbers, `true` and `false`.
fn number<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|error: T::Err| format!("`{text}`: {error}"))
}

/// Finds variables that look like ours but are not. They may be meant for something else, so no errors.
fn misspelt(surroundings: &dyn Surroundings) -> Vec<Warning> {
    let keys = KEYS.iter().filter_map(|key| keys::variable(key.path));
    let known: Vec<String> = keys.chain(OTHERS.map(str::to_owned)).collect();
    let suffixes: Vec<String> =
        known.iter().filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_lowercase).collect();
    let mut warnings = Vec::new();
    for name in surroundings.variable_names() {
        let Some(suffix) = name.strip_prefix(PREFIX).filter(|_| !known.contains(&name)) else { continue };
        if let Some(near) = keys::nearest(suffix, suffixes.iter().map(String::as_str)) {
            let what = format!("no such variable; did you mean {PREFIX}{}?", near.to_uppercase());
            warnings.push(Warning { source: Source::Variable(name), key: String::new(), what });
        }
    }
    warnings.sort_by_key(ToString::to_string);
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_outside_of_lists_can_be_set_by_its_variable() {
        for key in KEYS.iter().filter(|key| keys::variable(key.path).is_some()) {
            let accepted =
                ["1", "true", "reject", "default", "auto", "digest", "ask", "off", "plain", "name=value"]
                    .iter()
                    .any(|text| set(&mut FileConfig::default(), key.path, text).is_ok());
            assert!(accepted, "{}", key.path);
        }
    }
}
