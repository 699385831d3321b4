//! What a store does, in the plainest words: maps and lists in one thread, each operation read off docs/design.md.
//!
//! No record, no payloads, no index, no lease that is renewed lazily. Whoever compares keeps away from the moments about which
//! the guarantees leave a store free (see `tests/properties.rs`).

#![allow(unreachable_pub)]

use std::collections::{BTreeMap, HashMap, HashSet};

use mcp_state::{
    Cancellation, Claim, Delivery, Detached, DuplicatePolicy, Error, ErrorKind, Interest, LateReason, Limit, Millis,
    OwnerKind, OwnerToken, RequestCancellation, RequestId, Settings,
};
use serde_json::Value;

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Invalid,
    NotFound,
    OwnerExpired,
    Limit(Limit, u64, u64),
    Other(ErrorKind),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Limit(limit) => Fault::Limit(limit.limit, limit.maximum, limit.actual),
            error => match error.kind() {
                ErrorKind::InvalidArgument => Fault::Invalid,
                ErrorKind::SessionNotFound => Fault::NotFound,
                ErrorKind::OwnerExpired => Fault::OwnerExpired,
                kind => Fault::Other(kind),
            },
        }
    }
}

pub type Outcome<T> = Result<T, Fault>;

/// A session as somebody opened it.
#[derive(Clone, Debug)]
pub struct Handle {
    pub id: String,
    pub incarnation: u64,
    pub principal: Option<&'static str>,
}

/// A store.
pub struct Model {
    pub now: Millis,
    pub settings: Settings,
    pub sessions: HashMap<String, Session>,
    created: u64,
    topics: HashMap<String, Topic>,
    once: HashMap<String, Millis>,
}

struct Topic {
    /// The number of the newest message.
    newest: u64,
    kept: Vec<(u64, String)>,
    last: Millis,
}

#[derive(Clone, Debug)]
pub struct Session {
    incarnation: u64,
    principal: Option<&'static str>,
    pub ttl: Millis,
    created: Millis,
    pub used: Millis,
    pub owners: Vec<Owner>,
    pending: Vec<Pending>,
    in_flight: Vec<InFlight>,
    broadcasts: Vec<Broadcast>,
    next_broadcast: u64,
    exchanges: u64,
    /// Ids the session gave out, and those that were registered.
    given: HashSet<i64>,
    registered: HashSet<i64>,
    ended: HashMap<i64, LateReason>,
    late: HashMap<&'static str, u64>,
    attributes: BTreeMap<String, Node>,
    events: u64,
}

#[derive(Clone, Debug)]
pub struct Owner {
    pub token: OwnerToken,
    kind: OwnerKind,
    pub seen: Millis,
    pub lease: Millis,
    queue: Vec<Message>,
    next: u64,
    /// The newest event of each interest: resolution, message, cancellation.
    news: [u64; 3],
}

#[derive(Clone, Debug)]
struct Message {
    sequence: u64,
    text: String,
    context: String,
    broadcast: bool,
}

#[derive(Clone, Debug)]
struct Broadcast {
    text: String,
    context: String,
    /// The owner that peeked it, and its number there.
    holder: Option<(OwnerToken, u64)>,
}

#[derive(Clone, Debug)]
struct Pending {
    id: i64,
    owner: OwnerToken,
    deadline: Millis,
    method: String,
    /// What a claim would say, and when that became so.
    end: Option<(Claim, u64)>,
}

#[derive(Clone, Debug)]
struct InFlight {
    id: RequestId,
    owner: OwnerToken,
    cancelled: bool,
}

/// An attribute tree: what was set, and what is there only because something is below it.
#[derive(Clone, Debug)]
enum Node {
    Set(Value),
    Above(BTreeMap<String, Node>),
}

const RESOLUTION: usize = 0;
const MESSAGE: usize = 1;
const CANCELLATION: usize = 2;
const LONGEST_SILENCE: Millis = 3_600_000;
const DAY: Millis = 24 * 3_600_000;

