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
    ("a_sentinel_that_names_no_master_leads_to_the_next_one", stale_sentinels),
    ("sentinels_have_a_login_of_their_own", sentinel_login),
    ("nodes_without_a_host_are_found_at_the_host_that_was_asked", unknown_endpoints),
    ("rings_are_heard_at_a_node_that_belongs_to_the_cluster", left_node),
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
    follows_a_slot(&Cluster::new()?)
}

fn follows_a_slot(cluster: &Cluster) -> Result {
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

/// What sentinels name that lag behind, or are cut off: a server that is gone, one with another password, and a replica.
fn stale_sentinels() -> Result {
    let mut gone = RedisServer::on_port(&[]);
    let locked = RedisServer::on_port(&[]);
    let master = RedisServer::on_port(&[]);
    let replica = RedisServer::on_port(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    let good = RedisServer::sentinel_of(&master, 1);
    // They would need one another to change their minds.
    let stale = [("gone", &gone), ("locked", &locked), ("a-replica", &replica)]
        .map(|(what, server)| (what, RedisServer::sentinel_of(server, 9)));
    locked.command(&["CONFIG", "SET", "requirepass", "RIGHT"]);
    gone.kill();
    let dsn = |sentinels: &[&RedisServer]| {
        let hosts: Vec<_> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        format!("redis://{}?sentinel=main&retry_ms=50", hosts.join(","))
    };
    for (what, stale) in &stale {
        let engine = Engine::open(&dsn(&[stale, &good]))?;
        works(&named(&engine, what)).map_err(|error| format!("{what}: {}", error.message().unwrap_or("?")))?;
        // A waiter has a connection of its own.
        assert!(!engine.wait_since("topic", 0, std::time::Duration::from_millis(1))?);
        assert!(!master.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).is_empty(), "{what}");
        let error = Engine::open(&dsn(&[stale]))?.open_session(what, None).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{what}: {error}");
    }
    Ok(())
}

fn sentinel_login() -> Result {
    let master = RedisServer::on_port(&[]);
    let sentinel = RedisServer::sentinel_of(&master, 1);
    assert_eq!(sentinel.command(&["ACL", "SETUSER", "watch", "on", ">SENTINELS", "allchannels", "+@all"]), "OK");
    assert_eq!(sentinel.command(&["ACL", "SETUSER", "default", "off"]), "OK");
    assert_eq!(master.command(&["CONFIG", "SET", "requirepass", "MASTERS"]), "OK");
    let dsn = |login: &str, options: &str| {
        format!("redis://{login}127.0.0.1:{}?sentinel=main&retry_ms=600000{options}", sentinel.port())
    };
    const LOGIN: &str = "&sentinel_user=watch&sentinel_password=SENTINELS";
    let engine = Engine::open(&dsn(":MASTERS@", LOGIN))?;
    works(&named(&engine, "s"))?;
    assert!(!engine.dsn().contains("SENTINELS"), "{}", engine.dsn());
    // Whose login is refused; what is wrong is not tried again for ten minutes.
    for (login, options, said, unsaid) in [
        (":MASTERS@", "", "sentinel_password", "in the DSN"),
        (":MASTERS@", "&sentinel_user=watch&sentinel_password=WRONG", "sentinel_password", "in the DSN"),
        ("", LOGIN, "name a user and a password in the DSN", "sentinel_password"),
        (":WRONG@", LOGIN, "another user or password in the DSN", "sentinel_password"),
    ] {
        let error = Engine::open(&dsn(login, options))?.open_session("s", None).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        let text = error.to_string();
        assert!(text.contains(said) && !text.contains(unsaid), "{login}{options}: {text}");
        assert!(!text.contains("WRONG") && !text.contains("MASTERS") && !text.contains("SENTINELS"), "{text}");
    }
    Ok(())
}

/// Redis in containers and behind proxies: clients go to the host they know, only the port is the node's own.
fn unknown_endpoints() -> Result {
    let cluster = Cluster::new()?;
    for master in &cluster.masters {
        let set = master.command(&["CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"]);
        if set != "OK" {
            eprintln!("left out: nodes without a host, which servers before Redis 7 always name: {set}");
            return Ok(());
        }
    }
    follows_a_slot(&cluster)?;
    let engine = Engine::open(&cluster.dsn())?;
    for number in 0..20 {
        works(&named(&engine, &format!("session-{number}")))?;
    }
    assert!(!engine.wait_since("topic", 0, std::time::Duration::from_millis(1))?);
    let keys = |cluster: &Cluster| cluster.masters.iter().map(|node| node.command(&["DBSIZE"])).collect::<Vec<_>>();
    assert!(!keys(&cluster).contains(&"0".to_owned()), "20 sessions lie on all three masters");
    Engine::reset(&cluster.dsn())?;
    assert_eq!(keys(&cluster), ["0", "0", "0"], "all masters are reset");
    works(&named(&engine, "again"))
}

/// The first node of the DSN runs and takes connections, and no message of the others reaches it any more.
fn left_node() -> Result {
    let cluster = Cluster::new()?;
    let never = Cluster::node();
    let forgotten = Cluster::node();
    let first = &cluster.masters[0];
    let known = |number: usize| format!("cluster_known_nodes:{number}");
    assert_eq!(first.command(&["CLUSTER", "MEET", "127.0.0.1", &forgotten.port().to_string()]), "OK");
    wait_until("the node is known everywhere", || {
        let everybody = cluster.masters.iter().chain([&forgotten]);
        everybody.map(|node| node.command(&["CLUSTER", "INFO"])).all(|info| info.contains(&known(4)))
    });
    let id = forgotten.command(&["CLUSTER", "MYID"]);
    wait_until("all have forgotten it", || {
        let forget = |node: &RedisServer| node.command(&["CLUSTER", "FORGET", &id]);
        cluster.masters.iter().for_each(|node| drop(forget(node)));
        cluster.masters.iter().map(|node| node.command(&["CLUSTER", "INFO"])).all(|info| info.contains(&known(3)))
    });
    let others = cluster.dsn();
    for (number, (what, left)) in [("never there", &never), ("forgotten", &forgotten)].into_iter().enumerate() {
        let dsn = others.replace("redis://", &format!("redis://127.0.0.1:{},", left.port()));
        let engine = Engine::open(&dsn)?;
        let id = format!("s{number}");
        let session = named(&engine, &id);
        let mut asker = Worker::start(&["ask", &dsn, &id, "60000"]);
        let request: i64 = asker.line("id").parse()?;
        let listens = |node: &RedisServer| node.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).contains("sub=");
        wait_until("it listens", || cluster.masters.iter().chain([left]).any(listens));
        assert!(!listens(left), "{what}: it listens where nothing is to be heard");
        assert_eq!(session.deliver_response(request, "\"yes\"")?, Delivery::Delivered);
        assert_eq!(asker.line("answer"), "\"yes\"");
    }
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
