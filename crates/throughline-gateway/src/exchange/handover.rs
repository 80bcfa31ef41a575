//! The handover: who takes a conversation over, why, and what it is shown of it (R15 to R21).
//!
//! A backend takes over when another one answered last, and so does another model of it when somebody switched to that.
//! It is shown the history itself, rendered for it; or a
//! brief of it, where it cannot take tool history, where the history would not fit even when shortened, where the
//! configuration says so, and where a new conversation goes on from an old one. The handover is an entry of the
//! history, in front of the answer, and holds the brief: later requests and other gateways show the same bytes.
//! Nothing is written before somebody has answered.

use super::failures::unrecorded;
use super::place::{Placed, SIDE_QUESTIONS};
use super::planning::{on_a_thread, prompt_limit, tool_rules};
use super::prompting::origin;
use super::{Running, place, recall};
use crate::async_summary::answering;
use crate::capability::Form;
use crate::config::{Backend, Handover as HandoverSettings, HandoverMode, HandoverSummary};
use crate::failure::gateway_error;
use crate::gateway::Gateway;
use crate::routing::{Destination, Reason};
use crate::switch;
use crate::telemetry::StoreUse;
use http::HeaderMap;
use throughline_core::{
    Ask, BriefOptions, BriefSummary, Change, Continued, ConversationId, Entry, Failure, FailureKind,
    Handover, Kind, Origin, Report, Side, Text, Tool, ToolForm, brief, joined_text, own_message,
};
use throughline_store::{Attempt, Exchanges, History, Locate, Paging, Scope, Standing, StoreError};
use throughline_wire::with_all_pairs;

/// The header by which a new conversation goes on from an old one.
pub const CONTINUE_HEADER: &str = "x-throughline-continue";

/// How many conversations may have gone on from one another; what was before those is not told.
const CONTINUED_MAX: usize = 8;

/// How many exchanges are looked through for the last that was answered.
const EXCHANGES_MAX: u32 = 16;

/// How often a brief that does not fit is made half as long.
const HALVINGS_MAX: u32 = 6;

/// How many characters make a token, at the least that is usual: code and logs have fewer than prose.
const CHARS_PER_TOKEN: usize = 3;

/// What the summary of a brief may take.
const SUMMARY_CHARS: usize = 8_000;

/// How many characters of tool context there are where nobody knows the window, and at least.
const TOOL_CHARS_UNKNOWN: usize = 60_000;
const TOOL_CHARS_LEAST: usize = 4_000;

/// How a shortened result in a brief says that it can be had back.
const RECALL_MARK: &str = "; recall ";

/// Why a backend is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In a word.
    pub by: Text,
    /// In words for people.
    pub reason: Text,
    /// Whether somebody chose the model as well, for the conversation or for all: then another model takes over.
    pub picks_model: bool,
}

/// A backend about to take over.
#[derive(Clone, Debug)]
pub struct Takeover {
    /// The entry that the history is given when it has answered.
    pub handover: Handover,
    /// What the brief made of the history, if there is one.
    pub changes: Vec<Change>,
}

/// How long a brief may be, and what it says of what is left out.
#[derive(Clone, Debug)]
pub struct Length {
    /// What the configuration says.
    pub settings: HandoverSettings,
    /// How often it was made half as long since.
    pub halvings: u32,
    /// Whether the model can have back what is left out.
    pub recall: bool,
    /// How many characters the window of the backend has room for, where it is known.
    pub room: Option<usize>,
}

