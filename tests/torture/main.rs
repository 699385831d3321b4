//! Torture: many processes on one store, killed, stopped, forked, with short leases; every operation is noted with its beginning
//! and end, and the whole history is checked afterwards ([`check`]). Every other round writes through its map.
//!
//! `make torture SECONDS=n SEED=s [DSN=…]`. What is done and what befalls whom is drawn from the seed; which of it meets is up to
//! the machine. Without arguments this program tests the checker: histories that cannot be are refused.
#![allow(missing_docs, unreachable_pub)]

#[path = "../common/mod.rs"]
mod common;

mod bad_histories;
mod check;
mod history;
mod linear;
mod worker;

use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Arguments;
use mcp_state::{Engine, NewSession, OwnerKind};

use check::{Violation, violations};
use fastrand::Rng;
use history::{History, Log, Op, Outcome, now};
use worker::{REUSED, SESSIONS, Worker, log_path, outcome, session_id, take};

const WORKERS: usize = 8;
/// A round has sessions of its own and is checked on its own.
const ROUND: Duration = Duration::from_secs(5);
/// Nobody takes so long to end: whoever does is blocked by a process that was killed (G8).
const PATIENCE: Duration = Duration::from_secs(60);
/// How far apart the numbers of processes are: a worker's children come between.
const APART: u32 = 101;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--worker", dsn, directory, round, number, seed, until] => {
            let number_of = |text: &str| text.parse().expect("a number");
            Worker {
                dsn: dsn.to_owned(),
                directory: directory.into(),
                round: number_of(round),
                number: number.parse().expect("a number"),
                seed: number_of(seed),
                until: number_of(until),
            }
            .serve();
            ExitCode::SUCCESS
        }
        ["--torture", seconds, seed] => torture(seconds, seed, None),
        ["--torture", seconds, seed, dsn] => torture(seconds, seed, Some(dsn)),
        _ => libtest_mimic::run(&Arguments::from_args(), bad_histories::trials()).exit_code(),
    }
}

fn torture(seconds: &str, seed: &str, dsn: Option<&str>) -> ExitCode {
    let seconds: u64 = seconds.parse().expect("SECONDS is a number");
    let seed: u64 = seed.parse().expect("SEED is a number");
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/torture");
    std::fs::create_dir_all(&reports).expect("build/torture can be made");
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut total = Total::default();
    for round in 0.. {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || !total.violations.is_empty() {
            break;
        }
        Round::new(seed, round, dsn).run(left.min(ROUND), &mut total);
    }
    for (at, violation) in total.violations.iter().enumerate() {
        println!("violation: {}", violation.what);
        let path = reports.join(format!("violation-{seed}-{at}.jsonl"));
        let calls = violation.calls.iter().map(|call| serde_json::to_string(call).expect("a call is JSON") + "\n");
        let text = format!("{}\n{}", serde_json::json!(violation.what), calls.collect::<String>());
        std::fs::write(&path, text).expect("the history can be written");
        println!("  its history: {}", path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&path).display());
    }
    println!(
        "torture: {} stops, {} forks, {} of the kills in the middle of a transaction or before its wake-up",
        total.stops, total.forks, total.faults
    );
    println!(
        "torture: {} operations, {} kills, {} violations (seed {seed})",
        total.operations,
        total.kills,
        total.violations.len()
    );
    if total.violations.is_empty() && total.operations > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Total {
    operations: usize,
    kills: usize,
    /// Kills of a process by itself, at a place of the engine.
    faults: usize,
    stops: usize,
    forks: usize,
    violations: Vec<Violation>,
}

struct Round {
    seed: u64,
    round: u64,
    dsn: String,
    engine: Engine,
    directory: tempfile::TempDir,
    /// Where the store is when it is the run's own.
    _store: Option<tempfile::TempDir>,
    random: Rng,
    started: u32,
}

/// A worker's process.
struct Process {
    number: u32,
    child: Child,
}

