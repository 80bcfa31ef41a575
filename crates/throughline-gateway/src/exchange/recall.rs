//! Recall: the model has back what was taken out, within the turn (R32).
//!
//! Where a plan took something out, the model is offered one more tool. Its calls are answered here from the
//! history, and the backend is asked again with the results, until it has something for the client. The client
//! declared no such tool and sees none of it: its stream goes on as if there had been one answer.
//!
//! In the record calls and results are there, marked as hidden. They leave the chain alone by which a resent
//! history is recognised, and each request that goes on from there shows them to the backend again.

use super::Running;
use super::broken_off;
use super::open::{Answer, Opened};
use super::recollection::recollect;
use super::rejoined::{letters, spoken};
use super::relay::Relay;
use super::unrecorded;
use crate::capability::Form;
use crate::egress::Answered;
use crate::gateway::now;
use std::collections::BTreeMap;
use throughline_core::{
    Ask, BlockId, BlockKind, Call, Dialect, Ending, Entry, Failure, Frame, Kind, Outcome, Part, Piece, Reply,
    Return, Role, Stop, Text, Tool, ToolChoice, ToolForm, Usage, joined_text,
};
use throughline_store::ProviderEvent;

/// What became of recall in one exchange.
#[derive(Debug, Default)]
pub struct Recalls {
    /// What the tool is called, if it was offered.
    tool: Option<Text>,
    /// How many calls were answered.
    used: u32,
    /// How often the model was told that there is no more. From then on the tool is not offered, and the next time no
    /// tool may be called; a model that calls it even then is not asked again.
    refusals: u32,
    /// What earlier answers took.
    usage: Option<Usage>,
    /// How much of what the client is shown there was when an answer was over behind which another came.
    ends: Vec<usize>,
}

/// Hides calls of one tool in the frames of an answer, and joins several answers into one.
#[derive(Debug, Default)]
pub struct Curtain {
    tool: Option<Text>,
    /// The blocks of the answer under way, as the client knows them; nothing for those that it does not see.
    blocks: BTreeMap<BlockId, Option<BlockId>>,
    next: BlockId,
    /// The first block of the answer under way that the client would see.
    first: BlockId,
    is_open: bool,
    hidden: bool,
    /// Whether the answer under way calls tools of the client.
    calls: bool,
    is_last: bool,
    holds: bool,
    before: Usage,
    now: Usage,
}

/// How many calls are answered in one turn; a model that wants more goes in circles.
const RECALLS_MAX: u32 = 8;

/// How many answers are refused that recall more than that.
const REFUSALS_MAX: u32 = 2;

/// What the client is told if the model does nothing but recall to the last.
const NO_ANSWER: &str = "I have no answer: I went on looking up earlier tool results until no more could be looked up. \
    Ask me to go on with what I have.";

const NAME: &str = "recall";
/// What the tool is called where the client has one of that name.
const OTHER_NAME: &str = "throughline_recall";

const DESCRIPTION: &str = "Gives back what was cut from this conversation's earlier tool calls and results. Where \
    something was cut, the text names a handle, such as `recall e5m8`. Pass the handle with a query to have the lines that \
    have its words, or with from_line and to_line; a range such as `e5m8..k7f2` lists what is in it. A query alone searches \
    everything.";

const SCHEMA: &str = r#"{"type":"object","properties":{"handle":{"type":"string"},"query":{"type":"string","description":"Words to look for."},"from_line":{"type":"integer"},"to_line":{"type":"integer"}}}"#;

const NO_MORE: &str = "No more can be recalled in this turn. Go on with what you have.";

/// Returns what the tool is called beside the tools of a request.
pub fn tool_name(ask: &Ask) -> Text {
    let is_taken = ask.tools.iter().any(|tool| tool.name == NAME);
    Text::from_static(if is_taken { OTHER_NAME } else { NAME })
}

/// Says whether the model could call one more tool: the client offers some, and leaves the choice to the model.
pub fn is_usable(ask: &Ask) -> bool {
    let is_free = matches!(ask.tool_choice, None | Some(ToolChoice::Auto));
    is_free && ask.tools.iter().any(|tool| !tool.is_hosted())
}

/// Returns the tool as it is offered.
pub fn tool(name: &Text) -> Tool {
    Tool {
        name: name.clone(),
        namespace: None,
        description: Some(Text::from_static(DESCRIPTION)),
        form: ToolForm::Function { schema: Some(Text::from_static(SCHEMA)), strict: Some(false) },
        wire: None,
        intact: false,
    }
}

