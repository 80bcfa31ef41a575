//! Reading the lines of a session.

use crate::decode::{self, object, text};
use crate::moment::parse_iso;
use crate::{Agent, Answered, Contents, Damage, Facts, Millis, Piece, Spot};
use std::borrow::Cow;
use throughline_core::{Dialect, Entry, Kind, Origin, Role, Summary, Text, Usage, joined_text};
use throughline_wire::json::{Document, Edit, Kind as JsonKind, Node, Writer, patch, quote};

/// How what Codex says to its model in the user's name begins: facts about the surroundings, not a question.
const SCAFFOLDS: [&str; 9] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<skills_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
];

/// Fields that Codex adds to an item for itself.
const OWN_FIELD: &str = "internal_chat_message_metadata_passthrough";

/// Reads a session line by line.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    spots: u32,
    tip: Option<Spot>,
    /// Where each turn of the user began: what stood before it.
    turns: Vec<Option<Spot>>,
    entries: u32,
    /// How many answers were counted, and what they took together by then.
    answers: u32,
    total: Option<String>,
}

/// Says whether words in the user's name are Codex's own.
pub(crate) fn is_scaffold(words: &str) -> bool {
    SCAFFOLDS.iter().any(|scaffold| words.trim_start().starts_with(scaffold))
}

/// Reads the oldest form, a document of facts and items.
pub(crate) fn read_document(document: &Document, contents: &mut Contents) -> Result<(), Damage> {
    let (root, mut reader) = (document.root(), Reader::default());
    if let Some(session) = root.field("session") {
        Reader::begin(&session, &mut contents.facts);
    }
    let items = root.field("items").ok_or_else(|| Damage("a session has `items`".to_owned()))?;
    for item in items.items() {
        match reader.item(&item, None, &mut contents.facts) {
            Ok(piece) => contents.pieces.extend(piece),
            Err(Damage(error)) => contents.damaged.push(Damage(format!("{}: {error}", item.path()))),
        }
    }
    Ok(())
}

