//! Ids in the form that an agent gives its own, made from what they stand for: the same session twice has the same
//! ids, and is written to the same file.

use crate::{Agent, Millis};

/// Returns the id of a session, made from what it was made of.
#[must_use]
pub fn session_id(agent: Agent, of: &str, at: Millis) -> String {
    match agent {
        Agent::ClaudeCode | Agent::VsCode => uuid(of, "session"),
        Agent::Codex => uuid_of_time(of, at),
        Agent::Opencode => opencode_id("ses", of, at, 0),
    }
}

/// Returns the uuid that stands for `what` of the session `of`.
pub(crate) fn uuid(of: &str, what: &str) -> String {
    let mut bytes = digest(of, what);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    dashed(bytes)
}

/// Returns an id as opencode makes them: they sort by time, and then by number. Those of sessions sort backwards.
#[must_use]
pub fn opencode_id(prefix: &str, of: &str, at: Millis, number: u64) -> String {
    let count = (at.unsigned_abs() << 12).wrapping_add(number);
    let count = if prefix == "ses" { !count } else { count } & 0xffff_ffff_ffff;
    let hex: String = digest(of, prefix).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}_{count:012x}{}", &hex[..14])
}

/// Returns a short name in hexadecimal digits.
pub(crate) fn hex(of: &str, what: &str) -> String {
    digest(of, what)[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn uuid_of_time(of: &str, at: Millis) -> String {
    let mut bytes = digest(of, "session");
    bytes[..6].copy_from_slice(&at.to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    dashed(bytes)
}

fn digest(of: &str, what: &str) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(of.as_bytes());
    hasher.update(&[0]);
    hasher.update(what.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    bytes
}

fn dashed(mut bytes: [u8; 16]) -> String {
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_as_the_agents_make_them() {
        let claude = session_id(Agent::ClaudeCode, "a", 0);
        assert_eq!((claude.len(), &claude[14..15]), (36, "4"));
        let codex = session_id(Agent::Codex, "a", 1_794_804_747_376);
        assert_eq!((&codex[..13], &codex[14..15]), ("01a1e2b3-0c70", "7"));
        assert_eq!(session_id(Agent::Opencode, "a", 1_794_804_899_500).len(), 30);
        assert_eq!(session_id(Agent::Codex, "a", 5), session_id(Agent::Codex, "a", 5));
    }

    #[test]
    fn later_ids_of_opencode_sort_behind_earlier_ones() {
        let (first, second) =
            (opencode_id("msg", "a", 1_794_804_899_500, 1), opencode_id("msg", "b", 1_794_804_899_500, 2));
        assert!(first < second && second < opencode_id("msg", "a", 1_794_804_899_501, 0));
        assert!(
            opencode_id("ses", "a", 1_794_804_899_501, 0) < opencode_id("ses", "a", 1_794_804_899_500, 0)
        );
    }
}
