//! Reading what is in memory.

use throughline_core::{ConversationId, EntryId, Text};

use super::state::{Node, Passed, State};
use crate::prefix::longest_known_chain;
use crate::record::EntryReader;
use crate::sieve::{Found, Sieve};
use crate::tags::{kind_tag, kinds};
use crate::{
    Chain, ConversationFilter, Conversations, Cursor, Entries, Exchange, ExchangeId, Exchanges, Heading, Hit,
    Kept, KeptKind, Locate, Located, PARENT, PROJECT, Page, Paging, Recording, Scope, Search, Standing,
    StoreError, Which,
};

impl State {
    pub fn locate(&self, locate: &Locate) -> Option<Located> {
        let conversation = match locate {
            Locate::Prefix { within, chains } => {
                let within = match within {
                    Some(id) => Some(*self.by_conversation.get(id)?),
                    None => None,
                };
                return self.locate_prefix(within, chains);
            }
            Locate::Key(key) => *self.keys.get(key)?,
            Locate::Conversation(id) => *self.by_conversation.get(id)?,
        };
        let last = self.nodes.iter().rfind(|node| node.conversation == conversation);
        Some(Located {
            conversation: self.conversations[conversation].id.clone(),
            entry: last.map(|node| node.id.to_entry_id()),
            known: 0,
            followed: last.is_some_and(|node| node.followed),
        })
    }

    fn locate_prefix(&self, within: Option<usize>, chains: &[Chain]) -> Option<Located> {
        let fits = |at: &&usize| within.is_none_or(|within| self.nodes[**at].conversation == within);
        let look_up = |chain: Chain| {
            let found = self.by_chain.get(&chain).and_then(|nodes| nodes.iter().rfind(fits));
            Ok::<_, StoreError>(found.copied())
        };
        let (known, at) = longest_known_chain(chains, look_up).ok()??;
        let node = &self.nodes[at];
        Some(Located {
            conversation: self.conversations[node.conversation].id.clone(),
            entry: Some(node.id.to_entry_id()),
            known,
            followed: node.followed,
        })
    }

    pub fn conversations(&self, which: &Conversations) -> Result<Page<Heading>, StoreError> {
        let (filter, paging) = match which {
            Conversations::One(id) => {
                return Ok(Page::single(self.by_conversation.get(id).map(|at| self.heading(*at))));
            }
            Conversations::All(paging) => (None, paging),
            Conversations::Matching(filter, paging) => (Some(filter), paging),
        };
        let after = paging.after.as_ref().map(Cursor::pair).transpose()?;
        let mut order: Vec<(i64, i64)> =
            (0..).zip(&self.updated).map(|(at, updated)| (updated.0, at)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let page = order.into_iter().filter(|place| after.is_none_or(|after| *place < after));
        let fitting =
            page.filter(|(_, at)| filter.is_none_or(|filter| self.lets_through(filter, *at as usize)));
        let items = fitting
            .take(paging.limit as usize + 1)
            .map(|(updated, at)| (Cursor::of_pair(updated, at), self.heading(at as usize)));
        Ok(Page::cut(items.collect(), paging.limit))
    }

    fn lets_through(&self, filter: &ConversationFilter, at: usize) -> bool {
        let heading = self.heading(at);
        let holds = |text: Option<&Text>, wanted: &Option<Text>| {
            let is_in =
                |wanted: &Text| text.is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase()));
            wanted.as_ref().is_none_or(is_in)
        };
        let passed: Vec<&Exchange> = self
            .exchanges
            .iter()
            .map(|passed| &passed.exchange)
            .filter(|exchange| exchange.conversation == heading.id)
            .collect();
        let has_failed =
            |exchange: &&Exchange| matches!(exchange.ending.as_deref(), Some("failed" | "broken"));
        let tried = |backend: &Text| {
            let attempts = || passed.iter().flat_map(|exchange| &exchange.attempts);
            attempts().any(|attempt| attempt.backend.eq_ignore_ascii_case(backend))
        };

