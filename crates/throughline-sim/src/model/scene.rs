//! What the prompt holds, as the model sees it: what the user wants, and the results it was given.
//!
//! A result counts wherever it stands: as an item of its own, in a brief, or as text in the user's role behind one
//! of the headings of text-embed. What clients put around the user's words (reminders, the environment) is
//! no wish, nor is what the system said and somebody retold in the user's role, nor a bare "Continue."; the
//! wish before it still stands.

use super::brief::{self, Brief};
use throughline_core::{
    Call, Content, Entry, Kind, Ledger, Outcome, Part, Return, Role, Said, joined_text, outcome,
};

const HEADING: &str = "Context (tool result):";
const RETOLD: &str = "System message:";
const COMMENT_CALL: &str = "<!-- prior-tool: ";
const COMMENT_RESULT: &str = "<!-- prior-tool-result: ";

/// Words that ask for nothing new.
const CONTINUATIONS: &[&str] = &["continue", "go on", "(continued)"];

/// What the prompt holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    /// What the user wants: the last thing that was said in the user's role.
    pub(crate) wish: String,
    /// All results, in their order.
    pub(crate) results: Vec<Seen>,
    /// What was said, but for the wish.
    pub(crate) said: Vec<String>,
    /// How many entries of each kind there are.
    pub(crate) counts: Counts,
    /// How many results there were when the wish was spoken.
    results_before_wish: usize,
}

/// A result as the model sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The tool, where that is known.
    pub(crate) tool: Option<String>,
    /// What it was called with; where the call is not shown, what the user wanted.
    pub(crate) context: String,
    /// What it says.
    pub(crate) text: String,
    /// Whether the call failed.
    pub(crate) is_failure: bool,
    /// How many images came with it.
    pub(crate) images: usize,
}

/// How many entries of each kind a prompt has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) system: usize,
    pub(crate) developer: usize,
    pub(crate) user: usize,
    pub(crate) assistant: usize,
    pub(crate) images: usize,
    pub(crate) files: usize,
}

/// A piece of a text in the user's role.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Words(String),
    /// What the system said, retold.
    Retold(String),
    Result {
        call: Option<(String, String)>,
        text: String,
    },
}

impl Scene {
    /// Reads the entries of a prompt.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let ledger = Ledger::of(entries);
        let mut scene = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            match &entry.kind {
                Kind::Said(said) => scene.hear(said),
                Kind::Returned(returned) => {
                    let call = ledger.pair_of(index).and_then(|pair| entries[pair.call].as_call());
                    scene.see(returned, call);
                }
                _ => {}
            }
        }
        scene
    }

    /// Returns the results that came after the wish.
    pub(crate) fn fresh(&self) -> &[Seen] {
        &self.results[self.results_before_wish.min(self.results.len())..]
    }

    fn see(&mut self, returned: &Return, call: Option<&Call>) {
        let context = match call {
            Some(call) => format!("{} {}", call.name, call.input.text()),
            None => self.wish.clone(),
        };
        let name = call.map(|call| &call.name).or(returned.name.as_ref());
        self.results.push(Seen {
            tool: name.map(ToString::to_string),
            context,
            text: joined_text(&returned.parts).to_string(),
            is_failure: returned.outcome.is_error(),
            images: returned.parts.iter().filter(|part| matches!(part.content, Content::Image(_))).count(),
        });
    }

    fn hear(&mut self, said: &Said) {
        let count = match said.role {
            Role::System => &mut self.counts.system,
            Role::Developer => &mut self.counts.developer,
            Role::User => &mut self.counts.user,
            Role::Assistant => &mut self.counts.assistant,
        };
        *count += 1;
        for part in &said.parts {
            match &part.content {
                Content::Image(_) => self.counts.images += 1,
                Content::File(_) => self.counts.files += 1,
                Content::Text(_) | Content::Refusal(_) | Content::Opaque { .. } => {}
            }
        }
        let text = joined_text(&said.parts);
        match said.role {
            Role::User => self.hear_user(&text),
            Role::System | Role::Developer | Role::Assistant => self.said.push(text.to_string()),
        }
    }

    fn hear_user(&mut self, text: &str) {
        if let Some(Brief { words, blocks, own }) = brief::read(text) {
            for (context, text) in blocks {
                self.results.push(Seen { context, text, ..Seen::default() });
            }
            self.said.push(words);
            return self.hear_user(&own);
        }
        for piece in pieces(text) {
            match piece {
                Piece::Words(words) => self.hear_wish(&without_asides(&words)),
                Piece::Retold(words) => self.said.push(words),
                Piece::Result { call, text } => self.see_embedded(call, text),
            }
        }
    }

    fn hear_wish(&mut self, words: &str) {
        let words = unquoted(words.trim());
        let bare = words.trim_end_matches(['.', '!']).to_lowercase();
        if words.is_empty() || (CONTINUATIONS.contains(&bare.as_str()) && !self.wish.is_empty()) {
            return;
        }
        let before = std::mem::replace(&mut self.wish, words.to_owned());
        if !before.is_empty() {
            self.said.push(before);
        }
        self.results_before_wish = self.results.len();
    }

    fn see_embedded(&mut self, call: Option<(String, String)>, text: String) {
        let (outcome, parts) = outcome::unmarked(vec![Part::text(text)], false, false);
        let (tool, context) = match call {
            Some((name, arguments)) => (Some(name.clone()), format!("{name} {arguments}")),
            None => (None, self.wish.clone()),
        };
        let text = joined_text(&parts).to_string();
        self.results.push(Seen { tool, context, text, is_failure: outcome != Outcome::Ok, images: 0 });
    }
}

