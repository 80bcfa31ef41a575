//! Takes conversations out of memory. Everything is named by its index, so what stays is numbered anew.

use std::collections::BTreeSet;

use super::state::State;
use crate::Scope;
use crate::digest::Digest;
use crate::record::envelope_of;
use crate::upkeep::{Candidate, Outworn, Prune, Pruned, beyond};

impl State {
    pub fn prune(&mut self, prune: &Prune) -> Pruned {
        let outworn = self.outworn(&prune.which);
        let gone: BTreeSet<usize> = outworn.iter().map(|candidate| candidate.n as usize).collect();
        let of_gone = |exchange: &&super::state::Passed| {
            self.by_conversation.get(&exchange.exchange.conversation).is_some_and(|at| gone.contains(at))
        };
        let mut pruned = Pruned {
            entries: self.nodes.iter().filter(|node| gone.contains(&node.conversation)).count() as u64,
            exchanges: self.exchanges.iter().filter(of_gone).count() as u64,
            conversations: outworn.into_iter().map(|candidate| candidate.id).collect(),
            contents: 0,
        };
        if !prune.dry_run {
            pruned.contents = self.take_out(&gone);
        }
        pruned
    }

    fn outworn(&self, which: &Outworn) -> Vec<Candidate> {
        let mut all: Vec<usize> = (0..self.conversations.len()).collect();
        all.sort_by_key(|at| (self.updated[*at], *at));
        let all = all.into_iter().map(|at| Candidate {
            n: at as i64,
            id: self.conversations[at].id.clone(),
            bytes: self.bytes_of(at),
        });
        match which {
            Outworn::These(ids) => all.filter(|candidate| ids.contains(&candidate.id)).collect(),
            Outworn::Before(moment) => {
                all.filter(|candidate| self.updated[candidate.n as usize] < *moment).collect()
            }
            Outworn::Beyond(keep) => beyond(all.collect(), *keep),
        }
    }

    fn bytes_of(&self, conversation: usize) -> u64 {
        let nodes = self.nodes.iter().filter(|node| node.conversation == conversation);
        let records = nodes.map(|node| self.blobs.get(&node.record).map_or(0, |blob| blob.len()));
        records.sum::<usize>() as u64
    }

    /// Takes out the conversations of those indexes, and returns how many records went with them.
    fn take_out(&mut self, gone: &BTreeSet<usize>) -> u64 {
        let moved = |stays: &[bool]| -> Vec<Option<usize>> {
            let mut numbers = 0..;
            stays.iter().map(|stays| if *stays { numbers.next() } else { None }).collect()
        };
        let conversations =
            moved(&(0..self.conversations.len()).map(|at| !gone.contains(&at)).collect::<Vec<_>>());
        let nodes =
            moved(&self.nodes.iter().map(|node| !gone.contains(&node.conversation)).collect::<Vec<_>>());
        let by_conversation = &self.by_conversation;
        let stays = |passed: &super::state::Passed| {
            by_conversation.get(&passed.exchange.conversation).is_none_or(|at| !gone.contains(at))
        };
        let exchanges = moved(&self.exchanges.iter().map(stays).collect::<Vec<_>>());

        let mut at = 0..;
        self.exchanges.retain(|_| at.next().is_some_and(|at| exchanges[at].is_some()));
        let mut at = 0..;
        self.nodes.retain(|_| at.next().is_some_and(|at: usize| nodes[at].is_some()));
        for node in &mut self.nodes {
            node.conversation = conversations[node.conversation].unwrap_or_default();
            node.parent = node.parent.and_then(|parent| nodes[parent]);
        }
        let mut at = 0..;
        self.conversations.retain(|_| at.next().is_some_and(|at: usize| conversations[at].is_some()));
        let mut at = 0..;
        self.updated.retain(|_| at.next().is_some_and(|at: usize| conversations[at].is_some()));

        renumber(&mut self.by_conversation, &conversations);
        renumber(&mut self.keys, &conversations);
        renumber(&mut self.by_node, &nodes);
        renumber(&mut self.by_item, &nodes);
        renumber(&mut self.by_exchange, &exchanges);
        renumber(&mut self.by_response, &exchanges);
        self.by_chain.retain(|_, at| {
            *at = at.iter().filter_map(|at| nodes[*at]).collect();
            !at.is_empty()
        });
        let there = &self.by_conversation;
        self.compaction.retain(|step| there.contains_key(&step.conversation));
        self.settings.retain(|(scope, _), _| match scope {
            Scope::Conversation(id) => there.contains_key(id),
            Scope::Everywhere => true,
        });
        self.drop_unused_blobs()
    }

    fn drop_unused_blobs(&mut self) -> u64 {
        let records: BTreeSet<Digest> = self.nodes.iter().map(|node| node.record).collect();
        let envelope = |record: &Digest| envelope_of(self.blobs.get(record)?).ok().flatten();
        let envelopes: BTreeSet<Digest> = records.iter().filter_map(envelope).collect();
        let before = self.blobs.len();
        self.blobs.retain(|digest, _| records.contains(digest) || envelopes.contains(digest));
        (before - self.blobs.len()) as u64
    }
}

/// Gives everything that stays its new index, and takes out the rest.
fn renumber<K: Ord>(by: &mut std::collections::BTreeMap<K, usize>, moved: &[Option<usize>]) {
    by.retain(|_, at| match moved[*at] {
        Some(new) => {
            *at = new;
            true
        }
        None => false,
    });
}
