//! Histories that do not fit: each setting of `[history]` at work, and decisions that stick.

use crate::client::{Answer, Client};
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::{ConversationId, Dialect};
use throughline_store::{
    Batch, DocumentKind, Exchanges, History, Learned, Memory, Moment, Paging, Which, Write,
};

pub const PAIRS: usize = 40;

/// Returns what the file of that number holds: about 300 tokens, no line like another.
pub fn content(file: usize) -> String {
    let line = |line: usize| format!("fn handler_{file}_{line}() -> Value_{file} {{ compute({line}) }}\n");
    (0..16).map(line).collect()
}

/// Adds a call of a tool with its result to a client's history.
pub fn add_pair(client: &mut Client, id: usize, tool: &str, path: &str, result: &str) {
    let (id, arguments) = (format!("call_{id}"), json!({"path": path}));
    client.history.push(match client.dialect {
        Dialect::Chat => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}}]}),
        Dialect::Messages => json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": tool, "input": arguments}]}),
        Dialect::Responses => json!({"type": "function_call", "call_id": id, "name": tool,
            "arguments": arguments.to_string()}),
    });
    client.result(&id, result);
}

pub fn with_pairs(url: &str, dialect: Dialect, pairs: usize) -> Client {
    let mut client = Client::new(url, dialect);
    client.say("Please read all the files");
    for file in 0..pairs {
        add_pair(&mut client, file, "read_file", &format!("src/{file}.rs"), &content(file));
    }
    client
}

/// Returns how many of the files are in a body as they are.
pub fn whole(body: &str, files: std::ops::Range<usize>) -> usize {
    let escaped = |file| {
        let text = Value::from(content(file)).to_string();
        text[1..text.len() - 1].to_owned()
    };
    files.filter(|file| body.contains(&escaped(*file))).count()
}

fn shortened(answer: &Answer) -> usize {
    let report = answer.header("x-throughline-report").to_owned();
    let counted = report.split(' ').filter_map(|word| {
        word.strip_prefix("shortened=").or_else(|| word.strip_prefix("dropped="))?.parse::<usize>().ok()
    });
    counted.sum()
}

async fn house(lines: &'static str) -> House {
    let rooms = one_of_each().into_iter().map(|room| Room { lines, ..room }).collect();
    House::new(rooms).await
}

fn sent(house: &House, backend: &str) -> String {
    house.recorded(backend).last().unwrap().body.clone()
}

