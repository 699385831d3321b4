//! The notification bus and single-use keys.
//!
//! A topic is a stream, whose entries are numbered `N-0`, a head beside it, and the lengths of its messages (`publish.lua`).
//! Numbers rise by one because the script that appends takes the next from the head.

use redis::{Cmd, Value};

use super::connection::Failure;
use super::{OfProcess, RedisStore, hex, script};
use crate::bell::Ring;
use crate::clock::Millis;
use crate::error::{Error, LimitExceeded, StoreError};
use crate::ids::{Digest, random_bytes};
use crate::settings::Limit;
use crate::store::BusEntries;

/// Silence after which a topic goes.
const TOPIC_TTL_MS: Millis = 24 * 3_600_000;

/// How many messages a reader asks for before it knows how long they are.
const FIRST_PORTION: usize = 16;
/// How many bytes of messages it asks for at once from then on.
const PORTION_BYTES: u64 = 1 << 20;

/// Appends a message. Its number.
pub(super) fn publish(store: &RedisStore, process: &OfProcess, topic: Digest, message: &str) -> Result<u64, Error> {
    let before = store.key(hex(topic), &format!("o{:032x}", u128::from_be_bytes(random_bytes())));
    let keys = [stream_key(store, topic), head_key(store, topic), lengths_key(store, topic), before];
    let channel = store.channel(Ring::Record(topic));
    let append = |may_begin: bool| {
        let sent = process.connections.run(|link, _| {
            link.run(&script::PUBLISH, |command| {
                command.arg(keys.len()).arg(&keys).arg(message);
                command.arg(store.settings.limit(Limit::BusMessages)).arg(store.settings.limit(Limit::BusBytes));
                command.arg(TOPIC_TTL_MS).arg(&channel).arg(u8::from(may_begin)).arg(manual_time(store));
            })
        });
        sent.map(|(number, _)| super::number(&number)).map_err(|failure| failed(process, &failure))
    };
    match append(false)? {
        0 => {}
        number => return Ok(number),
    }
    let (maximum, actual) = (store.settings.limit(Limit::Topics), living_topics(store, process)? + 1);
    if actual > maximum {
        return Err(LimitExceeded { limit: Limit::Topics, maximum, actual }.into());
    }
    let mut command = redis::cmd("SADD");
    command.arg(topics_key(store)).arg(&topic.0);
    let keep = super::pexpire(&topics_key(store), super::SHARED_LIFE_MS);
    process.connections.read(|link| link.ask_all(&[command.clone(), keep.clone()]))?;
    append(true)
}

/// The number of the newest message, 0 when there is none.
pub(super) fn cursor(store: &RedisStore, process: &OfProcess, topic: Digest) -> Result<u64, StoreError> {
    let mut command = redis::cmd("HGET");
    command.arg(head_key(store, topic)).arg("n");
    let number: Option<u64> = process.connections.read(|link| Ok(redis::from_redis_value(link.ask(&command)?)?))?;
    Ok(number.unwrap_or(0))
}

/// At most `max` messages after `cursor`.
pub(super) fn since(
    store: &RedisStore,
    process: &OfProcess,
    topic: Digest,
    cursor: u64,
    max: usize,
) -> Result<BusEntries, StoreError> {
    let range = |after: u64, count: usize| {
        let mut head = redis::cmd("HMGET");
        head.arg(head_key(store, topic)).arg("n").arg("f").arg("b");
        let mut entries = redis::cmd("XRANGE");
        entries.arg(stream_key(store, topic)).arg(format!("{}-0", after.saturating_add(1))).arg("+");
        entries.arg("COUNT").arg(count);
        let answers = process.connections.read(|link| link.ask_all(&[head.clone(), entries.clone()]))?;
        read_range(answers).ok_or_else(|| StoreError::corrupt("of this topic", "it cannot be read"))
    };
    let mut found = range(cursor, max.clamp(1, FIRST_PORTION))?;
    // A cursor the topic has not reached is one of an earlier life of the topic: all that is here is new.
    let mut cursor = cursor;
    if found.newest > 0 && cursor > found.newest {
        cursor = found.first - 1;
        found = range(cursor, max.clamp(1, FIRST_PORTION))?;
    }
    let (newest, first, mut messages) = (found.newest, found.first, std::mem::take(&mut found.messages));
    if newest == 0 {
        return Ok(BusEntries::default());
    }
    messages.truncate(max);
    let missed = first.saturating_sub(cursor + 1);
    let mut cursor = messages.last().map_or(cursor + missed, |(number, _)| *number);
    while messages.len() < max && cursor < newest {
        let count = found.portion().min(max - messages.len());
        found = range(cursor, count)?;
        // What was dropped meanwhile is told to whoever reads on from here.
        if found.first > cursor + 1 || found.messages.is_empty() {
            break;
        }
        messages.append(&mut found.messages);
        cursor = messages.last().map_or(cursor, |(number, _)| *number);
    }
    Ok(BusEntries { messages, cursor, missed })
}

