//! The toolbox: every tool there is, behind one door.

use crate::arguments::{self, Refused};
use crate::call::{Call, Effect};
use crate::catalog::{Builtin, Declaration};
use crate::edits::{self, EditError};
use crate::limits::Limits;
#[cfg(feature = "mcp")]
use crate::mcp::{Server, ServerCall, ServerError, ServerSettings};
use crate::outcome::{Outcome, OutcomeKind};
use crate::preview::{self, Preview};
use crate::protected::{ProtectedPath, Protection};
use crate::shell::Shell;
use crate::workdir::{Workdir, shown};
use crate::{glob, grep, ls, read};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The tools of one working directory.
///
/// ```
/// use throughline_tools::{Context, Limits, Shell, Toolbox, Workdir};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let directory = std::env::temp_dir();
/// let toolbox = Toolbox::new(Workdir::open(&directory)?, Limits::default(), Shell::direct()?);
/// let call = toolbox.check("list_dir", "{}")?;
/// let outcome = toolbox.run(&call, &Context::default()).await;
/// assert!(outcome.output.starts_with(r#"{"path":".","entries":["#));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Toolbox {
    workdir: Arc<Workdir>,
    limits: Limits,
    shell: Arc<Shell>,
    protection: Arc<Protection>,
    #[cfg(feature = "mcp")]
    servers: Vec<Server>,
}

/// What surrounds one run of a tool.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Calls the run off.
    pub cancel: CancellationToken,
    /// How long it may take at most, if less than the tool's own limit.
    pub time_limit: Option<Duration>,
    /// Protected paths that somebody agreed to have written, relative to the working directory. What is below one is
    /// agreed to as well.
    pub agreed: Vec<PathBuf>,
}

impl Toolbox {
    /// Returns a toolbox on a working directory.
    #[must_use]
    pub fn new(workdir: Workdir, limits: Limits, shell: Shell) -> Self {
        Self {
            workdir: Arc::new(workdir),
            limits,
            shell: Arc::new(shell),
            protection: Arc::default(),
            #[cfg(feature = "mcp")]
            servers: Vec::new(),
        }
    }

    /// Protects further paths, such as the user's own configuration: neither files nor commands may write them, or what
    /// is below them, unless somebody agrees. They are absolute.
    #[must_use]
    pub fn protecting(mut self, paths: impl IntoIterator<Item = ProtectedPath>) -> Self {
        Arc::make_mut(&mut self.protection).add(paths);
        self
    }

    /// Returns the protected paths that a call would write, as far as that is known before. Somebody has to agree to
    /// them, whatever else is free: the call is refused unless they are in [`Context::agreed`].
    pub async fn protected(&self, call: &Call) -> Vec<ProtectedPath> {
        let work = self.work(call, Context::default());
        tokio::task::spawn_blocking(move || work.protected()).await.unwrap_or_default()
    }

    /// Connects to an MCP server and adds its tools.
    ///
    /// # Errors
    ///
    /// When its name cannot be used, or it cannot be reached. The toolbox is then as it was.
    #[cfg(feature = "mcp")]
    pub async fn connect(&mut self, settings: ServerSettings) -> Result<(), ServerError> {
        if self.servers.iter().any(|it| it.name() == settings.name) {
            return Err(ServerError::Name(settings.name));
        }
        self.servers.push(Server::connect(settings).await?);
        Ok(())
    }

    /// Returns the shell that commands run with.
    #[must_use]
    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// Returns the tools for a request, always in the same order.
    #[must_use]
    pub fn declare(&self) -> Vec<Declaration> {
        let declarations = Builtin::declarations();
        #[cfg(feature = "mcp")]
        let declarations = declarations.chain(self.servers.iter().flat_map(Server::declarations));
        declarations.collect()
    }

