//! What makes a history sound, whatever store it lies in.
//!
//! Everything is named by a digest or has a checksum, so everything can be verified: contents against their names, entries
//! against what they say and stand behind, chains against what was said, requests against what was sent, and whole rows
//! against their checksums. Decisions only: a store hands over its rows, then whatever [`Checker::next_body`] asks for.
//!
//! A result without a call is counted and is no finding: clients send such histories, and the record shows what was
//! sent.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use throughline_core::plan::Decisions;
use throughline_core::{Entry, Kind};

use super::rows::{Cell, Row, TABLES};
use crate::batch::node_id;
use crate::chain::Saying;
use crate::checksum::checksum_of_cells;
use crate::digest::{Digest, Domain};
use crate::events::decode_events;
use crate::pack::{Codec, undelta, unpack};
use crate::record::{EntryReader, envelope_of, verify_record};
use crate::tags::kind_tag;
use crate::{Chain, KeptKind, StoreError};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkup {
    /// How many conversations were looked at.
    pub conversations: u64,
    /// How many exchanges.
    pub exchanges: u64,
    /// How many entries.
    pub entries: u64,
    /// How many records of entries and envelopes.
    pub records: u64,
    /// How many requests as sent.
    pub requests: u64,
    /// Calls whose result is in the history.
    pub pairs: u64,
    /// Calls without a result, as yet or for good.
    pub open: u64,
    /// Results that no call stands before: what clients sent so.
    pub orphans: u64,
    /// Results of a call that has one already, in the same branch: what clients sent so.
    pub repeated: u64,
    /// What is wrong, the first few hundred.
    pub findings: Vec<Finding>,
    /// How much is wrong.
    pub wrong: u64,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table that it stands in; `file` for the database as a whole.
    pub table: &'static str,
    /// What it is about: a kind of thing and its name.
    pub of: String,
    /// The conversation that it belongs to, as far as that is known.
    pub conversation: Option<String>,
    /// What is wrong with it.
    pub what: String,
    /// What can be done about it.
    pub remedy: Remedy,
}

/// What can be done about something that is not as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Restore a backup: the database as a whole is not to be relied upon.
    RestoreBackup,
    /// Restore a backup, or delete the conversation that it belongs to.
    RestoreOrDelete,
    /// Write it again: it is a setting, or something that is found out anew.
    WriteAgain,
    /// Build the index of words anew from the entries.
    Reindex,
}

/// More findings than this help nobody.
const FINDINGS_MAX: usize = 500;

/// A request as it is stored, with the records that it is compressed with.
pub(crate) struct SourcedBody {
    pub row: Row,
    pub sources: Vec<u8>,
}

/// Checks rows as they come, in the order of [`TABLES`].
#[derive(Default)]
pub(crate) struct Checker {
    checkup: Checkup,
    conversations: HashSet<String>,
    /// Each with its conversation.
    exchanges: HashMap<String, String>,
    /// Which exchange a request was sent in.
    sent_in: HashMap<Digest, String>,
    /// Records with something wrong, and where that was noted.
    bad_blobs: HashMap<Digest, usize>,
    /// The tool of the latest call of an id, by conversation.
    tools: HashMap<(String, String), String>,
    blobs: HashSet<Digest>,
    nodes: Vec<Node>,
    by_id: HashMap<Digest, usize>,
    /// Entries that exchanges name before entries are known.
    named: Vec<(String, Digest)>,
    bodies: HashSet<Digest>,
    /// Steps of compaction, by exchange and attempt.
    steps: HashSet<(String, i64)>,
    /// Which requests are based on which.
    based: HashMap<Option<Digest>, Vec<Digest>>,
    /// Requests put together, each with those based on it that are still to come.
    stack: Vec<(Arc<Vec<u8>>, Vec<Digest>)>,
    reader: EntryReader,
}

/// What an entry should be found by.
struct Filed {
    tool: Option<String>,
    call_id: Option<String>,
}

