//! What commands are given of our own variables: a list of what is harmless, and nothing else.
//!
//! Keys of backends are variables too, so what is not known to be harmless is not passed on.

use super::ShellSettings;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What is passed on; a `*` at the end stands for any ending.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SOURCE_DATE_EPOCH",
];

/// What is the same for every command: no colours, no pagers, no questions.
const SET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Returns the variables for a command.
pub(super) fn variables(settings: &ShellSettings, temp: &Path) -> Vec<(OsString, OsString)> {
    let is_in = |name: &str, list: &[String]| list.iter().any(|it| matches(it, name));
    let passed = settings.variables.iter().filter(|(name, _)| {
        let Some(name) = name.to_str() else { return false };
        let wanted = PASSED.iter().any(|it| matches(it, name)) || is_in(name, &settings.pass);
        wanted && !is_in(name, &settings.withheld)
    });
    let set = SET.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    passed.cloned().chain(set).chain([("TMPDIR".into(), temp.into())]).collect()
}

/// Returns bash, or sh where there is none.
pub(super) fn find_shell(variables: &[(OsString, OsString)]) -> Option<PathBuf> {
    let directories: Vec<PathBuf> = path(variables).collect();
    let usual = ["/bin", "/usr/bin"].map(PathBuf::from);
    ["bash", "sh"].iter().find_map(|name| {
        directories
            .iter()
            .chain(&usual)
            .map(|directory| directory.join(name))
            .find(|program| program.is_file())
    })
}

/// Returns the directories of `PATH` that are named from the root.
pub(super) fn path(variables: &[(OsString, OsString)]) -> impl Iterator<Item = PathBuf> {
    let list = value(variables, "PATH").map(OsStr::to_owned).unwrap_or_default();
    std::env::split_paths(&list).filter(|it| it.is_absolute()).collect::<Vec<_>>().into_iter()
}

/// Returns what programs of the user's own need to be read: tool chains and their settings, and no credentials.
pub(super) fn toolchains(variables: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let home = value(variables, "HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let at = |name: &str, usual: &str| {
        let named = value(variables, name).map(PathBuf::from).filter(|it| it.is_absolute());
        named.or_else(|| Some(home.as_ref()?.join(usual)))
    };
    let mut paths: Vec<PathBuf> = path(variables).collect();
    if let Some(cargo) = at("CARGO_HOME", ".cargo") {
        // Not the directory itself, which holds the registry's token.
        let parts = ["bin", "registry", "git", "config.toml", "config", "env"];
        paths.extend(parts.iter().map(|part| cargo.join(part)));
    }
    let whole = [
        ("RUSTUP_HOME", ".rustup"),
        ("NVM_DIR", ".nvm"),
        ("PYENV_ROOT", ".pyenv"),
        ("RBENV_ROOT", ".rbenv"),
        ("GOPATH", "go"),
        ("GOROOT", ".go"),
        ("JAVA_HOME", ".jdk"),
        ("VIRTUAL_ENV", ".venv"),
        ("CONDA_PREFIX", ".conda"),
    ];
    paths.extend(whole.iter().filter_map(|(name, usual)| at(name, usual)));
    if let Some(home) = &home {
        let settings = [".gitconfig", ".config/git/config", ".config/git/ignore", ".local/bin", ".local/lib"];
        paths.extend(settings.iter().map(|part| home.join(part)));
    }
    paths
}

fn value<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    variables.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_os_str())
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