    /// Returns the name of the tool that `name` means, which may be a name that other agents use for it.
    ///
    /// One tool of other agents does the work of several of ours; for it, this is the first of them.
    #[must_use]
    pub fn resolve<'a>(&self, name: &'a str) -> Option<&'a str> {
        #[cfg(feature = "mcp")]
        if self.server(name).is_some() {
            return Some(name);
        }
        Builtin::find(name).map(Builtin::name)
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    ///
    /// When there is no such tool, or its arguments cannot be used. The error tells the model what to mend.
    pub fn check(&self, name: &str, arguments: &str) -> Result<Call, Refused> {
        #[cfg(feature = "mcp")]
        if self.server(name).is_some() {
            let arguments = arguments::read_object(name, arguments)?;
            return Ok(Call::Server(ServerCall { name: name.to_owned(), arguments }));
        }
        match Builtin::find(name) {
            Some(tool) => arguments::read(tool, arguments),
            None => Err(Refused::UnknownTool { name: name.to_owned(), known: self.names() }),
        }
    }

    /// Returns what a call would do, without doing it.
    pub async fn preview(&self, call: &Call) -> Preview {
        let (workdir, limits, call) = (Arc::clone(&self.workdir), self.limits.clone(), call.clone());
        let made = tokio::task::spawn_blocking(move || preview::of(&workdir, &limits, &call)).await;
        made.unwrap_or_else(|error| Preview { problem: Some(error.to_string()), ..Preview::default() })
    }

    /// Runs a call.
    ///
    /// It ends within its time limit, and soon after it is called off. Dropping the future ends a command too.
    pub async fn run(&self, call: &Call, context: &Context) -> Outcome {
        if context.cancel.is_cancelled() {
            return Outcome {
                kind: OutcomeKind::Cancelled,
                ..Outcome::failed("the call was called off before it began")
            };
        }
        match call {
            Call::Bash(bash) => {
                let stop = context.cancel.child_token();
                let _stops_when_dropped = stop.clone().drop_guard();
                let context = Context { cancel: stop, ..context.clone() };
                let (shell, limits, bash) = (Arc::clone(&self.shell), self.limits.clone(), bash.clone());
                let place =
                    Place { workdir: Arc::clone(&self.workdir), protection: Arc::clone(&self.protection) };
                // A task of its own: what a command did to protected files is put back even if nobody waits for it.
                let running = tokio::spawn(async move { shell.run(&place, &limits, &bash, &context).await });
                running.await.unwrap_or_else(|error| Outcome::failed(format!("the tool broke: {error}")))
            }
            #[cfg(feature = "mcp")]
            Call::Server(call) => match self.server(&call.name) {
                Some(server) => server.run(&self.limits, call, context).await,
                None => Outcome::failed(format!("there is no tool \"{}\"", call.name)),
            },
            call => self.run_on_files(call, context).await,
        }
    }

    /// Returns the server that has a tool of this name.
    #[cfg(feature = "mcp")]
    fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|it| it.has(name))
    }

    fn names(&self) -> Vec<String> {
        self.declare().into_iter().map(|it| it.name.into_owned()).collect()
    }

    async fn run_on_files(&self, call: &Call, context: &Context) -> Outcome {
        let stop = context.cancel.child_token();
        let _stops_when_dropped = stop.clone().drop_guard();
        let work = self.work(call, Context { cancel: stop.clone(), ..context.clone() });
        let mut running = tokio::task::spawn_blocking(move || work.run());
        let own = self.limits.file_time_max;
        let limit = context.time_limit.map_or(own, |limit| limit.min(own));
        // The work is always waited for: what it has begun to write must not go on behind the caller's back.
        let joined = tokio::select! {
            joined = &mut running => joined,
            () = tokio::time::sleep(limit) => {
                stop.cancel();
                running.await
            }
        };
        let (mut outcome, cut_short) =
            joined.unwrap_or_else(|error| (Outcome::failed(format!("the tool broke: {error}")), false));
        // The work alone knows whether it was stopped: it may be over before anybody here has seen why.
        if cut_short {
            outcome.kind =
                if context.cancel.is_cancelled() { OutcomeKind::Cancelled } else { OutcomeKind::TimedOut };
        }
        outcome
    }
}

/// Where commands run.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) workdir: Arc<Workdir>,
    pub(crate) protection: Arc<Protection>,
}

/// A call that needs nothing but files.
struct Work {
    workdir: Arc<Workdir>,
    limits: Limits,
    protection: Arc<Protection>,
    call: Call,
    context: Context,
}

impl Work {
    /// Returns the outcome, and whether it is less than was asked for because of `stop`.
    fn run(&self) -> (Outcome, bool) {
        let stop = &self.context.cancel;
        if stop.is_cancelled() {
            return (Outcome::failed(EditError::Stopped.to_string()), true);
        }
        let (workdir, limits) = (&*self.workdir, &self.limits);
        let outcome = match &self.call {
            Call::Read(call) => told(read::run(workdir, limits, call)),
            Call::Ls(call) => told(ls::run(workdir, limits, call)),
            Call::Glob(call) => told(glob::run(workdir, limits, call, stop)),
            Call::Grep(call) => told(grep::run(workdir, limits, call, stop)),
            call => match self.edit(call) {
                Err(error @ EditError::Stopped) => return (Outcome::failed(error.to_string()), true),
                edited => told(edited),
            },
        };
        let searches = matches!(self.call, Call::Glob(_) | Call::Grep(_));
        (outcome, searches && stop.is_cancelled())
    }

    /// Returns the protected paths that the call would write. One that cannot be worked out writes nothing.
    fn protected(&self) -> Vec<ProtectedPath> {
        match &self.call {
            Call::Bash(bash) => self.protection.named(&self.workdir, &bash.protected),
            call => edits::plan(&self.workdir, &self.limits, call)
                .and_then(|plan| plan.protected(&self.workdir, &self.protection))
                .unwrap_or_default(),
        }
    }

    fn edit(&self, call: &Call) -> Result<Outcome, EditError> {
        debug_assert_eq!(call.effect(), Effect::Edits);
        let plan = edits::plan(&self.workdir, &self.limits, call)?;
        if self.context.cancel.is_cancelled() {
            return Err(EditError::Stopped);
        }
        for found in plan.protected(&self.workdir, &self.protection)? {
            if !self.context.agreed.iter().any(|it| found.path.starts_with(it)) {
                return Err(EditError::Protected { path: shown(&found.path), reason: found.reason });
            }
        }
        plan.commit(&self.workdir)
    }
}

impl Toolbox {
    fn work(&self, call: &Call, context: Context) -> Work {
        let (workdir, protection) = (Arc::clone(&self.workdir), Arc::clone(&self.protection));
        Work { workdir, limits: self.limits.clone(), protection, call: call.clone(), context }
    }
}

fn told<E: Display>(result: Result<Outcome, E>) -> Outcome {
    result.unwrap_or_else(|error| Outcome::failed(error.to_string()))
}
