//! The checker is checked: histories by hand, of which the bad ones must be refused for their reason and the good ones pass.

use libtest_mimic::{Failed, Trial};

use crate::check::violations;
use crate::history::{Call, Claimed, Death, History, Message, Nanos, Op, Outcome};

/// Calls one after another, ten nanoseconds apart; a call of this process.
struct Story {
    history: History,
    time: Nanos,
}

impl Story {
    fn new() -> Self {
        Self { history: History::default(), time: 1_000_000_000 }
    }

    fn then(self, op: Op, outcome: Outcome) -> Self {
        self.by(1, op, Some(outcome))
    }

    fn by(mut self, process: u32, op: Op, outcome: Option<Outcome>) -> Self {
        let start = self.time;
        self.time += 10;
        self.history.calls.push(Call { process, session: "s".into(), op, start, end: start + 5, outcome });
        self
    }

    /// The last call begins when the one before it began.
    fn meanwhile(mut self) -> Self {
        let [.., before, last] = &mut self.history.calls[..] else { panic!("two calls") };
        last.start = before.start;
        self
    }

    fn attach(self, owner: &str, stream: bool) -> Self {
        self.then(Op::Attach { stream }, Outcome::Owner(owner.into()))
    }

    fn send(self, owner: &str, id: i64) -> Self {
        self.then(Op::Send { owner: owner.into(), timeout_ms: 60_000 }, Outcome::Id(id))
    }

    fn dies(mut self, process: u32) -> Self {
        self.history.deaths.insert(process, Death { earliest: self.time, latest: self.time + 1 });
        self.time += 10;
        self
    }

    fn later(mut self, millis: u64) -> Self {
        self.time += millis * 1_000_000;
        self
    }

    fn refused_for(self, reason: &str) -> Result<(), Failed> {
        let found = violations(&self.history);
        match &found[..] {
            [] => Err("it passes".into()),
            found if found.iter().any(|violation| violation.what.contains(reason)) => Ok(()),
            found => Err(format!("it is refused for another reason: {:?}", found[0].what).into()),
        }
    }

    fn passes(self) -> Result<(), Failed> {
        match &violations(&self.history)[..] {
            [] => Ok(()),
            [violation, ..] => Err(format!("{violation:?}").into()),
        }
    }
}

fn key() -> String {
    "k".into()
}

fn a() -> String {
    "a".into()
}

fn b() -> String {
    "b".into()
}

fn claimed(claim: Claimed) -> Outcome {
    Outcome::Claimed(claim)
}

