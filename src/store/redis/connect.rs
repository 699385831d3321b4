//! Making connections: to the one server, to the master that sentinels name, to the nodes of a cluster.
//!
//! A connection counts as made when the server has answered a first `PING` on it, so whatever TLS, a login or a silent server
//! make of it is found before anything is sent that counts.
//!
//! A host and a port that do not speak what the DSN says (TLS, or none) often do not say so: they close the connection, or wait.
//! Such a failure is looked into once more, so that it is not taken for a server that is away.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, Instant};

use redis::cluster::ClusterClient;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult, TlsMode, Value,
};

use super::connection::{Link, PROBE};
use super::trouble::{NO_TLS_THERE, SENTINEL_LOGIN, TLS_FILE, TLS_THERE, io_cause, is_lost, passes, text};
use crate::dsn::{Address, Layout, Secret, Server};
use crate::ids::random_bytes;

/// After so much silence of a connection the kernel asks whether the other side is still there, and again after each interval;
/// what has not been answered for [`UNANSWERED`] has lost the connection.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const UNANSWERED: Duration = Duration::from_secs(25);
/// The longest file with certificates that is read.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// How long making a connection may take.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// As long as the DSN says.
    AsSet,
    /// Until then, however many hosts are tried.
    Until(Instant),
}

/// The connections of a DSN: how they are made.
pub(super) struct Connector {
    pub(super) server: Server,
}

impl Connector {
    /// A connection for operations.
    pub(super) fn link(&self) -> RedisResult<Link> {
        if self.server.layout != Layout::Cluster {
            return Ok(Link::One(Box::new(self.one(ProtocolVersion::RESP2, Patience::AsSet)?)));
        }
        // The crate asks the first node that answers for the slots: it must be one that has some.
        let nodes = self.masters(Patience::AsSet)?;
        let nodes = nodes.iter().map(|address| self.info(address, ProtocolVersion::RESP2));
        let mut client = ClusterClient::builder(nodes.collect::<RedisResult<Vec<_>>>()?)
            .connection_timeout(Duration::from_millis(self.server.connect_timeout_ms))
            .response_timeout(Duration::from_millis(self.server.timeout_ms))
            .tcp_settings(tcp_settings())
            // Redirections take one or two tries; what takes longer is tried again by whoever asked.
            .retries(4);
        if let Some(user) = &self.server.user {
            client = client.username(user);
        }
        if let Some(password) = &self.server.password {
            client = client.password(&password.0);
        }
        if self.server.tls {
            client = client.tls(TlsMode::Secure);
            #[cfg(feature = "tls")]
            if let Some(certificates) = self.certificates()? {
                client = client.certs(certificates);
            }
        }
        Ok(Link::Cluster(Box::new(client.build()?.get_connection()?)))
    }

    /// A connection to one server: the only one, the master, or a master of a cluster.
    pub(super) fn one(&self, protocol: ProtocolVersion, patience: Patience) -> RedisResult<Connection> {
        match &self.server.layout {
            Layout::Single => first(&self.server.addresses, |address| self.to_server(address, protocol, patience)),
            Layout::Sentinel(name) => self.master(name, protocol, patience),
            Layout::Cluster => {
                let mut masters = self.masters(patience)?;
                // Not all processes listen at the same one.
                let [random] = random_bytes();
                let start = usize::from(random) % masters.len();
                masters.rotate_left(start);
                first(&masters, |address| self.to_server(address, protocol, patience))
            }
        }
    }

    /// A connection to each master.
    pub(super) fn all_masters(&self) -> RedisResult<Vec<Connection>> {
        if self.server.layout != Layout::Cluster {
            return Ok(vec![self.one(ProtocolVersion::RESP2, Patience::AsSet)?]);
        }
        let masters = self.masters(Patience::AsSet)?;
        masters.iter().map(|address| self.to_server(address, ProtocolVersion::RESP2, Patience::AsSet)).collect()
    }

    /// The master that sentinels name: of the first sentinel whose answer leads to one.
    fn master(&self, name: &str, protocol: ProtocolVersion, patience: Patience) -> RedisResult<Connection> {
        first(&self.server.addresses, |address| {
            let named = self.ask_sentinel(address, name, patience).map_err(|error| of_sentinel(address, error))?;
            let Some((host, port)) = named else {
                let detail = format!("{address} does not know {name:?}");
                return Err((ErrorKind::MasterNameNotFoundBySentinel, "no sentinel names the master", detail).into());
            };
            let mut connection = self.to_server(&Address::Tcp(host.clone(), port), protocol, patience)?;
            let role: Vec<Value> = redis::cmd("ROLE").query(&mut connection)?;
            // For a moment after a failover, or longer where it is cut off, a sentinel names the server that was the master.
            if !matches!(role.first(), Some(Value::BulkString(role)) if role == b"master") {
                let detail = format!("{host}:{port}, which {address} names, is not one");
                return Err((ErrorKind::MasterNameNotFoundBySentinel, "no sentinel names a master", detail).into());
            }
            Ok(connection)
        })
    }

