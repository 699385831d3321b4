//! A look at a session from outside, for whoever operates the store.
//!
//! Looking changes nothing: it renews neither the session's expiry nor a lease, moves no broadcast, notes no deadline. So it
//! never waits for a writer and never keeps alive what nobody uses.

use super::outgoing::unpack;
use super::payload::Payload;
use super::record::{Owner, PendingState};
use super::transition::Transition;
use super::{OwnerKind, PendingInfo};
use crate::clock::Millis;
use crate::ids::RequestId;
use crate::kind::Step;
use crate::process::Process;

/// A session at one moment, payloads included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Whether the session belongs to a principal (G12).
    pub bound: bool,
    /// Milliseconds until it expires unless something happens or one of its owners lives; 0 when that time has passed.
    pub expires_in_ms: Millis,
    /// Its owners, the oldest first.
    pub owners: Vec<InspectedOwner>,
    /// Its broadcasts, each a message and whether an owner holds it already.
    pub broadcasts: Vec<(String, bool)>,
    /// All attributes, as one JSON object.
    pub attributes: String,
}

/// An owner and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedOwner {
    /// Its token, shortened.
    pub token: String,
    /// How it delivers messages.
    pub kind: OwnerKind,
    /// The process that attached it. Whether it lives is for the caller to find out ([`Process::liveness`]).
    pub process: Process,
    /// Milliseconds since it was attached; nothing in a session of a build that did not note it.
    pub for_ms: Option<Millis>,
    /// Milliseconds until its lease ends; 0 when it has ended.
    pub lease_left_ms: Millis,
    /// Messages queued for it.
    pub messages: Vec<String>,
    /// Its pending requests.
    pub pending: Vec<InspectedPending>,
    /// Its requests in flight.
    pub in_flight: Vec<InspectedRequest>,
}

/// A question to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedPending {
    /// The question, its method and what became of it.
    pub info: PendingInfo,
    /// Milliseconds since it was asked; nothing where that is not known.
    pub for_ms: Option<Millis>,
    /// The client's response, where there is one.
    pub response: Option<String>,
}

/// A request of the client that is being processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedRequest {
    /// The request's id.
    pub id: RequestId,
    /// Milliseconds since it began; nothing where that is not known.
    pub for_ms: Option<Millis>,
    /// Whether the client cancelled it.
    pub cancelled: bool,
}

impl Transition<'_> {
    /// What the session holds, expired or not; nothing when there is no record of this id.
    pub fn inspect(&self, id: &str) -> Step<Option<Inspection>> {
        let Some(record) = self.record.as_ref().filter(|record| record.id == id) else { return Ok(None) };
        let broadcasts = record
            .broadcasts
            .iter()
            .map(|broadcast| Ok((self.message(&Payload::Broadcast(broadcast.number))?, broadcast.holder.is_some())));
        Ok(Some(Inspection {
            bound: record.principal.is_some(),
            expires_in_ms: record.expires().saturating_sub(self.now()),
            owners: record.owners.iter().map(|owner| self.inspect_owner(owner)).collect::<Step<_>>()?,
            broadcasts: broadcasts.collect::<Step<_>>()?,
            attributes: self.all()?,
        }))
    }

    fn inspect_owner(&self, owner: &Owner) -> Step<InspectedOwner> {
        let record = self.record();
        let held = |sequence| record.broadcasts.iter().any(|held| held.holder == Some((owner.number, sequence)));
        let messages = (owner.head..owner.tail)
            .filter(|&sequence| !held(sequence))
            .map(|sequence| self.message(&Payload::Outgoing { owner: owner.number, sequence }));
        let pending = record.pending.iter().filter(|pending| pending.owner == owner.number).map(|pending| {
            let answered = matches!(pending.state, PendingState::Answered { .. });
            let response = answered.then(|| self.payload_of_record(&Payload::Response(pending.id))).transpose()?;
            let response = response.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let (info, for_ms) = (pending.info_at(self.now()), self.time_since(pending.since));
            Ok(InspectedPending { info, for_ms, response })
        });
        let in_flight = record.in_flight.iter().filter(|request| request.owner == owner.number);
        Ok(InspectedOwner {
            token: owner.token.shortened(),
            kind: owner.kind,
            process: owner.process,
            for_ms: self.time_since(owner.since),
            lease_left_ms: owner.lease_until.saturating_sub(self.now()),
            messages: messages.collect::<Step<_>>()?,
            pending: pending.collect::<Step<_>>()?,
            in_flight: in_flight
                .map(|request| InspectedRequest {
                    id: request.id.clone(),
                    for_ms: self.time_since(request.since),
                    cancelled: request.cancelled,
                })
                .collect(),
        })
    }

    fn time_since(&self, since: Millis) -> Option<Millis> {
        (since > 0).then(|| self.now().saturating_sub(since))
    }

    fn message(&self, key: &Payload) -> Step<String> {
        Ok(unpack(self.payload_of_record(key)?)?.0)
    }
}
