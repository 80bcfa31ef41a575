//! Tools of other programs, by the Model Context Protocol.
//!
//! Each server's tools are listed once, when it is connected, so that what models are told stays the same; they are
//! called `server__tool`. A server that has died is started again, once for each call that finds it dead. A call that
//! was under way when it died is never sent again: nobody knows what it did.

mod bounded;
mod connection;
mod http;
mod results;

use crate::catalog::Declaration;
use crate::limits::Limits;
use crate::outcome::{Outcome, OutcomeKind};
use crate::shell::Launcher;
use crate::toolbox::Context;
use connection::Connection;
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::ServiceError;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// What stands between the name of a server and that of its tool.
const SEPARATOR: &str = "__";

/// How much of a tool is taken: its name, what is said of it, and its schema.
const NAME_BYTES_MAX: usize = 128;
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// How much of the words of a refusal is passed on.
const WORDS_CHARS_MAX: usize = 2000;

/// A server, as it is configured.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Its name, which its tools begin with: letters, digits, `-` and single `_`.
    pub name: String,
    /// How it is reached.
    pub transport: ServerTransport,
    /// How long it may take to start and to list its tools.
    pub start_time_max: Duration,
    /// How long a call may take.
    pub call_time_max: Duration,
    /// How its process is started. A launcher gives it a session without a terminal and ends whatever it started; it
    /// does not confine it.
    pub launcher: Launcher,
}

/// How a server is reached.
#[derive(Clone)]
pub enum ServerTransport {
    /// By its standard input and output. What it writes to standard error goes to the log.
    Stdio {
        /// The program.
        command: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
        /// Its variables: these and no others.
        variables: Vec<(OsString, OsString)>,
        /// The directory it runs in, if not ours.
        directory: Option<PathBuf>,
    },
    /// By streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers for every request, such as `authorization`.
        headers: Vec<(String, String)>,
    },
}

/// Why a server's tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The name cannot be used.
    #[error(
        "\"{0}\" cannot be the name of a server: only letters, digits, - and single _ can be used, and each name once"
    )]
    Name(String),
    /// The program cannot be started.
    #[error("the server \"{server}\" cannot be started: {error}")]
    Start {
        /// Which.
        server: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A header cannot be sent.
    #[error("the server \"{server}\" has a header \"{header}\" that cannot be sent")]
    Header {
        /// Which.
        server: String,
        /// The name of the header.
        header: String,
    },
    /// The two do not understand each other.
    #[error("the server \"{server}\" does not answer as it should: {reason}")]
    Protocol {
        /// Which.
        server: String,
        /// Why.
        reason: String,
    },
    /// It takes too long.
    #[error("the server \"{server}\" did not start within {} s", time.as_secs_f64())]
    Slow {
        /// Which.
        server: String,
        /// How long was waited.
        time: Duration,
    },
}

/// A call of a server's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCall {
    /// The whole name, as it was declared.
    pub name: String,
    /// The arguments, a JSON object as it came.
    pub arguments: String,
}

