//! The settings of a store: limits, times and policies, with their defaults (docs/settings.md).

use std::fmt;

use crate::clock::Millis;

macro_rules! limits {
    ($($variant:ident $option:literal = $default:expr, $doc:literal, $advice:literal;)*) => {
        /// The limits of G10, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Limit { $(#[doc = $doc] $variant,)* }

        impl Limit {
            /// All limits, in the order of docs/settings.md.
            pub const ALL: &'static [Limit] = &[$(Limit::$variant,)*];

            /// Returns the limit with this name, such as `max_owners`.
            pub fn named(name: &str) -> Option<Limit> {
                match name {
                    $($option => Some(Limit::$variant),)*
                    _ => None,
                }
            }

            /// Returns the name of the limit: an option of the DSN and, with the prefix `mcp_state.`, an ini setting.
            pub const fn name(self) -> &'static str { match self { $(Limit::$variant => $option,)* } }

            /// Returns the default value of the limit.
            pub const fn default_value(self) -> u64 { match self { $(Limit::$variant => $default,)* } }

            /// Returns what the limit bounds, in one sentence.
            pub const fn description(self) -> &'static str { match self { $(Limit::$variant => $doc,)* } }

            pub(crate) fn advice(self) -> &'static str { match self { $(Limit::$variant => $advice,)* } }
        }
    };
}

limits! {
    MessageBytes "max_message_bytes" = 4 << 20, "Bytes of one message, response or attribute value.", "send less, or raise the limit";
    OwnerMessages "max_owner_messages" = 1024, "Messages queued for one owner; never more than 1,048,576.", "take messages before more are queued";
    OwnerBytes "max_owner_bytes" = 16 << 20, "Bytes queued for one owner.", "take messages before more are queued";
    Owners "max_owners" = 256, "Owners attached to one session.", "the client has too many requests open at once";
    Pending "max_pending" = 256, "Pending requests of one session.", "the client leaves too many requests unanswered";
    InFlight "max_in_flight" = 256, "Requests in flight of one session.", "the client has too many requests open at once";
    Broadcasts "max_broadcasts" = 256, "Broadcast messages waiting in one session.", "no stream of the session is taking broadcasts";
    AttributeBytes "max_attribute_bytes" = 1 << 20, "Bytes of all attributes of one session.", "keep large values elsewhere, or raise the limit";
    Attributes "max_attributes" = 10_000, "Attributes of one session.", "remove some, or keep many values as one";
    PatchChanges "max_patch_changes" = 10_000, "Changes of one patch of attributes.", "send fewer changes at once, or raise the limit";
    SessionBytes "max_session_bytes" = 32 << 20, "Bytes of everything one session holds; never more than 1/16 of the store.", "take messages, claim responses, or raise the limit";
    Sessions "max_sessions" = 10_000, "Sessions in one store.", "destroy sessions, shorten ttl_ms, or raise the limit";
    PrincipalSessions "max_sessions_per_principal" = 1_000, "Sessions of one principal.", "destroy this caller's sessions, or raise the limit";
    StoreBytes "max_store_bytes" = 256 << 20, "Bytes of one store; never more than half of what its file system, memory cgroup and `RLIMIT_FSIZE` leave, nor than 8 GiB.", "destroy sessions, or raise the limit";
    Waiting "max_waiting" = 1_000_000, "Exchanges of one store that wait for their clients at once; counted where it is set.", "some clients do not answer; have more PHP processes, and raise the limit";
    BusMessages "max_topic_messages" = 4096, "Messages the bus keeps of one topic; the oldest give way.", "read more often, or raise the limit";
    BusBytes "max_topic_bytes" = 16 << 20, "Bytes the bus keeps of one topic; the oldest give way.", "read more often, or raise the limit";
    Topics "max_topics" = 256, "Topics of the bus in one store.", "use fewer topics, or raise the limit";
    OnceKeys "max_once_keys" = 100_000, "Single-use keys that are remembered in one store.", "remember them for a shorter time, or raise the limit";
}

/// The greatest `max_owner_messages`. A record with a longer queue is damaged.
pub(crate) const MAX_QUEUE: u64 = 1 << 20;

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What `create_session` does if the store already has `max_sessions` sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Evicts the longest-idle session without a living owner, if it has been idle for a minute.
    #[default]
    Evict,
    /// Refuses the new session with [`LimitExceeded`](crate::LimitExceeded).
    Reject,
}

/// What a committed operation survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of every process, but not a crash of the machine.
    None,
    /// A crash of the machine, too: each commit is written to the disk.
    Sync,
}

/// The settings of a store in one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    limits: Vec<u64>,
    /// The idle time after which a session expires, in milliseconds.
    pub ttl_ms: Millis,
    /// The lease of an owner: after so many milliseconds without an operation, the engine checks whether its process is alive.
    pub lease_ms: Millis,
    /// The time until a pending request times out if the caller gives no timeout, in milliseconds.
    pub request_timeout_ms: Millis,
    /// The policy at `max_sessions`.
    pub on_full: OnFull,
    /// What a commit survives. The default is `sync` in a directory and `none` in shared memory.
    pub durability: Option<Durability>,
    /// Whether a store with durability `none` writes through its memory map (`MDB_WRITEMAP`). This is several times as fast, but all
    /// its memory is allocated when the store is made, and a stray pointer of any process that uses the store may damage it
    /// (docs/adr/0012-optional-write-map.md). By default an existing store keeps its mode, and a new one has no write map.
    pub write_map: Option<bool>,
    /// The group that shares the store's files (name or number). By default only their owner has access.
    pub group: Option<String>,
    /// Whether only an existing store is opened, which is neither made nor replaced. No option of a DSN sets this.
    pub(crate) is_look: bool,
    /// Whether new records have times (record version 5). A guest of a store in format 4 writes version 4, which the processes of
    /// the older build can read. No option of a DSN sets this.
    pub(crate) is_timed: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limit::ALL.iter().map(|limit| limit.default_value()).collect(),
            ttl_ms: 3_600_000,
            lease_ms: 30_000,
            request_timeout_ms: 120_000,
            on_full: OnFull::default(),
            durability: None,
            write_map: None,
            group: None,
            is_look: false,
            is_timed: true,
        }
    }
}

impl Settings {
    /// Returns the value of `limit`, in its unit: bytes, or a count.
    pub fn limit(&self, limit: Limit) -> u64 {
        self.limits[limit as usize]
    }

    /// Sets `limit` to `value`. `max_owner_messages` is at most 1,048,576.
    pub fn set_limit(&mut self, limit: Limit, value: u64) {
        self.limits[limit as usize] = if limit == Limit::OwnerMessages { value.min(MAX_QUEUE) } else { value };
    }
}
