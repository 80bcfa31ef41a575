//! Holds the documentation to what the binary does.

use crate::cli::{root, throughline};

#[test]
fn every_command_of_the_help_is_documented() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let help = throughline(&["--help"], b"").stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.contains(&"convert"));
    for name in names {
        assert!(readme.contains(&format!("throughline {name}")), "README.md does not mention {name}");
    }
}

#[test]
fn every_option_of_convert_is_documented() {
    let page = std::fs::read_to_string(root().join("docs/convert.md")).unwrap();
    let help = throughline(&["convert", "--help"], b"").stdout;
    for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = word.trim_end_matches([',', '.', ']']);
        assert!(page.contains(option), "docs/convert.md does not mention {option}");
    }
}

#[test]
fn a_completion_script_is_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let run = throughline(&["completions", shell], b"");
        assert_eq!(run.code, 0);
        assert!(run.stdout.contains("convert"), "{shell}");
    }
}
