//! Sessions begin, are touched, and end.
//!
//! A session expires when it has been idle for its TTL and none of its owners lives. Once ended it stays ended: a handle names
//! an incarnation, and no operation but `create` makes a record (G7).

use super::record::Record;
use super::transition::{Handle, Transition, session_not_found};
use crate::clock::Millis;
use crate::counter::Counter;
use crate::ids::{Digest, SessionId};
use crate::kind::{Changes, Channel, IndexKey, Population, RecordChange, Refusal, Step, StoreView, belongs};
use crate::process::Liveness;
use crate::settings::Limit;

/// What is chosen for a new session outside of the state machine.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// Its id.
    pub id: SessionId,
    /// Random.
    pub incarnation: u64,
    /// Random: where the ids of the server's requests start.
    pub first_request: i64,
    /// Its idle time in milliseconds.
    pub ttl: Millis,
    /// Whom it belongs to.
    pub principal: Option<Digest>,
}

impl Transition<'_> {
    /// Makes the session unless its id is taken. Refuses it when the store or the principal has as many as it may.
    pub fn create(&mut self, new: &NewRecord, store: StoreView) -> Step<bool> {
        let replaces = match &self.record {
            Some(_) if self.is_there()? => return Ok(false),
            Some(old) => Some((old.indexed, old.principal)),
            None => None,
        };
        // The principal's limit first: whoever is over it does not make others give way.
        if new.principal.is_some() && replaces.map(|(_, principal)| principal) != Some(new.principal) {
            self.within(Limit::PrincipalSessions, store.of_principal + 1)?;
        }
        self.within(Limit::Sessions, store.records + u64::from(replaces.is_none()))?;
        let now = self.now();
        let indexed = IndexKey { settled: false, at: now + new.ttl };
        self.effects.purge = replaces.is_some();
        self.effects.index = Some((replaces.map(|(indexed, _)| indexed), Some(indexed)));
        self.effects.population = Some(match replaces {
            Some((_, principal)) => (Population::Replaced(principal), new.principal),
            None => (Population::Added, new.principal),
        });
        self.effects.counts.push(Counter::SessionsCreated);
        self.effects.record = RecordChange::Write;
        self.record = Some(Box::new(Record {
            id: new.id.as_str().to_owned(),
            incarnation: new.incarnation,
            principal: new.principal,
            created: now,
            last_active: now,
            ttl: new.ttl,
            indexed,
            exchanges: 0,
            next_owner: 1,
            first_request: new.first_request,
            next_request: new.first_request,
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
            is_timed: self.context.settings.is_timed,
        }));
        Ok(true)
    }

    /// The incarnation of the session, if it is there for this principal.
    pub fn open(&mut self, id: &SessionId, principal: Option<Digest>) -> Step<Option<u64>> {
        let found = match &self.record {
            Some(record) if record.id == id.as_str() && belongs(record.principal, principal) => self.is_there()?,
            _ => false,
        };
        Ok(found.then(|| self.record().incarnation))
    }

    /// The incarnation and principal of the session, whoever it belongs to: for whoever operates the store.
    pub fn open_as_operator(&mut self, id: &SessionId) -> Step<Option<(u64, Option<Digest>)>> {
        let found = match &self.record {
            Some(record) if record.id == id.as_str() => self.is_there()?,
            _ => false,
        };
        Ok(found.then(|| (self.record().incarnation, self.record().principal)))
    }

    /// Lets an operation in: the session of this handle is there. Renews its expiry when less than 3/4 remains.
    pub fn enter(&mut self, handle: &Handle) -> Step<()> {
        let found = match &self.record {
            Some(record) if record.incarnation == handle.incarnation && belongs(record.principal, handle.principal) => {
                self.is_there()?
            }
            _ => false,
        };
        if !found {
            return Err(session_not_found(handle.id.as_str()).into());
        }
        self.keep_from_expiring();
        Ok(())
    }

    /// Renews the session's expiry, whatever remains of it.
    pub fn touch(&mut self) -> Step<()> {
        self.record_mut();
        Ok(())
    }

    /// Ends the session for good and wakes everybody who waits in it.
    pub fn destroy(&mut self) -> Step<()> {
        let rings: Vec<_> = self.record().owners.iter().map(|owner| Channel::Owner(owner.token)).collect();
        self.effects.rings.extend(rings);
        let (indexed, principal) = (self.record().indexed, self.record().principal);
        self.effects.index = Some((Some(indexed), None));
        self.effects.population = Some((Population::Removed, principal));
        self.effects.record = RecordChange::Remove;
        self.effects.payloads = Changes::default();
        Ok(())
    }

    /// Ends the session if it has expired; else puts it where the index should have it. Whether it ended.
    pub fn collect(&mut self) -> Step<bool> {
        if self.record.is_none() {
            return Ok(false);
        }
        self.release_dead_owners()?;
        if self.is_there()? {
            self.move_in_index();
            return Ok(false);
        }
        self.destroy()?;
        Ok(true)
    }

    /// Ends the session if it may give way to a new one: nobody has it open and it has been idle for `least` milliseconds; else
    /// puts it where the index should have it. Whether it ended.
    ///
    /// The index is behind: a session it has too early was active since, and others are asked first.
    pub fn evict(&mut self, least: Millis) -> Step<bool> {
        if self.record.is_none() {
            return Ok(false);
        }
        self.release_dead_owners()?;
        let record = self.record();
        let idle = self.now().saturating_sub(record.last_active);
        let is_next = record.expires() <= record.indexed.at;
        if record.owners.is_empty() && idle >= least && is_next {
            self.destroy()?;
            return Ok(true);
        }
        self.move_in_index();
        Ok(false)
    }

    /// Whether the session of the record has neither expired nor lost its last owner after its TTL.
    fn is_there(&self) -> Step<bool> {
        let record = self.record();
        if self.now() < record.expires() || record.is_room() {
            return Ok(true);
        }
        let mut unsure = Vec::new();
        for owner in &record.owners {
            match self.lives(owner) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Refusal::Unsure(processes)) => unsure.extend(processes),
                Err(refusal) => return Err(refusal),
            }
        }
        if unsure.is_empty() { Ok(false) } else { Err(Refusal::Unsure(unsure)) }
    }

    /// Whether an owner is alive: within its lease; else while its process is, unless it has been silent for too long.
    pub(super) fn lives(&self, owner: &super::record::Owner) -> Step<bool> {
        let now = self.now();
        if now < owner.lease_until {
            return Ok(true);
        }
        let silent = now.saturating_sub(owner.lease_until.saturating_sub(owner.lease));
        if silent > self.record().longest_silence() {
            return Ok(false);
        }
        Ok(self.liveness(&owner.process)? == Liveness::Alive)
    }

    fn keep_from_expiring(&mut self) {
        let record = self.record();
        if record.expires().saturating_sub(self.now()) < record.ttl / 4 * 3 {
            self.record_mut();
        }
    }

    /// Lets the index follow an active session before its row's time comes, and at once when the session settles.
    pub(super) fn follow_in_index(&mut self) {
        let record = self.record();
        if record.is_room() {
            return;
        }
        let behind = record.expires().saturating_sub(record.indexed.at) > record.ttl / 2;
        let ahead = record.owners.is_empty() && record.indexed.at > record.expires();
        if behind || ahead || record.indexed.settled != is_settled(record) {
            self.move_in_index();
        }
    }

    /// Puts the session where the index should have it: at its expiry or, while it has owners, when to look again.
    fn move_in_index(&mut self) {
        let now = self.now();
        let record = self.record();
        let at = if record.owners.is_empty() { record.expires() } else { now + record.ttl };
        let place = IndexKey { settled: is_settled(record), at };
        let old = record.indexed;
        if place != old {
            self.edit().indexed = place;
            let before = self.effects.index.map_or(Some(old), |(before, _)| before);
            self.effects.index = Some((before, Some(place)));
        }
    }
}

fn is_settled(record: &Record) -> bool {
    record.exchanges > 1
}
