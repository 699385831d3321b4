//! What can go wrong, as typed values.
//!
//! Each family of operations has its own type; [`Error`] is their umbrella. A message is lower case, names the value at fault
//! and says what to do. [`Error::kind`] is the one thing the PHP class and the C status are mapped from.

use std::io;
use std::path::PathBuf;

use crate::settings::Limit;

/// Any failure of an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument that no store would accept.
    #[error(transparent)]
    InvalidArgument(#[from] InvalidArgument),
    /// A DSN that cannot be understood.
    #[error(transparent)]
    Dsn(#[from] DsnError),
    /// A limit of design section 3 (G10) would have been passed.
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
    /// The connection to the store's server was lost after the operation was sent, and what the server holds now does not tell
    /// whether it was carried out.
    #[error(
        "store {server}: whether the operation took effect is not known: {reason}; look at the session before repeating it"
    )]
    OutcomeUnknown {
        /// The server.
        server: String,
        /// What happened.
        reason: String,
    },
}

/// The kinds of [`Error`], one for each thing a caller may want to do about it. The numbers never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorKind {
    /// Mend the call.
    InvalidArgument = 1,
    /// Mend the configuration.
    InvalidDsn = 2,
    /// Refuse the client's request, or raise the limit.
    LimitExceeded = 3,
    /// Answer 404.
    SessionNotFound = 4,
    /// Attach again.
    OwnerExpired = 5,
    /// Answer 503; mend the store.
    StoreUnavailable = 6,
    /// Answer 503; destroy sessions or enlarge the store.
    StoreFull = 7,
    /// Upgrade or separate the stores.
    StoreIncompatible = 8,
    /// Reset the store.
    StoreCorrupt = 9,
    /// Whether the operation took effect is not known.
    OutcomeUnknown = 10,
    /// A bug of this library.
    Internal = 11,
}

