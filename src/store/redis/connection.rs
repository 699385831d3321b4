//! Connections to the server: made when they are needed, kept, given up when they fail; and what a failure means.
//!
//! A job is tried again, after pauses that grow, while the server cannot serve for a reason that passes: it restarts, another
//! one takes over. Whether a job that is sent again may have been done before is for the caller to find out: it is told.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, ConnectionLike, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind, TlsMode, Value,
};

use super::SHARED_LIFE_MS;
use super::script::{Call, Packed, Script};
use crate::dsn::{Address, Layout, Server};
use crate::error::{Error, StoreError};
use crate::ids::random_bytes;

/// Which keys there are and what is in them. A store of another layout is refused.
const LAYOUT: u32 = 1;
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

    /// The same for a script's command that is packed already.
    pub(super) fn run_packed<'s>(
        &mut self,
        script: &'s Script,
        pack: impl Fn(Call<'s>) -> Packed,
    ) -> RedisResult<Value> {
        match self.send(&pack(Call::Named(script))) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(&pack(Call::InFull(script)))
            }
            answer => answer,
        }
    }

    fn send(&mut self, command: &Packed) -> RedisResult<Value> {
        let answer = match self {
            Link::One(connection) => connection.req_packed_command(&command.0),
            Link::Cluster(connection) => connection.req_packed_command(&command.0),
        };
        answer?.extract_error()
    }

    /// Sends two commands at once; nothing where not one server answers both.
    pub(super) fn send_two(&mut self, commands: &Packed) -> RedisResult<Option<[Value; 2]>> {
        let Link::One(connection) = self else { return Ok(None) };
        connection.send_packed_command(&commands.0)?;
        // Both are read before either is looked at, so that none is left for the next command.
        let [first, second] = [(); 2].map(|()| connection.recv_response());
        Ok(Some([first?.extract_error()?, second?.extract_error()?]))
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

    /// Does a job on a connection. What it came to, and whether an earlier try may have done it before; the job is told that too.
    pub(super) fn run<T>(&self, mut job: impl FnMut(&mut Link, bool) -> RedisResult<T>) -> Result<(T, bool), Failure> {
        let mut perhaps_done = false;
        let done = self.persist(|| {
            let mut link = self.take()?;
            // The cluster's link sends again by itself.
            let again = perhaps_done || matches!(link, Link::Cluster(_));
            let result = job(&mut link, again);
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

    /// Does a job that matters little, if there is a connection already; it is not tried again.
    pub(super) fn once<T>(&self, job: impl FnOnce(&mut Link) -> RedisResult<T>) -> Option<T> {
        let mut link = self.idle.lock().pop()?;
        let result = job(&mut link);
        if !result.as_ref().is_err_and(is_lost) {
            self.give_back(link);
        }
        result.ok()
    }

    /// A job that may be done twice without harm.
    pub(super) fn read<T>(&self, mut job: impl FnMut(&mut Link) -> RedisResult<T>) -> Result<T, StoreError> {
        self.run(|link, _| job(link)).map(|(done, _)| done).map_err(|failure| self.unavailable(&failure.error))
    }

    fn take(&self) -> RedisResult<Link> {
        match self.idle.lock().pop() {
            Some(link) => Ok(link),
            None => {
                let mut link = self.connect()?;
                self.check_layout(&mut link)?;
                Ok(link)
            }
        }
    }

    /// The key that says which layout the store has.
    pub(super) fn layout_key(&self) -> String {
        format!("{}{{layout}}", self.server.prefix)
    }

    /// Fails if the store has another layout; marks one that has none yet.
    fn check_layout(&self, link: &mut Link) -> RedisResult<()> {
        let key = self.layout_key();
        let found: Option<Vec<u8>> = redis::from_redis_value(link.ask(redis::cmd("GET").arg(&key))?)?;
        let Some(found) = found else {
            // A server that cannot take it (a replica, a full one) says so when it is asked for more.
            let mut mark = redis::cmd("SET");
            let marked = link.ask(mark.arg(&key).arg(LAYOUT).arg("NX").arg("PX").arg(SHARED_LIFE_MS));
            return marked.map(|_| ()).or_else(|error| if is_lost(&error) { Err(error) } else { Ok(()) });
        };
        let found = String::from_utf8_lossy(&found).into_owned();
        let what = match found.parse::<u32>() {
            Ok(LAYOUT) => return Ok(()),
            Ok(older) if older < LAYOUT => "an older mcp-state wrote it; let its processes end and reset the store, or",
            Ok(_) => "a newer mcp-state writes it; upgrade this one, or",
            Err(_) => "mcp-state did not write that; reset the store, or",
        };
        let reason = format!("its layout is {found:?}, here it is {LAYOUT}: {what} use another prefix");
        Err((ErrorKind::InvalidClientConfig, OTHER_LAYOUT, reason).into())
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

    /// A connection to the server that the first sentinel that answers takes for the master. Sentinels are asked without the
    /// server's user and password.
    fn connect_master(&self, name: &str, protocol: ProtocolVersion) -> RedisResult<Connection> {
        let mut last = RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "no sentinel knows the master"));
        for address in &self.server.addresses {
            match self.ask_sentinel(address, name) {
                Ok(Some((host, port))) => {
                    let mut connection = self.connect_to(self.info(&Address::Tcp(host, port), protocol)?)?;
                    let role: Vec<Value> = redis::cmd("ROLE").query(&mut connection)?;
                    // For a moment after a failover a sentinel may name the server that was the master before.
                    if matches!(role.first(), Some(Value::BulkString(role)) if role == b"master") {
                        return Ok(connection);
                    }
                }
                Ok(None) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn ask_sentinel(&self, address: &Address, name: &str) -> RedisResult<Option<(String, u16)>> {
        let mut sentinel = self.connect_to(self.address(address).into_connection_info()?)?;
        redis::cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query(&mut sentinel)
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
        if said(error, "OOM") {
            return self.full();
        }
        if let Some(reason) = error.detail().filter(|_| error.to_string().starts_with(OTHER_LAYOUT)) {
            return StoreError::Incompatible { path: self.server.to_string().into(), reason: reason.to_owned() };
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

/// What the error of a store that has another layout begins with.
const OTHER_LAYOUT: &str = "the store has another layout";

/// Whether the connection was lost, so that nobody knows how far the server came.
fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.kind() == ErrorKind::Parse
}

/// Whether the server's certificate was refused.
fn is_untrusted(error: &RedisError) -> bool {
    error.is_io_error() && error.to_string().contains("certificate")
}

/// Whether the reason passes by itself.
fn passes(error: &RedisError) -> bool {
    const PASSING: [&str; 8] =
        ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "READONLY", "TRYAGAIN", "BUSY", "NOREPLICAS"];
    match error.kind() {
        ErrorKind::ClusterConnectionNotFound | ErrorKind::MasterNameNotFoundBySentinel => true,
        _ if is_untrusted(error) => false,
        _ => is_lost(error) || PASSING.iter().any(|code| said(error, code)),
    }
}

/// Whether the server's error has this code; Redis 6 wraps what a script meets into another one.
fn said(error: &RedisError, code: &str) -> bool {
    error.code() == Some(code) || error.detail().is_some_and(|detail| detail.contains(&format!("-{code} ")))
}

/// What the server said, and what to do.
fn explain(error: &RedisError) -> String {
    const MAY_NOT: &str = "give the user the rights that the guide names, on keys and channels of this prefix";
    const ADVICE: [(&str, &str); 10] = [
        ("NOAUTH", "name a user and a password in the DSN"),
        ("WRONGPASS", "name another user or password in the DSN"),
        ("NOPERM", MAY_NOT),
        ("READONLY", "it is a replica; name the master, or the sentinels"),
        ("LOADING", "it is reading its data; try again"),
        ("MASTERDOWN", "it is a replica without its master; name the master, or the sentinels"),
        ("CLUSTERDOWN", "too many of the cluster's servers are gone; start them"),
        ("MISCONF", "it cannot write to its disk; mend that"),
        ("NOREPLICAS", "it waits for its replicas; start them"),
        ("BUSY", "somebody's script keeps it busy; end that"),
    ];
    let advice = ADVICE.iter().find(|(code, _)| said(error, code)).map(|(_, advice)| *advice);
    let advice = advice.unwrap_or(match error.kind() {
        // What Redis 7 says of a script's command that the user may not run.
        _ if error.detail().is_some_and(|detail| detail.contains("user executing the script")) => MAY_NOT,
        ErrorKind::AuthenticationFailed => "name another user or password in the DSN",
        _ if is_untrusted(error) => {
            "let an authority this system trusts sign its certificate for the host in the DSN, or name another in SSL_CERT_FILE"
        }
        _ if is_lost(error) => "see whether it runs and can be reached from here",
        _ => "see its log",
    });
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

    fn error(code: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{code} what it says\r\n").as_bytes()).unwrap();
        value.extract_error().unwrap_err()
    }

    #[test]
    fn what_passes_is_tried_again_and_what_does_not_is_explained() {
        for code in ["LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"] {
            assert!(passes(&error(code)), "{code}");
        }
        for code in ["NOAUTH", "WRONGPASS", "NOPERM", "OOM", "ERR", "MISCONF"] {
            assert!(!passes(&error(code)), "{code}");
        }
        assert!(explain(&error("NOAUTH")).contains("password"));
        assert!(explain(&error("READONLY")).contains("master"));
    }

    #[test]
    fn what_a_script_met_is_seen_as_redis_6_says_it() {
        let wrapped =
            error("ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -READONLY You can't");
        assert!(passes(&wrapped) && explain(&wrapped).contains("master"));
        assert!(said(&error("ERR Error running script (call to f_1): @user_script: 9: -OOM command"), "OOM"));
    }

    #[test]
    fn a_pause_is_between_half_and_whole() {
        let pause = Duration::from_millis(100);
        assert!((0..100).all(|_| (pause / 2..=pause).contains(&jittered(pause))));
    }
}
