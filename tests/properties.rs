//! Random sequences of all operations, by several owners of several sessions, on every kind of store and on a naive model
//! (`tests/model`): what each operation returns is the same, and afterwards the store agrees with itself.
//!
//! A store may renew expiry and leases late, when a quarter of them has passed. So time steps over the moments in which it may
//! have renewed them or not, and owners that have been silent for too long are released when time passes.
//!
//! `PROPTEST_CASES=n` sets how many sequences there are for each store.

#![allow(missing_docs)]

mod common;
mod model;

use std::cell::Cell;
use std::time::Duration;

use common::{Fixture, Kind};
use mcp_state::{
    Claim, Clock, Delivery, DuplicatePolicy, Error, Interest, NewSession, Outgoing, OwnerKind, OwnerToken, RequestId,
    Session, WaitedFor,
};
use model::{Fault, Handle, Model, Outcome};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

const OPTIONS: &str = "lease_ms=30000&max_owners=4&max_pending=4&max_in_flight=4&max_broadcasts=3&max_owner_messages=4\
    &max_message_bytes=4K&max_owner_bytes=6000&max_topic_messages=3";
const IDS: [&str; 3] = ["a", "b", "c"];
const PRINCIPALS: [Option<&str>; 3] = [None, Some("alice"), Some("bob")];
const TTLS: [u64; 2] = [100_000, 36_000_000];
const MESSAGES: [&str; 5] = ["1", "{\"method\":\"m\"}", "{}", "", "{\"id\":1}"];
const TIMEOUTS: [u64; 4] = [0, 100, 1000, 60_000];
/// Longer than a sequence takes: Redis forgets the whole set of used keys by its own clock, which does not stand still.
const ONCE_TTLS: [u64; 4] = [50_000, 50_001, 60_000, 100_000];
const STEPS: [u64; 8] = [1, 50, 100, 400, 50_000, 100_000, 2_000_000, 40_000_000];
const KEYS: [&str; 12] = ["a", "a.b", "a.b.c", "a.0", "a.1", "a.01", "a.b.0", "b", "b.1.a", "a.b.c.d", "", "a..b"];
const VALUES: [&str; 13] = [
    "null",
    "1",
    "\"x\"",
    "[]",
    "{}",
    "[1,[2,{\"a\":3}]]",
    "{\"b\":{\"c\":[1]}}",
    "{\"0\":5,\"1\":[6]}",
    "[[7],{\"b\":1.5}]",
    "true",
    "{",
    "",
    " {\"b\" : 1} ",
];

/// One step; numbers pick from what there is when its turn comes.
#[derive(Clone, Debug)]
enum Op {
    Advance(usize),
    Create { id: usize, ttl: usize, principal: usize },
    Open { id: usize, principal: usize },
    Touch(usize),
    Destroy(usize),
    Attach { handle: usize, kind: OwnerKind },
    Own { owner: usize, via: Option<usize>, op: OwnerOp },
    Session { handle: usize, op: SessionOp },
    Collect,
    Publish { topic: usize, message: usize },
    Since { topic: usize, cursor: usize, max: usize },
    ConsumeOnce { key: usize, ttl: usize },
}

/// What only an owner does.
#[derive(Clone, Debug)]
enum OwnerOp {
    Renew,
    Detach,
    Enqueue { message: usize, context: usize, large: bool },
    Take(usize),
    Peek(usize),
    Acknowledge(u64),
    Register { id: usize, timeout: usize, long: bool },
    Send { message: usize, timeout: usize },
    Claim(usize),
    ClaimAny,
    ResolveTimeouts,
    PeekResponse(usize),
    Pending,
    CancelPending(usize),
    Wait { interest: u8, again: bool },
    Begin { id: usize, reject: bool },
    Finish(usize),
    IsCancelled(usize),
}

