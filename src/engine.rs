//! The operations of design section 4: the state machine, a store, its bell and its clock behind one interface.
//!
//! Every operation runs as one transaction. When its outcome depends on whether a process lives, it says so and is run again
//! with what was seen; processes are looked at outside of transactions.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bell::{Counter, Ring, Slept};
use crate::clock::{Clock, Millis};
use crate::dsn::{Dsn, MAX_SPAN_MS};
use crate::error::{Error, InvalidArgument, LimitExceeded};
use crate::ids::{Digest, OwnerToken, RequestId, SessionId, random_bytes};
use crate::process::{Liveness, Process};
use crate::session::{
    self, AttributeKey, Begun, Cancellation, Census, Change, Claim, Delivery, Detached, DuplicatePolicy, Handle,
    Inspection, Interest, LateReason, NewRecord, Outgoing, OwnerKind, PendingInfo, Readiness, Record, Refusal,
    Registered, RequestCancellation, RequestMessage, Resolved, Step, StoreView, Transition,
};
use crate::settings::{Limit, OnFull, Settings};
use crate::store::{self, Access, BusEntries, FoundStore, Store};

/// The kind of the records that sessions are.
type Kind = session::Session;

/// An open store.
#[derive(Clone)]
pub struct Engine {
    store: Store,
    settings: Arc<Settings>,
    dsn: Arc<str>,
}

/// What a new session is made with.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Its id; a random UUID when there is none.
    pub id: Option<String>,
    /// Its idle time in milliseconds; the store's `ttl_ms` when there is none.
    pub ttl_ms: Option<Millis>,
    /// Whom it belongs to; anybody who knows its id when there is none.
    pub principal: Option<String>,
}

/// A session as one process holds it. Every operation fails with [`Error::SessionNotFound`] once the session has ended.
#[derive(Clone)]
pub struct Session {
    engine: Engine,
    key: Digest,
    handle: Handle,
    /// Whether this is the waiting room, and how many may wait in it.
    places: Option<u64>,
}

/// What `collect` did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Expired sessions that were removed.
    pub sessions: u64,
    /// Dead owners that were released.
    pub owners: u64,
    /// Whether there is more to collect.
    pub more: bool,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// Something of the interest is there.
    Ready,
    /// The time was over.
    Deadline,
    /// The session has ended.
    Destroyed,
    /// A signal arrived.
    Interrupted,
}

/// How a wait ended, and from where to wait on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// How it ended.
    pub outcome: WaitedFor,
    /// What to give as `after` to wait for what comes later of the same interest; [`Session::wait`]'s `after` unless it is
    /// ready.
    pub cursor: u64,
}

