//! The stored form of provider events: pieces of many, since one delta is a few bytes of news in a few hundred.
//!
//! A piece is its [`FormatVersion`], the number of events, the moment of the first, and then for each the
//! milliseconds since the one before, its name and its data.

use crate::record::{FormatVersion, Reader, RecordError, Writer};
use crate::{Moment, ProviderEvent, StoreError};

/// Encodes events as a piece.
pub(crate) fn encode_events(events: &[ProviderEvent]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.byte(FormatVersion::FIRST.number());
    writer.number(events.len() as u64);
    let mut last = 0;
    for event in events {
        writer.number(zigzag(event.at.0.wrapping_sub(last)));
        last = event.at.0;
        writer.optional(event.name.as_ref());
        writer.text(&event.data);
    }
    writer.finish()
}

/// Decodes a piece.
pub(crate) fn decode_events(bytes: &[u8]) -> Result<Vec<ProviderEvent>, StoreError> {
    let mut reader = Reader::new(bytes);
    FormatVersion::check(reader.byte()?)?;
    let mut last = 0_i64;
    let events = reader.list(|reader| {
        last = last.wrapping_add(unzigzag(reader.number()?));
        Ok::<_, RecordError>(ProviderEvent {
            at: Moment(last),
            name: reader.optional()?,
            data: reader.text()?,
        })
    })?;
    Ok(events)
}

/// Returns a number that is small for small numbers of either sign.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn events_come_back_unaltered(events in vec((any::<i64>(), option::of(".{0,9}"), ".{0,40}"), 0..9)) {
            let event = |(at, name, data): (i64, Option<String>, String)| ProviderEvent {
                at: Moment(at),
                name: name.map(Into::into),
                data: data.into(),
            };
            let events: Vec<ProviderEvent> = events.into_iter().map(event).collect();
            prop_assert_eq!(decode_events(&encode_events(&events)).unwrap(), events);
        }
    }
}
