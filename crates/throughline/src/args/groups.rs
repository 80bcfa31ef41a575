//! The commands in groups, as the help lists them.

use clap::Command;

/// Each group with its commands, the most used first.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("Begin", &["start", "serve", "demo", "env", "open"]),
    ("Read the record", &["ls", "show", "search", "usage", "replay", "mcp"]),
    ("Run and switch", &["run", "chat", "use", "backends", "models"]),
    ("Move sessions", &["import", "export", "carry", "convert", "compact", "brief"]),
    ("Look after it", &["doctor", "config", "trust", "rm", "store"]),
    ("For developers", &["sim", "completions", "man", "help"]),
];

/// Returns the command line with its commands in groups.
pub fn group_commands(mut program: Command) -> Command {
    // Only then it has the command that helps with the others.
    program.build();
    let width = program.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut text = String::from("Commands:");
    for (name, commands) in GROUPS {
        text.push_str(&format!("\n  {name}\n"));
        for command in commands.iter().filter_map(|name| program.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("    {:width$}  {about}\n", command.get_name()));
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}\nOptions:\n{{options}}{{after-help}}"
    );
    program.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_in_one_group() {
        let mut program = Args::command();
        program.build();
        let there: BTreeSet<&str> = program.get_subcommands().map(Command::get_name).collect();
        let all: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
        assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(all.len(), there.len(), "none is in two groups");
        let help = group_commands(Args::command()).render_help().to_string();
        assert!(help.contains("\n  Begin\n    start "), "{help}");
        assert!(help.contains("\nOptions:\n") && help.contains("--json"), "{help}");
    }
}
