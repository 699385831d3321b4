//! The options of a DSN, `name=value&…`: those of every store, and the forms of values that all options use.

use super::decode;
use super::secrets::{bad_option, excerpt};
use super::server::SERVER_OPTIONS;
use crate::clock::Millis;
use crate::error::DsnError;
use crate::settings::{Durability, Limit, OnFull, Settings};

/// The options of every store that are not limits.
const OPTIONS: [&str; 7] = ["ttl_ms", "lease_ms", "request_timeout_ms", "on_full", "durability", "write_map", "group"];

/// Calls `set` with the name and the decoded value of each option.
pub(super) fn for_each_option(
    options: &str,
    mut set: impl FnMut(&str, &str) -> Result<(), DsnError>,
) -> Result<(), DsnError> {
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decode(value).ok_or_else(|| bad_option(name, value, "its percent escapes are not UTF-8"))?;
        match set(name, &value) {
            // The option may be the rest of a password with a `?` or `&` in it.
            Err(DsnError::UnknownOption { known, .. }) if !option.contains('=') || name.contains('@') => {
                return Err(DsnError::UnknownOption { option: "…".to_owned(), known });
            }
            other => other?,
        }
    }
    Ok(())
}

/// Sets an option of every store: a limit, a time or a policy.
pub(super) fn set_option(settings: &mut Settings, name: &str, value: &str) -> Result<(), DsnError> {
    if let Some(limit) = Limit::named(name) {
        settings.set_limit(limit, number(name, value)?);
        return Ok(());
    }
    match name {
        "ttl_ms" => settings.ttl_ms = milliseconds(name, value)?,
        "lease_ms" => settings.lease_ms = milliseconds(name, value)?,
        "request_timeout_ms" => settings.request_timeout_ms = milliseconds(name, value)?,
        "on_full" => settings.on_full = one_of(name, value, &[("evict", OnFull::Evict), ("reject", OnFull::Reject)])?,
        "durability" => {
            let choices = [("none", Durability::None), ("sync", Durability::Sync)];
            settings.durability = Some(one_of(name, value, &choices)?);
        }
        "write_map" => settings.write_map = Some(one_of(name, value, &[("1", true), ("0", false)])?),
        "group" if !value.is_empty() => settings.group = Some(value.to_owned()),
        "group" => return Err(bad_option(name, value, "it must be the name or number of a group")),
        _ => return Err(unknown_option(name)),
    }
    Ok(())
}

fn unknown_option(name: &str) -> DsnError {
    let known: Vec<_> =
        OPTIONS.into_iter().chain(Limit::ALL.iter().map(|limit| limit.name())).chain(SERVER_OPTIONS).collect();
    DsnError::UnknownOption { option: excerpt(name), known: known.join(", ") }
}

/// Parses a number greater than 0.
fn number(name: &str, value: &str) -> Result<u64, DsnError> {
    match parse_number(value) {
        None => Err(bad_option(name, value, "it must be a whole number, with K, M or G behind it for sizes")),
        Some(0) => Err(bad_option(name, value, "it must be greater than 0")),
        Some(number) => Ok(number),
    }
}

/// Parses a time of at most [`MAX_SPAN_MS`].
pub(super) fn milliseconds(name: &str, value: &str) -> Result<Millis, DsnError> {
    match number(name, value)? {
        time if time > MAX_SPAN_MS => Err(bad_option(name, value, "it must be at most ten years")),
        time => Ok(time),
    }
}

/// Parses one of the named choices.
pub(super) fn one_of<T: Clone>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, DsnError> {
    let chosen = choices.iter().find(|(choice, _)| *choice == value);
    chosen.map(|(_, chosen)| chosen.clone()).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        bad_option(name, value, &format!("it must be {}", names.join(" or ")))
    })
}

