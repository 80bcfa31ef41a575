//! The command line as it is typed.

#[cfg(test)]
mod documented;
mod examples;
mod groups;
mod names;

use crate::completion::{backends, clients, conversations};
use clap::{Parser, Subcommand, value_parser};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
pub use groups::group_commands;
pub use names::{
    AgentName, ApproveName, ChatProfile, Color, DialectName, EmbedName, FormName, PolicyName, ReasoningName,
    SortName, StrategyName, UsageByName, View,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use throughline_core::{EmbedForm, ForeignReasoning, Strategy};

/// Where what every command accepts stands in the help.
const GLOBAL: &str = "Global options";

/// Owns the tool history of LLM agents: any client, any backend, switch whenever you like.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_long_help = examples::PROGRAM)]
pub struct Args {
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, help_heading = GLOBAL)]
    pub color: Color,
    /// Say nothing but errors
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// Log what is done along the way, to standard error; twice: every step of it
    #[arg(long, short, action = clap::ArgAction::Count, conflicts_with = "quiet", global = true, help_heading = GLOBAL)]
    pub verbose: u8,
    /// The configuration file [default: throughline.toml here if it is trusted, else in your configuration directory]
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub config: Option<PathBuf>,
    /// The directory that history is kept in [default: the user's data directory]
    #[arg(long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub data: Option<PathBuf>,
    /// Print JSON instead of text, one value on each line
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Print long output at once, instead of a screen at a time
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub no_pager: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// Which models to show.
#[derive(Debug, clap::Args)]
pub struct ModelsArgs {
    /// The model, as a client would ask for it
    pub name: Option<String>,
    /// List the whole catalogue; with a name, the entries that contain it
    #[arg(long)]
    pub all: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway
    ///
    /// Prints one line with its address when it is ready. SIGTERM and Ctrl-C let what is under way finish.
    Serve {
        /// Where to listen [default: what the configuration says, else 127.0.0.1:4141]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// The port to listen on, on this machine only; 0 is any that is free
        #[arg(long, value_name = "PORT", conflicts_with = "listen")]
        port: Option<u16>,
        /// Open the inspector in the browser
        #[arg(long)]
        open: bool,
    },
    /// Open the inspector of the running gateway in the browser
    Open {
        /// A conversation to show: its id, the beginning of it, or @last
        #[arg(add = ArgValueCompleter::new(conversations))]
        id: Option<String>,
    },
    /// See all of it in a minute, without a key and without a network
    ///
    /// Two simulated backends, an agent with real tools in a scratch project, compaction, two switches, a recall and a
    /// replay. Every claim is checked; with --once it ends with exit code 0 only if all of them held.
    Demo(DemoArgs),
    /// Have something done in a directory: the model works with tools until it is done
    ///
    /// The model's words go to standard output, a line for each tool call to standard error. Ctrl-C stops it and
    /// closes what is open; a second one ends it at once. A run that did not complete ends with exit code 1, one
    /// whose backend failed with 3.
    #[command(after_long_help = examples::RUN)]
    Run(RunArgs),
    /// The same as a conversation in the terminal
    Chat(ChatArgs),
    /// Drive a recorded run again, offline, and compare every byte that was sent
    ///
    /// Exit code 0: identical; 1: it differs, and the first difference is shown; 2: it could not be replayed.
    Replay(ReplayArgs),
    /// Switch to another backend, from the next request on
    ///
    /// A running gateway needs no restart. The switch holds until it is taken back or replaced; a model name
    /// of the form BACKEND/MODEL in a request still chooses for that request.
    #[command(after_long_help = examples::USE)]
    Use(UseArgs),
    /// List the backends: who answers, and what was learned about each
    #[command(after_long_help = examples::BACKENDS)]
    Backends(BackendsArgs),
    /// Show windows, limits and prices of models, and who says so
    ///
    /// Without a name, the models that the configuration names. A name may be BACKEND/MODEL.
    #[command(after_long_help = examples::MODELS)]
    Models(ModelsArgs),
    /// Say whether everything is in order, and what to do where it is not
    ///
    /// Looks at the configuration, the history and the backends. Something wrong ends with exit code 1.
    Doctor {
        /// Ask each backend for its models, and remember what it says of itself
        #[arg(long)]
        probe: bool,
    },
    /// Print what a client must be told to come through the gateway
    ///
    /// Variables can be set with eval "$(throughline env CLIENT)"; of a client that reads a file, the part of that
    /// file is printed. Keys are referred to and never printed.
    #[command(after_long_help = examples::ENV)]
    Env(EnvArgs),
    /// Run an agent through the gateway, without touching its files
    ///
    /// Uses the gateway that is running, or serves as long as the agent runs. What follows the agent's name is given to it.
    #[command(after_long_help = examples::START)]
    Start(StartArgs),
    /// Serve the history to agents by the Model Context Protocol, read-only
    ///
    /// Speaks on standard input and output, as agents start it; with --listen, by streamable HTTP at /mcp. No gateway has
    /// to run: `throughline import --all --watch` brings in what agents do without one.
    #[command(after_long_help = examples::MCP)]
    Mcp {
        /// Serve by HTTP at this address; port 0 is any that is free
        #[arg(long, value_name = "ADDR")]
        listen: Option<SocketAddr>,
    },
    /// List conversations, the latest first
    #[command(after_long_help = examples::LS)]
    Ls(LsArgs),
    /// Show a conversation
    ///
    /// What was said, with a line for each tool call and for each request that failed.
    #[command(after_long_help = examples::SHOW)]
    Show(ShowArgs),
    /// Add up tokens and cost
    #[command(after_long_help = examples::USAGE)]
    Usage(UsageArgs),
    /// Search tool history and talk, the latest first
    ///
    /// All words must occur; "several words" in that order; test* stands for words that begin so. Nothing found
    /// ends with exit code 1.
    #[command(after_long_help = examples::SEARCH)]
    Search(SearchArgs),
    /// Delete conversations and everything only they use
    ///
    /// A gateway may be running. What was deleted can be had back for a day, with --undo.
    #[command(after_long_help = examples::RM)]
    Rm(RmArgs),
    /// Look after the history: check, copy, move, thin out
    ///
    /// A gateway may be running meanwhile, unless a command says otherwise.
    Store {
        /// What to do
        #[command(subcommand)]
        action: StoreAction,
    },
    /// Translate request bodies from one dialect to another
    ///
    /// Reads one JSON document, or several (JSON Lines), and writes one line for each. Bad input ends with
    /// exit code 2, the field and the offset on standard error, and nothing on standard output.
    #[command(after_long_help = examples::CONVERT)]
    Convert(ConvertArgs),
    /// Show what compaction would send of a request
    ///
    /// Reads a request body and writes it as the gateway would send it with that budget, and what was done about
    /// it to standard error. One that cannot be made to fit ends with exit code 1.
    Compact(CompactArgs),
    /// Take sessions of agents into the history, or list those that are there
    ///
    /// What was imported before is not imported again. A line that cannot be read is named and left out.
    #[command(after_long_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Write a conversation as a session of an agent, as a request body or as a document
    #[command(after_long_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Go on with a session of one agent in another
    ///
    /// Every call and every result arrives as such. What could not be carried is listed entry by entry, with the
    /// reason. Prints the command that goes on, or runs it.
    #[command(after_long_help = examples::CARRY)]
    Carry(CarryArgs),
    /// Print what a backend is told that takes over and is not shown the history itself
    ///
    /// Reads a request body and writes its history as one text, with the user's own message behind it. Nothing is
    /// sent anywhere, and no model is asked.
    Brief(BriefArgs),
    /// Write, check or print the configuration
    Config {
        /// What to do with it [default: show]
        #[command(subcommand)]
        action: Option<ConfigAction>,
    },
    /// Trust a throughline.toml in a working directory, so that it is used
    ///
    /// A file that came with a repository could start programs and send your keys anywhere, so it is ignored until you
    /// trust it. You trust this content in this place: when the file changes, you are asked again.
    #[command(after_long_help = examples::TRUST)]
    Trust(TrustArgs),
    /// Run the simulated backend on its own
    ///
    /// Speaks all three dialects over HTTP, as strictly as the providers do. Prints one line with its address
    /// when it is ready; Ctrl-C and SIGTERM stop it. What it was sent can be read at /__recorded.
    Sim(SimArgs),
    /// Write the completion script of a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command
    ///
    /// Without a directory, the page of the program itself goes to standard output; `throughline man | man -l -`
    /// shows it.
    Man {
        /// The directory to write them to, such as ~/.local/share/man/man1
        dir: Option<PathBuf>,
    },
}

