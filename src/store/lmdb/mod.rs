//! Rows in LMDB, shared by the processes of one machine: in shared memory or in a directory.
//!
//! Files of a store:
//!
//! ```text
//! DIRECTORY/init      locked by the process that opens the store
//! DIRECTORY/guard     every process holds a shared lock on it, and on data.mdb: a process that gets both exclusively is alone
//! DIRECTORY/stamp     what made the files, and which generation is current (stamp.rs)
//! DIRECTORY/N/        the files of generation N:
//!     bell                 futex words to wake processes by (bell), allocated before it is mapped; made first and removed last
//!     data.mdb, lock.mdb   LMDB's; the lock file is allocated before it is mapped
//!     ballast              allocated space, released when a freeing operation cannot commit on a full file system
//! ```
//!
//! Invariants:
//!
//! * A process opens the files of a generation once ([`registry`]) and never closes them. A child of a fork opens its own.
//! * Live files are never replaced. A reset makes a new generation and retires the old bell; so does a process that finds a file
//!   removed or replaced by somebody else.
//! * Only files of this list are ever removed ([`ours`]).
//! * What is mapped is allocated first, and LMDB's map is at least four times the logical limit. So neither a full file system nor
//!   a full store can crash a process or keep it from freeing space.

mod cgroup;
mod choice;
mod data_file;
mod environment;
mod filesystem;
mod free_pages;
mod growth;
mod locks;
mod opening;
mod ours;
mod pages;
mod path_check;
mod place;
mod reclaim;
mod registry;
mod room;
mod stamp;
#[cfg(test)]
mod tests;
mod transaction;
mod writer_queue;

use std::cell::Cell;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::era;
use super::rows::{Change, JobError, KeyValue, Rows, RowsMut, Transactions, Verdict};
use crate::bell::Bell;
use crate::dsn::Place;
use crate::error::{Error, StoreError};
use crate::fault;
use crate::fork;
use crate::settings::{Limit, Settings};
use environment::Environment;
use growth::{FILE_LIMITS, Growth};
use path_check::PathCheck;
pub use place::FoundStore;
use place::{Directory, allocate};
use reclaim::Reclaim;
use room::Room;
use writer_queue::WriterQueue;

/// Space that is reserved for freeing operations on a full file system.
const BALLAST_BYTES: u64 = 1 << 20;

/// The step by which the ballast shrinks when the file system has no room for all of it.
const BALLAST_STEP: u64 = 64 << 10;

/// The number of commits by which a snapshot may lag before its reader counts as old.
const A_FEW: u64 = 16;

/// Rows in an LMDB environment.
pub(crate) struct Lmdb {
    place: Place,
    settings: Settings,
    limit_bytes: u64,
    /// What the limit follows from, for `doctor`.
    limit_bound: String,
    files: RwLock<Arc<Files>>,
}

/// Reads the text of a stamp.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_stamp(text: &[u8]) -> Result<(), StoreError> {
    stamp::Stamp::parse(text, std::path::Path::new("stamp")).map(|_| ())
}

/// Empties the store of a place, whatever state its files are in; processes that use it go on with the empty store.
pub(crate) fn reset(place: &Place, settings: &Settings) -> Result<(), Error> {
    let choice = choice::choose(place, settings)?;
    Ok(room::without_size_signal(|| opening::reset(choice))?)
}

/// Fails unless there is a store at a place; makes nothing.
pub(crate) fn require(place: &Place, settings: &Settings) -> Result<(), Error> {
    choice::require(place, settings)
}

/// The shared-memory stores of this machine.
pub(crate) fn find() -> Vec<FoundStore> {
    place::find()
}

/// The open files of one generation.
struct Files {
    environment: Environment,
    queue: WriterQueue,
    bell: Arc<Bell>,
    ballast: Mutex<Ballast>,
    /// Held for its shared lock.
    guard: File,
    /// Held for its shared lock too: it tells that the store is open even when the guard has been removed.
    data: File,
    growth: Growth,
    reclaim: Reclaim,
    directory: Directory,
    /// The generation's directory.
    generation: Directory,
    paths: PathCheck,
    fork_generation: u64,
    /// The length of the map that pages are written through, in bytes; `None` when they are written with calls.
    write_map: Option<u64>,
    /// The offset from the boot clock to the wall clock that the rows hold.
    wall_offset: AtomicU64,
    /// The length of the map, in bytes.
    map_bytes: u64,
    /// The format that the stamp names.
    format: u32,
}

