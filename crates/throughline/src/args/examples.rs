//! Examples, as the long help of a command and its manual page end with them; a test types them.

/// Of the program itself.
pub const PROGRAM: &str = "\
Examples:
  throughline demo                                 # all of it in a minute, offline
  throughline serve                                # the gateway, with the keys that are set
  throughline start claude                         # an agent through it, without touching its files
  throughline use glm                              # switch, in the middle of a conversation
  throughline ls                                   # what was recorded";

/// Of `run`.
pub const RUN: &str = "\
Examples:
  throughline run --approve edits \"Mend the failing test\"
  throughline run --backend glm --continue 6f708192 \"And now the documentation\"
  git diff | throughline run --approve none --json -";

/// Of `use`.
pub const USE: &str = "\
Examples:
  throughline use claude
  throughline use openai/gpt-5 --conversation 6f708192
  throughline use --clear";

/// Of `backends`.
pub const BACKENDS: &str = "\
Examples:
  throughline backends
  throughline backends --forget glm
  throughline backends --forget glm/glm-4.6";

/// Of `models`.
pub const MODELS: &str = "\
Examples:
  throughline models
  throughline models claude-sonnet-4-5
  throughline models --all gpt-5";

/// Of `env`.
pub const ENV: &str = "\
Examples:
  eval \"$(throughline env claude-code)\"
  throughline env codex --install
  throughline env codex --uninstall";

/// Of `start`.
pub const START: &str = "\
Examples:
  throughline start claude
  throughline start codex exec \"Run the tests\"
  throughline start --listen 127.0.0.1:5000 opencode";

/// Of `rm`.
pub const RM: &str = "\
Examples:
  throughline rm 6f708192
  throughline rm @last --yes
  throughline rm --undo";

/// Of `ls`.
pub const LS: &str = "\
Examples:
  throughline ls --since yesterday --failed
  throughline ls --project . --client claude
  throughline ls --sort cost -n 5";

/// Of `usage`.
pub const USAGE: &str = "\
Examples:
  throughline usage --since 7d
  throughline usage --by model
  throughline usage --by conversation --since today -n 5";

/// Of `show`.
pub const SHOW: &str = "\
Examples:
  throughline show
  throughline show @last --follow
  throughline show 6f7081 --exchange -1
  throughline show 6f708192 --view pairs
  throughline show 6f708192 --view sent --json | tail -n 1";

/// Of `search`.
pub const SEARCH: &str = "\
Examples:
  throughline search \"connection refused\" --failed
  throughline search 'migrat*' --tool bash --limit 5
  throughline search --failed --command \"cargo test\" --since 7d
  throughline search panicked --path src/main.rs
  throughline search deadline --conversation 6f708192 --json";

/// Of `store prune`.
pub const PRUNE: &str = "\
Examples:
  throughline store prune --older-than 90d --dry-run
  throughline store prune --max-size 20GB --shrink
  throughline store prune --conversation 6f708192";

/// Of `trust`.
pub const TRUST: &str = "\
Examples:
  throughline trust                                # the one in this directory, as it is now
  throughline trust ~/project --forget
  throughline trust --list";

/// Of `mcp`.
pub const MCP: &str = "\
Examples:
  throughline mcp
  throughline mcp --listen 127.0.0.1:4143
  eval \"$(throughline env claude-code --mcp)\"
  throughline import --all --watch";

/// Of `import`.
pub const IMPORT: &str = "\
Examples:
  throughline import
  throughline import claude-code --latest
  throughline import codex --all
  throughline import chat.json request.json";

/// Of `export`.
pub const EXPORT: &str = "\
Examples:
  throughline export 6f708192 --to codex --install
  throughline export 6f708192 --to markdown -o session.md
  throughline export @last --to html --redact -o session.html";

/// Of `carry`.
pub const CARRY: &str = "\
Examples:
  throughline carry claude-code --to codex --start
  throughline carry 6f708192 --to opencode --cwd ~/project";

/// Of `convert`.
pub const CONVERT: &str = "\
Examples:
  throughline convert --from chat --to messages request.json
  throughline convert --from messages --to chat --rules mistral --report changes.json < request.json";
