//! The configuration as meant: every value there, checked, and without half-states.
//!
//! All problems are found before any is reported. Each value is noted, with the place it came from, as
//! `config show` prints it; secrets are noted by reference only.

use super::address::{Endpoint, parse_listen};
use super::backend;
use super::compose::Compose;
use super::error::{ConfigError, ConfigErrors, Source, Sources, Warning};
use super::file::{
    BackendSection, FileConfig, HandoverSection, HistorySection, LimitsSection, StoreSection, ToolRule,
};
use super::keys;
use super::profiles;
use super::providers::PROVIDERS;
use super::source::{BackendsFrom, Surroundings, Written};
use super::telemetry::Tracing;
use super::tools::{Mcp, Prices, Tools};
use super::trust::IgnoredFile;
use super::values::{
    Budget, Choice, HandoverMode, HandoverSummary, OnStoreFailure, Policy, ReasoningPolicy, TextEmbed,
    TimeLimit,
};
use crate::echo::EchoFilter;
use crate::privacy::Privacy;
use crate::secret::{AccessKeys, Secret, SecretRef};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::{Dialect, Rules, Text};

/// The configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The folder that history is kept in.
    pub data: PathBuf,
    /// The file that was read, to be watched.
    pub file: Option<PathBuf>,
    /// A file in the working directory that was ignored, since the user does not trust it.
    pub ignored: Option<IgnoredFile>,
    /// Where history is kept.
    pub store: StoreConfig,
    /// The keys that clients may present. Without any, only loopback may connect.
    pub access: AccessKeys,
    /// Where those come from that are not written out in the configuration.
    pub access_from: Vec<SecretRef>,
    /// How much is accepted.
    pub limits: Limits,
    /// The backends; at least one, each name once.
    pub backends: Vec<Arc<Backend>>,
    /// Who said which backends there are.
    pub backends_from: BackendsFrom,
    /// The name of the backend for requests whose model name chooses none. One of `backends`.
    pub active: Text,
    /// How a conversation moves to another backend.
    pub handover: Handover,
    /// Where traces go, if they go anywhere.
    pub tracing: Option<Tracing>,
    /// What the tools of a turn may do.
    pub tools: Tools,
    /// Servers that bring further tools.
    pub mcp: Vec<Mcp>,
    /// Who composes answers, if somebody does.
    pub compose: Option<Compose>,
    /// What is taken out of everything before it is kept.
    pub privacy: Arc<Privacy>,
    /// The credentials in it, to be taken out of what backends say.
    pub echoes: EchoFilter,
    /// What its writer should know.
    pub warnings: Vec<Warning>,
    /// Secrets that it refers to and that are not there; none unless it was loaded to look at.
    pub absent: Vec<ConfigError>,
    /// Every value and where it came from.
    pub effective: Vec<Effective>,
}

/// Where history is kept, and what happens when it cannot be.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Which database.
    pub location: StoreLocation,
    /// What happens when it cannot be written.
    pub on_failure: OnStoreFailure,
}

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server; the URL may hold a password.
    Postgres(Secret),
}

impl StoreLocation {
    /// Reads the URL of a history; the path of a file is relative to `folder`.
    ///
    /// # Errors
    /// When it is none, and why; no error shows a password.
    pub fn parse(url: Secret, folder: &Path) -> Result<Self, String> {
        match url.expose().split_once(':') {
            Some(("sqlite", file)) if !file.is_empty() => Ok(Self::Sqlite(folder.join(file))),
            Some(("postgres" | "postgresql", _)) => {
                throughline_store::Postgres::check_url(url.expose()).map_err(|error| error.to_string())?;
                Ok(Self::Postgres(url))
            }
            _ => Err("expected `sqlite:FILE` or `postgres://…`".to_owned()),
        }
    }
}

