//! The queue in front of LMDB's writer mutex: spin, then sleep, and never lose a waiter.
//!
//! A writer holds the mutex for some microseconds; sleeping and waking take ten times as long. So a process that finds the mutex
//! locked spins for a while, and then sleeps on a word of the bell. A writer that unlocks the mutex wakes one sleeper, and no
//! other until that one has had its turn. A sleep ends by itself after [`TICK`], so a killed process blocks no other.
//!
//! Two processes that find the mutex free at once both lock it, and one of them sleeps in the mutex itself. LMDB's mutexes are
//! robust: the kernel unlocks what a killed process held. But glibc wakes one waiter when such a mutex is unlocked, and forgets
//! the others until that waiter has the mutex. When that waiter is killed first and a third process has locked the mutex
//! meanwhile, no process wakes the others: they sleep beside a free mutex until another process waits for it (G8 forbids this). So
//! the bell counts the waiters, and a process that unlocks a mutex wakes one more sleeper while the count is not zero. A sleeper
//! that is woken in vain sleeps again. A killed waiter leaves its count behind, which costs one system call each time until one
//! process alone opens the store.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use crate::bell::Bell;

/// How often a writer reads the mutex before it sleeps: some 10 microseconds.
const SPINS: u32 = 500;
/// The longest sleep before the mutex is read again.
const TICK: Duration = Duration::from_millis(5);

/// The thread that has kept a writer waiting for too long.
#[derive(Debug)]
pub(super) struct Stalled {
    /// The kernel's thread id.
    pub(super) holder: u32,
    pub(super) waited: Duration,
}

/// The processes that wait for LMDB's mutexes.
pub(super) struct WriterQueue {
    mutexes: platform::Mutexes,
    /// Zero on one processor, where the holder cannot run while another process spins.
    spins: u32,
}

impl WriterQueue {
    /// Maps the mutexes of `lock_file`. LMDB must not have the file open yet: closing another descriptor later would drop its locks.
    pub(super) fn new(lock_file: &File) -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { mutexes: platform::Mutexes::map(lock_file)?, spins: if processors > 1 { SPINS } else { 0 } })
    }

    /// Waits until no writer holds the mutex, for at most `timeout`.
    pub(super) fn await_turn(&self, bell: &Bell, timeout: Duration) -> Result<(), Stalled> {
        let is_free = || self.mutexes.writer() == 0;
        if is_free() {
            return Ok(());
        }
        for _ in 0..self.spins {
            std::hint::spin_loop();
            if is_free() {
                return Ok(());
            }
        }
        let since = Instant::now();
        loop {
            bell.want_turn();
            let holder = self.mutexes.writer();
            if holder == 0 {
                return Ok(());
            }
            let waited = since.elapsed();
            if waited >= timeout {
                return Err(Stalled { holder, waited });
            }
            bell.await_turn(TICK);
            if is_free() {
                // Other processes may sleep too: this one wakes them when it has written.
                bell.want_turn();
                return Ok(());
            }
        }
    }

    /// Runs a job that may wait for a mutex, and counts this process as a waiter meanwhile.
    pub(super) fn counted<T>(&self, bell: &Bell, job: impl FnOnce() -> T) -> T {
        bell.count_waiting(1);
        let result = job();
        bell.count_waiting(-1);
        result
    }

    /// Call this after a mutex was unlocked: wakes the next process in the queue, and a sleeper that glibc may have forgotten.
    pub(super) fn wake(&self, bell: &Bell) {
        bell.give_turn();
        if bell.is_anybody_waiting() {
            self.mutexes.wake_forgotten();
        }
    }
}

