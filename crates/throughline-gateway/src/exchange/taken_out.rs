//! Items that a client took out of a conversation, one by one.
//!
//! The record keeps their entries. Which of them no backend is shown any more is a setting of the conversation.

use std::collections::BTreeSet;
use throughline_core::{ConversationId, Text};
use throughline_store::{Moment, Scope, Setting, Standing, Write};

/// The name under which the history keeps them.
const TAKEN_OUT: &str = "items_taken_out";

/// Returns the entries that were taken out of a conversation, by their ids.
#[must_use]
pub fn taken_out_items(standing: &Standing, conversation: &ConversationId) -> BTreeSet<Text> {
    let scope = Scope::Conversation(conversation.clone());
    let setting = standing.settings.iter().find(|it| it.scope == scope && it.name == TAKEN_OUT);
    let ids = setting.and_then(|setting| setting.value.as_deref()).unwrap_or_default();
    ids.split_whitespace().map(Text::from).collect()
}

/// Returns what is to be written to have those entries taken out.
#[must_use]
pub fn items_taken_out(conversation: &ConversationId, entries: &BTreeSet<Text>, at: Moment) -> Write {
    let ids: Vec<&str> = entries.iter().map(Text::as_str).collect();
    Write::Setting(Setting {
        scope: Scope::Conversation(conversation.clone()),
        name: Text::from_static(TAKEN_OUT),
        value: Some(Text::from(ids.join(" "))),
        at,
    })
}
