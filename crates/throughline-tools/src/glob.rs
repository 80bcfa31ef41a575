//! `glob`: files by their names.

use crate::call::Glob;
use crate::limits::Limits;
use crate::outcome::{Answer, Outcome};
use crate::walk::{self, Manner};
use crate::workdir::{PathError, Workdir, shown};
use globset::{GlobBuilder, GlobMatcher};
use std::ops::ControlFlow;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Why files cannot be searched for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("\"{pattern}\" is no pattern: {reason}")]
    Pattern { pattern: String, reason: String },
    #[error("\"{pattern}\" is no regular expression: {reason}")]
    Expression { pattern: String, reason: String },
}

/// A pattern of paths. One without a slash is about the name alone.
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    of_name: bool,
}

/// Finds files.
pub(crate) fn run(
    workdir: &Workdir,
    limits: &Limits,
    call: &Glob,
    stop: &CancellationToken,
) -> Result<Outcome, SearchError> {
    let start = walk::start(call.path.as_deref());
    let base = workdir.relative(start)?;
    let pattern = Pattern::new(&within(workdir, &call.pattern)?)?;
    let manner = Manner { ignored: call.ignored, entries_max: limits.entries_max, stop };
    let mut files = Vec::new();
    let mut more = false;
    let walked = walk::walk(workdir, start, manner, |found| {
        if !pattern.matches(walk::below(found.path, &base)) {
            return ControlFlow::Continue(());
        }
        if files.len() == limits.matches_max {
            more = true;
            return ControlFlow::Break(());
        }
        files.push(shown(found.path));
        ControlFlow::Continue(())
    })?;
    let mut answer = Answer::default().field("files", files);
    if more {
        answer = answer
            .note(format!("only the first {} files are shown; use a narrower pattern", limits.matches_max));
    }
    Ok(walked.notes().into_iter().fold(answer, Answer::note).done())
}

/// Returns a pattern relative to the working directory if it names that directory from the root of the system.
fn within(workdir: &Workdir, pattern: &str) -> Result<String, PathError> {
    if !Path::new(pattern).has_root() {
        return Ok(pattern.trim_start_matches("./").to_owned());
    }
    workdir.relative(pattern).map(|inner| shown(&inner))
}

impl Pattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, SearchError> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| SearchError::Pattern {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })?;
        Ok(Self { matcher: glob.compile_matcher(), of_name: !pattern.contains('/') })
    }

    pub(crate) fn matches(&self, path: &Path) -> bool {
        let of_name = self.of_name && path.file_name().is_some_and(|name| self.matcher.is_match(name));
        of_name || self.matcher.is_match(path)
    }
}
