//! Schemas, messages, and what a tool would be given.

use super::*;

#[track_caller]
fn check(schema: &Value, message: &str, expected: &Value) {
    assert_eq!(arguments(schema, Finds::of(message)), *expected, "{message}");
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

#[test]
fn paths_commands_and_numbers_are_taken_from_the_message() {
    let read = object(
        &json!({ "path": { "type": "string" }, "limit": { "type": "integer" }, "offset": { "type": "integer" } }),
        &["path"],
    );
    check(&read, "Read src/main.rs", &json!({ "path": "src/main.rs" }));
    check(&read, "Read src/main.rs with limit 20", &json!({ "path": "src/main.rs", "limit": 20 }));
    let run = object(&json!({ "command": { "type": "string" } }), &["command"]);
    check(&run, "Run `ls -l`", &json!({ "command": "ls -l" }));
    check(&run, "What's up?", &json!({ "command": "echo 'What'\\''s up?'" }));
    let add = object(&json!({ "a": { "type": "number" }, "b": { "type": "number" } }), &["a", "b"]);
    check(&add, "Add 2 and 3.5", &json!({ "a": 2, "b": 3.5 }));
}

#[test]
fn a_command_that_is_a_list_is_given_to_a_shell() {
    let shell =
        object(&json!({ "command": { "type": "array", "items": { "type": "string" } } }), &["command"]);
    check(&shell, "Run `make all`", &json!({ "command": ["bash", "-lc", "make all"] }));
}

#[test]
fn lists_take_all_there_are() {
    let read = object(&json!({ "paths": { "type": "array", "items": { "type": "string" } } }), &["paths"]);
    check(&read, "Read a.txt and b.txt", &json!({ "paths": ["a.txt", "b.txt"] }));
}

#[test]
fn enumerations_constants_and_defaults() {
    let schema = object(
        &json!({
            "unit": { "enum": ["celsius", "fahrenheit"] },
            "kind": { "const": "weather" },
            "days": { "type": "integer", "default": 3 },
            "place": { "type": ["string", "null"] },
        }),
        &["unit", "kind", "days", "place"],
    );
    let expected = json!({ "unit": "fahrenheit", "kind": "weather", "days": 3, "place": "Rome" });
    check(&schema, "Weather in Rome in Fahrenheit", &expected);
}

#[test]
fn references_combinations_and_nested_objects() {
    let schema = json!({
        "$defs": { "where": { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] } },
        "type": "object",
        "properties": {
            "target": { "$ref": "#/$defs/where" },
            "mode": { "anyOf": [{ "type": "null" }, { "type": "boolean" }] },
            "both": { "allOf": [{ "type": "object", "properties": { "n": { "type": "integer" } } }, { "required": ["n"] }] },
            "edits": { "type": "array", "minItems": 2, "items": { "type": "object", "properties": { "x": { "type": "boolean" } }, "required": ["x"] } },
        },
        "required": ["target", "mode", "both", "edits"],
    });
    let expected = json!({
        "target": { "path": "a.rs" }, "mode": false, "both": { "n": 7 }, "edits": [{ "x": false }, { "x": false }],
    });
    check(&schema, "Edit a.rs 7 times", &expected);
}

#[test]
fn bounds_lengths_and_formats_are_observed() {
    let schema = object(
        &json!({
            "n": { "type": "integer", "minimum": 10, "multipleOf": 4 },
            "x": { "type": "number", "exclusiveMaximum": 1 },
            "at": { "type": "string", "format": "date" },
            "code": { "type": "string", "minLength": 6, "maxLength": 6 },
        }),
        &["n", "x", "at", "code"],
    );
    let expected = json!({ "n": 12, "x": 0, "at": "2026-01-01", "code": "ababab" });
    check(&schema, "Say \"ab\" 3 times", &expected);
}

#[test]
fn a_schema_without_end_has_an_end() {
    let schema = json!({
        "type": "object", "properties": { "next": { "$ref": "#" } }, "required": ["next"],
    });
    assert!(arguments(&schema, Finds::of("x")).is_object());
    assert!(arguments(&json!({ "$ref": "#" }), Finds::of("x")).is_string());
}

#[test]
fn without_required_properties_the_first_is_filled() {
    check(
        &json!({ "type": "object", "properties": { "query": { "type": "string" } } }),
        "Find \"needle\"",
        &json!({ "query": "needle" }),
    );
    check(&json!({ "type": "object" }), "x", &json!({}));
}

#[test]
fn an_answer_says_what_is_to_be_said() {
    let schema = r#"{"type":"object","properties":{"summary":{"type":"string"},"ok":{"type":"boolean"}},"required":["summary","ok"],"additionalProperties":false}"#;
    assert_eq!(answer(schema, "Sum up", "the words"), r#"{"summary":"the words","ok":false}"#);
}
