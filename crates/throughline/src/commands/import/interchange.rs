//! Our own form, in: the same entries under the same ids, or an error that names the line.

use super::find::{failed, stem};
use crate::args::Args;
use crate::commands::export::interchange::document_name;
use crate::commands::history;
use crate::exit::CommandError;
use crate::output::{self, Bar, Unit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use throughline_carry::interchange::{EntryReader, ReadError, VERSION};
use throughline_core::{ConversationId, Dialect, EntryId, Text, Usage};
use throughline_store::{
    Attempt, Batch, CompactionStep, DocumentKind, Exchange, ExchangeId, Extension, History, Moment,
    NewConversation, PARENT, PROJECT, PlanSizes, ProviderEvent, ResponseMark, Scope, Setting, StepId, Which,
    Write,
};
use throughline_wire::json::{DecodeError, Document, Node};

/// How many writes go into the history at once.
const WRITES_MAX: usize = 512;

type Read<T> = Result<T, ReadError>;

/// Imports a file.
pub fn run(path: &Path, args: &Args) -> Result<(), CommandError> {
    let history = history::open(&history::configured(args)?)?;
    let bar = Bar::new(!args.quiet, Unit::Bytes);
    let (id, new, entries) = history::wait(load(&*history, path, &bar))?;
    drop(bar);
    if args.json {
        let conversation = throughline_wire::json::quote(id.as_str());
        return output::print(&format!(
            "{{\"conversation\":{conversation},\"from\":\"jsonl\",\"entries\":{entries},\"new_entries\":{new}}}\n"
        ));
    }
    output::print(&format!("{id}  {new} new of {entries} entries\n"))
}

/// Loads a file, and returns which conversation it is, how many of its entries were new, and how many it has.
pub async fn load(
    history: &dyn History,
    path: &Path,
    bar: &Bar,
) -> Result<(ConversationId, usize, usize), CommandError> {
    let file = File::open(path).map_err(|source| failed(path, source))?;
    let (name, size) = (stem(path), file.metadata().map_or(0, |facts| facts.len()));
    let mut loader = Loader::new(history);
    let mut read = 0;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        bar.at(&name, read, size);
        let line = line.map_err(|source| failed(path, source))?;
        let at = |error: ReadError| {
            CommandError::bad_input(format!("{}: line {}: {error}", path.display(), number + 1))
        };
        loader.line(&line).map_err(at)?;
        read += line.len() as u64 + 1;
        if loader.writes.len() >= WRITES_MAX {
            loader.flush().await?;
        }
    }
    loader.finish().await
}

struct Loader<'h> {
    history: &'h dyn History,
    conversation: Option<ConversationId>,
    updated: Moment,
    exchanges: Vec<Exchange>,
    reader: EntryReader,
    /// Exchanges that the history has a recording of already.
    recorded: Vec<ExchangeId>,
    /// For how many exchanges that was found out.
    looked_up: usize,
    is_recording: bool,
    writes: Vec<Write>,
    entries: usize,
    new_entries: usize,
}

impl<'h> Loader<'h> {
    fn new(history: &'h dyn History) -> Self {
        Self {
            history,
            conversation: None,
            updated: Moment(0),
            exchanges: Vec::new(),
            reader: EntryReader::default(),
            recorded: Vec::new(),
            looked_up: 0,
            is_recording: false,
            writes: Vec::new(),
            entries: 0,
            new_entries: 0,
        }
    }

    fn line(&mut self, line: &str) -> Read<()> {
        let document = Document::parse(line).map_err(|error| ReadError::Field(error.to_string()))?;
        let node = document.root();
        match &*node.expect_field("type")?.expect_str()? {
            "throughline" => check_version(&node),
            "conversation" => self.begin(&node),
            "exchange" => self.exchange(&node),
            "compaction" => self.compaction(&node),
            "envelope" => self.reader.envelope(&node),
            "entry" => self.entry(&node),
            "sent" | "received" | "provenance" | "report" | "event" | "answer" => self.recording(&node),
            kind => Err(ReadError::Field(format!("`{kind}` is not a line of this form"))),
        }
    }

    fn begin(&mut self, node: &Node<'_>) -> Read<()> {
        let id = ConversationId::new(text(node, "id")?);
        let (created, updated) = (moment(node, "created")?, moment(node, "updated")?);
        self.conversation = Some(id.clone());
        self.updated = updated;
        self.writes.push(Write::Conversation(NewConversation {
            id: id.clone(),
            at: created,
            identified: text(node, "identified")?,
            title: optional(node, "title")?,
            keys: Vec::new(),
        }));
        for name in ["backend", PROJECT, PARENT] {
            if let Some(value) = optional(node, name)? {
                let scope = Scope::Conversation(id.clone());
                let (name, value) = (Text::from_static(name), Some(value));
                self.writes.push(Write::Setting(Setting { scope, name, value, at: updated }));
            }
        }
        Ok(())
    }

