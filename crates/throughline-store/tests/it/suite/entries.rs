//! Conversations and the tree of their entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use throughline_core::{
    Dialect, Entry, EntryId, Envelope, Kind, Ledger, Outcome, Place, Role, Thought, Wire,
};
use throughline_store::{
    Batch, Conversations, Cursor, Entries, ExchangeId, Exchanges, Kept, Locate, Moment, Paging, StoreError,
    Write, chains,
};

use crate::fixtures::{
    Store, append, assistant, beginning, call, conversation, exchange, extension, result, user,
};

super::over_every_store! {
    entries_come_back_as_they_were,
    a_message_comes_back_in_its_envelope,
    each_branch_is_read_from_its_beginning,
    what_is_known_costs_no_write,
    the_same_words_in_two_conversations_are_two_entries,
    a_resent_history_is_recognised_as_far_as_it_goes,
    a_history_without_its_reasoning_is_recognised,
    a_system_prompt_does_not_hide_what_follows_it,
    a_conversation_is_found_by_its_keys,
    a_batch_is_written_whole_or_not_at_all,
    nothing_follows_an_entry_of_another_conversation,
    continuations_at_the_same_time_are_branches,
    conversations_are_listed_the_latest_first,
    items_are_found_by_their_ids,
    pairs_are_those_of_the_branch,
    what_is_not_there_is_no_error,
    any_text_comes_back_as_it_was,
}

fn texts(kept: &[Kept]) -> Vec<String> {
    kept.iter()
        .map(|kept| match &kept.entry.kind {
            Kind::Said(said) => said.parts[0].as_text().unwrap().to_string(),
            kind => format!("{kind:?}"),
        })
        .collect()
}

async fn branch(store: &Store, tip: &EntryId) -> Vec<Kept> {
    let kept = store.entries(Entries::Branch(tip.clone())).await.unwrap();
    assert!(kept.iter().all(Kept::is_sound), "what was not touched is sound: {kept:?}");
    kept
}

#[test]
fn an_entry_that_says_something_else_is_not_sound() {
    let growth = extension("a", None, 7, &[user("hello")]);
    let sound = Kept {
        id: growth.tip().unwrap(),
        conversation: conversation("a"),
        parent: None,
        exchange: None,
        at: Moment(9),
        entry: user("hello"),
    };
    assert!(sound.is_sound(), "when it was appended is not what it says");
    for touched in [
        Kept { entry: user("hellp"), ..sound.clone() },
        Kept { conversation: conversation("b"), ..sound.clone() },
        Kept { parent: Some(sound.id.clone()), ..sound.clone() },
    ] {
        assert!(!touched.is_sound(), "{touched:?}");
    }
}

async fn entries_come_back_as_they_were(store: Store) {
    let mut entries =
        [user("hello"), call("1", "Read", "{\"path\":\"a\"}"), result("1", "text", Outcome::Error)];
    entries[0].place = Some(Place { message: 4, block: None });
    entries[1].place = Some(Place { message: 5, block: Some(1) });
    let mut growth = extension("a", None, 7, &entries).of_exchange(ExchangeId::new("x"));
    let tip = growth.push(&user("x".repeat(10_000).as_str()));
    let writes =
        vec![Write::Entries(growth), Write::Exchange(exchange("x", "a", 7).into()), beginning("a", 5)];
    assert_eq!(store.append(Batch::durable(writes)).await.unwrap().new_entries, 4);
    let kept = branch(&store, &tip).await;
    let read: Vec<Entry> = kept.iter().map(|kept| kept.entry.clone()).collect();
    assert_eq!(read[..3], entries);
    assert_eq!(kept[3].id, tip);
    for pair in kept.windows(2) {
        assert_eq!(pair[1].parent.as_ref(), Some(&pair[0].id));
    }
    assert_eq!((kept[0].parent.as_ref(), kept[0].at), (None, Moment(7)));
    assert!(kept.iter().all(|kept| kept.exchange == Some(ExchangeId::new("x"))));
    assert_eq!(store.entries(Entries::One(tip)).await.unwrap(), kept[3..]);
}

