//! `throughline backends`: who can answer, who does, and what was learned about each.

use super::history;
use crate::args::Args;
use crate::exit::CommandError;
use crate::output::{self, Ink};
use throughline_gateway::config::Config;
use throughline_gateway::gateway::now;
use throughline_gateway::routing::Listings;
use throughline_gateway::{switch, view};
use throughline_store::{Learned, Moment, Scope, Standing};
use throughline_wire::json::Writer;

/// Prints the backends.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open_to_read(&config)?;
    let standing = history::wait(async { Ok(history.standing().await?) })?;
    if args.json {
        let mut writer = Writer::new();
        // Which models a backend lists, in full, only a gateway that has asked it knows.
        view::write_backends(&mut writer, &config, &standing, &Listings::new(), now());
        return output::print(&format!("{}\n", writer.into_string()));
    }
    let ink = Ink::of_stdout();
    let rows: Vec<[String; 5]> = rows(&config, &standing);
    let mut text = ink.table(&["NAME", "DIALECT", "ADDRESS", "DEFAULT MODEL", ""], &rows);
    if !standing.learned.is_empty() {
        text.push_str(&format!("\n{}\n", ink.bold("learned")));
        standing.learned.iter().for_each(|learned| text.push_str(&shown(learned, now(), &ink)));
    }
    output::print(&text)
}

fn rows(config: &Config, standing: &Standing) -> Vec<[String; 5]> {
    let switched = switch::of(standing, &Scope::Everywhere);
    let active = switch::active(config, standing);
    let state = |name: &str| match &switched {
        Some(pick) if pick.backend == *name && *active == *name => format!("active (switched to {pick})"),
        _ if *active == *name => "active".to_owned(),
        _ if *config.active == *name => "active without the switch".to_owned(),
        _ => String::new(),
    };
    let row = |backend: &throughline_gateway::config::Backend| {
        [
            backend.name.to_string(),
            backend.dialect.to_string(),
            backend.endpoint.to_string(),
            backend.default_model.as_deref().unwrap_or("-").to_owned(),
            state(&backend.name),
        ]
    };
    config.backends.iter().map(|backend| row(backend)).collect()
}

fn shown(learned: &Learned, now: Moment, ink: &Ink) -> String {
    let model = if learned.model.is_empty() { "all models" } else { &learned.model };
    let until = match learned.expires {
        Some(expires) if expires <= now => format!("until {}, so no longer", output::seconds(expires)),
        Some(expires) => format!("until {}", output::seconds(expires)),
        None => "for good".to_owned(),
    };
    let (backend, capability, verdict) = (&learned.backend, &learned.capability, &learned.verdict);
    let why = ink.dim(&format!("({}, {until})", ink.tame(&learned.reason)));
    format!("{backend}  {model}  {capability}: {verdict}  {why}\n")
}