/// A server whose tools are known.
pub(crate) struct Server {
    settings: ServerSettings,
    /// What models are told, and how the server itself calls the tool.
    tools: Vec<(Declaration, String)>,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl ServerSettings {
    /// Returns a server with the usual time limits: half a minute to start, two minutes for a call.
    #[must_use]
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        let (start_time_max, call_time_max) = (Duration::from_secs(30), Duration::from_secs(120));
        Self { name: name.into(), transport, start_time_max, call_time_max, launcher: Launcher::Direct }
    }
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments, variables and headers may hold secrets.
        match self {
            Self::Stdio { command, .. } => {
                f.debug_struct("Stdio").field("command", command).finish_non_exhaustive()
            }
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Server {
    /// Connects to a server and lists its tools.
    pub(crate) async fn connect(settings: ServerSettings) -> Result<Self, ServerError> {
        check_name(&settings.name)?;
        let (connection, listed) = Connection::open(&settings).await?;
        let mut tools: Vec<(Declaration, String)> =
            listed.into_iter().filter_map(|tool| declared(&settings.name, tool)).collect();
        // The order in which servers list their tools may change; what models are told may not.
        tools.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        Ok(Self { settings, tools, connection: Mutex::new(Some(Arc::new(connection))) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    pub(crate) fn declarations(&self) -> impl Iterator<Item = Declaration> {
        self.tools.iter().map(|(declaration, _)| declaration.clone())
    }

    /// Returns the server's own name of a tool.
    fn tool(&self, name: &str) -> Option<&str> {
        self.tools.iter().find(|(it, _)| it.name == name).map(|(_, tool)| tool.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// Runs a call of one of its tools.
    pub(crate) async fn run(&self, limits: &Limits, call: &ServerCall, context: &Context) -> Outcome {
        let own = self.settings.call_time_max;
        let limit = context.time_limit.map_or(own, |limit| limit.min(own));
        tokio::select! {
            // What is known is told, even if it was called off at the same moment.
            biased;
            outcome = self.call(limits, call) => outcome,
            () = context.cancel.cancelled() => {
                Outcome { kind: OutcomeKind::Cancelled, ..Outcome::failed("the call was called off; what it did by then is not known") }
            }
            () = tokio::time::sleep(limit) => {
                let reason = format!("the call did not end within {} s; what it did by then is not known", limit.as_secs_f64());
                Outcome { kind: OutcomeKind::TimedOut, ..Outcome::failed(reason) }
            }
        }
    }

    async fn call(&self, limits: &Limits, call: &ServerCall) -> Outcome {
        let Some(tool) = self.tool(&call.name) else {
            return Outcome::failed(format!("the server \"{}\" has no such tool", self.name()));
        };
        let Ok(arguments) = serde_json::from_str::<JsonObject>(&call.arguments) else {
            return Outcome::failed("the arguments must be a JSON object");
        };
        let connection = match self.living().await {
            Ok(connection) => connection,
            Err(error) => return Outcome::failed(error.to_string()),
        };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match connection.call(request).await {
            Ok(result) => results::outcome(result, limits),
            Err(ServiceError::McpError(error)) => {
                let words: String = error.message.chars().take(WORDS_CHARS_MAX).collect();
                Outcome::failed(format!("the server refused: {words}"))
            }
            Err(error) => {
                let reason = connection.excess().map_or_else(|| error.to_string(), |it| it.to_string());
                Outcome::failed(format!(
                    "the server \"{}\" failed during the call ({reason}); what it did by then is not known",
                    self.name()
                ))
            }
        }
    }

    /// Returns the connection, after starting the server again if it is dead.
    async fn living(&self) -> Result<Arc<Connection>, ServerError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|it| it.is_alive()) {
            return Ok(Arc::clone(connection));
        }
        tracing::warn!(server = self.name(), "the MCP server is gone and is started again");
        *slot = None;
        let (connection, _) = Connection::open(&self.settings).await?;
        Ok(Arc::clone(slot.insert(Arc::new(connection))))
    }
}

fn check_name(name: &str) -> Result<(), ServerError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let fine =
        !name.is_empty() && name.chars().all(plain) && !name.contains(SEPARATOR) && !name.ends_with('_');
    if fine { Ok(()) } else { Err(ServerError::Name(name.to_owned())) }
}

/// Returns how models are told of a tool; none of one whose name nobody could be shown, or whose schema has no end.
fn declared(server: &str, tool: rmcp::model::Tool) -> Option<(Declaration, String)> {
    let is_plain = |c: char| c.is_ascii_graphic();
    let schema = serde_json::Value::Object((*tool.input_schema).clone()).to_string();
    if tool.name.is_empty()
        || tool.name.len() > NAME_BYTES_MAX
        || !tool.name.chars().all(is_plain)
        || schema.len() > SCHEMA_BYTES_MAX
    {
        let name: String = tool.name.chars().take(NAME_BYTES_MAX).collect();
        tracing::warn!(
            server,
            ?name,
            "a tool of an MCP server is left out: its name or schema cannot be used"
        );
        return None;
    }
    let mut description = tool.description.unwrap_or_default().into_owned();
    if description.len() > DESCRIPTION_BYTES_MAX {
        tracing::warn!(server, name = &*tool.name, "the description of a tool of an MCP server is cut short");
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
    }
    let declaration = Declaration {
        name: format!("{server}{SEPARATOR}{}", tool.name).into(),
        description: description.into(),
        schema: schema.into(),
    };
    Some((declaration, tool.name.into_owned()))
}
