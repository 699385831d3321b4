//! Waiting for something of interest (G9).

use std::time::Duration;

use mcp_state::{DuplicatePolicy, ErrorKind, Interest, WaitedFor};

use crate::{Fixture, Kind, REQUEST, kind};

contract! { every [
    g9_a_wait_ends_when_something_of_interest_is_there,
    g9_a_wait_for_one_thing_hides_no_other,
    a_wait_of_a_released_owner_fails,
    g9_a_passed_deadline_is_something_to_wake_for,
] }

fn g9_a_wait_ends_when_something_of_interest_is_there(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let none = session.wait(&stream, Interest::ALL, 0, Duration::ZERO).unwrap();
    assert_eq!(none.outcome, WaitedFor::Deadline);
    let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    let message = session.wait(&stream, Interest::ALL, none.cursor, Duration::ZERO).unwrap();
    assert_eq!(message.outcome, WaitedFor::Ready);
    let later = session.wait(&stream, Interest::ALL, message.cursor, Duration::ZERO).unwrap();
    assert_eq!(later.outcome, WaitedFor::Deadline, "nothing newer");
    let other = session.wait(&stream, Interest::RESOLUTION, 0, Duration::ZERO).unwrap();
    assert_eq!(other.outcome, WaitedFor::Deadline, "a message is no resolution");
    session.deliver_response(id, "1").unwrap();
    let resolved = session.wait(&stream, Interest::RESOLUTION, message.cursor, Duration::ZERO).unwrap();
    assert_eq!(resolved.outcome, WaitedFor::Ready);
    session.begin_request(&stream, &1.into(), DuplicatePolicy::Isolate).unwrap();
    session.cancel_request(&1.into()).unwrap();
    let cancelled = session.wait(&stream, Interest::CANCELLATION, resolved.cursor, Duration::ZERO).unwrap();
    assert_eq!(cancelled.outcome, WaitedFor::Ready);
}

fn g9_a_wait_for_one_thing_hides_no_other(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    session.deliver_response(id, "1").unwrap();
    let message = session.wait(&stream, Interest::MESSAGE, 0, Duration::ZERO).unwrap();
    assert_eq!(message.outcome, WaitedFor::Ready);
    let resolved = session.wait(&stream, Interest::RESOLUTION, message.cursor, Duration::ZERO).unwrap();
    assert_eq!(resolved.outcome, WaitedFor::Ready);
    let none = session.wait(&stream, Interest::CANCELLATION, 0, Duration::ZERO).unwrap();
    assert_eq!((none.outcome, none.cursor), (WaitedFor::Deadline, 0));
}

fn a_wait_of_a_released_owner_fails(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    session.detach(&stream).unwrap();
    assert_eq!(kind(session.wait(&stream, Interest::ALL, 0, Duration::ZERO)), ErrorKind::OwnerExpired);
}

fn g9_a_passed_deadline_is_something_to_wake_for(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    store.advance(1000);
    let waited = session.wait(&stream, Interest::RESOLUTION, 0, Duration::from_secs(9)).unwrap();
    assert_eq!(waited.outcome, WaitedFor::Ready);
    assert_eq!(session.claim_any(&stream).unwrap().unwrap().id, id);
}

#[test]
fn g9_a_waiter_follows_a_reset_at_once() {
    let store = Fixture::new(Kind::Lmdb, "");
    let (session, stream) = store.session_and_stream();
    let waits = || store.engine.stats().unwrap().counters.iter().find(|(name, _)| *name == "waits").unwrap().1;
    let waiter = std::thread::spawn(move || session.wait_slice(&stream, Interest::ALL, 0, Duration::from_secs(1)));
    while waits() == 0 {
        std::thread::yield_now();
    }
    mcp_state::Engine::reset(store.engine.dsn()).unwrap();
    // Whoever still looked at the old files would find that nothing has come by now.
    store.advance(1_000);
    assert_eq!(waiter.join().unwrap().unwrap().outcome, WaitedFor::Destroyed);
}