/// What anybody does who has the session.
#[derive(Clone, Debug)]
enum SessionOp {
    Get(usize),
    All,
    Set(usize, usize),
    Remove(usize),
    Take(usize),
    PutIfAbsent(usize, usize),
    CompareAndSet { key: usize, expected: Option<usize>, value: Option<usize> },
    Patch(Vec<(usize, Option<usize>)>),
    Broadcast { message: usize },
    NextRequestId,
    Deliver { id: usize, payload: usize },
    Pending,
    CancelRequest(usize),
    Stats,
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0..8_usize;
    prop_oneof![
        3 => (0..STEPS.len()).prop_map(Op::Advance),
        2 => (0..3_usize, 0..2_usize, 0..3_usize).prop_map(|(id, ttl, principal)| Op::Create { id, ttl, principal }),
        1 => (0..3_usize, 0..3_usize).prop_map(|(id, principal)| Op::Open { id, principal }),
        1 => n.clone().prop_map(Op::Touch),
        1 => n.clone().prop_map(Op::Destroy),
        4 => (n.clone(), kind()).prop_map(|(handle, kind)| Op::Attach { handle, kind }),
        30 => (n.clone(), prop::option::weighted(0.05, n.clone()), owner_op())
            .prop_map(|(owner, via, op)| Op::Own { owner, via, op }),
        16 => (n.clone(), session_op()).prop_map(|(handle, op)| Op::Session { handle, op }),
        1 => Just(Op::Collect),
        1 => (0..2_usize, 0..2_usize).prop_map(|(topic, message)| Op::Publish { topic, message }),
        1 => (0..2_usize, 0..6_usize, 0..4_usize).prop_map(|(topic, cursor, max)| Op::Since { topic, cursor, max }),
        1 => (0..2_usize, 0..ONCE_TTLS.len()).prop_map(|(key, ttl)| Op::ConsumeOnce { key, ttl }),
    ]
}

fn kind() -> impl Strategy<Value = OwnerKind> {
    prop_oneof![3 => Just(OwnerKind::Stream), 1 => Just(OwnerKind::Reply)]
}

fn owner_op() -> impl Strategy<Value = OwnerOp> {
    let (n, messages, timeouts) = (0..8_usize, 0..MESSAGES.len(), 0..TIMEOUTS.len());
    prop_oneof![
        1 => Just(OwnerOp::Renew),
        2 => Just(OwnerOp::Detach),
        4 => (messages.clone(), 0..2_usize, prop::bool::weighted(0.1))
            .prop_map(|(message, context, large)| OwnerOp::Enqueue { message, context, large }),
        2 => (0..5_usize).prop_map(OwnerOp::Take),
        2 => (0..5_usize).prop_map(OwnerOp::Peek),
        2 => prop_oneof![0..9_u64, Just(u64::MAX)].prop_map(OwnerOp::Acknowledge),
        2 => (n.clone(), timeouts.clone(), prop::bool::weighted(0.05))
            .prop_map(|(id, timeout, long)| OwnerOp::Register { id, timeout, long }),
        4 => (messages, timeouts).prop_map(|(message, timeout)| OwnerOp::Send { message, timeout }),
        3 => n.clone().prop_map(OwnerOp::Claim),
        2 => Just(OwnerOp::ClaimAny),
        1 => Just(OwnerOp::ResolveTimeouts),
        1 => n.clone().prop_map(OwnerOp::PeekResponse),
        1 => Just(OwnerOp::Pending),
        2 => n.prop_map(OwnerOp::CancelPending),
        4 => (1..8_u8, any::<bool>()).prop_map(|(interest, again)| OwnerOp::Wait { interest, again }),
        3 => (0..3_usize, any::<bool>()).prop_map(|(id, reject)| OwnerOp::Begin { id, reject }),
        2 => (0..3_usize).prop_map(OwnerOp::Finish),
        1 => (0..3_usize).prop_map(OwnerOp::IsCancelled),
    ]
}

