//! Requests of the client that are being served (G6).

use mcp_state::{DuplicatePolicy, OwnerKind, RequestCancellation, RequestId};

use crate::Fixture;

contract! { every [
    g6_requests_with_equal_ids_are_isolated_or_rejected,
    g6_a_cancellation_marks_the_one_request_it_names,
] }

fn g6_requests_with_equal_ids_are_isolated_or_rejected(store: Fixture) {
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

fn g6_a_cancellation_marks_the_one_request_it_names(store: Fixture) {
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
