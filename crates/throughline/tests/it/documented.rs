//! Holds docs/configuration.md to the code: every key, every default, every example, and nothing that does not exist.
//!
//! A section's heading names its table, as in `## [store]`; the rows of the tables below it are its keys.

use crate::cli::root;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use throughline_gateway::config::keys::{KEYS, is_leaf};
use throughline_gateway::config::{Config, Flags, Source, Surroundings, load};

/// The older name of a key, for which there need be no example.
const RENAMED: &str = "backends[].rules";
/// Keys whose default is worked out from others, or is too long for a table; the page describes it.
const DESCRIBED: [&str; 5] = [
    "active",
    "backends[].profile",
    "compose.guidance",
    "handover.max_result_chars",
    "handover.max_tool_context_chars",
];
/// Keys whose default is that of what reads them, and not in what `config show` prints.
const NOT_SHOWN: [&str; 1] = ["mcp[].timeout"];
/// Sections whose tables are about something else than keys.
const OTHER_TABLES: [&str; 2] = ["## Secrets", "## Without a file"];

/// A machine that has one configuration file, and every variable that an example may name.
struct Machine<'t>(&'t str);

impl Surroundings for Machine<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/you".to_owned()),
            "DATABASE_URL" => Some("postgres://throughline@localhost/throughline".to_owned()),
            "THROUGHLINE_KEY" => Some("k".to_owned()),
            _ if name.starts_with("THROUGHLINE_") || name.starts_with("XDG_") => None,
            _ => Some("k".to_owned()),
        }
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("throughline.toml") => Ok(self.0.to_owned()),
            Some("keys/team") => Ok("k\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Names the file of the machine.
fn named() -> Flags {
    Flags { config: Some("throughline.toml".into()), ..Flags::default() }
}

fn configured(text: &str) -> Config {
    load(&Machine(text), &named()).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// A row of a table of keys.
struct Row {
    key: String,
    default: Option<String>,
}

/// Returns the keys that the page has rows for.
fn rows(page: &str) -> Vec<Row> {
    let (mut prefix, mut default_at, mut rows) = (None, None, Vec::new());
    for line in page.lines() {
        if line.starts_with("## ") || line.starts_with("### ") {
            prefix = prefix_of(line);
        }
        if !line.starts_with('|') {
            default_at = None;
        }
        let Some(prefix) = prefix.as_deref().filter(|_| line.starts_with("| ")) else { continue };
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells[0] == "Key" {
            default_at = Some(cells.iter().position(|cell| *cell == "Default"));
        } else if let (Some(default), Some(name)) = (default_at, cells[0].strip_prefix('`')) {
            let name = name.trim_end_matches('`');
            let default = default.and_then(|at| cells.get(at)).map(|cell| (*cell).to_owned());
            rows.push(Row { key: format!("{prefix}{name}"), default });
        }
    }
    rows
}

/// Returns what stands before the keys of a section: `backends[].` for `[[backends]]`.
fn prefix_of(heading: &str) -> Option<String> {
    let title = heading.trim_start_matches('#').trim().trim_matches('`');
    if title == "The top level" {
        return Some(String::new());
    }
    let list = title.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
    let table = title.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    list.map(|name| format!("{name}[].")).or_else(|| table.map(|name| format!("{name}.")))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/configuration.md")).unwrap()
}

fn examples(page: &str) -> Vec<&str> {
    page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_page_has_every_key_and_no_other() {
    let page = page();
    let rows = rows(&page);
    let covers = |row: &Row, key: &str| {
        key.strip_prefix(row.key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for key in KEYS {
        assert!(
            rows.iter().any(|row| covers(row, key.path)),
            "docs/configuration.md has no row for {}",
            key.path
        );
    }
    for row in &rows {
        let exists = KEYS.iter().any(|key| covers(row, key.path));
        assert!(exists, "docs/configuration.md has a row for {}, which is no key", row.key);
    }
    assert!(rows.len() > 90, "only {} rows were found; has the form of the page changed?", rows.len());
    let unknown = page.lines().filter(|line| line.starts_with("## ") && prefix_of(line).is_none());
    let prose = ["## Where values come from", "## Trust", "## An example"];
    for heading in unknown {
        let is_known = OTHER_TABLES.contains(&heading) || prose.contains(&heading);
        assert!(is_known, "{heading}: are there keys below it?");
    }
}

/// Returns the values that hold where nobody says otherwise, by key.
fn defaults() -> BTreeMap<String, String> {
    let config = configured(
        "[[backends]]\nname = \"a\"\ndialect = \"chat\"\nbase_url = \"http://localhost:1/v1\"\n\
         [[mcp]]\nname = \"a\"\ncommand = \"x\"\n",
    );
    let of = |key: &str| key.replace("backends.a.", "backends[].").replace("mcp.a.", "mcp[].");
    let by_default = config.effective.iter().filter(|value| value.source == Source::Default);
    by_default.map(|value| (of(&value.key), value.value.clone())).collect()
}

/// Says whether a cell of the page states a value.
fn states(cell: &str, value: &str) -> bool {
    let cell = cell.replace(['`', '"'], "");
    let is_none = cell.starts_with("none") || cell.starts_with("nothing");
    match value {
        "[]" | "none" => is_none,
        _ => {
            value.trim_matches(['(', ')']) == cell
                || seconds(value).is_some_and(|it| Some(it) == seconds(&cell))
        }
    }
}

fn seconds(text: &str) -> Option<u64> {
    let units = [("ms", 0), ("s", 1), ("m", 60), ("h", 3600)];
    units.iter().find_map(|(unit, each)| Some(text.strip_suffix(unit)?.parse::<u64>().ok()? * each))
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_code() {
    let (page, defaults) = (page(), defaults());
    let mut compared = 0;
    for Row { key, default } in rows(&page) {
        let cell = default.unwrap_or_default();
        let is_literal =
            cell.starts_with('`') || cell.chars().all(|c| c.is_ascii_digit()) && !cell.is_empty();
        match defaults.get(&key) {
            _ if DESCRIBED.contains(&key.as_str()) => assert!(!is_literal, "{key}: {cell} is worked out"),
            Some(value) => {
                assert!(states(&cell, value), "{key} is {value} by default; the page says {cell:?}");
                compared += 1;
            }
            None if NOT_SHOWN.contains(&key.as_str()) => {}
            None => assert!(!is_literal, "{key}: the page says {cell}, and the code has no default"),
        }
    }
    assert!(compared > 40, "only {compared} defaults were compared");
}

#[test]
fn a_wrong_default_would_be_found() {
    assert!(states("`\"5m\"`", "300s") && !states("`\"5m\"`", "10s"));
    assert!(states("none: only this machine", "[]") && !states("`auto`", "[]"));
    assert!(states("what was asked for", "(what was asked for)"));
    let page = "## `[store]`\n\n| Key | Meaning | Default |\n|---|---|---|\n| `url` | where | `here` |\n";
    let rows = rows(page);
    assert_eq!((rows[0].key.as_str(), rows[0].default.as_deref()), ("store.url", Some("`here`")));
}

#[test]
fn every_example_is_valid_and_every_key_has_one() {
    let page = page();
    let mut used = BTreeSet::new();
    for example in examples(&page) {
        configured(example);
        collect("", &example.parse::<toml::Table>().unwrap().into(), &mut used);
    }
    for key in KEYS.iter().filter(|key| key.path != RENAMED) {
        assert!(used.contains(key.path), "docs/configuration.md has no example of {}", key.path);
    }
}

/// Collects the keys that a configuration sets.
fn collect(path: &str, value: &toml::Value, used: &mut BTreeSet<String>) {
    if is_leaf(path) {
        used.insert(path.to_owned());
        return;
    }
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(&below, value, used);
            }
        }
        toml::Value::Array(items) => items.iter().for_each(|item| collect(&format!("{path}[]"), item, used)),
        _ => {}
    }
}

#[test]
fn configuration_on_other_pages_is_valid() {
    let mut checked = 0;
    for (path, text) in crate::documents::pages() {
        for example in examples(&text) {
            let loaded = load(&Machine(example), &named());
            assert!(loaded.is_ok(), "{path}: {}\n{example}", loaded.unwrap_err());
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked}");
}
