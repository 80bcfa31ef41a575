//! What an agent sends, request by request, and what a backend answers: the load that the bench measures with.
//!
//! Each request repeats the one before it and adds a pair: the call that the backend made, and its result. The
//! texts look like code, since that is what agents send. Nothing is random, so two runs measure the same bytes.

use bytes::Bytes;

/// The first request of a talk has one user's message before its pairs, and a further one every so many.
const PAIRS_PER_QUESTION: usize = 7;

const TOOLS: usize = 16;

/// A talk in the Messages dialect that grows by a pair with each request.
pub struct Talk {
    /// The elements of `messages`, without their brackets.
    messages: String,
    pairs: usize,
    lines: usize,
    stream: bool,
    tail: String,
}

impl Talk {
    /// Begins the talk of that number, with so many pairs, and results of about so many lines of code.
    pub fn new(number: usize, pairs: usize, lines: usize, stream: bool) -> Self {
        let opening = format!("Talk {number}: why does the test fail?\\n\\n{}", code(number, 2));
        let messages = format!("{{\"role\":\"user\",\"content\":\"{opening}\"}}");
        let mut talk = Self { messages, pairs: 0, lines, stream, tail: tools() };
        while talk.pairs < pairs {
            talk.grow();
        }
        talk
    }

    /// Adds a pair.
    pub fn grow(&mut self) {
        let number = self.pairs;
        let (id, name, input) = call(number);
        let result = code(number * 3, self.lines + number % 17);
        let question = match number % PAIRS_PER_QUESTION {
            0 => format!(",{{\"type\":\"text\",\"text\":\"Step {number}: and now?\\n{}\"}}", code(number, 2)),
            _ => String::new(),
        };
        self.messages.push_str(&format!(
            ",{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{SAID}\"}},\
             {{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{name}\",\"input\":{input}}}]}},\
             {{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\
             \"content\":\"{result}\"}}{question}]}}"
        ));
        self.pairs += 1;
    }

    /// Returns the request.
    pub fn body(&self) -> Bytes {
        let Self { messages, tail, stream, .. } = self;
        Bytes::from(format!(
            "{{\"model\":\"example-large\",\"max_tokens\":16000,\"system\":\"{}\",\
             \"messages\":[{messages}],\"tools\":[{tail}],\"stream\":{stream}}}",
            code(1, 40)
        ))
    }
}

/// Returns a request of about a kilobyte that nobody has sent before.
pub fn small(number: usize, stream: bool) -> Bytes {
    Bytes::from(format!(
        "{{\"model\":\"example-large\",\"max_tokens\":1024,\"messages\":[{{\"role\":\"user\",\
         \"content\":\"Question {number}.\\n{}\"}}],\"stream\":{stream}}}",
        code(number, 13)
    ))
}

/// What the assistant says beside each call.
pub const SAID: &str = "I look at the next part.";

/// Returns the id, the tool and the arguments of a call.
pub fn call(number: usize) -> (String, String, String) {
    let input = format!(
        "{{\"path\":\"crates/engine/src/part_{number}.rs\",\"old\":\"{}\",\"new\":\"{}\",\"line\":{}}}",
        code(number, 3),
        code(number + 7, 4),
        number * 11
    );
    (format!("toolu_{number:08}"), tool_name(number), input)
}

/// Returns the number of the last call that a request of either dialect has a result for.
pub fn last_result(body: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"call_id\":\"toolu_";
    const MARK_MESSAGES: &[u8] = b"tool_use_id\":\"toolu_";
    // The end of the body is tools; the result stands before them, so the search goes from the end.
    let found = |mark: &[u8]| {
        let at = body.windows(mark.len()).rposition(|window| window == mark)?;
        std::str::from_utf8(body.get(at + mark.len()..at + mark.len() + 8)?).ok()?.parse().ok()
    };
    // One of both marks would be searched in vain through the whole body.
    if body.starts_with(b"{\"model\":\"example-large\",\"max_tokens\"") {
        found(MARK_MESSAGES)
    } else {
        found(MARK)
    }
}

/// Returns text that looks like a file of code, as it stands in a JSON string.
fn code(seed: usize, lines: usize) -> String {
    const LINES: [&str; 8] = [
        "    let value = self.table.get(\\\"key_N\\\").map(|found| found.clone());\\n",
        "\\tif (count[N] >= LIMIT && name != \\\"\\\\\\\\server\\\\share\\\") { return null; }\\n",
        "        assert_eq!(format!(\\\"{}\\\\n\\\", total), \\\"N\\\\n\\\", \\\"sum of the parts\\\");\\n",
        "    // Überlauf möglich → siehe Abschnitt N, „Grenzen\\\"\\n",
        "    for entry in entries.iter().filter(|entry| entry.number > N) {\\n",
        "export const handlerN = async (request: Request): Promise<Response> => {\\n",
        "    }\\n\\n",
        "warning: unused variable: `resultN` --> src/lib.rs:N:13\\n",
    ];
    let number = seed.to_string();
    (0..lines).map(|line| LINES[(seed + line * 5) % LINES.len()].replace('N', &number)).collect()
}

fn tool_name(number: usize) -> String {
    let names = ["read_file", "edit_file", "run_shell", "search_code"];
    format!("{}_{}", names[number % names.len()], number % TOOLS)
}

fn tools() -> String {
    let tool = |number: usize| {
        format!(
            "{{\"name\":\"{}\",\"description\":\"Tool {number}.\\n{}\",\"input_schema\":{{\"type\":\"object\",\
             \"properties\":{{\"path\":{{\"type\":\"string\",\"description\":\"Where the file is.\"}},\
             \"old\":{{\"type\":\"string\",\"description\":\"The text to be replaced; must occur once.\"}},\
             \"new\":{{\"type\":\"string\"}},\"line\":{{\"type\":\"integer\",\"minimum\":1}}}},\
             \"required\":[\"path\"]}}}}",
            tool_name(number),
            code(number, 12)
        )
    };
    (0..TOOLS).map(tool).collect::<Vec<_>>().join(",")
}
