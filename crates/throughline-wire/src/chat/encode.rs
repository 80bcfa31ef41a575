//! A prompt, written as a request body.
//!
//! A request that came in this dialect keeps every field that it came with, in its place and in its words;
//! only the model, the conversation, the tools and the choice among them are written anew where they changed.
//! A request of another dialect is built from the canonical model.

use super::conversation::write_messages;
use super::settings::{REASONING_FIELDS, write_settings};
use super::tools::{are_as_given, write_choice, write_tools};
use super::vocabulary::vocabulary;
use crate::json::Writer;
use crate::length::expected_length;
use throughline_core::{Action, Extra, Prompt, Report, ToolChoice};

/// Writes the request body for a backend that speaks this dialect.
pub(crate) fn encode_request(prompt: &Prompt<'_>, report: &mut Report) -> String {
    let mut writer = Writer::with_capacity(expected_length(prompt));
    writer.begin_object();
    if prompt.stays_in_dialect() {
        write_as_given(&mut writer, prompt, report);
    } else {
        write_anew(&mut writer, prompt, report);
    }
    writer.end_object();
    writer.into_string()
}

fn write_as_given(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    let has = |name: &str| has_field(prompt, name);
    if !has("model") {
        write_model(writer, prompt);
    }
    let tools_as_given = are_as_given(prompt);
    for field in &prompt.ask.fields {
        match field.name.as_str() {
            "model" if prompt.model != prompt.ask.model => write_model(writer, prompt),
            "messages" => {
                writer.key("messages");
                write_messages(writer, prompt, report);
            }
            "tools" | "functions" if !tools_as_given => {
                if field.name == "tools" || !has("tools") {
                    write_tools(writer, prompt, report);
                }
            }
            "tool_choice" | "function_call" if !is_choice_as_given(prompt, tools_as_given) => {
                if field.name == "tool_choice" || !has("tool_choice") {
                    write_choice(writer, prompt, report);
                }
            }
            name if is_left_out(name, prompt, report) => {}
            _ => write_field(writer, field, prompt, report),
        }
    }
    if !has("tools") && !has("functions") && !tools_as_given {
        write_tools(writer, prompt, report);
        write_choice(writer, prompt, report);
    }
}

fn has_field(prompt: &Prompt<'_>, name: &str) -> bool {
    prompt.ask.fields.iter().any(|field| field.name == name)
}

/// Writes a field that the client gave, if the target takes it.
fn write_field(writer: &mut Writer, field: &Extra, prompt: &Prompt<'_>, report: &mut Report) {
    match vocabulary(prompt.rules).name_of(&field.name) {
        Some(name) => writer.field_raw(name, &field.value),
        None => {
            report.field(Action::Dropped, field.name.clone(), "the target refuses fields it does not know");
        }
    }
}

fn write_model(writer: &mut Writer, prompt: &Prompt<'_>) {
    if let Some(model) = &prompt.model {
        writer.field_str("model", model);
    }
}

/// Says whether the choice among the tools can be written in the client's own words.
fn is_choice_as_given(prompt: &Prompt<'_>, tools_as_given: bool) -> bool {
    let is_understood = match &prompt.tool_choice {
        Some(ToolChoice::Allowed { .. }) => prompt.rules.selects_tools,
        // The way of referring to a tool changes with its declaration.
        Some(ToolChoice::Named(_)) => tools_as_given,
        _ => true,
    };
    let is_known = vocabulary(prompt.rules).closed.is_none() || !has_field(prompt, "function_call");
    is_understood && is_known && prompt.tool_choice == prompt.ask.tool_choice
}

fn is_left_out(name: &str, prompt: &Prompt<'_>, report: &mut Report) -> bool {
    if prompt.without_reasoning && REASONING_FIELDS.contains(&name) {
        return true;
    }
    let lost_tools = prompt.tools.is_empty() && !prompt.ask.tools.is_empty();
    if lost_tools && name == "parallel_tool_calls" {
        report.field(Action::Dropped, "parallel_tool_calls", "no tools are left that could be called");
        return true;
    }
    false
}

fn write_anew(writer: &mut Writer, prompt: &Prompt<'_>, report: &mut Report) {
    write_model(writer, prompt);
    writer.key("messages");
    write_messages(writer, prompt, report);
    write_tools(writer, prompt, report);
    write_choice(writer, prompt, report);
    write_settings(writer, prompt, report);
}

