//! The scratch project: a bakery that adds its prices up wrongly, and a test that says so.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// The project.
pub struct Project;

/// So many sorts of bread there are.
const BREADS: u32 = 240;

/// What the script has wrong, and what it should be.
pub const WRONG: &str = "cut -d, -f1";
/// As [`WRONG`] should be.
pub const RIGHT: &str = "cut -d, -f3";

/// A sort that is asked for later, when the list is long out of the prompt.
pub const SORT: &str = "bread-42";

impl Project {
    /// Writes it into a folder.
    pub fn write(folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("prices.csv"), Self::prices())?;
        std::fs::write(folder.join("total.sh"), Self::total(WRONG))?;
        let expected: u32 = (1..=BREADS).map(Self::price).sum();
        let test = format!(
            "got=$(sh total.sh)\nif [ \"$got\" = {expected} ]; then echo \"ok: $got\"; else echo \"expected {expected}, got $got\"; exit 1; fi\n"
        );
        std::fs::write(folder.join("test.sh"), test)
    }

    /// Returns the list of prices.
    pub fn prices() -> String {
        (1..=BREADS).fold(String::new(), |mut list, number| {
            let _ = writeln!(list, "{number},bread-{number},{},rye and water and salt", Self::price(number));
            list
        })
    }

    /// Returns the line of the list that has the sort which is asked for later.
    pub fn line_of_sort() -> String {
        let list = Self::prices();
        list.lines().find(|line| line.contains(SORT)).unwrap_or_default().to_owned()
    }

    fn total(column: &str) -> String {
        format!(
            "total=0\nfor price in $({column} prices.csv); do total=$((total + price)); done\necho $total\n"
        )
    }

    /// Prices that look like prices and are the same each time.
    const fn price(number: u32) -> u32 {
        120 + number * 37 % 410
    }
}
