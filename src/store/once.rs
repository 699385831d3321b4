//! Keys that can be used once: `requestState`, nonces.
//!
//! | key | value |
//! |---|---|
//! | `O` key | when it is forgotten, `u64` |
//! | `E` time `u64` key | nothing: the order in which keys are forgotten |
//! | `K` | how many keys there are, `u64` |

use super::rows::{Rows, RowsMut, add_to_number, get_number};
use crate::clock::Millis;
use crate::error::{Error, LimitExceeded, StoreError};
use crate::ids::Digest;
use crate::settings::{Limit, Settings};

const EXPIRY: u8 = b'E';
const COUNT: [u8; 1] = [b'K'];
/// How many forgotten keys a new one clears away: the table shrinks faster than it grows.
const CLEARED_ON_THE_WAY: usize = 8;

/// Uses a key. Whether it was the first time within its span.
pub(super) fn consume(
    rows: &mut dyn RowsMut,
    settings: &Settings,
    now: Millis,
    name: Digest,
    ttl: Millis,
) -> Result<bool, Error> {
    if let Some(until) = used_until(rows, name)? {
        if now < until {
            return Ok(false);
        }
        forget(rows, name, until)?;
    }
    clear(rows, now, CLEARED_ON_THE_WAY)?;
    let (maximum, actual) = (settings.limit(Limit::OnceKeys), get_number(rows, &COUNT)? + 1);
    if actual > maximum {
        return Err(LimitExceeded { limit: Limit::OnceKeys, maximum, actual }.into());
    }
    let until = now + ttl;
    rows.put(&key(name), &until.to_be_bytes())?;
    rows.put(&expiry_key(until, name), &[])?;
    add_to_number(rows, &COUNT, 1)?;
    Ok(true)
}

/// Removes at most `max` keys that are forgotten. How many.
pub(super) fn clear(rows: &mut dyn RowsMut, now: Millis, max: usize) -> Result<usize, StoreError> {
    let mut due = Vec::new();
    rows.scan(&[EXPIRY], &mut |row, _| match read_expiry_key(row) {
        Some((until, name)) if until <= now && due.len() < max => {
            due.push((until, name));
            true
        }
        _ => false,
    })?;
    for &(until, name) in &due {
        forget(rows, name, until)?;
    }
    Ok(due.len())
}

/// Moves the times of all keys.
pub(super) fn move_in_time(rows: &mut dyn RowsMut, shift: &dyn Fn(Millis) -> Millis) -> Result<(), StoreError> {
    let mut keys = Vec::new();
    rows.scan(&[EXPIRY], &mut |row, _| match read_expiry_key(row) {
        Some(key) => {
            keys.push(key);
            true
        }
        None => false,
    })?;
    for (until, name) in keys {
        rows.delete(&expiry_key(until, name))?;
        let until = shift(until);
        rows.put(&key(name), &until.to_be_bytes())?;
        rows.put(&expiry_key(until, name), &[])?;
    }
    Ok(())
}

fn used_until(rows: &dyn Rows, name: Digest) -> Result<Option<Millis>, StoreError> {
    Ok(rows.get(&key(name))?.and_then(|until| until.try_into().ok()).map(Millis::from_be_bytes))
}

fn forget(rows: &mut dyn RowsMut, name: Digest, until: Millis) -> Result<(), StoreError> {
    rows.delete(&key(name))?;
    rows.delete(&expiry_key(until, name))?;
    add_to_number(rows, &COUNT, -1)
}

fn key(name: Digest) -> Vec<u8> {
    let mut key = Vec::with_capacity(17);
    key.push(b'O');
    key.extend(name.0);
    key
}

fn expiry_key(until: Millis, name: Digest) -> Vec<u8> {
    let mut key = Vec::with_capacity(25);
    key.push(EXPIRY);
    key.extend(until.to_be_bytes());
    key.extend(name.0);
    key
}

fn read_expiry_key(key: &[u8]) -> Option<(Millis, Digest)> {
    let (until, name) = key.strip_prefix(&[EXPIRY])?.split_first_chunk()?;
    Some((Millis::from_be_bytes(*until), Digest(name.try_into().ok()?)))
}
