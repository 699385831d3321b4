//! The typed errors of all operations.
//!
//! [`Error`] holds one type for each family of operations. A message is lower case, names the wrong value and says what to do.
//! The PHP class and the C status of an error follow from [`Error::kind`] alone.

use std::io;
use std::path::PathBuf;

use crate::settings::Limit;

/// The failure of an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument that no store would accept.
    #[error(transparent)]
    InvalidArgument(#[from] InvalidArgument),
    /// A DSN that does not parse.
    #[error(transparent)]
    Dsn(#[from] DsnError),
    /// The operation would exceed a limit (G10). It changed nothing.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The session was destroyed, has expired, was evicted, or belongs to another principal (G7, G12).
    #[error("session {id} does not exist; answer 404 so that the client starts a new one")]
    SessionNotFound {
        /// The session's id, shortened.
        id: String,
    },
    /// The owner was released: its process died, its lease ended, or it was detached.
    #[error("owner {token} of session {id} was released; attach again to go on")]
    OwnerExpired {
        /// The session's id, shortened.
        id: String,
        /// The owner's token, shortened.
        token: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection to the store's server was lost after the operation was sent, and the data on the server does not show
    /// whether the server executed the operation.
    #[error(
        "store {server}: it is unknown whether the operation took effect: {reason}; read the session before you repeat the operation"
    )]
    OutcomeUnknown {
        /// The server.
        server: String,
        /// The failure of the connection.
        reason: String,
    },
}

/// The kinds of [`Error`]: each names the reaction of the caller. The numbers are part of the C ABI and keep their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorKind {
    /// Correct the call.
    InvalidArgument = 1,
    /// Correct the configuration.
    InvalidDsn = 2,
    /// Refuse the client's request, or raise the limit.
    LimitExceeded = 3,
    /// Answer 404.
    SessionNotFound = 4,
    /// Attach again.
    OwnerExpired = 5,
    /// Answer 503; repair the store.
    StoreUnavailable = 6,
    /// Answer 503; destroy sessions or enlarge the store.
    StoreFull = 7,
    /// Upgrade the older library, or use another store.
    StoreIncompatible = 8,
    /// Reset the store.
    StoreCorrupt = 9,
    /// Read the session before you repeat the operation: it may have taken effect.
    OutcomeUnknown = 10,
    /// Report a bug of this library.
    Internal = 11,
}

impl Error {
    /// Returns the kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::InvalidArgument(_) => ErrorKind::InvalidArgument,
            Error::Dsn(_) => ErrorKind::InvalidDsn,
            Error::Limit(_) => ErrorKind::LimitExceeded,
            Error::SessionNotFound { .. } => ErrorKind::SessionNotFound,
            Error::OwnerExpired { .. } => ErrorKind::OwnerExpired,
            Error::Store(error) => error.kind(),
            Error::OutcomeUnknown { .. } => ErrorKind::OutcomeUnknown,
        }
    }
}

/// An argument that is refused before the store is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value} is not valid: {reason}")]
pub struct InvalidArgument {
    /// The name of the argument.
    pub what: &'static str,
    /// The beginning of the value, with control characters escaped: eight characters of a secret, 40 of any other value.
    pub value: String,
    /// The rule that the value breaks, and what is allowed.
    pub reason: String,
}

/// The arguments that are secrets: a reader of their whole value can use the session, act for the owner, or spend the key.
const SECRET: [&str; 5] = ["session id", "owner token", "principal", "key", "attribute value"];

impl InvalidArgument {
    /// Makes the error for `value` of the argument `what`. The error keeps the first eight characters of a session id, owner token,
    /// principal, single-use key or attribute value, and the first 40 of every other value.
    pub fn new(what: &'static str, value: impl std::fmt::Display, reason: impl Into<String>) -> Self {
        let value = value.to_string();
        let value = if SECRET.contains(&what) { shorten_secret(&value) } else { shorten(&value) };
        Self { what, value, reason: reason.into() }
    }
}

/// Shortens a value to 40 characters and escapes control characters, for a message.
pub(crate) fn shorten(value: &str) -> String {
    shorten_to(value, 40)
}

