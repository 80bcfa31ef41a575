//! The models on offer, in the shape of whichever client asks.

use super::Ingress;
use crate::capability::CAPABILITIES_HEADER;
use crate::exchange::clients::is_codex;
use crate::gateway::Setup;
use crate::ingress::reject::{own, reject};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, header};
use std::collections::BTreeSet;
use throughline_core::{Dialect, FailureKind};
use throughline_wire::json::Writer;

/// Lists all models.
pub async fn list(State(ingress): State<Ingress>, request: Request) -> Response {
    let dialect = dialect_of(request.headers());
    let names = names(&ingress.gateway.setup());
    let mut writer = Writer::new();
    writer.begin_object();
    if dialect != Dialect::Messages {
        writer.field_str("object", "list");
    }
    writer.key("data");
    writer.begin_array();
    names.iter().for_each(|name| write(&mut writer, dialect, name));
    writer.end_array();
    if is_codex(request.headers()) {
        // Codex looks for its own catalogue; an empty one leaves it with what it knows itself.
        writer.field_raw("models", "[]");
    }
    if dialect == Dialect::Messages {
        writer.field_bool("has_more", false);
        write_end(&mut writer, "first_id", names.first());
        write_end(&mut writer, "last_id", names.last());
    }
    writer.end_object();
    json(writer)
}

/// Shows one model.
pub async fn one(State(ingress): State<Ingress>, Path(id): Path<String>, request: Request) -> Response {
    let dialect = dialect_of(request.headers());
    if !names(&ingress.gateway.setup()).contains(&id) {
        let message = format!("no backend lists a model called `{id}`");
        return reject(dialect, &own(FailureKind::NotFound, "throughline_no_such_model", message));
    }
    let mut writer = Writer::new();
    write(&mut writer, dialect, &id);
    json(writer)
}

/// Tells the clients apart by a header that one family always sends.
pub fn dialect_of(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Messages } else { Dialect::Chat }
}

/// Returns the names that a client may ask for: those that backends know, and each under its backend.
fn names(setup: &Setup) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let listings = setup.listings();
    for backend in &setup.config.backends {
        let mapped = backend.models.iter().map(|rule| &rule.pattern).filter(|pattern| !pattern.contains('*'));
        let listed = listings.get(&backend.name).into_iter().flatten();
        for model in backend.default_model.iter().chain(mapped).chain(listed) {
            names.insert(model.to_string());
            names.insert(format!("{}/{model}", backend.name));
        }
    }
    names
}

fn write(writer: &mut Writer, dialect: Dialect, name: &str) {
    writer.begin_object();
    if dialect == Dialect::Messages {
        writer.field_str("type", "model");
        writer.field_str("id", name);
        writer.field_str("display_name", name);
        writer.field_str("created_at", "1970-01-01T00:00:00Z");
    } else {
        writer.field_str("id", name);
        writer.field_str("object", "model");
        writer.field_uint("created", 0);
        writer.field_str("owned_by", "throughline");
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
