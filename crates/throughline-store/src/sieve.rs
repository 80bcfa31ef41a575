//! The sieve: what an entry must be to be found, where neither a column nor the index of words can tell.
//!
//! All stores read candidates by their columns and put them through this, so that all of them find the same.

use throughline_core::plan::{Subjects, is_same_tool};
use throughline_core::{Call, Entry, Kind, exit_code};

use crate::words::{Findable, Term, phrase, terms};
use crate::{KeptKind, Search};

/// What an entry must be to be found.
#[derive(Debug)]
pub(crate) struct Sieve<'s> {
    search: &'s Search,
    terms: Vec<Term>,
    path: Option<Term>,
    command: Option<Term>,
}

/// What is told of an entry that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub snippet: String,
    pub exit_code: Option<i32>,
}

impl<'s> Sieve<'s> {
    /// Returns the sieve of a search; nothing if it asks for words, but for none that can be looked for.
    pub fn new(search: &'s Search) -> Option<Self> {
        let phrase = |text: &Option<String>| match text {
            Some(text) => phrase(text).map(Some),
            None => Some(None),
        };
        let (path, command) = (phrase(&search.path)?, phrase(&search.command)?);
        Some(Self { search, terms: terms(&search.words)?, path, command })
    }

    /// Returns the words that must occur.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Says whether candidates may fall through: whether more is asked than columns tell.
    pub fn holds_back(&self) -> bool {
        self.asks_for_call() || self.search.tool.is_some() || self.search.failed
    }

    /// Says whether an entry of that tool may fit; asked before the entry is read.
    pub fn fits_tool(&self, tool: Option<&str>) -> bool {
        let wanted = self.search.tool.as_deref();
        wanted.is_none_or(|wanted| tool.is_some_and(|tool| is_same_tool(wanted, tool)))
    }

    /// Says whether an entry of that kind cannot be judged without the call that it answers.
    pub fn needs_call(&self, kind: KeptKind) -> bool {
        self.asks_for_call() && matches!(kind, KeptKind::Returned(_))
    }

    /// Looks at an entry, with the tool that it is filed under, and for a result with its call.
    pub fn find(&self, entry: &Entry, tool: Option<&str>, answered: Option<&Call>) -> Option<Found> {
        let (call, code) = match &entry.kind {
            Kind::Called(call) => (Some(call), None),
            Kind::Returned(returned) => {
                let code = exit_code(tool, returned);
                let has_failed = returned.outcome.is_error() || code.is_some_and(|code| code != 0);
                if self.search.failed && !has_failed {
                    return None;
                }
                (answered, code)
            }
            _ => (None, None),
        };
        if self.asks_for_call() && !call.is_some_and(|call| self.fits_call(call)) {
            return None;
        }
        let found = Findable::of(entry);
        let fits = found.matches(&self.terms, self.search.field);
        fits.then(|| Found { snippet: found.snippet(&self.terms, self.search.field), exit_code: code })
    }

    const fn asks_for_call(&self) -> bool {
        self.path.is_some() || self.command.is_some()
    }

    fn fits_call(&self, call: &Call) -> bool {
        let subjects = Subjects::of(call);
        let holds = |term: &Option<Term>, texts: &[String]| {
            term.as_ref().is_none_or(|term| texts.iter().any(|text| term.occurs_in(text)))
        };
        holds(&self.path, &subjects.paths) && holds(&self.command, subjects.command.as_slice())
    }
}
