//! Tools and the choice among them, both ways.
//!
//! Beware of two words: a tool of type `custom` is an ordinary one here, with a schema, and not a tool that
//! takes free text; and the tools that the provider defines carry a dated type (`bash_20250124`) although the
//! client runs some of them.

use super::kept::{OWN, given, given_bool, given_text, own, wire, write_extras};
use crate::input::FREEFORM_SCHEMA;
use crate::json::{DecodeError, Document, Edit, Kind, Node, Writer, patch, quote};
use std::borrow::Cow;
use throughline_core::{Action, Ask, Prompt, Report, Subject, Text, Tool, ToolChoice, ToolForm, Wire};

/// The schema of a tool that takes nothing.
const EMPTY_SCHEMA: &str = r#"{"type":"object","properties":{}}"#;

/// Keywords that are refused at the top of a schema.
const COMBINATORS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Reads the tools of a request.
pub(super) fn decode_tools(root: Node<'_>) -> Result<Vec<Tool>, DecodeError> {
    let Some(tools) = given(root, "tools") else { return Ok(Vec::new()) };
    tools.expect_array()?.items().map(decode_tool).collect()
}

fn decode_tool(tool: Node<'_>) -> Result<Tool, DecodeError> {
    tool.expect_object()?;
    let name = given_text(tool, "name")?;
    let description = given_text(tool, "description")?;
    let kind = given_text(tool, "type")?.filter(|kind| kind != "custom");
    let (name, form, wire) = match kind {
        Some(kind) => {
            let kept = Wire { dialect: OWN, text: tool.raw_text(), extras: Vec::new() };
            (name.unwrap_or_else(|| kind.clone()), ToolForm::Hosted { kind }, kept)
        }
        None => {
            let schema = given(tool, "input_schema").map(|schema| schema.expect_object()).transpose()?;
            let schema = schema.map(|schema| schema.raw_text());
            let form = ToolForm::Function { schema, strict: given_bool(tool, "strict")? };
            let known = ["type", "name", "description", "input_schema", "strict"];
            let name = match name {
                Some(name) => name,
                None => tool.expect_field("name")?.expect_text()?,
            };
            (name, form, wire(tool, &known))
        }
    };
    Ok(Tool { name, namespace: None, description, form, wire: Some(wire), intact: true })
}

/// Reads `tool_choice`, and whether it forbids several calls at once.
pub(super) fn decode_choice(root: Node<'_>) -> Result<(Option<ToolChoice>, Option<bool>), DecodeError> {
    let Some(choice) = given(root, "tool_choice") else { return Ok((None, None)) };
    let kind = choice.expect_field("type")?.expect_str()?;
    let chosen = match &*kind {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(choice.expect_field("name")?.expect_text()?),
        _ => ToolChoice::Opaque(choice.raw_text()),
    };
    let serial = given_bool(choice, "disable_parallel_tool_use")?;
    Ok((Some(chosen), serial.map(|serial| !serial)))
}

/// Says whether the tools of the prompt are those of the request, as they came.
pub(super) fn are_untouched(prompt: &Prompt<'_>) -> bool {
    let (asked, sent) = (&prompt.ask.tools, &prompt.tools);
    asked.len() == sent.len()
        && sent.iter().zip(asked).all(|(sent, asked)| sent.intact && sent.name == asked.name)
}

/// Writes the `tools` field, if there are any.
pub(super) fn write_tools(writer: &mut Writer, tools: &[Tool], report: &mut Report) {
    let writable: Vec<&Tool> = tools.iter().filter(|tool| is_writable(tool, report)).collect();
    if writable.is_empty() {
        return;
    }
    writer.key("tools");
    writer.begin_array();
    for tool in writable {
        match own(tool.wire.as_ref()).filter(|_| tool.intact || tool.is_hosted()) {
            Some(wire) => writer.raw(&wire.text),
            None => write_tool(writer, tool, report),
        }
    }
    writer.end_array();
}

