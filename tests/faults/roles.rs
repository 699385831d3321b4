//! What the processes do that faults are injected into.

use std::fmt::Debug;
use std::io::{BufRead, Write};

use mcp_state::{Claim, Delivery, Engine, Error, ErrorKind, NewSession, OwnerKind, OwnerToken, Session};

pub const REQUEST: &str = r#"{"jsonrpc":"2.0","method":"elicitation/create"}"#;

/// The sessions of a store that [`leave`] has left.
pub const LEFT: [&str; 2] = ["s", "t"];

pub fn play(role: &[String]) {
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["leave", dsn] => leave(dsn),
        ["probe", dsn] => probe(dsn),
        ["scenario", dsn] => scenario(dsn),
        ["check", dsn] => check(dsn),
        ["history", dsn, seed, steps] => {
            history(dsn, seed.parse().expect("a number"), steps.parse().expect("a number"));
        }
        ["serve", dsn] => serve(dsn),
        ["write", dsn, most] => write_on(dsn, most.parse().expect("a number")),
        ["read", dsn] => {
            let session = Engine::open(dsn).expect("the store opens").open_session("s", None).expect("it reads");
            say("read", session.expect("it is there").attributes().all().expect("it reads").len());
        }
        ["snoop", store] => snoop(std::path::Path::new(store)),
        ["set-clock", dsn] => set_clock(dsn),
        ["in_cgroup", group, held, dsn] => in_cgroup(group, held.parse().expect("a number"), dsn),
        ["limited", what, bytes, dsn] => limited(what, bytes.parse().expect("a number"), dsn),
        ["without_keys", dsn] => without_keys(dsn),
        ["reset", dsn] => Engine::reset(dsn).expect("reset"),
        _ => panic!("no such role: {role:?}"),
    }
}

fn say(word: &str, rest: impl std::fmt::Display) {
    println!("{word} {rest}");
    std::io::stdout().flush().expect("somebody listens");
}

/// A typed error is one that says what to do; the rest are bugs.
fn typed(error: &Error) -> ErrorKind {
    let kind = error.kind();
    if matches!(kind, ErrorKind::Internal | ErrorKind::InvalidArgument) {
        say("wrong", format!("error of kind {kind:?}: {error}"));
    }
    kind
}

/// What belongs to a session: long enough to stand in pages of its own, and nobody else's.
fn own(id: &str) -> String {
    format!("\"{}\"", id.repeat(30_000))
}

/// Leaves two sessions with an owner, a pending request, a message and attributes each, a topic and a single-use key.
fn leave(dsn: &str) {
    let engine = Engine::open(dsn).expect("the store opens");
    for id in LEFT {
        let new = NewSession { id: Some(id.into()), ..NewSession::default() };
        let session = engine.create_session(new).expect("created").expect("the id is free");
        let owner = session.attach(OwnerKind::Stream, None).expect("attached");
        session.send_request(&owner, REQUEST, "", 60_000).expect("sent");
        session.attributes().set("own", &own(id)).expect("set");
        for number in 0..60 {
            session.attributes().set(&format!("small.{number}"), &format!("\"{id}{number}\"")).expect("set");
        }
    }
    assert!(engine.consume_once("left", 3_600_000).expect("used"));
    engine.publish("left", "1").expect("published");
}

/// Looks at everything that [`leave`] left, and says of each part whether it is `kept`, `gone`, `damaged`, an `error`, or
/// `wrong`; then whether the store can be used.
fn probe(dsn: &str) {
    let engine = match Engine::open(dsn) {
        Ok(engine) => engine,
        Err(error) => return say("refused", format!("{:?} {error}", typed(&error))),
    };
    for id in LEFT {
        match look(&engine, id) {
            Ok(word) => say(word, id),
            Err(error) => say("error", format!("{:?} {error}", typed(&error))),
        }
    }
    match engine.contradictions() {
        Ok(list) if list.is_empty() => {}
        Ok(list) => say("damaged", format!("{list:?}")),
        Err(error) => say("error", format!("{:?} {error}", typed(&error))),
    }
    if let Err(error) = use_it(&engine) {
        say("error", format!("{:?} {error}", typed(&error)));
    }
    say("done", "");
}

fn look(engine: &Engine, id: &str) -> Result<&'static str, Error> {
    let Some(session) = engine.open_session(id, None)? else { return Ok("gone") };
    let text = session.attributes().get("own")?;
    let other = LEFT[usize::from(id == LEFT[0])];
    let strange = |text: &str| text.contains(&other.repeat(50)) || text.contains(&format!("\"{other}1"));
    let all = session.attributes().all()?;
    if session.id() != id || strange(&all) || text.as_deref().is_some_and(strange) {
        say("wrong", format!("{id} shows what is {other}'s"));
    }
    let pending = session.pending(None)?;
    session.stats()?;
    let small = session.attributes().get("small.7")? == Some(format!("\"{id}7\""));
    Ok(if text == Some(own(id)) && small && pending.len() <= 1 { "kept" } else { "damaged" })
}

