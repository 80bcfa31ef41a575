//! `throughline man`: the manual pages, written from the command line as it is read.
//!
//! They are made when they are asked for, so that no build step, no generated file and no package can be behind.

use crate::args::Args;
use crate::exit::{CODES, CommandError};
use crate::output::{self, counted};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::Path;

/// The variables that every command reads.
const VARIABLES: [(&str, &str); 7] = [
    ("THROUGHLINE_CONFIG", "The configuration file, as --config."),
    ("THROUGHLINE_DATA", "The directory that history is kept in, as --data."),
    (
        "THROUGHLINE_SECTION_KEY",
        "Sets a key of the configuration, such as THROUGHLINE_HISTORY_BUDGET for budget in [history].",
    ),
    (
        "THROUGHLINE_PAGER, PAGER",
        "What shows long output on a terminal; less -FRX without them, nothing if empty.",
    ),
    ("NO_COLOR", "If it is not empty, nothing is coloured."),
    ("CLICOLOR_FORCE", "If it is not empty and not 0, everything is coloured, also in files and pipes."),
    ("COLUMNS, LINES", "How large the terminal is, where it does not say so itself."),
];

/// The files that every command reads.
const FILES: [(&str, &str); 4] = [
    ("throughline.toml", "The configuration, in the working directory, if it is trusted."),
    (
        "~/.config/throughline/throughline.toml",
        "The configuration, where the working directory has none that is.",
    ),
    ("~/.local/state/throughline/trust", "Which files of working directories are trusted."),
    ("~/.local/share/throughline/history.db", "The history, unless the configuration says otherwise."),
];

/// Writes one page for each command to a directory, or the first page to standard output.
pub fn run(dir: Option<&Path>, quiet: bool) -> Result<(), CommandError> {
    let pages = pages();
    let Some(dir) = dir else {
        return pages.first().map_or(Ok(()), |(_, text)| output::print(text));
    };
    std::fs::create_dir_all(dir).map_err(|source| CommandError::file(dir.display(), source))?;
    for (name, text) in &pages {
        let file = dir.join(name);
        std::fs::write(&file, text).map_err(|source| CommandError::file(file.display(), source))?;
    }
    if !quiet {
        output::remark(&format!("{}: {}", dir.display(), counted(pages.len() as u64, "page", "pages")));
    }
    Ok(())
}

/// Returns the pages by the names of their files, that of the program itself first.
fn pages() -> Vec<(String, String)> {
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    let mut waiting = vec![program];
    while let Some(command) = waiting.pop() {
        let mut below: Vec<_> =
            command.get_subcommands().filter(|each| !each.is_hide_set()).cloned().collect();
        let man = Man::new(command.clone()).manual("Throughline");
        pages.push((man.get_filename(), page(&man, &command, pages.is_empty())));
        below.reverse();
        waiting.append(&mut below);
    }
    pages
}

fn page(man: &Man, command: &Command, is_first: bool) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = man
        .render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| man.render_synopsis_section(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| man.render_options_section(&mut text));
    if command.has_subcommands() {
        let _ = man.render_subcommands_section(&mut text);
    }
    let mut roff = Roff::new();
    if let Some(examples) = command.get_after_long_help().map(ToString::to_string) {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines().skip(1) {
            roff.text([roman(line.trim_start())]);
        }
        roff.control("fi", []);
    }
    let codes = CODES.map(|(code, what)| (code.to_string(), what));
    listed(&mut roff, "EXIT STATUS", codes.iter().map(|(code, what)| (code.as_str(), *what)));
    if is_first {
        listed(&mut roff, "ENVIRONMENT", VARIABLES.into_iter());
        listed(&mut roff, "FILES", FILES.into_iter());
    } else {
        roff.control("SH", ["SEE ALSO"]).text([bold("throughline"), roman("(1)")]);
    }
    String::from_utf8_lossy(&text).into_owned() + &roff.render()
}

fn listed<'t>(roff: &mut Roff, heading: &str, items: impl Iterator<Item = (&'t str, &'t str)>) {
    roff.control("SH", [heading]);
    for (name, what) in items {
        roff.control("TP", []).text([bold(name)]).text([roman(what)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_exit_codes() {
        let pages = pages();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.first(), Some(&"throughline.1"));
        for name in ["throughline-serve.1", "throughline-store-check.1", "throughline-config-init.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let (_, search) = pages.iter().find(|(name, _)| name == "throughline-search.1").unwrap();
        for expected in ["\\-\\-failed", ".SH EXAMPLES", ".SH \"EXIT STATUS\"", "SEE ALSO"] {
            assert!(search.contains(expected), "{expected}: {search}");
        }
        assert!(pages[0].1.contains("THROUGHLINE_DATA") && pages[0].1.contains("history.db"));
        for (name, text) in &pages {
            assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}");
        }
    }
}
