//! Tool declarations and `tool_choice`, both ways.
//!
//! A `namespace` groups tools under one name. Canonically each tool stands for itself and knows its
//! namespace; written again, neighbours of one namespace are grouped. Functions are flat here, and `strict`
//! is on unless it is turned off, which is the opposite of the other dialects.

use super::{fields, known};
use crate::input::FREEFORM_SCHEMA;
use crate::json::{DecodeError, Document, Kind, Node, Writer};
use crate::shape;
use throughline_core::{Action, Dialect, Prompt, Report, Subject, Text, Tool, ToolChoice, ToolForm};

const FUNCTION: &[&str] = &["type", "name", "description", "parameters", "strict"];
const CUSTOM: &[&str] = &["type", "name", "description", "format"];

/// The schema of a function that takes nothing; the dialect requires one.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// Reads the field `tools` of a request, or of an item that declares tools.
pub(super) fn decode_tools(holder: Node<'_>) -> Result<Vec<Tool>, DecodeError> {
    let mut tools = Vec::new();
    for node in fields::items(holder, "tools")? {
        decode_tool(node, None, &mut tools)?;
    }
    Ok(tools)
}

fn decode_tool(node: Node<'_>, namespace: Option<&Text>, tools: &mut Vec<Tool>) -> Result<(), DecodeError> {
    node.expect_object()?;
    let tag = match fields::text(node, "type")? {
        Some(tag) => tag,
        None if fields::given(node, "name").is_some() => Text::from_static("function"),
        None => node.expect_field("type")?.expect_text()?,
    };
    if tag == "namespace" && fields::items(node, "tools")?.next().is_some() {
        let name = node.expect_field("name")?.expect_text()?;
        return fields::items(node, "tools")?.try_for_each(|inner| decode_tool(inner, Some(&name), tools));
    }
    let (form, wire) = match tag.as_str() {
        "function" => (decode_function(node)?, fields::wire(node, FUNCTION)),
        "custom" => {
            let format = fields::given(node, "format").map(|format| format.expect_object()).transpose()?;
            let format = format.map(|format| format.raw_text());
            (ToolForm::Custom { format }, fields::wire(node, CUSTOM))
        }
        _ => (ToolForm::Hosted { kind: tag.clone() }, fields::whole(node)),
    };
    let name = match &form {
        ToolForm::Hosted { .. } => fields::lenient_text(node, "name").unwrap_or(tag),
        _ => node.expect_field("name")?.expect_text()?,
    };
    let description = match &form {
        ToolForm::Hosted { .. } => fields::lenient_text(node, "description"),
        _ => fields::text(node, "description")?,
    };
    tools.push(Tool {
        name,
        namespace: namespace.cloned(),
        description,
        form,
        wire: Some(wire),
        intact: true,
    });
    Ok(())
}

fn decode_function(node: Node<'_>) -> Result<ToolForm, DecodeError> {
    let schema = match fields::given(node, "parameters") {
        Some(schema) => Some(schema.expect_object()?.raw_text()),
        None => None,
    };
    Ok(ToolForm::Function { schema, strict: fields::flag(node, "strict")? })
}

/// Reads the field `tool_choice`.
pub(super) fn decode_choice(root: Node<'_>) -> Result<Option<ToolChoice>, DecodeError> {
    let Some(node) = fields::given(root, "tool_choice") else { return Ok(None) };
    let opaque = || ToolChoice::Opaque(node.raw_text());
    if let Some(word) = node.as_str() {
        return Ok(Some(match &*word {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            other => {
                let words = "must be `auto`, `none`, `required` or an object";
                return Err(node.error(format!("{words}, not `{other}`")));
            }
        }));
    }
    node.expect_object().map_err(|_| node.error("must be a string or an object"))?;
    let name = fields::text(node, "name")?;
    Ok(Some(match (fields::text(node, "type")?.as_deref(), name) {
        (None | Some("function" | "custom"), Some(name)) => ToolChoice::Named(name),
        (None, None) => return Err(shape::missing(node, "type")),
        (Some("function" | "custom"), None) => return Err(shape::missing(node, "name")),
        (Some("allowed_tools"), _) => decode_allowed(node)?.unwrap_or_else(opaque),
        _ => opaque(),
    }))
}

/// Reads an allow-list, unless it allows something that has no name (a hosted tool).
fn decode_allowed(node: Node<'_>) -> Result<Option<ToolChoice>, DecodeError> {
    let names: Option<Vec<Text>> =
        fields::items(node, "tools")?.map(|tool| fields::lenient_text(tool, "name")).collect();
    shape::check(node, known::ALLOWED_TOOLS)?;
    let required = fields::text(node, "mode")?.is_some_and(|mode| mode == "required");
    Ok(names.map(|names| ToolChoice::Allowed { names, required }))
}

