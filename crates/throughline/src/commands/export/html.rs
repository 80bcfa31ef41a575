//! A conversation as one page that needs nothing else: no script, no network, no other file.
//!
//! What models and tools wrote is hostile: everything goes through [`escaped`], and the page's own policy forbids whatever
//! would run or be fetched all the same.

use crate::commands::run::about;
use crate::output;
use std::collections::BTreeMap;
use throughline_core::{Call, Content, EntryId, Kind, Media, Part, Role, Said, Text, Thought};
use throughline_gateway::config::Config;
use throughline_gateway::privacy::{Privacy, SECRETS};
use throughline_gateway::view::{self, Pair, Tally};
use throughline_store::{Exchange, Heading, Kept, short_id};

/// What is taken out on request, beside keys and tokens: who somebody is, and where they work.
const PERSONAL: [(&str, &str); 2] = [
    ("email", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    ("home", r"(?:/home/|/Users/|C:\\Users\\)(?P<secret>[A-Za-z0-9._-]+)"),
];

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n";

const STYLE: &str = include_str!("page.css");

/// Writes the page. With `redact`, keys, tokens, addresses and names of home directories are taken out.
pub fn write(
    heading: &Heading,
    branch: &[Kept],
    exchanges: &[Exchange],
    config: &Config,
    redact: bool,
) -> Result<String, String> {
    let privacy = match redact {
        true => Privacy::new(SECRETS.iter().copied().chain(PERSONAL)).map_err(|(_, why)| why)?,
        false => Privacy::default(),
    };
    let page = Page { privacy, pairs: view::pairs(branch) };
    let by_call: BTreeMap<&EntryId, &Pair<'_>> =
        page.pairs.iter().filter_map(|pair| Some((&pair.call?.id, pair))).collect();
    let mut body = page.failures(exchanges, None);
    for kept in branch {
        body.push_str(&page.entry(kept, by_call.get(&kept.id).copied()));
        body.push_str(&page.failures(exchanges, Some(&kept.id)));
    }
    let title = page.text(heading.title.as_deref().unwrap_or("A conversation"));
    let facts = facts(heading, exchanges, config).join(" · ");
    Ok(format!(
        "{HEAD}<title>{title}</title>\n<style>\n{STYLE}</style></head><body><main>\n<header><h1>{title}</h1>\
         <p class=\"facts\">{}</p></header>\n{body}</main></body></html>\n",
        page.text(&facts)
    ))
}

fn facts(heading: &Heading, exchanges: &[Exchange], config: &Config) -> Vec<String> {
    let tally = Tally::of(exchanges);
    let mut facts =
        vec![output::seconds(heading.created), output::counted(heading.entries, "entry", "entries")];
    facts.extend(heading.project.as_ref().map(ToString::to_string));
    if let Some(used) = tally.used.total() {
        facts.push(format!("{} tokens in, {} out", output::count(used.input), output::count(used.output)));
    }
    facts.extend(tally.used.cost(config).map(output::money));
    let backends: Vec<&str> = tally.used.backends().into_iter().map(Text::as_str).collect();
    if !backends.is_empty() {
        facts.push(backends.join(", "));
    }
    facts.push(format!("kept by Throughline as {}", short_id(&heading.id)));
    facts
}

struct Page<'k> {
    privacy: Privacy,
    pairs: Vec<Pair<'k>>,
}

