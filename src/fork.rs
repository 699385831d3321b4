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
    static PAGE: OnceLock<Option<usize>> = OnceLock::new();
    static BY_NUMBER: AtomicU64 = AtomicU64::new(0);
    match *PAGE.get_or_init(wiped_page) {
        // SAFETY: the page is zero-initialised, aligned, lives for ever, and is only ever used as this atomic.
        Some(address) => claim(unsafe { &*(address as *const AtomicU64) }, 0, &GENERATION),
        // The number of the process is never 0.
        None => claim(&BY_NUMBER, u64::from(std::process::id()), &GENERATION),
    }
}

/// The generation of a process, which `mark` tells from its parent: it holds `process` and how far the process has come. One
/// thread moves the mark on from whatever the parent left in it, in one step, and gives the process its number; the others wait.
fn claim(mark: &AtomicU64, process: u64, generation: &AtomicU64) -> u64 {
    const CLAIMED: u64 = 1;
    const NUMBERED: u64 = 2;
    let [claimed, numbered] = [CLAIMED, NUMBERED].map(|step| process << 2 | step);
    loop {
        let seen = mark.load(Ordering::Acquire);
        if seen == numbered {
            return generation.load(Ordering::Acquire);
        }
        if seen != claimed && mark.compare_exchange(seen, claimed, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            generation.fetch_add(1, Ordering::AcqRel);
            mark.store(numbered, Ordering::Release);
        }
        std::hint::spin_loop();
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn threads_that_use_the_engine_first_at_once_agree_on_one_generation() {
        const THREADS: usize = 4;
        // 0 is a page that the kernel empties; else a process, and the mark that its parent left.
        for (process, left) in [(0, 0), (7, 0), (7, 6 << 2 | 2), (7, 6 << 2 | 1)] {
            for _ in 0..500 {
                let (mark, generation) = (AtomicU64::new(left), AtomicU64::new(4));
                let barrier = Barrier::new(THREADS);
                std::thread::scope(|scope| {
                    let first_use = || {
                        barrier.wait();
                        claim(&mark, process, &generation)
                    };
                    let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(first_use)).collect();
                    for thread in threads {
                        assert_eq!(thread.join().unwrap(), 5, "process {process}, after {left}");
                    }
                });
                assert_eq!(claim(&mark, process, &generation), 5);
            }
        }
    }

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
