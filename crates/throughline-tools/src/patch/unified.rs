//! Unified diffs, as `diff -u` and `git diff` print them and as models imitate them.
//!
//! The counts in `@@ -1,2 +3,4 @@` are not believed; a hunk ends where something begins that is no part of one. Only
//! where the counts say so is a line `--- a` taken for the removal of `-- a` instead of for the head of a file.

use super::{FilePatch, Hunk, HunkLine, Patch, PatchError};

/// A file on the way through the diff.
#[derive(Default)]
struct Section {
    from: Option<String>,
    to: Option<String>,
    hunks: Vec<Hunk>,
    /// Lines of the last hunk that its counts still expect: before, after.
    left: (usize, usize),
    blank_lines: usize,
}

/// Reads a unified diff.
pub(super) fn parse(lines: &[&str]) -> Result<Patch, PatchError> {
    let mut patch = Patch::default();
    let mut section = Section::default();
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        let next = lines.get(index + 1).copied().unwrap_or("");
        if section.expects(line) {
            section.body(line, index + 1)?;
        } else if line.starts_with("--- ") && next.starts_with("+++ ") {
            if !section.hunks.is_empty() || section.from.is_none() {
                section.close(index + 1, &mut patch)?;
                section = Section::default();
            }
            section.from = path(&line[4..], "a/");
            section.to = path(&next[4..], "b/");
            index += 1;
        } else if line.starts_with("diff --git ") {
            section.close(index + 1, &mut patch)?;
            section = Section::default();
        } else if let Some(from) = line.strip_prefix("rename from ") {
            section.from = Some(from.trim().to_owned());
        } else if let Some(to) = line.strip_prefix("rename to ") {
            section.to = Some(to.trim().to_owned());
        } else if line.starts_with("@@") {
            section.open_hunk(line, index + 1)?;
        } else {
            section.body(line, index + 1)?;
        }
        index += 1;
    }
    section.close(lines.len(), &mut patch)?;
    Ok(patch)
}

/// Returns where `@@ -1,2 +3,4 @@` says that its hunk is, counted from zero.
pub(super) fn position(line: &str) -> Option<usize> {
    counts(line).map(|(at, _, _)| at)
}

/// Returns the place before the change, and the number of lines before and after.
fn counts(line: &str) -> Option<(usize, usize, usize)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let (before, after) = (words.next()?, words.next()?.strip_prefix('+')?);
    let pair = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let (start, old) = pair(before)?;
    let (_, new) = pair(after)?;
    // A hunk that removes nothing names the line it goes behind.
    Some((if old == 0 { start } else { start.saturating_sub(1) }, old, new))
}

/// Returns the path of a `---` or `+++` line; nothing stands for `/dev/null`.
fn path(text: &str, prefix: &str) -> Option<String> {
    let text = text.split('\t').next().unwrap_or(text).trim();
    let path = text.trim_matches('"');
    (path != "/dev/null").then(|| path.strip_prefix(prefix).unwrap_or(path).to_owned())
}

impl Section {
    /// Says whether the counts of the hunk claim the line.
    fn expects(&self, line: &str) -> bool {
        let (before, after) = self.left;
        match line.chars().next() {
            Some('-') => before > 0,
            Some('+') => after > 0,
            Some(' ') => before > 0 && after > 0,
            _ => false,
        }
    }

    fn open_hunk(&mut self, line: &str, number: usize) -> Result<(), PatchError> {
        if self.from.is_none() && self.to.is_none() {
            let reason = "\"@@\" without a \"---\" and a \"+++\" line above it".to_owned();
            return Err(PatchError::Line { line: number, reason });
        }
        self.trim_last();
        let (at, left) = counts(line).map_or((None, (0, 0)), |(at, old, new)| (Some(at), (old, new)));
        self.left = left;
        self.hunks.push(Hunk { at, ..Hunk::default() });
        Ok(())
    }

    fn body(&mut self, line: &str, number: usize) -> Result<(), PatchError> {
        let Some(hunk) = self.hunks.last_mut() else {
            // Words before the diff, and git's lines about modes and hashes.
            return Ok(());
        };
        if line.starts_with('\\') {
            hunk.unbroken_end |= !matches!(hunk.lines.last(), Some(HunkLine::Removed(_)));
            return Ok(());
        }
        if line == "```" || line.starts_with("-- ") && self.left == (0, 0) {
            // The end of a code block, or the signature below a patch that came by mail.
            return Ok(());
        }
        self.blank_lines = if line.is_empty() { self.blank_lines + 1 } else { 0 };
        let Some(parsed) = HunkLine::parse(line) else {
            let reason = "a line of a hunk must begin with \" \", \"-\" or \"+\"".to_owned();
            return Err(PatchError::Line { line: number, reason });
        };
        let (before, after) = &mut self.left;
        match &parsed {
            HunkLine::Kept(_) => (*before, *after) = (before.saturating_sub(1), after.saturating_sub(1)),
            HunkLine::Removed(_) => *before = before.saturating_sub(1),
            HunkLine::Added(_) => *after = after.saturating_sub(1),
        }
        hunk.lines.push(parsed);
        Ok(())
    }

    /// Takes empty lines off the last hunk that its counts did not ask for.
    fn trim_last(&mut self) {
        if let Some(last) = self.hunks.pop() {
            self.hunks.push(last.trimmed(self.blank_lines));
        }
        self.blank_lines = 0;
    }

    fn close(mut self, number: usize, patch: &mut Patch) -> Result<(), PatchError> {
        self.trim_last();
        self.hunks.retain(|hunk| !hunk.lines.is_empty());
        let file = match (self.from, self.to) {
            (None, None) => return Ok(()),
            (None, Some(path)) => FilePatch::Add { path, content: added(&self.hunks) },
            (Some(path), None) => FilePatch::Delete { path },
            (Some(from), Some(to)) => {
                let move_to = (from != to).then_some(to);
                if self.hunks.is_empty() && move_to.is_none() {
                    let reason = format!("the diff of \"{from}\" above changes nothing");
                    return Err(PatchError::Line { line: number, reason });
                }
                FilePatch::Update { path: from, move_to, hunks: self.hunks }
            }
        };
        patch.files.push(file);
        Ok(())
    }
}

/// Returns the lines that hunks add.
fn added(hunks: &[Hunk]) -> String {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if let HunkLine::Added(line) = line {
            content.push_str(line);
            content.push('\n');
        }
    }
    if hunks.last().is_some_and(|hunk| hunk.unbroken_end) {
        content.pop();
    }
    content
}
