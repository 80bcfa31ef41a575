//! Fenced blocks that nothing in them can end.
//!
//! A fence is longer than any run of backticks in what it holds. Between the line that opens it and the one
//! that closes it stands the content, byte for byte, and one line break: content that ends with a line break
//! is told from content that does not.

/// Appends `content` in a fence that names `language`.
pub(super) fn push_fenced(text: &mut String, content: &str, language: &str) {
    let fence = "`".repeat(longest_run(content).max(2) + 1);
    for piece in [&fence, language, "\n", content, "\n", &fence, "\n"] {
        text.push_str(piece);
    }
}

fn longest_run(content: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in content.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Returns the content of the fenced block that `text` begins with, as a reader of Markdown would find it.
#[cfg(test)]
pub(super) fn read_fenced(text: &str) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(|byte| *byte == b'`').count();
    let fence = &text[..length];
    let start = text.find('\n')? + 1;
    let mut from = start;
    for line in text[start..].split_inclusive('\n') {
        let bare = line.trim_end_matches('\n').trim_start_matches(' ').trim_end();
        if bare.len() >= length && bare.bytes().all(|byte| byte == b'`') && bare.starts_with(fence) {
            return Some((&text[start..from.checked_sub(1)?], &text[from + line.len()..]));
        }
        from += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        let mut text = String::new();
        push_fenced(&mut text, "```rust\nfn a() {}\n```\n````", "md");
        assert_eq!(text, "`````md\n```rust\nfn a() {}\n```\n````\n`````\n");
    }

    proptest! {
        #[test]
        fn what_is_in_a_fence_comes_out_byte_for_byte(content in "[`a~\\n \\r\u{1b}é]{0,40}", tail in "[`\\na]{0,10}") {
            let mut text = String::new();
            push_fenced(&mut text, &content, "rust");
            text.push_str(&tail);
            prop_assert_eq!(read_fenced(&text), Some((content.as_str(), tail.as_str())));
        }
    }
}
