//! A history that cannot be written: the request fails clearly, or is answered and says that it was not kept.

use crate::client::Client;
use crate::house::{House, Room};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use throughline_core::{ConversationId, Dialect, EntryId};
use throughline_store::{
    Answer, Batch, Changes, CompactionStep, Conversations, Entries, Exchange, ExchangeId, Exchanges, Heading,
    History, Hit, Kept, Locate, Located, Memory, Page, Prune, Pruned, Receipt, Recording, Search, Standing,
    StoreError, Which,
};

/// A history that can be read and takes nothing.
#[derive(Debug)]
struct Unwritable(Memory);

impl History for Unwritable {
    fn append(&self, _: Batch) -> Answer<'_, Receipt> {
        Box::pin(async { Err(StoreError::Full) })
    }

    fn locate(&self, locate: Locate) -> Answer<'_, Option<Located>> {
        self.0.locate(locate)
    }

    fn conversations(&self, which: Conversations) -> Answer<'_, Page<Heading>> {
        self.0.conversations(which)
    }

    fn entries(&self, which: Entries) -> Answer<'_, Vec<Kept>> {
        self.0.entries(which)
    }

    fn exchanges(&self, which: Exchanges) -> Answer<'_, Page<Exchange>> {
        self.0.exchanges(which)
    }

    fn recording(&self, exchange: ExchangeId, which: Which) -> Answer<'_, Recording> {
        self.0.recording(exchange, which)
    }

    fn compaction(&self, conversation: ConversationId) -> Answer<'_, Vec<CompactionStep>> {
        self.0.compaction(conversation)
    }

    fn search(&self, search: Search) -> Answer<'_, Page<Hit>> {
        self.0.search(search)
    }

    fn standing(&self) -> Answer<'_, Standing> {
        self.0.standing()
    }

    fn prune(&self, prune: Prune) -> Answer<'_, Pruned> {
        self.0.prune(prune)
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async { Err(StoreError::Full) })
    }

    fn changes(&self) -> Changes {
        self.0.changes()
    }
}

async fn house(on_failure: &'static str) -> House {
    let mut room = Room::new("only", Dialect::Messages);
    room.lines = on_failure;
    House::with_history(vec![room], Arc::new(Unwritable(Memory::new()))).await
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_sent_and_the_client_is_told_why() {
    let house = house("").await;
    for from in Dialect::ALL {
        let mut client = Client::new(&house.url, from);
        client.say("Hello");
        let answer = client.post(&client.body("only")).await;
        assert_eq!(answer.status, 503, "{}", answer.raw);
        assert_eq!(answer.body["error"]["code"], "throughline_store_failed", "{}", answer.raw);
        assert!(answer.raw.contains("full"), "{}", answer.raw);
    }
    assert!(house.recorded("only").is_empty(), "nothing is sent that is not in the history");
    house.stop().await;
}

#[tokio::test]
async fn where_that_is_configured_the_answer_comes_and_says_that_it_was_not_kept() {
    let house = house("[store]\non_failure = \"pass\"").await;
    for from in Dialect::ALL {
        for stream in [false, true] {
            let mut client = Client::new(&house.url, from);
            client.stream = stream;
            client.say("Please read the file a.txt");
            let answer = client.ask("only").await;
            assert_eq!(answer.header("x-throughline-recorded"), "no", "{from}");
            assert_eq!(answer.calls(from).len(), 1, "{from}: {}", answer.raw);
        }
    }
    house.stop().await;
}

/// A history that is away for so many questions and writes, and then is back.
#[derive(Debug)]
struct Away {
    history: Memory,
    left: AtomicUsize,
    /// Whether it can be read meanwhile.
    reads: bool,
    /// An entry up to which nothing can be read.
    unreadable: Mutex<Option<EntryId>>,
}

impl Away {
    fn is_away(&self) -> bool {
        self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    fn read<'a, T: Send + 'a>(&'a self, read: impl FnOnce(&'a Memory) -> Answer<'a, T>) -> Answer<'a, T> {
        if !self.reads && self.is_away() {
            return Box::pin(async { Err(StoreError::Unavailable("it is away".to_owned())) });
        }
        read(&self.history)
    }
}

impl History for Away {
    fn append(&self, batch: Batch) -> Answer<'_, Receipt> {
        if self.is_away() {
            return Box::pin(async { Err(StoreError::Unavailable("it is away".to_owned())) });
        }
        self.history.append(batch)
    }

    fn locate(&self, locate: Locate) -> Answer<'_, Option<Located>> {
        self.read(|history| history.locate(locate))
    }

    fn conversations(&self, which: Conversations) -> Answer<'_, Page<Heading>> {
        self.read(|history| history.conversations(which))
    }

    fn entries(&self, which: Entries) -> Answer<'_, Vec<Kept>> {
        if let Entries::Branch(id) = &which
            && self.unreadable.lock().unwrap().as_ref() == Some(id)
        {
            return Box::pin(async { Err(StoreError::Unavailable("it is away".to_owned())) });
        }
        self.read(|history| history.entries(which))
    }

    fn exchanges(&self, which: Exchanges) -> Answer<'_, Page<Exchange>> {
        self.read(|history| history.exchanges(which))
    }

    fn recording(&self, exchange: ExchangeId, which: Which) -> Answer<'_, Recording> {
        self.read(|history| history.recording(exchange, which))
    }

    fn compaction(&self, conversation: ConversationId) -> Answer<'_, Vec<CompactionStep>> {
        self.read(|history| history.compaction(conversation))
    }

    fn search(&self, search: Search) -> Answer<'_, Page<Hit>> {
        self.read(|history| history.search(search))
    }

    fn standing(&self) -> Answer<'_, Standing> {
        self.history.standing()
    }

    fn prune(&self, prune: Prune) -> Answer<'_, Pruned> {
        self.history.prune(prune)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.history.ready()
    }

    fn changes(&self) -> Changes {
        self.history.changes()
    }
}

