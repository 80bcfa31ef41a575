//! Putting hunks into a text.
//!
//! A hunk's place is where its unchanged and removed lines stand one below the other. They are looked for exactly
//! first, then without regard to white space at the end of lines, at both ends, and to typographic punctuation; then
//! the same with up to two of the outermost unchanged lines left out. Among several places of the same quality, the
//! nearest to where the patch says wins, or else the first behind the hunk before.

use super::{Hunk, HunkLine};
use crate::text::nearest_lines;

/// How many unchanged lines at each end of a hunk may be wrong.
const FUZZ_MAX: usize = 2;

/// Why a hunk does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HunkError {
    /// A line that should stand above it is not there.
    #[error("hunk {hunk} does not fit: no line reads \"{above}\"")]
    NoLineAbove {
        /// Which hunk, counted from one.
        hunk: usize,
        /// The line.
        above: String,
    },
    /// Its lines are not there.
    #[error(
        "hunk {hunk} does not fit: the file does not hold these lines one below the other: {lines:?}{nearest}"
    )]
    NoPlace {
        /// Which hunk, counted from one.
        hunk: usize,
        /// The first of its lines.
        lines: Vec<String>,
        /// What comes nearest, in words.
        nearest: String,
    },
    /// It changes lines that another hunk changes.
    #[error("hunk {hunk} changes lines that another hunk changes too")]
    Overlap {
        /// Which hunk, counted from one.
        hunk: usize,
    },
}

/// Lines of the text that give way to others.
struct Splice {
    hunk: usize,
    start: usize,
    end: usize,
    lines: Vec<Vec<u8>>,
}

/// Returns `text` with the hunks put in.
///
/// # Errors
///
/// When one of them does not fit.
pub fn apply(text: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, HunkError> {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let line_break: &[u8] = if mostly_crlf(&lines) { b"\r\n" } else { b"\n" };
    let mut splices: Vec<Splice> = Vec::new();
    let mut cursor = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let splice = place(&lines, hunk, index + 1, cursor, line_break)?;
        cursor = splice.end;
        splices.push(splice);
    }
    splices.sort_by_key(|splice| (splice.start, splice.end));
    if let Some(pair) = splices.windows(2).find(|pair| pair[0].end > pair[1].start) {
        return Err(HunkError::Overlap { hunk: pair[1].hunk });
    }
    let mut result: Vec<Vec<u8>> = Vec::new();
    let mut copied = 0;
    for splice in splices {
        result.extend(lines[copied..splice.start].iter().map(|line| line.to_vec()));
        result.extend(splice.lines);
        copied = splice.end;
    }
    result.extend(lines[copied..].iter().map(|line| line.to_vec()));
    Ok(joined(result, line_break, hunks.iter().any(|hunk| hunk.unbroken_end)))
}

/// Joins lines, each of which ends with a line break except perhaps the last.
fn joined(mut lines: Vec<Vec<u8>>, line_break: &[u8], unbroken_end: bool) -> Vec<u8> {
    let count = lines.len();
    for (index, line) in lines.iter_mut().enumerate() {
        if index + 1 < count && !line.ends_with(b"\n") {
            line.extend_from_slice(line_break);
        }
    }
    let mut text = lines.concat();
    if unbroken_end && text.ends_with(b"\n") {
        text.pop();
        if text.ends_with(b"\r") {
            text.pop();
        }
    }
    text
}

