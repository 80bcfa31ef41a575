//! Protected files: neither tools nor commands write them unless somebody agreed.

use crate::bench::{Bench, confined_settings, told};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use throughline_tools::{Context, Launcher, Notice, Outcome, ProtectedPath};

const CONFIG: &str = "[core]\n\tbare = false\n";

/// Returns benches with a repository in them: with all that keeps commands from it, without namespaces, and with nothing.
async fn benches() -> Vec<Bench> {
    let mut hiding = confined_settings();
    if let Launcher::Confined { program, .. } = hiding.launcher {
        let arguments = ["namespaces".into(), "--".into(), program.into()].to_vec();
        hiding.launcher = Launcher::Confined { program: crate::bench::example("hide"), arguments };
    }
    let benches = vec![Bench::confined().await, Bench::with_settings(hiding).await, Bench::new()];
    for bench in &benches {
        bench
            .put(".git/config", CONFIG)
            .put(".git/hooks/pre-commit.sample", "")
            .put(".envrc", "export A=1\n");
        bench.put(".vscode/tasks.json", "{}").put("src/main.rs", "").put("deep/er/.envrc", "");
    }
    benches
}

async fn bash(bench: &Bench, command: &str) -> Outcome {
    bench.call("bash", json!({"command": command})).await
}

