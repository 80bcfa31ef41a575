//! Where in the history a request stands: what of it is known, and what the backend is to be shown.
//!
//! A client that resends its history does so in its own dialect, which may have no place for reasoning or
//! for who said what. What is known is therefore taken from the record, where it is whole, and only the rest
//! from the request. Instructions always come from the request: they are not inherited.

use super::compact;
use super::handover::Takeover;
use super::identity::{Claim, conversation_mark};
use super::known::{Abridged, Known};
pub use super::place_error::PlaceError;
use super::recall;
use super::rejoined;
use super::taken_out_items;
use super::traces::{self, Pieces};
use crate::config::Backend;
use crate::privacy::Privacy;
use std::collections::BTreeSet;
use std::ops::Range;
use throughline_core::{
    Ask, ConversationId, Entry, EntryId, Handover, Kind, Seal, Side, Text, Trace, Treatment, brief_in_force,
};
use throughline_store::{Chain, Entries, Exchanges, History, Locate, Located, chain, chains};

/// A request in its place.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// How that was found out.
    pub identified: &'static str,
    /// The key that clients know the conversation by.
    pub key: Option<Text>,
    /// The entry that the new ones follow.
    pub parent: Option<EntryId>,
    /// How many entries of the request are in the history already.
    pub known: usize,
    /// The whole history up to and including the request, as far as it is known.
    pub history: Vec<Entry>,
    /// Which entries of the record those of the request are.
    pub asked: Vec<Trace>,
    /// How many entries the record has up to and including the request.
    pub recorded: u32,
    /// Where in the record the entries are that were not read.
    pub unread: Range<u32>,
    /// What was said since in answers that are not over, because the model recalled something.
    pub turn: Vec<Entry>,
    /// The backend that is about to take over, if one is.
    pub handover: Option<Takeover>,
    /// What was said in the conversations that this one goes on from.
    pub earlier: Vec<Entry>,
}

impl Placed {
    /// Returns the brief by which a backend is shown what came before it, if there is one.
    #[must_use]
    pub fn brief_for(&self, backend: &str) -> Option<Text> {
        let brief = |at: usize| match &self.history[at].kind {
            Kind::HandedOver(handover) => handover.brief.clone(),
            _ => None,
        };
        let of_every_backend = |entry: &Entry| matches!(&entry.kind, Kind::HandedOver(handover) if handover.continues.is_some() && handover.brief.is_some());
        match &self.handover {
            Some(Takeover { handover: Handover { brief: Some(brief), .. }, .. }) => Some(brief.clone()),
            Some(_) => self.history.iter().rposition(of_every_backend).and_then(brief),
            None => brief_in_force(&self.history, backend).and_then(brief),
        }
    }

    /// Returns the place of a request of which nothing is known: the beginning of a conversation.
    pub(super) fn unknown(ask: &Ask, conversation: ConversationId) -> Self {
        Self {
            conversation,
            identified: "its beginning",
            key: None,
            parent: None,
            known: 0,
            history: traces::positioned(ask.entries.iter().cloned()),
            asked: traces::of_request(&ask.entries, &[], 0, 0, &[]),
            recorded: traces::length(&ask.entries),
            unread: 0..0,
            turn: Vec::new(),
            handover: None,
            earlier: Vec::new(),
        }
    }
}

/// How a conversation is said to be identified that holds what a client asks on the side.
pub const SIDE_QUESTIONS: &str = "questions on the side";

/// What is known about the past of a request beyond what the request says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past<'a> {
    /// The response that it may continue although that was not to be stored.
    pub remembered: Option<&'a Text>,
    /// The entry that it goes on from in its conversation, if not the one that was added last.
    pub behind: Option<&'a EntryId>,
}

