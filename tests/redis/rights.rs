//! Users of the server who may not do everything (G8): what an operation needs is known before it changes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_state::{Claim, Delivery, Engine, Error, Interest, OwnerKind, WaitedFor};

use crate::common::redis::RedisServer;
use crate::workers::{REQUEST, Test};
use crate::{Result, named};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_user_without_channels_waits_a_second_and_loses_nothing", without_channels),
    ("who_lacks_rights_is_told_the_line_of_the_acl_that_gives_them", the_missing_line),
    ("a_look_at_a_store_that_is_not_there_makes_nothing", a_look),
    ("g8_an_operation_that_fails_for_want_of_a_right_has_changed_nothing", without_one_right),
];

/// Every command that the scripts run, and a pattern of keys that covers half of what they write.
const RIGHTS: [&str; 22] = [
    "-hset",
    "-hdel",
    "-hmget",
    "-hget",
    "-hkeys",
    "-hgetall",
    "-unlink",
    "-pexpire",
    "-publish",
    "-time",
    "-xadd",
    "-xtrim",
    "-xrange",
    "-set",
    "-get",
    "-exists",
    "-zadd",
    "-zrem",
    "-zscore",
    "-zcount",
    "-zrangebyscore",
    "-zrange",
];

const USER: [&str; 6] = ["on", ">SECRET", "resetkeys", "~mcp-state:*", "&mcp-state:*", "+@all"];

struct Limited {
    server: RedisServer,
    link: redis::Connection,
    operator: Engine,
}

impl Limited {
    fn new() -> Result<Self> {
        let server = RedisServer::start();
        let socket = server.directory().join("redis.sock");
        let link = redis::Client::open(format!("unix://{}", socket.display()))?.get_connection()?;
        let operator = Engine::open(&server.dsn(""))?;
        Ok(Self { server, link, operator })
    }

    fn may(&mut self, rights: &[&str]) -> Result {
        redis::cmd("ACL").arg("SETUSER").arg("mcp").arg("reset").arg(rights).exec(&mut self.link)?;
        Ok(())
    }

    fn engine(&self) -> Result<Engine> {
        Ok(Engine::open(&self.server.dsn("retry_ms=100").replace("://", "://mcp:SECRET@"))?)
    }

    /// What is there, but for what is counted, and for what was taken away, which the server drops after seconds.
    fn contents(&mut self) -> Result<BTreeMap<Vec<u8>, Contents>> {
        let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut self.link)?;
        let mut contents = BTreeMap::new();
        let passing = |key: &[u8]| key.ends_with(b"{counted}") || key.windows(2).any(|pair| pair == b"}k");
        for key in keys.into_iter().filter(|key| !passing(key)) {
            let kind: String = redis::cmd("TYPE").arg(&key).query(&mut self.link)?;
            let value = match kind.as_str() {
                // Its fields have no order.
                "hash" => Contents::Hash(redis::cmd("HGETALL").arg(&key).query(&mut self.link)?),
                _ => Contents::Dump(redis::cmd("DUMP").arg(&key).query(&mut self.link)?),
            };
            contents.insert(key, value);
        }
        Ok(contents)
    }
}

#[derive(PartialEq)]
enum Contents {
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Dump(Vec<u8>),
}

fn without_channels() -> Result {
    let mut limited = Limited::new()?;
    limited.may(&["on", ">SECRET", "~*", "resetchannels", "+@all"])?;
    let engine = limited.engine()?;
    let session = named(&engine, "s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let request = session.send_request(&owner, REQUEST, "", 60_000)?;
    let waiter = session.clone();
    let waited = std::thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(30)));
        assert_eq!(
            session.deliver_response(request, "\"yes\"").map_err(|error| error.to_string()),
            Ok(Delivery::Delivered)
        );
        waits.join().expect("no panic")
    })?;
    assert_eq!(waited.outcome, WaitedFor::Ready);
    assert_eq!(session.claim(&owner, request)?, Claim::Answered("\"yes\"".into()));
    assert_eq!(engine.publish("topic", "1")?, 1);
    assert!(engine.wait_since("topic", 0, Duration::from_secs(1))?);
    assert!(!engine.wait_since("topic", 1, Duration::from_millis(1))?);
    assert_eq!(session.stats()?.pending, 0, "nothing was sent twice");
    Ok(())
}

