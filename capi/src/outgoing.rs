//! Messages on their way to the client.

use std::ffi::c_char;

use crate::border::{self, count, guard, handle, int, out, owner, text, unsigned};
use crate::error::{mcp_state_error, mcp_state_status};
use crate::lists::mcp_state_messages;
use crate::session::mcp_state_session;

/// Queues a message that only this owner can take (G3).
///
/// `context`: kept with the message, may be empty. `*out_sequence`: its number among the owner's messages.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_enqueue_outgoing(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    message: *const c_char,
    message_len: usize,
    context: *const c_char,
    context_len: usize,
    out_sequence: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_sequence));
        let (message, context) = (text!("message", message, message_len), text!("context", context, context_len));
        out.set(int(session.0.enqueue_outgoing(&owner!(owner, owner_len), message, context)?));
        Ok(())
    })
}

/// Removes and returns the owner's next messages, at most `max`. Each is delivered at most once: a process that dies before it has
/// written its messages loses them. A stream also gets the session's broadcasts.
///
/// `*out_messages`: to be freed with mcp_state_messages_free().
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_take_outgoing(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    max: i64,
    out_messages: *mut *mut mcp_state_messages,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_messages));
        let messages = session.0.take_outgoing(&owner!(owner, owner_len), count("max", max)?)?;
        out.set(border::give(mcp_state_messages::outgoing(messages)));
        Ok(())
    })
}

/// Returns the same messages and keeps them until mcp_state_acknowledge(), so each is delivered at least once. The owner also
/// reserves broadcasts, which return to the session if the owner ends without acknowledging them.
///
/// `*out_messages`: to be freed with mcp_state_messages_free().
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_peek_outgoing(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    max: i64,
    out_messages: *mut *mut mcp_state_messages,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_messages));
        let messages = session.0.peek_outgoing(&owner!(owner, owner_len), count("max", max)?)?;
        out.set(border::give(mcp_state_messages::outgoing(messages)));
        Ok(())
    })
}

/// Removes the owner's messages up to and with number `up_to`.
///
/// `*out_removed`: how many.
///
/// Fails with MCP_STATE_OWNER_EXPIRED.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_acknowledge(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    up_to: i64,
    out_removed: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_removed));
        let up_to = unsigned("sequence number", up_to)?;
        out.set(int(session.0.acknowledge(&owner!(owner, owner_len), up_to)?));
        Ok(())
    })
}

/// Queues a message for the first stream owner that takes it.
///
/// `context`: kept with the message, may be empty. `*out_number`: its number among the broadcasts.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_enqueue_broadcast(
    session: *const mcp_state_session,
    message: *const c_char,
    message_len: usize,
    context: *const c_char,
    context_len: usize,
    out_number: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_number));
        let (message, context) = (text!("message", message, message_len), text!("context", context, context_len));
        out.set(int(session.0.enqueue_broadcast(message, context)?));
        Ok(())
    })
}
