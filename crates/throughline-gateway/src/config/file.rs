//! The configuration as written: the TOML file, value by value, before anything is made of it.
//!
//! Everything is optional here, and nothing is checked beyond its form. An unknown key is an error that names
//! the line and the nearest known key. No error repeats a value that may be a secret.

use super::error::{ConfigError, Source, Sources};
use super::keys;
use super::profiles::ProfileSection;
use super::tools::{Approve, Confine, Prices};
use super::values::{
    Budget, Choice, DialectName, HandoverMode, HandoverSummary, Models, OnStoreFailure, Policy, Ratio,
    ReasoningPolicy, TextEmbed, TimeLimit, ToolKind,
};
use crate::secret::SecretRef;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    /// Where clients connect.
    pub listen: Option<String>,
    /// The backend for requests whose model name chooses none.
    pub active: Option<String>,
    /// Where history is kept.
    pub store: StoreSection,
    /// Who may connect.
    pub auth: AuthSection,
    /// How much is accepted.
    pub limits: LimitsSection,
    /// The backends.
    pub backends: Vec<BackendSection>,
    /// What backends accept, where none of the built-in profiles says it.
    pub profiles: Vec<ProfileSection>,
    /// How tool history is shortened.
    pub history: HistorySection,
    /// How a conversation moves to another backend.
    pub handover: HandoverSection,
    /// Where traces go.
    pub telemetry: TelemetrySection,
    /// What the tools of a turn may do.
    pub tools: ToolsSection,
    /// Servers that bring further tools.
    pub mcp: Vec<McpSection>,
    /// Who composes answers.
    pub compose: ComposeSection,
    /// What is not kept.
    pub privacy: PrivacySection,
}

/// `[store]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSection {
    /// Which database; may hold a password.
    pub url: Option<SecretRef>,
    /// What happens when it cannot be written.
    pub on_failure: Option<OnStoreFailure>,
}

/// `[auth]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthSection {
    /// The keys that clients may present.
    pub keys: Option<Vec<SecretRef>>,
}

/// `[limits]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// The largest body of a request, unpacked.
    pub body_bytes: Option<NonZeroUsize>,
    /// The largest head of a request.
    pub header_bytes: Option<NonZeroUsize>,
    /// The most requests at a time.
    pub concurrent_requests: Option<NonZeroU32>,
    /// How long a request may take to arrive whole.
    pub request_timeout: Option<TimeLimit>,
    /// The memory in which the beginnings of requests are known again; 0 for none.
    pub known_bytes: Option<usize>,
    /// The memory that all requests under way may take together.
    pub memory_bytes: Option<NonZeroUsize>,
    /// The most connections at a time.
    pub connections: Option<NonZeroU32>,
    /// How long the head of a request may take to arrive.
    pub header_timeout: Option<TimeLimit>,
    /// How long a connection may be open without a request.
    pub idle_timeout: Option<TimeLimit>,
    /// How long a client may take nothing of what is written to it.
    pub write_timeout: Option<TimeLimit>,
    /// How much of an answer may be held at once.
    pub answer_bytes: Option<NonZeroUsize>,
}

/// `[[backends]]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackendSection {
    /// Its name.
    pub name: Option<String>,
    /// What it speaks.
    pub dialect: Option<DialectName>,
    /// Where it is, up to and including the version.
    pub base_url: Option<String>,
    /// Its credentials.
    pub api_key: Option<SecretRef>,
    /// The model for names that it does not know.
    pub default_model: Option<String>,
    /// What clients ask for, and what is sent.
    pub models: Option<Models>,
    /// How many tokens fit.
    pub context_window: Option<NonZeroU64>,
    /// Whether it is shown tool history as such.
    pub native_tool_history: Option<Choice>,
    /// Whether the state it keeps is used.
    pub server_state: Option<Choice>,
    /// Whether it does itself what clients ask to have done with their history.
    pub context_management: Option<Choice>,
    /// What becomes of reasoning.
    pub reasoning: Option<ReasoningPolicy>,
    /// Who is tried when it fails.
    pub fallback: Option<Vec<String>>,
    /// What it accepts, by name.
    pub profile: Option<String>,
    /// The same, by its older name.
    pub rules: Option<String>,
    /// Headers that are sent along.
    pub headers: BTreeMap<String, SecretRef>,
    /// How long it may take.
    pub timeouts: TimeoutsSection,
    /// Whether HTTP/2 is spoken.
    pub http2: Option<Choice>,
    /// What a million tokens cost.
    pub prices: Option<Prices>,
    /// Whether what it is sent and answers is kept.
    pub store: Option<bool>,
    /// What differs from `[history]`.
    pub history: HistorySection,
}

