//! Requests to the client, and its answers.

use std::ffi::c_char;

use mcp_state::{Cancellation, Claim, Delivery, LateReason};

use crate::border::{self, guard, handle, int, out, owner, text, unsigned};
use crate::buffer::{self, mcp_state_buffer};
use crate::error::{Failure, mcp_state_error, mcp_state_status};
use crate::lists::{mcp_state_ids, mcp_state_requests};
use crate::session::mcp_state_session;

/// In place of a question's time: the store's `request_timeout_ms`.
pub const MCP_STATE_TIMEOUT_OF_STORE: i64 = -1;

/// The state of a pending request.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_claim_state {
    /// Answered in time.
    MCP_STATE_CLAIM_ANSWERED = 1,
    /// Its deadline has not passed.
    MCP_STATE_CLAIM_WAITING = 2,
    /// Its deadline passed without an answer.
    MCP_STATE_CLAIM_TIMED_OUT = 3,
    /// Its owner cancelled it.
    MCP_STATE_CLAIM_CANCELLED = 4,
    /// It belongs to another owner.
    MCP_STATE_CLAIM_NOT_OWNER = 5,
    /// No request has this id, or it was claimed.
    MCP_STATE_CLAIM_UNKNOWN = 6,
}

impl mcp_state_claim_state {
    pub(crate) fn of(claim: &Claim) -> Self {
        use mcp_state_claim_state::*;
        match claim {
            Claim::Answered(_) => MCP_STATE_CLAIM_ANSWERED,
            Claim::Waiting(_) => MCP_STATE_CLAIM_WAITING,
            Claim::TimedOut => MCP_STATE_CLAIM_TIMED_OUT,
            Claim::Cancelled => MCP_STATE_CLAIM_CANCELLED,
            Claim::NotOwner => MCP_STATE_CLAIM_NOT_OWNER,
            Claim::Unknown => MCP_STATE_CLAIM_UNKNOWN,
        }
    }
}

/// The result of a delivery: delivered, or late and discarded (G4).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_delivery {
    /// Its request was waiting, and its owner is woken.
    MCP_STATE_DELIVERED = 0,
    /// No request had this id.
    MCP_STATE_LATE_UNKNOWN = 1,
    /// Its request was claimed.
    MCP_STATE_LATE_FINISHED = 2,
    /// Its request has timed out.
    MCP_STATE_LATE_TIMED_OUT = 3,
    /// Its request has an answer; the first one counts.
    MCP_STATE_LATE_ALREADY_ANSWERED = 4,
    /// Its request was cancelled.
    MCP_STATE_LATE_CANCELLED = 5,
    /// Its request's owner has ended.
    MCP_STATE_LATE_ABANDONED = 6,
}

/// The result of a cancellation, of a pending request or of one in flight.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_cancel_outcome {
    /// It is cancelled now.
    MCP_STATE_CANCEL_CANCELLED = 1,
    /// No request has this id.
    MCP_STATE_CANCEL_UNKNOWN = 2,
    /// Several requests in flight have this id; none was touched.
    MCP_STATE_CANCEL_AMBIGUOUS = 3,
    /// It has an answer, to be claimed.
    MCP_STATE_CANCEL_ALREADY_ANSWERED = 4,
    /// It has timed out.
    MCP_STATE_CANCEL_TIMED_OUT = 5,
    /// It belongs to another owner.
    MCP_STATE_CANCEL_NOT_OWNER = 6,
    /// It was cancelled before.
    MCP_STATE_CANCEL_ALREADY_CANCELLED = 7,
}

/// Returns an integer that no other request of this session has, in any process (G5).
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_next_request_id(
    session: *const mcp_state_session,
    out_id: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_id));
        out.set(session.0.next_request_id()?);
        Ok(())
    })
}

/// Registers a request that is sent by other means.
///
/// `id`: best from mcp_state_next_request_id(). `timeout_ms`: after which it times out and its answer is late;
/// MCP_STATE_TIMEOUT_OF_STORE: the store's `request_timeout_ms`. `method`: for display, may be empty. `*out_registered`: false
/// when a pending request has this id. `*out_left_ms`: the time it has, else 0.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_register_pending(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    timeout_ms: i64,
    method: *const c_char,
    method_len: usize,
    out_registered: *mut bool,
    out_left_ms: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let (registered, left) = (out!(out_registered), out!(out_left_ms));
        let (timeout, method) = (timeout(session, timeout_ms)?, text!("method", method, method_len));
        let until = session.0.register_pending(&owner!(owner, owner_len), id, timeout, method)?;
        registered.set(until.is_some());
        left.set(until.map_or(0, int));
        Ok(())
    })
}

/// Gives a JSON-RPC request an id, registers it and queues it, all at once.
///
/// `message`: a JSON object without `id`. `timeout_ms`: after which it times out and its answer is late;
/// MCP_STATE_TIMEOUT_OF_STORE: the store's `request_timeout_ms`. `context`: kept with the message, may be empty. `*out_id`: the id.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_send_request(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    message: *const c_char,
    message_len: usize,
    timeout_ms: i64,
    context: *const c_char,
    context_len: usize,
    out_id: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_id));
        let (message, context) = (text!("message", message, message_len), text!("context", context, context_len));
        let timeout = timeout(session, timeout_ms)?;
        out.set(session.0.send_request(&owner!(owner, owner_len), message, context, timeout)?);
        Ok(())
    })
}

