//! The model's sentences.

use super::Draft;
use super::scene::{Scene, Seen};

/// How much of a message is repeated where it is only named, in characters.
const NAMED_MAX: usize = 160;

/// Quotes results, word for word.
pub(super) fn quote(results: &[Seen]) -> String {
    let quotes: Vec<String> = results.iter().map(quote_one).collect();
    quotes.join("\n\n")
}

fn quote_one(seen: &Seen) -> String {
    let tool = seen.tool.as_deref().unwrap_or("The tool");
    let verb = if seen.is_failure { "failed" } else { "returned" };
    let images = match seen.images {
        0 => String::new(),
        1 => " an image and".to_owned(),
        many => format!(" {many} images and"),
    };
    match seen.text.as_str() {
        "" if seen.images > 0 => format!("{tool} {verb}{}.", images.trim_end_matches(" and")),
        "" => format!("{tool} {verb} without a word."),
        text => format!("{tool} {verb}{images}:\n{text}"),
    }
}

/// Names what the prompt holds, in one sentence.
pub(super) fn describe(scene: &Scene) -> String {
    let counts = &scene.counts;
    let all = [
        (counts.system, "system message"),
        (counts.developer, "developer message"),
        (counts.user, "user message"),
        (counts.assistant, "assistant message"),
        (counts.images, "image"),
        (counts.files, "file"),
        (scene.results.len(), "tool result"),
    ];
    let seen: Vec<String> =
        all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
    let seen = match seen.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    };
    match scene.wish.as_str() {
        "" => format!("I saw {seen}."),
        wish => format!("I saw {seen}; the last thing you said is \"{}\".", shortened(wish)),
    }
}

/// Says why the answer is the one it is.
pub(super) fn reasoning(scene: &Scene, draft: &Draft) -> String {
    let wish = shortened(&scene.wish);
    if !draft.calls.is_empty() {
        let names: Vec<&str> = draft.calls.iter().map(|call| call.name.as_str()).collect();
        return format!("The user says \"{wish}\". What fits best is {}.", names.join(", "));
    }
    match scene.fresh().len() {
        0 => format!("The user says \"{wish}\". I answer from what I have."),
        count => format!("The user said \"{wish}\". I have {}, so I quote.", counted(count, "tool result")),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= NAMED_MAX {
        return line;
    }
    let head: String = line.chars().take(NAMED_MAX).collect();
    format!("{head}…")
}