    /// Takes in an exchange; the entries that it names come later.
    fn exchange(&mut self, node: &Node<'_>) -> Read<()> {
        let exchange = exchange(node, self.id()?)?;
        let early = Exchange { before: None, after: None, ..exchange.clone() };
        self.writes.push(Write::Exchange(Box::new(early)));
        self.exchanges.push(exchange);
        Ok(())
    }

    fn compaction(&mut self, node: &Node<'_>) -> Read<()> {
        let step = CompactionStep {
            id: step_id(node)?,
            conversation: self.id()?,
            backend: text(node, "backend")?,
            model: text(node, "model")?,
            at: moment(node, "at")?,
            follows: node.field("follows").map(|follows| step_id(&follows)).transpose()?,
            decisions: text(node, "decisions")?,
            summary: optional(node, "summary")?,
        };
        self.writes.push(Write::Compaction(Box::new(step)));
        Ok(())
    }

    fn entry(&mut self, node: &Node<'_>) -> Read<()> {
        let entry = self.reader.entry(node)?;
        let parent = optional(node, "parent")?.map(EntryId::new);
        let mut extension = Extension::new(self.id()?, parent, moment(node, "at")?);
        if let Some(exchange) = optional(node, "exchange")? {
            extension = extension.of_exchange(ExchangeId::new(exchange));
        }
        let (id, expected) = (extension.push(&entry), text(node, "id")?);
        if id.as_str() != expected.as_str() {
            return Err(ReadError::Field(format!(
                "the entry has the id {expected}, and what it says has {id}"
            )));
        }
        self.entries += 1;
        self.writes.push(Write::Entries(extension));
        Ok(())
    }

    fn recording(&mut self, node: &Node<'_>) -> Read<()> {
        if !self.is_recording {
            self.is_recording = true;
            self.writes
                .extend(self.exchanges.iter().cloned().map(|exchange| Write::Exchange(Box::new(exchange))));
        }
        let exchange = ExchangeId::new(text(node, "exchange")?);
        if self.recorded.contains(&exchange) {
            return Ok(());
        }
        let kind = node.expect_field("type")?.expect_str()?;
        let document = DocumentKind::ALL.into_iter().find(|document| document_name(*document) == &*kind);
        self.writes.push(match (document, &*kind) {
            (Some(kind), _) => {
                let body = match optional(node, "base64")? {
                    Some(encoded) => {
                        let decoded = BASE64.decode(encoded.as_bytes());
                        decoded.map_err(|error| ReadError::Field(format!("base64: {error}")))?.into()
                    }
                    None => Bytes::copy_from_slice(text(node, "text")?.as_bytes()),
                };
                Write::Document { exchange, attempt: attempt_number(node)?, kind, body }
            }
            (None, "event") => {
                let event = ProviderEvent {
                    at: moment(node, "at")?,
                    name: optional(node, "name")?,
                    data: text(node, "data")?,
                };
                Write::Events { exchange, attempt: attempt_number(node)?, events: vec![event] }
            }
            (None, _) => Write::Answer { exchange, json: text(node, "json")? },
        });
        Ok(())
    }

    fn id(&self) -> Read<ConversationId> {
        let missing = || ReadError::Field("the conversation must come first".to_owned());
        self.conversation.clone().ok_or_else(missing)
    }

