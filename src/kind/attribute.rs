//! The names of attributes: values of a record that operations read, change and list by name.

use std::fmt;

use crate::error::InvalidArgument;

/// The longest key, in bytes.
const MAX_KEY: usize = 255;

/// A dotted key: segments that are not empty, without control characters, at most 255 bytes in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeKey(String);

impl AttributeKey {
    /// Checks `key`.
    pub fn new(key: impl Into<String>) -> Result<Self, InvalidArgument> {
        let key = key.into();
        let has_empty_segment = key.is_empty()
            || key.starts_with('.')
            || key.ends_with('.')
            || key.as_bytes().windows(2).any(|pair| pair == b"..");
        let is_printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let reason = if has_empty_segment {
            "its segments must not be empty".to_owned()
        } else if key.len() > MAX_KEY {
            format!("it is {} bytes long and the limit is {MAX_KEY}", key.len())
        } else if !is_printable && key.chars().any(char::is_control) {
            "control characters are not allowed".to_owned()
        } else {
            return Ok(Self(key));
        };
        Err(InvalidArgument::new("attribute key", key, reason))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The place from which on the keys below `parent` stand in the order of keys, or all; no key.
    pub(crate) fn first_below(parent: Option<&AttributeKey>) -> Self {
        Self(parent.map_or(String::new(), |parent| format!("{parent}.")))
    }

    /// The path from `row` to this key, if it is below.
    pub(crate) fn below(&self, row: &AttributeKey) -> Option<&str> {
        self.0.strip_prefix(&row.0)?.strip_prefix('.')
    }

    /// The path from this key to one below it.
    pub(crate) fn path<'k>(&self, key: &'k AttributeKey) -> &'k str {
        key.below(self).expect("the key is below")
    }

    /// The keys above this one, the nearest first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = AttributeKey> {
        self.0.rmatch_indices('.').map(|(at, _)| AttributeKey(self.0[..at].to_owned()))
    }

    /// The bytes that a row of this key takes with a value of `length`.
    pub(crate) fn bytes_with(&self, length: usize) -> u64 {
        (self.0.len() + length) as u64
    }
}

impl fmt::Display for AttributeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for AttributeKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}
