//! The contract of a store: what every operation does, unchanged on every kind of store. Named after the guarantees of
//! docs/design.md, section 3.

#![allow(missing_docs)]

mod common;

use std::time::Duration;

use common::{Fixture, Kind, texts};
use mcp_state::{
    Cancellation, Claim, Delivery, DuplicatePolicy, Error, ErrorKind, InspectedRequest, Interest, LateReason, Limit,
    NewSession, OwnerKind, RequestCancellation, RequestId, WaitedFor,
};

/// Each test runs on each kind of store named; `options` are those of the DSN.
macro_rules! contract {
    ([$($kind:ident $module:ident)*] $tests:tt) => { $(contract! { @run $kind $module $tests })* contract! { @define $tests } };
    (@define { $($name:ident($store:ident $(, $options:literal)?) $body:block)* }) => {
        $(fn $name($store: Fixture) $body)*
    };
    (@run $kind:ident $module:ident { $($name:ident($store:ident $(, $options:literal)?) $body:block)* }) => {
        mod $module {
            $(#[test] fn $name() { super::Fixture::run(super::Kind::$kind, concat!($($options)?), super::$name); })*
        }
    };
}

const REQUEST: &str = r#"{"jsonrpc":"2.0","method":"elicitation/create","params":{}}"#;

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("the operation is refused").kind()
}

fn limit<T: std::fmt::Debug>(result: Result<T, Error>) -> (Limit, u64, u64) {
    match result {
        Err(Error::Limit(limit)) => (limit.limit, limit.maximum, limit.actual),
        other => panic!("expected a limit, got {other:?}"),
    }
}

