//! The failure of a command: its message and its exit status.

use std::fmt;
use std::process::ExitCode;

use mcp_state::ErrorKind;

/// The message, which follows `mcp-state: `, and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
    kind: Option<ErrorKind>,
}

/// The command failed, or `doctor` found an error.
pub(crate) const FAILED: u8 = 1;
/// The command line is invalid. clap uses the same status.
const USAGE: u8 = 2;
/// The store or session does not exist.
const NOT_FOUND: u8 = 3;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: FAILED, kind: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: USAGE, kind: None }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: NOT_FOUND, kind: None }
    }

    /// Whether there is no such store or session.
    pub(crate) fn is_missing(&self) -> bool {
        self.status == NOT_FOUND
    }

    /// Whether the store's data is known to be damaged, so that only a reset repairs the store.
    pub(crate) fn is_damage(&self) -> bool {
        self.kind == Some(ErrorKind::StoreCorrupt)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<mcp_state::Error> for Failure {
    fn from(error: mcp_state::Error) -> Self {
        let is_missing = matches!(error, mcp_state::Error::Store(mcp_state::StoreError::Missing { .. }));
        let status = match error.kind() {
            _ if is_missing => NOT_FOUND,
            ErrorKind::InvalidArgument | ErrorKind::InvalidDsn => USAGE,
            ErrorKind::SessionNotFound => NOT_FOUND,
            _ => FAILED,
        };
        Self { message: error.to_string(), status, kind: Some(error.kind()) }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
