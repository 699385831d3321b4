//! Opening a store: under the init lock, in an order in which nothing can be mapped that is not there, and nobody can share
//! what must not be shared.
//!
//! Whoever gets the guard exclusively is alone with the store: it may start a new generation, take over what an earlier boot or
//! container left, and write the stamp. Everybody else is a guest of those who hold it, and must fit their stamp.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::environment::{Environment, Opening};
use super::place::Directory;
use super::stamp::Stamp;
use super::{BALLAST_BYTES, Ballast, Files};
use crate::bell::{Bell, Counter};
use crate::clock::{BootClock, Clock, Millis};
use crate::dsn::Place;
use crate::error::{Error, StoreError};
use crate::fork;
use crate::settings::{Durability, Limit, Settings};
use crate::store::local::take_over;

/// Reader slots of the lock file: LMDB's own default of 126 is fewer than a busy machine has workers.
const READERS: u32 = 4096;
/// What the lock file needs for them: 64 bytes a reader, and a page for the rest.
const LOCK_BYTES: u64 = READERS as u64 * 64 + 4096;
/// The least size of the map; only what is written takes memory.
const LEAST_MAP_BYTES: u64 = 4 << 30;
/// How long to wait for another process that is opening the store.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the files in `directory`.
pub(super) fn open(place: &Place, directory: Directory, settings: &Settings) -> Result<Files, Error> {
    let durability = settings.durability.unwrap_or(match place {
        Place::Directory(_) => Durability::Sync,
        _ => Durability::None,
    });
    let init = directory.open("init")?;
    lock_init(&init, &directory.path)?;
    let guard = directory.open("guard")?;
    let alone =
        try_lock(&guard, libc::LOCK_EX).map_err(|error| StoreError::io("lock", directory.path.join("guard"), error))?;
    if !alone {
        let shared = try_lock(&guard, libc::LOCK_SH);
        shared.map_err(|error| StoreError::io("lock", directory.path.join("guard"), error))?;
    }
    let fate = Fate::decide(&directory, alone, durability)?;
    let generation = directory.inside(&fate.stamp.generation.to_string())?;
    if fate.fresh_locks {
        // Nobody has the store open, so nothing can be waiting on these.
        for name in ["lock.mdb", "bell"] {
            remove(&generation.path.join(name))?;
        }
    }
    let files = open_files(directory, generation, guard, settings, durability)?;
    if let Some(shift) = fate.take_over {
        let released = take_over(&files, settings, BootClock.now(), shift)?;
        files.bell.counters().add(Counter::OwnersReleased, released);
    }
    if alone {
        fate.stamp.write(&files.directory)?;
        remove_old_generations(&files.directory, fate.stamp.generation);
        lock(&files._guard, libc::LOCK_SH).map_err(|error| StoreError::io("lock", &files.directory.path, error))?;
    }
    Ok(files)
}

/// Moves the store to a new, empty generation. Processes that have the old one open see its bell retired at their next request
/// or slice of waiting, and follow; the old files go when somebody is alone with the store.
pub(super) fn reset(directory: &Directory) -> Result<(), StoreError> {
    let init = directory.open("init")?;
    lock_init(&init, &directory.path)?;
    let current = match Stamp::read(directory) {
        Err(StoreError::Corrupt { .. }) => None,
        other => other?,
    };
    let current = current.map_or_else(|| latest_generation(&directory.path), |stamp| stamp.generation);
    Stamp::new(current + 1).write(directory)?;
    let old = directory.inside(&current.to_string())?;
    let bell = old.open_allocated("bell", Bell::BYTES)?;
    Bell::in_file(&bell).map_err(|error| StoreError::io("map", old.path.join("bell"), error))?.retire();
    Ok(())
}

/// What becomes of the files that were found.
struct Fate {
    stamp: Stamp,
    fresh_locks: bool,
    /// How times move, when the owners of before are to be released.
    take_over: Option<Box<dyn Fn(Millis) -> Millis>>,
}

impl Fate {
    fn decide(directory: &Directory, alone: bool, durability: Durability) -> Result<Self, StoreError> {
        let found = match Stamp::read(directory) {
            // Nobody else is there to be harmed by a stamp that nobody can read.
            Err(StoreError::Corrupt { .. }) if alone => None,
            other => other?,
        };
        let Some(found) = found else {
            return if alone {
                Ok(Self::fresh(latest_generation(&directory.path) + 1))
            } else {
                Err(StoreError::corrupt(
                    &directory.path,
                    "its stamp is missing while processes have it open; stop them",
                ))
            };
        };
        let mine = Stamp::new(found.generation);
        if !alone {
            if let Some(reason) = mine.difference(&found) {
                return Err(StoreError::Incompatible { path: directory.path.clone(), reason });
            }
            if found.pid_namespace != mine.pid_namespace {
                let reason = "running processes of another container use it; give each container its own store, or let them share a pid namespace".to_owned();
                return Err(StoreError::Incompatible { path: directory.path.clone(), reason });
            }
            return Ok(Self { stamp: found, fresh_locks: false, take_over: None });
        }
        let same_boot = found.boot == mine.boot;
        if !same_boot && durability == Durability::None {
            return Ok(Self::fresh(found.generation + 1));
        }
        let data = directory.path.join(found.generation.to_string()).join("data.mdb");
        if !data.exists() {
            return Ok(Self::fresh(found.generation + 1));
        }
        check_data(&data)?;
        let foreign = found.pid_namespace != mine.pid_namespace;
        let shift = mine.wall_offset as i64 - found.wall_offset as i64;
        let take_over: Option<Box<dyn Fn(Millis) -> Millis>> = match (same_boot, foreign) {
            (true, false) => None,
            (true, true) => Some(Box::new(|time| time)),
            (false, _) => Some(Box::new(move |time| time.saturating_add_signed(-shift))),
        };
        let fresh_locks = !same_boot || mine.difference(&found).is_some();
        Ok(Self { stamp: mine, fresh_locks, take_over })
    }

