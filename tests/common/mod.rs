//! What the engine's tests share.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod process;
pub mod redis;

use std::sync::Arc;

use mcp_state::{Engine, ManualClock, Millis, NewSession, OwnerKind, OwnerToken, Session, Settings};
use tempfile::TempDir;

/// A kind of store that the contract is checked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Memory,
    Lmdb,
    /// LMDB that writes through its map.
    WriteMap,
    Redis,
}

/// A new, empty store whose time stands still unless a test moves it.
pub struct Fixture {
    pub engine: Engine,
    pub clock: Arc<ManualClock>,
    pub kind: Kind,
    directory: TempDir,
}

impl Fixture {
    /// Runs a test on a new store, where there is what the store needs.
    pub fn run(kind: Kind, options: &str, test: impl FnOnce(Fixture)) {
        if kind != Kind::Redis || redis::is_installed() {
            test(Self::new(kind, options));
        }
    }

    pub fn new(kind: Kind, options: &str) -> Self {
        // A map to write through takes all its space, of which shared memory may have little.
        let place = if kind == Kind::WriteMap { std::env::temp_dir() } else { shared_memory() };
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let clock = Arc::new(ManualClock::at(1_000_000));
        let dsn = match kind {
            Kind::Memory => format!("memory://?{options}"),
            Kind::Lmdb => dsn_in(&directory, options),
            Kind::WriteMap => dsn_in(&directory, &format!("{WRITE_MAP}&{options}")),
            Kind::Redis => redis::shared(options),
        };
        let engine = Engine::with_clock(&dsn, Settings::default(), clock.clone()).expect("a new store opens");
        Self { engine, clock, kind, directory }
    }

    pub fn advance(&self, by: Millis) {
        self.clock.advance(by);
    }

    /// A new session of nobody.
    pub fn session(&self) -> Session {
        self.engine.create_session(NewSession::default()).unwrap().expect("a random id is free")
    }

    /// A new session with one stream.
    pub fn session_and_stream(&self) -> (Session, OwnerToken) {
        let session = self.session();
        let stream = session.attach(OwnerKind::Stream, None).unwrap();
        (session, stream)
    }

    pub fn named(&self, id: &str) -> Option<Session> {
        self.engine.create_session(NewSession { id: Some(id.into()), ..NewSession::default() }).unwrap()
    }
}

impl Drop for Fixture {
    /// Whatever a test did, the store agrees with itself afterwards (G8).
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.engine.contradictions().unwrap(), Vec::<String>::new());
        }
    }
}

/// Where stores are fastest: a file system in memory, or the usual place.
pub fn shared_memory() -> std::path::PathBuf {
    let shm = std::path::Path::new("/dev/shm");
    if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() }
}

/// The options of a store that writes through its map, which takes 256 MB.
pub const WRITE_MAP: &str = "write_map=1&max_store_bytes=64M";

/// The DSN of a store inside `directory`.
pub fn dsn_in(directory: &TempDir, options: &str) -> String {
    let path = directory.path().canonicalize().expect("the directory is there");
    format!("file://{}/store?durability=none&{options}", path.display())
}

/// The texts of messages.
pub fn texts(messages: Vec<mcp_state::Outgoing>) -> Vec<String> {
    messages.into_iter().map(|message| message.message).collect()
}
