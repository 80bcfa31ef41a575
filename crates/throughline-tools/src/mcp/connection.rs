//! A connection to one server, and the process behind it if we started one.

use super::bounded::{BoundedLines, Excess, Meter};
use super::http::BoundedClient;
use super::{ServerError, ServerSettings, ServerTransport};
use crate::process::{Group, Guard};
use crate::shell::{Launcher, SERVER};
use http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion, Tool,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The longest line of a server's standard error that the log takes.
const LOG_LINE_BYTES_MAX: u64 = 8 * 1024;

/// The most bytes of one message of a server.
pub(super) const MCP_MESSAGE_BYTES_MAX: usize = 8 << 20;

/// The most tools of one server. What models can tell apart is far less.
const TOOLS_MAX: usize = 512;

/// The most pages on which a server may list them.
const PAGES_MAX: usize = 64;

/// A connection.
pub(super) struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
    meter: Arc<Meter>,
}

/// The process of a server; it ends with the connection.
struct Process {
    child: Mutex<Child>,
    /// Ends it and its group. A supervisor is not ended, since it has to end others: it sees that its input is closed.
    _guard: Option<Guard>,
}

impl Connection {
    /// Opens a connection and lists the tools.
    pub(super) async fn open(settings: &ServerSettings) -> Result<(Self, Vec<Tool>), ServerError> {
        let opened = tokio::time::timeout(settings.start_time_max, Self::start(settings)).await;
        opened.unwrap_or_else(|_| {
            Err(ServerError::Slow { server: settings.name.clone(), time: settings.start_time_max })
        })
    }

    /// Says whether it can take a call.
    pub(super) fn is_alive(&self) -> bool {
        let runs = |process: &Process| {
            let mut child = process.child.lock().unwrap_or_else(PoisonError::into_inner);
            matches!(child.try_wait(), Ok(None))
        };
        !self.service.is_transport_closed() && self.process.as_ref().is_none_or(runs)
    }

    pub(super) async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, ServiceError> {
        self.meter.begin_call();
        self.service.call_tool(request).await
    }

    /// Returns why the server is not listened to any more.
    pub(super) fn excess(&self) -> Option<Excess> {
        self.meter.excess()
    }

    async fn start(settings: &ServerSettings) -> Result<(Self, Vec<Tool>), ServerError> {
        let failed = |reason: String| ServerError::Protocol { server: settings.name.clone(), reason };
        let client = ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("throughline", env!("CARGO_PKG_VERSION")),
        );
        let meter = Arc::new(Meter::default());
        let (service, process) = match &settings.transport {
            ServerTransport::Stdio { .. } => {
                let (process, input, output) = Process::start(settings)?;
                let output = BoundedLines::new(output, Arc::clone(&meter));
                (client.serve_with_lifecycle((output, input), lifecycle()).await, Some(process))
            }
            ServerTransport::Http { url, headers } => {
                let sender =
                    BoundedClient::new(Arc::clone(&meter)).map_err(|error| failed(error.to_string()))?;
                let config = http_config(settings, url, headers)?;
                let transport = StreamableHttpClientTransport::with_client(sender, config);
                (client.serve_with_lifecycle(transport, lifecycle()).await, None)
            }
        };
        let reason = |error: String| failed(meter.excess().map_or(error, |excess| excess.to_string()));
        let service = service.map_err(|error| reason(error.to_string()))?;
        let tools = list_tools(&service).await.map_err(|error| reason(error.to_string()))?;
        let tools = tools.ok_or_else(|| failed(format!("it lists more than {TOOLS_MAX} tools")))?;
        Ok((Self { service, process, meter }, tools))
    }
}

/// Lists the tools of a server; none if there are too many, or their list has no end.
async fn list_tools(
    service: &RunningService<RoleClient, ClientConfig>,
) -> Result<Option<Vec<Tool>>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = service.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if tools.len() > TOOLS_MAX {
            return Ok(None);
        }
        if cursor.is_none() {
            return Ok(Some(tools));
        }
    }
    Ok(None)
}

/// Speaks the newest version of the protocol, or the one before with a server that knows no better.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn http_config(
    settings: &ServerSettings,
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransportConfig, ServerError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    for (name, value) in headers {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = parsed
            .ok_or_else(|| ServerError::Header { server: settings.name.clone(), header: name.clone() })?;
        value.set_sensitive(true);
        config.custom_headers.insert(name, value);
    }
    Ok(config)
}

impl Process {
    fn start(
        settings: &ServerSettings,
    ) -> Result<(Self, tokio::process::ChildStdin, tokio::process::ChildStdout), ServerError> {
        let failed = |error: std::io::Error| ServerError::Start { server: settings.name.clone(), error };
        let ServerTransport::Stdio { command, arguments, variables, directory } = &settings.transport else {
            return Err(failed(std::io::ErrorKind::Unsupported.into()));
        };
        let mut process = match &settings.launcher {
            Launcher::Direct => {
                let mut process = Command::new(command);
                #[cfg(unix)]
                process.process_group(0);
                process
            }
            Launcher::Confined { program, arguments } => {
                // What is not there is said at once, and not by a supervisor to its log.
                if command.components().count() > 1 {
                    std::fs::metadata(command).map_err(failed)?;
                }
                let mut process = Command::new(program);
                process.args(arguments).arg(SERVER).arg(command);
                process
            }
        };
        process.args(arguments).env_clear().envs(variables.iter().cloned());
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let is_direct = settings.launcher == Launcher::Direct;
        process.kill_on_drop(is_direct);
        if let Some(directory) = directory {
            process.current_dir(directory);
        }
        let mut child = process.spawn().map_err(failed)?;
        let guard = is_direct.then(|| Group::of(&child).guard());
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        tokio::spawn(log(settings.name.clone(), errors));
        Ok((Self { child: Mutex::new(child), _guard: guard }, input, output))
    }
}

/// Writes what a server says on its standard error to the log, line by line.
async fn log(server: String, errors: impl AsyncRead + Unpin) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut errors).take(LOG_LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = crate::text::clean(&line).text;
                tracing::info!(server, line = text.trim_end(), "an MCP server writes");
            }
        }
    }
}
