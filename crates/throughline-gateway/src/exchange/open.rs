//! A backend asked, up to the point where something of its answer has come.
//!
//! Until then the client has seen nothing, and another form or another backend may still be tried. A stream
//! that opens with an error counts as an error.

use super::answer_stream::{AnswerStream, StreamOutput, failure_of};
use super::clients::reasoning_events;
use super::compaction_record::CompactionRecord;
use super::editing;
use super::failures::{backend_failed, broken_off, too_large, unrecorded};
use super::permit::Permit;
use super::planning::Planned;
use super::prompting::{Prompted, Showing};
use super::record::{Outgoing, Recorder};
use super::sizing::Sizing;
use super::{Running, record};
use crate::capability::{CAPABILITIES_HEADER, Failed, Form, from_headers, rejection};
use crate::config::{Backend, Credential};
use crate::egress::bounds::{REFUSAL_BYTES_MAX, REFUSAL_TIME_MAX};
use crate::egress::{Answered, EgressError, REFUSED, Request, path_of};
use crate::failure::gateway_error;
use crate::gateway::now;
use crate::trace;
use crate::verdicts;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName};
use std::sync::Arc;
use throughline_core::{Dialect, Ending, Failure, FailureKind, Refusal, Reply, Strategy, Text};
use throughline_store::{Attempt, ProviderEvent};
use throughline_wire::sse::SseError;
use throughline_wire::{decode_error, decode_reply, status_of};

/// An answer that has begun.
pub(super) struct Opened {
    /// What was sent.
    pub prompted: Prompted,
    /// To which destination, and in which form.
    pub sent: (usize, Form),
    /// What comes back.
    pub answer: Answer,
}

/// What comes back from a backend.
pub(super) enum Answer {
    /// All of it.
    Whole(Box<Reply>, Vec<ProviderEvent>),
    /// The beginning of a stream, and what the client may be sent of it already.
    Stream(Box<(Answered, AnswerStream, String)>),
    /// The beginning of a stream that goes through a relay which was there before.
    Rest(Box<(Answered, String)>),
}

/// Why no answer began.
pub(super) enum Unopened {
    /// The backend failed, or refused.
    Backend(Failed, Failure),
    /// The request could not be rendered, or the attempt not be recorded.
    Own(Failure),
}

/// So much of an answer is joined into one write; what comes then goes into the next.
const JOINED_BYTES_MAX: usize = 64 * 1024;

/// So many events of an answer are taken in before they are written down.
const JOINED_EVENTS_MAX: usize = 1024;

/// How many bytes of a request make a token, roughly: for requests that are not counted.
const BYTES_PER_TOKEN: usize = 4;

/// Headers of the client that a backend of the same dialect understands.
const FORWARDED: [&str; 4] = ["anthropic-beta", "anthropic-version", "openai-beta", "openai-organization"];

/// Headers that belong to the credentials of a client, for a backend that is shown those: a login with ChatGPT names its
/// account beside the token.
const FORWARDED_WITH_CREDENTIALS: [&str; 2] = ["chatgpt-account-id", "originator"];

/// An answer that calls what it may not: nothing is wrong with the request, and asking again would not help.
const NOT_ALLOWED: Failed = Failed::Status { status: 500, retry_after: None, rejection: None };

/// A request that does not fit: no backend was asked.
const TOO_LONG: Failed = Failed::Status { status: 400, retry_after: None, rejection: None };