#[tokio::test]
async fn what_fits_is_not_touched() {
    let house = house("context_window = 200000").await;
    for (client, backend) in Dialect::ALL.into_iter().flat_map(|one| Dialect::ALL.map(|two| (one, two))) {
        let mut client = with_pairs(&house.url, client, PAIRS);
        let answer = client.ask(backend.name()).await;
        assert_eq!(shortened(&answer), 0);
        assert_eq!(whole(&sent(&house, backend.name()), 0..PAIRS), PAIRS);
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_budget_holds_in_all_nine_ways() {
    let house = house("history = { budget = 7000 }").await;
    for (client, backend) in Dialect::ALL.into_iter().flat_map(|one| Dialect::ALL.map(|two| (one, two))) {
        let mut client = with_pairs(&house.url, client, PAIRS);
        let answer = client.ask(backend.name()).await;
        let body = sent(&house, backend.name());
        assert!(shortened(&answer) > 10, "{}", answer.header("x-throughline-report"));
        assert_eq!(whole(&body, PAIRS - 2..PAIRS), 2, "the latest calls stay whole: {body}");
        assert!(whole(&body, 0..PAIRS) < PAIRS / 2, "{body}");
        assert!(body.contains("Please read all the files"));
        let counted = answer.body["usage"].to_string();
        assert!(body.len() < 30_000, "{} bytes were sent; {counted}", body.len());
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn the_window_of_a_backend_is_a_budget_less_the_answer() {
    for (window, max_tokens, touched) in
        [(24_000, 1_000, false), (24_000, 10_000, true), (12_000, 1_000, true)]
    {
        let lines = format!("context_window = {window}").leak();
        let house = house(lines).await;
        let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
        client.extra = json!({"max_tokens": max_tokens});
        let answer = client.ask("chat").await;
        assert_eq!(shortened(&answer) > 0, touched, "{window} {max_tokens}");
        house.stop().await;
    }
}

#[tokio::test]
async fn recent_calls_are_kept_as_long_as_possible() {
    let mut kept = Vec::new();
    for lines in [
        "history = { budget = 12000, recent_calls_to_keep = 1 }",
        "history = { budget = 12000, recent_calls_to_keep = 12 }",
    ] {
        let house = house(lines).await;
        with_pairs(&house.url, Dialect::Chat, PAIRS).ask("messages").await;
        kept.push(whole(&sent(&house, "messages"), PAIRS - 12..PAIRS));
        house.stop().await;
    }
    assert!(kept[0] < kept[1], "{kept:?}");
}

#[tokio::test]
async fn a_threshold_that_is_set_holds_whoever_keeps_the_history() {
    for (lines, touched) in [
        ("history = { truncation_threshold = 3000 }", true),
        ("history = { truncation_threshold = 100000 }", false),
    ] {
        for backend in ["messages", "chat"] {
            let house = house(lines).await;
            let mut client = with_pairs(&house.url, Dialect::Responses, PAIRS);
            let first = client.ask(backend).await;
            assert_eq!(shortened(&first) > 0, touched, "resent by the client: {lines} {backend}");
            client.history.clear();
            client.say("Go on");
            client.extra = json!({"previous_response_id": first.body["id"]});
            let answer = client.ask(backend).await;
            assert_eq!(shortened(&answer) > 0, touched, "{lines} {backend}");
            house.assert_nothing_refused();
            house.stop().await;
        }
    }
}

#[tokio::test]
async fn the_policy_decides_how() {
    let mut bodies = Vec::new();
    for lines in ["history = { budget = 7000 }", "history = { budget = 7000, policy = \"mask\" }"] {
        let house = house(lines).await;
        with_pairs(&house.url, Dialect::Chat, PAIRS).ask("chat").await;
        bodies.push(sent(&house, "chat"));
        house.stop().await;
    }
    let excerpts = |body: &str| body.matches("[excerpt").count();
    assert!(excerpts(&bodies[0]) > 5 && excerpts(&bodies[1]) == 0, "{}\n{}", bodies[0], bodies[1]);
}

#[tokio::test]
async fn what_may_not_be_shortened_is_an_error_in_the_words_of_the_dialect() {
    let house = house("history = { budget = 7000, policy = \"off\" }").await;
    for dialect in Dialect::ALL {
        let client = with_pairs(&house.url, dialect, PAIRS);
        let answer = client.post(&client.body("chat")).await;
        assert_eq!(answer.status, 400, "{}", answer.raw);
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("prompt is too long") && message.contains("7000"), "{message}");
        assert!(message.contains("the policy is `off`; an estimate, with "), "{message}");
        // In Messages it is the words that clients act on.
        if dialect != Dialect::Messages {
            assert_eq!(answer.body["error"]["code"], "context_length_exceeded");
        }
    }
    assert!(house.recorded("chat").is_empty());
    house.stop().await;
}

#[tokio::test]
async fn a_client_may_ask_for_an_error_instead_of_a_cut() {
    let house = house("history = { budget = 7000 }").await;
    let mut client = with_pairs(&house.url, Dialect::Responses, PAIRS);
    client.extra = json!({"truncation": "disabled"});
    let answer = client.post(&client.body("responses")).await;
    assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!("context_length_exceeded")));
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("`truncation` is `disabled`") && !message.contains("policy"), "{message}");
    client.extra = json!({"truncation": "auto"});
    assert!(shortened(&client.ask("responses").await) > 0);
    house.stop().await;
}

