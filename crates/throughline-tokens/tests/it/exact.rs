//! Counts beside those of tiktoken 0.14, the vocabularies' own program, for text of many kinds.

use throughline_tokens::Vocabulary;

/// A text, how often it is repeated, and how many tokens that is in `o200k_base` and in `cl100k_base`.
#[rustfmt::skip]
const TABLE: &[(&str, usize, u64, u64)] = &[
    ("", 1, 0, 0),
    ("hello world", 1, 2, 2),
    ("Hello, World!", 1, 4, 4),
    ("  leading and   inner spaces  ", 1, 7, 7),
    ("tabs\tand\nnewlines\r\n\r\n  end\n  ", 1, 10, 10),
    ("I'll say it's what they've DON'T we'Re 'S", 1, 10, 14),
    ("getURLOfHTMLElement camelCase snake_case SCREAMING_SNAKE", 1, 14, 15),
    ("1234567890 3.14159 0xDEADBEEF 2026-11-16T01:37:00Z", 1, 29, 29),
    ("fn main() {\n    println!(\"{}\", x);\n}\n", 1, 10, 10),
    ("{\"path\":\"src/lib.rs\",\"limit\":20,\"nested\":{\"a\":[1,2,3],\"b\":null}}", 1, 25, 25),
    ("https://example.com/a/b?c=d&e=f#g", 1, 12, 12),
    ("Größe über Straße, naïve café", 1, 8, 9),
    ("Привет, мир! Как дела?", 1, 8, 12),
    ("こんにちは世界\u{3002}漢字とカナ", 1, 8, 11),
    ("안녕하세요 세계", 1, 3, 9),
    ("مرحبا بالعالم", 1, 4, 10),
    ("नमस\u{94d}त\u{947} द\u{941}न\u{93f}य\u{93e}", 1, 5, 13),
    ("สว\u{e31}สด\u{e35}ชาวโลก", 1, 7, 13),
    ("\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}\u{1f1e9}\u{1f1ea} emoji \u{1f389}\u{1f389}", 1, 20, 31),
    ("<|endoftext|> <|im_start|>user", 1, 14, 13),
    ("e\u{301}\u{301}A\u{301}bC !!\u{301}x", 1, 10, 10),
    ("\u{17f}'\u{17f} K'LL ǅabc ǅ", 1, 13, 15),
    ("....!!!???///\n//\n\n/ ---===***", 1, 10, 9),
    (" \n \n\n   x\n", 1, 5, 5),
    (" \u{a0}\u{2003}x\u{3000}\u{3000}y", 1, 6, 7),
    ("a", 300, 38, 38),
    ("ab", 200, 100, 200),
    ("!?", 150, 77, 151),
    ("AaBbCcﬁﬂ ⅣⅤ²³ ½", 1, 14, 19),
    ("diff --git a/x b/x\n@@ -1,3 +1,4 @@\n-old\n+new\n", 1, 24, 23),
];

#[test]
fn counts_equal_those_of_tiktoken() {
    for (text, times, o200k, cl100k) in TABLE {
        let text = text.repeat(*times);
        assert_eq!(Vocabulary::O200k.count(&text), *o200k, "o200k of {text:?}");
        assert_eq!(Vocabulary::Cl100k.count(&text), *cl100k, "cl100k of {text:?}");
    }
}

/// A run without an end takes no longer for each byte than a short one: 64 megabytes of a letter had taken minutes, and
/// gigabytes of memory.
#[test]
fn a_run_without_an_end_is_counted_as_fast_as_any_text() {
    assert_eq!(Vocabulary::O200k.count(&"a".repeat(64 << 20)), (64 << 20) / 8);
    // Letters in no order, so that no part is like the one before.
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from(state >> 24).unwrap_or_default() % 26)
    };
    let letters: String = std::iter::repeat_with(&mut letter).take(4 << 20).collect();
    let count = Vocabulary::O200k.count(&letters);
    assert!((1 << 20..4 << 20).contains(&count), "{count}");
}

#[test]
fn hostile_text_is_counted_in_time() {
    for text in [" ", "a", "\n", "!", "'", "A\u{301}", "\u{5b57}", "0"] {
        let count = Vocabulary::O200k.count(&text.repeat(20_000));
        assert!(count > 0 && count <= 60_000, "{text:?}: {count}");
    }
}
