//! A launcher for tests: hides parts of the kernel from the program it becomes.
//!
//! `hide landlock namespaces -- program arguments` makes `landlock_create_ruleset` answer that there is no such call,
//! and `unshare` that it is not permitted, as containers do.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    use std::os::unix::process::CommandExt as _;
    let mut arguments = std::env::args_os().skip(1);
    for hidden in arguments.by_ref().take_while(|it| it != "--") {
        let (call, errno) = match hidden.to_str() {
            Some("landlock") => (libc::SYS_landlock_create_ruleset, libc::ENOSYS),
            Some("landlock-forbidden") => (libc::SYS_landlock_create_ruleset, libc::EPERM),
            Some("namespaces") => (libc::SYS_unshare, libc::EPERM),
            Some("mounts") => (libc::SYS_mount, libc::EPERM),
            Some("filters") => (libc::SYS_seccomp, libc::EINVAL),
            other => return Err(format!("{other:?} cannot be hidden").into()),
        };
        let rules = [(call, Vec::new())].into_iter().collect();
        let action = SeccompAction::Errno(errno.cast_unsigned());
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, action, std::env::consts::ARCH.try_into()?)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)?;
    }
    let program = arguments.next().ok_or("no program is named")?;
    Err(std::process::Command::new(program).args(arguments).exec().into())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
