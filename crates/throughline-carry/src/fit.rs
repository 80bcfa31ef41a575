//! Making a branch fit another agent: what it cannot take is left out or retold, and reported entry by entry.

use crate::claude_code::SYNTHETIC;
use crate::{Agent, Millis, codex, opencode, tools};
use std::collections::BTreeMap;
use throughline_core::{
    Action, Ask, Call, Change, Dialect, Entry, ForeignReasoning, Input, Kind, Origin, Outcome, Part, Place,
    Prompt, Report, Return, Role, Rules, Said, Subject, Target, Text, joined_text, prepare,
};
use throughline_wire::encode_request;

/// An entry of a branch, and when it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The entry.
    pub entry: Entry,
    /// When.
    pub at: Millis,
    /// Its number in the branch, by which reports name it; none for what a plan put in.
    pub number: Option<u32>,
}

/// An entry as an agent will be given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The entry.
    pub entry: Entry,
    /// When it was told.
    pub at: Millis,
    /// Whether it stands for everything before it.
    pub is_summary: bool,
}

/// A branch as an agent can take it.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// What it is given.
    pub entries: Vec<Written>,
    /// What was changed for it; entries are named by their number in the branch.
    pub report: Report,
}

/// Makes a branch fit an agent. `report` has what was changed before.
#[must_use]
pub fn fit(told: &[Told], to: Agent, mut report: Report) -> Fitted {
    let mut summaries = Vec::new();
    let mut entries = Vec::with_capacity(told.len());
    for Told { entry, number, .. } in told {
        let place = number.map(|message| Place { message, block: None });
        let entry = Entry { place, ..entry.clone() };
        if let Some(reason) = is_not_carried(&entry, to) {
            report.entry(Action::Dropped, place, reason);
            continue;
        }
        // A digest that a plan put in stands for calls, and hides nothing: what the user said is still shown.
        if matches!(entry.kind, Kind::Summarised(_)) {
            summaries.extend(place);
        }
        entries.push(adapted(entry, to, &mut report));
    }
    let ask = ask(entries, to.dialect());
    // A session may end with the model's words, and declares no tools.
    let rules = Rules { assistant_last: true, tools_for_history: false, ..Rules::of_dialect(to.dialect()) };
    let target = Target {
        origin: Some(own_origin(to)),
        foreign_reasoning: ForeignReasoning::AsText,
        ..Target::new(&rules)
    };
    let (prompt, of_prompt) = prepare(&ask, &target);
    report.strategy = of_prompt.strategy;
    report.changes.extend(of_prompt.changes);
    let prompt = in_writing(prompt, to, &mut report);
    report.sort();
    let entries = dated(prompt.entries, told, &summaries);
    Fitted { entries, report }
}

/// Reports what becomes of the entries when they are written in the agent's form.
fn in_writing<'a>(mut prompt: Prompt<'a>, to: Agent, report: &mut Report) -> Prompt<'a> {
    if to == Agent::Opencode {
        opencode::note_losses(&prompt.entries, report);
        return prompt;
    }
    let mut written = Report::default();
    // The last message of a request loses the white space at its end; that of a session is not the last.
    prompt.entries.push(Entry::said(Role::User, "."));
    let _ = encode_request(&prompt, &mut written);
    prompt.entries.pop();
    let of_entry = |change: &Change| matches!(change.subject, Subject::Entry(_));
    report.changes.extend(written.changes.into_iter().filter(of_entry));
    prompt
}

/// Returns the request that a history would be in, in a dialect other than `not`: nothing of it is a client's.
pub(crate) fn ask(entries: Vec<Entry>, not: Dialect) -> Ask {
    Ask::of(if not == Dialect::Chat { Dialect::Messages } else { Dialect::Chat }, entries)
}

