//! Several servers that hold one store: a cluster, and a master that sentinels watch.

use std::collections::HashSet;
use std::net::TcpListener;
use std::process::Command;

use mcp_state::{Claim, Delivery, Engine, ErrorKind, NewSession, OwnerKind};

use crate::common::process::Worker;
use crate::common::redis::{RedisServer, free_port, wait_until};
use crate::servers::has_all;
use crate::workers::{REQUEST, Test, roles};
use crate::{Result, named, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_cluster_of_three_masters_holds_every_session_in_one_slot", cluster),
    ("a_session_whose_slot_moves_to_another_master_is_followed", slot_moves),
    ("sentinels_lead_to_the_new_master_when_the_old_one_dies", sentinels),
];

struct Cluster {
    masters: Vec<RedisServer>,
}

impl Cluster {
    fn new() -> Result<Self> {
        let masters: Vec<_> = (0..3).map(|_| Self::node()).collect();
        let address = |master: &RedisServer| format!("127.0.0.1:{}", master.port());
        let mut command = Command::new("redis-cli");
        command.args(["--cluster", "create"]).args(masters.iter().map(address)).arg("--cluster-yes");
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stdout).into_owned().into());
        }
        for master in &masters {
            wait_until("the cluster is whole", || {
                let info = master.command(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            });
        }
        Ok(Self { masters })
    }

    /// A node's bus is at its port and 10,000, and that may be taken.
    fn node() -> RedisServer {
        let port = loop {
            let port = free_port();
            if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
                break port;
            }
        };
        RedisServer::at_port(port, &["--cluster-enabled", "yes"])
    }

    fn dsn(&self) -> String {
        let hosts: Vec<_> = self.masters.iter().map(|master| format!("127.0.0.1:{}", master.port())).collect();
        format!("redis://{}?cluster=1", hosts.join(","))
    }

    /// The hash tags of all keys, and the node that has them.
    fn tags(&self) -> HashSet<(usize, String)> {
        let tag = |key: &str| Some(key.split_once('{')?.1.split_once('}')?.0.to_owned());
        let of = |(number, master): (usize, &RedisServer)| {
            let keys = master.command(&["KEYS", "*"]);
            keys.lines().map(|key| (number, tag(key).unwrap_or_default())).collect::<Vec<_>>()
        };
        self.masters.iter().enumerate().flat_map(of).collect()
    }

    /// The slots that hold something, and the node that does.
    fn used_slots(&self) -> Vec<(usize, String)> {
        let of = |(number, master): (usize, &RedisServer)| {
            let keys = master.command(&["KEYS", "*"]);
            let slot = |key: &str| (number, master.command(&["CLUSTER", "KEYSLOT", key]));
            keys.lines().filter(|key| !key.is_empty()).map(slot).collect::<Vec<_>>()
        };
        self.masters.iter().enumerate().flat_map(of).collect()
    }
}

fn cluster() -> Result {
    let cluster = Cluster::new()?;
    let engine = Engine::open(&cluster.dsn())?;
    let mut nodes = HashSet::new();
    for number in 0..20 {
        let before = cluster.tags();
        let session = named(&engine, &format!("session-{number}"));
        let owner = session.attach(OwnerKind::Stream, None)?;
        roles::round(&session, &owner)?;
        session.enqueue_outgoing(&owner, "{}", "")?;
        session.attributes().set("a.b", "1")?;
        let new: Vec<_> = cluster.tags().difference(&before).cloned().collect();
        // What is store-wide was made with the first session.
        assert!(number == 0 || new.len() == 1, "session {number} has the hash tags {new:?}");
        nodes.extend(new.iter().map(|(node, _)| *node));
    }
    assert_eq!(nodes.len(), 3, "20 sessions lie on all three masters");
    assert_eq!(engine.stats()?.sessions, 20);
    assert_eq!(engine.sessions(None, 100)?.len(), 20);
    // Between processes.
    let session = named(&engine, "s");
    let mut asker = Worker::start(&["ask", &cluster.dsn(), "s", "60000"]);
    let id: i64 = asker.line("id").parse()?;
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(asker.line("answer"), "\"yes\"");
    assert_eq!(engine.publish("topic", "1")?, 1);
    assert_eq!(engine.since("topic", 0, 9)?.messages.len(), 1);
    assert!(engine.consume_once("key", 60_000)?);
    assert!(!engine.consume_once("key", 60_000)?);
    for number in 0..20 {
        let session = engine.open_session(&format!("session-{number}"), None)?.ok_or("it is gone")?;
        assert!(session.destroy()?);
    }
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn slot_moves() -> Result {
    let cluster = Cluster::new()?;
    let engine = Engine::open(&cluster.dsn())?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let id = session.send_request(&owner, REQUEST, "", 60_000)?;
    session.attributes().set("before", "1")?;
    let ids: Vec<_> = cluster.masters.iter().map(|master| master.command(&["CLUSTER", "MYID"])).collect();
    let mut slots = cluster.used_slots();
    slots.sort();
    slots.dedup();
    for (from, slot) in slots {
        let (source, to) = (&cluster.masters[from], (from + 1) % 3);
        let target = &cluster.masters[to];
        target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[from]]);
        source.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[to]]);
        for key in source.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]).lines() {
            let port = target.port().to_string();
            let moved = source.command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
            assert_eq!(moved, "OK", "{key}");
        }
        for master in [target, source] {
            assert_eq!(master.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[to]]), "OK");
        }
    }
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(session.claim(&owner, id)?, Claim::Answered("\"yes\"".into()));
    assert_eq!(session.attributes().get("before")?.as_deref(), Some("1"));
    works(&session)?;
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn sentinels() -> Result {
    let mut master = RedisServer::on_port(&[]);
    let replica = RedisServer::on_port(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    let sentinels: Vec<_> = (0..3).map(|_| RedisServer::sentinel_of(&master, 2)).collect();
    for sentinel in &sentinels {
        wait_until("the sentinels have met", || {
            let seen = sentinel.command(&["SENTINEL", "MASTER", "main"]);
            let of = |field: &str| seen.lines().skip_while(|line| *line != field).nth(1).map(str::to_owned);
            of("num-slaves").as_deref() == Some("1") && of("num-other-sentinels").as_deref() == Some("2")
        });
    }
    let hosts: Vec<_> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
    let engine = Engine::open(&format!("redis://{}?sentinel=main", hosts.join(",")))?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let id = session.send_request(&owner, REQUEST, "", 60_000)?;
    has_all(&replica, &master);
    master.kill();
    wait_until("an operation succeeds again", || match session.attributes().set("after", "1") {
        Ok(()) => true,
        Err(error) => {
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::StoreUnavailable | ErrorKind::OutcomeUnknown), "{error}");
            false
        }
    });
    assert!(replica.command(&["ROLE"]).starts_with("master"));
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
    assert_eq!(session.claim(&owner, id)?, Claim::Answered("\"yes\"".into()));
    works(&session)?;
    // Who comes later is led to the new master at once.
    let later = Engine::open(engine.dsn())?;
    assert!(later.open_session("s", None)?.is_some());
    assert!(later.create_session(NewSession::default())?.is_some());
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}
