//! What is counted, for Prometheus to read at `/metrics`.
//!
//! A registry of our own: a dozen counters and one histogram are less than a crate for them. Labels are
//! words of ours and the names of configured backends, so that the number of series is bounded; ids and model
//! names are in the log and in the record. docs/operations.md says what each metric means.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use throughline_core::{Dialect, Report, Text, Usage};

/// The upper ends of the buckets of the duration, in milliseconds. Answers of models take from parts of a
/// second to many minutes.
const BUCKETS_MS: [u64; 12] =
    [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000];

/// Everything that is counted.
#[derive(Debug)]
pub struct Telemetry {
    requests: Family<3>,
    attempts: Family<2>,
    fallbacks: Family<2>,
    tokens: Family<2>,
    changes: Family<1>,
    store_failures: Family<1>,
    reloads: Family<1>,
    refusals: Family<1>,
    switches: Family<0>,
    spans: Family<1>,
    abridged: Family<0>,
    summaries: Family<1>,
    durations: Histogram,
    added: Sum,
}

/// What an attempt followed upon, within one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The same once more.
    Retry,
    /// The same backend, which rejected tool items, with the tool history as text.
    TextEmbed,
    /// The same backend, which did not have its answer any more, with the whole history.
    FullHistory,
    /// Another backend.
    Failover,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// An answer began.
    Answered,
    /// The backend said no.
    Refused,
    /// There was no answer, or none that can be understood.
    Failed,
}

/// Why a request or a connection was refused before it was an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No key, or a wrong one.
    Key,
    /// From another machine, or for the name of one, while there are no keys.
    NotLocal,
    /// From a page of another origin.
    Page,
    /// The head is too large.
    HeaderSize,
    /// The head took too long to arrive.
    HeaderTimeout,
    /// The body took too long to arrive.
    RequestTimeout,
    /// The body is too large.
    BodySize,
    /// The body is not what it says.
    Invalid,
    /// There is no memory left for it.
    Memory,
    /// Too many requests are under way.
    Requests,
    /// Too many connections are at work.
    Connections,
    /// The connection had nothing to do, and made room for another.
    Evicted,
    /// The client took nothing of what was written to it.
    WriteTimeout,
}

impl Refusal {
    /// Returns its name, as `/metrics` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::NotLocal => "not_local",
            Self::Page => "page",
            Self::HeaderSize => "header_size",
            Self::HeaderTimeout => "header_timeout",
            Self::RequestTimeout => "request_timeout",
            Self::BodySize => "body_size",
            Self::Invalid => "invalid_body",
            Self::Memory => "memory",
            Self::Requests => "requests",
            Self::Connections => "connections",
            Self::Evicted => "evicted",
            Self::WriteTimeout => "write_timeout",
        }
    }
}

/// What came of asking a model for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryOutcome {
    /// Its words are in the history.
    Written,
    /// There are none.
    Failed,
    /// There were none in time.
    TimedOut,
}

/// What became of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOutcome {
    /// The collector took them.
    Exported,
    /// Too many were waiting.
    Dropped,
    /// The collector did not take them.
    Failed,
}

/// What could not be done with the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUse {
    /// It could not be read.
    Read,
    /// It could not be written.
    Write,
}

/// Counters that differ in their labels.
#[derive(Debug)]
struct Family<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    series: RwLock<BTreeMap<[Text; N], Arc<AtomicU64>>>,
}

/// How long exchanges take, by backend.
#[derive(Debug)]
struct Histogram {
    name: &'static str,
    help: &'static str,
    series: RwLock<BTreeMap<Text, Arc<Spread>>>,
}

/// Durations by size. A bucket holds those that fit it and no smaller one; they are added up when printed.
#[derive(Debug, Default)]
struct Spread {
    buckets: [AtomicU64; BUCKETS_MS.len()],
    sum: Sum,
}

/// Durations, summed and counted.
#[derive(Debug, Default)]
struct Sum {
    micros: AtomicU64,
    count: AtomicU64,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new()
    }
}

