//! Owners attach, are renewed, and end.
//!
//! An owner ends once: by `detach`, or by being released when it is dead. What it leaves is released with it: its messages are
//! dropped, broadcasts it only peeked return to the session, its pending requests are abandoned, its in-flight requests end.

use std::collections::VecDeque;

use super::payload::Payload;
use super::record::{Owner, PendingState};
use super::transition::{Transition, owner_expired};
use super::words::{LateReason, OwnerKind};
use crate::clock::Millis;
use crate::counter::Counter;
use crate::error::StoreError;
use crate::ids::OwnerToken;
use crate::kind::{Refusal, Step};
use crate::process::Process;
use crate::settings::Limit;

/// What an owner left behind when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detached {
    /// Messages of its own that nobody took.
    pub dropped_messages: u64,
    /// Requests of its own that were waiting, or whose answer was not claimed.
    pub abandoned_pending: u64,
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// A pending request of the owner ended: answered, timed out, or cancelled.
    pub resolution: bool,
    /// A message for the owner is queued.
    pub message: bool,
    /// The client cancelled a request the owner is processing.
    pub cancellation: bool,
}

impl Interest {
    /// Everything.
    pub const ALL: Interest = Interest { resolution: true, message: true, cancellation: true };
    /// Only the end of pending requests.
    pub const RESOLUTION: Interest = Interest { resolution: true, message: false, cancellation: false };
    /// Only messages.
    pub const MESSAGE: Interest = Interest { resolution: false, message: true, cancellation: false };
    /// Only cancellations.
    pub const CANCELLATION: Interest = Interest { resolution: false, message: false, cancellation: true };
}

/// What a waiter sees when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Something of interest is there; the number, of the newest event of the interest, is to be given as `after` to wait for
    /// what comes later.
    Ready(u64),
    /// Nothing is; the next deadline of a request of the owner, if any, is when to look again at the latest.
    NotYet(Option<Millis>),
}

