//! Images and files of results, for targets whose results are text only.
//!
//! They move into a user message behind the batch, and a line in the result says so. The lines are a form
//! of our own that is understood again: where such a history comes back from a client and the next target
//! takes media in results, they are put back where they belong.

use super::Item;
use crate::{Action, Content, Entry, Kind, Part, Report, Return, Role, Said, Text};

const OPENING: &str = "[attachments of tool result ";

fn heading(call_id: &str) -> Text {
    Text::from(format!("{OPENING}{call_id}]"))
}

fn stand_in(number: usize) -> String {
    format!("[attachment {number}: see the next user message]")
}

const fn is_media(part: &Part) -> bool {
    matches!(part.content, Content::Image(_) | Content::File(_))
}

/// Moves media out of results, behind the last result of their batch.
pub(super) fn detach(items: &mut Vec<Item>, report: &mut Report) {
    let mut out = Vec::with_capacity(items.len());
    let mut detached = Vec::new();
    for mut item in items.drain(..) {
        if item.entry.as_return().is_none() {
            out.append(&mut detached);
        }
        if let Some(attachments) = detach_one(&mut item.entry, report) {
            detached.push(Item::lone(attachments));
        }
        out.push(item);
    }
    out.append(&mut detached);
    *items = out;
}

fn detach_one(entry: &mut Entry, report: &mut Report) -> Option<Entry> {
    let Kind::Returned(returned) = &mut entry.kind else { return None };
    if !returned.parts.iter().any(is_media) {
        return None;
    }
    let call_id = returned.call_id.clone().unwrap_or_default();
    let mut parts = vec![Part::text(heading(&call_id))];
    for part in &mut returned.parts {
        if is_media(part) {
            let line = Part::text(stand_in(parts.len()));
            parts.push(std::mem::replace(part, line));
        }
    }
    entry.intact = false;
    report.entry(Action::Translated, entry.place, "media of the result follow in a user message");
    let mut said = Entry::new(Kind::Said(Said { role: Role::User, parts, standing: false }));
    said.place = entry.place;
    Some(said)
}

/// Puts media that were detached here back into their results.
pub(super) fn reattach(entries: Vec<Entry>) -> Vec<Entry> {
    if !entries.iter().any(|entry| attachments(entry).is_some()) {
        return entries;
    }
    let mut out: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let taken = attachments(&entry).is_some_and(|(call_id, media)| {
            let result = out.iter_mut().rev().find(|earlier| answers(earlier, call_id));
            result.is_some_and(|result| put_back(result, media))
        });
        if !taken {
            out.push(entry);
        }
    }
    out
}

/// Returns the call id and the media of an entry that holds the attachments of a result.
fn attachments(entry: &Entry) -> Option<(&str, &[Part])> {
    let said = entry.as_said().filter(|said| said.role == Role::User)?;
    let (first, media) = said.parts.split_first()?;
    let call_id = first.as_text()?.strip_prefix(OPENING)?.strip_suffix(']')?;
    (!media.is_empty() && media.iter().all(is_media)).then_some((call_id, media))
}

fn answers(entry: &Entry, call_id: &str) -> bool {
    entry.as_return().is_some_and(|returned| returned.call_id.as_ref().is_some_and(|id| id == call_id))
}

fn put_back(entry: &mut Entry, media: &[Part]) -> bool {
    let Some(returned) = entry.as_return() else { return false };
    let mut media = media.iter();
    let mut number = 1;
    let mut parts = Vec::new();
    for part in &returned.parts {
        let Some(text) = part.as_text() else {
            parts.push(part.clone());
            continue;
        };
        let mut rest: &str = text;
        let mut found = false;
        while let Some((before, after)) = split_at_line(rest, &stand_in(number)) {
            let Some(attachment) = media.next() else { break };
            parts.extend((!before.is_empty()).then(|| Part::text(before)));
            parts.push(attachment.clone());
            rest = after;
            number += 1;
            found = true;
        }
        if !found {
            parts.push(part.clone());
        } else if !rest.is_empty() {
            parts.push(Part::text(rest));
        }
    }
    let complete = media.next().is_none();
    if complete {
        *entry = entry.altered(Kind::Returned(Return { parts, ..returned.clone() }));
    }
    complete
}

/// Splits a text at a line; the line breaks around it are nobody's.
fn split_at_line<'t>(text: &'t str, line: &str) -> Option<(&'t str, &'t str)> {
    let (before, after) = text.split_once(line)?;
    let before = if before.is_empty() { before } else { before.strip_suffix('\n')? };
    let after = if after.is_empty() { after } else { after.strip_prefix('\n')? };
    Some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, Media, Outcome};

    fn image(url: &str) -> Part {
        let image = Image { media: Media::Url(url.into()), detail: None };
        Part { content: Content::Image(image), wire: None }
    }

    fn result(parts: Vec<Part>) -> Entry {
        Entry::new(Kind::Returned(Return {
            call_id: Some("call_1".into()),
            item_id: None,
            name: None,
            parts,
            outcome: Outcome::Ok,
            freeform: false,
        }))
    }

    #[test]
    fn media_go_behind_the_batch_and_come_back() {
        let parts = vec![Part::text("two"), image("a"), Part::text("pictures"), image("b")];
        let original = result(parts);
        let mut items = vec![Item::lone(original.clone()), Item::lone(Entry::said(Role::User, "and?"))];
        detach(&mut items, &mut Report::default());
        assert_eq!(items.len(), 3);
        assert!(!items[0].entry.as_return().unwrap().parts.iter().any(is_media));
        let back = reattach(items.into_iter().map(|item| item.entry).collect());
        assert_eq!(back.len(), 2);
        assert_eq!(back[0].kind, original.kind);
    }

    #[test]
    fn texts_that_were_joined_into_one_are_understood_too() {
        let joined = format!("two\n{}\npictures", stand_in(1));
        let attached = Said {
            role: Role::User,
            parts: vec![Part::text(heading("call_1")), image("a")],
            standing: false,
        };
        let entries = vec![result(vec![Part::text(joined)]), Entry::new(Kind::Said(attached))];
        let back = reattach(entries);
        assert_eq!(
            back[0].as_return().unwrap().parts,
            [Part::text("two"), image("a"), Part::text("pictures")]
        );
    }

    #[test]
    fn a_user_who_writes_such_a_line_is_left_alone() {
        let entries = vec![Entry::said(Role::User, "[attachments of tool result call_1]")];
        assert_eq!(reattach(entries.clone()), entries);
    }
}
