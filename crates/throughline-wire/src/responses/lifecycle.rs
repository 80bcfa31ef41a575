//! The life of a response: its status, and the events that carry it whole.

use crate::Outgoing;
use crate::json::{Document, Edit, Writer, patch, quote};
use throughline_core::{Failure, Text};

/// The code of a failure that has none of its own.
const DEFAULT_CODE: &str = "server_error";

/// Returns an event that carries a response.
#[must_use]
pub fn response_event(name: &'static str, number: u64, response: &str) -> Outgoing {
    Outgoing { name: Some(name), data: event_data(name, number, response) }
}

/// Returns the event that ends the stream of a response. No event says that it was cancelled, so that is told as the
/// failure `cancelled`.
#[must_use]
pub fn last_response_event(response: &str, number: u64, cancelled: &Failure) -> Outgoing {
    match response_status(response).as_deref() {
        Some("completed") => response_event("response.completed", number, response),
        Some("incomplete") => response_event("response.incomplete", number, response),
        Some("failed") => response_event("response.failed", number, response),
        _ => response_event("response.failed", number, &failed_response(response, cancelled)),
    }
}

/// Returns the event that stands for a whole stream, where an answer came at once.
#[must_use]
pub fn whole_response_event(response: &str) -> String {
    let status = response_status(response).unwrap_or(Text::from_static("completed"));
    event_data(&format!("response.{status}"), 0, response)
}

fn event_data(name: &str, number: u64, response: &str) -> String {
    let mut writer = Writer::with_capacity(response.len() + 64);
    writer.begin_object();
    writer.field_str("type", name);
    writer.field_uint("sequence_number", number);
    writer.field_raw("response", response);
    writer.end_object();
    writer.into_string()
}

/// Returns the response that an event carries.
#[must_use]
pub fn response_in_event(data: &str) -> Option<Text> {
    let document = Document::parse(data).ok()?;
    document.root().field("response").map(|response| Text::from(response.raw()))
}

/// Returns the number of an event.
#[must_use]
pub fn event_number(data: &str) -> Option<u64> {
    Document::parse(data).ok()?.root().field("sequence_number")?.as_u64()
}

/// Returns the event by which a stream tells of a failure that belongs to no response.
#[must_use]
pub fn error_event(failure: &Failure, number: u64) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("type", "error");
    writer.field_uint("sequence_number", number);
    writer.field_str("code", failure.code.as_deref().unwrap_or(DEFAULT_CODE));
    writer.field_str("message", &failure.message);
    match &failure.param {
        Some(param) => writer.field_str("param", param),
        None => writer.field_raw("param", "null"),
    }
    writer.end_object();
    writer.into_string()
}

/// Returns the status of a response.
#[must_use]
pub fn response_status(response: &str) -> Option<Text> {
    Document::parse(response).ok()?.root().field("status")?.as_text()
}

/// Says whether a response was generated in the background.
#[must_use]
pub fn is_background_response(response: &str) -> bool {
    let document = Document::parse(response).ok();
    let flag = document.as_ref().and_then(|document| document.root().field("background")?.as_bool());
    flag == Some(true)
}

/// Returns a response in a status in which it has not ended.
#[must_use]
pub fn response_in_status(response: &str, status: &str) -> String {
    let status = quote(status);
    let edits =
        [Edit::Set { name: "status", value: &status }, Edit::Set { name: "completed_at", value: "null" }];
    patch(response, &edits).unwrap_or_else(|_| response.to_owned())
}

/// Returns a response as one that was generated in the background.
#[must_use]
pub fn background_response(response: String) -> String {
    patch(&response, &[Edit::Set { name: "background", value: "true" }]).unwrap_or(response)
}

/// Returns a response that has failed.
#[must_use]
pub fn failed_response(response: &str, failure: &Failure) -> String {
    let error = error_object(failure);
    let edits =
        [Edit::Set { name: "status", value: "\"failed\"" }, Edit::Set { name: "error", value: &error }];
    patch(response, &edits).unwrap_or_else(|_| response.to_owned())
}

/// Returns a response that failed while it was streamed, with the items of those events that say that one is done;
/// nothing if one of them is no such event.
#[must_use]
pub fn interrupted_response(response: &str, done: &[Text], failure: &Failure) -> Option<String> {
    let mut output = Writer::new();
    output.begin_array();
    for event in done {
        let document = Document::parse(event.as_str()).ok()?;
        output.raw(document.root().field("item")?.raw());
    }
    output.end_array();

    let (output, error) = (output.into_string(), error_object(failure));
    let edits = [
        Edit::Set { name: "status", value: "\"failed\"" },
        Edit::Set { name: "error", value: &error },
        Edit::Set { name: "output", value: &output },
    ];
    patch(response, &edits).ok()
}

fn error_object(failure: &Failure) -> String {
    let mut error = Writer::new();
    error.begin_object();
    error.field_str("code", failure.code.as_deref().unwrap_or(DEFAULT_CODE));
    error.field_str("message", &failure.message);
    error.end_object();
    error.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::FailureKind;

    const RESPONSE: &str = r#"{"id":"resp_1","status":"in_progress","output":[],"error":null}"#;

    fn failure() -> Failure {
        Failure { code: Some("gone".into()), ..Failure::new(FailureKind::Backend, "it broke off") }
    }

    #[test]
    fn a_response_that_was_cancelled_ends_as_a_failure() {
        let cancelled = response_in_status(RESPONSE, "cancelled");
        let event = last_response_event(&cancelled, 7, &failure());
        assert_eq!(event.name, Some("response.failed"));
        assert_eq!(event_number(&event.data), Some(7));
        let failed = response_in_event(&event.data).unwrap();
        assert_eq!(response_status(&failed).as_deref(), Some("failed"));
        assert!(failed.contains(r#""error":{"code":"gone","message":"it broke off"}"#), "{failed}");
    }

    #[test]
    fn a_response_that_broke_off_has_the_items_that_were_done() {
        let done = [Text::from_static(r#"{"type":"response.output_item.done","item":{"id":"msg_1"}}"#)];
        let broken = interrupted_response(RESPONSE, &done, &failure()).unwrap();
        assert!(broken.contains(r#""output":[{"id":"msg_1"}]"#), "{broken}");
        assert_eq!(interrupted_response(RESPONSE, &["{}".into()], &failure()), None);
    }

    #[test]
    fn an_answer_that_came_at_once_is_the_event_of_its_status() {
        assert!(
            whole_response_event(r#"{"status":"incomplete"}"#)
                .starts_with(r#"{"type":"response.incomplete""#)
        );
        assert!(whole_response_event("{}").starts_with(r#"{"type":"response.completed""#));
    }
}
