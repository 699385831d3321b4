//! What happens to a store while servers run on it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mcp_state::{Engine, NewSession, Session};

use crate::KINDS;
use crate::common::process::{Mount, Result, Worker, cannot_mount, is_root, wait_until_nobody_holds};
use crate::common::{dsn_in, shared_memory};
use crate::files::{FILES, Left, probe};
use crate::tally::{self, Outcome};

/// What a request to a server came to: `ok`, or the kind of the error.
pub fn request(server: &mut Worker) -> String {
    server.tell("request");
    server.line("")
}

pub fn count(outcome: Outcome, fault: &str, told: &dyn std::fmt::Debug) {
    assert!(!tally::is_bad(tally::count(outcome, &fault, told)), "{fault}: {told:?}");
}

/// A place for a store, the store's path, and its DSN.
pub fn new_store(options: &str) -> Result<(tempfile::TempDir, PathBuf, String)> {
    let directory = tempfile::tempdir_in(shared_memory())?;
    let path = directory.path().canonicalize()?.join("store");
    let dsn = format!("file://{}?{options}", path.display());
    Ok((directory, path, dsn))
}

/// Two servers on one store, each of which has had a request.
fn two_servers(dsn: &str) -> Vec<Worker> {
    let mut servers = vec![Worker::start(&["serve", dsn]), Worker::start(&["serve", dsn])];
    for server in &mut servers {
        server.line("ready");
        request(server);
    }
    servers
}

/// Each file and directory is removed under two servers, one of which has seen it; a third one starts. All end up on one store
/// that works, or are refused until they have ended; nobody shares a session with a store that has another lock.
pub fn removed() -> Result {
    for options in KINDS {
        for name in FILES.into_iter().chain(["1", ""]) {
            let (_directory, path, dsn) = new_store(options)?;
            let mut servers = two_servers(&dsn);
            let gone = path.join(name);
            if gone.is_dir() {
                fs::remove_dir_all(&gone)?;
            } else {
                fs::remove_file(&gone)?;
            }
            let mut told = vec![request(&mut servers[0])];
            let mut late = Worker::start(&["serve", &dsn]);
            match late.line("") {
                line if line.starts_with("ready") => servers.push(late),
                line => told.push(line),
            }
            for _ in 0..2 {
                told.extend(servers.iter_mut().map(request));
            }
            let fault = format!("{name:?} is removed under two servers, {options}");
            let refused = told.iter().any(|line| line.starts_with("refused"));
            let fresh = told.iter().filter(|line| line.contains("made")).count();
            let outcome = match (refused, fresh) {
                (_, 2..) => Outcome::Wrong, // two stores
                (true, _) => Outcome::Refused,
                (false, 1) => Outcome::Fresh,
                (false, _) => Outcome::Unharmed,
            };
            count(outcome, &fault, &told);
            assert!(name.is_empty() || options != "durability=sync" || fresh == 0, "{fault}: {told:?}");
            if refused {
                // Ended and started again, it works.
                for server in &mut servers {
                    server.kill();
                }
                if path.join("guard").exists() {
                    wait_until_nobody_holds(&path.join("guard"))?;
                }
                let mut again = Worker::start(&["serve", &dsn]);
                if options == "durability=sync" && ["stamp", "1/data.mdb", "1"].contains(&name) {
                    // Nobody can say any more what the rows are of, or there are none: that is not passed over.
                    assert!(again.line("").starts_with("refused StoreCorrupt"), "{fault}");
                    Engine::reset(&dsn)?;
                    again = Worker::start(&["serve", &dsn]);
                }
                assert_eq!(again.line("").trim_end(), "ready", "{fault}");
                let answer = request(&mut again);
                assert!(answer.starts_with("ok"), "{fault}: {answer}");
            }
        }
    }
    Ok(())
}

