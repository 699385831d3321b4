//! The environments of this process: one for each data file, by device and inode, shared by all engines of the process.
//!
//! LMDB forbids opening a file twice in one process. A child of a fork starts with an empty registry; its parent's files stay open
//! in the child, unused.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;

use super::choice::choose;
use super::locks::{Backoff, EXIT_GRACE};
use super::opening::{self, Opened};
use super::place::paths_of;
use super::room::without_size_signal;
use super::{Files, filesystem, stamp};
use crate::dsn::Place;
use crate::error::{Error, StoreError};
use crate::fork;
use crate::settings::Settings;

/// The open files of one process. None is ever removed, since LMDB's files must stay open.
struct Registry {
    fork_generation: u64,
    open: Mutex<Vec<Arc<Files>>>,
}

/// The registry of this process. A child makes its own: another thread may have held its parent's lock during the fork.
fn registry() -> &'static Registry {
    static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());
    let fork_generation = fork::generation();
    loop {
        let current = REGISTRY.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a registry that was leaked below, which is never changed or freed.
        if let Some(registry) = unsafe { current.as_ref() }
            && registry.fork_generation == fork_generation
        {
            return registry;
        }
        let new = Box::into_raw(Box::new(Registry { fork_generation, open: Mutex::default() }));
        if REGISTRY.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: no other thread has seen the new registry.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// The files of a place: already open, or opened now.
pub(super) fn open(place: &Place, settings: &Settings) -> Result<Arc<Files>, Error> {
    let mut backoff = Backoff::of(EXIT_GRACE);
    loop {
        match open_once(place, settings) {
            // A process that removes a store removes one file after the other; this one then makes the store anew.
            Err(error @ Error::Store(StoreError::Corrupt { .. } | StoreError::Unsafe { .. })) => {
                let path = paths_of(place, settings.group.as_deref())?.swap_remove(0);
                let has = |name| path.join(name).exists();
                let is_half_removed = !has(stamp::FILE) && (has("guard") || has("init"));
                if !is_half_removed || backoff.wait(&path, None).is_err() {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

fn open_once(place: &Place, settings: &Settings) -> Result<Arc<Files>, Error> {
    let paths = paths_of(place, settings.group.as_deref())?;
    paths.iter().try_for_each(|path| filesystem::check(path))?;
    let mut open = registry().open.lock();
    if let Some(files) = open.iter().find(|files| paths.contains(&files.directory.path) && files.is_current()) {
        return Ok(files.clone());
    }
    let choice = choose(place, settings)?;
    // Everything that opening writes may pass RLIMIT_FSIZE.
    let opened = without_size_signal(|| opening::open(place, choice, settings, &open));
    Ok(match opened? {
        Opened::Before(files) => files,
        Opened::Now(files) => {
            open.push(files.clone());
            files
        }
    })
}
