//! Whatever an entry is, it comes back equal; whatever the bytes are, they are read or refused.

use super::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use throughline_core::{
    Call, Content, Continued, ConversationId, Dialect, EntryId, Extra, File, Handover, Image, Input, Kind,
    Media, Origin, Outcome, Part, Return, Role, Said, Seal, Summary, Text, Thought, Wire,
};

/// Texts as they occur: short, long, with what JSON escapes, and some that others contain.
fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        ".{0,12}".prop_map(Text::from),
        "[a-z \"\\\\\n\u{1}é😀]{0,40}".prop_map(Text::from),
        select(vec!["", "a line\nand another", "{\"path\":\"src/main.rs\"}", "toolu_0123456789"])
            .prop_map(Text::from),
        (1..400_usize).prop_map(|times| "words words ".repeat(times).into()),
    ]
}

fn dialect() -> impl Strategy<Value = Dialect> {
    select(Dialect::ALL.to_vec())
}

fn extras() -> impl Strategy<Value = Vec<Extra>> {
    vec((text(), text()).prop_map(|(name, value)| Extra { name, value }), 0..3)
}

/// A wire form that holds `inner` in full, escaped in one way or another, or not at all.
fn wire_around(inner: Text) -> impl Strategy<Value = Wire> {
    (dialect(), text(), extras(), 0..4_u8).prop_map(move |(dialect, around, extras, how)| {
        let escaped = match how {
            0 => inner.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
            1 => inner.to_string(),
            2 => inner.chars().map(|c| format!("\\u{:04x}", c as u32)).collect(),
            _ => String::new(),
        };
        Wire { dialect, text: format!("{{\"{around}\":\"{escaped}\"}}").into(), extras }
    })
}

fn wire() -> impl Strategy<Value = Wire> {
    text().prop_flat_map(wire_around)
}

fn media() -> impl Strategy<Value = Media> {
    prop_oneof![
        text().prop_map(Media::Url),
        (text(), text()).prop_map(|(media_type, base64)| Media::Inline { media_type, base64 }),
        text().prop_map(Media::Plain),
        text().prop_map(Media::Stored),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(Content::Text),
        text().prop_map(Content::Refusal),
        (media(), option::of(text())).prop_map(|(media, detail)| Content::Image(Image { media, detail })),
        (media(), option::of(text())).prop_map(|(media, name)| Content::File(File { media, name })),
        text().prop_map(|kind| Content::Opaque { kind }),
    ];
    (content, option::of(wire())).prop_map(|(content, wire)| Part { content, wire })
}

fn origin() -> impl Strategy<Value = Origin> {
    (text(), dialect(), text()).prop_map(|(backend, dialect, model)| Origin { backend, dialect, model })
}

fn said() -> impl Strategy<Value = Kind> {
    let role = select(vec![Role::System, Role::Developer, Role::User, Role::Assistant]);
    (role, vec(part(), 0..3), any::<bool>())
        .prop_map(|(role, parts, standing)| Kind::Said(Said { role, parts, standing }))
}

fn thought() -> impl Strategy<Value = Kind> {
    let seal = prop_oneof![
        text().prop_map(Seal::Signature),
        text().prop_map(Seal::Redacted),
        text().prop_map(Seal::Encrypted),
    ];
    (vec(text(), 0..3), vec(text(), 0..3), option::of(seal), option::of(text())).prop_map(
        |(summary, content, seal, item_id)| Kind::Thought(Thought { summary, content, seal, item_id }),
    )
}

fn called() -> impl Strategy<Value = Kind> {
    let input = prop_oneof![text().prop_map(Input::Arguments), text().prop_map(Input::Freeform)];
    (text(), option::of(text()), text(), option::of(text()), input).prop_map(
        |(id, item_id, name, namespace, input)| Kind::Called(Call { id, item_id, name, namespace, input }),
    )
}

fn returned() -> impl Strategy<Value = Kind> {
    let outcome =
        select(vec![Outcome::Ok, Outcome::Error, Outcome::Denied, Outcome::Interrupted, Outcome::Unknown]);
    let ids = (option::of(text()), option::of(text()), option::of(text()));
    (ids, vec(part(), 0..3), outcome, any::<bool>()).prop_map(
        |((call_id, item_id, name), parts, outcome, freeform)| {
            Kind::Returned(Return { call_id, item_id, name, parts, outcome, freeform })
        },
    )
}

