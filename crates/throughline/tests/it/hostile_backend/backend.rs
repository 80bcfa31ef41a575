//! A backend that says, byte for byte, what it is told to, and a gateway in a process of its own before it.

use crate::cli::scratch;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most that the gateway may have had in memory at any time.
const RESIDENT_MAX_KB: u64 = 300 * 1024;

/// How long anything may take before the test is taken to hang.
const HANGS_AFTER: Duration = Duration::from_secs(240);

/// What the backend does once it has read a request; what fails to be written was not wanted any more.
pub type Act = Arc<dyn Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync>;

/// The backend.
pub struct Backend {
    pub address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    act: Option<Act>,
    listing: Option<Act>,
    /// The requests that it was sent, heads and bodies.
    seen: Vec<String>,
}

impl Backend {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(socket, &state));
            }
        });
        Self { address, state }
    }

    /// Says what it does from now on.
    pub fn act(&self, act: Act) {
        self.state.lock().unwrap().act = Some(act);
    }

    /// Says what it does when it is asked for its models.
    pub fn list(&self, act: Act) {
        self.state.lock().unwrap().listing = Some(act);
    }

    /// Returns the requests since this was last asked, without those for its models.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().seen)
    }
}

fn serve(mut socket: TcpStream, state: &Mutex<State>) {
    let _ = socket.set_nodelay(true);
    let Some(request) = read_request(&mut socket) else { return };
    let act = {
        let mut state = state.lock().unwrap();
        if request.starts_with("GET") {
            state.listing.clone()
        } else {
            state.seen.push(request);
            state.act.clone()
        }
    };
    let act = act.unwrap_or_else(|| bytes("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"));
    let _ = act(&mut socket);
}

fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut seen = Vec::new();
    let mut buffer = [0; 64 * 1024];
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        match socket.read(&mut buffer).ok()? {
            0 => return None,
            count => seen.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Writes these bytes, and no more.
pub fn bytes(bytes: impl Into<Vec<u8>>) -> Act {
    let bytes = bytes.into();
    Arc::new(move |socket| socket.write_all(&bytes))
}

/// Writes a beginning, then the same again and again, for as long as anybody takes it.
pub fn forever(head: impl Into<String>, again: impl Into<Vec<u8>>) -> Act {
    let (head, again) = (head.into(), again.into());
    let block = again.repeat((64 * 1024 / again.len()).max(1));
    Arc::new(move |socket| {
        socket.write_all(head.as_bytes())?;
        loop {
            socket.write_all(&block)?;
        }
    })
}

/// Writes pieces, each by itself.
pub fn pieces(head: &'static str, pieces: Vec<Vec<u8>>) -> Act {
    Arc::new(move |socket| {
        socket.write_all(head.as_bytes())?;
        for piece in &pieces {
            socket.write_all(piece)?;
            socket.flush()?;
            // The other side sees them apart, most of the time.
            std::thread::yield_now();
        }
        Ok(())
    })
}

/// Writes a beginning, then a little every few milliseconds, until nobody listens.
pub fn trickle(head: impl Into<String>, drop: &'static str) -> Act {
    let head = head.into();
    Arc::new(move |socket| {
        socket.write_all(head.as_bytes())?;
        socket.set_read_timeout(Some(Duration::from_millis(10)))?;
        loop {
            socket.write_all(drop.as_bytes())?;
            // Waits for the other side to hang up, and if it does not, goes on.
            if let Ok(0) = socket.read(&mut [0; 64]) {
                return Ok(());
            }
        }
    })
}

/// A gateway in a process of its own.
pub struct Gateway {
    child: Child,
    pub address: String,
    pub folder: PathBuf,
}

impl Gateway {
    /// Starts one with that configuration, in a folder of that name.
    pub fn start(name: &str, toml: &str) -> Self {
        let folder = scratch(&format!("hostile-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("hostile.toml"), toml).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--config", "hostile.toml"])
            .current_dir(&folder)
            .env_clear()
            .env("HOME", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http://").map(|(_, rest)| rest.split(',').next().unwrap().trim());
        let address = address.unwrap_or_else(|| panic!("it did not start: {line:?}")).to_owned();
        Self { child, address, folder }
    }

    /// Sends a request and returns status, head and body, as far as they came.
    pub fn ask(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(HANGS_AFTER)).unwrap();
        let method = if body.is_empty() { "GET" } else { "POST" };
        let mut head = format!(
            "{method} {path} HTTP/1.0\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        headers.iter().for_each(|(name, value)| writeln!(head, "{name}: {value}\r").unwrap());
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        assert!(read.is_ok() || !answer.is_empty(), "no answer to {path}: {read:?}");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head.to_owned(), body.to_owned())
    }

    pub fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.ask(path, &[], "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Asserts that it lives and has never taken more memory than it may.
    pub fn assert_small(&mut self, after: &str) {
        assert!(self.child.try_wait().unwrap().is_none(), "the gateway died of {after}");
        if cfg!(target_os = "linux") {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
            if std::env::var_os("HOSTILE_PEAKS").is_some() {
                // For whoever wants to know how much room there is.
                std::io::stderr().write_all(format!("{after}: {} MB\n", peak / 1024).as_bytes()).unwrap();
            }
            assert!(peak < RESIDENT_MAX_KB, "{after}: the gateway took {} MB", peak / 1024);
        }
    }

    /// Returns everything that it has written: the log, and the history with what passed.
    pub fn written(&self) -> String {
        let mut all = std::fs::read_to_string(self.folder.join("log")).unwrap();
        let listed = self.json("/api/conversations");
        let conversations = listed["conversations"].as_array().unwrap_or_else(|| panic!("{listed}"));
        for conversation in conversations {
            let id = conversation["id"].as_str().unwrap();
            for part in ["", "/frames", "/sent/1", "/seen/1"] {
                all += &self.ask(&format!("/api/conversations/{id}{part}"), &[], "").2;
            }
        }
        all
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
