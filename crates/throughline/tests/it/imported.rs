//! Sessions that are damaged, empty or somewhere else: what can be read is imported, and the rest is said.

use crate::sessions::{CLAUDE, ID, User};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

const SNAPSHOT: &str =
    r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}"#;

/// Writes the files of a session of an older opencode.
fn opencode_storage(user: &User, files: &[(&str, &str)]) {
    for (file, text) in files {
        let file = user.folder.join("opencode/storage").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}

#[test]
fn of_opencodes_files_one_that_is_damaged_is_named_and_the_rest_imported() {
    let user = User::new("storage");
    opencode_storage(
        &user,
        &[
            ("session/p/ses_1.json", r#"{"id":"ses_1","title":"T","directory":"/p","time":{"created":1}}"#),
            ("message/ses_1/msg_1.json", r#"{"id":"msg_1","role":"user","time":{"created":1}}"#),
            ("message/ses_1/msg_2.json", r#"{"id":"msg_2","role":"#),
            ("message/ses_1/msg_3.json", r#"{"id":"msg_3","role":"user","time":{"created":3}}"#),
            ("part/msg_1/prt_1.json", r#"{"type":"text","text":"go"}"#),
            ("part/msg_1/prt_2.json", r#"{"type":"text","te"#),
            ("part/msg_3/prt_3.json", r#"{"type":"text","text":"on"}"#),
        ],
    );
    let imported = user.run(&["import", "opencode", "--latest"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert!(imported.stdout.contains("conv_ses_1  2 new entries"), "{}", imported.stdout);
    for file in ["message/ses_1/msg_2.json: ", "part/msg_1/prt_2.json: "] {
        assert!(imported.stderr.lines().any(|line| line.contains(file) && line.contains("ends too early")));
    }
    // Without its facts it is known by its name.
    opencode_storage(&user, &[("session/p/ses_1.json", "")]);
    let imported = user.run(&["import", "opencode", "ses_1"]);
    assert!(imported.stdout.contains("conv_ses_1  nothing new"), "{}{}", imported.stdout, imported.stderr);
    assert!(imported.stderr.contains("session/p/ses_1.json: "), "{}", imported.stderr);
}

#[test]
fn an_old_document_that_breaks_off_is_imported_up_to_there() {
    let user = User::new("broken");
    let file = user.folder.join("rollout-2025-04-17-t.json");
    std::fs::write(
        &file,
        r#"{"session":{"id":"t"},"items":[
            {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
            {"type":"message","role":"assistant","content":[{"type":"output_te"#,
    )
    .unwrap();
    let imported = user.run(&["import", "codex", file.to_str().unwrap()]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert!(imported.stdout.contains("conv_t  1 new entry"), "{}", imported.stdout);
    let remark =
        format!("{}: not all of it could be read; left out: it breaks off in element 2", file.display());
    assert!(imported.stderr.contains(&remark), "{}", imported.stderr);
}

#[test]
fn a_session_that_cannot_be_imported_fails_the_command_and_not_the_others() {
    let user = User::new("one-fails");
    std::fs::write(user.session(), CLAUDE).unwrap();
    std::fs::write(user.session().with_file_name("garbage.jsonl"), "{\"messages\":[]}\n").unwrap();
    std::fs::write(user.session().with_file_name("empty.jsonl"), "").unwrap();
    let imported = user.run(&["import", "--all"]);
    assert_eq!(imported.code, 1, "{}", imported.stderr);
    assert!(imported.stdout.contains("3 new entries"), "{}", imported.stdout);
    assert!(imported.stderr.contains("garbage.jsonl: not a session of claude-code"), "{}", imported.stderr);
    assert!(imported.stderr.contains("1 session could not be imported"), "{}", imported.stderr);
    assert!(
        imported.stderr.contains(&format!("{ID}.jsonl: line 4 could not be read")),
        "{}",
        imported.stderr
    );
}

#[test]
fn an_agent_whose_sessions_cannot_be_read_does_not_keep_out_the_others() {
    let user = User::new("no-opencode");
    std::fs::write(user.session(), CLAUDE).unwrap();
    opencode_storage(&user, &[]);
    std::fs::create_dir_all(user.folder.join("opencode")).unwrap();
    std::fs::write(user.folder.join("opencode/opencode.db"), "").unwrap();
    for which in ["--all", "--latest"] {
        let imported = user.run(&["import", which]);
        assert_eq!(imported.code, 0, "{which}: {}", imported.stderr);
        assert!(imported.stdout.contains(ID), "{which}: {}", imported.stdout);
        assert!(
            imported.stderr.contains("opencode: opencode, whose sessions"),
            "{which}: {}",
            imported.stderr
        );
    }
    assert_eq!(user.run(&["import", "opencode", "--all"]).code, 2);
    assert_eq!(user.run(&["import", "opencode", "--watch"]).code, 1);
    let mut child = user.command("watched", &["import", "--watch"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = [lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()];
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first[0].starts_with("opencode: "), "{first:?}");
    assert!(first[1].contains("following the sessions of claude-code, codex, vscode;"), "{first:?}");
}

#[test]
fn the_latest_session_is_one_in_which_something_was_said() {
    let user = User::new("latest");
    let latest = user.session().with_file_name("11111111-2222-4333-8444-555555555555.jsonl");
    std::fs::write(&latest, SNAPSHOT).unwrap();
    let none = user.run(&["carry", "claude-code", "--to", "codex"]);
    assert_eq!((none.code, none.stderr.contains("--session")), (1, true), "{}", none.stderr);
    assert!(none.stderr.contains("in none of the 1 session that was found"), "{}", none.stderr);
    std::fs::write(user.session(), CLAUDE).unwrap();
    let old = std::fs::File::options().write(true).open(user.session()).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    assert!(user.shown(&["import", "claude-code", "--latest"]).contains(ID));
    let carried = user.shown(&["carry", "claude-code", "--to", "codex"]);
    assert!(carried.starts_with("cd /home/you/project && codex resume"), "{carried}");
    let named = user.run(&["import", "claude-code", latest.to_str().unwrap()]);
    assert_eq!((named.code, named.stdout.as_str()), (1, ""), "{}", named.stderr);
    assert!(named.stderr.contains("nothing was said in it"), "{}", named.stderr);
}

#[test]
fn what_is_no_session_is_refused() {
    let user = User::new("none");
    let codex = r#"{"type":"session_meta","payload":{"id":"t"}}"#;
    let cases = [
        (r#"{"model":"m","messages":[{"role":"user","content":"go"}]}"#, "chat.json"),
        ("\u{1}\u{2} garbage", "not a session of claude-code"),
        ("", "not a session of claude-code"),
        (codex, "it is one of codex"),
    ];
    for (text, words) in cases {
        let file = user.folder.join("file.json");
        std::fs::write(&file, text).unwrap();
        let refused = user.run(&["import", "claude-code", "file.json"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{text}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{text}: {}", refused.stderr);
    }
    std::fs::write(user.folder.join("file.json"), "{}").unwrap();
    let empty = user.run(&["import", "chat.json", "file.json"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (2, ""), "{}", empty.stderr);
    assert_eq!(user.shown(&["ls", "--json"]), "");
}

#[test]
fn folders_that_lead_in_circles_are_looked_at_once() {
    let user = User::new("circle");
    std::fs::write(user.session(), CLAUDE).unwrap();
    let projects = user.folder.join("claude/projects");
    for name in ["circle", "-home-you-project/up"] {
        std::os::unix::fs::symlink(&projects, projects.join(name)).unwrap();
    }
    let listed = user.shown(&["import", "--json"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["source"], user.session().to_str().unwrap());
}

#[test]
fn bytes_that_are_no_text_are_said_with_their_line() {
    let user = User::new("bytes");
    let session = CLAUDE.replace("not a line at all\n", "").replace("alpha\\nbeta", "alpha XX");
    let bytes: Vec<u8> = session.bytes().map(|byte| if byte == b'X' { 0xff } else { byte }).collect();
    std::fs::write(user.session(), bytes).unwrap();
    let imported = user.run(&["import", "claude-code", "--latest", "--json"]);
    let answer: Value = serde_json::from_str(&imported.stdout).unwrap();
    assert_eq!((&answer["damaged"][0], &answer["new_entries"]), (&4.into(), &3.into()), "{answer}");
    let flaw = answer["flaws"][0].as_str().unwrap();
    assert!(flaw.starts_with("line 4 is not UTF-8 (from byte ") && flaw.contains("U+FFFD"), "{flaw}");
    assert!(imported.stderr.contains(&format!("{ID}.jsonl: {flaw}")), "{}", imported.stderr);
    assert!(user.shown(&["show", ID, "--view", "pairs"]).contains("alpha \u{fffd}\u{fffd}"));
}

#[test]
fn a_list_of_none_is_not_a_lack_of_sessions() {
    let user = User::new("limit");
    std::fs::write(user.session(), CLAUDE).unwrap();
    let listed = user.run(&["import", "--limit", "0"]);
    assert!(
        listed.stderr.contains("there are more") && !listed.stderr.contains("no sessions"),
        "{}",
        listed.stderr
    );
}