    fn ask_sentinel(&self, address: &Address, name: &str, patience: Patience) -> RedisResult<Option<(String, u16)>> {
        let login = login(self.server.sentinel_user.as_deref(), self.server.sentinel_password.as_ref());
        let info = self.address(address)?.into_connection_info()?.set_redis_settings(login);
        let mut sentinel = self.open(address, info, patience)?;
        redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query(&mut sentinel)
    }

    /// The masters of a cluster, as the first node sees them that has slots to tell of. A node that has left the cluster has none.
    fn masters(&self, patience: Patience) -> RedisResult<Vec<Address>> {
        first(&self.server.addresses, |address| {
            let mut node = self.to_server(address, ProtocolVersion::RESP2, patience)?;
            let slots: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query(&mut node)?;
            let masters = masters_of(slots, address)?;
            if masters.is_empty() {
                let detail = format!("{address} has left the cluster, or it was never in one");
                return Err((ErrorKind::ClusterConnectionNotFound, "no node knows who has the slots", detail).into());
            }
            Ok(masters)
        })
    }

    fn to_server(&self, address: &Address, protocol: ProtocolVersion, patience: Patience) -> RedisResult<Connection> {
        self.open(address, self.info(address, protocol)?, patience)
    }

    fn open(&self, address: &Address, info: ConnectionInfo, patience: Patience) -> RedisResult<Connection> {
        install_tls();
        let opened = self.greet(info.clone(), patience);
        match &opened {
            Err(error) if matches!(patience, Patience::AsSet) && is_speechless(error) => {
                Err(self.look_into(address, info).unwrap_or_else(|| error.clone()))
            }
            _ => opened,
        }
    }

    /// Connects, logs in, and hears the server's first answer.
    fn greet(&self, info: ConnectionInfo, patience: Patience) -> RedisResult<Connection> {
        let mut most = Duration::from_millis(self.server.connect_timeout_ms);
        if let Patience::Until(end) = patience {
            most = most.min(end.saturating_duration_since(Instant::now()));
        }
        if most.is_zero() {
            return Err(RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)));
        }
        let start = Instant::now();
        let mut connection = Client::open(info)?.get_connection_with_timeout(most)?;
        let left = most.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
        connection.set_read_timeout(Some(left))?;
        connection.set_write_timeout(Some(left))?;
        match redis::cmd("PING").exec(&mut connection) {
            Err(error) if is_lost(&error) => return Err(error),
            // What it may refuse, it answers to; the first command that matters meets the same.
            _ => {}
        }
        let answer = Some(Duration::from_millis(self.server.timeout_ms));
        connection.set_read_timeout(answer)?;
        connection.set_write_timeout(answer)?;
        Ok(connection)
    }

    /// What is wrong with a server that takes connections and says nothing of use on them, if that will stay so.
    fn look_into(&self, address: &Address, info: ConnectionInfo) -> Option<RedisError> {
        let Address::Tcp(host, port) = address else { return None };
        if !self.server.tls {
            return speaks_tls(host, *port).then(|| RedisError::from((ErrorKind::InvalidClientConfig, TLS_THERE)));
        }
        if speaks_plainly(host, *port) {
            return Some(RedisError::from((ErrorKind::InvalidClientConfig, NO_TLS_THERE)));
        }
        // A server that refuses a certificate says so before it closes the connection, but what is written to it meanwhile may
        // meet its end first. So nothing is written.
        let silent = info.set_redis_settings(RedisConnectionInfo::default().set_skip_set_lib_name());
        let mut connection = Client::open(silent).ok()?.get_connection_with_timeout(PROBE).ok()?;
        connection.set_read_timeout(Some(PROBE)).ok()?;
        connection.recv_response().err().filter(|error| !passes(error))
    }

    fn address(&self, address: &Address) -> RedisResult<ConnectionAddr> {
        Ok(match address {
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
            Address::Tcp(host, port) if self.server.tls => self.with_tls(host, *port)?,
            Address::Tcp(host, port) => ConnectionAddr::Tcp(host.clone(), *port),
        })
    }

    #[cfg(feature = "tls")]
    fn with_tls(&self, host: &str, port: u16) -> RedisResult<ConnectionAddr> {
        let plain = ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: false, tls_params: None };
        let Some(certificates) = self.certificates()? else { return Ok(plain) };
        let client = Client::build_with_tls(plain, certificates)
            .map_err(|error| RedisError::from((ErrorKind::InvalidClientConfig, TLS_FILE, error.to_string())))?;
        Ok(client.get_connection_info().addr().clone())
    }

    #[cfg(not(feature = "tls"))]
    fn with_tls(&self, host: &str, port: u16) -> RedisResult<ConnectionAddr> {
        Ok(ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: false, tls_params: None })
    }

    /// What the DSN names in files, as it is there now: certificates are renewed while processes run.
    #[cfg(feature = "tls")]
    fn certificates(&self) -> RedisResult<Option<redis::TlsCertificates>> {
        let files = &self.server.tls_files;
        let read =
            |option: &str, path: &Option<std::path::PathBuf>| path.as_deref().map(|path| pem(option, path)).transpose();
        let root_cert = read("tls_ca", &files.ca)?;
        let client_cert = read("tls_certificate", &files.certificate)?;
        let client_key = read("tls_key", &files.key)?;
        let client_tls = client_cert
            .zip(client_key)
            .map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
        let is_named = client_tls.is_some() || root_cert.is_some();
        Ok(is_named.then_some(redis::TlsCertificates { client_tls, root_cert }))
    }

    fn info(&self, address: &Address, protocol: ProtocolVersion) -> RedisResult<ConnectionInfo> {
        let login = login(self.server.user.as_deref(), self.server.password.as_ref())
            .set_db(self.server.database.into())
            .set_protocol(protocol);
        let info = self.address(address)?.into_connection_info()?;
        Ok(info.set_tcp_settings(tcp_settings()).set_redis_settings(login))
    }
}

