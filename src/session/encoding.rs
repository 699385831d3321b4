//! How a record is written to bytes: a version byte, how much there is of what, the words, zeros, the texts.
//!
//! A record has one encoding. Every number is a word of 64 bits, little-endian, at a place that the version fixes; texts (the session's id, methods, request
//! ids) stand together at the end, their lengths among the words. So reading is copying, and checked once. A library reads the
//! versions it knows and refuses others; a field is added by a new version, never by changing one. A record keeps the version of the
//! build that made its session: processes of that build, which serve it too until they are replaced, go on reading it.
//!
//! Zeros fill the record up to a multiple of [`ROOM`] bytes: most operations leave it as long as it was, and a store writes it
//! over the old one where that is, without moving what else is on the page.
//!
//! ```text
//! version u8 · words u32 · bytes of texts u32 · head [u64; 14] · principal [u64; 3] · late [u64; 6] · lengths of lists [u64; 5] ·
//! owners [u64; 15]… · sizes [u32; 2]… · pending [u64; 7]… · in flight [u64; 4]… · broadcasts [u64; 5]… · ended [u64; 2]… · since [u64; 1]… · attributes u64 (both from version 5) · zeros · texts
//! ```

use std::collections::VecDeque;

use super::record::{Broadcast, InFlight, Owner, Pending, PendingState, Record};
use super::words::{LateReason, OwnerKind};
use crate::ids::{Digest, OwnerToken, RequestId};
use crate::kind::IndexKey;
use crate::process::Process;

/// The version of new sessions' records.
const VERSION: u8 = 5;
/// The version before, which does not say since when anything is there, nor how many attributes there are.
const UNTIMED: u8 = 4;

/// A record's length is a multiple of this many bytes: a pending request or two, or a few queued messages, change nothing.
const ROOM: usize = 256;

/// Bytes before the words.
const PREFIX: usize = 1 + 2 * size_of::<u32>();

/// Bytes that are not a record this library can read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndecodableRecord {
    /// Another version of the encoding.
    #[error("its encoding has version {found} and this library reads {UNTIMED} and {VERSION}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// Not an encoding at all.
    #[error("its encoding is damaged")]
    Damaged,
    /// An encoding of what no operation leaves behind.
    #[error("it contradicts itself: {0}")]
    Contradiction(&'static str),
}

impl Record {
    /// Reads a record. What it returns agrees with itself: an operation relies on that owners are there, and that sums are.
    pub fn decode(bytes: &[u8]) -> Result<Box<Self>, UndecodableRecord> {
        let record = match bytes.split_first() {
            Some((&version @ (UNTIMED | VERSION), rest)) if bytes.len().is_multiple_of(ROOM) => {
                let record = Reader::new(rest).and_then(|reader| reader.record(version == VERSION));
                record.ok_or(UndecodableRecord::Damaged)?
            }
            Some((&found, _)) if !matches!(found, UNTIMED | VERSION) => {
                return Err(UndecodableRecord::Version { found });
            }
            _ => return Err(UndecodableRecord::Damaged),
        };
        record.check().map_err(UndecodableRecord::Contradiction)?;
        Ok(record)
    }

    /// Writes the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * ROOM);
        bytes.push(if self.is_timed { VERSION } else { UNTIMED });
        bytes.extend([0; PREFIX - 1]);
        write(&mut bytes, self.head());
        write(&mut bytes, self.principal.map_or([0; 3], |Digest(digest)| [1, low(digest), high(digest)]));
        write(&mut bytes, self.late.map(u64::from));
        let lists =
            [self.owners.len(), self.pending.len(), self.in_flight.len(), self.broadcasts.len(), self.ended.len()];
        write(&mut bytes, lists.map(|length| length as u64));
        self.owners.iter().for_each(|owner| write(&mut bytes, owner.words()));
        let mut sizes = self.owners.iter().flat_map(|owner| owner.sizes.iter().map(|&size| u64::from(size)));
        while let Some(size) = sizes.next() {
            write(&mut bytes, [size | sizes.next().unwrap_or(0) << 32]);
        }
        self.pending.iter().for_each(|pending| write(&mut bytes, pending.words()));
        self.in_flight.iter().for_each(|request| write(&mut bytes, request.words()));
        self.broadcasts.iter().for_each(|broadcast| write(&mut bytes, broadcast.words()));
        self.ended.iter().for_each(|ended| write(&mut bytes, ended.words()));
        if self.is_timed {
            self.since().for_each(|since| write(&mut bytes, [since]));
            write(&mut bytes, [self.attributes]);
        }
        let words = ((bytes.len() - PREFIX) / size_of::<u64>()) as u32;
        let methods = self.pending.iter().map(|pending| pending.method.as_str());
        let requests = self.in_flight.iter().map(|request| text_of(&request.id));
        let texts = std::iter::once(self.id.as_str()).chain(methods).chain(requests);
        let length = texts.clone().map(str::len).sum::<usize>();
        bytes[1..PREFIX].copy_from_slice([words.to_le_bytes(), (length as u32).to_le_bytes()].as_flattened());
        bytes.resize((bytes.len() + length).next_multiple_of(ROOM) - length, 0);
        texts.for_each(|text| bytes.extend_from_slice(text.as_bytes()));
        bytes
    }

    fn head(&self) -> [u64; 14] {
        [
            self.id.len() as u64,
            self.incarnation,
            self.created,
            self.last_active,
            self.ttl,
            u64::from(self.indexed.settled),
            self.indexed.at,
            u64::from(self.exchanges),
            u64::from(self.next_owner),
            self.first_request as u64,
            self.next_request as u64,
            self.next_broadcast,
            self.message_bytes,
            self.attribute_bytes,
        ]
    }
}