/// How much is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest body of a request, unpacked.
    pub body_bytes: usize,
    /// The largest head of a request.
    pub header_bytes: usize,
    /// The most requests at a time.
    pub concurrent_requests: u32,
    /// How long a request may take to arrive whole.
    pub request_timeout: Duration,
    /// How much memory may be used to know the beginnings of requests again.
    pub known_bytes: usize,
    /// How much memory all requests under way may take together.
    pub memory_bytes: usize,
    /// The most connections at a time.
    pub connections: u32,
    /// How long the head of a request may take to arrive.
    pub header_timeout: Duration,
    /// How long a connection may be open without a request.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is written to it.
    pub write_timeout: Duration,
    /// How much of an answer may be held at once.
    pub answer_bytes: usize,
}

/// A configured place that answers prompts.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Its name.
    pub name: Text,
    /// What it speaks.
    pub dialect: Dialect,
    /// Where it is.
    pub endpoint: Endpoint,
    /// The provider whose own address that is.
    pub provider: Option<&'static str>,
    /// What it is sent as credentials.
    pub credential: Credential,
    /// What is missing of its secrets, so that it cannot be asked; nothing unless the configuration was loaded to look
    /// at.
    pub lacks: Option<Text>,
    /// The model for names that it does not know.
    pub default_model: Option<Text>,
    /// What clients ask for and what is sent; the first that fits counts.
    pub models: Vec<ModelRule>,
    /// How many tokens fit.
    pub context_window: Option<u64>,
    /// Whether it is shown tool history as such.
    pub native_tool_history: Choice,
    /// Whether the state it keeps is used.
    pub server_state: Choice,
    /// Whether it does itself what clients ask to have done with their history.
    pub context_management: Choice,
    /// What becomes of reasoning.
    pub reasoning: ReasoningPolicy,
    /// Who is tried when it fails, in order. Each is configured, and none is this one.
    pub fallback: Vec<Text>,
    /// What it accepts.
    pub rules: Rules,
    /// Headers that are sent along; names in lower case.
    pub headers: Vec<(Text, Secret)>,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// Whether HTTP/2 is spoken; `auto` lets TLS settle it.
    pub http2: Choice,
    /// Whether what it is sent and answers is kept.
    pub store: bool,
    /// How tool history is shortened for it.
    pub history: History,
    /// What its tokens cost, if that is known.
    pub prices: Option<Prices>,
}

/// What a backend is sent as credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// This key.
    Key(Secret),
    /// Whatever the client presented.
    Passthrough,
    /// Nothing.
    None,
}

/// One line of a backend's models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRule {
    /// What clients ask for; `*` stands for any characters.
    pub pattern: Text,
    /// What is sent; `None` sends what was asked for.
    pub sent: Option<Text>,
}

/// How long a backend may take. There is no limit on an answer that goes on and on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until it is connected.
    pub connect: Duration,
    /// Until the first byte, and between any two.
    pub idle: Duration,
    /// Between any two events that say something, or until the end of an answer that comes whole.
    pub progress: Duration,
}

/// How tool history is shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// How many of the latest calls stay whole; if it is not set, the planner weighs them against what is older.
    pub recent_calls_to_keep: Option<u32>,
    /// Above how many tokens tool history is shortened; if it is not set, only the budget counts.
    pub truncation_threshold: Option<u64>,
    /// How many tokens the whole prompt may have.
    pub budget: Budget,
    /// Whether the model may ask for what was shortened.
    pub recall: bool,
    /// Which policy decides.
    pub policy: Policy,
    /// How results are written where tool history is sent as text.
    pub text_embed: TextEmbed,
    /// What each tool does, where that is not known by its name.
    pub rules: Vec<ToolRule>,
}