impl Page<'_> {
    /// Returns text of others for the page.
    fn text(&self, text: &str) -> String {
        escaped(&self.privacy.text(text))
    }

    fn entry(&self, kept: &Kept, pair: Option<&Pair<'_>>) -> String {
        match &kept.entry.kind {
            Kind::Said(said) => self.said(said, kept),
            Kind::Thought(thought) => self.thought(thought),
            Kind::Called(call) => self.call(call, pair),
            Kind::Returned(returned) if self.is_left_over(kept) => {
                let text = self.text(&view::text_of(&returned.parts));
                format!(
                    "<details class=\"bad\"><summary>a result without a call</summary><pre>{text}</pre></details>\n"
                )
            }
            Kind::HandedOver(handover) => {
                let from = handover.from.as_ref().map_or("", |from| from.backend.as_str());
                let line = format!("{from} → {} ({}: {})", handover.to.backend, handover.by, handover.reason);
                format!("<p class=\"switch\">⇄ {}</p>\n", self.text(&line))
            }
            Kind::Summarised(summary) => {
                let text = self.text(&summary.text);
                let covers = summary.covers;
                format!(
                    "<details><summary>a summary of {covers} entries</summary><pre>{text}</pre></details>\n"
                )
            }
            _ => String::new(),
        }
    }

    fn is_left_over(&self, kept: &Kept) -> bool {
        let is_it = |pair: &&Pair<'_>| pair.result.is_some_and(|result| result.id == kept.id);
        self.pairs.iter().find(is_it).is_none_or(|pair| pair.call.is_none())
    }

    fn said(&self, said: &Said, kept: &Kept) -> String {
        let whole = view::text_of(&said.parts);
        let role = view::role_name(said.role);
        if matches!(said.role, Role::System | Role::Developer) {
            let size = output::count(whole.chars().count() as u64);
            let text = self.text(&whole);
            return format!(
                "<details><summary>{role}, {size} characters</summary><pre>{text}</pre></details>\n"
            );
        }
        let at = output::seconds(kept.at);
        let mut shown = format!("<article class=\"{role}\"><h2>{role} <time>{at}</time></h2>");
        let spoken = view::spoken(&whole);
        let words = if said.role == Role::User { &spoken.words } else { &whole };
        shown.push_str(&self.words(words));
        for (tag, inside) in spoken.injected.iter().filter(|_| said.role == Role::User) {
            let size = output::count(inside.chars().count() as u64);
            let inside = self.text(inside);
            shown.push_str(&format!(
                "<details><summary>⚙ {tag}, {size}</summary><pre>{inside}</pre></details>"
            ));
        }
        shown.push_str(&pictures(&said.parts));
        shown + "</article>\n"
    }

    /// Returns words with the code in them set as code.
    fn words(&self, words: &str) -> String {
        let redacted = self.privacy.text(words);
        let (mut shown, mut text, mut code) = (String::new(), String::new(), None::<String>);
        let paragraph = |text: &mut String| match std::mem::take(text) {
            text if text.trim().is_empty() => String::new(),
            text => format!("<p>{}</p>", escaped(text.trim_matches('\n'))),
        };
        for line in redacted.lines() {
            let is_fence = line.trim_start().starts_with("```");
            match (&mut code, is_fence) {
                (None, true) => {
                    shown.push_str(&paragraph(&mut text));
                    code = Some(String::new());
                }
                (Some(inside), true) => {
                    shown.push_str(&format!("<pre>{}</pre>", escaped(inside)));
                    code = None;
                }
                (Some(inside), false) => inside.push_str(&format!("{line}\n")),
                (None, false) => text.push_str(&format!("{line}\n")),
            }
        }
        shown.push_str(&paragraph(&mut text));
        if let Some(inside) = code {
            shown.push_str(&format!("<pre>{}</pre>", escaped(&inside)));
        }
        shown
    }

    fn thought(&self, thought: &Thought) -> String {
        let readable = if thought.content.is_empty() { &thought.summary } else { &thought.content };
        let texts: Vec<&str> = readable.iter().map(Text::as_str).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() {
            return String::new();
        }
        format!(
            "<details class=\"thought\"><summary>reasoning</summary><pre>{}</pre></details>\n",
            self.text(&text)
        )
    }

    fn call(&self, call: &Call, pair: Option<&Pair<'_>>) -> String {
        let returned = pair.and_then(|pair| pair.result?.entry.as_return());
        let state = match pair {
            Some(pair) => match (view::state_name(pair.state), pair.exit_code()) {
                ("ok", Some(code)) if code != 0 => format!("exit code {code}"),
                (state, _) => state.to_owned(),
            },
            None => "open".to_owned(),
        };
        let (class, mark) = match state.as_str() {
            "ok" => ("call", "✓"),
            "open" => ("call", "…"),
            _ => ("call bad", "✗"),
        };
        let said = if matches!(state.as_str(), "ok" | "open") {
            String::new()
        } else {
            format!(" <em>{state}</em>")
        };
        let head = self.text(&format!("{} {}", call.name, about(call)));
        let input = self.text(call.input.text());
        let result = returned.map(|returned| {
            let text = self.text(&view::text_of(&returned.parts));
            format!("<pre>{text}</pre>{}", pictures(&returned.parts))
        });
        format!(
            "<details class=\"{class}\"><summary>{mark} {head}{said}</summary><pre class=\"input\">{input}</pre>{}</details>\n",
            result.unwrap_or_default()
        )
    }

    fn failures(&self, exchanges: &[Exchange], before: Option<&EntryId>) -> String {
        let here = exchanges.iter().filter(|exchange| exchange.before.as_ref() == before);
        let lines = here.filter_map(view::failure_of);
        lines.map(|failure| format!("<p class=\"failure\">✗ {}</p>\n", self.text(&failure.line()))).collect()
    }
}

/// Returns the pictures that are in the history itself; others are not fetched.
fn pictures(parts: &[Part]) -> String {
    let mut shown = String::new();
    for part in parts {
        if let Content::Image(image) = &part.content
            && let Media::Inline { media_type, base64 } = &image.media
            && media_type.starts_with("image/")
        {
            let source = escaped(&format!("data:{media_type};base64,{base64}"));
            shown.push_str(&format!("<img alt=\"a picture in the history\" src=\"{source}\">"));
        }
    }
    shown
}

/// Returns text that is nothing but text in a page.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_said_is_markup() {
        let page = Page { privacy: Privacy::default(), pairs: Vec::new() };
        let shown = page.words("<script>alert(1)</script>\n```html\n<b onclick='x'>\n```\nend");
        assert_eq!(
            shown,
            "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p><pre>&lt;b onclick=&#39;x&#39;&gt;\n</pre><p>end</p>"
        );
    }

    #[test]
    fn what_is_to_be_taken_out_is() {
        let rules = SECRETS.iter().copied().chain(PERSONAL);
        let page = Page { privacy: Privacy::new(rules).unwrap(), pairs: Vec::new() };
        let shown = page.text("mail ada@example.org about /home/ada/oven");
        assert_eq!(shown, "mail [redacted:email] about /home/[redacted:home]/oven");
    }
}
