//! The events of this dialect, read as frames.
//!
//! No two servers agree on this stream: ids, indices, sequence numbers, whole events are missing, calls are
//! announced twice or not at all, texts come only at the end. So nothing is taken for granted. The decoder
//! keeps what it knows of each item ([`tracked`]), finds the item that an event means by
//! whatever the event gives, and completes from the final response what never came.

mod call;
mod message;
mod sink;
mod thought;
mod tracked;

use super::error::decode_stream_error;
use super::fields;
use super::reply::{Facts, ending_of, usage_of};
use crate::json::{Document, Kind, Node};
use crate::order::Order;
use crate::sse::SseEvent;
use message::PartSort;
use sink::Sink;
use throughline_core::{Ending, Frame, Stop, Text, settled_stop};
use tracked::{Form, Tracked};

/// Reads events as frames.
#[derive(Debug)]
pub(crate) struct StreamDecoder {
    state: State,
    /// How many blocks have begun.
    blocks: u32,
    items: Vec<Tracked>,
    order: Order,
    facts: Facts,
}

/// How far the stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing came yet.
    Waiting,
    /// The answer is being given.
    Open,
    /// The answer is over; whatever comes now is noise.
    Closed,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Begin,
    ItemAdded,
    ItemDone,
    PartAdded,
    PartDone,
    Text { refusal: bool, whole: bool },
    Annotation,
    Reasoning { whole: bool },
    Summary { whole: bool },
    Input { freeform: bool, whole: bool },
    Known,
    Terminal(&'static str),
    Error,
}

impl StreamDecoder {
    /// Returns a decoder that has seen nothing.
    pub(crate) fn new() -> Self {
        Self {
            state: State::Waiting,
            blocks: 0,
            items: Vec::new(),
            order: Order::default(),
            facts: Facts::default(),
        }
    }

    /// Returns how many items it keeps track of.
    pub(crate) const fn items(&self) -> usize {
        self.items.len()
    }

    /// Takes the next event and appends the frames that it means.
    pub(crate) fn handle_event(&mut self, event: &SseEvent, frames: &mut Vec<Frame>) {
        if self.state == State::Closed {
            return;
        }
        if event.data.trim() == "[DONE]" {
            return self.handle_end_mark(frames);
        }
        let document = Document::parse(event.data.as_str()).ok();
        let root = document.as_ref().map(Document::root).filter(|root| root.kind() == Kind::Object);
        // The type in the data counts: proxies rename or drop the event's own.
        let name = root.and_then(|root| fields::lenient_text(root, "type")).or_else(|| event.name.clone());
        let known = name.as_deref().and_then(event_of_name).zip(root);
        let Some((kind, root)) = known else {
            self.open(None, frames);
            return frames.push(Frame::Alien { name: event.name.clone(), data: event.data.clone() });
        };
        self.open(fields::given(root, "response"), frames);
        self.advance(kind, root, frames);
    }

    /// Ends the stream; an answer that did not end was broken off.
    pub(crate) fn finish(&mut self, frames: &mut Vec<Frame>) {
        if self.state != State::Closed {
            self.open(None, frames);
            self.close(Ending::Broken, frames);
        }
    }

    fn open(&mut self, response: Option<Node<'_>>, frames: &mut Vec<Frame>) {
        if self.state == State::Waiting {
            self.state = State::Open;
            let text = |name| response.and_then(|response| fields::lenient_text(response, name));
            frames.push(Frame::Opened { id: text("id"), model: text("model") });
        }
    }

    fn advance(&mut self, event: Event, root: Node<'_>, frames: &mut Vec<Frame>) {
        match event {
            Event::Begin | Event::Known => {}
            Event::ItemAdded => self.item_added(root, frames),
            Event::ItemDone => {
                if let Some(item) = item_of(root) {
                    let at = self.concluded(item, index_of(root));
                    self.with(at, frames, |tracked, sink| tracked.finish(Some(item), sink));
                }
            }
            Event::Terminal(status) => self.terminal(root, status, frames),
            Event::Error => {
                // Flat as OpenAI has it, or nested as the specification has it.
                let error = fields::given(root, "error").filter(|error| error.kind() == Kind::Object);
                self.close(Ending::Failed(decode_stream_error(error.unwrap_or(root))), frames);
            }
            _ => self.item_event(event, root, frames),
        }
    }

