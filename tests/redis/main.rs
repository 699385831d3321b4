//! The guarantees on Redis, between processes and between machines: clients and servers are killed for real, connections are
//! lost at every step.
//!
//! Servers are private (see [`common::redis`]). Machines are network and pid namespaces, which need root; tests say so when
//! they cannot run.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod losses;
mod machines;
mod outages;
mod processes;
mod rights;
mod servers;
mod tls;
mod topologies;
mod waits;
#[path = "../common/workers.rs"]
mod workers;

use std::process::ExitCode;

use common::redis::RedisServer;
use libtest_mimic::Failed;
use mcp_state::{Engine, NewSession, OwnerKind, Session};
use workers::{Test, roles};

type Result<T = ()> = std::result::Result<T, Failed>;

fn main() -> ExitCode {
    let private: &[(&str, Test)] = &[("a_private_server_starts_dies_and_keeps_what_is_on_its_disk", private_server)];
    workers::main(
        &[
            private,
            costs::TESTS,
            rights::TESTS,
            waits::TESTS,
            processes::TESTS,
            losses::TESTS,
            servers::TESTS,
            machines::TESTS,
            topologies::TESTS,
            outages::TESTS,
            tls::TESTS,
        ]
        .concat(),
    )
}

fn private_server() -> Result {
    let mut server = RedisServer::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    assert_eq!(server.command(&["SET", "a", "1"]), "OK");
    server.kill();
    server.restart();
    assert_eq!(server.command(&["GET", "a"]), "1");
    Ok(())
}

/// A server, and an engine on it.
pub(crate) struct Store {
    pub(crate) server: RedisServer,
    pub(crate) dsn: String,
    pub(crate) engine: Engine,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::with(&[], "")
    }

    pub(crate) fn with(options: &[&str], dsn_options: &str) -> Self {
        let server = RedisServer::with(options);
        let dsn = server.dsn(dsn_options);
        let engine = Engine::open(&dsn).expect("the store opens");
        Self { server, dsn, engine }
    }

    pub(crate) fn session(&self, id: &str) -> Session {
        named(&self.engine, id)
    }

    pub(crate) fn is_sound(&self) -> Result {
        assert_eq!(self.engine.contradictions()?, Vec::<String>::new());
        Ok(())
    }
}

pub(crate) fn named(engine: &Engine, id: &str) -> Session {
    let new = NewSession { id: Some(id.into()), ..NewSession::default() };
    engine.create_session(new).expect("the store works").expect("the id is free")
}

/// A new owner gets a round right.
pub(crate) fn works(session: &Session) -> Result {
    let owner = session.attach(OwnerKind::Stream, None)?;
    roles::round(session, &owner)?;
    session.detach(&owner)?;
    Ok(())
}

/// A xorshift generator: the same moments in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