impl Model {
    pub fn new(now: Millis, settings: Settings) -> Self {
        Self { now, settings, sessions: HashMap::new(), created: 0, topics: HashMap::new(), once: HashMap::new() }
    }

    fn is_there(&self, id: &str) -> bool {
        self.sessions.get(id).is_some_and(|session| session.is_there(self.now))
    }

    pub fn create(&mut self, id: &str, ttl: Millis, principal: Option<&'static str>) -> Option<Handle> {
        if self.is_there(id) {
            return None;
        }
        self.created += 1;
        let session = Session {
            incarnation: self.created,
            principal,
            ttl,
            created: self.now,
            used: self.now,
            owners: vec![],
            pending: vec![],
            in_flight: vec![],
            broadcasts: vec![],
            next_broadcast: 1,
            exchanges: 0,
            given: HashSet::new(),
            registered: HashSet::new(),
            ended: HashMap::new(),
            late: HashMap::new(),
            attributes: BTreeMap::new(),
            events: 0,
        };
        self.sessions.insert(id.to_owned(), session);
        Some(Handle { id: id.to_owned(), incarnation: self.created, principal })
    }

    pub fn open(&mut self, id: &str, principal: Option<&'static str>) -> Option<Handle> {
        if !self.is_there(id) {
            return None;
        }
        let session = self.sessions.get_mut(id)?;
        let for_them = session.principal.is_none() || session.principal == principal;
        for_them.then(|| Handle { id: id.to_owned(), incarnation: session.incarnation, principal })
    }

    /// One operation on one session, all or nothing.
    pub fn on<T>(
        &mut self,
        handle: &Handle,
        operation: impl FnOnce(&mut Session, &Settings, Millis) -> Outcome<T>,
    ) -> Outcome<T> {
        if !self.is_there(&handle.id) {
            return Err(Fault::NotFound);
        }
        let before = &self.sessions[&handle.id];
        if before.incarnation != handle.incarnation
            || (before.principal.is_some() && before.principal != handle.principal)
        {
            return Err(Fault::NotFound);
        }
        let mut session = before.clone();
        session.note_passed_deadlines(self.now);
        let value = operation(&mut session, &self.settings, self.now)?;
        session.used = self.now;
        self.sessions.insert(handle.id.clone(), session);
        Ok(value)
    }

