//! Requests that are not the point of a target but are needed by it.

use throughline_core::{Ask, Dialect, Entry, Settings};

/// Returns a request in that dialect with nothing but a history.
pub fn with_entries(dialect: Dialect, entries: Vec<Entry>) -> Ask {
    Ask {
        dialect,
        model: Some("m".into()),
        entries,
        tools: Vec::new(),
        tool_choice: None,
        settings: Settings::default(),
        stream: true,
        previous: None,
        conversation: None,
        fields: Vec::new(),
        extras: Vec::new(),
    }
}
