//! Tests with several processes: this program starts itself again in the role of a worker (see [`roles`]) and talks with it
//! by lines.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use mcp_state::{
    Claim, Delivery, DuplicatePolicy, Engine, Error, ErrorKind, Interest, NewSession, OwnerKind, OwnerToken, Session,
    WaitedFor,
};

use crate::common::process::{self, Worker};
use crate::common::texts;

pub const REQUEST: &str = r#"{"jsonrpc":"2.0","method":"elicitation/create"}"#;

pub type Test = fn() -> Result<(), Failed>;

/// What `main` of a test program does: it runs the tests, or plays a role for one of them.
pub fn main(tests: &[(&'static str, Test)]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "--role") {
        process::deadline(process::WORKER_SECONDS);
        roles::play(&arguments[2..]);
        return ExitCode::SUCCESS;
    }
    process::deadline(process::TEST_SECONDS);
    process::copy_program();
    let trials = tests.iter().map(|&(name, test)| Trial::test(name, test)).collect();
    let exit_code = libtest_mimic::run(&Arguments::from_args(), trials).exit_code();
    process::remove_copy();
    exit_code
}

/// Tests of any store that processes share: each is given its DSN and its session "s".
pub mod shared {
    use super::{Delivery, Session, Worker, process};

    pub fn an_answer_wakes(dsn: &str, session: &Session) -> process::Result {
        for _ in 0..40 {
            let mut asker = Worker::start(&["ask", dsn, "s", "60000"]);
            let id: i64 = asker.line("id").parse()?;
            assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered);
            assert_eq!(asker.line("answer"), "\"yes\"");
            assert!(asker.finish().success());
        }
        Ok(())
    }

    pub fn destroy_wakes(dsn: &str, session: &Session) -> process::Result {
        let mut askers: Vec<_> = (0..3).map(|_| Worker::start(&["ask", dsn, "s", "60000"])).collect();
        for asker in &mut askers {
            asker.line("id");
        }
        session.destroy()?;
        for mut asker in askers {
            assert_eq!(asker.line("destroyed"), "");
            assert!(asker.finish().success());
        }
        Ok(())
    }

    pub fn a_fork_after_use(dsn: &str, session: &Session) -> process::Result {
        assert!(Worker::start(&["fork", dsn, "s"]).finish().success());
        assert_eq!(session.attributes().get("forked")?.as_deref(), Some("\"parent\""));
        assert_eq!(session.attributes().get("child")?.as_deref(), Some("1"));
        Ok(())
    }
}

/// What a worker process does.
pub mod roles {
    use super::{
        Claim, Delivery, DuplicatePolicy, Duration, Engine, Error, ErrorKind, Interest, NewSession, OwnerKind,
        OwnerToken, REQUEST, Read, Session, WaitedFor, Worker, Write, texts,
    };

