//! Decisions: what was decided about the entries of a history, in a form that outlives the process (R36).
//!
//! A decision sticks: later plans may only go further. It says what is kept of an entry by ranges of its text,
//! so that rendering it again costs nothing and gives the same bytes, whatever the planner has learned since.
//! The text form has a version of its own and no dependencies; the store keeps it as it is.

use super::digest::HEADING;
use super::handle::stamp;
use super::{Count, Handle, Tokens};
use crate::{Entry, Text};
use std::fmt::Write as _;
use std::ops::Range;

/// What was decided about one entry; entries that are not named are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A later result says the same, or the same about a newer state.
    Superseded {
        /// The index of the entry that supersedes it.
        by: u32,
    },
    /// Only these byte ranges of its text are shown.
    Excerpt(Vec<Range<u32>>),
    /// Only a line that says what is missing.
    Masked,
    /// It went into the summary of the span.
    Summarised,
    /// It is left out.
    Dropped,
    /// The client asked to have it cleared.
    Cleared,
}

/// A decision about an entry, with what recognises the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The index of the entry.
    pub entry: u32,
    /// Stands for what the entry says; a decision about another text is void.
    pub stamp: u64,
    /// By which the model can have it back.
    pub handle: Handle,
    /// What was decided.
    pub decision: Decision,
    /// Whether it shows a file that was written since.
    pub stale: bool,
    /// The size of the entry as it came.
    pub from: Tokens,
    /// Its size as it is shown.
    pub tokens: Tokens,
}

/// The oldest part of a history, in few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The index of the first entry that it stands for; there it is shown.
    pub at: u32,
    /// How many entries it stands for.
    pub covers: u32,
    /// The words.
    pub text: Text,
    /// Their size.
    pub tokens: Tokens,
}

/// All decisions about a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// In the order of the entries.
    pub(super) taken: Vec<Taken>,
    pub(super) span: Option<Span>,
}

/// Why a stored form was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionsError {
    /// It was written by a version that this one does not know.
    #[error("the stored decisions begin with \"{0}\" instead of \"{HEAD}\"")]
    Version(String),
    /// A line is not what it should be.
    #[error("line {0} of the stored decisions cannot be read")]
    Line(usize),
}

const HEAD: &str = "decisions 1";

