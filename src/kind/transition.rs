//! One operation on one record: what it read, what it changed, what must follow.

use super::{AttributeKey, Channel, IndexKey, Kind};
use crate::clock::Millis;
use crate::counter::Counter;
use crate::error::{Error, InvalidArgument, LimitExceeded, StoreError};
use crate::ids::{Digest, OwnerToken};
use crate::process::{Liveness, Process};
use crate::settings::{Limit, Settings};

/// What an operation knows besides the record.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time: read when nobody else can change the record any more, or the same as then.
    pub now: Millis,
    /// Limits and times.
    pub settings: &'a Settings,
    /// What is known of processes.
    pub census: &'a Census,
}

/// What is known of the processes that owners belong to. To inspect a process takes system calls, which have no place inside a
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

/// What an operation comes to.
pub type Step<T> = Result<T, Refusal>;

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Error(error.into())
    }
}

/// What a new record must know of the store.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreView {
    /// Records of the kind that there are.
    pub records: u64,
    /// Records of the new record's principal.
    pub of_principal: u64,
}

/// Reads the payloads of the record as they were when the transition began.
pub trait Values<P> {
    /// The payload under `key`.
    fn get(&self, key: &P) -> Result<Option<Vec<u8>>, StoreError>;
    /// How long it is: what a change of it must know.
    fn length(&self, key: &P) -> Result<Option<usize>, StoreError> {
        Ok(self.get(key)?.map(|value| value.len()))
    }
    /// All attributes below `parent`, or all there are.
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
    /// It goes, and every payload of the record with it.
    Remove,
}

/// A record's place in a further index of its kind, such as the queued tasks of a queue. Entries of one list and group are in the
/// order of `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Which of the kind's indexes it is.
    pub list: u8,
    /// What the list is of: the digest of a queue's name, a principal.
    pub group: Digest,
    /// The record's place among the others: a time, or a number that rises.
    pub at: u64,
}

/// Payloads to write (`Some`) or delete (`None`), in the order of their keys. Most operations change one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<P>(Vec<(P, Option<Vec<u8>>)>);

impl<P> Default for Changes<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: Ord> Changes<P> {
    /// What becomes of a payload, if it changes.
    pub fn get(&self, key: &P) -> Option<&Option<Vec<u8>>> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    /// Writes or deletes a payload, whatever was to become of it.
    pub fn insert(&mut self, key: P, value: Option<Vec<u8>>) {
        match self.find(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// The changes from `first` on.
    pub fn range_from(&self, first: &P) -> &[(P, Option<Vec<u8>>)] {
        let (Ok(at) | Err(at)) = self.find(first);
        &self.0[at..]
    }

    /// All changes.
    pub fn iter(&self) -> std::slice::Iter<'_, (P, Option<Vec<u8>>)> {
        self.0.iter()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: &P) -> Result<usize, usize> {
        self.0.binary_search_by(|(changed, _)| changed.cmp(key))
    }
}

impl<P: Ord> FromIterator<(P, Option<Vec<u8>>)> for Changes<P> {
    fn from_iter<T: IntoIterator<Item = (P, Option<Vec<u8>>)>>(all: T) -> Self {
        let mut changes = Self::default();
        all.into_iter().for_each(|(key, value)| changes.insert(key, value));
        changes
    }
}

impl<P> IntoIterator for Changes<P> {
    type Item = (P, Option<Vec<u8>>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// What must follow from an operation besides the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects<P> {
    /// What becomes of the record.
    pub record: RecordChange,
    /// Whether everything an earlier record of this id left behind is removed first.
    pub purge: bool,
    /// Payloads to write or delete.
    pub payloads: Changes<P>,
    /// The record's place in the index of expiry before and after, when it changes.
    pub index: Option<(Option<IndexKey>, Option<IndexKey>)>,
    /// Places in further indexes that the record leaves (false) or takes (true).
    pub entries: Vec<(Entry, bool)>,
    /// Whether a record was added to or removed from those of this principal.
    pub population: Option<(Population, Option<Digest>)>,
    /// Whom to wake after the commit.
    pub rings: Vec<Channel>,
    /// What is counted after the commit.
    pub counts: Vec<Counter>,
}

impl<P> Default for Effects<P> {
    fn default() -> Self {
        Self {
            record: RecordChange::Keep,
            purge: false,
            payloads: Changes::default(),
            index: None,
            entries: Vec::new(),
            population: None,
            rings: Vec::new(),
            counts: Vec::new(),
        }
    }
}

/// Whether the number of records rises or falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One more.
    Added,
    /// One less.
    Removed,
    /// None: an expired record, of the principal given here, was replaced.
    Replaced(Option<Digest>),
}

impl<P: Ord> Effects<P> {
    /// Whether there is anything to carry out.
    pub fn is_empty(&self) -> bool {
        self.record == RecordChange::Keep && self.payloads.is_empty()
    }
}

/// One operation at work on one record of a kind. The methods of each kind are beside its record.
pub struct Transition<'a, K: Kind> {
    pub(crate) record: Option<Box<K::Record>>,
    pub(crate) values: &'a dyn Values<K::Payload>,
    pub(crate) context: Context<'a>,
    pub(crate) effects: Effects<K::Payload>,
}

