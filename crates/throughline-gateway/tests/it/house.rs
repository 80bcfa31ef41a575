//! A gateway and its backends, all real, all on this machine.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_gateway::config::{Flags, Surroundings, load};
use throughline_gateway::gateway::Gateway;
use throughline_gateway::server;
use throughline_sim::{Recorded, Sim, SimOptions};
use throughline_store::{History, Memory};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A running gateway with its backends.
pub struct House {
    pub url: String,
    pub sims: BTreeMap<&'static str, Sim>,
    pub gateway: Arc<Gateway>,
    stop: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<io::Result<()>>,
}

/// A backend to be set up.
pub struct Room {
    pub name: &'static str,
    pub dialect: Dialect,
    pub options: SimOptions,
    /// Where it is, if it is not the simulated one.
    pub base_url: Option<String>,
    /// Further lines of its configuration.
    pub lines: &'static str,
}

impl Room {
    pub fn new(name: &'static str, dialect: Dialect) -> Self {
        let options = SimOptions { seed: name.to_owned(), ..SimOptions::default() };
        Self { name, dialect, options, base_url: None, lines: "" }
    }
}

/// Returns a backend of each dialect, called by its name.
pub fn one_of_each() -> Vec<Room> {
    Dialect::ALL.into_iter().map(|dialect| Room::new(dialect.name(), dialect)).collect()
}

impl House {
    pub async fn new(rooms: Vec<Room>) -> Self {
        Self::with_history(rooms, Arc::new(Memory::new())).await
    }

    pub async fn with_history(rooms: Vec<Room>, history: Arc<dyn History>) -> Self {
        Self::built(rooms, history, "", |_| {}).await
    }

    /// Sets up a house whose configuration opens with further lines.
    pub async fn with_lines(rooms: Vec<Room>, history: Arc<dyn History>, lines: &str) -> Self {
        Self::built(rooms, history, lines, |_| {}).await
    }

    /// Returns a house whose gateway is not quite as it would be.
    pub async fn altered(
        rooms: Vec<Room>,
        history: Arc<dyn History>,
        alter: impl FnOnce(&mut Gateway),
    ) -> Self {
        Self::built(rooms, history, "", alter).await
    }

    /// Returns a house with both.
    pub async fn altered_with_lines(
        rooms: Vec<Room>,
        history: Arc<dyn History>,
        lines: &str,
        alter: impl FnOnce(&mut Gateway),
    ) -> Self {
        Self::built(rooms, history, lines, alter).await
    }

    async fn built(
        rooms: Vec<Room>,
        history: Arc<dyn History>,
        lines: &str,
        alter: impl FnOnce(&mut Gateway),
    ) -> Self {
        let mut sims = BTreeMap::new();
        let mut toml = format!("listen = \"127.0.0.1:0\"\n{lines}\n");
        for room in rooms {
            let sim = Sim::start(room.options).await.unwrap();
            toml += &format!(
                "[[backends]]\nname = \"{}\"\ndialect = \"{}\"\nbase_url = \"{}\"\napi_key = \"none\"\ndefault_model = \"model-of-{}\"\n{}\n",
                room.name,
                room.dialect,
                room.base_url.unwrap_or_else(|| sim.base_url()),
                room.name,
                room.lines,
            );
            sims.insert(room.name, sim);
        }
        let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
        let config = load(&Map(toml), &flags).unwrap_or_else(|errors| panic!("{errors:?}"));
        let mut gateway = Gateway::build(config, history, None).await.unwrap();
        alter(&mut gateway);
        let gateway = Arc::new(gateway);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served =
            tokio::spawn(server::serve(listener, Arc::clone(&gateway), async move { drop(stopped.await) }));
        Self { url, sims, gateway, stop: Some(stop), served }
    }

    /// Returns what a backend was sent.
    pub fn recorded(&self, backend: &str) -> Vec<Recorded> {
        self.sims[backend].recorded()
    }

    /// Asserts that no backend refused anything.
    pub fn assert_nothing_refused(&self) {
        for (name, sim) in &self.sims {
            for recorded in sim.recorded() {
                assert!(recorded.status < 400, "{name} answered {}: {}", recorded.status, recorded.body);
            }
        }
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.served.await.unwrap().unwrap();
        for (_, sim) in self.sims {
            sim.stop().await;
        }
    }
}

/// Surroundings in which there is one file and nothing else.
pub struct Map(pub String);

impl Surroundings for Map {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "HOME").then(|| "home".to_owned())
    }

    fn variable_names(&self) -> Vec<String> {
        vec!["HOME".to_owned()]
    }

    fn read(&self, _: &Path) -> io::Result<String> {
        Ok(self.0.clone())
    }
}