/// How a conversation moves to another backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// How history is handed over.
    pub mode: HandoverMode,
    /// Who writes the summary of a brief.
    pub summary: HandoverSummary,
    /// The backend that writes it; without one, the one that takes over.
    pub summary_backend: Option<Text>,
    /// Whether a brief tells what tools said.
    pub tool_context: bool,
    /// How long one result in a brief may be; as long as there is room, if nothing is said.
    pub max_result_chars: Option<usize>,
    /// How long all of them may be together; as long as the window takes, if nothing is said.
    pub max_tool_context_chars: Option<usize>,
}

/// A value in effect, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Which one.
    pub key: String,
    /// Its value; a secret is shown by reference.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}

/// What is collected while values are checked.
pub(super) struct Resolver<'a> {
    surroundings: &'a dyn Surroundings,
    sources: &'a Sources,
    folder: PathBuf,
    problems: Vec<ConfigError>,
    pub absent: Vec<ConfigError>,
    warnings: Vec<Warning>,
    effective: Vec<Effective>,
    /// The credentials that were opened.
    pub credentials: Vec<Secret>,
}

/// Whether the secrets that are referred to must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// They must: backends will be asked.
    Needed,
    /// They need not.
    Spared,
}

/// Makes what is written into what is meant.
pub fn resolve(
    written: Written,
    surroundings: &dyn Surroundings,
    secrets: Secrets,
) -> Result<Config, ConfigErrors> {
    let Written { file, sources, path, ignored, data, backends_from, warnings } = written;
    let folder = path.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    let mut resolver = Resolver {
        surroundings,
        sources: &sources,
        folder,
        problems: Vec::new(),
        absent: Vec::new(),
        warnings,
        effective: Vec::new(),
        credentials: Vec::new(),
    };
    let config = resolver.config(file, data, path, backends_from);
    if secrets == Secrets::Needed || config.is_none() {
        resolver.problems.append(&mut resolver.absent);
    }
    match config {
        Some(config) if resolver.problems.is_empty() => Ok(Config {
            warnings: resolver.warnings,
            effective: resolver.effective,
            absent: resolver.absent,
            ignored,
            ..config
        }),
        _ => Err(ConfigErrors(resolver.problems)),
    }
}

/// Returns the names of the variables in which keys of backends are, those of known providers included.
fn variables_of(backends: &[BackendSection]) -> Vec<String> {
    let variable = |secret: &SecretRef| match secret {
        SecretRef::Variable(name) => Some(name.clone()),
        _ => None,
    };
    let written = backends.iter().flat_map(|backend| backend.api_key.iter().chain(backend.headers.values()));
    let known =
        PROVIDERS.iter().flat_map(|provider| provider.variables.iter().map(|name| (*name).to_owned()));
    let mut names: Vec<String> = written.filter_map(variable).chain(known).collect();
    names.sort();
    names.dedup();
    names
}

impl Config {
    /// Returns the backend of that name.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<&Arc<Backend>> {
        self.backends.iter().find(|backend| backend.name == name)
    }
}

impl ModelRule {
    /// Returns how much the pattern says: a whole name more than a pattern, a longer one more than a shorter.
    #[must_use]
    pub fn specificity(&self) -> (bool, usize) {
        (!self.pattern.contains('*'), self.pattern.chars().filter(|c| *c != '*').count())
    }
}

