//! Reading a session.

use crate::decode::{flag, text};
use crate::{Agent, Answered, Contents, Damage, Facts, Millis, Piece, Spot};
use throughline_core::{
    Call, Content, Dialect, Entry, File, Image, Input, Kind, Media, Origin, Outcome, Part, Return, Role,
    Said, Summary, Text, Thought, Usage, joined_text,
};
use throughline_wire::json::{Document, Node};

/// Reads a session.
pub(crate) fn read(document: &Document, contents: &mut Contents) -> Result<(), Damage> {
    let root = document.root();
    let info = root.field("info").ok_or_else(|| Damage("a session has `info`".to_owned()))?;
    let Contents { facts, pieces, damaged } = contents;
    facts.id = text(&info, "id");
    facts.title = text(&info, "title");
    facts.cwd = text(&info, "directory");
    facts.version = text(&info, "version");
    facts.parent = text(&info, "parentID");
    for name in ["created", "updated"] {
        facts.saw(time(&info, name));
    }
    let messages = root.field("messages").ok_or_else(|| Damage("a session has `messages`".to_owned()))?;
    let mut count = 0;
    for message in messages.items() {
        damaged.extend(flaws(&message));
        let entries = entries(&message, count, facts);
        if entries.is_empty() {
            continue;
        }
        count += entries.len();
        facts.counted(&entries);
        let number = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        let at = message.field("info").and_then(|info| time(&info, "created"));
        facts.saw(at);
        let behind = number.checked_sub(1).map(Spot);
        let answered = answered(&message);
        pieces.push(Piece { spot: Spot(number), behind, thread: None, at, entries, answered });
    }
    Ok(())
}

/// Returns what an answer took.
fn answered(message: &Node<'_>) -> Option<Answered> {
    let info = message.field("info")?;
    let tokens = info.field("tokens")?;
    let count = |node: Option<Node<'_>>| node.and_then(|count| count.as_u64()).unwrap_or(0);
    let cached = |name: &str| count(tokens.field("cache").and_then(|cache| cache.field(name)));
    let (cache_read, cache_written) = (cached("read"), cached("write"));
    let reasoning = count(tokens.field("reasoning"));
    let usage = Usage {
        // Here the prompt is counted without what was cached, and the answer without its reasoning.
        input: count(tokens.field("input")).saturating_add(cache_read).saturating_add(cache_written),
        cache_read,
        cache_written,
        output: count(tokens.field("output")).saturating_add(reasoning),
        reasoning,
    };
    let failure = info.field("error").filter(|error| !error.is_null()).map(|error| {
        let words = error.field("data").and_then(|data| text(&data, "message"));
        words.or_else(|| text(&error, "name")).unwrap_or_else(|| error.raw().into())
    });
    (usage != Usage::default() || failure.is_some()).then_some(Answered {
        id: text(&info, "id")?,
        model: text(&info, "modelID"),
        usage: (usage != Usage::default()).then_some(usage),
        failure,
    })
}

/// Returns what of a message cannot be read: it brings nothing, and is named.
fn flaws(message: &Node<'_>) -> Vec<Damage> {
    let named = |node: &Node<'_>, words: &str| Damage(format!("{}: {words}", node.path()));
    if message.field("info").is_none() {
        return vec![named(message, "a message has `info`")];
    }
    let parts = message.field("parts").into_iter().flat_map(Node::items);
    parts.filter_map(|part| Some(named(&part, flaw(&part)?))).collect()
}

