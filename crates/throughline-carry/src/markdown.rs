//! A branch as a document for people: the talk, and each call with its result behind it.

use crate::{Told, moment};
use throughline_core::{Content, Entry, Kind, Ledger, Media, Part, Role, Text};

/// Writes a branch as Markdown.
#[must_use]
pub fn write_markdown(title: &str, told: &[Told]) -> String {
    let entries: Vec<Entry> = told.iter().map(|told| told.entry.clone()).collect();
    let ledger = Ledger::of(&entries);
    let mut out = format!("# {}\n", one_line(title));
    let mut speaker = "";
    for (number, Told { entry, at, .. }) in told.iter().enumerate() {
        let pair = ledger.pair_of(number);
        if pair.is_some_and(|pair| pair.result == Some(number)) {
            // It stands behind its call.
            continue;
        }
        let body = section(entry, *at);
        let who = heading(entry);
        // What the model thinks, says and does in one go stands under one heading.
        if let Some(who) = who.filter(|who| !body.is_empty() && (*who != speaker || *who != ASSISTANT)) {
            out.push_str(&format!("\n## {who}\n\n*{}*\n", moment::iso(*at)));
            speaker = who;
        }
        out.push_str(&body);
        match pair.filter(|pair| pair.call == number).map(|pair| pair.result) {
            Some(Some(result)) => out.push_str(&section(&told[result].entry, told[result].at)),
            Some(None) => out.push_str("\n*There is no result.*\n"),
            None => {}
        }
    }
    out
}

const ASSISTANT: &str = "Assistant";

/// Returns under whose name an entry stands, if it needs one.
const fn heading(entry: &Entry) -> Option<&'static str> {
    match &entry.kind {
        Kind::Said(said) => Some(match said.role {
            Role::System | Role::Developer => "Instructions",
            Role::User => "User",
            Role::Assistant => ASSISTANT,
        }),
        Kind::Thought(_) | Kind::Called(_) => Some(ASSISTANT),
        _ => None,
    }
}

fn section(entry: &Entry, at: i64) -> String {
    let time = moment::iso(at);
    match &entry.kind {
        Kind::Said(said) => format!("\n{}\n", words(&said.parts)),
        Kind::Thought(thought) => {
            let texts = if thought.content.is_empty() { &thought.summary } else { &thought.content };
            let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
            let quoted: Vec<String> = texts.join("\n\n").lines().map(|line| format!("> {line}")).collect();
            if quoted.is_empty() { String::new() } else { format!("\n*Thought:*\n\n{}\n", quoted.join("\n")) }
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