fn session_op() -> impl Strategy<Value = SessionOp> {
    let (key, value) = (0..KEYS.len(), 0..VALUES.len());
    let patch = prop::collection::vec((key.clone(), prop::option::weighted(0.7, value.clone())), 0..6);
    let cas = (key.clone(), prop::option::of(value.clone()), prop::option::of(value.clone()));
    prop_oneof![
        3 => key.clone().prop_map(SessionOp::Get),
        1 => Just(SessionOp::All),
        5 => (key.clone(), value.clone()).prop_map(|(key, value)| SessionOp::Set(key, value)),
        2 => key.clone().prop_map(SessionOp::Remove),
        1 => key.clone().prop_map(SessionOp::Take),
        1 => (key, value).prop_map(|(key, value)| SessionOp::PutIfAbsent(key, value)),
        2 => cas.prop_map(|(key, expected, value)| SessionOp::CompareAndSet { key, expected, value }),
        3 => patch.prop_map(SessionOp::Patch),
        4 => (0..MESSAGES.len()).prop_map(|message| SessionOp::Broadcast { message }),
        1 => Just(SessionOp::NextRequestId),
        6 => (0..8_usize, 0..MESSAGES.len()).prop_map(|(id, payload)| SessionOp::Deliver { id, payload }),
        1 => Just(SessionOp::Pending),
        3 => (0..3_usize).prop_map(SessionOp::CancelRequest),
        2 => Just(SessionOp::Stats),
    ]
}

/// A store and the model at work.
struct Run<'s> {
    store: &'s Fixture,
    /// What the names of this sequence end with: the store has seen others before.
    suffix: String,
    model: Model,
    handles: Vec<(Session, Handle)>,
    owners: Vec<Attached>,
    /// Ids of requests to the client that occurred.
    ids: Vec<i64>,
}

struct Attached {
    token: OwnerToken,
    handle: usize,
    /// Where each interest waits on: the store's cursor and the model's.
    cursors: [(u64, u64); 8],
}

/// What the store did, as the model would say it.
fn outcome<T>(result: Result<T, Error>) -> Outcome<T> {
    result.map_err(Fault::from)
}

fn request_id(number: usize) -> RequestId {
    [RequestId::Int(1), RequestId::Str("1".into()), RequestId::Str("é".repeat(8))][number].clone()
}

fn interest(bits: u8) -> Interest {
    Interest { resolution: bits & 1 != 0, message: bits & 2 != 0, cancellation: bits & 4 != 0 }
}

fn is_key(key: &str) -> bool {
    !key.split('.').any(str::is_empty)
}

fn parse(json: &str) -> Outcome<Value> {
    serde_json::from_str(json).map_err(|_| Fault::Invalid)
}

fn read(json: String) -> Value {
    serde_json::from_str(&json).expect("the store returns JSON")
}

fn outgoing(messages: Vec<Outgoing>) -> Vec<(u64, String, String)> {
    messages.into_iter().map(|message| (message.sequence, message.message, message.context)).collect()
}