impl<'a, K: Kind> Transition<'a, K> {
    /// Starts from the record, if there is one.
    pub fn new(record: Option<Box<K::Record>>, values: &'a dyn Values<K::Payload>, context: Context<'a>) -> Self {
        Self { record, values, context, effects: Effects::default() }
    }

    /// The record as the operation leaves it, and what must follow.
    pub fn finish(mut self) -> (Option<Box<K::Record>>, Effects<K::Payload>) {
        if self.effects.record == RecordChange::Write {
            K::follow(&mut self);
        }
        (self.record, self.effects)
    }

    /// The record that the operation has seen to be there.
    pub fn seen(&self) -> &K::Record {
        self.record()
    }

    /// How many dead owners the operation has released.
    pub fn released(&self) -> u64 {
        self.effects.counts.iter().filter(|count| **count == Counter::OwnersReleased).count() as u64
    }

    pub(crate) fn now(&self) -> Millis {
        self.context.now
    }

    /// The record, which the operation has seen to be there.
    pub(crate) fn record(&self) -> &K::Record {
        self.record.as_deref().expect("the operation has seen the record")
    }

    /// The same, to be changed: it will be written.
    pub(crate) fn edit(&mut self) -> &mut K::Record {
        if self.effects.record == RecordChange::Keep {
            self.effects.record = RecordChange::Write;
        }
        self.record.as_deref_mut().expect("the operation has seen the record")
    }

    /// What is known of a process; what is not known is asked for.
    pub(crate) fn liveness(&self, process: &Process) -> Step<Liveness> {
        self.context.census.of(process).ok_or_else(|| Refusal::Unsure(vec![*process]))
    }

    /// A payload as this operation sees it: its own changes first.
    pub(crate) fn payload(&self, key: &K::Payload) -> Step<Option<Vec<u8>>> {
        match self.effects.payloads.get(key) {
            Some(changed) => Ok(changed.clone()),
            None => Ok(self.values.get(key)?),
        }
    }

    /// How long a payload is.
    pub(crate) fn payload_length(&self, key: &K::Payload) -> Step<Option<usize>> {
        match self.effects.payloads.get(key) {
            Some(changed) => Ok(changed.as_ref().map(Vec::len)),
            None => Ok(self.values.length(key)?),
        }
    }

    /// A payload that the record says is there.
    pub(crate) fn payload_of_record(&self, key: &K::Payload) -> Step<Vec<u8>> {
        self.payload(key)?
            .ok_or_else(|| corrupt::<K>(format!("the record names a payload that is missing: {key:?}")).into())
    }

    pub(crate) fn put(&mut self, key: K::Payload, value: Vec<u8>) {
        self.effects.payloads.insert(key, Some(value));
    }

    pub(crate) fn delete(&mut self, key: K::Payload) {
        self.effects.payloads.insert(key, None);
    }

    /// Wakes an owner after the commit.
    pub(crate) fn ring(&mut self, owner: OwnerToken) {
        let channel = Channel::Owner(owner);
        if !self.effects.rings.contains(&channel) {
            self.effects.rings.push(channel);
        }
    }

    /// Refuses what would pass `limit`.
    pub(crate) fn within(&self, limit: Limit, actual: u64) -> Result<(), LimitExceeded> {
        let maximum = self.context.settings.limit(limit);
        if actual > maximum { Err(LimitExceeded { limit, maximum, actual }) } else { Ok(()) }
    }

    /// Refuses a message that is empty or too large.
    pub(crate) fn check_message(&self, what: &'static str, message: &str) -> Step<()> {
        if message.is_empty() {
            return Err(InvalidArgument::new(what, "", "it is empty; a JSON text is expected").into());
        }
        Ok(self.within(Limit::MessageBytes, message.len() as u64)?)
    }
}

/// The error for a record of the kind that contradicts itself or its payloads.
pub(crate) fn corrupt<K: Kind>(reason: impl Into<String>) -> StoreError {
    StoreError::corrupt(format!("of this {}", K::NAME), reason)
}

/// Whether a record is there for `principal`: one that is bound to a principal is not there for others, nor for none (G12).
pub(crate) fn belongs(bound: Option<Digest>, principal: Option<Digest>) -> bool {
    bound.is_none() || bound == principal
}