#[tokio::test]
async fn the_rules_say_what_supersedes_what() {
    let lines =
        "history = { budget = 11000, rules = [{ tools = [\"peek\"], kind = \"read\", key = \"path\" }] }";
    let mut whole_files = Vec::new();
    for lines in ["history = { budget = 11000 }", lines] {
        let house = house(lines).await;
        let mut client = Client::new(&house.url, Dialect::Chat);
        client.say("Look again and again");
        for look in 0..PAIRS {
            add_pair(&mut client, look, "peek", &format!("src/{}.rs", look % 8), &content(look));
        }
        client.ask("chat").await;
        // The latest look at each of the eight files.
        whole_files.push(whole(&sent(&house, "chat"), PAIRS - 8..PAIRS));
        house.stop().await;
    }
    assert!(whole_files[0] < 8 && whole_files[1] == 8, "{whole_files:?}");
}

/// What was decided is decided: until the next large step every request begins as the one before, also when
/// another gateway takes over the history.
#[tokio::test]
async fn decisions_stick_over_requests_and_restarts() {
    for dialect in Dialect::ALL {
        let history = Arc::new(Memory::new());
        let rooms = || vec![Room { lines: "history = { budget = 7000 }", ..Room::new("own", dialect) }];
        let mut client = with_pairs("http://nowhere", dialect, PAIRS);
        let mut before: Option<Vec<Value>> = None;
        for turn in 0..3 {
            let house = House::with_history(rooms(), history.clone()).await;
            client = client.at(&house.url);
            assert!(shortened(&client.ask("own").await) > 10);
            let body: Value = serde_json::from_str(&sent(&house, "own")).unwrap();
            let list = if dialect == Dialect::Responses { "input" } else { "messages" };
            let list = body[list].as_array().unwrap().clone();
            if let Some(before) = before.replace(list.clone()) {
                assert_eq!(list[..before.len()], before, "{dialect}, turn {turn}");
            }
            client.say("And now?");
            house.assert_nothing_refused();
            house.stop().await;
        }
    }
}

/// Returns the messages or items that a backend was sent last.
fn sent_list(house: &House, dialect: Dialect) -> Vec<Value> {
    let body: Value = serde_json::from_str(&sent(house, "own")).unwrap();
    let list = if dialect == Dialect::Responses { "input" } else { "messages" };
    body[list].as_array().unwrap().clone()
}

/// A session id may stand for several lines: the agent's own and those of its helpers. Each is shortened for itself, and
/// none of them loses what was decided for it, however much the others say and whoever serves them.
#[tokio::test]
async fn decisions_survive_many_exchanges_of_other_lines_and_a_restart() {
    let history = Arc::new(Memory::new());
    let rooms = || vec![Room { lines: "history = { budget = 7000 }", ..Room::new("own", Dialect::Chat) }];
    let session = || vec![("x-throughline-conversation", "conv_session".to_owned())];
    let house = House::with_history(rooms(), history.clone()).await;
    let mut main = with_pairs(&house.url, Dialect::Messages, PAIRS);
    main.headers = session();
    main.ask("own").await;
    let before = sent_list(&house, Dialect::Chat);

    let mut helper = Client::new(&house.url, Dialect::Messages);
    helper.headers = session();
    helper.say("Please look at other files");
    for file in 0..PAIRS {
        add_pair(&mut helper, file, "read_file", &format!("lib/{file}.rs"), &content(PAIRS + file));
    }
    assert!(shortened(&helper.ask("own").await) > 10);
    let of_helper = sent_list(&house, Dialect::Chat);
    for question in 0..200 {
        let mut aside = Client::new(&house.url, Dialect::Messages);
        aside.headers = session();
        aside.say(&format!("Question {question}: what is this about?"));
        aside.ask("own").await;
    }
    house.stop().await;

    let house = House::with_history(rooms(), history).await;
    for (mut client, before) in [(main, before), (helper, of_helper)] {
        client = client.at(&house.url);
        client.say("And now?");
        client.ask("own").await;
        assert_eq!(sent_list(&house, Dialect::Chat)[..before.len()], before);
    }
    house.assert_nothing_refused();
    house.stop().await;
}

