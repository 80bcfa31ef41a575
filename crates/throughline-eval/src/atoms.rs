//! Atoms: identifier-like strings, such as paths, ids, numbers of three digits, dotted and compound names.
//!
//! They are interned, each as a small number, because a run names the same few thousand over and over.

use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// An interned atom.
pub type Atom = u32;

/// Atoms without repetition, in ascending order.
pub type Atoms = Rc<[Atom]>;

/// All atoms of a run.
#[derive(Debug, Default)]
pub struct Interner {
    known: RefCell<HashMap<Rc<str>, Atom>>,
    names: RefCell<Vec<Rc<str>>>,
}

impl Interner {
    /// Returns the atom of a name.
    pub fn intern(&self, name: &str) -> Atom {
        if let Some(atom) = self.known.borrow().get(name) {
            return *atom;
        }
        let name: Rc<str> = name.into();
        let mut names = self.names.borrow_mut();
        let atom = Atom::try_from(names.len()).unwrap_or(Atom::MAX);
        names.push(Rc::clone(&name));
        self.known.borrow_mut().insert(name, atom);
        atom
    }

    /// Returns the name of an atom.
    pub fn name(&self, atom: Atom) -> Rc<str> {
        Rc::clone(&self.names.borrow()[atom as usize])
    }

    /// Returns the atoms of a text.
    pub fn atoms(&self, text: &str) -> Atoms {
        let mut found = BTreeSet::new();
        for word in words(text) {
            let mut add = |part: &str| {
                if is_atom(part) {
                    found.insert(self.intern(part));
                }
            };
            add(word);
            if word.contains(['/', '.']) {
                word.split(['/', '.']).filter(|part| !part.is_empty()).for_each(&mut add);
                add(word.rsplit('/').next().unwrap_or(word));
            }
        }
        found.into_iter().collect()
    }

    /// Returns the ordinary words of a text.
    pub fn ordinary_words(&self, text: &str) -> Atoms {
        let is_long = |word: &&str| word.len() >= WORD_MIN;
        let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(is_long);
        let found: BTreeSet<Atom> = words.map(|word| self.intern(&word.to_ascii_lowercase())).collect();
        found.into_iter().collect()
    }

    /// Takes out what is only a part of another atom of the set.
    pub fn without_parts(&self, atoms: &BTreeSet<Atom>) -> BTreeSet<Atom> {
        let mut left = atoms.clone();
        for atom in atoms {
            let name = self.name(*atom);
            if !name.contains(['/', '.']) {
                continue;
            }
            let last = name.rsplit('/').next();
            for part in name.split(['/', '.']).chain(last).filter(|part| *part != &*name) {
                if let Some(part) = self.known.borrow().get(part) {
                    left.remove(part);
                }
            }
        }
        left
    }
}

/// Words of fewer letters are everywhere.
const WORD_MIN: usize = 6;

/// What counts as a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Facts {
    /// Identifiers: what a later call needs verbatim.
    #[default]
    Identifiers,
    /// Ordinary words: whether a policy keeps more than identifiers.
    Words,
}

/// Says whether a set has an atom.
#[must_use]
pub fn contains(atoms: &[Atom], atom: Atom) -> bool {
    atoms.binary_search(&atom).is_ok()
}

/// Returns the words that may be atoms, in their order.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let begins = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let goes_on = move |byte: u8| begins(byte) || matches!(byte, b'.' | b'-' | b'/' | b'@');
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|byte| begins(*byte))?;
        let end =
            bytes[start..].iter().position(|byte| !goes_on(*byte)).map_or(bytes.len(), |len| start + len);
        at = end;
        Some(text[start..end].trim_end_matches(['.', '-', '/', '@']))
    })
}

/// Says whether a word is identifier-like.
#[must_use]
pub fn is_atom(word: &str) -> bool {
    let len = word.len();
    if !(3..=200).contains(&len) {
        return false;
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let has_letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    if digits > 0 && !has_letter {
        return digits >= 3;
    }
    if len < 4 {
        return false;
    }
    if digits > 0 {
        return true;
    }
    let joined = |by: char| word.trim_matches(by).contains(by);
    if joined('/') || joined('_') || word.contains('@') || joined('.') {
        return len >= 5;
    }
    len >= 5
        && word.as_bytes().windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase())
}

/// Returns the values in arguments, a line each; the arguments themselves if they are not JSON.
#[must_use]
pub fn leaf_values(arguments: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return arguments.to_owned() };
    let mut leaves = Vec::new();
    walk(&value, &mut |leaf| leaves.push(leaf));
    leaves.join("\n")
}

/// Hands every string and number of a value to `take`, in their order.
pub fn walk(value: &Value, take: &mut impl FnMut(String)) {
    match value {
        Value::Object(fields) => fields.values().for_each(|field| walk(field, take)),
        Value::Array(items) => items.iter().for_each(|item| walk(item, take)),
        Value::String(text) => take(text.clone()),
        Value::Number(number) => take(crate::python::number(number)),
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_atoms_and_prose_is_not() {
        for word in ["src/lib.rs", "user_id", "camelCase", "abc1", "2026-11-16", "123", "a@b.de", "a.b.c"] {
            assert!(is_atom(word), "{word}");
        }
        for word in ["word", "Word", "12", "ab", "a/b", "_abcd", "HTTP"] {
            assert!(!is_atom(word), "{word}");
        }
    }

    #[test]
    fn a_path_brings_its_parts() {
        let interner = Interner::default();
        let atoms = interner.atoms("see crates/my_core/src/entry1.rs.");
        let names: BTreeSet<Rc<str>> = atoms.iter().map(|atom| interner.name(*atom)).collect();
        let expected = ["crates/my_core/src/entry1.rs", "entry1", "entry1.rs", "my_core"].map(Rc::from);
        assert_eq!(names, BTreeSet::from(expected));
        let all: BTreeSet<Atom> = atoms.iter().copied().collect();
        assert_eq!(interner.without_parts(&all).len(), 1);
    }
}
