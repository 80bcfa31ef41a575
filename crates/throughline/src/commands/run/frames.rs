//! A turn as a program sees it: a frame on each line of standard output.
//!
//! Events of providers are frames of their own, unaltered; what follows from them comes behind them. The last frame
//! says how the turn ended.

use super::session::{Session, Summary};
use crate::output;
use throughline_core::{
    BlockKind, Call, Ending, Entry, Frame, Kind, Piece, Settled, Settlement, Stop, joined_text,
};
use throughline_gateway::turn::{Happening, Task, Watch};
use throughline_gateway::view::outcome_name;
use throughline_store::ProviderEvent;
use throughline_wire::json::Writer;

/// Prints frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// What the blocks of the answer under way are.
    blocks: Vec<(u32, &'static str)>,
}

impl Frames {
    /// Returns what has printed nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn frames(&mut self, frames: &[Frame]) -> String {
        frames.iter().filter_map(|frame| self.frame(frame)).collect()
    }

    fn frame(&mut self, frame: &Frame) -> Option<String> {
        match frame {
            Frame::Begun { block, kind } => {
                let name = match kind {
                    BlockKind::Text { .. } => "text",
                    BlockKind::Refusal { .. } => "refusal",
                    BlockKind::Thought { .. } => "thought",
                    BlockKind::Call { .. } | BlockKind::Opaque { .. } => return None,
                };
                self.blocks.push((*block, name));
                None
            }
            Frame::Grew { block, piece } => {
                let (Piece::Text(text) | Piece::Reasoning(text) | Piece::Summary { text, .. }) = piece else {
                    return None;
                };
                let (_, name) = self.blocks.iter().find(|(known, _)| known == block)?;
                Some(line(name, |writer| writer.field_str("text", text)))
            }
            _ => None,
        }
    }
}

impl Watch for Frames {
    fn see(&mut self, happening: Happening<'_>) {
        let text = match happening {
            Happening::Asked { exchange, again, draft } => {
                self.blocks.clear();
                line("asked", |writer| {
                    writer.field_str("exchange", exchange);
                    writer.field_bool("again", again);
                    writer.field_bool("draft", draft);
                })
            }
            Happening::Heard { exchange, events, frames } => {
                let events: String = events.iter().map(|event| provider_event(exchange, event)).collect();
                events + &self.frames(frames)
            }
            Happening::Answered { exchange, backend, entries, ending, whole } => {
                let mut text = if whole { said(entries) } else { String::new() };
                text.push_str(&answered(exchange, backend, ending));
                text
            }
            Happening::Called(call) => called(call),
            Happening::Settled { settled, exit_code, took } => {
                let took = took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
                self::settled(settled, exit_code, took)
            }
            Happening::NotComposed { reason } => {
                line("not_composed", |writer| writer.field_str("reason", reason))
            }
        };
        // A reader that is gone has seen enough; the turn goes on to its end.
        let _ = output::print(&text);
    }
}

/// Returns the first frame.
pub fn begun(task: &Task, session: &Session) -> String {
    line("begun", |writer| {
        writer.field_str("run", &task.id);
        writer.field_str("conversation", task.conversation.as_str());
        writer.field_str("cwd", &session.cwd.display().to_string());
        writer.field_str("confinement", &session.confinement().to_string());
    })
}

/// Returns the last frame.
pub fn finished(summary: &Summary) -> String {
    line("finished", |writer| {
        writer.field_bool("complete", true);
        writer.field_str("conclusion", summary.conclusion);
        writer.field_str("run", &summary.run);
        writer.field_str("conversation", summary.conversation.as_str());
        writer.field_uint("tool_calls", summary.calls.into());
        writer.field_uint("input_tokens", summary.usage.input);
        writer.field_uint("cached_tokens", summary.usage.cache_read);
        writer.field_uint("output_tokens", summary.usage.output);
        writer.field_uint("reasoning_tokens", summary.usage.reasoning);
        match summary.cost {
            Some(cost) => writer.field_raw("cost_usd", &format!("{cost:.6}")),
            None => writer.field_null("cost_usd"),
        }
    })
}

fn provider_event(exchange: &str, event: &ProviderEvent) -> String {
    line("provider_event", |writer| {
        writer.field_str("exchange", exchange);
        match &event.name {
            Some(name) => writer.field_str("event", name),
            None => writer.field_null("event"),
        }
        writer.field_str("data", &event.data);
    })
}

fn said(entries: &[Entry]) -> String {
    let text = |entry: &Entry| match &entry.kind {
        Kind::Said(said) => Some(line("text", |writer| writer.field_str("text", &joined_text(&said.parts)))),
        _ => None,
    };
    entries.iter().filter_map(text).collect()
}

fn answered(exchange: &str, backend: &str, ending: &Ending) -> String {
    line("answered", |writer| {
        writer.field_str("exchange", exchange);
        writer.field_str("backend", backend);
        writer.field_str("ending", word(ending));
        if let Ending::Failed(failure) = ending {
            writer.field_str("message", &failure.message);
        }
    })
}

const fn word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Stopped(Stop::ToolCalls) => "tool_calls",
        Ending::Stopped(stop) if stop.is_incomplete() => "incomplete",
        Ending::Stopped(Stop::Refusal) => "refusal",
        Ending::Stopped(_) => "end_turn",
        Ending::Failed(_) => "failed",
        Ending::Broken => "broken",
        Ending::Cancelled => "cancelled",
    }
}

fn called(call: &Call) -> String {
    line("called", |writer| {
        writer.field_str("call", &call.id);
        writer.field_str("tool", &call.name);
        writer.field_str("arguments", call.input.text());
    })
}

fn settled(settled: &Settled, exit_code: Option<i32>, took_ms: Option<u64>) -> String {
    line("settled", |writer| {
        writer.field_str("call", &settled.call.id);
        writer.field_str("tool", &settled.call.name);
        writer.field_str("outcome", outcome_name(settled.outcome()));
        if let Some(code) = exit_code {
            writer.field_raw("exit_code", &code.to_string());
        }
        if let Some(took_ms) = took_ms {
            writer.field_uint("took_ms", took_ms);
        }
        if let Settlement::Returned(_, parts) = &settled.settlement {
            writer.field_str("output", &joined_text(parts));
        }
    })
}

fn line(frame: &str, write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("frame", frame);
    write(&mut writer);
    writer.end_object();
    writer.into_string() + "\n"
}
