//! How a command went, which Codex tells its model in the words of the result.
//!
//! There were several forms: lines in front of the output (`Exit code: 1`, `Process exited with code 1`), and before
//! those an object with the output and an `exit_code` beside it.

use throughline_wire::json::Document;

/// How many lines there are at most before the output.
const LINES_MAX: usize = 8;

/// Says whether a result tells of a command that failed.
pub(crate) fn says_failed(words: &str) -> bool {
    of_lines(words).or_else(|| of_object(words)).is_some_and(|code| code != 0)
}

/// Reads the lines in front of the output; where none begins, they are none of Codex's.
fn of_lines(words: &str) -> Option<i64> {
    let head: Vec<&str> = words.lines().take(LINES_MAX).collect();
    let output = head.iter().position(|line| *line == "Output:")?;
    let head = &head[..output];
    let code = |line: &&str| {
        let code =
            line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "))?;
        code.trim().parse().ok()
    };
    head.iter().any(|line| line.starts_with("Wall time: ")).then(|| head.iter().find_map(code))?
}

fn of_object(words: &str) -> Option<i64> {
    if !words.starts_with('{') {
        return None;
    }
    let document = Document::parse(words).ok()?;
    document.root().field("output")?.as_str()?;
    document.root().field("metadata")?.field("exit_code")?.raw().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_out_of_the_words_that_codex_has_for_it() {
        for (words, failed) in [
            ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nls: no such file", true),
            ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1", false),
            (
                "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\n",
                true,
            ),
            ("Chunk ID: 1\nWall time: 10 seconds\nProcess running with session ID 7\nOutput:\n", false),
            ("Exit code: 1\nof a log that somebody printed", false),
            (r#"{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.0}}"#, true),
            (r#"{"output":"yes","metadata":{"exit_code":0}}"#, false),
            (r#"{"exit_code":1}"#, false),
            ("", false),
        ] {
            assert_eq!(says_failed(words), failed, "{words}");
        }
    }
}
