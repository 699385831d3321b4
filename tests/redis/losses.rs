//! Connections that are lost at every step: each operation takes effect once, and an error says what is so.

use std::time::Duration;

use mcp_state::{
    Claim, Delivery, DuplicatePolicy, Engine, Error, ErrorKind, Interest, LateReason, NewSession, OwnerKind,
    OwnerToken, RequestCancellation, Session, WaitedFor,
};

use crate::common::redis::{Cut, Proxy, RedisServer, wait_until};
use crate::common::texts;
use crate::workers::{REQUEST, Test};
use crate::{Result, named, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("an_operation_whose_connection_is_lost_takes_effect_once", effect_once),
    ("a_lost_answer_is_found_as_far_back_as_versions_reach", found_in_a_block),
    ("an_error_after_a_lost_connection_says_what_is_so", error_is_honest),
];

/// For every kind of loss at every request of a story in which each operation counts: the story comes out as without a loss.
fn effect_once() -> Result {
    let server = RedisServer::start();
    let proxy = Proxy::before(&server);
    for cut in Cut::ALL {
        for number in 1.. {
            let case = format!("{cut:?} at request {number}");
            assert_eq!(server.command(&["FLUSHALL"]), "OK");
            proxy.cut_at(number, cut);
            let told = std::panic::catch_unwind(|| tell(&proxy, &proxy.dsn(&format!("prefix=story{number}"))));
            match told {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(format!("{case}: {error}").into()),
                Err(_) => return Err(format!("{case}: see above").into()),
            }
            if !proxy.open() {
                assert!(number > 20, "the story has only {number} requests");
                break;
            }
        }
    }
    Ok(())
}

/// While somebody connects anew others go on: its version has moved from the newest ones to the blocks, one turn or several on,
/// or is forgotten. What it took away is still known.
fn found_in_a_block() -> Result {
    let server = RedisServer::start();
    let proxy = Proxy::before(&server);
    let others = Engine::open(&server.dsn(""))?;
    for (number, others_do) in [0, 15, 16, 17, 40, 120, 127, 150, 400].into_iter().enumerate() {
        let name = format!("s{number}");
        let session = named(&others, &name);
        let owner = session.attach(OwnerKind::Stream, None)?;
        let here = Engine::open(&proxy.dsn("retry_ms=20000"))?.open_session(&name, None)?.ok_or("it is there")?;
        for turn in 0..number {
            // The blocks take turns from anywhere.
            session.attributes().set("turn", &turn.to_string())?;
        }
        session.enqueue_outgoing(&owner, "1", "")?;
        // The second time nothing is new, so the next request carries something out.
        here.stats()?;
        here.stats()?;
        proxy.cut_and_close_at(1, Cut::Unanswered);
        let taken = std::thread::scope(|scope| -> Result<_> {
            let taking = scope.spawn(|| here.take_outgoing(&owner, 9));
            wait_until("the answer is lost", || proxy.was_cut());
            for change in 0..others_do {
                session.attributes().set("other", &change.to_string())?;
            }
            proxy.open();
            Ok(taking.join().expect("it does not panic"))
        })?;
        match taken {
            Ok(taken) => {
                assert!(others_do < 150, "{others_do} are more than a session remembers");
                assert_eq!(texts(taken), ["1"], "after {others_do} of others");
            }
            Err(error) => {
                assert!(others_do > 127, "after {others_do} of others: {error}");
                assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
            }
        }
        assert!(session.take_outgoing(&owner, 9)?.is_empty());
    }
    assert_eq!(others.contradictions()?, Vec::<String>::new());
    Ok(())
}

