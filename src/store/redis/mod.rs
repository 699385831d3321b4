//! Sessions in Redis or Valkey, shared by the processes of several machines.
//!
//! An operation is decided here, by the state machine, on the session as this process saw it last; a script (`session.lua`)
//! carries the decision out if that still is the session, and else answers with what it has become, for another try. So an
//! operation is one round trip when nobody else has changed the session, two when somebody has.
//!
//! Keys, each after the store's prefix; all of a session have the hash tag `{D}`, its digest in hexadecimal digits:
//!
//! | key | value |
//! |---|---|
//! | `{D}` | hash: `v`, `h0` to `h7` the versions, 8 random bytes each (`session.lua`); `r` the record; payloads ([`script::Field`]) |
//! | `{D}a` | hash: attributes |
//! | `{D}kSPAN` | hash: by caller, a version and what the operation that made it took away; the last of a span of time ([`Callers`]) |
//! | `{D}wOWNER` | a channel: rings the owner |
//! | `{index}0`, `{index}1` | sorted sets of the digests of new and settled sessions, by when they are due |
//! | `{P}p` | the same of a principal's sessions |
//! | `{T}h`, `{T}s`, `{T}l`, `{T}w` | a topic: head, stream, lengths of its messages, and the channel that rings its listeners |
//! | `{topics}`, `{once}`, `{counted}` | the topics; single-use keys by when they are forgotten; what is counted |
//! | `{layout}` | the number of this layout; whoever finds another one refuses the store |
//!
//! Invariants:
//!
//! * A version is never used twice, so what was decided on one is carried out on that very session or not at all (G1, G7). A
//!   destroyed session leaves its versions behind for a minute.
//! * What was decided by the clock is carried out while the server's clock says the same ([`crate::session::steady`]).
//! * An operation whose answer was lost is sent again as it was. If its version is among the session's, it was carried out, and
//!   what it took away is still there; if the versions reach back to where it started and do not have it, it was not; else
//!   nobody knows ([`Error::OutcomeUnknown`]).
//! * Every key has a time after which the server drops it, so that nothing stays of a site that is gone.
//! * The index and the numbers of sessions follow after the operation: they may lag, and are mended when sessions are collected.

mod audit;
mod bus;
mod cache;
mod connect;
mod connection;
mod listener;
#[cfg(test)]
#[path = "../../../tests/common/redis.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
pub(super) mod private_server;
mod script;
mod speculation;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use redis::{Cmd, RedisError, Value};

use super::kinds::{self, Visitor};
use super::local::{error_counter, ring};
use super::recall::decode;
use super::{Access, BusEntries, Ear, Operation, Usage};
use crate::bell::{Counter, Counters, Ring};
use crate::clock::{BootClock, Clock, Millis, wall_now};
use crate::dsn::Server;
use crate::error::{Error, StoreError};
use crate::fork;
use crate::ids::{Digest, random_bytes};
use crate::kind::{
    Census, Context, Effects, Entry, IndexKey, Kind, PayloadKey, Population, RecordChange, Refusal, Step, StoreView,
    Transition,
};
use crate::session::Session;
use crate::settings::Settings;
use cache::{Cache, Seen};
use connection::Connections;
use listener::Listener;
use script::{Answer, Asked, Keys, Packed, Request, Verdict, Version};
use speculation::{Attributes, Known, Speculation};

/// How long the server keeps a session that nobody can find any more, for whoever collects it.
const GRACE_MS: Millis = 600_000;
/// How long the server keeps, at least, what no single session is the end of: the index, the topics, what is counted.
const SHARED_LIFE_MS: Millis = 30 * 24 * 3_600_000;
/// How long the versions of a destroyed session are kept, for operations that are sent again.
const REMEMBERED_MS: Millis = 60_000;
/// How long an operation is decided anew because somebody else was faster.
const CONTENDED: Duration = Duration::from_secs(10);
/// Who has been overtaken so often looks first until it has not been for as many operations. One lucky operation does not do:
/// who needs one round trip where all others need two would win again and again.
const MOST_OVERTAKEN: u32 = 16;
/// Of a session with so many bytes of messages and responses, what an operation takes away is read by the same script.
const READ_AND_KEPT_BYTES: u64 = 256 << 10;
/// About how many bytes of messages and responses are asked for at once.
const PORTION_BYTES: u64 = 4 << 20;
/// How many places of a list are read at once.
const PORTION: usize = 256;
/// How often what is counted is written at most.
const COUNTED_EVERY_MS: Millis = 1_000;

/// Sessions in a server.
pub(crate) struct RedisStore {
    server: Server,
    settings: Settings,
    clock: Option<Arc<dyn Clock>>,
    process: RwLock<Arc<OfProcess>>,
}

/// What belongs to one process: a child of a fork makes its own.
struct OfProcess {
    fork_generation: u64,
    connections: Arc<Connections>,
    listener: Arc<Listener>,
    cache: Cache,
    time: ServerTime,
    counted: Counters,
    counted_at: AtomicU64,
    callers: Callers,
    tags: Tags,
}

/// Who may have an operation on its way at the same time as others of this process: each has a name of its own, under which the
/// server remembers what its last operation took away. It does so in one hash for each span of time, as the caller counts time,
/// and keeps that for two spans from the caller's first entry; so each is there for one span at least.
struct Callers {
    process: u64,
    idle: Mutex<(Vec<u32>, u32)>,
}