struct Ballast {
    file: File,
    bytes: u64,
}

impl Lmdb {
    /// Opens the store of a place, and makes it when it does not exist.
    pub(crate) fn open(place: &Place, settings: &Settings) -> Result<Self, Error> {
        let files = registry::open(place, settings)?;
        let wanted = settings.limit(Limit::StoreBytes);
        let mut limit = (wanted, "max_store_bytes".to_owned());
        if files.map_bytes / FILE_LIMITS < wanted {
            limit = (files.map_bytes / FILE_LIMITS, format!("a quarter of the map of {} bytes", files.map_bytes));
        }
        if files.write_map.is_none() {
            let room = files.whole_room()?;
            if room.bytes / 2 < limit.0 {
                limit = (room.bytes / 2, format!("half of what is left by {}", room.bound));
            }
        }
        let (limit_bytes, limit_bound) = limit;
        let files = RwLock::new(files);
        Ok(Self { place: place.clone(), settings: settings.clone(), limit_bytes, limit_bound, files })
    }

    /// The open files of this process.
    fn files(&self) -> Result<Arc<Files>, StoreError> {
        let files = self.files.read().clone();
        if files.fork_generation == fork::generation() { Ok(files) } else { self.reopen() }
    }

    /// Opens the store anew. The registry keeps the old files open, since closing them could drop locks of the new ones.
    fn reopen(&self) -> Result<Arc<Files>, StoreError> {
        let new = registry::open(&self.place, &self.settings).map_err(|error| match error {
            Error::Store(error) => error,
            other => StoreError::io("open", self.place_name(), std::io::Error::other(other)),
        })?;
        *self.files.write() = new.clone();
        Ok(new)
    }

    fn place_name(&self) -> PathBuf {
        match &self.place {
            Place::SharedMemory(name) => format!("shm://{name}").into(),
            Place::Directory(path) => path.clone(),
            Place::Memory | Place::Redis(_) => unreachable!("these have no files"),
        }
    }

    /// Completes the error of a full store with what is full: the store's limit, the map, or the file system.
    fn full(&self, files: &Files, error: StoreError) -> StoreError {
        let what = match error {
            StoreError::Full { used: used @ 1.., needed, .. } => {
                let is_own = self.limit_bytes == self.settings.limit(Limit::StoreBytes);
                let detail = if is_own { String::new() } else { format!(" (the limit is {})", self.limit_bound) };
                return StoreError::Full { used, limit: self.limit_bytes, needed, detail };
            }
            StoreError::Full { detail, .. } => detail.trim_matches([' ', '(', ')']).to_owned(),
            StoreError::FileTooLarge { .. } => {
                let limit = room::file_size_limit().unwrap_or_default();
                format!("RLIMIT_FSIZE lets this process write {limit} bytes of a file")
            }
            _ => match files.room_left() {
                Ok(room) => format!("{} is full", room.bound),
                Err(_) => "the file system is full".to_owned(),
            },
        };
        let used = files.environment.read().and_then(|transaction| transaction.used_bytes()).unwrap_or_default();
        // LMDB does not reuse the pages that an old snapshot shows.
        let reader = files.old_reader();
        let reader = reader.map_or(String::new(), |old| format!("; process {} keeps an old snapshot: end it", old.pid));
        let detail = format!(" ({what}{reader})");
        StoreError::Full { used, limit: self.limit_bytes, needed: 0, detail }
    }
}

