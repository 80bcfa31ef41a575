//! The configuration, from files and variables to what is meant, in a world made of maps.

use super::file::parse;
use super::keys::KEYS;
use super::*;
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throughline_core::{Dialect, Rules, SystemRule, Wording};

#[derive(Default)]
struct World {
    variables: BTreeMap<&'static str, &'static str>,
    files: BTreeMap<PathBuf, String>,
    /// Why what is in the working directory is not trusted, if it is not.
    distrust: Option<Distrust>,
}

impl Surroundings for World {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    fn variable_names(&self) -> Vec<String> {
        self.variables.keys().map(|name| (*name).to_owned()).collect()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read_found(&self, path: &Path) -> io::Result<FoundFile> {
        let trust = self.distrust.clone().map_or(Trust::Trusted, Trust::Untrusted);
        let path_there = Path::new("/repository").join(path);
        Ok(FoundFile { path: path_there, text: self.read(path)?, trust, foreign_owner: None })
    }
}

/// A world with a home directory.
fn world() -> World {
    World::default().with("HOME", "/home/user")
}

impl World {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.insert(name, value);
        self
    }

    fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(PathBuf::from(path), text.to_owned());
        self
    }

    fn load(&self) -> Result<Config, ConfigErrors> {
        load(self, &Flags::default())
    }
}

fn errors(text: &str) -> String {
    let world = world().file("throughline.toml", text).with("SET", "value").with("EMPTY", "");
    world.load().expect_err(text).to_string()
}

fn loaded(text: &str) -> Config {
    let world = world().file("throughline.toml", text).with("KEY", "sk-1");
    world.load().unwrap_or_else(|error| panic!("{error}"))
}

const BACKEND: &str = "[[backends]]\nname = \"a\"\ndialect = \"chat\"\nbase_url = \"http://localhost/v1\"\n";

/// The file of the interface document, every key of which has to be accepted.
const WHOLE: &str = r#"
listen = "127.0.0.1:4141"
active = "claude"

[store]
url = "sqlite:history.db"
on_failure = "reject"

[auth]
keys = ["env:KEY"]

[[backends]]
name = "claude"
dialect = "messages"
base_url = "https://api.anthropic.com/v1"
api_key = "env:KEY"
default_model = "claude-sonnet-4-5"
models = { "*opus*" = "claude-opus-4-5" }
context_window = 200000
native_tool_history = "auto"
server_state = "auto"
reasoning = "keep-own"
fallback = ["glm"]

[[backends]]
name = "glm"
dialect = "chat"
base_url = "https://api.z.ai/api/paas/v4"
api_key = "passthrough"
history = { recent_calls_to_keep = 2 }

[history]
recent_calls_to_keep = 8
truncation_threshold = 10000
budget = "auto"
recall = true
policy = "default"

[handover]
mode = "auto"
summary = "digest"
summary_backend = "claude"
max_result_chars = 2000
max_tool_context_chars = 60000

[[history.rules]]
tools = ["Read", "read_file", "view"]
kind = "read"
key = "file_path"
"#;

#[test]
fn every_promised_key_is_accepted() {
    let config = loaded(WHOLE);
    assert_eq!(config.listen.to_string(), "127.0.0.1:4141");
    assert_eq!(config.active, "claude");
    assert_eq!(
        config.store.location,
        StoreLocation::Sqlite(PathBuf::from("/home/user/.local/share/throughline/history.db"))
    );
    assert!(config.access.admit("sk-1"));
    let claude = config.backend("claude").unwrap();
    assert_eq!(claude.credential, Credential::Key(Secret::new("sk-1")));
    assert_eq!((claude.dialect, claude.context_window), (Dialect::Messages, Some(200_000)));
    assert_eq!(claude.history.recent_calls_to_keep, Some(8));
    let glm = config.backend("glm").unwrap();
    assert_eq!(glm.history.recent_calls_to_keep, Some(2));
    assert_eq!(glm.history.rules.len(), 1);
    assert_eq!(glm.credential, Credential::Passthrough);
    assert_eq!(config.handover.summary_backend.as_deref(), Some("claude"));
}

