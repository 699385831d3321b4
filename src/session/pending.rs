//! The server's requests to the client: registered, answered, claimed, and what becomes of late answers.
//!
//! A pending request ends exactly once (G2), and only for its owner (G3). A response that finds no waiting request is late: it
//! is counted and forgotten (G4). The store decides timeouts: an answer that comes at the deadline or after it is late, an
//! answer that came before it is an answer, whenever it is claimed.

use super::json;
use super::outgoing::packing;
use super::payload::Payload;
use super::record::{Pending, PendingState, Record};
use super::transition::Transition;
use super::words::LateReason;
use crate::clock::Millis;
use crate::counter::Counter;
use crate::error::InvalidArgument;
use crate::ids::OwnerToken;
use crate::kind::Step;
use crate::process::Liveness;
use crate::settings::Limit;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;

/// The longest name of a method that is kept with a pending request, in bytes.
const MAX_METHOD: usize = 128;

/// More requests than any session makes: ids so far ahead are never given out.
const REACHABLE: i64 = 1 << 32;

/// How registering a pending request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It waits until then.
    Until(Millis),
    /// The id is taken.
    Duplicate,
}

/// What became of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is kept for the request's owner, who is woken.
    Delivered,
    /// It was discarded.
    Late(LateReason),
}

/// What a claim comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The client's answer; the request has ended.
    Answered(String),
    /// No answer yet; there are so many milliseconds left.
    Waiting(Millis),
    /// The deadline passed; the request has ended.
    TimedOut,
    /// The request was cancelled and has ended.
    Cancelled,
    /// The request is another owner's.
    NotOwner,
    /// There is no such request.
    Unknown,
}

/// A request that ended, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The request's id.
    pub id: i64,
    /// [`Claim::Answered`], [`Claim::TimedOut`] or [`Claim::Cancelled`].
    pub claim: Claim,
}

/// What cancelling a pending request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancellation {
    /// It will not be answered any more; a claim says so, once.
    Cancelled,
    /// It has an answer: claim it.
    AlreadyAnswered,
    /// Its deadline had passed: claim it.
    TimedOut,
    /// It was cancelled before.
    AlreadyCancelled,
    /// It is another owner's.
    NotOwner,
    /// There is no such request.
    Unknown,
}

/// A pending request as a look at it shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingInfo {
    /// The request's id.
    pub id: i64,
    /// What a claim by its owner would say, without the payload.
    pub state: Claim,
    /// Its method, where it was told.
    pub method: String,
}

