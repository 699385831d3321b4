//! How long an operation keeps the server from serving others: by the server's own measure, its slow log.

use mcp_state::{Claim, Engine, Interest, NewSession, OwnerKind, Session};

use crate::common::texts;
use crate::workers::{REQUEST, Test};
use crate::{Result, Store, named};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("g10_nothing_within_the_default_limits_keeps_the_server_busy_for_more_than_50_ms", within_limits),
    ("a_patch_near_a_limit_asks_for_all_it_needs_at_once", near_a_limit),
    ("g10_a_topic_that_an_older_build_writes_too_keeps_within_its_bytes", without_lengths),
];

/// The longest time of one command or script, in microseconds.
const MOST_MICROS: u64 = 50_000;
/// How often an operation is done until it was once as quick as that: other programs of the machine make it slower, none quicker.
const ROUNDS: usize = 8;

/// The default limit of one patch.
const KEYS: usize = 10_000;

/// A server, and what it says of the time it took.
struct Measured {
    store: Store,
    link: redis::Connection,
    /// Tells sessions apart.
    next: usize,
    report: String,
    too_long: bool,
}

impl Measured {
    fn new() -> Result<Self> {
        // What is logged takes time itself, so that shorter ones are not.
        let store =
            Store::with(&["--slowlog-log-slower-than", "1000", "--slowlog-max-len", "100000"], "timeout_ms=20000");
        let socket = store.server.directory().join("redis.sock");
        let link = redis::Client::open(format!("unix://{}", socket.display()))?.get_connection()?;
        Ok(Self { store, link, next: 0, report: String::new(), too_long: false })
    }

    /// A process that has seen nothing yet.
    fn stranger(&self) -> Result<Engine> {
        Ok(Engine::open(&self.store.dsn)?)
    }

    /// The session as a process has it that has seen nothing yet.
    fn unseen(&self, id: &str) -> Result<Session> {
        Ok(self.stranger()?.open_session(id, None)?.ok_or("it is there")?)
    }

    fn id(&mut self) -> String {
        self.next += 1;
        format!("s{}", self.next)
    }

    fn session(&mut self) -> (String, Session) {
        let id = self.id();
        let session = named(&self.store.engine, &id);
        (id, session)
    }

    /// The longest that one command of `job` took, in microseconds: by the slow log, and no more than the processor's
    /// time that all of `job` took the server, since other programs of this machine stretch what the slow log has.
    fn longest(&mut self, job: impl FnOnce() -> Result) -> Result<u64> {
        redis::cmd("SLOWLOG").arg("RESET").exec(&mut self.link)?;
        let before = self.store.server.processor_time();
        job()?;
        let worked =
            self.store.server.processor_time().zip(before).map(|(after, before)| after.checked_sub(before).unwrap());
        type Entry = (u64, u64, u64, redis::Value, redis::Value, redis::Value);
        let entries: Vec<Entry> = redis::cmd("SLOWLOG").arg("GET").arg(100_000).query(&mut self.link)?;
        let longest = entries.iter().map(|entry| entry.2).max().unwrap_or(0);
        Ok(worked.map_or(longest, |worked| longest.min(worked.as_micros() as u64)))
    }

    /// Does `job` on what `prepare` makes. The best of several counts.
    fn case<T>(
        &mut self,
        what: &str,
        mut prepare: impl FnMut(&mut Self) -> Result<T>,
        mut job: impl FnMut(T) -> Result,
    ) -> Result {
        let mut best = u64::MAX;
        for _ in 0..ROUNDS {
            let prepared = prepare(self)?;
            best = best.min(self.longest(|| job(prepared))?);
            if best <= MOST_MICROS {
                break;
            }
        }
        self.too_long |= best > MOST_MICROS;
        let line = format!("{:6.1} ms  {what}", best as f64 / 1000.0);
        // With --nocapture this is the measurement.
        eprintln!("{line}");
        self.report.push_str(&line);
        self.report.push('\n');
        Ok(())
    }
}

fn keys(below: &str) -> Vec<String> {
    (0..KEYS).map(|number| format!("{below}k{number:05}")).collect()
}