impl Round {
    fn new(seed: u64, round: u64, dsn: Option<&str>) -> Self {
        let (place, options) = match round % 2 {
            0 => (common::shared_memory(), ""),
            _ => (std::env::temp_dir(), common::WRITE_MAP),
        };
        let store = dsn.is_none().then(|| tempfile::tempdir_in(place).expect("a directory"));
        let dsn = match (&store, dsn) {
            (Some(store), _) => common::dsn_in(store, options),
            (None, dsn) => dsn.expect("a store is named").to_owned(),
        };
        let engine = Engine::open(&dsn).expect("the store opens");
        let random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9) ^ round);
        let directory = tempfile::tempdir().expect("a directory");
        Self { seed, round, dsn, engine, directory, _store: store, random, started: 0 }
    }

    fn run(mut self, length: Duration, total: &mut Total) {
        let mut history = History::default();
        let log = Log::new(&log_path(self.directory.path(), 0));
        // What an earlier run left under these ids in a store that it did not make.
        for id in self.ids() {
            if let Some(old) = self.engine.open_session(&id, None).expect("it reads") {
                old.destroy().expect("destroyed");
            }
        }
        for number in 0..SESSIONS {
            let new = NewSession { id: Some(session_id(self.round, number)), ..NewSession::default() };
            self.engine.create_session(new).expect("created").expect("the id is free");
        }
        let until = now() + length.as_nanos() as u64;
        let mut gone = Vec::new();
        let mut workers: Vec<Process> = (0..WORKERS).map(|_| self.start(until)).collect();
        let destroy_at = until - length.as_nanos() as u64 / 3;
        let mut destroyed = self.random.u64(..3) > 0;
        while now() < until {
            std::thread::sleep(Duration::from_millis(2 + self.random.u64(..60)));
            if !destroyed && now() > destroy_at {
                destroyed = true;
                self.destroy(&log);
            }
            self.look_for_dead(&mut workers, until, &mut gone, total);
            let victim = self.random.u64(..WORKERS as u64) as usize;
            match self.random.u64(..10) {
                0..3 => {
                    total.kills += 1;
                    let mut killed = std::mem::replace(&mut workers[victim], self.start(until));
                    killed.child.kill().expect("a worker can be killed");
                    killed.child.wait().expect("a worker ends");
                    gone.push((killed, now()));
                }
                3..5 => {
                    total.stops += 1;
                    let pid = workers[victim].child.id();
                    signal(pid, libc::SIGSTOP);
                    std::thread::sleep(Duration::from_millis(self.random.u64(..250)));
                    signal(pid, libc::SIGCONT);
                }
                _ => {}
            }
        }
        for mut worker in workers {
            match ends(&mut worker.child) {
                Some(status) => self.judge(&worker, status, total),
                None => total.violations.push(complaint("G8: a worker does not end: it is blocked")),
            }
            gone.push((worker, now()));
        }
        self.drain(&log);
        let contradictions = self.engine.contradictions().expect("it reads");
        total.violations.extend(contradictions.iter().map(|text| complaint(&format!("G8: {text}"))));
        // The output of a worker ends with the last of its children.
        for (worker, _) in &mut gone {
            let mut output = worker.child.stdout.take().expect("piped");
            std::io::copy(&mut output, &mut std::io::sink()).expect("it reads");
        }
        let over = now();
        for (worker, at) in gone {
            history.read(worker.number, &log_path(self.directory.path(), worker.number), at);
            for child in 1..APART {
                let path = log_path(self.directory.path(), worker.number + child);
                if path.exists() {
                    total.forks += 1;
                    history.read(worker.number + child, &path, over);
                }
            }
        }
        history.read(0, &log_path(self.directory.path(), 0), u64::MAX);
        total.operations += history.calls.len();
        total.violations.extend(violations(&history));
        for id in self.ids() {
            if let Some(session) = self.engine.open_session(&id, None).expect("it reads") {
                session.destroy().expect("destroyed");
            }
        }
    }

    fn ids(&self) -> Vec<String> {
        let reused = (0..REUSED).map(|number| format!("r{}again{number}", self.round));
        (0..SESSIONS).map(|number| session_id(self.round, number)).chain(reused).collect()
    }

    /// Starts a worker; one in four is to die of its own accord in the middle of something. Each has another wall clock, which
    /// nothing may depend on.
    fn start(&mut self, until: u64) -> Process {
        let number = 1 + self.started * APART;
        self.started += 1;
        let words = [self.round, u64::from(number), self.seed, until].map(|number| number.to_string());
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("--worker").arg(&self.dsn).arg(self.directory.path()).args(words);
        let day = 86_400_000;
        command.env("MCP_STATE_PRETEND_WALL_OFFSET_MS", (self.random.u64(..2 * day) as i64 - day as i64).to_string());
        if self.random.u64(..4) == 0 {
            let place = ["between-rows", "before-commit", "before-wake"][self.random.u64(..3) as usize];
            command.env("MCP_STATE_FAULT", format!("{place}:{}", 1 + self.random.u64(..400)));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a worker starts");
        Process { number, child }
    }

    /// Workers that died of their own accord are replaced.
    fn look_for_dead(
        &mut self,
        workers: &mut [Process],
        until: u64,
        gone: &mut Vec<(Process, u64)>,
        total: &mut Total,
    ) {
        for worker in workers {
            if let Some(status) = worker.child.try_wait().expect("a worker can be asked for") {
                let dead = std::mem::replace(worker, self.start(until));
                self.judge(&dead, status, total);
                gone.push((dead, now()));
            }
        }
    }

    fn judge(&self, worker: &Process, status: ExitStatus, total: &mut Total) {
        use std::os::unix::process::ExitStatusExt;
        if status.signal() == Some(libc::SIGKILL) {
            total.kills += 1;
            total.faults += 1;
        } else if !status.success() {
            total
                .violations
                .push(complaint(&format!("worker {} of round {} ended: {status}", worker.number, self.round)));
        }
    }

    fn destroy(&self, log: &Log) {
        let id = session_id(self.round, 0);
        let session = self.engine.open_session(&id, None).expect("it reads").expect("nobody else destroys it");
        log.record(&id, Op::Destroy(0), || outcome(session.destroy(), Outcome::Whether));
    }

    /// What nobody took is taken: broadcasts must be there still.
    fn drain(&self, log: &Log) {
        for number in 0..SESSIONS {
            let id = session_id(self.round, number);
            let Some(session) = self.engine.open_session(&id, None).expect("it reads") else { continue };
            // Owners whose lease has not run out hold what they peeked.
            let free = Instant::now() + PATIENCE;
            while session.stats().expect("it reads").owners > 0 && Instant::now() < free {
                let visitor = session.attach(OwnerKind::Reply, None).expect("attached");
                session.detach(&visitor).expect("detached");
                std::thread::sleep(Duration::from_millis(20));
            }
            let mut stream = None;
            log.record(&id, Op::Attach { stream: true }, || {
                outcome(session.attach(OwnerKind::Stream, None), |token| {
                    stream = Some(token);
                    Outcome::Owner(token.to_string())
                })
            });
            let stream = stream.expect("attached");
            while take(log, &id, &session, &stream, 100) > 0 {}
        }
    }
}

fn complaint(what: &str) -> Violation {
    Violation { what: what.to_owned(), calls: Vec::new() }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: a signal to a child that has not been waited for, so the pid is its.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Waits for the end of a worker, within reason.
fn ends(child: &mut Child) -> Option<ExitStatus> {
    let limit = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a worker can be asked for") {
            return Some(status);
        }
        if Instant::now() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
