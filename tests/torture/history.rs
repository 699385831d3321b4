//! What was done, when, and what came of it: one file for each process, one line for each beginning and each end, written as it
//! happens. A line is one `write`, so it survives the death of its process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
pub type Nanos = u64;

pub fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// An operation. Owners are tokens, messages and payloads are numbers that are used once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    // One attribute.
    Get(String),
    Set(String, u64),
    CompareAndSet(String, Option<u64>, u64),
    TakeAttribute(String),
    // Owners and their messages.
    Attach { stream: bool },
    Detach(String),
    Enqueue(String, u64),
    Take(String, usize),
    Peek(String, usize),
    Acknowledge(String, u64),
    Broadcast(u64),
    // Requests of the server.
    NextId,
    Send { owner: String, timeout_ms: u64 },
    Deliver(i64, u64),
    Claim(String, i64),
    ClaimAny(String),
    ResolveTimeouts(String),
    CancelPending(String, i64),
    // Requests of the client.
    Begin { owner: String, id: i64, reject: bool },
    Finish(String, i64),
    CancelRequest(i64),
    // A session whose id is used again and again; each incarnation has a name of its own.
    Create(u64),
    Write(u64, u64),
    Read(u64),
    Destroy(u64),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Done,
    Whether(bool),
    Value(Option<u64>),
    Owner(String),
    Number(u64),
    Messages(Vec<(u64, Message)>),
    Detached {
        dropped: u64,
    },
    Id(i64),
    Ids(Vec<i64>),
    Delivered,
    Late(String),
    Claimed(Claimed),
    Resolved(Option<(i64, Claimed)>),
    Cancellation(String),
    Cancelled(String),
    Unknown,
    Ambiguous,
    SessionNotFound,
    OwnerExpired,
    /// A limit: nothing was done.
    Refused,
    /// Nothing in this run may fail for any other reason.
    Failed(String),
}

/// A message that was taken or peeked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Message {
    Direct(u64),
    Broadcast(u64),
    Request(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claimed {
    Answered(u64),
    Waiting,
    TimedOut,
    Cancelled,
    NotOwner,
    Unknown,
}

/// One operation of a history. Without an outcome its process died under way: it happened or not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    pub process: u32,
    pub session: String,
    pub op: Op,
    pub start: Nanos,
    pub end: Nanos,
    pub outcome: Option<Outcome>,
}

/// When a process may have died at the earliest, and when it was certainly dead.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Death {
    pub earliest: Nanos,
    pub latest: Nanos,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub calls: Vec<Call>,
    pub deaths: BTreeMap<u32, Death>,
}

#[derive(Serialize, Deserialize)]
enum Line {
    Begin(u64, String, Op, Nanos),
    End(u64, Outcome, Nanos),
}

/// Writes the history of one process; its threads share it.
pub struct Log {
    file: File,
    next: AtomicU64,
}

impl Log {
    pub fn new(path: &Path) -> Self {
        let file = File::options().create(true).append(true).open(path).expect("a log");
        Self { file, next: AtomicU64::new(0) }
    }

    /// Runs an operation and notes when it began and ended.
    pub fn record(&self, session: &str, op: Op, run: impl FnOnce() -> Outcome) -> Outcome {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(&Line::Begin(number, session.to_owned(), op, now()));
        let outcome = run();
        self.write(&Line::End(number, outcome.clone(), now()));
        outcome
    }

    fn write(&self, line: &Line) {
        let mut text = serde_json::to_string(line).expect("a line is JSON");
        text.push('\n');
        (&self.file).write_all(text.as_bytes()).expect("the log can be written");
    }
}

impl History {
    /// Takes in what one process wrote; `gone` is when it was seen to be dead.
    pub fn read(&mut self, process: u32, path: &Path, gone: Nanos) {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut open: BTreeMap<u64, Call> = BTreeMap::new();
        let mut earliest = 0;
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str(line).expect("a line of a log") {
                Line::Begin(number, session, op, start) => {
                    earliest = earliest.max(start);
                    open.insert(number, Call { process, session, op, start, end: gone, outcome: None });
                }
                Line::End(number, outcome, end) => {
                    earliest = earliest.max(end);
                    let call = open.remove(&number).expect("what ends has begun");
                    self.calls.push(Call { end, outcome: Some(outcome), ..call });
                }
            }
        }
        self.calls.extend(open.into_values());
        self.deaths.insert(process, Death { earliest, latest: gone });
    }
}
