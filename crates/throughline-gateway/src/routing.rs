//! Routing: which backend answers a request, under which model name, and who stands in for it.
//!
//! Pure. What was asked for comes in as [`Asked`], what is to be done goes out as a [`Route`]. The order of
//! precedence, the first that speaks decides:
//!
//! 1. the header `x-throughline-backend`;
//! 2. the model name, when it is `backend/model` or the name of a backend with a default model;
//! 3. a switch of this conversation;
//! 4. a switch of all conversations, made at run time;
//! 5. the backend that lists or maps the model name; the most specific pattern wins, then the active backend;
//! 6. the active backend of the configuration.

use crate::config::keys::nearest;
use crate::config::{Backend, Config, ModelRule};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use throughline_core::Text;

/// The models that backends were seen to list, by the name of the backend.
pub type Listings = BTreeMap<Text, BTreeSet<Text>>;

/// What a request says about where it wants to go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The model name in the request.
    pub model: Option<&'a str>,
    /// The header `x-throughline-backend`.
    pub backend: Option<&'a str>,
    /// What this conversation was switched to.
    pub conversation: Option<&'a Pick>,
    /// What all conversations were switched to since the start.
    pub switched: Option<&'a Pick>,
}

/// A backend that somebody chose, and perhaps a model with it: `BACKEND[/MODEL]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The name of the backend.
    pub backend: Text,
    /// The model, if not the one that requests ask for.
    pub model: Option<Text>,
}

/// Where a request goes.
#[derive(Clone, Debug)]
pub struct Route {
    /// Who is tried first.
    pub first: Destination,
    /// Who is tried then, in order.
    pub fallbacks: Vec<Destination>,
    /// The model name that answers carry, whoever answers: the one that was asked for.
    pub shown_model: Text,
    /// Why the first is the first.
    pub reason: Reason,
}

/// A backend and the model that is asked for there.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The backend.
    pub backend: Arc<Backend>,
    /// The model name that is sent.
    pub model: Text,
    /// How many tokens fit, as the backend lists it and as it said when it refused a prompt.
    pub window: LearnedWindow,
    /// The name that was asked for, if nobody knows it and another one stands in for it.
    pub unknown: Option<Text>,
}

/// How many tokens fit into a model's window, as its backend says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearnedWindow {
    /// As it lists it. The configuration is believed over it.
    pub listed: Option<u64>,
    /// As it said when it refused a prompt. It is believed over everything.
    pub refused: Option<u64>,
}

/// Why a request goes where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The header says so.
    Header,
    /// The model name begins with the backend's.
    Name,
    /// The conversation was switched.
    Conversation,
    /// All conversations were switched.
    Switch,
    /// The backend lists or maps the model name.
    Model,
    /// The backend is the active one.
    Active,
}

/// Why a request goes nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The header names a backend that there is not.
    #[error("no backend is called `{name}`; there are: {known}")]
    UnknownBackend {
        /// What it names.
        name: Text,
        /// What there is.
        known: String,
    },
    /// The model name begins with what is nearly the name of a backend.
    #[error("`{model}`: no backend is called `{name}`; did you mean `{nearest}/{rest}`?")]
    MisspeltBackend {
        /// The model name.
        model: Text,
        /// What it begins with.
        name: Text,
        /// What was probably meant.
        nearest: Text,
        /// What follows it.
        rest: Text,
    },
    /// A switch names a model that the backend does not have.
    #[error("the backend `{backend}` has no model `{model}`{}", hint(.nearest.as_ref()))]
    UnknownModel {
        /// The backend.
        backend: Text,
        /// The model.
        model: Text,
        /// What was probably meant.
        nearest: Option<Text>,
    },
    /// No model was asked for, and the backend has no default.
    #[error("no model was asked for, and the backend `{backend}` has no default_model")]
    NoModel {
        /// Which backend.
        backend: Text,
    },
}

