//! `McpState\Native\Session`.
#![expect(non_snake_case, reason = "parameters have the names that PHP callers may use")]

use std::sync::Arc;
use std::time::Duration;

use ext_php_rs::prelude::*;
use ext_php_rs::types::ZendHashTable;
use mcp_state::{
    Cancellation, Claim, Delivery, DuplicatePolicy, Interest, LateReason, Outgoing, OwnerKind, PendingInfo,
    RequestCancellation, WaitedFor,
};

use crate::convert::{Array, Nullable, RpcId, Text, array, change, count, int, list, map, numbers, unsigned};
use crate::failure::{Failure, invalid};
use crate::requests;

/// The default of a text that need not be given.
const EMPTY: &str = "";

/// A session as one process holds it. Shared with the request's list of owners.
#[php_class]
#[php(name = "McpState\\Native\\Session")]
pub(crate) struct Session {
    session: Arc<mcp_state::Session>,
}

impl Session {
    pub(crate) fn of(session: Arc<mcp_state::Session>) -> Self {
        Self { session }
    }
}

#[php_impl]
impl Session {
    pub(crate) const OWNER_STREAM: i64 = 1;
    pub(crate) const OWNER_REPLY: i64 = 2;

    pub(crate) const INTEREST_RESOLUTION: i64 = 1;
    pub(crate) const INTEREST_MESSAGE: i64 = 2;
    pub(crate) const INTEREST_CANCELLATION: i64 = 4;

    pub(crate) const WAIT_READY: i64 = 1;
    pub(crate) const WAIT_DEADLINE: i64 = 2;
    pub(crate) const WAIT_DESTROYED: i64 = 3;
    pub(crate) const WAIT_INTERRUPTED: i64 = 4;

    pub(crate) const CLAIM_ANSWERED: i64 = 1;
    pub(crate) const CLAIM_WAITING: i64 = 2;
    pub(crate) const CLAIM_TIMED_OUT: i64 = 3;
    pub(crate) const CLAIM_CANCELLED: i64 = 4;
    pub(crate) const CLAIM_NOT_OWNER: i64 = 5;
    pub(crate) const CLAIM_UNKNOWN: i64 = 6;

    pub(crate) const DELIVERED: i64 = 0;
    pub(crate) const LATE_UNKNOWN: i64 = 1;
    pub(crate) const LATE_FINISHED: i64 = 2;
    pub(crate) const LATE_TIMED_OUT: i64 = 3;
    pub(crate) const LATE_ALREADY_ANSWERED: i64 = 4;
    pub(crate) const LATE_CANCELLED: i64 = 5;
    pub(crate) const LATE_ABANDONED: i64 = 6;

    pub(crate) const CANCEL_CANCELLED: i64 = 1;
    pub(crate) const CANCEL_UNKNOWN: i64 = 2;
    pub(crate) const CANCEL_AMBIGUOUS: i64 = 3;
    pub(crate) const CANCEL_ALREADY_ANSWERED: i64 = 4;
    pub(crate) const CANCEL_TIMED_OUT: i64 = 5;
    pub(crate) const CANCEL_NOT_OWNER: i64 = 6;
    pub(crate) const CANCEL_ALREADY_CANCELLED: i64 = 7;

    pub(crate) const POLICY_ISOLATE: i64 = 1;
    pub(crate) const POLICY_REJECT: i64 = 2;

    pub(crate) fn id(&self) -> String {
        self.session.id().to_owned()
    }

    pub(crate) fn touch(&self) -> Result<bool, Failure> {
        Ok(self.session.touch()?)
    }

    pub(crate) fn destroy(&self) -> Result<bool, Failure> {
        Ok(self.session.destroy()?)
    }

    pub(crate) fn stats(&self) -> Result<Array, Failure> {
        let stats = self.session.stats()?;
        Ok(map! {
            "id" => stats.id,
            "age_ms" => int(stats.age_ms),
            "idle_ms" => int(stats.idle_ms),
            "ttl_ms" => int(stats.ttl_ms),
            "owners" => int(stats.owners),
            "exchanges" => int(stats.exchanges),
            "pending" => int(stats.pending),
            "in_flight" => int(stats.in_flight),
            "queued" => int(stats.queued),
            "broadcasts" => int(stats.broadcasts),
            "message_bytes" => int(stats.message_bytes),
            "attribute_bytes" => int(stats.attribute_bytes),
            "late" => numbers(stats.late)?,
        })
    }

