//! Sessions begin, belong to somebody, expire and end (G7, G11, G12).

use std::time::Duration;

use mcp_state::{DuplicatePolicy, ErrorKind, InspectedRequest, Interest, NewSession, OwnerKind, RequestId, WaitedFor};

use crate::{Fixture, REQUEST, kind};

contract! { every [
    a_look_at_a_session_shows_what_it_holds_and_changes_nothing("ttl_ms=100000&lease_ms=1000"),
    g7_a_destroyed_session_stays_destroyed_for_everybody_who_had_it,
    an_id_is_taken_once,
    m_an_idle_session_expires_after_its_ttl("ttl_ms=10000"),
    m_an_open_stream_keeps_its_session("ttl_ms=10000&lease_ms=1000"),
    g11_expired_sessions_are_collected("ttl_ms=10000"),
    g12_a_bound_session_is_not_there_for_anybody_else,
    the_waiting_room_is_no_session("max_waiting=2&max_sessions=2"),
    nobody_counts_who_waits_where_no_limit_is_set,
    statistics_show_what_is_there,
] }

fn a_look_at_a_session_shows_what_it_holds_and_changes_nothing(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    session.attributes().set("a.b", "1").unwrap();
    let answered = session.send_request(&stream, REQUEST, "", 5000).unwrap();
    session.deliver_response(answered, "[2]").unwrap();
    session.begin_request(&stream, &RequestId::Int(7), DuplicatePolicy::Isolate).unwrap();
    session.enqueue_broadcast("{\"x\":1}", "").unwrap();
    store.advance(90_000);
    let look = || store.engine.inspect(session.id()).unwrap().expect("the session is there");
    let (counted, seen) = look();
    assert_eq!(store.engine.sessions(None, 9).unwrap(), std::slice::from_ref(&counted));
    assert_eq!((seen.bound, seen.expires_in_ms, seen.attributes.as_str()), (false, 10_000, r#"{"a":{"b":1}}"#));
    assert_eq!(seen.broadcasts, [("{\"x\":1}".to_owned(), false)]);
    let [owner] = &seen.owners[..] else { panic!("one owner, not {}", seen.owners.len()) };
    assert_eq!((owner.kind, owner.lease_left_ms, owner.messages.len()), (OwnerKind::Stream, 0, 1));
    assert_eq!(owner.pending[0].response.as_deref(), Some("[2]"));
    let in_flight = InspectedRequest { id: RequestId::Int(7), for_ms: Some(90_000), cancelled: false };
    assert_eq!(owner.in_flight, [in_flight]);
    assert_eq!((owner.for_ms, owner.pending[0].for_ms), (Some(90_000), Some(90_000)), "since when");
    assert_eq!(look(), (counted, seen));
    store.advance(20_000);
    assert_eq!(look().1.expires_in_ms, 0);
    assert_eq!(store.engine.inspect("another").unwrap(), None);
}

fn g7_a_destroyed_session_stays_destroyed_for_everybody_who_had_it(store: Fixture) {
    let session = store.named("once").unwrap();
    let stream = session.attach(OwnerKind::Stream, None).unwrap();
    session.enqueue_outgoing(&stream, "1", "").unwrap();
    session.attributes().set("a", "1").unwrap();
    let same = store.engine.open_session("once", None).unwrap().unwrap();
    assert!(session.destroy().unwrap());
    assert!(!session.destroy().unwrap());
    assert!(store.engine.open_session("once", None).unwrap().is_none());
    for _ in 0..2 {
        assert!(!same.touch().unwrap());
        assert_eq!(kind(same.attributes().set("a", "2")), ErrorKind::SessionNotFound);
        assert_eq!(kind(same.enqueue_outgoing(&stream, "2", "")), ErrorKind::SessionNotFound);
        assert_eq!(kind(same.attach(OwnerKind::Reply, None)), ErrorKind::SessionNotFound);
        assert_eq!(kind(same.deliver_response(1, "1")), ErrorKind::SessionNotFound);
        let waited = same.wait(&stream, Interest::ALL, 0, Duration::ZERO).unwrap();
        assert_eq!(waited.outcome, WaitedFor::Destroyed);
        // Again, with a new session under the id.
        store.named("once");
    }
    let new = store.engine.open_session("once", None).unwrap().unwrap();
    assert_eq!(new.attributes().all().unwrap(), "{}");
    assert_eq!(new.stats().unwrap().owners, 0);
}

fn an_id_is_taken_once(store: Fixture) {
    assert!(store.named("x").is_some());
    assert!(store.named("x").is_none());
    assert!(store.engine.open_session("y", None).unwrap().is_none());
}

fn m_an_idle_session_expires_after_its_ttl(store: Fixture) {
    let session = store.named("x").unwrap();
    store.advance(9_999);
    assert!(store.engine.open_session("x", None).unwrap().is_some());
    assert!(session.touch().unwrap());
    store.advance(9_999);
    assert!(session.attributes().get("a").unwrap().is_none());
    store.advance(9_999);
    assert!(store.engine.open_session("x", None).unwrap().is_some(), "a read renews what has less than 3/4 left");
    store.advance(10_000);
    assert!(store.engine.open_session("x", None).unwrap().is_none());
    assert_eq!(kind(session.attributes().set("a", "1")), ErrorKind::SessionNotFound);
    assert!(store.named("x").is_some());
    assert!(!session.touch().unwrap());
}

fn m_an_open_stream_keeps_its_session(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    store.advance(60_000);
    assert!(session.touch().unwrap(), "this process lives, and the owner with it");
    session.detach(&stream).unwrap();
    store.advance(10_000);
    assert!(!session.touch().unwrap());
}

fn g11_expired_sessions_are_collected(store: Fixture) {
    for number in 0..5 {
        store.named(&format!("old-{number}")).unwrap().attributes().set("a", "1").unwrap();
    }
    store.advance(6_000);
    let young = store.named("young").unwrap();
    let (kept, stream) = store.session_and_stream();
    store.advance(4_000);
    let before = store.engine.stats().unwrap();
    assert_eq!(before.sessions, 7);
    let first = store.engine.collect(3).unwrap();
    assert_eq!((first.sessions, first.more), (3, true));
    let second = store.engine.collect(100).unwrap();
    assert_eq!((second.sessions, second.more), (2, false));
    assert_eq!(store.engine.stats().unwrap().sessions, 2);
    assert!(young.touch().unwrap() && kept.touch().unwrap());
    store.advance(20_000);
    assert_eq!(store.engine.collect(100).unwrap().sessions, 1, "the one with a living owner stays");
    kept.detach(&stream).unwrap();
    store.advance(40_000);
    assert_eq!(store.engine.collect(100).unwrap().sessions, 1);
    assert_eq!(store.engine.stats().unwrap().sessions, 0);
}

fn g12_a_bound_session_is_not_there_for_anybody_else(store: Fixture) {
    let bound = NewSession { id: Some("x".into()), principal: Some("ann".into()), ..NewSession::default() };
    let session = store.engine.create_session(bound).unwrap().unwrap();
    assert!(store.engine.open_session("x", Some("ann")).unwrap().is_some());
    assert!(store.engine.open_session("x", Some("bob")).unwrap().is_none());
    assert!(store.engine.open_session("x", None).unwrap().is_none());
    assert!(session.touch().unwrap());
    let free = store.named("free").unwrap();
    assert!(store.engine.open_session("free", Some("bob")).unwrap().is_some());
    assert!(free.touch().unwrap());
}

fn the_waiting_room_is_no_session(store: Fixture) {
    let room = store.engine.waiting_room(None).unwrap().unwrap();
    room.attach(OwnerKind::Reply, None).unwrap();
    let [one, two] = [0, 1].map(|_| store.session().id().to_owned());
    let mut all = Vec::new();
    while let [session] = &store.engine.sessions(all.last().map(String::as_str), 1).unwrap()[..] {
        all.push(session.id.clone());
    }
    all.sort();
    let mut right = [one, two];
    right.sort();
    assert_eq!(all, right);
    assert_eq!(store.engine.stats().unwrap().sessions, 2);
    assert!(!room.destroy().unwrap());
    assert_eq!(kind(store.engine.inspect(room.id())), ErrorKind::InvalidArgument);
    assert_eq!(store.engine.contradictions().unwrap(), Vec::<String>::new());
    store.advance(10 * 3_600_000);
    while store.engine.collect(100).unwrap().more {}
    room.attach(OwnerKind::Reply, None).unwrap();
    assert_eq!(store.engine.stats().unwrap().waiting, 1, "who was silent for hours has left");
}

fn nobody_counts_who_waits_where_no_limit_is_set(store: Fixture) {
    assert!(store.engine.waiting_room(None).unwrap().is_none());
    assert_eq!(kind(store.engine.waiting_room(Some(0)).map(|_| ())), ErrorKind::InvalidArgument);
}

fn statistics_show_what_is_there(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    session.send_request(&stream, REQUEST, "", 1000).unwrap();
    session.enqueue_broadcast("1", "").unwrap();
    session.begin_request(&stream, &1.into(), DuplicatePolicy::Isolate).unwrap();
    store.advance(5);
    let stats = session.stats().unwrap();
    assert_eq!((stats.owners, stats.pending, stats.queued, stats.broadcasts, stats.in_flight), (1, 1, 1, 1, 1));
    assert_eq!((stats.age_ms, stats.idle_ms, stats.exchanges), (5, 5, 1));
    assert_eq!(store.engine.sessions(None, 10).unwrap(), [stats]);
    let all = store.engine.stats().unwrap();
    assert_eq!(all.sessions, 1);
    assert!(all.used_bytes > 0 && all.used_bytes <= all.limit_bytes);
    assert!(!all.place.is_empty());
}