/// Returns a client's own history with the hidden entries that `known` has in it.
pub fn reinserted(entries: Vec<Entry>, known: &[Entry]) -> Vec<Entry> {
    if !known.iter().any(Entry::is_hidden) {
        return entries;
    }
    let mut whole = Vec::with_capacity(known.len());
    let mut at = 0;
    for entry in known {
        if entry.is_hidden() {
            whole.push(entry.clone());
        } else if entries.get(at).is_some_and(|own| has_as_a_piece(own, entry)) {
            // What was said around a recall stands behind it, as one text.
        } else if let Some(found) = entries[at..].iter().position(|own| says_the_same(own, entry)) {
            whole.extend_from_slice(&entries[at..=at + found]);
            at += found + 1;
        }
    }
    whole.extend_from_slice(&entries[at..]);
    whole
}

/// Says whether a client's entry is the one that is known; reasoning is left to stand where the client has it.
fn says_the_same(own: &Entry, known: &Entry) -> bool {
    match (&own.kind, &known.kind) {
        (Kind::Called(own), Kind::Called(known)) => own.id == known.id,
        (Kind::Returned(own), Kind::Returned(known)) => own.call_id == known.call_id,
        (Kind::Said(own), Kind::Said(known)) => {
            own.role == known.role && joined_text(&own.parts) == joined_text(&known.parts)
        }
        _ => false,
    }
}

/// Says whether a client's text holds what is known as one of several.
fn has_as_a_piece(own: &Entry, known: &Entry) -> bool {
    match (spoken(own).map(letters), spoken(known).map(letters)) {
        (Some(own), Some(known)) => own.len() > known.len() && own.contains(&known),
        _ => false,
    }
}

/// Returns a history with its hidden entries as a backend is shown them, under the tool's name.
pub fn unveiled(entries: Vec<Entry>, name: &Text) -> Vec<Entry> {
    if !entries.iter().any(Entry::is_hidden) {
        return entries;
    }
    let mut shown: Vec<Entry> = Vec::with_capacity(entries.len());
    // Results of calls that stood beside others, until the batch is over.
    let mut beside: Vec<Entry> = Vec::new();
    let mut is_mixed = false;
    for mut entry in entries {
        let is_beside = matches!(&entry.kind, Kind::Returned(returned)
            if returned.name.as_deref() == Some(Entry::OWN_RESULT_BESIDE));
        if is_beside {
            is_mixed = true;
            beside.push(bare(&entry, name));
        } else if entry.is_hidden() {
            shown.push(bare(&entry, name));
        } else if matches!(entry.kind, Kind::Called(_)) {
            // It no longer stands alone in its message.
            entry.intact &= !is_mixed;
            shown.push(entry);
        } else {
            shown.append(&mut beside);
            is_mixed &= matches!(entry.kind, Kind::Returned(_));
            entry.intact &= !is_mixed;
            shown.push(entry);
        }
    }
    shown.append(&mut beside);
    shown
}

/// Returns a hidden entry without its mark.
fn bare(entry: &Entry, name: &Text) -> Entry {
    let kind = match &entry.kind {
        Kind::Called(call) => Kind::Called(Call { name: name.clone(), namespace: None, ..call.clone() }),
        Kind::Returned(returned) => Kind::Returned(Return { name: None, ..returned.clone() }),
        kind => kind.clone(),
    };
    Entry { wire: None, envelope: None, intact: false, ..entry.altered(kind) }
}

impl Recalls {
    /// Takes note of what the model is offered.
    pub fn offer(&mut self, tool: Option<Text>) {
        self.tool = tool;
    }

    /// Returns what the tool is called, if it was offered in this exchange.
    pub const fn tool(&self) -> Option<&Text> {
        self.tool.as_ref()
    }

    /// Says whether the model has recalled anything.
    pub const fn have_begun(&self) -> bool {
        self.used > 0
    }

    /// Says whether the model was told that it can recall no more in this turn.
    pub const fn are_used_up(&self) -> bool {
        self.refusals > 0
    }

    /// Says whether the model can only answer: it was refused, and calls the tool all the same.
    pub const fn must_answer(&self) -> bool {
        self.refusals >= REFUSALS_MAX
    }