impl Running {
    /// Sends the request to a destination and waits for the beginning of the answer.
    ///
    /// An answer that is the rest of one before goes through the relay of that one.
    pub(super) async fn open(
        &mut self,
        (leg, form): (usize, Form),
        resumed: Option<&mut AnswerStream>,
    ) -> Result<Opened, Unopened> {
        let destination = self.destinations[leg].clone();
        let strategy = strategy_of(form, &destination.backend);
        self.hand_over(leg, form).await.map_err(Unopened::Own)?;
        let footing = self.footing.clone().filter(|_| form.state && self.placed.handover.is_none());
        let record = self.compaction_record(&destination).await;
        if !self.surely_fits(&destination, &record)
            || self.placed.brief_for(&destination.backend.name).is_some()
        {
            self.read_whole().await.map_err(Unopened::Own)?;
        }
        let planned = self.plan_or_brief(leg, footing.is_some(), &record).await?;
        // What the backend keeps is the long form of what was shortened.
        let footing = footing.filter(|_| planned.is_none());
        let planned = planned.as_ref();
        let recall = planned.and_then(|planned| planned.recall.clone());
        let recall = recall.or_else(|| self.recall_of_brief(&destination));
        if !self.recalls.have_begun() {
            self.recalls.offer(recall.clone());
        }
        let cleared = planned.map(|planned| planned.cleared).unwrap_or_default();
        let applied = editing::applied(&self.ask, &destination.backend, cleared);
        let hides = self.recalls.tool().is_some() || applied.is_some();
        let (footing, recall) = (footing.as_ref(), recall.as_ref());
        let showing = Showing {
            strategy,
            footing,
            keep: form.keep,
            planned,
            recall,
            hides,
            may_call: !self.recalls.must_answer(),
            repairs: form.repairs,
        };
        let mut prompted = self.prompt(&destination, showing).await.map_err(Unopened::Own)?;
        prompted.applied = applied;
        self.gateway.telemetry.changed(&prompted.report);
        let backend = &destination.backend;
        let attempt = Attempt {
            plan: planned.map(Planned::sizes),
            continues: footing.filter(|_| prompted.continues).map(|footing| footing.response().clone()),
            recall: planned.and_then(|planned| planned.recall.clone()),
            ..record::attempted(
                backend.name.clone(),
                backend.dialect,
                destination.model.clone(),
                prompted.report.strategy,
                now(),
            )
        };
        let body = prompted.body.clone();
        self.recorder.handover.clone_from(&prompted.handover);
        self.recorder.sizing = Sizing::begin(&self.gateway, &mut prompted, self.ask.dialect);
        let report = prompted.report_json(&self.ask);
        let decided = planned.map(|planned| &planned.decided);
        let provenance = Some(prompted.report.provenance.to_bytes().into());
        let outgoing = Outgoing { body: body.clone(), report, provenance, decided };
        let recorded = self.recorder.attempt(attempt, outgoing).await;
        recorded.map_err(|error| Unopened::Own(unrecorded(&error)))?;
        self.note_unsummarised(planned);
        let answered = self.send(&prompted, body).await;
        let opened = match answered {
            Ok(answered) => {
                self.heed(&destination.backend.name, &answered.headers).await;
                read(answered, &prompted, self, resumed).await
            }
            Err(error) => Err(unreachable_backend(&error)),
        };
        match opened {
            Ok(answer) => Ok(Opened { prompted, sent: (leg, form), answer }),
            Err((failed, failure)) => {
                let status = match failed {
                    Failed::Status { status, .. } => Some(status),
                    Failed::Connect | Failed::TimedOut | Failed::Unusable => None,
                };
                self.recorder.attempt_ended(status, Some(failure.message.clone()), now());
                Err(Unopened::Backend(failed, failure))
            }
        }
    }

    /// Plans what a destination is shown; one that takes over is given a brief where nothing else fits.
    async fn plan_or_brief(
        &mut self,
        leg: usize,
        is_kept: bool,
        record: &CompactionRecord,
    ) -> Result<Option<Planned>, Unopened> {
        let destination = self.destinations[leg].clone();
        let mut planned = self.plan(&destination, is_kept, record).await;
        if planned.is_err() && self.may_be_briefed() {
            let mut halvings = 0;
            while planned.is_err() && Self::may_halve(halvings) {
                self.write_brief(leg, halvings).await.map_err(Unopened::Own)?;
                planned = self.plan(&destination, is_kept, record).await;
                halvings += 1;
            }
        }
        planned.map_err(|failure| Unopened::Backend(TOO_LONG, failure))
    }

    /// Remembers what a backend says of itself in the headers of an answer, also of a refusal.
    async fn heed(&self, backend: &Text, headers: &HeaderMap) {
        let Some(said) = headers.get(CAPABILITIES_HEADER).and_then(|value| value.to_str().ok()) else {
            return;
        };
        let said = from_headers([(CAPABILITIES_HEADER, said)]);
        let lessons = verdicts::keep_told(&self.gateway.standing(), backend, &said, now());
        self.remember(lessons).await;
    }

    /// Notes why an answer was ended of which no more was taken.
    pub(super) fn note_abort(&mut self, relay: &AnswerStream) {
        if let Some(Ending::Failed(failure)) = relay.ending().filter(|_| relay.was_aborted()) {
            self.recorder.attempt_aborted(failure.message.clone());
        }
    }

    /// Writes what an attempt brought that failed before its answer began: another one may follow.
    pub(super) async fn take_down(&mut self, events: Vec<ProviderEvent>) {
        if let Err(error) = self.recorder.flush(events).await {
            tracing::warn!(%error, "the events of a failed attempt were not recorded");
        }
    }

    async fn send(&self, prompted: &Prompted, body: Bytes) -> Result<Answered, EgressError> {
        let backend = &prompted.destination.backend;
        let Some(egress) = self.setup.egress.get(&backend.name) else {
            return Err(EgressError::Connect("the backend is not set up".to_owned()));
        };
        let is_same = self.ask.dialect == backend.dialect;
        let mut forwarded = if is_same { self.forwarded(&FORWARDED) } else { HeaderMap::new() };
        if is_same && backend.credential == Credential::Passthrough {
            forwarded.extend(self.forwarded(&FORWARDED_WITH_CREDENTIALS));
        }
        forwarded.extend(self.recorder.trace_headers().unwrap_or_else(|| trace::passed_on(&self.headers)));
        let path = path_of(backend.dialect);
        egress.post(Request { path, body, presented: &self.presented, forwarded: &forwarded }).await
    }

