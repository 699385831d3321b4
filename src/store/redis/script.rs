//! The scripts that run in the server, what they are asked and what they answer.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::Range;
use std::sync::LazyLock;

use redis::Value;

use crate::clock::Millis;
use crate::kind::{AttributeKey, BodyKey, Changes, PayloadKey};

/// A script and the name that the server knows it by.
pub(super) struct Script {
    pub(super) source: &'static str,
    pub(super) hash: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }
}

/// `session.lua`: carries out one operation on one session.
pub(super) static SESSION: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("session.lua")));
/// `publish.lua`: appends a message to a topic.
pub(super) static PUBLISH: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("publish.lua")));
/// `rights.lua`: which rights the user lacks.
pub(super) static RIGHTS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("rights.lua")));
/// `once.lua`: uses a single-use key.
pub(super) static ONCE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("once.lua")));

/// How many versions a session remembers, at least: as many as others may make while one connects anew.
const VERSIONS: usize = 128;

/// One version of a session: random, so that none comes twice, not even when a server has lost the last ones.
pub(super) type Version = [u8; 8];

/// What an operation asks for besides the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked<P> {
    /// Bodies.
    pub(super) payloads: BTreeSet<P>,
    /// Attributes by name.
    pub(super) rows: BTreeSet<AttributeKey>,
    /// What else it must know of attributes.
    pub(super) listing: Listing,
}

impl<P> Default for Asked<P> {
    fn default() -> Self {
        Self { payloads: BTreeSet::new(), rows: BTreeSet::new(), listing: Listing::None }
    }
}

impl<P> Asked<P> {
    /// Whether it asks for attributes.
    pub(super) fn for_attributes(&self) -> bool {
        !self.rows.is_empty() || self.listing != Listing::None
    }
}

/// Which attributes a request lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Listing {
    #[default]
    None = 0,
    /// The names of all.
    Names = 1,
    /// All with their values.
    All = 2,
}

/// What is sent to [`SESSION`].
pub(super) struct Request<'r, P> {
    /// The version the operation was decided on; nothing when it was decided that there is no session.
    pub(super) expected: Option<Version>,
    /// The version it makes; nothing to look only.
    pub(super) new: Option<Version>,
    /// The times it was decided for.
    pub(super) steady: Range<Millis>,
    /// The time, unless it is the server's.
    pub(super) clock: Option<Millis>,
    /// Whether everything there is goes first.
    pub(super) purges: bool,
    /// Whether it only frees, so that it must work on a full server too.
    pub(super) frees: bool,
    /// Milliseconds to keep the keys from now on; nothing when that is as it was.
    pub(super) life: Option<Millis>,
    /// Milliseconds to keep the hash of what was taken away.
    pub(super) kept_for: Millis,
    /// The record to write.
    pub(super) record: Option<Vec<u8>>,
    pub(super) asked: &'r Asked<P>,
    /// Payloads to write or delete.
    pub(super) payloads: &'r Changes<P>,
    /// Channels to publish to.
    pub(super) channels: Vec<String>,
}

/// The keys of a session that a request is about.
pub(super) struct Keys {
    /// Its hash.
    pub(super) session: String,
    /// The hash of its attributes.
    pub(super) rows: String,
    /// The hash of what was taken away, and the field of this caller; nothing when it asks for no payloads.
    pub(super) kept: Option<(String, [u8; 12])>,
}

