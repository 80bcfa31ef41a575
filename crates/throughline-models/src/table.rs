//! The embedded tables: tab-separated, `-` for what is not known.

use crate::{Model, Prices, Rates};

const MODELS: &str = include_str!("../data/models.tsv");
const FAMILIES: &str = include_str!("../data/families.tsv");

/// What a model takes, and what it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each true or not known to be")]
pub struct Traits {
    /// Tools can be offered.
    pub takes_tools: bool,
    /// Images can be shown.
    pub takes_images: bool,
    /// Documents can be shown.
    pub takes_documents: bool,
    /// It can reason before it answers.
    pub reasons: bool,
    /// It reasons whether asked to or not.
    pub always_reasons: bool,
    /// An answer that the client begins is refused.
    pub refuses_prefill: bool,
    /// Temperature and its like are refused.
    pub refuses_sampling: bool,
    /// A tool that must be called is refused.
    pub refuses_forced_tools: bool,
    /// Its reasoning is valid only behind the very prompt that it came from.
    pub binds_reasoning: bool,
}

/// Returns the day that the list of models was taken, as `YYYY-MM-DD`.
#[must_use]
pub fn date() -> &'static str {
    MODELS.trim_start_matches("# ").split(';').next().unwrap_or_default()
}

/// Returns the models of the public list.
pub(crate) fn models() -> impl Iterator<Item = Model> {
    rows(MODELS).filter_map(|cells| {
        let [provider, name, window, output, base @ .., traits] = cells.as_slice() else { return None };
        let [input, cached, written, out, tier, tier_input, tier_cached, tier_written, tier_out] = base
        else {
            return None;
        };
        let tier = number(tier).zip(rates(tier_input, tier_cached, tier_written, tier_out));
        Some(Model {
            provider: Some(*provider),
            name,
            is_family: false,
            context_window: number(window)?,
            max_output: number(output),
            prices: rates(input, cached, written, out).map(|base| Prices { base, tier }),
            traits: Traits::parse(traits),
        })
    })
}

/// Returns the families that are kept by hand.
pub(crate) fn families() -> impl Iterator<Item = Model> {
    rows(FAMILIES).filter_map(|cells| {
        let [provider, pattern, window, output, traits] = cells.as_slice() else { return None };
        Some(Model {
            provider: (*provider != "-").then_some(*provider),
            name: pattern,
            is_family: true,
            context_window: number(window)?,
            max_output: number(output),
            prices: None,
            traits: Traits::parse(traits),
        })
    })
}

/// Returns the cells of each row below the line that names the columns.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|line| line.split('\t').collect())
}

fn number<T: std::str::FromStr>(cell: &str) -> Option<T> {
    cell.parse().ok()
}

fn rates(input: &str, cache_read: &str, cache_write: &str, output: &str) -> Option<Rates> {
    Some(Rates {
        input: number(input)?,
        cache_read: number(cache_read),
        cache_write: number(cache_write),
        output: number(output)?,
    })
}

impl Traits {
    fn parse(cell: &str) -> Self {
        let has = |name: &str| cell.split(',').any(|word| word == name);
        Self {
            takes_tools: has("tools"),
            takes_images: has("images"),
            takes_documents: has("documents"),
            reasons: has("reasoning"),
            always_reasons: has("always-reasons"),
            refuses_prefill: has("no-prefill"),
            refuses_sampling: has("no-sampling"),
            refuses_forced_tools: has("no-forced-tools"),
            binds_reasoning: has("binds-reasoning"),
        }
    }
}
