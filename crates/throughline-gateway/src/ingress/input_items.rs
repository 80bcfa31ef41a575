//! What a stored response was given, item by item, from the history.
//!
//! That is everything the model was shown of the conversation, earlier answers included, but not the
//! instructions, which are no item. An item that came without an id gets one that follows from its entry, so
//! it is the same on every page and for every response of the branch.

use super::Ingress;
use super::stored::{stored, unreadable};
use crate::failure::gateway_error;
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::{Entry, EntryId, Failure, FailureKind, Kind, Text};
use throughline_store::{Entries, Kept};
use throughline_wire::json::Writer;
use throughline_wire::{ListedItem, encode_items, listed_item};

const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;

/// Which items are wanted.
struct Wanted {
    limit: usize,
    ascending: bool,
    after: Option<Text>,
}

/// Returns a page of the items that a response was given.
///
/// # Errors
/// When there is no such response, a parameter is wrong, or the history cannot be read.
pub async fn page(
    ingress: &Ingress,
    id: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<String, Failure> {
    let exchange = stored(ingress, id).await?;
    page_behind(ingress, exchange.before, parameters, &BTreeSet::new()).await
}

/// Returns one item among those up to and including an entry, with the entry that it is.
///
/// # Errors
/// When the history cannot be read.
pub async fn one_behind(
    ingress: &Ingress,
    last: Option<EntryId>,
    id: &str,
    without: &BTreeSet<Text>,
) -> Result<Option<(Text, String)>, Failure> {
    let Some(last) = last else { return Ok(None) };
    let kept = ingress.gateway.history.entries(Entries::Branch(last)).await;
    let items = items_of(&kept.map_err(|error| unreadable(&error))?).into_iter();
    let mut wanted = items.filter(|item| item.id == *id && !without.contains(&item.entry));
    Ok(wanted.next().map(|item| (item.entry, item.json)))
}

/// Returns a page of the items up to and including that entry, without those entries.
///
/// # Errors
/// When a parameter is wrong, or the history cannot be read.
pub async fn page_behind(
    ingress: &Ingress,
    last: Option<EntryId>,
    parameters: &BTreeMap<String, String>,
    without: &BTreeSet<Text>,
) -> Result<String, Failure> {
    let wanted = Wanted::read(parameters)?;
    let kept = match last {
        Some(last) => ingress.gateway.history.entries(Entries::Branch(last)).await,
        None => Ok(Vec::new()),
    };
    let mut items = items_of(&kept.map_err(|error| unreadable(&error))?);
    items.retain(|item| !without.contains(&item.entry));
    if !wanted.ascending {
        items.reverse();
    }
    let start = match &wanted.after {
        Some(after) => behind(&items, after)?,
        None => 0,
    };
    let end = items.len().min(start + wanted.limit);
    Ok(listed(&items[start..end], end < items.len()))
}

impl Wanted {
    fn read(parameters: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let limit = match parameters.get("limit") {
            Some(limit) => limit.parse().ok().filter(|limit| *limit <= LIMIT_MAX),
            None => Some(LIMIT),
        };
        let ascending = match parameters.get("order").map(String::as_str) {
            None | Some("desc") => Some(false),
            Some("asc") => Some(true),
            Some(_) => None,
        };
        Ok(Self {
            limit: limit.ok_or_else(|| bad("limit", "must be a whole number from 0 to 100"))?,
            ascending: ascending.ok_or_else(|| bad("order", "must be `asc` or `desc`"))?,
            after: parameters.get("after").map(|after| Text::from(after.as_str())),
        })
    }
}

/// Returns entries that have just been kept, under these ids, as a list of items.
#[must_use]
pub fn list_of(entries: &[Entry], ids: &[EntryId]) -> String {
    let written = encode_items(entries).into_iter().zip(ids);
    let item = |(json, id): (Option<String>, &EntryId)| listed_item(&json?, id.as_str()).ok();
    let items: Vec<ListedItem> = written.filter_map(item).collect();
    listed(&items, false)
}

fn items_of(kept: &[Kept]) -> Vec<ListedItem> {
    let is_standing = |kept: &Kept| matches!(&kept.entry.kind, Kind::Said(said) if said.standing);
    let kept: Vec<&Kept> = kept.iter().filter(|kept| !is_standing(kept) && !kept.entry.is_hidden()).collect();
    let written = encode_items(kept.iter().map(|kept| &kept.entry));
    let both = kept.into_iter().zip(written);
    both.filter_map(|(kept, json)| listed_item(&json?, kept.id.as_str()).ok()).collect()
}

fn behind(items: &[ListedItem], after: &Text) -> Result<usize, Failure> {
    let at = items.iter().position(|item| item.id == *after);
    at.map(|at| at + 1).ok_or_else(|| bad("after", "no item of this response has that id"))
}

fn listed(items: &[ListedItem], has_more: bool) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("object", "list");
    writer.key("data");
    writer.begin_array();
    items.iter().for_each(|item| writer.raw(&item.json));
    writer.end_array();
    for (name, item) in [("first_id", items.first()), ("last_id", items.last())] {
        match item {
            Some(item) => writer.field_str(name, &item.id),
            None => writer.field_null(name),
        }
    }
    writer.field_bool("has_more", has_more);
    writer.end_object();
    writer.into_string()
}

fn bad(parameter: &'static str, problem: &str) -> Failure {
    Failure {
        param: Some(Text::from_static(parameter)),
        ..gateway_error(
            FailureKind::InvalidRequest,
            "throughline_invalid_request",
            format!("{parameter}: {problem}"),
        )
    }
}
