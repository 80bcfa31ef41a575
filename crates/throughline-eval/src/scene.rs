//! A run with everything that was ever made of it: units as policies show them, each made once.

use crate::atoms::{Atom, Atoms, Facts, Interner, contains, leaf_values, walk};
use crate::excerpt::{Segment, segments};
use crate::python::{head, len, tail};
use crate::trajectory::{Kind, Trajectory, Unit};
use serde_json::Value;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use throughline_core::Entry;
use throughline_tokens::Vocabulary;

/// Longer values of arguments are excerpted, shorter ones kept.
const SMALL_CHARS_MAX: usize = 160;

/// How a unit is shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// As it came.
    Full,
    /// A line that says what is missing.
    Mask,
    /// Its first characters.
    Head(usize),
    /// Its first and last characters, that many in all.
    HeadTail(usize),
    /// Its most telling atoms, with that many of its first and last characters.
    Digest {
        /// How many characters of its beginning and end.
        chars: usize,
        /// Which atoms.
        atoms: Rc<[Atom]>,
    },
    /// Some of its segments, under a cap of tokens.
    Excerpt {
        /// The cap that they were chosen under.
        cap: i64,
        /// Which ones, in their order.
        segments: Rc<[usize]>,
    },
    /// As this text.
    Shown(Rc<str>),
    /// A summary, which stands for others as well.
    Told(Rc<str>),
}

/// A unit as it is shown.
#[derive(Debug)]
pub struct View {
    /// What it takes.
    pub tokens: u64,
    /// What it names.
    pub atoms: Atoms,
    /// What it says, unless that is all or nothing.
    pub text: Option<Rc<str>>,
}

/// A unit that is shown, and how.
pub type Shown = (usize, Variant);

/// A run under study.
#[derive(Debug)]
pub struct Scene {
    /// The run.
    pub run: Trajectory,
    /// Its atoms.
    pub interner: Interner,
    /// Its units as entries of the canonical model.
    pub entries: Vec<Entry>,
    /// Its ordinary words.
    words: Interner,
    views: RefCell<HashMap<(usize, Variant), Rc<View>>>,
    word_views: RefCell<HashMap<(usize, Variant), Atoms>>,
    segments: Vec<OnceCell<Vec<Segment>>>,
}

impl Scene {
    /// Sets a run up.
    #[must_use]
    pub fn new(run: Trajectory) -> Self {
        let segments = run.units.iter().map(|_| OnceCell::new()).collect();
        let entries = crate::throughline::entries(&run.units);
        Self {
            run,
            interner: Interner::default(),
            entries,
            words: Interner::default(),
            views: RefCell::default(),
            word_views: RefCell::default(),
            segments,
        }
    }

    /// Returns a unit.
    #[must_use]
    pub fn unit(&self, unit: usize) -> &Unit {
        &self.run.units[unit]
    }

    /// Returns a unit as a variant shows it.
    #[must_use]
    pub fn view(&self, unit: usize, variant: &Variant) -> Rc<View> {
        let key = (unit, variant.clone());
        if let Some(view) = self.views.borrow().get(&key) {
            return Rc::clone(view);
        }
        let view = Rc::new(self.render(unit, variant));
        self.views.borrow_mut().insert(key, Rc::clone(&view));
        view
    }

    /// Returns what of a unit counts as facts, as a variant shows it.
    #[must_use]
    pub fn facts(&self, unit: usize, variant: &Variant, facts: Facts) -> Atoms {
        if facts == Facts::Identifiers {
            return Rc::clone(&self.view(unit, variant).atoms);
        }
        let key = (unit, variant.clone());
        if let Some(words) = self.word_views.borrow().get(&key) {
            return Rc::clone(words);
        }
        let view = self.view(unit, variant);
        let words = match (&view.text, variant) {
            (Some(text), _) => self.words.ordinary_words(text),
            (None, Variant::Mask) if view.tokens < self.full(unit) => Rc::new([]),
            (None, _) => self.words.ordinary_words(&self.unit(unit).text),
        };
        self.word_views.borrow_mut().insert(key, Rc::clone(&words));
        words
    }

