//! The normaliser's cases, as short lines.
//!
//! `s` system, `d` developer, `u` user, `a` assistant, `t` sealed thought, `t0` unsealed thought, `x` an
//! opaque item of the target, `y` one of another dialect, `c:ID` call, `r:ID` result, `e:ID` failed result,
//! `i:ID` result with an image, `r` result without an id; `u-` and `a-` say nothing but white space,
//! `x-` nothing at all. What
//! comes out is written the same way; `+` stands for something that was put in, `~` for a retold entry.

use crate::{
    Action, Ask, Call, Content, Dialect, Entry, Extra, Image, Input, Kind, Media, Outcome, Part, Reasoning,
    Report, Return, Role, Rules, Said, Seal, Strategy, Target, Text, Thought, Tool, ToolForm, Wire, prepare,
};

fn entry(word: &str, dialect: Dialect) -> Entry {
    let (head, id) = word.split_once(':').unwrap_or((word, ""));
    let wire = |dialect| Some(Wire { dialect, text: "{}".into(), extras: Vec::new() });
    match head {
        "s" => Entry::said(Role::System, "s"),
        "d" => Entry::said(Role::Developer, "s"),
        "u" => Entry::said(Role::User, "u"),
        "a" => Entry::said(Role::Assistant, "a"),
        "u-" => Entry::said(Role::User, " \n"),
        "x-" => Entry::new(Kind::Said(Said { role: Role::Assistant, parts: vec![], standing: false })),
        "a-" => Entry::said(Role::Assistant, ""),
        "t" | "t0" => {
            let seal = (head == "t").then(|| Seal::Signature("sig".into()));
            let thought = Thought { content: vec!["hm".into()], seal, ..Thought::default() };
            Entry { wire: wire(dialect), ..Entry::new(Kind::Thought(thought)) }
        }
        "x" => Entry { wire: wire(dialect), ..Entry::new(Kind::Opaque { kind: "x".into() }) },
        "y" => {
            let other = Dialect::ALL.into_iter().find(|other| *other != dialect).unwrap();
            Entry { wire: wire(other), ..Entry::new(Kind::Opaque { kind: "y".into() }) }
        }
        "c" => Entry::new(Kind::Called(Call {
            id: id.into(),
            item_id: Some(format!("item-{id}").into()),
            name: "read".into(),
            namespace: None,
            input: Input::Arguments("{}".into()),
        })),
        "r" | "e" | "i" => result(head, id),
        _ => panic!("no such word: {word}"),
    }
}

fn result(head: &str, id: &str) -> Entry {
    let image = Image { media: Media::Url("https://example.com/i.png".into()), detail: None };
    let mut parts = vec![Part::text(format!("result of {id}"))];
    parts.extend((head == "i").then_some(Part { content: Content::Image(image), wire: None }));
    Entry::new(Kind::Returned(Return {
        call_id: (!id.is_empty()).then(|| id.into()),
        item_id: None,
        name: None,
        parts,
        outcome: if head == "e" { Outcome::Error } else { Outcome::Ok },
        freeform: false,
    }))
}

fn word(entry: &Entry) -> String {
    match &entry.kind {
        Kind::Said(said) => said_word(said),
        Kind::Thought(_) => "t".into(),
        Kind::Called(call) => format!("c:{}", call.id),
        Kind::Returned(returned) => {
            let head = match returned.outcome {
                Outcome::Ok if returned.parts.len() > 1 && returned.parts[1].as_text().is_none() => "i",
                Outcome::Ok => "r",
                Outcome::Error => "e",
                _ => "+",
            };
            format!("{head}:{}", returned.call_id.clone().unwrap_or_default())
        }
        Kind::Opaque { kind } => kind.to_string(),
        kind => panic!("not for a backend: {kind:?}"),
    }
}

