//! What is known of a backend's models: as the configuration says, else as the catalogue does.

use super::resolve::Backend;
use throughline_models::{Prices, Rates, Traits};

/// A fact about a model, and who said so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelFact<T> {
    /// The fact.
    pub value: T,
    /// Who said so.
    pub source: FactSource,
}

/// Who said something about a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactSource {
    /// The configuration of its backend.
    Configuration,
    /// The backend, when it refused a longer prompt.
    Refusal,
    /// The backend's listing of models.
    Listing,
    /// The catalogue, of this very model.
    Catalogue,
    /// The catalogue, of the family that it belongs to.
    Family,
}

/// What is known of a model at a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// The most tokens of a prompt.
    pub context_window: Option<ModelFact<u64>>,
    /// The most tokens of an answer.
    pub max_output: Option<ModelFact<u64>>,
    /// What tokens cost.
    pub prices: Option<ModelFact<Prices>>,
    /// What it takes and refuses.
    pub traits: Option<ModelFact<Traits>>,
}

impl FactSource {
    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Refusal => "refusal",
            Self::Listing => "listing",
            Self::Catalogue => "catalogue",
            Self::Family => "family",
        }
    }
}

impl Backend {
    /// Returns what is known of one of its models.
    #[must_use]
    pub fn model_facts(&self, model: &str) -> ModelFacts {
        let known = throughline_models::find(self.provider, model);
        let source = match known {
            Some(known) if known.is_family => FactSource::Family,
            _ => FactSource::Catalogue,
        };
        let configured = self.prices.map(|prices| Prices {
            base: Rates {
                input: prices.input,
                cache_read: prices.cache_read,
                cache_write: prices.cache_write,
                output: prices.output,
            },
            tier: None,
        });
        ModelFacts {
            context_window: either(self.context_window, known.map(|it| it.context_window), source),
            max_output: either(None, known.and_then(|it| it.max_output), source),
            prices: either(configured, known.and_then(|it| it.prices), source),
            traits: either(None, known.map(|it| it.traits), source),
        }
    }
}

fn either<T>(configured: Option<T>, known: Option<T>, source: FactSource) -> Option<ModelFact<T>> {
    let configured = configured.map(|value| ModelFact { value, source: FactSource::Configuration });
    configured.or_else(|| known.map(|value| ModelFact { value, source }))
}
