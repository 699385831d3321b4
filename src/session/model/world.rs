//! A store reduced to what the state machine sees of it, the processes that use it, and the facts to compare with.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use super::ghost::{Broken, Fate, Ghost, Kept, LEASE, Presence, SILENCE, Session, TTL, Text, keep, response};
use crate::clock::Millis;
use crate::counter::Counter;
use crate::error::{Error, StoreError};
use crate::ids::{Digest, OwnerToken};
use crate::process::{Liveness, Process};
use crate::session::record::PendingState;
use crate::session::{
    AttributeKey, Census, Channel, Context, Effects, Handle, IndexKey, Interest, OwnerKind, Payload, Population,
    Readiness, Record, RecordChange, Refusal, Step, Transition, Values,
};
use crate::settings::Settings;

/// Where the clients are: two streams of this machine, and a reply of a machine whose processes cannot be seen from here.
pub(super) const SLOTS: [(OwnerKind, u64); 3] =
    [(OwnerKind::Stream, HERE), (OwnerKind::Stream, HERE), (OwnerKind::Reply, AWAY)];
const HERE: u64 = 1;
const AWAY: u64 = 2;

/// A process, with the owner it attached.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Client {
    pub(super) handle: Handle,
    pub(super) token: OwnerToken,
    pub(super) process: Process,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct World {
    /// How many operations led here.
    pub(super) steps: usize,
    pub(super) now: Millis,
    pub(super) record: Option<Vec<u8>>,
    pub(super) payloads: BTreeMap<Payload, Vec<u8>>,
    pub(super) index: Option<IndexKey>,
    pub(super) sessions: i64,
    pub(super) of_principals: BTreeMap<Digest, i64>,
    pub(super) clients: [Option<Client>; SLOTS.len()],
    pub(super) ghost: Ghost,
    pub(super) broken: Option<Broken>,
}

/// Why an operation was refused.
pub(super) enum Failure {
    NotFound,
    OwnerExpired,
    Other(String),
}

/// What followed from one operation.
#[derive(Default)]
pub(super) struct Followed {
    pub(super) rings: Vec<OwnerToken>,
    pub(super) counts: Vec<Counter>,
}

/// The owners among those who are rung for: all there are of a session.
fn owners(rings: &[Channel]) -> Vec<OwnerToken> {
    let owner = |channel: &Channel| match channel {
        Channel::Owner(owner) => *owner,
        other => panic!("a session rings for {other:?}"),
    };
    rings.iter().map(owner).collect()
}

