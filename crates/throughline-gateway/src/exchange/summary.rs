//! The summary of a brief, written by a model (R19).
//!
//! The model is shown what user and assistant said to each other and nothing that a tool said: that is handed over
//! in its own words. When it fails, says nothing or takes too long, the brief has its digest instead, and the
//! handover works all the same. What the model is sent is an attempt of the exchange, in the record like any other.

use super::Running;
use super::aside::{self, Answer, Aside, AsideError, SUMMARY};
use super::record::{self, Outgoing};
use crate::config::Backend;
use crate::gateway::now;
use crate::routing::Destination;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use throughline_core::{Entry, Kind, Role, joined_text, own_message};

/// How long a model may take; the user waits meanwhile.
const TIME_MAX: Duration = Duration::from_secs(60);
const SUMMARY_TOKENS_MAX: &str = "800";
/// So much of what was said is summarised, the latest of it.
const TALK_CHARS_MAX: usize = 120_000;

const INSTRUCTIONS: &str = "You summarise the history of a working session, so that another assistant can go on \
    with it. Say in plain prose what the user wants, what was decided and why, what is done, and what is left to \
    do. What tools returned is handed over separately: do not describe it. Do not call tools. Answer with the \
    summary alone, in at most 300 words.";

impl Running {
    /// Has a model summarise what was said; nothing, if it does not.
    pub(super) async fn summarised(
        &mut self,
        taking_over: &Destination,
        entries: &[Entry],
    ) -> Option<String> {
        let wanted = self.setup.config.handover.summary_backend.as_deref();
        let named = wanted.and_then(|name| self.setup.config.backend(name)).cloned();
        let backend = named.unwrap_or_else(|| Arc::clone(&taking_over.backend));
        let is_same = backend.name == taking_over.backend.name;
        let default = backend.default_model.clone();
        let model = if is_same { Some(taking_over.model.clone()) } else { default }?;
        let talk = talk(entries)?;
        let aside = Aside { instructions: INSTRUCTIONS, material: &talk, tokens_max: SUMMARY_TOKENS_MAX };
        let body = Bytes::from(aside.body(&backend, &model));
        let report = r#"{"summary":"strategy=summary","changes":[]}"#.to_owned();
        let attempt = record::attempted(backend.name.clone(), backend.dialect, model, SUMMARY, now());
        let outgoing = Outgoing { body: body.clone(), report, provenance: None, decided: None };
        self.recorder.attempt(attempt, outgoing).await.ok()?;
        let answered = tokio::time::timeout(TIME_MAX, self.asked(&backend, body)).await;
        let late = || AsideError::Unanswered("no summary within the time limit".to_owned());
        match answered.unwrap_or_else(|_| Err(late())) {
            Ok(answer) => {
                self.recorder.attempt_ended(Some(answer.status), None, now());
                Some(answer.words)
            }
            Err(error) => {
                tracing::warn!(backend = backend.name.as_str(), %error, "no summary; the digest stands in");
                self.recorder.attempt_ended(error.status(), Some(error.to_string().into()), now());
                None
            }
        }
    }

    async fn asked(&self, backend: &Backend, body: Bytes) -> Result<Answer, AsideError> {
        let egress = self.setup.egress.get(&backend.name);
        let egress = egress.ok_or_else(|| AsideError::Unanswered("the backend is not set up".to_owned()))?;
        aside::ask(egress, backend.dialect, body, &self.presented).await
    }
}

/// Returns what user and assistant said before the user's own message; nothing, if that is nothing.
fn talk(entries: &[Entry]) -> Option<String> {
    let own = own_message(entries).unwrap_or(entries.len()..entries.len());
    let mut told: Vec<String> = Vec::new();
    let mut room = TALK_CHARS_MAX;
    for entry in entries[..own.start].iter().chain(&entries[own.end..]).rev() {
        let (name, text) = match &entry.kind {
            Kind::Said(said) if said.role == Role::User => ("USER", joined_text(&said.parts)),
            Kind::Said(said) if said.role == Role::Assistant => ("ASSISTANT", joined_text(&said.parts)),
            Kind::Summarised(summary) => ("SUMMARY", summary.text.clone()),
            _ => continue,
        };
        if text.trim().is_empty() {
            continue;
        }
        let Some(left) = room.checked_sub(text.chars().count()) else { break };
        room = left;
        told.push(format!("[{name}]\n{text}\n[/{name}]"));
    }
    told.reverse();
    (!told.is_empty()).then(|| format!("Session history:\n\n{}", told.join("\n---\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_what_was_said_before_the_users_own_message() {
        let entries = [
            Entry::said(Role::System, "You are an agent."),
            Entry::said(Role::User, "Fix it."),
            Entry::said(Role::Assistant, "Done."),
            Entry::said(Role::User, "And now?"),
        ];
        let expected = "Session history:\n\n[USER]\nFix it.\n[/USER]\n---\n[ASSISTANT]\nDone.\n[/ASSISTANT]";
        assert_eq!(talk(&entries).as_deref(), Some(expected));
        assert_eq!(talk(&entries[3..]), None);
    }
}
