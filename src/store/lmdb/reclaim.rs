//! Free pages become holes of the file.
//!
//! LMDB never shortens its file: it keeps freed pages to reuse them. So the space that a burst or a stopped reader took would stay
//! taken. A free page that no snapshot shows is punched out of the file: a hole takes no space, and LMDB fills it when it writes
//! the page again. Invariant: the punching process excludes writers and reads the list of free pages that the last commit left,
//! which are the pages that LMDB itself would reuse. It excludes writers for at most [`TURN`] at a time.
//!
//! An old snapshot blocks more pages than it shows: every page that was freed since. Pages that did not exist when the snapshot was
//! taken are punched too, so what is freed under a stopped reader takes no space.
//!
//! A write map keeps its space: a write to a hole on a full file system would end the process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Files;
use super::free_pages::Horizon;
use crate::error::StoreError;
use crate::store::rows::{Change, Rows, Transactions, Verdict};

/// The longest time for which writers are excluded.
const TURN: Duration = Duration::from_millis(2);
/// The most turns of one collection; writers run between two turns.
const ROUNDS: usize = 500;
/// The number of freeing commits between two checks whether space can be given back.
const EVERY: u64 = 64;
/// What a store keeps beside twice the bytes in use, for the next writes.
const KEPT_BYTES: u64 = 1 << 20;

/// The progress of punching.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    /// The page to continue at.
    next: AtomicU64,
    /// A commit after the oldest snapshot, once an old snapshot was seen.
    horizon: Mutex<Option<Horizon>>,
    /// Whether the file system has no holes.
    is_impossible: AtomicBool,
}

/// Whether space may be given back after the commit with this number: after one of [`EVERY`].
pub(super) fn is_due(number: u64) -> bool {
    number.is_multiple_of(EVERY)
}

impl Files {
    /// Bytes that the data file takes of the file system.
    pub(super) fn data_bytes(&self) -> u64 {
        const BLOCK: u64 = 512;
        self.data.metadata().map_or(0, |metadata| metadata.blocks() * BLOCK)
    }

    /// Called after a freeing commit that [`is_due`]: gives back a little, if the file that ends at `end` takes much more than is used.
    pub(super) fn give_back_now_and_then(&self, used: u64, end: u64) {
        if self.is_worth_it(used, end) {
            // The next turn tries again what fails now.
            let _ = self.give_back_once();
        }
    }

    /// Gives back all that can be given back.
    pub(super) fn give_back_all(&self) -> Result<(), StoreError> {
        let (used, end) = {
            let transaction = self.begin_read()?;
            (transaction.used_bytes()?, transaction.end_bytes())
        };
        if !self.is_worth_it(used, end) {
            return Ok(());
        }
        self.give_back_in_turns()?;
        if self.is_worth_it(used, end) {
            // The pages that the last commit freed are still those of the commit before, to which LMDB returns where a crash
            // of the machine tore the last one. One more commit makes them free for good.
            self.commit_nothing()?;
            self.give_back_in_turns()?;
        }
        Ok(())
    }

    fn give_back_in_turns(&self) -> Result<(), StoreError> {
        self.reclaim.next.store(0, Ordering::Relaxed);
        for _ in 0..ROUNDS {
            if !self.give_back_once()? {
                break;
            }
        }
        Ok(())
    }

    /// Makes a commit that leaves every row as it was: a row is made and removed within it.
    fn commit_nothing(&self) -> Result<(), StoreError> {
        const NO_ROW: [u8; 1] = [u8::MAX];
        self.write(|rows| {
            rows.put(&NO_ROW, &[])?;
            rows.delete(&NO_ROW)?;
            Ok(Verdict::Commit { value: (), change: Change::Frees })
        })
    }

    fn is_worth_it(&self, used: u64, end: u64) -> bool {
        let kept = 2 * used + KEPT_BYTES;
        self.write_map.is_none()
            && end > kept
            && !self.reclaim.is_impossible.load(Ordering::Relaxed)
            && self.data_bytes() > kept
    }

    /// A commit that is younger than the oldest snapshot: the last one, unless an earlier one is known.
    fn horizon(&self) -> Option<Horizon> {
        let mut horizon = self.reclaim.horizon.lock();
        if let Some(oldest) = self.old_reader().and_then(|reader| reader.transaction)
            && horizon.is_none_or(|horizon| horizon.number <= oldest)
        {
            *horizon = self.environment.read().ok().map(|snapshot| snapshot.horizon());
        }
        *horizon
    }

    /// Punches holes for one turn. True when there may be more to punch.
    fn give_back_once(&self) -> Result<bool, StoreError> {
        let horizon = self.horizon();
        self.await_turn()?;
        let next = self.reclaim.next.load(Ordering::Relaxed);
        let done = self.queue.counted(&self.bell, || {
            let make = |pages: &[u64], page_size| make_holes(&self.data, pages, page_size, next);
            self.environment.with_free_pages(horizon, make)
        });
        self.queue.wake(&self.bell);
        match done? {
            Ok(next) => {
                self.reclaim.next.store(next.unwrap_or(0), Ordering::Relaxed);
                Ok(next.is_some())
            }
            Err(error) => {
                self.reclaim.is_impossible.store(true, Ordering::Relaxed);
                Err(StoreError::io("make holes in", self.generation.path.join("data.mdb"), error))
            }
        }
    }
}

/// Punches holes for `pages`, in rising order, from `first` on, for one turn. Returns the page to continue at, or `None` after the
/// last one.
#[cfg(target_os = "linux")]
fn make_holes(file: &File, pages: &[u64], page_size: u64, first: u64) -> io::Result<Option<u64>> {
    let since = Instant::now();
    let mut rest = &pages[pages.partition_point(|&page| page < first)..];
    while let Some(&page) = rest.first() {
        if since.elapsed() > TURN {
            return Ok(Some(page));
        }
        let together = rest.iter().zip(page..).take_while(|(one, expected)| *one == expected).count();
        let (from, bytes) = (page * page_size, together as u64 * page_size);
        if !is_hole(file, from, bytes) {
            let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: the descriptor is open; the call touches no memory of this process.
            let made = unsafe { libc::fallocate(file.as_raw_fd(), flags, from as libc::off_t, bytes as libc::off_t) };
            if made != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        rest = &rest[together..];
    }
    Ok(None)
}

/// Punching is Linux only.
#[cfg(not(target_os = "linux"))]
fn make_holes(_file: &File, _pages: &[u64], _page_size: u64, _first: u64) -> io::Result<Option<u64>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this range of a file is a hole already.
#[cfg(target_os = "linux")]
fn is_hole(file: &File, from: u64, bytes: u64) -> bool {
    // SAFETY: the descriptor is open; nobody reads or writes at its position.
    let data = unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, libc::SEEK_DATA) };
    let ends_in_hole = data < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
    ends_in_hole || data >= (from + bytes) as libc::off_t
}
