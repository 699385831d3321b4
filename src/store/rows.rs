//! Ordered rows of bytes under transactions: all that a local store must bring, and how records lie in rows.
//!
//! Layout, a key's first byte naming the table:
//!
//! | key | value |
//! |---|---|
//! | records, record `00` | the record |
//! | records, record `04` name | the value of an attribute |
//! | records, record, table, up to 16 bytes | a body, see [`crate::kind::BodyKey`] |
//! | expiry, settled `u8` time `u64` record | nothing: the index of expiry |
//! | entries, list `u8` group at `u64` record | nothing: the further indexes, see [`Entry`] |
//! | population | how many records of the kind there are, `u64` |
//! | principals, principal | how many of them the principal has, `u64` |
//! | `C` | the era the rows belong to, see [`super::era`] |
//!
//! The first byte of each is the kind's own ([`crate::kind::Tables`]): `S`, `X`, `x`, `N` and `P` of sessions.
//!
//! The bus and single-use keys have tables of their own ([`super::bus`], [`super::once`]).
//!
//! Record, group and principal are digests of 16 bytes, numbers are big-endian. A value of 64 KiB or more continues in rows whose
//! keys are followed by `00` and the number of the chunk, `u16`; the chunk shorter than 64 KiB is the last. Everything of one
//! record stands together: an operation touches few pages. Messages and responses stand beside the record that is written with
//! them, and what may be large behind them: so most often both are on one page.

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::clock::Millis;
use crate::error::{Error, StoreError};
use crate::ids::Digest;
use crate::kind::{AttributeKey, Entry, IndexKey, Kind, PayloadKey, Refusal, Values, corrupt};

/// The longest value of one row: larger ones need several contiguous pages, which a full store may not have.
const CHUNK: usize = 64 << 10;

/// Rows as one transaction sees them.
pub(crate) trait Rows {
    /// The value under `key`.
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, StoreError>;
    /// Shows rows from the first key that is not less than `from` on, until `visit` says that it has seen enough.
    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError>;
    /// Bytes in use.
    fn used_bytes(&self) -> Result<u64, StoreError>;
    /// Names the last commit that the transaction sees: two that see the same see the same rows, of the same files.
    fn revision(&self) -> u64;
}

/// Rows that the transaction may change.
pub(crate) trait RowsMut: Rows {
    /// Writes a row.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;
    /// Writes a row over the one that is there, if there is one: the length of that one's value.
    fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<Option<usize>, StoreError>;
    /// Deletes a row. The length of its value, if there was one.
    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, StoreError>;
}

/// What a transaction does to the size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It adds.
    Adds,
    /// It changes what is there, without adding: it must succeed on a full store, too.
    Keeps,
    /// It frees: whatever is full, it must succeed.
    Frees,
}

/// What becomes of a writing transaction.
pub(crate) enum Verdict<T> {
    /// It is committed.
    Commit {
        /// What the transaction comes to.
        value: T,
        /// What it does to the store's size.
        change: Change,
    },
    /// It is abandoned: there is nothing to write.
    Abandon(T),
}

/// The error of a job that runs inside a transaction. A store tells its own failures from those of the job.
pub(crate) trait JobError: From<StoreError> {
    /// The failure of the store that the error reports; else the error as it is.
    fn into_store_error(self) -> Result<StoreError, Self>;
}

impl JobError for StoreError {
    fn into_store_error(self) -> Result<StoreError, Self> {
        Ok(self)
    }
}

impl JobError for Error {
    fn into_store_error(self) -> Result<StoreError, Self> {
        match self {
            Error::Store(error) => Ok(error),
            other => Err(other),
        }
    }
}

impl JobError for Refusal {
    fn into_store_error(self) -> Result<StoreError, Self> {
        match self {
            Refusal::Error(Error::Store(error)) => Ok(error),
            other => Err(other),
        }
    }
}

/// Rows under transactions.
pub(crate) trait Transactions {
    /// Runs `job` on a snapshot.
    fn read<T, E: JobError>(&self, job: impl FnOnce(&dyn Rows) -> Result<T, E>) -> Result<T, E>;
    /// Runs `job` while no other writer can, and commits. It may run again when space had to be made.
    fn write<T, E: JobError>(&self, job: impl FnMut(&mut dyn RowsMut) -> Result<Verdict<T>, E>) -> Result<T, E>;
}

