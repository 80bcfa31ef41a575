//! Entries for the tests of the planner.

use crate::{Call, Entry, Input, Kind, Outcome, Part, Return, Role};

pub(super) fn user(text: &str) -> Entry {
    Entry::said(Role::User, text)
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Entry {
    Entry::new(Kind::Called(Call {
        id: id.into(),
        item_id: None,
        name: name.into(),
        namespace: None,
        input: Input::Arguments(arguments.into()),
    }))
}

pub(super) fn result(id: &str, text: &str) -> Entry {
    settled(id, text, Outcome::Ok)
}

pub(super) fn settled(id: &str, text: &str, outcome: Outcome) -> Entry {
    Entry::new(Kind::Returned(Return {
        call_id: Some(id.into()),
        item_id: None,
        name: None,
        parts: vec![Part::text(text)],
        outcome,
        freeform: false,
    }))
}

pub(super) fn thought(text: &str) -> Entry {
    Entry::new(Kind::Thought(crate::Thought {
        content: vec![text.into()],
        seal: Some(crate::Seal::Signature("sealed".into())),
        ..crate::Thought::default()
    }))
}
