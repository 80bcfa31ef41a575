//! One request and its answer: let in, thought about, written, kept.

use crate::compose::{Composer, frames};
use crate::counting;
use crate::delivery::{self, Manner, Receipt};
use crate::gate::{Admitted, Gate};
use crate::model::Draft;
use crate::refusal::Refused;
use crate::script::{Act, ScriptedError, ScriptedEvent};
use crate::server::Shared;
use crate::stored::StoredResponse;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use throughline_core::{Ask, Dialect, Ending, Failure, Frame, Reply, Text};
use throughline_wire::sse::write_event;
use throughline_wire::{ReasoningEvents, Stamp, StreamEncoder, encode_error, encode_reply, kind_of_status};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// The time of the first answer, in seconds since 1970; each is a second later than the one before.
const EPOCH: u64 = 1_767_225_600;

/// A request that is being answered.
pub(crate) struct Exchange<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) dialect: Dialect,
    pub(crate) number: u64,
}

impl Exchange<'_> {
    /// Answers a request.
    pub(crate) fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        match self.admit(headers, body) {
            Ok(admitted) => {
                let act = self.shared.next_act(&admitted.prompt);
                self.perform(act, &admitted)
            }
            Err(refused) => self.refuse(refused),
        }
    }

    /// Answers how many tokens a request has.
    pub(crate) fn count(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        let counted = with_limit(self.dialect, body);
        match self.admit(headers, counted.as_deref().map_or(body, str::as_bytes)) {
            Ok(admitted) => {
                let tokens = counting::prompt_tokens(&admitted.prompt);
                let answer = match self.dialect {
                    Dialect::Responses => {
                        json!({ "object": "response.input_tokens", "input_tokens": tokens })
                    }
                    Dialect::Messages | Dialect::Chat => json!({ "input_tokens": tokens }),
                };
                self.whole(answer.to_string(), JSON, Manner::default())
            }
            Err(refused) => self.refuse(refused),
        }
    }

    /// Refuses a request.
    pub(crate) fn refuse(&self, refused: Refused) -> Response {
        let mut response = self.whole(refused.body, JSON, Manner::default());
        *response.status_mut() = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
        for (name, value) in refused.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }

    /// Answers with a whole body.
    pub(crate) fn whole(&self, text: String, content_type: &'static str, manner: Manner) -> Response {
        self.response(delivery::whole(text, manner, self.receipt()), content_type)
    }

    fn admit(&self, headers: &HeaderMap, body: &[u8]) -> Result<Admitted, Refused> {
        let gate = self.gate();
        gate.admit_headers(headers)?;
        let text = std::str::from_utf8(body).map_err(|error| {
            let message = format!("the body is not UTF-8 (at byte {})", error.valid_up_to());
            Refused::new(self.dialect, &crate::refusal::invalid(&message, ""))
        })?;
        gate.admit(text, &self.shared.stored())
    }

    fn gate(&self) -> Gate<'_> {
        Gate { options: &self.shared.options, sealer: &self.shared.sealer, dialect: self.dialect }
    }

    fn perform(&self, act: Act, admitted: &Admitted) -> Response {
        match act {
            Act::Answer { draft, manner, error } => self.speak(&draft, manner, error.as_ref(), admitted),
            Act::Refuse(error) => self.refuse(self.scripted_refusal(&error)),
            Act::Bytes { body, manner } => self.whole(body, content_type(&admitted.ask), manner),
            Act::Events { events, manner } => {
                self.stream(events.iter().map(scripted_event).collect(), manner)
            }
        }
    }

    fn speak(
        &self,
        draft: &Draft,
        manner: Manner,
        error: Option<&ScriptedError>,
        admitted: &Admitted,
    ) -> Response {
        if let Some(error) = error.filter(|_| !admitted.ask.stream) {
            return self.refuse(self.scripted_refusal(error));
        }
        let stamp = self.stamp(admitted);
        let composer = Composer {
            prompt: &admitted.prompt,
            sealer: &self.shared.sealer,
            provider: self.gate().provider(),
            answer_id: &stamp.id,
        };
        let mut reply = composer.reply(draft);
        if let Some(error) = error {
            reply.ending = Ending::Failed(failure_of(error));
        }
        let body = encode_reply(self.dialect, &reply, &stamp, &admitted.ask);
        self.keep(&body, admitted);
        if admitted.ask.stream {
            self.stream(self.events(&reply, stamp, &admitted.ask), manner)
        } else {
            self.whole(body, JSON, manner)
        }
    }

    fn stamp(&self, admitted: &Admitted) -> Stamp {
        let prompt = &admitted.prompt;
        Stamp {
            id: Text::from(self.shared.sealer.id(&["answer", &self.number.to_string(), &admitted.digest])),
            created_at: EPOCH + self.number,
            model: prompt.model.clone(),
            input_tokens: Some(counting::prompt_tokens(prompt)),
        }
    }

    /// Keeps a response for later requests, unless nobody wants that.
    fn keep(&self, body: &str, admitted: &Admitted) {
        let is_kept = self.dialect == Dialect::Responses
            && !self.shared.options.stateless
            && admitted.ask.settings.store != Some(false);
        let Some(response) = is_kept.then(|| serde_json::from_str::<Value>(body).ok()).flatten() else {
            return;
        };
        let Some(id) = response.get("id").and_then(Value::as_str) else { return };
        let output = response.get("output").and_then(Value::as_array).cloned().unwrap_or_default();
        let kept = StoredResponse { body: body.to_owned(), input: admitted.items.clone(), output };
        self.shared.stored().insert(id.to_owned(), kept);
    }

    fn events(&self, reply: &Reply, stamp: Stamp, ask: &Ask) -> Vec<String> {
        let mut encoder = StreamEncoder::new(self.dialect, stamp, ask);
        encoder.set_reasoning_events(ReasoningEvents::OpenAi);
        let mut out = Vec::new();
        frames(reply).iter().for_each(|frame: &Frame| encoder.handle_frame(frame, &mut out));
        out.iter().map(|event| written(event.name, &event.data)).collect()
    }

    fn stream(&self, events: Vec<String>, manner: Manner) -> Response {
        self.response(delivery::body(events, manner, self.receipt()), EVENTS)
    }

    fn response(&self, body: Body, content_type: &'static str) -> Response {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        let id = format!("req_{}", self.shared.sealer.id(&["request", &self.number.to_string()]));
        let name = if self.dialect == Dialect::Messages { "request-id" } else { "x-request-id" };
        if let Ok(id) = HeaderValue::try_from(id) {
            headers.insert(HeaderName::from_static(name), id);
        }
        response
    }

    fn receipt(&self) -> Receipt {
        Receipt { recorder: self.shared.recorder.clone(), number: self.number }
    }

    fn scripted_refusal(&self, error: &ScriptedError) -> Refused {
        let body = match &error.body {
            Some(Value::String(text)) => text.clone(),
            Some(body) => body.to_string(),
            None => encode_error(self.dialect, &failure_of(error)),
        };
        let headers = error.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Refused { status: error.status, body, headers }
    }
}

fn failure_of(error: &ScriptedError) -> Failure {
    let message = error.message.clone().unwrap_or_else(|| format!("scripted status {}", error.status));
    Failure {
        code: error.code.as_deref().map(Text::from),
        ..Failure::new(kind_of_status(error.status), message)
    }
}

fn content_type(ask: &Ask) -> &'static str {
    if ask.stream { EVENTS } else { JSON }
}

fn scripted_event(event: &ScriptedEvent) -> String {
    let data = match &event.data {
        Value::String(text) => text.clone(),
        data => data.to_string(),
    };
    written(event.event.as_deref(), &data)
}

fn written(name: Option<&str>, data: &str) -> String {
    let mut text = String::with_capacity(data.len() + 32);
    write_event(&mut text, name, data);
    text
}

/// Returns a body to be counted with the limit that an answer would need; counting has none.
fn with_limit(dialect: Dialect, body: &[u8]) -> Option<String> {
    let mut json: Value = serde_json::from_slice(body).ok().filter(|_| dialect == Dialect::Messages)?;
    json.as_object_mut()?.entry("max_tokens").or_insert_with(|| json!(u32::MAX));
    Some(json.to_string())
}
