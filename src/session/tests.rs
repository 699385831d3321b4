//! What can be said of the state machine without a store; what its operations do is tests/contract/.

use std::collections::BTreeMap;

use super::*;
use crate::error::StoreError;
use crate::ids::{OwnerToken, SessionId};
use crate::process::{Liveness, Process};
use crate::settings::Settings;

/// Payloads in a map: all a transition needs of the world.
#[derive(Default)]
struct Payloads(BTreeMap<Payload, Vec<u8>>);

impl Values<Payload> for Payloads {
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.get(key).cloned())
    }

    fn attributes(&self, _: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }
}

fn created() -> Box<Record> {
    let new =
        NewRecord { id: SessionId::new("s").unwrap(), incarnation: 7, first_request: 100, ttl: 1000, principal: None };
    let (record, _) =
        run(None, 0, &[], |transition| transition.create(&new, StoreView::default()).map(|_| ())).unwrap();
    record.unwrap()
}

fn run(
    record: Option<Box<Record>>,
    now: u64,
    census: &[(Process, Liveness)],
    operation: impl FnOnce(&mut Transition<'_>) -> Step<()>,
) -> Step<(Option<Box<Record>>, Effects)> {
    let (payloads, settings) = (Payloads::default(), Settings::default());
    let mut known = Census::default();
    for &(process, liveness) in census {
        known.note(process, liveness);
    }
    let mut transition = Transition::new(record, &payloads, Context { now, settings: &settings, census: &known });
    operation(&mut transition)?;
    Ok(transition.finish())
}

#[test]
fn a_record_reads_back_as_it_was_written() {
    let process = Process { pid: 1, started: 2, namespace: 3 };
    let token = OwnerToken([9; 16]);
    let (record, _) = run(Some(created()), 5, &[(process, Liveness::Alive)], |transition| {
        transition.attach(token, OwnerKind::Stream, 10, process)?;
        transition.register_pending(&token, -3, 50, "m")?;
        transition.enqueue_broadcast("1", "")?;
        transition.begin_request(&token, &"x".into(), DuplicatePolicy::Isolate)?;
        transition.deliver_response(-3, "1")?;
        transition.deliver_response(4, "1").map(|_| ())
    })
    .unwrap();
    let record = record.unwrap();
    assert_eq!(Record::decode(&record.encode()).unwrap(), record);
}

#[test]
fn a_record_of_an_older_build_keeps_its_version_and_its_session() {
    let process = Process { pid: 1, started: 2, namespace: 3 };
    let token = OwnerToken([9; 16]);
    let mut old = created();
    old.is_timed = false;
    let asks = |record, now| {
        let (record, _) = run(Some(record), now, &[(process, Liveness::Alive)], |transition| {
            transition.attach(token, OwnerKind::Stream, 10, process)?;
            transition.register_pending(&token, 1, 50, "m").map(|_| ())
        })
        .unwrap();
        record.unwrap()
    };
    let written = asks(old, 5).encode();
    assert_eq!(written[0], 4, "processes of that build read it still");
    let read = Record::decode(&written).unwrap();
    assert_eq!((read.pending[0].since, read.is_timed), (0, false));
    let new = Record::decode(&asks(created(), 5).encode()).unwrap();
    assert_eq!((new.owners[0].since, new.pending[0].since, new.is_timed), (5, 5, true));
}

#[test]
fn a_record_stays_as_long_as_it_is_while_a_question_comes_and_goes() {
    let token = OwnerToken([9; 16]);
    let attach = |session: &mut Transition<'_>| session.attach(token, OwnerKind::Stream, 10, Process::default());
    let (before, _) = run(Some(created()), 5, &[], attach).unwrap();
    let register = |session: &mut Transition<'_>| session.register_pending(&token, 1, 50, "m").map(|_| ());
    let (after, _) = run(before.clone(), 5, &[], register).unwrap();
    let [before, after] = [before, after].map(|record| record.unwrap().encode());
    assert_ne!(before, after);
    assert_eq!(before.len(), after.len());
    // What fills it up is part of the encoding: nothing else may stand there.
    let zeros = after.len() - after.iter().rev().position(|&byte| byte == 0).expect("it is filled up");
    for at in [zeros - 1, zeros - 2] {
        let mut changed = after.clone();
        changed[at] = 1;
        assert!(Record::decode(&changed).is_err());
    }
    assert!(Record::decode(&[after, vec![0; 256]].concat()).is_err());
}

#[test]
fn a_record_of_another_version_or_of_garbage_is_refused() {
    let mut bytes = created().encode();
    for cut in 0..bytes.len() {
        assert!(Record::decode(&bytes[..cut]).is_err());
    }
    bytes[0] = 99;
    assert!(matches!(Record::decode(&bytes), Err(UndecodableRecord::Version { found: 99 })));
}

/// What the fuzzer can write and no operation leaves: each would have been an overflow, a missing owner or an endless loop.
#[test]
fn a_record_that_contradicts_itself_is_refused() {
    let (process, token) = (Process { pid: 1, started: 2, namespace: 3 }, OwnerToken([9; 16]));
    let (sound, _) = run(Some(created()), 5, &[(process, Liveness::Alive)], |transition| {
        transition.attach(token, OwnerKind::Stream, 10, process)?;
        transition.enqueue_broadcast("1", "")?;
        transition.register_pending(&token, 1, 50, "m")?;
        transition.begin_request(&token, &"x".into(), DuplicatePolicy::Isolate)?;
        transition.deliver_response(1, "1").map(|_| ())
    })
    .unwrap();
    let sound = sound.unwrap();
    type Damage = (&'static str, fn(&mut Record));
    let damages: [Damage; 12] = [
        ("a time", |record| record.ttl = u64::MAX),
        ("a count", |record| record.owners[0].events = u64::MAX),
        ("an id", |record| record.next_request = i64::MAX),
        ("a taken number", |record| record.next_owner = 1),
        ("owners twice", |record| record.owners.push(record.owners[0].clone())),
        ("a queue that ends first", |record| record.owners[0].head = 9),
        ("a queue without end", |record| record.owners[0].tail = 1 << 40),
        ("a pending request of nobody", |record| record.pending[0].owner = 7),
        ("a request in flight of nobody", |record| record.in_flight[0].owner = 7),
        ("a broadcast held nowhere", |record| record.broadcasts[0].holder = Some((1, 9))),
        ("bytes nobody accounts for", |record| record.message_bytes = 0),
        ("too long a memory", |record| record.ended = vec![(1, LateReason::Finished); 33].into()),
    ];
    for (what, damage) in damages {
        let mut record = sound.clone();
        damage(&mut record);
        assert!(Record::decode(&record.encode()).is_err(), "{what}");
    }
}

#[test]
fn an_operation_that_depends_on_a_process_asks_before_it_changes_anything() {
    let process = Process { pid: 1, started: 2, namespace: 3 };
    let token = OwnerToken([9; 16]);
    let (record, _) = run(Some(created()), 5, &[], |transition| {
        transition.attach(token, OwnerKind::Stream, 10, process)?;
        transition.register_pending(&token, 1, 50, "").map(|_| ())
    })
    .unwrap();
    let answer = |census: &[_]| {
        let mut delivery = None;
        run(record.clone(), 6, census, |transition| {
            delivery = Some(transition.deliver_response(1, "1")?);
            Ok(())
        })
        .map(|_| delivery.unwrap())
    };
    match answer(&[]) {
        Err(Refusal::Unsure(processes)) => assert_eq!(processes, [process]),
        other => panic!("{other:?}"),
    }
    assert_eq!(answer(&[(process, Liveness::Dead)]).unwrap(), Delivery::Late(LateReason::Abandoned));
    assert_eq!(answer(&[(process, Liveness::Alive)]).unwrap(), Delivery::Delivered);
    assert_eq!(answer(&[(process, Liveness::Unknown)]).unwrap(), Delivery::Delivered);
}

#[test]
fn where_processes_cannot_be_seen_the_lease_is_the_only_sign_of_life() {
    let process = Process::default();
    let (record, _) = run(Some(created()), 5, &[], |transition| {
        transition.attach(OwnerToken([9; 16]), OwnerKind::Stream, 10, process)
    })
    .unwrap();
    for (now, released) in [(14, 0), (15, 1)] {
        let mut count = 0;
        let release = |transition: &mut Transition<'_>| {
            count = transition.release_dead_owners()?;
            Ok(())
        };
        run(record.clone(), now, &[(process, Liveness::Unknown)], release).unwrap();
        assert_eq!(count, released, "at {now}");
    }
}

#[test]
fn between_two_marks_of_a_record_an_operation_comes_to_the_same() {
    let (token, process) = (OwnerToken([9; 16]), Process::default());
    let census = [(process, Liveness::Unknown)];
    let (record, _) = run(Some(created()), 5, &census, |transition| {
        transition.attach(token, OwnerKind::Stream, 40, process)?;
        transition.register_pending(&token, 1, 50, "").map(|_| ())
    })
    .unwrap();
    let handle = Handle { id: SessionId::new("s").unwrap(), incarnation: 7, principal: None };
    // What is decided, but for the times.
    let decide = |now: u64| {
        let mut claim = None;
        let done = run(record.clone(), now, &census, |transition| {
            transition.enter(&handle)?;
            claim = Some(match transition.claim(&token, 1)? {
                Claim::Waiting(_) => Claim::Waiting(0),
                claim => claim,
            });
            Ok(())
        });
        let after = done.as_ref().ok().and_then(|(after, _)| after.clone());
        let written = done.map(|(_, effects)| effects.record).map_err(|refusal| format!("{refusal:?}"));
        let mut released = 0;
        let _ = run(record.clone(), now, &census, |transition| {
            released = transition.release_dead_owners()?;
            Ok(())
        });
        ((claim, written, released), after)
    };
    let mut changes = 0;
    for now in 5..1_100 {
        let ((here, after), (next, _)) = (decide(now), decide(now + 1));
        let steady = steady::steady(record.as_deref(), after.as_deref(), now);
        assert!(steady.contains(&now), "{now}");
        assert!(here == next || !steady.contains(&(now + 1)), "at {now}: {here:?}, then {next:?}");
        changes += u32::from(here != next);
    }
    assert!(changes >= 4, "a lease that nears its end, its end, a deadline, an expiry");
}
