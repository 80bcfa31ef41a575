//! Ids of our own: newtypes around text that is minted outside, where randomness and clocks are.

use crate::Text;
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Text);

        impl $name {
            /// Wraps an id that was minted elsewhere.
            pub fn new(id: impl Into<Text>) -> Self {
                Self(id.into())
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// Names a conversation.
    ConversationId
}

id! {
    /// Names an entry of a conversation.
    EntryId
}
