//! What tokens cost: at the rates of the configuration, or at those of the catalogue.

use crate::config::Config;
use throughline_core::{Text, Usage};
use throughline_models::{Rates, price_tiers};

/// Tokens that were taken, by who took them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill(Vec<Item>);

/// Tokens that are paid at the same rates.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    backend: Text,
    model: Option<Text>,
    /// The largest size of prompts at which some model begins to cost more that all of these prompts exceed.
    tier: u64,
    usage: Usage,
}

impl Bill {
    /// Adds the tokens of one answer.
    pub fn add(&mut self, backend: &Text, model: Option<&Text>, usage: Usage) {
        let tier = price_tiers().iter().rev().find(|from| usage.input > **from).copied().unwrap_or(0);
        let same =
            |item: &&mut Item| item.backend == *backend && item.model.as_ref() == model && item.tier == tier;
        match self.0.iter_mut().find(same) {
            Some(item) => item.usage = item.usage.plus(usage),
            None => self.0.push(Item { backend: backend.clone(), model: model.cloned(), tier, usage }),
        }
    }

    /// Adds the tokens of another bill.
    pub fn merge(&mut self, other: &Self) {
        for item in &other.0 {
            let same = |own: &&mut Item| {
                own.backend == item.backend && own.model == item.model && own.tier == item.tier
            };
            match self.0.iter_mut().find(same) {
                Some(own) => own.usage = own.usage.plus(item.usage),
                None => self.0.push(item.clone()),
            }
        }
    }

    /// Returns the backends that answered, in the order in which they first did.
    pub fn backends(&self) -> Vec<&Text> {
        let mut backends: Vec<&Text> = Vec::new();
        for item in &self.0 {
            if !backends.contains(&&item.backend) {
                backends.push(&item.backend);
            }
        }
        backends
    }

    /// Returns all tokens together; nothing where no backend has said what it took.
    #[must_use]
    pub fn total(&self) -> Option<Usage> {
        self.0.iter().map(|item| item.usage).reduce(Usage::plus)
    }

    /// Returns what that cost in US dollars, if the prices of all models that answered are known.
    #[must_use]
    pub fn cost(&self, config: &Config) -> Option<f64> {
        let cost = |item: &Item| Some(price(&item.rates(config)?, &item.usage));
        (!self.0.is_empty()).then(|| self.0.iter().map(cost).sum()).flatten()
    }

    /// Returns what that of it cost in US dollars whose price is known.
    #[must_use]
    pub fn cost_known(&self, config: &Config) -> f64 {
        self.0.iter().filter_map(|item| Some(price(&item.rates(config)?, &item.usage))).sum()
    }

    /// Returns how much more it would have cost in US dollars without the providers' caches.
    #[must_use]
    pub fn cache_saved(&self, config: &Config) -> f64 {
        let saved = |item: &Item| {
            let rates = item.rates(config)?;
            let uncached = Usage { cache_read: 0, cache_written: 0, ..item.usage };
            Some(price(&rates, &uncached) - price(&rates, &item.usage))
        };
        self.0.iter().filter_map(saved).sum()
    }

    /// Returns the models whose prices are not known.
    #[must_use]
    pub fn unpriced(&self, config: &Config) -> Vec<&str> {
        let unpriced = self.0.iter().filter(|item| item.rates(config).is_none());
        let mut models: Vec<&str> =
            unpriced.map(|item| item.model.as_deref().unwrap_or(&item.backend)).collect();
        models.sort_unstable();
        models.dedup();
        models
    }
}

impl Item {
    /// Returns the rates that hold for it. What a backend that is not configured has taken, such as an agent whose
    /// sessions were imported, is priced as the model's own provider lists it.
    fn rates(&self, config: &Config) -> Option<Rates> {
        let model = self.model.as_deref().unwrap_or_default();
        let prices = match config.backend(&self.backend) {
            Some(backend) => backend.model_facts(model).prices?.value,
            None => {
                throughline_models::find(throughline_models::find(None, model)?.provider, model)?.prices?
            }
        };
        Some(prices.rates(self.tier + 1))
    }
}

/// Returns what so many tokens cost at these rates, in US dollars.
fn price(rates: &Rates, usage: &Usage) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    let million = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
    let cached = usage.cache_read.saturating_add(usage.cache_written);
    million(usage.input.saturating_sub(cached), rates.input)
        + million(usage.cache_read, rates.cache_read.unwrap_or(rates.input))
        + million(usage.cache_written, rates.cache_write.unwrap_or(rates.input))
        + million(usage.output, rates.output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::settings;

    const BACKENDS: &str = "active = \"openai\"\n\
        [[backends]]\nname = \"openai\"\napi_key = \"none\"\n\
        [[backends]]\nname = \"own\"\ndialect = \"chat\"\nbase_url = \"https://llm.example/v1\"\n";

    fn used(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    #[test]
    fn the_catalogue_prices_what_the_configuration_does_not() {
        let config = settings::read(BACKENDS).unwrap();
        let mut bill = Bill::default();
        bill.add(&"openai".into(), Some(&"gpt-5".into()), used(1_000_000, 0));
        assert_eq!(bill.cost(&config), Some(1.25));
        bill.add(&"own".into(), Some(&"gpt-5".into()), used(1, 1));
        assert_eq!(bill.cost(&config), None, "a server of somebody's own has its own prices");
        assert_eq!(bill.backends(), ["openai", "own"]);
    }

    #[test]
    fn a_long_prompt_is_priced_by_itself_and_not_by_the_sum() {
        let config = settings::read(BACKENDS).unwrap();
        let cost = |prompts: &[u64]| {
            let mut bill = Bill::default();
            prompts
                .iter()
                .for_each(|input| bill.add(&"openai".into(), Some(&"gpt-5.4".into()), used(*input, 0)));
            bill.cost(&config).unwrap()
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(cost(&[200_000, 200_000]), 1.0), "{}", cost(&[200_000, 200_000]));
        assert!(near(cost(&[400_000]), 2.0), "{}", cost(&[400_000]));
    }

    #[test]
    fn what_an_agent_used_before_it_came_here_is_priced_as_its_provider_lists_it() {
        let config = settings::read(BACKENDS).unwrap();
        let mut bill = Bill::default();
        bill.add(&"codex".into(), Some(&"gpt-5".into()), used(1_000_000, 0));
        assert_eq!(bill.cost(&config), Some(1.25));
        bill.add(&"codex".into(), Some(&"nobody-s-model".into()), used(1_000_000, 0));
        assert_eq!((bill.cost(&config), bill.cost_known(&config)), (None, 1.25));
        assert_eq!(bill.unpriced(&config), ["nobody-s-model"]);
        assert_eq!(bill.cache_saved(&config), 0.0);
    }

    #[test]
    fn absurd_counts_add_up_to_a_number() {
        let mut bill = Bill::default();
        bill.add(&"a".into(), None, used(u64::MAX, u64::MAX));
        bill.add(&"a".into(), None, used(u64::MAX, 1));
        assert_eq!(bill.total().unwrap().input, u64::MAX);
    }
}