impl Filed {
    fn of(entry: &Entry) -> Self {
        let (tool, call_id) = match &entry.kind {
            Kind::Called(call) => (Some(&call.name), Some(&call.id)),
            Kind::Returned(returned) => (returned.name.as_ref(), returned.call_id.as_ref()),
            _ => (None, None),
        };
        Self { tool: tool.map(ToString::to_string), call_id: call_id.map(ToString::to_string) }
    }
}

struct Node {
    parent: Option<usize>,
    chain: Chain,
    /// The id of a call, and whether its result was seen.
    call: Option<(String, bool)>,
    /// The id of the call that a result is of.
    result: Option<String>,
}

impl Checker {
    /// Takes in a row of the table of that number; rows of `nodes` come with record and envelope behind them.
    pub fn row(&mut self, table: usize, row: &Row) {
        let before = self.checkup.wrong;
        let table = &TABLES[table];
        match table.name {
            "conversations" => self.conversation(row),
            "keys" => self.expect_conversation(table.name, row, &row[1]),
            "exchanges" => self.exchange(row),
            "attempts" => self.expect_exchange(table.name, row),
            "blobs" => self.blob(row),
            "nodes" => self.node(row),
            "items" => self.item(row),
            "bodies" => self.body_link(row),
            "documents" => self.document(row),
            "events" => self.packed(table.name, row, &row[2..5], |bytes| decode_events(&bytes).map(drop)),
            "answers" => self.packed(table.name, row, &row[1..4], utf8),
            "compaction_steps" => self.step(row),
            "settings" if row[0] != Cell::Nothing => self.expect_conversation(table.name, row, &row[0]),
            _ => {}
        }
        // Whatever was found says more than that the row is another.
        if self.checkup.wrong == before && table.has_checksum() {
            let at = table.columns.len() - 1;
            if row[at].number() != Some(checksum_of_cells(table.name, &row[..at])) {
                self.find(table.name, row, "the row is not the one that was written");
            }
        }
    }

    fn conversation(&mut self, row: &Row) {
        self.checkup.conversations += 1;
        self.conversations.insert(row[0].text().unwrap_or_default().to_owned());
    }

    fn exchange(&mut self, row: &Row) {
        self.checkup.exchanges += 1;
        let id = row[0].text().unwrap_or_default().to_owned();
        self.expect_conversation("exchanges", row, &row[1]);
        for entry in [&row[2], &row[3]].into_iter().filter_map(Cell::digest) {
            self.named.push((id.clone(), entry));
        }
        self.exchanges.insert(id, row[1].text().unwrap_or_default().to_owned());
    }

    fn expect_conversation(&mut self, table: &'static str, row: &Row, named: &Cell) {
        if !named.text().is_some_and(|id| self.conversations.contains(id)) {
            self.find(table, row, "its conversation is not there");
        }
    }

    fn expect_exchange(&mut self, table: &'static str, row: &Row) {
        if !row[0].text().is_some_and(|id| self.exchanges.contains_key(id)) {
            self.find(table, row, "its exchange is not there");
        }
    }

    fn blob(&mut self, row: &Row) {
        self.checkup.records += 1;
        let Some(digest) = row[0].digest() else { return };
        self.blobs.insert(digest);
        // No record is compressed with another, or has a digest behind it.
        let is_odd = row[1].number().is_none_or(|codec| codec > Codec::Zstd as i64);
        let verified = unpacked(&row[1..4]).and_then(|bytes| {
            if is_odd || Digest::of(Domain::Record, &bytes) != digest {
                return Err(StoreError::Damaged("content does not match its digest".to_owned()));
            }
            Ok(verify_record(&bytes)?)
        });
        if let Err(error) = verified {
            self.bad_blobs.insert(digest, self.checkup.findings.len());
            self.find("blobs", row, said(&error));
        }
    }

    /// Notes which conversation a record belongs to that something is wrong with.
    fn note_conversation(&mut self, row: &Row) {
        for blob in [&row[4], &row[5]].into_iter().filter_map(Cell::digest) {
            let found = self.bad_blobs.get(&blob).and_then(|at| self.checkup.findings.get_mut(*at));
            if let Some(found) = found
                && found.conversation.is_none()
            {
                found.conversation = row[1].text().map(str::to_owned);
                found.remedy = Remedy::RestoreOrDelete;
            }
        }
    }

