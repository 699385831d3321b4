//! Limits, and what gives way at them (G10).

use mcp_state::{Claim, DuplicatePolicy, Limit, NewSession, OwnerKind, RequestId};

use crate::{Fixture, limit};

contract! { every [
    g10_at_the_session_limit_the_longest_idle_gives_way("max_sessions=3&ttl_ms=1000000"),
    g10_with_on_full_reject_a_new_session_is_refused("max_sessions=1&on_full=reject"),
    g10_a_flood_of_new_sessions_does_not_push_out_the_others("max_sessions=20"),
    g10_an_idle_session_is_found_behind_many_that_are_not("max_sessions=300&ttl_ms=3600000"),
    g10_no_more_exchanges_wait_than_there_are_places("max_waiting=2&max_owners=1&max_sessions=1"),
    g10_expired_sessions_hold_no_place("max_sessions=1&on_full=reject&ttl_ms=1000"),
    g10_expired_sessions_hold_no_place_of_their_principal("max_sessions_per_principal=1&ttl_ms=1000"),
    g10_who_has_all_its_sessions_pushes_out_nobody("max_sessions=2&max_sessions_per_principal=1"),
    g10_one_principal_cannot_push_out_the_others("max_sessions_per_principal=2"),
    g10_attributes_are_counted_and_what_makes_one_too_many_is_refused("max_attributes=2"),
    g10_every_limit_refuses_by_name_and_changes_nothing(
        "max_message_bytes=100&max_owner_messages=3&max_owner_bytes=200&max_owners=2&max_pending=2&max_in_flight=2\
         &max_broadcasts=2&max_attribute_bytes=150&max_session_bytes=400&lease_ms=100000000"
    ),
    g10_ids_and_methods_count_against_the_session("max_session_bytes=100"),
] }