impl Reader {
    /// Reads one line.
    pub fn line(&mut self, line: &str, facts: &mut Facts) -> Result<Option<Piece>, Damage> {
        let document = object(line)?;
        let root = document.root();
        let at = root.field("timestamp").and_then(|at| parse_iso(&at.as_str()?));
        facts.saw(at);
        let kind = text(&root, "type").unwrap_or_default();
        let Some(payload) = root.field("payload") else { return self.bare(&root, &kind, at, facts) };
        match kind.as_str() {
            "session_meta" => Self::begin(&payload, facts),
            "response_item" => return self.item(&payload, at, facts),
            "compacted" => return Ok(self.compacted(&payload, at)),
            "turn_context" => {
                facts.model = text(&payload, "model").or_else(|| facts.model.take());
                facts.cwd = facts.cwd.take().or_else(|| text(&payload, "cwd"));
            }
            "event_msg" if payload.field("type").is_some_and(|kind| kind.is_str("token_count")) => {
                return Ok(self.counted(&payload, at, facts));
            }
            "event_msg" if payload.field("type").is_some_and(|kind| kind.is_str("thread_rolled_back")) => {
                self.roll_back(payload.field("num_turns").and_then(|turns| turns.as_u64()));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Reads a line of an older version: an item, or the facts of the session.
    fn bare(
        &mut self,
        root: &Node<'_>,
        kind: &str,
        at: Option<Millis>,
        facts: &mut Facts,
    ) -> Result<Option<Piece>, Damage> {
        if !kind.is_empty() {
            return self.item(root, at, facts);
        }
        if root.field("id").is_some() && root.field("record_type").is_none() {
            Self::begin(root, facts);
        }
        Ok(None)
    }

    fn begin(meta: &Node<'_>, facts: &mut Facts) {
        if facts.id.is_some() {
            // A forked session repeats the facts of the one that it came from.
            return;
        }
        facts.id = text(meta, "id").or_else(|| text(meta, "session_id"));
        facts.cwd = text(meta, "cwd");
        facts.version = text(meta, "cli_version");
        facts.parent = text(meta, "forked_from_id").or_else(|| text(meta, "parent_thread_id"));
        facts.saw(meta.field("timestamp").and_then(|at| parse_iso(&at.as_str()?)));
    }

    fn item(
        &mut self,
        item: &Node<'_>,
        at: Option<Millis>,
        facts: &mut Facts,
    ) -> Result<Option<Piece>, Damage> {
        if item.kind() != JsonKind::Object {
            return Err(Damage("an item must be an object".to_owned()));
        }
        let kind = text(item, "type").unwrap_or_default();
        if kind == "ghost_snapshot" {
            return Ok(None);
        }
        let mut entries = decode::entries(Dialect::Responses, &plain(item, &kind))?;
        for entry in &mut entries {
            if is_the_models(entry) {
                entry.origin = facts.model.clone().map(|model| Origin {
                    backend: Text::from_static(Agent::Codex.name()),
                    dialect: Dialect::Responses,
                    model,
                });
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let said = entries.iter().filter_map(Entry::as_said).find(|said| said.role == Role::User);
        if let Some(words) = said.map(|said| joined_text(&said.parts)).filter(|words| !is_scaffold(words)) {
            self.turns.push(self.tip);
            facts.turns += 1;
            facts.begin_with(&words);
        }
        facts.counted(&entries);
        Ok(Some(self.grown(entries, at)))
    }

    /// Returns what stands for everything before it; a summary that only its provider can read stands for nothing.
    fn compacted(&mut self, payload: &Node<'_>, at: Option<Millis>) -> Option<Piece> {
        let words = text(payload, "message")?;
        let summary = Summary { text: words, covers: self.entries };
        Some(self.grown(vec![Entry::new(Kind::Summarised(summary))], at))
    }

    fn grown(&mut self, entries: Vec<Entry>, at: Option<Millis>) -> Piece {
        let (spot, behind) = (Spot(self.spots), self.tip);
        self.spots += 1;
        self.entries += u32::try_from(entries.len()).unwrap_or(u32::MAX);
        self.tip = Some(spot);
        Piece { spot, behind, thread: None, at, entries, answered: None }
    }

    /// Reads what the latest answer took: it stands behind the answer, and again where nothing was added.
    fn counted(&mut self, payload: &Node<'_>, at: Option<Millis>, facts: &Facts) -> Option<Piece> {
        let info = payload.field("info").filter(|info| !info.is_null())?;
        let total = info.field("total_token_usage").map(|total| total.raw().to_owned());
        let last = info.field("last_token_usage")?;
        if total.is_some() && self.total == total || self.tip.is_none() {
            return None;
        }
        self.total = total;
        self.answers += 1;
        let count = |name: &str| last.field(name).and_then(|count| count.as_u64()).unwrap_or(0);
        let usage = Usage {
            input: count("input_tokens"),
            cache_read: count("cached_input_tokens"),
            cache_written: 0,
            output: count("output_tokens"),
            reasoning: count("reasoning_output_tokens"),
        };
        let answered = Answered {
            id: format!("answer-{}", self.answers).into(),
            model: facts.model.clone(),
            usage: Some(usage),
            failure: None,
        };
        Some(Piece { answered: Some(answered), ..self.grown(Vec::new(), at) })
    }

    fn roll_back(&mut self, turns: Option<u64>) {
        let turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(1);
        let kept = self.turns.len().saturating_sub(turns);
        if let Some(before) = self.turns.get(kept) {
            self.tip = *before;
            self.turns.truncate(kept);
        }
    }
}

const fn is_the_models(entry: &Entry) -> bool {
    match &entry.kind {
        Kind::Thought(_) | Kind::Called(_) => true,
        Kind::Said(said) => matches!(said.role, Role::Assistant),
        _ => false,
    }
}

/// Returns an item as a provider takes it: without Codex's own fields, and with what is no longer said in its present
/// form.
fn plain<'n>(item: &Node<'n>, kind: &str) -> Cow<'n, str> {
    if kind == "local_shell_call" {
        return Cow::Owned(shell_call(item));
    }
    let output = item.field("output").filter(|output| output.kind() == JsonKind::Object);
    if let Some(output) = output {
        return Cow::Owned(plain_output(item, &output));
    }
    if item.field(OWN_FIELD).is_none() {
        return Cow::Borrowed(item.raw());
    }
    patch(item.raw(), &[Edit::Remove { name: OWN_FIELD }]).map_or(Cow::Borrowed(item.raw()), Cow::Owned)
}

/// Returns a call of the shell that models once had built in as a call of a tool of that name.
fn shell_call(item: &Node<'_>) -> String {
    let id = text(item, "call_id").or_else(|| text(item, "id")).unwrap_or_default();
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("type", "function_call");
    writer.field_str("call_id", &id);
    writer.field_str("name", "local_shell");
    writer.field_str("arguments", item.field("action").map_or("{}", |action| action.raw()));
    writer.end_object();
    writer.into_string()
}

/// Returns a result that was once an object with its text.
fn plain_output(item: &Node<'_>, output: &Node<'_>) -> String {
    let words = output.field("content").and_then(|content| content.as_str());
    let words = words.map_or_else(|| output.raw().to_owned(), Cow::into_owned);
    let failed = output.field("success").and_then(|success| success.as_bool()) == Some(false);
    let mark = throughline_core::outcome::mark(throughline_core::Outcome::Error);
    let words = quote(&if failed { format!("{mark}\n{words}") } else { words });
    let edits = [Edit::Set { name: "output", value: &words }, Edit::Remove { name: OWN_FIELD }];
    patch(item.raw(), &edits).unwrap_or_else(|_| item.raw().to_owned())
}
