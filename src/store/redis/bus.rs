//! The notification bus and single-use keys.
//!
//! A topic is a stream, whose entries are numbered `N-0`, and a head beside it. Numbers rise by one because the script that
//! appends takes the next from the head.

use redis::{Cmd, Value};

use super::{OfProcess, RedisStore, hex, script};
use crate::bell::Ring;
use crate::clock::Millis;
use crate::error::{Error, LimitExceeded, StoreError};
use crate::ids::Digest;
use crate::settings::Limit;
use crate::store::BusEntries;

/// Silence after which a topic goes.
const TOPIC_TTL_MS: Millis = 24 * 3_600_000;

/// Appends a message. Its number.
///
/// A message whose answer was lost is sent again: it may then be there twice, as a bus delivers it at least once.
pub(super) fn publish(
    store: &RedisStore,
    process: &OfProcess,
    topic: Digest,
    message: &str,
) -> Result<u64, Error> {
    let keys = [stream_key(store, topic), head_key(store, topic)];
    let channel = store.channel(Ring::Topic(topic));
    let append = |may_begin: bool| {
        let number = process.connections.read(|link| {
            link.run(&script::PUBLISH, |command| {
                command.arg(keys.len()).arg(&keys).arg(message);
                command.arg(store.settings.limit(Limit::BusMessages)).arg(store.settings.limit(Limit::BusBytes));
                command.arg(TOPIC_TTL_MS).arg(&channel).arg(u8::from(may_begin)).arg(manual_time(store));
            })
        });
        number.map(|number| super::number(&number))
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
    process.connections.read(|link| link.ask(&command))?;
    Ok(append(true)?)
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
    let range = |after: u64| {
        let mut head = redis::cmd("HMGET");
        head.arg(head_key(store, topic)).arg("n").arg("f");
        let mut entries = redis::cmd("XRANGE");
        entries.arg(stream_key(store, topic)).arg(format!("{}-0", after.saturating_add(1))).arg("+");
        entries.arg("COUNT").arg(max.max(1));
        let answers = process.connections.read(|link| link.ask_all(&[head.clone(), entries.clone()]))?;
        read_range(answers).ok_or_else(|| StoreError::corrupt("of this topic", "it cannot be read"))
    };
    let (mut newest, mut first, mut messages) = range(cursor)?;
    // A cursor the topic has not reached is one of an earlier life of the topic: all that is here is new.
    let mut cursor = cursor;
    if newest > 0 && cursor > newest {
        (newest, first, messages) = range(first - 1)?;
        cursor = first - 1;
    }
    if newest == 0 {
        return Ok(BusEntries::default());
    }
    messages.truncate(max);
    let missed = first.saturating_sub(cursor + 1);
    let cursor = messages.last().map_or(cursor + missed, |(number, _)| *number);
    Ok(BusEntries { messages, cursor, missed })
}

/// Newest and first number, and messages.
fn read_range(answers: Vec<Value>) -> Option<(u64, u64, Vec<(u64, String)>)> {
    let [head, entries]: [Value; 2] = answers.try_into().ok()?;
    let (newest, first): (Option<u64>, Option<u64>) = redis::from_redis_value(head).ok()?;
    let entries: Vec<(String, Vec<String>)> = redis::from_redis_value(entries).ok()?;
    let message = |(id, mut fields): (String, Vec<String>)| {
        Some((id.strip_suffix("-0")?.parse().ok()?, fields.pop().filter(|_| fields.len() == 1)?))
    };
    Some((newest.unwrap_or(0), first.unwrap_or(1), entries.into_iter().map(message).collect::<Option<_>>()?))
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
    let now = store.time(process);
    let mut gone = Vec::new();
    for (&topic, last) in topics.iter().zip(answers) {
        let last: Option<Millis> = redis::from_redis_value(last).ok().flatten();
        if last.is_none_or(|last| last + TOPIC_TTL_MS < now) {
            let mut unlink = redis::cmd("UNLINK");
            unlink.arg(&[head_key(store, topic), stream_key(store, topic)]);
            let mut forget = redis::cmd("SREM");
            forget.arg(topics_key(store)).arg(&topic.0);
            gone.extend([unlink, forget]);
        }
    }
    if !gone.is_empty() {
        process.connections.read(|link| link.ask_all(&gone))?;
    }
    Ok((topics.len() - gone.len() / 2) as u64)
}

/// Uses a key. Whether it was the first time within `ttl`.
pub(super) fn consume_once(
    store: &RedisStore,
    process: &OfProcess,
    key: Digest,
    ttl: Millis,
) -> Result<bool, Error> {
    let maximum = store.settings.limit(Limit::OnceKeys);
    let answer = process.connections.run(|link| {
        link.run(&script::ONCE, |command| {
            command.arg(1).arg(store.key("once", "")).arg(&key.0).arg(ttl).arg(maximum).arg(manual_time(store));
        })
    });
    match answer {
        Ok((Value::Int(-1), _)) => Ok(true),
        // Whether it was used by somebody, or by this very call before the connection was lost.
        Ok((Value::Int(-2), true)) => Err(process.connections.unknown("the connection was lost, and the key is used")),
        Ok((Value::Int(-2), false)) => Ok(false),
        Ok((count, _)) => {
            Err(LimitExceeded { limit: Limit::OnceKeys, maximum, actual: super::number(&count) + 1 }.into())
        }
        Err(failure) if failure.perhaps_done => {
            Err(process.connections.unknown(format!("the connection was lost: {}", failure.error)))
        }
        Err(failure) => Err(process.connections.unavailable(&failure.error).into()),
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

fn topics_key(store: &RedisStore) -> String {
    store.key("topics", "")
}
