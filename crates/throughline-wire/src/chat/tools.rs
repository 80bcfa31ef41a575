//! Tools and the choice among them, both ways.
//!
//! A tool is a function or a custom tool with an optional grammar; other types are run by the provider. The
//! functions of the time before tools are the inner object alone. A grammar lies in an object of its own here
//! and beside its type in Responses; both forms are read.

use super::extras::{extras_of, filled, given, nested_wire, own, wire_of};
use super::known;
use super::vocabulary::vocabulary;
use crate::input::FREEFORM_SCHEMA;
use crate::json::{DecodeError, Document, Kind, Node, Writer};
use crate::shape;
use throughline_core::{Action, Extra, Prompt, Report, Rules, Subject, Text, Tool, ToolChoice, ToolForm};

const FUNCTION_FIELDS: [&str; 4] = ["name", "description", "parameters", "strict"];

/// Reads the tools on offer, and the functions of the time before tools.
pub(super) fn decode_tools(root: Node<'_>) -> Result<Vec<Tool>, DecodeError> {
    let mut tools = Vec::new();
    if let Some(list) = given(root, "tools") {
        for tool in list.expect_array()?.items() {
            tools.push(decode_tool(tool)?);
        }
    }
    if let Some(list) = given(root, "functions") {
        for function in list.expect_array()?.items() {
            // Its text could not stand among `tools`.
            tools.push(decode_function(function, None)?);
        }
    }
    Ok(tools)
}

fn decode_tool(node: Node<'_>) -> Result<Tool, DecodeError> {
    node.expect_object()?;
    let kind = match given(node, "type") {
        Some(kind) => kind.expect_text()?,
        None => Text::from_static("function"),
    };
    match kind.as_str() {
        "function" => match given(node, "function") {
            Some(function) => {
                let wire = nested_wire(node, &["type", "function"], "function", &FUNCTION_FIELDS);
                decode_function(function, Some(wire))
            }
            // The flat form of Responses, which some clients send here too.
            None => decode_function(
                node,
                Some(throughline_core::Wire { extras: flat_extras(node), ..wire_of(node, &[]) }),
            ),
        },
        "custom" => decode_custom(node),
        _ => Ok(Tool {
            name: filled(node, "name").unwrap_or_else(|| kind.clone()),
            namespace: None,
            description: None,
            form: ToolForm::Hosted { kind },
            wire: Some(wire_of(node, &[])),
            intact: true,
        }),
    }
}

fn flat_extras(node: Node<'_>) -> Vec<Extra> {
    extras_of(node, &["type", "name", "description", "parameters", "strict"])
}

fn decode_function(node: Node<'_>, wire: Option<throughline_core::Wire>) -> Result<Tool, DecodeError> {
    let schema = given(node, "parameters");
    if let Some(schema) = schema {
        schema.expect_object()?;
    }
    Ok(Tool {
        name: node.expect_field("name")?.expect_text()?,
        namespace: None,
        description: given(node, "description").map(|text| text.expect_text()).transpose()?,
        form: ToolForm::Function {
            schema: schema.map(|schema| schema.raw_text()),
            strict: given(node, "strict").map(|strict| strict.expect_bool()).transpose()?,
        },
        wire,
        intact: true,
    })
}

fn decode_custom(node: Node<'_>) -> Result<Tool, DecodeError> {
    let custom = node.expect_field("custom")?;
    let format = given(custom, "format").map(|format| format.expect_object()).transpose()?;
    Ok(Tool {
        name: custom.expect_field("name")?.expect_text()?,
        namespace: None,
        description: given(custom, "description").map(|text| text.expect_text()).transpose()?,
        form: ToolForm::Custom { format: format.map(|format| format.raw_text()) },
        wire: Some(nested_wire(node, &["type", "custom"], "custom", &["name", "description", "format"])),
        intact: true,
    })
}

