//! What every durable store keeps, row by row: the columns in the order in which PostgreSQL's statements take them.
//!
//! Numbers that a database gives out are no part of it: rows refer to each other by the ids and digests of the
//! interface. Where the order of rows means something, stores send them in that order.

use crate::checksum::Field;
use crate::digest::{Digest, Digester, Domain};

/// One table that every durable store has.
#[derive(Debug)]
pub(crate) struct Table {
    pub name: &'static str,
    /// Each column with its name.
    pub columns: &'static [(&'static str, Column)],
    /// Whether the order of its rows means something.
    pub is_ordered: bool,
}

/// What a column holds, if it holds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Text,
    /// Of 16 bits.
    Small,
    /// Of 32 bits.
    Number,
    /// Of 64 bits.
    Long,
    Flag,
    Digest,
    Digests,
    Bytes,
}

/// What stands in a row and a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Nothing,
    Text(String),
    Number(i64),
    Digest(Digest),
    Digests(Vec<Digest>),
    Bytes(Vec<u8>),
}

pub(crate) type Row = Vec<Cell>;

use Column::{Bytes, Digest as D, Digests, Flag, Long, Number, Small, Text};

/// The last column of every table whose rows nothing else vouches for.
const CHECKSUM: (&str, Column) = ("checksum", Long);

/// The tables, each behind those that it refers to.
pub(crate) const TABLES: [Table; 14] = [
    Table {
        name: "conversations",
        columns: &[
            ("id", Text),
            ("created", Long),
            ("updated", Long),
            ("identified", Text),
            ("title", Text),
            CHECKSUM,
        ],
        is_ordered: true,
    },
    Table { name: "keys", columns: &[("key", Text), ("conversation", Text), CHECKSUM], is_ordered: false },
    Table {
        name: "exchanges",
        columns: &[
            ("id", Text),
            ("conversation", Text),
            ("before", D),
            ("after", D),
            ("dialect", Small),
            ("client", Text),
            ("asked_model", Text),
            ("started", Long),
            ("ended", Long),
            ("ending", Text),
            ("status", Number),
            ("input", Long),
            ("cache_read", Long),
            ("cache_write", Long),
            ("output", Long),
            ("reasoning", Long),
            ("response", Text),
            ("stored", Flag),
            ("deleted", Flag),
            CHECKSUM,
        ],
        is_ordered: true,
    },
    Table {
        name: "attempts",
        columns: &[
            ("exchange", Text),
            ("number", Number),
            ("backend", Text),
            ("dialect", Small),
            ("model", Text),
            ("strategy", Text),
            ("started", Long),
            ("ended", Long),
            ("status", Number),
            ("failure", Text),
            ("step_exchange", Text),
            ("step_attempt", Number),
            ("tokens_before", Long),
            ("tokens_after", Long),
            ("tool_tokens", Long),
            ("continues", Text),
            ("recall", Text),
            CHECKSUM,
        ],
        is_ordered: false,
    },
    // A record is vouched for by its name, which is the digest of what it unpacks to.
    Table {
        name: "blobs",
        columns: &[("digest", D), ("codec", Small), ("size", Number), ("bytes", Bytes)],
        is_ordered: false,
    },
    Table {
        name: "nodes",
        columns: &[
            ("id", D),
            ("conversation", Text),
            ("exchange", Text),
            ("parent", D),
            ("record", D),
            ("envelope", D),
            ("chain", D),
            ("counts", Flag),
            ("at", Long),
            ("kind", Small),
            ("tool", Text),
            ("call_id", Text),
            ("message", Number),
            ("block", Number),
            CHECKSUM,
        ],
        is_ordered: true,
    },
    Table { name: "items", columns: &[("id", Text), ("node", D), CHECKSUM], is_ordered: false },
    Table {
        name: "bodies",
        columns: &[
            ("digest", D),
            ("base", D),
            ("depth", Number),
            ("sources", Digests),
            ("head", Number),
            ("tail", Number),
            ("codec", Small),
            ("size", Number),
            ("bytes", Bytes),
            CHECKSUM,
        ],
        is_ordered: false,
    },
    Table {
        name: "documents",
        columns: &[("exchange", Text), ("attempt", Number), ("kind", Small), ("body", D), CHECKSUM],
        is_ordered: false,
    },
    Table {
        name: "events",
        columns: &[
            ("exchange", Text),
            ("attempt", Number),
            ("codec", Small),
            ("size", Number),
            ("bytes", Bytes),
            CHECKSUM,
        ],
        is_ordered: true,
    },
    Table {
        name: "answers",
        columns: &[("exchange", Text), ("codec", Small), ("size", Number), ("bytes", Bytes), CHECKSUM],
        is_ordered: false,
    },
    Table {
        name: "compaction_steps",
        columns: &[
            ("exchange", Text),
            ("attempt", Number),
            ("conversation", Text),
            ("backend", Text),
            ("model", Text),
            ("at", Long),
            ("follows_exchange", Text),
            ("follows_attempt", Number),
            ("codec", Small),
            ("size", Number),
            ("bytes", Bytes),
            ("summary", Text),
            CHECKSUM,
        ],
        is_ordered: true,
    },
    Table {
        name: "learned",
        columns: &[
            ("backend", Text),
            ("model", Text),
            ("capability", Text),
            ("verdict", Text),
            ("reason", Text),
            ("at", Long),
            ("expires", Long),
            CHECKSUM,
        ],
        is_ordered: false,
    },
    Table {
        name: "settings",
        columns: &[("conversation", Text), ("name", Text), ("value", Text), ("at", Long), CHECKSUM],
        is_ordered: false,
    },
];

