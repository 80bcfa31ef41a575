//! One call and its result, as a brief tells them.
//!
//! A heading that says what the tool was used on, lines in brackets that say how it stands, and what was said
//! in fences. What is cut is cut in the middle, between characters.

use super::fence::push_fenced;
use super::{BriefOptions, language};
use crate::plan::{self, Argument, Told, ToolKind};
use crate::{Action, Call, Content, Entry, Input, Media, Outcome, Part, Return, joined_text};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEADING_CHARS_MAX: usize = 160;
const INLINE_CHARS_MAX: usize = 200;

/// What became of a pair, for the report.
pub(super) type Became = (Action, String);

/// Tells the pairs of a history.
pub(super) struct Telling<'a> {
    entries: &'a [Entry],
    pairs: &'a [Told],
    options: &'a BriefOptions<'a>,
    /// The most characters of one result.
    chars_max: usize,
    /// How many pairs each one supersedes.
    supersedes: BTreeMap<usize, usize>,
}

impl<'a> Telling<'a> {
    pub(super) fn new(
        entries: &'a [Entry],
        pairs: &'a [Told],
        options: &'a BriefOptions<'a>,
        chars_max: usize,
    ) -> Self {
        let mut supersedes = BTreeMap::new();
        for by in pairs.iter().filter_map(|pair| pair.superseded_by) {
            *supersedes.entry(by).or_default() += 1;
        }
        Self { entries, pairs, options, chars_max, supersedes }
    }

    /// Says whether a pair is our own affair: what was recalled stands in the history already.
    pub(super) fn is_hidden(&self, at: usize) -> bool {
        let pair = &self.pairs[at];
        pair.call.into_iter().chain(pair.result).any(|at| self.entries[at].is_hidden())
    }

    /// Tells a pair, and what became of it.
    pub(super) fn item(&self, at: usize) -> (String, Became) {
        let pair = &self.pairs[at];
        let mut item = String::new();
        let call = pair.call.and_then(|call| self.entries[call].as_call());
        let told_whole = self.push_heading(&mut item, pair, call);
        for mark in self.marks(at) {
            let _ = writeln!(item, "[{mark}]");
        }
        let mut cut = 0;
        if let Some(call) = call {
            cut += self.push_input(&mut item, pair, call, told_whole);
        }
        let returned = pair.result.and_then(|result| self.entries[result].as_return());
        if let Some(returned) = returned {
            cut += self.push_result(&mut item, pair, returned);
        }
        let became = match cut {
            0 => (Action::Translated, "told in the brief".to_owned()),
            cut => (Action::Shortened, format!("told in the brief, {cut} characters cut")),
        };
        (item, became)
    }

    /// Tells that there is no room for a pair.
    pub(super) fn left_out(&self, at: usize) -> (String, Became) {
        let pair = &self.pairs[at];
        let mut item = String::new();
        let call = pair.call.and_then(|call| self.entries[call].as_call());
        self.push_heading(&mut item, pair, call);
        let returned = pair.result.and_then(|result| self.entries[result].as_return());
        let chars = returned.map_or(0, |returned| joined_text(&returned.parts).chars().count());
        let _ = writeln!(item, "[left out: {chars} characters{}]", self.how(pair));
        (item, (Action::Dropped, format!("the brief has no room for its {chars} characters")))
    }

    /// Appends the heading; says whether it names what the tool was used on in full.
    fn push_heading(&self, item: &mut String, pair: &Told, call: Option<&Call>) -> bool {
        let name = call.map_or("a result without its call", |call| call.name.as_str());
        let subject = match (pair.kind, &pair.key) {
            (ToolKind::Read | ToolKind::Write | ToolKind::Command, Some(key)) => key.as_str(),
            _ => name,
        };
        let line = subject.lines().next().unwrap_or_default().trim_end();
        let clipped: String = line.chars().take(HEADING_CHARS_MAX).collect();
        let is_whole = clipped == subject;
        let _ = writeln!(item, "### {clipped}{}", if is_whole { "" } else { "..." });
        is_whole
    }