fn use_it(engine: &Engine) -> Result<(), Error> {
    engine.collect(100)?;
    let session = engine.create_session(NewSession::default())?.expect("a random id is free");
    let owner = session.attach(OwnerKind::Stream, None)?;
    round(&session, &owner)?;
    session.detach(&owner)?;
    session.destroy()?;
    engine.stats()?;
    Ok(())
}

/// One round: ask, take, answer, claim. Anything but the right value is said to be wrong.
fn round(session: &Session, owner: &OwnerToken) -> Result<(), Error> {
    let id = session.send_request(owner, REQUEST, "", 60_000)?;
    let taken = session.take_outgoing(owner, 10)?;
    let delivery = session.deliver_response(id, "\"yes\"")?;
    let claim = session.claim(owner, id)?;
    if taken.len() != 1 || delivery != Delivery::Delivered || claim != Claim::Answered("\"yes\"".into()) {
        say("wrong", format!("round: {taken:?} {delivery:?} {claim:?}"));
    }
    Ok(())
}

/// Values of all sizes come and go in sessions that come and go.
fn history(dsn: &str, seed: u64, steps: u64) {
    let engine = Engine::open(dsn).expect("the store opens");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..steps {
        let id = format!("h{}", random.u64(..20));
        let new = NewSession { id: Some(id.clone()), ..NewSession::default() };
        let session = match engine.create_session(new).expect("created") {
            Some(session) => session,
            None => engine.open_session(&id, None).expect("it reads").expect("it is there"),
        };
        let size = 1 << random.u64(..18);
        match random.u64(..10) {
            0 => drop(session.destroy().expect("destroyed")),
            1 | 2 => drop(session.attributes().remove(&format!("k{}", random.u64(..9))).expect("removed")),
            _ => {
                let text = format!("\"{}\"", "v".repeat(size));
                session.attributes().set(&format!("k{}", random.u64(..9)), &text).expect("set");
            }
        }
    }
    assert_eq!(engine.contradictions().expect("it reads"), Vec::<String>::new());
}

// --- A scenario whose every step says what came of it ---

/// Runs one step: a refused one is tried again once, and must then come to what it would have come to at first, since what was
/// refused was not done (G8).
fn step<T: PartialEq + Debug>(name: &str, expected: &T, mut run: impl FnMut() -> Result<T, Error>) -> Option<T> {
    say("try", name);
    for _ in 0..2 {
        match run() {
            Ok(value) if value == *expected => {
                say("did", name);
                return Some(value);
            }
            Ok(value) => {
                say("wrong", format!("{name} came to {value:?} instead of {expected:?}"));
                return None;
            }
            Err(error) => say("refused", format!("{:?} {name}: {error}", typed(&error))),
        }
    }
    None
}

/// Uses everything a store writes for. Steps whose marks last are asked for by [`check`].
fn scenario(dsn: &str) {
    let mut opened = None;
    step("open", &(), || {
        opened = Some(Engine::open(dsn)?);
        Ok(())
    });
    let Some(engine) = opened else { return say("done", "") };
    let named = |id: &str| NewSession { id: Some(id.into()), ..NewSession::default() };
    step("create", &true, || Ok(engine.create_session(named("a"))?.is_some()));
    step("create-b", &true, || Ok(engine.create_session(named("b"))?.is_some()));
    let (Ok(Some(a)), b) = (engine.open_session("a", None), engine.open_session("b", None).ok().flatten()) else {
        return say("done", "");
    };
    step("small", &(), || a.attributes().set("small", "1"));
    step("large", &(), || a.attributes().set("large", &own("a")));
    let mut owner = None;
    step("attach", &(), || {
        owner = Some(a.attach(OwnerKind::Stream, None)?);
        Ok(())
    });
    if let Some(owner) = owner {
        let mut id = None;
        step("send", &(), || {
            id = Some(a.send_request(&owner, REQUEST, "", 60_000)?);
            Ok(())
        });
        if let Some(id) = id {
            step("take", &1, || Ok(a.take_outgoing(&owner, 10)?.len()));
            if step("deliver", &Delivery::Delivered, || a.deliver_response(id, "\"yes\"")).is_some() {
                step("claim", &Claim::Answered("\"yes\"".into()), || a.claim(&owner, id));
            }
        }
        step("enqueue", &1, || {
            let number = a.enqueue_outgoing(&owner, &own("m"), "")?;
            Ok(a.peek_outgoing(&owner, 10)
                .map_or(1, |queued| u64::from(queued.last().is_some_and(|last| last.sequence == number))))
        });
        step("detach", &true, || Ok(a.detach(&owner)?.is_some()));
    }
    step("publish", &1, || engine.publish("topic", "\"message\""));
    step("once", &true, || engine.consume_once("key", 3_600_000));
    if let Some(b) = b {
        step("destroy-b", &true, || b.destroy());
    }
    step("collect", &(), || engine.collect(100).map(drop));
    step("audit", &Vec::new(), || engine.contradictions());
    say("done", "");
}

