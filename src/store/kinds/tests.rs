//! What every store promises to every kind, shown with one that is only here ([`crate::kind::sample`]).

use std::sync::Arc;

use super::super::redis::private_server::RedisServer;
use super::super::{Access, Ear, Store};
use crate::bell::{Ring, SLICE, Slept};
use crate::clock::{Clock, ManualClock};
use crate::dsn::Dsn;
use crate::error::Error;
use crate::ids::{Digest, SessionId};
use crate::kind::sample::{Job, QUEUED};
use crate::kind::{AttributeKey, Census, Refusal, Step, StoreView, Transition};
use crate::session::{NewRecord, Session};

/// A store, and what ends with it.
struct Opened {
    store: Store,
    clock: Arc<ManualClock>,
    dsn: String,
    _directory: Option<tempfile::TempDir>,
    _server: Option<RedisServer>,
}

fn each_store(promise: impl Fn(&Opened)) {
    let directory = tempfile::tempdir().unwrap();
    let file = format!("file://{}/store?durability=none&max_sessions=100", directory.path().display());
    let server = RedisServer::start();
    let redis = server.dsn("max_sessions=100");
    for (dsn, _directory, _server) in [
        ("memory://?max_sessions=100".to_owned(), None, None),
        (file, Some(directory), None),
        (redis, None, Some(server)),
    ] {
        let clock = Arc::new(ManualClock::at(1 << 40));
        let store = open(&dsn, &clock);
        promise(&Opened { store, clock, dsn, _directory, _server });
    }
}

fn open(dsn: &str, clock: &Arc<ManualClock>) -> Store {
    super::super::open(&Dsn::parse(dsn).unwrap(), Some(clock.clone() as Arc<dyn Clock>)).unwrap()
}

fn key(id: &str) -> Digest {
    Digest::of(id.as_bytes())
}

fn queue_name() -> Digest {
    Digest::of(b"a queue")
}

fn run<T>(
    store: &Store,
    id: &str,
    access: Access,
    mut operation: impl FnMut(&mut Transition<'_, Job>, StoreView) -> Step<T>,
) -> Result<T, Error> {
    let mut outcome = None;
    let done = store.transact::<Job>(key(id), access, &Census::default(), &mut |job, view| {
        outcome = Some(operation(job, view)?);
        Ok(())
    });
    match done {
        Ok(()) => Ok(outcome.unwrap()),
        Err(Refusal::Error(error)) => Err(error),
        Err(Refusal::Unsure(processes)) => panic!("nothing depends on {processes:?}"),
    }
}

fn queue(store: &Store, id: &str, principal: Option<Digest>) -> Result<bool, Error> {
    let arguments = format!("arguments of {id}");
    run(store, id, Access::Create(principal), |job, view| job.queue((id, principal), queue_name(), &arguments, view))
}

fn take(store: &Store, id: &str, principal: Option<Digest>) -> Option<String> {
    run(store, id, Access::Write, |job, _| job.take_job(principal)).unwrap()
}

fn queued(store: &Store) -> Vec<Digest> {
    let listed = store.listed::<Job>((QUEUED, queue_name()), None, 100).unwrap();
    listed.into_iter().map(|(_, job)| job).collect()
}

fn audited(store: &Store) {
    assert_eq!(store.contradictions().unwrap(), Vec::<String>::new());
}

#[test]
fn g1_a_record_of_any_kind_is_made_once_and_changed_one_at_a_time() {
    each_store(|Opened { store, .. }| {
        assert!(queue(store, "one", None).unwrap());
        assert!(!queue(store, "one", None).unwrap());
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| take(store, "one", None))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(taken, ["arguments of one"]);
        audited(store);
    });
}

