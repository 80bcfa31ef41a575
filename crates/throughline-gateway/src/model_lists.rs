//! The models that backends list, as far as they were asked.

use crate::routing::Listings;
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::Text;
use throughline_store::Moment;

/// What came of asking a backend for its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelList {
    /// When it was asked.
    pub asked: Moment,
    /// What it lists; none if it did not answer, or has no listing.
    pub models: Option<BTreeSet<Text>>,
    /// How many tokens fit into the windows of those models of which it says so.
    pub windows: BTreeMap<Text, u64>,
}

/// What came of asking each backend.
pub type ModelLists = BTreeMap<Text, ModelList>;

/// Returns the names alone, for routing.
#[must_use]
pub fn names(listed: &ModelLists) -> Listings {
    let of = |(backend, listing): (&Text, &ModelList)| Some((backend.clone(), listing.models.clone()?));
    listed.iter().filter_map(of).collect()
}
