//! Redis and Valkey servers: the place `[user[:password]@]host[:port][,host…][/db]` or the path of a socket, and the options of
//! servers.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use super::options::{milliseconds, one_of};
use super::secrets::{Secret, bad_option, is_delimiter};
use super::{MAX_NAME, decode};
use crate::clock::Millis;
use crate::error::DsnError;

/// A Redis or Valkey server, or several that hold one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The addresses to connect to: one server, some nodes of a cluster, or the sentinels.
    pub addresses: Vec<Address>,
    /// Whether connections use TLS.
    pub tls: bool,
    /// The user that logs in; without one, Redis's default user.
    pub user: Option<String>,
    /// The password of `user`.
    pub password: Option<Secret>,
    /// The number of the Redis database.
    pub database: u32,
    /// The prefix of all keys. Each store of a server has another one.
    pub prefix: String,
    /// How the addresses lead to the server that holds the store.
    pub layout: Layout,
    /// The user that logs in at the sentinels. Without `sentinel_password`, nobody logs in there.
    pub sentinel_user: Option<String>,
    /// The password of `sentinel_user`.
    pub sentinel_password: Option<Secret>,
    /// The certificates of TLS connections.
    pub tls_files: TlsFiles,
    /// The longest time that connecting may take, in milliseconds.
    pub connect_timeout_ms: Millis,
    /// The longest time that an answer may take, in milliseconds.
    pub timeout_ms: Millis,
    /// How long an operation is retried while the server is unavailable, in milliseconds.
    pub retry_ms: Millis,
}

/// Certificates and keys of TLS, as files in PEM format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of the authorities that may sign the server's certificate; by default, those that the system trusts.
    pub ca: Option<PathBuf>,
    /// The client's certificate, for servers that require one.
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate`.
    pub key: Option<PathBuf>,
}

impl Server {
    /// Parses the place of a Redis DSN. The error is the reason for the refusal.
    pub(super) fn parse(scheme: &str, place: &str) -> Result<Self, String> {
        let text = |part: &str| decode(part).map(Cow::into_owned).ok_or("its percent escapes are not UTF-8".to_owned());
        let mut server = Self {
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
        if scheme == "redis+unix" && place.contains(is_delimiter) {
            return Err(
                "only ?OPTIONS may follow the path; write special characters of the path as percent escapes".to_owned()
            );
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
            server
                .addresses
                .push(parse_address(&text(host)?).ok_or(format!("write {scheme}://HOST or {scheme}://HOST:PORT"))?);
        }
        Ok(server)
    }

    /// Sets the option `name` if it is one of servers. Returns whether it is.
    pub(super) fn set_option(&mut self, name: &str, value: &str) -> Result<bool, DsnError> {
        match name {
            "prefix" if is_prefix(value) => self.prefix = value.to_owned(),
            "prefix" => {
                let reason = format!("it must be 1 to {MAX_NAME} letters, digits, colons, dots, dashes or underscores");
                return Err(bad_option(name, value, &reason));
            }
            "db" => self.database = value.parse().map_err(|_| bad_option(name, value, "it must be a number"))?,
            "user" => self.user = Some(value.to_owned()),
            "password" => self.password = Some(Secret(value.to_owned())),
            "cluster" => {
                let choices = [("1", Layout::Cluster), ("0", Layout::Single)];
                self.layout = one_of(name, value, &choices)?;
            }
            "sentinel" if !value.is_empty() => self.layout = Layout::Sentinel(value.to_owned()),
            "sentinel" => {
                return Err(bad_option(name, value, "it must be the name of the master that the sentinels monitor"));
            }
            "sentinel_user" => self.sentinel_user = Some(value.to_owned()).filter(|user| !user.is_empty()),
            "sentinel_password" => {
                self.sentinel_password = Some(Secret(value.to_owned())).filter(|password| !password.0.is_empty());
            }
            "tls_ca" => self.tls_files.ca = Some(file(name, value)?),
            "tls_certificate" => self.tls_files.certificate = Some(file(name, value)?),
            "tls_key" => self.tls_files.key = Some(file(name, value)?),
            "connect_timeout_ms" => self.connect_timeout_ms = milliseconds(name, value)?,
            "timeout_ms" => self.timeout_ms = milliseconds(name, value)?,
            "retry_ms" => self.retry_ms = milliseconds(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses an option that has no effect without another one.
    pub(super) fn check_combination(&self) -> Result<(), DsnError> {
        let is_set = |option: &Option<PathBuf>| option.is_some();
        let TlsFiles { ca, certificate, key } = &self.tls_files;
        let has_sentinels = matches!(self.layout, Layout::Sentinel(_));
        let (option, reason) = match self {
            _ if !self.tls && is_set(ca) => ("tls_ca", "it needs TLS; write rediss://"),
            _ if !self.tls && is_set(certificate) => ("tls_certificate", "it needs TLS; write rediss://"),
            _ if !self.tls && is_set(key) => ("tls_key", "it needs TLS; write rediss://"),
            _ if is_set(certificate) && !is_set(key) => ("tls_certificate", "it needs its key; add tls_key"),
            _ if is_set(key) && !is_set(certificate) => ("tls_key", "it needs its certificate; add tls_certificate"),
            _ if !has_sentinels && self.sentinel_user.is_some() => {
                ("sentinel_user", "it needs the master's name; add sentinel")
            }
            _ if !has_sentinels && self.sentinel_password.is_some() => {
                ("sentinel_password", "it needs the master's name; add sentinel")
            }
            _ if self.sentinel_user.is_some() && self.sentinel_password.is_none() => {
                ("sentinel_user", "it needs a password; add sentinel_password")
            }
            _ => return Ok(()),
        };
        Err(bad_option(option, "…", reason))
    }

    /// The longest time that an operation takes, with all retries and answers, in milliseconds. All tries but the last two begin
    /// within `retry_ms`. One more try follows when a kept connection fails. Each try may connect to every address.
    pub(crate) fn longest_call_ms(&self) -> Millis {
        const PROBES_MS: Millis = 1_000;
        let hosts = self.addresses.len() as u64 + 1;
        let fresh = (self.connect_timeout_ms + self.timeout_ms).saturating_mul(hosts);
        self.retry_ms.max(self.timeout_ms).saturating_add(fresh).saturating_add(PROBES_MS)
    }
}

/// An address that a server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// How several servers hold one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One server holds the store.
    Single,
    /// A Redis Cluster: each node holds a part of the keys.
    Cluster,
    /// The addresses are sentinels, which name the current server of the master with this name.
    Sentinel(String),
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

/// The default lease of a store on a server: a process cannot observe the end of processes on other machines.
pub(super) const LEASE_ACROSS_MACHINES_MS: Millis = 300_000;

/// The port of a server when the DSN names none.
const REDIS_PORT: u16 = 6379;

/// The options of servers.
pub(super) const SERVER_OPTIONS: [&str; 14] = [
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

/// Parses `host`, `host:port`, `[address]` or `[address]:port`.
fn parse_address(text: &str) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(REDIS_PORT), |port| port.parse().ok())?;
    let is_allowed = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    (!host.is_empty() && host.chars().all(is_allowed)).then(|| Address::Tcp(host.to_owned(), port))
}

fn file(name: &str, value: &str) -> Result<PathBuf, DsnError> {
    match value.starts_with('/') && !value.contains('\0') {
        true => Ok(value.into()),
        false => Err(bad_option(name, value, "it must be the absolute path of a file in PEM format")),
    }
}

fn is_prefix(prefix: &str) -> bool {
    (1..=MAX_NAME).contains(&prefix.len())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsn::{Dsn, Place};

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
}
