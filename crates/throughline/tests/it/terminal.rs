//! What every command has in common: what it prints where, in which form, and what it ends with.

use crate::cli::{root, throughline};
use crate::record::Served;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/commandline.md")).unwrap()
}

/// Returns what stands between backticks.
fn codes(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the fields that the page promises for a command.
fn promised(command: &str) -> BTreeSet<String> {
    let page = page();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut fields = rows.filter_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        (cells.len() == 3 && codes(cells[0]).contains(&command))
            .then(|| codes(cells[2]).into_iter().map(str::to_owned).collect())
    });
    fields.next_back().unwrap_or_else(|| panic!("docs/commandline.md says nothing of {command} --json"))
}

#[test]
fn json_is_lines_of_objects_with_the_fields_that_the_page_promises() {
    let served = Served::start("json");
    let (_, id) = served.talk();
    let id = id.as_str();
    let commands: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("usage", &["usage"]),
        ("show", &["show", id]),
        ("show --view pairs", &["show", id, "--view", "pairs"]),
        ("show --view sent", &["show", id, "--view", "sent"]),
        ("search", &["search", "read"]),
        ("backends", &["backends"]),
        ("models", &["models", "--all", "gpt-5"]),
        ("doctor", &["doctor"]),
        ("use", &["use", "one"]),
        ("env", &["env"]),
        ("env CLIENT", &["env", "codex"]),
        ("config check", &["config", "check"]),
        ("config show", &["config", "show"]),
        ("config init", &["config", "init", "--config", "new.toml"]),
        ("trust", &["trust"]),
        ("trust --list", &["trust", "--list"]),
        ("trust --forget", &["trust", "--forget"]),
        ("store stats", &["store", "stats"]),
        ("store check", &["store", "check"]),
        ("store backup", &["store", "backup", "copy.db"]),
        ("store migrate", &["store", "migrate", "--to", "sqlite:moved.db"]),
        ("store upgrade", &["store", "upgrade"]),
        ("store reindex", &["store", "reindex"]),
        ("store prune", &["store", "prune", "--older-than", "9d"]),
        ("export -o", &["export", id, "--to", "chat", "-o", "chat.json"]),
        ("rm", &["rm", id]),
        ("rm --undo", &["rm", "--undo"]),
        ("env CLIENT --install", &["env", "codex", "--install"]),
        ("env CLIENT --uninstall", &["env", "codex", "--uninstall"]),
    ];
    for (name, args) in commands {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        // Trust is independent of where history is kept, and refuses to be told.
        let lines = if args[0] == "trust" { served.lines_without_data(&args) } else { served.lines(&args) };
        assert!(!lines.is_empty(), "{name}: nothing was printed");
        let fields = lines.iter().flat_map(|line| line.as_object().unwrap().keys().cloned());
        assert_eq!(fields.collect::<BTreeSet<_>>(), promised(name), "{name}");
    }
    let body = std::fs::read(served.folder.join("chat.json")).unwrap();
    let brief = throughline(&["brief", "--dialect", "chat", "--json"], &body);
    let brief: Value = serde_json::from_str(&brief.stdout).unwrap();
    assert_eq!(brief.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>(), promised("brief"));
    let tabled = |name: &str| commands.iter().any(|(known, _)| *known == name);
    for row in page().lines().filter(|line| line.starts_with("| `") && line.split(" | ").count() == 3) {
        let names = codes(row.split(" | ").next().unwrap());
        let is_run = |name: &&str| tabled(name) || ["brief", "serve"].contains(name);
        assert!(names.iter().all(is_run), "{names:?}: not compared with what it prints");
    }
}

#[test]
fn a_gateway_says_in_json_where_it_is() {
    let folder = crate::cli::scratch("terminal-serve");
    std::fs::create_dir_all(&folder).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--json"])
        .current_dir(&folder)
        .env_clear()
        .env("HOME", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>(), promised("serve"));
    assert!(ready["ready"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    assert_eq!(ready["simulated"], true);
}

#[test]
fn a_pipe_gets_everything_whole_and_without_colours() {
    let served = Served::start("piped");
    let (_, id) = served.talk();
    let listed = served.shown(&["ls"]);
    assert!(listed.contains(&id) && !listed.contains('\x1b') && !listed.contains('…'), "{listed}");
    assert!(listed.lines().nth(1).unwrap().contains("Z  "), "an exact time: {listed}");
    let coloured = served.shown(&["ls", "--color", "always"]);
    assert!(coloured.contains("\x1b[2mID"), "{coloured:?}");
}

#[test]
fn whoever_closes_the_pipe_has_seen_enough() {
    let served = Served::start("closed");
    let (_, id) = served.talk();
    let mut shown = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["show", &id, "--view", "full", "--data", "data", "--config", "throughline.toml"])
        .current_dir(&served.folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closed before anything was read: whatever is written fails.
    drop(shown.stdout.take());
    let ended = shown.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap().as_str()), (Some(0), ""));
}