fn hint(nearest: Option<&Text>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// Decides where a request goes.
///
/// A switch to a backend that the configuration no longer has is passed over; a header that names one is an
/// error, since it stands in this very request.
pub fn route(config: &Config, asked: &Asked<'_>, listings: &Listings) -> Result<Route, RouteError> {
    let (named, model) = split_name(config, asked.model);
    let choice = choose(config, asked, named, model, listings)?;
    let first = destination(&choice, model, listings)
        .ok_or_else(|| RouteError::NoModel { backend: choice.backend.name.clone() })?;
    let stand_ins = first.backend.fallback.iter().filter_map(|name| config.backend(name));
    let fallbacks = stand_ins
        .filter_map(|backend| destination(&Choice::unforced(backend, choice.reason), model, listings))
        .collect();
    let shown_model = asked.model.map_or_else(|| first.model.clone(), Text::from);
    Ok(Route { first, fallbacks, shown_model, reason: choice.reason })
}

/// Says whether `name` fits `pattern`, in which `*` stands for any characters. Case does not matter.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on from when the latest `*` has to take in one character more.
    let mut retry = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, n + 1));
        } else if pattern.get(p).is_some_and(|c| c.eq_ignore_ascii_case(&name[n])) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((after_star, next)) = retry {
            (p, n) = (after_star, next);
            retry = Some((after_star, next + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

impl Pick {
    /// Reads `BACKEND[/MODEL]`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some((backend, model)) if !model.is_empty() => {
                Self { backend: Text::from(backend), model: Some(Text::from(model)) }
            }
            Some((backend, _)) => Self { backend: Text::from(backend), model: None },
            None => Self { backend: Text::from(text), model: None },
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(f, "{}/{}", &*self.backend, &**model),
            None => f.write_str(&self.backend),
        }
    }
}

impl Reason {
    /// Returns the name for logs and the record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Name => "name",
            Self::Conversation => "conversation",
            Self::Switch => "switch",
            Self::Model => "model",
            Self::Active => "active",
        }
    }
}

/// A backend that was chosen, and how much of the model name was chosen with it.
struct Choice<'a> {
    backend: &'a Arc<Backend>,
    /// The model of a switch, which stands whatever was asked for.
    model: Option<&'a str>,
    /// Whether the name asked for was meant for this very backend, so that no default may replace it.
    is_named: bool,
    reason: Reason,
}

impl<'a> Choice<'a> {
    const fn unforced(backend: &'a Arc<Backend>, reason: Reason) -> Self {
        Self { backend, model: None, is_named: false, reason }
    }
}

/// Splits `backend/model` when the first part is a backend, and the name of a backend from no model at all.
fn split_name<'a>(config: &Config, model: Option<&'a str>) -> (Option<&'a str>, Option<&'a str>) {
    let Some(model) = model.filter(|model| !model.is_empty()) else { return (None, None) };
    if let Some((backend, rest)) = model.split_once('/')
        && config.backend(backend).is_some()
    {
        return (Some(backend), Some(rest).filter(|rest| !rest.is_empty()));
    }
    match config.backend(model) {
        Some(backend) if backend.default_model.is_some() => (Some(model), None),
        _ => (None, Some(model)),
    }
}

fn choose<'a>(
    config: &'a Config,
    asked: &Asked<'a>,
    named: Option<&str>,
    model: Option<&str>,
    listings: &Listings,
) -> Result<Choice<'a>, RouteError> {
    if let Some(header) = asked.backend {
        return from_header(config, header, named == Some(header));
    }
    if let Some(backend) = named.and_then(|name| config.backend(name)) {
        return Ok(Choice { is_named: true, ..Choice::unforced(backend, Reason::Name) });
    }
    let by_model = model.and_then(|model| by_model(config, model, listings));
    if let Some(error) = model.filter(|_| by_model.is_none()).and_then(|model| misspelt(config, model)) {
        return Err(error);
    }
    let switches = [(asked.conversation, Reason::Conversation), (asked.switched, Reason::Switch)];
    for (pick, reason) in switches {
        if let Some((pick, backend)) = pick.and_then(|pick| Some((pick, config.backend(&pick.backend)?))) {
            return Ok(Choice { model: pick.model.as_deref(), ..Choice::unforced(backend, reason) });
        }
    }
    if let Some(backend) = by_model {
        return Ok(Choice::unforced(backend, Reason::Model));
    }
    let active = config.backend(&config.active).or(config.backends.first());
    active
        .map(|backend| Choice::unforced(backend, Reason::Active))
        .ok_or_else(|| unknown(config, &config.active))
}

/// Says that a name such as `glmm/x` was meant for a backend, if one is called nearly so. Names of models have a `/` in
/// them as well, so what is not near is none of a backend.
fn misspelt(config: &Config, model: &str) -> Option<RouteError> {
    let (name, rest) = model.split_once('/').filter(|(_, rest)| !rest.is_empty())?;
    let nearest = nearest(name, config.backends.iter().map(|backend| &*backend.name))?;
    let [model, name, nearest, rest] = [model, name, nearest, rest].map(Text::from);
    Some(RouteError::MisspeltBackend { model, name, nearest, rest })
}

