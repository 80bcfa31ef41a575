//! Starting a command, watching it, and ending it.

use super::capture::Capture;
use super::supervisor::{self, Report};
use super::{Confinement, Launcher, Shell, direct_confinement, environment};
use crate::call::Bash;
use crate::limits::Limits;
use crate::outcome::{Answer, Notice, Outcome, OutcomeKind};
use crate::process::{self, Group};
use crate::protected::{Restored, Snapshot};
use crate::toolbox::{Context, Place};
use crate::workdir::shown;
use memchr::memmem;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// How long the supervisor may take to end a command before it is ended itself, and how long output may take to
/// arrive after that.
const GRACE: Duration = Duration::from_secs(3);

/// How long a launcher may take to say what it can do; it may be the first program that a slow disk is asked for.
const PROBE_TIME_MAX: Duration = Duration::from_secs(15);

/// Output that is being read.
struct Reading {
    capture: Arc<Mutex<Capture>>,
    task: JoinHandle<()>,
}

/// What was kept of both streams, by their names, and how many bytes there were.
type Streams = [(&'static str, (Vec<u8>, u64)); 2];

/// Protected files while a command runs.
struct Watched {
    snapshot: Snapshot,
    /// What is mounted read-only, where that can be done.
    existing: Vec<PathBuf>,
    /// The same as programs would name them.
    names: Vec<String>,
}

impl Watched {
    async fn before(place: &Place, context: &Context) -> io::Result<Self> {
        let (workdir, protection) = (Arc::clone(&place.workdir), Arc::clone(&place.protection));
        let agreed = context.agreed.clone();
        let taken = tokio::task::spawn_blocking(move || {
            let existing = protection.existing(&workdir, &agreed);
            let inner = existing.iter().filter_map(|it| it.strip_prefix(workdir.root()).ok());
            let names = inner.map(shown).collect();
            Self { snapshot: Snapshot::take(&workdir), existing, names }
        });
        taken.await.map_err(io::Error::other)
    }

    /// Puts back what was changed, and says what that was; `mounts` says whether they were mounted read-only.
    async fn after(self, place: &Place, context: &Context, mounts: bool) -> io::Result<Restored> {
        let (workdir, agreed) = (Arc::clone(&place.workdir), context.agreed.clone());
        let restored = tokio::task::spawn_blocking(move || {
            let mounted = if mounts { &self.existing[..] } else { &[] };
            self.snapshot.restore(&workdir, &agreed, mounted)
        });
        restored.await.map_err(io::Error::other)
    }
}

/// How the wait for a command ended.
enum End {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// Asks the launcher what the kernel can do.
pub(super) async fn probe(launcher: &Launcher) -> io::Result<Confinement> {
    let Launcher::Confined { program, arguments } = launcher else { return Ok(direct_confinement()) };
    let mut command = Command::new(program);
    command.args(arguments).arg(supervisor::PROBE).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_TIME_MAX, command.output())
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    let answer = String::from_utf8_lossy(&output.stdout);
    supervisor::read_probe(answer.trim()).ok_or_else(|| {
        let what = format!("{} does not answer as a launcher of commands", program.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

impl Shell {
    /// Runs a command.
    pub(crate) async fn run(
        &self,
        place: &Place,
        limits: &Limits,
        call: &Bash,
        context: &Context,
    ) -> Outcome {
        let workdir = &*place.workdir;
        let cwd = match workdir.open_dir(call.cwd.as_deref().unwrap_or(".")) {
            Ok((inner, _)) => workdir.root().join(inner),
            Err(error) => return Outcome::failed(error.to_string()),
        };
        if let Some(refusal) = &self.refusal {
            return Outcome::failed(refusal.clone());
        }
        let watched = match Watched::before(place, context).await {
            Ok(watched) => watched,
            Err(error) => return Outcome::failed(format!("the command cannot be started: {error}")),
        };
        let started = self.start(workdir.root(), &cwd, &call.command, &watched.existing);
        let (mut child, control) = match started {
            Ok(started) => started,
            Err(error) => return Outcome::failed(format!("the command cannot be started: {error}")),
        };
        let stdout = Reading::start(child.stdout.take(), limits.artifact_bytes_max);
        let stderr = Reading::start(child.stderr.take(), limits.artifact_bytes_max);
        let limit = time_limit(limits, call, context);
        let end =
            watch(&mut child, control.as_ref(), self.confinement.namespaces.is_ok(), limit, context).await;
        let report = control.as_ref().and_then(Report::receive);
        let streams = [("stdout", stdout.finish().await), ("stderr", stderr.finish().await)];
        let mut notices = self.notices(&end, &streams, report.as_ref(), &watched.names);
        // Whatever became of it, it may have run.
        let restored = match watched.after(place, context, self.confinement.namespaces.is_ok()).await {
            Ok(restored) => restored,
            Err(error) => return Outcome::failed(format!("protected files could not be checked: {error}")),
        };
        if let Some(reason) = not_run(&end, report.as_ref(), control.is_some()) {
            return Outcome::failed(reason);
        }
        notices.extend(Some(restored).filter(|it| !it.is_empty()).map(|it| Notice::ProtectedRestored {
            paths: it.paths,
            quarantined: it.quarantined,
            failed: it.failed,
        }));
        self.outcome(&end, limit, streams, notices, limits)
    }

    /// Returns what is to be said about a command that failed.
    fn notices(
        &self,
        end: &End,
        streams: &Streams,
        report: Option<&Report>,
        protected: &[String],
    ) -> Vec<Notice> {
        if !matches!(end, End::Exited(status) if !status.success()) {
            return Vec::new();
        }
        let holds =
            |text: &str| streams.iter().any(|(_, (bytes, _))| memmem::find(bytes, text.as_bytes()).is_some());
        // Without a network namespace there is nothing that counts; the error is the one that the filter gives.
        let filtered =
            self.is_offline() && self.confinement.namespaces.is_err() && holds("Network is unreachable");
        let mut notices = Vec::new();
        if filtered || matches!(report, Some(Report::Ran { sought_network: true })) {
            notices.push(Notice::NoNetwork);
        }
        let paths: Vec<String> = protected.iter().filter(|path| holds(path)).cloned().collect();
        if !paths.is_empty() && self.confinement.namespaces.is_ok() {
            notices.push(Notice::ProtectedUnwritable { paths });
        }
        notices
    }

    /// Starts a command; the socket is the way to its supervisor, if it has one.
    fn start(
        &self,
        root: &Path,
        cwd: &Path,
        script: &str,
        protected: &[PathBuf],
    ) -> io::Result<(Child, Option<UnixStream>)> {
        let (mut command, control) = match &self.settings.launcher {
            Launcher::Direct => {
                let mut command = process::in_own_session(&self.program);
                command.arg("-c").arg(script).stdin(Stdio::null());
                (command, None)
            }
            Launcher::Confined { program, arguments } => {
                let (control, other) = UnixStream::pair()?;
                let mut command = Command::new(program);
                command.args(arguments).args(supervisor::order(self, root, protected.to_vec(), script));
                // The supervisor begins a session itself, ends the command when this is closed, and reports on it.
                command.stdin(Stdio::from(OwnedFd::from(other)));
                (command, Some(control))
            }
        };
        command
            .current_dir(cwd)
            .env_clear()
            .envs(environment::variables(&self.settings, self.temp.path()))
            .env("PWD", cwd)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok((command.spawn()?, control))
    }

    fn outcome(
        &self,
        end: &End,
        limit: Duration,
        streams: Streams,
        notices: Vec<Notice>,
        limits: &Limits,
    ) -> Outcome {
        let mut answer = Answer::default();
        for (name, (bytes, total)) in streams {
            let (bytes, total) = self.without_temp(bytes, total);
            answer = answer.capture(name, &bytes, total, limits);
        }
        for notice in notices {
            answer = answer.notice(notice);
        }
        match end {
            End::Exited(status) => {
                let code = exit_code(*status);
                Outcome { exit_code: Some(code), ..answer.field("exit_code", code).done() }
            }
            End::TimedOut => {
                let note = format!("the command was ended after its time limit of {}", in_words(limit));
                answer.field("exit_code", ()).note(note).ended(OutcomeKind::TimedOut)
            }
            End::Cancelled => {
                let answer = answer.field("exit_code", ()).note("the command was called off before it ended");
                answer.ended(OutcomeKind::Cancelled)
            }
        }
    }

    /// Puts the variable in the place of the private directory, whose name is another one each time.
    fn without_temp(&self, bytes: Vec<u8>, total: u64) -> (Vec<u8>, u64) {
        let path = self.temp.path().as_os_str().as_encoded_bytes();
        let places: Vec<usize> = memmem::find_iter(&bytes, path).collect();
        if places.is_empty() {
            return (bytes, total);
        }
        let name = b"$TMPDIR";
        let mut result = Vec::with_capacity(bytes.len());
        let mut copied = 0;
        for place in &places {
            result.extend_from_slice(&bytes[copied..*place]);
            result.extend_from_slice(name);
            copied = place + path.len();
        }
        result.extend_from_slice(&bytes[copied..]);
        let missing = total - bytes.len() as u64;
        let total = result.len() as u64 + missing;
        (result, total)
    }
}

impl Reading {
    fn start(stream: Option<impl AsyncRead + Unpin + Send + 'static>, bytes_max: usize) -> Self {
        let capture = Arc::new(Mutex::new(Capture::new(bytes_max)));
        let shared = Arc::clone(&capture);
        let task = tokio::spawn(async move {
            let Some(mut stream) = stream else { return };
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count) = stream.read(&mut buffer).await {
                if count == 0 {
                    break;
                }
                shared.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
            }
        });
        Self { capture, task }
    }

    /// Returns what came. Something that escaped may hold the other end open; it is not waited for.
    async fn finish(mut self) -> (Vec<u8>, u64) {
        if tokio::time::timeout(GRACE, &mut self.task).await.is_err() {
            self.task.abort();
        }
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until the command ends, or ends it.
async fn watch(
    child: &mut Child,
    control: Option<&UnixStream>,
    dies_with_supervisor: bool,
    limit: Duration,
    context: &Context,
) -> End {
    let group = Group::of(child);
    // When this future is dropped, a supervisor sees its input closed, and must live to end what is below it.
    // Without one, what is left of the group is ended here, also behind a command that is over.
    let guard = control.is_none().then(|| group.guard());
    let end = tokio::select! {
        // One that has ended has ended, even if it was called off at the same moment.
        biased;
        status = child.wait() => status.map_or(End::Cancelled, End::Exited),
        () = tokio::time::sleep(limit) => End::TimedOut,
        () = context.cancel.cancelled() => End::Cancelled,
    };
    drop(guard);
    if matches!(end, End::Exited(_)) {
        return end;
    }
    if let Some(control) = control {
        // It sees the end of its input, and still can report.
        let _ = control.shutdown(Shutdown::Write);
        let is_over = tokio::time::timeout(GRACE, child.wait()).await.is_ok();
        // A supervisor without a namespace is the only one who can find what it has to end. On a machine that is so
        // busy it is not ended itself, and goes on behind our back.
        if is_over || !dies_with_supervisor {
            return end;
        }
    }
    group.kill();
    let _ = child.start_kill();
    // It cannot refuse; what its exit status is, nobody asks.
    let _ = tokio::time::timeout(GRACE, child.wait()).await;
    end
}

/// Returns why a command was not run, or not to its end, as far as that is the supervisor's doing.
fn not_run(end: &End, report: Option<&Report>, is_supervised: bool) -> Option<String> {
    match (end, report) {
        (_, Some(Report::NotRun(reason))) => Some(format!("the command was not run: {reason}")),
        (End::Exited(_), None) if is_supervised => Some(
            "the supervisor of the command was ended from outside; what the command did is not known".into(),
        ),
        _ => None,
    }
}

fn time_limit(limits: &Limits, call: &Bash, context: &Context) -> Duration {
    let own = call.time_limit.unwrap_or(limits.command_time).min(limits.command_time_max);
    context.time_limit.map_or(own, |limit| limit.min(own))
}

/// Returns the exit code as a shell would: 128 and the signal for a command that a signal ended.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn in_words(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
