//! Histories that are built to take long: with the square of their length each of these would take minutes.

use std::sync::Arc;

use throughline_core::{Entry, Outcome};
use throughline_store::Search;

use crate::fixtures::{Folder, Store, append, call, open, result, run};

const MANY: usize = 20_000;

#[test]
fn many_results_of_one_call_are_written_and_searched_in_time() {
    let folder = Folder::new("growth-one-call");
    let store: Store = Arc::new(open(&folder.database()));
    run(async {
        let opening = [call("x", "Read", r#"{"file_path":"src/lib.rs"}"#)];
        let results = (0..MANY).map(|number| result("x", &number.to_string(), Outcome::Ok));
        let entries: Vec<Entry> = opening.into_iter().chain(results).collect();
        append(&store, "one", None, 1, &entries).await;
        for (path, found) in [("src/lib.rs", 50), ("src/main.rs", 0)] {
            let mut search = Search { path: Some(path.to_owned()), ..Search::default() };
            search.paging.limit = 50;
            assert_eq!(store.search(search).await.unwrap().items.len(), found, "{path}");
        }
        // A result is filed under the tool of its call, also when they come in different batches.
        let one = [result("x", "once more", Outcome::Ok)];
        let tip = throughline_store::Locate::Conversation(crate::fixtures::conversation("one"));
        let tip = store.locate(tip).await.unwrap().unwrap().entry;
        append(&store, "one", tip.as_ref(), 2, &one).await;
        let search = Search { words: "more".to_owned(), tool: Some("Read".into()), ..Search::default() };
        assert_eq!(store.search(search).await.unwrap().items.len(), 1);
    });
}