impl Cause {
    /// Says why a request goes where it goes.
    #[must_use]
    pub fn of(
        reason: Reason,
        standing: &Standing,
        conversation: &ConversationId,
        model: Option<&str>,
    ) -> Self {
        let asked = || Text::from(format!("the request asks for {}", model.unwrap_or("no model")));
        let switched = |scope: &Scope, whose: &str| {
            let by = switch::made_by(standing, scope);
            let how = if by == switch::By::Cli.name() { "throughline use" } else { "the HTTP interface" };
            let picks_model = switch::of(standing, scope).is_some_and(|pick| pick.model.is_some());
            Self { reason: Text::from(format!("{whose} switched by {how}")), by, picks_model }
        };
        let (by, reason) = match reason {
            Reason::Header => ("header", Text::from_static("the request names it in x-throughline-backend")),
            Reason::Name | Reason::Model => ("model", asked()),
            Reason::Conversation => {
                return switched(&Scope::Conversation(conversation.clone()), "this conversation was");
            }
            Reason::Switch => return switched(&Scope::Everywhere, "all conversations were"),
            Reason::Active => ("config", Text::from_static("it is the active backend")),
        };
        // Agents ask other models for titles and the like; that alone hands nothing over.
        Self { by: Text::from_static(by), reason, picks_model: false }
    }
}

/// Finds what a request goes on from: the conversation that its header names, or what the history says.
///
/// # Errors
/// When there is no such conversation, when this one is not new, or when the history cannot be read and `passes` does not
/// say to do without. What a header asks for is never done without.
pub async fn earlier(
    gateway: &Gateway,
    headers: &HeaderMap,
    conversation: &ConversationId,
    entries: &[Entry],
    passes: bool,
) -> Result<(Vec<Entry>, Option<Continued>), Failure> {
    let history = &*gateway.history;
    let unread = |error: StoreError| {
        gateway.telemetry.store_failed(StoreUse::Read);
        unrecorded(&error)
    };
    let named = named(headers)?;
    if let Some(continued) = last_continued(entries) {
        if let Some(other) = named.filter(|name| *name != continued.conversation.as_str()) {
            let message = format!(
                "`{conversation}` continues `{}` already, and cannot continue `{other}` as well",
                continued.conversation
            );
            return Err(refused(FailureKind::InvalidRequest, &message));
        }
        return match read(history, &continued).await {
            Err(error) if passes => {
                gateway.telemetry.store_failed(StoreUse::Read);
                tracing::error!(%error, continued = %continued.conversation, "answered without what it goes on from");
                Ok((Vec::new(), None))
            }
            before => Ok((before.map_err(unread)?, None)),
        };
    }
    let Some(name) = named else { return Ok((Vec::new(), None)) };
    if name == conversation.as_str() {
        let message = format!("`{conversation}` cannot continue itself; leave the header out to go on in it");
        return Err(refused(FailureKind::InvalidRequest, &message));
    }
    if entries.iter().any(|entry| entry.side() == Side::Assistant) {
        let message =
            format!("`{conversation}` has begun already, and only a new conversation can continue another");
        return Err(refused(FailureKind::InvalidRequest, &message));
    }
    let located = history.locate(Locate::Conversation(ConversationId::new(name))).await;
    let located = located.map_err(unread)?;
    let Some(entry) = located.and_then(|found| found.entry) else {
        return Err(refused(FailureKind::NotFound, &format!("no conversation is called `{name}`")));
    };
    let continued = Continued { conversation: ConversationId::new(name), entry };
    let before = read(history, &continued).await.map_err(unread)?;
    Ok((before, Some(continued)))
}

/// Returns the conversation that a request asks to have continued.
fn named(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let named = headers.get(CONTINUE_HEADER).map(http::HeaderValue::to_str).transpose();
    named.map_err(|_| refused(FailureKind::InvalidRequest, "must be an id"))
}

fn refused(kind: FailureKind, message: &str) -> Failure {
    let code = match kind {
        FailureKind::NotFound => "throughline_no_such_conversation",
        _ => "throughline_invalid_request",
    };
    Failure {
        param: Some(Text::from_static(CONTINUE_HEADER)),
        ..gateway_error(kind, code, format!("{CONTINUE_HEADER}: {message}"))
    }
}