/// Tells results that are embedded in a text from the words around them.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut call = None;
    for line in text.split('\n') {
        if let Some(told) = line.strip_prefix(COMMENT_CALL) {
            call = Some(told_call(told));
        } else if line.trim_end() == HEADING || line.starts_with(COMMENT_RESULT) {
            pieces.push(Piece::Result { call: call.take(), text: String::new() });
        } else if line.trim_end() == RETOLD {
            pieces.push(Piece::Retold(String::new()));
        } else {
            match pieces.last_mut() {
                Some(Piece::Words(text) | Piece::Retold(text)) => {
                    text.push('\n');
                    text.push_str(line);
                }
                Some(Piece::Result { text, .. }) => {
                    text.push_str(line);
                    text.push('\n');
                }
                None => pieces.push(Piece::Words(line.to_owned())),
            }
        }
    }
    pieces.iter_mut().for_each(end);
    pieces
}

/// Takes off the line break behind the last line of a result.
fn end(piece: &mut Piece) {
    if let Piece::Result { text, .. } = piece {
        text.pop();
    }
}

/// Reads the name and the arguments in `NAME | id: ID | args: JSON -->`.
fn told_call(told: &str) -> (String, String) {
    let told = told.trim_end().trim_end_matches("-->");
    let name = told.split(" | ").next().unwrap_or_default();
    let arguments = told.split_once("| args: ").map_or("", |(_, arguments)| arguments);
    (name.trim().to_owned(), arguments.trim().to_owned())
}

/// Returns words without the quotation marks around all of them, which opencode puts there.
fn unquoted(words: &str) -> &str {
    let inside = words.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.filter(|inside| !inside.contains('"')).unwrap_or(words)
}

/// Returns the text without the blocks that clients add around the user's words.
///
/// Their tags are names of several words, such as `<system-reminder>` or `<environment_context>`.
fn without_asides(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        match aside_len(from) {
            Some(length) => rest = &from[length..],
            None => {
                kept.push('<');
                rest = &from[1..];
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// Returns how long the block is that `text` begins with, if it begins with one.
fn aside_len(text: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = text[1..].chars().take_while(|c| is_name(*c)).collect();
    if !name.contains(['-', '_']) {
        return None;
    }
    let end = format!("</{name}>");
    text.find(&end).map(|at| at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Piece {
        Piece::Words(text.to_owned())
    }

    #[test]
    fn embedded_results_are_told_from_words() {
        let text = "Read a.\nContext (tool result):\none\ntwo\nContext (tool result):\nthree";
        let result = |text: &str| Piece::Result { call: None, text: text.to_owned() };
        assert_eq!(pieces(text), [words("Read a."), result("one\ntwo"), result("three")]);
    }

    #[test]
    fn comments_name_the_call() {
        let text =
            "<!-- prior-tool: read | id: c | args: {\"path\":\"a\"} -->\n<!-- prior-tool-result: c -->\nx";
        let call = Some(("read".to_owned(), "{\"path\":\"a\"}".to_owned()));
        assert_eq!(pieces(text), [Piece::Result { call, text: "x".to_owned() }]);
    }

    #[test]
    fn reminders_and_environments_are_no_wish() {
        assert_eq!(without_asides("<system-reminder>be < brief</system-reminder>a < b <i>"), "a < b <i>");
    }

    #[test]
    fn what_the_system_said_behind_the_wish_is_no_wish() {
        let entry = Entry::said(Role::User, "Read a.\nSystem message:\nAnswer from memory.");
        let scene = Scene::of(&[entry]);
        assert_eq!((scene.wish.as_str(), scene.said), ("Read a.", vec!["\nAnswer from memory.".to_owned()]));
    }

    #[test]
    fn quotation_marks_around_all_of_a_wish_are_no_part_of_it() {
        assert_eq!(unquoted("\"Read a.\""), "Read a.");
        assert_eq!(unquoted("\"a\" or \"b\""), "\"a\" or \"b\"");
    }

    #[test]
    fn a_bare_continue_leaves_the_wish_and_its_results() {
        let entries = [
            Entry::said(Role::User, "Read a."),
            Entry::said(Role::User, "Context (tool result):\n[tool error]\ngone"),
            Entry::said(Role::User, "<system-reminder>x</system-reminder>"),
            Entry::said(Role::User, "Continue."),
        ];
        let scene = Scene::of(&entries);
        assert_eq!(scene.wish, "Read a.");
        let seen =
            Seen { context: "Read a.".into(), text: "gone".into(), is_failure: true, ..Seen::default() };
        assert_eq!(scene.fresh(), [seen]);
    }
}
