//! Holds the files in `deploy/` to what the binary takes: its flags, variables, port and paths.

use crate::cli::{root, throughline};

fn file(name: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(name)).unwrap()
}

/// Returns the list that follows a word, as it is written in YAML and in a Dockerfile.
fn list(text: &str, behind: &str) -> Vec<String> {
    let (_, rest) = text.split_once(behind).unwrap();
    let (list, _) = rest.trim_start().strip_prefix('[').unwrap().split_once(']').unwrap();
    list.split(',').map(|item| item.trim().trim_matches('"').to_owned()).collect()
}

#[test]
fn the_commands_are_ones_that_the_binary_takes() {
    let unit = file("throughline.service");
    let unit =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/throughline ")).unwrap();
    for command in [
        unit.split(' ').map(str::to_owned).collect(),
        list(&file("Dockerfile"), "\nCMD "),
        list(&file("kubernetes.yaml"), "args: "),
    ] {
        let help = ["--help".to_owned()];
        let args: Vec<&str> = command.iter().chain(&help).map(String::as_str).collect();
        let run = throughline(&args, b"");
        assert_eq!((command[0].as_str(), run.code), ("serve", 0), "{command:?}: {}", run.stderr);
    }
}

#[test]
fn the_variables_are_ones_that_are_documented() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    for name in ["Dockerfile", "compose.yaml", "kubernetes.yaml"] {
        let text = file(name);
        // What a variable refers to, as env:NAME, is the operator's own.
        let is_referred = |word: &str| text.contains(&format!("env:{word}"));
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        for word in words.filter(|word| word.starts_with("THROUGHLINE_") && !is_referred(word)) {
            assert!(page.contains(&format!("`{word}`")), "{name}: {word}");
        }
        assert!(text.contains("THROUGHLINE_AUTH_KEYS"), "{name}: others can reach it, so it needs keys");
    }
}

#[test]
fn the_paths_are_answered_and_the_port_is_the_same_everywhere() {
    let interface = std::fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let kubernetes = file("kubernetes.yaml");
    let probes: Vec<&str> =
        kubernetes.split("path: ").skip(1).map(|rest| rest.split(',').next().unwrap()).collect();
    assert_eq!(probes, ["/healthz", "/readyz"]);
    for path in probes {
        assert!(interface.contains(&format!("\"{path}\": {{")), "{path}");
    }
    let port = "4141";
    assert!(file("Dockerfile").contains(&format!("EXPOSE {port}")));
    assert!(file("Dockerfile").contains(&format!("0.0.0.0:{port}")));
    for given in ["containerPort: ", "port: ", "0.0.0.0:"] {
        let number = format!("{given}{port}");
        assert!(kubernetes.contains(&number), "{number}");
    }
    let compose = file("compose.yaml");
    assert!(
        compose.contains(&format!("server gateway:{port} resolve;"))
            && compose.contains(&format!("listen {port};"))
    );
    // The largest body that the gateway takes by default.
    assert_eq!((compose.contains("client_max_body_size 32m;"), 32 << 20), (true, 33_554_432));
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    assert!(page.lines().any(|line| line.contains("`body_bytes`") && line.contains("33554432")));
}

#[test]
fn a_wrong_configuration_is_not_started_again_and_again() {
    let unit = file("throughline.service");
    let code = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("throughline.toml");
    std::fs::write(&config, "listen = 7\n").unwrap();
    let run = throughline(&["serve", "--config", config.to_str().unwrap()], b"");
    assert_eq!(run.code.to_string(), code, "{}", run.stderr);
    let (_, page) = unit.split_once("Documentation=file:///usr/share/doc/throughline/").unwrap();
    let page = page.lines().next().unwrap();
    assert!(root().join("docs").join(page).is_file(), "the comment says to put it there");
    assert!(unit.contains(&format!("# docs/{page} at /usr/share/doc/throughline/{page}")));
}