/// What to do about backends.
#[derive(Debug, clap::Args)]
pub struct BackendsArgs {
    /// Forget what was learned of a backend, or of one of its models; the next request finds it out anew
    #[arg(long, value_name = "BACKEND[/MODEL]")]
    pub forget: Option<String>,
}

/// What to have done.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// How it is done
    #[command(flatten)]
    pub talk: TalkArgs,
    /// What is to be done; `-`, or nothing, takes it from standard input
    pub prompt: Option<String>,
}

/// How to talk.
#[derive(Debug, clap::Args)]
pub struct ChatArgs {
    /// How it is done
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// How turns are run.
#[derive(Debug, clap::Args)]
pub struct TalkArgs {
    /// The backend, or BACKEND/MODEL [default: the active one]
    #[arg(long, value_name = "BACKEND", add = ArgValueCandidates::new(backends))]
    pub backend: Option<String>,
    /// The model [default: the backend's own]
    #[arg(long)]
    pub model: Option<String>,
    /// The directory that the tools work in [default: this one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The most tool calls of a turn [default: what the configuration says, else 100]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_tool_calls: Option<std::num::NonZeroU32>,
    /// Which actions run without asking [default: what the configuration says, else ask]
    #[arg(long, value_name = "WHAT")]
    pub approve: Option<ApproveName>,
    /// Let commands use the network in this run [default: what the configuration says, else they have none]
    #[arg(long)]
    pub network: bool,
    /// Go on with this conversation: its id, or the beginning of it
    #[arg(long = "continue", value_name = "ID", add = ArgValueCompleter::new(conversations))]
    pub continued: Option<String>,
    /// An image to begin with, may be repeated
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
}

/// Which client is told what.
#[derive(Debug, clap::Args)]
pub struct EnvArgs {
    /// The client; without one, those that are known are listed
    #[arg(add = ArgValueCandidates::new(clients))]
    pub client: Option<String>,
    /// The address that `serve` was given [default: what the configuration says, else 127.0.0.1:4141]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Write it into the client's own configuration, in place, and keep a copy of what was there
    #[arg(long, requires = "client", conflicts_with = "uninstall")]
    pub install: bool,
    /// Take out what --install wrote
    #[arg(long, requires = "client")]
    pub uninstall: bool,
    /// Print instead how the client asks the history as an MCP server (`throughline mcp`)
    #[arg(long, requires = "client", conflicts_with_all = ["listen", "install", "uninstall"])]
    pub mcp: bool,
}

/// Which conversations to delete.
#[derive(Debug, clap::Args)]
pub struct RmArgs {
    /// Their ids, the beginnings of them, or @last
    #[arg(required_unless_present = "undo", add = ArgValueCompleter::new(conversations))]
    pub id: Vec<String>,
    /// Bring back what was deleted last
    #[arg(long, conflicts_with = "id")]
    pub undo: bool,
    /// How it is done
    #[command(flatten)]
    pub care: CareArgs,
}

/// How much care is taken before something is deleted.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CareArgs {
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Keep no copy: what is deleted cannot be had back
    #[arg(long)]
    pub for_good: bool,
}

