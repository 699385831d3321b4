//! Data source names: `scheme://place?option=value&…`.
//!
//! The scheme names the kind of store, the place which one, the options what differs from the defaults. An unknown scheme or
//! option is an error, never ignored: a misspelt limit must not go unnoticed.

use std::borrow::Cow;
use std::fmt;
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
    /// `redis://HOST`, `rediss://HOST`, `redis+unix:///SOCKET`: in a Redis or Valkey server, for the processes of several
    /// machines.
    Redis(Box<Server>),
}

/// A Redis or Valkey server, or several that hold one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens. Several: any of a cluster's nodes, or the sentinels.
    pub addresses: Vec<Address>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Who logs in; the default user when there is none.
    pub user: Option<String>,
    /// With what.
    pub password: Option<Secret>,
    /// The number of the database.
    pub database: u32,
    /// What all keys begin with: stores of one server differ in it.
    pub prefix: String,
    /// Which server to ask.
    pub layout: Layout,
    /// How long connecting may take.
    pub connect_timeout_ms: Millis,
    /// How long an answer may take.
    pub timeout_ms: Millis,
    /// How long an operation is tried again while the server cannot serve.
    pub retry_ms: Millis,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// How servers stand to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// There is one.
    Single,
    /// A Redis cluster: each node has a part of the keys.
    Cluster,
    /// Sentinels say which server is the master of this name.
    Sentinel(String),
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.addresses.iter().enumerate() {
            match address {
                Address::Tcp(host, port) if at == 0 => {
                    write!(f, "{}://{host}:{port}", if self.tls { "rediss" } else { "redis" })?;
                }
                Address::Tcp(host, port) => write!(f, ",{host}:{port}")?,
                Address::Unix(path) => write!(f, "redis+unix://{}", path.display())?,
            }
        }
        Ok(())
    }
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

/// The lease where the death of a process can seldom be seen, unless something else is set.
const LEASE_ACROSS_MACHINES_MS: Millis = 300_000;

/// The port of a server when the DSN names none.
const REDIS_PORT: u16 = 6379;

/// Options of servers.
const SERVER_OPTIONS: [&str; 9] =
    ["prefix", "db", "user", "password", "cluster", "sentinel", "connect_timeout_ms", "timeout_ms", "retry_ms"];

/// Options that are not limits.
const OPTIONS: [&str; 7] = ["ttl_ms", "lease_ms", "request_timeout_ms", "on_full", "durability", "write_map", "group"];

impl Dsn {
    /// Parses `dsn` over the default settings.
    pub fn parse(dsn: &str) -> Result<Self, DsnError> {
        Self::parse_over(dsn, Settings::default())
    }

    /// `dsn` as it may be shown: without a password.
    pub fn shown(dsn: &str) -> String {
        shown(dsn)
    }

    /// Parses `dsn`; its options go over `settings`.
    pub fn parse_over(dsn: &str, mut settings: Settings) -> Result<Self, DsnError> {
        let (scheme, rest) = dsn.split_once("://").ok_or_else(|| DsnError::NoScheme { dsn: shorten(&shown(dsn)) })?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let bad_place = |reason: String| DsnError::BadPlace { dsn: shorten(&shown(dsn)), reason };
        if let "redis" | "rediss" | "redis+unix" = scheme {
            let mut server = server(scheme, place).map_err(bad_place)?;
            if settings.lease_ms == Settings::default().lease_ms {
                settings.lease_ms = LEASE_ACROSS_MACHINES_MS;
            }
            for_each_option(options, |name, value| match set_server(&mut server, name, value)? {
                true => Ok(()),
                false => set(&mut settings, name, value),
            })?;
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
            _ => return Err(DsnError::UnknownScheme { scheme: cut(&shown(scheme)) }),
        };
        for_each_option(options, |name, value| set(&mut settings, name, value))?;
        Ok(Self { place, settings })
    }
}

fn for_each_option(options: &str, mut set: impl FnMut(&str, &str) -> Result<(), DsnError>) -> Result<(), DsnError> {
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decode(value).ok_or_else(|| bad_option(name, value, "its percent escapes are not UTF-8"))?;
        match set(name, &value) {
            // It may be the rest of a password with a `?` or `&` in it.
            Err(DsnError::UnknownOption { known, .. }) if !option.contains('=') || name.contains('@') => {
                return Err(DsnError::UnknownOption { option: "…".to_owned(), known });
            }
            other => other?,
        }
    }
    Ok(())
}

