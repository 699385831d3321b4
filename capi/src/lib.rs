//! The C ABI of mcp-state: the operations of the engine for C, C++, Python, PHP's FFI and every other caller of C.
//!
//! The rules for all functions are at the top of `include/mcp_state.h`, which cbindgen writes from this crate
//! (`cargo test -p mcp-state-capi --test headers` compares, and with `MCP_STATE_WRITE_HEADERS=1` writes). Names here are those of
//! C. Invariants: no panic crosses the border ([`border::guard`]); every pointer is tested for NULL before anything is done;
//! out-parameters are written only when a function succeeds; numbers of enums never change meaning.
#![allow(non_camel_case_types)]
// The comments become those of a C header, where a name followed by `()` is plain and a backtick is noise.
#![allow(clippy::doc_markdown)]

mod attributes;
mod border;
mod buffer;
mod bus;
mod copies;
mod engine;
mod error;
mod in_flight;
mod lists;
mod outgoing;
mod owners;
mod pending;
mod session;

use std::ffi::c_char;

pub use attributes::*;
pub use buffer::*;
pub use bus::*;
pub use engine::*;
pub use error::*;
pub use in_flight::*;
pub use lists::*;
pub use outgoing::*;
pub use owners::*;
pub use pending::*;
pub use session::*;

/// The version of the ABI that this header describes; `SONAME` ends with it. A caller that loads the library at run time compares
/// it with mcp_state_abi_version().
pub const MCP_STATE_ABI_VERSION: u32 = 1;

/// The version of the library's ABI. It rises when a function or a number changes or goes; what is only added leaves it.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_state_abi_version() -> u32 {
    MCP_STATE_ABI_VERSION
}

/// The version of the library, such as "0.1.0": NUL-terminated, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_state_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
