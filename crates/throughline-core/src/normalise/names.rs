//! Ids and names as the target wants them; what is on offer under those names.

use super::Item;
use crate::{
    Action, Ask, Dialect, Kind, NameMap, Report, Rules, Subject, Text, Tool, ToolChoice, ToolForm, Treatment,
};
use std::collections::{BTreeMap, BTreeSet};

/// The names of tools, as they came and as they are sent.
#[derive(Clone)]
pub(super) struct ToolNames<'r> {
    map: NameMap,
    rules: &'r Rules,
}

impl ToolNames<'_> {
    pub fn into_map(self) -> NameMap {
        self.map
    }

    fn knows(&self, namespace: Option<&Text>, name: &Text) -> bool {
        self.map.knows(&self.rules.full_name(namespace, name))
    }

    fn sent(&self, namespace: Option<&Text>, name: &Text) -> Text {
        self.map.to_sent(&self.rules.full_name(namespace, name)).clone()
    }

    fn admit(&mut self, namespace: Option<&Text>, name: &Text) -> Text {
        let full = self.rules.full_name(namespace, name);
        self.map.admit(&full, self.rules.tool_name, false)
    }
}

/// Maps the names of the tools on offer.
pub(super) fn name_tools<'r>(ask: &Ask, rules: &'r Rules, report: &mut Report) -> ToolNames<'r> {
    let mut names = ToolNames { map: NameMap::default(), rules };
    for tool in ask.tools.iter().filter(|tool| !tool.is_hosted()) {
        let sent = names.admit(tool.namespace.as_ref(), &tool.name);
        if sent != tool.name {
            let subject = Subject::Tool(tool.name.clone());
            report.note(Action::Renamed, subject, format!("the target calls it {sent}"));
        }
    }
    names
}

/// Maps the ids and names of calls, and the ids of their results; returns the map of the ids.
pub(super) fn name_calls(
    items: &mut [Item],
    names: &ToolNames<'_>,
    rules: &Rules,
    report: &mut Report,
) -> NameMap {
    // What is called but not on offer gets a name here that the answer is not read by.
    let mut names = names.clone();
    let mut ids = NameMap::default();
    let mut of_pair: Vec<Option<Text>> = Vec::new();
    let mut in_batch = BTreeSet::new();
    for item in items.iter_mut() {
        match &mut item.entry.kind {
            Kind::Called(call) => {
                let fresh = rules.unique_call_ids || !in_batch.insert(call.id.clone());
                let id = ids.admit(&call.id, rules.call_id, fresh);
                // A tool on offer is in the report already, and any other needs to be named there only once.
                let is_new = !names.knows(call.namespace.as_ref(), &call.name);
                let name = names.admit(call.namespace.as_ref(), &call.name);
                if call.id != id {
                    report.entry(Action::Renamed, item.entry.place, "the target does not take this call id");
                }
                let flattens = call.namespace.is_some() && !rules.namespaces;
                if is_new && call.name != name {
                    let reason = format!("the target calls the tool {name}");
                    report.entry(Action::Renamed, item.entry.place, reason);
                }
                if call.id != id || call.name != name || flattens {
                    item.entry.intact = false;
                    item.entry.trace.note(Treatment::Renamed);
                }
                call.namespace = call.namespace.take().filter(|_| rules.namespaces);
                call.name = name;
                call.id = id.clone();
                remember(&mut of_pair, item.pair, id);
            }
            Kind::Returned(returned) => {
                in_batch.clear();
                let id = item.pair.and_then(|pair| of_pair.get(pair).cloned().flatten());
                if let Some(id) = id.filter(|id| returned.call_id.as_ref() != Some(id)) {
                    returned.call_id = Some(id);
                    item.entry.intact = false;
                    item.entry.trace.note(Treatment::Renamed);
                }
            }
            _ => {}
        }
    }
    ids
}

fn remember(of_pair: &mut Vec<Option<Text>>, pair: Option<usize>, id: Text) {
    let Some(pair) = pair else { return };
    if of_pair.len() <= pair {
        of_pair.resize(pair + 1, None);
    }
    of_pair[pair] = Some(id);
}

