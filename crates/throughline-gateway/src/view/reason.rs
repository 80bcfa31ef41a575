//! Why what was sent is not what was kept, in sentences that people read.
//!
//! The report of an attempt says what was changed by its place in the client's request. Here the two sides are in
//! hand, so each difference is told from what they show, and from what was decided for the sake of the budget.

use super::Mark;
use throughline_core::plan::{Decision, Taken};
use throughline_core::{Call, Entry, Kind, Return, Role, Text, joined_text};

/// So many characters of a result are looked for in a brief.
const TELLING_CHARS: usize = 60;

/// Two sides that differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference<'d> {
    pub kept: Option<&'d Entry>,
    pub sent: Option<&'d Entry>,
    pub mark: Mark,
    pub taken: Option<&'d Taken>,
}

/// What the reasons of one attempt depend on.
#[derive(Debug)]
pub(super) struct Reasons {
    /// The brief that stands for the history, if one does.
    brief: Option<Text>,
    /// The instructions that were sent.
    instructions: Vec<Text>,
}

impl Reasons {
    /// Looks through what was sent.
    pub(super) fn new(sent: &[Entry], briefed: bool) -> Self {
        let said = |wanted: &'static [Role]| {
            let by = sent.iter().filter_map(Entry::as_said).filter(|said| wanted.contains(&said.role));
            by.map(|said| joined_text(&said.parts)).collect::<Vec<_>>()
        };
        let brief = said(&[Role::User]).into_iter().next().filter(|_| briefed);
        Self { brief, instructions: said(&[Role::System, Role::Developer]) }
    }

    /// Says what became of an entry that a brief stands for, and that is not in it word by word.
    pub(super) fn in_brief(&self, entry: &Entry) -> Mark {
        match &entry.kind {
            Kind::Returned(returned) if self.begins_in_brief(returned) => Mark::Shortened,
            Kind::Said(said) if !matches!(said.role, Role::System | Role::Developer) => Mark::Summarised,
            Kind::Called(_) => Mark::Summarised,
            _ => Mark::LeftOut,
        }
    }

    /// Returns why two sides differ; nothing where they do not.
    pub(super) fn of(&self, difference: &Difference<'_>) -> Option<Text> {
        let Difference { kept, sent, mark, taken } = *difference;
        if let Some(taken) = taken {
            return Some(budget(taken));
        }
        let told =
            if self.brief.is_some() { "told in the brief" } else { "told as text, in the user's role" };
        let words = match mark {
            Mark::Same => return None,
            Mark::Changed => return Some(changed(kept?, sent?)),
            Mark::AsyncSummary => told,
            Mark::Shortened => "the brief tells a part of it",
            Mark::Joined if self.brief.is_some() => "stands in one message with the brief, or in it",
            Mark::Joined => "stands in one message with what was said beside it",
            Mark::Summarised => "the brief tells it in few words",
            Mark::LeftOut => return Some(self.left_out(kept?)),
            Mark::Held => "the backend keeps it from the answer before, and was not sent it again",
            Mark::Added => self.added(sent?),
        };
        Some(Text::from_static(words))
    }

    fn begins_in_brief(&self, returned: &Return) -> bool {
        let text = joined_text(&returned.parts);
        let line: String = text.trim_start().lines().next().unwrap_or_default().to_owned();
        let telling: String = line.chars().take(TELLING_CHARS).collect();
        !telling.trim().is_empty() && self.brief.as_deref().is_some_and(|brief| brief.contains(&telling))
    }

    fn left_out(&self, kept: &Entry) -> Text {
        Text::from_static(match &kept.kind {
            Kind::Said(said) if matches!(said.role, Role::System | Role::Developer) => {
                match self.instructions.contains(&joined_text(&said.parts)) {
                    true => "the same instructions are sent once",
                    false => "other instructions came with this request",
                }
            }
            Kind::Thought(_) if self.brief.is_some() => "a brief holds no reasoning",
            Kind::Thought(_) => "reasoning goes back to who issued it, or nowhere",
            Kind::HandedOver(_) => "a note in the record, for no backend's eyes",
            Kind::Returned(_) if self.brief.is_some() => {
                "the brief has no room for it, or tells it in few words"
            }
            Kind::Called(_) | Kind::Returned(_) => "half of a pair whose other half is not there",
            Kind::Reference { .. } => "what it refers to was sent in its place",
            Kind::Opaque { .. } => "this backend's dialect has no counterpart",
            Kind::Said(_) | Kind::Summarised(_) => "not part of this request; the changes below say more",
        })
    }

    fn added(&self, sent: &Entry) -> &'static str {
        let text = sent.as_said().map(|said| joined_text(&said.parts)).unwrap_or_default();
        match &sent.kind {
            Kind::Said(_) if self.brief.as_ref() == Some(&text) => {
                "the brief: what the new backend is told of the past"
            }
            Kind::Said(_) if text.starts_with("[Earlier in this session") => {
                "stands for the calls that were left out or summarised"
            }
            Kind::Said(said) if said.role == Role::User => "words that this backend needs between others",
            Kind::Said(_) => "instructions that came with this request",
            Kind::Returned(_) => "closes a call that has no result",
            Kind::Called(_) => "the call that a result belongs to",
            _ => "made for this backend",
        }
    }
}

