//! What bounds memory, disk and the rest of what a store takes of a machine: past it there is a typed error that names the bound,
//! what frees works, and no process is ended by a signal.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use mcp_state::{Engine, ErrorKind, NewSession, OwnerKind};

use crate::common::process::{MemoryCgroup, Mount, Result, Worker};

use crate::live::{count, new_store, request, session, signal, wait_until_stopped};
use crate::tally::Outcome;

/// The lines of a worker that fills a store and empties it; it must have ended by itself.
fn told(mut worker: Worker) -> Vec<String> {
    let told = worker.rest();
    assert_eq!(worker.end(), "exit status: 0", "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("wrong")), "{told:?}");
    told
}

fn line<'l>(told: &'l [String], word: &str) -> &'l str {
    told.iter()
        .find_map(|line| line.strip_prefix(word))
        .unwrap_or_else(|| panic!("no {word:?} in {told:?}"))
        .trim_start()
}

fn filled_and_freed(told: &[String]) {
    assert!(line(told, "full").starts_with("StoreFull"), "{told:?}");
    assert!(line(told, "freed").parse::<u64>().is_ok_and(|sessions| sessions > 0), "{told:?}");
    assert_eq!(line(told, "done"), "", "{told:?}");
}

/// A reader is stopped in the middle; others add and take, and overwrite, without an end. The file stays within four times the
/// limit, the reader is named, every session can be destroyed; when the reader has gone on, or has gone, the space comes back.
pub fn stopped_reader() -> Result {
    const LIMIT: u64 = 4 << 20;
    for end in [libc::SIGCONT, libc::SIGKILL] {
        let (_directory, path, dsn) = new_store("durability=none&max_store_bytes=4M")?;
        let engine = Engine::open(&dsn)?;
        let busy = session(&engine);
        let stream = busy.attach(OwnerKind::Stream, None)?;
        let body = format!("\"{}\"", "x".repeat(20_000));
        let mut sessions = Vec::new();
        for _ in 0..100 {
            let session = engine.create_session(NewSession::default())?.ok_or("a random id is free")?;
            session.attributes().set("large", &body)?;
            sessions.push(session);
        }
        // Each of their messages is taken by a change of its own.
        let mut drained = Vec::new();
        for _ in 0..4 {
            let session = engine.create_session(NewSession::default())?.ok_or("a random id is free")?;
            let owner = session.attach(OwnerKind::Stream, None)?;
            for _ in 0..250 {
                session.enqueue_outgoing(&owner, &format!("\"{}\"", "y".repeat(600)), "")?;
            }
            drained.push((session, owner));
        }
        let mut reader = Worker::start_with(&["read", &dsn], &[("MCP_STATE_FAULT", "in-read:2:stop")]);
        wait_until_stopped(&reader);
        let named = format!("process {} ", reader.child.id());
        let data = path.join("1/data.mdb");
        for way in ["messages", "overwriting"] {
            let refused = (0..20_000).find_map(|number: u32| {
                let done = match way {
                    "messages" => {
                        busy.enqueue_outgoing(&stream, &body, "").and_then(|_| busy.take_outgoing(&stream, 1).map(drop))
                    }
                    _ => busy.attributes().set("same", &format!("\"{number:020000}\"")),
                };
                done.err()
            });
            let refused = refused.ok_or("the file grows without bound")?;
            assert_eq!(refused.kind(), ErrorKind::StoreFull, "{refused}");
            assert!(refused.to_string().contains(&named), "{refused}");
        }
        for session in sessions {
            assert!(session.destroy()?, "what frees works");
        }
        let length = fs::metadata(&data)?.len();
        assert!(length <= 4 * LIMIT, "the file has {length} bytes");
        for (session, owner) in drained {
            for _ in 0..250 {
                assert_eq!(session.take_outgoing(&owner, 1)?.len(), 1);
            }
        }
        let taken = fs::metadata(&data)?.blocks() * 512;
        assert!(taken <= 4 * LIMIT, "the file takes {taken} bytes");
        assert_eq!(busy.attributes().get("kept")?.as_deref(), Some("1"), "reading goes on");
        signal(&reader, end);
        if end == libc::SIGCONT {
            reader.line("read");
        }
        reader.end();
        engine.collect(10)?;
        let taken = fs::metadata(&data)?.blocks() * 512;
        assert!(taken < 2 << 20, "{taken} bytes are still taken of {length}");
        for number in 0..200 {
            busy.attributes().set("same", &format!("\"{number:020000}\""))?;
        }
        assert_eq!(engine.contradictions()?, Vec::<String>::new());
        // Whoever is alone checks every page.
        let copy = path.with_extension("copy");
        assert!(Command::new("cp").arg("-a").args([&path, &copy]).status()?.success());
        let mut alone = Worker::start(&["serve", &dsn.replace(&*path.to_string_lossy(), &copy.to_string_lossy())]);
        assert_eq!(alone.line(""), "ready");
        assert!(request(&mut alone).starts_with("ok found"));
        count(Outcome::Refused, &format!("a reader is stopped for long, then gets signal {end}"), &length);
    }
    Ok(())
}

