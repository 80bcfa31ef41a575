//! The ids by which clients refer to answers: none ever stands for two.
//!
//! An answer that is forwarded keeps the id that the backend gave it, unless that id could be taken for another
//! answer's: one that the history has, one that is under way, or nothing that an id can be. Then it is shown under an
//! id of ours. Otherwise a client that goes on from its answer could find itself in somebody else's conversation.

use super::Running;
use throughline_core::{Dialect, Text};
use throughline_store::Exchanges;

/// The longest id of a backend that is shown. Gateways that keep their state in it have long ones.
const LENGTH_MAX: usize = 1024;

/// Returns the id of an answer that has none of the backend's.
pub(super) fn response_id(exchange: &str) -> String {
    format!("resp_{exchange}")
}

impl Running {
    /// Decides whether an answer that is forwarded is shown under the id that the backend gave it, if any; if not, it is
    /// shown under ours.
    pub(super) async fn keeps_id(&mut self, id: Option<&Text>) -> bool {
        if self.ask.dialect != Dialect::Responses {
            return true;
        }
        // The client may have seen it.
        if let Some(keeps) = self.keeps_backend_id {
            return keeps;
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
        self.keeps_backend_id = Some(keeps);
        keeps
    }

    /// Says whether an answer that is forwarded is shown under an id of ours.
    pub(super) fn has_own_id(&self) -> bool {
        self.keeps_backend_id == Some(false)
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