fn g10_attributes_are_counted_and_what_makes_one_too_many_is_refused(store: Fixture) {
    let session = store.session();
    let attributes = session.attributes();
    attributes.patch([("a.b", Some("1")), ("a.c", Some("{}"))]).unwrap();
    assert_eq!(limit(attributes.set("d", "1")), (Limit::Attributes, 2, 3));
    assert_eq!(limit(attributes.put_if_absent("a.d", "1")), (Limit::Attributes, 2, 3));
    assert_eq!(limit(attributes.patch([("a.b", None), ("d", Some("1")), ("e", Some("1"))])), (Limit::Attributes, 2, 3));
    // What is there changes, and what is within a value is no attribute of its own.
    attributes.set("a.b", "\"longer\"").unwrap();
    attributes.patch([("a.c.x", Some("1")), ("a.c.y", Some("2"))]).unwrap();
    assert_eq!(attributes.all().unwrap(), r#"{"a":{"b":"longer","c":{"x":1,"y":2}}}"#);
    // One takes the place of two.
    attributes.set("a", "1").unwrap();
    attributes.set("d", "1").unwrap();
    assert_eq!(limit(attributes.set("e", "1")), (Limit::Attributes, 2, 3));
    assert!(attributes.remove("a").unwrap());
    attributes.set("e", "1").unwrap();
    assert_eq!(store.engine.contradictions().unwrap(), Vec::<String>::new());
}

fn g10_every_limit_refuses_by_name_and_changes_nothing(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let other = session.attach(OwnerKind::Reply, None).unwrap();
    let body = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    assert_eq!(limit(session.attach(OwnerKind::Reply, None)), (Limit::Owners, 2, 3));
    assert_eq!(limit(session.enqueue_outgoing(&stream, &body(101), "")), (Limit::MessageBytes, 100, 101));
    assert_eq!(limit(session.enqueue_outgoing(&stream, "1", &body(101))), (Limit::MessageBytes, 100, 101));
    assert_eq!(limit(session.enqueue_broadcast(&body(101), "")), (Limit::MessageBytes, 100, 101));
    assert_eq!(limit(session.deliver_response(1, &body(101))), (Limit::MessageBytes, 100, 101));
    session.enqueue_outgoing(&stream, &body(96), "").unwrap();
    session.enqueue_outgoing(&stream, &body(96), "").unwrap();
    assert_eq!(limit(session.enqueue_outgoing(&stream, "1", "")), (Limit::OwnerBytes, 200, 205));
    for _ in 0..3 {
        session.enqueue_outgoing(&other, "1", "").unwrap();
    }
    assert_eq!(limit(session.enqueue_outgoing(&other, "1", "")), (Limit::OwnerMessages, 3, 4));
    let ids = [0, 1].map(|_| session.next_request_id().unwrap());
    for id in ids {
        session.register_pending(&stream, id, 1000, "").unwrap();
    }
    assert_eq!(limit(session.register_pending(&stream, 9, 1000, "")), (Limit::Pending, 2, 3));
    assert_eq!(limit(session.send_request(&other, "{}", "", 1000)), (Limit::Pending, 2, 3));
    for id in [1, 2] {
        session.begin_request(&stream, &id.into(), DuplicatePolicy::Isolate).unwrap();
    }
    assert_eq!(limit(session.begin_request(&stream, &3.into(), DuplicatePolicy::Isolate)), (Limit::InFlight, 2, 3));
    session.enqueue_broadcast("1", "").unwrap();
    session.enqueue_broadcast("1", "").unwrap();
    assert_eq!(limit(session.enqueue_broadcast("1", "")), (Limit::Broadcasts, 2, 3));
    let attributes = session.attributes();
    attributes.set("a", &body(99)).unwrap();
    assert_eq!(limit(attributes.set("b", &body(99))), (Limit::AttributeBytes, 150, 200));
    assert_eq!(limit(attributes.set("b", &body(101))), (Limit::MessageBytes, 100, 101));
    session.deliver_response(ids[0], &body(60)).unwrap();
    assert_eq!(limit(session.deliver_response(ids[1], &body(16))), (Limit::SessionBytes, 400, 401));
    assert_eq!(session.claim(&stream, ids[1]).unwrap(), Claim::Waiting(1000));
    assert_eq!(store.engine.stats().unwrap().counters.iter().find(|(name, _)| *name == "limits_hit").unwrap().1, 14);
    // What frees space works, and then there is room again.
    assert_eq!(session.take_outgoing(&stream, 9).unwrap().len(), 3 + 1);
    session.deliver_response(ids[1], &body(16)).unwrap();
}
fn g10_at_the_session_limit_the_longest_idle_gives_way(store: Fixture) {
    let settled = store.named("settled").unwrap();
    for _ in 0..2 {
        let owner = settled.attach(OwnerKind::Reply, None).unwrap();
        settled.detach(&owner).unwrap();
    }
    store.advance(1_000);
    let once = store.named("once").unwrap();
    store.advance(1_000);
    let (kept, _stream) = store.session_and_stream();
    kept.attach(OwnerKind::Reply, None).unwrap();
    store.advance(57_999);
    let refused = store.engine.create_session(NewSession::default());
    assert_eq!(limit(refused.map(|_| ())), (Limit::Sessions, 3, 4), "nobody has been idle for a minute");
    store.advance(1_001);
    assert!(store.named("a").is_some());
    assert!(!once.touch().unwrap(), "the one that never made a second request goes first");
    store.advance(60_000);
    assert!(store.named("b").is_some());
    assert!(store.engine.open_session("a", None).unwrap().is_none());
    assert!(settled.touch().unwrap() && kept.touch().unwrap());
    store.advance(60_000);
    store.engine.open_session("b", None).unwrap().unwrap().touch().unwrap();
    assert!(store.named("c").is_some());
    assert!(!settled.touch().unwrap(), "b was active a moment ago");
    assert!(kept.touch().unwrap(), "a session with a living owner stays");
    assert_eq!(store.engine.stats().unwrap().sessions, 3);
}

fn g10_with_on_full_reject_a_new_session_is_refused(store: Fixture) {
    let session = store.session();
    store.advance(600_000);
    assert_eq!(limit(store.engine.create_session(NewSession::default()).map(|_| ())), (Limit::Sessions, 1, 2));
    session.destroy().unwrap();
    store.session();
}

fn g10_a_flood_of_new_sessions_does_not_push_out_the_others(store: Fixture) {
    let users: Vec<_> = (0..10).map(|_| store.session()).collect();
    for user in &users {
        for _ in 0..2 {
            let reply = user.attach(OwnerKind::Reply, None).unwrap();
            user.detach(&reply).unwrap();
        }
    }
    store.advance(61_000);
    let flood = || store.engine.create_session(NewSession::default()).map(|_| ());
    let refused = (0..30).filter(|_| flood().is_err()).count();
    assert_eq!(refused, 19, "the flood has half of the places and one");
    store.advance(5_000);
    flood().expect("one of the flood gives way");
    assert_eq!(users.iter().filter(|user| user.touch().unwrap()).count(), 9);
}

fn g10_an_idle_session_is_found_behind_many_that_are_not(store: Fixture) {
    for _ in 0..20 {
        store.session();
    }
    store.advance(3_000_000);
    for _ in 0..280 {
        store.engine.create_session(NewSession { ttl_ms: Some(300_000), ..NewSession::default() }).unwrap();
    }
    store.advance(1_000);
    store.session();
}

fn g10_no_more_exchanges_wait_than_there_are_places(store: Fixture) {
    let room = || store.engine.waiting_room(None).unwrap().expect("there is a limit");
    let enter = || room().attach(OwnerKind::Reply, None);
    let first = enter().unwrap();
    enter().unwrap();
    assert_eq!(limit(enter()), (Limit::Waiting, 2, 3));
    let stats = store.engine.stats().unwrap();
    assert_eq!((stats.waiting, stats.max_waiting), (2, 2));
    assert!(stats.counters.contains(&("waiting_refused", 1)), "{:?}", stats.counters);
    room().detach(&first).unwrap();
    enter().unwrap();
    for _ in 2..300 {
        store.engine.waiting_room(Some(300)).unwrap().unwrap().attach(OwnerKind::Reply, None).unwrap();
    }
    let stats = store.engine.stats().unwrap();
    assert_eq!((stats.waiting, stats.max_waiting), (300, 300), "as whoever came last was told");
}

fn g10_expired_sessions_hold_no_place(store: Fixture) {
    store.session();
    store.advance(1_000);
    store.session();
    assert_eq!(store.engine.stats().unwrap().sessions, 1);
}

fn g10_expired_sessions_hold_no_place_of_their_principal(store: Fixture) {
    let of_ann = || NewSession { principal: Some("ann".into()), ..NewSession::default() };
    store.engine.create_session(of_ann()).unwrap();
    store.advance(1_000);
    store.engine.create_session(of_ann()).unwrap();
}

fn g10_who_has_all_its_sessions_pushes_out_nobody(store: Fixture) {
    let of = |principal: &str| {
        store.engine.create_session(NewSession { principal: Some(principal.into()), ..NewSession::default() })
    };
    let other = of("bob").unwrap().unwrap();
    store.advance(100_000);
    of("ann").unwrap();
    assert_eq!(limit(of("ann").map(|_| ())), (Limit::PrincipalSessions, 1, 2));
    assert!(other.touch().unwrap());
}

fn g10_one_principal_cannot_push_out_the_others(store: Fixture) {
    let of = |principal: &str| {
        let new = NewSession { principal: Some(principal.into()), ..NewSession::default() };
        store.engine.create_session(new)
    };
    let first = of("ann").unwrap().unwrap();
    of("ann").unwrap().unwrap();
    assert_eq!(limit(of("ann").map(|_| ())), (Limit::PrincipalSessions, 2, 3));
    of("bob").unwrap().unwrap();
    first.destroy().unwrap();
    of("ann").unwrap().unwrap();
}

fn g10_ids_and_methods_count_against_the_session(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    session.begin_request(&stream, &RequestId::from("x".repeat(60).as_str()), DuplicatePolicy::Isolate).unwrap();
    let method = "m".repeat(41);
    assert_eq!(limit(session.register_pending(&stream, 1, 1000, &method)), (Limit::SessionBytes, 100, 101));
}
