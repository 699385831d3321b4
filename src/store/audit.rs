//! Checks that what a store holds agrees with itself: G8 made visible.
//!
//! Every payload a record names is there, every payload there is named by a record, the accounts of bytes are right, every
//! record stands once in each index it belongs to, and the numbers of records are right.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{self, Visitor};
use super::recall::decode;
use super::rows::{
    Payloads, Rows, get_number, get_value, index_prefix, payload_key, prefix, principal_key, read_entry_key,
    read_index_key, record_key, record_of,
};
use crate::error::StoreError;
use crate::ids::Digest;
use crate::kind::{Entry, IndexKey, Kind, PayloadKey, Values};

/// What contradicts itself, in words.
pub(super) fn contradictions(rows: &dyn Rows) -> Result<Vec<String>, StoreError> {
    struct Audit<'r>(&'r dyn Rows, Vec<String>);
    impl Visitor for Audit<'_> {
        fn visit<K: Kind>(&mut self) -> Result<(), StoreError> {
            of_kind::<K>(self.0, &mut self.1)
        }
    }
    let mut audit = Audit(rows, Vec::new());
    kinds::each(&mut audit)?;
    Ok(audit.1)
}

fn of_kind<K: Kind>(rows: &dyn Rows, found: &mut Vec<String>) -> Result<(), StoreError> {
    let mut rows_of: BTreeMap<Digest, BTreeSet<Vec<u8>>> = BTreeMap::new();
    rows.scan(&[K::TABLES.records], &mut |key, _| match record_of::<K>(key) {
        Some(record) => {
            rows_of.entry(record).or_default().insert(key.to_vec());
            true
        }
        None => false,
    })?;
    let mut index: BTreeMap<Digest, Vec<IndexKey>> = BTreeMap::new();
    for settled in [false, true] {
        let prefix = index_prefix::<K>(settled);
        rows.scan(&prefix, &mut |key, _| match read_index_key::<K>(key) {
            Some((place, record)) if key.starts_with(&prefix) => {
                index.entry(record).or_default().push(place);
                true
            }
            _ => false,
        })?;
    }
    let mut entries: BTreeSet<(Entry, Digest)> = BTreeSet::new();
    rows.scan(&[K::TABLES.entries], &mut |key, _| {
        let entry = read_entry_key::<K>(key);
        entries.extend(entry);
        entry.is_some()
    })?;
    let mut records = 0;
    let mut principals: BTreeMap<Digest, u64> = BTreeMap::new();
    for (&key, keys) in &rows_of {
        let Some(bytes) = get_value(rows, &record_key::<K>(key))? else {
            found.push(format!("{} rows without a record", keys.len()));
            continue;
        };
        let record = decode::<K>(&bytes)?;
        let place = K::index_key(&record);
        records += u64::from(place.is_some());
        if let Some(principal) = K::principal(&record) {
            *principals.entry(principal).or_default() += 1;
        }
        let (name, id) = (K::NAME, K::id(&record));
        if index.remove(&key) != place.map(|place| vec![place]) {
            found.push(format!("{name} {id} is not in the index where its record says"));
        }
        for entry in K::entries(&record) {
            if !entries.remove(&(entry, key)) {
                found.push(format!("{name} {id} is not in the list {} where its record says", entry.list));
            }
        }
        check_record::<K>(rows, key, &record, keys, found)?;
    }
    let name = K::NAME;
    found.extend(index.keys().map(|_| format!("the index names a {name} that is not there")));
    found.extend(entries.iter().map(|(entry, _)| format!("the list {} names a {name} that is not in it", entry.list)));
    let counted = get_number(rows, &[K::TABLES.population])?;
    if counted != records {
        found.push(format!("{counted} {name}s are counted and {records} are there"));
    }
    for (principal, there) in principals {
        let counted = get_number(rows, &principal_key::<K>(principal))?;
        if counted != there {
            found.push(format!("{counted} {name}s of a principal are counted and {there} are there"));
        }
    }
    Ok(())
}

fn check_record<K: Kind>(
    rows: &dyn Rows,
    key: Digest,
    record: &K::Record,
    keys: &BTreeSet<Vec<u8>>,
    found: &mut Vec<String>,
) -> Result<(), StoreError> {
    let (name, id) = (K::NAME, K::id(record));
    let values = Payloads::<K>::new(rows, key);
    let mut expected: BTreeSet<Vec<u8>> = BTreeSet::from([record_key::<K>(key).to_vec()]);
    let mut body_bytes = 0;
    for payload in K::bodies(record) {
        match values.get(&payload)? {
            Some(value) => body_bytes += value.len() as u64,
            None => found.push(format!("{name} {id}: {payload:?} is missing")),
        }
        expected.insert(payload_key::<K>(key, &payload).to_vec());
    }
    let (mut attribute_bytes, mut attributes) = (0, 0);
    for (attribute, value) in values.attributes(None)? {
        attributes += 1;
        attribute_bytes += (attribute.as_str().len() + value.len()) as u64;
        let payload = K::Payload::of_attribute(attribute);
        expected.extend(payload.map(|payload| payload_key::<K>(key, &payload).to_vec()));
    }
    // What is in no index has no limit, and accounts for nothing.
    let accounts = K::accounts(record);
    if K::index_key(record).is_some() && (body_bytes, attribute_bytes) != accounts {
        let (bodies, attributes) = accounts;
        found.push(format!(
            "{name} {id}: {body_bytes} and {attribute_bytes} bytes are there, {bodies} and {attributes} are accounted for",
        ));
    }
    if K::index_key(record).is_some() {
        found.extend(K::miscounted(record, attributes));
    }
    let is_chunk = |key: &[u8]| expected.iter().any(|first| key.len() == first.len() + 3 && key.starts_with(first));
    for stray in keys.iter().filter(|key| !expected.contains(*key) && !is_chunk(key)) {
        let rest = &stray[prefix::<K>(key).len()..];
        found.push(format!("{name} {id}: nothing refers to the row {rest:?}"));
    }
    Ok(())
}