/// Rows of a store, and what else a store brings.
pub(crate) trait KeyValue: Transactions + Send + Sync {
    /// The most bytes that may be in use.
    fn limit_bytes(&self) -> u64;
    /// Whether every process that uses the rows can read records with times, see [`crate::settings::Settings`].
    fn is_timed(&self) -> bool {
        true
    }
    /// What to wait on.
    fn bell(&self) -> std::sync::Arc<crate::bell::Bell>;
    /// See [`super::Store::refresh`].
    fn refresh(&self) -> Result<(), StoreError>;
    /// See [`super::Store::maintain`].
    fn maintain(&self) -> Result<(), StoreError>;
    /// See [`super::Store::describe`].
    fn describe(&self) -> Vec<(&'static str, String)>;
}

/// Within a record, the rows of attributes.
const ATTRIBUTES: u8 = 4;

/// A row's key: a few bytes on the stack, since every operation makes several.
#[derive(Clone)]
pub(super) struct Key {
    bytes: [u8; Key::LONGEST],
    length: usize,
}

impl Key {
    /// That of the last chunk of an attribute: table, session, kind, 255 bytes, chunk.
    const LONGEST: usize = 1 + 16 + 1 + 255 + 3;

    fn new(table: u8) -> Self {
        let mut key = Self { bytes: [0; Self::LONGEST], length: 0 };
        key.push(&[table]);
        key
    }

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.length..][..part.len()].copy_from_slice(part);
        self.length += part.len();
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The key that all rows of a record begin with.
pub(super) fn prefix<K: Kind>(record: Digest) -> Key {
    let mut key = Key::new(K::TABLES.records);
    key.push(&record.0);
    key
}

pub(super) fn record_key<K: Kind>(record: Digest) -> Key {
    let mut key = prefix::<K>(record);
    key.push(&[0]);
    key
}

/// What the rows of a table belong to, by the digests behind the table's byte: those after `after`, at most `max`. Looks at one
/// row of each.
pub(super) fn digests(
    rows: &dyn Rows,
    table: u8,
    after: Option<Digest>,
    max: usize,
) -> Result<Vec<Digest>, StoreError> {
    let behind = |digest: Digest| [&[table], &digest.0[..], &[0xff]].concat();
    let mut found = Vec::new();
    let mut from = after.map_or(vec![table], behind);
    while found.len() < max {
        let mut next = None;
        rows.scan(&from, &mut |key, _| {
            next = key.strip_prefix(&[table]).and_then(|rest| rest.first_chunk().copied()).map(Digest);
            false
        })?;
        let Some(digest) = next else { break };
        found.push(digest);
        from = behind(digest);
    }
    Ok(found)
}

fn attribute_prefix<K: Kind>(record: Digest) -> Key {
    let mut key = prefix::<K>(record);
    key.push(&[ATTRIBUTES]);
    key
}

pub(super) fn payload_key<K: Kind>(record: Digest, payload: &K::Payload) -> Key {
    let mut key = prefix::<K>(record);
    match payload.attribute() {
        Some(name) => {
            key.push(&[ATTRIBUTES]);
            key.push(name.as_str().as_bytes());
        }
        None => {
            let body = payload.body();
            key.push(&[body.table().number]);
            key.push(body.bytes());
        }
    }
    key
}

/// The part of the index of expiry that holds one class of records.
pub(super) fn index_prefix<K: Kind>(settled: bool) -> [u8; 2] {
    [K::TABLES.expiry, u8::from(settled)]
}

pub(super) fn index_key<K: Kind>(place: IndexKey, record: Digest) -> Key {
    let mut key = Key::new(K::TABLES.expiry);
    key.push(&[u8::from(place.settled)]);
    key.push(&place.at.to_be_bytes());
    key.push(&record.0);
    key
}

pub(super) fn read_index_key<K: Kind>(key: &[u8]) -> Option<(IndexKey, Digest)> {
    let (&[table, settled], rest) = key.split_first_chunk()?;
    let (at, record) = rest.split_first_chunk()?;
    let place = IndexKey { settled: settled != 0, at: Millis::from_be_bytes(*at) };
    (table == K::TABLES.expiry).then_some((place, Digest(record.try_into().ok()?)))
}

/// The part of a further index that holds one of its lists.
pub(super) fn entry_prefix<K: Kind>(list: u8, group: Digest) -> Key {
    let mut key = Key::new(K::TABLES.entries);
    key.push(&[list]);
    key.push(&group.0);
    key
}

pub(super) fn entry_key<K: Kind>(entry: &Entry, record: Digest) -> Key {
    let mut key = entry_prefix::<K>(entry.list, entry.group);
    key.push(&entry.at.to_be_bytes());
    key.push(&record.0);
    key
}

pub(super) fn read_entry_key<K: Kind>(key: &[u8]) -> Option<(Entry, Digest)> {
    let (&[table, list], rest) = key.split_first_chunk()?;
    let (group, rest) = rest.split_first_chunk()?;
    let (at, record) = rest.split_first_chunk()?;
    let entry = Entry { list, group: Digest(*group), at: u64::from_be_bytes(*at) };
    (table == K::TABLES.entries).then_some((entry, Digest(record.try_into().ok()?)))
}

pub(super) fn principal_key<K: Kind>(principal: Digest) -> Key {
    let mut key = Key::new(K::TABLES.principals);
    key.push(&principal.0);
    key
}

/// The record that a row belongs to; nothing when the row is none of the kind's.
pub(super) fn record_of<K: Kind>(key: &[u8]) -> Option<Digest> {
    key.strip_prefix(&[K::TABLES.records])?.first_chunk().copied().map(Digest)
}

fn chunk_key(key: &[u8], chunk: usize) -> Cow<'_, [u8]> {
    if chunk == 0 {
        return Cow::Borrowed(key);
    }
    let mut key = key.to_vec();
    key.push(0);
    key.extend((chunk as u16).to_be_bytes());
    Cow::Owned(key)
}

