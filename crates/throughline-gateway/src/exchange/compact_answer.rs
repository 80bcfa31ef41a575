//! Answers to requests for a compaction: on a path of their own, and in the middle of a conversation.

use super::Running;
use super::compact::{MARK, words};
use super::conclude::Recipient;
use super::failures::unrecorded;
use super::relay::Relayed;
use crate::failure::reject;
use crate::gateway::now;
use axum::body::Body;
use axum::response::Response;
use std::sync::Arc;
use throughline_core::{
    BlockKind, Dialect, Ending, Entry, EntryId, Frame, Kind, Reply, Role, Stop, Text, Usage, Wire,
};
use throughline_wire::sse::write_event;
use throughline_wire::{COMPACTION, StreamEncoder, compaction_item, compaction_object, listed_items};

impl Running {
    /// Answers with the history in few words.
    pub(super) async fn compact(mut self) -> Response {
        let content = self.content();
        let item = compaction_item(&format!("cmp_{}", self.stamp.id), &content);
        let is_user = |entry: &&Entry| entry.as_said().is_some_and(|said| said.role == Role::User);
        let asked: Vec<&Entry> = self.placed.history.iter().filter(is_user).collect();
        let mut items = listed_items(&asked, &self.stamp.id);
        items.push(item);
        let usage = self.usage(&content).await;
        let body = compaction_object(&self.stamp, &items, usage);
        let reply = said_nothing(Some(usage));
        let answer = Some(Text::from(body.as_str()));
        match self.recorder.end(&reply, 200, answer, Vec::new(), now()).await {
            Ok(()) => self.head(Body::from(body), "application/json"),
            Err(error) => reject(self.ask.dialect, &unrecorded(&error)),
        }
    }

    /// Answers a request that asks for a compaction in its input: with a response that holds one item.
    pub(super) async fn compact_in_place(mut self) -> Response {
        let content = self.content();
        let item = Text::from(compaction_item(&format!("cmp_{}", self.stamp.id), &content));
        let mut reply = said_nothing(Some(self.usage(&content).await));
        let kind = Text::from_static(COMPACTION);
        let mut entry = Entry::new(Kind::Opaque { kind: kind.clone() });
        entry.wire = Some(Wire { dialect: Dialect::Responses, text: item.clone(), extras: Vec::new() });
        reply.entries.push(entry);
        let concluded = match self.conclude(Relayed::without_backend(reply), Recipient::Whole).await {
            Ok(concluded) => concluded,
            Err(error) => return reject(self.ask.dialect, &unrecorded(&error)),
        };
        if !self.ask.stream {
            return self.head(Body::from(concluded.body.unwrap_or_default()), "application/json");
        }
        let events = self.streamed(&concluded.shown, BlockKind::Opaque { kind, text: item });
        self.head(Body::from(events), "text/event-stream")
    }

    fn streamed(&self, reply: &Reply, kind: BlockKind) -> String {
        let mut encoder = StreamEncoder::new(self.ask.dialect, self.stamp.clone(), &self.ask);
        let mut events = Vec::new();
        let mut frames = vec![
            Frame::Opened { id: None, model: None },
            Frame::Begun { block: 0, kind },
            Frame::Ended { block: 0 },
        ];
        frames.extend(reply.usage.map(Frame::Used));
        frames.push(Frame::Closed(reply.ending.clone()));
        frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut events));
        let mut body = String::new();
        events.iter().for_each(|event| write_event(&mut body, event.name, &event.data));
        body
    }

    /// Returns the content of the compaction item: where the span is, and what it was about.
    fn content(&self) -> String {
        let entry = self.recorder.before().map_or("none", EntryId::as_str);
        let conversation = &self.placed.conversation;
        let covers = self.placed.history.len();
        let words = words(&self.placed.history);
        format!("{MARK} conversation={conversation} entry={entry} covers={covers}\n{words}")
    }

    /// Counts what the compaction would have taken of the model that was asked for; none was asked.
    async fn usage(&self, content: &str) -> Usage {
        let gateway = Arc::clone(&self.gateway);
        let gauge = gateway.token_counters.of(&gateway.standing(), &self.destinations[0]);
        let (entries, tools) = (self.placed.history.clone(), self.ask.tools.clone());
        let content = content.to_owned();
        let counting = tokio::task::spawn_blocking(move || {
            gauge.vocabulary().load();
            let counts = &gateway.token_counters.counts;
            let input = gauge.tokens(gauge.prompt(counts, &entries, &tools, None));
            let output = gauge.tokens(gauge.text(counts, &content));
            Usage { input, output, ..Usage::default() }
        });
        counting.await.unwrap_or_default()
    }
}

fn said_nothing(usage: Option<Usage>) -> Reply {
    let ending = Ending::Stopped(Stop::EndTurn);
    Reply { id: None, model: None, entries: Vec::new(), ending, usage, fields: None }
}
