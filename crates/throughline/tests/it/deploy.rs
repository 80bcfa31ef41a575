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
        compose.contains(&format!("server gateway:{port};")) && compose.contains(&format!("listen {port};"))
    );
    // The largest body that the gateway takes by default.
    assert_eq!((compose.contains("client_max_body_size 64m;"), 64 << 20), (true, 67_108_864));
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    assert!(page.lines().any(|line| line.contains("`body_bytes`") && line.contains("67108864")));
}