impl Files {
    /// Begins a read transaction. The first one of a thread waits for the mutex of LMDB's reader table.
    fn begin_read(&self) -> Result<transaction::Transaction<'_>, StoreError> {
        thread_local! { static READ_LAST: Cell<usize> = const { Cell::new(0) }; }
        let this = std::ptr::from_ref(self) as usize;
        if READ_LAST.get() == this {
            return self.environment.read();
        }
        let begun = self.queue.counted(&self.bell, || self.environment.read());
        self.queue.wake(&self.bell);
        READ_LAST.set(this);
        begun
    }

    /// Waits until no other process writes.
    fn await_turn(&self) -> Result<(), StoreError> {
        let stalled = self.queue.await_turn(&self.bell, locks::OPENING_TIMEOUT);
        stalled.map_err(|stalled| StoreError::Stalled {
            path: self.directory.path.clone(),
            holder: stalled.holder,
            waited_ms: stalled.waited.as_millis() as u64,
        })
    }

    /// The room for all data of this store.
    fn whole_room(&self) -> Result<Room, StoreError> {
        let taken = self.data_bytes() + self.ballast.lock().bytes;
        Room::whole(&self.generation, &self.growth.cgroups, taken)
    }

    /// The room that is left.
    fn room_left(&self) -> Result<Room, StoreError> {
        let end = self.data.metadata().map_or(0, |metadata| metadata.len());
        Room::left(&self.generation, &self.growth.cgroups, end)
    }

    /// Writes the offset of the wall clock into the rows when somebody has set the clock. When that fails, on a full file system, the
    /// next opening or collection does it.
    fn note_wall_offset(&self) {
        let now = stamp::wall_offset();
        let has_moved = era::has_moved(self.wall_offset.load(Ordering::Relaxed), now);
        if has_moved && era::note_wall_offset(self, now).is_ok() {
            self.wall_offset.store(now, Ordering::Relaxed);
        }
    }

    /// Whether the paths still lead to these files, and the store has not moved to a new generation.
    fn is_current(&self) -> bool {
        !self.bell.is_retired() && self.paths.finds_the_same()
    }
}

impl Ballast {
    /// Releases the space. True when there was any.
    fn cut(&mut self, bell: &Bell) -> bool {
        bell.set_ballast_missing(true);
        let had = self.file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        had && self.file.set_len(0).is_ok()
    }

    /// Allocates as much of the space as the file system has. True when that is all of it.
    fn restore(&mut self, bell: &Bell) -> bool {
        let mut bytes = self.bytes;
        while bytes > 0 && allocate(&self.file, bytes).is_err() {
            // A failed allocation may have allocated a part.
            let _ = self.file.set_len(0);
            bytes = bytes.saturating_sub(BALLAST_STEP);
        }
        let whole = bytes == self.bytes;
        bell.set_ballast_missing(!whole);
        whole
    }
}

impl Files {
    /// Turns a write that failed for lack of space into ENOSPC: LMDB reports a short write as EIO.
    fn lack_of_space(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Io { action, path, source } if source.raw_os_error() == Some(libc::EIO) => {
                let full = self.room_left().is_ok_and(|room| room.bytes < BALLAST_STEP);
                let source = if full { std::io::Error::from_raw_os_error(libc::ENOSPC) } else { source };
                StoreError::Io { action, path, source }
            }
            error => error,
        }
    }

    fn commit(&self, transaction: transaction::Transaction<'_>) -> Result<(), StoreError> {
        if !self.growth.is_file_limited() {
            return transaction.commit();
        }
        room::without_size_signal(|| transaction.commit())
    }

    /// Refuses growth while the ballast is not whole: the released space is for freeing operations.
    fn may_grow(&self) -> Result<(), StoreError> {
        if !self.bell.is_ballast_missing() || self.ballast.lock().restore(&self.bell) {
            return Ok(());
        }
        Err(StoreError::io("write to", &self.generation.path, std::io::Error::from_raw_os_error(libc::ENOSPC)))
    }

    /// Refuses rows that were lost with the end of a data file that is now lengthened with zeros.
    fn check_rows(&self) -> Result<(), StoreError> {
        let lost =
            || StoreError::corrupt(&self.generation.path, "the end of its data file is missing; reset the store");
        let checked = self.read(|rows| {
            let mut ends_in_zeros = false;
            rows.scan(&[0], &mut |_, value| {
                // No text ends like this, and no record that is long enough for overflow pages.
                ends_in_zeros |= value.len() >= 1024 && value.ends_with(&[0; 64]);
                !ends_in_zeros
            })?;
            if ends_in_zeros || !crate::store::audit::contradictions(rows)?.is_empty() {
                return Err(lost());
            }
            Ok(())
        });
        checked.map_err(|error| match error {
            StoreError::Lmdb { .. } => lost(),
            error => error,
        })
    }
}

impl Transactions for Files {
    fn read<T, E: JobError>(&self, job: impl FnOnce(&dyn Rows) -> Result<T, E>) -> Result<T, E> {
        let transaction = self.begin_read()?;
        fault::point("in-read");
        job(&transaction)
    }

    fn write<T, E: JobError>(&self, job: impl FnMut(&mut dyn RowsMut) -> Result<Verdict<T>, E>) -> Result<T, E> {
        self.write_within(u64::MAX, job)
    }
}

