//! What the simulated backend was sent, and how it answered.

use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many bytes of bodies are kept; the oldest requests are forgotten.
const BYTES_MAX: usize = 512 << 20;
/// How many requests are kept.
const REQUESTS_MAX: usize = 100_000;

/// A request, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number, counted from one.
    pub number: u64,
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers in their order; of secrets, only a [`fingerprint`].
    pub headers: Vec<(String, String)>,
    /// The exact body.
    pub body: String,
    /// The status that it was answered with; 0 until then.
    pub status: u16,
    /// Whether the whole answer was handed over; not so while it is under way, was cut off, or nobody
    /// was left to take it.
    pub completed: bool,
}

impl Recorded {
    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn as_json(&self) -> serde_json::Value {
        let headers: serde_json::Map<String, serde_json::Value> =
            self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "number": self.number, "method": self.method, "path": self.path, "headers": headers,
            "body": self.body, "status": self.status, "completed": self.completed,
        })
    }
}

/// Returns what stands for a secret in the record: enough to tell two of them apart, and no more.
#[must_use]
pub fn fingerprint(secret: &str) -> String {
    let digest = blake3::hash(secret.as_bytes()).to_hex();
    format!("redacted:{}", &digest[..8])
}

/// Returns the value of a header as it may be recorded.
pub(crate) fn recordable(name: &str, value: &str) -> String {
    let is_secret =
        ["authorization", "key", "cookie", "token", "secret"].iter().any(|word| name.contains(word));
    if is_secret { fingerprint(value.strip_prefix("Bearer ").unwrap_or(value)) } else { value.to_owned() }
}

/// Keeps what was sent.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    requests: VecDeque<Recorded>,
    bytes: usize,
    count: u64,
}

impl Recorder {
    /// Adds a request and returns its number.
    pub(crate) fn add(&self, mut recorded: Recorded) -> u64 {
        let mut kept = self.lock();
        kept.count += 1;
        recorded.number = kept.count;
        kept.bytes += recorded.body.len();
        kept.requests.push_back(recorded);
        while kept.bytes > BYTES_MAX || kept.requests.len() > REQUESTS_MAX {
            match kept.requests.pop_front() {
                Some(oldest) => kept.bytes -= oldest.body.len(),
                None => break,
            }
        }
        kept.count
    }

    /// Notes how a request was answered.
    pub(crate) fn answered(&self, number: u64, status: u16) {
        self.change(number, |recorded| recorded.status = status);
    }

    /// Notes that the whole answer was handed over.
    pub(crate) fn completed(&self, number: u64) {
        self.change(number, |recorded| recorded.completed = true);
    }

    /// Returns everything that is kept.
    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.lock().requests.iter().cloned().collect()
    }

    /// Returns everything that is kept, as JSON, a line for each request.
    pub(crate) fn lines(&self) -> String {
        self.all().iter().map(|recorded| format!("{}\n", recorded.as_json())).collect()
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Recorded)) {
        let mut kept = self.lock();
        // Numbers rise, and recent ones are asked for.
        if let Some(recorded) = kept.requests.iter_mut().rev().find(|recorded| recorded.number == number) {
            change(recorded);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
