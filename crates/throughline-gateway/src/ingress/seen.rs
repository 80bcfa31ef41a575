//! What a backend saw, read from the record and laid beside what was kept.

use super::api_answer::unread;
use crate::exchange::compaction_record::CompactionRecord;
use crate::failure::{gateway_error, undecodable};
use crate::gateway::Gateway;
use crate::routing::{Destination, LearnedWindow};
use crate::view::{self, Attempted, Seen};
use std::sync::Arc;
use throughline_core::plan::Decisions;
use throughline_core::{Entry, Failure, FailureKind};
use throughline_store::{Attempt, Entries, Exchange, Kept, Recording, Which};
use throughline_tokens::Gauge;
use throughline_wire::decode_request;
use throughline_wire::json::Writer;

/// Everything that the comparison needs, read.
struct Material {
    kept: Vec<Kept>,
    sent: Vec<Entry>,
    decisions: Decisions,
    continues: bool,
    briefed: bool,
    gauge: Gauge,
    /// What was changed for each attempt.
    reports: Recording,
}

/// Returns, as JSON, an exchange with what its last attempt showed of the history.
///
/// # Errors
/// When the record cannot be read, or nothing was sent.
pub async fn compared(gateway: &Arc<Gateway>, exchange: Exchange, preview: usize) -> Result<Writer, Failure> {
    let material = read(gateway, &exchange).await?;
    let shared = Arc::clone(gateway);
    // Counting takes long for a long history that nobody has counted yet.
    let written = tokio::task::spawn_blocking(move || write(&shared, &exchange, &material, preview)).await;
    written.map_err(|error| gateway_error(FailureKind::Backend, "throughline_internal", error.to_string()))
}

fn write(gateway: &Gateway, exchange: &Exchange, material: &Material, preview: usize) -> Writer {
    let Material { kept, sent, decisions, continues, briefed, gauge, reports } = material;
    let attempted = Attempted { decisions, continues: *continues, briefed: *briefed };
    let seen = Seen::of(kept, sent, attempted, gauge, &gateway.token_counters.counts);
    let mut writer = Writer::new();
    writer.begin_object();
    writer.key("exchange");
    view::write_priced(&mut writer, exchange, reports, &gateway.setup().config);
    view::write_seen(&mut writer, &seen, preview);
    writer.end_object();
    writer
}

async fn read(gateway: &Gateway, exchange: &Exchange) -> Result<Material, Failure> {
    let history = &*gateway.history;
    let kept = match &exchange.before {
        Some(tip) => history.entries(Entries::Branch(tip.clone())).await.map_err(|error| unread(&error))?,
        None => Vec::new(),
    };
    let recording = history.recording(exchange.id.clone(), Which::Documents).await;
    let recording = recording.map_err(|error| unread(&error))?;
    let last = recording.sent.iter().max_by_key(|(number, _)| *number);
    let last = last.and_then(|(number, body)| Some((exchange.attempts.get(*number as usize)?, body)));
    let Some((attempt, body)) = last else {
        let message = "no backend was sent anything in this exchange";
        return Err(gateway_error(FailureKind::NotFound, "throughline_nothing_sent", message));
    };
    let body = String::from_utf8_lossy(body).into_owned();
    let sent = decode_request(attempt.dialect, body).map_err(|error| undecodable(&error))?;
    Ok(Material {
        kept,
        sent: sent.entries,
        decisions: decisions(gateway, exchange, attempt).await.unwrap_or_default(),
        continues: attempt.continues.is_some(),
        briefed: attempt.strategy.as_deref() == Some("brief"),
        gauge: gauge(gateway, attempt),
        reports: Recording { reports: recording.reports, ..Recording::default() },
    })
}

/// Returns how the model of an attempt counts, with what was learned about it if its backend is still there.
fn gauge(gateway: &Gateway, attempt: &Attempt) -> Gauge {
    let model = attempt.model.clone().unwrap_or_default();
    let setup = gateway.setup();
    match setup.config.backends.iter().find(|backend| backend.name == attempt.backend) {
        Some(backend) => {
            let destination = Destination {
                backend: Arc::clone(backend),
                model,
                window: LearnedWindow::default(),
                unknown: None,
            };
            gateway.token_counters.of(&gateway.standing(), &destination)
        }
        None => Gauge::of_model(&model),
    }
}

/// Returns what was decided up to the step whose decisions an attempt shows.
async fn decisions(gateway: &Gateway, exchange: &Exchange, attempt: &Attempt) -> Option<Decisions> {
    let step = attempt.compaction.as_ref()?;
    let steps = gateway.history.compaction(exchange.conversation.clone()).await.ok()?;
    CompactionRecord::from_steps(steps).after(step).map(|state| state.decisions.clone())
}
