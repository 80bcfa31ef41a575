//! The embedded vocabularies.
//!
//! A table is a file of tokens in the order of their ranks, each behind a byte with its length. It is used
//! where it lies in the program; only an index over it is made, once, at first use.

use crate::merge;
use crate::pieces::{Pieces, Split};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

/// A public vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vocabulary {
    /// That of GPT-4o, GPT-4.1, GPT-5, the o series and gpt-oss.
    O200k,
    /// That of GPT-4 and GPT-3.5.
    Cl100k,
}

/// The rank of each token.
#[derive(Debug)]
pub(crate) struct Ranks {
    of_token: HashMap<&'static [u8], u32, BuildHasherDefault<Folding>>,
}

/// Multiplies and rotates: keys are those of a fixed table, so nobody can choose them to collide.
#[derive(Debug, Default)]
struct Folding(u64);

static O200K: OnceLock<Ranks> = OnceLock::new();
static CL100K: OnceLock<Ranks> = OnceLock::new();

impl Vocabulary {
    /// Both, in a fixed order.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    /// Returns the vocabulary of a model, by its name; none if it is not one of OpenAI's.
    #[must_use]
    pub fn of_model(model: &str) -> Option<Self> {
        let model = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let model = model.strip_prefix("ft:").unwrap_or(&model);
        let is = |name: &str| {
            model
                .strip_prefix(name)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        if ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-35-turbo"].into_iter().any(is)
            && !["gpt-4.1", "gpt-4.5"].into_iter().any(is)
        {
            return Some(Self::Cl100k);
        }
        let is_reasoner = ["o1", "o3", "o4"].into_iter().any(is);
        let is_named = ["gpt-", "chatgpt-", "codex-"].into_iter().any(|name| model.starts_with(name));
        (is_reasoner || is_named).then_some(Self::O200k)
    }

    /// Returns the name that OpenAI gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    /// Makes the index, unless it is there already. That takes tens of milliseconds: not on a thread that
    /// others wait for.
    pub fn load(self) {
        let _ = self.ranks();
    }

    /// Says whether the index is there.
    #[must_use]
    pub fn is_loaded(self) -> bool {
        self.cell().get().is_some()
    }

    /// Returns how many tokens a text takes; makes the index if it is not there.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        let ranks = self.ranks();
        let split = match self {
            Self::O200k => Split::O200k,
            Self::Cl100k => Split::Cl100k,
        };
        Pieces::new(split, text).map(|piece| merge::count(ranks, piece.as_bytes()) as u64).sum()
    }

    pub(crate) fn ranks(self) -> &'static Ranks {
        self.cell().get_or_init(|| Ranks::new(self.table()))
    }

    const fn cell(self) -> &'static OnceLock<Ranks> {
        match self {
            Self::O200k => &O200K,
            Self::Cl100k => &CL100K,
        }
    }

    const fn table(self) -> &'static [u8] {
        match self {
            Self::O200k => include_bytes!("../vocabularies/o200k_base.ranks"),
            Self::Cl100k => include_bytes!("../vocabularies/cl100k_base.ranks"),
        }
    }
}

impl Ranks {
    fn new(mut table: &'static [u8]) -> Self {
        // A token takes eight bytes of the tables on average.
        let mut of_token = HashMap::with_capacity_and_hasher(table.len() / 7, BuildHasherDefault::default());
        let mut rank = 0;
        while let [len, rest @ ..] = table {
            let (token, rest) = rest.split_at(usize::from(*len).min(rest.len()));
            of_token.insert(token, rank);
            rank += 1;
            table = rest;
        }
        Self { of_token }
    }

    pub(crate) fn rank(&self, token: &[u8]) -> Option<u32> {
        self.of_token.get(token).copied()
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits choose the bucket, and a product's low bits depend on few of its factors' bits.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_whole() {
        assert_eq!(Vocabulary::O200k.ranks().of_token.len(), 199_998);
        assert_eq!(Vocabulary::Cl100k.ranks().of_token.len(), 100_256);
        for vocabulary in Vocabulary::ALL {
            let every_byte = (0..=u8::MAX).all(|byte| vocabulary.ranks().rank(&[byte]).is_some());
            assert!(every_byte, "{vocabulary:?}");
        }
    }

    #[test]
    fn models_are_known_by_their_names() {
        let o200k = [
            "gpt-4o",
            "gpt-4o-mini-2024-07-18",
            "openai/gpt-4.1",
            "gpt-5.6",
            "gpt-5-codex",
            "o1",
            "o3-mini",
            "o4-mini-2025-04-16",
            "chatgpt-4o-latest",
            "gpt-oss-120b",
            "ft:gpt-4o:acme::x",
            "codex-mini-latest",
        ];
        for model in o200k {
            assert_eq!(Vocabulary::of_model(model), Some(Vocabulary::O200k), "{model}");
        }
        for model in ["gpt-4", "gpt-4-0613", "gpt-4-turbo", "gpt-3.5-turbo-16k", "azure/gpt-35-turbo"] {
            assert_eq!(Vocabulary::of_model(model), Some(Vocabulary::Cl100k), "{model}");
        }
        for model in ["claude-sonnet-4-5", "o1x", "gemini-3-pro", "qwen3", "", "octo1"] {
            assert_eq!(Vocabulary::of_model(model), None, "{model}");
        }
    }
}
