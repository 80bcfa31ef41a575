//! What a backend saw, read from the record and laid beside what was kept.

use super::api_answer::unread;
use crate::failure::{gateway_error, undecodable};
use crate::gateway::Gateway;
use crate::routing::{Destination, LearnedWindow};
use crate::view::{self, Seen, Unknown};
use std::sync::Arc;
use throughline_core::{Entry, Failure, FailureKind, Provenance};
use throughline_store::{Attempt, Entries, Exchange, Kept, Recording, Which};
use throughline_tokens::Gauge;
use throughline_wire::decode_request;
use throughline_wire::json::Writer;

/// Everything that the comparison needs, read.
struct Material {
    kept: Vec<Kept>,
    sent: Vec<Entry>,
    /// What was noted when it was rendered, if that is known.
    provenance: Result<Provenance, Unknown>,
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
    let Material { kept, sent, provenance, gauge, reports } = material;
    let noted = provenance.as_ref().map_err(|unknown| *unknown);
    let seen = Seen::looked_up(kept, sent, noted, gauge, &gateway.token_counters.counts);
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
    let recording = history.recording(exchange.id.clone(), Which::Documents).await;
    let recording = recording.map_err(|error| unread(&error))?;
    let last = recording.sent.iter().max_by_key(|(number, _)| *number);
    let last =
        last.and_then(|(number, body)| Some((*number, exchange.attempts.get(*number as usize)?, body)));
    let Some((number, attempt, body)) = last else {
        let message = "no backend was sent anything in this exchange";
        return Err(gateway_error(FailureKind::NotFound, "throughline_nothing_sent", message));
    };
    let body = String::from_utf8_lossy(body).into_owned();
    let sent = decode_request(attempt.dialect, body).map_err(|error| undecodable(&error))?;
    Ok(Material {
        kept: branch(gateway, exchange).await?,
        sent: sent.entries,
        provenance: provenance(&recording, number),
        gauge: gauge(gateway, attempt),
        reports: Recording { reports: recording.reports, ..Recording::default() },
    })
}

/// Returns what was noted when an attempt was rendered.
fn provenance(recording: &Recording, attempt: u32) -> Result<Provenance, Unknown> {
    let noted = recording.provenance.iter().find(|(number, _)| *number == attempt);
    let (_, bytes) = noted.ok_or(Unknown::NotNoted)?;
    Provenance::from_bytes(bytes).map_err(|error| {
        tracing::warn!(%error, "what was noted about a request cannot be read");
        Unknown::Unreadable
    })
}

/// Returns the branch that an exchange stands on, with what it added: the last attempt may have been shown what the
/// model recalled before it.
async fn branch(gateway: &Gateway, exchange: &Exchange) -> Result<Vec<Kept>, Failure> {
    let read =
        |which: Entries| async { gateway.history.entries(which).await.map_err(|error| unread(&error)) };
    let tip = match &exchange.after {
        Some(tip) => Some(tip.clone()),
        // One that did not come to an answer may have added entries all the same.
        None => {
            let added = read(Entries::Conversation(exchange.conversation.clone())).await?;
            let own = added.into_iter().filter(|kept| kept.exchange.as_ref() == Some(&exchange.id));
            own.last().map(|kept| kept.id).or_else(|| exchange.before.clone())
        }
    };
    match tip {
        Some(tip) => read(Entries::Branch(tip)).await,
        None => Ok(Vec::new()),
    }
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
