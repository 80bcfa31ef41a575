//! What a later result makes superfluous (R17).
//!
//! What the work goes on from is the last full content of each file, and every change after it. So a look at a file is
//! superseded by a later look at the same part of it, or at the whole, unless the file was written in between; a write or
//! an edit by a later write of all of the file. A look that came before a write of any kind is
//! *stale*: it says so, and stays, being the best content there is, and is worth little once the whole is seen again. A
//! command goes when it is known to change nothing and was run again, any other call when the same words brought the same
//! result. A failure neither supersedes nor is superseded.

use super::handle::{hash, mix};
use super::paths::{holds, may_be_same};
use super::shell::{self, Written};
use super::survey::{Pair, Survey};
use super::tools::ToolKind;
use crate::joined_text;
use std::collections::{BTreeMap, BTreeSet};

/// What the pairs of a survey mean to each other; pairs are named by their index.
pub(super) struct Relations {
    /// The pair that supersedes each pair.
    pub by: Vec<Option<usize>>,
    /// Whether each pair shows a file that was written later.
    pub stale: Vec<bool>,
    /// Whether each pair shows or makes a state of a file after which the whole of it is seen in another one.
    pub replaced: Vec<bool>,
    /// Whether each pair shows a file that is being edited.
    pub under_edit: Vec<bool>,
    /// Whether each pair matters to what is being done: a failure that nothing resolved, the latest look at a file
    /// that is being worked on, and the latest operation on it.
    pub matters: Vec<bool>,
}

/// How many of the files that were written last are being worked on.
const WORKING_SET: usize = 3;
/// How many of the latest failures can still be open.
const FAILURES_MAX: usize = 5;

/// Finds what is superseded and what is stale.
pub(super) fn relations(survey: &Survey<'_>) -> Relations {
    let count = survey.pairs.len();
    let mut later = Later::default();
    let no = || vec![false; count];
    let mut relations =
        Relations { by: vec![None; count], stale: no(), replaced: no(), under_edit: no(), matters: no() };
    for (at, pair) in survey.pairs.iter().enumerate().rev() {
        if pair.result.is_none() {
            continue;
        }
        relations.matters[at] = later.makes_matter(pair);
        if pair.failed {
            continue;
        }
        relations.stale[at] = later.makes_stale(pair);
        let is_old = relations.stale[at] || pair.usage.kind == ToolKind::Write;
        relations.replaced[at] = is_old && later.shows_whole(pair);
        relations.by[at] = later.find_superseding(survey, at, pair);
        later.take(survey, at, pair);
    }

    let edited: BTreeSet<&str> = survey
        .pairs
        .iter()
        .filter(|pair| pair.usage.kind == ToolKind::Write && !pair.failed)
        .flat_map(|pair| pair.usage.files.iter().map(String::as_str))
        .collect();
    for (at, pair) in survey.pairs.iter().enumerate() {
        let is_edited = |file: &String| edited.contains(file.as_str());
        relations.under_edit[at] =
            pair.usage.kind == ToolKind::Read && pair.usage.files.iter().any(is_edited);
    }
    relations
}

