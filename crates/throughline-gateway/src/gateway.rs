//! The gateway: what all exchanges share. Built from a configuration, served until it is told to stop.

use crate::async_summary::AsyncSummaries;
use crate::background::Background;
pub use crate::clock::{mint, now};
use crate::config::{self, Backend, Config, Endpoint};
use crate::connections::Connections;
use crate::drain::Drain;
use crate::egress::{AnswerBounds, Egress, EgressError, Reel};
use crate::exchange::Knowledge;
use crate::memory::MemoryBudget;
use crate::model_lists::{self, ModelList, ModelLists};
use crate::response_ids::ResponseIds;
use crate::routing::Listings;
use crate::switch::SWITCH;
use crate::telemetry::{StoreUse, Telemetry};
use crate::token_counters::TokenCounters;
use crate::trace::{TraceError, Tracer};
use crate::view::Tallies;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use throughline_core::Text;
use throughline_store::{History, Setting, Standing};
use tokio::sync::{Notify, Semaphore};

/// A summary is no use if it comes when the work is done.
const ASYNC_SUMMARY_LASTS: Duration = Duration::from_secs(90);

/// How long a WebSocket lasts; OpenResponses sets it.
const SOCKET_LASTS: Duration = Duration::from_secs(60 * 60);

/// How many runs are replayed at the same time for whoever asks over HTTP.
const REPLAYS_MAX: usize = 2;

/// What all exchanges share.
#[derive(Debug)]
pub struct Gateway {
    setup: RwLock<Arc<Setup>>,
    /// Where everything is kept.
    pub history: Arc<dyn History>,
    /// What is counted.
    pub telemetry: Arc<Telemetry>,
    /// What is known of conversations from their last requests.
    pub knowledge: Knowledge,
    /// What is generated although nobody waits for it.
    pub background: Arc<Background>,
    /// The ids of answers that are under way.
    pub response_ids: Arc<ResponseIds>,
    /// What is waited for before the gateway stops.
    pub drain: Arc<Drain>,
    /// What is being retold by a model.
    pub async_summaries: Arc<AsyncSummaries>,
    /// How long a model may take to retell something.
    pub async_summary_lasts: Duration,
    /// How long a WebSocket lasts.
    pub socket_lasts: Duration,
    /// Whether it waits before it asks a backend again; a replay does not.
    pub waits: bool,
    /// Whether other gateways may have the same history.
    pub is_shared: bool,
    /// How the models of each backend count.
    pub token_counters: TokenCounters,
    /// What conversations have taken so far.
    pub tallies: Tallies,
    /// The connections of clients that are open.
    pub connections: Arc<Connections>,
    /// The memory that all requests under way may take together.
    pub memory: Arc<MemoryBudget>,
    /// How many more runs may be replayed at the same time for whoever asks over HTTP.
    pub replays: Semaphore,
    /// Verdicts and switches, as the history had them when they were last read.
    standing: RwLock<Arc<Standing>>,
    /// Where the simulated backend listens, if one is needed.
    simulated: Option<String>,
    /// Told after each reload.
    reloaded: Notify,
}

/// What follows from the configuration; replaced as a whole when that changes.
#[derive(Debug)]
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// The way to each backend.
    pub egress: BTreeMap<Text, Egress>,
    /// The models that backends list, as far as they were asked, and their names alone.
    listed: RwLock<(Arc<ModelLists>, Arc<Listings>)>,
    /// The way to the collector of traces, if there is one.
    pub tracer: Option<Arc<Tracer>>,
}

/// Why a gateway could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The way to a backend could not be set up.
    #[error("backend {backend}: {source}")]
    Egress {
        /// Which backend.
        backend: Text,
        /// Why.
        source: EgressError,
    },
    /// A configuration that is reloaded wants the simulated backend, which was not started.
    #[error("backend {backend}: the simulated backend was not started with the gateway; restart it")]
    NotSimulated {
        /// Which backend.
        backend: Text,
    },
    /// The way to the collector of traces could not be set up.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The history could not be read.
    #[error(transparent)]
    Store(#[from] throughline_store::StoreError),
}

