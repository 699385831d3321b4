//! The era of a store's rows: the boot whose clock their times are of, and the pid namespace their owners live in.
//!
//! A row of its own, `C`, says which era the rows belong to. A store that has outlived its era is brought into the present in
//! one transaction, that row included: a process killed on the way leaves all of it to the next (G8).

use serde::{Deserialize, Serialize};

use super::local::carry_out;
use super::recall::decode;
use super::rows::{
    Change, Rows, RowsMut, SESSIONS, SessionRows, Transactions, Verdict, digests, get_value, record_key,
};
use super::{bus, once};
use crate::clock::Millis;
use crate::error::{Error, StoreError};
use crate::ids::Digest;
use crate::process::is_same_boot;
use crate::session::{Census, Context, RecordChange, Transition};
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
    let mut released = 0;
    for session in digests(rows, SESSIONS, None, usize::MAX)? {
        released += bring_session(rows, settings, now, shift, session)?;
    }
    bus::move_in_time(rows, shift)?;
    once::move_in_time(rows, shift)?;
    Ok(released)
}

fn bring_session(
    rows: &mut dyn RowsMut,
    settings: &Settings,
    now: Millis,
    shift: &dyn Fn(Millis) -> Millis,
    session: Digest,
) -> Result<u64, StoreError> {
    let bytes = get_value(rows, &record_key(session))?
        .ok_or_else(|| StoreError::corrupt("of this session", "its record is missing"))?;
    let mut found = decode(&bytes)?;
    let place_before = found.index_key();
    found.move_in_time(shift);
    let census = Census::default();
    let (record, mut effects, released) = {
        let values = SessionRows::new(rows, session);
        let context = Context { now, settings, census: &census };
        let mut transition = Transition::new(Some(found), &values, context);
        let released = transition.release_everybody();
        let (record, effects) = transition.finish();
        (record, effects, released)
    };
    effects.record = RecordChange::Write;
    effects.index = record
        .as_deref()
        .filter(|record| !record.is_room())
        .map(|record| (Some(place_before), Some(record.index_key())));
    carry_out(rows, session, record.as_deref(), &effects)?;
    Ok(released)
}