    /// Handles an event about a part of an item.
    fn item_event(&mut self, event: Event, root: Node<'_>, frames: &mut Vec<Frame>) {
        let part = fields::given(root, "part");
        let form = match event {
            Event::Reasoning { .. } | Event::Summary { .. } => Form::thought(),
            Event::Input { freeform, .. } => Form::call(freeform),
            Event::PartAdded | Event::PartDone if part.is_some_and(is_reasoning_part) => Form::thought(),
            _ => Form::message(),
        };
        let at = self.located(root, form);
        self.with(at, frames, |tracked, sink| {
            if !tracked.done {
                grow(&mut tracked.form, event, root, sink);
            }
        });
    }

    fn item_added(&mut self, root: Node<'_>, frames: &mut Vec<Frame>) {
        if let Some(item) = item_of(root) {
            let at = self.announced(item, index_of(root));
            self.with(at, frames, |tracked, sink| tracked.announce(item, sink));
        }
    }

    /// Finds the item that an announcement means, or begins to track it.
    ///
    /// Some servers announce the same call twice, with different item ids, so both ids count.
    fn announced(&mut self, item: Node<'_>, index: Option<u64>) -> usize {
        let form = Form::of_item(item);
        let ids = ids_of(item);
        let is_same = |tracked: &Tracked| {
            let goes_on = !tracked.done || matches!(tracked.form, Form::Call(_));
            tracked.form.is_like(&form) && goes_on && tracked.has_any(&ids)
        };
        let is_unannounced =
            |tracked: &Tracked| tracked.form.is_like(&form) && !tracked.done && tracked.was_guessed(index);
        let at = self.items.iter().rposition(is_same);
        let at = at.or_else(|| self.items.iter().position(is_unannounced));
        if let Some(form) = at.and_then(|at| self.doubled(at, item)) {
            return self.tracked_at(None, form, index, ids);
        }
        self.tracked_at(at, form, index, ids)
    }

    /// Returns what is to be tracked if an announcement may be of another call than the finished one that has the same
    /// call id: some servers give every call the same one. Only its end tells.
    fn doubled(&self, at: usize, item: Node<'_>) -> Option<Form> {
        let tracked = &self.items[at];
        let Form::Call(call) = &tracked.form else { return None };
        let item_id = fields::lenient_text(item, "id").filter(|id| !id.is_empty())?;
        (tracked.done && !tracked.ids.contains(&item_id)).then(|| Form::Call(call.double()))
    }

    /// Finds the item whose end is declared, or begins to track it.
    fn concluded(&mut self, item: Node<'_>, index: Option<u64>) -> usize {
        let form = Form::of_item(item);
        let ids = ids_of(item);
        // The item's own id first: calls may share theirs.
        let by_id = |tracked: &Tracked, ids: &[Text]| tracked.form.is_like(&form) && tracked.has_any(ids);
        // Without a common id: the open item of that index, or one of which either side gives no id.
        let is_open = |tracked: &Tracked| tracked.form.is_like(&form) && !tracked.done;
        let by_place = |tracked: &Tracked| {
            is_open(tracked) && (tracked.shares_index(index) || ids.is_empty() || tracked.ids.is_empty())
        };
        let own = &ids[..ids.len().min(1)];
        let at = self.items.iter().rposition(|tracked| by_id(tracked, own));
        let at = at.or_else(|| self.items.iter().rposition(|tracked| by_id(tracked, &ids)));
        let at = at.or_else(|| self.items.iter().position(by_place));
        self.tracked_at(at, form, index, ids)
    }

    /// Finds the item that an event means, or begins to track one that was never announced.
    ///
    /// Events of calls carry the call id in `item_id` on some servers; others leave out ids, or indices, or
    /// both.
    fn located(&mut self, root: Node<'_>, form: Form) -> usize {
        let id = fields::lenient_text(root, "item_id").filter(|id| !id.is_empty());
        let index = index_of(root);
        let has_id = |tracked: &Tracked| id.as_ref().is_some_and(|id| tracked.ids.contains(id));
        let is_open = |tracked: &Tracked| tracked.form.is_like(&form) && !tracked.done;
        let is_nameless = |tracked: &Tracked| (id.is_none() && index.is_none()) || tracked.ids.is_empty();
        let items = &self.items;
        let at = items
            .iter()
            .rposition(|tracked| tracked.form.is_like(&form) && has_id(tracked))
            .or_else(|| items.iter().rposition(has_id))
            .or_else(|| items.iter().rposition(|tracked| is_open(tracked) && tracked.shares_index(index)))
            .or_else(|| items.iter().rposition(|tracked| is_open(tracked) && is_nameless(tracked)));
        self.tracked_at(at, form, index, id.into_iter().collect())
    }

