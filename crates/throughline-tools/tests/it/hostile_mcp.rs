//! MCP servers that send more than anybody can hold: the call fails and says why, and the next one is served.

use crate::bench::Bench;
use crate::mcp::{Listening, program};
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use throughline_tools::mcp::{ServerError, ServerSettings, ServerTransport};

/// A server in a few lines of shell: what it lists, and what it does when it is called, are given.
const SCRIPT: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    case "$line" in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"not known"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*) eval "$LIST" ;;
    *'"tools/call"'*) eval "$CALL" ;;
    esac
done
"#;

const ONE_TOOL: &str = r#"say '"result":{"tools":[{"name":"f","inputSchema":{"type":"object"}}]}'"#;

fn scripted(list: &str, call: &str) -> ServerSettings {
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let variables = vec![variable("LIST", list), variable("CALL", call), variable("PATH", "/usr/bin:/bin")];
    let arguments = vec![OsString::from("-c"), OsString::from(SCRIPT)];
    let transport =
        ServerTransport::Stdio { command: PathBuf::from("/bin/sh"), arguments, variables, directory: None };
    ServerSettings::new("script", transport)
}

#[tokio::test]
async fn a_result_without_bounds_fails_the_call_and_not_the_server() {
    let stdio = ServerTransport::Stdio {
        command: program(),
        arguments: Vec::new(),
        variables: Vec::new(),
        directory: None,
    };
    let listening = Listening::start();
    for transport in [stdio, listening.transport()] {
        let mut bench = Bench::new();
        bench.toolbox.connect(ServerSettings::new("example", transport.clone())).await.expect("it answers");
        let reason = bench.failed("example__echo", json!({"text": "word ", "times": 4_000_000})).await;
        assert!(reason.contains("more than 8388608 bytes"), "{transport:?}: {reason}");
        let outcome = bench.call("example__echo", json!({"text": "hello"})).await;
        assert_eq!(outcome.output, r#"{"content":"hello"}"#, "{transport:?}");
    }
}

#[tokio::test]
async fn what_a_server_writes_without_end_fails_the_call() {
    let floods = [
        ("a line without end", "cat /dev/zero | tr '\\0' x", "a message of more than"),
        (
            "notifications without end",
            r#"yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'"#,
            "it wrote more than",
        ),
        ("lines that are no messages", "yes nonsense", "it wrote more than"),
        ("empty lines", "yes ''", "it wrote more than"),
        ("deep brackets", r"cat /dev/zero | tr '\0' '['", "a message of more than"),
    ];
    for (case, call, expected) in floods {
        let mut bench = Bench::new();
        bench.toolbox.connect(scripted(ONE_TOOL, call)).await.expect("it answers");
        let reason = bench.failed("script__f", json!({})).await;
        assert!(reason.contains(expected), "{case}: {reason}");
    }
}

#[tokio::test]
async fn a_list_of_tools_has_an_end() {
    let many = r#"
        tools=$(yes '{"name":"f","inputSchema":{"type":"object"}}' | head -n 600 | paste -sd, -)
        say "\"result\":{\"tools\":[$tools]}""#;
    let pages = r#"say '"result":{"tools":[],"nextCursor":"on and on"}'"#;
    let endless = r#"printf '{"jsonrpc":"2.0","id":0,"result":{"tools":['; yes '{"name":"f","inputSchema":{}},' | tr -d '\n'"#;
    for (case, list, expected) in [
        ("600 tools", many, "more than 512 tools"),
        ("pages without end", pages, "more than 512 tools"),
        ("a list without end", endless, "a message of more than"),
    ] {
        let mut bench = Bench::new();
        let refused = bench.toolbox.connect(scripted(list, "")).await.unwrap_err();
        assert!(
            matches!(&refused, ServerError::Protocol { reason, .. } if reason.contains(expected)),
            "{case}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_tool_that_cannot_be_shown_is_left_out() {
    let list = r#"
        long=$(printf 'x%.0s' $(seq 20000))
        say "\"result\":{\"tools\":[{\"name\":\"fine\",\"description\":\"$long\",\"inputSchema\":{\"type\":\"object\"}},
            {\"name\":\"evil\\u001b[2J\",\"inputSchema\":{\"type\":\"object\"}},
            {\"name\":\"\",\"inputSchema\":{\"type\":\"object\"}}]}" | tr -d '\n'; echo"#;
    let mut bench = Bench::new();
    let mut settings = scripted(list, "");
    settings.start_time_max = Duration::from_secs(60);
    bench.toolbox.connect(settings).await.expect("it answers");
    let of_server: Vec<_> =
        bench.toolbox.declare().into_iter().filter(|tool| tool.name.starts_with("script__")).collect();
    assert_eq!(of_server.len(), 1);
    assert_eq!((of_server[0].name.as_ref(), of_server[0].description.len()), ("script__fine", 16 << 10));
}