/// Finds the place of a request; `fresh` is the id of the conversation that it begins, if it begins one.
///
/// # Errors
/// When the request leans on something that is not in the history, or the history cannot be read.
pub async fn place(
    history: &dyn History,
    claim: Claim,
    ask: &Ask,
    past: Past<'_>,
    fresh: ConversationId,
    privacy: &Privacy,
) -> Result<Placed, PlaceError> {
    let mut placed = match (&ask.previous, &ask.conversation) {
        (Some(_), Some(_)) => return Err(PlaceError::TwoPasts),
        (Some(previous), None) => {
            let is_remembered = past.remembered == Some(previous);
            behind_response(history, previous, ask, is_remembered, privacy).await?
        }
        (None, Some(conversation)) => {
            behind_conversation(history, conversation, ask, past.behind, privacy).await?
        }
        (None, None) => {
            let compacted = match claim {
                Claim::Nothing => compact::conversation_of(history, ask).await?,
                _ => None,
            };
            by_claim(history, compacted.map_or(claim, Claim::Compacted), ask, fresh, privacy).await?
        }
    };
    privacy.restore(&mut placed.history, &ask.entries);
    let continued = placed.parent.is_some().then(|| placed.conversation.clone());
    resolve_references(history, &mut placed.history, continued.as_ref()).await?;
    compact::expand(history, &mut placed.history).await?;
    if leans_on_record(ask) {
        check_results(ask, &placed.history)?;
    }
    Ok(placed)
}

/// Says whether the client leaves out what is in the record already.
pub(super) const fn leans_on_record(ask: &Ask) -> bool {
    ask.previous.is_some() || ask.conversation.is_some()
}

/// Refuses a result whose call is not there: a client that leaves its history to us gave it an id that it made
/// up or mixed up, and no backend could make sense of it. One that resends its history is mended instead.
fn check_results(ask: &Ask, history: &[Entry]) -> Result<(), PlaceError> {
    let called: BTreeSet<&Text> = history.iter().filter_map(Entry::as_call).map(|call| &call.id).collect();
    for entry in &ask.entries {
        let Some(call_id) = entry.as_return().and_then(|returned| returned.call_id.as_ref()) else {
            continue;
        };
        if !called.contains(call_id) {
            let item = entry.place.map_or(0, |place| place.message);
            return Err(PlaceError::NoSuchCall { item, call_id: call_id.clone() });
        }
    }
    Ok(())
}

/// Goes on from an entry of a conversation, or from what was last added to it.
async fn behind_conversation(
    history: &dyn History,
    id: &Text,
    ask: &Ask,
    behind: Option<&EntryId>,
    privacy: &Privacy,
) -> Result<Placed, PlaceError> {
    let located = history.locate(Locate::Conversation(ConversationId::new(id.clone()))).await?;
    let Located { conversation, entry: parent, .. } =
        located.ok_or_else(|| PlaceError::NoSuchConversation(id.clone()))?;
    let said = history.exchanges(Exchanges::Response(conversation_mark(id))).await?;
    if said.items.iter().any(|exchange| exchange.response.as_ref().is_some_and(|mark| mark.deleted)) {
        return Err(PlaceError::NoSuchConversation(id.clone()));
    }
    let parent = behind.cloned().or(parent);
    let taken_out = taken_out_items(&history.standing().await?, &conversation);
    let kept = match &parent {
        Some(last) => history.entries(Entries::Branch(last.clone())).await?,
        None => Vec::new(),
    };
    let ids: Vec<EntryId> = kept.iter().map(|kept| kept.id.clone()).collect();
    let whole = traces::positioned(kept.into_iter().map(|kept| kept.entry));
    let length = traces::length(&whole);
    let kept = whole.into_iter().zip(ids).filter(|(_, id)| !taken_out.contains(id.as_str()));
    let kept: Vec<Entry> = kept.map(|(entry, _)| entry).collect();
    let known = restated(&privacy.entries(&ask.entries), &kept);
    let asked = traces::behind(&ask.entries, &kept, known, length);
    let recorded = length + new_entries(ask, known);
    let history = joined(ask, &asked, kept, known);
    Ok(Placed {
        conversation,
        identified: "conversation",
        key: None,
        parent,
        known,
        history,
        asked,
        recorded,
        unread: 0..0,
        turn: Vec::new(),
        handover: None,
        earlier: Vec::new(),
    })
}