fn flaw(part: &Node<'_>) -> Option<&'static str> {
    let lacks = |name: &str| part.field(name).is_none_or(|field| field.as_str().is_none());
    let Some(kind) = text(part, "type") else { return Some("a part has a `type`") };
    match kind.as_str() {
        "text" | "reasoning" if lacks("text") => Some("a text has `text`"),
        "file" if lacks("url") || lacks("mime") => Some("a file has `url` and `mime`"),
        "tool" if lacks("callID") || lacks("tool") => Some("a call has `callID` and `tool`"),
        "tool" => {
            let state = part.field("state")?;
            let is_completed = state.field("status")?.is_str("completed");
            let output = state.field("output").and_then(|output| output.as_str());
            (is_completed && output.is_none()).then_some("a result has `output`")
        }
        _ => None,
    }
}

fn time(info: &Node<'_>, name: &str) -> Option<Millis> {
    info.field("time")?.field(name)?.as_u64().and_then(|millis| i64::try_from(millis).ok())
}

fn entries(message: &Node<'_>, before: usize, facts: &mut Facts) -> Vec<Entry> {
    let Some(info) = message.field("info") else { return Vec::new() };
    let parts: Vec<Node<'_>> = message.field("parts").into_iter().flat_map(Node::items).collect();
    if info.field("role").is_some_and(|role| role.is_str("user")) {
        return question(&parts, facts);
    }
    let origin = text(&info, "modelID").map(|model| {
        facts.model = Some(model.clone());
        let backend = Text::from_static(Agent::Opencode.name());
        Origin { backend, dialect: Dialect::Messages, model }
    });
    let mut entries = answer(&parts);
    if flag(&info, "summary") {
        let words: Vec<Part> =
            entries.iter().filter_map(Entry::as_said).flat_map(|said| said.parts.clone()).collect();
        let covers = u32::try_from(before).unwrap_or(u32::MAX);
        entries = vec![Entry::new(Kind::Summarised(Summary { text: joined_text(&words), covers }))];
    }
    for entry in entries.iter_mut().filter(|entry| entry.as_return().is_none()) {
        entry.origin.clone_from(&origin);
    }
    entries
}

fn question(parts: &[Node<'_>], facts: &mut Facts) -> Vec<Entry> {
    let parts: Vec<Part> = parts.iter().filter(|part| !flag(part, "ignored")).filter_map(content).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    facts.turns += 1;
    vec![Entry::new(Kind::Said(Said { role: Role::User, parts, standing: false }))]
}

/// Returns what the model did; the results of calls that it made side by side stand behind them all.
fn answer(parts: &[Node<'_>]) -> Vec<Entry> {
    let (mut entries, mut results) = (Vec::new(), Vec::new());
    for part in parts {
        let kind = text(part, "type").unwrap_or_default();
        if kind != "tool" {
            entries.append(&mut results);
        }
        match kind.as_str() {
            "tool" => {
                if let Some(call) = call(part) {
                    entries.push(call);
                    results.extend(result(part));
                }
            }
            "reasoning" => entries.extend(text(part, "text").map(|words| {
                Entry::new(Kind::Thought(Thought { content: vec![words], ..Thought::default() }))
            })),
            _ => entries.extend(content(part).map(|part| {
                Entry::new(Kind::Said(Said { role: Role::Assistant, parts: vec![part], standing: false }))
            })),
        }
    }
    entries.append(&mut results);
    entries
}

fn content(part: &Node<'_>) -> Option<Part> {
    let content = match &*text(part, "type")? {
        "text" => Content::Text(text(part, "text")?),
        "file" => file(part)?,
        _ => return None,
    };
    Some(Part { content, wire: None })
}

fn file(part: &Node<'_>) -> Option<Content> {
    let (url, mime) = (text(part, "url")?, text(part, "mime")?);
    let inline = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    let media = match inline {
        Some((_, base64)) => Media::Inline { media_type: mime.clone(), base64: base64.into() },
        None => Media::Url(url),
    };
    Some(if mime.starts_with("image/") {
        Content::Image(Image { media, detail: None })
    } else {
        Content::File(File { media, name: text(part, "filename") })
    })
}

fn call(part: &Node<'_>) -> Option<Entry> {
    let arguments = part.field("state").and_then(|state| state.field("input"));
    let call = Call {
        id: text(part, "callID")?,
        item_id: None,
        name: text(part, "tool")?,
        namespace: None,
        input: Input::Arguments(arguments.map_or("{}", |arguments| arguments.raw()).into()),
    };
    Some(Entry::new(Kind::Called(call)))
}

/// Returns the result of a call; one that was under way when the session was written has none.
fn result(part: &Node<'_>) -> Option<Entry> {
    let state = part.field("state")?;
    let (outcome, words) = match &*text(&state, "status")? {
        "completed" => (Outcome::Ok, state.field("output")?.as_str()?.into_owned()),
        "error" => (Outcome::Error, text(&state, "error").unwrap_or_default().to_string()),
        _ => return None,
    };
    let attachments = state.field("attachments").into_iter().flat_map(Node::items);
    let mut parts = vec![Part::text(words)];
    parts.extend(attachments.filter_map(|part| Some(Part { content: file(&part)?, wire: None })));
    let returned =
        Return { call_id: text(part, "callID"), item_id: None, name: None, parts, outcome, freeform: false };
    Some(Entry::new(Kind::Returned(returned)))
}
