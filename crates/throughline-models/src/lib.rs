//! What is known about models before anybody is asked: how much fits, what it costs, what each refuses.
//!
//! The figures are data, not code: `data/models.tsv` is written by the `update` script from a public list, with its date;
//! `data/families.tsv` is kept by hand. What a backend says of itself and what the user configures is better, and is put
//! on top of this by whoever asks.

mod name;
mod table;

pub use table::{Traits, date};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// What is known about a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Whose model it is, as backends are called in the configuration; nobody's, if anybody may run it.
    pub provider: Option<&'static str>,
    /// Its name as the provider spells it, or the pattern of its family.
    pub name: &'static str,
    /// Whether this is known of the whole family, and not of the model itself.
    pub is_family: bool,
    /// The most tokens of a prompt.
    pub context_window: u64,
    /// The most tokens of an answer.
    pub max_output: Option<u64>,
    /// What tokens cost at that provider.
    pub prices: Option<Prices>,
    /// What it takes and what it refuses.
    pub traits: Traits,
}

/// What a million tokens cost, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// For prompts up to `tier`, or for all.
    pub base: Rates,
    /// From how many prompt tokens on which other rates hold for the whole request.
    pub tier: Option<(u64, Rates)>,
}

/// The rates of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the prompt that are read from a cache.
    pub cache_read: Option<f64>,
    /// Tokens of the prompt that are written to a cache.
    pub cache_write: Option<f64>,
    /// Tokens of the answer, reasoning included.
    pub output: f64,
}

/// Returns what is known about a model of a provider.
///
/// A name is understood in the spellings that gateways use: behind a vendor (`anthropic/claude-sonnet-4.5`), with a
/// date, a tag or a region. Where `provider` is not the one that the model is known of, its windows hold and its prices
/// do not.
#[must_use]
pub fn find(provider: Option<&str>, model: &str) -> Option<Model> {
    let names = name::spellings(model);
    // A vendor before the slash says whose model it is, wherever it is run.
    let vendor = name::vendor(model);
    let is_own = |model: &Model| provider.is_some() && model.provider == provider;
    let is_vendors = |model: &Model| vendor.is_some() && model.provider == vendor;
    let is_anybodys = |model: &Model| model.provider != Some(RESELLER);

    let named = |of: &dyn Fn(&Model) -> bool| {
        let all = names.iter().filter_map(|name| catalogue().by_name.get(name)).flatten();
        all.copied().find(of)
    };
    let exact = named(&is_own).or_else(|| named(&is_vendors)).or_else(|| named(&is_anybodys));
    let mut model = exact.or_else(|| catalogue().family(&names, provider))?;

    let is_billed = is_own(&model) || (provider == Some(RESELLER) && is_vendors(&model));
    if !is_billed {
        model.prices = None;
    }
    Some(model)
}

/// Returns all models and families, as they are listed.
pub fn all() -> impl Iterator<Item = &'static Model> {
    catalogue().listed.iter()
}

/// Returns the sizes of prompts from which on some model costs more, in order.
pub fn price_tiers() -> &'static [u64] {
    &catalogue().price_tiers
}

/// Sells the models of others at their prices.
const RESELLER: &str = "openrouter";

/// The tables, ready to be asked.
#[derive(Debug)]
struct Catalogue {
    listed: Vec<Model>,
    by_name: BTreeMap<String, Vec<Model>>,
    families: Vec<(String, Model)>,
    price_tiers: Vec<u64>,
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| Catalogue::new(table::models().collect(), table::families().collect()))
}

impl Catalogue {
    fn new(models: Vec<Model>, families: Vec<Model>) -> Self {
        let mut by_name: BTreeMap<String, Vec<Model>> = BTreeMap::new();
        for model in &models {
            by_name.entry(name::canonical(model.name)).or_default().push(*model);
        }

        // A name without its date means the latest of that name, where the list has no such entry itself.
        for model in models.iter().rev() {
            let Some(plain) = name::undated(&name::canonical(model.name)) else { continue };
            let same = by_name.entry(plain).or_default();
            if !same.iter().any(|other| other.provider == model.provider) {
                same.push(*model);
            }
        }

        let tiers: BTreeSet<u64> = models.iter().filter_map(|model| Some(model.prices?.tier?.0)).collect();
        Self {
            price_tiers: tiers.into_iter().collect(),
            families: families.iter().map(|family| (name::canonical(family.name), *family)).collect(),
            listed: models.into_iter().chain(families).collect(),
            by_name,
        }
    }

