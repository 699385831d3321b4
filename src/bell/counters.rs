//! What a store counts, over all processes and for as long as its files live.
//!
//! Counters are added to without a transaction: they may miss what a killed process was about to count, and nothing depends
//! on them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counter::Counter;

/// Room for counters to come, so that the file's layout stays.
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
    /// Adds to a counter.
    pub(crate) fn add(&self, counter: Counter, by: u64) {
        self.0[counter as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// A counter's value, which is 0 then.
    pub(crate) fn take(&self, counter: Counter) -> u64 {
        self.0[counter as usize].swap(0, Ordering::Relaxed)
    }

    /// A counter's value.
    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }
}