    pub fn destroy(&mut self, handle: &Handle) -> Outcome<bool> {
        match self.on(handle, |_, _, _| Ok(())) {
            Ok(()) => Ok(self.sessions.remove(&handle.id).is_some()),
            Err(Fault::NotFound) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// How many sessions and owners went.
    pub fn collect(&mut self) -> (u64, u64) {
        let now = self.now;
        let (mut sessions, mut owners) = (0, 0);
        self.sessions.retain(|_, session| {
            let stays = session.is_there(now);
            if !stays {
                sessions += 1;
                owners += session.owners.len() as u64;
            }
            stays
        });
        self.topics.retain(|_, topic| topic.last + DAY >= now);
        (sessions, owners)
    }

    pub fn publish(&mut self, topic: &str, message: &str) -> u64 {
        let most = self.settings.limit(Limit::BusMessages) as usize;
        let topic = self.topics.entry(topic.to_owned()).or_insert(Topic { newest: 0, kept: vec![], last: 0 });
        topic.newest += 1;
        topic.last = self.now;
        topic.kept.push((topic.newest, message.to_owned()));
        let too_many = topic.kept.len().saturating_sub(most);
        topic.kept.drain(..too_many);
        topic.newest
    }

    pub fn cursor(&self, topic: &str) -> u64 {
        self.topics.get(topic).map_or(0, |topic| topic.newest)
    }

    /// Messages, the next cursor, how many were missed.
    pub fn since(&self, topic: &str, cursor: u64, max: usize) -> (Vec<(u64, String)>, u64, u64) {
        let Some(topic) = self.topics.get(topic) else { return (vec![], 0, 0) };
        let oldest = topic.newest + 1 - topic.kept.len() as u64;
        let cursor = if cursor > topic.newest { oldest - 1 } else { cursor };
        let new: Vec<_> = topic.kept.iter().filter(|(number, _)| *number > cursor).take(max).cloned().collect();
        let missed = (oldest - 1).saturating_sub(cursor);
        let next = new.last().map_or(cursor.max(oldest - 1), |(number, _)| *number);
        (new, next, missed)
    }

    pub fn consume_once(&mut self, key: &str, ttl: Millis) -> bool {
        if self.once.get(key).is_some_and(|&until| self.now < until) {
            return false;
        }
        self.once.insert(key.to_owned(), self.now + ttl);
        true
    }
}

fn limit(settings: &Settings, limit: Limit, actual: usize) -> Outcome<()> {
    let (maximum, actual) = (settings.limit(limit), actual as u64);
    if actual > maximum { Err(Fault::Limit(limit, maximum, actual)) } else { Ok(()) }
}

fn check_message(settings: &Settings, message: &str) -> Outcome<()> {
    if message.is_empty() {
        return Err(Fault::Invalid);
    }
    limit(settings, Limit::MessageBytes, message.len())
}

fn size(text: &str, context: &str) -> usize {
    4 + text.len() + context.len()
}

impl Session {
    pub fn is_there(&self, now: Millis) -> bool {
        now < self.used + self.ttl || self.owners.iter().any(|owner| !self.is_dead(owner, now))
    }

    /// Silence after which one of its owners is dead though its process lives.
    pub fn longest_silence(&self) -> Millis {
        self.ttl.max(LONGEST_SILENCE)
    }

    pub fn is_dead(&self, owner: &Owner, now: Millis) -> bool {
        now - owner.seen > self.longest_silence()
    }

    fn note_passed_deadlines(&mut self, now: Millis) {
        let mut passed: Vec<_> = (0..self.pending.len())
            .filter(|&at| self.pending[at].end.is_none() && self.pending[at].deadline <= now)
            .collect();
        passed.sort_by_key(|&at| self.pending[at].deadline);
        for at in passed {
            let event = self.tell(self.pending[at].owner, RESOLUTION);
            self.pending[at].end = Some((Claim::TimedOut, event));
        }
    }

    fn tell(&mut self, token: OwnerToken, interest: usize) -> u64 {
        self.events += 1;
        if let Some(owner) = self.owners.iter_mut().find(|owner| owner.token == token) {
            owner.news[interest] = self.events;
        }
        self.events
    }

    fn tell_streams(&mut self) {
        let streams: Vec<_> =
            self.owners.iter().filter(|owner| owner.kind == OwnerKind::Stream).map(|owner| owner.token).collect();
        for token in streams {
            self.tell(token, MESSAGE);
        }
    }

    /// The owner, which is alive: it just did something.
    fn owner(&mut self, token: OwnerToken, now: Millis) -> Outcome<&mut Owner> {
        let owner = self.owners.iter_mut().find(|owner| owner.token == token).ok_or(Fault::OwnerExpired)?;
        owner.seen = now;
        Ok(owner)
    }

    pub fn attach(
        &mut self,
        settings: &Settings,
        now: Millis,
        token: Option<OwnerToken>,
        kind: OwnerKind,
        lease: Millis,
    ) -> Outcome<()> {
        let dead: Vec<_> =
            self.owners.iter().filter(|owner| self.is_dead(owner, now)).map(|owner| owner.token).collect();
        for token in dead {
            self.detach(token);
        }
        limit(settings, Limit::Owners, self.owners.len() + 1)?;
        let token = token.expect("the store attached an owner that the model refuses nobody");
        self.owners.push(Owner { token, kind, seen: now, lease, queue: vec![], next: 1, news: [0; 3] });
        self.exchanges += 1;
        if kind == OwnerKind::Stream && self.broadcasts.iter().any(|broadcast| broadcast.holder.is_none()) {
            self.tell(token, MESSAGE);
        }
        Ok(())
    }

    pub fn renew(&mut self, token: OwnerToken, now: Millis) -> Outcome<()> {
        self.owner(token, now).map(|_| ())
    }

    pub fn detach(&mut self, token: OwnerToken) -> Option<Detached> {
        let at = self.owners.iter().position(|owner| owner.token == token)?;
        let owner = self.owners.remove(at);
        self.in_flight.retain(|request| request.owner != token);
        let mut abandoned = 0;
        for pending in self.pending.iter().filter(|pending| pending.owner == token) {
            let reason = match &pending.end {
                Some((Claim::TimedOut, _)) => LateReason::TimedOut,
                Some((Claim::Cancelled, _)) => LateReason::Cancelled,
                _ => LateReason::Abandoned,
            };
            abandoned += u64::from(reason == LateReason::Abandoned);
            self.ended.insert(pending.id, reason);
        }
        self.pending.retain(|pending| pending.owner != token);
        let mut returned = false;
        for broadcast in &mut self.broadcasts {
            if broadcast.holder.is_some_and(|(holder, _)| holder == token) {
                broadcast.holder = None;
                returned = true;
            }
        }
        if returned {
            self.tell_streams();
        }
        let dropped = owner.queue.iter().filter(|message| !message.broadcast).count();
        Some(Detached { dropped_messages: dropped as u64, abandoned_pending: abandoned })
    }

    pub fn enqueue(
        &mut self,
        settings: &Settings,
        now: Millis,
        token: OwnerToken,
        text: &str,
        context: &str,
    ) -> Outcome<u64> {
        let owner = self.owner(token, now)?;
        check_message(settings, text)?;
        limit(settings, Limit::MessageBytes, context.len())?;
        limit(settings, Limit::OwnerMessages, owner.queue.len() + 1)?;
        let own = owner.queue.iter().filter(|message| !message.broadcast);
        let bytes: usize = own.map(|message| size(&message.text, &message.context)).sum();
        limit(settings, Limit::OwnerBytes, bytes + size(text, context))?;
        let sequence = owner.next;
        owner.next += 1;
        owner.queue.push(Message { sequence, text: text.into(), context: context.into(), broadcast: false });
        self.tell(token, MESSAGE);
        Ok(sequence)
    }

    pub fn broadcast(&mut self, settings: &Settings, text: &str, context: &str) -> Outcome<u64> {
        check_message(settings, text)?;
        limit(settings, Limit::MessageBytes, context.len())?;
        limit(settings, Limit::Broadcasts, self.broadcasts.len() + 1)?;
        let number = self.next_broadcast;
        self.next_broadcast += 1;
        self.broadcasts.push(Broadcast { text: text.into(), context: context.into(), holder: None });
        self.tell_streams();
        Ok(number)
    }

    pub fn peek(&mut self, now: Millis, token: OwnerToken, max: usize) -> Outcome<Vec<(u64, String, String)>> {
        self.owner(token, now)?;
        let owner = self.owners.iter_mut().find(|owner| owner.token == token).expect("it is there");
        if owner.kind == OwnerKind::Stream {
            for broadcast in self.broadcasts.iter_mut().filter(|broadcast| broadcast.holder.is_none()) {
                if owner.queue.len() >= max {
                    break;
                }
                let (sequence, text, context) = (owner.next, broadcast.text.clone(), broadcast.context.clone());
                broadcast.holder = Some((token, sequence));
                owner.next += 1;
                owner.queue.push(Message { sequence, text, context, broadcast: true });
            }
        }
        let seen = owner.queue.iter().take(max);
        Ok(seen.map(|message| (message.sequence, message.text.clone(), message.context.clone())).collect())
    }

    pub fn take(&mut self, now: Millis, token: OwnerToken, max: usize) -> Outcome<Vec<(u64, String, String)>> {
        let messages = self.peek(now, token, max)?;
        if let Some((last, _, _)) = messages.last() {
            self.acknowledge(now, token, *last)?;
        }
        Ok(messages)
    }

    pub fn acknowledge(&mut self, now: Millis, token: OwnerToken, up_to: u64) -> Outcome<u64> {
        let owner = self.owner(token, now)?;
        let before = owner.queue.len();
        owner.queue.retain(|message| message.sequence > up_to);
        let removed = before - owner.queue.len();
        self.broadcasts
            .retain(|broadcast| !broadcast.holder.is_some_and(|(holder, at)| holder == token && at <= up_to));
        Ok(removed as u64)
    }

    /// Whether the session may give out this id next (G5).
    pub fn gives(&mut self, id: i64) -> bool {
        let is_new = self.given.insert(id);
        is_new && !self.pending.iter().any(|pending| pending.id == id)
    }

    /// False when the id is taken.
    pub fn register(
        &mut self,
        settings: &Settings,
        now: Millis,
        token: OwnerToken,
        id: i64,
        timeout: Millis,
        method: &str,
    ) -> Outcome<bool> {
        self.owner(token, now)?;
        if method.len() > 128 {
            return Err(Fault::Invalid);
        }
        if let Some(known) = self.pending.iter_mut().find(|pending| pending.id == id) {
            let is_named = known.owner == token && known.end.is_none() && known.method.is_empty() && !method.is_empty();
            if is_named {
                known.method = method.into();
            }
            return Ok(is_named);
        }
        limit(settings, Limit::Pending, self.pending.len() + 1)?;
        let pending = Pending { id, owner: token, deadline: now + timeout, method: method.into(), end: None };
        self.pending.push(pending);
        self.registered.insert(id);
        Ok(true)
    }

    pub fn deliver(&mut self, settings: &Settings, now: Millis, id: i64, payload: &str) -> Outcome<Vec<Delivery>> {
        check_message(settings, payload)?;
        self.note_passed_deadlines(now);
        let reasons = match self.pending.iter().position(|pending| pending.id == id) {
            Some(at) => match &self.pending[at].end {
                None => {
                    let event = self.tell(self.pending[at].owner, RESOLUTION);
                    self.pending[at].end = Some((Claim::Answered(payload.into()), event));
                    return Ok(vec![Delivery::Delivered]);
                }
                Some((Claim::TimedOut, _)) => vec![LateReason::TimedOut],
                Some((Claim::Cancelled, _)) => vec![LateReason::Cancelled],
                Some(_) => vec![LateReason::AlreadyAnswered],
            },
            None => match self.ended.get(&id) {
                Some(&reason) => vec![reason],
                // Given out or passed over and never registered: it was the caller's to use.
                None if !self.registered.contains(&id) && self.is_used_up(id) => {
                    vec![LateReason::Unknown, LateReason::Finished]
                }
                None => vec![LateReason::Unknown],
            },
        };
        Ok(reasons.into_iter().map(Delivery::Late).collect())
    }

    fn is_used_up(&self, id: i64) -> bool {
        self.given.contains(&id) || (id > 0 && self.registered.iter().any(|&registered| registered > id))
    }

    pub fn count_late(&mut self, reason: LateReason) {
        *self.late.entry(reason.name()).or_default() += 1;
    }

    pub fn late(&self, reason: &str) -> u64 {
        self.late.get(reason).copied().unwrap_or(0)
    }

    fn own_pending(&self, token: OwnerToken, id: i64) -> Result<&Pending, Claim> {
        match self.pending.iter().find(|pending| pending.id == id) {
            None => Err(Claim::Unknown),
            Some(pending) if pending.owner != token => Err(Claim::NotOwner),
            Some(pending) => Ok(pending),
        }
    }

    pub fn claim(&mut self, now: Millis, token: OwnerToken, id: i64) -> Outcome<Claim> {
        self.owner(token, now)?;
        let pending = match self.own_pending(token, id) {
            Ok(pending) => pending,
            Err(claim) => return Ok(claim),
        };
        let Some((claim, _)) = pending.end.clone() else { return Ok(Claim::Waiting(pending.deadline - now)) };
        self.pending.retain(|pending| pending.id != id);
        let reason = match claim {
            Claim::TimedOut => LateReason::TimedOut,
            Claim::Cancelled => LateReason::Cancelled,
            _ => LateReason::Finished,
        };
        self.ended.insert(id, reason);
        Ok(claim)
    }

    pub fn claim_any(&mut self, now: Millis, token: OwnerToken) -> Outcome<Option<(i64, Claim)>> {
        self.owner(token, now)?;
        let ended = self.pending.iter().filter(|pending| pending.owner == token);
        let first = ended.filter_map(|pending| pending.end.as_ref().map(|(_, event)| (*event, pending.id))).min();
        match first {
            Some((_, id)) => Ok(Some((id, self.claim(now, token, id)?))),
            None => Ok(None),
        }
    }

    pub fn resolve_timeouts(&mut self, now: Millis, token: OwnerToken) -> Outcome<Vec<i64>> {
        self.owner(token, now)?;
        let own = self.pending.iter().filter(|pending| pending.owner == token);
        let passed: Vec<_> =
            own.filter(|pending| matches!(pending.end, Some((Claim::TimedOut, _)))).map(|pending| pending.id).collect();
        for &id in &passed {
            self.claim(now, token, id)?;
        }
        Ok(passed)
    }

    pub fn peek_response(&mut self, now: Millis, token: OwnerToken, id: i64) -> Outcome<Option<String>> {
        self.owner(token, now)?;
        Ok(match self.own_pending(token, id) {
            Ok(Pending { end: Some((Claim::Answered(payload), _)), .. }) => Some(payload.clone()),
            _ => None,
        })
    }

    pub fn pending(&mut self, now: Millis, token: Option<OwnerToken>) -> Outcome<Vec<(i64, Claim, String)>> {
        if let Some(token) = token {
            self.owner(token, now)?;
        }
        let shown = self.pending.iter().filter(|pending| token.is_none_or(|token| pending.owner == token));
        Ok(shown
            .map(|pending| {
                let state = match &pending.end {
                    Some((Claim::Answered(_), _)) => Claim::Answered(String::new()),
                    Some((claim, _)) => claim.clone(),
                    None => Claim::Waiting(pending.deadline - now),
                };
                (pending.id, state, pending.method.clone())
            })
            .collect())
    }

    pub fn cancel_pending(&mut self, now: Millis, token: OwnerToken, id: i64) -> Outcome<Cancellation> {
        self.owner(token, now)?;
        let end = match self.own_pending(token, id) {
            Err(Claim::NotOwner) => return Ok(Cancellation::NotOwner),
            Err(_) => return Ok(Cancellation::Unknown),
            Ok(pending) => pending.end.clone(),
        };
        Ok(match end {
            Some((Claim::TimedOut, _)) => Cancellation::TimedOut,
            Some((Claim::Cancelled, _)) => Cancellation::AlreadyCancelled,
            Some(_) => Cancellation::AlreadyAnswered,
            None => {
                let event = self.tell(token, RESOLUTION);
                let pending = self.pending.iter_mut().find(|pending| pending.id == id).expect("it is there");
                pending.end = Some((Claim::Cancelled, event));
                Cancellation::Cancelled
            }
        })
    }

    /// Whether a waiter is served at once, and the newest event it has seen then.
    pub fn look(&mut self, now: Millis, token: OwnerToken, interest: Interest, after: u64) -> Outcome<Option<u64>> {
        let owner = self.owner(token, now)?.clone();
        let is_there = [
            self.pending.iter().any(|pending| pending.owner == token && pending.end.is_some()),
            !owner.queue.is_empty()
                || (owner.kind == OwnerKind::Stream
                    && self.broadcasts.iter().any(|broadcast| broadcast.holder.is_none())),
            self.in_flight.iter().any(|request| request.owner == token && request.cancelled),
        ];
        let asked = [interest.resolution, interest.message, interest.cancellation];
        let mut of_interest = [RESOLUTION, MESSAGE, CANCELLATION].into_iter().filter(|&kind| asked[kind]);
        let newest = of_interest.clone().map(|kind| owner.news[kind]).max().unwrap_or(0);
        Ok(of_interest.any(|kind| is_there[kind] && owner.news[kind] > after).then_some(newest))
    }

    pub fn begin(
        &mut self,
        settings: &Settings,
        now: Millis,
        token: OwnerToken,
        id: &RequestId,
        policy: DuplicatePolicy,
    ) -> Outcome<bool> {
        self.owner(token, now)?;
        if policy == DuplicatePolicy::Reject && self.in_flight.iter().any(|request| request.id == *id) {
            return Ok(false);
        }
        limit(settings, Limit::InFlight, self.in_flight.len() + 1)?;
        self.in_flight.push(InFlight { id: id.clone(), owner: token, cancelled: false });
        Ok(true)
    }

    pub fn finish(&mut self, now: Millis, token: OwnerToken, id: &RequestId) -> Outcome<Option<bool>> {
        self.owner(token, now)?;
        let at = self.in_flight.iter().position(|request| request.owner == token && request.id == *id);
        Ok(at.map(|at| self.in_flight.remove(at).cancelled))
    }

    pub fn is_cancelled(&mut self, now: Millis, token: OwnerToken, id: &RequestId) -> Outcome<bool> {
        self.owner(token, now)?;
        let own = self.in_flight.iter().find(|request| request.owner == token && request.id == *id);
        Ok(own.is_some_and(|request| request.cancelled))
    }

    pub fn cancel_request(&mut self, id: &RequestId) -> RequestCancellation {
        let found: Vec<_> = (0..self.in_flight.len()).filter(|&at| self.in_flight[at].id == *id).collect();
        match found[..] {
            [] => RequestCancellation::Unknown,
            [at] => {
                self.in_flight[at].cancelled = true;
                let owner = self.in_flight[at].owner;
                self.tell(owner, CANCELLATION);
                RequestCancellation::Cancelled(owner)
            }
            _ => RequestCancellation::Ambiguous,
        }
    }

    /// Age, owners, exchanges, pending, in flight, queued, broadcasts, bytes of messages and responses.
    pub fn counts(&self, now: Millis) -> [u64; 8] {
        let own = self.owners.iter().flat_map(|owner| &owner.queue).filter(|message| !message.broadcast);
        let mut bytes: usize = own.map(|message| size(&message.text, &message.context)).sum();
        bytes += self.broadcasts.iter().map(|broadcast| size(&broadcast.text, &broadcast.context)).sum::<usize>();
        for pending in &self.pending {
            if let Some((Claim::Answered(payload), _)) = &pending.end {
                bytes += payload.len();
            }
        }
        [
            now - self.created,
            self.owners.len() as u64,
            self.exchanges,
            self.pending.len() as u64,
            self.in_flight.len() as u64,
            self.owners.iter().map(|owner| owner.queue.len() as u64).sum(),
            self.broadcasts.len() as u64,
            bytes as u64,
        ]
    }
}

/// Attributes: a tree of segments. A value that was set is there until it is replaced or removed; an object that was never set
/// is there while something is below it. Below a value that was set, PHP's rules for arrays hold: a list's elements have the
/// names 0, 1, …, and whatever is not a list's next state makes an object of it.
impl Session {
    pub fn get(&self, key: &str) -> Option<Value> {
        let mut nodes = &self.attributes;
        let mut segments = key.split('.');
        while let Some(segment) = segments.next() {
            match nodes.get(segment)? {
                Node::Set(value) => return segments.try_fold(value, element).cloned(),
                Node::Above(below) => nodes = below,
            }
        }
        Some(object(nodes))
    }

    pub fn all(&self) -> Value {
        object(&self.attributes)
    }

    pub fn set(&mut self, key: &str, value: Value) {
        let path: Vec<_> = key.split('.').collect();
        set(&mut self.attributes, &path, value);
    }

    pub fn set_json(&mut self, key: &str, json: &str) -> Outcome<()> {
        self.set(key, serde_json::from_str(json).map_err(|_| Fault::Invalid)?);
        Ok(())
    }

    pub fn remove(&mut self, key: &str) -> bool {
        let path: Vec<_> = key.split('.').collect();
        remove(&mut self.attributes, &path)
    }

    /// What is not null.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Whether the value is this one: PHP does not tell a list from the object with its elements.
    pub fn is(&self, key: &str, value: Option<Value>) -> bool {
        self.value(key).map(without_lists) == value.filter(|value| !value.is_null()).map(without_lists)
    }
}

fn without_lists(value: Value) -> Value {
    match value {
        Value::Object(object) => object.into_iter().map(|(name, value)| (name, without_lists(value))).collect(),
        Value::Array(list) => {
            let named = list.into_iter().enumerate().map(|(at, value)| (at.to_string(), without_lists(value)));
            Value::Object(named.collect())
        }
        value => value,
    }
}

fn object(nodes: &BTreeMap<String, Node>) -> Value {
    let value = |node: &Node| match node {
        Node::Set(value) => value.clone(),
        Node::Above(below) => object(below),
    };
    Value::Object(nodes.iter().map(|(name, node)| (name.clone(), value(node))).collect())
}

fn element<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(object) => object.get(name),
        Value::Array(list) => (0..list.len()).find(|at| at.to_string() == name).map(|at| &list[at]),
        _ => None,
    }
}

