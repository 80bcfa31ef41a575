//! One request body of a dialect as a session, and a branch as one request body.

use crate::fit::ask;
use crate::{Damage, Facts, Piece, Spot, Told};
use std::collections::BTreeMap;
use throughline_core::{
    Action, Ask, Dialect, Entry, ForeignReasoning, Input, Kind, Place, Report, Role, Rules, Target, Text,
    Tool, ToolForm, joined_text, prepare,
};
use throughline_wire::{decode_request, encode_request};

/// Reads a request body; what it holds is one piece.
///
/// # Errors
/// When it is not JSON, or a field that the dialect knows has the wrong type.
pub fn read_body(dialect: Dialect, text: &str) -> Result<(Facts, Vec<Piece>), Damage> {
    let ask = decode_request(dialect, text)?;
    let mut facts = Facts { model: ask.model, ..Facts::default() };
    facts.counted(&ask.entries);
    for said in ask.entries.iter().filter_map(Entry::as_said).filter(|said| said.role == Role::User) {
        facts.turns += 1;
        facts.begin_with(&joined_text(&said.parts));
    }
    let piece =
        Piece { spot: Spot(0), behind: None, thread: None, at: None, entries: ask.entries, answered: None };
    Ok((facts, vec![piece]))
}

/// Writes a branch as a request body, from the last summary on: what a model would be shown.
#[must_use]
pub fn write_body(dialect: Dialect, told: &[Told], model: Option<Text>) -> (String, Report) {
    let rules = Rules { assistant_last: true, ..Rules::of_dialect(dialect) };
    let from = told.iter().rposition(|told| matches!(told.entry.kind, Kind::Summarised(_))).unwrap_or(0);
    let placed = |told: &Told| Entry {
        place: told.number.map(|message| Place { message, block: None }),
        ..told.entry.clone()
    };
    // Instructions hold for a request and are not said in it: the latest ones stand at its head.
    let standing: Vec<&Told> = told.iter().filter(|told| told.entry.is_standing()).collect();
    let said = told[from..].iter().filter(|told| !told.entry.is_standing());
    let entries: Vec<Entry> = standing.last().copied().into_iter().chain(said).map(placed).collect();
    let tools = declared(&entries);
    let last = told.iter().rev().find_map(|told| Some(told.entry.origin.as_ref()?.model.clone()));
    let model = model.or(last).or(Some(Text::from_static("unknown")));
    let ask = Ask { tools, model, ..ask(entries, dialect) };
    let target = Target { foreign_reasoning: ForeignReasoning::AsText, ..Target::new(&rules) };
    let (prompt, mut report) = prepare(&ask, &target);
    for outdated in standing.iter().rev().skip(1) {
        let place = outdated.number.map(|message| Place { message, block: None });
        report.entry(Action::Dropped, place, "later instructions hold in their place");
    }
    let body = encode_request(&prompt, &mut report);
    report.sort();
    (body, report)
}

/// Declares every tool that was called; what it takes is not in the record.
fn declared(entries: &[Entry]) -> Vec<Tool> {
    let mut tools: BTreeMap<(Option<Text>, Text), Tool> = BTreeMap::new();
    for call in entries.iter().filter(|entry| !entry.is_hidden()).filter_map(Entry::as_call) {
        let form = match call.input {
            Input::Arguments(_) => {
                ToolForm::Function { schema: Some(Text::from_static(r#"{"type":"object"}"#)), strict: None }
            }
            Input::Freeform(_) => ToolForm::Custom { format: None },
        };
        tools.entry((call.namespace.clone(), call.name.clone())).or_insert_with(|| Tool {
            name: call.name.clone(),
            namespace: call.namespace.clone(),
            description: None,
            form,
            wire: None,
            intact: true,
        });
    }
    tools.into_values().collect()
}