/// What was decided is shown also when everything would fit by what is learned about how a model counts.
#[tokio::test]
async fn decisions_stay_when_the_token_factor_falls() {
    let history = Arc::new(Memory::new());
    let learn = async |history: &Memory, factor: &str| {
        let learned = Learned {
            backend: "own".into(),
            model: "model-of-own".into(),
            capability: "token_factor".into(),
            verdict: factor.into(),
            reason: format!("15 answers:{}", format!(" {factor}").repeat(15)).into(),
            at: Moment(1),
            expires: None,
        };
        history.append(Batch::durable(vec![Write::Learned(learned)])).await.unwrap();
    };
    let rooms =
        || vec![Room { lines: "history = { budget = 14000 }", ..Room::new("own", Dialect::Messages) }];
    let mut client = with_pairs("http://nowhere", Dialect::Chat, PAIRS);
    let mut before: Option<Vec<Value>> = None;
    for factor in ["4.000", "0.400", "1.000", "0.500"] {
        learn(&history, factor).await;
        let house = House::with_history(rooms(), history.clone()).await;
        client = client.at(&house.url);
        assert!(shortened(&client.ask("own").await) > 10, "{factor}");
        let list = sent_list(&house, Dialect::Messages);
        if let Some(before) = before.replace(list.clone()) {
            assert_eq!(list[..before.len()], before, "{factor}");
        }
        client.say("And now?");
        house.stop().await;
    }
    let empty = Arc::new(Memory::new());
    learn(&empty, "0.500").await;
    let untouched = House::with_history(rooms(), empty).await;
    let mut client = with_pairs(&untouched.url, Dialect::Chat, PAIRS);
    assert_eq!(shortened(&client.ask("own").await), 0, "nothing of it would have to go by now");
    untouched.stop().await;
}

/// What was decided is in the record, with a reason for each entry, once; later exchanges lead there.
#[tokio::test]
async fn the_record_says_what_was_shown_and_why() {
    let house = house("history = { budget = 7000 }").await;
    let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
    let id = client.ask("chat").await.header("x-throughline-conversation").to_owned();
    client.say("And now?");
    client.ask("chat").await;
    let page = async |path: &str| -> Value {
        let url = format!("{}/api/conversations/{id}/{path}", house.url);
        serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap()
    };
    let (first, second) = (page("sent/1").await, page("sent/2").await);
    let report = |exchange: &Value| exchange["attempts"][0]["report"].clone();
    assert!(report(&first)["changes"].as_array().unwrap().len() > 20, "{first}");
    let step = |exchange: &Value| exchange["attempts"][0]["compaction"].clone();
    assert_eq!(step(&first), json!({"exchange": first["id"], "attempt": 0}));
    assert_eq!(step(&second), step(&first));
    let steps = house.gateway.history.compaction(ConversationId::new(id.as_str())).await.unwrap();
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(steps[0].follows.is_none() && steps[0].decisions.lines().count() > 20, "{steps:?}");
    assert_eq!(report(&second)["changes"], json!([]));
    assert_eq!(page("sent/3").await["error"]["code"], "throughline_no_such_exchange");
    let frames = page("frames").await;
    assert!(frames["frames"].as_array().unwrap().len() >= 2, "{frames}");
    house.stop().await;
}

