//! The choice among the places of a store's name.
//!
//! The places of `shm://NAME` are `/run/mcp-state`, the user's directory in it, and `/dev/shm`. A new store is made in the first of
//! these that exists. But a store that processes have open in another place keeps the name until the last of them has ended:
//! otherwise a place that is made under running servers would split the store. The choosing process holds the init locks of the
//! stores in all other places, so that no process opens or leaves one meanwhile.

use std::fs::File;
use std::path::Path;

use super::locks::{InitLock, try_lock};
use super::place::{Directory, paths_of};
use super::stamp;
use crate::dsn::Place;
use crate::error::{Error, StoreError};
use crate::settings::Settings;

/// A chosen place, and the locks that keep the choice valid.
pub(super) struct Choice {
    pub(super) directory: Directory,
    /// The init lock of the chosen store, if choosing has taken it.
    pub(super) init: Option<InitLock>,
    _others: Vec<InitLock>,
}

/// Chooses the place of a store, and makes its directory when it does not exist.
pub(super) fn choose(place: &Place, settings: &Settings) -> Result<Choice, Error> {
    let group = settings.group.as_deref();
    let paths = paths_of(place, group)?;
    let (first, others) = paths.split_first().expect("each store has a place");
    let mut begun = Vec::new();
    for path in others {
        // A directory that is no store of ours is no reason to fail.
        if let Some(directory) = Directory::there(path, group)? {
            let init = InitLock::take(&directory)?;
            begun.push((directory, init));
        }
    }
    let others_in_use = begun.iter().position(|(directory, _)| is_in_use(&directory.path));
    let chosen = match others_in_use {
        Some(_) if is_in_use(first) => None,
        // A look makes nothing, so it also finds a store that no process has open.
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
