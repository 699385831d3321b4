//! Full stores (G10). A Redis server bounds its own memory (tests/redis), so these tests run on local stores.

use mcp_state::{
    Cancellation, Claim, DuplicatePolicy, Error, ErrorKind, NewSession, OwnerKind, RequestCancellation, RequestId,
};

use crate::{Fixture, REQUEST, kind};

contract! { bounded [
    g10_a_full_store_refuses_what_grows_and_frees_what_is_freed("max_store_bytes=400K&max_session_bytes=1M"),
    g10_a_store_is_full_whatever_filled_it("max_store_bytes=2M&max_sessions=1000"),
    g10_what_shrinks_or_resolves_works_in_a_full_store("max_store_bytes=2M&max_session_bytes=128K"),
] }

fn g10_a_full_store_refuses_what_grows_and_frees_what_is_freed(store: Fixture) {
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
            loop {
                extra.enqueue_broadcast(&body, "")?;
            }
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

fn g10_a_store_is_full_whatever_filled_it(store: Fixture) {
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

fn g10_what_shrinks_or_resolves_works_in_a_full_store(store: Fixture) {
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
