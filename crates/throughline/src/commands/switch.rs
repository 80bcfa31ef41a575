//! `throughline use`: switch to another backend, everywhere or in one conversation.
//!
//! The switch is written into the history, where a running gateway looks for each request; so it needs no
//! gateway to talk to, and holds for one that is started later.

use super::history;
use crate::args::{Args, UseArgs};
use crate::exit::CommandError;
use crate::output;
use throughline_gateway::config::Config;
use throughline_gateway::config::keys::nearest;
use throughline_gateway::gateway::now;
use throughline_gateway::routing::{Listings, Pick, RouteError};
use throughline_gateway::switch;
use throughline_store::Scope;
use throughline_wire::json::Writer;

/// Makes a switch, or takes it back.
pub fn run(asked: &UseArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let pick = asked.backend.as_deref().map(|typed| chosen(&config, typed)).transpose()?;
    let history = history::open_to_change(&config)?;
    let scope = history::wait(async {
        let scope = match &asked.conversation {
            Some(typed) => Scope::Conversation(history::find(&*history, typed).await?),
            None => Scope::Everywhere,
        };
        history.append(switch::batch(&scope, pick.as_ref(), switch::By::Cli, now())).await?;
        Ok(scope)
    })?;
    let backend = pick.map(|pick| pick.to_string());
    if args.json {
        return output::print(&format!("{}\n", said(backend.as_deref(), &scope)));
    }
    if args.quiet {
        return Ok(());
    }
    let place = match &scope {
        Scope::Everywhere => "all conversations".to_owned(),
        Scope::Conversation(id) => id.to_string(),
    };
    output::print(&match backend {
        Some(backend) => format!("{place}: {backend}, from the next request on\n"),
        None => format!("{place}: no switch any more, from the next request on\n"),
    })
}

/// Reads the backend that was typed, with its model if that was; one that is not configured is an error that names the
/// nearest.
pub fn chosen(config: &Config, typed: &str) -> Result<Pick, CommandError> {
    if let Some(backend) = typed.strip_suffix('/') {
        let error = CommandError::bad_input(format!("`{typed}` names no model behind the `/`"));
        return Err(error.hint(format!("`{backend}` alone leaves the model to those who ask")));
    }
    switch::checked(config, typed, &Listings::new()).map_err(|error| {
        let is_model = matches!(error, RouteError::UnknownModel { .. });
        let error = CommandError::bad_input(error.to_string());
        if is_model {
            return error.hint("`throughline doctor --probe` asks the backends for their models");
        }
        let name = typed.split('/').next().unwrap_or_default();
        match nearest(name, config.backends.iter().map(|backend| &*backend.name)) {
            Some(meant) => {
                error.hint(format!("did you mean `{meant}`? `throughline backends` says more about each"))
            }
            None => error.hint("`throughline backends` says more about each"),
        }
    })
}

fn said(backend: Option<&str>, scope: &Scope) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    match backend {
        Some(backend) => writer.field_str("backend", backend),
        None => writer.field_null("backend"),
    }
    match scope {
        Scope::Everywhere => writer.field_null("conversation"),
        Scope::Conversation(id) => writer.field_str("conversation", id.as_str()),
    }
    writer.end_object();
    writer.into_string()
}
