//! System messages where the target allows them.

use super::Item;
use crate::{
    Action, Entry, Kind, Part, Report, Role, Rules, Said, Side, SystemRule, Trace, Treatment, joined_text,
};

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
        item.entry.trace.note(Treatment::Translated);
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
        item.entry.trace.note(Treatment::Retold);
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
    let trace = Trace::joined(items[..count].iter().map(|item| &item.entry.trace));
    let parts: Vec<Part> = items
        .drain(..count)
        .filter_map(|item| match item.entry.kind {
            Kind::Said(said) => Some(said.parts),
            _ => None,
        })
        .flatten()
        .collect();
    // Only texts can be joined; anything else would be lost.
    let is_text_only = parts.iter().all(|part| part.as_text().is_some());
    let parts = if is_text_only { vec![Part::text(joined_text(&parts))] } else { parts };
    let mut merged = Entry::new(Kind::Said(Said { role: Role::System, parts, standing: false }));
    merged.trace = trace;
    items.insert(0, Item::lone(merged));
    report.entry(Action::Translated, None, "system messages are sent as one");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Image, Media};

    #[test]
    fn system_messages_that_are_merged_keep_their_pictures() {
        let image = Content::Image(Image { media: Media::Url("https://a".into()), detail: None });
        let parts = vec![Part::text("Look."), Part { content: image, wire: None }];
        let pictured =
            Entry::new(Kind::Said(Said { role: Role::System, parts: parts.clone(), standing: false }));
        let mut items = vec![Item::lone(pictured), Item::lone(Entry::said(Role::System, "Be brief."))];
        merge_leading(&mut items, &mut Report::default());
        let expected: Vec<Part> = parts.into_iter().chain([Part::text("Be brief.")]).collect();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].entry.as_said().unwrap().parts, expected);
    }
}