    /// Returns what there is to know about a pair before one reads it.
    fn marks(&self, at: usize) -> Vec<String> {
        let pair = &self.pairs[at];
        let mut marks = Vec::new();
        let returned = pair.result.and_then(|result| self.entries[result].as_return());
        marks.extend(match returned.map(|returned| returned.outcome) {
            None => Some("interrupted: no result was recorded, and whether the tool ran is not known".into()),
            Some(Outcome::Ok) => None,
            Some(Outcome::Error) => Some("failed".to_owned()),
            Some(Outcome::Denied) => Some("denied: the call was not permitted".to_owned()),
            Some(Outcome::Interrupted) => Some("interrupted before it was through".to_owned()),
            Some(Outcome::Unknown) => Some("outcome unknown: nobody knows whether the tool ran".to_owned()),
        });
        if pair.failed && self.was_done_later(at) {
            marks.push("superseded: the same was done later, with success".to_owned());
        }
        if pair.stale {
            marks.push("stale: the file was changed after this was read".to_owned());
        }
        if let Some(earlier) = self.supersedes.get(&at) {
            let what = match pair.kind {
                ToolKind::Write => "changes to this file",
                ToolKind::Command => "runs",
                ToolKind::Read => "reads",
                ToolKind::Search | ToolKind::Other => "such calls",
            };
            marks.push(format!("the last of {} {what}; the earlier ones are superseded", earlier + 1));
        }
        marks
    }

    fn was_done_later(&self, at: usize) -> bool {
        let pair = &self.pairs[at];
        let same = |later: &Told| later.kind == pair.kind && later.key == pair.key;
        let is_done = |later: &Told| later.result.is_some() && !later.failed;
        pair.key.is_some() && self.pairs[at + 1..].iter().any(|later| same(later) && is_done(later))
    }

    /// Appends what the call was given, as far as the heading does not say it; returns how much was cut.
    fn push_input(&self, item: &mut String, pair: &Told, call: &Call, told_whole: bool) -> usize {
        let text = call.input.text();
        let arguments = match (&call.input, plan::strings(call)) {
            (Input::Arguments(_), Some(arguments)) => arguments,
            (_, _) if pair.kind == ToolKind::Write => return self.push_cut(item, pair, text, "diff"),
            (_, _) if pair.kind == ToolKind::Command && told_whole => return 0,
            (_, _) if text.is_empty() => return 0,
            _ => return self.push_cut(item, pair, text, ""),
        };
        if pair.kind == ToolKind::Write {
            return self.push_change(item, pair, call, &arguments);
        }
        let says_it_all = matches!(pair.kind, ToolKind::Read | ToolKind::Command)
            && told_whole
            && pair.key.is_some()
            && has_one_member(text, &arguments);
        if says_it_all || is_empty_object(text) {
            return 0;
        }
        if text.chars().count() <= INLINE_CHARS_MAX && !text.contains(['`', '\n', '\r']) {
            let _ = writeln!(item, "Arguments: `{text}`");
            return 0;
        }
        self.push_cut(item, pair, text, "json")
    }

    /// Appends the arguments of a change: what is text among them in fences of its own, as it would stand in the
    /// file.
    fn push_change(&self, item: &mut String, pair: &Told, call: &Call, arguments: &[Argument]) -> usize {
        let text = call.input.text();
        let is_key = |argument: &&Argument| pair.key.as_deref() == Some(argument.value.as_str());
        let shown: Vec<&Argument> = arguments.iter().filter(|argument| !is_key(argument)).collect();
        let language = pair.key.as_deref().map_or("", language::of_file);
        let skeleton = skeleton(text, arguments);
        let besides = skeleton.replace("\"...\"", "");
        if besides.contains("true") || besides.contains(|c: char| c.is_ascii_digit()) {
            let _ = writeln!(item, "Arguments: `{}`", skeleton.replace(['`', '\n', '\r'], " "));
        }
        let mut cut = 0;
        for argument in shown {
            let _ = writeln!(item, "{}:", argument.name.replace(['\n', '\r'], " "));
            cut += self.push_cut(item, pair, &argument.value, language);
        }
        cut
    }

    /// Appends what the tool said; returns how much was cut.
    fn push_result(&self, item: &mut String, pair: &Told, returned: &Return) -> usize {
        if pair.kind == ToolKind::Write {
            item.push_str("Result:\n");
        }
        for part in returned.parts.iter().filter(|part| part.as_text().is_none()) {
            let _ = writeln!(item, "[{}{}]", named(part), self.how(pair));
        }
        let text = joined_text(&returned.parts);
        if text.is_empty() {
            if returned.parts.iter().all(|part| part.as_text().is_some()) {
                item.push_str("[empty result]\n");
            }
            return 0;
        }
        let unreadable = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
        if unreadable > 0 {
            let _ = writeln!(item, "[{unreadable} characters stand for bytes that were not UTF-8]");
        }
        let language = match pair.kind {
            ToolKind::Read => pair.key.as_deref().map_or("", language::of_file),
            _ => "",
        };
        if pair.kind != ToolKind::Command {
            return self.push_cut(item, pair, &text, language);
        }
        let (plain, sequences) = without_sequences(&text);
        if sequences > 0 {
            let _ =
                writeln!(item, "[{sequences} control sequences for a terminal left out{}]", self.how(pair));
        }
        self.push_cut(item, pair, &plain, language)
    }

