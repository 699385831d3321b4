//! The record of a session: all of its state but the payloads. How it is written to bytes: [`super::encoding`].

use std::collections::VecDeque;

use super::payload::Payload;
use super::words::{LateReason, OwnerKind};
use crate::clock::Millis;
use crate::error::StoreError;
use crate::ids::{Digest, OwnerToken, RequestId};
use crate::kind::IndexKey;
use crate::process::Process;
use crate::settings::MAX_QUEUE;

/// About what of a record is there in every session, with its keys and what is remembered.
const FIXED_BYTES: usize = 512;

/// Beyond every time, count and sum that a record comes to: sums of a few of these do not overflow. A power of two: no bit of it
/// or above is set in any of them.
const BEYOND: u64 = 1 << 60;

/// How many requests that did not end with a claimed answer are remembered, so that a late response is told why it is late.
const REMEMBERED: usize = 32;

/// A session's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The session's id, since rows are keyed by its digest.
    pub(crate) id: String,
    /// Random: tells a session from an earlier one with the same id (G7).
    pub(crate) incarnation: u64,
    /// Whom it belongs to (G12).
    pub(crate) principal: Option<Digest>,
    pub(crate) created: Millis,
    /// When the session was last changed; reads renew it only when less than 3/4 of the TTL remains.
    pub(crate) last_active: Millis,
    pub(crate) ttl: Millis,
    /// Where the store's index of expiry has this session.
    pub(crate) indexed: IndexKey,
    /// How many owners have been attached so far.
    pub(crate) exchanges: u32,
    pub(crate) next_owner: u32,
    /// The session's first server request id, random, and the next one.
    pub(crate) first_request: i64,
    pub(crate) next_request: i64,
    pub(crate) next_broadcast: u64,
    /// Bytes of messages and responses.
    pub(crate) message_bytes: u64,
    pub(crate) attribute_bytes: u64,
    /// How many attributes there are; 0 where the record does not know.
    pub(crate) attributes: u64,
    pub(crate) owners: Vec<Owner>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) broadcasts: VecDeque<Broadcast>,
    pub(crate) ended: VecDeque<(i64, LateReason)>,
    pub(crate) late: [u32; LateReason::COUNT],
    /// Whether it knows since when its owners, its pending requests and its requests in flight are there, and how many attributes
    /// it has. Sessions of older builds do not, and stay as they are: processes of such a build may serve them still.
    pub(crate) is_timed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) token: OwnerToken,
    /// Names the owner within the session, in keys and in pending requests; never used twice.
    pub(crate) number: u32,
    pub(crate) kind: OwnerKind,
    pub(crate) lease: Millis,
    pub(crate) lease_until: Millis,
    pub(crate) process: Process,
    /// When it was attached; 0 where that is not known, as of every `since`.
    pub(crate) since: Millis,
    /// Its queue: messages `head..tail`.
    pub(crate) head: u64,
    pub(crate) tail: u64,
    /// The bytes of each, 0 for a broadcast it holds: what an operation does to the record never depends on a message's body.
    pub(crate) sizes: VecDeque<u32>,
    pub(crate) bytes: u64,
    /// Counts what has happened to the owner; the newest event of each interest is what a waiter compares with.
    pub(crate) events: u64,
    pub(crate) resolved_at: u64,
    pub(crate) message_at: u64,
    pub(crate) cancelled_at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) id: i64,
    pub(crate) owner: u32,
    pub(crate) deadline: Millis,
    pub(crate) method: String,
    /// When it was registered.
    pub(crate) since: Millis,
    pub(crate) state: PendingState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingState {
    Waiting,
    /// The response is the payload of this id; `event` orders what is resolved.
    Answered {
        event: u64,
        bytes: u32,
    },
    TimedOut {
        event: u64,
    },
    Cancelled {
        event: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) id: RequestId,
    pub(crate) owner: u32,
    pub(crate) cancelled: bool,
    /// When it began.
    pub(crate) since: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broadcast {
    pub(crate) number: u64,
    pub(crate) bytes: u32,
    /// The owner that peeked it, and its sequence number there.
    pub(crate) holder: Option<(u32, u64)>,
}

impl Record {
    /// What operations rely on: that the record agrees with itself. What it contradicts.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let ensure = |holds: bool, else_: &'static str| if holds { Ok(()) } else { Err(else_) };
        let owner = |number: u32| {
            let at = self.owners.binary_search_by_key(&number, |owner| owner.number);
            at.map(|at| &self.owners[at]).map_err(|_| "it names an owner that is not there")
        };
        let numbers = [self.created, self.last_active, self.ttl, self.indexed.at, self.next_broadcast];
        let sums = [self.message_bytes, self.attribute_bytes, self.attributes];
        let requests = [self.first_request, self.next_request].map(i64::unsigned_abs);
        let of_owners = self
            .owners
            .iter()
            .flat_map(|owner| [owner.lease, owner.lease_until, owner.head, owner.tail, owner.bytes, owner.events]);
        let deadlines = self.pending.iter().map(|pending| pending.deadline);
        let all = numbers.into_iter().chain(sums).chain(requests).chain(of_owners).chain(deadlines).chain(self.since());
        ensure(all.fold(0, |any, number| any | number) < BEYOND, "a time, a count or a sum is too large")?;
        ensure(self.ended.len() <= REMEMBERED, "it remembers too many requests")?;
        ensure(self.owners.is_sorted_by(|a, b| a.number < b.number), "its owners are not in order")?;
        ensure(self.owners.last().is_none_or(|last| last.number < self.next_owner), "a new owner's number is taken")?;
        for owner in &self.owners {
            let queued = owner.tail.checked_sub(owner.head).ok_or("a queue ends before it begins")?;
            ensure(queued <= MAX_QUEUE + self.broadcasts.len() as u64, "a queue is too long")?;
            ensure(owner.sizes.len() as u64 == queued, "a queue has other messages than sizes")?;
            let bytes: u64 = owner.sizes.iter().map(|&bytes| u64::from(bytes)).sum();
            ensure(bytes == owner.bytes, "a queue's messages are not as long as it is")?;
        }
        self.pending.iter().map(|pending| pending.owner).try_for_each(|number| owner(number).map(|_| ()))?;
        self.in_flight.iter().map(|request| request.owner).try_for_each(|number| owner(number).map(|_| ()))?;
        for (number, sequence) in self.broadcasts.iter().filter_map(|broadcast| broadcast.holder) {
            let holder = owner(number)?;
            ensure((holder.head..holder.tail).contains(&sequence), "a broadcast is held outside of a queue")?;
        }
        let queues = self.owners.iter().map(|owner| owner.bytes);
        let broadcasts = self.broadcasts.iter().map(|broadcast| u64::from(broadcast.bytes));
        let responses = self.pending.iter().filter_map(|pending| match pending.state {
            PendingState::Answered { bytes, .. } => Some(u64::from(bytes)),
            _ => None,
        });
        let held = queues.chain(broadcasts).chain(responses).try_fold(0_u64, u64::checked_add);
        ensure(held.is_some_and(|held| held <= self.message_bytes), "it accounts for fewer bytes than it holds")
    }

    /// Takes a row out of an account of bytes.
    pub(crate) fn without(account: u64, row: u64) -> Result<u64, StoreError> {
        let damaged = || StoreError::corrupt("of this session", "a row is longer than what its record accounts for");
        account.checked_sub(row).ok_or_else(damaged)
    }

    /// Remembers how a request ended, for its late response.
    pub(crate) fn remember(&mut self, id: i64, reason: LateReason) {
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, reason));
    }

    /// When the session expires unless something happens.
    pub(crate) fn expires(&self) -> Millis {
        self.last_active + self.ttl
    }

    /// The session's bytes that count against its limit: what others chose the length of.
    pub(crate) fn bytes(&self) -> u64 {
        let methods: usize = self.pending.iter().map(|pending| pending.method.len()).sum();
        let ids: usize = self.in_flight.iter().map(|request| request.id.text_bytes()).sum();
        self.message_bytes + self.attribute_bytes + (methods + ids) as u64
    }

    /// About what the session takes of the store. It depends on what there is and not on the state that is in, so what only
    /// removes something, or resolves it, does not grow.
    pub(crate) fn footprint(&self) -> u64 {
        let entries = size_of_val(self.owners.as_slice())
            + size_of_val(self.pending.as_slice())
            + size_of_val(self.in_flight.as_slice())
            + self.broadcasts.len() * size_of::<Broadcast>();
        self.bytes() + (FIXED_BYTES + self.id.len() + entries) as u64
    }

    /// Since when its owners, its pending requests and its requests in flight are there.
    pub(super) fn since(&self) -> impl Iterator<Item = Millis> {
        let owners = self.owners.iter().map(|owner| owner.since);
        let pending = self.pending.iter().map(|pending| pending.since);
        owners.chain(pending).chain(self.in_flight.iter().map(|request| request.since))
    }

    /// The same, to be changed.
    pub(super) fn since_mut(&mut self) -> impl Iterator<Item = &mut Millis> {
        let owners = self.owners.iter_mut().map(|owner| &mut owner.since);
        let pending = self.pending.iter_mut().map(|pending| &mut pending.since);
        owners.chain(pending).chain(self.in_flight.iter_mut().map(|request| &mut request.since))
    }

    /// What is noted as the beginning of something that begins now.
    pub(super) fn beginning(&self, now: Millis) -> Millis {
        if self.is_timed { now } else { 0 }
    }

    /// Moves all times: for a store that has outlived the clock of its boot.
    pub(crate) fn move_in_time(&mut self, shift: impl Fn(Millis) -> Millis) {
        let times = [&mut self.created, &mut self.last_active, &mut self.indexed.at];
        let owners = self.owners.iter_mut().map(|owner| &mut owner.lease_until);
        let deadlines = self.pending.iter_mut().map(|pending| &mut pending.deadline);
        for time in times.into_iter().chain(owners).chain(deadlines) {
            *time = shift(*time);
        }
        for since in self.since_mut().filter(|since| **since > 0) {
            *since = shift(*since).max(1);
        }
    }

    /// The payloads the record says are there, attributes excepted.
    pub(crate) fn payloads(&self) -> Vec<Payload> {
        let held = |owner: u32, sequence: u64| {
            self.broadcasts.iter().any(|broadcast| broadcast.holder == Some((owner, sequence)))
        };
        let queued = self.owners.iter().flat_map(|owner| {
            (owner.head..owner.tail).map(|sequence| Payload::Outgoing { owner: owner.number, sequence })
        });
        let queued = queued.filter(|payload| match payload {
            Payload::Outgoing { owner, sequence } => !held(*owner, *sequence),
            _ => true,
        });
        let broadcasts = self.broadcasts.iter().map(|broadcast| Payload::Broadcast(broadcast.number));
        let answered = self.pending.iter().filter(|pending| matches!(pending.state, PendingState::Answered { .. }));
        let responses = answered.map(|pending| Payload::Response(pending.id));
        queued.chain(broadcasts).chain(responses).collect()
    }

    /// What there is to say when so many attributes are there.
    pub(crate) fn miscounted(&self, attributes: u64) -> Option<String> {
        (self.is_timed && self.attributes != attributes).then(|| {
            format!("session {}: {attributes} attributes are there, {} are accounted for", self.id, self.attributes)
        })
    }

    /// The session's incarnation.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }
}