impl Default for Callers {
    fn default() -> Self {
        Self { process: u64::from_le_bytes(random_bytes()), idle: Mutex::default() }
    }
}

struct Caller<'c> {
    callers: &'c Callers,
    number: u32,
}

impl Callers {
    fn enter(&self) -> Caller<'_> {
        let mut idle = self.idle.lock();
        let number = idle.0.pop().unwrap_or_else(|| {
            idle.1 += 1;
            idle.1
        });
        Caller { callers: self, number }
    }
}

impl Caller<'_> {
    fn name(&self) -> [u8; 12] {
        let mut name = [0; 12];
        name[..8].copy_from_slice(&self.callers.process.to_be_bytes());
        name[8..].copy_from_slice(&self.number.to_be_bytes());
        name
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.callers.idle.lock().0.push(self.number);
    }
}

/// New versions: random, fetched from the operating system many at a time.
#[derive(Default)]
struct Tags(Mutex<Vec<Version>>);

impl Tags {
    fn next(&self) -> Version {
        let mut tags = self.0.lock();
        if tags.is_empty() {
            let random: [u8; 32 * size_of::<Version>()] = random_bytes();
            tags.extend_from_slice(random.as_chunks().0);
        }
        tags.pop().expect("there are some now")
    }
}

/// The server's time, as far as this process knows it: how far it is ahead of this machine's.
#[derive(Default)]
struct ServerTime(AtomicI64);

impl ServerTime {
    fn now(&self) -> Option<Millis> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            ahead => Some(BootClock.now().saturating_add_signed(ahead)),
        }
    }

    fn learn(&self, now: Millis) {
        self.0.store((now as i64) - (BootClock.now() as i64), Ordering::Relaxed);
    }
}

impl OfProcess {
    fn new(server: &Server, is_look: bool) -> Self {
        let connections = match is_look {
            true => Connections::to_look(server.clone()),
            false => Connections::new(server.clone()),
        };
        let connections = Arc::new(connections);
        Self {
            fork_generation: fork::generation(),
            listener: Arc::new(Listener::new(connections.clone())),
            connections,
            cache: Cache::default(),
            time: ServerTime::default(),
            counted: Counters::default(),
            counted_at: AtomicU64::new(0),
            callers: Callers::default(),
            tags: Tags::default(),
        }
    }
}

/// One operation at work.
/// What an operation comes to.
type Decided<K> = (Option<Box<<K as Kind>::Record>>, Effects<<K as Kind>::Payload>);

struct Work<'w, K: Kind> {
    store: &'w RedisStore,
    process: Arc<OfProcess>,
    key: Digest,
    /// The record it is decided on.
    seen: Seen<K>,
    /// What is known of its bodies, and of its attributes.
    payloads: Known<K::Payload>,
    attributes: Arc<Attributes>,
    /// The server's time at which that was the session, if it has said so since the operation began.
    confirmed: Option<Millis>,
}

impl RedisStore {
    /// The store of a server. Nothing is sent before it is used.
    pub(crate) fn new(server: Server, settings: Settings, clock: Option<Arc<dyn Clock>>) -> Self {
        let process = RwLock::new(Arc::new(OfProcess::new(&server, settings.is_look)));
        Self { server, settings, clock, process }
    }

    fn process(&self) -> Arc<OfProcess> {
        let process = self.process.read().clone();
        if process.fork_generation == fork::generation() {
            return process;
        }
        let mut current = self.process.write();
        if current.fork_generation != fork::generation() {
            // The parent goes on using these connections: they must not be closed properly from here.
            std::mem::forget(std::mem::replace(
                &mut *current,
                Arc::new(OfProcess::new(&self.server, self.settings.is_look)),
            ));
        }
        std::mem::forget(process);
        current.clone()
    }

    fn key(&self, tag: impl AsRef<str>, rest: &str) -> String {
        [&self.server.prefix, "{", tag.as_ref(), "}", rest].concat()
    }

    /// A key of a record: all of one have one hash tag.
    fn record_key<K: Kind>(&self, record: Digest) -> String {
        self.key([K::TAG, &hex(record)].concat(), "")
    }

    fn index_key<K: Kind>(&self, settled: bool) -> String {
        self.key([K::TAG, "index"].concat(), if settled { "1" } else { "0" })
    }

    fn entries_key<K: Kind>(&self, list: u8, group: Digest) -> String {
        self.key([K::TAG, &hex(group)].concat(), &format!("l{list}"))
    }

    fn principal_key<K: Kind>(&self, principal: Digest) -> String {
        self.key([K::TAG, &hex(principal)].concat(), "p")
    }

    fn channel(&self, ring: Ring) -> String {
        match ring {
            Ring::Owner(record, owner) => self.key(hex(record), &format!("w{owner}")),
            Ring::Record(record) => self.key(hex(record), "w"),
            Ring::Shared(shared) => self.key(hex(shared), "W"),
        }
    }

    /// How many records of the kind there are, for a new one.
    fn view<K: Kind>(&self, process: &OfProcess, principal: Option<Digest>) -> Result<StoreView, StoreError> {
        let mut commands: Vec<Cmd> = [false, true].map(|settled| zcard(&self.index_key::<K>(settled))).into();
        if let Some(principal) = principal {
            commands.push(zcount(&self.principal_key::<K>(principal), self.time(process)?));
        }
        let counts = process.connections.read(|link| link.ask_all(&commands))?;
        let counts: Vec<u64> = counts.iter().map(number).collect();
        Ok(StoreView { records: counts[0] + counts[1], of_principal: counts.get(2).copied().unwrap_or(0) })
    }

