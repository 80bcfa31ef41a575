//! Which trace a request belongs to, as W3C Trace Context writes it.

use std::fmt;
use uuid::Uuid;

/// A place in a trace: `00-<trace>-<span>-<flags>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace.
    pub trace: [u8; 16],
    /// The span that others continue from.
    pub span: [u8; 8],
    /// Whether the trace is kept.
    pub is_sampled: bool,
}

impl Context {
    /// Reads the header `traceparent`; none if it is not valid, so that a trace of our own begins.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = hex::<1>(fields.next()?)?;
        let (trace, span) = (hex::<16>(fields.next()?)?, hex::<8>(fields.next()?)?);
        let [flags] = hex::<1>(fields.next()?)?;
        // A later version may say more behind that; this one may not.
        let is_known = version == [0] && fields.next().is_none() || (1..0xff).contains(&version[0]);
        let is_named = trace != [0; 16] && span != [0; 8];
        (is_known && is_named).then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// Begins a trace, of which that share is kept.
    #[must_use]
    pub fn fresh(ratio: f64) -> Self {
        let trace = *Uuid::now_v7().as_bytes();
        Self { trace, span: span_id(), is_sampled: is_within(trace, ratio) }
    }
}

/// Returns an id for a span.
#[must_use]
pub fn span_id() -> [u8; 8] {
    let mut id = [0; 8];
    // The half that does not tell the time: a count within the moment, and chance.
    id.copy_from_slice(&Uuid::now_v7().as_bytes()[8..]);
    id
}

/// Says whether a trace is among the share that is kept; any two who ask agree.
fn is_within(trace: [u8; 16], ratio: f64) -> bool {
    // The end of an id is drawn for each; what stands before it counts up within a moment.
    let drawn = trace[12..].iter().fold(0_u32, |drawn, byte| drawn << 8 | u32::from(*byte));
    f64::from(drawn) < ratio * (f64::from(u32::MAX) + 1.0)
}

/// Reads so many bytes in lower-case hexadecimal, and nothing else.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if text.len() != 2 * N || !text.as_bytes().iter().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Writes bytes in hexadecimal.
pub(super) fn written(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{}-{}-{flags:02x}", written(&self.trace), written(&self.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_as_it_is_written() {
        let context = Context::parse(GIVEN).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), GIVEN);
        assert!(!Context::parse(&GIVEN.replace("-01", "-00")).unwrap().is_sampled);
        assert!(Context::parse(&format!("{}-more", GIVEN.replacen("00", "01", 1))).is_some());
    }

    #[test]
    fn what_is_no_context_is_none() {
        for wrong in [
            "",
            "00",
            &GIVEN.to_uppercase(),
            &GIVEN[..54],
            &format!("{GIVEN}-more"),
            &GIVEN.replacen("00", "ff", 1),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_of_the_traces_is_kept() {
        let kept = |ratio: f64| (0..1000).filter(|_| Context::fresh(ratio).is_sampled).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, 1000));
        assert!((300..700).contains(&kept(0.5)), "a draw of one in 10^30");
    }

    #[test]
    fn ids_are_not_repeated() {
        let ids: std::collections::BTreeSet<[u8; 8]> = (0..1000).map(|_| span_id()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