/// Shortens a secret to eight characters and escapes control characters, for a message.
pub(crate) fn shorten_secret(value: &str) -> String {
    shorten_to(value, 8)
}

fn shorten_to(value: &str, most: usize) -> String {
    let mut text: String = value.chars().take(most).flat_map(char::escape_debug).collect();
    if value.chars().nth(most).is_some() {
        text.push('…');
    }
    format!("\"{text}\"")
}

/// A limit that an operation would exceed (G10). The operation changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{limit} is {maximum}, and this would make it {actual}; {}", .limit.advice())]
pub struct LimitExceeded {
    /// The limit.
    pub limit: Limit,
    /// The value of the limit.
    pub maximum: u64,
    /// The value that the operation would lead to.
    pub actual: u64,
}

/// A DSN that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DsnError {
    /// The DSN does not begin with `scheme://`.
    #[error("the dsn has no scheme; write memory://, shm://NAME, file:///DIRECTORY or redis://HOST")]
    NoScheme,
    /// The scheme is none of those in the message.
    #[error("dsn scheme \"{scheme}\" is not known; known are memory, shm, file, redis, rediss and redis+unix")]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },
    /// The name, directory or server is not valid for the scheme.
    #[error("dsn {scheme}://…: {reason}")]
    BadPlace {
        /// The scheme. The rest of the DSN is not shown, since it may contain a password.
        scheme: String,
        /// The rule that the value breaks, and what is allowed.
        reason: String,
    },
    /// The option does not exist.
    #[error("dsn option \"{option}\" is not known; known are {known}")]
    UnknownOption {
        /// The option.
        option: String,
        /// All options, separated by commas.
        known: String,
    },
    /// The value of the option is not valid.
    #[error("dsn option {option}={value}: {reason}")]
    BadOption {
        /// The option.
        option: String,
        /// The value.
        value: String,
        /// The rule that the value breaks, and what is allowed.
        reason: String,
    },
}

/// The least size of a store's memory map, in bytes.
pub(crate) const LEAST_MAP: u64 = 256 << 20;

