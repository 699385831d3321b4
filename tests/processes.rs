//! The guarantees between processes: real ones, killed for real.
//!
//! Each test starts this program again in the role of a worker (see [`workers`]) and talks with it by lines. Tests that mount
//! file systems or make pid namespaces need root, and say so when they cannot run.
#![allow(missing_docs)]

mod common;
#[path = "common/workers.rs"]
mod workers;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use common::process::{Mount, Result, Worker, cannot_mount, fill, is_root, wait_until_nobody_holds};
use common::{dsn_in, shared_memory, texts};
use mcp_state::{
    Claim, Delivery, DuplicatePolicy, Engine, Error, ErrorKind, LateReason, NewSession, OwnerKind, Session,
};
use tempfile::TempDir;
use workers::{REQUEST, roles, shared};

fn main() -> ExitCode {
    workers::main(&[
        ("g9_an_answer_in_one_process_wakes_the_waiter_in_another", g9_an_answer_wakes),
        ("g9_destroy_wakes_every_owner_of_the_session", g9_destroy_wakes),
        ("g9_a_writer_killed_between_commit_and_wake_delays_by_a_slice_at_most", g9_killed_before_wake),
        ("g8_a_process_killed_at_any_step_leaves_all_or_nothing", g8_killed_at_every_step),
        ("g8_two_hundred_kills_under_load_leave_nothing_half_done", g8_two_hundred_kills),
        ("g1_eight_processes_lose_no_update", g1_no_lost_update),
        ("j_an_answer_to_a_killed_process_is_late_at_once", j_killed_asker),
        ("g6_a_killed_processs_request_blocks_no_other_with_its_id", g6_killed_holder),
        ("g11_a_dead_process_is_released_once_its_lease_has_run_out", g11_dead_process),
        ("g3_owners_that_see_the_proc_of_another_namespace_count_as_living", foreign_proc),
        ("a_child_of_a_fork_opens_the_store_anew", fork_after_use),
        ("g10_a_full_file_system_is_an_error_and_can_be_emptied", full_file_system),
        ("g10_opening_on_a_full_file_system_is_an_error_and_no_sigbus", full_at_open),
        ("g10_a_write_map_has_its_space_from_the_start_or_is_refused", write_map_takes_its_space),
        ("a_write_map_is_the_stores_and_its_guests_follow", write_map_is_the_stores),
        ("a_deleted_store_is_opened_anew_at_the_next_request", deleted_store),
        ("a_store_that_is_being_removed_is_made_anew_when_it_is_gone", being_removed),
        ("a_reset_moves_every_process_to_an_empty_store", reset_store),
        ("a_store_that_cannot_be_used_safely_is_refused", unsafe_places),
        ("a_damaged_file_is_an_error_or_a_fresh_start", damaged_files),
        ("a_store_of_a_newer_library_is_refused", newer_store),
        ("a_store_of_another_boot_starts_afresh_or_keeps_its_sessions", another_boot),
        ("g8_a_take_over_that_is_killed_half_way_is_done_once", take_over_killed),
        ("single_use_keys_and_topics_outlive_a_reboot_by_the_wall_clock", keys_after_a_reboot),
        ("a_durable_store_whose_stamp_is_lost_is_refused_and_not_removed", unreadable_stamp_of_a_durable_store),
        ("a_data_file_that_lacks_its_unused_last_page_is_no_damage", a_page_short),
        ("whoever_has_a_store_open_holds_its_guard", guest_waits),
        ("an_opening_that_fails_leaves_nothing_open", opened_in_vain),
        ("one_file_by_two_paths_is_opened_once", one_file_by_two_paths),
        ("a_reset_from_another_container_locks_nobody_out", reset_by_another),
        ("g8_a_reset_that_is_killed_half_way_is_finished_by_the_next_to_open", reset_killed),
        ("g10_freeing_works_on_a_file_system_that_stays_full", freeing_on_a_full_file_system),
        ("a_store_held_by_another_pid_namespace_is_refused_and_taken_over_when_it_is_gone", another_namespace),
        ("two_stores_of_one_name_for_two_users_are_two_stores", two_users),
        ("a_stranger_can_neither_open_nor_squat_a_store", stranger),
        ("a_group_shares_a_store_and_nobody_else_does", shared_by_group),
    ])
}

// --- G9: no lost wake-up ---

fn g9_an_answer_wakes() -> Result {
    let store = Store::new();
    shared::an_answer_wakes(&store.dsn, &store.session("s"))
}

fn g9_destroy_wakes() -> Result {
    let store = Store::new();
    shared::destroy_wakes(&store.dsn, &store.session("s"))
}