/// Returns what was said in a conversation up to an entry, and in those that it goes on from itself.
async fn read(history: &dyn History, continued: &Continued) -> Result<Vec<Entry>, StoreError> {
    let mut all: Vec<Entry> = Vec::new();
    let mut next = Some(continued.clone());
    for _ in 0..CONTINUED_MAX {
        let Some(Continued { entry, .. }) = next.take() else { break };
        let kept = history.entries(throughline_store::Entries::Branch(entry)).await?;
        let entries: Vec<Entry> = kept.into_iter().map(|kept| kept.entry).collect();
        next = last_continued(&entries);
        let is_told =
            |entry: &Entry| entry.side() != Side::System && !matches!(entry.kind, Kind::HandedOver(_));
        all.splice(0..0, entries.into_iter().filter(is_told));
    }
    Ok(all)
}

fn last_continued(entries: &[Entry]) -> Option<Continued> {
    entries.iter().rev().find_map(|entry| match &entry.kind {
        Kind::HandedOver(handover) => handover.continues.clone(),
        _ => None,
    })
}

fn last_origin(entries: &[Entry]) -> Option<&Origin> {
    entries.iter().rev().find_map(|entry| entry.origin.as_ref())
}

/// Returns who answered last: in this history, or else in the conversation, where the client has brought a history of
/// which nothing was answered here.
pub async fn answered_last(history: &dyn History, placed: &Placed) -> Option<Origin> {
    let last = last_origin(&placed.history).cloned();
    let is_answered = || placed.history.iter().any(|entry| entry.side() == Side::Assistant);
    // What is asked on the side, and what only begins, takes nothing over.
    if last.is_some() || placed.identified == SIDE_QUESTIONS || (placed.known == 0 && !is_answered()) {
        return last;
    }
    let latest = Exchanges::Of(placed.conversation.clone(), Paging::first(EXCHANGES_MAX));
    let exchanges = history.exchanges(latest).await.map(|page| page.items).unwrap_or_else(|error| {
        tracing::warn!(%error, "who answered last could not be looked up");
        Vec::new()
    });
    let answered = exchanges.iter().find(|exchange| exchange.after.is_some())?;
    let Attempt { backend, dialect, model, .. } = answering(answered)?.clone();
    Some(Origin { backend, dialect, model: model.unwrap_or_default() })
}

/// Says who takes over from whom, if `to` does; `last` is who answered last.
pub fn takeover(
    placed: &Placed,
    to: Origin,
    cause: Cause,
    continued: Option<&Continued>,
    last: Option<Origin>,
) -> Option<Takeover> {
    let Cause { by, reason, picks_model } = cause;
    let handover = match continued {
        Some(continued) => Handover {
            from: last_origin(&placed.earlier).cloned(),
            to,
            by: Text::from_static("continue"),
            reason: Text::from(format!("continues {}", continued.conversation)),
            brief: None,
            continues: Some(continued.clone()),
        },
        None => {
            let is_another =
                |from: &Origin| from.backend != to.backend || (picks_model && from.model != to.model);
            let from = last.filter(is_another)?;
            Handover { from: Some(from), to, by, reason, brief: None, continues: None }
        }
    };
    Some(Takeover { handover, changes: Vec::new() })
}

/// Writes the brief of a history for a backend, and says what became of the history in it.
pub fn written(
    entries: &[Entry],
    backend: &Backend,
    words: Option<&str>,
    length: &Length,
) -> (Option<Text>, Vec<Change>) {
    let Length { settings, halvings, recall, room } = length;
    let rules = tool_rules(backend);
    let summary = match (words, settings.summary) {
        (Some(words), _) => BriefSummary::Words(words),
        (None, HandoverSummary::Off) => BriefSummary::Off,
        (None, HandoverSummary::Digest | HandoverSummary::Model) => BriefSummary::Digest,
    };
    let options = BriefOptions {
        rules: &rules,
        summary,
        tools: settings.tool_context,
        result_chars_max: settings.max_result_chars.map(|chars| chars >> halvings),
        tool_chars_max: Some(tool_chars(settings, *room) >> halvings),
        recall: *recall,
    };
    let mut report = Report::default();
    let entries = with_all_pairs(entries.to_vec());
    (brief(&entries, &options, &mut report), report.changes)
}

