//! A plan as the body of a Messages request.

use super::super::plan::{Call, Input, Media, Plan, Turn};
use super::super::texts::{Dice, Json, object, raw, text, typed, unknown_value};
use super::{Draft, call_id, content, only, schema, unknown_fields, unknown_part};
use throughline_core::Dialect;

pub(super) fn draft(plan: &Plan, wild: bool, dice: &mut Dice) -> Draft {
    let thinking = wild && dice.one_in(3);
    let mut list = Vec::new();
    let mut calls = 0;
    // In the rounds of a tool loop a model may think only once, before its first call.
    let mut in_loop = false;
    // Results that wait for the user's next words, which may stand in the same message.
    let mut waiting: Vec<Json> = Vec::new();
    for turn in &plan.turns {
        match turn {
            Turn::User { texts, media } => {
                in_loop &= !waiting.is_empty();
                if !waiting.is_empty() && dice.one_in(2) {
                    list.push(object([
                        ("role", text("user")),
                        ("content", Json::List(waiting.split_off(0))),
                    ]));
                }
                let results = waiting.split_off(0);
                list.push(user(results, texts, media, wild, dice));
            }
            Turn::Model { thinks, text: words, calls: made } => {
                flush(&mut list, &mut waiting);
                let ids: Vec<String> = (0..made.len())
                    .map(|at| call_id(Dialect::Messages, if plan.reuse_ids { at } else { calls + at }, dice))
                    .collect();
                calls += made.len();
                list.push(model(*thinks || (thinking && !in_loop), words.as_deref(), made, &ids, wild, dice));
                waiting = made.iter().zip(&ids).map(|(call, id)| result(call, id, wild, dice)).collect();
                dice.shuffle(&mut waiting);
                in_loop |= !made.is_empty();
            }
        }
    }
    flush(&mut list, &mut waiting);
    let mut draft = Draft::new("messages", list);
    draft.set("model", text("claude-x"));
    draft.set("max_tokens", raw("4096"));
    system(&mut draft, plan, wild, dice);
    declare(&mut draft, plan, wild, thinking, dice);
    if wild {
        settings(&mut draft, thinking, dice);
        unknown_fields(&mut draft, dice);
    }
    draft
}

fn flush(list: &mut Vec<Json>, waiting: &mut Vec<Json>) {
    if !waiting.is_empty() {
        list.push(object([("role", text("user")), ("content", Json::List(waiting.split_off(0)))]));
    }
}

fn system(draft: &mut Draft, plan: &Plan, wild: bool, dice: &mut Dice) {
    if plan.system.is_empty() {
        return;
    }
    let blocks = plan.system.iter().map(|words| {
        let block = text_block(words, wild, dice);
        block.with_some("cache_control", cache_mark(wild, dice))
    });
    let blocks = blocks.collect();
    draft.set("system", content(blocks, only(&plan.system, 0), dice));
}

fn cache_mark(wild: bool, dice: &mut Dice) -> Option<Json> {
    (wild && dice.one_in(4)).then(|| object([("type", text("ephemeral"))]))
}