impl Gateway {
    /// Builds a gateway; `simulated` is the base URL of the simulated backend.
    ///
    /// # Errors
    /// When a backend cannot be set up or the history cannot be read.
    pub async fn build(
        config: Config,
        history: Arc<dyn History>,
        simulated: Option<String>,
    ) -> Result<Self, BuildError> {
        let telemetry = Arc::default();
        let is_shared = matches!(config.store.location, config::StoreLocation::Postgres(_));
        let setup = Setup::new(config, simulated.as_deref(), &telemetry, None)?;
        Ok(Self { telemetry, ..Self::over(setup, history, simulated, is_shared).await? })
    }

    async fn over(
        setup: Setup,
        history: Arc<dyn History>,
        simulated: Option<String>,
        is_shared: bool,
    ) -> Result<Self, BuildError> {
        let standing = history.standing().await?;
        let knowledge = Knowledge::new(setup.config.limits.known_bytes);
        let memory = Arc::new(MemoryBudget::new(setup.config.limits.memory_bytes));
        Ok(Self {
            knowledge,
            connections: Arc::default(),
            memory,
            setup: RwLock::new(Arc::new(setup)),
            history,
            telemetry: Arc::default(),
            background: Arc::default(),
            response_ids: Arc::default(),
            drain: Arc::default(),
            async_summaries: Arc::default(),
            async_summary_lasts: ASYNC_SUMMARY_LASTS,
            socket_lasts: SOCKET_LASTS,
            waits: true,
            is_shared,
            token_counters: TokenCounters::default(),
            tallies: Tallies::default(),
            replays: Semaphore::new(REPLAYS_MAX),
            standing: RwLock::new(Arc::new(standing)),
            simulated,
            reloaded: Notify::new(),
        })
    }

    /// Builds a gateway that asks nobody: its backends say what the reel has.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub async fn replaying(
        config: Config,
        history: Arc<dyn History>,
        reel: &Arc<Reel>,
    ) -> Result<Self, BuildError> {
        let recorded = |backend: &Arc<Backend>| {
            (backend.name.clone(), Egress::recorded(backend.dialect, Arc::clone(reel)))
        };
        let egress = config.backends.iter().map(recorded).collect();
        let setup = Setup { config, egress, listed: RwLock::default(), tracer: None };
        Ok(Self { waits: false, ..Self::over(setup, history, None, false).await? })
    }

    /// Returns what follows from the configuration as it is now.
    #[must_use]
    pub fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another configuration into effect; exchanges under way go on with the one they began with.
    ///
    /// Returns the keys that differ and cannot change while the gateway runs; their old values hold. Switches
    /// made at run time are no part of the configuration, so they hold as before.
    ///
    /// # Errors
    /// When a backend cannot be set up; nothing changes then.
    pub fn reload(&self, mut config: Config) -> Result<Vec<&'static str>, BuildError> {
        let before = self.setup();
        let needs_restart = config::keep_fixed(&before.config, &mut config);
        let setup = Setup::new(config, self.simulated.as_deref(), &self.telemetry, Some(&before))?;
        self.knowledge.limit(setup.config.limits.known_bytes);
        self.memory.set_limit(setup.config.limits.memory_bytes);
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
        self.reloaded.notify_one();
        Ok(needs_restart)
    }

    /// Waits until a configuration was put into effect; one waits at a time.
    pub async fn reloaded(&self) {
        self.reloaded.notified().await;
    }

    /// Returns the verdicts and switches as they are now.
    #[must_use]
    pub fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.standing.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the verdicts and switches as the history has them at this moment.
    ///
    /// Read for each request, so that a switch that another process has written holds from the next request
    /// on. That is two short tables on a reader's thread, where the request itself waits for the disk. When they
    /// cannot be read, what was known before holds: an answer by the wrong backend can be had again, and
    /// whether the history may fail at all is decided where it is written.
    pub async fn latest_standing(&self) -> Arc<Standing> {
        if let Err(error) = self.refresh().await {
            self.telemetry.store_failed(StoreUse::Read);
            tracing::warn!(%error, "switches could not be read; those known before hold");
        }
        self.standing()
    }

    /// Reads the verdicts and switches again, after one was written.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub async fn refresh(&self) -> Result<(), throughline_store::StoreError> {
        let standing = Arc::new(self.history.standing().await?);
        let mut known = self.standing.write().unwrap_or_else(PoisonError::into_inner);
        self.telemetry.switched(changed_settings(&known, &standing));
        *known = standing;
        Ok(())
    }
}

