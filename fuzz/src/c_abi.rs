//! The C ABI under random calls: handles that live or are NULL, texts of any bytes or NULL, any numbers, places for results or
//! NULL. Every call returns a status, an error describes itself, and what came out is freed once.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::slice;

use arbitrary::Unstructured;
use mcp_state_capi::mcp_state_status::*;
use mcp_state_capi::*;

use crate::input::{below, bytes, number, pick};

/// A text as C passes it: often one that fits, sometimes NULL with any length.
struct Text(Option<Vec<u8>>, usize);

impl Text {
    fn new(input: &mut Unstructured<'_>, fitting: &[&str]) -> Self {
        match below(input, 8) {
            0 => Self(None, number(input) as usize),
            1 => Self::of(bytes(input)),
            _ => Self::of(pick(input, fitting).as_bytes()),
        }
    }

    fn of(bytes: &[u8]) -> Self {
        // In a block of its own, so that reading past its end is seen.
        Self(Some(bytes.to_vec().into_boxed_slice().into_vec()), bytes.len())
    }

    fn data(&self) -> *const c_char {
        self.0.as_ref().map_or(null(), |bytes| bytes.as_ptr().cast())
    }

    fn len(&self) -> usize {
        self.1
    }
}

/// A place for a result, or NULL.
struct Place<T>(Option<Box<MaybeUninit<T>>>);

impl<T> Place<T> {
    fn new(input: &mut Unstructured<'_>) -> Self {
        Self((below(input, 24) != 1).then(|| Box::new(MaybeUninit::uninit())))
    }

    fn pointer(&mut self) -> *mut T {
        self.0.as_mut().map_or(null_mut(), |place| place.as_mut_ptr())
    }

    /// What was written: only after MCP_STATE_OK, which no function returns without a place.
    fn get(self) -> T {
        // SAFETY: the function succeeded, so it wrote its results.
        unsafe { *self.0.expect("a place is needed to succeed").assume_init() }
    }
}

struct Caller {
    engine: *mut mcp_state_engine,
    sessions: Vec<*mut mcp_state_session>,
    owners: Vec<String>,
    ids: Vec<i64>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        // SAFETY: all live, and nobody has them any more.
        unsafe {
            for &session in &self.sessions {
                mcp_state_destroy_session(session, &mut false, null_mut());
                mcp_state_session_free(session);
            }
            mcp_state_session_free(null_mut());
            mcp_state_engine_free(self.engine);
        }
    }
}

/// Calls with room for an error, or NULL, behind the arguments: whether it succeeded.
macro_rules! call {
    ($input:ident, $function:ident($($argument:expr),* $(,)?)) => {{
        let mut error = Place::<mcp_state_error>::new($input);
        // SAFETY: handles live or are NULL, texts and places outlive the call.
        let status = unsafe { $function($($argument,)* error.pointer()) };
        if status != MCP_STATE_OK && error.0.is_some() {
            let error = error.get();
            assert_eq!(error.status, status);
            // SAFETY: the texts end with NUL.
            let texts = unsafe { [CStr::from_ptr(error.text.as_ptr()), CStr::from_ptr(error.limit.as_ptr())] };
            assert!(!texts[0].to_str().expect("it is UTF-8").is_empty());
            assert_eq!(texts[1].is_empty(), status != MCP_STATE_LIMIT_EXCEEDED);
        }
        assert!(status != MCP_STATE_INTERNAL, "{} has a bug", stringify!($function));
        succeeded(status)
    }};
}

fn succeeded(status: mcp_state_status) -> bool {
    status == MCP_STATE_OK
}

/// A buffer that a function gave out, which may be none.
fn read_buffer(buffer: *mut mcp_state_buffer) -> Vec<u8> {
    if buffer.is_null() {
        return vec![];
    }
    // SAFETY: a buffer that lives, freed once.
    unsafe {
        let bytes = slice::from_raw_parts(mcp_state_buffer_data(buffer), mcp_state_buffer_len(buffer)).to_vec();
        mcp_state_buffer_free(buffer);
        bytes
    }
}

fn read_messages(messages: *mut mcp_state_messages) {
    // SAFETY: a list that lives, freed once; its elements live as long.
    unsafe {
        for at in 0..mcp_state_messages_len(messages) {
            let message = &*mcp_state_messages_at(messages, at);
            let text = slice::from_raw_parts(message.text, message.text_len);
            let context = slice::from_raw_parts(message.context, message.context_len);
            assert!(str::from_utf8(text).is_ok() && str::from_utf8(context).is_ok());
        }
        assert!(mcp_state_messages_at(messages, mcp_state_messages_len(messages)).is_null());
        mcp_state_messages_free(messages);
    }
}

