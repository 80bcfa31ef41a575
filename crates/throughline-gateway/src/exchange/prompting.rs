//! A request rendered for one backend.

use super::answer_stream::StreamOutput;
use super::background_request;
use super::countable::Countable;
use super::editing;
use super::footing::{self, Footing};
use super::healing;
use super::place::{self, Placed};
use super::planning::Planned;
use super::recall;
use super::unshown;
use crate::capability::Repairs;
use crate::config::Backend;
use crate::routing::Destination;
use crate::view;
use bytes::Bytes;
use std::collections::BTreeSet;
use throughline_core::{
    Absence, Action, Ask, Dialect, Entry, Extra, Handover, Kind, Origin, Prompt, Provenance, Report, Side,
    Strategy, Subject, Target, Text, Tool, ToolChoice, ToolForm, Trace, briefed, prepare, without_reasoning,
};
use throughline_wire::json::Writer;
use throughline_wire::{
    ClientNames, Restorer, Stamp, StreamEncoder, encode_request, path, with_hosted_pairs,
};

/// A request rendered for one backend, with what it takes to read the answer.
pub struct Prompted {
    /// The body to send.
    pub body: Bytes,
    /// What was changed.
    pub report: Report,
    /// Puts the answer back into the client's terms.
    pub restorer: Restorer,
    /// Whether answers of the backend can be forwarded as they come.
    pub forwards: bool,
    /// Whom it is for.
    pub destination: Destination,
    /// Whether it goes on from what the backend keeps.
    pub continues: bool,
    /// What its size is counted from.
    pub countable: Countable,
    /// How many of the changes a plan made that the record names with an earlier attempt; none without a plan.
    plan: Option<usize>,
    /// Whether it would matter to this request if there were more history before it.
    pub needs_whole: bool,
    /// Whether there is more in the body than what is counted.
    pub abridged: bool,
    /// The handover that it makes, if it makes one.
    pub handover: Option<Handover>,
    /// Whether there are tool calls or results in it.
    pub shows_tools: bool,
    /// What the client is told about what it asked to have done with its history.
    pub applied: Option<Text>,
}

/// How a request is shown to a backend.
#[derive(Clone, Copy, Debug)]
pub struct Showing<'a> {
    /// How tool history is shown.
    pub strategy: Strategy,
    /// The answer that it goes on from, if the backend keeps that.
    pub footing: Option<&'a Footing>,
    /// Whether the backend may be asked to keep the answer.
    pub keep: bool,
    /// What is taken out because not everything fits.
    pub planned: Option<&'a Planned>,
    /// The tool by which the model can have back what was taken out or cut, if it is offered one.
    pub recall: Option<&'a Text>,
    /// Whether something of the answers may be hidden from the client, so that they cannot be forwarded.
    pub hides: bool,
    /// Whether tools may be called.
    pub may_call: bool,
    /// What is repaired because the backend refused it.
    pub repairs: Repairs,
}

impl Showing<'_> {
    /// Everything, as tool calls and results.
    pub const WHOLE: Self = Self {
        strategy: Strategy::Native,
        footing: None,
        keep: true,
        planned: None,
        recall: None,
        hides: false,
        may_call: true,
        repairs: Repairs::NONE,
    };
}

/// Fields of a request that are ours to see to: those that name state, and that nobody need wait.
const OWN_FIELDS: [&str; 3] = ["previous_response_id", "conversation", background_request::FIELD];

