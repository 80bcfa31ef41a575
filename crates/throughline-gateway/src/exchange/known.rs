//! What is known of a conversation from its last request, so that the next one need not be read from its
//! beginning.
//!
//! A client sends its whole history again and adds a little. Of the body, three stretches of the history are
//! told apart: the *opening*, up to the first words of the assistant; what is *settled*; and the *rest*, from a
//! cut near the end. When the next body begins with the same bytes up to the cut, it is read without the settled
//! stretch, placed by the chain that ends there, rendered without it, and what was sent for it before is put back
//! into what is sent. An entry's id stands for all that came before it, so what is remembered here cannot grow
//! stale; and whether a stretch may be left out was tried, by rendering with it and without it, before
//! it was. Whatever does not fit is read, placed and rendered whole. See docs/decisions/0016.

use super::compact;
use super::place::Placed;
use super::prompting::{Prompted, Showing, prompt};
use super::stretch::{Stretches, choose_cut, is_closed};
use super::traces;
use crate::config::Backend;
use crate::routing::Destination;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use throughline_core::{
    Absent, Ask, Change, Content, Dialect, Entry, EntryId, Extra, File, Image, Kind, Media, Part, Provenance,
    Row, SentPlace, Side, Source, Strategy, Text, Trace,
};
use throughline_store::{Chain, chain};
use throughline_wire::json::Document;
use throughline_wire::{decode_abridged, history_field};

/// What is known of conversations, up to so many bytes; who was not heard of for longest is forgotten first.
#[derive(Debug)]
pub struct Knowledge {
    bytes_max: AtomicUsize,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_address: BTreeMap<Address, Vec<Slot>>,
    bytes: usize,
    now: u64,
}

#[derive(Debug)]
struct Slot {
    known: Arc<Known>,
    used: u64,
}

/// Where to look for what is known of a request: the client's session, or else how its body begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(&'static str, Text);

/// What is known of a conversation.
#[derive(Clone, Debug)]
pub struct Known {
    address: Address,
    /// The last body; the next one must begin with the same bytes up to the cut.
    body: Arc<str>,
    stretches: Stretches,
    /// The chain up to the cut.
    chain: Chain,
    /// The ids of the settled calls.
    call_ids: Arc<BTreeSet<Text>>,
    /// The instructions of the record, the opening without them, and what followed the cut, in the words of the
    /// record.
    instructions: Arc<[Entry]>,
    opening: Arc<[Entry]>,
    kept: Vec<Entry>,
    /// Where in the record the settled stretch is.
    unread: Range<u32>,
    /// The entries of the record that `kept` goes up to.
    marks: Vec<Mark>,
    /// What backends were sent for the settled stretch.
    rendered: Vec<Rendered>,
}

/// An entry of the record that what is kept goes up to.
#[derive(Clone, Debug)]
struct Mark {
    entry: EntryId,
    /// How many entries are kept up to there.
    count: usize,
    /// How many entries the record has up to there.
    length: u32,
}

/// What a backend was sent for the settled stretch.
#[derive(Clone, Debug)]
struct Rendered {
    backend: Arc<Backend>,
    model: Text,
    /// The fields of the request that may have a say in it.
    context: Vec<Extra>,
    /// What stood before it.
    head: Bytes,
    settled: Settled,
    changes: Vec<Change>,
    provenance: SettledProvenance,
}

/// Where what was sent for the settled stretch comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SettledProvenance {
    /// How many messages stand before it.
    before: u32,
    /// How many messages it has.
    messages: u32,
    rows: Vec<Row>,
    absent: Vec<Absent>,
}

/// The bytes that stand for the settled stretch.
#[derive(Clone, Debug)]
enum Settled {
    /// Those of the client's own body, which are at hand anyway.
    AsItCame,
    Written(Bytes),
}

