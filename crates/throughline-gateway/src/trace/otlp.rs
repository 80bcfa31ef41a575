//! Spans in OTLP's JSON form. Numbers of 64 bits are texts there, and ids are hexadecimal.

use super::context::written;
use super::span::{Span, Value};
use throughline_wire::json::Writer;

/// Writes a request that brings spans to a collector.
#[must_use]
pub fn request(service: &str, spans: &[Span]) -> String {
    let mut writer = Writer::with_capacity(512 + spans.len() * 1024);
    writer.begin_object();
    begin_list(&mut writer, "resourceSpans");
    writer.key("resource");
    writer.begin_object();
    writer.key("attributes");
    writer.begin_array();
    write_attribute(&mut writer, "service.name", &Value::Text(service.into()));
    write_attribute(&mut writer, "service.version", &Value::Text(env!("CARGO_PKG_VERSION").into()));
    writer.end_array();
    writer.end_object();
    begin_list(&mut writer, "scopeSpans");
    writer.key("scope");
    writer.begin_object();
    writer.field_str("name", "throughline");
    writer.end_object();
    writer.key("spans");
    writer.begin_array();
    spans.iter().for_each(|span| write_span(&mut writer, span));
    writer.end_array();
    end_list(&mut writer);
    end_list(&mut writer);
    writer.end_object();
    writer.into_string()
}

/// Opens a list of one object.
fn begin_list(writer: &mut Writer, name: &str) {
    writer.key(name);
    writer.begin_array();
    writer.begin_object();
}

fn end_list(writer: &mut Writer) {
    writer.end_object();
    writer.end_array();
}

fn write_span(writer: &mut Writer, span: &Span) {
    writer.begin_object();
    writer.field_str("traceId", &written(&span.trace));
    writer.field_str("spanId", &written(&span.id));
    if let Some(parent) = &span.parent {
        writer.field_str("parentSpanId", &written(parent));
    }
    if let Some(state) = &span.state {
        writer.field_str("traceState", state);
    }
    writer.field_str("name", &span.name);
    writer.field_uint("kind", span.kind as u64);
    writer.field_str("startTimeUnixNano", &span.began.to_string());
    writer.field_str("endTimeUnixNano", &span.ended.to_string());
    writer.key("attributes");
    writer.begin_array();
    span.attributes.iter().for_each(|(name, value)| write_attribute(writer, name, value));
    writer.end_array();
    if let Some(error) = &span.error {
        writer.key("status");
        writer.begin_object();
        writer.field_uint("code", 2);
        writer.field_str("message", error);
        writer.end_object();
    }
    writer.end_object();
}

fn write_attribute(writer: &mut Writer, name: &str, value: &Value) {
    writer.begin_object();
    writer.field_str("key", name);
    writer.key("value");
    write_value(writer, value);
    writer.end_object();
}

fn write_value(writer: &mut Writer, value: &Value) {
    writer.begin_object();
    match value {
        Value::Text(text) => writer.field_str("stringValue", text),
        Value::Number(number) => writer.field_str("intValue", &number.to_string()),
        Value::List(texts) => {
            writer.key("arrayValue");
            writer.begin_object();
            writer.key("values");
            writer.begin_array();
            texts.iter().for_each(|text| write_value(writer, &Value::Text(text.clone())));
            writer.end_array();
            writer.end_object();
        }
    }
    writer.end_object();
}