#[tokio::test]
async fn tools_do_not_write_them() {
    let bench = Bench::new();
    bench.put(".git/config", CONFIG).put(".envrc", "x\n").put("plain", "x\n");
    std::os::unix::fs::symlink(".git/hooks", bench.path("innocent")).unwrap();
    std::os::unix::fs::symlink(".envrc", bench.path("settings")).unwrap();
    let patch = |lines: &str| json!({"patch": format!("*** Begin Patch\n{lines}\n*** End Patch")});
    std::fs::create_dir(bench.path(".git/hooks")).unwrap();
    for (tool, arguments) in [
        ("write", json!({"path": ".git/config", "content": "x"})),
        ("write", json!({"path": "sub/../.git/hooks/pre-commit", "content": "x"})),
        ("write", json!({"path": ".GIT/config", "content": "x"})),
        ("write", json!({"path": "innocent/pre-commit", "content": "x"})),
        ("write", json!({"path": "throughline.toml", "content": "x"})),
        ("write", json!({"path": "new/.vscode/tasks.json", "content": "x"})),
        ("edit", json!({"path": ".envrc", "old_string": "x", "new_string": "y"})),
        ("edit", json!({"path": "settings", "old_string": "x", "new_string": "y"})),
        ("apply_patch", patch("*** Add File: .git/hooks/post-checkout\n+x")),
        ("apply_patch", patch("*** Delete File: .envrc")),
        (
            "apply_patch",
            patch("*** Update File: plain\n*** Move to: .envrc2\n@@\n-x\n+y\n*** Add File: a/.envrc\n+x"),
        ),
    ] {
        let call = bench.toolbox.check(tool, &arguments.to_string()).expect("it is a call");
        let protected = bench.toolbox.protected(&call).await;
        assert_eq!(protected.len(), 1, "{arguments}: {protected:?}");
        assert!(!protected[0].reason.is_empty());
        let outcome = bench.toolbox.run(&call, &Context::default()).await;
        let error = told(&outcome)["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains("is protected, and nobody agreed"), "{arguments}: {}", outcome.output);
    }
    assert_eq!((bench.content(".git/config").as_str(), bench.content(".envrc").as_str()), (CONFIG, "x\n"));
    let plain = bench.toolbox.check("write", r#"{"path": "src/x", "content": ""}"#).expect("it is a call");
    assert_eq!(bench.toolbox.protected(&plain).await, []);
}

#[tokio::test]
async fn what_somebody_agreed_to_is_written() {
    for bench in benches().await {
        let context = Context { agreed: vec![PathBuf::from(".envrc")], ..Context::default() };
        let write = json!({"path": ".envrc", "content": "new"});
        assert!(bench.call_in("write", write, &context).await.is_done());
        assert_eq!(bench.content(".envrc"), "new");
        let other = json!({"path": ".git/config", "content": "new"});
        assert!(!bench.call_in("write", other, &context).await.is_done());

        let call =
            json!({"command": "echo newer > .envrc && echo evil > .git/config", "protected": [".envrc"]});
        let checked = bench.toolbox.check("bash", &call.to_string()).expect("it is a call");
        let paths: Vec<PathBuf> =
            bench.toolbox.protected(&checked).await.into_iter().map(|it| it.path).collect();
        assert_eq!(paths, [PathBuf::from(".envrc")]);
        bench.toolbox.run(&checked, &context).await;
        assert_eq!(
            (bench.content(".envrc").as_str(), bench.content(".git/config").as_str()),
            ("newer\n", CONFIG)
        );
    }
}

#[tokio::test]
async fn what_commands_write_is_undone() {
    for bench in benches().await {
        let is_mounted = bench.toolbox.shell().confinement().namespaces.is_ok();
        for (command, path) in [
            ("echo evil > .git/config", ".git/config"),
            ("echo evil > deep/er/.envrc", "deep/er/.envrc"),
            ("rm .envrc; echo evil > .envrc", ".envrc"),
            ("echo evil > new; mv new .vscode/tasks.json", ".vscode/tasks.json"),
            ("chmod +x .git/hooks/pre-commit.sample", ".git/hooks/pre-commit.sample"),
            ("ln -sf /etc/passwd .envrc", ".envrc"),
            ("rm -f .envrc", ".envrc"),
        ] {
            let before =
                (bench.content(path), std::fs::symlink_metadata(bench.path(path)).unwrap().permissions());
            let outcome = bash(&bench, command).await;
            let after =
                (bench.content(path), std::fs::symlink_metadata(bench.path(path)).unwrap().permissions());
            assert_eq!(before, after, "{command}: {}", outcome.output);
            if is_mounted {
                assert_ne!(outcome.exit_code, Some(0), "{command}: {}", outcome.output);
                assert!(
                    matches!(&outcome.notices[..], [Notice::ProtectedUnwritable { .. }]),
                    "{}",
                    outcome.output
                );
            } else {
                let is_said = matches!(&outcome.notices[..], [Notice::ProtectedRestored { paths, .. }] if paths == &[path]);
                assert!(is_said, "{command}: {}", outcome.output);
            }
        }
    }
}

#[tokio::test]
async fn what_commands_create_is_set_aside() {
    for bench in benches().await {
        for (command, path) in [
            ("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
            ("echo evil > throughline.toml", "throughline.toml"),
            ("mkdir a; echo evil > a/.envrc", "a/.envrc"),
            ("mkdir b; git init -q b; git -C b config core.fsmonitor ./evil", "b/.git/config"),
            ("mkdir c; echo 'gitdir: ../evil' > c/.git", "c/.git"),
            ("ln -s ../evil d-git; mkdir d; mv d-git d/.git", "d/.git"),
            ("mkdir .husky; echo evil > .husky/pre-commit", ".husky/pre-commit"),
            ("echo /evil > .git/commondir", ".git/commondir"),
            ("mv .git gone; cp -r gone .git; echo evil > .git/config.worktree", ".git/config.worktree"),
        ] {
            let outcome = bash(&bench, command).await;
            if !outcome.notices.iter().any(|it| matches!(it, Notice::ProtectedRestored { .. })) {
                // It could not be written in the first place.
                assert_ne!(outcome.exit_code, Some(0), "{command}: {}", outcome.output);
                assert!(bench.path(path).symlink_metadata().is_err(), "{command}: {}", outcome.output);
                continue;
            }
            let place = format!("{path}.throughline-quarantined");
            assert!(bench.path(path).symlink_metadata().is_err(), "{command}: {}", outcome.output);
            assert!(bench.path(&place).symlink_metadata().is_ok(), "{command}: {}", outcome.output);
            assert!(outcome.output.contains(&place), "{command}: {}", outcome.output);
        }
        assert_eq!(bench.content(".git/config"), CONFIG);
    }
}

#[tokio::test]
async fn git_still_works() {
    for bench in benches().await {
        std::fs::remove_dir_all(bench.path(".git")).unwrap();
        let git = "git -c user.name=a -c user.email=a@b";
        let made =
            bash(&bench, &format!("git init -q -b main . && git add src && {git} commit -qm one")).await;
        assert_eq!((made.exit_code, made.notices.len()), (Some(0), 0), "{}", made.output);
        let script = format!(
            "set -e; echo x > src/main.rs; git status --short; {git} stash -q; {git} stash pop -q; {git} commit -qam two;
             git checkout -q -b other; git checkout -q main; git log --oneline | wc -l; git worktree add -q wt other;
             git -C wt status --short; git branch -q -D other || true; git clone -q . copy; git gc -q"
        );
        let outcome = bash(&bench, &script).await;
        assert_eq!((outcome.exit_code, outcome.notices.len()), (Some(0), 0), "{}", outcome.output);
        let refused = bash(&bench, "git config core.fsmonitor ./evil").await;
        assert_eq!(refused.notices.len(), 1, "{}", refused.output);
        let config =
            Command::new("git").args(["config", "core.fsmonitor"]).current_dir(bench.path("")).output();
        assert!(!config.unwrap().status.success(), "it is not set");
    }
}

#[tokio::test]
async fn paths_can_be_added() {
    let mut settings = confined_settings();
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("history.db"), "x").unwrap();
    settings.writable = vec![data.path().to_owned()];
    let bench = Bench::with_settings(settings).await;
    bench.put("own/settings", "x");
    let reason = "it is the history".to_owned();
    let paths = [bench.path("own"), data.path().to_owned()];
    let bench = bench.protecting(paths.map(|path| ProtectedPath { path, reason: reason.clone() }));
    let call = bench.toolbox.check("write", r#"{"path": "own/other", "content": ""}"#).expect("it is a call");
    let expected = ProtectedPath { path: "own/other".into(), reason };
    assert_eq!(bench.toolbox.protected(&call).await, [expected]);
    if bench.toolbox.shell().confinement().namespaces.is_ok() {
        for command in
            ["echo y > own/settings".to_owned(), format!("echo y > {}/history.db", data.path().display())]
        {
            assert_ne!(bash(&bench, &command).await.exit_code, Some(0), "{command}");
        }
    }
}

#[tokio::test]
async fn what_others_write_meanwhile_stays() {
    let bench = Bench::confined().await;
    if bench.toolbox.shell().confinement().namespaces.is_err() {
        return; // Then nobody knows who wrote it.
    }
    bench.put(".vscode/settings.json", "old");
    let mut lifeline = crate::bench::Lifeline::new(&bench);
    let context = Context::default();
    let script = "exec 9> alive; echo held >&9; while [ ! -e go ]; do sleep 0.01; done";
    let call = bench.call_in("bash", json!({"command": script}), &context);
    let editor = async {
        lifeline.until_held().await;
        bench.put(".vscode/settings.json", "an editor saves it");
        bench.put("go", "");
    };
    let (outcome, ()) = tokio::join!(call, editor);
    assert_eq!((outcome.exit_code, outcome.notices.len()), (Some(0), 0), "{}", outcome.output);
    assert_eq!(bench.content(".vscode/settings.json"), "an editor saves it");
}
