//! The law of the prefix over a whole run: a session of 200 turns, replayed as its client would have sent it.

use serde_json::{Value, json};
use throughline_eval::run::{Options, run};
use throughline_eval::table;

const TURNS: usize = 200;

/// Returns a session like those of coding agents: mostly looks and commands of some hundred tokens, now and then an
/// edit, a large file, a word of the user.
fn session() -> String {
    let mut messages = vec![json!({"role": "user", "content": "Mend what the tests complain about."})];
    for turn in 0..TURNS {
        let (name, arguments) = match turn % 5 {
            0 => ("Read", json!({"file_path": format!("src/part_{}.rs", turn % 23)})),
            1 | 2 => ("Bash", json!({"command": format!("cargo test value_{}_2", turn.saturating_sub(9))})),
            3 => ("Grep", json!({"pattern": format!("symbol_{}", turn % 31)})),
            _ => {
                let text = format!("let fixed_{turn} = call_{turn}();\n").repeat(turn % 9 + 1);
                ("Edit", json!({"file_path": format!("src/part_{}.rs", turn % 23), "new_string": text}))
            }
        };
        let lines = if turn % 40 == 0 { 120 } else { 4 + turn * 7 % 22 };
        let text: String =
            (0..lines).map(|line| format!("{line}: value_{turn}_{line} = name_{turn}(x, y)\n")).collect();
        let id = format!("call_{turn}");
        let function = json!({"name": name, "arguments": arguments.to_string()});
        messages.push(json!({"role": "assistant", "content": format!("Step {turn} of the work."),
            "tool_calls": [{"id": id, "type": "function", "function": function}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
        if turn % 50 == 49 {
            messages.push(json!({"role": "user", "content": format!("Good. Go on with part_{turn}.")}));
        }
    }
    json!({"messages": messages}).to_string()
}

#[test]
fn at_least_95_of_100_prompt_tokens_are_a_stable_prefix() {
    let options = Options { budgets: vec![16_000], rolling: true, handover: false, ..Options::default() };
    let session = session();
    let counted = table::json(&run(&[session.as_str()], &options, &|_| ()).expect("the run can be read"));
    let all = counted["rolling"]["keep-all"]["tok_tool"].as_u64().unwrap();
    let rolled: &Value = &counted["rolling"]["throughline @16000"];
    let count = |name: &str| rolled[name].as_u64().unwrap();
    assert_eq!(count("steps"), 200);
    assert!(count("tok_tool") * 2 < all && count("n") > 50, "the run shows too little: {rolled}");
    let (prefix, followed) = (count("hit"), count("followed"));
    assert!(prefix * 100 >= followed * 95, "{prefix} of {followed} tokens");
    assert_eq!(count("ok_recall"), count("n"), "{rolled}");
}