fn g9_killed_before_wake() -> Result {
    let store = Store::new();
    store.session("s");
    let mut asker = Worker::start(&["ask", &store.dsn, "s", "60000"]);
    let id = asker.line("id");
    let answer = Worker::start_with(&["answer", &store.dsn, "s", &id], &[("MCP_STATE_FAULT", "before-wake:1")]);
    assert!(!answer.finish().success(), "it was killed");
    assert_eq!(asker.line("answer"), "\"yes\"");
    Ok(())
}

// --- G8: all or nothing ---

fn g8_killed_at_every_step() -> Result {
    ["", SMALL_WRITE_MAP].into_iter().try_for_each(killed_at_every_step)
}

fn killed_at_every_step(options: &str) -> Result {
    for point in ["between-rows", "before-commit", "before-wake"] {
        for visit in 1.. {
            let store = Store::with(options);
            let session = store.session("s");
            let fault = format!("{point}:{visit}");
            let worker = Worker::start_with(&["round", &store.dsn, "s"], &[("MCP_STATE_FAULT", &fault)]);
            let killed = !worker.finish().success();
            assert_eq!(store.engine.contradictions()?, Vec::<String>::new(), "{fault}");
            let owner = session.attach(OwnerKind::Stream, None)?;
            roles::round(&session, &owner).map_err(|error| format!("after {fault}: {error}"))?;
            if !killed {
                assert!(visit > 5, "the round visits {point} more than {visit} times");
                break;
            }
        }
    }
    Ok(())
}

fn g8_two_hundred_kills() -> Result {
    ["", SMALL_WRITE_MAP].into_iter().try_for_each(two_hundred_kills)
}

fn two_hundred_kills(options: &str) -> Result {
    const WRITERS: usize = 6;
    let store = Store::with(options);
    let sessions = ["a", "b"].map(|id| store.session(id));
    let start = |number: usize| {
        // Every other writer dies between commit and wake of its own accord, at another moment each time.
        let fault = format!("before-wake:{}", 20 + number * 7);
        let faults: &[(&str, &str)] = if number.is_multiple_of(4) { &[("MCP_STATE_FAULT", &fault)] } else { &[] };
        let id = if number.is_multiple_of(2) { "a" } else { "b" };
        let mut worker = Worker::start_with(&["rounds", &store.dsn, id], faults);
        worker.line("started");
        worker
    };
    let mut writers: Vec<Worker> = (0..WRITERS).map(start).collect();
    let mut random = 0x2545_f491_4f6c_dd17_u64;
    let owner = sessions[0].attach(OwnerKind::Stream, None)?;
    for kill in 0..200 {
        // A survivor that is blocked would block this round, too.
        for _ in 0..=(random % 3) {
            roles::round(&sessions[0], &owner)?;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_micros(random % 3000));
        let victim = (random >> 32) as usize % WRITERS;
        let mut killed = std::mem::replace(&mut writers[victim], start(WRITERS + kill));
        killed.kill();
        assert!(killed.complaint().is_none(), "{:?}", killed.complaint());
    }
    for mut writer in writers {
        writer.kill();
        assert!(writer.complaint().is_none());
    }
    assert_eq!(store.engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn g1_no_lost_update() -> Result {
    ["", SMALL_WRITE_MAP].into_iter().try_for_each(no_lost_update)
}

fn no_lost_update(options: &str) -> Result {
    let store = Store::with(options);
    let session = store.session("s");
    let workers: Vec<_> =
        (0..8).map(|number| Worker::start(&["update", &store.dsn, "s", &number.to_string()])).collect();
    for worker in workers {
        assert!(worker.finish().success());
    }
    for number in 0..8 {
        assert_eq!(session.attributes().get(&format!("own.{number}"))?.as_deref(), Some("99"));
    }
    assert_eq!(session.attributes().get("shared")?.as_deref(), Some("800"));
    assert_eq!(session.stats()?.owners, 0);
    Ok(())
}

// --- G11 and scenario J: what dead processes leave ---

fn j_killed_asker() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let mut asker = Worker::start(&["ask", &store.dsn, "s", "60000"]);
    let id: i64 = asker.line("id").parse()?;
    asker.kill();
    assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Late(LateReason::Abandoned));
    let mut again = Worker::start(&["ask", &store.dsn, "s", "60000"]);
    let second: i64 = again.line("id").parse()?;
    assert_eq!(session.deliver_response(id, "\"old\"")?, Delivery::Late(LateReason::Abandoned));
    assert_eq!(session.deliver_response(second, "\"new\"")?, Delivery::Delivered);
    assert_eq!(again.line("answer"), "\"new\"");
    Ok(())
}

fn g6_killed_holder() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let mut holder = Worker::start(&["hold", &store.dsn, "s"]);
    holder.line("holding");
    let owner = session.attach(OwnerKind::Reply, None)?;
    assert!(!session.begin_request(&owner, &1.into(), DuplicatePolicy::Reject)?);
    holder.kill();
    assert!(session.begin_request(&owner, &1.into(), DuplicatePolicy::Reject)?);
    Ok(())
}

