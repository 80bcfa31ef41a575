//! Histories for the tests.

use std::sync::Arc;
use throughline_core::{Call, ConversationId, Dialect, Entry, Input, Kind, Outcome, Part, Return, Role};
use throughline_store::{
    Batch, Durability, Exchange, ExchangeId, Extension, History, Moment, NewConversation, Write,
};

/// A conversation on its way to a history.
pub struct Scene {
    id: ConversationId,
    client: &'static str,
    at: i64,
    entries: Vec<Entry>,
}

impl Scene {
    pub fn new(id: &str, client: &'static str, at: i64) -> Self {
        Self { id: ConversationId::new(format!("conv_{id}")), client, at, entries: Vec::new() }
    }

    pub fn said(mut self, role: Role, text: &str) -> Self {
        self.entries.push(Entry::said(role, text));
        self
    }

    pub fn tool(self, name: &str, arguments: &str, result: &str) -> Self {
        self.ended(name, arguments, result, Outcome::Ok)
    }

    pub fn ended(mut self, name: &str, arguments: &str, result: &str, outcome: Outcome) -> Self {
        let id = format!("{}-{}", self.id, self.entries.len());
        let input = Input::Arguments(arguments.into());
        let call = Call { id: id.clone().into(), item_id: None, name: name.into(), namespace: None, input };
        let returned = Return {
            call_id: Some(id.into()),
            item_id: None,
            name: None,
            parts: vec![Part::text(result)],
            outcome,
            freeform: false,
        };
        self.entries.push(Entry::new(Kind::Called(call)));
        self.entries.push(Entry::new(Kind::Returned(returned)));
        self
    }

    /// Returns what is written for it.
    pub fn writes(self) -> Vec<Write> {
        let (id, at) = (self.id, Moment(self.at));
        let title = throughline_store::title_of(&self.entries);
        let exchange_id = ExchangeId::new(format!("ex_{id}"));
        let mut exchange = Exchange::begun(exchange_id, id.clone(), Dialect::Messages, at);
        exchange.client = Some(self.client.into());
        let mut extension = Extension::new(id.clone(), None, at);
        extension.extend(&self.entries);
        vec![
            Write::Conversation(NewConversation {
                id,
                at,
                identified: "import".into(),
                title,
                keys: Vec::new(),
            }),
            Write::Exchange(Box::new(exchange)),
            Write::Entries(extension),
        ]
    }

    pub async fn write(self, history: &Arc<dyn History>) {
        let batch = Batch { writes: self.writes(), durability: Durability::Relaxed };
        history.append(batch).await.unwrap();
    }
}
