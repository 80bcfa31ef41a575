//! Bodies of requests: within the limits, unpacked, and text.

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, header};
use std::io::Read;
use throughline_core::{Failure, FailureKind, Text};

/// Unpacks a body as its `Content-Encoding` says and returns it as text.
///
/// Unpacking takes time that grows with the body, so this runs on a thread where blocking is fine when there
/// is anything to unpack.
///
/// # Errors
/// When the encoding is unknown, the body is not what it says, unpacks to more than `limit`, or is not UTF-8.
pub async fn text(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<String, Failure> {
    let encoding =
        headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?").to_owned());
    let body = match encoding.as_deref().map(str::trim) {
        None | Some("" | "identity") => body,
        Some(encoding) => {
            let encoding = encoding.to_ascii_lowercase();
            let unpacked = tokio::task::spawn_blocking(move || unpack(&encoding, &body, limit)).await;
            unpacked.map_err(|_| invalid("the body could not be unpacked"))??.into()
        }
    };
    String::from_utf8(body.into()).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        invalid(format!("the body is not UTF-8 (at byte {offset})"))
    })
}

fn unpack(encoding: &str, body: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    let reader: Box<dyn Read + '_> = match encoding {
        "gzip" | "x-gzip" => Box::new(GzDecoder::new(body)),
        "zstd" => Box::new(zstd::Decoder::new(body).map_err(|_| invalid("the body is not zstd"))?),
        _ => return Err(invalid(format!("content-encoding {encoding} is not supported; use gzip or zstd"))),
    };
    let mut unpacked = Vec::new();
    // One byte more than allowed tells a body that is too large from one that just fits.
    let read = reader.take(limit as u64 + 1).read_to_end(&mut unpacked);
    read.map_err(|_| invalid(format!("the body is not {encoding}")))?;
    if unpacked.len() > limit {
        return Err(too_large(limit));
    }
    Ok(unpacked)
}

/// Returns the failure of a body that is larger than `limit`.
#[must_use]
pub fn too_large(limit: usize) -> Failure {
    let mut failure = Failure::new(FailureKind::TooLarge, format!("the body is larger than {limit} bytes"));
    failure.code = Some(Text::from_static("throughline_body_too_large"));
    failure
}

fn invalid(message: impl Into<Text>) -> Failure {
    let mut failure = Failure::new(FailureKind::InvalidRequest, message);
    failure.code = Some(Text::from_static("throughline_invalid_body"));
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_bodies_are_unpacked_up_to_the_limit() {
        let packed = gzip("{\"a\":1}");
        assert_eq!(unpack("gzip", &packed, 7).unwrap(), b"{\"a\":1}");
        assert_eq!(unpack("gzip", &packed, 6).unwrap_err().kind, FailureKind::TooLarge);
        let packed = zstd::encode_all(&b"{}"[..], 1).unwrap();
        assert_eq!(unpack("zstd", &packed, 7).unwrap(), b"{}");
    }

    #[test]
    fn what_is_not_packed_as_it_says_is_refused() {
        assert_eq!(unpack("gzip", b"{}", 7).unwrap_err().kind, FailureKind::InvalidRequest);
        assert!(unpack("br", b"{}", 7).unwrap_err().message.contains("gzip or zstd"));
    }
}
