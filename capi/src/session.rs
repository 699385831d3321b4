//! A session's life.

use std::ptr;

use serde_json::json;

use crate::border::{self, guard, handle, out};
use crate::buffer::mcp_state_buffer;
use crate::engine::numbers;
use crate::error::{mcp_state_error, mcp_state_status};

/// A session as one process holds it. Every operation of a session that was destroyed, has expired or was evicted fails with
/// MCP_STATE_SESSION_NOT_FOUND, also when a new session has taken its id (G7). To be freed with mcp_state_session_free(), which
/// does not end the session.
pub struct mcp_state_session(pub(crate) mcp_state::Session);

impl mcp_state_session {
    /// A handle for the caller, or NULL.
    pub(crate) fn give(session: Option<mcp_state::Session>) -> *mut Self {
        session.map_or(ptr::null_mut(), |session| border::give(Self(session)))
    }
}

/// Frees the handle of a session, or does nothing for NULL. The session and its owners continue to exist.
///
/// # Safety
///
/// The handle is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_session_free(session: *mut mcp_state_session) {
    // SAFETY: as documented.
    unsafe { border::free(session) }
}

/// The session's id, as in `Mcp-Session-Id`.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_session_id(
    session: *const mcp_state_session,
    out_id: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_id));
        out.set(border::give(session.0.id().to_owned().into()));
        Ok(())
    })
}

/// Renews the session: it expires after its idle time from now on.
///
/// `*out_there`: whether it still exists.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_touch(
    session: *const mcp_state_session,
    out_there: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_there));
        out.set(session.0.touch()?);
        Ok(())
    })
}

/// Destroys the session (G7) and wakes all its waiters.
///
/// `*out_ended`: whether it still existed.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_destroy_session(
    session: *const mcp_state_session,
    out_ended: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_ended));
        out.set(session.0.destroy()?);
        Ok(())
    })
}

/// Returns the contents of the session as a JSON object: `id`, `age_ms`, `idle_ms`, `ttl_ms`, `owners`, `exchanges`, `pending`,
/// `in_flight`, `queued`, `broadcasts`, `message_bytes`, `attribute_bytes`, and `late`, the late responses by reason. Names may
/// be added.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_session_stats(
    session: *const mcp_state_session,
    out_json: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_json));
        let stats = session.0.stats()?;
        let json = json!({
            "id": stats.id,
            "age_ms": stats.age_ms,
            "idle_ms": stats.idle_ms,
            "ttl_ms": stats.ttl_ms,
            "owners": stats.owners,
            "exchanges": stats.exchanges,
            "pending": stats.pending,
            "in_flight": stats.in_flight,
            "queued": stats.queued,
            "broadcasts": stats.broadcasts,
            "message_bytes": stats.message_bytes,
            "attribute_bytes": stats.attribute_bytes,
            "late": numbers(stats.late),
        });
        out.set(border::give(json.to_string().into()));
        Ok(())
    })
}
