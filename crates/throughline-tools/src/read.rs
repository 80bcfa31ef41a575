//! `read`: a file as text, or an image.

use crate::call::Read;
use crate::limits::Limits;
use crate::outcome::{Answer, Image, Outcome};
use crate::text;
use crate::workdir::{PathError, Workdir, shown};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("\"{path}\" is binary ({bytes} bytes); look at it with a command such as `file` or `xxd`")]
    Binary { path: String, bytes: usize },
    #[error("\"{path}\" is an image of {bytes} bytes, and at most {max} can be shown; make it smaller first")]
    LargeImage { path: String, bytes: usize, max: usize },
    #[error("\"{path}\" has {lines} lines, so there is no line {offset}")]
    PastEnd { path: String, lines: usize, offset: u64 },
}

/// Reads a file.
pub(crate) fn run(workdir: &Workdir, limits: &Limits, call: &Read) -> Result<Outcome, ReadError> {
    let found = workdir.read(&call.path, limits.file_bytes_max)?;
    let path = shown(&workdir.relative(&call.path)?);
    let bytes = found.bytes;
    if let Some(media_type) = image_type(&bytes) {
        return image(path, media_type, &bytes, limits);
    }
    if text::is_binary(&bytes) {
        return Err(ReadError::Binary { path, bytes: bytes.len() });
    }
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let first = call.offset.unwrap_or(1).max(1);
    let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
    if skipped >= lines.len().max(1) {
        return Err(ReadError::PastEnd { path, lines: lines.len(), offset: first });
    }
    let count = call.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let last = skipped.saturating_add(count).min(lines.len());
    let content = lines[skipped..last].concat();
    let mut answer = Answer::default().field("path", path);
    if skipped > 0 || last < lines.len() {
        answer = answer.field("shown", format!("lines {first} to {last} of {}", lines.len()));
    }
    let long = content.len() > limits.preview_bytes_max;
    answer = answer.text("content", &content, limits);
    if long {
        answer =
            answer.note(format!("of {} lines; read the part you need with offset and limit", lines.len()));
    }
    Ok(answer.done())
}

fn image(path: String, media_type: &str, bytes: &[u8], limits: &Limits) -> Result<Outcome, ReadError> {
    if bytes.len() > limits.image_bytes_max {
        return Err(ReadError::LargeImage { path, bytes: bytes.len(), max: limits.image_bytes_max });
    }
    let image = Image { media_type: media_type.to_owned(), base64: STANDARD.encode(bytes) };
    let answer = Answer::default().field("path", path).field("image", media_type).field("bytes", bytes.len());
    Ok(answer.image(image).done())
}

/// Returns the MIME type of an image that models can be shown, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
