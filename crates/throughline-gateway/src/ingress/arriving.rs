//! What has come so far of an answer that is under way.
//!
//! The history has an answer once it is whole. Until then its events are there, written every so often as they come,
//! and here they are decoded as far as they go.

use super::Ingress;
use super::api_answer::{array, listed, respond, unread};
use crate::turn::is_note;
use crate::view;
use axum::extract::{Path, State};
use axum::response::Response;
use throughline_core::{Assembler, Entry};
use throughline_store::{Exchange, Recording, Which};
use throughline_wire::StreamDecoder;
use throughline_wire::json::Writer;
use throughline_wire::sse::SseEvent;

/// Answers with the entries that the answer under way has brought so far; with none, where there is none.
pub async fn show(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    let answer = async {
        let latest = listed(&ingress, &id).await?.latest.filter(|latest| latest.ended.is_none());
        let entries = match &latest {
            Some(exchange) => {
                let recording = ingress.gateway.history.recording(exchange.id.clone(), Which::Events).await;
                so_far(exchange, &recording.map_err(|error| unread(&error))?)
            }
            None => Vec::new(),
        };
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_bool("answering", latest.is_some());
        array(&mut writer, "entries", &entries, view::write_arriving);
        writer.end_object();
        Ok(writer)
    };
    respond(answer.await)
}

fn so_far(exchange: &Exchange, recording: &Recording) -> Vec<Entry> {
    let Some(attempt) = exchange.attempts.last() else { return Vec::new() };
    let number = exchange.attempts.len() - 1;
    let mut decoder = StreamDecoder::new(attempt.dialect);
    let mut assembler = Assembler::new(attempt.dialect);
    let mut frames = Vec::new();
    let own = recording.events.iter().filter(|(at, event)| *at as usize == number && !is_note(event));
    for (_, event) in own {
        let event = SseEvent { name: event.name.clone(), data: event.data.clone() };
        decoder.handle_event(&event, &mut frames);
    }
    frames.iter().for_each(|frame| assembler.handle_frame(frame));
    assembler.finish().entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{ConversationId, Dialect, joined_text};
    use throughline_store::{Attempt, ExchangeId, Moment, ProviderEvent};

    #[test]
    fn half_of_an_answer_is_shown_as_far_as_it_goes() {
        let moment = Moment(0);
        let attempt = Attempt {
            backend: "a".into(),
            dialect: Dialect::Chat,
            model: None,
            strategy: None,
            started: moment,
            ended: None,
            status: Some(200),
            failure: None,
            compaction: None,
            plan: None,
            continues: None,
            recall: None,
        };
        let begun = Exchange::begun(ExchangeId::new("x"), ConversationId::new("c"), Dialect::Chat, moment);
        let exchange = Exchange { attempts: vec![attempt], ..begun };
        let event = |text: &str| {
            let data = format!("{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}");
            (0, ProviderEvent { at: moment, name: None, data: data.into() })
        };
        let note = ProviderEvent { at: moment, name: Some("throughline.turn".into()), data: "{}".into() };
        let events = vec![(0, note), event("half of "), event("an ans")];
        let entries = so_far(&exchange, &Recording { events, ..Recording::default() });
        let said: Vec<_> = entries.iter().filter_map(Entry::as_said).collect();
        assert_eq!(said.iter().map(|said| joined_text(&said.parts)).collect::<Vec<_>>(), ["half of an ans"]);
    }
}