/// The file system has room for gigabytes, the memory cgroup for 48 MiB.
pub fn memory_cgroup() -> Result {
    const LIMIT: u64 = 48 << 20;
    // With the memory of another, the store finds less than it found at first.
    for held in [0, 24 << 20] {
        let cgroup = match MemoryCgroup::new(LIMIT) {
            Ok(cgroup) => cgroup,
            Err(why) => {
                println!("skipped: no memory cgroup can be made here: {why}");
                return Ok(());
            }
        };
        let (_directory, _path, dsn) = new_store("durability=none")?;
        let group = cgroup.path().to_string_lossy().into_owned();
        let told = told(Worker::start(&["in_cgroup", &group, &held.to_string(), &dsn]));
        filled_and_freed(&told);
        let limit: u64 = line(&told, "limit").parse()?;
        assert!((LIMIT / 4..LIMIT / 2).contains(&limit), "{limit} of {LIMIT}");
        assert!(line(&told, "full").contains(&format!("memory cgroup {group}")), "{told:?}");
        count(Outcome::Refused, &format!("a memory cgroup of {LIMIT} bytes, {held} of them taken by others"), &told);
    }
    Ok(())
}

/// Whatever a file may have at most: an error that says so, or a store that is full in time.
pub fn file_size() -> Result {
    for options in crate::KINDS {
        for bytes in [0, 4 << 10, 100 << 10, 400 << 10, 1 << 20, 3 << 20] {
            let (_directory, _path, dsn) = new_store(options)?;
            let limited = || told(Worker::start(&["limited", "file", &bytes.to_string(), &dsn]));
            let made = limited();
            judge_file_size(bytes, options, &made);
            // Made by somebody without a limit, and longer than the limited may write.
            let mut server = Worker::start(&["serve", &dsn]);
            assert_eq!(server.line(""), "ready", "{options}, {bytes}");
            server.tell("grow");
            assert!(server.line("").starts_with("ok"));
            let shared = limited();
            judge_file_size(bytes, options, &shared);
            assert!(request(&mut server).starts_with("ok"), "{options}, {bytes}");
        }
    }
    Ok(())
}

fn judge_file_size(bytes: u64, options: &str, told: &[String]) {
    let fault = format!("a process may write {bytes} bytes of a file, {options}");
    match told.iter().find(|line| line.starts_with("refused") || line.starts_with("full")) {
        Some(refused) => {
            let names = refused.contains("RLIMIT_FSIZE") || options == crate::WRITE_MAP;
            assert!(refused.contains("StoreFull") && names, "{fault}: {told:?}");
        }
        None => panic!("{fault}: {told:?}"),
    }
    count(Outcome::Refused, &fault, &told);
}

pub fn address_space() -> Result {
    for (bytes, opens) in [(4 << 30, true), (1 << 30, true), (200 << 20, false)] {
        let (_directory, _path, dsn) = new_store("durability=none&max_store_bytes=1M")?;
        let told = told(Worker::start(&["limited", "address", &u64::to_string(&bytes), &dsn]));
        if opens {
            filled_and_freed(&told);
        } else {
            let refused = line(&told, "refused");
            let names = refused.contains("RLIMIT_AS") && refused.contains(&bytes.to_string());
            assert!(refused.starts_with("StoreUnavailable") && names, "{refused}");
        }
        count(Outcome::Refused, &format!("a process has {bytes} bytes of address space"), &told);
    }
    Ok(())
}

pub fn keys() -> Result {
    let (_directory, _path, dsn) = new_store("durability=none")?;
    let refused = Worker::start(&["without_keys", &dsn]).and_then_line("refused");
    assert!(refused.starts_with("StoreUnavailable") && refused.contains("too many stores open"), "{refused}");
    count(Outcome::Refused, "a process has no thread-specific keys left", &refused);
    Ok(())
}

/// Nothing is made there.
pub fn copy_on_write() -> Result {
    let Some(mount) = Mount::btrfs(128 << 20) else {
        println!("skipped: this machine cannot make and mount a btrfs (mkfs.btrfs, loop devices, root)");
        return Ok(());
    };
    for options in crate::KINDS {
        let refused =
            Worker::start(&["serve", &format!("file://{}/store?{options}", mount.path().display())]).and_then_line("");
        assert!(refused.starts_with("refused StoreUnavailable") && refused.contains("btrfs"), "{refused}");
        assert!(!Path::new(&mount.path()).join("store").exists());
        count(Outcome::Refused, "a store is to be made on btrfs", &refused);
    }

    Ok(())
}