impl Decisions {
    /// Says whether nothing was decided yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.span.is_none()
    }

    /// Returns the decisions, in the order of the entries.
    #[must_use]
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Returns the span that is shown as a summary.
    #[must_use]
    pub fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    /// Returns the decision about an entry; none if it is kept as it is.
    #[must_use]
    pub fn about(&self, entry: usize) -> Option<&Taken> {
        let entry = u32::try_from(entry).ok()?;
        let at = self.taken.binary_search_by_key(&entry, |taken| taken.entry).ok()?;
        self.taken.get(at)
    }

    /// Returns how many of the decisions, from the first on, are about what `entries` say.
    #[must_use]
    pub fn matching(&self, entries: &[Entry]) -> usize {
        let is_about = |taken: &&Taken| {
            entries.get(taken.entry as usize).is_some_and(|entry| stamp(entry) == taken.stamp)
        };
        self.taken.iter().take_while(is_about).count()
    }

    /// Returns what was decided since `before`: what is new, and what was decided again. None if something of
    /// `before` was taken back, so that these decisions are no continuation of those.
    #[must_use]
    pub fn added_since(&self, before: &Self) -> Option<Self> {
        let is_there = |taken: &Taken| self.about(taken.entry as usize).is_some();
        if !before.taken.iter().all(is_there) || (before.span.is_some() && self.span.is_none()) {
            return None;
        }
        let is_new = |taken: &&Taken| before.about(taken.entry as usize) != Some(*taken);
        let taken = self.taken.iter().filter(is_new).cloned().collect();
        let span = self.span.clone().filter(|span| before.span.as_ref() != Some(span));
        Some(Self { taken, span })
    }

    /// Takes in what was decided since, as [`Decisions::added_since`] returned it.
    pub fn add(&mut self, later: Self) {
        for taken in later.taken {
            match self.taken.binary_search_by_key(&taken.entry, |earlier| earlier.entry) {
                Ok(at) => self.taken[at] = taken,
                Err(at) => self.taken.insert(at, taken),
            }
        }
        self.span = later.span.or_else(|| self.span.take());
    }

    /// Returns what a step starts from that decides anew from an entry on: what was decided about all before it, and what
    /// the client asked for.
    pub(super) fn before(&self, place: usize) -> Self {
        let stays = |taken: &&Taken| (taken.entry as usize) < place || taken.decision == Decision::Cleared;
        let taken = self.taken.iter().filter(stays).cloned().collect();
        Self { taken, span: self.span.clone().filter(|span| (span.at as usize) < place) }
    }

    /// Returns the words of a model that stand in the place of the digest, or in front of it.
    pub(super) fn words(&self) -> Option<String> {
        let text = &self.span.as_ref()?.text;
        let words = text.split(HEADING).next().unwrap_or_default().trim_end();
        (!words.is_empty()).then(|| words.to_owned())
    }

    /// Puts the words of a model in the place of the digest, of which only the line stays that says how to have
    /// back what was left out; without a span nothing happens.
    ///
    /// The prompt changes from there on, so this is best done while the provider's cache is cold.
    pub fn retell(&mut self, words: &str, count: &dyn Count) {
        let Some(span) = &mut self.span else { return };
        let at = span.text.find(HEADING).unwrap_or(span.text.len());
        let heading = span.text[at..].lines().next().unwrap_or_default();
        let text = format!("{}\n{heading}", words.trim_end());
        span.tokens = count.count(&text) + count.around_entry();
        span.text = text.into();
    }

    /// Changes the words of the summary, if there is one.
    pub fn change_span_text(&mut self, change: impl FnOnce(&str) -> String) {
        if let Some(span) = &mut self.span {
            span.text = change(&span.text).into();
        }
    }

    /// Writes the stored form.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from(HEAD);
        for taken in &self.taken {
            let Taken { entry, stamp, handle, stale, from, tokens, .. } = taken;
            let (letter, detail) = letter(&taken.decision);
            let stale = if *stale { "stale" } else { "-" };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{entry} {stamp:016x} {handle} {from} {tokens} {stale} {letter}{detail}");
        }
        if let Some(Span { at, covers, text: words, tokens }) = &self.span {
            let words = words.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = write!(text, "\nspan {at} {covers} {tokens} {words}");
        }
        text
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is of another version, or damaged.
    pub fn from_text(text: &str) -> Result<Self, DecisionsError> {
        let mut lines = text.split('\n');
        let head = lines.next().unwrap_or_default();
        if head != HEAD {
            return Err(DecisionsError::Version(head.chars().take(40).collect()));
        }
        let mut decisions = Self::default();
        for (number, line) in lines.enumerate() {
            let bad = || DecisionsError::Line(number + 2);
            match line.strip_prefix("span ") {
                Some(span) => decisions.span = Some(read_span(span).ok_or_else(bad)?),
                None => decisions.taken.push(read_taken(line).ok_or_else(bad)?),
            }
        }
        if !decisions.taken.is_sorted_by(|a, b| a.entry < b.entry) {
            return Err(DecisionsError::Line(2));
        }
        Ok(decisions)
    }
}

fn letter(decision: &Decision) -> (char, String) {
    match decision {
        Decision::Superseded { by } => ('s', by.to_string()),
        Decision::Excerpt(ranges) => {
            let ranges: Vec<_> =
                ranges.iter().map(|range| format!("{}-{}", range.start, range.end)).collect();
            ('e', ranges.join(","))
        }
        Decision::Masked => ('m', String::new()),
        Decision::Summarised => ('z', String::new()),
        Decision::Dropped => ('d', String::new()),
        Decision::Cleared => ('c', String::new()),
    }
}

fn read_taken(line: &str) -> Option<Taken> {
    let mut words = line.split(' ');
    let taken = Taken {
        entry: words.next()?.parse().ok()?,
        stamp: u64::from_str_radix(words.next()?, 16).ok()?,
        handle: Handle::parse(words.next()?)?,
        from: Tokens(words.next()?.parse().ok()?),
        tokens: Tokens(words.next()?.parse().ok()?),
        stale: match words.next()? {
            "stale" => true,
            "-" => false,
            _ => return None,
        },
        decision: read_decision(words.next()?)?,
    };
    words.next().is_none().then_some(taken)
}

