//! What the tools of a turn may do, the servers that bring further ones, and who composes answers, checked.

use super::compose::{Compose, GUIDANCE};
use super::file::{ComposeSection, McpSection, ToolsSection};
use super::resolve::{Resolver, list};
use super::values::TimeLimit;
use crate::secret::Secret;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use throughline_core::Text;
use throughline_tools::ConfinementPolicy;

/// What the tools of a turn may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// The most calls that one turn runs.
    pub max_calls: u32,
    /// Which actions run without asking.
    pub approve: Approve,
    /// How long a command may take that names no time limit.
    pub command_timeout: Duration,
    /// What commands may read besides the system and the working directory.
    pub readable: Vec<PathBuf>,
    /// What commands may write besides the working directory.
    pub writable: Vec<PathBuf>,
    /// Whether commands may use the network.
    pub network: bool,
    /// What is done where commands cannot be confined; if nothing is said, confinement is required where the kernel has
    /// Landlock.
    pub confinement: Option<Confine>,
    /// Names of further variables that commands are given.
    pub pass: Vec<String>,
    /// Names of variables that hold keys, which commands are never given.
    pub withheld: Vec<String>,
}

/// Which actions run without asking.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// None: somebody is asked before every change of a file and every command.
    #[default]
    Ask,
    /// Changes of files; somebody is asked before every command.
    Edits,
    /// All; nobody is asked.
    All,
    /// None, and nobody is asked either: tools may only read.
    None,
}

/// What is done where commands cannot be confined.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Confine {
    /// They are refused.
    Required,
    /// They are confined as far as the system can.
    BestEffort,
    /// Nothing is confined anyway.
    Off,
}

/// A server that speaks the Model Context Protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mcp {
    /// Its name, which its tools begin with.
    pub name: String,
    /// How it is reached.
    pub way: McpWay,
    /// How long a call may take, if not two minutes.
    pub timeout: Option<Duration>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpWay {
    /// By its standard input and output.
    Command {
        /// The program.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables: these and no others.
        env: Vec<(String, Secret)>,
        /// The directory it runs in.
        cwd: Option<PathBuf>,
    },
    /// By streamable HTTP.
    Url {
        /// Its address.
        url: String,
        /// Headers for every request.
        headers: Vec<(String, Secret)>,
    },
}

/// What a million tokens cost, in US dollars.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Of the prompt.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
    /// Of the prompt, where it is read from a cache.
    pub cache_read: Option<f64>,
    /// Of the prompt, where it is written to a cache.
    pub cache_write: Option<f64>,
}

impl Approve {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
            Self::None => "none",
        }
    }
}

impl Confine {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
            Self::Off => "off",
        }
    }

    /// Returns what it means to the tools.
    #[must_use]
    pub const fn policy(self) -> ConfinementPolicy {
        match self {
            Self::Required => ConfinementPolicy::Required,
            Self::BestEffort => ConfinementPolicy::BestEffort,
            Self::Off => ConfinementPolicy::Off,
        }
    }
}

