//! Answers in the background that another gateway generates.
//!
//! Where gateways share a history, a client may ask any of them about an answer that one of them generates. That
//! one says in the history, from time to time, that it is still at it, and looks there whether somebody wants the
//! answer called off. The others wait until the history says how it ended.

use crate::background::Job;
use crate::gateway::{Gateway, now};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::Text;
use throughline_store::{
    Batch, Changes, Exchange, Exchanges, Moment, Scope, Setting, Standing, StoreError, Write,
};
use tokio::time::{Instant, sleep, timeout};

/// So long after its beginning, or its last sign, an answer counts as given up, in milliseconds. The clocks of
/// gateways may differ, and by less than that.
const SIGN_LASTS: i64 = 60_000;

/// How often a sign is given.
const SIGN_EVERY: Duration = Duration::from_secs(20);

/// How often the history is looked at while it does not ring.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// However often it rings, there is that much between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for an answer to be called off.
const CALL_OFF_MAX: Duration = Duration::from_secs(10);

/// Says whether another gateway generates an answer that has not ended.
pub async fn is_generated(gateway: &Gateway, id: &str, exchange: &Exchange) -> bool {
    if !gateway.is_shared {
        return false;
    }
    let standing = gateway.latest_standing().await;
    is_fresh(exchange.started, found(&standing, &sign_of(id)).map(|sign| sign.at), now())
}

/// Says whether there was a sign lately; the beginning is one.
fn is_fresh(started: Moment, sign: Option<Moment>, now: Moment) -> bool {
    let last = sign.map_or(started, |sign| sign.max(started));
    now.0.saturating_sub(last.0) < SIGN_LASTS
}

/// Waits until something was appended to the history, or a while.
pub async fn wait(changes: &mut Changes) {
    let _ = timeout(LOOK_EVERY, changes.next()).await;
    sleep(PAUSE).await;
}

/// Has another gateway call an answer off, and waits until the history says that it has ended.
///
/// # Errors
/// When the history cannot be read or written.
pub async fn call_off(gateway: &Gateway, id: &str) -> Result<(), StoreError> {
    let history = &gateway.history;
    let mut changes = history.changes();
    if has_ended(gateway, id).await? {
        return Ok(());
    }
    let deadline = Instant::now() + CALL_OFF_MAX;
    history.append(marked(wish_of(id), true)).await?;
    while Instant::now() < deadline && !has_ended(gateway, id).await? {
        wait(&mut changes).await;
    }
    history.append(marked(wish_of(id), false)).await?;
    Ok(())
}

async fn has_ended(gateway: &Gateway, id: &str) -> Result<bool, StoreError> {
    let found = gateway.history.exchanges(Exchanges::Response(Text::from(id))).await?;
    Ok(found.items.first().is_none_or(|exchange| exchange.ended.is_some()))
}

/// Tends to an answer that is generated here, as long as it is: for the sake of the others.
pub fn tend(gateway: &Arc<Gateway>, id: &Text, job: &Arc<Job>) {
    if gateway.is_shared {
        tokio::spawn(tended(Arc::clone(gateway), id.clone(), Arc::clone(job)));
    }
}

async fn tended(gateway: Arc<Gateway>, id: Text, job: Arc<Job>) {
    let history = &gateway.history;
    let mut changes = history.changes();
    let (mut signed, mut has_signed) = (Instant::now(), false);
    loop {
        tokio::select! {
            () = job.ended() => break,
            () = wait(&mut changes) => {}
        }
        if signed.elapsed() >= SIGN_EVERY && history.append(marked(sign_of(&id), true)).await.is_ok() {
            (signed, has_signed) = (Instant::now(), true);
        }
        // If the history cannot be read now, it can be later.
        if let Ok(standing) = history.standing().await
            && found(&standing, &wish_of(&id)).is_some()
        {
            job.call_off();
        }
    }
    if has_signed && let Err(error) = history.append(marked(sign_of(&id), false)).await {
        tracing::warn!(%error, "the sign of an answer that has ended stays in the history");
    }
}

/// The setting that says that an answer is still generated.
fn sign_of(id: &str) -> Text {
    Text::from(format!("generating {id}"))
}

/// The setting that says that an answer is to be called off.
fn wish_of(id: &str) -> Text {
    Text::from(format!("call off {id}"))
}

fn found<'s>(standing: &'s Standing, name: &str) -> Option<&'s Setting> {
    standing.settings.iter().find(|setting| setting.scope == Scope::Everywhere && setting.name == *name)
}

fn marked(name: Text, is_set: bool) -> Batch {
    let value = is_set.then(|| Text::from_static("yes"));
    let at: Moment = now();
    Batch::relaxed(vec![Write::Setting(Setting { scope: Scope::Everywhere, name, value, at })])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_sign_for_a_minute_is_given_up() {
        let at = |seconds: i64| Moment(seconds * 1000);
        assert!(is_fresh(at(0), None, at(59)));
        assert!(!is_fresh(at(0), None, at(60)));
        assert!(is_fresh(at(0), Some(at(50)), at(109)));
        assert!(!is_fresh(at(0), Some(at(50)), at(110)));
    }
}
