//! Our own secrets, taken out of what a backend says before a client, the record or the log has it.
//!
//! A backend knows the key that it was sent, and some show it: in the text of an error, in a debug field, in what a
//! model was made to repeat. What is looked for are the configured secrets themselves, whole, of [`LENGTH_MIN`] bytes
//! or more: a shorter one would tear holes into texts that have nothing to do with it. A secret is found however JSON
//! escapes it, and also when a stream brings it in pieces: an event whose text ends like the beginning of a secret
//! waits for the one that shows whether the rest follows.

use crate::privacy::json::{escaped, next_is, string_end, unescaped};
use crate::secret::Secret;
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use throughline_core::Text;
use throughline_wire::sse::SseEvent;

/// The shortest secret that is looked for.
pub const LENGTH_MIN: usize = 8;

/// What stands where a secret stood.
pub const MARK: &str = "[redacted:credential]";

/// An event waits if its text ends with so many bytes of the beginning of a secret; fewer give nothing away, and are
/// too common to wait for.
const HELD_LENGTH_MIN: usize = 4;

/// So many events wait at most, of so many bytes.
const HELD_EVENTS_MAX: usize = 64;
const HELD_BYTES_MAX: usize = 256 << 10;

/// How deep JSON within strings of JSON is looked into.
const DEPTH_MAX: usize = 4;

/// What is looked for.
#[derive(Clone, Default)]
pub struct EchoFilter(Arc<[Needle]>);

struct Needle {
    finder: Finder<'static>,
}

impl fmt::Debug for EchoFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EchoFilter").field("secrets", &self.0.len()).finish()
    }
}

impl EchoFilter {
    /// Returns a filter for these secrets, as they are configured; a scheme in front of one is no part of it.
    #[must_use]
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut texts: Vec<&str> = Vec::new();
        for secret in secrets {
            let text = secret.expose().trim();
            let bare = ["Bearer ", "bearer ", "Basic ", "basic "].iter().find_map(|it| text.strip_prefix(it));
            texts.push(bare.unwrap_or(text).trim());
        }
        texts.retain(|text| text.len() >= LENGTH_MIN && text.is_ascii());
        // The longest first, so that one which begins like another goes whole.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
        Self(texts.into_iter().map(Needle::new).collect())
    }

    /// Returns the filter with further secrets.
    #[must_use]
    pub fn with(&self, further: impl IntoIterator<Item = Secret>) -> Self {
        let known = self.0.iter().filter_map(|needle| std::str::from_utf8(needle.bytes()).ok());
        let all: Vec<Secret> = known.map(Secret::new).chain(further).collect();
        Self::new(&all)
    }

    /// Says whether there is anything to look for.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns bytes without the secrets.
    #[must_use]
    pub fn clean(&self, bytes: Vec<u8>) -> Vec<u8> {
        if !self.is_active() {
            return bytes;
        }
        let bytes = match self.without_plain(&bytes) {
            Some(cleaned) => cleaned,
            None => bytes,
        };
        if memchr(b'\\', &bytes).is_none() {
            return bytes;
        }
        match std::str::from_utf8(&bytes).map(|text| self.without_escaped(text, 0)) {
            Ok(Some(cleaned)) => cleaned.into_bytes(),
            Ok(None) | Err(_) => bytes,
        }
    }

    /// Returns a text without the secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.cleaned(text, 0) {
            Some(cleaned) => Cow::Owned(cleaned),
            None => Cow::Borrowed(text),
        }
    }

    fn cleaned(&self, text: &str, depth: usize) -> Option<String> {
        if !self.is_active() {
            return None;
        }
        let plain = self.without_plain(text.as_bytes());
        // What is replaced is ASCII, so what is left is a text.
        let plain = plain.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let current = plain.as_deref().unwrap_or(text);
        if memchr(b'\\', current.as_bytes()).is_none() {
            return plain;
        }
        self.without_escaped(current, depth).or(plain)
    }

    /// Replaces the secrets that stand there as they are; nothing if there are none.
    fn without_plain(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut cleaned: Option<Vec<u8>> = None;
        for needle in &*self.0 {
            let current = cleaned.as_deref().unwrap_or(bytes);
            let mut copied = 0;
            let mut next = Vec::new();
            for at in needle.finder.find_iter(current) {
                next.extend_from_slice(&current[copied..at]);
                next.extend_from_slice(MARK.as_bytes());
                copied = at + needle.len();
            }
            if copied > 0 {
                next.extend_from_slice(&current[copied..]);
                cleaned = Some(next);
            }
        }
        cleaned
    }

    /// Replaces the secrets in strings of JSON that are written with escapes; nothing if there are none.
    fn without_escaped(&self, text: &str, depth: usize) -> Option<String> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let mut cleaned = String::new();
        let mut copied = 0;
        for content in strings(text).map(|string| string.content) {
            if let Cow::Owned(meant) = unescaped(&text[content.clone()])
                && let Some(changed) = self.cleaned(&meant, depth + 1)
            {
                cleaned.push_str(&text[copied..content.start]);
                cleaned.push_str(&escaped(&changed));
                copied = content.end;
            }
        }
        (copied > 0).then(|| {
            cleaned.push_str(&text[copied..]);
            cleaned
        })
    }

    /// Returns where a secret stands in a text, the first of them.
    fn find(&self, text: &str) -> Option<Range<usize>> {
        let found = self.0.iter().filter_map(|needle| {
            needle.finder.find(text.as_bytes()).map(|start| start..start + needle.len())
        });
        found.min_by_key(|range| range.start)
    }

    /// Returns how many bytes at the end of a text are the beginning of a secret and not the whole of it.
    fn begun(&self, text: &str) -> usize {
        let mut longest = 0;
        for needle in &*self.0 {
            let window = &text.as_bytes()[text.len().saturating_sub(needle.len() - 1)..];
            let first = needle.bytes()[0];
            let start = memchr_iter(first, window).find(|at| needle.bytes().starts_with(&window[*at..]));
            longest = longest.max(start.map_or(0, |at| window.len() - at));
        }
        longest
    }
}