    /// The server's time as it is known here; it is asked when it is not.
    fn time(&self, process: &OfProcess) -> Result<Millis, StoreError> {
        if let Some(now) = self.clock.as_ref().map(|clock| clock.now()).or_else(|| process.time.now()) {
            return Ok(now);
        }
        let now = process.connections.read(|link| {
            let (seconds, micros): (u64, u64) = redis::from_redis_value(link.ask(&redis::cmd("TIME"))?)?;
            Ok(seconds * 1000 + micros / 1000)
        })?;
        process.time.learn(now);
        Ok(now)
    }

    fn transact_once<K: Kind>(
        &self,
        key: Digest,
        access: Access,
        census: &Census,
        operation: Operation<'_, K>,
    ) -> Step<()> {
        let process = self.process();
        let view = match access {
            Access::Create(principal) => self.view::<K>(&process, principal)?,
            Access::Read | Access::Write => StoreView::default(),
        };
        let cached = process.cache.get::<K>(key);
        let is_new = matches!(access, Access::Create(_));
        // Where others have been faster twice, they will have been this time.
        let looks = cached.as_ref().map_or(!is_new, |seen| seen.overtaken > 1);
        let seen = cached.unwrap_or_default();
        let mut work = Work {
            store: self,
            process,
            key,
            payloads: Known::new(),
            attributes: seen.attributes.clone(),
            seen,
            confirmed: None,
        };
        if looks {
            work.look(&Asked::default())?;
        }
        work.run(census, view, operation)
    }

    /// After an operation: the index, the numbers of sessions, what is counted.
    fn follow_up<K: Kind>(
        &self,
        process: &OfProcess,
        key: Digest,
        record: Option<&K::Record>,
        effects: &Effects<K::Payload>,
    ) {
        for &count in &effects.counts {
            process.counted.add(count, 1);
        }
        let mut commands = Vec::new();
        if let Some((before, after)) = effects.index {
            if let Some(before) = before.filter(|before| after.is_none_or(|after| after.settled != before.settled)) {
                commands.push(zrem(&self.index_key::<K>(before.settled), key));
            }
            if let Some(after) = after {
                commands.push(pexpire(&process.connections.layout_key(), SHARED_LIFE_MS));
                let life = after.at.saturating_sub(self.time(process).unwrap_or_default()) + GRACE_MS;
                let principal = record.and_then(K::principal).map(|principal| self.principal_key::<K>(principal));
                for index in [self.index_key::<K>(after.settled)].into_iter().chain(principal) {
                    commands.push(zadd(&index, after.at, key));
                    commands.push(pexpire(&index, life.max(SHARED_LIFE_MS)));
                }
            }
        }
        match effects.population {
            Some((Population::Removed, Some(principal)) | (Population::Replaced(Some(principal)), _))
                if record.and_then(K::principal) != Some(principal) =>
            {
                commands.push(zrem(&self.principal_key::<K>(principal), key));
            }
            _ => {}
        }
        let left = effects.entries.iter().filter(|(_, is_in)| !is_in);
        commands.extend(left.map(|(entry, _)| zrem(&self.entries_key::<K>(entry.list, entry.group), key)));
        if !commands.is_empty() {
            // The operation has been carried out; what is missed here is mended when sessions are collected.
            let _ = process.connections.read(|link| link.ask_all(&commands));
        }
    }

    /// Before an operation: the places in lists that the record is about to take. Who is killed in between leaves a place that no
    /// record says it has, which is left out when the list is read; nobody misses one.
    fn announce<K: Kind>(
        &self,
        process: &OfProcess,
        key: Digest,
        effects: &Effects<K::Payload>,
    ) -> Result<(), StoreError> {
        let mut commands = Vec::new();
        for (entry, _) in effects.entries.iter().filter(|(_, is_in)| *is_in) {
            let list = self.entries_key::<K>(entry.list, entry.group);
            commands.extend([zadd(&list, entry.at, key), pexpire(&list, SHARED_LIFE_MS)]);
        }
        if !commands.is_empty() {
            process.connections.read(|link| link.ask_all(&commands))?;
        }
        Ok(())
    }

    /// Writes what is counted, at most once a second unless it `must`.
    fn write_counted(&self, process: &OfProcess, must: bool) {
        let now = BootClock.now();
        let before = process.counted_at.load(Ordering::Relaxed);
        if !must && now.saturating_sub(before) < COUNTED_EVERY_MS
            || process.counted_at.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let taken = Counter::ALL.iter().map(|&(name, counter)| (name, counter, process.counted.take(counter)));
        let taken: Vec<_> = taken.filter(|(_, _, count)| *count > 0).collect();
        let key = self.key("counted", "");
        let increments = taken.iter().map(|(name, _, count)| {
            let mut command = redis::cmd("HINCRBY");
            command.arg(&key).arg(name).arg(count);
            command
        });
        let mut commands: Vec<Cmd> = increments.collect();
        if !commands.is_empty() {
            commands.push(pexpire(&key, SHARED_LIFE_MS));
        }
        if !commands.is_empty() && process.connections.once(|link| link.ask_all(&commands)).is_none() {
            for (_, counter, count) in taken {
                process.counted.add(counter, count);
            }
        }
    }