/// What a topic holds.
struct Found {
    newest: u64,
    first: u64,
    bytes: u64,
    messages: Vec<(u64, String)>,
}

impl Found {
    /// How many messages of the usual length are read at once.
    fn portion(&self) -> usize {
        let usual = self.bytes / (self.newest.saturating_sub(self.first) + 1);
        usize::try_from(PORTION_BYTES / usual.max(1)).unwrap_or(1).clamp(1, 1024)
    }
}

fn read_range(answers: Vec<Value>) -> Option<Found> {
    let [head, entries]: [Value; 2] = answers.try_into().ok()?;
    let (newest, first, bytes): (Option<u64>, Option<u64>, Option<u64>) = redis::from_redis_value(head).ok()?;
    let entries: Vec<(String, Vec<String>)> = redis::from_redis_value(entries).ok()?;
    let message = |(id, mut fields): (String, Vec<String>)| {
        Some((id.strip_suffix("-0")?.parse().ok()?, fields.pop().filter(|_| fields.len() == 1)?))
    };
    let messages = entries.into_iter().map(message).collect::<Option<_>>()?;
    let (newest, first, bytes) = (newest.unwrap_or(0), first.unwrap_or(1), bytes.unwrap_or(0));
    Some(Found { newest, first, bytes, messages })
}

/// How many topics there are; those that have been silent for long go.
pub(super) fn living_topics(store: &RedisStore, process: &OfProcess) -> Result<u64, StoreError> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(topics_key(store));
    let topics: Vec<Vec<u8>> = process.connections.read(|link| Ok(redis::from_redis_value(link.ask(&members)?)?))?;
    let topics: Vec<Digest> = topics.into_iter().filter_map(|topic| Some(Digest(topic.try_into().ok()?))).collect();
    if topics.is_empty() {
        return Ok(0);
    }
    let last = topics.iter().map(|&topic| {
        let mut command = redis::cmd("HGET");
        command.arg(head_key(store, topic)).arg("t");
        command
    });
    let last: Vec<Cmd> = last.collect();
    let answers = process.connections.read(|link| link.ask_all(&last))?;
    let now = store.time(process)?;
    let mut gone = Vec::new();
    for (&topic, last) in topics.iter().zip(answers) {
        let last: Option<Millis> = redis::from_redis_value(last).ok().flatten();
        if last.is_none_or(|last| last + TOPIC_TTL_MS < now) {
            let mut unlink = redis::cmd("UNLINK");
            unlink.arg(&[head_key(store, topic), stream_key(store, topic), lengths_key(store, topic)]);
            let mut forget = redis::cmd("SREM");
            forget.arg(topics_key(store)).arg(&topic.0);
            gone.extend([unlink, forget]);
        }
    }
    let living = topics.len() - gone.len() / 2;
    gone.push(super::pexpire(&topics_key(store), super::SHARED_LIFE_MS));
    process.connections.read(|link| link.ask_all(&gone))?;
    Ok(living as u64)
}

/// Uses a key. Whether it was the first time within `ttl`.
pub(super) fn consume_once(store: &RedisStore, process: &OfProcess, key: Digest, ttl: Millis) -> Result<bool, Error> {
    let maximum = store.settings.limit(Limit::OnceKeys);
    let before = store.key("once", &format!("o{:032x}", u128::from_be_bytes(random_bytes())));
    let keys = [store.key("once", ""), before];
    let sent = process.connections.run(|link, _| {
        link.run(&script::ONCE, |command| {
            command.arg(keys.len()).arg(&keys).arg(&key.0).arg(ttl).arg(maximum).arg(manual_time(store));
        })
    });
    match sent.map_err(|failure| failed(process, &failure))? {
        (Value::Int(-1), _) => Ok(true),
        (Value::Int(-2), _) => Ok(false),
        (count, _) => Err(LimitExceeded { limit: Limit::OnceKeys, maximum, actual: super::number(&count) + 1 }.into()),
    }
}

/// The error for a change that was sent.
fn failed(process: &OfProcess, failure: &Failure) -> Error {
    let connections = &process.connections;
    match failure.perhaps_done {
        true => connections.unknown(format!("the connection was lost: {}", failure.error)),
        false => connections.unavailable(&failure.error).into(),
    }
}

fn manual_time(store: &RedisStore) -> String {
    store.clock.as_ref().map_or(String::new(), |clock| clock.now().to_string())
}

fn head_key(store: &RedisStore, topic: Digest) -> String {
    store.key(hex(topic), "h")
}

fn stream_key(store: &RedisStore, topic: Digest) -> String {
    store.key(hex(topic), "s")
}

fn lengths_key(store: &RedisStore, topic: Digest) -> String {
    store.key(hex(topic), "l")
}

fn topics_key(store: &RedisStore) -> String {
    store.key("topics", "")
}