async fn behind_response(
    history: &dyn History,
    id: &Text,
    ask: &Ask,
    is_remembered: bool,
    privacy: &Privacy,
) -> Result<Placed, PlaceError> {
    let found = history.exchanges(Exchanges::Response(id.clone())).await?.items.into_iter().next();
    let usable = |exchange: &throughline_store::Exchange| {
        exchange.response.as_ref().is_some_and(|mark| (mark.stored || is_remembered) && !mark.deleted)
    };
    let exchange = found.filter(usable).ok_or_else(|| PlaceError::NoSuchResponse(id.clone()))?;
    if exchange.ended.is_none() {
        return Err(PlaceError::Unfinished(id.clone()));
    }
    let parent = exchange.after.or(exchange.before);
    let kept = branch(history, parent.as_ref()).await?;
    let known = restated(&privacy.entries(&ask.entries), &kept);
    let length = traces::length(&kept);
    let asked = traces::behind(&ask.entries, &kept, known, length);
    let recorded = length + new_entries(ask, known);
    Ok(Placed {
        conversation: exchange.conversation,
        identified: "previous response",
        key: None,
        parent,
        known,
        history: joined(ask, &asked, kept, known),
        asked,
        recorded,
        unread: 0..0,
        turn: Vec::new(),
        handover: None,
        earlier: Vec::new(),
    })
}

/// Finds the place of a request that was read without what is settled of it; none if the record goes on
/// otherwise than it did when that was last looked at.
///
/// # Errors
/// When the history cannot be read.
pub async fn place_abridged(
    history: &dyn History,
    claim: Claim,
    abridged: &Abridged,
    known: &Known,
    fresh: ConversationId,
) -> Result<Option<Placed>, PlaceError> {
    let Abridged { ask, opening, .. } = abridged;
    let (within, identified, key) = claimed(history, claim, &fresh).await?;
    let mut chains = vec![known.chain()];
    for entry in &ask.entries[*opening..] {
        chains.push(chain(chains[chains.len() - 1], entry));
    }
    let located = history.locate(Locate::Prefix { within, chains }).await?;
    let Some(Located { conversation, entry: Some(entry), known: found, .. }) = located else {
        return Ok(None);
    };
    let Some((kept, length)) = known.record_up_to(&entry) else { return Ok(None) };
    let unread = known.unread();
    let known = opening + found - 1;
    // It may be an answer with recalls in it, for which all of the record is looked at.
    if ask.entries.get(known).is_some_and(|entry| rejoined::spoken(entry).is_some()) {
        return Ok(None);
    }
    let asked = traces::of_request(&ask.entries, &kept, known, length, &[]);
    let history = joined(ask, &asked, kept, known);
    Ok(Some(Placed {
        conversation,
        identified,
        key,
        parent: Some(entry),
        known,
        history,
        asked,
        recorded: length + new_entries(ask, known),
        unread,
        turn: Vec::new(),
        handover: None,
        earlier: Vec::new(),
    }))
}

/// Returns the whole of a request that was placed without what is settled of it.
///
/// # Errors
/// When the history cannot be read.
pub async fn unabridged(
    history: &dyn History,
    ask: &Ask,
    (abridged, placed): (&Ask, &Placed),
) -> Result<Placed, PlaceError> {
    let kept = branch(history, placed.parent.as_ref()).await?;
    let known = ask.entries.len() - (abridged.entries.len() - placed.known);
    let length = traces::length(&kept);
    let asked = traces::of_request(&ask.entries, &kept, known, length, &[]);
    let mut history_of = joined(ask, &asked, kept, known);
    compact::expand(history, &mut history_of).await?;
    let recorded = length + new_entries(ask, known);
    Ok(Placed { known, history: history_of, asked, recorded, unread: 0..0, ..placed.clone() })
}

/// Returns the conversation that a request names, how, and by which key.
async fn claimed(
    history: &dyn History,
    claim: Claim,
    fresh: &ConversationId,
) -> Result<(Option<ConversationId>, &'static str, Option<Text>), PlaceError> {
    Ok(match claim {
        Claim::Explicit(id) => (Some(ConversationId::new(id)), "header", None),
        Claim::Compacted(id) => (Some(ConversationId::new(id)), "compaction", None),
        Claim::Key(key) => {
            let found = history.locate(Locate::Key(key.clone())).await?;
            let id = found.map_or_else(|| fresh.clone(), |located| located.conversation);
            (Some(id), "client session", Some(key))
        }
        Claim::Side(key) => {
            let found = history.locate(Locate::Key(key.clone())).await?;
            let id = found.map_or_else(|| fresh.clone(), |located| located.conversation);
            (Some(id), SIDE_QUESTIONS, Some(key))
        }
        Claim::Nothing => (None, "its beginning", None),
    })
}

