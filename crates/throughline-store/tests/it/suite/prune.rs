//! Taking conversations out: what goes, what others share, and what is left to go on with.

use bytes::Bytes;
use throughline_core::Outcome;
use throughline_store::{
    Batch, Conversations, DocumentKind, Entries, ExchangeId, Locate, Moment, Outworn, Paging, ProviderEvent,
    Prune, Search, Which, Write, chains,
};

use super::over_every_store;
use crate::fixtures::{
    Store, append, assistant, beginning, call, conversation, exchange, extension, result, user,
};

over_every_store!(
    a_conversation_goes_with_all_it_has,
    what_another_conversation_shares_stays,
    a_dry_run_takes_nothing,
    old_ones_go_by_age,
    the_oldest_go_by_size,
    a_pruned_conversation_can_begin_again,
    what_is_not_there_is_no_error,
);

fn these(id: &str) -> Prune {
    Prune { which: Outworn::These(vec![conversation(id)]), dry_run: false }
}

/// An exchange with everything that can belong to one; requests share most of their bytes.
async fn filled(store: &Store, of: &str, n: i64, secret: &str) {
    let id = format!("{of}-x{n}");
    let entries = [user(&format!("{of} asks {secret}")), call("c1", "bash", r#"{"command":"env"}"#)];
    let growth = extension(of, None, n, &entries).of_exchange(ExchangeId::new(id.as_str()));
    let body = format!("{{\"model\":\"m\",\"messages\":[{}\"{secret}\",{n}]}}", "\"shared\",".repeat(400));
    let of_exchange = || ExchangeId::new(id.as_str());
    let event = ProviderEvent { at: Moment(n), name: None, data: format!("event {secret}").into() };
    let writes = vec![
        beginning(of, n),
        Write::Exchange(exchange(&id, of, n).into()),
        Write::Entries(growth),
        Write::Document {
            kind: DocumentKind::Sent,
            exchange: of_exchange(),
            attempt: 0,
            body: Bytes::from(body),
        },
        Write::Events { exchange: of_exchange(), attempt: 0, events: vec![event] },
        Write::Answer { exchange: of_exchange(), json: format!("{{\"said\":\"{secret}\"}}").into() },
    ];
    store.append(Batch::durable(writes)).await.unwrap();
}

async fn titles(store: &Store) -> Vec<String> {
    let page = store.conversations(Conversations::All(Paging::default())).await.unwrap();
    page.items.iter().map(|heading| heading.id.to_string()).collect()
}

async fn hits(store: &Store, words: &str) -> usize {
    store.search(Search { words: words.into(), ..Search::default() }).await.unwrap().items.len()
}

async fn a_conversation_goes_with_all_it_has(store: Store) {
    filled(&store, "a", 1, "tangerine").await;
    filled(&store, "a", 2, "tangerine").await;
    filled(&store, "b", 3, "plum").await;
    assert_eq!(hits(&store, "tangerine").await, 1, "what is in the index is taken out of it, too");
    let pruned = store.prune(these("a")).await.unwrap();
    assert_eq!(pruned.conversations, [conversation("a")]);
    assert_eq!((pruned.entries, pruned.exchanges), (2, 2), "a resent history is one branch");
    assert!(pruned.contents >= 1, "what both called is shared, what one asked is not");
    assert_eq!(titles(&store).await, ["b"]);
    assert_eq!(hits(&store, "tangerine").await, 0);
    assert_eq!(hits(&store, "plum").await, 1);
    let gone = store.recording(ExchangeId::new("a-x1"), Which::Everything).await.unwrap();
    assert!(gone.sent.is_empty() && gone.events.is_empty() && gone.answer.is_none());
    assert_eq!(store.locate(Locate::Key("key-of-a".into())).await.unwrap(), None);
    let known = chains(&[user("a asks tangerine")]);
    assert_eq!(store.locate(Locate::Prefix { within: None, chains: known }).await.unwrap(), None);
}

async fn what_another_conversation_shares_stays(store: Store) {
    filled(&store, "a", 1, "same").await;
    filled(&store, "b", 1, "same").await;
    let tip =
        append(&store, "a", None, 2, &[user("both say this"), result("c1", "this too", Outcome::Ok)]).await;
    let kept =
        append(&store, "b", None, 2, &[user("both say this"), result("c1", "this too", Outcome::Ok)]).await;
    store.prune(these("a")).await.unwrap();
    assert!(store.entries(Entries::One(tip)).await.unwrap().is_empty());
    assert_eq!(store.entries(Entries::Branch(kept)).await.unwrap().len(), 2);
    let sent = store.recording(ExchangeId::new("b-x1"), Which::Sent).await.unwrap();
    assert!(sent.sent[0].1.starts_with(b"{\"model\""), "the request is one that both sent");
}

async fn a_dry_run_takes_nothing(store: Store) {
    filled(&store, "a", 1, "plum").await;
    let pruned = store.prune(Prune { which: Outworn::Before(Moment(9)), dry_run: true }).await.unwrap();
    assert_eq!((pruned.conversations.len(), pruned.entries, pruned.exchanges), (1, 2, 1));
    assert_eq!(titles(&store).await, ["a"]);
}

async fn old_ones_go_by_age(store: Store) {
    for (id, at) in [("a", 1), ("b", 2), ("c", 3)] {
        filled(&store, id, at, id).await;
    }
    let pruned = store.prune(Prune { which: Outworn::Before(Moment(3)), dry_run: false }).await.unwrap();
    assert_eq!(pruned.conversations, [conversation("a"), conversation("b")]);
    assert_eq!(titles(&store).await, ["c"]);
}

async fn the_oldest_go_by_size(store: Store) {
    for (id, at) in [("a", 1), ("b", 2), ("c", 3)] {
        filled(&store, id, at, &id.repeat(3_000)).await;
    }
    let keep = |bytes| Prune { which: Outworn::Beyond(bytes), dry_run: false };
    assert_eq!(store.prune(keep(1 << 30)).await.unwrap().conversations, []);
    assert_eq!(store.prune(keep(0)).await.unwrap().conversations.len(), 3);
    assert_eq!(titles(&store).await, Vec::<String>::new());
}

async fn a_pruned_conversation_can_begin_again(store: Store) {
    filled(&store, "a", 1, "plum").await;
    store.prune(these("a")).await.unwrap();
    filled(&store, "a", 2, "plum").await;
    let tip = append(&store, "a", None, 3, &[user("again"), assistant("indeed")]).await;
    assert_eq!(store.entries(Entries::Branch(tip)).await.unwrap().len(), 2);
    let sent = store.recording(ExchangeId::new("a-x2"), Which::Sent).await.unwrap();
    assert!(sent.sent[0].1.ends_with(b"\"plum\",2]}"), "a request rests on nothing that is gone");
    assert_eq!(hits(&store, "plum").await, 1);
}

async fn what_is_not_there_is_no_error(store: Store) {
    assert_eq!(store.prune(these("nobody")).await.unwrap(), throughline_store::Pruned::default());
}