impl Transition<'_> {
    /// An integer no other request of this session has or had (G5), one that was registered under an id of the caller's own
    /// included.
    pub fn next_request_id(&mut self) -> Step<i64> {
        let record = self.record_mut();
        let id = record.next_request;
        record.next_request += 1;
        Ok(id)
    }

    /// Registers a request that waits for its response.
    pub fn register_pending(&mut self, token: &OwnerToken, id: i64, timeout: Millis, method: &str) -> Step<Registered> {
        let index = self.owner(token)?;
        if method.len() > MAX_METHOD {
            let reason = format!("it is {} bytes long and the limit is {MAX_METHOD}", method.len());
            return Err(InvalidArgument::new("method", method, reason).into());
        }
        if let Some(at) = self.find(id) {
            return self.name_pending(index, at, method);
        }
        self.within(Limit::Pending, self.record().pending.len() as u64 + 1)?;
        self.within_session(method.len() as u64)?;
        let now = self.now();
        let deadline = now + timeout;
        let record = self.record_mut();
        let (owner, since) = (record.owners[index].number, record.beginning(now));
        let (method, state) = (method.to_owned(), PendingState::Waiting);
        record.pending.push(Pending { id, owner, deadline, method, since, state });
        // An id of the caller's own is never given out later, also when its request has ended: its response may still come.
        if (record.next_request..record.next_request.saturating_add(REACHABLE)).contains(&id) {
            record.next_request = id + 1;
        }
        Ok(Registered::Until(deadline))
    }

    /// An owner that registers its own waiting request again tells its method, where it had told none: the deadline stays.
    fn name_pending(&mut self, index: usize, at: usize, method: &str) -> Step<Registered> {
        let (record, now) = (self.record(), self.now());
        let pending = &record.pending[at];
        let is_waiting = pending.state == PendingState::Waiting && now < pending.deadline;
        let is_unnamed = pending.method.is_empty() && is_waiting;
        if method.is_empty() || !is_unnamed || pending.owner != record.owners[index].number {
            return Ok(Registered::Duplicate);
        }
        let deadline = pending.deadline;
        self.within_session(method.len() as u64)?;
        self.record_mut().pending[at].method = method.to_owned();
        Ok(Registered::Until(deadline))
    }

    /// Gives a message an id, registers it and queues it. The id.
    pub fn send_request(
        &mut self,
        token: &OwnerToken,
        request: &RequestMessage<'_>,
        context: &str,
        timeout: Millis,
    ) -> Step<i64> {
        let id = self.next_request_id()?;
        self.register_pending(token, id, timeout, request.method)?;
        self.enqueue(token, request.with_id(id, packing(context)), context)?;
        Ok(id)
    }

    /// Keeps the response for the request's owner, or discards it (G4).
    pub fn deliver_response(&mut self, id: i64, payload: &str) -> Step<Delivery> {
        self.check_message("response", payload)?;
        let late = match self.find(id) {
            None => self.record().how_it_ended(id),
            Some(at) => match self.record().pending[at].state {
                PendingState::Answered { .. } => LateReason::AlreadyAnswered,
                PendingState::TimedOut { .. } => LateReason::TimedOut,
                PendingState::Cancelled { .. } => LateReason::Cancelled,
                PendingState::Waiting => match self.answer(at, payload)? {
                    None => return Ok(Delivery::Delivered),
                    Some(late) => late,
                },
            },
        };
        let count = &mut self.record_mut().late[late as usize];
        *count = count.saturating_add(1);
        self.effects.counts.push(late.counter());
        Ok(Delivery::Late(late))
    }

    /// Answers a waiting request, unless it is too late for that.
    fn answer(&mut self, at: usize, payload: &str) -> Step<Option<LateReason>> {
        let Pending { id, owner, deadline, .. } = self.record().pending[at];
        let index = self.owner_by_number(owner);
        // What ended before this answer came is claimed before it.
        self.note_passed_deadlines(index);
        if deadline <= self.now() {
            return Ok(Some(LateReason::TimedOut));
        }
        if self.liveness(&self.record().owners[index].process)? == Liveness::Dead {
            let record = self.record_mut();
            record.pending.remove(at);
            record.remember(id, LateReason::Abandoned);
            return Ok(Some(LateReason::Abandoned));
        }
        let bytes = payload.len() as u64;
        self.within_session(bytes)?;
        let event = self.wake_owner(index);
        let record = self.record_mut();
        record.message_bytes += bytes;
        record.owners[index].resolved_at = event;
        record.pending[at].state = PendingState::Answered { event, bytes: bytes as u32 };
        self.put(Payload::Response(id), payload.as_bytes().to_vec());
        self.effects.counts.push(Counter::Delivered);
        Ok(None)
    }

    /// What became of the owner's request. Anything but waiting removes it.
    pub fn claim(&mut self, token: &OwnerToken, id: i64) -> Step<Claim> {
        let index = self.owner(token)?;
        let Some(at) = self.find(id) else {
            return Ok(Claim::Unknown);
        };
        if self.record().pending[at].owner != self.record().owners[index].number {
            return Ok(Claim::NotOwner);
        }
        self.claim_at(at)
    }

    /// The owner's next request that ended, in the order they ended; removed.
    pub fn claim_any(&mut self, token: &OwnerToken) -> Step<Option<Resolved>> {
        let index = self.owner(token)?;
        self.note_passed_deadlines(index);
        let record = self.record();
        let owner = record.owners[index].number;
        let next = record
            .pending
            .iter()
            .enumerate()
            .filter(|(_, pending)| pending.owner == owner)
            .filter_map(|(at, pending)| pending.state.event().map(|event| (event, at, pending.id)))
            .min();
        match next {
            None => Ok(None),
            Some((_, at, id)) => Ok(Some(Resolved { id, claim: self.claim_at(at)? })),
        }
    }

    /// The ids of the owner's requests whose deadline passed; removed.
    pub fn resolve_timeouts(&mut self, token: &OwnerToken) -> Step<Vec<i64>> {
        let index = self.owner(token)?;
        self.note_passed_deadlines(index);
        let owner = self.record().owners[index].number;
        let passed: Vec<i64> = self
            .record()
            .pending
            .iter()
            .filter(|pending| pending.owner == owner && matches!(pending.state, PendingState::TimedOut { .. }))
            .map(|pending| pending.id)
            .collect();
        for &id in &passed {
            self.claim(token, id)?;
        }
        Ok(passed)
    }

    /// Cancels the owner's request: a response that comes now is late.
    pub fn cancel_pending(&mut self, token: &OwnerToken, id: i64) -> Step<Cancellation> {
        let index = self.owner(token)?;
        let Some(at) = self.find(id) else {
            return Ok(Cancellation::Unknown);
        };
        if self.record().pending[at].owner != self.record().owners[index].number {
            return Ok(Cancellation::NotOwner);
        }
        self.note_passed_deadlines(index);
        Ok(match self.record().pending[at].state {
            PendingState::Answered { .. } => Cancellation::AlreadyAnswered,
            PendingState::TimedOut { .. } => Cancellation::TimedOut,
            PendingState::Cancelled { .. } => Cancellation::AlreadyCancelled,
            PendingState::Waiting => {
                let event = self.wake_owner(index);
                let record = self.record_mut();
                record.owners[index].resolved_at = event;
                record.pending[at].state = PendingState::Cancelled { event };
                Cancellation::Cancelled
            }
        })
    }

    /// The owner's pending requests, or all of the session; nothing is removed.
    pub fn pending(&mut self, token: Option<&OwnerToken>) -> Step<Vec<PendingInfo>> {
        let owner = match token {
            Some(token) => {
                let index = self.owner(token)?;
                Some(self.record().owners[index].number)
            }
            None => None,
        };
        let now = self.now();
        let shown = self.record().pending.iter().filter(|pending| owner.is_none_or(|owner| pending.owner == owner));
        Ok(shown.map(|pending| pending.info_at(now)).collect())
    }

    /// The answer to the owner's request, without claiming it.
    pub fn peek_response(&mut self, token: &OwnerToken, id: i64) -> Step<Option<String>> {
        let index = self.owner(token)?;
        let record = self.record();
        let owner = record.owners[index].number;
        let answered = record.pending.iter().any(|pending| {
            pending.id == id && pending.owner == owner && matches!(pending.state, PendingState::Answered { .. })
        });
        if answered { Ok(Some(self.response(id)?)) } else { Ok(None) }
    }

    /// Deadlines that have passed become events of their owner, in the order they passed in.
    pub(super) fn note_passed_deadlines(&mut self, index: usize) {
        let (now, record) = (self.now(), self.record());
        let owner = record.owners[index].number;
        let mut passed: Vec<(Millis, usize)> = record
            .pending
            .iter()
            .enumerate()
            .filter(|(_, pending)| pending.owner == owner && pending.state == PendingState::Waiting)
            .filter_map(|(at, pending)| (pending.deadline <= now).then_some((pending.deadline, at)))
            .collect();
        passed.sort_unstable();
        for (_, at) in passed {
            let event = self.wake_owner(index);
            let record = self.edit();
            record.owners[index].resolved_at = event;
            record.pending[at].state = PendingState::TimedOut { event };
        }
    }

    fn claim_at(&mut self, at: usize) -> Step<Claim> {
        let now = self.now();
        let pending = &self.record().pending[at];
        let id = pending.id;
        let (claim, ended) = match pending.seen_at(now) {
            Claim::Answered(_) => {
                let bytes = match pending.state {
                    PendingState::Answered { bytes, .. } => u64::from(bytes),
                    _ => 0,
                };
                let payload = self.response(id)?;
                self.delete(Payload::Response(id));
                let record = self.record_mut();
                record.message_bytes = Record::without(record.message_bytes, bytes)?;
                (Claim::Answered(payload), LateReason::Finished)
            }
            Claim::TimedOut => (Claim::TimedOut, LateReason::TimedOut),
            Claim::Cancelled => (Claim::Cancelled, LateReason::Cancelled),
            waiting => return Ok(waiting),
        };
        let record = self.record_mut();
        record.pending.remove(at);
        // Ids the session gave out itself are known to be finished when nothing else is remembered of them.
        if ended != LateReason::Finished || record.how_it_ended(id) != LateReason::Finished {
            record.remember(id, ended);
        }
        Ok(claim)
    }

    fn response(&self, id: i64) -> Step<String> {
        let payload = self.payload_of_record(&Payload::Response(id))?;
        String::from_utf8(payload)
            .map_err(|_| crate::error::StoreError::corrupt("of this session", "a response is not text").into())
    }

    fn find(&self, id: i64) -> Option<usize> {
        self.record().pending.iter().position(|pending| pending.id == id)
    }

    fn owner_by_number(&self, number: u32) -> usize {
        let owners = &self.record().owners;
        owners.iter().position(|owner| owner.number == number).expect("a pending request ends with its owner")
    }
}

