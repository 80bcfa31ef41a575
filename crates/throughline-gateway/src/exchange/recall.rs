//! Recall: the model has back what was taken out, within the turn (R32).
//!
//! Where a plan took something out, the model is offered one more tool. Its calls are answered here from the
//! history, and the backend is asked again with the results, until it has something for the client. The client
//! declared no such tool and sees none of it: its stream goes on as if there had been one answer.
//!
//! In the record calls and results are there, marked as hidden. They leave the chain alone by which a resent
//! history is recognised, and each request that goes on from there shows them to the backend again.

use super::hidden_calls::HiddenCallFilter;
use super::recollection::recollect;
use super::rejoined::{letters, spoken};
use throughline_core::{
    Ask, Call, Entry, Kind, Outcome, Part, Return, Text, Tool, ToolChoice, ToolForm, Usage, joined_text,
};

/// What became of recall in one exchange.
#[derive(Debug, Default)]
pub struct Recalls {
    /// What the tool is called, if it was offered.
    pub tool: Option<Text>,
    /// How many calls were answered.
    used: u32,
    /// How often the model was told that there is no more. From then on the tool is not offered, and the next time no
    /// tool may be called; a model that calls it even then is not asked again.
    refusals: u32,
    /// What earlier answers took.
    pub usage: Option<Usage>,
    /// How much of what the client is shown there was when an answer was over behind which another came.
    pub ends: Vec<usize>,
}

/// How many calls are answered in one turn; a model that wants more goes in circles.
const RECALLS_MAX: u32 = 8;

/// How many answers are refused that recall more than that.
const REFUSALS_MAX: u32 = 2;

const NAME: &str = "recall";
/// What the tool is called where the client has one of that name.
const OTHER_NAME: &str = "throughline_recall";

const DESCRIPTION: &str = "Gives back what was cut from this conversation's earlier tool calls and results. Where \
    something was cut, the text names a handle, such as `recall e5m8`. Pass the handle with a query to have the lines that \
    have its words, or with from_line and to_line; a range such as `e5m8..k7f2` lists what is in it. A query alone searches \
    everything.";

const SCHEMA: &str = r#"{"type":"object","properties":{"handle":{"type":"string"},"query":{"type":"string","description":"Words to look for."},"from_line":{"type":"integer"},"to_line":{"type":"integer"}}}"#;

const NO_MORE: &str = "No more can be recalled in this turn. Go on with what you have.";

/// Returns what the tool is called beside the tools of a request.
pub fn tool_name(ask: &Ask) -> Text {
    let is_taken = ask.tools.iter().any(|tool| tool.name == NAME);
    Text::from_static(if is_taken { OTHER_NAME } else { NAME })
}

/// Says whether the model could call one more tool: the client offers some, and leaves the choice to the model.
pub fn is_usable(ask: &Ask) -> bool {
    let is_free = matches!(ask.tool_choice, None | Some(ToolChoice::Auto));
    is_free && ask.tools.iter().any(|tool| !tool.is_hosted())
}

/// Returns the tool as it is offered.
pub fn tool(name: &Text) -> Tool {
    Tool {
        name: name.clone(),
        namespace: None,
        description: Some(Text::from_static(DESCRIPTION)),
        form: ToolForm::Function { schema: Some(Text::from_static(SCHEMA)), strict: Some(false) },
        wire: None,
        intact: false,
    }
}

/// Returns a client's own history with the hidden entries that `known` has in it.
pub fn reinserted(entries: Vec<Entry>, known: &[Entry]) -> Vec<Entry> {
    if !known.iter().any(Entry::is_hidden) {
        return entries;
    }
    let mut whole = Vec::with_capacity(known.len());
    let mut at = 0;
    for entry in known {
        if entry.is_hidden() {
            whole.push(entry.clone());
        } else if entries.get(at).is_some_and(|own| has_as_a_piece(own, entry)) {
            // What was said around a recall stands behind it, as one text.
        } else if let Some(found) = entries[at..].iter().position(|own| says_the_same(own, entry)) {
            whole.extend_from_slice(&entries[at..=at + found]);
            at += found + 1;
        }
    }
    whole.extend_from_slice(&entries[at..]);
    whole
}

/// Says whether a client's entry is the one that is known; reasoning is left to stand where the client has it.
fn says_the_same(own: &Entry, known: &Entry) -> bool {
    match (&own.kind, &known.kind) {
        (Kind::Called(own), Kind::Called(known)) => own.id == known.id,
        (Kind::Returned(own), Kind::Returned(known)) => own.call_id == known.call_id,
        (Kind::Said(own), Kind::Said(known)) => {
            own.role == known.role && joined_text(&own.parts) == joined_text(&known.parts)
        }
        _ => false,
    }
}

/// Says whether a client's text holds what is known as one of several.
fn has_as_a_piece(own: &Entry, known: &Entry) -> bool {
    match (spoken(own).map(letters), spoken(known).map(letters)) {
        (Some(own), Some(known)) => own.len() > known.len() && own.contains(&known),
        _ => false,
    }
}

