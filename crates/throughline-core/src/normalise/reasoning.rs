//! Reasoning goes back to whoever issued it, and to nobody else (R22).

use super::Item;
use crate::{
    Absence, Action, Ask, Entry, ForeignReasoning, Kind, Report, Role, Rules, Seal, Side, Target, Text,
    Thought, Treatment,
};

/// Keeps the reasoning that the target may be sent; drops or retells the rest.
pub(super) fn sort(items: &mut Vec<Item>, target: &Target<'_>, report: &mut Report) {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    // Whether the turn under way lost reasoning of the target's own dialect.
    let mut bereft = false;
    for mut item in items.drain(..) {
        if item.entry.side() != Side::Assistant {
            bereft = false;
        }
        let Kind::Thought(thought) = &item.entry.kind else {
            unlink(&mut item, bereft, target.rules);
            out.push(item);
            continue;
        };
        if may_return(&item.entry, thought, target) {
            out.push(item);
            continue;
        }
        bereft |= item.entry.wire.as_ref().is_some_and(|wire| wire.dialect == target.rules.dialect);
        let retold = retell(&item.entry, thought, target, report);
        out.extend(retold.map(Item::lone));
    }
    *items = out;
}

/// Returns a history without any reasoning, for a backend that is to have none.
///
/// What stood behind it goes without the ids of its provider, which refuses an item whose reasoning is missing.
#[must_use]
pub fn without_reasoning(entries: Vec<Entry>) -> Vec<Entry> {
    let mut bereft = None;
    let mut kept = Vec::with_capacity(entries.len());
    for mut entry in entries {
        if entry.side() != Side::Assistant {
            bereft = None;
        }
        if matches!(entry.kind, Kind::Thought(_)) {
            bereft = dialect_of(&entry);
            continue;
        }
        let is_opaque = matches!(entry.kind, Kind::Opaque { .. } | Kind::Reference { .. });
        if bereft.is_some() && entry.wire.as_ref().map(|wire| wire.dialect) == bereft && !is_opaque {
            entry.intact = false;
        }
        kept.push(entry);
    }
    kept
}

/// Says whether a thought may go to the target.
fn may_return(entry: &Entry, thought: &Thought, target: &Target<'_>) -> bool {
    let rule = target.rules.reasoning;
    is_issuer(entry, target) && entry.intact && !rule.refused && (is_sealed(thought) || !rule.needs_seal)
}

/// Says whether the target issued a thought.
fn is_issuer(entry: &Entry, target: &Target<'_>) -> bool {
    match (&entry.origin, &target.origin) {
        (Some(issuer), Some(target)) => issuer == target,
        // Nobody says who issued it: a client that resends it in the target's own dialect is trusted.
        _ => dialect_of(entry) == Some(target.rules.dialect),
    }
}

fn dialect_of(entry: &Entry) -> Option<crate::Dialect> {
    let of_message = || entry.envelope.as_ref().map(|(envelope, _)| envelope.wire.dialect);
    entry.wire.as_ref().map(|wire| wire.dialect).or_else(of_message)
}

fn is_sealed(thought: &Thought) -> bool {
    match &thought.seal {
        Some(Seal::Signature(seal) | Seal::Redacted(seal) | Seal::Encrypted(seal)) => !seal.is_empty(),
        None => false,
    }
}

/// Takes from an item the provider's id, which it may not carry without its reasoning.
///
/// Of an opaque item there is nothing but its wire form; without that it would be lost.
fn unlink(item: &mut Item, bereft: bool, rules: &Rules) {
    let is_opaque = matches!(item.entry.kind, Kind::Opaque { .. } | Kind::Reference { .. });
    let is_own = item.entry.wire.as_ref().is_some_and(|wire| wire.dialect == rules.dialect);
    if bereft && is_own && !is_opaque {
        item.entry.intact = false;
    }
}

/// Returns what stands in for reasoning that the target may not be sent.
fn retell(entry: &Entry, thought: &Thought, target: &Target<'_>, report: &mut Report) -> Option<Entry> {
    let readable = readable(thought);
    if target.foreign_reasoning == ForeignReasoning::Drop || readable.is_empty() {
        report.entry(Action::Dropped, entry.place, "reasoning of another backend");
        let why = match is_issuer(entry, target) {
            true => Absence::UnusableReasoning,
            false => Absence::ForeignReasoning,
        };
        report.leave_out(entry, why);
        return None;
    }
    report.entry(Action::Translated, entry.place, "reasoning of another backend is sent as text");
    let mut retold = if target.rules.reasoning.required_with_calls {
        Entry::new(Kind::Thought(Thought { content: vec![readable], ..Thought::default() }))
    } else {
        Entry::said(Role::Assistant, readable)
    };
    retold.place = entry.place;
    retold.trace = entry.trace.with(match retold.kind {
        Kind::Thought(_) => Treatment::Adapted,
        _ => Treatment::Retold,
    });
    Some(retold)
}

fn readable(thought: &Thought) -> Text {
    let texts = if thought.content.is_empty() { &thought.summary } else { &thought.content };
    Text::from(texts.iter().map(Text::as_str).collect::<Vec<_>>().join("\n\n"))
}

/// Drops reasoning that nothing follows in its turn, where something must.
pub(super) fn drop_dangling(items: &mut Vec<Item>, rules: &Rules, report: &mut Report) {
    if !rules.reasoning.needs_follower {
        return;
    }
    let mut followed = false;
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    for item in items.drain(..).rev() {
        let is_thought = matches!(item.entry.kind, Kind::Thought(_));
        if is_thought && !followed {
            report.entry(Action::Dropped, item.entry.place, "nothing follows this reasoning");
            report.leave_out(&item.entry, Absence::DanglingReasoning);
            continue;
        }
        // Of several in a row, only the last is followed by what it led to.
        followed = item.entry.side() == Side::Assistant && !is_thought;
        kept.push(item);
    }
    kept.reverse();
    *items = kept;
}

/// Says whether the request for reasoning must be left out, since the turn under way does not open with any.
pub(super) fn must_be_off(items: &[Item], ask: &Ask, rules: &Rules, report: &mut Report) -> bool {
    let Some(reasoning) = ask.settings.reasoning.as_ref().filter(|reasoning| !reasoning.is_off()) else {
        return false;
    };
    let stays = ask.dialect == rules.dialect;
    let is_adaptive = reasoning.budget.is_none() && (stays || reasoning.effort.is_none());
    if !rules.reasoning.leads_open_turn || is_adaptive || opens_with_thought(items) {
        return false;
    }
    let reason = "the turn under way does not open with reasoning that this backend issued";
    report.field(Action::Dropped, "reasoning", reason);
    true
}

/// Says whether the turn under way, if there is one, opens with reasoning.
///
/// The rounds of a tool loop are one turn, in which a model may think only once, before its first call: it is
/// enough that the first or the last round opens with a thought.
fn opens_with_thought(items: &[Item]) -> bool {
    let is_assistant = |item: &Item| item.entry.side() == Side::Assistant;
    let rounds: Vec<&[Item]> = items.chunk_by(|a, b| is_assistant(a) == is_assistant(b)).collect();
    let goes_on = |round: &&&[Item]| {
        is_assistant(&round[0]) || round.iter().any(|item| item.entry.as_return().is_some())
    };
    let mut under_way = rounds.iter().rev().take_while(goes_on).filter(|round| is_assistant(&round[0]));
    let Some(last) = under_way.next() else { return true };
    let first = under_way.last().unwrap_or(last);
    [first, last].iter().any(|round| matches!(round[0].entry.kind, Kind::Thought(_)))
}