#[test]
fn nothing_that_can_be_set_is_warned_about_for_being_set() {
    assert!(loaded(WHOLE).warnings.iter().all(|warning| !warning.key.contains("handover")));
    assert!(loaded(BACKEND).warnings.is_empty());
}

/// Returns what has to stand before a key of the list in `path`.
fn header(parent: &str) -> String {
    match parent {
        "" => String::new(),
        "backends[].history.rules[]" => "[[backends]]\n[[backends.history.rules]]\n".to_owned(),
        _ if parent.ends_with("[]") => format!("[[{}]]\n", parent.trim_end_matches("[]")),
        _ if parent.contains("[]") => format!("[[backends]]\n[{}]\n", parent.replace("[]", "")),
        _ => format!("[{parent}]\n"),
    }
}

#[test]
fn the_list_of_keys_and_the_structs_agree() {
    for key in KEYS {
        let (parent, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        let header = header(parent);
        // A value of no use to anything: what is refused must be the value, and never the key.
        let error = parse(Path::new("t"), &format!("{header}{name} = 1.5\n")).expect_err(key.path);
        assert!(!error[0].what.contains("unknown"), "{}: {}", key.path, error[0]);
        let error = parse(Path::new("t"), &format!("{header}{name}x = 1\n")).expect_err(key.path);
        assert!(error[0].hint.as_ref().unwrap().contains(name), "{}: {}", key.path, error[0]);
        // And the structs have no field beside those of the list.
        let error = toml::from_str::<FileConfig>(&format!("{header}zzz = 1\n")).expect_err(key.path);
        let fields: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
        assert_eq!(fields, keys::names_below(parent), "{parent}");
    }
}

#[test]
fn where_traces_go_is_checked_and_secrets_in_it_are_hidden() {
    for (line, words) in [
        ("otlp_endpoint = \"localhost:4318\"", "the URL of a collector"),
        ("otlp_endpoint = \"sim:\"", "the URL of a collector"),
        ("sampling_ratio = 1.5", "from 0 to 1"),
        ("otlp_headers = { \"x y\" = \"sk-hush\" }", "not the name of a header"),
        ("otlp_headers = { x = \"env:UNSET\" }", "the variable UNSET is not set"),
    ] {
        let error = errors(&format!("{BACKEND}[telemetry]\n{line}\n"));
        assert!(error.contains(words) && !error.contains("sk-hush"), "{line}: {error}");
    }
    let lines = "otlp_endpoint = \"http://c:4318/\"\notlp_headers = { Authorization = \"env:KEY\" }";
    let config = loaded(&format!("{BACKEND}[telemetry]\n{lines}\n"));
    let tracing = config.tracing.as_ref().unwrap();
    assert_eq!((tracing.endpoint.as_str(), tracing.sampling_ratio), ("http://c:4318", 1.0));
    assert_eq!(tracing.headers, [("authorization".into(), Secret::new("sk-1"))]);
    assert!(!format!("{config:?}").contains("sk-1"));
    let world = world()
        .file("throughline.toml", BACKEND)
        .with("THROUGHLINE_TELEMETRY_OTLP_ENDPOINT", "http://d:4318")
        .with("THROUGHLINE_TELEMETRY_OTLP_HEADERS", "a=one, b=two")
        .with("THROUGHLINE_TELEMETRY_SAMPLING_RATIO", "0.25");
    let tracing = world.load().unwrap().tracing.unwrap();
    assert_eq!((tracing.headers.len(), tracing.sampling_ratio), (2, 0.25));
}

#[test]
fn tools_servers_and_prices_are_checked() {
    let text = format!(
        "{BACKEND}prices = {{ input = 2.0, output = 8.0, cache_read = 0.5 }}\n[tools]\nmax_calls = 7\napprove = \"edits\"\n\
         writable = [\"/x\"]\n[[mcp]]\nname = \"docs\"\ncommand = \"srv\"\nenv = {{ \"TOKEN\" = \"env:KEY\" }}\n\
         [[mcp]]\nname = \"web\"\nurl = \"https://x/mcp\"\ntimeout = \"3s\"\n[compose]\nenabled = true\nbackend = \"a\"\n"
    );
    let config = loaded(&text);
    assert_eq!((config.tools.max_calls, config.tools.approve), (7, Approve::Edits));
    assert!(config.tools.withheld.contains(&"ANTHROPIC_API_KEY".to_owned()));
    let env = vec![("TOKEN".to_owned(), Secret::new("sk-1"))];
    let command = McpWay::Command { command: "srv".into(), args: Vec::new(), env, cwd: None };
    assert_eq!(config.mcp[0].way, command);
    assert_eq!(config.mcp[1].timeout, Some(Duration::from_secs(3)));
    assert_eq!(config.compose.unwrap().backend.as_deref(), Some("a"));
    assert!(loaded(BACKEND).compose.is_none());
    let prices = config.backends[0].model_facts("any").prices.unwrap();
    assert_eq!((prices.value.base.output, prices.source), (8.0, FactSource::Configuration));
    for (bad, word) in [
        ("[[mcp]]\ncommand = \"x\"\n", "needs a name"),
        ("[[mcp]]\nname = \"x\"\n", "`command` or a `url`"),
        ("[[mcp]]\nname = \"x\"\ncommand = \"a\"\nurl = \"b\"\n", "not both"),
        ("[[mcp]]\nname = \"x\"\nurl = \"b\"\nargs = []\n", "`args`, `env` and `cwd`"),
        ("[compose]\nbackend = \"nobody\"\n", "nobody"),
    ] {
        let errors = errors(&format!("{BACKEND}{bad}"));
        assert!(errors.contains(word), "{bad}: {errors}");
    }
}

#[test]
fn an_unknown_key_names_the_line_and_the_nearest() {
    for (text, expected) in [
        ("lisen = \"x\"", "throughline.toml:1: lisen: unknown key; did you mean `listen`?"),
        ("\n[stor]\nurl = \"x\"", "throughline.toml:2: stor: unknown key; did you mean `store`?"),
        ("[[backends]]\nname = \"a\"\nmodle = 1", "throughline.toml:3: backends[0].modle: unknown key"),
        ("[history]\ntemperature = 1", "known here: recent_calls_to_keep, truncation_threshold"),
        ("[[history.rules]]\ntool = []", "history.rules[0].tool: unknown key; did you mean `tools`?"),
    ] {
        let error = errors(text);
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(errors("a = 1\nlisen = 2\n").lines().count(), 2);
}

#[test]
fn a_bad_value_names_the_line_the_key_and_what_was_expected() {
    for (text, expected) in [
        ("listen = 4141", "throughline.toml:1: listen: invalid type"),
        ("listen = \"4141\"", "throughline.toml:1: listen: `4141` is not an address"),
        ("[store]\n\non_failure = \"panic\"", "throughline.toml:3: store.on_failure: unknown variant"),
        ("[store]\nurl = \"mysql://x\"", "store.url: expected `sqlite:FILE`"),
        ("[store]\nurl = \"postgres://h/d?sslmode=maybe\"", "store.url: the history cannot be kept there"),
        ("[history]\nbudget = -1", "history.budget: invalid value"),
        ("[history]\nrecent_calls_to_keep = -1", "throughline.toml:2: history.recent_calls_to_keep"),
        ("[limits]\nbody_bytes = 0", "limits.body_bytes: invalid value"),
        ("listen = ", "throughline.toml:1: "),
        ("[[backends]]\ndialect = \"chat\"", "throughline.toml:1: backends[0].name: a backend needs a name"),
        ("[[backends]]\nname = \"a/b\"", "throughline.toml:2: backends[0].name: `a/b` may hold"),
        (
            "[[backends]]\nname = \"a\"\ndialect = \"smtp\"",
            "throughline.toml:3: backends[0].dialect: unknown dialect",
        ),
        ("[[backends]]\nname = \"a\"", "backends[0].dialect: missing"),
        ("[[backends]]\nname = \"a\"", "backends[0].base_url: missing"),
    ] {
        let error = errors(text);
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn a_backend_is_checked_whole() {
    for (line, expected) in [
        ("base_url = \"ftp://x\"", "duplicate key"),
        ("api_key = \"env:NOPE\"", "backends[0].api_key: the variable NOPE is not set"),
        ("api_key = \"env:EMPTY\"", "backends[0].api_key: env:EMPTY is empty"),
        ("api_key = \"file:key.txt\"", "key.txt cannot be read"),
        ("fallback = [\"b\"]", "backends[0].fallback: no backend is called `b`"),
        ("fallback = [\"a\"]", "`a` cannot stand in for itself"),
        ("rules = \"anthropic\"", "backends[0].rules: no profile `anthropic` for chat"),
        ("profile = \"anthropic\"", "backends[0].profile: no profile `anthropic` for chat"),
        ("models = { \"x\" = \"y-*\" }", "backends[0].models: `y-*`"),
        ("headers = { host = \"x\" }", "backends[0].headers: `host` is set by the connection"),
        ("headers = { \"a b\" = \"x\" }", "`a b` is not the name of a header"),
        ("timeouts = { total = 5 }", "backends[0].timeouts.total: unknown key"),
        ("timeouts = { idle = \"5 days\" }", "throughline.toml:5: backends[0].timeouts.idle: invalid value"),
        ("context_window = 0", "backends[0].context_window: invalid value"),
        ("http2 = \"yes\"", "backends[0].http2: unknown variant"),
    ] {
        let error = errors(&format!("{BACKEND}{line}\n"));
        assert!(error.contains(expected), "{line}\n{error}");
    }
    assert!(errors(&format!("{BACKEND}{BACKEND}")).contains("another backend is called `a` already"));
    assert!(errors(&format!("active = \"aa\"\n{BACKEND}")).contains("did you mean `a`?"));
    assert!(errors("[handover]\nsummary_backend = \"x\"").contains("no backend is called `x`"));
}

#[test]
fn all_problems_are_told_at_once() {
    let text = format!("listen = \"x\"\nactive = \"b\"\n{BACKEND}api_key = \"env:NOPE\"\nrules = \"r\"\n");
    assert_eq!(errors(&text).lines().count(), 4);
}

#[test]
fn no_error_warning_or_value_shows_a_secret() {
    let secret = "sk-hush";
    for text in [
        format!("[auth]\nkeys = \"{secret}\""),
        format!("[auth]\nkeys = [[\"{secret}\"]]"),
        format!("{BACKEND}api_key = [\"{secret}\"]"),
        format!("{BACKEND}headers = \"{secret}\""),
        format!("{BACKEND}headers = {{ \"x y\" = \"{secret}\" }}"),
        format!("[store]\nurl = \"mysql://user:{secret}@host\""),
        format!("{BACKEND}api_key = \"{secret}\nb\""),
    ] {
        let error = errors(&text);
        assert!(!error.contains(secret), "{error}");
    }
    let text = format!(
        "[store]\nurl = \"postgres://user:{secret}@host/db\"\n[auth]\nkeys = [\"{secret}\"]\n\
         {BACKEND}api_key = \"{secret}\"\nheaders = {{ \"x-key\" = \"{secret}\" }}\n"
    );
    let config = loaded(&text);
    assert!(!format!("{config:?}").contains(secret));
    assert!(config.effective.iter().any(|value| value.value == "postgres://(hidden)@host/db"));
    assert_eq!(config.warnings.iter().filter(|warning| warning.what.contains("the key itself")).count(), 2);
}

#[test]
fn secrets_come_from_variables_and_files() {
    let text = format!("{BACKEND}api_key = \"file:key.txt\"\nheaders = {{ X-Team = \"env:KEY\" }}\n");
    let path = "/home/user/.config/throughline/throughline.toml";
    let world = world()
        .file(path, &text)
        .file("/home/user/.config/throughline/key.txt", "sk-2\n")
        .with("KEY", "tools");
    let config = world.load().unwrap();
    let backend = &config.backends[0];
    assert_eq!(backend.credential, Credential::Key(Secret::new("sk-2")));
    assert_eq!(backend.headers, [("x-team".into(), Secret::new("tools"))]);
    assert_eq!(config.file.as_deref(), Some(Path::new(path)));
}

#[test]
fn variables_override_the_file_and_flags_override_both() {
    let world = world()
        .file("throughline.toml", &format!("listen = \"127.0.0.1:1\"\n[history]\nbudget = 5\n{BACKEND}"))
        .with("THROUGHLINE_LISTEN", "127.0.0.1:2")
        .with("THROUGHLINE_HISTORY_BUDGET", "7")
        .with("THROUGHLINE_AUTH_KEYS", "env:ONE, two")
        .with("ONE", "one");
    let config = world.load().unwrap();
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.backends[0].history.budget, Budget::Tokens(7));
    assert!(config.access.admit("one") && config.access.admit("two"));
    let flags = Flags { listen: Some("127.0.0.1:3".into()), data: Some("/d".into()), ..Flags::default() };
    let config = load(&world, &flags).unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.store.location, StoreLocation::Sqlite(PathBuf::from("/d/history.db")));
    let source = |key: &str| {
        config
            .effective
            .iter()
            .find(|value| value.key == key)
            .unwrap_or_else(|| panic!("{key}"))
            .source
            .to_string()
    };
    assert_eq!(source("listen"), "--listen");
    assert_eq!(source("data"), "--data");
    assert_eq!(source("history.budget"), "THROUGHLINE_HISTORY_BUDGET");
    assert_eq!(source("backends.a.dialect"), "throughline.toml:6");
    assert_eq!(source("store.url"), "default");
}

#[test]
fn a_bad_variable_is_named() {
    for (name, value) in [
        ("THROUGHLINE_HISTORY_RECALL", "perhaps"),
        ("THROUGHLINE_STORE_ON_FAILURE", "panic"),
        ("THROUGHLINE_ACTIVE", "nobody"),
        ("THROUGHLINE_LIMITS_BODY_BYTES", "0"),
    ] {
        let error = world().with(name, value).load().expect_err(name).to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_misspelt_variable_is_a_warning_and_anybody_elses_is_not() {
    let config = world().with("THROUGHLINE_LISEN", "x").with("THROUGHLINE_KEY", "y").load().unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["THROUGHLINE_LISEN: no such variable; did you mean THROUGHLINE_LISTEN?"]);
}

#[test]
fn without_a_file_backends_are_found_by_their_keys() {
    let config = world().with("OPENAI_API_KEY", "k1").with("GLM_API_KEY", "k2").load().unwrap();
    let names: Vec<&str> = config.backends.iter().map(|backend| &*backend.name).collect();
    assert_eq!(names, ["openai", "zai"]);
    assert_eq!((config.backends_from, &*config.active), (BackendsFrom::Keys, "openai"));
    assert_eq!(config.backends[1].credential, Credential::Key(Secret::new("k2")));
    assert_eq!(config.backends[1].rules.name, "glm");
    let found = config.effective.iter().find(|value| value.key == "backends.zai.base_url").unwrap();
    assert_eq!(found.source, Source::Variable("GLM_API_KEY".into()));
}

#[test]
fn without_a_file_and_without_keys_the_simulated_backend_is_used() {
    let config = world().with("OPENAI_API_KEY", " ").load().unwrap();
    assert_eq!((config.backends_from, &*config.active), (BackendsFrom::Nobody, "sim"));
    assert_eq!(config.backends[0].endpoint, Endpoint::Simulated);
    assert!(config.warnings.is_empty());
}

#[test]
fn the_simulated_backend_is_never_chosen_beside_a_real_one() {
    let config = loaded(BACKEND);
    assert_eq!(config.backends.len(), 1);
    assert_eq!(config.backends_from, BackendsFrom::File);
}

#[test]
fn the_name_of_a_known_provider_is_enough() {
    let world = world().file("throughline.toml", "[[backends]]\nname = \"mistral\"\n");
    assert!(world.load().unwrap_err().to_string().contains("MISTRAL_API_KEY is not set"));
    let config = world.with("MISTRAL_API_KEY", "k").load().unwrap();
    assert_eq!(config.backends[0].rules.name, "mistral");
    assert_eq!(config.backends[0].endpoint.to_string(), "https://api.mistral.ai/v1");
}

#[test]
fn an_address_that_others_reach_needs_keys() {
    for address in ["0.0.0.0:4141", "192.168.0.7:4141", "[::]:4141"] {
        let error = errors(&format!("listen = \"{address}\"\n"));
        assert!(error.contains("set `auth.keys`"), "{error}");
        loaded(&format!("listen = \"{address}\"\n[auth]\nkeys = [\"env:KEY\"]\n"));
    }
    loaded("listen = \"[::1]:4141\"\n");
    assert!(errors("[auth]\nkeys = [\"none\"]").contains("not a key"));
}

#[test]
fn what_is_risky_is_warned_about() {
    let warned = |text: &str, expected: &str| {
        let config = loaded(text);
        let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings.iter().any(|warning| warning.contains(expected)), "{text}\n{warnings:?}");
    };
    let head = "[[backends]]\nname = \"a\"\ndialect = \"chat\"\n";
    warned(&format!("{head}base_url = \"https://x.example/v1\""), "backends[0].api_key: not given");
    warned(&format!("{head}base_url = \"http://x.example/v1\"\napi_key = \"env:KEY\""), "unencrypted");
    warned(&format!("{head}base_url = \"https://x.example\"\napi_key = \"none\""), "has no path");
}

#[test]
fn files_are_looked_for_in_order_and_a_named_one_must_exist() {
    let here = "listen = \"127.0.0.1:1\"";
    let there = "listen = \"127.0.0.1:2\"";
    let both = || world().file("throughline.toml", here).file("/x/throughline/throughline.toml", there);
    assert_eq!(both().with("XDG_CONFIG_HOME", "/x").load().unwrap().listen.port(), 1);
    let user = world().file("/x/throughline/throughline.toml", there).with("XDG_CONFIG_HOME", "/x");
    assert_eq!(user.load().unwrap().listen.port(), 2);
    let flags = Flags { config: Some("nope.toml".into()), ..Flags::default() };
    let error = load(&both(), &flags).unwrap_err().to_string();
    assert!(error.contains("--config: nope.toml: cannot be read"), "{error}");
    let named = both().with("THROUGHLINE_CONFIG", "/x/throughline/throughline.toml");
    assert_eq!(named.load().unwrap().listen.port(), 2);
    assert!(World::default().load().unwrap_err().to_string().contains("--data"));
}

#[test]
fn a_file_in_the_working_directory_counts_only_if_it_is_trusted() {
    let here = "listen = \"127.0.0.1:1\"\n[[mcp]]\nname = \"m\"\ncommand = \"./evil\"";
    let there = "listen = \"127.0.0.1:2\"";
    let both = |distrust| World {
        distrust,
        ..world()
            .file("throughline.toml", here)
            .file("/home/user/.config/throughline/throughline.toml", there)
    };
    let trusted = both(None).load().unwrap();
    assert_eq!((trusted.listen.port(), trusted.mcp.len(), trusted.ignored), (1, 1, None));
    for why in [Distrust::Undecided, Distrust::Changed, Distrust::Refused, Distrust::NoRecord("x".into())] {
        let config = both(Some(why.clone())).load().unwrap();
        assert_eq!((config.listen.port(), config.mcp.len()), (2, 0));
        let path = PathBuf::from("/repository/throughline.toml");
        assert_eq!(config.ignored, Some(IgnoredFile { path, why }));
        // What is named is the user's word.
        let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
        assert_eq!(load(&both(Some(Distrust::Refused)), &flags).unwrap().mcp.len(), 1);
    }
    let alone = World { distrust: Some(Distrust::Undecided), ..world().file("throughline.toml", here) };
    assert_eq!(alone.load().unwrap().backends_from, BackendsFrom::Nobody);
    // One that is not even a configuration does no harm.
    let broken = World { distrust: Some(Distrust::Changed), ..world().file("throughline.toml", "= [") };
    assert!(broken.load().unwrap().ignored.is_some());
}

#[test]
fn defaults_are_the_documented_ones() {
    let config = loaded(BACKEND);
    let backend = &config.backends[0];
    assert_eq!(backend.timeouts.connect, Duration::from_secs(10));
    assert_eq!(backend.timeouts.idle, Duration::from_secs(300));
    assert_eq!((backend.native_tool_history, backend.server_state), (Choice::Auto, Choice::Auto));
    assert_eq!(backend.context_management, Choice::Auto);
    assert_eq!((backend.history.recent_calls_to_keep, backend.history.truncation_threshold), (None, None));
    assert_eq!((config.handover.max_result_chars, config.handover.max_tool_context_chars), (None, None));
    assert_eq!((config.limits.body_bytes, config.limits.concurrent_requests), (32 << 20, 1024));
}

#[test]
fn the_template_is_valid_as_it_is_and_with_every_comment_taken_off() {
    let plain = world();
    assert_eq!(world().file("throughline.toml", &template(&plain)).load().unwrap().active, "sim");
    let keyed = world().with("ANTHROPIC_API_KEY", "k").with("GROQ_API_KEY", "k");
    let text = template(&keyed);
    let config = keyed.file("throughline.toml", &text).load().unwrap();
    assert_eq!((config.backends_from, config.backends.len()), (BackendsFrom::File, 2));
    let uncommented = template(&plain)
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let uncommented = uncommented.replace("active = \"sim\"", "active = \"example\"");
    let world = world().with("EXAMPLE_API_KEY", "k").with("THROUGHLINE_KEY", "k");
    world.file("throughline.toml", &uncommented).load().unwrap();
    let left_out = ["handover.summary_backend", "backends[].rules"];
    for key in KEYS.iter().filter(|key| !left_out.contains(&key.path)) {
        let name = key.path.rsplit('.').next().unwrap();
        assert!(uncommented.contains(&format!("{name} =")), "{}", key.path);
    }
}

#[test]
fn a_profile_is_a_base_and_what_differs() {
    let profiles = "[[profiles]]\nname = \"mine\"\nbase = \"mistral\"\ncall_id_min = 1\ncall_id_max = 12\nsystem = \"anywhere\"\n\
        wording = \"common\"\nreasoning_with_calls = true\n\
        [[profiles]]\nname = \"mine-too\"\nbase = \"mine\"\nalternate = true\n";
    let backend = "[[backends]]\nname = \"a\"\ndialect = \"chat\"\nbase_url = \"http://localhost/v1\"\nprofile = \"mine-too\"\n";
    let config = loaded(&format!("{profiles}{backend}"));
    let rules = &config.backends[0].rules;
    let base = Rules::from_name("mistral").unwrap();
    assert_eq!((&*rules.name, rules.call_id.min, rules.call_id.max), ("mine-too", 1, 12));
    assert_eq!((rules.system, rules.wording), (SystemRule::Anywhere, Wording::Common));
    assert!(rules.alternate && rules.reasoning.required_with_calls && rules.reasoning.refused);
    assert_eq!((rules.user_after_results, rules.files), (base.user_after_results, base.files));
    for (lines, words) in [
        ("name = \"mine\"\n", "no profile is called ``"),
        ("base = \"mistral\"\n", "a profile needs a name"),
        ("name = \"x\"\nbase = \"nobody\"\n", "no profile is called `nobody`; there are openai-responses"),
        ("name = \"x\"\nbase = \"mistral\"\ncall_id_max = 3\n", "no id has 9 to 3 characters"),
        ("name = \"x\"\nbase = \"mistral\"\ncal_id_max = 3\n", "did you mean `call_id_max`?"),
        ("name = \"x\"\nbase = \"mistral\"\nsystem = \"last\"\n", "profiles[0].system"),
    ] {
        let error = errors(&format!("[[profiles]]\n{lines}{BACKEND}"));
        assert!(error.contains(words), "{lines}: {error}");
    }
    let wrong = backend.replace("chat", "messages").replace("mine-too", "mistral");
    assert!(errors(&wrong).contains("no profile `mistral` for messages; there are anthropic"));
    let both = format!("{}rules = \"mistral\"\n", backend.replace("mine-too", "mistral"));
    assert!(errors(&both).contains("older name"));
}

#[test]
fn a_profile_follows_from_where_a_backend_is() {
    for (url, dialect, expected) in [
        ("https://openrouter.ai/api/v1", "chat", "openrouter"),
        ("https://api.z.ai/api/paas/v4", "chat", "glm"),
        ("https://api.z.ai/api/anthropic/v1", "messages", "anthropic"),
        ("http://127.0.0.1:11434/v1", "chat", "ollama"),
        ("http://127.0.0.1:8080/v1", "chat", "openai-chat"),
        ("https://api.openai.com/v1", "responses", "openai-responses"),
    ] {
        let backend = format!(
            "[[backends]]\nname = \"a\"\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\napi_key = \"none\"\n"
        );
        assert_eq!(loaded(&backend).backends[0].rules.name, expected, "{url}");
    }
}
