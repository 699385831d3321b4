//! The record that a process has used last, decoded.
//!
//! Invariant: what is kept is a record beside the very bytes it is encoded in. A record has one encoding, so whoever finds the
//! same bytes in the store, whoever wrote them, has found the same record, and need not read them. Nothing is done by what is kept
//! here: the store is always asked first. Only what to ask it for may depend on it ([`Recall::look`]).

use std::any::Any;

use parking_lot::Mutex;

use crate::error::StoreError;
use crate::ids::Digest;
use crate::kind::{Kind, corrupt};

/// A record and its encoding.
pub(super) struct Known<K: Kind> {
    pub(super) key: Digest,
    pub(super) record: Box<K::Record>,
    pub(super) bytes: Vec<u8>,
}

/// The same of whatever kind.
struct Kept {
    key: Digest,
    record: Box<dyn Any + Send>,
    bytes: Vec<u8>,
}

/// The last record that was given back; one, since a request's operations are on one session.
#[derive(Default)]
pub(super) struct Recall(Mutex<Option<Kept>>);

impl Recall {
    /// The record under `key` that `bytes` are.
    pub(super) fn record<K: Kind>(&self, key: Digest, bytes: &[u8]) -> Result<Known<K>, StoreError> {
        let is_it = |kept: &mut Kept| kept.key == key && kept.record.is::<K::Record>() && kept.bytes == bytes;
        if let Some(Kept { record, bytes, .. }) = self.0.lock().take_if(is_it)
            && let Ok(record) = record.downcast()
        {
            return Ok(Known { key, record, bytes });
        }
        Ok(Known { key, record: decode::<K>(bytes)?, bytes: bytes.to_vec() })
    }

    /// Shows the record under `key` as it was when it was kept, if it was.
    pub(super) fn look<K: Kind>(&self, key: Digest, look: &mut dyn FnMut(&K::Record)) {
        let kept = self.0.lock();
        let record = kept.as_ref().filter(|kept| kept.key == key).and_then(|kept| kept.record.downcast_ref());
        if let Some(record) = record {
            look(record);
        }
    }

    /// Keeps a record for the next to ask for it.
    pub(super) fn keep<K: Kind>(&self, Known { key, record, bytes }: Known<K>) {
        debug_assert_eq!(K::decode(&bytes).as_ref(), Ok(&record), "a record beside its bytes");
        let before = self.0.lock().replace(Kept { key, record, bytes });
        drop(before);
    }
}

/// Reads a record.
pub(super) fn decode<K: Kind>(bytes: &[u8]) -> Result<Box<K::Record>, StoreError> {
    K::decode(bytes).map_err(|reason| corrupt::<K>(format!("its record cannot be read: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

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
        let known = recall.record::<Session>(SESSION, &encoded(b'a')).unwrap();
        let place = std::ptr::from_ref(&*known.record);
        recall.keep(known);
        assert_eq!(std::ptr::from_ref(&*recall.record::<Session>(SESSION, &encoded(b'a')).unwrap().record), place);
    }

    #[test]
    fn g1_other_bytes_are_another_record_whatever_was_kept() {
        let recall = Recall::default();
        recall.keep(recall.record::<Session>(SESSION, &encoded(b'a')).unwrap());
        assert_eq!(recall.record::<Session>(SESSION, &encoded(b'b')).unwrap().record.id(), "b");
        assert!(recall.record::<Session>(SESSION, b"no record").is_err());
    }
}