/// Says what of [`scenario`]'s steps has lasted.
fn check(dsn: &str) {
    let engine = match Engine::open(dsn) {
        Ok(engine) => engine,
        Err(error) => return say("wrong", format!("the store does not open afterwards: {error}")),
    };
    match engine.contradictions() {
        Ok(list) if list.is_empty() => {}
        other => say("wrong", format!("contradictions: {other:?}")),
    }
    let lasts = |name: &str, there: bool| {
        if there {
            say("lasts", name);
        }
    };
    let a = engine.open_session("a", None).expect("it reads");
    lasts("create", a.is_some());
    if let Some(a) = &a {
        let of = |key| a.attributes().get(key).expect("it reads");
        lasts("small", of("small").as_deref() == Some("1"));
        lasts("large", of("large") == Some(own("a")));
        if of("large").is_some_and(|text| text != own("a")) {
            say("wrong", "the large attribute is half written");
        }
    }
    let b = engine.open_session("b", None).expect("it reads").is_some();
    lasts("create-b", b);
    lasts("destroy-b", !b);
    lasts("publish", engine.cursor("topic").expect("it reads") == 1);
    lasts("once", !engine.consume_once("key", 1).expect("used"));
    use_it(&engine).expect("the store can be used");
    say("done", "");
}

// --- Servers ---

/// Makes the session of [`request`], has the clock set right, and collects.
fn set_clock(dsn: &str) {
    let engine = Engine::open(dsn).expect("the store opens");
    request(&engine).expect("a session is made");
    // SAFETY: this process has one thread.
    unsafe { std::env::remove_var("MCP_STATE_PRETEND_WALL_OFFSET_MS") };
    engine.collect(10).expect("collected");
}

/// Answers each line with what one request comes to: `refresh`, then a round on the session that all servers share, or sessions
/// that take most of a small store.
fn serve(dsn: &str) {
    let engine = match Engine::open(dsn) {
        Ok(engine) => engine,
        Err(error) => return say("refused", format!("{:?} {error}", typed(&error))),
    };
    say("ready", "");
    for line in std::io::stdin().lock().lines() {
        let done = match line.expect("a line").as_str() {
            "request" => request(&engine),
            "grow" => grow(&engine),
            _ => return,
        };
        match done {
            Ok(word) => say("ok", word),
            Err(error) => say("refused", format!("{:?} {error}", typed(&error))),
        }
    }
}

fn request(engine: &Engine) -> Result<&'static str, Error> {
    engine.refresh()?;
    let (session, word) = match engine.open_session("s", None)? {
        Some(session) => (session, "found"),
        None => {
            let new = NewSession { id: Some("s".into()), ..NewSession::default() };
            match engine.create_session(new)? {
                Some(session) => (session, "made"),
                None => (engine.open_session("s", None)?.expect("it was there a moment ago"), "found"),
            }
        }
    };
    let owner = session.attach(OwnerKind::Stream, None)?;
    round(&session, &owner)?;
    session.detach(&owner)?;
    Ok(word)
}

fn grow(engine: &Engine) -> Result<&'static str, Error> {
    engine.refresh()?;
    let mut sessions = Vec::new();
    for _ in 0..10 {
        let session = engine.create_session(NewSession::default())?.expect("a random id is free");
        session.attributes().set("large", &format!("\"{}\"", "g".repeat(200_000)))?;
        sessions.push(session);
    }
    for session in sessions {
        session.destroy()?;
    }
    Ok("grew")
}

