//! Hands with real tools: calls are checked, agreed to, and run in the working directory.
//!
//! Beside the tools of the [`Toolbox`] there is one more, `artifact`, by which the model has the rest of what was too
//! long to be shown.

use super::hands::{Done, Hands, Kept};
use crate::config::Approve;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use throughline_core::plan::{lines, snippets};
use throughline_core::{Call, Content, Image, Media, Outcome, Part, Text};
use throughline_tools::{
    Context, Declaration, Effect, Outcome as Ran, OutcomeKind, Preview, ProtectedPath, Toolbox,
};
use throughline_wire::json::{Document, Writer};
use tokio_util::sync::CancellationToken;

/// Tools, and who has to agree to their use.
pub struct Workbench {
    toolbox: Toolbox,
    approve: Approve,
    approver: Box<dyn Approver>,
    /// Tools that somebody has agreed to once and for all.
    allowed: Mutex<BTreeSet<String>>,
    /// What was too long to be shown, by its name, the latest last.
    kept: Mutex<BTreeMap<String, Vec<Vec<u8>>>>,
}

/// Says whether a call may be run.
pub trait Approver: Send + Sync {
    /// Asks about a call.
    fn ask<'a>(&'a self, question: &'a Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;
}

/// What is asked about.
#[derive(Debug)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Whether it changes files or runs something.
    pub effect: Effect,
    /// What it would do.
    pub preview: &'a Preview,
    /// Protected files that it would write, each with the reason why that matters. Then it is asked about whatever else
    /// is free, and the answer holds for this call alone.
    pub protected: &'a [ProtectedPath],
}

/// What somebody decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be run.
    Yes,
    /// It may be run, and so may every later call of that tool in this workbench, with any arguments.
    Always,
    /// It may not, for this reason if one was given.
    No(Option<String>),
}

/// What came of asking about a call.
enum Approval {
    /// It may be run, and write these protected paths.
    Given(Vec<PathBuf>),
    /// It may not, for this reason.
    Denied(String),
    /// It would fail, for this reason, so nobody was asked.
    Pointless(String),
}

/// Nobody is there to be asked.
#[derive(Debug, Default)]
pub struct Absent;

const READ_ONLY: &str = "not allowed: in this session tools may only read";
const ARTIFACT: &str = "artifact";

const DESCRIPTION: &str = "Gives back output that was too long to be shown. A result that was cut short names it under \
    \"artifacts\". Pass its name, with from_line and to_line for a part, or with a query to find the lines that hold a \
    word. Of several with one name the latest is meant; back: 1 is the one before it.";

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"The name of the artifact, such as stdout."},"back":{"type":"integer","minimum":0,"description":"Which one of that name: 0 is the latest, 1 the one before it."},"from_line":{"type":"integer","minimum":1,"description":"The first line to give back, from 1."},"to_line":{"type":"integer","minimum":1,"description":"The last line to give back."},"query":{"type":"string","description":"Words to search for."}},"required":["name"],"additionalProperties":false}"#;

impl Approver for Absent {
    fn ask<'a>(&'a self, _: &'a Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(async { Decision::No(Some("nobody is there to agree to it".to_owned())) })
    }
}

impl Workbench {
    /// Returns a workbench with these tools.
    #[must_use]
    pub fn new(toolbox: Toolbox, approve: Approve, approver: Box<dyn Approver>) -> Self {
        Self { toolbox, approve, approver, allowed: Mutex::default(), kept: Mutex::default() }
    }

    /// Returns the toolbox.
    #[must_use]
    pub const fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Returns the tools for a request, always in the same order.
    #[must_use]
    pub fn declare(&self) -> Vec<Declaration> {
        let own =
            Declaration { name: ARTIFACT.into(), description: DESCRIPTION.into(), schema: SCHEMA.into() };
        self.toolbox.declare().into_iter().chain([own]).collect()
    }

    /// Takes in what an earlier turn of the conversation has kept.
    pub fn remember(&self, kept: impl IntoIterator<Item = Kept>) {
        let mut all = self.kept();
        kept.into_iter().for_each(|kept| all.entry(kept.name).or_default().push(kept.bytes));
    }

    async fn perform(&self, call: &Call, cancel: &CancellationToken) -> Done {
        if call.name == ARTIFACT {
            return self.artifact(call.input.text());
        }
        let checked = match self.toolbox.check(&call.name, call.input.text()) {
            Ok(checked) => checked,
            Err(refused) => return Done::told(Outcome::Error, refused.outcome().output),
        };
        let approved = tokio::select! {
            biased;
            () = cancel.cancelled() => return Done::told(Outcome::Interrupted, failed("not run: the user called the turn off")),
            approved = self.agreed(&checked) => approved,
        };
        let agreed = match approved {
            Approval::Given(agreed) => agreed,
            Approval::Denied(reason) => return Done::told(Outcome::Denied, failed(&reason)),
            Approval::Pointless(problem) => return Done::told(Outcome::Error, failed(&problem)),
        };
        let context = Context { cancel: cancel.clone(), time_limit: None, agreed };
        let ran = self.toolbox.run(&checked, &context).await;
        let kept: Vec<Kept> =
            ran.artifacts.iter().map(|it| Kept { name: it.name.clone(), bytes: it.bytes.clone() }).collect();
        self.remember(kept.iter().cloned());
        Done { outcome: outcome_of(ran.kind), exit_code: ran.exit_code, parts: parts_of(ran), kept }
    }