/// One operation of each kind, each of which would be seen to have happened twice, or not at all.
fn tell(proxy: &Proxy, dsn: &str) -> std::result::Result<(), Error> {
    let engine = Engine::open(dsn)?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    assert_eq!(session.stats()?.owners, 1);
    proxy.let_the_late_through();

    let id = session.send_request(&owner, REQUEST, "", 60_000)?;
    proxy.let_the_late_through();
    assert_eq!(session.next_request_id()?, id + 1);
    proxy.let_the_late_through();
    let second = session.send_request(&owner, REQUEST, "", 60_000)?;
    assert_eq!(second, id + 2);
    proxy.let_the_late_through();
    assert_eq!(session.take_outgoing(&owner, 9)?.len(), 2, "messages that are taken are not lost on the way");
    proxy.let_the_late_through();
    assert_eq!(session.take_outgoing(&owner, 9)?, vec![]);
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    proxy.let_the_late_through();
    let waited = session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(20))?;
    assert_eq!(waited.outcome, WaitedFor::Ready);
    assert_eq!(session.claim(&owner, id)?, Claim::Answered("\"yes\"".into()));
    proxy.let_the_late_through();
    assert_eq!(session.claim(&owner, id)?, Claim::Unknown);
    session.cancel_pending(&owner, second)?;
    proxy.let_the_late_through();
    assert_eq!(session.deliver_response(second, "\"no\"")?, Delivery::Late(LateReason::Cancelled));
    assert_eq!(session.stats()?.late.iter().map(|(_, count)| count).sum::<u64>(), 1);

    let first = session.enqueue_outgoing(&owner, "1", "")?;
    proxy.let_the_late_through();
    assert_eq!(session.enqueue_outgoing(&owner, "2", "")?, first + 1);
    proxy.let_the_late_through();
    let peeked = session.peek_outgoing(&owner, 9)?;
    assert_eq!(texts(peeked.clone()), ["1", "2"]);
    assert_eq!(session.acknowledge(&owner, peeked[0].sequence)?, 1);
    proxy.let_the_late_through();
    assert_eq!(texts(session.take_outgoing(&owner, 9)?), ["2"]);

    let attributes = session.attributes();
    assert!(attributes.put_if_absent("count", "1")?);
    proxy.let_the_late_through();
    assert!(attributes.compare_and_set("count", Some("1"), Some("2"))?);
    proxy.let_the_late_through();
    assert!(attributes.compare_and_set("count", Some("2"), Some("3"))?);
    assert_eq!(attributes.take("count")?.as_deref(), Some("3"));
    proxy.let_the_late_through();
    assert_eq!(attributes.take("count")?, None);

    assert!(session.begin_request(&owner, &1.into(), DuplicatePolicy::Reject)?);
    proxy.let_the_late_through();
    assert!(!session.begin_request(&owner, &1.into(), DuplicatePolicy::Reject)?);
    assert!(matches!(session.cancel_request(&1.into())?, RequestCancellation::Cancelled(_)));
    proxy.let_the_late_through();
    assert_eq!(session.finish_request(&owner, &1.into())?, Some(true));
    proxy.let_the_late_through();
    assert_eq!(session.finish_request(&owner, &1.into())?, None);

    assert_eq!(engine.publish("topic", "1")?, 1);
    proxy.let_the_late_through();
    assert_eq!(engine.publish("topic", "2")?, 2);
    proxy.let_the_late_through();
    assert_eq!(engine.cursor("topic")?, 2);
    assert!(engine.consume_once("key", 60_000)?);
    proxy.let_the_late_through();
    assert!(!engine.consume_once("key", 60_000)?);

    session.enqueue_outgoing(&owner, "3", "")?;
    let detached = session.detach(&owner)?.expect("it was attached");
    assert_eq!(detached.dropped_messages, 1);
    proxy.let_the_late_through();
    assert_eq!(session.detach(&owner)?, None);
    assert!(session.destroy()?);
    proxy.let_the_late_through();
    assert!(!session.destroy()?);
    assert!(engine.open_session("s", None)?.is_none());
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

/// What an operation did to a session, seen from beside.
type Applied = fn(&Engine, &Session) -> std::result::Result<bool, Error>;
/// An operation on a session in which one request is pending and one message is queued.
type Act = fn(&Engine, &Session, &OwnerToken, i64) -> std::result::Result<(), Error>;

/// When nobody gets through any more after the loss: "not available" means that nothing was done, "unknown" that it may have
/// been, and success that it was.
fn error_is_honest() -> Result {
    let acts: [(&str, Act, Applied); 7] = [
        ("enqueue", |_, s, o, _| s.enqueue_outgoing(o, "1", "").map(drop), |_, s| Ok(s.stats()?.queued == 2)),
        ("take", |_, s, o, _| s.take_outgoing(o, 9).map(drop), |_, s| Ok(s.stats()?.queued == 0)),
        (
            "deliver",
            |_, s, _, id| s.deliver_response(id, "1").map(drop),
            |_, s| Ok(s.pending(None)?.iter().all(|pending| matches!(pending.state, Claim::Answered(_)))),
        ),
        ("set", |_, s, _, _| s.attributes().set("a", "1"), |_, s| Ok(s.attributes().get("a")?.is_some())),
        ("publish", |e, _, _, _| e.publish("t", "1").map(drop), |e, _| Ok(e.cursor("t")? == 1)),
        (
            "create",
            |e, _, _, _| {
                let new = NewSession { id: Some("new".into()), ..NewSession::default() };
                e.create_session(new).map(drop)
            },
            |e, _| Ok(e.open_session("new", None)?.is_some()),
        ),
        ("destroy", |_, s, _, _| s.destroy().map(drop), |e, _| Ok(e.open_session("s", None)?.is_none())),
    ];
    let server = RedisServer::start();
    let beside = Engine::open(&server.dsn(""))?;
    let proxy = Proxy::before(&server);
    let through = Engine::open(&proxy.dsn("retry_ms=50"))?;
    for (name, act, applied) in acts {
        for cut in Cut::ALL {
            for number in 1.. {
                let case = format!("{name}, {cut:?} at request {number}");
                assert_eq!(server.command(&["FLUSHALL"]), "OK");
                let session = named(&through, "s");
                let owner = session.attach(OwnerKind::Stream, None)?;
                let id = session.send_request(&owner, REQUEST, "", 60_000)?;
                let seen = beside.open_session("s", None)?.expect("it is there");
                assert!(!applied(&beside, &seen)?, "{case}");
                proxy.cut_and_close_at(number, cut);
                let outcome = act(&through, &session, &owner, id);
                proxy.let_the_late_through();
                let was_cut = proxy.open();
                let is_applied = applied(&beside, &seen)?;
                match &outcome {
                    Ok(()) => assert!(is_applied, "{case}: success, and nothing was done"),
                    Err(error) if error.kind() == ErrorKind::StoreUnavailable => {
                        assert!(!is_applied, "{case}: {error}, and it was done");
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{case}: {error}"),
                }
                assert!(was_cut || outcome.is_ok(), "{case}: an error without a loss");
                // And right again as soon as somebody gets through.
                works(&named(&through, "after"))?;
                assert_eq!(beside.contradictions()?, Vec::<String>::new(), "{case}");
                if !was_cut {
                    break;
                }
            }
        }
    }
    Ok(())
}
