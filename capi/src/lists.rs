//! Lists that the caller owns: messages, requests, ids. Views borrow their elements.

use std::ptr;

use mcp_state::{Claim, Outgoing, PendingInfo};

use crate::border::{self, int};
use crate::pending::mcp_state_claim_state;

/// One message of a list.
#[repr(C)]
pub struct mcp_state_message {
    /// Its sequence number among the owner's messages, or its number in the topic.
    pub number: i64,
    /// The message: UTF-8, not NUL-terminated.
    pub text: *const u8,
    /// Bytes of the message.
    pub text_len: usize,
    /// What was kept with it; empty for a message of a topic.
    pub context: *const u8,
    /// Bytes of the context.
    pub context_len: usize,
}

/// Messages that the caller owns, in order. To be freed with mcp_state_messages_free().
pub struct mcp_state_messages {
    views: Vec<mcp_state_message>,
    /// What the views point into; a boxed text stays where it is.
    _texts: Vec<(Box<str>, Box<str>)>,
}

impl mcp_state_messages {
    pub(crate) fn new(messages: impl IntoIterator<Item = (u64, String, String)>) -> Self {
        let (mut views, mut texts) = (Vec::new(), Vec::new());
        for (number, text, context) in messages {
            let (text, context) = (text.into_boxed_str(), context.into_boxed_str());
            views.push(mcp_state_message {
                number: int(number),
                text: text.as_ptr(),
                text_len: text.len(),
                context: context.as_ptr(),
                context_len: context.len(),
            });
            texts.push((text, context));
        }
        Self { views, _texts: texts }
    }

    pub(crate) fn outgoing(messages: Vec<Outgoing>) -> Self {
        Self::new(messages.into_iter().map(|message| (message.sequence, message.message, message.context)))
    }
}

/// One pending request of a list.
#[repr(C)]
pub struct mcp_state_request {
    /// Its id.
    pub id: i64,
    /// What a claim by its owner would say now.
    pub state: mcp_state_claim_state,
    /// Milliseconds until its deadline, 0 unless it is waiting.
    pub left_ms: i64,
    /// Its method: UTF-8, not NUL-terminated.
    pub method: *const u8,
    /// Bytes of the method.
    pub method_len: usize,
}

/// Pending requests that the caller owns. To be freed with mcp_state_requests_free().
pub struct mcp_state_requests {
    views: Vec<mcp_state_request>,
    /// What the views point into; a boxed text stays where it is.
    _methods: Vec<Box<str>>,
}

impl mcp_state_requests {
    pub(crate) fn new(requests: Vec<PendingInfo>) -> Self {
        let (mut views, mut methods) = (Vec::new(), Vec::new());
        for request in requests {
            let method = request.method.into_boxed_str();
            let left = match request.state {
                Claim::Waiting(left) => left,
                _ => 0,
            };
            views.push(mcp_state_request {
                id: request.id,
                state: mcp_state_claim_state::of(&request.state),
                left_ms: int(left),
                method: method.as_ptr(),
                method_len: method.len(),
            });
            methods.push(method);
        }
        Self { views, _methods: methods }
    }
}

/// Ids of requests that the caller owns. To be freed with mcp_state_ids_free().
pub struct mcp_state_ids(pub(crate) Vec<i64>);

/// How many messages the list has; 0 for a NULL list.
///
/// # Safety
///
/// The list is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_messages_len(messages: *const mcp_state_messages) -> usize {
    // SAFETY: as documented.
    unsafe { messages.as_ref() }.map_or(0, |messages| messages.views.len())
}

/// The message at `index`, counted from 0, good until the list is freed; NULL beyond the end.
///
/// # Safety
///
/// The list is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_messages_at(
    messages: *const mcp_state_messages,
    index: usize,
) -> *const mcp_state_message {
    // SAFETY: as documented.
    unsafe { messages.as_ref() }.and_then(|messages| messages.views.get(index)).map_or(ptr::null(), ptr::from_ref)
}

/// Frees a list of messages; NULL is none.
///
/// # Safety
///
/// The list is NULL or was not freed, and no thread uses its elements any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_messages_free(messages: *mut mcp_state_messages) {
    // SAFETY: as documented.
    unsafe { border::free(messages) }
}

/// How many requests the list has; 0 for a NULL list.
///
/// # Safety
///
/// The list is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_requests_len(requests: *const mcp_state_requests) -> usize {
    // SAFETY: as documented.
    unsafe { requests.as_ref() }.map_or(0, |requests| requests.views.len())
}

/// The request at `index`, counted from 0, good until the list is freed; NULL beyond the end.
///
/// # Safety
///
/// The list is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_requests_at(
    requests: *const mcp_state_requests,
    index: usize,
) -> *const mcp_state_request {
    // SAFETY: as documented.
    unsafe { requests.as_ref() }.and_then(|requests| requests.views.get(index)).map_or(ptr::null(), ptr::from_ref)
}

/// Frees a list of requests; NULL is none.
///
/// # Safety
///
/// The list is NULL or was not freed, and no thread uses its elements any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_requests_free(requests: *mut mcp_state_requests) {
    // SAFETY: as documented.
    unsafe { border::free(requests) }
}

/// The ids, good until the list is freed; NULL for a NULL list.
///
/// # Safety
///
/// The list is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_ids_data(ids: *const mcp_state_ids) -> *const i64 {
    // SAFETY: as documented.
    unsafe { ids.as_ref() }.map_or(ptr::null(), |ids| ids.0.as_ptr())
}

/// How many ids the list has; 0 for a NULL list.
///
/// # Safety
///
/// The list is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_ids_len(ids: *const mcp_state_ids) -> usize {
    // SAFETY: as documented.
    unsafe { ids.as_ref() }.map_or(0, |ids| ids.0.len())
}

/// Frees a list of ids; NULL is none.
///
/// # Safety
///
/// The list is NULL or was not freed, and no thread uses its elements any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_ids_free(ids: *mut mcp_state_ids) {
    // SAFETY: as documented.
    unsafe { border::free(ids) }
}
