//! How large a store may become: what adds is refused before the data file, the file system, a memory cgroup or RLIMIT_FSIZE
//! ends it, and early enough that what frees has room.
//!
//! Pages that a snapshot shows are not used again. One reader that is stopped would let the file grow with every change. So the
//! file has at most [`FILE_LIMITS`] times the bytes that the store may use: the last of these parts is for what frees, which
//! needs new pages for the pages it changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::cgroup::Cgroups;
use super::environment::Reader;
use super::room::{Room, file_size_limit, too_large};
use super::transaction::Transaction;
use super::{A_FEW, Files};
use crate::error::StoreError;
use crate::store::rows::Change;

/// How many times the bytes that a store may use its data file may take.
pub(super) const FILE_LIMITS: u64 = 4;
/// After so many bytes that were written there is a look at what the memory cgroups leave.
const BETWEEN_LOOKS: u64 = 256 << 10;
/// What is left below RLIMIT_FSIZE for what frees: at most so much, and at most a quarter.
const FILE_RESERVE: u64 = 1 << 20;

/// What a process knows of the room for its store.
#[derive(Debug, Default)]
pub(super) struct Growth {
    pub(super) cgroups: Cgroups,
    /// Bytes that were written since the last look at the cgroups.
    written: AtomicU64,
    /// Whether RLIMIT_FSIZE was set when a request of this process last began.
    is_file_limited: AtomicBool,
}

impl Growth {
    pub(super) fn new(cgroups: Cgroups) -> Self {
        let growth = Self { cgroups, ..Self::default() };
        growth.look();
        growth
    }

    /// Looks whether files are limited: once a request, since a process can change its own limit.
    pub(super) fn look(&self) {
        self.is_file_limited.store(file_size_limit().is_some(), Ordering::Relaxed);
    }

    pub(super) fn is_file_limited(&self) -> bool {
        self.is_file_limited.load(Ordering::Relaxed)
    }
}

impl Files {
    /// Refuses a transaction that lengthens the data file from `before` bytes beyond what it may have, or takes what others need.
    /// `limit` is how many bytes the store may use. What frees is not refused.
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
        if written + transaction.written_bytes() < BETWEEN_LOOKS {
            return Ok(());
        }
        if let Some(fullest) = self.growth.cgroups.fullest() {
            let room = Room::of_cgroup(&fullest);
            if room.bytes < 2 * transaction.written_bytes() + BETWEEN_LOOKS {
                let error = std::io::Error::from_raw_os_error(libc::ENOSPC);
                return Err(StoreError::io("take memory for", &self.generation.path, error));
            }
        }
        self.growth.written.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The reader whose snapshot keeps most pages from being used again, if it is older than that of a short look.
    pub(super) fn old_reader(&self) -> Option<Reader> {
        let number = self.environment.read().ok()?.number();
        let is_old = |reader: &Reader| reader.transaction.is_some_and(|of| of + A_FEW < number);
        self.environment.readers().into_iter().filter(is_old).min_by_key(|reader| reader.transaction)
    }
}
