//! The HTTP interface as an OpenAPI document, written from tables.
//!
//! What is ours is described whole. Of the three dialects the paths are named: their bodies are described by
//! those who made them, and a copy here would be out of date.

mod operations;
mod schemas;

use axum::response::{IntoResponse, Response};
use http::header;
use operations::{OPERATIONS, Operation, Parameter};
use schemas::{Field, Of, SCHEMAS};
use throughline_wire::json::Writer;

/// Answers with the document.
pub async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document()).into_response()
}

/// Returns the document.
#[must_use]
pub fn document() -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("openapi", "3.1.0");
    writer.key("info");
    writer.begin_object();
    writer.field_str("title", "Throughline");
    writer.field_str("version", env!("CARGO_PKG_VERSION"));
    writer.field_str("description", "The gateway that owns the tool history of LLM agents.");
    writer.end_object();
    write_paths(&mut writer);
    writer.key("components");
    writer.begin_object();
    write_schemas(&mut writer);
    write_keys(&mut writer);
    writer.end_object();
    writer.key("security");
    // Without keys in the configuration none is asked for.
    writer.raw("[{}, {\"bearer\": []}, {\"key\": []}]");
    writer.end_object();
    writer.into_string()
}

fn write_paths(writer: &mut Writer) {
    writer.key("paths");
    writer.begin_object();
    for same in OPERATIONS.chunk_by(|one, other| one.path == other.path) {
        writer.key(same[0].path);
        writer.begin_object();
        same.iter().for_each(|operation| write_operation(writer, operation));
        writer.end_object();
    }
    writer.end_object();
}

fn write_operation(writer: &mut Writer, operation: &Operation) {
    writer.key(operation.method);
    writer.begin_object();
    writer.field_str("summary", operation.summary);
    writer.key("tags");
    writer.begin_array();
    writer.string(operation.tag);
    writer.end_array();
    writer.key("parameters");
    writer.begin_array();
    for name in operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        write_parameter(writer, "path", name, "");
    }
    for Parameter { name, meaning } in operation.parameters {
        write_parameter(writer, "query", name, meaning);
    }
    writer.end_array();
    if let Some(body) = operation.body {
        writer.key("requestBody");
        writer.begin_object();
        write_content(writer, "application/json", body);
        writer.end_object();
    }
    writer.key("responses");
    writer.begin_object();
    writer.key("200");
    writer.begin_object();
    writer.field_str("description", operation.summary);
    write_content(writer, operation.content_type, operation.answer);
    writer.end_object();
    writer.key("default");
    writer.begin_object();
    writer.field_str("description", "what went wrong, in the envelope of the client's dialect");
    write_content(writer, "application/json", Of::Schema("Failure"));
    writer.end_object();
    writer.end_object();
    writer.end_object();
}

/// Returns the names of what may stand behind the `?` at a path.
pub fn parameters(method: &str, path: &str) -> Vec<&'static str> {
    // Whoever asks for the head alone asks for the same.
    let method = if method == "HEAD" { "GET" } else { method };
    let fits = |template: &str| {
        let is_same = |(known, given): (&str, &str)| known.starts_with('{') || known == given;
        template.split('/').count() == path.split('/').count()
            && template.split('/').zip(path.split('/')).all(is_same)
    };
    let is_it =
        |operation: &&Operation| fits(operation.path) && operation.method.eq_ignore_ascii_case(method);
    let operation = OPERATIONS.iter().find(is_it);
    operation.map(|operation| operation.parameters.iter().map(|each| each.name).collect()).unwrap_or_default()
}

fn write_parameter(writer: &mut Writer, place: &str, name: &str, meaning: &str) {
    writer.begin_object();
    writer.field_str("name", name);
    writer.field_str("in", place);
    writer.field_bool("required", place == "path");
    if !meaning.is_empty() {
        writer.field_str("description", meaning);
    }
    writer.key("schema");
    write_type(writer, Of::Text);
    writer.end_object();
}

fn write_content(writer: &mut Writer, content_type: &str, of: Of) {
    writer.key("content");
    writer.begin_object();
    writer.key(content_type);
    writer.begin_object();
    writer.key("schema");
    write_type(writer, of);
    writer.end_object();
    writer.end_object();
}

fn write_schemas(writer: &mut Writer) {
    writer.key("schemas");
    writer.begin_object();
    for (name, fields) in SCHEMAS {
        writer.key(name);
        writer.begin_object();
        writer.field_str("type", "object");
        writer.key("properties");
        writer.begin_object();
        for Field { name, of, meaning } in *fields {
            writer.key(name);
            writer.begin_object();
            write_type_inside(writer, *of);
            if !meaning.is_empty() {
                writer.field_str("description", meaning);
            }
            writer.end_object();
        }
        writer.end_object();
        writer.end_object();
    }
    writer.end_object();
}

fn write_keys(writer: &mut Writer) {
    writer.key("securitySchemes");
    writer.raw(
        "{\"bearer\": {\"type\": \"http\", \"scheme\": \"bearer\"}, \
         \"key\": {\"type\": \"apiKey\", \"in\": \"header\", \"name\": \"x-api-key\"}}",
    );
}

fn write_type(writer: &mut Writer, of: Of) {
    writer.begin_object();
    write_type_inside(writer, of);
    writer.end_object();
}

fn write_type_inside(writer: &mut Writer, of: Of) {
    match of {
        Of::Text => writer.field_str("type", "string"),
        Of::Number => writer.field_str("type", "integer"),
        Of::Dollars => writer.field_raw("type", "[\"number\", \"null\"]"),
        Of::Flag => writer.field_str("type", "boolean"),
        Of::Anything => {}
        Of::Schema(name) => writer.field_str("$ref", &format!("#/components/schemas/{name}")),
        Of::Maybe => writer.field_raw("type", "[\"string\", \"null\"]"),
        Of::Texts => {
            writer.field_str("type", "array");
            writer.key("items");
            write_type(writer, Of::Text);
        }
        Of::List(name) => {
            writer.field_str("type", "array");
            writer.key("items");
            write_type(writer, Of::Schema(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The routes, as the sources state them.
    fn stated() -> BTreeSet<&'static str> {
        let sources = [include_str!("../mod.rs"), include_str!("../api.rs"), include_str!("../inspector.rs")];
        let after = |source: &'static str| source.split(".route(").skip(1);
        sources.into_iter().flat_map(after).filter_map(|rest| rest.split('"').nth(1)).collect()
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let described: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
        // The page is for eyes.
        let page: BTreeSet<&str> = ["/", "/inspector/{*path}"].into();
        let stated: BTreeSet<&str> = stated().difference(&page).copied().collect();
        assert_eq!(described, stated);
    }

    #[test]
    fn the_document_is_json_and_every_schema_that_it_names_is_there() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        let named = text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap());
        named.for_each(|name| assert!(schemas.contains_key(name), "{name}"));
        assert_eq!(document["paths"].as_object().unwrap().len(), {
            let paths: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
            paths.len()
        });
    }

    /// Holds the copy in the documentation to what the gateway answers with.
    #[test]
    fn the_copy_in_the_documentation_is_the_document() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let pretty = serde_json::from_str::<serde_json::Value>(&document()).unwrap();
        let pretty = format!("{pretty:#}\n");
        if std::env::var("THROUGHLINE_OPENAPI").is_ok() {
            std::fs::write(path, &pretty).unwrap();
        }
        let copy = std::fs::read_to_string(path).unwrap_or_default();
        assert!(copy == pretty, "run this with THROUGHLINE_OPENAPI=1 to write docs/openapi.json anew");
    }
}
