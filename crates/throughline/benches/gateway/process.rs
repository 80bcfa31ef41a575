//! The processes of the bench, and what the system says of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that tells a process of this program which part it plays.
pub const ROLE: &str = "THROUGHLINE_BENCH_ROLE";

/// The variable that tells a proxy where the mock backend is.
pub const UPSTREAM: &str = "THROUGHLINE_BENCH_UPSTREAM";

/// The variable that tells the durable proxy where its log is.
pub const LOG: &str = "THROUGHLINE_BENCH_LOG";

/// Everybody who takes part.
pub struct Cast {
    pub targets: Vec<Target>,
    /// How long the gateway took from its start to the line that says it is ready.
    pub ready: Duration,
    directory: PathBuf,
    _mock: Process,
}

/// Somebody who is sent requests.
pub struct Target {
    pub name: &'static str,
    /// Where it listens.
    pub address: String,
    /// Whether it is the gateway, whose paths are those of the dialects.
    pub is_gateway: bool,
    process: Option<Process>,
}

struct Process(Child);

impl Cast {
    /// Starts everybody.
    pub async fn start() -> Self {
        let directory = std::env::temp_dir().join(format!("throughline-bench-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (mock, upstream) = role("mock", &[]);
        let log = directory.join("durable.log");
        let log = log.to_str().unwrap();
        let proxy = |name: &'static str| {
            let (process, address) = role(name, &[(UPSTREAM, &upstream), (LOG, log)]);
            Target { name, address, is_gateway: false, process: Some(process) }
        };
        let direct = Target { name: "direct", address: upstream.clone(), is_gateway: false, process: None };
        let (plain, durable) = (proxy("plain"), proxy("durable"));
        let started = Instant::now();
        let (process, address) = gateway(&directory, &upstream);
        let ready = started.elapsed();
        let gateway = Target { name: "throughline", address, is_gateway: true, process: Some(process) };
        Self { targets: vec![direct, plain, durable, gateway], ready, directory, _mock: mock }
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        self.targets.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Target {
    /// Returns the CPU seconds that the target's threads have used; none where nothing stands between.
    pub fn cpu_seconds(&self) -> f64 {
        let Some(process) = &self.process else { return 0.0 };
        let of_thread = |thread: fs::DirEntry| {
            let stat = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            stat.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
        };
        let threads = fs::read_dir(format!("/proc/{}/task", process.0.id())).unwrap();
        Duration::from_nanos(threads.flatten().map(of_thread).sum()).as_secs_f64()
    }

    /// Returns the memory that the target holds now, in megabytes.
    pub fn resident_mb(&self) -> f64 {
        let Some(process) = &self.process else { return 0.0 };
        let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kilobytes: f64 = line.split_whitespace().next().unwrap_or("0").parse().unwrap();
        kilobytes / 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this program in another part, and returns where it listens.
fn role(name: &str, variables: &[(&str, &str)]) -> (Process, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, name).envs(variables.iter().copied());
    begin(command, str::to_owned)
}

/// Starts the gateway as users do, with a history of its own.
fn gateway(directory: &std::path::Path, upstream: &str) -> (Process, String) {
    let mut config = String::from("listen = \"127.0.0.1:0\"\n");
    for answer in crate::mock::ANSWERS {
        for dialect in ["messages", "chat"] {
            config.push_str(&format!(
                "[[backends]]\nname = \"{dialect}-{answer}\"\ndialect = \"{dialect}\"\n\
                 base_url = \"http://{upstream}/{answer}/v1\"\nnative_tool_history = \"always\"\n"
            ));
        }
    }
    let file = directory.join("throughline.toml");
    fs::write(&file, config).unwrap();
    let log = fs::File::create(directory.join("throughline.log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.arg("serve").arg("--config").arg(file).arg("--data").arg(directory);
    command.stderr(log);
    begin(command, |line| {
        let after = line.split_once("http://").expect("a line that says where").1;
        after.split([',', ' ']).next().unwrap_or_default().to_owned()
    })
}

/// Starts a process and waits for the line in which it says where it listens.
fn begin(mut command: Command, address: impl Fn(&str) -> String) -> (Process, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    (Process(child), address(line.trim()))
}
