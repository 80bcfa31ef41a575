//! `throughline models`: what is known of models, and who says so.

use super::history;
use crate::args::{Args, ModelsArgs};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone, json_lines};
use std::collections::BTreeSet;
use throughline_gateway::capability::Evidence;
use throughline_gateway::config::{Backend, Config, FactSource, ModelFact, ModelFacts};
use throughline_gateway::gateway::now;
use throughline_gateway::verdicts;
use throughline_models::{Model, Prices, Traits};
use throughline_store::Standing;
use throughline_wire::json::Writer;

/// A line of the listing.
struct Row {
    backend: Option<String>,
    model: String,
    facts: ModelFacts,
}

/// Prints what is known of models.
pub fn run(asked: &ModelsArgs, args: &Args) -> Result<(), CommandError> {
    let rows = match (&asked.name, asked.all) {
        (_, true) => throughline_models::all().map(Row::from_catalogue).collect(),
        (name, false) => {
            let config = history::configured(args)?;
            // Without a history nothing was learned.
            let standing = standing_of(&config).unwrap_or_default();
            match name {
                Some(name) => named(&config, name, &standing),
                None => configured(&config, &standing),
            }
        }
    };
    let rows: Vec<Row> = match &asked.name {
        Some(name) if asked.all => rows.into_iter().filter(|row| row.model.contains(name.as_str())).collect(),
        _ => rows,
    };
    if args.json {
        output::print(&json_lines(&rows, write))?;
    } else {
        let ink = Ink::of_stdout();
        let date = throughline_models::date();
        let note = ink.dim(&format!("US dollars per million tokens; catalogue of {date}"));
        output::page(&format!("{}{note}\n", table(&rows).shown(&ink)), args)?;
    }
    match (&asked.name, rows.iter().all(|row| row.facts == ModelFacts::default())) {
        (Some(name), true) => {
            Err(CommandError::no(format!("nothing is known about a model called `{name}`")))
        }
        _ => Ok(()),
    }
}

fn standing_of(config: &Config) -> Result<Standing, CommandError> {
    let history = history::open_to_read(config)?;
    history::wait(async { Ok(history.standing().await?) })
}

/// The models that the configuration names, at each of its backends.
fn configured(config: &Config, standing: &Standing) -> Vec<Row> {
    let mut rows = Vec::new();
    for backend in &config.backends {
        let mapped = backend.models.iter().map(|rule| rule.sent.as_ref().unwrap_or(&rule.pattern));
        let names = backend.default_model.iter().chain(mapped).filter(|name| !name.contains('*'));
        let names: BTreeSet<&str> = names.map(throughline_core::Text::as_str).collect();
        rows.extend(names.into_iter().map(|name| Row::at(backend, name, standing)));
    }
    rows
}

/// A model at the backend that it names, or at all of them.
fn named(config: &Config, name: &str, standing: &Standing) -> Vec<Row> {
    let named = name.split_once('/').and_then(|(backend, model)| Some((config.backend(backend)?, model)));
    match named {
        Some((backend, model)) => vec![Row::at(backend, model, standing)],
        None => config.backends.iter().map(|backend| Row::at(backend, name, standing)).collect(),
    }
}

impl Row {
    fn at(backend: &Backend, model: &str, standing: &Standing) -> Self {
        let mut facts = backend.model_facts(model);
        let is_configured = facts.context_window.is_some_and(|it| it.source == FactSource::Configuration);
        match verdicts::window(standing, &backend.name, model, now()) {
            Some((value, Evidence::Tried)) => {
                facts.context_window = Some(ModelFact { value, source: FactSource::Refusal });
            }
            Some((value, Evidence::Listing | Evidence::Header)) if !is_configured => {
                facts.context_window = Some(ModelFact { value, source: FactSource::Listing });
            }
            _ => {}
        }
        Self { backend: Some(backend.name.to_string()), model: model.to_owned(), facts }
    }

    fn from_catalogue(model: &Model) -> Self {
        let source = if model.is_family { FactSource::Family } else { FactSource::Catalogue };
        let facts = ModelFacts {
            context_window: Some(ModelFact { value: model.context_window, source }),
            max_output: model.max_output.map(|value| ModelFact { value, source }),
            prices: model.prices.map(|value| ModelFact { value, source }),
            traits: Some(ModelFact { value: model.traits, source }),
        };
        Self { backend: model.provider.map(str::to_owned), model: model.name.to_owned(), facts }
    }