/// Checks the model of a switch against what the backend is known to have.
///
/// What it lists counts. Where it was not asked, only a name that is nearly a configured one is refused.
///
/// # Errors
/// When the backend has no such model.
pub fn check_model(backend: &Backend, model: &str, listings: &Listings) -> Result<(), RouteError> {
    let listed = listings.get(&backend.name).filter(|models| !models.is_empty());
    let has_rule = backend.models.iter().any(|rule| fits(&rule.pattern, model));
    let is_default = backend.default_model.as_deref() == Some(model);
    if has_rule || is_default || lists(backend, model, listings) {
        return Ok(());
    }
    let configured = backend.models.iter().flat_map(|rule| std::iter::once(&rule.pattern).chain(&rule.sent));
    let configured = configured.filter(|name| !name.contains('*')).chain(&backend.default_model);
    let known: BTreeSet<&str> =
        configured.map(Text::as_str).chain(listed.into_iter().flatten().map(Text::as_str)).collect();
    let near = nearest(model, known.iter().copied()).map(Text::from);
    if listed.is_none() && near.is_none() {
        return Ok(());
    }
    Err(RouteError::UnknownModel { backend: backend.name.clone(), model: Text::from(model), nearest: near })
}

fn from_header<'a>(config: &'a Config, header: &'a str, is_named: bool) -> Result<Choice<'a>, RouteError> {
    let (name, model) = match header.split_once('/') {
        Some((name, model)) => (name, Some(model).filter(|model| !model.is_empty())),
        None => (header, None),
    };
    let backend = config.backend(name).ok_or_else(|| unknown(config, name))?;
    Ok(Choice { model, is_named, ..Choice::unforced(backend, Reason::Header) })
}

/// Returns the error that no backend is called so, with the names of those there are.
pub(crate) fn unknown(config: &Config, name: &str) -> RouteError {
    let known: Vec<&str> = config.backends.iter().map(|backend| &*backend.name).collect();
    RouteError::UnknownBackend { name: Text::from(name), known: known.join(", ") }
}

/// Returns the backend that says the most about a model name; the active one where two say as much.
fn by_model<'a>(config: &'a Config, model: &str, listings: &Listings) -> Option<&'a Arc<Backend>> {
    let rank = |backend: &Arc<Backend>| {
        let fitting = backend.models.iter().filter(|rule| fits(&rule.pattern, model));
        let mapped = fitting.map(ModelRule::specificity).max();
        let listed = lists(backend, model, listings).then_some((true, model.chars().count()));
        mapped.max(listed).map(|how| (how, backend.name == config.active))
    };
    let ranked = config.backends.iter().filter_map(|backend| Some((rank(backend)?, backend)));
    // Of equals, the one that stands first in the file.
    ranked.rev().max_by_key(|(rank, _)| *rank).map(|(_, backend)| backend)
}

/// Returns the backend with the name of the model to send there, unless nobody names one.
fn destination(choice: &Choice<'_>, asked: Option<&str>, listings: &Listings) -> Option<Destination> {
    let backend = choice.backend;
    let default = || backend.default_model.clone();
    let model = match (choice.model, asked) {
        (Some(forced), _) => Text::from(forced),
        (None, None) => default()?,
        (None, Some(asked)) => match rule(backend, asked) {
            Some(ModelRule { sent: Some(sent), .. }) => sent.clone(),
            Some(_) => Text::from(asked),
            None if choice.is_named || lists(backend, asked, listings) => Text::from(asked),
            None => default().unwrap_or_else(|| Text::from(asked)),
        },
    };
    let is_replaced = choice.model.is_none()
        && choice.reason == Reason::Active
        && asked.is_some_and(|asked| rule(backend, asked).is_none() && *model != *asked);
    let unknown = asked.filter(|_| is_replaced).map(Text::from);
    Some(Destination { backend: Arc::clone(backend), model, window: LearnedWindow::default(), unknown })
}

/// Returns the rule for a model name. They are sorted, the one that counts first.
fn rule<'a>(backend: &'a Backend, model: &str) -> Option<&'a ModelRule> {
    backend.models.iter().find(|rule| fits(&rule.pattern, model))
}