/// Which agent to run.
#[derive(Debug, clap::Args)]
pub struct StartArgs {
    /// The address of the gateway [default: what the configuration says, else 127.0.0.1:4141]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// claude, codex, opencode or aider
    pub agent: String,
    /// What the agent is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub rest: Vec<String>,
}

/// Which conversations to list.
#[derive(Debug, clap::Args)]
pub struct LsArgs {
    /// Only those with a request of this client: a part of its name
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// Only those with a request to this backend
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(backends))]
    pub backend: Option<String>,
    /// Only those that work in this directory: a part of its path, or `.` for this one
    #[arg(long, value_name = "PATH")]
    pub project: Option<String>,
    /// Only those with a request that failed or broke off
    #[arg(long)]
    pub failed: bool,
    /// Only those to which something was added since: a date, a time, today, yesterday, or an age such as 2h or 7d
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// What to sort by
    #[arg(long, value_name = "BY", default_value = "updated")]
    pub sort: SortName,
    /// How many at most
    #[arg(long, short = 'n', value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Also what clients asked on the side, such as what to call a session
    #[arg(long)]
    pub all: bool,
}

/// What to show of a conversation.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Its id, the beginning of it, or @last
    #[arg(default_value = "@last", add = ArgValueCompleter::new(conversations))]
    pub id: String,
    /// What to show of it
    #[arg(long, default_value = "talk")]
    pub view: View,
    /// Only this exchange, with the body that was sent; counted from 1, or -1 for the last
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with_all = ["view", "follow"])]
    pub exchange: Option<i64>,
    /// Show what is added, until Ctrl-C
    #[arg(long, short, conflicts_with = "view")]
    pub follow: bool,
}

