//! The shapes of what is ours.

/// What a value is.
#[derive(Clone, Copy)]
pub enum Of {
    Text,
    /// A text, or null.
    Maybe,
    Texts,
    Number,
    /// An amount in US dollars, or null.
    Dollars,
    Flag,
    Anything,
    Schema(&'static str),
    List(&'static str),
}

/// A field of an object.
pub struct Field {
    pub name: &'static str,
    pub of: Of,
    pub meaning: &'static str,
}

const fn field(name: &'static str, of: Of, meaning: &'static str) -> Field {
    Field { name, of, meaning }
}

const NEXT: Field =
    field("next", Of::Maybe, "handed back as `after` for the next page; null behind the last");

/// All shapes, by name.
pub static SCHEMAS: &[(&str, &[Field])] = &[
    ("Conversations", &[field("conversations", Of::List("Conversation"), ""), NEXT]),
    (
        "Conversation",
        &[
            field("id", Of::Text, ""),
            field("created", Of::Text, "ISO 8601, in UTC"),
            field("updated", Of::Text, "when something was last added"),
            field("identified", Of::Text, "how it was recognised when it began"),
            field("title", Of::Maybe, "the first words of the user"),
            field("backend", Of::Maybe, "who answered last"),
            field("switched", Of::Maybe, "who was chosen for it at run time"),
            field("project", Of::Maybe, "the directory that it works in, where that is known"),
            field("parent", Of::Maybe, "the conversation whose sub-agent it is, where that is known"),
            field("entries", Of::Number, "over all branches"),
            field("exchanges", Of::Number, ""),
            field("client", Of::Maybe, "of the latest exchange, as it names itself"),
            field("model", Of::Maybe, "that was asked for last"),
            field("ending", Of::Maybe, "how the latest answer ended"),
            field("answering", Of::Flag, "whether an answer is under way"),
            field("usage", Of::Schema("Usage"), "of the latest exchange"),
            field("usage_total", Of::Schema("Usage"), "of all exchanges, where totals are asked for"),
            field("cost", Of::Dollars, "of all exchanges; null unless all their backends have prices"),
            field("runs", Of::Number, "how many runs of the tool loop it holds, where totals are asked for"),
        ],
    ),
    (
        "Whole",
        &[
            field("conversation", Of::Schema("Conversation"), ""),
            field("entries", Of::List("Entry"), "in the order in which they were added, with every branch"),
            field("exchanges", Of::List("Exchange"), "the earliest first"),
        ],
    ),
    (
        "Entry",
        &[
            field("id", Of::Text, "follows from what it says and all before it"),
            field("parent", Of::Maybe, "the entry before it"),
            field("exchange", Of::Maybe, "the exchange that brought it"),
            field("at", Of::Text, ""),
            field(
                "kind",
                Of::Text,
                "said, thought, called, returned, handed over, summarised, reference, opaque",
            ),
            field("role", Of::Text, "of what was said: system, developer, user, assistant"),
            field("text", Of::Text, "what was said, thought, returned or summarised"),
            field("chars", Of::Number, "how many characters there are, where the text was cut"),
            field("spoken", Of::Text, "the person's own words, where their agent put something in"),
            field("spoken_chars", Of::Number, "how many characters those have, where they were cut"),
            field("injected", Of::List("Injected"), "what the agent put in"),
            field("call_id", Of::Maybe, "of a call or a result"),
            field("tool", Of::Maybe, ""),
            field("input", Of::Text, "what a tool was given, as the exact text"),
            field("outcome", Of::Text, "ok, error, denied, interrupted, unknown"),
            field("exit_code", Of::Number, "that the result of a command says"),
            field("sealed", Of::Flag, "whether reasoning is bound to its issuer"),
            field("covers", Of::Number, "how many entries a summary stands for"),
            field("to", Of::Schema("Origin"), "who took over"),
            field("reason", Of::Text, "why"),
            field("origin", Of::Schema("Origin"), "who said it"),
            field("pictures", Of::Texts, "of one entry asked for by itself: data URLs, or addresses"),
            field("wire", Of::Text, "of one entry asked for by itself: its exact text"),
        ],
    ),
    ("Injected", &[field("tag", Of::Text, "what the agent calls it"), field("chars", Of::Number, "")]),
    (
        "Origin",
        &[field("backend", Of::Text, ""), field("dialect", Of::Text, ""), field("model", Of::Text, "")],
    ),
    (
        "Exchange",
        &[
            field("id", Of::Text, ""),
            field("dialect", Of::Text, "that the client spoke"),
            field("client", Of::Maybe, ""),
            field("model", Of::Maybe, "that was asked for"),
            field("started", Of::Text, ""),
            field("ended", Of::Maybe, ""),
            field("ending", Of::Maybe, ""),
            field("status", Of::Number, "that the client saw"),
            field("usage", Of::Schema("Usage"), ""),
            field("before", Of::Maybe, "the last entry before the answer"),
            field("failure", Of::Schema("RequestFailure"), "why it failed; null if it did not"),
            field("window", Of::Number, "how much the model takes, where that is known"),
            field("cost", Of::Dollars, "null where the prices of its backend are not known"),
            field("attempts", Of::List("Attempt"), "the last one counts"),
        ],
    ),
    (
        "RequestFailure",
        &[
            field("what", Of::Text, "failed, broken, cancelled"),
            field("backend", Of::Maybe, "that was tried last"),
            field("model", Of::Maybe, "that was sent"),
            field("status", Of::Number, "that the backend answered with, else the one that the client saw"),
            field("message", Of::Text, "why, in the words of whoever refused it"),
            field("tries", Of::Number, ""),
        ],
    ),
    (
        "UsageReport",
        &[
            field("by", Of::Text, "what the rows are added up by"),
            field("rows", Of::List("UsageRow"), "days the latest first, else by tokens"),
            field("total", Of::Schema("UsageRow"), ""),
        ],
    ),
    (
        "UsageRow",
        &[
            field("key", Of::Text, "a day, a name or an id"),
            field("title", Of::Maybe, "of a conversation"),
            field("requests", Of::Number, ""),
            field("failed", Of::Number, ""),
            field("usage", Of::Schema("Usage"), ""),
            field("cost", Of::Dollars, "null where a price is not known"),
            field("cost_known", Of::Dollars, "without what has no known price"),
            field("cache_saved", Of::Dollars, "how much more it would have cost without caches"),
        ],
    ),
    (
        "Attempt",
        &[
            field("backend", Of::Text, ""),
            field("dialect", Of::Text, ""),
            field("model", Of::Maybe, "that was sent"),
            field("strategy", Of::Maybe, "how tool history was shown"),
            field("started", Of::Text, ""),
            field("ended", Of::Maybe, ""),
            field("status", Of::Number, ""),
            field("failure", Of::Maybe, ""),
            field(
                "compaction",
                Of::Schema("CompactionStep"),
                "the step whose decisions it shows, if it shortens anything",
            ),
            field("plan", Of::Schema("PlanSizes"), "how large the prompt is, if it shortens anything"),
            field("continues", Of::Text, "the backend's own response that it goes on from, if it does"),
            field(
                "recall",
                Of::Text,
                "the tool by which the model has back what was taken out, if it is offered",
            ),
            field(
                "report",
                Of::Schema("Report"),
                "what was changed for the backend, where one exchange is asked for",
            ),
            field("body", Of::Text, "what was sent, to the byte, where it is asked for"),
        ],
    ),
    (
        "CompactionStep",
        &[
            field("exchange", Of::Text, "the exchange that took it"),
            field("attempt", Of::Number, "the attempt in it, from 0"),
        ],
    ),
    (
        "PlanSizes",
        &[
            field("tokens_before", Of::Number, "of the prompt as it came"),
            field("tokens_after", Of::Number, "of the prompt as it is shown"),
            field("tool_tokens", Of::Number, "of its calls and results"),
        ],
    ),
    (
        "Report",
        &[
            field("summary", Of::Text, "as in the header x-throughline-report"),
            field("changes", Of::List("Change"), ""),
        ],
    ),
    (
        "Change",
        &[
            field("action", Of::Text, "repaired, shortened, dropped, renamed, translated"),
            field("place", Of::Text, "in the client's request"),
            field("reason", Of::Text, ""),
        ],
    ),
    (
        "Usage",
        &[
            field("input", Of::Number, "tokens of the prompt, cached ones included"),
            field("cache_read", Of::Number, ""),
            field("cache_written", Of::Number, ""),
            field("output", Of::Number, ""),
            field("reasoning", Of::Number, "of the output"),
        ],
    ),
    ("Pairs", &[field("conversation", Of::Text, ""), field("pairs", Of::List("Pair"), "")]),
    (
        "Pair",
        &[
            field("state", Of::Text, "open, or the outcome"),
            field("oddity", Of::Maybe, "what is odd about it"),
            field("call", Of::Schema("Entry"), "or null"),
            field("result", Of::Schema("Entry"), "or null"),
        ],
    ),
    ("Frames", &[field("conversation", Of::Text, ""), field("frames", Of::List("Frame"), "")]),
    (
        "Frame",
        &[
            field("exchange", Of::Text, ""),
            field("attempt", Of::Number, "from 0 on"),
            field("at", Of::Text, ""),
            field("event", Of::Maybe, ""),
            field("data", Of::Text, "unaltered; not all that comes is JSON"),
        ],
    ),
    (
        "Seen",
        &[
            field("exchange", Of::Schema("Exchange"), ""),
            field("tokens", Of::Anything, "by kind of entry: kept, sent"),
            field("known", Of::Flag, "whether it was noted what the backend saw; older releases did not"),
            field("rows", Of::List("Row"), ""),
        ],
    ),
    (
        "Row",
        &[
            field(
                "mark",
                Of::Text,
                "same, changed, shortened, retold, joined, summarised, left out, held, internal, added, unknown",
            ),
            field("from", Of::Text, "record, request, added, above (a row before this one) or unknown"),
            field("reason", Of::Text, "why they differ, in a sentence"),
            field("handle", Of::Text, "what recall takes"),
            field("stale", Of::Flag, "whether it shows a file that was written since"),
            field("tokens_kept", Of::Number, ""),
            field("tokens_sent", Of::Number, ""),
            field("kept", Of::Schema("Entry"), ""),
            field("sent", Of::Schema("Entry"), "left out where it is the same"),
        ],
    ),
    ("Hits", &[field("hits", Of::List("Hit"), ""), NEXT]),
    (
        "Hit",
        &[
            field("conversation", Of::Text, ""),
            field("entry", Of::Text, ""),
            field("at", Of::Text, ""),
            field("kind", Of::Text, ""),
            field("tool", Of::Maybe, ""),
            field("outcome", Of::Text, ""),
            field("exit_code", Of::Number, "that the result of a command says"),
            field("snippet", Of::Text, ""),
            field("title", Of::Maybe, "of the conversation"),
        ],
    ),
    (
        "Backends",
        &[
            field("active", Of::Text, "by the configuration"),
            field("switched", Of::Maybe, "at run time"),
            field("backends", Of::List("Backend"), ""),
        ],
    ),
    (
        "Backend",
        &[
            field("name", Of::Text, ""),
            field("dialect", Of::Text, ""),
            field("address", Of::Text, ""),
            field("default_model", Of::Maybe, ""),
            field("active", Of::Flag, ""),
            field("configured", Of::Schema("Configured"), ""),
            field("models", Of::Texts, "that it lists; null where nobody knows"),
            field("learned", Of::List("Learned"), ""),
        ],
    ),
    (
        "Learned",
        &[
            field("model", Of::Maybe, ""),
            field("capability", Of::Text, ""),
            field("verdict", Of::Text, ""),
            field("reason", Of::Text, "how it is known"),
            field("at", Of::Text, ""),
            field("expires", Of::Maybe, ""),
            field("holds", Of::Flag, ""),
        ],
    ),
    (
        "Configured",
        &[
            field("native_tool_history", Of::Text, "always, never, or auto: it is found out"),
            field("server_state", Of::Text, "always, never, auto"),
            field("context_management", Of::Text, "always, never, auto"),
            field("reasoning", Of::Text, "keep-own, as-text, drop"),
            field("context_window", Of::Number, "tokens; null where nobody said"),
            field("fallback", Of::Texts, "who is tried when it fails"),
            field("prices", Of::Anything, "US dollars for a million tokens; null where nobody said"),
        ],
    ),
    (
        "Arriving",
        &[
            field("answering", Of::Flag, "whether an answer is under way"),
            field("entries", Of::List("Entry"), "as far as they have come; without a place in the history"),
        ],
    ),
    ("Runs", &[field("runs", Of::List("Run"), "the latest first"), NEXT]),
    (
        "Run",
        &[
            field("run", Of::Text, ""),
            field("conversation", Of::Text, ""),
            field("title", Of::Maybe, ""),
            field("started", Of::Text, ""),
            field("ended", Of::Maybe, "when its latest answer was through"),
            field("ending", Of::Maybe, "how its latest answer ended"),
            field("first", Of::Number, "the number of its first exchange in the conversation"),
            field("exchanges", Of::Number, ""),
            field("backends", Of::Texts, "who answered"),
            field("usage", Of::Schema("Usage"), ""),
            field("cost", Of::Dollars, ""),
            field("end", Of::Anything, "its conclusion and how many calls it ran; null until it ends"),
            field("replays", Of::Anything, "moment and verdict of each replay over HTTP"),
            field("begun", Of::Anything, "of one run asked for by itself: what it was given"),
            field("steps", Of::Anything, "of one run asked for by itself: its exchanges with their calls"),
        ],
    ),
    (
        "Verdict",
        &[
            field("run", Of::Text, ""),
            field("conversation", Of::Text, ""),
            field("identical", Of::Flag, ""),
            field("finished", Of::Flag, "whether the run came to an end"),
            field("requests", Of::Number, "that were compared"),
            field("provider_events", Of::Number, ""),
            field("tool_calls", Of::Number, ""),
            field("differences", Of::List("Difference"), "the first one is what the others follow from"),
        ],
    ),
    (
        "Difference",
        &[
            field("request", Of::Number, "of the run, from 1 on; or null"),
            field("what", Of::Text, "what differs"),
            field("path", Of::Text, "where in it, if it is JSON"),
            field("recorded", Of::Text, ""),
            field("replayed", Of::Text, ""),
        ],
    ),
    ("Switch", &[field("backend", Of::Maybe, "NAME or NAME/MODEL")]),
    ("Failure", &[field("error", Of::Anything, "with a message, a type, and the field that is wrong")]),
];
