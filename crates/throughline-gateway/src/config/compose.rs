//! How a second model writes the answer of a turn (R13).

use throughline_core::Text;

/// How the answer is composed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compose {
    /// The backend, if not the one that answered.
    pub backend: Option<Text>,
    /// The model, if not the backend's own choice.
    pub model: Option<Text>,
    /// Its temperature, as it is written.
    pub temperature: Option<Text>,
    /// The most tokens it may answer with.
    pub max_tokens: Option<u64>,
    /// What it is told.
    pub guidance: Text,
}

/// What it is told, unless the configuration says otherwise.
pub const GUIDANCE: &str = "Write the final answer to the user's last request, from the results of the tools above. \
    Say what was found or done, and what failed. Leave out raw JSON, ids and tool names unless they help the user. Do \
    not call tools, and add nothing that the results do not show.";