    pub(crate) fn attach(&self, kind: i64, leaseMs: Option<i64>) -> Result<String, Failure> {
        let kind = match kind {
            Self::OWNER_STREAM => OwnerKind::Stream,
            Self::OWNER_REPLY => OwnerKind::Reply,
            _ => return Err(invalid("owner kind", &kind.to_string(), "it must be OWNER_STREAM or OWNER_REPLY")),
        };
        let owner = self.session.attach(kind, leaseMs.map(|lease| unsigned("lease", lease)).transpose()?)?;
        requests::attached(owner, &self.session);
        Ok(owner.to_string())
    }

    pub(crate) fn renew(&self, owner: Text<'_>) -> Result<(), Failure> {
        Ok(self.session.renew(&owner.owner()?)?)
    }

    pub(crate) fn detach(&self, owner: Text<'_>) -> Result<Option<Array>, Failure> {
        let owner = owner.owner()?;
        let detached = self.session.detach(&owner)?;
        requests::detached(&owner);
        detached
            .map(|detached| {
                Ok(map! {
                    "dropped" => int(detached.dropped_messages),
                    "abandoned" => int(detached.abandoned_pending),
                })
            })
            .transpose()
    }

    pub(crate) fn get(&self, key: Text<'_>) -> Result<Option<String>, Failure> {
        Ok(self.session.attributes().get(attribute(key)?)?)
    }

    pub(crate) fn all(&self) -> Result<String, Failure> {
        Ok(self.session.attributes().all()?)
    }

    pub(crate) fn set(&self, key: Text<'_>, json: Text<'_>) -> Result<(), Failure> {
        Ok(self.session.attributes().set(attribute(key)?, value(json)?)?)
    }

    pub(crate) fn remove(&self, key: Text<'_>) -> Result<bool, Failure> {
        Ok(self.session.attributes().remove(attribute(key)?)?)
    }

    pub(crate) fn take(&self, key: Text<'_>) -> Result<Option<String>, Failure> {
        Ok(self.session.attributes().take(attribute(key)?)?)
    }

    pub(crate) fn put_if_absent(&self, key: Text<'_>, json: Text<'_>) -> Result<bool, Failure> {
        Ok(self.session.attributes().put_if_absent(attribute(key)?, value(json)?)?)
    }

    pub(crate) fn compare_and_set(
        &self,
        key: Text<'_>,
        expected: Nullable<'_>,
        json: Nullable<'_>,
    ) -> Result<bool, Failure> {
        let (expected, json) = (expected.get("expected value")?, json.get("attribute value")?);
        Ok(self.session.attributes().compare_and_set(attribute(key)?, expected, json)?)
    }

    pub(crate) fn patch(&self, changes: &ZendHashTable) -> Result<(), Failure> {
        let changes = changes.values().enumerate().map(change).collect::<Result<Vec<_>, _>>()?;
        Ok(self.session.attributes().patch(changes)?)
    }

    #[php(defaults(context = EMPTY))]
    pub(crate) fn enqueue_outgoing(
        &self,
        owner: Text<'_>,
        message: Text<'_>,
        context: Text<'_>,
    ) -> Result<i64, Failure> {
        let (message, context) = (message.get("message")?, context.get("context")?);
        Ok(int(self.session.enqueue_outgoing(&owner.owner()?, message, context)?))
    }

    #[php(defaults(max = 100))]
    pub(crate) fn take_outgoing(&self, owner: Text<'_>, max: i64) -> Result<Array, Failure> {
        messages(self.session.take_outgoing(&owner.owner()?, count("max", max)?)?)
    }

    #[php(defaults(max = 100))]
    pub(crate) fn peek_outgoing(&self, owner: Text<'_>, max: i64) -> Result<Array, Failure> {
        messages(self.session.peek_outgoing(&owner.owner()?, count("max", max)?)?)
    }

    pub(crate) fn acknowledge(&self, owner: Text<'_>, upTo: i64) -> Result<i64, Failure> {
        Ok(int(self.session.acknowledge(&owner.owner()?, unsigned("sequence number", upTo)?)?))
    }

