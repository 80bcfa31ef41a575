//! What came of a call: the text for the model, and what is handed over beside it.
//!
//! The text is one JSON object whose fields stand in a fixed order: first what the tool has to say, then `artifacts`,
//! then `notes`. Whatever was altered on the way to the model (escape sequences, bytes that are no text, length) has
//! a note.

use crate::limits::Limits;
use crate::text;
use serde_json::{Map, Value, json};
use std::fmt;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub kind: OutcomeKind,
    /// What the model is told: a JSON object, as text.
    pub output: String,
    /// The exit code of a command, for whoever shows the call to a person.
    pub exit_code: Option<i32>,
    /// The whole of what `output` shows in part.
    pub artifacts: Vec<Artifact>,
    /// Images that belong to the result.
    pub images: Vec<Image>,
    /// What was noticed about the call; the output says the same in its notes.
    pub notices: Vec<Notice>,
}

/// Something that was noticed about a call, which is neither its result nor an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A command failed and had tried to use the network, which it has not.
    NoNetwork,
    /// A command wrote protected files that nobody agreed to, and they were put back.
    ProtectedRestored {
        /// The files.
        paths: Vec<String>,
        /// Where the content is that they had been given.
        quarantined: Vec<String>,
        /// Files that could not be put back.
        failed: Vec<String>,
    },
    /// A command failed and spoke of protected files, which it could not write.
    ProtectedUnwritable {
        /// The files.
        paths: Vec<String>,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// The tool did what was asked. A command that ran is done, whatever its exit code.
    Done,
    /// The tool could not do it; the output says why.
    Failed,
    /// It took longer than it may. What it had done by then stays done.
    TimedOut,
    /// It was called off. What it had done by then stays done.
    Cancelled,
}

/// Bytes that are too many to be shown, to be kept for recall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The field of the output that shows a part of it.
    pub name: String,
    /// The bytes, as they were.
    pub bytes: Vec<u8>,
    /// How many bytes there were: more than are kept if there were too many even for an artifact.
    pub bytes_total: u64,
}

/// An image for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its MIME type.
    pub media_type: String,
    /// Its bytes, base64-encoded.
    pub base64: String,
}

/// An outcome in the making.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    fields: Map<String, Value>,
    notes: Vec<String>,
    artifacts: Vec<Artifact>,
    images: Vec<Image>,
    notices: Vec<Notice>,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNetwork => f.write_str(
                "the command tried to use the network; commands have none here, unless the user allows it \
                 (tools.network, or --network for one run)",
            ),
            Self::ProtectedRestored { paths, quarantined, failed } => {
                write!(f, "protected files were changed without consent")?;
                for (what, list) in [
                    ("put back", paths),
                    ("what was written is kept in", quarantined),
                    ("NOT put back", failed),
                ] {
                    if !list.is_empty() {
                        write!(f, "; {what}: {}", list.join(", "))?;
                    }
                }
                f.write_str("; to write them, name them in `protected`, and the user is asked")
            }
            Self::ProtectedUnwritable { paths } => write!(
                f,
                "protected files cannot be written without consent: {}; to write them, name them in `protected`, and \
                 the user is asked",
                paths.join(", ")
            ),
        }
    }
}

impl Outcome {
    /// Returns the outcome of a call that could not be done, for the reason given.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Answer::default().field("error", reason.into()).ended(OutcomeKind::Failed)
    }

    /// Says whether the tool did what was asked.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.kind == OutcomeKind::Done
    }
}

impl Answer {
    pub(crate) fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn notice(mut self, notice: Notice) -> Self {
        self.notes.push(notice.to_string());
        self.notices.push(notice);
        self
    }

    pub(crate) fn image(mut self, image: Image) -> Self {
        self.images.push(image);
        self
    }

    /// Adds bytes as text: cleaned, and shortened to a preview where they are too long.
    pub(crate) fn text(self, name: &str, bytes: &[u8], limits: &Limits) -> Self {
        self.capture(name, bytes, bytes.len() as u64, limits)
    }

    /// Adds what was kept of `total` bytes as [`Self::text`] does.
    pub(crate) fn capture(mut self, name: &str, bytes: &[u8], total: u64, limits: &Limits) -> Self {
        let cleaned = text::clean(bytes);
        self.notes.extend(cleaned.notes(name));
        if cleaned.text.len() <= limits.preview_bytes_max && total == bytes.len() as u64 {
            return self.field(name, cleaned.text);
        }
        let missing = total - bytes.len() as u64;
        let shown = text::preview(&cleaned.text, limits.preview_bytes_max, |left_out| {
            format!(
                "[… {left_out} left out here; the whole is kept as artifact \"{name}\" and can be recalled …]"
            )
        });
        if missing > 0 {
            self.notes.push(format!(
                "{name} had {total} bytes, too many to keep: {missing} bytes in its middle are in no artifact"
            ));
        }
        self.artifacts.push(Artifact { name: name.to_owned(), bytes: bytes.to_vec(), bytes_total: total });
        self.field(name, shown)
    }

    pub(crate) fn done(self) -> Outcome {
        self.ended(OutcomeKind::Done)
    }

    pub(crate) fn ended(mut self, kind: OutcomeKind) -> Outcome {
        if !self.artifacts.is_empty() {
            let list = self.artifacts.iter().map(|it| json!({"name": it.name, "bytes": it.bytes_total}));
            let list = list.collect::<Vec<_>>();
            self = self.field("artifacts", list);
        }
        if !self.notes.is_empty() {
            let notes = std::mem::take(&mut self.notes);
            self = self.field("notes", notes);
        }
        Outcome {
            kind,
            output: Value::Object(self.fields).to_string(),
            exit_code: None,
            artifacts: self.artifacts,
            images: self.images,
            notices: self.notices,
        }
    }
}
