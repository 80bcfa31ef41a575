//! Examples, as the long help of a command and its manual page end with them; a test types them.

/// Of the program itself.
pub const PROGRAM: &str = "\
Examples:
  throughline demo                                 # all of it in a minute, offline
  throughline serve                                # the gateway, with the keys that are set
  eval \"$(throughline env claude-code)\"            # let a client come through it
  throughline use glm                              # switch, in the middle of a conversation
  throughline ls                                   # what was recorded";

/// Of `run`.
pub const RUN: &str = "\
Examples:
  throughline run --approve edits \"Mend the failing test\"
  throughline run --backend glm --continue 01a1e359191e \"And now the documentation\"
  git diff | throughline run --approve none --json -";

/// Of `use`.
pub const USE: &str = "\
Examples:
  throughline use claude
  throughline use openai/gpt-5 --conversation 01a1e359191e
  throughline use --clear";

/// Of `models`.
pub const MODELS: &str = "\
Examples:
  throughline models
  throughline models claude-sonnet-4-5
  throughline models --all gpt-5";

/// Of `show`.
pub const SHOW: &str = "\
Examples:
  throughline show 01a1e359191e
  throughline show 01a1e359191e --view pairs
  throughline show 01a1e359191e --view sent --json | tail -n 1";

/// Of `search`.
pub const SEARCH: &str = "\
Examples:
  throughline search \"connection refused\" --failed
  throughline search 'migrat*' --tool bash --limit 5
  throughline search --failed --command \"cargo test\" --since 7d
  throughline search panicked --path src/main.rs
  throughline search deadline --conversation 01a1e359191e --json";

/// Of `store prune`.
pub const PRUNE: &str = "\
Examples:
  throughline store prune --older-than 90d --dry-run
  throughline store prune --max-size 20GB --shrink
  throughline store prune --conversation 01a1e359191e";

/// Of `trust`.
pub const TRUST: &str = "\
Examples:
  throughline trust                                # the one in this directory, as it is now
  throughline trust ~/project --forget
  throughline trust --list";

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
  throughline export 01a1e359191e --to codex --install
  throughline export 01a1e359191e --to markdown -o session.md";

/// Of `carry`.
pub const CARRY: &str = "\
Examples:
  throughline carry claude-code --to codex --start
  throughline carry 01a1e359191e --to opencode --cwd ~/project";

/// Of `convert`.
pub const CONVERT: &str = "\
Examples:
  throughline convert --from chat --to messages request.json
  throughline convert --from messages --to chat --rules mistral --report changes.json < request.json";
