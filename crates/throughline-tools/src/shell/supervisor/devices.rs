//! Devices that commands may use. The user's terminal is not among them.

/// Devices that may be read.
pub(super) const READABLE: &[&str] = &["/dev/random", "/dev/urandom"];

/// Devices that may be read and written.
pub(super) const WRITABLE: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Where a private view has terminals: those that the command opens itself, and no others.
pub(super) const PRIVATE_TERMINALS: &[&str] = &["/dev/tty", "/dev/pts"];

/// Directories below `/dev` that a private view makes anew.
pub(super) const PRIVATE_DIRECTORIES: &[&str] = &["/dev/shm"];

/// Links that programs expect below `/dev`.
pub(super) const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];
