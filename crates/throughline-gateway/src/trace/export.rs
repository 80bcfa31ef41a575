//! Spans on their way to the collector: a queue with a limit, and a task that sends them in batches.
//!
//! An exchange never waits: what finds the queue full is dropped and counted. A batch that the collector does
//! not take for now is sent again a few times, then dropped and counted as well.

use super::otlp;
use super::span::Span;
use crate::config::Tracing;
use crate::telemetry::{SpanOutcome, Telemetry};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::Text;
use tokio::sync::{mpsc, oneshot};

/// How many exchanges may wait to be sent.
const WAITING_MAX: usize = 4096;

/// How many exchanges are sent at a time.
const BATCH_MAX: usize = 256;

/// How long a batch is collected.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// How long the collector may take.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How long to wait before each further try.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// The way to a collector.
#[derive(Debug)]
pub struct Tracer {
    sender: mpsc::Sender<Handed>,
    telemetry: Arc<Telemetry>,
    settings: Tracing,
}

/// Why the way to the collector could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("telemetry.otlp_endpoint: the connection cannot be set up: {0}")]
pub struct TraceError(#[from] reqwest::Error);

/// What the task is handed.
#[derive(Debug)]
enum Handed {
    Spans(Vec<Span>),
    /// Says when everything that was handed over before is sent.
    Flush(oneshot::Sender<()>),
}

/// The task that sends.
struct Sender {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    service: Text,
    telemetry: Arc<Telemetry>,
}

impl Tracer {
    /// Sets up the way to a collector and starts the task that sends; it ends when the tracer is dropped.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub fn start(settings: &Tracing, telemetry: &Arc<Telemetry>) -> Result<Self, TraceError> {
        let client = reqwest::Client::builder()
            .timeout(TIME_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let (sender, handed) = mpsc::channel(WAITING_MAX);
        let task = Sender {
            client,
            url: url(settings.endpoint.as_str()),
            headers: headers(settings),
            service: settings.service_name.clone(),
            telemetry: Arc::clone(telemetry),
        };
        tokio::spawn(task.run(handed));
        Ok(Self { sender, telemetry: Arc::clone(telemetry), settings: settings.clone() })
    }

    /// Returns what it was set up with.
    #[must_use]
    pub const fn settings(&self) -> &Tracing {
        &self.settings
    }

    /// Returns the share of traces that is kept.
    #[must_use]
    pub const fn ratio(&self) -> f64 {
        self.settings.sampling_ratio
    }

    /// Hands over the spans of an exchange; drops them if too many wait.
    pub(super) fn submit(&self, spans: Vec<Span>) {
        let count = spans.len();
        if self.sender.try_send(Handed::Spans(spans)).is_err() {
            self.telemetry.spans(SpanOutcome::Dropped, count);
        }
    }

    /// Waits until everything that was handed over is sent or given up.
    pub async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.sender.send(Handed::Flush(done)).await.is_ok() {
            // An error means that the task is gone, and with it everything that could be waited for.
            let _ = waiting.await;
        }
    }
}

/// Returns where traces go, below the address of a collector or at the very address that was given.
fn url(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with("/v1/traces") { endpoint.to_owned() } else { format!("{endpoint}/v1/traces") }
}

fn headers(settings: &Tracing) -> HeaderMap {
    let header = |(name, value): &(Text, crate::secret::Secret)| {
        let mut value = HeaderValue::from_str(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
    };
    let mut headers: HeaderMap = settings.headers.iter().filter_map(header).collect();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

impl Sender {
    async fn run(self, mut handed: mpsc::Receiver<Handed>) {
        while let Some(first) = handed.recv().await {
            let mut batch = vec![first];
            let collect = async {
                while batch.len() < BATCH_MAX && !batch.iter().any(is_flush) {
                    let Some(next) = handed.recv().await else { break };
                    batch.push(next);
                }
            };
            // Either way, what has been collected is in the batch.
            let _ = tokio::time::timeout(BATCH_TIME, collect).await;
            let (mut spans, mut flushed) = (Vec::new(), Vec::new());
            for each in batch {
                match each {
                    Handed::Spans(more) => spans.extend(more),
                    Handed::Flush(done) => flushed.push(done),
                }
            }
            self.send(&spans).await;
            for done in flushed {
                // Whoever does not wait any more need not be told.
                let _ = done.send(());
            }
        }
    }

    async fn send(&self, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        let body = otlp::request(&self.service, spans);
        let mut pauses = PAUSES.iter();
        loop {
            let sent =
                self.client.post(&self.url).headers(self.headers.clone()).body(body.clone()).send().await;
            let status = sent.as_ref().map_or(0, |answer| answer.status().as_u16());
            if (200..300).contains(&status) {
                return self.telemetry.spans(SpanOutcome::Exported, spans.len());
            }
            let is_passing = matches!(status, 0 | 429 | 502 | 503 | 504);
            let Some(pause) = pauses.next().filter(|_| is_passing) else {
                tracing::warn!(status, spans = spans.len(), "the collector does not take traces");
                return self.telemetry.spans(SpanOutcome::Failed, spans.len());
            };
            tokio::time::sleep(*pause).await;
        }
    }
}

const fn is_flush(handed: &Handed) -> bool {
    matches!(handed, Handed::Flush(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_the_address_or_to_it() {
        assert_eq!(url("http://localhost:4318"), "http://localhost:4318/v1/traces");
        assert_eq!(url("http://localhost:4318/"), "http://localhost:4318/v1/traces");
        assert_eq!(url("https://x.example/otlp/v1/traces"), "https://x.example/otlp/v1/traces");
    }
}
