//! Who is asked: the first destination of a request, those that stand in for it, and whether anything of it is kept.

use super::handover::Cause;
use super::{BACKEND_HEADER, Incoming, STORE_HEADER, background_request, identity};
use crate::capability::Evidence;
use crate::failure::gateway_error;
use crate::gateway::{Gateway, Setup, now};
use crate::model_lists::ModelLists;
use crate::routing::{Asked, Destination, LearnedWindow, Route, RouteError, route};
use crate::switch;
use crate::verdicts;
use throughline_core::{Ask, ConversationId, Failure, FailureKind, Text};
use throughline_store::{Scope, Standing};

/// What a request says about who is to answer it, besides its model.
#[derive(Clone, Debug)]
pub struct RouteHints {
    /// The backend that it names, perhaps with a model.
    pub backend: Option<Text>,
    /// The conversation whose switch counts, if not that of its own.
    pub beside: Option<ConversationId>,
    /// Whether it is to be kept, as it is written.
    pub store: Option<Text>,
}

/// Where a request goes.
#[derive(Debug)]
pub struct Routed {
    /// Who is asked, and then those that stand in.
    pub destinations: Vec<Destination>,
    /// Why the first of them is asked.
    pub cause: Cause,
    /// The model that the client is told of.
    pub shown_model: Text,
    /// Whether the exchange is kept.
    pub is_kept: bool,
}

impl RouteHints {
    /// Returns what a request says.
    #[must_use]
    pub fn for_request(incoming: &Incoming) -> Self {
        let text = |name: &str| incoming.headers.get(name)?.to_str().ok().map(Text::from);
        Self {
            backend: incoming.own.as_ref().map_or_else(|| text(BACKEND_HEADER), |own| own.backend.clone()),
            beside: identity::asked_beside(&incoming.headers),
            // What is no text is no word for it either.
            store: incoming.headers.get(STORE_HEADER).map(|value| value.to_str().unwrap_or_default().into()),
        }
    }

    /// Returns what a request of our own says that names a backend.
    #[must_use]
    pub const fn for_backend(backend: Option<Text>) -> Self {
        Self { backend, beside: None, store: None }
    }
}

/// Finds out where a request goes.
///
/// # Errors
/// When there is no such backend or model, or what is asked for cannot be done without keeping it.
pub fn route_request(
    setup: &Setup,
    standing: &Standing,
    hints: &RouteHints,
    ask: &Ask,
    conversation: &ConversationId,
) -> Result<Routed, Failure> {
    let route = find_route(setup, standing, hints, ask.model.as_deref(), conversation)?;
    let cause = Cause::of(route.reason, standing, conversation, ask.model.as_deref());
    let is_kept = is_kept(hints, &route)?;
    let shown_model = route.shown_model;
    let destinations = std::iter::once(route.first).chain(route.fallbacks).collect();
    Ok(Routed { destinations, cause, shown_model, is_kept })
}

/// Says whether an exchange is kept: not if the client says so, or if it may go to a backend of which nothing is.
fn is_kept(hints: &RouteHints, route: &Route) -> Result<bool, Failure> {
    let is_wanted = match hints.store.as_deref() {
        None | Some("true") => true,
        Some("false") => false,
        Some(other) => {
            let what = format!("{STORE_HEADER}: `{other}` is neither `true` nor `false`");
            return Err(Failure {
                param: Some(Text::from_static(STORE_HEADER)),
                ..gateway_error(FailureKind::InvalidRequest, "throughline_invalid_request", what)
            });
        }
    };
    let mut destinations = std::iter::once(&route.first).chain(&route.fallbacks);
    Ok(is_wanted && destinations.all(|destination| destination.backend.store))
}

/// Refuses what cannot be done without keeping it.
pub fn check_unkept(ask: &Ask, is_own: bool) -> Result<(), Failure> {
    if is_own {
        let what = "a turn is run from what is kept, and this would not be";
        return Err(gateway_error(FailureKind::InvalidRequest, "throughline_not_kept", what));
    }
    if background_request::is_wanted(ask) {
        let what = "background: what is to be had later has to be kept, and this is not";
        return Err(Failure {
            param: Some(Text::from_static("background")),
            ..gateway_error(FailureKind::InvalidRequest, "throughline_invalid_request", what)
        });
    }
    Ok(())
}

/// Returns the backend of which nothing is to be kept, if a request may go to one.
pub fn unkept(
    gateway: &Gateway,
    standing: &Standing,
    hints: &RouteHints,
    model: Option<&str>,
    conversation: &ConversationId,
) -> Option<Text> {
    let route = find_route(&gateway.setup(), standing, hints, model, conversation).ok()?;
    let mut destinations = std::iter::once(&route.first).chain(&route.fallbacks);
    destinations.find(|to| !to.backend.store).map(|to| to.backend.name.clone())
}

fn find_route(
    setup: &Setup,
    standing: &Standing,
    hints: &RouteHints,
    model: Option<&str>,
    conversation: &ConversationId,
) -> Result<Route, Failure> {
    let everywhere = switch::of(standing, &Scope::Everywhere);
    let switched = hints.beside.clone().unwrap_or_else(|| conversation.clone());
    let conversation = switch::of(standing, &Scope::Conversation(switched));
    let asked = Asked {
        model,
        backend: hints.backend.as_deref(),
        conversation: conversation.as_ref(),
        switched: everywhere.as_ref(),
    };
    let routed = route(&setup.config, &asked, &setup.listings());
    let routed = routed.map(|mut route| {
        let listed = setup.listed();
        for destination in std::iter::once(&mut route.first).chain(&mut route.fallbacks) {
            destination.window = learned_window(standing, &listed, destination);
        }
        route
    });
    routed.map_err(|error| {
        let (code, param) = match &error {
            RouteError::UnknownBackend { .. } => ("throughline_unknown_backend", BACKEND_HEADER),
            RouteError::MisspeltBackend { .. } => ("throughline_unknown_backend", "model"),
            RouteError::UnknownModel { .. } => ("throughline_unknown_model", "model"),
            RouteError::NoModel { .. } => ("throughline_no_model", "model"),
        };
        Failure {
            param: Some(Text::from_static(param)),
            ..gateway_error(FailureKind::InvalidRequest, code, error.to_string())
        }
    })
}

/// Returns what a backend says about the window of a destination.
fn learned_window(standing: &Standing, listed: &ModelLists, destination: &Destination) -> LearnedWindow {
    let Destination { backend, model, .. } = destination;
    let kept = verdicts::window(standing, &backend.name, model, now());
    let of = |evidence: Evidence| kept.filter(|(_, known)| *known == evidence).map(|(window, _)| window);
    let listed = listed.get(&backend.name).and_then(|listing| listing.windows.get(model).copied());
    LearnedWindow { listed: listed.or(of(Evidence::Listing)), refused: of(Evidence::Tried) }
}
