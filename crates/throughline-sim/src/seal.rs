//! Ids and seals: what a provider issues and recognises when it comes back.
//!
//! A seal binds a thought to the seed of this backend and to the model; the alteration of a single byte, or
//! another model, voids it. All of them are made of letters and digits.

use throughline_core::{Seal, Text, Thought};

/// How many characters of a digest an id has.
const ID_LEN: usize = 24;
/// How many characters a whole digest has.
const DIGEST_LEN: usize = 64;

/// Issues ids and seals, and recognises the seals.
#[derive(Debug)]
pub(crate) struct Sealer {
    key: [u8; 32],
}

/// What is wrong with a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BrokenSeal {
    /// A signature that was not issued for this text.
    Signature,
    /// Withheld reasoning that was not issued here.
    Redacted,
    /// An encrypted form that was not issued here.
    Encrypted(Text),
}

impl Sealer {
    /// Returns a sealer; equal seeds issue equal seals.
    pub(crate) fn new(seed: &str) -> Self {
        Self { key: *blake3::hash(seed.as_bytes()).as_bytes() }
    }

    /// Returns an id made from what distinguishes it.
    pub(crate) fn id(&self, parts: &[&str]) -> String {
        let mut id = self.digest("id", parts);
        id.truncate(ID_LEN);
        id
    }

    /// Returns a signature over readable reasoning.
    pub(crate) fn signature(&self, model: &str, text: &str) -> String {
        self.digest("signature", &[model, text])
    }

    /// Returns reasoning in a form that only this backend can read.
    pub(crate) fn sealed(&self, model: &str, text: &str) -> String {
        let hidden: String = text.bytes().map(|byte| format!("{:02x}", byte ^ self.key[0])).collect();
        let digest = self.digest("sealed", &[model, &hidden]);
        hidden + &digest
    }

    /// Checks the seal of a thought that came back.
    pub(crate) fn check(&self, model: &str, thought: &Thought) -> Result<(), BrokenSeal> {
        match &thought.seal {
            Some(Seal::Signature(signature)) => {
                let text: String = thought.content.iter().map(Text::as_str).collect();
                let is_own = *signature == self.signature(model, &text).as_str();
                is_own.then_some(()).ok_or(BrokenSeal::Signature)
            }
            Some(Seal::Redacted(data)) => {
                self.is_sealed(model, data).then_some(()).ok_or(BrokenSeal::Redacted)
            }
            Some(Seal::Encrypted(data)) => {
                self.is_sealed(model, data).then_some(()).ok_or_else(|| BrokenSeal::Encrypted(data.clone()))
            }
            None => Ok(()),
        }
    }

    fn is_sealed(&self, model: &str, data: &str) -> bool {
        let at = data.len().checked_sub(DIGEST_LEN);
        let parts = at.and_then(|at| data.split_at_checked(at));
        parts.is_some_and(|(hidden, digest)| digest == self.digest("sealed", &[model, hidden]))
    }

    fn digest(&self, purpose: &str, parts: &[&str]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in [purpose].iter().chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(text: &str, seal: Seal) -> Thought {
        Thought { content: vec![text.into()], seal: Some(seal), ..Thought::default() }
    }

    #[test]
    fn a_signature_is_valid_for_its_text_and_model_alone() {
        let sealer = Sealer::new("a");
        let signature = || Seal::Signature(sealer.signature("m", "text").into());
        assert_eq!(sealer.check("m", &thought("text", signature())), Ok(()));
        assert_eq!(sealer.check("m", &thought("texT", signature())), Err(BrokenSeal::Signature));
        assert_eq!(sealer.check("n", &thought("text", signature())), Err(BrokenSeal::Signature));
        assert!(Sealer::new("b").check("m", &thought("text", signature())).is_err());
    }

    #[test]
    fn a_sealed_thought_is_recognised_whole() {
        let sealer = Sealer::new("a");
        let sealed = sealer.sealed("m", "hidden");
        assert_eq!(sealer.check("m", &thought("", Seal::Encrypted(sealed.clone().into()))), Ok(()));
        assert_eq!(sealer.check("m", &thought("", Seal::Redacted(sealed.clone().into()))), Ok(()));
        for broken in [&sealed[1..], "é", ""] {
            assert!(sealer.check("m", &thought("", Seal::Encrypted(broken.into()))).is_err(), "{broken}");
        }
    }
}