fn dated(entries: Vec<Entry>, told: &[Told], summaries: &[Place]) -> Vec<Written> {
    let times: BTreeMap<u32, Millis> = told.iter().filter_map(|told| Some((told.number?, told.at))).collect();
    let mut last = told.first().map_or(0, |first| first.at);
    let written = |entry: Entry| {
        let at = entry.place.and_then(|place| times.get(&place.message)).map_or(last, |at| *at);
        // An agent sorts what it is given by time; what was put in stands where it stands.
        last = at.max(last);
        let is_summary = entry.place.is_some_and(|place| summaries.contains(&place));
        Written { entry, at: last, is_summary }
    };
    entries.into_iter().map(written).collect()
}

/// Returns why an entry is not for another agent, if it is not.
fn is_not_carried(entry: &Entry, to: Agent) -> Option<&'static str> {
    if entry.is_hidden() {
        return Some("the gateway made and answered it; no agent saw it");
    }
    if entry.origin.as_ref().is_some_and(|origin| origin.model == SYNTHETIC) {
        return Some("the agent said it in the model's place");
    }
    match &entry.kind {
        Kind::HandedOver(_) => Some("a note in the record"),
        Kind::Said(said) => {
            let of_agent = matches!(said.role, Role::System | Role::Developer)
                || said.role == Role::User && codex::is_scaffold(&joined_text(&said.parts));
            (of_agent && !is_own(entry, to)).then_some("instructions of the agent that it came from")
        }
        _ => None,
    }
}

/// Says whether an entry was an agent's own: what it told its model is told in its dialect.
fn is_own(entry: &Entry, agent: Agent) -> bool {
    agent == Agent::Codex
        && entry.wire.as_ref().is_some_and(|wire| wire.dialect == Dialect::Responses)
        && entry.as_said().is_some_and(|said| !said.standing)
}

fn adapted(entry: Entry, to: Agent, report: &mut Report) -> Entry {
    let entry = match &entry.kind {
        Kind::Summarised(summary) => {
            let said =
                Said { role: Role::User, parts: vec![Part::text(summary.text.clone())], standing: false };
            entry.altered(Kind::Said(said))
        }
        Kind::Called(call) => renamed(&entry, call, to, report).unwrap_or(entry),
        Kind::Returned(returned) => settled(&entry, returned, to, report).unwrap_or(entry),
        _ => entry,
    };
    // What an agent's own models thought goes back to it, whichever of them it was.
    let is_own = entry.origin.as_ref().is_some_and(|origin| origin.backend == to.name());
    if is_own { Entry { origin: Some(own_origin(to)), ..entry } } else { entry }
}

/// Marks a failure where the other agent looks for it: Codex has it in the words of the result, others beside them.
fn settled(entry: &Entry, returned: &Return, to: Agent, report: &mut Report) -> Option<Entry> {
    let outcome = match (returned.outcome, to) {
        (Outcome::Ok, Agent::ClaudeCode | Agent::Opencode) => Outcome::Error,
        (Outcome::Error, Agent::Codex) => Outcome::Ok,
        _ => return None,
    };
    if !codex::says_failed(&joined_text(&returned.parts)) {
        return None;
    }
    if outcome == Outcome::Error {
        report.entry(Action::Translated, entry.place, "it says that the command failed, and is marked so");
    }
    Some(entry.altered(Kind::Returned(Return { outcome, ..returned.clone() })))
}

fn own_origin(agent: Agent) -> Origin {
    Origin { backend: agent.name().into(), dialect: agent.dialect(), model: Text::default() }
}

fn renamed(entry: &Entry, call: &Call, to: Agent, report: &mut Report) -> Option<Entry> {
    let Input::Arguments(arguments) = &call.input else { return None };
    let (name, arguments) = tools::counterpart(to, &call.name, arguments)?;
    report.entry(
        Action::Renamed,
        entry.place,
        format!("{} is {name} with {to}, which takes the same", call.name),
    );
    let input = Input::Arguments(arguments.into());
    Some(entry.altered(Kind::Called(Call { name: name.into(), input, ..call.clone() })))
}