/// Overwrites one attribute until it is refused, at most so many times, and says how often and by what.
fn write_on(dsn: &str, most: u64) {
    let engine = Engine::open(dsn).expect("the store opens");
    let new = NewSession { id: Some("w".into()), ..NewSession::default() };
    let session = match engine.create_session(new).expect("created") {
        Some(session) => session,
        None => engine.open_session("w", None).expect("it reads").expect("it is there"),
    };
    say("ready", "");
    for number in 0..most {
        if let Err(error) = session.attributes().set("last", &format!("\"{number:030000}\"")) {
            say("refused", format!("{:?} after {number}: {error}", typed(&error)));
            say("destroyed", session.destroy().map_or_else(|error| error.to_string(), |there| there.to_string()));
            return;
        }
    }
    say("wrote", most);
}

/// Tries whatever a file system offers on a store of somebody else; says of each attempt whether it was `refused`.
fn snoop(store: &std::path::Path) {
    use std::fs::{self, OpenOptions};
    let say_of = |what: &str, path: &std::path::Path, done: bool| {
        say(if done { "succeeded" } else { "refused" }, format!("{what} {}", path.display()));
    };
    let mine = std::env::temp_dir().join(format!("snoop-{}", std::process::id()));
    fs::write(&mine, "mine").expect("a file of one's own");
    let files = crate::files::FILES.map(|name| store.join(name));
    for path in files.iter().map(std::path::PathBuf::as_path).chain([store, &store.join("1"), &store.join("new")]) {
        say_of("stat", path, path != store && fs::symlink_metadata(path).is_ok());
        say_of("read", path, fs::read(path).is_ok());
        say_of("list", path, fs::read_dir(path).is_ok());
        say_of("write", path, OpenOptions::new().write(true).create(true).truncate(false).open(path).is_ok());
        say_of("remove", path, fs::remove_file(path).is_ok() || fs::remove_dir(path).is_ok());
        say_of("rename", path, fs::rename(path, store.with_extension("moved")).is_ok());
        say_of("replace", path, fs::rename(&mine, path).is_ok());
        say_of("link", path, fs::hard_link(path, mine.with_extension("link")).is_ok());
        let opened = fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777));
        say_of("chmod", path, opened.is_ok());
    }
    let _ = fs::remove_file(&mine);
}

/// Fills a store with sessions of ten messages until it is refused, then ends them all.
fn fill_and_free(dsn: &str, hold: impl FnOnce()) {
    let engine = match Engine::open(dsn) {
        Ok(engine) => engine,
        Err(error) => return say("refused", format!("{:?} {error}", typed(&error))),
    };
    let limit = engine.stats().expect("it reads").limit_bytes;
    say("limit", limit);
    hold();
    // Ten of them fit into the session of a small store.
    let length = if limit > 4 << 20 { 3_000 } else { 600 };
    let body = format!("\"{}\"", "x".repeat(length));
    let mut sessions = Vec::new();
    let full = loop {
        let made = engine.create_session(NewSession::default()).and_then(|session| {
            let session = session.expect("a random id is free");
            let owner = session.attach(OwnerKind::Stream, None)?;
            sessions.push((session, owner));
            let (session, owner) = sessions.last().expect("pushed");
            (0..10).try_for_each(|_| session.enqueue_outgoing(owner, &body, "").map(drop))
        });
        if let Err(error) = made {
            break error;
        }
        if (sessions.len() * length * 10) as u64 > 2 * limit {
            return say("wrong", "the store takes twice its limit");
        }
    };
    say("full", format!("{:?} {full}", typed(&full)));
    let count = sessions.len();
    for (session, owner) in sessions {
        let freed = session.take_outgoing(&owner, 5).and_then(|_| session.destroy());
        if let Err(error) = freed {
            return say("wrong", format!("what frees is refused: {error}"));
        }
    }
    say("freed", count);
    match use_it(&engine) {
        Ok(()) => say("done", ""),
        Err(error) => say("none", format!("{:?} {error}", typed(&error))),
    }
}

/// In a memory cgroup, with `held` bytes that are taken once the store is open.
fn in_cgroup(group: &str, held: usize, dsn: &str) {
    std::fs::write(std::path::Path::new(group).join("cgroup.procs"), "0").expect("the cgroup takes this process");
    let mut memory = Vec::new();
    fill_and_free(dsn, || memory = vec![1_u8; held]);
    drop(memory);
}

/// Under a resource limit.
fn limited(what: &str, bytes: u64, dsn: &str) {
    let resource = if what == "file" { libc::RLIMIT_FSIZE } else { libc::RLIMIT_AS };
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the limit is valid for the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const limit) }, 0);
    fill_and_free(dsn, || ());
}

/// In a process whose thread-specific keys are all taken.
fn without_keys(dsn: &str) {
    let mut key = 0;
    // SAFETY: the key is writable, and no destructor is named.
    while unsafe { libc::pthread_key_create(&raw mut key, None) } == 0 {}
    serve(dsn);
}
