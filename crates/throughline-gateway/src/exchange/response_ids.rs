//! The ids by which clients refer to answers: none ever stands for two.
//!
//! An answer that is forwarded keeps the id that the backend gave it, unless that id could be taken for another
//! answer's: one that the history has, one that is under way, or nothing that an id can be. Then it is shown under an
//! id of ours. Otherwise a client that goes on from its answer could find itself in somebody else's conversation.

use super::Running;
use super::deliver::response_id;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_core::{Dialect, Text};
use throughline_store::Exchanges;

/// The longest id of a backend that is shown. Gateways that keep their state in it have long ones.
const LENGTH_MAX: usize = 1024;

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
    fn claim(self: &Arc<Self>, id: &Text) -> Option<ClaimedId> {
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        is_free.then(|| ClaimedId { ids: Arc::clone(self), id: id.clone() })
    }
}

impl Drop for ClaimedId {
    fn drop(&mut self) {
        self.ids.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Running {
    /// Decides whether an answer that is forwarded is shown under the id that the backend gave it, if any; if not, it is
    /// shown under ours.
    pub(super) async fn keeps_id(&mut self, id: Option<&Text>) -> bool {
        if self.ask.dialect != Dialect::Responses {
            return true;
        }
        let keeps = match id {
            Some(id) => is_usable(id) && self.is_free(id).await,
            None => false,
        };
        if !keeps && id.is_some() {
            tracing::warn!(
                request = self.recorder.id().as_str(),
                "the backend gave an answer an id that is another's or none; it is shown under our own"
            );
        }
        self.has_own_id = !keeps;
        keeps
    }

    /// Returns the id of ours for the answer.
    pub(super) fn own_id(&self) -> Text {
        Text::from(response_id(&self.stamp.id))
    }

    async fn is_free(&mut self, id: &Text) -> bool {
        self.claimed = self.gateway.response_ids.claim(id);
        if self.claimed.is_none() {
            return false;
        }
        // A history that cannot be asked may have it.
        let known = self.gateway.history.exchanges(Exchanges::Response(id.clone())).await;
        known.is_ok_and(|known| known.items.is_empty())
    }
}

/// Says whether something can be an id: it stands in addresses, in logs, and beside ids of other things.
fn is_usable(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !br#"/\?#%"<>:"#.contains(&byte);
    !id.is_empty() && id.len() <= LENGTH_MAX && id.bytes().all(plain)
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

    #[test]
    fn what_is_no_id_is_not_shown_as_one() {
        for id in ["resp_68af0c", "resp_bGl0ZWxsbTo=", "01J8-x.y~z"] {
            assert!(is_usable(id), "{id}");
        }
        let long = "x".repeat(LENGTH_MAX + 1);
        for id in ["", "conversation:conv_1", "../resp_1", "a b", "a\u{1b}[2J", "é", long.as_str()] {
            assert!(!is_usable(id), "{id:?}");
        }
    }
}
