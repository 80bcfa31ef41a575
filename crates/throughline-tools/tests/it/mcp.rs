//! Tools of MCP servers, by both transports, against a real server.

use crate::bench::{Bench, example, told};
use serde_json::json;
use std::ffi::OsString;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use throughline_tools::mcp::{ServerError, ServerSettings, ServerTransport};
use throughline_tools::{Context, Effect, OutcomeKind};

/// The example of a server, which is built beside this binary.
pub fn program() -> PathBuf {
    example("mcp_server")
}

fn stdio() -> ServerTransport {
    let variables = vec![(OsString::from("GIVEN"), OsString::from("1"))];
    ServerTransport::Stdio { command: program(), arguments: Vec::new(), variables, directory: None }
}

async fn connected(transport: ServerTransport) -> Bench {
    let mut bench = Bench::new();
    bench.toolbox.connect(ServerSettings::new("example", transport)).await.expect("the server answers");
    bench
}

/// A server that listens, for as long as this is held.
pub struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    pub fn start() -> Self {
        let mut command = Command::new(program());
        let mut process = command.arg("--http").stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut url = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        std::io::BufReader::new(stdout).read_line(&mut url).expect("it says where it listens");
        Self { process, url: url.trim().to_owned() }
    }

    pub fn transport(&self) -> ServerTransport {
        ServerTransport::Http {
            url: self.url.clone(),
            headers: vec![("x-key".to_owned(), "SECRET".to_owned())],
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn answers_as_it_should(bench: &Bench) {
    let names: Vec<String> = bench.toolbox.declare().into_iter().map(|it| it.name.into_owned()).collect();
    let of_server = [
        "example__echo",
        "example__exit",
        "example__fail",
        "example__hang",
        "example__picture",
        "example__variables",
    ];
    assert_eq!(names[8..], of_server, "behind our own, in the order of their names");
    let echo = bench.toolbox.declare().remove(8);
    assert_eq!(echo.description, "Says the text again.");
    assert_eq!(
        echo.schema,
        r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#
    );
    assert_eq!(bench.toolbox.resolve("example__echo"), Some("example__echo"));

    let outcome = bench.call("example__echo", json!({"text": "hello"})).await;
    assert_eq!((outcome.kind, outcome.output.as_str()), (OutcomeKind::Done, r#"{"content":"hello"}"#));
    let again = bench.call("example__echo", json!({"text": "hello"})).await;
    assert_eq!(again, outcome, "the same call gives the same bytes");
    assert_eq!(bench.failed("example__echo", json!({})).await, "the server refused: text is missing");
    assert_eq!(bench.failed("example__fail", json!({})).await, "it went wrong");
    let outcome = bench.call("example__picture", json!({})).await;
    assert_eq!(
        outcome.output,
        r#"{"content":"a picture","structured":"{\"width\":1}","images":["image/png"]}"#
    );
    assert_eq!(outcome.images[0].base64, "iVBORw0KGgo=");
}

#[tokio::test]
async fn tools_of_a_server_by_stdio() {
    let bench = connected(stdio()).await;
    answers_as_it_should(&bench).await;
    assert_eq!(
        bench.done("example__variables", json!({})).await["content"],
        "GIVEN",
        "these variables and no others"
    );
}

#[tokio::test]
async fn tools_of_a_server_by_http() {
    let server = Listening::start();
    let bench = connected(server.transport()).await;
    answers_as_it_should(&bench).await;
}

#[tokio::test]
async fn a_call_is_checked_and_classed() {
    let bench = connected(stdio()).await;
    let call = bench.toolbox.check("example__echo", r#"{"text": "a"}"#).unwrap();
    assert_eq!((call.effect(), call.tool()), (Effect::Runs, "example__echo"));
    assert_eq!(bench.toolbox.preview(&call).await.line, r#"example__echo {"text":"a"}"#);
    // All arguments are shown, as the server reads them.
    let hidden = format!(r#"{{"text": "{}", "then": "\u0072\u006d\u001b"}}"#, "x".repeat(5_000));
    let call = bench.toolbox.check("example__echo", &hidden).unwrap();
    let whole = bench.toolbox.preview(&call).await.whole.unwrap();
    assert!(whole.contains(&"x".repeat(5_000)) && whole.contains(r#""then": "rm\u001b""#), "{whole}");
    let refused = bench.toolbox.check("example__echo", "[1]").unwrap_err().to_string();
    assert_eq!(refused, "the arguments of example__echo must be a JSON object: a list of 1 came");
    let refused = bench.toolbox.check("example__nothing", "{}").unwrap_err().to_string();
    assert!(
        refused.contains("there is no tool \"example__nothing\"") && refused.contains("example__echo"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_call_that_hangs_is_ended_and_the_server_lives_on() {
    let bench = connected(stdio()).await;
    let context = Context { time_limit: Some(Duration::from_millis(200)), ..Context::default() };
    let outcome = bench.call_in("example__hang", json!({}), &context).await;
    assert_eq!(outcome.kind, OutcomeKind::TimedOut);
    assert_eq!(
        told(&outcome)["error"],
        "the call did not end within 0.2 s; what it did by then is not known"
    );
    let context = Context::default();
    let (outcome, ()) = tokio::join!(bench.call_in("example__hang", json!({}), &context), async {
        tokio::task::yield_now().await;
        context.cancel.cancel();
    });
    assert_eq!(outcome.kind, OutcomeKind::Cancelled);
    assert_eq!(bench.done("example__echo", json!({"text": "still here"})).await["content"], "still here");
}

#[tokio::test]
async fn a_server_that_died_is_started_again() {
    let bench = connected(stdio()).await;
    let error = bench.failed("example__exit", json!({})).await;
    assert!(error.contains("the server \"example\" failed during the call"), "{error}");
    assert!(error.ends_with("what it did by then is not known"), "{error}");
    assert_eq!(bench.done("example__echo", json!({"text": "back"})).await["content"], "back");
}

#[tokio::test]
async fn servers_that_cannot_be_used_say_why() {
    let mut bench = Bench::new();
    let mut connect = async |name: &str, transport: ServerTransport, start_time_max: Duration| -> String {
        let settings = ServerSettings { start_time_max, ..ServerSettings::new(name, transport) };
        bench
            .toolbox
            .connect(settings)
            .await
            .map_or_else(|error| error.to_string(), |()| "connected".to_owned())
    };
    let command = |command: &str| ServerTransport::Stdio {
        command: command.into(),
        arguments: vec!["600".into()],
        variables: Vec::new(),
        directory: None,
    };
    let (long, short) = (Duration::from_secs(60), Duration::from_millis(200));
    assert!(connect("a__b", stdio(), long).await.starts_with("\"a__b\" cannot be the name of a server"));
    let said = connect("none", command("/no/such/program"), long).await;
    assert!(said.starts_with("the server \"none\" cannot be started: "), "{said}");
    assert_eq!(
        connect("slow", command("sleep"), short).await,
        "the server \"slow\" did not start within 0.2 s"
    );
    let said = connect("wrong", command("false"), long).await;
    assert!(said.starts_with("the server \"wrong\" does not answer as it should: "), "{said}");
    let headers = vec![("x y".to_owned(), "SECRET".to_owned())];
    let said =
        connect("head", ServerTransport::Http { url: "http://127.0.0.1:9".to_owned(), headers }, long).await;
    assert_eq!(said, "the server \"head\" has a header \"x y\" that cannot be sent");
    assert_eq!(bench.toolbox.declare().len(), 8, "nothing of them was added");
    let mut bench = connected(stdio()).await;
    let twice = bench.toolbox.connect(ServerSettings::new("example", stdio())).await;
    assert!(matches!(twice, Err(ServerError::Name(_))));
}

#[test]
fn secrets_are_not_shown() {
    let variables = vec![(OsString::from("KEY"), OsString::from("SECRET"))];
    let command = ServerTransport::Stdio {
        command: "x".into(),
        arguments: vec!["SECRET".into()],
        variables,
        directory: None,
    };
    let http = ServerTransport::Http {
        url: "http://x".to_owned(),
        headers: vec![("a".to_owned(), "SECRET".to_owned())],
    };
    for transport in [command, http] {
        assert!(!format!("{:?}", ServerSettings::new("x", transport)).contains("SECRET"));
    }
}

#[tokio::test]
async fn a_server_ends_with_the_toolbox() {
    let bench = connected(stdio()).await;
    // By the state and the parent of every process of that name.
    let is_ours = |stat: &String| {
        let fields = stat.split_once(" (mcp_server) ").map(|(_, rest)| rest.split(' '));
        let (state, parent) = fields.map_or((None, None), |mut it| (it.next(), it.next()));
        state != Some("Z") && parent == Some(&std::process::id().to_string())
    };
    let servers = || {
        let processes = std::fs::read_dir("/proc").expect("there is a list of processes");
        let stats = processes.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("stat")).ok());
        stats.filter(is_ours).count()
    };
    assert_eq!(servers(), 1);
    drop(bench);
    while servers() > 0 {
        crate::bench::pause().await;
    }
}

#[tokio::test]
#[cfg(unix)]
async fn everything_a_server_started_ends_with_it() {
    // A server that leaves something behind which detaches itself, in a shell that then becomes the server.
    let mut bench = Bench::new();
    let mut lifeline = crate::bench::Lifeline::new(&bench);
    let script = "exec 9> \"$0\"; setsid sh -c 'setsid sleep 600 & echo held >&9' < /dev/null > /dev/null; exec \"$1\"";
    let arguments = ["-c".into(), script.into(), bench.path("alive").into(), program().into()].to_vec();
    let variables = vec![("PATH".into(), std::env::var_os("PATH").expect("there is one"))];
    let transport =
        ServerTransport::Stdio { command: "/bin/sh".into(), arguments, variables, directory: None };
    let launcher = crate::bench::confined_settings().launcher;
    let settings = ServerSettings { launcher, ..ServerSettings::new("example", transport) };
    bench.toolbox.connect(settings).await.expect("the server answers");
    lifeline.until_held().await;
    let directory = bench.into_directory();
    lifeline.until_released().await;
    drop(directory);
}
