//! Attributes: JSON values under dotted keys.
//!
//! A row holds the JSON text that was set under its key. No row stands below another (`a` and `a.b` are never both rows): what
//! is set below a row goes into that row's object, what is set above rows replaces them. So a value reads the same however it
//! was written, and a `set` never disturbs keys it does not name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json;
use super::payload::Payload;
use super::record::Record;
use super::transition::Transition;
use crate::error::{InvalidArgument, StoreError};
use crate::kind::{AttributeKey, Refusal, Step};
use crate::settings::Limit;

/// How deep a value may be nested, the segments of its key included: what was set one by one is read as one document, and
/// readers have limits, too (128 here, 512 in PHP).
const MAX_DEPTH: usize = 100;

/// A change of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key gets this JSON text.
    Set(AttributeKey, String),
    /// The key and all below it go.
    Remove(AttributeKey),
}

impl Transition<'_> {
    /// The JSON text under `key`.
    pub fn get(&self, key: &AttributeKey) -> Step<Option<String>> {
        if let Some(row) = self.row(key)? {
            return Ok(Some(row));
        }
        if let Some(above) = self.row_above(key)? {
            return Ok(find(&above.document, above.row.path(key)).map(Value::to_string));
        }
        let rows = self.rows(Some(key))?;
        if rows.is_empty() { Ok(None) } else { Ok(Some(assemble(rows, key.as_str().len() + 1)?.to_string())) }
    }

    /// All attributes as one JSON object.
    pub fn all(&self) -> Step<String> {
        Ok(assemble(self.rows(None)?, 0)?.to_string())
    }

    /// Applies all changes, in order. A row that several in turn go into is read and written once.
    pub fn patch(&mut self, changes: &[Change]) -> Step<()> {
        self.within(Limit::PatchChanges, changes.len() as u64)?;
        let before = self.account();
        let mut open: Option<Above> = None;
        for change in changes {
            let (Change::Set(key, _) | Change::Remove(key)) = change;
            if open.as_ref().is_none_or(|above| key.below(&above.row).is_none()) {
                self.close(open.take())?;
                match (self.spot(key)?, change) {
                    (Spot::Above(above), _) => open = Some(above),
                    (spot, Change::Set(key, json)) => {
                        self.set_at(spot, key, json)?;
                        continue;
                    }
                    (spot, Change::Remove(key)) => {
                        self.remove_at(spot, key)?;
                        continue;
                    }
                }
            }
            let above = open.as_mut().expect("else the change was made at its own row");
            match change {
                Change::Set(key, json) => self.set_within(above, key, json)?,
                Change::Remove(key) => {
                    take_out(&mut above.document, above.row.path(key));
                }
            }
        }
        self.close(open)?;
        self.settle(before)
    }

    fn close(&mut self, open: Option<Above>) -> Step<()> {
        open.map_or(Ok(()), |above| self.put_row(above.row, above.document.to_string(), above.bytes))
    }

    /// Sets `key` to a JSON text; what stood below it is replaced.
    pub fn set(&mut self, key: &AttributeKey, json: &str) -> Step<()> {
        let before = self.account();
        match self.spot(key)? {
            Spot::Above(mut above) => {
                self.set_within(&mut above, key, json)?;
                self.close(Some(above))?;
            }
            spot => self.set_at(spot, key, json)?,
        }
        self.settle(before)
    }

    fn set_within(&self, above: &mut Above, key: &AttributeKey, json: &str) -> Step<()> {
        self.check_value(key, json)?;
        *place(&mut above.document, above.row.path(key)) = parse(json)?;
        Ok(())
    }

    /// Sets a key that stands in no row above.
    fn set_at(&mut self, spot: Spot, key: &AttributeKey, json: &str) -> Step<()> {
        self.check_value(key, json)?;
        let before = match spot {
            Spot::Own(bytes) => bytes,
            _ => {
                self.remove_below(key)?;
                0
            }
        };
        self.put_row(key.clone(), json.to_owned(), before)
    }

    /// Removes `key` and all below it. Whether there was anything.
    pub fn remove(&mut self, key: &AttributeKey) -> Step<bool> {
        let before = self.account();
        match self.spot(key)? {
            Spot::Above(mut above) => {
                let removed = take_out(&mut above.document, above.row.path(key));
                if removed {
                    // A list that loses an element becomes an object, which is longer.
                    self.close(Some(above))?;
                    self.settle(before)?;
                }
                Ok(removed)
            }
            spot => self.remove_at(spot, key),
        }
    }

    /// Removes a key that stands in no row above, and all below it.
    fn remove_at(&mut self, spot: Spot, key: &AttributeKey) -> Step<bool> {
        match spot {
            Spot::Own(bytes) => self.delete_row(key.clone(), bytes).map(|()| true),
            _ => self.remove_below(key),
        }
    }

    /// Removes the rows below `key`. Whether there were any.
    fn remove_below(&mut self, key: &AttributeKey) -> Step<bool> {
        let rows = self.rows(Some(key))?;
        let removed = !rows.is_empty();
        for (row, value) in rows {
            let bytes = row.bytes_with(value.len());
            self.delete_row(row, bytes)?;
        }
        Ok(removed)
    }

    /// The JSON text under `key`, removed.
    pub fn take(&mut self, key: &AttributeKey) -> Step<Option<String>> {
        let value = self.get(key)?;
        if value.is_some() {
            self.remove(key)?;
        }
        Ok(value)
    }

    /// Sets `key` unless it has a value. Whether it was set. Null counts as no value.
    pub fn put_if_absent(&mut self, key: &AttributeKey, json: &str) -> Step<bool> {
        self.check_value(key, json)?;
        match self.get(key)? {
            Some(value) if value != "null" => Ok(false),
            _ => self.set(key, json).map(|()| true),
        }
    }

    /// Sets `key` (or removes it) if its value equals `expected` as JSON. Whether it did. Null counts as no value, and a list
    /// equals the object with the same elements.
    pub fn compare_and_set(&mut self, key: &AttributeKey, expected: Option<&str>, json: Option<&str>) -> Step<bool> {
        let expected = expected.map(parse).transpose()?.filter(|value| !value.is_null());
        let current = self.get(key)?.as_deref().map(parse_row).transpose()?.filter(|value| !value.is_null());
        let is_expected = match (&current, &expected) {
            (Some(current), Some(expected)) => same(current, expected),
            (current, expected) => current.is_none() && expected.is_none(),
        };
        if !is_expected {
            return Ok(false);
        }
        match json {
            Some(json) => self.set(key, json)?,
            None => {
                self.remove(key)?;
            }
        }
        Ok(true)
    }

    /// Refuses what is too long, and what could not be read again: what is not one JSON text, and what is nested too deeply
    /// below `key`.
    fn check_value(&self, key: &AttributeKey, json: &str) -> Step<()> {
        self.within(Limit::MessageBytes, json.len() as u64)?;
        let skimmed = json::skim(json, &mut |_, _| {});
        let depth = key.as_str().split('.').count() + skimmed.unwrap_or_else(|| depth(json));
        if depth > MAX_DEPTH {
            let reason = format!("with the segments of its key it is nested {depth} deep and the limit is {MAX_DEPTH}");
            return Err(InvalidArgument::new("attribute value", json, reason).into());
        }
        if skimmed.is_none() {
            parse(json)?;
        }
        Ok(())
    }

    fn row(&self, key: &AttributeKey) -> Step<Option<String>> {
        self.payload(&Payload::Attribute(key.clone()))?.map(text).transpose()
    }

    /// The row above `key`, if there is one.
    fn row_above(&self, key: &AttributeKey) -> Step<Option<Above>> {
        for row in key.ancestors() {
            if let Some(json) = self.row(&row)? {
                let bytes = row.bytes_with(json.len());
                return Ok(Some(Above { row, bytes, document: parse_row(&json)? }));
            }
        }
        Ok(None)
    }

    /// Where a change of `key` goes. Since no row stands below another, who has a row needs to look no further.
    fn spot(&self, key: &AttributeKey) -> Step<Spot> {
        if let Some(length) = self.payload_length(&Payload::Attribute(key.clone()))? {
            return Ok(Spot::Own(key.bytes_with(length)));
        }
        Ok(self.row_above(key)?.map_or(Spot::Free, Spot::Above))
    }

    /// The rows below `parent`, or all, as this operation sees them.
    fn rows(&self, parent: Option<&AttributeKey>) -> Step<Vec<(AttributeKey, String)>> {
        let mut rows: BTreeMap<_, _> = self.values.attributes(parent)?.into_iter().collect();
        let prefix = AttributeKey::first_below(parent);
        for (key, value) in self.effects.payloads.range_from(&Payload::Attribute(prefix.clone())) {
            match (key, value) {
                (Payload::Attribute(key), Some(value)) if key.as_str().starts_with(prefix.as_str()) => {
                    rows.insert(key.clone(), value.clone());
                }
                (Payload::Attribute(key), None) if key.as_str().starts_with(prefix.as_str()) => {
                    rows.remove(key);
                }
                _ => break,
            }
        }
        rows.into_iter().map(|(key, value)| Ok((key, text(value)?))).collect()
    }

    /// How many bytes the attributes take, and how many there are.
    fn account(&self) -> (u64, u64) {
        (self.record().attribute_bytes, self.record().attributes)
    }

    /// Refuses a change that goes beyond a limit, once all of it is made: a store that has to ask for rows is then asked for all
    /// that the change needs.
    fn settle(&self, (bytes, attributes): (u64, u64)) -> Step<()> {
        let after = self.account();
        if after.0 > bytes {
            self.within(Limit::AttributeBytes, after.0)?;
            self.within_session(0)?;
        }
        if after.1 > attributes {
            self.within(Limit::Attributes, after.1)?;
        }
        Ok(())
    }

    /// Writes a row over one that takes `before` bytes.
    fn put_row(&mut self, key: AttributeKey, json: String, before: u64) -> Step<()> {
        self.within(Limit::MessageBytes, json.len() as u64)?;
        let others = Record::without(self.record().attribute_bytes, before)?;
        // A row takes the bytes of its key at least.
        let is_new = before == 0 && self.record().is_timed;
        let record = self.record_mut();
        record.attribute_bytes = others + key.bytes_with(json.len());
        record.attributes += u64::from(is_new);
        self.put(Payload::Attribute(key), json.into_bytes());
        Ok(())
    }

    /// Deletes a row that takes `bytes` bytes.
    fn delete_row(&mut self, key: AttributeKey, bytes: u64) -> Step<()> {
        self.record_mut().attribute_bytes = Record::without(self.record().attribute_bytes, bytes)?;
        if self.record().is_timed {
            self.record_mut().attributes = Record::without(self.record().attributes, 1)?;
        }
        self.delete(Payload::Attribute(key));
        Ok(())
    }
}