fn read_decision(word: &str) -> Option<Decision> {
    let detail = word.get(1..)?;
    Some(match (word.as_bytes().first()?, detail) {
        (b's', by) => Decision::Superseded { by: by.parse().ok()? },
        (b'e', ranges) => Decision::Excerpt(ranges.split(',').map(read_range).collect::<Option<_>>()?),
        (b'm', "") => Decision::Masked,
        (b'z', "") => Decision::Summarised,
        (b'd', "") => Decision::Dropped,
        (b'c', "") => Decision::Cleared,
        _ => return None,
    })
}

fn read_range(text: &str) -> Option<Range<u32>> {
    let (start, end) = text.split_once('-')?;
    Some(start.parse().ok()?..end.parse().ok()?)
}

fn read_span(text: &str) -> Option<Span> {
    let mut words = text.splitn(4, ' ');
    let (at, covers) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let tokens = Tokens(words.next()?.parse().ok()?);
    let mut told = String::new();
    let mut escaped = false;
    for c in words.next()?.chars() {
        match (escaped, c) {
            (false, '\\') => {}
            (true, 'n') => told.push('\n'),
            (_, c) => told.push(c),
        }
        escaped = !escaped && c == '\\';
    }
    Some(Span { at, covers, text: told.into(), tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(entry: u32, decision: Decision) -> Taken {
        let handle = Handle::parse("abcdefgh").unwrap();
        Taken { entry, stamp: 7, handle, decision, stale: entry == 1, from: Tokens(90), tokens: Tokens(9) }
    }

    #[test]
    fn decisions_outlive_the_process() {
        let decisions = Decisions {
            taken: vec![
                taken(1, Decision::Superseded { by: 9 }),
                taken(2, Decision::Excerpt(vec![0..5, 9..12])),
                taken(3, Decision::Masked),
                taken(5, Decision::Summarised),
                taken(6, Decision::Dropped),
                taken(7, Decision::Cleared),
            ],
            span: Some(Span { at: 5, covers: 1, text: "a\\n b\nc".into(), tokens: Tokens(3) }),
        };
        let text = decisions.to_text();
        assert_eq!(Decisions::from_text(&text).as_ref(), Ok(&decisions));
        assert_eq!(decisions.about(3).map(|taken| &taken.decision), Some(&Decision::Masked));
        assert_eq!(decisions.about(4), None);
    }

    #[test]
    fn what_is_added_makes_the_later_decisions_of_the_earlier() {
        let span = |text: &str| Some(Span { at: 1, covers: 1, text: text.into(), tokens: Tokens(3) });
        let before =
            Decisions { taken: vec![taken(1, Decision::Masked), taken(3, Decision::Masked)], span: None };
        let mut after = before.clone();
        after.taken[1].decision = Decision::Dropped;
        after.taken.insert(1, taken(2, Decision::Masked));
        after.taken.push(taken(9, Decision::Summarised));
        after.span = span("words");
        let added = after.added_since(&before).unwrap();
        assert_eq!(added.taken.iter().map(|taken| taken.entry).collect::<Vec<_>>(), [2, 3, 9]);
        let mut put_together = before.clone();
        put_together.add(Decisions::from_text(&added.to_text()).unwrap());
        assert_eq!(put_together, after);
        assert_eq!(after.added_since(&after), Some(Decisions::default()));
        assert_eq!(before.added_since(&after), None, "what was taken back is no continuation");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_the_line() {
        let error = |text| Decisions::from_text(text).unwrap_err();
        assert_eq!(error("decisions 9"), DecisionsError::Version("decisions 9".to_owned()));
        assert_eq!(error("decisions 1\n1 2 3"), DecisionsError::Line(2));
        let whole = Decisions { taken: vec![taken(3, Decision::Masked)], span: None }.to_text();
        assert_eq!(error(&format!("{whole}x")), DecisionsError::Line(2));
        assert_eq!(Decisions::from_text("decisions 1"), Ok(Decisions::default()));
    }
}
