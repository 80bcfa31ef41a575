//! Everything that is printed. A closed pipe is a reader who has seen enough, not an error.
//!
//! Standard output has what was asked for and nothing else; remarks, errors and signs of life go to standard error. What
//! goes to a terminal is made for people: colours, relative times, columns that fit, a pager. What goes elsewhere is
//! whole, without colours, and has exact times.

mod bar;
mod ink;
mod pager;
mod spinner;
mod table;
mod time;

use crate::exit::CommandError;
use anstyle::{AnsiColor, Style};
pub use bar::{Bar, Unit};
pub use ink::{Ink, Tone, cut};
pub use pager::{page, page_on_terminal};
pub use spinner::Spinner;
use std::io::{ErrorKind, Write};
pub use table::{Cell, Column, Table};
use throughline_wire::json::Writer;
pub use time::seconds;

/// Returns items as JSON Lines.
pub fn json_lines<T>(items: &[T], write: impl Fn(&mut Writer, &T)) -> String {
    items.iter().map(|item| json_line(|writer| write(writer, item))).collect()
}

/// Returns one line of JSON.
pub fn json_line(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.into_string() + "\n"
}

/// Returns a number of bytes as people read it.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// Returns a number of tokens in few characters: `430`, `29k`, `1.4M`.
pub fn count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{:.1}k", tokens as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// Returns an amount of US dollars with as many places as say something.
pub fn money(dollars: f64) -> String {
    match dollars {
        0.0 => "$0".to_owned(),
        ..0.0001 => "<$0.0001".to_owned(),
        ..0.01 => format!("${dollars:.4}"),
        ..1.0 => format!("${dollars:.3}"),
        _ => format!("${dollars:.2}"),
    }
}

/// Returns how long something took.
pub fn lasted(milliseconds: i64) -> String {
    match milliseconds {
        ..1_000 => format!("{milliseconds} ms"),
        1_000..120_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => format!("{} min", milliseconds / 60_000),
    }
}

/// Returns how many of something there are, in words that fit the number.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {several}") }
}

/// Writes to standard output, all or nothing.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(CommandError::file("standard output", source)),
        Ok(()) => Ok(()),
    }
}

/// Writes a remark to standard error.
pub fn remark(text: &str) {
    // Nobody is left to tell if even this fails.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes a mark to standard error that somebody types behind.
pub fn prompt(mark: &str) {
    let mut stderr = anstream::stderr().lock();
    // Who does not see it types nothing.
    let _ = write!(stderr, "{mark}").and_then(|()| stderr.flush());
}

/// Writes an error and what to do about it to standard error.
pub fn report_error(error: &CommandError) {
    let label = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let ink = Ink::of_stderr();
    remark(&format!("{label}error:{label:#} {}", ink.tame(&error.to_string())));
    if let Some(hint) = error.advice() {
        let label = Style::new().bold();
        remark(&format!("{label}hint:{label:#} {}", ink.tame(hint)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_written_as_people_read_them() {
        assert_eq!([0, 999, 1_500, 2_000_000].map(bytes), ["0 B", "999 B", "1.5 KB", "2.0 MB"]);
        assert_eq!([430, 1_400, 29_400, 1_400_000].map(count), ["430", "1.4k", "29k", "1.4M"]);
        assert_eq!(
            [0.0, 0.00001, 0.0042, 0.0123, 1.5].map(money),
            ["$0", "<$0.0001", "$0.0042", "$0.012", "$1.50"]
        );
        assert_eq!([40, 1_400, 300_000].map(lasted), ["40 ms", "1.4 s", "5 min"]);
        assert_eq!(counted(1, "entry", "entries"), "1 entry");
        assert_eq!(counted(0, "entry", "entries"), "0 entries");
    }
}