/// Renders a request for a backend.
#[must_use]
pub fn prompt(ask: &Ask, placed: &Placed, destination: &Destination, showing: Showing<'_>) -> Prompted {
    let backend = &destination.backend;
    let mut planned = Report::default();
    let mut expanded = expanded(ask, placed, backend, showing, &mut planned);
    let mut edited = Report::default();
    if let Some(edits) = editing::honoured(ask, backend) {
        editing::take_out(&mut expanded, &edits, &mut edited);
    }
    let traits = backend.model_facts(&destination.model).traits.map(|traits| traits.value);
    let rules = healing::repaired_rules(&backend.rules, showing.repairs, traits);
    let is_forced = matches!(expanded.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_)));
    if is_forced && traits.is_some_and(|traits| traits.refuses_forced_tools) {
        choose_tools(&mut expanded, ToolChoice::Auto, "auto");
        edited.field(Action::Repaired, "tool_choice", "the model refuses to be made to call a tool");
    }
    let target = Target {
        strategy: showing.strategy,
        origin: Some(origin(destination)),
        foreign_reasoning: backend.reasoning.foreign(),
        model: Some(destination.model.clone()),
        ..Target::new(&rules)
    };
    let (mut prompt, mut report) = prepare(&expanded, &target);
    let plan = showing.planned.map(|plan| plan.counts_only(planned.changes.len()));
    report.changes.splice(0..0, planned.changes);
    report.provenance.absent.splice(0..0, planned.provenance.absent);
    let brief = placed.brief_for(&backend.name).filter(|_| showing.footing.is_none());
    if brief.is_some() {
        tell_brief(placed, &mut report);
    }
    let shows_tools =
        prompt.entries.iter().any(|entry| matches!(entry.kind, Kind::Called(_) | Kind::Returned(_)));
    if showing.footing.is_some() && !prompt.stays_in_dialect() {
        let whole: Vec<Trace> = prompt.entries.iter().map(|entry| entry.trace.clone()).collect();
        if !footing::cut(&mut prompt.entries) {
            return self::prompt(ask, placed, destination, Showing { footing: None, ..showing });
        }
        // What is not sent was not changed either.
        report.changes.retain(|change| change.subject != Subject::Entry(None));
        whole.iter().for_each(|trace| report.leave_out_trace(trace, Absence::Held));
    }
    if !showing.keep && ask.settings.store != Some(false) && backend.dialect == Dialect::Responses {
        report.field(Action::Translated, "store", "the backend refuses to store");
    }
    report.changes.append(&mut edited.changes);
    for repair in showing.repairs.iter() {
        report.field(Action::Repaired, "history", repair.reason());
    }
    if let Some(asked) = &destination.unknown {
        let model = &destination.model;
        let reason = format!("no backend is known to have `{asked}`: the active one is asked for `{model}`");
        report.field(Action::Translated, "model", reason);
    }
    let allowed = allowed(ask, backend);
    for tool in ask.tools.iter().filter(|tool| !may_be_offered(tool, allowed.as_ref())) {
        let reason = "`tool_choice` does not allow it, and the target cannot be told so";
        report.note(Action::Dropped, Subject::Tool(tool.name.clone()), reason);
    }
    let body = encode_request(&prompt, &mut report);
    unshown::account(&mut report.provenance, ask, placed, showing.footing.is_some());
    if plan.is_none() {
        // The changes of a plan come first, and the record counts on that.
        report.sort();
    }
    let (restorer, needs_whole) = (Restorer::new(&prompt), needs_whole(&prompt));
    // A client that left its answer to be generated knows it by an id of ours.
    let forwards = forwards(&prompt) && !background_request::is_wanted(ask) && !showing.hides;
    let continues = showing.footing.is_some();
    let format = expanded.settings.format.clone();
    let countable = Countable { entries: prompt.entries, tools: prompt.tools, format };
    let (destination, body) = (destination.clone(), body.into());
    Prompted {
        body,
        report,
        restorer,
        forwards,
        destination,
        continues,
        countable,
        plan,
        needs_whole,
        abridged: false,
        handover: placed.handover.as_ref().map(|takeover| takeover.handover.clone()),
        shows_tools,
        applied: None,
    }
}

/// What the report calls a prompt in which a brief stands for a part of the history.
pub const BRIEF: &str = "brief";

/// Says in the report what a brief stands for: entry by entry where it is given, and in a line later on.
fn tell_brief(placed: &Placed, report: &mut Report) {
    report.strategy = BRIEF;
    match &placed.handover {
        Some(takeover) if takeover.handover.brief.is_some() => {
            report.changes.extend(takeover.changes.iter().cloned());
        }
        _ => report.entry(Action::Translated, None, "what came before the handover is told in a brief"),
    }
}

/// Returns the history that a backend is shown if all of it fits, or as much of it as a brief leaves.
#[must_use]
pub fn history(ask: &Ask, placed: &Placed, backend: &Backend) -> Vec<Entry> {
    noted_history(ask, placed, backend, &mut Provenance::default())
}