/// A request read without its settled stretch.
#[derive(Debug)]
pub struct Abridged {
    /// The request, as if there were no settled stretch.
    pub ask: Ask,
    /// How many of its entries stand before the gap.
    pub opening: usize,
    /// Where the elements of its rest stand in the body.
    spans: Vec<(usize, usize)>,
}

/// What is to be remembered of an exchange that is over.
pub struct Lesson<'a> {
    pub address: Address,
    pub body: Arc<str>,
    /// What it was read with, if it was not read whole.
    pub known: Option<Arc<Known>>,
    pub ask: &'a Ask,
    pub placed: &'a Placed,
    /// What was sent.
    pub prompted: &'a Prompted,
    /// What the backend said, as it is kept.
    pub reply: Vec<Entry>,
    /// The last entries of the request and of the answer.
    pub before: Option<EntryId>,
    pub after: Option<EntryId>,
    /// How many entries the record has up to the end of the answer.
    pub recorded: u32,
}

/// Bodies below this are read whole.
pub const BODY_BYTES_MIN: usize = 16 * 1024;

/// How many conversations are told apart at one address.
const SLOTS_PER_ADDRESS_MAX: usize = 64;

/// What is looked at of a body whose client names no session.
const ADDRESS_BYTES: usize = 256;

/// From so many elements behind it on, the cut moves on.
const REST_ELEMENTS_MAX: usize = 14;

/// Fields that say nothing about how history is written.
const INDIFFERENT: [&str; 9] = [
    "instructions",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "metadata",
    "stream",
    "system",
    "temperature",
    "top_p",
];

impl Knowledge {
    /// Returns a place for up to `bytes_max` bytes; with none, nothing is remembered.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max: AtomicUsize::new(bytes_max), shelf: Mutex::default() }
    }

    /// Sets how many bytes there may be from now on.
    pub fn limit(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.lock().shrink(bytes_max);
    }

    fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Returns where to look for what is known of a request, if it is of a kind that is remembered.
    #[must_use]
    pub fn address(&self, dialect: Dialect, session: Option<Text>, body: &str) -> Option<Address> {
        if self.bytes_max() == 0 || body.len() < BODY_BYTES_MIN {
            return None;
        }
        let beginning = || Text::from(&body[..body.floor_char_boundary(ADDRESS_BYTES)]);
        Some(Address(dialect.name(), session.unwrap_or_else(beginning)))
    }

    /// Returns what is known of a request.
    #[must_use]
    pub fn recall(&self, address: &Address, body: &str) -> Option<Arc<Known>> {
        let mut shelf = self.lock();
        shelf.now += 1;
        let now = shelf.now;
        let slots = shelf.by_address.get_mut(address)?;
        let fitting = slots.iter_mut().filter(|slot| slot.known.fits(body));
        let slot = fitting.max_by_key(|slot| slot.known.stretches.cut)?;
        slot.used = now;
        Some(Arc::clone(&slot.known))
    }

    /// Remembers what an exchange has shown.
    pub fn learn(&self, lesson: &Lesson<'_>) {
        let learned = match &lesson.known {
            Some(known) => known.grown(lesson),
            None => Known::first(lesson),
        };
        if let Some(learned) = learned {
            self.keep(learned, lesson.known.as_ref());
        }
    }

    fn keep(&self, known: Known, before: Option<&Arc<Known>>) {
        let bytes = known.bytes();
        if bytes > self.bytes_max() {
            return;
        }
        let mut shelf = self.lock();
        shelf.now += 1;
        let slot = Slot { used: shelf.now, known: Arc::new(known) };
        let shelf = &mut *shelf;
        let slots = shelf.by_address.entry(slot.known.address.clone()).or_default();
        let replaced = |old: &Slot| {
            before.is_some_and(|before| Arc::ptr_eq(before, &old.known)) || slot.known.continues(&old.known)
        };
        let oldest = || slots.iter().enumerate().min_by_key(|(_, slot)| slot.used).map(|(at, _)| at);
        let full = slots.len() >= SLOTS_PER_ADDRESS_MAX;
        if let Some(at) = slots.iter().position(replaced).or_else(|| oldest().filter(|_| full)) {
            shelf.bytes -= slots.swap_remove(at).known.bytes();
        }
        slots.push(slot);
        shelf.bytes += bytes;
        shelf.shrink(self.bytes_max());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn shrink(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && self.forget_oldest() {}
    }

    fn forget_oldest(&mut self) -> bool {
        let all = self.by_address.iter();
        let slots = all.flat_map(|(address, slots)| slots.iter().map(move |slot| (address, slot.used)));
        let Some((address, used)) = slots.min_by_key(|(_, used)| *used) else { return false };
        let address = address.clone();
        let Some(slots) = self.by_address.get_mut(&address) else { return false };
        for slot in slots.extract_if(.., |slot| slot.used == used) {
            self.bytes -= slot.known.bytes();
        }
        if slots.is_empty() {
            self.by_address.remove(&address);
        }
        true
    }
}