async fn by_claim(
    history: &dyn History,
    claim: Claim,
    ask: &Ask,
    fresh: ConversationId,
    privacy: &Privacy,
) -> Result<Placed, PlaceError> {
    let (within, identified, key) = claimed(history, claim, &fresh).await?;
    let said = privacy.entries(&ask.entries);
    let prefix = Locate::Prefix { within: within.clone(), chains: chains(&said) };
    let located = history.locate(prefix).await?;
    // Two conversations that open with the same words are not one, as long as nobody answered.
    let located = located.filter(|located| within.is_some() || answered(&ask.entries[..located.known]));
    let Some(located) = located else {
        let conversation = within.unwrap_or(fresh);
        return Ok(Placed {
            conversation,
            identified,
            key,
            parent: None,
            known: 0,
            history: traces::positioned(ask.entries.iter().cloned()),
            asked: traces::of_request(&ask.entries, &[], 0, 0, &[]),
            recorded: traces::length(&ask.entries),
            unread: 0..0,
            turn: Vec::new(),
            handover: None,
            earlier: Vec::new(),
        });
    };
    let conversation = located.conversation.clone();
    let Behind { entry, known, kept, pieces } = behind_recalls(history, &said, located).await?;
    let length = traces::length(&kept);
    let asked = traces::of_request(&ask.entries, &kept, known, length, &pieces);
    let whole = match known {
        0 => traces::with_traces(&ask.entries, &asked),
        _ => joined(ask, &asked, kept, known),
    };
    Ok(Placed {
        conversation,
        identified,
        key,
        parent: entry,
        known,
        history: whole,
        asked,
        recorded: length + new_entries(ask, known),
        unread: 0..0,
        turn: Vec::new(),
        handover: None,
        earlier: Vec::new(),
    })
}

/// Goes on from where a resent history was located, past answers that the client has as one text and the record
/// in pieces.
async fn behind_recalls(
    history: &dyn History,
    said: &[Entry],
    located: Located,
) -> Result<Behind, PlaceError> {
    let Located { conversation, mut entry, mut known, .. } = located;
    let mut kept = if known > 0 { branch(history, entry.as_ref()).await? } else { Vec::new() };
    let mut pieces = Vec::new();
    while let (Some(before), Some(next)) = (&entry, said.get(known)) {
        let Some(found) = rejoined::rejoined(history, &conversation, before, next).await? else { break };
        pieces.push(Pieces { asked: known, record: kept.len()..found.record.len() });
        (entry, kept) = (Some(found.tip), found.record);
        known += 1;
        let mut behind = vec![chains(&kept).pop().unwrap_or(Chain::ROOT)];
        for entry in &said[known..] {
            behind.push(chain(behind[behind.len() - 1], entry));
        }
        let prefix = Locate::Prefix { within: Some(conversation.clone()), chains: behind };
        if let Some(Located { entry: Some(further), known: found, .. }) = history.locate(prefix).await?
            && found > 1
        {
            kept = branch(history, Some(&further)).await?;
            entry = Some(further);
            known += found - 1;
        }
    }
    Ok(Behind { entry, known, kept, pieces })
}

/// Where a resent history was found.
struct Behind {
    /// The last known entry.
    entry: Option<EntryId>,
    /// How many entries of the request are known.
    known: usize,
    /// The record up to there.
    kept: Vec<Entry>,
    /// Which entries of the request the record has in pieces.
    pieces: Vec<Pieces>,
}

/// Returns how many entries a request adds to the record.
fn new_entries(ask: &Ask, known: usize) -> u32 {
    u32::try_from(ask.entries.len() - known).unwrap_or(u32::MAX)
}

fn answered(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.side() == Side::Assistant)
}

pub(super) async fn branch(history: &dyn History, last: Option<&EntryId>) -> Result<Vec<Entry>, PlaceError> {
    let Some(last) = last else { return Ok(Vec::new()) };
    let kept = history.entries(Entries::Branch(last.clone())).await?;
    Ok(traces::positioned(kept.into_iter().map(|kept| kept.entry)))
}

/// Returns how many entries of a request are in the record although it resends nothing of that: its instructions, if
/// they are those that hold already.
pub(crate) fn restated(said: &[Entry], kept: &[Entry]) -> usize {
    let is_restated = |entry: &&Entry| entry.restates(kept.iter());
    said.iter().take_while(is_restated).count()
}

