//! The C ABI as its callers see it: what goes in wrongly comes back as a status, what comes out is the caller's to free.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use mcp_state_capi::mcp_state_status::*;
use mcp_state_capi::*;

/// A text as C passes it.
macro_rules! pair {
    ($text:expr) => {{
        let text: &[u8] = $text.as_ref();
        (text.as_ptr().cast::<c_char>(), text.len())
    }};
}

/// Calls a function with room for an error after its arguments: its status, and the text of the error.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let mut error = MaybeUninit::<mcp_state_error>::uninit();
        // SAFETY: the tests pass handles that live, texts that outlive the call, and places for results.
        let status = unsafe { $function($($argument,)* error.as_mut_ptr()) };
        // SAFETY: written when the function fails, its text ends with NUL.
        let text = (status != MCP_STATE_OK).then(|| unsafe {
            let error = error.assume_init_ref();
            assert_eq!(status, error.status);
            CStr::from_ptr(error.text.as_ptr()).to_string_lossy().into_owned()
        });
        (status, text.unwrap_or_default())
    }};
}

macro_rules! ok {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let (status, text) = call!($function($($argument),*));
        assert_eq!(MCP_STATE_OK, status, "{text}");
    }};
}

/// A store of its own, a session, and an owner.
struct Fixture {
    engine: *mut mcp_state_engine,
    session: *mut mcp_state_session,
    owner: [c_char; MCP_STATE_OWNER_SIZE],
}

impl Fixture {
    fn new(name: &str) -> Self {
        let (dsn, mut engine, mut session) =
            (format!("memory://?ttl_ms={}", 1_000_000 + name.len()), null_mut(), null_mut());
        let (dsn, dsn_len) = pair!(dsn);
        ok!(mcp_state_engine_open(dsn, dsn_len, &raw mut engine));
        ok!(mcp_state_create_session(engine, null(), 0, null(), null(), 0, &raw mut session));
        let mut owner = [1; MCP_STATE_OWNER_SIZE];
        ok!(mcp_state_attach(session, 1, null(), owner.as_mut_ptr(), owner.len()));
        assert_eq!(0, owner[32]);
        Self { engine, session, owner }
    }

    fn owner(&self) -> *const c_char {
        self.owner.as_ptr()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // SAFETY: both live and are not used any more.
        unsafe {
            mcp_state_session_free(self.session);
            mcp_state_engine_free(self.engine);
        }
    }
}

fn bytes(buffer: *mut mcp_state_buffer) -> Option<Vec<u8>> {
    if buffer.is_null() {
        return None;
    }
    // SAFETY: a buffer that lives, freed once.
    unsafe {
        let length = mcp_state_buffer_len(buffer);
        let bytes = std::slice::from_raw_parts(mcp_state_buffer_data(buffer), length).to_vec();
        mcp_state_buffer_free(buffer);
        Some(bytes)
    }
}