    /// The records of the index, whatever the time.
    fn indexed<K: Kind>(&self, process: &OfProcess) -> Result<Vec<Digest>, StoreError> {
        let mut keys = Vec::new();
        for settled in [false, true] {
            let due = self.range::<K>(process, settled, Millis::MAX, usize::MAX)?;
            keys.extend(due.into_iter().map(|(_, key)| key));
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    fn range<K: Kind>(
        &self,
        process: &OfProcess,
        settled: bool,
        until: Millis,
        max: usize,
    ) -> Result<Vec<(IndexKey, Digest)>, StoreError> {
        let mut command = redis::cmd("ZRANGEBYSCORE");
        command.arg(self.index_key::<K>(settled)).arg("-inf").arg(if until == Millis::MAX {
            "+inf".to_owned()
        } else {
            until.to_string()
        });
        command.arg("WITHSCORES").arg("LIMIT").arg(0).arg(i64::try_from(max).unwrap_or(-1));
        let found: Vec<(Vec<u8>, f64)> =
            process.connections.read(|link| Ok(redis::from_redis_value(link.ask(&command)?)?))?;
        Ok(found
            .into_iter()
            .filter_map(|(key, at)| Some((IndexKey { settled, at: at as Millis }, Digest(key.try_into().ok()?))))
            .collect())
    }

    /// The records under these keys, where there is one.
    fn read_records<K: Kind>(
        &self,
        process: &OfProcess,
        keys: &[Digest],
    ) -> Result<Vec<Option<K::Record>>, StoreError> {
        let mut records = Vec::with_capacity(keys.len());
        for portion in keys.chunks(256) {
            let commands: Vec<Cmd> = portion
                .iter()
                .map(|&key| {
                    let mut command = redis::cmd("HGET");
                    command.arg(self.record_key::<K>(key)).arg("r");
                    command
                })
                .collect();
            for value in process.connections.read(|link| link.ask_all(&commands))? {
                records.push(match value {
                    Value::BulkString(bytes) => Some(*decode::<K>(&bytes)?),
                    _ => None,
                });
            }
        }
        Ok(records)
    }

    /// Takes records out of the index that are not there, and puts others where their records say. How many it changed.
    fn mend_index<K: Kind>(&self, process: &OfProcess, entries: &[(IndexKey, Digest)]) -> Result<usize, StoreError> {
        let keys: Vec<_> = entries.iter().map(|&(_, key)| key).collect();
        let records = self.read_records::<K>(process, &keys)?;
        let mut commands = Vec::new();
        for (&(place, key), record) in entries.iter().zip(&records) {
            match record.as_ref().and_then(K::index_key) {
                Some(true_place) if true_place == place => {}
                Some(true_place) => {
                    commands.push(zadd(&self.index_key::<K>(true_place.settled), true_place.at, key));
                    if true_place.settled != place.settled {
                        commands.push(zrem(&self.index_key::<K>(place.settled), key));
                    }
                }
                None => commands.push(zrem(&self.index_key::<K>(place.settled), key)),
            }
        }
        if !commands.is_empty() {
            process.connections.read(|link| link.ask_all(&commands))?;
        }
        Ok(commands.len())
    }
}

impl<K: Kind> Work<'_, K> {
    fn run(mut self, census: &Census, view: StoreView, operation: Operation<'_, K>) -> Step<()> {
        let end = Instant::now() + CONTENDED;
        // How often nothing but the time was another.
        let mut mistimed = 0;
        while Instant::now() < end {
            let now = self.confirmed.map_or_else(|| self.store.time(&self.process), Ok)?;
            let (result, asked) = self.decide(now, census, view, operation);
            if asked.for_attributes() {
                self.look(&asked)?;
                continue;
            }
            let (after, effects) = match result {
                // What processes do is looked up, and everything is run again.
                Err(Refusal::Unsure(processes)) => return Err(Refusal::Unsure(processes)),
                Err(refusal) if self.confirmed.is_some() => return Err(refusal),
                Err(_) => {
                    self.look(&Asked::default())?;
                    continue;
                }
                Ok((after, effects)) => (after.map(Arc::from), effects),
            };
            if effects.is_empty() {
                if self.confirmed.is_some() && asked.payloads.is_empty() {
                    return Ok(());
                }
                self.look(&asked)?;
                continue;
            }
            // What is taken away must be kept as well, in case the answer is lost: much is read before it is taken instead.
            let body_bytes = self.seen.record.as_ref().map_or(0, |record| K::accounts(record).0);
            if !asked.payloads.is_empty() && body_bytes > READ_AND_KEPT_BYTES {
                self.look(&asked)?;
                continue;
            }
            let before = self.seen.version;
            self.store.announce::<K>(&self.process, self.key, &effects)?;
            if self.carry_out(now, mistimed, after.as_ref(), &effects, &asked)? {
                if !asked.payloads.is_empty() {
                    // The same on the same session at the same time: only the outcome is new.
                    let (result, _) = self.decide(now, census, view, operation);
                    let (_, again) = result?;
                    debug_assert_eq!(again, effects, "effects never depend on the text of a message");
                }
                let record = after.filter(|_| effects.record != RecordChange::Remove);
                self.store.follow_up::<K>(&self.process, self.key, record.as_deref(), &effects);
                return Ok(());
            }
            // The answer says what the session is now. Whoever paused before the next try would find it changed once more, and
            // never win against one who does not.
            mistimed += u32::from(self.seen.version == before);
        }
        let reason = format!("others changed the session again and again for {CONTENDED:?}; try again");
        Err(StoreError::Server { server: self.store.server.to_string(), reason }.into())
    }

    /// What the operation does to the session as it is known, and what of it is not known.
    fn decide(
        &self,
        now: Millis,
        census: &Census,
        view: StoreView,
        operation: Operation<'_, K>,
    ) -> (Step<Decided<K>>, Asked<K::Payload>) {
        let attribute_bytes = self.seen.record.as_ref().map_or(0, |record| K::accounts(record).1);
        let values = Speculation::on(&self.payloads, &self.attributes, attribute_bytes);
        let context = Context { now, settings: &self.store.settings, census };
        let record = self.seen.record.as_deref().cloned().map(Box::new);
        let mut transition = Transition::new(record, &values, context);
        let result = operation(&mut transition, view);
        let result = result.map(|()| transition.finish());
        (result, values.into_asked())
    }

    /// Sees whether the session still is what it was, and asks for payloads: for many in portions, so that none keeps the server
    /// busy for long. What they answer is of one version, or the operation is decided anew.
    fn look(&mut self, asked: &Asked<K::Payload>) -> Result<(), StoreError> {
        let body_bytes = self.seen.record.as_ref().map_or(0, |record| K::accounts(record).0);
        let portions = usize::try_from(body_bytes / PORTION_BYTES).unwrap_or(usize::MAX).saturating_add(1);
        let most = asked.payloads.len().div_ceil(portions).max(1);
        if asked.payloads.len() <= most || asked.for_attributes() {
            return self.look_once(asked);
        }
        let payloads: Vec<_> = asked.payloads.iter().cloned().collect();
        for portion in payloads.chunks(most) {
            let version = self.seen.version;
            self.look_once(&Asked { payloads: portion.iter().cloned().collect(), ..Asked::default() })?;
            if self.seen.version != version {
                break;
            }
        }
        Ok(())
    }

    fn look_once(&mut self, asked: &Asked<K::Payload>) -> Result<(), StoreError> {
        let connections = self.process.connections.clone();
        let mut answer = match asked.for_attributes() {
            true => None,
            false => self.look_at_record(asked)?,
        };
        if answer.is_none() {
            let request = Request {
                expected: self.seen.version,
                new: None,
                steady: 0..Millis::MAX,
                clock: self.manual_time(),
                purges: false,
                frees: false,
                life: None,
                kept_for: 0,
                record: None,
                asked,
                payloads: &Default::default(),
                channels: Vec::new(),
            };
            let sent = self.send(&request).map_err(|failure| connections.unavailable(&failure.error))?;
            answer = Some(sent.0);
        }
        self.learn(asked, &mut answer.expect("it was asked"))
    }

    /// The same by plain commands, where nothing but one hash must be read; they cost the server less than a script. The time
    /// is read first, so what follows is not older. Nothing in a cluster.
    fn look_at_record(&self, asked: &Asked<K::Payload>) -> Result<Option<Answer>, StoreError> {
        let packed = Packed::look(&self.store.record_key::<K>(self.key), &asked.payloads);
        let answer = self.process.connections.read(|link| {
            let Some([time, fields]) = link.send_two(&packed)? else { return Ok(None) };
            Answer::of_look(time, fields, self.seen.version).ok_or_else(unreadable).map(Some)
        })?;
        Ok(answer.map(|answer| Answer { now: self.manual_time().unwrap_or(answer.now), ..answer }))
    }

    /// Carries the operation out, if the session still is what it was. Whether it did; else what the session is now is known.
    fn carry_out(
        &mut self,
        now: Millis,
        mistimed: u32,
        after: Option<&Arc<K::Record>>,
        effects: &Effects<K::Payload>,
        asked: &Asked<K::Payload>,
    ) -> Result<bool, Error> {
        let removes = effects.record == RecordChange::Remove;
        let kept = after.filter(|_| !removes);
        let after = kept.map(|record| &**record);
        let before = self.seen.record.as_deref();
        let footprint = |record: Option<&K::Record>| record.map_or(0, K::footprint);
        // Clocks that differ by little must not keep each other waiting: the more often it failed, the less it matters.
        let slack = 2_u64.pow(mistimed.min(10)) - 1;
        let steady = K::steady(before, after, now);
        let version = self.process.tags.next();
        let writes = (effects.record == RecordChange::Write).then_some(after).flatten();
        let request = Request {
            expected: self.seen.version,
            new: Some(version),
            steady: steady.start.saturating_sub(slack)..steady.end.saturating_add(slack),
            clock: self.manual_time(),
            purges: removes || effects.purge,
            frees: footprint(after) <= footprint(before),
            life: life::<K>(before.filter(|_| !effects.purge), after, effects, now),
            kept_for: self.store.server.longest_call_ms() * 2,
            record: writes.map(K::encode),
            asked,
            payloads: &effects.payloads,
            channels: effects.rings.iter().map(|&channel| self.store.channel(ring(self.key, channel))).collect(),
        };
        let connections = self.process.connections.clone();
        let (mut answer, is_second) = self.send(&request).map_err(|failure| match failure.perhaps_done {
            true => connections.unknown(format!("the connection was lost: {}", failure.error)),
            false => connections.unavailable(&failure.error).into(),
        })?;
        if answer.verdict == Verdict::Other {
            // A server that has lost the session has lost with it whatever was done.
            if is_second && answer.version().is_some() && !answer.proves_not_done(self.seen.version) {
                return Err(connections.unknown("the connection was lost, and the session has gone on since"));
            }
            self.learn(asked, &mut answer)?;
            return Ok(false);
        }
        if self.store.clock.is_none() {
            self.process.time.learn(answer.now);
        }
        self.payloads.extend(asked.payloads.iter().cloned().zip(std::mem::take(&mut answer.payloads)));
        let mut attributes = if request.purges { Arc::default() } else { self.attributes.clone() };
        attributes.change(&effects.payloads);
        let record = kept.cloned();
        let overtaken = self.seen.overtaken.saturating_sub(u32::from(self.confirmed.is_none()));
        let seen = Seen::<K> { version: Some(version), record, attributes: attributes.kept(), overtaken };
        self.process.cache.put(self.key, seen);
        Ok(true)
    }

    /// Takes in what the session is.
    fn learn(&mut self, asked: &Asked<K::Payload>, answer: &mut Answer) -> Result<(), StoreError> {
        if self.store.clock.is_none() {
            self.process.time.learn(answer.now);
        }
        if answer.verdict == Verdict::Other {
            let record = answer.record.as_deref().map(decode::<K>).transpose()?;
            self.payloads.clear();
            self.attributes = Arc::default();
            let is_known = self.seen.version.is_some();
            let is_overtaken = is_known && answer.version() != self.seen.version;
            let overtaken = (self.seen.overtaken + u32::from(is_overtaken)).min(MOST_OVERTAKEN);
            let (version, record) = (answer.version(), record.map(Arc::from));
            self.seen = Seen { version, record, attributes: Arc::default(), overtaken };
        } else if self.confirmed.is_none() {
            self.seen.overtaken = self.seen.overtaken.saturating_sub(1);
        }
        self.confirmed = Some(answer.now);
        self.payloads.extend(asked.payloads.iter().cloned().zip(std::mem::take(&mut answer.payloads)));
        self.attributes.learn(asked, answer)?;
        self.seen.attributes = self.attributes.kept();
        self.process.cache.put(self.key, self.seen.clone());
        Ok(())
    }

    fn send(&self, request: &Request<'_, K::Payload>) -> Result<(Answer, bool), connection::Failure> {
        let caller = request.keeps().then(|| self.process.callers.enter());
        let session = self.store.record_key::<K>(self.key);
        let span = BootClock.now() / self.store.server.longest_call_ms();
        let keys = Keys {
            rows: [&session, "a"].concat(),
            kept: caller.as_ref().map(|caller| (format!("{session}k{span}"), caller.name())),
            session,
        };
        self.process.connections.run(|link, again| {
            let answer = link.run_packed(&script::SESSION, |call| request.command(call, &keys, again))?;
            Answer::read(answer).ok_or_else(unreadable)
        })
    }

    fn manual_time(&self) -> Option<Millis> {
        self.store.clock.as_ref().map(|clock| clock.now())
    }
}

/// See [`super::Store`], whose methods these are.
impl RedisStore {
    pub(super) fn transact<K: Kind>(
        &self,
        key: Digest,
        access: Access,
        census: &Census,
        operation: Operation<'_, K>,
    ) -> Step<()> {
        let done = self.transact_once::<K>(key, access, census, operation);
        let process = self.process();
        if let Err(Refusal::Error(error)) = &done {
            process.count_error(error);
        }
        self.write_counted(&process, false);
        done
    }

