//! The form that begins with `*** Begin Patch`.

use super::{FilePatch, Hunk, HunkLine, Patch, PatchError, unified};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// What the lines belong to.
enum Section {
    None,
    Add { path: String, content: String },
    Update { path: String, move_to: Option<String>, hunks: Vec<Hunk>, hunk: Hunk, blank_lines: usize },
}

/// Reads a patch; what stands before its first line is not looked at.
pub(super) fn parse(lines: &[&str]) -> Result<Patch, PatchError> {
    let mut patch = Patch::default();
    let mut section = Section::None;
    let mut numbered = lines.iter().enumerate().map(|(index, line)| (index + 1, *line));
    // The line is there: that is how the form was recognised.
    let _ = numbered.by_ref().find(|(_, line)| line.trim() == BEGIN);
    for (number, line) in numbered {
        if line.trim_end() == END {
            section.close(number, &mut patch)?;
            return Ok(patch);
        }
        section = match line.strip_prefix("*** ").map(str::trim_end) {
            Some(head) => section.head(head, number, &mut patch)?,
            None => section.line(line, number)?,
        };
    }
    Err(PatchError::NoEnd)
}

fn error<T>(line: usize, reason: impl Into<String>) -> Result<T, PatchError> {
    Err(PatchError::Line { line, reason: reason.into() })
}

impl Section {
    /// Takes in a line that begins with three asterisks.
    fn head(mut self, head: &str, number: usize, patch: &mut Patch) -> Result<Self, PatchError> {
        if head == "End of File" {
            return match &mut self {
                Self::Update { hunk, .. } => {
                    hunk.at_end = true;
                    Ok(self)
                }
                _ => error(number, "\"*** End of File\" belongs below lines of an updated file"),
            };
        }
        let Some((what, path)) = head.split_once(':').map(|(what, path)| (what, path.trim())) else {
            return error(number, format!("\"*** {head}\" is not known"));
        };
        if path.is_empty() {
            return error(number, "the path is missing");
        }
        let path = path.to_owned();
        if what == "Move to" {
            return match &mut self {
                Self::Update { move_to, hunks, hunk, .. } if hunks.is_empty() && hunk.is_blank() => {
                    *move_to = Some(path);
                    Ok(self)
                }
                _ => error(number, "\"*** Move to:\" belongs directly below \"*** Update File:\""),
            };
        }
        self.close(number, patch)?;
        match what {
            "Add File" => Ok(Self::Add { path, content: String::new() }),
            "Update File" => Ok(Self::Update {
                path,
                move_to: None,
                hunks: Vec::new(),
                hunk: Hunk::default(),
                blank_lines: 0,
            }),
            "Delete File" => {
                patch.files.push(FilePatch::Delete { path });
                Ok(Self::None)
            }
            other => error(
                number,
                format!("\"*** {other}:\" is not known: expected Add File, Update File or Delete File"),
            ),
        }
    }

    /// Takes in any other line.
    fn line(mut self, line: &str, number: usize) -> Result<Self, PatchError> {
        match &mut self {
            Self::None if line.trim().is_empty() => {}
            Self::None => {
                return error(
                    number,
                    "expected \"*** Add File:\", \"*** Update File:\" or \"*** Delete File:\"",
                );
            }
            Self::Add { content, .. } => match line.strip_prefix('+') {
                Some(line) => {
                    content.push_str(line);
                    content.push('\n');
                }
                None if line.trim().is_empty() => {}
                None => return error(number, "a line of a new file must begin with \"+\""),
            },
            Self::Update { hunks, hunk, blank_lines, .. } => {
                if let Some(above) = line.strip_prefix("@@") {
                    if !hunk.lines.is_empty() {
                        hunks.push(std::mem::take(hunk).trimmed(*blank_lines));
                        *blank_lines = 0;
                    }
                    match unified::position(line) {
                        Some(at) => hunk.at = Some(at),
                        None if above.trim().is_empty() => {}
                        None => hunk.above.push(above.strip_prefix(' ').unwrap_or(above).to_owned()),
                    }
                    return Ok(self);
                }
                *blank_lines = if line.is_empty() { *blank_lines + 1 } else { 0 };
                match HunkLine::parse(line) {
                    Some(line) => hunk.lines.push(line),
                    None => {
                        return error(
                            number,
                            "a line of a change must begin with \" \", \"-\" or \"+\", or be a \"@@\" line",
                        );
                    }
                }
            }
        }
        Ok(self)
    }

    /// Adds what was collected to the patch.
    fn close(self, number: usize, patch: &mut Patch) -> Result<(), PatchError> {
        match self {
            Self::None => {}
            Self::Add { path, content } => patch.files.push(FilePatch::Add { path, content }),
            Self::Update { path, move_to, mut hunks, hunk, blank_lines } => {
                let hunk = hunk.trimmed(blank_lines);
                if !hunk.lines.is_empty() {
                    hunks.push(hunk);
                }
                if hunks.is_empty() && move_to.is_none() {
                    return error(number, format!("the update of \"{path}\" above changes nothing"));
                }
                patch.files.push(FilePatch::Update { path, move_to, hunks });
            }
        }
        Ok(())
    }
}
