//! Payloads for a transition that is decided before the server was asked.
//!
//! What an operation does to the record never depends on the text of a message, a broadcast or a response: it gets a stand-in
//! for one that is not known, and is run again with the real one when the server has carried it out. It may depend on
//! attributes: those that are not known are asked for first.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::script::{Answer, Asked};
use crate::error::StoreError;
use crate::session::{AttributeKey, Payload, Values};

type Row = (AttributeKey, Vec<u8>);

/// What is known of a session's payloads at one version.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    payloads: BTreeMap<Payload, Option<Vec<u8>>>,
    listings: Vec<(String, Vec<Row>)>,
}

impl Known {
    /// Takes in what was answered.
    pub(super) fn learn(&mut self, asked: &Asked, answer: &mut Answer) -> Result<(), StoreError> {
        let rows = asked.rows.iter().cloned().map(Payload::Attribute).zip(std::mem::take(&mut answer.rows));
        let payloads = asked.payloads.iter().cloned().zip(std::mem::take(&mut answer.payloads));
        self.payloads.extend(rows.chain(payloads));
        for (prefix, listing) in asked.prefixes.iter().zip(std::mem::take(&mut answer.listings)) {
            let mut rows = Vec::with_capacity(listing.len() / 2);
            let mut items = listing.into_iter();
            while let (Some(name), Some(value)) = (items.next(), items.next()) {
                let name = String::from_utf8(name).ok().and_then(|name| AttributeKey::new(name).ok());
                let damaged = || StoreError::corrupt("of this session", "a row has a key that is no attribute key");
                rows.push((name.ok_or_else(damaged)?, value));
            }
            self.listings.push((prefix.clone(), rows));
        }
        Ok(())
    }
}

/// The payloads of a session as far as they are known.
pub(super) struct Speculation<'k> {
    known: &'k Known,
    asked: RefCell<Asked>,
}

impl<'k> Speculation<'k> {
    pub(super) fn on(known: &'k Known) -> Self {
        Self { known, asked: RefCell::default() }
    }

    /// What was missing.
    pub(super) fn into_asked(self) -> Asked {
        self.asked.into_inner()
    }
}

impl Values for Speculation<'_> {
    fn get(&self, key: &Payload) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(known) = self.known.payloads.get(key) {
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
        let listing = self.known.listings.iter().find(|(known, _)| prefix.starts_with(known));
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