/// The DSN as it may be shown: without a password, also one that is written wrongly. Hidden is what lies between a colon and
/// the `@` before the host, and each option that is not known: it may be the rest of a password with a `?` or `&` in it.
pub(crate) fn shown(dsn: &str) -> String {
    let is_known = |option: &&str| is_option(option.split_once('=').map_or(*option, |(name, _)| name));
    let (scheme, rest) = dsn.find("://").map_or(("", dsn), |at| dsn.split_at(at + 3));
    let is_login = |options: &str| options.split('&').any(|option| option.contains('@') && !is_known(&option));
    let login = match (rest.rfind('@'), rest.split_once('?')) {
        (Some(at), Some((_, options))) if is_login(options) => &rest[..at],
        (_, Some((place, _))) => &place[..place.rfind('@').unwrap_or(0)],
        (at, None) => &rest[..at.unwrap_or(0)],
    };
    let (place, options) = match rest[login.len()..].split_once('?') {
        Some((place, options)) => (place, Some(options)),
        None => (&rest[login.len()..], None),
    };
    let login = login.split_once(':').map_or(login.to_owned(), |(user, _)| format!("{user}:…"));
    let hide = |option: &str| match option {
        option if option.starts_with("password=") => "password=…".to_owned(),
        option if option.is_empty() || is_known(&option) => option.to_owned(),
        _ => "…".to_owned(),
    };
    let options = options.map(|options| options.split('&').map(hide).collect::<Vec<_>>().join("&"));
    options.map_or(format!("{scheme}{login}{place}"), |options| format!("{scheme}{login}{place}?{options}"))
}

/// Whether there is such an option.
fn is_option(name: &str) -> bool {
    OPTIONS.contains(&name) || SERVER_OPTIONS.contains(&name) || Limit::named(name).is_some()
}

/// The server at `[user[:password]@]host[:port][,host…][/db]`, or at the socket of this path.
fn server(scheme: &str, place: &str) -> Result<Server, String> {
    let text = |part: &str| decode(part).map(Cow::into_owned).ok_or("its percent escapes are not UTF-8".to_owned());
    let mut server = Server {
        addresses: Vec::new(),
        tls: scheme == "rediss",
        user: None,
        password: None,
        database: 0,
        prefix: "mcp-state:".to_owned(),
        layout: Layout::Single,
        connect_timeout_ms: 1_000,
        timeout_ms: 2_000,
        retry_ms: 2_000,
    };
    let (login, place) = place.rsplit_once('@').map_or(("", place), |(login, place)| (login, place));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    server.user = Some(text(user)?).filter(|user| !user.is_empty());
    server.password = Some(text(password)?).filter(|password| !password.is_empty()).map(Secret);
    if scheme == "redis+unix" {
        let path = text(place)?;
        if !path.starts_with('/') || path.contains('\0') {
            return Err("the socket's path must be absolute; write redis+unix:///PATH".to_owned());
        }
        server.addresses.push(Address::Unix(path.into()));
        return Ok(server);
    }
    let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
    if !database.is_empty() {
        server.database =
            database.parse().map_err(|_| "the database must be a number; write redis://HOST/0".to_owned())?;
    }
    for host in hosts.split(',') {
        server.addresses.push(address(&text(host)?).ok_or(format!("write {scheme}://HOST or {scheme}://HOST:PORT"))?);
    }
    Ok(server)
}

/// `host`, `host:port`, `[address]` or `[address]:port`.
fn address(text: &str) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(REDIS_PORT), |port| port.parse().ok())?;
    (!host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '\0'))
        .then(|| Address::Tcp(host.to_owned(), port))
}