impl<'s> Run<'s> {
    fn new(store: &'s Fixture, number: u64) -> Self {
        // Two days later everything of the sequence before has expired.
        store.advance(2 * 24 * 3_600_000);
        let mut more = true;
        while more {
            more = store.engine.collect(1000).unwrap().more;
        }
        assert_eq!(store.engine.stats().unwrap().sessions, 0);
        let model = Model::new(store.clock.now(), store.engine.settings().clone());
        let mut run =
            Self { store, suffix: format!("-{number}"), model, handles: vec![], owners: vec![], ids: vec![-1, 0] };
        run.step(&Op::Create { id: 0, ttl: 0, principal: 0 });
        run.step(&Op::Attach { handle: 0, kind: OwnerKind::Stream });
        run
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Advance(step) => self.advance(STEPS[step]),
            Op::Create { id, ttl, principal } => {
                let (id, ttl, principal) = (self.name(id), TTLS[ttl], PRINCIPALS[principal]);
                let new =
                    NewSession { id: Some(id.clone()), ttl_ms: Some(ttl), principal: principal.map(str::to_owned) };
                let created = self.store.engine.create_session(new).unwrap();
                let expected = self.model.create(&id, ttl, principal);
                self.opened(created, expected);
            }
            Op::Open { id, principal } => {
                let (id, principal) = (self.name(id), PRINCIPALS[principal]);
                let opened = self.store.engine.open_session(&id, principal).unwrap();
                let expected = self.model.open(&id, principal);
                self.opened(opened, expected);
            }
            Op::Touch(handle) => {
                let (session, handle) = self.handle(handle);
                let expected = match self.model.on(&handle, |_, _, _| Ok(())) {
                    Err(Fault::NotFound) => Ok(false),
                    other => other.map(|()| true),
                };
                assert_eq!(outcome(session.touch()), expected);
            }
            Op::Destroy(handle) => {
                let (session, handle) = self.handle(handle);
                assert_eq!(outcome(session.destroy()), self.model.destroy(&handle));
            }
            Op::Attach { handle, kind } => {
                let index = handle % self.handles.len();
                let (session, handle) = self.handle(index);
                let attached = outcome(session.attach(kind, None));
                let token = attached.as_ref().ok().copied();
                let expected =
                    self.model.on(&handle, |session, settings, now| session.attach(settings, now, token, kind, 30_000));
                assert_eq!(attached.map(|_| ()), expected);
                if let Some(token) = token {
                    self.owners.push(Attached { token, handle: index, cursors: [(0, 0); 8] });
                }
            }
            Op::Own { owner, via, ref op } => {
                let owner = owner % self.owners.len();
                let handle = via.unwrap_or(self.owners[owner].handle);
                self.own(owner, handle, op);
            }
            Op::Session { handle, ref op } => self.session(handle, op),
            Op::Collect => {
                let collected = self.store.engine.collect(1000).unwrap();
                assert_eq!((collected.sessions, collected.owners), self.model.collect());
                assert!(!collected.more);
            }
            Op::Publish { topic, message } => {
                let (topic, message) = (self.name(topic), MESSAGES[message]);
                assert_eq!(self.store.engine.publish(&topic, message).unwrap(), self.model.publish(&topic, message));
            }
            Op::Since { topic, cursor, max } => {
                let (topic, cursor) = (self.name(topic), cursor as u64);
                assert_eq!(self.store.engine.cursor(&topic).unwrap(), self.model.cursor(&topic));
                let entries = self.store.engine.since(&topic, cursor, max).unwrap();
                assert_eq!((entries.messages, entries.cursor, entries.missed), self.model.since(&topic, cursor, max));
            }
            Op::ConsumeOnce { key, ttl } => {
                let (key, ttl) = (self.name(key), ONCE_TTLS[ttl]);
                assert_eq!(self.store.engine.consume_once(&key, ttl).unwrap(), self.model.consume_once(&key, ttl));
            }
        }
    }

    fn name(&self, number: usize) -> String {
        format!("{}{}", IDS[number], self.suffix)
    }

    fn handle(&self, number: usize) -> (Session, Handle) {
        self.handles[number % self.handles.len()].clone()
    }

    fn opened(&mut self, session: Option<Session>, expected: Option<Handle>) {
        assert_eq!(session.is_some(), expected.is_some());
        self.handles.extend(session.zip(expected));
    }

    fn id(&self, number: usize) -> i64 {
        // The newest first: they are the ones something can happen to.
        self.ids[self.ids.len() - 1 - number % self.ids.len()]
    }

    fn given(&mut self, handle: &Handle, id: i64) {
        assert!(self.model.on(handle, |session, _, _| Ok(session.gives(id))).unwrap(), "{id} was given before");
        self.ids.push(id);
    }

    /// Time passes, up to a moment at which it does not matter when exactly expiry and leases were renewed.
    fn advance(&mut self, by: u64) {
        self.store.advance(by);
        self.model.now += by;
        let mut quarter = 0;
        for session in self.model.sessions.values() {
            let is_open = |since: u64, span: u64, lag: u64| {
                let passed = self.model.now - since;
                passed <= span && passed > span - lag
            };
            if is_open(session.used, session.ttl, session.ttl / 4) {
                quarter = session.ttl / 4;
            }
            for owner in &session.owners {
                if is_open(owner.seen, session.longest_silence(), owner.lease / 4) {
                    quarter = quarter.max(owner.lease / 4);
                }
            }
        }
        if quarter > 0 {
            return self.advance(quarter);
        }
        self.release_the_silent();
    }

    /// Whoever attaches releases the dead.
    fn release_the_silent(&mut self) {
        let now = self.model.now;
        let with_dead = self.model.sessions.iter().filter(|(_, session)| {
            session.is_there(now) && session.owners.iter().any(|owner| session.is_dead(owner, now))
        });
        for id in with_dead.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            let session = self.store.engine.open_session_as_operator(&id).unwrap().expect("the model has it");
            let at = self.handles.iter().rposition(|(_, handle)| handle.id == id).expect("somebody made it");
            let token = session.attach(OwnerKind::Reply, None).unwrap();
            session.detach(&token).unwrap();
            let handle = self.handles[at].1.clone();
            let attach = |session: &mut model::Session, settings: &_, now| {
                session.attach(settings, now, Some(token), OwnerKind::Reply, 30_000)?;
                session.detach(token);
                Ok(())
            };
            self.model.on(&handle, attach).unwrap();
        }
    }

    fn own(&mut self, owner: usize, handle: usize, op: &OwnerOp) {
        let (session, handle) = self.handle(handle);
        let token = self.owners[owner].token;
        match *op {
            OwnerOp::Renew => {
                let expected = self.model.on(&handle, |session, _, now| session.renew(token, now));
                assert_eq!(outcome(session.renew(&token)), expected);
            }
            OwnerOp::Detach => {
                let expected = self.model.on(&handle, |session, _, _| Ok(session.detach(token)));
                assert_eq!(outcome(session.detach(&token)), expected);
            }
            OwnerOp::Enqueue { message, context, large } => {
                let message = if large { "1".repeat(2500 + 2500 * context) } else { MESSAGES[message].to_owned() };
                let context = ["", "context"][context];
                let expected = self
                    .model
                    .on(&handle, |session, settings, now| session.enqueue(settings, now, token, &message, context));
                assert_eq!(outcome(session.enqueue_outgoing(&token, &message, context)), expected);
            }
            OwnerOp::Take(max) => {
                let expected = self.model.on(&handle, |session, _, now| session.take(now, token, max));
                assert_eq!(outcome(session.take_outgoing(&token, max)).map(outgoing), expected);
            }
            OwnerOp::Peek(max) => {
                let expected = self.model.on(&handle, |session, _, now| session.peek(now, token, max));
                assert_eq!(outcome(session.peek_outgoing(&token, max)).map(outgoing), expected);
            }
            OwnerOp::Acknowledge(up_to) => {
                let expected = self.model.on(&handle, |session, _, now| session.acknowledge(now, token, up_to));
                assert_eq!(outcome(session.acknowledge(&token, up_to)), expected);
            }
            OwnerOp::Register { id, timeout, long } => {
                // Also the id that the session would give out next.
                let id = if id == 7 { self.id(0) + 1 } else { self.id(id) };
                let (timeout, method) = (TIMEOUTS[timeout], if long { "m".repeat(129) } else { "m".into() });
                let expected = self
                    .model
                    .on(&handle, |session, settings, now| session.register(settings, now, token, id, timeout, &method));
                let registered = outcome(session.register_pending(&token, id, timeout, &method));
                assert_eq!(registered, expected.map(|done| done.then_some(timeout)));
                self.ids.push(id);
            }
            OwnerOp::Send { message, timeout } => {
                let (message, timeout) = (MESSAGES[message], TIMEOUTS[timeout]);
                let sent = outcome(session.send_request(&token, message, "c", timeout));
                let request: Option<serde_json::Map<String, Value>> = serde_json::from_str(message)
                    .ok()
                    .filter(|object: &serde_json::Map<_, _>| !object.contains_key("id"));
                let Some(request) = request else { return assert_eq!(sent, Err(Fault::Invalid)) };
                let id = sent.as_ref().copied().unwrap_or(i64::MIN);
                let text =
                    message.replacen('{', &format!("{{\"id\":{id}{}", if request.is_empty() { "" } else { "," }), 1);
                let expected = self.model.on(&handle, |session, settings, now| {
                    let method = request.get("method").and_then(Value::as_str).unwrap_or("");
                    assert!(session.register(settings, now, token, id, timeout, method)?, "{id} is pending already");
                    session.enqueue(settings, now, token, &text, "c")
                });
                assert_eq!(sent.as_ref().map(|_| ()), expected.as_ref().map(|_| ()));
                if sent.is_ok() {
                    // It is registered by now: only that it is new remains to be seen.
                    self.model.on(&handle, |session, _, _| Ok(session.gives(id))).unwrap();
                    self.ids.push(id);
                }
            }
            OwnerOp::Claim(id) => {
                let id = self.id(id);
                let expected = self.model.on(&handle, |session, _, now| session.claim(now, token, id));
                assert_eq!(outcome(session.claim(&token, id)), expected, "claim({id})");
            }
            OwnerOp::ClaimAny => {
                let expected = self.model.on(&handle, |session, _, now| session.claim_any(now, token));
                let claimed = outcome(session.claim_any(&token));
                assert_eq!(claimed.map(|claimed| claimed.map(|resolved| (resolved.id, resolved.claim))), expected);
            }
            OwnerOp::ResolveTimeouts => {
                let expected = self.model.on(&handle, |session, _, now| session.resolve_timeouts(now, token));
                assert_eq!(outcome(session.resolve_timeouts(&token)), expected);
            }
            OwnerOp::PeekResponse(id) => {
                let id = self.id(id);
                let expected = self.model.on(&handle, |session, _, now| session.peek_response(now, token, id));
                assert_eq!(outcome(session.peek_response(&token, id)), expected);
            }
            OwnerOp::Pending => {
                let expected = self.model.on(&handle, |session, _, now| session.pending(now, Some(token)));
                assert_eq!(pending(&session, Some(&token)), expected);
            }
            OwnerOp::CancelPending(id) => {
                let id = self.id(id);
                let expected = self.model.on(&handle, |session, _, now| session.cancel_pending(now, token, id));
                assert_eq!(outcome(session.cancel_pending(&token, id)), expected);
            }
            OwnerOp::Wait { interest: bits, again } => {
                let (after, after_in_model) = if again { self.owners[owner].cursors[bits as usize] } else { (0, 0) };
                let expected =
                    self.model.on(&handle, |session, _, now| session.look(now, token, interest(bits), after_in_model));
                let waited = outcome(session.wait(&token, interest(bits), after, Duration::ZERO));
                let (waited, expected) = match (waited, expected) {
                    (Ok(waited), Ok(Some(newest))) => {
                        self.owners[owner].cursors[bits as usize] = (waited.cursor, newest);
                        (Ok(waited.outcome), Ok(WaitedFor::Ready))
                    }
                    (Ok(waited), Ok(None)) => (Ok(waited.outcome), Ok(WaitedFor::Deadline)),
                    (Ok(waited), Err(Fault::NotFound)) => (Ok(waited.outcome), Ok(WaitedFor::Destroyed)),
                    (waited, expected) => (waited.map(|waited| waited.outcome), expected.map(|_| WaitedFor::Ready)),
                };
                assert_eq!(waited, expected);
            }
            OwnerOp::Begin { id, reject } => {
                let policy = if reject { DuplicatePolicy::Reject } else { DuplicatePolicy::Isolate };
                let id = request_id(id);
                let expected =
                    self.model.on(&handle, |session, settings, now| session.begin(settings, now, token, &id, policy));
                assert_eq!(outcome(session.begin_request(&token, &id, policy)), expected);
            }
            OwnerOp::Finish(id) => {
                let id = request_id(id);
                let expected = self.model.on(&handle, |session, _, now| session.finish(now, token, &id));
                assert_eq!(outcome(session.finish_request(&token, &id)), expected);
            }
            OwnerOp::IsCancelled(id) => {
                let id = request_id(id);
                let expected = self.model.on(&handle, |session, _, now| session.is_cancelled(now, token, &id));
                assert_eq!(outcome(session.is_cancelled(&token, &id)), expected);
            }
        }
    }

    fn session(&mut self, handle: usize, op: &SessionOp) {
        let (session, handle) = self.handle(handle);
        let attributes = session.attributes();
        let valid = |key: &str| if is_key(key) { Ok(()) } else { Err(Fault::Invalid) };
        match *op {
            SessionOp::Get(key) => {
                let expected =
                    valid(KEYS[key]).and_then(|()| self.model.on(&handle, |session, _, _| Ok(session.get(KEYS[key]))));
                assert_eq!(outcome(attributes.get(KEYS[key])).map(|json| json.map(read)), expected);
            }
            SessionOp::All => {
                let expected = self.model.on(&handle, |session, _, _| Ok(session.all()));
                assert_eq!(outcome(attributes.all()).map(read), expected);
            }
            SessionOp::Set(key, value) => {
                let (key, json) = (KEYS[key], VALUES[value]);
                let expected =
                    valid(key).and_then(|()| self.model.on(&handle, |session, _, _| session.set_json(key, json)));
                assert_eq!(outcome(attributes.set(key, json)), expected);
            }
            SessionOp::Remove(key) => {
                let key = KEYS[key];
                let expected =
                    valid(key).and_then(|()| self.model.on(&handle, |session, _, _| Ok(session.remove(key))));
                assert_eq!(outcome(attributes.remove(key)), expected);
            }
            SessionOp::Take(key) => {
                let key = KEYS[key];
                let take = |session: &mut model::Session, _: &_, _| {
                    let value = session.get(key);
                    session.remove(key);
                    Ok(value)
                };
                let expected = valid(key).and_then(|()| self.model.on(&handle, take));
                assert_eq!(outcome(attributes.take(key)).map(|json| json.map(read)), expected);
            }
            SessionOp::PutIfAbsent(key, value) => {
                let (key, json) = (KEYS[key], VALUES[value]);
                let put = |session: &mut model::Session, _: &_, _| {
                    let value = parse(json)?;
                    let is_absent = session.value(key).is_none();
                    if is_absent {
                        session.set(key, value);
                    }
                    Ok(is_absent)
                };
                let expected = valid(key).and_then(|()| self.model.on(&handle, put));
                assert_eq!(outcome(attributes.put_if_absent(key, json)), expected);
            }
            SessionOp::CompareAndSet { key, expected, value } => {
                let (key, old, new) = (KEYS[key], expected.map(|at| VALUES[at]), value.map(|at| VALUES[at]));
                let compare = |session: &mut model::Session, _: &_, _| {
                    if !session.is(key, old.map(parse).transpose()?) {
                        return Ok(false);
                    }
                    match new {
                        Some(json) => session.set(key, parse(json)?),
                        None => {
                            session.remove(key);
                        }
                    }
                    Ok(true)
                };
                let expected = valid(key).and_then(|()| self.model.on(&handle, compare));
                assert_eq!(outcome(attributes.compare_and_set(key, old, new)), expected);
            }
            SessionOp::Patch(ref changes) => {
                let changes: Vec<_> =
                    changes.iter().map(|&(key, value)| (KEYS[key], value.map(|at| VALUES[at]))).collect();
                let patch = |session: &mut model::Session, _: &_, _| {
                    for &(key, json) in &changes {
                        match json {
                            Some(json) => session.set(key, parse(json)?),
                            None => {
                                session.remove(key);
                            }
                        }
                    }
                    Ok(())
                };
                let keys: Outcome<()> = changes.iter().try_for_each(|&(key, _)| valid(key));
                let expected = keys.and_then(|()| self.model.on(&handle, patch));
                assert_eq!(outcome(attributes.patch(changes.iter().copied())), expected);
            }
            SessionOp::Broadcast { message } => {
                let message = MESSAGES[message];
                let expected =
                    self.model.on(&handle, |session, settings, _| session.broadcast(settings, message, "all"));
                assert_eq!(outcome(session.enqueue_broadcast(message, "all")), expected);
            }
            SessionOp::NextRequestId => {
                let id = outcome(session.next_request_id());
                assert_eq!(id.as_ref().map(|_| ()), self.model.on(&handle, |_, _, _| Ok(())).as_ref().copied());
                if let Ok(id) = id {
                    self.given(&handle, id);
                }
            }
            SessionOp::Deliver { id, payload } => {
                let (id, payload) = (self.id(id), MESSAGES[payload]);
                let delivered = outcome(session.deliver_response(id, payload));
                let expected = self.model.on(&handle, |session, settings, now| {
                    let allowed = session.deliver(settings, now, id, payload)?;
                    if let Ok(Delivery::Late(reason)) = &delivered {
                        session.count_late(*reason);
                    }
                    Ok(allowed)
                });
                match (&delivered, &expected) {
                    (Ok(delivery), Ok(allowed)) => {
                        assert!(allowed.contains(delivery), "{id}: {delivery:?}, {allowed:?}");
                    }
                    _ => assert_eq!(delivered.map(|_| ()), expected.map(|_| ())),
                }
            }
            SessionOp::Pending => {
                let expected = self.model.on(&handle, |session, _, now| session.pending(now, None));
                assert_eq!(pending(&session, None), expected);
            }
            SessionOp::CancelRequest(id) => {
                let id = request_id(id);
                let expected = self.model.on(&handle, |session, _, _| Ok(session.cancel_request(&id)));
                assert_eq!(outcome(session.cancel_request(&id)), expected);
            }
            SessionOp::Stats => {
                let expected = self.model.on(&handle, |session, _, now| Ok((session.counts(now), session.clone())));
                let stats = outcome(session.stats());
                let counts = stats.as_ref().map(|stats| {
                    let messages = [stats.queued, stats.broadcasts, stats.message_bytes];
                    let there = [stats.age_ms, stats.owners, stats.exchanges, stats.pending, stats.in_flight];
                    [&there[..], &messages[..]].concat()
                });
                assert_eq!(counts, expected.as_ref().map(|(counts, _)| counts.to_vec()));
                if let (Ok(stats), Ok((_, session))) = (&stats, &expected) {
                    assert!(
                        stats.late.iter().all(|&(reason, count)| count == session.late(reason)),
                        "{:?}",
                        stats.late
                    );
                }
            }
        }
    }
}

