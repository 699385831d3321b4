//! What a history must satisfy: each object of a session is linearizable (G1 to G6), nothing is lost or taken twice (G2, G3),
//! ids are never shared (G5), and nothing is done in a session that has ended (G7).

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Call, Claimed, History, Message, Nanos, Op, Outcome};
use crate::linear::{Spec, is_linearizable};

/// A part of a history that cannot be.
#[derive(Debug)]
pub struct Violation {
    pub what: String,
    pub calls: Vec<Call>,
}

/// What times are off by: the store counts whole milliseconds.
const SLACK: Nanos = 2_000_000;

/// Everything that is wrong with the history.
pub fn violations(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut sessions: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in &history.calls {
        sessions.entry(&call.session).or_default().push(call);
        if let Some(Outcome::Failed(why)) = &call.outcome {
            found.push(violation(format!("an operation failed: {why}"), [call]));
        }
    }
    for (id, calls) in sessions {
        let owners = Owners::of(&calls, history);
        let session = SessionCalls { id, calls: &calls, owners: &owners };
        session.lifecycle(&mut found);
        session.ids(&mut found);
        session.broadcasts(&mut found);
        session.objects(&mut found);
    }
    found
}

fn violation<'c>(what: String, calls: impl IntoIterator<Item = &'c Call>) -> Violation {
    Violation { what, calls: calls.into_iter().cloned().collect() }
}

/// The owners of a session: whose they are, and when their processes died.
pub struct Owners<'h> {
    owners: BTreeMap<&'h str, (bool, Option<crate::history::Death>)>,
}

impl<'h> Owners<'h> {
    fn of(calls: &[&'h Call], history: &History) -> Self {
        let attached = calls.iter().filter_map(|call| match (&call.op, &call.outcome) {
            (Op::Attach { stream }, Some(Outcome::Owner(token))) => {
                Some((token.as_str(), (*stream, history.deaths.get(&call.process).copied())))
            }
            _ => None,
        });
        Self { owners: attached.collect() }
    }

    fn is_stream(&self, owner: &str) -> bool {
        self.owners.get(owner).is_none_or(|(stream, _)| *stream)
    }

    /// Whether the owner's process may be dead by the time the call ends.
    fn may_be_dead(&self, owner: &str, call: &Call) -> bool {
        match self.owners.get(owner) {
            Some((_, Some(death))) => death.earliest <= call.end,
            Some((_, None)) => false,
            None => true,
        }
    }

    /// Whether it was dead before the call began.
    fn is_dead(&self, owner: &str, call: &Call) -> bool {
        matches!(self.owners.get(owner), Some((_, Some(death))) if death.latest < call.start)
    }
}

struct SessionCalls<'s, 'h> {
    id: &'s str,
    calls: &'s [&'h Call],
    owners: &'s Owners<'h>,
}