/// Only glibc forgets waiters; other C libraries count them in the mutex.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod platform {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// LMDB's lock file begins with magic, format, a transaction's number and the number of readers. Then comes the mutex of the
    /// reader table, then, in another cache line, the writer mutex (`MDB_txninfo`). A mutex begins with its futex word.
    const OF_READERS: usize = (2 * size_of::<u32>() + size_of::<usize>() + size_of::<u32>())
        .next_multiple_of(align_of::<libc::pthread_mutex_t>());
    const OF_WRITERS: usize = (OF_READERS + size_of::<libc::pthread_mutex_t>()).next_multiple_of(64);
    const PAGE: usize = 4096;
    /// The bits of the futex word that name the holder's thread.
    const HOLDER: u32 = 0x3fff_ffff;
    /// The bit of the futex word that makes the holder wake a sleeper.
    const WAKES: u32 = 0x8000_0000;

    pub(super) struct Mutexes(NonNull<u8>);

    // SAFETY: the mapping is only reached through atomics, and lives as long as the value.
    unsafe impl Send for Mutexes {}
    // SAFETY: as above.
    unsafe impl Sync for Mutexes {}

    impl Mutexes {
        pub(super) fn map(file: &File) -> io::Result<Self> {
            // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists; the file is allocated and
            // longer than a page.
            let map = unsafe {
                libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
            };
            if map == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(NonNull::new(map.cast()).expect("a mapping is not at 0")))
        }

        /// The kernel's thread id of the writer; 0 when the mutex is free, or when its holder was killed.
        pub(super) fn writer(&self) -> u32 {
            self.word(OF_WRITERS).load(Ordering::SeqCst) & HOLDER
        }

        /// Wakes one sleeper of each mutex that is free or whose holder will wake none.
        pub(super) fn wake_forgotten(&self) {
            for word in [OF_READERS, OF_WRITERS].map(|offset| self.word(offset)) {
                if word.load(Ordering::SeqCst) & WAKES == 0 {
                    // SAFETY: the word is mapped and aligned; FUTEX_WAKE reads no memory.
                    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
                }
            }
        }

        fn word(&self, offset: usize) -> &AtomicU32 {
            // SAFETY: both offsets are within the page and multiples of a mutex's alignment; any bytes are a valid atomic,
            // which is only read.
            unsafe { self.0.add(offset).cast().as_ref() }
        }

        /// Sleeps until woken, like a waiter that glibc has forgotten.
        #[cfg(test)]
        pub(super) fn sleep_forgotten(&self) -> io::Result<()> {
            let limit = libc::timespec { tv_sec: 20, tv_nsec: 0 };
            let word = self.word(OF_WRITERS).as_ptr();
            // SAFETY: the word is mapped and aligned, and the timespec is valid for the call.
            match unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, 0, &raw const limit) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    impl Drop for Mutexes {
        fn drop(&mut self) {
            // SAFETY: map() made this mapping with this length, and no reference into it outlives self.
            unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod platform {
    pub(super) struct Mutexes;

    impl Mutexes {
        pub(super) fn map(_file: &std::fs::File) -> std::io::Result<Self> {
            Ok(Self)
        }

        /// Always 0, since the holder is not visible: processes wait in the mutex.
        pub(super) fn writer(&self) -> u32 {
            0
        }

        pub(super) fn wake_forgotten(&self) {}
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::super::{Files, Lmdb};
    use crate::dsn::Dsn;
    use crate::error::StoreError;
    use crate::store::rows::{Transactions, Verdict};

    fn files() -> (tempfile::TempDir, Arc<Files>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let dsn = Dsn::parse(&format!("file://{}/store?durability=none", path.display())).unwrap();
        let store = Lmdb::open(&dsn.place, &dsn.settings).unwrap();
        let files = store.files().unwrap();
        (directory, files)
    }

    #[test]
    fn the_word_of_a_mutex_names_whoever_holds_it() {
        let (_directory, files) = files();
        assert_eq!(files.queue.mutexes.writer(), 0);
        let seen: Result<u32, StoreError> = files.write(|_| Ok(Verdict::Abandon(files.queue.mutexes.writer())));
        // SAFETY: gettid cannot fail.
        let thread = unsafe { libc::gettid() };
        assert_eq!(seen.map_err(|_| ()), Ok(thread as u32));
        assert_eq!(files.queue.mutexes.writer(), 0);
    }

    /// Runs `meanwhile` while another thread writes, until the end of `meanwhile`.
    fn while_somebody_writes(files: &Arc<Files>, meanwhile: impl FnOnce()) {
        let ((begun, has_begun), (end, ended)) = (channel(), channel::<()>());
        let writer = {
            let files = files.clone();
            std::thread::spawn(move || {
                let written: Result<(), StoreError> = files.write(|_| {
                    begun.send(()).expect("the test listens");
                    let _ = ended.recv();
                    Ok(Verdict::Abandon(()))
                });
                written.map_err(|_| ()).expect("nothing is in its way");
            })
        };
        has_begun.recv().expect("it begins");
        meanwhile();
        drop(end);
        writer.join().unwrap();
    }

    #[test]
    fn g8_a_writer_has_its_turn_though_another_was_woken_instead_and_killed() {
        let (_directory, files) = files();
        let waiter = {
            let mut waiter = None;
            while_somebody_writes(&files, || {
                let files = files.clone();
                waiter = Some(std::thread::spawn(move || {
                    let written: Result<(), StoreError> = files.write(|_| Ok(Verdict::Abandon(())));
                    written.map_err(|_| ())
                }));
            });
            waiter.unwrap()
        };
        // Each wake-up that was meant for the waiter is lost, again and again.
        while !waiter.is_finished() {
            files.bell.lose_turn();
            std::thread::yield_now();
        }
        assert_eq!(waiter.join().unwrap(), Ok(()));
    }

    #[test]
    fn who_waits_for_a_writer_that_was_stopped_is_told_which_one_it_is() {
        let (_directory, files) = files();
        let mut told = None;
        while_somebody_writes(&files, || {
            told = files.queue.await_turn(&files.bell, Duration::from_millis(1)).err();
        });
        let told = told.expect("the writer did not end");
        assert!(told.holder != 0 && told.waited >= Duration::from_millis(1), "{told:?}");
        assert!(files.queue.await_turn(&files.bell, Duration::ZERO).is_ok(), "it has ended");
    }

    #[test]
    fn g8_a_waiter_that_a_killed_one_was_woken_instead_of_is_woken_by_the_next_to_write() {
        let (_directory, files) = files();
        let sleeper = {
            let files = files.clone();
            std::thread::spawn(move || files.queue.counted(&files.bell, || files.queue.mutexes.sleep_forgotten()))
        };
        while !sleeper.is_finished() {
            let written: Result<(), StoreError> = files.write(|_| Ok(Verdict::Abandon(())));
            written.unwrap();
            std::thread::yield_now();
        }
        sleeper.join().unwrap().expect("it is woken");
        assert!(!files.bell.is_anybody_waiting());
    }
}
