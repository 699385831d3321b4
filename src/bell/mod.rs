//! Wake-ups: a writer rings after its commit, a waiter never misses it (G9).
//!
//! A bell is a table of counters, in a file that every process maps or in the memory of one process; each owner of each session
//! has one, chosen by hash, perhaps shared with others. Protocol:
//!
//! * writer: commit, add one to the counter, wake its sleepers;
//! * waiter: read the counter ([`Bell::listen`]), look at the state, sleep while the counter still has that value.
//!
//! Whatever is committed after the look changes the counter before or during the sleep, so the sleep ends. A ring for somebody
//! else who shares the counter costs one look. A writer killed between commit and ring is why every sleep is bounded by
//! [`SLICE`].
//!
//! Each counter has a count of its sleepers beside it, so that a ring nobody waits for makes no system call. A sleeper that is
//! killed leaves its count behind: rings of that counter then make a call too many, nothing worse.

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

/// The longest sleep: the net for a writer that was killed between commit and ring.
pub(crate) const SLICE: Duration = Duration::from_secs(1);

/// Whom to ring for, in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ring {
    /// An owner of a record.
    Owner(Digest, OwnerToken),
    /// Everybody who listens to a record: the listeners of a topic.
    Record(Digest),
    /// Everybody who listens to something that many records share.
    Shared(Digest),
}

impl Ring {
    /// The counter: tokens and digests are random already, so any of their bits spread evenly.
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

/// What a waiter heard: the counter's place and value before it looked at the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    slot: usize,
    value: u32,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// It was rung: look again.
    Rung,
    /// The time was over: look again.
    TimedOut,
    /// A signal arrived.
    Interrupted,
}

/// How many counters there are.
const SLOTS: usize = 8192;
/// Bytes before the first counter.
const HEADER: usize = 4096;

#[repr(C)]
struct Slot {
    value: AtomicU32,
    sleepers: AtomicU32,
}

/// The first page: the generation's fate, and what the store counts.
#[repr(C)]
struct Header {
    retired: AtomicU32,
    ballast_missing: AtomicU32,
    counters: Counters,
    /// How many wait for a mutex of the store; killed ones stay counted.
    waiting: AtomicU32,
    /// 1 while a writer may sleep until another one is done.
    turn: AtomicU32,
}

/// A mapped bell.
pub(crate) struct Bell {
    map: NonNull<u8>,
}

// SAFETY: the mapping is only reached through atomics, and lives as long as the value.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// A bell's size in bytes; all of a file's is allocated before it is mapped.
    pub(crate) const BYTES: u64 = (HEADER + SLOTS * size_of::<Slot>()) as u64;

    /// A bell for all processes that map `file`, which must be at least [`Bell::BYTES`] long and allocated.
    pub(crate) fn in_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < Self::BYTES {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the bell file is too short"));
        }
        Self::map(libc::MAP_SHARED, file.as_raw_fd())
    }

    /// A bell for the threads of this process.
    pub(crate) fn in_memory() -> io::Result<Self> {
        Self::map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    fn map(flags: libc::c_int, file: libc::c_int) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), Self::BYTES as usize, protection, flags, file, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { map: NonNull::new(map.cast()).expect("a mapping is not at 0") })
    }

    /// Wakes whoever listens for `ring`.
    pub(crate) fn ring(&self, ring: Ring) {
        let slot = self.slot(ring.slot());
        slot.value.fetch_add(1, Ordering::SeqCst);
        if slot.sleepers.load(Ordering::SeqCst) != 0 {
            futex::wake(&slot.value, i32::MAX);
        }
    }

    /// Takes the counter's value, to be compared when going to sleep.
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

    /// What the store counts; kept here because it lives as long as the store's files.
    pub(crate) fn counters(&self) -> &Counters {
        &self.header().counters
    }

    /// Says that the files beside this bell are no longer the store, and wakes everybody to see it.
    pub(crate) fn retire(&self) {
        self.header().retired.store(1, Ordering::SeqCst);
        for slot in 0..SLOTS {
            let slot = self.slot(slot);
            slot.value.fetch_add(1, Ordering::SeqCst);
            futex::wake(&slot.value, i32::MAX);
        }
    }

    /// For whoever is alone with the file: it is the store's, and nobody sleeps, whatever killed processes have left in it.
    pub(crate) fn begin_anew(&self) {
        self.header().retired.store(0, Ordering::SeqCst);
        self.header().waiting.store(0, Ordering::SeqCst);
        self.header().turn.store(0, Ordering::SeqCst);
        for slot in 0..SLOTS {
            self.slot(slot).sleepers.store(0, Ordering::SeqCst);
        }
    }

    /// Whether [`Bell::retire`] was called by any process.
    pub(crate) fn is_retired(&self) -> bool {
        self.header().retired.load(Ordering::SeqCst) != 0
    }

    /// Says whether the store's ballast has been given up, and not been taken back whole.
    pub(crate) fn set_ballast_missing(&self, missing: bool) {
        self.header().ballast_missing.store(missing.into(), Ordering::SeqCst);
    }

    /// Whether the ballast is missing, by any process's word.
    pub(crate) fn is_ballast_missing(&self) -> bool {
        self.header().ballast_missing.load(Ordering::Relaxed) != 0
    }

    /// Counts who begins (1) or ends (-1) to wait for a mutex of the store.
    pub(crate) fn count_waiting(&self, by: i32) {
        self.header().waiting.fetch_add(by.cast_unsigned(), Ordering::SeqCst);
    }

    /// Whether anybody waits for a mutex of the store.
    pub(crate) fn is_anybody_waiting(&self) -> bool {
        self.header().waiting.load(Ordering::SeqCst) != 0
    }

    /// Says that a writer is about to sleep until another one is done; to be followed by a look whether that is still needed.
    pub(crate) fn want_turn(&self) {
        self.header().turn.store(1, Ordering::SeqCst);
    }

    /// Sleeps until a writer is done that sees what [`Bell::want_turn`] said, for at most `timeout`.
    pub(crate) fn await_turn(&self, timeout: Duration) {
        futex::sleep(&self.header().turn, 1, timeout);
    }

    /// Wakes one of the writers that sleep, if there may be any.
    pub(crate) fn give_turn(&self) {
        let turn = &self.header().turn;
        if turn.load(Ordering::SeqCst) != 0 && turn.swap(0, Ordering::SeqCst) != 0 {
            futex::wake(turn, 1);
        }
    }

    /// Takes what is meant for a sleeper, as one does that is woken and killed.
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
        // SAFETY: BYTES leaves room for SLOTS slots behind the header, which keeps their alignment; any bytes are valid
        // atomics.
        unsafe { self.map.add(HEADER).cast::<Slot>().add(slot).as_ref() }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: map() made this mapping with this length, and no reference into it outlives self.
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
    fn g9_a_ring_ends_the_sleep_of_whoever_listened_before_it() {
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