fn g11_dead_process() -> Result {
    let store = Store::with("lease_ms=50");
    let session = store.session("s");
    let mut dead = Worker::start(&["hold", &store.dsn, "s"]);
    dead.line("holding");
    let mut silent = Worker::start(&["hold", &store.dsn, "s"]);
    silent.line("holding");
    dead.kill();
    let deadline = Instant::now() + Duration::from_secs(20);
    while session.stats()?.owners != 1 {
        assert!(Instant::now() < deadline, "the dead owner is never released");
        let visitor = session.attach(OwnerKind::Reply, None)?;
        session.detach(&visitor)?;
    }
    assert_eq!(session.stats()?.in_flight, 1, "the silent one lives");
    Ok(())
}

fn foreign_proc() -> Result {
    if !is_root() {
        return Err("this test makes a pid namespace, which needs root".into());
    }
    let store = Damaged::new();
    // In it the pid of the asker is, if anything, the pid of another process.
    let mut container = Worker::with_foreign_proc(&["answer_a_child", &store.dsn, "s"]);
    assert_eq!(container.line("delivery"), "Delivered \"yes\"");
    assert!(container.finish().success());
    Ok(())
}

fn fork_after_use() -> Result {
    let store = Store::new();
    shared::a_fork_after_use(&store.dsn, &store.session("s"))
}

// --- G10: full file systems ---

