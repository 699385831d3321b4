//! Waits whose server has another idea of the time, or whose process is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use mcp_state::{Clock, Engine, Interest, Millis, OwnerKind, Settings, WaitedFor};

use crate::common::redis::RedisServer;
use crate::workers::{REQUEST, Test};
use crate::{Result, named};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_wait_ends_by_the_process_s_own_clock_when_the_store_s_is_set_back", set_back),
    ("a_wait_ends_in_time_whatever_becomes_of_the_server_s_clock", real_clock),
    ("a_signal_ends_a_sleep_on_a_server", signal),
];

/// A store's clock that stands an hour earlier from a later reading on, and then still.
struct SetBack(AtomicI64);

impl Clock for SetBack {
    fn now(&self) -> Millis {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            reading if reading < 12 => 10 * 3_600_000,
            _ => 9 * 3_600_000,
        }
    }
}

fn set_back() -> Result {
    let server = RedisServer::start();
    let clock = Arc::new(SetBack(AtomicI64::new(i64::MIN)));
    let engine = Engine::with_clock(&server.dsn(""), Settings::default(), clock.clone())?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let request = session.send_request(&owner, REQUEST, "", 3_000)?;
    // Within the first slice.
    clock.0.store(8, Ordering::SeqCst);
    let waited = session.wait_slice(&owner, Interest::RESOLUTION, 0, Duration::from_secs(1))?;
    assert_eq!(waited.outcome, WaitedFor::Deadline);
    clock.0.store(8, Ordering::SeqCst);
    let waited = session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_millis(1500))?;
    assert_eq!(waited.outcome, WaitedFor::Deadline, "an hour earlier the question is not late yet");
    clock.0.store(8, Ordering::SeqCst);
    assert!(!engine.wait_since("topic", 0, Duration::from_secs(1))?);
    session.deliver_response(request, "1")?;
    assert_eq!(session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(9))?.outcome, WaitedFor::Ready);
    Ok(())
}

/// In place of the C library's: as many seconds off as the file says that `CLOCK_OFFSET` names. It needs nothing of other libraries,
/// since allocators ask for the time before there is anything else.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec real;
    char text[32] = "0";
    const char *path = getenv("CLOCK_OFFSET");
    int file = path ? (int) syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        syscall(SYS_read, file, text, sizeof text - 1);
        syscall(SYS_close, file);
    }
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec + atol(text);
    now->tv_usec = real.tv_nsec / 1000;
    (void) zone;
    return 0;
}
"#;

/// A real server, whose clock is set back while a question is open.
fn real_clock() -> Result {
    let directory = tempfile::tempdir()?;
    let [source, library, offset] = ["clock.c", "clock.so", "offset"].map(|name| directory.path().join(name));
    std::fs::write(&source, SHIFTED_CLOCK)?;
    let compiled = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("left out: a server whose clock is set, for want of a C compiler (scripts/setup test installs it)");
        return Ok(());
    }
    // At once, so that the server never reads half of it.
    let set = |text: &str| {
        let new = directory.path().join("new");
        std::fs::write(&new, text)?;
        std::fs::rename(&new, &offset)
    };
    set("0")?;
    let words = [format!("LD_PRELOAD={}", library.display()), format!("CLOCK_OFFSET={}", offset.display())];
    let server = RedisServer::run_by(&["env", &words[0], &words[1]], &[]);
    let engine = Engine::open(&server.dsn(""))?;
    let now = || server.command(&["TIME"]).lines().next().and_then(|seconds| seconds.parse::<i64>().ok());
    let before = now().ok_or("the server tells the time")?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let request = session.send_request(&owner, REQUEST, "", 60_000)?;
    set("-3600")?;
    assert!(now().is_some_and(|now| now < before - 3000), "its clock was set back");
    let start = std::time::Instant::now();
    let slice = session.wait_slice(&owner, Interest::RESOLUTION, 0, Duration::from_secs(3))?;
    assert_ne!(slice.outcome, WaitedFor::Ready);
    let waited = session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_millis(1500))?;
    assert_eq!(waited.outcome, WaitedFor::Deadline);
    assert!(start.elapsed() < Duration::from_secs(60), "not for the length of the step");
    session.deliver_response(request, "1")?;
    assert_eq!(session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(30))?.outcome, WaitedFor::Ready);
    assert!(matches!(session.claim(&owner, request)?, mcp_state::Claim::Answered(_)));
    set("0")?;
    crate::works(&session)
}

extern "C" fn nothing(_: libc::c_int) {}

fn signal() -> Result {
    let server = RedisServer::start();
    let engine = Engine::open(&server.dsn(""))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    // SAFETY: the handler does nothing; zeroed is a valid sigaction without flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    // SAFETY: the call has no requirements.
    let waiter = unsafe { libc::pthread_self() } as usize;
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let outcomes = std::thread::scope(|scope| -> Result<Vec<WaitedFor>> {
        scope.spawn(move || {
            // Again and again: one may arrive before the sleep has begun.
            while is_done.recv_timeout(Duration::from_millis(150)) == Err(RecvTimeoutError::Timeout) {
                // SAFETY: the thread waits for this one to end.
                unsafe { libc::pthread_kill(waiter as libc::pthread_t, libc::SIGUSR2) };
            }
        });
        let slices = (0..5).map(|_| session.wait_slice(&owner, Interest::ALL, 0, Duration::from_secs(1)));
        let outcomes = slices.map(|waited| Ok(waited?.outcome)).collect();
        drop(done);
        outcomes
    })?;
    assert!(outcomes.contains(&WaitedFor::Interrupted), "{outcomes:?}");
    Ok(())
}
