//! A directory to work on, and a toolbox that stands on it.

use serde_json::Value;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use throughline_tools::{
    Context, Launcher, Limits, Outcome, ProtectedPath, Shell, ShellSettings, Toolbox, Workdir,
};

/// A working directory in a directory of its own, so that there is an outside to escape to.
pub struct Bench {
    outer: TempDir,
    pub toolbox: Toolbox,
}

impl Bench {
    /// Returns a bench whose commands are confined by nothing.
    pub fn new() -> Self {
        Self::with(Limits::default(), Shell::direct().expect("the bench can be set up"))
    }

    /// Returns a bench whose commands run below the supervisor.
    pub async fn confined() -> Self {
        Self::with_settings(confined_settings()).await
    }

    pub async fn with_settings(settings: ShellSettings) -> Self {
        Self::with(Limits::default(), Shell::new(settings).await.expect("the bench can be set up"))
    }

    pub fn with(limits: Limits, shell: Shell) -> Self {
        let outer = tempfile::tempdir().expect("the bench can be set up");
        fs::create_dir(outer.path().join("work")).expect("the bench can be set up");
        let workdir = Workdir::open(&outer.path().join("work")).expect("the bench can be set up");
        Self { toolbox: Toolbox::new(workdir, limits, shell), outer }
    }

    /// Protects further paths.
    pub fn protecting(self, paths: impl IntoIterator<Item = ProtectedPath>) -> Self {
        Self { toolbox: self.toolbox.protecting(paths), ..self }
    }

    /// Drops the toolbox and keeps the directory.
    #[cfg(feature = "mcp")]
    pub fn into_directory(self) -> TempDir {
        self.outer
    }

    /// Returns a path beside the working directory.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join("work").join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("the bench can be set up")).expect("the bench can be set up");
        fs::write(path, content).expect("the bench can be set up");
        self
    }

    pub fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the bench can be set up")
    }

    /// Returns the names in a directory.
    pub fn names(&self, name: &str) -> Vec<String> {
        names(&self.path(name))
    }

    /// Checks and runs a call; one that is refused is an outcome as well.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.call_in(tool, arguments, &Context::default()).await
    }

    pub async fn call_in(&self, tool: &str, arguments: Value, context: &Context) -> Outcome {
        match self.toolbox.check(tool, &arguments.to_string()) {
            Ok(call) => self.toolbox.run(&call, context).await,
            Err(refused) => refused.outcome(),
        }
    }

    /// Runs a call that must succeed, and returns what the model is told.
    pub async fn done(&self, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await;
        assert!(outcome.is_done(), "{}", outcome.output);
        serde_json::from_str(&outcome.output).expect("the bench can be set up")
    }

    /// Runs a call that must fail, and returns the reason.
    pub async fn failed(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert!(!outcome.is_done(), "{}", outcome.output);
        told(&outcome)["error"].as_str().expect("the bench can be set up").to_owned()
    }
}

/// Returns settings with the supervisor as launcher.
pub fn confined_settings() -> ShellSettings {
    let launcher = Launcher::Confined {
        program: PathBuf::from(env!("CARGO_BIN_EXE_throughline-shell")),
        arguments: Vec::new(),
    };
    ShellSettings { launcher, ..ShellSettings::default() }
}

/// Returns what the model is told.
pub fn told(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.output).expect("the bench can be set up")
}

pub fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("the bench can be set up");
    let mut names: Vec<String> = entries
        .map(|it| {
            it.expect("the bench can be set up").file_name().into_string().expect("the bench can be set up")
        })
        .collect();
    names.sort();
    names
}

/// Returns the path of an example of this crate, which is built beside this binary.
pub fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this binary has a path");
    let folder = own.parent().and_then(|it| it.parent()).expect("it is in deps");
    folder.join("examples").join(name)
}

/// Leaves the processor to what is waited for.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// A pipe, `alive` in the working directory, that is held open by processes of a command for as long as they live. Their
/// ids would say nothing: they are those of another namespace.
pub struct Lifeline {
    end: fs::File,
    was_held: bool,
}

impl Lifeline {
    pub fn new(bench: &Bench) -> Self {
        let path = bench.path("alive");
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let end = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path).expect("a pipe");
        Self { end, was_held: false }
    }

    /// Waits until somebody has written to it.
    pub async fn until_held(&mut self) {
        while !self.was_held() {
            pause().await;
        }
    }

    pub fn was_held(&mut self) -> bool {
        self.is_released();
        self.was_held
    }

    /// Waits until nobody holds it any more; a test that waits too long is stopped.
    pub async fn until_released(&mut self) {
        while !self.is_released() {
            pause().await;
        }
    }

    fn is_released(&mut self) -> bool {
        let mut bytes = [0; 64];
        match self.end.read(&mut bytes) {
            Ok(0) => true,
            Ok(_) => {
                self.was_held = true;
                false
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                false
            }
        }
    }
}