fn said_word(said: &Said) -> String {
    let role = match said.role {
        Role::System => "s",
        Role::Developer => return "d".into(),
        Role::User => "u",
        Role::Assistant => "a",
    };
    let text = crate::joined_text(&said.parts);
    let lines: Vec<&str> = text.split('\n').collect();
    match lines.as_slice() {
        [line] if *line == role => role.into(),
        ["Context (tool result):", ..] => {
            format!("{role}~{}", lines.last().unwrap().replace("result of ", ""))
        }
        ["System message:", told] => format!("{role}~{told}"),
        [line] if line.starts_with("[attachments") => format!("{role}~media"),
        lines if lines.iter().all(|line| *line == role) => role.repeat(lines.len()),
        _ => format!("{role}+"),
    }
}

fn ask(entries: Vec<Entry>, dialect: Dialect) -> Ask {
    Ask { tools: vec![tool("read", None)], ..Ask::of(dialect, entries) }
}

fn tool(name: &str, namespace: Option<&str>) -> Tool {
    Tool {
        name: name.into(),
        namespace: namespace.map(Text::from),
        description: None,
        form: ToolForm::Function { schema: None, strict: None },
        wire: None,
        intact: true,
    }
}

fn words(line: &str, dialect: Dialect) -> Vec<Entry> {
    line.split_whitespace().map(|word| entry(word, dialect)).collect()
}

fn run(rules: &str, line: &str) -> (String, Report) {
    let rules = Rules::from_name(rules).unwrap();
    let ask = ask(words(line, rules.dialect), rules.dialect);
    let (prompt, report) = prepare(&ask, &Target::new(&rules));
    (prompt.entries.iter().map(word).collect::<Vec<_>>().join(" "), report)
}

fn check(rules: &str, line: &str, expected: &str) {
    assert_eq!(run(rules, line).0, expected, "for {rules}: {line}");
}

/// What is in order stays as it is, and nothing is reported.
fn check_untouched(rules: &str, line: &str) {
    let (shown, report) = run(rules, line);
    assert_eq!(shown, line);
    assert_eq!(report.changes, [], "for {rules}: {line}");
}

#[test]
fn what_is_in_order_is_left_alone() {
    for rules in ["openai-responses", "anthropic", "openai-chat"] {
        check_untouched(rules, "u a c:1 c:2 r:2 r:1 a u c:3 r:3");
        check_untouched(rules, "s u t c:1 e:1 a");
    }
}

#[test]
fn a_call_without_a_result_is_closed_where_it_stands() {
    check("anthropic", "u c:1 c:2 r:1 u", "u c:1 c:2 r:1 +:2 u");
    check("openai-chat", "u c:1 u c:2 r:2", "u c:1 +:1 u c:2 r:2");
    check("openai-responses", "u c:1", "u c:1 +:1");
}

#[test]
fn the_closing_result_claims_nothing() {
    let rules = Rules::from_name("anthropic").unwrap();
    let ask = ask(words("u c:1", Dialect::Messages), Dialect::Messages);
    let (prompt, _) = prepare(&ask, &Target::new(&rules));
    let returned = prompt.entries[2].as_return().unwrap();
    assert_eq!(returned.outcome, Outcome::Unknown);
    assert!(crate::joined_text(&returned.parts).contains("Whether the tool ran is not known"));
}

#[test]
fn results_are_brought_to_their_batch() {
    check("anthropic", "u c:1 u r:1", "u c:1 r:1 u");
    check("openai-chat", "u c:1 c:2 r:1 a r:2", "u c:1 c:2 r:1 r:2 a");
    check("openai-responses", "r:1 u c:1", "u c:1 r:1");
}

#[test]
fn an_orphan_is_retold_and_a_repeated_result_dropped() {
    check("anthropic", "u r:9 a", "u u~9 a");
    check("openai-chat", "u c:1 r:1 r:1", "u c:1 r:1");
    check("openai-responses", "u c:1 r:1 e:1", "u c:1 r:1 u~1");
}

