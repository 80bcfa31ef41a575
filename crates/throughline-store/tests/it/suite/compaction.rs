//! Steps of compaction: what was decided about the history of a conversation.

use throughline_core::Dialect;
use throughline_store::{
    Attempt, Batch, CompactionStep, ExchangeId, Exchanges, Moment, Outworn, Prune, StepId, StoreError, Write,
};

use crate::fixtures::{Store, beginning, conversation, exchange};

super::over_every_store! {
    steps_come_back_as_they_were_appended,
    a_step_of_an_exchange_that_is_not_there_is_refused,
    an_attempt_names_the_step_that_it_shows,
    steps_go_with_their_conversation,
}

fn step(of: &str, exchange: &str, attempt: u32, follows: Option<(&str, u32)>) -> CompactionStep {
    let id = |(exchange, attempt): (&str, u32)| StepId { exchange: ExchangeId::new(exchange), attempt };
    CompactionStep {
        id: id((exchange, attempt)),
        conversation: conversation(of),
        backend: "own".into(),
        model: "model".into(),
        at: Moment(5),
        follows: follows.map(id),
        decisions: "decisions 1\n1 0000000000000007 abcdefgh 90 9 - m".into(),
        summary: None,
    }
}

async fn write(store: &Store, writes: Vec<Write>) -> Result<(), StoreError> {
    store.append(Batch::durable(writes)).await.map(drop)
}

async fn begin(store: &Store, of: &str, exchanges: &[&str]) {
    let begun = exchanges.iter().map(|id| Write::Exchange(exchange(id, of, 2).into()));
    write(store, std::iter::once(beginning(of, 1)).chain(begun).collect()).await.unwrap();
}

async fn append(store: &Store, step: CompactionStep) -> Result<(), StoreError> {
    write(store, vec![Write::Compaction(Box::new(step))]).await
}

async fn steps_come_back_as_they_were_appended(store: Store) {
    begin(&store, "a", &["x1", "x2"]).await;
    begin(&store, "b", &["y1"]).await;
    let words = CompactionStep {
        decisions: "decisions 1".into(),
        summary: Some("what was done\0 so far".into()),
        ..step("a", "x1", 1, Some(("x2", 0)))
    };
    // A later exchange may decide before an earlier one does.
    let steps = [step("a", "x2", 0, None), words, step("a", "x1", 2, Some(("x2", 0)))];
    for step in steps.clone() {
        append(&store, step).await.unwrap();
    }
    append(&store, step("b", "y1", 0, None)).await.unwrap();
    // One that is there is left alone.
    append(&store, CompactionStep { at: Moment(9), ..steps[0].clone() }).await.unwrap();
    assert_eq!(store.compaction(conversation("a")).await.unwrap(), steps);
    assert_eq!(store.compaction(conversation("b")).await.unwrap(), [step("b", "y1", 0, None)]);
    assert_eq!(store.compaction(conversation("c")).await.unwrap(), []);
}

async fn a_step_of_an_exchange_that_is_not_there_is_refused(store: Store) {
    begin(&store, "a", &["x1"]).await;
    let unknown = StoreError::UnknownExchange(ExchangeId::new("x9"));
    assert_eq!(append(&store, step("a", "x9", 0, None)).await, Err(unknown.clone()));
    assert_eq!(append(&store, step("a", "x1", 0, Some(("x9", 0)))).await, Err(unknown));
    assert_eq!(store.compaction(conversation("a")).await.unwrap(), []);
}

async fn an_attempt_names_the_step_that_it_shows(store: Store) {
    begin(&store, "a", &["x1", "x2"]).await;
    append(&store, step("a", "x1", 3, None)).await.unwrap();
    let shows = Some(StepId { exchange: ExchangeId::new("x1"), attempt: 3 });
    let attempt = Attempt {
        backend: "own".into(),
        dialect: Dialect::Chat,
        model: None,
        strategy: None,
        started: Moment(1),
        ended: None,
        status: None,
        failure: None,
        compaction: shows,
        plan: None,
        continues: None,
        recall: None,
    };
    let mut later = exchange("x2", "a", 3);
    later.attempts = vec![attempt];
    write(&store, vec![Write::Exchange(later.clone().into())]).await.unwrap();
    let found = store.exchanges(Exchanges::One(ExchangeId::new("x2"))).await.unwrap().items;
    assert_eq!(found, [later]);
}

async fn steps_go_with_their_conversation(store: Store) {
    begin(&store, "a", &["x1"]).await;
    begin(&store, "b", &["y1"]).await;
    append(&store, step("a", "x1", 0, None)).await.unwrap();
    append(&store, step("b", "y1", 0, None)).await.unwrap();
    let which = Outworn::These(vec![conversation("a")]);
    store.prune(Prune { which, dry_run: false }).await.unwrap();
    assert_eq!(store.compaction(conversation("a")).await.unwrap(), []);
    assert_eq!(store.compaction(conversation("b")).await.unwrap().len(), 1);
}
