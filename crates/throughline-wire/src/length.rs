//! How long a request will be, before it is written.

use throughline_core::{Dialect, Prompt};

/// Returns how many bytes the request of a prompt will have, or somewhat more: as many as came, and where the
/// dialect changes, some for what is written at greater length.
pub(crate) fn expected_length(prompt: &Prompt<'_>) -> usize {
    let came: usize = prompt.ask.fields.iter().map(|field| field.name.len() + field.value.len() + 4).sum();
    let longer = match prompt.rules.dialect {
        _ if prompt.stays_in_dialect() => 0,
        // Arguments are no strings here, and lose their escapes.
        Dialect::Messages => came / 32,
        Dialect::Chat | Dialect::Responses => came / 16,
    };
    came + longer + 512
}