impl Needle {
    fn new(text: &str) -> Self {
        Self { finder: Finder::new(text).into_owned() }
    }

    fn bytes(&self) -> &[u8] {
        self.finder.needle()
    }

    fn len(&self) -> usize {
        self.finder.needle().len()
    }
}

/// Takes secrets out of the events of one stream.
#[derive(Debug, Default)]
pub struct EchoStream {
    filter: EchoFilter,
    /// Events that wait, with their numbers.
    held: VecDeque<(u64, SseEvent)>,
    held_bytes: usize,
    /// Texts that end like the beginning of a secret.
    begun: Vec<Begun>,
    /// The number of the next event.
    next: u64,
}

/// A text that grows from event to event, and ends like the beginning of a secret.
#[derive(Debug)]
struct Begun {
    /// Which text it is.
    place: u64,
    /// That beginning.
    tail: String,
    /// How many bytes of it, the last ones, are in events that wait.
    held: usize,
    /// The first event that waits for it.
    from: Option<u64>,
}

impl EchoStream {
    /// Returns what takes out the secrets of that filter.
    #[must_use]
    pub fn new(filter: EchoFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: SseEvent) {
        let number = self.next;
        self.next += 1;
        let mut event = event;
        if self.filter.is_active() {
            event.name = event.name.map(|name| self.cleaned(name));
            event.data = self.cleaned(event.data);
            if event.data.starts_with(['{', '[']) {
                self.follow(number, &mut event);
            }
        }
        self.held_bytes += event.data.len();
        self.held.push_back((number, event));
        if self.held.len() > HELD_EVENTS_MAX || self.held_bytes > HELD_BYTES_MAX {
            // What is given out cannot be taken back; what follows still can.
            self.begun.iter_mut().for_each(|begun| (begun.held, begun.from) = (0, None));
        }
    }

    /// Returns the next event that waits for nothing any more.
    pub fn pop(&mut self) -> Option<SseEvent> {
        let waits_from = self.begun.iter().filter_map(|begun| begun.from).min().unwrap_or(u64::MAX);
        self.held.front().filter(|(number, _)| *number < waits_from)?;
        self.release()
    }

    /// Returns the next event, after the last has come.
    pub fn finish(&mut self) -> Option<SseEvent> {
        self.begun.clear();
        self.release()
    }

    fn release(&mut self) -> Option<SseEvent> {
        let (_, event) = self.held.pop_front()?;
        self.held_bytes -= event.data.len();
        Some(event)
    }

    fn cleaned(&self, text: Text) -> Text {
        match self.filter.text(&text) {
            Cow::Owned(cleaned) => cleaned.into(),
            Cow::Borrowed(_) => text,
        }
    }

    /// Looks at every string of an event: whether it completes a secret, and whether it begins one.
    fn follow(&mut self, number: u64, event: &mut SseEvent) {
        let data = event.data.clone();
        let mut changed: Option<String> = None;
        // From behind, so that what comes before keeps its place in the changed text.
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for string in strings(&data) {
            let content = &data[string.content.clone()];
            let known = self.begun.iter().position(|begun| begun.place == string.place);
            if known.is_none()
                && self.filter.begun(content) == 0
                && memchr(b'\\', content.as_bytes()).is_none()
            {
                continue;
            }
            let text = unescaped(content);
            if let Some(rest) = self.grow(number, string.place, &text, known) {
                edits.push((string.content, rest));
            }
        }
        for (content, text) in edits.into_iter().rev() {
            changed.get_or_insert_with(|| data.to_string()).replace_range(content, &escaped(&text));
        }
        if let Some(changed) = changed {
            event.data = changed.into();
        }
    }

