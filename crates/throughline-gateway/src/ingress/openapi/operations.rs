//! The paths, each with what it does.

use super::schemas::Of;

/// One method of one path.
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub summary: &'static str,
    pub tag: &'static str,
    pub parameters: &'static [Parameter],
    pub body: Option<Of>,
    pub answer: Of,
    pub content_type: &'static str,
}

/// Something behind the `?`.
pub struct Parameter {
    pub name: &'static str,
    pub meaning: &'static str,
}

const fn parameter(name: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, meaning }
}

const LIMIT: Parameter = parameter("limit", "how many at most, up to 500; 50 if it is left out");
const AFTER: Parameter = parameter("after", "the `next` of the page before");
const SINCE: Parameter = parameter("since", "a date, a time, today, yesterday, or an age such as 2h or 7d");
const PREVIEW: Parameter = parameter("preview", "how many characters of each text; all if it is left out");

const fn get(path: &'static str, summary: &'static str, tag: &'static str, answer: Of) -> Operation {
    let content_type = "application/json";
    Operation { method: "get", path, summary, tag, parameters: &[], body: None, answer, content_type }
}

const fn post(path: &'static str, summary: &'static str, tag: &'static str) -> Operation {
    let answer = Of::Anything;
    Operation { method: "post", body: Some(Of::Anything), ..get(path, summary, tag, answer) }
}

const fn delete(path: &'static str, summary: &'static str, tag: &'static str) -> Operation {
    Operation { method: "delete", ..get(path, summary, tag, Of::Anything) }
}

const fn plain(path: &'static str, summary: &'static str) -> Operation {
    Operation { content_type: "text/plain", ..get(path, summary, MACHINES, Of::Text) }
}

const RECORD: &str = "the record";
const RUNS: &str = "runs";
const SWITCH: &str = "the switch";
const RESPONSES: &str = "OpenAI Responses";
const MESSAGES: &str = "Anthropic Messages";
const CHAT: &str = "Chat Completions";
const MODELS: &str = "models";
const MACHINES: &str = "for machines";