/// What a record has a list of: each as so many words, and perhaps a text.
trait Entry<const WORDS: usize>: Sized {
    fn words(&self) -> [u64; WORDS];
    fn read(words: [u64; WORDS], texts: &mut Texts<'_>) -> Option<Self>;
}

impl Entry<15> for Owner {
    fn words(&self) -> [u64; 15] {
        [
            low(self.token.0),
            high(self.token.0),
            u64::from(self.number) << 1 | u64::from(self.kind == OwnerKind::Stream),
            self.lease,
            self.lease_until,
            u64::from(self.process.pid),
            self.process.started,
            self.process.namespace,
            self.head,
            self.tail,
            self.bytes,
            self.events,
            self.resolved_at,
            self.message_at,
            self.cancelled_at,
        ]
    }

    fn read(words: [u64; 15], _: &mut Texts<'_>) -> Option<Self> {
        let [
            token_low,
            token_high,
            number_and_kind,
            lease,
            lease_until,
            pid,
            started,
            namespace,
            head,
            tail,
            bytes,
            events,
            resolved_at,
            message_at,
            cancelled_at,
        ] = words;
        Some(Owner {
            token: OwnerToken(bytes_of(token_low, token_high)),
            number: u32::try_from(number_and_kind >> 1).ok()?,
            kind: if number_and_kind & 1 == 1 { OwnerKind::Stream } else { OwnerKind::Reply },
            lease,
            lease_until,
            process: Process { pid: u32::try_from(pid).ok()?, started, namespace },
            since: 0,
            head,
            tail,
            sizes: VecDeque::new(),
            bytes,
            events,
            resolved_at,
            message_at,
            cancelled_at,
        })
    }
}

impl Entry<7> for Pending {
    fn words(&self) -> [u64; 7] {
        let [state, event, bytes] = match self.state {
            PendingState::Waiting => [0, 0, 0],
            PendingState::Answered { event, bytes } => [1, event, u64::from(bytes)],
            PendingState::TimedOut { event } => [2, event, 0],
            PendingState::Cancelled { event } => [3, event, 0],
        };
        [self.id as u64, u64::from(self.owner), self.deadline, self.method.len() as u64, state, event, bytes]
    }

    fn read([id, owner, deadline, method, state, event, bytes]: [u64; 7], texts: &mut Texts<'_>) -> Option<Self> {
        Some(Pending {
            id: id as i64,
            owner: u32::try_from(owner).ok()?,
            deadline,
            method: texts.next(method)?,
            since: 0,
            state: match [state, event, bytes] {
                [0, 0, 0] => PendingState::Waiting,
                [1, event, bytes] => PendingState::Answered { event, bytes: u32::try_from(bytes).ok()? },
                [2, event, 0] => PendingState::TimedOut { event },
                [3, event, 0] => PendingState::Cancelled { event },
                _ => return None,
            },
        })
    }
}

impl Entry<4> for InFlight {
    fn words(&self) -> [u64; 4] {
        let (is_text, number) = match &self.id {
            RequestId::Int(number) => (0, *number as u64),
            RequestId::Str(text) => (1, text.len() as u64),
        };
        [is_text, number, u64::from(self.owner), u64::from(self.cancelled)]
    }

    fn read([is_text, number, owner, cancelled]: [u64; 4], texts: &mut Texts<'_>) -> Option<Self> {
        Some(InFlight {
            id: if flag(is_text)? { RequestId::Str(texts.next(number)?) } else { RequestId::Int(number as i64) },
            owner: u32::try_from(owner).ok()?,
            cancelled: flag(cancelled)?,
            since: 0,
        })
    }
}

impl Entry<5> for Broadcast {
    fn words(&self) -> [u64; 5] {
        let (owner, sequence) = self.holder.unwrap_or_default();
        [self.number, u64::from(self.bytes), u64::from(self.holder.is_some()), u64::from(owner), sequence]
    }

    fn read([number, bytes, held, owner, sequence]: [u64; 5], _: &mut Texts<'_>) -> Option<Self> {
        let holder = match [held, owner, sequence] {
            [0, 0, 0] => None,
            [1, owner, sequence] => Some((u32::try_from(owner).ok()?, sequence)),
            _ => return None,
        };
        Some(Broadcast { number, bytes: u32::try_from(bytes).ok()?, holder })
    }
}

impl Entry<2> for (i64, LateReason) {
    fn words(&self) -> [u64; 2] {
        [self.0 as u64, self.1 as u64]
    }

