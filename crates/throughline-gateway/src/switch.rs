//! The switch: which backend answers from the next request on, everywhere or in one conversation.
//!
//! A switch is a setting in the history, so it outlives the gateway, and whoever can write the history can
//! make one. It is checked against the configuration when it is made; one that names a backend which the
//! configuration has lost since is passed over.

use crate::config::Config;
use crate::routing::{Pick, RouteError, unknown};
use throughline_core::Text;
use throughline_store::{Batch, Moment, Scope, Setting, Standing, Write};

/// The name under which the history keeps a switch.
pub const SWITCH: &str = "backend";

/// Reads `BACKEND[/MODEL]`.
///
/// # Errors
/// When the configuration has no such backend.
pub fn checked(config: &Config, text: &str) -> Result<Pick, RouteError> {
    let pick = Pick::parse(text);
    match config.backend(&pick.backend) {
        Some(_) => Ok(pick),
        None => Err(unknown(config, &pick.backend)),
    }
}

/// Returns what has to be written to make a switch, or to take it back.
#[must_use]
pub fn batch(scope: Scope, pick: Option<&Pick>, at: Moment) -> Batch {
    let value = pick.map(|pick| Text::from(pick.to_string()));
    Batch::durable(vec![Write::Setting(Setting { scope, name: Text::from_static(SWITCH), value, at })])
}

/// Returns the switch that was made for a scope.
#[must_use]
pub fn of(standing: &Standing, scope: &Scope) -> Option<Pick> {
    let made = standing.settings.iter().find(|made| made.scope == *scope && made.name == SWITCH)?;
    made.value.as_deref().map(Pick::parse)
}

/// Returns the name of the backend that answers when nothing in a request chooses one.
#[must_use]
pub fn active(config: &Config, standing: &Standing) -> Text {
    let switched = of(standing, &Scope::Everywhere).map(|pick| pick.backend);
    switched.filter(|name| config.backend(name).is_some()).unwrap_or_else(|| config.active.clone())
}
