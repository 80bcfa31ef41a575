//! Listing those conversations that a filter lets through.

use throughline_store::{
    Attempt, Batch, ConversationFilter, Conversations, Exchange, Exchanges, Moment, PARENT, PROJECT, Paging,
    Scope, Setting, Write,
};

use crate::fixtures::{Store, beginning, conversation, exchange};

super::over_every_store! {
    a_filter_lets_through_what_fits_all_of_it,
    ids_are_found_by_their_beginning_and_by_their_random_end,
    a_filtered_list_comes_in_pages,
    exchanges_are_listed_from_a_moment_on,
}

const FIRST: &str = "conv_0198c2f4e1a07b3c9d5e6f708192a3b4";
const SECOND: &str = "conv_0198c2f4e1a07b3c9d5e5aaa8192a3b4";
const AGENT: &str = "conv_0198c2f4e1a07b3c9d5e6f708192a3b4.a7f3";

async fn write(store: &Store, writes: Vec<Write>) {
    store.append(Batch::durable(writes)).await.unwrap();
}

fn described(id: &str, name: &'static str, value: &str) -> Write {
    let scope = Scope::Conversation(conversation(id));
    Write::Setting(Setting { scope, name: name.into(), value: Some(value.into()), at: Moment(1) })
}

fn passed(id: &str, of: &str, client: &str, backend: &str, ending: &str) -> Write {
    let template = exchange(id, of, 5);
    let attempt = Attempt {
        backend: backend.into(),
        dialect: template.dialect,
        model: None,
        strategy: None,
        started: Moment(5),
        ended: None,
        status: None,
        failure: None,
        compaction: None,
        plan: None,
        continues: None,
        recall: None,
    };
    let exchange = Exchange {
        client: Some(client.into()),
        ending: Some(ending.into()),
        attempts: vec![attempt],
        ..template
    };
    Write::Exchange(Box::new(exchange))
}

async fn filled(store: &Store) {
    write(store, vec![beginning(FIRST, 10), beginning(SECOND, 20), beginning(AGENT, 30)]).await;
    write(
        store,
        vec![
            described(FIRST, PROJECT, "/home/me/Bakery"),
            described(AGENT, PROJECT, "/home/me/Bakery"),
            described(AGENT, PARENT, FIRST),
            passed("x1", FIRST, "claude-cli/2.1", "claude", "end_turn"),
            passed("x2", FIRST, "claude-cli/2.1", "glm", "failed"),
            passed("x3", SECOND, "codex_exec/0.1", "claude", "end_turn"),
        ],
    )
    .await;
}

async fn ids(store: &Store, filter: ConversationFilter) -> Vec<String> {
    let which = Conversations::Matching(Box::new(filter), Paging::default());
    let page = store.conversations(which).await.unwrap();
    let mut ids: Vec<String> = page.items.into_iter().map(|heading| heading.id.to_string()).collect();
    ids.sort();
    ids
}

async fn a_filter_lets_through_what_fits_all_of_it(store: Store) {
    filled(&store).await;
    let any = ConversationFilter::default;
    assert_eq!(ids(&store, any()).await, [SECOND, FIRST, AGENT]);
    let client = ConversationFilter { client: Some("Claude".into()), ..any() };
    assert_eq!(ids(&store, client.clone()).await, [FIRST]);
    let backend = ConversationFilter { backend: Some("Claude".into()), ..any() };
    assert_eq!(ids(&store, backend).await, [SECOND, FIRST]);
    let project = ConversationFilter { project: Some("bakery".into()), ..any() };
    assert_eq!(ids(&store, project).await, [FIRST, AGENT]);
    let failed = ConversationFilter { failed: true, ..any() };
    assert_eq!(ids(&store, failed).await, [FIRST]);
    let both = ConversationFilter { failed: true, backend: Some("nobody".into()), ..client };
    assert_eq!(ids(&store, both).await, [""; 0]);
    let since = ConversationFilter { since: Some(Moment(20)), ..any() };
    assert_eq!(ids(&store, since).await, [SECOND, AGENT]);

    let one = store.conversations(Conversations::One(conversation(AGENT))).await.unwrap();
    assert_eq!(one.items[0].project.as_deref(), Some("/home/me/Bakery"));
    assert_eq!(one.items[0].parent, Some(conversation(FIRST)));
    assert_eq!(store.standing().await.unwrap().settings, [], "what describes a conversation does nothing");
}

async fn ids_are_found_by_their_beginning_and_by_their_random_end(store: Store) {
    filled(&store).await;
    let by = |id: &str| ConversationFilter { id: Some(id.into()), ..ConversationFilter::default() };
    assert_eq!(ids(&store, by("0198c2f4")).await, [SECOND, FIRST, AGENT]);
    assert_eq!(ids(&store, by("conv_0198c2f4e1a07b3c9d5e5")).await, [SECOND]);
    assert_eq!(ids(&store, by("6f70")).await, [FIRST]);
    assert_eq!(ids(&store, by("5aaa8192a3b4")).await, [SECOND]);
    assert_eq!(ids(&store, by("a7")).await, [AGENT]);
    assert_eq!(ids(&store, by("%")).await, [""; 0]);
}

async fn a_filtered_list_comes_in_pages(store: Store) {
    filled(&store).await;
    let filter = Box::new(ConversationFilter { project: Some("me".into()), ..ConversationFilter::default() });
    let first = Conversations::Matching(filter.clone(), Paging::first(1));
    let first = store.conversations(first).await.unwrap();
    let rest = Conversations::Matching(filter, Paging { after: first.next.clone(), limit: 5 });
    let rest = store.conversations(rest).await.unwrap();
    assert_eq!((first.items.len(), rest.items.len(), rest.next), (1, 1, None));
    assert_ne!(first.items[0].id, rest.items[0].id);
}

async fn exchanges_are_listed_from_a_moment_on(store: Store) {
    filled(&store).await;
    let count = async |since| {
        let page = store.exchanges(Exchanges::Since(Moment(since), Paging::default())).await.unwrap();
        page.items.len()
    };
    assert_eq!((count(5).await, count(6).await), (3, 0));
}
