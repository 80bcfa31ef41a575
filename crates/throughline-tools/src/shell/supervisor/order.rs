//! What the supervisor is told: one order, as arguments of a process.

use crate::shell::{Confinement, Namespaces, Shell, environment};
use rustix::process::Resource;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What to run, and how to confine it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) readable: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    /// Files and directories that are mounted read-only, where there is a mount namespace.
    pub(super) protected: Vec<PathBuf>,
    pub(super) limits: Vec<(Limit, u64)>,
    pub(super) landlock: LandlockUse,
    pub(super) namespaces: Option<Namespaces>,
    /// Whether a new `/proc` is mounted that shows the command's own processes only.
    pub(super) fresh_proc: bool,
    /// Whether the command sees a file system that holds nothing but what it may use.
    pub(super) private_view: bool,
    /// Whether the command may use the network.
    pub(super) network: bool,
    /// Whether system calls are filtered: sockets if there is to be no network, and signals to `shielded`.
    pub(super) filter: bool,
    /// Processes that the command may not signal.
    pub(super) shielded: Vec<i32>,
    pub(super) task: Task,
}

/// What Landlock is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LandlockUse {
    /// Nothing.
    #[default]
    Skip,
    /// To confine the command, which is not run otherwise.
    Require,
}

/// What there is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Task {
    /// Sets everything up and runs nothing.
    #[default]
    Try,
    /// Runs a program.
    Run { program: OsString, arguments: Vec<OsString> },
}

/// A resource that is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Cpu,
    FileSize,
    Processes,
    AddressSpace,
}

const LIMITS: &[(&str, Limit)] = &[
    ("--cpu", Limit::Cpu),
    ("--file-size", Limit::FileSize),
    ("--processes", Limit::Processes),
    ("--address-space", Limit::AddressSpace),
];

impl Limit {
    pub(super) const fn resource(self) -> Resource {
        match self {
            Self::Cpu => Resource::Cpu,
            Self::FileSize => Resource::Fsize,
            Self::Processes => Resource::Nproc,
            Self::AddressSpace => Resource::As,
        }
    }
}

impl Order {
    /// Returns the order for a command of `shell`, as far as everything but the program goes.
    pub(super) fn for_command(shell: &Shell, root: &Path, protected: Vec<PathBuf>) -> Self {
        let settings = &shell.settings;
        let mut order = Self::for_means(&shell.confinement, settings.network);
        order.readable = environment::toolchains(&settings.variables);
        order.readable.extend(settings.readable.iter().cloned());
        order.writable = vec![root.to_owned(), shell.temp.path().to_owned()];
        order.writable.extend(settings.writable.iter().cloned());
        order.protected = protected;
        order.protected.extend(settings.writable.iter().flat_map(|path| git_files(path)));
        // A view that holds everything hides nothing, and nothing can be mounted over the root.
        let everything = |path: &PathBuf| path == Path::new("/");
        if order.readable.iter().chain(&order.writable).any(everything) {
            order.private_view = false;
        }
        let resources = &settings.resources;
        let limits = [
            (Limit::Cpu, resources.cpu_seconds),
            (Limit::FileSize, resources.file_bytes),
            (Limit::Processes, resources.processes),
            (Limit::AddressSpace, resources.address_space_bytes),
        ];
        order.limits = limits.into_iter().filter_map(|(limit, value)| Some((limit, value?))).collect();
        order
    }

    /// Returns an order that uses all that `confinement` found.
    pub(super) fn for_means(confinement: &Confinement, network: bool) -> Self {
        let namespaces = confinement.namespaces.clone().ok();
        let shields = namespaces.is_none() && !confinement.scopes_signals();
        Self {
            landlock: if confinement.landlock.is_ok() { LandlockUse::Require } else { LandlockUse::Skip },
            fresh_proc: namespaces.is_some() && confinement.fresh_proc,
            private_view: namespaces.is_some() && confinement.private_view,
            filter: confinement.filter && (shields || (!network && namespaces.is_none())),
            namespaces,
            network,
            ..Self::default()
        }
    }