contract! { [Memory memory Lmdb lmdb WriteMap write_map Redis redis] {
    a_look_at_a_session_shows_what_it_holds_and_changes_nothing(store, "ttl_ms=100000&lease_ms=1000") {
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

    g2_an_answer_is_claimed_once(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Waiting(1000));
        assert_eq!(session.deliver_response(id, r#"{"ok":1}"#).unwrap(), Delivery::Delivered);
        assert_eq!(session.peek_response(&stream, id).unwrap().as_deref(), Some(r#"{"ok":1}"#));
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Answered(r#"{"ok":1}"#.into()));
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Unknown);
        assert_eq!(session.take_outgoing(&stream, 9).unwrap().len(), 1);
        assert_eq!(session.stats().unwrap().message_bytes, 0);
    }

    g2_an_answer_in_time_is_an_answer_whenever_it_is_claimed(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        store.advance(999);
        assert_eq!(session.deliver_response(id, "1").unwrap(), Delivery::Delivered);
        store.advance(5000);
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Answered("1".into()));
    }

    g2_a_timeout_is_seen_once(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        store.advance(1000);
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::TimedOut);
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Unknown);
    }

    g2_a_cancelled_request_ends_as_cancelled(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        assert_eq!(session.cancel_pending(&stream, id).unwrap(), Cancellation::Cancelled);
        assert_eq!(session.cancel_pending(&stream, id).unwrap(), Cancellation::AlreadyCancelled);
        assert_eq!(session.deliver_response(id, "1").unwrap(), Delivery::Late(LateReason::Cancelled));
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Cancelled);
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Unknown);
    }

    g2_cancelling_does_not_undo_an_end(store) {
        let (session, stream) = store.session_and_stream();
        let answered = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        let timed_out = session.send_request(&stream, REQUEST, "", 10).unwrap();
        session.deliver_response(answered, "1").unwrap();
        store.advance(10);
        assert_eq!(session.cancel_pending(&stream, answered).unwrap(), Cancellation::AlreadyAnswered);
        assert_eq!(session.cancel_pending(&stream, timed_out).unwrap(), Cancellation::TimedOut);
        assert_eq!(session.cancel_pending(&stream, 0).unwrap(), Cancellation::Unknown);
        assert_eq!(session.claim(&stream, answered).unwrap(), Claim::Answered("1".into()));
    }

    g2_claim_any_returns_what_ended_in_the_order_it_ended(store) {
        let (session, stream) = store.session_and_stream();
        let ids: Vec<_> = [5000, 1000, 5000, 5000].map(|ms| session.send_request(&stream, REQUEST, "", ms).unwrap()).into();
        assert!(session.claim_any(&stream).unwrap().is_none());
        session.deliver_response(ids[2], "2").unwrap();
        store.advance(1000);
        session.cancel_pending(&stream, ids[3]).unwrap();
        let mut ended = vec![];
        while let Some(resolved) = session.claim_any(&stream).unwrap() {
            ended.push((resolved.id, resolved.claim));
        }
        let expected = [(ids[2], Claim::Answered("2".into())), (ids[1], Claim::TimedOut), (ids[3], Claim::Cancelled)];
        assert_eq!(ended, expected);
        assert_eq!(session.claim(&stream, ids[0]).unwrap(), Claim::Waiting(4000));
    }

    g2_claim_any_puts_a_deadline_where_it_passed(store) {
        let (session, stream) = store.session_and_stream();
        let ids = [300, 200, 1000].map(|ms| session.send_request(&stream, REQUEST, "", ms).unwrap());
        store.advance(400);
        session.deliver_response(ids[2], "1").unwrap();
        let ended: Vec<_> = std::iter::from_fn(|| session.claim_any(&stream).unwrap()).map(|resolved| resolved.id).collect();
        assert_eq!(ended, [ids[1], ids[0], ids[2]]);
    }

    g2_a_deadline_that_passed_is_a_timeout_also_when_the_owner_ends(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.send_request(&stream, REQUEST, "", 10).unwrap();
        store.advance(10);
        assert_eq!(session.detach(&stream).unwrap().unwrap().abandoned_pending, 0);
        assert_eq!(session.deliver_response(id, "1").unwrap(), Delivery::Late(LateReason::TimedOut));
    }

    g4_of_an_id_that_was_used_twice_the_last_end_counts(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.next_request_id().unwrap();
        session.register_pending(&stream, id, 0, "").unwrap();
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::TimedOut);
        session.register_pending(&stream, id, 1000, "").unwrap();
        session.deliver_response(id, "1").unwrap();
        session.claim(&stream, id).unwrap();
        assert_eq!(session.deliver_response(id, "2").unwrap(), Delivery::Late(LateReason::Finished));
    }

    g3_only_its_owner_claims_and_sees_a_timeout(store) {
        let (session, stream) = store.session_and_stream();
        let other = session.attach(OwnerKind::Stream, None).unwrap();
        let answered = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        let timed_out = session.send_request(&stream, REQUEST, "", 10).unwrap();
        session.deliver_response(answered, "1").unwrap();
        store.advance(10);
        assert_eq!(session.claim(&other, answered).unwrap(), Claim::NotOwner);
        assert_eq!(session.claim(&other, timed_out).unwrap(), Claim::NotOwner);
        assert!(session.claim_any(&other).unwrap().is_none());
        assert!(session.resolve_timeouts(&other).unwrap().is_empty());
        assert!(session.peek_response(&other, answered).unwrap().is_none());
        assert_eq!(session.cancel_pending(&other, answered).unwrap(), Cancellation::NotOwner);
        assert_eq!(session.resolve_timeouts(&stream).unwrap(), [timed_out]);
        assert!(session.resolve_timeouts(&stream).unwrap().is_empty());
        assert_eq!(session.claim(&stream, answered).unwrap(), Claim::Answered("1".into()));
    }

    g3_only_its_owner_takes_a_message(store) {
        let (session, stream) = store.session_and_stream();
        let other = session.attach(OwnerKind::Reply, None).unwrap();
        session.enqueue_outgoing(&stream, "\"mine\"", "").unwrap();
        assert!(session.take_outgoing(&other, 10).unwrap().is_empty());
        assert_eq!(texts(session.take_outgoing(&stream, 10).unwrap()), ["\"mine\""]);
    }

    messages_are_taken_in_order_with_their_context(store) {
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

    peeked_messages_stay_until_acknowledged(store) {
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

    a_broadcast_reaches_one_stream_and_never_a_reply(store) {
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

    a_peeked_broadcast_returns_when_its_owner_ends(store) {
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

    a_broadcast_waits_for_the_first_stream(store) {
        let session = store.session();
        session.enqueue_broadcast("\"early\"", "").unwrap();
        let stream = session.attach(OwnerKind::Stream, None).unwrap();
        let waited = session.wait(&stream, Interest::MESSAGE, 0, Duration::ZERO).unwrap();
        assert_eq!(waited.outcome, WaitedFor::Ready);
        assert_eq!(texts(session.take_outgoing(&stream, 9).unwrap()), ["\"early\""]);
    }

    g4_every_late_response_is_discarded_and_says_why(store) {
        let (session, stream) = store.session_and_stream();
        let ask = || session.send_request(&stream, REQUEST, "", 1000).unwrap();
        let (finished, answered, timed_out, unclaimed) = (ask(), ask(), ask(), ask());
        session.deliver_response(finished, "1").unwrap();
        session.claim(&stream, finished).unwrap();
        session.deliver_response(answered, "1").unwrap();
        store.advance(1000);
        session.claim(&stream, timed_out).unwrap();
        let gone = session.attach(OwnerKind::Stream, None).unwrap();
        let abandoned = session.send_request(&gone, REQUEST, "", 1000).unwrap();
        session.detach(&gone).unwrap();
        for (id, reason) in [
            (0, LateReason::Unknown),
            (abandoned + 1, LateReason::Unknown),
            (finished, LateReason::Finished),
            (answered, LateReason::AlreadyAnswered),
            (timed_out, LateReason::TimedOut),
            (unclaimed, LateReason::TimedOut),
            (abandoned, LateReason::Abandoned),
        ] {
            assert_eq!(session.deliver_response(id, "\"late\"").unwrap(), Delivery::Late(reason), "{id}");
        }
        let late = session.stats().unwrap().late;
        assert_eq!(late.iter().map(|(_, count)| count).sum::<u64>(), 7);
        assert_eq!(session.claim(&stream, answered).unwrap(), Claim::Answered("1".into()));
        let counters = store.engine.stats().unwrap().counters;
        assert!(counters.contains(&("late_timed_out", 2)) && counters.contains(&("late_unknown", 2)));
    }

    g4_a_late_answer_never_reaches_a_later_request(store) {
        let (session, stream) = store.session_and_stream();
        let first = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        store.advance(1000);
        assert_eq!(session.claim(&stream, first).unwrap(), Claim::TimedOut);
        let second = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        assert_eq!(session.deliver_response(first, "\"late\"").unwrap(), Delivery::Late(LateReason::TimedOut));
        session.deliver_response(second, "\"right\"").unwrap();
        assert_eq!(session.claim(&stream, second).unwrap(), Claim::Answered("\"right\"".into()));
    }

    g5_ids_are_never_shared_and_start_at_random(store) {
        let session = store.session();
        let stream = session.attach(OwnerKind::Stream, None).unwrap();
        let mut ids: Vec<i64> = (0..50).map(|_| session.next_request_id().unwrap()).collect();
        ids.extend((0..50).map(|_| session.send_request(&stream, REQUEST, "", 1000).unwrap()));
        let unique: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), 100);
        assert!(ids.iter().all(|id| (1..1 << 53).contains(id)));
        let starts: std::collections::BTreeSet<_> = (0..8).map(|_| store.session().next_request_id().unwrap()).collect();
        assert!(starts.len() > 1);
    }

    g5_an_id_of_the_callers_own_is_registered_once(store) {
        let (session, stream) = store.session_and_stream();
        assert_eq!(session.register_pending(&stream, 7, 1000, "ping").unwrap(), Some(1000));
        assert_eq!(session.register_pending(&stream, 7, 1000, "ping").unwrap(), None);
        session.deliver_response(7, "1").unwrap();
        assert_eq!(session.register_pending(&stream, 7, 1000, "ping").unwrap(), None);
        session.claim(&stream, 7).unwrap();
        assert_eq!(session.deliver_response(7, "1").unwrap(), Delivery::Late(LateReason::Finished));
    }

    g5_send_request_never_takes_an_id_that_was_registered_by_hand(store) {
        let (session, stream) = store.session_and_stream();
        let next = session.next_request_id().unwrap() + 1;
        session.register_pending(&stream, next, 1000, "").unwrap();
        assert_eq!(session.send_request(&stream, REQUEST, "", 1000).unwrap(), next + 1);
    }

    g5_a_new_id_is_never_one_that_was_registered_by_hand(store) {
        let (session, stream) = store.session_and_stream();
        let next = session.next_request_id().unwrap() + 1;
        session.register_pending(&stream, next, 1000, "").unwrap();
        assert_eq!(session.next_request_id().unwrap(), next + 1);
    }

    g5_an_id_that_was_registered_by_hand_is_not_given_out_when_its_request_has_ended(store) {
        let (session, stream) = store.session_and_stream();
        let next = session.next_request_id().unwrap() + 1;
        session.register_pending(&stream, next, 0, "").unwrap();
        assert_eq!(session.claim(&stream, next).unwrap(), Claim::TimedOut);
        let sent = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        assert_eq!(session.deliver_response(next, "\"late\"").unwrap(), Delivery::Late(LateReason::TimedOut));
        assert_eq!(session.claim(&stream, sent).unwrap(), Claim::Waiting(1000));
    }

    g6_requests_with_equal_ids_are_isolated_or_rejected(store) {
        let session = store.session();
        let [a, b] = [(); 2].map(|()| session.attach(OwnerKind::Reply, None).unwrap());
        let one = RequestId::from(1);
        assert!(session.begin_request(&a, &one, DuplicatePolicy::Isolate).unwrap());
        assert!(session.begin_request(&b, &one, DuplicatePolicy::Isolate).unwrap());
        assert_eq!(session.cancel_request(&one).unwrap(), RequestCancellation::Ambiguous);
        assert!(!session.is_cancelled(&a, &one).unwrap());
        assert_eq!(session.finish_request(&a, &one).unwrap(), Some(false));
        assert_eq!(session.finish_request(&a, &one).unwrap(), None);
        assert!(!session.begin_request(&a, &one, DuplicatePolicy::Reject).unwrap());
        assert!(session.begin_request(&a, &RequestId::from("1"), DuplicatePolicy::Reject).unwrap());
        assert_eq!(session.finish_request(&b, &one).unwrap(), Some(false));
        assert!(session.begin_request(&a, &one, DuplicatePolicy::Reject).unwrap());
    }

    g6_a_cancellation_marks_the_one_request_it_names(store) {
        let session = store.session();
        let [a, b] = [(); 2].map(|()| session.attach(OwnerKind::Stream, None).unwrap());
        session.begin_request(&a, &1.into(), DuplicatePolicy::Isolate).unwrap();
        session.begin_request(&b, &2.into(), DuplicatePolicy::Isolate).unwrap();
        assert_eq!(session.cancel_request(&3.into()).unwrap(), RequestCancellation::Unknown);
        assert_eq!(session.cancel_request(&"1".into()).unwrap(), RequestCancellation::Unknown);
        assert_eq!(session.cancel_request(&1.into()).unwrap(), RequestCancellation::Cancelled(a));
        assert!(session.is_cancelled(&a, &1.into()).unwrap());
        assert!(!session.is_cancelled(&b, &2.into()).unwrap());
        assert_eq!(session.finish_request(&a, &1.into()).unwrap(), Some(true));
        assert_eq!(session.cancel_request(&1.into()).unwrap(), RequestCancellation::Unknown);
    }

    g7_a_destroyed_session_stays_destroyed_for_everybody_who_had_it(store) {
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

    an_id_is_taken_once(store) {
        assert!(store.named("x").is_some());
        assert!(store.named("x").is_none());
        assert!(store.engine.open_session("y", None).unwrap().is_none());
    }

    m_an_idle_session_expires_after_its_ttl(store, "ttl_ms=10000") {
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

    m_an_open_stream_keeps_its_session(store, "ttl_ms=10000&lease_ms=1000") {
        let (session, stream) = store.session_and_stream();
        store.advance(60_000);
        assert!(session.touch().unwrap(), "this process lives, and the owner with it");
        session.detach(&stream).unwrap();
        store.advance(10_000);
        assert!(!session.touch().unwrap());
    }

    g11_expired_sessions_are_collected(store, "ttl_ms=10000") {
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

    g11_what_an_owner_leaves_is_released_with_it(store) {
        let (session, stream) = store.session_and_stream();
        let other = session.attach(OwnerKind::Stream, None).unwrap();
        session.enqueue_outgoing(&stream, "\"gone\"", "").unwrap();
        let waiting = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        let answered = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        session.deliver_response(answered, "1").unwrap();
        session.begin_request(&stream, &1.into(), DuplicatePolicy::Reject).unwrap();
        session.enqueue_outgoing(&other, "\"kept\"", "").unwrap();
        let detached = session.detach(&stream).unwrap().unwrap();
        assert_eq!((detached.dropped_messages, detached.abandoned_pending), (3, 2));
        assert!(session.detach(&stream).unwrap().is_none());
        assert_eq!(kind(session.take_outgoing(&stream, 9)), ErrorKind::OwnerExpired);
        assert_eq!(kind(session.renew(&stream)), ErrorKind::OwnerExpired);
        assert_eq!(session.deliver_response(waiting, "1").unwrap(), Delivery::Late(LateReason::Abandoned));
        assert!(session.begin_request(&other, &1.into(), DuplicatePolicy::Reject).unwrap());
        assert_eq!(texts(session.take_outgoing(&other, 9).unwrap()), ["\"kept\""]);
        assert_eq!(session.stats().unwrap().message_bytes, 0);
    }

    g11_an_owner_that_is_silent_for_hours_is_released(store, "lease_ms=1000&ttl_ms=1000000") {
        let (session, silent) = store.session_and_stream();
        store.advance(1_100_000);
        session.attach(OwnerKind::Reply, None).unwrap();
        assert_eq!(session.stats().unwrap().owners, 2, "silence alone is not death: the process lives");
        store.advance(2_500_001);
        assert_eq!(session.stats().unwrap().owners, 2);
        session.touch().unwrap();
        session.attach(OwnerKind::Reply, None).unwrap();
        assert_eq!(kind(session.renew(&silent)), ErrorKind::OwnerExpired);
    }

    g11_an_owner_whose_lease_ran_out_is_revived_by_its_next_operation(store, "lease_ms=1000") {
        let (session, stream) = store.session_and_stream();
        store.advance(10_000);
        session.enqueue_outgoing(&stream, "1", "").unwrap();
        assert_eq!(texts(session.take_outgoing(&stream, 9).unwrap()), ["1"]);
    }

    g12_a_bound_session_is_not_there_for_anybody_else(store) {
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

    g9_a_wait_ends_when_something_of_interest_is_there(store) {
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

    g9_a_wait_for_one_thing_hides_no_other(store) {
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

    a_wait_of_a_released_owner_fails(store) {
        let (session, stream) = store.session_and_stream();
        session.detach(&stream).unwrap();
        assert_eq!(kind(session.wait(&stream, Interest::ALL, 0, Duration::ZERO)), ErrorKind::OwnerExpired);
    }

    g9_a_passed_deadline_is_something_to_wake_for(store) {
        let (session, stream) = store.session_and_stream();
        let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        store.advance(1000);
        let waited = session.wait(&stream, Interest::RESOLUTION, 0, Duration::from_secs(9)).unwrap();
        assert_eq!(waited.outcome, WaitedFor::Ready);
        assert_eq!(session.claim_any(&stream).unwrap().unwrap().id, id);
    }

    a_list_equals_the_object_with_its_elements(store) {
        let (session, other) = (store.session(), r#"{"1":[],"0":{}}"#);
        session.attributes().set("a.0", "{}").unwrap();
        session.attributes().set("a.1", "[]").unwrap();
        for (expected, equal) in [("[[],[],[]]", false), ("[[]]", false), (r#"{"0":{},"2":[]}"#, false), ("[[],[]]", true), (other, true)] {
            let set = session.attributes().compare_and_set("a", Some(expected), Some(other)).unwrap();
            assert_eq!(set, equal, "{expected}");
        }
    }

    a_number_stays_what_it_is_when_its_neighbour_is_set(store) {
        let session = store.session();
        for number in ["8.155738655267917e250", "0.1", "5e-324", "-0.0", "18446744073709551615", "0.30000000000000004"] {
            session.attributes().set("a", &format!("{{\"n\":{number}}}")).unwrap();
            session.attributes().set("a.neighbour", "1").unwrap();
            let read: f64 = session.attributes().get("a.n").unwrap().unwrap().parse().unwrap();
            assert_eq!(read.to_bits(), number.parse::<f64>().unwrap().to_bits(), "{number}");
        }
    }

    g10_every_limit_refuses_by_name_and_changes_nothing(
        store, "max_message_bytes=100&max_owner_messages=3&max_owner_bytes=200&max_owners=2&max_pending=2&max_in_flight=2\
                &max_broadcasts=2&max_attribute_bytes=150&max_session_bytes=400&lease_ms=100000000"
    ) {
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

    g10_at_the_session_limit_the_longest_idle_gives_way(store, "max_sessions=3&ttl_ms=1000000") {
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

    g10_with_on_full_reject_a_new_session_is_refused(store, "max_sessions=1&on_full=reject") {
        let session = store.session();
        store.advance(600_000);
        assert_eq!(limit(store.engine.create_session(NewSession::default()).map(|_| ())), (Limit::Sessions, 1, 2));
        session.destroy().unwrap();
        store.session();
    }

    g10_a_flood_of_new_sessions_does_not_push_out_the_others(store, "max_sessions=20") {
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

    g10_an_idle_session_is_found_behind_many_that_are_not(store, "max_sessions=300&ttl_ms=3600000") {
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

    g10_no_more_exchanges_wait_than_there_are_places(store, "max_waiting=2&max_owners=1&max_sessions=1") {
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

    the_waiting_room_is_no_session(store, "max_waiting=2&max_sessions=2") {
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

    nobody_counts_who_waits_where_no_limit_is_set(store) {
        assert!(store.engine.waiting_room(None).unwrap().is_none());
        assert_eq!(kind(store.engine.waiting_room(Some(0)).map(|_| ())), ErrorKind::InvalidArgument);
    }

    a_question_is_named_by_its_owner_once(store) {
        let (session, stream) = store.session_and_stream();
        let other = session.attach(OwnerKind::Stream, None).unwrap();
        let name = |owner, method: &str| session.register_pending(owner, 7, 5000, method).unwrap().is_some();
        assert!(name(&stream, ""));
        assert!(!name(&other, "m") && !name(&stream, ""));
        assert!(name(&stream, "elicitation/create"));
        assert!(!name(&stream, "n"), "it has a name");
        store.advance(1000);
        let (_, seen) = store.engine.inspect(session.id()).unwrap().unwrap();
        let asked = &seen.owners[0].pending[0];
        let shown = (asked.info.method.as_str(), &asked.info.state, asked.for_ms);
        assert_eq!(shown, ("elicitation/create", &Claim::Waiting(4000), Some(1000)));
    }

    g10_expired_sessions_hold_no_place(store, "max_sessions=1&on_full=reject&ttl_ms=1000") {
        store.session();
        store.advance(1_000);
        store.session();
        assert_eq!(store.engine.stats().unwrap().sessions, 1);
    }

    g10_expired_sessions_hold_no_place_of_their_principal(store, "max_sessions_per_principal=1&ttl_ms=1000") {
        let of_ann = || NewSession { principal: Some("ann".into()), ..NewSession::default() };
        store.engine.create_session(of_ann()).unwrap();
        store.advance(1_000);
        store.engine.create_session(of_ann()).unwrap();
    }

    g10_who_has_all_its_sessions_pushes_out_nobody(store, "max_sessions=2&max_sessions_per_principal=1") {
        let of = |principal: &str| {
            store.engine.create_session(NewSession { principal: Some(principal.into()), ..NewSession::default() })
        };
        let other = of("bob").unwrap().unwrap();
        store.advance(100_000);
        of("ann").unwrap();
        assert_eq!(limit(of("ann").map(|_| ())), (Limit::PrincipalSessions, 1, 2));
        assert!(other.touch().unwrap());
    }

    g10_one_principal_cannot_push_out_the_others(store, "max_sessions_per_principal=2") {
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

    g10_ids_and_methods_count_against_the_session(store, "max_session_bytes=100") {
        let (session, stream) = store.session_and_stream();
        session.begin_request(&stream, &RequestId::from("x".repeat(60).as_str()), DuplicatePolicy::Isolate).unwrap();
        let method = "m".repeat(41);
        assert_eq!(limit(session.register_pending(&stream, 1, 1000, &method)), (Limit::SessionBytes, 100, 101));
    }

    a_value_of_any_size_reads_back_as_it_was(store) {
        let (session, stream) = store.session_and_stream();
        for length in [1, 65_533, 65_534, 65_535, 65_536, 65_537, 131_072, 131_073, 1_000_000, 3, 131_072, 5] {
            let json = format!("\"{}\"", "é".repeat(length / 2));
            session.attributes().set("a", &json).unwrap();
            assert_eq!(session.attributes().get("a").unwrap().unwrap(), json);
            session.enqueue_outgoing(&stream, &json, "").unwrap();
            assert_eq!(session.take_outgoing(&stream, 1).unwrap()[0].message, json);
        }
        session.attributes().remove("a").unwrap();
        assert_eq!(session.attributes().all().unwrap(), "{}");
        assert_eq!(session.stats().unwrap().attribute_bytes, 0);
    }

    attributes_read_the_same_however_they_were_written(store) {
        let session = store.session();
        let attributes = session.attributes();
        attributes.set("client.name", "\"n\"").unwrap();
        attributes.set("client.version.major", "1").unwrap();
        assert_eq!(attributes.get("client").unwrap().unwrap(), r#"{"name":"n","version":{"major":1}}"#);
        attributes.set("client.version", r#"{"z":0,"major":2,"minor":3}"#).unwrap();
        assert_eq!(attributes.get("client.version.minor").unwrap().unwrap(), "3");
        attributes.set("client.version.major", "4").unwrap();
        assert_eq!(attributes.get("client.version").unwrap().unwrap(), r#"{"z":0,"major":4,"minor":3}"#);
        attributes.set("client.version.z.deep", "[]").unwrap();
        assert_eq!(attributes.get("client.version.z").unwrap().unwrap(), r#"{"deep":[]}"#);
        attributes.set("clientele", "true").unwrap();
        attributes.set("client", "null").unwrap();
        assert_eq!(attributes.all().unwrap(), r#"{"client":null,"clientele":true}"#);
        assert!(attributes.get("client.name").unwrap().is_none());
        assert!(attributes.get("absent").unwrap().is_none());
    }

    attributes_are_removed_and_taken_with_all_below_them(store) {
        let session = store.session();
        let attributes = session.attributes();
        attributes.set("a.b", "1").unwrap();
        attributes.set("a.c", r#"{"d":{"e":2},"f":[1,2]}"#).unwrap();
        assert!(attributes.remove("a.c.d.e").unwrap());
        assert!(!attributes.remove("a.c.d.e").unwrap());
        assert!(!attributes.remove("a.c.x.y").unwrap());
        assert!(!attributes.remove("a.b.c").unwrap());
        assert_eq!(attributes.get("a.c").unwrap().unwrap(), r#"{"d":{},"f":[1,2]}"#);
        assert_eq!(attributes.get("a.c.f.1").unwrap().unwrap(), "2");
        assert_eq!(attributes.take("a.c.f").unwrap().unwrap(), "[1,2]");
        assert_eq!(attributes.take("a").unwrap().unwrap(), r#"{"b":1,"c":{"d":{}}}"#);
        assert!(attributes.take("a").unwrap().is_none());
        assert_eq!(session.stats().unwrap().attribute_bytes, 0);
    }

    attributes_change_only_as_expected(store) {
        let session = store.session();
        let attributes = session.attributes();
        assert!(attributes.put_if_absent("a", "1").unwrap());
        assert!(!attributes.put_if_absent("a", "2").unwrap());
        attributes.set("a", "null").unwrap();
        assert!(attributes.put_if_absent("a", "3").unwrap());
        assert!(!attributes.compare_and_set("a", Some("2"), Some("4")).unwrap());
        assert!(!attributes.compare_and_set("a", None, Some("4")).unwrap());
        assert!(attributes.compare_and_set("a", Some(" 3 "), Some(r#"{"x":1,"y":2}"#)).unwrap());
        assert!(attributes.compare_and_set("a", Some(r#"{"y":2,"x":1}"#), None).unwrap());
        assert!(attributes.compare_and_set("a", None, Some("5")).unwrap());
        assert_eq!(attributes.get("a").unwrap().unwrap(), "5");
        attributes.set("a", "null").unwrap();
        assert!(attributes.compare_and_set("a", None, Some("6")).unwrap());
        attributes.set("a", "null").unwrap();
        assert!(attributes.compare_and_set("a", Some("null"), Some("7")).unwrap());
    }

    what_is_set_can_be_read_again_whatever_else_is(store) {
        let session = store.session();
        let attributes = session.attributes();
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deep_key = |segments: usize| vec!["a"; segments].join(".");
        attributes.set("ok", r#""[[\"[[""#).unwrap();
        for json in ["1e999", r#""\ud800""#, &nested(100), &nested(200)] {
            assert_eq!(kind(attributes.set("x", json)), ErrorKind::InvalidArgument, "{json}");
            assert_eq!(kind(attributes.put_if_absent("x", json)), ErrorKind::InvalidArgument, "{json}");
            assert_eq!(kind(attributes.patch([("x", Some(json))])), ErrorKind::InvalidArgument, "{json}");
        }
        attributes.set("x", &nested(99)).unwrap();
        attributes.set("a", r#"{"b":1}"#).unwrap();
        attributes.set(&deep_key(50), &nested(50)).unwrap();
        let refused = attributes.set(&deep_key(51), &nested(50)).unwrap_err().to_string();
        assert!(refused.contains("101 deep") && refused.contains("limit is 100"), "{refused}");
        attributes.set("b.c", "1").unwrap();
        attributes.set(&format!("b.{}", deep_key(99)), "1").unwrap();
        assert_eq!(kind(attributes.set(&deep_key(101), "1")), ErrorKind::InvalidArgument);
        assert_eq!(attributes.get("a.b").unwrap().unwrap(), "1");
        attributes.all().unwrap();
    }

    an_element_of_a_list_has_one_name(store) {
        let session = store.session();
        let attributes = session.attributes();
        attributes.set("l", "[1,2]").unwrap();
        assert_eq!(attributes.get("l.1").unwrap().unwrap(), "2");
        for name in ["l.+1", "l.01", "l.1x"] {
            assert_eq!(attributes.take(name).unwrap(), None, "{name}");
        }
        attributes.set("l.+1", "9").unwrap();
        assert_eq!(attributes.get("l").unwrap().unwrap(), r#"{"0":1,"1":2,"+1":9}"#);
    }

    a_patch_sees_what_it_has_changed_below_a_key(store) {
        let session = store.session();
        let attributes = session.attributes();
        attributes.patch([("a.b", Some("1")), ("a.c", Some("2")), ("a-b", Some("3")), ("ab", Some("4"))]).unwrap();
        attributes.patch([("a.d", Some("5")), ("a.b", None), ("a", None), ("a.e", Some("6"))]).unwrap();
        assert_eq!(attributes.all().unwrap(), r#"{"a-b":3,"a":{"e":6},"ab":4}"#);
    }

    a_patch_into_one_value_after_another_is_as_if_each_were_set(store) {
        let session = store.session();
        let attributes = session.attributes();
        attributes.set("a", r#"{"x":1}"#).unwrap();
        attributes.set("b", "[1,2]").unwrap();
        attributes.patch([
            ("a.y", Some("2")), ("a.x", None), ("a.y.z", Some("3")), ("b.1", Some("4")), ("a.none", None),
            ("a", Some(r#"{"new":{}}"#)), ("a.new.w", Some("5")), ("c.d", Some("6")), ("a", None), ("a.v", Some("7")),
        ]).unwrap();
        assert_eq!(attributes.all().unwrap(), r#"{"a":{"v":7},"b":[1,4],"c":{"d":6}}"#);
        assert_eq!(session.stats().unwrap().attribute_bytes, "a.v7b[1,4]c.d6".len() as u64);
    }

    a_patch_is_applied_in_order_and_all_or_nothing(store) {
        let session = store.session();
        let attributes = session.attributes();
        attributes.set("old", "1").unwrap();
        attributes.patch([("a", Some(r#"{"b":1}"#)), ("a.c", Some("2")), ("a.b", None), ("old", None)]).unwrap();
        assert_eq!(attributes.all().unwrap(), r#"{"a":{"c":2}}"#);
        assert_eq!(kind(attributes.patch([("x", Some("1")), ("y", Some("not json"))])), ErrorKind::InvalidArgument);
        assert_eq!(attributes.all().unwrap(), r#"{"a":{"c":2}}"#);
    }

    bad_input_is_refused_by_value(store) {
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

    send_request_puts_the_id_into_the_message(store) {
        let (session, stream) = store.session_and_stream();
        for (request, expected) in [("{}", "{\"id\":N}"), (" { } ", "{\"id\":N } "), (r#"{"method":"a"}"#, r#"{"id":N,"method":"a"}"#)] {
            let id = session.send_request(&stream, request, "context", 1000).unwrap();
            let message = session.take_outgoing(&stream, 1).unwrap().remove(0);
            assert_eq!(message.message, expected.replace('N', &id.to_string()));
            assert_eq!(message.context, "context");
        }
        let shown = session.pending(Some(&stream)).unwrap();
        assert_eq!(shown.last().unwrap().method, "a");
        assert_eq!(shown.last().unwrap().state, Claim::Waiting(1000));
        assert_eq!(session.pending(None).unwrap(), shown);
    }

    o_the_bus_keeps_order_and_tells_who_fell_behind(store, "max_topic_messages=3") {
        let bus = &store.engine;
        assert_eq!(bus.cursor("t").unwrap(), 0);
        assert_eq!(bus.since("t", 0, 10).unwrap(), Default::default());
        for number in 1..=5 {
            assert_eq!(bus.publish("t", &format!("m{number}")).unwrap(), number);
        }
        let read = bus.since("t", 1, 2).unwrap();
        assert_eq!((read.messages, read.cursor, read.missed), (vec![(3, "m3".into()), (4, "m4".into())], 4, 1));
        assert_eq!(bus.since("t", 0, 2).unwrap().missed, 2, "a reader of before the first message is told, too");
        let read = bus.since("t", 4, 2).unwrap();
        assert_eq!((read.messages, read.cursor, read.missed), (vec![(5, "m5".into())], 5, 0));
        let read = bus.since("t", 5, 2).unwrap();
        assert_eq!((read.messages, read.cursor, read.missed), (vec![], 5, 0));
        assert!(bus.wait_since("t", 4, Duration::ZERO).unwrap());
        assert!(!bus.wait_since("t", 5, Duration::ZERO).unwrap());
        assert_eq!(bus.cursor("other").unwrap(), 0);
        let read = bus.since("t", 77, 9).unwrap();
        assert_eq!((read.messages.len(), read.cursor, read.missed), (3, 5, 0), "a cursor of an earlier life of the topic");
    }

    the_bus_is_bounded(store, "max_topics=2&max_topic_bytes=10&max_message_bytes=8") {
        let bus = &store.engine;
        bus.publish("a", "12345678").unwrap();
        bus.publish("a", "12345").unwrap();
        assert_eq!(bus.since("a", 0, 9).unwrap().messages, [(2, "12345".into())]);
        assert_eq!(limit(bus.publish("a", "123456789")), (Limit::MessageBytes, 8, 9));
        bus.publish("b", "1").unwrap();
        assert_eq!(limit(bus.publish("c", "1")), (Limit::Topics, 2, 3));
        assert_eq!(kind(bus.publish("", "1")), ErrorKind::InvalidArgument);
        assert_eq!(kind(bus.publish("a", "")), ErrorKind::InvalidArgument);
        store.advance(25 * 3_600_000);
        bus.collect(1).unwrap();
        bus.publish("c", "1").unwrap();
    }

    a_key_is_used_once(store, "max_once_keys=3") {
        let once = &store.engine;
        assert!(once.consume_once("k", 1000).unwrap());
        assert!(!once.consume_once("k", 1000).unwrap());
        store.advance(999);
        assert!(!once.consume_once("k", 1000).unwrap());
        store.advance(1);
        assert!(once.consume_once("k", 1000).unwrap());
        assert!(once.consume_once("l", 5000).unwrap());
        assert!(once.consume_once("m", 5000).unwrap());
        assert_eq!(limit(once.consume_once("n", 1000)), (Limit::OnceKeys, 3, 4));
        store.advance(1000);
        assert!(once.consume_once("n", 1000).unwrap(), "what is forgotten makes room");
        assert_eq!(kind(once.consume_once("", 1000)), ErrorKind::InvalidArgument);
    }

    statistics_show_what_is_there(store) {
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
} }

// A server bounds its memory itself (tests/redis.rs): no store of several machines counts every byte.
contract! { [Memory memory_bytes Lmdb lmdb_bytes WriteMap write_map_bytes] {
    g10_a_full_store_refuses_what_grows_and_frees_what_is_freed(store, "max_store_bytes=400K&max_session_bytes=1M") {
        let body = format!("\"{}\"", "x".repeat(8_000));
        let (session, stream) = store.session_and_stream();
        let waiting = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        let answered = session.send_request(&stream, REQUEST, "", 1000).unwrap();
        session.deliver_response(answered, "1").unwrap();
        let mut more = vec![];
        let refused = loop {
            let mut fill = || -> Result<(), Error> {
                let extra = store.engine.create_session(NewSession::default())?.unwrap();
                more.push(extra.clone());
                loop { extra.enqueue_broadcast(&body, "")?; }
            };
            let refused = fill().unwrap_err();
            if refused.kind() == ErrorKind::StoreFull {
                break refused;
            }
            assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
        };
        assert!(refused.to_string().contains("409600"), "{refused}");
        assert_eq!(kind(session.enqueue_outgoing(&stream, &body, "")), ErrorKind::StoreFull);
        assert_eq!(kind(session.attributes().set("a", &body)), ErrorKind::StoreFull);
        assert_eq!(session.claim(&stream, answered).unwrap(), Claim::Answered("1".into()));
        assert_eq!(session.take_outgoing(&stream, 2).unwrap().len(), 2);
        store.advance(1000);
        assert_eq!(session.resolve_timeouts(&stream).unwrap(), [waiting]);
        session.detach(&stream).unwrap();
        for session in more {
            assert!(session.destroy().unwrap());
        }
        let stream = session.attach(OwnerKind::Stream, None).unwrap();
        session.enqueue_outgoing(&stream, &body, "").unwrap();
    }

    g10_a_store_is_full_whatever_filled_it(store, "max_store_bytes=2M&max_sessions=1000") {
        let id = RequestId::from("x".repeat(255).as_str());
        let fill = || -> Result<(), Error> {
            for _ in 0..200 {
                let session = store.session();
                let reply = session.attach(OwnerKind::Reply, None)?;
                for _ in 0..250 {
                    session.begin_request(&reply, &id, DuplicatePolicy::Isolate)?;
                }
            }
            Ok(())
        };
        assert_eq!(kind(fill()), ErrorKind::StoreFull);
    }

    g10_what_shrinks_or_resolves_works_in_a_full_store(store, "max_store_bytes=2M&max_session_bytes=128K") {
        let (session, stream) = store.session_and_stream();
        let attributes = session.attributes();
        attributes.set("o", &format!(r#"{{"a":"{}","b":"{}"}}"#, "x".repeat(20_000), "y".repeat(20_000))).unwrap();
        let ids: Vec<_> = (0..9).map(|_| session.send_request(&stream, REQUEST, "", 1000).unwrap()).collect();
        session.enqueue_broadcast("1", "").unwrap();
        session.begin_request(&stream, &1.into(), DuplicatePolicy::Isolate).unwrap();
        for length in [60_000, 3_000, 1] {
            let body = "y".repeat(length);
            let fill = || -> Result<(), Error> {
                loop {
                    let extra = store.engine.create_session(NewSession::default())?.unwrap();
                    let owner = extra.attach(OwnerKind::Stream, None)?;
                    extra.enqueue_outgoing(&owner, &body, "")?;
                }
            };
            assert_eq!(kind(fill()), ErrorKind::StoreFull);
        }
        assert!(attributes.remove("o.a").unwrap());
        attributes.set("o", "1").unwrap();
        assert_eq!(session.cancel_pending(&stream, ids[0]).unwrap(), Cancellation::Cancelled);
        assert_eq!(session.peek_outgoing(&stream, 99).unwrap().len(), 10);
        assert!(matches!(session.cancel_request(&1.into()).unwrap(), RequestCancellation::Cancelled(_)));
        session.renew(&stream).unwrap();
        session.next_request_id().unwrap();
        store.advance(1000);
        assert_eq!(session.resolve_timeouts(&stream).unwrap(), ids[1..]);
        session.detach(&stream).unwrap();
    }
} }

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

#[test]
fn g2_g3_what_a_process_foresaw_and_another_has_done_meanwhile_is_not_done_again() {
    for kind in [Kind::Lmdb, Kind::WriteMap] {
        let store = Fixture::new(kind, "");
        let (session, stream) = store.session_and_stream();
        // Another process that holds the same owner: what this one has seen of the session is out of date after each step.
        let settings = mcp_state::Settings::default();
        let other = mcp_state::Engine::with_clock(store.engine.dsn(), settings, store.clock.clone()).unwrap();
        let other = other.open_session(session.id(), None).unwrap().unwrap();
        let id = session.send_request(&stream, REQUEST, "", 60_000).unwrap();
        assert_eq!(other.take_outgoing(&stream, 9).unwrap().len(), 1);
        assert!(session.take_outgoing(&stream, 9).unwrap().is_empty());
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Waiting(60_000));
        assert_eq!(other.deliver_response(id, "1").unwrap(), Delivery::Delivered);
        assert_eq!(session.deliver_response(id, "2").unwrap(), Delivery::Late(LateReason::AlreadyAnswered));
        assert_eq!(other.claim(&stream, id).unwrap(), Claim::Answered("1".into()));
        assert_eq!(session.claim(&stream, id).unwrap(), Claim::Unknown);
        assert!(session.claim_any(&stream).unwrap().is_none());
        assert_eq!(session.deliver_response(id, "3").unwrap(), Delivery::Late(LateReason::Finished));
        session.detach(&stream).unwrap();
    }
}
