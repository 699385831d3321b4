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
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
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