/// `timeouts` of a backend
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsSection {
    /// Until it is connected.
    pub connect: Option<TimeLimit>,
    /// Until the first byte, and between any two.
    pub idle: Option<TimeLimit>,
    /// Between any two events that say something.
    pub progress: Option<TimeLimit>,
}

/// `[history]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistorySection {
    /// How many of the latest calls stay whole.
    pub recent_calls_to_keep: Option<u32>,
    /// Above how many tokens tool history is shortened.
    pub truncation_threshold: Option<u64>,
    /// How many tokens the whole prompt may have.
    pub budget: Option<Budget>,
    /// Whether the model may ask for what was shortened.
    pub recall: Option<bool>,
    /// Which policy decides.
    pub policy: Option<Policy>,
    /// How results are written where tool history is sent as text.
    pub text_embed: Option<TextEmbed>,
    /// What each tool does.
    pub rules: Option<Vec<ToolRule>>,
}

/// `[[history.rules]]`
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// The names that agents have for the tool.
    pub tools: Vec<String>,
    /// What it does.
    pub kind: ToolKind,
    /// The argument by which two calls are about the same thing.
    pub key: Option<String>,
}

/// `[handover]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HandoverSection {
    /// How history is handed over.
    pub mode: Option<HandoverMode>,
    /// Who writes the summary of a brief.
    pub summary: Option<HandoverSummary>,
    /// The backend that writes it.
    pub summary_backend: Option<String>,
    /// Whether a brief tells what tools said.
    pub tool_context: Option<bool>,
    /// How long one result in a brief may be.
    pub max_result_chars: Option<NonZeroUsize>,
    /// How long all of them may be together.
    pub max_tool_context_chars: Option<NonZeroUsize>,
}

/// `[telemetry]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetrySection {
    /// The collector.
    pub otlp_endpoint: Option<String>,
    /// Headers that it is sent.
    pub otlp_headers: BTreeMap<String, SecretRef>,
    /// What the gateway is called in traces.
    pub service_name: Option<String>,
    /// Which share of the traces is kept.
    pub sampling_ratio: Option<Ratio>,
}

/// `[tools]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsSection {
    /// The most calls that one turn runs.
    pub max_calls: Option<NonZeroU32>,
    /// Which actions run without asking.
    pub approve: Option<Approve>,
    /// How long a command may take that names no time limit.
    pub command_timeout: Option<TimeLimit>,
    /// What commands may read besides the system and the working directory.
    pub readable: Option<Vec<PathBuf>>,
    /// What commands may write besides the working directory.
    pub writable: Option<Vec<PathBuf>>,
    /// Whether commands may use the network.
    pub network: Option<bool>,
    /// What is done where commands cannot be confined.
    pub confinement: Option<Confine>,
    /// Names of further variables that commands are given.
    pub pass: Option<Vec<String>>,
}

/// `[[mcp]]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpSection {
    /// Its name.
    pub name: Option<String>,
    /// The program, if it is reached by its standard input and output.
    pub command: Option<PathBuf>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Its variables.
    pub env: BTreeMap<String, SecretRef>,
    /// The directory it runs in.
    pub cwd: Option<PathBuf>,
    /// Its address, if it is reached by HTTP.
    pub url: Option<String>,
    /// Headers for every request.
    pub headers: BTreeMap<String, SecretRef>,
    /// How long a call may take.
    pub timeout: Option<TimeLimit>,
}

