//! Values on their way into the database and out of it.
//!
//! Text there has no NUL, and text of ours may have one: a model may say anything. It is written with an
//! escape that is next to never needed, and read without it.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use throughline_core::{EntryId, Place, Text};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::failure::Failure;
use crate::digest::Digest;
use crate::pack::unpack;

/// What stands for NUL, and for itself when followed by [`ITSELF`]: a character that is no character.
const ESCAPE: char = '\u{10fffe}';
const NUL: char = '0';
const ITSELF: char = '1';

impl ToSql for Digest {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'r> FromSql<'r> for Digest {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Self::from_slice(raw).ok_or_else(|| "a digest has 16 bytes".into())
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}

/// Returns a text as the database takes it.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().flat_map(|c| match c {
        '\0' => [Some(ESCAPE), Some(NUL)],
        ESCAPE => [Some(ESCAPE), Some(ITSELF)],
        c => [Some(c), None],
    });
    Cow::Owned(escaped.flatten().collect())
}

/// Returns a text as it was before [`plain`].
fn restored(text: &str) -> Text {
    if !text.contains(ESCAPE) {
        return text.into();
    }
    let mut restored = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE if chars.next() == Some(NUL) => restored.push('\0'),
            c => restored.push(c),
        }
    }
    restored.into()
}

pub(super) fn text(row: &Row, column: usize) -> Result<Text, Failure> {
    Ok(restored(row.try_get(column)?))
}

pub(super) fn optional_text(row: &Row, column: usize) -> Result<Option<Text>, Failure> {
    Ok(row.try_get::<_, Option<&str>>(column)?.map(restored))
}

pub(super) fn entry_id(row: &Row, column: usize) -> Result<Option<EntryId>, Failure> {
    Ok(row.try_get::<_, Option<Digest>>(column)?.map(Digest::to_entry_id))
}

/// Returns the number of a column that holds no negative ones.
pub(super) fn small(row: &Row, column: usize) -> Result<u32, Failure> {
    Ok(row.try_get::<_, i32>(column)?.cast_unsigned())
}

/// Reads a place whose two numbers begin in that column.
pub(super) fn place(row: &Row, column: usize) -> Result<Option<Place>, Failure> {
    let number = |column| Ok::<_, Failure>(row.try_get::<_, Option<i32>>(column)?.map(i32::cast_unsigned));
    let block = number(column + 1)?;
    Ok(number(column)?.map(|message| Place { message, block }))
}

/// Unpacks the content whose codec, size and bytes begin in that column.
pub(super) fn unpacked(row: &Row, column: usize) -> Result<Vec<u8>, Failure> {
    let (codec, size, bytes) = packed(row, column)?;
    Ok(unpack(codec, size, bytes)?)
}

/// Reads the codec, size and bytes of a content, which begin in that column.
pub(super) fn packed(row: &Row, column: usize) -> Result<(i64, usize, Vec<u8>), Failure> {
    let codec: i16 = row.try_get(column)?;
    Ok((codec.into(), small(row, column + 1)? as usize, row.try_get(column + 2)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_comes_back(text in "[\0\u{10fffe}01a\u{10ffff}é]{0,12}") {
            let written = plain(&text);
            prop_assert!(!written.contains('\0'));
            prop_assert_eq!(&*restored(&written), text.as_str());
        }
    }
}