fn read_requests(requests: *mut mcp_state_requests) {
    // SAFETY: a list that lives, freed once; its elements live as long.
    unsafe {
        for at in 0..mcp_state_requests_len(requests) {
            let request = &*mcp_state_requests_at(requests, at);
            assert!(str::from_utf8(slice::from_raw_parts(request.method, request.method_len)).is_ok());
        }
        assert!(mcp_state_requests_at(requests, usize::MAX).is_null());
        mcp_state_requests_free(requests);
    }
}

/// A sequence of calls.
pub fn c_abi(data: &[u8]) {
    let input = &mut Unstructured::new(data);
    let dsn = Text::of(b"memory://?max_message_bytes=4K&max_sessions=64&max_owners=8&max_topic_messages=8");
    let mut engine = null_mut();
    // SAFETY: the text and the places outlive the call.
    assert_eq!(unsafe { mcp_state_engine_open(dsn.data(), dsn.len(), &mut engine, null_mut()) }, MCP_STATE_OK);
    let mut caller = Caller { engine, sessions: vec![], owners: vec![], ids: vec![1] };
    caller.create(input);
    while !input.is_empty() {
        caller.call(input);
    }
}

impl Caller {
    fn create(&mut self, input: &mut Unstructured<'_>) {
        let (id, principal) = (Text(None, 0), Text::new(input, &["alice", "bob"]));
        let mut session = Place::new(input);
        if call!(
            input,
            mcp_state_create_session(
                self.engine,
                id.data(),
                id.len(),
                null(),
                principal.data(),
                principal.len(),
                session.pointer()
            )
        ) {
            self.sessions.push(session.get());
        }
    }