    /// Lets a text grow by a piece; returns what is left of the piece if it completes a secret.
    fn grow(&mut self, number: u64, place: u64, piece: &str, known: Option<usize>) -> Option<String> {
        let before = known.map(|at| self.begun.swap_remove(at));
        let mut before = before.unwrap_or(Begun { place, tail: String::new(), held: 0, from: None });
        let mut cleaned = None;
        let mut piece = Cow::Borrowed(piece);
        let joined = format!("{}{piece}", before.tail);
        if let Some(found) = self.filter.find(&joined).filter(|found| found.start < before.tail.len()) {
            // The mark stands where the secret began: in an event that waits, or else here.
            let is_marked = self.take_back(&before, before.tail.len() - found.start);
            let rest = &joined[found.end..];
            let left = if is_marked { rest.to_owned() } else { format!("{MARK}{rest}") };
            cleaned = Some(left.clone());
            piece = Cow::Owned(left);
            (before.tail, before.held, before.from) = (String::new(), 0, None);
        }
        let joined = format!("{}{piece}", before.tail);
        let length = self.filter.begun(&joined);
        if length > 0 {
            let older = length.saturating_sub(piece.len());
            let waits = length >= HELD_LENGTH_MIN;
            let held = if waits { older.min(before.held) + length.min(piece.len()) } else { 0 };
            let from = waits.then(|| before.from.filter(|_| older > 0).unwrap_or(number));
            let tail = joined[joined.len() - length..].to_owned();
            self.begun.push(Begun { place, tail, held, from });
        }
        cleaned
    }

    /// Takes the last bytes of a text back out of the events that wait; says whether the mark stands in one of them.
    fn take_back(&mut self, begun: &Begun, length: usize) -> bool {
        let mut left = length.min(begun.held);
        let is_marked = left > 0;
        for (_, event) in self.held.iter_mut().rev() {
            let data = event.data.clone();
            let pieces: Vec<JsonString> =
                strings(&data).filter(|string| string.place == begun.place).collect();
            for string in pieces.into_iter().rev() {
                if left == 0 {
                    return is_marked;
                }
                let text = unescaped(&data[string.content.clone()]).into_owned();
                let cut = left.min(text.len());
                left -= cut;
                let mark = if left == 0 { MARK } else { "" };
                let kept = format!("{}{mark}", &text[..text.len() - cut]);
                let mut changed = event.data.to_string();
                changed.replace_range(string.content, &escaped(&kept));
                self.held_bytes = self.held_bytes + changed.len() - event.data.len();
                event.data = changed.into();
            }
        }
        is_marked
    }
}

/// A string of JSON that is a value.
struct JsonString {
    /// Where its content stands, without the quotes.
    content: Range<usize>,
    /// What it is the text of: its field, and the numbers by which streams tell apart what grows side by side.
    place: u64,
}

/// The fields that number what grows side by side.
const INDICES: [&str; 4] = ["index", "output_index", "content_index", "summary_index"];

/// Returns the strings of a JSON text that are values, in their order. A text that is no JSON has some, or none.
fn strings(text: &str) -> impl Iterator<Item = JsonString> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut key = 0..0;
    let mut indices = [0_u64; INDICES.len()];
    std::iter::from_fn(move || {
        loop {
            at += memchr(b'"', bytes.get(at..)?)?;
            let end = string_end(bytes, at + 1).min(bytes.len());
            let content = (at + 1).min(end)..end;
            at = (end + 1).min(bytes.len());
            if !next_is(bytes, at, b':') {
                let place = place_of(&text[key.clone()], &indices);
                return Some(JsonString { content, place });
            }
            if let Some(which) = INDICES.iter().position(|name| *name == &text[content.clone()]) {
                indices[which] = number_after(bytes, at);
            }
            key = content;
        }
    })
}

fn place_of(key: &str, indices: &[u64]) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    indices.iter().fold(hash, |hash, index| (hash ^ index).wrapping_mul(0x0100_0000_01b3).rotate_left(7))
}

