//! Server-Sent Events: bytes to events, and back.
//!
//! Reading follows the WHATWG rules and does not care how the bytes were cut: inside a CRLF, inside a
//! character, anywhere. Each byte is looked at once, however slowly an event arrives, and what is held for an
//! unfinished event is bounded. Three concessions to real servers: a last event without its blank line is
//! given out at the end, invalid UTF-8 is replaced and noted instead of ending the stream, and `id` and
//! `retry` are ignored, since nobody reconnects to a model in the middle of its answer.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;

use memchr::{memchr, memchr2};
use throughline_core::Text;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// What the `event` line said, if there was one.
    pub name: Option<Text>,
    /// The `data` lines, joined by newlines.
    pub data: Text,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is larger than the decoder may hold.
    #[error("an event of the stream is larger than {limit} bytes")]
    TooLarge {
        /// How much the decoder may hold.
        limit: usize,
    },
}

/// Turns bytes into events.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    state: State,
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    name: String,
    data: String,
    /// Whether there was a data line: an event whose only one is empty is still an event.
    has_data: bool,
    ready: VecDeque<SseEvent>,
    replaced_invalid_utf8: bool,
}

/// Where in the stream the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the first line, which may begin with a byte order mark.
    FirstLine,
    /// In any other line.
    Line,
    /// Behind a carriage return, which ended a line; a newline here belongs to it.
    AfterReturn,
    /// Beyond the limit: what follows cannot be understood any more.
    Overflowed,
}

impl SseDecoder {
    /// Returns a decoder that holds at most about `limit` bytes of an unfinished event.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            state: State::FirstLine,
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            ready: VecDeque::new(),
            replaced_invalid_utf8: false,
        }
    }

    /// Takes the next bytes of the stream.
    ///
    /// After an error the events completed before it can still be taken, but nothing more can be fed.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.advance(rest)?;
        }
        Ok(())
    }

    /// Returns the next complete event, if there is one.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Ends the stream and returns what is left of it, one event per call.
    ///
    /// An event that lacks its blank line counts: some servers close the connection without one.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if self.state != State::Overflowed {
            let line = mem::take(&mut self.line);
            self.read_line(&line);
            self.end_event();
            self.state = State::FirstLine;
        }
        self.next_event()
    }

    /// Tells whether any text so far held bytes that are not UTF-8 and were replaced by U+FFFD.
    #[must_use]
    pub fn replaced_invalid_utf8(&self) -> bool {
        self.replaced_invalid_utf8
    }

    /// Consumes the bytes up to the next line end, or all of them, and returns the rest.
    fn advance<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], SseError> {
        match self.state {
            State::Overflowed => Err(SseError::TooLarge { limit: self.limit }),
            State::AfterReturn => {
                self.state = State::Line;
                Ok(bytes.strip_prefix(b"\n").unwrap_or(bytes))
            }
            State::FirstLine | State::Line => {
                let end = memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
                let (part, rest) = bytes.split_at(end);
                self.check_limit(part.len())?;
                let Some((terminator, rest)) = rest.split_first() else {
                    self.line.extend_from_slice(part);
                    return Ok(rest);
                };
                self.end_line(part);
                self.state = if *terminator == b'\r' { State::AfterReturn } else { State::Line };
                Ok(rest)
            }
        }
    }

    fn check_limit(&mut self, incoming: usize) -> Result<(), SseError> {
        if self.name.len() + self.data.len() + self.line.len() + incoming <= self.limit {
            return Ok(());
        }
        self.state = State::Overflowed;
        (self.line, self.name, self.data) = Default::default();
        Err(SseError::TooLarge { limit: self.limit })
    }

    /// Reads the line that ends with `part`; only one that came in several parts is copied together.
    fn end_line(&mut self, part: &[u8]) {
        if self.line.is_empty() {
            return self.read_line(part);
        }
        let mut line = mem::take(&mut self.line);
        line.extend_from_slice(part);
        self.read_line(&line);
        line.clear();
        self.line = line;
    }

    fn read_line(&mut self, line: &[u8]) {
        let line = match self.state {
            State::FirstLine => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            _ => line,
        };
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.add_data(value),
            b"event" => self.set_name(value),
            // A comment (an empty field name), `id`, `retry`, or something unknown.
            _ => {}
        }
    }

    fn add_data(&mut self, value: &[u8]) {
        let value = self.decode(value);
        if self.has_data {
            self.data.push('\n');
        }
        self.data.push_str(&value);
        self.has_data = true;
    }

    fn set_name(&mut self, value: &[u8]) {
        let value = self.decode(value);
        self.name.clear();
        self.name.push_str(&value);
    }

    fn end_event(&mut self) {
        if self.has_data {
            let name = (!self.name.is_empty()).then(|| Text::from(self.name.as_str()));
            self.ready.push_back(SseEvent { name, data: Text::from(self.data.as_str()) });
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }

    fn decode<'b>(&mut self, value: &'b [u8]) -> Cow<'b, str> {
        let text = String::from_utf8_lossy(value);
        self.replaced_invalid_utf8 |= matches!(text, Cow::Owned(_));
        text
    }
}

