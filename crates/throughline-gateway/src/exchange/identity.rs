//! Which conversation a request belongs to, by what the client says of it.
//!
//! An explicit header comes first, then the names by which clients already tell their sessions apart; only a
//! request that says nothing is recognised by its beginning. Sub-agents run beside their parent under the
//! same session, so they count as conversations of their own.

use http::HeaderMap;
use throughline_core::{Ask, Text};

/// The header by which a client names a conversation itself.
pub const CONVERSATION_HEADER: &str = "x-throughline-conversation";

/// Returns the mark under which the history keeps what a client says about a conversation as such.
#[must_use]
pub fn conversation_mark(id: &str) -> Text {
    Text::from(format!("conversation:{id}"))
}

/// How a request says which conversation it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// By an id of ours.
    Explicit(Text),
    /// By a name of the client's own, unique among all clients.
    Key(Text),
    /// By a compaction of it.
    Compacted(Text),
    /// Not at all.
    Nothing,
}

/// Headers in which clients name their sessions, with the header that tells sub-agents apart.
const SESSIONS: [(&str, &str, Option<&str>); 5] = [
    ("claude-code", "x-claude-code-session-id", Some("x-claude-code-agent-id")),
    ("codex", "thread-id", None),
    ("codex", "session-id", Some("x-openai-subagent")),
    ("opencode", "x-session-id", None),
    ("pi", "session_id", None),
];

/// Returns what the request says about its conversation.
#[must_use]
pub fn claim(headers: &HeaderMap, ask: &Ask) -> Claim {
    let text = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
    };
    if let Some(id) = text(CONVERSATION_HEADER) {
        return Claim::Explicit(id.into());
    }
    let cache_key = || ask.settings.cache_key.as_ref().map(|key| Text::from(format!("cache-key:{key}")));
    session(headers).or_else(cache_key).map_or(Claim::Nothing, Claim::Key)
}

/// Returns the session that the headers of a request name.
#[must_use]
pub fn session(headers: &HeaderMap) -> Option<Text> {
    let text = |name: &str| text(headers, name);
    SESSIONS.iter().find_map(|(client, session, agent)| {
        let session = text(session)?;
        let agent = agent.and_then(text).map(|agent| format!("/{agent}")).unwrap_or_default();
        Some(Text::from(format!("{client}:{session}{agent}")))
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Dialect;
    use throughline_wire::decode_request;

    fn check(headers: &[(&'static str, &str)], body: &str, expected: &Claim) {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let ask = decode_request(Dialect::Responses, body).unwrap();
        assert_eq!(&claim(&headers, &ask), expected);
    }

    fn key(key: &str) -> Claim {
        Claim::Key(key.into())
    }

    #[test]
    fn the_clients_own_names_are_understood() {
        check(&[("x-claude-code-session-id", "s")], "{}", &key("claude-code:s"));
        check(
            &[("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a")],
            "{}",
            &key("claude-code:s/a"),
        );
        check(&[("session-id", "s"), ("thread-id", "t")], "{}", &key("codex:t"));
        check(&[("x-session-id", "s")], "{}", &key("opencode:s"));
        check(&[], r#"{"prompt_cache_key":"k"}"#, &key("cache-key:k"));
        check(&[], "{}", &Claim::Nothing);
    }

    #[test]
    fn our_own_header_comes_first() {
        let headers = [("x-throughline-conversation", "mine"), ("x-session-id", "s")];
        check(&headers, r#"{"prompt_cache_key":"k"}"#, &Claim::Explicit("mine".into()));
    }
}
