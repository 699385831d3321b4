//! Connections that are dropped without a word, and servers that stay away: what is tried on which connection, and for how long.

use std::os::fd::RawFd;
use std::time::Duration;

use mcp_state::{Claim, Delivery, Engine, ErrorKind, Interest, OwnerKind, WaitedFor};

use crate::common::redis::{Proxy, RedisServer, wait_until};
use crate::workers::{REQUEST, Test};
use crate::{Result, named, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("an_operation_on_a_connection_that_was_dropped_silently_is_tried_on_a_fresh_one", dropped_silently),
    ("a_question_is_answered_though_all_its_connections_were_dropped_silently", dropped_while_asking),
    ("after_an_outage_each_operation_asks_the_server_once_until_it_answers", fails_at_once),
    ("the_kernel_is_told_to_find_dead_connections", keepalive),
];

/// A try that times out takes all of `retry_ms`: by default the two are the same.
fn dropped_silently() -> Result {
    let server = RedisServer::start();
    let proxy = Proxy::before(&server);
    let engine = Engine::open(&proxy.dsn("timeout_ms=300&retry_ms=300"))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    type Act<'a> = (&'a str, &'a dyn Fn() -> std::result::Result<(), mcp_state::Error>);
    let acts: [Act<'_>; 7] = [
        ("set", &|| session.attributes().set("a", "1")),
        ("enqueue", &|| session.enqueue_outgoing(&owner, "1", "").map(drop)),
        ("take", &|| session.take_outgoing(&owner, 9).map(|taken| assert_eq!(taken.len(), 1))),
        ("stats", &|| session.stats().map(drop)),
        ("create", &|| engine.create_session(Default::default()).map(drop)),
        ("publish", &|| engine.publish("t", "1").map(drop)),
        ("consume", &|| engine.consume_once("k", 60_000).map(|first| assert!(first))),
    ];
    for (what, act) in acts {
        // Two connections, so that a second kept one is no way out.
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| engine.open_session("s", None).map(drop).expect("it goes through"));
            }
        });
        proxy.swallow();
        act().map_err(|error| format!("{what}: {error}"))?;
    }
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn dropped_while_asking() -> Result {
    let server = RedisServer::start();
    let proxy = Proxy::before(&server);
    let engine = Engine::open(&proxy.dsn("timeout_ms=300&retry_ms=300"))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let beside = Engine::open(&server.dsn(""))?.open_session("s", None)?.ok_or("it is there")?;
    for round in 0..3 {
        let id = session.send_request(&owner, REQUEST, "", 60_000)?;
        std::thread::scope(|scope| -> Result {
            let waiter = scope.spawn(|| session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(60)));
            wait_until("it listens", || server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).contains("sub="));
            let before = proxy.swallow();
            if round > 0 {
                // The waiter has looked at least once more by then.
                wait_until("it connects anew", || proxy.connections() > before);
            }
            assert_eq!(beside.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
            let waited = waiter.join().expect("it does not panic")?;
            assert_eq!(waited.outcome, WaitedFor::Ready, "round {round}");
            Ok(())
        })?;
        assert_eq!(session.claim(&owner, id)?, Claim::Answered("\"yes\"".into()));
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    }
    Ok(())
}

fn fails_at_once() -> Result {
    let server = RedisServer::start();
    let proxy = Proxy::before(&server);
    let engine = Engine::open(&proxy.dsn("retry_ms=1000"))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    proxy.close();
    let before = proxy.connections();
    let first = session.enqueue_outgoing(&owner, "1", "").unwrap_err();
    assert!(proxy.connections() > before + 3, "the first is tried again for as long as retry_ms says: {first}");
    let acts: [&dyn Fn() -> std::result::Result<(), mcp_state::Error>; 6] = [
        &|| session.enqueue_outgoing(&owner, "2", "").map(drop),
        &|| session.stats().map(drop),
        &|| engine.open_session("s", None).map(drop),
        &|| engine.create_session(Default::default()).map(drop),
        &|| engine.publish("t", "1").map(drop),
        &|| session.detach(&owner).map(drop),
    ];
    for (number, act) in acts.into_iter().enumerate() {
        let before = proxy.connections();
        let error = act().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{number}: {error}");
        assert_eq!(proxy.connections() - before, 1, "operation {number} after an outage asks once");
    }
    // Who is heard again is believed at once, with all that belongs to it.
    proxy.open();
    works(&session)?;
    proxy.close();
    let before = proxy.connections();
    session.stats().unwrap_err();
    assert!(proxy.connections() > before + 3, "a new outage is waited out anew");
    Ok(())
}

fn keepalive() -> Result {
    let server = RedisServer::on_port(&[]);
    let engine = Engine::open(&format!("redis://127.0.0.1:{}", server.port()))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    session.send_request(&owner, REQUEST, "", 60_000)?;
    // A waiter has a connection of its own.
    session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_millis(1))?;
    let ours: Vec<RawFd> = sockets_to(server.port())?;
    assert!(ours.len() > 1, "operations and waiters have a connection each: {ours:?}");
    for socket in ours {
        assert_eq!(option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
        #[cfg(target_os = "linux")]
        {
            assert!((1..=60).contains(&option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE)));
            assert!((1..=60_000).contains(&option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT)));
        }
    }
    Ok(())
}

/// This process's sockets that are connected to a port of this machine.
fn sockets_to(port: u16) -> Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Ok(socket) = entry?.file_name().to_string_lossy().parse::<RawFd>() else { continue };
        // SAFETY: an all-zero address is one; the kernel writes at most as much as it is told there is room for.
        let mut peer: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        // SAFETY: `peer` and `length` are valid for writing; a number that is no socket is an error.
        let named = unsafe { libc::getpeername(socket, (&raw mut peer).cast(), &raw mut length) };
        if named == 0 && i32::from(peer.sin_family) == libc::AF_INET && u16::from_be(peer.sin_port) == port {
            found.push(socket);
        }
    }
    Ok(found)
}

fn option(socket: RawFd, level: i32, name: i32) -> i32 {
    let mut value = 0_i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` and `length` are valid for writing.
    let got = unsafe { libc::getsockopt(socket, level, name, (&raw mut value).cast(), &raw mut length) };
    assert_eq!(got, 0, "{}", std::io::Error::last_os_error());
    value
}
