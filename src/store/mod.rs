//! Stores: they know how to carry out a transition atomically, and nothing of what it may do.
//!
//! [`Store`] is what the engine needs of a store. Stores that keep ordered rows on this machine ([`memory`], [`lmdb`]) only
//! implement [`rows::KeyValue`]; [`local`] makes a store of that.

mod audit;
mod bus;
mod era;
mod lmdb;
mod local;
mod memory;
mod once;
mod recall;
mod redis;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use crate::bell::{Counter, Ring, Slept};
use crate::clock::{BootClock, Clock, Millis};
use crate::error::{Error, StoreError};
use crate::ids::Digest;
use crate::session::{Census, IndexKey, Record, Step, StoreView, Transition};
use crate::settings::Settings;

pub use bus::BusEntries;
pub use lmdb::FoundStore;
use local::LocalStore;
#[cfg(feature = "fuzzing")]
pub(crate) use memory::Damage;
use memory::Memory;

/// How an operation wants to see the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may change nothing, or must first find something out: it is worked out without keeping writers out, and carried out as
    /// a writer if it does.
    Read,
    /// It changes something.
    Write,
    /// It makes a session, for this principal: it is told how many there are.
    Create(Option<Digest>),
}

/// One operation, as a store runs it: perhaps more than once, each time from the start.
pub(crate) type Operation<'a> = &'a mut dyn FnMut(&mut Transition<'_>, StoreView) -> Step<()>;

/// How much a store holds, and how much it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) sessions: u64,
    pub(crate) used_bytes: u64,
    pub(crate) limit_bytes: u64,
}

/// Carries out operations, each all or nothing.
pub(crate) trait Store: Send + Sync {
    /// Runs `operation` on a session, carries out its effects, then rings its bells.
    fn transact(&self, session: Digest, access: Access, census: &Census, operation: Operation<'_>) -> Step<()>;

    /// Shows what this process saw last of a session, if that is still at hand; it may be out of date.
    fn recall(&self, _session: Digest, _look: &mut dyn FnMut(&Record)) {}

    /// Sessions in the order in which the index of expiry has them, of one class, up to a time; at most `max`.
    fn due(&self, settled: bool, until: Millis, max: usize) -> Result<Vec<(IndexKey, Digest)>, StoreError>;

    /// Records of sessions after `after` in the order of their keys; at most `max`.
    fn records(&self, after: Option<Digest>, max: usize) -> Result<Vec<(Digest, Record)>, StoreError>;

    /// Appends a message to a topic of the bus, then rings. Its number.
    fn publish(&self, topic: Digest, message: &str) -> Result<u64, Error>;

    /// The number of a topic's newest message, 0 when there is none.
    fn cursor(&self, topic: Digest) -> Result<u64, StoreError>;

    /// At most `max` messages of a topic after `cursor`.
    fn since(&self, topic: Digest, cursor: u64, max: usize) -> Result<BusEntries, StoreError>;

    /// Uses a key. Whether it was the first time within `ttl`.
    fn consume_once(&self, key: Digest, ttl: Millis) -> Result<bool, Error>;

    /// Removes single-use keys that are forgotten, at most `max`, and topics that are silent. Whether there may be more.
    fn collect_leftovers(&self, max: usize) -> Result<bool, Error>;

    /// How full it is.
    fn usage(&self) -> Result<Usage, StoreError>;

    /// Listens for a ring at the store that its name stands for now. What is rung from now on ends the ear's sleep (G9).
    fn listen(&self, ring: Ring) -> Result<Box<dyn Ear>, StoreError>;

    /// Adds to what the store counts.
    fn count(&self, counter: Counter, by: u64);

    /// What the store has counted, by name.
    fn counted(&self) -> Result<Vec<(&'static str, u64)>, StoreError>;

    /// The time.
    fn now(&self) -> Millis;

    /// Makes sure that this is still the store that its name stands for; opens it anew otherwise. Called once for each request
    /// and each slice of waiting.
    fn refresh(&self) -> Result<(), StoreError>;

    /// Releases what dead processes hold of the store itself.
    fn maintain(&self) -> Result<(), StoreError>;

    /// What in the store contradicts itself: nothing, whatever was killed when (G8). Reads everything.
    fn contradictions(&self) -> Result<Vec<String>, StoreError>;

    /// What `doctor` shows of the place.
    fn describe(&self) -> Vec<(&'static str, String)>;
}

/// Somebody who listens.
pub(crate) trait Ear {
    /// Sleeps until the ring, for at most `timeout` and at most [`crate::bell::SLICE`]. It may wake without one.
    fn sleep(&self, timeout: Duration) -> Slept;
}

/// Opens the store of a DSN; without a `clock`, with its own.
pub(crate) fn open(dsn: &crate::dsn::Dsn, clock: Option<Arc<dyn Clock>>) -> Result<Arc<dyn Store>, Error> {
    use crate::dsn::Place;
    let settings: Settings = dsn.settings.clone();
    let own = |clock: Option<Arc<dyn Clock>>| clock.unwrap_or_else(|| Arc::new(BootClock));
    Ok(match &dsn.place {
        Place::Memory => Arc::new(LocalStore::new(
            Memory::new(settings.limit(crate::settings::Limit::StoreBytes))?,
            settings,
            own(clock),
        )),
        Place::SharedMemory(_) | Place::Directory(_) => {
            Arc::new(LocalStore::new(lmdb::Lmdb::open(&dsn.place, &settings)?, settings, own(clock)))
        }
        Place::Redis(server) => Arc::new(redis::RedisStore::new((**server).clone(), settings, clock)),
    })
}

/// Reads the text of a stamp.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_stamp(text: &[u8]) -> Result<(), StoreError> {
    lmdb::read_stamp(text)
}

/// A store in memory, and a way to its rows that no caller of the engine has.
#[cfg(feature = "fuzzing")]
pub(crate) fn open_to_damage(settings: Settings, clock: Arc<dyn Clock>) -> Result<(Arc<dyn Store>, Damage), Error> {
    let rows = Memory::new(settings.limit(crate::settings::Limit::StoreBytes))?;
    let damage = rows.damage();
    Ok((Arc::new(LocalStore::new(rows, settings, clock)), damage))
}

/// Empties the store of a DSN without reading it.
pub(crate) fn reset(dsn: &crate::dsn::Dsn) -> Result<(), Error> {
    use crate::dsn::Place;
    match &dsn.place {
        // Each opening makes a new one.
        Place::Memory => Ok(()),
        Place::SharedMemory(_) | Place::Directory(_) => lmdb::reset(&dsn.place, &dsn.settings),
        Place::Redis(server) => redis::reset(server),
    }
}

/// Fails unless the store of a DSN is there.
pub(crate) fn require(dsn: &crate::dsn::Dsn) -> Result<(), Error> {
    use crate::dsn::Place;
    match &dsn.place {
        Place::Memory => Ok(()),
        Place::SharedMemory(_) | Place::Directory(_) => lmdb::require(&dsn.place, &dsn.settings),
        Place::Redis(server) => redis::require(server),
    }
}

/// The shared-memory stores of this machine.
pub(crate) fn find() -> Vec<FoundStore> {
    lmdb::find()
}
