//! A conversation as it went: what was said, a line for each tool call, and a line for each request that failed.

use crate::commands::run::about;
use crate::output::{self, Ink};
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::{Call, EntryId, Handover, Kind, Role, Said};
use throughline_gateway::turn::compose;
use throughline_gateway::view::{self, Pair};
use throughline_store::{Exchange, ExchangeId, Kept};

/// Shows a branch bit by bit: what was shown once is not shown again.
#[derive(Debug, Default)]
pub struct Talk {
    entries: BTreeSet<EntryId>,
    failures: BTreeSet<ExchangeId>,
    /// Calls that were shown while their results were still to come.
    open: BTreeSet<EntryId>,
}

impl Talk {
    /// Returns what has come since, with the failed requests where they happened.
    pub fn next(&mut self, branch: &[Kept], exchanges: &[Exchange], ink: &Ink) -> String {
        let pairs = view::pairs(branch);
        let by_call: BTreeMap<&EntryId, &Pair<'_>> =
            pairs.iter().filter_map(|pair| Some((&pair.call?.id, pair))).collect();
        let failed: Vec<(usize, &Exchange)> =
            (1..).zip(exchanges).filter(|(_, exchange)| view::failure_of(exchange).is_some()).collect();
        let on_branch: BTreeSet<&EntryId> = branch.iter().map(|kept| &kept.id).collect();

        let mut text = String::new();
        for (number, exchange) in failed.iter().filter(|(_, exchange)| exchange.before.is_none()) {
            text.push_str(&self.failure(*number, exchange, ink));
        }
        for kept in branch {
            let pair = by_call.get(&kept.id).copied();
            text.push_str(&self.entry(kept, pair, ink));
            for (number, exchange) in failed.iter().filter(|(_, of)| of.before.as_ref() == Some(&kept.id)) {
                text.push_str(&self.failure(*number, exchange, ink));
            }
        }
        // What failed on another branch failed all the same.
        for (number, exchange) in failed {
            if exchange.before.as_ref().is_some_and(|before| !on_branch.contains(before)) {
                text.push_str(&self.failure(number, exchange, ink));
            }
        }
        text
    }

    fn entry(&mut self, kept: &Kept, pair: Option<&Pair<'_>>, ink: &Ink) -> String {
        if !self.entries.insert(kept.id.clone()) {
            return self.settled(kept, pair, ink);
        }
        match &kept.entry.kind {
            Kind::Said(said) if is_talk(said) => said_shown(said, ink),
            Kind::Called(call) => {
                if pair.is_none_or(|pair| pair.result.is_none()) {
                    self.open.insert(kept.id.clone());
                }
                call_shown(call, pair, ink)
            }
            Kind::HandedOver(handover) => handover_shown(handover, ink),
            Kind::Summarised(summary) => {
                format!("{}\n\n", ink.dim(&format!("-- a summary stands for {} entries", summary.covers)))
            }
            _ => String::new(),
        }
    }

    /// Returns a call again whose result came since, if that is a failure.
    fn settled(&mut self, kept: &Kept, pair: Option<&Pair<'_>>, ink: &Ink) -> String {
        let Some((pair, call)) = pair.filter(|pair| pair.result.is_some()).zip(kept.entry.as_call()) else {
            return String::new();
        };
        let is_news = self.open.remove(&kept.id) && has_failed(pair);
        if is_news { call_shown(call, Some(pair), ink) } else { String::new() }
    }

    fn failure(&mut self, number: usize, exchange: &Exchange, ink: &Ink) -> String {
        let Some(failure) = view::failure_of(exchange) else { return String::new() };
        if !self.failures.insert(exchange.id.clone()) {
            return String::new();
        }
        let at = output::seconds(exchange.ended.unwrap_or(exchange.started));
        let line = ink.bad(&ink.tame(&format!("✗ {}", failure.line())));
        format!(
            "{line}\n{}\n\n",
            ink.dim(&format!("  exchange {number}, {at}: --exchange {number} shows it"))
        )
    }
}

/// Says whether something is the user's or the model's; the operator's words are in the full view.
pub fn is_talk(said: &Said) -> bool {
    // What a composing model is told stands in the user's role, and is not the user's.
    let is_ours = view::text_of(&said.parts).starts_with(compose::TAG);
    matches!(said.role, Role::User | Role::Assistant) && !is_ours
}

fn said_shown(said: &Said, ink: &Ink) -> String {
    let role = ink.bold(view::role_name(said.role));
    let text = view::text_of(&said.parts);
    if said.role != Role::User {
        return format!("{role}\n{}\n", ink.block(&text));
    }
    let spoken = view::spoken(&text);
    let mut shown = format!("{role}\n{}", ink.block(&spoken.words));
    for (tag, inside) in &spoken.injected {
        let size = output::count(inside.chars().count() as u64);
        shown.push_str(&format!("  {}\n", ink.dim(&format!("⚙ {tag}, {size} characters"))));
    }
    shown + "\n"
}

fn has_failed(pair: &Pair<'_>) -> bool {
    !matches!(view::state_name(pair.state), "ok" | "open") || pair.exit_code().is_some_and(|code| code != 0)
}

