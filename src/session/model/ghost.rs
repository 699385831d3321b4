//! What must hold, told without the state machine: plain facts about what happened, kept beside the record and never in it.
//!
//! The facts leave open what the guarantees leave open: a lease or an expiry may have been renewed up to a quarter earlier than
//! the last operation, so between the two moments either answer is right, and the checker follows it from then on.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Millis;
use crate::ids::{Digest, OwnerToken, RequestId};
use crate::process::{Liveness, Process};
use crate::session::{Claim, Handle, LateReason, OwnerKind};

pub(super) const UNIT: Millis = 1000;
pub(super) const TIMEOUT: Millis = UNIT;
pub(super) const LEASE: Millis = 4 * UNIT;
pub(super) const TTL: Millis = 8 * UNIT;
pub(super) const EVICTABLE: Millis = 4 * UNIT;
/// The longest silence of an owner, as docs/design.md has it: an hour, since the TTL here is shorter.
pub(super) const SILENCE: Millis = 3_600_000;

/// What the state machine broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) guarantee: &'static str,
    pub(super) what: String,
}

/// Whether what was asked held.
pub(super) type Kept<T = ()> = Result<T, Broken>;

/// Says that `guarantee` is broken unless `held`.
pub(super) fn keep(guarantee: &'static str, held: bool, what: impl FnOnce() -> String) -> Kept {
    if held { Ok(()) } else { Err(Broken { guarantee, what: what() }) }
}

/// What may be said of something that time ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    There,
    Gone,
    /// Either is right; what is said now holds from now on.
    Either,
}

/// The facts.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Ghost {
    pub(super) session: Option<Session>,
    /// Incarnations that have ended.
    pub(super) ended: Vec<Handle>,
    /// Whether the last of them expired, so that its record is there until it is collected or replaced.
    pub(super) lingers: bool,
    /// Counts what gets a name: nothing is named twice.
    pub(super) names: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Session {
    pub(super) handle: Handle,
    /// When an operation was last let in.
    pub(super) active: Millis,
    pub(super) owners: Vec<Owner>,
    pub(super) requests: BTreeMap<i64, Request>,
    /// Every id that was given out or registered.
    pub(super) used: BTreeSet<i64>,
    /// Broadcasts that nobody has taken, and who holds them.
    pub(super) broadcasts: Vec<(Text, Option<OwnerToken>)>,
    pub(super) in_flight: Vec<(OwnerToken, RequestId, bool)>,
    pub(super) attribute: Option<u8>,
    /// When requests were answered or cancelled, in order.
    pub(super) resolutions: Vec<Millis>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owner {
    pub(super) token: OwnerToken,
    pub(super) process: Process,
    pub(super) kind: OwnerKind,
    /// When its last operation was carried out.
    pub(super) active: Millis,
    /// Its messages in order, held broadcasts included.
    pub(super) queue: Vec<Text>,
    /// The sequence number of the first of them.
    pub(super) head: u64,
}

/// A message, told from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Request(i64),
    Note(u8),
    Broadcast(u8),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) owner: OwnerToken,
    pub(super) deadline: Millis,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Waiting, or timed out when its deadline has passed.
    Waiting,
    /// By this response, as that resolution of the session.
    Answered(u8, u8),
    Cancelled(u8),
    /// For good. A late response may be told either reason.
    Ended(LateReason, LateReason),
}

impl Text {
    pub(super) fn text(self) -> String {
        match self {
            Text::Request(id) => format!("{{\"id\":{id},\"method\":\"m\"}}"),
            Text::Note(name) => format!("\"note {name}\""),
            Text::Broadcast(name) => format!("\"broadcast {name}\""),
        }
    }
}

/// The text of a response.
pub(super) fn response(name: u8) -> String {
    format!("\"response {name}\"")
}

impl Ghost {
    pub(super) fn name(&mut self) -> u8 {
        self.names += 1;
        self.names
    }

    /// The session has ended for good.
    pub(super) fn end(&mut self, lingers: bool) {
        self.ended.extend(self.session.take().map(|session| session.handle));
        self.lingers = lingers;
    }

