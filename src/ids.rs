//! Identifiers: session ids, owner tokens, JSON-RPC ids, and the digests in the keys of rows.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::error::InvalidArgument;

/// The longest session id, in bytes.
pub(crate) const MAX_SESSION_ID: usize = 255;

/// The longest string that may be a JSON-RPC id, in bytes.
const MAX_REQUEST_ID: usize = 255;

/// An `Mcp-Session-Id`: 1 to 255 visible ASCII characters (MCP 2025-11-25, transports, session management).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Makes a session id of `id`.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`] if `id` is empty, longer than 255 bytes, or has a character outside 0x21 to 0x7e. The error shows the
    /// first eight characters.
    pub fn new(id: impl Into<String>) -> Result<Self, InvalidArgument> {
        let id = id.into();
        let reason = if id.is_empty() {
            "it is empty".to_owned()
        } else if id.len() > MAX_SESSION_ID {
            format!("it is {} bytes long and the limit is {MAX_SESSION_ID}", id.len())
        } else if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            "only visible ASCII characters (0x21 to 0x7e) are allowed".to_owned()
        } else {
            return Ok(Self(id));
        };
        Err(InvalidArgument::new("session id", id, reason))
    }

    /// Makes a random id: a version 4 UUID, with 122 random bits from the operating system.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// The id of the record that counts waiting exchanges. A session id cannot contain its space.
    pub(crate) fn of_room() -> Self {
        Self("waiting room".to_owned())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first eight characters of the id, for logs and messages. The whole id is a secret: it opens the session.
    pub fn shortened(&self) -> String {
        match self.0.get(..8) {
            Some(head) if self.0.len() > 8 => format!("{head}…"),
            _ => self.0.clone(),
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The token of an owner: 128 random bits, written as 32 hexadecimal digits. The token is a secret, since it allows to act for the
/// owner (G3), so a comparison takes constant time.
#[derive(Clone, Copy, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equal tokens have equal bytes")]
pub struct OwnerToken(pub(crate) [u8; 16]);

impl PartialEq for OwnerToken {
    fn eq(&self, other: &Self) -> bool {
        let halves = |token: &Self| [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|byte| token.0[at + byte])));
        halves(self).ct_eq(&halves(other)).into()
    }
}

impl OwnerToken {
    /// Makes a random token.
    pub(crate) fn random() -> Self {
        Self(random_bytes())
    }

    /// Parses the 32 hexadecimal digits that `attach` returned.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`] if `text` has any other form. The error shows the first eight characters.
    pub fn parse(text: &str) -> Result<Self, InvalidArgument> {
        uuid::Uuid::try_parse(text).ok().filter(|_| text.len() == 32).map(|uuid| Self(uuid.into_bytes())).ok_or_else(
            || InvalidArgument::new("owner token", text, "it must be the 32 hexadecimal digits that attach returned"),
        )
    }

    /// Returns the first eight digits of the token, for logs and messages.
    pub fn shortened(&self) -> String {
        format!("{}…", &self.to_string()[..8])
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).simple().fmt(f)
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerToken({})", self.shortened())
    }
}

/// The JSON-RPC id of a client's request. The id is typed: `1` differs from `"1"` (G6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// A number.
    Int(i64),
    /// A string of at most 255 bytes.
    Str(String),
}

impl RequestId {
    pub(crate) fn check(&self) -> Result<(), InvalidArgument> {
        match self {
            RequestId::Str(text) if text.len() > MAX_REQUEST_ID => Err(InvalidArgument::new(
                "request id",
                text,
                format!("it is {} bytes long and the limit is {MAX_REQUEST_ID}", text.len()),
            )),
            _ => Ok(()),
        }
    }
}

impl From<i64> for RequestId {
    fn from(id: i64) -> Self {
        RequestId::Int(id)
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        RequestId::Str(id.to_owned())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Int(id) => id.fmt(f),
            RequestId::Str(id) => write!(f, "{id:?}"),
        }
    }
}

