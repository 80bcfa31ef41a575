//! A branch as a document for people: the talk, and each call with its result behind it.

use crate::{Told, moment};
use throughline_core::{Content, Entry, Kind, Ledger, Media, Part, Role, Text};

/// Writes a branch as Markdown.
#[must_use]
pub fn write_markdown(title: &str, told: &[Told]) -> String {
    let entries: Vec<Entry> = told.iter().map(|told| told.entry.clone()).collect();
    let ledger = Ledger::of(&entries);
    let mut out = format!("# {}\n", one_line(title));
    for (number, Told { entry, at, .. }) in told.iter().enumerate() {
        let settled = ledger.pair_of(number).filter(|pair| pair.result == Some(number)).is_some();
        if !settled {
            out.push_str(&section(entry, *at));
        }
        let result = ledger.pair_of(number).filter(|pair| pair.call == number).and_then(|pair| pair.result);
        if let Some(result) = result {
            out.push_str(&section(&told[result].entry, told[result].at));
        }
    }
    out
}

fn section(entry: &Entry, at: i64) -> String {
    let time = moment::iso(at);
    match &entry.kind {
        Kind::Said(said) => {
            let who = match said.role {
                Role::System | Role::Developer => "Instructions",
                Role::User => "User",
                Role::Assistant => "Assistant",
            };
            format!("\n## {who}\n\n*{time}*\n\n{}\n", words(&said.parts))
        }
        Kind::Thought(thought) => {
            let texts = if thought.content.is_empty() { &thought.summary } else { &thought.content };
            let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
            let quoted: Vec<String> = texts.join("\n\n").lines().map(|line| format!("> {line}")).collect();
            if quoted.is_empty() { String::new() } else { format!("\n{}\n", quoted.join("\n")) }
        }
        Kind::Called(call) => {
            format!("\n### `{}`\n\n{}", one_line(&call.name), fenced(call.input.text(), "json"))
        }
        Kind::Returned(returned) => {
            let how = if returned.outcome.is_error() { "Failed:\n\n" } else { "" };
            format!("\n{how}{}", fenced(&words(&returned.parts), ""))
        }
        Kind::Summarised(summary) => {
            format!("\n## Summary of {} entries\n\n*{time}*\n\n{}\n", summary.covers, summary.text)
        }
        Kind::HandedOver(handover) => format!("\n*{time}: {}*\n", one_line(&handover.reason)),
        Kind::Reference { id } => format!("\n*refers to {}*\n", one_line(id)),
        Kind::Opaque { kind } => format!("\n*{}*\n", one_line(kind)),
    }
}

fn words(parts: &[Part]) -> String {
    let texts: Vec<String> = parts.iter().map(part).collect();
    texts.join("\n")
}

fn part(part: &Part) -> String {
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => text.to_string(),
        Content::Image(image) => format!("[image: {}]", media(&image.media)),
        Content::File(file) => {
            format!("[file {}: {}]", file.name.as_deref().unwrap_or("without a name"), media(&file.media))
        }
        Content::Opaque { kind } => format!("[{kind}]"),
    }
}

fn media(media: &Media) -> String {
    match media {
        Media::Url(url) | Media::Stored(url) => url.to_string(),
        Media::Inline { media_type, base64 } => format!("{media_type}, {} bytes", base64.len() / 4 * 3),
        Media::Plain(text) => format!("text, {} bytes", text.len()),
    }
}

/// Returns text in a fence that it cannot break out of.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
