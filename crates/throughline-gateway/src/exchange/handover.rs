//! The handover: who takes a conversation over, why, and what it is shown of it (R15 to R21).
//!
//! A backend takes over when another one answered last. It is shown the history itself, rendered for it; or a
//! brief of it, where it cannot take tool history, where the history would not fit even when shortened, where the
//! configuration says so, and where a new conversation goes on from an old one. The handover is an entry of the
//! history, in front of the answer, and holds the brief: later requests and other gateways show the same bytes.
//! Nothing is written before somebody has answered.

use super::planning::tool_rules;
use super::prompting::origin;
use super::{Running, place, recall, unrecorded};
use crate::capability::Form;
use crate::config::{HandoverMode, HandoverSummary};
use crate::gateway::Gateway;
use crate::ingress::reject::own;
use crate::routing::{Destination, Reason};
use crate::switch;
use crate::telemetry::StoreUse;
use http::HeaderMap;
use throughline_core::{
    BriefOptions, BriefSummary, Change, Continued, ConversationId, Entry, Failure, FailureKind, Handover,
    Kind, Origin, Report, Side, Text, brief,
};
use throughline_store::{History, Locate, Scope, Standing, StoreError};

/// The header by which a new conversation goes on from an old one.
pub const CONTINUE_HEADER: &str = "x-throughline-continue";

/// How many conversations may have gone on from one another; what was before those is not told.
const CONTINUED_MAX: usize = 8;

/// How often a brief that does not fit is made half as long.
const HALVINGS_MAX: u32 = 6;

/// How a shortened result in a brief says that it can be had back.
const RECALL_MARK: &str = "; recall ";

/// Why a backend is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In a word.
    pub by: Text,
    /// In words for people.
    pub reason: Text,
}

/// A backend about to take over.
#[derive(Clone, Debug)]
pub struct Takeover {
    /// The entry that the history is given when it has answered.
    pub handover: Handover,
    /// What the brief made of the history, if there is one.
    pub changes: Vec<Change>,
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
            Self { reason: Text::from(format!("{whose} switched by {how}")), by }
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
        Self { by: Text::from_static(by), reason }
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
    if let Some(continued) = last_continued(entries) {
        return match read(history, &continued).await {
            Err(error) if passes => {
                gateway.telemetry.store_failed(StoreUse::Read);
                tracing::error!(%error, continued = %continued.conversation, "answered without what it goes on from");
                Ok((Vec::new(), None))
            }
            before => Ok((before.map_err(unread)?, None)),
        };
    }
    let Some(named) = headers.get(CONTINUE_HEADER) else { return Ok((Vec::new(), None)) };
    let name = named.to_str().map_err(|_| refused(FailureKind::InvalidRequest, "must be an id"))?;
    if entries.iter().any(|entry| entry.side() == Side::Assistant) {
        let message =
            format!("`{conversation}` has begun already, and only a new conversation can continue another");
        return Err(refused(FailureKind::InvalidRequest, &message));
    }
    let located = history.locate(Locate::Conversation(ConversationId::new(name))).await;
    let located = located.map_err(unread)?;
    let entry = located.filter(|found| found.conversation != *conversation).and_then(|found| found.entry);
    let Some(entry) = entry else {
        return Err(refused(FailureKind::NotFound, &format!("no conversation is called `{name}`")));
    };
    let continued = Continued { conversation: ConversationId::new(name), entry };
    let before = read(history, &continued).await.map_err(unread)?;
    Ok((before, Some(continued)))
}