impl<P: PayloadKey> Request<'_, P> {
    /// Whether what it takes away must be remembered, in case its answer is lost.
    pub(super) fn keeps(&self) -> bool {
        self.new.is_some() && !self.asked.payloads.is_empty()
    }

    /// The command that runs the script, named or in full; `again` when it may have been carried out already.
    pub(super) fn command(&self, call: Call<'_>, keys: &Keys, again: bool) -> Packed {
        let (mut puts, mut deletes, mut row_puts, mut row_deletes) = (2, 0, 0, 0);
        puts += 2 * usize::from(self.record.is_some());
        for (payload, value) in self.payloads.iter() {
            match (payload.attribute(), value) {
                (Some(_), Some(_)) => row_puts += 2,
                (Some(_), None) => row_deletes += 1,
                (None, Some(_)) => puts += 2,
                (None, None) => deletes += 1,
            }
        }
        let wanted = 1 + self.asked.payloads.len();
        let first = [wanted, deletes, puts, self.channels.len()];
        let second = [self.asked.rows.len(), row_deletes, row_puts];
        let lists = self.asked.listing != Listing::None;
        let more = again || self.purges || self.life.is_some() || lists || second.iter().any(|&length| length > 0);
        let (keys_count, heads) = (1 + usize::from(more) + usize::from(keys.kept.is_some()), 1 + usize::from(more));
        let items = first.iter().sum::<usize>() + if more { second.iter().sum() } else { 0 };

        let mut packed = Packed::new(3 + keys_count + 2 + heads + usize::from(keys.kept.is_some()) + items);
        packed.call(call);
        packed.number(keys_count);
        packed.add(keys.session.as_bytes());
        if more {
            packed.add(keys.rows.as_bytes());
        }
        if let Some((kept, _)) = &keys.kept {
            packed.add(kept.as_bytes());
        }
        packed.add(self.expected.as_ref().map_or(&[], |version| version));
        packed.add(self.new.as_ref().map_or(&[], |version| version));
        let mut head = Head::default();
        head.doubles([self.steady.start as f64, self.steady.end as f64, self.clock.map_or(-1.0, |now| now as f64)]);
        head.flags([self.frees, keys.kept.is_some(), more]);
        head.lengths([self.kept_for.try_into().unwrap_or(usize::MAX)]);
        head.lengths(first);
        packed.add(head.bytes());
        if more {
            let mut head = Head::default();
            head.doubles([self.life.map_or(0.0, |life| life.max(1) as f64)]);
            head.flags([self.purges, again]);
            head.0.push(self.asked.listing as u8);
            head.lengths(second);
            packed.add(head.bytes());
        }
        if let Some((_, caller)) = &keys.kept {
            packed.add(caller);
        }

        packed.add(b"v");
        for payload in &self.asked.payloads {
            packed.add(Field::of(payload).bytes());
        }
        for (payload, _) in self.of_payloads().filter(|(_, value)| value.is_none()) {
            packed.add(Field::of(payload).bytes());
        }
        packed.add(b"v");
        packed.add(b"");
        if let Some(record) = &self.record {
            packed.add(b"r");
            packed.add(record);
        }
        for (payload, value) in self.of_payloads() {
            if let Some(value) = value {
                packed.add(Field::of(payload).bytes());
                packed.add(value);
            }
        }
        for channel in &self.channels {
            packed.add(channel.as_bytes());
        }
        if more {
            for row in &self.asked.rows {
                packed.add(row.as_str().as_bytes());
            }
            for (name, _) in self.of_rows().filter(|(_, value)| value.is_none()) {
                packed.add(name.as_bytes());
            }
            for (name, value) in self.of_rows() {
                if let Some(value) = value {
                    packed.add(name.as_bytes());
                    packed.add(value);
                }
            }
        }
        packed
    }

    /// The bodies among what is written or deleted.
    fn of_payloads(&self) -> impl Iterator<Item = (&P, Option<&[u8]>)> {
        let payloads = self.payloads.iter().filter(|(payload, _)| payload.attribute().is_none());
        payloads.map(|(payload, value)| (payload, value.as_deref()))
    }

    /// The attributes among it.
    fn of_rows(&self) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
        self.payloads.iter().filter_map(|(payload, value)| Some((payload.attribute()?.as_str(), value.as_deref())))
    }
}