impl Table {
    /// Returns the table of that name.
    pub fn named(name: &str) -> &'static Self {
        TABLES.iter().find(|table| table.name == name).unwrap_or(&TABLES[0])
    }

    /// Returns what each column holds.
    pub fn kinds(&self) -> impl Iterator<Item = Column> + '_ {
        self.columns.iter().map(|(_, column)| *column)
    }

    /// Says whether rows of the table carry a checksum.
    pub fn has_checksum(&self) -> bool {
        self.columns.last() == Some(&CHECKSUM)
    }
}

/// What there is of each table, so that two histories can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    tables: [Tally; TABLES.len()],
}

/// How many rows there are, and a digest over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    rows: u64,
    digest: [u8; Digest::BYTES],
}

impl Inventory {
    /// Returns how many rows there are of each table, by its name.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        TABLES.iter().zip(&self.tables).map(|(table, tally)| (table.name, tally.rows))
    }

    /// Returns how many rows there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.tables.iter().map(|tally| tally.rows).sum()
    }

    /// Returns a digest over everything; equal histories have equal ones.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digester = Digester::new(Domain::Body);
        for tally in &self.tables {
            digester.raw(&tally.rows.to_le_bytes());
            digester.raw(&tally.digest);
        }
        digester.finish().to_string()
    }

    /// Takes in a row of a table.
    ///
    /// Rows are combined in a way that does not depend on their order, which is taken in with those rows for which
    /// it means something: databases do not agree on how to sort text.
    pub(crate) fn add(&mut self, table: usize, row: &[Cell]) {
        let tally = &mut self.tables[table];
        let mut digester = Digester::new(Domain::Body);
        if TABLES[table].is_ordered {
            digester.raw(&tally.rows.to_le_bytes());
        }
        row.iter().for_each(|cell| Field::from(cell).add_to(&mut digester));
        for (sum, byte) in tally.digest.iter_mut().zip(digester.finish().bytes()) {
            *sum ^= byte;
        }
        tally.rows += 1;
    }

    /// Returns the first table of which two histories do not have the same.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        let differs = |number: &usize| self.tables[*number] != other.tables[*number];
        (0..TABLES.len()).find(differs).map(|number| TABLES[number].name)
    }
}

impl Cell {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub const fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub const fn digest(&self) -> Option<Digest> {
        match self {
            Self::Digest(digest) => Some(*digest),
            _ => None,
        }
    }

    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(table: usize, rows: &[&str]) -> Inventory {
        let mut inventory = Inventory::default();
        for row in rows {
            inventory.add(table, &[Cell::Text((*row).to_owned()), Cell::Nothing]);
        }
        inventory
    }

    #[test]
    fn order_counts_where_it_means_something() {
        let (conversations, keys) = (0, 1);
        assert_ne!(inventory(conversations, &["a", "b"]), inventory(conversations, &["b", "a"]));
        assert_eq!(inventory(keys, &["a", "b"]), inventory(keys, &["b", "a"]));
    }

    #[test]
    fn a_row_more_or_less_is_a_difference() {
        let one = inventory(1, &["a"]);
        assert_eq!(one.difference(&one), None);
        assert_eq!(one.difference(&inventory(1, &["a", "a", "a"])), Some("keys"));
        assert_eq!(one.difference(&inventory(1, &["b"])), Some("keys"));
        assert_ne!(one.digest(), inventory(1, &["b"]).digest());
    }
}