/// Returns the tools and the choice among them, under the names they are sent by.
pub(super) fn offer(
    ask: &Ask,
    items: &[Item],
    names: &ToolNames<'_>,
    rules: &Rules,
    report: &mut Report,
) -> (Vec<Tool>, Option<ToolChoice>) {
    let tools: Vec<Tool> = ask.tools.iter().filter_map(|tool| offered(tool, names, rules, report)).collect();
    if tools.is_empty() && rules.tools_for_history {
        let tools = of_history(items);
        if !tools.is_empty() {
            report.field(
                Action::Repaired,
                "tools",
                "the tools of the history are declared, but not to be called",
            );
            return (tools, Some(ToolChoice::None));
        }
    }
    let choice = ask.tool_choice.as_ref();
    let choice = choice.and_then(|choice| chosen(choice, ask, &tools, names, rules, report));
    (tools, choice)
}

/// Returns the tools that the history calls, for a target that wants them declared.
fn of_history(items: &[Item]) -> Vec<Tool> {
    let names: BTreeSet<&Text> =
        items.iter().filter_map(|item| item.entry.as_call()).map(|call| &call.name).collect();
    let declared = |name: &Text| Tool {
        name: name.clone(),
        namespace: None,
        description: None,
        form: ToolForm::Function { schema: None, strict: None },
        wire: None,
        intact: false,
    };
    names.into_iter().map(declared).collect()
}

fn offered(tool: &Tool, names: &ToolNames<'_>, rules: &Rules, report: &mut Report) -> Option<Tool> {
    let is_own = tool.wire.as_ref().is_some_and(|wire| wire.dialect == rules.dialect);
    if let ToolForm::Hosted { kind } = &tool.form {
        if is_own && rules.own_extensions {
            return Some(tool.clone());
        }
        let reason = format!("{kind} is run by its provider, and the target is another");
        report.note(Action::Dropped, Subject::Tool(tool.name.clone()), reason);
        return None;
    }
    report_extras(tool, rules.dialect, report);
    let name = names.sent(tool.namespace.as_ref(), &tool.name);
    let intact = tool.intact && name == tool.name && (tool.namespace.is_none() || rules.namespaces);
    let namespace = tool.namespace.clone().filter(|_| rules.namespaces);
    Some(Tool { name, namespace, intact, ..tool.clone() })
}

fn report_extras(tool: &Tool, dialect: Dialect, report: &mut Report) {
    let Some(wire) = tool.wire.as_ref().filter(|wire| wire.dialect != dialect) else { return };
    for extra in &wire.extras {
        let reason = format!("{} has no counterpart in {dialect}", extra.name);
        report.note(Action::Dropped, Subject::Tool(tool.name.clone()), reason);
    }
}

fn chosen(
    choice: &ToolChoice,
    ask: &Ask,
    tools: &[Tool],
    names: &ToolNames<'_>,
    rules: &Rules,
    report: &mut Report,
) -> Option<ToolChoice> {
    let offered: BTreeSet<&Text> = tools.iter().map(|tool| &tool.name).collect();
    // The first of a name is meant, so that it is put there last.
    let asked: BTreeMap<&Text, &Tool> = ask.tools.iter().rev().map(|tool| (&tool.name, tool)).collect();
    let sent = |name: &Text| {
        let sent = names.sent(asked.get(name)?.namespace.as_ref(), name);
        offered.contains(&sent).then_some(sent)
    };
    let mut lost = |reason: &'static str| {
        report.field(Action::Repaired, "tool_choice", reason);
        None
    };
    match choice {
        _ if tools.is_empty() => lost("there is no tool to choose"),
        ToolChoice::Opaque(_) if ask.dialect != rules.dialect => lost("the target has no such form"),
        ToolChoice::Named(name) => match sent(name) {
            Some(name) => Some(ToolChoice::Named(name)),
            None => lost("the tool is not on offer"),
        },
        ToolChoice::Allowed { names, required } => {
            let known: Vec<Text> = names.iter().filter_map(sent).collect();
            if known.is_empty() {
                return lost("none of the tools is on offer");
            }
            Some(ToolChoice::Allowed { names: known, required: *required })
        }
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Opaque(_) => {
            Some(choice.clone())
        }
    }
}
