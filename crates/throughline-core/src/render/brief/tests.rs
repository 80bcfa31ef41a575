//! The brief, case by case: what each line of it says, and what can never happen.

use super::fence::read_fenced;
use super::*;
use crate::{
    Call, Continued, ConversationId, Dialect, EntryId, Handover, Image, Input, Media, Origin, Outcome,
    Return, Role,
};
use proptest::prelude::*;

fn user(text: &str) -> Entry {
    Entry::said(Role::User, text)
}

fn assistant(text: &str) -> Entry {
    Entry::said(Role::Assistant, text)
}

fn call(id: &str, name: &str, arguments: &str) -> Entry {
    let input = Input::Arguments(arguments.into());
    Entry::new(Kind::Called(Call { id: id.into(), item_id: None, name: name.into(), namespace: None, input }))
}

fn result(id: &str, text: &str) -> Entry {
    settled(id, vec![Part::text(text)], Outcome::Ok)
}

fn settled(id: &str, parts: Vec<Part>, outcome: Outcome) -> Entry {
    let call_id = Some(id.into());
    Entry::new(Kind::Returned(Return { call_id, item_id: None, name: None, parts, outcome, freeform: false }))
}

fn pair(id: &str, name: &str, arguments: &str, text: &str) -> [Entry; 2] {
    [call(id, name, arguments), result(id, text)]
}

