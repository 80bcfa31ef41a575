//! A brief in the user's role: what tools said before the conversation was handed over, in fences, under headings.
//!
//! A model that reads Markdown finds in it what this finds: each heading of the third level, and the blocks below
//! it, byte for byte.

const BEGIN: &str = "[CONTEXT FROM PREVIOUS SESSION]";
const END: &str = "[/CONTEXT FROM PREVIOUS SESSION]";

/// A brief, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Brief {
    /// What stands outside of fences and headings.
    pub(super) words: String,
    /// The heading of each block, and the block.
    pub(super) blocks: Vec<(String, String)>,
    /// What the user says behind it.
    pub(super) own: String,
}

/// Reads a text that begins with a brief.
pub(super) fn read(text: &str) -> Option<Brief> {
    let mut brief = Brief::default();
    let mut heading = String::new();
    let mut lines = text.strip_prefix(BEGIN)?.split('\n');
    while let Some(line) = lines.next() {
        if line == END {
            brief.own = lines.collect::<Vec<_>>().join("\n");
            return Some(brief);
        }
        let fence: String = line.chars().take_while(|c| *c == '`').collect();
        if fence.len() >= 3 {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
            brief.blocks.push((heading.clone(), block.join("\n")));
        } else if let Some(name) = line.strip_prefix("### ") {
            name.clone_into(&mut heading);
        } else {
            brief.words.push_str(line);
            brief.words.push('\n');
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_byte_for_byte() {
        let text = "[CONTEXT FROM PREVIOUS SESSION]\n\n## Files Read\n### a.md\n````markdown\n```\n\
            [/CONTEXT FROM PREVIOUS SESSION]\n```\n\n````\n\n[/CONTEXT FROM PREVIOUS SESSION]\n\nGo on.";
        let brief = read(text).unwrap();
        let block = "```\n[/CONTEXT FROM PREVIOUS SESSION]\n```\n".to_owned();
        assert_eq!(brief.blocks, [("a.md".to_owned(), block)]);
        assert_eq!(brief.own, "\nGo on.");
        assert_eq!(read("Go on."), None);
        assert_eq!(read("[CONTEXT FROM PREVIOUS SESSION]\ncut off"), None);
    }
}
