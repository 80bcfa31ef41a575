//! A plan as the body of a Responses request.

use super::super::plan::{Call, Input, Media, Plan, Turn};
use super::super::texts::{Dice, Json, object, raw, text, typed, unknown_value};
use super::{Draft, call_id, content, marked, only, schema, unknown_fields, unknown_part};
use throughline_core::Dialect;

pub(super) fn draft(plan: &Plan, wild: bool, dice: &mut Dice) -> Draft {
    let mut list = Vec::new();
    let mut system = plan.system.iter();
    let instructions = if dice.one_in(2) { system.next() } else { None };
    for words in system {
        let role = dice.pick(&["developer", "system"]);
        list.push(said(role, std::slice::from_ref(words), &[], wild, dice));
    }
    let mut calls = 0;
    for turn in &plan.turns {
        match turn {
            Turn::User { texts, media } => list.push(said("user", texts, media, wild, dice)),
            Turn::Model { thinks, text, calls: made } => {
                if *thinks {
                    list.push(thought(list.len(), wild, dice));
                }
                list.extend(text.iter().map(|words| answer(words, wild, dice)));
                let ids: Vec<String> = (0..made.len())
                    .map(|at| call_id(Dialect::Responses, if plan.reuse_ids { at } else { calls + at }, dice))
                    .collect();
                for (at, (call, id)) in made.iter().zip(&ids).enumerate() {
                    list.extend((wild && dice.one_in(8)).then(|| unknown_item(list.len(), dice)));
                    list.push(called(call, id, calls + at, wild, dice));
                }
                calls += made.len();
                let mut results: Vec<Json> =
                    made.iter().zip(&ids).map(|(call, id)| result(call, id, wild, dice)).collect();
                dice.shuffle(&mut results);
                list.extend(results);
            }
        }
    }
    if let ([Turn::User { texts, media }], 1) = (&plan.turns[..], list.len())
        && let Some(only) = only(texts, media.len())
        && dice.one_in(2)
    {
        list = vec![text(only)];
    }
    let mut draft = Draft::new("input", list);
    draft.set("model", text("gpt-x"));
    if let Some(words) = instructions {
        draft.set("instructions", text(words));
    }
    declare(&mut draft, plan, wild, dice);
    if wild {
        settings(&mut draft, dice);
        unknown_fields(&mut draft, dice);
    }
    draft
}

fn said(role: &str, texts: &[String], media: &[Media], wild: bool, dice: &mut Dice) -> Json {
    let mut parts: Vec<Json> = texts.iter().map(|words| text_part(words, wild, dice)).collect();
    parts.extend(media.iter().map(|media| media_part(*media, wild, dice)));
    let mut others = media.len();
    if wild && role == "user" && dice.one_in(5) {
        others += 1;
        parts.push(match dice.roll(2) {
            0 => typed("input_file", [("file_id", text("file-abc"))]),
            _ => unknown_part(dice),
        });
    }
    let message = object([("role", text(role)), ("content", content(parts, only(texts, others), dice))]);
    let kind = (!dice.one_in(3)).then(|| text("message"));
    message.with_some("type", kind).with_unknown(wild, dice)
}

fn text_part(words: &str, wild: bool, dice: &mut Dice) -> Json {
    typed("input_text", [("text", text(words))]).with_unknown(wild, dice)
}

fn media_part(media: Media, wild: bool, dice: &mut Dice) -> Json {
    let detail = dice.one_in(3).then(|| text("high"));
    let image = |url: Json| typed("input_image", [("image_url", url)]).with_some("detail", detail);
    let part = match media {
        Media::ImageUrl(url) => image(text(url)),
        Media::ImageData(data) => image(text(format!("data:image/png;base64,{data}"))),
        Media::Pdf(data) => typed(
            "input_file",
            [("file_data", text(format!("data:application/pdf;base64,{data}"))), ("filename", text("a.pdf"))],
        ),
    };
    part.with_unknown(wild, dice)
}

