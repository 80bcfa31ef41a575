//! Exchanges, what passed in them, and responses.

use bytes::Bytes;
use throughline_core::{Dialect, Usage};
use throughline_store::{
    Attempt, Batch, DocumentKind, ExchangeId, Exchanges, Moment, Paging, PlanSizes, ProviderEvent, Recording,
    ResponseMark, Which, Write,
};

use crate::fixtures::{Store, append, beginning, conversation, exchange, user};

super::over_every_store! {
    an_exchange_is_brought_up_to_date,
    exchanges_are_listed_the_latest_first,
    everything_that_passed_is_kept_as_it_was,
    requests_that_grow_come_back_byte_for_byte,
    every_kind_of_document_comes_back_and_is_read_when_asked_for,
    a_response_is_found_and_can_be_forgotten,
}

fn attempt(backend: &str, at: i64) -> Attempt {
    Attempt {
        backend: backend.into(),
        dialect: Dialect::Messages,
        model: Some("model".into()),
        strategy: Some("native".into()),
        started: Moment(at),
        ended: None,
        status: None,
        failure: None,
        compaction: None,
        plan: Some(PlanSizes { before: 9, after: 7, tools: 5 }),
        continues: Some("resp_1".into()),
        recall: Some("recall".into()),
    }
}

async fn write(store: &Store, writes: Vec<Write>) {
    store.append(Batch::durable(writes)).await.unwrap();
}

async fn one(store: &Store, id: &str) -> throughline_store::Exchange {
    let page = store.exchanges(Exchanges::One(ExchangeId::new(id))).await.unwrap();
    page.items.into_iter().next().unwrap()
}

async fn an_exchange_is_brought_up_to_date(store: Store) {
    let tip = append(&store, "a", None, 1, &[user("hello")]).await;
    let mut begun = exchange("x", "a", 2);
    begun.client = Some("agent/1.0".into());
    begun.asked_model = Some("large".into());
    begun.before = Some(tip.clone());
    begun.attempts = vec![attempt("first", 2)];
    write(&store, vec![Write::Exchange(begun.clone().into())]).await;
    assert_eq!(one(&store, "x").await, begun);

    let mut ended = begun.clone();
    ended.after = Some(tip);
    ended.ended = Some(Moment(9));
    ended.ending = Some("end_turn".into());
    ended.status = Some(200);
    ended.usage = Some(Usage { input: 1, cache_read: 2, cache_written: 3, output: 4, reasoning: u64::MAX });
    ended.attempts[0].status = Some(400);
    ended.attempts[0].failure = Some("Invalid input".into());
    ended.attempts.push(attempt("second", 5));
    write(&store, vec![Write::Exchange(ended.clone().into())]).await;
    assert_eq!(one(&store, "x").await, ended);

    let page = store.conversations(throughline_store::Conversations::All(Paging::default())).await.unwrap();
    assert_eq!((page.items[0].updated, page.items[0].exchanges), (Moment(9), 1));
}

async fn exchanges_are_listed_the_latest_first(store: Store) {
    for n in 0..5 {
        let of = if n % 2 == 0 { "even" } else { "odd" };
        write(&store, vec![beginning(of, n), Write::Exchange(exchange(&n.to_string(), of, n).into())]).await;
    }
    let ids = async |which| {
        let page = store.exchanges(which).await.unwrap();
        let ids: Vec<String> = page.items.iter().map(|exchange| exchange.id.to_string()).collect();
        (ids.join(" "), page.next)
    };
    let (first, next) = ids(Exchanges::Of(conversation("even"), Paging::first(2))).await;
    assert_eq!(first, "4 2");
    assert!(next.is_some());
    let rest = Paging { after: next, limit: 2 };
    assert_eq!(ids(Exchanges::Of(conversation("even"), rest)).await, ("0".to_owned(), None));
    assert_eq!(ids(Exchanges::All(Paging::default())).await.0, "4 3 2 1 0");
    assert_eq!(ids(Exchanges::Of(conversation("none"), Paging::default())).await.0, "");
}

async fn everything_that_passed_is_kept_as_it_was(store: Store) {
    let event = |at, name: Option<&str>, data: &str| ProviderEvent {
        at: Moment(at),
        name: name.map(Into::into),
        data: data.into(),
    };
    let failed = vec![event(1, None, "{\"error\":\"no\"}")];
    let first = vec![event(5, Some("message_start"), "{\"a\": 1}"), event(5, Some("unheard_of"), "{\"b\":")];
    let second = vec![event(9, None, ""), event(8, None, "[DONE]")];
    let id = || ExchangeId::new("x");
    write(
        &store,
        vec![
            beginning("a", 1),
            Write::Exchange(exchange("x", "a", 1).into()),
            Write::Document {
                kind: DocumentKind::Sent,
                exchange: id(),
                attempt: 0,
                body: Bytes::from_static(b"{\"native\":true}"),
            },
            Write::Events { exchange: id(), attempt: 0, events: failed.clone() },
        ],
    )
    .await;
    let stream = Write::Events { exchange: id(), attempt: 1, events: first.clone() };
    store.append(Batch::relaxed(vec![stream])).await.unwrap();
    write(
        &store,
        vec![
            Write::Document {
                kind: DocumentKind::Sent,
                exchange: id(),
                attempt: 1,
                body: Bytes::from_static(b"\xff not even text"),
            },
            Write::Events { exchange: id(), attempt: 1, events: second.clone() },
            Write::Answer { exchange: id(), json: "{\"answer\":1}".into() },
        ],
    )
    .await;

    let all = store.recording(id(), Which::Everything).await.unwrap();
    let bodies: Vec<(u32, &[u8])> = all.sent.iter().map(|(attempt, body)| (*attempt, &body[..])).collect();
    assert_eq!(bodies, [(0, &b"{\"native\":true}"[..]), (1, &b"\xff not even text"[..])]);
    let numbered = |attempt, events: &[ProviderEvent]| -> Vec<(u32, ProviderEvent)> {
        events.iter().map(|event| (attempt, event.clone())).collect()
    };
    assert_eq!(all.events, [numbered(0, &failed), numbered(1, &first), numbered(1, &second)].concat());
    assert_eq!(all.answer.as_deref(), Some("{\"answer\":1}"));

    let events = store.recording(id(), Which::Events).await.unwrap();
    assert_eq!(events, Recording { events: all.events.clone(), ..Recording::default() });
    let nothing = store.recording(ExchangeId::new("y"), Which::Everything).await.unwrap();
    assert_eq!(nothing, Recording::default());
}