/// Reads `tool_choice`, or `function_call` of the time before tools.
pub(super) fn decode_choice(root: Node<'_>) -> Result<Option<ToolChoice>, DecodeError> {
    let Some(choice) = given(root, "tool_choice").or_else(|| given(root, "function_call")) else {
        return Ok(None);
    };
    let opaque = || ToolChoice::Opaque(choice.raw_text());
    Ok(Some(match choice.kind() {
        Kind::String => match &*choice.expect_str()? {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            // Mistral's older word for it.
            "required" | "any" => ToolChoice::Required,
            other => {
                let words = "must be `auto`, `none`, `required` or an object";
                return Err(choice.error(format!("{words}, not `{other}`")));
            }
        },
        Kind::Object => match given(choice, "type").map(|kind| kind.expect_str()).transpose()?.as_deref() {
            Some("allowed_tools") => decode_allowed(choice)?.unwrap_or_else(opaque),
            Some("function" | "custom" | "") | None => ToolChoice::Named(decode_reference(choice)?),
            Some(_) => opaque(),
        },
        kind => return Err(choice.error(format!("must be a string or an object, not {kind}"))),
    }))
}

/// Reads a choice among some of the tools; one that names tools of other types is not understood.
fn decode_allowed(choice: Node<'_>) -> Result<Option<ToolChoice>, DecodeError> {
    let allowed = given(choice, "allowed_tools").unwrap_or(choice);
    let tools = allowed.expect_field("tools")?.expect_array()?;
    let names: Option<Vec<Text>> = tools.items().map(choice_name).collect();
    shape::check(allowed, known::ALLOWED_TOOLS)?;
    let required = filled(allowed, "mode").is_some_and(|mode| mode == "required");
    Ok(names.map(|names| ToolChoice::Allowed { names, required }))
}

/// Reads the name in a reference to one tool; without a name it is a reference to nothing.
fn decode_reference(node: Node<'_>) -> Result<Text, DecodeError> {
    let inner = ["function", "custom"].iter().find_map(|kind| given(node, kind));
    let holder = inner.unwrap_or(node);
    if inner.is_none() && given(node, "name").is_none() {
        let kind = given(node, "type").and_then(|kind| kind.as_str()).filter(|kind| !kind.is_empty());
        return Err(shape::missing(node, kind.as_deref().unwrap_or("type")));
    }
    holder.expect_field("name")?.expect_text()
}

/// Returns the name in a reference to a tool: inside the object of its type, or flat.
fn choice_name(node: Node<'_>) -> Option<Text> {
    let inner = ["function", "custom"].iter().find_map(|kind| given(node, kind));
    filled(inner.unwrap_or(node), "name")
}

/// Says whether the tools can be declared in the client's own words.
pub(super) fn are_as_given(prompt: &Prompt<'_>) -> bool {
    let is_closed = vocabulary(prompt.rules).closed.is_some();
    let suits = |tool: &Tool| {
        let is_of_old = tool.wire.is_none();
        tool.intact && (prompt.rules.custom_tools || !is_custom(tool)) && !(is_of_old && is_closed)
    };
    prompt.tools.len() == prompt.ask.tools.len() && prompt.tools.iter().all(suits)
}

const fn is_custom(tool: &Tool) -> bool {
    matches!(tool.form, ToolForm::Custom { .. })
}

/// Writes the field `tools`, if there are any.
pub(super) fn write_tools(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let is_writable = |tool: &Tool| !tool.is_hosted() || own(tool.wire.as_ref()).is_some();
    if !prompt.tools.iter().any(is_writable) {
        return;
    }
    writer.key("tools");
    writer.begin_array();
    for tool in &prompt.tools {
        if is_writable(tool) {
            write_tool(writer, tool, prompt.rules, report);
        } else {
            let subject = Subject::Tool(tool.name.clone());
            report.note(Action::Dropped, subject, "it is run by its provider, and the target is another");
        }
    }
    writer.end_array();
}

fn write_tool(writer: &mut Writer, tool: &Tool, rules: &Rules, report: &mut Report) {
    let wire = own(tool.wire.as_ref());
    let suits = rules.custom_tools || !is_custom(tool);
    if let Some(wire) = wire.filter(|_| suits && (tool.intact || tool.is_hosted())) {
        return writer.raw(&wire.text);
    }
    let extras: &[Extra] = wire.map_or(&[], |wire| &wire.extras);
    let kind = if is_custom(tool) && rules.custom_tools { "custom" } else { "function" };
    writer.begin_object();
    writer.field_str("type", kind);
    writer.key(kind);
    writer.begin_object();
    writer.field_str("name", &tool.name);
    write_form(writer, tool, rules, report);
    for extra in extras {
        if let Some(name) = extra.name.strip_prefix(kind).and_then(|name| name.strip_prefix('.')) {
            writer.field_raw(name, &extra.value);
        }
    }
    writer.end_object();
    for extra in extras.iter().filter(|extra| !extra.name.contains('.')) {
        writer.field_raw(&extra.name, &extra.value);
    }
    writer.end_object();
}