    #[php(defaults(context = EMPTY))]
    pub(crate) fn enqueue_broadcast(&self, message: Text<'_>, context: Text<'_>) -> Result<i64, Failure> {
        Ok(int(self.session.enqueue_broadcast(message.get("message")?, context.get("context")?)?))
    }

    pub(crate) fn next_request_id(&self) -> Result<i64, Failure> {
        Ok(self.session.next_request_id()?)
    }

    #[php(defaults(method = EMPTY))]
    pub(crate) fn register_pending(
        &self,
        owner: Text<'_>,
        id: i64,
        timeoutMs: Option<i64>,
        method: Text<'_>,
    ) -> Result<Option<i64>, Failure> {
        let (timeout, method) = (self.timeout(timeoutMs)?, method.get("method")?);
        Ok(self.session.register_pending(&owner.owner()?, id, timeout, method)?.map(int))
    }

    #[php(defaults(context = EMPTY))]
    pub(crate) fn send_request(
        &self,
        owner: Text<'_>,
        message: Text<'_>,
        timeoutMs: Option<i64>,
        context: Text<'_>,
    ) -> Result<i64, Failure> {
        let (message, context) = (message.get("message")?, context.get("context")?);
        Ok(self.session.send_request(&owner.owner()?, message, context, self.timeout(timeoutMs)?)?)
    }

    pub(crate) fn deliver_response(&self, id: i64, payload: Text<'_>) -> Result<i64, Failure> {
        Ok(match self.session.deliver_response(id, payload.get("response")?)? {
            Delivery::Delivered => Self::DELIVERED,
            Delivery::Late(LateReason::Unknown) => Self::LATE_UNKNOWN,
            Delivery::Late(LateReason::Finished) => Self::LATE_FINISHED,
            Delivery::Late(LateReason::TimedOut) => Self::LATE_TIMED_OUT,
            Delivery::Late(LateReason::AlreadyAnswered) => Self::LATE_ALREADY_ANSWERED,
            Delivery::Late(LateReason::Cancelled) => Self::LATE_CANCELLED,
            Delivery::Late(LateReason::Abandoned) => Self::LATE_ABANDONED,
        })
    }

    pub(crate) fn claim(&self, owner: Text<'_>, id: i64) -> Result<Array, Failure> {
        let claim = self.session.claim(&owner.owner()?, id)?;
        let (status, left) = (status(&claim), left(&claim));
        Ok(array![status, payload(claim), left])
    }

    pub(crate) fn claim_any(&self, owner: Text<'_>) -> Result<Option<Array>, Failure> {
        let resolved = self.session.claim_any(&owner.owner()?)?;
        resolved.map(|resolved| Ok(array![resolved.id, status(&resolved.claim), payload(resolved.claim)])).transpose()
    }

    pub(crate) fn resolve_timeouts(&self, owner: Text<'_>) -> Result<Array, Failure> {
        list(self.session.resolve_timeouts(&owner.owner()?)?, Ok)
    }

    pub(crate) fn cancel_pending(&self, owner: Text<'_>, id: i64) -> Result<i64, Failure> {
        Ok(match self.session.cancel_pending(&owner.owner()?, id)? {
            Cancellation::Cancelled => Self::CANCEL_CANCELLED,
            Cancellation::Unknown => Self::CANCEL_UNKNOWN,
            Cancellation::AlreadyAnswered => Self::CANCEL_ALREADY_ANSWERED,
            Cancellation::TimedOut => Self::CANCEL_TIMED_OUT,
            Cancellation::NotOwner => Self::CANCEL_NOT_OWNER,
            Cancellation::AlreadyCancelled => Self::CANCEL_ALREADY_CANCELLED,
        })
    }

    pub(crate) fn pending(&self, owner: Text<'_>) -> Result<Array, Failure> {
        pending(self.session.pending(Some(&owner.owner()?))?)
    }

    pub(crate) fn all_pending(&self) -> Result<Array, Failure> {
        pending(self.session.pending(None)?)
    }

    pub(crate) fn peek_response(&self, owner: Text<'_>, id: i64) -> Result<Option<String>, Failure> {
        Ok(self.session.peek_response(&owner.owner()?, id)?)
    }