#[test]
fn an_orphan_of_a_continued_answer_is_left_alone() {
    let rules = Rules::of_dialect(Dialect::Responses);
    let mut ask = ask(words("r:1", Dialect::Responses), Dialect::Responses);
    ask.previous = Some("resp_1".into());
    let (prompt, report) = prepare(&ask, &Target::new(&rules));
    assert_eq!(prompt.entries, ask.entries);
    assert_eq!(report.changes, []);
}

#[test]
fn an_orphan_of_a_continued_answer_is_retold_if_that_answer_cannot_have_called_it() {
    let shown = |line: &str| {
        let rules = Rules::of_dialect(Dialect::Responses);
        let mut ask = ask(words(line, Dialect::Responses), Dialect::Responses);
        ask.previous = Some("resp_1".into());
        prepare(&ask, &Target::new(&rules)).0.entries.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown("r:1 r:1 e:1"), "r:1 u~1", "a result is given once");
    assert_eq!(shown("r"), "u~", "an id is needed");
    assert_eq!(shown("r:1 u c:1 r:1"), "u~1 u c:1 r:1", "the call is here, and has its result");
    let long = "x".repeat(65);
    assert_eq!(shown(&format!("r:{long}")), format!("u~{long}"), "the target issues no such id");
}

#[test]
fn a_request_that_only_continues_an_answer_is_left_alone() {
    let rules = Rules::of_dialect(Dialect::Responses);
    let mut ask = ask(Vec::new(), Dialect::Responses);
    ask.previous = Some("resp_1".into());
    assert_eq!(prepare(&ask, &Target::new(&rules)).0.entries, []);
    ask.previous = None;
    assert_eq!(prepare(&ask, &Target::new(&rules)).0.entries.len(), 1);
}

#[test]
fn ids_that_recur_are_told_apart_where_the_target_wants_that() {
    let (shown, report) = run("anthropic", "u c:1 r:1 u c:1 r:1");
    let ids: Vec<&str> = shown.split(' ').filter_map(|word| word.strip_prefix("c:")).collect();
    assert_eq!(ids[0], "1");
    assert_ne!(ids[1], "1");
    assert!(shown.contains(&format!("r:{}", ids[1])));
    assert_eq!(report.count(Action::Renamed), 1);
    check_untouched("openai-chat", "u c:1 r:1 u c:1 r:1");
}

#[test]
fn an_item_id_and_a_missing_id_are_replaced_by_the_call_id() {
    check("openai-responses", "u c:1 r:item-1", "u c:1 r:1");
    check("openai-chat", "u c:1 c:2 r r", "u c:1 c:2 r:1 r:2");
}

#[test]
fn system_messages_stand_where_the_target_allows_them() {
    check("mistral", "s u a s u", "s u a u~s u");
    check("anthropic", "s d u s a", "s s u u~s a");
    check("openai-chat", "d u", "d u");
    check("strict-chat", "s d u s a u", "ss u+ a u");
    check_untouched("openai-chat", "s u s a d u");
}

#[test]
fn turns_take_the_order_of_strict_templates() {
    check("strict-chat", "a u u", "u+ a uu");
    check("strict-chat", "u a", "u a u+");
    check("mistral", "u c:123456789 r:123456789 u", "u c:123456789 r:123456789 a+ u");
    check("anthropic", "c:1 r:1", "u+ c:1 r:1");
}

#[test]
fn blank_text_goes_where_it_is_rejected_and_stays_where_it_is_not() {
    check("anthropic", "u- u a- a u-", "u a");
    check("openai-chat", "u a-", "u a+");
    check("anthropic", "u-", "u+");
}

#[test]
fn opaque_items_go_to_their_own_dialect_only() {
    check("openai-responses", "u x a", "u x a");
    let (shown, report) = run("openai-responses", "u y a");
    assert_eq!(shown, "u a");
    assert_eq!(report.count(Action::Dropped), 1);
}

#[test]
fn reasoning_without_a_seal_is_not_sent_where_seals_are_checked() {
    check("anthropic", "u t0 c:1 r:1", "u c:1 r:1");
    check("openai-responses", "u t0 c:1 r:1", "u t c:1 r:1");
}

