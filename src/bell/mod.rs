//! Wake-ups without loss (G9): a writer rings a bell after its commit, and no waiter misses the ring.
//!
//! A bell is a table of counters, in a file that every process maps or in the memory of one process. A hash assigns one counter to
//! each owner of each session, and several owners may share a counter. Protocol:
//!
//! * writer: commit, add one to the counter, wake its sleepers;
//! * waiter: read the counter ([`Bell::listen`]), read the state, sleep while the counter still has that value.
//!
//! A commit after the state was read changes the counter before or during the sleep, so the sleep ends. A ring for another owner
//! with the same counter costs one read of the state. A writer may be killed between commit and ring, so every sleep is bounded
//! by [`SLICE`].
//!
//! Each counter has a count of its sleepers beside it, so that a ring without sleepers makes no system call. A killed sleeper stays
//! counted; rings of its counter then make an unnecessary system call.

mod counters;
mod futex;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use counters::Counters;

pub(crate) use crate::counter::Counter;

use crate::ids::{Digest, OwnerToken};

/// The longest sleep. It bounds the delay after a writer that was killed between commit and ring.
pub(crate) const SLICE: Duration = Duration::from_secs(1);

/// The waiters of a store that a ring wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ring {
    /// An owner of a record.
    Owner(Digest, OwnerToken),
    /// All listeners of a record, such as those of a topic.
    Record(Digest),
    /// All listeners of a value that many records share.
    Shared(Digest),
}

impl Ring {
    /// Returns the index of the counter. Tokens and digests are random, so any of their bits are evenly distributed.
    fn slot(self) -> usize {
        let word = |bytes: [u8; 16]| u64::from_le_bytes(bytes[..8].try_into().expect("8 of 16 bytes"));
        let hash = match self {
            Ring::Owner(session, owner) => word(session.0).rotate_left(17) ^ word(owner.0),
            Ring::Record(record) => word(record.0),
            Ring::Shared(shared) => word(shared.0).rotate_left(32),
        };
        (hash % SLOTS as u64) as usize
    }
}

/// The index and the value of a counter before the waiter read the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    slot: usize,
    value: u32,
}

/// The reason for the end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// The counter changed: read the state again.
    Rung,
    /// The timeout passed: read the state again.
    TimedOut,
    /// A signal arrived.
    Interrupted,
}

/// The number of counters.
const SLOTS: usize = 8192;
/// The bytes before the first counter.
const HEADER: usize = 4096;

#[repr(C)]
struct Slot {
    value: AtomicU32,
    sleepers: AtomicU32,
}

/// The first page: whether the generation is retired, the store's statistics, and the state of the writers' queue.
#[repr(C)]
struct Header {
    retired: AtomicU32,
    ballast_missing: AtomicU32,
    counters: Counters,
    /// The number of threads that wait for a mutex of the store. A killed thread stays counted.
    waiting: AtomicU32,
    /// The futex of the writers' queue: 1 while a writer may sleep until another one has finished.
    turn: AtomicU32,
}

/// A mapped bell.
pub(crate) struct Bell {
    map: NonNull<u8>,
}

