//! The era of a store's rows: the boot whose clock their times are of, and the pid namespace their owners live in.
//!
//! A row of its own, `C`, says which era the rows belong to. A store that has outlived its era is brought into the present in
//! one transaction, that row included: a process killed on the way leaves all of it to the next (G8).

use serde::{Deserialize, Serialize};

use super::kinds::{self, Visitor};
use super::local::carry_out;
use super::recall::decode;
use super::rows::{Change, Payloads, Rows, RowsMut, Transactions, Verdict, digests, get_value, record_key};
use super::{bus, once};
use crate::clock::Millis;
use crate::error::{Error, StoreError};
use crate::ids::Digest;
use crate::kind::{Census, Context, Kind, RecordChange, Transition, corrupt};
use crate::process::is_same_boot;
use crate::settings::Settings;

const KEY: [u8; 1] = [b'C'];
/// How far the wall clock may have been stepped within a boot before that is noted.
const SLACK_MS: u64 = 1000;

/// When and where a store is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Era {
    /// The boot of the machine.
    pub(super) boot: String,
    /// Milliseconds from the boot clock to 1970.
    pub(super) wall_offset: Millis,
    /// Where the processes live.
    pub(super) pid_namespace: u64,
}

/// Brings the rows into `era`, while nobody else has the store open: owners of another era are released, and times of another
/// boot are carried over by the wall clock. How many owners were released.
pub(super) fn take_over(rows: &impl Transactions, settings: &Settings, now: Millis, era: &Era) -> Result<u64, Error> {
    rows.write(|rows| {
        let before =
            match rows.get(&KEY)? {
                None => None,
                Some(bytes) => Some(serde_json::from_slice::<Era>(bytes).map_err(|error| {
                    StoreError::corrupt("of all sessions", format!("its era cannot be read: {error}"))
                })?),
            };
        let mut released = 0;
        if let Some(before) = before {
            let is_same_boot = is_same_boot(&before.boot, &era.boot);
            let is_same = is_same_boot && before.pid_namespace == era.pid_namespace;
            if is_same && !has_moved(before.wall_offset, era.wall_offset) {
                return Ok(Verdict::Abandon(0));
            }
            if !is_same {
                let shift =
                    if is_same_boot { 0 } else { (before.wall_offset as i64).saturating_sub(era.wall_offset as i64) };
                released = bring(rows, settings, now, &|time| time.saturating_add_signed(shift))?;
            }
        }
        rows.put(&KEY, &serde_json::to_vec(era).expect("an era has only texts and numbers"))?;
        Ok(Verdict::Commit { value: released, change: Change::Frees })
    })
}

/// Notes how far the boot clock is from the wall clock now, by which another boot will carry the rows' times over: the wall clock
/// may have been set since that was noted last.
pub(super) fn note_wall_offset(rows: &impl Transactions, wall_offset: Millis) -> Result<(), StoreError> {
    let outdated = |rows: &dyn Rows| -> Result<Option<Era>, StoreError> {
        let noted = rows.get(&KEY)?.and_then(|bytes| serde_json::from_slice::<Era>(bytes).ok());
        Ok(noted.filter(|noted| has_moved(noted.wall_offset, wall_offset)))
    };
    if rows.read(outdated)?.is_none() {
        return Ok(());
    }
    rows.write(|rows| {
        let Some(noted) = outdated(rows)? else { return Ok(Verdict::Abandon(())) };
        let now = Era { wall_offset, ..noted };
        rows.put(&KEY, &serde_json::to_vec(&now).expect("an era has only texts and numbers"))?;
        Ok(Verdict::Commit { value: (), change: Change::Keeps })
    })
}

/// Whether the wall clock was set between two looks at how far it is from the boot clock.
pub(super) fn has_moved(before: Millis, now: Millis) -> bool {
    before.abs_diff(now) > SLACK_MS
}

fn bring(
    rows: &mut dyn RowsMut,
    settings: &Settings,
    now: Millis,
    shift: &dyn Fn(Millis) -> Millis,
) -> Result<u64, StoreError> {
    let mut move_in = MoveIn { rows, settings, now, shift, released: 0 };
    kinds::each(&mut move_in)?;
    let MoveIn { rows, released, .. } = move_in;
    bus::move_in_time(rows, shift)?;
    once::move_in_time(rows, shift)?;
    Ok(released)
}

struct MoveIn<'m> {
    rows: &'m mut dyn RowsMut,
    settings: &'m Settings,
    now: Millis,
    shift: &'m dyn Fn(Millis) -> Millis,
    released: u64,
}

impl Visitor for MoveIn<'_> {
    fn visit<K: Kind>(&mut self) -> Result<(), StoreError> {
        for record in digests(self.rows, K::TABLES.records, None, usize::MAX)? {
            self.bring_record::<K>(record)?;
        }
        Ok(())
    }
}

impl MoveIn<'_> {
    fn bring_record<K: Kind>(&mut self, key: Digest) -> Result<(), StoreError> {
        let bytes =
            get_value(self.rows, &record_key::<K>(key))?.ok_or_else(|| corrupt::<K>("its record is missing"))?;
        let mut found = decode::<K>(&bytes)?;
        let (place_before, entries_before) = (K::index_key(&found), K::entries(&found));
        K::move_in_time(&mut found, self.shift);
        let census = Census::default();
        let (record, mut effects) = {
            let values = Payloads::<K>::new(self.rows, key);
            let context = Context { now: self.now, settings: self.settings, census: &census };
            let mut transition = Transition::<K>::new(Some(found), &values, context);
            self.released += K::release_everybody(&mut transition);
            transition.finish()
        };
        effects.record = RecordChange::Write;
        effects.index = Some((place_before, record.as_deref().and_then(K::index_key)));
        let leaves = entries_before.into_iter().map(|entry| (entry, false));
        let takes = record.as_deref().map(K::entries).unwrap_or_default().into_iter().map(|entry| (entry, true));
        effects.entries = leaves.chain(takes).collect();
        carry_out::<K>(self.rows, key, record.as_deref(), &effects)?;
        Ok(())
    }
}
