//! The backends, from what is written to what is meant.

use super::address::{BaseUrl, Endpoint};
use super::file::{BackendSection, HistorySection, TimeoutsSection};
use super::profiles;
use super::providers::{self, Provider};
use super::resolve::{Backend, Credential, History, ModelRule, Resolver, Timeouts, list};
use super::source::listed;
use super::tools::Prices;
use super::values::{Choice, Models, TimeLimit};
use crate::secret::{Secret, SecretRef};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use throughline_core::{Dialect, Rules, Text};
use throughline_models::Model;

const CONNECT: Duration = Duration::from_secs(10);
/// Models that reason may say nothing for minutes.
const IDLE: Duration = Duration::from_secs(300);
/// Some providers send pings for as long as a model thinks.
const PROGRESS: Duration = Duration::from_secs(20 * 60);

/// Headers that the connection itself decides about.
const RESERVED_HEADERS: [&str; 7] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te"];

/// Where a backend stands in the file, and how its values are shown.
struct At<'a, 'r> {
    resolver: &'a mut Resolver<'r>,
    path: String,
    shown: String,
    /// The profiles of the user's own.
    profiles: &'a [Rules],
}

/// Checks all backends. A problem with one does not hide those with another.
pub(super) fn resolve_all(
    resolver: &mut Resolver<'_>,
    sections: Vec<BackendSection>,
    names: &[String],
    (history, profiles): (&History, &[Rules]),
) -> Vec<Arc<Backend>> {
    let mut backends: Vec<Arc<Backend>> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (index, section) in sections.into_iter().enumerate() {
        let path = format!("backends[{index}]");
        let Some(name) = section.name.clone() else {
            resolver.problem(&format!("{path}.name"), "a backend needs a name");
            continue;
        };
        let shown = format!("backends.{name}");
        let mut at = At { resolver, path, shown, profiles };
        at.check_name(&name, &seen);
        backends.extend(at.backend(&name, section, names, history).map(Arc::new));
        seen.push(name);
    }
    backends
}

/// Returns the window as it is shown: what is written, else what is known of the default model.
fn shown_window(written: Option<u64>, known: Option<Model>) -> String {
    match (written, known) {
        (Some(window), _) => window.to_string(),
        (None, Some(model)) => format!("{} ({})", model.context_window, known_from(&model)),
        (None, None) => "unknown".to_owned(),
    }
}

/// Returns the prices as they are shown, in the same way.
fn shown_prices(written: Option<Prices>, known: Option<Model>) -> String {
    let shown = |input: f64, output: f64| format!("input {input} output {output} per million");
    match (written, known.and_then(|model| Some((model, model.prices?)))) {
        (Some(prices), _) => shown(prices.input, prices.output),
        (None, Some((model, prices))) => {
            format!("{} ({})", shown(prices.base.input, prices.base.output), known_from(&model))
        }
        (None, None) => "unknown".to_owned(),
    }
}

fn known_from(model: &Model) -> String {
    format!("{}, catalogue of {}", model.name, throughline_models::date())
}

/// Where `context_management` was invented; `auto` takes nobody else to know it.
const EDIT_CONTEXT: [&str; 2] = ["https://api.anthropic.com/", "https://api.openai.com/"];

impl Backend {
    /// Says whether it does itself what clients of its dialect ask to have done with their history.
    #[must_use]
    pub fn edits_context(&self) -> bool {
        match self.context_management {
            Choice::Always => true,
            Choice::Never => false,
            Choice::Auto => self
                .endpoint
                .url()
                .is_some_and(|url| EDIT_CONTEXT.iter().any(|provider| url.as_str().starts_with(provider))),
        }
    }
}