    fn fresh(generation: u32) -> Self {
        Self { stamp: Stamp::new(generation), fresh_locks: false, take_over: None }
    }
}

fn open_files(
    directory: Directory,
    generation: Directory,
    guard: File,
    settings: &Settings,
    durability: Durability,
) -> Result<Files, StoreError> {
    let data = generation.path.join("data.mdb");
    if data.exists() {
        check_data(&data)?;
    } else {
        // LMDB takes an empty file for a new one; made here, it has the permissions of the place.
        drop(generation.open("data.mdb")?);
    }
    // Closing this descriptor drops no lock: this process does not have the lock file open yet.
    drop(generation.open_allocated("lock.mdb", LOCK_BYTES)?);
    let bell = generation.open_allocated("bell", Bell::BYTES)?;
    let bell = Bell::in_file(&bell).map_err(|error| StoreError::io("map", generation.path.join("bell"), error))?;
    let ballast = open_ballast(&generation)?;
    let map_bytes = settings.limit(Limit::StoreBytes).saturating_mul(4).max(LEAST_MAP_BYTES).next_power_of_two();
    let environment = Environment::open(&Opening {
        directory: &generation.path,
        map_bytes: usize::try_from(map_bytes).unwrap_or(1 << 30),
        readers: READERS,
        sync: durability == Durability::Sync,
        mode: generation.file_mode(),
    })?;
    environment.clear_dead_readers()?;
    let identity = generation
        .identity("data.mdb")
        .ok_or_else(|| StoreError::io("find", data, io::Error::from(io::ErrorKind::NotFound)))?;
    Ok(Files {
        environment,
        bell: Arc::new(bell),
        ballast: Mutex::new(ballast),
        _guard: guard,
        directory,
        generation,
        identity,
        fork_generation: fork::generation(),
    })
}

/// As much ballast as the file system has room for: at most a quarter of what is free.
fn open_ballast(generation: &Directory) -> Result<Ballast, StoreError> {
    let file = generation.open("ballast")?;
    let has = file.metadata().map_or(0, |metadata| metadata.len());
    let bytes = BALLAST_BYTES.min((generation.free_bytes()? + has) / 4 / 4096 * 4096);
    let mut ballast = Ballast { file, bytes: bytes.max(has) };
    if ballast.bytes > has {
        ballast.restore();
    }
    Ok(ballast)
}

/// Refuses a data file that is shorter than its meta pages say: reading the map behind its end would end the process.
fn check_data(path: &Path) -> Result<(), StoreError> {
    use std::io::Read;
    const HEADER: usize = 16;
    const META_BYTES: usize = 160;
    let mut file = File::open(path).map_err(|error| StoreError::io("open", path, error))?;
    let length = file.metadata().map_err(|error| StoreError::io("look at", path, error))?.len();
    if length == 0 {
        return Ok(());
    }
    let mut pages = Vec::new();
    file.by_ref().take(2 * 65_536).read_to_end(&mut pages).map_err(|error| StoreError::io("read", path, error))?;
    let number = |page: usize, offset: usize| -> Option<u64> {
        let at = page + HEADER + offset;
        Some(u64::from_le_bytes(pages.get(at..at + 8)?.try_into().ok()?))
    };
    let reject = |reason: String| Err(StoreError::corrupt(path, format!("{reason}; reset the store")));
    // MDB_meta: magic and version (u32 each), address, map size, two MDB_db of 48 bytes, last page, transaction. The page size
    // stands in the first MDB_db's pad field.
    let Some(page_size) = number(0, 24).map(|word| (word & 0xffff_ffff) as usize) else {
        return reject(format!("the data file is only {length} bytes long"));
    };
    if !(512..=65_536).contains(&page_size) || pages.len() < page_size + META_BYTES {
        return reject("its first page is not one of LMDB's".into());
    }
    const MAGIC: u64 = 0xBEEF_C0DE;
    for page in [0, page_size] {
        if number(page, 0).map(|word| word & 0xffff_ffff) != Some(MAGIC) {
            return reject("its first page is not one of LMDB's".into());
        }
    }
    let newest = [0, page_size].into_iter().max_by_key(|&page| number(page, 128)).unwrap_or(0);
    let last = number(newest, 120).unwrap_or(u64::MAX);
    let needed = last.saturating_add(1).saturating_mul(page_size as u64);
    if length < needed {
        return reject(format!("the data file is {length} bytes long and should be {needed}"));
    }
    Ok(())
}

fn latest_generation(directory: &Path) -> u32 {
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max().unwrap_or(0)
}

/// Old generations are nobody's when this process is alone.
fn remove_old_generations(directory: &Directory, current: u32) {
    for entry in fs::read_dir(&directory.path).into_iter().flatten().flatten() {
        let old =
            entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()).is_some_and(|name| name < current);
        if old {
            // What cannot be removed now is removed by the next to be alone.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Waits for the init lock, within bounds: it is held for moments.
fn lock_init(init: &File, path: &Path) -> Result<(), StoreError> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    while !try_lock(init, libc::LOCK_EX).map_err(|error| StoreError::io("lock", path.join("init"), error))? {
        let waited = start.elapsed();
        if waited > PATIENCE {
            return Err(StoreError::Busy { path: path.to_owned(), waited_ms: waited.as_millis() as u64 });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    Ok(())
}

/// Takes a lock without waiting. Whether it was free.
fn try_lock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    match lock(file, kind | libc::LOCK_NB) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

fn lock(file: &File, kind: libc::c_int) -> io::Result<()> {
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
