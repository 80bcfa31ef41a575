//! Bodies of requests: within the limits, unpacked, and text.
//!
//! Memory is reserved for a body as it arrives and as it unpacks, before it is there: a few kilobytes may unpack to
//! anything. What the JSON in it will take is reserved before it is read.

use crate::exchange::unhindered;
use crate::failure::{gateway_error, reject};
use crate::memory::{NoRoom, Reservation, exchange_bytes};
use crate::telemetry::Refusal;
use axum::body::Body;
use axum::response::Response;
use flate2::read::GzDecoder;
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode, header};
use std::io::Read;
use throughline_core::{Dialect, Failure, FailureKind, Text};

/// The largest window that zstd may ask for, as a power of two: what the format asks every reader to have.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// How much is unpacked at a time.
const UNPACKED_AT_A_TIME: usize = 64 * 1024;

/// A body that has arrived.
#[derive(Debug)]
pub struct Received {
    /// What it says.
    pub text: String,
    /// The memory that is set apart for it and for what becomes of it.
    pub reservation: Reservation,
}

/// Why a body was not received.
#[derive(Debug)]
pub struct Unreceived {
    /// What is counted.
    pub reason: Refusal,
    /// What the client is told.
    pub failure: Failure,
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
}

/// Reads a body whole, unpacks it as its `Content-Encoding` says, and returns it as text.
///
/// # Errors
/// When the encoding is unknown, the body is not what it says, unpacks to more than `limit`, is not UTF-8, or there
/// is no memory left for it.
pub async fn receive(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    mut reservation: Reservation,
) -> Result<Received, Unreceived> {
    let packing = packing(headers)?;
    let bytes = collect(headers, body, limit, &mut reservation).await?;
    // How much there will be to unpack is not known before.
    let size = if packing.is_some() { usize::MAX } else { bytes.len() };
    let work = async move {
        let bytes = match packing {
            None => bytes,
            Some(packing) => unpack(packing, &bytes, limit, &mut reservation)?,
        };
        reserve(&mut reservation, exchange_bytes(bytes.len(), count_values(&bytes)))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            invalid(format!("the body is not UTF-8 (at byte {offset})"))
        })?;
        Ok(Received { text, reservation })
    };
    unhindered(size, work).await.map_err(|failure| Unreceived { reason: Refusal::Invalid, failure })?
}

/// Returns how many bytes a body has by its own account.
fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn packing(headers: &HeaderMap) -> Result<Option<Packing>, Unreceived> {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    let encoding = encoding.to_str().unwrap_or("?").trim().to_ascii_lowercase();
    match encoding.as_str() {
        "" | "identity" => Ok(None),
        "gzip" | "x-gzip" => Ok(Some(Packing::Gzip)),
        "zstd" => Ok(Some(Packing::Zstd)),
        _ => Err(invalid(format!("content-encoding {encoding} is not supported; use gzip or zstd"))),
    }
}

async fn collect(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, Unreceived> {
    let announced = announced(headers).unwrap_or_default();
    if announced > limit {
        return Err(Unreceived::too_large(limit));
    }
    // What is only announced takes no memory: pages are there once they are written.
    let mut bytes = Vec::with_capacity(announced);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| invalid("the body broke off"))?;
        if bytes.len() + piece.len() > limit {
            return Err(Unreceived::too_large(limit));
        }
        reserve(reservation, bytes.len() + piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn unpack(
    packing: Packing,
    packed: &[u8],
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, Unreceived> {
    let name = match packing {
        Packing::Gzip => "gzip",
        Packing::Zstd => "zstd",
    };
    let bad = || invalid(format!("the body is not {name}"));
    let mut reader: Box<dyn Read + '_> = match packing {
        Packing::Gzip => Box::new(GzDecoder::new(packed)),
        Packing::Zstd => {
            let mut decoder = zstd::Decoder::new(packed).map_err(|_| bad())?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|_| bad())?;
            Box::new(decoder)
        }
    };
    let mut unpacked = Vec::new();
    let mut piece = vec![0; UNPACKED_AT_A_TIME];
    loop {
        let read = reader.read(&mut piece).map_err(|_| bad())?;
        if read == 0 {
            return Ok(unpacked);
        }
        if unpacked.len() + read > limit {
            return Err(Unreceived::too_large(limit));
        }
        // All that the exchange will take, and not only what is there: many that unpack at the same time would otherwise
        // fill the memory before the first of them is refused.
        reserve(reservation, exchange_bytes(unpacked.len() + read, 0))?;
        unpacked.extend_from_slice(&piece[..read]);
    }
}

/// Returns how many JSON values there are in a text at most, if it is JSON.
pub(super) fn count_values(text: &[u8]) -> usize {
    let (mut values, mut at) = (1, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at + 1),
            b',' | b':' | b'[' | b'{' => values += 1,
            _ => {}
        }
        at += 1;
    }
    values
}

