//! Images and files of results, for targets whose results are text only.
//!
//! They move into a user message behind the batch, and a line in the result says so. The lines are a form
//! of our own that is understood again: where such a history comes back from a client and the next target
//! takes media in results, they are put back where they belong.

use super::Item;
use crate::{Action, Content, Entry, Kind, Part, Report, Return, Role, Said, Text, Treatment};
use std::collections::BTreeSet;

const OPENING: &str = "[attachments of tool result ";

const FROM: &str = ", from ";

const LINE_OPENING: &str = "[attachment ";
const LINE_ENDING: &str = ": see the next user message]";

/// Heads the attachments of a result; they are numbered from one, unless the heading says otherwise.
fn heading(call_id: &str, first: usize) -> Text {
    match first {
        1 => Text::from(format!("{OPENING}{call_id}]")),
        _ => Text::from(format!("{OPENING}{call_id}{FROM}{first}]")),
    }
}

fn read_heading(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix(OPENING)?.strip_suffix(']')?;
    // Whoever writes such a line may write any number in it; ours are small, and counting on must not overflow.
    let read_number = |first: &str| first.parse::<u32>().ok().and_then(|first| usize::try_from(first).ok());
    let numbered = inside.rsplit_once(FROM).and_then(|(id, first)| Some((id, read_number(first)?)));
    Some(numbered.unwrap_or((inside, 1)))
}

/// Returns the number of the first attachment: one, unless the result itself has lines like ours in it.
fn first_number(parts: &[Part]) -> usize {
    let count = parts.iter().filter(|part| is_media(part)).count();
    let taken: BTreeSet<usize> =
        parts.iter().filter_map(Part::as_text).flat_map(|text| numbers_in(text)).collect();
    // One beyond the last as well: whoever reads them stops at the first number that is missing.
    let mut first = 1;
    for number in taken {
        if number > first + count {
            break;
        }
        first = first.max(number + 1);
    }
    first
}

/// Returns the numbers of the lines in a text that look like ours.
fn numbers_in(text: &str) -> impl Iterator<Item = usize> {
    text.split(LINE_OPENING).skip(1).filter_map(|rest| {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = rest.split_at(digits);
        let is_ours = rest.starts_with(LINE_ENDING) && !number.starts_with('0');
        number.parse::<u32>().ok().filter(|_| is_ours).and_then(|number| usize::try_from(number).ok())
    })
}

fn stand_in(number: usize) -> String {
    format!("{LINE_OPENING}{number}{LINE_ENDING}")
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
    let first = first_number(&returned.parts);
    let mut parts = vec![Part::text(heading(&call_id, first))];
    for part in &mut returned.parts {
        if is_media(part) {
            let line = Part::text(stand_in(first + parts.len() - 1));
            parts.push(std::mem::replace(part, line));
        }
    }
    entry.intact = false;
    entry.trace.note(Treatment::Split);
    report.entry(Action::Translated, entry.place, "media of the result follow in a user message");
    let mut said = Entry::new(Kind::Said(Said { role: Role::User, parts, standing: false }));
    said.place = entry.place;
    said.trace = entry.trace.clone();
    Some(said)
}

/// Puts media that were detached here back into their results.
pub(super) fn reattach(entries: Vec<Entry>) -> Vec<Entry> {
    if !entries.iter().any(|entry| attached_to(entry).is_some()) {
        return entries;
    }
    let mut out: Vec<Entry> = Vec::with_capacity(entries.len());
    for mut entry in entries {
        while let Some((call_id, first)) = attached_to(&entry) {
            let media = media_of(&entry);
            let result = out.iter_mut().rev().find(|earlier| answers(earlier, call_id));
            let Some(result) = result else { break };
            let taken = put_back(result, media, first);
            if taken == 0 {
                break;
            }
            result.trace.join(&entry.trace.with(Treatment::Split));
            entry = without_first(&entry, 1 + taken);
        }
        if entry.as_said().is_none_or(|said| entry.intact || !said.parts.is_empty()) {
            out.push(entry);
        }
    }
    out
}

/// Returns the call whose attachments an entry begins with, and the number of the first.
///
/// More may follow them: a target that wants one message for all that the user says gets the attachments of
/// several results, and what the user said next, in one.
fn attached_to(entry: &Entry) -> Option<(&str, usize)> {
    let said = entry.as_said().filter(|said| said.role == Role::User)?;
    let heading = read_heading(said.parts.first()?.as_text()?)?;
    said.parts.get(1).is_some_and(is_media).then_some(heading)
}

/// Returns the media behind the first part of what was said.
fn media_of(entry: &Entry) -> &[Part] {
    let parts = entry.as_said().map_or(&[][..], |said| said.parts.get(1..).unwrap_or_default());
    let count = parts.iter().take_while(|part| is_media(part)).count();
    &parts[..count]
}

