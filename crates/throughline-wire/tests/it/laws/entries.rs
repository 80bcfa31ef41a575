//! Histories however broken: calls without results, results without calls, results that come twice or too
//! early, odd ids, blank text, thoughts and system messages anywhere.
//!
//! The text of every result has a token of its own, so that a judge can say whether it was lost.

use super::plan::words;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use throughline_core::{
    Call, Content, Dialect, Entry, File, Handover, Image, Input, Kind, Media, Origin, Outcome, Part, Return,
    Role, Said, Seal, Summary, Text, Thought, Wire,
};

/// Returns the token of the result at that position.
pub(super) fn token(at: usize) -> String {
    format!("tok{at}tok")
}

/// Any list of entries.
pub(super) fn histories() -> impl Strategy<Value = Vec<Entry>> {
    let repeats = prop::collection::vec((any::<Index>(), any::<Index>()), 0..3);
    (prop::collection::vec(entry(), 0..14), repeats).prop_map(|(mut entries, repeats)| {
        for (at, entry) in entries.iter_mut().enumerate() {
            if let Kind::Returned(returned) = &mut entry.kind {
                returned.parts.push(Part::text(token(at)));
            }
        }
        for (from, to) in repeats {
            if let Some(again) = (!entries.is_empty()).then(|| entries[from.index(entries.len())].clone()) {
                entries.insert(to.index(entries.len() + 1), again);
            }
        }
        entries
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        3 => said(),
        1 => thought(),
        4 => call(),
        4 => result(),
        1 => other(),
    ]
}

fn said() -> impl Strategy<Value = Entry> {
    let system =
        (select(vec![Role::System, Role::Developer]), prop::collection::vec(text(), 0..3), any::<bool>());
    let model = prop_oneof![4 => text(), 1 => words().prop_map(|words| part(Content::Refusal(words.into())))];
    prop_oneof![
        2 => system.prop_map(|(role, parts, standing)| Said { role, parts, standing }),
        3 => prop::collection::vec(prop_oneof![3 => text(), 1 => media(), 1 => opaque_part()], 0..4)
            .prop_map(|parts| Said { role: Role::User, parts, standing: false }),
        3 => prop::collection::vec(model, 0..3)
            .prop_map(|parts| Said { role: Role::Assistant, parts, standing: false }),
    ]
    .prop_map(|said| Entry::new(Kind::Said(said)))
}

fn part(content: Content) -> Part {
    Part { content, wire: None }
}

fn text() -> impl Strategy<Value = Part> {
    let blank = select(vec!["", " ", "\n\t", "trailing \n"]).prop_map(String::from);
    prop_oneof![3 => words(), 1 => blank].prop_map(Part::text)
}

fn media() -> impl Strategy<Value = Part> {
    let inline = |media_type: &'static str, base64: &'static str| Media::Inline {
        media_type: media_type.into(),
        base64: base64.into(),
    };
    let image = |media| part(Content::Image(Image { media, detail: None }));
    let file = |media| part(Content::File(File { media, name: Some("a.pdf".into()) }));
    select(vec![
        image(Media::Url("https://x.test/a.png".into())),
        image(inline("image/png", "AAAA")),
        image(Media::Stored("file-1".into())),
        file(inline("application/pdf", "JVBERg==")),
        file(Media::Plain("plain text".into())),
        file(Media::Url("https://x.test/a.pdf".into())),
        file(Media::Stored("file-2".into())),
    ])
}

/// A part that only a dialect without such parts would keep; each target drops those of others.
fn opaque_part() -> impl Strategy<Value = Part> {
    select(Dialect::ALL.to_vec()).prop_map(|dialect| Part {
        content: Content::Opaque { kind: "x_hologram".into() },
        wire: Some(wire(dialect, r#"{"type":"x_hologram"}"#)),
    })
}

fn wire(dialect: Dialect, text: &str) -> Wire {
    Wire { dialect, text: text.into(), extras: Vec::new() }
}

fn thought() -> impl Strategy<Value = Entry> {
    let sealed = |dialect, text: &str, seal| {
        let thought = Thought { content: vec!["hm".into()], seal, ..Thought::default() };
        let mut entry = Entry::new(Kind::Thought(thought));
        entry.wire = Some(wire(dialect, text));
        entry
    };
    select(vec![
        Entry::new(Kind::Thought(Thought::default())),
        Entry::new(Kind::Thought(Thought { summary: vec!["in short".into()], ..Thought::default() })),
        sealed(
            Dialect::Messages,
            r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#,
            Some(Seal::Signature("sig".into())),
        ),
        sealed(Dialect::Messages, r#"{"type":"thinking","thinking":"hm","signature":""}"#, None),
        sealed(
            Dialect::Responses,
            r#"{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}"#,
            Some(Seal::Encrypted("gAAA".into())),
        ),
        sealed(Dialect::Chat, r#"{"reasoning_content":"hm"}"#, None),
    ])
}

fn id() -> impl Strategy<Value = Text> {
    let long = "x".repeat(70);
    let ids = ["a", "b", "call_1", "call_2", "", " ", "functions.read:0|1", "é", "abcDEF123", "fc_1", &long];
    select(ids.map(Text::from).to_vec())
}

fn name() -> impl Strategy<Value = Text> {
    let long = format!("mcp__{}", "tool_".repeat(14));
    select(["read", "read", "free", "mcp.tool/x", "", "é", "a b", &long].map(Text::from).to_vec())
}

fn call() -> impl Strategy<Value = Entry> {
    let input = prop_oneof![
        3 => select(vec!["{}", "{\"a\": 1.10}", "", "{\"a\"", "null", "[1]", " {} "])
            .prop_map(|text| Input::Arguments(text.into())),
        1 => words().prop_map(|text| Input::Freeform(text.into())),
    ];
    let namespace = prop_oneof![4 => Just(None), 1 => Just(Some(Text::from("space")))];
    (id(), prop::option::of(id()), name(), namespace, input).prop_map(
        |(id, item_id, name, namespace, input)| {
            Entry::new(Kind::Called(Call { id, item_id, name, namespace, input }))
        },
    )
}

fn result() -> impl Strategy<Value = Entry> {
    let outcome =
        select(vec![Outcome::Ok, Outcome::Error, Outcome::Denied, Outcome::Interrupted, Outcome::Unknown]);
    let parts = prop::collection::vec(prop_oneof![3 => text(), 1 => media(), 1 => opaque_part()], 0..3);
    (prop::option::weighted(0.8, id()), prop::option::of(name()), parts, outcome, any::<bool>()).prop_map(
        |(call_id, name, parts, outcome, freeform)| {
            Entry::new(Kind::Returned(Return { call_id, item_id: None, name, parts, outcome, freeform }))
        },
    )
}

fn other() -> impl Strategy<Value = Entry> {
    let held = |dialect, kind: &str, text: &str| {
        let mut entry = Entry::new(Kind::Opaque { kind: kind.into() });
        entry.wire = Some(wire(dialect, text));
        entry
    };
    let mut reference = Entry::new(Kind::Reference { id: "msg_9".into() });
    reference.wire = Some(wire(Dialect::Responses, r#"{"type":"item_reference","id":"msg_9"}"#));
    let origin = Origin { backend: "b".into(), dialect: Dialect::Chat, model: "m".into() };
    select(vec![
        held(Dialect::Responses, "web_search_call", r#"{"type":"web_search_call","status":"completed"}"#),
        held(Dialect::Responses, "compaction", r#"{"type":"compaction","encrypted_content":"gAAA"}"#),
        held(
            Dialect::Messages,
            "server_tool_use",
            r#"{"type":"server_tool_use","id":"s","name":"n","input":{}}"#,
        ),
        reference,
        Entry::new(Kind::Summarised(Summary { text: "so far so good".into(), covers: 3 })),
        Entry::new(Kind::HandedOver(Handover {
            from: None,
            to: origin,
            by: "cli".into(),
            reason: "asked".into(),
            brief: None,
            continues: None,
        })),
    ])
}

/// Returns the entries without parts that the dialect keeps although nobody knows whether they are legal,
/// and with stored media that only another provider has.
pub(super) fn judged_in(entries: &[Entry], dialect: Dialect) -> Vec<Entry> {
    let is_judged = |part: &Part| {
        !matches!(part.content, Content::Opaque { .. })
            || part.wire.as_ref().is_none_or(|wire| wire.dialect != dialect)
    };
    let mut entries = entries.to_vec();
    for entry in &mut entries {
        match &mut entry.kind {
            Kind::Said(said) => said.parts.retain(is_judged),
            Kind::Returned(returned) => returned.parts.retain(is_judged),
            _ => {}
        }
    }
    entries
}