impl SessionCalls<'_, '_> {
    /// Whether the id of the session is used again: such sessions have histories of incarnations instead.
    fn is_reused(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.op, Op::Create(_)))
    }

    fn lifecycle(&self, found: &mut Vec<Violation>) {
        if self.is_reused() {
            if is_linearizable(&Incarnations, self.calls) != Ok(true) {
                found.push(violation(format!("G7: incarnations of {}", self.id), self.calls.iter().copied()));
            }
            return;
        }
        let destroyed: Vec<_> = self.calls.iter().filter(|call| matches!(call.op, Op::Destroy(_))).collect();
        let earliest = destroyed.iter().map(|call| call.start).min().unwrap_or(Nanos::MAX);
        let done = destroyed.iter().filter(|call| call.outcome.is_some()).map(|call| call.end).min();
        let latest = done.unwrap_or(Nanos::MAX);
        for call in self.calls.iter().filter(|call| !matches!(call.op, Op::Destroy(_))) {
            let not_found = call.outcome == Some(Outcome::SessionNotFound);
            if call.outcome.is_some() && !not_found && call.start > latest {
                found.push(violation(format!("G7: {} was destroyed before this", self.id), [*call]));
            }
            if not_found && call.end < earliest {
                found.push(violation(format!("{} is lost", self.id), [*call]));
            }
        }
    }

    fn ids(&self, found: &mut Vec<Violation>) {
        let mut seen: BTreeMap<i64, &Call> = BTreeMap::new();
        for call in self.calls {
            if let (Op::NextId | Op::Send { .. }, Some(Outcome::Id(id))) = (&call.op, &call.outcome)
                && let Some(before) = seen.insert(*id, call)
            {
                found.push(violation(format!("G5: id {id} was given out twice in {}", self.id), [before, *call]));
            }
        }
    }

    /// Each broadcast is taken once, by a stream; none is lost.
    fn broadcasts(&self, found: &mut Vec<Violation>) {
        let mut taken: BTreeMap<u64, Vec<&Call>> = BTreeMap::new();
        let mut peeked: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        let mut maybe_taken = false;
        for call in self.calls {
            let (Op::Take(owner, _) | Op::Peek(owner, _) | Op::Acknowledge(owner, _)) = &call.op else { continue };
            let Some(outcome) = &call.outcome else {
                maybe_taken |= self.owners.is_stream(owner);
                continue;
            };
            if let Outcome::Messages(messages) = outcome {
                for (sequence, message) in messages {
                    let Message::Broadcast(number) = message else { continue };
                    if !self.owners.is_stream(owner) {
                        found.push(violation(format!("G3: a reply got broadcast {number} of {}", self.id), [*call]));
                    }
                    match &call.op {
                        Op::Take(..) => taken.entry(*number).or_default().push(call),
                        _ => drop(peeked.insert((owner, *sequence), *number)),
                    }
                }
            }
        }
        for call in self.calls {
            if let (Op::Acknowledge(owner, up_to), Some(Outcome::Number(count))) = (&call.op, &call.outcome) {
                for sequence in up_to.saturating_sub(count.saturating_sub(1))..=*up_to {
                    if *count > 0
                        && let Some(number) = peeked.get(&(owner.as_str(), sequence))
                    {
                        taken.entry(*number).or_default().push(call);
                    }
                }
            }
        }
        for (number, calls) in taken.iter().filter(|(_, calls)| calls.len() > 1) {
            found.push(violation(
                format!("G3: broadcast {number} of {} was taken twice", self.id),
                calls.iter().copied(),
            ));
        }
        // A session that was destroyed took its broadcasts with it, and a process that died may have taken one for itself.
        if maybe_taken || self.calls.iter().any(|call| matches!(call.op, Op::Destroy(_))) {
            return;
        }
        let sent = self.calls.iter().filter(|call| matches!(call.outcome, Some(Outcome::Number(_))));
        for call in sent {
            if let Op::Broadcast(number) = call.op
                && !taken.contains_key(&number)
            {
                found.push(violation(format!("broadcast {number} of {} is lost", self.id), [*call]));
            }
        }
    }

    /// Attributes, queues, requests, requests in flight: each on its own.
    fn objects(&self, found: &mut Vec<Violation>) {
        let mut registers: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
        let mut queues: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
        let mut requests: BTreeMap<i64, Vec<&Call>> = BTreeMap::new();
        let mut in_flight: BTreeMap<i64, Vec<&Call>> = BTreeMap::new();
        let nothing_done = [Some(Outcome::SessionNotFound), Some(Outcome::Refused)];
        let there = self.calls.iter().copied().filter(|call| !nothing_done.contains(&call.outcome));
        let calls: Vec<&Call> = there.collect();
        for call in &calls {
            match &call.op {
                Op::Get(key) | Op::Set(key, _) | Op::CompareAndSet(key, ..) | Op::TakeAttribute(key) => {
                    registers.entry(key).or_default().push(call);
                }
                Op::Enqueue(owner, _) | Op::Take(owner, _) | Op::Peek(owner, _) | Op::Acknowledge(owner, _) => {
                    queues.entry(owner).or_default().push(call);
                }
                Op::Begin { id, .. } | Op::Finish(_, id) | Op::CancelRequest(id) => {
                    in_flight.entry(*id).or_default().push(call);
                }
                _ => {}
            }
            for id in ids_of(call) {
                requests.entry(id).or_default().push(call);
            }
            if let Op::Send { owner, .. } | Op::Detach(owner) = &call.op {
                queues.entry(owner).or_default().push(call);
            }
        }
        // The end of an owner ends what it holds; a send or a claim that nobody knows the end of may be of any request.
        let detached: Vec<&Call> = calls.iter().copied().filter(|call| matches!(call.op, Op::Detach(_))).collect();
        let unknown: Vec<&Call> = calls.iter().copied().filter(|call| call.outcome.is_none()).collect();
        for (key, calls) in registers {
            self.check(&Register, format!("G1: attribute {key}"), &calls, found);
        }
        for (owner, calls) in queues {
            self.check(&Queue { owner, owners: self.owners }, format!("G3: messages of {owner}"), &calls, found);
        }
        for (id, mut calls) in requests {
            let owner = calls.iter().find_map(|call| match &call.op {
                Op::Send { owner, .. } => Some(owner.as_str()),
                _ => None,
            });
            calls.extend(unknown.iter().copied().filter(|call| match &call.op {
                Op::Send { .. } => owner.is_none(),
                Op::ClaimAny(by) | Op::ResolveTimeouts(by) => owner.is_none_or(|owner| owner == by),
                _ => false,
            }));
            calls.extend(
                detached
                    .iter()
                    .copied()
                    .filter(|call| matches!(&call.op, Op::Detach(by) if owner.is_none_or(|owner| owner == by))),
            );
            self.check(&Request { id, owners: self.owners }, format!("G2: request {id}"), &calls, found);
        }
        for (id, mut calls) in in_flight {
            let holders: BTreeSet<&str> = calls
                .iter()
                .filter_map(|call| match &call.op {
                    Op::Begin { owner, .. } => Some(owner.as_str()),
                    _ => None,
                })
                .collect();
            calls.extend(
                detached
                    .iter()
                    .copied()
                    .filter(|call| matches!(&call.op, Op::Detach(by) if holders.contains(by.as_str()))),
            );
            self.check(&InFlight { owners: self.owners }, format!("G6: requests in flight as {id}"), &calls, found);
        }
    }

    fn check<S: Spec>(&self, spec: &S, what: String, calls: &[&Call], found: &mut Vec<Violation>) {
        let verdict = match is_linearizable(spec, calls) {
            Ok(true) => return,
            Ok(false) => "has no order in which it could have happened",
            Err(why) => why,
        };
        let mut calls = calls.to_vec();
        calls.sort_by_key(|call| call.start);
        found.push(violation(format!("{what} of {}: {verdict}", self.id), calls));
    }
}