/// A value of any size.
pub(super) fn get_value<'r>(rows: &'r (impl Rows + ?Sized), key: &[u8]) -> Result<Option<Cow<'r, [u8]>>, StoreError> {
    let Some(first) = rows.get(key)? else { return Ok(None) };
    if first.len() < CHUNK {
        return Ok(Some(Cow::Borrowed(first)));
    }
    // Most large values have two chunks.
    let mut value = Vec::with_capacity(2 * CHUNK);
    value.extend(first);
    for number in 1.. {
        let chunk = rows
            .get(&chunk_key(key, number))?
            .ok_or_else(|| StoreError::corrupt("of this record", "the end of a large value is missing"))?;
        value.extend(chunk);
        if chunk.len() < CHUNK {
            break;
        }
    }
    Ok(Some(Cow::Owned(value)))
}

/// Writes a value of any size over whatever is there.
pub(super) fn put_value(rows: &mut (impl RowsMut + ?Sized), key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let mut before = None;
    for (number, chunk) in chunks(value) {
        before = rows.replace(&chunk_key(key, number), chunk)?;
    }
    // A longer value that was here before leaves chunks behind the new last one.
    if before.is_some_and(|length| length == CHUNK) { delete_from(rows, key, value.len() / CHUNK + 1) } else { Ok(()) }
}

/// Writes a value of any size where there is none.
pub(super) fn put_new_value(rows: &mut (impl RowsMut + ?Sized), key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    chunks(value).try_for_each(|(number, chunk)| rows.put(&chunk_key(key, number), chunk))
}

/// The rows a value is cut into, with their numbers; the last is shorter than a chunk, perhaps empty.
fn chunks(value: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..=value.len() / CHUNK).map(|number| (number, &value[number * CHUNK..value.len().min((number + 1) * CHUNK)]))
}

/// Deletes a value of any size.
pub(super) fn delete_value(rows: &mut (impl RowsMut + ?Sized), key: &[u8]) -> Result<(), StoreError> {
    delete_from(rows, key, 0)
}

fn delete_from(rows: &mut (impl RowsMut + ?Sized), key: &[u8], first: usize) -> Result<(), StoreError> {
    for number in first.. {
        match rows.delete(&chunk_key(key, number))? {
            Some(CHUNK..) => {}
            _ => break,
        }
    }
    Ok(())
}

