//! The files that are protected, as data: which, and why each of them is.
//!
//! The line is drawn between what runs when somebody runs the project (build files, tests, scripts) and what runs by
//! itself: when somebody enters the directory, opens it in an editor, starts an agent in it, or uses git. Names are
//! compared without regard to case, since some file systems do.

use std::ffi::OsStr;
use std::path::{Component, Path};

/// What a rule is about.
struct Rule {
    /// The last parts of a path; `*` stands for one, and a `**` at the end for any number.
    parts: &'static [&'static str],
    reason: &'static str,
}

const fn rule(parts: &'static [&'static str], reason: &'static str) -> Rule {
    Rule { parts, reason }
}

const GIT_CONFIG: &str =
    "git runs programs that its configuration names, on `git status` and most other commands";
const GIT_HOOKS: &str = "git runs the programs in it, on `git commit` and other commands";
const GIT_POINTER: &str =
    "it leads git to another repository, whose configuration names programs that git runs";
const CONFIGURATION: &str =
    "it is the configuration of throughline: backends, keys, servers that are started";
const DIRECTORY: &str = "shells run it when somebody enters the directory";
const EDITOR: &str = "editors run what it names, when the directory is opened or something is started";
const EDITOR_RC: &str = "editors run it when a file in the directory is opened";
const CONTAINER: &str = "editors run what it names when they set up a container for the directory";
const AGENT: &str = "agents run what it names when they are started in the directory";

const RULES: &[Rule] = &[
    rule(&["throughline.toml"], CONFIGURATION),
    rule(&[".envrc"], DIRECTORY),
    rule(&["mise.toml"], DIRECTORY),
    rule(&[".mise.toml"], DIRECTORY),
    rule(&[".husky", "**"], GIT_HOOKS),
    rule(&[".vscode", "tasks.json"], EDITOR),
    rule(&[".vscode", "settings.json"], EDITOR),
    rule(&[".vscode", "launch.json"], EDITOR),
    rule(&[".vscode", "mcp.json"], AGENT),
    rule(&["*.code-workspace"], EDITOR),
    rule(&[".idea", "workspace.xml"], EDITOR),
    rule(&[".idea", "externaltools.xml"], EDITOR),
    rule(&[".idea", "watchertasks.xml"], EDITOR),
    rule(&[".idea", "runconfigurations", "**"], EDITOR),
    rule(&[".run", "**"], EDITOR),
    rule(&[".zed", "tasks.json"], EDITOR),
    rule(&[".zed", "settings.json"], EDITOR),
    rule(&[".zed", "debug.json"], EDITOR),
    rule(&[".nvim.lua"], EDITOR_RC),
    rule(&[".nvimrc"], EDITOR_RC),
    rule(&[".exrc"], EDITOR_RC),
    rule(&[".vimrc"], EDITOR_RC),
    rule(&[".dir-locals.el"], EDITOR_RC),
    rule(&[".devcontainer.json"], CONTAINER),
    rule(&[".devcontainer", "**"], CONTAINER),
    rule(&[".mcp.json"], AGENT),
    rule(&[".claude", "settings.json"], AGENT),
    rule(&[".claude", "settings.local.json"], AGENT),
    rule(&[".codex", "config.toml"], AGENT),
    rule(&[".cursor", "mcp.json"], AGENT),
    rule(&[".cursor", "hooks.json"], AGENT),
    rule(&[".gemini", "settings.json"], AGENT),
];

/// Directories whose whole content is protected, to be looked into.
pub(super) const DIRECTORIES: &[&str] = &[
    ".husky",
    ".vscode",
    ".idea",
    ".run",
    ".zed",
    ".devcontainer",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
];

/// What belongs to a git directory itself, where the names of branches do not.
const GIT_FILES: &[(&str, &str)] = &[
    ("config", GIT_CONFIG),
    ("config.worktree", GIT_CONFIG),
    ("commondir", GIT_POINTER),
    ("gitdir", GIT_POINTER),
];

/// Returns why a path in the working directory is protected, if it is.
pub(super) fn reason(path: &Path) -> Option<&'static str> {
    let parts: Vec<String> = path
        .components()
        .filter_map(|it| if let Component::Normal(name) = it { Some(folded(name)) } else { None })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if let Some(at) = parts.iter().rposition(|it| *it == ".git") {
        return git_reason(&parts[at + 1..]);
    }
    RULES.iter().find(|rule| matches(rule.parts, &parts)).map(|rule| rule.reason)
}

/// Returns why something in a git directory is protected.
fn git_reason(inside: &[&str]) -> Option<&'static str> {
    let Some((name, above)) = inside.split_last() else { return Some(GIT_POINTER) };
    let of_others = matches!(above.first(), Some(&("modules" | "worktrees")));
    let holds_names = |it: &&str| matches!(*it, "refs" | "logs" | "objects");
    if above.iter().any(holds_names) || !(above.is_empty() || of_others || above[0] == "hooks") {
        return None;
    }
    if above.contains(&"hooks") || *name == "hooks" {
        return Some(GIT_HOOKS);
    }
    GIT_FILES.iter().find(|(it, _)| it == name).map(|(_, reason)| *reason)
}

/// Returns a name as it is compared: also without what some file systems ignore at its end.
fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase().trim_end_matches(['.', ' ']).to_owned()
}

fn matches(pattern: &[&str], parts: &[&str]) -> bool {
    if let Some((&"**", start)) = pattern.split_last() {
        // The directory itself, or anything in it.
        return parts.windows(start.len()).any(|window| matches_exactly(start, window));
    }
    parts.len() >= pattern.len() && matches_exactly(pattern, &parts[parts.len() - pattern.len()..])
}

fn matches_exactly(pattern: &[&str], parts: &[&str]) -> bool {
    pattern.iter().zip(parts).all(|(pattern, part)| match pattern.strip_prefix('*') {
        Some(ending) => part.ends_with(ending),
        None => pattern == part,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_by_itself_is_protected() {
        for path in [
            ".git",
            ".git/config",
            ".GIT/Config",
            ".git/config.worktree",
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/commondir",
            ".git/modules/a/b/config",
            ".git/modules/a/hooks/post-checkout",
            ".git/worktrees/x/gitdir",
            "vendor/lib/.git/config",
            "vendor/lib/.git",
            "throughline.toml",
            "sub/Throughline.TOML",
            ".envrc",
            "a/b/.envrc",
            ".vscode/tasks.json",
            "app/.vscode/settings.json",
            "x.code-workspace",
            ".idea/runConfigurations/Run.xml",
            ".husky/pre-commit",
            ".husky/_/husky.sh",
            ".git/config ",
        ] {
            assert!(reason(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn what_git_and_people_write_all_day_is_not() {
        for path in [
            ".git/HEAD",
            ".git/index",
            ".git/refs/heads/config",
            ".git/refs/heads/hooks/x",
            ".git/logs/refs/heads/config",
            ".git/objects/ab/cdef",
            ".git/modules/a/refs/heads/config",
            ".git/COMMIT_EDITMSG",
            ".gitignore",
            "config",
            "hooks/pre-commit",
            "src/main.rs",
            "settings.json",
            ".vscode/extensions.json",
            "Makefile",
            "",
        ] {
            assert_eq!(reason(Path::new(path)), None, "{path}");
        }
    }
}