    /// Says whether a call may be run. One that would write protected paths is asked about each time, whatever else
    /// was allowed.
    async fn agreed(&self, call: &throughline_tools::Call) -> Approval {
        let protected = self.toolbox.protected(call).await;
        let Some(first) = protected.first() else { return self.approved(call).await };
        if self.approve == Approve::None {
            return Approval::Denied(READ_ONLY.to_owned());
        }

        let preview = self.toolbox.preview(call).await;
        if let Some(problem) = &preview.problem {
            return Approval::Pointless(problem.clone());
        }
        let (tool, effect) = (call.tool(), call.effect());
        match self.approver.ask(&Question { tool, effect, preview: &preview, protected: &protected }).await {
            Decision::Yes | Decision::Always => {
                Approval::Given(protected.into_iter().map(|it| it.path).collect())
            }
            Decision::No(reason) => {
                let (path, why) = (first.path.display(), &first.reason);
                let said = reason.map_or(String::new(), |reason| format!(": {reason}"));
                Approval::Denied(format!(
                    "{path} is protected ({why}), and the user did not allow this{said}"
                ))
            }
        }
    }

    /// Says whether a call may be run, or why not.
    async fn approved(&self, call: &throughline_tools::Call) -> Approval {
        let (tool, effect) = (call.tool(), call.effect());
        let is_free = match self.approve {
            _ if effect == Effect::Reads => true,
            Approve::All => true,
            Approve::Edits => effect == Effect::Edits,
            Approve::Ask => false,
            Approve::None => return Approval::Denied(READ_ONLY.to_owned()),
        };
        if is_free || self.allowed().contains(tool) {
            return Approval::Given(Vec::new());
        }
        let preview = self.toolbox.preview(call).await;
        if let Some(problem) = &preview.problem {
            // Not run to find that out again: by then it might work, and nobody was asked.
            return Approval::Pointless(problem.clone());
        }
        match self.approver.ask(&Question { tool, effect, preview: &preview, protected: &[] }).await {
            Decision::Yes => Approval::Given(Vec::new()),
            Decision::Always => {
                self.allowed().insert(tool.to_owned());
                Approval::Given(Vec::new())
            }
            Decision::No(None) => Approval::Denied("the user did not allow this".to_owned()),
            Decision::No(Some(reason)) => Approval::Denied(format!("the user did not allow this: {reason}")),
        }
    }

    fn artifact(&self, arguments: &str) -> Done {
        match self.looked_up(arguments) {
            Ok(text) => Done::told(Outcome::Ok, object("content", &text)),
            Err(problem) => Done::told(Outcome::Error, failed(&problem)),
        }
    }

    fn looked_up(&self, arguments: &str) -> Result<String, String> {
        let document =
            Document::parse(arguments).map_err(|_| "the arguments must be a JSON object".to_owned())?;
        let root = document.root();
        let number = |name: &str| root.field(name).and_then(|value| value.as_u64());
        let name = root.field("name").and_then(|name| name.as_text()).ok_or("`name` is missing")?;
        let all = self.kept();
        let Some(named) = all.get(name.as_str()) else {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            return Err(format!("there is no artifact \"{name}\"; there is: {}", known.join(", ")));
        };
        let back = usize::try_from(number("back").unwrap_or(0)).unwrap_or(usize::MAX);
        let at = named.len().checked_sub(1).and_then(|last| last.checked_sub(back));
        let bytes = at.and_then(|at| named.get(at)).ok_or_else(|| {
            format!("there are {} artifacts \"{name}\", so back is at most {}", named.len(), named.len() - 1)
        })?;
        let text = String::from_utf8_lossy(bytes);
        if let Some(query) = root.field("query").and_then(|query| query.as_text()) {
            let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
            let found = snippets(&words, &text);
            return if found.is_empty() { Err(format!("no line holds {query}")) } else { Ok(found) };
        }
        lines(&text, number("from_line"), number("to_line")).map_err(|error| error.to_string())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Vec<u8>>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allowed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hands for Workbench {
    fn run<'a>(
        &'a self,
        call: &'a Call,
        cancel: &'a CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Done> + Send + 'a>> {
        Box::pin(self.perform(call, cancel))
    }
}

const fn outcome_of(kind: OutcomeKind) -> Outcome {
    match kind {
        OutcomeKind::Done => Outcome::Ok,
        OutcomeKind::Failed => Outcome::Error,
        OutcomeKind::TimedOut | OutcomeKind::Cancelled => Outcome::Interrupted,
    }
}

fn parts_of(ran: Ran) -> Vec<Part> {
    let image = |image: throughline_tools::Image| {
        let media = Media::Inline { media_type: image.media_type.into(), base64: image.base64.into() };
        Part { content: Content::Image(Image { media, detail: None }), wire: None }
    };
    std::iter::once(Part::text(ran.output)).chain(ran.images.into_iter().map(image)).collect()
}

/// Returns the result of a call that was not done, in the form of all results.
fn failed(reason: &str) -> Text {
    object("error", reason)
}

fn object(name: &str, value: &str) -> Text {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str(name, value);
    writer.end_object();
    writer.into_string().into()
}
