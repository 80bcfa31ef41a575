//! Every tool and resource, asked by the official SDK's client in the newest version of the protocol.

use crate::history::Scene;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation, JsonObject,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use throughline_core::{Outcome, Role};
use throughline_mcp::{Admission, HistoryServer, Refused, serve_http};
use throughline_store::{History, Memory};

pub type Client = RunningService<RoleClient, ClientConfig>;

fn config() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "1"))
}

/// Speaks the newest version, and nothing else.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

/// Connects a client to a server in the same process.
pub async fn connect(history: Arc<dyn History>, lifecycle: ClientLifecycleMode) -> Client {
    let (near, far) = tokio::io::duplex(1 << 16);
    let server = HistoryServer::new(Arc::new(history));
    tokio::spawn(async move { server.serve(tokio::io::split(far)).await.unwrap().waiting().await });
    config().serve_with_lifecycle(tokio::io::split(near), lifecycle).await.unwrap()
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments: JsonObject = arguments.as_object().cloned().unwrap();
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// Calls a tool that answers.
pub async fn answer(client: &Client, tool: &'static str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{}", text(&result));
    text(&result).to_owned()
}

/// Calls a tool that refuses.
async fn refusal(client: &Client, tool: &'static str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{}", text(&result));
    text(&result).to_owned()
}

/// The id in brackets on the first line.
pub fn first_id(found: &str) -> &str {
    let (_, rest) = found.split_once('[').unwrap();
    rest.split_once(']').unwrap().0
}

async fn history() -> Arc<dyn History> {
    let history: Arc<dyn History> = Arc::new(Memory::new());
    let log: String =
        (1..=500).map(|line| format!("line {line}: request {} took {} ms\n", line * 7, line % 90)).collect();
    Scene::new("0198f3a2-1b2c-7d3e-8000-000000000001", "claude-code", 1_700_000_000_000)
        .said(Role::User, "Fix the invoice tests in the billing service")
        .ended(
            "Bash",
            r#"{"command":"cargo test -p billing"}"#,
            "Exit code 101\nrunning 3 tests\nthread 'totals' panicked: left: 41250, right: 40975\n",
            Outcome::Error,
        )
        .tool(
            "Read",
            r#"{"file_path":"services/billing/src/invoice.rs"}"#,
            "const TIMEOUT_MS: u64 = 4500;\nfn total() {}\n",
        )
        .tool("mcp__throughline__search_history", r#"{"query":"TIMEOUT_MS"}"#, "1. an echo of TIMEOUT_MS")
        .tool("Edit", r#"{"file_path":"services/billing/src/invoice.rs"}"#, "done")
        .said(Role::Assistant, "The rounding was wrong; the tests pass now.")
        .write(&history)
        .await;
    Scene::new("0198f3a2-1b2d-7d3e-8000-000000000002", "codex", 1_700_000_100_000)
        .said(Role::User, "Why is the gateway slow?")
        .tool("shell", r#"{"command":["cat","gateway.log"]}"#, &log)
        .said(Role::Assistant, "Request 3493 took longest.")
        .write(&history)
        .await;
    history
}

#[tokio::test]
async fn the_tools_are_read_only_and_say_what_they_take() {
    let client = connect(history().await, newest()).await;
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["search_history", "get_tool_result", "list_sessions", "session_summary"]);
    for tool in &tools {
        assert_eq!(tool.annotations.as_ref().unwrap().read_only_hint, Some(true));
        assert_eq!(tool.input_schema["additionalProperties"], json!(false));
    }
}

#[tokio::test]
async fn a_question_finds_the_pair_and_the_id_reads_it() {
    let client = connect(history().await, newest()).await;
    let found =
        answer(&client, "search_history", json!({"query": "what did the billing tests fail with?"})).await;
    assert!(found.starts_with("1. Bash: cargo test -p billing [000000000001/"), "{found}");
    assert!(found.contains("→ exit code 101"), "{found}");
    let read = answer(&client, "get_tool_result", json!({"id": first_id(&found)})).await;
    assert!(read.contains("\nthread 'totals' panicked: left: 41250, right: 40975\n"), "{read}");
    // What this server answered earlier is in the history as well, and is not found.
    let constant = answer(&client, "search_history", json!({"query": "TIMEOUT_MS"})).await;
    assert!(
        constant.contains("Read: services/billing/src/invoice.rs") && !constant.contains("echo"),
        "{constant}"
    );
}

#[tokio::test]
async fn a_long_result_is_read_in_pieces_and_by_words() {
    let client = connect(history().await, newest()).await;
    let found = answer(&client, "search_history", json!({"query": "gateway.log", "tool": "Bash"})).await;
    let id = first_id(&found).to_owned();
    let first = answer(&client, "get_tool_result", json!({"id": id, "max_tokens": 400})).await;
    assert!(
        first.contains("line 1: request 7 took 1 ms\n") && first.contains("go on with from_line "),
        "{first}"
    );
    let lines = answer(&client, "get_tool_result", json!({"id": id, "from_line": 100, "to_line": 101})).await;
    assert!(
        lines.ends_with(
            "line 100: request 700 took 10 ms\nline 101: request 707 took 11 ms\n[lines 100 to 101 of 500]\n"
        ),
        "{lines}"
    );
    let word = answer(&client, "get_tool_result", json!({"id": id, "query": "3493"})).await;
    assert!(word.contains("499: line 499: request 3493 took 49 ms\n"), "{word}");
    // A handle alone is enough, as a shortened result has it.
    let handle = id.rsplit('/').next().unwrap();
    let alone = answer(&client, "get_tool_result", json!({"id": handle, "from_line": 1, "to_line": 1})).await;
    assert!(alone.contains("line 1: "), "{alone}");
    let behind = refusal(&client, "get_tool_result", json!({"id": id, "from_line": 501})).await;
    assert!(behind.contains("there are 500 lines"), "{behind}");
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_summarised() {
    let client = connect(history().await, newest()).await;
    let first = answer(&client, "list_sessions", json!({"limit": 1})).await;
    assert!(first.contains("Why is the gateway slow? (codex)"), "{first}");
    let cursor = first.split('"').nth(1).unwrap();
    let second = answer(&client, "list_sessions", json!({"limit": 1, "cursor": cursor})).await;
    assert!(second.contains("invoice tests") && !second.contains("gateway slow"), "{second}");
    let of_codex = answer(&client, "list_sessions", json!({"client": "Codex"})).await;
    assert_eq!(of_codex.lines().count(), 1, "{of_codex}");
    let summary = answer(&client, "session_summary", json!({"session": "000000000001"})).await;
    for part in [
        "The user asked:\n- Fix the invoice tests in the billing service\n",
        "Failed:\n- cargo test -p billing [",
        "Files changed:\n- services/billing/src/invoice.rs [",
        "Files read:\n- services/billing/src/invoice.rs [",
        "The last answer:\nThe rounding was wrong; the tests pass now.\n",
    ] {
        assert!(summary.contains(part), "{part}\n{summary}");
    }
}

#[tokio::test]
async fn conversations_are_resources() {
    let client = connect(history().await, newest()).await;
    let page = client.list_resources(Some(PaginatedRequestParams::default())).await.unwrap();
    assert_eq!(page.resources.len(), 2);
    assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 2);
    let uri = page.resources[1].uri.clone();
    let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
    let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!("{read:?}") };
    assert!(text.contains("**assistant said**\n\nThe rounding was wrong"), "{text}");
    let missing =
        client.read_resource(ReadResourceRequestParams::new("throughline://conversations/none")).await;
    assert!(missing.is_err());
}

#[tokio::test]
async fn what_cannot_be_answered_says_what_to_do() {
    let client = connect(history().await, newest()).await;
    for (tool, arguments, said) in [
        ("search_history", json!({}), "give a `query`"),
        ("search_history", json!({"query": "x", "colour": "red"}), "unknown field `colour`"),
        ("search_history", json!({"query": "x", "since": "someday"}), "invalid time `someday`"),
        ("search_history", json!({"query": "billing", "session": "nope"}), "no session id matches `nope`"),
        ("get_tool_result", json!({"id": "000000000001/aaaaaaaa"}), "nothing has the id"),
        ("get_tool_result", json!({"id": "aaaaaaaa"}), "give the `session`"),
        ("session_summary", json!({"session": "0198"}), "several sessions match"),
        ("list_sessions", json!({"cursor": "?"}), "invalid cursor"),
    ] {
        let refused = refusal(&client, tool, arguments).await;
        assert!(refused.contains(said), "{tool}: {refused}");
    }
}

#[derive(Debug)]
struct Everybody;

impl Admission for Everybody {
    fn admit(
        &self,
        _: SocketAddr,
        _: &http::Method,
        _: &http::Uri,
        _: &http::HeaderMap,
    ) -> Result<(), Refused> {
        Ok(())
    }
}

#[tokio::test]
async fn by_http_it_is_the_same_in_the_newest_version_and_in_the_one_before() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = HistoryServer::new(Arc::new(history().await));
    tokio::spawn(serve_http(listener, server, Arc::new(Everybody), std::future::pending()));
    let legacy = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST_WITH_INITIALIZE],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    for lifecycle in [newest(), legacy] {
        let transport = StreamableHttpClientTransport::from_uri(url.clone());
        let client = config().serve_with_lifecycle(transport, lifecycle).await.unwrap();
        let found = answer(&client, "search_history", json!({"query": "billing invoice"})).await;
        assert!(found.contains("invoice.rs"), "{found}");
        client.cancel().await.unwrap();
    }
}