/// Returns how many characters of tool context a brief may hold: what the window takes, and no more than is configured.
fn tool_chars(settings: &HandoverSettings, room: Option<usize>) -> usize {
    match (settings.max_tool_context_chars, room) {
        (Some(configured), Some(room)) => configured.min(room),
        (configured, room) => configured.or(room).unwrap_or(TOOL_CHARS_UNKNOWN),
    }
}

/// Returns how many characters of tool context a destination has room for beside the rest of a request, roughly; if that
/// turns out to be too many, the brief is made shorter.
pub fn room(destination: &Destination, ask: &Ask, entries: &[Entry]) -> Option<usize> {
    let limit = usize::try_from(prompt_limit(destination, ask)?).unwrap_or(usize::MAX);
    let own = own_message(entries).unwrap_or(0..0);
    let is_shown = |at: usize, entry: &Entry| own.contains(&at) || entry.side() == Side::System;
    let said = entries.iter().enumerate().filter(|(at, entry)| is_shown(*at, entry));
    let said: usize =
        said.filter_map(|(_, entry)| entry.as_said()).map(|said| joined_text(&said.parts).len()).sum();
    let tools: usize = ask.tools.iter().map(tool_length).sum();
    let besides = said + tools + SUMMARY_CHARS;
    Some(limit.saturating_mul(CHARS_PER_TOKEN).saturating_sub(besides).max(TOOL_CHARS_LEAST))
}

fn tool_length(tool: &Tool) -> usize {
    let schema = match &tool.form {
        ToolForm::Function { schema, .. } => schema.as_ref().map_or(0, |schema| schema.len()),
        _ => tool.wire.as_ref().map_or(0, |wire| wire.text.len()),
    };
    schema + tool.name.len() + tool.description.as_ref().map_or(0, |text| text.len())
}

/// Says whether something is left out of a brief that could be had back.
pub fn cuts(brief: &str) -> bool {
    brief.contains(RECALL_MARK)
}

/// Says whether the model may have back what was left out. One that is shown tool history as text has what it recalls
/// told as text.
pub fn may_recall(destination: &Destination, ask: &Ask) -> bool {
    destination.backend.history.recall && recall::is_usable(ask)
}

impl Takeover {
    /// Says whether the backend is given a brief from the start; `native` says whether it takes tool history.
    #[must_use]
    pub const fn is_briefed(&self, mode: HandoverMode, native: bool) -> bool {
        match mode {
            _ if self.handover.continues.is_some() => true,
            HandoverMode::Brief => true,
            HandoverMode::Auto => !native,
            HandoverMode::Native => false,
        }
    }
}

