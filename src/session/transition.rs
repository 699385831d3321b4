//! One operation on one session: what it read, what it changed, what must follow.

use super::attributes::AttributeKey;
use super::pending::LateReason;
use super::record::{IndexKey, Record};
use crate::clock::Millis;
use crate::error::{Error, InvalidArgument, LimitExceeded, StoreError, shorten_secret};
use crate::ids::{Digest, OwnerToken, SessionId};
use crate::process::{Liveness, Process};
use crate::settings::{Limit, Settings};

/// What an operation knows besides the session.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time: read when nobody else can change the session any more, or the same as then.
    pub now: Millis,
    /// Limits and times.
    pub settings: &'a Settings,
    /// What is known of processes.
    pub census: &'a Census,
}

/// What is known of the processes that owners belong to. To look at a process takes system calls, which have no place inside a
/// transaction: an operation that must know more says so ([`Refusal::Unsure`]), and runs again.
#[derive(Clone, Debug, Default)]
pub struct Census(Vec<(Process, Liveness)>);

impl Census {
    /// What is known of `process`.
    pub fn of(&self, process: &Process) -> Option<Liveness> {
        self.0.iter().find(|(known, _)| known == process).map(|&(_, liveness)| liveness)
    }

    /// Takes in what was seen.
    pub fn note(&mut self, process: Process, liveness: Liveness) {
        self.0.push((process, liveness));
    }
}

/// Why an operation was not carried out.
#[derive(Debug)]
pub enum Refusal {
    /// It may not be.
    Error(Error),
    /// It depends on whether these processes live.
    Unsure(Vec<Process>),
}

/// A record as an operation leaves it, and what must follow.
pub type Decided = (Option<Box<Record>>, Effects);

/// What an operation comes to.
pub type Step<T> = Result<T, Refusal>;

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Error(error.into())
    }
}

/// The session as a process holds it: which incarnation, and for whom (G7, G12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The session's id.
    pub id: SessionId,
    /// The incarnation that was opened.
    pub incarnation: u64,
    /// For whom it was opened.
    pub principal: Option<Digest>,
}

/// The key of a payload within its session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payload {
    /// The value of an attribute row.
    Attribute(AttributeKey),
    /// A message of an owner's queue.
    Outgoing {
        /// The owner's number.
        owner: u32,
        /// The message's sequence number.
        sequence: u64,
    },
    /// A broadcast message.
    Broadcast(u64),
    /// The response to a pending request.
    Response(i64),
}

/// Reads the payloads of the session as they were when the transition began.
pub trait Values {
    /// The payload under `key`.
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, StoreError>;
    /// How long it is: what a change of it must know.
    fn length(&self, key: &Payload) -> Result<Option<usize>, StoreError> {
        Ok(self.get(key)?.map(|value| value.len()))
    }
    /// All attribute rows below `parent`, or all there are.
    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, StoreError>;
}

/// What becomes of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordChange {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is written.
    Write,
    /// It goes, and every payload of the session with it.
    Remove,
}

/// What the store counts of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A response was delivered.
    Delivered,
    /// A response was late.
    Late(LateReason),
    /// A dead owner was released.
    OwnerReleased,
}

/// Payloads to write (`Some`) or delete (`None`), in the order of their keys. Most operations change one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(Vec<(Payload, Option<Vec<u8>>)>);

impl Changes {
    /// What becomes of a payload, if it changes.
    pub fn get(&self, key: &Payload) -> Option<&Option<Vec<u8>>> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    /// Writes or deletes a payload, whatever was to become of it.
    pub fn insert(&mut self, key: Payload, value: Option<Vec<u8>>) {
        match self.find(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// The changes from `first` on.
    pub fn range_from(&self, first: &Payload) -> &[(Payload, Option<Vec<u8>>)] {
        let (Ok(at) | Err(at)) = self.find(first);
        &self.0[at..]
    }

    /// All changes.
    pub fn iter(&self) -> std::slice::Iter<'_, (Payload, Option<Vec<u8>>)> {
        self.0.iter()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: &Payload) -> Result<usize, usize> {
        self.0.binary_search_by(|(changed, _)| changed.cmp(key))
    }
}

impl FromIterator<(Payload, Option<Vec<u8>>)> for Changes {
    fn from_iter<T: IntoIterator<Item = (Payload, Option<Vec<u8>>)>>(all: T) -> Self {
        let mut changes = Self::default();
        all.into_iter().for_each(|(key, value)| changes.insert(key, value));
        changes
    }
}

impl IntoIterator for Changes {
    type Item = (Payload, Option<Vec<u8>>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// What must follow from an operation besides the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// What becomes of the record.
    pub record: RecordChange,
    /// Whether everything an earlier session of this id left behind is removed first.
    pub purge: bool,
    /// Payloads to write or delete.
    pub payloads: Changes,
    /// The session's place in the expiry index before and after, when it changes.
    pub index: Option<(Option<IndexKey>, Option<IndexKey>)>,
    /// Whether a session was added to or removed from those of this principal.
    pub population: Option<(Population, Option<Digest>)>,
    /// Owners to wake after the commit.
    pub rings: Vec<OwnerToken>,
    /// What is counted after the commit.
    pub counts: Vec<Count>,
}

/// Whether the number of sessions rises or falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One more.
    Added,
    /// One less.
    Removed,
    /// None: an expired session, of the principal given here, was replaced.
    Replaced(Option<Digest>),
}

impl Effects {
    /// Whether there is anything to carry out.
    pub fn is_empty(&self) -> bool {
        self.record == RecordChange::Keep && self.payloads.is_empty()
    }
}

/// One operation at work on one session.
pub struct Transition<'a> {
    pub(super) record: Option<Box<Record>>,
    pub(super) values: &'a dyn Values,
    pub(super) context: Context<'a>,
    pub(super) effects: Effects,
}