fn short_keys() -> Vec<String> {
    let digit = |digit: usize| char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[digit % 36]);
    (1..KEYS).map(|number| [36 * 36, 36, 1].map(|place| digit(number / place)).iter().collect()).collect()
}

fn patch(session: &Session, keys: &[String]) -> Result {
    Ok(session.attributes().patch(keys.iter().map(|key| (key.as_str(), Some("\"value\""))))?)
}

fn done(as_it_should: bool) -> Result {
    if as_it_should { Ok(()) } else { Err("it did something else".into()) }
}

fn within_limits() -> Result {
    let mut measured = Measured::new()?;
    attributes(&mut measured)?;
    messages(&mut measured)?;
    owners(&mut measured)?;
    shared(&mut measured)?;
    assert_eq!(measured.store.engine.contradictions()?, Vec::<String>::new());
    assert!(!measured.too_long, "more than {MOST_MICROS} microseconds:\n{}", measured.report);
    Ok(())
}

fn attributes(measured: &mut Measured) -> Result {
    let keys = keys("a.b.");
    let most = &keys[1..];
    let with_keys = |measured: &mut Measured| -> Result<Session> {
        let (id, session) = measured.session();
        patch(&session, most)?;
        measured.unseen(&id)
    };
    let new = |measured: &mut Measured| {
        let (id, _) = measured.session();
        measured.unseen(&id)
    };
    measured.case(&format!("a patch of {KEYS} keys"), new, |session| patch(&session, &keys))?;
    type Act = fn(Session) -> Result;
    let acts: [(&str, Act); 6] = [
        ("a set beside them", |session| Ok(session.attributes().set("another.key", "1")?)),
        ("all of them", |session| done(session.attributes().all()?.len() > KEYS)),
        ("get of their parent", |session| done(session.attributes().get("a")?.is_some())),
        ("remove of their parent", |session| done(session.attributes().remove("a")?)),
        ("set of their parent", |session| Ok(session.attributes().set("a", "1")?)),
        ("destroy with them", |session| done(session.destroy()?)),
    ];
    for (what, act) in acts {
        measured.case(what, with_keys, act)?;
    }
    measured
        .case("a patch of the same by a process that has not seen them", with_keys, |session| patch(&session, most))?;
    measured.case("a patch that removes them", with_keys, |session| {
        Ok(session.attributes().patch(most.iter().map(|key| (key.as_str(), None)))?)
    })?;
    // As short as keys can be, and as long as values can be together.
    let short = |measured: &mut Measured, bytes: usize| -> Result<Session> {
        let (id, session) = measured.session();
        let (names, value) = (short_keys(), format!("\"{}\"", "x".repeat(bytes)));
        session.attributes().patch(names.iter().map(|key| (key.as_str(), Some(value.as_str()))))?;
        measured.unseen(&id)
    };
    for bytes in [0, 98] {
        let what = format!("{} keys of a few bytes with values of {}", KEYS - 1, bytes + 2);
        measured.case(
            &format!("a set beside {what}"),
            |measured| short(measured, bytes),
            |session| Ok(session.attributes().set("another.key", "1")?),
        )?;
        measured.case(
            &format!("all of {what}"),
            |measured| short(measured, bytes),
            |session| done(session.attributes().all()?.len() > KEYS),
        )?;
    }
    Ok(())
}

fn messages(measured: &mut Measured) -> Result {
    for (count, bytes) in [(1024, (16 << 10) - 100), (1024, 10), (4, (4 << 20) - 1000)] {
        let text = format!("\"{}\"", "x".repeat(bytes));
        let queued = |measured: &mut Measured| -> Result<_> {
            let (id, session) = measured.session();
            let owner = session.attach(OwnerKind::Stream, None)?;
            for _ in 0..count {
                session.enqueue_outgoing(&owner, &text, "")?;
            }
            Ok((measured.unseen(&id)?, owner))
        };
        let what = format!("{count} messages of {bytes} bytes");
        measured.case(&format!("take of {what}"), queued, |(session, owner)| {
            assert_eq!(session.take_outgoing(&owner, count)?.len(), count);
            Ok(())
        })?;
        measured.case(&format!("peek and acknowledgement of {what}"), queued, |(session, owner)| {
            let peeked = session.peek_outgoing(&owner, count)?;
            assert_eq!(session.acknowledge(&owner, peeked[count - 1].sequence)?, count as u64);
            Ok(())
        })?;
        measured.case(&format!("detach with {what}"), queued, |(session, owner)| {
            assert!(session.detach(&owner)?.is_some());
            Ok(())
        })?;
    }
    Ok(())
}