fn set(nodes: &mut BTreeMap<String, Node>, path: &[&str], value: Value) {
    let name = path[0].to_owned();
    if path.len() == 1 {
        nodes.insert(name, Node::Set(value));
        return;
    }
    match nodes.entry(name).or_insert_with(|| Node::Above(BTreeMap::new())) {
        Node::Set(above) => set_in(above, &path[1..], value),
        Node::Above(below) => set(below, &path[1..], value),
    }
}

fn set_in(above: &mut Value, path: &[&str], value: Value) {
    let Some((name, rest)) = path.split_first() else {
        *above = value;
        return;
    };
    if let Value::Array(list) = above
        && let Some(at) = (0..list.len()).find(|at| at.to_string() == *name)
    {
        return set_in(&mut list[at], rest, value);
    }
    let object = as_object(above);
    set_in(object.entry(*name).or_insert(Value::Null), rest, value);
}

fn as_object(value: &mut Value) -> &mut serde_json::Map<String, Value> {
    let object = match value.take() {
        Value::Object(object) => object,
        Value::Array(list) => list.into_iter().enumerate().map(|(at, element)| (at.to_string(), element)).collect(),
        _ => serde_json::Map::new(),
    };
    *value = Value::Object(object);
    value.as_object_mut().expect("it is one now")
}

fn remove(nodes: &mut BTreeMap<String, Node>, path: &[&str]) -> bool {
    if path.len() == 1 {
        return nodes.remove(path[0]).is_some();
    }
    match nodes.get_mut(path[0]) {
        None => false,
        Some(Node::Set(above)) => remove_in(above, &path[1..]),
        Some(Node::Above(below)) => {
            let removed = remove(below, &path[1..]);
            if below.is_empty() {
                nodes.remove(path[0]);
            }
            removed
        }
    }
}

fn remove_in(above: &mut Value, path: &[&str]) -> bool {
    if element(above, path[0]).is_none() {
        return false;
    }
    if path.len() == 1 {
        return as_object(above).shift_remove(path[0]).is_some();
    }
    match above {
        Value::Array(list) => {
            let at = path[0].parse::<usize>().expect("an element has this name");
            remove_in(&mut list[at], &path[1..])
        }
        above => remove_in(&mut above[path[0]], &path[1..]),
    }
}
