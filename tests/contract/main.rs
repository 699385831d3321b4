//! The contract of a store: what every operation does, unchanged on every kind of store. Named after the guarantees of
//! docs/design.md, section 3.
//!
//! Each file lists its tests once, with the options of the store's DSN where a test needs some:
//!
//! ```text
//! contract! { every [a_test, another_test("ttl_ms=1000")] }
//! ```
//!
//! `every` runs them on each kind of store, `bounded` on the stores that count every byte. A test that is not listed is dead
//! code, which the lints refuse.

#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;

use common::{Fixture, Kind, texts};
use mcp_state::{Error, ErrorKind, Limit};

macro_rules! contract {
    (every $tests:tt) => { contract! { @on [Memory memory Lmdb lmdb WriteMap write_map Redis redis] $tests } };
    (bounded $tests:tt) => { contract! { @on [Memory memory Lmdb lmdb WriteMap write_map] $tests } };
    (@on [$($kind:ident $module:ident)*] $tests:tt) => { $(mod $module { contract! { @test $kind $tests } })* };
    (@test $kind:ident [$($name:ident $(($options:literal))?),* $(,)?]) => {
        $(#[test]
        fn $name() {
            crate::Fixture::run(crate::Kind::$kind, concat!($($options)?), super::$name);
        })*
    };
}

mod attributes;
mod full;
mod in_flight;
mod input;
mod limits;
mod messages;
mod owners;
mod pending;
mod sessions;
mod topics;
mod waiting;

const REQUEST: &str = r#"{"jsonrpc":"2.0","method":"elicitation/create","params":{}}"#;

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("the operation is refused").kind()
}

fn limit<T: std::fmt::Debug>(result: Result<T, Error>) -> (Limit, u64, u64) {
    match result {
        Err(Error::Limit(limit)) => (limit.limit, limit.maximum, limit.actual),
        other => panic!("expected a limit, got {other:?}"),
    }
}
