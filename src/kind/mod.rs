//! The ground floor of all kinds of state. Pure: no I/O, no clock, no randomness, no unsafe code.
//!
//! A *kind* is a state machine over one record: the session is one. What an operation of a kind may do is a method of its
//! [`Transition`], which starts from a [`Kind::Record`], a way to read the record's payloads and a [`Context`], and collects
//! [`Effects`]. A store knows no kind: it reads a record, runs a transition and carries out the effects, all or nothing, then
//! rings. What kinds share is written here once: payloads, principals, incarnations, indexes, limits, the processes that owners
//! belong to, what is counted.
#![forbid(unsafe_code)]

mod attribute;
#[cfg(test)]
pub(crate) mod sample;
mod transition;

use std::fmt::Debug;
use std::ops::Range;

pub use attribute::AttributeKey;
pub use transition::{
    Census, Changes, Context, Effects, Entry, Population, RecordChange, Refusal, Step, StoreView, Transition, Values,
};
pub(crate) use transition::{belongs, corrupt};

use crate::clock::Millis;
use crate::ids::{Digest, OwnerToken};

/// What a store must know of a kind of records. `CONTRIBUTING.md` lists what a new kind consists of.
pub trait Kind: Sized + 'static {
    /// The state of one, without its payloads.
    type Record: Clone + Debug + PartialEq + Send + Sync + 'static;
    /// The keys of its payloads within the record.
    type Payload: PayloadKey;

    /// What one is called in messages.
    const NAME: &'static str;
    /// The tables of its rows in a local store: no two kinds share one.
    const TABLES: Tables;
    /// What its keys in a remote store begin with, before the digest: no two kinds share it.
    const TAG: &'static str;

    /// Reads a record.
    fn decode(bytes: &[u8]) -> Result<Box<Self::Record>, String>;
    /// Writes a record, in the format that the record was made with: processes of an older build may serve it still.
    fn encode(record: &Self::Record) -> Vec<u8>;

    /// The record's place in the index of expiry; none for a record that is in no index and counts as none of its kind.
    fn index_key(record: &Self::Record) -> Option<IndexKey>;
    /// Whom the record belongs to.
    fn principal(record: &Self::Record) -> Option<Digest>;
    /// The record's places in the further indexes of the kind.
    fn entries(_record: &Self::Record) -> Vec<Entry> {
        Vec::new()
    }
    /// About how many bytes the record takes of a store with all that belongs to it.
    fn footprint(record: &Self::Record) -> u64;

    /// The times around `now` at which an operation that found `before` and left `after` would have done the same.
    fn steady(before: Option<&Self::Record>, after: Option<&Self::Record>, now: Millis) -> Range<Millis>;
    /// When nobody can find the record any more: a server may drop it after that.
    fn gone_by(record: &Self::Record) -> Millis;

    /// The bodies that the record names.
    fn bodies(record: &Self::Record) -> Vec<Self::Payload>;
    /// How many bytes of bodies and of attributes (keys included) the record accounts for.
    fn accounts(record: &Self::Record) -> (u64, u64);
    /// What there is to say when so many attributes are there, for a kind whose records count them.
    fn miscounted(_record: &Self::Record, _attributes: u64) -> Option<String> {
        None
    }
    /// The record's id, for whoever operates the store.
    fn id(record: &Self::Record) -> &str;

    /// Lets the indexes follow a record that is about to be written.
    fn follow(transition: &mut Transition<'_, Self>);
    /// Moves all times of a record, for a store that has outlived the clock of its boot.
    fn move_in_time(record: &mut Self::Record, shift: &dyn Fn(Millis) -> Millis);
    /// Releases all owners, whose processes belong to the past. How many.
    fn release_everybody(transition: &mut Transition<'_, Self>) -> u64;
}

/// The first bytes of the keys of a kind's rows, see [`crate::store`].
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Records and payloads.
    pub records: u8,
    /// The index of expiry.
    pub expiry: u8,
    /// The further indexes.
    pub entries: u8,
    /// How many records there are.
    pub population: u8,
    /// How many records each principal has.
    pub principals: u8,
}

/// The key of a payload within its record. A payload is an attribute or a body.
///
/// * An attribute has a dotted name. It may be written over and listed, and operations may depend on its value.
/// * A body (a message, a response) is written once and named by the record. What an operation does to the record and to other
///   payloads never depends on the text of a body, so a remote store may decide before it knows the text.
pub trait PayloadKey: Clone + Debug + Ord + Send + Sync {
    /// The attribute's name; nothing for a body.
    fn attribute(&self) -> Option<&AttributeKey>;
    /// The key of a body.
    fn body(&self) -> BodyKey;
    /// What stands in for a body whose text is not known yet.
    fn stand_in(&self) -> Vec<u8>;
    /// The key of an attribute; nothing for a kind that has none.
    fn of_attribute(name: AttributeKey) -> Option<Self>;
}

/// The key of a body: a table within the record and a few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyKey {
    table: BodyTable,
    bytes: [u8; BodyKey::LONGEST],
    length: usize,
}

/// A table of bodies within a record: its number in rows (not 0, which is the record, nor 4, which are the attributes), its
/// letter in the fields of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyTable {
    /// In rows.
    pub number: u8,
    /// In fields.
    pub letter: u8,
}

impl BodyKey {
    /// The most bytes behind the table.
    pub const LONGEST: usize = 16;

    /// The key of `bytes`, at most [`BodyKey::LONGEST`], in `table`.
    pub fn new<const N: usize>(table: BodyTable, bytes: [u8; N]) -> Self {
        const { assert!(N <= Self::LONGEST) };
        let mut key = Self { table, bytes: [0; Self::LONGEST], length: N };
        key.bytes[..N].copy_from_slice(&bytes);
        key
    }

    /// The table.
    pub fn table(&self) -> BodyTable {
        self.table
    }

    /// What is behind it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A record's place in the store's index of expiry. Records that have not settled stand apart: they are the first to give way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// Whether the record has settled: of sessions, those that made a second request.
    pub(crate) settled: bool,
    /// The record does not expire before this time.
    pub(crate) at: Millis,
}

/// Whom to wake after the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// One owner of the record.
    Owner(OwnerToken),
    /// Everybody who listens to the record.
    Record,
    /// Everybody who listens to something that many records share: a queue, a list of a principal.
    Shared(Digest),
}