        filter.fits_id(&heading.id)
            && holds(heading.title.as_ref(), &filter.title)
            && holds(heading.project.as_ref(), &filter.project)
            && (filter.client.is_none()
                || passed.iter().any(|exchange| holds(exchange.client.as_ref(), &filter.client)))
            && filter.backend.as_ref().is_none_or(tried)
            && (!filter.failed || passed.iter().any(has_failed))
            && filter.since.is_none_or(|since| heading.updated >= since)
            && filter.except_identified.as_ref().is_none_or(|except| heading.identified != *except)
    }

    fn heading(&self, at: usize) -> Heading {
        let conversation = &self.conversations[at];
        let setting = |name: &'static str| {
            let scope = Scope::Conversation(conversation.id.clone());
            let setting = self.settings.get(&(scope, Text::from_static(name)));
            setting.and_then(|setting| setting.value.clone())
        };
        let is_of = |passed: &&Passed| passed.exchange.conversation == conversation.id;
        Heading {
            id: conversation.id.clone(),
            created: conversation.at,
            updated: self.updated[at],
            identified: conversation.identified.clone(),
            title: conversation.title.clone(),
            backend: setting("backend"),
            project: setting(PROJECT),
            parent: setting(PARENT).map(ConversationId::new),
            entries: self.nodes.iter().filter(|node| node.conversation == at).count() as u64,
            exchanges: self.exchanges.iter().filter(is_of).count() as u64,
        }
    }

    pub fn entries(&self, which: &Entries) -> Result<Vec<Kept>, StoreError> {
        let nodes: Vec<&Node> = match which {
            Entries::One(id) => self.node(id).map(|at| &self.nodes[at]).into_iter().collect(),
            Entries::Item(id) => self.by_item.get(id).map(|at| &self.nodes[*at]).into_iter().collect(),
            Entries::Branch(tip) => self.branch(tip),
            Entries::Conversation(id) => {
                let conversation = self.by_conversation.get(id);
                self.nodes.iter().filter(|node| Some(&node.conversation) == conversation).collect()
            }
        };
        let mut reader = EntryReader::default();
        nodes.into_iter().map(|node| self.kept(node, &mut reader)).collect()
    }

    fn branch(&self, tip: &EntryId) -> Vec<&Node> {
        let mut branch = Vec::new();
        let mut next = self.node(tip);
        while let Some(at) = next {
            branch.push(&self.nodes[at]);
            next = self.nodes[at].parent;
        }
        branch.reverse();
        branch
    }

    fn kept(&self, node: &Node, reader: &mut EntryReader) -> Result<Kept, StoreError> {
        let blob = |digest| {
            let missing = || StoreError::Damaged("a record is missing".to_owned());
            self.blobs.get(&digest).ok_or_else(missing)
        };
        let mut load = |digest| blob(digest).map(|bytes| bytes.to_vec());
        Ok(Kept {
            id: node.id.to_entry_id(),
            conversation: self.conversations[node.conversation].id.clone(),
            parent: node.parent.map(|parent| self.nodes[parent].id.to_entry_id()),
            exchange: node.exchange.clone(),
            at: node.at,
            entry: reader.decode(blob(node.record)?, node.place, &mut load)?,
        })
    }

    pub fn exchanges(&self, which: &Exchanges) -> Result<Page<Exchange>, StoreError> {
        let one = |at: Option<&usize>| Page::single(at.map(|at| self.exchanges[*at].exchange.clone()));
        match which {
            Exchanges::One(id) => Ok(one(self.by_exchange.get(id))),
            Exchanges::Response(id) => Ok(one(self.by_response.get(id))),
            Exchanges::Of(conversation, paging) => {
                self.exchange_page(paging, |exchange| exchange.conversation == *conversation)
            }
            Exchanges::Since(since, paging) => {
                self.exchange_page(paging, |exchange| exchange.started >= *since)
            }
            Exchanges::All(paging) => self.exchange_page(paging, |_| true),
        }
    }

    fn exchange_page(
        &self,
        paging: &Paging,
        fits: impl Fn(&Exchange) -> bool,
    ) -> Result<Page<Exchange>, StoreError> {
        let end = paging.end(self.exchanges.len())?;
        let items =
            self.exchanges[..end].iter().enumerate().rev().filter(|(_, passed)| fits(&passed.exchange));
        let items = items
            .take(paging.limit as usize + 1)
            .map(|(at, passed)| (Cursor::of(at as i64), passed.exchange.clone()));
        Ok(Page::cut(items.collect(), paging.limit))
    }

    pub fn recording(&self, exchange: &ExchangeId, which: Which) -> Recording {
        let mut recording = Recording::default();
        let Some(at) = self.by_exchange.get(exchange) else { return recording };
        let passed = &self.exchanges[*at];
        for ((attempt, kind), body) in &passed.documents {
            if which.includes_document(*kind) {
                recording.push_document(*attempt, *kind, body.clone());
            }
        }
        if which.includes(Which::Events) {
            let events = |(attempt, events): (&u32, &Vec<_>)| {
                let attempt = *attempt;
                events.clone().into_iter().map(move |event| (attempt, event))
            };
            recording.events = passed.events.iter().flat_map(events).collect();
        }
        if which.includes(Which::Answer) {
            recording.answer.clone_from(&passed.answer);
        }
        recording
    }

    pub fn search(&self, search: &Search) -> Result<Page<Hit>, StoreError> {
        let Some(sieve) = Sieve::new(search) else { return Ok(Page::default()) };
        let end = search.paging.end(self.nodes.len())?;
        let kinds = kinds(search);
        let has_kind = |node: &Node| kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind_tag(node.kind)));
        let mut reader = EntryReader::default();
        let mut items = Vec::new();
        let (mut looked, mut last) = (0, None);
        for (at, node) in self.nodes[..end].iter().enumerate().rev() {
            if items.len() > search.paging.limit as usize {
                break;
            }
            if !self.fits(node, search) || !has_kind(node) {
                continue;
            }
            if sieve.terms().is_empty() && looked == search.effort {
                return Ok(Page::cut_at(items, search.paging.limit, last));
            }
            looked += 1;
            last = Some(Cursor::of(at as i64));
            if !sieve.fits_tool(node.tool.as_deref()) {
                continue;
            }
            let kept = self.kept(node, &mut reader)?;
            let answered = self.answered(&sieve, at, &mut reader)?;
            let answered = answered.as_ref().and_then(|kept| kept.entry.as_call());
            if let Some(found) = sieve.find(&kept.entry, node.tool.as_deref(), answered) {
                items.push((Cursor::of(at as i64), hit(node, kept, found)));
            }
        }
        Ok(Page::cut(items, search.paging.limit))
    }

    /// Returns the call that a result answers, by the latest before it of that id, if it is needed.
    fn answered(
        &self,
        sieve: &Sieve<'_>,
        at: usize,
        reader: &mut EntryReader,
    ) -> Result<Option<Kept>, StoreError> {
        let result = &self.nodes[at];
        if !sieve.needs_call(result.kind) || result.call_id.is_none() {
            return Ok(None);
        }
        let is_call = |node: &&Node| {
            node.kind == KeptKind::Called
                && node.conversation == result.conversation
                && node.call_id == result.call_id
        };
        self.nodes[..at].iter().rfind(is_call).map(|node| self.kept(node, reader)).transpose()
    }

    fn fits(&self, node: &Node, search: &Search) -> bool {
        search.since.is_none_or(|since| node.at >= since)
            && search.until.is_none_or(|until| node.at < until)
            && search.conversation.as_ref().is_none_or(|id| self.conversations[node.conversation].id == *id)
    }

    pub fn standing(&self) -> Standing {
        Standing {
            learned: self.learned.values().cloned().collect(),
            settings: self.settings.values().filter(|made| !describes(&made.name)).cloned().collect(),
        }
    }
}

/// Says whether a setting describes a conversation, and nothing is done by it.
fn describes(name: &str) -> bool {
    [PROJECT, PARENT].contains(&name)
}

fn hit(node: &Node, kept: Kept, found: Found) -> Hit {
    Hit {
        conversation: kept.conversation,
        entry: kept.id,
        exchange: kept.exchange,
        at: kept.at,
        kind: node.kind,
        tool: node.tool.clone(),
        exit_code: found.exit_code,
        snippet: found.snippet,
    }
}
