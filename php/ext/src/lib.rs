//! The PHP extension `mcp_state`: `McpState\Native\*`, the engine as PHP sees it.
//!
//! Invariants: no lock is held across a call into Zend (what the engine gives is copied out before PHP values are built); MINIT
//! only registers, and opens no file, thread or store; no panic leaves Rust. `stubs/mcp_state.stub.php` is the contract, and
//! `tests/001-reflection.phpt` compares it with what is registered here.
#![allow(missing_docs, reason = "php_module makes public functions, and no Rust code uses this crate")]

mod classes;
mod convert;
mod engine;
mod failure;
mod info;
mod ini;
mod requests;
mod session;
mod stores;

use ext_php_rs::builders::ModuleBuilder;
use ext_php_rs::php_module;

use crate::classes::{shutdown, startup};

/// The number the Composer library checks: it changes when a signature or a number of the stubs changes.
const API_VERSION: i64 = 1;

/// The extension's entry point.
#[php_module]
#[php(startup = startup)]
pub fn module(module: ModuleBuilder) -> ModuleBuilder {
    module
        .name("mcp_state")
        .version(mcp_state::VERSION)
        .constant(("McpState\\Native\\API_VERSION", API_VERSION, &[]))
        .constant(("McpState\\Native\\VERSION", mcp_state::VERSION, &[]))
        .globals(&requests::REQUEST)
        .shutdown_function(shutdown)
        .request_shutdown_function(requests::shutdown)
        .info_function(info::print)
}