impl Error {
    /// What kind of failure this is.
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

/// An argument that is refused before any store is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value} is not valid: {reason}")]
pub struct InvalidArgument {
    /// Which argument.
    pub what: &'static str,
    /// The beginning of its value, with control characters escaped: eight characters of what only its holder may know.
    pub value: String,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

/// The arguments whose whole value only their holder may know: who has it has the session, acts for the owner, or can spend it.
const SECRET: [&str; 5] = ["session id", "owner token", "principal", "key", "attribute value"];

impl InvalidArgument {
    /// The argument called `what` with `value` is refused for `reason`. A session id, owner token, principal, single-use key or
    /// attribute value is shown by its first eight characters, whatever is wrong with it, every other value by its first 40.
    pub fn new(what: &'static str, value: impl std::fmt::Display, reason: impl Into<String>) -> Self {
        let value = value.to_string();
        let value = if SECRET.contains(&what) { shorten_secret(&value) } else { shorten(&value) };
        Self { what, value, reason: reason.into() }
    }
}

/// A value cut to 40 characters, with control characters escaped, for a message.
pub(crate) fn shorten(value: &str) -> String {
    shorten_to(value, 40)
}

/// A value that only its holder may know whole, cut to eight characters, for a message.
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

/// A limit that an operation would have passed. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{limit} is {maximum}, and this would make it {actual}; {}", .limit.advice())]
pub struct LimitExceeded {
    /// Which limit.
    pub limit: Limit,
    /// Its value.
    pub maximum: u64,
    /// The value the operation would have led to.
    pub actual: u64,
}

/// A DSN that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DsnError {
    /// No `scheme://`.
    #[error("the dsn has no scheme; write memory://, shm://NAME, file:///DIRECTORY or redis://HOST")]
    NoScheme,
    /// A scheme this build does not know.
    #[error("dsn scheme \"{scheme}\" is not known; known are memory, shm, file, redis, rediss and redis+unix")]
    UnknownScheme {
        /// The scheme.
        scheme: String,
    },
    /// A name or directory that does not fit the scheme.
    #[error("dsn {scheme}://…: {reason}")]
    BadPlace {
        /// The DSN's scheme. The rest is not shown: it may have a password anywhere.
        scheme: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// An option that does not exist.
    #[error("dsn option \"{option}\" is not known; known are {known}")]
    UnknownOption {
        /// The option.
        option: String,
        /// All options there are.
        known: String,
    },
    /// An option whose value does not fit.
    #[error("dsn option {option}={value}: {reason}")]
    BadOption {
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}

/// The shortest map that a store makes do with, in bytes.
pub(crate) const LEAST_MAP: u64 = 256 << 20;

/// A failure of the store itself. Sessions are untouched: the operation was not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory could not be used.
    #[error("store {path}: cannot {action}: {source}")]
    Io {
        /// What could not be done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The process may not write so far into a file.
    #[error(
        "store {path}: cannot {action}: this process may not write files so large; raise RLIMIT_FSIZE (`ulimit -f`, systemd's LimitFSIZE)"
    )]
    FileTooLarge {
        /// What could not be done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The store's directory is not safe to use.
    #[error("store directory {path} is refused: {reason}")]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong and how to mend it.
        reason: String,
    },
    /// Another process kept the store from being opened for too long.
    #[error(
        "store {path}: {} has been opening it for {waited_ms} ms and keeps all others waiting; let it go on (SIGCONT) or end it",
        who_opens(*.holder)
    )]
    Busy {
        /// The store.
        path: PathBuf,
        /// The process that opens it, where `/proc/locks` shows it.
        holder: Option<u32>,
        /// How long this process waited.
        waited_ms: u64,
    },
    /// A writer has kept all others waiting for too long: it was stopped while it wrote.
    #[error(
        "store {path}: thread {holder} has been writing for {waited_ms} ms and keeps all others waiting; let it go on (SIGCONT) or end it"
    )]
    Stalled {
        /// The store.
        path: PathBuf,
        /// Who writes, as the kernel numbers threads; a process's first thread has the process's number.
        holder: u32,
        /// How long this process waited.
        waited_ms: u64,
    },
    /// The logical byte limit, the map, or the file system is full. What frees space still works.
    #[error(
        "store is full: {used} of {limit} bytes used and {needed} more needed{detail}; destroy sessions or raise max_store_bytes"
    )]
    Full {
        /// Bytes in use.
        used: u64,
        /// The limit.
        limit: u64,
        /// Bytes the operation would have added.
        needed: u64,
        /// What else is known, such as who keeps pages from being reused.
        detail: String,
    },
    /// A map to write through needs all its space when the store is opened, and there is less.
    #[error(
        "cannot reserve {needed} bytes for the write map of {path}: it takes four times max_store_bytes; lower that, or leave write_map out"
    )]
    NoRoomForMap {
        /// The data file.
        path: PathBuf,
        /// How long the map is.
        needed: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// The process has no address space left for the store's map, which takes no memory of its own.
    #[error(
        "store {path}: there is no address space for its map of at least {least} MiB{}; raise `ulimit -v` (RLIMIT_AS, systemd's LimitAS) to 4 GiB more than the process takes, or lower max_store_bytes",
        .limit.map_or(String::new(), |limit| format!(", RLIMIT_AS is {limit} bytes")), least = LEAST_MAP >> 20
    )]
    NoAddressSpace {
        /// The store.
        path: PathBuf,
        /// RLIMIT_AS in bytes, if it is set.
        limit: Option<u64>,
    },
    /// The process has more stores open than its C library has thread-specific keys for.
    #[error(
        "store {path}: this process has too many stores open: each takes one of the thread-specific keys of the C library (glibc has 1,024, musl 128); open fewer stores in one process"
    )]
    TooManyOpen {
        /// The store.
        path: PathBuf,
    },
    /// The store was made by a library this one cannot share it with.
    #[error("store {path} cannot be shared: {reason}")]
    Incompatible {
        /// The store.
        path: PathBuf,
        /// Who differs in what, and what to do.
        reason: String,
    },
    /// The store's files hold something that this library did not write.
    #[error("store {path} is damaged: {reason}")]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// What was found where.
        reason: String,
    },
    /// The store's server cannot be reached, or cannot serve.
    #[error("store {server}: {reason}")]
    Server {
        /// The server, without its password.
        server: String,
        /// What it said, and what to do.
        reason: String,
    },
    /// LMDB reported an error that has no better name here.
    #[error("store: {action} failed: {message}")]
    Lmdb {
        /// What was tried.
        action: &'static str,
        /// LMDB's number.
        code: i32,
        /// LMDB's text.
        message: String,
    },
}

fn who_opens(holder: Option<u32>) -> String {
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

    /// Whether the file system had no room left.
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
            | StoreError::Lmdb { .. } => ErrorKind::StoreUnavailable,
            StoreError::Full { .. } | StoreError::FileTooLarge { .. } | StoreError::NoRoomForMap { .. } => {
                ErrorKind::StoreFull
            }
            StoreError::Incompatible { .. } => ErrorKind::StoreIncompatible,
            StoreError::Corrupt { .. } => ErrorKind::StoreCorrupt,
        }
    }
}
