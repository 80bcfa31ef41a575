//! `bash`: commands, in processes of their own that are confined as far as the system allows.
//!
//! A command runs below a small supervisor: this program, or `throughline-shell`, executed again with a hidden command.
//! Going through a second program is what lets a process be confined without unsafe code between fork and exec.
//! [`Confinement`] is what the system can do; [`ConfinementPolicy`] is what is done where it cannot.

mod capture;
mod environment;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod supervisor;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;

#[cfg(unix)]
pub use supervisor::confined_shell_main;

/// What a launcher is told to supervise a server; its command comes behind it.
#[cfg(feature = "mcp")]
pub(crate) const SERVER: &str = "--server";

/// How commands are run.
#[derive(Debug)]
pub struct Shell {
    settings: ShellSettings,
    confinement: Confinement,
    /// Why no command is run, if none is.
    refusal: Option<String>,
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
    /// Whether commands may use the network.
    pub network: bool,
    /// What is done where commands cannot be confined. If nothing is said, confinement is required where the kernel
    /// has Landlock, and done as far as possible where it has none.
    pub confinement: Option<ConfinementPolicy>,
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

/// What is done where commands cannot be confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementPolicy {
    /// Commands are refused that Landlock does not confine, or whose network cannot be cut though it should be.
    Required,
    /// Commands are confined as far as the system can.
    BestEffort,
    /// Commands are not confined, and may use the network.
    Off,
}

/// What keeps commands where they belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The version of Landlock, or why it does not confine commands.
    pub landlock: Result<i32, String>,
    /// How commands get namespaces of their own (processes, mounts, network), or why they do not.
    pub namespaces: Result<Namespaces, String>,
    /// Whether `/proc` shows a command's own processes only.
    pub fresh_proc: bool,
    /// Whether a command sees nothing of the file system but what it may use.
    pub private_view: bool,
    /// Whether system calls can be filtered, which is done where there are no namespaces.
    pub filter: bool,
}

/// How commands get namespaces of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// By the rights of root.
    Privileged,
    /// In a user namespace, as an ordinary user.
    User,
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
            network: false,
            confinement: None,
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

impl Confinement {
    /// Returns what holds where nothing confines commands, for this reason.
    #[must_use]
    pub fn none(reason: &str) -> Self {
        Self {
            landlock: Err(reason.to_owned()),
            namespaces: Err(reason.to_owned()),
            fresh_proc: false,
            private_view: false,
            filter: false,
        }
    }

    /// Says whether a command can be kept from the network.
    #[must_use]
    pub const fn cuts_network(&self) -> bool {
        self.namespaces.is_ok() || self.filter
    }

    /// Says whether a command cannot signal what is not below it.
    fn scopes_signals(&self) -> bool {
        self.landlock.as_ref().is_ok_and(|version| *version >= 6)
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.landlock {
            Ok(version) => write!(f, "commands are confined by Landlock (version {version})")?,
            Err(reason) if self.private_view => {
                write!(f, "commands are not confined by Landlock ({reason}), by a private file system only")?;
            }
            Err(reason) => write!(f, "commands are not confined: {reason}")?,
        }
        match &self.namespaces {
            Ok(_) if self.private_view => f.write_str("; they have namespaces of their own"),
            Ok(_) if self.fresh_proc => f.write_str("; they have namespaces of their own, but see all files"),
            Ok(_) => f.write_str("; they have namespaces of their own, but see all files and processes"),
            Err(reason) if self.landlock.is_ok() => {
                write!(f, "; they have no namespaces of their own ({reason})")
            }
            Err(_) => Ok(()),
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
        let confinement = match settings.confinement {
            Some(ConfinementPolicy::Off) => Confinement::none("confinement is turned off"),
            _ => run::probe(&settings.launcher).await?,
        };
        #[cfg(not(unix))]
        let confinement = Confinement::none("commands run on Unix only");
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

    /// Returns what keeps commands where they belong.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Returns why no command is run, if none is.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Returns whether commands are kept from the network.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        !self.settings.network && self.confinement.cuts_network()
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
        let refusal = refusal(&settings, &confinement);
        Ok(Self { settings, confinement, refusal, program, temp })
    }
}

fn direct_confinement() -> Confinement {
    Confinement::none("they are started directly, without a launcher that confines them")
}

/// Returns why no command may be run, if confinement is required and not to be had.
fn refusal(settings: &ShellSettings, confinement: &Confinement) -> Option<String> {
    let is_required = match settings.confinement {
        Some(policy) => policy == ConfinementPolicy::Required,
        None => confinement.landlock.is_ok(),
    };
    let missing = match &confinement.landlock {
        Err(reason) => reason.clone(),
        Ok(_) if !settings.network && !confinement.cuts_network() => {
            "commands cannot be kept from the network".to_owned()
        }
        Ok(_) => return None,
    };
    is_required
        .then(|| format!("commands are refused, because they must be confined and cannot be: {missing}"))
}

#[cfg(not(unix))]
mod elsewhere {
    //! What there is where there is no Unix.

    use super::Shell;
    use crate::call::Bash;
    use crate::limits::Limits;
    use crate::outcome::Outcome;
    use crate::toolbox::{Context, Place};
    use std::ffi::OsString;
    use std::process::ExitCode;

    impl Shell {
        #[expect(clippy::unused_async, reason = "the same as on Unix")]
        pub(crate) async fn run(&self, _: &Place, _: &Limits, _: &Bash, _: &Context) -> Outcome {
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
