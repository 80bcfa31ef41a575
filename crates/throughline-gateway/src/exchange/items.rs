//! The ids of an answer's items, and which entry each of them stands for.
//!
//! A client may refer to an item later by the id that it was given. That id is the backend's, or one made here
//! when the answer was translated; either way it stands in the answer, so it is read from there.

use throughline_core::{Entry, Kind, Role, Text};
use throughline_wire::json::{Document, Node};

/// Returns for each entry the id of the item that shows it; nothing for one that no item shows.
///
/// Items and entries are in the same order, and an entry without an item is one that says nothing.
pub fn ids(answer: &str, entries: &[Entry]) -> Vec<Option<Text>> {
    let document = Document::parse(answer).ok();
    let output = document.as_ref().and_then(|document| document.root().field("output"));
    let mut items = output.into_iter().flat_map(Node::items).peekable();
    let id_of = |entry: &Entry| {
        let item = items.next_if(|item| shows(*item, entry))?;
        item.field("id")?.as_text()
    };
    entries.iter().map(id_of).collect()
}

fn shows(item: Node<'_>, entry: &Entry) -> bool {
    let is = |tag: &str| item.field("type").is_some_and(|kind| kind.is_str(tag));
    match &entry.kind {
        Kind::Said(said) => said.role == Role::Assistant && is("message"),
        Kind::Thought(_) => is("reasoning"),
        Kind::Called(call) => {
            let is_it = item.field("call_id").is_some_and(|id| id.is_str(&call.id));
            (is("function_call") || is("custom_tool_call")) && (is_it || call.id.is_empty())
        }
        Kind::Opaque { kind } => is(kind),
        Kind::Returned(_) | Kind::HandedOver(_) | Kind::Summarised(_) | Kind::Reference { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Input, Thought};

    #[test]
    fn an_entry_without_an_item_does_not_shift_the_others() {
        let call = |id: &'static str| {
            let input = Input::Arguments("{}".into());
            let id = Text::from_static(id);
            Entry::new(Kind::Called(Call { id, item_id: None, name: "f".into(), namespace: None, input }))
        };
        let entries = [
            Entry::new(Kind::Thought(Thought::default())),
            Entry::said(Role::Assistant, "hello"),
            call("a"),
            call("b"),
        ];
        let answer = r#"{"output":[{"type":"message","id":"msg_0"},
            {"type":"function_call","id":"fc_1","call_id":"a"},{"type":"function_call","id":"fc_2","call_id":"b"}]}"#;
        let expected = [None, Some("msg_0"), Some("fc_1"), Some("fc_2")].map(|id| id.map(Text::from));
        assert_eq!(ids(answer, &entries), expected);
        assert_eq!(ids("not JSON", &entries), [None, None, None, None]);
    }
}
