//! What a message holds that a tool could be given: paths, commands, addresses, numbers, quotations, places.

use std::collections::VecDeque;

/// Words with a full stop inside that name no file.
const ABBREVIATIONS: &[&str] = &["e.g", "i.e"];

/// What a value is for, as the name of a parameter tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Path,
    Command,
    Url,
    Place,
    Query,
    Other,
}

const NAMES: &[(Meaning, &[&str])] = &[
    (Meaning::Other, &["content", "contents", "text", "body", "old", "new"]),
    (Meaning::Url, &["url", "uri", "link", "href"]),
    (Meaning::Command, &["command", "cmd", "script"]),
    (Meaning::Query, &["query", "pattern", "search", "regex", "q", "keyword", "term"]),
    (Meaning::Place, &["location", "city", "place", "town", "country", "destination"]),
    (
        Meaning::Path,
        &[
            "path",
            "paths",
            "file",
            "files",
            "filename",
            "filepath",
            "dir",
            "directory",
            "folder",
            "cwd",
            "workdir",
        ],
    ),
];

impl Meaning {
    /// Returns what a parameter of that name is for.
    pub(super) fn of(name: &str) -> Self {
        let words: Vec<String> = name_words(name);
        let is_named = |known: &&str| words.iter().any(|word| word == known);
        NAMES.iter().find(|(_, known)| known.iter().any(is_named)).map_or(Self::Other, |(m, _)| *m)
    }
}

/// Splits `filePath` and `file_path` into words.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// What was found in a message; what is taken is not taken again.
#[derive(Clone, Debug, Default)]
pub(super) struct Finds {
    /// The message itself.
    pub(super) message: String,
    /// What texts are filled with before anything of the message is.
    pub(super) words: Option<String>,
    pub(super) paths: VecDeque<String>,
    pub(super) commands: VecDeque<String>,
    pub(super) urls: VecDeque<String>,
    pub(super) places: VecDeque<String>,
    pub(super) quotations: VecDeque<String>,
    pub(super) numbers: VecDeque<String>,
}

impl Finds {
    /// Looks through a message.
    pub(super) fn of(message: &str) -> Self {
        let mut finds = Self { message: message.trim().to_owned(), ..Self::default() };
        let plain = finds.take_quotations(message);
        finds.read_tokens(&plain);
        finds.places = places(&plain).into();
        if finds.commands.is_empty() {
            finds.commands.extend(spoken_command(&finds.message));
        }
        finds
    }

    /// Returns what was found for a purpose.
    pub(super) fn queue(&mut self, meaning: Meaning) -> &mut VecDeque<String> {
        match meaning {
            Meaning::Path => &mut self.paths,
            Meaning::Command => &mut self.commands,
            Meaning::Url => &mut self.urls,
            Meaning::Place => &mut self.places,
            Meaning::Query | Meaning::Other => &mut self.quotations,
        }
    }

    /// Returns the same finds with only the one at `index` for a purpose.
    pub(super) fn focused(&self, meaning: Meaning, index: usize) -> Self {
        let mut focused = self.clone();
        let queue = focused.queue(meaning);
        *queue = queue.drain(..).skip(index).take(1).collect();
        focused
    }

    /// Returns the value that the message gives a parameter by its name: `limit=10`, `limit: 10`, `limit 10`.
    pub(super) fn named(&self, name: &str) -> Option<(String, bool)> {
        let spoken = name.replace(['_', '-'], " ");
        [name, spoken.as_str()].into_iter().find_map(|name| value_after(&self.message, name))
    }

    /// Sorts what stands in quotation marks or backticks, and returns the text without it.
    fn take_quotations(&mut self, message: &str) -> String {
        let mut plain = String::with_capacity(message.len());
        let mut rest = message;
        while let Some((before, open, quoted, after)) = quotation(rest) {
            plain.push_str(before);
            if is_url(quoted) || is_path(quoted) {
                // Read with the others, so that all of them keep their order.
                plain.push_str(quoted);
            } else {
                plain.push(' ');
                self.sort_quotation(open, quoted.trim());
            }
            rest = after;
        }
        plain.push_str(rest);
        plain
    }

    fn sort_quotation(&mut self, open: char, quoted: &str) {
        if quoted.is_empty() {
            return;
        }
        if open == '`' {
            self.commands.push_back(quoted.trim_start_matches("$ ").to_owned());
        }
        self.quotations.push_back(quoted.to_owned());
    }

    fn read_tokens(&mut self, text: &str) {
        for token in text.split_whitespace() {
            let token = token.trim_matches(|c: char| "()[]{}<>,;:!?\"'".contains(c));
            let token = token.rsplit('=').next().unwrap_or(token);
            let bare = token.trim_end_matches('.');
            if is_url(bare) {
                self.urls.push_back(bare.to_owned());
            } else if is_number(bare) {
                self.numbers.push_back(bare.to_owned());
            } else if is_path(bare) && !ABBREVIATIONS.contains(&bare) {
                self.paths.push_back(bare.to_owned());
            }
        }
    }
}

/// Returns what is before, inside and after the first pair of quotation marks, with the mark.
fn quotation(text: &str) -> Option<(&str, char, &str, &str)> {
    let mut before_mark = ' ';
    for (at, c) in text.char_indices() {
        let close = match c {
            '"' | '`' => Some(c),
            '“' => Some('”'),
            // An apostrophe opens nothing: a quotation begins where a word could.
            '\'' if !before_mark.is_alphanumeric() => Some('\''),
            _ => None,
        };
        if let Some(close) = close {
            let inside = &text[at + c.len_utf8()..];
            if let Some(end) = inside.find(close) {
                return Some((&text[..at], c, &inside[..end], &inside[end + close.len_utf8()..]));
            }
        }
        before_mark = c;
    }
    None
}