/// Returns the history that a backend is shown, and notes why the rest is not.
fn noted_history(ask: &Ask, placed: &Placed, backend: &Backend, provenance: &mut Provenance) -> Vec<Entry> {
    let mut entries = place::shown(ask, placed, backend);
    if let Some(briefed) = briefed(&entries, &backend.name) {
        // What is shown beside the brief is placed, and then not absent.
        entries.iter().for_each(|entry| provenance.leave_out(&entry.trace, told_by_brief(entry)));
        entries = briefed;
    }
    if !backend.reasoning.keeps_own() {
        note_reasoning_off(&entries, provenance);
        entries = without_reasoning(entries);
    }
    with_hosted_pairs(entries, &backend.rules)
}

/// Returns why an entry is not shown that a brief stands for.
const fn told_by_brief(entry: &Entry) -> Absence {
    match &entry.kind {
        Kind::Thought(_) => Absence::ReasoningNotBriefed,
        Kind::HandedOver(_) => Absence::InternalNote,
        Kind::Opaque { .. } | Kind::Reference { .. } => Absence::NoCounterpart,
        Kind::Said(_) | Kind::Called(_) | Kind::Returned(_) | Kind::Summarised(_) => Absence::Briefed,
    }
}

fn note_reasoning_off(entries: &[Entry], provenance: &mut Provenance) {
    let reasoning = entries.iter().filter(|entry| matches!(entry.kind, Kind::Thought(_)));
    reasoning.for_each(|entry| provenance.leave_out(&entry.trace, Absence::ReasoningOff));
}

/// Returns the request with the history that it leans on, and without the words by which it leans on it.
fn expanded(ask: &Ask, placed: &Placed, backend: &Backend, showing: Showing<'_>, report: &mut Report) -> Ask {
    let mut expanded = match showing.footing {
        Some(footing) => footing.continued(ask, placed),
        None => {
            let entries = noted_history(ask, placed, backend, &mut report.provenance);
            let entries = match showing.planned {
                Some(planned) => planned.plan.apply(&entries, report),
                None => entries,
            };
            let mut expanded = Ask { entries, previous: None, conversation: None, ..ask.clone() };
            expanded.tools.extend(showing.recall.map(recall::tool));
            expanded.fields.retain(|field| !OWN_FIELDS.contains(&field.name.as_str()));
            expanded
        }
    };
    if !backend.reasoning.keeps_own() {
        note_reasoning_off(&expanded.entries, &mut report.provenance);
        expanded.entries = without_reasoning(expanded.entries);
    }
    if backend.dialect == Dialect::Responses && !showing.keep {
        footing::store(&mut expanded, false);
    } else if ask.dialect != Dialect::Responses && footing::leaves_to_keep(ask, backend) {
        footing::store(&mut expanded, true);
        expanded.entries = footing::instructed(expanded.entries);
    }
    expanded.fields.retain(|field| field.name != background_request::FIELD);
    expanded.extras.retain(|name| name != background_request::FIELD);
    let allowed = allowed(ask, backend);
    expanded.tools.retain(|tool| may_be_offered(tool, allowed.as_ref()));
    expanded.entries = healing::repaired_entries(expanded.entries, showing.repairs);
    if !showing.may_call {
        choose_tools(&mut expanded, ToolChoice::None, "none");
    }
    expanded
}

/// Sets which tools may be called, by the word that the dialects have for it.
fn choose_tools(ask: &mut Ask, choice: ToolChoice, word: &str) {
    const FIELD: &str = "tool_choice";
    let value = match ask.dialect {
        Dialect::Messages => format!(r#"{{"type":"{word}"}}"#),
        Dialect::Chat | Dialect::Responses => format!("\"{word}\""),
    };
    ask.tool_choice = Some(choice);
    ask.fields.retain(|field| field.name != FIELD);
    ask.fields.push(Extra { name: Text::from_static(FIELD), value: Text::from(value) });
}

/// Returns the tools that alone are put on offer: one dialect has no word for tools that are shown and must not be
/// called, and a model that calls one has answered in vain.
fn allowed<'a>(ask: &'a Ask, backend: &Backend) -> Option<BTreeSet<&'a Text>> {
    match &ask.tool_choice {
        Some(ToolChoice::Allowed { names, .. }) if backend.dialect == Dialect::Messages => {
            Some(names.iter().collect())
        }
        _ => None,
    }
}

