//! `bash`: commands, in a process of their own that is confined as far as the system allows.
//!
//! A command runs below a small supervisor: this program, or `throughline-shell`, executed again with a hidden
//! command. The supervisor puts itself under Landlock and resource limits, starts the shell, and ends everything that
//! the command left behind, also when it detached itself, and also when we ourselves die. Going through a second
//! program is what lets all of this be done without unsafe code between fork and exec.

mod capture;
#[cfg(unix)]
mod confined;
mod environment;
#[cfg(unix)]
mod run;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;

#[cfg(unix)]
pub use confined::confined_shell_main;

/// How commands are run.
#[derive(Debug)]
pub struct Shell {
    settings: ShellSettings,
    confinement: Confinement,
    /// The shell itself.
    #[cfg_attr(not(unix), expect(dead_code, reason = "commands run on Unix only"))]
    program: PathBuf,
    /// Where commands may put temporary files; it goes when the shell does.
    temp: TempDir,
}

/// What commands may do, and what they are given.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// How a command is started.
    pub launcher: Launcher,
    /// What may be read besides the system's programs and libraries and the working directory.
    pub readable: Vec<PathBuf>,
    /// What may be written besides the working directory and a private temporary directory.
    pub writable: Vec<PathBuf>,
    /// Whether TCP is refused, where the kernel can.
    pub deny_tcp: bool,
    /// Names of further variables that commands are given; a `*` at the end stands for any ending.
    pub pass: Vec<String>,
    /// Names of variables that commands are never given, whatever else is said.
    pub withheld: Vec<String>,
    /// The variables to choose from.
    pub variables: Vec<(OsString, OsString)>,
    /// What a command may use up.
    pub resources: ResourceLimits,
}

/// How a command is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// At once, confined by nothing.
    Direct,
    /// By a program that calls [`confined_shell_main`] with the arguments behind these.
    Confined {
        /// The program.
        program: PathBuf,
        /// What it is told first, such as the name of a hidden command.
        arguments: Vec<OsString>,
    },
}

/// Whether commands are kept in the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// By Landlock, of this version of its interface.
    Landlock(i32),
    /// Not at all, for this reason.
    None(String),
}

/// What a command may use up. Where nothing is said, the system's limits hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Seconds of processor time, for each process.
    pub cpu_seconds: Option<u64>,
    /// The largest file that can be written.
    pub file_bytes: Option<u64>,
    /// How many processes the user may have. It counts all of the user's processes, not the command's alone.
    pub processes: Option<u64>,
    /// The largest address space of each process. Many runtimes reserve far more than they use.
    pub address_space_bytes: Option<u64>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            launcher: Launcher::Direct,
            readable: Vec::new(),
            writable: Vec::new(),
            deny_tcp: false,
            pass: Vec::new(),
            withheld: Vec::new(),
            variables: std::env::vars_os().collect(),
            resources: ResourceLimits::default(),
        }
    }
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            cpu_seconds: Some(3_600),
            file_bytes: Some(8 * 1024 * 1024 * 1024),
            processes: Some(16_384),
            address_space_bytes: None,
        }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landlock(abi) => write!(f, "commands are confined by Landlock (version {abi})"),
            Self::None(reason) => write!(f, "commands are not confined: {reason}"),
        }
    }
}

impl Shell {
    /// Returns a shell with these settings, after asking the launcher what the kernel can do.
    ///
    /// # Errors
    ///
    /// When there is no shell, no temporary directory, or the launcher cannot be started.
    pub async fn new(settings: ShellSettings) -> io::Result<Self> {
        #[cfg(unix)]
        let confinement = run::probe(&settings.launcher).await?;
        #[cfg(not(unix))]
        let confinement = Confinement::None("commands run on Unix only".to_owned());
        Self::with(settings, confinement)
    }

    /// Returns a shell that starts commands at once, confined by nothing.
    ///
    /// # Errors
    ///
    /// When there is no shell or no temporary directory.
    pub fn direct() -> io::Result<Self> {
        Self::with(ShellSettings::default(), direct_confinement())
    }

    /// Returns whether commands are confined.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    fn with(settings: ShellSettings, confinement: Confinement) -> io::Result<Self> {
        let program = environment::find_shell(&settings.variables)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "neither bash nor sh is in PATH"))?;
        let mut temp = tempfile::Builder::new();
        temp.prefix("throughline-");
        // What commands leave there is nobody else's, whatever the umask.
        #[cfg(unix)]
        temp.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let temp = temp.tempdir()?;
        Ok(Self { settings, confinement, program, temp })
    }
}

fn direct_confinement() -> Confinement {
    Confinement::None("they are started directly, without a launcher that confines them".to_owned())
}

#[cfg(not(unix))]
mod elsewhere {
    //! What there is where there is no Unix.

    use super::Shell;
    use crate::call::Bash;
    use crate::limits::Limits;
    use crate::outcome::Outcome;
    use crate::toolbox::Context;
    use crate::workdir::Workdir;
    use std::ffi::OsString;
    use std::process::ExitCode;

    impl Shell {
        #[expect(clippy::unused_async, reason = "the same as on Unix")]
        pub(crate) async fn run(&self, _: &Workdir, _: &Limits, _: &Bash, _: &Context) -> Outcome {
            Outcome::failed("bash is available on Unix only")
        }
    }

    /// Says that commands can be confined on Unix only.
    pub fn confined_shell_main(_: impl IntoIterator<Item = OsString>) -> ExitCode {
        ExitCode::FAILURE
    }
}

#[cfg(not(unix))]
pub use elsewhere::confined_shell_main;