/// The requests of the server that a call has to do with.
fn ids_of(call: &Call) -> Vec<i64> {
    match (&call.op, &call.outcome) {
        (Op::Deliver(id, _) | Op::Claim(_, id) | Op::CancelPending(_, id), _) => vec![*id],
        (Op::Send { .. } | Op::NextId, Some(Outcome::Id(id))) => vec![*id],
        (Op::ClaimAny(_), Some(Outcome::Resolved(Some((id, _))))) => vec![*id],
        (Op::ResolveTimeouts(_), Some(Outcome::Ids(ids))) => ids.clone(),
        _ => Vec::new(),
    }
}

/// One attribute.
struct Register;

impl Spec for Register {
    type State = Option<u64>;

    fn initial(&self) -> Option<u64> {
        None
    }

    fn apply(&self, state: &Option<u64>, call: &Call) -> Vec<Option<u64>> {
        let (after, outcome) = match call.op {
            Op::Get(_) => (*state, Outcome::Value(*state)),
            Op::Set(_, value) => (Some(value), Outcome::Done),
            Op::CompareAndSet(_, expected, value) if expected == *state => (Some(value), Outcome::Whether(true)),
            Op::CompareAndSet(..) => (*state, Outcome::Whether(false)),
            Op::TakeAttribute(_) => (None, Outcome::Value(*state)),
            _ => return Vec::new(),
        };
        if call.outcome.as_ref().is_none_or(|seen| *seen == outcome) { vec![after] } else { Vec::new() }
    }
}

