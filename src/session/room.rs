//! The waiting room of a store: how many exchanges wait for their clients at once, in all its sessions and processes.
//!
//! It is a record like a session's, so each kind of store changes it atomically, and each exchange that waits is one of its
//! owners. Its id has a blank, which no session's has, and it stands in no index and no count of sessions: nobody can open, list,
//! evict or destroy it. A place ends as owners end: when its exchange leaves, or when its process has died, for which it is looked
//! as soon as the room is full; where the process cannot be seen, the lease decides.

use super::payload::Payload;
use super::record::Record;
use super::transition::{Handle, Transition};
use super::words::OwnerKind;
use crate::clock::Millis;
use crate::error::LimitExceeded;
use crate::ids::{Digest, OwnerToken, SessionId};
use crate::kind::{AttributeKey, IndexKey, RecordChange, Refusal, Step};
use crate::process::{Liveness, Process};
use crate::settings::Limit;

/// How long a server keeps a room that nobody enters.
const KEPT_MS: Millis = 3_600_000;

/// The attribute that says how many places whoever entered last gave the room.
const PLACES: &str = "max_waiting";

/// A place that was taken: by which process, and until when its lease lasts.
pub(crate) type Place = (Process, Millis);

impl Record {
    /// The room's key in a store.
    pub(crate) fn room_key() -> Digest {
        Digest::of(SessionId::of_room().as_str().as_bytes())
    }

    /// Whether this is the room, and no session.
    pub(crate) fn is_room(&self) -> bool {
        self.id == SessionId::of_room().as_str()
    }

    fn room(now: Millis, is_timed: bool) -> Self {
        Self {
            id: SessionId::of_room().as_str().to_owned(),
            incarnation: Handle::of_room().incarnation,
            principal: None,
            created: now,
            last_active: now,
            ttl: KEPT_MS,
            indexed: IndexKey::default(),
            exchanges: 0,
            next_owner: 1,
            first_request: 1,
            next_request: 1,
            next_broadcast: 1,
            message_bytes: 0,
            attribute_bytes: 0,
            attributes: 0,
            owners: Vec::new(),
            pending: Vec::new(),
            in_flight: Vec::new(),
            broadcasts: Default::default(),
            ended: Default::default(),
            late: Default::default(),
            is_timed,
        }
    }
}

impl Handle {
    /// The room as every process holds it: there is one, for ever.
    pub fn of_room() -> Self {
        Self { id: SessionId::of_room(), incarnation: 1, principal: None }
    }
}

impl Transition<'_> {
    /// Takes one of `places`, if one is free.
    pub fn enter_room(&mut self, token: OwnerToken, lease: Millis, process: Process, places: u64) -> Step<()> {
        if self.record.is_none() {
            self.record = Some(Box::new(Record::room(self.now(), self.context.settings.is_timed)));
            self.effects.record = RecordChange::Write;
        }
        self.release_dead_owners()?;
        if self.record().owners.len() as u64 >= places {
            self.release_places_of_the_dead()?;
        }
        let waiting = self.record().owners.len() as u64 + 1;
        if waiting > places {
            return Err(LimitExceeded { limit: Limit::Waiting, maximum: places, actual: waiting }.into());
        }
        let (key, places) = (places_key(), places.to_string().into_bytes());
        if self.payload(&key)?.as_ref() != Some(&places) {
            self.put(key, places);
        }
        self.add_owner(token, OwnerKind::Reply, lease, process)
    }

    /// The places that are taken, and how many there were for whoever entered last.
    pub fn room(&self) -> Step<(Vec<Place>, Option<u64>)> {
        let Some(record) = &self.record else { return Ok((Vec::new(), None)) };
        let places = self.payload(&places_key())?.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        Ok((record.owners.iter().map(|owner| (owner.process, owner.lease_until)).collect(), places))
    }

    fn release_places_of_the_dead(&mut self) -> Step<()> {
        let (mut dead, mut unsure) = (Vec::new(), Vec::new());
        for owner in &self.record().owners {
            match self.liveness(&owner.process) {
                Ok(Liveness::Dead) => dead.push(owner.token),
                Ok(_) => {}
                Err(Refusal::Unsure(processes)) => unsure.extend(processes),
                Err(refusal) => return Err(refusal),
            }
        }
        if !unsure.is_empty() {
            unsure.dedup();
            return Err(Refusal::Unsure(unsure));
        }
        self.release_all(&dead);
        Ok(())
    }
}

fn places_key() -> Payload {
    Payload::Attribute(AttributeKey::new(PLACES).expect("it is an attribute's key"))
}
