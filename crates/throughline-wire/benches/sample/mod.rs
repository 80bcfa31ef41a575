//! A working day of a coding agent, as each dialect writes it: the load that the benches measure with.
//!
//! About 400 KB: 300 messages, of which 140 call a tool and 140 answer; 14 tools on offer. The texts look
//! like code, since that is what agents send: line breaks, quotes and tabs in every line, some beyond ASCII.
//! Nothing is random, so that two runs measure the same bytes.

use serde_json::{Value, json};
use throughline_core::Dialect;

const PAIRS: usize = 140;
const TALKS: usize = 20;
const TOOLS: usize = 14;

/// One step of the agent's day.
struct Step {
    number: usize,
    /// What the user asks, before some of the steps.
    question: Option<String>,
    arguments: Value,
    result: String,
}

/// Returns the request body in that dialect.
pub fn request(dialect: Dialect) -> String {
    let steps: Vec<Step> = (0..PAIRS).map(step).collect();
    let body = match dialect {
        Dialect::Chat => chat(&steps),
        Dialect::Messages => messages(&steps),
        Dialect::Responses => responses(&steps),
    };
    body.to_string()
}

fn step(number: usize) -> Step {
    let asks = number.is_multiple_of(PAIRS / TALKS);
    let arguments = json!({
        "path": format!("crates/engine/src/part_{number}.rs"),
        "old": code(number, 3),
        "new": code(number + 7, 4),
        "line": number * 11,
    });
    Step {
        number,
        question: asks.then(|| format!("Step {number}: why does the test fail?\n\n{}", code(number, 2))),
        arguments,
        result: code(number * 3, 20 + number % 17),
    }
}

/// Returns text that looks like a file of code.
fn code(seed: usize, lines: usize) -> String {
    const LINES: [&str; 8] = [
        "    let value = self.table.get(\"key_N\").map(|found| found.clone());\n",
        "\tif (count[N] >= LIMIT && name != \"\\\\server\\share\") { return null; }\n",
        "        assert_eq!(format!(\"{}\\n\", total), \"N\\n\", \"sum of the parts\");\n",
        "    // Überlauf möglich → siehe Abschnitt N, „Grenzen\"\n",
        "    for entry in entries.iter().filter(|entry| entry.number > N) {\n",
        "export const handlerN = async (request: Request): Promise<Response> => {\n",
        "    }\n\n",
        "warning: unused variable: `resultN` --> src/lib.rs:N:13\n",
    ];
    let number = seed.to_string();
    (0..lines).map(|line| LINES[(seed + line * 5) % LINES.len()].replace('N', &number)).collect()
}

fn tool_name(number: usize) -> String {
    let names = ["read_file", "edit_file", "run_shell", "search_code"];
    format!("{}_{}", names[number % names.len()], number % TOOLS)
}

fn tools(declare: impl Fn(String, String, Value) -> Value) -> Value {
    let declared = |number| {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where the file is, from the root of the tree."},
                "old": {"type": "string", "description": "The text to be replaced; must occur exactly once."},
                "new": {"type": "string"},
                "line": {"type": "integer", "minimum": 1},
            },
            "required": ["path"],
        });
        declare(tool_name(number), format!("Tool {number}.\n{}", code(number, 6)), schema)
    };
    (0..TOOLS).map(declared).collect()
}

fn chat(steps: &[Step]) -> Value {
    let mut messages = vec![json!({"role": "system", "content": code(1, 40)})];
    for step in steps {
        let id = format!("call_{:024}", step.number);
        messages.extend(step.question.as_ref().map(|text| json!({"role": "user", "content": text})));
        messages.push(json!({
            "role": "assistant",
            "content": format!("I look at part {}.", step.number),
            "tool_calls": [{
                "id": id,
                "type": "function",
                "function": {"name": tool_name(step.number), "arguments": step.arguments.to_string()},
            }],
        }));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": step.result}));
    }
    json!({
        "model": "example-large",
        "messages": messages,
        "tools": tools(|name, description, schema| json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": schema},
        })),
        "temperature": 0.2,
        "max_completion_tokens": 16000,
        "stream": true,
    })
}

fn messages(steps: &[Step]) -> Value {
    let mut messages = Vec::new();
    let mut content = Vec::new();
    for step in steps {
        let id = format!("toolu_{:024}", step.number);
        content.extend(step.question.as_ref().map(|text| json!({"type": "text", "text": text})));
        messages.push(json!({"role": "user", "content": content}));
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("I look at part {}.", step.number)},
            {"type": "tool_use", "id": id, "name": tool_name(step.number), "input": step.arguments},
        ]}));
        content = vec![json!({
            "type": "tool_result",
            "tool_use_id": id,
            "content": [{"type": "text", "text": step.result}],
        })];
    }
    messages.push(json!({"role": "user", "content": content}));
    json!({
        "model": "example-large",
        "max_tokens": 16000,
        "system": [{"type": "text", "text": code(1, 40), "cache_control": {"type": "ephemeral"}}],
        "messages": messages,
        "tools": tools(|name, description, schema| json!({
            "name": name, "description": description, "input_schema": schema,
        })),
        "temperature": 0.2,
        "stream": true,
    })
}

fn responses(steps: &[Step]) -> Value {
    let said = |role: &str, kind: &str, text: &str| {
        json!({
            "type": "message", "role": role, "content": [{"type": kind, "text": text}],
        })
    };
    let mut input = Vec::new();
    for step in steps {
        let id = format!("call_{:024}", step.number);
        input.extend(step.question.as_ref().map(|text| said("user", "input_text", text)));
        input.push(said("assistant", "output_text", &format!("I look at part {}.", step.number)));
        input.push(json!({
            "type": "function_call",
            "call_id": id,
            "name": tool_name(step.number),
            "arguments": step.arguments.to_string(),
        }));
        input.push(json!({"type": "function_call_output", "call_id": id, "output": step.result}));
    }
    json!({
        "model": "example-large",
        "instructions": code(1, 40),
        "input": input,
        "tools": tools(|name, description, schema| json!({
            "type": "function", "name": name, "description": description, "parameters": schema, "strict": false,
        })),
        "temperature": 0.2,
        "max_output_tokens": 16000,
        "stream": true,
        "store": false,
    })
}
