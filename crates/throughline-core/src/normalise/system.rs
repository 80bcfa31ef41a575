//! System messages where the target allows them.

use super::Item;
use crate::{Action, Entry, Kind, Part, Report, Role, Rules, Said, Side, SystemRule, joined_text};

const RETOLD: &str = "System message:";

/// Moves or retells system messages that stand where the target does not allow them.
pub(super) fn place(items: &mut Vec<Item>, rules: &Rules, report: &mut Report) {
    if !rules.developer_role {
        items.iter_mut().for_each(|item| as_system(item, report));
    }
    match rules.system {
        SystemRule::Anywhere | SystemRule::BesideOrWithin => {}
        SystemRule::Beside => retell_late(items, report),
        SystemRule::First => {
            retell_late(items, report);
            merge_leading(items, report);
        }
    }
}

fn as_system(item: &mut Item, report: &mut Report) {
    if let Kind::Said(said) = &mut item.entry.kind
        && said.role == Role::Developer
    {
        said.role = Role::System;
        item.entry.intact = false;
        report.entry(Action::Translated, item.entry.place, "developer is sent as system");
    }
}

fn leading(items: &[Item]) -> usize {
    items.iter().take_while(|item| item.entry.side() == Side::System).count()
}

/// Retells as the user's what the system says in the middle of the conversation.
fn retell_late(items: &mut [Item], report: &mut Report) {
    let first = leading(items);
    for item in &mut items[first..] {
        let Some(said) = item.entry.as_said().filter(|said| said.role.side() == Side::System) else {
            continue;
        };
        let mut parts = said.parts.clone();
        match parts.first().and_then(Part::as_text) {
            Some(text) => parts[0] = Part::text(format!("{RETOLD}\n{text}")),
            None => parts.insert(0, Part::text(RETOLD)),
        }
        let retold = Said { role: Role::User, parts, standing: false };
        item.entry = item.entry.altered(Kind::Said(retold));
        report.entry(
            Action::Translated,
            item.entry.place,
            "a system message in mid-conversation is sent as the user's",
        );
    }
}

fn merge_leading(items: &mut Vec<Item>, report: &mut Report) {
    let count = leading(items);
    if count < 2 {
        return;
    }
    let parts: Vec<Part> = items
        .drain(..count)
        .filter_map(|item| match item.entry.kind {
            Kind::Said(said) => Some(said.parts),
            _ => None,
        })
        .flatten()
        .collect();
    let merged = Entry::said(Role::System, joined_text(&parts));
    items.insert(0, Item::lone(merged));
    report.entry(Action::Translated, None, "system messages are sent as one");
}
