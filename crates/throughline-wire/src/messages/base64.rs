//! Base64, read only.
//!
//! Text files come base64-encoded from the other dialects; this one wants text documents as text.

/// Returns the text that `encoded` stands for, if it is base64 of UTF-8 (standard or URL alphabet).
pub(super) fn decode_text(encoded: &str) -> Option<String> {
    String::from_utf8(decode(encoded)?).ok()
}

fn decode(encoded: &str) -> Option<Vec<u8>> {
    let digits = encoded.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.as_bytes().chunks(4) {
        let mut value: u32 = 0;
        for digit in group {
            value = value << 6 | u32::from(digit_value(*digit)?);
        }
        // A last group of n digits holds n - 1 bytes; a single digit holds none and is a mistake.
        let missing = 4 - group.len();
        value <<= 6 * missing;
        if missing == 3 {
            return None;
        }
        bytes.extend_from_slice(&value.to_be_bytes()[1..4 - missing]);
    }
    Some(bytes)
}

const fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_the_last_group_is_read() {
        for (encoded, text) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc"), ("w7zDqQ", "üé")]
        {
            assert_eq!(decode_text(encoded).as_deref(), Some(text), "{encoded}");
        }
    }

    #[test]
    fn what_is_no_base64_or_no_text_is_refused() {
        for encoded in ["Y", "YQ=a", "Y Q=", "/w=="] {
            assert_eq!(decode_text(encoded), None, "{encoded}");
        }
    }
}
