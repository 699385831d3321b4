//! Time as the engine reads it: milliseconds since boot, which all processes of one boot share and no clock step moves.

use std::sync::atomic::{AtomicU64, Ordering};

/// A moment or a span, in milliseconds.
pub type Millis = u64;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// Milliseconds since an origin that all users of one store share.
    fn now(&self) -> Millis;
}

/// The boot-time clock of this machine (`CLOCK_BOOTTIME`): it goes on during suspend.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

/// What the boot clock starts at: 34 years, so that times of before the boot, which a durable store may hold, are not below 0.
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

/// Milliseconds since 1970: only to carry times across a reboot.
pub(crate) fn wall_now() -> Millis {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> Millis {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec; the clock ids above exist on every supported system.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// A clock that stands still until it is told to go on: for tests of deadlines.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock at `now`.
    pub fn at(now: Millis) -> Self {
        Self(AtomicU64::new(now))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}