/// The messages of one owner, broadcasts apart: first in, first out.
struct Queue<'s, 'h> {
    owner: &'s str,
    owners: &'s Owners<'h>,
}

/// Messages, each with its sequence number once it is known; nothing when the owner has ended.
type Messages = Option<Vec<(Option<u64>, Option<Message>)>>;

impl Spec for Queue<'_, '_> {
    type State = Messages;

    fn initial(&self) -> Messages {
        Some(Vec::new())
    }

    fn apply(&self, state: &Messages, call: &Call) -> Vec<Messages> {
        let Some(queue) = state else {
            // A detached owner has no messages and gets none.
            let ended = match (&call.op, &call.outcome) {
                (_, None | Some(Outcome::OwnerExpired)) => true,
                (Op::Detach(_), Some(outcome)) => *outcome == Outcome::Done,
                _ => false,
            };
            return if ended { vec![None] } else { Vec::new() };
        };
        if call.outcome == Some(Outcome::OwnerExpired) || (call.outcome == Some(Outcome::Done) && is_detach(call)) {
            let released = self.owners.may_be_dead(self.owner, call);
            return if released { vec![None] } else { Vec::new() };
        }
        let mut after = queue.clone();
        match (&call.op, &call.outcome) {
            (Op::Enqueue(_, message), None) => after.push((None, Some(Message::Direct(*message)))),
            (Op::Enqueue(_, message), Some(Outcome::Number(sequence))) => {
                after.push((Some(*sequence), Some(Message::Direct(*message))));
            }
            // The id is not known; whatever request is seen first is it.
            (Op::Send { .. }, None) => after.push((None, None)),
            (Op::Send { .. }, Some(Outcome::Id(id))) => after.push((None, Some(Message::Request(*id)))),
            (Op::Detach(_), None) => return vec![None],
            (Op::Detach(_), Some(Outcome::Detached { dropped })) => {
                return if *dropped == queue.len() as u64 { vec![None] } else { Vec::new() };
            }
            (Op::Peek(..), None) => {}
            (Op::Take(_, max), None) => {
                return (0..=queue.len().min(*max)).map(|count| Some(queue[count..].to_vec())).collect();
            }
            (Op::Take(_, max) | Op::Peek(_, max), Some(Outcome::Messages(seen))) => {
                let own: Vec<_> =
                    seen.iter().filter(|(_, message)| !matches!(message, Message::Broadcast(_))).collect();
                let all = own.len() == queue.len();
                let prefix = own.len() <= queue.len()
                    && after.iter_mut().zip(&own).all(|((sequence, message), (seen_as, seen))| {
                        let is_it = match message {
                            None => matches!(seen, Message::Request(_)),
                            Some(message) => message == seen && sequence.is_none_or(|sequence| sequence == *seen_as),
                        };
                        (*sequence, *message) = (Some(*seen_as), Some(*seen));
                        is_it
                    });
                if !prefix || (seen.len() < *max && !all) {
                    return Vec::new();
                }
                if matches!(call.op, Op::Take(..)) {
                    after.drain(..own.len());
                }
            }
            // Whoever acknowledges has seen the messages, so their numbers are known.
            (Op::Acknowledge(_, up_to), outcome) => {
                after.retain(|(sequence, _)| sequence.is_none_or(|sequence| sequence > *up_to));
                let removed = (queue.len() - after.len()) as u64;
                if let Some(Outcome::Number(count)) = outcome
                    && *count < removed
                {
                    return Vec::new();
                }
            }
            _ => return Vec::new(),
        }
        vec![Some(after)]
    }
}

fn is_detach(call: &Call) -> bool {
    matches!(call.op, Op::Detach(_))
}

