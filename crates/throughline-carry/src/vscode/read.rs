//! Reading a session.

use crate::decode::{flag, text};
use crate::{Agent, Contents, Damage, Facts, Millis, Piece, Spot};
use std::borrow::Cow;
use throughline_core::{
    Call, Content, Dialect, Entry, Image, Input, Kind, Media, Origin, Outcome, Part, Return, Role, Summary,
    Text, Thought,
};
use throughline_wire::json::{Document, Node, Writer, quote};

/// What the editor puts behind the id of a call, to have it only once in a session.
const ID_MARK: &str = "__vscode-";

/// How a result begins that tells of a tool that failed.
const FAILED: &str = "ERROR while calling tool";

/// Reads a session.
pub(crate) fn read(document: &Document, contents: &mut Contents) -> Result<(), Damage> {
    let root = document.root();
    let requests = root.field("requests").ok_or_else(|| Damage("a session has `requests`".to_owned()))?;
    let facts = &mut contents.facts;
    facts.id = text(&root, "sessionId");
    facts.title = text(&root, "customTitle");
    facts.saw(millis(&root, "creationDate"));
    let mut count = 0;
    for request in requests.items() {
        let at = millis(&request, "timestamp");
        let Some(asked) = question(&request) else {
            contents.damaged.push(Damage(format!("{}: a request has `message`", request.path())));
            continue;
        };
        contents.facts.turns += 1;
        contents.facts.begin_with(&asked);
        push(contents, at, vec![Entry::said(Role::User, asked)], &mut count);
        for (at, entries) in rounds(&request, count) {
            push(contents, at, entries, &mut count);
        }
        let failure =
            request.field("result").and_then(|result| text(&result.field("errorDetails")?, "message"));
        if let Some(failure) = failure {
            let told =
                Entry::said(Role::Assistant, Text::from(format!("[The editor ended this turn: {failure}]")));
            push(contents, at, vec![told], &mut count);
        }
    }
    Ok(())
}

fn push(contents: &mut Contents, at: Option<Millis>, entries: Vec<Entry>, count: &mut usize) {
    if entries.is_empty() {
        return;
    }
    *count += entries.len();
    let Contents { facts, pieces, .. } = contents;
    facts.counted(&entries);
    facts.saw(at);
    note_model(facts, &entries);
    let number = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
    let behind = number.checked_sub(1).map(Spot);
    pieces.push(Piece { spot: Spot(number), behind, thread: None, at, entries, answered: None });
}

fn note_model(facts: &mut Facts, entries: &[Entry]) {
    if let Some(origin) = entries.iter().rev().find_map(|entry| entry.origin.as_ref()) {
        facts.model = Some(origin.model.clone());
    }
}

fn millis(node: &Node<'_>, name: &str) -> Option<Millis> {
    node.field(name)?.as_u64().and_then(|millis| i64::try_from(millis).ok())
}

fn question(request: &Node<'_>) -> Option<Text> {
    let message = request.field("message")?;
    text(&message, "text").or_else(|| Some(Text::from(&*message.as_str()?)))
}

/// Returns what the model said and did for a request, round by round.
fn rounds(request: &Node<'_>, before: usize) -> Vec<(Option<Millis>, Vec<Entry>)> {
    let metadata = request.field("result").and_then(|result| result.field("metadata"));
    let rounds: Vec<Node<'_>> = metadata
        .and_then(|metadata| metadata.field("toolCallRounds"))
        .into_iter()
        .flat_map(Node::items)
        .collect();
    let results = metadata.and_then(|metadata| metadata.field("toolCallResults"));
    let model = text(request, "modelId");
    let at = millis(request, "timestamp");
    let mut told: Vec<(Option<Millis>, Vec<Entry>)> = rounds
        .iter()
        .map(|round| {
            (millis(round, "timestamp").or(at), self::round(round, results.as_ref(), model.as_ref()))
        })
        .collect();
    if rounds.is_empty() {
        told.push((at, shown(request, model.as_ref())));
    }
    let summary = metadata.and_then(|metadata| text(&metadata.field("summary")?, "text"));
    told.extend(summary.map(|text| {
        let covers = u32::try_from(before).unwrap_or(u32::MAX);
        (at, vec![Entry::new(Kind::Summarised(Summary { text, covers }))])
    }));
    told
}

fn round(round: &Node<'_>, results: Option<&Node<'_>>, model: Option<&Text>) -> Vec<Entry> {
    let mut entries = Vec::new();
    entries.extend(round.field("thinking").and_then(|thinking| thought(&thinking)));
    entries.extend(text(round, "response").map(|words| Entry::said(Role::Assistant, words)));
    let mut returned = Vec::new();
    for call in round.field("toolCalls").into_iter().flat_map(Node::items) {
        let (Some(id), Some(name)) = (text(&call, "id"), text(&call, "name")) else { continue };
        let arguments = text(&call, "arguments").unwrap_or_else(|| Text::from_static("{}"));
        entries.push(called(plain_id(&id), name, arguments));
        returned.extend(
            results.and_then(|results| results.field(&id)).map(|result| result_of(&result, plain_id(&id))),
        );
    }
    for entry in &mut entries {
        entry.origin = model.map(origin);
    }
    entries.append(&mut returned);
    entries
}

fn origin(model: &Text) -> Origin {
    let backend = Text::from_static(Agent::VsCode.name());
    Origin { backend, dialect: Dialect::Chat, model: model.clone() }
}

/// Returns the id that the model gave a call.
fn plain_id(id: &str) -> Text {
    Text::from(id.split_once(ID_MARK).map_or(id, |(id, _)| id))
}

