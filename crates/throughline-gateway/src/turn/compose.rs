//! Compose: a second model writes the answer from what the tools gave (R13).
//!
//! It sees the whole conversation, raw results and the first model's words included, and all of that stays in the
//! record. What it is told comes last, as the developer's words: a backend that takes nothing but the user's behind an
//! answer is shown them so, and the record keeps whose they are.

use crate::config::Compose;
use throughline_core::ConversationId;
use throughline_wire::json::Writer;

/// What the words began with that told it what to do, when they stood in the user's role.
pub const TAG: &str = "<compose>";

impl Compose {
    /// Returns the request that asks for the answer.
    pub(super) fn body(&self, conversation: &ConversationId) -> String {
        let mut writer = Writer::new();
        writer.begin_object();
        if let Some(model) = &self.model {
            writer.field_str("model", model);
        }
        writer.field_str("conversation", conversation.as_str());
        writer.key("input");
        writer.begin_array();
        writer.begin_object();
        writer.field_str("type", "message");
        writer.field_str("role", "developer");
        writer.field_str("content", &self.guidance);
        writer.end_object();
        writer.end_array();
        if let Some(temperature) = &self.temperature {
            writer.field_raw("temperature", temperature);
        }
        if let Some(max_tokens) = self.max_tokens {
            writer.field_uint("max_output_tokens", max_tokens);
        }
        writer.field_bool("stream", true);
        writer.end_object();
        writer.into_string()
    }
}