fn refused(kind: FailureKind, message: &str) -> Failure {
    let code = match kind {
        FailureKind::NotFound => "throughline_no_such_conversation",
        _ => "throughline_invalid_request",
    };
    Failure {
        param: Some(Text::from_static(CONTINUE_HEADER)),
        ..own(kind, code, format!("{CONTINUE_HEADER}: {message}"))
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
        self.placed.handover = self.takeover(leg);
        let Some(takeover) = &self.placed.handover else { return Ok(()) };
        let is_briefed = match self.setup.config.handover.mode {
            _ if takeover.handover.continues.is_some() => true,
            HandoverMode::Brief => true,
            HandoverMode::Auto => !form.native,
            HandoverMode::Native => false,
        };
        if is_briefed { self.write_brief(leg, form, 0).await } else { Ok(()) }
    }

    /// Says who takes over from whom, if a destination does.
    fn takeover(&self, leg: usize) -> Option<Takeover> {
        let to = origin(&self.destinations[leg]);
        let Cause { by, reason } = self.cause_of(leg);
        let handover = match &self.continued {
            Some(continued) => Handover {
                from: last_origin(&self.placed.earlier).cloned(),
                to,
                by: Text::from_static("continue"),
                reason: Text::from(format!("continues {}", continued.conversation)),
                brief: None,
                continues: Some(continued.clone()),
            },
            None => {
                let stood_in_for = || (leg > 0).then(|| origin(&self.destinations[0]));
                let from = last_origin(&self.placed.history).cloned().or_else(stood_in_for);
                let from = from.filter(|from| from.backend != to.backend)?;
                Handover { from: Some(from), to, by, reason, brief: None, continues: None }
            }
        };
        Some(Takeover { handover, changes: Vec::new() })
    }

    fn cause_of(&self, leg: usize) -> Cause {
        if leg == 0 {
            return self.cause.clone();
        }
        let first = &self.destinations[0].backend.name;
        let failure = self.recorder.last_failure().unwrap_or(Text::from_static("no answer"));
        Cause { by: Text::from_static("failover"), reason: format!("{first} failed: {failure}").into() }
    }

    /// Says whether a destination that takes over may be given a brief, because nothing else fits.
    pub(super) fn may_be_briefed(&self) -> bool {
        let is_native = |takeover: &Takeover| takeover.handover.brief.is_none();
        self.setup.config.handover.mode == HandoverMode::Auto
            && !self.recalls.have_begun()
            && self.placed.handover.as_ref().is_some_and(is_native)
    }

    /// Gives a destination a brief that fits, if one does; `halvings` says how often it was made shorter already.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub(super) async fn write_brief(&mut self, leg: usize, form: Form, halvings: u32) -> Result<(), Failure> {
        self.read_whole().await?;
        let destination = self.destinations[leg].clone();
        let entries: Vec<Entry> = self.placed.earlier.iter().chain(&self.placed.history).cloned().collect();
        let settings = self.setup.config.handover.clone();
        let words = match settings.summary {
            HandoverSummary::Model => self.summarised(&destination, &entries).await,
            HandoverSummary::Off | HandoverSummary::Digest => None,
        };
        let recall = self.offers_recall(&destination, form);
        let written = super::planning::on_a_thread(move || {
            let rules = tool_rules(&destination.backend);
            let summary = match (&words, settings.summary) {
                (Some(words), _) => BriefSummary::Words(words),
                (None, HandoverSummary::Off) => BriefSummary::Off,
                (None, HandoverSummary::Digest | HandoverSummary::Model) => BriefSummary::Digest,
            };
            let options = BriefOptions {
                rules: &rules,
                summary,
                result_chars_max: settings.max_result_chars >> halvings,
                tool_chars_max: settings.max_tool_context_chars >> halvings,
                recall,
            };
            let mut report = Report::default();
            (brief(&entries, &options, &mut report), report.changes)
        });
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
    pub(super) fn recall_of_brief(&self, destination: &Destination, form: Form) -> Option<Text> {
        let brief = self.placed.brief_for(&destination.backend.name)?;
        let is_offered = brief.contains(RECALL_MARK) && self.offers_recall(destination, form);
        (is_offered && !self.recalls.are_used_up()).then(|| recall::tool_name(&self.ask))
    }

    fn offers_recall(&self, destination: &Destination, form: Form) -> bool {
        form.native && destination.backend.history.recall && recall::is_usable(&self.ask)
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
