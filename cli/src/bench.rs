//! `bench`: measures this machine with a private store, which is removed at the end.
//!
//! Two values are measured: the time of one round of operations (register and queue a request, take its message, deliver and claim
//! its answer), and the time from the delivery of an answer until the waiting process continues.

use std::ffi::CString;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_state::{BootClock, Claim, Clock, Delivery, Engine, Interest, NewSession, OwnerKind, Session};
use serde_json::json;

use crate::args::BenchOptions;
use crate::failure::Failure;
use crate::output;
use crate::terminal::{Bar, Signals, Woken};

const REQUEST: &str = r#"{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}}"#;

pub(crate) fn run(options: &BenchOptions) -> Result<(), Failure> {
    let time = Duration::from_millis(options.time);
    let shared = Path::new("/dev/shm");
    let parent = match &options.directory {
        Some(directory) => directory
            .canonicalize()
            .map_err(|error| Failure::usage(format!("--directory {}: {error}", directory.display())))?,
        None if shared.is_dir() => shared.to_owned(),
        None => std::env::temp_dir().canonicalize()?,
    };
    // A signal ends the command between two measurements, so that the store is removed.
    let signals = Signals::hold();
    let directory = PrivateDirectory::new(&parent)?;
    let dsn = format!("file://{}/store?durability=none&max_store_bytes=64M", directory.0.display());
    let engine = Engine::open(&dsn)?;
    let bar = Bar::new();
    let rounds = rounds(&engine, time, &signals, |done| bar.set(done / 2.0, "rounds in one process"))?;
    let wakes = wakes(&engine, time, &signals, |done| bar.set(0.5 + done / 2.0, "waking another process"))?;
    drop(bar);
    let (p50, p99) = (percentile(&wakes, 50), percentile(&wakes, 99));
    if options.json {
        let wake = json!({ "count": wakes.len(), "p50_us": p50, "p99_us": p99 });
        let report = json!({ "round_us": rounds.1, "rounds": rounds.0, "wake": wake, "directory": parent });
        output::line(format_args!("{report:#}"))
    } else {
        output::text(&format!(
            "a round of register and queue, take, deliver, claim  {:8.1} µs  ({} rounds)\n\
             answer delivered until the waiting process goes on   {p50:8} µs  at the median, {p99} µs at 99 % ({} times)\n",
            rounds.1,
            rounds.0,
            wakes.len()
        ))
    }
}

/// Returns the number of rounds, and the microseconds of each.
fn rounds(engine: &Engine, time: Duration, signals: &Signals, progress: impl Fn(f64)) -> Result<(u64, f64), Failure> {
    const AT_ONCE: u64 = 100;
    let session = new_session(engine)?;
    let stream = session.attach(OwnerKind::Stream, None)?;
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < time {
        for _ in 0..AT_ONCE {
            let id = session.send_request(&stream, REQUEST, "", 60_000)?;
            let taken = session.take_outgoing(&stream, 1)?.len();
            let delivered = session.deliver_response(id, r#"{"result":{"n":42}}"#)?;
            let claimed = session.claim(&stream, id)?;
            if (taken, delivered) != (1, Delivery::Delivered) || !matches!(claimed, Claim::Answered(_)) {
                return Err(Failure::new(format!(
                    "a round of operations failed: {taken} taken, {delivered:?}, {claimed:?}"
                )));
            }
        }
        count += AT_ONCE;
        pause(signals, Duration::ZERO)?;
        progress(start.elapsed().as_secs_f64() / time.as_secs_f64());
    }
    Ok((count, start.elapsed().as_secs_f64() * 1e6 / count as f64))
}

/// Returns the microseconds from each answer to the waiting process, sorted.
fn wakes(engine: &Engine, time: Duration, signals: &Signals, progress: impl Fn(f64)) -> Result<Vec<u64>, Failure> {
    const PAUSE: Duration = Duration::from_millis(1);
    let session = new_session(engine)?;
    let mut peer = Peer::start(engine.dsn(), session.id())?;
    let (start, mut measured) = (Instant::now(), Vec::new());
    while measured.is_empty() || start.elapsed() < time {
        let id: i64 = peer.line()?;
        // The other process sleeps after this time.
        pause(signals, PAUSE)?;
        session.deliver_response(id, &now_us().to_string())?;
        measured.push(peer.line()?);
        progress(start.elapsed().as_secs_f64() / time.as_secs_f64());
    }
    drop(peer);
    measured.sort_unstable();
    Ok(measured)
}

fn new_session(engine: &Engine) -> Result<Session, Failure> {
    Ok(engine.create_session(NewSession::default())?.expect("a random id is free"))
}

fn pause(signals: &Signals, time: Duration) -> Result<(), Failure> {
    match signals.wait(time) {
        Woken::Quit => Err(Failure::new("ended by a signal before the result")),
        Woken::Redraw | Woken::Suspend => Ok(()),
    }
}

/// A private directory, which is removed at the end.
struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    fn new(parent: &Path) -> Result<Self, Failure> {
        let template = CString::new(parent.join("mcp-state-bench-XXXXXX").as_os_str().as_bytes());
        let mut name = template.map_err(std::io::Error::other)?.into_bytes_with_nul();
        // SAFETY: the name is a writable C string, in which the call replaces the last six characters.
        if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
            let error = std::io::Error::last_os_error();
            return Err(Failure::new(format!("cannot make a directory in {}: {error}", parent.display())));
        }
        name.pop();
        Ok(Self(std::ffi::OsString::from_vec(name).into()))
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The waiting process. It ends at the end of its standard input.
struct Peer {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Peer {
    fn start(dsn: &str, session: &str) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench-peer", dsn, session])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().expect("it is piped");
        Ok(Self { child, lines: BufReader::new(out).lines() })
    }

    fn line<T: std::str::FromStr>(&mut self) -> Result<T, Failure> {
        let line = self.lines.next().transpose()?.unwrap_or_default();
        line.parse().map_err(|_| Failure::new(format!("the waiting process said {line:?}")))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The waiting process: sends a request, prints its id, waits, and prints the time of the answer.
pub(crate) fn peer(dsn: &str, session: &str) -> Result<(), Failure> {
    let engine = Engine::open_existing(dsn)?;
    let session = engine.open_session(session, None)?.ok_or_else(|| Failure::not_found("the session is gone"))?;
    let stream = session.attach(OwnerKind::Stream, None)?;
    let mut cursor = 0;
    loop {
        let id = session.send_request(&stream, REQUEST, "", 60_000)?;
        session.take_outgoing(&stream, 1)?;
        output::line(id)?;
        cursor = session.wait(&stream, Interest::RESOLUTION, cursor, Duration::from_secs(60))?.cursor;
        let woken = now_us();
        let Claim::Answered(sent) = session.claim(&stream, id)? else {
            return Err(Failure::new("no answer came within a minute"));
        };
        output::line(woken.saturating_sub(sent.parse().unwrap_or(woken)))?;
    }
}

/// Returns the microseconds of a clock that all processes share.
fn now_us() -> u64 {
    // SAFETY: all-zero bytes are a valid timespec.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is writable through the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } != 0 {
        return BootClock.now() * 1000;
    }
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}
