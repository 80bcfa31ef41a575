//! Places in a request, as the people who wrote it would name them.

use throughline_core::{Dialect, Place, Subject};

/// Returns the path of a change's subject in a request of that dialect.
#[must_use]
pub fn path(dialect: Dialect, subject: &Subject) -> String {
    match subject {
        Subject::Field(name) => name.to_string(),
        Subject::Tool(name) => format!("tools[{name}]"),
        Subject::Entry(None) => list(dialect).to_owned(),
        Subject::Entry(Some(place)) => path_of_entry(dialect, *place),
    }
}

const fn list(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
    }
}

fn path_of_entry(dialect: Dialect, place: Place) -> String {
    let message = format!("{}[{}]", list(dialect), place.message);
    match (dialect, place.block) {
        (_, None) => message,
        (Dialect::Chat, Some(block)) => format!("{message}.tool_calls[{block}]"),
        (Dialect::Messages | Dialect::Responses, Some(block)) => format!("{message}.content[{block}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_as_in_the_request() {
        let entry = Subject::Entry(Some(Place { message: 3, block: Some(1) }));
        assert_eq!(path(Dialect::Chat, &entry), "messages[3].tool_calls[1]");
        assert_eq!(path(Dialect::Messages, &entry), "messages[3].content[1]");
        let item = Subject::Entry(Some(Place { message: 3, block: None }));
        assert_eq!(path(Dialect::Responses, &item), "input[3]");
    }
}
