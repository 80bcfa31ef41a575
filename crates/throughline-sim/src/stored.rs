//! Responses that are kept, so that a later request can go on from them.

use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// How many responses are kept; the oldest are forgotten.
const RESPONSES_MAX: usize = 4096;

/// The responses that are kept.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    responses: BTreeMap<String, StoredResponse>,
    order: VecDeque<String>,
}

/// A response, and everything that was said up to it.
#[derive(Clone, Debug)]
pub(crate) struct StoredResponse {
    /// The response object as it was sent.
    pub(crate) body: String,
    /// The items that it was given, those of earlier responses included.
    pub(crate) input: Vec<Value>,
    /// The items of its output.
    pub(crate) output: Vec<Value>,
}

impl Stored {
    pub(crate) fn insert(&mut self, id: String, response: StoredResponse) {
        if self.responses.insert(id.clone(), response).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > RESPONSES_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.responses.remove(&oldest);
            }
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&StoredResponse> {
        self.responses.get(id)
    }

    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.order.retain(|known| known != id);
        self.responses.remove(id).is_some()
    }

    /// Returns an item that some response holds, by its id.
    pub(crate) fn item(&self, id: &str) -> Option<&Value> {
        let is_wanted = |item: &&Value| item.get("id").and_then(Value::as_str) == Some(id);
        self.responses
            .values()
            .find_map(|response| response.output.iter().chain(&response.input).find(is_wanted))
    }
}
