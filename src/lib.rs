//! The engine of mcp-state: the protocol state of MCP sessions, shared by concurrent processes.
//!
//! Every operation is one atomic transaction on one session (docs/design.md, section 4). What an operation may do is decided
//! by a pure state machine ([`session`]); a store carries the decision out, all or nothing; a bell wakes whoever waits.
//!
//! ```
//! use mcp_state::{Claim, Delivery, Engine, NewSession, OwnerKind};
//!
//! let engine = Engine::open("memory://")?;
//! let session = engine.create_session(NewSession::default())?.expect("a random id is free");
//!
//! // The stream that asks the client something …
//! let stream = session.attach(OwnerKind::Stream, None)?;
//! let id = session.send_request(&stream, r#"{"jsonrpc":"2.0","method":"elicitation/create"}"#, "", 120_000)?;
//! let question = &session.take_outgoing(&stream, 10)?[0];
//! assert!(question.message.contains(&format!(r#""id":{id}"#)));
//!
//! // … and the POST that brings the answer, in whatever process.
//! assert_eq!(session.deliver_response(id, "{}")?, Delivery::Delivered);
//! assert_eq!(session.claim(&stream, id)?, Claim::Answered("{}".into()));
//! # Ok::<(), mcp_state::Error>(())
//! ```

mod bell;
mod clock;
mod counter;
mod dsn;
mod engine;
mod error;
mod fault;
mod fork;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod identity;
mod ids;
#[doc(hidden)]
pub mod kind;
mod process;
#[doc(hidden)]
pub mod session;
mod settings;
mod store;

pub use clock::{BootClock, Clock, ManualClock, Millis};
pub use dsn::{Address, Dsn, Layout, Place, Secret, Server};
pub use engine::{Attributes, Collected, Engine, NewSession, Session, SessionStats, StoreStats, Waited, WaitedFor};
pub use error::{DsnError, Error, ErrorKind, InvalidArgument, LimitExceeded, StoreError};
pub use ids::{OwnerToken, RequestId, SessionId};
pub use process::{Liveness, Process};
pub use session::{
    Cancellation, Change, Claim, Delivery, Detached, DuplicatePolicy, InspectedOwner, InspectedPending,
    InspectedRequest, Inspection, Interest, LateReason, Outgoing, OwnerKind, PendingInfo, RequestCancellation,
    Resolved,
};
pub use settings::{Durability, Limit, OnFull, Settings};
pub use store::{BusEntries, FoundStore};

/// The version of this library, as in `Cargo.toml`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
