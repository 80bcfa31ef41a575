//! Text for models, within a number of tokens.

use throughline_tokens::Vocabulary;

/// What counts the tokens. Other vocabularies differ by less than a fifth, so a budget is a size and not a promise.
const VOCABULARY: Vocabulary = Vocabulary::O200k;

/// Bytes of a token, until the vocabulary is loaded; fewer than usual, so that a budget is kept.
const BYTES_OF_TOKEN: u64 = 3;

/// A text that grows until its budget is used up.
#[derive(Debug)]
pub struct BudgetedText {
    text: String,
    left: u64,
}

/// Makes the table that tokens are counted by. It takes a moment, so it is done once and beside the work.
pub fn load() {
    VOCABULARY.load();
}

/// Returns how many tokens a text has.
pub fn tokens(text: &str) -> u64 {
    if VOCABULARY.is_loaded() { VOCABULARY.count(text) } else { (text.len() as u64).div_ceil(BYTES_OF_TOKEN) }
}

/// Returns the beginning of a text, on one line, with an ellipsis where it goes on.
pub fn clipped(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = usize::from(!line.is_empty());
        let room = chars_max.saturating_sub(chars + space);
        let length = word.chars().count();
        if length > room {
            if line.is_empty() {
                line.extend(word.chars().take(room));
            }
            line.push('…');
            return line;
        }
        if space == 1 {
            line.push(' ');
        }
        line.push_str(word);
        chars += space + length;
    }
    line
}

impl BudgetedText {
    /// Returns an empty text that may grow to so many tokens.
    pub const fn new(tokens_max: u64) -> Self {
        Self { text: String::new(), left: tokens_max }
    }

    /// Adds a piece if it fits, and says whether it did. The first one always fits.
    pub fn push(&mut self, piece: &str) -> bool {
        let size = tokens(piece);
        if size > self.left && !self.text.is_empty() {
            return false;
        }
        self.left = self.left.saturating_sub(size);
        self.text.push_str(piece);
        true
    }

    /// Adds what has to be there, such as where to go on.
    pub fn push_anyway(&mut self, piece: &str) {
        self.left = self.left.saturating_sub(tokens(piece));
        self.text.push_str(piece);
    }

    /// Returns the text.
    pub fn into_string(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_clipped_between_words_and_a_long_word_between_characters() {
        assert_eq!(clipped(" one\n two  three ", 20), "one two three");
        assert_eq!(clipped("one two three", 9), "one two…");
        assert_eq!(clipped("éééééé", 3), "ééé…");
        assert_eq!(clipped("", 3), "");
    }

    #[test]
    fn a_budget_takes_the_first_piece_and_then_what_fits() {
        let mut text = BudgetedText::new(2);
        assert!(text.push("a first piece that is too long"));
        assert!(!text.push("more"));
        text.push_anyway(" [end]");
        assert_eq!(text.into_string(), "a first piece that is too long [end]");
    }
}
