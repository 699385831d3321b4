//! Stores: each is opened once in a process and stays open, so that opening it again is a look-up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Instant;

use mcp_state::{Engine, NewSession};
use serde_json::{Map, Value, json};

use crate::border::{self, count, guard, handle, int, optional_span, optional_text, out, text};
use crate::buffer::mcp_state_buffer;
use crate::copies;
use crate::error::{Failure, mcp_state_error, mcp_state_status};
use crate::session::mcp_state_session;
use std::ffi::c_char;

/// A handle of an open store. To be freed with mcp_state_engine_free(); the store stays open.
pub struct mcp_state_engine(Arc<Open>);

struct Open {
    dsn: String,
    engine: Engine,
    /// When it was last seen to that the store is the one its name stands for: milliseconds after `START`.
    seen_to: AtomicU64,
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
static STORES: RwLock<Vec<Arc<Open>>> = RwLock::new(Vec::new());

impl mcp_state_engine {
    fn open(dsn: &str) -> Result<Self, Failure> {
        copies::check()?;
        if let Some(open) = find(&STORES.read().unwrap_or_else(PoisonError::into_inner), dsn) {
            open.see_to()?;
            return Ok(Self(open));
        }
        // No lock is held while a store is opened, which may take a while.
        let engine = Engine::open(dsn)?;
        let mut stores = STORES.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been faster; a memory store must be the same for both.
        if let Some(open) = find(&stores, dsn) {
            return Ok(Self(open));
        }
        let open = Arc::new(Open { dsn: dsn.to_owned(), engine, seen_to: AtomicU64::new(now()) });
        stores.push(open.clone());
        Ok(Self(open))
    }

    /// The store, for what begins something new: once in a second it is seen to that its name still stands for it.
    pub(crate) fn current(&self) -> Result<&Engine, Failure> {
        if now().saturating_sub(self.0.seen_to.load(Ordering::Relaxed)) >= 1000 {
            self.0.see_to()?;
        }
        Ok(&self.0.engine)
    }

    /// The store, for what goes on.
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }
}

impl Open {
    fn see_to(&self) -> Result<(), Failure> {
        self.engine.refresh()?;
        self.seen_to.store(now(), Ordering::Relaxed);
        Ok(())
    }
}

fn find(stores: &[Arc<Open>], dsn: &str) -> Option<Arc<Open>> {
    stores.iter().find(|open| open.dsn == dsn).cloned()
}

fn now() -> u64 {
    START.elapsed().as_millis() as u64
}

/// Opens the store that a DSN names, and makes the store if it does not exist: `shm://NAME`, `file:///DIRECTORY` or `memory://`,
/// with options as a query (`?ttl_ms=600000&max_sessions=500`). Handles of one process and DSN share one store, which stays open.
///
/// `*out_engine`: the store, to be freed with mcp_state_engine_free().
///
/// Fails with MCP_STATE_INVALID_DSN, MCP_STATE_STORE_UNAVAILABLE, MCP_STATE_STORE_INCOMPATIBLE, MCP_STATE_STORE_CORRUPT.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_engine_open(
    dsn: *const c_char,
    dsn_len: usize,
    out_engine: *mut *mut mcp_state_engine,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (dsn, out) = (text!("dsn", dsn, dsn_len), out!(out_engine));
        out.set(border::give(mcp_state_engine::open(dsn)?));
        Ok(())
    })
}

/// Frees the handle of a store, or does nothing for NULL. Sessions of the handle stay usable.
///
/// # Safety
///
/// The handle is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_engine_free(engine: *mut mcp_state_engine) {
    // SAFETY: as documented.
    unsafe { border::free(engine) }
}

/// Returns the DSN of the store.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_dsn(
    engine: *const mcp_state_engine,
    out_dsn: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_dsn));
        out.set(border::give(engine.engine().dsn().to_owned().into()));
        Ok(())
    })
}