    pub fn play(role: &[String]) {
        let role: Vec<&str> = role.iter().map(String::as_str).collect();
        match role[..] {
            ["ask", dsn, id, timeout] => ask(&find(dsn, id), timeout.parse().expect("a number")),
            ["answer", dsn, id, request] => {
                find(dsn, id).deliver_response(request.parse().expect("an id"), "\"yes\"").expect("delivered");
            }
            ["round", dsn, id] => {
                let session = find(dsn, id);
                let owner = session.attach(OwnerKind::Stream, None).expect("attached");
                round(&session, &owner).expect("a round");
                session.detach(&owner).expect("detached");
            }
            ["answer_a_child", dsn, id] => {
                let session = find(dsn, id);
                let mut asker = Worker::start(&["ask", dsn, id, "60000"]);
                let request = asker.line("id").parse().expect("an id");
                let delivery = session.deliver_response(request, "\"yes\"").expect("it reads");
                say("delivery", &format!("{delivery:?} {}", asker.line("answer")));
            }
            ["rounds", dsn, id] => rounds(&find(dsn, id)),
            ["so_many_rounds", dsn, id, count] => {
                let session = find(dsn, id);
                let owner = session.attach(OwnerKind::Stream, None).expect("attached");
                say("ready", "");
                let _ = std::io::stdin().read(&mut [0]);
                for _ in 0..count.parse::<u32>().expect("a number") {
                    let id = session.send_request(&owner, REQUEST, "", 60_000).expect("sent");
                    assert_eq!(session.take_outgoing(&owner, 9).expect("taken").len(), 1);
                    assert_eq!(session.deliver_response(id, "\"yes\"").expect("it answers"), Delivery::Delivered);
                    assert_eq!(session.claim(&owner, id).expect("claimed"), Claim::Answered("\"yes\"".into()));
                }
            }
            ["update", dsn, id, number] => update(&find(dsn, id), number),
            ["hold", dsn, id] => {
                let session = find(dsn, id);
                let owner = session.attach(OwnerKind::Reply, None).expect("attached");
                session.begin_request(&owner, &1.into(), DuplicatePolicy::Isolate).expect("begun");
                say("holding", "");
                let _ = std::io::stdin().read(&mut [0]);
            }
            ["leave", dsn, id] => {
                let engine = Engine::open(dsn).expect("the store opens");
                let new = NewSession { id: Some(id.into()), ..NewSession::default() };
                let session = engine.create_session(new).expect("created").expect("the id is free");
                let owner = session.attach(OwnerKind::Stream, None).expect("attached");
                session.send_request(&owner, REQUEST, "", 60_000).expect("sent");
                session.attributes().set("big", &format!("\"{}\"", "x".repeat(30_000))).expect("set");
                assert!(engine.consume_once("hour", 3_600_000).expect("used"));
                assert!(engine.consume_once("day", 86_400_000).expect("used"));
                engine.publish("topic", "1").expect("published");
            }
            ["open", dsn] => match Engine::open(dsn) {
                Ok(_) => say("open", ""),
                Err(error) => say("refused", &format!("{:?}", error.kind())),
            },
            ["create", dsn, id] => {
                let new = NewSession { id: Some((*id).into()), ..NewSession::default() };
                match Engine::open(dsn).and_then(|engine| engine.create_session(new)) {
                    Ok(_) => say("created", ""),
                    Err(error) => say("refused", &format!("{:?}: {error}", error.kind())),
                }
            }
            ["count", dsn] => {
                let engine = Engine::open(dsn).expect("the store opens");
                assert_eq!(engine.contradictions().expect("it reads"), Vec::<String>::new());
                say("sessions", &engine.stats().expect("stats").sessions.to_string());
            }
            ["writes", dsn] => {
                let engine = Engine::open(dsn).expect("the store opens");
                let place = engine.stats().expect("stats").place;
                let (_, how) = place.iter().find(|(what, _)| *what == "writes").expect("it says how it writes");
                say("writes", how);
            }
            ["look", dsn, id] => {
                match Engine::open(dsn).expect("the store opens").open_session(id, None).expect("it reads") {
                    None => say("found", "gone"),
                    Some(session) => {
                        let stats = session.stats().expect("stats");
                        say("found", &format!("owners={} pending={}", stats.owners, stats.pending));
                    }
                }
            }
            ["reset", dsn] => Engine::reset(dsn).expect("reset"),
            ["leak", dsn] => {
                let descriptors = || std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
                let before = descriptors();
                for _ in 0..5 {
                    assert!(Engine::open(dsn).is_err());
                }
                say("descriptors", &(descriptors() - before).to_string());
            }
            ["twice", one, two] => {
                let engines = [one, two].map(|dsn| Engine::open(dsn).expect("the store opens"));
                let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
                say("environments", &maps.lines().filter(|line| line.ends_with("data.mdb")).count().to_string());
                drop(engines);
            }
            ["fork", dsn, id] => fork(&find(dsn, id)),
            ["ids", dsn, id] => {
                let session = find(dsn, id);
                for _ in 0..100 {
                    say("id", &session.next_request_id().expect("an id").to_string());
                }
            }
            ["deliver", dsn, id, request] => {
                let session = find(dsn, id);
                say("ready", "");
                let _ = std::io::stdin().read(&mut [0]);
                let delivery =
                    session.deliver_response(request.parse().expect("an id"), "\"yes\"").expect("it answers");
                say("delivery", &format!("{delivery:?}"));
            }
            ["linger", dsn, id] => linger(&find(dsn, id)),
            ["turns", dsn, id] => turns(&find(dsn, id)),
            ["count_on", dsn, id, key] => count_on(&find(dsn, id), key),
            ["ask_on", dsn, id] => ask_on(&find(dsn, id)),
            _ => panic!("no such role: {role:?}"),
        }
    }

