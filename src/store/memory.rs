//! Rows in the memory of this process, for its threads: the reference that other stores are compared with.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;

use super::rows::{JobError, KeyValue, Rows, RowsMut, Transactions, Verdict};
use crate::bell::Bell;
use crate::error::StoreError;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct State {
    map: Map,
    bytes: u64,
    revision: u64,
}

impl State {
    fn apply(&mut self, key: Vec<u8>, change: Option<Vec<u8>>) {
        let bytes = key.len() as u64;
        self.bytes += change.as_ref().map_or(0, |row| bytes + row.len() as u64);
        let old = match change {
            Some(row) => self.map.insert(key, row),
            None => self.map.remove(&key),
        };
        self.bytes -= old.map_or(0, |row| bytes + row.len() as u64);
    }
}

/// Rows in a map under a lock.
pub(crate) struct Memory {
    state: Arc<RwLock<State>>,
    bell: Arc<Bell>,
    limit_bytes: u64,
}

impl Memory {
    pub(crate) fn new(limit_bytes: u64) -> Result<Self, StoreError> {
        let bell = Bell::in_memory().map_err(|error| StoreError::io("map the bell of", "memory://", error))?;
        Ok(Self { state: Arc::default(), bell: Arc::new(bell), limit_bytes })
    }
}

/// Changes rows past every operation.
#[cfg(feature = "fuzzing")]
pub(crate) type Damage = Box<dyn Fn(&mut dyn FnMut(&mut Map))>;

#[cfg(feature = "fuzzing")]
impl Memory {
    pub(crate) fn damage(&self) -> Damage {
        let state = self.state.clone();
        Box::new(move |change| {
            let mut state = state.write();
            change(&mut state.map);
            state.bytes = state.map.iter().map(|(key, row)| (key.len() + row.len()) as u64).sum();
            state.revision += 1;
        })
    }
}

impl Transactions for Memory {
    fn read<T, E: JobError>(&self, job: impl FnOnce(&dyn Rows) -> Result<T, E>) -> Result<T, E> {
        job(&Changes { before: &self.state.read(), changes: BTreeMap::new() })
    }

    fn write<T, E: JobError>(&self, mut job: impl FnMut(&mut dyn RowsMut) -> Result<Verdict<T>, E>) -> Result<T, E> {
        let mut state = self.state.write();
        let mut transaction = Changes { before: &state, changes: BTreeMap::new() };
        match job(&mut transaction)? {
            Verdict::Abandon(value) => Ok(value),
            Verdict::Commit { value, .. } => {
                for (key, change) in transaction.changes {
                    state.apply(key, change);
                }
                state.revision += 1;
                Ok(value)
            }
        }
    }
}

impl KeyValue for Memory {
    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }

    fn refresh(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn maintain(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        vec![("place", "the memory of this process".to_owned())]
    }
}

/// The rows as they were, and what the transaction has changed.
struct Changes<'m> {
    before: &'m State,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Rows for Changes<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, StoreError> {
        Ok(match self.changes.get(key) {
            Some(change) => change.as_deref(),
            None => self.before.map.get(key).map(Vec::as_slice),
        })
    }

    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        let range = (Bound::Included(from), Bound::Unbounded);
        let mut before = self.before.map.range::<[u8], _>(range).peekable();
        let mut changes = self.changes.range::<[u8], _>(range).peekable();
        loop {
            let next_old = before.peek().map(|&(key, _)| key);
            let next_new = changes.peek().map(|&(key, _)| key);
            let changed_first = match (next_old, next_new) {
                (None, None) => return Ok(()),
                (Some(old), Some(new)) => {
                    if old == new {
                        before.next();
                    }
                    new <= old
                }
                (old, _) => old.is_none(),
            };
            let row = if changed_first {
                changes.next().and_then(|(key, change)| change.as_ref().map(|value| (key, value)))
            } else {
                before.next()
            };
            if let Some((key, value)) = row
                && !visit(key, value)
            {
                return Ok(());
            }
        }
    }

    fn used_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.before.bytes)
    }

    fn revision(&self) -> u64 {
        self.before.revision
    }
}

impl RowsMut for Changes<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.changes.insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<Option<usize>, StoreError> {
        let length = self.get(key)?.map(<[u8]>::len);
        self.put(key, value)?;
        Ok(length)
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, StoreError> {
        let length = self.get(key)?.map(<[u8]>::len);
        self.changes.insert(key.to_vec(), None);
        Ok(length)
    }
}
