//! The statistics of a store: counters that all processes share and that last as long as the store's files.
//!
//! A counter changes outside of transactions, so it may miss an event if the process is killed. No operation depends on a counter.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counter::Counter;

/// The number of counters in the file layout, with space for future ones.
const ROOM: usize = 64;

/// The counters' values.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Counters([AtomicU64; ROOM]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; ROOM])
    }
}

impl Counters {
    /// Adds `by` to a counter.
    pub(crate) fn add(&self, counter: Counter, by: u64) {
        self.0[counter as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Returns a counter's value and sets it to 0.
    pub(crate) fn take(&self, counter: Counter) -> u64 {
        self.0[counter as usize].swap(0, Ordering::Relaxed)
    }

    /// Returns a counter's value.
    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }
}
