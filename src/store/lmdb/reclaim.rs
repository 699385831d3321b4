//! Giving back the space of free pages.
//!
//! LMDB never shortens its file: pages that are freed wait to be used again. What a burst, or a reader that was stopped, has made
//! the file take stays taken. So pages that are free and that no snapshot shows are made holes of the file, which take no space
//! and are filled when LMDB writes them again. Invariant: whoever makes holes keeps writers out, and looks at the list of free
//! pages that the last commit left; LMDB itself would use those pages again, and for the same reason. Nobody is kept out
//! for longer than [`A_WHILE`] at a time.
//!
//! A snapshot that is old keeps more pages from being used again than it shows: all that were freed since. Those that did not exist
//! when it was taken are made holes, too. So whatever is freed under a stopped reader takes no space.
//!
//! A map that pages are written through keeps its space: writing to a hole on a full file system would end the process.

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
use crate::store::rows::Rows;

/// How long writers are kept out.
const A_WHILE: Duration = Duration::from_millis(2);
/// How often they are kept out for one look, with a turn for them in between.
const ROUNDS: usize = 500;
/// After how many commits that free there is a look whether space can be given back.
const EVERY: u64 = 64;
/// What a store keeps besides twice the bytes in use, to be written again soon.
const KEPT_BYTES: u64 = 1 << 20;

/// How far giving back has come.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    /// The page to go on from.
    next: AtomicU64,
    /// A commit after the oldest snapshot, since there has been an old one.
    horizon: Mutex<Option<Horizon>>,
    /// Whether the file system has no holes.
    is_impossible: AtomicBool,
}

impl Files {
    /// Bytes that the data file takes of the file system.
    pub(super) fn data_bytes(&self) -> u64 {
        const BLOCK: u64 = 512;
        self.data.metadata().map_or(0, |metadata| metadata.blocks() * BLOCK)
    }

    /// After every so many commits that free: gives back a little, if a file that ends at `end` takes much more than is used.
    pub(super) fn give_back_now_and_then(&self, number: u64, used: u64, end: u64) {
        if number.is_multiple_of(EVERY) && self.is_worth_it(used, end) {
            // What cannot be given back now is tried again.
            let _ = self.give_back_once();
        }
    }

    /// Gives back what can be given back.
    pub(super) fn give_back_all(&self) -> Result<(), StoreError> {
        let (used, end) = {
            let transaction = self.begin_read()?;
            (transaction.used_bytes()?, transaction.end_bytes())
        };
        if !self.is_worth_it(used, end) {
            return Ok(());
        }
        self.reclaim.next.store(0, Ordering::Relaxed);
        for _ in 0..ROUNDS {
            if !self.give_back_once()? {
                break;
            }
        }
        Ok(())
    }

    fn is_worth_it(&self, used: u64, end: u64) -> bool {
        let kept = 2 * used + KEPT_BYTES;
        self.write_map.is_none()
            && end > kept
            && !self.reclaim.is_impossible.load(Ordering::Relaxed)
            && self.data_bytes() > kept
    }

    /// A commit that is younger than the oldest snapshot: this one, unless an earlier one is.
    fn horizon(&self) -> Option<Horizon> {
        let mut horizon = self.reclaim.horizon.lock();
        if let Some(oldest) = self.old_reader().and_then(|reader| reader.transaction)
            && horizon.is_none_or(|horizon| horizon.number <= oldest)
        {
            *horizon = self.environment.read().ok().map(|snapshot| snapshot.horizon());
        }
        *horizon
    }

    /// Makes holes for a while. Whether there may be more to make.
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

/// Makes holes of pages, whose numbers rise, from `first` on; for a while. Where to go on, unless that was all.
#[cfg(target_os = "linux")]
fn make_holes(file: &File, pages: &[u64], page_size: u64, first: u64) -> io::Result<Option<u64>> {
    let since = Instant::now();
    let mut rest = &pages[pages.partition_point(|&page| page < first)..];
    while let Some(&page) = rest.first() {
        if since.elapsed() > A_WHILE {
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

/// Other systems have other ways, or none.
#[cfg(not(target_os = "linux"))]
fn make_holes(_file: &File, _pages: &[u64], _page_size: u64, _first: u64) -> io::Result<Option<u64>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether so many bytes of a file are a hole already.
#[cfg(target_os = "linux")]
fn is_hole(file: &File, from: u64, bytes: u64) -> bool {
    // SAFETY: the descriptor is open; nobody reads or writes at its position.
    let data = unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, libc::SEEK_DATA) };
    let ends_in_hole = data < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
    ends_in_hole || data >= (from + bytes) as libc::off_t
}
