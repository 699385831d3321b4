//! Checks that what a store holds agrees with itself: G8 made visible.
//!
//! Every payload a record names is there, every payload there is named by a record, the accounts of bytes are right, every
//! session stands in the index once, and the numbers of sessions are right.

use std::collections::{BTreeMap, BTreeSet};

use super::recall::decode;
use super::rows::{
    POPULATION, Rows, SESSIONS, SessionRows, get_number, get_value, index_prefix, payload_key, principal_key,
    read_index_key, record_key, session_prefix, split_session_key,
};
use crate::error::StoreError;
use crate::ids::Digest;
use crate::session::{IndexKey, Payload, Record, Values};

/// What contradicts itself, in words.
pub(super) fn contradictions(rows: &dyn Rows) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let mut rows_of: BTreeMap<Digest, BTreeSet<Vec<u8>>> = BTreeMap::new();
    rows.scan(&[SESSIONS], &mut |key, _| match split_session_key(key) {
        Some((session, _)) => {
            rows_of.entry(session).or_default().insert(key.to_vec());
            true
        }
        None => false,
    })?;
    rows_of.remove(&Record::room_key());
    let mut index: BTreeMap<Digest, Vec<IndexKey>> = BTreeMap::new();
    for settled in [false, true] {
        let prefix = index_prefix(settled);
        rows.scan(&prefix, &mut |key, _| match read_index_key(key) {
            Some((place, session)) if key.starts_with(&prefix) => {
                index.entry(session).or_default().push(place);
                true
            }
            _ => false,
        })?;
    }
    let mut principals: BTreeMap<Digest, u64> = BTreeMap::new();
    for (&session, keys) in &rows_of {
        let Some(bytes) = get_value(rows, &record_key(session))? else {
            found.push(format!("{} rows without a record", keys.len()));
            continue;
        };
        let record = decode(&bytes)?;
        if let Some(principal) = record.principal {
            *principals.entry(principal).or_default() += 1;
        }
        if index.remove(&session) != Some(vec![record.index_key()]) {
            found.push(format!("session {} is not in the index where its record says", record.id()));
        }
        check_session(rows, session, &record, keys, &mut found)?;
    }
    found.extend(index.keys().map(|_| "the index names a session that is not there".to_owned()));
    let counted = get_number(rows, &POPULATION)?;
    if counted != rows_of.len() as u64 {
        found.push(format!("{counted} sessions are counted and {} are there", rows_of.len()));
    }
    for (principal, sessions) in principals {
        let counted = get_number(rows, &principal_key(principal))?;
        if counted != sessions {
            found.push(format!("{counted} sessions of a principal are counted and {sessions} are there"));
        }
    }
    Ok(found)
}

fn check_session(
    rows: &dyn Rows,
    session: Digest,
    record: &Record,
    keys: &BTreeSet<Vec<u8>>,
    found: &mut Vec<String>,
) -> Result<(), StoreError> {
    let values = SessionRows::new(rows, session);
    let mut expected: BTreeSet<Vec<u8>> = BTreeSet::from([record_key(session).to_vec()]);
    let mut message_bytes = 0;
    for payload in record.payloads() {
        match values.get(&payload)? {
            Some(value) => message_bytes += value.len() as u64,
            None => found.push(format!("session {}: {payload:?} is missing", record.id())),
        }
        expected.insert(payload_key(session, &payload).to_vec());
    }
    let (mut attribute_bytes, mut attributes) = (0, 0);
    for (key, value) in values.attributes(None)? {
        attributes += 1;
        attribute_bytes += (key.as_str().len() + value.len()) as u64;
        expected.insert(payload_key(session, &Payload::Attribute(key)).to_vec());
    }
    if (message_bytes, attribute_bytes) != (record.message_bytes, record.attribute_bytes) {
        found.push(format!(
            "session {}: {message_bytes} and {attribute_bytes} bytes are there, {} and {} are accounted for",
            record.id(),
            record.message_bytes,
            record.attribute_bytes
        ));
    }
    found.extend(record.miscounted(attributes));
    let is_chunk = |key: &[u8]| expected.iter().any(|first| key.len() == first.len() + 3 && key.starts_with(first));
    for stray in keys.iter().filter(|key| !expected.contains(*key) && !is_chunk(key)) {
        let rest = &stray[session_prefix(session).len()..];
        found.push(format!("session {}: nothing refers to the row {rest:?}", record.id()));
    }
    Ok(())
}
