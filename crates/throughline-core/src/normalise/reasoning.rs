//! Reasoning goes back to whoever issued it, and to nobody else (R22).

use super::Item;
use crate::{
    Action, Ask, Entry, ForeignReasoning, Kind, Report, Role, Rules, Seal, Side, Target, Text, Thought,
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
    if target.rules.reasoning.needs_follower {
        drop_dangling(&mut out, report);
    }
    *items = out;
}

/// Says whether a thought may go to the target.
fn may_return(entry: &Entry, thought: &Thought, target: &Target<'_>) -> bool {
    let is_own = match (&entry.origin, &target.origin) {
        (Some(issuer), Some(target)) => issuer == target,
        // Nobody says who issued it: a client that resends it in the target's own dialect is trusted.
        _ => dialect_of(entry) == Some(target.rules.dialect),
    };
    is_own && entry.intact && (is_sealed(thought) || !target.rules.reasoning.needs_seal)
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
fn unlink(item: &mut Item, bereft: bool, rules: &Rules) {
    if bereft && item.entry.wire.as_ref().is_some_and(|wire| wire.dialect == rules.dialect) {
        item.entry.intact = false;
    }
}

/// Returns what stands in for reasoning that the target may not be sent.
fn retell(entry: &Entry, thought: &Thought, target: &Target<'_>, report: &mut Report) -> Option<Entry> {
    let readable = readable(thought);
    if target.foreign_reasoning == ForeignReasoning::Drop || readable.is_empty() {
        report.entry(Action::Dropped, entry.place, "reasoning of another backend");
        return None;
    }
    report.entry(Action::Translated, entry.place, "reasoning of another backend is sent as text");
    let mut retold = if target.rules.reasoning.required_with_calls {
        Entry::new(Kind::Thought(Thought { content: vec![readable], ..Thought::default() }))
    } else {
        Entry::said(Role::Assistant, readable)
    };
    retold.place = entry.place;
    Some(retold)
}

fn readable(thought: &Thought) -> Text {
    let texts = if thought.content.is_empty() { &thought.summary } else { &thought.content };
    Text::from(texts.iter().map(Text::as_str).collect::<Vec<_>>().join("\n\n"))
}

/// Drops reasoning that nothing follows in its turn.
fn drop_dangling(items: &mut Vec<Item>, report: &mut Report) {
    let mut followed = false;
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    for item in items.drain(..).rev() {
        let is_thought = matches!(item.entry.kind, Kind::Thought(_));
        if is_thought && !followed {
            report.entry(Action::Dropped, item.entry.place, "nothing follows this reasoning");
            continue;
        }
        followed = item.entry.side() == Side::Assistant;
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

/// Says whether the last assistant turn, if the model is to go on from it, opens with reasoning.
fn opens_with_thought(items: &[Item]) -> bool {
    let Some(last) = items.iter().rposition(|item| item.entry.side() == Side::Assistant) else { return true };
    let before = items[..last].iter().rposition(|item| item.entry.side() != Side::Assistant);
    let segment = &items[before.map_or(0, |at| at + 1)..=last];
    let under_way = last + 1 == items.len() || segment.iter().any(|item| item.entry.as_call().is_some());
    !under_way || matches!(segment[0].entry.kind, Kind::Thought(_))
}