impl Resolver<'_> {
    fn config(
        &mut self,
        file: FileConfig,
        data: PathBuf,
        path: Option<PathBuf>,
        backends_from: BackendsFrom,
    ) -> Option<Config> {
        self.note("data", data.display());
        let listen = self.listen(file.listen);
        let names: Vec<String> = file.backends.iter().filter_map(|backend| backend.name.clone()).collect();
        let active = self.active(file.active, &names);
        let store = self.store(file.store, &data);
        let access_from = referred(file.auth.keys.as_deref().unwrap_or_default());
        let access = self.access(file.auth.keys, listen);
        let limits = self.limits(&file.limits);
        let history = self.history(file.history);
        let handover = self.handover(file.handover, &names);
        let withheld = variables_of(&file.backends);
        let profiles = profiles::resolve_all(self, &file.profiles);
        let backends = backend::resolve_all(self, file.backends, &names, (&history, &profiles));
        let tools = Tools { withheld, ..self.tools(file.tools) };
        let mcp = self.mcp(file.mcp);
        let compose = self.compose(file.compose, &names);
        let tracing = self.tracing(file.telemetry);
        let privacy = self.privacy(&file.privacy);
        Some(Config {
            listen: listen?,
            data,
            file: path,
            ignored: None,
            store: store?,
            access,
            access_from,
            limits,
            backends,
            backends_from,
            active: active?,
            handover,
            tracing,
            tools,
            mcp,
            compose,
            privacy,
            echoes: EchoFilter::new(&self.credentials),
            warnings: Vec::new(),
            absent: Vec::new(),
            effective: Vec::new(),
        })
    }

    fn listen(&mut self, listen: Option<String>) -> Option<SocketAddr> {
        let text = listen.unwrap_or_else(|| "127.0.0.1:4141".to_owned());
        self.note("listen", &text);
        parse_listen(&text).map_err(|what| self.problem("listen", what)).ok()
    }

    fn active(&mut self, active: Option<String>, names: &[String]) -> Option<Text> {
        let first = names.first().cloned();
        let active = active.or(first)?;
        self.note("active", &active);
        self.known_backend("active", &active, names)
    }

    fn store(&mut self, store: StoreSection, data: &Path) -> Option<StoreConfig> {
        let url = store.url.unwrap_or_else(|| SecretRef::parse("sqlite:history.db"));
        let opened = self.open("store.url", &url)?;
        let is_reference = matches!(url, SecretRef::Variable(_) | SecretRef::File(_));
        let shown = if is_reference { url.to_string() } else { without_password(opened.expose()) };
        self.note("store.url", shown);
        let on_failure = store.on_failure.unwrap_or_default();
        self.note("store.on_failure", on_failure.name());
        let location = StoreLocation::parse(opened, data);
        let location = location.map_err(|what| self.problem("store.url", what)).ok()?;
        Some(StoreConfig { location, on_failure })
    }

    fn access(&mut self, keys: Option<Vec<SecretRef>>, listen: Option<SocketAddr>) -> AccessKeys {
        let keys = keys.unwrap_or_default();
        self.note("auth.keys", list(keys.iter().map(ToString::to_string)));
        let mut secrets = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let path = format!("auth.keys[{index}]");
            if matches!(key, SecretRef::Literal(_)) {
                self.warn(
                    &path,
                    "the key itself is written here; \"env:NAME\" or \"file:PATH\" keeps it out",
                );
            }
            match key {
                SecretRef::Passthrough | SecretRef::None => {
                    self.problem(&path, format!("`{key}` is not a key that a client could present"));
                }
                _ => secrets.extend(self.open(&path, key)),
            }
        }
        if keys.is_empty() && listen.is_some_and(|address| !address.ip().is_loopback()) {
            let what = "anybody who reaches this address could use your credentials";
            self.problem("listen", what).hint = Some("set `auth.keys`, or listen on 127.0.0.1".to_owned());
        }
        self.credentials.extend(secrets.iter().cloned());
        AccessKeys::new(&secrets)
    }

    fn limits(&mut self, section: &LimitsSection) -> Limits {
        let time =
            |limit: Option<TimeLimit>, seconds| limit.map_or(Duration::from_secs(seconds), |limit| limit.0);
        let limits = Limits {
            body_bytes: section.body_bytes.map_or(32 << 20, Into::into),
            header_bytes: section.header_bytes.map_or(64 << 10, Into::into),
            concurrent_requests: section.concurrent_requests.map_or(1024, Into::into),
            request_timeout: time(section.request_timeout, 30),
            known_bytes: section.known_bytes.unwrap_or(32 << 20),
            memory_bytes: section.memory_bytes.map_or(224 << 20, Into::into),
            connections: section.connections.map_or(1024, Into::into),
            header_timeout: time(section.header_timeout, 15),
            idle_timeout: time(section.idle_timeout, 120),
            write_timeout: time(section.write_timeout, 60),
            answer_bytes: section.answer_bytes.map_or(8 << 20, Into::into),
        };
        self.note("limits.memory_bytes", limits.memory_bytes);
        self.note("limits.connections", limits.connections);
        self.note("limits.header_timeout", TimeLimit(limits.header_timeout));
        self.note("limits.idle_timeout", TimeLimit(limits.idle_timeout));
        self.note("limits.write_timeout", TimeLimit(limits.write_timeout));
        self.note("limits.answer_bytes", limits.answer_bytes);
        self.note("limits.known_bytes", limits.known_bytes);
        self.note("limits.body_bytes", limits.body_bytes);
        self.note("limits.header_bytes", limits.header_bytes);
        self.note("limits.concurrent_requests", limits.concurrent_requests);
        self.note("limits.request_timeout", TimeLimit(limits.request_timeout));
        limits
    }

    fn history(&mut self, section: HistorySection) -> History {
        let defaults = History {
            recent_calls_to_keep: None,
            truncation_threshold: None,
            budget: Budget::Auto,
            recall: true,
            policy: Policy::Default,
            text_embed: TextEmbed::default(),
            rules: Vec::new(),
        };
        let history = defaults.overridden_by(section);
        self.note("history.recent_calls_to_keep", or_unset(history.recent_calls_to_keep));
        self.note("history.truncation_threshold", or_unset(history.truncation_threshold));
        self.note("history.budget", history.budget);
        self.note("history.recall", history.recall);
        self.note("history.policy", history.policy.name());
        self.note("history.text_embed", history.text_embed.name());
        self.note("history.rules", list(history.rules.iter().map(|rule| rule.tools.join("|"))));
        history
    }

    fn handover(&mut self, section: HandoverSection, names: &[String]) -> Handover {
        let summary_backend = section.summary_backend.and_then(|name| {
            self.note("handover.summary_backend", &name);
            self.known_backend("handover.summary_backend", &name, names)
        });
        let handover = Handover {
            mode: section.mode.unwrap_or_default(),
            summary: section.summary.unwrap_or_default(),
            summary_backend,
            tool_context: section.tool_context.unwrap_or(true),
            max_result_chars: section.max_result_chars.map(Into::into),
            max_tool_context_chars: section.max_tool_context_chars.map(Into::into),
        };
        self.note("handover.mode", handover.mode.name());
        self.note("handover.summary", handover.summary.name());
        self.note("handover.tool_context", handover.tool_context);
        let chars =
            |limit: Option<usize>| limit.map_or_else(|| FROM_WINDOW.to_owned(), |chars| chars.to_string());
        self.note("handover.max_result_chars", chars(handover.max_result_chars));
        self.note("handover.max_tool_context_chars", chars(handover.max_tool_context_chars));
        handover
    }

    pub(super) fn known_backend(&mut self, key: &str, name: &str, names: &[String]) -> Option<Text> {
        if names.iter().any(|known| known == name) {
            return Some(Text::from(name));
        }
        let hint = match keys::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", names.join(", ")),
        };
        self.problem(key, format!("no backend is called `{name}`")).hint = Some(hint);
        None
    }

    /// Notes the value of a header as a credential, unless it is written out under a name that speaks of none.
    pub(super) fn note_credential(&mut self, header: &str, reference: &SecretRef, value: &Secret) {
        let header = header.to_ascii_lowercase();
        let speaks =
            ["auth", "key", "token", "secret", "cookie", "password"].iter().any(|it| header.contains(it));
        if speaks || !matches!(reference, SecretRef::Literal(_)) {
            self.credentials.push(value.clone());
        }
    }

    /// Returns the secret that `reference` refers to; one that is not there is noted.
    pub(super) fn open(&mut self, key: &str, reference: &SecretRef) -> Option<Secret> {
        let text = match reference {
            SecretRef::Variable(name) => {
                self.surroundings.variable(name).ok_or_else(|| format!("the variable {name} is not set"))
            }
            SecretRef::File(path) => {
                let path = self.folder.join(path);
                let read = self.surroundings.read(&path);
                read.map_err(|error| format!("{} cannot be read: {error}", path.display()))
            }
            SecretRef::Literal(secret) => Ok(secret.expose().to_owned()),
            SecretRef::Passthrough | SecretRef::None => {
                self.problem(key, format!("`{reference}` has no meaning here"));
                return None;
            }
        };
        let text = match text {
            Ok(text) => text,
            Err(what) => {
                self.absent.push(ConfigError::new(self.place(key), key, what));
                return None;
            }
        };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || text.chars().any(char::is_control) {
            self.problem(key, format!("{reference} is empty, or holds a line break"));
            return None;
        }
        Some(Secret::new(text))
    }

    pub(super) fn problem(&mut self, key: &str, what: impl Into<String>) -> &mut ConfigError {
        self.problems.push(ConfigError::new(self.place(key), key, what));
        self.problems.last_mut().expect("one was just added")
    }

    pub(super) fn warn(&mut self, key: &str, what: impl Into<String>) {
        self.warnings.push(Warning { source: self.place(key), key: key.to_owned(), what: what.into() });
    }

    pub(super) fn note(&mut self, key: &str, value: impl ToString) {
        self.note_as(key, key, value);
    }

    /// Notes a value under a name that says more than its path.
    #[expect(clippy::needless_pass_by_value, reason = "what is noted was mostly made for it")]
    pub(super) fn note_as(&mut self, shown: &str, path: &str, value: impl ToString) {
        let source = self.sources.get(path).cloned().unwrap_or(Source::Default);
        self.effective.push(Effective { key: shown.to_owned(), value: value.to_string(), source });
    }

    /// Returns where a value stands, or else what it should have stood in.
    fn place(&self, path: &str) -> Source {
        let mut path = path;
        loop {
            match (self.sources.get(path), path.rfind(['.', '['])) {
                (Some(source), _) => return source.clone(),
                (None, Some(end)) => path = &path[..end],
                (None, None) => return Source::Default,
            }
        }
    }
}