fn may_be_offered(tool: &Tool, allowed: Option<&BTreeSet<&Text>>) -> bool {
    tool.is_hosted() || allowed.is_none_or(|allowed| allowed.contains(&tool.name))
}

/// Returns a destination as whoever says what it answers.
pub fn origin(destination: &Destination) -> Origin {
    Origin {
        backend: destination.backend.name.clone(),
        dialect: destination.backend.dialect,
        model: destination.model.clone(),
    }
}

/// Says whether the backend's answers are in the client's dialect and terms already.
fn forwards(prompt: &Prompt<'_>) -> bool {
    let is_custom = |tool: &Tool| matches!(tool.form, ToolForm::Custom { .. });
    prompt.stays_in_dialect()
        && prompt.names.renamed().next().is_none()
        && (prompt.rules.custom_tools || !prompt.ask.tools.iter().any(is_custom))
}

/// Says whether the beginning of a turn under way decides about reasoning: the rounds of a tool loop are one
/// turn, and if the last of them does not open with a thought, the first has to.
fn needs_whole(prompt: &Prompt<'_>) -> bool {
    let asked = prompt.ask.settings.reasoning.as_ref().filter(|reasoning| !reasoning.is_off());
    if asked.is_none() || !prompt.rules.reasoning.leads_open_turn {
        return false;
    }
    let mut rounds = prompt.entries.chunk_by(|a, b| is_assistant(a) == is_assistant(b)).rev();
    let last = match rounds.next() {
        Some(round) if is_assistant(&round[0]) => Some(round),
        Some(round) if round.iter().any(|entry| entry.as_return().is_some()) => rounds.next(),
        _ => None,
    };
    last.is_some_and(|round| !matches!(round[0].kind, Kind::Thought(_)))
}

fn is_assistant(entry: &Entry) -> bool {
    entry.side() == Side::Assistant
}

impl Prompted {
    /// Says whether something was taken out because not everything fits.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        self.plan.is_some()
    }

    /// Returns how the answer's events reach the client; `input_tokens` is what the prompt is thought to take.
    #[must_use]
    pub fn stream_output(&self, ask: &Ask, stamp: &Stamp, input_tokens: Option<u64>) -> StreamOutput {
        if self.forwards {
            let model = stamp.model.clone().filter(|model| *model != self.destination.model);
            StreamOutput::Forward {
                dialect: ask.dialect,
                names: ClientNames { model, ..ClientNames::for_request(ask) },
            }
        } else {
            // Clients take a count of zero at the start for an empty context; ours stands in until the backend
            // reports.
            let stamp = Stamp { input_tokens, ..stamp.clone() };
            StreamOutput::Translate(Box::new(StreamEncoder::new(ask.dialect, stamp, ask)))
        }
    }

    /// Returns the report in one line: what was changed, how tool history is shown, and whether the backend's
    /// own state stands for a part of it.
    #[must_use]
    pub fn summary(&self) -> String {
        let state = if self.continues { " state=provider" } else { "" };
        let handover = self.handover.as_ref().map(|handover| {
            let mode = if handover.brief.is_some() { BRIEF } else { Strategy::Native.name() };
            let from = handover.from.as_ref().map_or_else(
                || "nobody".to_owned(),
                // Where the backend is the same, it is its model that is another.
                |from| match from.backend == handover.to.backend && handover.continues.is_none() {
                    true => format!("{}/{}", from.backend, from.model),
                    false => from.backend.to_string(),
                },
            );
            format!(" handover={mode} from={from} by={}", handover.by)
        });
        format!("{}{state}{}", self.report, handover.unwrap_or_default())
    }

    /// Returns the report as the record keeps it.
    #[must_use]
    pub fn report_json(&self, ask: &Ask) -> String {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("summary", &self.summary());
        if let Some(handover) = &self.handover {
            writer.key("handover");
            view::write_handover(&mut writer, handover);
        }
        writer.key("changes");
        writer.begin_array();
        for change in &self.report.changes[self.plan.unwrap_or_default()..] {
            writer.begin_object();
            writer.field_str("action", change.action.name());
            writer.field_str("place", &path(ask.dialect, &change.subject));
            writer.field_str("reason", &change.reason);
            writer.end_object();
        }
        writer.end_array();
        writer.end_object();
        writer.into_string()
    }
}