/// Where a change of a key goes.
enum Spot {
    /// Into its own row, which takes so many bytes.
    Own(u64),
    /// Into the row above.
    Above(Above),
    /// Into a new row; rows may stand below it.
    Free,
}

/// A row that has been read to be changed.
struct Above {
    row: AttributeKey,
    /// The bytes it takes.
    bytes: u64,
    document: Value,
}

fn text(row: Vec<u8>) -> Step<String> {
    String::from_utf8(row).map_err(|_| StoreError::corrupt("of this session", "an attribute is not text").into())
}

/// How many lists and objects are open at once in a JSON text, at most.
fn depth(json: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn parse(json: &str) -> Result<Value, Refusal> {
    serde_json::from_str(json)
        .map_err(|error| InvalidArgument::new("attribute value", json, format!("it is not JSON: {error}")).into())
}

/// The value of a row, which was checked when it was set.
fn parse_row(json: &str) -> Result<Value, StoreError> {
    let damaged = |error| StoreError::corrupt("of this session", format!("an attribute is not JSON: {error}"));
    serde_json::from_str(json).map_err(damaged)
}

/// The element of a list that a segment names: `1`, but neither `01` nor `+1`.
fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}

fn find<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(document, |value, segment| match value {
        Value::Object(object) => object.get(segment),
        // PHP writes an array with the keys 0, 1, … as a list.
        Value::Array(list) => list.get(index(segment)?),
        _ => None,
    })
}

