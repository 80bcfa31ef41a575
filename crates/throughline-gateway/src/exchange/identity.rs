//! Which conversation a request belongs to, by what the client says of it.
//!
//! An explicit header comes first, then the names by which clients already tell their sessions apart; only a
//! request that says nothing is recognised by its beginning. Sub-agents run beside their parent under the
//! same session, so they count as conversations of their own.

use http::HeaderMap;
use throughline_core::{Ask, ConversationId, Entry, Kind, Side, Text};

/// The header by which a client names a conversation itself.
pub const CONVERSATION_HEADER: &str = "x-throughline-conversation";

/// The header by which a client says that a request is a question on the side, such as one for a title or a summary.
pub const SIDE_HEADER: &str = "x-throughline-side";

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
    /// By a name of the client's own, but it is a question on the side: it belongs to no conversation with the user.
    Side(Text),
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
    let named = text(CONVERSATION_HEADER).map(Text::from);
    if is_said_to_be_side(headers) {
        let beside = named.or_else(|| session(headers)).unwrap_or_default();
        return Claim::Side(format!("{beside}{SIDE}").into());
    }
    if let Some(id) = named {
        return Claim::Explicit(id);
    }
    if let Some(session) = session(headers).filter(|_| is_side_question(ask)) {
        return Claim::Side(format!("{session}{SIDE}").into());
    }
    let cache_key = || ask.settings.cache_key.as_ref().map(|key| Text::from(format!("cache-key:{key}")));
    session(headers).or_else(cache_key).map_or(Claim::Nothing, Claim::Key)
}

/// Returns the conversation beside which a client says that it asks: whoever answers there answers this as well.
#[must_use]
pub fn asked_beside(headers: &HeaderMap) -> Option<ConversationId> {
    let named = text(headers, CONVERSATION_HEADER).filter(|_| is_said_to_be_side(headers))?;
    Some(ConversationId::new(named))
}

fn is_said_to_be_side(headers: &HeaderMap) -> bool {
    text(headers, SIDE_HEADER) == Some("true")
}

/// What the key of a session's questions on the side ends with.
const SIDE: &str = "#side";

/// Says whether a request of an agent is a question on the side: what to call the session, whether there is any
/// quota left. Agents offer tools with all that belongs to their work, and go on from what was said; such a
/// question does neither.
fn is_side_question(ask: &Ask) -> bool {
    let offers = |entry: &Entry| matches!(&entry.kind, Kind::Opaque { kind } if kind.ends_with("_tools"));
    let goes_on = |entry: &Entry| entry.side() == Side::Assistant || entry.as_return().is_some();
    let leans = ask.previous.is_some() || ask.conversation.is_some();
    ask.tools.is_empty() && !leans && !ask.entries.iter().any(|entry| offers(entry) || goes_on(entry))
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
        check(&[("x-claude-code-session-id", "s")], WORK, &key("claude-code:s"));
        check(
            &[("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a")],
            WORK,
            &key("claude-code:s/a"),
        );
        check(&[("session-id", "s"), ("thread-id", "t")], WORK, &key("codex:t"));
        check(&[("x-session-id", "s")], WORK, &key("opencode:s"));
        check(&[], r#"{"prompt_cache_key":"k"}"#, &key("cache-key:k"));
        check(&[], "{}", &Claim::Nothing);
    }

    const WORK: &str = r#"{"input":"Fix it.","tools":[{"type":"function","name":"read","parameters":{}}]}"#;

    #[test]
    fn a_question_on_the_side_is_of_no_conversation() {
        let session = [("x-session-id", "s")];
        let side = Claim::Side("opencode:s#side".into());
        check(&session, r#"{"input":"Give this session a title: Fix it."}"#, &side);
        // What goes on from something, offers tools in an item, or comes from no agent is a conversation.
        let answered = r#"{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#;
        check(&session, answered, &key("opencode:s"));
        let offered = r#"{"input":[{"type":"additional_tools","tools":[]},{"role":"user","content":"a"}]}"#;
        check(&session, offered, &key("opencode:s"));
        check(&session, r#"{"input":"a","previous_response_id":"r"}"#, &key("opencode:s"));
        check(&[], r#"{"input":"a","prompt_cache_key":"k"}"#, &key("cache-key:k"));
    }

    #[test]
    fn a_client_can_say_that_a_question_is_on_the_side() {
        let named = [("x-throughline-conversation", "mine"), ("x-throughline-side", "true")];
        check(&named, WORK, &Claim::Side("mine#side".into()));
        let session = [("x-session-id", "s"), ("x-throughline-side", "true")];
        check(&session, WORK, &Claim::Side("opencode:s#side".into()));
        check(&[("x-throughline-side", "true")], WORK, &Claim::Side("#side".into()));
        let unsaid = [("x-throughline-conversation", "mine"), ("x-throughline-side", "false")];
        check(&unsaid, WORK, &Claim::Explicit("mine".into()));
    }

    #[test]
    fn our_own_header_comes_first() {
        let headers = [("x-throughline-conversation", "mine"), ("x-session-id", "s")];
        check(&headers, r#"{"prompt_cache_key":"k"}"#, &Claim::Explicit("mine".into()));
    }
}