fn is_writable(tool: &Tool, report: &mut Report) -> bool {
    let writable = !tool.is_hosted() || own(tool.wire.as_ref()).is_some();
    if !writable {
        note(report, Action::Dropped, tool, "only its own provider runs it");
    }
    writable
}

fn write_tool(writer: &mut Writer, tool: &Tool, report: &mut Report) {
    writer.begin_object();
    writer.field_str("name", &tool.name);
    match &tool.form {
        ToolForm::Function { schema, strict } => {
            let schema = sendable_schema(schema.as_ref(), tool, report);
            write_description(writer, tool.description.as_deref(), schema.beside.as_deref());
            writer.field_raw("input_schema", &schema.text);
            if *strict == Some(true) {
                write_strict(writer, tool, report);
            }
        }
        ToolForm::Custom { format } => {
            note(
                report,
                Action::Translated,
                tool,
                "a tool that takes free text is declared with one text field",
            );
            let beside = format.as_ref().map(|format| format!("The input must follow this format: {format}"));
            write_description(writer, tool.description.as_deref(), beside.as_deref());
            writer.field_raw("input_schema", FREEFORM_SCHEMA);
        }
        ToolForm::Hosted { .. } => writer.field_raw("input_schema", EMPTY_SCHEMA),
    }
    write_extras(writer, tool.wire.as_ref());
    writer.end_object();
}

/// Writes `strict` for a tool that was declared in this dialect, and for no other.
///
/// The provider compiles all strict schemas of a request into one grammar and refuses the request when that
/// grows too large, which the toolset of an agent makes it do; schemas written for another provider also use
/// words that are not accepted here.
fn write_strict(writer: &mut Writer, tool: &Tool, report: &mut Report) {
    match own(tool.wire.as_ref()) {
        Some(_) => writer.field_bool("strict", true),
        None => note(report, Action::Dropped, tool, "`strict`: the schema is given, but not enforced"),
    }
}

fn write_description(writer: &mut Writer, description: Option<&str>, beside: Option<&str>) {
    match (description, beside) {
        (Some(text), None) | (None, Some(text)) => writer.field_str("description", text),
        (Some(description), Some(beside)) => {
            writer.key("description");
            writer.string_with(|sink| {
                sink.push(description);
                sink.push("\n\n");
                sink.push(beside);
            });
        }
        (None, None) => {}
    }
}

/// A schema that is accepted, and what it could not say.
struct Schema<'s> {
    text: Cow<'s, str>,
    beside: Option<String>,
}

/// Returns the schema, mended where the API would refuse it.
fn sendable_schema<'s>(schema: Option<&'s Text>, tool: &Tool, report: &mut Report) -> Schema<'s> {
    let Some(schema) = schema else { return Schema { text: Cow::Borrowed(EMPTY_SCHEMA), beside: None } };
    let document = Document::parse(schema.as_str()).ok();
    let root = document.as_ref().map(Document::root).filter(|root| root.kind() == Kind::Object);
    let Some(root) = root else {
        note(report, Action::Repaired, tool, "its schema is no object");
        return Schema { text: Cow::Borrowed(EMPTY_SCHEMA), beside: None };
    };
    let mut edits = Vec::new();
    if !root.field("type").is_some_and(|kind| kind.is_str("object")) {
        note(report, Action::Repaired, tool, "its schema must be of type `object`");
        edits.push(Edit::Set { name: "type", value: "\"object\"" });
    }
    let mut beside = None;
    for name in COMBINATORS {
        if let Some(combined) = root.field(name) {
            note(
                report,
                Action::Translated,
                tool,
                format!("`{name}` of its schema is told in its description"),
            );
            beside.get_or_insert_with(|| "The input must also fit this JSON schema:".to_owned());
            beside = beside.map(|beside| format!("{beside} {{{}:{}}}", quote(name), combined.raw()));
            edits.push(Edit::Remove { name });
        }
    }
    let text = match edits.as_slice() {
        [] => Cow::Borrowed(schema.as_str()),
        // The text is an object, as was seen above, so it can be patched.
        edits => patch(schema, edits).map_or(Cow::Borrowed(EMPTY_SCHEMA), Cow::Owned),
    };
    Schema { text, beside }
}