    fn forwarded(&self, names: &[&'static str]) -> HeaderMap {
        let named = names.iter().map(|name| HeaderName::from_static(name));
        let of_name = |name: HeaderName| self.headers.get(&name).map(|value| (name.clone(), value.clone()));
        named.filter_map(of_name).collect()
    }
}

fn strategy_of(form: Form, backend: &Backend) -> Strategy {
    if form.native { Strategy::Native } else { Strategy::TextEmbed(backend.history.text_embed.form()) }
}

async fn read(
    answered: Answered,
    prompted: &Prompted,
    running: &mut Running,
    resumed: Option<&mut AnswerStream>,
) -> Result<Answer, (Failed, Failure)> {
    let dialect = prompted.destination.backend.dialect;
    if answered.status >= 400 {
        return Err(refused(answered, dialect, &mut running.recorder).await);
    }
    if !answered.is_stream() {
        return read_whole(answered, prompted, &Permit::of(&running.ask)).await;
    }
    if let Some(relay) = resumed {
        relay.resume(dialect, prompted.restorer.clone(), running.recalls.must_answer());
        relay.bound(answered.bounds, &answered.echoes);
        let (mut answered, mut out) = (answered, String::new());
        if let Err(failed) = begin(&mut answered, relay, &mut out).await {
            running.take_down(relay.take_events()).await;
            return Err(failed);
        }
        return Ok(Answer::Rest(Box::new((answered, out))));
    }
    let input_tokens = match &mut running.recorder.sizing {
        Some(sizing) if !prompted.forwards && !running.listens => sizing.tokens().await,
        None if prompted.abridged => u64::try_from(prompted.body.len() / BYTES_PER_TOKEN).ok(),
        Some(_) | None => None,
    };
    let mut output = match running.listens {
        true => StreamOutput::Keep(Vec::new()),
        false => prompted.stream_output(&running.ask, &running.stamp, input_tokens),
    };
    output.name_reasoning(reasoning_events(&running.headers));
    let hidden_calls = running.recalls.hidden_call_filter();
    let mut relay =
        AnswerStream::new(dialect, prompted.restorer.clone(), output, Permit::of(&running.ask), hidden_calls);
    relay.bound(answered.bounds, &answered.echoes);
    relay.tell_edits(prompted.applied.clone());
    let (mut answered, mut out) = (answered, String::new());
    if let Err(failed) = begin(&mut answered, &mut relay, &mut out).await {
        running.take_down(relay.take_events()).await;
        return Err(failed);
    }
    if relay.forwards_response() && !running.keeps_id(relay.id()).await {
        let mut output = prompted.stream_output(&running.ask, &running.stamp, input_tokens);
        output.rename_response(running.own_id());
        let hidden_calls = running.recalls.hidden_call_filter();
        let mut renamed = AnswerStream::new(
            dialect,
            prompted.restorer.clone(),
            output,
            Permit::of(&running.ask),
            hidden_calls,
        );
        renamed.bound(answered.bounds, &answered.echoes);
        renamed.tell_edits(prompted.applied.clone());
        out.clear();
        renamed.take_over(relay, &mut out);
        relay = renamed;
    }
    Ok(Answer::Stream(Box::new((answered, relay, out))))
}

/// Reads up to the beginning of an answer.
async fn begin(
    answered: &mut Answered,
    relay: &mut AnswerStream,
    out: &mut String,
) -> Result<(), (Failed, Failure)> {
    // One by one: what comes right behind the beginning may fail, and that is then told within the answer.
    while !relay.has_begun() {
        let chunk = answered.chunk().await;
        if !take(answered, chunk, relay, out) {
            break;
        }
    }
    match relay.ending() {
        Some(Ending::Failed(failure)) if relay.was_aborted() => Err((Failed::Unusable, failure.clone())),
        Some(Ending::Failed(failure)) if relay.was_refused() => Err((NOT_ALLOWED, failure.clone())),
        Some(Ending::Failed(failure)) => {
            let status = status_of(failure.kind);
            let failure = failure.clone();
            let rejection = rejection(status, &failure, &failure.message);
            Err((Failed::Status { status, retry_after: None, rejection }, failure))
        }
        Some(Ending::Broken) if !relay.has_content() => Err((Failed::TimedOut, broken_off())),
        _ => Ok(()),
    }
}

async fn read_whole(
    answered: Answered,
    prompted: &Prompted,
    permit: &Permit,
) -> Result<Answer, (Failed, Failure)> {
    let bad = |message: String| (Failed::Unusable, backend_failed(message));
    let limit = answered.bounds.bytes;
    let body = answered.whole(limit).await.map_err(|error| {
        (Failed::Unusable, failure_of(&error).unwrap_or_else(|| backend_failed(error.to_string())))
    })?;
    let text = String::from_utf8(body.into()).map_err(|_| bad("the answer is not UTF-8".to_owned()))?;
    let text: Arc<str> = text.into();
    let event = ProviderEvent { at: now(), name: None, data: Text::from(Arc::clone(&text)) };
    let reply = decode_reply(prompted.destination.backend.dialect, text);
    let mut reply = reply.map_err(|error| bad(format!("the answer cannot be understood: {error}")))?;
    if let Ending::Failed(failure) = &reply.ending {
        let status = status_of(failure.kind);
        return Err((Failed::Status { status, retry_after: None, rejection: None }, failure.clone()));
    }
    prompted.restorer.restore(&mut reply);
    if let Some(failure) = permit.refusal_of(&reply) {
        return Err((NOT_ALLOWED, failure));
    }
    Ok(Answer::Whole(Box::new(reply), vec![event]))
}

/// Reads the refusal of a backend.
async fn refused(answered: Answered, dialect: Dialect, recorder: &mut Recorder) -> (Failed, Failure) {
    let status = answered.status;
    let retry_after = answered.retry_after();
    let body = answered.beginning(REFUSAL_BYTES_MAX, REFUSAL_TIME_MAX).await;
    let body = String::from_utf8_lossy(&body);
    let mut failure = decode_error(dialect, status, &body);
    failure.shorten();
    let wait = retry_after.map(|wait| u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX));
    failure.refusal = Some(Refusal { status, retry_after: wait });
    let said = ProviderEvent { at: now(), name: Some(Text::from_static(REFUSED)), data: Text::from(&*body) };
    if let Err(error) = recorder.flush(vec![said]).await {
        tracing::warn!(%error, "the words of a refusal were not recorded");
    }
    let rejection = rejection(status, &failure, &body);
    (Failed::Status { status, retry_after, rejection }, failure)
}

