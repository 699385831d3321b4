//! What processes do in the model, and what each operation must come to.

use super::ghost::{
    Broken, EVICTABLE, Fate, Kept, LEASE, Owner, Presence, Request, SILENCE, Session, TIMEOUT, TTL, Text, keep,
    response,
};
use super::world::{Client, Failure, Followed, SLOTS, World, attribute_key, process};
use crate::clock::Millis;
use crate::counter::Counter;
use crate::ids::{Digest, OwnerToken, RequestId, SessionId};
use crate::process::Liveness;
use crate::session::{
    Begun, Cancellation, Claim, Delivery, DuplicatePolicy, Handle, Interest, LateReason, NewRecord, Outgoing,
    Registered, RequestCancellation, RequestMessage, Step, StoreView, Transition,
};

/// One step. Numbers are places in [`SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create(Option<Name>),
    Open(Option<Name>),
    Destroy,
    /// Somebody who opened the session for another principal, or before it ended, destroys it.
    Intrude(Intruder),
    Touch,
    SetAttribute,
    Collect,
    Evict,
    Pass(Span),
    Attach(usize),
    Renew(usize),
    Detach(usize),
    /// The client's process is killed.
    Die(usize),
    /// The machine starts again: all processes are gone, and the store releases what they had attached.
    Reboot,
    Send(usize),
    /// Under an id that the caller chose, so many after the session's first.
    Register(usize, i64),
    NextId,
    Deliver(i64),
    Claim(usize, i64),
    ClaimAny(usize),
    ResolveTimeouts(usize),
    CancelPending(usize, i64),
    PeekResponse(usize, i64),
    ListPending(usize),
    Enqueue(usize),
    Broadcast,
    Take(usize, usize),
    Peek(usize, usize),
    AcknowledgeFirst(usize),
    AcknowledgeAll(usize),
    Begin(usize, Id, DuplicatePolicy),
    Finish(usize, Id),
    IsCancelled(usize, Id),
    CancelRequest(Id),
}

/// A principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Alice,
    Bob,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intruder {
    Nobody,
    Bob,
    /// With the handle of the last session that ended.
    Late,
}

/// Ids of requests of the client. They differ in their type alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Number,
    Text,
}

/// How much time passes: until a deadline, a lease, a session's idle time, the longest silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Timeout,
    Lease,
    Ttl,
    Silence,
}

impl Name {
    fn digest(self) -> Digest {
        Digest([self as u8 + 1; 16])
    }
}

impl Id {
    fn rpc(self) -> RequestId {
        match self {
            Id::Number => RequestId::Int(1),
            Id::Text => RequestId::Str("1".into()),
        }
    }
}

impl Span {
    fn millis(self) -> Millis {
        match self {
            Span::Timeout => TIMEOUT,
            Span::Lease => LEASE,
            Span::Ttl => TTL,
            Span::Silence => SILENCE,
        }
    }
}

/// A part of the protocol that is explored on its own, deeper than all of it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Requests,
    Messages,
    InFlight,
    Sessions,
    Everything,
}

