//! Owners: the exchanges that are being served; and waiting, which an owner does.

use std::ffi::c_char;
use std::time::Duration;

use mcp_state::{Interest, OwnerKind, WaitedFor};

use crate::border::{guard, handle, int, invalid, null, optional_span, out, owner, unsigned};
use crate::error::{Failure, mcp_state_error, mcp_state_status};
use crate::session::mcp_state_session;

/// Bytes that an owner's token takes, its NUL included: 32 hexadecimal digits.
pub const MCP_STATE_OWNER_SIZE: usize = 33;

/// The kind of an owner.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_owner_kind {
    /// A stream: it also takes the session's broadcasts.
    MCP_STATE_OWNER_STREAM = 1,
    /// One reply.
    MCP_STATE_OWNER_REPLY = 2,
}

/// The events that an owner waits for, to be combined by addition.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_interest {
    /// A pending request was answered, timed out or was cancelled.
    MCP_STATE_INTEREST_RESOLUTION = 1,
    /// A message is queued.
    MCP_STATE_INTEREST_MESSAGE = 2,
    /// The client cancelled a request in flight.
    MCP_STATE_INTEREST_CANCELLATION = 4,
}

/// The reason for the end of a wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_wait_outcome {
    /// One of the events happened.
    MCP_STATE_WAIT_READY = 1,
    /// The slice or the time passed.
    MCP_STATE_WAIT_DEADLINE = 2,
    /// The session has ended.
    MCP_STATE_WAIT_DESTROYED = 3,
    /// A signal arrived: handle it and wait again.
    MCP_STATE_WAIT_INTERRUPTED = 4,
}

/// Adds an owner: the exchange that this process serves. mcp_state_detach() ends the owner. If this process dies first, the engine
/// releases the owner after its lease.
///
/// `kind`: MCP_STATE_OWNER_*. `lease_ms`: the time without an operation after which the engine checks the process; NULL: the
/// store's. `out_owner`: a buffer of MCP_STATE_OWNER_SIZE bytes for the token and a NUL; `out_owner_size`: the size of the
/// buffer.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_attach(
    session: *const mcp_state_session,
    kind: i32,
    lease_ms: *const i64,
    out_owner: *mut c_char,
    out_owner_size: usize,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let kind = match kind {
            kind if kind == mcp_state_owner_kind::MCP_STATE_OWNER_STREAM as i32 => OwnerKind::Stream,
            kind if kind == mcp_state_owner_kind::MCP_STATE_OWNER_REPLY as i32 => OwnerKind::Reply,
            _ => return Err(invalid("owner kind", kind.to_string(), "it must be OWNER_STREAM or OWNER_REPLY")),
        };
        if out_owner.is_null() {
            return Err(null("out_owner"));
        }
        if out_owner_size < MCP_STATE_OWNER_SIZE {
            let reason = format!("it must be at least {MCP_STATE_OWNER_SIZE}");
            return Err(invalid("out_owner_size", out_owner_size.to_string(), reason));
        }
        let owner = session.0.attach(kind, optional_span!("lease", lease_ms))?.to_string();
        // SAFETY: writable for the size, which was tested; the token has 32 bytes.
        unsafe {
            out_owner.copy_from_nonoverlapping(owner.as_ptr().cast(), owner.len());
            out_owner.add(owner.len()).write(0);
        }
        Ok(())
    })
}

/// Renews the owner's lease, as each of its operations does.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_renew(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || Ok(handle!(session).0.renew(&owner!(owner, owner_len))?))
}

/// Ends the owner and removes its messages and pending requests. Later answers to these requests are discarded as abandoned (G4).
///
/// `*out_ended`: whether it had not ended before. `*out_dropped`, `*out_abandoned`: the numbers of removed messages and pending
/// requests.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_detach(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    out_ended: *mut bool,
    out_dropped: *mut i64,
    out_abandoned: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let (ended, dropped, abandoned) = (out!(out_ended), out!(out_dropped), out!(out_abandoned));
        let detached = session.0.detach(&owner!(owner, owner_len))?;
        ended.set(detached.is_some());
        dropped.set(detached.map_or(0, |detached| int(detached.dropped_messages)));
        abandoned.set(detached.map_or(0, |detached| int(detached.abandoned_pending)));
        Ok(())
    })
}

/// Waits for an event of `interest` that is newer than `after`: one slice, at most `wait_ms` and at most a second. Another thread
/// or process wakes the caller (G9). To be called in a loop with the cursor of the last call.
///
/// `interest`: the sum of MCP_STATE_INTEREST_*. `after`: the last wait's cursor, 0 at first. `*out_outcome`: the reason for the end.
/// `*out_cursor`: the new `after`.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_wait(
    session: *const mcp_state_session,
    owner: *const c_char,
    owner_len: usize,
    interest: i32,
    after: i64,
    wait_ms: i64,
    out_outcome: *mut mcp_state_wait_outcome,
    out_cursor: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    use mcp_state_wait_outcome::*;
    guard(error, || {
        let session = handle!(session);
        let (outcome, cursor) = (out!(out_outcome), out!(out_cursor));
        let (owner, interest) = (owner!(owner, owner_len), interests(interest)?);
        let (after, wait) = (unsigned("after", after)?, Duration::from_millis(unsigned("wait", wait_ms)?));
        let waited = session.0.wait_slice(&owner, interest, after, wait)?;
        outcome.set(match waited.outcome {
            WaitedFor::Ready => MCP_STATE_WAIT_READY,
            WaitedFor::Deadline => MCP_STATE_WAIT_DEADLINE,
            WaitedFor::Destroyed => MCP_STATE_WAIT_DESTROYED,
            WaitedFor::Interrupted => MCP_STATE_WAIT_INTERRUPTED,
        });
        cursor.set(int(waited.cursor));
        Ok(())
    })
}

fn interests(sum: i32) -> Result<Interest, Failure> {
    use mcp_state_interest::*;
    let all = [MCP_STATE_INTEREST_RESOLUTION, MCP_STATE_INTEREST_MESSAGE, MCP_STATE_INTEREST_CANCELLATION];
    let [resolution, message, cancellation] = all.map(|one| sum & one as i32 != 0);
    let known: i32 = all.iter().map(|&one| one as i32).sum();
    if sum & known == 0 || sum & !known != 0 {
        return Err(invalid("interest", sum.to_string(), "it must be a sum of INTEREST_*"));
    }
    Ok(Interest { resolution, message, cancellation })
}
