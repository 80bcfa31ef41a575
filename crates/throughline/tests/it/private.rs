//! What this program writes is for its owner alone, whatever the umask; and what it only passes on is gone afterwards.
#![cfg(unix)]

use crate::cli::{Run, scratch, throughline};
use crate::sessions::{CLAUDE, ID, User};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command of that user's without a umask, so that nothing is private by accident.
fn run_open(user: &User, args: &[&str]) -> Run {
    let output = open(user, args).output().unwrap();
    Run {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

fn open(user: &User, args: &[&str]) -> Command {
    let inner = user.command("data", args);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(inner.get_program());
    // Some know no history.
    let knows_none = ["convert", "compact", "brief"].contains(&args[0]);
    command.args(inner.get_args().take(if knows_none { args.len() } else { usize::MAX }));
    command.current_dir(&user.folder).env_clear().stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// Returns everything below a folder, with its mode.
fn below(folder: &Path) -> Vec<(PathBuf, u32, bool)> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return all };
    // What is gone by the time it is looked at was not left behind.
    for entry in entries.flatten() {
        let Ok(facts) = entry.metadata() else { continue };
        all.push((entry.path(), facts.permissions().mode() & 0o777, facts.is_dir()));
        if facts.is_dir() {
            all.extend(below(&entry.path()));
        }
    }
    all
}

/// Asserts that all below these places is for its owner alone; what a test has put there itself is not looked at.
fn assert_private(user: &User, places: &[&str]) {
    let own = user.session();
    for place in places {
        let place = user.folder.join(place);
        let facts = std::fs::metadata(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
        let all = [(place.clone(), facts.permissions().mode() & 0o777, facts.is_dir())];
        for (path, mode, is_folder) in all.into_iter().chain(below(&place)).filter(|(path, ..)| *path != own)
        {
            let wanted = if is_folder { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "{}: {mode:o}", path.display());
        }
    }
}

#[test]
fn whatever_is_written_is_for_its_owner_alone() {
    let user = User::new("private");
    std::fs::write(user.session(), CLAUDE).unwrap();
    // It shows what it is given, and who may read it.
    user.program(
        "opencode",
        "/bin/ls -ld \"$2\" > seen; /bin/ls -ld \"${2%/*}\" >> seen; /bin/cat \"$2\" > /dev/null",
    );
    std::fs::create_dir_all(user.folder.join("opencode")).unwrap();
    let request = r#"{"model":"m","messages":[{"role":"user","content":"words of a user"}]}"#;
    std::fs::write(user.folder.join("request.json"), request).unwrap();
    let commands: [&[&str]; 9] = [
        &["import", "claude-code", "--latest"],
        &["export", ID, "--to", "markdown", "--output", "written.md"],
        &["export", ID, "--to", "jsonl", "--output", "written.jsonl"],
        &["store", "backup", "backup.db"],
        &["carry", ID, "--to", "codex", "--report", "carried.txt"],
        &["carry", ID, "--to", "opencode"],
        &["convert", "--from", "chat", "--to", "messages", "--report", "converted.txt", "request.json"],
        &["compact", "--dialect", "chat", "--budget", "1000", "--report", "compacted.txt", "request.json"],
        &["brief", "--dialect", "chat", "--report", "briefed.txt", "request.json"],
    ];
    for args in commands {
        let run = run_open(&user, args);
        assert_eq!(run.code, 0, "{args:?}: {}{}", run.stdout, run.stderr);
    }
    assert_private(
        &user,
        &[
            "data",
            "written.md",
            "written.jsonl",
            "backup.db",
            "codex",
            "carried.txt",
            "converted.txt",
            "compacted.txt",
            "briefed.txt",
        ],
    );
    let seen = std::fs::read_to_string(user.folder.join("seen")).unwrap();
    let modes: Vec<&str> = seen.lines().map(|line| &line[..10]).collect();
    assert_eq!(modes, ["-rw-------", "drwx------"], "{seen}");
    let left = below(&user.folder).into_iter().filter(|(path, ..)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("throughline-") || name.starts_with(".throughline-") || name.starts_with("ses_")
    });
    assert_eq!(left.count(), 0, "nothing is left in the temporary directory");
}

#[test]
fn a_copy_that_is_passed_on_is_gone_when_that_fails_or_is_called_off() {
    let user = User::new("passed-on");
    std::fs::write(user.session(), CLAUDE).unwrap();
    let left = || {
        let all = below(&user.folder).into_iter().map(|(path, ..)| path);
        all.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("throughline-")).count()
    };
    user.program("opencode", "exit 3");
    assert_eq!(run_open(&user, &["carry", "claude-code", "--to", "opencode"]).code, 1);
    assert_eq!(left(), 0);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // Says that it has been started, and then does not end by itself.
        let mut carry = open(&user, &["carry", "claude-code", "--to", "opencode"]);
        let fifo = user.folder.join("started");
        let _ = std::fs::remove_file(&fifo);
        user.program("opencode", &format!("echo started > {}; exec /bin/sleep 20", fifo.display()));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut child = carry.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(std::fs::File::open(&fifo).unwrap()).read_line(&mut line).unwrap();
        assert_eq!(left(), 1, "it is there while it is read");
        let id = child.id().to_string();
        assert!(Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(left(), 0, "{signal}");
    }
}

#[test]
fn a_link_in_the_way_is_not_written_through() {
    let user = User::new("link");
    std::fs::write(user.session(), CLAUDE).unwrap();
    user.shown(&["import", "claude-code", "--latest"]);
    std::fs::write(user.folder.join("precious"), "mine").unwrap();
    std::os::unix::fs::symlink("precious", user.folder.join("out.md")).unwrap();
    user.shown(&["export", ID, "--to", "markdown", "--output", "out.md"]);
    assert_eq!(std::fs::read_to_string(user.folder.join("precious")).unwrap(), "mine");
    std::os::unix::fs::symlink("precious", user.folder.join("copy.db.partial")).unwrap();
    user.shown(&["store", "backup", "copy.db"]);
    assert_eq!(std::fs::read_to_string(user.folder.join("precious")).unwrap(), "mine");
}

#[test]
fn the_demo_keeps_its_folder_to_itself() {
    let folder = scratch("demo-private");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut demo = Command::new("/bin/sh")
        .args(["-c", "umask 000; exec \"$0\" demo --no-browser"])
        .arg(env!("CARGO_BIN_EXE_throughline"))
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("http://"));
    let places = below(&folder);
    let top = places.iter().find(|(path, ..)| path.parent() == Some(folder.as_path())).unwrap();
    assert_eq!(top.1, 0o700, "{places:?}");
    assert!(Command::new("kill").arg(demo.id().to_string()).status().unwrap().success());
    lines.by_ref().for_each(drop);
    demo.wait().unwrap();
    assert_eq!(below(&folder), [], "gone with it");
}

#[test]
fn a_history_that_was_cut_short_is_refused_with_what_to_do() {
    let user = User::new("cut");
    std::fs::write(user.session(), CLAUDE).unwrap();
    user.shown(&["import", "claude-code", "--latest"]);
    std::fs::write(user.folder.join("data/history.db"), "").unwrap();
    for args in [&["ls"][..], &["store", "check"], &["import", "claude-code", "--latest"]] {
        let run = user.run(args);
        assert_eq!(run.code, 4, "{args:?}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains("cut short") && run.stderr.contains("backup"), "{}", run.stderr);
    }
    let data = user.folder.join("data").display().to_string();
    let run = throughline(&["serve", "--listen", "127.0.0.1:0", "--data", &data], b"");
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert!(run.stderr.contains("backup"), "{}", run.stderr);
}
