//! A small MCP server for trying out how the toolbox uses one: `mcp_server` speaks by its standard input and output,
//! `mcp_server --http` by HTTP, at the address that it prints.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use std::error::Error;

#[derive(Clone)]
struct Example;

impl ServerHandler for Example {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = |value: Value| value.as_object().cloned().unwrap_or_default();
        let none = || schema(json!({"type": "object"}));
        let text = schema(
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
        );
        let tools = vec![
            Tool::new("hang", "Never answers.", none()),
            Tool::new("echo", "Says the text again.", text),
            Tool::new("exit", "Ends the server.", none()),
            Tool::new("fail", "Fails.", none()),
            Tool::new("picture", "Shows a picture, and says something structured.", none()),
            Tool::new("variables", "Lists the server's variables.", none()),
        ];
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match &*request.name {
            "echo" => echo(&arguments)?,
            "fail" => CallToolResult::error(vec![ContentBlock::text("it went wrong")]),
            "picture" => picture(),
            "variables" => {
                let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                CallToolResult::success(vec![ContentBlock::text(names.join(" "))])
            }
            "hang" => std::future::pending().await,
            "exit" => std::process::exit(3),
            _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
        };
        Ok(result.into())
    }
}

fn echo(arguments: &JsonObject) -> Result<CallToolResult, ErrorData> {
    let text = arguments.get("text").and_then(Value::as_str);
    let text = text.ok_or_else(|| ErrorData::invalid_params("text is missing", None))?;
    // However often that is asked for: for trying out what becomes of results without bounds.
    let times = arguments.get("times").and_then(Value::as_u64).unwrap_or(1);
    Ok(CallToolResult::success(vec![ContentBlock::text(text.repeat(usize::try_from(times).unwrap_or(1)))]))
}

fn picture() -> CallToolResult {
    let mut result = CallToolResult::success(vec![
        ContentBlock::text("a picture"),
        ContentBlock::image("iVBORw0KGgo=", "image/png"),
    ]);
    result.structured_content = Some(json!({"width": 1}));
    result
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() != Some("--http") {
        std::io::Write::write_all(&mut std::io::stderr(), b"ready\n")?;
        Example.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let config = StreamableHttpServerConfig::default();
    let service: StreamableHttpService<Example, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Example), std::sync::Arc::default(), config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let line = format!("http://{}/mcp\n", listener.local_addr()?);
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes())?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