/// What comes later than the pair that is looked at.
#[derive(Default)]
struct Later<'s> {
    /// Looks at files since they were last written, by file and by what else was asked for.
    reads: BTreeMap<&'s str, BTreeMap<u64, usize>>,
    /// Looks at whole files since they were last written.
    whole_reads: BTreeMap<&'s str, usize>,
    /// Writes of whole files.
    whole_writes: BTreeMap<&'s str, usize>,
    /// The files whose whole content is seen or written.
    contents: BTreeSet<&'s str>,
    written: BTreeSet<&'s str>,
    /// What commands have written.
    by_commands: Written,
    /// Commands that may have written whatever they name.
    changing: Vec<&'s str>,
    commands: BTreeMap<(&'s str, u64), usize>,
    calls: BTreeMap<u64, usize>,
    /// What was done with success.
    done: BTreeSet<(ToolKind, &'s str)>,
    /// Files as far as they are being worked on, and whether the latest look at them was met.
    working: Vec<(&'s str, bool)>,
    failures: usize,
}

impl<'s> Later<'s> {
    fn makes_matter(&mut self, pair: &'s Pair) -> bool {
        let Some(key) = pair.subject() else { return false };
        let kind = pair.usage.kind;
        if pair.failed {
            self.failures += 1;
            return !self.done.contains(&(kind, key)) && self.failures <= FAILURES_MAX;
        }
        self.done.insert((kind, key));
        let room = self.working.len() < WORKING_SET;
        match (kind, self.working.iter_mut().find(|(file, _)| *file == key)) {
            (ToolKind::Write, None) if room => {
                self.working.push((key, false));
                true
            }
            (ToolKind::Read, Some((_, met))) => !std::mem::replace(met, true),
            _ => false,
        }
    }

    fn makes_stale(&self, pair: &Pair) -> bool {
        let is_written = |file: &String| {
            self.by_commands.anything
                || self.written.contains(file.as_str())
                || self.written.iter().any(|written| may_be_same(written, file))
                || self.is_touched(file)
        };
        pair.usage.kind == ToolKind::Read && pair.usage.files.iter().any(is_written)
    }

    fn shows_whole(&self, pair: &Pair) -> bool {
        !pair.usage.files.is_empty()
            && pair.usage.files.iter().all(|file| self.contents.contains(file.as_str()))
    }

    /// Says whether a command that came later names a file, in a place where it may write it.
    fn is_touched(&self, file: &str) -> bool {
        let name = file.rsplit('/').next().unwrap_or(file);
        self.by_commands.files.iter().any(|written| holds(written.trim_start_matches("./"), file))
            || self.changing.iter().any(|command| command.contains(name))
    }

    fn find_superseding(&self, survey: &Survey<'_>, at: usize, pair: &Pair) -> Option<usize> {
        let usage = &pair.usage;
        let by_rule = match usage.kind {
            ToolKind::Read | ToolKind::Write => self.find_content(survey, at, pair),
            ToolKind::Command if !pair.changes_something => {
                self.commands.get(&(usage.key.as_deref()?, usage.rest)).copied()
            }
            _ => None,
        };
        by_rule.or_else(|| {
            let same = self.calls.get(&words(survey, at)?).copied()?;
            let harmless = !pair.changes_something && usage.kind != ToolKind::Write;
            let across_write = usage.kind == ToolKind::Read && self.makes_stale(pair);
            (harmless && !across_write && says_the_same(survey, at, same)).then_some(same)
        })
    }

    /// Finds where the content of all files of a pair is seen again.
    fn find_content(&self, survey: &Survey<'_>, at: usize, pair: &Pair) -> Option<usize> {
        let usage = &pair.usage;
        let of_file = |file: &String| {
            let file = file.as_str();
            if usage.kind == ToolKind::Write {
                return self.whole_writes.get(file).copied();
            }
            let same_part = self.reads.get(file).and_then(|looks| looks.get(&usage.rest).copied());
            let shows = |whole: &&usize| shows_ends(survey, at, **whole);
            same_part.or_else(|| self.whole_reads.get(file).filter(shows).copied())
        };
        usage.files.iter().map(of_file).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn take(&mut self, survey: &'s Survey<'_>, at: usize, pair: &'s Pair) {
        if let Some(words) = words(survey, at) {
            self.calls.entry(words).or_insert(at);
        }
        let usage = &pair.usage;
        for file in usage.files.iter().map(String::as_str) {
            if usage.is_whole {
                self.contents.insert(file);
            }
            match usage.kind {
                ToolKind::Read => {
                    self.reads.entry(file).or_default().entry(usage.rest).or_insert(at);
                    if usage.is_whole {
                        self.whole_reads.entry(file).or_insert(at);
                    }
                }
                ToolKind::Write => {
                    self.reads.remove(file);
                    self.whole_reads.remove(file);
                    self.written.insert(file);
                    if usage.is_whole {
                        self.whole_writes.entry(file).or_insert(at);
                    }
                }
                _ => {}
            }
        }
        if let (ToolKind::Command, Some(command)) = (usage.kind, usage.key.as_deref()) {
            self.take_command(at, pair, command);
        }
    }

    fn take_command(&mut self, at: usize, pair: &'s Pair, command: &'s str) {
        if !pair.changes_something {
            self.commands.entry((command, pair.usage.rest)).or_insert(at);
            return;
        }
        let Written { files, anything } = shell::written(command);
        self.by_commands.files.extend(files);
        self.by_commands.anything |= anything;
        self.changing.push(command);
        if anything {
            self.reads.clear();
            self.whole_reads.clear();
            return;
        }
        let touched: Vec<&str> = self.reads.keys().copied().filter(|file| self.is_touched(file)).collect();
        for file in touched {
            self.reads.remove(file);
            self.whole_reads.remove(file);
        }
    }
}

/// Says whether what a look at a part shows first and last stands in a look at the whole, too: tools cut what is long.
fn shows_ends(survey: &Survey<'_>, part: usize, whole: usize) -> bool {
    let text = |at: usize| {
        let returned = survey.entries[survey.pairs[at].result?].as_return()?;
        Some(joined_text(&returned.parts))
    };
    let (Some(part), Some(whole)) = (text(part), text(whole)) else { return false };
    let mut lines = part.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next();
    let last = lines.next_back().or(first);
    first.is_none_or(|line| whole.contains(line)) && last.is_none_or(|line| whole.contains(line))
}

/// Returns a number for the words of a call.
fn words(survey: &Survey<'_>, at: usize) -> Option<u64> {
    let call = survey.entries[survey.pairs[at].call?].as_call()?;
    Some(mix(hash(&call.name), hash(call.input.text())))
}

fn says_the_same(survey: &Survey<'_>, a: usize, b: usize) -> bool {
    let parts = |at: usize| {
        let returned = survey.entries[survey.pairs[at].result?].as_return()?;
        Some(returned.parts.iter().map(|part| &part.content))
    };
    match (parts(a), parts(b)) {
        (Some(a), Some(b)) => a.eq(b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, result, settled};
    use super::super::{Tokens, ToolRules};
    use super::*;
    use crate::{Entry, Outcome};

    /// Reads a history of one word each: `r:a` reads, `p:a` reads a part, `w:a` edits, `W:a` writes all, `c:ls`, `o:x`,
    /// with `=` and the result behind it.
    fn check(history: &str, superseded: &str, stale: &str) {
        let mut entries: Vec<Entry> = Vec::new();
        for (at, word) in history.split(' ').enumerate() {
            let (word, text) = word.split_once('=').unwrap_or((word, "new"));
            let text = text.replace("\\n", "\n");
            let (kind, key) = word.split_once(':').unwrap();
            let id = format!("c{at}");
            let (name, argument, more) = match kind {
                "r" => ("Read", "file_path", ""),
                "p" => ("Read", "file_path", r#","offset":5"#),
                "w" => ("Edit", "file_path", r#","old_string":"a","new_string":"b""#),
                "W" => ("Write", "file_path", r#","content":"all""#),
                "c" => ("Bash", "command", r#","description":"word""#),
                _ => ("scroll", "direction", ""),
            };
            let key = key.replace('_', " ");
            let more = more.replace("word", &id);
            entries.push(call(&id, name, &format!(r#"{{"{argument}":"{key}"{more}}}"#)));
            let text = if text == "new" { format!("result {at}") } else { text };
            let outcome = if text == "error" { Outcome::Error } else { Outcome::Ok };
            entries.push(settled(&id, &text, outcome));
        }
        let sizes = vec![Tokens(10); entries.len()];
        let relations = relations(&Survey::of(&entries, &sizes, &ToolRules::default()));
        let superseded_pairs: Vec<_> = relations
            .by
            .iter()
            .enumerate()
            .filter_map(|(at, by)| by.map(|by| format!("{at}<{by}")))
            .collect();
        assert_eq!(superseded_pairs.join(" "), superseded, "{history}");
        let stale_pairs: Vec<_> =
            (0..relations.stale.len()).filter(|at| relations.stale[*at]).map(|at| at.to_string()).collect();
        assert_eq!(stale_pairs.join(" "), stale, "{history}");
    }

    #[test]
    fn the_last_look_at_a_file_counts() {
        check("r:a r:b r:a", "0<2", "");
    }

    #[test]
    fn what_an_edit_made_stale_stays_until_the_whole_content_is_seen_again() {
        check("r:a w:a", "", "0");
        check("p:a w:a p:a", "", "0");
        check("r:a w:a r:a", "", "0");
        check("r:a w:b r:a", "0<2", "");
    }

    #[test]
    fn the_last_content_and_every_change_after_it_stay() {
        check("w:a w:b w:a", "", "");
        check("W:a w:a w:a", "", "");
        check("w:a W:a w:a", "0<1", "");
        check("W:a w:a W:a w:a", "0<2 1<2", "");
    }

    #[test]
    fn a_read_is_stale_after_any_way_of_writing() {
        for command in [
            "cat_x_>_a/x.rs",
            "echo_y_|_tee_a/x.rs",
            "sed_-i_s/a/b/_./a/x.rs",
            "mv_y.rs_a/x.rs",
            "rm_-r_a",
            "git_checkout_main",
            "git_restore_a/x.rs",
            "git_stash",
            "cargo_fmt",
            "python_change.py_x.rs",
        ] {
            check(&format!("p:a/x.rs c:{command} p:a/x.rs"), "", "0");
        }
        check("p:a/x.rs c:cargo_test_x.rs p:a/x.rs", "0<2", "");
        check("r:/w/a/x.rs w:a/x.rs", "", "0");
        check("r:./a/x.rs w:a/x.rs", "", "0");
    }

    #[test]
    fn a_part_goes_when_a_look_at_the_whole_shows_it() {
        check("p:a=one\\ntwo r:a=zero\\none\\ntwo", "0<1", "");
        check("p:a=far\\nbehind r:a=zero\\none\\ntwo", "", "");
    }

    #[test]
    fn a_failure_neither_supersedes_nor_is_superseded() {
        check("r:a r:a=error", "", "");
        check("c:ls=error c:ls", "", "");
        check("r:a w:a=error r:a", "0<2", "");
    }

    #[test]
    fn commands_are_deduplicated_only_if_known_to_change_nothing() {
        check("c:ls c:ls", "0<1", "");
        check("c:rm_x c:rm_x", "", "");
        check("c:rm_x=same c:rm_x=same", "", "");
        check("c:./deploy.sh=ok c:./deploy.sh=ok", "", "");
    }

    #[test]
    fn other_tools_are_superseded_only_by_the_same_result() {
        check("o:down o:down", "", "");
        check("o:down=same o:down=same", "0<1", "");
    }

    #[test]
    fn open_failures_and_files_under_work_matter() {
        let entries = [
            call("a", "Read", r#"{"file_path":"x"}"#),
            result("a", "old"),
            call("b", "Read", r#"{"file_path":"x"}"#),
            result("b", "new"),
            call("c", "Bash", r#"{"command":"make"}"#),
            settled("c", "no rule", Outcome::Error),
            call("d", "Bash", r#"{"command":"ls"}"#),
            settled("d", "denied", Outcome::Error),
            call("e", "Edit", r#"{"file_path":"x"}"#),
            result("e", "done"),
            call("f", "Bash", r#"{"command":"make"}"#),
            result("f", "built"),
        ];
        let sizes = vec![Tokens(10); entries.len()];
        let relations = relations(&Survey::of(&entries, &sizes, &ToolRules::default()));
        assert_eq!(relations.matters, [false, true, false, true, true, false]);
    }

    #[test]
    fn a_look_at_another_part_is_another_look() {
        let entries = [
            call("a", "Read", r#"{"file_path":"x","offset":1}"#),
            result("a", "one"),
            call("b", "Read", r#"{"file_path":"x","offset":90}"#),
            result("b", "two"),
        ];
        let sizes = vec![Tokens(10); 4];
        let relations = relations(&Survey::of(&entries, &sizes, &ToolRules::default()));
        assert_eq!(relations.by, [None, None]);
    }
}
