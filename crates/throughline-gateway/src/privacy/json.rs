//! Strings within JSON: found without reading the rest, and written back only where something was taken out.
//!
//! Rules see the text that a string stands for, not its escapes; a string that is JSON itself, as the arguments of a
//! call are, is looked into. What is sealed is passed over.

use super::Privacy;
use std::borrow::Cow;
use std::ops::Range;
use throughline_wire::json::Writer;

/// Values that a provider has signed or sealed, by the names of their fields.
const SEALED: [&str; 5] = ["signature", "encrypted_content", "thinking", "thoughtSignature", "data"];

/// A string within JSON that is a value.
pub(super) struct Leaf {
    /// Where its content stands, without the quotes.
    pub content: Range<usize>,
    /// The names of the fields that lead to it, as a number.
    pub path: u64,
}

impl Privacy {
    /// Returns JSON without what the rules find in its strings.
    pub(super) fn json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = String::new();
        let mut copied = 0;
        for leaf in leaves(text) {
            let content = unescaped(&text[leaf.content.clone()]);
            if let Cow::Owned(changed) = self.text(&content) {
                redacted.push_str(&text[copied..leaf.content.start]);
                redacted.push_str(&escaped(&changed));
                copied = leaf.content.end;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        redacted.push_str(&text[copied..]);
        Cow::Owned(redacted)
    }
}

/// Returns the strings of a JSON text that are values and not sealed, in their order.
pub(super) fn leaves(text: &str) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    // For each level: the path so far, and the field whose value comes next.
    let mut levels: Vec<(u64, Option<Range<usize>>)> = vec![(0, None)];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                let path = path_of(text, levels.last());
                levels.push((path, None));
                at += 1;
            }
            b'}' | b']' => {
                if levels.len() > 1 {
                    levels.pop();
                }
                at += 1;
            }
            b'"' => {
                let end = string_end(bytes, at + 1);
                let content = at + 1..end;
                at = (end + 1).min(bytes.len());
                if next_is(bytes, at, b':') {
                    if let Some((_, field)) = levels.last_mut() {
                        *field = Some(content);
                    }
                } else if !is_sealed(text, levels.last()) {
                    leaves.push(Leaf { content, path: path_of(text, levels.last()) });
                }
            }
            _ => at += 1,
        }
    }
    leaves
}

fn path_of(text: &str, level: Option<&(u64, Option<Range<usize>>)>) -> u64 {
    let Some((path, field)) = level else { return 0 };
    let name = field.clone().map_or("", |field| &text[field]);
    name.bytes().fold(path.wrapping_mul(31).wrapping_add(7), |path, byte| {
        (path ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn is_sealed(text: &str, level: Option<&(u64, Option<Range<usize>>)>) -> bool {
    level.and_then(|(_, field)| field.clone()).is_some_and(|field| SEALED.contains(&&text[field]))
}

pub(crate) fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

pub(crate) fn next_is(bytes: &[u8], from: usize, wanted: u8) -> bool {
    bytes[from.min(bytes.len())..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&wanted)
}

/// Returns what a string of JSON stands for; escapes that cannot be understood stay as they are.
pub(crate) fn unescaped(content: &str) -> Cow<'_, str> {
    if !content.contains('\\') {
        return Cow::Borrowed(content);
    }
    let quoted = format!("\"{content}\"");
    match throughline_wire::json::Document::parse(quoted) {
        Ok(document) => match document.root().as_str() {
            Some(text) => Cow::Owned(text.into_owned()),
            None => Cow::Borrowed(content),
        },
        Err(_) => Cow::Borrowed(content),
    }
}

/// Returns a text as the content of a string of JSON.
pub(crate) fn escaped(text: &str) -> String {
    let mut writer = Writer::new();
    writer.string(text);
    let quoted = writer.into_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::SECRETS;

    fn redacted(text: &str) -> String {
        Privacy::new(SECRETS).unwrap().text(text).into_owned()
    }

    #[test]
    fn strings_lose_secrets_and_the_rest_keeps_its_bytes() {
        let text = r#"{ "a" : ["x\n\u0041KIAIOSFODNN7EXAMPLE y", 1.50 ,"\/"], "b":{"c":"ok\/"}}"#;
        assert_eq!(redacted(text), r#"{ "a" : ["x\n[redacted:aws-key] y", 1.50 ,"\/"], "b":{"c":"ok\/"}}"#);
    }

    #[test]
    fn json_within_json_is_looked_into() {
        let inner = r#"{"command":"export T=ghp_0123456789abcdefghijABCDEFGHIJ012345"}"#;
        let text = format!("{{\"arguments\":\"{}\"}}", escaped(inner));
        let wanted =
            format!("{{\"arguments\":\"{}\"}}", escaped(r#"{"command":"export T=[redacted:github]"}"#));
        assert_eq!(redacted(&text), wanted);
    }

    #[test]
    fn a_key_over_several_lines_goes_whole() {
        let text = r#"{"t":"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"}"#;
        assert_eq!(redacted(text), r#"{"t":"[redacted:private-key]\n"}"#);
    }

    #[test]
    fn what_is_sealed_keeps_its_bytes() {
        let text =
            r#"{"type":"thinking","thinking":"AKIAIOSFODNN7EXAMPLE","signature":"AKIAIOSFODNN7EXAMPLE"}"#;
        assert_eq!(redacted(text), text);
    }

    #[test]
    fn what_only_begins_like_json_does_no_harm() {
        for text in ["{", "[\"", "{\"a\":\"\\", "[AKIAIOSFODNN7EXAMPLE"] {
            assert_eq!(redacted(text), text);
        }
        assert_eq!(redacted("[\"AKIAIOSFODNN7EXAMPLE"), "[\"[redacted:aws-key]");
    }
}
