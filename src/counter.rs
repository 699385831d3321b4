//! What a store counts, by name: [`crate::bell`] keeps the numbers, and operations say what to count.

macro_rules! counters {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A counter of the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $(#[doc = $doc] $variant,)* }

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