/// All of them; those of one path stand together.
pub static OPERATIONS: &[Operation] = &[
    Operation {
        parameters: &[
            LIMIT,
            AFTER,
            parameter("totals", "whether to say what each has taken in all"),
            parameter("id", "only those whose id, or its short form, begins so"),
            parameter("title", "only those with this in their title"),
            parameter("client", "only those with a request of a client whose name contains this"),
            parameter("backend", "only those with a request to this backend"),
            parameter("project", "only those that work in a directory whose path contains this"),
            parameter("failed", "only those with a request that failed or broke off"),
            SINCE,
            parameter("sort", "updated, cost, tokens or exchanges; all but the first return one page"),
            parameter("all", "whether to list what clients ask on the side, too"),
        ],
        ..get("/api/conversations", "conversations, the latest first", RECORD, Of::Schema("Conversations"))
    },
    Operation {
        parameters: &[PREVIEW],
        ..get(
            "/api/conversations/{id}",
            "a conversation with all its entries and exchanges",
            RECORD,
            Of::Schema("Whole"),
        )
    },
    delete("/api/conversations/{id}", "takes a conversation out, with all that no other one shares", RECORD),
    get("/api/conversations/{id}/pairs", "calls with their results", RECORD, Of::Schema("Pairs")),
    Operation {
        parameters: &[
            parameter("run", "only those of this run"),
            parameter("exchange", "only those of this exchange"),
        ],
        ..get(
            "/api/conversations/{id}/frames",
            "every event that came back from backends",
            RECORD,
            Of::Schema("Frames"),
        )
    },
    get(
        "/api/conversations/{id}/entries/{entry}",
        "one entry with all it has, pictures too",
        RECORD,
        Of::Schema("Entry"),
    ),
    get(
        "/api/conversations/{id}/sent/{number}",
        "what backends were sent in the exchange of that number, from 1 on",
        RECORD,
        Of::Schema("Exchange"),
    ),
    Operation {
        parameters: &[PREVIEW],
        ..get(
            "/api/conversations/{id}/seen/{number}",
            "what was kept beside what was sent, with the reason for each difference",
            RECORD,
            Of::Schema("Seen"),
        )
    },
    Operation {
        parameters: &[parameter("by", "day, model, client, conversation or project"), SINCE],
        ..get("/api/usage", "tokens and cost, added up", RECORD, Of::Schema("UsageReport"))
    },
    get(
        "/api/conversations/{id}/arriving",
        "what has come so far of the answer under way",
        RECORD,
        Of::Schema("Arriving"),
    ),
    Operation {
        method: "put",
        body: Some(Of::Schema("Switch")),
        ..get(
            "/api/conversations/{id}/backend",
            "who answers this conversation, from the next request on; null takes it back",
            SWITCH,
            Of::Schema("Switch"),
        )
    },
    Operation {
        parameters: &[
            parameter("q", "words; all must occur. Not needed where something else narrows the search"),
            parameter("tool", "only what this tool was given or returned, by any of its names"),
            parameter(
                "path",
                "only calls that name such a path, and their results; words side by side, * at the end",
            ),
            parameter("command", "only calls that run such a command, and their results; likewise"),
            parameter("failed", "true: only failures, and commands that ended with another exit code than 0"),
            parameter("conversation", "only this conversation"),
            parameter(
                "since",
                "only from then on: a date, a time as in RFC 3339, or an age such as 2h or 7d",
            ),
            parameter("until", "only before then, given likewise"),
            LIMIT,
            AFTER,
        ],
        ..get("/api/search", "searches all tool history", RECORD, Of::Schema("Hits"))
    },
    Operation {
        parameters: &[LIMIT, AFTER],
        ..get(
            "/api/runs",
            "runs of the tool loop, of the latest conversations first",
            RUNS,
            Of::Schema("Runs"),
        )
    },
    get("/api/runs/{id}", "a run with its steps", RUNS, Of::Schema("Run")),
    Operation {
        method: "post",
        parameters: &[parameter("settings", "recorded, or current for those that the gateway has now")],
        ..get(
            "/api/runs/{id}/replay",
            "drives a run again from the record alone, compares, and keeps the verdict",
            RUNS,
            Of::Schema("Verdict"),
        )
    },
    Operation {
        content_type: "text/event-stream",
        ..get(
            "/api/events",
            "an event `conversation` for each one that something was added to",
            RECORD,
            Of::Schema("Conversation"),
        )
    },
    get("/api/backends", "who can answer, who does, what was learned", SWITCH, Of::Schema("Backends")),
    Operation {
        method: "put",
        body: Some(Of::Schema("Switch")),
        ..get(
            "/api/active",
            "who answers, from the next request on; null takes it back",
            SWITCH,
            Of::Schema("Switch"),
        )
    },
    get("/api/openapi.json", "this document", MACHINES, Of::Anything),
    post("/v1/chat/completions", "Chat Completions, over any backend, streamed or not", CHAT),
    post("/v1/messages", "Messages, over any backend, streamed or not", MESSAGES),
    post("/v1/messages/count_tokens", "how large a prompt would be", MESSAGES),
    post("/v1/responses/input_tokens", "how large a prompt would be", RESPONSES),
    post("/v1/responses/compact", "a history in few words, readable, with a way back", RESPONSES),
    post("/v1/responses", "Responses, over any backend, streamed or not", RESPONSES),
    get("/v1/responses", "the same over a WebSocket, with an upgrade", RESPONSES, Of::Anything),
    get("/v1/responses/{id}", "a stored response", RESPONSES, Of::Anything),
    delete("/v1/responses/{id}", "forgets a stored response", RESPONSES),
    get("/v1/responses/{id}/input_items", "what a response was given", RESPONSES, Of::Anything),
    post("/v1/responses/{id}/cancel", "calls off a response in the background", RESPONSES),
    post("/v1/conversations", "begins a conversation", RESPONSES),
    get("/v1/conversations/{id}", "a conversation object", RESPONSES, Of::Anything),
    post("/v1/conversations/{id}", "describes a conversation", RESPONSES),
    delete("/v1/conversations/{id}", "takes a conversation out of use", RESPONSES),
    get("/v1/conversations/{id}/items", "the items of a conversation", RESPONSES, Of::Anything),
    post("/v1/conversations/{id}/items", "adds items to a conversation", RESPONSES),
    get("/v1/conversations/{id}/items/{item}", "one item of a conversation", RESPONSES, Of::Anything),
    delete("/v1/conversations/{id}/items/{item}", "takes an item out of a conversation", RESPONSES),
    get("/v1/models", "the models, in the shape of whichever client asks", MODELS, Of::Anything),
    get("/v1/models/{id}", "one model", MODELS, Of::Anything),
    plain("/healthz", "whether the process serves"),
    plain("/readyz", "whether the history can be read"),
    plain("/metrics", "what is counted, for Prometheus"),
];
