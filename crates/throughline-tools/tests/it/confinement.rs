//! What commands are kept from: with all that the kernel has, and with parts of it hidden, as containers hide them.
//!
//! Run as root, all of this is run a second time as an ordinary user.

use crate::bench::{Bench, Lifeline, confined_settings, example, told};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use throughline_tools::{
    ConfinementPolicy, Context, Launcher, Notice, Outcome, OutcomeKind, Shell, ShellSettings,
};

/// What is hidden from the supervisor, one set after the other.
const HIDDEN: &[&[&str]] =
    &[&[], &["landlock"], &["landlock-forbidden"], &["namespaces"], &["mounts"], &["landlock", "namespaces"]];

fn hiding(hidden: &[&str]) -> ShellSettings {
    let mut settings = confined_settings();
    let Launcher::Confined { program, .. } = settings.launcher else { unreachable!("it is confined") };
    let words = hidden.iter().map(OsString::from).chain(["--".into(), program.into()]);
    settings.launcher = Launcher::Confined { program: example("hide"), arguments: words.collect() };
    settings
}

/// Returns a bench for each set of what is hidden.
async fn benches() -> Vec<(&'static [&'static str], Bench)> {
    let mut benches = Vec::new();
    for hidden in HIDDEN {
        benches.push((*hidden, Bench::with_settings(hiding(hidden)).await));
    }
    benches
}

async fn bash(bench: &Bench, command: &str) -> Outcome {
    bench.call("bash", json!({"command": command})).await
}

fn stdout(outcome: &Outcome) -> String {
    told(outcome)["stdout"].as_str().unwrap_or_else(|| panic!("{}", outcome.output)).to_owned()
}

/// Asks for an ordinary user to run this binary's tests again.
const AGAIN: &str = "THROUGHLINE_TEST_AGAIN";

#[test]
fn the_same_holds_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() || std::env::var_os(AGAIN).is_some() {
        return;
    }
    let own = std::env::current_exe().expect("this binary has a path");
    let as_nobody = |program: &PathBuf| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command
    };
    let folder = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).expect("it is given away");
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_throughline-shell"));
    let probed = as_nobody(&launcher).arg("--probe").output();
    if !probed.is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: without setpriv, or with a build that others may not read, there is no other user"
        );
        return;
    }
    let mut again = as_nobody(&own);
    again.args(["confinement::", "--skip", "ordinary_user"]).env(AGAIN, "1").env("TMPDIR", folder.path());
    let output = again.env("HOME", folder.path()).current_dir(folder.path()).output().expect("it is run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains(" 0 passed"), "{text}");
}

#[tokio::test]
async fn what_is_there_is_found() {
    let all = Bench::with_settings(hiding(&[])).await;
    let all = all.toolbox.shell().confinement().clone();
    for (hidden, bench) in benches().await {
        let found = bench.toolbox.shell().confinement();
        let hides = |what: &str| hidden.iter().any(|it| it.starts_with(what));
        assert_eq!(
            found.landlock.is_ok(),
            all.landlock.is_ok() && !hides("landlock"),
            "{hidden:?}: {found:?}"
        );
        let expected = all.namespaces.is_ok() && !hides("namespaces") && !hides("mounts");
        assert_eq!(found.namespaces.is_ok(), expected, "{hidden:?}: {found:?}");
        // Confinement is required by default where it can be had, and nowhere else.
        assert_eq!(bench.toolbox.shell().refusal(), None, "{hidden:?}");
        assert_eq!(stdout(&bash(&bench, "echo runs").await), "runs\n", "{hidden:?}");
    }
}

