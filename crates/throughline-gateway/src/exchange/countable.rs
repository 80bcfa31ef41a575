//! What of a prompt is counted.

use throughline_core::{Entry, Format, Tool};
use throughline_tokens::{Counts, Gauge, Size};

/// What of a prompt is counted.
#[derive(Debug, Default)]
pub struct Countable {
    /// The history that is shown.
    pub entries: Vec<Entry>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// The form that is asked for.
    pub format: Option<Format>,
}

impl Countable {
    /// Returns the size.
    #[must_use]
    pub fn size(&self, gauge: &Gauge, counts: &Counts) -> Size {
        gauge.prompt(counts, &self.entries, &self.tools, self.format.as_ref())
    }
}
