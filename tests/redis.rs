//! The guarantees on Redis, between processes and machines: servers and clients killed for real, connections lost at every step.
#![allow(missing_docs)]

mod common;
#[path = "common/workers.rs"]
mod workers;

use std::process::ExitCode;

use common::redis::RedisServer;
use libtest_mimic::Failed;

type Result<T = ()> = std::result::Result<T, Failed>;

fn main() -> ExitCode {
    workers::main(&[("a_private_server_starts_dies_and_keeps_what_is_on_its_disk", private_server)])
}

fn private_server() -> Result {
    let mut server = RedisServer::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    assert_eq!(server.command(&["SET", "a", "1"]), "OK");
    server.kill();
    server.restart();
    assert_eq!(server.command(&["GET", "a"]), "1");
    Ok(())
}