fn pending(session: &Session, token: Option<&OwnerToken>) -> Outcome<Vec<(i64, Claim, String)>> {
    let pending = outcome(session.pending(token))?;
    Ok(pending.into_iter().map(|pending| (pending.id, pending.state, pending.method)).collect())
}

/// Each store is opened once: a store that has seen much is what a server has.
fn a_store_does_what_the_model_does(kind: Kind, cases: u32) {
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |text| text.parse().expect("a number of cases"));
    Fixture::run(kind, OPTIONS, |store| sequences(&store, cases));
}

fn sequences(store: &Fixture, cases: u32) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let (sequences, operations) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&prop::collection::vec(op(), 1..80), |ops| {
        sequences.set(sequences.get() + 1);
        operations.set(operations.get() + ops.len());
        let mut run = Run::new(store, sequences.get());
        for op in &ops {
            run.step(op);
        }
        assert_eq!(store.engine.contradictions().unwrap(), Vec::<String>::new());
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    println!("{} operations in {} sequences on {:?} as in the model", operations.get(), sequences.get(), store.kind);
}

#[test]
fn memory_does_what_the_model_does() {
    a_store_does_what_the_model_does(Kind::Memory, 250);
}

#[test]
fn lmdb_does_what_the_model_does() {
    a_store_does_what_the_model_does(Kind::Lmdb, 100);
}

#[test]
fn lmdb_that_writes_through_its_map_does_what_the_model_does() {
    a_store_does_what_the_model_does(Kind::WriteMap, 60);
}

#[test]
fn redis_does_what_the_model_does() {
    a_store_does_what_the_model_does(Kind::Redis, 60);
}