fn full_file_system() -> Result {
    let Some(mount) = Mount::tmpfs("1M") else { return cannot_mount() };
    let dsn = format!("file://{}/store?durability=none&max_session_bytes=64M", mount.path().display());
    let engine = Engine::open(&dsn)?;
    let session = engine.create_session(NewSession::default())?.ok_or("a random id is free")?;
    let stream = session.attach(OwnerKind::Stream, None)?;
    let waiting = session.send_request(&stream, REQUEST, "", 60_000)?;
    session.deliver_response(waiting, "\"kept\"")?;
    session.attributes().set("kept", "1")?;
    // Somebody else takes what is left of the file system, to the last byte.
    fill(&mount.path().join("other"))?;
    let body = format!("\"{}\"", "x".repeat(20_000));
    let mut queued = 0;
    let refused = loop {
        match session.enqueue_outgoing(&stream, &body, "") {
            Ok(_) => queued += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::StoreFull, "{refused}");
    for _ in 0..50 {
        assert_eq!(session.enqueue_outgoing(&stream, &body, "").unwrap_err().kind(), ErrorKind::StoreFull);
    }
    // Nothing of before is lost, and what frees space works.
    assert_eq!(session.attributes().get("kept")?.as_deref(), Some("1"));
    assert_eq!(session.claim(&stream, waiting)?, Claim::Answered("\"kept\"".into()));
    assert_eq!(texts(session.take_outgoing(&stream, 1)?).len(), 1);
    let peeked = session.peek_outgoing(&stream, 100)?;
    assert_eq!(peeked.len(), queued);
    if let Some(last) = peeked.last() {
        assert_eq!(session.acknowledge(&stream, last.sequence)?, queued as u64);
    }
    session.detach(&stream)?;
    assert!(session.destroy()?);
    engine.collect(100)?;
    assert_eq!(engine.stats()?.sessions, 0);
    // And then everything works again.
    std::fs::remove_file(mount.path().join("other"))?;
    let session = engine.create_session(NewSession::default())?.ok_or("a random id is free")?;
    let stream = session.attach(OwnerKind::Stream, None)?;
    roles::round(&session, &stream)?;
    session.enqueue_outgoing(&stream, &body, "")?;
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn freeing_on_a_full_file_system() -> Result {
    let Some(mount) = Mount::tmpfs("16M") else { return cannot_mount() };
    let engine = Engine::open(&format!("file://{}/store?durability=none", mount.path().display()))?;
    let body = |letter: &str| format!("\"{}\"", letter.repeat(3000));
    let mut owners = vec![];
    for _ in 0..8 {
        let session = engine.create_session(NewSession::default())?.ok_or("a random id is free")?;
        let stream = session.attach(OwnerKind::Stream, None)?;
        for _ in 0..40 {
            session.enqueue_outgoing(&stream, &body("x"), "")?;
        }
        owners.push((session, stream));
    }
    fill(&mount.path().join("other"))?;
    for round in 0..40 {
        for (session, stream) in &owners {
            let taken = session.take_outgoing(stream, 1).map_err(|error| format!("round {round}: {error}"))?;
            assert_eq!(taken.len(), 1);
            // Others add whatever they can meanwhile.
            let refused = (0..1000).find_map(|_| session.enqueue_outgoing(stream, &body("y"), "").err());
            if let Some(refused) = refused {
                assert!(matches!(refused.kind(), ErrorKind::StoreFull | ErrorKind::LimitExceeded), "{refused}");
            }
        }
    }
    for (session, _) in owners {
        assert!(session.destroy()?);
    }
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn full_at_open() -> Result {
    let Some(mount) = Mount::tmpfs("1M") else { return cannot_mount() };
    fill(&mount.path().join("other"))?;
    let dsn = format!("file://{}/store?durability=none", mount.path().display());
    let mut worker = Worker::start(&["open", &dsn]);
    assert_eq!(worker.line("refused"), format!("{:?}", ErrorKind::StoreFull));
    assert!(worker.finish().success(), "it was not killed by SIGBUS");
    std::fs::remove_file(mount.path().join("other"))?;
    let mut worker = Worker::start(&["open", &dsn]);
    assert_eq!(worker.line("open"), "");
    Ok(())
}

/// A map of 16 MB.
const SMALL_WRITE_MAP: &str = "write_map=1&max_store_bytes=4M";

fn write_map_takes_its_space() -> Result {
    let Some(mount) = Mount::tmpfs("24M") else { return cannot_mount() };
    let dsn = |options| format!("file://{}/store?durability=none&{options}", mount.path().display());
    let too_large = Worker::start(&["create", &dsn("write_map=1&max_store_bytes=8M"), "s"]).and_then_line("refused");
    assert!(too_large.starts_with("StoreFull") && too_large.contains("33554432 bytes"), "{too_large}");
    let left = std::fs::read_dir(mount.path().join("store"))?.count() > 0;
    assert!(left, "the store's directory is there");
    assert!(mount.taken()? < 4 << 20, "what was taken is given back");
    let engine = Engine::open(&dsn(SMALL_WRITE_MAP))?;
    let session = engine.create_session(NewSession::default())?.ok_or("a random id is free")?;
    let stream = session.attach(OwnerKind::Stream, None)?;
    // Whoever fills the file system takes nothing from the map: writing it would end the process.
    fill(&mount.path().join("other"))?;
    let body = format!("\"{}\"", "x".repeat(20_000));
    for _ in 0..20 {
        let mut queued = 0;
        let refused = loop {
            match session.enqueue_outgoing(&stream, &body, "") {
                Ok(_) => queued += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused.kind(), ErrorKind::StoreFull | ErrorKind::LimitExceeded), "{refused}");
        assert!(queued >= 10, "the map was free");
        assert_eq!(session.take_outgoing(&stream, 1000)?.len(), queued);
    }
    assert_eq!(engine.contradictions()?, Vec::<String>::new());
    Ok(())
}

fn write_map_is_the_stores() -> Result {
    let store = Store::with(SMALL_WRITE_MAP);
    let session = store.session("s");
    session.attributes().set("a", "1")?;
    let path = store.path();
    let data = path.join("1/data.mdb");
    assert_eq!(data.metadata()?.len(), 16 << 20);
    let plain = format!("file://{}?durability=none", path.display());
    let how = |dsn: &str| Worker::start(&["writes", dsn]).and_then_line("writes");
    assert_eq!(how(&format!("{plain}&write_map=0")), "through the map", "others have it open so");
    let Store { directory, engine, .. } = store;
    drop((session, engine));
    // A process that leaves has the files open until its end: another made the store that is now nobody's.
    let other = Damaged::with(&format!("durability=none&{SMALL_WRITE_MAP}"));
    let plain_other = other.dsn.split('?').next().expect("a DSN").to_owned() + "?durability=none";
    assert_eq!(how(&plain_other), "through the map", "as it is");
    assert_eq!(other.path.join("1/data.mdb").metadata()?.len(), 16 << 20, "and as large");
    assert_eq!(how(&format!("{plain_other}&write_map=0")), "with calls");
    assert!(other.path.join("1/data.mdb").metadata()?.len() < 1 << 20, "the space is given back");
    assert_eq!(how(&plain_other), "with calls");
    assert_eq!(other.sessions()?, 1);
    assert_eq!(how(&format!("{plain_other}&{SMALL_WRITE_MAP}")), "through the map");
    assert_eq!(other.sessions()?, 1);
    // It is not durable, and says so.
    let durable = format!("{}?write_map=1", plain_other.split('?').next().expect("a DSN"));
    let refused = Worker::start(&["create", &durable, "t"]).and_then_line("refused");
    assert!(refused.contains("durability=none"), "{refused}");
    drop(directory);
    Ok(())
}

// --- The place and its files ---

fn deleted_store() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let mut worker = Worker::start(&["ask", &store.dsn, "s", "60000"]);
    worker.line("id");
    std::fs::remove_dir_all(store.path())?;
    // The waiter looks at its next slice, and says that its session is gone.
    assert_eq!(worker.line("destroyed"), "");
    store.engine.refresh()?;
    assert!(store.engine.open_session("s", None)?.is_none());
    assert!(!session.touch()?);
    store.session("s");
    assert!(store.path().join("stamp").exists());
    Ok(())
}

fn being_removed() -> Result {
    let store = Store::new();
    // This process has the guard open; whoever removes the store has come as far as that.
    for entry in std::fs::read_dir(store.path())? {
        let path = entry?.path();
        if path.is_dir() {
            std::fs::remove_dir_all(path)?;
        } else if !path.ends_with("guard") {
            std::fs::remove_file(path)?;
        }
    }
    let mut next = Worker::start(&["create", &store.dsn, "s"]);
    while !store.path().join("init").exists() {
        std::thread::yield_now();
    }
    std::fs::remove_file(store.path().join("guard"))?;
    assert_eq!(next.line("created"), "");
    Ok(())
}

fn reset_store() -> Result {
    let store = Store::new();
    store.session("s");
    let mut worker = Worker::start(&["ask", &store.dsn, "s", "60000"]);
    worker.line("id");
    Engine::reset(&store.dsn)?;
    assert_eq!(worker.line("destroyed"), "");
    store.engine.refresh()?;
    assert!(store.engine.open_session("s", None)?.is_none());
    store.session("s");
    let mut worker = Worker::start(&["open", &store.dsn]);
    assert_eq!(worker.line("open"), "");
    assert_eq!(store.engine.stats()?.sessions, 1);
    Ok(())
}

fn unsafe_places() -> Result {
    let directory = tempfile::tempdir_in(shared_memory())?;
    let base = directory.path().canonicalize()?;
    let refusal = |path: &Path| match Engine::open(&format!("file://{}", path.display())) {
        Err(Error::Store(error)) => error.to_string(),
        other => panic!("{} was not refused: {:?}", path.display(), other.map(|_| ())),
    };
    let real = base.join("real");
    std::fs::create_dir(&real)?;
    std::os::unix::fs::symlink(&real, base.join("link"))?;
    assert!(refusal(&base.join("link")).contains("symlink"));
    assert!(refusal(&base.join("link/store")).contains("symlink"));
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o777))?;
    let message = refusal(&real);
    assert!(message.contains("777") && message.contains("700"), "{message}");
    std::fs::write(base.join("file"), "")?;
    assert!(refusal(&base.join("file")).contains("not a directory"));
    assert!(refusal(&base.join("missing/store")).contains("create the directory"));
    if is_root() {
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o755))?;
        std::os::unix::fs::chown(&real, Some(4242), None)?;
        assert!(refusal(&real).contains("belongs to user 4242"));
    }
    let squatted = base.join("squatted");
    std::fs::create_dir(&squatted)?;
    std::os::unix::fs::symlink("/etc/hostname", squatted.join("guard"))?;
    assert!(refusal(&squatted).contains("guard"));
    Ok(())
}

