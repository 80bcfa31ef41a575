//! What a crate may depend on, and how its tests are laid out.

use std::fs;

use super::{Finding, assert_none, root};

/// The whole list of what the pure crates may use. An addition is a decision, not a convenience.
const PURE_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("throughline-carry", &["blake3", "thiserror", "throughline-core", "throughline-wire"]),
    ("throughline-core", &["thiserror"]),
    ("throughline-models", &[]),
    ("throughline-wire", &["memchr", "thiserror", "throughline-core"]),
];

/// Which crates of this workspace each one may depend on. A new crate states its arrows here.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "throughline",
        &[
            "throughline-carry",
            "throughline-core",
            "throughline-gateway",
            "throughline-mcp",
            "throughline-models",
            "throughline-sim",
            "throughline-store",
            "throughline-tokens",
            "throughline-tools",
            "throughline-wire",
        ],
    ),
    ("throughline-carry", &["throughline-core", "throughline-wire"]),
    ("throughline-core", &[]),
    ("throughline-eval", &["throughline-core", "throughline-tokens"]),
    (
        "throughline-gateway",
        &[
            "throughline-core",
            "throughline-inspector",
            "throughline-models",
            "throughline-store",
            "throughline-tokens",
            "throughline-tools",
            "throughline-wire",
        ],
    ),
    ("throughline-inspector", &[]),
    ("throughline-mcp", &["throughline-core", "throughline-store", "throughline-tokens"]),
    ("throughline-models", &[]),
    ("throughline-store", &["throughline-core"]),
    ("throughline-sim", &["throughline-core", "throughline-validate", "throughline-wire"]),
    ("throughline-testkit", &["throughline-validate"]),
    ("throughline-tokens", &["throughline-core"]),
    ("throughline-tools", &[]),
    ("throughline-validate", &[]),
    ("throughline-wire", &["throughline-core"]),
];

/// One dependency as a manifest names it, with its line.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    name: String,
    line: usize,
}

#[test]
fn pure_crates_use_only_what_is_listed() {
    let mut findings = Vec::new();
    for (krate, allowed) in PURE_DEPENDENCIES {
        for dependency in shipped_dependencies(&manifest(krate)) {
            if !allowed.contains(&dependency.name.as_str()) {
                let what = format!("{krate} may not depend on {}; allowed: {allowed:?}", dependency.name);
                findings.push(Finding::new(&manifest_path(krate), dependency.line, what));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn arrows_between_crates_are_the_stated_ones() {
    let mut findings = Vec::new();
    let crates = crate_names();
    for krate in &crates {
        let Some((_, targets)) = ARROWS.iter().find(|(name, _)| name == krate) else {
            findings.push(Finding::new(&manifest_path(krate), 1, format!("{krate} has no entry in ARROWS")));
            continue;
        };
        for dependency in shipped_dependencies(&manifest(krate)) {
            if crates.contains(&dependency.name) && !targets.contains(&dependency.name.as_str()) {
                let what = format!("{krate} may not depend on {}", dependency.name);
                findings.push(Finding::new(&manifest_path(krate), dependency.line, what));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn integration_tests_of_a_crate_are_one_binary() {
    let findings: Vec<Finding> = crate_names().iter().flat_map(|krate| stray_test_binaries(krate)).collect();
    assert_none(&findings);
}

/// Several crates have programs; without this, `cargo run` as the README has it only says so.
#[test]
fn one_crate_says_what_cargo_run_means() {
    let says = |krate: &String| manifest(krate).lines().any(|line| line.starts_with("default-run = "));
    let saying: Vec<String> = crate_names().into_iter().filter(says).collect();
    assert_eq!(saying, ["throughline"]);
}

#[test]
fn dependencies_are_read_from_every_kind_of_table() {
    let manifest = "\
[package]
name = \"example\"

[dependencies]
plain = \"1\"
dotted.workspace = true
# comment = \"1\"
\"quoted\" = { version = \"1\" }

[dependencies.table]
version = \"1\"

[target.'cfg(unix)'.dependencies]
only-unix = \"1\"

[build-dependencies]
builder = \"1\"

[dev-dependencies]
tests-only = \"1\"
";
    let names: Vec<String> = shipped_dependencies(manifest).into_iter().map(|found| found.name).collect();
    assert_eq!(names, ["plain", "dotted", "quoted", "table", "only-unix", "builder"]);
}

/// Returns the dependencies of the crate itself and of its build script, not those of its tests.
fn shipped_dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut in_list = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (table, name) = split_header(header);
            in_list = is_shipped(table) && name.is_none();
            if let Some(name) = name.filter(|_| is_shipped(table)) {
                found.push(Dependency { name: unquoted(name), line: index + 1 });
            }
        } else if in_list && !line.is_empty() && !line.starts_with(['#', '}', ']']) {
            let name = line.split(['=', '.']).next().unwrap_or(line);
            found.push(Dependency { name: unquoted(name), line: index + 1 });
        }
    }
    found
}

/// Splits `dependencies.name` into its table and the name; a table of many names has none.
fn split_header(header: &str) -> (&str, Option<&str>) {
    match header.rsplit_once("dependencies.") {
        Some((before, name)) => (&header[..before.len() + "dependencies".len()], Some(name)),
        None => (header, None),
    }
}

fn is_shipped(table: &str) -> bool {
    table.ends_with("dependencies") && !table.ends_with("dev-dependencies")
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}

/// Returns a finding for each test target of the crate beside `tests/it`.
fn stray_test_binaries(krate: &str) -> Vec<Finding> {
    let folder = format!("crates/{krate}/tests");
    let Ok(entries) = fs::read_dir(root().join(&folder)) else { return Vec::new() };
    let mut findings = Vec::new();
    for entry in entries {
        let entry = entry.expect("an entry of the tree can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_target = name.ends_with(".rs") || entry.path().join("main.rs").exists();
        if is_target && name != "it" {
            findings.push(Finding::new(&format!("{folder}/{name}"), 1, "belongs in tests/it, as a module"));
        }
    }
    findings
}

fn crate_names() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates can be listed");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry.expect("an entry of the tree can be read").file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

fn manifest_path(krate: &str) -> String {
    format!("crates/{krate}/Cargo.toml")
}

fn manifest(krate: &str) -> String {
    fs::read_to_string(root().join(manifest_path(krate))).expect("a crate has a manifest")
}