impl Running {
    /// Notes that a destination takes the conversation over, if it does, and writes the brief if it gets one.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub(super) async fn hand_over(&mut self, leg: usize, form: Form) -> Result<(), Failure> {
        // The rest of an answer goes to whom its beginning came from.
        if self.recalls.have_begun() {
            return Ok(());
        }
        let stood_in_for = (leg > 0).then(|| origin(&self.destinations[0]));
        let last = answered_last(&*self.gateway.history, &self.placed).await.or(stood_in_for);
        let (to, cause) = (origin(&self.destinations[leg]), self.cause_of(leg));
        self.placed.handover = takeover(&self.placed, to, cause, self.continued.as_ref(), last);
        let mode = self.setup.config.handover.mode;
        match &self.placed.handover {
            Some(takeover) if takeover.is_briefed(mode, form.native) => self.write_brief(leg, 0).await,
            Some(_) | None => Ok(()),
        }
    }

    fn cause_of(&self, leg: usize) -> Cause {
        if leg == 0 {
            return self.cause.clone();
        }
        let first = &self.destinations[0].backend.name;
        let failure = self.recorder.last_failure().unwrap_or(Text::from_static("no answer"));
        let reason = format!("{first} failed: {failure}").into();
        Cause { by: Text::from_static("failover"), reason, picks_model: false }
    }

    /// Says whether a destination that takes over may be given a brief, because nothing else fits.
    pub(super) fn may_be_briefed(&self) -> bool {
        let mode = self.setup.config.handover.mode;
        let may_shorten =
            |takeover: &Takeover| takeover.handover.brief.is_some() || mode == HandoverMode::Auto;
        !self.recalls.have_begun() && self.placed.handover.as_ref().is_some_and(may_shorten)
    }

    /// Gives a destination a brief that fits, if one does; `halvings` says how often it was made shorter already.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub(super) async fn write_brief(&mut self, leg: usize, halvings: u32) -> Result<(), Failure> {
        self.read_whole().await?;
        let destination = self.destinations[leg].clone();
        let entries: Vec<Entry> = self.placed.earlier.iter().chain(&self.placed.history).cloned().collect();
        let settings = self.setup.config.handover.clone();
        let words = match settings.summary {
            HandoverSummary::Model => self.summarised(&destination, &entries).await,
            HandoverSummary::Off | HandoverSummary::Digest => None,
        };
        let recall = may_recall(&destination, &self.ask);
        let room = room(&destination, &self.ask, &entries);
        let length = Length { settings, halvings, recall, room };
        let written = on_a_thread(move || written(&entries, &destination.backend, words.as_deref(), &length));
        let (text, changes) = written.await?;
        if let Some(takeover) = &mut self.placed.handover {
            takeover.handover.brief = text;
            takeover.changes = changes;
        }
        Ok(())
    }

    /// Says whether a brief may be made half as long once more.
    pub(super) const fn may_halve(halvings: u32) -> bool {
        halvings < HALVINGS_MAX
    }

    /// Returns the tool by which the model can have back what a brief cut, if it is to be offered.
    pub(super) fn recall_of_brief(&self, destination: &Destination) -> Option<Text> {
        let brief = self.placed.brief_for(&destination.backend.name)?;
        let is_offered = cuts(&brief) && may_recall(destination, &self.ask);
        (is_offered && !self.recalls.are_used_up()).then(|| recall::tool_name(&self.ask))
    }

    /// Returns all that can be recalled: what was said here and in the conversations that this one goes on from.
    pub(super) fn recallable(&self, destination: &Destination) -> Vec<Entry> {
        let mut all = self.placed.earlier.clone();
        all.extend(place::shown(&self.ask, &self.placed, &destination.backend));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Dialect, EntryId};

    #[test]
    fn a_cause_says_in_a_word_and_in_words_why_a_backend_is_asked() {
        let standing = Standing::default();
        let conversation = ConversationId::new("conv");
        let cause = |reason| Cause::of(reason, &standing, &conversation, Some("glm/x"));
        for (reason, by, words) in [
            (Reason::Header, "header", "x-throughline-backend"),
            (Reason::Name, "model", "asks for glm/x"),
            (Reason::Model, "model", "asks for glm/x"),
            (Reason::Active, "config", "active"),
            (Reason::Switch, "http", "all conversations were switched"),
        ] {
            let cause = cause(reason);
            assert_eq!(cause.by, by);
            assert!(cause.reason.contains(words), "{}", cause.reason);
        }
    }

    #[test]
    fn what_a_conversation_goes_on_from_is_in_its_last_handover() {
        let to = Origin { backend: "b".into(), dialect: Dialect::Chat, model: "m".into() };
        let handed_over = |continues| {
            let (by, reason) = (Text::default(), Text::default());
            Entry::new(Kind::HandedOver(Handover {
                from: None,
                to: to.clone(),
                by,
                reason,
                brief: None,
                continues,
            }))
        };
        let continued = Continued { conversation: ConversationId::new("old"), entry: EntryId::new("e") };
        assert_eq!(last_continued(&[handed_over(None)]), None);
        let entries = [handed_over(Some(continued.clone())), handed_over(None)];
        assert_eq!(last_continued(&entries), Some(continued));
    }
}
