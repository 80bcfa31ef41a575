//! opencode's sessions, as the document that its `export` writes and its `import` reads.
//!
//! A document has the facts (`info`) and the messages, each with its parts; a tool's part holds the call and, once
//! there is one, the result. Versions before the database kept the same objects in a file each, which
//! [`join`] puts together.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::{note_losses, write};

use throughline_wire::json::Writer;

/// Makes one document of the files of a session: its facts, and each message with its parts.
#[must_use]
pub fn join(info: &str, messages: &[(String, Vec<String>)]) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_raw("info", info);
    writer.key("messages");
    writer.begin_array();
    for (info, parts) in messages {
        writer.begin_object();
        writer.field_raw("info", info);
        writer.key("parts");
        writer.begin_array();
        parts.iter().for_each(|part| writer.raw(part));
        writer.end_array();
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    writer.into_string()
}
