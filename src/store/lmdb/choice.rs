//! Which of the places that a name stands for is the store's.
//!
//! `shm://NAME` lies in `/run/mcp-state`, in a folder of that for its user, or in `/dev/shm`. The first of these that is there is
//! where a new store is made; but a store that processes have open in another one is the store of that name until the last of
//! them has ended, or a place made under running servers would split it. Whoever chooses holds the init locks of the stores in
//! all other places, so that nobody opens or leaves one unseen meanwhile.

use std::fs::File;
use std::path::Path;

use super::locks::{InitLock, try_lock};
use super::place::{Directory, paths_of};
use super::stamp;
use crate::dsn::Place;
use crate::error::{Error, StoreError};
use crate::settings::Settings;

/// A place, and what keeps it chosen.
pub(super) struct Choice {
    pub(super) directory: Directory,
    /// The right to open the store that is there, where it was taken to choose.
    pub(super) init: Option<InitLock>,
    _others: Vec<InitLock>,
}

/// Chooses the place of a store, and makes its directory if it is not there.
pub(super) fn choose(place: &Place, settings: &Settings) -> Result<Choice, Error> {
    let group = settings.group.as_deref();
    let paths = paths_of(place, group)?;
    let (first, others) = paths.split_first().expect("each store has a place");
    let mut begun = Vec::new();
    for path in others {
        // What is no store of ours there is no reason to fail here.
        if let Some(directory) = Directory::there(path, group)? {
            let init = InitLock::take(&directory)?;
            begun.push((directory, init));
        }
    }
    let others_in_use = begun.iter().position(|(directory, _)| is_in_use(&directory.path));
    let chosen = match others_in_use {
        Some(_) if is_in_use(first) => None,
        // A look makes nothing: it finds what nobody has open, too.
        None if settings.is_look && !has_stamp(first) => {
            begun.iter().position(|(directory, _)| has_stamp(&directory.path))
        }
        other => other,
    };
    let chosen = chosen.map(|index| begun.swap_remove(index));
    let others = begun.into_iter().map(|(_, init)| init).collect();
    Ok(match chosen {
        Some((directory, init)) => Choice { directory, init: Some(init), _others: others },
        None => Choice { directory: Directory::of(place, first, group)?, init: None, _others: others },
    })
}

/// Fails unless there is a store at one of the places.
pub(super) fn require(place: &Place, settings: &Settings) -> Result<(), Error> {
    let paths = paths_of(place, settings.group.as_deref())?;
    let looked = |path: &Path| std::fs::symlink_metadata(path.join(stamp::FILE)).map(drop);
    match looked(&paths[0]) {
        Err(_) if paths[1..].iter().any(|path| has_stamp(path)) => Ok(()),
        Err(error) => Err(StoreError::io("find a store in", &paths[0], error).into()),
        Ok(()) => Ok(()),
    }
}

fn has_stamp(path: &Path) -> bool {
    std::fs::symlink_metadata(path.join(stamp::FILE)).is_ok()
}

/// Whether a process has the store open. Its init lock must be held: an opening holds the guard for moments, too.
fn is_in_use(path: &Path) -> bool {
    let is_free = |guard: File| try_lock(&guard, libc::LOCK_EX).unwrap_or(false);
    Directory::open_to_lock(&path.join("guard")).is_some_and(|guard| !is_free(guard))
}