/// Creates a session.
///
/// `id`: 1 to 255 visible ASCII characters; NULL: a random UUID. `ttl_ms`: the idle time after which the session expires; NULL:
/// the store's. `principal`: the caller that the session belongs to, and no other caller finds it (G12); NULL: every caller with
/// the id. `*out_session`: the session, to be freed with mcp_state_session_free(); NULL if a session has this id already, and
/// then nothing was changed.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED if the store has max_sessions and none can be evicted, and with MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_create_session(
    engine: *const mcp_state_engine,
    id: *const c_char,
    id_len: usize,
    ttl_ms: *const i64,
    principal: *const c_char,
    principal_len: usize,
    out_session: *mut *mut mcp_state_session,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_session));
        let new = NewSession {
            id: optional_text!("session id", id, id_len).map(str::to_owned),
            ttl_ms: optional_span!("session ttl", ttl_ms),
            principal: optional_text!("principal", principal, principal_len).map(str::to_owned),
        };
        out.set(mcp_state_session::give(engine.current()?.create_session(new)?));
        Ok(())
    })
}

/// Opens a session.
///
/// `principal`: the authenticated caller; NULL: an anonymous one. `*out_session`: the session, to be freed with
/// mcp_state_session_free(); NULL if it never existed, has expired, was destroyed, or belongs to another principal; the caller
/// cannot tell which (G12).
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_open_session(
    engine: *const mcp_state_engine,
    id: *const c_char,
    id_len: usize,
    principal: *const c_char,
    principal_len: usize,
    out_session: *mut *mut mcp_state_session,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_session));
        let (id, principal) = (text!("session id", id, id_len), optional_text!("principal", principal, principal_len));
        out.set(mcp_state_session::give(engine.current()?.open_session(id, principal)?));
        Ok(())
    })
}

/// The waiting room of the store: each exchange that waits for its client attaches to it (mcp_state_attach()) and detaches
/// afterwards. It is refused with MCP_STATE_LIMIT_EXCEEDED when `places` wait already. A place ends with its process, too. The
/// room is in no list of sessions, and nothing else is done with it.
///
/// `places`: how many may wait; NULL: the store's `max_waiting`. `*out_room`: to be freed with mcp_state_session_free(); NULL if
/// neither is set, and waiting exchanges are not counted.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_waiting_room(
    engine: *const mcp_state_engine,
    places: *const i64,
    out_room: *mut *mut mcp_state_session,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_room));
        let places = optional_span!("max_waiting", places);
        out.set(mcp_state_session::give(engine.current()?.waiting_room(places)?));
        Ok(())
    })
}

/// Removes at most `limit` expired sessions, and releases owners of dead processes in the sessions that it reads (G11).
///
/// `*out_sessions`, `*out_owners`: the numbers of both. `*out_more`: whether expired sessions are left.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_collect(
    engine: *const mcp_state_engine,
    limit: i64,
    out_sessions: *mut i64,
    out_owners: *mut i64,
    out_more: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let engine = handle!(engine);
        let (sessions, owners, more) = (out!(out_sessions), out!(out_owners), out!(out_more));
        let collected = engine.current()?.collect(count("limit", limit)?)?;
        sessions.set(int(collected.sessions));
        owners.set(int(collected.owners));
        more.set(collected.more);
        Ok(())
    })
}

/// Returns the contents and counters of the store as a JSON object: `sessions`, `used_bytes`, `limit_bytes`,
/// `waiting`, `max_waiting`; `counters` and `limits`, numbers
/// by name; `place`, texts by name. Names may be added.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_stats(
    engine: *const mcp_state_engine,
    out_json: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_json));
        let stats = engine.current()?.stats()?;
        let place: Map<_, _> =
            stats.place.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        let json = json!({
            "sessions": stats.sessions,
            "used_bytes": stats.used_bytes,
            "limit_bytes": stats.limit_bytes,
            "waiting": stats.waiting,
            "max_waiting": stats.max_waiting,
            "counters": numbers(stats.counters),
            "limits": numbers(stats.limits),
            "place": place,
        });
        out.set(border::give(json.to_string().into()));
        Ok(())
    })
}

/// The JSON object of names and numbers.
pub(crate) fn numbers(pairs: impl IntoIterator<Item = (&'static str, u64)>) -> Map<String, Value> {
    pairs.into_iter().map(|(name, number)| (name.to_owned(), Value::from(number))).collect()
}