/// Appends one event to `out`.
///
/// Data of several lines becomes several `data` lines, which a reader joins again with newlines, whatever
/// ended the lines here. A name has one line only: what follows its first would be read as fields.
pub fn write_event(out: &mut String, name: Option<&str>, data: &str) {
    if let Some(name) = name {
        let (name, _) = split_line(name);
        push_line(out, "event: ", name);
    }
    let mut rest = Some(data);
    while let Some(lines) = rest {
        let (line, after) = split_line(lines);
        push_line(out, "data: ", line);
        rest = after;
    }
    out.push('\n');
}

fn push_line(out: &mut String, field: &str, value: &str) {
    out.push_str(field);
    out.push_str(value);
    out.push('\n');
}

/// Splits off the first line; there is no rest if nothing ends that line.
fn split_line(text: &str) -> (&str, Option<&str>) {
    let Some(end) = memchr2(b'\n', b'\r', text.as_bytes()) else { return (text, None) };
    let (line, rest) = text.split_at(end);
    (line, rest.strip_prefix("\r\n").or_else(|| rest.get(1..)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(name: Option<&str>, data: &str) -> SseEvent {
        SseEvent { name: name.map(Text::from), data: Text::from(data) }
    }

    /// Feeds the parts and returns every event, the unterminated last one included.
    fn decode<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut events = Vec::new();
        for part in parts {
            decoder.feed(part).expect("within the limit");
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        events.extend(std::iter::from_fn(|| decoder.finish()));
        events
    }

    fn decode_whole(stream: &str) -> Vec<SseEvent> {
        decode([stream.as_bytes()])
    }

    #[test]
    fn an_event_has_a_name_and_data() {
        let events = decode_whole("event: delta\ndata: {\"a\":1}\n\ndata:[DONE]\n\n");
        assert_eq!(events, [event(Some("delta"), "{\"a\":1}"), event(None, "[DONE]")]);
    }

    #[test]
    fn only_one_space_after_the_colon_is_dropped() {
        assert_eq!(decode_whole("data:  x \n\n"), [event(None, " x ")]);
    }

    #[test]
    fn data_lines_are_joined_by_newlines() {
        assert_eq!(decode_whole("data: a\ndata\ndata: b\n\n"), [event(None, "a\n\nb")]);
    }

    #[test]
    fn all_three_line_ends_are_line_ends() {
        let expected = [event(Some("e"), "a\nb"), event(None, "c")];
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["event: e", "data: a", "data: b", "", "data: c", "", ""].join(end);
            assert_eq!(decode_whole(&stream), expected, "{end:?}");
        }
    }

    #[test]
    fn a_carriage_return_ends_an_event_before_the_newline_arrives() {
        let mut decoder = SseDecoder::new(100);
        decoder.feed(b"data: a\r\n\r").expect("small");
        assert_eq!(decoder.next_event(), Some(event(None, "a")));
        decoder.feed(b"\ndata: b\r\n\r\n").expect("small");
        assert_eq!(decoder.next_event(), Some(event(None, "b")));
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn comments_and_other_fields_are_ignored() {
        assert_eq!(decode_whole(": ping\nid: 7\nretry: 10\nfoo: x\ndata: a\n\n"), [event(None, "a")]);
    }

    #[test]
    fn an_event_without_data_is_none_and_its_name_is_forgotten() {
        assert_eq!(decode_whole("event: ping\n\ndata: a\n\n"), [event(None, "a")]);
        assert_eq!(decode_whole("event: e\ndata:\n\n"), [event(Some("e"), "")]);
    }

    #[test]
    fn an_empty_name_is_no_name() {
        assert_eq!(decode_whole("event: e\nevent:\ndata: a\n\n"), [event(None, "a")]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_only_at_the_start() {
        assert_eq!(decode_whole("\u{feff}data: a\n\n\u{feff}data: b\n\n"), [event(None, "a")]);
    }

    #[test]
    fn the_end_completes_an_event_without_its_blank_line() {
        assert_eq!(decode_whole("data: a\n\ndata: b"), [event(None, "a"), event(None, "b")]);
        assert_eq!(decode_whole("data: a\r"), [event(None, "a")]);
    }

    #[test]
    fn invalid_utf8_is_replaced_and_noted() {
        let mut decoder = SseDecoder::new(100);
        decoder.feed("data: é".as_bytes()).expect("small");
        decoder.feed(b"\n\n").expect("small");
        assert!(!decoder.replaced_invalid_utf8());
        decoder.feed(b"data: a\xffb\n\n").expect("small");
        assert_eq!(decoder.next_event(), Some(event(None, "é")));
        assert_eq!(decoder.next_event(), Some(event(None, "a\u{fffd}b")));
        assert!(decoder.replaced_invalid_utf8());
    }

    #[test]
    fn an_event_beyond_the_limit_ends_the_stream() {
        let too_large = Err(SseError::TooLarge { limit: 10 });
        let mut decoder = SseDecoder::new(10);
        assert_eq!(decoder.feed(b"data: 1\n\ndata: 2345\n\ndata: 23456\n\n"), too_large);
        assert_eq!(decoder.next_event(), Some(event(None, "1")));
        assert_eq!(decoder.feed(b"data: 3\n\n"), too_large);
        assert_eq!(decoder.finish(), Some(event(None, "2345")));
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn an_endless_line_and_endless_lines_are_both_bounded() {
        let mut decoder = SseDecoder::new(1000);
        assert!((0..2000).any(|_| decoder.feed(b"x").is_err()));
        let mut decoder = SseDecoder::new(1000);
        assert!((0..2000).any(|_| decoder.feed(b"data\n").is_err()));
    }

    #[test]
    fn an_event_is_written_with_line_feeds_only() {
        let mut out = String::new();
        write_event(&mut out, Some("delta"), "{}");
        write_event(&mut out, None, "a\nb\r\nc\rd");
        write_event(&mut out, Some("x\ndata: forged"), "");
        assert_eq!(
            out,
            "event: delta\ndata: {}\n\ndata: a\ndata: b\ndata: c\ndata: d\n\nevent: x\ndata: \n\n"
        );
    }

    /// Streams made of the things that matter, so that random cuts fall into them.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop::sample::select(vec![
            &b"data: "[..],
            b"data:",
            b"data",
            b"event: ",
            b"event",
            b"id: 1",
            b":",
            b" ",
            b"x",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"\r\n\r\n",
            b"\xef\xbb\xbf",
            "é😀".as_bytes(),
            b"\xff",
            b"\xf0\x9f",
        ]);
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_cut_of_a_stream_gives_the_same_events(
            stream in streams(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let whole = decode([&stream[..]]);
            prop_assert_eq!(&decode(cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]])), &whole);
            prop_assert_eq!(&decode(stream.chunks(1)), &whole);
        }

        #[test]
        fn a_stream_within_the_limit_is_so_however_it_is_cut(stream in streams(), limit in 0_usize..60) {
            let mut whole = SseDecoder::new(limit);
            let mut bytewise = SseDecoder::new(limit);
            let outcome = whole.feed(&stream);
            prop_assert_eq!(stream.chunks(1).try_for_each(|byte| bytewise.feed(byte)), outcome);
            let events = |mut decoder: SseDecoder| std::iter::from_fn(move || decoder.finish()).collect::<Vec<_>>();
            prop_assert_eq!(events(bytewise), events(whole));
        }

        #[test]
        fn what_is_written_is_read_back(
            name in prop::option::of("[a-z_.]{1,12}"),
            data in "([ -~é😀]|\n|\r\n|\r){0,60}",
        ) {
            let mut out = String::new();
            write_event(&mut out, name.as_deref(), &data);
            let data = data.replace("\r\n", "\n").replace('\r', "\n");
            prop_assert_eq!(decode_whole(&out), [event(name.as_deref(), &data)]);
        }
    }
}