#[test]
fn g8_a_list_has_who_is_in_it_in_order_and_nobody_else() {
    each_store(|Opened { store, clock, .. }| {
        for id in ["c", "a", "b"] {
            queue(store, id, None).unwrap();
            clock.advance(1);
        }
        assert_eq!(queued(store), [key("c"), key("a"), key("b")]);
        let first = store.listed::<Job>((QUEUED, queue_name()), None, 1).unwrap();
        let rest = store.listed::<Job>((QUEUED, queue_name()), first.last().copied(), 100).unwrap();
        assert_eq!(rest.iter().map(|&(_, job)| job).collect::<Vec<_>>(), [key("a"), key("b")]);
        assert!(take(store, "a", None).is_some());
        assert_eq!(queued(store), [key("c"), key("b")]);
        run(store, "c", Access::Read, |job, _| job.drop_job()).unwrap();
        assert_eq!(queued(store), [key("b")]);
        assert_eq!(store.listed::<Job>((QUEUED, key("another queue")), None, 9).unwrap(), []);
        audited(store);
    });
}

#[test]
fn g9_who_listens_to_what_records_share_or_to_one_record_is_rung() {
    let is_rung = |ear: &dyn Ear| (0..30).any(|_| ear.sleep(SLICE) == Slept::Rung);
    each_store(|Opened { store, .. }| {
        let ear = store.listen(Ring::Shared(queue_name())).unwrap();
        queue(store, "one", None).unwrap();
        assert!(is_rung(&*ear));
        let ear = store.listen(Ring::Record(key("one"))).unwrap();
        take(store, "one", None).unwrap();
        assert!(is_rung(&*ear));
    });
}

#[test]
fn g10_records_of_a_kind_are_counted_by_themselves() {
    each_store(|Opened { store, .. }| {
        for number in 0..100 {
            assert!(queue(store, &number.to_string(), None).unwrap());
        }
        assert!(matches!(queue(store, "one-more", None), Err(Error::Limit(_))));
        assert_eq!(store.usage().unwrap().sessions, 0);
        assert_eq!(store.records::<Job>(None, 1000).unwrap().len(), 100);
        assert!(store.records::<Session>(None, 1000).unwrap().is_empty());
        run(store, "7", Access::Read, |job, _| job.drop_job()).unwrap();
        assert!(queue(store, "one-more", None).unwrap());
        audited(store);
    });
}

#[test]
fn g11_what_expires_is_found_by_its_kind() {
    each_store(|Opened { store, clock, .. }| {
        queue(store, "one", None).unwrap();
        let due = |until| store.due::<Job>(true, until, 9).unwrap().into_iter().map(|(_, job)| job).collect::<Vec<_>>();
        assert_eq!(due(clock.now() + 999), []);
        assert_eq!(due(clock.now() + 1000), [key("one")]);
        assert!(store.due::<Session>(false, u64::MAX, 9).unwrap().is_empty());
    });
}

#[test]
fn g12_a_record_of_any_kind_is_not_there_for_others() {
    each_store(|Opened { store, .. }| {
        let (ann, mallory) = (Digest::of(b"ann"), Digest::of(b"mallory"));
        queue(store, "one", Some(ann)).unwrap();
        assert_eq!(take(store, "one", Some(mallory)), None);
        assert_eq!(take(store, "one", None), None);
        assert!(take(store, "one", Some(ann)).is_some());
    });
}

#[test]
fn records_of_two_kinds_under_one_key_do_not_meet() {
    each_store(|Opened { store, clock, dsn, .. }| {
        queue(store, "one", None).unwrap();
        let new = NewRecord {
            id: SessionId::new("one").unwrap(),
            incarnation: 1,
            first_request: 1,
            ttl: 1000,
            principal: None,
        };
        let made =
            store.transact::<Session>(key("one"), Access::Create(None), &Census::default(), &mut |session, view| {
                session.create(&new, view).map(drop)
            });
        made.unwrap();
        let name = AttributeKey::new("progress").unwrap();
        let note = |text: &'static str| run(store, "one", Access::Write, |job, _| job.note(&name, text)).unwrap();
        assert_eq!(note("half"), None);
        assert_eq!(note("all"), Some("half".to_owned()));
        let ended = store
            .transact::<Session>(key("one"), Access::Write, &Census::default(), &mut |session, _| session.destroy());
        ended.unwrap();
        audited(store);
        // Another process that opens it, where that can be.
        if !dsn.starts_with("memory:") {
            assert_eq!(take(&open(dsn, clock), "one", None).as_deref(), Some("arguments of one"));
        }
    });
}
