//! What a person said, apart from what their agent put into their mouth.
//!
//! Agents write notes to the model into the user's messages, between tags: reminders, the state of the repository, the
//! open file. Whoever reads the conversation looks for the person's own words.

/// The tags that agents are known to use.
const TAGS: [&str; 18] = [
    "system-reminder",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "skills_instructions",
    "skill",
    "subagent_notification",
    "turn_aborted",
    "user_shell_command",
    "ide_opened_file",
    "ide_selection",
    "local-command-caveat",
    "local-command-stdout",
    "command-name",
    "command-message",
    "command-args",
    "task-notification",
    "environment_details",
];

/// A message of the user, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken<'t> {
    /// The person's own words.
    pub words: String,
    /// What the agent put in: the tag, and what stands between.
    pub injected: Vec<(&'static str, &'t str)>,
}

/// Takes a message of the user apart.
#[must_use]
pub fn spoken(text: &str) -> Spoken<'_> {
    let mut spoken = Spoken::default();
    let mut rest = text;
    while let Some((start, tag)) = next_tag(rest) {
        let inside = &rest[start + tag.len() + 2..];
        let closing = format!("</{}>", tag.split(' ').next().unwrap_or(tag));
        let whole = format!("</{tag}>");
        let end = inside.find(&whole).map(|end| (end, whole.len()));
        let Some((end, length)) = end.or_else(|| inside.find(&closing).map(|end| (end, closing.len())))
        else {
            break;
        };
        spoken.words.push_str(&rest[..start]);
        spoken.injected.push((tag, inside[..end].trim()));
        rest = &inside[end + length..];
    }
    spoken.words.push_str(rest);
    spoken.words = spoken.words.trim().to_owned();
    spoken
}

/// Returns where the next tag of an agent stands.
fn next_tag(text: &str) -> Option<(usize, &'static str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('<')?;
        let is_here =
            |tag: &&&str| text[at + 1..].strip_prefix(**tag).is_some_and(|behind| behind.starts_with('>'));
        if let Some(tag) = TAGS.iter().find(is_here) {
            return Some((at, *tag));
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_persons_words_are_told_from_the_agents_notes() {
        let text = "<system-reminder>\ngit status\n</system-reminder>\nFix the <b>oven</b>.\n\
                    <ide_opened_file>src/oven.rs</ide_opened_file>";
        let spoken = spoken(text);
        assert_eq!(spoken.words, "Fix the <b>oven</b>.");
        assert_eq!(spoken.injected, [("system-reminder", "git status"), ("ide_opened_file", "src/oven.rs")]);
    }

    #[test]
    fn what_is_not_closed_and_what_is_no_note_is_what_was_said() {
        for text in ["<system-reminder> what is this?", "a < b", "<html></html>", "é<system-reminder", ""] {
            assert_eq!(spoken(text), Spoken { words: text.to_owned(), injected: Vec::new() });
        }
    }
}