fn unreachable_backend(error: &EgressError) -> (Failed, Failure) {
    let failure = backend_failed(format!("the backend cannot be reached: {error}"));
    match error {
        EgressError::Silent => {
            let kind = FailureKind::TimedOut;
            (Failed::TimedOut, Failure { kind, ..failure })
        }
        EgressError::NoCredentials => {
            let failed = Failed::Status { status: 401, retry_after: None, rejection: None };
            (
                failed,
                gateway_error(FailureKind::Authentication, "throughline_no_credentials", error.to_string()),
            )
        }
        EgressError::TooLarge { .. } | EgressError::Stalled { .. } => (Failed::Unusable, failure),
        EgressError::Setup { .. } | EgressError::Connect(_) | EgressError::Broke(_) => {
            (Failed::Connect, failure)
        }
    }
}

/// Moves what the backend says next through the relay, with all that has come by then; says whether there may
/// be more.
///
/// The pieces of a burst reach this one by one, and the connection needs a turn to bring each: one turn is given
/// to it in vain before what was joined goes out.
pub(super) async fn pump(answered: &mut Answered, relay: &mut AnswerStream, out: &mut String) -> bool {
    let chunk = answered.chunk().await;
    let mut more = take(answered, chunk, relay, out);
    let mut waited = false;
    while more && out.len() < JOINED_BYTES_MAX && relay.events() < JOINED_EVENTS_MAX {
        match answered.chunk().now_or_never() {
            Some(chunk) => {
                more = take(answered, chunk, relay, out);
                waited = false;
            }
            None if waited => break,
            None => {
                tokio::task::yield_now().await;
                waited = true;
            }
        }
    }
    more
}

fn take(
    answered: &mut Answered,
    chunk: Result<Option<Bytes>, EgressError>,
    relay: &mut AnswerStream,
    out: &mut String,
) -> bool {
    let before = relay.progress();
    let failure = match chunk {
        Ok(Some(bytes)) => match relay.feed(&bytes, now(), out) {
            Ok(()) => {
                if relay.progress() != before {
                    answered.note_progress();
                }
                return relay.ending().is_none();
            }
            Err(SseError::TooLarge { limit }) => {
                Some(too_large(format!("an event of it has more than {limit} bytes (`limits.answer_bytes`)")))
            }
        },
        Ok(None) => None,
        Err(error) => failure_of(&error),
    };
    match failure {
        Some(failure) => relay.abort(failure, now(), out),
        // The end and a broken connection both leave the relay to say what that means.
        None => relay.finish(now(), out),
    }
    false
}