impl Part {
    pub(super) const ALL: [Part; 5] =
        [Part::Requests, Part::Messages, Part::InFlight, Part::Sessions, Part::Everything];

    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Requests => "requests",
            Part::Messages => "messages",
            Part::InFlight => "in flight",
            Part::Sessions => "sessions",
            Part::Everything => "everything",
        }
    }

    /// How many steps deeper than everything at once it is explored.
    pub(super) fn deeper(self) -> usize {
        match self {
            Part::Everything => 0,
            Part::Requests | Part::Messages | Part::InFlight | Part::Sessions => 3,
        }
    }

    /// What may happen next.
    pub(super) fn actions(self, world: &World, actions: &mut Vec<Action>) {
        let all = self == Part::Everything;
        let session = world.ghost.session.as_ref();
        let add = |actions: &mut Vec<Action>, wanted: bool, action| {
            if wanted {
                actions.push(action);
            }
        };
        if all || self == Part::Sessions {
            if world.ghost.ended.len() < 3 {
                actions.extend([Action::Create(None), Action::Create(Some(Name::Alice))]);
            }
            actions.extend([None, Some(Name::Alice), Some(Name::Bob)].map(Action::Open));
        } else {
            add(actions, world.ghost.door().is_none(), Action::Create(None));
        }
        if world.ghost.door().is_none() {
            return;
        }
        if all || self == Part::Sessions {
            actions.extend([Intruder::Nobody, Intruder::Bob, Intruder::Late].map(Action::Intrude));
            actions.extend([Action::Destroy, Action::Touch, Action::Evict, Action::SetAttribute]);
            actions.extend([Action::Collect, Action::Reboot]);
            actions.extend([Span::Ttl, Span::Silence].map(Action::Pass));
        }
        actions.push(Action::Pass(Span::Lease));
        add(actions, self != Part::Messages && self != Part::InFlight, Action::Pass(Span::Timeout));
        let slots: &[usize] = match self {
            Part::Requests => &[0, 1],
            Part::Messages | Part::InFlight | Part::Everything => &[0, 1, 2],
            Part::Sessions => &[0, 2],
        };
        let queued: usize = session.map_or(0, |session| session.owners.iter().map(|owner| owner.queue.len()).sum());
        let free =
            session.map_or(0, |session| session.broadcasts.iter().filter(|(_, holder)| holder.is_none()).count());
        let ids: Vec<i64> = session.map_or(Vec::new(), |session| session.requests.keys().copied().collect());
        let first = session.map_or(0, |session| session.first());
        for &slot in slots {
            let Some(client) = &world.clients[slot] else {
                actions.push(Action::Attach(slot));
                continue;
            };
            let is_attached = session.is_some_and(|session| session.owner(client.token).is_some());
            add(actions, !is_attached, Action::Attach(slot));
            actions.extend([Action::Detach(slot), Action::Die(slot)]);
            add(actions, all || self == Part::Sessions, Action::Renew(slot));
            if all || self == Part::Requests || self == Part::Sessions {
                add(actions, ids.len() < 2, Action::Send(slot));
            }
            if all || self == Part::Requests {
                add(actions, ids.len() < 2, Action::Register(slot, 1));
                actions.extend([Action::ClaimAny(slot), Action::ResolveTimeouts(slot), Action::ListPending(slot)]);
                for &id in &ids {
                    actions.extend([Action::Claim(slot, id), Action::CancelPending(slot, id)]);
                    actions.push(Action::PeekResponse(slot, id));
                }
                add(actions, ids.is_empty(), Action::Claim(slot, first));
            }
            if all || self == Part::Messages {
                add(actions, queued + free < 3, Action::Enqueue(slot));
                actions.extend([Action::Take(slot, 1), Action::Take(slot, 9), Action::Peek(slot, 1)]);
                actions.extend([Action::Peek(slot, 9), Action::AcknowledgeFirst(slot), Action::AcknowledgeAll(slot)]);
            }
            if all || self == Part::InFlight {
                let room = session.is_some_and(|session| session.in_flight.len() < 3);
                for id in [Id::Number, Id::Text] {
                    add(actions, room, Action::Begin(slot, id, DuplicatePolicy::Isolate));
                    add(actions, room, Action::Begin(slot, id, DuplicatePolicy::Reject));
                    actions.push(Action::Finish(slot, id));
                    actions.push(Action::IsCancelled(slot, id));
                }
            }
        }
        if all || self == Part::Requests {
            let used = session.map_or(0, |session| session.used.len());
            add(actions, used < 4, Action::NextId);
            actions.extend(ids.iter().map(|&id| Action::Deliver(id)));
            add(actions, !ids.contains(&first), Action::Deliver(first));
            actions.push(Action::Deliver(-7));
        }
        if all || self == Part::Messages {
            add(actions, queued + free < 3, Action::Broadcast);
        }
        if all || self == Part::InFlight {
            actions.extend([Id::Number, Id::Text].map(Action::CancelRequest));
        }
    }
}

impl Session {
    fn first(&self) -> i64 {
        first_request(self.handle.incarnation)
    }
}

/// Where the ids of an incarnation start: elsewhere for each, as the engine chooses them.
fn first_request(incarnation: u64) -> i64 {
    100 * incarnation as i64
}

/// One step under way.
pub(super) struct Stride<'w> {
    world: &'w mut World,
    rings: Vec<OwnerToken>,
    counts: Vec<Counter>,
    /// Who must be woken, and see something new of which interest.
    news: Vec<(OwnerToken, Interest)>,
}

impl<'w> Stride<'w> {
    /// Takes the step and checks everything that can be said after it.
    pub(super) fn take(world: &'w mut World, action: Action) -> Kept {
        let before = world.events();
        let mut stride = Stride { world, rings: Vec::new(), counts: Vec::new(), news: Vec::new() };
        stride.perform(action)?;
        stride.world.audit()?;
        for (token, interest) in &stride.news {
            let rung = stride.rings.contains(token);
            keep("G9", rung, || format!("{token:?} is not woken for {interest:?}"))?;
            let seen = stride.world.look(*token, *interest, before.get(token).copied().unwrap_or(0));
            keep("G9", seen, || format!("{token:?} sees no {interest:?} when it looks"))?;
        }
        Ok(())
    }

    fn session(&mut self) -> &mut Session {
        self.world.ghost.session.as_mut().expect("the operation was let in")
    }