/// Sets an option of servers. Whether it is one.
fn set_server(server: &mut Server, name: &str, value: &str) -> Result<bool, DsnError> {
    match name {
        "prefix" if is_prefix(value) => server.prefix = value.to_owned(),
        "prefix" => {
            let reason = format!("it must be 1 to {MAX_NAME} letters, digits, colons, dots, dashes or underscores");
            return Err(bad_option(name, value, &reason));
        }
        "db" => server.database = value.parse().map_err(|_| bad_option(name, value, "it must be a number"))?,
        "user" => server.user = Some(value.to_owned()),
        "password" => server.password = Some(Secret(value.to_owned())),
        "cluster" => {
            let choices = [("1", Layout::Cluster), ("0", Layout::Single)];
            server.layout = one_of(name, value, &choices)?;
        }
        "sentinel" if !value.is_empty() => server.layout = Layout::Sentinel(value.to_owned()),
        "sentinel" => return Err(bad_option(name, value, "it must be the name of the master the sentinels watch")),
        "connect_timeout_ms" => server.connect_timeout_ms = span(name, value)?,
        "timeout_ms" => server.timeout_ms = span(name, value)?,
        "retry_ms" => server.retry_ms = span(name, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn is_prefix(prefix: &str) -> bool {
    (1..=MAX_NAME).contains(&prefix.len())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":._-".contains(&byte))
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
    DsnError::UnknownOption { option: cut(name), known: known.join(", ") }
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

fn one_of<T: Clone>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, DsnError> {
    let chosen = choices.iter().find(|(choice, _)| *choice == value);
    chosen.map(|(_, chosen)| chosen.clone()).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
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

/// The beginning of a text that a message shows, with control characters escaped.
fn cut(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

fn bad_option(option: &str, value: &str, reason: &str) -> DsnError {
    let value = if option == "password" { "…".to_owned() } else { shorten(value) };
    DsnError::BadOption { option: cut(option), value, reason: reason.to_owned() }
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

    #[test]
    fn a_server_is_named_in_full() {
        let server = |dsn: &str| match Dsn::parse(dsn).unwrap().place {
            Place::Redis(server) => *server,
            other => panic!("{other:?}"),
        };
        let full = server("rediss://ann:p%40ss@a.example,[::1]:7000/3?prefix=x:&cluster=1&retry_ms=5");
        let addresses = [Address::Tcp("a.example".into(), 6379), Address::Tcp("::1".into(), 7000)];
        assert_eq!((full.addresses, full.tls, full.database), (addresses.to_vec(), true, 3));
        assert_eq!((full.user.as_deref(), full.password), (Some("ann"), Some(Secret("p@ss".into()))));
        assert_eq!((full.prefix.as_str(), full.layout, full.retry_ms), ("x:", Layout::Cluster, 5));
        let socket = server("redis+unix:///run/r.sock?db=2&password=x&sentinel=main");
        assert_eq!((socket.addresses, socket.database), (vec![Address::Unix("/run/r.sock".into())], 2));
        assert_eq!(socket.layout, Layout::Sentinel("main".into()));
        assert_eq!(Dsn::parse("redis://h").unwrap().settings.lease_ms, 300_000);
        assert_eq!(Dsn::parse("redis://h?lease_ms=7").unwrap().settings.lease_ms, 7);
    }

    #[test]
    fn a_password_is_never_shown() {
        for (dsn, expected) in [
            ("redis://ann:secret@h/1?ttl_ms=5", "redis://ann:…@h/1?ttl_ms=5"),
            ("redis://:secret@h", "redis://:…@h"),
            ("redis://h?db=1&password=secret&prefix=x", "redis://h?db=1&password=…&prefix=x"),
            ("redis://ann:s@cret@h", "redis://ann:…@h"),
            ("redis://ann:se?cret@h?db=1", "redis://ann:…@h?db=1"),
            ("redis://ann:s@e?cret@h", "redis://ann:…@h"),
            ("redis://h?password=a@b&db=1", "redis://h?password=…&db=1"),
            ("redis://h?password=se&cret&db=1", "redis://h?password=…&…&db=1"),
            ("redis://h?pasword=secret", "redis://h?…"),
            ("redis:ann:secret@h", "redis:…@h"),
            ("ann@h", "ann@h"),
            ("shm://x?max_owners=2&", "shm://x?max_owners=2&"),
            ("", ""),
        ] {
            assert_eq!(shown(dsn), expected);
        }
        for dsn in ["redis://ann:secret@h/1", "redis://h?password=secret"] {
            let shown = format!("{:?}", Dsn::parse(dsn).unwrap());
            assert!(!shown.contains("secret"), "{shown}");
        }
        for dsn in [
            "redis://ann:secret@h:x",
            "redis://ann:secret@/0",
            "redis:ann:secret@h",
            "redis:/ann:secret@h",
            "mysql://ann:secret@h",
            "ann:secret@redis://h",
            "redis://ann:1?secret@h",
            "redis://h?password=1&secret",
            "redis://h?pasword=secret",
            "memory://ann:secret@h",
            "shm://ann:secret@h",
            "file://ann:secret@h",
        ] {
            let shown = Dsn::parse(dsn).unwrap_err().to_string();
            assert!(!shown.contains("secret"), "{shown}");
        }
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
        let server = server("redis", "h").unwrap();
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
            "connect_timeout_ms" => code(&server.connect_timeout_ms),
            "timeout_ms" => code(&server.timeout_ms),
            "retry_ms" => code(&server.retry_ms),
            _ => panic!("the default of {name} is another than this test says"),
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