// SAFETY: all accesses to the mapping are atomic, and the mapping lives as long as the value.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// The size of a bell in bytes. A file is fully allocated before it is mapped.
    pub(crate) const BYTES: u64 = (HEADER + SLOTS * size_of::<Slot>()) as u64;

    /// Maps the bell that all processes with `file` share. The file must have at least [`Bell::BYTES`] allocated bytes.
    pub(crate) fn in_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < Self::BYTES {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the bell file is too short"));
        }
        Self::map(libc::MAP_SHARED, file.as_raw_fd())
    }

    /// Makes a bell for the threads of this process.
    pub(crate) fn in_memory() -> io::Result<Self> {
        Self::map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    fn map(flags: libc::c_int, file: libc::c_int) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory in use.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), Self::BYTES as usize, protection, flags, file, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { map: NonNull::new(map.cast()).expect("a mapping is not at 0") })
    }

    /// Wakes the waiters that listen for `ring`.
    pub(crate) fn ring(&self, ring: Ring) {
        let slot = self.slot(ring.slot());
        slot.value.fetch_add(1, Ordering::SeqCst);
        if slot.sleepers.load(Ordering::SeqCst) != 0 {
            futex::wake(&slot.value, i32::MAX);
        }
    }

    /// Reads the counter. [`Bell::sleep`] compares the value of the ticket.
    pub(crate) fn listen(&self, ring: Ring) -> Ticket {
        let slot = ring.slot();
        Ticket { slot, value: self.slot(slot).value.load(Ordering::SeqCst) }
    }

    /// Sleeps until the counter changes, for at most `timeout` and at most [`SLICE`].
    pub(crate) fn sleep(&self, ticket: Ticket, timeout: Duration) -> Slept {
        let slot = self.slot(ticket.slot);
        slot.sleepers.fetch_add(1, Ordering::SeqCst);
        let slept = futex::sleep(&slot.value, ticket.value, timeout.min(SLICE));
        slot.sleepers.fetch_sub(1, Ordering::SeqCst);
        slept
    }

    /// Returns the store's statistics, which last as long as the store's files.
    pub(crate) fn counters(&self) -> &Counters {
        &self.header().counters
    }

    /// Marks the generation of this bell as replaced, and wakes all waiters.
    pub(crate) fn retire(&self) {
        self.header().retired.store(1, Ordering::SeqCst);
        for slot in 0..SLOTS {
            let slot = self.slot(slot);
            slot.value.fetch_add(1, Ordering::SeqCst);
            futex::wake(&slot.value, i32::MAX);
        }
    }

    /// Clears the marks and counts that killed processes left. The caller must be the only process that has the file open.
    pub(crate) fn begin_anew(&self) {
        self.header().retired.store(0, Ordering::SeqCst);
        self.header().waiting.store(0, Ordering::SeqCst);
        self.header().turn.store(0, Ordering::SeqCst);
        for slot in 0..SLOTS {
            self.slot(slot).sleepers.store(0, Ordering::SeqCst);
        }
    }

    /// Whether any process has called [`Bell::retire`].
    pub(crate) fn is_retired(&self) -> bool {
        self.header().retired.load(Ordering::SeqCst) != 0
    }

    /// Records whether a part of the store's ballast was released and not yet allocated again.
    pub(crate) fn set_ballast_missing(&self, missing: bool) {
        self.header().ballast_missing.store(missing.into(), Ordering::SeqCst);
    }

    /// Whether any process has recorded that the ballast is missing.
    pub(crate) fn is_ballast_missing(&self) -> bool {
        self.header().ballast_missing.load(Ordering::Relaxed) != 0
    }

    /// Counts a thread that begins (1) or ends (-1) to wait for a mutex of the store.
    pub(crate) fn count_waiting(&self, by: i32) {
        self.header().waiting.fetch_add(by.cast_unsigned(), Ordering::SeqCst);
    }

    /// Whether any thread waits for a mutex of the store.
    pub(crate) fn is_anybody_waiting(&self) -> bool {
        self.header().waiting.load(Ordering::SeqCst) != 0
    }

    /// Announces that this writer is about to sleep in the writers' queue. The caller must then check again whether it has to wait.
    pub(crate) fn want_turn(&self) {
        self.header().turn.store(1, Ordering::SeqCst);
    }

    /// Sleeps until a writer that observed [`Bell::want_turn`] has finished, for at most `timeout`.
    pub(crate) fn await_turn(&self, timeout: Duration) {
        futex::sleep(&self.header().turn, 1, timeout);
    }

    /// Wakes one sleeping writer, if any has announced itself.
    pub(crate) fn give_turn(&self) {
        let turn = &self.header().turn;
        if turn.load(Ordering::SeqCst) != 0 && turn.swap(0, Ordering::SeqCst) != 0 {
            futex::wake(turn, 1);
        }
    }

    /// Consumes the wake-up of a sleeper, as a sleeper does that is woken and then killed.
    #[cfg(test)]
    pub(crate) fn lose_turn(&self) {
        self.header().turn.store(0, Ordering::SeqCst);
    }

    fn header(&self) -> &Header {
        // SAFETY: the map is longer than a Header, page-aligned, and any bytes are valid atomics.
        unsafe { self.map.cast::<Header>().as_ref() }
    }

    fn slot(&self, slot: usize) -> &Slot {
        assert!(slot < SLOTS);
        // SAFETY: BYTES includes SLOTS slots behind the header, whose size keeps them aligned; any bytes are valid atomics.
        unsafe { self.map.add(HEADER).cast::<Slot>().add(slot).as_ref() }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.map.as_ptr().cast(), Self::BYTES as usize) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    fn sleeper(bell: &Arc<Bell>, ring: Ring) -> thread::JoinHandle<Slept> {
        let (ticket, bell) = (bell.listen(ring), bell.clone());
        thread::spawn(move || bell.sleep(ticket, SLICE))
    }

    #[test]
    fn g9_a_ring_ends_the_sleep_of_every_waiter_that_listened_before_it() {
        let bell = Arc::new(Bell::in_memory().unwrap());
        let ring = Ring::Record(Digest([1; 16]));
        // Before the sleep: the counter has another value already.
        let ticket = bell.listen(ring);
        bell.ring(ring);
        assert_eq!(bell.sleep(ticket, SLICE), Slept::Rung);
        // During the sleep.
        let sleeper = sleeper(&bell, ring);
        while bell.slot(ring.slot()).sleepers.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        bell.ring(ring);
        assert_eq!(sleeper.join().unwrap(), Slept::Rung);
        assert_eq!(bell.slot(ring.slot()).sleepers.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_sleep_without_a_ring_ends_with_its_time() {
        let bell = Bell::in_memory().unwrap();
        let ticket = bell.listen(Ring::Record(Digest([1; 16])));
        assert_eq!(bell.sleep(ticket, Duration::from_millis(1)), Slept::TimedOut);
    }

    #[test]
    fn processes_that_map_one_file_share_a_bell() {
        let file = tempfile::tempfile().unwrap();
        assert!(Bell::in_file(&file).is_err(), "the file is too short");
        file.set_len(Bell::BYTES).unwrap();
        let [ours, theirs] = [(); 2].map(|()| Bell::in_file(&file).unwrap());
        let ring = Ring::Owner(Digest([1; 16]), OwnerToken([2; 16]));
        let ticket = ours.listen(ring);
        theirs.ring(ring);
        assert_eq!(ours.sleep(ticket, SLICE), Slept::Rung);
        theirs.counters().add(Counter::Waits, 3);
        assert_eq!(ours.counters().get(Counter::Waits), 3);
        theirs.retire();
        assert!(ours.is_retired());
    }
}