#[test]
fn an_image_is_built_from_sources_alone() {
    let ignored = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    let ignored: Vec<&str> = ignored.lines().collect();
    for heavy_or_secret in [".git", "target", "**/node_modules", "**/.env"] {
        assert!(ignored.contains(&heavy_or_secret), "{heavy_or_secret}");
    }
    // Every crate is, and what documentation they include.
    assert!(!ignored.iter().any(|line| ["crates", "docs", "Cargo.lock", "Cargo.toml"].contains(line)));
    let manifest: toml::Table =
        toml::from_str(&std::fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    assert!(members.iter().all(|member| member.as_str().unwrap().starts_with("crates/")), "{members:?}");
}

/// Runs the script that writes the bill of materials; none where Python is missing or crates would have to be fetched.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn bill_of_materials() -> Option<String> {
    let mut script = std::process::Command::new(root().join("deploy/sbom"));
    let is_ci = std::env::var_os("CI").is_some();
    if !is_ci {
        script.env("CARGO_NET_OFFLINE", "true");
    }
    let done = script.output().ok().filter(|done| done.status.success());
    if done.is_none() {
        assert!(!is_ci, "deploy/sbom failed");
        eprintln!("skipped: deploy/sbom needs Python, and every crate of the lock file (cargo fetch)");
    }
    done.map(|done| String::from_utf8(done.stdout).unwrap())
}

#[test]
fn the_bill_of_materials_lists_every_crate_that_ships() {
    let Some(bill) = bill_of_materials() else { return };
    assert_eq!(Some(&bill), bill_of_materials().as_ref(), "the same each time");
    let bill: serde_json::Value = serde_json::from_str(&bill).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let components = bill["components"].as_array().unwrap();
    let listed: std::collections::BTreeSet<&str> =
        components.iter().map(|component| component["purl"].as_str().unwrap()).collect();
    assert_eq!(listed.len(), components.len(), "each once");
    for component in components {
        let is_own = component["name"].as_str().unwrap().starts_with("throughline");
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        assert_eq!(component["hashes"][0]["content"].as_str().map(str::len), (!is_own).then_some(64));
    }
    // What the lock file says of the crates that are in this test's program, too.
    let lock: toml::Table =
        toml::from_str(&std::fs::read_to_string(root().join("Cargo.lock")).unwrap()).unwrap();
    let packages = lock["package"].as_array().unwrap();
    // Where there are several versions, the lock file says which one is meant.
    let package = |named: &str| {
        let (name, version) = named.split_once(' ').map_or((named, None), |(name, rest)| (name, Some(rest)));
        let is_it = |package: &&toml::Value| {
            package["name"].as_str() == Some(name)
                && version.is_none_or(|version| package["version"].as_str() == Some(version))
        };
        packages.iter().find(is_it).unwrap()
    };
    let mut waiting = vec!["throughline".to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    let manifest = std::fs::read_to_string(root().join("crates/throughline/Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let shipped = manifest["dependencies"].as_table().unwrap();
    while let Some(name) = waiting.pop() {
        if !seen.insert(name.clone()) || name.starts_with("throughline") && name != "throughline" {
            continue;
        }
        let package = package(&name);
        let below = package.get("dependencies").and_then(|below| below.as_array()).into_iter().flatten();
        let below = below.map(|below| below.as_str().unwrap().to_owned());
        // The lock file does not tell what only tests need; the manifest of the program does.
        let ships =
            |below: &String| name != "throughline" || shipped.contains_key(below.split(' ').next().unwrap());
        waiting.extend(below.filter(ships));
        let purl = format!(
            "pkg:cargo/{}@{}",
            package["name"].as_str().unwrap(),
            package["version"].as_str().unwrap()
        );
        assert!(name == "throughline" || listed.contains(&*purl), "{purl} is missing");
    }
    assert!(seen.len() > 50, "{}", seen.len());
}