/// Another lock file, bell or data file is put in the place of the store's under two servers; a third one starts. No two of them
/// go on with one data file and two locks, or with two data files and one lock.
pub fn replaced() -> Result {
    for options in KINDS {
        for name in ["1/lock.mdb", "1/bell", "1/data.mdb"] {
            let (_directory, path, dsn) = new_store(options)?;
            let mut servers = two_servers(&dsn);
            let copy = path.join("copy");
            fs::copy(path.join(name), &copy)?;
            fs::rename(&copy, path.join(name))?;
            let mut told = vec![request(&mut servers[0])];
            let is_durable = options == "durability=sync";
            let moved = path.join("2/data.mdb").exists();
            let mut late = Worker::start(&["serve", &dsn]);
            match late.line("") {
                line if line.starts_with("ready") => servers.push(late),
                line => told.push(line),
            }
            told.extend(servers.iter_mut().map(request));
            let fault = format!("{name:?} is replaced under two servers, {options}");
            let refused = told.iter().any(|line| line.starts_with("refused"));
            let made = told.iter().filter(|line| line.contains("made")).count();
            let outcome = match (is_durable, refused, moved, made) {
                (true, true, false, 0) => Outcome::Refused,
                (false, false, true, 1) => Outcome::Fresh,
                _ => Outcome::Wrong,
            };
            count(outcome, &fault, &told);
        }
    }
    Ok(())
}

/// A running server goes on with what it has open; whoever comes later is refused, and let in when the permission is back.
pub fn permissions() -> Result {
    const USER: u32 = 4242;
    if !is_root() {
        return Err("this test becomes another user, which needs root".into());
    }
    let directory = tempfile::tempdir_in(shared_memory())?;
    std::os::unix::fs::chown(directory.path(), Some(USER), Some(USER))?;
    let path = directory.path().canonicalize()?.join("store");
    let dsn = format!("file://{}?durability=none", path.display());
    let mut server = Worker::as_user(&["serve", &dsn], USER, USER);
    server.line("ready");
    request(&mut server);
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let chown = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), Some(user));
    type Change<'a> = (&'a str, Box<dyn Fn(bool) -> std::io::Result<()> + 'a>);
    let changes: [Change; 6] = [
        ("the directory is closed", Box::new(|lost| chmod(&path, if lost { 0o000 } else { 0o700 }))),
        ("the directory cannot be written", Box::new(|lost| chmod(&path, if lost { 0o500 } else { 0o700 }))),
        ("everybody may write to the directory", Box::new(|lost| chmod(&path, if lost { 0o777 } else { 0o700 }))),
        ("the directory is root's", Box::new(|lost| chown(&path, if lost { 0 } else { USER }))),
        (
            "the data file cannot be read",
            Box::new(|lost| chmod(&path.join("1/data.mdb"), if lost { 0o000 } else { 0o600 })),
        ),
        ("the guard is root's", Box::new(|lost| chown(&path.join("guard"), if lost { 0 } else { USER }))),
    ];
    for (fault, change) in changes {
        change(true)?;
        let mut late = Worker::as_user(&["serve", &dsn], USER, USER);
        let told = [request(&mut server), late.line("")];
        change(false)?;
        let outcome =
            if told[1].starts_with("refused StoreUnavailable") { Outcome::Refused } else { Outcome::Unharmed };
        count(outcome, fault, &told);
        let mut again = Worker::as_user(&["serve", &dsn], USER, USER);
        assert_eq!(again.line(""), "ready", "{fault}");
        for server in [&mut server, &mut again] {
            let answer = request(server);
            assert!(answer.starts_with("ok found"), "{fault}: {answer}");
        }
    }
    Ok(())
}

