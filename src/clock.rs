//! The clock of the engine: milliseconds since boot. All processes of one boot share this clock, and setting the system time does
//! not change it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A time or a duration, in milliseconds.
pub type Millis = u64;

/// A source of time. Deadlines, leases and lifetimes are compared with it.
pub trait Clock: Send + Sync {
    /// Returns the milliseconds since an origin that all users of one store share.
    fn now(&self) -> Millis;
}

/// The boot-time clock of this machine (`CLOCK_BOOTTIME`), which also counts the time of suspend.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

/// The time at boot: 34 years. A durable store may hold times from before the boot, and these stay above 0.
const ORIGIN: Millis = 1 << 40;

impl Clock for BootClock {
    fn now(&self) -> Millis {
        ORIGIN + read(BOOT_CLOCK)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOT_CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Milliseconds since 1970, for times that must survive a reboot.
pub(crate) fn wall_now() -> Millis {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> Millis {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec; the clock ids above exist on every supported system.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// A clock that only [`ManualClock::advance`] moves, for tests of deadlines.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Makes a clock that shows `now`, in milliseconds.
    pub fn at(now: Millis) -> Self {
        Self(AtomicU64::new(now))
    }

    /// Moves the clock forward by `by` milliseconds.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}
