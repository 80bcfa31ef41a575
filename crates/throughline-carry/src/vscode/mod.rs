//! Chat sessions of VS Code, as its workspace storage keeps them.
//!
//! A session is one JSON document with its `requests`; newer versions write it as a log of changes to that document,
//! which [`replay`] applies. What the model was shown of a request is in its result: rounds of words and calls, and the
//! results by the ids of the calls. There is nothing to write: the editor has no way to go on with a session of others.

mod read;
mod replay;

pub(crate) use read::read;
pub(crate) use replay::replay;