/// Delivers the client's response to the pending request with this id and wakes its owner, or discards a late response (G4).
///
/// `*out_delivery`: delivered, or the reason why it is late.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_deliver_response(
    session: *const mcp_state_session,
    id: i64,
    payload: *const c_char,
    payload_len: usize,
    out_delivery: *mut mcp_state_delivery,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    use mcp_state_delivery::*;
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_delivery));
        out.set(match session.0.deliver_response(id, text!("response", payload, payload_len))? {
            Delivery::Delivered => MCP_STATE_DELIVERED,
            Delivery::Late(LateReason::Unknown) => MCP_STATE_LATE_UNKNOWN,
            Delivery::Late(LateReason::Finished) => MCP_STATE_LATE_FINISHED,
            Delivery::Late(LateReason::TimedOut) => MCP_STATE_LATE_TIMED_OUT,
            Delivery::Late(LateReason::AlreadyAnswered) => MCP_STATE_LATE_ALREADY_ANSWERED,
            Delivery::Late(LateReason::Cancelled) => MCP_STATE_LATE_CANCELLED,
            Delivery::Late(LateReason::Abandoned) => MCP_STATE_LATE_ABANDONED,
        });
        Ok(())
    })
}

/// Returns the state of the owner's request. Answered, timed out and cancelled ones are removed, response and request together (G2).
///
/// `*out_state`: the state. `*out_payload`: the response if it was answered, to be freed with mcp_state_buffer_free(), else
/// NULL. `*out_left_ms`: the time it has left while waiting, else 0.
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_claim(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    out_state: *mut mcp_state_claim_state,
    out_payload: *mut *mut mcp_state_buffer,
    out_left_ms: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let (state, payload, left) = (out!(out_state), out!(out_payload), out!(out_left_ms));
        let claim = session.0.claim(&owner!(owner, owner_len), id)?;
        state.set(mcp_state_claim_state::of(&claim));
        left.set(match claim {
            Claim::Waiting(left) => int(left),
            _ => 0,
        });
        payload.set(buffer::optional(answer(claim)));
        Ok(())
    })
}

/// Removes and returns the owner's next request that was answered, timed out or was cancelled (G2).
///
/// `*out_found`: whether there was one. `*out_id`, `*out_state`, `*out_payload`: as of mcp_state_claim(); without one, 0,
/// MCP_STATE_CLAIM_UNKNOWN and NULL.
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_claim_any(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    out_found: *mut bool,
    out_id: *mut i64,
    out_state: *mut mcp_state_claim_state,
    out_payload: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let (found, id, state, payload) = (out!(out_found), out!(out_id), out!(out_state), out!(out_payload));
        let resolved = session.0.claim_any(&owner!(owner, owner_len))?;
        found.set(resolved.is_some());
        id.set(resolved.as_ref().map_or(0, |resolved| resolved.id));
        let claim = resolved.map_or(Claim::Unknown, |resolved| resolved.claim);
        state.set(mcp_state_claim_state::of(&claim));
        payload.set(buffer::optional(answer(claim)));
        Ok(())
    })
}

/// Removes the owner's requests whose deadline has passed.
///
/// `*out_ids`: their ids, to be freed with mcp_state_ids_free().
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_resolve_timeouts(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    out_ids: *mut *mut mcp_state_ids,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_ids));
        let ids = session.0.resolve_timeouts(&owner!(owner, owner_len))?;
        out.set(border::give(mcp_state_ids(ids)));
        Ok(())
    })
}

/// Cancels the owner's request: a response that comes now is late.
///
/// `*out_outcome`: MCP_STATE_CANCEL_CANCELLED, _UNKNOWN, _ALREADY_ANSWERED, _TIMED_OUT, _ALREADY_CANCELLED or _NOT_OWNER.
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_cancel_pending(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    out_outcome: *mut mcp_state_cancel_outcome,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    use mcp_state_cancel_outcome::*;
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_outcome));
        out.set(match session.0.cancel_pending(&owner!(owner, owner_len), id)? {
            Cancellation::Cancelled => MCP_STATE_CANCEL_CANCELLED,
            Cancellation::Unknown => MCP_STATE_CANCEL_UNKNOWN,
            Cancellation::AlreadyAnswered => MCP_STATE_CANCEL_ALREADY_ANSWERED,
            Cancellation::TimedOut => MCP_STATE_CANCEL_TIMED_OUT,
            Cancellation::NotOwner => MCP_STATE_CANCEL_NOT_OWNER,
            Cancellation::AlreadyCancelled => MCP_STATE_CANCEL_ALREADY_CANCELLED,
        });
        Ok(())
    })
}

/// Returns the pending requests of an owner, or of the session.
///
/// `owner`: NULL: all owners. `*out_requests`: to be freed with mcp_state_requests_free().
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_pending(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    out_requests: *mut *mut mcp_state_requests,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_requests));
        let requests = match owner.is_null() {
            true => session.0.pending(None)?,
            false => session.0.pending(Some(&owner!(owner, owner_len)))?,
        };
        out.set(border::give(mcp_state_requests::new(requests)));
        Ok(())
    })
}

/// Returns the response to the owner's request, without claiming it.
///
/// `*out_payload`: to be freed with mcp_state_buffer_free(); NULL if the request has no response.
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_peek_response(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    id: i64,
    out_payload: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_payload));
        out.set(buffer::optional(session.0.peek_response(&owner!(owner, owner_len), id)?));
        Ok(())
    })
}

fn timeout(session: &mcp_state_session, timeout_ms: i64) -> Result<u64, Failure> {
    let given = match timeout_ms {
        MCP_STATE_TIMEOUT_OF_STORE => None,
        timeout_ms => Some(unsigned("timeout", timeout_ms)?),
    };
    Ok(session.0.engine().question_timeout_ms(given))
}

fn answer(claim: Claim) -> Option<String> {
    match claim {
        Claim::Answered(payload) => Some(payload),
        _ => None,
    }
}