/// What to add up.
#[derive(Debug, clap::Args)]
pub struct UsageArgs {
    /// What to add up by
    #[arg(long, value_name = "WHAT", default_value = "day")]
    pub by: UsageByName,
    /// Only from then on: a date, a time, today, yesterday, or an age such as 2h or 7d
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// How many rows at most
    #[arg(long, short = 'n', value_name = "N", default_value = "30", value_parser = value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// What to replay.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The run, by the id that `run` printed; or a conversation, for all its runs
    #[arg(add = ArgValueCompleter::new(conversations))]
    pub run: String,
    /// Another configuration to replay it under, or another version of this program to replay it with
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Show every difference, and bodies with nothing left out
    #[arg(long)]
    pub full: bool,
}

/// What to switch to.
#[derive(Debug, clap::Args)]
pub struct UseArgs {
    /// The backend, and the model if it is not to be the one that requests ask for
    #[arg(value_name = "BACKEND[/MODEL]", required_unless_present = "clear", add = ArgValueCandidates::new(backends))]
    pub backend: Option<String>,
    /// Only in this conversation: its id, or the beginning of it
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(conversations))]
    pub conversation: Option<String>,
    /// Take the switch back
    #[arg(long, conflicts_with = "backend")]
    pub clear: bool,
}

/// What to search for.
#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// The words; not needed where something else narrows the search
    pub query: Option<String>,
    /// Only calls and results of this tool, by any of the names that agents have for it
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only calls that name this file or directory, and their results: src/main.rs, or 'src/te*'
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Only calls that run this command, and their results: "cargo test", or 'git re*'
    #[arg(long, value_name = "WORDS")]
    pub command: Option<String>,
    /// Only results that are failures, and those of commands that ended with another exit code than 0
    #[arg(long)]
    pub failed: bool,
    /// Only in this conversation: its id, or the beginning of it
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(conversations))]
    pub conversation: Option<String>,
    /// Only from then on: a date, a time such as 2026-02-28T09:05:07Z, today, yesterday, or an age such as 2h or 7d
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only before then, given likewise
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Go on behind what was shown before: what the end of that said
    #[arg(long, value_name = "PLACE")]
    pub after: Option<String>,
}

/// What to do with the history as a whole.
#[derive(Debug, Subcommand)]
pub enum StoreAction {
    /// Verify every content, entry, chain, request and pair against its digest
    ///
    /// Something wrong ends with exit code 1, and is named.
    Check,
    /// Say how much there is, and how much space it takes
    Stats,
    /// Copy the history to a file that is not there yet: an SQLite history, whatever this one is
    Backup {
        /// The file
        file: PathBuf,
    },
    /// Copy the whole history to another database, and prove that both are equal
    ///
    /// The other one must be empty. It is written whole or not at all, so what failed can be begun again. What is
    /// written to this one meanwhile is not copied: stop the gateways first.
    Migrate {
        /// Where to: sqlite:FILE, postgres://…, or env:NAME and file:PATH that hold one
        #[arg(long, value_name = "URL")]
        to: String,
        /// Where from [default: the history that the configuration names]
        #[arg(long, value_name = "URL")]
        from: Option<String>,
    },
    /// Bring a history that an older version wrote to the schema of this one
    ///
    /// `serve`, `run`, `chat`, `import` and `carry` do so by themselves; whatever only reads or takes out leaves an older
    /// history as it is. Gateways of the older version refuse it from then on, so stop them first, and take a backup.
    Upgrade,
    /// Rebuild the search index from the entries
    Reindex,
    /// Take old conversations out, with all that no other one shares
    #[command(after_long_help = examples::PRUNE)]
    Prune(PruneArgs),
}

