//! JSON-RPC messages that get an id: what is delivered is what was given, and the id.

use std::sync::LazyLock;

use mcp_state::{Engine, Error, ErrorKind, NewSession, OwnerKind, OwnerToken, Session};
use serde_json::Value;

static SESSION: LazyLock<(Session, OwnerToken)> = LazyLock::new(|| {
    let engine = Engine::open("memory://?max_message_bytes=1K").expect("a store in memory opens");
    let session = engine.create_session(NewSession::default()).unwrap().expect("a random id is free");
    let owner = session.attach(OwnerKind::Stream, Some(24 * 3_600_000)).unwrap();
    (session, owner)
});

/// `send_request` and `deliver_response` with any text.
pub fn request(data: &[u8]) {
    let (session, owner) = &*SESSION;
    let text = String::from_utf8_lossy(data);
    match session.send_request(owner, &text, &text, 60_000) {
        Ok(id) => {
            let [sent] = &session.take_outgoing(owner, 9).unwrap()[..] else { panic!("one message was sent") };
            assert_eq!(sent.context, text);
            let mut sent: serde_json::Map<String, Value> =
                serde_json::from_str(&sent.message).expect("it is an object");
            assert_eq!(sent.shift_remove("id"), Some(id.into()));
            assert_eq!(sent, serde_json::from_str(&text).expect("it was let in as an object"));
            session.cancel_pending(owner, id).unwrap();
            session.claim(owner, id).unwrap();
        }
        Err(Error::Limit(_)) => assert!(text.len() > 1000),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let object: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(&text);
            assert!(object.is_err() || object.unwrap().contains_key("id"), "{text} was refused: {error}");
        }
    }
    let id = session.next_request_id().unwrap();
    session.register_pending(owner, id, 60_000, "").unwrap();
    if session.deliver_response(id, &text).is_ok() {
        assert_eq!(session.claim(owner, id).unwrap(), mcp_state::Claim::Answered(text.into_owned()));
    } else {
        session.cancel_pending(owner, id).unwrap();
        session.claim(owner, id).unwrap();
    }
    assert_eq!(session.stats().unwrap().message_bytes, 0);
    assert!(session.pending(None).unwrap().is_empty());
}
