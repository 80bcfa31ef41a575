//! Repairs that a backend's refusals have taught, for the rest of a conversation (R41).
//!
//! They are a setting of the conversation, one for each backend, so they outlive the gateway and hold for others.

use crate::capability::{Repair, Repairs};
use std::borrow::Cow;
use throughline_core::{
    Charset, ConversationId, Dialect, Entry, Kind, NameRule, Rules, Seal, Text, Wording, without_reasoning,
};
use throughline_models::Traits;
use throughline_store::{Moment, Scope, Setting, Standing, Write};

/// What the names of the settings begin with; the name of the backend follows.
const PREFIX: &str = "repairs/";

/// Ids of calls that every server takes.
const PLAIN_IDS: NameRule = NameRule { min: 1, max: 40, charset: Charset::Word };

/// Returns the repairs that a conversation needs at a backend.
pub fn repairs(standing: &Standing, conversation: &ConversationId, backend: &str) -> Repairs {
    let is_it = |setting: &&Setting| {
        setting.name.strip_prefix(PREFIX) == Some(backend)
            && matches!(&setting.scope, Scope::Conversation(id) if id == conversation)
    };
    let setting = standing.settings.iter().find(is_it);
    setting.and_then(|setting| setting.value.as_deref()).map_or(Repairs::NONE, Repairs::from_names)
}

/// Returns what is to be written to keep them.
pub fn keep(conversation: &ConversationId, backend: &str, repairs: Repairs, at: Moment) -> Write {
    Write::Setting(Setting {
        scope: Scope::Conversation(conversation.clone()),
        name: Text::from(format!("{PREFIX}{backend}")),
        value: Some(Text::from(repairs.names())),
        at,
    })
}

/// Returns the rules of a backend as its refusals have shown them to be, and as its model is known to want them.
pub fn repaired_rules(rules: &Rules, repairs: Repairs, traits: Option<Traits>) -> Cow<'_, Rules> {
    let mut repaired = Cow::Borrowed(rules);
    let refuses_prefill = traits.is_some_and(|traits| traits.refuses_prefill);
    if rules.assistant_last && (refuses_prefill || repairs.has(Repair::EndWithUser)) {
        repaired.to_mut().assistant_last = false;
    }
    if repairs.has(Repair::ShortenIds) {
        repaired.to_mut().call_id = PLAIN_IDS;
        repaired.to_mut().unique_call_ids = true;
    }
    if repairs.has(Repair::PlainMessages) {
        repaired.to_mut().own_extensions = false;
        if rules.dialect == Dialect::Chat && rules.wording == Wording::Own {
            repaired.to_mut().wording = Wording::Common;
        }
    }
    repaired
}

/// Returns a history without what a backend has refused of it.
pub fn repaired_entries(entries: Vec<Entry>, repairs: Repairs) -> Vec<Entry> {
    let mut entries = entries;
    if repairs.has(Repair::DropReasoning) {
        entries = without_reasoning(entries);
    }
    if repairs.has(Repair::DropItemIds) {
        entries.retain(|entry| !leans_on_its_id(entry));
        for entry in &mut entries {
            let is_opaque = matches!(entry.kind, Kind::Opaque { .. } | Kind::Reference { .. });
            let has_wire = entry.wire.as_ref().is_some_and(|wire| wire.dialect == Dialect::Responses);
            entry.intact &= is_opaque || !has_wire;
        }
    }
    entries
}

/// Says whether an entry is nothing without the id that its provider gave it.
fn leans_on_its_id(entry: &Entry) -> bool {
    match &entry.kind {
        Kind::Reference { .. } => true,
        Kind::Thought(thought) => {
            thought.item_id.is_some() && !matches!(&thought.seal, Some(Seal::Encrypted(_)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Thought, Wire};

    #[test]
    fn repairs_are_kept_for_a_conversation_and_a_backend() {
        let conversation = ConversationId::new("conv");
        let set = Repairs::NONE.with(Repair::DropReasoning);
        let Write::Setting(setting) = keep(&conversation, "one", set, Moment(1)) else { panic!("a setting") };
        let standing = Standing { settings: vec![setting], ..Standing::default() };
        assert_eq!(repairs(&standing, &conversation, "one"), set);
        assert_eq!(repairs(&standing, &conversation, "two"), Repairs::NONE);
        assert_eq!(repairs(&standing, &ConversationId::new("other"), "one"), Repairs::NONE);
    }

    #[test]
    fn reasoning_that_is_only_an_id_goes_with_the_ids() {
        let thought = |seal| {
            let thought = Thought { item_id: Some("rs_1".into()), seal, ..Thought::default() };
            let wire = Wire { dialect: Dialect::Responses, text: "{}".into(), extras: Vec::new() };
            Entry { wire: Some(wire), ..Entry::new(Kind::Thought(thought)) }
        };
        let entries = vec![thought(None), thought(Some(Seal::Encrypted("x".into())))];
        let left = repaired_entries(entries, Repairs::NONE.with(Repair::DropItemIds));
        assert_eq!((left.len(), left[0].intact), (1, false));
    }
}
