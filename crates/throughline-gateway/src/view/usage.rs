//! What was used: tokens and cost of all exchanges, added up by day, model, client, conversation or project.

use super::json::{optional, write_cost, write_usage};
use super::{failure_of, iso};
use crate::async_summary::answering;
use crate::bill::Bill;
use crate::config::Config;
use std::collections::BTreeMap;
use throughline_core::{ConversationId, Text};
use throughline_store::{
    Conversations, Exchange, Exchanges, Heading, History, Moment, Paging, StoreError, short_id,
};
use throughline_wire::json::Writer;

/// How many exchanges are read at a time.
const PAGE: u32 = 500;

/// What exchanges are added up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageBy {
    /// The day on which they began, in UTC.
    #[default]
    Day,
    /// The model that answered.
    Model,
    /// The client that asked.
    Client,
    /// The conversation.
    Conversation,
    /// The directory that the conversation works in.
    Project,
}

/// What some exchanges add up to.
#[derive(Clone, Debug, Default)]
pub struct UsageRow {
    /// What they have in common: a day, a name, an id.
    pub key: String,
    /// The title, of a conversation.
    pub title: Option<Text>,
    /// How many there were.
    pub requests: u64,
    /// How many of them failed or broke off.
    pub failed: u64,
    /// Their tokens.
    pub used: Bill,
}

/// What all exchanges add up to.
#[derive(Clone, Debug, Default)]
pub struct UsageReport {
    /// By what was asked for: days the latest first, everything else by its tokens, the most first.
    pub rows: Vec<UsageRow>,
    /// All of them together.
    pub total: UsageRow,
}

impl UsageBy {
    /// All of them, by the names that users write.
    pub const ALL: [(&'static str, Self); 5] = [
        ("day", Self::Day),
        ("model", Self::Model),
        ("client", Self::Client),
        ("conversation", Self::Conversation),
        ("project", Self::Project),
    ];

    /// Returns what users mean by a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, by)| *by)
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Client => "client",
            Self::Conversation => "conversation",
            Self::Project => "project",
        }
    }
}

/// Adds up what was used since a moment.
///
/// # Errors
/// When the history cannot be read.
pub async fn usage(
    history: &dyn History,
    by: UsageBy,
    since: Option<Moment>,
) -> Result<UsageReport, StoreError> {
    let mut report = UsageReport::default();
    let mut rows: BTreeMap<String, UsageRow> = BTreeMap::new();
    let mut headings: BTreeMap<ConversationId, Option<Heading>> = BTreeMap::new();
    let mut paging = Paging::first(PAGE);
    loop {
        let page = history.exchanges(Exchanges::Since(since.unwrap_or(Moment(i64::MIN)), paging)).await?;
        for exchange in page.items.iter().filter(|exchange| is_request(exchange)) {
            let id = &exchange.conversation;
            if matches!(by, UsageBy::Conversation | UsageBy::Project) && !headings.contains_key(id) {
                let found = history.conversations(Conversations::One(id.clone())).await?;
                headings.insert(id.clone(), found.items.into_iter().next());
            }
            let heading = headings.get(id).and_then(Option::as_ref);
            let row = rows.entry(key(by, exchange, heading)).or_default();
            if by == UsageBy::Conversation {
                row.title = heading.and_then(|heading| heading.title.clone());
            }
            row.count(exchange);
            report.total.count(exchange);
        }
        match page.next {
            Some(next) => paging = Paging { after: Some(next), limit: PAGE },
            None => break,
        }
    }
    report.rows = rows.into_iter().map(|(key, row)| UsageRow { key, ..row }).collect();
    match by {
        UsageBy::Day => report.rows.reverse(),
        _ => report.rows.sort_by_key(|row| std::cmp::Reverse(row.tokens())),
    }
    Ok(report)
}

/// Says whether an exchange asked somebody, and does not only hold the lines of a session that was imported.
fn is_request(exchange: &Exchange) -> bool {
    exchange.usage.is_some() || !exchange.attempts.is_empty() || failure_of(exchange).is_some()
}

fn key(by: UsageBy, exchange: &Exchange, heading: Option<&Heading>) -> String {
    let answered = answering(exchange);
    match by {
        UsageBy::Day => iso(exchange.started).chars().take_while(|c| *c != 'T').collect(),
        UsageBy::Model => {
            let model = answered.and_then(|attempt| attempt.model.as_deref());
            model.or(exchange.asked_model.as_deref()).unwrap_or("unknown").to_owned()
        }
        UsageBy::Client => client_name(exchange.client.as_deref().unwrap_or("unnamed")).to_owned(),
        UsageBy::Conversation => exchange.conversation.to_string(),
        UsageBy::Project => {
            let project = heading.and_then(|heading| heading.project.as_deref());
            project.unwrap_or("unknown").to_owned()
        }
    }
}

/// Returns what a client calls itself, without its version.
#[must_use]
pub fn client_name(client: &str) -> &str {
    client.split(['/', ' ']).next().unwrap_or(client)
}