/// Returns what was printed without its colours.
fn unstyled(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| plain + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

#[test]
fn on_a_terminal_lists_fit_and_long_output_goes_through_the_pager() {
    let served = Served::start("tty");
    let (_, id) = served.talk();
    let binary = env!("CARGO_BIN_EXE_throughline");
    let on_terminal = |args: &str, lines: &str| {
        let run = Command::new("script")
            .args(["-qec", &format!("{binary} {args} --data data --config throughline.toml"), "/dev/null"])
            .current_dir(&served.folder)
            .stdin(Stdio::null())
            .env("COLUMNS", "60")
            .env("LINES", lines)
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("CI")
            .env("THROUGHLINE_PAGER", "sed s/^/paged:/")
            .output();
        run.ok().filter(|run| run.status.success()).map(|run| String::from_utf8(run.stdout).unwrap())
    };
    let Some(listed) = on_terminal("ls", "50") else {
        eprintln!("skipped: `script` of util-linux is not installed, so there is no terminal to print to");
        return;
    };
    assert!(
        listed.contains("\x1b[2mID") && (listed.contains("ago") || listed.contains("just now")),
        "{listed:?}"
    );
    let short = &id[id.len() - 12..id.len() - 4];
    assert!(unstyled(&listed).contains(short) && !listed.contains(&id), "{listed:?}");
    assert!(!listed.contains("paged:"), "it fits: {listed:?}");
    let paged = on_terminal(&format!("show {short}"), "3").unwrap();
    assert!(paged.starts_with("paged:"), "{paged:?}");
    assert!(!on_terminal(&format!("show {short} --no-pager"), "3").unwrap().contains("paged:"));
}

#[test]
fn exit_codes_are_documented_and_mean_the_same_everywhere() {
    let served = Served::start("codes");
    let (_, id) = served.talk();
    let cases: &[(i32, &[&str], &str)] = &[
        (0, &["show", &id], ""),
        (1, &["show", "nobody"], "`throughline ls` lists them; `@last` is the latest"),
        (1, &["search", "unheardof"], "fewer words find more"),
        (1, &["store", "stats", "--config", "elsewhere.toml"], "make one"),
        (2, &["use", "onne"], "did you mean `one`?"),
        (2, &["run", "--backend", "twoo", "hello"], "did you mean `two`?"),
        (1, &["import", "codex", "nowhere"], "`throughline import codex` lists them"),
        (2, &["env", "codx"], "did you mean `codex`?"),
        (2, &["lss"], "similar subcommand exists: 'ls'"),
        (2, &["ls", "--config", "nope.toml"], "nope.toml"),
        (2, &["store", "backup", "data/history.db"], "never written over"),
        (4, &["ls", "--config", "garbage.toml"], "restore it from a backup"),
    ];
    let elsewhere = "[[backends]]\nname = \"one\"\ndialect = \"chat\"\nbase_url = \"sim:\"\napi_key = \"none\"\n\
                     [store]\nurl = \"sqlite:none/at/all.db\"\n";
    std::fs::write(served.folder.join("elsewhere.toml"), elsewhere).unwrap();
    let garbage = elsewhere.replace("none/at/all.db", "garbage.db");
    std::fs::write(served.folder.join("garbage.toml"), garbage).unwrap();
    std::fs::write(served.folder.join("data/garbage.db"), "this is no database, whatever its name says")
        .unwrap();
    for (code, args, said) in cases {
        let run = served.run(args);
        assert_eq!(run.code, *code, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{args:?} should say what to do next: {}", run.stderr);
        assert_eq!(*code == 0, !run.stdout.is_empty(), "{args:?}: {}", run.stdout);
    }
    let page = page();
    let manual = throughline(&["man"], b"").stdout;
    for code in 0..5 {
        let row = page.lines().find(|line| line.starts_with(&format!("| {code} | "))).unwrap();
        let words = row.split(" | ").nth(1).unwrap().trim_end_matches(" |");
        assert!(manual.contains(words), "the manual does not say of {code}: {words}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_the_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in [&["sim", "--listen", &address][..], &["serve", "--listen", &address, "--data", "taken"]] {
        let folder = crate::cli::scratch("terminal-taken");
        std::fs::create_dir_all(&folder).unwrap();
        let run = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(command)
            .current_dir(&folder)
            .env_clear()
            .env("HOME", &folder)
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(said.contains(&address) && said.contains("--listen takes another address"), "{said}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = crate::cli::scratch("terminal-man");
    let _ = std::fs::remove_dir_all(&folder);
    let run = throughline(&["man", folder.to_str().unwrap()], b"");
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let names: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let help = throughline(&["--help"], b"").stdout;
    // Commands stand four spaces in, below the names of their groups.
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").take_while(|line| *line != "Options:");
    let commands = commands.filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next());
    for name in commands {
        let has_page = names.contains(&format!("throughline-{name}.1"));
        assert!(has_page || name == "help", "{name} has no page: {names:?}");
    }
    assert!(names.contains("throughline.1") && names.contains("throughline-store-prune.1"));
}

#[test]
fn shells_are_offered_commands_and_the_names_of_the_users_own() {
    let served = Served::start("completion");
    let (_, id) = served.talk();
    let offered = |words: &[&str]| {
        let run = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["--", "throughline"])
            .args(words)
            .current_dir(&served.folder)
            .env("THROUGHLINE_COMPLETE", "fish")
            .env("THROUGHLINE_DATA", "data")
            .env("THROUGHLINE_CONFIG", "throughline.toml")
            .output()
            .unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    assert!(offered(&["sea"]).starts_with("search\t"));
    assert!(offered(&["use", ""]).contains("one\tchat\n"), "{}", offered(&["use", ""]));
    let bare = id.strip_prefix("conv_").unwrap();
    for typed in ["", &bare[..4]] {
        let offered = offered(&["show", typed]);
        assert!(offered.starts_with(&format!("{bare}\t")), "{typed}: {offered}");
    }
    assert!(offered(&["show", "conv_"]).starts_with(&format!("{id}\t")));
    assert!(offered(&["env", "claude"]).starts_with("claude-code\tClaude Code"));
    assert!(offered(&["ls", "--lim"]).starts_with("--limit"));
}
