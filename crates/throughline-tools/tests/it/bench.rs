//! A directory to work on, and a toolbox that stands on it.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use throughline_tools::{Context, Launcher, Limits, Outcome, Shell, ShellSettings, Toolbox, Workdir};

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
