//! Small numbers that stand for core's enums in the columns that are searched by; part of the schema.

use throughline_core::{Dialect, Outcome, Role};

use crate::{KeptKind, StoreError};

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

/// From here on, kinds are results; those above are failures.
pub(crate) const RETURNED_OK: i64 = 10;

pub(crate) const fn kind_tag(kind: KeptKind) -> i64 {
    match kind {
        KeptKind::Said(Role::System) => 0,
        KeptKind::Said(Role::Developer) => 1,
        KeptKind::Said(Role::User) => 2,
        KeptKind::Said(Role::Assistant) => 3,
        KeptKind::Thought => 4,
        KeptKind::Called => 5,
        KeptKind::Other => 6,
        KeptKind::Returned(Outcome::Ok) => RETURNED_OK,
        KeptKind::Returned(Outcome::Error) => 11,
        KeptKind::Returned(Outcome::Denied) => 12,
        KeptKind::Returned(Outcome::Interrupted) => 13,
        KeptKind::Returned(Outcome::Unknown) => 14,
    }
}

pub(crate) fn kind(tag: i64) -> Result<KeptKind, StoreError> {
    let roles = [Role::System, Role::Developer, Role::User, Role::Assistant].map(KeptKind::Said);
    let outcomes = [Outcome::Ok, Outcome::Error, Outcome::Denied, Outcome::Interrupted, Outcome::Unknown];
    let all = roles
        .into_iter()
        .chain([KeptKind::Thought, KeptKind::Called, KeptKind::Other])
        .chain(outcomes.map(KeptKind::Returned));
    find(all, tag, |kind| kind_tag(*kind), "kind")
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
