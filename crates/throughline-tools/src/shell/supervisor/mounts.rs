//! The mount namespace of a command: a file system that holds nothing but what it may use.
//!
//! A file system in memory becomes the root, and whatever the command may read or write is mounted in it, at the place
//! where it is. What is not mounted cannot be seen, and sockets that lie there cannot be connected to. Protected files
//! are mounted read-only on top.

use super::devices;
use super::landlock::SYSTEM;
use super::order::Order;
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};

/// Where the old root is while the new one is made.
const OLD: &str = "/.old";
/// Links are followed so many times at most.
const LINKS_MAX: usize = 40;

/// Makes the view of an order. The process must be in a mount namespace of its own.
pub(super) fn arrange(order: &Order) -> Result<(), String> {
    let words = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("{what}: {error}")
    };
    let cwd = std::env::current_dir().map_err(words("the working directory"))?;
    // Otherwise the machine would see the mounts as well.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(io::Error::from)
        .map_err(words("mounts cannot be made private"))?;
    if order.private_view {
        make_view(order).map_err(words("a private view of the file system cannot be made"))?;
    } else if order.fresh_proc {
        mount_proc().map_err(words("/proc cannot be mounted"))?;
    }
    for path in &order.protected {
        let what = format!("{} cannot be made read-only", path.display());
        protect(path).map_err(words(&what))?;
    }
    if order.private_view {
        let sealed = remount_read_only("/");
        sealed.map_err(words("the root cannot be made read-only"))?;
    }
    std::env::set_current_dir(&cwd).map_err(words("the working directory"))
}

fn make_view(order: &Order) -> io::Result<()> {
    let base = ["/tmp", "/run", "/mnt"].into_iter().find(|path| Path::new(path).is_dir());
    let base = base.ok_or(io::ErrorKind::NotFound)?;
    // As they really are, while that can be asked.
    let changeable: Vec<PathBuf> = order.writable.iter().filter_map(|it| it.canonicalize().ok()).collect();
    mount("tmpfs", base, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")?;
    let old = format!("{base}{OLD}");
    fs::create_dir(&old)?;
    rustix::process::pivot_root(base, &old)?;
    std::env::set_current_dir("/")?;

    let system = SYSTEM.iter().filter(|path| **path != "/proc").map(PathBuf::from);
    let readable: BTreeSet<PathBuf> = system.chain(order.readable.iter().cloned()).collect();
    let writable: BTreeSet<PathBuf> = order.writable.iter().cloned().collect();
    // In their order, so that what is in another comes behind it and is found to be there already.
    for path in readable.union(&writable) {
        if let Some(real) = reveal(path)? {
            let may_write = changeable.iter().any(|it| it.starts_with(&real) || real.starts_with(it));
            if !may_write {
                // Landlock says the same; where there is none, this is what holds.
                let _ = remount_read_only(&real);
            }
        }
    }
    make_devices()?;
    fs::create_dir("/proc").or_else(unless(io::ErrorKind::AlreadyExists))?;
    match order.fresh_proc {
        true => mount_proc()?,
        false => mount_bind_recursive(format!("{OLD}/proc"), "/proc")?,
    }
    unmount(OLD, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)
}

/// Mounts something at the place where it is, with the links that lead there. Returns that place if it was not there
/// already.
fn reveal(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut place = PathBuf::from("/");
    let mut ahead: Vec<PathBuf> = parts(path);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == Path::new("..") {
            place.pop();
            continue;
        }
        place.push(part);
        let Ok(metadata) = fs::symlink_metadata(in_old(&place)) else { return Ok(None) };
        if metadata.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Ok(None);
            }
            let target = fs::read_link(in_old(&place))?;
            symlink(&target, &place).or_else(unless(io::ErrorKind::AlreadyExists))?;
            place.pop();
            if target.is_absolute() {
                place = PathBuf::from("/");
            }
            ahead.extend(parts(&target));
        } else if !ahead.is_empty() {
            fs::create_dir(&place)
                .or_else(unless(io::ErrorKind::AlreadyExists))
                .or_else(unless(io::ErrorKind::ReadOnlyFilesystem))?;
        } else if is_there(&place, &metadata) {
            return Ok(None);
        } else {
            make_place(&place, metadata.is_dir())?;
            return match mount_bind_recursive(in_old(&place), &place) {
                Ok(()) => Ok(Some(place)),
                // What may not be looked at is not missed.
                Err(Errno::ACCESS) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
    }
    Ok(None)
}

/// Returns the parts of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let named = path.components().filter(|it| matches!(it, Component::Normal(_) | Component::ParentDir));
    let mut parts: Vec<PathBuf> = named.map(|it| it.as_os_str().into()).collect();
    parts.reverse();
    parts
}

fn in_old(place: &Path) -> PathBuf {
    Path::new(OLD).join(place.strip_prefix("/").unwrap_or(place))
}

fn is_there(place: &Path, old: &fs::Metadata) -> bool {
    fs::symlink_metadata(place).is_ok_and(|new| (new.dev(), new.ino()) == (old.dev(), old.ino()))
}

fn make_place(place: &Path, is_dir: bool) -> io::Result<()> {
    let made = if is_dir { fs::create_dir(place) } else { fs::File::create_new(place).map(drop) };
    made.or_else(unless(io::ErrorKind::AlreadyExists))
}

fn unless(kind: io::ErrorKind) -> impl FnOnce(io::Error) -> io::Result<()> {
    move |error| if error.kind() == kind { Ok(()) } else { Err(error) }
}

/// Makes `/dev`: a few devices, terminals of its own, shared memory of its own.
fn make_devices() -> io::Result<()> {
    fs::create_dir("/dev").or_else(unless(io::ErrorKind::AlreadyExists))?;
    for path in devices::READABLE.iter().chain(devices::WRITABLE).chain(&["/dev/tty"]) {
        reveal(Path::new(path))?;
    }
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC;
    for name in ["/dev/pts", "/dev/shm"] {
        fs::create_dir(name).or_else(unless(io::ErrorKind::AlreadyExists))?;
    }
    mount("devpts", "/dev/pts", "devpts", plain, c"newinstance,ptmxmode=0666,mode=620")?;
    mount("tmpfs", "/dev/shm", "tmpfs", plain | MountFlags::NODEV, c"mode=1777")?;
    for (place, target) in devices::LINKS {
        symlink(target, place).or_else(unless(io::ErrorKind::AlreadyExists))?;
    }
    Ok(())
}

fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

/// Mounts a file or a directory on itself, read-only.
fn protect(path: &Path) -> io::Result<()> {
    match mount_bind(path, path) {
        Ok(()) => remount_read_only(path),
        // It is not in the view, or went away in the meantime; the check behind the command sees that.
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a mount read-only. The other flags it has are kept: they may not be taken off in a user namespace.
fn remount_read_only(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let now = rustix::fs::statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (is, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if now.contains(is) {
            flags |= flag;
        }
    }
    Ok(mount_remount(path, flags, "")?)
}
