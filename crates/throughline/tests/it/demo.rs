//! The demo holds what it claims.

use crate::cli::{root, throughline};

#[test]
fn every_claim_of_the_demo_holds() {
    let told = throughline(&["demo", "--once"], b"");
    assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("17 of 17 claims held"), "{}", told.stdout);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, quoted) = readme.split_once("```text\n").unwrap();
    let (quoted, _) = quoted.split_once("```").unwrap();
    for line in quoted.lines().filter(|line| line.trim() != "…") {
        assert!(told.stdout.contains(line), "README.md quotes what the demo does not say: {line}");
    }
    let folder = told.stdout.split("--cwd ").nth(1).and_then(|rest| rest.split("/bakery").next()).unwrap();
    assert!(!std::path::Path::new(folder).exists(), "{folder} was left behind");
}
