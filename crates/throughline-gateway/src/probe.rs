//! A backend asked for its models: whether it is there, lets us in, and what it says of itself.
//!
//! The cheapest question that every provider answers, and the only one that costs no tokens.

use crate::capability::{self, Ability, Evidence, ListedModel, Verdict, from_headers, from_listing};
use crate::config::{Backend, Credential};
use crate::egress::bounds::{LISTING_BYTES_MAX, REFUSAL_BYTES_MAX};
use crate::egress::{Answered, Egress, EgressError, Presented};
use crate::verdicts;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throughline_core::Text;
use throughline_store::{Moment, Standing, Write};
use throughline_wire::decode_error;

/// How long a backend may take; its own limits are for answers of models.
const TIME_MAX: Duration = Duration::from_secs(15);

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It listed its models.
    Listed(Vec<ListedModel>),
    /// It is there and has no listing.
    Unlisted,
    /// It said no.
    Refused {
        /// With which status.
        status: u16,
        /// In its own words.
        message: Text,
    },
    /// There was no answer.
    Unreachable(String),
}

/// What a backend said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What came of asking.
    pub reached: Reached,
    /// What it says of all its models.
    pub abilities: Vec<(Ability, Verdict)>,
}

/// Asks a backend for its models.
pub async fn probe(backend: &Backend, egress: &Egress) -> Probe {
    let asked = tokio::time::timeout(TIME_MAX, ask(backend, egress)).await;
    let nothing = |why: String| Probe { reached: Reached::Unreachable(why), abilities: Vec::new() };
    match asked {
        Ok(Ok(probe)) => probe,
        Ok(Err(error)) => nothing(error.to_string()),
        Err(_) => nothing(format!("no answer within {} seconds", TIME_MAX.as_secs())),
    }
}

async fn ask(backend: &Backend, egress: &Egress) -> Result<Probe, EgressError> {
    let answered: Answered = egress.fetch("/models", &Presented::default()).await?;
    let status = answered.status;
    let said =
        answered.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let abilities = from_headers(said);
    let reached = match status {
        200..300 => {
            let body = answered.whole(LISTING_BYTES_MAX).await?;
            Reached::Listed(from_listing(&String::from_utf8_lossy(&body)))
        }
        404 | 405 | 501 => Reached::Unlisted,
        _ => {
            let body = answered.beginning(REFUSAL_BYTES_MAX, TIME_MAX).await;
            let mut failure = decode_error(backend.dialect, status, &String::from_utf8_lossy(&body));
            failure.shorten();
            Reached::Refused { status, message: failure.message }
        }
    };
    Ok(Probe { reached, abilities })
}

impl Probe {
    /// Returns what to do about it; nothing if all is well.
    #[must_use]
    pub fn advice(&self, credential: &Credential) -> Option<&'static str> {
        match &self.reached {
            Reached::Listed(_) | Reached::Unlisted => None,
            // Only a client can say whether its own credentials are let in.
            Reached::Refused { status: 401 | 403, .. } if *credential == Credential::Passthrough => None,
            Reached::Refused { status: 401 | 403, .. } => Some("check its api_key"),
            Reached::Refused { status: 429, .. } => Some("it asks for patience; look at its limits"),
            Reached::Refused { status: 500.., .. } => Some("it has trouble of its own; try again later"),
            Reached::Refused { .. } => Some("check its base_url, up to and including the version"),
            Reached::Unreachable(_) => Some("check its base_url, and whether it runs"),
        }
    }

    /// Returns the names of the models that the backend lists.
    #[must_use]
    pub fn models(&self) -> Option<BTreeSet<Text>> {
        match &self.reached {
            Reached::Listed(models) => Some(models.iter().map(|model| model.id.clone()).collect()),
            Reached::Unlisted | Reached::Refused { .. } | Reached::Unreachable(_) => None,
        }
    }

    /// Returns the windows of the models that the backend lists, where it says them.
    #[must_use]
    pub fn windows(&self) -> BTreeMap<Text, u64> {
        match &self.reached {
            Reached::Listed(models) => {
                models.iter().filter_map(|model| Some((model.id.clone(), model.window?))).collect()
            }
            Reached::Unlisted | Reached::Refused { .. } | Reached::Unreachable(_) => BTreeMap::new(),
        }
    }

    /// Returns what is to be written to remember the windows of those models that the configuration names.
    #[must_use]
    pub fn kept_windows(&self, backend: &Backend, at: Moment) -> Vec<Write> {
        let sent = backend.models.iter().map(|rule| rule.sent.as_ref().unwrap_or(&rule.pattern));
        let named: BTreeSet<&Text> = backend.default_model.iter().chain(sent).collect();
        let windows = self.windows();
        let listed = windows.iter().filter(|(model, _)| named.contains(model));
        listed
            .map(|(model, window)| {
                verdicts::keep_window(&backend.name, model, *window, Evidence::Listing, at)
            })
            .collect()
    }

    /// Returns what is to be written for people to see which models the backend lists.
    #[must_use]
    pub fn listed(&self, backend: &Backend, at: Moment) -> Option<Write> {
        self.models().map(|models| verdicts::keep_listed(&backend.name, &models, at))
    }

    /// Returns what is to be written for what the backend said to count; an attempt is believed over it.
    #[must_use]
    pub fn lessons(&self, backend: &Backend, standing: &Standing, at: Moment) -> Vec<Write> {
        let all_models = self.abilities.iter().map(|said| (Text::default(), *said, Evidence::Header));
        let listed: &[ListedModel] = match &self.reached {
            Reached::Listed(models) => models,
            Reached::Unlisted | Reached::Refused { .. } | Reached::Unreachable(_) => &[],
        };
        let of_model = |model: &ListedModel| {
            let name = model.id.clone();
            let said = model.abilities.clone().into_iter();
            said.map(move |said| (name.clone(), said, Evidence::Listing))
        };
        let told = all_models.chain(listed.iter().flat_map(of_model));
        let lesson = |(model, (ability, verdict), evidence): (Text, (Ability, Verdict), Evidence)| {
            let words = Text::from_static("the backend says so");
            let learned = capability::Learned::new(ability, verdict, evidence, words, at.0);
            let known = verdicts::find(standing, &backend.name, &model, ability).and_then(verdicts::recall);
            learned.supersedes(known.as_ref(), at.0).then(|| verdicts::keep(&backend.name, model, &learned))
        };
        told.filter_map(lesson).collect()
    }
}