#[tokio::test]
async fn commands_are_refused_where_confinement_is_required_and_missing() {
    for hidden in [&["landlock"][..], &["landlock-forbidden"], &["landlock", "namespaces"]] {
        let settings = ShellSettings { confinement: Some(ConfinementPolicy::Required), ..hiding(hidden) };
        let bench = Bench::with_settings(settings).await;
        let outcome = bash(&bench, "touch ran").await;
        assert_eq!(outcome.kind, OutcomeKind::Failed);
        let error = told(&outcome)["error"].as_str().expect("it says why").to_owned();
        assert!(error.contains("must be confined") && error.contains("Landlock"), "{error}");
        assert!(!bench.path("ran").exists());
    }
    let direct = ShellSettings { confinement: Some(ConfinementPolicy::Required), ..ShellSettings::default() };
    let bench = Bench::with_settings(direct).await;
    assert_eq!(bash(&bench, "true").await.kind, OutcomeKind::Failed);
    let off = ShellSettings { confinement: Some(ConfinementPolicy::Off), ..hiding(&[]) };
    let bench = Bench::with_settings(off).await;
    assert!(bench.toolbox.shell().confinement().landlock.is_err());
    assert_eq!(stdout(&bash(&bench, "echo runs").await), "runs\n");
}

#[tokio::test]
async fn a_command_has_nothing_open_but_its_output() {
    for (hidden, bench) in benches().await {
        let told = stdout(&bash(&bench, "for f in /proc/$BASHPID/fd/*; do readlink $f; done").await);
        let open: Vec<&str> = told.lines().filter(|it| !it.starts_with("pipe:")).collect();
        // The script itself is an argument; bash reads no file.
        assert_eq!(open, ["/dev/null"], "{hidden:?}: {told}");
        assert_eq!(stdout(&bash(&bench, "tty; cat").await), "not a tty\n", "{hidden:?}");
    }
}

/// Commands that try to be rid of whoever watches over them, and leave something running.
const ESCAPES: &[&str] = &[
    "kill -9 $PPID",
    "kill -STOP $PPID",
    "kill -9 -$PPID",
    "kill -9 0",
    "setsid sh -c 'setsid sleep 600 & exit' > /dev/null 2>&1 < /dev/null",
    "(sleep 600 & kill -STOP $!)",
    "for i in 1 2 3 4 5; do (trap '' TERM HUP INT; sleep 600) & done",
    // Processes that are never the same for long. Their number does not grow, should they get away.
    "f() { sleep 0.01; f & }; for i in 1 2 3 4 5 6 7 8; do f & done",
];

#[tokio::test]
async fn everything_ends_with_a_command_whatever_it_does() {
    for (hidden, bench) in benches().await {
        for (index, escape) in ESCAPES.iter().enumerate() {
            let _ = fs::remove_file(bench.path("alive"));
            let mut lifeline = Lifeline::new(&bench);
            let limit = Duration::from_millis(if index == 0 { 400 } else { 150 });
            let context = Context { time_limit: Some(limit), ..Context::default() };
            let script = format!("exec 9> alive; {escape}; echo on >&9; sleep 600");
            let outcome = bench.call_in("bash", json!({"command": script}), &context).await;
            let ended = [OutcomeKind::TimedOut, OutcomeKind::Done].contains(&outcome.kind);
            assert!(ended, "{hidden:?}: {escape}: {}", outcome.output);
            lifeline.until_released().await;
        }
    }
}

#[tokio::test]
async fn a_command_cannot_signal_everybody() {
    for (hidden, bench) in benches().await {
        // In a namespace there is somebody to be signalled: those of the command's own.
        if bench.toolbox.shell().confinement().namespaces.is_err() {
            let outcome = bash(&bench, "kill -0 -1 2> /dev/null || exit 9").await;
            let scoped = matches!(bench.toolbox.shell().confinement().landlock, Ok(version) if version >= 6);
            assert!(scoped || outcome.exit_code == Some(9), "{hidden:?}: {}", outcome.output);
        }
    }
}

#[tokio::test]
async fn commands_end_when_the_program_that_started_them_dies() {
    for hidden in HIDDEN {
        let bench = Bench::new();
        let mut lifeline = Lifeline::new(&bench);
        let own = std::env::current_exe().expect("this binary has a path");
        let mut command = Command::new(own);
        command.args(["--exact", "confinement::run_until_killed", "--nocapture"]);
        command.env("THROUGHLINE_TEST_HIDDEN", hidden.join(" ")).current_dir(bench.path(""));
        let mut process = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
        lifeline.until_held().await;
        process.kill().expect("it is killed");
        process.wait().expect("it is gone");
        lifeline.until_released().await;
    }
}

