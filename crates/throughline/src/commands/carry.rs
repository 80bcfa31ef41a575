//! `throughline carry`: a session of one agent goes on in another.
//!
//! The session is imported, made to fit the other agent's window, written as one of its sessions, and the command
//! that goes on with it is printed or run.

use super::export::{self, Branch};
use super::{history, import};
use crate::args::{Args, CarryArgs};
use crate::exit::CommandError;
use crate::output::{Bar, Unit};
use crate::private;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use throughline_carry::{Agent, Told};
use throughline_core::plan::{Budget, Count, Measured, Planner, Tokens, ToolRule, ToolRules};
use throughline_core::{Action, ConversationId, Entry, Kind, Place, Report, Role, Text};
use throughline_gateway::config::{Config, History as Settings};
use throughline_store::History;
use throughline_tokens::{Counts, Gauge};

/// Carries a session.
pub fn run(asked: &CarryArgs, args: &Args) -> Result<(), CommandError> {
    let to = Agent::from(asked.to);
    // What cannot go on is not begun.
    asked.cwd.as_deref().map_or(Ok(()), there)?;
    if asked.start {
        installed(to)?;
    }
    let config = history::configured(args)?;
    let history = history::open(&config)?;
    let Brought { conversation, sub_agents } = brought(&history, asked, args)?;
    let branch = history::wait(export::read(&*history, &conversation))?;
    let mut report = Report::default();
    let budget = asked.budget.unwrap_or_else(|| to.usual_budget());
    let mut shown = planned(&branch, budget, &config, &mut report)?;
    if !report.changes.is_empty() && recalls(&config) {
        shown.push(how_to_recall(&conversation, &report, shown.last(), args));
    }
    let mut session = export::session(to, &branch, &shown, asked.cwd.as_deref(), report)?;
    if sub_agents > 0 {
        let reason = format!("{sub_agents} of them stay in the history, as conversations of their own");
        session.report.field(Action::Dropped, "sub-agents", reason);
    }
    export::remark_on(&session.report, &branch.told, args);
    if let Some(file) = &asked.report {
        let lines = export::report_lines(&session.report, &branch.told);
        private::write(file, lines).map_err(|source| import::find::failed(file, source))?;
    }
    if asked.start {
        there(Path::new(session.header.cwd.as_str()))?;
    }
    let installed = export::install(&session)?;
    if asked.start { start(&session) } else { export::tell_installed(&session, &installed, args) }
}

/// Makes sure that there is a directory to go on in.
fn there(cwd: &Path) -> Result<(), CommandError> {
    if cwd.is_dir() {
        return Ok(());
    }
    let missing = CommandError::no(format!("{} is not there", cwd.display()));
    Err(missing.hint("--cwd names another directory to go on in"))
}

/// Makes sure that an agent is in the path.
fn installed(agent: Agent) -> Result<(), CommandError> {
    let [program, ..] = agent.resume_command("");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(&program).is_file()) {
        return Ok(());
    }
    Err(CommandError::no(format!("{program} is not installed, or not in the path"))
        .hint("without --start the session is written, and the command that goes on with it printed"))
}

/// Goes on with a session, until its agent ends.
fn start(session: &export::Session) -> Result<(), CommandError> {
    let command = session.agent.resume_command(&session.header.id);
    let words = command.join(" ");
    let [program, how, id] = command;
    let status = Command::new(&program).args([how, id]).current_dir(session.header.cwd.as_str()).status();
    let status = status.map_err(|source| {
        CommandError::file(&program, source).hint(format!("the session is there; go on with `{words}`"))
    })?;
    if status.success() { Ok(()) } else { Err(CommandError::no(format!("{program} ended with {status}"))) }
}

/// What is to be carried.
struct Brought {
    conversation: ConversationId,
    /// How many sub-agents it had.
    sub_agents: usize,
}

/// Returns the conversation to carry: of the history, or a session that is imported now.
fn brought(history: &Arc<dyn History>, asked: &CarryArgs, args: &Args) -> Result<Brought, CommandError> {
    let Some(agent) = Agent::from_name(&asked.from) else {
        if asked.session.is_some() {
            return Err(CommandError::bad_input("--session: only of an agent's sessions one can be chosen"));
        }
        let conversation = history::wait(async { history::find(&**history, &asked.from).await })?;
        return Ok(Brought { conversation, sub_agents: 0 });
    };
    let found = match &asked.session {
        Some(name) => import::find::named(agent, name)?,
        None => import::latest(&[agent])?,
    };
    let bar = Bar::new(!args.quiet, Unit::Bytes);
    let (mut conversation, mut sub_agents) = (None, 0);
    for found in &found {
        let imported = import::quietly(history, found, &bar)?;
        bar.clear();
        import::remark_on(&imported, args);
        sub_agents += imported.sub_agents.len();
        if found.place.is_sub_agent() {
            sub_agents += usize::from(imported.conversation.is_some());
        } else {
            conversation = imported.conversation;
        }
    }
    conversation.map(|conversation| Brought { conversation, sub_agents }).ok_or_else(|| {
        CommandError::no(format!("there is no session of {agent} to carry"))
            .hint("`throughline import` lists the sessions that were found; --session takes the path of one")
    })
}