/// The first address that leads to something. Else an error that passes, if there is one: then it is worth trying again.
fn first<T>(addresses: &[Address], mut lead: impl FnMut(&Address) -> RedisResult<T>) -> RedisResult<T> {
    let mut worst: Option<RedisError> = None;
    for address in addresses {
        match lead(address) {
            Ok(found) => return Ok(found),
            Err(error) if worst.as_ref().is_some_and(passes) && !passes(&error) => {}
            Err(error) => worst = Some(error),
        }
    }
    Err(worst.expect("a server has an address"))
}

/// The masters in the answer of a node to `CLUSTER SLOTS`. A node that is told not to name a host, or that does not know its own,
/// leaves it out: then its own is meant.
fn masters_of(slots: Vec<Vec<Value>>, asked: &Address) -> RedisResult<Vec<Address>> {
    let mut masters = BTreeSet::new();
    for slot in slots {
        let Some(Value::Array(master)) = slot.into_iter().nth(2) else { continue };
        let mut parts = master.into_iter();
        let (Some(host), Some(port)) = (parts.next(), parts.next()) else { continue };
        let host: Option<String> = redis::from_redis_value(host)?;
        let host = match (host.as_deref(), asked) {
            (Some("?"), _) => {
                let detail = "cluster-preferred-endpoint-type hostname needs cluster-announce-hostname on each node";
                return Err(
                    (ErrorKind::InvalidClientConfig, "a node of the cluster has no name", detail.to_owned()).into()
                );
            }
            (None | Some(""), Address::Tcp(host, _)) => host.clone(),
            (None | Some(""), Address::Unix(_)) => "127.0.0.1".to_owned(),
            (Some(host), _) => host.to_owned(),
        };
        masters.insert((host, redis::from_redis_value::<u16>(port)?));
    }
    Ok(masters.into_iter().map(|(host, port)| Address::Tcp(host, port)).collect())
}

/// The error of a sentinel, by its name: the DSN has other users and passwords for sentinels than for servers.
fn of_sentinel(address: &Address, error: RedisError) -> RedisError {
    let is_login = error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
    let detail = format!("{address}: {}", text(&error));
    match is_login {
        true => (ErrorKind::AuthenticationFailed, SENTINEL_LOGIN, detail).into(),
        false if passes(&error) => (ErrorKind::Io, "a sentinel cannot be asked", detail).into(),
        false => error,
    }
}

/// Whether a server that took the connection did not say anything that could be understood.
fn is_speechless(error: &RedisError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof, WouldBlock};
    let cause = io_cause(error).map(std::io::Error::kind);
    error.kind() == ErrorKind::Parse
        || matches!(cause, Some(BrokenPipe | ConnectionReset | UnexpectedEof | WouldBlock))
        || (cause.is_none() && is_lost(error))
}