    /// Returns what of a text counts as facts.
    #[must_use]
    pub fn facts_of(&self, text: &str, facts: Facts) -> Atoms {
        match facts {
            Facts::Identifiers => self.interner.atoms(text),
            Facts::Words => self.words.ordinary_words(text),
        }
    }

    /// Returns what a unit takes as a variant shows it.
    #[must_use]
    pub fn tokens(&self, unit: usize, variant: &Variant) -> u64 {
        self.view(unit, variant).tokens
    }

    /// Returns what a unit takes as it came.
    #[must_use]
    pub fn full(&self, unit: usize) -> u64 {
        self.tokens(unit, &Variant::Full)
    }

    /// Returns what everything but calls and results takes before `end`.
    #[must_use]
    pub fn words_tokens(&self, end: usize) -> u64 {
        let is_words = |unit: &usize| !matches!(self.unit(*unit).kind, Kind::Call | Kind::Result);
        (0..end).filter(is_words).map(|unit| self.full(unit)).sum()
    }

    /// Returns the segments of a unit.
    #[must_use]
    pub fn segments(&self, unit: usize) -> &[Segment] {
        self.segments[unit].get_or_init(|| {
            let Unit { kind, text, .. } = self.unit(unit);
            match kind {
                Kind::Call => segments(&self.interner, &leaf_values(text)),
                _ => segments(&self.interner, text),
            }
        })
    }

    /// Returns the units of some kind before `end`, in their order.
    pub fn of_kind(&self, end: usize, kind: Kind) -> impl DoubleEndedIterator<Item = usize> {
        (0..end).filter(move |unit| self.unit(*unit).kind == kind)
    }

    /// Returns the numbers of all calls before `end`, in their order.
    #[must_use]
    pub fn pairs(&self, end: usize) -> Vec<usize> {
        self.of_kind(end, Kind::Call).filter_map(|unit| self.unit(unit).pair).collect()
    }

    /// Says whether a fact that a unit carries is shown, also with some of what stood around it.
    #[must_use]
    pub fn is_shown_in_context(&self, unit: usize, variant: &Variant, atom: Atom, facts: Facts) -> bool {
        if *variant == Variant::Full {
            return true;
        }
        // A word tells little by what stands beside it.
        if facts == Facts::Words {
            return contains(&self.facts(unit, variant, facts), atom);
        }
        let view = self.view(unit, variant);
        let Some(shown) = &view.text else { return contains(&view.atoms, atom) };
        self.has_context(unit, shown, atom)
    }

    /// Says whether a text has a fact of a unit together with 12 characters before or behind it.
    #[must_use]
    pub fn has_context(&self, unit: usize, shown: &str, atom: Atom) -> bool {
        let (name, text) = (self.interner.name(atom), &self.unit(unit).text);
        let mut from = 0;
        for _ in 0..8 {
            let Some(at) = text[from..].find(&*name).map(|at| from + at) else { return false };
            let end = at + name.len();
            let before = tail(&text[..at], 12).len();
            let after = head(&text[end..], 12).len();
            if shown.contains(&text[at - before..end]) || shown.contains(&text[at..end + after]) {
                return true;
            }
            from = at + 1;
        }
        false
    }

