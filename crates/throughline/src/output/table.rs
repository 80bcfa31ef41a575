//! Rows in columns, as every listing has them.
//!
//! A file gets every value whole. On a terminal the columns that may give way are cut, the widest first, down to what
//! each needs at least; where that is not enough, the columns that can be spared go, the last first.

use super::ink::{Ink, Tone, columns, cut};

/// The space between two columns.
const GAP: usize = 2;

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    is_number: bool,
    can_be_spared: bool,
    /// The width down to which it gives way; none if it never does.
    least: Option<usize>,
}

/// One value, and what it means.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    tone: Tone,
    /// How many of its first characters stand out, where not all of it looks alike.
    prefix: Option<usize>,
}

/// Rows under the names of their columns.
#[derive(Debug)]
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[Cell; N]>,
}

impl Column {
    /// Returns a column of words.
    pub const fn words(name: &'static str) -> Self {
        Self { name, is_number: false, can_be_spared: false, least: None }
    }

    /// Returns a column of numbers, which stand below each other by their last digit.
    pub const fn number(name: &'static str) -> Self {
        Self { is_number: true, ..Self::words(name) }
    }

    /// Lets it give way, down to a width.
    pub const fn down_to(self, least: usize) -> Self {
        Self { least: Some(least), ..self }
    }

    /// Lets it go where there is no room.
    pub const fn spared(self) -> Self {
        Self { can_be_spared: true, ..self }
    }
}

impl Cell {
    /// Returns a value with what it means.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone, prefix: None }
    }

    /// Returns a value of which the first characters stand out.
    pub fn with_prefix(length: usize, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Dim, prefix: Some(length) }
    }

    /// Returns a text of the value as it looks.
    fn inked(&self, text: &str, ink: &Ink) -> String {
        let Some(length) = self.prefix else { return ink.toned(self.tone, text) };
        let end = text.char_indices().nth(length).map_or(text.len(), |(end, _)| end);
        let (first, rest) = text.split_at(end);
        ink.toned(Tone::Bold, first) + &ink.toned(self.tone, rest)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Tone::Plain, text)
    }
}

impl<const N: usize> Table<N> {
    /// Returns a table without rows.
    pub const fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: [Cell; N]) {
        self.rows.push(row);
    }

    /// Returns the rows under the names of their columns; nothing if there are no rows.
    pub fn shown(mut self, ink: &Ink) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        for cell in self.rows.iter_mut().flatten() {
            // One row is one line, whatever others put into a value.
            let line = cell.text.replace(['\n', '\r', '\t'], " ");
            cell.text = ink.tame(&line).into_owned();
        }
        let widths = self.widths(ink.width());
        let names = self.columns.map(|column| column.name.to_owned());
        let mut text = ink.dim(self.line(&names, &widths, |_, padded| padded.to_owned()).trim_end()) + "\n";
        for row in &self.rows {
            let texts = std::array::from_fn(|column| row[column].text.clone());
            let line = self.line(&texts, &widths, |column, padded| row[column].inked(padded, ink));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn line(
        &self,
        texts: &[String; N],
        widths: &[Option<usize>; N],
        toned: impl Fn(usize, &str) -> String,
    ) -> String {
        let last = widths.iter().rposition(Option::is_some);
        let mut line = String::new();
        for (column, text) in texts.iter().enumerate() {
            let Some(width) = widths[column] else { continue };
            let text = cut(text, width);
            let space = " ".repeat(width - columns(&text));
            // Spaces stay outside of what is toned, so that none of them are left at the end of a line.
            match (self.columns[column].is_number, Some(column) == last) {
                (true, _) => line.push_str(&format!("{space}{}", toned(column, &text))),
                (false, true) => line.push_str(&toned(column, &text)),
                (false, false) => line.push_str(&format!("{}{space}", toned(column, &text))),
            }
            if Some(column) != last {
                line.push_str(&" ".repeat(GAP));
            }
        }
        line
    }

    /// Returns how wide each column is; none for those that are left out.
    fn widths(&self, room: Option<usize>) -> [Option<usize>; N] {
        let natural: [usize; N] = std::array::from_fn(|column| {
            let values = self.rows.iter().map(|row| columns(&row[column].text));
            values.max().unwrap_or(0).max(columns(self.columns[column].name))
        });
        let mut shown = natural.map(Some);
        let Some(room) = room else { return shown };
        loop {
            let widths = self.narrowed(&shown, room);
            let spared = |column: &usize| self.columns[*column].can_be_spared && shown[*column].is_some();
            match (0..N).rev().find(spared) {
                Some(column) if total(&widths) > room => shown[column] = None,
                _ => return widths,
            }
        }
    }

    /// Cuts the widest of the columns that may give way, as long as it is too much.
    fn narrowed(&self, shown: &[Option<usize>; N], room: usize) -> [Option<usize>; N] {
        let mut widths = *shown;
        while total(&widths) > room {
            let gives = |column: &usize| {
                self.columns[*column]
                    .least
                    .is_some_and(|least| widths[*column].is_some_and(|width| width > least))
            };
            let Some(widest) = (0..N).filter(gives).max_by_key(|column| widths[*column]) else { break };
            widths[widest] = widths[widest].map(|width| width - 1);
        }
        widths
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().sum::<usize>() + GAP * shown.count().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_store::Moment;

    fn table() -> Table<4> {
        let mut table = Table::new([
            Column::words("ID"),
            Column::number("ENTRIES").spared(),
            Column::words("BACKEND"),
            Column::words("TITLE").down_to(10),
        ]);
        table.push([
            "a1".into(),
            "7".into(),
            Cell::new(Tone::Good, "日本"),
            "a title of\nsome length".into(),
        ]);
        table.push(["b22".into(), "1234".into(), "-".into(), "short".into()]);
        table
    }

    #[test]
    fn a_file_gets_everything_in_columns() {
        let expected = "ID   ENTRIES  BACKEND  TITLE\n\
                        a1         7  日本     a title of some length\n\
                        b22     1234  -        short\n";
        assert_eq!(table().shown(&Ink::plain()), expected);
        assert_eq!(Table::new([Column::words("A")]).shown(&Ink::plain()), "");
    }

    #[test]
    fn on_a_narrow_terminal_columns_give_way_and_then_go() {
        let cut = "ID   ENTRIES  BACKEND  TITLE\n\
                   a1         7  日本     a title o…\n\
                   b22     1234  -        short\n";
        assert_eq!(table().shown(&Ink::of_width(33, Moment(0))), cut);
        let spared = "ID   BACKEND  TITLE\n\
                      a1   日本     a title o…\n\
                      b22  -        short\n";
        assert_eq!(table().shown(&Ink::of_width(24, Moment(0))), spared);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_where_the_columns_allow_it() {
        for width in 24..80 {
            let shown = table().shown(&Ink::of_width(width, Moment(0)));
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}\n{shown}");
        }
    }
}
