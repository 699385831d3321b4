//! Data source names: `scheme://place?option=value&…`.
//!
//! The scheme names the kind of store, the place names one store of this kind, and the options change default settings. An
//! unknown scheme or option is an error: a misspelt limit must not go unnoticed.

mod options;
mod secrets;
mod server;

use std::borrow::Cow;
use std::path::PathBuf;

pub(crate) use options::MAX_SPAN_MS;
pub use secrets::Secret;
pub(crate) use secrets::shown;
pub use server::{Address, Layout, Server};

use crate::error::DsnError;
use crate::settings::Settings;
use options::{for_each_option, set_option};
use secrets::after_last_delimiter;
use server::LEASE_ACROSS_MACHINES_MS;

/// The kind and the place of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// `memory://`: in the memory of this process, for its threads.
    Memory,
    /// `shm://NAME`: in shared memory, for the processes of one user on one machine.
    SharedMemory(String),
    /// `file:///DIRECTORY`: in a directory, for the processes of one machine, durable.
    Directory(PathBuf),
    /// `redis://HOST`, `rediss://HOST`, `redis+unix:///SOCKET`: in a Redis or Valkey server, for the processes of several
    /// machines.
    Redis(Box<Server>),
}

/// A parsed DSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsn {
    /// The kind and the place of the store.
    pub place: Place,
    /// The default settings with the changes of the options.
    pub settings: Settings,
}

/// The longest name of a shared-memory store and the longest prefix of keys, in bytes.
const MAX_NAME: usize = 64;

/// The known schemes.
const SCHEMES: [&str; 6] = ["memory", "shm", "file", "redis", "rediss", "redis+unix"];

impl Dsn {
    /// Parses `dsn` over the default settings.
    ///
    /// # Errors
    ///
    /// [`DsnError`] names the part of the DSN that is refused and the form that is allowed. It never shows a password.
    pub fn parse(dsn: &str) -> Result<Self, DsnError> {
        Self::parse_over(dsn, Settings::default())
    }

    /// Returns `dsn` without its passwords, for logs and messages. A DSN that does not parse is reduced to its scheme.
    pub fn shown(dsn: &str) -> String {
        secrets::shown(dsn)
    }

    /// Parses `dsn` over `settings`: an option of the DSN replaces the setting of this name. A Redis DSN raises the default lease
    /// to 300,000 milliseconds.
    ///
    /// # Errors
    ///
    /// As for [`Dsn::parse`].
    pub fn parse_over(dsn: &str, mut settings: Settings) -> Result<Self, DsnError> {
        let (scheme, rest) = dsn.split_once("://").ok_or(DsnError::NoScheme)?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let bad_place = |reason: String| DsnError::BadPlace { scheme: scheme.to_owned(), reason };
        if let "redis" | "rediss" | "redis+unix" = scheme {
            let mut server = Server::parse(scheme, place).map_err(bad_place)?;
            if settings.lease_ms == Settings::default().lease_ms {
                settings.lease_ms = LEASE_ACROSS_MACHINES_MS;
            }
            for_each_option(options, |name, value| match server.set_option(name, value)? {
                true => Ok(()),
                false => set_option(&mut settings, name, value),
            })?;
            server.check_combination()?;
            return Ok(Self { place: Place::Redis(Box::new(server)), settings });
        }
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
            _ => return Err(DsnError::UnknownScheme { scheme: after_last_delimiter(scheme) }),
        };
        for_each_option(options, |name, value| set_option(&mut settings, name, value))?;
        Ok(Self { place, settings })
    }
}

/// Whether `name` may be the name of a shared-memory store.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Decodes percent escapes; `None` unless the result is UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok()
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
    fn what_is_not_understood_is_refused_by_name() {
        for (dsn, part) in [
            ("", "no scheme"),
            ("shm:mcp", "no scheme"),
            ("mysql://x", "\"mysql\" is not known"),
            ("\u{4}fle://x", "\\u{4}fle"),
            ("memory://?\u{4}=1", "\\u{4}"),
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
            ("shm://x?write_map=yes", "1 or 0"),
            ("redis://", "redis://HOST"),
            ("redis://h:port", "redis://HOST:PORT"),
            ("redis://h/x", "must be a number"),
            ("redis+unix://x", "redis+unix:///PATH"),
            ("redis://h?prefix=*", "letters"),
            ("redis://h?cluster=yes", "1 or 0"),
            ("memory://?cluster=1", "not known"),
        ] {
            let message = Dsn::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(part), "{dsn}: {message}");
        }
    }
}