    /// What this process saw last is what each operation is decided on anyway.
    pub(super) fn recall<K: Kind>(&self, _key: Digest, _look: &mut dyn FnMut(&K::Record)) {}

    pub(super) fn due<K: Kind>(
        &self,
        settled: bool,
        until: Millis,
        max: usize,
    ) -> Result<Vec<(IndexKey, Digest)>, StoreError> {
        let process = self.process();
        let due = self.range::<K>(&process, settled, until, max)?;
        if until == Millis::MAX || self.mend_index::<K>(&process, &due)? == 0 {
            return Ok(due);
        }
        self.range::<K>(&process, settled, until, max)
    }

    /// Who takes a place in a list is in it before the record says so ([`RedisStore::announce`]), and leaves it afterwards: so
    /// nothing is missing, and what should not be there is left out.
    pub(super) fn listed<K: Kind>(
        &self,
        (list, group): (u8, Digest),
        after: Option<(u64, Digest)>,
        max: usize,
    ) -> Result<Vec<(u64, Digest)>, StoreError> {
        let process = self.process();
        let (mut listed, mut offset) = (Vec::new(), 0);
        while listed.len() < max {
            let mut command = redis::cmd("ZRANGEBYSCORE");
            command.arg(self.entries_key::<K>(list, group)).arg(after.map_or(0, |(at, _)| at)).arg("+inf");
            command.arg("WITHSCORES").arg("LIMIT").arg(offset).arg(PORTION);
            let found: Vec<(Vec<u8>, f64)> =
                process.connections.read(|link| Ok(redis::from_redis_value(link.ask(&command)?)?))?;
            let found: Vec<(u64, Digest)> =
                found.into_iter().filter_map(|(key, at)| Some((at as u64, Digest(key.try_into().ok()?)))).collect();
            let keys: Vec<_> = found.iter().map(|&(_, key)| key).collect();
            let records = self.read_records::<K>(&process, &keys)?;
            for (place, record) in found.iter().zip(records) {
                let entry = Entry { list, group, at: place.0 };
                let is_there = record.is_some_and(|record| K::entries(&record).contains(&entry));
                if is_there && after.is_none_or(|after| *place > after) && listed.len() < max {
                    listed.push(*place);
                }
            }
            offset += PORTION;
            if found.len() < PORTION {
                break;
            }
        }
        Ok(listed)
    }