fn write_form(writer: &mut Writer, tool: &Tool, rules: &Rules, report: &mut Report) {
    match &tool.form {
        ToolForm::Custom { format } if !rules.custom_tools => {
            let note = format.as_ref().and_then(grammar_note).unwrap_or_default();
            let description = tool.description.as_ref().map_or("", Text::as_str);
            writer.field_str("description", format!("{description}{note}").trim_start());
            writer.field_raw("parameters", FREEFORM_SCHEMA);
            let subject = Subject::Tool(tool.name.clone());
            report.note(Action::Translated, subject, "a custom tool is declared as a function");
        }
        form => {
            if let Some(description) = &tool.description {
                writer.field_str("description", description);
            }
            write_input(writer, form);
        }
    }
}

fn write_input(writer: &mut Writer, form: &ToolForm) {
    match form {
        ToolForm::Function { schema, strict } => {
            if let Some(schema) = schema {
                writer.field_raw("parameters", schema);
            }
            if let Some(strict) = strict {
                writer.field_bool("strict", *strict);
            }
        }
        ToolForm::Custom { format: Some(format) } => write_format(writer, format),
        ToolForm::Custom { format: None } | ToolForm::Hosted { .. } => {}
    }
}

/// Writes a format with its grammar in an object of its own, wherever it lay before.
fn write_format(writer: &mut Writer, format: &Text) {
    let flat = Document::parse(format.as_str()).ok().filter(|document| {
        document.root().field("definition").is_some() && document.root().field("grammar").is_none()
    });
    let Some(document) = flat else { return writer.field_raw("format", format) };
    writer.key("format");
    writer.begin_object();
    writer.field_str("type", "grammar");
    writer.key("grammar");
    writer.begin_object();
    for (name, value) in document.root().fields().filter(|(name, _)| name != "type") {
        writer.field_raw(&name, value.raw());
    }
    writer.end_object();
    writer.end_object();
}

/// Returns the sentence that tells of a grammar where no field can.
fn grammar_note(format: &Text) -> Option<String> {
    let document = Document::parse(format.as_str()).ok()?;
    let grammar = document.root().field("grammar").unwrap_or_else(|| document.root());
    let syntax = filled(grammar, "syntax").unwrap_or_else(|| Text::from_static("given"));
    let definition = filled(grammar, "definition")?;
    Some(format!("\n\nThe input must follow this {syntax} grammar:\n{definition}"))
}

/// Writes the field `tool_choice`, if there is a choice and something to choose from.
pub(super) fn write_choice(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let Some(choice) = prompt.tool_choice.as_ref().filter(|_| !prompt.tools.is_empty()) else { return };
    match choice {
        ToolChoice::Auto => writer.field_str("tool_choice", "auto"),
        ToolChoice::None => writer.field_str("tool_choice", "none"),
        ToolChoice::Required => writer.field_str("tool_choice", "required"),
        ToolChoice::Named(name) => {
            writer.key("tool_choice");
            write_reference(writer, name, prompt);
        }
        ToolChoice::Allowed { names, required } if prompt.rules.selects_tools => {
            write_allowed(writer, names, *required, prompt);
        }
        ToolChoice::Allowed { required, .. } => {
            writer.field_str("tool_choice", if *required { "required" } else { "auto" });
            let reason = "the target has no choice among some tools; enforced on the answer instead";
            report.field(Action::Translated, "tool_choice", reason);
        }
        ToolChoice::Opaque(text) if prompt.stays_in_dialect() => writer.field_raw("tool_choice", text),
        ToolChoice::Opaque(_) => report.field(Action::Dropped, "tool_choice", "chat has no such form"),
    }
}

