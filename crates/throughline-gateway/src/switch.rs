//! The switch: which backend answers from the next request on, everywhere or in one conversation.
//!
//! A switch is a setting in the history, so it outlives the gateway, and whoever can write the history can
//! make one. It is checked against the configuration when it is made; one that names a backend which the
//! configuration has lost since is passed over.

use crate::config::Config;
use crate::routing::{Listings, Pick, RouteError, check_model, unknown};
use throughline_core::Text;
use throughline_store::{Batch, Moment, Scope, Setting, Standing, Write};

/// The name under which the history keeps a switch.
pub const SWITCH: &str = "backend";

/// The name under which the history keeps by what a switch was made.
pub const SWITCHED_BY: &str = "backend_by";

/// By what a switch was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `throughline use`.
    Cli,
    /// The HTTP interface, and the page in front of it.
    Http,
}

impl By {
    /// Returns the word that the history has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Http => "http",
        }
    }
}

/// Reads `BACKEND[/MODEL]`.
///
/// # Errors
/// When the configuration has no such backend, or the backend no such model as far as is known.
pub fn checked(config: &Config, text: &str, listings: &Listings) -> Result<Pick, RouteError> {
    let pick = Pick::parse(text);
    let backend = config.backend(&pick.backend).ok_or_else(|| unknown(config, &pick.backend))?;
    if let Some(model) = &pick.model {
        check_model(backend, model, listings)?;
    }
    Ok(pick)
}

/// Returns what has to be written to make a switch, or to take it back.
#[must_use]
pub fn batch(scope: &Scope, pick: Option<&Pick>, by: By, at: Moment) -> Batch {
    let setting = |name: &'static str, value: Option<Text>| {
        Write::Setting(Setting { scope: scope.clone(), name: Text::from_static(name), value, at })
    };
    let made_by = pick.map(|_| Text::from_static(by.name()));
    let value = pick.map(|pick| Text::from(pick.to_string()));
    Batch::durable(vec![setting(SWITCH, value), setting(SWITCHED_BY, made_by)])
}

/// Returns by what the switch of a scope was made; those of earlier versions did not say.
#[must_use]
pub fn made_by(standing: &Standing, scope: &Scope) -> Text {
    let made = standing.settings.iter().find(|made| made.scope == *scope && made.name == SWITCHED_BY);
    made.and_then(|made| made.value.clone()).unwrap_or(Text::from_static(By::Http.name()))
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
