//! What backends say of themselves: a header of their answers, and their listing of models.
//!
//! There is no standard for either. Throughline itself, as a backend of another Throughline and as the
//! simulated one, says it in `x-throughline-capabilities` and in `capabilities` of a listed model; of others,
//! the forms that are in use are understood, and silence is no verdict.

use super::{Ability, Verdict};
use throughline_core::Text;
use throughline_wire::json::{Document, Node};

/// The header in which a backend says what it can do: `native_tool_history=yes, server_state=no`.
pub const CAPABILITIES_HEADER: &str = "x-throughline-capabilities";

/// The most models that are read from one listing.
const MODELS_MAX: usize = 10_000;

/// The longest name of a model.
const NAME_BYTES_MAX: usize = 256;

/// A model as a backend lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name.
    pub id: Text,
    /// What the listing says it can do.
    pub abilities: Vec<(Ability, Verdict)>,
    /// How many tokens fit into its window, if the listing says so.
    pub window: Option<u64>,
}

/// Returns what the headers of an answer say.
pub fn from_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(Ability, Verdict)> {
    let ours = headers.into_iter().filter(|(name, _)| name.eq_ignore_ascii_case(CAPABILITIES_HEADER));
    ours.flat_map(|(_, value)| value.split(','))
        .filter_map(|pair| {
            let (name, verdict) = pair.split_once('=')?;
            Some((Ability::from_name(name.trim())?, Verdict::from_name(verdict.trim())?))
        })
        .collect()
}

/// Returns the models in the body of a listing; none if it is not one.
#[must_use]
pub fn from_listing(body: &str) -> Vec<ListedModel> {
    let Ok(document) = Document::parse(body) else { return Vec::new() };
    let root = document.root();
    let Some(list) = root.field("data").or_else(|| root.field("models")) else { return Vec::new() };
    list.items().filter_map(listed).take(MODELS_MAX).collect()
}

fn listed(model: Node<'_>) -> Option<ListedModel> {
    let id = ["id", "name"].iter().find_map(|field| model.field(field)?.as_text())?;
    // A name that no terminal could be shown and no request could carry is none.
    if id.is_empty() || id.len() > NAME_BYTES_MAX || id.chars().any(char::is_control) {
        return None;
    }
    // Its own allocation: the listing as a whole is not kept for it.
    let id = Text::from(id.as_str());
    let mut abilities = Vec::new();
    if let Some(capabilities) = model.field("capabilities") {
        for ability in Ability::ALL {
            let said = capabilities.field(ability.name()).and_then(|value| value.as_bool());
            abilities.extend(said.map(|has| (ability, if has { Verdict::Yes } else { Verdict::No })));
        }
    }
    // A model that takes no tools takes no history of them either.
    let takes_no_tools = model.field("supported_parameters").is_some_and(|parameters| {
        !parameters.is_empty() && !parameters.items().any(|parameter| parameter.is_str("tools"))
    });
    if takes_no_tools && !abilities.iter().any(|(ability, _)| *ability == Ability::NativeToolHistory) {
        abilities.push((Ability::NativeToolHistory, Verdict::No));
    }
    Some(ListedModel { id, abilities, window: window(model) })
}

/// What servers call the window of a model in their listings: OpenRouter, vLLM, LM Studio and Mistral, Groq and
/// ourselves, Ollama's list of what is loaded. What is loaded counts before what could be.
const WINDOW_FIELDS: &[&str] = &[
    "loaded_context_length",
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
];

/// Where llama.cpp says it, in `meta`: what it was started with, else what the model was trained with.
const META_FIELDS: &[&str] = &["n_ctx", "n_ctx_train"];

fn window(model: Node<'_>) -> Option<u64> {
    let number = |node: Node<'_>, fields: &[&str]| {
        fields.iter().find_map(|field| node.field(field)?.as_u64()).filter(|window| *window > 0)
    };
    let meta = || model.field("meta").and_then(|meta| number(meta, META_FIELDS));
    number(model, WINDOW_FIELDS).or_else(meta)
}

#[cfg(test)]
mod tests {
    #[test]
    fn windows_are_read_from_the_listings_of_many_servers() {
        for (model, window) in [
            (r#"{"id":"a","context_length":131072,"top_provider":{"context_length":65536}}"#, Some(131_072)),
            (r#"{"id":"a","object":"model","max_model_len":32768}"#, Some(32_768)),
            (r#"{"id":"a","meta":{"n_ctx_train":40960}}"#, Some(40_960)),
            (r#"{"id":"a","meta":{"n_ctx_train":40960,"n_ctx":8192}}"#, Some(8_192)),
            (r#"{"id":"a","max_context_length":32768,"loaded_context_length":4096}"#, Some(4_096)),
            (r#"{"id":"a"}"#, None),
        ] {
            let listing = format!(r#"{{"data":[{model}]}}"#);
            assert_eq!(from_listing(&listing)[0].window, window, "{model}");
        }
        let loaded = r#"{"models":[{"name":"qwen3:8b","context_length":16384}]}"#;
        assert_eq!(from_listing(loaded)[0].window, Some(16_384));
    }

    use super::*;

    const NATIVE: Ability = Ability::NativeToolHistory;

    #[test]
    fn the_header_is_read_and_what_is_unknown_in_it_is_not() {
        let headers = [
            ("server", "x"),
            (
                "X-Throughline-Capabilities",
                "native_tool_history=no, server_state = yes, wings=yes, server_state",
            ),
        ];
        let expected = [(NATIVE, Verdict::No), (Ability::ServerState, Verdict::Yes)];
        assert_eq!(from_headers(headers), expected);
        assert_eq!(from_headers([("x-throughline-capabilities", "native_tool_history=perhaps")]), []);
    }

    #[test]
    fn a_listing_names_models_and_sometimes_what_they_can_do() {
        let body = r#"{"object":"list","data":[
            {"id":"plain"},
            {"id":"says","capabilities":{"native_tool_history":false,"server_state":true}},
            {"id":"no-tools","supported_parameters":["temperature","max_tokens"]},
            {"id":"tools","supported_parameters":["tools","tool_choice"]},
            {"id":"empty","supported_parameters":[]},
            {"object":"model"}, 7]}"#;
        let models = from_listing(body);
        let said: Vec<(&str, usize)> =
            models.iter().map(|model| (&*model.id, model.abilities.len())).collect();
        assert_eq!(said, [("plain", 0), ("says", 2), ("no-tools", 1), ("tools", 0), ("empty", 0)]);
        assert_eq!(models[1].abilities, [(NATIVE, Verdict::No), (Ability::ServerState, Verdict::Yes)]);
        assert_eq!(models[2].abilities, [(NATIVE, Verdict::No)]);
    }

    #[test]
    fn what_is_no_listing_lists_nothing() {
        for body in ["", "<html>", "[]", "{\"data\":{}}", "{\"data\":null}", "null"] {
            assert_eq!(from_listing(body), [], "{body}");
        }
    }
}