#[test]
fn an_opaque_item_outlives_the_reasoning_before_it() {
    let rules = Rules::from_name("anthropic").unwrap();
    let ask = ask(words("u t0 x a", Dialect::Messages), Dialect::Messages);
    let (prompt, _) = prepare(&ask, &Target::new(&rules));
    assert_eq!(prompt.entries[1], ask.entries[2]);
}

#[test]
fn reasoning_that_nothing_follows_is_not_sent_to_responses() {
    check("openai-responses", "u t u t a", "u u t a");
    check("openai-responses", "u t t a", "u t a");
    check("openai-responses", "u t x- u", "u u");
}

#[test]
fn reasoning_goes_back_to_its_issuer_only() {
    let origin = |backend: &str| crate::Origin {
        backend: backend.into(),
        dialect: Dialect::Messages,
        model: "m".into(),
    };
    let rules = Rules::from_name("anthropic").unwrap();
    let mut entries = words("u t c:1 r:1", Dialect::Messages);
    entries[1].origin = Some(origin("a"));
    let ask = ask(entries, Dialect::Messages);
    let shown = |backend: &str| {
        let target = Target { origin: Some(origin(backend)), ..Target::new(&rules) };
        prepare(&ask, &target).0.entries
    };
    assert_eq!(shown("a")[1], ask.entries[1]);
    assert_eq!(shown("b").iter().map(word).collect::<Vec<_>>().join(" "), "u c:1 r:1");
}

#[test]
fn foreign_reasoning_becomes_text_if_that_is_asked_for() {
    let rules = Rules::from_name("openai-chat").unwrap();
    let ask = ask(words("u t a", Dialect::Messages), Dialect::Messages);
    let target = Target { foreign_reasoning: crate::ForeignReasoning::AsText, ..Target::new(&rules) };
    let (prompt, _) = prepare(&ask, &target);
    let told = prompt.entries[1].as_said().unwrap();
    assert_eq!((told.role, told.parts[0].as_text().unwrap().as_str()), (Role::Assistant, "hm"));
}

#[test]
fn reasoning_is_switched_off_for_a_turn_that_does_not_open_with_it() {
    let rules = Rules::from_name("anthropic").unwrap();
    let off = |line: &str| {
        let mut ask = ask(words(line, Dialect::Messages), Dialect::Messages);
        ask.settings.reasoning = Some(Reasoning { budget: Some("2048".into()), ..Reasoning::default() });
        prepare(&ask, &Target::new(&rules)).0.without_reasoning
    };
    assert!(off("u c:1 r:1"));
    assert!(!off("u t c:1 r:1"));
    assert!(!off("u c:1 r:1 a u"), "an older turn does not matter");
    assert!(!off("u t c:1 r:1 c:2 r:2"), "a model may think once in a whole tool loop");
    assert!(!off("u c:1 r:1 t c:2 r:2"), "or come to think later");
    assert!(off("u t a u c:1 r:1"));
    assert!(off("u a u-"), "what is left is a turn under way");
}

#[test]
fn media_leave_results_that_are_text_only() {
    check("openai-chat", "u c:1 c:2 i:1 r:2 a", "u c:1 c:2 r:1 r:2 u~media a");
    check_untouched("anthropic", "u c:1 i:1");
}

#[test]
fn mistral_gets_neither_reasoning_nor_refusals_nor_files() {
    let rules = Rules::from_name("mistral").unwrap();
    let mut entries = words("u t0 a u", Dialect::Chat);
    let part = |content| Part { content, wire: None };
    entries[2] = entries[2].altered(Kind::Said(Said {
        role: Role::Assistant,
        parts: vec![part(Content::Refusal("no".into()))],
        standing: false,
    }));
    let file = |media| part(Content::File(crate::File { media, name: None }));
    entries[3] = entries[3].altered(Kind::Said(Said {
        role: Role::User,
        parts: vec![file(Media::Plain("words".into())), file(Media::Url("https://example.com/a.pdf".into()))],
        standing: false,
    }));
    let ask = ask(entries, Dialect::Chat);
    let (prompt, report) = prepare(&ask, &Target::new(&rules));
    let texts: Vec<_> =
        prompt.entries.iter().map(|entry| crate::joined_text(&entry.as_said().unwrap().parts)).collect();
    assert_eq!(texts, ["u", "no", "words\n[file left out: the target takes no files]"]);
    assert_eq!((report.count(Action::Dropped), report.count(Action::Translated)), (2, 2));
}