impl At<'_, '_> {
    fn backend(
        &mut self,
        name: &str,
        section: BackendSection,
        names: &[String],
        history: &History,
    ) -> Option<Backend> {
        let absent_before = self.resolver.absent.len();
        // Half of what is known about a provider would be wrong at another address.
        let provider = providers::by_name(name).filter(|_| section.base_url.is_none());
        self.note("name", name);
        let dialect = self.dialect(&section, provider);
        let endpoint = self.endpoint(section.base_url.as_deref(), provider);
        let credential = self.credential(section.api_key, provider, endpoint.as_ref());
        let default_model =
            section.default_model.or_else(|| provider.map(|known| known.default_model.into()));
        self.note("default_model", default_model.as_deref().unwrap_or("(what was asked for)"));
        let models = self.models(section.models, provider);
        let context_window = section.context_window.map(Into::into);
        let known = default_model
            .as_deref()
            .and_then(|model| throughline_models::find(endpoint.as_ref().and_then(providers::at), model));
        self.note("context_window", shown_window(context_window, known));
        let native_tool_history = section.native_tool_history.unwrap_or_default();
        self.note("native_tool_history", native_tool_history.name());
        let server_state = section.server_state.unwrap_or_default();
        self.note("server_state", server_state.name());
        let context_management = section.context_management.unwrap_or_default();
        self.note("context_management", context_management.name());
        let reasoning = section.reasoning.unwrap_or_default();
        self.note("reasoning", reasoning.name());
        let fallback = self.fallback(name, section.fallback.unwrap_or_default(), names);
        let named = self.profile_named(section.profile, section.rules);
        let named = named.or_else(|| provider.map(|known| ("profile", known.rules.to_owned())));
        let named = named.as_ref().map(|(field, name)| (*field, name.as_str()));
        let rules = self.rules(named, dialect, endpoint.as_ref());
        let headers = self.headers(&section.headers);
        let lacks = self.resolver.absent.get(absent_before).map(|absent| Text::from(absent.what.as_str()));
        let timeouts = self.timeouts(&section.timeouts);
        let http2 = section.http2.unwrap_or_default();
        self.note("http2", http2.name());
        self.note("prices", shown_prices(section.prices, known));
        let store = section.store.unwrap_or(true);
        self.note("store", store);
        self.note_history(&section.history);
        Some(Backend {
            name: Text::from(name),
            dialect: dialect?,
            provider: endpoint.as_ref().and_then(providers::at),
            endpoint: endpoint?,
            // A backend that cannot be asked is still one that can be told of.
            credential: credential.or_else(|| lacks.as_ref().map(|_| Credential::None))?,
            lacks,
            default_model: default_model.map(Text::from),
            models,
            context_window,
            native_tool_history,
            server_state,
            context_management,
            reasoning,
            fallback,
            rules: rules?,
            headers,
            timeouts,
            http2,
            store,
            prices: section.prices,
            history: history.overridden_by(section.history),
        })
    }