/// One request of the server.
struct Request<'s, 'h> {
    id: i64,
    owners: &'s Owners<'h>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Fate {
    /// Nobody has sent it; whether the id was given out.
    Absent(bool),
    /// Sent by this owner; its deadline is between these.
    Waiting(Option<String>, Nanos, Nanos),
    Answered(Option<String>, u64),
    Cancelled(Option<String>),
    TimedOut(Option<String>),
    /// For this reason.
    Ended(&'static str),
}

impl Fate {
    fn owner(&self) -> Option<&Option<String>> {
        match self {
            Fate::Waiting(owner, ..) | Fate::Answered(owner, _) | Fate::Cancelled(owner) | Fate::TimedOut(owner) => {
                Some(owner)
            }
            Fate::Absent(_) | Fate::Ended(_) => None,
        }
    }
}

impl Request<'_, '_> {
    /// What the fate may have become by itself when the call happened: timed out, or abandoned with its dead owner.
    fn now(&self, state: &Fate, call: &Call) -> Vec<Fate> {
        let mut fates = Vec::new();
        match state {
            Fate::Waiting(owner, earliest, latest) => {
                if call.start <= *latest {
                    fates.push(state.clone());
                }
                if call.end >= *earliest {
                    fates.push(Fate::TimedOut(owner.clone()));
                }
            }
            _ => fates.push(state.clone()),
        }
        if let Some(owner) = state.owner()
            && owner.as_ref().is_none_or(|owner| self.owners.may_be_dead(owner, call))
        {
            let reason = match state {
                Fate::Cancelled(_) => "cancelled",
                Fate::TimedOut(_) => "timed_out",
                _ => "abandoned",
            };
            fates.push(Fate::Ended(reason));
            fates.push(Fate::Ended("timed_out"));
        }
        fates
    }

    fn claim(&self, by: &str, fate: Fate, claim: Option<Claimed>) -> Option<Fate> {
        let own = fate.owner().is_some_and(|owner| owner.as_deref().is_none_or(|owner| owner == by));
        let (right, after) = match &fate {
            Fate::Absent(_) | Fate::Ended(_) => (Claimed::Unknown, fate),
            _ if !own => (Claimed::NotOwner, fate),
            Fate::Waiting(..) => (Claimed::Waiting, fate),
            Fate::Answered(_, payload) => (Claimed::Answered(*payload), Fate::Ended("finished")),
            Fate::Cancelled(_) => (Claimed::Cancelled, Fate::Ended("cancelled")),
            Fate::TimedOut(_) => (Claimed::TimedOut, Fate::Ended("timed_out")),
        };
        claim.is_none_or(|claim| claim == right).then_some(after)
    }

    fn apply_to(&self, fate: Fate, call: &Call) -> Vec<Fate> {
        if call.outcome == Some(Outcome::OwnerExpired) {
            return vec![fate];
        }
        match (&call.op, &call.outcome) {
            (Op::NextId, _) => vec![Fate::Absent(true)],
            (Op::Send { owner, timeout_ms }, outcome) => {
                let timeout = timeout_ms * 1_000_000;
                let (earliest, latest) = (call.start + timeout, call.end + timeout);
                let sent = Fate::Waiting(Some(owner.clone()), earliest.saturating_sub(SLACK), latest + SLACK);
                match (outcome, fate) {
                    // It may have been another request that this one sent.
                    (None, Fate::Absent(given)) => vec![sent, Fate::Absent(given)],
                    (None, fate) => vec![fate],
                    (Some(_), Fate::Absent(_)) => vec![sent],
                    (Some(_), _) => Vec::new(),
                }
            }
            (Op::Detach(by), outcome) => {
                let own = fate.owner().is_some_and(|owner| owner.as_ref() == Some(by));
                match (&fate, outcome) {
                    (Fate::Waiting(..) | Fate::Answered(..), None | Some(Outcome::Detached { .. })) if own => {
                        vec![Fate::Ended("abandoned")]
                    }
                    (Fate::Cancelled(_), None | Some(Outcome::Detached { .. })) if own => {
                        vec![Fate::Ended("cancelled")]
                    }
                    (Fate::TimedOut(_), None | Some(Outcome::Detached { .. })) if own => {
                        vec![Fate::Ended("timed_out"), Fate::Ended("abandoned")]
                    }
                    _ => vec![fate],
                }
            }
            (Op::Deliver(_, payload), outcome) => {
                let owner = fate.owner().cloned().flatten();
                let is_dead = owner.as_ref().is_some_and(|owner| self.owners.is_dead(owner, call));
                let (late, after): (&[&str], _) = match &fate {
                    Fate::Waiting(owner, ..) if !is_dead => (&[], Fate::Answered(owner.clone(), *payload)),
                    Fate::Waiting(..) => (&["abandoned"], Fate::Ended("abandoned")),
                    Fate::Absent(true) => (&["finished"], fate),
                    Fate::Absent(false) => (&["unknown", "finished"], fate),
                    Fate::Answered(..) => (&["already_answered"], fate),
                    Fate::Cancelled(_) => (&["cancelled"], fate),
                    Fate::TimedOut(_) => (&["timed_out"], fate),
                    // Only so many ends are remembered; of what was given out it is known that it has finished.
                    Fate::Ended(reason) => (&[reason, "finished"], fate),
                };
                let right = match outcome {
                    None => true,
                    Some(Outcome::Delivered) => late.is_empty(),
                    Some(Outcome::Late(reason)) => late.contains(&reason.as_str()),
                    Some(_) => false,
                };
                if right { vec![after] } else { Vec::new() }
            }
            (Op::Claim(by, _), outcome) => match outcome {
                None => self.claim(by, fate, None).into_iter().collect(),
                Some(Outcome::Claimed(claim)) => self.claim(by, fate, Some(*claim)).into_iter().collect(),
                Some(_) => Vec::new(),
            },
            (Op::ClaimAny(by), outcome) => match outcome {
                // It may have been another request that it claimed.
                None => [fate.clone()].into_iter().chain(self.claim(by, fate, None)).collect(),
                Some(Outcome::Resolved(Some((_, claim)))) => self.claim(by, fate, Some(*claim)).into_iter().collect(),
                Some(_) => Vec::new(),
            },
            (Op::ResolveTimeouts(by), outcome) => match (outcome, &fate) {
                (None, Fate::TimedOut(_)) => vec![fate.clone(), Fate::Ended("timed_out")],
                (None, _) => vec![fate],
                (Some(_), _) => self.claim(by, fate, Some(Claimed::TimedOut)).into_iter().collect(),
            },
            (Op::CancelPending(by, _), outcome) => {
                let own = fate.owner().is_some_and(|owner| owner.as_deref().is_none_or(|owner| owner == by));
                let (right, after) = match &fate {
                    Fate::Absent(_) | Fate::Ended(_) => ("Unknown", fate),
                    _ if !own => ("NotOwner", fate),
                    Fate::Waiting(owner, ..) => ("Cancelled", Fate::Cancelled(owner.clone())),
                    Fate::Answered(..) => ("AlreadyAnswered", fate),
                    Fate::Cancelled(_) => ("AlreadyCancelled", fate),
                    Fate::TimedOut(_) => ("TimedOut", fate),
                };
                let seen = match outcome {
                    None => true,
                    Some(Outcome::Cancellation(seen)) => seen == right,
                    Some(_) => false,
                };
                if seen { vec![after] } else { Vec::new() }
            }
            _ => vec![fate],
        }
    }
}

impl Spec for Request<'_, '_> {
    type State = Fate;

    fn initial(&self) -> Fate {
        debug_assert!(self.id != 0, "no session gives out 0");
        Fate::Absent(false)
    }

    fn apply(&self, state: &Fate, call: &Call) -> Vec<Fate> {
        self.now(state, call).into_iter().flat_map(|fate| self.apply_to(fate, call)).collect()
    }
}

/// The requests in flight with one id.
struct InFlight<'s, 'h> {
    owners: &'s Owners<'h>,
}

impl Spec for InFlight<'_, '_> {
    /// Who holds one, and whether it was cancelled.
    type State = Vec<(String, bool)>;

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn apply(&self, state: &Self::State, call: &Call) -> Vec<Self::State> {
        let mut after = state.clone();
        let living = state.iter().filter(|(owner, _)| !self.owners.may_be_dead(owner, call)).count();
        let perhaps: Vec<usize> = (0..state.len()).filter(|&at| !self.owners.is_dead(&state[at].0, call)).collect();
        if call.outcome == Some(Outcome::OwnerExpired) {
            return vec![after];
        }
        match (&call.op, &call.outcome) {
            (Op::Begin { owner, .. }, None | Some(Outcome::Whether(true))) => {
                let refused = matches!(call.op, Op::Begin { reject: true, .. }) && living > 0;
                if refused && call.outcome.is_some() {
                    return Vec::new();
                }
                if !refused {
                    after.push((owner.clone(), false));
                }
            }
            (Op::Begin { reject, .. }, Some(Outcome::Whether(false))) => {
                if !reject || perhaps.is_empty() {
                    return Vec::new();
                }
            }
            (Op::Finish(owner, _), outcome) => {
                let at = state.iter().position(|(holder, _)| holder == owner);
                let right = Outcome::Value(at.map(|at| u64::from(state[at].1)));
                if outcome.as_ref().is_some_and(|outcome| *outcome != right) {
                    return Vec::new();
                }
                at.map(|at| after.remove(at));
            }
            (Op::Detach(owner), _) => after.retain(|(holder, _)| holder != owner),
            (Op::CancelRequest(_), None | Some(Outcome::Cancelled(_))) => {
                let owner = match &call.outcome {
                    Some(Outcome::Cancelled(owner)) => Some(owner),
                    _ => None,
                };
                let hit = perhaps.iter().filter(|&&at| owner.is_none_or(|owner| state[at].0 == *owner));
                let others = |at: usize| {
                    (0..state.len())
                        .filter(|&other| other != at && !self.owners.may_be_dead(&state[other].0, call))
                        .count()
                };
                let hits = hit.filter(|&&at| others(at) == 0).map(|&at| {
                    let mut after = state.clone();
                    after[at].1 = true;
                    after
                });
                let untouched = owner.is_none().then(|| state.clone());
                return hits.chain(untouched).collect();
            }
            (Op::CancelRequest(_), Some(Outcome::Unknown)) if living == 0 => {}
            (Op::CancelRequest(_), Some(Outcome::Ambiguous)) if perhaps.len() > 1 => {}
            _ => return Vec::new(),
        }
        vec![after]
    }
}

/// A session whose id is used again: each incarnation is named, and its name is written with whatever is written in it.
struct Incarnations;

impl Spec for Incarnations {
    /// The incarnation that is there, and what was written in it.
    type State = Option<(u64, Option<u64>)>;

    fn initial(&self) -> Self::State {
        None
    }

    fn apply(&self, state: &Self::State, call: &Call) -> Vec<Self::State> {
        let current = |name: u64| state.is_some_and(|(there, _)| there == name);
        let (after, outcome) = match call.op {
            Op::Create(name) if state.is_none() => (Some((name, None)), Outcome::Whether(true)),
            Op::Create(_) => (*state, Outcome::Whether(false)),
            Op::Write(name, value) if current(name) => (Some((name, Some(value))), Outcome::Done),
            Op::Read(name) if current(name) => (*state, Outcome::Value(state.and_then(|(_, value)| value))),
            Op::Write(..) | Op::Read(_) => (*state, Outcome::SessionNotFound),
            Op::Destroy(name) if current(name) => (None, Outcome::Whether(true)),
            Op::Destroy(_) => (*state, Outcome::Whether(false)),
            _ => return Vec::new(),
        };
        if call.outcome.as_ref().is_none_or(|seen| *seen == outcome) { vec![after] } else { Vec::new() }
    }
}