impl Values<Payload> for World {
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.payloads.get(key).cloned())
    }

    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, StoreError> {
        assert!(parent.is_none_or(|key| !key.as_str().contains('.')), "the model has one key");
        Ok(Vec::new())
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            steps: 0,
            now: 1_000_000_000,
            record: None,
            payloads: BTreeMap::new(),
            index: None,
            sessions: 0,
            of_principals: BTreeMap::new(),
            clients: Default::default(),
            ghost: Ghost::default(),
            broken: None,
        }
    }

    pub(super) fn decoded(&self) -> Option<Box<Record>> {
        self.record.as_ref().map(|bytes| Record::decode(bytes).expect("a record reads back"))
    }

    pub(super) fn liveness(&self, process: &Process) -> Liveness {
        let runs = self.clients.iter().flatten().any(|client| client.process == *process);
        match process.namespace {
            AWAY => Liveness::Unknown,
            _ if runs => Liveness::Alive,
            _ => Liveness::Dead,
        }
    }

    /// Whether the session of the facts is there.
    pub(super) fn presence(&self) -> Presence {
        match &self.ghost.session {
            Some(session) => session.presence(self.now, |process| self.liveness(process)),
            None => Presence::Gone,
        }
    }

    /// Runs an operation as an engine does: again when it is unsure of a process; and carries out its effects as a store does.
    pub(super) fn operate<T>(
        &mut self,
        handle: Option<&Handle>,
        mut operation: impl FnMut(&mut Transition<'_>) -> Step<T>,
    ) -> Kept<Result<(T, Followed), Failure>> {
        let mut census = Census::default();
        loop {
            let context = Context { now: self.now, settings: settings(), census: &census };
            let mut transition = Transition::new(self.decoded(), &*self, context);
            let entered = handle.map_or(Ok(()), |handle| transition.enter(handle));
            match entered.and_then(|()| operation(&mut transition)) {
                Ok(value) => {
                    let (record, effects) = transition.finish();
                    return Ok(Ok((value, self.carry_out(record, effects)?)));
                }
                Err(Refusal::Error(Error::SessionNotFound { .. })) => return Ok(Err(Failure::NotFound)),
                Err(Refusal::Error(Error::OwnerExpired { .. })) => return Ok(Err(Failure::OwnerExpired)),
                Err(Refusal::Error(error)) => return Ok(Err(Failure::Other(error.to_string()))),
                Err(Refusal::Unsure(processes)) => {
                    let news: Vec<_> = processes.into_iter().filter(|process| census.of(process).is_none()).collect();
                    keep("G8", !news.is_empty(), || "it asks for processes that it knows of".into())?;
                    for process in news {
                        census.note(process, self.liveness(&process));
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, record: Option<Box<Record>>, effects: Effects) -> Kept<Followed> {
        let followed = Followed { rings: owners(&effects.rings), counts: effects.counts.clone() };
        if effects.is_empty() {
            let silent = effects.index.is_none() && effects.population.is_none() && !effects.purge;
            keep("G8", silent, || format!("effects that no store would carry out: {effects:?}"))?;
            return Ok(followed);
        }
        if effects.purge || effects.record == RecordChange::Remove {
            self.payloads.clear();
        }
        match effects.record {
            RecordChange::Keep => {}
            RecordChange::Write => {
                let bytes = record.as_deref().map(Record::encode);
                let unread = bytes.as_deref().and_then(|bytes| Record::decode(bytes).err());
                keep("G8", unread.is_none(), || format!("the record does not read back: {unread:?}"))?;
                self.record = bytes;
            }
            RecordChange::Remove => self.record = None,
        }
        for (key, value) in effects.payloads {
            match value {
                Some(value) => {
                    let is_new = self.payloads.insert(key.clone(), value).is_none();
                    let may_be_there = matches!(key, Payload::Attribute(_));
                    keep("G8", is_new || may_be_there, || format!("{key:?} is written over"))?;
                }
                None => {
                    let was_there = self.payloads.remove(&key).is_some();
                    keep("G8", was_there, || format!("{key:?} is deleted and was not there"))?;
                }
            }
        }
        if let Some((before, after)) = effects.index {
            keep("G11", before == self.index, || format!("the index moves from {before:?}, it was {:?}", self.index))?;
            self.index = after;
        }
        if let Some((change, principal)) = effects.population {
            let (sessions, of_principal) = match change {
                Population::Added => (1, 1),
                Population::Removed => (-1, -1),
                Population::Replaced(before) => {
                    if let Some(before) = before {
                        *self.of_principals.entry(before).or_default() -= 1;
                    }
                    (0, 1)
                }
            };
            self.sessions += sessions;
            if let Some(principal) = principal {
                *self.of_principals.entry(principal).or_default() += of_principal;
            }
        }
        Ok(followed)
    }

    /// What a waiter sees that has seen everything up to event `after`. Nothing of it is kept.
    pub(super) fn look(&self, token: OwnerToken, interest: Interest, after: u64) -> bool {
        let mut census = Census::default();
        let record = self.decoded().expect("the session is there");
        for owner in &record.owners {
            census.note(owner.process, self.liveness(&owner.process));
        }
        let context = Context { now: self.now, settings: settings(), census: &census };
        let mut transition = Transition::new(Some(record), self, context);
        matches!(transition.look(&token, interest, after), Ok(Readiness::Ready(_)))
    }

    /// The newest event of each owner.
    pub(super) fn events(&self) -> BTreeMap<OwnerToken, u64> {
        let owners = self.decoded().map(|record| record.owners).unwrap_or_default();
        owners.into_iter().map(|owner| (owner.token, owner.events)).collect()
    }

    /// Compares what is stored with the facts.
    pub(super) fn audit(&self) -> Kept {
        let Some(record) = self.decoded() else {
            keep("G7", self.ghost.session.is_none(), || "a session that is there has no record".into())?;
            keep("G11", self.payloads.is_empty(), || format!("an ended session left {:?}", self.payloads.keys()))?;
            keep("G11", self.index.is_none(), || "an ended session is in the index".into())?;
            keep("G10", self.sessions == 0, || format!("{} sessions are counted, there is none", self.sessions))?;
            let none = self.of_principals.values().all(|&count| count == 0);
            return keep("G10", none, || format!("sessions of principals are counted: {:?}", self.of_principals));
        };
        let counted = self.sessions == 1
            && self
                .of_principals
                .iter()
                .all(|(principal, &count)| count == i64::from(record.principal == Some(*principal)));
        keep("G10", counted, || {
            format!("there is one session, counted are {} {:?}", self.sessions, self.of_principals)
        })?;
        keep("G11", self.index == Some(record.indexed), || "the index has the session where it is not".into())?;
        let latest = if record.owners.is_empty() { record.last_active } else { self.now } + TTL;
        keep("G11", record.indexed.at <= latest, || "the index would find the session too late".into())?;
        match &self.ghost.session {
            None => {
                let is_old = self.ghost.ended.last().is_some_and(|handle| handle.incarnation == record.incarnation);
                keep("G7", self.ghost.lingers && is_old, || "a session that has ended is back".into())
            }
            Some(session) => self.audit_session(session, &record),
        }
    }

    fn audit_session(&self, session: &Session, record: &Record) -> Kept {
        keep("G7", record.incarnation == session.handle.incarnation, || "the session is another one".into())?;
        let (stored, known): (Vec<_>, Vec<_>) = (
            record.owners.iter().map(|owner| owner.token).collect(),
            session.owners.iter().map(|owner| owner.token).collect(),
        );
        keep("G11", stored == known, || format!("the owners are {stored:?} and not {known:?}"))?;
        let open: BTreeSet<i64> = session.open().map(|(id, _)| id).collect();
        let pending: BTreeSet<i64> = record.pending.iter().map(|pending| pending.id).collect();
        keep("G2", open == pending, || format!("pending are {pending:?} and not {open:?}"))?;
        let numbers = |token| record.owners.iter().find(|owner| owner.token == token).map(|owner| owner.number);
        for pending in &record.pending {
            let request = &session.requests[&pending.id];
            let own = Some(pending.owner) == numbers(request.owner) && pending.deadline == request.deadline;
            keep("G3", own, || format!("request {} is another's: {pending:?}", pending.id))?;
        }
        let in_flight = record.in_flight.iter().map(|it| (Some(it.owner), &it.id, it.cancelled));
        let known = session.in_flight.iter().map(|(token, id, cancelled)| (numbers(*token), id, *cancelled));
        keep("G6", in_flight.eq(known), || format!("in flight are {:?}", record.in_flight))?;
        self.audit_payloads(session, record)
    }

    fn audit_payloads(&self, session: &Session, record: &Record) -> Kept {
        let mut stored = self.payloads.clone();
        let mut bytes = 0;
        let mut find = |guarantee, key: Payload, text: String| {
            let found = stored.remove(&key);
            let length = found.as_ref().map_or(0, Vec::len) as u64;
            let is_right = found.as_deref().is_some_and(|body| body.starts_with(text.as_bytes()));
            bytes += length;
            keep(guarantee, is_right, || format!("{key:?} should be {text} and is {found:?}"))?;
            Ok(length)
        };
        for (id, request) in session.open() {
            if let Fate::Answered(name, _) = request.fate {
                find("G2", Payload::Response(id), response(name))?;
            }
        }
        let mut of_owners = Vec::new();
        for (owner, known) in record.owners.iter().zip(&session.owners) {
            let numbered = owner.head == known.head && owner.tail == known.head + known.queue.len() as u64;
            keep("G3", numbered, || format!("the queue is {}..{} and not {known:?}", owner.head, owner.tail))?;
            let mut own = 0;
            for (sequence, text) in (owner.head..).zip(&known.queue) {
                if !matches!(text, Text::Broadcast(_)) {
                    own += find("G3", Payload::Outgoing { owner: owner.number, sequence }, text.text())?;
                }
            }
            of_owners.push((owner.bytes, own));
        }
        for (broadcast, (text, holder)) in record.broadcasts.iter().zip(&session.broadcasts) {
            find("G3", Payload::Broadcast(broadcast.number), text.text())?;
            let stored = broadcast.holder.map(|(number, sequence)| (Some(number), sequence));
            let known = holder.map(|token| {
                let owner = record.owners.iter().find(|owner| owner.token == token);
                let queue = session.owner(token).expect("a holder is attached");
                let at = queue.queue.iter().position(|held| held == text).expect("a holder has it in its queue");
                (owner.map(|owner| owner.number), queue.head + at as u64)
            });
            keep("G3", stored == known, || format!("{text:?} is held as {stored:?} and not {known:?}"))?;
        }
        let (broadcasts, known) = (record.broadcasts.len(), session.broadcasts.len());
        keep("G3", broadcasts == known, || format!("{broadcasts} broadcasts are there and not {known}"))?;
        for (stored, known) in of_owners {
            keep("G10", stored == known, || format!("an owner's {known} bytes are counted as {stored}"))?;
        }
        keep("G10", record.message_bytes == bytes, || {
            format!("{bytes} bytes are counted as {}", record.message_bytes)
        })?;
        let attribute = stored.remove(&Payload::Attribute(attribute_key()));
        let known = session.attribute.map(|name| name.to_string().into_bytes());
        keep("G7", attribute == known, || format!("the attribute is {attribute:?} and not {known:?}"))?;
        match stored.keys().next() {
            None => Ok(()),
            Some(key @ Payload::Response(_)) => keep("G4", false, || format!("{key:?} is kept")),
            Some(key) => keep("G11", false, || format!("{key:?} is left over")),
        }
    }

    pub(super) fn spoil(&mut self, broken: Broken) {
        self.broken = Some(broken);
    }
}

pub(super) fn attribute_key() -> AttributeKey {
    AttributeKey::new("a").expect("a key")
}

pub(super) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::default)
}

/// Two worlds are the same to the state machine when they differ in nothing but names and the hour: times count from now and no
/// further than anything looks at them, owners by their place, events and messages by their order.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ago = |time: Millis, most: Millis| self.now.saturating_sub(time).min(most);
        let ahead = |time: Millis| time.saturating_sub(self.now);
        let record = self.decoded();
        let owners = record.as_ref().map_or(&[][..], |record| &record.owners);
        let place = |token: OwnerToken| owners.iter().position(|owner| owner.token == token);
        let place_of_number = |number: u32| owners.iter().position(|owner| owner.number == number);
        self.broken.as_ref().map(|broken| broken.guarantee).hash(state);
        self.ghost.lingers.hash(state);
        self.ghost.ended.len().min(2).hash(state);
        let door = self.ghost.door().map(|handle| (handle.incarnation, handle.principal));
        for client in &self.clients {
            let client = client.as_ref();
            let is_current = |handle: &Handle| Some(handle.incarnation) == door.map(|(incarnation, _)| incarnation);
            client.map(|client| (place(client.token), is_current(&client.handle))).hash(state);
        }
        if let Some(session) = &self.ghost.session {
            ago(session.active, TTL).hash(state);
            for owner in &session.owners {
                ago(owner.active, SILENCE + LEASE).hash(state);
                for text in &owner.queue {
                    session.broadcasts.iter().position(|(broadcast, _)| broadcast == text).hash(state);
                }
            }
            let first = record.as_ref().map_or(0, |record| record.first_request);
            for (id, request) in &session.requests {
                let fate = match request.fate {
                    Fate::Waiting => (0, None),
                    Fate::Answered(..) => (1, None),
                    Fate::Cancelled(_) => (2, None),
                    Fate::Ended(one, other) => (3, Some((one as u8, other as u8))),
                };
                (id - first, place(request.owner), fate).hash(state);
            }
            for id in &session.used {
                (id - first).hash(state);
            }
            session.attribute.is_some().hash(state);
        }
        let Some(record) = &record else { return };
        record.principal.hash(state);
        ago(record.last_active, TTL).hash(state);
        (self.now + SILENCE).saturating_sub(record.indexed.at).min(SILENCE + TTL).hash(state);
        (record.indexed.settled, record.exchanges.min(2), record.next_request - record.first_request).hash(state);
        for owner in owners {
            (owner.kind as u8, self.liveness(&owner.process) as u8, owner.process.namespace).hash(state);
            (ahead(owner.lease_until), ago(owner.lease_until - owner.lease, SILENCE + 1)).hash(state);
            (owner.head == 1, owner.tail - owner.head).hash(state);
        }
        let mut order: Vec<_> =
            record.pending.iter().filter_map(|it| event(it.state).map(|at| (it.owner, at))).collect();
        order.sort_unstable();
        for pending in &record.pending {
            let rank = event(pending.state).and_then(|at| order.binary_search(&(pending.owner, at)).ok());
            let state_kind = match pending.state {
                PendingState::Waiting => 0,
                PendingState::Answered { .. } => 1,
                PendingState::TimedOut { .. } => 2,
                PendingState::Cancelled { .. } => 3u8,
            };
            let id = pending.id - record.first_request;
            (id, place_of_number(pending.owner), ahead(pending.deadline), state_kind, rank).hash(state);
        }
        for request in &record.in_flight {
            (&request.id, place_of_number(request.owner), request.cancelled).hash(state);
        }
        for broadcast in &record.broadcasts {
            broadcast.holder.map(|(number, _)| place_of_number(number)).hash(state);
        }
        for (id, reason) in &record.ended {
            (id - record.first_request, *reason as u8).hash(state);
        }
    }
}

fn event(state: PendingState) -> Option<u64> {
    match state {
        PendingState::Waiting => None,
        PendingState::Answered { event, .. } | PendingState::TimedOut { event } | PendingState::Cancelled { event } => {
            Some(event)
        }
    }
}

pub(super) fn process(slot: usize, name: u8) -> Process {
    Process { pid: u32::from(name), started: 1, namespace: SLOTS[slot].1 }
}
