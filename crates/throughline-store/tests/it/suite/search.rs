//! Searching tool history and talk.

use throughline_core::{Outcome, Role};
use throughline_store::{Field, Hit, KeptKind, Moment, Paging, Search};

use crate::fixtures::{Store, append, assistant, call, conversation, result, user};

super::over_every_store! {
    words_are_found_where_they_stand,
    searches_are_narrowed_by_everything_that_is_asked,
    hits_come_in_pages_the_latest_first,
    what_comes_later_is_found_later,
    calls_and_results_are_found_by_what_the_call_was_about,
    a_tool_is_found_by_any_of_its_names,
    a_command_that_failed_is_a_failure,
    a_page_ends_when_enough_was_looked_at,
}

async fn search(store: &Store, search: Search) -> Vec<Hit> {
    store.search(search).await.unwrap().items
}

async fn found(store: &Store, words: &str) -> usize {
    search(store, Search { words: words.into(), ..Search::default() }).await.len()
}

async fn history(store: &Store) {
    append(
        store,
        "a",
        None,
        10,
        &[
            user("Please fix the failing Überprüfung"),
            call("1", "Read", "{\"file_path\":\"src/main.rs\"}"),
            result("1", "fn main() {\n    panic!(\"needle\");\n}", Outcome::Ok),
            call("2", "Bash", "{\"command\":\"cargo test\\n--workspace\"}"),
            result("2", "error[E0425]: cannot find value `needle`", Outcome::Error),
            assistant("It is fixed now, the needle is gone."),
        ],
    )
    .await;
    append(store, "b", None, 20, &[user("another needle"), call("1", "Grep", "{\"pattern\":\"needle\"}")])
        .await;
}

async fn words_are_found_where_they_stand(store: Store) {
    history(&store).await;
    for (words, hits) in [
        ("needle", 5),
        ("NEEDLE", 5),
        ("cannot find", 1),
        ("\"find cannot\"", 0),
        ("src/main.rs", 1),
        ("main.rs/src", 0),
        ("cargo test --workspace", 1),
        ("work*", 1),
        ("work", 0),
        ("überprüfung", 1),
        ("uberprufung", 0),
        ("needle gone", 1),
        ("nothing", 0),
        ("--", 0),
        ("OR", 0),
        ("", 8),
    ] {
        assert_eq!(found(&store, words).await, hits, "{words}");
    }
    let hit = search(&store, Search { words: "E0425".into(), ..Search::default() }).await.remove(0);
    assert_eq!(hit.snippet, "error[E0425]: cannot find value `needle`");
    assert_eq!((hit.kind, hit.tool.as_deref()), (KeptKind::Returned(Outcome::Error), Some("Bash")));
    assert_eq!((hit.conversation, hit.at), (conversation("a"), Moment(10)));
    let hit = search(&store, Search { words: "fixed".into(), ..Search::default() }).await.remove(0);
    assert_eq!((hit.kind, hit.tool), (KeptKind::Said(Role::Assistant), None));
}

async fn searches_are_narrowed_by_everything_that_is_asked(store: Store) {
    history(&store).await;
    let needle = || Search { words: "needle".into(), ..Search::default() };
    let count = async |narrowed: Search| search(&store, narrowed).await.len();
    assert_eq!(count(Search { field: Some(Field::Talk), ..needle() }).await, 2);
    assert_eq!(count(Search { field: Some(Field::Input), ..needle() }).await, 1);
    assert_eq!(count(Search { field: Some(Field::Output), ..needle() }).await, 2);
    assert_eq!(count(Search { tool: Some("Read".into()), ..needle() }).await, 1);
    assert_eq!(count(Search { failed: true, ..needle() }).await, 1);
    assert_eq!(count(Search { conversation: Some(conversation("a")), ..needle() }).await, 3);
    assert_eq!(count(Search { conversation: Some(conversation("x")), ..needle() }).await, 0);
    assert_eq!(count(Search { since: Some(Moment(20)), ..needle() }).await, 2);
    assert_eq!(count(Search { until: Some(Moment(20)), ..needle() }).await, 3);
    let all_of_read = Search { tool: Some("Read".into()), ..Search::default() };
    assert_eq!(count(all_of_read).await, 2);
}

async fn hits_come_in_pages_the_latest_first(store: Store) {
    history(&store).await;
    for words in ["needle", ""] {
        let mut asked = Search { words: words.into(), paging: Paging::first(2), ..Search::default() };
        let mut paged = Vec::new();
        loop {
            let page = store.search(asked.clone()).await.unwrap();
            paged.extend(page.items);
            match page.next {
                Some(next) => asked.paging.after = Some(next),
                None => break,
            }
        }
        let whole = search(&store, Search { words: words.into(), ..Search::default() }).await;
        assert_eq!(paged, whole);
        assert_eq!((whole[0].conversation.as_str(), whole[0].tool.as_deref()), ("b", Some("Grep")));
    }
}