fn handed_over() -> impl Strategy<Value = Kind> {
    let continues = (text(), text()).prop_map(|(conversation, entry)| Continued {
        conversation: ConversationId::new(conversation),
        entry: EntryId::new(entry),
    });
    (option::of(origin()), origin(), text(), text(), option::of(text()), option::of(continues)).prop_map(
        |(from, to, by, reason, brief, continues)| {
            Kind::HandedOver(Handover { from, to, by, reason, brief, continues })
        },
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        said(),
        thought(),
        called(),
        returned(),
        handed_over(),
        (text(), any::<u32>()).prop_map(|(text, covers)| Kind::Summarised(Summary { text, covers })),
        text().prop_map(|id| Kind::Reference { id }),
        text().prop_map(|kind| Kind::Opaque { kind }),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let place =
        (any::<u32>(), option::of(any::<u32>())).prop_map(|(message, block)| Place { message, block });
    (kind(), option::of(origin()), option::of(wire()), option::of(place), any::<bool>()).prop_map(
        |(kind, origin, wire, place, intact)| Entry { origin, wire, place, intact, ..Entry::new(kind) },
    )
}

/// Entries of one message, which share its envelope; its text holds that of the first.
fn message() -> impl Strategy<Value = Vec<Entry>> {
    let with_envelope = vec(entry(), 1..4).prop_flat_map(|entries| {
        let inner = entries[0].wire.as_ref().map_or_else(Text::default, |wire| wire.text.clone());
        (Just(entries), option::of(wire_around(inner)))
    });
    with_envelope.prop_map(|(mut entries, wire)| {
        let Some(wire) = wire else { return entries };
        let envelope = Arc::new(Envelope { wire, entries: entries.len() as u32 });
        for (position, entry) in (0..).zip(&mut entries) {
            entry.envelope = Some((Arc::clone(&envelope), position));
        }
        entries
    })
}

/// Writes entries as a store does, and reads them back.
fn there_and_back(entries: &[Entry]) -> Vec<Entry> {
    let mut last = LastEnvelope::default();
    let encoded: Vec<Encoded> = entries.iter().map(|entry| encode(entry, &mut last)).collect();
    let envelopes: BTreeMap<Digest, Arc<[u8]>> = encoded
        .iter()
        .filter_map(|encoded| encoded.envelope.as_ref())
        .map(|blob| (blob.digest, Arc::clone(&blob.bytes)))
        .collect();
    let mut reader = EntryReader::default();
    let mut load = |digest| Ok(envelopes[&digest].to_vec());
    let read = entries.iter().zip(&encoded);
    read.map(|(entry, encoded)| reader.decode(&encoded.record.bytes, entry.place, &mut load).unwrap())
        .collect()
}

/// Says of each entry whether it shares its envelope with the one before.
fn shares(entries: &[Entry]) -> Vec<bool> {
    let same = |pair: &[Entry]| match (&pair[0].envelope, &pair[1].envelope) {
        (Some((a, _)), Some((b, _))) => Arc::ptr_eq(a, b),
        _ => false,
    };
    entries.windows(2).map(same).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_entry_comes_back_equal(mut entries in message()) {
        prop_assert_eq!(&there_and_back(&entries), &entries);
        // The same message again is another message.
        let copies: Vec<Entry> = entries.iter().map(|entry| {
            let envelope = entry.envelope.as_ref().map(|(envelope, position)| {
                let copy = Envelope { wire: envelope.wire.clone(), entries: envelope.entries };
                (Arc::new(copy), *position)
            });
            Entry { envelope, ..entry.clone() }
        }).collect();
        let one = entries.len();
        entries.extend(copies);
        let back = there_and_back(&entries);
        prop_assert_eq!(&shares(&back)[..one], &shares(&entries)[..one]);
    }

    #[test]
    fn damaged_records_are_refused_or_read_and_never_more(
        entry in entry(), at in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        let mut bytes = encode(&entry, &mut LastEnvelope::default()).record.bytes.to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let mut load = |_| Err(StoreError::Damaged("no such envelope".to_owned()));
        let _ = EntryReader::default().decode(&bytes, None, &mut load);
        let _ = EntryReader::default().decode(&bytes[..at], None, &mut load);
    }
}

#[test]
fn a_record_of_a_later_format_is_refused_by_name() {
    let mut bytes =
        encode(&Entry::said(Role::User, "hello"), &mut LastEnvelope::default()).record.bytes.to_vec();
    bytes[0] = 9;
    let mut load = |_| unreachable!();
    let error = EntryReader::default().decode(&bytes, None, &mut load).unwrap_err();
    assert!(error.to_string().contains("format 9"), "{error}");
}

#[test]
fn the_layout_is_what_it_was() {
    // Format 1, as it is on disks. A changed byte needs a new format version, and this one kept readable.
    let bytes = encode(&Entry::said(Role::User, "hello"), &mut LastEnvelope::default()).record.bytes;
    assert_eq!(&bytes[..], b"\x01e\x01\x00\x02\x00\x01\x00\x00\x14hello");
}

#[test]
fn a_handover_of_the_first_format_is_still_read() {
    let mut load = |_| unreachable!();
    let current = Entry::new(Kind::HandedOver(Handover {
        from: None,
        to: Origin { backend: "b".into(), dialect: Dialect::Chat, model: "m".into() },
        by: Text::default(),
        reason: "asked".into(),
        brief: None,
        continues: None,
    }));
    let written = encode(&current, &mut LastEnvelope::default()).record.bytes;
    assert_eq!(written[0], 2, "a new tag is a new format");
    // What follows the tag is the same in both, up to what is new.
    let mut old = written[..written.len() - 3].to_vec();
    let tag = old.iter().position(|byte| *byte == 8).unwrap();
    (old[0], old[tag]) = (1, 4);
    assert_eq!(EntryReader::default().decode(&old, None, &mut load).unwrap(), current);
}

#[test]
fn what_a_message_says_three_times_is_stored_once() {
    let said = "a result with \"quotes\"\nand lines ".repeat(100);
    let escaped = said.replace('"', "\\\"").replace('\n', "\\n");
    let block = format!("{{\"type\":\"text\",\"text\":\"{escaped}\"}}");
    let message = format!("{{\"role\":\"user\",\"content\":[{block}]}}");
    let wire = |text: &str| Wire { dialect: Dialect::Messages, text: text.into(), extras: Vec::new() };
    let mut entry = Entry::said(Role::User, "");
    entry.kind = Kind::Said(Said {
        role: Role::User,
        parts: vec![Part { content: Content::Text(said.into()), wire: Some(wire(&block)) }],
        standing: false,
    });
    entry.wire = Some(wire(&block));
    entry.envelope = Some((Arc::new(Envelope { wire: wire(&message), entries: 1 }), 0));
    let record = encode(&entry, &mut LastEnvelope::default()).record.bytes;
    assert!(record.len() < message.len() + 40, "{} for {}", record.len(), message.len());
    assert_eq!(there_and_back(std::slice::from_ref(&entry)), [entry]);
}
