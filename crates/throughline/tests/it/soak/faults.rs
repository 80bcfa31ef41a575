//! What goes wrong: replicas that are killed, a database that goes away, connections that are cut, a disk that is full.

use super::Plan;
use super::replicas::{COUNT, Replicas};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

    fn is_of_the_server(self) -> bool {
        matches!(self, Self::Restart | Self::Crash | Self::Full)
    }
}

/// Who sees to it that things go wrong.
pub struct Faults<'p> {
    plan: &'p Plan,
    replicas: &'p Replicas,
    state: Mutex<State>,
}

struct State {
    random: u64,
    injected: BTreeMap<Fault, usize>,
}

impl<'p> Faults<'p> {
    pub fn new(plan: &'p Plan, replicas: &'p Replicas) -> Self {
        Self { plan, replicas, state: Mutex::new(State { random: 42, injected: BTreeMap::new() }) }
    }

    /// Returns what goes wrong next.
    pub fn next(&self) -> Fault {
        self.plan.faults[self.draw() % self.plan.faults.len()]
    }

    /// Has it go wrong, and waits until the database is back. Counts only if it did go wrong.
    pub fn inject(&self, fault: Fault) {
        let went_wrong = match fault {
            Fault::Kill => self.replicas.kill(self.draw() % COUNT),
            Fault::Cut => cut(&self.plan.url),
            Fault::Restart => control(&["restart", "-m", "fast"]),
            Fault::Crash => control(&["restart", "-m", "immediate"]),
            Fault::Full => self.plan.disk.as_deref().is_some_and(fill),
        };
        if fault.is_of_the_server() {
            revive(&self.plan.url);
        }
        *self.state().injected.entry(fault).or_default() += usize::from(went_wrong);
    }

    pub fn injected(&self) -> Vec<(Fault, usize)> {
        self.state().injected.iter().map(|(fault, count)| (*fault, *count)).collect()
    }

    fn draw(&self) -> usize {
        let mut state = self.state();
        state.random =
            state.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state.random >> 33).unwrap()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Display for Faults<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{} faults", self.state().injected.values().sum::<usize>())
    }
}

/// Makes a schema of its own in a database, and returns the URL under which it is the place for tables.
pub fn own_schema(server: &str, name: &str) -> String {
    execute(server, &format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"));
    format!("{server}?options=-csearch_path%3D{name}&application_name={name}")
}

/// Has a server take so little of a small disk for its log that the disk is full only when somebody fills it.
pub fn make_room(server: &str) {
    execute(server, "ALTER SYSTEM SET max_wal_size = '128MB'");
    execute(server, "SELECT pg_reload_conf()");
}

/// Waits until the database is back. One that finds no space while it recovers ends, and is started again as whoever
/// runs one in earnest has it done.
#[expect(clippy::disallowed_methods, reason = "a database that recovers is asked again after a while")]
fn revive(url: &str) {
    while !execute(url, "SELECT 1") {
        if !control(&["status"]) {
            control(&["start"]);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn cut(url: &str) -> bool {
    let (server, settings) = url.split_once('?').unwrap();
    let name = settings.split_once("application_name=").unwrap().1;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name";
    execute(server, &format!("{end} = '{name}'"))
}

/// Asks the database behind the replicas' backs, and says whether it answered.
fn execute(server: &str, sql: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Ok((client, connection)) = tokio_postgres::connect(server, tokio_postgres::NoTls).await else {
            return false;
        };
        tokio::spawn(connection);
        client.batch_execute(sql).await.is_ok()
    })
}

/// Says whether it worked.
fn control(args: &[&str]) -> bool {
    let control = std::env::var("THROUGHLINE_TEST_POSTGRES_CONTROL").unwrap();
    Command::new(control).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[expect(clippy::disallowed_methods, reason = "the disk is full for a while, whatever happens meanwhile")]
fn fill(disk: &Path) -> bool {
    let file = disk.join("filler");
    let mut filler = std::fs::File::create(&file).unwrap();
    let piece = vec![0; 64 * 1024];
    while filler.write_all(&piece).is_ok() {}
    std::thread::sleep(Duration::from_secs(2));
    drop(filler);
    std::fs::remove_file(file).is_ok()
}
