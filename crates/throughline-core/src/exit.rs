//! What a result says about how its command ended, where no field of a dialect does.
//!
//! A command that ran is a success of its tool, whatever it came to. Its exit code stands in the text of the result, in the
//! form of whoever ran it: a member of an object, or a line ahead of the output.

use crate::plan::{ToolKind, ToolRules};
use crate::{Content, Return};

/// How many lines ahead of the output are read.
const LINES: usize = 6;

/// What stands in front of the code on a line of its own.
const BEFORE: [&str; 3] = ["exit code:", "exit code", "process exited with code"];

/// Returns the exit code that a result of the tool of that name says; none if it is not of a command, or says none.
#[must_use]
pub fn exit_code(tool: Option<&str>, returned: &Return) -> Option<i32> {
    let tool = tool.or(returned.name.as_deref())?;
    if ToolRules::default().kind(tool) != ToolKind::Command {
        return None;
    }
    let text = returned.parts.iter().find_map(|part| match &part.content {
        Content::Text(text) => Some(text.trim_start()),
        _ => None,
    })?;
    if text.starts_with('{') { of_object(text) } else { text.lines().take(LINES).find_map(of_line) }
}

fn of_line(line: &str) -> Option<i32> {
    let line = line.trim().to_ascii_lowercase();
    BEFORE.iter().find_map(|before| line.strip_prefix(before)?.trim().parse().ok())
}

/// Returns the member `exit_code` of an object, or of an object in it.
fn of_object(text: &str) -> Option<i32> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(bytes, at + 1)?;
                let rest = text[end..].trim_start();
                if let ("\"exit_code\"", Some(value)) = (&text[at..end], rest.strip_prefix(':'))
                    && depth <= 2
                {
                    let value = value.trim_start();
                    let stop = value.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(value.len());
                    return value[..stop].parse().ok();
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns where a string ends that begins before `at`, its quote included.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Part};

    fn code(tool: &str, text: &str) -> Option<i32> {
        let returned = Return {
            call_id: Some("1".into()),
            item_id: None,
            name: None,
            outcome: Outcome::Ok,
            parts: vec![Part::text(text)],
            freeform: false,
        };
        exit_code(Some(tool), &returned)
    }

    #[test]
    fn a_result_says_how_its_command_ended() {
        for (text, expected) in [
            (r#"{"stdout":"a \"exit_code\":7 b","stderr":"","exit_code":1}"#, Some(1)),
            (r#"{"output":"é","metadata":{"exit_code":-2,"duration_seconds":0.1}}"#, Some(-2)),
            (r#"{"exit_code":null}"#, None),
            (r#"{"stdout":"cut"#, None),
            ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\n", Some(1)),
            ("Exit code 101\nerror", Some(101)),
            ("Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 3\nOutput:", Some(3)),
            ("all is well", None),
            ("", None),
        ] {
            assert_eq!(code("bash", text), expected, "{text}");
        }
        assert_eq!(code("Read", "Exit code: 1"), None, "a file may hold anything");
    }
}
