//! Payloads for a transition that is decided before the server was asked.
//!
//! What an operation does to the record never depends on the text of a body (a message, a response): it gets a stand-in
//! for one that is not known, and is run again with the real one when the server has carried it out. It may depend on
//! attributes: those that are not known are asked for first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::script::{Answer, Asked, Listing};
use crate::error::StoreError;
use crate::kind::{AttributeKey, Changes, PayloadKey, Values};

/// How many bytes of a session's attributes a process keeps.
pub(super) const KEPT_BYTES: usize = 64 << 10;

/// Payloads as far as they are known; none where one is not there.
pub(super) type Known<P> = BTreeMap<P, Option<Vec<u8>>>;

/// What is known of a session's attributes at one version.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    rows: BTreeMap<AttributeKey, Row>,
    /// Whether every row that is there is among `rows`.
    complete: bool,
}

/// What is known of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Row {
    /// No row has it.
    Absent,
    /// A row has it, whose value was not read.
    Unread,
    Value(Vec<u8>),
}

impl Row {
    fn of(value: Option<Vec<u8>>) -> Self {
        value.map_or(Row::Absent, Row::Value)
    }
}

impl Attributes {
    /// Takes in what was answered.
    pub(super) fn learn<P>(self: &mut Arc<Self>, asked: &Asked<P>, answer: &mut Answer) -> Result<(), StoreError> {
        if !asked.for_attributes() {
            return Ok(());
        }
        let known = Arc::make_mut(self);
        let values = std::mem::take(&mut answer.rows).into_iter().map(Row::of);
        known.rows.extend(asked.rows.iter().cloned().zip(values));
        known.complete |= asked.listing != Listing::None;
        let mut items = std::mem::take(&mut answer.listing).into_iter();
        while let Some(name) = items.next() {
            let name = String::from_utf8(name).ok().and_then(|name| AttributeKey::new(name).ok());
            let damaged = || StoreError::corrupt("of this record", "a row has a key that is no attribute key");
            let name = name.ok_or_else(damaged)?;
            if asked.listing == Listing::All {
                known.rows.insert(name, Row::of(items.next()));
            } else {
                known.rows.entry(name).or_insert(Row::Unread);
            }
        }
        Ok(())
    }

    /// What is known after an operation's changes.
    pub(super) fn change<P: PayloadKey>(self: &mut Arc<Self>, changes: &Changes<P>) {
        for (payload, value) in changes.iter() {
            if let Some(name) = payload.attribute() {
                Arc::make_mut(self).rows.insert(name.clone(), Row::of(value.clone()));
            }
        }
    }

    /// What is known, for the next operation: nothing when it is much.
    pub(super) fn kept(self: &Arc<Self>) -> Arc<Self> {
        let length = |row: &Row| if let Row::Value(value) = row { value.len() } else { 0 };
        let bytes: usize = self.rows.iter().map(|(name, row)| name.as_str().len() + length(row)).sum();
        if bytes <= KEPT_BYTES { self.clone() } else { Arc::default() }
    }

    fn get(&self, name: &AttributeKey) -> Option<Option<&Vec<u8>>> {
        match self.rows.get(name) {
            Some(Row::Value(value)) => Some(Some(value)),
            Some(Row::Absent) => Some(None),
            Some(Row::Unread) => None,
            None => self.complete.then_some(None),
        }
    }
}

/// The payloads of a session as far as they are known.
pub(super) struct Speculation<'k, P> {
    payloads: &'k Known<P>,
    attributes: &'k Attributes,
    /// Which attributes are asked for by whoever must know what lies below a key.
    listing: Listing,
    asked: RefCell<Asked<P>>,
}

impl<'k, P: PayloadKey> Speculation<'k, P> {
    /// Of a session whose attributes have so many bytes: few are read at once, of many the names.
    pub(super) fn on(payloads: &'k Known<P>, attributes: &'k Attributes, attribute_bytes: u64) -> Self {
        let listing = if attribute_bytes <= KEPT_BYTES as u64 { Listing::All } else { Listing::Names };
        Self { payloads, attributes, listing, asked: RefCell::default() }
    }

    /// What was missing.
    pub(super) fn into_asked(self) -> Asked<P> {
        let mut asked = self.asked.into_inner();
        if asked.listing == Listing::All {
            asked.rows.clear();
        }
        asked
    }
}