/// Which conversations to take out.
#[derive(Debug, clap::Args)]
#[group(id = "which", required = true, multiple = false)]
pub struct WhichArgs {
    /// Those to which nothing was added for so long: 90d, 12h
    #[arg(long, value_name = "AGE")]
    pub older_than: Option<String>,
    /// The oldest, until the contents of the rest take no more: 500MB, 20GB; `stats` says how much they take
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// This one: its id, or the beginning of it; may be repeated
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(conversations))]
    pub conversation: Vec<String>,
}

/// What to take out, and how.
#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// Which conversations
    #[command(flatten)]
    pub which: WhichArgs,
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// How it is done
    #[command(flatten)]
    pub care: CareArgs,
    /// Give the space back to the file system afterwards; takes as long as copying the rest, and writers wait
    #[arg(long, conflicts_with = "dry_run")]
    pub shrink: bool,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Write a file to begin with: what was found, and everything else as comments
    Init {
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
    },
    /// Say whether the configuration is valid, and what there is to know about it
    Check,
    /// Print every value in effect, with where it came from
    Show,
}

/// What to trust.
#[derive(Debug, clap::Args)]
pub struct TrustArgs {
    /// The file, or the directory that it is in [default: throughline.toml in the working directory]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Forget what was decided about it
    #[arg(long)]
    pub forget: bool,
    /// List every file that was trusted or refused
    #[arg(long, conflicts_with_all = ["file", "forget"])]
    pub list: bool,
}

/// What to import.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// claude-code, codex, opencode, jsonl (our own form), chat.json, messages.json, responses.json; or a file
    #[arg(value_name = "FROM")]
    pub from: Option<String>,
    /// A file, a folder of sessions, or a part of a session's id
    #[arg(value_name = "PATH")]
    pub path: Option<String>,
    /// The session that was changed last
    #[arg(long, conflicts_with_all = ["path", "all"])]
    pub latest: bool,
    /// All sessions
    #[arg(long, conflicts_with = "path")]
    pub all: bool,
    /// All sessions, and whatever is added to them, until Ctrl-C
    #[arg(long, conflicts_with_all = ["path", "latest"])]
    pub watch: bool,
    /// How many to list at most
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: u32,
}

/// What to export, and how.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The conversation: its id, the beginning of it, or @last
    #[arg(add = ArgValueCompleter::new(conversations))]
    pub id: String,
    /// What to write
    #[arg(long, value_name = "FORM")]
    pub to: FormName,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE", conflicts_with = "install")]
    pub output: Option<PathBuf>,
    /// Of a page: take out keys, tokens, mail addresses and the names of home directories
    #[arg(long)]
    pub redact: bool,
    /// Put the session where the agent looks for it, and print the command that goes on with it
    #[arg(long)]
    pub install: bool,
    /// The directory that the session works in [default: where it did, else this one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The model that a request body asks for [default: the one that answered last]
    #[arg(long)]
    pub model: Option<String>,
}