    pub(super) fn records<K: Kind>(
        &self,
        after: Option<Digest>,
        max: usize,
    ) -> Result<Vec<(Digest, K::Record)>, StoreError> {
        let process = self.process();
        let mut keys = self.indexed::<K>(&process)?;
        keys.retain(|&key| after.is_none_or(|after| key > after));
        let mut found = Vec::new();
        for portion in keys.chunks(256) {
            let records = self.read_records::<K>(&process, portion)?;
            found.extend(portion.iter().zip(records).filter_map(|(&key, record)| Some((key, record?))));
            if found.len() >= max {
                break;
            }
        }
        found.truncate(max);
        Ok(found)
    }

    pub(super) fn publish(&self, topic: Digest, message: &str) -> Result<u64, Error> {
        bus::publish(self, &self.process(), topic, message).inspect_err(|error| self.process().count_error(error))
    }

    pub(super) fn cursor(&self, topic: Digest) -> Result<u64, StoreError> {
        bus::cursor(self, &self.process(), topic)
    }

    pub(super) fn since(&self, topic: Digest, cursor: u64, max: usize) -> Result<BusEntries, StoreError> {
        bus::since(self, &self.process(), topic, cursor, max)
    }

    pub(super) fn consume_once(&self, key: Digest, ttl: Millis) -> Result<bool, Error> {
        bus::consume_once(self, &self.process(), key, ttl).inspect_err(|error| self.process().count_error(error))
    }

