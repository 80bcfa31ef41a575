//! A plan as the body of a Chat Completions request.

use super::super::plan::{Call, Input, Media, Plan, Turn};
use super::super::texts::{Dice, Json, object, raw, text, typed, unknown_value};
use super::{Draft, call_id, content, marked, only, schema, unknown_fields, unknown_part};
use throughline_core::Dialect;

pub(super) fn draft(plan: &Plan, wild: bool, dice: &mut Dice) -> Draft {
    let mut list = Vec::new();
    for words in &plan.system {
        let role = dice.pick(&["system", "developer"]);
        list.push(said(role, std::slice::from_ref(words), &[], wild, dice));
    }
    let mut calls = 0;
    for turn in &plan.turns {
        match turn {
            Turn::User { texts, media } => {
                if wild && dice.one_in(6) {
                    list.push(said("system", &["be brief".to_owned()], &[], wild, dice));
                }
                list.push(said("user", texts, media, wild, dice));
            }
            Turn::Model { thinks, text, calls: made } => {
                let ids: Vec<String> = (0..made.len())
                    .map(|at| call_id(Dialect::Chat, if plan.reuse_ids { at } else { calls + at }, dice))
                    .collect();
                calls += made.len();
                list.push(answered(*thinks && wild, text.as_deref(), made, &ids, wild, dice));
                let mut results: Vec<Json> =
                    made.iter().zip(&ids).map(|(call, id)| result(call, id, wild, dice)).collect();
                dice.shuffle(&mut results);
                list.extend(results);
            }
        }
    }
    let mut draft = Draft::new("messages", list);
    draft.set("model", text("gpt-x"));
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
        parts.push(match dice.roll(3) {
            0 => typed(
                "input_audio",
                [("input_audio", object([("data", text("UklG")), ("format", text("wav"))]))],
            ),
            1 => typed("file", [("file", object([("file_id", text("file-abc"))]))]),
            _ => unknown_part(dice),
        });
    }
    let message = object([("role", text(role)), ("content", content(parts, only(texts, others), dice))]);
    let name = (wild && dice.one_in(5)).then(|| text("alice"));
    message.with_some("name", name).with_unknown(wild, dice)
}

fn text_part(words: &str, wild: bool, dice: &mut Dice) -> Json {
    typed("text", [("text", text(words))]).with_unknown(wild, dice)
}

fn media_part(media: Media, wild: bool, dice: &mut Dice) -> Json {
    let part = match media {
        Media::ImageUrl(url) => image(text(url), dice),
        Media::ImageData(data) => image(text(format!("data:image/png;base64,{data}")), dice),
        Media::Pdf(data) => {
            let file = object([
                ("file_data", text(format!("data:application/pdf;base64,{data}"))),
                ("filename", text("a.pdf")),
            ]);
            typed("file", [("file", file)])
        }
    };
    part.with_unknown(wild, dice)
}

fn image(url: Json, dice: &mut Dice) -> Json {
    let detail = dice.one_in(3).then(|| text("high"));
    typed("image_url", [("image_url", object([("url", url)]).with_some("detail", detail))])
}

fn answered(
    thinks: bool,
    words: Option<&str>,
    calls: &[Call],
    ids: &[String],
    wild: bool,
    dice: &mut Dice,
) -> Json {
    let said = words.map(|words| content(vec![text_part(words, wild, dice)], Some(words), dice));
    let absent = dice.one_in(2).then(|| raw("null"));
    let mut message = object([("role", text("assistant"))]).with_some("content", said.or(absent));
    if !calls.is_empty() {
        let calls = calls.iter().zip(ids).map(|(call, id)| called(call, id, wild, dice)).collect();
        message = message.with("tool_calls", Json::List(calls));
    }
    if thinks {
        message = message.with("reasoning_content", text("let me see"));
    }
    if wild {
        message = message.with_some("refusal", dice.one_in(5).then(|| raw("null")));
        message = message.with_some("annotations", dice.one_in(5).then(|| raw("[]")));
        message = message.with_some("name", dice.one_in(8).then(|| text("bot")));
    }
    message.with_unknown(wild, dice)
}

