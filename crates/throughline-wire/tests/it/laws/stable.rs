//! Ids and names have a way back; the same request gives the same bytes; and a history that grows is shown
//! with the same beginning, which is what a provider's prompt cache lives on.

use super::anything::{STRATEGIES, framed, frames};
use super::draft::body;
use super::entries::histories;
use super::plan::{Scope, plans};
use super::{cases, decode, encode};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::BTreeSet;
use throughline_core::{
    Ask, Call, Dialect, EmbedForm, Entry, Prompt, Rules, Side, Strategy as Shown, Target, Text, Tool, prepare,
};
use throughline_wire::json::{Document, Node};

fn calls(entries: &[Entry]) -> impl Iterator<Item = &Call> {
    entries.iter().filter_map(Entry::as_call)
}

/// Returns a history without calls that only announce another again: those are one pair, whatever the target.
fn without_repeats(entries: Vec<Entry>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let is_repeat =
            entry.as_call().is_some_and(|call| calls(&kept).any(|first| first.is_same_call(call)));
        if !is_repeat {
            kept.push(entry);
        }
    }
    kept
}

/// Checks that every call id can be sent, is told apart from others, and leads back to the one that came.
fn check_ids(ask: &Ask, prompt: &Prompt<'_>) -> Result<(), TestCaseError> {
    let mut seen = BTreeSet::new();
    prop_assert_eq!(calls(&ask.entries).count(), calls(&prompt.entries).count());
    for (came, sent) in calls(&ask.entries).zip(calls(&prompt.entries)) {
        prop_assert!(prompt.rules.call_id.admits(&sent.id), "{} is not admissible", sent.id);
        prop_assert!(prompt.rules.tool_name.admits(&sent.name), "{} is not admissible", sent.name);
        prop_assert!(seen.insert(&sent.id) || !prompt.rules.unique_call_ids, "{} is sent twice", sent.id);
        prop_assert_eq!(prompt.ids.to_original(&sent.id), &came.id);
    }
    Ok(())
}

/// Returns the name that stands for a tool and its namespace in a target without namespaces.
fn full_name(tool: &Tool, rules: &Rules) -> Text {
    match tool.namespace.as_ref().filter(|_| rules.dialect != Dialect::Responses) {
        Some(namespace) => Text::from(format!("{namespace}__{}", tool.name)),
        None => tool.name.clone(),
    }
}

fn check_names(ask: &Ask, prompt: &Prompt<'_>) -> Result<(), TestCaseError> {
    for tool in ask.tools.iter().filter(|tool| !tool.is_hosted()) {
        let full = full_name(tool, prompt.rules);
        let sent = prompt.names.to_sent(&full);
        prop_assert_eq!(prompt.names.to_original(sent), &full);
        prop_assert!(prompt.tools.iter().any(|offered| &offered.name == sent), "{} is not offered", sent);
    }
    Ok(())
}

/// Returns the raw text of each message or item of a body.
fn list(dialect: Dialect, body: &str) -> Vec<String> {
    let name = if dialect == Dialect::Responses { "input" } else { "messages" };
    let document = Document::parse(body).expect("JSON");
    let list = document.root().field(name).expect("a conversation");
    list.items().map(|item| item.raw().to_owned()).collect()
}

/// Returns all that is said in a body, in its order, however it is divided into messages and parts.
fn texts(dialect: Dialect, body: &str) -> String {
    fn collect(node: Node<'_>, out: &mut String) {
        for (name, value) in node.fields() {
            if matches!(&*name, "text" | "content") {
                out.push_str(&value.as_str().unwrap_or_default());
            }
            collect(value, out);
        }
        node.items().for_each(|item| collect(item, out));
    }
    let mut out = String::new();
    for item in list(dialect, body) {
        collect(Document::parse(item).expect("JSON").root(), &mut out);
    }
    out
}

/// Returns where a request could have ended: before the model spoke.
fn ends(entries: &[Entry]) -> Vec<usize> {
    let speaks = |at: &usize| entries[*at].side() == Side::Assistant && entries[at - 1].side() == Side::User;
    (1..entries.len()).filter(speaks).collect()
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn ids_and_names_have_a_way_back(entries in histories(), frame in frames()) {
        let ask = framed(frame, without_repeats(entries));
        for rules in Rules::built_in() {
            let (prompt, _) = prepare(&ask, &Target::new(&rules));
            check_ids(&ask, &prompt)?;
            check_names(&ask, &prompt)?;
        }
    }

    #[test]
    fn the_same_request_gives_the_same_bytes(
        entries in histories(),
        frame in frames(),
        strategy in select(STRATEGIES.to_vec()),
    ) {
        let ask = framed(frame, entries.clone());
        let again = framed(frame, entries);
        for rules in Rules::built_in() {
            let target = Target { strategy, ..Target::new(&rules) };
            prop_assert_eq!(encode(&ask, &target), encode(&again, &target));
        }
    }

    #[test]
    fn a_history_that_grows_keeps_its_beginning(
        plan in plans(Scope { any_input: true, media_in_results: true, blank: false }),
        reuse_ids: bool,
        dialect in select(Dialect::ALL.to_vec()),
        end in any::<Index>(),
        form in select(vec![EmbedForm::Plain, EmbedForm::Comments]),
    ) {
        let plan = super::plan::Plan { reuse_ids, ..plan };
        let later = decode(dialect, &body(dialect, &plan, false));
        let ends = ends(&later.entries);
        if ends.is_empty() {
            return Ok(());
        }
        let end = ends[end.index(ends.len())];
        let earlier = Ask { entries: later.entries[..end].to_vec(), ..later.clone() };
        for rules in Rules::built_in() {
            let target = Target::new(&rules);
            let native = [&earlier, &later].map(|ask| list(rules.dialect, &encode(ask, &target)));
            prop_assert!(native[1].starts_with(&native[0]), "{}: {:#?}", rules.name, native);
            // Where calls are left out, the user's messages meet and may be joined.
            let target = Target { strategy: Shown::TextEmbed(form), ..target };
            let embedded = [&earlier, &later].map(|ask| texts(rules.dialect, &encode(ask, &target)));
            prop_assert!(embedded[1].starts_with(&embedded[0]), "{}: {:#?}", rules.name, embedded);
        }
    }
}