    fn node(&mut self, row: &Row) {
        self.checkup.entries += 1;
        let Some(id) = row[0].digest() else { return };
        if !self.bad_blobs.is_empty() {
            self.note_conversation(row);
        }
        if let Err(what) = self.verified_node(id, row) {
            self.find("nodes", row, &what);
            // What follows it is still looked at.
            if !self.by_id.contains_key(&id) {
                let chain = row[6].digest().map_or(Chain::ROOT, Chain);
                self.keep_node(id, Node { parent: None, chain, call: None, result: None });
                if let [Some(conversation), Some(tool), Some(call)] =
                    [&row[1], &row[10], &row[11]].map(|cell| cell.text().map(str::to_owned))
                    && row[9].number() == Some(kind_tag(KeptKind::Called))
                {
                    self.tools.insert((conversation, call), tool);
                }
            }
        }
    }

    fn verified_node(&mut self, id: Digest, row: &Row) -> Result<(), String> {
        let conversation = row[1].text().filter(|id| self.conversations.contains(*id));
        let conversation = conversation.ok_or("its conversation is not there")?;
        let conversation = conversation.to_owned();
        if row[2].text().is_some_and(|id| !self.exchanges.contains_key(id)) {
            return Err("its exchange is not there".to_owned());
        }
        let parent_id = row[3].digest();
        let parent = match parent_id {
            None => None,
            Some(parent) => Some(*self.by_id.get(&parent).ok_or("what it follows is not there before it")?),
        };
        let record = row[4].digest().filter(|record| self.blobs.contains(record));
        let record = record.ok_or("its record is not there")?;
        if node_id(&conversation, parent_id, record) != id {
            return Err("its id does not follow from what it says and follows".to_owned());
        }
        let entry = self.entry(row).map_err(|error| said(&error).to_owned())?;
        let before = parent.map_or(Chain::ROOT, |parent| self.nodes[parent].chain);
        let (chain, counts) = before.after(Saying::of(&entry));
        let kind = KeptKind::of(&entry);
        let filed = Filed::of(&entry);
        let call_id = filed.call_id.clone();
        let (call, result) = match kind {
            KeptKind::Called => (call_id.map(|id| (id, false)), None),
            KeptKind::Returned(_) => (None, call_id),
            _ => (None, None),
        };
        self.keep_node(id, Node { parent, chain, call, result });
        let columns = self.verified_columns(&conversation, row, filed, kind);
        if row[6].digest() != Some(chain.0) || row[7].number() != Some(i64::from(counts)) {
            return Err("its chain is not that of what was said up to it".to_owned());
        }
        if row[9].number() != Some(kind_tag(kind)) {
            return Err("it is filed under another kind".to_owned());
        }
        columns
    }

    /// Compares what an entry is found by with what it says.
    fn verified_columns(
        &mut self,
        conversation: &str,
        row: &Row,
        filed: Filed,
        kind: KeptKind,
    ) -> Result<(), String> {
        let call = filed.call_id.map(|id| (conversation.to_owned(), id));
        // A result that does not name its tool is filed under that of the latest call of its id.
        let tool = filed.tool.or_else(|| self.tools.get(call.as_ref()?).cloned());
        let named = call.as_ref().map(|(_, id)| id.as_str());
        let wrong = match () {
            () if row[11].text() != named => Some("it is filed under another call"),
            () if row[10].text() != tool.as_deref() => Some("it is filed under another tool"),
            // Where it stood in a request is in no record; but there is no block without a message.
            () if !is_place(&row[12], &row[13]) => Some("it is filed under no place in a message"),
            () => None,
        };
        if let (KeptKind::Called, Some(call), Some(tool)) = (kind, call, tool) {
            self.tools.insert(call, tool);
        }
        wrong.map_or(Ok(()), |wrong| Err(wrong.to_owned()))
    }