fn owners(measured: &mut Measured) -> Result {
    let asked = |measured: &mut Measured| -> Result<_> {
        let (id, session) = measured.session();
        let owner = session.attach(OwnerKind::Stream, None)?;
        let request = session.send_request(&owner, REQUEST, "", 60_000)?;
        Ok((measured.unseen(&id)?, owner, request))
    };
    measured.case("an answer of 4 MiB and its claim", asked, |(session, owner, request)| {
        session.deliver_response(request, &format!("\"{}\"", "x".repeat((4 << 20) - 1000)))?;
        assert!(matches!(session.claim(&owner, request)?, Claim::Answered(_)));
        Ok(())
    })?;
    let queues = |measured: &mut Measured| -> Result<_> {
        let (id, session) = measured.session();
        let owners: Vec<_> =
            (0..16).map(|_| session.attach(OwnerKind::Stream, None)).collect::<std::result::Result<_, _>>()?;
        for owner in &owners {
            for _ in 0..256 {
                session.enqueue_outgoing(owner, "1", "")?;
            }
        }
        Ok((measured.unseen(&id)?, owners))
    };
    measured.case("reading all and the end of 16 queues of 256 messages", queues, |(session, owners)| {
        assert_eq!(session.engine().contradictions()?, Vec::<String>::new());
        assert!(session.detach(&owners[0])?.is_some());
        assert!(session.destroy()?);
        Ok(())
    })?;
    let crowd = |measured: &mut Measured| -> Result<_> {
        let (id, session) = measured.session();
        let mut owners = Vec::new();
        for _ in 0..255 {
            owners.push(session.attach(OwnerKind::Stream, None)?);
        }
        for owner in &owners {
            session.send_request(owner, REQUEST, "", 60_000)?;
            session.enqueue_broadcast("{}", "")?;
        }
        Ok((measured.unseen(&id)?, owners))
    };
    measured.case("a broadcast to 256 owners with 256 requests", crowd, |(session, mut owners)| {
        owners.push(session.attach(OwnerKind::Stream, None)?);
        let request = session.send_request(&owners[255], REQUEST, "", 60_000)?;
        session.enqueue_broadcast("{}", "")?;
        session.deliver_response(request, "1")?;
        session.wait(&owners[255], Interest::RESOLUTION, 0, Default::default())?;
        session.claim_any(&owners[255])?.ok_or("it is answered")?;
        assert_eq!(texts(session.take_outgoing(&owners[0], 1024)?).len(), 257);
        assert!(session.destroy()?);
        Ok(())
    })
}

