//! Changing a few values in somebody else's configuration, and leaving every other byte of it alone.

use throughline_wire::json::{Document, Kind, Node, quote};

/// What comes before what was there, in a TOML file that was edited.
const KEPT: &str = "# kept by throughline: ";
/// What ends a line that was added.
const ADDED: &str = " # added by throughline";
const BEGIN: &str = "# added by throughline, up to the line that says so:";
const END: &str = "# this was added by throughline";

/// Sets a value in a JSON document: in its place if it is there, else as the first of its object. Objects on the way to
/// it are made. Everything else stays as it is written.
pub fn set_json(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let (object, left) = nearest(&document, path)?;
    let depth = path.len() - left.len();
    let Some((name, inner)) = left.split_first() else {
        let (start, end) = (object.offset(), object.offset() + object.raw().len());
        return Ok(format!("{}{value}{}", &text[..start], &text[end..]));
    };

    let value =
        inner.iter().rev().fold(value.to_owned(), |value, name| format!("{{ {}: {value} }}", quote(name)));
    let indent = "  ".repeat(depth + 1);
    let (before, rest) = text.split_at(object.offset() + 1);
    let is_empty = object.is_empty();
    let closing = if is_empty { format!("\n{}", "  ".repeat(depth)) } else { ",".to_owned() };
    let rest = if is_empty { rest.trim_start() } else { rest };
    Ok(format!("{before}\n{indent}{}: {value}{closing}{rest}", quote(name)))
}

/// Takes a value out of a JSON document, if it is there.
pub fn remove_json(text: &str, path: &[&str]) -> Result<String, String> {
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let Some((name, outer)) = path.split_last() else { return Ok(text.to_owned()) };
    let Ok((object, [])) = nearest(&document, outer) else { return Ok(text.to_owned()) };
    let Some(value) = object.field(name) else { return Ok(text.to_owned()) };
    let Some(start) = text[..value.offset()].rfind(&quote(name)) else { return Ok(text.to_owned()) };
    let end = value.offset() + value.raw().len();
    let behind = text[end..].trim_start();
    if let Some(rest) = behind.strip_prefix(',') {
        return Ok(format!(
            "{}{}",
            text[..start].trim_end_matches([' ', '\t', '\n', '\r']),
            rest_of_line(rest)
        ));
    }
    let before = text[..start].trim_end();
    Ok(format!("{}{}", before.strip_suffix(',').unwrap_or(before), &text[end..]))
}

/// Returns what stands behind a value that was taken out; the next one begins on a line of its own.
fn rest_of_line(rest: &str) -> String {
    if rest.starts_with(['\n', '\r']) {
        rest.to_owned()
    } else {
        format!("\n{}", rest.trim_start_matches(' '))
    }
}

/// Returns a value of a JSON document as it is written.
pub fn json_value(text: &str, path: &[&str]) -> Option<String> {
    let document = Document::parse(text).ok()?;
    match nearest(&document, path) {
        Ok((node, [])) => Some(node.raw().to_owned()),
        _ => None,
    }
}

/// Follows a path as far as it leads, and returns what is left of it.
fn nearest<'d, 'p>(document: &'d Document, path: &'p [&'p str]) -> Result<(Node<'d>, &'p [&'p str]), String> {
    let mut node = document.root();
    let mut left = path;
    while let Some((name, rest)) = left.split_first() {
        if node.kind() != Kind::Object {
            return Err(format!("`{}` is no object", path[..path.len() - left.len()].join(".")));
        }
        let Some(field) = node.field(name) else { break };
        node = field;
        left = rest;
    }
    Ok((node, left))
}

/// Adds values at the top of a TOML file, and tables at its end. What a value stands for is kept as a comment.
pub fn add_toml(text: &str, values: &[(&str, String)], tables: &str) -> String {
    let text = remove_toml(text);
    let mut edited: String =
        values.iter().map(|(name, value)| format!("{name} = {value}{ADDED}\n")).collect();
    let mut is_top = true;
    for line in text.lines() {
        is_top &= !line.trim_start().starts_with('[');
        let names = |name: &str| line.split('=').next().is_some_and(|key| key.trim() == name);
        match is_top && values.iter().any(|(name, _)| names(name)) {
            true => edited.push_str(&format!("{KEPT}{line}\n")),
            false => edited.push_str(&format!("{line}\n")),
        }
    }
    format!("{edited}\n{BEGIN}\n{tables}{END}\n")
}

/// Takes out of a TOML file what was added to it.
pub fn remove_toml(text: &str) -> String {
    let mut plain: Vec<&str> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            BEGIN => {
                is_inside = true;
                // The empty line before it was added as well.
                plain.pop_if(|before| before.is_empty());
            }
            END => is_inside = false,
            _ if is_inside || line.ends_with(ADDED) => {}
            _ => plain.push(line.strip_prefix(KEPT).unwrap_or(line)),
        }
    }
    plain.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = "{\n  // no comment\n}";

    #[test]
    fn a_value_is_set_in_its_place_and_nothing_else_is_touched() {
        let text = "{\n  \"theme\":   \"dark\",\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n";
        let edited = set_json(text, &["env", "URL"], "\"http://x\"").unwrap();
        assert_eq!(
            edited,
            "{\n  \"theme\":   \"dark\",\n  \"env\": {\n    \"URL\": \"http://x\",\n    \"A\": \"1\"\n  }\n}\n"
        );
        assert_eq!(set_json(&edited, &["env", "URL"], "\"y\"").unwrap(), edited.replace("http://x", "y"));
        assert_eq!(remove_json(&edited, &["env", "URL"]).unwrap(), text);
        assert_eq!(json_value(&edited, &["env", "URL"]).as_deref(), Some("\"http://x\""));
        assert_eq!(json_value(&edited, &["env", "B"]), None);
        assert_eq!(remove_json(text, &["env", "B"]).unwrap(), text);
    }

    #[test]
    fn objects_on_the_way_are_made_and_what_is_no_json_is_refused() {
        let made = set_json("", &["env", "URL"], "1").unwrap();
        assert_eq!(made, "{\n  \"env\": { \"URL\": 1 }\n}\n");
        assert_eq!(remove_json("{\"a\": 1, \"b\": 2}", &["b"]).unwrap(), "{\"a\": 1}");
        assert_eq!(remove_json("{\"a\": 1, \"b\": 2}", &["a"]).unwrap(), "{\n\"b\": 2}");
        assert!(set_json(SETTINGS, &["a"], "1").is_err());
        assert!(set_json("{\"env\": 7}", &["env", "URL"], "1").is_err());
    }

    #[test]
    fn toml_is_as_it_was_when_what_was_added_is_taken_out() {
        let text = "model = \"gpt-5\" # mine\nmodel_provider = \"azure\"\n\n[tools]\nmodel_provider = 1\n";
        let values = [("model_provider", "\"throughline\"".to_owned())];
        let edited = add_toml(text, &values, "[model_providers.throughline]\nname = \"T\"\n");
        let table: toml::Table = edited.parse().unwrap();
        assert_eq!(table["model_provider"].as_str(), Some("throughline"));
        assert_eq!(table["model"].as_str(), Some("gpt-5"));
        assert_eq!(table["model_providers"]["throughline"]["name"].as_str(), Some("T"));
        assert_eq!(remove_toml(&edited), text);
        assert_eq!(add_toml(&edited, &values, "[model_providers.throughline]\nname = \"T\"\n"), edited);
    }
}