pub fn read_only() -> Result {
    let Some(mount) = Mount::tmpfs("16M") else { return cannot_mount() };
    let dsn = format!("file://{}/store?durability=none", mount.path().display());
    let mut server = Worker::start(&["serve", &dsn]);
    server.line("ready");
    let remount = |options: &str| Command::new("mount").args(["-o", options]).arg(mount.path()).output();
    assert!(!remount("remount,ro")?.status.success(), "the kernel refuses while somebody may write");
    let answer = request(&mut server);
    assert!(answer.starts_with("ok"), "{answer}");
    server.kill();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !remount("remount,ro")?.status.success() {
        assert!(Instant::now() < deadline, "it is never free");
    }
    let (outcome, told) = probe(&dsn, "the file system is read-only");
    assert_eq!(outcome, Outcome::Refused, "{told:?}");
    assert!(remount("remount,rw")?.status.success());
    let mut server = Worker::start(&["serve", &dsn]);
    assert_eq!(server.line(""), "ready");
    assert!(request(&mut server).starts_with("ok found"));
    Ok(())
}

/// Sends a signal to a worker, and sees to it that a stopped one is stopped.
pub fn signal(worker: &Worker, signal: i32) {
    // SAFETY: a signal to a process that this one has started.
    assert_eq!(unsafe { libc::kill(worker.child.id() as i32, signal) }, 0);
}