/// 128 bits of SHA-256: the key of the rows of a session, a principal, a topic or a single-use key. A client cannot choose names
/// that collide, and the row also holds the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub(crate) [u8; 16]);

impl Digest {
    pub(crate) fn of(name: &[u8]) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(name)[..16]);
        Self(digest)
    }
}

/// Returns `N` bytes from the operating system's random source.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has a random source");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_visible_ascii_of_bounded_length() {
        assert!(SessionId::new("0193-a!~").is_ok());
        assert!(SessionId::new("x".repeat(MAX_SESSION_ID)).is_ok());
        for bad in ["", "a b", "tab\t", "é", &"x".repeat(MAX_SESSION_ID + 1), "nul\0"] {
            let error = SessionId::new(bad).unwrap_err();
            assert_eq!(error.what, "session id");
        }
    }

    #[test]
    fn an_owner_token_reads_back_what_it_writes_and_nothing_else() {
        let token = OwnerToken::random();
        assert_eq!(OwnerToken::parse(&token.to_string()).unwrap(), token);
        for bad in ["", "0", &"g".repeat(32), "936da01f-9abd-4d9d-80c7-02af85c822a8"] {
            assert!(OwnerToken::parse(bad).is_err(), "{bad}");
        }
    }

    /// The 128 bits of a random token and of a random session id. Six bits of the id are those of a version 4 UUID.
    fn drawn() -> [[u8; 16]; 2] {
        let id = uuid::Uuid::parse_str(SessionId::random().as_str()).unwrap();
        assert_eq!(id.get_version_num(), 4);
        [OwnerToken::random().0, *id.as_bytes()]
    }

    #[test]
    fn tokens_and_session_ids_never_repeat_and_no_bit_of_them_leans() {
        const COUNT: usize = 20_000;
        let mut seen = std::collections::HashSet::new();
        let mut ones = [[0_usize; 128]; 2];
        for _ in 0..COUNT {
            for (which, bytes) in drawn().into_iter().enumerate() {
                assert!(seen.insert(bytes));
                for (bit, ones) in ones[which].iter_mut().enumerate() {
                    *ones += usize::from(bytes[bit / 8] >> (bit % 8) & 1);
                }
            }
        }
        // Six standard deviations: for 250 bits, one false alarm in two million runs.
        let leans = |ones: usize| ones.abs_diff(COUNT / 2) > 6 * (COUNT as f64).sqrt() as usize / 2;
        let leaning = ones.map(|bits| bits.iter().filter(|&&ones| leans(ones)).count());
        assert_eq!(leaning, [0, 6], "only the version and variant bits of a UUID are constant");
    }

    #[test]
    fn a_child_of_a_fork_draws_other_numbers_than_its_parent() {
        use std::io::{Read, Write};
        const COUNT: usize = 500;
        let mut ends = [0; 2];
        // SAFETY: `ends` is writable.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: both descriptors are new, and no other value owns them.
        let [mut reader, mut writer] =
            ends.map(|end| unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(end) });
        drawn();
        // SAFETY: the child only draws random bytes, writes them and ends. It takes no lock that another thread may hold.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let numbers: [[u8; 16]; COUNT] = std::array::from_fn(|_| random_bytes());
            let written = writer.write_all(numbers.as_flattened()).is_ok();
            // SAFETY: the call ends the process and runs no destructor.
            unsafe { libc::_exit(i32::from(!written)) };
        }
        drop(writer);
        let ours: std::collections::HashSet<[u8; 16]> = (0..COUNT).map(|_| random_bytes()).collect();
        let mut theirs = Vec::new();
        reader.read_to_end(&mut theirs).unwrap();
        // SAFETY: the child belongs to this process, and a null status is allowed.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        let (theirs, rest) = theirs.as_chunks::<16>();
        assert!(rest.is_empty() && theirs.len() == COUNT);
        assert!(theirs.iter().all(|number| !ours.contains(number)));
    }

    #[test]
    fn a_request_id_is_typed() {
        assert_ne!(RequestId::from(1), RequestId::from("1"));
    }
}
