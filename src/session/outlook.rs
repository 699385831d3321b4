//! What an operation will probably come to, by a record that may be out of date.
//!
//! Whoever foresees a change need not look first, without keeping writers out, whether there is one. Nothing depends on whether
//! it comes true: the operation decides by the record it finds.

use super::record::{Owner, Pending, PendingState, Record};
use super::words::OwnerKind;
use crate::ids::OwnerToken;
use crate::process::Process;

impl Record {
    /// Whether the owner would find a message.
    pub(crate) fn foresees_message(&self, token: &OwnerToken) -> bool {
        self.owner_with(token).is_some_and(|owner| self.has_messages(owner))
    }

    /// Whether the owner would find that a request of its own has ended: this one, or any.
    pub(crate) fn foresees_end(&self, token: &OwnerToken, id: Option<i64>) -> bool {
        let Some(owner) = self.owner_with(token) else { return false };
        let mut own = self.pending.iter().filter(|pending| pending.owner == owner.number);
        own.any(|pending| id.is_none_or(|id| id == pending.id) && pending.state != PendingState::Waiting)
    }

    /// The process whose life decides over a response to this request; nothing where it would be late anyway.
    pub(crate) fn foresees_delivery(&self, id: i64) -> Option<Process> {
        let waiting = |pending: &&Pending| pending.id == id && pending.state == PendingState::Waiting;
        let number = self.pending.iter().find(waiting)?.owner;
        self.owners.iter().find(|owner| owner.number == number).map(|owner| owner.process)
    }

    fn owner_with(&self, token: &OwnerToken) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.token == *token)
    }

    pub(super) fn has_messages(&self, owner: &Owner) -> bool {
        owner.head < owner.tail
            || (owner.kind == OwnerKind::Stream && self.broadcasts.iter().any(|broadcast| broadcast.holder.is_none()))
    }
}