    /// Returns the arguments that say this order.
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let flags = [
            ("--landlock", self.landlock == LandlockUse::Require),
            ("--namespaces", self.namespaces == Some(Namespaces::Privileged)),
            ("--user-namespaces", self.namespaces == Some(Namespaces::User)),
            ("--proc", self.fresh_proc),
            ("--view", self.private_view),
            ("--network", self.network),
            ("--filter", self.filter),
        ];
        arguments.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.into()));
        let mut add = |flag: &str, value: OsString| arguments.extend([flag.into(), value]);
        for (flag, paths) in
            [("--read", &self.readable), ("--write", &self.writable), ("--protect", &self.protected)]
        {
            paths.iter().for_each(|path| add(flag, path.into()));
        }
        for (limit, value) in &self.limits {
            let flag = LIMITS.iter().find(|(_, it)| it == limit).map_or("", |(flag, _)| flag);
            add(flag, value.to_string().into());
        }
        self.shielded.iter().for_each(|pid| add("--shield", pid.to_string().into()));
        match &self.task {
            Task::Try => arguments.push("--try".into()),
            Task::Run { program, arguments: rest } => {
                arguments.extend(["--".into(), program.clone()]);
                arguments.extend(rest.iter().cloned());
            }
        }
        arguments
    }

    pub(super) fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut order = Self::default();
        while let Some(flag) = arguments.next() {
            let flag = flag.to_string_lossy().into_owned();
            match flag.as_str() {
                "--" => {
                    let program = arguments.next().ok_or("no program is named")?;
                    order.task = Task::Run { program, arguments: arguments.collect() };
                    return Ok(order);
                }
                "--try" => return Ok(order),
                "--landlock" => order.landlock = LandlockUse::Require,
                "--namespaces" => order.namespaces = Some(Namespaces::Privileged),
                "--user-namespaces" => order.namespaces = Some(Namespaces::User),
                "--proc" => order.fresh_proc = true,
                "--view" => order.private_view = true,
                "--network" => order.network = true,
                "--filter" => order.filter = true,
                _ => {
                    let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
                    order.set(&flag, value)?;
                }
            }
        }
        Err("no program is named".to_owned())
    }

    fn set(&mut self, flag: &str, value: OsString) -> Result<(), String> {
        let number = || {
            let parsed = value.to_str().and_then(|text| text.parse::<u64>().ok());
            parsed.ok_or_else(|| format!("{flag} needs a number"))
        };
        match flag {
            "--read" => self.readable.push(value.into()),
            "--write" => self.writable.push(value.into()),
            "--protect" => self.protected.push(value.into()),
            "--shield" => self.shielded.push(i32::try_from(number()?).map_err(|error| error.to_string())?),
            _ => match LIMITS.iter().find(|(name, _)| *name == flag) {
                Some((_, limit)) => self.limits.push((*limit, number()?)),
                None => return Err(format!("{flag} is not known")),
            },
        }
        Ok(())
    }
}

/// Returns what of a git directory runs programs, if there is one at `path`. Whoever may write to a repository outside of
/// the working directory need not write that.
fn git_files(path: &Path) -> Vec<PathBuf> {
    let repositories = [path.to_owned(), path.join(".git")];
    let repositories = repositories.into_iter().filter(|it| it.join("HEAD").is_file());
    let names = ["config", "config.worktree", "hooks"];
    let files = repositories.flat_map(|it| names.map(|name| it.join(name)));
    files.filter(|it| it.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_its_arguments() {
        let order = Order {
            readable: vec!["/a b".into()],
            writable: vec!["/w".into(), "/x".into()],
            protected: vec!["/w/.git/config".into()],
            limits: vec![(Limit::Cpu, 5), (Limit::AddressSpace, 7)],
            landlock: LandlockUse::Require,
            namespaces: Some(Namespaces::User),
            fresh_proc: true,
            private_view: true,
            network: false,
            filter: true,
            shielded: vec![7, 8],
            task: Task::Run { program: "/bin/sh".into(), arguments: vec!["--".into(), "--try".into()] },
        };
        assert_eq!(Order::parse(order.to_arguments().into_iter()), Ok(order));
        assert_eq!(Order::parse(Order::default().to_arguments().into_iter()), Ok(Order::default()));
        assert!(Order::parse(["--unknown".into(), "x".into()].into_iter()).is_err());
    }
}
