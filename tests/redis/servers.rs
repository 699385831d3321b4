//! Servers that die, come back, fail over, are full, stand still, or throw their clients out: each operation succeeds or fails
//! with a typed error that says what is so, and afterwards everything is right.

use std::time::Duration;

use libtest_mimic::Failed;
use mcp_state::{Claim, Delivery, Engine, ErrorKind, OwnerKind};

use crate::common::process::Worker;
use crate::common::redis::{Proxy, RedisServer, wait_until};
use crate::common::texts;
use crate::workers::{REQUEST, Test, roles};
use crate::{Random, Result, Store, named, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("g8_a_killed_server_with_an_append_only_file_loses_no_acknowledged_write", killed_server),
    ("a_question_survives_the_restart_of_the_server", question_survives),
    ("a_server_that_has_lost_everything_is_an_empty_store", lost_everything),
    ("g10_a_server_out_of_memory_is_an_error_and_can_be_emptied", out_of_memory),
    ("a_server_that_stands_still_is_an_error_in_time_and_right_afterwards", stands_still),
    ("a_paused_server_delays_and_loses_nothing", paused),
    ("clients_that_are_thrown_out_again_and_again_lose_nothing", thrown_out),
    ("a_server_that_is_not_there_is_unavailable", not_there),
    ("a_read_only_replica_is_unavailable_until_it_is_promoted", read_only_replica),
    ("what_the_guide_says_to_configure_is_accepted_and_enough", as_the_guide_says),
    ("a_store_of_another_layout_is_refused", other_layout),
    ("after_a_failover_that_lost_writes_sessions_are_sound", failover_with_loss),
];

const DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

fn killed_server() -> Result {
    let mut store = Store::with(DURABLE, "");
    for id in ["a", "b"] {
        store.session(id);
    }
    let mut workers: Vec<_> = (0..4)
        .map(|number| Worker::start(&["count_on", &store.dsn, ["a", "b"][number % 2], &format!("key{number}")]))
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..5 {
        for worker in &mut workers {
            worker.lines_until("acknowledged", 20)?;
        }
        std::thread::sleep(Duration::from_micros(random.below(5000)));
        store.server.kill();
        store.server.restart();
    }
    for worker in &mut workers {
        worker.lines_until("acknowledged", 20)?;
        worker.kill();
        assert!(worker.complaint().is_none());
    }
    for id in ["a", "b"] {
        works(&store.engine.open_session(id, None)?.expect("it is there"))?;
    }
    store.is_sound()
}

fn question_survives() -> Result {
    let mut store = Store::with(DURABLE, "");
    let session = store.session("s");
    let mut asker = Worker::start(&["ask_on", &store.dsn, "s"]);
    let id: i64 = asker.line("id").parse()?;
    store.server.kill();
    asker.line("unavailable");
    store.server.restart();
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(asker.line("answer"), "\"yes\"");
    store.is_sound()
}

