//! What the answers of `/api` share: parameters, pages, lists, and what is said when something is wrong.

use super::Ingress;
use crate::failure::{gateway_error, reject};
use crate::view;
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use http::header;
use std::collections::BTreeMap;
use throughline_core::{ConversationId, Dialect, Failure, FailureKind, Text};
use throughline_store::{Conversations, Cursor, Paging, StoreError};
use throughline_wire::json::Writer;

/// What stands behind the `?`.
pub type Parameters = Query<BTreeMap<String, String>>;

const PAGE: u32 = 50;
const PAGE_MAX: u32 = 500;

/// Returns the conversation of that id, as a list has it.
pub async fn listed(ingress: &Ingress, id: &str) -> Result<view::Listed, Failure> {
    let which = Conversations::One(ConversationId::new(id));
    let page = view::list(&*ingress.gateway.history, which).await.map_err(|error| unread(&error))?;
    page.items.into_iter().next().ok_or_else(|| no_conversation(id))
}

/// Returns the page that is asked for.
pub fn paging(parameters: &BTreeMap<String, String>) -> Result<Paging, Failure> {
    let limit = match parameters.get("limit") {
        Some(limit) => {
            let limit = limit.parse::<u32>().ok().filter(|limit| *limit > 0);
            limit.ok_or_else(|| bad("limit", "must be a whole number, and at least 1"))?
        }
        None => PAGE,
    };
    let after = parameters.get("after").map(|after| Cursor(Text::from(after.as_str())));
    Ok(Paging { after, limit: limit.min(PAGE_MAX) })
}

/// Writes a field that is a list.
pub fn array<T>(writer: &mut Writer, name: &str, items: &[T], write: impl Fn(&mut Writer, &T)) {
    writer.key(name);
    writer.begin_array();
    items.iter().for_each(|item| write(writer, item));
    writer.end_array();
}

/// Returns the answer.
pub fn respond(answer: Result<Writer, Failure>) -> Response {
    match answer {
        Ok(writer) => ([(header::CONTENT_TYPE, "application/json")], writer.into_string()).into_response(),
        Err(failure) => reject(Dialect::Responses, &failure),
    }
}

/// Returns the failure of a parameter that says nothing that can be understood.
pub fn bad(parameter: &'static str, problem: &str) -> Failure {
    Failure {
        param: Some(Text::from_static(parameter)),
        ..gateway_error(
            FailureKind::InvalidRequest,
            "throughline_invalid_request",
            format!("{parameter}: {problem}"),
        )
    }
}

/// Returns the failure of a request for a conversation that is not there.
pub fn no_conversation(id: &str) -> Failure {
    let message = format!("no conversation is called `{id}`");
    gateway_error(FailureKind::NotFound, "throughline_no_such_conversation", message)
}

/// Returns the failure of a history that cannot be read.
pub fn unread(error: &StoreError) -> Failure {
    match error {
        StoreError::UnknownConversation(id) => no_conversation(id.as_str()),
        StoreError::BadCursor(_) => bad("after", &error.to_string()),
        _ => gateway_error(FailureKind::Overloaded, "throughline_store_failed", error.to_string()),
    }
}
