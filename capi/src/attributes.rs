//! Attributes: JSON values under dotted keys.

use std::ffi::c_char;
use std::slice;

use crate::border::{self, guard, handle, invalid, null, optional_text, out, text};
use crate::buffer::{self, mcp_state_buffer};
use crate::error::{mcp_state_error, mcp_state_status};
use crate::session::mcp_state_session;

/// One change of mcp_state_patch().
#[repr(C)]
pub struct mcp_state_change {
    /// The dotted key.
    pub key: *const c_char,
    /// Bytes of the key.
    pub key_len: usize,
    /// The JSON text to set; NULL removes the key.
    pub json: *const c_char,
    /// Bytes of the JSON text.
    pub json_len: usize,
}

/// Reads an attribute: `client` is all that is stored under `client.…`, `client.name` just that.
///
/// `*out_json`: the value's JSON text, to be freed with mcp_state_buffer_free(); NULL when it is absent.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_get(
    session: *const mcp_state_session,
    key: *const c_char,
    key_len: usize,
    out_json: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_json));
        out.set(buffer::optional(session.0.attributes().get(text!("attribute key", key, key_len))?));
        Ok(())
    })
}

/// Reads all attributes of one moment.
///
/// `*out_json`: a JSON object, to be freed with mcp_state_buffer_free().
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_all(
    session: *const mcp_state_session,
    out_json: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_json));
        out.set(border::give(session.0.attributes().all()?.into()));
        Ok(())
    })
}

/// Sets an attribute to a JSON text. It replaces what is below the key, and never disturbs keys it does not name.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_set(
    session: *const mcp_state_session,
    key: *const c_char,
    key_len: usize,
    json: *const c_char,
    json_len: usize,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let (key, json) = (text!("attribute key", key, key_len), text!("attribute value", json, json_len));
        Ok(session.0.attributes().set(key, json)?)
    })
}

/// Removes an attribute and all below it.
///
/// `*out_removed`: whether there was anything.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_remove(
    session: *const mcp_state_session,
    key: *const c_char,
    key_len: usize,
    out_removed: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_removed));
        out.set(session.0.attributes().remove(text!("attribute key", key, key_len))?);
        Ok(())
    })
}

/// Reads an attribute and removes it, at once: of several callers one gets it.
///
/// `*out_json`: the value's JSON text, to be freed with mcp_state_buffer_free(); NULL when it was absent.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_take(
    session: *const mcp_state_session,
    key: *const c_char,
    key_len: usize,
    out_json: *mut *mut mcp_state_buffer,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_json));
        out.set(buffer::optional(session.0.attributes().take(text!("attribute key", key, key_len))?));
        Ok(())
    })
}

/// Sets an attribute unless it has a value that is not null.
///
/// `*out_put`: whether it was set.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_put_if_absent(
    session: *const mcp_state_session,
    key: *const c_char,
    key_len: usize,
    json: *const c_char,
    json_len: usize,
    out_put: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_put));
        let (key, json) = (text!("attribute key", key, key_len), text!("attribute value", json, json_len));
        out.set(session.0.attributes().put_if_absent(key, json)?);
        Ok(())
    })
}

/// Sets an attribute if its value equals `expected`, as JSON values.
///
/// `expected`: NULL: absent or null. `json`: the new value; NULL: remove it. `*out_set`: whether it did.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_compare_and_set(
    session: *const mcp_state_session,
    key: *const c_char,
    key_len: usize,
    expected: *const c_char,
    expected_len: usize,
    json: *const c_char,
    json_len: usize,
    out_set: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (session, out) = (handle!(session), out!(out_set));
        let key = text!("attribute key", key, key_len);
        let expected = optional_text!("expected value", expected, expected_len);
        let json = optional_text!("attribute value", json, json_len);
        out.set(session.0.attributes().compare_and_set(key, expected, json)?);
        Ok(())
    })
}

/// Applies several changes in order, all at once: others see none or all of them.
///
/// `changes`: an array of `count` changes; NULL when there are none.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, and then nothing was changed.
///
/// # Safety
///
/// As for all functions; `changes` is NULL or readable for `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_patch(
    session: *const mcp_state_session,
    changes: *const mcp_state_change,
    count: usize,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let session = handle!(session);
        let changes = match (changes.is_null(), count) {
            (_, 0) => &[],
            (true, _) => return Err(null("changes")),
            (false, count) if count > isize::MAX as usize / size_of::<mcp_state_change>() => {
                return Err(invalid("changes", format!("of {count} elements"), "no array is that long"));
            }
            // SAFETY: readable, as documented, and the count was tested.
            (false, count) => unsafe { slice::from_raw_parts(changes, count) },
        };
        let mut patch = Vec::with_capacity(changes.len());
        for &mcp_state_change { key, key_len, json, json_len } in changes {
            let (key, json) = (text!("attribute key", key, key_len), optional_text!("attribute value", json, json_len));
            patch.push((key, json));
        }
        Ok(session.0.attributes().patch(patch)?)
    })
}