impl Files {
    /// Writes to a store that may use `limit` bytes.
    fn write_within<T, E: JobError>(
        &self,
        limit: u64,
        mut job: impl FnMut(&mut dyn RowsMut) -> Result<Verdict<T>, E>,
    ) -> Result<T, E> {
        // The state after the last commit, if that commit freed space and is due to give some back.
        let freed = Cell::new(None);
        let mut try_once = || -> (Result<T, E>, bool) {
            if let Err(error) = self.await_turn() {
                return (Err(error.into()), false);
            }
            let mut transaction = match self.queue.counted(&self.bell, || self.environment.write()) {
                Ok(transaction) => transaction,
                Err(error) => return (Err(error.into()), false),
            };
            let before = transaction.end_bytes();
            match job(&mut transaction) {
                Ok(Verdict::Abandon(value)) => (Ok(value), true),
                Ok(Verdict::Commit { value, change }) => {
                    let frees = change != Change::Adds;
                    // Reading what is used costs instructions, so only the commits that may give space back do so.
                    if change == Change::Frees && reclaim::is_due(transaction.number()) {
                        freed.set(transaction.used_bytes().ok().map(|used| (used, before)));
                    }
                    let committed = if frees { Ok(()) } else { self.may_grow() };
                    let committed = committed
                        .and_then(|()| self.may_take(&transaction, before, change, limit))
                        .and_then(|()| self.commit(transaction));
                    (committed.map(|()| value).map_err(|error| self.lack_of_space(error).into()), frees)
                }
                Err(error) => (Err(error), false),
            }
        };
        let mut once = || {
            let result = try_once();
            self.queue.wake(&self.bell);
            result
        };
        let (result, frees) = once();
        let result = match result.map_err(E::into_store_error) {
            // An operation that only frees space must not fail for lack of space: the ballast gives it room.
            Err(Ok(error)) if frees && error.is_out_of_space() && self.ballast.lock().cut(&self.bell) => {
                let (result, _) = once();
                self.ballast.lock().restore(&self.bell);
                result
            }
            Err(Ok(error)) => Err(error.into()),
            Err(Err(error)) => Err(error),
            Ok(value) => Ok(value),
        };
        if let (Ok(_), Some((used, end))) = (&result, freed.get()) {
            self.give_back_now_and_then(used, end);
        }
        result
    }
}

impl Transactions for Lmdb {
    fn read<T, E: JobError>(&self, job: impl FnOnce(&dyn Rows) -> Result<T, E>) -> Result<T, E> {
        self.files()?.read(job)
    }

    fn write<T, E: JobError>(&self, job: impl FnMut(&mut dyn RowsMut) -> Result<Verdict<T>, E>) -> Result<T, E> {
        let files = self.files()?;
        files.write_within(self.limit_bytes, job).map_err(|error: E| match error.into_store_error() {
            Ok(error) if error.is_out_of_space() => self.full(&files, error).into(),
            Ok(error) => error.into(),
            Err(error) => error,
        })
    }
}

impl KeyValue for Lmdb {
    fn is_timed(&self) -> bool {
        self.files.read().format >= stamp::TIMED_FORMAT
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn bell(&self) -> Arc<Bell> {
        match self.files() {
            Ok(files) => files.bell.clone(),
            // The bell from before the fork maps the same file.
            Err(_) => self.files.read().bell.clone(),
        }
    }

    fn refresh(&self) -> Result<(), StoreError> {
        let files = self.files()?;
        files.growth.read_limits();
        if !files.is_current() {
            self.reopen()?;
        }
        Ok(())
    }

    fn maintain(&self) -> Result<(), StoreError> {
        let files = self.files()?;
        files.environment.clear_dead_readers()?;
        if files.bell.is_ballast_missing() {
            files.ballast.lock().restore(&files.bell);
        }
        files.note_wall_offset();
        files.give_back_all()
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let Ok(files) = self.files() else { return vec![] };
        let mut shown = vec![
            ("place", files.directory.path.display().to_string()),
            ("generation", files.generation.path.display().to_string()),
            ("data_bytes", files.data_bytes().to_string()),
            ("writes", if files.write_map.is_some() { "through the map".to_owned() } else { "with calls".to_owned() }),
            ("limit_from", self.limit_bound.clone()),
            ("readers", files.environment.readers().len().to_string()),
        ];
        if let Ok(room) = files.room_left() {
            shown.extend([("free_bytes", room.bytes.to_string()), ("free_bound", room.bound.to_string())]);
        }
        if let Some(reader) = files.old_reader() {
            shown.push(("old_reader", reader.pid.to_string()));
        }
        shown
    }
}
