//! Text-embed: tool history as text in the user's role.

/// The two forms of text-embed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmbedForm {
    /// `Context (tool result):` and the result; the call is left out, so that models do not mimic it.
    #[default]
    Plain,
    /// Call and result behind HTML comments that name them.
    Comments,
}