/// `[compose]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ComposeSection {
    /// Whether answers are composed.
    pub enabled: Option<bool>,
    /// The backend.
    pub backend: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Its temperature.
    pub temperature: Option<Ratio>,
    /// The most tokens it may answer with.
    pub max_tokens: Option<NonZeroU64>,
    /// What it is told.
    pub guidance: Option<String>,
}

/// `[privacy]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrivacySection {
    /// Whether secrets of known forms are taken out.
    pub secrets: Option<bool>,
    /// What else is taken out.
    pub redact: Vec<RedactRule>,
}

/// `[[privacy.redact]]`
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct RedactRule {
    /// What stands in its place.
    pub name: String,
    /// What is taken out: a regular expression.
    pub pattern: String,
}

/// A key in the text, and where it and its value stand.
struct Spot {
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// Reads the text of a file.
pub fn parse(path: &Path, text: &str) -> Result<(FileConfig, Sources), Vec<ConfigError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |offset: usize| Source::File { path: path.to_owned(), line: line(text, offset) };
    let table = DeTable::parse(text).map_err(|error| {
        vec![ConfigError::new(at(error.span().map_or(0, |span| span.start)), "", error.message())]
    })?;
    let mut spots = Vec::new();
    walk(table.get_ref(), "", &mut spots);
    let unknown: Vec<ConfigError> = spots.iter().filter_map(|spot| unknown_key(spot, &at)).collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let config = toml::from_str(text).map_err(|error| vec![form_error(&error, &spots, &at)])?;
    let sources = spots.into_iter().map(|spot| (spot.path, at(spot.key.start))).collect();
    Ok((config, sources))
}

/// Lists the keys below `table`. Below a leaf, and below what is unknown, nothing is ours to list.
fn walk(table: &DeTable<'_>, parent: &str, spots: &mut Vec<Spot>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if parent.is_empty() { name.to_string() } else { format!("{parent}.{name}") };
        spots.push(Spot { path: path.clone(), key: key.span(), value: value.span() });
        let pattern = keys::pattern(&path);
        if keys::is_known(&pattern) && !keys::is_leaf(&pattern) {
            walk_value(value, &path, spots);
        }
    }
}

fn walk_value(value: &Spanned<DeValue<'_>>, path: &str, spots: &mut Vec<Spot>) {
    match value.get_ref() {
        DeValue::Table(table) => walk(table, path, spots),
        DeValue::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                let path = format!("{path}[{index}]");
                spots.push(Spot { path: path.clone(), key: element.span(), value: element.span() });
                walk_value(element, &path, spots);
            }
        }
        _ => {}
    }
}

fn unknown_key(spot: &Spot, at: &impl Fn(usize) -> Source) -> Option<ConfigError> {
    let pattern = keys::pattern(&spot.path);
    if keys::is_known(&pattern) {
        return None;
    }
    let (parent, name) = pattern.rsplit_once('.').unwrap_or(("", &pattern));
    let names = keys::names_below(parent);
    let hint = match keys::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", names.join(", ")),
    };
    Some(ConfigError::new(at(spot.key.start), &spot.path, "unknown key").with_hint(hint))
}

/// Makes an error of form into one that names the key, and that repeats no secret.
fn form_error(error: &toml::de::Error, spots: &[Spot], at: &impl Fn(usize) -> Source) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start);
    let around = spots.iter().filter(|spot| spot.value.contains(&offset) || spot.key.contains(&offset));
    let path = around.max_by_key(|spot| spot.path.len()).map_or("", |spot| &spot.path);
    let message = match error.message().split_once(", expected ") {
        Some((_, expected)) if keys::is_secret(&keys::pattern(path)) => format!("expected {expected}"),
        _ => error.message().to_owned(),
    };
    ConfigError::new(at(offset), path, message)
}

fn line(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}
