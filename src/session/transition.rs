//! What the session's operations share: its kind, its handle, the keys of its payloads.

use std::ops::Range;

use super::payload::Payload;
use super::record::Record;
use super::steady::steady;
use crate::clock::Millis;
use crate::error::{Error, LimitExceeded, shorten_secret};
use crate::ids::{Digest, OwnerToken, SessionId};
use crate::kind::{self, IndexKey, Kind, Tables};
use crate::settings::Limit;

/// One operation at work on one session.
pub type Transition<'a> = kind::Transition<'a, Session>;
/// What must follow from an operation besides the record.
pub type Effects = kind::Effects<Payload>;
/// A record as an operation leaves it, and what must follow.
pub type Decided = (Option<Box<Record>>, Effects);

/// The session as a kind of records.
#[derive(Debug)]
pub enum Session {}

impl Kind for Session {
    type Record = Record;
    type Payload = Payload;

    const NAME: &'static str = "session";
    const TABLES: Tables = Tables { records: b'S', expiry: b'X', entries: b'x', population: b'N', principals: b'P' };
    const TAG: &'static str = "";

    fn decode(bytes: &[u8]) -> Result<Box<Record>, String> {
        Record::decode(bytes).map_err(|error| error.to_string())
    }

    fn encode(record: &Record) -> Vec<u8> {
        record.encode()
    }

    fn index_key(record: &Record) -> Option<IndexKey> {
        (!record.is_room()).then_some(record.indexed)
    }

    fn principal(record: &Record) -> Option<Digest> {
        record.principal
    }

    fn footprint(record: &Record) -> u64 {
        record.footprint()
    }

    fn steady(before: Option<&Record>, after: Option<&Record>, now: Millis) -> Range<Millis> {
        steady(before, after, now)
    }

    fn gone_by(record: &Record) -> Millis {
        record.gone_by()
    }

    fn bodies(record: &Record) -> Vec<Payload> {
        record.payloads()
    }

    fn accounts(record: &Record) -> (u64, u64) {
        (record.message_bytes, record.attribute_bytes)
    }

    fn miscounted(record: &Record, attributes: u64) -> Option<String> {
        record.miscounted(attributes)
    }

    fn id(record: &Record) -> &str {
        &record.id
    }

    fn follow(transition: &mut Transition<'_>) {
        transition.follow_in_index();
    }

    fn move_in_time(record: &mut Record, shift: &dyn Fn(Millis) -> Millis) {
        record.move_in_time(shift);
    }

    fn release_everybody(transition: &mut Transition<'_>) -> u64 {
        transition.release_everybody()
    }
}

/// The session as a process holds it: which incarnation, and for whom (G7, G12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The session's id.
    pub id: SessionId,
    /// The incarnation that was opened.
    pub incarnation: u64,
    /// For whom it was opened.
    pub principal: Option<Digest>,
}

impl Transition<'_> {
    /// The session's record, to be changed: it will be written, and the session has been active.
    pub(super) fn record_mut(&mut self) -> &mut Record {
        let now = self.now();
        let record = self.edit();
        record.last_active = now;
        record
    }

    /// Refuses `added` bytes that would pass the session's limit.
    pub(super) fn within_session(&self, added: u64) -> Result<(), LimitExceeded> {
        self.within(Limit::SessionBytes, self.record().bytes() + added)
    }
}

/// The error for an owner that is not there.
pub(super) fn owner_expired(record: &Record, token: &OwnerToken) -> Error {
    Error::OwnerExpired { id: shorten_id(&record.id), token: token.shortened() }
}

/// The error for a session that is not there.
pub(super) fn session_not_found(id: &str) -> Error {
    Error::SessionNotFound { id: shorten_id(id) }
}

fn shorten_id(id: &str) -> String {
    SessionId::new(id).map_or_else(|_| shorten_secret(id), |id| id.shortened())
}