fn call_shown(call: &Call, pair: Option<&Pair<'_>>, ink: &Ink) -> String {
    let head = ink.tame(&format!("{} {}", call.name, about(call))).into_owned();
    let Some(pair) = pair.filter(|pair| pair.result.is_some()) else {
        return format!("  {} {head}  {}\n", ink.dim("▸"), ink.dim("no result yet"));
    };
    if has_failed(pair) {
        let state = match pair.exit_code() {
            Some(code) if code != 0 => format!("exit code {code}"),
            _ => view::state_name(pair.state).to_owned(),
        };
        let why =
            pair.result.and_then(|kept| kept.entry.as_return()).map(|returned| first_line(&returned.parts));
        let why = why.filter(|why| !why.is_empty()).map(|why| format!(": {why}")).unwrap_or_default();
        return format!("  {}\n", ink.bad(&ink.tame(&format!("✗ {head}  {state}{why}"))));
    }
    let returned = pair.result.and_then(|kept| kept.entry.as_return());
    let size = returned.map_or(0, |returned| view::text_of(&returned.parts).lines().count());
    let size = output::counted(size as u64, "line", "lines");
    format!("  {} {head}  {} {}\n", ink.dim("▸"), ink.good("✓"), ink.dim(&size))
}

/// Returns the first line of a result that says something, cut where it is long.
fn first_line(parts: &[throughline_core::Part]) -> String {
    const CHARS_MAX: usize = 120;
    let text = view::text_of(parts);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn handover_shown(handover: &Handover, ink: &Ink) -> String {
    format!("{}\n\n", ink.dim(&ink.tame(&format!("-- handed over {}", handover_line(handover)))))
}

/// Says in a line who took over from whom, by what and why.
pub fn handover_line(handover: &Handover) -> String {
    let from = handover.from.as_ref().map(|from| format!("from {}/{} ", from.backend, from.model));
    let to = format!("to {}/{}", handover.to.backend, handover.to.model);
    let mode = if handover.brief.is_some() { "with a brief" } else { "natively" };
    format!("{}{to} {mode} ({}: {})", from.unwrap_or_default(), handover.by, handover.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{ConversationId, Dialect, Entry, Input, Outcome, Part, Return};
    use throughline_store::{Attempt, Moment};

    fn kept(id: &str, entry: Entry) -> Kept {
        Kept {
            id: EntryId::new(id),
            conversation: ConversationId::new("c"),
            parent: None,
            exchange: None,
            at: Moment(0),
            entry,
        }
    }

    fn call(id: &str, arguments: &str) -> Entry {
        let input = Input::Arguments(arguments.into());
        let call = Call { id: id.into(), item_id: None, name: "bash".into(), namespace: None, input };
        Entry::new(Kind::Called(call))
    }

    fn result(id: &str, outcome: Outcome, text: &str) -> Entry {
        Entry::new(Kind::Returned(Return {
            call_id: Some(id.into()),
            item_id: None,
            name: None,
            parts: vec![Part::text(text)],
            outcome,
            freeform: false,
        }))
    }

    /// A request that brought only a result, and that its backend refused.
    fn refused(before: &str) -> Exchange {
        let begun =
            Exchange::begun(ExchangeId::new("x"), ConversationId::new("c"), Dialect::Messages, Moment(0));
        Exchange {
            before: Some(EntryId::new(before)),
            ending: Some("failed".into()),
            attempts: vec![Attempt {
                ended: Some(Moment(0)),
                status: Some(400),
                failure: Some("prompt is too long".into()),
                ..Attempt::begun("claude".into(), Dialect::Messages, Moment(0))
            }],
            ..begun
        }
    }

    #[test]
    fn a_request_that_brought_only_results_and_failed_is_seen_where_it_failed() {
        let branch = [
            kept("1", Entry::said(Role::User, "<system-reminder>note</system-reminder>Fix it.")),
            kept("2", call("a", r#"{"command":"cargo test"}"#)),
            kept("3", result("a", Outcome::Ok, "one\ntwo")),
        ];
        let mut talk = Talk::default();
        let shown = talk.next(&branch, &[refused("3")], &Ink::plain());
        assert_eq!(
            shown,
            "user\n  Fix it.\n  ⚙ system-reminder, 4 characters\n\n  ▸ bash cargo test  ✓ 2 lines\n\
             ✗ request failed at claude, 400: prompt is too long\n  \
             exchange 1, 1970-01-01T00:00:00Z: --exchange 1 shows it\n\n"
        );
        assert_eq!(talk.next(&branch, &[refused("3")], &Ink::plain()), "", "once is enough");
        let elsewhere = Talk::default().next(&branch, &[refused("9")], &Ink::plain());
        assert!(elsewhere.contains("✗ request failed at claude"), "{elsewhere}");
    }

    #[test]
    fn a_call_is_shown_at_once_and_again_when_it_failed() {
        let mut talk = Talk::default();
        let mut branch = vec![kept("2", call("a", r#"{"command":"cargo test"}"#))];
        let ink = Ink::plain();
        assert_eq!(talk.next(&branch, &[], &ink), "  ▸ bash cargo test  no result yet\n");
        branch.push(kept("3", result("a", Outcome::Error, "\n boom \n")));
        assert_eq!(talk.next(&branch, &[], &ink), "  ✗ bash cargo test  error: boom\n");
        assert_eq!(talk.next(&branch, &[], &ink), "");
    }
}
