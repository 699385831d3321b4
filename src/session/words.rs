//! The words that all modules of the session share.

use crate::counter::Counter;

/// How an owner delivers messages to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// By a stream: it also takes broadcasts.
    Stream,
    /// By one JSON reply.
    Reply,
}

/// Why a response was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateReason {
    /// No request of this session has that id.
    Unknown,
    /// The request's answer was claimed.
    Finished,
    /// The request's deadline had passed.
    TimedOut,
    /// The request has an answer.
    AlreadyAnswered,
    /// The server cancelled the request.
    Cancelled,
    /// The request's owner ended.
    Abandoned,
}

impl LateReason {
    pub(crate) const COUNT: usize = 6;
    pub(crate) const ALL: [LateReason; Self::COUNT] = [
        LateReason::Unknown,
        LateReason::Finished,
        LateReason::TimedOut,
        LateReason::AlreadyAnswered,
        LateReason::Cancelled,
        LateReason::Abandoned,
    ];

    /// Where a response that is late for this reason is counted.
    pub(crate) fn counter(self) -> Counter {
        match self {
            LateReason::Unknown => Counter::LateUnknown,
            LateReason::Finished => Counter::LateFinished,
            LateReason::TimedOut => Counter::LateTimedOut,
            LateReason::AlreadyAnswered => Counter::LateAlreadyAnswered,
            LateReason::Cancelled => Counter::LateCancelled,
            LateReason::Abandoned => Counter::LateAbandoned,
        }
    }

    /// The reason's name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            LateReason::Unknown => "unknown",
            LateReason::Finished => "finished",
            LateReason::TimedOut => "timed_out",
            LateReason::AlreadyAnswered => "already_answered",
            LateReason::Cancelled => "cancelled",
            LateReason::Abandoned => "abandoned",
        }
    }
}
