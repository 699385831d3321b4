//! Payloads for a transition that is decided before the server was asked.
//!
//! What an operation does to the record never depends on the text of a message, a broadcast or a response: it gets a stand-in
//! for one that is not known, and is run again with the real one when the server has carried it out. It may depend on
//! attributes: those that are not known are asked for first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::script::{Answer, Asked};
use crate::error::StoreError;
use crate::session::{AttributeKey, Changes, Payload, Values};

/// How many bytes of a session's attributes a process keeps.
const KEPT_BYTES: usize = 64 << 10;

type Row = (AttributeKey, Vec<u8>);
/// Payloads as far as they are known; none where one is not there.
pub(super) type Known = BTreeMap<Payload, Option<Vec<u8>>>;

/// What is known of a session's attributes at one version.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    rows: BTreeMap<AttributeKey, Option<Vec<u8>>>,
    listings: Vec<(String, Vec<Row>)>,
}

impl Attributes {
    /// Takes in what was answered.
    pub(super) fn learn(self: &mut Arc<Self>, asked: &Asked, answer: &mut Answer) -> Result<(), StoreError> {
        if asked.rows.is_empty() && asked.prefixes.is_empty() {
            return Ok(());
        }
        let known = Arc::make_mut(self);
        known.rows.extend(asked.rows.iter().cloned().zip(std::mem::take(&mut answer.rows)));
        for (prefix, listing) in asked.prefixes.iter().zip(std::mem::take(&mut answer.listings)) {
            let mut rows = Vec::with_capacity(listing.len() / 2);
            let mut items = listing.into_iter();
            while let (Some(name), Some(value)) = (items.next(), items.next()) {
                let name = String::from_utf8(name).ok().and_then(|name| AttributeKey::new(name).ok());
                let damaged = || StoreError::corrupt("of this session", "a row has a key that is no attribute key");
                rows.push((name.ok_or_else(damaged)?, value));
            }
            known.listings.push((prefix.clone(), rows));
        }
        Ok(())
    }

    /// What is known after an operation's changes.
    pub(super) fn change(self: &mut Arc<Self>, changes: &Changes) {
        for (payload, value) in changes.iter() {
            let Payload::Attribute(name) = payload else { continue };
            let known = Arc::make_mut(self);
            for (_, rows) in known.listings.iter_mut().filter(|(prefix, _)| name.as_str().starts_with(prefix)) {
                rows.retain(|(row, _)| row != name);
                rows.extend(value.clone().map(|value| (name.clone(), value)));
            }
            known.rows.insert(name.clone(), value.clone());
        }
    }

    /// What is known, for the next operation: nothing when it is much.
    pub(super) fn kept(self: &Arc<Self>) -> Arc<Self> {
        let listed = self.listings.iter().flat_map(|(_, rows)| rows).map(|(name, value)| (name, value.len()));
        let single = self.rows.iter().map(|(name, value)| (name, value.as_ref().map_or(0, Vec::len)));
        let bytes: usize = listed.chain(single).map(|(name, value)| name.as_str().len() + value).sum();
        if bytes <= KEPT_BYTES { self.clone() } else { Arc::default() }
    }
}

/// The payloads of a session as far as they are known.
pub(super) struct Speculation<'k> {
    payloads: &'k Known,
    attributes: &'k Attributes,
    asked: RefCell<Asked>,
}

impl<'k> Speculation<'k> {
    pub(super) fn on(payloads: &'k Known, attributes: &'k Attributes) -> Self {
        Self { payloads, attributes, asked: RefCell::default() }
    }

    /// What was missing.
    pub(super) fn into_asked(self) -> Asked {
        self.asked.into_inner()
    }
}

impl Values for Speculation<'_> {
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, StoreError> {
        let known = match key {
            Payload::Attribute(name) => self.attributes.rows.get(name),
            payload => self.payloads.get(payload),
        };
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let mut asked = self.asked.borrow_mut();
        Ok(match key {
            Payload::Attribute(name) => {
                if !asked.rows.contains(name) {
                    asked.rows.push(name.clone());
                }
                None
            }
            payload => {
                if !asked.payloads.contains(payload) {
                    asked.payloads.push(payload.clone());
                }
                // Reads as an empty text, and as a message of empty texts.
                Some(if matches!(payload, Payload::Response(_)) { Vec::new() } else { vec![0; 4] })
            }
        })
    }

    fn attributes(&self, parent: Option<&AttributeKey>) -> Result<Vec<Row>, StoreError> {
        let prefix = parent.map_or(String::new(), |parent| format!("{parent}."));
        let listing = self.attributes.listings.iter().find(|(known, _)| prefix.starts_with(known));
        if let Some((_, rows)) = listing {
            return Ok(rows.iter().filter(|(name, _)| name.as_str().starts_with(&prefix)).cloned().collect());
        }
        let mut asked = self.asked.borrow_mut();
        if !asked.prefixes.contains(&prefix) {
            asked.prefixes.push(prefix);
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> AttributeKey {
        AttributeKey::new(name).unwrap()
    }

    fn answer(rows: Vec<Option<Vec<u8>>>, listings: Vec<Vec<Vec<u8>>>) -> Answer {
        Answer { rows, listings, ..Answer::default() }
    }

    #[test]
    fn what_is_asked_for_is_known_afterwards_and_after_changes() {
        let mut known = Arc::<Attributes>::default();
        let nothing = Known::new();
        let values = Speculation::on(&nothing, &known);
        assert_eq!(values.get(&Payload::Attribute(key("a.b"))).unwrap(), None);
        assert!(values.attributes(Some(&key("a"))).unwrap().is_empty());
        let asked = values.into_asked();
        assert_eq!((asked.rows.clone(), asked.prefixes.clone()), (vec![key("a.b")], vec!["a.".to_owned()]));
        let listing = ["a.b", "1", "a.c", "2"].map(|text| text.as_bytes().to_vec()).to_vec();
        known.learn(&asked, &mut answer(vec![Some(b"1".to_vec())], vec![listing])).unwrap();
        let changes = [(key("a.b"), Some(b"3".to_vec())), (key("a.c"), None), (key("d"), Some(b"4".to_vec()))];
        known.change(&changes.into_iter().map(|(name, value)| (Payload::Attribute(name), value)).collect());
        let values = Speculation::on(&nothing, &known);
        assert_eq!(values.attributes(Some(&key("a"))).unwrap(), [(key("a.b"), b"3".to_vec())]);
        assert_eq!(values.get(&Payload::Attribute(key("d"))).unwrap().as_deref(), Some(b"4".as_slice()));
        assert_eq!(values.into_asked(), Asked::default());
    }

    #[test]
    fn much_is_not_kept() {
        let mut known = Arc::<Attributes>::default();
        known.change(&[(Payload::Attribute(key("a")), Some(vec![b'x'; KEPT_BYTES]))].into_iter().collect());
        assert!(known.kept().rows.is_empty());
    }

    #[test]
    fn a_message_that_is_not_known_has_a_stand_in() {
        let (nothing, attributes) = (Known::new(), Attributes::default());
        let values = Speculation::on(&nothing, &attributes);
        let payload = Payload::Outgoing { owner: 1, sequence: 1 };
        assert!(values.get(&payload).unwrap().is_some() && values.get(&payload).unwrap().is_some());
        assert_eq!(values.into_asked().payloads, [payload]);
    }
}
