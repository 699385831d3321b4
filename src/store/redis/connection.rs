//! Connections to the server: kept, given up when they fail, and made anew; how long a job is tried again.
//!
//! A job is tried again, after pauses that grow, while the server cannot serve for a reason that passes: it restarts, another
//! one takes over. Whether a job that is sent again may have been done before is for the caller to find out: it is told.
//!
//! A kept connection proves nothing: whatever lies between may have dropped it without a word. So one that was idle for long is
//! asked first whether it is still there, and a job that failed on a kept connection is tried on a fresh one, also when
//! `retry_ms` is over by then. A job therefore ends within [`Server::longest_call_ms`].
//!
//! A process whose job has failed for an outage does not wait the same time again with the next one: until the server has
//! answered, a job fails at once unless the server answers within [`PROBE`], or sooner the more jobs have asked in vain; after
//! [`REST`] one gets a try in full.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::cluster::ClusterConnection;
use redis::{
    Cmd, Connection, ConnectionLike, ErrorKind, ProtocolVersion, RedisError, RedisResult, ServerErrorKind, Value,
};

use super::SHARED_LIFE_MS;
use super::connect::{Connector, Patience};
use super::script::{Call, Packed, Script};
use super::trouble::{NO_STORE, OTHER_LAYOUT, begins, explain, is_lost, missing_rights, passes, said, text};
use crate::dsn::Server;
use crate::error::{Error, StoreError};
use crate::ids::random_bytes;

/// Which keys there are and what is in them. A store of another layout is refused.
const LAYOUT: u32 = 1;
/// How many idle connections are kept.
const IDLE: usize = 8;
/// After so much silence a connection is asked whether it is still there.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// How long that, and a server after an outage, has for an answer.
pub(super) const PROBE: Duration = Duration::from_millis(250);
/// How often that is halved for jobs that ask one after another.
const MOST_HALVED: u32 = 3;
/// After so long a server that was away is given all its time again.
const REST: Duration = Duration::from_secs(2);
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

    /// Whether the server still answers on it, within [`PROBE`]; `answer` is how long it has otherwise.
    fn is_there(&mut self, answer: Duration) -> bool {
        let soon = Some(answer.min(PROBE));
        match self {
            Link::One(connection) => {
                connection.set_read_timeout(soon).is_ok()
                    && connection.check_connection()
                    && connection.set_read_timeout(Some(answer)).is_ok()
            }
            Link::Cluster(connection) => {
                connection.set_read_timeout(soon).is_ok()
                    && connection.check_connection()
                    && connection.set_read_timeout(Some(answer)).is_ok()
            }
        }
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
    connector: Connector,
    idle: Mutex<Vec<Idle>>,
    outage: Mutex<Option<Outage>>,
    /// Whether the store is only looked at: it is not made.
    is_look: bool,
}

/// A connection that nobody uses.
struct Idle {
    link: Link,
    since: Instant,
}

/// Why the last job failed, while no other one has succeeded since.
struct Outage {
    error: RedisError,
    since: Instant,
    /// How many jobs have asked in vain since then.
    asked: u32,
}

/// Why a job was not done.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: RedisError,
    /// Whether it may have been done all the same.
    pub(super) perhaps_done: bool,
}

/// One try of a job.
#[derive(Default)]
pub(super) struct Try {
    /// Whether the try before failed on a kept connection.
    wants_fresh: bool,
    /// Whether this one is on a kept connection.
    has_kept: bool,
}

impl Connections {
    pub(super) fn new(server: Server) -> Self {
        Self { connector: Connector { server }, idle: Mutex::default(), outage: Mutex::default(), is_look: false }
    }

    /// The same for whoever only looks at a store: one that is not there is an error, and stays away.
    pub(super) fn to_look(server: Server) -> Self {
        Self { is_look: true, ..Self::new(server) }
    }

    pub(super) fn server(&self) -> &Server {
        &self.connector.server
    }

