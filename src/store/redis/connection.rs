//! Connections to the server: made when they are needed, kept, given up when they fail; and what a failure means.
//!
//! A job is tried again, after pauses that grow, while the server cannot serve for a reason that passes: it restarts, another
//! one takes over. Whether a job that is sent again may have been done before is for the caller to find out: it is told.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, ConnectionLike, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind, TlsMode, Value,
};

use super::script::Script;
use crate::dsn::{Address, Layout, Server};
use crate::error::{Error, StoreError};
use crate::ids::random_bytes;

/// How many idle connections are kept.
const IDLE: usize = 8;
/// The longest pause before a job is tried again.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A connection to the server, or to all of a cluster.
pub(super) enum Link {
    One(Box<Connection>),
    Cluster(Box<ClusterConnection>),
}

impl Link {
    /// Sends one command and waits for its answer.
    pub(super) fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Link::One(connection) => connection.req_command(command),
            Link::Cluster(connection) => connection.req_command(command),
        };
        answer?.extract_error()
    }

    /// Runs a script; one that the server does not know is sent in full.
    pub(super) fn run(&mut self, script: &Script, fill: impl Fn(&mut Cmd)) -> RedisResult<Value> {
        let mut command = redis::cmd("EVALSHA");
        fill(command.arg(&script.hash));
        match self.ask(&command) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let mut command = redis::cmd("EVAL");
                fill(command.arg(script.source));
                self.ask(&command)
            }
            answer => answer,
        }
    }

    /// Sends several commands, at once where one server has all keys. Their answers; the first error, if there is one.
    pub(super) fn ask_all(&mut self, commands: &[Cmd]) -> RedisResult<Vec<Value>> {
        match self {
            Link::One(connection) => {
                let mut pipeline = redis::pipe();
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                pipeline.query(connection)
            }
            Link::Cluster(_) => commands.iter().map(|command| self.ask(command)).collect(),
        }
    }
}

/// The connections of one process to one server.
pub(super) struct Connections {
    server: Server,
    idle: Mutex<Vec<Link>>,
}

/// Why a job was not done.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: RedisError,
    /// Whether it may have been done all the same.
    pub(super) perhaps_done: bool,
}

