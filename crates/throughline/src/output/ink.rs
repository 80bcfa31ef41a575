//! How text looks: colours by what they mean, widths as a terminal counts them, and text of others made harmless.

use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::IsTerminal;
use throughline_gateway::gateway::now;
use throughline_store::Moment;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;
/// Where less room than this is left, lines are not broken.
const LEAST_WRAPPED: usize = 20;

/// How text looks where it is printed.
///
/// Styles are left out where nobody would see them, rather than taken out later: what is recorded goes into
/// a pipe as it is, escape sequences and all. On a terminal those are made visible and do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    styled: bool,
    /// How wide the terminal is; nothing where there is none.
    width: Option<usize>,
    /// What relative times are relative to.
    pub(super) now: Moment,
}

/// What a text means, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// What stands out.
    Bold,
    /// What is there for completeness.
    Dim,
    /// What went well.
    Good,
    /// What somebody should know.
    Warn,
    /// What did not go well.
    Bad,
}

impl Ink {
    /// Returns the ink for standard output, as the user chose colours.
    pub fn of_stdout() -> Self {
        let stdout = std::io::stdout();
        let styled = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        Self { styled, width: stdout.is_terminal().then(width), now: now() }
    }

    /// Returns the ink for standard error, as the user chose colours.
    pub fn of_stderr() -> Self {
        let stderr = std::io::stderr();
        let styled = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
        Self { styled, width: stderr.is_terminal().then(width), now: now() }
    }

    /// Returns ink without colours, for a file.
    #[cfg(test)]
    pub const fn plain() -> Self {
        Self { styled: false, width: None, now: Moment(0) }
    }

    /// Returns ink without colours, for a terminal of that width.
    #[cfg(test)]
    pub const fn of_width(width: usize, now: Moment) -> Self {
        Self { styled: false, width: Some(width), now }
    }

    /// Says whether a person sees it, and not a program.
    pub const fn is_on_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Returns how wide lines may be; nothing where there is no end to them.
    pub const fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns what stands out.
    pub fn bold(&self, text: &str) -> String {
        self.toned(Tone::Bold, text)
    }

    /// Returns what is there for completeness.
    pub fn dim(&self, text: &str) -> String {
        self.toned(Tone::Dim, text)
    }

    /// Returns what went well.
    pub fn good(&self, text: &str) -> String {
        self.toned(Tone::Good, text)
    }

    /// Returns what somebody should know.
    pub fn warn(&self, text: &str) -> String {
        self.toned(Tone::Warn, text)
    }

    /// Returns what did not.
    pub fn bad(&self, text: &str) -> String {
        self.toned(Tone::Bad, text)
    }

    /// Returns text in the colour of what it means.
    pub fn toned(&self, tone: Tone, text: &str) -> String {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Bold => Style::new().bold(),
            Tone::Dim => Style::new().dimmed(),
            Tone::Good => colour(AnsiColor::Green),
            Tone::Warn => colour(AnsiColor::Yellow),
            Tone::Bad => colour(AnsiColor::Red),
        };
        if self.styled && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Returns text of others in a form that cannot take the terminal over.
    pub fn tame<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_wild = |c: char| c.is_control() && c != '\n' && c != '\t';
        if !self.is_on_terminal() || !text.contains(is_wild) {
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

    /// Returns text of others, broken between words where it would not fit the terminal; further lines stand `indent`
    /// spaces in, as the first is taken to.
    pub fn wrapped(&self, text: &str, indent: usize) -> String {
        let Some(width) = self.width.filter(|width| *width > indent + LEAST_WRAPPED) else {
            return self.hanging(text, indent);
        };
        let text = self.tame(text);
        let lines: Vec<String> = text.lines().flat_map(|line| broken(line, width - indent)).collect();
        lines.join(&format!("\n{:indent$}", ""))
    }

    /// Returns text in which the words that were searched for stand out.
    pub fn marked(&self, text: &str, query: &str) -> String {
        let words: Vec<String> = query
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let lower = text.to_ascii_lowercase();
        let mut marked = String::with_capacity(text.len());
        let mut at = 0;
        while let Some((start, length)) = words
            .iter()
            .filter_map(|word| Some((at + lower[at..].find(word.as_str())?, word.len())))
            .min_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)))
        {
            marked.push_str(&text[at..start]);
            marked.push_str(&self.toned(Tone::Warn, &text[start..start + length]));
            at = start + length;
        }
        marked + &text[at..]
    }

    /// Returns text of others whose further lines stand `indent` spaces in.
    pub fn hanging(&self, text: &str, indent: usize) -> String {
        let lines: Vec<String> = self.tame(text).lines().map(str::to_owned).collect();
        lines.join(&format!("\n{:indent$}", ""))
    }
}

/// Returns a line as several, each within a width, broken between words.
fn broken(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_inclusive(' ') {
        if !current.is_empty() && columns(&current) + columns(word.trim_end()) > width {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

/// Returns how many columns of a terminal a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Returns as much of a text as fits, with an ellipsis for the rest.
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if columns(text) <= max {
        return Cow::Borrowed(text);
    }
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken < max
    };
    let kept: String = text.chars().take_while(fits).collect();
    Cow::Owned(if max == 0 { String::new() } else { kept + "…" })
}

/// Returns how wide the terminal is: what the user says, else what it says itself.
fn width() -> usize {
    let said = size_said("COLUMNS");
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    said.or_else(measured).filter(|width| *width > 0).unwrap_or(USUAL_WIDTH)
}

/// Returns how many lines the terminal has, if that is known.
pub fn height() -> Option<usize> {
    let measured = || terminal_size::terminal_size().map(|(_, height)| usize::from(height.0));
    size_said("LINES").or_else(measured).filter(|height| *height > 0)
}

fn size_said(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok().filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_by_what_it_takes_on_a_terminal() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
        assert!(columns(&cut("日本語日本語", 7)) <= 7);
    }

    #[test]
    fn escape_sequences_of_others_are_seen_and_not_obeyed() {
        let ink = Ink::of_width(80, Moment(0));
        assert_eq!(ink.tame("a\x1b[31mb\tc\n"), "a\\u{1b}[31mb\tc\n");
        assert_eq!(Ink::plain().tame("a\x1b[31mb"), "a\x1b[31mb", "a file has what was recorded");
    }
}
