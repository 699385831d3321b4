//! The notification bus, and keys that are used once.

use std::ffi::c_char;
use std::time::Duration;

use crate::border::{self, count, guard, handle, int, out, text, unsigned};
use crate::engine::mcp_state_engine;
use crate::error::{mcp_state_error, mcp_state_status};
use crate::lists::mcp_state_messages;

/// Appends a message to a topic and wakes its readers in all processes. The topic keeps a bounded number of messages
/// and drops the oldest.
///
/// `*out_number`: the message's number; those of one topic rise by one.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_publish(
    engine: *const mcp_state_engine,
    topic: *const c_char,
    topic_len: usize,
    message: *const c_char,
    message_len: usize,
    out_number: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_number));
        let (topic, message) = (text!("topic", topic, topic_len), text!("message", message, message_len));
        out.set(int(engine.current()?.publish(topic, message)?));
        Ok(())
    })
}

/// Returns the cursor of a new reader of a topic.
///
/// `*out_cursor`: the number of its newest message, 0 for an empty topic.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_cursor(
    engine: *const mcp_state_engine,
    topic: *const c_char,
    topic_len: usize,
    out_cursor: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_cursor));
        out.set(int(engine.current()?.cursor(text!("topic", topic, topic_len))?));
        Ok(())
    })
}

/// Messages of a topic after `cursor`, at most `max`, oldest first: the same in the same order for all readers. None is removed.
///
/// `*out_messages`: to be freed with mcp_state_messages_free(). `*out_cursor`: from where to read on. `*out_missed`: how many
/// were dropped before this reader saw them.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_since(
    engine: *const mcp_state_engine,
    topic: *const c_char,
    topic_len: usize,
    cursor: i64,
    max: i64,
    out_messages: *mut *mut mcp_state_messages,
    out_cursor: *mut i64,
    out_missed: *mut i64,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let engine = handle!(engine);
        let (messages, next, missed) = (out!(out_messages), out!(out_cursor), out!(out_missed));
        let (topic, cursor, max) = (text!("topic", topic, topic_len), unsigned("cursor", cursor)?, count("max", max)?);
        let entries = engine.current()?.since(topic, cursor, max)?;
        messages.set(border::give(mcp_state_messages::new(
            entries.messages.into_iter().map(|(number, message)| (number, message, String::new())),
        )));
        next.set(int(entries.cursor));
        missed.set(int(entries.missed));
        Ok(())
    })
}

/// Waits for a message of a topic after `cursor`: one slice, at most `wait_ms` and at most a second. To be called in a loop. A
/// signal ends it.
///
/// `*out_there`: whether a message was found.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_wait_since(
    engine: *const mcp_state_engine,
    topic: *const c_char,
    topic_len: usize,
    cursor: i64,
    wait_ms: i64,
    out_there: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_there));
        let (topic, cursor) = (text!("topic", topic, topic_len), unsigned("cursor", cursor)?);
        let wait = Duration::from_millis(unsigned("wait", wait_ms)?);
        out.set(engine.engine().wait_since(topic, cursor, wait)?);
        Ok(())
    })
}

/// Marks a single-use key, such as a nonce, as used.
///
/// `*out_first`: true for exactly one caller within `ttl_ms`, among all processes.
///
/// Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
///
/// # Safety
///
/// As for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcp_state_consume_once(
    engine: *const mcp_state_engine,
    key: *const c_char,
    key_len: usize,
    ttl_ms: i64,
    out_first: *mut bool,
    error: *mut mcp_state_error,
) -> mcp_state_status {
    guard(error, || {
        let (engine, out) = (handle!(engine), out!(out_first));
        let (key, ttl) = (text!("key", key, key_len), unsigned("ttl", ttl_ms)?);
        out.set(engine.current()?.consume_once(key, ttl)?);
        Ok(())
    })
}