#[test]
fn text_embed_shows_results_and_no_call() {
    let rules = Rules::of_dialect(Dialect::Chat);
    let ask = ask(words("u a c:1 c:2 r:1 e:2 a", Dialect::Chat), Dialect::Chat);
    let target = Target { strategy: Strategy::TextEmbed(crate::EmbedForm::Plain), ..Target::new(&rules) };
    let (prompt, report) = prepare(&ask, &target);
    let shown: Vec<String> = prompt.entries.iter().map(word).collect();
    assert_eq!(shown.join(" "), "u a u~1 u~2 a");
    assert!(report.to_string().ends_with("strategy=text-embed"));
}

#[test]
fn long_and_namespaced_tool_names_are_mapped_and_found_again() {
    let rules = Rules::of_dialect(Dialect::Chat);
    let long = "n".repeat(80);
    let mut entries = words("u c:1 r:1", Dialect::Responses);
    if let Kind::Called(call) = &mut entries[1].kind {
        call.name = long.as_str().into();
        call.namespace = Some("files".into());
    }
    let mut ask = ask(entries, Dialect::Responses);
    ask.tools = vec![tool(&long, Some("files"))];
    ask.tool_choice = Some(crate::ToolChoice::Named(long.as_str().into()));
    let (prompt, _) = prepare(&ask, &Target::new(&rules));
    let sent = &prompt.tools[0].name;
    assert!(rules.tool_name.admits(sent));
    assert_eq!(&prompt.entries[1].as_call().unwrap().name, sent);
    assert_eq!(prompt.tool_choice, Some(crate::ToolChoice::Named(sent.clone())));
    assert_eq!(prompt.names.to_original(sent), &Text::from(format!("files__{long}")));
}

#[test]
fn what_another_dialect_has_no_place_for_is_reported() {
    let rules = Rules::of_dialect(Dialect::Chat);
    let mut entries = words("u", Dialect::Messages);
    let extra = Extra { name: "cache_control".into(), value: "{}".into() };
    entries[0].wire = Some(Wire { dialect: Dialect::Messages, text: "{}".into(), extras: vec![extra] });
    let mut ask = ask(entries, Dialect::Messages);
    ask.extras = vec!["container".into()];
    let (_, report) = prepare(&ask, &Target::new(&rules));
    let reasons: Vec<&str> = report.changes.iter().map(|change| change.reason.as_str()).collect();
    assert_eq!(reasons, ["cache_control has no counterpart in chat", "no counterpart in chat"]);
}

#[test]
fn tools_are_declared_for_a_history_that_needs_them() {
    let rules = Rules::from_name("anthropic").unwrap();
    let mut ask = ask(words("u c:1 r:1", Dialect::Messages), Dialect::Messages);
    ask.tools = Vec::new();
    let (prompt, _) = prepare(&ask, &Target::new(&rules));
    assert_eq!(prompt.tools.len(), 1);
    assert_eq!(prompt.tool_choice, Some(crate::ToolChoice::None));
}

#[test]
fn the_same_call_sent_twice_is_one_pair_and_another_under_its_id_is_not() {
    check("anthropic", "u c:1 c:1 r:1", "u c:1 r:1");
    check("anthropic", "u c:1 c:1 r:1 r:1", "u c:1 r:1");
    let (shown, report) = run("openai-chat", "u c:1 c:1 r:1 e:1");
    assert!(shown.starts_with("u c:1 c:1_") && shown.contains("e:1_"), "{shown}");
    assert!(report.count(Action::Renamed) > 0);
}
