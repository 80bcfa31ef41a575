//! The file that `config init` writes: what was found, and everything else as comments with its default.
//!
//! A line that begins with `#` and a letter is a setting; one with `# ` is prose. A test reads both.

use super::providers::{PROVIDERS, Provider};
use super::source::Surroundings;

const HEAD: &str = r#"# Throughline. Every setting is described in docs/configuration.md; what is commented out is the default.

#listen = "127.0.0.1:4141"
"#;

const MIDDLE: &str = r#"
[store]
# Relative to the data directory (--data).
#url = "sqlite:history.db"
# "reject" fails a request whose history cannot be written; "pass" answers it and says so.
#on_failure = "reject"

[auth]
# Clients present one of these as Bearer or x-api-key. Without any, only this machine may connect.
#keys = ["env:THROUGHLINE_KEY"]

[limits]
#body_bytes = 33554432
#header_bytes = 65536
#concurrent_requests = 1024
#request_timeout = "30s"
#known_bytes = 33554432
#memory_bytes = 234881024
#connections = 1024
#header_timeout = "15s"
#idle_timeout = "2m"
#write_timeout = "1m"
#answer_bytes = 8388608

[history]
# Neither is set by default: a few of the latest calls stay whole, and only the budget counts.
#recent_calls_to_keep = 6
#truncation_threshold = 10000
#budget = "auto"
#recall = true
#policy = "default"
#text_embed = "plain"

# What tools do, for agents whose names for them are unusual.
#[[history.rules]]
#tools = ["Read", "read_file", "view"]
#kind = "read"
#key = "file_path"

[handover]
#mode = "auto"
#summary = "digest"
#tool_context = true
# Upper bounds; without them, what the window takes.
#max_result_chars = 2000
#max_tool_context_chars = 60000

[telemetry]
# Traces go to an OpenTelemetry collector, if one is named.
#otlp_endpoint = "http://localhost:4318"
#otlp_headers = { "x-team" = "tools" }
#service_name = "throughline"
#sampling_ratio = 1.0

# The tools of `throughline run` and `chat`.
[tools]
#max_calls = 100
# "ask" before files are changed and commands are run, "edits": before commands only, "all": never,
# "none": nothing but reading.
#approve = "ask"
#command_timeout = "2m"
# Besides the system's directories and the working directory.
#readable = []
#writable = []
# Whether commands may use the network.
#network = false
# "required": commands are refused where they cannot be confined, "best-effort": confined as far as possible,
# "off": not confined. Required by default where the kernel has Landlock.
#confinement = "required"
# Further variables that commands are given; keys of backends are never among them.
#pass = ["MY_*"]

# A server that brings further tools, by its standard input and output …
#[[mcp]]
#name = "docs"
#command = "docs-server"
#args = ["--quiet"]
#env = { "MODE" = "fast" }
#cwd = "."
#timeout = "2m"

# … or by HTTP.
#[[mcp]]
#name = "web"
#url = "https://mcp.example.com/mcp"
#headers = { "x-team" = "tools" }

# A second model that writes the answer from what the tools gave.
[compose]
#enabled = false
#backend = "example"
#model = "example-large"
#temperature = 0.2
#max_tokens = 1000
#guidance = "Write the final answer from the results of the tools above."
[privacy]
# What is taken out of everything before it is kept; backends are still sent it. Off unless you say so.
#secrets = false

#[[privacy.redact]]
#name = "employee"
#pattern = "EMP-[0-9]{6}"
"#;

const NO_BACKENDS: &str = r#"
# No key of a known provider was found. Until a backend is named here, or such a key is set
# (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), the simulated backend `sim` answers.
"#;

const EXAMPLE: &str = r#"
# A backend with everything that can be said about one.
#[[backends]]
#name = "example"
#dialect = "chat"
#base_url = "https://api.example.com/v1"
#api_key = "env:EXAMPLE_API_KEY"
#default_model = "example-large"
#models = { "*opus*" = "example-large", "example-*" = "*" }
#context_window = 200000
#native_tool_history = "auto"
#server_state = "auto"
#context_management = "auto"
#reasoning = "keep-own"
#fallback = []
#profile = "openai-chat"
#headers = { "x-team" = "tools" }
#timeouts = { connect = "10s", idle = "5m", progress = "20m" }
#http2 = "auto"
#prices = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }
#store = true
#history = { recent_calls_to_keep = 6, truncation_threshold = 10000, budget = "auto", recall = true, policy = "default", text_embed = "plain" }

# What a backend accepts, where none of the built-in profiles says it: a base, and what differs.
#[[profiles]]
#name = "my-server"
#base = "strict-chat"
#call_id_min = 1
#call_id_max = 64
#call_id_chars = "word"
#unique_call_ids = true
#tool_name_max = 64
#object_arguments = true
#tools_for_history = true
#custom_tools = true
#own_extensions = true
#media_in_results = true
#parts_in_results = true
#files = true
#blank_text = true
#system = "first"
#developer_role = true
#user_first = true
#alternate = true
#user_after_results = true
#assistant_last = true
#reasoning_refused = true
#reasoning_sealed = true
#reasoning_with_calls = true
#reasoning_leads = true
#wording = "common"
#effort_none = true
#effort_max = true
#selects_tools = true
#marked_calls = true
"#;

/// Returns a file that names the backends whose keys are set.
#[must_use]
pub fn template(surroundings: &dyn Surroundings) -> String {
    let found: Vec<(&Provider, &str)> =
        PROVIDERS.iter().filter_map(|provider| Some((provider, provider.variable(surroundings)?))).collect();
    let active = found.first().map_or("sim", |(provider, _)| provider.name);
    let backends: String = found.iter().map(|(provider, variable)| backend(provider, variable)).collect();
    let note = if found.is_empty() { NO_BACKENDS } else { "" };
    let active = format!("# Used when the model name does not choose a backend.\n#active = \"{active}\"\n");
    [HEAD, &active, MIDDLE, note, &backends, EXAMPLE].concat()
}

fn backend(provider: &Provider, variable: &str) -> String {
    let models: Vec<String> = provider.models.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "\n[[backends]]\nname = \"{}\"\ndialect = \"{}\"\nbase_url = \"{}\"\napi_key = \"env:{variable}\"\n\
         default_model = \"{}\"\nmodels = [{}]\nprofile = \"{}\"\n",
        provider.name,
        provider.dialect,
        provider.base_url,
        provider.default_model,
        models.join(", "),
        provider.rules,
    )
}
