//! Requests to the client and their responses (G2, G3, G4, G5).

use mcp_state::{Cancellation, Claim, Delivery, LateReason, OwnerKind};

use crate::{Fixture, Kind, REQUEST};

contract! { every [
    g2_an_answer_is_claimed_once,
    g2_an_answer_in_time_is_an_answer_whenever_it_is_claimed,
    g2_a_timeout_is_seen_once,
    g2_a_cancelled_request_ends_as_cancelled,
    g2_cancelling_does_not_undo_an_end,
    g2_claim_any_returns_what_ended_in_the_order_it_ended,
    g2_claim_any_puts_a_deadline_where_it_passed,
    g2_a_deadline_that_passed_is_a_timeout_also_when_the_owner_ends,
    g4_of_an_id_that_was_used_twice_the_last_end_counts,
    g3_only_its_owner_claims_and_sees_a_timeout,
    g4_every_late_response_is_discarded_and_says_why,
    g4_a_late_answer_never_reaches_a_later_request,
    g5_ids_are_never_shared_and_start_at_random,
    g5_an_id_of_the_callers_own_is_registered_once,
    g5_send_request_never_takes_an_id_that_was_registered_by_hand,
    g5_a_new_id_is_never_one_that_was_registered_by_hand,
    g5_an_id_that_was_registered_by_hand_is_not_given_out_when_its_request_has_ended,
    send_request_puts_the_id_into_the_message,
] }

fn g2_an_answer_is_claimed_once(store: Fixture) {
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

fn g2_an_answer_in_time_is_an_answer_whenever_it_is_claimed(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    store.advance(999);
    assert_eq!(session.deliver_response(id, "1").unwrap(), Delivery::Delivered);
    store.advance(5000);
    assert_eq!(session.claim(&stream, id).unwrap(), Claim::Answered("1".into()));
}

fn g2_a_timeout_is_seen_once(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    store.advance(1000);
    assert_eq!(session.claim(&stream, id).unwrap(), Claim::TimedOut);
    assert_eq!(session.claim(&stream, id).unwrap(), Claim::Unknown);
}

fn g2_a_cancelled_request_ends_as_cancelled(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    assert_eq!(session.cancel_pending(&stream, id).unwrap(), Cancellation::Cancelled);
    assert_eq!(session.cancel_pending(&stream, id).unwrap(), Cancellation::AlreadyCancelled);
    assert_eq!(session.deliver_response(id, "1").unwrap(), Delivery::Late(LateReason::Cancelled));
    assert_eq!(session.claim(&stream, id).unwrap(), Claim::Cancelled);
    assert_eq!(session.claim(&stream, id).unwrap(), Claim::Unknown);
}

fn g2_cancelling_does_not_undo_an_end(store: Fixture) {
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

fn g2_claim_any_returns_what_ended_in_the_order_it_ended(store: Fixture) {
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

fn g2_claim_any_puts_a_deadline_where_it_passed(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let ids = [300, 200, 1000].map(|ms| session.send_request(&stream, REQUEST, "", ms).unwrap());
    store.advance(400);
    session.deliver_response(ids[2], "1").unwrap();
    let ended: Vec<_> =
        std::iter::from_fn(|| session.claim_any(&stream).unwrap()).map(|resolved| resolved.id).collect();
    assert_eq!(ended, [ids[1], ids[0], ids[2]]);
}

fn g2_a_deadline_that_passed_is_a_timeout_also_when_the_owner_ends(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.send_request(&stream, REQUEST, "", 10).unwrap();
    store.advance(10);
    assert_eq!(session.detach(&stream).unwrap().unwrap().abandoned_pending, 0);
    assert_eq!(session.deliver_response(id, "1").unwrap(), Delivery::Late(LateReason::TimedOut));
}

fn g4_of_an_id_that_was_used_twice_the_last_end_counts(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let id = session.next_request_id().unwrap();
    session.register_pending(&stream, id, 0, "").unwrap();
    assert_eq!(session.claim(&stream, id).unwrap(), Claim::TimedOut);
    session.register_pending(&stream, id, 1000, "").unwrap();
    session.deliver_response(id, "1").unwrap();
    session.claim(&stream, id).unwrap();
    assert_eq!(session.deliver_response(id, "2").unwrap(), Delivery::Late(LateReason::Finished));
}

fn g3_only_its_owner_claims_and_sees_a_timeout(store: Fixture) {
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

fn g4_every_late_response_is_discarded_and_says_why(store: Fixture) {
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

fn g4_a_late_answer_never_reaches_a_later_request(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let first = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    store.advance(1000);
    assert_eq!(session.claim(&stream, first).unwrap(), Claim::TimedOut);
    let second = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    assert_eq!(session.deliver_response(first, "\"late\"").unwrap(), Delivery::Late(LateReason::TimedOut));
    session.deliver_response(second, "\"right\"").unwrap();
    assert_eq!(session.claim(&stream, second).unwrap(), Claim::Answered("\"right\"".into()));
}

fn g5_ids_are_never_shared_and_start_at_random(store: Fixture) {
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

fn g5_an_id_of_the_callers_own_is_registered_once(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    assert_eq!(session.register_pending(&stream, 7, 1000, "ping").unwrap(), Some(1000));
    assert_eq!(session.register_pending(&stream, 7, 1000, "ping").unwrap(), None);
    session.deliver_response(7, "1").unwrap();
    assert_eq!(session.register_pending(&stream, 7, 1000, "ping").unwrap(), None);
    session.claim(&stream, 7).unwrap();
    assert_eq!(session.deliver_response(7, "1").unwrap(), Delivery::Late(LateReason::Finished));
}

fn g5_send_request_never_takes_an_id_that_was_registered_by_hand(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let next = session.next_request_id().unwrap() + 1;
    session.register_pending(&stream, next, 1000, "").unwrap();
    assert_eq!(session.send_request(&stream, REQUEST, "", 1000).unwrap(), next + 1);
}

fn g5_a_new_id_is_never_one_that_was_registered_by_hand(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let next = session.next_request_id().unwrap() + 1;
    session.register_pending(&stream, next, 1000, "").unwrap();
    assert_eq!(session.next_request_id().unwrap(), next + 1);
}

fn g5_an_id_that_was_registered_by_hand_is_not_given_out_when_its_request_has_ended(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    let next = session.next_request_id().unwrap() + 1;
    session.register_pending(&stream, next, 0, "").unwrap();
    assert_eq!(session.claim(&stream, next).unwrap(), Claim::TimedOut);
    let sent = session.send_request(&stream, REQUEST, "", 1000).unwrap();
    assert_eq!(session.deliver_response(next, "\"late\"").unwrap(), Delivery::Late(LateReason::TimedOut));
    assert_eq!(session.claim(&stream, sent).unwrap(), Claim::Waiting(1000));
}

fn send_request_puts_the_id_into_the_message(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    for (request, expected) in
        [("{}", "{\"id\":N}"), (" { } ", "{\"id\":N } "), (r#"{"method":"a"}"#, r#"{"id":N,"method":"a"}"#)]
    {
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
