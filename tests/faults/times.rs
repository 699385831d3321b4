//! What the times in a store depend on: boot, time namespace, wall clock. And who keeps a store from being opened.

use std::fs;
use std::path::Path;
use std::process::Command;

use mcp_state::{Engine, ErrorKind, NewSession, OwnerKind};

use crate::common::process::{Result, Worker, is_root, wait_until_nobody_holds};
use crate::common::shared_memory;
use crate::files::{Left, probe};
use crate::live::{count, new_store, request, wait_until_stopped};
use crate::tally::Outcome;

/// What [`Left`]'s two sessions are when nothing has become of them.
const KEPT: Outcome = Outcome::Unharmed;

/// The fields that a stamp had in 35c6e5a.
const OLD_FIELDS: [&str; 11] = [
    "stamp",
    "format",
    "generation",
    "settled",
    "boot",
    "c_library",
    "architecture",
    "lock_format",
    "pid_namespace",
    "durable",
    "write_map",
];

/// Brings a store's stamp into the layout of 35c6e5a.
fn make_old(store: &Path) -> Result {
    let path = store.join("stamp");
    let mut stamp: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&fs::read(&path)?)?;
    stamp.retain(|field, _| OLD_FIELDS.contains(&field.as_str()) || field == "wall_offset");
    assert_eq!(stamp.len(), OLD_FIELDS.len() + 1, "{stamp:?}");
    fs::write(path, serde_json::Value::Object(stamp).to_string())?;
    Ok(())
}

fn opened_with(dsn: &str, environment: &[(&str, &str)]) -> Vec<String> {
    Worker::start_with(&["probe", dsn], environment).rest()
}

/// A store with a stamp of 35c6e5a opens and keeps its sessions: at rest, and beside those who have it open.
pub fn old_stamp() -> Result {
    for options in crate::KINDS {
        let left = Left::new(options);
        make_old(&left.path())?;
        let (outcome, told) = probe(&left.dsn(&left.path()), "the stamp is of an older library");
        assert_eq!(outcome, KEPT, "{options}: {told:?}");

        let (_directory, path, dsn) = new_store(options)?;
        let mut servers = [Worker::start(&["serve", &dsn]), Worker::start(&["serve", &dsn])];
        let mut told = Vec::new();
        for server in &mut servers {
            assert_eq!(server.line(""), "ready", "{options}");
            told.push(request(server));
            make_old(&path)?;
        }
        let mut late = Worker::start(&["serve", &dsn]);
        assert_eq!(late.line(""), "ready", "{options}");
        told.extend([request(&mut late), request(&mut servers[0])]);
        assert_eq!(told, ["ok made", "ok found", "ok found", "ok found"], "{options}");
    }
    Ok(())
}

/// A newer process that joins older ones writes records in their format, in which nothing tells since when an owner exists.
pub fn guest_of_older() -> Result {
    for (format, is_timed) in [(4, false), (5, true)] {
        let (_directory, path, dsn) = new_store("durability=none")?;
        let mut server = Worker::start(&["serve", &dsn]);
        assert_eq!(server.line(""), "ready");
        assert_eq!(request(&mut server), "ok made");
        let stamp = path.join("stamp");
        let mut fields: serde_json::Value = serde_json::from_slice(&fs::read(&stamp)?)?;
        fields["format"] = format.into();
        fs::write(stamp, fields.to_string())?;
        let engine = Engine::open(&dsn)?;
        let new = NewSession { id: Some("guest".to_owned()), ..NewSession::default() };
        let session = engine.create_session(new)?.ok_or("the id is free")?;
        session.attach(OwnerKind::Stream, None)?;
        let (_, seen) = engine.inspect("guest")?.ok_or("the session exists")?;
        assert_eq!(seen.owners[0].for_ms.is_some(), is_timed, "format {format}");
    }
    Ok(())
}

/// A process of a time namespace whose boot clock is set otherwise is refused, whether others have the store open or not, and
/// changes nothing.
pub fn time_namespace() -> Result {
    if !is_root() {
        return Err("this test makes a time namespace, which needs root".into());
    }
    for (options, is_old) in [("durability=none", false), ("durability=none", true), ("durability=sync", false)] {
        let (_directory, path, dsn) = new_store(options)?;
        let mut server = Worker::start(&["serve", &dsn]);
        assert_eq!(server.line(""), "ready");
        assert_eq!(request(&mut server), "ok made");
        if is_old {
            make_old(&path)?;
        }
        let elsewhere = || {
            let mut command = Command::new("unshare");
            command.args(["--time", "--boottime", "100000", "--monotonic", "100000", "--fork", "--kill-child"]);
            command.arg(std::env::current_exe().expect("this program")).args(["--role", "serve", &dsn]);
            Worker::spawn(command).and_then_line("")
        };
        let mut told = vec![elsewhere()];
        assert_eq!(request(&mut server), "ok found");
        server.kill();
        wait_until_nobody_holds(&path.join("guard"))?;
        told.push(elsewhere());
        for told in &told {
            assert!(told.starts_with("refused StoreIncompatible"), "{told}");
            assert!(told.contains("100000000 ms"), "{told}");
        }
        let mut server = Worker::start(&["serve", &dsn]);
        assert_eq!(server.line(""), "ready");
        assert_eq!(request(&mut server), "ok found", "nothing was changed");
        count(Outcome::Refused, "a process of another time namespace opens the store", &told);
    }
    Ok(())
}

