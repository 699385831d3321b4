//! The stores that this process has open, by DSN and settings, so that opening one again is a look-up.
//!
//! A store is opened once in a process and never closed: the engine leaves behind what a fork made foreign, and the end of the
//! process closes the rest. The lock is not held while a store is opened, nor across a call into Zend.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use ext_php_rs::ffi::ext_php_rs_compiler_globals;
use mcp_state::{Engine, ErrorKind};

use crate::failure::Failure;
use crate::ini;

struct Open {
    dsn: String,
    options: String,
    engine: Engine,
}

static STORES: RwLock<Vec<Open>> = RwLock::new(Vec::new());

/// A store as the requests of one thread use it, one after the other. At its first use in a request, and after that once in a second
/// of a request that lasts, it is seen to that the store is still the one its name stands for.
pub(crate) struct Used {
    dsn: String,
    options: Rc<str>,
    engine: Engine,
    /// When it was seen to in this request.
    seen_to: Cell<Option<Instant>>,
}

impl Used {
    /// The store of `dsn` under the ini settings that `options` stand for.
    pub(crate) fn open(dsn: &str, options: Rc<str>) -> Result<Self, Failure> {
        let engine = open(dsn, &options)?;
        Ok(Self { dsn: dsn.to_owned(), options, engine, seen_to: Cell::new(Some(Instant::now())) })
    }

    /// Whether this is the store of `dsn` under these settings.
    pub(crate) fn is(&self, dsn: &str, options: &str) -> bool {
        self.dsn == dsn && *self.options == *options
    }

    /// The store, for what begins something new.
    pub(crate) fn current(&self) -> Result<&Engine, Failure> {
        let now = Instant::now();
        if self.seen_to.get().is_none_or(|seen_to| now.duration_since(seen_to) >= Duration::from_secs(1)) {
            self.engine.refresh()?;
            self.seen_to.set(Some(now));
        }
        Ok(&self.engine)
    }

    /// The store, for what goes on.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The request has ended: the next one sees to the store itself.
    pub(crate) fn end_request(&self) {
        self.seen_to.set(None);
    }
}

/// All stores that are open.
pub(crate) fn all() -> Vec<Engine> {
    STORES.read().unwrap_or_else(PoisonError::into_inner).iter().map(|open| open.engine.clone()).collect()
}

fn open(dsn: &str, options: &str) -> Result<Engine, Failure> {
    if preloading() {
        return Err(Failure::new(
            ErrorKind::StoreUnavailable,
            "no store can be opened during opcache.preload, which may run as another user and before PHP forks; open it in a request",
        ));
    }
    if let Some(engine) = find(dsn, options) {
        engine.refresh()?;
        return Ok(engine);
    }
    let engine = Engine::open_over(dsn, ini::settings(options)?)?;
    let mut stores = STORES.write().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have been faster; a memory store must be the same for both.
    if let Some(open) = stores.iter().find(|open| open.dsn == dsn && open.options == options) {
        return Ok(open.engine.clone());
    }
    stores.push(Open { dsn: dsn.to_owned(), options: options.to_owned(), engine: engine.clone() });
    Ok(engine)
}

fn find(dsn: &str, options: &str) -> Option<Engine> {
    let stores = STORES.read().unwrap_or_else(PoisonError::into_inner);
    stores.iter().find(|open| open.dsn == dsn && open.options == options).map(|open| open.engine.clone())
}

/// Whether the script of `opcache.preload` is running.
fn preloading() -> bool {
    /// `ZEND_COMPILE_PRELOAD` of PHP 8.1 to 8.6.
    const PRELOAD: u32 = 1 << 15;
    // SAFETY: the compiler's globals of this thread, which live as long as PHP does and which no other thread writes.
    unsafe { (*ext_php_rs_compiler_globals()).compiler_options & PRELOAD != 0 }
}