    async fn flush(&mut self) -> Result<(), CommandError> {
        // Asked before anything of it is written: what is there now was there before.
        for exchange in self.exchanges.iter().skip(self.looked_up) {
            let recording = self.history.recording(exchange.id.clone(), Which::Everything).await?;
            if !recording.events.is_empty() || !recording.sent.is_empty() || recording.answer.is_some() {
                self.recorded.push(exchange.id.clone());
            }
        }
        self.looked_up = self.exchanges.len();
        let (recorded, mut writes) = (&self.recorded, std::mem::take(&mut self.writes));
        writes.retain(|write| match write {
            Write::Document { exchange, .. }
            | Write::Events { exchange, .. }
            | Write::Answer { exchange, .. } => !recorded.contains(exchange),
            _ => true,
        });
        if !writes.is_empty() {
            self.new_entries += self.history.append(Batch::durable(writes)).await?.new_entries;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(ConversationId, usize, usize), CommandError> {
        let Some(id) = self.conversation.clone() else {
            return Err(CommandError::bad_input("the file has no conversation"));
        };
        if !self.is_recording {
            self.writes
                .extend(self.exchanges.iter().cloned().map(|exchange| Write::Exchange(Box::new(exchange))));
        }
        let (at, identified) = (self.updated, Text::default());
        let touched = NewConversation { id: id.clone(), at, identified, title: None, keys: Vec::new() };
        self.writes.push(Write::Conversation(touched));
        self.flush().await?;
        Ok((id, self.new_entries, self.entries))
    }
}

fn check_version(node: &Node<'_>) -> Read<()> {
    match node.expect_field("version")?.expect_u64()? {
        1..=VERSION => Ok(()),
        version => Err(ReadError::Field(format!("version {version} is not known; use a newer program"))),
    }
}

fn exchange(node: &Node<'_>, conversation: ConversationId) -> Read<Exchange> {
    let response = node.field("response").map(|node| {
        let flag = |name: &str| -> Read<bool> { Ok(node.expect_field(name)?.expect_bool()?) };
        Ok::<_, ReadError>(ResponseMark {
            id: text(&node, "id")?,
            stored: flag("stored")?,
            deleted: flag("deleted")?,
        })
    });
    Ok(Exchange {
        id: ExchangeId::new(text(node, "id")?),
        conversation,
        before: optional(node, "before")?.map(EntryId::new),
        after: optional(node, "after")?.map(EntryId::new),
        dialect: dialect(node)?,
        client: optional(node, "client")?,
        asked_model: optional(node, "asked_model")?,
        started: moment(node, "started")?,
        ended: optional_moment(node, "ended")?,
        ending: optional(node, "ending")?,
        status: status(node)?,
        usage: node.field("usage").map(|node| usage(&node)).transpose()?,
        attempts: node.expect_field("attempts")?.items().map(|node| attempt(&node)).collect::<Read<_>>()?,
        response: response.transpose()?,
    })
}

fn attempt(node: &Node<'_>) -> Read<Attempt> {
    Ok(Attempt {
        backend: text(node, "backend")?,
        dialect: dialect(node)?,
        model: optional(node, "model")?,
        strategy: optional(node, "strategy")?,
        started: moment(node, "started")?,
        ended: optional_moment(node, "ended")?,
        status: status(node)?,
        failure: optional(node, "failure")?,
        compaction: node.field("compaction").map(|step| step_id(&step)).transpose()?,
        plan: node.field("plan").map(|plan| plan_sizes(&plan)).transpose()?,
        continues: optional(node, "continues")?,
        recall: optional(node, "recall")?,
    })
}

fn step_id(node: &Node<'_>) -> Read<StepId> {
    Ok(StepId { exchange: ExchangeId::new(text(node, "exchange")?), attempt: attempt_number(node)? })
}

fn attempt_number(node: &Node<'_>) -> Read<u32> {
    let attempt = node.expect_field("attempt")?;
    u32::try_from(attempt.expect_u64()?).map_err(|_| attempt.error("is too large").into())
}

fn plan_sizes(node: &Node<'_>) -> Read<PlanSizes> {
    let counts: Vec<u64> = node.items().map(|count| Ok(count.expect_u64()?)).collect::<Read<_>>()?;
    match counts.as_slice() {
        [before, after, tools] => Ok(PlanSizes { before: *before, after: *after, tools: *tools }),
        _ => Err(node.error("must be three counts").into()),
    }
}

fn usage(node: &Node<'_>) -> Read<Usage> {
    let counts: Vec<u64> = node.items().map(|count| Ok(count.expect_u64()?)).collect::<Read<_>>()?;
    let [input, cache_read, cache_written, output, reasoning] = counts.as_slice() else {
        return Err(node.error("must be five counts").into());
    };
    let (input, cache_read, cache_written) = (*input, *cache_read, *cache_written);
    Ok(Usage { input, cache_read, cache_written, output: *output, reasoning: *reasoning })
}

fn text(node: &Node<'_>, name: &str) -> Result<Text, DecodeError> {
    node.expect_field(name)?.expect_text()
}

fn optional(node: &Node<'_>, name: &str) -> Result<Option<Text>, DecodeError> {
    node.field(name).map(|node| node.expect_text()).transpose()
}

fn moment(node: &Node<'_>, name: &str) -> Read<Moment> {
    let node = node.expect_field(name)?;
    node.raw().parse().map(Moment).map_err(|_| node.error("must be milliseconds").into())
}

fn optional_moment(node: &Node<'_>, name: &str) -> Read<Option<Moment>> {
    node.field(name).map(|_| moment(node, name)).transpose()
}

fn status(node: &Node<'_>) -> Read<Option<u16>> {
    let status = |node: Node<'_>| u16::try_from(node.expect_u64()?).map_err(|_| node.error("is too large"));
    Ok(node.field("status").map(status).transpose()?)
}

fn dialect(node: &Node<'_>) -> Read<Dialect> {
    let node = node.expect_field("dialect")?;
    Dialect::from_name(&node.expect_str()?).ok_or_else(|| node.error("is no dialect").into())
}
