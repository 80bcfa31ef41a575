//! Answers, whole and streamed, and errors, in each dialect.

use super::{check, inputs, name};
use crate::pretty::pretty;
use std::fmt::Write as _;
use throughline_core::{Ask, Dialect, Frame, Text};
use throughline_wire::{
    Stamp, StreamDecoder, StreamEncoder, decode_error, decode_reply, decode_request, encode_error,
    encode_reply, status_of,
};

fn stamp() -> Stamp {
    Stamp {
        id: Text::from_static("0192f7"),
        created_at: 1_700_000_000,
        model: Some(Text::from_static("asked-for")),
        input_tokens: None,
    }
}

/// Returns a request of that dialect, which answers are encoded for.
fn ask(dialect: Dialect) -> Ask {
    let body = match dialect {
        Dialect::Chat => {
            r#"{"model":"asked-for","messages":[{"role":"user","content":"Go."}],"stream":true,"stream_options":{"include_usage":true}}"#
        }
        Dialect::Messages => {
            r#"{"model":"asked-for","max_tokens":64,"messages":[{"role":"user","content":"Go."}],"stream":true}"#
        }
        Dialect::Responses => r#"{"model":"asked-for","input":"Go.","stream":true}"#,
    };
    decode_request(dialect, body).unwrap()
}

fn shown_frames(frames: &[Frame]) -> String {
    frames.iter().fold(String::new(), |mut shown, frame| {
        let _ = writeln!(shown, "{frame:?}");
        shown
    })
}

fn shown_stream(bytes: &[u8], from: Dialect) -> String {
    let mut frames = Vec::new();
    let mut decoder = StreamDecoder::new(from);
    decoder.feed(bytes, &mut frames).unwrap();
    decoder.finish(&mut frames);
    let mut shown = shown_frames(&frames);
    for to in Dialect::ALL {
        let _ = writeln!(shown, "\n=== {to}");
        let mut encoder = StreamEncoder::new(to, stamp(), &ask(to));
        let mut events = Vec::new();
        frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut events));
        for event in events {
            let _ = writeln!(shown, "{} {}", event.name.unwrap_or("-"), event.data);
        }
    }
    shown
}

#[test]
fn streams() {
    for from in Dialect::ALL {
        for input in inputs("streams", from) {
            let bytes = std::fs::read(&input).unwrap();
            check(&input, &name(&input), &shown_stream(&bytes, from));
        }
    }
}

#[test]
fn replies() {
    for from in Dialect::ALL {
        for input in inputs("responses", from) {
            let body = std::fs::read_to_string(&input).unwrap();
            let mut reply = decode_reply(from, body.as_str()).unwrap_or_else(|error| panic!("{error}"));
            let mut shown = format!("{:?}\n{:?}\n", reply.ending, reply.usage);
            let _ = writeln!(
                shown,
                "\n=== {from}, as it came\n{}",
                pretty(&encode_reply(from, &reply, &stamp(), &ask(from)))
            );
            reply.fields = None;
            for to in Dialect::ALL {
                let _ =
                    writeln!(shown, "\n=== {to}\n{}", pretty(&encode_reply(to, &reply, &stamp(), &ask(to))));
            }
            check(&input, &name(&input), &shown);
        }
    }
}

#[test]
fn errors() {
    for from in Dialect::ALL {
        for input in inputs("errors", from) {
            let body = std::fs::read_to_string(&input).unwrap();
            let status: u16 = name(&input)[..3].parse().unwrap();
            let failure = decode_error(from, status, &body);
            let mut shown = format!("{failure:?}\n");
            for to in Dialect::ALL {
                let _ = writeln!(
                    shown,
                    "\n=== {to} {}\n{}",
                    status_of(failure.kind),
                    pretty(&encode_error(to, &failure))
                );
            }
            check(&input, &name(&input), &shown);
        }
    }
}