    fn entry(&mut self, row: &Row) -> Result<Entry, StoreError> {
        let record = unpacked(&row[15..18])?;
        let envelope = row[5].digest();
        if envelope_of(&record)? != envelope {
            return Err(StoreError::Damaged("it is filed under another envelope".to_owned()));
        }
        let mut load = |digest| match envelope {
            Some(envelope) if envelope == digest => unpacked(&row[18..21]),
            _ => Err(StoreError::Damaged("it is filed under another envelope".to_owned())),
        };
        self.reader.decode(&record, None, &mut load)
    }

    fn keep_node(&mut self, id: Digest, node: Node) {
        self.by_id.insert(id, self.nodes.len());
        self.nodes.push(node);
        self.pair();
    }

    /// Looks for the call of the latest entry, if that is a result.
    fn pair(&mut self) {
        let Some(Node { result: Some(result), parent, .. }) = self.nodes.last() else { return };
        let (result, mut at) = (result.clone(), *parent);
        let mut is_repeated = false;
        while let Some(node) = at {
            if self.nodes[node].result.as_ref() == Some(&result) {
                is_repeated = true;
            }
            if let Some((id, is_settled)) = &mut self.nodes[node].call
                && *id == result
            {
                self.checkup.pairs += u64::from(!*is_settled);
                *is_settled = true;
                self.checkup.repeated += u64::from(is_repeated);
                return;
            }
            at = self.nodes[node].parent;
        }
        self.checkup.orphans += 1;
    }

    fn item(&mut self, row: &Row) {
        if !row[1].digest().is_some_and(|node| self.by_id.contains_key(&node)) {
            self.find("items", row, "its entry is not there");
        }
    }

    fn body_link(&mut self, row: &Row) {
        self.checkup.requests += 1;
        let Some(digest) = row[0].digest() else { return };
        self.bodies.insert(digest);
        self.based.entry(row[1].digest()).or_default().push(digest);
    }

    fn document(&mut self, row: &Row) {
        self.expect_exchange("documents", row);
        let body = row[3].digest().filter(|body| self.bodies.contains(body));
        match (body, row[0].text()) {
            (Some(body), Some(exchange)) => drop(self.sent_in.insert(body, exchange.to_owned())),
            (None, _) => self.find("documents", row, "its body is not there"),
            _ => {}
        }
    }

    fn step(&mut self, row: &Row) {
        let before = self.checkup.wrong;
        self.packed("compaction_steps", row, &row[8..11], decisions);
        let step = |exchange: &Cell, attempt: &Cell| {
            Some((exchange.text()?.to_owned(), attempt.number().unwrap_or_default()))
        };
        let conversation = row[0].text().and_then(|exchange| self.conversation_of(exchange));
        let follows = step(&row[6], &row[7]);
        if self.checkup.wrong > before {
            // What was found says enough.
        } else if conversation.as_deref() != row[2].text() {
            self.find("compaction_steps", row, "it is filed under another conversation");
        } else if follows.is_some_and(|follows| !self.steps.contains(&follows)) {
            self.find("compaction_steps", row, "the step that it follows is not there before it");
        }
        self.steps.extend(step(&row[0], &row[1]));
    }

    fn packed(
        &mut self,
        table: &'static str,
        row: &Row,
        cells: &[Cell],
        read: fn(Vec<u8>) -> Result<(), StoreError>,
    ) {
        self.expect_exchange(table, row);
        if let Err(error) = unpacked(cells).and_then(read) {
            self.find(table, row, said(&error));
        }
    }

    /// Returns the next request to be put together: each comes after the one that it is based on.
    pub fn next_body(&mut self) -> Option<Digest> {
        if self.stack.is_empty() {
            let whole = self.based.remove(&None)?;
            self.stack.push((Arc::default(), whole));
        }
        loop {
            let (_, waiting) = self.stack.last_mut()?;
            match waiting.pop() {
                Some(digest) => return Some(digest),
                None => drop(self.stack.pop()),
            }
        }
    }

