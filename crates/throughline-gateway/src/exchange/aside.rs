//! A question aside: a model is asked for words about a conversation, outside of it (R19).
//!
//! It is shown what it is to put into words and no tools, and its provider is asked not to keep any of it. Whoever
//! asks keeps question and answer as an attempt of an exchange, in the record like any other.

pub use crate::async_summary::SUMMARY;
use crate::config::Backend;
use crate::egress::{Egress, Presented, Request, path_of};
use bytes::Bytes;
use http::HeaderMap;
use throughline_core::{
    Ask, Dialect, Ending, Entry, Role, Settings, Stop, Target, Text, joined_text, prepare,
};
use throughline_wire::{decode_error, decode_reply, encode_request};

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Aside<'a> {
    /// What it is to do.
    pub instructions: &'static str,
    /// What it is to do that with.
    pub material: &'a str,
    /// How many tokens its words may have, as JSON writes them.
    pub tokens_max: &'static str,
}

/// What it answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its words.
    pub words: String,
    /// The whole of it, as it came.
    pub body: Text,
    /// Its status.
    pub status: u16,
}

/// Why there are no words.
#[derive(Debug, thiserror::Error)]
pub enum AsideError {
    /// The backend was not reached, or its answer not read to its end.
    #[error("{0}")]
    Unanswered(String),
    /// The backend refused, or its answer is not one.
    #[error("{problem}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// What is wrong.
        problem: String,
    },
    /// There are none in the answer.
    #[error("the model said nothing")]
    Silent(u16),
}

impl AsideError {
    /// Returns the status of the answer, if there was one.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Unanswered(_) => None,
            Self::Refused { status, .. } | Self::Silent(status) => Some(*status),
        }
    }
}

impl Aside<'_> {
    /// Returns the request, as a backend takes it.
    #[must_use]
    pub fn body(&self, backend: &Backend, model: &Text) -> String {
        // As if it came in another dialect: settings of a request in the backend's own go out as they came, and
        // these came in none.
        let dialect = if backend.dialect == Dialect::Chat { Dialect::Messages } else { Dialect::Chat };
        let entries =
            vec![Entry::said(Role::System, self.instructions), Entry::said(Role::User, self.material)];
        let settings = Settings {
            max_output_tokens: Some(Text::from_static(self.tokens_max)),
            store: (backend.dialect == Dialect::Responses).then_some(false),
            ..Settings::default()
        };
        let ask = Ask { settings, ..Ask::of(dialect, entries) };
        let target = Target { model: Some(model.clone()), ..Target::new(&backend.rules) };
        let (prompt, mut report) = prepare(&ask, &target);
        encode_request(&prompt, &mut report)
    }
}

/// Asks, and waits for the whole answer.
///
/// # Errors
/// When the backend does not answer, or there are no words in what it says.
pub async fn ask(
    egress: &Egress,
    dialect: Dialect,
    body: Bytes,
    presented: &Presented,
) -> Result<Answer, AsideError> {
    let (path, forwarded) = (path_of(dialect), HeaderMap::new());
    let request = Request { path, body, presented, forwarded: &forwarded };
    let unanswered = |error: &dyn std::fmt::Display| AsideError::Unanswered(error.to_string());
    let answered = egress.post(request).await.map_err(|error| unanswered(&error))?;
    let status = answered.status;
    let limit = answered.bounds.bytes;
    let body = answered.whole(limit).await.map_err(|error| unanswered(&error))?;
    let body = String::from_utf8_lossy(&body).into_owned();
    if status >= 400 {
        let mut failure = decode_error(dialect, status, &body);
        failure.shorten();
        let problem = failure.message.to_string();
        return Err(AsideError::Refused { status, problem });
    }
    let words = words(dialect, &body)
        .map_err(|problem| AsideError::Refused { status, problem })?
        .ok_or(AsideError::Silent(status))?;
    Ok(Answer { words, body: body.into(), status })
}

/// Returns what an answer says; none, if that is nothing or it did not come to its end.
fn words(dialect: Dialect, answer: &str) -> Result<Option<String>, String> {
    let reply = decode_reply(dialect, answer.to_owned()).map_err(|error| error.to_string())?;
    if !matches!(reply.ending, Ending::Stopped(Stop::EndTurn | Stop::MaxTokens)) {
        return Ok(None);
    }
    let said = reply.entries.iter().filter_map(Entry::as_said).map(|said| joined_text(&said.parts));
    let text = said.map(|text| text.to_string()).collect::<Vec<_>>().join("\n");
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
