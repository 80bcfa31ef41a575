//! How often the first result is the right one: fifty questions over hundreds of sessions that look alike.
//!
//! Every session works on another component of one of twenty services, with the same commands and files of the same
//! names. A question names what a person would remember, in their words; its answer stands in exactly one result.

use crate::client::{answer, connect, first_id};
use crate::history::Scene;
use rmcp::service::ClientLifecycleMode;
use serde_json::json;
use std::sync::Arc;
use throughline_core::{Outcome, Role};
use throughline_mcp::HistoryServer;
use throughline_store::{Batch, Durability, History, Sqlite, SqliteOptions};
use throughline_tokens::Vocabulary;

const QUESTIONS: usize = 50;

/// Below this, something that worked is broken. A failure says what was reached, and at how many tokens.
const RIGHT_MIN: usize = 45;

const SERVICES: [&str; 20] = [
    "billing",
    "catalog",
    "checkout",
    "delivery",
    "fraud",
    "gateway",
    "identity",
    "inventory",
    "ledger",
    "mailer",
    "media",
    "notifier",
    "orders",
    "pricing",
    "profile",
    "reports",
    "search",
    "shipping",
    "support",
    "wallet",
];

const COMPONENTS: [&str; 50] = [
    "adapter",
    "allocator",
    "archiver",
    "auditor",
    "balancer",
    "batcher",
    "broker",
    "cache",
    "calendar",
    "cleaner",
    "collector",
    "compressor",
    "connector",
    "counter",
    "crawler",
    "dashboard",
    "decoder",
    "dispatcher",
    "encoder",
    "estimator",
    "exporter",
    "fetcher",
    "formatter",
    "forwarder",
    "generator",
    "importer",
    "indexer",
    "limiter",
    "loader",
    "locker",
    "matcher",
    "merger",
    "migrator",
    "monitor",
    "optimizer",
    "packer",
    "parser",
    "planner",
    "poller",
    "proxy",
    "publisher",
    "reader",
    "recorder",
    "renderer",
    "resolver",
    "router",
    "sampler",
    "scheduler",
    "validator",
    "watcher",
];

/// What only one session saw.
struct Facts {
    service: &'static str,
    component: &'static str,
    number: usize,
}

impl Facts {
    fn of_session(number: usize) -> Self {
        let service = SERVICES[number % SERVICES.len()];
        let component = COMPONENTS[number / SERVICES.len() % COMPONENTS.len()];
        Self { service, component, number }
    }

    fn value(&self, salt: usize) -> usize {
        10_000 + (self.number * 7_919 + salt * 104_729) % 89_989
    }

    fn commit(&self) -> String {
        format!("{:07x}", 0x100_0000 + self.value(9) * 97)
    }

