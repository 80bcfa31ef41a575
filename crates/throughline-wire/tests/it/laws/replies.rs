//! Whole answers survive too: a reply written in any dialect and read again keeps its text, its calls and
//! how it ended; and an answer that goes back in its own dialect is the JSON that it came as.

#![expect(clippy::disallowed_methods, reason = "goldens are files")]

use super::answers::{Told, answers, ask, comparable, given, told};
use super::cases;
use super::texts::difference;
use proptest::prelude::*;
use std::fs;
use throughline_core::{Assembler, Content, Dialect, Ending, Frame, Kind, Reply, Stop};
use throughline_wire::json::Document;
use throughline_wire::{Stamp, decode_reply, encode_reply};

fn stamp() -> Stamp {
    Stamp { id: "1".into(), created_at: 1, model: None, input_tokens: None }
}

fn assembled(frames: &[Frame]) -> Reply {
    let mut assembler = Assembler::new(Dialect::Chat);
    frames.iter().for_each(|frame| assembler.handle_frame(frame));
    assembler.finish()
}

fn told_whole(reply: &Reply) -> Told {
    let mut told = Told {
        stopped: matches!(reply.ending, Ending::Stopped(_)),
        cut_short: matches!(reply.ending, Ending::Stopped(Stop::MaxTokens | Stop::ContextWindow)),
        ..Told::default()
    };
    for entry in &reply.entries {
        if let Kind::Called(call) = &entry.kind {
            told.calls.push((call.id.to_string(), call.name.to_string(), given(call.input.text())));
        }
        for part in entry.as_said().into_iter().flat_map(|said| &said.parts) {
            match &part.content {
                Content::Text(text) => {
                    told.said.push_str(text);
                    told.text.push_str(text);
                }
                Content::Refusal(text) => {
                    told.said.push_str(text);
                    told.refused.push_str(text);
                }
                _ => {}
            }
        }
    }
    told
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn any_reply_survives_in_every_dialect(frames in answers()) {
        let reply = assembled(&frames);
        let streamed = told(&frames);
        prop_assert_eq!(&streamed.calls, &told_whole(&reply).calls);
        for dialect in Dialect::ALL {
            let body = encode_reply(dialect, &reply, &stamp(), &ask(dialect));
            let again = decode_reply(dialect, body.as_str()).expect("an answer of ours");
            let (mut before, mut after) = (told_whole(&reply), told_whole(&again));
            comparable(dialect, &mut before);
            comparable(dialect, &mut after);
            after.cut_short &= before.cut_short;
            prop_assert_eq!(before, after, "{}: {}", dialect, body);
        }
    }
}

#[test]
fn a_golden_answer_goes_back_as_it_came() {
    for dialect in Dialect::ALL {
        let folder = format!("{}/tests/golden/responses/{dialect}", env!("CARGO_MANIFEST_DIR"));
        for file in fs::read_dir(folder).expect("a folder of answers") {
            let path = file.expect("a file").path();
            let body = fs::read_to_string(&path).expect("an answer");
            let Ok(before) = Document::parse(body.as_str()) else { continue };
            // What a server got wrong is put right on the way.
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("deviations")) {
                continue;
            }
            let reply =
                decode_reply(dialect, body.as_str()).unwrap_or_else(|error| panic!("{error}: {body}"));
            let after =
                Document::parse(encode_reply(dialect, &reply, &stamp(), &ask(dialect))).expect("JSON");
            let difference = difference(before.root(), after.root());
            assert_eq!(difference, None, "{}", path.display());
        }
    }
}