/// Writes `tool_choice`, if there is anything to say and there are tools to choose from.
///
/// While the model thinks, it may not be forced to call anything.
pub(super) fn write_choice(writer: &mut Writer, prompt: &Prompt<'_>, thinks: bool, report: &mut Report) {
    let serial = prompt.ask.settings.parallel_calls == Some(false);
    if prompt.tools.is_empty() {
        if prompt.tool_choice.as_ref().is_some_and(|choice| *choice != ToolChoice::None) {
            report.field(Action::Dropped, "tool_choice", "there are no tools to choose from");
        }
        return;
    }
    let Some((kind, name)) = chosen(prompt, thinks, report).or(serial.then_some(("auto", None))) else {
        return;
    };
    writer.key("tool_choice");
    writer.begin_object();
    writer.field_str("type", kind);
    if let Some(name) = name {
        writer.field_str("name", &name);
    }
    if serial && kind != "none" {
        writer.field_bool("disable_parallel_tool_use", true);
    }
    writer.end_object();
}

fn chosen(prompt: &Prompt<'_>, thinks: bool, report: &mut Report) -> Option<(&'static str, Option<Text>)> {
    let mut say = |action, reason: &str| report.field(action, "tool_choice", reason);
    let (kind, name) = match prompt.tool_choice.as_ref()? {
        ToolChoice::Auto => ("auto", None),
        ToolChoice::None => ("none", None),
        ToolChoice::Required => ("any", None),
        ToolChoice::Named(name) if prompt.tools.iter().any(|tool| tool.name == *name) => {
            ("tool", Some(name.clone()))
        }
        ToolChoice::Named(_) => {
            say(Action::Repaired, "the tool that was chosen is not on offer");
            ("auto", None)
        }
        ToolChoice::Allowed { required, .. } => {
            say(Action::Translated, "which tools are allowed is enforced on the answer instead");
            (if *required { "any" } else { "auto" }, None)
        }
        ToolChoice::Opaque(_) => {
            say(Action::Dropped, "no counterpart in messages");
            return None;
        }
    };
    if thinks && matches!(kind, "any" | "tool") {
        say(Action::Translated, "a model that thinks cannot be forced to call a tool");
        return Some(("auto", None));
    }
    Some((kind, name))
}

/// Says whether the client's `tool_choice` still says what the prompt means.
pub(super) fn choice_is_untouched(prompt: &Prompt<'_>) -> bool {
    let ask: &Ask = prompt.ask;
    prompt.tool_choice == ask.tool_choice && (ask.tools.is_empty() || !prompt.tools.is_empty())
}