async fn a_message_comes_back_in_its_envelope(store: Store) {
    let text = "{\"role\":\"user\",\"content\":[\"one\",\"two\"]}";
    let wire = Wire { dialect: Dialect::Messages, text: text.into(), extras: Vec::new() };
    let message = || {
        let envelope = Arc::new(Envelope { wire: wire.clone(), entries: 2 });
        let entry =
            |text: &str, position| Entry { envelope: Some((Arc::clone(&envelope), position)), ..user(text) };
        [entry("one", 0), entry("two", 1)]
    };
    let entries = [message(), message()].concat();
    let tip = append(&store, "a", None, 1, &entries).await;
    let kept = branch(&store, &tip).await;
    let envelope = |at: usize| &kept[at].entry.envelope.as_ref().unwrap().0;
    assert!(kept.iter().map(|kept| &kept.entry).eq(&entries));
    assert!(Arc::ptr_eq(envelope(0), envelope(1)) && Arc::ptr_eq(envelope(2), envelope(3)));
    assert!(!Arc::ptr_eq(envelope(1), envelope(2)), "two messages that say the same are two");
}

async fn each_branch_is_read_from_its_beginning(store: Store) {
    let first = append(&store, "a", None, 1, &[user("one")]).await;
    let left = append(&store, "a", Some(&first), 2, &[user("two"), user("three")]).await;
    let right = append(&store, "a", Some(&first), 3, &[user("other")]).await;
    let root = append(&store, "a", None, 4, &[user("elsewhere")]).await;
    assert_eq!(texts(&branch(&store, &left).await), ["one", "two", "three"]);
    assert_eq!(texts(&branch(&store, &right).await), ["one", "other"]);
    assert_eq!(texts(&branch(&store, &root).await), ["elsewhere"]);
    let all = store.entries(Entries::Conversation(conversation("a"))).await.unwrap();
    assert_eq!(texts(&all), ["one", "two", "three", "other", "elsewhere"]);
}

async fn what_is_known_costs_no_write(store: Store) {
    let entries: Vec<Entry> = (0..300).map(|n| user(&format!("entry {n}"))).collect();
    let tip = append(&store, "a", None, 1, &entries).await;
    let again = extension("a", None, 2, &entries);
    assert_eq!(again.tip(), Some(tip));
    let receipt = store.append(Batch::durable(vec![Write::Entries(again)])).await.unwrap();
    assert_eq!(receipt.new_entries, 0);
    let page = store.conversations(Conversations::One(conversation("a"))).await.unwrap();
    assert_eq!(page.items[0].entries, 300);
}

async fn the_same_words_in_two_conversations_are_two_entries(store: Store) {
    let one = append(&store, "a", None, 1, &[user("hello")]).await;
    let two = append(&store, "b", None, 1, &[user("hello")]).await;
    assert_ne!(one, two);
    assert_eq!(branch(&store, &two).await[0].conversation, conversation("b"));
}

async fn a_resent_history_is_recognised_as_far_as_it_goes(store: Store) {
    let history: Vec<Entry> = (0..300).map(|n| user(&format!("entry {n}"))).collect();
    let tip = append(&store, "a", None, 1, &history).await;
    let resent = [history.clone(), vec![assistant("new"), user("newer")]].concat();
    let locate = async |within: Option<&str>, entries: &[Entry]| {
        let locate = Locate::Prefix { within: within.map(conversation), chains: chains(entries) };
        store.locate(locate).await.unwrap()
    };
    let found = locate(None, &resent).await.unwrap();
    assert_eq!((found.known, found.entry.as_ref(), found.followed), (300, Some(&tip), false));
    assert_eq!(found.conversation, conversation("a"));

    let mut rewritten = resent.clone();
    rewritten[100] = user("rewritten");
    let found = locate(Some("a"), &rewritten).await.unwrap();
    assert_eq!((found.known, found.followed), (100, true));

    assert_eq!(locate(Some("b"), &resent).await, None);
    assert_eq!(locate(None, &[user("unheard of")]).await, None);
    assert_eq!(locate(None, &[]).await, None);

    // The same words were said elsewhere later: within a conversation they are found there.
    append(&store, "b", None, 2, &history[..50]).await;
    assert_eq!(locate(Some("a"), &history[..50]).await.unwrap().conversation, conversation("a"));
    assert_eq!(locate(None, &history[..50]).await.unwrap().conversation, conversation("b"));
}

async fn a_history_without_its_reasoning_is_recognised(store: Store) {
    let thought = Entry::new(Kind::Thought(Thought { content: vec!["hm".into()], ..Thought::default() }));
    let tip = append(&store, "a", None, 1, &[user("a"), thought, assistant("b")]).await;
    let chains = chains(&[user("a"), assistant("b"), user("c")]);
    let found = store.locate(Locate::Prefix { within: None, chains }).await.unwrap().unwrap();
    assert_eq!((found.known, found.entry), (2, Some(tip)));
}