impl Connections {
    pub(super) fn new(server: Server) -> Self {
        Self { server, idle: Mutex::default() }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Does a job on a connection. What it came to, and whether an earlier try may have done it before.
    pub(super) fn run<T>(&self, mut job: impl FnMut(&mut Link) -> RedisResult<T>) -> Result<(T, bool), Failure> {
        let mut perhaps_done = false;
        let done = self.persist(|| {
            let mut link = self.take()?;
            let result = job(&mut link);
            match &result {
                Err(error) if is_lost(error) => {
                    perhaps_done = true;
                    self.idle.lock().clear();
                }
                // A server that has become a replica, or a node that has gone, is left for the one that is there now.
                Err(error) if passes(error) => {}
                _ => self.give_back(link),
            }
            result
        });
        match done {
            Ok(done) => Ok((done, perhaps_done)),
            Err(error) => Err(Failure { error, perhaps_done }),
        }
    }

    /// Tries again while the server cannot serve for a reason that passes.
    pub(super) fn persist<T>(&self, mut job: impl FnMut() -> RedisResult<T>) -> RedisResult<T> {
        let end = Instant::now() + Duration::from_millis(self.server.retry_ms);
        let mut pause = Duration::ZERO;
        loop {
            match job() {
                Err(error) if passes(&error) && Instant::now() + pause < end => {}
                done => return done,
            }
            // The first failure may be that of a connection the server has closed long ago.
            std::thread::sleep(jittered(pause));
            pause = (pause * 2).clamp(Duration::from_millis(5), LONGEST_PAUSE);
        }
    }

    /// A job that may be done twice without harm.
    pub(super) fn read<T>(&self, job: impl FnMut(&mut Link) -> RedisResult<T>) -> Result<T, StoreError> {
        self.run(job).map(|(done, _)| done).map_err(|failure| self.unavailable(&failure.error))
    }

    fn take(&self) -> RedisResult<Link> {
        match self.idle.lock().pop() {
            Some(link) => Ok(link),
            None => self.connect(),
        }
    }

    fn give_back(&self, link: Link) {
        let is_open = match &link {
            Link::One(connection) => connection.is_open(),
            Link::Cluster(_) => true,
        };
        let mut idle = self.idle.lock();
        if is_open && idle.len() < IDLE {
            idle.push(link);
        }
    }

    fn connect(&self) -> RedisResult<Link> {
        if self.server.layout != Layout::Cluster {
            return Ok(Link::One(Box::new(self.connect_one(ProtocolVersion::RESP2)?)));
        }
        let nodes = self.server.addresses.iter().map(|address| self.info(address, ProtocolVersion::RESP2));
        let mut client = ClusterClient::builder(nodes.collect::<RedisResult<Vec<_>>>()?)
            .connection_timeout(Duration::from_millis(self.server.connect_timeout_ms))
            .response_timeout(Duration::from_millis(self.server.timeout_ms))
            // Redirections take one or two tries; what takes longer is tried again here.
            .retries(4);
        if let Some(user) = &self.server.user {
            client = client.username(user);
        }
        if let Some(password) = &self.server.password {
            client = client.password(&password.0);
        }
        if self.server.tls {
            client = client.tls(TlsMode::Secure);
        }
        Ok(Link::Cluster(Box::new(client.build()?.get_connection()?)))
    }

    /// A connection to one server: the only one, the master, or any node of a cluster.
    pub(super) fn connect_one(&self, protocol: ProtocolVersion) -> RedisResult<Connection> {
        if let Layout::Sentinel(name) = &self.server.layout {
            return self.connect_master(name, protocol);
        }
        let mut last = None;
        for address in &self.server.addresses {
            match self.connect_to(self.info(address, protocol)?) {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("a server has an address"))
    }

    fn connect_master(&self, name: &str, protocol: ProtocolVersion) -> RedisResult<Connection> {
        let sentinels = self.server.addresses.iter().map(|address| self.address(address));
        let mut client = SentinelClientBuilder::new(sentinels, name, SentinelServerType::Master)?
            .set_client_to_redis_db(self.server.database.into())
            .set_client_to_redis_protocol(protocol);
        if let Some(user) = &self.server.user {
            client = client.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.server.password {
            client = client.set_client_to_redis_password(&password.0);
        }
        if self.server.tls {
            client = client.set_client_to_redis_tls_mode(TlsMode::Secure);
            client = client.set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        let info = client.build()?.get_client()?.get_connection_info().clone();
        self.connect_to(info)
    }

    /// A connection to each master, with the address as the cluster names it.
    pub(super) fn connect_masters(&self) -> RedisResult<Vec<Connection>> {
        let mut first = self.connect_one(ProtocolVersion::RESP2)?;
        if self.server.layout != Layout::Cluster {
            return Ok(vec![first]);
        }
        let slots: Vec<Vec<Value>> = redis::cmd("CLUSTER").arg("SLOTS").query(&mut first)?;
        let mut masters = std::collections::BTreeSet::new();
        for slot in slots {
            if let Some(master) = slot.get(2) {
                let master: Vec<Value> = redis::from_redis_value(master.clone())?;
                if let [host, port, ..] = &master[..] {
                    let (host, port) = (redis::from_redis_value(host.clone())?, redis::from_redis_value(port.clone())?);
                    masters.insert((host, port));
                }
            }
        }
        let connect = |(host, port)| self.connect_to(self.info(&Address::Tcp(host, port), ProtocolVersion::RESP2)?);
        masters.into_iter().map(connect).collect()
    }

    fn connect_to(&self, info: ConnectionInfo) -> RedisResult<Connection> {
        install_tls();
        let timeout = Duration::from_millis(self.server.connect_timeout_ms);
        let connection = Client::open(info)?.get_connection_with_timeout(timeout)?;
        let answer = Some(Duration::from_millis(self.server.timeout_ms));
        connection.set_read_timeout(answer)?;
        connection.set_write_timeout(answer)?;
        Ok(connection)
    }

    fn address(&self, address: &Address) -> ConnectionAddr {
        match address {
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
            Address::Tcp(host, port) if self.server.tls => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
            Address::Tcp(host, port) => ConnectionAddr::Tcp(host.clone(), *port),
        }
    }

    fn info(&self, address: &Address, protocol: ProtocolVersion) -> RedisResult<ConnectionInfo> {
        let mut login = RedisConnectionInfo::default()
            .set_db(self.server.database.into())
            .set_protocol(protocol)
            .set_skip_set_lib_name();
        if let Some(user) = &self.server.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.server.password {
            login = login.set_password(&password.0);
        }
        Ok(self.address(address).into_connection_info()?.set_redis_settings(login))
    }

    /// The error for a server that did not do its part.
    pub(super) fn unavailable(&self, error: &RedisError) -> StoreError {
        if error.code() == Some("OOM") {
            return self.full();
        }
        StoreError::Server { server: self.server.to_string(), reason: explain(error) }
    }

    /// The error for an operation of which nobody knows whether it was carried out.
    pub(super) fn unknown(&self, reason: impl Into<String>) -> Error {
        Error::OutcomeUnknown { server: self.server.to_string(), reason: reason.into() }
    }

    fn full(&self) -> StoreError {
        let memory = self.take().and_then(|mut link| {
            let Link::One(connection) = &mut link else { return Ok((0, 0)) };
            let info: redis::InfoDict = redis::cmd("INFO").arg("memory").query(connection)?;
            self.give_back(link);
            Ok((info.get("used_memory").unwrap_or(0), info.get("maxmemory").unwrap_or(0)))
        });
        let (used, limit) = memory.unwrap_or((0, 0));
        StoreError::Full { used, limit, needed: 0, detail: format!(" (the maxmemory of {})", self.server) }
    }
}

/// Whether the connection was lost, so that nobody knows how far the server came.
fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.kind() == ErrorKind::Parse
}

/// Whether the reason passes by itself.
fn passes(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
    match error.kind() {
        ErrorKind::Io
        | ErrorKind::ClusterConnectionNotFound
        | ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly | TryAgain) => true,
        _ => is_lost(error) || error.code() == Some("BUSY"),
    }
}

/// What the server said, and what to do.
fn explain(error: &RedisError) -> String {
    let advice = match error.code() {
        Some("NOAUTH" | "WRONGPASS") => "name a user and a password in the DSN",
        Some("NOPERM") => "let the user run scripts and use the keys and channels of this prefix",
        Some("READONLY") => "it is a replica; name the master, or the sentinels",
        Some("LOADING") => "it is reading its data",
        Some("MASTERDOWN" | "CLUSTERDOWN") => "its other servers cannot be reached",
        Some("MISCONF") => "it cannot write to its disk",
        Some("BUSY") => "a script of somebody else keeps it busy",
        _ if error.kind() == ErrorKind::AuthenticationFailed => "name a user and a password in the DSN",
        _ if is_lost(error) || error.is_timeout() => "see whether it runs and can be reached from here",
        _ => "see its log",
    };
    format!("{error}; {advice}")
}

/// Between half of `pause` and all of it.
fn jittered(pause: Duration) -> Duration {
    let [random] = random_bytes();
    pause / 2 + pause / 2 * u32::from(random) / 255
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

    fn said(code: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{code} what it says\r\n").as_bytes()).unwrap();
        value.extract_error().unwrap_err()
    }

    #[test]
    fn what_passes_is_tried_again_and_what_does_not_is_explained() {
        for code in ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"] {
            assert!(passes(&said(code)), "{code}");
        }
        for code in ["NOAUTH", "WRONGPASS", "NOPERM", "OOM", "ERR", "MISCONF"] {
            assert!(!passes(&said(code)), "{code}");
        }
        assert!(explain(&said("NOAUTH")).contains("password"));
        assert!(explain(&said("READONLY")).contains("master"));
    }

    #[test]
    fn a_pause_is_between_half_and_whole() {
        let pause = Duration::from_millis(100);
        assert!((0..100).all(|_| (pause / 2..=pause).contains(&jittered(pause))));
    }
}
