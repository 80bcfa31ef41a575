//! Entries, read field by field; the counterpart of `write.rs`, in the same order.

use super::write::{outcome_name, role_name};
use std::sync::Arc;
use throughline_core::{
    Call, Content, Continued, ConversationId, Dialect, Entry, EntryId, Envelope, Extra, File, Handover,
    Image, Input, Kind, Media, Origin, Outcome, Part, Place, Return, Role, Said, Seal, Summary, Text,
    Thought, Wire,
};
use throughline_wire::json::{DecodeError, Node};

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A field is missing or has the wrong type.
    #[error("{0}")]
    Field(String),
    /// The entry refers to a message that is not the last one before it.
    #[error("the entry refers to envelope {0}, which does not stand before it")]
    Envelope(u64),
}

/// Reads entries one after another.
#[derive(Debug, Default)]
pub struct EntryReader {
    last: Option<(u64, Arc<Envelope>)>,
}

type Read<T> = Result<T, ReadError>;

impl EntryReader {
    /// Reads the line of a message that several entries share.
    ///
    /// # Errors
    /// When a field is missing or has the wrong type.
    pub fn envelope(&mut self, line: &Node<'_>) -> Result<(), ReadError> {
        let entries = small(&line.expect_field("entries")?)?;
        let envelope = Envelope { wire: wire(line)?, entries };
        self.last = Some((line.expect_field("number")?.expect_u64()?, Arc::new(envelope)));
        Ok(())
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// When a field is missing or has the wrong type, or its message is not there.
    pub fn entry(&self, line: &Node<'_>) -> Result<Entry, ReadError> {
        let place = line.field("place").map(|place| {
            let mut numbers = place.items().map(|number| small(&number));
            let message = numbers.next().unwrap_or(Ok(0))?;
            Ok::<_, ReadError>(Place { message, block: numbers.next().transpose()? })
        });
        let envelope = line.field("envelope").map(|node| self.shared(&node)).transpose()?;
        Ok(Entry {
            origin: line.field("origin").map(|node| origin(&node)).transpose()?,
            wire: line.field("wire").map(|node| wire(&node)).transpose()?,
            envelope,
            place: place.transpose()?,
            intact: !flag(line, "altered")?,
            ..Entry::new(kind(line)?)
        })
    }

    fn shared(&self, node: &Node<'_>) -> Read<(Arc<Envelope>, u32)> {
        let numbers: Vec<Node<'_>> = node.items().collect();
        let [number, position] = numbers.as_slice() else {
            return Err(node.error("must be the number of an envelope and a position").into());
        };
        let number = number.expect_u64()?;
        match &self.last {
            Some((last, envelope)) if *last == number => Ok((Arc::clone(envelope), small(position)?)),
            _ => Err(ReadError::Envelope(number)),
        }
    }
}

fn kind(line: &Node<'_>) -> Read<Kind> {
    for (name, node) in line.fields() {
        return Ok(match &*name {
            "said" => {
                let role = named(&node, "role", Role::from_name)?;
                Kind::Said(Said { role, parts: parts(&node)?, standing: flag(&node, "standing")? })
            }
            "thought" => Kind::Thought(thought(&node)?),
            "called" => Kind::Called(call(&node)?),
            "returned" => Kind::Returned(returned(&node)?),
            "handed_over" => Kind::HandedOver(handover(&node)?),
            "summarised" => Kind::Summarised(Summary {
                text: text(&node, "text")?,
                covers: small(&node.expect_field("covers")?)?,
            }),
            "reference" => Kind::Reference { id: text(&node, "id")? },
            "opaque" => Kind::Opaque { kind: text(&node, "kind")? },
            _ => continue,
        });
    }
    Err(line.error("must say what happened").into())
}

fn thought(node: &Node<'_>) -> Read<Thought> {
    let texts = |name: &str| -> Read<Vec<Text>> {
        node.expect_field(name)?.expect_array()?.items().map(|text| Ok(text.expect_text()?)).collect()
    };
    let seal = |name: &str, seal: fn(Text) -> Seal| Ok::<_, ReadError>(optional(node, name)?.map(seal));
    let signature = seal("signature", Seal::Signature)?;
    let redacted = seal("redacted", Seal::Redacted)?;
    let encrypted = seal("encrypted", Seal::Encrypted)?;
    Ok(Thought {
        summary: texts("summary")?,
        content: texts("content")?,
        seal: signature.or(redacted).or(encrypted),
        item_id: optional(node, "item_id")?,
    })
}

fn call(node: &Node<'_>) -> Read<Call> {
    let input = match optional(node, "freeform")? {
        Some(text) => Input::Freeform(text),
        None => Input::Arguments(text(node, "arguments")?),
    };
    Ok(Call {
        id: text(node, "id")?,
        item_id: optional(node, "item_id")?,
        name: text(node, "name")?,
        namespace: optional(node, "namespace")?,
        input,
    })
}

fn returned(node: &Node<'_>) -> Read<Return> {
    Ok(Return {
        call_id: optional(node, "call_id")?,
        item_id: optional(node, "item_id")?,
        name: optional(node, "name")?,
        parts: parts(node)?,
        outcome: named(node, "outcome", Outcome::from_name)?,
        freeform: flag(node, "freeform")?,
    })
}

fn handover(node: &Node<'_>) -> Read<Handover> {
    Ok(Handover {
        from: node.field("from").map(|from| origin(&from)).transpose()?,
        to: origin(&node.expect_field("to")?)?,
        by: optional(node, "by")?.unwrap_or_default(),
        reason: text(node, "reason")?,
        brief: optional(node, "brief")?,
        continues: node.field("continues").map(|continued| continues(&continued)).transpose()?,
    })
}

fn continues(node: &Node<'_>) -> Read<Continued> {
    let conversation = ConversationId::new(text(node, "conversation")?);
    Ok(Continued { conversation, entry: EntryId::new(text(node, "entry")?) })
}

fn parts(node: &Node<'_>) -> Read<Vec<Part>> {
    node.expect_field("parts")?.expect_array()?.items().map(|node| part(&node)).collect()
}

fn part(node: &Node<'_>) -> Read<Part> {
    let content = if let Some(text) = optional(node, "text")? {
        Content::Text(text)
    } else if let Some(text) = optional(node, "refusal")? {
        Content::Refusal(text)
    } else if let Some(image) = node.field("image") {
        Content::Image(Image { media: media(&image)?, detail: optional(node, "detail")? })
    } else if let Some(file) = node.field("file") {
        Content::File(File { media: media(&file)?, name: optional(node, "name")? })
    } else {
        Content::Opaque { kind: text(node, "opaque")? }
    };
    Ok(Part { content, wire: node.field("wire").map(|node| wire(&node)).transpose()? })
}

fn media(node: &Node<'_>) -> Read<Media> {
    Ok(if let Some(url) = optional(node, "url")? {
        Media::Url(url)
    } else if let Some(base64) = optional(node, "base64")? {
        Media::Inline { media_type: text(node, "media_type")?, base64 }
    } else if let Some(plain) = optional(node, "plain")? {
        Media::Plain(plain)
    } else {
        Media::Stored(text(node, "stored")?)
    })
}

fn wire(node: &Node<'_>) -> Read<Wire> {
    let extra = |extra: Node<'_>| -> Read<Extra> {
        let pair: Vec<Node<'_>> = extra.items().collect();
        let [name, value] = pair.as_slice() else {
            return Err(extra.error("must be a name and a value").into());
        };
        Ok(Extra { name: name.expect_text()?, value: value.expect_text()? })
    };
    let extras = node.field("extras").into_iter().flat_map(Node::items).map(extra).collect::<Read<_>>()?;
    Ok(Wire { dialect: named(node, "dialect", Dialect::from_name)?, text: text(node, "text")?, extras })
}