/// How a script is called: by the name the server knows it by, or in full.
#[derive(Clone, Copy)]
pub(super) enum Call<'s> {
    Named(&'s Script),
    InFull(&'s Script),
}

/// A command as it is sent.
pub(super) struct Packed(pub(super) Vec<u8>);

impl Packed {
    fn new(items: usize) -> Self {
        let mut packed = Vec::with_capacity(2048);
        let _ = write!(packed, "*{items}\r\n");
        Self(packed)
    }

    fn call(&mut self, call: Call<'_>) {
        let (command, script) = match call {
            Call::Named(script) => ("EVALSHA", script.hash.as_str()),
            Call::InFull(script) => ("EVAL", script.source),
        };
        self.add(command.as_bytes());
        self.add(script.as_bytes());
    }

    /// What a look sends: two commands.
    pub(super) fn look<P: PayloadKey>(key: &str, payloads: &BTreeSet<P>) -> Self {
        let mut packed = Self::new(1);
        packed.add(b"TIME");
        let _ = write!(packed.0, "*{}\r\n", 4 + payloads.len());
        packed.add(b"HMGET");
        packed.add(key.as_bytes());
        packed.add(b"v");
        packed.add(b"r");
        for payload in payloads {
            packed.add(Field::of(payload).bytes());
        }
        packed
    }

    fn number(&mut self, number: usize) {
        self.add(itoa(number, &mut [0; 20]));
    }

    fn add(&mut self, item: &[u8]) {
        self.0.push(b'$');
        self.0.extend_from_slice(itoa(item.len(), &mut [0; 20]));
        self.0.extend_from_slice(b"\r\n");
        self.0.extend_from_slice(item);
        self.0.extend_from_slice(b"\r\n");
    }
}

/// The decimal digits of a number.
fn itoa(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Numbers as the script unpacks them.
#[derive(Default)]
struct Head(Vec<u8>);

impl Head {
    fn doubles<const N: usize>(&mut self, numbers: [f64; N]) {
        self.0.extend(numbers.into_iter().flat_map(f64::to_be_bytes));
    }

    fn flags<const N: usize>(&mut self, flags: [bool; N]) {
        self.0.extend(flags.map(u8::from));
    }

    fn lengths<const N: usize>(&mut self, lengths: [usize; N]) {
        self.0.extend(lengths.into_iter().flat_map(|length| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()));
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The field of the record's hash that a body is in; attributes have a hash of their own.
pub(super) struct Field([u8; 1 + BodyKey::LONGEST], usize);

impl Field {
    pub(super) fn of(payload: &impl PayloadKey) -> Self {
        let body = payload.body();
        let mut field = [0; 1 + BodyKey::LONGEST];
        field[0] = body.table().letter;
        field[1..][..body.bytes().len()].copy_from_slice(body.bytes());
        Self(field, 1 + body.bytes().len())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was done; a look found the version it expected.
    #[default]
    Done,
    /// It had been done by an earlier sending of the same request.
    DoneBefore,
    /// The session has another version, or the time has passed a mark.
    Other,
}

/// What [`SESSION`] answers.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    /// The server's time.
    pub(super) now: Millis,
    /// With [`Verdict::Other`]: the newest version of the session, and all it remembers if the request was sent again.
    pub(super) versions: Vec<u8>,
    /// With [`Verdict::Other`]: the record.
    pub(super) record: Option<Vec<u8>>,
    pub(super) payloads: Vec<Option<Vec<u8>>>,
    pub(super) rows: Vec<Option<Vec<u8>>>,
    /// Names of attributes, or names and values in turn.
    pub(super) listing: Vec<Vec<u8>>,
}

impl Answer {
    /// Reads an answer; nothing when it is none.
    pub(super) fn read(value: Value) -> Option<Self> {
        let parts = match value {
            Value::Int(now) => return Self::done(now, Vec::new()),
            value => array(value)?,
        };
        let mut parts = parts.into_iter();
        let (verdict, now) = match parts.next()? {
            Value::Int(now) => return Self::done(now, parts.map(bytes).collect::<Option<_>>()?),
            first => match array(first)?[..] {
                [Value::Int(verdict), Value::Int(now)] => (verdict, now.try_into().ok()?),
                _ => return None,
            },
        };
        let verdict = match verdict {
            0 => Verdict::Other,
            1 => Verdict::Done,
            2 => Verdict::DoneBefore,
            _ => return None,
        };
        let mut next = || parts.next().unwrap_or(Value::Nil);
        Some(Self {
            verdict,
            now,
            payloads: list(next())?.into_iter().map(bytes).collect::<Option<_>>()?,
            rows: list(next())?.into_iter().map(bytes).collect::<Option<_>>()?,
            listing: list(next())?.into_iter().map(|item| bytes(item)?).collect::<Option<_>>()?,
            versions: bytes(next())?.unwrap_or_default(),
            record: bytes(next())?,
        })
    }

    /// Reads what came of a look at a session that had the version `expected`.
    pub(super) fn of_look(time: Value, fields: Value, expected: Option<Version>) -> Option<Self> {
        let (seconds, micros): (u64, u64) = redis::from_redis_value(time).ok()?;
        let mut fields = array(fields)?.into_iter().map(bytes);
        let (versions, record) = (fields.next()??.unwrap_or_default(), fields.next()??);
        let version = versions.first_chunk::<8>().copied();
        let payloads = fields.collect::<Option<_>>()?;
        let answer = Self { now: seconds * 1000 + micros / 1000, payloads, ..Self::default() };
        Some(match version == expected {
            true => answer,
            false => Self { verdict: Verdict::Other, versions: version.map_or(vec![], Vec::from), record, ..answer },
        })
    }

    fn done(now: i64, payloads: Vec<Option<Vec<u8>>>) -> Option<Self> {
        Some(Self { now: now.try_into().ok()?, payloads, ..Self::default() })
    }

    /// The newest version.
    pub(super) fn version(&self) -> Option<Version> {
        self.versions.first_chunk().copied()
    }

    /// Whether an operation on `expected` that this answer refuses cannot have been done by an earlier sending: the versions
    /// reach back to the one it was decided on, and its own does not follow that.
    pub(super) fn proves_not_done(&self, expected: Option<Version>) -> bool {
        match expected {
            Some(expected) => self.versions.chunks(expected.len()).any(|version| version == expected),
            None => self.versions.len() < VERSIONS * size_of::<Version>(),
        }
    }
}

fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// The items of a list that is nothing when it was not asked for.
fn list(value: Value) -> Option<Vec<Value>> {
    if value == Value::Nil { Some(Vec::new()) } else { array(value) }
}

/// The bytes of a value that may be missing; nothing when it is neither.
fn bytes(value: Value) -> Option<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Some(Some(bytes)),
        Value::Nil => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Payload;

    fn answer(versions: &[Version]) -> Answer {
        let versions = versions.as_flattened().to_vec();
        Answer { verdict: Verdict::Other, now: 1, versions, ..Answer::default() }
    }

    #[test]
    fn fields_of_payloads_differ_and_are_never_the_record_or_the_versions() {
        let payloads = [
            Payload::Outgoing { owner: 1, sequence: 2 },
            Payload::Outgoing { owner: 2, sequence: 1 },
            Payload::Broadcast(1),
            Payload::Response(1),
            Payload::Response(-1),
        ];
        let fields: std::collections::BTreeSet<_> =
            payloads.iter().map(|payload| Field::of(payload).bytes().to_vec()).collect();
        assert_eq!(fields.len(), payloads.len());
        assert!(fields.iter().all(|field| field.len() > 1));
    }

    #[test]
    fn g8_only_versions_that_reach_back_prove_that_an_operation_was_not_done() {
        let [ours, theirs] = [[1; 8], [2; 8]];
        assert!(answer(&[ours]).proves_not_done(Some(ours)), "nothing has followed");
        assert!(answer(&[theirs, ours]).proves_not_done(Some(ours)), "somebody else's has followed");
        assert!(!answer(&[theirs]).proves_not_done(Some(ours)), "too long ago");
        assert!(!answer(&[]).proves_not_done(Some(ours)), "the server has lost it");
        assert!(answer(&[theirs]).proves_not_done(None));
        assert!(!answer(&[theirs; VERSIONS]).proves_not_done(None));
    }

    #[test]
    fn what_is_no_answer_is_not_read_as_one() {
        let verdict = Value::Array(vec![Value::Int(9), Value::Int(1)]);
        for value in [Value::Nil, Value::Int(-1), Value::Array(vec![]), Value::Array(vec![verdict])] {
            assert!(Answer::read(value).is_none());
        }
    }
}
