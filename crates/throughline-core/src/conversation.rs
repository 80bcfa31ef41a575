//! Conversations: append-only trees of entries.
//!
//! Every entry knows the one before it. A client that goes on where it was extends a branch; one that
//! rewrites its past starts another from the last entry that it left alone. Nothing is ever taken out, so
//! each branch can be read for as long as the conversation lives.

use crate::{ConversationId, Entry, EntryId, Ledger};
use std::collections::BTreeMap;

/// A durable thread of work.
#[derive(Clone, Debug)]
pub struct Conversation {
    id: ConversationId,
    nodes: BTreeMap<EntryId, Node>,
    /// Entries in the order in which they were appended.
    order: Vec<EntryId>,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<EntryId>,
    children: Vec<EntryId>,
    entry: Entry,
}

/// Why an entry was not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The entry that it should follow is not in the conversation.
    #[error("entry {0} is not in the conversation, so nothing can follow it")]
    UnknownParent(EntryId),
    /// There is an entry of that id already; history is not rewritten.
    #[error("entry {0} is in the conversation already")]
    Taken(EntryId),
}

/// How much of a resent history a conversation knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The last known entry, which the new ones follow; nothing if none is known.
    pub last: Option<EntryId>,
    /// How many entries, from the first, are known.
    pub entries: usize,
    /// Whether the known ones have been followed by something else before: a branch.
    pub branches: bool,
}

impl Conversation {
    /// Returns a conversation in which nothing has happened yet.
    #[must_use]
    pub const fn new(id: ConversationId) -> Self {
        Self { id, nodes: BTreeMap::new(), order: Vec::new() }
    }

    /// Returns the conversation's id.
    #[must_use]
    pub const fn id(&self) -> &ConversationId {
        &self.id
    }

    /// Appends an entry behind `parent`, or as a beginning of its own.
    ///
    /// # Errors
    /// When the parent is unknown or the id is taken; nothing is changed then.
    pub fn append(&mut self, parent: Option<&EntryId>, id: EntryId, entry: Entry) -> Result<(), AppendError> {
        if self.nodes.contains_key(&id) {
            return Err(AppendError::Taken(id));
        }
        if let Some(parent) = parent {
            let node =
                self.nodes.get_mut(parent).ok_or_else(|| AppendError::UnknownParent(parent.clone()))?;
            node.children.push(id.clone());
        }
        self.order.push(id.clone());
        self.nodes.insert(id, Node { parent: parent.cloned(), children: Vec::new(), entry });
        Ok(())
    }

    /// Returns the entries from the beginning to `last`; none if `last` is unknown.
    #[must_use]
    pub fn branch(&self, last: &EntryId) -> Vec<&Entry> {
        let mut entries = Vec::new();
        let mut next = self.nodes.get(last);
        while let Some(node) = next {
            entries.push(&node.entry);
            next = node.parent.as_ref().and_then(|parent| self.nodes.get(parent));
        }
        entries.reverse();
        entries
    }

    /// Returns the ends of all branches, in the order in which they were appended.
    pub fn tips(&self) -> impl Iterator<Item = &EntryId> {
        self.order.iter().filter(|id| self.nodes.get(id).is_some_and(|node| node.children.is_empty()))
    }

    /// Returns the pairs of the branch that ends in `last`.
    #[must_use]
    pub fn ledger(&self, last: &EntryId) -> Ledger {
        let entries: Vec<Entry> = self.branch(last).into_iter().cloned().collect();
        Ledger::of(&entries)
    }

    /// Finds the longest beginning of `resent` that the conversation knows.
    #[must_use]
    pub fn known(&self, resent: &[Entry]) -> Known {
        let mut known = Known { last: None, entries: 0, branches: !self.order.is_empty() };
        for entry in resent {
            let Some(next) = self.following(known.last.as_ref(), entry) else { break };
            known.branches = self.nodes.get(&next).is_some_and(|node| !node.children.is_empty());
            known.last = Some(next);
            known.entries += 1;
        }
        known
    }

    /// Returns the latest entry behind `parent` that says the same as `entry`.
    fn following(&self, parent: Option<&EntryId>, entry: &Entry) -> Option<EntryId> {
        let says_the_same =
            |id: &&EntryId| self.nodes.get(*id).is_some_and(|node| node.entry.kind == entry.kind);
        match parent {
            Some(parent) => self.nodes.get(parent)?.children.iter().rev().find(says_the_same).cloned(),
            None => {
                let is_first = |id: &&EntryId| self.nodes.get(*id).is_some_and(|node| node.parent.is_none());
                self.order.iter().rev().filter(is_first).find(says_the_same).cloned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn said(text: &str) -> Entry {
        Entry::said(Role::User, text)
    }

    fn id(id: &str) -> EntryId {
        EntryId::new(id)
    }

    /// A conversation of `a b c`, with `d` as another continuation of `a`.
    fn forked() -> Conversation {
        let mut conversation = Conversation::new(ConversationId::new("conversation"));
        conversation.append(None, id("1"), said("a")).unwrap();
        conversation.append(Some(&id("1")), id("2"), said("b")).unwrap();
        conversation.append(Some(&id("2")), id("3"), said("c")).unwrap();
        conversation.append(Some(&id("1")), id("4"), said("d")).unwrap();
        conversation
    }

    #[test]
    fn each_branch_is_read_from_its_beginning() {
        let conversation = forked();
        assert_eq!(conversation.branch(&id("3")), [&said("a"), &said("b"), &said("c")]);
        assert_eq!(conversation.branch(&id("4")), [&said("a"), &said("d")]);
        assert_eq!(conversation.tips().cloned().collect::<Vec<_>>(), [id("3"), id("4")]);
    }

    #[test]
    fn a_resent_history_is_known_as_far_as_it_was_not_rewritten() {
        let conversation = forked();
        let known = conversation.known(&[said("a"), said("b"), said("c"), said("new")]);
        assert_eq!(known, Known { last: Some(id("3")), entries: 3, branches: false });
        let known = conversation.known(&[said("a"), said("b"), said("other")]);
        assert_eq!(known, Known { last: Some(id("2")), entries: 2, branches: true });
        let known = conversation.known(&[said("elsewhere")]);
        assert_eq!(known, Known { last: None, entries: 0, branches: true });
    }

    #[test]
    fn history_is_only_appended_to() {
        let mut conversation = forked();
        let taken = conversation.append(None, id("1"), said("z"));
        assert_eq!(taken, Err(AppendError::Taken(id("1"))));
        let unknown = conversation.append(Some(&id("9")), id("5"), said("z"));
        assert_eq!(unknown, Err(AppendError::UnknownParent(id("9"))));
        assert_eq!(conversation.branch(&id("1")), [&said("a")]);
    }
}