/// Returns a history with its hidden entries as a backend is shown them, under the tool's name.
pub fn unveiled(entries: Vec<Entry>, name: &Text) -> Vec<Entry> {
    if !entries.iter().any(Entry::is_hidden) {
        return entries;
    }
    let mut shown: Vec<Entry> = Vec::with_capacity(entries.len());
    // Results of calls that stood beside others, until the batch is over.
    let mut beside: Vec<Entry> = Vec::new();
    let mut is_mixed = false;
    for mut entry in entries {
        let is_beside = matches!(&entry.kind, Kind::Returned(returned)
            if returned.name.as_deref() == Some(Entry::OWN_RESULT_BESIDE));
        if is_beside {
            is_mixed = true;
            beside.push(bare(&entry, name));
        } else if entry.is_hidden() {
            shown.push(bare(&entry, name));
        } else if matches!(entry.kind, Kind::Called(_)) {
            // It no longer stands alone in its message.
            entry.intact &= !is_mixed;
            shown.push(entry);
        } else {
            shown.append(&mut beside);
            is_mixed &= matches!(entry.kind, Kind::Returned(_));
            entry.intact &= !is_mixed;
            shown.push(entry);
        }
    }
    shown.append(&mut beside);
    shown
}

/// Returns a hidden entry without its mark.
fn bare(entry: &Entry, name: &Text) -> Entry {
    let kind = match &entry.kind {
        Kind::Called(call) => Kind::Called(Call { name: name.clone(), namespace: None, ..call.clone() }),
        Kind::Returned(returned) => Kind::Returned(Return { name: None, ..returned.clone() }),
        kind => kind.clone(),
    };
    Entry { wire: None, envelope: None, intact: false, ..entry.altered(kind) }
}

impl Recalls {
    /// Takes note of what the model is offered.
    pub fn offer(&mut self, tool: Option<Text>) {
        self.tool = tool;
    }

    /// Returns what the tool is called, if it was offered in this exchange.
    pub const fn tool(&self) -> Option<&Text> {
        self.tool.as_ref()
    }

    /// Says whether the model has recalled anything.
    pub const fn have_begun(&self) -> bool {
        self.used > 0
    }

    /// Says whether the model was told that it can recall no more in this turn.
    pub const fn are_used_up(&self) -> bool {
        self.refusals > 0
    }

    /// Says whether the model can only answer: it was refused, and calls the tool all the same.
    pub const fn must_answer(&self) -> bool {
        self.refusals >= REFUSALS_MAX
    }

    /// Takes note of an answer that recalls more than it may, if it does.
    pub fn note_refusal(&mut self) {
        self.refusals += u32::from(self.used >= RECALLS_MAX);
    }

    /// Returns what hides calls of the tool from the client.
    pub fn hidden_call_filter(&self) -> HiddenCallFilter {
        HiddenCallFilter::new(self.tool.clone(), self.must_answer())
    }

    /// Returns the result of a call.
    pub fn answer(&mut self, call: &Call, entries: &[Entry]) -> (Outcome, Vec<Part>) {
        if self.used >= RECALLS_MAX {
            return (Outcome::Error, vec![Part::text(NO_MORE)]);
        }
        self.used += 1;
        match recollect(call.input.text(), entries, &call.name) {
            Ok(parts) => (Outcome::Ok, parts),
            Err(problem) => (Outcome::Error, vec![Part::text(problem.to_string())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Input, Role};

    fn call(id: &str, name: &str) -> Entry {
        let input = Input::Arguments("{}".into());
        Entry::new(Kind::Called(Call {
            id: id.into(),
            item_id: None,
            name: name.into(),
            namespace: None,
            input,
        }))
    }

    fn returned(id: &str, name: Option<&str>) -> Entry {
        Entry::new(Kind::Returned(Return {
            call_id: Some(id.into()),
            item_id: None,
            name: name.map(Into::into),
            parts: vec![Part::text("text")],
            outcome: Outcome::Ok,
            freeform: false,
        }))
    }

    fn hidden(id: &str) -> Entry {
        let mut entry = call(id, NAME);
        let Kind::Called(call) = &mut entry.kind else { panic!("no call") };
        call.namespace = Some(Entry::OWN_TOOLS.into());
        entry
    }

    #[test]
    fn a_hidden_pair_is_shown_in_its_batch_again() {
        let own = [Entry::said(Role::User, "go"), call("b", "read"), returned("b", None)];
        let known = [
            own[0].clone(),
            hidden("a"),
            returned("a", Some(Entry::OWN_RESULT_BESIDE)),
            own[1].clone(),
            own[2].clone(),
        ];
        let whole = reinserted(own.to_vec(), &known);
        assert_eq!(whole, known);
        let shown = unveiled(whole, &Text::from_static(OTHER_NAME));
        let calls: Vec<_> = shown.iter().filter_map(Entry::as_call).map(|call| call.name.as_str()).collect();
        assert_eq!(calls, [OTHER_NAME, "read"]);
        let results: Vec<_> =
            shown[3..].iter().map(|entry| entry.as_return().unwrap().call_id.clone().unwrap()).collect();
        assert_eq!(results, ["a", "b"]);
        assert!(!shown.iter().any(Entry::is_hidden) && !shown[2].intact && !shown[4].intact);
    }
}
