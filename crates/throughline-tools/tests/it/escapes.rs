//! Ways out of the working directory, each of them refused.

use crate::bench::{Bench, names};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const REFUSAL: &str = "is outside of the working directory, or leads there by a link";

/// Returns a bench with secrets outside, and links to them.
fn besieged() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.outside("vault")).expect("the siege can be laid");
    fs::write(bench.outside("vault/secret"), "SECRET").expect("the siege can be laid");
    bench.put("inner/file", "x");
    symlink(bench.outside("vault/secret"), bench.path("absolute")).expect("the siege can be laid");
    symlink("../vault/secret", bench.path("relative")).expect("the siege can be laid");
    symlink("../vault", bench.path("dir")).expect("the siege can be laid");
    symlink("relative", bench.path("twice")).expect("the siege can be laid");
    symlink("../vault/absent", bench.path("dangling")).expect("the siege can be laid");
    bench
}

fn ways_out(bench: &Bench) -> Vec<String> {
    let mut ways: Vec<String> = [
        "../vault/secret",
        "inner/../../vault/secret",
        "absolute",
        "relative",
        "dir/secret",
        "twice",
        "inner/../dir/secret",
        "/etc/passwd",
        "//etc/passwd",
        "./../vault/secret",
    ]
    .map(str::to_owned)
    .to_vec();
    ways.push(bench.outside("vault/secret").display().to_string());
    ways.push(format!("{}/../vault/secret", bench.path("").display()));
    ways
}

#[tokio::test]
async fn nothing_outside_is_read() {
    let bench = besieged();
    for way in ways_out(&bench) {
        let error = bench.failed("read", json!({"path": way})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
        let error = bench.failed("grep", json!({"pattern": "SECRET", "path": way})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
    }
}

#[tokio::test]
async fn nothing_outside_is_written() {
    let bench = besieged();
    for way in ways_out(&bench).into_iter().chain(["../new".to_owned(), "dir/new".to_owned()]) {
        let patches = [
            json!({"patch": format!("*** Begin Patch\n*** Update File: {way}\n-SECRET\n+gone\n*** End Patch")}),
            json!({"patch": format!("*** Begin Patch\n*** Add File: {way}\n+x\n*** End Patch")}),
            json!({"patch": format!("*** Begin Patch\n*** Delete File: {way}\n*** End Patch")}),
            json!({"patch": format!("*** Begin Patch\n*** Update File: inner/file\n*** Move to: {way}\n-x\n+y\n*** End Patch")}),
        ];
        for patch in patches {
            let error = bench.failed("apply_patch", patch).await;
            assert!(error.contains(REFUSAL), "{way}: {error}");
        }
        let error = bench.failed("write", json!({"path": way, "content": "gone"})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
        let error =
            bench.failed("edit", json!({"path": way, "old_string": "SECRET", "new_string": "gone"})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
    }
    bench.failed("write", json!({"path": "dangling", "content": "x"})).await;
    assert_eq!(names(&bench.outside("vault")), ["secret"]);
    assert_eq!(fs::read_to_string(bench.outside("vault/secret")).unwrap(), "SECRET");
    assert_eq!(names(&bench.outside("")), ["vault", "work"]);
}

#[tokio::test]
async fn nothing_outside_is_listed_or_searched() {
    let bench = besieged();
    for way in ["..", "dir", "../vault", "/", "/etc", "inner/../.."] {
        let error = bench.failed("ls", json!({"path": way})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
        let error = bench.failed("glob", json!({"pattern": "*", "path": way})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
        let error = bench.failed("bash", json!({"command": "pwd", "cwd": way})).await;
        assert!(error.contains(REFUSAL), "{way}: {error}");
    }
    let error = bench.failed("glob", json!({"pattern": "/etc/*"})).await;
    assert!(error.contains(REFUSAL), "{error}");
    assert_eq!(
        bench.done("grep", json!({"pattern": "SECRET"})).await["matches"],
        0,
        "links are not followed"
    );
    let found = bench.done("glob", json!({"pattern": "**/*"})).await;
    assert_eq!(found["files"], json!(["absolute", "dangling", "dir", "inner/file", "relative", "twice"]));
    let listed = bench.done("ls", json!({})).await;
    assert_eq!(listed["entries"], json!(["absolute@", "dangling@", "dir@", "inner/", "relative@", "twice@"]));
}

#[tokio::test]
async fn links_inside_are_followed() {
    let bench = besieged();
    symlink("inner/file", bench.path("good")).unwrap();
    symlink("inner", bench.path("inner-too")).unwrap();
    assert_eq!(bench.done("read", json!({"path": "good"})).await["content"], "x");
    assert_eq!(bench.done("read", json!({"path": "inner-too/file"})).await["content"], "x");
    bench.done("write", json!({"path": "inner-too/file", "content": "y"})).await;
    assert_eq!(bench.content("inner/file"), "y");
}

/// Swaps a directory for a link that leads outside, and back, until it is told to stop; returns how often.
///
/// A write may make the directory anew in the meantime, so each step may fail and is then made up for.
fn swap(stop: &AtomicBool, work: &Path) -> usize {
    let (target, away) = (work.join("target"), work.join("away"));
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        fs::rename(&target, &away).expect("it is put back in every round");
        swaps += usize::from(symlink("../vault", &target).is_ok());
        if fs::remove_file(&target).is_err() {
            let _ = fs::remove_dir_all(&target);
        }
        while fs::rename(&away, &target).is_err() {
            let _ = fs::remove_dir_all(&target);
        }
    }
    swaps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_swapped_in_leads_nowhere() {
    let bench = besieged();
    bench.put("target/secret", "inside");
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, work) = (Arc::clone(&stop), bench.path(""));
    let swapping = std::thread::spawn(move || swap(&flag, &work));
    let mut inside = 0;
    for round in 0..300 {
        let read = bench.call("read", json!({"path": "target/secret"})).await.output;
        assert!(!read.contains("SECRET"), "round {round}: {read}");
        inside += usize::from(read.contains("inside"));
        let found = bench.call("grep", json!({"pattern": "SECRET"})).await.output;
        assert!(!found.contains(":SECRET"), "round {round}: {found}");
        bench.call("write", json!({"path": "target/planted", "content": "x"})).await;
        bench.call("write", json!({"path": "target/secret", "content": "inside"})).await;
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert_eq!(names(&bench.outside("vault")), ["secret"], "nothing was planted");
    assert_eq!(fs::read_to_string(bench.outside("vault/secret")).unwrap(), "SECRET");
    assert!(swaps > 0, "the link was there");
    assert!(inside > 0, "some of the rounds met the directory itself");
}