    /// Appends a text in a fence, cut in the middle if it is too long; returns how much was cut.
    fn push_cut(&self, item: &mut String, pair: &Told, text: &str, language: &str) -> usize {
        let (most, length) = (self.chars_max, text.chars().count());
        if length <= most {
            push_fenced(item, text, language);
            return 0;
        }
        let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
        let (head, tail) = (at(most - most / 2), at(length - most / 2));
        let cut = length - most;
        let gap = format!("\n[.. {cut} characters cut{} ..]\n", self.how(pair));
        push_fenced(item, &[&text[..head], &gap, &text[tail..]].concat(), language);
        cut
    }

    /// Returns the words by which the model learns how to have something back.
    fn how(&self, pair: &Told) -> String {
        if self.options.recall { format!("; recall {}", pair.handle) } else { String::new() }
    }
}

/// Returns arguments with their strings left out.
fn skeleton(text: &str, arguments: &[Argument]) -> String {
    let mut skeleton = String::new();
    let mut from = 0;
    for argument in arguments {
        skeleton.push_str(&text[from..argument.raw.start]);
        skeleton.push_str("...");
        from = argument.raw.end;
    }
    skeleton.push_str(&text[from..]);
    skeleton
}

/// Says whether there is nothing in the arguments but one string.
fn has_one_member(text: &str, arguments: &[Argument]) -> bool {
    let [only] = arguments else { return false };
    let bare: String = skeleton(text, arguments).split_whitespace().collect();
    bare == format!("{{\"{}\":\"...\"}}", only.name)
}

fn is_empty_object(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace()).eq("{}".chars())
}

/// Names what is no text.
fn named(part: &Part) -> String {
    let media = |media: &Media| match media {
        Media::Url(url) => url.to_string(),
        Media::Inline { media_type, base64 } => format!("{media_type}, {} bytes", base64.len() / 4 * 3),
        Media::Plain(text) => format!("text, {} bytes", text.len()),
        Media::Stored(id) => format!("stored as {id}"),
    };
    match &part.content {
        Content::Image(image) => format!("image: {}", media(&image.media)),
        Content::File(file) => {
            format!("file {}: {}", file.name.as_deref().unwrap_or("without a name"), media(&file.media))
        }
        Content::Opaque { kind } => kind.to_string(),
        Content::Text(text) | Content::Refusal(text) => text.to_string(),
    }
}

/// Returns the output of a command without what only a terminal understands, and how many sequences that was.
fn without_sequences(text: &str) -> (String, usize) {
    let mut plain = String::with_capacity(text.len());
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + sequence_length(&rest[at..])..];
        count += 1;
    }
    plain.push_str(rest);
    (plain, count)
}

/// Returns how many bytes the escape sequence takes that `text` begins with.
fn sequence_length(text: &str) -> usize {
    let ends = |from: usize, is_end: fn(char) -> bool| {
        let end = text[from..].char_indices().find(|(_, c)| is_end(*c));
        end.map_or(text.len(), |(at, c)| from + at + c.len_utf8())
    };
    match text[1..].chars().next() {
        // Colours, and where the cursor goes.
        Some('[') => ends(2, |c| ('@'..='~').contains(&c) || c == '\n'),
        // Titles and links, up to a bell or another escape.
        Some(']') => {
            let end = ends(2, |c| matches!(c, '\u{7}' | '\u{1b}' | '\n'));
            if text[..end].ends_with('\u{1b}') && text[end..].starts_with('\\') { end + 1 } else { end }
        }
        Some(c) if c.is_ascii() && c != '\n' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::without_sequences;

    #[test]
    fn only_what_a_terminal_understands_is_taken_out() {
        for (text, plain, count) in [
            ("plain", "plain", 0),
            ("\u{1b}[31mred\u{1b}[0m", "red", 2),
            ("\u{1b}[2K\rdone", "\rdone", 1),
            ("\u{1b}]0;title\u{7}x", "x", 1),
            ("\u{1b}]8;;http://a\u{1b}\\link", "link", 1),
            ("\u{1b}", "", 1),
            ("\u{1b}[31", "", 1),
            ("\u{1b}é", "é", 1),
            ("a\u{1b}cb", "ab", 1),
        ] {
            assert_eq!(without_sequences(text), (plain.to_owned(), count), "{text:?}");
        }
    }
}
