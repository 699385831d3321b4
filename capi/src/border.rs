//! What every exported function does first and last: arguments are tested and turned into Rust values, results are written, and
//! a panic becomes a status.
//!
//! The macros are the only way in; each names the argument in its error. Their `unsafe` rests on what the header asks of the
//! caller: a handle is NULL or came from this library and was not freed, a text is NULL or readable for its length, an
//! out-parameter is NULL or writable, for as long as the call lasts.

use std::any::Any;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::slice;

use mcp_state::{ErrorKind, InvalidArgument, OwnerToken, RequestId};

use crate::error::{Failure, mcp_state_error, mcp_state_status};

/// Runs the body of an exported function. A failure, or the panic that a bug raised, is described in `error` unless it is NULL.
pub(crate) fn guard(error: *mut mcp_state_error, body: impl FnOnce() -> Result<(), Failure>) -> mcp_state_status {
    match catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(&*panic))) {
        Ok(()) => mcp_state_status::MCP_STATE_OK,
        // SAFETY: NULL or writable, as the header asks.
        Err(failure) => unsafe { failure.describe(error) },
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(ErrorKind::Internal, format!("mcp-state has a bug: {}; please report this", text.unwrap_or("a panic")))
}

/// A handle argument, borrowed.
macro_rules! handle {
    ($handle:ident) => {
        // SAFETY: NULL or a handle that lives, see this module.
        unsafe { $handle.as_ref() }.ok_or_else(|| $crate::border::null(stringify!($handle)))?
    };
}

/// A text argument: UTF-8, not NULL.
macro_rules! text {
    ($what:literal, $text:ident, $length:ident) => {
        // SAFETY: NULL or readable for its length, see this module.
        unsafe { $crate::border::read_text($what, $text, $length) }?.ok_or_else(|| $crate::border::null($what))?
    };
}

/// A text argument that is absent when it is NULL.
macro_rules! optional_text {
    ($what:literal, $text:ident, $length:ident) => {
        // SAFETY: NULL or readable for its length, see this module.
        unsafe { $crate::border::read_text($what, $text, $length) }?
    };
}

/// An owner's token.
macro_rules! owner {
    ($text:ident, $length:ident) => {
        $crate::border::token($crate::border::text!("owner token", $text, $length))?
    };
}

/// The id of a client's request: the text unless it is NULL, else the number.
macro_rules! request_id {
    ($number:ident, $text:ident, $length:ident) => {
        $crate::border::typed_id($number, $crate::border::optional_text!("request id", $text, $length))
    };
}

/// A number of milliseconds behind a pointer, absent when that is NULL.
macro_rules! optional_span {
    ($what:literal, $span:ident) => {
        // SAFETY: NULL or readable, see this module.
        unsafe { $span.as_ref() }.map(|&span| $crate::border::unsigned($what, span)).transpose()?
    };
}

/// Where a result goes. Taken before anything is done, so that NULL changes nothing.
macro_rules! out {
    ($pointer:ident) => {
        // SAFETY: NULL or writable, see this module.
        unsafe { $crate::border::Out::new($pointer) }.ok_or_else(|| $crate::border::null(stringify!($pointer)))?
    };
}

pub(crate) use {handle, optional_span, optional_text, out, owner, request_id, text};

pub(crate) fn null(what: &'static str) -> Failure {
    invalid(what, "NULL", "a pointer to it is needed")
}

pub(crate) fn invalid(what: &'static str, value: impl Into<String>, reason: impl Into<String>) -> Failure {
    InvalidArgument::new(what, value.into(), reason).into()
}

/// The text at `data`, nothing when that is NULL.
///
/// # Safety
///
/// `data` is NULL or readable for `length` bytes, which nobody changes while the result is in use.
pub(crate) unsafe fn read_text<'a>(
    what: &'static str,
    data: *const c_char,
    length: usize,
) -> Result<Option<&'a str>, Failure> {
    if data.is_null() {
        return Ok(None);
    }
    if length > isize::MAX as usize {
        return Err(invalid(what, format!("of {length} bytes"), "no text is that long"));
    }
    // SAFETY: the caller's promise, and the length was tested.
    let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), length) };
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(invalid(what, String::from_utf8_lossy(bytes), "it must be UTF-8")),
    }
}

pub(crate) fn token(text: &str) -> Result<OwnerToken, Failure> {
    Ok(OwnerToken::parse(text)?)
}

pub(crate) fn typed_id(number: i64, text: Option<&str>) -> RequestId {
    text.map_or_else(|| RequestId::from(number), RequestId::from)
}

/// A number that must not be negative.
pub(crate) fn unsigned(what: &'static str, number: i64) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| invalid(what, number.to_string(), "it must not be negative"))
}

/// How many of something, at most.
pub(crate) fn count(what: &'static str, number: i64) -> Result<usize, Failure> {
    Ok(usize::try_from(unsigned(what, number)?).unwrap_or(usize::MAX))
}

/// A number as callers have it. What the engine counts stays far below the limit.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Where a result goes.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// # Safety
    ///
    /// `pointer` is NULL or writable until the result is dropped.
    pub(crate) unsafe fn new(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    pub(crate) fn set(self, value: T) {
        // SAFETY: writable, as `new` was promised. What was there is the caller's and may never have been set.
        unsafe { self.0.write(value) }
    }
}

/// A handle for the caller, who frees it.
pub(crate) fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Frees a handle; NULL is none.
///
/// # Safety
///
/// `handle` is NULL or came from [`give`] and was not freed.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(handle) });
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::mcp_state_status::*;
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    #[test]
    fn a_panic_does_not_cross_the_border() {
        let mut error = MaybeUninit::uninit();
        let status = guard(error.as_mut_ptr(), || panic!("on purpose"));
        // SAFETY: a failure is described in full.
        let error = unsafe { error.assume_init() };

        assert_eq!((MCP_STATE_INTERNAL, MCP_STATE_INTERNAL), (status, error.status));
        // SAFETY: the text ends with NUL.
        let text = unsafe { CStr::from_ptr(error.text.as_ptr()) };
        assert!(text.to_string_lossy().contains("on purpose"), "{text:?}");
    }

    #[test]
    fn nobody_needs_to_be_told() {
        assert_eq!(MCP_STATE_INTERNAL, guard(std::ptr::null_mut(), || panic!("on purpose")));
    }
}