/// The longest time that can be set: ten years in milliseconds. Sums of such times do not overflow.
pub(crate) const MAX_SPAN_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// Parses a whole number. K, M or G behind the number multiply it by a power of 1,024.
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

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::dsn::Dsn;
    use crate::dsn::server::{LEASE_ACROSS_MACHINES_MS, Layout, Server, TlsFiles};

    #[test]
    fn options_change_what_they_name() {
        let settings =
            Dsn::parse("shm://x?ttl_ms=5&max_store_bytes=1M&on_full=reject&durability=sync&write_map=0&group=deploy")
                .unwrap()
                .settings;
        assert_eq!(settings.ttl_ms, 5);
        assert_eq!(settings.limit(Limit::StoreBytes), 1 << 20);
        assert_eq!(settings.on_full, OnFull::Reject);
        assert_eq!(settings.durability, Some(Durability::Sync));
        assert_eq!(settings.write_map, Some(false));
        assert_eq!(settings.group.as_deref(), Some("deploy"));
        assert_eq!(settings.lease_ms, Settings::default().lease_ms);
    }

    /// The rows under these headings of docs/settings.md whose first cell is code.
    fn documented(headings: &[&str]) -> Vec<String> {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md")).unwrap();
        let sections: Vec<_> = page.split("\n## ").filter_map(|section| section.split_once('\n')).collect();
        let section = |heading: &&str| sections.iter().find(|(name, _)| name == heading).expect("the page has it").1;
        let rows = headings.iter().flat_map(|heading| section(heading).lines());
        rows.filter(|line| line.starts_with("| `")).map(str::to_owned).collect()
    }

    #[test]
    fn the_page_of_settings_names_every_place() {
        let known = DsnError::UnknownScheme { scheme: String::new() }.to_string();
        let known = known.split_once("known are ").unwrap().1.replace(" and ", ", ");
        let places = documented(&["Place"]);
        let schemes = places.iter().map(|row| {
            let dsn = row.split('`').nth(1).unwrap();
            Dsn::parse(dsn).unwrap();
            dsn.split_once("://").unwrap().0
        });
        assert_eq!(schemes.collect::<Vec<_>>().join(", "), known);
    }

    #[test]
    fn the_page_of_settings_has_every_limit_with_its_default_and_what_it_bounds() {
        let with_unit = |size: u64| match size >> 20 {
            unit if unit << 20 == size && unit > 0 => format!("{unit}M"),
            _ => size.to_string(),
        };
        let rows = Limit::ALL.iter().map(|limit| {
            let default = with_unit(limit.default_value());
            assert_eq!(number(limit.name(), &default), Ok(limit.default_value()));
            format!("| `{}` | `{default}` | {} |", limit.name(), limit.description())
        });
        assert_eq!(documented(&["Limits"]), rows.collect::<Vec<_>>());
    }

    #[test]
    fn the_page_of_settings_has_every_option_with_its_default() {
        let settings = Settings::default();
        let server = Server::parse("redis", "h").unwrap();
        let code = |value: &dyn fmt::Display| format!("`{value}`");
        let default = |name| match name {
            "ttl_ms" => code(&settings.ttl_ms),
            "lease_ms" => code(&settings.lease_ms),
            "request_timeout_ms" => code(&settings.request_timeout_ms),
            "on_full" if settings.on_full == OnFull::Evict => code(&"evict"),
            "durability" if settings.durability.is_none() => code(&"none"),
            "write_map" if settings.write_map.is_none() => code(&0),
            "group" if settings.group.is_none() => "none".to_owned(),
            "prefix" => code(&server.prefix),
            "db" => code(&server.database),
            "user" if server.user.is_none() => "none".to_owned(),
            "password" if server.password.is_none() => "none".to_owned(),
            "cluster" if server.layout == Layout::Single => code(&0),
            "sentinel" if server.layout == Layout::Single => "none".to_owned(),
            "sentinel_user" if server.sentinel_user.is_none() => "none".to_owned(),
            "sentinel_password" if server.sentinel_password.is_none() => "none".to_owned(),
            "tls_ca" | "tls_certificate" | "tls_key" if server.tls_files == TlsFiles::default() => "none".to_owned(),
            "connect_timeout_ms" => code(&server.connect_timeout_ms),
            "timeout_ms" => code(&server.timeout_ms),
            "retry_ms" => code(&server.retry_ms),
            _ => panic!("the default of {name} differs from the one in this test"),
        };
        let options = OPTIONS.into_iter().chain(SERVER_OPTIONS);
        let mut expected: Vec<_> = options.map(|name| format!("| `{name}` | {} |", default(name))).collect();
        let rows =
            documented(&["Options of every store", "Options of shared memory and directories", "Options of Redis"]);
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| {
                let cells: Vec<_> = row.splitn(4, '|').collect();
                assert!(cells[3].len() > "text |".len(), "{row} says nothing");
                format!("|{}|{}|", cells[1], cells[2])
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        let lease = rows.iter().find(|row| row.starts_with("| `lease_ms`")).unwrap();
        assert!(lease.contains(&format!("with Redis `{LEASE_ACROSS_MACHINES_MS}`")), "{lease}");
    }
}