impl Pending {
    /// The request as a look at it shows it.
    pub(super) fn info_at(&self, now: Millis) -> PendingInfo {
        PendingInfo { id: self.id, state: self.seen_at(now), method: self.method.clone() }
    }

    /// What a claim would say, without the payload.
    fn seen_at(&self, now: Millis) -> Claim {
        match self.state {
            PendingState::Answered { .. } => Claim::Answered(String::new()),
            PendingState::TimedOut { .. } => Claim::TimedOut,
            PendingState::Cancelled { .. } => Claim::Cancelled,
            PendingState::Waiting if self.deadline <= now => Claim::TimedOut,
            PendingState::Waiting => Claim::Waiting(self.deadline - now),
        }
    }
}

impl PendingState {
    fn event(self) -> Option<u64> {
        match self {
            PendingState::Waiting => None,
            PendingState::Answered { event, .. }
            | PendingState::TimedOut { event }
            | PendingState::Cancelled { event } => Some(event),
        }
    }
}

impl Record {
    fn gave_out(&self, id: i64) -> bool {
        (self.first_request..self.next_request).contains(&id)
    }

    /// Why a response to a request that is not pending is late.
    fn how_it_ended(&self, id: i64) -> LateReason {
        let remembered = self.ended.iter().rev().find(|(ended, _)| *ended == id);
        match remembered {
            Some(&(_, reason)) => reason,
            None if self.gave_out(id) => LateReason::Finished,
            None => LateReason::Unknown,
        }
    }
}

