//! Where agents keep their sessions, and what is there.

use crate::exit::CommandError;
use crate::output;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use throughline_carry::Agent;

/// A session that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Whose it is.
    pub agent: Agent,
    /// Where.
    pub place: Place,
    /// When it was last changed.
    pub modified: SystemTime,
    /// How many bytes it has; none where it is not a file of its own.
    pub size: Option<u64>,
}

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file of its own, line by line or one document.
    File(PathBuf),
    /// The files of older versions of opencode: the session's, below the folder that has all of them.
    Storage {
        /// The folder.
        storage: PathBuf,
        /// The file with the facts.
        info: PathBuf,
    },
    /// In opencode's database, from which its own command takes it.
    Database(String),
}

/// The sessions of an agent, as far as they could be looked at.
#[derive(Debug, Default)]
pub struct Sessions {
    /// Those that are there, the latest first.
    pub found: Vec<Found>,
    /// Why there may be others.
    pub missed: Option<CommandError>,
}

/// Returns the folder that an agent keeps its sessions in, as its own settings have it.
pub fn home(agent: Agent) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = std::env::home_dir();
    let below = |folder: &str| user.as_ref().map(|user| user.join(folder));
    match agent {
        Agent::ClaudeCode => {
            Some(variable("CLAUDE_CONFIG_DIR").or_else(|| below(".claude"))?.join("projects"))
        }
        Agent::Codex => Some(variable("CODEX_HOME").or_else(|| below(".codex"))?.join("sessions")),
        Agent::Opencode => {
            Some(variable("XDG_DATA_HOME").or_else(|| below(".local/share"))?.join("opencode"))
        }
        Agent::VsCode => editors().into_iter().next(),
    }
}

/// Returns the folders in which VS Code and its kin keep what belongs to the user, whether they are there or not.
fn editors() -> Vec<PathBuf> {
    const NAMES: [&str; 3] = ["Code", "Code - Insiders", "VSCodium"];
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = std::env::home_dir();
    let below = |folder: &str| user.as_ref().map(|user| user.join(folder));
    let usual = if cfg!(target_os = "macos") {
        below("Library/Application Support")
    } else if cfg!(windows) {
        variable("APPDATA")
    } else {
        variable("XDG_CONFIG_HOME").or_else(|| below(".config"))
    };
    let desktop = variable("VSCODE_APPDATA").or(usual);
    let mut folders: Vec<PathBuf> =
        desktop.iter().flat_map(|data| NAMES.map(|name| data.join(name).join("User"))).collect();
    // Those that run on a server.
    folders
        .extend([".vscode-server/data/User", ".local/share/code-server/User"].into_iter().filter_map(below));
    folders
}

/// Returns the sessions of an agent. One that was never used has none.
pub fn sessions(agent: Agent) -> Sessions {
    let Some(home) = home(agent) else { return Sessions::default() };
    let mut sessions = match agent {
        Agent::ClaudeCode | Agent::Codex => match files(agent, &home) {
            Ok(found) => Sessions { found, missed: None },
            Err(error) => Sessions { found: Vec::new(), missed: Some(error) },
        },
        Agent::Opencode => super::opencode::sessions(&home),
        Agent::VsCode => in_editors(),
    };
    sessions
        .found
        .sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.place.name().cmp(&b.place.name())));
    sessions
}

/// Returns the sessions of all editors: each workspace has its own, and so have windows without one.
fn in_editors() -> Sessions {
    let mut sessions = Sessions::default();
    for folder in editors() {
        for below in ["workspaceStorage", "globalStorage"] {
            match files(Agent::VsCode, &folder.join(below)) {
                Ok(found) => sessions.found.extend(found),
                Err(error) => sessions.missed = Some(error),
            }
        }
    }
    sessions
}