/// Returns what is shown of a branch: all of it, or if that does not fit, what was said since the last summary
/// shortened.
fn planned(
    branch: &Branch,
    budget: u64,
    config: &Config,
    report: &mut Report,
) -> Result<Vec<Told>, CommandError> {
    let is_summary = |told: &Told| matches!(told.entry.kind, Kind::Summarised(_));
    let from = branch.told.iter().rposition(is_summary).unwrap_or(0);
    let place =
        |number: usize| Some(Place { message: u32::try_from(number).unwrap_or(u32::MAX), block: None });
    let shown = branch.told[from..].iter().enumerate();
    let entries: Vec<Entry> =
        shown.map(|(number, told)| Entry { place: place(from + number), ..told.entry.clone() }).collect();
    let settings = settings(config);
    let rules = settings.into_iter().flat_map(|settings| &settings.rules).map(|rule| ToolRule {
        tools: rule.tools.iter().map(|name| Text::from(name.as_str())).collect(),
        kind: rule.kind.plans(),
        key: rule.key.as_deref().map(Text::from),
    });
    let usual = Budget::default();
    let budget = Budget {
        prompt: Some(Tokens(budget)),
        tool_history: None,
        recent_calls_to_keep: settings
            .and_then(|settings| settings.recent_calls_to_keep)
            .map(|calls| calls as usize),
        policy: settings.map_or(usual.policy, |settings| settings.policy.plans()),
        ..usual
    };
    let counter = Counter::new();
    let sizes: Vec<Tokens> = entries.iter().map(|entry| counter.entry(entry)).collect();
    let rules = ToolRules::new(rules.collect());
    // A handle is good for the gateway's own tool, which the other agent's model does not have.
    let planner = Planner { budget: &budget, rules: &rules, count: &counter, recall: false };
    let history = Measured { entries: &entries, sizes: &sizes, besides: Tokens(0) };
    let plan = planner.hand_over(history).map_err(|error| CommandError::no(format!("--budget: {error}")))?;
    if plan.is_untouched() {
        return Ok(branch.told.clone());
    }
    let mut at = branch.told[from].at;
    let mut shown = branch.told[..from].to_vec();
    for entry in plan.apply(&entries, report) {
        let of = entry.place.and_then(|place| branch.told.get(place.message as usize));
        at = of.map_or(at, |told| told.at);
        shown.push(Told { entry, at, number: of.and_then(|told| told.number) });
    }
    Ok(shown)
}

/// Returns how the history of the active backend is to be shown.
fn settings(config: &Config) -> Option<&Settings> {
    config.backends.iter().find(|backend| backend.name == config.active).map(|backend| &backend.history)
}

/// Says whether the model is to be able to have back what was left out.
fn recalls(config: &Config) -> bool {
    settings(config).is_none_or(|settings| settings.recall)
}

/// Tells the model where all of it is: agents can run a command.
fn how_to_recall(conversation: &ConversationId, report: &Report, last: Option<&Told>, args: &Args) -> Told {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let option = |name: &str, path: Option<&PathBuf>| {
        path.map_or_else(String::new, |path| {
            format!(" --{name} {}", export::quoted(&absolute(path).display().to_string()))
        })
    };
    let place = format!("{}{}", option("config", args.config.as_ref()), option("data", args.data.as_ref()));
    let words = format!(
        "[This session was carried here from another agent, and {} of its tool calls, results and thoughts are shortened \
         or left out. All of it is kept: `throughline show {conversation} --view pairs{place}` prints each call with its \
         result, and `throughline search WORDS{place}` finds one.]",
        report.changes.len()
    );
    Told { entry: Entry::said(Role::User, words), at: last.map_or(0, |told| told.at), number: None }
}

/// Counts on the safe side: whose model will read it is not known.
struct Counter {
    gauge: Gauge,
    counts: Counts,
}

impl Counter {
    fn new() -> Self {
        let gauge = Gauge::of_model("claude");
        gauge.vocabulary().load();
        Self { gauge, counts: Counts::default() }
    }

    fn entry(&self, entry: &Entry) -> Tokens {
        Tokens(self.gauge.tokens_at_most(self.gauge.entry(&self.counts, entry)))
    }
}

impl Count for Counter {
    fn count(&self, text: &str) -> Tokens {
        Tokens(self.gauge.tokens_at_most(self.gauge.text(&self.counts, text)))
    }
}
