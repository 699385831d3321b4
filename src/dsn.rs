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
    /// Who logs in at the sentinels; nobody when there is no password for them.
    pub sentinel_user: Option<String>,
    /// With what.
    pub sentinel_password: Option<Secret>,
    /// Files with certificates, for connections that are encrypted.
    pub tls_files: TlsFiles,
    /// How long connecting may take.
    pub connect_timeout_ms: Millis,
    /// How long an answer may take.
    pub timeout_ms: Millis,
    /// How long an operation is tried again while the server cannot serve.
    pub retry_ms: Millis,
}

/// Files in PEM format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that the server's certificate may be signed by; without it, those that the system trusts.
    pub ca: Option<PathBuf>,
    /// This client's certificate, for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

impl Server {
    /// After so long no operation that a process has begun is on its way any more, tries and answers included: all tries but the
    /// last two have begun within `retry_ms`; one more follows when one on a kept connection has failed; and for each, every host
    /// may be asked.
    pub(crate) fn longest_call_ms(&self) -> Millis {
        const PROBES_MS: Millis = 1_000;
        let hosts = self.addresses.len() as u64 + 1;
        let fresh = (self.connect_timeout_ms + self.timeout_ms).saturating_mul(hosts);
        self.retry_ms.max(self.timeout_ms).saturating_add(fresh).saturating_add(PROBES_MS)
    }
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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.addresses.iter().enumerate() {
            match address {
                Address::Tcp(..) if at == 0 => write!(f, "{}://{address}", if self.tls { "rediss" } else { "redis" })?,
                Address::Tcp(..) => write!(f, ",{address}")?,
                Address::Unix(_) => write!(f, "redis+unix://{address}")?,
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
const SERVER_OPTIONS: [&str; 14] = [
    "prefix",
    "db",
    "user",
    "password",
    "cluster",
    "sentinel",
    "sentinel_user",
    "sentinel_password",
    "tls_ca",
    "tls_certificate",
    "tls_key",
    "connect_timeout_ms",
    "timeout_ms",
    "retry_ms",
];

/// Options whose values are never shown.
const SECRET_OPTIONS: [&str; 2] = ["password", "sentinel_password"];

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
        let (scheme, rest) = dsn.split_once("://").ok_or(DsnError::NoScheme)?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let bad_place = |reason: String| DsnError::BadPlace { scheme: scheme.to_owned(), reason };
        if let "redis" | "rediss" | "redis+unix" = scheme {
            let mut server = server(scheme, place).map_err(bad_place)?;
            if settings.lease_ms == Settings::default().lease_ms {
                settings.lease_ms = LEASE_ACROSS_MACHINES_MS;
            }
            for_each_option(options, |name, value| match set_server(&mut server, name, value)? {
                true => Ok(()),
                false => set(&mut settings, name, value),
            })?;
            fits_together(&server)?;
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
            _ => return Err(DsnError::UnknownScheme { scheme: harmless_end(scheme) }),
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

/// The DSN as it may be shown: without its passwords. Of one that does not parse, which may have a password anywhere, only the
/// scheme is shown; and of an option's value only what cannot be more than one value.
pub(crate) fn shown(dsn: &str) -> String {
    if dsn.is_empty() {
        return String::new();
    }
    if Dsn::parse(dsn).is_err() {
        let scheme = dsn.split_once("://").map(|(scheme, _)| scheme);
        let known = scheme.filter(|scheme| SCHEMES.contains(scheme));
        return known.map_or_else(|| "…".to_owned(), |scheme| format!("{scheme}://…"));
    }
    let (place, options) = dsn.split_once('?').map_or((dsn, None), |(place, options)| (place, Some(options)));
    let place = match (place.split_once("://"), place.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, host))) => {
            let login = &rest[..rest.len() - host.len() - 1];
            let user = login.split_once(':').map_or(harmless(login), |(user, _)| format!("{}:…", harmless(user)));
            format!("{scheme}://{user}@{host}")
        }
        _ => place.to_owned(),
    };
    let show = |option: &str| match option.split_once('=') {
        Some((name, _)) if SECRET_OPTIONS.contains(&name) => format!("{name}=…"),
        Some((name, value)) => format!("{name}={}", harmless(value)),
        None => option.to_owned(),
    };
    options.map_or(place.clone(), |options| {
        format!("{place}?{}", options.split('&').map(show).collect::<Vec<_>>().join("&"))
    })
}

/// What may separate a value from one that somebody wrote behind it.
fn may_end_a_value(c: char) -> bool {
    c.is_whitespace() || "@=;,&?\"'".contains(c)
}

/// The beginning of a text, up to where something else may begin.
fn harmless(text: &str) -> String {
    match text.find(may_end_a_value) {
        Some(end) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of what should be a scheme, from where nothing else can have ended.
fn harmless_end(text: &str) -> String {
    match text.rfind(|c| may_end_a_value(c) || ":/".contains(c)) {
        Some(at) => format!("…{}", cut(text[at..].trim_start_matches(|c| may_end_a_value(c) || ":/".contains(c)))),
        None => cut(text),
    }
}

/// The schemes there are.
const SCHEMES: [&str; 6] = ["memory", "shm", "file", "redis", "rediss", "redis+unix"];

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
        sentinel_user: None,
        sentinel_password: None,
        tls_files: TlsFiles::default(),
        connect_timeout_ms: 1_000,
        timeout_ms: 2_000,
        retry_ms: 2_000,
    };
    let (login, place) = place.rsplit_once('@').map_or(("", place), |(login, place)| (login, place));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    server.user = Some(text(user)?).filter(|user| !user.is_empty());
    server.password = Some(text(password)?).filter(|password| !password.is_empty()).map(Secret);
    if scheme == "redis+unix" && place.contains(may_end_a_value) {
        return Err("behind the path come only ?OPTIONS; write special characters as percent escapes".to_owned());
    }
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
    let is_of_a_host = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    (!host.is_empty() && host.chars().all(is_of_a_host)).then(|| Address::Tcp(host.to_owned(), port))
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
        "sentinel_user" => server.sentinel_user = Some(value.to_owned()).filter(|user| !user.is_empty()),
        "sentinel_password" => {
            server.sentinel_password = Some(Secret(value.to_owned())).filter(|password| !password.0.is_empty());
        }
        "tls_ca" => server.tls_files.ca = Some(file(name, value)?),
        "tls_certificate" => server.tls_files.certificate = Some(file(name, value)?),
        "tls_key" => server.tls_files.key = Some(file(name, value)?),
        "connect_timeout_ms" => server.connect_timeout_ms = span(name, value)?,
        "timeout_ms" => server.timeout_ms = span(name, value)?,
        "retry_ms" => server.retry_ms = span(name, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn file(name: &str, value: &str) -> Result<PathBuf, DsnError> {
    match value.starts_with('/') && !value.contains('\0') {
        true => Ok(value.into()),
        false => Err(bad_option(name, value, "it must be the absolute path of a file in PEM format")),
    }
}

/// Fails when an option is of no use without another one, which would go unnoticed.
fn fits_together(server: &Server) -> Result<(), DsnError> {
    let is_set = |option: &Option<PathBuf>| option.is_some();
    let TlsFiles { ca, certificate, key } = &server.tls_files;
    let has_sentinels = matches!(server.layout, Layout::Sentinel(_));
    let (option, reason) = match server {
        _ if !server.tls && is_set(ca) => ("tls_ca", "it needs TLS; write rediss://"),
        _ if !server.tls && is_set(certificate) => ("tls_certificate", "it needs TLS; write rediss://"),
        _ if !server.tls && is_set(key) => ("tls_key", "it needs TLS; write rediss://"),
        _ if is_set(certificate) && !is_set(key) => ("tls_certificate", "it needs its key; add tls_key"),
        _ if is_set(key) && !is_set(certificate) => ("tls_key", "it needs its certificate; add tls_certificate"),
        _ if !has_sentinels && server.sentinel_user.is_some() => {
            ("sentinel_user", "it needs the master's name; add sentinel")
        }
        _ if !has_sentinels && server.sentinel_password.is_some() => {
            ("sentinel_password", "it needs the master's name; add sentinel")
        }
        _ if server.sentinel_user.is_some() && server.sentinel_password.is_none() => {
            ("sentinel_user", "it needs a password; add sentinel_password")
        }
        _ => return Ok(()),
    };
    Err(bad_option(option, "…", reason))
}

fn is_prefix(prefix: &str) -> bool {
    (1..=MAX_NAME).contains(&prefix.len())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":._-".contains(&byte))
}

pub(crate) fn is_name(name: &str) -> bool {
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
    let value = match SECRET_OPTIONS.contains(&option) || value == "…" {
        true => "…".to_owned(),
        false => shorten(&harmless(value)),
    };
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
            ("redis://ann:SECRET@h/1?ttl_ms=5", "redis://ann:…@h/1?ttl_ms=5"),
            ("redis://:SECRET@h", "redis://:…@h"),
            ("redis://h?db=1&password=SECRET&prefix=x", "redis://h?db=1&password=…&prefix=x"),
            ("redis://ann:S@SECRET@h", "redis://ann:…@h"),
            ("redis://h?password=a@SECRET&db=1", "redis://h?password=…&db=1"),
            ("redis://h?sentinel=m&sentinel_password=SECRET", "redis://h?sentinel=m&sentinel_password=…"),
            ("redis://h?user=ann password=SECRET", "redis://h?user=ann…"),
            ("redis://h?user=ann;password=SECRET", "redis://h?user=ann…"),
            ("shm://x?group=a,SECRET", "shm://x?group=a…"),
            ("redis+unix://ann:SECRET@/run/r.sock", "redis+unix://ann:…@/run/r.sock"),
            ("ann@h", "…"),
            ("SECRET", "…"),
            ("SECRET://h", "…"),
            ("shm://x?max_owners=2&", "shm://x?max_owners=2&"),
            ("file:///var/lib/mcp", "file:///var/lib/mcp"),
            ("", ""),
        ] {
            assert_eq!(shown(dsn), expected, "{dsn}");
        }
        // Of what does not parse, nothing but a scheme that exists.
        for dsn in [
            "redis://127.0.0.1 password=SECRET",
            "redis://127.0.0.1;password=SECRET",
            "redis://127.0.0.1/0 password=SECRET",
            "redis://127.0.0.1/0;SECRET",
            "redis://127.0.0.1:6379 SECRET",
            "redis://127.0.0.1:6379SECRET",
            "redis://[::1] SECRET",
            "redis://user:SECRET",
            "redis://user:SECRET/0",
            "redis://user:SECRET?db=1",
            "redis://ann:SECRET@",
            "redis://ann:SECRET@h:x",
            "redis://ann:SECRET@/0",
            "redis://ann:SECRET@:6379",
            "redis://ann:se?SECRET@h?db=1",
            "redis://ann:s@e?SECRET@h",
            "redis://ann:1?SECRET@h",
            "redis://h?password=se&SECRET&db=1",
            "redis://h?password=1&SECRET",
            "redis://h?pasword=SECRET",
            "redis://h?db=1 password=SECRET",
            "redis://h?db=1;password=SECRET",
            "redis://h?prefix=x,password=SECRET",
            "redis://h?ttl_ms=5@SECRET",
            "redis://h?cluster=1\tSECRET",
            "redis://h?sentinel_password=SECRET",
            "redis://h?sentinel=m&sentinel_user=u&sentinel_pasword=SECRET",
            "redis://h?password=%ffSECRET",
            "redis://h?sentinel_password=%ffSECRET",
            "rediss://h?tls_key=/k&password=SECRET",
            "redis+unix:///run/r.sock password=SECRET",
            "redis+unix:///run/r.sock;password=SECRET",
            "redis+unix://SECRET@r.sock",
            "redis:ann:SECRET@h",
            "redis:/ann:SECRET@h",
            "mysql://ann:SECRET@h",
            "ann:SECRET@redis://h",
            "password=SECRET;redis://h",
            "password=SECRET redis://h",
            "ann:SECRET@h",
            "memory://ann:SECRET@h",
            "shm://ann:SECRET@h",
            "file://ann:SECRET@h",
        ] {
            let error = Dsn::parse(dsn).unwrap_err();
            for text in [error.to_string(), format!("{error:?}"), shown(dsn)] {
                assert!(!text.contains("SECRET"), "{dsn}: {text}");
            }
            let scheme = dsn.split_once("://").map_or("", |(scheme, _)| scheme);
            let expected = if SCHEMES.contains(&scheme) { format!("{scheme}://…") } else { "…".to_owned() };
            assert_eq!(shown(dsn), expected, "{dsn}");
        }
        for dsn in
            ["redis://ann:SECRET@h/1", "redis://h?password=SECRET", "redis://h?sentinel=m&sentinel_password=SECRET"]
        {
            let shown = format!("{:?}", Dsn::parse(dsn).unwrap());
            assert!(!shown.contains("SECRET"), "{shown}");
        }
    }

    #[test]
    fn an_option_that_needs_another_one_says_so() {
        for (dsn, part) in [
            ("redis://h?tls_ca=/a", "rediss://"),
            ("redis://h?tls_certificate=/a&tls_key=/b", "rediss://"),
            ("rediss://h?tls_certificate=/a", "add tls_key"),
            ("rediss://h?tls_key=/a", "add tls_certificate"),
            ("rediss://h?tls_ca=a.pem", "absolute path"),
            ("redis://h?sentinel_password=x", "add sentinel"),
            ("redis://h?sentinel=m&sentinel_user=x", "add sentinel_password"),
        ] {
            let message = Dsn::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(part), "{dsn}: {message}");
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
            "sentinel_user" if server.sentinel_user.is_none() => "none".to_owned(),
            "sentinel_password" if server.sentinel_password.is_none() => "none".to_owned(),
            "tls_ca" | "tls_certificate" | "tls_key" if server.tls_files == TlsFiles::default() => "none".to_owned(),
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