fn without_one_right() -> Result {
    let mut limited = Limited::new()?;
    limited.may(&USER)?;
    let engine = limited.engine()?;
    let mut refused = 0;
    for (number, right) in RIGHTS.into_iter().enumerate() {
        limited.may(&USER)?;
        let session = named(&engine, &format!("s{number}"));
        let doomed = named(&engine, &format!("d{number}"));
        let owner = session.attach(OwnerKind::Stream, None)?;
        let request = session.send_request(&owner, REQUEST, "", 60_000)?;
        session.attributes().patch([("a.b", Some("1")), ("a.c", Some("1"))])?;
        doomed.attributes().set("a", "1")?;
        engine.publish("topic", "1")?;
        type Act<'a> = (&'a str, Box<dyn Fn() -> std::result::Result<(), Error> + 'a>);
        let acts: [Act<'_>; 12] = [
            ("set", Box::new(|| session.attributes().set("d", "1"))),
            ("remove", Box::new(|| session.attributes().remove("a").map(drop))),
            ("attach", Box::new(|| session.attach(OwnerKind::Reply, None).map(drop))),
            ("send", Box::new(|| session.send_request(&owner, REQUEST, "", 60_000).map(drop))),
            ("deliver", Box::new(|| session.deliver_response(request, "1").map(drop))),
            ("claim", Box::new(|| session.claim(&owner, request).map(drop))),
            ("take", Box::new(|| session.take_outgoing(&owner, 9).map(drop))),
            ("detach", Box::new(|| session.detach(&owner).map(drop))),
            ("destroy", Box::new(|| doomed.destroy().map(drop))),
            ("create", Box::new(|| engine.create_session(Default::default()).map(drop))),
            ("publish", Box::new(|| engine.publish("topic", "2").map(drop))),
            ("once", Box::new(|| engine.consume_once(&format!("key{number}"), 60_000).map(drop))),
        ];
        limited.may(&[&USER[..], &[right]].concat())?;
        for (what, act) in acts {
            let before = limited.contents()?;
            if let Err(error) = act() {
                refused += 1;
                assert!(error.to_string().contains("rights"), "{what} with {right}: {error}");
                assert!(limited.contents()? == before, "{what} with {right} has failed and changed something: {error}");
            }
        }
    }
    assert!(refused > RIGHTS.len(), "rights that nothing needs: {refused}");
    limited.may(&USER)?;
    assert_eq!(limited.operator.contradictions()?, Vec::<String>::new());
    Ok(())
}

/// What is said is right: who is given it lacks nothing more.
fn the_missing_line() -> Result {
    let mut limited = Limited::new()?;
    limited.may(&USER)?;
    let engine = limited.engine()?;
    let session = named(&engine, "s");
    let advised = |engine: &Engine| -> Result<Option<String>> {
        let stats = engine.stats()?;
        Ok(stats.place.into_iter().find(|(name, _)| *name == "missing_rights").map(|(_, rule)| rule))
    };
    assert_eq!(advised(&engine)?, None);
    for (taken, given) in [
        (&["resetchannels"][..], "&mcp-state:*"),
        (&["-hset"], "+hset"),
        (&["-xadd", "-zcount"], "+zcount +xadd"),
        (&["-info"], "+info"),
        (&["-publish"], "+publish"),
    ] {
        limited.may(&[&USER[..], taken].concat())?;
        let rule = advised(&engine)?.ok_or_else(|| format!("{taken:?} is not missed"))?;
        assert_eq!(rule, format!("ACL SETUSER mcp {given}"), "without {taken:?}");
        let mut grant = redis::cmd("ACL");
        grant.arg(rule.split(' ').skip(1).collect::<Vec<_>>());
        grant.exec(&mut limited.link)?;
        assert_eq!(advised(&engine)?, None, "{rule}");
    }
    // Errors say it too, of keys as of commands.
    for (taken, given) in [(&["resetkeys", "~other:*"][..], "~mcp-state:*"), (&["-hset"], "+hset")] {
        limited.may(&[&USER[..], taken].concat())?;
        let error = session.attributes().set("a", "1").unwrap_err().to_string();
        assert!(error.contains("ACL SETUSER mcp ") && error.contains(given), "{error}");
    }
    Ok(())
}

fn a_look() -> Result {
    let mut limited = Limited::new()?;
    let dsn = limited.server.dsn("prefix=typo:");
    let before = limited.contents()?;
    let error = Engine::open_existing(&dsn).err().ok_or("it is not there")?;
    assert!(matches!(error, Error::Store(mcp_state::StoreError::Missing { .. })), "{error}");
    assert!(error.to_string().contains("typo:"), "{error}");
    assert!(limited.contents()? == before, "nothing was written");
    let engine = Engine::open(&dsn)?;
    named(&engine, "s");
    let looking = Engine::open_existing(&dsn)?;
    assert_eq!(looking.sessions(None, 9)?.len(), 1);
    // One that goes while it is looked at stays away.
    drop(engine);
    Engine::reset(&dsn)?;
    let _ = looking.stats();
    let _ = Engine::open_existing(&dsn).map(|engine| engine.stats());
    let keys: Vec<String> = redis::cmd("KEYS").arg("typo:*").query(&mut limited.link)?;
    assert_eq!(keys, Vec::<String>::new());
    Ok(())
}
