//! Words, so that a message and a tool can be compared: lower case, without endings, synonyms as one.

/// Verbs that mean the same to whoever offers a tool for it; the first stands for all.
const SYNONYMS: &[&[&str]] = &[
    &["read", "show", "open", "cat", "view", "display", "print", "contain", "content", "say"],
    &["run", "execute", "exec", "bash", "shell", "command", "terminal", "launch"],
    &["search", "find", "grep", "lookup", "query"],
    &["list", "ls", "glob"],
    &["write", "create", "save", "make"],
    &["edit", "change", "replace", "modify", "update", "patch", "fix"],
];

/// Words that say nothing about what is wanted.
const EMPTY: &[&str] = &[
    "a", "an", "and", "are", "at", "be", "by", "can", "could", "did", "do", "doe", "for", "from", "give",
    "have", "how", "i", "in", "is", "it", "its", "me", "my", "now", "of", "on", "or", "please", "tell",
    "that", "the", "their", "them", "then", "there", "these", "this", "to", "use", "wa", "was", "we", "were",
    "what", "when", "where", "which", "who", "will", "with", "would", "you", "your",
];

/// Returns the words of a text that mean something, in a form in which they can be compared.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        found.extend(humps(word).map(|hump| canonical(&hump)).filter(|hump| is_telling(hump)));
    }
    found
}

/// Says whether `text` names `name` as a word of its own.
pub(super) fn names(text: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    !name.is_empty()
        && text.match_indices(&name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_inside) && !after.is_some_and(is_inside)
        })
}

fn is_telling(word: &str) -> bool {
    !word.is_empty() && !EMPTY.contains(&word)
}

/// Splits `readFile` into its words.
fn humps(word: &str) -> impl Iterator<Item = String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in word.chars() {
        if parts.is_empty() || (was_lower && c.is_uppercase()) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
    }
    parts.into_iter()
}

fn canonical(word: &str) -> String {
    let stem = stem(word);
    let group = SYNONYMS.iter().find(|group| group.contains(&stem) || group.contains(&word));
    group.and_then(|group| group.first()).map_or(stem, |first| first).to_owned()
}

/// Takes off the commonest endings.
fn stem(word: &str) -> &str {
    for (ending, least) in [("ing", 6), ("ed", 5), ("s", 4)] {
        if word.len() >= least
            && !word.ends_with("ss")
            && let Some(stem) = word.strip_suffix(ending)
        {
            return stem;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_meet() {
        assert_eq!(words("readFile"), ["read", "file"]);
        assert_eq!(words("Showing the files"), ["show", "file"].map(canonical));
        assert_eq!(words("What does it contain?"), ["read"]);
    }

    #[test]
    fn a_name_is_not_found_inside_another() {
        assert!(names("Use read_file, please", "read_file"));
        assert!(!names("Use read_files", "read_file"));
    }
}