    /// Does a job on a connection. What it came to, and whether an earlier try may have done it before; the job is told that too.
    pub(super) fn run<T>(&self, mut job: impl FnMut(&mut Link, bool) -> RedisResult<T>) -> Result<(T, bool), Failure> {
        let mut perhaps_done = false;
        let done = self.persist(|this| {
            let mut link = self.take(this)?;
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
    pub(super) fn persist<T>(&self, mut job: impl FnMut(&mut Try) -> RedisResult<T>) -> RedisResult<T> {
        let tries_again = !self.is_out()?;
        let end = Instant::now() + Duration::from_millis(self.server().retry_ms);
        let mut pause = Duration::ZERO;
        let mut this = Try::default();
        loop {
            let done = job(&mut this);
            let is_over = !tries_again || Instant::now() + pause >= end;
            match &done {
                Err(error) if passes(error) && (this.has_kept || !is_over) => {}
                done_or_not => {
                    self.remember(done_or_not.as_ref().err());
                    return done;
                }
            }
            this = Try { wants_fresh: this.wants_fresh || this.has_kept, has_kept: false };
            // The first failure may be that of a connection the server has closed long ago.
            std::thread::sleep(jittered(pause));
            pause = (pause * 2).clamp(Duration::from_millis(5), LONGEST_PAUSE);
        }
    }

    /// Whether the last job failed for an outage; that job's error, if it still lasts and was found only just now.
    fn is_out(&self) -> RedisResult<bool> {
        let (error, patience) = {
            let mut outage = self.outage.lock();
            let Some(outage) = &mut *outage else { return Ok(false) };
            if outage.since.elapsed() >= REST {
                // One job finds out, for all.
                outage.since = Instant::now();
                return Ok(true);
            }
            let halved = outage.asked.min(MOST_HALVED);
            outage.asked += 1;
            (outage.error.clone(), PROBE / 2_u32.pow(halved))
        };
        let soon = Patience::Until(Instant::now() + patience);
        self.connector.one(ProtocolVersion::RESP2, soon).map(|_| true).map_err(|_| error)
    }

    fn remember(&self, error: Option<&RedisError>) {
        *self.outage.lock() = match error {
            Some(error) if passes(error) => Some(Outage { error: error.clone(), since: Instant::now(), asked: 0 }),
            _ => None,
        };
    }

    /// Does a job that matters little, if there is a connection already; it is not tried again.
    pub(super) fn once<T>(&self, job: impl FnOnce(&mut Link) -> RedisResult<T>) -> Option<T> {
        let mut link = self.kept()?;
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

    fn take(&self, this: &mut Try) -> RedisResult<Link> {
        if !this.wants_fresh
            && let Some(link) = self.kept()
        {
            this.has_kept = true;
            return Ok(link);
        }
        let mut link = self.connector.link()?;
        self.check_layout(&mut link)?;
        Ok(link)
    }

    /// A connection that is there already; one that was idle for long has just answered.
    fn kept(&self) -> Option<Link> {
        let Idle { mut link, since } = self.idle.lock().pop()?;
        if since.elapsed() < SILENCE || link.is_there(Duration::from_millis(self.server().timeout_ms)) {
            return Some(link);
        }
        // The others went the same way.
        self.idle.lock().clear();
        None
    }

    /// A connection of its own to one server: the only one, the master, or a master of a cluster.
    pub(super) fn connect_one(&self, protocol: ProtocolVersion) -> RedisResult<Connection> {
        self.connector.one(protocol, Patience::AsSet)
    }

    /// A connection to each master.
    pub(super) fn connect_masters(&self) -> RedisResult<Vec<Connection>> {
        self.connector.all_masters()
    }

    /// The key that says which layout the store has.
    pub(super) fn layout_key(&self) -> String {
        format!("{}{{layout}}", self.server().prefix)
    }

    /// Fails if the store has another layout; marks one that has none yet, unless it is only looked at.
    fn check_layout(&self, link: &mut Link) -> RedisResult<()> {
        let key = self.layout_key();
        let found: Option<Vec<u8>> = redis::from_redis_value(link.ask(redis::cmd("GET").arg(&key))?)?;
        let Some(found) = found else {
            if self.is_look {
                return Err((ErrorKind::InvalidClientConfig, NO_STORE).into());
            }
            // A server that cannot take it (a replica, a full one) says so when it is asked for more.
            let mut mark = redis::cmd("SET");
            let marked = link.ask(mark.arg(&key).arg(LAYOUT).arg("NX").arg("PX").arg(SHARED_LIFE_MS));
            return marked.map(|_| ()).or_else(|error| if is_lost(&error) { Err(error) } else { Ok(()) });
        };
        let found = String::from_utf8_lossy(&found).into_owned();
        let what = match found.parse::<u32>() {
            Ok(LAYOUT) => return Ok(()),
            Ok(older) if older < LAYOUT => "an older mcp-state wrote it; go on with that one, or",
            Ok(_) => "a newer mcp-state writes it; upgrade this one, or",
            Err(_) => "mcp-state did not write that;",
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
            idle.push(Idle { link, since: Instant::now() });
        }
    }

    /// The error for a server that did not do its part.
    pub(super) fn unavailable(&self, error: &RedisError) -> StoreError {
        if said(error, "OOM") {
            return self.full();
        }
        if let Some(reason) = error.detail().filter(|_| begins(error, OTHER_LAYOUT)) {
            return StoreError::Incompatible { path: self.server().to_string().into(), reason: reason.to_owned() };
        }
        if begins(error, NO_STORE) {
            return StoreError::Missing { store: format!("{} with prefix {}", self.server(), self.server().prefix) };
        }
        let reason = match self.missing_rule(error) {
            Some(rule) => format!("{}; give the user the rights that it lacks: {rule}", text(error)),
            None => explain(error),
        };
        StoreError::Server { server: self.server().to_string(), reason }
    }

    /// The command that gives this user the rights whose lack is the error.
    pub(super) fn missing_rule(&self, error: &RedisError) -> Option<String> {
        let rights = missing_rights(error, &self.server().prefix)?;
        Some(self.rule(&rights))
    }

    /// The command that gives this user rights.
    pub(super) fn rule(&self, rights: &str) -> String {
        format!("ACL SETUSER {} {rights}", self.server().user.as_deref().unwrap_or("default"))
    }

    /// The error for an operation of which nobody knows whether it was carried out.
    pub(super) fn unknown(&self, reason: impl Into<String>) -> Error {
        Error::OutcomeUnknown { server: self.server().to_string(), reason: reason.into() }
    }

    fn full(&self) -> StoreError {
        let memory = self.take(&mut Try::default()).and_then(|mut link| {
            let Link::One(connection) = &mut link else { return Ok((0, 0)) };
            let info: redis::InfoDict = redis::cmd("INFO").arg("memory").query(connection)?;
            self.give_back(link);
            Ok((info.get("used_memory").unwrap_or(0), info.get("maxmemory").unwrap_or(0)))
        });
        let (used, limit) = memory.unwrap_or((0, 0));
        StoreError::Full { used, limit, needed: 0, detail: format!(" (the maxmemory of {})", self.server()) }
    }
}

/// Between half of `pause` and all of it.
fn jittered(pause: Duration) -> Duration {
    let [random] = random_bytes();
    pause / 2 + pause / 2 * u32::from(random) / 255
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsn::{Dsn, Place};
    use crate::store::redis::private_server as server;

    /// Everything is to answer within a minute: what is not asked whether it is there is waited for as long.
    #[test]
    fn a_connection_that_was_idle_for_long_is_asked_before_it_is_used() {
        let server = server::RedisServer::start();
        let proxy = server::Proxy::before(&server);
        let Place::Redis(named) = Dsn::parse(&proxy.dsn("timeout_ms=60000")).unwrap().place else { panic!("a server") };
        let connections = Connections::new(*named);
        let ping = |tries: &mut u32| {
            connections.run(|link, _| {
                *tries += 1;
                link.ask(&redis::cmd("PING"))
            })
        };
        ping(&mut 0).unwrap();
        for idle in connections.idle.lock().iter_mut() {
            idle.since -= 2 * SILENCE;
        }
        proxy.swallow();
        let mut tries = 0;
        let (_, perhaps_done) = ping(&mut tries).unwrap();
        assert!(!perhaps_done && tries == 1, "nothing was sent on the connection that was dropped");
    }

    #[test]
    fn a_pause_is_between_half_and_whole() {
        let pause = Duration::from_millis(100);
        assert!((0..100).all(|_| (pause / 2..=pause).contains(&jittered(pause))));
    }
}