impl UsageRow {
    fn count(&mut self, exchange: &Exchange) {
        self.requests += 1;
        self.failed += u64::from(failure_of(exchange).is_some());
        if let Some((usage, attempt)) = exchange.usage.zip(answering(exchange)) {
            self.used.add(&attempt.backend, attempt.model.as_ref(), usage);
        }
    }

    fn tokens(&self) -> u64 {
        self.used.total().map_or(0, |usage| usage.input.saturating_add(usage.output))
    }
}

/// Writes what was used.
pub fn write_usage_report(writer: &mut Writer, by: UsageBy, report: &UsageReport, config: &Config) {
    writer.begin_object();
    writer.field_str("by", by.name());
    writer.key("rows");
    writer.begin_array();
    report.rows.iter().for_each(|row| write_usage_row(writer, row, config));
    writer.end_array();
    writer.key("total");
    write_usage_row(writer, &report.total, config);
    writer.end_object();
}

/// Writes what some exchanges add up to. `cost` is `null` where a price is not known; `cost_known` leaves those out.
pub fn write_usage_row(writer: &mut Writer, row: &UsageRow, config: &Config) {
    writer.begin_object();
    writer.field_str("key", &row.key);
    if row.title.is_some() {
        optional(writer, "title", row.title.as_deref());
        writer.field_str("short", short_id(&ConversationId::new(row.key.as_str())));
    }
    writer.field_uint("requests", row.requests);
    writer.field_uint("failed", row.failed);
    write_usage(writer, "usage", Some(row.used.total().unwrap_or_default()));
    write_cost(writer, row.used.cost(config));
    writer.field_raw("cost_known", &format!("{:.8}", row.used.cost_known(config)));
    writer.field_raw("cache_saved", &format!("{:.8}", row.used.cache_saved(config)));
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Dialect, Usage};
    use throughline_store::{
        Attempt, Batch, ExchangeId, Memory, NewConversation, PROJECT, Scope, Setting, Write,
    };

    const DAY: i64 = 24 * 60 * 60 * 1000;

    fn exchange(id: &str, day: i64, model: &str, ending: &str, input: Option<u64>) -> Exchange {
        let begun = Exchange::begun(
            ExchangeId::new(id),
            ConversationId::new("c"),
            Dialect::Chat,
            Moment(day * DAY + 5),
        );
        Exchange {
            client: Some("claude-cli/2.1 (external)".into()),
            ending: Some(ending.into()),
            usage: input.map(|input| Usage { input, output: 1, ..Usage::default() }),
            attempts: vec![Attempt {
                model: Some(model.into()),
                ..Attempt::begun("b".into(), Dialect::Chat, begun.started)
            }],
            ..begun
        }
    }

    #[tokio::test]
    async fn exchanges_are_added_up_by_what_was_asked_for() {
        let history = Memory::new();
        let id = ConversationId::new("c");
        let imported = Exchange {
            ending: Some("imported".into()),
            ..Exchange::begun(ExchangeId::new("i"), id.clone(), Dialect::Chat, Moment(2 * DAY))
        };
        let project = Setting {
            scope: Scope::Conversation(id.clone()),
            name: PROJECT.into(),
            value: Some("/bakery".into()),
            at: Moment(0),
        };
        let begin = NewConversation {
            id,
            at: Moment(0),
            identified: "header".into(),
            title: Some("Fix the oven".into()),
            keys: Vec::new(),
        };
        let exchanges = [
            exchange("1", 0, "small", "end_turn", Some(10)),
            exchange("2", 1, "large", "end_turn", Some(500)),
            exchange("3", 1, "small", "failed", None),
            imported,
        ];
        let mut writes = vec![Write::Conversation(begin), Write::Setting(project)];
        writes.extend(exchanges.map(|exchange| Write::Exchange(Box::new(exchange))));
        history.append(Batch::relaxed(writes)).await.unwrap();

        let keys = async |by, since| {
            let report = usage(&history, by, since).await.unwrap();
            let row = |row: &UsageRow| (row.key.clone(), row.requests, row.failed, row.tokens());
            (report.rows.iter().map(row).collect::<Vec<_>>(), report.total.requests)
        };
        let (days, all) = keys(UsageBy::Day, None).await;
        assert_eq!(days, [("1970-01-02".to_owned(), 2, 1, 501), ("1970-01-01".to_owned(), 1, 0, 11)]);
        assert_eq!(all, 3);
        assert_eq!(keys(UsageBy::Day, Some(Moment(DAY))).await.1, 2);
        let (models, _) = keys(UsageBy::Model, None).await;
        assert_eq!(models, [("large".to_owned(), 1, 0, 501), ("small".to_owned(), 2, 1, 11)]);
        assert_eq!(keys(UsageBy::Client, None).await.0[0].0, "claude-cli");
        assert_eq!(keys(UsageBy::Project, None).await.0[0].0, "/bakery");
        let report = usage(&history, UsageBy::Conversation, None).await.unwrap();
        assert_eq!(report.rows[0].title.as_deref(), Some("Fix the oven"));
    }
}