fn shared(measured: &mut Measured) -> Result {
    measured.case(
        "collecting 200 expired sessions",
        |measured| {
            for _ in 0..200 {
                let new = NewSession { id: Some(measured.id()), ttl_ms: Some(1), ..NewSession::default() };
                measured.store.engine.create_session(new)?;
            }
            measured.stranger()
        },
        |engine| {
            assert!(engine.collect(10_000)?.sessions >= 199);
            Ok(())
        },
    )?;
    for (count, bytes) in [(4096, 4096), (1000, 1)] {
        let ring = move |measured: &mut Measured| -> Result<_> {
            let (text, topic) = ("x".repeat(bytes), measured.id());
            for _ in 0..count {
                measured.store.engine.publish(&topic, &text)?;
            }
            Ok((measured.stranger()?, topic))
        };
        let what = format!("{count} messages of {bytes} bytes");
        measured.case(&format!("reading a bus ring of {what}"), ring, |(bus, topic)| {
            assert_eq!(bus.since(&topic, 0, 4096)?.messages.len(), count);
            Ok(())
        })?;
        let all_but_one = |measured: &mut Measured| {
            let (bus, topic) = ring(measured)?;
            for _ in 0..3 {
                bus.publish(&topic, &"x".repeat(4 << 20))?;
            }
            Ok((bus, topic))
        };
        measured.case(&format!("a message of 4 MiB that pushes out {what}"), all_but_one, |(bus, topic)| {
            bus.publish(&topic, &"x".repeat(4 << 20))?;
            Ok(())
        })?;
    }
    measured.case(
        "a single-use key beside 100000 forgotten ones",
        |measured| {
            for portion in (0..100_000_u32).collect::<Vec<_>>().chunks(10_000) {
                let mut add = redis::cmd("ZADD");
                add.arg("mcp-state:{once}");
                portion.iter().for_each(|number| {
                    add.arg(1).arg([&[7; 12][..], &number.to_be_bytes()].concat());
                });
                add.exec(&mut measured.link)?;
            }
            measured.stranger()
        },
        |engine| {
            assert!(engine.consume_once("key", 1)?);
            Ok(())
        },
    )?;
    measured.case(
        "reading everything there is",
        |measured| measured.stranger(),
        |engine| {
            engine.sessions(None, 10_000)?;
            assert_eq!(engine.contradictions()?, Vec::<String>::new());
            engine.stats()?;
            Ok(())
        },
    )?;
    let dsn = measured.store.dsn.clone();
    measured.case("reset", |_| Ok(()), |()| Ok(Engine::reset(&dsn)?))
}

/// Builds that keep no lengths of a topic's messages drop the oldest all the same: by reading them.
fn without_lengths() -> Result {
    let store = Store::with(&[], "max_topic_bytes=1000");
    let socket = store.server.directory().join("redis.sock");
    let mut link = redis::Client::open(format!("unix://{}", socket.display()))?.get_connection()?;
    let publish = |bytes: usize| store.engine.publish("topic", &"x".repeat(bytes));
    for number in 1..=600 {
        assert_eq!(publish(1)?, number);
    }
    for bytes in [1, 300] {
        let lengths: Vec<String> = redis::cmd("KEYS").arg("*}l").query(&mut link)?;
        redis::cmd("DEL").arg(&lengths).exec(&mut link)?;
        assert_eq!(lengths.len(), 1);
        publish(bytes)?;
    }
    assert_eq!(store.engine.since("topic", 0, 4096)?.messages.len(), 602, "901 bytes");
    // One byte more than there may be, and then as many as there may be.
    publish(100)?;
    let seen = store.engine.since("topic", 0, 4096)?;
    assert!(seen.messages.len() < 603 && seen.missed > 0);
    publish(999)?;
    publish(1)?;
    let seen = store.engine.since("topic", 0, 4096)?;
    assert_eq!(seen.messages.iter().map(|(_, text)| text.len()).collect::<Vec<_>>(), [999, 1]);
    Ok(())
}

/// As long as nobody knows what is there, what is set counts as new.
fn near_a_limit() -> Result {
    let store = Store::new();
    let session = named(&store.engine, "s");
    let (keys, value) = (keys("a."), format!("\"{}\"", "x".repeat(94)));
    let change =
        |session: &Session| session.attributes().patch(keys.iter().map(|key| (key.as_str(), Some(value.as_str()))));
    change(&session)?;
    assert!(session.stats()?.attribute_bytes > 1_000_000, "two of them are more than there may be");
    let stranger = Engine::open(&store.dsn)?.open_session("s", None)?.ok_or("it is there")?;
    let socket = store.server.directory().join("redis.sock");
    let mut link = redis::Client::open(format!("unix://{}", socket.display()))?.get_connection()?;
    redis::cmd("CONFIG").arg("RESETSTAT").exec(&mut link)?;
    change(&stranger)?;
    let statistics: redis::InfoDict = redis::cmd("INFO").arg("commandstats").query(&mut link)?;
    let calls: String = statistics.get("cmdstat_evalsha").ok_or("it ran scripts")?;
    assert!(["calls=2,", "calls=3,"].iter().any(|few| calls.starts_with(few)), "{calls}");
    Ok(())
}