/// Finds the place of a hunk and what comes there.
fn place(
    lines: &[&[u8]],
    hunk: &Hunk,
    number: usize,
    cursor: usize,
    line_break: &[u8],
) -> Result<Splice, HunkError> {
    let from =
        below(lines, &hunk.above, cursor).map_err(|above| HunkError::NoLineAbove { hunk: number, above })?;
    let before: Vec<&str> = hunk.lines.iter().filter_map(HunkLine::before).collect();
    if before.is_empty() {
        let start = match hunk.at {
            Some(at) => at.min(lines.len()),
            None if hunk.above.is_empty() => lines.len(),
            None => from,
        };
        return Ok(Splice { hunk: number, start, end: start, lines: changed(&hunk.lines, &[], line_break) });
    }
    let edge = |kept: &mut dyn Iterator<Item = &HunkLine>| {
        kept.take_while(|line| matches!(line, HunkLine::Kept(_))).count()
    };
    let leading = edge(&mut hunk.lines.iter());
    let trailing = edge(&mut hunk.lines.iter().rev());
    for fuzz in 0..=FUZZ_MAX {
        let (skip, drop) = (fuzz.min(leading), fuzz.min(trailing));
        if fuzz > 0 && (skip + drop == 0 || skip + drop >= before.len()) {
            break;
        }
        let wanted = &before[skip..before.len() - drop];
        let at = hunk.at.map(|at| at + skip);
        let Some(start) = find(lines, wanted, from, at, hunk.at_end) else { continue };
        let end = start + wanted.len();
        let inner = &hunk.lines[skip..hunk.lines.len() - drop];
        return Ok(Splice {
            hunk: number,
            start,
            end,
            lines: changed(inner, &lines[start..end], line_break),
        });
    }
    Err(no_place(lines, &before, number))
}

fn no_place(lines: &[&[u8]], before: &[&str], hunk: usize) -> HunkError {
    const SHOWN_MAX: usize = 4;
    let shown = before.iter().take(SHOWN_MAX).map(|line| (*line).to_owned()).collect();
    let wanted = before.iter().find(|line| !line.trim().is_empty()).copied().unwrap_or("");
    HunkError::NoPlace { hunk, lines: shown, nearest: nearest_lines(lines, wanted) }
}

/// Returns the line below those that stand above a hunk, which are looked for one after the other.
fn below(lines: &[&[u8]], above: &[String], cursor: usize) -> Result<usize, String> {
    let mut from = cursor;
    for wanted in above {
        let found =
            find(lines, &[wanted], from, None, false).or_else(|| find(lines, &[wanted], 0, None, false));
        from = found.ok_or_else(|| wanted.clone())? + 1;
    }
    Ok(from)
}

/// Returns where `wanted` stands.
fn find(lines: &[&[u8]], wanted: &[&str], from: usize, at: Option<usize>, at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    for same in [exact, same_but_end, same_but_ends, same_but_marks] {
        let fits =
            |start: &usize| wanted.iter().zip(&lines[*start..]).all(|(wanted, line)| same(wanted, line));
        let found = match at {
            _ if at_end && fits(&last) => Some(last),
            Some(at) => (0..=last).filter(fits).min_by_key(|start| start.abs_diff(at)),
            None => (from..=last).find(fits).or_else(|| (0..=last.min(from)).find(fits)),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns the lines of a hunk as they stand afterwards; what is kept is taken from the file.
fn changed(hunk: &[HunkLine], there: &[&[u8]], line_break: &[u8]) -> Vec<Vec<u8>> {
    let mut there = there.iter();
    let mut lines = Vec::new();
    for line in hunk {
        match line {
            HunkLine::Kept(_) => lines.extend(there.next().map(|line| line.to_vec())),
            HunkLine::Removed(_) => _ = there.next(),
            HunkLine::Added(line) => lines.push([line.as_bytes(), line_break].concat()),
        }
    }
    lines
}

fn mostly_crlf(lines: &[&[u8]]) -> bool {
    let crlf = lines.iter().filter(|line| line.ends_with(b"\r\n")).count();
    crlf * 2 > lines.len()
}

fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn exact(wanted: &str, line: &[u8]) -> bool {
    wanted.as_bytes() == without_break(line)
}

fn same_but_end(wanted: &str, line: &[u8]) -> bool {
    wanted.trim_end().as_bytes() == line.trim_ascii_end()
}

fn same_but_ends(wanted: &str, line: &[u8]) -> bool {
    wanted.trim().as_bytes() == line.trim_ascii()
}

fn same_but_marks(wanted: &str, line: &[u8]) -> bool {
    plain_marks(wanted.trim()) == plain_marks(String::from_utf8_lossy(line).trim())
}

/// Returns a line with plain dashes, quotes and spaces, which models write where the file has others.
fn plain_marks(line: &str) -> String {
    let plain = |c| match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    };
    line.chars().map(plain).collect()
}
