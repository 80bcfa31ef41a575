//! Which tools an answer may call, by what the client allowed.
//!
//! A client may show the model more tools than it lets it call. Backends take that as a hint at best, and other
//! dialects have no word for it, so what comes back is held against it: a call that was not allowed is not passed
//! on. The answer fails instead, and says which call it was, because an answer with the call taken out would look
//! like one in which the model had nothing to do.

use crate::failure::gateway_error;
use throughline_core::{Ask, Dialect, Failure, FailureKind, Reply, Text, ToolChoice};

/// The code of an answer that calls what it may not.
const CODE: &str = "throughline_tool_not_allowed";

/// Which tools an answer may call.
#[derive(Clone, Debug, Default)]
pub enum Permit {
    /// Any.
    #[default]
    Any,
    /// These.
    Only(Vec<Text>),
}

impl Permit {
    /// Returns what a request allows.
    ///
    /// That no tool be called is a demand of one dialect; in the others it is the backend's to keep.
    #[must_use]
    pub fn of(ask: &Ask) -> Self {
        match &ask.tool_choice {
            Some(ToolChoice::Allowed { names, .. }) => Self::Only(names.clone()),
            Some(ToolChoice::None) if ask.dialect == Dialect::Responses => Self::Only(Vec::new()),
            _ => Self::Any,
        }
    }

    /// Returns what is wrong with a call of that tool, if anything is.
    #[must_use]
    pub fn refusal(&self, tool: &str) -> Option<Failure> {
        match self {
            Self::Only(names) if !names.iter().any(|name| name == tool) => {
                let message = format!("the model called `{tool}`, which `tool_choice` does not allow");
                let param = Some(Text::from_static("tool_choice"));
                Some(Failure { param, ..gateway_error(FailureKind::Backend, CODE, message) })
            }
            _ => None,
        }
    }

    /// Returns what is wrong with a whole answer, if anything is.
    #[must_use]
    pub fn refusal_of(&self, reply: &Reply) -> Option<Failure> {
        reply.entries.iter().filter_map(|entry| entry.as_call()).find_map(|call| self.refusal(&call.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_wire::decode_request;

    #[test]
    fn what_is_allowed_follows_from_the_choice() {
        let permit = |dialect, body: &str| Permit::of(&decode_request(dialect, body).unwrap());
        let allowed = r#"{"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"a"}]}}"#;
        let some = permit(Dialect::Responses, allowed);
        assert!(some.refusal("a").is_none());
        assert!(some.refusal("b").is_some_and(|failure| failure.message.contains("`b`")));
        let none = permit(Dialect::Responses, r#"{"tool_choice":"none"}"#);
        assert!(none.refusal("a").is_some());
        for body in ["{}", r#"{"tool_choice":"auto"}"#, r#"{"tool_choice":{"type":"function","name":"a"}}"#] {
            assert!(permit(Dialect::Responses, body).refusal("b").is_none(), "{body}");
        }
    }
}