fn damaged_files() -> Result {
    // A stamp that nobody can read, and nobody there: a fresh start.
    let store = Damaged::new();
    std::fs::write(store.path.join("stamp"), "garbage")?;
    assert_eq!(store.sessions()?, 0);
    // The data file is cut, or is something else: an error that says so, and a reset mends it.
    let cut: fn(&Path) -> std::io::Result<()> =
        |data| std::fs::OpenOptions::new().write(true).open(data)?.set_len(12_288);
    let garbage: fn(&Path) -> std::io::Result<()> = |data| std::fs::write(data, vec![0x5a; 65_536]);
    let stub: fn(&Path) -> std::io::Result<()> = |data| std::fs::write(data, "x");
    for damage in [cut, garbage, stub] {
        let store = Damaged::new();
        damage(&store.path.join("1/data.mdb"))?;
        let mut worker = Worker::start(&["open", &store.dsn]);
        assert_eq!(worker.line("refused"), format!("{:?}", ErrorKind::StoreCorrupt));
        assert!(worker.finish().success());
        Engine::reset(&store.dsn)?;
        assert_eq!(store.sessions()?, 0);
    }
    // Lock file and bell hold nothing that lasts.
    for name in ["1/lock.mdb", "1/bell", "1/ballast", "guard", "init"] {
        let store = Damaged::new();
        std::fs::remove_file(store.path.join(name))?;
        assert_eq!(store.sessions()?, 1, "without {name}");
    }
    Ok(())
}