fn write_allowed(writer: &mut Writer, names: &[Text], required: bool, prompt: &Prompt<'_>) {
    writer.key("tool_choice");
    writer.begin_object();
    writer.field_str("type", "allowed_tools");
    writer.key("allowed_tools");
    writer.begin_object();
    writer.field_str("mode", if required { "required" } else { "auto" });
    writer.key("tools");
    writer.begin_array();
    names.iter().for_each(|name| write_reference(writer, name, prompt));
    writer.end_array();
    writer.end_object();
    writer.end_object();
}

fn write_reference(writer: &mut Writer, name: &Text, prompt: &Prompt<'_>) {
    let named = |tool: &&Tool| &tool.name == name;
    let is_custom = prompt.rules.custom_tools && prompt.tools.iter().find(named).is_some_and(is_custom);
    let kind = if is_custom { "custom" } else { "function" };
    writer.begin_object();
    writer.field_str("type", kind);
    writer.key(kind);
    writer.begin_object();
    writer.field_str("name", name);
    writer.end_object();
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(body: &str) -> Vec<Tool> {
        decode_tools(Document::parse(body).unwrap().root()).unwrap()
    }

    fn choice(body: &str) -> Option<ToolChoice> {
        decode_choice(Document::parse(body).unwrap().root()).unwrap()
    }

    #[test]
    fn a_function_keeps_the_text_of_its_schema() {
        let body = r#"{"tools":[{"type":"function","function":{"name":"f","parameters":{ "b":1.10, "a":{} },"strict":null}}]}"#;
        let schema = Some(Text::from(r#"{ "b":1.10, "a":{} }"#));
        assert_eq!(tools(body)[0].form, ToolForm::Function { schema, strict: None });
    }

    #[test]
    fn a_choice_of_a_wrong_type_is_refused_by_its_path() {
        for (choice, path) in [
            ("7", "tool_choice"),
            (r#"{"type":7}"#, "tool_choice.type"),
            (r#"{"type":"function","function":7}"#, "tool_choice.function"),
            (r#"{"type":"function","function":{"name":7}}"#, "tool_choice.function.name"),
            (r#"{"type":"function","name":[]}"#, "tool_choice.name"),
        ] {
            let document = Document::parse(format!(r#"{{"tool_choice":{choice}}}"#)).unwrap();
            assert_eq!(decode_choice(document.root()).unwrap_err().path, path);
        }
    }

    #[test]
    fn the_flat_form_and_the_functions_of_old_are_tools_too() {
        let body = r#"{"tools":[{"type":"function","name":"f","parameters":{}},{"type":"acme","index":"kb"}],
            "functions":[{"name":"g","description":"G."}]}"#;
        let tools = tools(body);
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["f", "acme", "g"]);
        assert!(tools[1].is_hosted());
        assert_eq!((tools[2].description.as_deref(), tools[2].wire.as_ref()), (Some("G."), None));
    }

    #[test]
    fn choices_are_read_in_all_their_forms() {
        assert_eq!(choice(r#"{"tool_choice":"any"}"#), Some(ToolChoice::Required));
        assert_eq!(choice(r#"{"function_call":{"name":"f"}}"#), Some(ToolChoice::Named("f".into())));
        let custom = choice(r#"{"tool_choice":{"type":"custom","custom":{"name":"sql"}}}"#);
        assert_eq!(custom, Some(ToolChoice::Named("sql".into())));
        let allowed = choice(
            r#"{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}}"#,
        );
        assert_eq!(allowed, Some(ToolChoice::Allowed { names: vec!["f".into()], required: true }));
        assert!(matches!(choice(r#"{"tool_choice":{"type":"acme"}}"#), Some(ToolChoice::Opaque(_))));
        assert_eq!(choice(r#"{"tool_choice":null}"#), None);
    }

    #[test]
    fn a_flat_grammar_gets_an_object_of_its_own() {
        let mut writer = Writer::new();
        writer.begin_object();
        write_format(&mut writer, &Text::from(r#"{"type":"grammar","syntax":"lark","definition":"s: x"}"#));
        writer.end_object();
        assert_eq!(
            writer.into_string(),
            r#"{"format":{"type":"grammar","grammar":{"syntax":"lark","definition":"s: x"}}}"#
        );
    }
}