async fn a_system_prompt_does_not_hide_what_follows_it(store: Store) {
    let system = |text: &str| Entry::said(Role::System, text);
    let tip = append(&store, "a", None, 1, &[system("It is Monday."), user("a")]).await;
    let resent =
        [system("It is Tuesday."), system("Be brief."), user("a"), assistant("b"), user("c"), user("d")];
    let locate = Locate::Prefix { within: None, chains: chains(&resent) };
    let found = store.locate(locate).await.unwrap().unwrap();
    assert_eq!((found.known, found.entry), (3, Some(tip)));
    let silent = Locate::Prefix { within: None, chains: chains(&resent[..2]) };
    assert_eq!(store.locate(silent).await.unwrap(), None);
}

async fn a_conversation_is_found_by_its_keys(store: Store) {
    let tip = append(&store, "a", None, 1, &[user("one"), user("two")]).await;
    store.append(Batch::durable(vec![beginning("empty", 1)])).await.unwrap();
    let locate = async |locate| store.locate(locate).await.unwrap();
    let by_key = locate(Locate::Key("key-of-a".into())).await.unwrap();
    assert_eq!((by_key.conversation.as_str(), by_key.entry.as_ref()), ("a", Some(&tip)));
    assert_eq!(locate(Locate::Conversation(conversation("a"))).await, Some(by_key));
    let empty = locate(Locate::Key("key-of-empty".into())).await.unwrap();
    assert_eq!((empty.conversation.as_str(), empty.entry), ("empty", None));
    assert_eq!(locate(Locate::Key("nobody".into())).await, None);
    assert_eq!(locate(Locate::Conversation(conversation("nobody"))).await, None);
}

async fn a_batch_is_written_whole_or_not_at_all(store: Store) {
    let missing = EntryId::new("no such entry");
    let bad = vec![
        beginning("a", 1),
        Write::Entries(extension("a", None, 1, &[user("lost")])),
        Write::Entries(extension("a", Some(&missing), 1, &[user("orphan")])),
    ];
    let error = store.append(Batch::durable(bad)).await.unwrap_err();
    assert_eq!(error, StoreError::UnknownEntry(missing.clone()));
    let page = store.conversations(Conversations::All(Paging::default())).await.unwrap();
    assert_eq!(page.items, []);

    let append = async |writes| store.append(Batch::durable(writes)).await.unwrap_err();
    let stray = append(vec![Write::Entries(extension("b", None, 1, &[user("x")]))]).await;
    assert_eq!(stray, StoreError::UnknownConversation(conversation("b")));
    let sent = Write::Answer { exchange: ExchangeId::new("x"), json: "{}".into() };
    assert_eq!(append(vec![sent]).await, StoreError::UnknownExchange(ExchangeId::new("x")));
    let mut dangling = exchange("x", "a", 1);
    dangling.after = Some(missing.clone());
    let dangling = append(vec![beginning("a", 1), Write::Exchange(dangling.into())]).await;
    assert_eq!(dangling, StoreError::UnknownEntry(missing));
}

async fn nothing_follows_an_entry_of_another_conversation(store: Store) {
    let tip = append(&store, "a", None, 1, &[user("one")]).await;
    let writes = vec![beginning("b", 1), Write::Entries(extension("b", Some(&tip), 1, &[user("two")]))];
    let error = store.append(Batch::durable(writes)).await.unwrap_err();
    assert_eq!(error, StoreError::UnknownEntry(tip));
}

async fn continuations_at_the_same_time_are_branches(store: Store) {
    let root = append(&store, "a", None, 0, &[user("root")]).await;
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (store, root) = (Arc::clone(&store), root.clone());
            std::thread::spawn(move || crate::fixtures::run(grow(&store, root, thread)))
        })
        .collect();
    let tips: Vec<EntryId> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for tip in &tips {
        assert_eq!(branch(&store, tip).await.len(), 1 + 20 + 1);
    }
    let all = store.entries(Entries::Conversation(conversation("a"))).await.unwrap();
    // The first step of every second thread is the same, and so is one entry.
    assert_eq!(all.len(), 1 + 8 * 21 - 3 - 3);
    let mut seen = BTreeSet::new();
    for kept in &all {
        assert!(kept.parent.as_ref().is_none_or(|parent| seen.contains(parent)), "a parent comes first");
        assert!(seen.insert(kept.id.clone()), "an entry comes once");
    }
}

