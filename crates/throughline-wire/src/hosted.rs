//! Tools that are no functions: calls and results that only their own dialect has items for, as pairs like any other.
//!
//! In their own dialect they stay as they came. Elsewhere, and in a brief, what a shell, a patch, a search or a server of
//! the provider returned is as much tool history as the result of a function: without it the next model would make it up.
//! The name of the pair is that of the tool, and its arguments are what the item says was to be done, in its own words.

use crate::json::{Document, Node, Writer};
use throughline_core::{
    Call, Content, Dialect, Entry, Input, Kind, Outcome, Part, Return, Rules, Said, Text, Treatment,
};

/// Returns a history in which every call and result that the target has no item for is a pair.
#[must_use]
pub fn with_hosted_pairs(entries: Vec<Entry>, rules: &Rules) -> Vec<Entry> {
    if !entries.iter().any(|entry| is_hosted(entry, rules)) {
        return entries;
    }
    let mut paired = Vec::with_capacity(entries.len() + 8);
    for entry in entries {
        let kinds = if is_hosted(&entry, rules) { kinds_of(&entry) } else { None };
        match kinds {
            Some(kinds) => {
                let trace = entry.trace.with(Treatment::Adapted);
                let made = |kind| Entry { trace: trace.clone(), ..entry.altered(kind) };
                paired.extend(kinds.into_iter().map(made));
            }
            None => paired.push(entry),
        }
    }
    paired
}

/// Returns the same for a text that tells of a history, which has items for nothing.
#[must_use]
pub fn with_all_pairs(entries: Vec<Entry>) -> Vec<Entry> {
    let mut rules = Rules::of_dialect(Dialect::Chat);
    rules.own_extensions = false;
    with_hosted_pairs(entries, &rules)
}

fn is_foreign(dialect: Dialect, rules: &Rules) -> bool {
    dialect != rules.dialect || !rules.own_extensions
}

fn is_hosted(entry: &Entry, rules: &Rules) -> bool {
    match &entry.kind {
        Kind::Opaque { kind } => {
            let is_item = entry.wire.as_ref().is_some_and(|wire| wire.dialect == Dialect::Responses);
            is_item && is_foreign(Dialect::Responses, rules) && ITEMS.contains(&kind.as_str())
        }
        Kind::Said(said) => is_foreign(Dialect::Messages, rules) && said.parts.iter().any(is_tool_block),
        _ => false,
    }
}

/// Items of the Responses dialect that call a tool or tell what it returned.
const ITEMS: [&str; 10] = [
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
];

fn is_tool_block(part: &Part) -> bool {
    let is_own = part.wire.as_ref().is_some_and(|wire| wire.dialect == Dialect::Messages);
    match &part.content {
        Content::Opaque { kind } => is_own && (is_call_block(kind) || is_result_block(kind)),
        _ => false,
    }
}

