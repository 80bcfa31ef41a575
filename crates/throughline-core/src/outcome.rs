//! How a result says that it is no success where the dialect has no field for that (R21).
//!
//! A mark is the first line of the result, or the first field where the result is an object, so that what is JSON stays
//! JSON (R29). It is reversible: text that happens to begin with a mark gets one more in front, which says that all is
//! well.

use crate::{Content, Outcome, Part, Text};

const MARKS: [(&str, Outcome); 5] = [
    ("[tool error]", Outcome::Error),
    ("[tool denied]", Outcome::Denied),
    ("[tool interrupted]", Outcome::Interrupted),
    ("[tool outcome unknown]", Outcome::Unknown),
    ("[tool result]", Outcome::Ok),
];

/// What an object begins with that is marked, up to the word for its outcome.
const FIELD: &str = "{\"tool_outcome\":\"";

const FIELD_WORDS: [(&str, Outcome); 5] = [
    ("error", Outcome::Error),
    ("denied", Outcome::Denied),
    ("interrupted", Outcome::Interrupted),
    ("unknown", Outcome::Unknown),
    ("ok", Outcome::Ok),
];

/// Returns the first line that tells a model how the tool call went.
#[must_use]
pub fn mark(outcome: Outcome) -> &'static str {
    MARKS.iter().find(|(_, marked)| *marked == outcome).map_or("", |(mark, _)| mark)
}

/// Returns `parts` with a mark in front where `outcome` needs one.
///
/// `told` says that the dialect itself tells success from failure, so that only what it cannot tell apart
/// is marked.
#[must_use]
pub fn marked(parts: &[Part], outcome: Outcome, told: bool) -> Vec<Part> {
    let tells = told && matches!(outcome, Outcome::Ok | Outcome::Error);
    let mistakable = split(parts, told, outcome.is_error()).is_some();
    if !mistakable && (tells || outcome == Outcome::Ok) {
        return parts.to_vec();
    }
    let mut marked = parts.to_vec();
    let is_alone = marked.len() == 1;
    match marked.first_mut() {
        Some(Part { content: Content::Text(text), wire }) => {
            *text = marked_text(text, outcome, is_alone);
            *wire = None;
        }
        _ => marked.insert(0, Part::text(mark(outcome))),
    }
    marked
}

/// Marks a text. Only an object that is all of the result is marked inside: texts may be joined on their way.
fn marked_text(text: &str, outcome: Outcome, is_alone: bool) -> Text {
    let Some(fields) = fields_of(text).filter(|_| is_alone) else {
        return Text::from(format!("{}\n{text}", mark(outcome)));
    };
    let word = FIELD_WORDS.iter().find(|(_, marked)| *marked == outcome).map_or("", |(word, _)| word);
    let joint = if fields.trim_start().starts_with('}') { "" } else { "," };
    Text::from(format!("{FIELD}{word}\"{joint}{fields}"))
}

/// Returns what follows the first brace of a text that is an object, as far as its ends tell.
fn fields_of(text: &str) -> Option<&str> {
    let fields = text.strip_prefix('{').filter(|fields| fields.ends_with('}'))?;
    fields.trim_start().starts_with(['"', '}']).then_some(fields)
}

/// Reads the mark of an object, and the object without it.
fn split_object(text: &str) -> Option<(Outcome, Text)> {
    let marked = text.strip_prefix(FIELD)?;
    let (word, outcome) = FIELD_WORDS.iter().find(|(word, _)| marked.starts_with(&format!("{word}\"")))?;
    let rest = &marked[word.len() + 1..];
    let object = format!("{{{}", rest.strip_prefix(',').unwrap_or(rest));
    fields_of(&object)?;
    Some((*outcome, Text::from(object)))
}

/// Returns the outcome and the content of a result that may begin with a mark.
#[must_use]
pub fn unmarked(parts: Vec<Part>, told: bool, is_error: bool) -> (Outcome, Vec<Part>) {
    let plain = if is_error { Outcome::Error } else { Outcome::Ok };
    let Some((outcome, rest)) = split(&parts, told, is_error) else { return (plain, parts) };
    let mut parts = parts;
    match rest {
        Some(rest) => parts[0] = Part::text(rest),
        None => {
            parts.remove(0);
        }
    }
    (outcome, parts)
}

/// Reads the mark of a result, and what is left of the first part without it.
///
/// Where the dialect tells failure itself, its word stands: a mark counts only if it agrees with it.
fn split(parts: &[Part], told: bool, is_error: bool) -> Option<(Outcome, Option<Text>)> {
    let first = parts.first()?.as_text()?;
    let agrees = |outcome: Outcome| !told || outcome.is_error() == is_error;
    let object = if parts.len() == 1 { split_object(first) } else { None };
    if let Some((outcome, object)) = object {
        return agrees(outcome).then_some((outcome, Some(object)));
    }
    let (line, outcome) = MARKS.iter().find(|(line, _)| first.starts_with(line))?;
    if !agrees(*outcome) {
        return None;
    }
    match &first[line.len()..] {
        "" => Some((*outcome, None)),
        rest => rest.strip_prefix('\n').map(|rest| (*outcome, Some(Text::from(rest)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back_and_forth(text: &str, outcome: Outcome, told: bool) -> (Outcome, Vec<Part>) {
        let parts = vec![Part::text(text)];
        unmarked(marked(&parts, outcome, told), told, outcome.is_error())
    }

    #[test]
    fn a_plain_success_is_left_alone() {
        assert_eq!(marked(&[Part::text("fine")], Outcome::Ok, false), [Part::text("fine")]);
    }

    #[test]
    fn an_object_stays_an_object() {
        let sent =
            |text: &str| marked(&[Part::text(text)], Outcome::Error, false)[0].as_text().unwrap().to_string();
        assert_eq!(sent(r#"{"error":"no such file"}"#), r#"{"tool_outcome":"error","error":"no such file"}"#);
        assert_eq!(sent("{}"), r#"{"tool_outcome":"error"}"#);
        assert_eq!(sent("{x}"), "[tool error]\n{x}");
    }

    #[test]
    fn an_image_alone_gets_a_line_of_its_own() {
        let image = Part { content: Content::Opaque { kind: "image".into() }, wire: None };
        let sent = marked(std::slice::from_ref(&image), Outcome::Error, false);
        assert_eq!(sent[0], Part::text("[tool error]"));
        assert_eq!(unmarked(sent, false, false), (Outcome::Error, vec![image]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn marks_are_reversible(
            pre in prop::sample::select(vec!["", "[tool error]\n", "[tool result]\n", "[tool denied]\n[tool result]\n", "[tool result]"]),
            body in "[a-z\\n\\[\\] ]{0,12}|[{] ?(\"tool_outcome\":\"(ok|error|odd)\")?,?(\"a\":1)?[}]?",
            outcome in prop::sample::select(MARKS.map(|(_, outcome)| outcome).to_vec()),
            told: bool,
        ) {
            let text = format!("{pre}{body}");
            prop_assert_eq!(back_and_forth(&text, outcome, told), (outcome, vec![Part::text(text.as_str())]));
        }
    }
}
