//! A history that cannot be written: the request fails clearly, or is answered and says that it was not kept.

use crate::client::Client;
use crate::house::{House, Room};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_store::{
    Answer, Batch, Changes, Conversations, Entries, Exchange, ExchangeId, Exchanges, Heading, History, Hit,
    Kept, Locate, Located, Memory, Page, Receipt, Recording, Search, Standing, StoreError, Which,
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

    fn search(&self, search: Search) -> Answer<'_, Page<Hit>> {
        self.0.search(search)
    }

    fn standing(&self) -> Answer<'_, Standing> {
        self.0.standing()
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
