//! Outgoing messages and broadcasts (G3).

use std::time::Duration;

use mcp_state::{Interest, OwnerKind, WaitedFor};

use crate::{Fixture, texts};

contract! { every [
    g3_only_its_owner_takes_a_message,
    messages_are_taken_in_order_with_their_context,
    peeked_messages_stay_until_acknowledged,
    a_broadcast_reaches_one_stream_and_never_a_reply,
    a_peeked_broadcast_returns_when_its_owner_ends,
    a_broadcast_waits_for_the_first_stream,
] }

fn g3_only_its_owner_takes_a_message(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let other = session.attach(OwnerKind::Reply, None).unwrap();
    session.enqueue_outgoing(&stream, "\"mine\"", "").unwrap();
    assert!(session.take_outgoing(&other, 10).unwrap().is_empty());
    assert_eq!(texts(session.take_outgoing(&stream, 10).unwrap()), ["\"mine\""]);
}

fn messages_are_taken_in_order_with_their_context(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    for number in 0..5 {
        let sequence = session.enqueue_outgoing(&stream, &number.to_string(), &format!("c{number}")).unwrap();
        assert_eq!(sequence, number + 1);
    }
    assert_eq!(texts(session.take_outgoing(&stream, 2).unwrap()), ["0", "1"]);
    let rest = session.take_outgoing(&stream, 10).unwrap();
    assert_eq!(rest[0].context, "c2");
    assert_eq!(texts(rest), ["2", "3", "4"]);
    assert!(session.take_outgoing(&stream, 10).unwrap().is_empty());
    assert_eq!(session.stats().unwrap().message_bytes, 0);
}

fn peeked_messages_stay_until_acknowledged(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    for number in 0..3 {
        session.enqueue_outgoing(&stream, &number.to_string(), "").unwrap();
    }
    assert_eq!(texts(session.peek_outgoing(&stream, 2).unwrap()), ["0", "1"]);
    assert_eq!(texts(session.peek_outgoing(&stream, 2).unwrap()), ["0", "1"]);
    assert_eq!(session.acknowledge(&stream, 1).unwrap(), 1);
    assert_eq!(session.acknowledge(&stream, 1).unwrap(), 0);
    assert_eq!(texts(session.peek_outgoing(&stream, 9).unwrap()), ["1", "2"]);
    assert_eq!(session.acknowledge(&stream, u64::MAX).unwrap(), 2);
    assert!(session.peek_outgoing(&stream, 9).unwrap().is_empty());
}

fn a_broadcast_reaches_one_stream_and_never_a_reply(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let reply = session.attach(OwnerKind::Reply, None).unwrap();
    let other = session.attach(OwnerKind::Stream, None).unwrap();
    session.enqueue_outgoing(&stream, "\"own\"", "").unwrap();
    session.enqueue_broadcast("\"all\"", "c").unwrap();
    assert!(session.take_outgoing(&reply, 10).unwrap().is_empty());
    assert_eq!(texts(session.take_outgoing(&stream, 10).unwrap()), ["\"own\"", "\"all\""]);
    assert!(session.take_outgoing(&other, 10).unwrap().is_empty());
    assert_eq!(session.stats().unwrap().message_bytes, 0);
}

fn a_peeked_broadcast_returns_when_its_owner_ends(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let other = session.attach(OwnerKind::Stream, None).unwrap();
    session.enqueue_broadcast("\"1\"", "").unwrap();
    session.enqueue_broadcast("\"2\"", "").unwrap();
    session.enqueue_broadcast("\"3\"", "").unwrap();
    assert_eq!(texts(session.peek_outgoing(&stream, 2).unwrap()), ["\"1\"", "\"2\""]);
    assert_eq!(texts(session.peek_outgoing(&other, 9).unwrap()), ["\"3\""]);
    session.acknowledge(&stream, 1).unwrap();
    assert_eq!(session.detach(&stream).unwrap().unwrap().dropped_messages, 0);
    assert_eq!(texts(session.take_outgoing(&other, 9).unwrap()), ["\"3\"", "\"2\""]);
    assert_eq!(session.stats().unwrap().message_bytes, 0);
    assert_eq!(session.stats().unwrap().broadcasts, 0);
}

fn a_broadcast_waits_for_the_first_stream(store: Fixture) {
    let session = store.session();
    session.enqueue_broadcast("\"early\"", "").unwrap();
    let stream = session.attach(OwnerKind::Stream, None).unwrap();
    let waited = session.wait(&stream, Interest::MESSAGE, 0, Duration::ZERO).unwrap();
    assert_eq!(waited.outcome, WaitedFor::Ready);
    assert_eq!(texts(session.take_outgoing(&stream, 9).unwrap()), ["\"early\""]);
}
