//! A way to the rows of a store, for `fuzz/`: it changes what no caller can, as a damaged store would have it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::dsn::Dsn;
use crate::engine::Engine;
use crate::error::{Error, StoreError};
use crate::store;

/// Reads the text of a stamp: what a store's directory may hold under its name.
pub fn read_stamp(text: &[u8]) -> Result<(), StoreError> {
    store::read_stamp(text)
}

/// An engine in memory, whose rows can be changed behind its back.
pub struct Damageable {
    /// The engine.
    pub engine: Engine,
    rows: store::Damage,
}

impl Damageable {
    /// An empty store with the options of `dsn`, which is one of `memory://`.
    pub fn open(dsn: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let settings = Dsn::parse(dsn)?.settings;
        let (store, rows) = store::open_to_damage(settings.clone(), clock)?;
        Ok(Self { engine: Engine::over(store, settings, dsn), rows })
    }

    /// Changes the rows.
    pub fn change(&self, mut change: impl FnMut(&mut BTreeMap<Vec<u8>, Vec<u8>>)) {
        (self.rows)(&mut change);
    }
}
