//! Owners attach, are renewed, and end (G11).

use mcp_state::{Claim, Delivery, DuplicatePolicy, ErrorKind, LateReason, OwnerKind};

use crate::{Fixture, REQUEST, kind, texts};

contract! { every [
    g11_what_an_owner_leaves_is_released_with_it,
    g11_an_owner_that_is_silent_for_hours_is_released("lease_ms=1000&ttl_ms=1000000"),
    g11_an_owner_whose_lease_ran_out_is_revived_by_its_next_operation("lease_ms=1000"),
    a_question_is_named_by_its_owner_once,
] }

fn g11_what_an_owner_leaves_is_released_with_it(store: Fixture) {
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

fn g11_an_owner_that_is_silent_for_hours_is_released(store: Fixture) {
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

fn g11_an_owner_whose_lease_ran_out_is_revived_by_its_next_operation(store: Fixture) {
    let (session, stream) = store.session_and_stream();
    store.advance(10_000);
    session.enqueue_outgoing(&stream, "1", "").unwrap();
    assert_eq!(texts(session.take_outgoing(&stream, 9).unwrap()), ["1"]);
}

fn a_question_is_named_by_its_owner_once(store: Fixture) {
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
