//! The locks that order opening: `init`, which the opening process holds, and `guard`, which every process of the store shares.
//!
//! Both are `flock` locks, so the kernel drops them with the process. A wait for one is bounded and names the holder.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::place::Directory;
use crate::error::StoreError;
use crate::process::who_locks;

/// The longest wait for another process that opens the store.
pub(super) const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that the kernel takes to drop the locks of a killed process.
pub(super) const EXIT_GRACE: Duration = Duration::from_secs(1);

/// The guard with a lock on it, and whether that lock is exclusive.
pub(super) fn take_guard(directory: &Directory) -> Result<(File, bool), StoreError> {
    let guard = directory.open("guard")?;
    let path = directory.path.join("guard");
    let failed = |error| StoreError::io("lock", &path, error);
    let mut backoff = Backoff::new();
    loop {
        for (kind, alone) in [(libc::LOCK_EX, true), (libc::LOCK_SH, false)] {
            if try_lock(&guard, kind).map_err(failed)? {
                return Ok((guard, alone));
            }
        }
        // The kernel still holds the lock of a process that was killed while it was alone.
        backoff.wait(&directory.path, Some(&guard))?;
    }
}

/// The right to open the store. A process holds it for moments; dropping it unlocks explicitly, since a child of a fork may have
/// inherited the descriptor.
pub(super) struct InitLock(File);

impl InitLock {
    pub(super) fn take(directory: &Directory) -> Result<Self, StoreError> {
        let init = directory.open("init")?;
        let mut backoff = Backoff::new();
        while !try_lock(&init, libc::LOCK_EX)
            .map_err(|error| StoreError::io("lock", directory.path.join("init"), error))?
        {
            backoff.wait(&directory.path, Some(&init))?;
        }
        Ok(Self(init))
    }
}

impl Drop for InitLock {
    fn drop(&mut self) {
        let _ = lock(&self.0, libc::LOCK_UN);
    }
}

/// A bounded wait with pauses that grow.
pub(super) struct Backoff {
    since: Instant,
    bound: Duration,
    pause: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self::of(OPENING_TIMEOUT)
    }

    pub(super) fn of(bound: Duration) -> Self {
        Self { since: Instant::now(), bound, pause: Duration::from_micros(200) }
    }

    /// Pauses while another process has `locked` the store at `path`; past the bound, the error names that process.
    pub(super) fn wait(&mut self, path: &Path, locked: Option<&File>) -> Result<(), StoreError> {
        let waited = self.since.elapsed();
        if waited > self.bound {
            let (path, waited_ms) = (path.to_owned(), waited.as_millis() as u64);
            return Err(StoreError::Busy { path, holder: locked.and_then(who_locks), waited_ms });
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(Duration::from_millis(20));
        Ok(())
    }
}

/// Takes a lock without waiting. True when it was free.
pub(super) fn try_lock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    match lock(file, kind | libc::LOCK_NB) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn lock(file: &File, kind: libc::c_int) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open; flock touches no memory.
        if unsafe { libc::flock(file.as_raw_fd(), kind) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