/// Joins what is known with what the request adds to it.
fn joined(ask: &Ask, asked: &[Trace], kept: Vec<Entry>, known: usize) -> Vec<Entry> {
    let leads = |entries: &[Entry]| entries.iter().take_while(|entry| entry.side() == Side::System).count();
    let instructions = leads(&ask.entries);
    let mut whole = traces::with_traces(&ask.entries[..instructions], asked);
    let skipped = leads(&kept);
    whole.extend(kept.into_iter().skip(skipped).filter(|entry| !entry.is_standing()));
    let new = known.max(instructions);
    whole.extend(traces::with_traces(&ask.entries[new..], &asked[new..]));
    whole
}

/// Says who issued the reasoning that a client resends, by what is known of it.
pub fn recognise(entries: &mut [Entry], known: &[Entry]) {
    let seal = |entry: &Entry| match &entry.kind {
        Kind::Thought(thought) => match &thought.seal {
            Some(Seal::Signature(seal) | Seal::Redacted(seal) | Seal::Encrypted(seal)) => Some(seal.clone()),
            None => None,
        },
        _ => None,
    };
    let thinks = |entry: &Entry| entry.origin.is_none() && matches!(entry.kind, Kind::Thought(_));
    for entry in entries.iter_mut().filter(|entry| thinks(entry)) {
        // What a client resends is mostly what was said last.
        let issued = match seal(entry) {
            Some(sealed) => known.iter().rev().find(|known| seal(known).as_ref() == Some(&sealed)),
            // A client whose dialect has no place for a foreign seal resends the words alone.
            None => known.iter().rev().find(|known| thinks_alike(entry, known)),
        };
        entry.origin = issued.and_then(|issued| issued.origin.clone());
    }
}

fn thinks_alike(entry: &Entry, known: &Entry) -> bool {
    match (&entry.kind, &known.kind) {
        (Kind::Thought(entry), Kind::Thought(known)) => {
            (&entry.content, &entry.summary) == (&known.content, &known.summary)
        }
        _ => false,
    }
}

/// Replaces items that the client names by id with what they stand for.
///
/// Ids of items are the backends', and a backend may use one again: what a conversation refers to while it goes on is
/// its own, or nothing.
async fn resolve_references(
    history: &dyn History,
    entries: &mut [Entry],
    continued: Option<&ConversationId>,
) -> Result<(), PlaceError> {
    for entry in entries {
        let Kind::Reference { id } = &entry.kind else { continue };
        let found = history.entries(Entries::Item(id.clone())).await?.into_iter().next();
        let found = match (found, id.split_once('_')) {
            (Some(found), _) => Some(found),
            // The list of what a response was given names items without an id after their entries.
            (None, Some((_, entry))) => {
                history.entries(Entries::One(EntryId::new(entry))).await?.into_iter().next()
            }
            (None, None) => None,
        };
        let found = found.filter(|found| continued.is_none_or(|own| found.conversation == *own));
        let found = found.ok_or_else(|| PlaceError::NoSuchItem(id.clone()))?;
        let trace = entry.trace.with(Treatment::Resolved);
        *entry = Entry { place: entry.place, trace, ..found.entry };
    }
    Ok(())
}

/// Returns what a backend is to be shown, before any brief of it.
///
/// Within one dialect the client's own words are enough, once it is known whose reasoning they hold; so what
/// it sent goes out as it came. Another dialect is shown the whole record, and so is who was given a brief: where
/// that stands is in the record.
#[must_use]
pub fn shown(ask: &Ask, placed: &Placed, backend: &Backend) -> Vec<Entry> {
    let refers = ask.entries.iter().any(|entry| matches!(entry.kind, Kind::Reference { .. }));
    let is_recorded = ask.dialect != backend.dialect || placed.brief_for(&backend.name).is_some();
    let mut entries = if is_recorded || leans_on_record(ask) || refers || compact::is_held(ask) {
        placed.history.clone()
    } else {
        let mut entries = traces::with_traces(&ask.entries, &placed.asked);
        recognise(&mut entries, &placed.history);
        recall::reinserted(entries, &placed.history)
    };
    let handover = placed.handover.iter().map(|takeover| Kind::HandedOver(takeover.handover.clone()));
    entries.extend(handover.map(Entry::new));
    entries.extend(placed.turn.iter().cloned());
    recall::unveiled(entries, &recall::tool_name(ask))
}