impl Telemetry {
    /// Returns a registry in which nothing was counted yet.
    #[must_use]
    pub fn new() -> Self {
        let (backend, ending) = ("backend", "ending");
        Self {
            requests: Family::new(
                "throughline_requests_total",
                "Requests of clients, by what became of them.",
                ["dialect", backend, ending],
            ),
            attempts: Family::new(
                "throughline_attempts_total",
                "Requests to backends.",
                [backend, "outcome"],
            ),
            fallbacks: Family::new(
                "throughline_fallbacks_total",
                "Requests to backends that followed upon one that failed, by the backend tried next.",
                [backend, "kind"],
            ),
            tokens: Family::new(
                "throughline_tokens_total",
                "Tokens as backends counted them.",
                [backend, "direction"],
            ),
            changes: Family::new(
                "throughline_changes_total",
                "Changes made for backends, as reports count them.",
                ["action"],
            ),
            store_failures: Family::new(
                "throughline_store_failures_total",
                "Times that the history could not be read or written.",
                ["operation"],
            ),
            reloads: Family::new(
                "throughline_reloads_total",
                "Times that the configuration was read again.",
                ["outcome"],
            ),
            refusals: Family::new(
                "throughline_refused_total",
                "Requests and connections that were refused before they were exchanges.",
                ["reason"],
            ),
            switches: Family::new(
                "throughline_switches_total",
                "Switches at run time that this gateway has noticed.",
                [],
            ),
            spans: Family::new(
                "throughline_spans_total",
                "Spans of traces, by what became of them.",
                ["outcome"],
            ),
            summaries: Family::new(
                "throughline_summaries_total",
                "Summaries of old rounds that a model was asked for.",
                ["outcome"],
            ),
            abridged: Family::new(
                "throughline_abridged_total",
                "Requests that were sent without being read from their beginning.",
                [],
            ),
            durations: Histogram {
                name: "throughline_exchange_duration_seconds",
                help: "From a request, read whole, to the end of its answer.",
                series: RwLock::default(),
            },
            added: Sum::default(),
        }
    }

    /// Counts a request that was turned away before it was an exchange.
    pub fn turned_away(&self, dialect: Dialect) {
        self.requests.add(
            [Text::from_static(dialect.name()), Text::from_static("none"), Text::from_static("rejected")],
            1,
        );
    }

    /// Counts an exchange that is over.
    pub fn exchange_ended(&self, dialect: Dialect, backend: Option<&Text>, ending: &Text, took: Duration) {
        let backend = backend.cloned().unwrap_or(Text::from_static("none"));
        self.requests.add([Text::from_static(dialect.name()), backend.clone(), ending.clone()], 1);
        self.durations.observe(backend, took);
    }

    /// Counts what came of an attempt.
    pub fn attempt_ended(&self, backend: &Text, outcome: AttemptOutcome) {
        let outcome = match outcome {
            AttemptOutcome::Answered => "answered",
            AttemptOutcome::Refused => "refused",
            AttemptOutcome::Failed => "failed",
        };
        self.attempts.add([backend.clone(), Text::from_static(outcome)], 1);
    }

    /// Counts an attempt that followed upon another.
    pub fn fell_back(&self, backend: &Text, kind: Fallback) {
        let kind = match kind {
            Fallback::Retry => "retry",
            Fallback::TextEmbed => "text_embed",
            Fallback::FullHistory => "full_history",
            Fallback::Failover => "failover",
        };
        self.fallbacks.add([backend.clone(), Text::from_static(kind)], 1);
    }

    /// Counts the tokens of an answer.
    pub fn used(&self, backend: &Text, usage: Usage) {
        self.tokens.add([backend.clone(), Text::from_static("input")], usage.input);
        self.tokens.add([backend.clone(), Text::from_static("output")], usage.output);
    }

    /// Counts what was changed for a backend.
    pub fn changed(&self, report: &Report) {
        for change in &report.changes {
            self.changes.add([Text::from_static(change.action.name())], 1);
        }
    }

    /// Counts a failure of the history.
    pub fn store_failed(&self, operation: StoreUse) {
        let operation = match operation {
            StoreUse::Read => "read",
            StoreUse::Write => "write",
        };
        self.store_failures.add([Text::from_static(operation)], 1);
    }