fn login(user: Option<&str>, password: Option<&Secret>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(user) = user {
        login = login.set_username(user);
    }
    if let Some(password) = password {
        login = login.set_password(&password.0);
    }
    login
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_INTERVAL);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNANSWERED);
    settings
}

/// A file with certificates, or a key.
#[cfg(feature = "tls")]
fn pem(option: &str, path: &Path) -> RedisResult<Vec<u8>> {
    let useless = |why: String| {
        let detail = format!("{option} {}: {why}", path.display());
        RedisError::from((ErrorKind::InvalidClientConfig, TLS_FILE, detail))
    };
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| useless(error.to_string()))?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err(useless("it is not a file".to_owned()));
    }
    file.take(MAX_PEM_BYTES).read_to_end(&mut text).map_err(|error| useless(error.to_string()))?;
    let wanted = if option == "tls_key" { "PRIVATE KEY-----" } else { "BEGIN CERTIFICATE-----" };
    if !String::from_utf8_lossy(&text).contains(wanted) {
        return Err(useless(format!("there is no \"-----{wanted}\" in it").replace("-----PRIVATE", "PRIVATE")));
    }
    Ok(text)
}

/// The first byte that a server answers with.
fn first_byte(host: &str, port: u16, greeting: &[u8]) -> Option<u8> {
    let address = (host, port).to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&address, PROBE).ok()?;
    stream.set_read_timeout(Some(PROBE)).ok()?;
    stream.set_write_timeout(Some(PROBE)).ok()?;
    stream.write_all(greeting).ok()?;
    let mut byte = [0];
    stream.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

/// Whether it answers as Redis does without TLS.
fn speaks_plainly(host: &str, port: u16) -> bool {
    matches!(first_byte(host, port, b"PING\r\n"), Some(b'+' | b'-'))
}

/// Whether it answers as TLS does: with a handshake, or with an alert.
#[cfg(feature = "tls")]
fn speaks_tls(host: &str, port: u16) -> bool {
    const ALERT_OR_HANDSHAKE: [u8; 2] = [0x15, 0x16];
    let config =
        rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(host.to_owned());
    let hello = name.ok().and_then(|name| rustls::ClientConnection::new(config.into(), name).ok());
    let mut greeting = Vec::new();
    hello.and_then(|mut hello| hello.write_tls(&mut greeting).ok()).is_some()
        && first_byte(host, port, &greeting).is_some_and(|byte| ALERT_OR_HANDSHAKE.contains(&byte))
}

#[cfg(not(feature = "tls"))]
fn speaks_tls(_: &str, _: u16) -> bool {
    false
}

/// Chooses the cryptography that TLS is done with, unless the program has.
fn install_tls() {
    #[cfg(feature = "tls")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // Refused when the program has chosen already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(text: &str) -> Vec<Vec<Value>> {
        redis::from_redis_value(redis::parse_redis_value(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_node_without_a_host_is_at_the_host_that_was_asked() {
        let asked = Address::Tcp("10.0.0.9".into(), 7000);
        let tcp = |host: &str, port| Address::Tcp(host.into(), port);
        for (host, expected) in [("$-1\r\n", "10.0.0.9"), ("$0\r\n\r\n", "10.0.0.9"), ("$1\r\nh\r\n", "h")] {
            let answer = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n{host}:7001\r\n");
            assert_eq!(masters_of(slots(&answer), &asked).unwrap(), [tcp(expected, 7001)], "{host:?}");
        }
        assert_eq!(masters_of(slots("*0\r\n"), &asked).unwrap(), []);
        let unknown = masters_of(slots("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\n?\r\n:7001\r\n"), &asked).unwrap_err();
        assert!(!passes(&unknown) && unknown.to_string().contains("cluster-announce-hostname"), "{unknown}");
    }

    #[test]
    fn what_passes_is_the_reason_when_no_address_leads_anywhere() {
        let addresses: Vec<_> = [1, 2, 3].map(|port| Address::Tcp("h".into(), port)).into();
        let away = || RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        let wrong = || RedisError::from((ErrorKind::AuthenticationFailed, "wrong"));
        for away_at in [1, 2, 3] {
            let led = first::<()>(&addresses, |address| {
                Err(if *address == Address::Tcp("h".into(), away_at) { away() } else { wrong() })
            });
            assert!(passes(&led.unwrap_err()), "the address {away_at} may come back");
        }
        assert!(!passes(&first::<()>(&addresses, |_| Err(wrong())).unwrap_err()));
        let third = first(&addresses, |address| if *address == addresses[2] { Ok(3) } else { Err(away()) });
        assert_eq!(third.unwrap(), 3);
    }
}