/// Grows a branch of 21 entries; threads of equal parity begin alike.
async fn grow(store: &Store, root: EntryId, thread: usize) -> EntryId {
    let mut tip = append(store, "a", Some(&root), 1, &[user(&format!("parity {}", thread % 2))]).await;
    for step in 0..20 {
        tip = append(store, "a", Some(&tip), 2 + step, &[user(&format!("{thread} {step}"))]).await;
    }
    tip
}

async fn conversations_are_listed_the_latest_first(store: Store) {
    for (at, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        append(&store, id, None, at as i64, &[user(id)]).await;
    }
    append(&store, "b", None, 9, &[user("again")]).await;
    let mut paging = Paging::first(2);
    let mut ids = Vec::new();
    loop {
        let page = store.conversations(Conversations::All(paging.clone())).await.unwrap();
        assert!(page.items.len() <= 2);
        ids.extend(page.items.iter().map(|heading| heading.id.to_string()));
        match page.next {
            Some(next) => paging.after = Some(next),
            None => break,
        }
    }
    assert_eq!(ids, ["b", "e", "d", "c", "a"]);
    let b = store.conversations(Conversations::One(conversation("b"))).await.unwrap().items.remove(0);
    assert_eq!((b.created, b.updated, b.entries), (Moment(1), Moment(9), 2));
    assert_eq!((b.title.unwrap().as_str(), b.identified.as_str()), ("about b", "test"));
    let bad = Paging { after: Some(Cursor("nonsense".into())), limit: 1 };
    let error = store.conversations(Conversations::All(bad)).await.unwrap_err();
    assert_eq!(error, StoreError::BadCursor("nonsense".to_owned()));
}

async fn items_are_found_by_their_ids(store: Store) {
    let mut growth = extension("a", None, 1, &[call("1", "Read", "{}")]);
    let message = growth.push_item(&assistant("done"), Some("msg_1".into()));
    store.append(Batch::durable(vec![beginning("a", 1), Write::Entries(growth)])).await.unwrap();
    let item = async |id: &str| store.entries(Entries::Item(id.into())).await.unwrap();
    assert_eq!(item("msg_1").await[0].id, message);
    assert!(item("item_1").await[0].entry.as_call().is_some());
    assert_eq!(item("item_2").await, []);
}

async fn pairs_are_those_of_the_branch(store: Store) {
    let first = append(&store, "a", None, 1, &[user("go"), call("1", "Bash", "{}")]).await;
    let settled = append(&store, "a", Some(&first), 2, &[result("1", "ok", Outcome::Ok)]).await;
    let other = append(&store, "a", Some(&first), 3, &[user("never mind")]).await;
    let ledger = async |tip| {
        let entries: Vec<Entry> = branch(&store, tip).await.into_iter().map(|kept| kept.entry).collect();
        Ledger::of(&entries).pairs()[0].result
    };
    assert_eq!(ledger(&settled).await, Some(2));
    assert_eq!(ledger(&other).await, None);
}

async fn what_is_not_there_is_no_error(store: Store) {
    assert_eq!(branch(&store, &EntryId::new("0".repeat(32))).await, []);
    assert_eq!(branch(&store, &EntryId::new("nonsense")).await, []);
    assert_eq!(store.entries(Entries::Conversation(conversation("x"))).await.unwrap(), []);
    assert_eq!(store.conversations(Conversations::One(conversation("x"))).await.unwrap().items, []);
}

async fn any_text_comes_back_as_it_was(store: Store) {
    // A model may say anything, NUL included, and clients may be called anything.
    let odd = "a\0b\u{10fffe}\u{fffd}'\\ \u{202e}";
    let entries = [user(odd), call(odd, odd, odd), result(odd, odd, Outcome::Ok)];
    let tip = append(&store, odd, None, 1, &entries).await;
    let mut odd_exchange = exchange(odd, odd, 1);
    odd_exchange.client = Some(odd.into());
    odd_exchange.asked_model = Some(odd.into());
    store.append(Batch::durable(vec![Write::Exchange(odd_exchange.clone().into())])).await.unwrap();
    let kept = branch(&store, &tip).await;
    assert!(kept.iter().map(|kept| &kept.entry).eq(&entries));
    assert_eq!(kept[0].conversation, conversation(odd));
    let page = store.exchanges(Exchanges::One(ExchangeId::new(odd))).await.unwrap();
    assert_eq!(page.items, [odd_exchange]);
    let found = store.locate(Locate::Key(format!("key-of-{odd}").into())).await.unwrap().unwrap();
    assert_eq!(found.entry, Some(tip));
    assert_eq!(store.entries(Entries::Item(format!("item_{odd}").into())).await.unwrap(), kept[1..2]);
}
