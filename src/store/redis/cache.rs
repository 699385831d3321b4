//! The sessions a process has seen last, so that an operation can be decided before the server is asked.
//!
//! What stands here may be old: the server carries an operation out only if it is not.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::script::Version;
use super::speculation::Attributes;
use crate::ids::Digest;
use crate::kind::Kind;

/// How many records are kept.
const RECORDS: usize = 256;

/// A session at one of its versions; no version when there never was one, no record when it has ended.
#[derive(Debug)]
pub(super) struct Seen<K: Kind> {
    pub(super) version: Option<Version>,
    pub(super) record: Option<Arc<K::Record>>,
    /// Attributes, as far as they are known.
    pub(super) attributes: Arc<Attributes>,
    /// How often somebody else had changed it since this process saw it last, less how often nobody had.
    pub(super) overtaken: u32,
}

impl<K: Kind> Clone for Seen<K> {
    fn clone(&self) -> Self {
        let Self { version, record, attributes, overtaken } = self;
        Self { version: *version, record: record.clone(), attributes: attributes.clone(), overtaken: *overtaken }
    }
}

impl<K: Kind> Default for Seen<K> {
    fn default() -> Self {
        Self { version: None, record: None, attributes: Arc::default(), overtaken: 0 }
    }
}

/// The same of whatever kind.
struct Kept {
    version: Option<Version>,
    record: Option<Arc<dyn Any + Send + Sync>>,
    attributes: Arc<Attributes>,
    overtaken: u32,
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<(&'static str, Digest), Kept>,
    uses: u64,
}

/// A bounded number of sessions; the one used longest ago gives way.
#[derive(Default)]
pub(super) struct Cache(Mutex<Entries>);

impl Cache {
    pub(super) fn get<K: Kind>(&self, key: Digest) -> Option<Seen<K>> {
        let mut entries = self.0.lock();
        entries.uses += 1;
        let now = entries.uses;
        let kept = entries.by_key.get_mut(&(K::TAG, key))?;
        kept.used = now;
        let record = match &kept.record {
            Some(record) => Some(record.clone().downcast().ok()?),
            None => None,
        };
        Some(Seen { version: kept.version, record, attributes: kept.attributes.clone(), overtaken: kept.overtaken })
    }

    pub(super) fn put<K: Kind>(&self, key: Digest, Seen { version, record, attributes, overtaken }: Seen<K>) {
        let mut entries = self.0.lock();
        entries.uses += 1;
        let record = record.map(|record| record as Arc<dyn Any + Send + Sync>);
        let kept = Kept { version, record, attributes, overtaken, used: entries.uses };
        entries.by_key.insert((K::TAG, key), kept);
        if entries.by_key.len() > RECORDS {
            let oldest = entries.by_key.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key);
            oldest.and_then(|oldest| entries.by_key.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    #[test]
    fn the_session_used_longest_ago_gives_way() {
        let cache = Cache::default();
        let session = |number: usize| Digest::of(&number.to_le_bytes());
        for number in 0..RECORDS {
            cache.put(session(number), Seen::<Session>::default());
        }
        assert!(cache.get::<Session>(session(0)).is_some());
        cache.put(session(RECORDS), Seen::<Session>::default());
        assert!(cache.get::<Session>(session(0)).is_some() && cache.get::<Session>(session(1)).is_none());
    }
}
