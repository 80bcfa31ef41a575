//! What is known about each pair of a history, for whoever tells it as text (R17).
//!
//! The brief of a handover deduplicates by the same rules as the planner shortens: this is the door to them.

use super::arguments;
use super::superseded::relations;
use super::survey::Survey;
use super::{Handle, Tokens, ToolKind, ToolRules};
use crate::{Call, Entry, Input};
use std::ops::Range;

/// A call with its result, or a result alone; entries are named by their index.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub call: Option<usize>,
    pub result: Option<usize>,
    pub kind: ToolKind,
    /// The file, the command or the query.
    pub key: Option<String>,
    pub handle: Handle,
    /// Whether the result says that the tool failed.
    pub failed: bool,
    /// The pair that makes this one superfluous.
    pub superseded_by: Option<usize>,
    /// Whether it shows a file that was written later.
    pub stale: bool,
}

/// A string among the arguments of a call.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    /// The member at the top level that it is, or is nested below.
    pub name: String,
    /// What it says.
    pub value: String,
    /// Where it stands in the raw text, between its quotes.
    pub raw: Range<usize>,
}

/// Returns the pairs of `entries` in the order of their calls, and what they mean to each other.
pub(crate) fn told(entries: &[Entry], rules: &ToolRules) -> Vec<Told> {
    let sizes = vec![Tokens::default(); entries.len()];
    let survey = Survey::of(entries, &sizes, rules);
    let relations = relations(&survey);
    let tell = |(at, pair): (usize, &super::survey::Pair)| Told {
        call: pair.call,
        result: pair.result,
        kind: pair.usage.kind,
        key: pair.usage.key.clone(),
        handle: pair.handle,
        failed: pair.failed,
        superseded_by: relations.by[at],
        stale: relations.stale[at],
    };
    survey.pairs.iter().enumerate().map(tell).collect()
}

/// Returns the strings among the arguments of a call; none if they are no JSON object.
pub(crate) fn strings(call: &Call) -> Option<Vec<Argument>> {
    let Input::Arguments(text) = &call.input else { return None };
    let leaves = arguments::leaves(text)?;
    let argument = |leaf: arguments::Leaf| Argument {
        name: arguments::unescaped(&text[leaf.name]),
        value: arguments::unescaped(&text[leaf.raw.clone()]),
        raw: leaf.raw,
    };
    Some(leaves.into_iter().map(argument).collect())
}
