//! Stores: they know how to carry out a transition atomically, and nothing of what it may do.
//!
//! [`Store`] is what the engine needs of a store. A record's kind is a type ([`crate::kind::Kind`]), so that a store carries any. Stores that keep ordered rows on this machine ([`memory`], [`lmdb`]) only
//! implement [`rows::KeyValue`]; [`local`] makes a store of that.

mod audit;
mod bus;
mod era;
mod kinds;
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
use crate::kind::{Census, IndexKey, Kind, Step, StoreView, Transition};
use crate::settings::Settings;

pub use bus::BusEntries;
pub use lmdb::FoundStore;
use local::LocalStore;
#[cfg(feature = "fuzzing")]
pub(crate) use memory::Damage;
use memory::Memory;

/// How an operation wants to see the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may change nothing, or must first find something out: it is worked out without keeping writers out, and carried out as
    /// a writer if it does.
    Read,
    /// It changes something.
    Write,
    /// It makes a record, for this principal: it is told how many there are.
    Create(Option<Digest>),
}

/// One operation, as a store runs it: perhaps more than once, each time from the start.
pub(crate) type Operation<'a, K> = &'a mut dyn FnMut(&mut Transition<'_, K>, StoreView) -> Step<()>;

/// How much a store holds, and how much it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) sessions: u64,
    pub(crate) used_bytes: u64,
    pub(crate) limit_bytes: u64,
}

/// Carries out operations, each all or nothing. Clones share what they have open.
#[derive(Clone)]
pub(crate) enum Store {
    Memory(Arc<LocalStore<Memory>>),
    Lmdb(Arc<LocalStore<lmdb::Lmdb>>),
    Redis(Arc<redis::RedisStore>),
}

/// Calls a method of whichever store it is.
macro_rules! each {
    ($store:expr, $method:ident $(::<$kind:ident>)? ($($argument:expr),*)) => {
        match $store {
            Store::Memory(store) => store.$method$(::<$kind>)?($($argument),*),
            Store::Lmdb(store) => store.$method$(::<$kind>)?($($argument),*),
            Store::Redis(store) => store.$method$(::<$kind>)?($($argument),*),
        }
    };
}

impl Store {
    /// Runs `operation` on the record under `key`, carries out its effects, then rings.
    pub(crate) fn transact<K: Kind>(
        &self,
        key: Digest,
        access: Access,
        census: &Census,
        operation: Operation<'_, K>,
    ) -> Step<()> {
        each!(self, transact::<K>(key, access, census, operation))
    }

    /// Shows what this process saw last of a record, if that is still at hand; it may be out of date.
    pub(crate) fn recall<K: Kind>(&self, key: Digest, look: &mut dyn FnMut(&K::Record)) {
        each!(self, recall::<K>(key, look));
    }

    /// Records in the order in which the index of expiry has them, of one class, up to a time; at most `max`.
    pub(crate) fn due<K: Kind>(
        &self,
        settled: bool,
        until: Millis,
        max: usize,
    ) -> Result<Vec<(IndexKey, Digest)>, StoreError> {
        each!(self, due::<K>(settled, until, max))
    }

    /// Records of a list and its group ([`crate::kind::Entry`]) in their order, those behind the place `after`; at most `max`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the kinds there are have no further indexes"))]
    pub(crate) fn listed<K: Kind>(
        &self,
        list: (u8, Digest),
        after: Option<(u64, Digest)>,
        max: usize,
    ) -> Result<Vec<(u64, Digest)>, StoreError> {
        each!(self, listed::<K>(list, after, max))
    }

    /// Records after `after` in the order of their keys; at most `max`.
    pub(crate) fn records<K: Kind>(
        &self,
        after: Option<Digest>,
        max: usize,
    ) -> Result<Vec<(Digest, K::Record)>, StoreError> {
        each!(self, records::<K>(after, max))
    }

    /// Appends a message to a topic of the bus, then rings. Its number.
    pub(crate) fn publish(&self, topic: Digest, message: &str) -> Result<u64, Error> {
        each!(self, publish(topic, message))
    }

    /// The number of a topic's newest message, 0 when there is none.
    pub(crate) fn cursor(&self, topic: Digest) -> Result<u64, StoreError> {
        each!(self, cursor(topic))
    }