impl Transition<'_> {
    /// Adds an owner. Dead owners are released on the way.
    pub fn attach(&mut self, token: OwnerToken, kind: OwnerKind, lease: Millis, process: Process) -> Step<()> {
        self.release_dead_owners()?;
        self.within(Limit::Owners, self.record().owners.len() as u64 + 1)?;
        self.add_owner(token, kind, lease, process)
    }

    pub(super) fn add_owner(
        &mut self,
        token: OwnerToken,
        kind: OwnerKind,
        lease: Millis,
        process: Process,
    ) -> Step<()> {
        let now = self.now();
        let record = self.record_mut();
        let (number, since) = (record.next_owner, record.beginning(now));
        record.next_owner = number.checked_add(1).ok_or_else(|| {
            StoreError::corrupt("of this session", "it has used up the numbers of its owners; destroy it")
        })?;
        record.exchanges = record.exchanges.saturating_add(1);
        record.owners.push(Owner {
            token,
            number,
            kind,
            lease,
            lease_until: now + lease,
            process,
            since,
            head: 1,
            tail: 1,
            sizes: VecDeque::new(),
            bytes: 0,
            events: 0,
            resolved_at: 0,
            message_at: 0,
            cancelled_at: 0,
        });
        // Broadcasts that wait are news to a new stream.
        let index = self.record().owners.len() - 1;
        if self.has_messages(index) {
            let event = self.wake_owner(index);
            self.edit().owners[index].message_at = event;
        }
        Ok(())
    }

    /// Renews the owner's lease.
    pub fn renew(&mut self, token: &OwnerToken) -> Step<()> {
        let index = self.owner(token)?;
        self.renew_lease(index);
        Ok(())
    }

    /// Ends the owner; nothing when it has ended already.
    pub fn detach(&mut self, token: &OwnerToken) -> Step<Option<Detached>> {
        let Some(index) = self.record().owners.iter().position(|owner| owner.token == *token) else {
            return Ok(None);
        };
        self.record_mut();
        Ok(Some(self.release(index)))
    }

    /// What an owner that waits sees. Deadlines that have passed become events. An event of what it is not interested in does
    /// not count: who waits for something else later must not miss it.
    pub fn look(&mut self, token: &OwnerToken, interest: Interest, after: u64) -> Step<Readiness> {
        let index = self.owner(token)?;
        self.note_passed_deadlines(index);
        let record = self.record();
        let owner = &record.owners[index];
        let is_own = |number: u32| number == owner.number;
        let mut own = record.pending.iter().filter(|pending| is_own(pending.owner));
        let ready = (interest.resolution
            && owner.resolved_at > after
            && own.clone().any(|pending| pending.state != PendingState::Waiting))
            || (interest.message && owner.message_at > after && self.has_messages(index))
            || (interest.cancellation
                && owner.cancelled_at > after
                && record.in_flight.iter().any(|request| is_own(request.owner) && request.cancelled));
        if ready {
            let newest = [
                (interest.resolution, owner.resolved_at),
                (interest.message, owner.message_at),
                (interest.cancellation, owner.cancelled_at),
            ];
            let newest = newest.into_iter().filter(|&(asked, _)| asked).map(|(_, event)| event).max();
            return Ok(Readiness::Ready(newest.unwrap_or(after)));
        }
        let deadline =
            own.by_ref().filter(|pending| pending.state == PendingState::Waiting).map(|pending| pending.deadline).min();
        Ok(Readiness::NotYet(deadline))
    }

    /// Releases owners that are dead. How many.
    pub fn release_dead_owners(&mut self) -> Step<u64> {
        let now = self.now();
        let mut dead = Vec::new();
        let mut unsure = Vec::new();
        for owner in self.record().owners.iter().filter(|owner| owner.lease_until <= now) {
            match self.lives(owner) {
                Ok(true) => {}
                Ok(false) => dead.push(owner.token),
                Err(Refusal::Unsure(processes)) => unsure.extend(processes),
                Err(refusal) => return Err(refusal),
            }
        }
        if !unsure.is_empty() {
            return Err(Refusal::Unsure(unsure));
        }
        Ok(self.release_all(&dead))
    }

    /// Releases every owner: for a store whose processes all belong to the past. How many.
    pub fn release_everybody(&mut self) -> u64 {
        let everybody: Vec<_> = self.record().owners.iter().map(|owner| owner.token).collect();
        self.release_all(&everybody)
    }

    pub(super) fn release_all(&mut self, tokens: &[OwnerToken]) -> u64 {
        for token in tokens {
            if let Some(index) = self.record().owners.iter().position(|owner| owner.token == *token) {
                self.release(index);
                self.ring(*token);
                self.effects.counts.push(Counter::OwnersReleased);
            }
        }
        tokens.len() as u64
    }

    fn release(&mut self, index: usize) -> Detached {
        self.note_passed_deadlines(index);
        let owner = self.edit().owners.remove(index);
        let record = self.edit();
        let mut returned = Vec::new();
        for broadcast in &mut record.broadcasts {
            if let Some((holder, sequence)) = broadcast.holder
                && holder == owner.number
            {
                broadcast.holder = None;
                returned.push(sequence);
            }
        }
        record.message_bytes -= owner.bytes;
        record.in_flight.retain(|request| request.owner != owner.number);
        let (own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut record.pending).into_iter().partition(|pending| pending.owner == owner.number);
        record.pending = others;
        let mut detached = Detached::default();
        for pending in own {
            let record = self.edit();
            match pending.state {
                PendingState::Waiting => record.remember(pending.id, LateReason::Abandoned),
                PendingState::Answered { bytes, .. } => {
                    record.message_bytes -= u64::from(bytes);
                    record.remember(pending.id, LateReason::Abandoned);
                    self.delete(Payload::Response(pending.id));
                }
                PendingState::TimedOut { .. } => {
                    record.remember(pending.id, LateReason::TimedOut);
                    continue;
                }
                PendingState::Cancelled { .. } => {
                    record.remember(pending.id, LateReason::Cancelled);
                    continue;
                }
            }
            detached.abandoned_pending += 1;
        }
        for sequence in (owner.head..owner.tail).filter(|sequence| !returned.contains(sequence)) {
            self.delete(Payload::Outgoing { owner: owner.number, sequence });
            detached.dropped_messages += 1;
        }
        if !returned.is_empty() {
            self.announce_broadcasts();
        }
        detached
    }

    /// The owner's place in the record. Its lease is renewed when less than 3/4 of it remains, as by each of its operations.
    pub(super) fn owner(&mut self, token: &OwnerToken) -> Step<usize> {
        let record = self.record();
        let index =
            record.owners.iter().position(|owner| owner.token == *token).ok_or_else(|| owner_expired(record, token))?;
        let owner = &record.owners[index];
        if owner.lease_until.saturating_sub(self.now()) < owner.lease / 4 * 3 {
            self.renew_lease(index);
        }
        Ok(index)
    }

    fn renew_lease(&mut self, index: usize) {
        let now = self.now();
        let owner = &mut self.record_mut().owners[index];
        owner.lease_until = now + owner.lease;
    }

    /// Gives the owner its next event, rings its bell so that a wait of it wakes, and returns the number of the event.
    pub(super) fn wake_owner(&mut self, index: usize) -> u64 {
        let owner = &mut self.edit().owners[index];
        owner.events += 1;
        let (token, event) = (owner.token, owner.events);
        self.ring(token);
        event
    }
}
