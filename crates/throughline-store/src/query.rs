//! Questions to the history, and the shape of what comes back.

use throughline_core::{ConversationId, EntryId, Text};

use crate::{Chain, DocumentKind, ExchangeId, Moment, StoreError};

/// Where in the history a request may continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locate {
    /// Behind the longest beginning of a resent history that is known.
    Prefix {
        /// Only in this conversation.
        within: Option<ConversationId>,
        /// The chain up to each entry of the resent history: see [`crate::chains`].
        chains: Vec<Chain>,
    },
    /// In the conversation that goes by this key, behind what was appended to it last.
    Key(Text),
    /// In the conversation of this id, behind what was appended to it last.
    Conversation(ConversationId),
}

/// A place in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The conversation.
    pub conversation: ConversationId,
    /// The entry that new ones follow; none in a conversation without entries.
    pub entry: Option<EntryId>,
    /// How many entries of the resent history are known, counted from its beginning.
    pub known: usize,
    /// Whether something follows that entry already, so that going on from it makes a branch.
    pub followed: bool,
}

/// Which conversations to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversations {
    /// The one of this id.
    One(ConversationId),
    /// All of them, by when something was last added.
    All(Paging),
    /// Those that a filter lets through, by when something was last added.
    Matching(Box<ConversationFilter>, Paging),
}

/// Which conversations to list. Everything that is given must hold; words are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only those whose id begins so, with or without `conv_`, or whose [short form](short_id) does.
    pub id: Option<Text>,
    /// Only those with this in their title.
    pub title: Option<Text>,
    /// Only those with an exchange of a client whose name contains this.
    pub client: Option<Text>,
    /// Only those with an attempt at this backend.
    pub backend: Option<Text>,
    /// Only those that work in a directory whose path contains this.
    pub project: Option<Text>,
    /// Only those with an exchange that failed or broke off.
    pub failed: bool,
    /// Only those to which something was added from then on.
    pub since: Option<Moment>,
    /// None of those that were identified so.
    pub except_identified: Option<Text>,
}

/// How many characters the short form of an id has at most.
const SHORT_ID_CHARS: usize = 12;

/// Returns the short form of an id: its last twelve characters, or what stands behind the dot in that of a sub-agent.
///
/// Ids that are made here, and most of those that agents make, begin with the time and end with what was drawn at random.
#[must_use]
pub fn short_id(id: &ConversationId) -> &str {
    let own = id.as_str().strip_prefix("conv_").unwrap_or(id.as_str());
    if let Some((_, agent)) = own.rsplit_once('.').filter(|(_, agent)| !agent.is_empty()) {
        return agent;
    }
    match own.char_indices().rev().nth(SHORT_ID_CHARS - 1) {
        Some((start, _)) => &own[start..],
        None => own,
    }
}

impl ConversationFilter {
    /// Says whether an id begins as the filter wants it.
    #[must_use]
    pub fn fits_id(&self, id: &ConversationId) -> bool {
        let Some(wanted) = self.id.as_deref() else { return true };
        let own = id.as_str().strip_prefix("conv_").unwrap_or(id.as_str());
        [id.as_str(), own, short_id(id)].iter().any(|form| form.starts_with(wanted))
    }
}

/// Which entries to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Those from the beginning to this one, in their order.
    Branch(EntryId),
    /// All of a conversation, with every branch, in the order in which they were appended.
    Conversation(ConversationId),
    /// The one of this id.
    One(EntryId),
    /// The one that a client knows as the item of this id; the latest, if there are several.
    Item(Text),
}

/// Which exchanges to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchanges {
    /// The one of this id.
    One(ExchangeId),
    /// The one that answered with the response of this id.
    Response(Text),
    /// Those of a conversation.
    Of(ConversationId, Paging),
    /// Those that began at this moment or later.
    Since(Moment, Paging),
    /// All of them.
    All(Paging),
}

/// What to read of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The requests as they were sent.
    Sent,
    /// The client's request as it came.
    Received,
    /// Where what was sent comes from.
    Provenance,
    /// What was changed for the backends.
    Reports,
    /// All of these documents.
    Documents,
    /// The provider's events.
    Events,
    /// The final answer.
    Answer,
    /// All of that.
    Everything,
}

/// What to search for. Everything that is given must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The words, each of which must occur; `"several words"` must occur in that order, and so must the
    /// pieces of `src/main.rs`; `test*` stands for every word that begins so. Empty finds everything.
    pub words: String,
    /// Only there.
    pub field: Option<Field>,
    /// Only calls and results of this tool, whatever its case, its prefix, and which of its names an agent uses.
    pub tool: Option<Text>,
    /// Only calls that name a file or directory in which these words stand side by side, and their results;
    /// `src/te*` stands for every path that goes on so.
    pub path: Option<String>,
    /// Only calls that run a command in which these words stand side by side, and their results.
    pub command: Option<String>,
    /// Only results that are failures, or of commands that ended with another exit code than 0.
    pub failed: bool,
    /// Only in this conversation.
    pub conversation: Option<ConversationId>,
    /// Only from this moment on.
    pub since: Option<Moment>,
    /// Only before this moment.
    pub until: Option<Moment>,
    /// How much of it to return.
    pub paging: Paging,
    /// How many entries are looked at for a page where no words lead to those that fit. A page that ends for that reason
    /// says where to go on, however little is on it.
    pub effort: u32,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            words: String::new(),
            field: None,
            tool: None,
            path: None,
            command: None,
            failed: false,
            conversation: None,
            since: None,
            until: None,
            paging: Paging::default(),
            effort: 20_000,
        }
    }
}

