//! What a store counts, over all processes and for as long as its files live.
//!
//! Counters are added to without a transaction: they may miss what a killed process was about to count, and nothing depends
//! on them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A counter of the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Counter { $(#[doc = $doc] $variant,)* }

        impl Counter {
            /// All counters with the names they are shown by. New ones go to the end: their places are in shared files.
            pub(crate) const ALL: &'static [(&'static str, Counter)] = &[$(($name, Counter::$variant),)*];
        }
    };
}

counters! {
    LateUnknown "late_unknown" "Responses to requests that never were.";
    LateFinished "late_finished" "Responses to requests whose answer was claimed already.";
    LateTimedOut "late_timed_out" "Responses that came after the deadline.";
    LateAlreadyAnswered "late_already_answered" "Second responses to one request.";
    LateCancelled "late_cancelled" "Responses to requests the server had cancelled.";
    LateAbandoned "late_abandoned" "Responses to requests whose owner had ended.";
    SessionsCreated "sessions_created" "Sessions created.";
    SessionsDestroyed "sessions_destroyed" "Sessions destroyed by request.";
    SessionsExpired "sessions_expired" "Expired sessions collected.";
    SessionsEvicted "sessions_evicted" "Sessions that gave way at the session limit.";
    OwnersReleased "owners_released" "Owners released because they were dead.";
    LimitsHit "limits_hit" "Operations refused by a limit.";
    StoreFull "store_full" "Operations refused because the store was full.";
    Delivered "responses_delivered" "Responses delivered to their pending request.";
    Waits "waits" "Sleeps of waiters.";
    WaitingRefused "waiting_refused" "Questions refused because `max_waiting` exchanges waited already.";
}

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
