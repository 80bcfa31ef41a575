//! Any history: the ledger pairs each result at most once, and every prompt that is made of it is whole.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use throughline_core::{
    Call, Dialect, EmbedForm, Entry, Input, Kind, Ledger, Oddity, Outcome, PairState, Part, Prompt, Return,
    Role, Rules, Strategy, Target, Text, Thought, prepare,
};
use throughline_fuzz::asks;

/// What happens next. Ids are few, so that they recur.
#[derive(Arbitrary, Debug)]
enum Step {
    Call { id: u8, item: Option<u8>, name: u8, freeform: bool },
    Result { id: Option<u8>, by_item: bool, name: Option<u8>, outcome: u8, content: u8 },
    User(bool),
    Assistant(bool),
    System,
    Thought,
}

fuzz_target!(|steps: Vec<Step>| {
    let entries: Vec<Entry> = steps.iter().map(entry).collect();
    check_ledger(&entries);
    let ask = asks::with_entries(Dialect::Chat, entries);
    for rules in Rules::built_in() {
        for strategy in [Strategy::Native, Strategy::TextEmbed(EmbedForm::Comments)] {
            let target = Target { strategy, ..Target::new(&rules) };
            let (prompt, _) = prepare(&ask, &target);
            check_prompt(&prompt);
        }
    }
});

fn entry(step: &Step) -> Entry {
    match step {
        Step::Call { id, item, name, freeform } => {
            let text = Text::from_static(if *freeform { "text" } else { "{}" });
            let input = if *freeform { Input::Freeform(text) } else { Input::Arguments(text) };
            let item_id = item.map(item_id);
            Entry::new(Kind::Called(Call {
                id: call_id(*id),
                item_id,
                name: tool_name(*name),
                namespace: None,
                input,
            }))
        }
        Step::Result { id, by_item, name, outcome, content } => {
            let outcomes =
                [Outcome::Ok, Outcome::Error, Outcome::Denied, Outcome::Interrupted, Outcome::Unknown];
            Entry::new(Kind::Returned(Return {
                call_id: id.map(|id| if *by_item { item_id(id) } else { call_id(id) }),
                item_id: None,
                name: name.map(tool_name),
                parts: vec![Part::text(["", " ", "one", "two"][usize::from(content % 4)])],
                outcome: outcomes[usize::from(outcome % 5)],
                freeform: false,
            }))
        }
        Step::User(blank) => Entry::said(Role::User, if *blank { "" } else { "go on" }),
        Step::Assistant(blank) => Entry::said(Role::Assistant, if *blank { " " } else { "well" }),
        Step::System => Entry::said(Role::System, "be brief"),
        Step::Thought => {
            Entry::new(Kind::Thought(Thought { content: vec!["hm".into()], ..Thought::default() }))
        }
    }
}

fn call_id(id: u8) -> Text {
    let ids = ["a", "b", "functions.read:0", "", "abcDEF123"];
    match usize::from(id % 6) {
        5 => Text::from("call_".repeat(20)),
        at => ids[at].into(),
    }
}

fn item_id(id: u8) -> Text {
    // One of them is also the id of a call, as some clients have it.
    ["fc_1", "fc_2", "a"][usize::from(id % 3)].into()
}

fn tool_name(name: u8) -> Text {
    ["read", "mcp.server/tool", "write"][usize::from(name % 3)].into()
}

fn check_ledger(entries: &[Entry]) {
    let ledger = Ledger::of(entries);
    let calls: Vec<usize> = (0..entries.len()).filter(|at| entries[*at].as_call().is_some()).collect();
    let paired: Vec<usize> = ledger.pairs().iter().map(|pair| pair.call).collect();
    assert_eq!(paired, calls, "each call has one pair, in their order");
    let mut results = BTreeSet::new();
    for pair in ledger.pairs() {
        assert_eq!(ledger.pair_of(pair.call), Some(pair));
        assert_eq!(pair.result.is_none(), pair.state == PairState::Open);
        assert_eq!(pair.result.is_none(), ledger.oddity_of(pair.call) == Some(Oddity::NoResult));
        let Some(at) = pair.result else { continue };
        assert!(results.insert(at), "result {at} is in two pairs");
        assert_eq!(ledger.pair_of(at), Some(pair));
        let (Some(call), Some(returned)) = (entries[pair.call].as_call(), entries[at].as_return()) else {
            panic!("{pair:?} is not a call and a result")
        };
        let id = returned.call_id.as_ref();
        assert!(id.is_none_or(|id| *id == call.id || Some(id) == call.item_id.as_ref()), "{pair:?}");
        assert_eq!(pair.state, PairState::Settled(returned.outcome));
    }
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.as_return().is_some()) {
        let is_loose = matches!(ledger.oddity_of(at), Some(Oddity::NoCall | Oddity::Duplicate { .. }));
        assert_eq!(is_loose, !results.contains(&at), "{entry:?}");
        if let Some(Oddity::Duplicate { of }) = ledger.oddity_of(at) {
            assert!(of < at && results.contains(&of));
        }
    }
    assert!(ledger.mismatches().is_sorted_by(|a, b| a.entry < b.entry));
    assert!(ledger.pairs().is_sorted_by_key(|pair| pair.batch));
}

/// Checks the promises that a prompt makes to the encoders.
fn check_prompt(prompt: &Prompt<'_>) {
    let rules = prompt.rules;
    let ledger = Ledger::of(&prompt.entries);
    assert!(ledger.mismatches().is_empty(), "{}: {:?}", rules.name, ledger.mismatches());
    let mut ids = BTreeSet::new();
    for pair in ledger.pairs() {
        let Some(call) = prompt.entries[pair.call].as_call() else { panic!("a pair without a call") };
        assert!(rules.call_id.admits(&call.id), "{} does not take {}", rules.name, call.id);
        assert!(rules.tool_name.admits(&call.name), "{} does not take {}", rules.name, call.name);
        assert!(ids.insert(&call.id) || !rules.unique_call_ids, "{} comes twice", call.id);
        let between = pair.result.and_then(|result| prompt.entries.get(pair.call + 1..result));
        let is_batch =
            |entry: &Entry| entry.side() == throughline_core::Side::Assistant || entry.as_return().is_some();
        assert!(between.is_some_and(|between| between.iter().all(is_batch)), "{pair:?} is torn apart");
    }
    if !rules.assistant_last {
        assert!(prompt.entries.last().is_some_and(|last| last.side() != throughline_core::Side::Assistant));
    }
}
