//! G1 to G9 between processes of one machine.

use std::collections::HashSet;
use std::time::Duration;

use mcp_state::{Claim, Delivery, LateReason, OwnerKind, OwnerToken};

use crate::common::process::Worker;
use crate::workers::{REQUEST, Test, shared};
use crate::{Random, Result, Store, works};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("g1_eight_processes_lose_no_update", g1_no_lost_update),
    ("g1_two_processes_alternate_on_one_session", g1_alternate),
    ("g2_of_eight_answers_from_eight_processes_one_is_delivered", g2_one_resolution),
    ("g5_ids_of_eight_processes_are_unique", g5_unique_ids),
    ("g7_a_request_that_still_runs_brings_nothing_back", g7_destroyed_is_final),
    ("g8_kills_of_clients_under_load_leave_nothing_half_done", g8_kills_of_clients),
    ("each_of_eight_processes_on_one_session_gets_its_rounds_done", nobody_starves),
    ("g9_an_answer_in_one_process_wakes_the_waiter_in_another", g9_an_answer_wakes),
    ("g9_destroy_wakes_every_owner_of_the_session", g9_destroy_wakes),
    ("a_child_of_a_fork_connects_anew", fork_after_use),
];

fn g1_no_lost_update() -> Result {
    let store = Store::new();
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
    store.is_sound()
}

fn g1_alternate() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let mut other = Worker::start(&["turns", &store.dsn, "s"]);
    let owner = OwnerToken::parse(&other.line("owner"))?;
    let mut turn = |line: String| {
        other.tell(&line);
        other.line("did")
    };
    for round in 0..50 {
        let id: i64 = turn("send".into()).parse()?;
        assert_eq!(session.deliver_response(id, "\"yes\"")?, Delivery::Delivered, "round {round}");
        assert_eq!(turn("take".into()), "1");
        assert_eq!(session.deliver_response(id, "\"no\"")?, Delivery::Late(LateReason::AlreadyAnswered));
        assert_eq!(turn(format!("claim {id}")), format!("{:?}", Claim::Answered("\"yes\"".into())));
        let count = 2 * round;
        let current = (count > 0).then(|| count.to_string());
        let next = (count + 1).to_string();
        assert!(session.attributes().compare_and_set("turns", current.as_deref(), Some(&next))?);
        assert_eq!(turn(format!("count {next}")), "true");
        session.enqueue_outgoing(&owner, "{}", "")?;
        assert_eq!(turn("take".into()), "1");
    }
    assert_eq!(session.attributes().get("turns")?.as_deref(), Some("100"));
    store.is_sound()
}

fn g2_one_resolution() -> Result {
    let store = Store::new();
    let session = store.session("s");
    let owner = session.attach(OwnerKind::Stream, None)?;
    let id = session.send_request(&owner, REQUEST, "", 60_000)?;
    let mut workers: Vec<_> = (0..8).map(|_| Worker::start(&["deliver", &store.dsn, "s", &id.to_string()])).collect();
    for worker in &mut workers {
        worker.line("ready");
    }
    for worker in &mut workers {
        worker.tell("go");
    }
    let mut outcomes: Vec<_> = workers.into_iter().map(|worker| worker.and_then_line("delivery")).collect();
    outcomes.sort();
    assert_eq!(outcomes[0], format!("{:?}", Delivery::Delivered));
    for late in &outcomes[1..] {
        assert_eq!(*late, format!("{:?}", Delivery::Late(LateReason::AlreadyAnswered)));
    }
    assert_eq!(session.claim(&owner, id)?, Claim::Answered("\"yes\"".into()));
    assert_eq!(session.claim(&owner, id)?, Claim::Unknown);
    Ok(())
}

fn g5_unique_ids() -> Result {
    let store = Store::new();
    store.session("s");
    let mut workers: Vec<_> = (0..8).map(|_| Worker::start(&["ids", &store.dsn, "s"])).collect();
    let mut ids = HashSet::new();
    for worker in &mut workers {
        for _ in 0..100 {
            assert!(ids.insert(worker.line("id")));
        }
    }
    Ok(())
}

fn g7_destroyed_is_final() -> Result {
    let store = Store::new();
    for comes_back in [false, true] {
        let session = store.session("s");
        let mut running = Worker::start(&["linger", &store.dsn, "s"]);
        running.line("attached");
        assert!(session.destroy()?);
        let again = comes_back.then(|| store.session("s"));
        running.tell("go on");
        let gone = "Err(SessionNotFound)";
        assert_eq!(running.line("late"), format!("[{gone}, {gone}, {gone}, {gone}]"), "comes back: {comes_back}");
        match again {
            None => assert!(store.engine.open_session("s", None)?.is_none()),
            Some(again) => {
                assert_eq!(again.attributes().get("late")?, None);
                assert_eq!(again.stats()?.owners, 0);
            }
        }
    }
    store.is_sound()
}

fn g8_kills_of_clients() -> Result {
    const WRITERS: usize = 6;
    let store = Store::new();
    let sessions = ["a", "b"].map(|id| store.session(id));
    let start = |number: usize| {
        let id = if number.is_multiple_of(2) { "a" } else { "b" };
        let mut worker = Worker::start(&["rounds", &store.dsn, id]);
        worker.line("started");
        worker
    };
    let mut writers: Vec<Worker> = (0..WRITERS).map(start).collect();
    let mut random = Random(0x2545_f491_4f6c_dd17);
    for kill in 0..40 {
        // A survivor that is blocked would block this round, too. Each of the killed leaves an owner, so the limit nears.
        works(&sessions[kill % 2])?;
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        let victim = random.below(WRITERS as u64) as usize;
        let mut killed = std::mem::replace(&mut writers[victim], start(WRITERS + kill));
        killed.kill();
        assert!(killed.complaint().is_none(), "{:?}", killed.complaint());
    }
    for mut writer in writers {
        writer.kill();
        assert!(writer.complaint().is_none());
    }
    store.is_sound()
}

fn nobody_starves() -> Result {
    let store = Store::new();
    store.session("s");
    let worker = |_| Worker::start(&["so_many_rounds", &store.dsn, "s", "50"]);
    let mut workers: Vec<_> = (0..8).map(worker).collect();
    for worker in &mut workers {
        worker.line("ready");
    }
    for worker in &mut workers {
        worker.tell("go");
    }
    for worker in workers {
        assert!(worker.finish().success());
    }
    store.is_sound()
}

fn g9_an_answer_wakes() -> Result {
    let store = Store::new();
    shared::an_answer_wakes(&store.dsn, &store.session("s"))
}

fn g9_destroy_wakes() -> Result {
    let store = Store::new();
    shared::destroy_wakes(&store.dsn, &store.session("s"))
}

fn fork_after_use() -> Result {
    let store = Store::new();
    shared::a_fork_after_use(&store.dsn, &store.session("s"))
}
