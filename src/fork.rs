//! Which process this is: forks are noticed without a hook.
//!
//! Invariant: [`generation`] is constant within a process and differs between a process and its forked children. A page that
//! the kernel empties in a child (`MADV_WIPEONFORK`) holds a mark; an empty mark means that this process is a new one. Where
//! the kernel has no such pages, the mark is the process's number. A handle opened under another generation (an LMDB
//! environment, a file lock) must never be used or closed, only leaked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of this process among its ancestors that have used the engine: 1 for the first.
pub(crate) fn generation() -> u64 {
    static GENERATION: AtomicU64 = AtomicU64::new(0);
    let mark = mark();
    if mark.load(Ordering::Acquire) == 0 {
        // Two threads that come here at once agree on the number once the mark is set.
        if mark.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            GENERATION.fetch_add(1, Ordering::AcqRel);
            mark.store(2, Ordering::Release);
        }
    }
    while mark.load(Ordering::Acquire) != 2 {
        std::hint::spin_loop();
    }
    GENERATION.load(Ordering::Acquire)
}

fn mark() -> &'static AtomicU64 {
    static PAGE: OnceLock<Option<usize>> = OnceLock::new();
    match *PAGE.get_or_init(wiped_page) {
        // SAFETY: the page is zero-initialised, aligned, lives for ever, and is only ever used as this atomic.
        Some(address) => unsafe { &*(address as *const AtomicU64) },
        None => mark_by_number(),
    }
}

/// A page that the kernel empties in a child, if it can.
#[cfg(target_os = "linux")]
fn wiped_page() -> Option<usize> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists; it is never unmapped.
    // madvise only sets a flag on the mapping just made.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0);
        let is_wiped = page != libc::MAP_FAILED && libc::madvise(page, 4096, libc::MADV_WIPEONFORK) == 0;
        is_wiped.then_some(page as usize)
    }
}

#[cfg(not(target_os = "linux"))]
fn wiped_page() -> Option<usize> {
    None
}

/// A mark that is emptied when the process has another number than last time.
fn mark_by_number() -> &'static AtomicU64 {
    static PID: AtomicU64 = AtomicU64::new(0);
    static MARK: AtomicU64 = AtomicU64::new(0);
    let pid = u64::from(std::process::id());
    if PID.swap(pid, Ordering::AcqRel) != pid {
        MARK.store(0, Ordering::Release);
    }
    &MARK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_of_another_generation_and_its_parent_of_the_same() {
        let before = generation();
        // SAFETY: the child calls only async-signal-safe code: an atomic load and _exit.
        let status = unsafe {
            match libc::fork() {
                0 => libc::_exit((generation() - before) as i32),
                child => {
                    let mut status = 0;
                    libc::waitpid(child, &raw mut status, 0);
                    status
                }
            }
        };
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 1);
        assert_eq!(generation(), before);
    }
}
