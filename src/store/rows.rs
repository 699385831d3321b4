//! Ordered rows of bytes under transactions: all that a local store must bring, and how a session lies in rows.
//!
//! Layout, a key's first byte naming the table:
//!
//! | key | value |
//! |---|---|
//! | `S` session `00` | the record |
//! | `S` session `01` owner `u32` sequence `u64` | a queued message |
//! | `S` session `02` number `u64` | a broadcast |
//! | `S` session `03` id `i64` | a response |
//! | `S` session `04` attribute key | the JSON text |
//! | `X` settled `u8` time `u64` session | nothing: the index of expiry |
//! | `C` | the era the rows belong to, see [`super::era`] |
//! | `N` | how many sessions there are, `u64` |
//! | `P` principal | how many sessions the principal has, `u64` |
//!
//! The bus and single-use keys have tables of their own ([`super::bus`], [`super::once`]).
//!
//! Session and principal are digests of 16 bytes, numbers are big-endian. A value of 64 KiB or more continues in rows whose
//! keys are followed by `00` and the number of the chunk, `u16`; the chunk shorter than 64 KiB is the last. Everything of one
//! session stands together: an operation touches few pages. Messages and responses stand beside the record that is written with
//! them, and what may be large behind them: so most often both are on one page.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Deref;

use crate::clock::Millis;
use crate::error::{Error, StoreError};
use crate::ids::Digest;
use crate::session::{AttributeKey, IndexKey, Payload, Refusal, Values};

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
    /// What to wait on.
    fn bell(&self) -> std::sync::Arc<crate::bell::Bell>;
    /// See [`super::Store::refresh`].
    fn refresh(&self) -> Result<(), StoreError>;
    /// See [`super::Store::maintain`].
    fn maintain(&self) -> Result<(), StoreError>;
    /// See [`super::Store::describe`].
    fn describe(&self) -> Vec<(&'static str, String)>;
}

pub(super) const SESSIONS: u8 = b'S';
const INDEX: u8 = b'X';
pub(super) const POPULATION: [u8; 1] = [b'N'];
const PRINCIPALS: u8 = b'P';

/// Within a session, the rows of attributes.
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

/// The key all rows of a session begin with.
pub(super) fn session_prefix(session: Digest) -> Key {
    let mut key = Key::new(SESSIONS);
    key.push(&session.0);
    key
}

pub(super) fn record_key(session: Digest) -> Key {
    let mut key = session_prefix(session);
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

fn attribute_prefix(session: Digest) -> Key {
    let mut key = session_prefix(session);
    key.push(&[ATTRIBUTES]);
    key
}

pub(super) fn payload_key(session: Digest, payload: &Payload) -> Key {
    let mut key = session_prefix(session);
    match payload {
        Payload::Attribute(attribute) => {
            key.push(&[ATTRIBUTES]);
            key.push(attribute.as_str().as_bytes());
        }
        Payload::Outgoing { owner, sequence } => {
            key.push(&[1]);
            key.push(&owner.to_be_bytes());
            key.push(&sequence.to_be_bytes());
        }
        Payload::Broadcast(number) => {
            key.push(&[2]);
            key.push(&number.to_be_bytes());
        }
        Payload::Response(id) => {
            key.push(&[3]);
            key.push(&id.to_be_bytes());
        }
    }
    key
}

/// The part of the index that holds one class of sessions.
pub(super) fn index_prefix(settled: bool) -> [u8; 2] {
    [INDEX, u8::from(settled)]
}

pub(super) fn index_key(place: IndexKey, session: Digest) -> Key {
    let mut key = Key::new(INDEX);
    key.push(&[u8::from(place.settled)]);
    key.push(&place.at.to_be_bytes());
    key.push(&session.0);
    key
}

pub(super) fn read_index_key(key: &[u8]) -> Option<(IndexKey, Digest)> {
    let (&[INDEX, settled], rest) = key.split_first_chunk()? else { return None };
    let (at, session) = rest.split_first_chunk()?;
    let place = IndexKey { settled: settled != 0, at: Millis::from_be_bytes(*at) };
    Some((place, Digest(session.try_into().ok()?)))
}

pub(super) fn principal_key(principal: Digest) -> Key {
    let mut key = Key::new(PRINCIPALS);
    key.push(&principal.0);
    key
}

/// The part of a row's key behind its session, and the session; nothing when the row is no session's.
pub(super) fn split_session_key(key: &[u8]) -> Option<(Digest, &[u8])> {
    let (session, rest) = key.strip_prefix(&[SESSIONS])?.split_first_chunk()?;
    Some((Digest(*session), rest))
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
            .ok_or_else(|| StoreError::corrupt("of this session", "the end of a large value is missing"))?;
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

/// The payloads of one session in rows.
pub(super) struct SessionRows<'r> {
    rows: &'r dyn Rows,
    session: Digest,
    attributes_were_read: Cell<bool>,
}

impl<'r> SessionRows<'r> {
    pub(super) fn new(rows: &'r dyn Rows, session: Digest) -> Self {
        Self { rows, session, attributes_were_read: Cell::new(false) }
    }

    /// Whether anybody has looked at an attribute.
    pub(super) fn attributes_were_read(&self) -> bool {
        self.attributes_were_read.get()
    }

    fn value(&self, key: &Payload) -> Result<Option<Cow<'r, [u8]>>, StoreError> {
        if matches!(key, Payload::Attribute(_)) {
            self.attributes_were_read.set(true);
        }
        get_value(self.rows, &payload_key(self.session, key))
    }
}

impl Values for SessionRows<'_> {
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.value(key)?.map(Cow::into_owned))
    }

    fn length(&self, key: &Payload) -> Result<Option<usize>, StoreError> {
        Ok(self.value(key)?.map(|value| value.len()))
    }

    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, StoreError> {
        self.attributes_were_read.set(true);
        let table = attribute_prefix(self.session);
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
                let damaged = || StoreError::corrupt("of this session", "a row has a key that is no attribute key");
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

    #[test]
    fn what_is_written_with_the_record_stands_beside_it_and_attributes_behind() {
        let session = Digest([7; 16]);
        let with_the_record = [
            Payload::Outgoing { owner: u32::MAX, sequence: u64::MAX },
            Payload::Broadcast(u64::MAX),
            Payload::Response(-1),
        ];
        let (record, attributes) = (record_key(session), attribute_prefix(session));
        for payload in with_the_record {
            let key = payload_key(session, &payload);
            assert!(record[..] < key[..] && key[..] < attributes[..], "{payload:?}");
        }
    }
}
