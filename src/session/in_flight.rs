//! The client's requests while they are processed.
//!
//! Ids are the client's and may repeat: each entry belongs to an owner, so requests with equal ids keep their own answers (G6).

use super::record::InFlight;
use super::transition::Transition;
use crate::ids::{OwnerToken, RequestId};
use crate::kind::Step;
use crate::process::Liveness;
use crate::settings::Limit;

/// What to do with a request whose id is in flight already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicatePolicy {
    /// Both are served.
    #[default]
    Isolate,
    /// The second is refused (-32600, HTTP 409).
    Reject,
}

impl RequestId {
    /// Bytes of its text.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            RequestId::Int(_) => 0,
            RequestId::Str(text) => text.len(),
        }
    }
}

/// Whether a request may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is in flight now.
    Begun,
    /// A request with its id is in flight already.
    DuplicateInFlight,
}

/// What a client's cancellation comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestCancellation {
    /// The request is marked, and its owner woken.
    Cancelled(OwnerToken),
    /// No such request is in flight.
    Unknown,
    /// Several are: none is touched.
    Ambiguous,
}

impl Transition<'_> {
    /// Notes that an owner processes a request.
    pub fn begin_request(&mut self, token: &OwnerToken, id: &RequestId, policy: DuplicatePolicy) -> Step<Begun> {
        let index = self.owner(token)?;
        id.check()?;
        if policy == DuplicatePolicy::Reject && !self.living_in_flight(id)?.is_empty() {
            return Ok(Begun::DuplicateInFlight);
        }
        self.within(Limit::InFlight, self.record().in_flight.len() as u64 + 1)?;
        self.within_session(id.text_bytes() as u64)?;
        let now = self.now();
        let record = self.record_mut();
        let (owner, since) = (record.owners[index].number, record.beginning(now));
        record.in_flight.push(InFlight { id: id.clone(), owner, cancelled: false, since });
        Ok(Begun::Begun)
    }

    /// Notes that the owner is done with a request. Whether the client had cancelled it; nothing if it was not in flight.
    pub fn finish_request(&mut self, token: &OwnerToken, id: &RequestId) -> Step<Option<bool>> {
        let Some(at) = self.own_in_flight(token, id)? else {
            return Ok(None);
        };
        Ok(Some(self.record_mut().in_flight.remove(at).cancelled))
    }

    /// Whether the client cancelled this request of the owner.
    pub fn is_cancelled(&mut self, token: &OwnerToken, id: &RequestId) -> Step<bool> {
        let at = self.own_in_flight(token, id)?;
        Ok(at.is_some_and(|at| self.record().in_flight[at].cancelled))
    }

    /// Marks the one request with this id as cancelled.
    pub fn cancel_request(&mut self, id: &RequestId) -> Step<RequestCancellation> {
        id.check()?;
        match self.living_in_flight(id)?.as_slice() {
            [] => Ok(RequestCancellation::Unknown),
            &[at] => {
                let number = self.record().in_flight[at].owner;
                let index = self.record().owners.iter().position(|owner| owner.number == number);
                let index = index.expect("an in-flight request ends with its owner");
                let event = self.wake_owner(index);
                let record = self.record_mut();
                record.in_flight[at].cancelled = true;
                record.owners[index].cancelled_at = event;
                Ok(RequestCancellation::Cancelled(record.owners[index].token))
            }
            _ => Ok(RequestCancellation::Ambiguous),
        }
    }

    fn own_in_flight(&mut self, token: &OwnerToken, id: &RequestId) -> Step<Option<usize>> {
        let index = self.owner(token)?;
        let record = self.record();
        let owner = record.owners[index].number;
        Ok(record.in_flight.iter().position(|request| request.owner == owner && request.id == *id))
    }

    /// Requests with this id whose process has not ended.
    fn living_in_flight(&self, id: &RequestId) -> Step<Vec<usize>> {
        let record = self.record();
        let mut living = Vec::new();
        for (at, request) in record.in_flight.iter().enumerate().filter(|(_, request)| request.id == *id) {
            let owner = record.owners.iter().find(|owner| owner.number == request.owner);
            let owner = owner.expect("an in-flight request ends with its owner");
            if self.liveness(&owner.process)? != Liveness::Dead {
                living.push(at);
            }
        }
        Ok(living)
    }
}
