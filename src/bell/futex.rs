//! Waits on a futex in memory that several processes map.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::Slept;

pub(super) use platform::{sleep, wake};

#[cfg(target_os = "linux")]
mod platform {
    use super::{AtomicU32, Duration, Slept};

    pub(in crate::bell) fn wake(word: &AtomicU32, sleepers: i32) {
        // SAFETY: the word is a live, aligned u32; FUTEX_WAKE takes no other pointer.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, sleepers) };
    }

    pub(in crate::bell) fn sleep(word: &AtomicU32, value: u32, timeout: Duration) -> Slept {
        let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
        // SAFETY: the word is a live, aligned u32 and the timespec is valid for the call.
        let result =
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout) };
        match std::io::Error::last_os_error().raw_os_error() {
            _ if result == 0 => Slept::Rung,
            Some(libc::EINTR) => Slept::Interrupted,
            Some(libc::ETIMEDOUT) => Slept::TimedOut,
            // EAGAIN: the word had another value already.
            _ => Slept::Rung,
        }
    }
}

/// The same interface without futexes: the waiter polls, with pauses that double.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::sync::atomic::Ordering;

    use super::{AtomicU32, Duration, Slept};

    pub(in crate::bell) fn wake(_word: &AtomicU32, _sleepers: i32) {}

    pub(in crate::bell) fn sleep(word: &AtomicU32, value: u32, timeout: Duration) -> Slept {
        let end = std::time::Instant::now() + timeout;
        let mut pause = Duration::from_micros(20);
        while word.load(Ordering::SeqCst) == value {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Slept::TimedOut;
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        Slept::Rung
    }
}