    fn find(dsn: &str, id: &str) -> Session {
        Engine::open(dsn)
            .expect("the store opens")
            .open_session(id, None)
            .expect("it reads")
            .expect("the session is there")
    }

    fn say(word: &str, rest: &str) {
        println!("{word} {rest}");
        std::io::stdout().flush().expect("somebody listens");
    }

    fn ask(session: &Session, timeout_ms: u64) {
        let owner = session.attach(OwnerKind::Stream, None).expect("attached");
        let id = session.send_request(&owner, REQUEST, "", timeout_ms).expect("sent");
        say("id", &id.to_string());
        let waited = session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(30));
        match waited.map(|waited| waited.outcome) {
            Ok(WaitedFor::Ready) => match session.claim(&owner, id).expect("claimed") {
                Claim::Answered(payload) => say("answer", &payload),
                other => say("wrong", &format!("{other:?}")),
            },
            Ok(WaitedFor::Destroyed) => say("destroyed", ""),
            other => say("wrong", &format!("{other:?}")),
        }
    }

    /// One round: ask, take, answer, claim, and an attribute. Anything but the right value is an error.
    pub fn round(session: &Session, owner: &OwnerToken) -> std::result::Result<(), String> {
        let words = |error: Error| error.to_string();
        let id = session.send_request(owner, REQUEST, "", 60_000).map_err(words)?;
        let taken = texts(session.take_outgoing(owner, 10).map_err(words)?);
        let answer = format!("\"answer to {id}\"");
        session.deliver_response(id, &answer).map_err(words)?;
        let claimed = session.claim(owner, id).map_err(words)?;
        session.attributes().set("last", &id.to_string()).map_err(words)?;
        match (taken.as_slice(), claimed) {
            ([message], Claim::Answered(payload)) if message.contains(&id.to_string()) && payload == answer => Ok(()),
            other => Err(format!("round {id}: {other:?}")),
        }
    }

    fn rounds(session: &Session) {
        say("started", "");
        loop {
            let owner = session.attach(OwnerKind::Stream, None).expect("attached");
            for _ in 0..5 {
                if let Err(error) = round(session, &owner) {
                    say("wrong", &error);
                    return;
                }
            }
            session.detach(&owner).expect("detached");
        }
    }

    fn update(session: &Session, number: &str) {
        for step in 0..100 {
            session.attributes().set(&format!("own.{number}"), &step.to_string()).expect("set");
            loop {
                let current = session.attributes().get("shared").expect("got");
                let next: u64 = current.as_deref().map_or(0, |json| json.parse().expect("a number")) + 1;
                let set = session.attributes().compare_and_set("shared", current.as_deref(), Some(&next.to_string()));
                if set.expect("compared") {
                    break;
                }
            }
        }
    }

    /// Attaches, waits for a word, and tries what a request that is still running would.
    fn linger(session: &Session) {
        let owner = session.attach(OwnerKind::Stream, None).expect("attached");
        say("attached", "");
        let _ = std::io::stdin().read(&mut [0]);
        let kinds = [
            session.attributes().set("late", "1").map_err(|error| error.kind()),
            session.enqueue_outgoing(&owner, "{}", "").map(|_| ()).map_err(|error| error.kind()),
            session.send_request(&owner, REQUEST, "", 60_000).map(|_| ()).map_err(|error| error.kind()),
            session.renew(&owner).map_err(|error| error.kind()),
        ];
        say("late", &format!("{kinds:?}"));
    }

    /// Answers each line with what it did; the other process does the other half of a round.
    fn turns(session: &Session) {
        let owner = session.attach(OwnerKind::Stream, None).expect("attached");
        say("owner", &owner.to_string());
        for line in std::io::stdin().lines().map_while(std::result::Result::ok) {
            let outcome = match line.split_once(' ').unwrap_or((&line, "")) {
                ("send", _) => session.send_request(&owner, REQUEST, "", 60_000).expect("sent").to_string(),
                ("take", _) => texts(session.take_outgoing(&owner, 9).expect("taken")).len().to_string(),
                ("claim", id) => format!("{:?}", session.claim(&owner, id.parse().expect("an id")).expect("claimed")),
                ("count", from) => {
                    let from: u64 = from.parse().expect("a number");
                    let next = (from + 1).to_string();
                    let expected = (from > 0).then(|| from.to_string());
                    let attributes = session.attributes();
                    attributes.compare_and_set("turns", expected.as_deref(), Some(&next)).expect("compared").to_string()
                }
                other => panic!("no such turn: {other:?}"),
            };
            say("did", &outcome);
        }
    }

    /// Counts, and says each number that the store has acknowledged. Whatever happens to the store, it holds that number, or
    /// the next one if the outcome of setting it is unknown; an error that means "not applied" is taken at its word.
    fn count_on(session: &Session, key: &str) {
        let mut acknowledged = 0_u64;
        let mut unknown = false;
        loop {
            let stored = match session.attributes().get(key) {
                Ok(stored) => stored.map_or(0, |json| json.parse().expect("a number")),
                Err(error) => match error.kind() {
                    ErrorKind::StoreUnavailable | ErrorKind::OutcomeUnknown | ErrorKind::StoreFull => continue,
                    _ => return say("wrong", &format!("reading after {acknowledged}: {error}")),
                },
            };
            if stored != acknowledged && !(unknown && stored == acknowledged + 1) {
                return say(
                    "wrong",
                    &format!("{acknowledged} was acknowledged, {stored} is stored, unknown: {unknown}"),
                );
            }
            acknowledged = stored;
            unknown = false;
            match session.attributes().set(key, &(acknowledged + 1).to_string()) {
                Ok(()) => {
                    acknowledged += 1;
                    say("acknowledged", &acknowledged.to_string());
                }
                Err(error) => match error.kind() {
                    ErrorKind::StoreUnavailable | ErrorKind::StoreFull => say("error", &error.to_string()),
                    ErrorKind::OutcomeUnknown => {
                        unknown = true;
                        say("error", &error.to_string());
                    }
                    _ => return say("wrong", &format!("after {acknowledged}: {error}")),
                },
            }
        }
    }

    /// Asks, and waits for the answer however often the store is not there.
    fn ask_on(session: &Session) {
        let owner = session.attach(OwnerKind::Stream, None).expect("attached");
        let id = session.send_request(&owner, REQUEST, "", 60_000).expect("sent");
        say("id", &id.to_string());
        let mut told = false;
        loop {
            let answer = session.wait(&owner, Interest::RESOLUTION, 0, Duration::from_secs(60));
            match answer.and_then(|waited| session.claim(&owner, id).map(|claim| (waited.outcome, claim))) {
                Ok((_, Claim::Answered(payload))) => return say("answer", &payload),
                Ok(other) => return say("wrong", &format!("{other:?}")),
                Err(error) if error.kind() == ErrorKind::StoreUnavailable => {
                    if !std::mem::replace(&mut told, true) {
                        say("unavailable", "");
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return say("wrong", &error.to_string()),
            }
        }
    }

    fn fork(session: &Session) {
        session.attributes().set("forked", "\"before\"").expect("set");
        // SAFETY: this process has one thread, so the child may run any code.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let seen = session.attributes().get("forked").expect("got");
            assert!(seen.is_some());
            session.attributes().set("child", "1").expect("set");
            let owner = session.attach(OwnerKind::Reply, None).expect("attached");
            round(session, &owner).expect("a round in the child");
            session.detach(&owner).expect("detached");
            std::process::exit(0);
        }
        let mut status = 0;
        // SAFETY: the child is this process's own; `status` is writable.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child fails");
        session.attributes().set("forked", "\"parent\"").expect("set");
        let owner = session.attach(OwnerKind::Reply, None).expect("attached");
        round(session, &owner).expect("a round in the parent");
        session.detach(&owner).expect("detached");
    }
}