fn lost_everything() -> Result {
    let mut store = Store::new();
    let session = store.session("s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    roles::round(&session, &owner)?;
    store.server.kill();
    store.server.restart();
    let error = session.enqueue_outgoing(&owner, "{}", "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SessionNotFound, "{error}");
    assert!(store.engine.open_session("s", None)?.is_none());
    works(&store.session("s"))?;
    store.is_sound()
}

fn out_of_memory() -> Result {
    // An empty server's own memory differs between programs.
    let server = RedisServer::start();
    let used = |server: &RedisServer| -> Result<u64> {
        let info = server.command(&["INFO", "memory"]);
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        Ok(line.ok_or("no used_memory")?.trim().parse()?)
    };
    let engine = Engine::open(&server.dsn(""))?;
    let session = named(&engine, "s");
    let stream = session.attach(OwnerKind::Stream, None)?;
    let waiting = session.send_request(&stream, REQUEST, "", 60_000)?;
    session.deliver_response(waiting, "\"kept\"")?;
    session.attributes().set("kept", "1")?;
    server.command(&["CONFIG", "SET", "maxmemory", &(used(&server)? + (4 << 20)).to_string()]);
    let body = format!("\"{}\"", "x".repeat(20_000));
    let mut queued = 0;
    let refused = loop {
        match session.enqueue_outgoing(&stream, &body, "") {
            Ok(_) => queued += 1,
            Err(error) => break error,
        }
        assert!(queued < 1000, "20 MB are stored in 4");
    };
    assert_eq!(refused.kind(), ErrorKind::StoreFull, "{refused}");
    // Somebody else takes what is left.
    server.command(&["CONFIG", "SET", "maxmemory", &(used(&server)? / 2).to_string()]);
    for _ in 0..20 {
        assert_eq!(session.enqueue_outgoing(&stream, &body, "").unwrap_err().kind(), ErrorKind::StoreFull);
    }
    let new = engine.create_session(Default::default()).map(|_| ()).unwrap_err();
    assert_eq!(new.kind(), ErrorKind::StoreFull, "{new}");
    // Nothing of before is lost, and what frees space works.
    assert_eq!(session.attributes().get("kept")?.as_deref(), Some("1"));
    assert_eq!(session.claim(&stream, waiting)?, Claim::Answered("\"kept\"".into()));
    assert_eq!(texts(session.take_outgoing(&stream, 1)?).len(), 1);
    let peeked = session.peek_outgoing(&stream, 10)?;
    assert_eq!(session.acknowledge(&stream, peeked[9].sequence)?, 10);
    session.detach(&stream)?;
    assert!(session.destroy()?);
    engine.collect(100)?;
    works(&named(&engine, "again"))?;
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn stands_still() -> Result {
    let store = Store::with(&[], "timeout_ms=300&retry_ms=300");
    let session = store.session("s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let sequence = session.enqueue_outgoing(&owner, "1", "")?;
    store.server.stop();
    let error = session.enqueue_outgoing(&owner, "2", "").unwrap_err();
    let read = session.stats().unwrap_err();
    store.server.go_on();
    assert!(matches!(error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::StoreUnavailable), "{error}");
    assert_eq!(read.kind(), ErrorKind::StoreUnavailable, "{read}: a read has no outcome that could be unknown");
    let queued = texts(session.take_outgoing(&owner, 9)?);
    if error.kind() == ErrorKind::StoreUnavailable {
        assert_eq!(queued, ["1"], "{error}");
    }
    let next = session.enqueue_outgoing(&owner, "3", "")?;
    assert_eq!(next, sequence + queued.len() as u64);
    assert_eq!(texts(session.take_outgoing(&owner, 9)?), ["3"], "what was sent before comes to nothing now");
    store.is_sound()
}

fn paused() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    for kind in ["ALL", "WRITE"] {
        store.server.command(&["CLIENT", "PAUSE", "300", kind]);
        for _ in 0..3 {
            roles::round(&session, &owner)?;
        }
    }
    store.is_sound()
}

fn thrown_out() -> Result {
    let store = Store::new();
    store.session("a");
    store.session("b");
    let counter = |id: &str, key: &str| Worker::start(&["count_on", &store.dsn, id, key]);
    let mut counters = [counter("a", "one"), counter("a", "two"), counter("b", "one")];
    let mut rounds = [Worker::start(&["rounds", &store.dsn, "a"]), Worker::start(&["rounds", &store.dsn, "b"])];
    for worker in &mut rounds {
        worker.line("started");
    }
    let mut random = Random(0x51_7cc1_b727_220a);
    for _ in 0..60 {
        std::thread::sleep(Duration::from_micros(random.below(5000)));
        store.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    for worker in &mut counters {
        worker.lines_until("acknowledged", 100)?;
        worker.kill();
        assert!(worker.complaint().is_none());
    }
    for worker in &mut rounds {
        assert!(worker.is_running(), "a connection that is lost once is made anew within the operation");
        worker.kill();
        assert!(worker.complaint().is_none());
    }
    store.is_sound()
}

fn not_there() -> Result {
    let mut store = Store::with(&[], "retry_ms=50");
    let session = store.session("s");
    store.server.kill();
    let unavailable = |error: mcp_state::Error| assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    unavailable(session.attributes().set("a", "1").unwrap_err());
    unavailable(session.attach(OwnerKind::Reply, None).map(|_| ()).unwrap_err());
    unavailable(store.engine.open_session("s", None).map(|_| ()).unwrap_err());
    unavailable(store.engine.create_session(Default::default()).map(|_| ()).unwrap_err());
    unavailable(store.engine.publish("t", "1").unwrap_err());
    unavailable(store.engine.consume_once("k", 1000).unwrap_err());
    store.server.restart();
    works(&store.session("s"))?;
    store.is_sound()
}

fn other_layout() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let key = "mcp-state:{layout}";
    let own = store.server.command(&["GET", key]);
    assert_ne!(store.server.command(&["PTTL", key]), "-1", "it goes when nobody uses the store");
    for (layout, advice) in [("99", "upgrade this one"), ("0", "go on with that one"), ("x", "use another prefix")] {
        store.server.command(&["SET", key, layout]);
        // Who is connected goes on; who comes is told.
        works(&session)?;
        let error = Engine::open(&store.dsn)?.open_session("s", None).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreIncompatible, "{error}");
        assert!(error.to_string().contains(advice) && error.to_string().contains(layout), "{error}");
    }
    Engine::reset(&store.dsn)?;
    works(&named(&Engine::open(&store.dsn)?, "s"))?;
    assert_eq!(store.server.command(&["GET", key]), own);
    Ok(())
}

/// A server and its replica, in step with it.
fn pair() -> Result<(RedisServer, RedisServer)> {
    let master = RedisServer::on_port(&[]);
    let replica = RedisServer::on_port(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    in_step(&replica);
    Ok((master, replica))
}

/// Waits until a replica has everything that its master has.
pub(crate) fn has_all(replica: &RedisServer, master: &RedisServer) {
    let offset = |server: &RedisServer, name: &str| {
        let info = server.command(&["INFO", "replication"]);
        info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let written = offset(master, "master_repl_offset:");
    wait_until("the replica has everything", || offset(replica, "slave_repl_offset:") >= written);
}

fn in_step(replica: &RedisServer) {
    wait_until("the replica is in step", || {
        replica.command(&["INFO", "replication"]).contains("master_link_status:up")
    });
}

fn read_only_replica() -> Result {
    let (mut master, replica) = pair()?;
    let proxy = Proxy::before(&master);
    let engine = Engine::open(&proxy.dsn("retry_ms=50"))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    roles::round(&session, &owner)?;
    session.attributes().set("before", "1")?;
    has_all(&replica, &master);
    master.kill();
    proxy.lead_to(&replica);
    for number in 0..3 {
        let error = session.enqueue_outgoing(&owner, "{}", "").unwrap_err();
        // The first was sent on a connection that is lost.
        let unknown = number == 0 && error.kind() == ErrorKind::OutcomeUnknown;
        assert!(unknown || error.kind() == ErrorKind::StoreUnavailable, "{error}");
    }
    assert_eq!(replica.command(&["REPLICAOF", "NO", "ONE"]), "OK");
    roles::round(&session, &owner)?;
    assert_eq!(session.attributes().get("before")?.as_deref(), Some("1"));
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

/// The replica is promoted before it has seen what the master acknowledged last. What was lost is lost; what is there is of one
/// moment, and a process that remembers more than the new master is set right.
fn failover_with_loss() -> Result {
    let (mut master, replica) = pair()?;
    let proxy = Proxy::before(&master);
    let engine = Engine::open(&proxy.dsn(""))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let kept = session.send_request(&owner, REQUEST, "", 60_000)?;
    session.attributes().set("count", "1")?;
    has_all(&replica, &master);
    assert_eq!(replica.command(&["REPLICAOF", "NO", "ONE"]), "OK");
    // Only the master hears of these.
    let lost = session.send_request(&owner, REQUEST, "", 60_000)?;
    session.attributes().set("count", "2")?;
    assert_eq!(session.take_outgoing(&owner, 9)?.len(), 2);
    let gone = named(&engine, "gone");
    master.kill();
    proxy.lead_to(&replica);
    assert_eq!(session.attributes().get("count")?.as_deref(), Some("1"));
    assert_eq!(session.deliver_response(kept, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(session.claim(&owner, kept)?, Claim::Answered("\"yes\"".into()));
    assert!(matches!(session.deliver_response(lost, "\"yes\"")?, Delivery::Late(_)));
    assert_eq!(session.take_outgoing(&owner, 9)?.len(), 1);
    assert_eq!(gone.attach(OwnerKind::Reply, None).map(|_| ()).unwrap_err().kind(), ErrorKind::SessionNotFound);
    roles::round(&session, &owner)?;
    works(&named(&engine, "gone"))?;
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

/// The settings and the user of docs/guides/several-machines.md: the store works, and reaches no other site's keys.
fn as_the_guide_says() -> Result {
    let guide = include_str!("../../docs/guides/several-machines.md");
    let block = |name: &str| -> Result<String> {
        let (_, rest) = guide.split_once(&format!("```\n# {name}\n")).ok_or(format!("no {name} in the guide"))?;
        Ok(rest.split_once("```").ok_or("the block does not end")?.0.to_owned())
    };
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("redis.conf");
    std::fs::write(&file, block("redis.conf")?)?;
    let server = RedisServer::with(&[file.to_str().ok_or("not UTF-8")?]);
    assert!(server.command(&["CONFIG", "GET", "maxmemory-policy"]).ends_with("noeviction"));
    let user = block("users.acl")?;
    let words: Vec<_> = user.split_whitespace().skip(1).collect();
    assert_eq!(server.command(&[&["ACL", "SETUSER"], words.as_slice()].concat()), "OK");
    let login = |options: &str| server.dsn(options).replace("://", "://mcp:SECRET@");
    let dsn = login("prefix=shop:");
    let engine = Engine::open(&dsn)?;
    let session = named(&engine, "s");
    works(&session)?;
    let mut asker = Worker::start(&["ask", &dsn, "s", "60000"]);
    let id: i64 = asker.line("id").parse()?;
    session.deliver_response(id, "\"yes\"")?;
    assert_eq!(asker.line("answer"), "\"yes\"");
    assert_eq!(engine.publish("topic", "1")?, 1);
    assert!(!engine.wait_since("topic", 1, Duration::from_millis(1))?);
    assert!(engine.consume_once("key", 1000)?);
    session.attributes().patch([("a.b", Some("1")), ("c", None)])?;
    assert!(session.attributes().all()?.contains(r#""a":{"b":1}"#));
    engine.collect(10)?;
    assert_eq!(engine.stats()?.sessions, 1);
    assert_eq!(engine.sessions(None, 9)?.len(), 1);
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    assert!(session.destroy()?);
    Engine::reset(&dsn)?;
    let other = Engine::open(&login("prefix=blog:"))?.open_session("s", None).map(|_| ()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::StoreUnavailable, "{other}");
    Ok(())
}

impl Worker {
    /// Reads until `word` has come so often; anything that is wrong is an error.
    fn lines_until(&mut self, word: &str, times: usize) -> Result {
        let mut seen = 0;
        while seen < times {
            let line = self.any_line();
            if line.is_empty() || line.starts_with("wrong") {
                return Err(Failed::from(format!("the worker said {line:?}")));
            }
            seen += usize::from(line.starts_with(word));
        }
        Ok(())
    }
}
