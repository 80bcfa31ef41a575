//! Any bytes as a session file of any agent: nothing panics, each piece stands behind one that came before, reading goes
//! on behind whatever could not be read, and what is read can be written for every agent and read again with every pair.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_carry::{
    Agent, Header, Piece, SessionReader, Told, fit, read_body, read_document, write_markdown, write_session,
};
use throughline_core::{Dialect, Entry, Report};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for agent in Agent::ALL {
        if let Some(pieces) = read(agent, &text) {
            check(&pieces);
            carry(&pieces);
        }
        let _ = read_document(agent, &text);
    }
    for dialect in Dialect::ALL {
        let _ = read_body(dialect, &text);
    }
});

fn read(agent: Agent, text: &str) -> Option<Vec<Piece>> {
    let mut reader = SessionReader::new(agent)?;
    Some(text.lines().filter_map(|line| reader.line(line).ok().flatten()).collect())
}

fn check(pieces: &[Piece]) {
    for (number, piece) in pieces.iter().enumerate() {
        assert_eq!(piece.spot.0 as usize, number, "pieces are numbered as they come");
        assert!(piece.behind.is_none_or(|behind| behind < piece.spot), "a piece stands behind an earlier one");
        assert!(!piece.entries.is_empty(), "a piece brings something");
    }
}

fn carry(pieces: &[Piece]) {
    let entries = pieces.iter().flat_map(|piece| &piece.entries);
    let told: Vec<Told> =
        (0..).zip(entries).map(|(number, entry)| Told { entry: entry.clone(), at: i64::from(number), number: Some(number) }).collect();
    let _ = write_markdown("any", &told);
    for agent in Agent::ALL {
        let fitted = fit(&told, agent, Report::default());
        let header = Header {
            id: "0b8c057c-60c2-4dcf-9f61-2e09133f1326".into(),
            cwd: "/".into(),
            title: "any".into(),
            model: None,
            version: "1".into(),
            started: 0,
        };
        let written = write_session(agent, &header, &fitted.entries);
        let calls = |entries: &mut dyn Iterator<Item = &Entry>| entries.filter(|entry| entry.as_call().is_some()).count();
        let expected = calls(&mut fitted.entries.iter().map(|written| &written.entry));
        let back = read(agent, &written).unwrap_or_else(|| read_document(agent, &written).map_or(Vec::new(), |read| read.pieces));
        assert_eq!(calls(&mut back.iter().flat_map(|piece| &piece.entries)), expected, "{agent}: {written}");
    }
}