/// What the test above starts; alone, it does nothing.
#[tokio::test]
async fn run_until_killed() {
    let Ok(hidden) = std::env::var("THROUGHLINE_TEST_HIDDEN") else { return };
    let hidden: Vec<&str> = hidden.split_whitespace().collect();
    let here = std::env::current_dir().expect("there is one");
    let workdir = throughline_tools::Workdir::open(&here).expect("it opens");
    let shell = Shell::new(hiding(&hidden)).await.expect("there is a shell");
    let toolbox = throughline_tools::Toolbox::new(workdir, Default::default(), shell);
    let script = json!({"command": "exec 9> alive; (setsid sleep 600 &); echo held >&9; sleep 600"});
    let call = toolbox.check("bash", &script.to_string()).expect("it is a call");
    toolbox.run(&call, &Context::default()).await;
}

#[tokio::test]
async fn commands_have_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("it listens");
    let port = listener.local_addr().expect("it has an address").port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let datagram = "exec 3<>/dev/udp/127.0.0.1/9 && echo x >&3";
    for (hidden, bench) in benches().await {
        assert!(bench.toolbox.shell().is_offline(), "{hidden:?}");
        assert_ne!(bash(&bench, &connect).await.exit_code, Some(0), "{hidden:?}");
        if bench.toolbox.shell().confinement().namespaces.is_err() {
            assert_ne!(bash(&bench, datagram).await.exit_code, Some(0), "{hidden:?}");
        }
        let allowed = Bench::with_settings(ShellSettings { network: true, ..hiding(hidden) }).await;
        assert_eq!(bash(&allowed, &connect).await.exit_code, Some(0), "{hidden:?}");
    }
}

#[tokio::test]
async fn a_command_that_fails_for_want_of_the_network_is_told_so() {
    let note = "the command tried to use the network; commands have none here, unless the user allows it \
                (tools.network, or --network for one run)";
    for hidden in [&[][..], &["namespaces"]] {
        let bench = Bench::with_settings(hiding(hidden)).await;
        let outcome = bash(&bench, "exec 2> /dev/null 3<>/dev/tcp/192.0.2.1/80").await;
        if bench.toolbox.shell().confinement().namespaces.is_ok() {
            assert_eq!(outcome.notices, [Notice::NoNetwork], "{hidden:?}");
            assert_eq!(told(&outcome)["notes"], json!([note]));
        }
        let fine = bash(&bench, "exec 3<>/dev/tcp/192.0.2.1/80; true").await;
        assert_eq!(
            (fine.exit_code, fine.notices.len()),
            (Some(0), 0),
            "{hidden:?}: what succeeds needs no note"
        );
        let failed = bash(&bench, "exit 3").await;
        assert_eq!(failed.output, r#"{"stdout":"","stderr":"","exit_code":3}"#, "{hidden:?}");
    }
}

#[tokio::test]
async fn a_command_can_talk_to_itself() {
    let bench = Bench::with_settings(hiding(&[])).await;
    if bench.toolbox.shell().confinement().namespaces.is_err() {
        println!("skipped: without namespaces there is no loopback device of one's own");
        return;
    }
    let script = "perl -MIO::Socket::INET -e '
        my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1)) or die;
        my $c = IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => $l->sockport) or die;
        print q(connected);'";
    assert_eq!(stdout(&bash(&bench, script).await), "connected");
}

#[tokio::test]
async fn sockets_outside_are_out_of_reach() {
    let bench = Bench::with_settings(hiding(&[])).await;
    let path = bench.outside("service.sock");
    let _listener = UnixListener::bind(&path).expect("it listens");
    let connect = |path: &str| {
        format!("perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => q({path})) or exit 9'")
    };
    if bench.toolbox.shell().confinement().private_view {
        let outcome = bash(&bench, &connect(&path.display().to_string())).await;
        assert_eq!(outcome.exit_code, Some(9), "{}", outcome.output);
    }
    let own = bench.path("own.sock");
    let _own = UnixListener::bind(&own).expect("it listens");
    assert_eq!(bash(&bench, &connect(&own.display().to_string())).await.exit_code, Some(0));
}

