//! The environments this process has open: one for each data file, by device and inode, shared by all engines of the process.
//!
//! Opening a file twice in one process is what LMDB forbids. A child of a fork starts with an empty registry; what its parent
//! had open stays open in the child, unused.

use std::sync::Arc;

use parking_lot::Mutex;

use super::place::Directory;
use super::{Files, opening};
use crate::dsn::Place;
use crate::error::Error;
use crate::fork;
use crate::settings::Settings;

static OPEN: Mutex<Vec<Arc<Files>>> = Mutex::new(Vec::new());

/// The files of a place: those that are open already, or opened now.
pub(super) fn open(place: &Place, settings: &Settings) -> Result<Arc<Files>, Error> {
    let directory = Directory::of(place, settings.group.as_deref())?;
    let mut open = OPEN.lock();
    let generation = fork::generation();
    // Those of before a fork, and those that are no longer the store, are never closed.
    open.retain(|files| {
        let ours = files.fork_generation == generation && files.is_current();
        if !ours {
            std::mem::forget(files.clone());
        }
        ours
    });
    if let Some(files) = open.iter().find(|files| files.directory.path == directory.path) {
        return Ok(files.clone());
    }
    let files = Arc::new(opening::open(place, directory, settings)?);
    if let Some(same) = open.iter().find(|other| other.identity == files.identity) {
        // Two paths lead to one file (a bind mount): whoever came first has it.
        std::mem::forget(files);
        return Ok(same.clone());
    }
    open.push(files.clone());
    Ok(files)
}
