//! Request bodies and documents for people.

use crate::sessions::{pairs, story};
use throughline_carry::{Told, read_body, write_body, write_markdown};
use throughline_core::{Call, Dialect, Entry, Input, Kind, Part, Role, Said, Summary, Thought};
use throughline_testkit::validate::{Provider, validate};

const BODY: &str = r#"{"model":"m","messages":[
  {"role":"user","content":"go"},
  {"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"p\":1.10}"}}]},
  {"role":"tool","tool_call_id":"a","content":"```\nfenced\n```"},
  {"role":"assistant","content":"done"}]}"#;

fn told() -> Vec<Told> {
    let (_, pieces) = read_body(Dialect::Chat, BODY).unwrap();
    let entries = pieces.into_iter().flat_map(|piece| piece.entries);
    (0..).zip(entries).map(|(number, entry)| Told { entry, at: 0, number: Some(number) }).collect()
}

#[test]
fn a_body_is_one_session_and_a_branch_one_body() {
    let (facts, _) = read_body(Dialect::Chat, BODY).unwrap();
    assert_eq!((facts.turns, facts.calls, facts.results), (1, 1, 1));
    for dialect in Dialect::ALL {
        let (body, _) = write_body(dialect, &told(), Some("other".into()));
        let provider = match dialect {
            Dialect::Chat => Provider::OpenAiChat,
            Dialect::Messages => Provider::Anthropic,
            Dialect::Responses => Provider::OpenAiResponses,
        };
        let violations = validate(provider, &serde_json::from_str(&body).unwrap());
        assert!(violations.is_empty(), "{dialect}: {violations:?}: {body}");
        let (_, pieces) = read_body(dialect, &body).unwrap();
        let entries = pieces.into_iter().flat_map(|piece| piece.entries);
        let there: Vec<Told> =
            (0..).zip(entries).map(|(number, entry)| Told { entry, at: 0, number: Some(number) }).collect();
        assert_eq!(pairs(&there), pairs(&told()), "{dialect}");
    }
}

#[test]
fn a_body_begins_with_the_last_summary() {
    let mut history = told();
    let summary = Summary { text: "so far".into(), covers: 4 };
    history.push(Told { entry: Entry::new(Kind::Summarised(summary)), at: 0, number: Some(4) });
    history.push(Told { entry: Entry::said(Role::User, "on"), at: 0, number: Some(5) });
    let (body, _) = write_body(Dialect::Chat, &history, None);
    assert!(body.contains("so far") && body.contains("on") && !body.contains("fenced"), "{body}");
}

#[test]
fn instructions_are_at_the_head_of_a_body_wherever_they_came() {
    let standing = |text: &str| {
        let parts = vec![Part::text(text)];
        Entry::new(Kind::Said(Said { role: Role::System, parts, standing: true }))
    };
    let mut entries: Vec<Entry> = told().into_iter().map(|told| told.entry).collect();
    entries.insert(0, standing("be brief"));
    // Behind the call, with its result.
    entries.insert(3, standing("be long"));
    let numbered = (0..).zip(entries).map(|(number, entry)| Told { entry, at: 0, number: Some(number) });
    let history: Vec<Told> = numbered.collect();
    for dialect in Dialect::ALL {
        let (body, report) = write_body(dialect, &history, None);
        assert!(body.contains("be long") && !body.contains("be brief"), "{dialect}: {body}");
        assert!(body.find("be long") < body.find("fenced") || dialect == Dialect::Messages, "{body}");
        assert!(!body.contains("System message"), "{dialect}: {body}");
        let told: Vec<&str> = report.changes.iter().map(|change| &*change.reason).collect();
        assert!(told.contains(&"later instructions hold in their place"), "{dialect}: {told:?}");
        assert!(!told.iter().any(|reason| reason.contains("did not follow")), "{dialect}: {told:?}");
    }
}

#[test]
fn a_document_shows_each_call_with_its_result_in_a_fence_that_holds() {
    let text = write_markdown("A title", &told());
    assert!(text.starts_with("# A title\n"), "{text}");
    assert!(
        text.contains("### `read`\n\n```json\n{\"p\":1.10}\n```\n\n````\n```\nfenced\n```\n````\n"),
        "{text}"
    );
    assert_eq!(story(&told()).len(), 4);
}

#[test]
fn what_the_model_thinks_and_does_stands_under_its_name() {
    let history: Vec<Told> = [
        Kind::Said(Said { role: Role::User, parts: vec![Part::text("go")], standing: false }),
        Kind::Thought(Thought { content: vec!["hm".into()], ..Thought::default() }),
        Kind::Called(Call {
            id: "a".into(),
            item_id: None,
            name: "read".into(),
            namespace: None,
            input: Input::Arguments("{}".into()),
        }),
        Kind::Said(Said { role: Role::Assistant, parts: vec![Part::text("done")], standing: false }),
    ]
    .into_iter()
    .map(|kind| Told { entry: Entry::new(kind), at: 0, number: None })
    .collect();
    let text = write_markdown("T", &history);
    let time = "*1970-01-01T00:00:00.000Z*";
    assert_eq!(
        text,
        format!(
            "# T\n\n## User\n\n{time}\n\ngo\n\n## Assistant\n\n{time}\n\n*Thought:*\n\n> hm\n\n### `read`\n\n\
             ```json\n{{}}\n```\n\n*There is no result.*\n\ndone\n"
        )
    );
}
