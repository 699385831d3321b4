//! Data source names: `scheme://place?option=value&…`.
//!
//! The scheme names the kind of store, the place which one, the options what differs from the defaults. An unknown scheme or
//! option is an error, never ignored: a misspelt limit must not go unnoticed.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::clock::Millis;
use crate::error::{DsnError, shorten};
use crate::settings::{Durability, Limit, OnFull, Settings};

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// `memory://`: in this process alone, for its threads.
    Memory,
    /// `shm://NAME`: in shared memory, for the processes of one user on one machine.
    SharedMemory(String),
    /// `file:///DIRECTORY`: in a directory, for the processes of one machine, durable.
    Directory(PathBuf),
}

/// A parsed DSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsn {
    /// Where the store is.
    pub place: Place,
    /// The defaults and what the options change.
    pub settings: Settings,
}

/// The longest name of a shared-memory store, in bytes.
const MAX_NAME: usize = 64;

/// Options that are not limits.
const OPTIONS: [&str; 6] = ["ttl_ms", "lease_ms", "request_timeout_ms", "on_full", "durability", "group"];

impl Dsn {
    /// Parses `dsn` over the default settings.
    pub fn parse(dsn: &str) -> Result<Self, DsnError> {
        Self::parse_over(dsn, Settings::default())
    }

    /// Parses `dsn`; its options go over `settings`.
    pub fn parse_over(dsn: &str, mut settings: Settings) -> Result<Self, DsnError> {
        let (scheme, rest) = dsn.split_once("://").ok_or_else(|| DsnError::NoScheme { dsn: shorten(dsn) })?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let bad_place = |reason: String| DsnError::BadPlace { dsn: shorten(dsn), reason };
        let place = decode(place).ok_or_else(|| bad_place("its percent escapes are not UTF-8".into()))?;
        let place = match scheme {
            "memory" if place.is_empty() => Place::Memory,
            "memory" => return Err(bad_place("a memory store has no name; write memory://".into())),
            "shm" if is_name(&place) => Place::SharedMemory(place.into_owned()),
            "shm" => {
                return Err(bad_place(format!(
                    "the name must be 1 to {MAX_NAME} letters, digits, dots, dashes or underscores and not begin with a dot; write shm://NAME"
                )));
            }
            "file" if place.starts_with('/') && !place.contains('\0') => Place::Directory(place.as_ref().into()),
            "file" => return Err(bad_place("the directory must be absolute; write file:///DIRECTORY".into())),
            _ => return Err(DsnError::UnknownScheme { scheme: scheme.chars().take(40).collect() }),
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decode(value).ok_or_else(|| bad_option(name, value, "its percent escapes are not UTF-8"))?;
            set(&mut settings, name, &value)?;
        }
        Ok(Self { place, settings })
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn decode(text: &str) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok()
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), DsnError> {
    if let Some(limit) = Limit::named(name) {
        settings.set_limit(limit, number(name, value)?);
        return Ok(());
    }
    match name {
        "ttl_ms" => settings.ttl_ms = span(name, value)?,
        "lease_ms" => settings.lease_ms = span(name, value)?,
        "request_timeout_ms" => settings.request_timeout_ms = span(name, value)?,
        "on_full" => settings.on_full = one_of(name, value, &[("evict", OnFull::Evict), ("reject", OnFull::Reject)])?,
        "durability" => {
            let choices = [("none", Durability::None), ("sync", Durability::Sync)];
            settings.durability = Some(one_of(name, value, &choices)?);
        }
        "group" if !value.is_empty() => settings.group = Some(value.to_owned()),
        "group" => return Err(bad_option(name, value, "it must be the name or number of a group")),
        _ => return Err(unknown_option(name)),
    }
    Ok(())
}

fn unknown_option(name: &str) -> DsnError {
    let known: Vec<_> = OPTIONS.into_iter().chain(Limit::ALL.iter().map(|limit| limit.name())).collect();
    DsnError::UnknownOption { option: name.chars().take(40).collect(), known: known.join(", ") }
}

/// A number greater than 0.
fn number(name: &str, value: &str) -> Result<u64, DsnError> {
    match parse_number(value) {
        None => Err(bad_option(name, value, "it must be a whole number, with K, M or G behind it for sizes")),
        Some(0) => Err(bad_option(name, value, "it must be greater than 0")),
        Some(number) => Ok(number),
    }
}

/// Milliseconds.
fn span(name: &str, value: &str) -> Result<Millis, DsnError> {
    match number(name, value)? {
        span if span > MAX_SPAN_MS => Err(bad_option(name, value, "it must be at most ten years")),
        span => Ok(span),
    }
}

fn one_of<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, DsnError> {
    let chosen = choices.iter().find(|(choice, _)| *choice == value);
    chosen.map(|&(_, chosen)| chosen).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|&(choice, _)| choice).collect();
        bad_option(name, value, &format!("it must be {}", names.join(" or ")))
    })
}

/// The longest time that can be set: ten years, far from where sums of milliseconds overflow.
pub(crate) const MAX_SPAN_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// A whole number, with K, M or G (powers of 1,024) behind it.
fn parse_number(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn bad_option(option: &str, value: &str, reason: &str) -> DsnError {
    DsnError::BadOption { option: option.chars().take(40).collect(), value: shorten(value), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_names_its_place() {
        assert_eq!(Dsn::parse("memory://").unwrap().place, Place::Memory);
        assert_eq!(Dsn::parse("shm://site-1.mcp").unwrap().place, Place::SharedMemory("site-1.mcp".into()));
        assert_eq!(Dsn::parse("file:///var/lib/a%20b").unwrap().place, Place::Directory("/var/lib/a b".into()));
    }

    #[test]
    fn options_change_what_they_name() {
        let settings = Dsn::parse("shm://x?ttl_ms=5&max_store_bytes=1M&on_full=reject&durability=sync&group=deploy")
            .unwrap()
            .settings;
        assert_eq!(settings.ttl_ms, 5);
        assert_eq!(settings.limit(Limit::StoreBytes), 1 << 20);
        assert_eq!(settings.on_full, OnFull::Reject);
        assert_eq!(settings.durability, Some(Durability::Sync));
        assert_eq!(settings.group.as_deref(), Some("deploy"));
        assert_eq!(settings.lease_ms, Settings::default().lease_ms);
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (dsn, part) in [
            ("", "no scheme"),
            ("shm:mcp", "no scheme"),
            ("mysql://x", "\"mysql\" is not known"),
            ("memory://x", "memory://"),
            ("shm://", "shm://NAME"),
            ("shm://../x", "shm://NAME"),
            ("shm://.x", "shm://NAME"),
            ("file://x", "file:///DIRECTORY"),
            ("file:///%ff", "UTF-8"),
            ("memory://?max_mesage_bytes=1", "\"max_mesage_bytes\" is not known"),
            ("memory://?ttl_ms=", "ttl_ms"),
            ("memory://?ttl_ms=0", "greater than 0"),
            ("memory://?ttl_ms=-1", "whole number"),
            ("memory://?ttl_ms=99999999999999999", "ten years"),
            ("memory://?max_store_bytes=99999999999G", "whole number"),
            ("memory://?on_full=maybe", "evict or reject"),
            ("memory://?durability=some", "none or sync"),
        ] {
            let message = Dsn::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(part), "{dsn}: {message}");
        }
    }
}
