//! The tools that a model may call, and what keeps them where they belong.
//!
//! A [`Toolbox`] stands on one working directory. It declares its tools, [checks](Toolbox::check) the arguments of a
//! call, says [what the call would do](Toolbox::preview) before anybody agrees to it, and [runs](Toolbox::run) it.
//! What the model is told is a JSON object as text which holds no id, duration or temporary path: the same call on the
//! same files gives the same bytes.
//!
//! Files are reached through a handle on the working directory and never by a path from the root of the system, so
//! that neither `..` nor a link, not even one that is swapped in the meantime, leads outside. Commands run in a process
//! of their own under Landlock where the kernel has it; [`Confinement`] says what holds.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
struct TheExampleOfTheDocumentation;

mod arguments;
mod call;
mod catalog;
mod diff;
mod edits;
mod glob;
mod grep;
mod limits;
mod ls;
#[cfg(feature = "mcp")]
pub mod mcp;
mod outcome;
pub mod patch;
mod preview;
mod process;
mod protected;
mod read;
mod shell;
mod text;
mod toolbox;
mod visible;
mod walk;
mod workdir;

pub use arguments::{Problem, Refused};
pub use call::{ApplyPatch, Bash, Call, Edit, EditStep, Effect, Glob, Grep, GrepMode, Ls, Read, Write};
pub use catalog::Declaration;
pub use diff::unified_diff;
pub use limits::Limits;
pub use outcome::{Artifact, Image, Notice, Outcome, OutcomeKind};
pub use preview::Preview;
pub use protected::ProtectedPath;
pub use shell::{
    Confinement, ConfinementPolicy, Launcher, Namespaces, ResourceLimits, Shell, ShellSettings,
    confined_shell_main,
};
pub use toolbox::{Context, Toolbox};
pub use visible::{visible, visible_line};
pub use workdir::{Beginning, PathError, Workdir};
