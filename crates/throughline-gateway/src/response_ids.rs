//! The ids of answers that are under way, each of which is one answer's alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_core::Text;

/// The ids of answers that are under way, and not in the history yet.
#[derive(Debug, Default)]
pub struct ResponseIds(Mutex<BTreeSet<Text>>);

/// An id that is one answer's for as long as that is under way.
#[derive(Debug)]
pub struct ClaimedId {
    ids: Arc<ResponseIds>,
    id: Text,
}

impl ResponseIds {
    /// Takes an id for an answer, unless another one under way has it.
    #[must_use]
    pub fn claim(self: &Arc<Self>, id: &Text) -> Option<ClaimedId> {
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        is_free.then(|| ClaimedId { ids: Arc::clone(self), id: id.clone() })
    }
}

impl Drop for ClaimedId {
    fn drop(&mut self) {
        self.ids.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_under_way_is_one_answers_alone() {
        let ids = Arc::new(ResponseIds::default());
        let id = Text::from_static("resp_1");
        let first = ids.claim(&id);
        assert!(first.is_some() && ids.claim(&id).is_none());
        drop(first);
        assert!(ids.claim(&id).is_some());
    }
}
