//! Why a request may have no place in the history.

use throughline_core::Text;
use throughline_store::StoreError;

/// Why a request has no place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It continues an answer that nobody remembers.
    #[error("no response is called `{0}`, or it was not to be stored")]
    NoSuchResponse(Text),
    /// It continues an answer that is still generated in the background.
    #[error("the response `{0}` has not ended; wait until it has, or cancel it")]
    Unfinished(Text),
    /// It continues a conversation that nobody remembers.
    #[error("no conversation is called `{0}`")]
    NoSuchConversation(Text),
    /// It continues both an answer and a conversation.
    #[error("`conversation` and `previous_response_id` both say what is continued; give one of them")]
    TwoPasts,
    /// It brings a result of a call that is not in what it continues.
    #[error("No tool call found for function call output with call_id {call_id}.")]
    NoSuchCall {
        /// Which item of the input.
        item: u32,
        /// The id of the call.
        call_id: Text,
    },
    /// It refers to an item that nobody remembers.
    #[error("no item is called `{0}`")]
    NoSuchItem(Text),
    /// The history could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}