/// A boot id that cannot be read is like no other: times are carried over by the wall clock, and a store that is not durable is
/// kept where it lies in memory.
pub fn unknown_boot() -> Result {
    const UNKNOWN: (&str, &str) = ("MCP_STATE_PRETEND_BOOT", "");
    let directory = tempfile::tempdir_in(shared_memory())?;
    let base = directory.path().canonicalize()?;
    let hours_ago = (-3 * 3_600_000).to_string();
    let earlier = [UNKNOWN, ("MCP_STATE_PRETEND_WALL_OFFSET_MS", &hours_ago)];
    let has = |told: &[String], word: &str| told.iter().any(|line| line.starts_with(word));
    for (name, options, left, opens, is_kept) in [
        ("both", "durability=none", &[UNKNOWN][..], &[UNKNOWN][..], true),
        ("left", "durability=none", &[UNKNOWN], &[], true),
        ("opens", "durability=none", &[], &[UNKNOWN], true),
        ("durable", "durability=sync", &[UNKNOWN], &[UNKNOWN], true),
        ("rebooted", "durability=sync", &earlier, &[UNKNOWN], false),
    ] {
        let dsn = format!("file://{}/{name}?{options}", base.display());
        assert!(Worker::start_with(&["leave", &dsn], left).finish().success());
        let told = opened_with(&dsn, opens);
        assert_eq!(has(&told, "kept"), is_kept, "{name}: {told:?}");
        count(if is_kept { KEPT } else { Outcome::Fresh }, &format!("the boot id cannot be read: {name}"), &told);
    }
    Ok(())
}

/// Whoever only looks begins no store afresh: what the next server may forget, a look refuses and leaves as it is.
pub fn looks() -> Result {
    let left = Left::new("durability=none");
    let path = left.path();
    let dsn = left.dsn(&path);
    let stamp = fs::read_to_string(path.join("stamp"))?;
    let changed = |field: &str, value: serde_json::Value| -> Result<String> {
        let mut stamp: serde_json::Value = serde_json::from_str(&stamp)?;
        stamp[field] = value;
        Ok(stamp.to_string())
    };
    for (text, what) in [
        (changed("boot", "another".into())?, "an earlier boot"),
        (changed("settled", false.into())?, "not made to the end"),
        ("garbage".to_owned(), "stamp"),
    ] {
        fs::write(path.join("stamp"), &text)?;
        let error = Engine::open_existing(&dsn).map(drop).expect_err(what);
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(fs::read_to_string(path.join("stamp"))?, text);
        assert!(path.join("1/data.mdb").exists(), "{what}");
    }
    fs::write(path.join("stamp"), &stamp)?;
    assert_eq!(Engine::open_existing(&dsn)?.stats()?.sessions, 2);
    // Nothing is lost by beginning what a reset has emptied.
    Engine::reset(&dsn)?;
    assert_eq!(Engine::open_existing(&dsn)?.stats()?.sessions, 0);
    Ok(())
}

/// A durable store that was made before the clock was set keeps its sessions for as long as they live, by the clock that was
/// right: it is looked at when somebody opens the store, and when somebody collects.
pub fn clock_set() -> Result {
    let wrong = (-20_i64 * 365 * 86_400_000).to_string();
    let made_wrong = [("MCP_STATE_PRETEND_WALL_OFFSET_MS", wrong.as_str())];
    let in_another_boot = [("MCP_STATE_PRETEND_BOOT", "another")];
    for how in ["another process opens the store", "the process collects"] {
        let (_directory, path, dsn) = new_store("durability=sync&ttl_ms=3600000")?;
        if how == "the process collects" {
            assert!(Worker::start_with(&["set-clock", &dsn], &made_wrong).finish().success());
        } else {
            let mut server = Worker::start_with(&["serve", &dsn], &made_wrong);
            assert_eq!(server.line(""), "ready");
            assert_eq!(request(&mut server), "ok made");
            let mut guest = Worker::start(&["serve", &dsn]);
            assert_eq!(guest.line(""), "ready");
            guest.kill();
            server.kill();
        }
        wait_until_nobody_holds(&path.join("guard"))?;
        let mut server = Worker::start_with(&["serve", &dsn], &in_another_boot);
        assert_eq!(server.line(""), "ready");
        assert_eq!(request(&mut server), "ok found", "{how}");
    }
    Ok(())
}

/// A process that is stopped while it opens the store is named to those whom it keeps waiting.
pub fn stopped_opener() -> Result {
    let (_directory, _path, dsn) = new_store("durability=none")?;
    let stopped = Worker::start_with(&["serve", &dsn], &[("MCP_STATE_FAULT", "before-commit:1:stop")]);
    wait_until_stopped(&stopped);
    let error = Engine::open(&dsn).map(drop).expect_err("nobody else can open it");
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains(&format!("process {} ", stopped.child.id())), "{error}");
    count(Outcome::Refused, "a process is stopped while it opens the store", &error);
    Ok(())
}
