//! Messages for the client: queued for one owner, or broadcast to whichever stream takes them first.
//!
//! Only its owner takes a message (G3). An owner's messages are numbered without gaps, `head..tail`, and taken in that order. A
//! broadcast that an owner takes or peeks gets the next number in that owner's queue; while it is only peeked it stays under its
//! own key, so that it can return.

use super::payload::Payload;
use super::record::{Broadcast, Record};
use super::transition::Transition;
use super::words::OwnerKind;
use crate::error::StoreError;
use crate::ids::OwnerToken;
use crate::kind::Step;
use crate::settings::Limit;

/// A message for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number among the owner's messages.
    pub sequence: u64,
    /// The JSON-RPC message.
    pub message: String,
    /// What the sender wants to be told with it.
    pub context: String,
}

impl Transition<'_> {
    /// Queues a message for an owner. Its sequence number.
    pub fn enqueue_outgoing(&mut self, token: &OwnerToken, message: &str, context: &str) -> Step<u64> {
        self.enqueue(token, with_room(message, context), context)
    }

    pub(super) fn enqueue(&mut self, token: &OwnerToken, message: String, context: &str) -> Step<u64> {
        let index = self.owner(token)?;
        self.check_message("message", &message)?;
        self.within(Limit::MessageBytes, context.len() as u64)?;
        let body = pack(message, context);
        let bytes = body.len() as u64;
        let owner = &self.record().owners[index];
        self.within(Limit::OwnerMessages, owner.tail - owner.head + 1)?;
        self.within(Limit::OwnerBytes, owner.bytes + bytes)?;
        self.within_session(bytes)?;
        let event = self.wake_owner(index);
        let record = self.record_mut();
        record.message_bytes += bytes;
        let owner = &mut record.owners[index];
        let sequence = owner.tail;
        owner.tail += 1;
        owner.sizes.push_back(bytes as u32);
        owner.bytes += bytes;
        owner.message_at = event;
        let key = Payload::Outgoing { owner: owner.number, sequence };
        self.put(key, body);
        Ok(sequence)
    }

    /// Queues a message for whichever stream owner takes it first. Its number among the broadcasts.
    pub fn enqueue_broadcast(&mut self, message: &str, context: &str) -> Step<u64> {
        self.check_message("message", message)?;
        self.within(Limit::MessageBytes, context.len() as u64)?;
        let body = pack(with_room(message, context), context);
        self.within(Limit::Broadcasts, self.record().broadcasts.len() as u64 + 1)?;
        self.within_session(body.len() as u64)?;
        let record = self.record_mut();
        let number = record.next_broadcast;
        record.next_broadcast += 1;
        record.message_bytes += body.len() as u64;
        record.broadcasts.push_back(Broadcast { number, bytes: body.len() as u32, holder: None });
        self.put(Payload::Broadcast(number), body);
        self.announce_broadcasts();
        Ok(number)
    }

    /// The owner's next messages, at most `max`, removed.
    pub fn take_outgoing(&mut self, token: &OwnerToken, max: usize) -> Step<Vec<Outgoing>> {
        let messages = self.peek_outgoing(token, max)?;
        if let Some(last) = messages.last() {
            self.acknowledge(token, last.sequence)?;
        }
        Ok(messages)
    }

    /// The owner's next messages, at most `max`; they stay until they are acknowledged.
    pub fn peek_outgoing(&mut self, token: &OwnerToken, max: usize) -> Step<Vec<Outgoing>> {
        let index = self.owner(token)?;
        self.assign_broadcasts(index, max as u64);
        let owner = &self.record().owners[index];
        (owner.head..owner.tail.min(owner.head.saturating_add(max as u64)))
            .map(|sequence| {
                let body = self.payload_of_record(&self.message_key(index, sequence).0)?;
                let (message, context) = unpack(body)?;
                Ok(Outgoing { sequence, message, context })
            })
            .collect()
    }

    /// Removes the owner's messages up to and with `up_to`. How many.
    pub fn acknowledge(&mut self, token: &OwnerToken, up_to: u64) -> Step<u64> {
        let index = self.owner(token)?;
        let owner = &self.record().owners[index];
        let end = owner.tail.min(up_to.saturating_add(1));
        let removed = owner.head..end.max(owner.head);
        if removed.is_empty() {
            return Ok(0);
        }
        for sequence in removed.clone() {
            let (key, broadcast) = self.message_key(index, sequence);
            self.delete(key);
            let record = self.record_mut();
            let owner = &mut record.owners[index];
            let own = u64::from(owner.sizes.pop_front().unwrap_or_default());
            owner.bytes = Record::without(owner.bytes, own)?;
            record.message_bytes = Record::without(record.message_bytes, broadcast.unwrap_or(own))?;
        }
        let record = self.record_mut();
        let owner = &mut record.owners[index];
        owner.head = removed.end;
        let number = owner.number;
        record.broadcasts.retain(
            |broadcast| !matches!(broadcast.holder, Some((holder, sequence)) if holder == number && removed.contains(&sequence)),
        );
        Ok(removed.end - removed.start)
    }

    /// Whether the owner would find a message if it peeked.
    pub(super) fn has_messages(&self, index: usize) -> bool {
        let record = self.record();
        record.has_messages(&record.owners[index])
    }

    /// Tells every stream owner that there are broadcasts.
    pub(super) fn announce_broadcasts(&mut self) {
        for index in 0..self.record().owners.len() {
            if self.record().owners[index].kind == OwnerKind::Stream {
                let event = self.wake_owner(index);
                self.edit().owners[index].message_at = event;
            }
        }
    }

    /// Gives a stream owner as many free broadcasts as it has room for in its next `max` messages.
    fn assign_broadcasts(&mut self, index: usize, max: u64) {
        let record = self.record();
        let owner = &record.owners[index];
        let room = max.saturating_sub(owner.tail - owner.head) as usize;
        let free = record.broadcasts.iter().filter(|broadcast| broadcast.holder.is_none()).count();
        if owner.kind != OwnerKind::Stream || room == 0 || free == 0 {
            return;
        }
        let record = self.record_mut();
        let owner = &mut record.owners[index];
        for broadcast in record.broadcasts.iter_mut().filter(|broadcast| broadcast.holder.is_none()).take(room) {
            broadcast.holder = Some((owner.number, owner.tail));
            owner.tail += 1;
            owner.sizes.push_back(0);
        }
    }

    /// Where the body of a message of the owner is, and its size when it is a broadcast.
    fn message_key(&self, index: usize, sequence: u64) -> (Payload, Option<u64>) {
        let record = self.record();
        let owner = record.owners[index].number;
        let held = record.broadcasts.iter().find(|broadcast| broadcast.holder == Some((owner, sequence)));
        match held {
            Some(broadcast) => (Payload::Broadcast(broadcast.number), Some(u64::from(broadcast.bytes))),
            None => (Payload::Outgoing { owner, sequence }, None),
        }
    }
}

/// What [`pack`] adds to a message.
pub(super) fn packing(context: &str) -> usize {
    context.len() + size_of::<u32>()
}

fn with_room(message: &str, context: &str) -> String {
    let mut text = String::with_capacity(message.len() + packing(context));
    text.push_str(message);
    text
}

/// A message as a payload: the message, the context, the length of the context. The message stays in the memory it is in.
fn pack(message: String, context: &str) -> Vec<u8> {
    let mut body = message.into_bytes();
    body.extend_from_slice(context.as_bytes());
    body.extend_from_slice(&(context.len() as u32).to_le_bytes());
    body
}

/// The message and the context.
pub(super) fn unpack(mut body: Vec<u8>) -> Result<(String, String), StoreError> {
    let damaged = || StoreError::corrupt("of this session", "a queued message cannot be read");
    let (texts, length) = body.split_last_chunk().ok_or_else(damaged)?;
    let end = texts.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
    let context = std::str::from_utf8(&texts[end..]).map_err(|_| damaged())?.to_owned();
    body.truncate(end);
    let message = String::from_utf8(body).map_err(|_| damaged())?;
    Ok((message, context))
}