async fn away(left: usize, reads: bool, lines: &str) -> (House, Arc<Away>) {
    let (history, left) = (Memory::new(), AtomicUsize::new(left));
    let history = Arc::new(Away { history, left, reads, unreadable: Mutex::new(None) });
    let shared = Arc::clone(&history) as Arc<dyn History>;
    (House::with_lines(vec![Room::new("only", Dialect::Chat)], shared, lines).await, history)
}

const PASS: &str = "[store]\non_failure = \"pass\"\n";

#[tokio::test]
async fn what_could_not_be_written_is_written_with_what_comes_next() {
    let (house, history) = away(1, true, PASS).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    let answer = client.ask("only").await;
    assert_eq!((answer.status, answer.header("x-throughline-recorded")), (200, "no"), "{}", answer.raw);
    let page = history.conversations(Conversations::All(throughline_store::Paging::default())).await.unwrap();
    assert_eq!(page.items.len(), 1, "the history was back when the answer ended");
    assert_eq!((page.items[0].entries, page.items[0].exchanges), (2, 1));
    house.stop().await;
}

#[tokio::test]
async fn a_history_that_is_away_fails_requests_or_is_done_without_and_comes_back() {
    let (house, _) = away(1, false, "").await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    let answer = client.post(&client.body("only")).await;
    assert_eq!(answer.status, 503, "{}", answer.raw);
    assert_eq!(answer.body["error"]["code"], "throughline_store_failed", "{}", answer.raw);
    assert_eq!(client.ask("only").await.status, 200, "service is back");
    house.stop().await;

    let (house, history) = away(1000, false, PASS).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    let answer = client.ask("only").await;
    assert_eq!((answer.status, answer.header("x-throughline-recorded")), (200, "no"), "{}", answer.raw);
    history.left.store(0, SeqCst);
    client.say("And again");
    let answer = client.ask("only").await;
    assert!(answer.status == 200 && !answer.headers.contains_key("x-throughline-recorded"), "{}", answer.raw);
    house.stop().await;
}

#[tokio::test]
async fn what_a_conversation_goes_on_from_is_done_without_where_that_is_configured() {
    for (lines, status) in [("", 503), (PASS, 200)] {
        let (house, history) = away(0, true, lines).await;
        let mut old = Client::new(&house.url, Dialect::Messages);
        old.say("Hello");
        let id = old.ask("only").await.header("x-throughline-conversation").to_owned();
        let continues = vec![("x-throughline-continue", id.clone())];
        let mut client = Client::new(&house.url, Dialect::Messages);
        client.headers = continues.clone();
        client.say("Go on");
        client.ask("only").await;

        let tip = history.locate(Locate::Conversation(ConversationId::new(id))).await.unwrap().unwrap().entry;
        *history.unreadable.lock().unwrap() = tip;
        client.headers.clear();
        client.say("And again");
        let answer = client.post(&client.body("only")).await;
        assert_eq!(answer.status, status, "{}", answer.raw);
        // Somebody who asks for it is not given an answer that knows nothing of it.
        let mut another = Client::new(&house.url, Dialect::Messages);
        another.headers = continues;
        another.say("Go on from there");
        let answer = another.post(&another.body("only")).await;
        assert_eq!(answer.status, 503, "{}", answer.raw);
        assert_eq!(answer.body["error"]["code"], "throughline_store_failed", "{}", answer.raw);
        house.stop().await;
    }
}
