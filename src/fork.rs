//! Detection of forks without a hook such as `pthread_atfork`.
//!
//! Invariant: [`generation`] is constant within a process and differs between a process and its forked children. The mark of
//! a process is in a page that the kernel clears in a child (`MADV_WIPEONFORK`), so an empty mark belongs to a new process. If the
//! kernel has no such pages, the mark is the pid. A handle of another generation (an LMDB environment, a file lock) must be leaked,
//! never used or closed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns how many processes, from the first ancestor that used the engine to this one, have used the engine.
pub(crate) fn generation() -> u64 {
    static GENERATION: AtomicU64 = AtomicU64::new(0);
    static PAGE: OnceLock<Option<usize>> = OnceLock::new();
    static BY_NUMBER: AtomicU64 = AtomicU64::new(0);
    match *PAGE.get_or_init(wiped_page) {
        // SAFETY: the page is zero-initialised, aligned, never unmapped, and only used as this atomic.
        Some(address) => claim(unsafe { &*(address as *const AtomicU64) }, 0, &GENERATION),
        // A pid is never 0.
        None => claim(&BY_NUMBER, u64::from(std::process::id()), &GENERATION),
    }
}

/// Returns the generation of `process`. The mark holds `process` and the step of its numbering. One thread replaces the mark of the
/// parent with one compare-and-swap and increments the generation; the other threads spin until the process is numbered.
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

/// Maps a page that the kernel clears in a child; `None` if the kernel does not support this.
#[cfg(target_os = "linux")]
fn wiped_page() -> Option<usize> {
    // SAFETY: a new anonymous mapping at an address that the kernel chooses overlaps no memory in use, and is never unmapped.
    // madvise sets a flag of this mapping.
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
        // Process 0 is the case of a page that the kernel clears; the others are pids with the mark of their parent.
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
