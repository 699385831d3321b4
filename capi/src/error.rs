//! Status numbers, and the one place where an error becomes one.

use std::ffi::c_char;

use mcp_state::{Error, ErrorKind, InvalidArgument, LimitExceeded};

/// What a function returns. The numbers never change meaning.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mcp_state_status {
    /// Done; the out-parameters are set.
    MCP_STATE_OK = 0,
    /// Correct the call: the text names the argument, its value and what is allowed.
    MCP_STATE_INVALID_ARGUMENT = 1,
    /// Correct the DSN.
    MCP_STATE_INVALID_DSN = 2,
    /// Refuse the client's request, or raise the limit.
    MCP_STATE_LIMIT_EXCEEDED = 3,
    /// The session was destroyed, has expired, was evicted, or belongs to another principal: answer 404.
    MCP_STATE_SESSION_NOT_FOUND = 4,
    /// The owner was released: attach again.
    MCP_STATE_OWNER_EXPIRED = 5,
    /// Answer 503; the text says what to repair.
    MCP_STATE_STORE_UNAVAILABLE = 6,
    /// Answer 503; operations that free space still succeed (G10).
    MCP_STATE_STORE_FULL = 7,
    /// Another version uses the store.
    MCP_STATE_STORE_INCOMPATIBLE = 8,
    /// The store's files are damaged.
    MCP_STATE_STORE_CORRUPT = 9,
    /// It is unknown whether the operation took effect: read the session before you repeat it.
    MCP_STATE_OUTCOME_UNKNOWN = 10,
    /// A bug of this library.
    MCP_STATE_INTERNAL = 11,
}

/// Bytes of a limit's name, its NUL included.
const LIMIT_SIZE: usize = 40;
/// Bytes of a text, its NUL included.
const TEXT_SIZE: usize = 1024;

/// The description of an error, in the caller's memory. A function that fails writes it; one that succeeds leaves it unchanged. It
/// need not be initialised.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mcp_state_error {
    /// What the function returned.
    pub status: mcp_state_status,
    /// With MCP_STATE_LIMIT_EXCEEDED, the limit; else 0.
    pub maximum: i64,
    /// With MCP_STATE_LIMIT_EXCEEDED, the value that would exceed it; else 0.
    pub actual: i64,
    /// With MCP_STATE_LIMIT_EXCEEDED, the limit's name as in a DSN (`max_message_bytes`); else empty. NUL-terminated.
    pub limit: [c_char; 40],
    /// One sentence that names the wrong value and says what to do: UTF-8, NUL-terminated, cut where it is too long.
    pub text: [c_char; 1024],
}

/// Why an operation failed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    text: String,
    limit: Option<LimitExceeded>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), limit: None }
    }

    /// Writes what went wrong to `error`, unless it is NULL.
    ///
    /// # Safety
    ///
    /// `error` is NULL or writable.
    pub(crate) unsafe fn describe(self, error: *mut mcp_state_error) -> mcp_state_status {
        let status = status(self.kind);
        if !error.is_null() {
            let (limit, maximum, actual) = match &self.limit {
                Some(limit) => (limit.limit.name(), limit.maximum, limit.actual),
                None => ("", 0, 0),
            };
            let [maximum, actual] = [maximum, actual].map(crate::border::int);
            let (limit, text) = (cut::<LIMIT_SIZE>(limit), cut::<TEXT_SIZE>(&self.text));
            // SAFETY: writable, as promised.
            unsafe { error.write(mcp_state_error { status, maximum, actual, limit, text }) };
        }
        status
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let limit = match &error {
            Error::Limit(limit) => Some(*limit),
            _ => None,
        };
        Self { kind: error.kind(), text: error.to_string(), limit }
    }
}

impl From<InvalidArgument> for Failure {
    fn from(error: InvalidArgument) -> Self {
        Error::from(error).into()
    }
}

fn status(kind: ErrorKind) -> mcp_state_status {
    use mcp_state_status::*;
    match kind {
        ErrorKind::InvalidArgument => MCP_STATE_INVALID_ARGUMENT,
        ErrorKind::InvalidDsn => MCP_STATE_INVALID_DSN,
        ErrorKind::LimitExceeded => MCP_STATE_LIMIT_EXCEEDED,
        ErrorKind::SessionNotFound => MCP_STATE_SESSION_NOT_FOUND,
        ErrorKind::OwnerExpired => MCP_STATE_OWNER_EXPIRED,
        ErrorKind::StoreUnavailable => MCP_STATE_STORE_UNAVAILABLE,
        ErrorKind::StoreFull => MCP_STATE_STORE_FULL,
        ErrorKind::StoreIncompatible => MCP_STATE_STORE_INCOMPATIBLE,
        ErrorKind::StoreCorrupt => MCP_STATE_STORE_CORRUPT,
        ErrorKind::OutcomeUnknown => MCP_STATE_OUTCOME_UNKNOWN,
        _ => MCP_STATE_INTERNAL,
    }
}

/// `text` with a NUL after it, cut between two characters if it has no room.
fn cut<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    const MORE: &str = "…";
    let mut cut = [0; SIZE];
    let (text, more) = match text.len() < SIZE {
        true => (text, ""),
        false => {
            let end = (0..SIZE - MORE.len()).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
            (&text[..end], MORE)
        }
    };
    for (to, byte) in cut.iter_mut().zip(text.bytes().chain(more.bytes()).filter(|&byte| byte != 0)) {
        *to = byte as c_char;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_the_numbers_of_error_kinds() {
        for number in 1..=11 {
            let kind = [
                ErrorKind::InvalidArgument,
                ErrorKind::InvalidDsn,
                ErrorKind::LimitExceeded,
                ErrorKind::SessionNotFound,
                ErrorKind::OwnerExpired,
                ErrorKind::StoreUnavailable,
                ErrorKind::StoreFull,
                ErrorKind::StoreIncompatible,
                ErrorKind::StoreCorrupt,
                ErrorKind::OutcomeUnknown,
                ErrorKind::Internal,
            ][number - 1];
            assert_eq!((number as i32, kind as i32), (status(kind) as i32, number as i32));
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_ends_with_nul() {
        let bytes = cut::<10>("ééééééé").map(|byte| byte as u8);
        assert_eq!("ééé…".as_bytes(), &bytes[..9]);
        assert_eq!(0, bytes[9]);
        assert_eq!(*b"123456789\0", cut::<10>("123456789").map(|byte| byte as u8));
    }
}