/// Says whether the field `tools` can go out as it came.
pub(super) fn are_untouched(prompt: &Prompt<'_>) -> bool {
    let same = |(now, before): (&Tool, &Tool)| {
        now.intact
            && now.name == before.name
            && now.namespace == before.namespace
            && (prompt.rules.custom_tools || !matches!(now.form, ToolForm::Custom { .. }))
    };
    prompt.stays_in_dialect()
        && prompt.tools.len() == prompt.ask.tools.len()
        && prompt.tools.iter().zip(&prompt.ask.tools).all(same)
}

/// Writes the list of tools; `skip` says which are declared elsewhere in the request.
pub(super) fn write_tools(
    writer: &mut Writer,
    prompt: &Prompt<'_>,
    skip: impl Fn(&Tool) -> bool,
    report: &mut Report,
) {
    writer.begin_array();
    for group in prompt.tools.chunk_by(|a, b| a.namespace.is_some() && a.namespace == b.namespace) {
        let mut tools = group.iter().filter(|tool| !skip(tool)).peekable();
        let Some(first) = tools.peek() else { continue };
        if let Some(namespace) = &first.namespace {
            writer.begin_object();
            writer.field_str("type", "namespace");
            writer.field_str("name", namespace);
            let description = namespace_description(prompt, namespace);
            writer.field_str("description", description.as_deref().unwrap_or_default());
            writer.key("tools");
            writer.begin_array();
            tools.for_each(|tool| write_tool(writer, tool, prompt.rules.custom_tools, report));
            writer.end_array();
            writer.end_object();
        } else {
            tools.for_each(|tool| write_tool(writer, tool, prompt.rules.custom_tools, report));
        }
    }
    writer.end_array();
}

/// Looks up what the client said about a namespace; no tool remembers it.
fn namespace_description(prompt: &Prompt<'_>, namespace: &Text) -> Option<Text> {
    let declared = prompt.ask.fields.iter().find(|field| field.name == "tools")?;
    let document = Document::parse(declared.value.as_str()).ok()?;
    let is_it = |tool: &Node<'_>| {
        tool.field("type").is_some_and(|tag| tag.is_str("namespace"))
            && tool.field("name").is_some_and(|name| name.is_str(namespace))
    };
    document.root().items().find(is_it).and_then(|tool| fields::lenient_text(tool, "description"))
}

fn write_tool(writer: &mut Writer, tool: &Tool, custom_tools: bool, report: &mut Report) {
    let own = tool.wire.as_ref().filter(|wire| wire.dialect == Dialect::Responses);
    let sendable = custom_tools || !matches!(tool.form, ToolForm::Custom { .. });
    match (own, &tool.form) {
        (Some(wire), _) if tool.intact && sendable => return writer.raw(&wire.text),
        (Some(wire), ToolForm::Hosted { .. }) => return writer.raw(&wire.text),
        (None, ToolForm::Hosted { kind }) => {
            let reason = format!("only its own provider runs a `{kind}` tool");
            return report.note(Action::Dropped, Subject::Tool(tool.name.clone()), reason);
        }
        _ => {}
    }
    writer.begin_object();
    match &tool.form {
        ToolForm::Custom { format } if custom_tools => {
            write_name(writer, "custom", tool);
            if let Some(format) = format {
                writer.field_raw("format", &flat_format(format));
            }
        }
        ToolForm::Custom { format } => {
            report.note(
                Action::Translated,
                Subject::Tool(tool.name.clone()),
                "the backend has no custom tools: declared as a function of one text",
            );
            write_stand_in(writer, tool, format.as_deref());
        }
        ToolForm::Function { schema, strict } => {
            write_name(writer, "function", tool);
            writer.field_raw("parameters", schema.as_deref().unwrap_or(NO_PARAMETERS));
            // Left out, it would mean true here, and schemas that were never meant to be strict are refused.
            writer.field_bool("strict", strict.unwrap_or(false));
        }
        ToolForm::Hosted { .. } => {}
    }
    for extra in own.iter().flat_map(|wire| &wire.extras) {
        writer.field_raw(&extra.name, &extra.value);
    }
    writer.end_object();
}

fn write_name(writer: &mut Writer, tag: &str, tool: &Tool) {
    writer.field_str("type", tag);
    writer.field_str("name", &tool.name);
    if let Some(description) = &tool.description {
        writer.field_str("description", description);
    }
}

/// Writes the function that stands in for a custom tool.
fn write_stand_in(writer: &mut Writer, tool: &Tool, format: Option<&str>) {
    writer.field_str("type", "function");
    writer.field_str("name", &tool.name);
    writer.key("description");
    writer.string_with(|sink| {
        sink.push(tool.description.as_deref().unwrap_or_default());
        if let Some(format) = format {
            sink.push("\n\nThe input must follow this format: ");
            sink.push(format);
        }
    });
    writer.field_raw("parameters", FREEFORM_SCHEMA);
    writer.field_bool("strict", false);
}