impl Known {
    /// Says whether a body begins as the known one does, up to the cut.
    fn fits(&self, body: &str) -> bool {
        let cut = self.stretches.cut;
        body.len() > cut && body.as_bytes()[..cut] == self.body.as_bytes()[..cut]
    }

    /// Says whether this is the same conversation at a later time.
    fn continues(&self, old: &Self) -> bool {
        self.stretches.cut >= old.stretches.cut && old.fits(&self.body)
    }

    fn bytes(&self) -> usize {
        let written = |rendered: &Rendered| {
            let rows = size_of_val(&rendered.provenance.rows[..]);
            let settled = match &rendered.settled {
                Settled::AsItCame => 0,
                Settled::Written(bytes) => bytes.len(),
            };
            rendered.head.len() + settled + rows
        };
        // What the rest refers to is the abridged bodies that it was read from, which are about this long.
        let rest = (self.body.len() - self.stretches.cut + self.stretches.opening_end) * 2;
        self.body.len() + rest + self.rendered.iter().map(written).sum::<usize>()
    }

    /// Says whether there are calls in the settled stretch.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        !self.call_ids.is_empty()
    }

    /// Returns where in the record the settled stretch is.
    #[must_use]
    pub fn unread(&self) -> Range<u32> {
        self.unread.clone()
    }

    /// Returns the chain up to the cut.
    #[must_use]
    pub const fn chain(&self) -> Chain {
        self.chain
    }

    /// Reads a body without its settled stretch; none if that cannot be done, or not be known to be right.
    #[must_use]
    pub fn abridge(&self, dialect: Dialect, body: &str) -> Option<Abridged> {
        let Stretches { list, opening_end, opening, cut, settled } = self.stretches;
        let document = Document::parse([&body[..opening_end], &body[cut..]].concat()).ok()?;
        let elements = document.root().field(history_field(dialect))?;
        // Of a field that comes twice the last counts, and that would be another.
        if elements.offset() != list {
            return None;
        }
        let ask = decode_abridged(dialect, &document, opening, settled).ok()??;
        let behind = |entry: &Entry| entry.place.is_some_and(|place| place.message >= opening);
        let before = ask.entries.partition_point(|entry| !behind(entry));
        let rest = &ask.entries[before..];
        let follows = rest.first().is_none_or(|entry| entry.side() == Side::Assistant);
        let leans = ask.previous.is_some() || ask.conversation.is_some();
        if leans
            || compact::is_held(&ask)
            || !follows
            || !rest.iter().all(is_plain)
            || !is_closed(rest, &self.call_ids)
        {
            return None;
        }
        let place = |at: usize| at - opening_end + cut;
        let spans = elements.items().skip(opening as usize);
        let spans = spans.map(|node| (place(node.offset()), place(node.offset() + node.raw().len())));
        let spans = spans.collect();
        Some(Abridged { ask, opening: before, spans })
    }

    /// Returns what the record says up to `entry`, without the settled stretch, and how many entries it has up to
    /// there.
    #[must_use]
    pub fn record_up_to(&self, entry: &EntryId) -> Option<(Vec<Entry>, u32)> {
        let mark = self.marks.iter().find(|mark| mark.entry == *entry)?;
        let record = self.instructions.iter().chain(&*self.opening).chain(&self.kept[..mark.count]);
        Some((record.cloned().collect(), mark.length))
    }

    /// Renders an abridged request for a backend, and puts the settled stretch back into it.
    #[must_use]
    pub fn prompt(
        &self,
        body: &str,
        ask: &Ask,
        placed: &Placed,
        destination: &Destination,
        showing: Showing<'_>,
    ) -> Option<Prompted> {
        let rendered = self.rendered.iter().find(|rendered| rendered.is_for(destination, ask))?;
        let is_usual = showing.strategy == Strategy::Native && showing.footing.is_none() && showing.keep;
        let is_usual = is_usual && showing.planned.is_none() && showing.recall.is_none();
        let mut prompted = is_usual.then(|| prompt(ask, placed, destination, showing))?;
        if prompted.needs_whole || !prompted.body.starts_with(&rendered.head) {
            return None;
        }
        let provenance = rendered.provenance.put_back(&prompted.report.provenance, &self.unread)?;
        let settled = match &rendered.settled {
            Settled::AsItCame => &body.as_bytes()[self.stretches.opening_end..self.stretches.cut],
            Settled::Written(bytes) => bytes,
        };
        let tail = &prompted.body[rendered.head.len()..];
        prompted.body = [&rendered.head[..], settled, tail].concat().into();
        prompted.report.changes.extend(rendered.changes.iter().cloned());
        prompted.report.sort();
        prompted.report.provenance = provenance;
        prompted.abridged = true;
        Some(prompted)
    }

    /// Returns what is known after an exchange whose request was read whole.
    fn first(lesson: &Lesson<'_>) -> Option<Self> {
        let Lesson { ask, placed, .. } = lesson;
        let leans = ask.previous.is_some() || ask.conversation.is_some();
        if leans || compact::is_held(ask) || ask.tools.is_empty() || !ask.entries.iter().all(is_plain) {
            return None;
        }
        let document = Document::parse(Arc::clone(&lesson.body)).ok()?;
        let elements = document.root().field(history_field(ask.dialect))?;
        let spans: Vec<(usize, usize)> =
            elements.items().map(|node| (node.offset(), node.offset() + node.raw().len())).collect();
        let stretches = Stretches::of(&ask.entries, elements.offset(), &spans)?;
        let settled = stretches.settled_entries(&ask.entries);
        let chain = ask.entries[..settled.end].iter().fold(Chain::ROOT, chain);
        let record = &placed.history;
        let cut = reached(record, Chain::ROOT, chain)?;
        let instructions = record.iter().take_while(|entry| entry.side() == Side::System).count();
        let opened = record.iter().position(|entry| entry.side() == Side::Assistant)?;
        let calls = ask.entries[settled].iter().filter_map(Entry::as_call).map(|call| call.id.clone());
        let begins = traces::first_position(record.get(opened..)?)?;
        let ends = traces::first_position(record.get(cut..)?).unwrap_or(placed.recorded);
        let known = Self {
            address: lesson.address.clone(),
            body: Arc::clone(&lesson.body),
            stretches,
            chain,
            call_ids: Arc::new(calls.collect()),
            instructions: record.get(..instructions)?.into(),
            opening: record.get(instructions..opened)?.into(),
            kept: record.get(cut..)?.to_vec(),
            unread: begins..ends,
            marks: Vec::new(),
            rendered: Vec::new(),
        };
        known.tried(lesson)
    }

    /// Returns what is known after an exchange whose request was read with this.
    fn grown(&self, lesson: &Lesson<'_>) -> Option<Self> {
        let abridged = self.abridge(lesson.ask.dialect, &lesson.body)?;
        let mut known = self.clone();
        known.body = Arc::clone(&lesson.body);
        let instructions = lesson.ask.entries.iter().take_while(|entry| entry.side() == Side::System).count();
        known.kept = lesson.placed.history.get(instructions + self.opening.len()..)?.to_vec();
        if abridged.spans.len() > REST_ELEMENTS_MAX
            && let Some(moved) = known.moved_on(&abridged, lesson.placed.recorded)
            && let Some(tried) = moved.tried(lesson)
        {
            return Some(tried);
        }
        known.mark(lesson);
        Some(known)
    }

    /// Returns the same with a later cut.
    fn moved_on(&self, abridged: &Abridged, recorded: u32) -> Option<Self> {
        let rest = &abridged.ask.entries[abridged.opening..];
        let first = self.stretches.opening + self.stretches.settled;
        let element = choose_cut(rest, first, abridged.spans.len())?;
        let settled = rest.partition_point(|entry| entry.place.is_some_and(|place| place.message < element));
        let chain = rest[..settled].iter().fold(self.chain, chain);
        let cut = reached(&self.kept, self.chain, chain)?;
        let (_, end) = *abridged.spans.get((element - first) as usize - 1)?;
        let mut known = self.clone();
        known.stretches.cut = end;
        known.stretches.settled = element - self.stretches.opening;
        known.chain = chain;
        known.kept.drain(..cut);
        known.unread.end = traces::first_position(&known.kept).unwrap_or(recorded);
        let calls = rest[..settled].iter().filter_map(Entry::as_call).map(|call| call.id.clone());
        Arc::make_mut(&mut known.call_ids).extend(calls);
        known.rendered.clear();
        Some(known)
    }

    /// Renders the request without the settled stretch and returns what is known if that comes to the same as
    /// what was sent.
    fn tried(mut self, lesson: &Lesson<'_>) -> Option<Self> {
        let Prompted { destination, report, body: sent, .. } = lesson.prompted;
        let Prompted { continues, .. } = lesson.prompted;
        if report.strategy != Strategy::Native.name() || *continues || lesson.prompted.is_planned() {
            return None;
        }
        let Abridged { ask, opening, .. } = self.abridge(lesson.ask.dialect, &lesson.body)?;
        // Entries that were read from the whole body would keep all of it in memory.
        self.forget_whole(&ask, opening, lesson);
        let instructions = ask.entries.iter().take_while(|entry| entry.side() == Side::System).count();
        let mut history =
            traces::with_traces(&ask.entries[..instructions], lesson.placed.asked.get(..instructions)?);
        history.extend(self.opening.iter().chain(&self.kept).cloned());
        let recorded = lesson.placed.recorded;
        let asked = traces::of_request(&ask.entries, &history, ask.entries.len(), recorded, &[]);
        let placed = Placed { history, asked, unread: self.unread(), ..lesson.placed.clone() };
        let render = |ask: &Ask, placed: &Placed| prompt(ask, placed, destination, Showing::WHOLE);
        let without = render(&ask, &placed);
        let head = self.head(&ask, &placed, opening, &without.body, render);
        let (head, tail) = without.body.split_at(head);
        let middle = sent.len().checked_sub(without.body.len())?;
        let fits = sent.starts_with(head) && sent.ends_with(tail);
        let changes = left_over(&report.changes, &without.report.changes)?;
        let provenance =
            SettledProvenance::between(&report.provenance, &without.report.provenance, &self.unread)?;
        if !fits || middle == 0 || without.needs_whole {
            return None;
        }
        let settled = sent.slice(head.len()..head.len() + middle);
        let Stretches { opening_end, cut, .. } = self.stretches;
        let came = lesson.body.as_bytes().get(opening_end..cut) == Some(&settled[..]);
        self.rendered = vec![Rendered {
            backend: Arc::clone(&destination.backend),
            model: destination.model.clone(),
            context: context(&ask),
            head: Bytes::copy_from_slice(head),
            settled: if came {
                Settled::AsItCame
            } else {
                Settled::Written(Bytes::copy_from_slice(&settled))
            },
            changes,
            provenance,
        }];
        self.mark(lesson);
        Some(self)
    }

    /// Returns where in what was rendered the opening ends: where it differs from what the opening alone becomes.
    fn head(
        &self,
        ask: &Ask,
        placed: &Placed,
        opening: usize,
        rendered: &[u8],
        render: impl Fn(&Ask, &Placed) -> Prompted,
    ) -> usize {
        let alone = Ask { entries: ask.entries[..opening].to_vec(), ..ask.clone() };
        let mut history = placed.history.clone();
        history.truncate(history.len() - self.kept.len());
        let alone = render(&alone, &Placed { history, ..placed.clone() });
        rendered.iter().zip(&alone.body[..]).take_while(|(a, b)| a == b).count()
    }

    /// Replaces entries that came with this request by the same as they stand in the abridged one.
    fn forget_whole(&mut self, ask: &Ask, opening: usize, lesson: &Lesson<'_>) {
        if lesson.known.is_some() {
            return;
        }
        let rest = &ask.entries[opening..];
        let new = lesson.ask.entries.len() - lesson.placed.known;
        let shared = new.min(self.kept.len()).min(rest.len());
        let replaced = self.kept.split_off(self.kept.len() - shared);
        self.kept.extend(as_traced(&rest[rest.len() - shared..], &replaced));
        if lesson.placed.known == 0 {
            let instructions = ask.entries.iter().take_while(|entry| entry.side() == Side::System).count();
            let instructions = instructions.min(opening);
            self.instructions = as_traced(&ask.entries[..instructions], &self.instructions).collect();
            self.opening = as_traced(&ask.entries[instructions..opening], &self.opening).collect();
        }
    }

    /// Takes down up to which entries of the record what is kept goes.
    fn mark(&mut self, lesson: &Lesson<'_>) {
        let before = self.kept.len();
        let first = lesson.recorded.saturating_sub(traces::length(&lesson.reply));
        let traced =
            |(entry, at): (&Entry, u32)| Entry { trace: Trace::from(Source::Record(at)), ..entry.clone() };
        self.kept.extend(lesson.reply.iter().zip(first..).map(traced));
        let marks = [
            (&lesson.before, before, lesson.placed.recorded),
            (&lesson.after, self.kept.len(), lesson.recorded),
        ];
        let mark = |(entry, count, length): (&Option<EntryId>, usize, u32)| {
            Some(Mark { entry: entry.clone()?, count, length })
        };
        self.marks = marks.into_iter().filter_map(mark).collect();
    }
}