    pub(super) fn collect_leftovers(&self, _max: usize) -> Result<bool, Error> {
        bus::living_topics(self, &self.process())?;
        Ok(false)
    }

    pub(super) fn usage(&self) -> Result<Usage, StoreError> {
        let process = self.process();
        let view = self.view::<Session>(&process, None)?;
        // Who may not ask is told so by `describe`; all else is shown.
        let memory = match self.info("memory") {
            Err(error) if trouble::missing_rights(&error, "").is_none() => {
                return Err(process.connections.unavailable(&error));
            }
            memory => memory.ok(),
        };
        let number = |name: &str| memory.as_ref().and_then(|memory| memory.get::<u64>(name)).unwrap_or(0);
        let limit = match number("maxmemory") {
            0 => number("total_system_memory"),
            limit => limit,
        };
        Ok(Usage { sessions: view.records, used_bytes: number("used_memory"), limit_bytes: limit })
    }

    pub(super) fn listen(&self, ring: Ring) -> Result<Box<dyn Ear>, StoreError> {
        Ok(self.process().listener.listen(self.channel(ring)))
    }

    pub(super) fn count(&self, counter: Counter, by: u64) {
        self.process().counted.add(counter, by);
    }

    pub(super) fn counted(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let process = self.process();
        self.write_counted(&process, true);
        let mut command = redis::cmd("HGETALL");
        command.arg(self.key("counted", ""));
        let counted: std::collections::HashMap<String, u64> =
            process.connections.read(|link| Ok(redis::from_redis_value(link.ask(&command)?)?))?;
        Ok(Counter::ALL.iter().map(|&(name, _)| (name, counted.get(name).copied().unwrap_or(0))).collect())
    }

    pub(super) fn now(&self) -> Millis {
        self.time(&self.process()).unwrap_or_else(|_| wall_now())
    }

    /// The server is the one the DSN names whenever something is sent.
    pub(super) fn refresh(&self) -> Result<(), StoreError> {
        Ok(())
    }

    pub(super) fn maintain(&self) -> Result<(), StoreError> {
        Ok(())
    }

    pub(super) fn contradictions(&self) -> Result<Vec<String>, StoreError> {
        let process = self.process();
        struct Audit<'a>(&'a RedisStore, Arc<OfProcess>, Vec<String>);
        impl Visitor for Audit<'_> {
            fn visit<K: Kind>(&mut self) -> Result<(), StoreError> {
                for key in self.0.indexed::<K>(&self.1)? {
                    audit::check_record::<K>(self.0, &self.1, key, &mut self.2)?;
                }
                Ok(())
            }
        }
        let mut audit = Audit(self, process, Vec::new());
        kinds::each(&mut audit)?;
        Ok(audit.2)
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        let mut shown = vec![("place", self.server.to_string()), ("prefix", self.server.prefix.clone())];
        shown.extend(self.missing_rights().map(|rule| ("missing_rights", rule)));
        let sections = [
            ("server", &["redis_version", "valkey_version", "redis_mode"][..]),
            ("replication", &["role", "connected_slaves"][..]),
            ("memory", &["maxmemory", "maxmemory_policy"][..]),
            ("persistence", &["aof_enabled", "loading"][..]),
        ];
        for (section, names) in sections {
            match self.info(section) {
                Ok(info) => {
                    let values = names.iter().filter_map(|&name| Some((name, info.get::<String>(name)?)));
                    shown.extend(values);
                }
                Err(error) => {
                    shown.push(("problem", self.process().connections.unavailable(&error).to_string()));
                    break;
                }
            }
        }
        shown
    }
}

impl RedisStore {
    /// A section of what the server says of itself; of a cluster, one of its servers.
    fn info(&self, section: &str) -> Result<redis::InfoDict, RedisError> {
        let process = self.process();
        let connections = &process.connections;
        connections.persist(|_| {
            let mut connection = connections.connect_one(redis::ProtocolVersion::RESP2)?;
            redis::cmd("INFO").arg(section).query(&mut connection)
        })
    }

