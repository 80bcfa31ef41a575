//! Commands: what they give back, how they end, and what they are kept from.

use crate::bench::{Bench, Lifeline, confined_settings, names, told};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::time::Duration;
use throughline_tools::{
    Context, Launcher, Limits, Outcome, OutcomeKind, ResourceLimits, Shell, ShellSettings,
};

/// Returns a bench for each way of starting commands.
async fn both() -> [Bench; 2] {
    [Bench::new(), Bench::confined().await]
}

async fn bash(bench: &Bench, command: &str) -> Outcome {
    bench.call("bash", json!({"command": command})).await
}

fn is_landlocked(bench: &Bench) -> bool {
    bench.toolbox.shell().confinement().landlock.is_ok()
}

/// A command that does not end by itself.
const HOLDS: &str = "exec 9> alive; sleep 600 & echo held >&9; wait";

#[tokio::test]
async fn a_command_gives_back_its_output_and_exit_code() {
    for bench in both().await {
        let outcome = bash(&bench, "echo out; echo err >&2; exit 3").await;
        assert_eq!(outcome.output, r#"{"stdout":"out\n","stderr":"err\n","exit_code":3}"#);
        assert_eq!((outcome.kind, outcome.exit_code), (OutcomeKind::Done, Some(3)));
        assert_eq!(bash(&bench, "kill -9 $$").await.exit_code, Some(137));
        assert_eq!(told(&bash(&bench, "no-such-command").await)["exit_code"], 127);
    }
}

#[tokio::test]
async fn a_command_runs_in_the_working_directory_without_input() {
    for bench in both().await {
        bench.put("sub/x", "");
        let outcome = bash(&bench, "pwd; cat; ls").await;
        let root = bench.path("").canonicalize().unwrap();
        assert_eq!(told(&outcome)["stdout"], format!("{}\nsub\n", root.display()));
        let told = bench.done("shell", json!({"command": ["bash", "-lc", "ls"], "workdir": "sub"})).await;
        assert_eq!(told["stdout"], "x\n");
        let outcome = bash(&bench, "echo made > file; [[ -f file ]] && echo yes").await;
        assert_eq!(told_stdout(&outcome), "yes\n");
        assert_eq!(bench.content("file"), "made\n");
    }
}

fn told_stdout(outcome: &Outcome) -> String {
    told(outcome)["stdout"].as_str().expect("it is text").to_owned()
}

#[tokio::test]
async fn output_that_is_no_text_is_shown_and_noted() {
    let bench = Bench::new();
    let outcome = bash(&bench, r"printf 'a\xffb\0c \033[31mred\033[0m'").await;
    let told = told(&outcome);
    assert_eq!(told["stdout"], "a\u{fffd}b\u{2400}c red");
    assert_eq!(
        told["notes"],
        json!([
            "stdout: 2 terminal escape sequences were taken out",
            "stdout: 1 sequences that are not UTF-8 are shown as \u{fffd}",
            "stdout: 1 NUL bytes are shown as \u{2400}",
        ])
    );
}

#[tokio::test]
async fn large_output_becomes_an_artifact() {
    let limits = Limits { preview_bytes_max: 200, artifact_bytes_max: 100_000, ..Limits::default() };
    let bench = Bench::with(limits, Shell::new(confined_settings()).await.unwrap());
    let outcome = bash(&bench, "seq 1 10000; echo short >&2").await;
    let shown = told(&outcome);
    let all: String = (1..=10_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(outcome.artifacts[0].bytes, all.as_bytes());
    assert_eq!(shown["artifacts"], json!([{"name": "stdout", "bytes": all.len()}]));
    assert_eq!(shown["stderr"], "short\n");
    let stdout = shown["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("9999\n10000\n"), "{stdout}");
    assert!(stdout.len() < 400);

    let outcome = bash(&bench, "head -c 1000000 /dev/zero | tr '\\0' x").await;
    assert_eq!((outcome.artifacts[0].bytes.len(), outcome.artifacts[0].bytes_total), (100_000, 1_000_000));
    let notes = told(&outcome)["notes"].to_string();
    assert!(
        notes.contains(
            "stdout had 1000000 bytes, too many to keep: 900000 bytes in its middle are in no artifact"
        ),
        "{notes}"
    );
}

#[tokio::test]
async fn a_time_limit_ends_the_command_and_its_grandchildren() {
    for bench in both().await {
        let mut lifeline = Lifeline::new(&bench);
        let command = "exec 9> alive; echo before; (sleep 600 & echo held >&9; wait) & wait";
        let call = json!({"command": command});
        // On a busy machine it may not have got that far when the shorter time is over.
        for limit in [500, 8000].map(Duration::from_millis) {
            let context = Context { time_limit: Some(limit), ..Context::default() };
            let outcome = bench.call_in("bash", call.clone(), &context).await;
            assert_eq!(outcome.kind, OutcomeKind::TimedOut);
            let shown = told(&outcome);
            let note = format!("the command was ended after its time limit of {} ms", limit.as_millis());
            assert_eq!((&shown["exit_code"], &shown["notes"]), (&Value::Null, &json!([note])));
            if shown["stdout"] == "before\n" && lifeline.was_held() {
                break;
            }
        }
        lifeline.until_released().await;
    }
}

#[tokio::test]
async fn a_time_limit_that_the_model_names_is_bounded() {
    let limits = Limits { command_time_max: Duration::from_millis(300), ..Limits::default() };
    let bench = Bench::with(limits, Shell::direct().unwrap());
    let outcome = bench.call("bash", json!({"command": "sleep 600", "timeout_seconds": 500})).await;
    assert_eq!(outcome.kind, OutcomeKind::TimedOut);
}

#[tokio::test]
async fn a_command_can_be_called_off() {
    for bench in both().await {
        let context = Context::default();
        let cancel = context.cancel.clone();
        let mut lifeline = Lifeline::new(&bench);
        let waits = async {
            lifeline.until_held().await;
            cancel.cancel();
        };
        let call = bench.call_in("bash", json!({"command": HOLDS}), &context);
        let (outcome, ()) = tokio::join!(call, waits);
        assert_eq!(outcome.kind, OutcomeKind::Cancelled);
        assert_eq!(told(&outcome)["notes"], json!(["the command was called off before it ended"]));
        lifeline.until_released().await;
    }
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    for bench in both().await {
        let mut lifeline = Lifeline::new(&bench);
        let outcome = bash(&bench, "exec 9> alive; sleep 600 & echo done").await;
        assert_eq!((outcome.kind, told_stdout(&outcome).as_str()), (OutcomeKind::Done, "done\n"));
        lifeline.until_released().await;
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_its_command() {
    for bench in both().await {
        let mut lifeline = Lifeline::new(&bench);
        let context = Context::default();
        let call = bench.call_in("bash", json!({"command": HOLDS}), &context);
        tokio::select! {
            _ = call => panic!("it does not end by itself"),
            () = lifeline.until_held() => {}
        }
        lifeline.until_released().await;
    }
}

#[tokio::test]
async fn secrets_are_not_in_the_environment() {
    let secrets = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_KEY"];
    let mut settings = confined_settings();
    settings.variables.extend(secrets.map(|name| (OsString::from(name), OsString::from("SECRET"))));
    settings.variables.push(("EXTRA_FLAG".into(), "passed".into()));
    settings.variables.push(("EXTRA_KEY".into(), "SECRET".into()));
    settings.pass = vec!["EXTRA_*".to_owned(), "MY_KEY".to_owned()];
    settings.withheld = vec!["EXTRA_KEY".to_owned(), "MY_KEY".to_owned()];
    let direct = ShellSettings { launcher: Launcher::Direct, ..settings.clone() };
    for settings in [settings, direct] {
        let bench = Bench::with_settings(settings).await;
        let stdout = told_stdout(&bash(&bench, "env | sort").await);
        assert!(!stdout.contains("SECRET"), "{stdout}");
        assert!(stdout.contains("EXTRA_FLAG=passed\n") && stdout.contains("TERM=dumb\n"), "{stdout}");
        assert!(!stdout.contains("CARGO_MANIFEST_DIR"), "what is not on the list is not passed on");
        let script = "cat /proc/self/environ | tr '\\0' '\\n' | grep -c SECRET";
        assert_eq!(told_stdout(&bash(&bench, script).await), "0\n");
    }
}

#[tokio::test]
async fn the_supervisor_says_what_confines() {
    let bench = Bench::confined().await;
    let expected = match fs::read_to_string("/sys/kernel/security/lsm") {
        Ok(modules) => Some(modules.contains("landlock")),
        Err(_) => None,
    };
    if let Some(expected) = expected {
        assert_eq!(is_landlocked(&bench), expected);
    }
    assert!(
        matches!(&Bench::new().toolbox.shell().confinement().landlock, Err(reason) if reason.contains("directly"))
    );
    let wrong = ShellSettings {
        launcher: Launcher::Confined { program: "/bin/true".into(), arguments: Vec::new() },
        ..ShellSettings::default()
    };
    let error = Shell::new(wrong).await.expect_err("that is no launcher");
    assert!(error.to_string().contains("does not answer as a launcher"), "{error}");
}

/// Runs a command that must not be able to do what it tries, if the kernel can keep it from that.
async fn denied(bench: &Bench, command: &str) -> Value {
    let outcome = bash(bench, command).await;
    let told = told(&outcome);
    assert_ne!(told["exit_code"], 0, "{command}: {told}");
    told
}

#[tokio::test]
async fn commands_do_not_write_outside() {
    let bench = Bench::confined().await;
    if !is_landlocked(&bench) {
        return; // There is nothing to be seen on such a kernel, and the test above checks that this is said.
    }
    fs::write(bench.outside("file"), "untouched").unwrap();
    std::os::unix::fs::symlink("../file", bench.path("link")).unwrap();
    let outside = bench.outside("file").display().to_string();
    for command in [
        "echo x > ../file".to_owned(),
        "echo x > link".to_owned(),
        format!("echo x >> {outside}"),
        format!("rm {outside}"),
        format!("truncate -s 0 {outside}"),
        format!("mv {outside} here"),
        format!("ln {outside} here"),
        "mkdir ../new".to_owned(),
        "cd .. && touch new".to_owned(),
        "touch /tmp/throughline-escape".to_owned(),
        "touch ~/throughline-escape".to_owned(),
        format!("cat {outside}"),
    ] {
        denied(&bench, &command).await;
    }
    assert_eq!(fs::read_to_string(bench.outside("file")).unwrap(), "untouched");
    assert_eq!(names(&bench.outside("")), ["file", "work"]);
    let fine = bash(
        &bench,
        "echo a > b && mkdir c && mv b c && echo t > \"$TMPDIR/t\" && cat \"$TMPDIR/t\" && echo > /dev/null",
    )
    .await;
    assert_eq!(fine.output, r#"{"stdout":"t\n","stderr":"","exit_code":0}"#);
}

#[tokio::test]
async fn commands_do_not_see_the_environment_of_others_or_signal_them() {
    let bench = Bench::confined().await;
    if !is_landlocked(&bench) {
        return;
    }
    let own = std::process::id();
    denied(&bench, &format!("cat /proc/{own}/environ")).await;
    denied(&bench, "cat /proc/1/environ").await;
    if !matches!(bench.toolbox.shell().confinement().landlock, Ok(abi) if abi >= 6) {
        return;
    }
    denied(&bench, &format!("kill -0 {own}")).await;
}

#[tokio::test]
async fn further_paths_can_be_allowed() {
    let extra = tempfile::tempdir().unwrap();
    let read = tempfile::tempdir().unwrap();
    fs::write(read.path().join("x"), "readable").unwrap();
    let mut settings = confined_settings();
    settings.writable = vec![extra.path().to_owned()];
    settings.readable = vec![read.path().to_owned()];
    let bench = Bench::with_settings(settings).await;
    let outcome =
        bash(&bench, &format!("cat {0}/x && echo y > {1}/y", read.path().display(), extra.path().display()))
            .await;
    assert_eq!(outcome.output, r#"{"stdout":"readable","stderr":"","exit_code":0}"#);
    if is_landlocked(&bench) {
        denied(&bench, &format!("echo y > {}/y", read.path().display())).await;
    }
}

#[tokio::test]
async fn resources_are_limited() {
    let mut settings = confined_settings();
    settings.resources = ResourceLimits {
        cpu_seconds: Some(5),
        file_bytes: Some(4096),
        processes: None,
        address_space_bytes: Some(1 << 30),
    };
    let bench = Bench::with_settings(settings).await;
    let outcome = bash(&bench, "ulimit -t; ulimit -f; ulimit -v; ulimit -c; ulimit -Ht").await;
    assert_eq!(told_stdout(&outcome), "5\n4\n1048576\n0\n5\n");
    denied(&bench, "head -c 10000 /dev/zero > large").await;
    assert!(fs::metadata(bench.path("large")).unwrap().len() <= 4096);
}