/// Returns where the quotation mark is that ends a string.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

/// Takes memory for so many bytes in all.
pub(super) fn reserve(reservation: &mut Reservation, bytes: usize) -> Result<(), Unreceived> {
    reservation.resize(bytes).map_err(|no_room| match no_room {
        NoRoom::Busy => {
            let message = "there is no memory left for this request; try again in a moment";
            let failure = gateway_error(FailureKind::Overloaded, "throughline_busy", message);
            Unreceived { reason: Refusal::Memory, failure }
        }
        NoRoom::TooLarge { limit } => {
            let message = format!(
                "the request would take more than {limit} bytes of memory, which is what `limits.memory_bytes` \
                 leaves a single one"
            );
            let failure = gateway_error(FailureKind::TooLarge, "throughline_body_too_large", message);
            Unreceived { reason: Refusal::BodySize, failure }
        }
    })
}

impl Unreceived {
    fn too_large(limit: usize) -> Self {
        Self { reason: Refusal::BodySize, failure: too_large(limit) }
    }

    /// Returns the answer that tells the client.
    #[must_use]
    pub fn into_response(self, dialect: Dialect) -> Response {
        let mut response = reject(dialect, &self.failure);
        if self.reason == Refusal::RequestTimeout {
            // Nobody else was asked, so that no gateway timed out.
            *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
        }
        response
    }

    /// The body took too long.
    #[must_use]
    pub fn late() -> Self {
        let message = "the body took too long to arrive";
        let failure = gateway_error(FailureKind::TimedOut, "throughline_request_timeout", message);
        Self { reason: Refusal::RequestTimeout, failure }
    }
}

/// Returns the failure of a body that is larger than `limit`.
#[must_use]
pub fn too_large(limit: usize) -> Failure {
    let mut failure = Failure::new(FailureKind::TooLarge, format!("the body is larger than {limit} bytes"));
    failure.code = Some(Text::from_static("throughline_body_too_large"));
    failure
}

fn invalid(message: impl Into<Text>) -> Unreceived {
    let failure = gateway_error(FailureKind::InvalidRequest, "throughline_invalid_body", message);
    Unreceived { reason: Refusal::Invalid, failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBudget;
    use std::io::Write;
    use std::sync::Arc;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packing: Packing, packed: &[u8], limit: usize) -> Result<Vec<u8>, FailureKind> {
        let budget = Arc::new(MemoryBudget::new(1 << 20));
        unpack(packing, packed, limit, &mut budget.reserve()).map_err(|unreceived| unreceived.failure.kind)
    }

    #[test]
    fn packed_bodies_are_unpacked_up_to_the_limit() {
        let packed = gzip("{\"a\":1}");
        assert_eq!(unpacked(Packing::Gzip, &packed, 7), Ok(b"{\"a\":1}".to_vec()));
        assert_eq!(unpacked(Packing::Gzip, &packed, 6), Err(FailureKind::TooLarge));
        let packed = zstd::encode_all(&b"{}"[..], 1).unwrap();
        assert_eq!(unpacked(Packing::Zstd, &packed, 7), Ok(b"{}".to_vec()));
    }

    #[test]
    fn what_unpacks_to_more_than_there_is_memory_for_is_refused_on_the_way() {
        let bomb = zstd::encode_all(&vec![b'a'; 700_000][..], 19).unwrap();
        assert!(bomb.len() < 200, "{}", bomb.len());
        let budget = Arc::new(MemoryBudget::new(exchange_bytes(1_000_000, 0)));
        let mut others = budget.reserve();
        others.resize(exchange_bytes(100_000, 0)).unwrap();
        let mut reservation = budget.reserve();
        let refused = unpack(Packing::Zstd, &bomb, 700_000, &mut reservation).unwrap_err();
        assert_eq!((refused.reason, refused.failure.kind), (Refusal::Memory, FailureKind::Overloaded));
        drop(others);
        assert!(unpack(Packing::Zstd, &bomb, 700_000, &mut reservation).is_ok());
    }

    #[test]
    fn what_is_not_packed_as_it_says_is_refused() {
        assert_eq!(unpacked(Packing::Gzip, b"{}", 7), Err(FailureKind::InvalidRequest));
        let headers = [(header::CONTENT_ENCODING, "br".parse().unwrap())].into_iter().collect();
        assert!(packing(&headers).unwrap_err().failure.message.contains("gzip or zstd"));
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        for (json, values) in
            [("[1,2,3]", 4), (r#"{"a":",,,\"[{","b":[]}"#, 6), ("\"", 1), ("\"\\", 1), ("", 1), ("[[[[", 5)]
        {
            assert_eq!(count_values(json.as_bytes()), values, "{json}");
        }
    }
}