fn newer_store() -> Result {
    let store = Damaged::new();
    for (field, message) in [("format", "format 99"), ("stamp", "stamp version 99")] {
        let before = store.stamp();
        store.set_stamp(field, 99.into());
        let error = Engine::open(&store.dsn).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreIncompatible);
        assert!(error.to_string().contains(message), "{error}");
        std::fs::write(store.path.join("stamp"), before)?;
    }
    // Another C library is refused while somebody uses the store, and takes it over afterwards.
    let mut holder = Worker::start(&["hold", &store.dsn, "s"]);
    holder.line("holding");
    store.set_stamp("c_library", "another".into());
    let error = Engine::open(&store.dsn).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("C library another"), "{error}");
    holder.kill();
    wait_until_nobody_holds(&store.path.join("guard"))?;
    assert_eq!(store.sessions()?, 1);
    // One of an older library that this one cannot read is begun afresh where it is not durable, else refused.
    let before = store.stamp();
    store.set_stamp("format", 1.into());
    let durable = store.dsn.replace("durability=none", "durability=sync");
    let error = Engine::open(&durable).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("an older mcp-state (format 1); reset the store"), "{error}");
    assert_eq!(store.sessions()?, 0);
    assert_ne!(store.stamp(), before);
    Ok(())
}

/// Another boot, after which the wall clock shows so many hours more.
fn boot_before(hours: i64) -> Vec<(&'static str, String)> {
    vec![
        ("MCP_STATE_PRETEND_BOOT", "another".to_owned()),
        ("MCP_STATE_PRETEND_WALL_OFFSET_MS", (-hours * 3_600_000).to_string()),
    ]
}

fn another_boot() -> Result {
    for (durability, sessions) in [("none", 0), ("sync", 1)] {
        let store = Damaged::left_by(&format!("durability={durability}&ttl_ms=3600000"), &boot_before(0));
        // What a store is worth keeping for was decided by who wrote it.
        let dsn = store.dsn.replace("durability=sync", "durability=none");
        let mut worker = Worker::start(&["count", &dsn]);
        assert_eq!(worker.line("sessions"), sessions.to_string(), "durability={durability}");
    }
    // Times go by the wall clock: a session that has expired meanwhile is gone, one that has not is there without owners.
    for (hours, there) in [(0, true), (2, false)] {
        let store = Damaged::left_by("durability=sync&ttl_ms=3600000", &boot_before(hours));
        let mut worker = Worker::start(&["look", &store.dsn, "s"]);
        let expected = if there { "owners=0 pending=0" } else { "gone" };
        assert_eq!(worker.line("found"), expected, "after {hours} hours");
    }
    Ok(())
}

fn take_over_killed() -> Result {
    for point in ["before-commit:1", "between-rows:1"] {
        let store = Damaged::left_by("durability=sync&ttl_ms=7200000", &boot_before(1));
        let killed = Worker::start_with(&["count", &store.dsn], &[("MCP_STATE_FAULT", point)]);
        assert!(!killed.finish().success(), "it was killed at {point}");
        assert_eq!(store.sessions()?, 1);
        // One hour was taken from its two, once.
        let left = Engine::open(&store.dsn)?.sessions(None, 9)?[0].idle_ms;
        assert!((3_600_000..5_400_000).contains(&left), "{left} after {point}");
    }
    Ok(())
}

fn keys_after_a_reboot() -> Result {
    let store = Damaged::left_by("durability=sync&ttl_ms=36000000", &boot_before(2));
    let engine = Engine::open(&store.dsn)?;
    // `leave` has used the key "hour" for an hour and the key "day" for a day.
    assert!(engine.consume_once("hour", 1000)?);
    assert!(!engine.consume_once("day", 1000)?);
    assert_eq!(engine.cursor("topic")?, 1);
    Ok(())
}

fn unreadable_stamp_of_a_durable_store() -> Result {
    let store = Damaged::with("durability=sync");
    let stamp = store.stamp();
    for damage in ["", "garbage"] {
        std::fs::write(store.path.join("stamp"), damage)?;
        let error = Engine::open(&store.dsn).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{error}");
    }
    std::fs::remove_file(store.path.join("stamp"))?;
    assert_eq!(Engine::open(&store.dsn).map(|_| ()).unwrap_err().kind(), ErrorKind::StoreCorrupt);
    std::fs::write(store.path.join("stamp"), stamp)?;
    assert_eq!(store.sessions()?, 1, "nothing was removed");
    Ok(())
}

fn a_page_short() -> Result {
    use std::os::unix::fs::FileExt;
    let store = Damaged::new();
    let path = store.path.join("1/data.mdb");
    let data = std::fs::OpenOptions::new().read(true).write(true).open(&path)?;
    // Both meta pages name a last page that was never written, as LMDB leaves it when that page was freed at once.
    let page = 4096;
    let mut last = [0; 8];
    for meta in [0, page] {
        data.read_exact_at(&mut last, meta + 16 + 120)?;
        let beyond = data.metadata()?.len() / page + 1;
        data.write_all_at(&beyond.max(u64::from_le_bytes(last)).to_le_bytes(), meta + 16 + 120)?;
    }
    let before = data.metadata()?.len();
    assert_eq!(store.sessions()?, 1);
    assert!(data.metadata()?.len() > before);
    Ok(())
}