fn note(report: &mut Report, action: Action, tool: &Tool, reason: impl Into<Text>) {
    report.note(action, Subject::Tool(tool.name.clone()), reason);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(tools: &str) -> Vec<Tool> {
        decode_tools(Document::parse(format!(r#"{{"tools":{tools}}}"#)).unwrap().root()).unwrap()
    }

    fn function(schema: Option<&str>) -> Tool {
        Tool {
            name: "f".into(),
            namespace: None,
            description: Some("Does f.".into()),
            form: ToolForm::Function { schema: schema.map(Text::from), strict: None },
            wire: None,
            intact: true,
        }
    }

    fn written(tools: &[Tool]) -> (String, Report) {
        let mut writer = Writer::new();
        let mut report = Report::default();
        write_tools(&mut writer, tools, &mut report);
        (writer.into_string(), report)
    }

    #[test]
    fn type_custom_means_an_ordinary_tool() {
        let tools = decoded(
            r#"[{"type":"custom","name":"a","input_schema":{"type": "object"},"defer_loading":true}]"#,
        );
        let schema = Some(r#"{"type": "object"}"#.into());
        assert_eq!(tools[0].form, ToolForm::Function { schema, strict: None });
        assert_eq!(tools[0].wire.as_ref().unwrap().extras.len(), 1);
    }

    #[test]
    fn a_schema_that_is_no_object_is_refused() {
        let body = Document::parse(r#"{"tools":[{"name":"a","input_schema":"auto"}]}"#).unwrap();
        let error = decode_tools(body.root()).unwrap_err();
        assert_eq!(error.to_string(), "tools[0].input_schema: must be an object, not a string (at byte 37)");
    }

    #[test]
    fn a_dated_type_is_the_providers_own() {
        let tools = decoded(r#"[{"type":"bash_20250124","name":"bash"},{"type":"mcp_toolset"}]"#);
        assert_eq!(tools[0].form, ToolForm::Hosted { kind: "bash_20250124".into() });
        assert_eq!(tools[1].name, "mcp_toolset");
        assert_eq!(
            written(&tools).0,
            r#""tools":[{"type":"bash_20250124","name":"bash"},{"type":"mcp_toolset"}]"#
        );
    }

    #[test]
    fn a_tool_without_a_schema_gets_an_empty_one() {
        let (text, report) = written(&[function(None)]);
        let expected = r#""tools":[{"name":"f","description":"Does f.","input_schema":{"type":"object","properties":{}}}]"#;
        assert_eq!(text, expected);
        assert_eq!(report.changes, []);
    }

    #[test]
    fn a_schema_that_would_be_refused_is_mended() {
        for (schema, mended) in [
            ("{}", r#"{"type":"object"}"#),
            ("null", EMPTY_SCHEMA),
            (r#"{"type":["object","null"],"x":1.10}"#, r#"{"type":"object","x":1.10}"#),
        ] {
            let (text, report) = written(&[function(Some(schema))]);
            assert!(text.contains(&format!(r#""input_schema":{mended}"#)), "{text}");
            assert_eq!(report.count(Action::Repaired), 1, "{schema}");
        }
    }

    #[test]
    fn combinators_at_the_top_move_into_the_description() {
        let (text, report) = written(&[function(Some(r#"{"type":"object","oneOf":[{"a":1}]}"#))]);
        assert!(text.contains(r#""input_schema":{"type":"object"}"#), "{text}");
        assert!(text.contains(r#"JSON schema: {\"oneOf\":[{\"a\":1}]}""#), "{text}");
        assert_eq!(report.count(Action::Translated), 1);
    }

    #[test]
    fn a_foreign_schema_is_not_enforced() {
        let form = ToolForm::Function { schema: None, strict: Some(true) };
        let (text, report) = written(&[Tool { form, ..function(None) }]);
        assert!(!text.contains("strict"));
        assert_eq!(report.count(Action::Dropped), 1);
    }

    #[test]
    fn a_free_text_tool_is_declared_with_one_field() {
        let form = ToolForm::Custom { format: Some(r#"{"type":"grammar"}"#.into()) };
        let (text, report) = written(&[Tool { form, ..function(None) }]);
        assert!(text.contains("throughline_input") && text.contains("grammar"), "{text}");
        assert_eq!(report.count(Action::Translated), 1);
    }

    #[test]
    fn the_choice_is_read_with_its_flag() {
        let choice = |text: &str| decode_choice(Document::parse(text).unwrap().root()).unwrap();
        let named = choice(r#"{"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}"#);
        assert_eq!(named, (Some(ToolChoice::Named("f".into())), Some(false)));
        let odd = choice(r#"{"tool_choice":{"type":"oracle"}}"#);
        assert_eq!(odd.0, Some(ToolChoice::Opaque(r#"{"type":"oracle"}"#.into())));
    }
}
