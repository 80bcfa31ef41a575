//! What holds until further notice: verdicts and settings.

use throughline_core::ConversationId;
use throughline_store::{Batch, Conversations, Learned, Moment, Scope, Setting, StoreError, Write};

use crate::fixtures::{Store, beginning, conversation};

super::over_every_store! {
    a_later_verdict_replaces_an_earlier_one,
    a_switch_holds_until_it_is_taken_back,
    a_bell_rings_when_something_was_appended,
}

async fn write(store: &Store, write: Write) {
    store.append(Batch::durable(vec![write])).await.unwrap();
}

async fn a_later_verdict_replaces_an_earlier_one(store: Store) {
    let learned = |backend: &str, model: &str, verdict: &str, at| Learned {
        backend: backend.into(),
        model: model.into(),
        capability: "native_tool_history".into(),
        verdict: verdict.into(),
        reason: "400 Invalid input".into(),
        at: Moment(at),
        expires: (at > 1).then_some(Moment(at + 100)),
    };
    for verdict in [learned("b", "", "no", 1), learned("a", "m", "no", 1), learned("b", "", "yes", 2)] {
        write(&store, Write::Learned(verdict)).await;
    }
    let all = async || store.standing().await.unwrap().learned;
    assert_eq!(all().await, [learned("a", "m", "no", 1), learned("b", "", "yes", 2)]);
    let forget =
        Write::Unlearned { backend: "b".into(), model: "".into(), capability: "native_tool_history".into() };
    write(&store, forget).await;
    assert_eq!(all().await, [learned("a", "m", "no", 1)]);
}

async fn a_switch_holds_until_it_is_taken_back(store: Store) {
    let switch = |scope: &Scope, value: Option<&str>| Setting {
        scope: scope.clone(),
        name: "backend".into(),
        value: value.map(Into::into),
        at: Moment(3),
    };
    let (all, one) = (Scope::Everywhere, Scope::Conversation(conversation("a")));
    let unknown = Scope::Conversation(ConversationId::new("unknown"));
    write(&store, beginning("a", 1)).await;
    write(&store, Write::Setting(switch(&all, Some("claude")))).await;
    write(&store, Write::Setting(switch(&one, Some("claude")))).await;
    write(&store, Write::Setting(switch(&one, Some("glm")))).await;
    let settings = store.standing().await.unwrap().settings;
    assert_eq!(settings, [switch(&all, Some("claude")), switch(&one, Some("glm"))]);
    let heading = async || {
        let page = store.conversations(Conversations::One(conversation("a"))).await.unwrap();
        page.items[0].backend.as_deref().map(str::to_owned)
    };
    assert_eq!(heading().await.as_deref(), Some("glm"));

    write(&store, Write::Setting(switch(&one, None))).await;
    assert_eq!(heading().await, None);
    assert_eq!(store.standing().await.unwrap().settings, [switch(&all, Some("claude"))]);
    let error = store.append(Batch::durable(vec![Write::Setting(switch(&unknown, Some("x")))])).await;
    assert_eq!(error, Err(StoreError::UnknownConversation(conversation("unknown"))));
}

async fn a_bell_rings_when_something_was_appended(store: Store) {
    let mut changes = store.changes();
    write(&store, beginning("a", 1)).await;
    changes.next().await.unwrap();
    let stray = Write::Setting(Setting {
        scope: Scope::Conversation(conversation("unknown")),
        name: "backend".into(),
        value: None,
        at: Moment(1),
    });
    write(&store, beginning("b", 1)).await;
    store.append(Batch::durable(vec![stray])).await.unwrap_err();
    changes.next().await.unwrap();
    drop(store);
}
