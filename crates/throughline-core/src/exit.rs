//! What a result says about how its command ended, where no field of a dialect does.
//!
//! A command that ran is a success of its tool, whatever it came to. Its exit code stands in the text of the result, in the
//! form of whoever ran it: a member of an object, or a line ahead of the output.

use crate::plan::{ToolKind, ToolRules};
use crate::{Content, Return};

/// How many lines ahead of the output are read, and how many behind it.
const LINES: usize = 6;

/// What stands in front of the code, in a line that says nothing else.
const BEFORE: [&str; 12] = [
    "exit code",
    "exit status",
    "exitcode",
    "returncode",
    "return code",
    "process exited with code",
    "command exited with code",
    "command failed with exit code",
    "command completed with exit code",
    "command finished with exit code",
    "the command completed with exit code",
    "the command failed with exit code",
];

/// What a result begins with that says it is an error, where no field does.
const ERRORS: [&str; 5] =
    ["<tool_use_error>", "[tool error]", "<error>", "Traceback (most recent call last)", "Error: "];

/// A text of more bytes that begins like an error is taken for something that a tool was asked to show.
const ERROR_BYTES_MAX: usize = 4_000;

/// Returns the exit code that a result of the tool of that name says; none if it is not of a command, or says none.
#[must_use]
pub fn exit_code(tool: Option<&str>, returned: &Return) -> Option<i32> {
    let tool = tool.or(returned.name.as_deref())?;
    if ToolRules::default().kind(tool) != ToolKind::Command {
        return None;
    }
    let text = first_text(returned)?.trim();
    if text.starts_with('{') {
        return of_object(text);
    }
    let ahead = text.lines().take(LINES).find_map(of_line);
    ahead.or_else(|| text.lines().rev().take(LINES).find_map(of_line))
}

/// Says whether a result tells of a failure, by whatever its dialect has for it.
pub(crate) fn is_failure(tool: &str, returned: &Return) -> bool {
    if returned.outcome.is_error() || exit_code(Some(tool), returned).is_some_and(|code| code != 0) {
        return true;
    }
    let text = first_text(returned).unwrap_or_default().trim_start();
    text.len() <= ERROR_BYTES_MAX && ERRORS.iter().any(|start| text.starts_with(start))
}

/// Says whether a line is the message of an error, and not one of the frames around it.
pub(crate) fn is_error_message(line: &str) -> bool {
    let line = line.trim_start();
    if line.is_empty() || is_stack_frame(line) {
        return false;
    }
    let word = line.split([':', ' ', '(', '[']).next().unwrap_or_default();
    let names_error = |word: &str| {
        word.ends_with("Error") || word.ends_with("Exception") || word.ends_with("Panic") || word == "E"
    };
    let first = word.rsplit('.').next().unwrap_or(word);
    let starts = ["error", "fatal", "failed", "failure", "panicked", "exception", "caused by", "abort"];
    let lower = line.get(..line.floor_char_boundary(200)).unwrap_or_default().to_ascii_lowercase();
    names_error(first)
        || starts.iter().any(|start| lower.starts_with(start))
        || lower.contains(" panicked at ")
        || lower.contains(": error")
        || lower.contains("error: ")
        || lower.contains("command not found")
        || lower.contains("no such file")
        || lower.contains("permission denied")
}

/// Says whether a line is a frame of a stack trace.
pub(crate) fn is_stack_frame(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("File \"") && line.contains(", line ")
        || line.starts_with("at ") && line.contains(['(', ':', '/'])
        || line.starts_with("--> ")
        || line.starts_with("in <module>")
}

/// Returns the line that says what went wrong: the last message of a trace, the first of anything else.
pub(crate) fn error_line(text: &str) -> Option<&str> {
    let mut messages = text.lines().filter(|line| is_error_message(line));
    let is_trace = text.contains("Traceback (most recent call last)");
    let found = if is_trace { messages.next_back() } else { messages.next() };
    found.or_else(|| text.lines().find(|line| !line.trim().is_empty())).map(str::trim)
}

fn first_text(returned: &Return) -> Option<&str> {
    returned.parts.iter().find_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

fn of_line(line: &str) -> Option<i32> {
    let line = line.trim().trim_start_matches(['[', '(', '<', '*', ' ']).to_ascii_lowercase();
    BEFORE.iter().find_map(|before| {
        let behind = line.strip_prefix(before)?.trim_start_matches([':', '=', '>', ' ']);
        let end = behind.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(behind.len());
        let rest = behind[end..].trim_matches([']', ')', '.', '*', ' ']);
        let is_alone = rest.is_empty() || rest.starts_with('<') || rest.starts_with('(');
        behind[..end].parse().ok().filter(|_| is_alone)
    })
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
            ("<returncode>1</returncode>\n<output>\nx\n</output>", Some(1)),
            ("x\ny\n[The command completed with exit code 2.]", Some(2)),
            ("Output: x\nExit Code: 1\nSignal: (none)", Some(1)),
            ("Command failed with exit code 127\n", Some(127)),
            ("exit codes are 3 of 4", None),
            ("all is well", None),
            ("", None),
        ] {
            assert_eq!(code("bash", text), expected, "{text}");
        }
        assert_eq!(code("Read", "Exit code: 1"), None, "a file may hold anything");
    }

    #[test]
    fn a_failure_is_known_in_every_dialect() {
        let returned = |text: &str| Return {
            call_id: None,
            item_id: None,
            name: None,
            outcome: Outcome::Ok,
            parts: vec![Part::text(text)],
            freeform: false,
        };
        assert!(is_failure("bash", &returned("<returncode>2</returncode>")));
        assert!(is_failure("Read", &returned("<tool_use_error>File does not exist.</tool_use_error>")));
        assert!(is_failure("get_user", &returned("Error: user not found")));
        assert!(!is_failure("bash", &returned("<returncode>0</returncode>\n3 errors were fixed")));
        assert!(!is_failure("Read", &returned("Errors are values.")));
    }

    #[test]
    fn the_message_is_told_from_the_frames() {
        let trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    go()\n\
                     ValueError: no such flight";
        assert_eq!(error_line(trace), Some("ValueError: no such flight"));
        assert_eq!(
            error_line("warning: x\nerror[E0308]: mismatched\n --> a.rs:3"),
            Some("error[E0308]: mismatched")
        );
        assert_eq!(error_line("\nnothing here"), Some("nothing here"));
        assert!(
            is_stack_frame("    at Object.run (/w/a.js:1:2)")
                && !is_error_message("  File \"Error.py\", line 3")
        );
    }
}
