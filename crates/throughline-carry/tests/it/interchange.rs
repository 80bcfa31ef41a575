//! Our own form: what is read is equal to what was written.

use proptest::prelude::*;
use std::sync::Arc;
use throughline_carry::interchange::{EntryReader, EntryWriter, ReadError};
use throughline_core::{
    Call, Content, Continued, ConversationId, Dialect, Entry, EntryId, Envelope, Extra, File, Handover,
    Image, Input, Kind, Media, Origin, Outcome, Part, Place, Return, Role, Said, Seal, Summary, Text,
    Thought, Wire,
};
use throughline_wire::json::{Document, Writer};

fn written(entries: &[Entry]) -> Vec<String> {
    let mut writer = EntryWriter::default();
    let mut lines = Vec::new();
    for entry in entries {
        lines.extend(writer.envelope(entry));
        let mut line = Writer::new();
        line.begin_object();
        line.field_str("type", "entry");
        writer.entry(&mut line, entry);
        line.end_object();
        lines.push(line.into_string());
    }
    lines
}

fn read(lines: &[String]) -> Result<Vec<Entry>, ReadError> {
    let mut reader = EntryReader::default();
    let mut entries = Vec::new();
    for line in lines {
        let document = Document::parse(line.as_str()).unwrap();
        if document.root().field("type").unwrap().is_str("envelope") {
            reader.envelope(&document.root())?;
        } else {
            entries.push(reader.entry(&document.root())?);
        }
    }
    Ok(entries)
}

fn text() -> impl Strategy<Value = Text> {
    "[a-z\"\\\\\\n\u{7f}é😀]{0,12}".prop_map(Text::from)
}

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

fn wire() -> impl Strategy<Value = Wire> {
    let extras =
        prop::collection::vec((text(), text()).prop_map(|(name, value)| Extra { name, value }), 0..3);
    (dialect(), text(), extras).prop_map(|(dialect, text, extras)| Wire { dialect, text, extras })
}

fn origin() -> impl Strategy<Value = Origin> {
    (text(), dialect(), text()).prop_map(|(backend, dialect, model)| Origin { backend, dialect, model })
}

fn media() -> impl Strategy<Value = Media> {
    prop_oneof![
        text().prop_map(Media::Url),
        (text(), text()).prop_map(|(media_type, base64)| Media::Inline { media_type, base64 }),
        text().prop_map(Media::Plain),
        text().prop_map(Media::Stored),
    ]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let content = prop_oneof![
        text().prop_map(Content::Text),
        text().prop_map(Content::Refusal),
        (media(), prop::option::of(text()))
            .prop_map(|(media, detail)| Content::Image(Image { media, detail })),
        (media(), prop::option::of(text())).prop_map(|(media, name)| Content::File(File { media, name })),
        text().prop_map(|kind| Content::Opaque { kind }),
    ];
    prop::collection::vec(
        (content, prop::option::of(wire())).prop_map(|(content, wire)| Part { content, wire }),
        0..3,
    )
}

fn thought() -> impl Strategy<Value = Thought> {
    let seal = prop_oneof![
        text().prop_map(Seal::Signature),
        text().prop_map(Seal::Redacted),
        text().prop_map(Seal::Encrypted),
    ];
    let texts = || prop::collection::vec(text(), 0..3);
    (texts(), texts(), prop::option::of(seal), prop::option::of(text()))
        .prop_map(|(summary, content, seal, item_id)| Thought { summary, content, seal, item_id })
}

fn handed_over() -> impl Strategy<Value = Kind> {
    let continues = (text(), text()).prop_map(|(conversation, entry)| Continued {
        conversation: ConversationId::new(conversation),
        entry: EntryId::new(entry),
    });
    let continues = prop::option::of(continues);
    (prop::option::of(origin()), origin(), text(), text(), prop::option::of(text()), continues).prop_map(
        |(from, to, by, reason, brief, continues)| {
            Kind::HandedOver(Handover { from, to, by, reason, brief, continues })
        },
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    let role = prop::sample::select(vec![Role::System, Role::Developer, Role::User, Role::Assistant]);
    let outcome = prop::sample::select(vec![
        Outcome::Ok,
        Outcome::Error,
        Outcome::Denied,
        Outcome::Interrupted,
        Outcome::Unknown,
    ]);
    let input = prop_oneof![text().prop_map(Input::Arguments), text().prop_map(Input::Freeform)];
    let maybe = || prop::option::of(text());
    prop_oneof![
        (role, parts(), any::<bool>()).prop_map(|(role, parts, standing)| Kind::Said(Said {
            role,
            parts,
            standing
        })),
        thought().prop_map(Kind::Thought),
        (text(), maybe(), text(), maybe(), input).prop_map(|(id, item_id, name, namespace, input)| {
            Kind::Called(Call { id, item_id, name, namespace, input })
        }),
        (maybe(), maybe(), maybe(), parts(), outcome, any::<bool>()).prop_map(
            |(call_id, item_id, name, parts, outcome, freeform)| {
                Kind::Returned(Return { call_id, item_id, name, parts, outcome, freeform })
            }
        ),
        handed_over(),
        (text(), any::<u32>()).prop_map(|(text, covers)| Kind::Summarised(Summary { text, covers })),
        text().prop_map(|id| Kind::Reference { id }),
        text().prop_map(|kind| Kind::Opaque { kind }),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let place =
        (any::<u32>(), prop::option::of(any::<u32>())).prop_map(|(message, block)| Place { message, block });
    let envelope = (wire(), 1u32..4, 0u32..3)
        .prop_map(|(wire, entries, position)| (Arc::new(Envelope { wire, entries }), position));
    (
        kind(),
        prop::option::of(origin()),
        prop::option::of(wire()),
        prop::option::of(envelope),
        prop::option::of(place),
        any::<bool>(),
    )
        .prop_map(|(kind, origin, wire, envelope, place, intact)| Entry {
            origin,
            wire,
            envelope,
            place,
            intact,
            ..Entry::new(kind)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn an_entry_comes_back(entries in prop::collection::vec(entry(), 1..4)) {
        let lines = written(&entries);
        let back = read(&lines).unwrap();
        prop_assert_eq!(&back, &entries);
        prop_assert_eq!(written(&back), lines);
    }
}

#[test]
fn entries_of_one_message_share_it_again() {
    let wire = Wire { dialect: Dialect::Messages, text: "{}".into(), extras: Vec::new() };
    let envelope = Arc::new(Envelope { wire, entries: 2 });
    let entry = |position| Entry {
        envelope: Some((Arc::clone(&envelope), position)),
        ..Entry::said(Role::User, "a")
    };
    let lines = written(&[entry(0), entry(1)]);
    assert_eq!(lines.len(), 3);
    let back = read(&lines).unwrap();
    assert!(Arc::ptr_eq(&back[0].envelope.as_ref().unwrap().0, &back[1].envelope.as_ref().unwrap().0));
    assert!(matches!(read(&lines[1..]), Err(ReadError::Envelope(1))));
}
