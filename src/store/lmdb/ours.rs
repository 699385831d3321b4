//! The files that belong to a store. Only these are ever removed, one by one, and a store is made only in a directory without
//! other files.
//!
//! A directory with a readable stamp is a store, and other files in it are left alone. Without a readable stamp, every entry must be
//! one that an interrupted opening or reset leaves. Anything else belongs to somebody else, and the directory is refused before a
//! file is made in it.

use std::fs;
use std::io;
use std::path::Path;

use super::place::Directory;
use super::stamp::{self, GENERATIONS, Stamp};
use crate::bell::Bell;
use crate::error::{StoreError, shorten};

/// The files beside the generations.
const STORE_FILES: [&str; 4] = ["init", "guard", stamp::FILE, stamp::NEW_FILE];

/// The files of a generation, in the order of their removal: the bell, which marks a generation, goes last.
const GENERATION_FILES: [&str; 4] = ["data.mdb", "lock.mdb", "ballast", BELL];
const BELL: &str = "bell";

/// Refuses a directory without a stamp that holds an entry no store leaves. Makes nothing.
pub(super) fn refuse_strangers(directory: &Directory) -> Result<(), StoreError> {
    match Stamp::read(directory) {
        Ok(None) | Err(StoreError::Corrupt { .. }) => {}
        Ok(Some(_)) | Err(_) => return Ok(()),
    }
    let path = &directory.path;
    // A new store begins with these.
    let is_begun = ["init", "guard"].iter().all(|name| is_file(&path.join(name)));
    let entries = fs::read_dir(path).map_err(|error| StoreError::io("list", path, error))?;
    for entry in entries {
        let name = entry.map_err(|error| StoreError::io("list", path, error))?.file_name();
        let ours = match name.to_str() {
            Some(stamp::FILE) => is_begun,
            Some(name) if STORE_FILES.contains(&name) => true,
            Some(name) => is_begun && generation_number(name).is_some() && holds_a_generation(&path.join(name)),
            None => false,
        };
        if !ours {
            let reason = format!(
                "it holds {}, which is no file of a store; name an empty directory, or one that does not exist yet",
                shorten(&name.to_string_lossy())
            );
            return Err(StoreError::Unsafe { path: path.clone(), reason });
        }
    }
    Ok(())
}

/// The numbers of the existing generations.
pub(super) fn generations(directory: &Directory) -> Vec<u32> {
    let entries = fs::read_dir(&directory.path).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| generation_number(entry.file_name().to_str()?));
    numbers.filter(|&number| is_generation(&path_of(directory, number))).collect()
}

/// A number for a new generation: above `current` and every existing one, and no entry has this name.
pub(super) fn next_generation(directory: &Directory, current: u32) -> u32 {
    let latest = generations(directory).into_iter().max().unwrap_or(0).max(current);
    let is_free = |number: &u32| fs::symlink_metadata(path_of(directory, *number)).is_err();
    (latest + 1..GENERATIONS).find(is_free).unwrap_or(GENERATIONS - 1)
}

/// Removes the files of a generation, and its directory if that is empty then. The next process that is alone removes what cannot be
/// removed now.
pub(super) fn remove_generation(directory: &Directory, number: u32) {
    let path = path_of(directory, number);
    if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
        return;
    }
    for name in GENERATION_FILES {
        let _ = remove_file(&path.join(name));
    }
    let _ = fs::remove_dir(path);
}

/// Removes a regular file, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<(), StoreError> {
    if !is_file(path) {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, error)),
        _ => Ok(()),
    }
}

fn path_of(directory: &Directory, number: u32) -> std::path::PathBuf {
    directory.path.join(number.to_string())
}

/// The number in the name of a generation's directory, in its one spelling.
fn generation_number(name: &str) -> Option<u32> {
    name.parse().ok().filter(|&number: &u32| number < GENERATIONS && number.to_string() == name)
}

/// Whether a directory is a generation, even if somebody has put other files there: each generation has a bell, which is made first
/// and removed last.
fn is_generation(path: &Path) -> bool {
    let bell = fs::symlink_metadata(path.join(BELL));
    is_directory(path) && (bell.is_ok_and(|bell| bell.is_file() && bell.len() >= Bell::BYTES) || is_empty(path))
}

/// Whether a directory is a generation and holds nothing else.
fn holds_a_generation(path: &Path) -> bool {
    let mut entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_ours = |name: &str| GENERATION_FILES.contains(&name);
    is_generation(path) && entries.all(|entry| entry.file_name().to_str().is_some_and(is_ours))
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn old_generations(directory: &Directory, current: u32) -> impl Iterator<Item = u32> {
    generations(directory).into_iter().filter(move |&number| number < current)
}

/// Removes the generations before `current`: no other process has one open when this process is alone.
pub(super) fn remove_old_generations(directory: &Directory, current: u32) {
    old_generations(directory, current).for_each(|old| remove_generation(directory, old));
}

/// Retires the generations before `current`, so that processes that still use one follow. A reset may have been killed before it
/// did so.
pub(super) fn retire_old_generations(directory: &Directory, current: u32) {
    for old in old_generations(directory, current) {
        if let Ok(file) = directory.beneath(directory.path.join(old.to_string())).open_existing("bell")
            && let Ok(bell) = Bell::in_file(&file)
            && !bell.is_retired()
        {
            bell.retire();
        }
    }
}