impl SettledProvenance {
    /// Returns what is noted about the settled stretch, given what is noted with it and without it; none if the two
    /// differ in anything else.
    fn between(whole: &Provenance, without: &Provenance, unread: &Range<u32>) -> Option<Self> {
        let before = messages_before(without, unread)?;
        let messages = messages_of(whole).checked_sub(messages_of(without))?;
        let is_settled =
            |row: &&Row| row.at.message.is_some_and(|message| (before..before + messages).contains(&message));
        let is_unread = |absent: &&Absent| is_within(absent.source, unread);
        let settled = Self {
            before,
            messages,
            rows: whole.rows.iter().filter(is_settled).cloned().collect(),
            absent: whole.absent.iter().filter(is_unread).copied().collect(),
        };
        let together = settled.put_back(without, unread)?;
        (together == *whole).then_some(settled)
    }

    /// Puts what is noted about the settled stretch into what is noted without it.
    fn put_back(&self, without: &Provenance, unread: &Range<u32>) -> Option<Provenance> {
        if messages_before(without, unread)? != self.before {
            return None;
        }
        let is_before = |row: &Row| row.at.message.is_none_or(|message| message < self.before);
        let split = without.rows.partition_point(is_before);
        let mut rows = Vec::with_capacity(without.rows.len() + self.rows.len());
        rows.extend_from_slice(&without.rows[..split]);
        rows.extend_from_slice(&self.rows);
        rows.extend(without.rows[split..].iter().map(|row| {
            let message = row.at.message.map(|message| message + self.messages);
            Row { at: SentPlace { message, ..row.at }, trace: row.trace.clone() }
        }));
        let absent = self.absent.iter().chain(&without.absent).copied().collect();
        let mut whole = Provenance { rows, absent };
        whole.settle([]);
        Some(whole)
    }
}

