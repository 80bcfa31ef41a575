//! A request body read into an [`Ask`].
//!
//! One walk over the body. A known field of the wrong type is an error that names its place; unknown fields,
//! blocks and tools are kept as they came. `null` counts as absent.

use super::blocks::{BlockReader, message_extras};
use super::kept::{OWN, given, given_bool, given_text};
use super::known;
use super::parts::decode_parts;
use super::{settings, tools};
use crate::json::{DecodeError, Document, Node};
use crate::shape;
use std::sync::Arc;
use throughline_core::{Ask, Entry, Envelope, Extra, Kind, Role, Said, Text, Wire};

/// Reads a request.
pub(crate) fn decode_request(document: &Document) -> Result<Ask, DecodeError> {
    let root = document.root().expect_object()?;
    shape::check(root, known::REQUEST)?;
    let (tool_choice, parallel_calls) = tools::decode_choice(root)?;
    let mut settings = settings::decode(root)?;
    settings.parallel_calls = parallel_calls;
    Ok(Ask {
        dialect: OWN,
        model: given_text(root, "model")?,
        entries: decode_entries(root)?,
        tools: tools::decode_tools(root)?,
        tool_choice,
        settings,
        stream: given_bool(root, "stream")?.unwrap_or(false),
        previous: None,
        conversation: None,
        fields: fields(root),
        extras: settings::foreign_fields(root),
    })
}

/// Returns every field of an object in its order, as it came.
pub(super) fn fields(object: Node<'_>) -> Vec<Extra> {
    object.fields().map(|(name, value)| Extra { name: Text::from(&*name), value: value.raw_text() }).collect()
}

fn decode_entries(root: Node<'_>) -> Result<Vec<Entry>, DecodeError> {
    let mut entries = Vec::new();
    if let Some(system) = given(root, "system") {
        entries.push(decode_system(system)?);
    }
    let messages = root.expect_field("messages")?.expect_array()?;
    for (message, index) in messages.items().zip(0..) {
        decode_message(message, index, &mut entries)?;
    }
    Ok(entries)
}

fn decode_system(system: Node<'_>) -> Result<Entry, DecodeError> {
    let said = Said { role: Role::System, parts: decode_parts(system)?, standing: true };
    let mut entry = Entry::new(Kind::Said(said));
    entry.wire = Some(Wire { dialect: OWN, text: system.raw_text(), extras: Vec::new() });
    Ok(entry)
}

fn decode_message(message: Node<'_>, index: u32, entries: &mut Vec<Entry>) -> Result<(), DecodeError> {
    let role = decode_role(message.expect_field("role")?)?;
    // A message without content is an entry all the same; `null` reads as none.
    let content = message.field("content");
    let mut read = match content {
        Some(content) => BlockReader::new(role, Some(index)).read(content)?,
        None => vec![BlockReader::new(role, Some(index)).nothing()],
    };
    let wire = Wire { dialect: OWN, text: message.raw_text(), extras: message_extras(message) };
    let envelope = Arc::new(Envelope { wire, entries: u32::try_from(read.len()).unwrap_or(u32::MAX) });
    for (entry, position) in read.iter_mut().zip(0..) {
        entry.envelope = Some((Arc::clone(&envelope), position));
    }
    entries.append(&mut read);
    Ok(())
}

/// Reads a role. `system` stands among the messages of newer models, where it speaks from there on.
fn decode_role(role: Node<'_>) -> Result<Role, DecodeError> {
    match &*role.expect_str()? {
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "system" => Ok(Role::System),
        other => Err(role.error(format!("must be `user`, `assistant` or `system`, not `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Part;

    fn decoded(body: &str) -> Ask {
        decode_request(&Document::parse(body).unwrap()).unwrap()
    }

    #[test]
    fn a_message_is_one_envelope_around_its_entries() {
        let ask = decoded(
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","x":1,"content":[
                {"type":"text","text":"b"},{"type":"tool_use","id":"1","name":"f","input":{}}]}]}"#,
        );
        let (envelope, position) = ask.entries[2].envelope.as_ref().unwrap();
        assert_eq!((envelope.entries, *position, envelope.wire.extras.len()), (2, 1, 1));
        assert_eq!(ask.entries[2].place.unwrap().message, 1);
    }

    #[test]
    fn the_system_prompt_stands_beside_the_conversation() {
        let ask = decoded(
            r#"{"system":[{"type":"text","text":"s"}],"messages":[{"role":"system","content":"t"}]}"#,
        );
        let standing: Vec<_> = ask.entries.iter().map(|entry| entry.as_said().unwrap().standing).collect();
        assert_eq!(standing, [true, false]);
        assert_eq!(ask.entries[0].wire.as_ref().unwrap().text, r#"[{"type":"text","text":"s"}]"#);
    }

    #[test]
    fn a_message_without_content_does_not_vanish() {
        let ask = decoded(
            r#"{"messages":[{"role":"user"},{"role":"user","content":null},{"role":"user","content":""}]}"#,
        );
        let parts: Vec<_> = ask.entries.iter().map(|entry| entry.as_said().unwrap().parts.clone()).collect();
        assert_eq!(parts, [vec![], vec![], vec![Part::text("")]]);
    }

    #[test]
    fn errors_name_the_place() {
        for (body, path) in [
            ("{}", "messages"),
            (r#"{"messages":[{"role":"tool","content":""}]}"#, "messages[0].role"),
            (r#"{"messages":[{"role":"user","content":7}]}"#, "messages[0].content"),
            (r#"{"messages":[{"role":"user","content":[{"type":"text"}]}]}"#, "messages[0].content[0].text"),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]}]}"#,
                "messages[0].content[0].source.media_type",
            ),
            (r#"{"messages":[],"tools":[{"name":1}]}"#, "tools[0].name"),
            (r#"{"messages":[],"model":1}"#, "model"),
        ] {
            let error = decode_request(&Document::parse(body).unwrap()).unwrap_err();
            assert_eq!(error.path, path);
        }
    }
}