fn without_first(entry: &Entry, count: usize) -> Entry {
    match &entry.kind {
        Kind::Said(said) => {
            let rest = Said { parts: said.parts[count..].to_vec(), ..said.clone() };
            Entry { trace: entry.trace.with(Treatment::Split), ..entry.altered(Kind::Said(rest)) }
        }
        _ => entry.clone(),
    }
}

fn answers(entry: &Entry, call_id: &str) -> bool {
    entry.as_return().is_some_and(|returned| returned.call_id.as_ref().is_some_and(|id| id == call_id))
}

/// Puts media where the lines of a result stand in for them, and returns how many there were; none if a
/// line has no counterpart.
fn put_back(entry: &mut Entry, media: &[Part], first: usize) -> usize {
    let Some(returned) = entry.as_return() else { return 0 };
    let mut taken = 0;
    let mut parts = Vec::new();
    for part in &returned.parts {
        let Some(text) = part.as_text() else {
            parts.push(part.clone());
            continue;
        };
        let before = taken;
        let mut rest: &str = text;
        while let Some((before, after)) = split_at_line(rest, &stand_in(first + taken)) {
            let Some(attachment) = media.get(taken) else { return 0 };
            parts.extend((!before.is_empty()).then(|| Part::text(before)));
            parts.push(attachment.clone());
            rest = after;
            taken += 1;
        }
        if taken == before {
            parts.push(part.clone());
        } else if !rest.is_empty() {
            parts.push(Part::text(rest));
        }
    }
    if taken > 0 {
        *entry = entry.altered(Kind::Returned(Return { parts, ..returned.clone() }));
    }
    taken
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
    fn a_result_that_has_such_a_line_of_its_own_keeps_it() {
        let original = result(vec![Part::text(stand_in(1)), Part::text("a"), image("b")]);
        let mut items = vec![Item::lone(original.clone())];
        detach(&mut items, &mut Report::default());
        let back = reattach(items.into_iter().map(|item| item.entry).collect());
        assert_eq!(back.len(), 1);
        assert_eq!(back[0].kind, original.kind);
    }

    #[test]
    fn numbers_that_a_result_has_lines_for_are_passed_over() {
        let lines = |numbers: &[usize]| numbers.iter().map(|n| Part::text(stand_in(*n))).collect::<Vec<_>>();
        let first = |numbers: &[usize], media: usize| {
            let media = (0..media).map(|_| image("a"));
            first_number(&lines(numbers).into_iter().chain(media).collect::<Vec<_>>())
        };
        assert_eq!(first(&[], 3), 1);
        assert_eq!(first(&[4], 2), 1);
        assert_eq!(first(&[4], 3), 5);
        assert_eq!(first(&[3, 1, 2, 9], 1), 4);
        assert_eq!(first(&[3, 1, 2, 5], 1), 6);
    }

    #[test]
    fn a_heading_may_have_any_number() {
        let attachments = |first: &str| {
            let heading = Part::text(format!("{OPENING}call_1{FROM}{first}]"));
            let parts = vec![heading, image("a"), image("b")];
            Entry::new(Kind::Said(Said { role: Role::User, parts, standing: false }))
        };
        for first in ["0", "4294967295", "18446744073709551615", "99999999999999999999"] {
            let line = Part::text(format!("{LINE_OPENING}{first}{LINE_ENDING}"));
            assert!(!reattach(vec![result(vec![line]), attachments(first)]).is_empty());
        }
    }

    #[test]
    fn texts_that_were_joined_into_one_are_understood_too() {
        let joined = format!("two\n{}\npictures", stand_in(1));
        let attached = Said {
            role: Role::User,
            parts: vec![Part::text(heading("call_1", 1)), image("a")],
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
    fn attachments_of_several_results_in_one_message_find_their_ways() {
        let of = |call_id: &str| {
            let Kind::Returned(returned) = result(vec![Part::text(stand_in(1))]).kind else { panic!() };
            Entry::new(Kind::Returned(Return { call_id: Some(call_id.into()), ..returned }))
        };
        let parts = vec![
            Part::text(heading("call_1", 1)),
            image("a"),
            Part::text(heading("call_2", 1)),
            image("b"),
            image("mine"),
            Part::text("and?"),
        ];
        let said = Entry::new(Kind::Said(Said { role: Role::User, parts, standing: false }));
        let back = reattach(vec![of("call_1"), of("call_2"), said]);
        assert_eq!(back[0].as_return().unwrap().parts, [image("a")]);
        assert_eq!(back[1].as_return().unwrap().parts, [image("b")]);
        assert_eq!(back[2].as_said().unwrap().parts, [image("mine"), Part::text("and?")]);
    }

    #[test]
    fn a_user_who_writes_such_a_line_is_left_alone() {
        let entries = vec![Entry::said(Role::User, "[attachments of tool result call_1]")];
        assert_eq!(reattach(entries.clone()), entries);
    }
}
