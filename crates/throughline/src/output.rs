//! Everything that is printed. A closed pipe is a reader who has seen enough, not an error.

use crate::exit::CommandError;
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use throughline_gateway::view;
use throughline_store::Moment;
use throughline_wire::json::Writer;

/// How text looks on standard output.
///
/// Styles are left out where nobody would see them, rather than taken out later: what is recorded goes into
/// a pipe as it is, escape sequences and all. On a terminal those are made visible and do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    styled: bool,
    on_terminal: bool,
}

impl Ink {
    /// Returns the ink for standard output, as the user chose colours.
    pub fn of_stdout() -> Self {
        let stdout = std::io::stdout();
        let styled = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        Self { styled, on_terminal: stdout.is_terminal() }
    }

    /// Returns the ink for standard error, as the user chose colours.
    pub fn of_stderr() -> Self {
        let stderr = std::io::stderr();
        let styled = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
        Self { styled, on_terminal: stderr.is_terminal() }
    }

    /// Returns ink without colours, for a file.
    #[cfg(test)]
    pub const fn plain() -> Self {
        Self { styled: false, on_terminal: false }
    }

    /// Returns what stands out.
    pub fn bold(&self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// Returns what is there for completeness.
    pub fn dim(&self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    /// Returns what went well.
    pub fn good(&self, text: &str) -> String {
        self.styled(Style::new().fg_color(Some(AnsiColor::Green.into())), text)
    }

    /// Returns what did not.
    pub fn bad(&self, text: &str) -> String {
        self.styled(Style::new().fg_color(Some(AnsiColor::Red.into())), text)
    }

    /// Returns text of others in a form that cannot take the terminal over.
    pub fn tame<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_wild = |c: char| c.is_control() && c != '\n' && c != '\t';
        if !self.on_terminal || !text.contains(is_wild) {
            return Cow::Borrowed(text);
        }
        text.chars()
            .map(|c| if is_wild(c) { c.escape_default().to_string() } else { c.to_string() })
            .collect()
    }

    /// Returns text of others, each line behind two spaces, with a line break at the end.
    pub fn block(&self, text: &str) -> String {
        self.tame(text)
            .lines()
            .map(|line| if line.is_empty() { "\n".into() } else { format!("  {line}\n") })
            .collect()
    }

    /// Returns text of others whose further lines stand `indent` spaces in.
    pub fn hanging(&self, text: &str, indent: usize) -> String {
        let lines: Vec<String> = self.tame(text).lines().map(str::to_owned).collect();
        lines.join(&format!("\n{:indent$}", ""))
    }

    /// Returns rows in columns under their names; nothing if there are no rows.
    pub fn table<const N: usize>(&self, names: &[&str; N], rows: &[[String; N]]) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let width = |column: usize| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0).max(names[column].len())
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let line = |cells: &[&str; N]| {
            let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut text = format!("{}\n", self.dim(&line(names)));
        for row in rows {
            text.push_str(&line(&std::array::from_fn(|column| row[column].as_str())));
            text.push('\n');
        }
        text
    }

    fn styled(self, style: Style, text: &str) -> String {
        if self.styled { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A bar on standard error that says how far something has come; nothing where nobody would see it move.
#[derive(Clone, Debug)]
pub struct Bar {
    is_shown: bool,
    /// The percent that were shown last.
    last: Arc<AtomicU64>,
}

impl Bar {
    /// Returns a bar that has not been shown yet.
    pub fn new(quiet: bool) -> Self {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        Self { is_shown, last: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// Shows how far it has come.
    pub fn show(&self, what: &str, done: u64, total: u64) {
        let percent = done * 100 / total.max(1);
        if !self.is_shown || self.last.swap(percent, Ordering::Relaxed) == percent {
            return;
        }
        let filled = "#".repeat(percent as usize / 4);
        let _ = write!(anstream::stderr().lock(), "\r[{filled:25}] {percent:3} % of {total} {what}");
    }

    /// Takes it off the line.
    pub fn clear(&self) {
        if self.is_shown && self.last.load(Ordering::Relaxed) != u64::MAX {
            let _ = write!(anstream::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Returns a moment in UTC, to the second.
pub fn seconds(moment: Moment) -> String {
    let iso = view::iso(moment);
    match iso.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => iso,
    }
}

/// Returns items as JSON Lines.
pub fn json_lines<T>(items: &[T], write: impl Fn(&mut Writer, &T)) -> String {
    let line = |item: &T| {
        let mut writer = Writer::new();
        write(&mut writer, item);
        writer.into_string() + "\n"
    };
    items.iter().map(line).collect()
}

/// Returns a number of bytes as people read it.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let unit = UNITS.iter().find(|(size, _)| count >= *size);
    unit.map_or_else(
        || format!("{count} B"),
        |(size, name)| format!("{:.1} {name}", count as f64 / *size as f64),
    )
}

/// A bar that shows how far something has come, on a terminal and nowhere else.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
    name: String,
    total: u64,
    percent: Option<u64>,
}

impl Progress {
    /// How many characters the bar has.
    const WIDTH: u64 = 30;

    /// Returns a bar that is shown if it is wanted and somebody can see it.
    pub fn new(wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        Self { shown, name: String::new(), total: 0, percent: None }
    }

    /// Begins something of that size.
    pub fn begin(&mut self, name: &str, total: Option<u64>) {
        self.name = name.to_owned();
        self.total = total.unwrap_or(0);
        self.percent = None;
    }

    /// Shows how far it has come.
    pub fn at(&mut self, done: u64) {
        let percent = (done * 100).checked_div(self.total).unwrap_or(100).min(100);
        if !self.shown || self.percent == Some(percent) {
            return;
        }
        self.percent = Some(percent);
        let full = percent * Self::WIDTH / 100;
        let bar = "#".repeat(full as usize) + &"-".repeat((Self::WIDTH - full) as usize);
        let (done, total) = (bytes(done), bytes(self.total));
        self.draw(&format!("{} [{bar}] {percent:3}%  {done} of {total}", self.name));
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if self.percent.is_some() {
            self.draw("");
        }
    }

    fn draw(&self, text: &str) {
        // Nobody is left to tell if even this fails.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{text}");
    }
}

/// Writes to standard output, all or nothing.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(CommandError::File { path: "standard output".into(), source }),
        Ok(()) => Ok(()),
    }
}

/// Writes a remark to standard error.
pub fn remark(text: &str) {
    // Nobody is left to tell if even this fails.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes an error and what to do about it to standard error.
pub fn report_error(error: &CommandError) {
    let label = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    remark(&format!("{label}error:{label:#} {error}"));
    if let Some(hint) = error.hint() {
        let label = Style::new().bold();
        remark(&format!("{label}hint:{label:#} {hint}"));
    }
}