fn thought(number: usize, wild: bool, dice: &mut Dice) -> Json {
    let summary = dice.pick(&["[]", r#"[{"type":"summary_text","text":"first\nthen"}]"#]);
    let content = (wild && dice.one_in(4)).then(|| raw(r#"[{"type":"reasoning_text","text":"hm"}]"#));
    let sealed = (!dice.one_in(3)).then(|| text("gAAAAAB+/sealed=="));
    typed("reasoning", [("id", text(format!("rs_{number}"))), ("summary", raw(summary))])
        .with_some("content", content)
        .with_some("encrypted_content", sealed)
        .with_unknown(wild, dice)
}

fn answer(words: &str, wild: bool, dice: &mut Dice) -> Json {
    let annotations = dice.one_in(2).then(|| raw("[]"));
    let cited = (wild && dice.one_in(6)).then(|| raw(r#"[{"type":"url_citation","url":"https://x.test"}]"#));
    let part = typed("output_text", [("text", text(words))]).with_some("annotations", cited.or(annotations));
    let mut parts = vec![part.with_unknown(wild, dice)];
    let mut only = Some(words);
    if wild && dice.one_in(8) {
        parts.push(typed("refusal", [("refusal", text("I will not"))]));
        only = None;
    }
    let phase = (wild && dice.one_in(4)).then(|| text("commentary"));
    let status = dice.one_in(3).then(|| text("completed"));
    typed("message", [("role", text("assistant")), ("content", content(parts, only, dice))])
        .with_some("phase", phase)
        .with_some("status", status)
        .with_unknown(wild, dice)
}

fn called(call: &Call, id: &str, number: usize, wild: bool, dice: &mut Dice) -> Json {
    let (kind, prefix, given) = match &call.input {
        Input::Object(given) | Input::Other(given) => ("function_call", "fc", ("arguments", text(given))),
        Input::Freeform(given) => ("custom_tool_call", "ctc", ("input", text(given))),
    };
    let item_id = dice.one_in(2).then(|| text(format!("{prefix}_{number}")));
    let status = dice.one_in(3).then(|| text("completed"));
    typed(kind, [("call_id", text(id)), ("name", text(&call.name)), given])
        .with_some("id", item_id)
        .with_some("status", status)
        .with_unknown(wild, dice)
}

fn result(call: &Call, id: &str, wild: bool, dice: &mut Dice) -> Json {
    let kind = match call.input {
        Input::Object(_) | Input::Other(_) => "function_call_output",
        Input::Freeform(_) => "custom_tool_call_output",
    };
    let texts = marked(call);
    let mut parts: Vec<Json> = texts.iter().map(|words| text_part(words, wild, dice)).collect();
    parts.extend(call.media.iter().map(|media| media_part(*media, wild, dice)));
    let output = match only(&texts, call.media.len()) {
        Some("") => text(""),
        only => content(parts, only, dice),
    };
    typed(kind, [("call_id", text(id)), ("output", output)]).with_unknown(wild, dice)
}

/// An item that is not known here, or only by its own provider.
fn unknown_item(number: usize, dice: &mut Dice) -> Json {
    match dice.roll(4) {
        0 => typed("web_search_call", [("id", text(format!("ws_{number}"))), ("status", text("completed"))]),
        1 => typed("compaction", [("encrypted_content", text("gAAAA="))]),
        2 => typed("item_reference", [("id", text(format!("msg_{number}")))]),
        _ => typed("x_teleport", [("to", unknown_value(dice))]),
    }
}

fn declare(draft: &mut Draft, plan: &Plan, wild: bool, dice: &mut Dice) {
    let mut tools = Vec::new();
    for name in plan.tool_names(false) {
        let strict = dice.one_in(3).then(|| raw("false"));
        let description = dice.one_in(2).then(|| text("what it does"));
        let parameters = if dice.one_in(6) { raw("null") } else { schema(dice) };
        tools.push(
            typed("function", [("name", text(name)), ("parameters", parameters)])
                .with_some("strict", strict)
                .with_some("description", description)
                .with_unknown(wild, dice),
        );
    }
    for name in plan.tool_names(true) {
        let format =
            dice.one_in(2).then(|| raw(r#"{"type":"grammar","syntax":"lark","definition":"start: /.+/"}"#));
        tools.push(
            typed("custom", [("name", text(name))]).with_some("format", format).with_unknown(wild, dice),
        );
    }
    if wild && dice.one_in(3) {
        tools.push(match dice.roll(3) {
            0 => typed("web_search", [("search_context_size", text("low"))]),
            1 => {
                let inner = typed("function", [("name", text("inner")), ("parameters", schema(dice))]);
                typed("namespace", [("name", text("space")), ("tools", Json::List(vec![inner]))])
            }
            _ => typed("x_browser", [("viewport", unknown_value(dice))]),
        });
    }
    if tools.is_empty() {
        return;
    }
    draft.set("tools", Json::List(tools));
    if dice.one_in(3) {
        let choice = match (plan.tool_names(false).first(), dice.roll(5)) {
            (Some(name), 0) => typed("function", [("name", text(*name))]),
            (Some(name), 1) => {
                let named = typed("function", [("name", text(*name))]);
                typed("allowed_tools", [("mode", text("auto")), ("tools", Json::List(vec![named]))])
            }
            (_, 2) => text("required"),
            (_, 3) => text("none"),
            _ => text("auto"),
        };
        draft.set("tool_choice", choice);
    }
    draft.maybe("parallel_tool_calls", raw("false"), dice);
}

fn settings(draft: &mut Draft, dice: &mut Dice) {
    let format =
        typed("json_schema", [("name", text("out")), ("schema", schema(dice)), ("strict", raw("true"))]);
    let fields = [
        ("temperature", raw(dice.pick(&["1.10", "1e0", "0", "0.70"]))),
        ("top_p", raw("0.950")),
        ("max_output_tokens", raw("4096")),
        ("max_tool_calls", raw("7")),
        ("presence_penalty", raw("-0.0")),
        ("user", text("u-1")),
        ("store", raw("false")),
        ("metadata", raw(r#"{"b":"2","a":"1"}"#)),
        ("service_tier", text("auto")),
        ("reasoning", raw(r#"{"effort":"low","summary":"auto","x":1.50}"#)),
        ("text", object([("format", format), ("verbosity", text("low")), ("x", unknown_value(dice))])),
        ("include", raw(r#"["reasoning.encrypted_content"]"#)),
        ("truncation", text("disabled")),
        ("prompt_cache_key", text("k")),
        ("stream", raw("true")),
        ("previous_response_id", text("resp_1")),
        ("client_metadata", unknown_value(dice)),
    ];
    for (name, value) in fields {
        draft.maybe(name, value, dice);
    }
}