    pub(crate) fn wait(&self, owner: Text<'_>, interest: i64, after: i64, waitMs: i64) -> Result<Array, Failure> {
        const ALL: i64 = Session::INTEREST_RESOLUTION | Session::INTEREST_MESSAGE | Session::INTEREST_CANCELLATION;
        if interest & ALL == 0 || interest & !ALL != 0 {
            return Err(invalid("interest", &interest.to_string(), "it must be a sum of INTEREST_*"));
        }
        let interest = Interest {
            resolution: interest & Self::INTEREST_RESOLUTION != 0,
            message: interest & Self::INTEREST_MESSAGE != 0,
            cancellation: interest & Self::INTEREST_CANCELLATION != 0,
        };
        let wait = Duration::from_millis(unsigned("wait", waitMs)?);
        let waited = self.session.wait_slice(&owner.owner()?, interest, unsigned("after", after)?, wait)?;
        let status = match waited.outcome {
            WaitedFor::Ready => Self::WAIT_READY,
            WaitedFor::Deadline => Self::WAIT_DEADLINE,
            WaitedFor::Destroyed => Self::WAIT_DESTROYED,
            WaitedFor::Interrupted => Self::WAIT_INTERRUPTED,
        };
        Ok(array![status, int(waited.cursor)])
    }

    #[php(defaults(policy = 1))]
    pub(crate) fn begin_request(&self, owner: Text<'_>, id: RpcId<'_>, policy: i64) -> Result<bool, Failure> {
        let policy = match policy {
            Self::POLICY_ISOLATE => DuplicatePolicy::Isolate,
            Self::POLICY_REJECT => DuplicatePolicy::Reject,
            _ => return Err(invalid("policy", &policy.to_string(), "it must be POLICY_ISOLATE or POLICY_REJECT")),
        };
        Ok(self.session.begin_request(&owner.owner()?, &id.get()?, policy)?)
    }

    pub(crate) fn finish_request(&self, owner: Text<'_>, id: RpcId<'_>) -> Result<Option<bool>, Failure> {
        Ok(self.session.finish_request(&owner.owner()?, &id.get()?)?)
    }

    pub(crate) fn is_cancelled(&self, owner: Text<'_>, id: RpcId<'_>) -> Result<bool, Failure> {
        Ok(self.session.is_cancelled(&owner.owner()?, &id.get()?)?)
    }

    pub(crate) fn cancel_request(&self, id: RpcId<'_>) -> Result<i64, Failure> {
        Ok(match self.session.cancel_request(&id.get()?)? {
            RequestCancellation::Cancelled(_) => Self::CANCEL_CANCELLED,
            RequestCancellation::Unknown => Self::CANCEL_UNKNOWN,
            RequestCancellation::Ambiguous => Self::CANCEL_AMBIGUOUS,
        })
    }
}

impl Session {
    /// How long a question waits; null: for the store's `request_timeout_ms`.
    fn timeout(&self, timeout_ms: Option<i64>) -> Result<u64, Failure> {
        let given = timeout_ms.map(|timeout| unsigned("timeout", timeout)).transpose()?;
        Ok(self.session.engine().question_timeout_ms(given))
    }
}

fn attribute(key: Text<'_>) -> Result<&str, Failure> {
    key.get("attribute key")
}

fn value(json: Text<'_>) -> Result<&str, Failure> {
    json.get("attribute value")
}

fn messages(messages: Vec<Outgoing>) -> Result<Array, Failure> {
    list(messages, |message| Ok(array![int(message.sequence), message.message, message.context]))
}

fn pending(requests: Vec<PendingInfo>) -> Result<Array, Failure> {
    list(requests, |request| {
        Ok(array![request.id, status(&request.state), left(&request.state).unwrap_or(0), request.method])
    })
}

fn status(claim: &Claim) -> i64 {
    match claim {
        Claim::Answered(_) => Session::CLAIM_ANSWERED,
        Claim::Waiting(_) => Session::CLAIM_WAITING,
        Claim::TimedOut => Session::CLAIM_TIMED_OUT,
        Claim::Cancelled => Session::CLAIM_CANCELLED,
        Claim::NotOwner => Session::CLAIM_NOT_OWNER,
        Claim::Unknown => Session::CLAIM_UNKNOWN,
    }
}

fn payload(claim: Claim) -> Option<String> {
    match claim {
        Claim::Answered(payload) => Some(payload),
        _ => None,
    }
}

fn left(claim: &Claim) -> Option<i64> {
    match claim {
        Claim::Waiting(left) => Some(int(*left)),
        _ => None,
    }
}
