//! Opening a store under the init lock, in an order that maps nothing without space behind it and shares nothing between
//! processes that must not share it.
//!
//! A process that locks the guard exclusively is *alone* with the store: it may start a new generation, take over what an earlier
//! boot or container left, and write the stamp. Every other process is a *guest*, and must fit the stamp that it finds.

use std::fs::{self, File};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::cgroup::Cgroups;
use super::choice::Choice;
use super::data_file::{self, MAP_BYTES, MAP_STEP};
use super::environment::{Environment, Opening};
use super::filesystem;
use super::growth::Growth;
use super::locks::{Backoff, EXIT_GRACE, InitLock, lock, take_guard, try_lock};
use super::ours;
use super::path_check::{Identity, PathCheck};
use super::place::Directory;
use super::reclaim::Reclaim;
use super::room::{file_size_limit, too_large};
use super::stamp::Stamp;
use super::writer_queue::WriterQueue;
use super::{BALLAST_BYTES, Ballast, Files};
use crate::bell::{Bell, Counter};
use crate::clock::{BootClock, Clock};
use crate::dsn::Place;
use crate::error::{Error, InvalidArgument, StoreError};
use crate::fork;
use crate::settings::{Durability, Settings};
use crate::store::era::take_over;

/// Reader slots of the lock file: LMDB's own default of 126 is fewer than a busy machine has workers.
const READERS: u32 = 4096;
/// The length of the lock file: 64 bytes a reader, and a page for the rest.
const LOCK_BYTES: u64 = READERS as u64 * 64 + 4096;

/// The result of opening.
pub(super) enum Opened {
    /// This process had the files open already.
    Before(Arc<Files>),
    /// They are open now.
    Now(Arc<Files>),
}

/// Opens the files at the chosen place, unless this process has them open already.
pub(super) fn open(
    place: &Place,
    choice: Choice,
    settings: &Settings,
    open_before: &[Arc<Files>],
) -> Result<Opened, Error> {
    let durability = settings.durability.unwrap_or(match place {
        Place::Directory(_) => Durability::Sync,
        _ => Durability::None,
    });
    if settings.write_map == Some(true) && durability == Durability::Sync {
        let reason = "a store that writes through its map is not durable: leave it out, or add durability=none";
        return Err(InvalidArgument::new("write_map", "1", reason).into());
    }
    let Choice { directory, init, .. } = choice;
    let _init = enter(&directory, init)?;
    let (guard, alone) = take_guard(&directory)?;
    let Plan { mut stamp, fresh_locks, leaves } = Plan::decide(&directory, alone, durability)?;
    if settings.is_look
        && let Some(what) = leaves
    {
        return Err(looked_at(&directory, what).into());
    }
    let mut generation = directory.inside(&stamp.generation.to_string())?;
    if is_torn(&generation, &stamp, alone)? || is_swapped(&directory, &generation, open_before) {
        if settings.is_look && !stamp.durable {
            return Err(looked_at(&directory, "files that its processes share were removed or replaced").into());
        }
        if stamp.durable {
            let reason =
                "files that its processes share were removed or replaced while they ran; end them, then start again";
            return Err(StoreError::Unsafe { path: directory.path, reason: reason.to_owned() }.into());
        }
        // A process that still has the old files follows at its next request or slice of waiting.
        stamp.generation = ours::next_generation(&directory, stamp.generation);
        stamp.settled = false;
        generation = directory.inside(&stamp.generation.to_string())?;
    }
    if alone {
        stamp.write_map = match settings.write_map {
            _ if durability == Durability::Sync => None,
            Some(wanted) => wanted.then(|| data_file::write_map_bytes(&generation, settings)),
            None => stamp.write_map,
        };
    }
    if !stamp.settled {
        stamp.write(&directory)?;
        ours::retire_old_generations(&directory, stamp.generation);
        if alone {
            // There may be room for one generation only.
            ours::remove_old_generations(&directory, stamp.generation);
        }
    }
    // LMDB's lock file must not be touched when this process has it open, under whatever path.
    let identity = generation.identity("data.mdb");
    if let Some(files) = open_before.iter().find(|files| identity.is_some() && files.paths.identity().data == identity)
    {
        return Ok(Opened::Before(files.clone()));
    }
    if fresh_locks {
        // No process has the store open, so none waits on these.
        for name in ["lock.mdb", "bell"] {
            ours::remove_file(&generation.path.join(name))?;
        }
    }
    let made = directory.clone();
    let opened = open_files(directory, generation, guard, alone, durability, &stamp).map_err(Error::from).and_then(
        |(files, was_short)| match settle(&files, &stamp, alone, was_short, settings, durability) {
            Ok(()) => Ok(Opened::Now(Arc::new(files))),
            Err(error) => {
                files.environment.close();
                Err(error)
            }
        },
    );
    if opened.is_err() && !stamp.settled {
        // An unfinished generation is of no use, and each further attempt would leave another one.
        ours::remove_generation(&made, stamp.generation);
    }
    opened
}