#[tokio::test]
async fn other_processes_are_not_seen() {
    for (hidden, bench) in benches().await {
        let own = std::process::id();
        let environment = bash(&bench, &format!("cat /proc/{own}/environ")).await;
        if bench.toolbox.shell().confinement().landlock.is_ok() {
            assert_ne!(environment.exit_code, Some(0), "{hidden:?}");
        }
        if bench.toolbox.shell().confinement().fresh_proc {
            // Another process may have that id in there, and is then one of the command's own.
            let count =
                stdout(&bash(&bench, "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c n[e]xtest").await);
            assert_eq!(count, "0\n", "{hidden:?}");
            assert_eq!(stdout(&bash(&bench, "set -- /proc/[0-9]*; echo $#").await), "2\n", "{hidden:?}");
        }
        if !hidden.contains(&"landlock") || !hidden.contains(&"namespaces") {
            let signalled =
                bash(&bench, &format!("kill -0 {own} 2> /dev/null && [ -e /proc/{own}/fd/0 ]")).await;
            assert_ne!(signalled.exit_code, Some(0), "{hidden:?}");
        }
    }
}

/// Opens the terminal by every name it has and puts a key into its input, as if it had been pressed.
const STUFF: &str = r#"perl -e 'my $key = "y"; for my $name ("/dev/tty", $ARGV[0], "/proc/$ARGV[1]/fd/0") {
    open(my $terminal, "+<", $name) or open($terminal, "<", $name) or next;
    print "stuffed $name\n" if ioctl($terminal, 0x5412, $key);
}' "$0" "$1""#;

#[test]
fn a_command_cannot_type_into_the_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    if Command::new("setsid").arg("--version").output().is_err()
        || Command::new("perl").arg("-v").output().is_err()
    {
        println!("skipped: setsid and perl are needed");
        return;
    }
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
    let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("it is text");
    let open = || fs::OpenOptions::new().read(true).write(true).open(&name);
    let Ok(slave) = open() else {
        println!("skipped: {name} cannot be opened here");
        return;
    };
    let own = std::env::current_exe().expect("this binary has a path");
    // The other process has the terminal as its own, as a shell of the user's has.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(own).args([
        "--exact",
        "confinement::run_in_a_terminal",
        "--nocapture",
    ]);
    command.env("THROUGHLINE_TEST_TERMINAL", &name).stdin(slave);
    let output = command.output().expect("it is run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("tried 8"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What the test above starts in a terminal; alone, it does nothing.
#[tokio::test]
async fn run_in_a_terminal() {
    let Ok(terminal) = std::env::var("THROUGHLINE_TEST_TERMINAL") else { return };
    let mut tried = 0;
    let mut benches = benches().await;
    benches.push((&[], Bench::new()));
    let off = ShellSettings { confinement: Some(ConfinementPolicy::Off), ..hiding(&[]) };
    benches.push((&[], Bench::with_settings(off).await));
    for (hidden, bench) in benches {
        // Root may open any terminal by its name where nothing confines it.
        let is_open =
            !bench.toolbox.shell().confinement().cuts_network() && rustix::process::geteuid().is_root();
        let name = if is_open { "/dev/null" } else { &terminal };
        let process = if is_open { 0 } else { std::process::id() };
        let script = format!("bash -c '{}' {name} {process}", STUFF.replace('\'', r"'\''"));
        let outcome = bash(&bench, &script).await;
        let told: Value = told(&outcome);
        assert_eq!((&told["stdout"], &told["exit_code"]), (&json!(""), &json!(0)), "{hidden:?}: {told}");
        tried += 1;
    }
    println!("tried {tried}");
    // Nothing has been typed.
    let mut typed = [0];
    let nonblocking = rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(std::io::stdin(), nonblocking).expect("it can be set");
    assert!(std::io::stdin().read(&mut typed).is_err());
}