/// Whether two values are the same: a list and the object that has its elements under their numbers are, since nobody who
/// reads them in PHP can tell them apart.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Array(list), Value::Object(object)) | (Value::Object(object), Value::Array(list)) => {
            let at = |at: usize| object.get(&at.to_string());
            list.len() == object.len()
                && list.iter().enumerate().all(|(n, value)| at(n).is_some_and(|o| same(value, o)))
        }
        (a, b) => a == b,
    }
}

/// The place at `path`; whatever is in the way of an object there becomes one.
fn place<'v>(document: &'v mut Value, path: &str) -> &'v mut Value {
    path.split('.').fold(document, |value, segment| {
        let element = value.as_array().and_then(|list| index(segment).filter(|&index| index < list.len()));
        match element {
            Some(index) => &mut value[index],
            None => object_of(value).entry(segment).or_insert(Value::Null),
        }
    })
}

/// The value as an object: a list keeps its elements under their numbers, anything else gives way.
fn object_of(value: &mut Value) -> &mut serde_json::Map<String, Value> {
    if !value.is_object() {
        let elements = match value.take() {
            Value::Array(list) => list,
            _ => Vec::new(),
        };
        *value =
            Value::Object(elements.into_iter().enumerate().map(|(at, element)| (at.to_string(), element)).collect());
    }
    value.as_object_mut().expect("it was made an object")
}

fn take_out(document: &mut Value, path: &str) -> bool {
    let (parent, last) = match path.rsplit_once('.') {
        Some((parent, last)) => (find(document, parent).is_some().then(|| place(document, parent)), last),
        None => (Some(document), path),
    };
    match parent {
        Some(Value::Object(object)) => object.shift_remove(last).is_some(),
        Some(list @ Value::Array(_)) if find(list, last).is_some() => object_of(list).shift_remove(last).is_some(),
        _ => false,
    }
}

/// One object of the rows, whose keys are taken from byte `skip` on.
fn assemble(rows: Vec<(AttributeKey, String)>, skip: usize) -> Step<Value> {
    let mut document = Value::Object(Default::default());
    for (key, json) in rows {
        *place(&mut document, &key.as_str()[skip..]) = parse_row(&json)?;
    }
    Ok(document)
}
