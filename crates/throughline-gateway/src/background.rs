//! Answers that are generated in the background: which are under way, and what each has said so far.
//!
//! What is promised about them is in the history. Here is only what the history does not have: the events of an
//! answer, so that a client can come back to its stream, and the way to call it off. That lasts as long as the
//! process, and for the latest that have ended a little longer.

use crate::failure::gateway_error;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_core::{Failure, FailureKind, Text};
use throughline_wire::sse::write_event;
use throughline_wire::{Outgoing, last_response_event};
use tokio::sync::watch;

/// The mark at the end of a stream.
pub const END_MARK: &str = "data: [DONE]\n\n";

/// How many answers may be generated in the background at a time.
const JOBS_MAX: usize = 256;

/// How many answers are remembered with their events after they have ended.
const ENDED_MAX: usize = 32;

/// How many bytes of events those remembered may have together; the latest is remembered in any case.
const ENDED_BYTES_MAX: usize = 64 << 20;

/// The answers that are generated in the background.
#[derive(Debug, Default)]
pub struct Background {
    jobs: Mutex<Jobs>,
}

#[derive(Debug, Default)]
struct Jobs {
    running: BTreeMap<Text, Arc<Job>>,
    ended: VecDeque<(Text, Arc<Job>)>,
}

/// One answer that is generated in the background.
pub struct Job {
    events: Mutex<Vec<Bytes>>,
    bytes: AtomicUsize,
    progress: watch::Sender<Progress>,
    called_off: watch::Sender<bool>,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many events there are.
    pub events: usize,
    /// What is going on.
    pub phase: Phase,
}

/// What is going on with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No backend has begun to answer.
    #[default]
    Queued,
    /// A backend answers.
    InProgress,
    /// It is over, and the history says how it ended.
    Ended,
}

/// An answer under way; it ends when this is dropped, however that comes about.
#[derive(Debug)]
pub struct UnderWay {
    background: Arc<Background>,
    id: Text,
    /// What others see of it.
    pub job: Arc<Job>,
}

impl Background {
    /// Begins an answer; nothing if too many are under way.
    #[must_use]
    pub fn begin(self: &Arc<Self>, id: &Text) -> Option<UnderWay> {
        let mut jobs = self.jobs();
        if jobs.running.len() >= JOBS_MAX {
            return None;
        }
        let job = Arc::new(Job::new());
        jobs.running.insert(id.clone(), Arc::clone(&job));
        Some(UnderWay { background: Arc::clone(self), id: id.clone(), job })
    }

    /// Finds an answer that is under way, or was until lately.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Arc<Job>> {
        let jobs = self.jobs();
        let ended = || jobs.ended.iter().find(|(ended, _)| ended == id).map(|(_, job)| job);
        jobs.running.get(id).or_else(ended).map(Arc::clone)
    }

    fn end(&self, id: &Text) {
        let mut jobs = self.jobs();
        let Some(job) = jobs.running.remove(id) else { return };
        jobs.ended.push_back((id.clone(), job));
        let bytes = |jobs: &Jobs| jobs.ended.iter().map(|(_, job)| job.bytes()).sum::<usize>();
        while jobs.ended.len() > ENDED_MAX || (jobs.ended.len() > 1 && bytes(&jobs) > ENDED_BYTES_MAX) {
            jobs.ended.pop_front();
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.background.end(&self.id);
        self.job.progress.send_modify(|progress| progress.phase = Phase::Ended);
    }
}

impl Job {
    fn new() -> Self {
        let (progress, called_off) = (watch::Sender::default(), watch::Sender::default());
        Self { events: Mutex::default(), bytes: AtomicUsize::new(0), progress, called_off }
    }

    /// Adds an event: its whole text, as a stream has it. Its number is its place.
    pub fn say(&self, event: impl Into<Bytes>) {
        let event = event.into();
        self.bytes.fetch_add(event.len() + size_of::<Bytes>(), Ordering::Relaxed);
        let events = {
            let mut events = self.events();
            events.push(event);
            events.len()
        };
        self.progress.send_modify(|progress| progress.events = events);
    }

