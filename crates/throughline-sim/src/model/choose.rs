//! Which tools are called, how often, and with what.
//!
//! The tool whose name and description share most with the message is called; once, or once for each of
//! the paths, commands, addresses or places that the message names, if several calls at once are allowed.

use super::arguments::{self, text_properties};
use super::finds::{Finds, Meaning};
use super::words::{names, words};
use super::{DraftCall, Scene};
use serde_json::Value;
use throughline_core::{Ask, Input, Text, Tool, ToolChoice, ToolForm};

/// The most calls in one answer.
const CALLS_MAX: usize = 16;

/// Returns the calls that fit the wish; none where none is allowed or nothing is on offer.
pub(super) fn plan(ask: &Ask, scene: &Scene) -> Vec<DraftCall> {
    let finds = Finds::of(&scene.wish);
    let tools = allowed(ask);
    let most = most_calls(ask);
    let mentioned: Vec<&&Tool> = tools.iter().filter(|tool| names(&scene.wish, &tool.name)).collect();
    if mentioned.len() > 1 && most > 1 {
        return mentioned.into_iter().take(most).map(|tool| call(tool, finds.clone())).collect();
    }
    let Some(tool) = best(&tools, &scene.wish, &finds) else { return Vec::new() };
    match repeated(tool, &finds) {
        Some((meaning, count)) if most > 1 => {
            (0..count.min(most)).map(|index| call(tool, finds.focused(meaning, index))).collect()
        }
        _ => vec![call(tool, finds)],
    }
}

/// Calls the tool of that name, declared or not.
pub(super) fn call_by_name(ask: &Ask, scene: &Scene, name: &str) -> DraftCall {
    let finds = Finds::of(&scene.wish);
    match ask.tools.iter().find(|tool| tool.name == name) {
        Some(tool) => call(tool, finds),
        None => DraftCall {
            name: Text::from(name),
            namespace: None,
            input: Input::Arguments(Text::from_static("{}")),
        },
    }
}

/// Returns the tools that may be called.
fn allowed(ask: &Ask) -> Vec<&Tool> {
    let may = |tool: &&Tool| match &ask.tool_choice {
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Named(name)) => tool.name == *name,
        Some(ToolChoice::Allowed { names, .. }) => names.contains(&tool.name),
        Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::Opaque(_)) | None => true,
    };
    ask.tools.iter().filter(|tool| !tool.is_hosted()).filter(may).collect()
}

fn most_calls(ask: &Ask) -> usize {
    let limit = ask.settings.max_tool_calls.as_ref().and_then(|limit| limit.parse().ok());
    match ask.settings.parallel_calls {
        Some(false) => 1,
        Some(true) | None => limit.unwrap_or(CALLS_MAX).clamp(1, CALLS_MAX),
    }
}

fn best<'a>(tools: &[&'a Tool], wish: &str, finds: &Finds) -> Option<&'a Tool> {
    let wanted = words(wish);
    let mut best: Option<(usize, &Tool)> = None;
    for tool in tools {
        let score = score(tool, wish, &wanted, finds);
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, tool));
        }
    }
    best.map(|(_, tool)| tool)
}

/// Says how well a tool fits.
fn score(tool: &Tool, wish: &str, wanted: &[String], finds: &Finds) -> usize {
    let count = |text: &str| {
        let mut shared: Vec<String> = words(text).into_iter().filter(|word| wanted.contains(word)).collect();
        shared.sort();
        shared.dedup();
        shared.len()
    };
    let spelled_out = usize::from(names(wish, &tool.name)) * 100;
    let described = tool.description.as_ref().map_or(0, |description| count(description).min(5));
    spelled_out + count(&tool.name) * 6 + described + shape_score(tool, finds)
}

/// Says how well what a tool takes fits what the message holds.
fn shape_score(tool: &Tool, finds: &Finds) -> usize {
    let Some(schema) = schema_of(tool) else { return 0 };
    let worth = |meaning| match meaning {
        Meaning::Command if !finds.commands.is_empty() => 4,
        Meaning::Url if !finds.urls.is_empty() => 4,
        Meaning::Path if !finds.paths.is_empty() => 3,
        Meaning::Place if !finds.places.is_empty() => 2,
        Meaning::Query if !finds.quotations.is_empty() => 1,
        _ => 0,
    };
    text_properties(&schema).into_iter().map(|(_, meaning, _)| worth(meaning)).max().unwrap_or(0)
}

/// Returns what the message names several of, where the tool takes one at a time.
fn repeated(tool: &Tool, finds: &Finds) -> Option<(Meaning, usize)> {
    let properties = text_properties(&schema_of(tool)?);
    let meanings = [Meaning::Path, Meaning::Command, Meaning::Url, Meaning::Place];
    meanings.into_iter().find_map(|meaning| {
        let takers = properties.iter().filter(|(_, of, _)| *of == meaning).count();
        let found = finds.clone().queue(meaning).len();
        // A tool that takes two paths copies one to the other.
        (takers == 1 && found > 1).then_some((meaning, found))
    })
}

fn schema_of(tool: &Tool) -> Option<Value> {
    match &tool.form {
        ToolForm::Function { schema: Some(schema), .. } => serde_json::from_str(schema).ok(),
        ToolForm::Function { schema: None, .. } | ToolForm::Custom { .. } | ToolForm::Hosted { .. } => None,
    }
}

fn call(tool: &Tool, mut finds: Finds) -> DraftCall {
    let input = match (&tool.form, schema_of(tool)) {
        (ToolForm::Custom { .. }, _) => {
            let found = finds.commands.pop_front().or_else(|| finds.quotations.pop_front());
            Input::Freeform(found.unwrap_or(finds.message).into())
        }
        (_, Some(schema)) => Input::Arguments(arguments::arguments(&schema, finds).to_string().into()),
        (_, None) => Input::Arguments(Text::from_static("{}")),
    };
    DraftCall { name: tool.name.clone(), namespace: tool.namespace.clone(), input }
}