/// Returns why a decision was taken.
fn budget(taken: &Taken) -> Text {
    Text::from_static(match &taken.decision {
        Decision::Summarised => "went into the summary of the oldest calls",
        Decision::Dropped | Decision::Superseded { .. } => "a later call shows the same anew",
        Decision::Excerpt(_) if taken.stale => "only an excerpt is shown, as the file was written since",
        Decision::Excerpt(_) => "only an excerpt is shown, to keep within the budget",
        Decision::Masked if taken.stale => "a line stands for it, as the file was written since",
        Decision::Masked => "a line stands for it, to keep within the budget",
        Decision::Cleared => "cleared, as the client asks",
    })
}

fn changed(kept: &Entry, sent: &Entry) -> Text {
    let renamed = |id: &str| Text::from(format!("goes by the id {id} here"));
    match (&kept.kind, &sent.kind) {
        (Kind::Called(Call { name: a, .. }), Kind::Called(Call { name: b, .. })) if a != b => {
            format!("the tool is called {b} here").into()
        }
        (Kind::Called(a), Kind::Called(b)) if a.input != b.input => {
            Text::from_static("the arguments were rewritten, so that this backend takes them")
        }
        (Kind::Called(_), Kind::Called(b)) => renamed(&b.id),
        (Kind::Returned(a), Kind::Returned(b)) if joined_text(&a.parts) != joined_text(&b.parts) => {
            Text::from_static("the content was rewritten, so that this backend takes it")
        }
        (Kind::Returned(_), Kind::Returned(b)) => renamed(b.call_id.as_deref().unwrap_or("none")),
        _ => Text::from_static("the same in another form"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(sent: &[Entry], briefed: bool, kept: &Entry, mark: Mark) -> String {
        let reasons = Reasons::new(sent, briefed);
        let difference = Difference { kept: Some(kept), sent: None, mark, taken: None };
        reasons.of(&difference).unwrap().to_string()
    }

    #[test]
    fn instructions_that_are_sent_once_say_so() {
        let sent = [Entry::said(Role::System, "be careful")];
        let again = reason(&sent, false, &sent[0], Mark::LeftOut);
        assert_eq!(again, "the same instructions are sent once");
        let other = reason(&sent, false, &Entry::said(Role::System, "be quick"), Mark::LeftOut);
        assert_eq!(other, "other instructions came with this request");
    }

    #[test]
    fn what_a_brief_stands_for_is_not_left_out() {
        let reasons = Reasons::new(&[Entry::said(Role::User, "[CONTEXT]\n## Summary\n- go on")], true);
        let said = Entry::said(Role::Assistant, "I look at the files first.");
        assert_eq!(reasons.in_brief(&said), Mark::Summarised);
        assert_eq!(reasons.in_brief(&Entry::said(Role::System, "be careful")), Mark::LeftOut);
    }
}
