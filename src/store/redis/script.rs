//! The scripts that run in the server, what they are asked and what they answer.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use redis::{Cmd, Value};

use crate::clock::Millis;
use crate::session::{AttributeKey, Changes, Payload};

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
/// Two hashes at one moment.
pub(super) static BOTH: LazyLock<Script> =
    LazyLock::new(|| Script::new("return { redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]) }"));
/// `once.lua`: uses a single-use key.
pub(super) static ONCE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("once.lua")));

/// How many versions a session remembers, at least: as many as others may make while one connects anew.
const VERSIONS: usize = 128;

/// One version of a session: random, so that none comes twice, not even when a server has lost the last ones.
pub(super) type Version = [u8; 8];

/// What an operation asks for besides the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Messages, broadcasts, responses.
    pub(super) payloads: Vec<Payload>,
    /// Attributes by name.
    pub(super) rows: Vec<AttributeKey>,
    /// Attributes by what their names begin with.
    pub(super) prefixes: Vec<String>,
}

/// What is sent to [`SESSION`].
pub(super) struct Request<'r> {
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
    /// Milliseconds to keep what it takes away.
    pub(super) taken_life: Millis,
    /// The record to write.
    pub(super) record: Option<Vec<u8>>,
    pub(super) asked: &'r Asked,
    /// Payloads to write or delete.
    pub(super) payloads: &'r Changes,
    /// Channels to publish to.
    pub(super) channels: Vec<String>,
}

impl Request<'_> {
    /// The arguments of the script; `again` when it may have been carried out already.
    pub(super) fn write_to(&self, command: &mut Cmd, again: bool) {
        let version = |version: &Option<Version>| version.map_or(Vec::new(), |version| version.to_vec());
        let (mut puts, mut deletes, mut row_puts, mut row_deletes) = (vec![], vec![], vec![], vec![]);
        if let Some(record) = &self.record {
            puts.extend([Cow::from(b"r"), Cow::from(record)]);
        }
        for (payload, value) in self.payloads.iter() {
            match (payload, value) {
                (Payload::Attribute(name), Some(value)) => {
                    row_puts.extend([Cow::from(name.as_str().as_bytes()), Cow::from(value)]);
                }
                (Payload::Attribute(name), None) => row_deletes.push(Cow::from(name.as_str().as_bytes())),
                (payload, Some(value)) => puts.extend([Cow::from(field(payload)), Cow::from(value)]),
                (payload, None) => deletes.push(Cow::from(field(payload))),
            }
        }
        let lists: [Vec<Cow<'_, [u8]>>; 8] = [
            self.asked.payloads.iter().map(|payload| field(payload).into()).collect(),
            self.asked.rows.iter().map(|row| row.as_str().as_bytes().into()).collect(),
            self.asked.prefixes.iter().map(|prefix| prefix.as_bytes().into()).collect(),
            deletes,
            puts,
            row_deletes,
            row_puts,
            self.channels.iter().map(|channel| channel.as_bytes().into()).collect(),
        ];
        let mut head = Vec::with_capacity(80);
        let clock = self.clock.map_or(-1.0, |now| now as f64);
        let life = self.life.map_or(0.0, |life| life.max(1) as f64);
        for number in [self.steady.start as f64, self.steady.end as f64, clock, life, self.taken_life as f64] {
            head.extend(number.to_be_bytes());
        }
        head.extend([self.purges, self.frees, again].map(u8::from));
        for list in &lists {
            head.extend((list.len() as u32).to_be_bytes());
        }
        command.arg(version(&self.expected)).arg(version(&self.new)).arg(head);
        for item in lists.iter().flatten() {
            command.arg(item.as_ref());
        }
    }
}

/// The field of the session's hash that a payload stands in; attributes have a hash of their own.
pub(super) fn field(payload: &Payload) -> Vec<u8> {
    let (table, number) = match payload {
        Payload::Outgoing { owner, sequence } => {
            return [b"o".as_slice(), &owner.to_be_bytes(), &sequence.to_be_bytes()].concat();
        }
        Payload::Broadcast(number) => (b'b', number.to_be_bytes()),
        Payload::Response(id) => (b'a', id.to_be_bytes()),
        Payload::Attribute(_) => unreachable!("attributes are rows of their own"),
    };
    let mut field = vec![table];
    field.extend(number);
    field
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was done; a look found the version it expected.
    Done,
    /// It had been done by an earlier sending of the same request.
    DoneBefore,
    /// The session has another version, or the time has passed a mark.
    Other,
}

/// What [`SESSION`] answers.
#[derive(Debug)]
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
    pub(super) listings: Vec<Vec<Vec<u8>>>,
}

impl Answer {
    /// Reads an answer; nothing when it is none.
    pub(super) fn read(value: Value) -> Option<Self> {
        let mut parts = array(value)?;
        if parts.len() == 5 {
            parts.extend([Value::Nil, Value::Nil]);
        }
        let parts: [Value; 7] = parts.try_into().ok()?;
        let [verdict, now, payloads, rows, listings, versions, record] = parts;
        Some(Self {
            verdict: match verdict {
                Value::Int(0) => Verdict::Other,
                Value::Int(1) => Verdict::Done,
                Value::Int(2) => Verdict::DoneBefore,
                _ => return None,
            },
            now: match now {
                Value::Int(now) => now.try_into().ok()?,
                _ => return None,
            },
            versions: bytes(versions)?.unwrap_or_default(),
            record: bytes(record)?,
            payloads: list(payloads)?.into_iter().map(bytes).collect::<Option<_>>()?,
            rows: list(rows)?.into_iter().map(bytes).collect::<Option<_>>()?,
            listings: list(listings)?
                .into_iter()
                .map(|listing| array(listing)?.into_iter().map(|item| bytes(item)?).collect())
                .collect::<Option<_>>()?,
        })
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

    fn answer(versions: &[Version]) -> Answer {
        let versions = versions.as_flattened().to_vec();
        let verdict = Verdict::Other;
        Answer { verdict, now: 1, versions, record: None, payloads: vec![], rows: vec![], listings: vec![] }
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
        let fields: std::collections::BTreeSet<_> = payloads.iter().map(field).collect();
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
        for value in [Value::Nil, Value::Int(1), Value::Array(vec![Value::Int(1)])] {
            assert!(Answer::read(value).is_none());
        }
    }
}