impl<P: PayloadKey> Values<P> for Speculation<'_, P> {
    fn get(&self, key: &P) -> Result<Option<Vec<u8>>, StoreError> {
        let known = match key.attribute() {
            Some(name) => self.attributes.get(name).map(|value| value.cloned()),
            None => self.payloads.get(key).cloned(),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let mut asked = self.asked.borrow_mut();
        Ok(match key.attribute() {
            Some(name) => {
                asked.rows.insert(name.clone());
                None
            }
            None => {
                asked.payloads.insert(key.clone());
                Some(key.stand_in())
            }
        })
    }

    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<(AttributeKey, Vec<u8>)>, StoreError> {
        let mut asked = self.asked.borrow_mut();
        if !self.attributes.complete {
            let listing = if parent.is_none() { Listing::All } else { self.listing };
            asked.listing = asked.listing.max(listing);
            return Ok(Vec::new());
        }
        let prefix = parent.map_or(String::new(), |parent| format!("{parent}."));
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let below = self.attributes.rows.range::<str, _>(from);
        let mut found = Vec::new();
        for (name, row) in below.take_while(|(name, _)| name.as_str().starts_with(&prefix)) {
            match row {
                Row::Value(value) => found.push((name.clone(), value.clone())),
                Row::Unread => {
                    asked.rows.insert(name.clone());
                }
                Row::Absent => {}
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Payload;

    fn key(name: &str) -> AttributeKey {
        AttributeKey::new(name).unwrap()
    }

    fn bytes<const N: usize>(texts: [&str; N]) -> Vec<Vec<u8>> {
        texts.map(|text| text.as_bytes().to_vec()).to_vec()
    }

    #[test]
    fn what_is_asked_for_is_known_afterwards_and_after_changes() {
        let nothing = Known::<Payload>::new();
        for (size, listing) in [(0, Listing::All), (1 << 20, Listing::Names)] {
            let mut known = Arc::<Attributes>::default();
            let values = Speculation::on(&nothing, &known, size);
            assert_eq!(values.get(&Payload::Attribute(key("a.b"))).unwrap(), None);
            assert!(values.attributes(Some(&key("a"))).unwrap().is_empty());
            let asked = values.into_asked();
            assert_eq!(asked.listing, listing);
            let mut answer = match listing {
                Listing::All => Answer { listing: bytes(["a.b", "1", "a.c", "2", "b", "3"]), ..Answer::default() },
                _ => {
                    let rows = vec![Some(b"1".to_vec())];
                    Answer { rows, listing: bytes(["a.b", "a.c", "b"]), ..Answer::default() }
                }
            };
            known.learn(&asked, &mut answer).unwrap();
            if listing == Listing::Names {
                // Of what lies below, the values that are missing are asked for, and no others.
                let values = Speculation::on(&nothing, &known, size);
                values.attributes(Some(&key("a"))).unwrap();
                let asked = values.into_asked();
                assert_eq!(asked, Asked { rows: [key("a.c")].into(), ..Asked::default() });
                let rows = vec![Some(b"2".to_vec())];
                known.learn(&asked, &mut Answer { rows, ..Answer::default() }).unwrap();
            }
            let values = Speculation::on(&nothing, &known, size);
            let both = [(key("a.b"), b"1".to_vec()), (key("a.c"), b"2".to_vec())];
            assert_eq!(values.attributes(Some(&key("a"))).unwrap(), both);
            let changes = [(key("a.b"), Some(b"3".to_vec())), (key("a.c"), None), (key("d"), Some(b"4".to_vec()))];
            known.change(&changes.into_iter().map(|(name, value)| (Payload::Attribute(name), value)).collect());
            let values = Speculation::on(&nothing, &known, size);
            assert_eq!(values.attributes(Some(&key("a"))).unwrap(), [(key("a.b"), b"3".to_vec())]);
            assert_eq!(values.get(&Payload::Attribute(key("d"))).unwrap().as_deref(), Some(b"4".as_slice()));
            assert_eq!(values.get(&Payload::Attribute(key("e"))).unwrap(), None);
            assert_eq!(values.into_asked(), Asked::default());
        }
    }

    #[test]
    fn much_is_not_kept() {
        let mut known = Arc::<Attributes>::default();
        known.change(&[(Payload::Attribute(key("a")), Some(vec![b'x'; KEPT_BYTES]))].into_iter().collect());
        assert!(known.kept().rows.is_empty());
    }

    #[test]
    fn a_message_that_is_not_known_has_a_stand_in() {
        let (nothing, attributes) = (Known::<Payload>::new(), Attributes::default());
        let values = Speculation::on(&nothing, &attributes, 0);
        let payload = Payload::Outgoing { owner: 1, sequence: 1 };
        assert!(values.get(&payload).unwrap().is_some() && values.get(&payload).unwrap().is_some());
        assert_eq!(values.into_asked().payloads, [payload].into());
    }
}