#[cfg(test)]
mod tests {
    use super::super::decode_request;
    use super::*;
    use crate::json::Document;
    use serde_json::{Value, json};
    use throughline_core::{
        Ask, Dialect, Entry, Format, Reasoning, Role, Rules, Settings, Target, Tool, ToolForm, prepare,
    };

    fn decode(body: &Value) -> Ask {
        decode_request(&Document::parse(body.to_string()).unwrap()).unwrap()
    }

    fn encode(ask: &Ask, rules: &Rules) -> (Value, Report) {
        let (prompt, mut report) = prepare(ask, &Target::new(rules));
        let body = encode_request(&prompt, &mut report);
        (serde_json::from_str(&body).unwrap(), report)
    }

    fn rules(name: &str) -> Rules {
        Rules::from_name(name).unwrap()
    }

    fn changes(report: &Report) -> Vec<String> {
        report.changes.iter().map(|change| format!("{:?}: {}", change.subject, change.reason)).collect()
    }

    /// Returns a request as another dialect's decoder would.
    fn foreign(settings: Settings) -> Ask {
        let entries = vec![Entry::said(Role::User, "Hi.")];
        Ask { model: Some("kettle-1".into()), settings, ..Ask::of(Dialect::Messages, entries) }
    }

    #[test]
    fn an_untouched_request_goes_back_as_it_came() {
        for body in [
            include_str!("../../tests/golden/requests/chat/unknown-fields-and-items.json"),
            include_str!("../../tests/golden/requests/chat/legacy-functions.json"),
            include_str!("../../tests/golden/requests/chat/reasoning-details.json"),
            include_str!("../../tests/golden/requests/chat/custom-tool.json"),
            include_str!("../../tests/golden/requests/chat/stop-and-sampling.json"),
            include_str!("../../tests/golden/requests/chat/allowed-tools.json"),
            include_str!("../../tests/golden/requests/chat/number-text.json"),
        ] {
            let body: Value = serde_json::from_str(body).unwrap();
            let ask = decode(&body);
            let rules = rules("openai-chat");
            let (mut prompt, mut report) = prepare(&ask, &Target::new(&rules));
            // What the normaliser makes of it is its own affair.
            prompt.entries.clone_from(&ask.entries);
            let sent: Value = serde_json::from_str(&encode_request(&prompt, &mut report)).unwrap();
            assert_eq!(sent, body);
        }
    }