    fn scene(&self) -> Scene {
        let Self { service, component, number } = self;
        let (left, right) = (self.value(1), self.value(2));
        let neighbour = COMPONENTS[(number / SERVICES.len() + 7) % COMPONENTS.len()];
        let noise: String = (0..12)
            .map(|line| format!("{service}-{line} | handled {} requests, ok\n", self.value(20 + line)))
            .collect();
        Scene::new(&format!("00000000-0000-4000-8000-{number:012x}"), "claude-code", 1_700_000_000_000 + *number as i64 * 60_000)
            .said(Role::User, &format!("The {component} of {service} misbehaves, please look into it"))
            .tool("Bash", r#"{"command":"git status --short"}"#, " M Cargo.lock\n")
            .ended(
                "Bash",
                &format!(r#"{{"command":"cargo test -p {service} {component}"}}"#),
                &format!(
                    "Exit code 101\nrunning 12 tests\ntest {component}::keeps_order ... ok\ntest {component}::rounds ... FAILED\n\n\
                     thread '{component}::rounds' panicked at services/{service}/src/{component}.rs:88:9:\n\
                     assertion `left == right` failed\n  left: {left}\n right: {right}\n"
                ),
                Outcome::Error,
            )
            .tool(
                "Read",
                &format!(r#"{{"file_path":"services/{service}/src/{component}.rs"}}"#),
                &format!(
                    "//! The {component}.\n\nuse crate::{neighbour};\n\npub const TIMEOUT_MS: u64 = {};\npub const RETRIES: u32 = {};\n\n\
                     pub fn run() {{\n    {neighbour}::prepare();\n}}\n",
                    self.value(3),
                    self.value(4) % 90,
                ),
            )
            .tool(
                "Bash",
                &format!(r#"{{"command":"docker compose logs --tail 20 {service}"}}"#),
                &format!(
                    "{noise}{service}-1 | ERROR {component} crashed: connection to 10.0.{}.7:{} refused\n{service}-1 | restarting {neighbour}\n",
                    self.value(5) % 250,
                    self.value(5),
                ),
            )
            .tool(
                "Bash",
                &format!(r#"{{"command":"git log --oneline -3 -- services/{service}/src/{component}.rs"}}"#),
                &format!("{} {service}: batch writes of the {component}\n0a1b2c3 style\n", self.commit()),
            )
            .tool(
                "Bash",
                &format!(r#"{{"command":"psql {service} -c 'select count(*) from {component}_jobs'"}}"#),
                &format!(" count \n-------\n {}\n(1 row)\n", self.value(6)),
            )
            .tool("Edit", &format!(r#"{{"file_path":"services/{service}/src/{component}.rs"}}"#), "The file was updated.")
            .said(Role::Assistant, &format!("The {component} rounds as it should now, and its tests pass."))
    }

    fn question(&self, kind: usize) -> (String, String) {
        let Self { service, component, .. } = self;
        match kind % 5 {
            0 => (
                format!("what did the failing test of the {component} in {service} compare?"),
                format!("left: {}", self.value(1)),
            ),
            1 => (
                format!("TIMEOUT_MS value in the {service} {component} source"),
                format!("TIMEOUT_MS: u64 = {}", self.value(3)),
            ),
            2 => (
                format!("why did the {component} crash according to the {service} logs"),
                format!(":{} refused", self.value(5)),
            ),
            3 => (
                format!("which commit introduced batching of writes for {service} {component}"),
                self.commit(),
            ),
            _ => (
                format!("how many rows were in {component}_jobs of the {service} database?"),
                format!(" {}\n", self.value(6)),
            ),
        }
    }
}

/// `THROUGHLINE_MCP_SESSIONS=1000` asks over the thousand sessions of docs/mcp.md.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_result_is_the_right_one() {
    let wanted = std::env::var("THROUGHLINE_MCP_SESSIONS").ok();
    measure(wanted.and_then(|sessions| sessions.parse().ok()).unwrap_or(200)).await;
}

async fn measure(sessions: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("history.db"), SqliteOptions::default()).unwrap();
    let history: Arc<dyn History> = Arc::new(store);
    for hundred in 0..sessions / 100 {
        let numbers = hundred * 100..(hundred + 1) * 100;
        let writes = numbers.flat_map(|number| Facts::of_session(number).scene().writes()).collect();
        history.append(Batch { durability: Durability::Relaxed, writes }).await.unwrap();
    }
    HistoryServer::load_vocabulary();
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![rmcp::model::ProtocolVersion::LATEST],
        legacy_version: None,
    };
    let client = connect(history, lifecycle).await;
    let (mut right, mut tokens, mut wrong) = (0, 0, Vec::new());
    for question in 0..QUESTIONS {
        let facts = Facts::of_session((question * 191 + 13) % sessions);
        let (asked, expected) = facts.question(question);
        let found = answer(&client, "search_history", json!({"query": asked, "limit": 3})).await;
        let read = answer(&client, "get_tool_result", json!({"id": first_id(&found)})).await;
        tokens += Vocabulary::O200k.count(&found) + Vocabulary::O200k.count(&read);
        if read.contains(&expected) {
            right += 1;
        } else {
            wrong.push(format!("{asked}: {}", read.lines().next().unwrap_or_default()));
        }
    }
    let each = tokens / QUESTIONS as u64;
    assert!(right >= RIGHT_MIN, "only {right} of {QUESTIONS}, {each} tokens each:\n{}", wrong.join("\n"));
}