/// The request is kept to the byte, so that what was sent can be derived from it again; and whoever lists exchanges is
/// not given what was changed in each of them.
#[tokio::test]
async fn a_request_is_kept_as_it_came_and_a_list_carries_no_reports() {
    let house = house("history = { budget = 7000 }").await;
    let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
    let came = (client.print)(&client.body("chat"));
    let id = client.ask("chat").await.header("x-throughline-conversation").to_owned();
    let of = Exchanges::Of(ConversationId::new(id.as_str()), Paging::default());
    let exchange = house.gateway.history.exchanges(of).await.unwrap().items.remove(0);
    let recording = house.gateway.history.recording(exchange.id, Which::Documents).await.unwrap();
    assert_eq!(recording.document(0, DocumentKind::Received).unwrap(), came.as_bytes());
    assert_eq!(recording.document(0, DocumentKind::Sent).unwrap(), sent(&house, "chat").as_bytes());
    assert!(recording.document(0, DocumentKind::Report).unwrap().len() > 1_000);

    let url = format!("{}/api/conversations/{id}", house.url);
    let listed: Value =
        serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap();
    let attempt = &listed["exchanges"][0]["attempts"][0];
    assert!(attempt["report"].is_null() && attempt["body"].is_null(), "{attempt}");
    let plan = &attempt["plan"];
    assert!(plan["tokens_after"].as_u64() < plan["tokens_before"].as_u64(), "{attempt}");
    assert_eq!(attempt["recall"], "recall");
    house.stop().await;
}

/// Each setting of `[history]` has an effect, wherever it is set; what is set for a backend outranks the rest.
#[tokio::test]
async fn each_setting_has_an_effect_for_all_backends_and_for_one() {
    let base = "budget = 12000";
    for (setting, other) in [
        ("budget = 6000", "budget = 12000"),
        ("recent_calls_to_keep = 1", "recent_calls_to_keep = 12"),
        ("policy = \"mask\"", "policy = \"default\""),
        ("recall = false", "recall = true"),
        ("truncation_threshold = 2000", "truncation_threshold = 90000"),
        (
            "rules = [{ tools = [\"read_file\"], kind = \"other\" }]",
            "rules = [{ tools = [\"read_file\"], kind = \"read\", key = \"path\" }]",
        ),
    ] {
        let mut seen = Vec::new();
        let with = |setting: &str| match setting.split_once(" =") {
            Some(("budget", _)) => setting.to_owned(),
            // There is no other limit.
            Some(("truncation_threshold", _)) => setting.to_owned(),
            _ => format!("{base}, {setting}"),
        };
        for (everywhere, here) in
            [(Some(setting), None), (Some(other), None), (None, Some(setting)), (Some(setting), Some(other))]
        {
            let global =
                everywhere.map_or_else(String::new, |lines| format!("history = {{ {} }}", with(lines)));
            let own = here.map_or_else(String::new, |lines| format!("history = {{ {} }}", with(lines)));
            let room = Room { lines: own.leak(), ..Room::new("own", Dialect::Chat) };
            let house = House::with_lines(vec![room], Arc::new(Memory::new()), &global).await;
            let mut client = with_pairs(&house.url, Dialect::Responses, PAIRS);
            // The same files are looked at again.
            for file in 0..12 {
                add_pair(
                    &mut client,
                    PAIRS + file,
                    "read_file",
                    &format!("src/{file}.rs"),
                    &content(PAIRS + file),
                );
            }
            if setting.starts_with("truncation_threshold") {
                let first = client.ask("own").await;
                client.history.clear();
                client.say("Go on");
                client.extra = json!({"previous_response_id": first.body["id"]});
            }
            client.ask("own").await;
            seen.push(sent(&house, "own"));
            house.assert_nothing_refused();
            house.stop().await;
        }
        // What is sent is a function of the request and the settings, to the byte.
        let [everywhere, otherwise, here, outranked] = &seen[..] else { panic!("four") };
        assert!(everywhere != otherwise, "{setting} has no effect");
        assert!(here == everywhere, "{setting} has no effect for one backend");
        assert!(outranked == otherwise, "{setting} is not outranked");
    }
}