    /// Takes in the request that was asked for; nothing if it is gone.
    pub fn body(&mut self, digest: Digest, body: Option<SourcedBody>) {
        let base = self.stack.last().map(|(base, _)| Arc::clone(base)).unwrap_or_default();
        // A request whose last follower this is needs not be kept: conversations are mostly one line of them.
        if self.stack.len() > 1 && self.stack.last().is_some_and(|(_, waiting)| waiting.is_empty()) {
            self.stack.pop();
        }
        let followers = self.based.remove(&Some(digest)).unwrap_or_default();
        match body
            .ok_or_else(|| StoreError::Damaged("it is not there".to_owned()))
            .and_then(|body| put_together(&base, &body))
        {
            Ok(bytes) => {
                if Digest::of(Domain::Body, &bytes) != digest {
                    self.find_body(digest, "content does not match its digest");
                }
                if !followers.is_empty() {
                    self.stack.push((Arc::new(bytes), followers));
                }
            }
            Err(error) => {
                self.find_body(digest, said(&error));
                self.unreadable_bodies(followers);
            }
        }
    }

    /// Notes requests that rest on one that cannot be read.
    fn unreadable_bodies(&mut self, mut followers: Vec<Digest>) {
        while let Some(digest) = followers.pop() {
            self.find_body(digest, "the request that it is based on cannot be read");
            followers.extend(self.based.remove(&Some(digest)).unwrap_or_default());
        }
    }

    /// Notes something about the database as a whole, which the store found out itself.
    pub fn file(&mut self, what: &str) {
        self.note("file", "the database".to_owned(), None, what, Remedy::RestoreBackup);
    }

    /// Notes something about the index of words.
    pub fn index(&mut self, what: &str) {
        self.note("words", "the index of words".to_owned(), None, what, Remedy::Reindex);
    }

    /// Notes a row that cannot be read, by what names it in the database; of no name, all that are left of its table.
    pub fn unreadable(&mut self, table: &'static str, row: &str, error: &StoreError) {
        let of = match row {
            "" => format!("the rest of table {table}"),
            row => format!("row {row} of table {table}"),
        };
        self.note(table, of, None, said(error), Remedy::RestoreBackup);
    }

    /// Returns what was found, when there are no more rows and no more requests.
    pub fn done(mut self) -> Checkup {
        let lost: BTreeSet<Digest> = self.based.drain().flat_map(|(_, digests)| digests).collect();
        for digest in lost {
            self.find_body(digest, "the request that it is based on is not there");
        }
        for (exchange, entry) in std::mem::take(&mut self.named) {
            if !self.by_id.contains_key(&entry) {
                let row = [
                    Cell::Text(exchange.clone()),
                    self.conversation_of(&exchange).map_or(Cell::Nothing, Cell::Text),
                ];
                self.find("exchanges", &row, "an entry that it names is not there");
            }
        }
        let is_open = |node: &&Node| node.call.as_ref().is_some_and(|(_, is_settled)| !is_settled);
        self.checkup.open = self.nodes.iter().filter(is_open).count() as u64;
        self.checkup
    }

    fn conversation_of(&self, exchange: &str) -> Option<String> {
        self.exchanges.get(exchange).cloned()
    }

    /// Notes something about a request.
    fn find_body(&mut self, digest: Digest, what: &str) {
        let conversation = self.sent_in.get(&digest).and_then(|exchange| self.conversation_of(exchange));
        let remedy = if conversation.is_some() { Remedy::RestoreOrDelete } else { Remedy::RestoreBackup };
        self.note("bodies", format!("request {digest}"), conversation, what, remedy);
    }