impl Resolver<'_> {
    pub(super) fn tools(&mut self, section: ToolsSection) -> Tools {
        let tools = Tools {
            max_calls: section.max_calls.map_or(100, Into::into),
            approve: section.approve.unwrap_or_default(),
            command_timeout: section.command_timeout.map_or(Duration::from_secs(120), |limit| limit.0),
            readable: section.readable.unwrap_or_default(),
            writable: section.writable.unwrap_or_default(),
            network: section.network.unwrap_or(false),
            confinement: section.confinement,
            pass: section.pass.unwrap_or_default(),
            withheld: Vec::new(),
        };
        self.note("tools.max_calls", tools.max_calls);
        self.note("tools.approve", tools.approve.name());
        self.note("tools.command_timeout", TimeLimit(tools.command_timeout));
        self.note("tools.readable", list(tools.readable.iter().map(|path| path.display().to_string())));
        self.note("tools.writable", list(tools.writable.iter().map(|path| path.display().to_string())));
        self.note("tools.network", tools.network);
        let confinement = tools.confinement.map_or(
            "(required where the kernel has Landlock, best-effort with a warning where it has none)",
            Confine::name,
        );
        self.note("tools.confinement", confinement);
        self.note("tools.pass", list(tools.pass.iter().cloned()));
        tools
    }

    pub(super) fn mcp(&mut self, sections: Vec<McpSection>) -> Vec<Mcp> {
        let mut servers: Vec<Mcp> = Vec::new();
        for (index, section) in sections.into_iter().enumerate() {
            let path = format!("mcp[{index}]");
            let Some(name) = section.name.clone() else {
                self.problem(&format!("{path}.name"), "a server needs a name");
                continue;
            };
            if servers.iter().any(|server| server.name == name) {
                self.problem(&format!("{path}.name"), format!("another server is called `{name}` already"));
            }
            servers.extend(self.mcp_server(&path, name, section));
        }
        servers
    }

    fn mcp_server(&mut self, path: &str, name: String, section: McpSection) -> Option<Mcp> {
        let shown = |key: &str| format!("mcp.{name}.{key}");
        let mut open = |key: &str, secrets: std::collections::BTreeMap<String, crate::secret::SecretRef>| {
            let at = format!("{path}.{key}");
            let named = secrets.iter().map(|(name, value)| format!("{name}: {value}"));
            self.note_as(&shown(key), &at, list(named));
            let opened = secrets.into_iter().map(|(name, value)| {
                let secret = self.open(&at, &value)?;
                // What a program is given may be a path as well as a key; what a server is sent is told apart.
                if key == "headers" {
                    self.note_credential(&name, &value, &secret);
                }
                Some((name, secret))
            });
            opened.collect::<Option<Vec<_>>>()
        };
        let (env, headers) = (open("env", section.env)?, open("headers", section.headers)?);
        let timeout = section.timeout.map(|limit| limit.0);
        let way = match (section.command, section.url) {
            (Some(command), None) if headers.is_empty() => {
                self.note_as(&shown("command"), &format!("{path}.command"), command.display());
                let args = section.args.unwrap_or_default();
                McpWay::Command { command, args, env, cwd: section.cwd }
            }
            (None, Some(url)) if env.is_empty() && section.args.is_none() && section.cwd.is_none() => {
                self.note_as(&shown("url"), &format!("{path}.url"), &url);
                McpWay::Url { url, headers }
            }
            (Some(_), Some(_)) | (None, None) => {
                self.problem(path, "a server needs a `command` or a `url`, and not both");
                return None;
            }
            (Some(_), None) => {
                self.problem(path, "`headers` are for a server with a `url`");
                return None;
            }
            (None, Some(_)) => {
                self.problem(path, "`args`, `env` and `cwd` are for a server with a `command`");
                return None;
            }
        };
        Some(Mcp { name, way, timeout })
    }

    pub(super) fn compose(&mut self, section: ComposeSection, names: &[String]) -> Option<Compose> {
        let enabled = section.enabled.unwrap_or(false);
        self.note("compose.enabled", enabled);
        let backend = section.backend.and_then(|name| {
            self.note("compose.backend", &name);
            self.known_backend("compose.backend", &name, names)
        });
        self.note("compose.model", section.model.as_deref().unwrap_or("(the backend's own)"));
        let temperature = section.temperature.map(|ratio| ratio.0.to_string());
        self.note("compose.temperature", temperature.as_deref().unwrap_or("(the model's own)"));
        let max_tokens = section.max_tokens.map(Into::into);
        self.note(
            "compose.max_tokens",
            max_tokens.map_or("(the model's own)".to_owned(), |it: u64| it.to_string()),
        );
        let guidance = section.guidance.unwrap_or_else(|| GUIDANCE.to_owned());
        self.note("compose.guidance", &guidance);
        enabled.then(|| Compose {
            backend,
            model: section.model.map(Text::from),
            temperature: temperature.map(Text::from),
            max_tokens,
            guidance: guidance.into(),
        })
    }
}
