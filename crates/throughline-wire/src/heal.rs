//! What every provider of a dialect refuses, taken out of a body that is written already.
//!
//! Most of a body goes out as it came, so some things are in it that no step has looked at: half of a surrogate pair,
//! which clients leave behind where they cut a text, and more cache marks than the provider allows.

use crate::json::{Document, Node};
use std::ops::Range;
use throughline_core::{Action, Dialect, Report};

/// How many cache marks a request may have.
const CACHE_MARKS_MAX: usize = 4;

/// How many of them are kept at the start, where tools and instructions are; the others are the last ones.
const CACHE_MARKS_FIRST: usize = 1;

const CACHE_MARK: &str = "cache_control";

/// Returns the body without what the dialect's provider would refuse in any case.
pub(crate) fn healed(dialect: Dialect, body: String, report: &mut Report) -> String {
    let (body, halves) = without_lone_surrogates(body);
    if halves > 0 {
        let reason = format!("{halves} halves of surrogate pairs are sent as U+FFFD");
        report.field(Action::Repaired, crate::history_field(dialect), reason);
    }
    if dialect == Dialect::Messages { with_few_cache_marks(body, report) } else { body }
}

/// Replaces escapes that are half of a surrogate pair by U+FFFD; returns how many there were.
pub fn without_lone_surrogates(body: String) -> (String, usize) {
    if !body.contains("\\ud") && !body.contains("\\uD") {
        return (body, 0);
    }
    let halves = lone_surrogates(body.as_bytes());
    if halves.is_empty() {
        return (body, 0);
    }
    let mut healed = String::with_capacity(body.len());
    let mut from = 0;
    for at in &halves {
        healed.push_str(&body[from..*at]);
        healed.push(char::REPLACEMENT_CHARACTER);
        from = at + ESCAPE;
    }
    healed.push_str(&body[from..]);
    (healed, halves.len())
}

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

fn lone_surrogates(bytes: &[u8]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        at += match (unit(bytes, at), unit(bytes, at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                found.push(at);
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
            // Any other escape has one letter.
            (None, _) => 2,
        };
    }
    found
}

/// Returns the code unit that the escape at this place stands for, if there is one.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + ESCAPE).filter(|escape| escape.starts_with(b"\\u"))?;
    u32::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
}

/// Leaves out cache marks in the middle where there are more than the provider takes.
fn with_few_cache_marks(body: String, report: &mut Report) -> String {
    if body.matches(CACHE_MARK).count() <= CACHE_MARKS_MAX {
        return body;
    }
    let Ok(document) = Document::parse(body.as_str()) else { return body };
    let mut marks = cache_marks(document.root(), &body);
    if marks.len() <= CACHE_MARKS_MAX {
        return body;
    }
    marks.sort_by_key(|mark| mark.start);
    let last = marks.len() - (CACHE_MARKS_MAX - CACHE_MARKS_FIRST);
    let mut healed = body.clone();
    for mark in marks[CACHE_MARKS_FIRST..last].iter().rev() {
        healed.replace_range(mark.clone(), "");
    }
    let left_out = last - CACHE_MARKS_FIRST;
    let reason = format!("the target takes {CACHE_MARKS_MAX} cache marks: {left_out} left out");
    report.field(Action::Repaired, CACHE_MARK, reason);
    healed
}

fn list<'d>(node: Node<'d>, name: &str) -> Vec<Node<'d>> {
    node.field(name).into_iter().flat_map(Node::items).collect()
}

/// Finds the marks of a request where the provider looks for them: at tools, instructions and blocks.
fn cache_marks(root: Node<'_>, body: &str) -> Vec<Range<usize>> {
    let mut holders: Vec<Node<'_>> = vec![root];
    holders.extend(list(root, "tools"));
    holders.extend(list(root, "system"));
    for message in list(root, "messages") {
        for block in list(message, "content") {
            holders.push(block);
            holders.extend(list(block, "content"));
        }
    }
    holders.iter().filter_map(|holder| field_range(*holder, body)).collect()
}

/// Returns where the mark of an object stands, with the comma that belongs to it.
fn field_range(holder: Node<'_>, body: &str) -> Option<Range<usize>> {
    // The key is found by what it says: a client may have written it with escapes.
    let (key, value) = holder.pairs().filter(|(key, _)| key.is_str(CACHE_MARK)).last()?;
    if value.is_null() {
        return None;
    }
    let key = key.offset();
    let end = value.offset() + value.raw().len();
    let rest = &body[end..];
    let behind = rest.len() - rest.trim_start().len();
    if rest[behind..].starts_with(',') {
        return Some(key..end + behind + 1);
    }
    let before = body[..key].trim_end();
    let start = if before.ends_with(',') { before.len() - 1 } else { key };
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_are_replaced_and_whole_ones_are_not() {
        let healed = |text: &str| without_lone_surrogates(text.to_owned());
        for (text, expected, count) in [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#, 0),
            (r#""cut \ud83d""#, r#""cut \ufffd""#, 1),
            (r#""\uDE00 x""#, r#""\ufffd x""#, 1),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#, 1),
            (r#""\\ud83d""#, r#""\\ud83d""#, 0),
            (r#""\u00e9\n""#, r#""\u00e9\n""#, 0),
        ] {
            let expected = expected.replace("\\ufffd", "\u{fffd}");
            assert_eq!(healed(text), (expected, count), "{text}");
        }
    }

    #[test]
    fn of_many_cache_marks_the_first_and_the_last_are_kept() {
        let block =
            |at: usize| format!(r#"{{"type":"text","text":"{at}","cache_control":{{"type":"ephemeral"}}}}"#);
        let blocks: Vec<String> = (0..6).map(block).collect();
        let odd = r#"{"type":"tool_use","id":"a","name":"f","input":{"cache_control":1}}"#;
        let body = format!(
            r#"{{"system":[{}],"messages":[{{"role":"user","content":[{},{odd}]}}]}}"#,
            block(9),
            blocks.join(",")
        );
        let mut report = Report::default();
        let healed = healed(Dialect::Messages, body, &mut report);
        assert!(Document::parse(healed.as_str()).is_ok(), "{healed}");
        assert_eq!(healed.matches(r#""cache_control":{"#).count(), 4, "{healed}");
        assert!(
            healed.contains(r#""text":"9","cache_control""#)
                && healed.contains(r#""text":"5","cache_control""#)
        );
        assert!(healed.contains(r#""text":"0"}"#) && healed.contains(r#""input":{"cache_control":1}"#));
        assert_eq!(report.count(Action::Repaired), 1);
    }

    #[test]
    fn a_cache_mark_with_escapes_in_its_key_is_left_out_alone() {
        let block = |at: usize, key: &str| {
            format!(r#"{{"{key}":{{"type":"ephemeral"}},"type":"text","text":"{at}"}}"#)
        };
        let keys = [
            "cache_control",
            "cache_control",
            "c\\u0061che_control",
            "cache_control",
            "cache_control",
            "cache_control",
        ];
        let blocks: Vec<String> = keys.iter().enumerate().map(|(at, key)| block(at, key)).collect();
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{}]}}]}}"#, blocks.join(","));
        let healed = healed(Dialect::Messages, body, &mut Report::default());
        let document = Document::parse(healed.as_str()).unwrap();
        let content = list(document.root(), "messages")[0].field("content").unwrap();
        let left: Vec<_> = content
            .items()
            .map(|block| (block.field("text").is_some(), block.field(CACHE_MARK).is_some()))
            .collect();
        assert_eq!(left, [true, false, false, true, true, true].map(|marked| (true, marked)), "{healed}");
    }
}