/// Returns how many messages stand before the first that comes from behind the settled stretch.
fn messages_before(without: &Provenance, unread: &Range<u32>) -> Option<u32> {
    let is_behind = |source: Source| matches!(source, Source::Record(at) if at >= unread.end);
    let first =
        without.rows.iter().find(|row| row.trace.shares().iter().any(|share| is_behind(share.source)));
    match first {
        Some(row) if row.at.nth == 0 => row.at.message,
        Some(_) => None,
        None => Some(messages_of(without)),
    }
}

fn messages_of(provenance: &Provenance) -> u32 {
    provenance.rows.last().and_then(|row| row.at.message).map_or(0, |message| message + 1)
}

fn is_within(source: Source, unread: &Range<u32>) -> bool {
    matches!(source, Source::Record(at) if unread.contains(&at))
}

/// Returns entries with the traces of others, which say the same.
fn as_traced<'e>(entries: &'e [Entry], traced: &'e [Entry]) -> impl Iterator<Item = Entry> {
    entries.iter().zip(traced).map(|(entry, traced)| Entry { trace: traced.trace.clone(), ..entry.clone() })
}

impl Rendered {
    fn is_for(&self, destination: &Destination, ask: &Ask) -> bool {
        Arc::ptr_eq(&self.backend, &destination.backend)
            && self.model == destination.model
            && self.context == context(ask)
    }
}

