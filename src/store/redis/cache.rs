//! The sessions a process has seen last, so that an operation can be decided before the server is asked.
//!
//! What stands here may be old: the server carries an operation out only if it is not.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::script::Version;
use super::speculation::Attributes;
use crate::ids::Digest;
use crate::session::Record;

/// How many sessions are kept.
const SESSIONS: usize = 256;

/// A session at one of its versions; no version when there never was one, no record when it has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) version: Option<Version>,
    pub(super) record: Option<Arc<Record>>,
    /// Attributes, as far as they are known.
    pub(super) attributes: Arc<Attributes>,
    /// How often somebody else had changed it since this process saw it last, less how often nobody had.
    pub(super) overtaken: u32,
}

#[derive(Default)]
struct Entries {
    by_session: HashMap<Digest, (Seen, u64)>,
    uses: u64,
}

/// A bounded number of sessions; the one used longest ago gives way.
#[derive(Default)]
pub(super) struct Cache(Mutex<Entries>);

impl Cache {
    pub(super) fn get(&self, session: Digest) -> Option<Seen> {
        let mut entries = self.0.lock();
        entries.uses += 1;
        let now = entries.uses;
        let (seen, used) = entries.by_session.get_mut(&session)?;
        *used = now;
        Some(seen.clone())
    }

    pub(super) fn put(&self, session: Digest, seen: Seen) {
        let mut entries = self.0.lock();
        entries.uses += 1;
        let now = entries.uses;
        entries.by_session.insert(session, (seen, now));
        if entries.by_session.len() > SESSIONS {
            let oldest = entries.by_session.iter().min_by_key(|(_, (_, used))| *used).map(|(session, _)| *session);
            oldest.and_then(|oldest| entries.by_session.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_used_longest_ago_gives_way() {
        let cache = Cache::default();
        let session = |number: usize| Digest::of(&number.to_le_bytes());
        for number in 0..SESSIONS {
            cache.put(session(number), Seen::default());
        }
        assert!(cache.get(session(0)).is_some());
        cache.put(session(SESSIONS), Seen::default());
        assert!(cache.get(session(0)).is_some() && cache.get(session(1)).is_none());
    }
}
