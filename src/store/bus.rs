//! The notification bus: topics with numbered messages, each a bounded ring.
//!
//! Numbers of a topic rise by one, in the order of the commits. Past its limits a topic drops its oldest messages; a reader who
//! had not seen them is told how many. A topic nobody publishes to for a day is collected.
//!
//! | key | value |
//! |---|---|
//! | `B` topic `00` | first and next number, bytes, time of the last message: four `u64` |
//! | `B` topic `01` number `u64` | a message |
//! | `T` | how many topics there are, `u64` |

use super::rows::{
    Rows, RowsMut, add_to_number, delete_all, delete_value, digests, get_number, get_value, put_new_value,
};
use crate::clock::Millis;
use crate::error::{Error, LimitExceeded, StoreError};
use crate::ids::Digest;
use crate::settings::{Limit, Settings};

/// Messages of a topic that a reader has not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusEntries {
    /// The messages with their numbers, oldest first.
    pub messages: Vec<(u64, String)>,
    /// What to give as the cursor next time.
    pub cursor: u64,
    /// Messages that were dropped before the reader saw them.
    pub missed: u64,
}

/// Silence after which a topic is collected.
const TOPIC_TTL_MS: Millis = 24 * 3_600_000;

/// Beyond every number, sum and time of a topic.
const BEYOND: u64 = 1 << 60;

const TOPICS: u8 = b'B';
const TOPIC_COUNT: [u8; 1] = [b'T'];

#[derive(Clone, Copy)]
struct Topic {
    first: u64,
    next: u64,
    bytes: u64,
    last: Millis,
}

impl Topic {
    fn read(rows: &dyn Rows, topic: Digest) -> Result<Option<Self>, StoreError> {
        let Some(row) = rows.get(&key(topic))? else { return Ok(None) };
        let (numbers, _) = row.as_chunks::<8>();
        let damaged = || StoreError::corrupt("of this topic", "its head cannot be read");
        let [first, next, bytes, last] = *numbers else { return Err(damaged()) };
        let [first, next, bytes, last] = [first, next, bytes, last].map(u64::from_be_bytes);
        let is_sound = 0 < first && first <= next && next.max(bytes).max(last) < BEYOND;
        if is_sound { Ok(Some(Self { first, next, bytes, last })) } else { Err(damaged()) }
    }

    fn write(&self, rows: &mut dyn RowsMut, topic: Digest) -> Result<(), StoreError> {
        let numbers = [self.first, self.next, self.bytes, self.last];
        rows.put(&key(topic), numbers.map(u64::to_be_bytes).as_flattened())
    }
}

/// Appends a message. Its number.
pub(super) fn publish(
    rows: &mut dyn RowsMut,
    settings: &Settings,
    now: Millis,
    topic: Digest,
    message: &str,
) -> Result<u64, Error> {
    let mut head = match Topic::read(rows, topic)? {
        Some(head) => head,
        None => {
            let (maximum, actual) = (settings.limit(Limit::Topics), get_number(rows, &TOPIC_COUNT)? + 1);
            if actual > maximum {
                return Err(LimitExceeded { limit: Limit::Topics, maximum, actual }.into());
            }
            add_to_number(rows, &TOPIC_COUNT, 1)?;
            Topic { first: 1, next: 1, bytes: 0, last: now }
        }
    };
    let number = head.next;
    put_new_value(rows, &message_key(topic, number), message.as_bytes())?;
    head.next += 1;
    head.bytes += message.len() as u64;
    head.last = now;
    let is_too_much = |head: &Topic| {
        head.next - head.first > settings.limit(Limit::BusMessages) || head.bytes > settings.limit(Limit::BusBytes)
    };
    while head.first < number && is_too_much(&head) {
        let oldest = message_key(topic, head.first);
        let length = get_value(rows, &oldest)?.map(|message| message.len() as u64);
        let damaged = || StoreError::corrupt("of this topic", format!("message {} does not fit its head", head.first));
        head.bytes = length.and_then(|length| head.bytes.checked_sub(length)).ok_or_else(damaged)?;
        delete_value(rows, &oldest)?;
        head.first += 1;
    }
    head.write(rows, topic)?;
    Ok(number)
}

/// The number of the newest message, 0 when there is none.
pub(super) fn cursor(rows: &dyn Rows, topic: Digest) -> Result<u64, StoreError> {
    Ok(Topic::read(rows, topic)?.map_or(0, |head| head.next - 1))
}

/// At most `max` messages after `cursor`.
pub(super) fn since(rows: &dyn Rows, topic: Digest, cursor: u64, max: usize) -> Result<BusEntries, StoreError> {
    let Some(head) = Topic::read(rows, topic)? else { return Ok(BusEntries::default()) };
    // A cursor the topic has not reached is one of an earlier life of the topic: all that is here is new.
    let cursor = if cursor >= head.next { head.first - 1 } else { cursor };
    let first = head.first.max(cursor + 1);
    let end = head.next.min(first.saturating_add(max as u64));
    let messages = (first..end)
        .map(|number| {
            let damaged = || StoreError::corrupt("of this topic", format!("message {number} cannot be read"));
            let message = get_value(rows, &message_key(topic, number))?.ok_or_else(damaged)?;
            Ok((number, String::from_utf8(message.into_owned()).map_err(|_| damaged())?))
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    Ok(BusEntries { messages, cursor: end.max(first) - 1, missed: first - cursor - 1 })
}

/// Removes topics that have been silent for long. How many.
pub(super) fn collect(rows: &mut dyn RowsMut, now: Millis) -> Result<u64, StoreError> {
    let mut silent = Vec::new();
    for topic in digests(rows, TOPICS, None, usize::MAX)? {
        if Topic::read(rows, topic)?.is_none_or(|head| head.last + TOPIC_TTL_MS < now) {
            silent.push(topic);
        }
    }
    for &topic in &silent {
        delete_all(rows, &prefix(topic))?;
        add_to_number(rows, &TOPIC_COUNT, -1)?;
    }
    Ok(silent.len() as u64)
}

/// Moves the times of all topics.
pub(super) fn move_in_time(rows: &mut dyn RowsMut, shift: &dyn Fn(Millis) -> Millis) -> Result<(), StoreError> {
    for topic in digests(rows, TOPICS, None, usize::MAX)? {
        if let Some(mut head) = Topic::read(rows, topic)? {
            head.last = shift(head.last);
            head.write(rows, topic)?;
        }
    }
    Ok(())
}

fn prefix(topic: Digest) -> Vec<u8> {
    let mut key = Vec::with_capacity(26);
    key.push(TOPICS);
    key.extend(topic.0);
    key
}

fn key(topic: Digest) -> Vec<u8> {
    let mut key = prefix(topic);
    key.push(0);
    key
}

fn message_key(topic: Digest, number: u64) -> Vec<u8> {
    let mut key = prefix(topic);
    key.push(1);
    key.extend(number.to_be_bytes());
    key
}