    /// Counts an attempt to reload the configuration.
    pub fn reloaded(&self, is_in_effect: bool) {
        let outcome = if is_in_effect { "in_effect" } else { "refused" };
        self.reloads.add([Text::from_static(outcome)], 1);
    }

    /// Counts a request or a connection that was refused.
    pub fn refused(&self, reason: Refusal) {
        self.refusals.add([Text::from_static(reason.name())], 1);
    }

    /// Counts a request that was sent without being read from its beginning.
    pub fn abridged(&self) {
        self.abridged.add([], 1);
    }

    /// Counts a summary that a model was asked for.
    pub fn summarised(&self, outcome: SummaryOutcome) {
        let outcome = match outcome {
            SummaryOutcome::Written => "written",
            SummaryOutcome::Failed => "failed",
            SummaryOutcome::TimedOut => "timed_out",
        };
        self.summaries.add([Text::from_static(outcome)], 1);
    }

    /// Counts switches.
    pub fn switched(&self, times: usize) {
        self.switches.add([], times as u64);
    }

    /// Counts spans.
    pub fn spans(&self, outcome: SpanOutcome, count: usize) {
        let outcome = match outcome {
            SpanOutcome::Exported => "exported",
            SpanOutcome::Dropped => "dropped",
            SpanOutcome::Failed => "failed",
        };
        self.spans.add([Text::from_static(outcome)], count as u64);
    }

    /// Counts the time between a request, read whole, and the first request to a backend.
    pub fn added_before_backend(&self, time: Duration) {
        self.added.observe(time);
    }

    /// Returns everything in Prometheus' text form.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        head(&mut out, "throughline_build_info", "The version that runs.", "gauge");
        let _ = writeln!(out, "throughline_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
        self.requests.write(&mut out);
        self.attempts.write(&mut out);
        self.fallbacks.write(&mut out);
        self.tokens.write(&mut out);
        self.changes.write(&mut out);
        self.store_failures.write(&mut out);
        self.reloads.write(&mut out);
        self.refusals.write(&mut out);
        self.switches.write(&mut out);
        self.spans.write(&mut out);
        self.abridged.write(&mut out);
        self.summaries.write(&mut out);
        self.durations.write(&mut out);
        let name = "throughline_added_seconds";
        head(&mut out, name, "From a request, read whole, to the first request to a backend.", "summary");
        self.added.write(&mut out, name, "");
        out
    }
}

impl<const N: usize> Family<N> {
    fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self { name, help, labels, series: RwLock::default() }
    }

    fn add(&self, values: [Text; N], by: u64) {
        of_key(&self.series, values).fetch_add(by, Relaxed);
    }

    fn write(&self, out: &mut String) {
        head(out, self.name, self.help, "counter");
        for (values, count) in &*self.series.read().unwrap_or_else(PoisonError::into_inner) {
            let pairs = self.labels.iter().zip(values);
            let pairs: Vec<String> = pairs.map(|(label, value)| pair(label, value)).collect();
            let labels = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
            let _ = writeln!(out, "{}{labels} {}", self.name, count.load(Relaxed));
        }
    }
}

impl Histogram {
    fn observe(&self, backend: Text, took: Duration) {
        let spread = of_key(&self.series, backend);
        let fits = BUCKETS_MS.iter().position(|end| took <= Duration::from_millis(*end));
        if let Some(bucket) = fits {
            spread.buckets[bucket].fetch_add(1, Relaxed);
        }
        spread.sum.observe(took);
    }

    fn write(&self, out: &mut String) {
        head(out, self.name, self.help, "histogram");
        for (backend, spread) in &*self.series.read().unwrap_or_else(PoisonError::into_inner) {
            let backend = pair("backend", backend);
            let mut line = |end: &str, count: u64| {
                let _ = writeln!(out, "{}_bucket{{{backend},le=\"{end}\"}} {count}", self.name);
            };
            let mut below = 0;
            for (end, bucket) in BUCKETS_MS.iter().zip(&spread.buckets) {
                below += bucket.load(Relaxed);
                line(&Duration::from_millis(*end).as_secs_f64().to_string(), below);
            }
            // Never less than the bucket before it, also while somebody is counting.
            line("+Inf", spread.sum.count.load(Relaxed).max(below));
            spread.sum.write(out, self.name, &format!("{{{backend}}}"));
        }
    }
}