    fn render(&self, unit: usize, variant: &Variant) -> View {
        let Unit { kind, name, text, .. } = self.unit(unit);
        let view = |tokens, text: String| View {
            tokens,
            atoms: self.interner.atoms(&text),
            text: Some(text.into()),
        };
        match (kind, variant) {
            (_, Variant::Told(told)) => view(count(told) + 5, told.to_string()),
            (Kind::Call, Variant::Full) => {
                let atoms = self.interner.atoms(&leaf_values(text));
                View { tokens: count(name) + count(text) + 8, atoms, text: None }
            }
            (Kind::Call, Variant::Excerpt { segments, .. }) => {
                let told = self.arguments(unit, segments);
                view((count(name) + count(&told) + 16).min(self.full(unit)), told)
            }
            (Kind::Call, Variant::Shown(shown)) => {
                let atoms = self.interner.atoms(&leaf_values(shown));
                let tokens = count(name) + count(shown) + 8;
                View { tokens, atoms, text: Some(Rc::clone(shown)) }
            }
            (Kind::System | Kind::User | Kind::Assistant, Variant::Shown(shown)) => {
                view(count(shown) + 5, shown.to_string())
            }
            (Kind::Result, Variant::Mask) => self.masked(unit),
            (
                Kind::Result,
                Variant::Head(..)
                | Variant::HeadTail(..)
                | Variant::Digest { .. }
                | Variant::Excerpt { .. }
                | Variant::Shown(_),
            ) => {
                let told = self.result(unit, variant);
                view(count(&told) + 5, told)
            }
            _ => View { tokens: count(text) + 5, atoms: self.interner.atoms(text), text: None },
        }
    }

    fn masked(&self, unit: usize) -> View {
        let (text, full) = (&self.unit(unit).text, self.view(unit, &Variant::Full));
        let lines = text.matches('\n').count() + 1;
        let stub =
            format!("[tool result omitted: {lines} lines, {} tokens; re-run or recall by id]", full.tokens);
        let tokens = count(&stub) + 5;
        if tokens <= full.tokens {
            View { tokens, atoms: Rc::new([]), text: None }
        } else {
            View { tokens: full.tokens, atoms: Rc::clone(&full.atoms), text: None }
        }
    }

    fn result(&self, unit: usize, variant: &Variant) -> String {
        let text = &self.unit(unit).text;
        let unless_longer = |told: String| {
            if count(&told) + 5 >= self.full(unit) { text.clone() } else { told }
        };
        match variant {
            Variant::Head(chars) if len(text) > *chars => format!("{}\n[truncated]", head(text, *chars)),
            Variant::HeadTail(chars) if len(text) > *chars => {
                let half = chars / 2;
                let omitted = len(text) - chars;
                format!("{}\n[... {omitted} chars omitted ...]\n{}", head(text, half), tail(text, half))
            }
            Variant::Digest { chars, atoms } if len(text) > (*chars).max(160) => {
                let half = chars / 2;
                let ends = format!("{} ... {}", head(text, half), tail(text, half));
                let ends = if *chars > 0 { ends } else { String::new() };
                let names: Vec<Rc<str>> = atoms.iter().map(|atom| self.interner.name(*atom)).collect();
                let full = self.full(unit);
                unless_longer(format!(
                    "[digest of {full}-token result] {ends}\nmentions: {}",
                    names.join(" ")
                ))
            }
            Variant::Excerpt { segments, .. } => unless_longer(self.excerpt(unit, segments)),
            Variant::Shown(shown) => shown.to_string(),
            _ => text.clone(),
        }
    }

    fn excerpt(&self, unit: usize, chosen: &[usize]) -> String {
        let segments = self.segments(unit);
        let mut told = format!("[excerpt of {}-token result]", self.full(unit));
        let mut next = 0;
        for at in chosen {
            told.push_str(if *at == next { "" } else { "\n[..]" });
            told.push('\n');
            told.push_str(&segments[*at].text);
            next = at + 1;
        }
        if next != segments.len() {
            told.push_str("\n[..]");
        }
        told
    }

    fn arguments(&self, unit: usize, chosen: &[usize]) -> String {
        let text = &self.unit(unit).text;
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
        let mut small = Vec::new();
        walk(&value, &mut |leaf| {
            if len(&leaf) <= SMALL_CHARS_MAX {
                small.push(leaf);
            }
        });
        let segments = self.segments(unit);
        let lines: Vec<&str> = chosen.iter().map(|at| segments[*at].text.as_str()).collect();
        format!("{}\n{}", small.join(" "), lines.join("\n"))
    }
}

/// Returns how many tokens a text has.
#[must_use]
pub fn count(text: &str) -> u64 {
    Vocabulary::O200k.count(text)
}
