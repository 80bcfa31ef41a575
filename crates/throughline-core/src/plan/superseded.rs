//! What a later result makes superfluous (R17).
//!
//! A look at a file by a later look at the same part of it, unless the file was written in between: then the
//! first look is stale, and says so where it is shortened. A command without side effects by a later run of
//! it, an operation on a file by a later one, and any call by a later one with the same words and the same
//! result. A failure neither supersedes nor is superseded.

use super::handle::{hash, mix};
use super::survey::{Pair, Survey};
use super::tools::ToolKind;
use std::collections::{BTreeMap, BTreeSet};

/// What the pairs of a survey mean to each other; pairs are named by their index.
pub(super) struct Relations {
    /// The pair that supersedes each pair.
    pub by: Vec<Option<usize>>,
    /// Whether each pair shows a file that was written later.
    pub stale: Vec<bool>,
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
    let mut relations =
        Relations { by: vec![None; count], stale: vec![false; count], matters: vec![false; count] };
    for (at, pair) in survey.pairs.iter().enumerate().rev() {
        if pair.result.is_none() {
            continue;
        }
        relations.matters[at] = later.makes_matter(pair);
        if pair.failed {
            continue;
        }
        relations.stale[at] = later.makes_stale(pair);
        relations.by[at] = later.supersedes(survey, at, pair);
        later.take(survey, at, pair);
    }
    relations
}

/// What comes later than the pair that is looked at.
#[derive(Default)]
struct Later<'s> {
    /// Looks at files since they were last written, by file and by what else was asked for.
    reads: BTreeMap<&'s str, BTreeMap<u64, usize>>,
    written: BTreeSet<&'s str>,
    writes: BTreeMap<&'s str, usize>,
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
        let Some(key) = pair.usage.key.as_deref() else { return false };
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
        let key = pair.usage.key.as_deref();
        pair.usage.kind == ToolKind::Read && key.is_some_and(|file| self.written.contains(file))
    }

    fn supersedes(&self, survey: &Survey<'_>, at: usize, pair: &Pair) -> Option<usize> {
        let usage = &pair.usage;
        let by_rule = usage.key.as_deref().and_then(|key| match usage.kind {
            ToolKind::Read => self.reads.get(key)?.get(&usage.rest).copied(),
            ToolKind::Write => self.writes.get(key).copied(),
            ToolKind::Command if !pair.changes_something() => self.commands.get(&(key, usage.rest)).copied(),
            _ => None,
        });
        by_rule.or_else(|| {
            let same = self.calls.get(&words(survey, at)?).copied()?;
            let harmless = !pair.changes_something() && usage.kind != ToolKind::Write;
            (harmless && says_the_same(survey, at, same)).then_some(same)
        })
    }

    fn take(&mut self, survey: &'s Survey<'_>, at: usize, pair: &'s Pair) {
        if let Some(words) = words(survey, at) {
            self.calls.entry(words).or_insert(at);
        }
        let Some(key) = pair.usage.key.as_deref() else { return };
        match pair.usage.kind {
            ToolKind::Read => {
                self.reads.entry(key).or_default().entry(pair.usage.rest).or_insert(at);
            }
            ToolKind::Write => {
                self.reads.remove(key);
                self.written.insert(key);
                self.writes.entry(key).or_insert(at);
            }
            ToolKind::Command if pair.changes_something() => self.forget_mentioned(key),
            ToolKind::Command => {
                self.commands.entry((key, pair.usage.rest)).or_insert(at);
            }
            ToolKind::Search | ToolKind::Other => {}
        }
    }

    /// A command that changes something and names a file may have written it.
    fn forget_mentioned(&mut self, command: &str) {
        let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
        let mentioned: Vec<&str> =
            self.reads.keys().copied().filter(|file| command.contains(&name(file))).collect();
        for file in mentioned {
            self.reads.remove(file);
            self.written.insert(file);
        }
    }
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

    /// Reads a history of one word each, `r:a`, `w:a`, `c:ls`, `o:x`, with `=` and the result behind it.
    fn check(history: &str, superseded: &str, stale: &str) {
        let mut entries: Vec<Entry> = Vec::new();
        for (at, word) in history.split(' ').enumerate() {
            let (word, text) = word.split_once('=').unwrap_or((word, "new"));
            let (kind, key) = word.split_once(':').unwrap();
            let id = format!("c{at}");
            let (name, argument) = match kind {
                "r" => ("Read", "file_path"),
                "w" => ("Edit", "file_path"),
                "c" => ("Bash", "command"),
                _ => ("scroll", "direction"),
            };
            let key = key.replace('_', " ");
            entries.push(call(&id, name, &format!(r#"{{"{argument}":"{key}"}}"#)));
            let text = if text == "new" { format!("result {at}") } else { text.to_owned() };
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
    fn nothing_is_superseded_across_a_write() {
        check("r:a w:a r:a", "", "0");
        check("r:a/x.rs c:rm_x.rs r:a/x.rs", "", "0");
        check("r:a w:b r:a", "0<2", "");
    }

    #[test]
    fn a_failure_neither_supersedes_nor_is_superseded() {
        check("r:a r:a=error", "", "");
        check("c:ls=error c:ls", "", "");
        check("r:a w:a=error r:a", "0<2", "");
    }

    #[test]
    fn the_last_operation_on_a_file_counts() {
        check("w:a w:b w:a", "0<2", "");
    }

    #[test]
    fn runs_of_a_command_with_side_effects_are_all_kept() {
        check("c:ls c:ls", "0<1", "");
        check("c:rm_x c:rm_x", "", "");
        check("c:rm_x=same c:rm_x=same", "", "");
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