    /// Returns how much memory its events take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes that a backend has begun to answer.
    pub fn start(&self) {
        self.progress.send_modify(|progress| progress.phase = Phase::InProgress);
    }

    /// Returns how far the answer has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Returns the events from that place on, as soon as there are any; nothing when there will be none.
    pub async fn events_from(&self, place: usize) -> Option<Vec<Bytes>> {
        let mut progress = self.progress.subscribe();
        let is_due = |progress: &Progress| progress.events > place || progress.phase == Phase::Ended;
        // The sender is in `self`, so it cannot have gone.
        progress.wait_for(is_due).await.ok()?;
        let events = self.events();
        events.get(place..).filter(|rest| !rest.is_empty()).map(<[Bytes]>::to_vec)
    }

    /// Waits until the answer is over.
    pub async fn ended(&self) {
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.phase == Phase::Ended).await;
    }

    /// Asks that the answer be called off.
    pub fn call_off(&self) {
        self.called_off.send_replace(true);
    }

    /// Waits until somebody calls the answer off.
    pub async fn called_off(&self) {
        let mut called_off = self.called_off.subscribe();
        let _ = called_off.wait_for(|called_off| *called_off).await;
    }

    fn events(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Job").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

/// Returns the events of an answer from that place on, as they come.
pub fn following(job: Arc<Job>, place: usize) -> Body {
    let next = |state: Option<(Arc<Job>, usize)>| async move {
        let (job, place) = state?;
        Some(match job.events_from(place).await {
            Some(events) => {
                let place = place + events.len();
                (Ok::<_, Infallible>(Bytes::from(events.concat())), Some((job, place)))
            }
            None => (Ok(Bytes::from_static(END_MARK.as_bytes())), None),
        })
    };
    Body::from_stream(stream::unfold(Some((job, place)), next))
}

/// Returns an event that carries a response, as a stream has it.
#[must_use]
pub fn response_event(name: &'static str, number: u64, response: &str) -> String {
    written(&throughline_wire::response_event(name, number, response))
}

/// Returns the event that ends the stream of a response.
#[must_use]
pub fn last_response(response: &str, number: u64) -> String {
    written(&last_response_event(response, number, &cancelled()))
}

/// Returns the failure as which an answer ends that was called off.
#[must_use]
pub fn cancelled() -> Failure {
    gateway_error(FailureKind::Conflict, "throughline_cancelled", "The answer was called off.")
}

fn written(event: &Outgoing) -> String {
    let mut text = String::new();
    write_event(&mut text, event.name, &event.data);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(background: &Arc<Background>, id: &str) -> UnderWay {
        background.begin(&Text::from(id)).unwrap()
    }

    #[tokio::test]
    async fn events_come_from_any_place_on_until_the_end() {
        let background = Arc::new(Background::default());
        let under_way = begun(&background, "a");
        let job = background.find("a").unwrap();
        under_way.job.say("0");
        under_way.job.say("1");
        assert_eq!(job.events_from(1).await.unwrap(), ["1"]);
        assert_eq!(job.progress().phase, Phase::Queued);
        drop(under_way);
        assert_eq!(job.events_from(2).await, None);
        assert_eq!(job.events_from(9).await, None);
        job.ended().await;
    }

    #[test]
    fn there_is_a_limit_to_what_runs_and_to_what_is_remembered() {
        let background = Arc::new(Background::default());
        let running: Vec<UnderWay> = (0..JOBS_MAX).map(|id| begun(&background, &id.to_string())).collect();
        assert!(background.begin(&Text::from("more")).is_none());
        drop(running);
        assert!(background.begin(&Text::from("more")).is_some());
        assert!(background.find("0").is_none() && background.find("255").is_some());
    }
}
