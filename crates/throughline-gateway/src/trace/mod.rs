//! Traces: one for each exchange, with a span for each thing that takes time in it.
//!
//! The trace of a client is continued (W3C `traceparent`), and each attempt passes it on to its backend. Spans
//! are written as the GenAI conventions of OpenTelemetry name things, and sent in OTLP over HTTP to the
//! collector that the configuration names. No words of a conversation are in them, and no error messages, which
//! may quote some. Nobody waits for the collector: see `export.rs`.

mod context;
mod export;
mod otlp;
mod span;

pub use context::Context;
pub use export::{TraceError, Tracer};

use http::{HeaderMap, HeaderName, HeaderValue};
use span::{Kind, Span, Value};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use throughline_core::{Text, Usage};
use throughline_store::{Attempt, Exchange};

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// The trace of one exchange, while that is under way.
#[derive(Debug)]
pub struct Trace {
    tracer: Arc<Tracer>,
    context: Context,
    /// The client's span, if it named one.
    parent: Option<[u8; 8]>,
    /// What other systems have put into the trace.
    state: Option<HeaderValue>,
    /// When the request had arrived, by both clocks.
    arrived: (SystemTime, Instant),
    phases: Vec<Phase>,
    attempts: Vec<Try>,
}

/// Something that took time.
#[derive(Debug)]
struct Phase {
    name: &'static str,
    began: Instant,
    ended: Instant,
}

/// The time of an attempt, and its span.
#[derive(Debug)]
struct Try {
    id: [u8; 8],
    began: Instant,
    /// When an answer began, or there was none.
    ended: Option<Instant>,
}

/// Returns the headers by which a client's trace reaches a backend where nothing is traced here.
#[must_use]
pub fn passed_on(headers: &HeaderMap) -> HeaderMap {
    [PARENT, STATE].into_iter().filter_map(|name| Some((name.clone(), headers.get(&name)?.clone()))).collect()
}

impl Trace {
    /// Begins the trace of a request with those headers, which had arrived at `arrived`.
    #[must_use]
    pub fn begin(tracer: &Arc<Tracer>, headers: &HeaderMap, arrived: Instant) -> Self {
        let given = headers.get(PARENT).and_then(|value| value.to_str().ok()).and_then(Context::parse);
        let (context, parent) = match given {
            Some(given) => (Context { span: context::span_id(), ..given }, Some(given.span)),
            None => (Context::fresh(tracer.ratio()), None),
        };
        let state = headers.get(STATE).filter(|_| parent.is_some()).cloned();
        let at = SystemTime::now().checked_sub(arrived.elapsed()).unwrap_or(UNIX_EPOCH);
        Self {
            tracer: Arc::clone(tracer),
            context,
            parent,
            state,
            arrived: (at, arrived),
            phases: Vec::new(),
            attempts: Vec::new(),
        }
    }

    /// Notes that something took from `began` until now.
    pub fn phase(&mut self, name: &'static str, began: Instant) {
        self.phases.push(Phase { name, began, ended: Instant::now() });
    }

    /// Notes that an attempt is made.
    pub fn attempt(&mut self) {
        self.attempts.push(Try { id: context::span_id(), began: Instant::now(), ended: None });
    }