/// Returns a thought in its words; what sealed it is of no use to anybody else.
fn thought(thinking: &Node<'_>) -> Option<Entry> {
    let words = thinking.field("text")?;
    let words: String = match words.as_str() {
        Some(words) => words.into_owned(),
        None => words.items().filter_map(|words| words.as_str().map(Cow::into_owned)).collect(),
    };
    let content = vec![Text::from(words)];
    (!content[0].is_empty()).then(|| Entry::new(Kind::Thought(Thought { content, ..Thought::default() })))
}

fn called(id: Text, name: Text, arguments: Text) -> Entry {
    let input = Input::Arguments(arguments);
    Entry::new(Kind::Called(Call { id, item_id: None, name, namespace: None, input }))
}

fn returned(call_id: Text, parts: Vec<Part>, outcome: Outcome) -> Entry {
    let call_id = Some(call_id);
    Entry::new(Kind::Returned(Return { call_id, item_id: None, name: None, parts, outcome, freeform: false }))
}

fn result_of(result: &Node<'_>, call_id: Text) -> Entry {
    let parts: Vec<Part> =
        result.field("content").into_iter().flat_map(Node::items).map(|part| part_of(&part)).collect();
    let failed = flag(result, "hasError")
        || parts.first().and_then(Part::as_text).is_some_and(|text| text.starts_with(FAILED));
    returned(call_id, parts, if failed { Outcome::Error } else { Outcome::Ok })
}

/// Returns a part of a result: text, a tree of texts that a tool has rendered, or data.
fn part_of(part: &Node<'_>) -> Part {
    if let Some(image) = image(part) {
        return Part { content: Content::Image(image), wire: None };
    }
    let value = part.field("value");
    let mut words = String::new();
    match value.and_then(|value| value.as_str()) {
        Some(text) => words.push_str(&text),
        None => value.iter().for_each(|value| collect(value, &mut words)),
    }
    if words.is_empty() && value.is_none_or(|value| value.as_str().is_none()) {
        words.push_str(part.raw());
    }
    Part::text(words)
}

fn collect(node: &Node<'_>, words: &mut String) {
    if let Some(text) = node.field("text").and_then(|text| text.as_str()) {
        words.push_str(&text);
    }
    node.field("node").iter().for_each(|inner| collect(inner, words));
    node.field("children").into_iter().flat_map(Node::items).for_each(|child| collect(&child, words));
}

fn image(part: &Node<'_>) -> Option<Image> {
    let media_type = text(part, "mimeType").filter(|mime| mime.starts_with("image/"))?;
    let base64 = text(part, "data").or_else(|| text(&part.field("data")?, "$base64"))?;
    Some(Image { media: Media::Inline { media_type, base64 }, detail: None })
}

/// Returns what the editor showed for a request of which nothing else is known: words, tools that ran, and edits.
fn shown(request: &Node<'_>, model: Option<&Text>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (number, part) in request.field("response").into_iter().flat_map(Node::items).enumerate() {
        let kind = text(&part, "kind");
        match kind.as_deref() {
            None | Some("markdownContent") => {
                let words = text(&part, "value").or_else(|| text(&part.field("content")?, "value"));
                entries.extend(words.map(|words| Entry::said(Role::Assistant, words)));
            }
            Some("thinking") => entries.extend(text(&part, "value").map(|words| {
                Entry::new(Kind::Thought(Thought { content: vec![words], ..Thought::default() }))
            })),
            Some("toolInvocationSerialized") => entries.extend(tool_shown(&part, number)),
            Some("textEditGroup") => entries.extend(edit_shown(&part, number)),
            // References, progress and buttons are the editor's own.
            Some(_) => {}
        }
    }
    for entry in entries.iter_mut().filter(|entry| entry.as_return().is_none()) {
        entry.origin = model.map(origin);
    }
    entries
}

/// Returns a tool that ran, with what the editor said of it: its arguments and its result were not kept.
fn tool_shown(part: &Node<'_>, number: usize) -> Vec<Entry> {
    let message = |name: &str| {
        let field = part.field(name)?;
        field.as_str().map(|words| Text::from(&*words)).or_else(|| text(&field, "value"))
    };
    let id = text(part, "toolCallId").unwrap_or_else(|| Text::from(format!("shown_{number}")));
    let name = text(part, "toolId").unwrap_or_else(|| Text::from_static("tool"));
    let arguments = format!("{{\"shown\":{}}}", quote(&message("invocationMessage").unwrap_or_default()));
    let result = message("pastTenseMessage").unwrap_or_default();
    let outcome = if flag(part, "isComplete") { Outcome::Ok } else { Outcome::Error };
    vec![
        called(plain_id(&id), name, arguments.into()),
        returned(plain_id(&id), vec![Part::text(result)], outcome),
    ]
}

/// Returns edits that the editor made by itself, as a call that made them.
fn edit_shown(part: &Node<'_>, number: usize) -> Vec<Entry> {
    let mut writer = Writer::new();
    writer.begin_object();
    if let Some(path) = part.field("uri").and_then(|uri| text(&uri, "path")) {
        writer.field_str("path", &path);
    }
    writer.field_raw("edits", part.field("edits").map_or("[]", |edits| edits.raw()));
    writer.end_object();
    let id = Text::from(format!("edit_{number}"));
    let done = vec![Part::text("applied")];
    vec![
        called(id.clone(), Text::from_static("text_edit"), writer.into_string().into()),
        returned(id, done, Outcome::Ok),
    ]
}