#[test]
fn a_question_and_its_answer() {
    let f = Fixture::new("question");
    let (message, message_len) = pair!(r#"{"method":"ask"}"#);
    let (context, context_len) = pair!("to the left");
    let (mut id, mut messages) = (0, null_mut());
    ok!(mcp_state_send_request(
        f.session,
        f.owner(),
        32,
        message,
        message_len,
        60_000,
        context,
        context_len,
        &raw mut id
    ));
    ok!(mcp_state_take_outgoing(f.session, f.owner(), 32, 10, &raw mut messages));
    // SAFETY: the list lives until it is freed at the end of the block.
    unsafe {
        assert_eq!(1, mcp_state_messages_len(messages));
        let sent = &*mcp_state_messages_at(messages, 0);
        let text = std::slice::from_raw_parts(sent.text, sent.text_len);
        let context = std::slice::from_raw_parts(sent.context, sent.context_len);
        assert!(String::from_utf8_lossy(text).contains(&format!("\"id\":{id}")));
        assert_eq!(b"to the left", context);
        assert!(mcp_state_messages_at(messages, 1).is_null());
        mcp_state_messages_free(messages);
    }

    let (answer, answer_len) = pair!("\"a\0b\"");
    let mut delivery = mcp_state_delivery::MCP_STATE_LATE_UNKNOWN;
    ok!(mcp_state_deliver_response(f.session, id, answer, answer_len, &raw mut delivery));
    assert_eq!(mcp_state_delivery::MCP_STATE_DELIVERED, delivery);
    let (mut state, mut payload, mut left) = (mcp_state_claim_state::MCP_STATE_CLAIM_UNKNOWN, null_mut(), 7);
    ok!(mcp_state_claim(f.session, f.owner(), 32, id, &raw mut state, &raw mut payload, &raw mut left));
    assert_eq!((mcp_state_claim_state::MCP_STATE_CLAIM_ANSWERED, 0), (state, left));
    assert_eq!(Some(b"\"a\0b\"".to_vec()), bytes(payload));
    ok!(mcp_state_deliver_response(f.session, id, answer, answer_len, &raw mut delivery));
    assert_eq!(mcp_state_delivery::MCP_STATE_LATE_FINISHED, delivery);
}

#[test]
fn pending_requests_are_listed_with_their_methods() {
    let f = Fixture::new("pending");
    let (method, method_len) = pair!("elicitation/create");
    let (mut registered, mut left, mut requests) = (false, 0, null_mut());
    ok!(mcp_state_register_pending(
        f.session,
        f.owner(),
        32,
        7,
        60_000,
        method,
        method_len,
        &raw mut registered,
        &raw mut left
    ));
    assert_eq!((true, 60_000), (registered, left));
    ok!(mcp_state_register_pending(
        f.session,
        f.owner(),
        32,
        7,
        60_000,
        method,
        method_len,
        &raw mut registered,
        &raw mut left
    ));
    assert_eq!((false, 0), (registered, left));
    ok!(mcp_state_pending(f.session, null(), 0, &raw mut requests));
    // SAFETY: the list lives until it is freed at the end of the block.
    unsafe {
        assert_eq!(1, mcp_state_requests_len(requests));
        let request = &*mcp_state_requests_at(requests, 0);
        assert_eq!((7, mcp_state_claim_state::MCP_STATE_CLAIM_WAITING), (request.id, request.state));
        assert!((1..=60_000).contains(&request.left_ms));
        assert_eq!(b"elicitation/create", std::slice::from_raw_parts(request.method, request.method_len));
        assert!(mcp_state_requests_at(requests, 1).is_null());
        mcp_state_requests_free(requests);
    }
}

#[test]
fn a_patch_is_applied_at_once_or_not_at_all() {
    let f = Fixture::new("patch");
    let change = |key: &'static str, json: Option<&'static str>| {
        let ((key, key_len), (json, json_len)) = (pair!(key), json.map_or((null(), 0), |json| pair!(json)));
        mcp_state_change { key, key_len, json, json_len }
    };
    let get = |key: &str| {
        let ((key, key_len), mut json) = (pair!(key), null_mut());
        ok!(mcp_state_get(f.session, key, key_len, &raw mut json));
        bytes(json)
    };
    let changes = [change("a.b", Some("1")), change("c", Some("[2]")), change("a", None)];
    ok!(mcp_state_patch(f.session, changes.as_ptr(), changes.len()));
    assert_eq!((None, Some(b"[2]".to_vec())), (get("a.b"), get("c")));
    ok!(mcp_state_patch(f.session, null(), 0));

    let half = [change("c", Some("3")), change("d", Some("{"))];
    let (status, text) = call!(mcp_state_patch(f.session, half.as_ptr(), half.len()));
    assert_eq!(MCP_STATE_INVALID_ARGUMENT, status, "{text}");
    assert_eq!(Some(b"[2]".to_vec()), get("c"));
}

#[test]
fn a_null_handle_or_text_is_an_invalid_argument_that_names_it() {
    let f = Fixture::new("null");
    let (mut there, mut id) = (true, 0);
    let mut engine = null_mut();
    let ((message, message_len), empty) = (pair!("{}"), pair!(""));
    for (call, name) in [
        (call!(mcp_state_engine_open(null(), 0, &raw mut engine)), "dsn"),
        (call!(mcp_state_touch(null(), &raw mut there)), "session"),
        (call!(mcp_state_cursor(null(), message, message_len, &raw mut id)), "engine"),
        (call!(mcp_state_renew(f.session, null(), 32)), "owner token"),
        (call!(mcp_state_attach(f.session, 1, null(), null_mut(), 33)), "out_owner"),
        (call!(mcp_state_patch(f.session, null(), 1)), "changes"),
        (
            call!(mcp_state_enqueue_outgoing(f.session, f.owner(), 32, null(), 0, empty.0, empty.1, &raw mut id)),
            "message",
        ),
    ] {
        assert_eq!(MCP_STATE_INVALID_ARGUMENT, call.0, "{name}");
        assert!(call.1.starts_with(name), "{name}: {}", call.1);
    }
}

#[test]
fn a_null_out_parameter_is_found_before_anything_is_done() {
    let f = Fixture::new("out");
    let ((message, message_len), (empty, empty_len)) = (pair!(r#"{"method":"ask"}"#), pair!(""));
    let (status, text) = call!(mcp_state_send_request(
        f.session,
        f.owner(),
        32,
        message,
        message_len,
        1000,
        empty,
        empty_len,
        null_mut()
    ));
    assert_eq!(MCP_STATE_INVALID_ARGUMENT, status);
    assert!(text.contains("out_id"), "{text}");
    let mut requests = null_mut();
    ok!(mcp_state_pending(f.session, null(), 0, &raw mut requests));
    // SAFETY: a list that lives, freed once.
    unsafe {
        assert_eq!(0, mcp_state_requests_len(requests));
        mcp_state_requests_free(requests);
    }
}

#[test]
fn a_failure_without_room_for_its_text_is_a_status() {
    // SAFETY: all pointers are NULL, which is tested.
    assert_eq!(MCP_STATE_INVALID_ARGUMENT, unsafe { mcp_state_touch(null(), null_mut(), null_mut()) });
}

#[test]
fn what_the_engine_would_not_take_is_refused_by_name() {
    let f = Fixture::new("bad input");
    let (mut session, mut there, mut id, mut messages) = (null_mut(), true, 0, null_mut());
    let (not_utf8, not_utf8_len) = pair!(b"\xff");
    let (empty, empty_len) = pair!("");
    let mut room = [0; 32];
    let (mut outcome, mut cursor) = (mcp_state_wait_outcome::MCP_STATE_WAIT_READY, 0);
    for (call, part) in [
        (call!(mcp_state_open_session(f.engine, not_utf8, not_utf8_len, null(), 0, &raw mut session)), "UTF-8"),
        (call!(mcp_state_open_session(f.engine, empty, usize::MAX, null(), 0, &raw mut session)), "session id"),
        (call!(mcp_state_create_session(f.engine, null(), 0, &-1, null(), 0, &raw mut session)), "session ttl \"-1\""),
        (call!(mcp_state_attach(f.session, 3, null(), room.as_mut_ptr(), 33)), "owner kind \"3\""),
        (call!(mcp_state_attach(f.session, 1, &0, room.as_mut_ptr(), 33)), "lease"),
        (call!(mcp_state_attach(f.session, 1, null(), room.as_mut_ptr(), 32)), "out_owner_size \"32\""),
        (call!(mcp_state_take_outgoing(f.session, f.owner(), 32, -1, &raw mut messages)), "max \"-1\""),
        (call!(mcp_state_take_outgoing(f.session, f.owner(), 31, 1, &raw mut messages)), "owner token"),
        (call!(mcp_state_wait(f.session, f.owner(), 32, 8, 0, 0, &raw mut outcome, &raw mut cursor)), "interest \"8\""),
        (call!(mcp_state_wait(f.session, f.owner(), 32, 0, 0, 0, &raw mut outcome, &raw mut cursor)), "interest \"0\""),
        (call!(mcp_state_begin_request(f.session, f.owner(), 32, 1, null(), 0, 9, &raw mut there)), "policy \"9\""),
        (call!(mcp_state_consume_once(f.engine, empty, empty_len, 1, &raw mut there)), "key"),
        (call!(mcp_state_cursor(f.engine, empty, empty_len, &raw mut id)), "topic"),
    ] {
        assert_eq!(MCP_STATE_INVALID_ARGUMENT, call.0, "{part}");
        assert!(call.1.contains(part), "{part}: {}", call.1);
    }
    assert!(session.is_null() && messages.is_null());
}

#[test]
fn a_limit_comes_with_its_name_and_numbers() {
    let (dsn, dsn_len) = pair!("memory://?max_owners=1");
    let (mut engine, mut session, mut owner) = (null_mut(), null_mut(), [0; MCP_STATE_OWNER_SIZE]);
    ok!(mcp_state_engine_open(dsn, dsn_len, &raw mut engine));
    ok!(mcp_state_create_session(engine, null(), 0, null(), null(), 0, &raw mut session));
    ok!(mcp_state_attach(session, 1, null(), owner.as_mut_ptr(), owner.len()));
    let mut error = MaybeUninit::<mcp_state_error>::uninit();
    // SAFETY: handles that live, room for a token and an error; both handles are freed once, at the end.
    unsafe {
        let status = mcp_state_attach(session, 1, null(), owner.as_mut_ptr(), owner.len(), error.as_mut_ptr());
        assert_eq!(MCP_STATE_LIMIT_EXCEEDED, status);
        let error = error.assume_init_ref();
        assert_eq!(c"max_owners", CStr::from_ptr(error.limit.as_ptr()));
        assert_eq!((1, 2), (error.maximum, error.actual));
        mcp_state_session_free(session);
        mcp_state_engine_free(engine);
    }
}

#[test]
fn the_id_of_a_request_is_a_number_or_a_text() {
    let f = Fixture::new("ids of requests");
    let ((text, text_len), mut begun) = (pair!("1"), false);
    let mut outcome = mcp_state_cancel_outcome::MCP_STATE_CANCEL_AMBIGUOUS;
    ok!(mcp_state_begin_request(f.session, f.owner(), 32, 1, null(), 0, 2, &raw mut begun));
    assert!(begun);
    ok!(mcp_state_begin_request(f.session, f.owner(), 32, 0, text, text_len, 2, &raw mut begun));
    assert!(begun);
    ok!(mcp_state_begin_request(f.session, f.owner(), 32, 1, null(), 0, 2, &raw mut begun));
    assert!(!begun);
    ok!(mcp_state_cancel_request(f.session, 0, text, text_len, &raw mut outcome));
    assert_eq!(mcp_state_cancel_outcome::MCP_STATE_CANCEL_CANCELLED, outcome);
    let (mut was, mut cancelled) = (false, true);
    ok!(mcp_state_finish_request(f.session, f.owner(), 32, 1, null(), 0, &raw mut was, &raw mut cancelled));
    assert_eq!((true, false), (was, cancelled));
    ok!(mcp_state_finish_request(f.session, f.owner(), 32, 0, text, text_len, &raw mut was, &raw mut cancelled));
    assert_eq!((true, true), (was, cancelled));
    ok!(mcp_state_finish_request(f.session, f.owner(), 32, 0, text, text_len, &raw mut was, &raw mut cancelled));
    assert_eq!((false, false), (was, cancelled));
}

#[test]
fn handles_of_one_dsn_share_their_store() {
    let (dsn, dsn_len) = pair!("memory://?ttl_ms=31337");
    let (id, id_len) = pair!("the-session");
    let (mut one, mut two, mut session, mut same) = (null_mut(), null_mut(), null_mut(), null_mut());
    ok!(mcp_state_engine_open(dsn, dsn_len, &raw mut one));
    ok!(mcp_state_create_session(one, id, id_len, null(), null(), 0, &raw mut session));
    // SAFETY: the store outlives its handles.
    unsafe { mcp_state_engine_free(one) };
    ok!(mcp_state_engine_open(dsn, dsn_len, &raw mut two));
    ok!(mcp_state_open_session(two, id, id_len, null(), 0, &raw mut same));
    assert!(!same.is_null());
    ok!(mcp_state_create_session(two, id, id_len, null(), null(), 0, &mut one.cast()));
    // SAFETY: all were given above, and are freed once.
    unsafe {
        mcp_state_session_free(session);
        mcp_state_session_free(same);
        mcp_state_engine_free(two);
    }
}

#[test]
fn null_is_nothing_to_free_and_an_empty_list() {
    // SAFETY: NULL is allowed.
    unsafe {
        mcp_state_engine_free(null_mut());
        mcp_state_session_free(null_mut());
        mcp_state_buffer_free(null_mut());
        mcp_state_messages_free(null_mut());
        mcp_state_requests_free(null_mut());
        mcp_state_ids_free(null_mut());
        assert_eq!(
            [0; 4],
            [
                mcp_state_buffer_len(null()),
                mcp_state_messages_len(null()),
                mcp_state_requests_len(null()),
                mcp_state_ids_len(null()),
            ]
        );
        assert!(mcp_state_buffer_data(null()).is_null() && mcp_state_ids_data(null()).is_null());
        assert!(mcp_state_messages_at(null(), 0).is_null() && mcp_state_requests_at(null(), 0).is_null());
    }
}

#[test]
fn the_bus_and_keys_that_are_used_once() {
    let f = Fixture::new("the bus");
    let ((topic, topic_len), (message, message_len)) = (pair!("news"), pair!("\"hello\""));
    let (mut number, mut cursor, mut missed, mut messages, mut there) = (0, 0, 7, null_mut(), true);
    ok!(mcp_state_wait_since(f.engine, topic, topic_len, 0, 1, &raw mut there));
    assert!(!there);
    ok!(mcp_state_publish(f.engine, topic, topic_len, message, message_len, &raw mut number));
    ok!(mcp_state_wait_since(f.engine, topic, topic_len, 0, 1000, &raw mut there));
    assert!(there);
    ok!(mcp_state_since(f.engine, topic, topic_len, 0, 10, &raw mut messages, &raw mut cursor, &raw mut missed));
    assert_eq!((number, 0), (cursor, missed));
    // SAFETY: the list lives until it is freed.
    unsafe {
        let message = &*mcp_state_messages_at(messages, 0);
        assert_eq!(b"\"hello\"", std::slice::from_raw_parts(message.text, message.text_len));
        assert_eq!((number, 0), (message.number, message.context_len));
        mcp_state_messages_free(messages);
    }
    let ((key, key_len), mut first) = (pair!("nonce"), false);
    ok!(mcp_state_consume_once(f.engine, key, key_len, 1000, &raw mut first));
    assert!(first);
    ok!(mcp_state_consume_once(f.engine, key, key_len, 1000, &raw mut first));
    assert!(!first);
}

#[test]
fn what_is_held_is_told_as_json() {
    let f = Fixture::new("statistics");
    let (mut store, mut session) = (null_mut(), null_mut());
    ok!(mcp_state_stats(f.engine, &raw mut store));
    ok!(mcp_state_session_stats(f.session, &raw mut session));
    let parse = |buffer| serde_json::from_slice::<serde_json::Value>(&bytes(buffer).unwrap()).unwrap();
    let (store, session) = (parse(store), parse(session));
    assert!(store["sessions"].as_u64().unwrap() >= 1, "{store}");
    assert!(
        store["limits"]["max_message_bytes"].is_u64() && store["counters"].is_object() && store["place"].is_object()
    );
    assert_eq!((Some(1), Some(0)), (session["owners"].as_u64(), session["late"]["unknown"].as_u64()), "{session}");
}

/// G12: somebody else's session, one that was destroyed, and one that never was are answered alike.
#[test]
fn a_session_of_another_and_one_that_never_was_are_answered_alike() {
    let f = Fixture::new("principals of sessions");
    let ((ann, ann_len), (hers, hers_len)) = (pair!("ann"), pair!("0123456789-hers"));
    let create = |id: &str, principal: &str| {
        let ((id, id_len), (principal, principal_len), mut session) = (pair!(id), pair!(principal), null_mut());
        ok!(mcp_state_create_session(f.engine, id, id_len, null(), principal, principal_len, &raw mut session));
        assert!(!session.is_null());
        session
    };
    let kept = create("0123456789-hers", "ann");
    for principal in [None, Some("mallory"), Some("ann ")] {
        let (principal, principal_len) = principal.map_or((null(), 0), |principal| pair!(principal));
        for id in ["0123456789-hers", "0123456789-never"] {
            let ((id, id_len), mut session) = (pair!(id), null_mut());
            let opened =
                call!(mcp_state_open_session(f.engine, id, id_len, principal, principal_len, &raw mut session));
            assert_eq!(((MCP_STATE_OK, String::new()), true), (opened, session.is_null()));
        }
    }

    // Handles from before: the session of one was destroyed, that of the other is somebody else's by now.
    let stale = ["0123456789-destroyed", "0123456789-anothers"].map(|id| {
        let (session, mut there) = (create(id, "ann"), false);
        ok!(mcp_state_destroy_session(session, &raw mut there));
        assert!(there);
        session
    });
    let anothers = create("0123456789-anothers", "mallory");
    let answers = stale.map(|session| {
        let ((key, key_len), mut json, mut there, mut owner) =
            (pair!("k"), null_mut(), true, [0; MCP_STATE_OWNER_SIZE]);
        let got = call!(mcp_state_get(session, key, key_len, &raw mut json));
        let attached = call!(mcp_state_attach(session, 1, null(), owner.as_mut_ptr(), owner.len()));
        let touched = (call!(mcp_state_touch(session, &raw mut there)), there);
        let destroyed = (call!(mcp_state_destroy_session(session, &raw mut there)), there);
        (got, attached, touched, destroyed)
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(MCP_STATE_SESSION_NOT_FOUND, answers[0].0.0);
    assert_eq!((MCP_STATE_SESSION_NOT_FOUND, false), (answers[0].1.0, answers[0].3.1));
    let mut session = null_mut();
    ok!(mcp_state_open_session(f.engine, hers, hers_len, ann, ann_len, &raw mut session));
    assert!(!session.is_null());
    // SAFETY: all were given above, and are freed once.
    unsafe {
        for session in [kept, stale[0], stale[1], anothers, session] {
            mcp_state_session_free(session);
        }
    }
}

#[test]
fn the_password_of_a_dsn_is_never_shown() {
    for dsn in ["redis://user:secret@127.0.0.1:1?retry_ms=1", "redis://user:secret@h:x", "redis:user:secret@h"] {
        let ((dsn, dsn_len), mut engine) = (pair!(dsn), null_mut());
        let (mut status, mut text) = call!(mcp_state_engine_open(dsn, dsn_len, &raw mut engine));
        if status == MCP_STATE_OK {
            // It connects when it is first used.
            let (mut shown, mut stats) = (null_mut(), null_mut());
            ok!(mcp_state_dsn(engine, &raw mut shown));
            assert_eq!("redis://user:…@127.0.0.1:1?retry_ms=1".as_bytes(), bytes(shown).unwrap());
            (status, text) = call!(mcp_state_stats(engine, &raw mut stats));
            // SAFETY: given above, and freed once.
            unsafe { mcp_state_engine_free(engine) };
        }
        assert_ne!(MCP_STATE_OK, status);
        assert!(!text.contains("secret"), "{text}");
    }
}
