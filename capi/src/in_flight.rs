//! The client's requests that are being served. Their ids are typed: the number 1 is not the text "1".

use std::ffi::c_char;

use mcp_state::{DuplicatePolicy, RequestCancellation};

use crate::border::{guard, handle, invalid, out, owner, request_id};
use crate::error::{mcp_state_error, mcp_state_status};
use crate::pending::mcp_state_cancel_outcome;
use crate::session::mcp_state_session;

/// The policy for a request whose id is already in flight.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_policy {
    /// Both are served, and each keeps its own answer (G6).
    MCP_STATE_POLICY_ISOLATE = 1,
    /// The second is refused.
    MCP_STATE_POLICY_REJECT = 2,
}

/// Registers a client's request that the owner serves.
///
/// `id_text`: the request's JSON-RPC id if that is a text; NULL: it is the number `id`. `policy`: MCP_STATE_POLICY_*.
/// `*out_begun`: false when a request with this id is in flight and the policy is to reject.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_begin_request(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    id_text: *const c_char,
    id_text_len: usize,
    policy: i32,
    out_begun: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_begun));
        let policy = match policy {
            policy if policy == mcp_state_policy::MCP_STATE_POLICY_ISOLATE as i32 => DuplicatePolicy::Isolate,
            policy if policy == mcp_state_policy::MCP_STATE_POLICY_REJECT as i32 => DuplicatePolicy::Reject,
            _ => return Err(invalid("policy", policy.to_string(), "it must be POLICY_ISOLATE or POLICY_REJECT")),
        };
        let id = request_id!(id, id_text, id_text_len);
        out.set(session.0.begin_request(&owner!(owner, owner_len), &id, policy)?);
        Ok(())
    })
}

/// Removes a client's request that the owner has served.
///
/// `id`, `id_text`: as of mcp_state_begin_request(). `*out_was_in_flight`: whether it was. `*out_cancelled`: whether the client
/// cancelled it meanwhile.
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_finish_request(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    id_text: *const c_char,
    id_text_len: usize,
    out_was_in_flight: *mut bool,
    out_cancelled: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let (was_in_flight, cancelled) = (out!(out_was_in_flight), out!(out_cancelled));
        let id = request_id!(id, id_text, id_text_len);
        let finished = session.0.finish_request(&owner!(owner, owner_len), &id)?;
        was_in_flight.set(finished.is_some());
        cancelled.set(finished.unwrap_or(false));
        Ok(())
    })
}

/// Whether the client has cancelled this request of the owner.
///
/// `id`, `id_text`: as of mcp_state_begin_request().
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_is_cancelled(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    id_text: *const c_char,
    id_text_len: usize,
    out_cancelled: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_cancelled));
        let id = request_id!(id, id_text, id_text_len);
        out.set(session.0.is_cancelled(&owner!(owner, owner_len), &id)?);
        Ok(())
    })
}

/// Cancels the only request in flight with this id and wakes its owner.
///
/// `id`, `id_text`: as of mcp_state_begin_request(). `*out_outcome`: MCP_STATE_CANCEL_CANCELLED, _UNKNOWN or _AMBIGUOUS.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_cancel_request(
    session: *const mcp_state_session,
    id: i64,
    id_text: *const c_char,
    id_text_len: usize,
    out_outcome: *mut mcp_state_cancel_outcome,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    use mcp_state_cancel_outcome::*;
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_outcome));
        out.set(match session.0.cancel_request(&request_id!(id, id_text, id_text_len))? {
            RequestCancellation::Cancelled(_) => MCP_STATE_CANCEL_CANCELLED,
            RequestCancellation::Unknown => MCP_STATE_CANCEL_UNKNOWN,
            RequestCancellation::Ambiguous => MCP_STATE_CANCEL_AMBIGUOUS,
        });
        Ok(())
    })
}
