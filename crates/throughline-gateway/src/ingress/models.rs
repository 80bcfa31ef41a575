//! The models on offer, in the shape of whichever client asks.

use super::Ingress;
use crate::capability::CAPABILITIES_HEADER;
use crate::config::{FactSource, ModelFacts};
use crate::exchange::clients::is_codex;
use crate::failure::{gateway_error, reject};
use crate::gateway::Setup;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, header};
use std::collections::BTreeMap;
use throughline_core::{Dialect, FailureKind};
use throughline_models::Traits;
use throughline_wire::json::Writer;

/// Lists all models.
pub async fn list(State(ingress): State<Ingress>, request: Request) -> Response {
    let dialect = dialect_of(request.headers());
    let models = models(&ingress.gateway.setup());
    let mut writer = Writer::new();
    writer.begin_object();
    if dialect != Dialect::Messages {
        writer.field_str("object", "list");
    }
    writer.key("data");
    writer.begin_array();
    models.iter().for_each(|(name, offer)| write(&mut writer, dialect, name, *offer));
    writer.end_array();
    if is_codex(request.headers()) {
        // Codex looks for its own catalogue; an empty one leaves it with what it knows itself.
        writer.field_raw("models", "[]");
    }
    if dialect == Dialect::Messages {
        writer.field_bool("has_more", false);
        write_end(&mut writer, "first_id", models.keys().next());
        write_end(&mut writer, "last_id", models.keys().next_back());
    }
    writer.end_object();
    json(writer)
}

/// Shows one model.
pub async fn one(State(ingress): State<Ingress>, Path(id): Path<String>, request: Request) -> Response {
    let dialect = dialect_of(request.headers());
    let models = models(&ingress.gateway.setup());
    let Some(offer) = models.get(&id) else {
        let message = format!("no backend lists a model called `{id}`");
        return reject(dialect, &gateway_error(FailureKind::NotFound, "throughline_no_such_model", message));
    };
    let mut writer = Writer::new();
    write(&mut writer, dialect, &id, *offer);
    json(writer)
}

/// Tells the clients apart by a header that one family always sends.
pub fn dialect_of(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Messages } else { Dialect::Chat }
}

/// What is said of a model, as far as it is known.
#[derive(Clone, Copy)]
struct Offer {
    window: Option<u64>,
    max_output: Option<u64>,
    takes_tools: Option<bool>,
    takes_images: Option<bool>,
}

impl Offer {
    fn from_facts(facts: &ModelFacts) -> Self {
        // A family says what its models have in common: that it does not mention something means nothing.
        let can = |trait_of: fn(&Traits) -> bool| {
            let traits = facts.traits.as_ref()?;
            let has = trait_of(&traits.value);
            (has || traits.source == FactSource::Catalogue).then_some(has)
        };
        Self {
            window: facts.context_window.as_ref().map(|window| window.value),
            max_output: facts.max_output.as_ref().map(|output| output.value),
            takes_tools: can(|traits| traits.takes_tools),
            takes_images: can(|traits| traits.takes_images),
        }
    }

    /// Returns what holds whichever of two backends answers.
    fn of_both(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            window: least(self.window, other.window),
            max_output: least(self.max_output, other.max_output),
            takes_tools: least(self.takes_tools, other.takes_tools),
            takes_images: least(self.takes_images, other.takes_images),
        }
    }
}

/// Returns the models that a client may ask for, with what is known of them: each one under its own name, and under its
/// backend.
fn models(setup: &Setup) -> BTreeMap<String, Offer> {
    let mut models = BTreeMap::new();
    let listings = setup.listings();
    for backend in &setup.config.backends {
        // What a client may ask for, and the model of the backend that it gets.
        let mapped = backend.models.iter().filter(|rule| !rule.pattern.contains('*'));
        let mapped = mapped.map(|rule| (&rule.pattern, rule.sent.as_ref().unwrap_or(&rule.pattern)));
        let listed = listings.get(&backend.name).into_iter().flatten();
        let own = backend.default_model.iter().chain(listed).map(|model| (model, model));
        for (model, sent) in own.chain(mapped) {
            let offer = Offer::from_facts(&backend.model_facts(sent));
            models.insert(format!("{}/{model}", backend.name), offer);
            // Several backends may answer to the bare name: what fits the smallest window fits them all.
            let shared = models.entry(model.to_string()).or_insert(offer);
            *shared = shared.of_both(offer);
        }
    }
    models
}

fn write(writer: &mut Writer, dialect: Dialect, name: &str, offer: Offer) {
    writer.begin_object();
    if dialect == Dialect::Messages {
        writer.field_str("type", "model");
        writer.field_str("id", name);
        writer.field_str("display_name", name);
        writer.field_str("created_at", "1970-01-01T00:00:00Z");
        if let Some(window) = offer.window {
            writer.field_uint("max_input_tokens", window);
        }
        if let Some(max_output) = offer.max_output {
            writer.field_uint("max_tokens", max_output);
        }
    } else {
        writer.field_str("id", name);
        writer.field_str("object", "model");
        writer.field_uint("created", 0);
        writer.field_str("owned_by", "throughline");
        // OpenRouter and vLLM's followers say it one way, Groq and its followers the other.
        if let Some(window) = offer.window {
            writer.field_uint("context_length", window);
            writer.field_uint("context_window", window);
        }
        if let Some(max_output) = offer.max_output {
            writer.field_uint("max_output_tokens", max_output);
        }
        write_capabilities(writer, offer);
    }
    writer.end_object();
}

/// Writes what a model takes, as Mistral's list does.
fn write_capabilities(writer: &mut Writer, offer: Offer) {
    if offer.takes_tools.is_none() && offer.takes_images.is_none() {
        return;
    }
    writer.key("capabilities");
    writer.begin_object();
    for (name, can) in [("function_calling", offer.takes_tools), ("vision", offer.takes_images)] {
        if let Some(can) = can {
            writer.field_bool(name, can);
        }
    }
    writer.end_object();
}

fn write_end(writer: &mut Writer, field: &str, name: Option<&String>) {
    match name {
        Some(name) => writer.field_str(field, name),
        None => writer.field_null(field),
    }
}

fn json(writer: Writer) -> Response {
    // What a gateway can do, for one in front of it: everything, whatever stands behind.
    let abilities =
        (HeaderName::from_static(CAPABILITIES_HEADER), "native_tool_history=yes, server_state=yes");
    let head = [(header::CONTENT_TYPE, "application/json"), abilities];
    (head, writer.into_string()).into_response()
}
