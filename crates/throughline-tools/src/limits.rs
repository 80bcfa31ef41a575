//! How much a call may take and give.

use std::time::Duration;

/// The limits of a toolbox. What is over one is said in the output, never dropped in silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one text that the model is shown; what is longer becomes an artifact.
    pub preview_bytes_max: usize,
    /// The most bytes of one artifact. Of what is longer, the beginning and the end are kept.
    pub artifact_bytes_max: usize,
    /// The largest file that is read or edited.
    pub file_bytes_max: u64,
    /// The largest image that is handed to a model.
    pub image_bytes_max: usize,
    /// The most files that one glob, or lines that one grep, answers with.
    pub matches_max: usize,
    /// The most entries of directories that one call looks at.
    pub entries_max: usize,
    /// How long a tool may take that only looks at files or changes them.
    pub file_time_max: Duration,
    /// How long a command may take that names no time limit.
    pub command_time: Duration,
    /// The longest time limit that a command may name.
    pub command_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            preview_bytes_max: 32 * 1024,
            artifact_bytes_max: 16 * 1024 * 1024,
            file_bytes_max: 16 * 1024 * 1024,
            image_bytes_max: 5 * 1024 * 1024,
            matches_max: 1_000,
            entries_max: 200_000,
            file_time_max: Duration::from_secs(30),
            command_time: Duration::from_secs(120),
            command_time_max: Duration::from_secs(3_600),
        }
    }
}