fn text_block(words: &str, wild: bool, dice: &mut Dice) -> Json {
    let citations = (wild && dice.one_in(6)).then(|| raw(r#"[{"type":"char_location","start":0}]"#));
    typed("text", [("text", text(words))]).with_some("citations", citations).with_unknown(wild, dice)
}

fn user(results: Vec<Json>, texts: &[String], media: &[Media], wild: bool, dice: &mut Dice) -> Json {
    let mut others = media.len() + results.len();
    let mut blocks = results;
    for words in texts {
        let block = text_block(words, wild, dice);
        blocks.push(block.with_some("cache_control", cache_mark(wild, dice)));
    }
    blocks.extend(media.iter().map(|media| media_block(*media, wild, dice)));
    if wild && dice.one_in(5) {
        others += 1;
        blocks.push(unknown_part(dice));
    }
    let message = object([("role", text("user")), ("content", content(blocks, only(texts, others), dice))]);
    message.with_unknown(wild, dice)
}

fn media_block(media: Media, wild: bool, dice: &mut Dice) -> Json {
    let based = |media_type: &str, data: &str| {
        typed("base64", [("media_type", text(media_type)), ("data", text(data))])
    };
    let block = match media {
        Media::ImageUrl(url) => typed("image", [("source", typed("url", [("url", text(url))]))]),
        Media::ImageData(data) => typed("image", [("source", based("image/png", data))]),
        Media::Pdf(data) => {
            let title = dice.one_in(2).then(|| text("a.pdf"));
            typed("document", [("source", based("application/pdf", data))]).with_some("title", title)
        }
    };
    block.with_some("cache_control", cache_mark(wild, dice)).with_unknown(wild, dice)
}

fn model(
    thinks: bool,
    words: Option<&str>,
    calls: &[Call],
    ids: &[String],
    wild: bool,
    dice: &mut Dice,
) -> Json {
    let mut blocks = Vec::new();
    if thinks {
        blocks.push(thought(dice));
    }
    if wild && dice.one_in(6) {
        blocks.push(typed(
            "server_tool_use",
            [("id", text("srvtoolu_1")), ("name", text("web_search")), ("input", raw(r#"{"query": "q"}"#))],
        ));
        blocks.push(typed(
            "web_search_tool_result",
            [("tool_use_id", text("srvtoolu_1")), ("content", raw("[]"))],
        ));
    }
    let others = blocks.len() + calls.len();
    blocks.extend(words.map(|words| text_block(words, wild, dice)));
    for (call, id) in calls.iter().zip(ids) {
        if wild && dice.one_in(6) {
            blocks.push(text_block("and now", wild, dice));
        }
        blocks.push(called(call, id, wild, dice));
    }
    let only = words.filter(|_| others == 0);
    let message = object([("role", text("assistant")), ("content", content(blocks, only, dice))]);
    message.with_unknown(wild, dice)
}

fn thought(dice: &mut Dice) -> Json {
    if dice.one_in(4) {
        return typed("redacted_thinking", [("data", text("EncryptedBytes=="))]);
    }
    let words = dice.pick(&["let me see", "", "first \"this\"\nthen that 😀"]);
    typed("thinking", [("thinking", text(words)), ("signature", text("EqQBCg+/sig=="))])
}

fn called(call: &Call, id: &str, wild: bool, dice: &mut Dice) -> Json {
    let given = match &call.input {
        Input::Object(given) => given.clone(),
        Input::Other(_) | Input::Freeform(_) => "{}".to_owned(),
    };
    typed("tool_use", [("id", text(id)), ("name", text(&call.name)), ("input", raw(given))])
        .with_some("cache_control", cache_mark(wild, dice))
        .with_unknown(wild, dice)
}

fn result(call: &Call, id: &str, wild: bool, dice: &mut Dice) -> Json {
    let mut parts: Vec<Json> = call
        .texts
        .iter()
        .filter(|words| !words.is_empty())
        .map(|words| text_block(words, wild, dice))
        .collect();
    for media in &call.media {
        let at = dice.roll(parts.len() + 1);
        parts.insert(at, media_block(*media, wild, dice));
    }
    let content = match only(&call.texts, call.media.len()) {
        Some("") if dice.one_in(2) => None,
        Some("") => Some(text("")),
        only => Some(content(parts, only, dice)),
    };
    let is_error = (call.is_error || dice.one_in(4)).then(|| raw(call.is_error.to_string()));
    typed("tool_result", [("tool_use_id", text(id))])
        .with_some("content", content)
        .with_some("is_error", is_error)
        .with_some("cache_control", cache_mark(wild, dice))
        .with_unknown(wild, dice)
}

fn declare(draft: &mut Draft, plan: &Plan, wild: bool, thinking: bool, dice: &mut Dice) {
    let mut tools: Vec<Json> = plan
        .tool_names(false)
        .into_iter()
        .chain(plan.tool_names(true))
        .map(|name| {
            let description = dice.one_in(2).then(|| text("what it does"));
            let kind = dice.one_in(4).then(|| text("custom"));
            object([("name", text(name)), ("input_schema", schema(dice))])
                .with_some("description", description)
                .with_some("type", kind)
                .with_some("cache_control", cache_mark(wild, dice))
                .with_unknown(wild, dice)
        })
        .collect();
    if wild && dice.one_in(4) {
        tools.push(typed(
            "web_search_20250305",
            [("name", text("web_search")), ("max_uses", unknown_value(dice))],
        ));
    }
    if tools.is_empty() {
        return;
    }
    draft.set("tools", Json::List(tools));
    if dice.one_in(3) {
        let choice = match (plan.tool_names(false).first(), dice.roll(4)) {
            (Some(name), 0) if !thinking => typed("tool", [("name", text(*name))]),
            (_, 1) if !thinking => typed("any", [("disable_parallel_tool_use", raw("true"))]),
            (_, 2) => typed("none", []),
            _ => typed("auto", []),
        };
        draft.set("tool_choice", choice);
    }
}

fn settings(draft: &mut Draft, thinking: bool, dice: &mut Dice) {
    if thinking {
        draft.set("thinking", typed("enabled", [("budget_tokens", raw("1024"))]));
    }
    let fields = [
        ("temperature", raw(dice.pick(&["1.0", "1e0"]))),
        ("top_p", raw("0.990")),
        ("stop_sequences", raw(r#"["END","\u0041"]"#)),
        ("metadata", raw(r#"{"user_id":"u-1"}"#)),
        ("service_tier", text("auto")),
        ("stream", raw("true")),
        ("context_management", raw(r#"{"edits":[{"type":"clear_tool_uses_20250919"}]}"#)),
        ("container", text("c-1")),
        ("mcp_servers", raw(r#"[{"type":"url","url":"https://x.test","name":"x"}]"#)),
        ("output_config", raw(r#"{"effort":"low"}"#)),
    ];
    for (name, value) in fields {
        draft.maybe(name, value, dice);
    }
}