fn guest_waits() -> Result {
    use std::os::fd::AsRawFd;
    let store = Damaged::new();
    let guard = std::fs::OpenOptions::new().read(true).write(true).open(store.path.join("guard"))?;
    // SAFETY: the descriptor is open; flock touches no memory.
    let lock = |kind| unsafe { libc::flock(guard.as_raw_fd(), kind | libc::LOCK_NB) } == 0;
    assert!(lock(libc::LOCK_EX), "a process that is alone, and about to end");
    let mut guest = Worker::start(&["hold", &store.dsn, "s"]);
    std::thread::sleep(Duration::from_millis(50));
    assert!(lock(libc::LOCK_UN));
    guest.line("holding");
    assert!(!lock(libc::LOCK_EX), "whoever has the store open holds the guard");
    Ok(())
}

fn opened_in_vain() -> Result {
    let store = Damaged::new();
    std::fs::create_dir(store.path.join("stamp.new"))?;
    let mut worker = Worker::start(&["leak", &store.dsn]);
    assert_eq!(worker.line("descriptors"), "0");
    Ok(())
}

fn one_file_by_two_paths() -> Result {
    let Some(mount) = Mount::tmpfs("16M") else { return cannot_mount() };
    let (one, two) = (mount.path().join("one"), mount.path().join("two"));
    std::fs::create_dir(&one)?;
    std::fs::create_dir(&two)?;
    std::fs::set_permissions(&one, std::fs::Permissions::from_mode(0o700))?;
    if !Command::new("mount").arg("--bind").arg(&one).arg(&two).status()?.success() {
        return cannot_mount();
    }
    let mut worker = Worker::start(&[
        "twice",
        &format!("file://{}?durability=none", one.display()),
        &format!("file://{}?durability=none", two.display()),
    ]);
    let environments = worker.line("environments");
    Command::new("umount").arg("--lazy").arg(&two).status()?;
    assert_eq!(environments, "1");
    Ok(())
}

fn reset_by_another() -> Result {
    if !is_root() {
        return Err("this test makes a pid namespace, which needs root".into());
    }
    let store = Store::new();
    store.session("s");
    assert!(Worker::in_namespace(&["reset", &store.dsn]).finish().success());
    store.engine.refresh()?;
    assert!(store.engine.open_session("s", None)?.is_none());
    let mut worker = Worker::start(&["open", &store.dsn]);
    assert_eq!(worker.line("open"), "", "the stamp is still that of who runs");
    Ok(())
}

fn reset_killed() -> Result {
    let store = Store::new();
    store.session("s");
    // The stamp is written, the old generation not yet retired.
    let stamp = std::fs::read_to_string(store.path().join("stamp"))?;
    std::fs::write(store.path().join("stamp"), stamp.replace("\"generation\": 1", "\"generation\": 2"))?;
    let mut worker = Worker::start(&["open", &store.dsn]);
    worker.line("open");
    store.engine.refresh()?;
    assert!(store.engine.open_session("s", None)?.is_none(), "all are on the new generation");
    Ok(())
}

fn another_namespace() -> Result {
    if !is_root() {
        return Err("this test makes a pid namespace, which needs root".into());
    }
    let store = Damaged::new();
    let mut container = Worker::in_namespace(&["hold", &store.dsn, "s"]);
    container.line("holding");
    let error = Engine::open(&store.dsn).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreIncompatible);
    assert!(error.to_string().contains("another container"), "{error}");
    container.kill();
    wait_until_nobody_holds(&store.path.join("guard"))?;
    let mut recreated = Worker::in_namespace(&["look", &store.dsn, "s"]);
    assert_eq!(recreated.line("found"), "owners=0 pending=0");
    Ok(())
}

fn two_users() -> Result {
    if !is_root() {
        return Err("this test becomes another user, which needs root".into());
    }
    let name = format!("two-users-{}", std::process::id());
    let dsn = format!("shm://{name}");
    let mine = Engine::open(&dsn)?;
    mine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() })?;
    let theirs = Worker::as_user(&["look", &dsn, "s"], 65_534, 65_534);
    let found = theirs.and_then_line("found");
    let place = PathBuf::from(&mine.stats()?.place[0].1);
    assert_eq!(place.metadata()?.permissions().mode() & 0o777, 0o700);
    let _ = std::fs::remove_dir_all(&place);
    let _ = std::fs::remove_dir_all(shared_memory().join("mcp-state-65534").join(&name));
    assert_eq!(found, "gone");
    Ok(())
}