    fn tracked_at(&mut self, at: Option<usize>, form: Form, index: Option<u64>, ids: Vec<Text>) -> usize {
        let at = at.unwrap_or_else(|| {
            self.items.push(Tracked::new(form, index));
            self.items.len() - 1
        });
        self.items[at].add_ids(ids);
        at
    }

    fn with(&mut self, at: usize, frames: &mut Vec<Frame>, act: impl FnOnce(&mut Tracked, &mut Sink<'_>)) {
        if let Some(tracked) = self.items.get_mut(at) {
            let begun = self.blocks;
            act(tracked, &mut Sink { frames, blocks: &mut self.blocks, facts: &mut self.facts });
            (begun..self.blocks).for_each(|block| self.order.note(tracked.index, block));
        }
    }

    fn terminal(&mut self, root: Node<'_>, otherwise: &str, frames: &mut Vec<Frame>) {
        let response = fields::given(root, "response").unwrap_or(root);
        self.complete_from(response, frames);
        if let Some(usage) = fields::given(response, "usage") {
            frames.push(Frame::Used(usage_of(usage)));
        }
        self.end_items(frames);
        let ending = ending_of(response, otherwise, self.facts);
        // Some servers declare what they have finished to be still in progress.
        let is_stale = matches!(ending, Ending::Stopped(Stop::Paused)) && otherwise == "completed";
        let ending = if is_stale { self.natural_ending() } else { ending };
        self.close(ending, frames);
    }

    /// Completes the items from the final response: those whose end never came, and those never announced.
    fn complete_from(&mut self, response: Node<'_>, frames: &mut Vec<Frame>) {
        let Some(output) = response.field("output") else { return };
        let items: Vec<Node<'_>> = output.items().filter(|item| item.kind() == Kind::Object).collect();
        let mut taken = vec![false; self.items.len()];
        let matches: Vec<Option<usize>> = items.iter().map(|item| self.by_ids(*item, &mut taken)).collect();
        for (item, by_ids) in items.into_iter().zip(matches) {
            // Ids differ between the stream and its end on some servers: then the order tells.
            let at = by_ids.or_else(|| {
                let form = Form::of_item(item);
                let free = |at: &usize| !taken[*at] && self.items[*at].form.is_like(&form);
                (0..taken.len()).find(free).inspect(|at| taken[*at] = true)
            });
            let at = self.tracked_at(at, Form::of_item(item), None, ids_of(item));
            self.with(at, frames, |tracked, sink| tracked.finish(Some(item), sink));
        }
    }

    fn by_ids(&self, item: Node<'_>, taken: &mut [bool]) -> Option<usize> {
        let form = Form::of_item(item);
        let ids = ids_of(item);
        let own = &ids[..ids.len().min(1)];
        let find = |ids: &[Text], is_free: bool| {
            let fits = |(at, tracked): (usize, &Tracked)| {
                (!is_free || !taken[at]) && tracked.form.is_like(&form) && tracked.has_any(ids)
            };
            self.items.iter().enumerate().position(fits)
        };
        let at = find(own, true).or_else(|| find(&ids, true)).or_else(|| find(&ids, false))?;
        taken[at] = true;
        Some(at)
    }

    /// Takes the end mark: without a terminal event it is an end only if everything that began has ended.
    fn handle_end_mark(&mut self, frames: &mut Vec<Frame>) {
        self.open(None, frames);
        let settled = !self.items.is_empty() && self.items.iter().all(|tracked| tracked.done);
        let ending = if settled { self.natural_ending() } else { Ending::Broken };
        self.close(ending, frames);
    }

    fn natural_ending(&self) -> Ending {
        match self.facts {
            Facts { refused: true, calls: false } => Ending::Stopped(Stop::Refusal),
            Facts { calls, .. } => Ending::Stopped(settled_stop(Stop::EndTurn, calls)),
        }
    }

    fn end_items(&mut self, frames: &mut Vec<Frame>) {
        for at in 0..self.items.len() {
            self.with(at, frames, |tracked, sink| tracked.finish(None, sink));
        }
    }

    fn close(&mut self, ending: Ending, frames: &mut Vec<Frame>) {
        self.end_items(frames);
        frames.extend(self.order.frame());
        frames.push(Frame::Closed(ending));
        self.state = State::Closed;
    }
}

/// Lets an item grow by what an event says; one that is about another kind of item says nothing.
fn grow(form: &mut Form, event: Event, root: Node<'_>, sink: &mut Sink<'_>) {
    let part = fields::given(root, "part");
    let index = number_of(root, "content_index");
    let text = |name| fields::lenient_text(root, name).unwrap_or_default();
    match (form, event) {
        (Form::Message(message), Event::PartAdded) => {
            part.into_iter().for_each(|part| message.announce(part, index, sink));
        }
        (Form::Message(message), Event::PartDone) => {
            part.into_iter().for_each(|part| message.conclude(part, index, sink));
        }
        (Form::Message(message), Event::Text { refusal, whole: false }) => {
            message.grow(&text("delta"), PartSort { refusal, index }, sink);
        }
        (Form::Message(message), Event::Text { refusal, whole: true }) => {
            let field = if refusal { "refusal" } else { "text" };
            message.complete(&text(field), PartSort { refusal, index }, sink);
        }
        (Form::Message(message), Event::Annotation) => {
            let note = fields::given(root, "annotation");
            note.into_iter().for_each(|note| message.annotate(note, index, sink));
        }
        (Form::Thought(thought), Event::Reasoning { whole }) => {
            thought.grow(&text(piece_field(whole)), whole, sink);
        }
        (Form::Thought(thought), Event::PartDone) => {
            let text = part.and_then(|part| fields::lenient_text(part, "text")).unwrap_or_default();
            thought.grow(&text, true, sink);
        }
        (Form::Thought(thought), Event::Summary { whole }) => {
            let index = number_of(root, "summary_index").unwrap_or(0);
            thought.summarise(index, &text(piece_field(whole)), whole, sink);
        }
        (Form::Call(call), Event::Input { freeform, whole }) => {
            let field = if freeform { "input" } else { "arguments" };
            call.grow(&text(if whole { field } else { "delta" }), whole, root, sink);
        }
        _ => {}
    }
}

fn event_of_name(name: &str) -> Option<Event> {
    Some(match name {
        "response.created" | "response.queued" | "response.in_progress" => Event::Begin,
        "response.output_item.added" => Event::ItemAdded,
        "response.output_item.done" => Event::ItemDone,
        "response.content_part.added" => Event::PartAdded,
        "response.content_part.done" => Event::PartDone,
        "response.output_text.delta" => Event::Text { refusal: false, whole: false },
        "response.output_text.done" => Event::Text { refusal: false, whole: true },
        "response.refusal.delta" => Event::Text { refusal: true, whole: false },
        "response.refusal.done" => Event::Text { refusal: true, whole: true },
        "response.output_text.annotation.added" => Event::Annotation,
        "response.reasoning.delta" | "response.reasoning_text.delta" => Event::Reasoning { whole: false },
        "response.reasoning.done" | "response.reasoning_text.done" => Event::Reasoning { whole: true },
        "response.reasoning_summary_text.delta" => Event::Summary { whole: false },
        "response.reasoning_summary_text.done" => Event::Summary { whole: true },
        // The texts around them say all that these say.
        "response.reasoning_summary_part.added"
        | "response.reasoning_summary_part.done"
        | "response.reasoning_part.added"
        | "response.reasoning_part.done" => Event::Known,
        "response.function_call_arguments.delta" => Event::Input { freeform: false, whole: false },
        "response.function_call_arguments.done" => Event::Input { freeform: false, whole: true },
        "response.custom_tool_call_input.delta" => Event::Input { freeform: true, whole: false },
        "response.custom_tool_call_input.done" => Event::Input { freeform: true, whole: true },
        "response.completed" | "response.done" => Event::Terminal("completed"),
        "response.incomplete" => Event::Terminal("incomplete"),
        "response.failed" => Event::Terminal("failed"),
        "response.cancelled" => Event::Terminal("cancelled"),
        "error" => Event::Error,
        _ => return None,
    })
}

const fn piece_field(whole: bool) -> &'static str {
    if whole { "text" } else { "delta" }
}

fn is_reasoning_part(part: Node<'_>) -> bool {
    part.field("type").is_some_and(|tag| tag.is_str("reasoning_text"))
}

fn item_of(root: Node<'_>) -> Option<Node<'_>> {
    fields::given(root, "item").filter(|item| item.kind() == Kind::Object)
}

/// Returns the ids that an item goes by; an empty one is none.
fn ids_of(item: Node<'_>) -> Vec<Text> {
    let given = ["id", "call_id"].iter().filter_map(|name| fields::lenient_text(item, name));
    given.filter(|id| !id.is_empty()).collect()
}

fn index_of(root: Node<'_>) -> Option<u64> {
    number_of(root, "output_index")
}

fn number_of(root: Node<'_>, name: &str) -> Option<u64> {
    root.field(name).and_then(|number| number.as_u64())
}

#[cfg(test)]
mod tests;