    /// Returns the family with the longest pattern that fits; one of the provider itself before others.
    fn family(&self, names: &[String], provider: Option<&str>) -> Option<Model> {
        let fits = |(pattern, _): &&(String, Model)| names.iter().any(|name| name::matches(pattern, name));
        let fitting = self.families.iter().filter(fits);
        fitting
            .max_by_key(|(pattern, family)| (pattern.len(), family.provider == provider))
            .map(|(_, family)| *family)
    }
}

impl Prices {
    /// Returns the rates for a prompt of so many tokens.
    #[must_use]
    pub fn rates(&self, prompt_tokens: u64) -> Rates {
        match self.tier {
            Some((from, rates)) if prompt_tokens > from => rates,
            _ => self.base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(provider: Option<&str>, model: &str) -> Option<u64> {
        find(provider, model).map(|model| model.context_window)
    }

    #[test]
    fn a_model_is_known_in_every_spelling() {
        for name in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4.5",
            "anthropic/claude-sonnet-4.5",
            "anthropic/claude-sonnet-4.5:beta",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
            "Claude-Sonnet-4-5-latest",
        ] {
            assert_eq!(window(Some("anthropic"), name), Some(200_000), "{name}");
            assert!(!find(None, name).unwrap().is_family, "{name}");
        }
        assert_eq!(window(Some("openai"), "gpt-5-2025-08-07"), Some(272_000));
        assert_eq!(window(None, "models/gemini-2.5-pro"), Some(1_048_576));
        assert_eq!(
            window(None, "claude-3-7-sonnet-latest"),
            Some(200_000),
            "the list has it with a date only"
        );
    }

    #[test]
    fn prices_hold_at_the_provider_and_nowhere_else() {
        let at = |provider: Option<&str>, model: &str| {
            find(provider, model).unwrap().prices.map(|it| it.base.input)
        };
        assert_eq!(at(Some("anthropic"), "claude-haiku-4-5"), Some(1.0));
        assert_eq!(at(Some("openrouter"), "anthropic/claude-haiku-4.5"), Some(1.0));
        assert_eq!(at(Some("openrouter"), "anthropic/claude-opus-5"), Some(5.0), "by its vendor");
        assert_eq!(at(None, "claude-haiku-4-5"), None, "a server of somebody's own");
        assert_eq!(at(Some("groq"), "claude-haiku-4-5"), None);
    }

    #[test]
    fn a_newer_member_of_a_family_has_its_smallest_window_and_no_price() {
        let newer = find(Some("anthropic"), "claude-opus-9").unwrap();
        assert!(newer.is_family && newer.prices.is_none());
        assert_eq!(newer.context_window, 200_000);
        assert_eq!(find(None, "somebodys-own-model"), None);
        assert_eq!(find(None, ""), None);
    }

    #[test]
    fn long_prompts_have_rates_of_their_own() {
        let prices = find(Some("openai"), "gpt-5.4").unwrap().prices.unwrap();
        assert!(prices.rates(272_001).input > prices.rates(272_000).input);
    }

    #[test]
    fn a_models_own_rules_are_known() {
        let fable = find(Some("anthropic"), "claude-fable-5-1").unwrap().traits;
        assert!(fable.refuses_forced_tools && fable.always_reasons && fable.binds_reasoning);
        assert!(find(Some("anthropic"), "claude-opus-4-6").unwrap().traits.refuses_prefill);
        assert!(!find(Some("anthropic"), "claude-haiku-4-5").unwrap().traits.refuses_prefill);
    }

    #[test]
    fn every_row_is_read_and_makes_sense() {
        assert!(all().count() > 300);
        for model in all() {
            assert!(model.context_window >= 4_096, "{}", model.name);
            if let Some(prices) = &model.prices {
                let rates = prices.base;
                assert!(
                    (0.0..1_000.0).contains(&rates.input) && rates.output >= rates.input,
                    "{}",
                    model.name
                );
                assert!(rates.cache_read.is_none_or(|read| read <= rates.input), "{}", model.name);
            }
        }
        assert_eq!(date().len(), "2026-08-08".len());
    }
}
