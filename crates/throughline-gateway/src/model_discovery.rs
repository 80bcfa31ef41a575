//! The models that backends list: asked for in the background, at the start, after a reload, and now and then.
//!
//! Nobody waits for it. Until a backend has answered, and when it does not, it lists nothing, and requests go
//! where the configuration says. A backend that is shown the credentials of clients is not asked: it has none
//! of ours. What a listing says about the abilities of models is remembered as a verdict.

use crate::config::{Backend, Credential};
use crate::gateway::{Gateway, Setup, now};
use crate::model_lists::ModelList;
use crate::probe::probe;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use throughline_store::{Batch, Moment};

/// How often it is looked whether a backend should be asked.
const LOOK_EVERY: Duration = Duration::from_secs(5 * 60);

/// How long a listing counts as new, in milliseconds: less than what it says is believed for.
const NEW_MS: i64 = 50 * 60 * 1000;

/// How long a backend that has not listed anything is left alone, in milliseconds.
const SILENT_MS: i64 = 4 * 60 * 1000;

/// Asks backends for their models whenever it is time to; never ends.
pub async fn keep(gateway: Arc<Gateway>) {
    loop {
        ask_who_is_due(&gateway).await;
        tokio::select! {
            () = gateway.reloaded() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Asks those backends that were not asked lately, all at the same time, and remembers what they say.
pub async fn ask_who_is_due(gateway: &Gateway) {
    let setup = gateway.setup();
    let listed = setup.listed();
    let at = now();
    let due = setup.config.backends.iter().filter(|backend| is_due(backend, listed.get(&backend.name), at));
    join_all(due.map(|backend| ask(gateway, &setup, backend))).await;
}

fn is_due(backend: &Backend, listing: Option<&ModelList>, at: Moment) -> bool {
    if backend.credential == Credential::Passthrough {
        return false;
    }
    listing.is_none_or(|listing| {
        let age = at.0 - listing.asked.0;
        age >= if listing.models.is_some() { NEW_MS } else { SILENT_MS }
    })
}

async fn ask(gateway: &Gateway, setup: &Setup, backend: &Backend) {
    let Some(egress) = setup.egress.get(&backend.name) else { return };
    let probe = probe(backend, egress).await;
    let asked = now();
    let models = probe.models();
    let mut lessons = probe.lessons(backend, &gateway.standing(), asked);
    lessons.extend(probe.listed(backend, asked));
    let (name, count) = (backend.name.as_str(), models.as_ref().map(BTreeSet::len));
    lessons.extend(probe.kept_windows(backend, asked));
    setup.list(backend.name.clone(), ModelList { asked, models, windows: probe.windows() });
    match count {
        Some(count) => tracing::info!(backend = name, models = count, "models listed"),
        None => tracing::info!(backend = name, "no models listed"),
    }
    if lessons.is_empty() {
        return;
    }
    let remembered = match gateway.history.append(Batch::relaxed(lessons)).await {
        Ok(_) => gateway.refresh().await,
        Err(error) => Err(error),
    };
    if let Err(error) = remembered {
        tracing::warn!(%error, backend = name, "what a listing says was not remembered");
    }
}