    /// The command that gives this user the rights it lacks; nothing when it has all, or the server does not say.
    fn missing_rights(&self) -> Option<String> {
        let process = self.process();
        let (key, channel) = (self.key("layout", ""), self.key("layout", "w"));
        let answer = process.connections.read(|link| {
            link.run(&script::RIGHTS, |command| {
                command.arg(1).arg(&key).arg(&key).arg(&channel);
            })
        });
        type Refused = (usize, Vec<String>, Vec<String>);
        let (of_keys, keyed, others) = redis::from_redis_value::<Option<Refused>>(answer.ok()?).ok()??;
        let prefix = &self.server.prefix;
        let mut rights = Vec::new();
        if keyed.len() == of_keys {
            rights.push(format!("~{prefix}*"));
        } else {
            rights.extend(keyed.iter().map(|command| format!("+{command}")));
        }
        for command in &others {
            // The two want a channel as well, and what the server refuses says which of both is missing.
            let right = match command.as_str() {
                "publish" | "subscribe" => self.missing_for_channel(command, &channel),
                _ => None,
            };
            rights.push(right.unwrap_or_else(|| format!("+{command}")));
        }
        rights.dedup();
        (!rights.is_empty()).then(|| process.connections.rule(&rights.join(" ")))
    }

    /// What the server says is missing for a command on a channel that nobody listens to.
    fn missing_for_channel(&self, command: &str, channel: &str) -> Option<String> {
        let connections = &self.process().connections;
        let mut connection = connections.connect_one(redis::ProtocolVersion::RESP2).ok()?;
        let mut words = redis::cmd(command);
        words.arg(channel);
        if command == "publish" {
            words.arg("");
        }
        let refused = words.query::<Value>(&mut connection).err()?;
        trouble::missing_rights(&refused, &self.server.prefix)
    }
}

impl OfProcess {
    fn count_error(&self, error: &Error) {
        if let Some(counter) = error_counter(error) {
            self.counted.add(counter, 1);
        }
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        let process = self.process.get_mut().clone();
        if process.fork_generation == fork::generation() {
            self.write_counted(&process, true);
        } else {
            std::mem::forget(process);
        }
    }
}

/// Empties the store of a server: every key of its prefix goes.
pub(crate) fn reset(server: &Server) -> Result<(), Error> {
    let connections = Connections::new(server.clone());
    let emptied = connections.persist(|_| {
        for mut master in connections.connect_masters()? {
            let mut cursor = 0_u64;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(format!("{}*", server.prefix)).arg("COUNT").arg(1000);
                let (next, keys): (u64, Vec<Vec<u8>>) = scan.query(&mut master)?;
                for key in keys {
                    // One by one: in a cluster they are of many slots.
                    redis::cmd("UNLINK").arg(key).exec(&mut master)?;
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    });
    Ok(emptied.map_err(|error| connections.unavailable(&error))?)
}

/// Fails unless the server answers, and some process has used the store.
pub(crate) fn require(server: &Server) -> Result<(), Error> {
    let connections = Connections::to_look(server.clone());
    connections.read(|link| link.ask(&redis::cmd("PING")))?;
    Ok(())
}

/// How long the server keeps a session's keys after an operation; nothing when that does not change. It is counted from the end
/// of a span, so that most operations leave it alone.
fn life<K: Kind>(
    before: Option<&K::Record>,
    after: Option<&K::Record>,
    effects: &Effects<K::Payload>,
    now: Millis,
) -> Option<Millis> {
    let Some(after) = after else { return Some(REMEMBERED_MS) };
    let drops = |record: &K::Record| (K::gone_by(record) / GRACE_MS + 2).saturating_mul(GRACE_MS);
    let may_begin_a_key =
        effects.payloads.iter().any(|(payload, value)| payload.attribute().is_some() && value.is_some());
    let moves = before.is_none_or(|before| drops(before) != drops(after));
    (moves || may_begin_a_key).then(|| drops(after).saturating_sub(now))
}

fn hex(digest: Digest) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let mut hex = String::with_capacity(2 * digest.0.len());
    for byte in digest.0 {
        hex.push(digit(byte >> 4));
        hex.push(digit(byte & 15));
    }
    hex
}

fn unreadable() -> RedisError {
    RedisError::from((redis::ErrorKind::UnexpectedReturnType, "the server's answer cannot be read"))
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Int(number) => (*number).try_into().unwrap_or(0),
        _ => 0,
    }
}

fn zcard(key: &str) -> Cmd {
    let mut command = redis::cmd("ZCARD");
    command.arg(key);
    command
}

/// How many come after a time.
fn zcount(key: &str, after: Millis) -> Cmd {
    let mut command = redis::cmd("ZCOUNT");
    command.arg(key).arg(format!("({after}")).arg("+inf");
    command
}

fn zadd(key: &str, at: Millis, session: Digest) -> Cmd {
    let mut command = redis::cmd("ZADD");
    command.arg(key).arg(at).arg(&session.0);
    command
}

fn zrem(key: &str, session: Digest) -> Cmd {
    let mut command = redis::cmd("ZREM");
    command.arg(key).arg(&session.0);
    command
}

fn pexpire(key: &str, after: Millis) -> Cmd {
    let mut command = redis::cmd("PEXPIRE");
    command.arg(key).arg(after);
    command
}