    /// Notes something about a row.
    fn find(&mut self, table: &'static str, row: &[Cell], what: &str) {
        let text = |at: usize| row.get(at).and_then(Cell::text).map(str::to_owned);
        let named = |at: usize| match row.get(at) {
            Some(Cell::Text(text)) => text.clone(),
            Some(Cell::Number(number)) => number.to_string(),
            Some(Cell::Digest(digest)) => digest.to_string(),
            _ => "?".to_owned(),
        };
        let of_exchange = || text(0).and_then(|exchange| self.conversation_of(&exchange));
        let (of, conversation) = match table {
            "conversations" => (format!("conversation {}", named(0)), text(0)),
            "keys" => (format!("key {}", named(0)), text(1)),
            "exchanges" => (format!("exchange {}", named(0)), text(1)),
            "attempts" => (format!("attempt {} of exchange {}", named(1), named(0)), of_exchange()),
            "documents" => (
                format!("document {} of attempt {} of exchange {}", named(2), named(1), named(0)),
                of_exchange(),
            ),
            "events" => (format!("events of attempt {} of exchange {}", named(1), named(0)), of_exchange()),
            "answers" => (format!("answer of exchange {}", named(0)), of_exchange()),
            "compaction_steps" => {
                (format!("decisions of attempt {} of exchange {}", named(1), named(0)), of_exchange())
            }
            "nodes" => (format!("entry {}", named(0)), text(1)),
            "items" => (format!("item {}", named(0)), None),
            "blobs" => (format!("record {}", named(0)), None),
            "bodies" => (format!("request {}", named(0)), None),
            "learned" => (format!("verdict on {} of {} {}", named(2), named(0), named(1)), None),
            _ => (format!("setting {}", named(1)), text(0)),
        };
        let remedy = match (table, &conversation) {
            ("learned" | "settings", _) => Remedy::WriteAgain,
            (_, Some(_)) => Remedy::RestoreOrDelete,
            (_, None) => Remedy::RestoreBackup,
        };
        self.note(table, of, conversation, what, remedy);
    }

    fn note(
        &mut self,
        table: &'static str,
        of: String,
        conversation: Option<String>,
        what: &str,
        remedy: Remedy,
    ) {
        self.checkup.wrong += 1;
        if self.checkup.findings.len() < FINDINGS_MAX {
            let what = what.to_owned();
            self.checkup.findings.push(Finding { table, of, conversation, what, remedy });
        }
    }
}

/// Unpacks codec, size and bytes.
fn unpacked(cells: &[Cell]) -> Result<Vec<u8>, StoreError> {
    let (codec, size, bytes) = packed_cells(cells)?;
    unpack(codec, size, bytes)
}

fn packed_cells(cells: &[Cell]) -> Result<(i64, usize, Vec<u8>), StoreError> {
    let missing = || StoreError::Damaged("its content is not there".to_owned());
    let codec = cells[0].number().ok_or_else(missing)?;
    let size = cells[1].number().and_then(|size| usize::try_from(size).ok()).ok_or_else(missing)?;
    Ok((codec, size, cells[2].bytes().ok_or_else(missing)?.to_vec()))
}

fn put_together(base: &[u8], body: &SourcedBody) -> Result<Vec<u8>, StoreError> {
    let end = |cell: &Cell| cell.number().and_then(|end| usize::try_from(end).ok()).unwrap_or(usize::MAX);
    let ends = (end(&body.row[4]), end(&body.row[5]));
    undelta(base, &body.sources, ends, packed_cells(&body.row[6..9])?)
}

/// Says whether two columns can be a place in a request.
fn is_place(message: &Cell, block: &Cell) -> bool {
    let is_count = |cell: &Cell| cell.number().is_none_or(|number| number >= 0);
    is_count(message) && is_count(block) && (message.number().is_some() || block.number().is_none())
}

fn decisions(bytes: Vec<u8>) -> Result<(), StoreError> {
    let text = String::from_utf8(bytes).map_err(|_| StoreError::Damaged("it is no text".to_owned()))?;
    Decisions::from_text(&text).map(drop).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn utf8(bytes: Vec<u8>) -> Result<(), StoreError> {
    String::from_utf8(bytes).map(drop).map_err(|_| StoreError::Damaged("it is no text".to_owned()))
}

/// Returns what an error says, without what to do about a database that is damaged as a whole.
fn said(error: &StoreError) -> &str {
    match error {
        StoreError::Damaged(what) => what,
        _ => "it cannot be read",
    }
}