    /// Returns who said what is known of it, each once.
    fn sources(&self) -> Vec<&'static str> {
        let facts = &self.facts;
        let said = [
            facts.context_window.map(|it| it.source),
            facts.max_output.map(|it| it.source),
            facts.prices.map(|it| it.source),
        ];
        let mut names: Vec<&'static str> = said.into_iter().flatten().map(FactSource::name).collect();
        names.dedup();
        names
    }
}

fn table(rows: &[Row]) -> Table<8> {
    let mut table = Table::new([
        Column::words("MODEL").down_to(12),
        Column::words("BACKEND"),
        Column::number("WINDOW"),
        Column::number("OUTPUT"),
        Column::number("IN $"),
        Column::number("CACHED $"),
        Column::number("OUT $"),
        Column::words("SOURCE").down_to(6),
    ]);
    for row in rows {
        let facts = &row.facts;
        let rates = facts.prices.map(|prices| prices.value.base);
        let tokens = |fact: Option<ModelFact<u64>>| fact.map_or("?".to_owned(), |it| it.value.to_string());
        let price = |price: Option<f64>| price.map_or("?".to_owned(), |it| it.to_string());
        table.push([
            Cell::new(Tone::Bold, &row.model),
            row.backend.as_deref().unwrap_or("-").into(),
            tokens(facts.context_window).into(),
            tokens(facts.max_output).into(),
            price(rates.map(|it| it.input)).into(),
            price(rates.and_then(|it| it.cache_read)).into(),
            price(rates.map(|it| it.output)).into(),
            Cell::new(Tone::Dim, row.sources().join(", ")),
        ]);
    }
    table
}

fn write(writer: &mut Writer, row: &Row) {
    writer.begin_object();
    writer.field_str("model", &row.model);
    match &row.backend {
        Some(backend) => writer.field_str("backend", backend),
        None => writer.field_null("backend"),
    }
    let facts = &row.facts;
    write_fact(writer, "context_window", facts.context_window, |writer, tokens| writer.uint(*tokens));
    write_fact(writer, "max_output", facts.max_output, |writer, tokens| writer.uint(*tokens));
    write_fact(writer, "prices", facts.prices, write_prices);
    write_fact(writer, "traits", facts.traits, write_traits);
    writer.end_object();
}

fn write_fact<T>(
    writer: &mut Writer,
    name: &str,
    fact: Option<ModelFact<T>>,
    value: impl FnOnce(&mut Writer, &T),
) {
    writer.key(name);
    let Some(fact) = fact else { return writer.null() };
    writer.begin_object();
    writer.key("value");
    value(writer, &fact.value);
    writer.field_str("source", fact.source.name());
    writer.end_object();
}

fn write_prices(writer: &mut Writer, prices: &Prices) {
    let tier = prices.tier.map(|(from, rates)| (Some(from), rates));
    writer.begin_array();
    for (above, rates) in std::iter::once((None, prices.base)).chain(tier) {
        writer.begin_object();
        match above {
            Some(tokens) => writer.field_uint("above_input_tokens", tokens),
            None => writer.field_uint("above_input_tokens", 0),
        }
        let all = [
            ("input", Some(rates.input)),
            ("cache_read", rates.cache_read),
            ("cache_write", rates.cache_write),
            ("output", Some(rates.output)),
        ];
        for (name, price) in all {
            match price {
                Some(price) => writer.field_raw(name, &price.to_string()),
                None => writer.field_null(name),
            }
        }
        writer.end_object();
    }
    writer.end_array();
}

fn write_traits(writer: &mut Writer, traits: &Traits) {
    writer.begin_object();
    for (name, holds) in [
        ("takes_tools", traits.takes_tools),
        ("takes_images", traits.takes_images),
        ("takes_documents", traits.takes_documents),
        ("reasons", traits.reasons),
        ("always_reasons", traits.always_reasons),
        ("refuses_prefill", traits.refuses_prefill),
        ("refuses_sampling", traits.refuses_sampling),
        ("refuses_forced_tools", traits.refuses_forced_tools),
        ("binds_reasoning", traits.binds_reasoning),
    ] {
        writer.field_bool(name, holds);
    }
    writer.end_object();
}
