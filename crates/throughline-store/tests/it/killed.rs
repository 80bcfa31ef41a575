//! What was acknowledged is there after the process was killed.
//!
//! This binary runs itself again as the victim: it appends from several threads and says what was
//! acknowledged; after some lines it is killed, wherever it may be just then. Then the store is opened, and
//! everything that was said must be in it.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use throughline_core::{EntryId, Outcome};
use throughline_store::{
    Batch, Conversations, DocumentKind, Durability, Entries, ExchangeId, History, Paging, Which, Write,
};

use crate::fixtures::{
    Folder, Store, beginning, call, conversation, exchange, extension, open, result, run, user,
};

const ROUNDS: usize = 20;
const THREADS: usize = 4;
const DATABASE: &str = "THROUGHLINE_TEST_DATABASE";
const ROUND: &str = "THROUGHLINE_TEST_ROUND";

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = Folder::new("killed");
    let mut said = Vec::new();
    for round in 0..ROUNDS {
        // Another number of lines each time, so that it is hit at the beginning and in full swing.
        said.extend(lines_of_a_victim(&folder.database(), round, 1 + round * 7 % 61));
        check(&folder.database(), &said);
    }
    assert!(said.len() >= ROUNDS);
}

/// Starts a victim, kills it after that many lines, and returns all that it said.
fn lines_of_a_victim(database: &Path, round: usize, lines: usize) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::victim", "--nocapture", "--test-threads=1"])
        .env(DATABASE, database)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
    let acknowledged = |line: &String| line.starts_with("ack ");
    let mut said: Vec<String> = output.by_ref().filter(acknowledged).take(lines).collect();
    victim.kill().unwrap();
    // What it said before it died counts, too; its last line may be cut off.
    said.extend(output.filter(|line| acknowledged(line) && line.ends_with(" end")));
    victim.wait().unwrap();
    assert!(said.len() >= lines, "the victim ended by itself");
    said
}

fn check(database: &Path, said: &[String]) {
    let store: Store = Arc::new(open(database));
    run(async {
        for line in said {
            let words: Vec<&str> = line.split(' ').collect();
            let ["ack", exchange, tip, length, "end"] = words[..] else { panic!("{line}") };
            let branch = store.entries(Entries::Branch(EntryId::new(tip))).await.unwrap();
            assert_eq!(branch.len().to_string(), length, "{line}");
            let recording = store.recording(ExchangeId::new(exchange), Which::Everything).await.unwrap();
            assert_eq!(recording.answer.as_deref(), Some(exchange));
            assert_eq!(recording.sent[0].1, body(exchange));
        }
        let page = store.conversations(Conversations::All(Paging::first(1000))).await.unwrap();
        for heading in page.items {
            let all = store.entries(Entries::Conversation(heading.id)).await.unwrap();
            assert_eq!(all.len() % 3, 0, "a batch of three is whole or not there");
        }
    });
    drop(store);
    let connection = rusqlite::Connection::open(database).unwrap();
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let strays =
        connection.prepare("PRAGMA foreign_key_check").unwrap().query([]).unwrap().next().unwrap().is_some();
    assert!(!strays, "a row refers to one that is not there");
}

/// Not a test of its own: what the killed process does. Without its variables it does nothing.
#[test]
fn victim() {
    let Some(database) = std::env::var_os(DATABASE) else { return };
    let round = std::env::var(ROUND).unwrap();
    let store: Store = Arc::new(open(Path::new(&database)));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, round) = (Arc::clone(&store), round.as_str());
            scope.spawn(move || run(append_until_killed(&*store, round, thread)));
        }
    });
}

async fn append_until_killed(store: &dyn History, round: &str, thread: usize) {
    let name = format!("{round}-{thread}");
    let mut tip = None;
    for turn in 1.. {
        let id = format!("{name}-{turn}");
        let id = id.as_str();
        let entries = [user(id), call(id, "Read", "{}"), result(id, &id.repeat(100), Outcome::Ok)];
        let extension = extension(&name, tip.as_ref(), turn, &entries).of_exchange(ExchangeId::new(id));
        tip = extension.tip();
        let writes = vec![
            beginning(&name, turn),
            Write::Exchange(exchange(id, &name, turn).into()),
            Write::Entries(extension),
            Write::Document {
                kind: DocumentKind::Sent,
                exchange: ExchangeId::new(id),
                attempt: 0,
                body: body(id).into(),
            },
            Write::Answer { exchange: ExchangeId::new(id), json: id.into() },
        ];
        // A killed process takes the relaxed ones with it no more than the durable ones.
        let durability = if turn % 3 == 0 { Durability::Relaxed } else { Durability::Durable };
        store.append(Batch { durability, writes }).await.unwrap();
        let line = format!("ack {id} {} {} end\n", tip.as_ref().unwrap(), turn * 3);
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        assert_eq!(conversation(&name).as_str(), name);
    }
}

/// A request that grows from turn to turn.
fn body(id: &str) -> Vec<u8> {
    let turn: usize = id.rsplit('-').next().unwrap().parse().unwrap();
    format!("{{\"id\":\"{id}\",\"turns\":\"{}\"}}", "a turn of the conversation ".repeat(turn + 40))
        .into_bytes()
}