/// Deletes all rows whose keys begin with `prefix`.
pub(super) fn delete_all(rows: &mut (impl RowsMut + ?Sized), prefix: &[u8]) -> Result<(), StoreError> {
    let mut keys = Vec::new();
    rows.scan(prefix, &mut |key, _| {
        let ours = key.starts_with(prefix);
        if ours {
            keys.push(key.to_vec());
        }
        ours
    })?;
    for key in keys {
        rows.delete(&key)?;
    }
    Ok(())
}

/// A number that is 0 while its row is missing.
pub(super) fn get_number(rows: &(impl Rows + ?Sized), key: &[u8]) -> Result<u64, StoreError> {
    let number = rows.get(key)?.and_then(|value| value.try_into().ok()).map_or(0, u64::from_be_bytes);
    // What counts rows stays far below; a damaged one must not overflow.
    Ok(number.min(u64::MAX >> 1))
}

/// Adds to a number; its row goes when it comes to 0.
pub(super) fn add_to_number(rows: &mut (impl RowsMut + ?Sized), key: &[u8], by: i64) -> Result<(), StoreError> {
    match get_number(rows, key)?.saturating_add_signed(by) {
        0 => rows.delete(key).map(|_| ()),
        number => rows.put(key, &number.to_be_bytes()),
    }
}

/// The payloads of one record in rows.
pub(super) struct Payloads<'r, K> {
    rows: &'r dyn Rows,
    record: Digest,
    attributes_were_read: Cell<bool>,
    kind: PhantomData<K>,
}

impl<'r, K: Kind> Payloads<'r, K> {
    pub(super) fn new(rows: &'r dyn Rows, record: Digest) -> Self {
        Self { rows, record, attributes_were_read: Cell::new(false), kind: PhantomData }
    }

    /// Whether anybody has looked at an attribute.
    pub(super) fn attributes_were_read(&self) -> bool {
        self.attributes_were_read.get()
    }

    fn value(&self, key: &K::Payload) -> Result<Option<Cow<'r, [u8]>>, StoreError> {
        if key.attribute().is_some() {
            self.attributes_were_read.set(true);
        }
        get_value(self.rows, &payload_key::<K>(self.record, key))
    }
}

impl<K: Kind> Values<K::Payload> for Payloads<'_, K> {
    fn get(&self, key: &K::Payload) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.value(key)?.map(Cow::into_owned))
    }

    fn length(&self, key: &K::Payload) -> Result<Option<usize>, StoreError> {
        Ok(self.value(key)?.map(|value| value.len()))
    }

    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, StoreError> {
        self.attributes_were_read.set(true);
        let table = attribute_prefix::<K>(self.record);
        let mut prefix = table.clone();
        if let Some(parent) = parent {
            prefix.push(parent.as_str().as_bytes());
            prefix.push(b".");
        }
        let mut keys = Vec::new();
        self.rows.scan(&prefix, &mut |key, _| {
            let ours = key.starts_with(&prefix);
            // A zero byte marks a further chunk of the row before it.
            if ours && !key[table.len()..].contains(&0) {
                keys.push(key.to_vec());
            }
            ours
        })?;
        keys.into_iter()
            .map(|key| {
                let damaged = || corrupt::<K>("a row has a key that is no attribute key");
                let name = std::str::from_utf8(&key[table.len()..]).map_err(|_| damaged())?;
                let name = AttributeKey::new(name).map_err(|_| damaged())?;
                let value = get_value(self.rows, &key)?.ok_or_else(damaged)?;
                Ok((name, value.into_owned()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Payload, Session};

    #[test]
    fn what_is_written_with_the_record_stands_beside_it_and_attributes_behind() {
        let session = Digest([7; 16]);
        let with_the_record = [
            Payload::Outgoing { owner: u32::MAX, sequence: u64::MAX },
            Payload::Broadcast(u64::MAX),
            Payload::Response(-1),
        ];
        let (record, attributes) = (record_key::<Session>(session), attribute_prefix::<Session>(session));
        for payload in with_the_record {
            let key = payload_key::<Session>(session, &payload);
            assert!(record[..] < key[..] && key[..] < attributes[..], "{payload:?}");
        }
    }
}
