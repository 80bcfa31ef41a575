//! Starting a command, watching it, and ending it.

use super::capture::Capture;
use super::{Confinement, Launcher, Shell, confined, direct_confinement, environment};
use crate::call::Bash;
use crate::limits::Limits;
use crate::outcome::{Answer, Outcome, OutcomeKind};
use crate::process::Group;
use crate::toolbox::Context;
use crate::workdir::Workdir;
use memchr::memmem;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
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
    command.args(arguments).arg(confined::PROBE).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_TIME_MAX, command.output())
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    let answer = String::from_utf8_lossy(&output.stdout);
    confined::read_probe(answer.trim()).ok_or_else(|| {
        let what = format!("{} does not answer as a launcher of commands", program.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

impl Shell {
    /// Runs a command.
    pub(crate) async fn run(
        &self,
        workdir: &Workdir,
        limits: &Limits,
        call: &Bash,
        context: &Context,
    ) -> Outcome {
        let cwd = match workdir.open_dir(call.cwd.as_deref().unwrap_or(".")) {
            Ok((inner, _)) => workdir.root().join(inner),
            Err(error) => return Outcome::failed(error.to_string()),
        };
        let mut child = match self.command(workdir.root(), &cwd, &call.command).spawn() {
            Ok(child) => child,
            Err(error) => return Outcome::failed(format!("the command cannot be started: {error}")),
        };
        let stdout = Reading::start(child.stdout.take(), limits.artifact_bytes_max);
        let stderr = Reading::start(child.stderr.take(), limits.artifact_bytes_max);
        let limit = time_limit(limits, call, context);
        let end = self.watch(&mut child, limit, context).await;
        let (stdout, stderr) = (stdout.finish().await, stderr.finish().await);
        self.outcome(&end, limit, stdout, stderr, limits)
    }

    fn command(&self, root: &Path, cwd: &Path, script: &str) -> Command {
        let mut command = match &self.settings.launcher {
            Launcher::Direct => Command::new(&self.program),
            Launcher::Confined { program, arguments } => {
                let mut command = Command::new(program);
                command.args(arguments).args(confined::order(self, root)).arg(&self.program);
                command
            }
        };
        command
            .arg("-c")
            .arg(script)
            .current_dir(cwd)
            .env_clear()
            .envs(environment::variables(&self.settings, self.temp.path()))
            .env("PWD", cwd)
            // The supervisor ends the command when this is closed; a command of its own has no input.
            .stdin(if self.settings.launcher == Launcher::Direct { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    /// Waits until the command ends, or ends it.
    async fn watch(&self, child: &mut Child, limit: Duration, context: &Context) -> End {
        let group = Group::of(child);
        let supervised = self.settings.launcher != Launcher::Direct;
        // When this future is dropped, a supervisor sees its input closed, and must live to end what is below it.
        // Without one, what is left of the group is ended here, also behind a command that is over.
        let guard = (!supervised).then(|| group.guard());
        let control = child.stdin.take();
        let end = tokio::select! {
            // One that has ended has ended, even if it was called off at the same moment.
            biased;
            status = child.wait() => status.map_or(End::Cancelled, End::Exited),
            () = tokio::time::sleep(limit) => End::TimedOut,
            () = context.cancel.cancelled() => End::Cancelled,
        };
        drop(control);
        drop(guard);
        let is_over = matches!(end, End::Exited(_));
        if is_over || (supervised && tokio::time::timeout(GRACE, child.wait()).await.is_ok()) {
            return end;
        }
        group.kill();
        // It cannot refuse; what its exit status is, nobody asks.
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
        end
    }

    fn outcome(
        &self,
        end: &End,
        limit: Duration,
        stdout: (Vec<u8>, u64),
        stderr: (Vec<u8>, u64),
        limits: &Limits,
    ) -> Outcome {
        if let End::Exited(status) = end
            && status.code() == Some(i32::from(confined::UNCONFINED))
            && let Some(reason) = confined::read_failure(&stderr.0)
        {
            return Outcome::failed(reason);
        }
        let mut answer = Answer::default();
        for (name, (bytes, total)) in [("stdout", stdout), ("stderr", stderr)] {
            let (bytes, total) = self.without_temp(bytes, total);
            answer = answer.capture(name, &bytes, total, limits);
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