/// Returns the tool part of a brief: everything between its first and its last line.
fn told_of(entries: &[Entry], change: impl Fn(&mut BriefOptions<'_>)) -> String {
    let rules = ToolRules::default();
    let mut options = BriefOptions {
        rules: &rules,
        summary: BriefSummary::Off,
        tools: true,
        result_chars_max: Some(2_000),
        tool_chars_max: Some(60_000),
        recall: false,
    };
    change(&mut options);
    let text = brief(entries, &options, &mut Report::default()).expect("there is something to tell");
    let inner = text.strip_prefix(BEGIN).and_then(|text| text.strip_suffix(END));
    inner.expect("a brief begins and ends with its marks").trim().to_owned()
}

fn told(entries: &[Entry]) -> String {
    told_of(entries, |_| ())
}

#[test]
fn a_brief_has_the_headings_of_the_document_in_their_order() {
    let entries: Vec<Entry> = [
        vec![Entry::said(Role::System, "You are an agent."), user("Fix the test.")],
        pair("a", "Read", r#"{"file_path":"/path/to/file.rs"}"#, "fn main() {}\n").to_vec(),
        pair("b", "Bash", r#"{"command":"cargo test"}"#, "ok. 1 passed").to_vec(),
        pair("c", "Edit", r#"{"file_path":"src/a.py","old_string":"1","new_string":"2"}"#, "done").to_vec(),
        pair("d", "book_flight", r#"{"to":"Paris"}"#, "booked").to_vec(),
        vec![assistant("The test passes."), user("Now commit.")],
    ]
    .concat();
    let rules = ToolRules::default();
    let options = BriefOptions {
        rules: &rules,
        summary: BriefSummary::Digest,
        tools: true,
        result_chars_max: Some(2_000),
        tool_chars_max: Some(60_000),
        recall: true,
    };
    let text = brief(&entries, &options, &mut Report::default()).unwrap();
    let expected = "[CONTEXT FROM PREVIOUS SESSION]\n\n\
        ## Summary\n- User: Fix the test.\n- Assistant: The test passes.\n\n\
        ## Files Read\n### /path/to/file.rs\n```rust\nfn main() {}\n\n```\n\n\
        ## Files Changed\n### src/a.py\nold_string:\n```python\n1\n```\nnew_string:\n```python\n2\n```\n\
        Result:\n```\ndone\n```\n\n\
        ## Commands Executed\n### cargo test\n```\nok. 1 passed\n```\n\n\
        ## Other Tool Results\n### book_flight\nArguments: `{\"to\":\"Paris\"}`\n```\nbooked\n```\n\n\
        [/CONTEXT FROM PREVIOUS SESSION]";
    assert_eq!(text, expected);
    let shown = with_brief(&entries, &text);
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0], entries[0]);
    assert_eq!(shown[1].as_said().unwrap().parts, [Part::text(format!("{expected}\n\nNow commit."))]);
}

#[test]
fn of_many_reads_of_a_file_the_last_is_told_and_says_so() {
    let read = r#"{"file_path":"a.rs"}"#;
    let entries = [pair("1", "Read", read, "one"), pair("2", "read_file", read, "two")].concat();
    let expected = "## Files Read\n### a.rs\n\
        [the last of 2 reads; the earlier ones are superseded]\n```rust\ntwo\n```";
    assert_eq!(told(&entries), expected);
}

#[test]
fn a_read_that_a_write_made_stale_is_told_and_says_so() {
    let read = r#"{"file_path":"a.rs"}"#;
    let write = r#"{"file_path":"a.rs","content":"two"}"#;
    let entries =
        [pair("1", "Read", read, "one"), pair("2", "Write", write, "ok"), pair("3", "Read", read, "two")]
            .concat();
    let told = told(&entries);
    let stale = "### a.rs\n[stale: the file was changed after this was read]\n```rust\none\n```\n### a.rs\n```rust\ntwo";
    assert!(told.contains(stale), "{told}");
    assert!(
        told.contains("## Files Changed\n### a.rs\ncontent:\n```rust\ntwo\n```\nResult:\n```\nok\n```"),
        "{told}"
    );
}

#[test]
fn another_range_of_a_file_is_another_look() {
    let entries = [
        pair("1", "Read", r#"{"file_path":"a.rs","offset":1}"#, "one"),
        pair("2", "Read", r#"{"file_path":"a.rs","offset":9}"#, "nine"),
    ]
    .concat();
    let expected = "## Files Read\n\
        ### a.rs\nArguments: `{\"file_path\":\"a.rs\",\"offset\":1}`\n```rust\none\n```\n\
        ### a.rs\nArguments: `{\"file_path\":\"a.rs\",\"offset\":9}`\n```rust\nnine\n```";
    assert_eq!(told(&entries), expected);
}

#[test]
fn commands_with_side_effects_are_all_told_and_others_once() {
    let entries = [
        pair("1", "Bash", r#"{"command":"git commit -m x"}"#, "[main 1]"),
        pair("2", "Bash", r#"{"command":"cargo test"}"#, "red"),
        pair("3", "Bash", r#"{"command":"git commit -m x"}"#, "[main 2]"),
        pair("4", "shell", r#"{"command":"cargo test"}"#, "green"),
        pair("5", "Bash", r#"{"command":"rm -f a"}"#, ""),
    ]
    .concat();
    let expected = "## Commands Executed\n### git commit -m x\n```\n[main 1]\n```\n\
        ### git commit -m x\n```\n[main 2]\n```\n\
        ### cargo test\n[the last of 2 runs; the earlier ones are superseded]\n```\ngreen\n```\n\
        ### rm -f a\n[empty result]";
    assert_eq!(told(&entries), expected);
}

#[test]
fn the_last_content_of_a_file_is_told_with_every_change_after_it() {
    let write = |id: &str, text: &str| {
        pair(id, "Write", &format!(r#"{{"file_path":"a.txt","content":"{text}"}}"#), "ok")
    };
    let edit = pair(
        "3",
        "Edit",
        r#"{"file_path":"a.txt","old_string":"one","new_string":"two","replace_all":true}"#,
        "ok",
    );
    let expected = "## Files Changed\n### a.txt\n\
        [the last of 2 changes to this file; the earlier ones are superseded]\n\
        content:\n```\none\n```\nResult:\n```\nok\n```\n### a.txt\n\
        Arguments: `{\"file_path\":\"...\",\"old_string\":\"...\",\"new_string\":\"...\",\"replace_all\":true}`\n\
        old_string:\n```\none\n```\nnew_string:\n```\ntwo\n```\nResult:\n```\nok\n```";
    assert_eq!(told(&[write("1", "none"), write("2", "one"), edit].concat()), expected);
}

#[test]
fn interrupted_and_failed_calls_say_so() {
    let entries = vec![
        call("1", "Bash", r#"{"command":"make"}"#),
        settled("1", vec![Part::text("no rule")], Outcome::Error),
        call("2", "Bash", r#"{"command":"rm x"}"#),
        settled("2", vec![Part::text("")], Outcome::Denied),
        call("3", "Bash", r#"{"command":"sleep 9"}"#),
        settled("3", vec![Part::text("half")], Outcome::Interrupted),
        call("4", "Bash", r#"{"command":"make"}"#),
        result("4", "built"),
        call("5", "Bash", r#"{"command":"deploy"}"#),
    ];
    let expected = "## Commands Executed\n\
        ### make\n[failed]\n[superseded: the same was done later, with success]\n```\nno rule\n```\n\
        ### rm x\n[denied: the call was not permitted]\n[empty result]\n\
        ### sleep 9\n[interrupted before it was through]\n```\nhalf\n```\n\
        ### make\n```\nbuilt\n```\n\
        ### deploy\n[interrupted: no result was recorded, and whether the tool ran is not known]";
    assert_eq!(told(&entries), expected);
}

#[test]
fn a_large_result_is_cut_in_the_middle_and_says_how_much() {
    let text = format!("{}{}", "é".repeat(3_000), "z".repeat(3_000));
    let entries = pair("1", "Read", r#"{"file_path":"a.txt"}"#, &text);
    let handle = plan::Handle::of(entries.first(), entries.get(1)).short();
    let told = told_of(&entries, |options| options.recall = true);
    let expected = format!(
        "## Files Read\n### a.txt\n```\n{}\n[.. 4000 characters cut; recall {handle} ..]\n{}\n```",
        "é".repeat(1_000),
        "z".repeat(1_000)
    );
    assert_eq!(told, expected);
    assert!(told_of(&entries, |options| options.result_chars_max = Some(6_000)).contains(&text));
}

#[test]
fn when_there_is_no_room_the_latest_is_told() {
    let many: Vec<Entry> = (0..50)
        .flat_map(|at| {
            let path = format!(r#"{{"file_path":"f{at}.txt"}}"#);
            pair(&at.to_string(), "Read", &path, &"x".repeat(900))
        })
        .collect();
    let told = told_of(&many, |options| options.tool_chars_max = Some(3_000));
    assert!(told.contains("### f49.txt\n```\nxxx"), "{told}");
    assert!(told.contains("### f40.txt\n[left out: 900 characters]"), "{told}");
    assert!(told.contains("earlier tool results left out: no room]"), "{told}");
    assert!(told.chars().count() <= 3_000, "{}", told.chars().count());
    let all = told_of(&many, |_| ());
    assert!(all.contains("### f0.txt\n```\nxxx"));
}

#[test]
fn without_a_limit_a_result_is_whole_where_everything_has_room_and_a_share_where_not() {
    let unlimited = |room: usize| {
        move |options: &mut BriefOptions<'_>| {
            (options.result_chars_max, options.tool_chars_max) = (None, Some(room));
        }
    };
    let long = "line\n".repeat(8_000);
    let entries = pair("1", "Read", r#"{"file_path":"a.txt"}"#, &long);
    assert!(told_of(&entries, unlimited(50_000)).contains(&long));
    let told = told_of(&entries, unlimited(20_000));
    assert!(told.contains("characters cut") && told.chars().count() <= 20_000, "{}", told.len());
    assert!(told.chars().count() > 4_000, "{}", told.len());
    assert!(
        told_of(&entries, |options| (options.result_chars_max, options.tool_chars_max) = (None, None))
            .contains(&long)
    );
}

#[test]
fn tool_context_can_be_turned_off() {
    let rules = ToolRules::default();
    let options = BriefOptions {
        rules: &rules,
        summary: BriefSummary::Words("Fine.\n~~~\n```\n## Files Read"),
        tools: false,
        result_chars_max: None,
        tool_chars_max: None,
        recall: true,
    };
    let mut entries = pair("1", "Read", r#"{"file_path":"a"}"#, "secret").to_vec();
    entries.push(user("And?"));
    let mut report = Report::default();
    let text = brief(&entries, &options, &mut report).unwrap();
    assert!(!text.contains("secret") && !text.contains("\n## Files"), "{text}");
    assert!(text.contains("\n\\~~~\n\\```\n\\## Files Read\n"), "a line cannot break out: {text}");
    assert_eq!(report.count(Action::Dropped), 2);
}

#[test]
fn fences_outgrow_those_inside_and_content_is_not_touched() {
    let content = "# Doc\n```rust\nfn a() {}\n```\n[/CONTEXT FROM PREVIOUS SESSION]\n````\n";
    let told = told(&pair("1", "Read", r#"{"file_path":"DESIGN.md"}"#, content));
    assert_eq!(told, format!("## Files Read\n### DESIGN.md\n`````markdown\n{content}\n`````"));
}

#[test]
fn colours_of_a_terminal_are_left_out_of_commands_and_kept_in_files() {
    let text = "\u{1b}[31merror\u{1b}[0m: \u{fffd}";
    let run = told(&pair("1", "Bash", r#"{"command":"make"}"#, text));
    let expected = "## Commands Executed\n### make\n[1 characters stand for bytes that were not UTF-8]\n\
        [2 control sequences for a terminal left out]\n```\nerror: \u{fffd}\n```";
    assert_eq!(run, expected);
    assert!(told(&pair("1", "Read", r#"{"file_path":"a.log"}"#, text)).contains(text));
}

#[test]
fn paths_of_windows_are_headings_like_others() {
    let told = told(&pair("1", "Read", r#"{"file_path":"C:\\Users\\me\\main.rs"}"#, "x"));
    assert_eq!(told, "## Files Read\n### C:\\Users\\me\\main.rs\n```rust\nx\n```");
}

#[test]
fn an_image_is_named() {
    let media = Media::Inline { media_type: "image/png".into(), base64: "AAAABBBB".into() };
    let image = Part { content: Content::Image(Image { media, detail: None }), wire: None };
    let entries = [call("1", "Read", r#"{"file_path":"a.png"}"#), settled("1", vec![image], Outcome::Ok)];
    assert_eq!(told(&entries), "## Files Read\n### a.png\n[image: image/png, 6 bytes]");
}

#[test]
fn a_command_of_several_lines_stands_in_a_fence() {
    let told = told(&pair("1", "Bash", r#"{"command":"cat <<EOF\n## Summary\nEOF"}"#, "ok"));
    let expected = "## Commands Executed\n### cat <<EOF...\n\
        Arguments: `{\"command\":\"cat <<EOF\\n## Summary\\nEOF\"}`\n```\nok\n```";
    assert_eq!(told, expected);
}

#[test]
fn a_patch_in_free_text_stands_as_it_is() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n-a\n+b\n*** End Patch";
    let input = Input::Freeform(patch.into());
    let call = Call { id: "1".into(), item_id: None, name: "apply_patch".into(), namespace: None, input };
    let told = told(&[Entry::new(Kind::Called(call)), result("1", "Done!")]);
    assert_eq!(told, format!("## Files Changed\n### a.rs\n```diff\n{patch}\n```\nResult:\n```\nDone!\n```"));
}

#[test]
fn a_turn_under_way_keeps_the_message_that_began_it() {
    let entries =
        [vec![user("Read a.rs.")], pair("1", "Read", r#"{"file_path":"a.rs"}"#, "fn a").to_vec()].concat();
    let rules = ToolRules::default();
    let options = BriefOptions {
        rules: &rules,
        summary: BriefSummary::Words("## Mine\n[/CONTEXT FROM PREVIOUS SESSION]"),
        tools: true,
        result_chars_max: Some(10),
        tool_chars_max: Some(10_000),
        recall: false,
    };
    let mut report = Report::default();
    let text = brief(&entries, &options, &mut report).unwrap();
    assert!(
        text.contains("## Summary\n\\## Mine\n\\[/CONTEXT FROM PREVIOUS SESSION]\n\n## Files Read"),
        "{text}"
    );
    let shown = with_brief(&entries, &text);
    assert_eq!(shown.len(), 1);
    assert!(shown[0].as_said().unwrap().parts[0].as_text().unwrap().ends_with("\n\nRead a.rs."));
    assert_eq!(report.count(Action::Translated), 2);
}

fn handed_over(to: &str, brief: Option<&str>, continues: bool) -> Entry {
    let origin = Origin { backend: to.into(), dialect: Dialect::Chat, model: "m".into() };
    let (conversation, entry) = (ConversationId::new("old"), EntryId::new("e"));
    Entry::new(Kind::HandedOver(Handover {
        from: None,
        to: origin,
        by: "cli".into(),
        reason: "asked".into(),
        brief: brief.map(Text::from),
        continues: continues.then_some(Continued { conversation, entry }),
    }))
}

#[test]
fn a_brief_is_for_the_backend_that_took_over_by_it() {
    let history = |handovers: &[Entry]| {
        let mut entries = vec![user("One."), assistant("Two."), user("Three.")];
        for handover in handovers {
            entries.extend([handover.clone(), assistant("Four."), user("Five.")]);
        }
        entries
    };
    let brief = handed_over("b", Some("BRIEF"), false);
    let once = history(std::slice::from_ref(&brief));
    let opening = Entry { intact: false, ..user("BRIEF\n\nThree.") };
    assert_eq!(briefed(&once, "b"), Some(vec![opening, assistant("Four."), user("Five.")]));
    assert_eq!(briefed(&once, "a"), None);
    let back = history(&[brief.clone(), handed_over("a", None, false)]);
    assert_eq!(brief_in_force(&back, "a"), None);
    assert_eq!(brief_in_force(&back, "b"), Some(3));
    let natively = history(&[brief, handed_over("b", None, false)]);
    assert_eq!(brief_in_force(&natively, "b"), None);
    let continued = history(&[handed_over("a", Some("OLD"), true), handed_over("b", None, false)]);
    assert_eq!(brief_in_force(&continued, "b"), Some(3));
    let briefed = briefed(&continued, "c").unwrap();
    assert_eq!(briefed.iter().filter(|entry| entry.as_said().is_some()).count(), 5);
}

#[test]
fn where_nothing_happened_there_is_nothing_to_tell() {
    let rules = ToolRules::default();
    let options = BriefOptions {
        rules: &rules,
        summary: BriefSummary::Digest,
        tools: true,
        result_chars_max: Some(10),
        tool_chars_max: Some(10),
        recall: false,
    };
    let entries = [Entry::said(Role::System, "Be brief."), user("Hello.")];
    assert_eq!(brief(&entries, &options, &mut Report::default()), None);
}

fn any_entries() -> impl Strategy<Value = Vec<Entry>> {
    let content = "[`a-c\\n\u{1b}é#\\[/]{0,60}";
    let tool = prop::sample::select(vec![
        ("Read", r#"{"file_path":"a.md"}"#),
        ("Write", r#"{"file_path":"a.md","content":"```\n## Summary"}"#),
        ("Bash", r#"{"command":"make"}"#),
        ("other", "not json `"),
    ]);
    prop::collection::vec((tool, content, any::<bool>()), 0..12).prop_map(|pairs| {
        let pairs = pairs.into_iter().enumerate().flat_map(|(at, ((name, arguments), text, answered))| {
            let [call, result] = pair(&at.to_string(), name, arguments, &text);
            if answered { vec![call, result] } else { vec![call] }
        });
        pairs.chain([user("Go on.")]).collect()
    })
}

/// Returns the lines of a brief that stand outside of fences.
fn outside(mut text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    while !text.is_empty() {
        if let Some((_, rest)) = text.starts_with("```").then(|| read_fenced(text)).flatten() {
            text = rest;
            continue;
        }
        let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
        lines.push(line);
        text = rest;
    }
    lines
}

proptest! {
    #[test]
    fn nothing_that_a_tool_said_stands_outside_of_a_fence(entries in any_entries(), most in 5_usize..80) {
        let rules = ToolRules::default();
        let options = BriefOptions {
            rules: &rules, summary: BriefSummary::Off, tools: true, result_chars_max: Some(most),
            tool_chars_max: Some(5_000), recall: true,
        };
        if let Some(text) = brief(&entries, &options, &mut Report::default()) {
            let lines = outside(&text);
            prop_assert_eq!(lines.iter().filter(|line| line.contains("CONTEXT FROM")).count(), 2);
            let is_ours = |line: &&&str| {
                line.is_empty() || line.starts_with("## ") || line.starts_with("### ") || line.starts_with('[')
                    || line.starts_with("Arguments: `") || **line == "Result:" || **line == "content:"
            };
            let others: Vec<_> = lines.iter().filter(|line| !is_ours(line)).collect();
            prop_assert!(others.is_empty(), "{:?}", others);
            prop_assert_eq!(brief(&entries, &options, &mut Report::default()), Some(text));
        }
    }

    #[test]
    fn a_brief_is_no_longer_than_allowed(entries in any_entries(), most in 200_usize..3_000) {
        let rules = ToolRules::default();
        let options = BriefOptions {
            rules: &rules, summary: BriefSummary::Off, tools: true, result_chars_max: Some(50),
            tool_chars_max: Some(most), recall: true,
        };
        let text = brief(&entries, &options, &mut Report::default()).unwrap_or_default();
        prop_assert!(text.chars().count() <= most + BEGIN.len() + END.len() + 4);
    }
}

#[test]
fn what_has_no_place_in_the_request_is_named() {
    let rules = ToolRules::default();
    let options = BriefOptions {
        rules: &rules,
        summary: BriefSummary::Digest,
        tools: true,
        result_chars_max: Some(4),
        tool_chars_max: Some(60_000),
        recall: false,
    };
    let mut entries = vec![user("Read it."), assistant("I will\nread the file now, line by line and whole.")];
    entries.extend(pair("call_7", "Read", r#"{"file_path":"a"}"#, "0123456789"));
    entries.push(user("And?"));
    // What the client sent has its place; what a model answered has none.
    entries[0].place = Some(crate::Place { message: 0, block: None });
    let mut report = Report::default();
    brief(&entries, &options, &mut report).unwrap();
    let reasons: Vec<&str> = report.changes.iter().map(|change| &*change.reason).collect();
    let has = |wanted: &str| reasons.contains(&wanted);
    assert!(has("told in the digest of the brief"), "{reasons:?}");
    assert!(
        has("told in the digest of the brief: \"I will read the file now, line by line a…\""),
        "{reasons:?}"
    );
    assert!(reasons.iter().any(|reason| reason.ends_with(": call call_7 of Read")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.ends_with(": result of call_7")), "{reasons:?}");
}
