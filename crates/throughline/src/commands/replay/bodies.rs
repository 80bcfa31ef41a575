//! Two bodies of a request beside each other: a line for each value of their JSON, and what differs among them.
//!
//! The bodies are compared byte by byte elsewhere; here they are laid out so that people see what that means.

use crate::output::{Ink, counted};
use throughline_gateway::turn::replay::{Bodies, excerpts};
use throughline_tools::unified_diff;
use throughline_wire::json::{Document, Kind, Node, quote};

/// So many lines of a difference are shown unless all of it is asked for.
const LINES_MAX: usize = 60;

/// So much of a line is.
const CHARS_MAX: usize = 160;

/// Returns how two bodies differ, line by line; `full` with nothing left out.
pub fn compared(bodies: &Bodies, full: bool, ink: &Ink) -> String {
    let (recorded, replayed) = (laid_out(&bodies.recorded), laid_out(&bodies.replayed));
    let diff = unified_diff("recorded", "replayed", &recorded, &replayed);
    let lines: Vec<&str> = diff.lines().collect();
    if lines.is_empty() {
        return "  only in how it is written, and not in what it says\n".to_owned();
    }
    let shown = match full {
        true => lines.iter().map(|line| (*line).to_owned()).collect(),
        false => shortened(&lines),
    };
    let count = if full { shown.len() } else { LINES_MAX };
    let mut text: String = shown.iter().take(count).map(|line| toned(line, ink)).collect();
    if let more @ 1.. = shown.len().saturating_sub(count) {
        let more = counted(more as u64, "more line", "more lines");
        text.push_str(&format!("{}\n", ink.dim(&format!("… {more}; --full shows all"))));
    }
    text
}

fn toned(line: &str, ink: &Ink) -> String {
    let line = ink.tame(line);
    let toned = match line.as_bytes().first() {
        Some(b'-') => ink.bad(&line),
        Some(b'+') => ink.good(&line),
        Some(b'@') => ink.dim(&line),
        _ => line.into_owned(),
    };
    format!("{toned}\n")
}

/// Cuts long lines: those that stand for each other to where they differ, and others at their end.
fn shortened(lines: &[&str]) -> Vec<String> {
    let mut all = Vec::with_capacity(lines.len());
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let count =
            |sign: char, lines: &[&str]| lines.iter().take_while(|line| line.starts_with(sign)).count();
        let gone = count('-', rest);
        let (gone, behind) = rest.split_at(gone);
        let (come, behind) = behind.split_at(if gone.is_empty() { 0 } else { count('+', behind) });
        if gone.is_empty() {
            all.push(cut(first));
            rest = &rest[1..];
            continue;
        }
        let pair = |one: &str, other: Option<&&str>| match other {
            Some(other) if one.len() > CHARS_MAX || other.len() > CHARS_MAX => {
                format!("{}{}", &one[..1], excerpts(&one[1..], &other[1..]).0)
            }
            _ => cut(one),
        };
        all.extend(gone.iter().enumerate().map(|(at, line)| pair(line, come.get(at))));
        all.extend(come.iter().enumerate().map(|(at, line)| pair(line, gone.get(at))));
        rest = behind;
    }
    all
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Returns JSON with a line for each of its values; what is none, as it is.
fn laid_out(body: &str) -> String {
    let Ok(document) = Document::parse(body) else { return format!("{body}\n") };
    let mut out = String::with_capacity(body.len() * 2);
    lay_out(document.root(), 0, &mut out);
    out.push('\n');
    out
}

fn lay_out(node: Node<'_>, depth: usize, out: &mut String) {
    let (brackets, inner): (_, Vec<(Option<String>, Node<'_>)>) = match node.kind() {
        Kind::Object => {
            (["{", "}"], node.fields().map(|(name, value)| (Some(quote(&name)), value)).collect())
        }
        Kind::Array => (["[", "]"], node.items().map(|value| (None, value)).collect()),
        _ => return out.push_str(node.raw()),
    };
    out.push_str(brackets[0]);
    let count = inner.len();
    for (at, (name, value)) in inner.into_iter().enumerate() {
        line(depth + 1, out);
        if let Some(name) = name {
            out.push_str(&name);
            out.push_str(": ");
        }
        lay_out(value, depth + 1, out);
        out.push_str(if at + 1 < count { "," } else { "" });
    }
    if count > 0 {
        line(depth, out);
    }
    out.push_str(brackets[1]);
}

fn line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(recorded: &str, replayed: &str) -> Bodies {
        Bodies { recorded: recorded.to_owned(), replayed: replayed.to_owned() }
    }

    #[test]
    fn each_value_has_its_line() {
        let text = laid_out(r#"{"a":[1.10,{"b":"c\n"}],"d":{},"e":[]}"#);
        assert_eq!(
            text,
            "{\n  \"a\": [\n    1.10,\n    {\n      \"b\": \"c\\n\"\n    }\n  ],\n  \"d\": {},\n  \"e\": []\n}\n"
        );
        assert_eq!(laid_out("no JSON"), "no JSON\n");
    }

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        let diff = compared(&bodies(r#"{"a":1,"b":"x"}"#, r#"{"a":1,"b":"y"}"#), false, &Ink::plain());
        assert_eq!(
            diff,
            "--- recorded\n+++ replayed\n@@ -1,4 +1,4 @@\n {\n   \"a\": 1,\n-  \"b\": \"x\"\n+  \"b\": \"y\"\n }\n"
        );
    }

    #[test]
    fn long_lines_are_shown_where_they_differ_and_whole_if_that_is_asked_for() {
        let long = "x".repeat(5000);
        let bodies = bodies(&format!(r#"{{"a":"{long}A{long}"}}"#), &format!(r#"{{"a":"{long}B{long}"}}"#));
        let short = compared(&bodies, false, &Ink::plain());
        assert!(short.contains("xA") && short.contains("xB") && short.len() < 600, "{short}");
        assert!(compared(&bodies, true, &Ink::plain()).len() > 20_000);
    }

    #[test]
    fn a_long_difference_says_how_much_of_it_is_left_out() {
        let many = |value: u32| {
            let items: Vec<String> = (0..100).map(|at| (at * 2 + value).to_string()).collect();
            format!("[{}]", items.join(","))
        };
        let bodies = bodies(&many(0), &many(1));
        let short = compared(&bodies, false, &Ink::plain());
        assert_eq!(short.lines().count(), LINES_MAX + 1, "{short}");
        assert!(short.ends_with("more lines; --full shows all\n"), "{short}");
        assert!(!compared(&bodies, true, &Ink::plain()).contains("--full"));
    }

    #[test]
    fn what_cannot_be_laid_out_apart_says_so() {
        let told = compared(&bodies(r#"{"a":1}"#, r#"{"a": 1}"#), false, &Ink::plain());
        assert!(told.contains("how it is written"), "{told}");
    }
}