/// An unprivileged user and group that are nobody's.
const STRANGER: u32 = 4242;

fn stranger() -> Result {
    if !is_root() {
        return Err("this test becomes another user, which needs root".into());
    }
    let store = Store::new();
    std::fs::set_permissions(store.directory.path(), std::fs::Permissions::from_mode(0o711))?;
    store.session("s");
    let refused = |dsn: &str| Worker::as_user(&["open", dsn], STRANGER, STRANGER).and_then_line("refused");
    assert_eq!(refused(&store.dsn), format!("{:?}", ErrorKind::StoreUnavailable));
    // A directory the stranger cannot write to.
    let beside = store.dsn.replace("/store?", "/other?");
    assert_eq!(refused(&beside), format!("{:?}", ErrorKind::StoreUnavailable));
    // A store the stranger made where ours would be is refused, never used.
    let squatted = tempfile::tempdir_in(shared_memory())?;
    std::fs::set_permissions(squatted.path(), std::fs::Permissions::from_mode(0o1777))?;
    let dsn = dsn_in(&squatted, "");
    assert_eq!(Worker::as_user(&["open", &dsn], STRANGER, STRANGER).and_then_line("open"), "");
    let error = Engine::open(&dsn).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains(&format!("belongs to user {STRANGER}")), "{error}");
    Ok(())
}

fn shared_by_group() -> Result {
    if !is_root() {
        return Err("this test becomes another user, which needs root".into());
    }
    const GROUP: u32 = 4300;
    let store = Store::with(&format!("group={GROUP}"));
    std::fs::set_permissions(store.directory.path(), std::fs::Permissions::from_mode(0o711))?;
    let session = store.session("s");
    let mut member = Worker::as_user(&["ask", &store.dsn, "s", "60000"], STRANGER, GROUP);
    let id: i64 = member.line("id").parse()?;
    session.deliver_response(id, "\"yes\"")?;
    assert_eq!(member.line("answer"), "\"yes\"");
    let outsider = Worker::as_user(&["open", &store.dsn], STRANGER, STRANGER);
    assert_eq!(outsider.and_then_line("refused"), format!("{:?}", ErrorKind::StoreUnavailable));
    for (path, mode) in [("", 0o770), ("stamp", 0o660), ("1", 0o770), ("1/data.mdb", 0o660), ("1/bell", 0o660)] {
        let found = store.path().join(path).metadata()?.permissions().mode() & 0o777;
        assert_eq!(found, mode, "{path} has mode {found:o}");
    }
    Ok(())
}

// --- What the tests are made of ---

/// A new store and an engine on it.
struct Store {
    dsn: String,
    engine: Engine,
    directory: TempDir,
}

impl Store {
    fn new() -> Self {
        Self::with("")
    }

    fn with(options: &str) -> Self {
        let directory = tempfile::tempdir_in(shared_memory()).expect("a directory");
        let dsn = dsn_in(&directory, options);
        let engine = Engine::open(&dsn).expect("a new store opens");
        Self { dsn, engine, directory }
    }

    fn session(&self, id: &str) -> Session {
        let new = NewSession { id: Some(id.into()), ..NewSession::default() };
        self.engine.create_session(new).expect("the store works").expect("the id is free")
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("the directory is there").join("store")
    }
}

/// A store that holds one session, `s`, with an owner and a pending request; no process has it open.
struct Damaged {
    dsn: String,
    path: PathBuf,
    _directory: TempDir,
}

impl Damaged {
    fn new() -> Self {
        Self::with("durability=none")
    }

    fn with(options: &str) -> Self {
        Self::left_by(options, &[])
    }

    fn left_by(options: &str, environment: &[(&str, String)]) -> Self {
        let directory = tempfile::tempdir_in(shared_memory()).expect("a directory");
        let path = directory.path().canonicalize().expect("the directory is there").join("store");
        let dsn = format!("file://{}?{options}", path.display());
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert!(Worker::start_with(&["leave", &dsn, "s"], &environment).finish().success());
        Self { dsn, path, _directory: directory }
    }

    fn sessions(&self) -> Result<u64> {
        let mut worker = Worker::start(&["count", &self.dsn]);
        Ok(worker.line("sessions").parse()?)
    }

    fn stamp(&self) -> String {
        std::fs::read_to_string(self.path.join("stamp")).expect("a stamp")
    }

    fn set_stamp(&self, field: &str, value: serde_json::Value) {
        let mut stamp: serde_json::Value = serde_json::from_str(&self.stamp()).expect("a stamp is JSON");
        stamp[field] = value;
        std::fs::write(self.path.join("stamp"), stamp.to_string()).expect("the stamp can be written");
    }
}
