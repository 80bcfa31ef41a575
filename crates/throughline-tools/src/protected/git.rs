//! What git itself writes when it makes a repository, and may: nothing of it runs a program.

use std::path::{Component, Path};

/// Settings that a new repository has and that name no program, by section and key.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
        ],
    ),
    ("branch", &["remote", "merge", "rebase"]),
    ("extensions", &["objectformat", "refstorage", "worktreeconfig", "compatobjectformat"]),
    ("init", &["defaultbranch"]),
    ("submodule", &["active", "url"]),
    ("user", &["name", "email"]),
    ("remote", &["url", "fetch"]),
];

/// Says whether a configuration of a repository holds nothing but what is harmless. What cannot be read is not.
pub(super) fn is_harmless(config: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(config) else { return false };
    let mut section = String::new();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])).all(|line| {
        if let Some(head) = line.strip_prefix('[') {
            let Some((head, rest)) = head.split_once(']') else { return false };
            let name = head.split([' ', '"', '.']).next().unwrap_or_default();
            section = name.to_lowercase();
            return rest.trim().is_empty() && HARMLESS.iter().any(|(it, _)| *it == section);
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let known = HARMLESS.iter().find(|(it, _)| *it == section).map_or(&[][..], |(_, keys)| *keys);
        // A line that goes on, or a remote that is a program, is not read any further.
        let is_plain = !value.contains("::") && !line.ends_with('\\');
        is_plain && known.contains(&key.trim().to_lowercase().as_str())
    })
}

/// Returns the directory of hooks that a configuration names, if it does.
pub(super) fn hooks_path(config: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(config);
    let mut in_core = false;
    text.lines().map(str::trim).fold(None, |found, line| {
        if let Some(head) = line.strip_prefix('[') {
            in_core = head.trim_end_matches(']').trim().eq_ignore_ascii_case("core");
            return found;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| in_core) else { return found };
        let is_it = key.trim().eq_ignore_ascii_case("hooksPath");
        if is_it { Some(value.trim().trim_matches('"').to_owned()) } else { found }
    })
}

/// Says whether a `.git` file leads to a git directory of a submodule or a work tree of a repository at hand, whose own
/// files are looked at.
pub(super) fn is_inner_pointer(content: &[u8], root: &Path) -> bool {
    let text = String::from_utf8_lossy(content);
    let Some(target) = text.trim().strip_prefix("gitdir:").map(|it| Path::new(it.trim())) else {
        return false;
    };
    let inner = target.strip_prefix(root).unwrap_or(target);
    let mut parts = inner.components().skip_while(|it| *it == Component::ParentDir);
    let is_git = parts.find(|it| it.as_os_str() == ".git").is_some();
    let below = parts.next().is_some_and(|it| it.as_os_str() == "modules" || it.as_os_str() == "worktrees");
    let stays = parts.all(|it| matches!(it, Component::Normal(_)));
    is_git && below && stays && (target.is_relative() || target.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_init_and_clone_write_is_harmless() {
        let made = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                    [remote \"origin\"]\n\turl = ../upstream\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                    [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(is_harmless(made.as_bytes()));
        assert!(is_harmless(b""));
    }

    #[test]
    fn what_names_a_program_is_not() {
        for config in [
            "[core]\n\tfsmonitor = ./evil",
            "[core]\n\thooksPath = hooks",
            "[core] fsmonitor = ./evil",
            "[CORE]\nSSHCommand = x",
            "[alias]\n\tst = !x",
            "[include]\n\tpath = other",
            "[filter \"x\"]\n\tclean = x",
            "[remote \"o\"]\n\turl = ext::sh -c x",
            "[remote \"o\"]\n\tuploadpack = x",
            "[core]\n\tbare = false \\\n\tfsmonitor = x",
            "nonsense",
        ] {
            assert!(!is_harmless(config.as_bytes()), "{config}");
        }
    }

    #[test]
    fn a_directory_of_hooks_is_found() {
        assert_eq!(hooks_path(b"[core]\n\thooksPath = .githooks\n"), Some(".githooks".to_owned()));
        assert_eq!(hooks_path(b"[user]\n\thooksPath = x\n[core]\n\tbare = false\n"), None);
    }

    #[test]
    fn a_pointer_leads_to_what_is_looked_at() {
        let root = Path::new("/home/me/project");
        assert!(is_inner_pointer(b"gitdir: ../.git/modules/lib\n", root));
        assert!(is_inner_pointer(b"gitdir: /home/me/project/.git/worktrees/x\n", root));
        for other in ["gitdir: evil", "gitdir: /else/.git/modules/x", "gitdir: .git/modules/../../evil", "x"]
        {
            assert!(!is_inner_pointer(other.as_bytes(), root), "{other}");
        }
    }
}
