//! The record that a process has used last, decoded.
//!
//! Invariant: what is kept is a record beside the very bytes it is encoded in. A record has one encoding, so whoever finds the
//! same bytes in the store, whoever wrote them, has found the same record, and need not read them. Nothing is done by what is kept
//! here: the store is always asked first. Only what to ask it for may depend on it ([`Recall::look`]).

use parking_lot::Mutex;

use crate::error::StoreError;
use crate::ids::Digest;
use crate::session::Record;

/// A record and its encoding.
pub(super) struct Known {
    pub(super) session: Digest,
    pub(super) record: Box<Record>,
    pub(super) bytes: Vec<u8>,
}

/// The last record that was given back; one, since a request's operations are on one session.
#[derive(Default)]
pub(super) struct Recall(Mutex<Option<Known>>);

impl Recall {
    /// The record of `session` that `bytes` are.
    pub(super) fn record(&self, session: Digest, bytes: &[u8]) -> Result<Known, StoreError> {
        match self.0.lock().take_if(|known| known.session == session && known.bytes == bytes) {
            Some(known) => Ok(known),
            None => Ok(Known { session, record: decode(bytes)?, bytes: bytes.to_vec() }),
        }
    }

    /// Shows the record of `session` as it was when it was kept, if it was.
    pub(super) fn look(&self, session: Digest, look: &mut dyn FnMut(&Record)) {
        if let Some(known) = self.0.lock().as_ref().filter(|known| known.session == session) {
            look(&known.record);
        }
    }

    /// Keeps a record for the next to ask for it.
    pub(super) fn keep(&self, known: Known) {
        debug_assert_eq!(Record::decode(&known.bytes).ok(), Some(known.record.clone()), "a record beside its bytes");
        let before = self.0.lock().replace(known);
        drop(before);
    }
}

/// Reads a record.
pub(super) fn decode(bytes: &[u8]) -> Result<Box<Record>, StoreError> {
    Record::decode(bytes)
        .map_err(|error| StoreError::corrupt("of this session", format!("its record cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: Digest = Digest([1; 16]);

    /// A record of version 4 with nothing in it but its id, which is one byte.
    fn encoded(id: u8) -> Vec<u8> {
        let (words, texts) = (28_u32, 1_u32);
        let mut bytes = vec![4];
        bytes.extend([words.to_le_bytes(), texts.to_le_bytes()].as_flattened());
        bytes.extend(1_u64.to_le_bytes());
        bytes.resize(255, 0);
        bytes.push(id);
        bytes
    }

    #[test]
    fn the_same_bytes_are_not_read_twice() {
        let recall = Recall::default();
        let known = recall.record(SESSION, &encoded(b'a')).unwrap();
        let place = std::ptr::from_ref(&*known.record);
        recall.keep(known);
        assert_eq!(std::ptr::from_ref(&*recall.record(SESSION, &encoded(b'a')).unwrap().record), place);
    }

    #[test]
    fn g1_other_bytes_are_another_record_whatever_was_kept() {
        let recall = Recall::default();
        recall.keep(recall.record(SESSION, &encoded(b'a')).unwrap());
        assert_eq!(recall.record(SESSION, &encoded(b'b')).unwrap().record.id(), "b");
        assert!(recall.record(SESSION, b"no record").is_err());
    }
}
