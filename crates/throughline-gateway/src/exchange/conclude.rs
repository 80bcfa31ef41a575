//! The end of an exchange that was answered, whatever the end is and whoever wanted the answer.
//!
//! The answer is in the history before anybody is told that it is over. Then the prefix cache learns from it, and what
//! was put into a summary goes to the model that is to write it.

use super::Running;
use super::background_request;
use super::editing::with_applied_edits;
use super::prompting::{BRIEF, Prompted};
use super::relay::Relayed;
use crate::gateway::now;
use throughline_core::{Dialect, Ending, Reply, Text};
use throughline_store::StoreError;
use throughline_wire::{ClientNames, background_response, encode_reply, status_of};

/// Who is given an answer, which decides what of it the history keeps beside the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// A client that reads it as it comes.
    Stream,
    /// A client that waits for the whole of it.
    Whole,
    /// Whoever asks for it later.
    Background,
    /// The gateway itself.
    InProcess,
}

/// An answer that is in the history.
pub(super) struct Concluded {
    /// What was sent for it; nothing if nobody was asked.
    pub prompted: Option<Prompted>,
    /// The answer as its client sees it.
    pub shown: Reply,
    /// The same, written in the client's dialect, where somebody wants it so.
    pub body: Option<String>,
}

impl Running {
    /// Writes an answer and how it ended to the history.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub(super) async fn conclude(
        &mut self,
        relayed: Relayed,
        recipient: Recipient,
    ) -> Result<Concluded, StoreError> {
        let Relayed { prompted, mut reply, events, whole, .. } = relayed;
        let shown = self.shown_reply(&mut reply);
        let forwards = match &prompted {
            Some(prompted) if prompted.forwards => self.keeps_id(reply.id.as_ref()).await,
            _ => false,
        };
        // The client of a stream that it called off was not told of a response that it could continue.
        let is_called_off = reply.ending == Ending::Cancelled && recipient != Recipient::Background;
        if !is_called_off {
            self.promise_response(&reply, forwards);
        }

        let body = match recipient {
            Recipient::InProcess => None,
            Recipient::Stream if is_called_off || self.ask.dialect != Dialect::Responses => None,
            Recipient::Stream if whole.is_some() => whole.map(|whole| whole.to_string()),
            Recipient::Stream | Recipient::Whole | Recipient::Background => {
                let shown = shown.as_ref().unwrap_or(&reply);
                Some(self.body_of(shown, prompted.as_ref()))
            }
        };
        let is_kept = self.ask.dialect == Dialect::Responses;
        let answer = body.as_deref().filter(|_| is_kept).map(Text::from);
        let status = match &reply.ending {
            // All others were told that there is an answer before it failed.
            Ending::Failed(failure) if recipient == Recipient::Background => status_of(failure.kind),
            _ => 200,
        };
        self.recorder.end(&reply, status, answer, events, now()).await?;

        if let Some(prompted) = &prompted {
            self.learn_prefix(prompted, &reply);
        }
        self.retell();
        Ok(Concluded { prompted, shown: shown.unwrap_or(reply), body })
    }

    /// Notes the id by which the client may refer to the answer later: the backend's where that is forwarded.
    fn promise_response(&mut self, reply: &Reply, forwards: bool) {
        if self.ask.dialect != Dialect::Responses {
            return;
        }
        let id = reply.id.clone().filter(|_| forwards).unwrap_or_else(|| self.own_id());
        self.recorder.promise(id, self.ask.settings.store.unwrap_or(true));
    }

    /// Returns an answer as one body, with what its backend did not know.
    fn body_of(&self, shown: &Reply, prompted: Option<&Prompted>) -> String {
        let body = encode_reply(self.ask.dialect, shown, &self.stamp, &self.ask);
        let is_background = background_request::is_wanted(&self.ask);
        let id = (is_background || self.has_own_id()).then(|| self.own_id());
        let names = ClientNames { id, ..ClientNames::for_request(&self.ask) };
        let body = names.rename_object(&body).unwrap_or(body);
        let applied = prompted.and_then(|prompted| prompted.applied.as_ref());
        let body = with_applied_edits(&body, applied).unwrap_or(body);
        if is_background { background_response(body) } else { body }
    }

    /// Remembers what the next request need not say again to be understood.
    fn learn_prefix(&mut self, prompted: &Prompted, reply: &Reply) {
        // What a brief stands for is in the record alone.
        if prompted.report.strategy == BRIEF {
            return;
        }
        let (request, answer) = ((&self.ask, &self.placed), (prompted, reply));
        self.reading.learn(&self.gateway, &self.recorder, request, answer);
    }
}
