//! Reading the lines of a session.

use super::tree::{Links, Place, Tree};
use crate::decode::{self, flag, object, text};
use crate::moment::parse_iso;
use crate::{Agent, Answered, Damage, Facts, Millis, Piece, Spot};
use throughline_core::{Dialect, Entry, Kind, Origin, Role, Summary, Text, Usage, joined_text};
use throughline_wire::json::{Kind as JsonKind, Node, quote};

/// The model of what the agent says in the model's place: errors, interruptions.
pub(crate) const SYNTHETIC: &str = "<synthetic>";

/// Reads a session line by line.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    tree: Tree,
    spots: u32,
    /// Whether the file is a sub-agent's own; known from its first line.
    is_sub_agent: Option<bool>,
    /// Whether the title was given, rather than taken from what was said.
    is_titled: bool,
}

impl Reader {
    /// Reads one line.
    pub fn line(&mut self, line: &str, facts: &mut Facts) -> Result<Option<Piece>, Damage> {
        let document = object(line)?;
        let root = document.root();
        let kind = text(&root, "type").unwrap_or_default();
        self.note(&root, &kind, facts);
        match kind.as_str() {
            "user" | "assistant" => self.spoken(&root, kind == "assistant", facts),
            _ => {
                self.pass(&root);
                Ok(None)
            }
        }
    }

    /// Takes note of what a line says about the session.
    fn note(&mut self, root: &Node<'_>, kind: &str, facts: &mut Facts) {
        let session = text(root, "sessionId");
        if self.is_sub_agent.is_none()
            && let Some(session) = session.clone().filter(|_| root.field("uuid").is_some())
        {
            let agent = text(root, "agentId").filter(|_| flag(root, "isSidechain"));
            self.is_sub_agent = Some(agent.is_some());
            if let Some(agent) = agent {
                facts.id = Some(format!("{session}.{agent}").into());
                facts.parent = Some(session);
            }
        }
        facts.id = facts.id.take().or(session);
        facts.saw(moment(root));
        facts.cwd = facts.cwd.take().or_else(|| text(root, "cwd"));
        facts.version = text(root, "version").or_else(|| facts.version.take());
        let title = match kind {
            "custom-title" => text(root, "customTitle"),
            "ai-title" => text(root, "aiTitle").filter(|_| !self.is_titled),
            "summary" => text(root, "summary").filter(|_| !self.is_titled),
            _ => None,
        };
        if let Some(title) = title {
            self.is_titled = true;
            facts.title = Some(title);
        }
    }

    fn pass(&mut self, root: &Node<'_>) {
        let id = text(root, "uuid");
        let parent = parent(root);
        if id.is_some() {
            let is_side = self.is_side(root);
            self.tree.pass(Links {
                id: id.as_deref(),
                parent: parent.as_deref(),
                is_side,
                ..Links::default()
            });
        }
    }

    fn spoken(
        &mut self,
        root: &Node<'_>,
        is_answer: bool,
        facts: &mut Facts,
    ) -> Result<Option<Piece>, Damage> {
        let message = root.field("message").ok_or_else(|| Damage("a message is missing".to_owned()))?;
        if message.kind() != JsonKind::Object {
            return Err(Damage("`message` must be an object".to_owned()));
        }
        let id = text(root, "uuid");
        if id.as_ref().is_some_and(|id| self.tree.knows(id)) {
            // Versions that copied a session when it was resumed wrote some lines twice.
            return Ok(None);
        }
        let mut entries = entries(&message, is_answer)?;
        let answer = text(&message, "id").filter(|_| is_answer);
        let result_of = entries.iter().find_map(|entry| entry.as_return()?.call_id.clone());
        let parent = parent(root);
        let is_side = self.is_side(root);
        let links = Links {
            id: id.as_deref(),
            parent: parent.as_deref(),
            is_side,
            answer: answer.as_deref(),
            result_of: result_of.as_deref(),
        };
        if entries.is_empty() {
            self.tree.pass(links);
            return Ok(None);
        }
        let mut place = self.tree.place(links);
        if flag(root, "isCompactSummary") {
            entries = vec![self.summary(&entries, &mut place)];
        }
        if !is_side {
            count_turn(root, &entries, facts);
        }
        facts.model = model_of(&entries).or_else(|| facts.model.take());
        facts.counted(&entries);
        let spot = self.next_spot();
        let (behind, thread) = (place.behind, self.tree.thread_name(&place));
        let calls: Vec<Text> = entries.iter().filter_map(|entry| Some(entry.as_call()?.id.clone())).collect();
        let calls: Vec<&str> = calls.iter().map(Text::as_str).collect();
        self.tree.grow(links, spot, entries.len(), &calls, place);
        let answered = if is_answer { answered(root, &message, &entries) } else { None };
        Ok(Some(Piece { spot, behind, thread, at: moment(root), entries, answered }))
    }