/// How a limit of a brief is shown that is not set.
const FROM_WINDOW: &str = "(what the window takes)";

impl History {
    /// Returns these settings with what `section` says about them.
    pub(super) fn overridden_by(&self, section: HistorySection) -> Self {
        Self {
            recent_calls_to_keep: section.recent_calls_to_keep.or(self.recent_calls_to_keep),
            truncation_threshold: section.truncation_threshold.or(self.truncation_threshold),
            budget: section.budget.unwrap_or(self.budget),
            recall: section.recall.unwrap_or(self.recall),
            policy: section.policy.unwrap_or(self.policy),
            text_embed: section.text_embed.unwrap_or(self.text_embed),
            rules: section.rules.unwrap_or_else(|| self.rules.clone()),
        }
    }
}

/// Returns a number as it is shown, also where none is set.
fn or_unset(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "(not set)".to_owned(), |number| number.to_string())
}

/// Returns values as a list is written.
pub(super) fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// Returns the references among keys. A key that is written out is kept nowhere but as its digest.
fn referred(keys: &[SecretRef]) -> Vec<SecretRef> {
    let is_reference = |key: &&SecretRef| matches!(key, SecretRef::Variable(_) | SecretRef::File(_));
    keys.iter().filter(is_reference).cloned().collect()
}

/// Returns a URL without the password in it.
pub(super) fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (_, host))) => format!("{scheme}://(hidden)@{host}"),
        None => url.to_owned(),
    }
}
