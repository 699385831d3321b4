//! The space that a store may take: the least of what the file system, the memory cgroups and `RLIMIT_FSIZE` leave.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::cgroup::{Cgroups, Filling};
use super::place::Directory;
use crate::error::StoreError;

/// The bytes that a store's data may take, and what bounds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) bytes: u64,
    pub(super) bound: Bound,
}

/// A bound on a store's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    FileSystem(PathBuf),
    Cgroup { path: PathBuf, limit: u64 },
    FileSize { limit: u64 },
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::FileSystem(path) => write!(formatter, "the file system of {}", path.display()),
            Bound::Cgroup { path, limit } => {
                write!(formatter, "the memory cgroup {} with its limit of {limit} bytes", path.display())
            }
            Bound::FileSize { limit } => write!(formatter, "RLIMIT_FSIZE with its {limit} bytes for a file"),
        }
    }
}

impl Room {
    /// The room that is left for a data file in `directory` that ends at `end`.
    pub(super) fn left(directory: &Directory, cgroups: &Cgroups, end: u64) -> Result<Self, StoreError> {
        let of_file =
            file_size_limit().map(|limit| Self { bytes: limit.saturating_sub(end), bound: Bound::FileSize { limit } });
        Ok(Self::of_bytes(directory, cgroups)?.into_iter().chain(of_file).min_by_key(|room| room.bytes).expect("one"))
    }

    /// The room for all data of a store in `directory` that has taken `taken` bytes already.
    pub(super) fn whole(directory: &Directory, cgroups: &Cgroups, taken: u64) -> Result<Self, StoreError> {
        let mut rooms = Self::of_bytes(directory, cgroups)?;
        rooms.iter_mut().for_each(|room| room.bytes = room.bytes.saturating_add(taken));
        let of_file = file_size_limit().map(|limit| Self { bytes: limit, bound: Bound::FileSize { limit } });
        Ok(rooms.into_iter().chain(of_file).min_by_key(|room| room.bytes).expect("one"))
    }

    /// The bounds that all files share.
    fn of_bytes(directory: &Directory, cgroups: &Cgroups) -> Result<Vec<Self>, StoreError> {
        let bound = Bound::FileSystem(directory.path.clone());
        let mut rooms = vec![Self { bytes: directory.free_bytes()?, bound }];
        rooms.extend(cgroups.fullest().as_ref().map(Self::of_cgroup));
        Ok(rooms)
    }

    /// The room that a cgroup leaves for a store.
    pub(super) fn of_cgroup(filling: &Filling) -> Self {
        let bound = Bound::Cgroup { path: filling.path.clone(), limit: filling.limit };
        Self { bytes: filling.free.saturating_sub(reserve(filling.limit)), bound }
    }
}

/// The part of a memory cgroup that a store leaves for the memory of its processes and for freeing operations.
fn reserve(limit: u64) -> u64 {
    (limit / 16).max(4 << 20).min(limit / 4)
}

/// The most bytes that this process may write into one file, if it is limited.
pub(super) fn file_size_limit() -> Option<u64> {
    resource_limit(libc::RLIMIT_FSIZE)
}

/// The most address space that this process may have, if it is limited.
pub(super) fn address_space_limit() -> Option<u64> {
    resource_limit(libc::RLIMIT_AS)
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

fn resource_limit(resource: Resource) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable and lives through the call.
    let known = unsafe { libc::getrlimit(resource, &raw mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Runs a job whose writes may pass `RLIMIT_FSIZE`. Such a write fails with EFBIG, and the pending SIGXFSZ, which would end the process,
/// is consumed.
pub(super) fn without_size_signal<T>(job: impl FnOnce() -> T) -> T {
    if file_size_limit().is_none() {
        return job();
    }
    let held = SignalHeld::new();
    let result = job();
    drop(held);
    result
}

/// Blocks SIGXFSZ in this thread, the one that the kernel signals, until the value is dropped.
struct SignalHeld {
    before: libc::sigset_t,
    was_pending: bool,
}

impl SignalHeld {
    fn new() -> Self {
        let only = only_size_signal();
        // SAFETY: a sigset_t is a plain array of integers.
        let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
        let was_pending = is_pending();
        // SAFETY: both sets live through the call.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const only, &raw mut before) };
        Self { before, was_pending }
    }
}

impl Drop for SignalHeld {
    fn drop(&mut self) {
        if !self.was_pending && is_pending() {
            let (only, mut taken) = (only_size_signal(), 0);
            // SAFETY: the signal is blocked and pending, so this takes it at once; both values live through the call.
            unsafe { libc::sigwait(&raw const only, &raw mut taken) };
        }
        // SAFETY: the set is the one that pthread_sigmask has filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

fn only_size_signal() -> libc::sigset_t {
    // SAFETY: a sigset_t is a plain array of integers, and the calls write into this one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGXFSZ);
        set
    }
}

fn is_pending() -> bool {
    // SAFETY: the set is writable and lives through the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, libc::SIGXFSZ) == 1
    }
}

/// What a write fails with that would pass `RLIMIT_FSIZE`.
pub(super) fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}