fn lists(backend: &Backend, model: &str, listings: &Listings) -> bool {
    listings.get(&backend.name).is_some_and(|models| models.iter().any(|listed| *listed == model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, Surroundings, load};
    use std::io;
    use std::path::Path;

    struct OneFile(&'static str);

    impl Surroundings for OneFile {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "HOME").then(|| "/home".to_owned())
        }

        fn variable_names(&self) -> Vec<String> {
            Vec::new()
        }

        fn read(&self, path: &Path) -> io::Result<String> {
            let found = path == Path::new("throughline.toml");
            found.then(|| self.0.to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    fn config() -> Config {
        let file = r#"
active = "claude"
[[backends]]
name = "claude"
dialect = "messages"
base_url = "http://localhost/v1"
default_model = "claude-sonnet-4-5"
models = { "*opus*" = "claude-opus-4-5", "claude-*" = "*", "house" = "claude-haiku-4-5" }
fallback = ["glm", "plain"]
[[backends]]
name = "glm"
dialect = "chat"
base_url = "http://localhost/v1"
default_model = "glm-4.6"
models = { "glm-*" = "*", "*opus*" = "glm-4.6-plus", "*opus-4*" = "glm-5" }
[[backends]]
name = "plain"
dialect = "responses"
base_url = "http://localhost/v1"
models = ["house", "gpt-5"]
"#;
        let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
        load(&OneFile(file), &flags).unwrap()
    }

    fn sent(asked: &Asked<'_>) -> String {
        let listings = Listings::from([("plain".into(), BTreeSet::from(["listed-by-plain".into()]))]);
        match route(&config(), asked, &listings) {
            Ok(Route { first: Destination { backend, model, .. }, reason, .. }) => {
                format!("{} {} {}", &*backend.name, &*model, reason.name())
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_model_name_chooses() {
        for (model, expected) in [
            // `backend/model`, mapped where the backend maps it, and else as it was written.
            ("glm/glm-4.5-air", "glm glm-4.5-air name"),
            ("glm/claude-opus-4-1", "glm glm-5 name"),
            ("glm/unheard-of", "glm unheard-of name"),
            ("plain/a/b", "plain a/b name"),
            ("glm/", "glm glm-4.6 name"),
            ("glm", "glm glm-4.6 name"),
            // A name with a slash whose first part is no backend, and a backend without a default.
            ("openai/gpt-5", "claude claude-sonnet-4-5 active"),
            ("plain", "claude claude-sonnet-4-5 active"),
            // Lists and maps.
            ("claude-haiku-4-5-20251001", "claude claude-haiku-4-5-20251001 model"),
            ("glm-4.5", "glm glm-4.5 model"),
            ("gpt-5", "plain gpt-5 model"),
            ("GPT-5", "plain GPT-5 model"),
            ("listed-by-plain", "plain listed-by-plain model"),
            // The most specific pattern wins, and of equals the active backend's.
            ("claude-opus-4-1", "claude claude-opus-4-5 model"),
            ("my-opus-3", "claude claude-opus-4-5 model"),
            ("my-opus-4", "glm glm-5 model"),
            ("house", "claude claude-haiku-4-5 model"),
            // Nobody knows it.
            ("gpt-4o", "claude claude-sonnet-4-5 active"),
        ] {
            assert_eq!(sent(&Asked { model: Some(model), ..Asked::default() }), expected, "{model}");
        }
        assert_eq!(sent(&Asked::default()), "claude claude-sonnet-4-5 active");
        assert_eq!(sent(&Asked { model: Some(""), ..Asked::default() }), "claude claude-sonnet-4-5 active");
    }

    #[test]
    fn a_name_that_is_nearly_a_backends_is_refused_with_the_one_that_was_meant() {
        let refused = sent(&Asked { model: Some("glmm/glm-5"), ..Asked::default() });
        assert_eq!(refused, "`glmm/glm-5`: no backend is called `glmm`; did you mean `glm/glm-5`?");
        let route = route(&config(), &Asked { model: Some("gpt-4o"), ..Asked::default() }, &Listings::new());
        assert_eq!(route.unwrap().first.unknown.as_deref(), Some("gpt-4o"), "the report says so");
    }

    #[test]
    fn the_model_of_a_switch_is_one_that_the_backend_has() {
        let config = config();
        let backend = config.backend("plain").unwrap();
        let listings = Listings::from([("plain".into(), BTreeSet::from(["listed-by-plain".into()]))]);
        let told = |model: &str, listings: &Listings| {
            check_model(backend, model, listings)
                .map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        };
        assert_eq!(told("listed-by-plain", &listings), "fine");
        assert_eq!(told("gpt-5", &listings), "fine");
        assert_eq!(
            told("listed-by-plane", &listings),
            "the backend `plain` has no model `listed-by-plane`; did you mean `listed-by-plain`?"
        );
        assert_eq!(told("unheard-of", &listings), "the backend `plain` has no model `unheard-of`");
        assert_eq!(told("unheard-of", &Listings::new()), "fine", "nobody knows what it has");
        assert!(told("gpt5", &Listings::new()).ends_with("did you mean `gpt-5`?"));
    }

    #[test]
    fn header_then_name_then_conversation_then_switch() {
        let (glm, air, gone) = (Pick::parse("glm"), Pick::parse("glm/glm-4.5-air"), Pick::parse("gone"));
        let plain = Pick::parse("plain");
        let cases: [(Asked<'_>, &str); 9] = [
            (Asked { switched: Some(&glm), ..Asked::default() }, "glm glm-4.6 switch"),
            (Asked { switched: Some(&air), ..Asked::default() }, "glm glm-4.5-air switch"),
            (Asked { switched: Some(&gone), ..Asked::default() }, "claude claude-sonnet-4-5 active"),
            (
                Asked { switched: Some(&plain), conversation: Some(&glm), ..Asked::default() },
                "glm glm-4.6 conversation",
            ),
            (
                Asked { switched: Some(&glm), conversation: Some(&gone), ..Asked::default() },
                "glm glm-4.6 switch",
            ),
            (
                Asked { model: Some("claude-x"), switched: Some(&glm), ..Asked::default() },
                "glm glm-4.6 switch",
            ),
            (
                Asked { model: Some("claude/x"), conversation: Some(&glm), ..Asked::default() },
                "claude x name",
            ),
            (
                Asked { model: Some("claude/x"), backend: Some("glm"), ..Asked::default() },
                "glm glm-4.6 header",
            ),
            (Asked { backend: Some("glm/glm-4.5"), ..Asked::default() }, "glm glm-4.5 header"),
        ];
        for (asked, expected) in cases {
            assert_eq!(sent(&asked), expected, "{asked:?}");
        }
    }

    #[test]
    fn a_header_that_names_nobody_and_a_missing_model_are_errors() {
        assert_eq!(
            sent(&Asked { backend: Some("nobody"), ..Asked::default() }),
            "no backend is called `nobody`; there are: claude, glm, plain"
        );
        assert_eq!(
            sent(&Asked { backend: Some("plain"), ..Asked::default() }),
            "no model was asked for, and the backend `plain` has no default_model"
        );
    }

    #[test]
    fn stand_ins_are_sent_their_own_names_and_the_client_sees_the_one_it_asked_for() {
        let asked = Asked { model: Some("claude/claude-opus-4-1"), ..Asked::default() };
        let route = route(&config(), &asked, &Listings::new()).unwrap();
        let stand_ins: Vec<(&str, &str)> =
            route.fallbacks.iter().map(|each| (&*each.backend.name, &*each.model)).collect();
        assert_eq!(stand_ins, [("glm", "glm-5"), ("plain", "claude-opus-4-1")]);
        assert_eq!(route.first.model, "claude-opus-4-5");
        assert_eq!(route.shown_model, "claude/claude-opus-4-1");
    }

    #[test]
    fn without_a_model_a_stand_in_without_a_default_is_left_out() {
        let route = route(&config(), &Asked::default(), &Listings::new()).unwrap();
        let stand_ins: Vec<&str> = route.fallbacks.iter().map(|each| &*each.backend.name).collect();
        assert_eq!(stand_ins, ["glm"]);
        assert_eq!(route.shown_model, "claude-sonnet-4-5");
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*opus*", "claude-opus-4", true),
            ("*opus*", "OPUS", true),
            ("claude-*", "claude-", true),
            ("claude-*", "my-claude-x", false),
            ("*/*", "vendor/model", true),
            ("*/*", "model", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbX", false),
            ("gpt-5", "gpt-5-mini", false),
            ("", "", true),
            ("", "x", false),
            ("*é*", "modèle-é", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pick_is_read_as_it_is_shown() {
        for text in ["glm", "glm/glm-4.6", "plain/a/b"] {
            assert_eq!(Pick::parse(text).to_string(), text);
        }
        assert_eq!(Pick::parse("glm/"), Pick::parse("glm"));
    }
}