impl<'a> Transition<'a> {
    /// Starts from the session's record, if there is one.
    pub fn new(record: Option<Box<Record>>, values: &'a dyn Values, context: Context<'a>) -> Self {
        Self { record, values, context, effects: Effects::default() }
    }

    /// The record as the operation leaves it, and what must follow.
    pub fn finish(mut self) -> Decided {
        if self.effects.record == RecordChange::Write {
            self.follow_in_index();
        }
        (self.record, self.effects)
    }

    /// The session that [`Transition::enter`] has let in.
    pub fn seen(&self) -> &Record {
        self.record()
    }

    /// How many dead owners the operation has released.
    pub fn released(&self) -> u64 {
        self.effects.counts.iter().filter(|count| **count == Count::OwnerReleased).count() as u64
    }

    pub(super) fn now(&self) -> Millis {
        self.context.now
    }

    /// The record of a session that [`Transition::enter`] has let in.
    pub(super) fn record(&self) -> &Record {
        self.record.as_deref().expect("enter() has seen the record")
    }

    /// The same, to be changed: it will be written, and the session has been active.
    pub(super) fn record_mut(&mut self) -> &mut Record {
        let now = self.now();
        let record = self.housekeeping_mut();
        record.last_active = now;
        record
    }

    /// The same for what nobody did who uses the session.
    pub(super) fn housekeeping_mut(&mut self) -> &mut Record {
        if self.effects.record == RecordChange::Keep {
            self.effects.record = RecordChange::Write;
        }
        self.record.as_deref_mut().expect("enter() has seen the record")
    }

    /// What is known of a process; what is not known is asked for.
    pub(super) fn liveness(&self, process: &Process) -> Step<Liveness> {
        self.context.census.of(process).ok_or_else(|| Refusal::Unsure(vec![*process]))
    }

    /// A payload as this operation sees it: its own changes first.
    pub(super) fn payload(&self, key: &Payload) -> Step<Option<Vec<u8>>> {
        match self.effects.payloads.get(key) {
            Some(changed) => Ok(changed.clone()),
            None => Ok(self.values.get(key)?),
        }
    }

    /// How long a payload is.
    pub(super) fn payload_length(&self, key: &Payload) -> Step<Option<usize>> {
        match self.effects.payloads.get(key) {
            Some(changed) => Ok(changed.as_ref().map(Vec::len)),
            None => Ok(self.values.length(key)?),
        }
    }

    /// A payload that the record says is there.
    pub(super) fn payload_of_record(&self, key: &Payload) -> Step<Vec<u8>> {
        self.payload(key)?.ok_or_else(|| {
            StoreError::corrupt("of this session", format!("the record names a payload that is missing: {key:?}"))
                .into()
        })
    }

    pub(super) fn put(&mut self, key: Payload, value: Vec<u8>) {
        self.effects.payloads.insert(key, Some(value));
    }

    pub(super) fn delete(&mut self, key: Payload) {
        self.effects.payloads.insert(key, None);
    }

    pub(super) fn ring(&mut self, owner: OwnerToken) {
        if !self.effects.rings.contains(&owner) {
            self.effects.rings.push(owner);
        }
    }

    /// Refuses what would pass `limit`.
    pub(super) fn within(&self, limit: Limit, actual: u64) -> Result<(), LimitExceeded> {
        check(limit, self.context.settings.limit(limit), actual)
    }

    /// Refuses `added` bytes that would pass the session's limit.
    pub(super) fn within_session(&self, added: u64) -> Result<(), LimitExceeded> {
        self.within(Limit::SessionBytes, self.record().bytes() + added)
    }

    /// Refuses a message that is empty or too large.
    pub(super) fn check_message(&self, what: &'static str, message: &str) -> Step<()> {
        if message.is_empty() {
            return Err(InvalidArgument::new(what, "", "it is empty; a JSON text is expected").into());
        }
        Ok(self.within(Limit::MessageBytes, message.len() as u64)?)
    }
}

fn check(limit: Limit, maximum: u64, actual: u64) -> Result<(), LimitExceeded> {
    if actual > maximum { Err(LimitExceeded { limit, maximum, actual }) } else { Ok(()) }
}

/// The error for an owner that is not there.
pub(super) fn owner_expired(record: &Record, token: &OwnerToken) -> Error {
    Error::OwnerExpired { id: shorten_id(&record.id), token: token.shortened() }
}

/// The error for a session that is not there.
pub(super) fn session_not_found(id: &str) -> Error {
    Error::SessionNotFound { id: shorten_id(id) }
}

fn shorten_id(id: &str) -> String {
    SessionId::new(id).map(|id| id.shortened()).unwrap_or_else(|_| shorten_secret(id))
}
