//! What a conversation says, in no dialect: drawn at random, then written in any of the three.

use super::texts::Dice;
use proptest::prelude::*;
use proptest::sample::select;

/// A conversation of which every call has its result.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Decides how it is written.
    pub seed: u64,
    /// Whether the calls of each turn have the ids of those before.
    pub reuse_ids: bool,
    /// What the operator says.
    pub system: Vec<String>,
    /// Who says what, beginning with the user.
    pub turns: Vec<Turn>,
}

#[derive(Clone, Debug)]
pub(super) enum Turn {
    User { texts: Vec<String>, media: Vec<Media> },
    Model { thinks: bool, text: Option<String>, calls: Vec<Call> },
}

/// A call and its result.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub name: String,
    pub input: Input,
    pub texts: Vec<String>,
    pub media: Vec<Media>,
    pub is_error: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Input {
    /// The text of an object.
    Object(String),
    /// Whatever a model wrote instead of one.
    Other(String),
    /// Free text, of a custom tool.
    Freeform(String),
}

/// An image or a file that every dialect can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    ImageUrl(&'static str),
    ImageData(&'static str),
    Pdf(&'static str),
}

impl Plan {
    pub(super) fn dice(&self) -> Dice {
        Dice::new(self.seed)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.turns.iter().flat_map(|turn| match turn {
            Turn::Model { calls, .. } => calls.as_slice(),
            Turn::User { .. } => &[],
        })
    }

    /// Returns the plan with nothing but images in its results.
    pub(super) fn without_files(&self) -> Self {
        let mut plan = self.clone();
        for turn in &mut plan.turns {
            let Turn::Model { calls, .. } = turn else { continue };
            for call in calls {
                call.media.retain(|media| !matches!(media, Media::Pdf(_)));
            }
        }
        plan
    }

    /// Returns the names of the functions and of the custom tools, each once.
    pub(super) fn tool_names(&self, freeform: bool) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .calls()
            .filter(|call| matches!(call.input, Input::Freeform(_)) == freeform)
            .map(|call| call.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// What a plan may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// Whether arguments may be something else than an object, and tools custom.
    pub any_input: bool,
    /// Whether results may hold images and files.
    pub media_in_results: bool,
    /// Whether text may be blank.
    pub blank: bool,
}

pub(super) fn plans(scope: Scope) -> impl Strategy<Value = Plan> {
    let turn = prop_oneof![
        2 => user(scope),
        3 => model(scope),
    ];
    let system = prop::collection::vec(words(), 0..3);
    (prop_oneof![1 => Just(0), 9 => any::<u64>()], system, user(scope), prop::collection::vec(turn, 0..6))
        .prop_map(|(seed, system, first, rest)| Plan {
            seed,
            reuse_ids: false,
            system,
            turns: [vec![first], rest].concat(),
        })
}

/// Something to say: never blank, never ending in white space.
pub(super) fn words() -> impl Strategy<Value = String> {
    let odd = vec![
        "what is 2 + 2?",
        "say \"hi\"\nand \\ leave",
        "naïve 😀 \u{2028} text",
        "[attachment 1: see the next user message]",
        "Context (tool result):\nfake",
        "{\"type\":\"tool_use\"}",
        "a\r\nb\t\u{7f}c/d",
        "<think>no</think>",
    ];
    prop_oneof![2 => "[a-z]{1,8}( [a-z]{1,8}){0,2}", 1 => select(odd).prop_map(String::from)]
}

fn user(scope: Scope) -> impl Strategy<Value = Turn> {
    let blank = prop_oneof![12 => Just(false), 1 => Just(scope.blank)];
    let text = (words(), blank).prop_map(|(words, blank)| if blank { " \n".to_owned() } else { words });
    (prop::collection::vec(text, 1..3), prop_oneof![3 => Just(vec![]), 1 => media()])
        .prop_map(|(texts, media)| Turn::User { texts, media })
}

fn model(scope: Scope) -> impl Strategy<Value = Turn> {
    (any::<bool>(), prop::option::of(words()), prop::collection::vec(call(scope), 0..4)).prop_map(
        |(thinks, text, calls)| {
            let text = if calls.is_empty() { text.or_else(|| Some("done".to_owned())) } else { text };
            Turn::Model { thinks, text, calls }
        },
    )
}

fn call(scope: Scope) -> impl Strategy<Value = Call> {
    let texts = prop_oneof![
        1 => Just(vec![String::new()]),
        5 => prop::collection::vec(result_text(), 1..4),
    ];
    let media = prop_oneof![3 => Just(vec![]), 1 => media()]
        .prop_map(move |media| if scope.media_in_results { media } else { vec![] });
    (name(), input(scope), texts, media, any::<bool>()).prop_map(
        |(name, input, mut texts, media, is_error)| {
            if texts.len() == 1 && texts[0].is_empty() && !media.is_empty() {
                texts.clear();
            }
            // A tool is either custom or not, so its name says which.
            let name = if matches!(input, Input::Freeform(_)) { format!("free-{name}") } else { name };
            Call { name, input, texts, media, is_error }
        },
    )
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(vec!["read", "write_file", "mcp__fs-server__list"]).prop_map(String::from),
        1 => "[a-zA-Z0-9_-]{1,59}",
    ]
}

fn result_text() -> impl Strategy<Value = String> {
    let odd = vec![
        "[tool error] not a mark",
        "[attachments of tool result call_1]",
        "two\nlines",
        "12345678901234567890123",
        "<!-- prior-tool-result: x -->",
    ];
    prop_oneof![3 => words(), 1 => select(odd).prop_map(String::from)]
}

fn input(scope: Scope) -> impl Strategy<Value = Input> {
    let patch = Just("*** Begin Patch\n*** End Patch\n".to_owned());
    let any = prop_oneof![
        3 => objects().prop_map(Input::Object),
        1 => other_arguments().prop_map(Input::Other),
        1 => prop_oneof![words(), patch].prop_map(Input::Freeform),
    ];
    any.prop_map(move |input| match input {
        Input::Other(_) | Input::Freeform(_) if !scope.any_input => Input::Object("{}".to_owned()),
        input => input,
    })
}

fn objects() -> impl Strategy<Value = String> {
    let odd = vec![
        "{}",
        r#"{"path":"a.rs"}"#,
        r#"{"z":1.10,"a":[1e0, -0.0],"m":12345678901234567890123}"#,
        "{ \"b\" : {\n\"x\":null},\"a\":\"\\u0041\\/\" }",
        r#"{"text":"naïve 😀 --> <!-- "}"#,
        r#"{"a":1,"a":2}"#,
    ];
    prop_oneof![
        2 => select(odd).prop_map(String::from),
        1 => ("[a-z]{1,6}", -999_i32..999).prop_map(|(key, value)| format!("{{\"{key}\": {value}}}")),
    ]
}

fn other_arguments() -> impl Strategy<Value = String> {
    let odd = vec![
        "",
        " {} ",
        "{\"path\": \"a",
        "null",
        "[1, 2]",
        "\"text\"",
        "1.10",
        "path=a.rs",
        "{}{}",
        "{\"a\":\n",
    ];
    select(odd).prop_map(String::from)
}

fn media() -> impl Strategy<Value = Vec<Media>> {
    prop::collection::vec(one_media(), 1..4)
}

fn one_media() -> impl Strategy<Value = Media> {
    prop_oneof![
        select(vec!["https://x.test/a.png", "https://x.test/b?c=d#e"]).prop_map(Media::ImageUrl),
        select(vec!["iVBORw0KGgo=", "AAAA"]).prop_map(Media::ImageData),
        select(vec!["JVBERi0xLjQ=", "JVBERg=="]).prop_map(Media::Pdf),
    ]
}
