//! What can be set: limits, times and policies, with their defaults (docs/design.md, section 3).

use std::fmt;

use crate::clock::Millis;

macro_rules! limits {
    ($($variant:ident $option:literal = $default:expr, $doc:literal, $advice:literal;)*) => {
        /// The limits of G10, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Limit { $(#[doc = $doc] $variant,)* }

        impl Limit {
            /// All limits, in the order they are documented.
            pub const ALL: &'static [Limit] = &[$(Limit::$variant,)*];

            /// The limit of this name.
            pub fn named(name: &str) -> Option<Limit> {
                match name {
                    $($option => Some(Limit::$variant),)*
                    _ => None,
                }
            }

            /// The limit's name: the option of the DSN and, with `mcp_state.` before it, the ini setting.
            pub const fn name(self) -> &'static str { match self { $(Limit::$variant => $option,)* } }

            /// The limit when nothing is set.
            pub const fn default_value(self) -> u64 { match self { $(Limit::$variant => $default,)* } }

            /// What the limit bounds.
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
    StoreBytes "max_store_bytes" = 256 << 20, "Bytes of one store; never more than half of what its file system, memory cgroup and RLIMIT_FSIZE leave, nor than 8 GiB.", "destroy sessions, or raise the limit";
    Waiting "max_waiting" = 1_000_000, "Exchanges of one store that wait for their clients at once; counted where it is set.", "some clients do not answer; have more PHP processes, and raise the limit";
    BusMessages "max_topic_messages" = 4096, "Messages the bus keeps of one topic; the oldest give way.", "read more often, or raise the limit";
    BusBytes "max_topic_bytes" = 16 << 20, "Bytes the bus keeps of one topic; the oldest give way.", "read more often, or raise the limit";
    Topics "max_topics" = 256, "Topics of the bus in one store.", "use fewer topics, or raise the limit";
    OnceKeys "max_once_keys" = 100_000, "Single-use keys that are remembered in one store.", "remember them for a shorter time, or raise the limit";
}

/// The most that `max_owner_messages` can be: a record that claims more than that is damaged.
pub(crate) const MAX_QUEUE: u64 = 1 << 20;

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What `create_session` does when the store has `max_sessions` already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// The longest-idle session without a living owner gives way, if it has been idle for a minute.
    #[default]
    Evict,
    /// The new session is refused.
    Reject,
}

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The death of every process, but not of the machine.
    None,
    /// The machine's, too: each commit is written to the disk.
    Sync,
}

/// The settings of a store as one process uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    limits: Vec<u64>,
    /// Idle time after which a session expires.
    pub ttl_ms: Millis,
    /// How long an owner may be silent before its process is looked for.
    pub lease_ms: Millis,
    /// How long a server's request waits for its answer when the caller does not say.
    pub request_timeout_ms: Millis,
    /// What gives way when the store has `max_sessions`.
    pub on_full: OnFull,
    /// What a commit survives; by default what fits the place: `sync` in a directory, `none` in shared memory.
    pub durability: Option<Durability>,
    /// Whether a store that is not durable writes its pages through its map: several times as fast, in memory that is taken when the
    /// store is made, and within reach of a stray pointer of any process that uses it (docs/adr/0012-optional-write-map.md).
    /// By default as the store is, and a new one does not.
    pub write_map: Option<bool>,
    /// A group that shares the store's files (name or number); by default they are their owner's alone.
    pub group: Option<String>,
    /// Whether the store is only looked at: it is neither made nor begun afresh. Not for a DSN.
    pub(crate) is_look: bool,
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
        }
    }
}

impl Settings {
    /// The value of `limit`.
    pub fn limit(&self, limit: Limit) -> u64 {
        self.limits[limit as usize]
    }

    /// Sets `limit`.
    pub fn set_limit(&mut self, limit: Limit, value: u64) {
        self.limits[limit as usize] = if limit == Limit::OwnerMessages { value.min(MAX_QUEUE) } else { value };
    }
}
