//! `grep`: lines by a regular expression.
//!
//! The expressions are those of the `regex` crate, whose matching takes time in proportion to the text whatever the
//! expression. Files are read whole, up to the limit on files; a larger one is skipped and counted.

use crate::call::{Grep, GrepMode};
use crate::glob::{Pattern, SearchError};
use crate::limits::Limits;
use crate::outcome::{Answer, Outcome};
use crate::text;
use crate::walk::{self, Manner, Walked};
use crate::workdir::{Workdir, read_bounded, shown};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

/// The longest piece of one line that is shown.
const LINE_CHARS_MAX: usize = 500;
/// The most lines around a match.
const AROUND_MAX: u64 = 50;

/// A search in progress.
struct Search<'a> {
    call: &'a Grep,
    regex: Regex,
    matches_max: usize,
    /// What is shown.
    text: String,
    /// Lines that match, in all files; files, when files are asked for.
    matches: usize,
    files: usize,
    skipped: usize,
    more: bool,
}

/// Finds lines.
pub(crate) fn run(
    workdir: &Workdir,
    limits: &Limits,
    call: &Grep,
    stop: &CancellationToken,
) -> Result<Outcome, SearchError> {
    let mut search = Search::new(call, limits)?;
    let glob = call.glob.as_deref().map(Pattern::new).transpose()?;
    let start = walk::start(call.path.as_deref());
    let base = workdir.relative(start)?;
    let walked = if workdir.is_dir(start)? {
        let manner = Manner { ignored: call.ignored, entries_max: limits.entries_max, stop };
        walk::walk(workdir, start, manner, |found| {
            let wanted = glob.as_ref().is_none_or(|glob| glob.matches(walk::below(found.path, &base)));
            if !wanted || !found.kind.is_file() {
                return ControlFlow::Continue(());
            }
            match found.open().and_then(|file| read_bounded(file, limits.file_bytes_max)) {
                Ok(Some(bytes)) => search.file(&shown(found.path), &bytes),
                Ok(None) | Err(_) => {
                    search.skipped += 1;
                    ControlFlow::Continue(())
                }
            }
        })?
    } else {
        let found = workdir.read(start, limits.file_bytes_max)?;
        let _ = search.file(&shown(&base), &found.bytes);
        Walked { cut_short: None, unreadable: Vec::new() }
    };
    Ok(search.answer(&walked, limits))
}

impl<'a> Search<'a> {
    fn new(call: &'a Grep, limits: &Limits) -> Result<Self, SearchError> {
        let built = RegexBuilder::new(&call.pattern)
            .case_insensitive(call.ignore_case)
            .multi_line(true)
            .crlf(true)
            .build();
        let regex = built.map_err(|error| SearchError::Expression {
            pattern: call.pattern.clone(),
            reason: error.to_string(),
        })?;
        let wanted = call.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let matches_max = limits.matches_max.min(wanted);
        Ok(Self {
            call,
            regex,
            matches_max,
            text: String::new(),
            matches: 0,
            files: 0,
            skipped: 0,
            more: false,
        })
    }

    /// Searches one file.
    fn file(&mut self, path: &str, bytes: &[u8]) -> ControlFlow<()> {
        if text::is_binary(bytes) {
            return ControlFlow::Continue(());
        }
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mut hits = BTreeSet::new();
        for (index, line) in lines.iter().enumerate() {
            if self.regex.is_match(without_break(line)) {
                if self.call.mode == GrepMode::Content && self.matches + hits.len() == self.matches_max {
                    self.more = true;
                    break;
                }
                hits.insert(index);
            }
        }
        if hits.is_empty() {
            return if self.more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        if self.call.mode != GrepMode::Content && self.files == self.matches_max {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.files += 1;
        self.matches += hits.len();
        self.show(path, &lines, &hits);
        if self.more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn show(&mut self, path: &str, lines: &[&[u8]], hits: &BTreeSet<usize>) {
        // Writing to a string cannot fail.
        match self.call.mode {
            GrepMode::Files => _ = writeln!(self.text, "{path}"),
            GrepMode::Count => _ = writeln!(self.text, "{path}:{}", hits.len()),
            GrepMode::Content => self.show_lines(path, lines, hits),
        }
    }

    /// Shows matches as `path:line:text` and what is around them as `path-line-text`, with `--` between groups.
    fn show_lines(&mut self, path: &str, lines: &[&[u8]], hits: &BTreeSet<usize>) {
        let around = |n: u64| usize::try_from(n.min(AROUND_MAX)).unwrap_or(0);
        let (before, after) = (around(self.call.before), around(self.call.after));
        let mut shown = BTreeSet::new();
        for hit in hits {
            shown.extend(hit.saturating_sub(before)..=(hit + after).min(lines.len() - 1));
        }
        let mut last: Option<usize> = None;
        for index in shown {
            let apart = last.map_or(!self.text.is_empty(), |last| last + 1 < index);
            if before + after > 0 && apart {
                self.text.push_str("--\n");
            }
            let mark = if hits.contains(&index) { ':' } else { '-' };
            let line = shortened(&String::from_utf8_lossy(without_break(lines[index])));
            _ = writeln!(self.text, "{path}{mark}{}{mark}{line}", index + 1);
            last = Some(index);
        }
    }

    fn answer(self, walked: &Walked, limits: &Limits) -> Outcome {
        let name = if self.call.mode == GrepMode::Content { "lines" } else { "files" };
        let mut answer = Answer::default()
            .field("matches", self.matches)
            .field("files_matched", self.files)
            .text(name, self.text.as_bytes(), limits);
        if self.more {
            answer =
                answer.note(format!("stopped at the limit of {}: there are more matches", self.matches_max));
        }
        if self.skipped > 0 {
            answer = answer.note(format!("{} files were too large or could not be read", self.skipped));
        }
        walked.notes().into_iter().fold(answer, Answer::note).done()
    }
}

fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{} [… {} more bytes in this line]", &line[..end], line.len() - end),
        None => line.to_owned(),
    }
}