    /// The handle that a request which comes now would have had a moment ago.
    pub(super) fn door(&self) -> Option<Handle> {
        self.session.as_ref().map(|session| &session.handle).or(self.ended.last()).cloned()
    }
}

impl Session {
    pub(super) fn new(handle: Handle, now: Millis) -> Self {
        Self {
            handle,
            active: now,
            owners: Vec::new(),
            requests: BTreeMap::new(),
            used: BTreeSet::new(),
            broadcasts: Vec::new(),
            in_flight: Vec::new(),
            attribute: None,
            resolutions: Vec::new(),
        }
    }

    pub(super) fn belongs_to(&self, principal: Option<Digest>) -> bool {
        self.handle.principal.is_none() || self.handle.principal == principal
    }

    pub(super) fn owner(&self, token: OwnerToken) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.token == token)
    }

    pub(super) fn owner_mut(&mut self, token: OwnerToken) -> &mut Owner {
        self.owners.iter_mut().find(|owner| owner.token == token).expect("the owner is attached")
    }

    /// Whether the session is there at `now`; `liveness` tells of processes.
    pub(super) fn presence(&self, now: Millis, liveness: impl Fn(&Process) -> Liveness) -> Presence {
        let owners: Vec<_> = self.owners.iter().map(|owner| owner.presence(now, liveness(&owner.process))).collect();
        if now < self.active + TTL - TTL / 4 || owners.contains(&Presence::There) {
            Presence::There
        } else if now < self.active + TTL || owners.contains(&Presence::Either) {
            Presence::Either
        } else {
            Presence::Gone
        }
    }

    /// What a claim of `id` by `owner` must come to.
    pub(super) fn claim(&self, owner: OwnerToken, id: i64, now: Millis) -> Claim {
        match self.requests.get(&id) {
            None | Some(Request { fate: Fate::Ended(..), .. }) => Claim::Unknown,
            Some(request) if request.owner != owner => Claim::NotOwner,
            Some(Request { fate: Fate::Answered(name, _), .. }) => Claim::Answered(response(*name)),
            Some(Request { fate: Fate::Cancelled(_), .. }) => Claim::Cancelled,
            Some(request) if request.deadline <= now => Claim::TimedOut,
            Some(request) => Claim::Waiting(request.deadline - now),
        }
    }

    /// A claim was carried out.
    pub(super) fn claimed(&mut self, id: i64, claim: &Claim) {
        let reason = match claim {
            Claim::Answered(_) => LateReason::Finished,
            Claim::TimedOut => LateReason::TimedOut,
            Claim::Cancelled => LateReason::Cancelled,
            Claim::Waiting(_) | Claim::NotOwner | Claim::Unknown => return,
        };
        self.resolve(id, Fate::Ended(reason, reason));
    }

    pub(super) fn resolve(&mut self, id: i64, fate: Fate) {
        self.requests.get_mut(&id).expect("the request was registered").fate = fate;
    }

    pub(super) fn resolution(&mut self, now: Millis) -> u8 {
        self.resolutions.push(now);
        self.resolutions.len() as u8 - 1
    }

    /// When a request that is not waiting any more ended, to be compared with others: a timeout at its deadline, before an answer
    /// of that moment.
    pub(super) fn ended(&self, request: &Request) -> (Millis, u8) {
        match request.fate {
            Fate::Answered(_, order) | Fate::Cancelled(order) => (self.resolutions[usize::from(order)], order + 1),
            Fate::Waiting | Fate::Ended(..) => (request.deadline, 0),
        }
    }

    /// The reasons that a response to `id` may be told to be late for; none when it is to be delivered.
    pub(super) fn late(&self, id: i64, now: Millis, liveness: impl Fn(&Process) -> Liveness) -> Vec<LateReason> {
        let Some(request) = self.requests.get(&id) else {
            // An id that was given out and never registered, or was passed over: both words fit.
            let given = self.used.range(id..).next().map(|_| LateReason::Finished);
            return [LateReason::Unknown].into_iter().chain(given).collect();
        };
        match request.fate {
            Fate::Ended(one, other) => vec![one, other],
            Fate::Answered(..) => vec![LateReason::AlreadyAnswered],
            Fate::Cancelled(_) => vec![LateReason::Cancelled],
            Fate::Waiting if request.deadline <= now => vec![LateReason::TimedOut],
            Fate::Waiting => {
                let owner = self.owner(request.owner).expect("a request that waits has an owner");
                if liveness(&owner.process) == Liveness::Dead { vec![LateReason::Abandoned] } else { Vec::new() }
            }
        }
    }

    /// Requests that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = (i64, &Request)> {
        self.requests.iter().filter(|(_, request)| !matches!(request.fate, Fate::Ended(..))).map(|(&id, it)| (id, it))
    }

    /// The owner gets as many free broadcasts as it has room for in its next `max` messages.
    pub(super) fn assign(&mut self, token: OwnerToken, max: usize) {
        let owner = self.owners.iter_mut().find(|owner| owner.token == token).expect("the owner is attached");
        let room = max.saturating_sub(owner.queue.len());
        let room = if owner.kind == OwnerKind::Stream { room } else { 0 };
        for (text, holder) in self.broadcasts.iter_mut().filter(|(_, holder)| holder.is_none()).take(room) {
            *holder = Some(token);
            owner.queue.push(*text);
        }
    }

    /// The owner's first `count` messages are gone. How many there were.
    pub(super) fn remove_messages(&mut self, token: OwnerToken, count: usize) -> usize {
        let owner = self.owner_mut(token);
        let count = count.min(owner.queue.len());
        owner.head += count as u64;
        let gone: Vec<_> = owner.queue.drain(..count).collect();
        self.broadcasts.retain(|(text, _)| !gone.contains(text));
        count
    }

    /// The owner has ended: what it left goes. Messages that were dropped, requests that were abandoned (at least, at most),
    /// and whether broadcasts returned.
    pub(super) fn release(&mut self, token: OwnerToken, now: Millis) -> (u64, (u64, u64), bool) {
        let at = self.owners.iter().position(|owner| owner.token == token).expect("the owner is attached");
        let owner = self.owners.remove(at);
        let dropped = owner.queue.iter().filter(|text| !matches!(text, Text::Broadcast(_))).count() as u64;
        let mut returned = false;
        for (_, holder) in self.broadcasts.iter_mut().filter(|(_, holder)| *holder == Some(token)) {
            *holder = None;
            returned = true;
        }
        self.in_flight.retain(|(holder, _, _)| *holder != token);
        let (mut least, mut most) = (0, 0);
        for request in self.requests.values_mut().filter(|request| request.owner == token) {
            let reasons = match request.fate {
                Fate::Ended(..) => continue,
                Fate::Cancelled(_) => (LateReason::Cancelled, LateReason::Cancelled),
                // Whether anybody noticed that its deadline had passed is not said.
                Fate::Waiting if request.deadline <= now => (LateReason::TimedOut, LateReason::Abandoned),
                Fate::Waiting | Fate::Answered(..) => (LateReason::Abandoned, LateReason::Abandoned),
            };
            least += u64::from(reasons.0 == LateReason::Abandoned);
            most += u64::from(reasons.1 == LateReason::Abandoned);
            request.fate = Fate::Ended(reasons.0, reasons.1);
        }
        (dropped, (least, most), returned)
    }
}

impl Owner {
    /// Whether the owner is alive: within its lease, or while its process is, unless it has been silent for too long.
    pub(super) fn presence(&self, now: Millis, process: Liveness) -> Presence {
        let silent = now - self.active;
        let alive = process == Liveness::Alive;
        if silent < LEASE - LEASE / 4 || (alive && silent + LEASE / 4 <= SILENCE) {
            Presence::There
        } else if silent < LEASE || (alive && silent <= SILENCE) {
            Presence::Either
        } else {
            Presence::Gone
        }
    }
}
