//! A byte string that the library gives away.

use std::ptr;

use crate::border;

/// Bytes that the caller owns: UTF-8, no NUL at the end, NULs in it possible. To be freed with mcp_state_buffer_free().
pub struct mcp_state_buffer(Box<[u8]>);

impl From<String> for mcp_state_buffer {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into_boxed_slice())
    }
}

/// A handle for the caller, or NULL for nothing.
pub(crate) fn optional(text: Option<String>) -> *mut mcp_state_buffer {
    text.map_or(ptr::null_mut(), |text| border::give(text.into()))
}

/// The buffer's bytes, good until it is freed; NULL for a NULL buffer.
///
/// # Safety
///
/// The buffer is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_buffer_data(buffer: *const mcp_state_buffer) -> *const u8 {
    // SAFETY: as documented.
    unsafe { buffer.as_ref() }.map_or(ptr::null(), |buffer| buffer.0.as_ptr())
}

/// How many bytes the buffer has; 0 for a NULL buffer.
///
/// # Safety
///
/// The buffer is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_buffer_len(buffer: *const mcp_state_buffer) -> usize {
    // SAFETY: as documented.
    unsafe { buffer.as_ref() }.map_or(0, |buffer| buffer.0.len())
}

/// Frees a buffer; NULL is none.
///
/// # Safety
///
/// The buffer is NULL or was not freed, and no thread uses its bytes any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_buffer_free(buffer: *mut mcp_state_buffer) {
    // SAFETY: as documented.
    unsafe { border::free(buffer) }
}