/// What a session holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStats {
    /// The session's id.
    pub id: String,
    /// Milliseconds since it was created.
    pub age_ms: Millis,
    /// Milliseconds since it was last changed.
    pub idle_ms: Millis,
    /// Its idle time limit in milliseconds.
    pub ttl_ms: Millis,
    /// Owners attached now.
    pub owners: u64,
    /// Owners attached so far.
    pub exchanges: u64,
    /// Pending requests, resolved ones that nobody claimed included.
    pub pending: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Messages queued for owners.
    pub queued: u64,
    /// Broadcasts nobody has taken.
    pub broadcasts: u64,
    /// Bytes of messages and responses.
    pub message_bytes: u64,
    /// Bytes of attributes.
    pub attribute_bytes: u64,
    /// Late responses by reason.
    pub late: [(&'static str, u64); LateReason::COUNT],
}

/// What a store holds and has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStats {
    /// Sessions, expired ones that nobody collected included.
    pub sessions: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// The most bytes that may be in use.
    pub limit_bytes: u64,
    /// Exchanges that wait for their clients, where their number is limited.
    pub waiting: u64,
    /// How many may: as whoever waited last was told, else as these settings say.
    pub max_waiting: u64,
    /// Counters by name, since the store's files were made.
    pub counters: Vec<(&'static str, u64)>,
    /// The limits in force, by name.
    pub limits: Vec<(&'static str, u64)>,
    /// Where the store is.
    pub place: Vec<(&'static str, String)>,
}

/// The operations on attributes, see [`Session::attributes`].
#[derive(Clone, Copy)]
pub struct Attributes<'s>(&'s Session);

impl Engine {
    /// Opens the store that `dsn` names, and makes it if it is not there. Engines of one process share what they have open.
    pub fn open(dsn: &str) -> Result<Self, Error> {
        Self::open_over(dsn, Settings::default())
    }

    /// The same with `settings` in place of the defaults; the DSN's options go over them.
    pub fn open_over(dsn: &str, settings: Settings) -> Result<Self, Error> {
        Self::open_with(dsn, settings, None)
    }

    /// Opens a store that is there already, and makes nothing: for tools that look at the stores of others.
    pub fn open_existing(dsn: &str) -> Result<Self, Error> {
        let parsed = Dsn::parse(dsn)?;
        store::require(&parsed)?;
        let mut settings = Settings::default();
        settings.is_look = true;
        Self::open_with(dsn, settings, None)
    }

    /// The stores of this machine that this user may see, by the places where shared-memory stores are.
    pub fn find_stores() -> Vec<FoundStore> {
        store::find()
    }

    /// The same with a clock of the caller's: all users of the store must share it.
    pub fn with_clock(dsn: &str, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::open_with(dsn, settings, Some(clock))
    }

    fn open_with(dsn: &str, settings: Settings, clock: Option<Arc<dyn Clock>>) -> Result<Self, Error> {
        let parsed = Dsn::parse_over(dsn, settings)?;
        // Keeps the note in whatever this is linked into.
        std::hint::black_box(&crate::identity::NOTE);
        let store = store::open(&parsed, clock)?;
        Ok(Self { store, settings: Arc::new(parsed.settings), dsn: crate::dsn::shown(dsn).into() })
    }

    /// An engine over a store that is open already.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn over(store: Store, settings: Settings, dsn: &str) -> Self {
        Self { store, settings: Arc::new(settings), dsn: dsn.into() }
    }

    /// Empties the store that `dsn` names, whatever state its files are in. Processes that use it go on with the empty store;
    /// their sessions are gone.
    pub fn reset(dsn: &str) -> Result<(), Error> {
        store::reset(&Dsn::parse(dsn)?)
    }

    /// The DSN the store was opened with, without its password.
    pub fn dsn(&self) -> &str {
        &self.dsn
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long a question waits for its answer, in milliseconds, when its caller names `given` or no time: then it is the
    /// store's `request_timeout_ms`. Each boundary asks this for its callers.
    pub fn question_timeout_ms(&self, given: Option<Millis>) -> Millis {
        given.unwrap_or(self.settings.request_timeout_ms)
    }

    /// Makes sure that the store is still the one its name stands for: to be called at the start of each request.
    pub fn refresh(&self) -> Result<(), Error> {
        Ok(self.store.refresh()?)
    }

    /// Makes a session; nothing when its id is taken. At a limit expired ones go first; then, at the store's, an idle one gives
    /// way, or the new one is refused ([`OnFull`]).
    pub fn create_session(&self, new: NewSession) -> Result<Option<Session>, Error> {
        let id = new.id.map(SessionId::new).transpose()?.unwrap_or_else(SessionId::random);
        let ttl = check_span("session ttl", new.ttl_ms.unwrap_or(self.settings.ttl_ms), 1)?;
        let record = NewRecord {
            incarnation: u64::from_le_bytes(random_bytes()),
            first_request: i64::from(u32::from_le_bytes(random_bytes()) >> 2) + 1,
            ttl,
            principal: principal_digest(new.principal.as_deref())?,
            id,
        };
        let key = Digest::of(record.id.as_str().as_bytes());
        let mut tries = 0;
        let created = loop {
            let created =
                self.run(key, Access::Create(record.principal), |session, store| session.create(&record, store));
            match created {
                Err(Error::Limit(limit)) if tries < EVICTION_TRIES && self.make_room(limit.limit)? => tries += 1,
                other => break other?,
            }
        };
        let handle = Handle { id: record.id, incarnation: record.incarnation, principal: record.principal };
        Ok(created.then(|| Session { engine: self.clone(), key, handle, places: None }))
    }

    /// The session with this id, if it is there and belongs to nobody or to `principal` (G12).
    pub fn open_session(&self, id: &str, principal: Option<&str>) -> Result<Option<Session>, Error> {
        let id = SessionId::new(id)?;
        let principal = principal_digest(principal)?;
        let key = Digest::of(id.as_str().as_bytes());
        let incarnation = self.run(key, Access::Read, |session, _| session.open(&id, principal))?;
        Ok(incarnation.map(|incarnation| Session {
            engine: self.clone(),
            key,
            handle: Handle { id, incarnation, principal },
            places: None,
        }))
    }

    /// The session with this id whoever it belongs to: for whoever operates the store, never for a client.
    pub fn open_session_as_operator(&self, id: &str) -> Result<Option<Session>, Error> {
        let id = SessionId::new(id)?;
        let key = Digest::of(id.as_str().as_bytes());
        let found = self.run(key, Access::Read, |session, _| session.open_as_operator(&id))?;
        Ok(found.map(|(incarnation, principal)| Session {
            engine: self.clone(),
            key,
            handle: Handle { id, incarnation, principal },
            places: None,
        }))
    }

    /// The waiting room: each exchange that waits for its client attaches to it, and detaches afterwards. It is refused when `places`
    /// wait already, by default the limit `max_waiting`. Nothing where neither is given: then nobody counts. A place ends as an
    /// owner does, but a dead process gives it back at once. Nothing else is done with the room.
    pub fn waiting_room(&self, places: Option<u64>) -> Result<Option<Session>, Error> {
        let limit = self.settings.limit(Limit::Waiting);
        let places = match places {
            None if limit == Limit::Waiting.default_value() => return Ok(None),
            None => limit,
            Some(0) => return Err(InvalidArgument::new("max_waiting", 0, "it must be greater than 0").into()),
            Some(places) => places,
        };
        let (engine, key, handle) = (self.clone(), Record::room_key(), Handle::of_room());
        Ok(Some(Session { engine, key, handle, places: Some(places) }))
    }

    /// Removes at most `limit` expired sessions and releases dead owners on the way (G11).
    pub fn collect(&self, limit: usize) -> Result<Collected, Error> {
        self.store.maintain()?;
        let mut collected = self.collect_expired(limit)?;
        collected.more |= self.store.collect_leftovers(limit)?;
        Ok(collected)
    }

    fn collect_expired(&self, limit: usize) -> Result<Collected, Error> {
        let mut collected = Collected::default();
        for settled in [false, true] {
            let room = limit.saturating_sub(collected.sessions as usize);
            let due = self.store.due::<Kind>(settled, self.store.now(), room.saturating_add(1))?;
            collected.more |= due.len() > room;
            for (_, key) in due.into_iter().take(room) {
                let mut owners = 0;
                let ended = self.run(key, Access::Write, |session, _| {
                    let ended = session.collect()?;
                    owners = session.released();
                    Ok(ended)
                })?;
                collected.owners += owners;
                if ended {
                    collected.sessions += 1;
                    self.store.count(Counter::SessionsExpired, 1);
                }
            }
        }
        Ok(collected)
    }

    /// What the store holds and has counted.
    pub fn stats(&self) -> Result<StoreStats, Error> {
        let usage = self.store.usage()?;
        let (taken, places) = self.run(Record::room_key(), Access::Read, |room, _| room.room())?;
        let now = self.store.now();
        let waits = |(process, until): &(Process, Millis)| match process.liveness() {
            Liveness::Alive => true,
            Liveness::Dead => false,
            Liveness::Unknown => *until > now,
        };
        let waiting = taken.iter().filter(|place| waits(place)).count();
        Ok(StoreStats {
            waiting: waiting as u64,
            max_waiting: places.unwrap_or_else(|| self.settings.limit(Limit::Waiting)),
            sessions: usage.sessions,
            used_bytes: usage.used_bytes,
            limit_bytes: usage.limit_bytes,
            counters: self.store.counted()?,
            limits: Limit::ALL.iter().map(|&limit| (limit.name(), self.settings.limit(limit))).collect(),
            place: self.store.describe(),
        })
    }

    /// Appends a message to a topic and wakes its listeners. Its number: numbers of a topic rise by one.
    pub fn publish(&self, topic: &str, message: &str) -> Result<u64, Error> {
        let topic = topic_digest(topic)?;
        if message.is_empty() {
            return Err(InvalidArgument::new("message", message, "it is empty").into());
        }
        let (maximum, actual) = (self.settings.limit(Limit::MessageBytes), message.len() as u64);
        if actual > maximum {
            return Err(LimitExceeded { limit: Limit::MessageBytes, maximum, actual }.into());
        }
        self.store.publish(topic, message)
    }

    /// The number of a topic's newest message, 0 when there is none.
    pub fn cursor(&self, topic: &str) -> Result<u64, Error> {
        Ok(self.store.cursor(topic_digest(topic)?)?)
    }

    /// At most `max` messages of a topic after `cursor`, and how many were dropped before they were seen.
    pub fn since(&self, topic: &str, cursor: u64, max: usize) -> Result<BusEntries, Error> {
        Ok(self.store.since(topic_digest(topic)?, cursor, max)?)
    }

    /// Waits for a message of a topic after `cursor`: one slice of at most a second, and at most `timeout`. Whether there is one.
    pub fn wait_since(&self, topic: &str, cursor: u64, timeout: Duration) -> Result<bool, Error> {
        let topic = topic_digest(topic)?;
        let end = Deadline::after(timeout.min(crate::bell::SLICE));
        loop {
            let ear = self.store.listen(Ring::Record(topic))?;
            let newest = self.store.cursor(topic)?;
            // A topic that is behind the cursor has begun anew.
            if newest > cursor || (0 < newest && newest < cursor) {
                return Ok(true);
            }
            let left = end.left();
            if left.is_zero() || ear.sleep(left) == Slept::Interrupted {
                return Ok(false);
            }
        }
    }

    /// Uses a key. True the first time within `ttl_ms`, false afterwards.
    pub fn consume_once(&self, key: &str, ttl_ms: Millis) -> Result<bool, Error> {
        if key.is_empty() {
            return Err(InvalidArgument::new("key", key, "it is empty").into());
        }
        self.store.consume_once(Digest::of(key.as_bytes()), check_span("ttl", ttl_ms, 1)?)
    }

    /// Ids of the sessions there are, in no particular order: those after `after`, at most `max`. For the command line.
    pub fn sessions(&self, after: Option<&str>, max: usize) -> Result<Vec<SessionStats>, Error> {
        let after = after.map(|id| Digest::of(id.as_bytes()));
        let now = self.store.now();
        Ok(self.store.records::<Kind>(after, max)?.into_iter().map(|(_, record)| record.stats(now)).collect())
    }

    /// What one session holds at one moment, whoever it belongs to and expired or not; nothing when there is none. Looking
    /// changes nothing and waits for no writer. For the command line.
    pub fn inspect(&self, id: &str) -> Result<Option<(SessionStats, Inspection)>, Error> {
        let id = SessionId::new(id)?;
        let (key, now) = (Digest::of(id.as_str().as_bytes()), self.store.now());
        self.run(key, Access::Read, |session, _| {
            let seen = session.inspect(id.as_str())?;
            Ok(seen.map(|seen| (session.seen().stats(now), seen)))
        })
    }

    /// What in the store contradicts itself: nothing, whatever was killed when (G8). Reads everything, in one snapshot.
    pub fn contradictions(&self) -> Result<Vec<String>, Error> {
        Ok(self.store.contradictions()?)
    }

    /// Lets sessions go so that a new one fits into `limit`: expired ones; else, for the store's limit, one that is idle. Whether
    /// any went.
    fn make_room(&self, limit: Limit) -> Result<bool, Error> {
        if !matches!(limit, Limit::Sessions | Limit::PrincipalSessions) {
            return Ok(false);
        }
        for _ in 0..EVICTION_TRIES {
            let collected = self.collect_expired(EXPIRED_AT_ONCE)?;
            if collected.sessions > 0 {
                return Ok(true);
            }
            if !collected.more {
                break;
            }
        }
        if limit == Limit::PrincipalSessions || self.settings.on_full == OnFull::Reject {
            return Ok(false);
        }
        self.evict()
    }

    /// Lets the session go that has been idle for the longest, first those that never made a second request. While these hold
    /// more than half of the places, they are a flood: it gives way sooner, and no other session gives way to it. Whether one
    /// went.
    fn evict(&self) -> Result<bool, Error> {
        let half = (self.settings.limit(Limit::Sessions) / 2) as usize;
        let flooded = self.store.due::<Kind>(false, Millis::MAX, half.saturating_add(1))?.len() > half;
        // The first look puts sessions that were active since where they belong in the index; the second finds the right one.
        let (looks, idle): (&[bool], _) =
            if flooded { (&[false, false], FLOOD_IDLE_MS) } else { (&[false, false, true, true], EVICTABLE_IDLE_MS) };
        for &settled in looks {
            for (_, key) in self.store.due::<Kind>(settled, Millis::MAX, EVICTION_CANDIDATES)? {
                // Few are changed by being asked: writers are not kept out for those that are not.
                if self.run(key, Access::Read, |session, _| session.evict(idle))? {
                    self.store.count(Counter::SessionsEvicted, 1);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Runs an operation of which nothing is foreseen.
    fn run<T>(
        &self,
        key: Digest,
        access: Access,
        operation: impl FnMut(&mut Transition<'_>, StoreView) -> Step<T>,
    ) -> Result<T, Error> {
        self.run_knowing(key, access, Census::default(), operation)
    }

    /// Runs an operation until it knows of all processes it asks about. What asks is about to change something: it goes on as a
    /// writer.
    fn run_knowing<T>(
        &self,
        key: Digest,
        mut access: Access,
        mut census: Census,
        mut operation: impl FnMut(&mut Transition<'_>, StoreView) -> Step<T>,
    ) -> Result<T, Error> {
        loop {
            let mut outcome = None;
            let run = self.store.transact::<Kind>(key, access, &census, &mut |session, store| {
                outcome = Some(operation(session, store)?);
                Ok(())
            });
            match (run, outcome) {
                (Ok(()), Some(outcome)) => return Ok(outcome),
                (Ok(()), None) => unreachable!("a store runs the operation it was given"),
                (Err(Refusal::Error(error)), _) => return Err(error),
                (Err(Refusal::Unsure(processes)), _) => {
                    for process in processes {
                        if census.of(&process).is_none() {
                            census.note(process, process.liveness());
                        }
                    }
                    if access == Access::Read {
                        access = Access::Write;
                    }
                }
            }
        }
    }
}

/// The end of a wait, by the monotonic clock of this process.
struct Deadline(Option<Instant>);

impl Deadline {
    /// Never, when it is too far away for the clock.
    fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    fn left(&self) -> Duration {
        self.0.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }
}

/// How long a session must have been idle before it gives way.
const EVICTABLE_IDLE_MS: Millis = 60_000;
/// The same for one that never made a second request, while these hold more than half of the places.
const FLOOD_IDLE_MS: Millis = 5_000;
/// How many sessions are asked to give way in each of up to four looks before a new one is refused.
const EVICTION_CANDIDATES: usize = 1024;
/// How many expired sessions make room for a new one.
const EXPIRED_AT_ONCE: usize = 16;
/// How often the place that was made may be taken by somebody else.
const EVICTION_TRIES: usize = 16;
/// The longest name of a topic, in bytes.
const MAX_TOPIC: usize = 255;
/// The longest name of a principal, in bytes.
const MAX_PRINCIPAL: usize = 4096;

fn principal_digest(principal: Option<&str>) -> Result<Option<Digest>, InvalidArgument> {
    match principal {
        None => Ok(None),
        Some(name) if name.is_empty() || name.len() > MAX_PRINCIPAL => {
            Err(InvalidArgument::new("principal", name, format!("it must be 1 to {MAX_PRINCIPAL} bytes long")))
        }
        Some(name) => Ok(Some(Digest::of(name.as_bytes()))),
    }
}

fn topic_digest(topic: &str) -> Result<Digest, InvalidArgument> {
    if (1..=MAX_TOPIC).contains(&topic.len()) {
        Ok(Digest::of(topic.as_bytes()))
    } else {
        Err(InvalidArgument::new("topic", topic, format!("it must be 1 to {MAX_TOPIC} bytes long")))
    }
}

fn check_span(what: &'static str, span: Millis, least: Millis) -> Result<Millis, InvalidArgument> {
    if (least..=MAX_SPAN_MS).contains(&span) {
        Ok(span)
    } else {
        Err(InvalidArgument::new(what, span, format!("it must be {least} to {MAX_SPAN_MS} milliseconds")))
    }
}

impl Session {
    /// The session's id.
    pub fn id(&self) -> &str {
        self.handle.id.as_str()
    }

    /// The store the session is in.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Renews the session's expiry. Whether it is still there.
    pub fn touch(&self) -> Result<bool, Error> {
        there(self.write(|session| session.touch()))
    }

    /// Ends the session for good (G7). Whether it was still there.
    pub fn destroy(&self) -> Result<bool, Error> {
        if self.places.is_some() {
            return Ok(false); // It is no session.
        }
        let ended = there(self.write(|session| session.destroy()))?;
        if ended {
            self.engine.store.count(Counter::SessionsDestroyed, 1);
        }
        Ok(ended)
    }

    /// What the session holds.
    pub fn stats(&self) -> Result<SessionStats, Error> {
        let now = self.engine.store.now();
        self.read(|session| Ok(session.seen().stats(now)))
    }

    /// Adds an owner: the exchange that is being served by this process. Without a `lease_ms` it has the store's.
    pub fn attach(&self, kind: OwnerKind, lease_ms: Option<Millis>) -> Result<OwnerToken, Error> {
        let lease = check_span("lease", lease_ms.unwrap_or(self.engine.settings.lease_ms), 1)?;
        let (token, process) = (OwnerToken::random(), Process::current());
        if let Some(places) = self.places {
            let entered =
                self.engine.run(self.key, Access::Write, |room, _| room.enter_room(token, lease, process, places));
            if matches!(&entered, Err(Error::Limit(_))) {
                self.engine.store.count(Counter::WaitingRefused, 1);
            }
            return entered.map(|()| token);
        }
        self.write(|session| session.attach(token, kind, lease, process))?;
        Ok(token)
    }

    /// Renews the owner's lease, as each of its operations does.
    pub fn renew(&self, owner: &OwnerToken) -> Result<(), Error> {
        self.write(|session| session.renew(owner))
    }

    /// Ends the owner; nothing when it has ended already.
    pub fn detach(&self, owner: &OwnerToken) -> Result<Option<Detached>, Error> {
        self.write(|session| session.detach(owner))
    }

    /// The session's attributes.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes(self)
    }

    /// Queues a message for an owner. Its sequence number, or a limit.
    pub fn enqueue_outgoing(&self, owner: &OwnerToken, message: &str, context: &str) -> Result<u64, Error> {
        self.write(|session| session.enqueue_outgoing(owner, message, context))
    }

    /// The owner's next messages, at most `max`, removed: at most once.
    pub fn take_outgoing(&self, owner: &OwnerToken, max: usize) -> Result<Vec<Outgoing>, Error> {
        self.read_unless(|seen| seen.foresees_message(owner), |session| session.take_outgoing(owner, max))
    }

    /// The owner's next messages, at most `max`; with [`Session::acknowledge`], at least once.
    pub fn peek_outgoing(&self, owner: &OwnerToken, max: usize) -> Result<Vec<Outgoing>, Error> {
        self.read(|session| session.peek_outgoing(owner, max))
    }

    /// Removes the owner's messages up to and with `up_to`. How many.
    pub fn acknowledge(&self, owner: &OwnerToken, up_to: u64) -> Result<u64, Error> {
        self.write(|session| session.acknowledge(owner, up_to))
    }

    /// Queues a message for whichever stream owner takes it first.
    pub fn enqueue_broadcast(&self, message: &str, context: &str) -> Result<u64, Error> {
        self.write(|session| session.enqueue_broadcast(message, context))
    }

    /// An integer no other request of this session has (G5).
    pub fn next_request_id(&self) -> Result<i64, Error> {
        self.write(|session| session.next_request_id())
    }

    /// Registers a request that waits for its response: the milliseconds it has, or nothing when the id is taken.
    pub fn register_pending(
        &self,
        owner: &OwnerToken,
        id: i64,
        timeout_ms: Millis,
        method: &str,
    ) -> Result<Option<Millis>, Error> {
        let timeout = check_span("timeout", timeout_ms, 0)?;
        let registered = self.write(|session| session.register_pending(owner, id, timeout, method))?;
        Ok(matches!(registered, Registered::Until(_)).then_some(timeout))
    }

    /// Gives a JSON-RPC request an id, registers it and queues it, all at once. The id.
    pub fn send_request(
        &self,
        owner: &OwnerToken,
        message: &str,
        context: &str,
        timeout_ms: Millis,
    ) -> Result<i64, Error> {
        let timeout = check_span("timeout", timeout_ms, 0)?;
        let request = RequestMessage::new(message)?;
        self.write(|session| session.send_request(owner, &request, context, timeout))
    }

    /// Keeps the response for the owner of request `id` and wakes it, or discards it (G4).
    pub fn deliver_response(&self, id: i64, payload: &str) -> Result<Delivery, Error> {
        // Whether the owner's process lives is found out before writers are kept out.
        let (mut process, mut census) = (None, Census::default());
        self.engine.store.recall::<Kind>(self.key, &mut |seen| process = seen.foresees_delivery(id));
        let access = process.map_or(Access::Read, |process| {
            census.note(process, process.liveness());
            Access::Write
        });
        self.run_knowing(access, census, |session| session.deliver_response(id, payload))
    }

    /// What became of the owner's request; anything but waiting removes it (G2, G3).
    pub fn claim(&self, owner: &OwnerToken, id: i64) -> Result<Claim, Error> {
        self.read_unless(|seen| seen.foresees_end(owner, Some(id)), |session| session.claim(owner, id))
    }

    /// The owner's next request that ended, removed.
    pub fn claim_any(&self, owner: &OwnerToken) -> Result<Option<Resolved>, Error> {
        self.read_unless(|seen| seen.foresees_end(owner, None), |session| session.claim_any(owner))
    }

    /// The ids of the owner's requests whose deadline passed, removed.
    pub fn resolve_timeouts(&self, owner: &OwnerToken) -> Result<Vec<i64>, Error> {
        self.read(|session| session.resolve_timeouts(owner))
    }

    /// Cancels the owner's request: a response that comes now is late.
    pub fn cancel_pending(&self, owner: &OwnerToken, id: i64) -> Result<Cancellation, Error> {
        self.write(|session| session.cancel_pending(owner, id))
    }

    /// The owner's pending requests, or all of the session.
    pub fn pending(&self, owner: Option<&OwnerToken>) -> Result<Vec<PendingInfo>, Error> {
        self.read(|session| session.pending(owner))
    }

    /// The answer to the owner's request, without claiming it.
    pub fn peek_response(&self, owner: &OwnerToken, id: i64) -> Result<Option<String>, Error> {
        self.read(|session| session.peek_response(owner, id))
    }

    /// Notes that the owner processes a client's request. False: one with this id is in flight, and the policy is to reject.
    pub fn begin_request(&self, owner: &OwnerToken, id: &RequestId, policy: DuplicatePolicy) -> Result<bool, Error> {
        let begun = self.write(|session| session.begin_request(owner, id, policy))?;
        Ok(begun == Begun::Begun)
    }

    /// Notes that the owner is done with a request. Whether the client had cancelled it; nothing if it was not in flight.
    pub fn finish_request(&self, owner: &OwnerToken, id: &RequestId) -> Result<Option<bool>, Error> {
        self.write(|session| session.finish_request(owner, id))
    }

    /// Whether the client cancelled this request of the owner.
    pub fn is_cancelled(&self, owner: &OwnerToken, id: &RequestId) -> Result<bool, Error> {
        self.read(|session| session.is_cancelled(owner, id))
    }

    /// Marks the one request in flight with this id as cancelled and wakes its owner.
    pub fn cancel_request(&self, id: &RequestId) -> Result<RequestCancellation, Error> {
        self.read(|session| session.cancel_request(id))
    }

    /// Waits until something of `interest` newer than `after` is there, at most `timeout`: in slices, after each of which the
    /// store and the owner's lease are seen to (G9). `after` is 0 or the cursor of an earlier wait for the same interest. Fails
    /// with [`Error::OwnerExpired`] when the owner has been released.
    pub fn wait(&self, owner: &OwnerToken, interest: Interest, after: u64, timeout: Duration) -> Result<Waited, Error> {
        let end = Deadline::after(timeout);
        loop {
            let waited = self.wait_slice(owner, interest, after, end.left())?;
            if waited.outcome != WaitedFor::Deadline || end.left().is_zero() {
                return Ok(waited);
            }
        }
    }

    /// One slice of [`Session::wait`]: at most a second by this process's clock, whatever the store's does, for callers with
    /// something to do between slices.
    pub fn wait_slice(
        &self,
        owner: &OwnerToken,
        interest: Interest,
        after: u64,
        timeout: Duration,
    ) -> Result<Waited, Error> {
        let store = &self.engine.store;
        let end = Deadline::after(timeout.min(crate::bell::SLICE));
        loop {
            let ear = store.listen(Ring::Owner(self.key, *owner))?;
            let deadline = match self.look(owner, interest, after)? {
                ControlFlow::Break(waited) => return Ok(waited),
                ControlFlow::Continue(deadline) => deadline,
            };
            let left = end.left();
            if left.is_zero() {
                return Ok(Waited { outcome: WaitedFor::Deadline, cursor: after });
            }
            // The store's clock says what is late; it may be set meanwhile, so that it never says how long to sleep at most.
            let due =
                deadline.filter(|_| interest.resolution).map(|deadline| deadline.saturating_sub(store.now()).max(1));
            let sleep = due.map_or(left, |due| left.min(Duration::from_millis(due)));
            store.count(Counter::Waits, 1);
            match ear.sleep(sleep) {
                // Mostly what it waits for is there: it looks before it listens again.
                Slept::Rung => {
                    if let ControlFlow::Break(waited) = self.look(owner, interest, after)? {
                        return Ok(waited);
                    }
                }
                Slept::TimedOut => {}
                Slept::Interrupted => return Ok(Waited { outcome: WaitedFor::Interrupted, cursor: after }),
            }
        }
    }

    /// How a wait ends now; or until when the owner's next request waits for its response.
    fn look(
        &self,
        owner: &OwnerToken,
        interest: Interest,
        after: u64,
    ) -> Result<ControlFlow<Waited, Option<Millis>>, Error> {
        match self.read(|session| session.look(owner, interest, after)) {
            Ok(Readiness::Ready(cursor)) => Ok(ControlFlow::Break(Waited { outcome: WaitedFor::Ready, cursor })),
            Ok(Readiness::NotYet(deadline)) => Ok(ControlFlow::Continue(deadline)),
            Err(Error::SessionNotFound { .. }) => {
                Ok(ControlFlow::Break(Waited { outcome: WaitedFor::Destroyed, cursor: after }))
            }
            Err(error) => Err(error),
        }
    }

    fn read<T>(&self, operation: impl FnMut(&mut Transition<'_>) -> Step<T>) -> Result<T, Error> {
        self.run(Access::Read, operation)
    }

    fn write<T>(&self, operation: impl FnMut(&mut Transition<'_>) -> Step<T>) -> Result<T, Error> {
        self.run(Access::Write, operation)
    }

    /// Looks before it writes, unless what this process saw last foresees a change.
    fn read_unless<T>(
        &self,
        foreseen: impl Fn(&Record) -> bool,
        operation: impl FnMut(&mut Transition<'_>) -> Step<T>,
    ) -> Result<T, Error> {
        let mut access = Access::Read;
        self.engine.store.recall::<Kind>(self.key, &mut |seen| {
            if foreseen(seen) {
                access = Access::Write;
            }
        });
        self.run(access, operation)
    }

    fn run<T>(&self, access: Access, operation: impl FnMut(&mut Transition<'_>) -> Step<T>) -> Result<T, Error> {
        self.run_knowing(access, Census::default(), operation)
    }

    fn run_knowing<T>(
        &self,
        access: Access,
        census: Census,
        mut operation: impl FnMut(&mut Transition<'_>) -> Step<T>,
    ) -> Result<T, Error> {
        self.engine.run_knowing(self.key, access, census, |session, _| {
            session.enter(&self.handle)?;
            operation(session)
        })
    }
}

/// Turns "not found" into false.
fn there(result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::SessionNotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Attributes<'_> {
    /// The JSON text under a dotted key.
    pub fn get(&self, key: &str) -> Result<Option<String>, Error> {
        let key = AttributeKey::new(key)?;
        self.0.read(|session| session.get(&key))
    }

    /// All attributes as one JSON object, of one moment.
    pub fn all(&self) -> Result<String, Error> {
        self.0.read(|session| session.all())
    }

    /// Sets a key to a JSON text, nested at most 100 deep with the segments of the key; keys it does not name stay.
    pub fn set(&self, key: &str, json: &str) -> Result<(), Error> {
        let key = AttributeKey::new(key)?;
        self.0.write(|session| session.set(&key, json))
    }

    /// Removes a key and all below it. Whether there was anything.
    pub fn remove(&self, key: &str) -> Result<bool, Error> {
        let key = AttributeKey::new(key)?;
        self.0.write(|session| session.remove(&key))
    }

    /// The JSON text under a key, removed.
    pub fn take(&self, key: &str) -> Result<Option<String>, Error> {
        let key = AttributeKey::new(key)?;
        self.0.write(|session| session.take(&key))
    }

    /// Sets a key unless it has a value that is not null. Whether it was set.
    pub fn put_if_absent(&self, key: &str, json: &str) -> Result<bool, Error> {
        let key = AttributeKey::new(key)?;
        self.0.write(|session| session.put_if_absent(&key, json))
    }

    /// Sets (or, without `json`, removes) a key if its value equals `expected`; absent, null and `None` are equal, and so are a
    /// list and the object with its elements under 0, 1, …. Whether it did.
    pub fn compare_and_set(&self, key: &str, expected: Option<&str>, json: Option<&str>) -> Result<bool, Error> {
        let key = AttributeKey::new(key)?;
        self.0.write(|session| session.compare_and_set(&key, expected, json))
    }

    /// Applies changes, given as a key with its JSON text or nothing to remove it, in order and all at once: at most
    /// `max_patch_changes`.
    pub fn patch<'a>(&self, changes: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Result<(), Error> {
        let changes = changes
            .into_iter()
            .map(|(key, json)| {
                let key = AttributeKey::new(key)?;
                Ok(match json {
                    Some(json) => Change::Set(key, json.to_owned()),
                    None => Change::Remove(key),
                })
            })
            .collect::<Result<Vec<_>, InvalidArgument>>()?;
        self.0.write(|session| session.patch(&changes))
    }
}

impl Record {
    /// What the session holds, as it is shown.
    fn stats(&self, now: Millis) -> SessionStats {
        SessionStats {
            id: self.id.clone(),
            age_ms: now.saturating_sub(self.created),
            idle_ms: now.saturating_sub(self.last_active),
            ttl_ms: self.ttl,
            owners: self.owners.len() as u64,
            exchanges: u64::from(self.exchanges),
            pending: self.pending.len() as u64,
            in_flight: self.in_flight.len() as u64,
            queued: self.owners.iter().map(|owner| owner.tail - owner.head).sum(),
            broadcasts: self.broadcasts.len() as u64,
            message_bytes: self.message_bytes,
            attribute_bytes: self.attribute_bytes,
            late: LateReason::ALL.map(|reason| (reason.name(), u64::from(self.late[reason as usize]))),
        }
    }
}
