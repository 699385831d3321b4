//! The bell of a store on files: counters in a file that every process maps.
//!
//! Each counter has a count of its sleepers beside it, so that a ring nobody waits for makes no system call. A sleeper that
//! is killed leaves its count behind: rings of that counter then make a call too many, nothing worse.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Bell, Counters, Ring, SLICE, Slept, Ticket};

/// How many counters the file holds.
const SLOTS: usize = 8192;
/// Bytes before the first counter.
const HEADER: usize = 4096;

#[repr(C)]
struct SharedSlot {
    value: AtomicU32,
    sleepers: AtomicU32,
}

/// The file's first page: the generation's fate and the store's counters.
#[repr(C)]
struct Header {
    retired: AtomicU32,
    _reserved: AtomicU32,
    counters: Counters,
}

/// A mapped bell file.
pub(crate) struct SharedBell {
    map: NonNull<u8>,
}

// SAFETY: the mapping is only reached through atomics, and lives as long as the value.
unsafe impl Send for SharedBell {}
// SAFETY: as above.
unsafe impl Sync for SharedBell {}

impl SharedBell {
    /// The file's size in bytes; all of it is allocated before it is mapped.
    pub(crate) const FILE_BYTES: u64 = (HEADER + SLOTS * size_of::<SharedSlot>()) as u64;

    /// Maps `file`, which must be at least [`SharedBell::FILE_BYTES`] long and allocated.
    pub(crate) fn map(file: &File) -> std::io::Result<Self> {
        if file.metadata()?.len() < Self::FILE_BYTES {
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the bell file is too short"));
        }
        // SAFETY: a new shared mapping at an address of the kernel's choice; the descriptor is open.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::FILE_BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self { map: NonNull::new(map.cast()).expect("a mapping is not at 0") })
    }

    fn header(&self) -> &Header {
        // SAFETY: the map is longer than a Header, page-aligned, and any bytes are valid atomics.
        unsafe { self.map.cast::<Header>().as_ref() }
    }

    fn slots(&self) -> &[SharedSlot] {
        // SAFETY: FILE_BYTES leaves room for SLOTS slots behind the header; any bytes are valid atomics; HEADER keeps
        // their alignment.
        unsafe { std::slice::from_raw_parts(self.map.add(HEADER).cast::<SharedSlot>().as_ptr(), SLOTS) }
    }

    /// Says that the files beside this bell are no longer the store, and wakes everybody to see it.
    pub(crate) fn retire(&self) {
        self.header().retired.store(1, Ordering::SeqCst);
        for slot in self.slots() {
            slot.value.fetch_add(1, Ordering::SeqCst);
            futex::wake(&slot.value);
        }
    }

    /// Whether [`SharedBell::retire`] was called by any process.
    pub(crate) fn is_retired(&self) -> bool {
        self.header().retired.load(Ordering::SeqCst) != 0
    }
}

impl Drop for SharedBell {
    fn drop(&mut self) {
        // SAFETY: map() made this mapping with this length, and no reference into it outlives self.
        unsafe { libc::munmap(self.map.as_ptr().cast(), Self::FILE_BYTES as usize) };
    }
}

impl Bell for SharedBell {
    fn ring(&self, ring: Ring) {
        let slot = &self.slots()[(ring.hash() % SLOTS as u64) as usize];
        slot.value.fetch_add(1, Ordering::SeqCst);
        if slot.sleepers.load(Ordering::SeqCst) != 0 {
            futex::wake(&slot.value);
        }
    }

    fn listen(&self, ring: Ring) -> Ticket {
        let slot = (ring.hash() % SLOTS as u64) as usize;
        Ticket { slot, value: self.slots()[slot].value.load(Ordering::SeqCst) }
    }

    fn sleep(&self, ticket: Ticket, timeout: Duration) -> Slept {
        let slot = &self.slots()[ticket.slot];
        slot.sleepers.fetch_add(1, Ordering::SeqCst);
        let slept = futex::sleep(&slot.value, ticket.value, timeout.min(SLICE));
        slot.sleepers.fetch_sub(1, Ordering::SeqCst);
        slept
    }

    fn counters(&self) -> &Counters {
        &self.header().counters
    }
}

#[cfg(target_os = "linux")]
mod futex {
    use super::{AtomicU32, Duration, Slept};

    pub(super) fn wake(word: &AtomicU32) {
        // SAFETY: the word is a live, aligned u32; FUTEX_WAKE takes no other pointer.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    pub(super) fn sleep(word: &AtomicU32, value: u32, timeout: Duration) -> Slept {
        let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
        // SAFETY: the word is a live, aligned u32 and the timespec is valid for the call.
        let result =
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout) };
        let interrupted = result == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if interrupted { Slept::Interrupted } else { Slept::Look }
    }
}

/// Where there is no futex: short sleeps that grow, behind the same interface.
#[cfg(not(target_os = "linux"))]
mod futex {
    use std::sync::atomic::Ordering;

    use super::{AtomicU32, Duration, Slept};

    pub(super) fn wake(_word: &AtomicU32) {}

    pub(super) fn sleep(word: &AtomicU32, value: u32, timeout: Duration) -> Slept {
        let end = std::time::Instant::now() + timeout;
        let mut pause = Duration::from_micros(20);
        while word.load(Ordering::SeqCst) == value {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        Slept::Look
    }
}