/// Says whether an entry is what its bytes say: nothing that stands for something kept elsewhere.
fn is_plain(entry: &Entry) -> bool {
    let is_elsewhere = |part: &Part| match &part.content {
        Content::Image(Image { media, .. }) | Content::File(File { media, .. }) => {
            matches!(media, Media::Url(_) | Media::Stored(_))
        }
        Content::Text(_) | Content::Refusal(_) | Content::Opaque { .. } => false,
    };
    match &entry.kind {
        Kind::Reference { .. } | Kind::Opaque { .. } => false,
        Kind::Said(said) => !said.parts.iter().any(is_elsewhere),
        Kind::Returned(returned) => !returned.parts.iter().any(is_elsewhere),
        _ => true,
    }
}

/// Returns the fields of a request that may have a say in how its history is written.
fn context(ask: &Ask) -> Vec<Extra> {
    let list = history_field(ask.dialect);
    let counts = |field: &&Extra| field.name != list && !INDIFFERENT.contains(&field.name.as_str());
    ask.fields.iter().filter(counts).cloned().collect()
}

/// Returns how many entries behind `from` it takes until the chain is `to`.
fn reached(entries: &[Entry], from: Chain, to: Chain) -> Option<usize> {
    let mut last = from;
    let reaches = |entry: &Entry| {
        last = chain(last, entry);
        last == to
    };
    entries.iter().position(reaches).map(|at| at + 1)
}

/// Returns the changes of `all` that are not among `some`, all of which must be there.
fn left_over(all: &[Change], some: &[Change]) -> Option<Vec<Change>> {
    let mut left = all.to_vec();
    for change in some {
        let at = left.iter().position(|other| other == change)?;
        left.remove(at);
    }
    Some(left)
}
