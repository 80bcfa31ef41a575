//! The models on offer, in the shape of whichever client asks.

use super::Ingress;
use crate::capability::CAPABILITIES_HEADER;
use crate::exchange::clients::is_codex;
use crate::gateway::Setup;
use crate::ingress::reject::{own, reject};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, header};
use std::collections::BTreeMap;
use throughline_core::{Dialect, FailureKind};
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
    models.iter().for_each(|(name, window)| write(&mut writer, dialect, name, *window));
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
    let Some(window) = models.get(&id) else {
        let message = format!("no backend lists a model called `{id}`");
        return reject(dialect, &own(FailureKind::NotFound, "throughline_no_such_model", message));
    };
    let mut writer = Writer::new();
    write(&mut writer, dialect, &id, *window);
    json(writer)
}

/// Tells the clients apart by a header that one family always sends.
pub fn dialect_of(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Messages } else { Dialect::Chat }
}

/// Returns the models that a client may ask for, with their windows where those are known: each one under its own
/// name, and under its backend.
fn models(setup: &Setup) -> BTreeMap<String, Option<u64>> {
    let mut models = BTreeMap::new();
    let listings = setup.listings();
    for backend in &setup.config.backends {
        // What a client may ask for, and the model of the backend that it gets.
        let mapped = backend.models.iter().filter(|rule| !rule.pattern.contains('*'));
        let mapped = mapped.map(|rule| (&rule.pattern, rule.sent.as_ref().unwrap_or(&rule.pattern)));
        let listed = listings.get(&backend.name).into_iter().flatten();
        let own = backend.default_model.iter().chain(listed).map(|model| (model, model));
        for (model, sent) in own.chain(mapped) {
            let window = backend.model_facts(sent).context_window.map(|window| window.value);
            models.insert(format!("{}/{model}", backend.name), window);
            // Several backends may answer to the bare name: what fits the smallest window fits them all.
            let shared = models.entry(model.to_string()).or_insert(window);
            *shared = (*shared).into_iter().chain(window).min();
        }
    }
    models
}

fn write(writer: &mut Writer, dialect: Dialect, name: &str, window: Option<u64>) {
    writer.begin_object();
    if dialect == Dialect::Messages {
        writer.field_str("type", "model");
        writer.field_str("id", name);
        writer.field_str("display_name", name);
        writer.field_str("created_at", "1970-01-01T00:00:00Z");
        if let Some(window) = window {
            writer.field_uint("max_input_tokens", window);
        }
    } else {
        writer.field_str("id", name);
        writer.field_str("object", "model");
        writer.field_uint("created", 0);
        writer.field_str("owned_by", "throughline");
        // OpenRouter and vLLM's followers say it one way, Groq and its followers the other.
        if let Some(window) = window {
            writer.field_uint("context_length", window);
            writer.field_uint("context_window", window);
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
