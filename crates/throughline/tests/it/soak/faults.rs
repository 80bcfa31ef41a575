//! What goes wrong: replicas that are killed, a database that goes away, connections that are cut, a disk that is full.

use super::Plan;
use super::replicas::{COUNT, Replicas};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A replica is killed with SIGKILL, and started again.
    Kill,
    /// The database ends all connections of the replicas.
    Cut,
    /// The database is restarted in good order.
    Restart,
    /// The database is stopped as if its power had failed, and started again.
    Crash,
    /// The disk of the database is full for two seconds.
    Full,
}

impl Fault {
    /// Those that disturb nobody else who uses the same server, and then the others.
    pub const ALL: [Self; 5] = [Self::Kill, Self::Cut, Self::Restart, Self::Crash, Self::Full];
}

/// Who sees to it that things go wrong.
pub struct Faults<'p> {
    plan: &'p Plan,
    replicas: &'p Replicas,
    random: u64,
    injected: BTreeMap<Fault, usize>,
}

impl<'p> Faults<'p> {
    pub fn new(plan: &'p Plan, replicas: &'p Replicas) -> Self {
        Self { plan, replicas, random: 42, injected: BTreeMap::new() }
    }

    /// Has one thing go wrong.
    pub fn inject(&mut self) {
        let random = self.next();
        let fault = self.plan.faults[random % self.plan.faults.len()];
        match fault {
            Fault::Kill => self.replicas.kill(random / 8 % COUNT),
            Fault::Cut => cut(&self.plan.url),
            Fault::Restart => control(&["restart", "-m", "fast"]),
            Fault::Crash => control(&["restart", "-m", "immediate"]),
            Fault::Full => self.plan.disk.iter().for_each(|disk| fill(disk)),
        }
        *self.injected.entry(fault).or_default() += 1;
    }

    pub fn injected(&self) -> Vec<(Fault, usize)> {
        self.injected.iter().map(|(fault, count)| (*fault, *count)).collect()
    }

    fn next(&mut self) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap()
    }
}

/// Makes a schema of its own in a database, and returns the URL under which it is the place for tables.
pub fn own_schema(server: &str, name: &str) -> String {
    execute(server, &format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"));
    format!("{server}?options=-csearch_path%3D{name}&application_name={name}")
}

fn cut(url: &str) {
    let (server, settings) = url.split_once('?').unwrap();
    let name = settings.split_once("application_name=").unwrap().1;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name";
    execute(server, &format!("{end} = '{name}'"));
}

/// Asks the database behind the replicas' backs; that it is away is no failure.
fn execute(server: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Ok((client, connection)) = tokio_postgres::connect(server, tokio_postgres::NoTls).await else {
            return;
        };
        tokio::spawn(connection);
        let _ = client.batch_execute(sql).await;
    });
}

fn control(args: &[&str]) {
    let control = std::env::var("THROUGHLINE_TEST_POSTGRES_CONTROL").unwrap();
    // A server that is recovering takes a while, and says so; the next fault waits for it.
    let _ = Command::new(control).args(args).output().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the disk is full for a while, whatever happens meanwhile")]
fn fill(disk: &Path) {
    let file = disk.join("filler");
    let mut filler = std::fs::File::create(&file).unwrap();
    let piece = vec![0; 64 * 1024];
    while filler.write_all(&piece).is_ok() {}
    std::thread::sleep(Duration::from_secs(2));
    drop(filler);
    std::fs::remove_file(file).unwrap();
}
