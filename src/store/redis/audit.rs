//! Whether the keys of records hold what the records say (G8).
//!
//! A record is read by plain commands, a portion at a time, so that none keeps the server busy for long. What was read counts
//! if the record has the same version before and after.

use std::collections::BTreeMap;
use std::time::Instant;

use redis::{Cmd, Value};

use super::script::{Field, Version};
use super::{CONTENDED, OfProcess, RedisStore, decode, hex, number};
use crate::error::StoreError;
use crate::ids::Digest;
use crate::kind::{Kind, corrupt};

/// How many fields are asked for at once.
const PORTION: usize = 10_000;

/// Whether a record's keys hold what the record says (G8), of one moment.
pub(super) fn check_record<K: Kind>(
    store: &RedisStore,
    process: &OfProcess,
    key: Digest,
    found: &mut Vec<String>,
) -> Result<(), StoreError> {
    let name = K::NAME;
    let Contents { versions, record, lengths, fields, rows } = contents::<K>(store, process, key)?;
    let Some(record) = record else {
        if fields != versions.len() as u64 || !rows.is_empty() {
            found.push(format!("{name} {}: payloads without a record", hex(key)));
        }
        return Ok(());
    };
    let id = K::id(&record);
    if versions.iter().any(|bytes| bytes % size_of::<Version>() != 0) {
        found.push(format!("{name} {id}: its versions cannot be read"));
    }
    for (payload, length) in &lengths {
        if *length == 0 {
            found.push(format!("{name} {id}: {payload:?} is missing"));
        }
    }
    let there = lengths.iter().filter(|(_, length)| *length > 0).count() + versions.len() + 1;
    if fields != there as u64 {
        let strays = fields.saturating_sub(there as u64);
        found.push(format!("{name} {id}: nothing refers to {strays} fields"));
    }
    let body_bytes: u64 = lengths.iter().map(|(_, length)| length).sum();
    let attribute_bytes: u64 = rows.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
    let accounts = K::accounts(&record);
    if (body_bytes, attribute_bytes) != accounts {
        let (bodies, attributes) = accounts;
        found.push(format!(
            "{name} {id}: {body_bytes} and {attribute_bytes} bytes are there, {bodies} and {attributes} are accounted for"
        ));
    }
    found.extend(K::miscounted(&record, rows.len() as u64));
    Ok(())
}

/// What a record's keys hold at one moment.
fn contents<K: Kind>(store: &RedisStore, process: &OfProcess, record: Digest) -> Result<Contents<K>, StoreError> {
    const VERSIONS: [&str; 9] = ["v", "h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"];
    let [key, rows] = ["", "a"].map(|rest| store.record_key::<K>(record) + rest);
    let command = |name: &str, key: &str| {
        let mut command = redis::cmd(name);
        command.arg(key);
        command
    };
    let ask = |commands: &[Cmd]| process.connections.read(|link| link.ask_all(commands));
    let unreadable = || corrupt::<K>("its keys cannot be read");
    let end = Instant::now() + CONTENDED;
    while Instant::now() < end {
        let mut head = command("HMGET", &key);
        head.arg(&VERSIONS).arg("r");
        let head = ask(&[head])?.pop().ok_or_else(unreadable)?;
        let mut head: Vec<Option<Vec<u8>>> = redis::from_redis_value(head).map_err(|_| unreadable())?;
        let record = head.pop().flatten().as_deref().map(decode::<K>).transpose()?;
        let mut lengths = Vec::new();
        for portion in record.as_deref().map_or(Vec::new(), K::bodies).chunks(PORTION) {
            let length = |payload: &K::Payload| {
                let mut command = command("HSTRLEN", &key);
                command.arg(Field::of(payload).bytes());
                command
            };
            let answers = ask(&portion.iter().map(length).collect::<Vec<_>>())?;
            lengths.extend(portion.iter().cloned().zip(answers.iter().map(number)));
        }
        let mut version = command("HGET", &key);
        version.arg("v");
        let answers = ask(&[command("HLEN", &key), command("HGETALL", &rows), version])?;
        let [fields, rows, version]: [Value; 3] = answers.try_into().map_err(|_| unreadable())?;
        let version: Option<Vec<u8>> = redis::from_redis_value(version).map_err(|_| unreadable())?;
        if version != head[0] {
            continue;
        }
        // The newest versions and one byte; others.
        let mut versions: Vec<usize> = head.iter().flatten().map(Vec::len).collect();
        versions.iter_mut().take(usize::from(version.is_some())).for_each(|newest| *newest = newest.saturating_sub(1));
        let rows = redis::from_redis_value(rows).map_err(|_| unreadable())?;
        return Ok(Contents { versions, record: record.map(|record| *record), lengths, fields: number(&fields), rows });
    }
    let reason = format!("others changed a {} again and again for {CONTENDED:?}; try again", K::NAME);
    Err(StoreError::Server { server: store.server.to_string(), reason })
}

/// What a record's keys hold.
struct Contents<K: Kind> {
    /// The lengths of what it has of versions.
    versions: Vec<usize>,
    record: Option<K::Record>,
    /// What the record says is there, and its length; 0 where it is not.
    lengths: Vec<(K::Payload, u64)>,
    /// How many fields its hash has.
    fields: u64,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}