fn called(call: &Call, id: &str, wild: bool, dice: &mut Dice) -> Json {
    let (kind, given) = match &call.input {
        Input::Object(given) | Input::Other(given) => ("function", ("arguments", text(given))),
        Input::Freeform(given) => ("custom", ("input", text(given))),
    };
    let inner = object([("name", text(&call.name)), given]).with_unknown(wild, dice);
    let index = (wild && dice.one_in(4)).then(|| raw("0"));
    typed(kind, [("id", text(id)), (kind, inner)]).with_some("index", index).with_unknown(wild, dice)
}

fn result(call: &Call, id: &str, wild: bool, dice: &mut Dice) -> Json {
    let texts = marked(call);
    let parts = texts.iter().map(|words| text_part(words, wild, dice)).collect();
    let only = match only(&texts, 0) {
        // A part may not be empty, a string may.
        Some("") => {
            return object([("role", text("tool")), ("tool_call_id", text(id)), ("content", text(""))]);
        }
        only => only,
    };
    let message =
        object([("role", text("tool")), ("tool_call_id", text(id)), ("content", content(parts, only, dice))]);
    message.with_some("name", (wild && dice.one_in(4)).then(|| text(&call.name))).with_unknown(wild, dice)
}

fn declare(draft: &mut Draft, plan: &Plan, wild: bool, dice: &mut Dice) {
    let function = |name: &str, dice: &mut Dice| {
        let strict = dice.one_in(4).then(|| raw("true"));
        let description = dice.one_in(2).then(|| text("what it does"));
        let parameters = (!dice.one_in(5)).then(|| schema(dice));
        let function = object([("name", text(name))])
            .with_some("parameters", parameters)
            .with_some("description", description)
            .with_some("strict", strict);
        typed("function", [("function", function.with_unknown(wild, dice))]).with_unknown(wild, dice)
    };
    let mut tools: Vec<Json> = plan.tool_names(false).into_iter().map(|name| function(name, dice)).collect();
    for name in plan.tool_names(true) {
        let custom = object([("name", text(name)), ("description", text("free text"))]);
        tools.push(typed("custom", [("custom", custom.with_unknown(wild, dice))]));
    }
    if wild && dice.one_in(4) {
        tools.push(typed("x_browser", [("viewport", unknown_value(dice))]));
    }
    if tools.is_empty() {
        return;
    }
    draft.set("tools", Json::List(tools));
    if dice.one_in(3) {
        let choice = match (plan.tool_names(false).first(), dice.roll(4)) {
            (Some(name), 0) => typed("function", [("function", object([("name", text(*name))]))]),
            (_, 1) => text("required"),
            (_, 2) => text("none"),
            _ => text("auto"),
        };
        draft.set("tool_choice", choice);
    }
    draft.maybe("parallel_tool_calls", raw("false"), dice);
}

fn settings(draft: &mut Draft, dice: &mut Dice) {
    let format = typed(
        "json_schema",
        [("json_schema", object([("name", text("out")), ("schema", schema(dice)), ("strict", raw("true"))]))],
    );
    let fields = [
        ("temperature", raw(dice.pick(&["1.10", "1e0", "0", "0.70"]))),
        ("top_p", raw("0.950")),
        ("max_completion_tokens", raw("4096")),
        ("seed", raw("12345678901234567890123")),
        ("presence_penalty", raw("-0.0")),
        ("frequency_penalty", raw("5e-1")),
        ("stop", dice.pick(&[text("END"), raw(r#"["END","\u0041"]"#), raw("null")])),
        ("n", raw("1")),
        ("logprobs", raw("true")),
        ("logit_bias", raw(r#"{"50256": -100, "7":1.50}"#)),
        ("user", text("u-1")),
        ("store", raw("false")),
        ("metadata", raw(r#"{"b":"2","a":"1"}"#)),
        ("service_tier", text("auto")),
        ("reasoning_effort", text("low")),
        ("verbosity", text("low")),
        ("response_format", format),
        ("prompt_cache_key", text("k")),
        ("stream", raw("true")),
        ("stream_options", raw(r#"{"include_usage": true, "x":1}"#)),
        ("prediction", raw(r#"{"type":"content","content":"x"}"#)),
    ];
    for (name, value) in fields {
        draft.maybe(name, value, dice);
    }
}