/// Whether a shared file was removed or replaced under the processes that have it open. A new file beside the old one would
/// break exclusion: two lock files for one data file.
fn is_torn(generation: &Directory, stamp: &Stamp, alone: bool) -> Result<bool, StoreError> {
    let path = generation.path.join("data.mdb");
    let has = |name| generation.identity(name).is_some();
    if fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len()) == 0 {
        // A process that is killed while it makes the files leaves an empty one.
        return Ok(stamp.settled && !alone);
    }
    if !alone {
        let inode = generation.identity("data.mdb").map(|(_, inode)| inode);
        let is_another = stamp.settled && stamp.data_inode.is_some() && stamp.data_inode != inode;
        return Ok(is_another || !has("lock.mdb") || !has("bell"));
    }
    // No process holds the guard, so none should have the data file open.
    let data = generation.open("data.mdb")?;
    let mut backoff = Backoff::of(EXIT_GRACE);
    while !try_lock(&data, libc::LOCK_EX).map_err(|error| StoreError::io("lock", &path, error))? {
        // The kernel drops the locks of a killed process one by one.
        if backoff.wait(&generation.path, None).is_err() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a shared file differs from the one that this process has open beside the same data file.
fn is_swapped(directory: &Directory, generation: &Directory, open_before: &[Arc<Files>]) -> bool {
    let now = Identity::of(directory, generation);
    let mut with_the_data =
        open_before.iter().filter(|files| now.data.is_some() && files.paths.identity().data == now.data);
    with_the_data.any(|files| !files.paths.identity().excludes_like(&now))
}

/// Brings the opened store up to date: its times, its stamp, and the remains of older generations.
fn settle(
    files: &Files,
    stamp: &Stamp,
    alone: bool,
    was_short: bool,
    settings: &Settings,
    durability: Durability,
) -> Result<(), Error> {
    let data_inode = files.paths.identity().data.map(|(_, inode)| inode);
    let settled = Stamp { settled: true, write_map: files.write_map, data_inode, ..stamp.clone() };
    if !alone {
        files.note_wall_offset();
        let now = Stamp { durable: stamp.durable && durability == Durability::Sync, ..settled };
        if now != *stamp {
            now.write(&files.directory)?;
        }
        ours::retire_old_generations(&files.directory, stamp.generation);
        return Ok(());
    }
    if was_short {
        files.check_rows()?;
    }
    let released = take_over(files, settings, BootClock.now(), &stamp.era())?;
    files.wall_offset.store(stamp.wall_offset, Ordering::Relaxed);
    files.bell.counters().add(Counter::OwnersReleased, released);
    settled.write(&files.directory)?;
    ours::remove_old_generations(&files.directory, stamp.generation);
    lock(&files.guard, libc::LOCK_SH).map_err(|error| StoreError::io("lock", &files.directory.path, error))?;
    Ok(())
}

/// Moves the store to a new, empty generation. Processes that have the old one open find its bell retired at their next request or
/// slice of waiting, and follow. The next process that is alone with the store removes the old files.
pub(super) fn reset(choice: Choice) -> Result<(), StoreError> {
    let Choice { directory, init, .. } = choice;
    let directory = &directory;
    let _init = enter(directory, init)?;
    let found = match Stamp::read(directory) {
        Err(StoreError::Corrupt { .. }) => None,
        other => other?,
    };
    let generation = ours::next_generation(directory, found.as_ref().map_or(0, |stamp| stamp.generation));
    // The stamp stays, so that running processes still fit it, whichever process resets.
    let stamp = found.unwrap_or_else(|| Stamp::new(generation, false));
    Stamp { generation, settled: false, ..stamp }.write(directory)?;
    ours::retire_old_generations(directory, generation);
    Ok(())
}

/// Takes the init lock of a directory, unless the directory belongs to somebody else.
fn enter(directory: &Directory, init: Option<InitLock>) -> Result<InitLock, StoreError> {
    let is_begun = || directory.identity("init").is_some();
    if !is_begun() {
        // Nothing is made in a directory with other files. A process that makes a store at this moment has made `init` first.
        match ours::refuse_strangers(directory) {
            Err(refusal) if !is_begun() => return Err(refusal),
            _ => {}
        }
    }
    let init = init.map_or_else(|| InitLock::take(directory), Ok)?;
    ours::refuse_strangers(directory)?;
    Ok(init)
}

/// Whether a generation has a data file that is not empty.
fn has_data(directory: &Directory, generation: u32) -> bool {
    let path = directory.path.join(generation.to_string()).join("data.mdb");
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}

/// The refusal of a look: only a server begins a store afresh.
fn looked_at(directory: &Directory, what: &str) -> StoreError {
    let reason = format!("{what}: the next server that opens it begins it afresh, and a look does not");
    StoreError::Unsafe { path: directory.path.clone(), reason }
}

/// What opening does with the files that it finds.
struct Plan {
    stamp: Stamp,
    fresh_locks: bool,
    /// The reason why existing rows are left behind for an empty store.
    leaves: Option<&'static str>,
}

impl Plan {
    fn decide(directory: &Directory, alone: bool, durability: Durability) -> Result<Self, StoreError> {
        let durable = durability == Durability::Sync;
        let found = match Stamp::read(directory) {
            // No other process is harmed, and a store that is not durable may be forgotten.
            Err(StoreError::Corrupt { .. }) if alone && !durable => None,
            other => other?,
        };
        let Some(found) = found else {
            // The stamp is made before the data.
            let has_data = ours::generations(directory).into_iter().any(|number| has_data(directory, number));
            if !alone || (durable && has_data) {
                return Err(StoreError::corrupt(&directory.path, "its stamp is missing; reset the store"));
            }
            let stamp = Stamp::new(ours::next_generation(directory, 0), durable);
            return Ok(Self { stamp, fresh_locks: false, leaves: Some("its stamp is missing") });
        };
        let has_data = has_data(directory, found.generation);
        let mine =
            Stamp { settled: found.settled, write_map: found.write_map, ..Stamp::new(found.generation, durable) };
        if !alone {
            if let Some(reason) = mine.difference(&found) {
                return Err(StoreError::Incompatible { path: directory.path.clone(), reason });
            }
            if let Some(reason) = mine.time_difference(&found) {
                return Err(StoreError::Incompatible { path: directory.path.clone(), reason });
            }
            if found.pid_namespace != mine.pid_namespace {
                let reason = "running processes of another container use it; give each container its own store, or let them share a pid namespace".to_owned();
                return Err(StoreError::Incompatible { path: directory.path.clone(), reason });
            }
            // An unfinished generation is of no use.
            let is_unfinished = has_data && !found.settled;
            let generation =
                if is_unfinished { ours::next_generation(directory, found.generation) } else { found.generation };
            let leaves = is_unfinished.then_some("it was not made to the end");
            return Ok(Self { stamp: Stamp { generation, ..found }, fresh_locks: false, leaves });
        }
        if found.durable && found.settled && !has_data {
            let reason = "its data file is missing or empty; put a copy in its place, or reset the store";
            return Err(StoreError::corrupt(&directory.path, reason));
        }
        let same_boot = found.is_of_boot(&mine);
        if same_boot && let Some(reason) = mine.time_difference(&found) {
            return Err(StoreError::Incompatible { path: directory.path.clone(), reason });
        }
        // The boot does not matter where no file outlives one.
        let is_known = !found.boot.is_empty() && !mine.boot.is_empty();
        let is_outlived = !same_boot && !found.durable && (is_known || !directory.is_in_memory());
        if is_outlived || !has_data || !found.settled {
            let leaves = if is_outlived { "it is of an earlier boot" } else { "it was not made to the end" };
            let leaves = has_data.then_some(leaves);
            let stamp = Stamp::new(ours::next_generation(directory, found.generation), durable);
            // An unfinished map may be the one that found no room.
            let write_map = found.write_map.filter(|_| found.settled);
            return Ok(Self { stamp: Stamp { write_map, ..stamp }, fresh_locks: false, leaves });
        }
        let fresh_locks = !same_boot || mine.difference(&found).is_some();
        Ok(Self { stamp: mine, fresh_locks, leaves: None })
    }
}

/// The open files, and whether the data file had to be lengthened.
fn open_files(
    directory: Directory,
    generation: Directory,
    guard: File,
    alone: bool,
    durability: Durability,
    stamp: &Stamp,
) -> Result<(Files, bool), StoreError> {
    let write_map = stamp.write_map;
    let data = generation.path.join("data.mdb");
    // The first file that is made: it tells a generation of ours.
    let bell = generation.open_allocated("bell", Bell::BYTES)?;
    // LMDB takes an empty file for a new one; made here, it has the permissions of the place.
    let data_file = generation.open("data.mdb")?;
    let mut backoff = Backoff::new();
    while !try_lock(&data_file, libc::LOCK_SH).map_err(|error| StoreError::io("lock", &data, error))? {
        backoff.wait(&generation.path, Some(&data_file))?;
    }
    let mut most = MAP_BYTES;
    if let Some(bytes) = write_map.filter(|_| !alone && !data_file::is_empty(&data_file)) {
        // LMDB would make the file as long as it is told: shorter under others who write to it, or longer than their map.
        let has = data_file.metadata().map_err(|error| StoreError::io("look at", &data, error))?.len();
        if has != bytes {
            let reason =
                format!("its stamp names a map of {bytes} bytes, and its data file has {has}; reset the store");
            return Err(StoreError::corrupt(&directory.path, reason));
        }
        most = bytes;
    }
    let (was_short, needed) = data_file::complete(&data_file, &data, alone, most)?;
    if let Some(limit) = file_size_limit()
        && needed > limit
    {
        // This process could not write the pages past its limit, not even to free them.
        return Err(StoreError::io("write to", &data, too_large()));
    }
    let write_map = write_map.map(|bytes| bytes.max(needed).next_multiple_of(MAP_STEP));
    if alone && write_map.is_none() {
        // A write map takes more than its pages.
        data_file::give_back(&data_file, needed).map_err(|error| StoreError::io("shorten", &data, error))?;
    }
    // Closing this descriptor drops no lock, since this process does not have the lock file open yet.
    let lock_file = generation.open_allocated("lock.mdb", LOCK_BYTES)?;
    let queue =
        WriterQueue::new(&lock_file).map_err(|error| StoreError::io("map", generation.path.join("lock.mdb"), error))?;
    drop(lock_file);
    let bell = Bell::in_file(&bell).map_err(|error| StoreError::io("map", generation.path.join("bell"), error))?;
    let ballast = open_ballast(&generation, &bell)?;
    let mut opening = Opening {
        directory: generation.path.clone(),
        map_bytes: data_file::map_bytes(needed) as usize,
        readers: READERS,
        sync: durability == Durability::Sync,
        write_map: false,
        mode: generation.file_mode() as libc::mode_t,
    };
    if let Some(bytes) = write_map {
        if data_file::is_empty(&data_file) {
            // LMDB initialises only an empty file, so it writes its first pages before the rest is allocated.
            Environment::open(opening.clone())?.close();
        }
        data_file::allocate_map(&data_file, &data, bytes)?;
        opening = Opening { map_bytes: bytes as usize, write_map: true, ..opening };
    }
    let map_bytes = opening.map_bytes as u64;
    let environment = Environment::open(opening)?;
    let cgroups =
        if filesystem::is_in_memory(&generation.path) { Cgroups::of_this_process() } else { Cgroups::default() };
    if alone {
        bell.begin_anew();
    }
    let files = Files {
        environment,
        queue,
        bell: Arc::new(bell),
        ballast: Mutex::new(ballast),
        paths: PathCheck::new(&directory, &generation),
        guard,
        data: data_file,
        growth: Growth::new(cgroups),
        reclaim: Reclaim::default(),
        directory,
        generation,
        fork_generation: fork::generation(),
        write_map,
        wall_offset: AtomicU64::new(0),
        map_bytes,
        format: stamp.format,
    };
    // A reader slot that cannot be freed now is freed later.
    let _ = files.environment.clear_dead_readers();
    Ok((files, was_short))
}

/// Opens the ballast, as large as the file system has room for: at most a quarter of the free space.
fn open_ballast(generation: &Directory, bell: &Bell) -> Result<Ballast, StoreError> {
    let file = generation.open("ballast")?;
    let has = file.metadata().map_or(0, |metadata| metadata.len());
    let most = BALLAST_BYTES.min(file_size_limit().unwrap_or(u64::MAX));
    let bytes = most.min((generation.free_bytes()? + has) / 4) / 4096 * 4096;
    let mut ballast = Ballast { file, bytes: bytes.max(has) };
    if ballast.bytes > has {
        ballast.restore(bell);
    }
    Ok(ballast)
}