    fn check_name(&mut self, name: &str, seen: &[String]) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            self.problem("name", format!("`{name}` may hold letters, digits, `-`, `_` and `.` only"));
        }
        if seen.iter().any(|other| other == name) {
            self.problem("name", format!("another backend is called `{name}` already"));
        }
    }

    fn dialect(&mut self, section: &BackendSection, provider: Option<&Provider>) -> Option<Dialect> {
        let dialect = section.dialect.map(|name| name.0).or(provider.map(|known| known.dialect));
        match dialect {
            Some(dialect) => self.note("dialect", dialect),
            None => self.problem("dialect", "missing; it is `responses`, `messages` or `chat`"),
        }
        dialect
    }

    fn endpoint(&mut self, base_url: Option<&str>, provider: Option<&Provider>) -> Option<Endpoint> {
        let Some(text) = base_url.or(provider.map(|known| known.base_url)) else {
            let known: Vec<&str> = providers::PROVIDERS.iter().map(|provider| provider.name).collect();
            let what = format!("missing; it can be left out for a backend called {}", known.join(", "));
            self.problem("base_url", what);
            return None;
        };
        let endpoint = Endpoint::parse(text).map_err(|what| self.problem("base_url", what)).ok()?;
        self.note("base_url", &endpoint);
        if endpoint.url().is_some_and(BaseUrl::is_bare) {
            self.warn("base_url", "has no path; most providers want the version in it, such as /v1");
        }
        Some(endpoint)
    }

    fn credential(
        &mut self,
        api_key: Option<SecretRef>,
        provider: Option<&Provider>,
        endpoint: Option<&Endpoint>,
    ) -> Option<Credential> {
        let url = endpoint.and_then(Endpoint::url);
        let known = provider.map(|known| SecretRef::Variable(known.variables[0].to_owned()));
        let is_silent = api_key.is_none() && known.is_none();
        let reference = api_key.or(known).unwrap_or(SecretRef::None);
        self.note("api_key", &reference);
        if is_silent && url.is_some_and(|url| !url.is_loopback()) {
            self.warn("api_key", "not given, so nothing is sent; write \"none\" if that is meant");
        }
        if matches!(reference, SecretRef::Literal(_)) {
            self.warn("api_key", "the key itself is in the file; \"env:NAME\" or \"file:PATH\" keeps it out");
        }
        if reference != SecretRef::None && url.is_some_and(|url| !url.is_encrypted() && !url.is_loopback()) {
            self.warn("base_url", "the key is sent over an unencrypted connection");
        }
        match reference {
            SecretRef::Passthrough => Some(Credential::Passthrough),
            SecretRef::None => Some(Credential::None),
            _ => {
                let key = self.open("api_key", &reference)?;
                self.resolver.credentials.push(key.clone());
                Some(Credential::Key(key))
            }
        }
    }

    fn models(&mut self, models: Option<Models>, provider: Option<&Provider>) -> Vec<ModelRule> {
        let models = models.or(provider.map(listed)).unwrap_or_default().0;
        self.note("models", list(models.iter().map(|(asked, sent)| shown_model(asked, sent))));
        let mut rules: Vec<ModelRule> = Vec::new();
        for (asked, sent) in models {
            if asked.is_empty() || sent.is_empty() {
                self.problem("models", "a model name is empty");
            } else if sent.contains('*') && sent != "*" {
                self.problem("models", format!("`{sent}`: only a whole \"*\" stands for what was asked for"));
            }
            let sent = (sent != "*").then(|| Text::from(sent));
            rules.push(ModelRule { pattern: Text::from(asked), sent });
        }
        // Tables have no order. A whole name comes first, then what maps (so that `claude-*`, sent as it is,
        // does not take in what `*opus*` maps), then what says the most.
        rules.sort_by_key(|rule| {
            let (is_whole, length) = rule.specificity();
            std::cmp::Reverse((is_whole, rule.sent.is_some(), length))
        });
        rules
    }

    fn fallback(&mut self, name: &str, fallback: Vec<String>, names: &[String]) -> Vec<Text> {
        self.note("fallback", list(fallback.iter().cloned()));
        let mut known: Vec<Text> = Vec::new();
        for other in fallback {
            let key = format!("{}.fallback", self.path);
            if other == name {
                self.problem("fallback", format!("`{name}` cannot stand in for itself"));
            } else if let Some(other) = self.resolver.known_backend(&key, &other, names)
                && !known.contains(&other)
            {
                known.push(other);
            }
        }
        known
    }

    /// Returns the profile that is written for the backend, and under which of its two names.
    fn profile_named(
        &mut self,
        profile: Option<String>,
        rules: Option<String>,
    ) -> Option<(&'static str, String)> {
        if profile.is_some() && rules.is_some() {
            self.problem("rules", "is the older name of `profile`; give one of them");
        }
        profile.map(|name| ("profile", name)).or(rules.map(|name| ("rules", name)))
    }

    /// Returns what the backend accepts: as it is written, as it is known for where it is, or as the dialect's own
    /// provider does.
    fn rules(
        &mut self,
        named: Option<(&str, &str)>,
        dialect: Option<Dialect>,
        endpoint: Option<&Endpoint>,
    ) -> Option<Rules> {
        let dialect = dialect?;
        let url = endpoint.and_then(Endpoint::url);
        let rules = match named {
            None => {
                let there = url.and_then(|url| Rules::of_place(url.host(), url.port(), dialect));
                Some(there.unwrap_or_else(|| Rules::of_dialect(dialect)))
            }
            Some((_, name)) => profiles::find(self.profiles, name).filter(|rules| rules.dialect == dialect),
        };
        if let Some(rules) = &rules {
            self.note("profile", &*rules.name);
        } else {
            let all = Rules::built_in().into_iter().chain(self.profiles.iter().cloned());
            let fitting = all.filter(|rules| rules.dialect == dialect);
            let names: Vec<String> = fitting.map(|rules| rules.name.to_string()).collect();
            let (field, name) = named.unwrap_or_default();
            self.problem(field, format!("no profile `{name}` for {dialect}; there are {}", names.join(", ")));
        }
        rules
    }

    fn headers(&mut self, headers: &BTreeMap<String, SecretRef>) -> Vec<(Text, Secret)> {
        let shown = headers.iter().map(|(name, value)| format!("{name}: {value}"));
        self.note("headers", list(shown));
        let mut checked = Vec::new();
        for (name, value) in headers {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let name = name.to_ascii_lowercase();
            if name.is_empty() || !name.chars().all(is_name) {
                self.problem("headers", format!("`{name}` is not the name of a header"));
            } else if RESERVED_HEADERS.contains(&name.as_str()) {
                self.problem("headers", format!("`{name}` is set by the connection itself"));
            } else if let Some(opened) = self.open("headers", value) {
                self.resolver.note_credential(&name, value, &opened);
                checked.push((Text::from(name), opened));
            }
        }
        checked
    }

    fn timeouts(&mut self, section: &TimeoutsSection) -> Timeouts {
        let connect = section.connect.unwrap_or(TimeLimit(CONNECT));
        let idle = section.idle.unwrap_or(TimeLimit(IDLE));
        let progress = section.progress.unwrap_or(TimeLimit(PROGRESS.max(idle.0)));
        self.note("timeouts.connect", connect);
        self.note("timeouts.idle", idle);
        self.note("timeouts.progress", progress);
        Timeouts { connect: connect.0, idle: idle.0, progress: progress.0 }
    }

    /// Shows what differs from `[history]`; the rest is shown there.
    fn note_history(&mut self, section: &HistorySection) {
        let values = [
            ("recent_calls_to_keep", section.recent_calls_to_keep.map(|value| value.to_string())),
            ("truncation_threshold", section.truncation_threshold.map(|value| value.to_string())),
            ("budget", section.budget.map(|value| value.to_string())),
            ("recall", section.recall.map(|value| value.to_string())),
            ("policy", section.policy.map(|value| value.name().to_owned())),
            ("text_embed", section.text_embed.map(|value| value.name().to_owned())),
        ];
        for (key, value) in values {
            if let Some(value) = value {
                self.note(&format!("history.{key}"), value);
            }
        }
        if let Some(rules) = &section.rules {
            self.note("history.rules", list(rules.iter().map(|rule| rule.tools.join("|"))));
        }
    }

    fn note(&mut self, key: &str, value: impl ToString) {
        let (shown, path) = (format!("{}.{key}", self.shown), format!("{}.{key}", self.path));
        self.resolver.note_as(&shown, &path, value);
    }

    fn problem(&mut self, key: &str, what: impl Into<String>) {
        self.resolver.problem(&format!("{}.{key}", self.path), what);
    }

    fn warn(&mut self, key: &str, what: &str) {
        self.resolver.warn(&format!("{}.{key}", self.path), what);
    }

    fn open(&mut self, key: &str, reference: &SecretRef) -> Option<Secret> {
        self.resolver.open(&format!("{}.{key}", self.path), reference)
    }
}

fn shown_model(asked: &str, sent: &str) -> String {
    if sent == "*" { asked.to_owned() } else { format!("{asked} -> {sent}") }
}