/// Where a word may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// In what was said and thought.
    Talk,
    /// In what a tool was given: paths, commands, patterns.
    Input,
    /// In what a tool returned: contents, output, errors.
    Output,
}

/// How much of a list to return, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// The place to continue from: what the page before gave as `next`.
    pub after: Option<Cursor>,
    /// How many at most.
    pub limit: u32,
}

/// A place in a list to continue from, to be handed back as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub Text);

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on the page.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor>,
}

impl Default for Paging {
    fn default() -> Self {
        Self { after: None, limit: 50 }
    }
}

impl Paging {
    /// Returns the first page with up to `limit` items.
    #[must_use]
    pub const fn first(limit: u32) -> Self {
        Self { after: None, limit }
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl<T> Page<T> {
    /// Returns the page of at most one item.
    #[must_use]
    pub fn single(item: Option<T>) -> Self {
        Self { items: item.into_iter().collect(), next: None }
    }

    /// Makes a page of one item more than asked for: the last one says where to go on.
    pub(crate) fn cut(mut items: Vec<(Cursor, T)>, limit: u32) -> Self {
        let limit = limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|(cursor, _)| cursor.clone());
        Self { items: items.into_iter().map(|(_, item)| item).collect(), next }
    }

    /// Does the same for a list of which no more was looked at than up to `stopped`.
    pub(crate) fn cut_at(items: Vec<(Cursor, T)>, limit: u32, stopped: Option<Cursor>) -> Self {
        let page = Self::cut(items, limit);
        Self { next: page.next.or(stopped), ..page }
    }
}

impl Cursor {
    /// Returns the place behind the item of that number.
    pub(crate) fn of(number: i64) -> Self {
        Self(number.to_string().into())
    }

    /// Returns the place behind the item that is sorted by two numbers.
    pub(crate) fn of_pair(first: i64, second: i64) -> Self {
        Self(format!("{first}.{second}").into())
    }

    pub(crate) fn number(&self) -> Result<i64, StoreError> {
        self.0.parse().map_err(|_| self.bad())
    }

    pub(crate) fn pair(&self) -> Result<(i64, i64), StoreError> {
        let pair = self.0.split_once('.').and_then(|(first, second)| {
            let first = first.parse().ok()?;
            Some((first, second.parse().ok()?))
        });
        pair.ok_or_else(|| self.bad())
    }

    fn bad(&self) -> StoreError {
        StoreError::BadCursor(self.0.to_string())
    }
}

impl Paging {
    /// Returns where a list of `count` items, which is read backwards, begins on this page.
    pub(crate) fn end(&self, count: usize) -> Result<usize, StoreError> {
        let Some(after) = &self.after else { return Ok(count) };
        Ok(usize::try_from(after.number()?).map_or(0, |after| after.min(count)))
    }
}

impl Which {
    pub(crate) fn includes(self, which: Self) -> bool {
        self == Self::Everything || self == which
    }

    /// Says whether documents of a kind are asked for.
    pub(crate) fn includes_document(self, kind: DocumentKind) -> bool {
        let which = match kind {
            DocumentKind::Sent => Self::Sent,
            DocumentKind::Received => Self::Received,
            DocumentKind::Provenance => Self::Provenance,
            DocumentKind::Report => Self::Reports,
        };
        self == Self::Documents || self.includes(which)
    }

    /// Says whether documents of any kind are asked for.
    pub(crate) fn includes_documents(self) -> bool {
        DocumentKind::ALL.into_iter().any(|kind| self.includes_document(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_by_its_beginning_and_by_its_random_end() {
        let of = |id: &str| short_id(&ConversationId::new(id)).to_owned();
        assert_eq!(of("conv_0198c2f4e1a07b3c9d5e6f708192a3b4"), "6f708192a3b4");
        assert_eq!(of("conv_9b1c0d1e-1111-4222-8333-0123456789ab"), "0123456789ab");
        assert_eq!(of("conv_9b1c0d1e-1111-4222-8333-0123456789ab.a7f3"), "a7f3");
        assert_eq!(of("conv_t"), "t");
        assert_eq!(of("mine"), "mine");
        let fits = |wanted: &str| {
            let filter = ConversationFilter { id: Some(wanted.into()), ..ConversationFilter::default() };
            filter.fits_id(&ConversationId::new("conv_0198c2f4e1a07b3c9d5e6f708192a3b4"))
        };
        assert!(["conv_0198", "0198c", "6f7", "6f708192a3b4"].iter().all(|wanted| fits(wanted)));
        assert!(!fits("708192a3b4") && !fits("7b3c"));
    }
}
