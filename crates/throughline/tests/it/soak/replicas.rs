//! Three gateways over one database, and the simulated backend behind them.

use super::Plan;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// How many there are.
pub const COUNT: usize = 3;

/// How far the clock of each is off, in milliseconds: whole seconds.
const CLOCKS_OFF: [i64; COUNT] = [0, 20_000, -20_000];

/// The library that puts it off.
const CLOCK: &str = "clock.so";

/// The gateways, and who answers them.
pub struct Replicas {
    folder: PathBuf,
    url: String,
    pub addresses: Vec<String>,
    children: Vec<Mutex<Child>>,
    backend: Child,
}

impl Replicas {
    /// Starts them, each at an address that it keeps.
    pub fn start(plan: &Plan) -> Self {
        let (folder, url) = (&plan.folder, &plan.url);
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).unwrap();
        make_clock(folder);
        let (backend, address) =
            announced(command(folder).args(["sim", "--lenient", "--listen", "127.0.0.1:0"]));
        let room = |dialect: &str| {
            format!(
                "[[backends]]\nname = \"{dialect}\"\ndialect = \"{dialect}\"\nbase_url = \"http://{address}/v1\"\n\
                 api_key = \"none\"\ndefault_model = \"m\"\n"
            )
        };
        let rooms: String = ["chat", "messages", "responses"].map(room).concat();
        std::fs::write(
            folder.join("throughline.toml"),
            format!("[store]\nurl = \"env:SOAK_STORE\"\n{rooms}"),
        )
        .unwrap();
        let free: Vec<TcpListener> = (0..COUNT).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<String> = free.iter().map(|free| free.local_addr().unwrap().to_string()).collect();
        drop(free);
        let started = (0..COUNT).map(|number| Mutex::new(serve(folder, url, &addresses[number], number)));
        let children = started.collect();
        Self { folder: folder.clone(), url: url.clone(), addresses, children, backend }
    }

    /// Kills one with SIGKILL, and starts it again.
    pub fn kill(&self, number: usize) -> bool {
        let mut child = self.children[number].lock().unwrap_or_else(PoisonError::into_inner);
        let killed = child.kill().is_ok() && child.wait().is_ok();
        *child = serve(&self.folder, &self.url, &self.addresses[number], number);
        killed
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        for child in &self.children {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = self.backend.kill();
        let _ = self.backend.wait();
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("THROUGHLINE_CONFIG", "throughline.toml")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn make_clock(folder: &Path) {
    let source = folder.join("clock.c");
    std::fs::write(&source, include_str!("clock.c")).unwrap();
    let library = folder.join(CLOCK);
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
    assert!(made.success(), "cc has not made {}", library.display());
}

#[expect(clippy::disallowed_methods, reason = "a database that is away is asked again after a while")]
fn serve(folder: &Path, url: &str, address: &str, number: usize) -> Child {
    loop {
        let mut command = command(folder);
        command.args(["serve", "--listen", address]).env("SOAK_STORE", url);
        command
            .env("LD_PRELOAD", folder.join(CLOCK))
            .env("SOAK_CLOCK_OFF_MS", CLOCKS_OFF[number].to_string());
        let (mut child, said) = announced(&mut command);
        if !said.is_empty() {
            return child;
        }
        // The database is away just now; whoever starts gateways in earnest tries again, too.
        let _ = child.wait();
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Starts a program that says its address when it is ready; nothing if it ended instead.
fn announced(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address =
        line.split_once("http://").map(|(_, rest)| rest.split([',', '/', ' ']).next().unwrap_or_default());
    (child, address.unwrap_or_default().trim().to_owned())
}
