//! Small numbers that stand for core's enums in the columns that are searched by; part of the schema.

use throughline_core::{Dialect, Outcome, Role};

use crate::{DocumentKind, Field, KeptKind, Search, StoreError};

pub(crate) const fn dialect_tag(dialect: Dialect) -> i64 {
    match dialect {
        Dialect::Chat => 0,
        Dialect::Messages => 1,
        Dialect::Responses => 2,
    }
}

pub(crate) fn dialect(tag: i64) -> Result<Dialect, StoreError> {
    let all = Dialect::ALL.into_iter();
    find(all, tag, |dialect| dialect_tag(*dialect), "dialect")
}

pub(crate) const fn document_tag(kind: DocumentKind) -> i64 {
    match kind {
        DocumentKind::Sent => 0,
        DocumentKind::Received => 1,
        DocumentKind::Provenance => 2,
        DocumentKind::Report => 3,
    }
}

pub(crate) fn document_kind(tag: i64) -> Result<DocumentKind, StoreError> {
    find(DocumentKind::ALL.into_iter(), tag, |kind| document_tag(*kind), "kind of document")
}

pub(crate) const fn kind_tag(kind: KeptKind) -> i64 {
    match kind {
        KeptKind::Said(Role::System) => 0,
        KeptKind::Said(Role::Developer) => 1,
        KeptKind::Said(Role::User) => 2,
        KeptKind::Said(Role::Assistant) => 3,
        KeptKind::Thought => 4,
        KeptKind::Called => 5,
        KeptKind::Other => 6,
        KeptKind::Returned(Outcome::Ok) => 10,
        KeptKind::Returned(Outcome::Error) => 11,
        KeptKind::Returned(Outcome::Denied) => 12,
        KeptKind::Returned(Outcome::Interrupted) => 13,
        KeptKind::Returned(Outcome::Unknown) => 14,
    }
}

pub(crate) fn kind(tag: i64) -> Result<KeptKind, StoreError> {
    find(all_kinds(), tag, |kind| kind_tag(*kind), "kind")
}

/// Returns the tags of the entries that a search may find, by its field and by what only calls and results have; none for
/// all of them.
pub(crate) fn kinds(search: &Search) -> Option<Vec<i64>> {
    let is_of_calls = search.path.is_some() || search.command.is_some() || search.tool.is_some();
    if search.field.is_none() && !search.failed && !is_of_calls {
        return None;
    }
    let has_field = |kind: &KeptKind| match (search.field, kind) {
        (None, _) | (Some(Field::Talk | Field::Output), KeptKind::Other) => true,
        (Some(field), KeptKind::Said(_) | KeptKind::Thought) => field == Field::Talk,
        (Some(field), KeptKind::Called) => field == Field::Input,
        (Some(field), KeptKind::Returned(_)) => field == Field::Output,
        (Some(Field::Input), KeptKind::Other) => false,
    };
    // A command that failed may be a success of its tool, so what has failed is seen in the result itself.
    let has_outcome = |kind: &KeptKind| matches!(kind, KeptKind::Returned(_));
    let is_of_call = |kind: &KeptKind| has_outcome(kind) || *kind == KeptKind::Called;
    let fitting = all_kinds().filter(|kind| {
        has_field(kind) && (!search.failed || has_outcome(kind)) && (!is_of_calls || is_of_call(kind))
    });
    Some(fitting.map(kind_tag).collect())
}

fn all_kinds() -> impl Iterator<Item = KeptKind> {
    let roles = [Role::System, Role::Developer, Role::User, Role::Assistant].map(KeptKind::Said);
    let outcomes = [Outcome::Ok, Outcome::Error, Outcome::Denied, Outcome::Interrupted, Outcome::Unknown];
    roles
        .into_iter()
        .chain([KeptKind::Thought, KeptKind::Called, KeptKind::Other])
        .chain(outcomes.map(KeptKind::Returned))
}

fn find<T>(
    mut all: impl Iterator<Item = T>,
    tag: i64,
    tag_of: impl Fn(&T) -> i64,
    what: &str,
) -> Result<T, StoreError> {
    let found = all.find(|item| tag_of(item) == tag);
    found.ok_or_else(|| StoreError::Damaged(format!("there is no {what} {tag}")))
}
