//! A request that asks for nothing yet: it is taken in, so that a later one can continue it.
//!
//! Clients send one when a connection opens, while their user still types. No backend is asked: what the
//! client needs is an id to go on from, and that what it sent is known under this id.

use super::Running;
use super::conclude::Recipient;
use super::failures::unrecorded;
use super::relay::Relayed;
use crate::failure::reject;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};
use throughline_core::{Ending, Frame, Reply, Stop};
use throughline_wire::StreamEncoder;
use throughline_wire::sse::write_event;

impl Running {
    /// Records the request and answers it with a stream in which nothing is said.
    pub(super) async fn warm_up(mut self) -> Response {
        let ending = Ending::Stopped(Stop::EndTurn);
        let model = self.stamp.model.clone();
        let reply = Reply { id: None, model, entries: Vec::new(), ending, usage: None, fields: None };
        let shown = match self.conclude(Relayed::without_backend(reply), Recipient::Whole).await {
            Ok(concluded) => concluded.shown,
            Err(error) => return reject(self.ask.dialect, &unrecorded(&error)),
        };
        let mut response = Response::new(Body::from(self.silence(shown)));
        let stream = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, stream);
        response
    }

    /// Returns the stream of a reply that says nothing.
    fn silence(&self, reply: Reply) -> String {
        let mut encoder = StreamEncoder::new(self.ask.dialect, self.stamp.clone(), &self.ask);
        let mut events = Vec::new();
        encoder.handle_frame(&Frame::Opened { id: None, model: reply.model }, &mut events);
        encoder.handle_frame(&Frame::Closed(reply.ending), &mut events);
        let mut body = String::new();
        for event in events {
            write_event(&mut body, event.name, &event.data);
        }
        body
    }
}
