//! The bound on a store's growth. Operations that add are refused before the data file, the file system, a memory cgroup or
//! `RLIMIT_FSIZE` is full, and early enough that freeing operations still have room.
//!
//! LMDB does not reuse pages that a snapshot shows, so one stopped reader would let the file grow with every change. The file may
//! therefore take at most [`FILE_LIMITS`] times the store's limit. The last of these parts is for freeing operations, which need
//! new pages for the pages that they change.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::cgroup::Cgroups;
use super::environment::Reader;
use super::room::{Room, file_size_limit, too_large};
use super::transaction::Transaction;
use super::{A_FEW, Files};
use crate::error::StoreError;
use crate::store::rows::Change;

/// The most that a data file takes, as a multiple of the store's limit.
pub(super) const FILE_LIMITS: u64 = 4;
/// The number of written bytes after which the memory cgroups are read again.
const CGROUP_CHECK_BYTES: u64 = 256 << 10;
/// The reserve below `RLIMIT_FSIZE` for freeing operations: at most this, and at most a quarter of the limit.
const FILE_RESERVE: u64 = 1 << 20;

/// What a process knows of the limits on its store.
#[derive(Debug, Default)]
pub(super) struct Growth {
    pub(super) cgroups: Cgroups,
    /// Bytes written since the cgroups were last read.
    written: AtomicU64,
    /// Whether `RLIMIT_FSIZE` was set when a request of this process last began.
    is_file_limited: AtomicBool,
}

impl Growth {
    pub(super) fn new(cgroups: Cgroups) -> Self {
        let growth = Self { cgroups, ..Self::default() };
        growth.read_limits();
        growth
    }

    /// Reads `RLIMIT_FSIZE`. Each request does so, since a process can change its own limit.
    pub(super) fn read_limits(&self) {
        self.is_file_limited.store(file_size_limit().is_some(), Ordering::Relaxed);
    }

    pub(super) fn is_file_limited(&self) -> bool {
        self.is_file_limited.load(Ordering::Relaxed)
    }
}

impl Files {
    /// Refuses a transaction that lengthens the data file from `before` bytes past its bound, or that takes the last memory of a
    /// cgroup. `limit` is the store's limit in bytes. Freeing transactions are never refused.
    pub(super) fn may_take(
        &self,
        transaction: &Transaction<'_>,
        before: u64,
        change: Change,
        limit: u64,
    ) -> Result<(), StoreError> {
        if change == Change::Frees {
            return Ok(());
        }
        let end = transaction.end_bytes();
        if end > before {
            let most = limit.saturating_mul(FILE_LIMITS - 1);
            if end > most {
                let detail = format!(" (its data file has {before} bytes and is full with {most})");
                return Err(StoreError::Full { used: 0, limit, needed: 0, detail });
            }
            if let Some(limit) = file_size_limit()
                && end > limit - FILE_RESERVE.min(limit / 4)
            {
                return Err(StoreError::io("lengthen", &self.generation.path, too_large()));
            }
        }
        let written = self.growth.written.fetch_add(transaction.written_bytes(), Ordering::Relaxed);
        if written + transaction.written_bytes() < CGROUP_CHECK_BYTES {
            return Ok(());
        }
        if let Some(fullest) = self.growth.cgroups.fullest() {
            let room = Room::of_cgroup(&fullest);
            if room.bytes < 2 * transaction.written_bytes() + CGROUP_CHECK_BYTES {
                let error = std::io::Error::from_raw_os_error(libc::ENOSPC);
                return Err(StoreError::io("take memory for", &self.generation.path, error));
            }
        }
        self.growth.written.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The reader with the oldest snapshot, if that snapshot lags by more than a short read does.
    pub(super) fn old_reader(&self) -> Option<Reader> {
        let number = self.environment.read().ok()?.number();
        let is_old = |reader: &Reader| reader.transaction.is_some_and(|of| of + A_FEW < number);
        self.environment.readers().into_iter().filter(is_old).min_by_key(|reader| reader.transaction)
    }
}
