//! Text of others, made fit to be judged by a person.
//!
//! Whoever agrees to a command must see what it is. A terminal obeys escape sequences, goes back to the start of the line
//! at a carriage return, turns the direction of writing around, and shows some characters as nothing at all; each of
//! these lets a text look like another one. So everything that is not seen as itself is written out as `<U+001B>`, and
//! two different texts never look the same.

use std::borrow::Cow;

/// Returns `text` with every character written out that a terminal would obey or not show: control characters, escape
/// sequences, marks of direction, characters without width, and spaces that are no plain space. Line breaks and tabs stay
/// as they are.
///
/// ```
/// assert_eq!(throughline_tools::visible("ls\r\u{1b}[2Krm\n"), "ls<U+000D><U+001B>[2Krm\n");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) && !text.contains(WRITTEN_OUT) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        // What only looks like our own notation is not.
        if is_deceptive(c) || text[at..].starts_with(WRITTEN_OUT) {
            shown.push_str(&format!("{WRITTEN_OUT}{:04X}>", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Returns `text` as [`visible`] does, with line breaks and tabs written out as well: as one line, whatever it holds.
#[must_use]
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "<U+000A>").replace('\t', "<U+0009>")
}

/// How a character that is written out begins.
const WRITTEN_OUT: &str = "<U+";

/// Says whether a character is something else than what is seen of it.
const fn is_deceptive(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => false,
        // Controls, the end of a line or paragraph by another name, and what only programs see.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => true,
        // Marks of direction: left, right, embedded, overridden, isolated.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Nothing to be seen: joiners, fillers, soft hyphens, marks of order, invisible operators.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' => true,
        '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Variation selectors and tags, which can carry a whole text unseen.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Spaces that a shell does not take for one.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_seen_as_itself_stays() {
        let text = "fn main() {\n\tlet ü = \"日本語 العربية 🎉\"; // \\u{1b} \\r <U>\n}";
        assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn what_a_terminal_obeys_or_hides_is_written_out() {
        for (text, wanted) in [
            ("a\x1b[31mb", "a<U+001B>[31mb"),
            ("\x1b]0;title\x07", "<U+001B>]0;title<U+0007>"),
            ("rm -rf ~\recho hello", "rm -rf ~<U+000D>echo hello"),
            ("one\r\ntwo", "one<U+000D>\ntwo"),
            ("a\u{9b}2J", "a<U+009B>2J"),
            ("x\u{8}\u{7f}\0", "x<U+0008><U+007F><U+0000>"),
            ("ab\u{202e}cd\u{2066}", "ab<U+202E>cd<U+2066>"),
            ("ev\u{200b}al\u{feff}", "ev<U+200B>al<U+FEFF>"),
            ("rm\u{a0}-rf", "rm<U+00A0>-rf"),
            ("a\u{2028}b", "a<U+2028>b"),
            ("tag\u{e0041}\u{fe0f}", "tag<U+E0041><U+FE0F>"),
            ("<U+001B>", "<U+003C>U+001B>"),
        ] {
            assert_eq!(visible(text), wanted);
        }
        assert_eq!(visible_line("a\nb\tc"), "a<U+000A>b<U+0009>c");
    }

    /// Reads what was written out.
    fn read_back(shown: &str) -> String {
        let mut pieces = shown.split(WRITTEN_OUT);
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (code, rest) = piece.split_once('>').unwrap();
            text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            text.push_str(rest);
        }
        text
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_no_two_texts_look_the_same(
            text in "([<U+0-9A-F>\\r\\n\u{1b}\u{200b}a]|\\PC|\\pC){0,40}"
        ) {
            let shown = visible(&text);
            prop_assert!(!shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            prop_assert!(!shown.contains(is_deceptive));
            prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
            prop_assert_eq!(read_back(&shown), text);
        }
    }
}