    #[test]
    fn another_model_is_the_only_change_that_was_asked_for() {
        let body = json!({"x": 1.5, "model": "a", "messages": [{"role": "user", "content": "Hi."}]});
        let ask = decode(&body);
        let rules = rules("openai-chat");
        let target = Target { model: Some("b".into()), ..Target::new(&rules) };
        let (prompt, mut report) = prepare(&ask, &target);
        let sent = encode_request(&prompt, &mut report);
        assert_eq!(sent, r#"{"x":1.5,"model":"b","messages":[{"role":"user","content":"Hi."}]}"#);
        assert!(report.changes.is_empty());
    }

    #[test]
    fn settings_of_another_dialect_get_the_names_they_have_here() {
        let settings = Settings {
            max_output_tokens: Some("512".into()),
            temperature: Some("1.10".into()),
            top_k: Some("5".into()),
            stop: vec!["END".into()],
            format: Some(Format::JsonSchema {
                name: None,
                description: None,
                schema: "{}".into(),
                strict: Some(true),
            }),
            reasoning: Some(Reasoning { budget: Some("8000".into()), ..Reasoning::default() }),
            store: Some(false),
            ..Settings::default()
        };
        let ask = Ask { stream: true, ..foreign(settings) };
        let (sent, report) = encode(&ask, &rules("openai-chat"));
        assert_eq!(
            sent,
            json!({
                "model": "kettle-1",
                "messages": [{"role": "user", "content": "Hi."}],
                "max_completion_tokens": 512,
                "temperature": 1.1,
                "stop": ["END"],
                "response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": {}, "strict": true}},
                "reasoning_effort": "medium",
                "store": false,
                "stream": true,
                "stream_options": {"include_usage": true},
            })
        );
        assert_eq!((report.count(Action::Dropped), report.count(Action::Translated)), (1, 2));
        let (sent, _) = encode(&ask, &rules("strict-chat"));
        assert_eq!(
            (&sent["max_tokens"], &sent["top_k"], &sent["store"]),
            (&json!(512), &json!(5), &Value::Null)
        );
    }

    #[test]
    fn mistral_is_sent_nothing_that_it_refuses() {
        let settings = Settings {
            seed: Some("7".into()),
            user: Some("u".into()),
            store: Some(true),
            verbosity: Some("low".into()),
            ..Settings::default()
        };
        let (sent, report) = encode(&Ask { stream: true, ..foreign(settings) }, &rules("mistral"));
        assert_eq!(
            sent,
            json!({
                "model": "kettle-1",
                "messages": [{"role": "user", "content": "Hi."}],
                "random_seed": 7,
                "stream": true,
            })
        );
        assert_eq!(report.count(Action::Dropped), 3);
    }

    #[test]
    fn mistral_is_sent_nothing_that_it_refuses_in_this_dialect_either() {
        let ask = decode(&json!({
            "model": "a", "messages": [{"role": "user", "content": "Hi."}],
            "functions": [{"name": "f"}], "function_call": "auto",
            "max_completion_tokens": 9, "seed": 7, "stream_options": {"include_usage": true}, "safe_prompt": true,
        }));
        let (sent, report) = encode(&ask, &rules("mistral"));
        assert_eq!(
            sent,
            json!({
                "model": "a", "messages": [{"role": "user", "content": "Hi."}],
                "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto",
                "max_tokens": 9, "random_seed": 7, "safe_prompt": true,
            })
        );
        assert_eq!(report.count(Action::Dropped), 1);
    }

    #[test]
    fn deepseek_is_told_not_to_reason_by_its_own_switch() {
        let off = Reasoning { effort: Some("none".into()), ..Reasoning::default() };
        let ask = foreign(Settings { reasoning: Some(off), ..Settings::default() });
        assert_eq!(encode(&ask, &rules("deepseek")).0["thinking"], json!({"type": "disabled"}));
        assert_eq!(encode(&ask, &rules("openai-chat")).0["reasoning_effort"], json!("none"));
    }

    #[test]
    fn a_custom_tool_is_a_function_where_there_are_none() {
        let format = r#"{"type":"grammar","syntax":"lark","definition":"s: x"}"#;
        let tool = Tool {
            name: "patch".into(),
            namespace: None,
            description: Some("Patches.".into()),
            form: ToolForm::Custom { format: Some(format.into()) },
            wire: None,
            intact: true,
        };
        let ask = Ask {
            tools: vec![tool],
            tool_choice: Some(ToolChoice::Named("patch".into())),
            ..foreign(Settings::default())
        };
        let (sent, _) = encode(&ask, &rules("openai-chat"));
        assert_eq!(sent["tools"][0]["custom"]["format"]["grammar"]["syntax"], json!("lark"));
        assert_eq!(sent["tool_choice"], json!({"type": "custom", "custom": {"name": "patch"}}));
        let (sent, report) = encode(&ask, &rules("deepseek"));
        let function = &sent["tools"][0]["function"];
        assert_eq!(function["parameters"]["required"], json!(["throughline_input"]));
        assert!(function["description"].as_str().unwrap().ends_with("this lark grammar:\ns: x"));
        assert_eq!(sent["tool_choice"], json!({"type": "function", "function": {"name": "patch"}}));
        assert!(changes(&report).iter().any(|change| change.contains("declared as a function")));
    }

    #[test]
    fn the_choice_among_some_tools_is_enforced_here_where_the_target_cannot() {
        let body = include_str!("../../tests/golden/requests/chat/allowed-tools-required.json");
        let ask = decode(&serde_json::from_str(body).unwrap());
        let (sent, report) = encode(&ask, &rules("deepseek"));
        assert_eq!((&sent["tool_choice"], sent["tools"].as_array().unwrap().len()), (&json!("required"), 3));
        assert_eq!(report.count(Action::Translated), 1);
    }

    #[test]
    fn functions_of_old_are_declared_as_tools_once_they_changed() {
        let body = include_str!("../../tests/golden/requests/chat/legacy-functions-named.json");
        let ask = decode(&serde_json::from_str(body).unwrap());
        let rules = rules("openai-chat");
        let (mut prompt, mut report) = prepare(&ask, &Target::new(&rules));
        prompt.tools[0].intact = false;
        prompt.tools[0].name = "weather".into();
        prompt.tool_choice = Some(ToolChoice::Named("weather".into()));
        let sent: Value = serde_json::from_str(&encode_request(&prompt, &mut report)).unwrap();
        assert_eq!(sent["tools"][0]["function"]["name"], json!("weather"));
        assert_eq!(sent["tool_choice"]["function"]["name"], json!("weather"));
        assert!(sent.get("functions").is_none() && sent.get("function_call").is_none());
    }
}