fn is_url(text: &str) -> bool {
    (text.starts_with("http://") || text.starts_with("https://")) && !text.contains(char::is_whitespace)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = |part: &str| !part.is_empty() && part.len() <= 15 && part.bytes().all(|b| b.is_ascii_digit());
    match digits.split_once('.') {
        Some((whole, fraction)) => plain(whole) && plain(fraction),
        None => plain(digits) && (digits == "0" || !digits.starts_with('0')),
    }
}

/// Says whether a word looks like the path of a file: it has a slash, or an ending such as `.rs`.
fn is_path(text: &str) -> bool {
    let known = |c: char| c.is_alphanumeric() || "/._-~+@".contains(c);
    if text.is_empty() || !text.chars().all(known) || is_number(text) || text.contains("..") {
        return false;
    }
    if text.contains('/') {
        return text.chars().any(char::is_alphanumeric) || text == "/";
    }
    let ending = text.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        (1..=6).contains(&ending.len()) && ending.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

/// Returns the command in a sentence that asks to run one, where no backticks say what it is.
fn spoken_command(message: &str) -> Option<String> {
    let verbs = ["run ", "execute "];
    let lower = message.to_lowercase();
    let start = verbs.iter().filter_map(|verb| Some(lower.find(verb)? + verb.len())).min()?;
    let command = message.get(start..)?;
    let command = command.strip_prefix("the command ").unwrap_or(command);
    let ends = [" and ", ", ", ". ", "; then ", "\n"];
    let end = ends.iter().filter_map(|end| command.find(end)).min().unwrap_or(command.len());
    let command = command[..end].trim().trim_end_matches(['.', '?', '!']);
    (!command.is_empty()).then(|| command.to_owned())
}

/// Returns the names of places: capitalised words behind a preposition, and those joined to them.
fn places(text: &str) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    let mut expects = false;
    let mut grows = false;
    for token in text.split_whitespace() {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric());
        let is_capital = word.starts_with(char::is_uppercase) && word.chars().count() > 1;
        match (is_capital, places.last_mut()) {
            (true, Some(place)) if grows => {
                place.push(' ');
                place.push_str(word);
            }
            (true, _) if expects => places.push(word.to_owned()),
            _ => {}
        }
        let ends = token.ends_with([',', ';', '.', '?', '!']);
        grows = is_capital && (grows || expects) && !ends;
        expects = matches!(word, "in" | "for" | "at" | "to" | "of")
            || (!places.is_empty() && matches!(word, "and" | "or"))
            || (is_capital && token.ends_with(',') && !places.is_empty());
    }
    places
}

/// Returns the value behind `name` in the message, and whether a sign such as `=` tied them together.
fn value_after(message: &str, name: &str) -> Option<(String, bool)> {
    let lower = message.to_lowercase();
    let name = name.to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let at = lower.match_indices(&name).map(|(at, _)| at).find(|at| {
        let before = lower[..*at].chars().next_back();
        let after = lower[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })?;
    let rest = message.get(at + name.len()..)?.trim_start();
    let tied = rest.strip_prefix(['=', ':']).map(str::trim_start);
    let rest = tied.unwrap_or_else(|| rest.strip_prefix("of ").unwrap_or(rest));
    let value = match quotation(rest) {
        Some(("", _, quoted, _)) => quoted,
        _ => rest.split_whitespace().next()?.trim_end_matches([',', ';', '.', '?', '!', ')']),
    };
    (!value.is_empty()).then(|| (value.to_owned(), tied.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_looked_through() {
        let finds =
            Finds::of("Read src/main.rs and `notes.txt`, 10 lines, see https://example.com/a. Say 'hi'.");
        assert_eq!(finds.paths, ["src/main.rs", "notes.txt"]);
        assert_eq!(finds.numbers, ["10"]);
        assert_eq!(finds.urls, ["https://example.com/a"]);
        assert_eq!(finds.quotations, ["hi"]);
    }

    #[test]
    fn sentences_numbers_and_apostrophes_are_no_paths() {
        let finds = Finds::of("It's 3.14, isn't it? e.g. That. version 2.0 of Node.");
        assert_eq!((finds.paths.len(), finds.quotations.len()), (0, 0));
        assert_eq!(finds.numbers, ["3.14", "2.0"]);
    }

    #[test]
    fn commands_are_in_backticks_or_behind_a_verb() {
        assert_eq!(Finds::of("Please run `ls -la src` now").commands, ["ls -la src"]);
        assert_eq!(Finds::of("Run cargo test and tell me.").commands, ["cargo test"]);
    }

    #[test]
    fn places_follow_prepositions() {
        assert_eq!(Finds::of("Weather in New York, Paris and Rome?").places, ["New York", "Paris", "Rome"]);
    }

    #[test]
    fn values_are_found_by_name() {
        let finds = Finds::of("with max_results=5, limit of 10 and mode: \"fast one\"");
        assert_eq!(finds.named("max_results"), Some(("5".into(), true)));
        assert_eq!(finds.named("limit"), Some(("10".into(), false)));
        assert_eq!(finds.named("mode"), Some(("fast one".into(), true)));
    }

    #[test]
    fn names_of_parameters_tell_their_meaning() {
        let meanings = ["filePath", "file_content", "cmd", "q", "url", "city", "n"].map(Meaning::of);
        use Meaning::{Command, Other, Path, Place, Query, Url};
        assert_eq!(meanings, [Path, Other, Command, Query, Url, Place, Other]);
    }
}
