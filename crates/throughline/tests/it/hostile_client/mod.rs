//! Clients that mean harm, against the built program: what they get, what everybody else gets meanwhile, and how
//! much memory it takes.
//!
//! Each test starts a gateway of its own in front of a backend that answers at once. Whatever a client does, the
//! gateway lives, honest clients are served, nothing is answered with a 5xx but the documented 503, nothing panics, and
//! the peak of the resident size stays below [`PEAK_KB_MAX`].

mod bodies;
mod growth;
mod heads;
mod http2;
mod readers;

use crate::cli::scratch;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The peak of the resident size that no client may push the gateway beyond.
const PEAK_KB_MAX: u64 = 300 * 1024;

/// A client waits no longer than this for anything. Only what hangs takes so long.
const PATIENCE: Duration = Duration::from_secs(50);

/// The backend's whole answer.
const ANSWER: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// A gateway of the built program, and its backend.
pub struct Gateway {
    child: Child,
    folder: PathBuf,
    pub address: String,
    backend: Arc<AtomicUsize>,
}

/// An answer over HTTP/1.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Gateway {
    /// Starts a gateway with further lines of configuration.
    pub fn start(name: &str, lines: &str) -> Self {
        let (backend, port) = backend();
        let folder = scratch(&format!("hostile-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "{lines}\n[[backends]]\nname = \"one\"\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
             api_key = \"none\"\ndefault_model = \"m\"\ncontext_window = 1000000000\n"
        );
        std::fs::write(folder.join("gateway.toml"), config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--config", "gateway.toml"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("it did not start: {line:?}"));
        let address = rest.split(',').next().unwrap().trim().to_owned();
        Self { child, folder, address, backend }
    }

    /// Opens a connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request with a body, as an ordinary client does.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(self.head("POST", path, headers, body.len()).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        Answer::read(&mut stream).unwrap_or_else(|error| panic!("no answer from {path}: {error}"))
    }

    /// Sends a request without a body.
    pub fn get(&self, path: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(self.head("GET", path, &[], 0).as_bytes()).unwrap();
        Answer::read(&mut stream).unwrap_or_else(|error| panic!("no answer from {path}: {error}"))
    }

    /// Returns the head of a request.
    pub fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\n{headers}\r\n",
            self.address
        )
    }

    /// Has an honest client be served: what it asks for, and whether the gateway is well.
    pub fn serve_the_honest(&self) {
        let before = self.asked();
        let answer = self.post("/v1/chat/completions", &[], request("Hello.").as_bytes());
        assert_eq!(answer.status, 200, "an honest client was told: {answer:?}");
        assert!(self.asked() > before);
        assert_eq!(self.get("/healthz").status, 200);
    }

    /// Returns how many requests the backend was asked.
    pub fn asked(&self) -> usize {
        self.backend.load(Ordering::SeqCst)
    }

    /// Returns a conversation of the record once its last exchange has ended.
    pub fn ended(&self, conversation: &str) -> Value {
        loop {
            let answer = self.get(&format!("/api/conversations/{conversation}"));
            let read: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            if read["exchanges"][0]["ended"].is_string() {
                return read;
            }
        }
    }

    /// Returns how often something was refused for a reason.
    pub fn refused(&self, reason: &str) -> u64 {
        let metrics = self.get("/metrics").body;
        let start = format!("throughline_refused_total{{reason=\"{reason}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok()).unwrap_or_default()
    }

    /// Asserts that the gateway came through: it lives, serves, has not panicked, and never was large.
    pub fn came_through(mut self) {
        self.serve_the_honest();
        assert_eq!(self.child.try_wait().unwrap(), None, "the gateway is gone");
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap();
        assert!(!log.contains("panicked"), "{log}");
        // Only Linux tells.
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())) {
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
            assert!(peak < PEAK_KB_MAX, "the gateway was {} MB large", peak / 1024);
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Answer {
    /// Reads an answer, up to the end that its head announces.
    pub fn read(stream: &mut impl Read) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        loop {
            let before = head.len();
            reader.read_line(&mut head)?;
            if head.len() == before {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if head.ends_with("\r\n\r\n") {
                break;
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let mut answer = Self { status, head, body: String::new() };
        let length =
            answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(u64::MAX);
        reader.take(length).read_to_string(&mut answer.body)?;
        Ok(answer)
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Asserts that it is one that a client may be given: no 5xx, but for the 503 that says when to come again.
    pub fn is_orderly(&self) {
        let is_busy = self.status == 503 && self.header("retry-after").is_some();
        assert!((200..500).contains(&self.status) || is_busy, "{self:?}");
    }
}

/// Returns a request that says something.
pub fn request(text: &str) -> String {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
}

/// Reads until the other side closes the connection, in whichever way.
pub fn read_until_closed(stream: &mut TcpStream) {
    match io::copy(stream, &mut io::sink()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "it was not closed: {error}"),
    }
}

/// Starts a backend that answers whatever it is asked, and a streamed request without an end.
fn backend() -> (Arc<AtomicUsize>, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let counter = Arc::clone(&counter);
            thread::spawn(move || while answer_one(&stream, &counter).is_ok() {});
        }
    });
    (asked, port)
}

fn answer_one(mut stream: &TcpStream, asked: &AtomicUsize) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line, mut is_post) = (0, String::new(), false);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        is_post |= line.starts_with("POST");
        if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap_or_default();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut opening = Vec::new();
    (&mut reader).take(length.min(4096)).read_to_end(&mut opening)?;
    io::copy(&mut reader.take(length - opening.len() as u64), &mut io::sink())?;
    if !is_post {
        let body = r#"{"object":"list","data":[]}"#;
        return write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    }
    asked.fetch_add(1, Ordering::SeqCst);
    if String::from_utf8_lossy(&opening).contains(r#""stream":true"#) {
        return talk_without_end(stream);
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    )
}

fn talk_without_end(mut stream: &TcpStream) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let piece = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": "still talking ".repeat(512)}, "finish_reason": null}]});
    let event = format!("data: {piece}\n\n");
    loop {
        stream.write_all(event.as_bytes())?;
    }
}
