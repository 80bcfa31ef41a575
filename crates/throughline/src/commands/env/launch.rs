//! How an agent is started so that it comes through the gateway, with nothing written anywhere.

use super::clients::Gateway;
use super::install::{codex, opencode_provider};
use super::key::{Key, PLACEHOLDER};
use super::models;
use crate::exit::CommandError;
use throughline_gateway::config::Config;
use throughline_wire::json::quote;

/// A program to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Launch {
    /// What it is called.
    pub program: &'static str,
    /// What it is given before what the user gives it.
    pub args: Vec<String>,
    /// The variables that are set for it.
    pub variables: Vec<(String, String)>,
}

/// The agents that can be started, by the names that users write.
pub const AGENTS: [&str; 4] = ["claude", "codex", "opencode", "aider"];

/// Returns how an agent is started for the gateway at an address.
pub fn launch(agent: &str, url: &str, config: &Config) -> Result<Launch, CommandError> {
    let key = Key::of(config);
    let value = presented(&key)?;
    let gateway = Gateway { url, key: &key, models: models(config) };
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut launch = Launch { program: "", args: Vec::new(), variables: Vec::new() };
    match agent {
        "claude" | "claude-code" => {
            launch.program = "claude";
            launch.variables.push(set("ANTHROPIC_BASE_URL", url));
            launch.variables.extend(value.map(|value| set("ANTHROPIC_AUTH_TOKEN", &value)));
        }
        "codex" => {
            launch.program = "codex";
            launch.args = overrides(&gateway);
            if let (Some(name), Some(value)) = (key.variable(), value) {
                launch.variables.push(set(name, &value));
            }
        }
        "opencode" => {
            launch.program = "opencode";
            let model = format!("throughline/{}", gateway.models.first().copied().unwrap_or_default());
            let content = format!(
                "{{\"model\": {}, \"provider\": {{\"throughline\": {}}}}}",
                quote(&model),
                opencode_provider(&gateway)
            );
            launch.variables.push(set("OPENCODE_CONFIG_CONTENT", &content));
            if let (Some(name), Some(value)) = (key.variable(), value) {
                launch.variables.push(set(name, &value));
            }
        }
        "aider" => {
            launch.program = "aider";
            let model = gateway.models.first().copied().unwrap_or_default();
            launch.args = vec!["--model".to_owned(), format!("openai/{model}")];
            launch.variables.push(set("OPENAI_API_BASE", &format!("{url}/v1")));
            launch.variables.extend(value.map(|value| set("OPENAI_API_KEY", &value)));
        }
        _ => {
            return Err(CommandError::bad_input(format!("no agent is called `{agent}`")).hint(format!(
                "there are {}; `throughline env` says how others are told",
                AGENTS.join(", ")
            )));
        }
    }
    Ok(launch)
}

/// Returns what Codex takes on its command line instead of in its file.
fn overrides(gateway: &Gateway<'_>) -> Vec<String> {
    let (values, tables) = codex(gateway);
    let mut all: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut lines = tables.lines();
    let table = lines.next().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    all.extend(
        lines
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, value)| format!("{table}.{name}={value}")),
    );
    all.into_iter().flat_map(|value| ["-c".to_owned(), value]).collect()
}

/// Returns the key that the agent presents; none, if it has one of its own.
fn presented(key: &Key) -> Result<Option<String>, CommandError> {
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).map_err(|source| CommandError::file(path.display(), source))
    };
    Ok(match key {
        Key::Own => None,
        Key::Any => Some(PLACEHOLDER.to_owned()),
        Key::Variable(name) => Some(std::env::var(name).map_err(|_| {
            CommandError::bad_input(format!("the gateway asks for the key in {name}, which is not set"))
        })?),
        Key::File(path) => Some(read(path)?.trim().to_owned()),
        Key::Hidden => Some(std::env::var("THROUGHLINE_KEY").map_err(|_| {
            CommandError::bad_input("the gateway asks for a key: set THROUGHLINE_KEY to one of auth.keys")
        })?),
    })
}