impl Setup {
    fn new(
        config: Config,
        simulated: Option<&str>,
        telemetry: &Arc<Telemetry>,
        before: Option<&Self>,
    ) -> Result<Self, BuildError> {
        let reach = |backend: &Arc<Backend>| {
            let base_url = match (&backend.endpoint, simulated) {
                (Endpoint::Url(url), _) => url.as_str().to_owned(),
                (Endpoint::Simulated, Some(simulated)) => simulated.to_owned(),
                (Endpoint::Simulated, None) => {
                    return Err(BuildError::NotSimulated { backend: backend.name.clone() });
                }
            };
            let bounds =
                AnswerBounds { bytes: config.limits.answer_bytes, progress: backend.timeouts.progress };
            let egress = Egress::new(backend, base_url, bounds, config.echoes.clone());
            let egress =
                egress.map_err(|source| BuildError::Egress { backend: backend.name.clone(), source })?;
            Ok((backend.name.clone(), egress))
        };
        let egress = config.backends.iter().map(reach).collect::<Result<_, BuildError>>()?;
        let listed = before.map(|before| before.still_listed(&config)).unwrap_or_default();
        let names = Arc::new(model_lists::names(&listed));
        // One that goes on as it was keeps what waits to be sent.
        let same = before.and_then(|before| before.tracer.clone());
        let tracer = match &config.tracing {
            Some(tracing) => match same.filter(|tracer| tracer.settings() == tracing) {
                Some(same) => Some(same),
                None => Some(Arc::new(Tracer::start(tracing, telemetry)?)),
            },
            None => None,
        };
        Ok(Self { config, egress, listed: RwLock::new((Arc::new(listed), names)), tracer })
    }

    /// Returns the models that backends list, by the backend.
    #[must_use]
    pub fn listings(&self) -> Arc<Listings> {
        Arc::clone(&self.listed.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Returns what came of asking each backend for its models.
    #[must_use]
    pub fn listed(&self) -> Arc<ModelLists> {
        Arc::clone(&self.listed.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Notes what came of asking a backend for its models.
    pub fn list(&self, backend: Text, listing: ModelList) {
        let mut known = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let mut listed = (*known.0).clone();
        listed.insert(backend, listing);
        *known = (Arc::new(listed.clone()), Arc::new(model_lists::names(&listed)));
    }

    /// Returns the listings of those backends that are in another configuration what they are in this one.
    fn still_listed(&self, config: &Config) -> ModelLists {
        let is_same = |name: &Text| match (self.config.backend(name), config.backend(name)) {
            (Some(old), Some(new)) => {
                (&old.endpoint, &old.credential, &old.headers)
                    == (&new.endpoint, &new.credential, &new.headers)
            }
            _ => false,
        };
        let mut listed = (*self.listed()).clone();
        listed.retain(|name, _| is_same(name));
        listed
    }
}

/// Returns how many switches are new or other than before; one that was taken back is a setting as well.
fn changed_settings(before: &Standing, after: &Standing) -> usize {
    if before.settings == after.settings {
        return 0;
    }
    let is_switch = |setting: &&Setting| setting.name == SWITCH;
    after.settings.iter().filter(is_switch).filter(|setting| !before.settings.contains(setting)).count()
}