    fn call(&mut self, input: &mut Unstructured<'_>) {
        let engine = if below(input, 64) == 1 { null() } else { self.engine.cast_const() };
        let session = match below(input, self.sessions.len() * 8 + 1) {
            0 => null(),
            at => self.sessions[at % self.sessions.len()].cast_const(),
        };
        let owner = match (self.owners.len(), below(input, 16)) {
            (0, _) | (_, 0) => Text::new(input, &["", "00000000000000000000000000000000"]),
            (owners, at) => Text::of(self.owners[at % owners].as_bytes()),
        };
        let id = if below(input, 4) == 0 { number(input) as i64 } else { self.ids[below(input, self.ids.len())] };
        let amount = number(input) as i64;
        let span = (below(input, 3) != 0).then_some(&amount).map_or(null(), |amount| amount as *const i64);
        let key = Text::new(input, &["a", "a.b", "a.b.c", "b", "a..b"]);
        let json = Text::new(input, &["1", "null", "{\"b\":{\"c\":[1]}}", "[1,2]", "{", "\"x\""]);
        let more = Text::new(input, &["", "context", "t"]);
        let mut flag = Place::<bool>::new(input);
        let mut number_out = Place::<i64>::new(input);
        let mut second = Place::<i64>::new(input);
        let mut buffer = Place::<*mut mcp_state_buffer>::new(input);
        match below(input, 47) {
            0 => self.create(input),
            1 => {
                let mut opened = Place::new(input);
                if call!(
                    input,
                    mcp_state_open_session(engine, key.data(), key.len(), more.data(), more.len(), opened.pointer())
                ) {
                    let opened = opened.get();
                    if !opened.is_null() {
                        self.sessions.push(opened);
                    }
                }
            }
            2 => {
                if call!(input, mcp_state_dsn(engine, buffer.pointer())) {
                    assert!(read_buffer(buffer.get()).starts_with(b"memory://"));
                }
            }
            3 => {
                call!(input, mcp_state_collect(engine, amount, number_out.pointer(), second.pointer(), flag.pointer()));
            }
            4 => {
                if call!(input, mcp_state_stats(engine, buffer.pointer())) {
                    serde_json::from_slice::<serde_json::Value>(&read_buffer(buffer.get())).expect("it is JSON");
                }
            }
            5 => {
                call!(
                    input,
                    mcp_state_publish(engine, more.data(), more.len(), json.data(), json.len(), number_out.pointer())
                );
            }
            6 => {
                call!(input, mcp_state_cursor(engine, more.data(), more.len(), number_out.pointer()));
            }
            7 => {
                let mut messages = Place::new(input);
                if call!(
                    input,
                    mcp_state_since(
                        engine,
                        more.data(),
                        more.len(),
                        amount,
                        id,
                        messages.pointer(),
                        number_out.pointer(),
                        second.pointer()
                    )
                ) {
                    read_messages(messages.get());
                }
            }
            8 => {
                call!(input, mcp_state_wait_since(engine, more.data(), more.len(), amount, 0, flag.pointer()));
            }
            9 => {
                call!(input, mcp_state_consume_once(engine, key.data(), key.len(), amount, flag.pointer()));
            }
            10 => {
                if call!(input, mcp_state_session_id(session, buffer.pointer())) {
                    assert!(!read_buffer(buffer.get()).is_empty());
                }
            }
            11 => {
                call!(input, mcp_state_touch(session, flag.pointer()));
            }
            12 => {
                if below(input, 8) == 0 {
                    call!(input, mcp_state_destroy_session(session, flag.pointer()));
                }
            }
            13 => {
                if call!(input, mcp_state_session_stats(session, buffer.pointer())) {
                    serde_json::from_slice::<serde_json::Value>(&read_buffer(buffer.get())).expect("it is JSON");
                }
            }
            14..=17 => self.attach(input, session, span, amount),
            18 => {
                call!(input, mcp_state_renew(session, owner.data(), owner.len()));
            }
            19 => {
                call!(
                    input,
                    mcp_state_detach(
                        session,
                        owner.data(),
                        owner.len(),
                        flag.pointer(),
                        number_out.pointer(),
                        second.pointer()
                    )
                );
            }
            20 => {
                if call!(input, mcp_state_get(session, key.data(), key.len(), buffer.pointer())) {
                    read_buffer(buffer.get());
                }
            }
            21 => {
                if call!(input, mcp_state_all(session, buffer.pointer())) {
                    serde_json::from_slice::<serde_json::Value>(&read_buffer(buffer.get())).expect("it is JSON");
                }
            }
            22 | 23 => {
                call!(input, mcp_state_set(session, key.data(), key.len(), json.data(), json.len()));
            }
            24 => {
                call!(input, mcp_state_remove(session, key.data(), key.len(), flag.pointer()));
            }
            25 => {
                if call!(input, mcp_state_take(session, key.data(), key.len(), buffer.pointer())) {
                    read_buffer(buffer.get());
                }
            }
            26 => {
                call!(
                    input,
                    mcp_state_put_if_absent(session, key.data(), key.len(), json.data(), json.len(), flag.pointer())
                );
            }
            27 => {
                call!(
                    input,
                    mcp_state_compare_and_set(
                        session,
                        key.data(),
                        key.len(),
                        more.data(),
                        more.len(),
                        json.data(),
                        json.len(),
                        flag.pointer()
                    )
                );
            }
            28 => {
                let change = |json: &Text| mcp_state_change {
                    key: key.data(),
                    key_len: key.len(),
                    json: json.data(),
                    json_len: json.len(),
                };
                let changes = [change(&json), change(&Text(None, 0)), change(&json)];
                let count = below(input, 4);
                let changes = if count == 0 { null() } else { changes.as_ptr() };
                call!(input, mcp_state_patch(session, changes, count));
            }
            29 | 30 => {
                call!(
                    input,
                    mcp_state_enqueue_outgoing(
                        session,
                        owner.data(),
                        owner.len(),
                        json.data(),
                        json.len(),
                        more.data(),
                        more.len(),
                        number_out.pointer()
                    )
                );
            }
            31 | 32 => {
                let mut messages = Place::new(input);
                let function = if amount % 2 == 0 { mcp_state_take_outgoing } else { mcp_state_peek_outgoing };
                if call!(input, function(session, owner.data(), owner.len(), amount, messages.pointer())) {
                    read_messages(messages.get());
                }
            }
            33 => {
                call!(input, mcp_state_acknowledge(session, owner.data(), owner.len(), amount, number_out.pointer()));
            }
            34 => {
                call!(
                    input,
                    mcp_state_enqueue_broadcast(
                        session,
                        json.data(),
                        json.len(),
                        more.data(),
                        more.len(),
                        number_out.pointer()
                    )
                );
            }
            35 => {
                if call!(input, mcp_state_next_request_id(session, number_out.pointer())) {
                    self.ids.push(number_out.get());
                }
            }
            36 => {
                call!(
                    input,
                    mcp_state_register_pending(
                        session,
                        owner.data(),
                        owner.len(),
                        id,
                        amount,
                        more.data(),
                        more.len(),
                        flag.pointer(),
                        number_out.pointer()
                    )
                );
            }
            37 | 38 => {
                let message = Text::new(input, &["{}", "{\"method\":\"m\"}", "{\"id\":1}"]);
                if call!(
                    input,
                    mcp_state_send_request(
                        session,
                        owner.data(),
                        owner.len(),
                        message.data(),
                        message.len(),
                        amount,
                        more.data(),
                        more.len(),
                        number_out.pointer()
                    )
                ) {
                    self.ids.push(number_out.get());
                }
            }
            39 => {
                let mut delivery = Place::new(input);
                call!(input, mcp_state_deliver_response(session, id, json.data(), json.len(), delivery.pointer()));
            }
            40 => {
                let mut state = Place::new(input);
                if call!(
                    input,
                    mcp_state_claim(
                        session,
                        owner.data(),
                        owner.len(),
                        id,
                        state.pointer(),
                        buffer.pointer(),
                        number_out.pointer()
                    )
                ) {
                    read_buffer(buffer.get());
                }
            }
            41 => {
                let mut state = Place::new(input);
                if call!(
                    input,
                    mcp_state_claim_any(
                        session,
                        owner.data(),
                        owner.len(),
                        flag.pointer(),
                        number_out.pointer(),
                        state.pointer(),
                        buffer.pointer()
                    )
                ) {
                    read_buffer(buffer.get());
                }
            }
            42 => {
                let mut ids = Place::<*mut mcp_state_ids>::new(input);
                if call!(input, mcp_state_resolve_timeouts(session, owner.data(), owner.len(), ids.pointer())) {
                    let ids = ids.get();
                    // SAFETY: a list that lives, freed once.
                    unsafe {
                        let found = slice::from_raw_parts(mcp_state_ids_data(ids), mcp_state_ids_len(ids));
                        self.ids.extend(found);
                        mcp_state_ids_free(ids);
                    }
                }
            }
            43 => {
                let mut outcome = Place::new(input);
                call!(input, mcp_state_cancel_pending(session, owner.data(), owner.len(), id, outcome.pointer()));
                if call!(input, mcp_state_peek_response(session, owner.data(), owner.len(), id, buffer.pointer())) {
                    read_buffer(buffer.get());
                }
            }
            44 => {
                let mut requests = Place::new(input);
                if call!(input, mcp_state_pending(session, owner.data(), owner.len(), requests.pointer())) {
                    read_requests(requests.get());
                }
            }
            45 => self.in_flight(input, session, &owner, id, &more, amount),
            _ => {
                let mut outcome = Place::new(input);
                call!(
                    input,
                    mcp_state_wait(
                        session,
                        owner.data(),
                        owner.len(),
                        id as i32,
                        amount,
                        0,
                        outcome.pointer(),
                        number_out.pointer()
                    )
                );
            }
        }
    }