async fn what_comes_later_is_found_later(store: Store) {
    history(&store).await;
    assert_eq!(found(&store, "later").await, 0);
    append(&store, "c", None, 30, &[user("later")]).await;
    assert_eq!(found(&store, "later").await, 1);
    for n in 0..300 {
        append(&store, "many", None, 40, &[user(&format!("one of many, number{n}"))]).await;
    }
    assert_eq!(found(&store, "number299").await, 1);
    let page = store.search(Search { words: "many".into(), paging: Paging::first(500), ..Search::default() });
    assert_eq!(page.await.unwrap().items.len(), 300);
}

async fn calls_and_results_are_found_by_what_the_call_was_about(store: Store) {
    history(&store).await;
    let count = async |narrowed: Search| search(&store, narrowed).await.len();
    let path = |path: &str| Search { path: Some(path.to_owned()), ..Search::default() };
    let command = |command: &str| Search { command: Some(command.to_owned()), ..Search::default() };
    assert_eq!(count(path("src/main.rs")).await, 2, "the call and its result");
    assert_eq!(count(path("MAIN.rs")).await, 2);
    assert_eq!(count(path("src/ma*")).await, 2);
    assert_eq!(count(path("src/ma")).await, 0);
    assert_eq!(count(path("/")).await, 0, "there is no word in it");
    assert_eq!(count(path("needle")).await, 0, "it stands in a pattern and in texts, and in no path");
    assert_eq!(count(command("cargo test")).await, 2);
    assert_eq!(count(command("test cargo")).await, 0);
    let failed = Search { failed: true, ..command("cargo test") };
    assert_eq!(count(failed).await, 1, "its result");
    let worded = Search { words: "needle".into(), ..command("cargo") };
    assert_eq!(count(worded).await, 1);
    let elsewhere = Search { conversation: Some(conversation("b")), ..command("cargo") };
    assert_eq!(count(elsewhere).await, 0);
    append(
        &store,
        "b",
        None,
        30,
        &[call("1", "Bash", "{\"command\":\"ls\"}"), result("1", "x", Outcome::Ok)],
    )
    .await;
    assert_eq!(count(command("ls")).await, 2, "an id counts in its conversation, and the latest call of it");
    assert_eq!(count(command("cargo test")).await, 2);
}

async fn a_tool_is_found_by_any_of_its_names(store: Store) {
    history(&store).await;
    let count = async |tool: &str| {
        let tool = Some(tool.into());
        search(&store, Search { tool, ..Search::default() }).await.len()
    };
    for (tool, hits) in [("bash", 2), ("exec_command", 2), ("mcp__x__Shell", 2), ("read_file", 2), ("rg", 1)]
    {
        assert_eq!(count(tool).await, hits, "{tool}");
    }
    assert_eq!(count("Edit").await, 0);
}

async fn a_command_that_failed_is_a_failure(store: Store) {
    append(
        &store,
        "a",
        None,
        10,
        &[
            call("1", "bash", "{\"command\":\"false\"}"),
            result("1", "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":1}", Outcome::Ok),
            call("2", "shell", "{\"command\":[\"true\"]}"),
            result("2", "Exit code: 0\nOutput:\n", Outcome::Ok),
            call("3", "exec_command", "{\"cmd\":\"x\"}"),
            result("3", "Exit code: 127\nOutput:\nno x", Outcome::Ok),
            call("4", "Read", "{\"file_path\":\"log\"}"),
            result("4", "Exit code: 9", Outcome::Ok),
            result("5", "denied", Outcome::Denied),
        ],
    )
    .await;
    let codes = async |failed: bool| -> Vec<Option<i32>> {
        let hits = search(&store, Search { failed, ..Search::default() }).await;
        hits.iter().filter(|hit| matches!(hit.kind, KeptKind::Returned(_))).map(|hit| hit.exit_code).collect()
    };
    assert_eq!(codes(true).await, [None, Some(127), Some(1)]);
    assert_eq!(codes(false).await, [None, None, Some(127), Some(0), Some(1)]);
}

async fn a_page_ends_when_enough_was_looked_at(store: Store) {
    history(&store).await;
    let mut asked = Search { tool: Some("Read".into()), effort: 1, ..Search::default() };
    let (mut pages, mut found) = (0, 0);
    loop {
        let page = store.search(asked.clone()).await.unwrap();
        pages += 1;
        found += page.items.len();
        match page.next {
            Some(next) => asked.paging.after = Some(next),
            None => break,
        }
    }
    assert_eq!((pages, found), (5, 2), "a page for each call and each result");
}
