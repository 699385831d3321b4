//! Bad input is refused by value.

use mcp_state::{DuplicatePolicy, ErrorKind, NewSession, OwnerKind, RequestId};

use crate::{Fixture, kind};

contract! { every [
    bad_input_is_refused_by_value,
] }

fn bad_input_is_refused_by_value(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let long = "x".repeat(10_000);
    for id in ["", "a b", "a\n", "é", &long] {
        assert_eq!(kind(store.engine.open_session(id, None).map(|_| ())), ErrorKind::InvalidArgument);
        let new = NewSession { id: Some(id.into()), ..NewSession::default() };
        assert_eq!(kind(store.engine.create_session(new).map(|_| ())), ErrorKind::InvalidArgument);
    }
    for key in ["", ".", "a.", ".a", "a..b", "a\0b", "a\u{85}b", &long] {
        assert_eq!(kind(session.attributes().set(key, "1")), ErrorKind::InvalidArgument);
        assert_eq!(kind(session.attributes().get(key)), ErrorKind::InvalidArgument);
    }
    for json in ["", "{", "'a'", "1 2", "nul"] {
        assert_eq!(kind(session.attributes().set("a", json)), ErrorKind::InvalidArgument);
    }
    for request in ["", "[]", "1", "{", r#"{"id":1}"#, r#"{"id":null}"#, r#"{"method":1"#] {
        assert_eq!(kind(session.send_request(&stream, request, "", 1000)), ErrorKind::InvalidArgument);
    }
    assert_eq!(kind(session.enqueue_outgoing(&stream, "", "")), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.enqueue_broadcast("", "")), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.deliver_response(1, "")), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.send_request(&stream, "{}", "", u64::MAX)), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.attach(OwnerKind::Reply, Some(0))), ErrorKind::InvalidArgument);
    let forever = NewSession { ttl_ms: Some(u64::MAX), ..NewSession::default() };
    assert_eq!(kind(store.engine.create_session(forever).map(|_| ())), ErrorKind::InvalidArgument);
    let nobody = NewSession { principal: Some(String::new()), ..NewSession::default() };
    assert_eq!(kind(store.engine.create_session(nobody).map(|_| ())), ErrorKind::InvalidArgument);
    let id = RequestId::Str(long.clone());
    assert_eq!(kind(session.begin_request(&stream, &id, DuplicatePolicy::Isolate)), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.register_pending(&stream, 1, 1, &long)), ErrorKind::InvalidArgument);
    let message = session.attributes().set("a..b", "1").unwrap_err().to_string();
    assert!(message.contains("\"a..b\"") && message.contains("empty"), "{message}");
}
