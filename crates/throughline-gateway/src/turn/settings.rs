//! The settings that decide what a turn sends, written so that a replay can read them again.
//!
//! They are a configuration of their own: the backends without addresses and credentials, how history is shortened and
//! handed over. A secret is never among them.

use crate::config::Compose;
use crate::config::{Backend, Budget, Config, ConfigErrors, Flags, History, Surroundings, load};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the settings as a configuration file.
#[must_use]
pub fn written(config: &Config, compose: Option<&Compose>) -> String {
    let mut text = format!("active = {}\n", quoted(&config.active));
    let handover = &config.handover;
    let _ = write!(
        text,
        "[handover]\nmode = \"{}\"\nsummary = \"{}\"\ntool_context = {}\n",
        handover.mode.name(),
        handover.summary.name(),
        handover.tool_context,
    );
    let limits = [
        ("max_result_chars", handover.max_result_chars),
        ("max_tool_context_chars", handover.max_tool_context_chars),
    ];
    for (key, limit) in limits.iter().filter_map(|(key, limit)| Some((key, (*limit)?))) {
        let _ = writeln!(text, "{key} = {limit}");
    }
    if let Some(backend) = &handover.summary_backend {
        let _ = writeln!(text, "summary_backend = {}", quoted(backend));
    }
    if let Some(compose) = compose {
        write_compose(&mut text, compose);
    }
    config.backends.iter().for_each(|backend| write_backend(&mut text, backend));
    text
}

/// Reads settings that were written so.
///
/// # Errors
/// When this version cannot make sense of them.
pub fn read(text: &str) -> Result<Config, ConfigErrors> {
    let flags =
        Flags { config: Some(PathBuf::from("recorded.toml")), data: Some(PathBuf::new()), listen: None };
    load(&Recorded(text), &flags)
}

/// Surroundings in which there is nothing but what was recorded.
struct Recorded<'t>(&'t str);

impl Surroundings for Recorded<'_> {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, _: &Path) -> io::Result<String> {
        Ok(self.0.to_owned())
    }
}

fn write_backend(text: &mut String, backend: &Backend) {
    let _ = write!(
        text,
        "\n[[backends]]\nname = {}\ndialect = \"{}\"\nbase_url = \"http://127.0.0.1/v1\"\napi_key = \"none\"\n\
         native_tool_history = \"{}\"\nserver_state = \"{}\"\nreasoning = \"{}\"\nrules = {}\nfallback = [{}]\n",
        quoted(&backend.name),
        backend.dialect,
        backend.native_tool_history.name(),
        backend.server_state.name(),
        backend.reasoning.name(),
        quoted(&backend.rules.name),
        backend.fallback.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
    );
    if let Some(model) = &backend.default_model {
        let _ = writeln!(text, "default_model = {}", quoted(model));
    }
    if let Some(window) = backend.context_window {
        let _ = writeln!(text, "context_window = {window}");
    }
    let models = backend
        .models
        .iter()
        .map(|rule| format!("{} = {}", quoted(&rule.pattern), quoted(rule.sent.as_deref().unwrap_or("*"))));
    let _ = writeln!(text, "models = {{ {} }}", models.collect::<Vec<_>>().join(", "));
    write_history(text, &backend.history);
}

fn write_history(text: &mut String, history: &History) {
    let budget = match history.budget {
        Budget::Auto => "\"auto\"".to_owned(),
        Budget::Tokens(tokens) => tokens.to_string(),
    };
    let _ = write!(
        text,
        "[backends.history]\nbudget = {budget}\nrecall = {}\npolicy = \"{}\"\ntext_embed = \"{}\"\n",
        history.recall,
        history.policy.name(),
        history.text_embed.name(),
    );

    if let Some(calls) = history.recent_calls_to_keep {
        let _ = writeln!(text, "recent_calls_to_keep = {calls}");
    }
    if let Some(tokens) = history.truncation_threshold {
        let _ = writeln!(text, "truncation_threshold = {tokens}");
    }
    for rule in &history.rules {
        let tools = rule.tools.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let _ =
            writeln!(text, "[[backends.history.rules]]\ntools = [{tools}]\nkind = \"{}\"", rule.kind.name());
        if let Some(key) = &rule.key {
            let _ = writeln!(text, "key = {}", quoted(key));
        }
    }
}

fn write_compose(text: &mut String, compose: &Compose) {
    let _ = writeln!(text, "[compose]\nenabled = true\nguidance = {}", quoted(&compose.guidance));
    if let Some(backend) = &compose.backend {
        let _ = writeln!(text, "backend = {}", quoted(backend));
    }
    if let Some(model) = &compose.model {
        let _ = writeln!(text, "model = {}", quoted(model));
    }
    if let Some(temperature) = &compose.temperature {
        let _ = writeln!(text, "temperature = {temperature}");
    }
    if let Some(max_tokens) = compose.max_tokens {
        let _ = writeln!(text, "max_tokens = {max_tokens}");
    }
}

/// Returns a text as TOML writes one: its basic strings have the escapes of JSON.
fn quoted(text: &str) -> String {
    throughline_wire::json::quote(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = r#"
            active = "two"
            [compose]
            enabled = true
            backend = "one"
            temperature = 0.5
            max_tokens = 7
            guidance = "a \"b\"\n"
            [[backends]]
            name = "one"
            dialect = "messages"
            base_url = "https://example.com/v1"
            api_key = "sk-secret"
            models = { "*opus*" = "big", "small" = "*" }
            context_window = 9000
            fallback = ["two"]
            [backends.history]
            budget = 700
            policy = "mask"
            recall = false
            [[backends.history.rules]]
            tools = ["A\"", "b"]
            kind = "read"
            key = "path"
            [[backends]]
            name = "two"
            dialect = "chat"
            base_url = "sim:"
            rules = "mistral"
            server_state = "never"
            reasoning = "as-text"
        "#;
        let config = read(text).unwrap();
        let written = written(&config, config.compose.as_ref());
        assert!(!written.contains("sk-secret") && !written.contains("example.com"), "{written}");
        let again = read(&written).unwrap();
        assert_eq!(super::written(&again, again.compose.as_ref()), written);
        assert_eq!((&again.active, &again.compose), (&config.active, &config.compose));
        for (one, other) in config.backends.iter().zip(&again.backends) {
            assert_eq!(
                (&one.history, &one.models, &one.fallback),
                (&other.history, &other.models, &other.fallback)
            );
            assert_eq!(one.rules.name, other.rules.name);
        }
    }
}
