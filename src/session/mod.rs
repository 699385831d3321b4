//! The state machine: what one operation may do to one session. Pure: no I/O, no clock, no randomness, no unsafe code.
//!
//! A [`Transition`] starts from a session's [`Record`], a way to read its payloads and a [`Context`] (the time, the settings,
//! what is known of processes). An operation, one method, changes the transition's own copy of the record and collects
//! [`Effects`]: payloads to write or delete, owners to wake. A store carries out the record and the effects, all or nothing. An
//! operation that fails leaves nothing to carry out.
//!
//! The record is small and refers to payloads (message bodies, responses, attribute values) that stand under their own keys,
//! so an operation's cost does not grow with what else the session holds.
#![forbid(unsafe_code)]

mod attributes;
mod encoding;
mod in_flight;
mod inspect;
mod json;
mod lifecycle;
#[cfg(test)]
mod model;
mod outgoing;
mod outlook;
mod owners;
mod payload;
mod pending;
mod record;
mod room;
mod steady;
#[cfg(test)]
mod tests;
mod transition;
mod words;

pub use attributes::Change;
pub use encoding::UndecodableRecord;
pub use in_flight::{Begun, DuplicatePolicy, RequestCancellation};
pub use inspect::{InspectedOwner, InspectedPending, InspectedRequest, Inspection};
pub use lifecycle::NewRecord;
pub use outgoing::Outgoing;
pub use owners::{Detached, Interest, Readiness};
pub use payload::Payload;
pub use pending::{Cancellation, Claim, Delivery, PendingInfo, Registered, RequestMessage, Resolved};
pub use record::Record;
pub use transition::{Decided, Effects, Handle, Session, Transition};
pub use words::{LateReason, OwnerKind};

pub use crate::kind::{
    AttributeKey, Census, Changes, Channel, Context, IndexKey, Population, RecordChange, Refusal, Step, StoreView,
    Values,
};
