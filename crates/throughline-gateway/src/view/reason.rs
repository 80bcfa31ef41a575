//! Why what was sent is not what was kept, in sentences that people read.
//!
//! What was done was noted in words of a closed list while the request was rendered; here it is put into English.

use super::seen::Unknown;
use throughline_core::{Absence, Addition, Entry, Kind, Text, Treatment, Treatments};

/// Says what was done to an entry that was shown; nothing where nothing was.
pub(super) fn shown(treatments: Treatments, kept: &Entry, sent: &Entry) -> Option<Text> {
    let is_stale = treatments.contains(Treatment::Stale);
    let words: Vec<Text> =
        treatments.iter().filter_map(|treatment| treated(treatment, is_stale, kept, sent)).collect();
    let words: Vec<&str> = words.iter().map(Text::as_str).collect();
    (!words.is_empty()).then(|| words.join("; ").into())
}

fn treated(treatment: Treatment, is_stale: bool, kept: &Entry, sent: &Entry) -> Option<Text> {
    Some(Text::from_static(match treatment {
        Treatment::Renamed => return Some(renamed(kept, sent)),
        Treatment::Translated => "stands in another role here",
        Treatment::Adapted => "rewritten so that this backend takes it",
        Treatment::Moved => "stands at another point of the conversation",
        Treatment::Joined => "stands in one message with what was said beside it",
        Treatment::Split => "its attachments follow in a message of their own",
        Treatment::Excerpted if is_stale => "only an excerpt is shown, as the file was written since",
        Treatment::Excerpted => "only an excerpt is shown, to keep within the budget",
        Treatment::Masked if is_stale => "a line stands for it, as the file was written since",
        Treatment::Masked => "a line stands for it, to keep within the budget",
        Treatment::Superseded => "a later call shows the same anew",
        Treatment::Cleared => "cleared, as the client asks",
        Treatment::Stale => return None,
        Treatment::Retold => "told as text",
        Treatment::BehindBrief => "stands in one message with the handover brief",
        Treatment::Resolved => "sent in place of the id that the request named it by",
        Treatment::Resent => "the client resends its arguments written differently, with the same meaning",
    }))
}

fn renamed(kept: &Entry, sent: &Entry) -> Text {
    let by_id = |id: &str| Text::from(format!("goes by the id {id} here"));
    match (&kept.kind, &sent.kind) {
        (Kind::Called(kept), Kind::Called(sent)) if kept.name != sent.name => {
            format!("the tool is called {} here", sent.name).into()
        }
        (_, Kind::Called(sent)) => by_id(&sent.id),
        (_, Kind::Returned(sent)) => by_id(sent.call_id.as_deref().unwrap_or("none")),
        _ => Text::from_static("goes by another id here"),
    }
}

/// Says why an entry was not shown.
pub(super) fn absent(why: Absence) -> Text {
    Text::from_static(match why {
        Absence::Summarised => "went into the summary of the oldest calls",
        Absence::Superseded => "a later call shows the same anew",
        Absence::Cleared => "cleared, as the client asks",
        Absence::Briefed => "the handover brief stands for it",
        Absence::ReasoningNotBriefed => "a handover brief holds no reasoning",
        Absence::ForeignReasoning => "reasoning of another backend or model",
        Absence::UnusableReasoning => "reasoning that this backend does not take back",
        Absence::DanglingReasoning => "reasoning that nothing follows any more",
        Absence::ReasoningOff => "this backend is configured to be sent no reasoning",
        Absence::InternalNote => "internal note",
        Absence::NoCounterpart => "this backend's dialect has no counterpart",
        Absence::DuplicateResult => "the same result came twice",
        Absence::Blank => "there is nothing in it to send",
        Absence::CallOfText => "told as text: the call is left out beside its result",
        Absence::InstructionsReplaced => "the request came with other instructions",
        Absence::InstructionsRestated => "the same instructions are sent once",
        Absence::NotResent => "the client resends its history without it",
        Absence::Held => "the backend keeps it from the answer before, and was not sent it again",
        Absence::Request => "it only asked for something to be done",
        Absence::Unexplained => "not sent; the reason was not noted",
    })
}

/// Says why something was made for the backend.
pub(super) fn added(addition: Addition) -> Text {
    Text::from_static(match addition {
        Addition::ClosingResult => "closes a call that has no result",
        Addition::Summary => "stands for the calls that were left out or summarised",
        Addition::Brief => "the brief: what the new backend is told of the past",
        Addition::OpeningWords => "this backend wants the user to speak first",
        Addition::WordsBetween => "this backend wants the assistant to speak between results and the user",
        Addition::ClosingWords => "this backend wants the user to speak last",
        Addition::EmptyReasoning => "this backend wants reasoning beside calls",
    })
}

/// Says of something that the record does not have where it comes from, and what was done to it.
pub(super) fn of_request(treatments: Treatments) -> Text {
    let retold = if treatments.contains(Treatment::Retold) { ", told as text" } else { "" };
    Text::from(format!("came with this request{retold}; the record does not repeat it"))
}

/// Says that something belongs to an entry whose row stands before.
pub(super) const fn above() -> Text {
    Text::from_static("belongs to an entry above")
}

/// Says why nothing is claimed.
pub(super) const fn unknown(why: Unknown) -> Text {
    Text::from_static(match why {
        Unknown::NotNoted => "no provenance was kept with this request; older releases kept none",
        Unknown::Unreadable => "the provenance of this request cannot be read",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Role;

    #[test]
    fn everything_that_was_done_is_said() {
        let entry = Entry::said(Role::User, "a");
        let say = |treatments: Treatments| shown(treatments, &entry, &entry).map(|text| text.to_string());
        assert_eq!(say(Treatments::AS_IS), None);
        let both = Treatments::AS_IS.with(Treatment::Retold).with(Treatment::Joined);
        assert_eq!(say(both).unwrap(), "stands in one message with what was said beside it; told as text");
        let stale = Treatments::AS_IS.with(Treatment::Masked).with(Treatment::Stale);
        assert_eq!(say(stale).unwrap(), "a line stands for it, as the file was written since");
    }
}