    fn attach(
        &mut self,
        input: &mut Unstructured<'_>,
        session: *const mcp_state_session,
        span: *const i64,
        amount: i64,
    ) {
        let mut owner = vec![0x55 as c_char; below(input, 3) + MCP_STATE_OWNER_SIZE - 1];
        let kind = if below(input, 8) == 0 { amount as i32 } else { 1 + below(input, 2) as i32 };
        if call!(input, mcp_state_attach(session, kind, span, owner.as_mut_ptr(), owner.len())) {
            // SAFETY: written, and it ends with NUL.
            let token = unsafe { CStr::from_ptr(owner.as_ptr()) }.to_str().expect("hexadecimal digits").to_owned();
            assert_eq!(token.len(), MCP_STATE_OWNER_SIZE - 1);
            self.owners.push(token);
        } else {
            assert!(owner.iter().all(|&byte| byte == 0x55), "nothing is written by a call that fails");
        }
    }

    fn in_flight(
        &mut self,
        input: &mut Unstructured<'_>,
        session: *const mcp_state_session,
        owner: &Text,
        id: i64,
        text: &Text,
        policy: i64,
    ) {
        let (mut first, mut second) = (Place::<bool>::new(input), Place::<bool>::new(input));
        match below(input, 4) {
            0 => {
                let policy = if policy > 100 { policy as i32 } else { 1 + policy as i32 % 2 };
                call!(
                    input,
                    mcp_state_begin_request(
                        session,
                        owner.data(),
                        owner.len(),
                        id,
                        text.data(),
                        text.len(),
                        policy,
                        first.pointer()
                    )
                )
            }
            1 => call!(
                input,
                mcp_state_finish_request(
                    session,
                    owner.data(),
                    owner.len(),
                    id,
                    text.data(),
                    text.len(),
                    first.pointer(),
                    second.pointer()
                )
            ),
            2 => call!(
                input,
                mcp_state_is_cancelled(
                    session,
                    owner.data(),
                    owner.len(),
                    id,
                    text.data(),
                    text.len(),
                    first.pointer()
                )
            ),
            _ => {
                let mut outcome = Place::new(input);
                call!(input, mcp_state_cancel_request(session, id, text.data(), text.len(), outcome.pointer()))
            }
        };
    }
}