    fn read([id, reason]: [u64; 2], _: &mut Texts<'_>) -> Option<Self> {
        Some((id as i64, *LateReason::ALL.get(usize::try_from(reason).ok()?)?))
    }
}

/// What is left to be read of a record.
struct Reader<'b> {
    words: &'b [[u8; 8]],
    texts: Texts<'b>,
}

impl<'b> Reader<'b> {
    fn new(bytes: &'b [u8]) -> Option<Self> {
        let (words, rest) = bytes.split_first_chunk()?;
        let (texts, rest) = rest.split_first_chunk()?;
        let (words, rest) = rest.split_at_checked(u32::from_le_bytes(*words) as usize * size_of::<u64>())?;
        let (zeros, texts) = rest.split_at_checked(rest.len().checked_sub(u32::from_le_bytes(*texts) as usize)?)?;
        let is_one = zeros.len() < ROOM && zeros.iter().fold(0, |any, byte| any | byte) == 0;
        is_one.then_some(Self { words: words.as_chunks().0, texts: Texts(std::str::from_utf8(texts).ok()?) })
    }

    fn next<const WORDS: usize>(&mut self) -> Option<[u64; WORDS]> {
        let (next, rest) = self.words.split_first_chunk()?;
        self.words = rest;
        Some(next.map(u64::from_le_bytes))
    }

    fn list<T: Entry<WORDS>, const WORDS: usize>(&mut self, length: u64) -> Option<Vec<T>> {
        let (list, rest) = self.words.split_at_checked(usize::try_from(length).ok()?.checked_mul(WORDS)?)?;
        self.words = rest;
        let entries = list.as_chunks::<WORDS>().0.iter();
        // Most operations that change a list add one.
        let mut list = Vec::with_capacity(if entries.len() == 0 { 0 } else { entries.len() + 1 });
        for words in entries {
            list.push(T::read(words.map(u64::from_le_bytes), &mut self.texts)?);
        }
        Some(list)
    }

    /// Owners, and behind them the sizes of all their messages, two in a word.
    fn owners(&mut self, length: u64) -> Option<Vec<Owner>> {
        let mut owners: Vec<Owner> = self.list(length)?;
        let mut second = None;
        for owner in &mut owners {
            for _ in 0..owner.tail.checked_sub(owner.head)? {
                let size = match second.take() {
                    Some(size) => size,
                    None => {
                        let [both] = self.next()?;
                        second = Some((both >> 32) as u32);
                        both as u32
                    }
                };
                owner.sizes.push_back(size);
            }
        }
        second.is_none_or(|left| left == 0).then_some(owners)
    }

    fn record(mut self, is_timed: bool) -> Option<Box<Record>> {
        let [
            id,
            incarnation,
            created,
            last_active,
            ttl,
            settled,
            at,
            exchanges,
            next_owner,
            first_request,
            next_request,
            next_broadcast,
            message_bytes,
            attribute_bytes,
        ] = self.next()?;
        let principal = match self.next()? {
            [0, 0, 0] => None,
            [1, low, high] => Some(Digest(bytes_of(low, high))),
            _ => return None,
        };
        let mut late = [0; LateReason::COUNT];
        for (late, word) in late.iter_mut().zip(self.next::<{ LateReason::COUNT }>()?) {
            *late = u32::try_from(word).ok()?;
        }
        let [owners, pending, in_flight, broadcasts, ended] = self.next()?;
        let mut record = Box::new(Record {
            id: self.texts.next(id)?,
            incarnation,
            principal,
            created,
            last_active,
            ttl,
            indexed: IndexKey { settled: flag(settled)?, at },
            exchanges: u32::try_from(exchanges).ok()?,
            next_owner: u32::try_from(next_owner).ok()?,
            first_request: first_request as i64,
            next_request: next_request as i64,
            next_broadcast,
            message_bytes,
            attribute_bytes,
            attributes: 0,
            owners: self.owners(owners)?,
            pending: self.list(pending)?,
            in_flight: self.list(in_flight)?,
            broadcasts: self.list(broadcasts)?.into(),
            ended: self.list(ended)?.into(),
            late,
            is_timed,
        });
        if is_timed {
            for since in record.since_mut() {
                [*since] = self.next()?;
            }
            [record.attributes] = self.next()?;
        }
        (self.words.is_empty() && self.texts.0.is_empty()).then_some(record)
    }
}

/// The texts that are left to be read.
struct Texts<'b>(&'b str);

impl Texts<'_> {
    fn next(&mut self, length: u64) -> Option<String> {
        let (text, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(text.to_owned())
    }
}

fn write<const WORDS: usize>(bytes: &mut Vec<u8>, words: [u64; WORDS]) {
    bytes.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
}

fn low(bytes: [u8; 16]) -> u64 {
    u128::from_le_bytes(bytes) as u64
}

fn high(bytes: [u8; 16]) -> u64 {
    (u128::from_le_bytes(bytes) >> 64) as u64
}

fn bytes_of(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

fn flag(word: u64) -> Option<bool> {
    match word {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn text_of(id: &RequestId) -> &str {
    match id {
        RequestId::Int(_) => "",
        RequestId::Str(text) => text,
    }
}
