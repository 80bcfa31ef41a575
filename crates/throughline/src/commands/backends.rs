//! `throughline backends`: who can answer, who does, and what was learned about each.

use super::history;
use crate::args::{Args, BackendsArgs};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone, json_line};
use throughline_gateway::config::Config;
use throughline_gateway::gateway::now;
use throughline_gateway::routing::{Listings, Pick};
use throughline_gateway::{switch, verdicts, view};
use throughline_store::{Batch, Learned, Moment, Scope, Standing};

/// Prints the backends, or has what was learned of one forgotten.
pub fn run(asked: &BackendsArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    if let Some(typed) = &asked.forget {
        return forget(&config, typed, args);
    }
    let history = history::open_to_read(&config)?;
    let standing = history::wait(async { Ok(history.standing().await?) })?;
    if args.json {
        // Which models a backend lists, in full, only a gateway that has asked it knows.
        let write =
            |writer: &mut _| view::write_backends(writer, &config, &standing, &Listings::new(), now());
        return output::print(&json_line(write));
    }
    let ink = Ink::of_stdout();
    let mut text = listed(&config, &standing).shown(&ink);
    for (name, lacks) in config.backends.iter().filter_map(|each| Some((&each.name, each.lacks.as_ref()?))) {
        text.push_str(&format!("{}\n", ink.toned(Tone::Warn, &format!("{name} cannot be asked: {lacks}"))));
    }
    if !standing.learned.is_empty() {
        text.push_str(&learned(&standing.learned, now(), &ink));
    }
    output::page(&text, args)
}

/// Has what was learned of a backend, or of one of its models, forgotten from the next request on.
fn forget(config: &Config, typed: &str, args: &Args) -> Result<(), CommandError> {
    let pick = Pick::parse(typed);
    let history = history::open_to_change(config)?;
    let forgotten = history::wait(async {
        let standing = history.standing().await?;
        let writes = verdicts::forget(&standing, &pick.backend, pick.model.as_deref(), now());
        let count = writes.len();
        if count > 0 {
            history.append(Batch::durable(writes)).await?;
        }
        Ok(count)
    })?;
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_str("backend", &pick.to_string());
            writer.field_uint("forgotten", forgotten as u64);
            writer.end_object();
        }));
    }
    if args.quiet {
        return Ok(());
    }
    output::print(&match forgotten {
        0 => format!("nothing was learned of {pick}\n"),
        count => format!("forgot {count} observations of {pick}, from the next request on\n"),
    })
}

fn listed(config: &Config, standing: &Standing) -> Table<5> {
    let switched = switch::of(standing, &Scope::Everywhere);
    let active = switch::active(config, standing);
    let state = |name: &str| match &switched {
        Some(pick) if pick.backend == *name && *active == *name => {
            Cell::new(Tone::Good, format!("active (switched to {pick})"))
        }
        _ if *active == *name => Cell::new(Tone::Good, "active"),
        _ if *config.active == *name => Cell::new(Tone::Dim, "active without the switch"),
        _ => Cell::default(),
    };
    let mut table = Table::new([
        Column::words("NAME"),
        Column::words("DIALECT"),
        Column::words("ADDRESS").down_to(12),
        Column::words("DEFAULT MODEL").down_to(13),
        Column::words("STATE").down_to(6),
    ]);
    for backend in &config.backends {
        table.push([
            Cell::new(Tone::Bold, backend.name.as_str()),
            backend.dialect.to_string().into(),
            backend.endpoint.to_string().into(),
            backend.default_model.as_deref().unwrap_or("-").into(),
            state(&backend.name),
        ]);
    }
    table
}

/// Returns what was learned, each thing in as many lines as it needs: a reason is only of use whole.
fn learned(learned: &[Learned], now: Moment, ink: &Ink) -> String {
    let mut text = String::new();
    let mut before = None;
    for each in learned {
        let model = if each.model.is_empty() { "all models" } else { each.model.as_str() };
        let of = (each.backend.as_str(), model);
        if before != Some(of) {
            text.push_str(&format!("\nlearned of {}, {}\n", ink.bold(&ink.tame(of.0)), ink.tame(of.1)));
        }
        before = Some(of);
        let until = match each.expires {
            Some(expires) if expires <= now => format!("over, {}", ink.when(expires)),
            Some(expires) => format!("until {}", ink.when(expires)),
            None => "for good".to_owned(),
        };
        let verdict = format!("{}: {}", each.capability, each.verdict);
        let reason = ink.wrapped(&format!("{until}; {}", each.reason), 4);
        text.push_str(&format!("  {}\n    {}\n", ink.wrapped(&verdict, 4), ink.dim(&reason)));
    }
    text
}