async fn requests_that_grow_come_back_byte_for_byte(store: Store) {
    // Two lines of requests in one conversation, as of an agent and its assistant; one changes its head.
    let body = |line: usize, turns: usize| -> Bytes {
        let turns: Vec<String> =
            (0..turns).map(|turn| format!("{{\"turn\":{turn},\"of\":{line}}}")).collect();
        let head = if line == 0 { 0 } else { turns.len() };
        format!("{{\"head\":{head},\"turns\":[{}],\"tools\":[\"{}\"]}}", turns.join(","), "t".repeat(900))
            .into()
    };
    write(&store, vec![beginning("a", 1)]).await;
    for turn in 0..230 {
        for line in 0..2 {
            let id = format!("{line}-{turn}");
            let sent = Write::Document {
                kind: DocumentKind::Sent,
                exchange: ExchangeId::new(id.as_str()),
                attempt: 0,
                body: body(line, turn),
            };
            let begun = Write::Exchange(exchange(&id, "a", 1).into());
            store.append(Batch::relaxed(vec![begun, sent])).await.unwrap();
        }
    }
    for (line, turn) in [(0, 0), (0, 1), (0, 120), (1, 199), (0, 229), (1, 229)] {
        let id = ExchangeId::new(format!("{line}-{turn}"));
        let sent = store.recording(id, Which::Sent).await.unwrap().sent;
        assert_eq!(sent, [(0, body(line, turn))]);
    }
}

async fn a_response_is_found_and_can_be_forgotten(store: Store) {
    let mark = |deleted| Some(ResponseMark { id: "resp_1".into(), stored: true, deleted });
    let mut begun = exchange("x", "a", 1);
    begun.response = mark(false);
    let answer = |json: &str| Write::Answer { exchange: ExchangeId::new("x"), json: json.into() };
    write(&store, vec![beginning("a", 1), Write::Exchange(begun.clone().into()), answer("{\"n\":1}")]).await;
    write(&store, vec![answer("{\"n\":2}")]).await;
    let found = async || store.exchanges(Exchanges::Response("resp_1".into())).await.unwrap().items.remove(0);
    let read = async || store.recording(found().await.id, Which::Answer).await.unwrap().answer;
    assert_eq!(found().await.response, mark(false));
    assert_eq!(read().await.as_deref(), Some("{\"n\":2}"));

    write(&store, vec![Write::ForgetResponse { id: "resp_1".into() }]).await;
    write(&store, vec![Write::ForgetResponse { id: "resp_2".into() }]).await;
    assert_eq!((found().await.response, read().await), (mark(true), None));
    // The exchange may still be going on: what it writes now does not bring the response back.
    write(&store, vec![Write::Exchange(begun.into()), answer("{\"n\":3}")]).await;
    assert_eq!((found().await.response, read().await), (mark(true), None));
    assert_eq!(store.exchanges(Exchanges::Response("resp_2".into())).await.unwrap().items, []);
}

async fn every_kind_of_document_comes_back_and_is_read_when_asked_for(store: Store) {
    append(&store, "a", None, 1, &[user("hello")]).await;
    let body = |kind: DocumentKind, turn: usize| {
        let words: Vec<String> =
            (0..=turn).map(|turn| format!("{kind:?} {turn} {}", "word ".repeat(90))).collect();
        Bytes::from(words.join(","))
    };
    let id = |turn: usize| ExchangeId::new(format!("x{turn}"));
    for turn in 0..5 {
        let mut writes = vec![Write::Exchange(exchange(id(turn).as_str(), "a", 2).into())];
        // The last one came as it was sent.
        let of_kind = |kind| if turn == 4 { body(DocumentKind::Sent, turn) } else { body(kind, turn) };
        writes.extend(DocumentKind::ALL.map(|kind| Write::Document {
            exchange: id(turn),
            attempt: 0,
            kind,
            body: of_kind(kind),
        }));
        write(&store, writes).await;
    }
    for turn in 0..5 {
        let all = store.recording(id(turn), Which::Documents).await.unwrap();
        for kind in DocumentKind::ALL {
            let expected = if turn == 4 { body(DocumentKind::Sent, turn) } else { body(kind, turn) };
            assert_eq!(all.document(0, kind), Some(&expected), "{kind:?} {turn}");
        }
        assert!(all.events.is_empty() && all.answer.is_none());
    }
    let report = store.recording(id(1), Which::Reports).await.unwrap();
    assert_eq!(report.reports, [(0, body(DocumentKind::Report, 1))]);
    assert!(report.sent.is_empty() && report.received.is_empty() && report.provenance.is_empty());
    let received = store.recording(id(1), Which::Received).await.unwrap();
    assert_eq!((received.received.len(), received.sent.len()), (1, 0));
}