pub fn trials() -> Vec<Trial> {
    type Test = fn() -> Result<(), Failed>;
    let refused: Vec<(&str, Test)> = vec![
        ("a_lost_update", || {
            let story = Story::new().then(Op::Set(key(), 1), Outcome::Done).then(Op::Set(key(), 2), Outcome::Done);
            story.then(Op::Get(key()), Outcome::Value(Some(1))).refused_for("G1")
        }),
        ("two_winners_of_one_comparison", || {
            let story = Story::new().then(Op::CompareAndSet(key(), None, 1), Outcome::Whether(true));
            story.then(Op::CompareAndSet(key(), None, 2), Outcome::Whether(true)).meanwhile().refused_for("G1")
        }),
        ("an_attribute_taken_twice", || {
            let story = Story::new().then(Op::Set(key(), 1), Outcome::Done);
            let story = story.then(Op::TakeAttribute(key()), Outcome::Value(Some(1)));
            story.then(Op::TakeAttribute(key()), Outcome::Value(Some(1))).meanwhile().refused_for("G1")
        }),
        ("a_response_claimed_twice", || {
            let story = Story::new().attach("a", true).send("a", 7).then(Op::Deliver(7, 1), Outcome::Delivered);
            let story = story.then(Op::Claim(a(), 7), claimed(Claimed::Answered(1)));
            story.then(Op::Claim(a(), 7), claimed(Claimed::Answered(1))).refused_for("G2")
        }),
        ("a_response_lost", || {
            let story = Story::new().attach("a", true).send("a", 7).then(Op::Deliver(7, 1), Outcome::Delivered);
            story.then(Op::Claim(a(), 7), claimed(Claimed::Waiting)).refused_for("G2")
        }),
        ("a_request_answered_and_timed_out", || {
            let story = Story::new().attach("a", true).send("a", 7).then(Op::Deliver(7, 1), Outcome::Delivered);
            story.later(90_000).then(Op::Claim(a(), 7), claimed(Claimed::TimedOut)).refused_for("G2")
        }),
        ("a_timeout_too_early", || {
            let story = Story::new().attach("a", true).send("a", 7).later(50_000);
            story.then(Op::Claim(a(), 7), claimed(Claimed::TimedOut)).refused_for("G2")
        }),
        ("a_late_response_delivered", || {
            let story = Story::new().attach("a", true).send("a", 7).later(60_100);
            story.then(Op::Deliver(7, 1), Outcome::Delivered).refused_for("G2")
        }),
        ("a_response_delivered_twice", || {
            let story = Story::new().attach("a", true).send("a", 7).then(Op::Deliver(7, 1), Outcome::Delivered);
            story.then(Op::Deliver(7, 2), Outcome::Delivered).refused_for("G2")
        }),
        ("a_response_delivered_to_a_dead_process", || {
            let story = Story::new().attach("a", true).send("a", 7).dies(1);
            story.by(2, Op::Deliver(7, 1), Some(Outcome::Delivered)).refused_for("G2")
        }),
        ("a_response_claimed_by_another_owner", || {
            let story = Story::new().attach("a", true).attach("b", true).send("a", 7);
            let story = story.then(Op::Deliver(7, 1), Outcome::Delivered);
            story.then(Op::Claim(b(), 7), claimed(Claimed::Answered(1))).refused_for("G2")
        }),
        ("a_request_abandoned_while_its_owner_lives", || {
            let story = Story::new().attach("a", true).send("a", 7);
            story.then(Op::Deliver(7, 1), Outcome::Late("abandoned".into())).refused_for("G2")
        }),
        ("an_id_given_out_twice", || {
            let story = Story::new().attach("a", true).send("a", 7);
            story.then(Op::NextId, Outcome::Id(7)).refused_for("G5")
        }),
        ("a_message_to_the_wrong_owner", || {
            let story = Story::new().attach("a", false).attach("b", false);
            let story = story.then(Op::Enqueue(a(), 1), Outcome::Number(1));
            let seen = Outcome::Messages(vec![(1, Message::Direct(1))]);
            story.then(Op::Take(b(), 9), seen).refused_for("G3")
        }),
        ("a_message_taken_twice", || {
            let seen = || Outcome::Messages(vec![(1, Message::Direct(1))]);
            let story = Story::new().attach("a", false).then(Op::Enqueue(a(), 1), Outcome::Number(1));
            let story = story.then(Op::Take(a(), 9), seen());
            story.then(Op::Take(a(), 9), seen()).meanwhile().refused_for("G3")
        }),
        ("a_message_lost", || {
            let story = Story::new().attach("a", false).then(Op::Enqueue(a(), 1), Outcome::Number(1));
            story.then(Op::Take(a(), 9), Outcome::Messages(vec![])).refused_for("G3")
        }),
        ("messages_out_of_order", || {
            let story = Story::new().attach("a", false).then(Op::Enqueue(a(), 1), Outcome::Number(1));
            let story = story.then(Op::Enqueue(a(), 2), Outcome::Number(2));
            let seen = Outcome::Messages(vec![(2, Message::Direct(2)), (1, Message::Direct(1))]);
            story.then(Op::Take(a(), 9), seen).refused_for("G3")
        }),
        ("a_message_dropped_and_not_counted", || {
            let story = Story::new().attach("a", false).then(Op::Enqueue(a(), 1), Outcome::Number(1));
            story.then(Op::Detach(a()), Outcome::Detached { dropped: 0 }).refused_for("G3")
        }),
        ("a_living_owner_released", || {
            let story = Story::new().attach("a", false);
            story.then(Op::Take(a(), 9), Outcome::OwnerExpired).refused_for("G3")
        }),
        ("a_broadcast_taken_by_two_streams", || {
            let seen = || Outcome::Messages(vec![(1, Message::Broadcast(1))]);
            let story = Story::new().attach("a", true).attach("b", true).then(Op::Broadcast(1), Outcome::Number(1));
            story.then(Op::Take(a(), 9), seen()).then(Op::Take(b(), 9), seen()).refused_for("taken twice")
        }),
        ("a_broadcast_taken_by_a_reply", || {
            let story = Story::new().attach("a", false).then(Op::Broadcast(1), Outcome::Number(1));
            let seen = Outcome::Messages(vec![(1, Message::Broadcast(1))]);
            story.then(Op::Take(a(), 9), seen).refused_for("a reply got")
        }),
        ("a_broadcast_lost", || {
            let story = Story::new().attach("a", true).then(Op::Broadcast(1), Outcome::Number(1));
            story.then(Op::Take(a(), 9), Outcome::Messages(vec![])).refused_for("is lost")
        }),
        ("equal_ids_in_flight_although_rejected", || {
            let begin = |owner: &str| Op::Begin { owner: owner.into(), id: 1, reject: true };
            let story = Story::new().attach("a", false).attach("b", false).then(begin("a"), Outcome::Whether(true));
            story.then(begin("b"), Outcome::Whether(true)).meanwhile().refused_for("G6")
        }),
        ("an_id_refused_that_is_free", || {
            let begin = Op::Begin { owner: a(), id: 1, reject: true };
            Story::new().attach("a", false).then(begin, Outcome::Whether(false)).refused_for("G6")
        }),
        ("a_cancellation_of_one_of_several", || {
            let begin = |owner: &str| Op::Begin { owner: owner.into(), id: 1, reject: false };
            let story = Story::new().attach("a", false).attach("b", false).then(begin("a"), Outcome::Whether(true));
            let story = story.then(begin("b"), Outcome::Whether(true));
            story.then(Op::CancelRequest(1), Outcome::Cancelled(a())).refused_for("G6")
        }),
        ("a_write_after_destroy", || {
            let story =
                Story::new().then(Op::Set(key(), 1), Outcome::Done).then(Op::Destroy(0), Outcome::Whether(true));
            story.then(Op::Set(key(), 2), Outcome::Done).refused_for("G7")
        }),
        ("a_session_lost", || {
            let story = Story::new().then(Op::Set(key(), 1), Outcome::Done);
            story.then(Op::Get(key()), Outcome::SessionNotFound).refused_for("is lost")
        }),
        ("a_write_of_an_old_incarnation", || {
            let story = Story::new().then(Op::Create(1), Outcome::Whether(true));
            let story = story.then(Op::Destroy(1), Outcome::Whether(true)).then(Op::Create(2), Outcome::Whether(true));
            story.then(Op::Write(1, 5), Outcome::Done).refused_for("G7")
        }),
        ("a_value_of_an_old_incarnation", || {
            let story = Story::new().then(Op::Create(1), Outcome::Whether(true)).then(Op::Write(1, 5), Outcome::Done);
            let story = story.then(Op::Destroy(1), Outcome::Whether(true)).then(Op::Create(2), Outcome::Whether(true));
            story.then(Op::Read(2), Outcome::Value(Some(5))).refused_for("G7")
        }),
        ("an_operation_of_the_dead", || {
            // The process was dead before the value was read, and the value is written afterwards.
            let story = Story::new().by(9, Op::Set(key(), 1), None).then(Op::Get(key()), Outcome::Value(None));
            story.then(Op::Get(key()), Outcome::Value(Some(1))).refused_for("G1")
        }),
        ("an_operation_that_failed", || {
            Story::new().then(Op::Get(key()), Outcome::Failed("full".into())).refused_for("full")
        }),
    ];
    let passing: Vec<(&str, Test)> = vec![
        ("operations_at_once_in_either_order", || {
            let story = Story::new().then(Op::Set(key(), 1), Outcome::Done).then(Op::Set(key(), 2), Outcome::Done);
            story.meanwhile().then(Op::Get(key()), Outcome::Value(Some(1))).passes()
        }),
        ("an_operation_of_a_killed_process_that_happened", || {
            let story = Story::new().by(9, Op::Set(key(), 1), None).then(Op::Get(key()), Outcome::Value(Some(1)));
            story.meanwhile().passes()
        }),
        ("an_operation_of_a_killed_process_that_did_not", || {
            let story = Story::new().by(9, Op::Set(key(), 1), None).then(Op::Get(key()), Outcome::Value(None));
            story.then(Op::Get(key()), Outcome::Value(None)).passes()
        }),
        ("a_round", || {
            let seen = Outcome::Messages(vec![(1, Message::Request(7))]);
            let story = Story::new().attach("a", true).send("a", 7).then(Op::Take(a(), 9), seen);
            let story = story.then(Op::Deliver(7, 1), Outcome::Delivered);
            let story = story.then(Op::Deliver(7, 2), Outcome::Late("already_answered".into()));
            let story = story.then(Op::ClaimAny(a()), Outcome::Resolved(Some((7, Claimed::Answered(1)))));
            let story = story.then(Op::Deliver(7, 3), Outcome::Late("finished".into()));
            story.then(Op::Detach(a()), Outcome::Detached { dropped: 0 }).passes()
        }),
        ("a_request_of_a_dead_process", || {
            let story = Story::new().attach("a", true).send("a", 7).dies(1);
            story.by(2, Op::Deliver(7, 1), Some(Outcome::Late("abandoned".into()))).passes()
        }),
        ("a_message_acknowledged", || {
            let seen = || Outcome::Messages(vec![(1, Message::Direct(1)), (2, Message::Broadcast(2))]);
            let story = Story::new().attach("a", true).then(Op::Enqueue(a(), 1), Outcome::Number(1));
            let story = story.then(Op::Broadcast(2), Outcome::Number(1));
            let story = story.then(Op::Peek(a(), 9), seen()).then(Op::Peek(a(), 9), seen());
            let story = story.then(Op::Acknowledge(a(), 2), Outcome::Number(2));
            story.then(Op::Take(a(), 9), Outcome::Messages(vec![])).passes()
        }),
    ];
    let refused = refused.into_iter().map(|(name, test)| Trial::test(format!("refused::{name}"), test));
    refused.chain(passing.into_iter().map(|(name, test)| Trial::test(format!("passes::{name}"), test))).collect()
}
