//! Sessions of agents, to and from the canonical model (R34).
//!
//! An agent keeps what it did in a file of its own. [`SessionReader`] reads such a file line by line into
//! [`Piece`]s: entries, and the place in the tree that they stand at. [`fit`] makes of a branch what another agent
//! can take, and says what it could not carry; [`write_session`] writes it as a session that the agent resumes.
//! [`interchange`] is our own form, which loses nothing.
//!
//! Invariants:
//! - Nothing here does I/O, reads a clock or draws randomness: text comes in and text goes out.
//! - Reading depends on nothing but the lines before, so a session that has grown is read as before, and on.
//! - A line that cannot be read is an error of that line and of no other, as is an element of a document.
//! - A call goes by another name only where its arguments mean exactly the same there.

mod agent;
mod body;
mod claude_code;
mod codex;
mod decode;
mod fit;
mod ids;
pub mod interchange;
mod markdown;
mod mend;
mod moment;
mod opencode;
mod reader;
mod session;
mod tools;
mod vscode;
mod write;

pub use agent::Agent;
pub use body::{read_body, write_body};
pub use fit::{Fitted, Told, Written, fit};
pub use ids::{opencode_id, session_id};
pub use markdown::write_markdown;
pub use moment::{Millis, date_path, iso, parse_iso};
pub use opencode::join as join_opencode;
pub use reader::{SessionReader, read_document};
pub use session::{Answered, Contents, Damage, Facts, Piece, Spot};
pub use tools::counterpart;
pub use write::{Header, file_name, project_folder, write_session};