/// What to carry where.
#[derive(Debug, clap::Args)]
pub struct CarryArgs {
    /// The agent whose session it is: claude-code, codex or opencode; or a conversation of the history
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The agent to go on in
    #[arg(long, value_name = "AGENT")]
    pub to: AgentName,
    /// The session: a file, or a part of its id [default: the one that was changed last]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The directory to go on in [default: that of the session]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// How many tokens of history the other agent is given [default: by its usual window]
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
    /// Run the command that goes on, instead of printing it
    #[arg(long)]
    pub start: bool,
    /// Write what could not be carried as it was, and why, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// How to translate.
#[derive(Debug, clap::Args)]
pub struct ConvertArgs {
    /// The dialect of the input
    #[arg(long, value_name = "DIALECT")]
    pub from: DialectName,
    /// The dialect of the output
    #[arg(long, value_name = "DIALECT")]
    pub to: DialectName,
    /// What the target accepts [default: the rules of the dialect's own provider]
    #[arg(long, value_name = "RULES")]
    pub rules: Option<String>,
    /// How tool history is shown
    #[arg(long, default_value = "native")]
    pub strategy: StrategyName,
    /// The form of text-embed
    #[arg(long, value_name = "FORM", default_value = "plain")]
    pub embed: EmbedName,
    /// What becomes of reasoning that the target did not issue
    #[arg(long, default_value = "drop")]
    pub reasoning: ReasoningName,
    /// The model name to send [default: the one in the request]
    #[arg(long)]
    pub model: Option<String>,
    /// Write what was changed, and why, to this file as JSON, one line for each document
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The input [default: standard input]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// How much may be sent, and what may be done for it.
#[derive(Debug, clap::Args)]
pub struct CompactArgs {
    /// The dialect of the request
    #[arg(long, value_name = "DIALECT")]
    pub dialect: DialectName,
    /// How many tokens the whole prompt may have
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget: u64,
    /// How many tokens calls and results may have together [default: what the budget leaves]
    #[arg(long, value_name = "TOKENS")]
    pub threshold: Option<u64>,
    /// How many of the latest calls stay whole unless they alone exceed the budget [default: a few]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// What may be done
    #[arg(long, default_value = "default")]
    pub policy: PolicyName,
    /// Offer the model no tool that gives back what was taken out
    #[arg(long)]
    pub no_recall: bool,
    /// Fill the whole budget, as for a backend that takes over, instead of leaving room for the next requests
    #[arg(long)]
    pub fill: bool,
    /// The model to count for [default: the one in the request]
    #[arg(long)]
    pub model: Option<String>,
    /// Write what became of each entry, and why, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The request [default: standard input]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// How a brief is written.
#[derive(Debug, clap::Args)]
pub struct BriefArgs {
    /// The dialect of the input
    #[arg(long, value_name = "DIALECT")]
    pub dialect: DialectName,
    /// The most characters of one result; more is cut in the middle [default: handover.max_result_chars]
    #[arg(long, value_name = "N")]
    pub max_chars: Option<usize>,
    /// The most characters of all results, the latest first [default: handover.max_tool_context_chars]
    #[arg(long, value_name = "N")]
    pub max_total_chars: Option<usize>,
    /// Leave out the summary of what was said
    #[arg(long)]
    pub no_summary: bool,
    /// Write what became of each message, and why, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The input [default: standard input]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// How the demo is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DemoArgs {
    /// End when the story is told, instead of leaving the inspector open
    #[arg(long)]
    pub once: bool,
    /// Open no browser
    #[arg(long)]
    pub no_browser: bool,
}

/// How the simulated backend behaves.
#[derive(Debug, clap::Args)]
pub struct SimArgs {
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4142")]
    pub listen: SocketAddr,
    /// What to answer, instead of thinking; docs/sim.md describes the format
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Answer 400 to tool calls and results in the history
    #[arg(long)]
    pub reject_native: bool,
    /// Keep no responses: previous_response_id leads nowhere
    #[arg(long)]
    pub no_state: bool,
    /// Accept what the providers would refuse
    #[arg(long)]
    pub lenient: bool,
    /// Whose rules hold for Chat Completions
    #[arg(long, visible_alias = "rules", value_name = "PROFILE", default_value = "openai-chat")]
    pub profile: ChatProfile,
    /// A model that it has, may be repeated [default: every name is answered to]
    #[arg(long)]
    pub model: Vec<String>,
    /// The key that clients must present; without it they get the provider's own 401
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// What ids and seals are made from: backends with equal seeds accept each other's seals
    #[arg(long, default_value = "sim")]
    pub seed: String,
}

impl ConvertArgs {
    /// Returns the strategy that the options name.
    pub const fn strategy(&self) -> Strategy {
        match (self.strategy, self.embed) {
            (StrategyName::Native, _) => Strategy::Native,
            (StrategyName::TextEmbed, EmbedName::Plain) => Strategy::TextEmbed(EmbedForm::Plain),
            (StrategyName::TextEmbed, EmbedName::Comments) => Strategy::TextEmbed(EmbedForm::Comments),
        }
    }

    /// Returns what becomes of foreign reasoning.
    pub const fn foreign_reasoning(&self) -> ForeignReasoning {
        match self.reasoning {
            ReasoningName::Drop => ForeignReasoning::Drop,
            ReasoningName::AsText => ForeignReasoning::AsText,
        }
    }
}

/// Reads a number that counts something of which there is at least one.
fn at_least_one(typed: &str) -> Result<std::num::NonZeroU32, String> {
    typed.parse().map_err(|_| "it is to be a number from 1 on".to_owned())
}
