//! Strategies: how tool history is shown to a backend (R02).

mod embed;

pub use embed::EmbedForm;

/// How tool history is shown to a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As tool calls and results, in place (R04).
    #[default]
    Native,
    /// As text in the user's role (R03), for backends that reject tool items in the history.
    TextEmbed(EmbedForm),
}

impl Strategy {
    /// Returns the name that users and logs know it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::TextEmbed(_) => "text-embed",
        }
    }
}