/// A failure of the store itself. The operation was not applied; the sessions are unchanged (G8).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such store, and whoever only looks makes none.
    #[error(
        "there is no store {store}: no process has used that server, database and prefix; name those that the servers use"
    )]
    Missing {
        /// The store, without a password.
        store: String,
    },
    /// A system call on a file or directory failed.
    #[error("store {path}: cannot {action}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// `RLIMIT_FSIZE` does not allow a file of this size.
    #[error(
        "store {path}: cannot {action}: the file would be larger than RLIMIT_FSIZE; raise this limit (`ulimit -f`, systemd's LimitFSIZE)"
    )]
    FileTooLarge {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The owner or the permissions of the store's directory are not safe.
    #[error("store directory {path} is refused: {reason}")]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is unsafe, and how to repair it.
        reason: String,
    },
    /// Another process held the lock for opening the store for too long.
    #[error(
        "store {path}: {} has been opening it for {waited_ms} ms and blocks all other processes; continue it (SIGCONT) or end it",
        describe_opener(*.holder)
    )]
    Busy {
        /// The store.
        path: PathBuf,
        /// The process that opens the store, if `/proc/locks` shows it.
        holder: Option<u32>,
        /// How long this process waited, in milliseconds.
        waited_ms: u64,
    },
    /// A stopped writer held the write lock for too long.
    #[error(
        "store {path}: thread {holder} has been writing for {waited_ms} ms and blocks all other processes; continue it (SIGCONT) or end it"
    )]
    Stalled {
        /// The store.
        path: PathBuf,
        /// The thread id (TID) of the writer. The TID of a process's first thread is its pid.
        holder: u32,
        /// How long this process waited, in milliseconds.
        waited_ms: u64,
    },
    /// The byte limit, the memory map, or the file system is full. Operations that free space still succeed (G10).
    #[error(
        "store is full: {used} of {limit} bytes used and {needed} more needed{detail}; destroy sessions or raise max_store_bytes"
    )]
    Full {
        /// Bytes in use.
        used: u64,
        /// The limit in bytes.
        limit: u64,
        /// The bytes that the operation would add.
        needed: u64,
        /// More facts, such as the reader whose snapshot prevents the reuse of pages.
        detail: String,
    },
    /// The file system has less space than a write map needs. The space is allocated when the store is opened.
    #[error(
        "cannot reserve {needed} bytes for the write map of {path}: the map takes four times max_store_bytes; lower max_store_bytes, or set write_map=0"
    )]
    NoRoomForMap {
        /// The data file.
        path: PathBuf,
        /// The size of the map in bytes.
        needed: u64,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// The process has too little address space left for the store's memory map.
    #[error(
        "store {path}: the process has no address space for a map of at least {least} MiB{}; raise `ulimit -v` (RLIMIT_AS, systemd's LimitAS) to 4 GiB more than the process uses, or lower max_store_bytes",
        .limit.map_or(String::new(), |limit| format!(", RLIMIT_AS is {limit} bytes")), least = LEAST_MAP >> 20
    )]
    NoAddressSpace {
        /// The store.
        path: PathBuf,
        /// `RLIMIT_AS` in bytes, if it is set.
        limit: Option<u64>,
    },
    /// The process has no thread-specific key of its C library left for one more store.
    #[error(
        "store {path}: this process has too many stores open, and each takes one thread-specific key of the C library (glibc has 1,024, musl 128); open fewer stores in one process"
    )]
    TooManyOpen {
        /// The store.
        path: PathBuf,
    },
    /// The library that made the store is not compatible with this one.
    #[error("store {path} cannot be shared: {reason}")]
    Incompatible {
        /// The store.
        path: PathBuf,
        /// The difference, and what to do.
        reason: String,
    },
    /// The store holds data that this library did not write.
    #[error("store {path} is damaged: {reason}")]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// The damaged data and its place.
        reason: String,
    },
    /// The store's server is unreachable or unavailable.
    #[error("store {server}: {reason}")]
    Server {
        /// The server's address, without the password.
        server: String,
        /// The answer of the server or the failed connection, and what to do.
        reason: String,
    },
    /// LMDB returned an error that no other variant covers.
    #[error("store: {action} failed: {message}")]
    Lmdb {
        /// The action that failed.
        action: &'static str,
        /// LMDB's error code.
        code: i32,
        /// LMDB's error message.
        message: String,
    },
}

fn describe_opener(holder: Option<u32>) -> String {
    holder.map_or_else(|| "a process that /proc/locks does not show".to_owned(), |pid| format!("process {pid}"))
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.raw_os_error() {
            Some(libc::EFBIG) => StoreError::FileTooLarge { action, path },
            _ => StoreError::Io { action, path, source },
        }
    }

    pub(crate) fn corrupt(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        StoreError::Corrupt { path: path.into(), reason: reason.into() }
    }

    /// Whether the store or its file system has no space left.
    pub(crate) fn is_out_of_space(&self) -> bool {
        match self {
            StoreError::Full { .. } | StoreError::FileTooLarge { .. } => true,
            StoreError::Io { source, .. } => {
                matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
            }
            _ => false,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Io { .. } if self.is_out_of_space() => ErrorKind::StoreFull,
            StoreError::Io { .. }
            | StoreError::Unsafe { .. }
            | StoreError::Busy { .. }
            | StoreError::Stalled { .. }
            | StoreError::NoAddressSpace { .. }
            | StoreError::TooManyOpen { .. }
            | StoreError::Server { .. }
            | StoreError::Missing { .. }
            | StoreError::Lmdb { .. } => ErrorKind::StoreUnavailable,
            StoreError::Full { .. } | StoreError::FileTooLarge { .. } | StoreError::NoRoomForMap { .. } => {
                ErrorKind::StoreFull
            }
            StoreError::Incompatible { .. } => ErrorKind::StoreIncompatible,
            StoreError::Corrupt { .. } => ErrorKind::StoreCorrupt,
        }
    }
}