/// Returns the sessions of several agents. What cannot be looked at does not keep out the rest, and is said.
pub fn of_all(agents: &[Agent]) -> Result<Vec<Found>, CommandError> {
    let (mut all, mut missed) = (Vec::new(), Vec::new());
    for agent in agents {
        let sessions = sessions(*agent);
        all.extend(sessions.found);
        missed.extend(sessions.missed.map(|error| (agent, error)));
    }
    if all.is_empty()
        && agents.len() == 1
        && let Some((_, error)) = missed.pop()
    {
        return Err(error);
    }
    for (agent, error) in missed {
        output::remark(&format!("{agent}: {error}"));
    }
    Ok(all)
}

/// Returns the session files of an agent in a folder and those below it. Links may lead in circles: each folder is
/// looked at once, and by its own name where it has one here.
pub fn files(agent: Agent, folder: &Path) -> Result<Vec<Found>, CommandError> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(folder) = folders.pop_front() {
        if folder.canonicalize().is_ok_and(|real| !seen.insert(real)) {
            continue;
        }
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|source| failed(&folder, source))?,
        };
        for entry in entries {
            let path = entry.map_err(|source| failed(&folder, source))?.path();
            if path.is_symlink() && path.is_dir() {
                folders.push_back(path);
            } else if path.is_dir() {
                folders.push_front(path);
            } else if is_session(agent, &path) {
                found.extend(file(agent, path));
            }
        }
    }
    Ok(found)
}

/// Returns a file as a session; nothing, if it is gone by now.
pub fn file(agent: Agent, path: PathBuf) -> Option<Found> {
    let facts = std::fs::metadata(&path).ok()?;
    let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(Found { agent, place: Place::File(path), modified, size: Some(facts.len()) })
}

/// Finds the session that the user means: a file, or an id that the name of one holds.
pub fn named(agent: Agent, name: &str) -> Result<Vec<Found>, CommandError> {
    let path = PathBuf::from(name);
    if path.is_dir() {
        return files(agent, &path);
    }
    if path.exists() {
        return Ok(file(agent, path).into_iter().collect());
    }
    let Sessions { found, missed } = sessions(agent);
    let fitting: Vec<Found> = found.into_iter().filter(|found| found.place.name().contains(name)).collect();
    match fitting.len() {
        0 if missed.is_some() => missed.map_or(Ok(Vec::new()), Err),
        0 => Err(CommandError::no(format!("no file, and no session of {agent}, is called `{name}`"))
            .hint(format!("`throughline import {agent}` lists them"))),
        1 => Ok(fitting),
        // The files of its sub-agents are called alike.
        _ if fitting.iter().all(|found| found.place.belongs_to(name)) => Ok(fitting),
        _ => Err(CommandError::no(format!("several sessions of {agent} fit `{name}`; give more of the id"))),
    }
}

impl Place {
    /// Returns what the session is called: its file, or its id.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Storage { info, .. } => info.display().to_string(),
            Self::Database(id) => id.clone(),
        }
    }

    /// Says whether it is a sub-agent's, which is listed with its session and not for itself.
    pub fn is_sub_agent(&self) -> bool {
        matches!(self, Self::File(path) if stem(path).starts_with("agent-"))
    }

    fn belongs_to(&self, name: &str) -> bool {
        self.is_sub_agent() || matches!(self, Self::File(path) if stem(path).contains(name))
    }
}

/// Returns the name of a file without its folder and its ending.
pub fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_session(agent: Agent, path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match agent {
        Agent::ClaudeCode => name.ends_with(".jsonl"),
        Agent::Codex => name.starts_with("rollout-") && (name.ends_with(".jsonl") || name.ends_with(".json")),
        Agent::Opencode => name.ends_with(".json"),
        Agent::VsCode => {
            let folder = path.parent().and_then(Path::file_name);
            let is_kept =
                ["chatSessions", "emptyWindowChatSessions"].iter().any(|kept| folder == Some(kept.as_ref()));
            is_kept && (name.ends_with(".json") || name.ends_with(".jsonl"))
        }
    }
}

pub fn failed(path: &Path, source: std::io::Error) -> CommandError {
    CommandError::file(path.display(), source)
}