pub fn wait_until_stopped(worker: &Worker) {
    let stat = format!("/proc/{}/stat", worker.child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let text = fs::read_to_string(&stat).expect("the worker is there");
        if text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')) {
            return;
        }
        assert!(Instant::now() < deadline, "it never stops");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn session(engine: &Engine) -> Session {
    let new = NewSession { id: Some("s".into()), ..NewSession::default() };
    let session = engine.create_session(new).expect("created").expect("the id is free");
    session.attributes().set("kept", "1").expect("set");
    session
}

/// A stopped reader keeps the pages of its snapshot: others fill the file system, are told whose fault it is, and can free
/// their sessions; when it goes on, or is killed, the pages come back.
pub fn stopped_reader() -> Result {
    for end in [libc::SIGCONT, libc::SIGKILL] {
        let Some(mount) = Mount::tmpfs("16M") else { return cannot_mount() };
        let dsn = format!("file://{}/store?durability=none", mount.path().display());
        let engine = Engine::open(&dsn)?;
        let session = session(&engine);
        let mut reader = Worker::start_with(&["read", &dsn], &[("MCP_STATE_FAULT", "in-read:2:stop")]);
        wait_until_stopped(&reader);
        let pid = reader.child.id();
        let mut writer = Worker::start(&["write", &dsn, "5000"]);
        writer.line("ready");
        let refused = writer.line("refused");
        assert!(refused.starts_with("StoreFull"), "{refused}");
        assert!(refused.contains(&format!("process {pid} ")), "{refused} names process {pid}");
        let destroyed = writer.line("destroyed");
        assert_eq!(session.attributes().get("kept")?.as_deref(), Some("1"), "reading goes on");
        signal(&reader, end);
        if end == libc::SIGCONT {
            reader.line("read");
        }
        reader.end();
        engine.collect(10)?;
        let mut writer = Worker::start(&["write", &dsn, "800"]);
        writer.line("ready");
        writer.line("wrote");
        assert_eq!(engine.contradictions()?, Vec::<String>::new());
        count(Outcome::Refused, &format!("a reader is stopped, then gets signal {end}"), &(refused, destroyed));
    }
    Ok(())
}

/// A process that is stopped between lock and commit keeps writers waiting, not readers; who has waited for long is told which
/// process it is; when it goes on, or is killed, so do they.
pub fn stopped_writer() -> Result {
    for end in [libc::SIGCONT, libc::SIGKILL] {
        let directory = tempfile::tempdir_in(shared_memory())?;
        let dsn = dsn_in(&directory, "");
        let engine = Engine::open(&dsn)?;
        let session = session(&engine);
        let mut stopped = Worker::start_with(&["write", &dsn, "5"], &[("MCP_STATE_FAULT", "before-commit:2:stop")]);
        wait_until_stopped(&stopped);
        let mut writer = Worker::start(&["serve", &dsn]);
        assert_eq!(writer.line(""), "ready");
        writer.tell("request");
        // It waits for its turn.
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(300) {
            assert_eq!(session.attributes().get("kept")?.as_deref(), Some("1"), "readers are not blocked");
            std::thread::sleep(Duration::from_millis(10));
        }
        if end == libc::SIGCONT {
            let (told, pid) = (writer.line(""), stopped.child.id());
            assert!(told.contains("StoreUnavailable") && told.contains(&format!("thread {pid} ")), "{told}");
            writer.tell("request");
        }
        signal(&stopped, end);
        let answer = writer.line("ok");
        stopped.kill();
        assert_eq!(engine.contradictions()?, Vec::<String>::new());
        count(Outcome::Unharmed, &format!("a writer is stopped, then gets signal {end}"), &answer);
    }
    Ok(())
}

/// A stamp of a newer library beside running processes: they go on, whoever comes later is told to upgrade. A session record of
/// a newer layout is refused by itself.
pub fn two_versions() -> Result {
    let directory = tempfile::tempdir_in(shared_memory())?;
    let path = directory.path().canonicalize()?.join("store");
    let dsn = format!("file://{}?durability=none", path.display());
    let mut server = Worker::start(&["serve", &dsn]);
    server.line("ready");
    request(&mut server);
    let stamp: serde_json::Value = serde_json::from_slice(&fs::read(path.join("stamp"))?)?;
    let with = |field: &str, value: serde_json::Value| {
        let mut changed = stamp.clone();
        changed[field] = value;
        fs::write(path.join("stamp"), changed.to_string())
    };
    for field in ["stamp", "format"] {
        let newer = stamp[field].as_u64().ok_or("the stamp has no such number")? + 1;
        with(field, newer.into())?;
        let mut late = Worker::start(&["serve", &dsn]);
        let told = [late.line(""), request(&mut server)];
        assert!(told[0].starts_with("refused StoreIncompatible") && told[0].contains("upgrade"), "{told:?}");
        assert!(told[1].starts_with("ok found"), "{told:?}");
        count(Outcome::Refused, &format!("a library writes {field} {newer}"), &told);
    }
    // A library of the same format that has other fields besides is understood.
    with("colour", "blue".into())?;
    let mut late = Worker::start(&["serve", &dsn]);
    let told = [late.line(""), request(&mut late), request(&mut server)];
    assert!(told[1].starts_with("ok found") && told[2].starts_with("ok found"), "{told:?}");
    count(Outcome::Unharmed, "a library writes a field more", &told);
    Ok(())
}

/// Two pid namespaces: the second is refused while the first lives, and takes over when it has ended; again and again.
pub fn containers() -> Result {
    if !is_root() {
        return Err("this test makes a pid namespace, which needs root".into());
    }
    let left = Left::new("durability=none");
    let dsn = left.dsn(&left.path());
    for _ in 0..3 {
        let mut container = Worker::in_namespace(&["serve", &dsn]);
        assert_eq!(container.line(""), "ready");
        let first = request(&mut container);
        assert!(first.starts_with("ok found"), "{first}");
        for mut second in [Worker::in_namespace(&["serve", &dsn]), Worker::start(&["serve", &dsn])] {
            let told = second.line("");
            assert!(told.starts_with("refused StoreIncompatible") && told.contains("another container"), "{told}");
            count(Outcome::Refused, "a second container comes while the first lives", &told);
        }
        container.kill();
        wait_until_nobody_holds(&left.path().join("guard"))?;
        count(Outcome::Unharmed, "the container is recreated", &first);
    }
    let kept = Engine::open(&dsn)?.open_session("s", None)?.ok_or("the session was kept")?;
    assert_eq!(kept.stats()?.owners, 0, "the owners of ended containers are released");
    Ok(())
}