    fn follow(&mut self, followed: Followed) {
        self.rings.extend(followed.rings);
        self.counts.extend(followed.counts);
    }

    /// An operation of a handle. Nothing when the session is rightly not there.
    fn within<T>(
        &mut self,
        handle: &Handle,
        operation: impl FnMut(&mut Transition<'_>) -> Step<T>,
    ) -> Kept<Option<Result<T, Failure>>> {
        let (presence, guarantee) = match &self.world.ghost.session {
            Some(session) if session.handle.incarnation != handle.incarnation => (Presence::Gone, "G7"),
            Some(session) if !session.belongs_to(handle.principal) => (Presence::Gone, "G12"),
            _ => (self.world.presence(), "G7"),
        };
        let ran = self.world.operate(Some(handle), operation)?;
        let found = !matches!(ran, Err(Failure::NotFound));
        keep(guarantee, !found || presence != Presence::Gone, || format!("{handle:?} is let in"))?;
        keep("G7", found || presence != Presence::There, || "a session that is there is not found".into())?;
        if !found {
            if presence == Presence::Either || (guarantee == "G7" && self.is_current(handle)) {
                self.world.ghost.end(true);
            }
            return Ok(None);
        }
        Ok(Some(match ran {
            Ok((value, followed)) => {
                self.follow(followed);
                let now = self.world.now;
                self.session().active = now;
                Ok(value)
            }
            Err(failure) => Err(failure),
        }))
    }

    fn is_current(&self, handle: &Handle) -> bool {
        self.world.ghost.session.as_ref().is_some_and(|session| session.handle.incarnation == handle.incarnation)
    }

    /// The same for an operation that nothing refuses.
    fn inside<T>(&mut self, operation: impl FnMut(&mut Transition<'_>) -> Step<T>) -> Kept<Option<T>> {
        let door = self.world.ghost.door().expect("a session was made");
        self.within(&door, operation)?.map(must).transpose()
    }

    /// An operation of a client's owner. Nothing when the session or the owner is rightly not there.
    fn owned<T>(
        &mut self,
        slot: usize,
        mut operation: impl FnMut(&mut Transition<'_>, &OwnerToken) -> Step<T>,
    ) -> Kept<Option<(OwnerToken, T)>> {
        let Client { handle, token, .. } = self.world.clients[slot].clone().expect("the client is there");
        let Some(ran) = self.within(&handle, |transition| operation(transition, &token))? else { return Ok(None) };
        let now = self.world.now;
        let is_attached = self.session().owner(token).is_some();
        match ran {
            Ok(value) => {
                keep("G3", is_attached, || format!("{token:?} was released and acts"))?;
                self.session().owner_mut(token).active = now;
                Ok(Some((token, value)))
            }
            Err(Failure::OwnerExpired) => {
                keep("G11", !is_attached, || format!("{token:?} lives and is not there"))?;
                Ok(None)
            }
            Err(other) => must(Err(other)),
        }
    }

    /// After an operation that may release: whoever was released may be dead, and whoever must be dead was released.
    fn releases(&mut self) -> Kept {
        let stored = self.world.decoded().map(|record| record.owners).unwrap_or_default();
        for owner in self.session().owners.clone() {
            let presence = owner.presence(self.world.now, self.world.liveness(&owner.process));
            let remains = stored.iter().any(|stored| stored.token == owner.token);
            keep("G11", remains || presence != Presence::There, || format!("{owner:?} lives and was released"))?;
            keep("G11", !remains || presence != Presence::Gone, || format!("{owner:?} is dead and was not released"))?;
            if !remains {
                self.released(&owner)?;
                let counted = self.counts.contains(&Counter::OwnersReleased);
                keep("G11", counted, || format!("the release of {:?} is not counted", owner.token))?;
            }
        }
        Ok(())
    }

    fn released(&mut self, owner: &Owner) -> Kept<(u64, (u64, u64))> {
        let now = self.world.now;
        let (dropped, abandoned, returned) = self.session().release(owner.token, now);
        if returned {
            self.broadcast_news();
        }
        Ok((dropped, abandoned))
    }

    fn broadcast_news(&mut self) {
        let streams = self.session().owners.iter().filter(|owner| owner.kind == SLOTS[0].0).map(|owner| owner.token);
        let news: Vec<_> = streams.map(|token| (token, Interest::MESSAGE)).collect();
        self.news.retain(|it| !news.contains(it));
        self.news.extend(news);
    }

    fn everybody_woken(&self, owners: &[OwnerToken]) -> Kept {
        let asleep = owners.iter().find(|token| !self.rings.contains(token));
        keep("G9", asleep.is_none(), || format!("{asleep:?} is not woken by the end of the session"))
    }

    fn tokens(&self) -> Vec<OwnerToken> {
        let session = self.world.ghost.session.as_ref();
        session.map(|session| session.owners.iter().map(|owner| owner.token).collect()).unwrap_or_default()
    }

    fn perform(&mut self, action: Action) -> Kept {
        let now = self.world.now;
        match action {
            Action::Pass(span) => self.world.now += span.millis(),
            Action::Die(slot) => self.world.clients[slot] = None,
            Action::Reboot => self.reboot()?,
            Action::Create(principal) => self.create(principal.map(Name::digest))?,
            Action::Open(principal) => self.open(principal.map(Name::digest))?,
            Action::Destroy => {
                let door = self.world.ghost.door().expect("a session was made");
                self.destroy(&door)?;
            }
            Action::Intrude(intruder) => {
                let (door, late) = (self.world.ghost.door(), self.world.ghost.ended.last().cloned());
                let handle = match (intruder, door) {
                    (Intruder::Nobody, Some(door)) => Some(Handle { principal: None, ..door }),
                    (Intruder::Bob, Some(door)) => Some(Handle { principal: Some(Name::Bob.digest()), ..door }),
                    _ => late,
                };
                if let Some(handle) = handle {
                    self.destroy(&handle)?;
                }
            }
            Action::Touch => {
                self.inside(|transition| transition.touch())?;
            }
            Action::SetAttribute => {
                let name = self.world.ghost.name();
                let set = self.inside(|transition| transition.set(&attribute_key(), &name.to_string()))?;
                if set.is_some() {
                    self.session().attribute = Some(name);
                }
            }
            Action::Collect => self.collect()?,
            Action::Evict => self.evict()?,
            Action::Attach(slot) => self.attach(slot)?,
            Action::Renew(slot) => {
                self.owned(slot, |transition, token| transition.renew(token))?;
            }
            Action::Detach(slot) => self.detach(slot)?,
            Action::Send(slot) => {
                let message = RequestMessage::new("{\"method\":\"m\"}").expect("a request");
                let sent =
                    self.owned(slot, |transition, token| transition.send_request(token, &message, "", TIMEOUT))?;
                if let Some((token, id)) = sent {
                    self.gave_out(id)?;
                    self.registered(token, id);
                    self.session().owner_mut(token).queue.push(Text::Request(id));
                    self.news.push((token, Interest::MESSAGE));
                }
            }
            Action::Register(slot, after) => {
                let id = self.world.ghost.session.as_ref().map_or(0, Session::first) + after;
                let register = |transition: &mut Transition<'_>, token: &OwnerToken| {
                    transition.register_pending(token, id, TIMEOUT, "m")
                };
                if let Some((token, registered)) = self.owned(slot, register)? {
                    let is_open = self.session().open().any(|(open, _)| open == id);
                    match registered {
                        Registered::Duplicate => keep("G5", is_open, || format!("id {id} is free and refused"))?,
                        Registered::Until(deadline) => {
                            keep("G5", !is_open, || format!("id {id} is pending twice"))?;
                            keep("G2", deadline == now + TIMEOUT, || format!("the deadline is {deadline}"))?;
                            self.registered(token, id);
                        }
                    }
                }
            }
            Action::NextId => {
                if let Some(id) = self.inside(|transition| transition.next_request_id())? {
                    self.gave_out(id)?;
                }
            }
            Action::Deliver(id) => self.deliver(id)?,
            Action::Claim(slot, id) => {
                if let Some((token, claim)) = self.owned(slot, |transition, token| transition.claim(token, id))? {
                    self.claimed(token, id, &claim)?;
                }
            }
            Action::ClaimAny(slot) => {
                let Some((token, resolved)) = self.owned(slot, |transition, token| transition.claim_any(token))? else {
                    return Ok(());
                };
                let own = |request: &Request| request.owner == token;
                let ended = |request: &Request| request.fate != Fate::Waiting || request.deadline <= now;
                let session = self.session();
                let Some(resolved) = resolved else {
                    let missed = session.open().find(|(_, request)| own(request) && ended(request));
                    return keep("G2", missed.is_none(), || format!("{missed:?} ended and is not seen"));
                };
                let this = session.requests.get(&resolved.id).map(|request| session.ended(request));
                let earlier = session.open().find(|(_, it)| own(it) && ended(it) && Some(session.ended(it)) < this);
                keep("G2", earlier.is_none(), || format!("{earlier:?} ended before {resolved:?}"))?;
                let is_end = !matches!(resolved.claim, Claim::Waiting(_) | Claim::NotOwner | Claim::Unknown);
                keep("G2", is_end, || format!("{resolved:?} is no end"))?;
                self.claimed(token, resolved.id, &resolved.claim)?;
            }
            Action::ResolveTimeouts(slot) => {
                let resolved = self.owned(slot, |transition, token| transition.resolve_timeouts(token))?;
                if let Some((token, mut ids)) = resolved {
                    ids.sort_unstable();
                    let is_due = |request: &Request| request.fate == Fate::Waiting && request.deadline <= now;
                    let session = self.session();
                    let due: Vec<i64> =
                        session.open().filter(|(_, it)| it.owner == token && is_due(it)).map(|(id, _)| id).collect();
                    let own = ids.iter().all(|id| session.requests.get(id).is_some_and(|it| it.owner == token));
                    keep("G3", own, || format!("{token:?} sees timeouts of others: {ids:?}"))?;
                    keep("G2", ids == due, || format!("timed out are {ids:?} and not {due:?}"))?;
                    due.into_iter().for_each(|id| session.claimed(id, &Claim::TimedOut));
                }
            }
            Action::CancelPending(slot, id) => {
                let cancelled = self.owned(slot, |transition, token| transition.cancel_pending(token, id))?;
                if let Some((token, cancelled)) = cancelled {
                    let session = self.session();
                    let right = match session.claim(token, id, now) {
                        Claim::Unknown => Cancellation::Unknown,
                        Claim::NotOwner => Cancellation::NotOwner,
                        Claim::Answered(_) => Cancellation::AlreadyAnswered,
                        Claim::TimedOut => Cancellation::TimedOut,
                        Claim::Cancelled => Cancellation::AlreadyCancelled,
                        Claim::Waiting(_) => Cancellation::Cancelled,
                    };
                    let guarantee = if right == Cancellation::NotOwner { "G3" } else { "G2" };
                    keep(guarantee, cancelled == right, || format!("cancelling is {cancelled:?} and not {right:?}"))?;
                    if right == Cancellation::Cancelled {
                        let order = session.resolution(now);
                        session.resolve(id, Fate::Cancelled(order));
                        self.news.push((token, Interest::RESOLUTION));
                    }
                }
            }
            Action::PeekResponse(slot, id) => {
                let peeked = self.owned(slot, |transition, token| transition.peek_response(token, id))?;
                if let Some((token, peeked)) = peeked {
                    let right = match self.session().claim(token, id, now) {
                        Claim::Answered(payload) => Some(payload),
                        _ => None,
                    };
                    keep("G3", peeked == right, || format!("the response is {peeked:?} and not {right:?}"))?;
                }
            }
            Action::ListPending(slot) => {
                let listed = self.owned(slot, |transition, token| transition.pending(Some(token)))?;
                if let Some((token, listed)) = listed {
                    let session = self.session();
                    for (id, request) in session.open() {
                        let info = listed.iter().find(|info| info.id == id);
                        let own = request.owner == token;
                        keep("G3", info.is_some() == own, || format!("request {id} of {token:?} is {info:?}"))?;
                        let right = match session.claim(request.owner, id, now) {
                            Claim::Answered(_) => Claim::Answered(String::new()),
                            other => other,
                        };
                        let state = info.map_or(&right, |info| &info.state);
                        keep("G2", *state == right, || format!("request {id} is {state:?} and not {right:?}"))?;
                    }
                }
            }
            Action::Enqueue(slot) => {
                let text = Text::Note(self.world.ghost.name());
                let body = text.text();
                let queued = self.owned(slot, |transition, token| transition.enqueue_outgoing(token, &body, "c"))?;
                if let Some((token, sequence)) = queued {
                    let owner = self.session().owner_mut(token);
                    let next = owner.head + owner.queue.len() as u64;
                    owner.queue.push(text);
                    keep("G3", sequence == next, || format!("the message is number {sequence} and not {next}"))?;
                    self.news.push((token, Interest::MESSAGE));
                }
            }
            Action::Broadcast => {
                let text = Text::Broadcast(self.world.ghost.name());
                let body = text.text();
                if self.inside(|transition| transition.enqueue_broadcast(&body, ""))?.is_some() {
                    self.session().broadcasts.push((text, None));
                    self.broadcast_news();
                }
            }
            Action::Take(slot, max) => {
                let taken = self.owned(slot, |transition, token| transition.take_outgoing(token, max))?;
                if let Some((token, taken)) = taken {
                    self.seen(token, max, &taken)?;
                    self.session().remove_messages(token, taken.len());
                }
            }
            Action::Peek(slot, max) => {
                if let Some((token, seen)) =
                    self.owned(slot, |transition, token| transition.peek_outgoing(token, max))?
                {
                    self.seen(token, max, &seen)?;
                }
            }
            Action::AcknowledgeFirst(slot) => {
                let token = self.world.clients[slot].as_ref().expect("the client is there").token;
                let head =
                    self.world.ghost.session.as_ref().and_then(|it| it.owner(token)).map_or(1, |owner| owner.head);
                self.acknowledge(slot, head, 1)?;
            }
            Action::AcknowledgeAll(slot) => self.acknowledge(slot, u64::MAX, usize::MAX)?,
            Action::Begin(slot, id, policy) => {
                let rpc = id.rpc();
                let begun = self.owned(slot, |transition, token| transition.begin_request(token, &rpc, policy))?;
                if let Some((token, begun)) = begun {
                    let refused = policy == DuplicatePolicy::Reject && !self.in_flight(id).is_empty();
                    let right = if refused { Begun::DuplicateInFlight } else { Begun::Begun };
                    keep("G6", begun == right, || format!("beginning is {begun:?} and not {right:?}"))?;
                    if begun == Begun::Begun {
                        self.session().in_flight.push((token, id.rpc(), false));
                    }
                }
            }
            Action::Finish(slot, id) => {
                let rpc = id.rpc();
                let finished = self.owned(slot, |transition, token| transition.finish_request(token, &rpc))?;
                if let Some((token, finished)) = finished {
                    let in_flight = &mut self.session().in_flight;
                    let at = in_flight.iter().position(|(holder, own, _)| *holder == token && *own == id.rpc());
                    let right = at.map(|at| in_flight.remove(at).2);
                    keep("G6", finished == right, || format!("finishing is {finished:?} and not {right:?}"))?;
                }
            }
            Action::IsCancelled(slot, id) => {
                let rpc = id.rpc();
                if let Some((token, is)) = self.owned(slot, |transition, token| transition.is_cancelled(token, &rpc))? {
                    let mut own =
                        self.session().in_flight.iter().filter(|(holder, it, _)| *holder == token && *it == rpc);
                    let right = own.next().is_some_and(|(_, _, cancelled)| *cancelled);
                    keep("G6", is == right, || format!("the request is cancelled: {is}"))?;
                }
            }
            Action::CancelRequest(id) => {
                let rpc = id.rpc();
                if let Some(cancelled) = self.inside(|transition| transition.cancel_request(&rpc))? {
                    let living = self.in_flight(id);
                    let right = match living[..] {
                        [] => RequestCancellation::Unknown,
                        [at] => {
                            let request = &mut self.session().in_flight[at];
                            request.2 = true;
                            RequestCancellation::Cancelled(request.0)
                        }
                        _ => RequestCancellation::Ambiguous,
                    };
                    keep("G6", cancelled == right, || format!("cancelling is {cancelled:?} and not {right:?}"))?;
                    if let RequestCancellation::Cancelled(token) = right {
                        self.news.push((token, Interest::CANCELLATION));
                    }
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, principal: Option<Digest>) -> Kept {
        let incarnation = u64::from(self.world.ghost.name());
        let id = SessionId::new("s").expect("an id");
        let first_request = first_request(incarnation);
        let handle = Handle { id: id.clone(), incarnation, principal };
        let new = NewRecord { id, incarnation, first_request, ttl: TTL, principal };
        let of_principal = principal.and_then(|principal| self.world.of_principals.get(&principal)).copied();
        let view =
            StoreView { records: self.world.sessions as u64, of_principal: of_principal.unwrap_or_default() as u64 };
        let presence = self.world.presence();
        let ran = self.world.operate(None, |transition| transition.create(&new, view))?;
        let (created, followed) = must(ran)?;
        self.follow(followed);
        keep("G7", !created || presence != Presence::There, || "a session that is there is replaced".into())?;
        keep("G7", created || presence != Presence::Gone, || "the id of an ended session is not free".into())?;
        if created {
            self.world.ghost.end(false);
            self.world.ghost.session = Some(Session::new(handle, self.world.now));
        }
        Ok(())
    }

    fn open(&mut self, principal: Option<Digest>) -> Kept {
        let presence = self.world.presence();
        let id = SessionId::new("s").expect("an id");
        let (opened, _) = must(self.world.operate(None, |transition| transition.open(&id, principal))?)?;
        let Some(session) = &self.world.ghost.session else {
            return keep("G7", opened.is_none(), || "a session that has ended is found".into());
        };
        if !session.belongs_to(principal) {
            return keep("G12", opened.is_none(), || format!("{principal:?} finds another's session"));
        }
        match opened {
            Some(incarnation) => {
                keep("G7", presence != Presence::Gone, || "a session that has expired is found".into())?;
                keep("G7", incarnation == session.handle.incarnation, || "another session is found".into())
            }
            None => {
                keep("G7", presence != Presence::There, || "a session that is there is not found".into())?;
                self.world.ghost.end(true);
                Ok(())
            }
        }
    }

    fn destroy(&mut self, handle: &Handle) -> Kept {
        let owners = self.tokens();
        if let Some(destroyed) = self.within(handle, |transition| transition.destroy())? {
            must(destroyed)?;
            self.everybody_woken(&owners)?;
            self.world.ghost.end(false);
        }
        Ok(())
    }

    fn collect(&mut self) -> Kept {
        // An engine asks for the sessions that are due by the index.
        if self.world.index.is_none_or(|index| index.at > self.world.now) {
            return Ok(());
        }
        let (presence, owners) = (self.world.presence(), self.tokens());
        let (ended, followed) = must(self.world.operate(None, |transition| transition.collect())?)?;
        self.follow(followed);
        keep("G7", !ended || presence != Presence::There, || "a session that is there is collected".into())?;
        keep("G11", ended || presence != Presence::Gone, || "an expired session is not collected".into())?;
        if ended {
            if self.world.ghost.session.is_some() {
                self.everybody_woken(&owners)?;
            }
            self.world.ghost.end(false);
            return Ok(());
        }
        self.releases()
    }

    fn evict(&mut self) -> Kept {
        if self.world.record.is_none() {
            return Ok(());
        }
        let (liveness, now) = (|world: &World, owner: &Owner| world.liveness(&owner.process), self.world.now);
        let session = self.world.ghost.session.as_ref();
        let lives = session.is_some_and(|session| {
            let presences = session.owners.iter().map(|owner| owner.presence(now, liveness(self.world, owner)));
            presences.into_iter().any(|presence| presence == Presence::There)
        });
        let idle = session.map_or(Millis::MAX, |session| now - session.active);
        let owners = self.tokens();
        let (ended, followed) = must(self.world.operate(None, |transition| transition.evict(EVICTABLE))?)?;
        self.follow(followed);
        if ended {
            keep("G10", !lives, || "a session with a living owner gave way".into())?;
            keep("G10", idle.saturating_add(TTL / 4) >= EVICTABLE, || format!("a session gave way after {idle} ms"))?;
            if self.world.ghost.session.is_some() {
                self.everybody_woken(&owners)?;
            }
            self.world.ghost.end(false);
            return Ok(());
        }
        if self.world.ghost.session.is_some() { self.releases() } else { Ok(()) }
    }

    fn reboot(&mut self) -> Kept {
        self.world.clients = Default::default();
        if self.world.ghost.session.is_none() {
            return Ok(());
        }
        let owners = self.session().owners.clone();
        let (released, _) = must(self.world.operate(None, |transition| Ok(transition.release_everybody()))?)?;
        let all = owners.len() as u64;
        keep("G11", released == all, || format!("{released} owners are released and not {all}"))?;
        for owner in &owners {
            self.released(owner)?;
        }
        self.news.clear();
        Ok(())
    }

    fn attach(&mut self, slot: usize) -> Kept {
        let name = self.world.ghost.name();
        let (token, process, kind) = (OwnerToken([name; 16]), process(slot, name), SLOTS[slot].0);
        let door = self.world.ghost.door().expect("a session was made");
        // The process runs while it attaches.
        let client = Client { handle: door.clone(), token, process };
        let mut others = self.world.clients.clone();
        if let Some(attached) = self.within(&door, |transition| transition.attach(token, kind, LEASE, process))? {
            must(attached)?;
            self.releases()?;
            let now = self.world.now;
            let owner = Owner { token, process, kind, active: now, queue: Vec::new(), head: 1 };
            let session = self.session();
            session.owners.push(owner);
            let has_news = kind == SLOTS[0].0 && session.broadcasts.iter().any(|(_, holder)| holder.is_none());
            if has_news {
                self.news.push((token, Interest::MESSAGE));
            }
            others[slot] = Some(client);
            self.world.clients = others;
        }
        Ok(())
    }

    fn detach(&mut self, slot: usize) -> Kept {
        let Client { handle, token, .. } = self.world.clients[slot].clone().expect("the client is there");
        if let Some(detached) = self.within(&handle, |transition| transition.detach(&token))? {
            let detached = must(detached)?;
            let owner = self.session().owner(token).cloned();
            keep("G11", detached.is_some() == owner.is_some(), || format!("detaching is {detached:?}"))?;
            if let (Some(owner), Some(detached)) = (owner, detached) {
                let (dropped, (least, most)) = self.released(&owner)?;
                keep("G11", detached.dropped_messages == dropped, || format!("{detached:?}, and it left {dropped}"))?;
                let right = (least..=most).contains(&detached.abandoned_pending);
                keep("G11", right, || format!("{detached:?}, and it left {least} to {most}"))?;
            }
        }
        self.world.clients[slot] = None;
        Ok(())
    }

    fn gave_out(&mut self, id: i64) -> Kept {
        let is_new = self.session().used.insert(id);
        keep("G5", is_new, || format!("id {id} was used before"))
    }

    fn registered(&mut self, owner: OwnerToken, id: i64) {
        let deadline = self.world.now + TIMEOUT;
        let session = self.session();
        session.used.insert(id);
        session.requests.insert(id, Request { owner, deadline, fate: Fate::Waiting });
    }

    fn deliver(&mut self, id: i64) -> Kept {
        let name = self.world.ghost.name();
        let text = response(name);
        let Some(delivery) = self.inside(|transition| transition.deliver_response(id, &text))? else { return Ok(()) };
        let now = self.world.now;
        let world = &*self.world;
        let session = world.ghost.session.as_ref().expect("the operation was let in");
        let late = session.late(id, now, |process| world.liveness(process));
        let is_delivery = |count: &&Counter| {
            **count == Counter::Delivered || LateReason::ALL.iter().any(|reason| reason.counter() == **count)
        };
        let counts = self.counts.iter().filter(is_delivery);
        let counted: Vec<_> = counts.copied().collect();
        match delivery {
            Delivery::Delivered => {
                keep("G4", late.is_empty(), || format!("a response to {id} is delivered, late as {late:?}"))?;
                keep("G4", counted == [Counter::Delivered], || format!("a delivery is counted as {counted:?}"))?;
                let session = self.session();
                let order = session.resolution(now);
                session.resolve(id, Fate::Answered(name, order));
                let owner = session.requests[&id].owner;
                self.news.push((owner, Interest::RESOLUTION));
            }
            Delivery::Late(reason) => {
                let guarantee = if late.is_empty() { "G2" } else { "G4" };
                keep(guarantee, late.contains(&reason), || format!("a response to {id} is {reason:?}, not {late:?}"))?;
                keep("G4", counted == [reason.counter()], || format!("{reason:?} is counted as {counted:?}"))?;
                let open = self.session().open().any(|(open, request)| open == id && request.deadline > now);
                if open && reason == LateReason::Abandoned {
                    self.session().resolve(id, Fate::Ended(reason, reason));
                }
            }
        }
        Ok(())
    }

    fn claimed(&mut self, token: OwnerToken, id: i64, claim: &Claim) -> Kept {
        let now = self.world.now;
        let session = self.session();
        let right = session.claim(token, id, now);
        let guarantee = if right == Claim::NotOwner || *claim == Claim::NotOwner { "G3" } else { "G2" };
        keep(guarantee, *claim == right, || format!("a claim of {id} is {claim:?} and not {right:?}"))?;
        session.claimed(id, claim);
        Ok(())
    }

    fn seen(&mut self, token: OwnerToken, max: usize, seen: &[Outgoing]) -> Kept {
        let session = self.session();
        session.assign(token, max);
        let owner = session.owner(token).expect("the owner is attached");
        let right: Vec<_> = (owner.head..).zip(&owner.queue).take(max).map(|(at, text)| (at, text.text())).collect();
        let seen: Vec<_> = seen.iter().map(|it| (it.sequence, it.message.clone())).collect();
        keep("G3", seen == right, || format!("{token:?} gets {seen:?} and not {right:?}"))
    }

    fn acknowledge(&mut self, slot: usize, up_to: u64, most: usize) -> Kept {
        let removed = self.owned(slot, |transition, token| transition.acknowledge(token, up_to))?;
        if let Some((token, removed)) = removed {
            let right = self.session().remove_messages(token, most);
            keep("G3", removed == right as u64, || format!("{removed} are acknowledged and not {right}"))?;
        }
        Ok(())
    }

    /// Requests in flight with this id whose process has not ended.
    fn in_flight(&self, id: Id) -> Vec<usize> {
        let session = self.world.ghost.session.as_ref().expect("the operation was let in");
        let lives = |token: &OwnerToken| {
            let owner = session.owner(*token).expect("a request in flight has an owner");
            self.world.liveness(&owner.process) != Liveness::Dead
        };
        let requests = session.in_flight.iter().enumerate();
        requests.filter(|(_, (token, it, _))| *it == id.rpc() && lives(token)).map(|(at, _)| at).collect()
    }
}

/// What nothing in the model may be a reason to refuse.
fn must<T>(ran: Result<T, Failure>) -> Kept<T> {
    ran.map_err(|failure| {
        let why = match failure {
            Failure::NotFound => "no session".to_owned(),
            Failure::OwnerExpired => "no owner".to_owned(),
            Failure::Other(why) => why,
        };
        Broken { guarantee: "G8", what: format!("it is refused: {why}") }
    })
}