impl Sum {
    fn observe(&self, time: Duration) {
        self.micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, labels: &str) {
        let sum = Duration::from_micros(self.micros.load(Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_sum{labels} {sum}");
        let _ = writeln!(out, "{name}_count{labels} {}", self.count.load(Relaxed));
    }
}

/// Returns what is counted under a key. Only the first time anybody waits for anybody.
fn of_key<K: Ord, V: Default>(series: &RwLock<BTreeMap<K, Arc<V>>>, key: K) -> Arc<V> {
    if let Some(found) = series.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Arc::clone(found);
    }
    Arc::clone(series.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn pair(label: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("{label}=\"{value}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Action;

    fn lines(telemetry: &Telemetry) -> Vec<String> {
        telemetry.text().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn what_happened_is_counted_by_its_labels() {
        let telemetry = Telemetry::new();
        let one = Text::from_static("one");
        let ending = Text::from_static("end_turn");
        for _ in 0..2 {
            telemetry.exchange_ended(Dialect::Chat, Some(&one), &ending, Duration::from_millis(200));
        }
        telemetry.turned_away(Dialect::Messages);
        telemetry.fell_back(&one, Fallback::TextEmbed);
        telemetry.attempt_ended(&one, AttemptOutcome::Refused);
        telemetry.used(&one, Usage { input: 7, output: 3, ..Usage::default() });
        telemetry.store_failed(StoreUse::Write);
        telemetry.added_before_backend(Duration::from_millis(1500));
        let mut report = Report::default();
        report.field(Action::Dropped, "top_k", "no such setting");
        telemetry.changed(&report);
        let lines = lines(&telemetry);
        for line in [
            r#"throughline_requests_total{dialect="chat",backend="one",ending="end_turn"} 2"#,
            r#"throughline_requests_total{dialect="messages",backend="none",ending="rejected"} 1"#,
            r#"throughline_fallbacks_total{backend="one",kind="text_embed"} 1"#,
            r#"throughline_attempts_total{backend="one",outcome="refused"} 1"#,
            r#"throughline_tokens_total{backend="one",direction="input"} 7"#,
            r#"throughline_tokens_total{backend="one",direction="output"} 3"#,
            r#"throughline_changes_total{action="dropped"} 1"#,
            r#"throughline_store_failures_total{operation="write"} 1"#,
            "throughline_added_seconds_sum 1.5",
            "throughline_added_seconds_count 1",
        ] {
            assert!(lines.iter().any(|each| each == line), "{line} is not in {lines:#?}");
        }
    }

    #[test]
    fn buckets_add_up() {
        let telemetry = Telemetry::new();
        for millis in [10, 50, 51, 3_600_000] {
            let ending = Text::from_static("failed");
            telemetry.exchange_ended(Dialect::Chat, None, &ending, Duration::from_millis(millis));
        }
        let count = |end: &str| {
            let start =
                format!("throughline_exchange_duration_seconds_bucket{{backend=\"none\",le=\"{end}\"}} ");
            let line =
                lines(&telemetry).into_iter().find_map(|line| Some(line.strip_prefix(&start)?.to_owned()));
            line.unwrap()
        };
        assert_eq!([count("0.05"), count("0.1"), count("1800"), count("+Inf")], ["2", "3", "3", "4"]);
    }

    #[test]
    fn a_label_cannot_end_early() {
        assert_eq!(pair("backend", "a\"b\\c\nd"), r#"backend="a\"b\\c\nd""#);
    }

    #[test]
    fn every_metric_is_documented() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
        let page = std::fs::read_to_string(page).unwrap();
        let text = Telemetry::new().text();
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        assert_eq!(names.len(), 15);
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "docs/operations.md does not mention {name}");
        }
    }
}