    /// At most `max` messages of a topic after `cursor`.
    pub(crate) fn since(&self, topic: Digest, cursor: u64, max: usize) -> Result<BusEntries, StoreError> {
        each!(self, since(topic, cursor, max))
    }

    /// Uses a key. Whether it was the first time within `ttl`.
    pub(crate) fn consume_once(&self, key: Digest, ttl: Millis) -> Result<bool, Error> {
        each!(self, consume_once(key, ttl))
    }

    /// Removes single-use keys that are forgotten, at most `max`, and topics that are silent. Whether there may be more.
    pub(crate) fn collect_leftovers(&self, max: usize) -> Result<bool, Error> {
        each!(self, collect_leftovers(max))
    }

    /// How full it is.
    pub(crate) fn usage(&self) -> Result<Usage, StoreError> {
        each!(self, usage())
    }

    /// Listens for a ring at the store that its name stands for now. What is rung from now on ends the ear's sleep (G9).
    pub(crate) fn listen(&self, ring: Ring) -> Result<Box<dyn Ear>, StoreError> {
        each!(self, listen(ring))
    }

    /// Adds to what the store counts.
    pub(crate) fn count(&self, counter: Counter, by: u64) {
        each!(self, count(counter, by));
    }

    /// What the store has counted, by name.
    pub(crate) fn counted(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        each!(self, counted())
    }

    /// The time.
    pub(crate) fn now(&self) -> Millis {
        each!(self, now())
    }

    /// Makes sure that this is still the store that its name stands for; opens it anew otherwise. Called once for each request
    /// and each slice of waiting.
    pub(crate) fn refresh(&self) -> Result<(), StoreError> {
        each!(self, refresh())
    }

    /// Releases what dead processes hold of the store itself.
    pub(crate) fn maintain(&self) -> Result<(), StoreError> {
        each!(self, maintain())
    }

    /// What in the store contradicts itself: nothing, whatever was killed when (G8). Reads everything.
    pub(crate) fn contradictions(&self) -> Result<Vec<String>, StoreError> {
        each!(self, contradictions())
    }

    /// What `doctor` shows of the place.
    pub(crate) fn describe(&self) -> Vec<(&'static str, String)> {
        each!(self, describe())
    }
}

/// Somebody who listens.
pub(crate) trait Ear {
    /// Sleeps until the ring, for at most `timeout` and at most [`crate::bell::SLICE`]. It may wake without one.
    fn sleep(&self, timeout: Duration) -> Slept;
}

/// Opens the store of a DSN; without a `clock`, with its own.
pub(crate) fn open(dsn: &crate::dsn::Dsn, clock: Option<Arc<dyn Clock>>) -> Result<Store, Error> {
    use crate::dsn::Place;
    let settings: Settings = dsn.settings.clone();
    let own = |clock: Option<Arc<dyn Clock>>| clock.unwrap_or_else(|| Arc::new(BootClock));
    Ok(match &dsn.place {
        Place::Memory => Store::Memory(Arc::new(LocalStore::new(
            Memory::new(settings.limit(crate::settings::Limit::StoreBytes))?,
            settings,
            own(clock),
        ))),
        Place::SharedMemory(_) | Place::Directory(_) => {
            Store::Lmdb(Arc::new(LocalStore::new(lmdb::Lmdb::open(&dsn.place, &settings)?, settings, own(clock))))
        }
        Place::Redis(server) => Store::Redis(Arc::new(redis::RedisStore::new((**server).clone(), settings, clock))),
    })
}

/// Reads the text of a stamp.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_stamp(text: &[u8]) -> Result<(), StoreError> {
    lmdb::read_stamp(text)
}

/// A store in memory, and a way to its rows that no caller of the engine has.
#[cfg(feature = "fuzzing")]
pub(crate) fn open_to_damage(settings: Settings, clock: Arc<dyn Clock>) -> Result<(Store, Damage), Error> {
    let rows = Memory::new(settings.limit(crate::settings::Limit::StoreBytes))?;
    let damage = rows.damage();
    Ok((Store::Memory(Arc::new(LocalStore::new(rows, settings, clock))), damage))
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