fn is_call_block(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

fn is_result_block(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

/// Returns what an entry says, as calls and results and whatever was said between them.
fn kinds_of(entry: &Entry) -> Option<Vec<Kind>> {
    match &entry.kind {
        Kind::Opaque { kind } => {
            let document = Document::parse(entry.wire.as_ref()?.text.as_str()).ok()?;
            item_kinds(kind, document.root())
        }
        Kind::Said(said) => Some(block_kinds(said)),
        _ => None,
    }
}

fn text(node: Node<'_>, name: &str) -> Option<Text> {
    node.field(name).and_then(|value| value.as_text()).filter(|text| !text.is_empty())
}

/// Returns a field as text: a string as it is, anything else as it is written.
fn told(node: Node<'_>, name: &str) -> Option<Text> {
    let value = node.field(name).filter(|value| !value.is_null())?;
    Some(value.as_text().unwrap_or_else(|| value.raw_text()))
}

fn called(id: &Text, name: &str, arguments: Text) -> Kind {
    Kind::Called(Call {
        id: id.clone(),
        item_id: None,
        name: Text::from(name),
        namespace: None,
        input: Input::Arguments(arguments),
    })
}

fn returned(id: &Text, output: Text, outcome: Outcome) -> Kind {
    Kind::Returned(Return {
        call_id: Some(id.clone()),
        item_id: None,
        name: None,
        parts: vec![Part::text(output)],
        outcome,
        freeform: false,
    })
}

fn item_kinds(kind: &str, item: Node<'_>) -> Option<Vec<Kind>> {
    let id = text(item, "call_id").or_else(|| text(item, "id"))?;
    let failed = item.field("status").is_some_and(|status| status.is_str("failed"));
    let outcome = if failed { Outcome::Error } else { Outcome::Ok };
    let name = kind.trim_end_matches("_output").trim_end_matches("_call");
    Some(match kind {
        "local_shell_call" | "shell_call" => {
            vec![called(&id, name, told(item, "action").unwrap_or_default())]
        }
        "apply_patch_call" => vec![called(&id, name, told(item, "operation").unwrap_or_default())],
        "local_shell_call_output" | "shell_call_output" | "apply_patch_call_output" => {
            vec![returned(&id, told(item, "output").unwrap_or_default(), outcome)]
        }
        "mcp_call" => {
            let tool = text(item, "name").unwrap_or(Text::from_static("mcp"));
            let error = told(item, "error");
            let outcome = if error.is_some() { Outcome::Error } else { outcome };
            let output = error.or_else(|| told(item, "output")).unwrap_or_default();
            vec![
                called(&id, &tool, told(item, "arguments").unwrap_or_default()),
                returned(&id, output, outcome),
            ]
        }
        "web_search_call" => {
            let sources = item.field("action").and_then(|action| told(action, "sources"));
            let output = sources.or_else(|| told(item, "results"));
            let output = output.unwrap_or(Text::from_static("[what was found is told in the answer]"));
            vec![called(&id, name, told(item, "action").unwrap_or_default()), returned(&id, output, outcome)]
        }
        "file_search_call" => {
            let arguments = object("queries", item.field("queries"));
            let output = told(item, "results");
            let output = output.unwrap_or(Text::from_static("[what was found is told in the answer]"));
            vec![called(&id, name, arguments), returned(&id, output, outcome)]
        }
        "code_interpreter_call" => {
            let output = told(item, "outputs").unwrap_or(Text::from_static("[no output was recorded]"));
            vec![called(&id, name, object("code", item.field("code"))), returned(&id, output, outcome)]
        }
        _ => return None,
    })
}

/// Returns an object with one field.
fn object(name: &str, value: Option<Node<'_>>) -> Text {
    let mut writer = Writer::new();
    writer.begin_object();
    if let Some(value) = value {
        writer.field_raw(name, value.raw());
    }
    writer.end_object();
    writer.into_string().into()
}

fn block_kinds(said: &Said) -> Vec<Kind> {
    let (mut kinds, mut parts): (Vec<Kind>, Vec<Part>) = (Vec::new(), Vec::new());
    for part in &said.parts {
        let Some(kind) = block_kind(part) else {
            parts.push(part.clone());
            continue;
        };
        if !parts.is_empty() {
            kinds.push(Kind::Said(Said { parts: std::mem::take(&mut parts), ..said.clone() }));
        }
        kinds.push(kind);
    }
    if !parts.is_empty() {
        kinds.push(Kind::Said(Said { parts, ..said.clone() }));
    }
    kinds
}

fn block_kind(part: &Part) -> Option<Kind> {
    let Content::Opaque { kind } = &part.content else { return None };
    if !is_tool_block(part) {
        return None;
    }
    let document = Document::parse(part.wire.as_ref()?.text.as_str()).ok()?;
    let block = document.root();
    if is_call_block(kind) {
        let (id, name) = (text(block, "id")?, text(block, "name")?);
        return Some(called(&id, &name, told(block, "input").unwrap_or_default()));
    }
    let id = text(block, "tool_use_id")?;
    let content = block.field("content");
    let is_flagged = block.field("is_error").and_then(|flag| flag.as_bool()).unwrap_or(false);
    let is_error =
        content.and_then(|content| text(content, "type")).is_some_and(|kind| kind.ends_with("_error"));
    let outcome = if is_flagged || is_error { Outcome::Error } else { Outcome::Ok };
    Some(returned(&id, content.map(content_text).unwrap_or_default(), outcome))
}

/// Returns the texts of a list of text blocks, joined; anything else as it is written.
fn content_text(content: Node<'_>) -> Text {
    let texts: Option<Vec<Text>> = content.items().map(|block| text(block, "text")).collect();
    match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => Text::from(texts.iter().map(Text::as_str).collect::<Vec<_>>().join("\n")),
        None => content.as_text().unwrap_or_else(|| content.raw_text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_request, encode_request};
    use throughline_core::{Report, Target, prepare};

    fn pairs(dialect: Dialect, body: &str) -> Vec<(String, String)> {
        let ask = decode_request(dialect, body.to_owned()).unwrap();
        let entries = with_all_pairs(ask.entries);
        let call = |entry: &Entry| {
            let call = entry.as_call()?;
            Some((format!("{} {}", call.name, call.input.text()), call.id.clone()))
        };
        let result = |id: &Text| {
            let returned =
                entries.iter().filter_map(Entry::as_return).find(|it| it.call_id.as_ref() == Some(id));
            returned.map_or("nothing".to_owned(), |it| {
                let mark = if it.outcome.is_error() { "failed: " } else { "" };
                format!("{mark}{}", throughline_core::joined_text(&it.parts))
            })
        };
        entries.iter().filter_map(call).map(|(head, id)| (head, result(&id))).collect()
    }

    fn responses(items: &str) -> Vec<(String, String)> {
        pairs(Dialect::Responses, &format!(r#"{{"model":"m","input":[{items}]}}"#))
    }

    #[test]
    fn items_of_every_tool_are_pairs() {
        for (items, call, result) in [
            (
                r#"{"type":"local_shell_call","id":"lsh_1","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}},
                   {"type":"local_shell_call_output","id":"c","output":"a.txt"}"#,
                r#"local_shell {"type":"exec","command":["ls"]}"#,
                "a.txt",
            ),
            (
                r#"{"type":"shell_call","call_id":"c","action":{"commands":["pwd"]}},
                   {"type":"shell_call_output","call_id":"c","output":[{"stdout":"/x"}]}"#,
                r#"shell {"commands":["pwd"]}"#,
                r#"[{"stdout":"/x"}]"#,
            ),
            (
                r#"{"type":"apply_patch_call","call_id":"c","operation":{"type":"update_file","path":"a","diff":"@@"}},
                   {"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"no such file"}"#,
                r#"apply_patch {"type":"update_file","path":"a","diff":"@@"}"#,
                "failed: no such file",
            ),
            (
                r#"{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"roll","arguments":"{\"n\":1}","output":"4"}"#,
                r#"roll {"n":1}"#,
                "4",
            ),
            (
                r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q","sources":[{"url":"u"}]}}"#,
                r#"web_search {"type":"search","query":"q","sources":[{"url":"u"}]}"#,
                r#"[{"url":"u"}]"#,
            ),
            (
                r#"{"type":"file_search_call","id":"fs_1","queries":["q"],"results":[{"text":"found"}]}"#,
                r#"file_search {"queries":["q"]}"#,
                r#"[{"text":"found"}]"#,
            ),
            (
                r#"{"type":"code_interpreter_call","id":"ci_1","code":"1+1","outputs":[{"type":"logs","logs":"2"}]}"#,
                r#"code_interpreter {"code":"1+1"}"#,
                r#"[{"type":"logs","logs":"2"}]"#,
            ),
        ] {
            assert_eq!(responses(items), [(call.to_owned(), result.to_owned())], "{items}");
        }
    }

    #[test]
    fn server_tools_of_messages_are_pairs_in_their_place() {
        let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[
            {"type":"text","text":"Let me look."},
            {"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"q"}},
            {"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"type":"web_search_result","url":"u"}]},
            {"type":"mcp_tool_use","id":"mcp_1","name":"echo","server_name":"s","input":{}},
            {"type":"mcp_tool_result","tool_use_id":"mcp_1","is_error":true,"content":[{"type":"text","text":"no"}]},
            {"type":"text","text":"Found."}]}]}"#;
        assert_eq!(
            pairs(Dialect::Messages, body),
            [
                (
                    r#"web_search {"query":"q"}"#.to_owned(),
                    r#"[{"type":"web_search_result","url":"u"}]"#.to_owned()
                ),
                ("echo {}".to_owned(), "failed: no".to_owned()),
            ]
        );
    }

    #[test]
    fn another_dialect_is_shown_them_and_their_own_as_they_came() {
        let body = r#"{"model":"m","input":[{"role":"user","content":"go"},
            {"type":"local_shell_call","id":"lsh_1","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}},
            {"type":"local_shell_call_output","id":"c","output":"a.txt"}]}"#;
        let mut ask = decode_request(Dialect::Responses, body.to_owned()).unwrap();
        let own = Rules::of_dialect(Dialect::Responses);
        assert_eq!(with_hosted_pairs(ask.entries.clone(), &own), ask.entries);
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let rules = Rules::of_dialect(dialect);
            ask.entries = with_hosted_pairs(ask.entries, &rules);
            let mut report = Report::default();
            let sent = encode_request(&prepare(&ask, &Target::new(&rules)).0, &mut report);
            assert!(sent.contains("local_shell") && sent.contains("a.txt"), "{sent}");
        }
    }
}
