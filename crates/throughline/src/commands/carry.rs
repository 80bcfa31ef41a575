//! `throughline carry`: a session of one agent goes on in another.
//!
//! The session is imported, made to fit the other agent's window, written as one of its sessions, and the command
//! that goes on with it is printed or run.

use super::export::{self, Branch};
use super::{history, import};
use crate::args::{Args, CarryArgs};
use crate::exit::CommandError;
use crate::output::{self, Bar, Unit};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use throughline_carry::{Agent, Told};
use throughline_core::plan::{Budget, Count, Measured, Planner, Tokens, ToolRule, ToolRules};
use throughline_core::{ConversationId, Entry, Kind, Place, Report, Text};
use throughline_gateway::config::Config;
use throughline_store::History;
use throughline_tokens::{Counts, Gauge};

/// Carries a session.
pub fn run(asked: &CarryArgs, args: &Args) -> Result<(), CommandError> {
    let to = Agent::from(asked.to);
    let config = history::configured(args)?;
    let history = history::open(&config)?;
    let conversation = brought(&history, asked, args)?;
    let branch = history::wait(export::read(&*history, &conversation))?;
    let mut report = Report::default();
    let budget = asked.budget.unwrap_or_else(|| to.usual_budget());
    let shown = planned(&branch, budget, &config, &mut report)?;
    let session = export::session(to, &branch, &shown, asked.cwd.as_deref(), report)?;
    export::remark_on(&session.report, &branch.told, args);
    if let Some(file) = &asked.report {
        let lines = export::report_lines(&session.report, &branch.told);
        std::fs::write(file, lines).map_err(|source| import::find::failed(file, source))?;
    }
    let installed = export::install(&session)?;
    if !asked.start {
        return export::tell_installed(&session, &installed, args);
    }
    if !Path::new(session.header.cwd.as_str()).is_dir() {
        let cwd = &session.header.cwd;
        return Err(CommandError::no(format!(
            "{cwd} is not there; --cwd names another directory to go on in"
        )));
    }
    let [program, how, id] = to.resume_command(&session.header.id);
    let status = Command::new(&program).args([how, id]).current_dir(session.header.cwd.as_str()).status();
    let status = status.map_err(|source| CommandError::file(&program, source))?;
    if status.success() { Ok(()) } else { Err(CommandError::no(format!("{program} ended with {status}"))) }
}

/// Returns the conversation to carry: of the history, or a session that is imported now.
fn brought(
    history: &Arc<dyn History>,
    asked: &CarryArgs,
    args: &Args,
) -> Result<ConversationId, CommandError> {
    let Some(agent) = Agent::from_name(&asked.from) else {
        if asked.session.is_some() {
            return Err(CommandError::bad_input("--session: only of an agent's sessions one can be chosen"));
        }
        return history::wait(async { history::find(&**history, &asked.from).await });
    };
    let found = match &asked.session {
        Some(name) => import::find::named(agent, name)?,
        None => import::chosen(&[agent], true)?,
    };
    let bar = Bar::new(!args.quiet, Unit::Bytes);
    let mut conversation = None;
    for found in &found {
        let imported = import::quietly(history, found, &bar)?;
        bar.clear();
        if !args.quiet {
            for (number, error) in &imported.damaged {
                output::remark(&format!("line {number} could not be read and was left out: {error}"));
            }
        }
        if !found.place.is_sub_agent() {
            conversation = Some(imported.conversation);
        }
    }
    conversation.ok_or_else(|| {
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
    let settings =
        config.backends.iter().find(|backend| backend.name == config.active).map(|backend| &backend.history);
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
            .map_or(usual.recent_calls_to_keep, |settings| settings.recent_calls_to_keep as usize),
        policy: settings.map_or(usual.policy, |settings| settings.policy.plans()),
        ..usual
    };
    let counter = Counter::new();
    let sizes: Vec<Tokens> = entries.iter().map(|entry| counter.entry(entry)).collect();
    let rules = ToolRules::new(rules.collect());
    let planner = Planner { budget: &budget, rules: &rules, count: &counter, recall: false };
    let history = Measured { entries: &entries, sizes: &sizes, besides: Tokens(0) };
    let plan = planner.hand_over(history).map_err(|error| CommandError::no(format!("--budget: {error}")))?;
    if plan.is_untouched() {
        return Ok(branch.told.clone());
    }
    let mut last = &branch.told[from];
    let mut shown = branch.told[..from].to_vec();
    for entry in plan.apply(&entries, report) {
        last = entry.place.and_then(|place| branch.told.get(place.message as usize)).unwrap_or(last);
        shown.push(Told { entry, ..last.clone() });
    }
    Ok(shown)
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
