//! The keys of a session's payloads.

use crate::kind::{AttributeKey, BodyKey, BodyTable, PayloadKey};

/// The key of a payload within its session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payload {
    /// The value of an attribute row.
    Attribute(AttributeKey),
    /// A message of an owner's queue.
    Outgoing {
        /// The owner's number.
        owner: u32,
        /// The message's sequence number.
        sequence: u64,
    },
    /// A broadcast message.
    Broadcast(u64),
    /// The response to a pending request.
    Response(i64),
}

impl PayloadKey for Payload {
    fn attribute(&self) -> Option<&AttributeKey> {
        match self {
            Payload::Attribute(name) => Some(name),
            _ => None,
        }
    }

    fn body(&self) -> BodyKey {
        let table = |number, letter| BodyTable { number, letter };
        match self {
            Payload::Outgoing { owner, sequence } => {
                let mut bytes = [0; 12];
                bytes[..4].copy_from_slice(&owner.to_be_bytes());
                bytes[4..].copy_from_slice(&sequence.to_be_bytes());
                BodyKey::new(table(1, b'o'), bytes)
            }
            Payload::Broadcast(number) => BodyKey::new(table(2, b'b'), number.to_be_bytes()),
            Payload::Response(id) => BodyKey::new(table(3, b'a'), id.to_be_bytes()),
            Payload::Attribute(name) => unreachable!("the attribute {name} is no body"),
        }
    }

    /// Reads as an empty text, and as a message of empty texts.
    fn stand_in(&self) -> Vec<u8> {
        if matches!(self, Payload::Response(_)) { Vec::new() } else { vec![0; 4] }
    }

    fn of_attribute(name: AttributeKey) -> Option<Self> {
        Some(Payload::Attribute(name))
    }
}
