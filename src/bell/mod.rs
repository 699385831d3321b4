//! Wake-ups: a writer rings after its commit, a waiter never misses it (G9).
//!
//! A bell is a table of counters; each owner of each session has one, chosen by hash, perhaps shared with others. Protocol:
//!
//! * writer: commit, add one to the counter, wake its sleepers;
//! * waiter: read the counter ([`Bell::listen`]), look at the state, sleep while the counter still has that value.
//!
//! Whatever is committed after the look changes the counter before or during the sleep, so the sleep ends. A ring for somebody
//! else who shares the counter costs one look. A writer killed between commit and ring is why every sleep is bounded by
//! [`SLICE`].

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

mod counters;
#[cfg(unix)]
mod shared;

pub(crate) use counters::{Counter, Counters};
#[cfg(unix)]
pub(crate) use shared::SharedBell;

use crate::ids::{Digest, OwnerToken};

/// The longest sleep: the net for a writer that was killed between commit and ring.
pub(crate) const SLICE: Duration = Duration::from_secs(1);

/// Whom to ring for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ring {
    /// An owner of a session.
    Owner(Digest, OwnerToken),
    /// The listeners of a topic of the bus.
    Topic(Digest),
}

impl Ring {
    /// A number that spreads evenly: tokens and digests are random already.
    fn hash(self) -> u64 {
        let word = |bytes: [u8; 16]| u64::from_le_bytes(bytes[..8].try_into().expect("8 of 16 bytes"));
        match self {
            Ring::Owner(session, owner) => word(session.0).rotate_left(17) ^ word(owner.0),
            Ring::Topic(topic) => word(topic.0),
        }
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
    /// It was rung, or the time was over: look again.
    Look,
    /// A signal arrived.
    Interrupted,
}

/// Wakes waiters, within a process or across processes.
pub(crate) trait Bell: Send + Sync {
    /// Wakes whoever listens for `ring`.
    fn ring(&self, ring: Ring);
    /// Takes the counter's value, to be compared when going to sleep.
    fn listen(&self, ring: Ring) -> Ticket;
    /// Sleeps until the counter changes, for at most `timeout` and at most [`SLICE`].
    fn sleep(&self, ticket: Ticket, timeout: Duration) -> Slept;
    /// What the store counts; kept beside the bell because both live as long as the store's files.
    fn counters(&self) -> &Counters;
}

/// The bell of the memory store: for the threads of one process.
pub(crate) struct LocalBell {
    slots: Vec<Slot>,
    counters: Counters,
}

#[derive(Default)]
struct Slot {
    value: Mutex<u32>,
    changed: Condvar,
}

impl LocalBell {
    pub(crate) fn new() -> Self {
        Self { slots: (0..256).map(|_| Slot::default()).collect(), counters: Counters::default() }
    }

    fn slot(&self, ring: Ring) -> usize {
        (ring.hash() % self.slots.len() as u64) as usize
    }
}

impl Bell for LocalBell {
    fn ring(&self, ring: Ring) {
        let slot = &self.slots[self.slot(ring)];
        let mut value = slot.value.lock();
        *value = value.wrapping_add(1);
        slot.changed.notify_all();
    }

    fn listen(&self, ring: Ring) -> Ticket {
        let slot = self.slot(ring);
        Ticket { slot, value: *self.slots[slot].value.lock() }
    }

    fn sleep(&self, ticket: Ticket, timeout: Duration) -> Slept {
        let slot = &self.slots[ticket.slot];
        let mut value = slot.value.lock();
        slot.changed.wait_while_for(&mut value, |value| *value == ticket.value, timeout.min(SLICE));
        Slept::Look
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