/// Returns the number that stands behind the colon, if one does.
fn number_after(bytes: &[u8], from: usize) -> u64 {
    let digits = bytes[from..].iter().skip_while(|byte| byte.is_ascii_whitespace() || **byte == b':');
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).take(18);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-abcdefgh-12345678";

    fn filter() -> EchoFilter {
        EchoFilter::new(&[Secret::new(KEY), Secret::new("short"), Secret::new("Basic dXNlcjpwYXNzd29yZA==")])
    }

    fn event(data: &str) -> SseEvent {
        SseEvent { name: None, data: data.into() }
    }

    /// Returns the data of events that came one after the other.
    fn passed(events: &[String]) -> Vec<String> {
        let mut stream = EchoStream::new(filter());
        let mut out = Vec::new();
        for data in events {
            stream.push(event(data));
            out.extend(std::iter::from_fn(|| stream.pop()));
        }
        out.extend(std::iter::from_fn(|| stream.finish()));
        out.into_iter().map(|event| event.data.to_string()).collect()
    }

    fn delta(index: usize, text: &str) -> String {
        format!(r#"{{"index":{index},"delta":{{"text":"{text}"}}}}"#)
    }

    #[test]
    fn a_secret_goes_however_it_is_written() {
        let escaped: String = KEY.chars().map(|c| format!("\\u{:04X}", c as u32)).collect();
        let twice = escaped.replace('\\', "\\\\");
        for (given, expected) in [
            (format!("plain {KEY}!"), format!("plain {MARK}!")),
            (format!("{KEY}{KEY}"), format!("{MARK}{MARK}")),
            (format!(r#"{{"a":"{escaped}"}}"#), format!(r#"{{"a":"{MARK}"}}"#)),
            (format!(r#"{{"a":"{{\"b\":\"{twice}\"}}"}}"#), format!(r#"{{"a":"{{\"b\":\"{MARK}\"}}"}}"#)),
            ("basic dXNlcjpwYXNzd29yZA==".to_owned(), format!("basic {MARK}")),
        ] {
            assert_eq!(String::from_utf8(filter().clean(given.into_bytes())).unwrap(), expected);
        }
        for given in ["short", "sk-abcdefgh-1234567", r#"{"a":"\u0073k-\n"}"#, "{\"", "\\"] {
            assert_eq!(filter().clean(given.as_bytes().to_vec()), given.as_bytes());
        }
        let mut odd = b"\xff\xfe ".to_vec();
        odd.extend_from_slice(KEY.as_bytes());
        assert_eq!(filter().clean(odd), [b"\xff\xfe ".as_slice(), MARK.as_bytes()].concat());
    }

    #[test]
    fn a_secret_in_pieces_of_any_size_goes() {
        for size in 1..KEY.len() {
            let pieces =
                KEY.as_bytes().chunks(size).map(|piece| delta(0, std::str::from_utf8(piece).unwrap()));
            let events: Vec<String> =
                std::iter::once(delta(0, "a ")).chain(pieces).chain([delta(0, " b")]).collect();
            let out = passed(&events);
            assert_eq!(out.len(), events.len());
            let said: String = out.iter().map(|data| &data[28..data.len() - 3]).collect();
            let (before, after) = said.split_once(MARK).unwrap_or_else(|| panic!("{size}: {said}"));
            assert!(before.len() < 2 + HELD_LENGTH_MIN && after == " b", "{size}: {said}");
        }
    }

    #[test]
    fn what_grows_side_by_side_is_told_apart() {
        let events = [delta(0, "sk-abcd"), delta(1, "other"), delta(0, "efgh-12345678"), delta(1, " text")];
        let out = passed(&events);
        assert_eq!(out, [delta(0, MARK), delta(1, "other"), delta(0, ""), delta(1, " text")]);
    }

    #[test]
    fn what_only_begins_like_a_secret_is_passed_on_in_order_and_whole() {
        let events =
            ["sk-abcdefgh", "-1234567", "x sk-abc", "sk-abcd", "", "\\\"é\\n"].map(|text| delta(0, text));
        assert_eq!(passed(&events), events);
        let many: Vec<String> = std::iter::once(delta(0, "sk-abcdefgh"))
            .chain((0..3 * HELD_EVENTS_MAX).map(|number| delta(1, &number.to_string())))
            .collect();
        assert_eq!(passed(&many), many);
        assert_eq!(passed(&["[DONE]".to_owned(), "{\"".to_owned(), "7".to_owned()]), ["[DONE]", "{\"", "7"]);
    }

    #[test]
    fn an_event_waits_only_for_what_may_be_a_secret() {
        let mut stream = EchoStream::new(filter());
        for text in ["a task", "sk-", "tokens"] {
            stream.push(event(&delta(0, text)));
            assert!(stream.pop().is_some(), "{text}");
        }
        stream.push(event(&delta(0, "sk-abc")));
        assert!(stream.pop().is_none());
    }
}
