//! What a line means that somebody typed into a conversation: words for the model, or for us.
//!
//! A word for us begins the line with a slash, as a path does that begins at the root. What is there as a file, or has
//! more to it than letters, is the model's.

use std::path::Path;

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed<'l> {
    /// Nothing.
    Nothing,
    /// The conversation is over.
    Exit,
    /// What is understood is to be listed.
    Help,
    /// A word for us that means nothing.
    Unknown(&'l str),
    /// This is for the model.
    Prompt(&'l str),
}

/// What is understood, for people.
pub const HELP: &str = "\
/help          this list
/exit, /quit   end the conversation; so does the end of input (Ctrl-D)
Ctrl-C         stop the turn under way, and close its open calls; again: end at once
Anything else is for the model. A space before a slash makes it so.";

/// Says what a line means.
pub fn read(line: &str) -> Typed<'_> {
    let prompt = line.trim();
    let word = prompt.split_whitespace().next().unwrap_or_default();
    match word {
        "" => Typed::Nothing,
        _ if !line.starts_with('/') => Typed::Prompt(prompt),
        "/exit" | "/quit" => Typed::Exit,
        "/help" | "/?" => Typed::Help,
        word if is_name(&word[1..]) && !Path::new(word).exists() => Typed::Unknown(word),
        _ => Typed::Prompt(prompt),
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_us_and_for_the_model_are_told_apart() {
        for (line, wanted) in [
            ("  ", Typed::Nothing),
            ("Mend it ", Typed::Prompt("Mend it")),
            ("/exit", Typed::Exit),
            ("/quit\r", Typed::Exit),
            ("/help", Typed::Help),
            ("/compact", Typed::Unknown("/compact")),
            ("/model other", Typed::Unknown("/model")),
            // Paths: what has more than letters, or is there.
            ("/etc/hosts has a line too many", Typed::Prompt("/etc/hosts has a line too many")),
            ("/etc holds what?", Typed::Prompt("/etc holds what?")),
            ("/a.txt", Typed::Prompt("/a.txt")),
            ("/", Typed::Prompt("/")),
            (" /compact means what?", Typed::Prompt("/compact means what?")),
        ] {
            assert_eq!(read(line), wanted, "{line}");
        }
    }
}