fn origin(node: &Node<'_>) -> Read<Origin> {
    Ok(Origin {
        backend: text(node, "backend")?,
        dialect: named(node, "dialect", Dialect::from_name)?,
        model: text(node, "model")?,
    })
}

fn text(node: &Node<'_>, name: &str) -> Read<Text> {
    Ok(node.expect_field(name)?.expect_text()?)
}

fn optional(node: &Node<'_>, name: &str) -> Read<Option<Text>> {
    Ok(node.field(name).map(|node| node.expect_text()).transpose()?)
}

fn flag(node: &Node<'_>, name: &str) -> Read<bool> {
    Ok(node.field(name).map(|node| node.expect_bool()).transpose()?.unwrap_or(false))
}

fn small(node: &Node<'_>) -> Read<u32> {
    u32::try_from(node.expect_u64()?).map_err(|_| node.error("is too large").into())
}

fn named<T>(node: &Node<'_>, name: &str, find: impl Fn(&str) -> Option<T>) -> Read<T> {
    let node = node.expect_field(name)?;
    find(&node.expect_str()?).ok_or_else(|| node.error(format!("is no {name}")).into())
}

trait FromName: Sized {
    fn from_name(name: &str) -> Option<Self>;
}

impl FromName for Role {
    fn from_name(name: &str) -> Option<Self> {
        [Self::System, Self::Developer, Self::User, Self::Assistant]
            .into_iter()
            .find(|role| role_name(*role) == name)
    }
}

impl FromName for Outcome {
    fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Ok, Self::Error, Self::Denied, Self::Interrupted, Self::Unknown];
        all.into_iter().find(|outcome| outcome_name(*outcome) == name)
    }
}

impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        Self::Field(error.to_string())
    }
}