    /// Returns what stands for everything before it. Older versions began a new tree there; it goes on here.
    fn summary(&self, entries: &[Entry], place: &mut Place) -> Entry {
        let parts: Vec<_> =
            entries.iter().filter_map(Entry::as_said).flat_map(|said| said.parts.clone()).collect();
        place.behind = place.behind.or_else(|| self.tree.tip(place));
        let covers = self.tree.entries_before(place);
        Entry::new(Kind::Summarised(Summary { text: joined_text(&parts), covers }))
    }

    fn is_side(&self, root: &Node<'_>) -> bool {
        flag(root, "isSidechain") && self.is_sub_agent != Some(true)
    }

    const fn next_spot(&mut self) -> Spot {
        self.spots += 1;
        Spot(self.spots - 1)
    }
}

/// Returns what an answer took. Each of its lines says so, and the last one says all of it.
fn answered(root: &Node<'_>, message: &Node<'_>, entries: &[Entry]) -> Option<Answered> {
    let id = text(message, "id").or_else(|| text(root, "uuid"))?;
    if flag(root, "isApiErrorMessage") {
        let parts: Vec<_> =
            entries.iter().filter_map(Entry::as_said).flat_map(|said| said.parts.clone()).collect();
        // What stands for the failure is no answer of this id.
        let id = text(root, "uuid").unwrap_or(id);
        return Some(Answered { id, model: None, usage: None, failure: Some(joined_text(&parts)) });
    }
    let usage = message.field("usage")?;
    let count = |name: &str| usage.field(name).and_then(|count| count.as_u64()).unwrap_or(0);
    let (cache_read, cache_written) =
        (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let usage = Usage {
        input: count("input_tokens").saturating_add(cache_read).saturating_add(cache_written),
        cache_read,
        cache_written,
        output: count("output_tokens"),
        reasoning: 0,
    };
    let model = text(message, "model").filter(|model| model != SYNTHETIC)?;
    Some(Answered { id, model: Some(model), usage: Some(usage), failure: None })
}

fn moment(root: &Node<'_>) -> Option<Millis> {
    parse_iso(&root.field("timestamp")?.as_str()?)
}

fn parent(root: &Node<'_>) -> Option<Text> {
    text(root, "parentUuid").or_else(|| text(root, "logicalParentUuid"))
}

/// Decodes the content of a message, without what the agent and the provider noted beside it.
fn entries(message: &Node<'_>, is_answer: bool) -> Result<Vec<Entry>, Damage> {
    let Some(content) = message.field("content").filter(|content| !content.is_null()) else {
        return Ok(Vec::new());
    };
    let role = text(message, "role").unwrap_or_else(|| if is_answer { "assistant" } else { "user" }.into());
    let message_text = format!(r#"{{"role":{},"content":{}}}"#, quote(&role), content.raw());
    let mut entries = decode::entries(Dialect::Messages, &message_text)?;
    if is_answer {
        let origin = text(message, "model").map(|model| Origin {
            backend: Text::from_static(Agent::ClaudeCode.name()),
            dialect: Dialect::Messages,
            model,
        });
        entries.iter_mut().for_each(|entry| entry.origin.clone_from(&origin));
    }
    Ok(entries)
}

fn model_of(entries: &[Entry]) -> Option<Text> {
    let origin = entries.first()?.origin.as_ref()?;
    Some(origin.model.clone()).filter(|model| model != SYNTHETIC)
}

/// Counts what the user asked; results, notes of the agent and summaries are no questions.
fn count_turn(root: &Node<'_>, entries: &[Entry], facts: &mut Facts) {
    let said = entries.iter().filter_map(Entry::as_said).find(|said| said.role == Role::User);
    if let Some(said) = said.filter(|_| !flag(root, "isMeta")) {
        facts.turns += 1;
        let words = joined_text(&said.parts);
        if !words.starts_with('<') {
            facts.begin_with(&words);
        }
    }
}
