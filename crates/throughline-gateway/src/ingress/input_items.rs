//! What a stored response was given, item by item, from the history.
//!
//! That is everything the model was shown of the conversation, earlier answers included, but not the
//! instructions, which are no item. An item that came without an id gets one that follows from its entry, so
//! it is the same on every page and for every response of the branch.

use super::Ingress;
use super::reject::own;
use super::responses::{stored, unreadable};
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::{Entry, EntryId, Failure, FailureKind, Kind, Text};
use throughline_store::{Entries, Kept};
use throughline_wire::encode_items;
use throughline_wire::json::{Document, Edit, Node, SyntaxError, Writer, patch, quote};

const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;

/// Types of items, and what their ids begin with.
const PREFIXES: [(&str, &str); 6] = [
    ("message", "msg"),
    ("reasoning", "rs"),
    ("function_call", "fc"),
    ("function_call_output", "fco"),
    ("custom_tool_call", "ctc"),
    ("custom_tool_call_output", "ctco"),
];

/// An item with its id.
struct Item {
    id: Text,
    json: String,
    /// The entry that it is.
    entry: Text,
}

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
    let item = |(json, id): (Option<String>, &EntryId)| completed(&json?, id.as_str()).ok();
    let items: Vec<Item> = written.filter_map(item).collect();
    listed(&items, false)
}

/// Returns entries as items with everything that clients expect of one; `stamp` tells their ids from others.
#[must_use]
pub fn written(entries: &[&Entry], stamp: &str) -> Vec<String> {
    let items = encode_items(entries.iter().copied()).into_iter().zip(0..);
    let item = |(json, at): (Option<String>, u32)| completed(&json?, &format!("{stamp}_{at}")).ok();
    items.filter_map(item).map(|item| item.json).collect()
}

fn items_of(kept: &[Kept]) -> Vec<Item> {
    let is_standing = |kept: &Kept| matches!(&kept.entry.kind, Kind::Said(said) if said.standing);
    let kept: Vec<&Kept> = kept.iter().filter(|kept| !is_standing(kept) && !kept.entry.is_hidden()).collect();
    let written = encode_items(kept.iter().map(|kept| &kept.entry));
    let both = kept.into_iter().zip(written);
    both.filter_map(|(kept, json)| completed(&json?, kept.id.as_str()).ok()).collect()
}

/// Returns an item with what clients expect of it and may leave out themselves.
fn completed(json: &str, entry: &str) -> Result<Item, SyntaxError> {
    let document = Document::parse(json)?;
    let root = document.root();
    let text = |name: &str| root.field(name).and_then(|value| value.as_text());
    let kind = text("type").unwrap_or(Text::from_static("message"));
    let prefix = PREFIXES.iter().find(|(name, _)| kind == *name).map_or("item", |(_, prefix)| prefix);
    let id = text("id").unwrap_or_else(|| Text::from(format!("{prefix}_{entry}")));
    let status = text("status").unwrap_or(Text::from_static("completed"));
    let (kind, quoted, status) = (quote(&kind), quote(&id), quote(&status));
    let content = root.field("content").and_then(|content| parts(root, content));
    let mut edits = vec![
        Edit::Set { name: "type", value: &kind },
        Edit::Set { name: "id", value: &quoted },
        Edit::Set { name: "status", value: &status },
    ];
    edits.extend(content.as_deref().map(|value| Edit::Set { name: "content", value }));
    Ok(Item { json: patch(json, &edits)?, id, entry: Text::from(entry) })
}

/// Returns content that is a plain string as the list of parts that it stands for.
fn parts(item: Node<'_>, content: Node<'_>) -> Option<String> {
    let text = content.as_str()?;
    let is_output = item.field("role").is_some_and(|role| role.is_str("assistant"));
    let mut writer = Writer::with_capacity(text.len() + 64);
    writer.begin_array();
    writer.begin_object();
    writer.field_str("type", if is_output { "output_text" } else { "input_text" });
    writer.field_str("text", &text);
    if is_output {
        writer.field_raw("annotations", "[]");
    }
    writer.end_object();
    writer.end_array();
    Some(writer.into_string())
}

fn behind(items: &[Item], after: &Text) -> Result<usize, Failure> {
    let at = items.iter().position(|item| item.id == *after);
    at.map(|at| at + 1).ok_or_else(|| bad("after", "no item of this response has that id"))
}

fn listed(items: &[Item], has_more: bool) -> String {
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
        ..own(FailureKind::InvalidRequest, "throughline_invalid_request", format!("{parameter}: {problem}"))
    }
}