    /// Returns what hides calls of the tool from the client.
    pub fn curtain(&self) -> Curtain {
        Curtain { tool: self.tool.clone(), is_last: self.must_answer(), ..Curtain::default() }
    }

    /// Returns the result of a call.
    fn answer(&mut self, call: &Call, entries: &[Entry]) -> (Outcome, Vec<Part>) {
        if self.used >= RECALLS_MAX {
            return (Outcome::Error, vec![Part::text(NO_MORE)]);
        }
        self.used += 1;
        match recollect(call.input.text(), entries, &call.name) {
            Ok(parts) => (Outcome::Ok, parts),
            Err(problem) => (Outcome::Error, vec![Part::text(problem.to_string())]),
        }
    }
}

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
        self.recalls.refusals += u32::from(self.recalls.used >= RECALLS_MAX);
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
        resumed: Option<&mut Relay>,
    ) -> Result<Opened, Failure> {
        let written = self.recorder.go_on(reply, events, now()).await;
        self.placed.turn.extend(written.map_err(|error| unrecorded(&error))?);
        self.recalls.usage = joined(self.recalls.usage, reply.usage);
        self.recalls.ends.push(self.recorder.shown.len());
        let attempts = self.attempts_from(sent);
        self.pursue(attempts, sent.0, resumed).await
    }

    /// Goes on with a stream whose answer only recalls something; returns nothing if the turn is over.
    pub(super) async fn follow(
        &mut self,
        relay: &mut Relay,
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

/// Returns what two answers of one turn took: both wrote, and the prompt of the second holds that of the first.
fn joined(before: Option<Usage>, now: Option<Usage>) -> Option<Usage> {
    match (before, now) {
        (Some(before), Some(now)) => Some(sum(before, now)),
        (before, now) => now.or(before),
    }
}

const fn sum(before: Usage, now: Usage) -> Usage {
    let Usage { output, reasoning, .. } = before.plus(now);
    Usage { output, reasoning, ..now }
}

impl Curtain {
    /// Says whether the answer is over and its end was kept from the client.
    pub const fn holds(&self) -> bool {
        self.holds
    }

    /// Begins with a further answer; behind the last one no other will come.
    pub fn resume(&mut self, is_last: bool) {
        self.blocks.clear();
        self.before = sum(self.before, self.now);
        self.now = Usage::default();
        (self.hidden, self.calls, self.holds) = (false, false, false);
        (self.is_last, self.first) = (is_last, self.next);
    }

    /// Begins anew with a further answer of which nothing has come.
    pub fn begin_again(&mut self, is_last: bool) {
        self.now = Usage::default();
        self.resume(is_last);
    }

    /// Returns the frame as the client sees it, if it does.
    pub fn handle_frame(&mut self, frame: &Frame) -> Option<Frame> {
        match frame {
            Frame::Opened { .. } => (!std::mem::replace(&mut self.is_open, true)).then(|| frame.clone()),
            Frame::Begun { block, kind } => {
                let shown = self.begun(kind);
                self.blocks.insert(*block, shown);
                shown.map(|block| Frame::Begun { block, kind: kind.clone() })
            }
            Frame::Grew { block, piece } => {
                let block = self.shown(*block)?;
                Some(Frame::Grew { block, piece: piece.clone() })
            }
            Frame::Ended { block } => self.shown(*block).map(|block| Frame::Ended { block }),
            Frame::Used(usage) => {
                self.now = self.now.updated(*usage);
                Some(Frame::Used(sum(self.before, self.now)))
            }
            Frame::Ordered(order) => {
                Some(Frame::Ordered(order.iter().filter_map(|block| self.shown(*block)).collect()))
            }
            Frame::Closed(ending) => self.closed(ending).map(Frame::Closed),
            Frame::Alien { .. } => Some(frame.clone()),
        }
    }

    /// Returns what the client is told before the end if the last answer holds nothing that it sees.
    pub fn last_words(&mut self, frame: &Frame) -> Vec<Frame> {
        let is_over = matches!(frame, Frame::Closed(Ending::Stopped(Stop::EndTurn | Stop::ToolCalls)));
        if !is_over || !self.is_last || !self.hidden || self.next > self.first {
            return Vec::new();
        }
        let block = self.next;
        self.next += 1;
        vec![
            Frame::Begun { block, kind: BlockKind::Text { item_id: None } },
            Frame::Grew { block, piece: Piece::Text(Text::from_static(NO_ANSWER)) },
            Frame::Ended { block },
        ]
    }

    fn begun(&mut self, kind: &BlockKind) -> Option<BlockId> {
        if let BlockKind::Call { name, namespace, .. } = kind {
            if self.tool.as_ref() == Some(name) && namespace.is_none() {
                self.hidden = true;
                return None;
            }
            self.calls = true;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    fn shown(&self, block: BlockId) -> Option<BlockId> {
        self.blocks.get(&block).copied().flatten()
    }

    fn closed(&mut self, ending: &Ending) -> Option<Ending> {
        if !self.hidden || self.calls || !matches!(ending, Ending::Stopped(Stop::EndTurn | Stop::ToolCalls)) {
            return Some(ending.clone());
        }
        self.holds = !self.is_last;
        self.is_last.then_some(Ending::Stopped(Stop::EndTurn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Input;

    fn call(id: &str, name: &str) -> Entry {
        let input = Input::Arguments("{}".into());
        Entry::new(Kind::Called(Call {
            id: id.into(),
            item_id: None,
            name: name.into(),
            namespace: None,
            input,
        }))
    }

    fn returned(id: &str, name: Option<&str>) -> Entry {
        Entry::new(Kind::Returned(Return {
            call_id: Some(id.into()),
            item_id: None,
            name: name.map(Into::into),
            parts: vec![Part::text("text")],
            outcome: Outcome::Ok,
            freeform: false,
        }))
    }

    fn hidden(id: &str) -> Entry {
        let mut entry = call(id, NAME);
        let Kind::Called(call) = &mut entry.kind else { panic!("no call") };
        call.namespace = Some(Entry::OWN_TOOLS.into());
        entry
    }

    #[test]
    fn a_hidden_pair_is_shown_in_its_batch_again() {
        let own = [Entry::said(Role::User, "go"), call("b", "read"), returned("b", None)];
        let known = [
            own[0].clone(),
            hidden("a"),
            returned("a", Some(Entry::OWN_RESULT_BESIDE)),
            own[1].clone(),
            own[2].clone(),
        ];
        let whole = reinserted(own.to_vec(), &known);
        assert_eq!(whole, known);
        let shown = unveiled(whole, &Text::from_static(OTHER_NAME));
        let calls: Vec<_> = shown.iter().filter_map(Entry::as_call).map(|call| call.name.as_str()).collect();
        assert_eq!(calls, [OTHER_NAME, "read"]);
        let results: Vec<_> =
            shown[3..].iter().map(|entry| entry.as_return().unwrap().call_id.clone().unwrap()).collect();
        assert_eq!(results, ["a", "b"]);
        assert!(!shown.iter().any(Entry::is_hidden) && !shown[2].intact && !shown[4].intact);
    }

    #[test]
    fn two_answers_are_one_without_the_call_between_them() {
        let begun = |block, name: &str| {
            let (id, name) = (Text::from("c"), Text::from(name));
            let kind = BlockKind::Call { id, item_id: None, name, namespace: None, freeform: false };
            Frame::Begun { block, kind }
        };
        let text = |block| Frame::Begun { block, kind: BlockKind::Text { item_id: None } };
        let grew = |block| Frame::Grew { block, piece: Piece::Text("x".into()) };
        let opened = Frame::Opened { id: None, model: None };
        let stop = Frame::Closed(Ending::Stopped(Stop::ToolCalls));
        let used = |input, output| Frame::Used(Usage { input, output, ..Usage::default() });
        let mut curtain = Curtain { tool: Some(NAME.into()), ..Curtain::default() };
        let first = [opened.clone(), text(0), grew(0), begun(1, NAME), grew(1), used(10, 5), stop.clone()];
        let mut seen: Vec<Frame> = first.iter().filter_map(|frame| curtain.handle_frame(frame)).collect();
        assert!(curtain.holds());
        curtain.resume(false);
        let second = [opened.clone(), begun(0, "read"), grew(0), used(20, 7), stop.clone()];
        seen.extend(second.iter().filter_map(|frame| curtain.handle_frame(frame)));
        assert!(!curtain.holds());
        let expected = [opened, text(0), grew(0), used(10, 5), begun(1, "read"), grew(1), used(20, 12), stop];
        assert_eq!(seen, expected);
    }
}