/// Returns a custom tool's format in this dialect, where a grammar is not nested in an object of its own.
fn flat_format(format: &str) -> String {
    let nested = || {
        let document = Document::parse(format).ok()?;
        let grammar = document.root().field("grammar").filter(|grammar| grammar.kind() == Kind::Object)?;
        let mut writer = Writer::with_capacity(format.len());
        writer.begin_object();
        writer.field_str("type", "grammar");
        for (name, value) in grammar.fields() {
            writer.field_raw(&name, value.raw());
        }
        writer.end_object();
        Some(writer.into_string())
    };
    nested().unwrap_or_else(|| format.to_owned())
}

/// Writes the value of `tool_choice` in canonical words, with its key; nothing if it cannot be said.
pub(super) fn write_choice(
    writer: &mut Writer,
    choice: &ToolChoice,
    prompt: &Prompt<'_>,
    report: &mut Report,
) {
    match choice {
        ToolChoice::Auto => writer.field_str("tool_choice", "auto"),
        ToolChoice::None => writer.field_str("tool_choice", "none"),
        ToolChoice::Required => writer.field_str("tool_choice", "required"),
        ToolChoice::Named(name) => {
            writer.key("tool_choice");
            write_chosen(writer, name, prompt);
        }
        ToolChoice::Allowed { names, required } => {
            writer.key("tool_choice");
            writer.begin_object();
            writer.field_str("type", "allowed_tools");
            writer.field_str("mode", if *required { "required" } else { "auto" });
            writer.key("tools");
            writer.begin_array();
            names.iter().for_each(|name| write_chosen(writer, name, prompt));
            writer.end_array();
            writer.end_object();
        }
        ToolChoice::Opaque(text) if prompt.stays_in_dialect() => writer.field_raw("tool_choice", text),
        ToolChoice::Opaque(_) => {
            report.field(Action::Dropped, "tool_choice", "only its own dialect understands this choice");
        }
    }
}

fn write_chosen(writer: &mut Writer, name: &Text, prompt: &Prompt<'_>) {
    let tool = prompt.tools.iter().find(|tool| tool.name == *name);
    writer.begin_object();
    match tool.map(|tool| &tool.form) {
        Some(ToolForm::Hosted { kind }) => writer.field_str("type", kind),
        Some(ToolForm::Custom { .. }) if prompt.rules.custom_tools => {
            writer.field_str("type", "custom");
            writer.field_str("name", name);
        }
        _ => {
            writer.field_str("type", "function");
            writer.field_str("name", name);
        }
    }
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(json: &str) -> Vec<Tool> {
        decode_tools(Document::parse(json).unwrap().root()).unwrap()
    }

    fn choice(json: &str) -> Option<ToolChoice> {
        decode_choice(Document::parse(json).unwrap().root()).unwrap()
    }

    #[test]
    fn a_namespace_is_taken_apart_and_each_tool_knows_it() {
        let tools = decode(
            r#"{"tools":[{"type":"namespace","name":"n","description":"d","tools":[
                {"type":"function","name":"a","parameters":{}},{"type":"custom","name":"b"}]},
                {"type":"function","name":"a"}]}"#,
        );
        let names: Vec<_> =
            tools.iter().map(|tool| (tool.namespace.as_deref(), tool.name.as_str())).collect();
        assert_eq!(names, [(Some("n"), "a"), (Some("n"), "b"), (None, "a")]);
        assert!(matches!(tools[1].form, ToolForm::Custom { format: None }));
        assert_eq!(tools[0].wire.as_ref().unwrap().text, r#"{"type":"function","name":"a","parameters":{}}"#);
    }

    #[test]
    fn unknown_tools_are_kept_as_hosted() {
        let tools = decode(r#"{"tools":[{"type":"acme:lookup","index":"kb"},{"type":"mcp","name":"m"}]}"#);
        assert_eq!((tools[0].name.as_str(), tools[1].name.as_str()), ("acme:lookup", "m"));
        assert!(tools.iter().all(Tool::is_hosted));
    }

    #[test]
    fn an_allow_list_without_a_mode_means_auto() {
        let json = r#"{"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"a"}]}}"#;
        assert_eq!(choice(json), Some(ToolChoice::Allowed { names: vec!["a".into()], required: false }));
    }

    #[test]
    fn choices_of_hosted_tools_are_kept_as_they_came() {
        assert!(matches!(choice(r#"{"tool_choice":{"type":"file_search"}}"#), Some(ToolChoice::Opaque(_))));
        let mixed = r#"{"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp","server_label":"x"}]}}"#;
        assert!(matches!(choice(mixed), Some(ToolChoice::Opaque(_))));
        assert_eq!(
            choice(r#"{"tool_choice":{"type":"custom","name":"c"}}"#),
            Some(ToolChoice::Named("c".into()))
        );
        assert_eq!(choice(r#"{"tool_choice":null}"#), None);
    }

    #[test]
    fn a_nested_grammar_is_flattened() {
        let nested = r#"{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}"#;
        assert_eq!(flat_format(nested), r#"{"type":"grammar","syntax":"lark","definition":"x"}"#);
        assert_eq!(flat_format(r#"{"type":"text"}"#), r#"{"type":"text"}"#);
    }
}