    /// Notes that the attempt under way is over, or that its answer has begun.
    pub fn attempt_ended(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.ended.get_or_insert_with(Instant::now);
        }
    }

    /// Returns the headers by which the backend of the attempt under way continues the trace.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let span = self.attempts.last().map_or(self.context.span, |attempt| attempt.id);
        let parent = HeaderValue::from_str(&Context { span, ..self.context }.to_string()).ok();
        let named = parent.map(|parent| (PARENT, parent)).into_iter();
        named.chain(self.state.clone().map(|state| (STATE, state))).collect()
    }

    /// Ends the trace with the exchange, and hands it to the exporter.
    pub fn finish(self, exchange: &Exchange) {
        if !self.context.is_sampled {
            return;
        }
        let end = Instant::now();
        let mut spans = vec![self.root(exchange, end)];
        for phase in &self.phases {
            spans.push(self.child(phase.name, Kind::Internal, phase.began, phase.ended));
        }
        for (made, attempt) in self.attempts.iter().zip(&exchange.attempts) {
            let ended = made.ended.unwrap_or(end);
            let span = self.child("attempt", Kind::Client, made.began, ended);
            spans.push(Span { id: made.id, ..described(span, attempt) });
        }
        let answered = exchange.attempts.last().is_some_and(|attempt| attempt.failure.is_none());
        if let Some(began) = self.attempts.last().and_then(|attempt| attempt.ended).filter(|_| answered) {
            spans.push(self.child("stream", Kind::Internal, began, end));
        }
        self.tracer.submit(spans);
    }

    fn root(&self, exchange: &Exchange, end: Instant) -> Span {
        let model = exchange.asked_model.clone();
        let name = model.as_ref().map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let mut span = self.child("", Kind::Server, self.arrived.1, end);
        (span.id, span.parent, span.name) = (self.context.span, self.parent, name.into());
        let attempt = exchange.attempts.last();
        span.say("gen_ai.operation.name", Text::from_static("chat"));
        span.say("gen_ai.provider.name", attempt.map(|attempt| attempt.backend.clone()));
        span.say("gen_ai.request.model", model);
        span.say("gen_ai.response.model", attempt.and_then(|attempt| attempt.model.clone()));
        span.say("gen_ai.conversation.id", Text::from(exchange.conversation.as_str()));
        span.say("gen_ai.response.id", exchange.response.as_ref().map(|mark| mark.id.clone()));
        span.say(
            "gen_ai.response.finish_reasons",
            exchange.ending.clone().map(|ending| Value::List(vec![ending])),
        );
        span.say("http.response.status_code", exchange.status.map(u64::from));
        span.say("throughline.request.id", Text::from(exchange.id.as_str()));
        span.say("throughline.dialect", Text::from_static(exchange.dialect.name()));
        span.say("throughline.attempts", exchange.attempts.len() as u64);
        exchange.usage.iter().for_each(|usage| count(&mut span, usage));
        let ended_badly =
            exchange.ending.clone().filter(|ending| ["failed", "broken", "cancelled"].contains(&&**ending));
        span.fail(ended_badly);
        span
    }

    /// Returns a span below the exchange's own.
    fn child(&self, name: &'static str, kind: Kind, began: Instant, ended: Instant) -> Span {
        Span {
            trace: self.context.trace,
            id: context::span_id(),
            parent: Some(self.context.span),
            state: self.state.as_ref().and_then(|state| state.to_str().ok()).map(Text::from),
            name: Text::from_static(name),
            kind,
            began: self.nanos(began),
            ended: self.nanos(ended),
            attributes: Vec::new(),
            error: None,
        }
    }

    fn nanos(&self, at: Instant) -> u64 {
        let (wall, arrived) = self.arrived;
        let at = wall + at.saturating_duration_since(arrived);
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn described(mut span: Span, attempt: &Attempt) -> Span {
    if let Some(model) = &attempt.model {
        span.name = Text::from(format!("chat {model}"));
    }
    span.say("gen_ai.operation.name", Text::from_static("chat"));
    span.say("gen_ai.provider.name", attempt.backend.clone());
    span.say("gen_ai.request.model", attempt.model.clone());
    span.say("http.response.status_code", attempt.status.map(u64::from));
    span.say("throughline.dialect", Text::from_static(attempt.dialect.name()));
    span.say("throughline.strategy", attempt.strategy.clone());
    if attempt.failure.is_some() {
        let kind =
            attempt.status.map_or(Text::from_static("no_answer"), |status| Text::from(status.to_string()));
        span.fail(Some(kind));
    }
    span
}

fn count(span: &mut Span, usage: &Usage) {
    span.say("gen_ai.usage.input_tokens", usage.input);
    span.say("gen_ai.usage.output_tokens", usage.output);
    span.say("gen_ai.usage.cache_read.input_tokens", usage.cache_read);
    span.say("gen_ai.usage.cache_creation.input_tokens", usage.cache_written);
}