/// A request that has no id yet: a JSON object, with the place where the id goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMessage<'a> {
    /// What follows the opening brace.
    rest: &'a str,
    empty: bool,
    method: &'a str,
}

impl<'a> RequestMessage<'a> {
    /// Checks that `message` is a JSON object without an `id`.
    pub fn new(message: &'a str) -> Result<Self, InvalidArgument> {
        let invalid = |reason: String| InvalidArgument::new("request", message, reason);
        let rest = message
            .trim_start()
            .strip_prefix('{')
            .ok_or_else(|| invalid("it must be a JSON object without an id".into()))?;
        let shape = match Shape::skimmed(message) {
            Some(shape) => shape,
            None => {
                serde_json::from_str(message).map_err(|error| invalid(format!("it is not a JSON object: {error}")))?
            }
        };
        if shape.id {
            return Err(invalid("it has an id already; send_request chooses it".into()));
        }
        let method = shape.method.map_or("", |raw| raw.trim_matches('"'));
        let method = if method.len() > MAX_METHOD { "" } else { method };
        Ok(Self { rest, empty: rest.trim_start().starts_with('}'), method })
    }

    /// The request under an id, with room behind it.
    fn with_id(&self, id: i64, room: usize) -> String {
        const MEMBER: usize = r#"{"id":-9223372036854775808,"#.len();
        let comma = if self.empty { "" } else { "," };
        let mut text = String::with_capacity(MEMBER + self.rest.len() + room);
        for part in ["{\"id\":", itoa::Buffer::new().format(id), comma, self.rest] {
            text.push_str(part);
        }
        text
    }
}

/// What matters of a request.
#[derive(Deserialize)]
struct Shape<'a> {
    /// The method's JSON text.
    #[serde(borrow, default, deserialize_with = "raw")]
    method: Option<&'a str>,
    /// Whether there is an id, whatever its value, null too.
    #[serde(default, deserialize_with = "is_there")]
    id: bool,
}

fn raw<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de str>, D::Error> {
    <&RawValue>::deserialize(value).map(|raw| Some(raw.get()))
}

fn is_there<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

impl<'a> Shape<'a> {
    /// The shape, if the quick check sees it.
    fn skimmed(message: &'a str) -> Option<Self> {
        let (mut shape, mut members) = (Shape { method: None, id: false }, 0);
        json::skim(message, &mut |key, value| match key {
            "method" => {
                shape.method = Some(value);
                members += 1;
            }
            "id" => {
                shape.id = true;
                members += 1;
            }
            _ => {}
        })?;
        // Of two with one name, serde_json says what it thinks.
        (members == usize::from(shape.method.is_some()) + usize::from(shape.id)).then_some(shape)
    }
}
