//! The rest of a turn whose answer only recalls something: it is given that, and the backend is asked again.

use super::Running;
use super::answer_stream::AnswerStream;
use super::failures::{broken_off, unrecorded};
use super::hidden_calls::{NO_ANSWER, sum};
use super::open::{Answer, Opened};
use super::rejoined::spoken;
use crate::capability::Form;
use crate::egress::Answered;
use crate::gateway::now;
use throughline_core::{
    Call, Dialect, Ending, Entry, Failure, Kind, Outcome, Part, Reply, Return, Role, Stop, Text, Usage,
    joined_text,
};
use throughline_store::ProviderEvent;

impl Running {
    /// Answers what a reply recalls: the results stand in it afterwards. Says whether the backend is to be
    /// asked again, because there is nothing in it that the client could act on.
    pub(super) fn recollect(&mut self, reply: &mut Reply, (leg, _): (usize, Form)) -> bool {
        let Some(tool) = self.recalls.tool.clone() else { return false };
        let is_ours =
            |entry: &Entry| entry.as_call().is_some_and(|call| call.name == tool && call.namespace.is_none());
        if !reply.entries.iter().any(is_ours) {
            return false;
        }
        let is_over = matches!(reply.ending, Ending::Stopped(Stop::EndTurn | Stop::ToolCalls));
        let may_go_on = !self.recalls.must_answer() && is_over;
        self.recalls.note_refusal();
        let is_mixed = reply.entries.iter().any(|entry| entry.as_call().is_some() && !is_ours(entry));
        let known = self.recallable(&self.destinations[leg]);
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        let mut others = Vec::new();
        for entry in std::mem::take(&mut reply.entries) {
            match &entry.kind {
                Kind::Called(call) if is_ours(&entry) => {
                    let (outcome, parts) = self.recalls.answer(call, &known);
                    results.push(result(call, outcome, parts, is_mixed));
                    let namespace = Some(Text::from_static(Entry::OWN_TOOLS));
                    calls.push(entry.altered(Kind::Called(Call { namespace, ..call.clone() })));
                }
                _ => others.push(entry),
            }
        }
        // Before the client's calls: what stands behind them is no part of a history that ends with them.
        let at = others.iter().position(|entry| entry.as_call().is_some()).unwrap_or(others.len());
        reply.entries = others;
        reply.entries.splice(at..at, calls.into_iter().chain(results));
        reply.fields = None;
        if is_over && !may_go_on && reply.entries.iter().all(Entry::is_hidden) {
            reply.entries.push(Entry::said(Role::Assistant, NO_ANSWER));
        }
        may_go_on && !is_mixed
    }

    /// Writes down a reply with the results of what it recalls, and asks the backend again.
    pub(super) async fn ask_again(
        &mut self,
        reply: &Reply,
        events: Vec<ProviderEvent>,
        sent: (usize, Form),
        resumed: Option<&mut AnswerStream>,
    ) -> Result<Opened, Failure> {
        let written = self.recorder.go_on(reply, events, now()).await;
        self.placed.turn.extend(written.map_err(|error| unrecorded(&error))?);
        self.recalls.usage = joined(self.recalls.usage, reply.usage);
        self.recalls.ends.push(self.recorder.shown.len());
        let attempts = self.attempts_from(sent);
        Box::pin(self.pursue(attempts, sent.0, resumed)).await
    }

    /// Goes on with a stream whose answer only recalls something; returns nothing if the turn is over.
    pub(super) async fn follow(
        &mut self,
        relay: &mut AnswerStream,
        sent: &mut (usize, Form),
    ) -> Option<(Answered, String)> {
        if !relay.awaits_recall() {
            return None;
        }
        let dialect = self.destinations[sent.0].backend.dialect;
        let (events, mut reply) = (relay.take_events(), relay.take_reply(dialect));
        self.recollect(&mut reply, *sent);
        let opened = self.ask_again(&reply, events, *sent, Some(relay)).await;
        let failure = match opened {
            Ok(Opened { answer: Answer::Rest(rest), sent: to, .. }) => {
                *sent = to;
                self.recorder.attempt_ended(Some(200), None, now());
                return Some(*rest);
            }
            Ok(_) => broken_off(),
            Err(failure) => failure,
        };
        relay.fail(failure);
        None
    }

    /// Returns the answer as the client sees it, if that is another than the last reply.
    pub(super) fn shown_reply(&self, reply: &mut Reply) -> Option<Reply> {
        reply.usage = joined(self.recalls.usage, reply.usage);
        // A backend that repeats the request in its answer would tell of the tool, called or not.
        self.recalls.tool()?;
        let seen = self.recorder.shown.iter().chain(&reply.entries).filter(|entry| !entry.is_hidden());
        let mut entries: Vec<Entry> =
            seen.map(|entry| Entry { envelope: None, intact: false, ..entry.clone() }).collect();
        // The other dialects have several texts in an answer.
        if self.ask.dialect == Dialect::Chat {
            set_apart(&mut entries, &self.recalls.ends);
        }
        let has_calls = entries.iter().any(|entry| entry.as_call().is_some());
        if !has_calls && reply.ending == Ending::Stopped(Stop::ToolCalls) {
            reply.ending = Ending::Stopped(Stop::EndTurn);
        }
        Some(Reply { entries, fields: None, ..reply.clone() })
    }
}

/// Puts an empty line between the texts of answers that end at `ends`.
fn set_apart(entries: &mut [Entry], ends: &[usize]) {
    for end in ends {
        let Some((before, after)) = entries.split_at_mut_checked(*end) else { return };
        let last = before.iter().rev().find_map(spoken).map(|said| joined_text(&said.parts));
        let next = after.iter_mut().find_map(|entry| match &mut entry.kind {
            Kind::Said(said) => Some(said),
            _ => None,
        });
        if let (Some(last), Some(next)) = (last, next)
            && !last.ends_with('\n')
            && !joined_text(&next.parts).starts_with('\n')
        {
            next.parts.insert(0, Part::text("\n\n"));
        }
    }
}

fn result(call: &Call, outcome: Outcome, parts: Vec<Part>, is_mixed: bool) -> Entry {
    let name = if is_mixed { Entry::OWN_RESULT_BESIDE } else { Entry::OWN_RESULT };
    Entry::new(Kind::Returned(Return {
        call_id: Some(call.id.clone()),
        item_id: None,
        name: Some(Text::from_static(name)),
        parts,
        outcome,
        freeform: false,
    }))
}

/// Returns what two answers of one turn took, as far as they say.
fn joined(before: Option<Usage>, now: Option<Usage>) -> Option<Usage> {
    match (before, now) {
        (Some(before), Some(now)) => Some(sum(before, now)),
        (before, now) => now.or(before),
    }
}
