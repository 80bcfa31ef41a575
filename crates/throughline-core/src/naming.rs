//! Ids and names as a backend wants them, stably and reversibly.
//!
//! The record keeps ids and names as they came. Where a backend's rules do not admit one, a substitute is
//! derived from it alone, so that the same id gets the same substitute in every request, and the map knows
//! the way back.

use crate::{Charset, NameRule, Text};
use std::collections::BTreeMap;

/// A reversible map from names as they came to names as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMap {
    /// Only those that differ: most do not, and a history has many.
    sent: BTreeMap<Text, Text>,
    original: BTreeMap<Text, Text>,
    /// For each name that has substitutes, where to look for the next: some servers use one id in every turn.
    salts: BTreeMap<Text, u32>,
}

impl NameMap {
    /// Returns the name that `original` is sent under; itself, if it was never mapped.
    #[must_use]
    pub fn to_sent<'a>(&'a self, original: &'a Text) -> &'a Text {
        self.sent.get(original).unwrap_or(original)
    }

    /// Returns the name that `sent` stands for; itself, if it was never mapped.
    #[must_use]
    pub fn to_original<'a>(&'a self, sent: &'a Text) -> &'a Text {
        self.original.get(sent).unwrap_or(sent)
    }

    /// Returns the names that differ, as they came and as they are sent.
    pub fn renamed(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.original
            .iter()
            .filter(|(sent, original)| sent != original)
            .map(|(sent, original)| (original, sent))
    }

    /// Says whether `original` was mapped, if only to itself.
    pub(crate) fn knows(&self, original: &Text) -> bool {
        self.sent_before(original).is_some()
    }

    /// Maps `original` to a name that `rule` admits and that stands for nothing else yet.
    ///
    /// With `fresh`, a name that was mapped before is mapped again, to another substitute.
    pub fn admit(&mut self, original: &Text, rule: NameRule, fresh: bool) -> Text {
        if let Some(sent) = self.sent_before(original).filter(|_| !fresh) {
            return sent.clone();
        }
        let sent = if rule.admits(original) && !self.original.contains_key(original) {
            original.clone()
        } else {
            self.substitute(original, rule)
        };
        self.original.insert(sent.clone(), original.clone());
        if sent != *original {
            self.sent.insert(original.clone(), sent.clone());
        }
        sent
    }

    /// Derives a substitute that stands for nothing else yet.
    fn substitute(&mut self, original: &Text, rule: NameRule) -> Text {
        let salt = self.salts.entry(original.clone()).or_default();
        loop {
            let name = substitute(original, rule, *salt);
            *salt += 1;
            if !self.original.contains_key(&name) {
                return name;
            }
        }
    }

    fn sent_before(&self, original: &Text) -> Option<&Text> {
        let as_it_came = || self.original.get(original).filter(|same| *same == original);
        self.sent.get(original).or_else(as_it_came)
    }
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGEST_LENGTH: usize = 12;

/// Derives an admissible name: a readable beginning and a digest of the whole.
fn substitute(original: &str, rule: NameRule, salt: u32) -> Text {
    let digest = digest(original, salt);
    if rule.max <= DIGEST_LENGTH + 1 {
        return Text::from(&digest[..rule.max.min(digest.len())]);
    }
    let (limit, joint) = match rule.charset {
        Charset::Alphanumeric => (rule.max - DIGEST_LENGTH, ""),
        Charset::Any | Charset::Word => (rule.max - DIGEST_LENGTH - 1, "_"),
    };
    let readable: String = original
        .chars()
        .filter(|c| Charset::Word.contains(*c) && rule.charset.contains(*c))
        .take(limit)
        .collect();
    Text::from(format!("{readable}{joint}{}", &digest[..DIGEST_LENGTH]))
}

/// Returns letters and digits that depend on every byte of `text` and on `salt`, the same on every machine.
fn digest(text: &str, salt: u32) -> String {
    // FNV-1a, 128 bits: no secret is protected here, and the map settles collisions.
    let mut state: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in text.bytes().chain(salt.to_le_bytes()) {
        state = (state ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    (0..20)
        .map(|_| {
            let digit = usize::try_from(state % 62).unwrap_or_default();
            state /= 62;
            char::from(DIGITS[digit])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const WORD_64: NameRule = NameRule { min: 1, max: 64, charset: Charset::Word };
    const MISTRAL: NameRule = NameRule { min: 9, max: 9, charset: Charset::Alphanumeric };

    #[test]
    fn an_admissible_id_is_left_alone() {
        let mut map = NameMap::default();
        assert_eq!(map.admit(&"call_1".into(), WORD_64, false), "call_1");
        assert_eq!(map.renamed().count(), 0);
    }

    #[test]
    fn an_id_that_recurs_in_a_later_turn_gets_a_name_of_its_own() {
        let mut map = NameMap::default();
        let first = map.admit(&"terminal:0".into(), WORD_64, true);
        let second = map.admit(&"terminal:0".into(), WORD_64, true);
        assert_ne!(first, second);
        assert_eq!(map.to_original(&first), map.to_original(&second));
    }

    #[test]
    fn a_name_that_stays_is_known_as_mapped() {
        let mut map = NameMap::default();
        let name = Text::from("read");
        assert_eq!(map.admit(&name, WORD_64, false), "read");
        assert_eq!(map.admit(&name, WORD_64, false), "read");
        assert_ne!(map.admit(&name, WORD_64, true), "read");
    }

    #[test]
    fn an_id_that_recurs_thousands_of_times_takes_no_longer_each_time() {
        let mut map = NameMap::default();
        let ids: BTreeSet<Text> = (0..20_000).map(|_| map.admit(&"call_0".into(), WORD_64, true)).collect();
        assert_eq!(ids.len(), 20_000);
    }

    #[test]
    fn a_substitute_never_changes() {
        // Pinned: a changed digest would rename every call of every running conversation.
        let mut map = NameMap::default();
        assert_eq!(map.admit(&"functions.read:0".into(), WORD_64, false), "functionsread0_om7dcZsKLFWp");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn names_are_admissible_unique_stable_and_reversible(
            ids in prop::collection::vec("[a-z:|_.-]{0,6}|[a-zA-Z0-9]{9}|.{60,90}", 1..12),
            rule in prop::sample::select(vec![WORD_64, MISTRAL]),
        ) {
            let mut map = NameMap::default();
            let mut again = NameMap::default();
            let mut seen = BTreeSet::new();
            for id in &ids {
                let id = Text::from(id.as_str());
                let sent = map.admit(&id, rule, true);
                prop_assert!(rule.admits(&sent), "{sent} is not admissible");
                prop_assert!(seen.insert(sent.clone()));
                prop_assert_eq!(map.to_original(&sent), &id);
                prop_assert_eq!(again.admit(&id, rule, true), sent);
            }
        }
    }
}
