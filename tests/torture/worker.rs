//! One process of the run: its threads serve exchanges, as a server's processes do, until the time is over. What they do is
//! drawn from the seed, the process's number and the thread's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use mcp_state::{
    Cancellation, Claim, Delivery, DuplicatePolicy, Engine, Error, Interest, NewSession, Outgoing, OwnerKind,
    OwnerToken, RequestCancellation, RequestId, Session,
};

use crate::history::{Claimed, Log, Message, Nanos, Op, Outcome, now};

/// Sessions of a round, and sessions whose ids are used again and again.
pub const SESSIONS: u64 = 3;
pub const REUSED: u64 = 2;
/// Short, so that leases end during the run.
const LEASE_MS: u64 = 150;

pub struct Worker {
    pub dsn: String,
    pub directory: PathBuf,
    pub round: u64,
    pub number: u32,
    pub seed: u64,
    pub until: Nanos,
}

/// The id of a session of a round.
pub fn session_id(round: u64, number: u64) -> String {
    format!("r{round}s{number}")
}

/// Where a process writes its history.
pub fn log_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number}.log"))
}

impl Worker {
    /// Serves in two threads or, every other process, in one that forks now and then.
    pub fn serve(&self) {
        let engine = Engine::open(&self.dsn).expect("the store opens");
        let log = Log::new(&log_path(&self.directory, self.number));
        if self.number.is_multiple_of(2) {
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    let exchange = Exchanges::new(self, &engine, &log, self.number, thread);
                    scope.spawn(move || exchange.run(u64::MAX));
                }
            });
            return;
        }
        let mut random = Rng::with_seed(self.seed ^ u64::from(self.number));
        for child in 1..100 {
            Exchanges::new(self, &engine, &log, self.number, u64::from(child)).run(5 + random.u64(..40));
            if now() >= self.until {
                return;
            }
            self.fork(&engine, self.number + child);
        }
    }

    /// A child goes on with the engine that its parent has used.
    fn fork(&self, engine: &Engine, number: u32) {
        // SAFETY: this process has one thread, so the child may run any code.
        match unsafe { libc::fork() } {
            0 => {
                let log = Log::new(&log_path(&self.directory, number));
                Exchanges::new(self, engine, &log, number, 0).run(20);
                // SAFETY: nothing of the child is to be cleaned up; its parent has the same things open.
                unsafe { libc::_exit(0) }
            }
            child => {
                let mut status = 0;
                // SAFETY: the child is this process's own; `status` is writable.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
                assert!(killed || (libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0), "the child fails");
            }
        }
    }
}

/// What one thread does.
struct Exchanges<'w> {
    worker: &'w Worker,
    engine: &'w Engine,
    log: &'w Log,
    random: Rng,
    /// What its values, messages and payloads begin with: they are used once.
    stem: u64,
}

impl<'w> Exchanges<'w> {
    fn new(worker: &'w Worker, engine: &'w Engine, log: &'w Log, number: u32, thread: u64) -> Self {
        let stem = (u64::from(number) * 100 + thread) * 1_000_000;
        let random = Rng::with_seed(worker.seed ^ (u64::from(number) << 20) ^ (thread << 50) ^ worker.round);
        Self { worker, engine, log, random, stem }
    }

    fn run(mut self, exchanges: u64) {
        for _ in 0..exchanges {
            if now() >= self.worker.until {
                return;
            }
            self.engine.refresh().expect("the store is there");
            match self.random.u64(..8) {
                0 => self.incarnation(),
                _ => self.exchange(),
            }
        }
    }

    fn name(&mut self) -> u64 {
        self.stem += 1;
        self.stem
    }

    /// A session whose id others use, too.
    fn incarnation(&mut self) {
        let id = format!("r{}again{}", self.worker.round, self.random.u64(..REUSED));
        let name = self.name();
        let mut session = None;
        let created = self.log.record(&id, Op::Create(name), || {
            let new = NewSession { id: Some(id.clone()), ..NewSession::default() };
            outcome(self.engine.create_session(new), |created| {
                session = created;
                Outcome::Whether(session.is_some())
            })
        });
        let Some(session) = session.filter(|_| created == Outcome::Whether(true)) else { return };
        for _ in 0..self.random.u64(..4) {
            let value = self.name();
            self.log.record(&id, Op::Write(name, value), || {
                outcome(session.attributes().set("value", &value.to_string()), |()| Outcome::Done)
            });
            self.log.record(&id, Op::Read(name), || {
                outcome(session.attributes().get("value"), |json| Outcome::Value(number(json)))
            });
        }
        self.log.record(&id, Op::Destroy(name), || outcome(session.destroy(), Outcome::Whether));
        self.log.record(&id, Op::Read(name), || {
            outcome(session.attributes().get("value"), |json| Outcome::Value(number(json)))
        });
    }

    /// One exchange: an owner attaches, works, takes what is left for it, and detaches or does not.
    fn exchange(&mut self) {
        let id = session_id(self.worker.round, self.random.u64(..SESSIONS));
        let session = match self.engine.open_session(&id, None) {
            Ok(Some(session)) => session,
            Ok(None) => {
                self.log.record(&id, Op::NextId, || Outcome::SessionNotFound);
                std::thread::sleep(Duration::from_millis(1));
                return;
            }
            Err(error) => {
                self.log.record(&id, Op::NextId, || Outcome::Failed(error.to_string()));
                return;
            }
        };
        let stream = self.random.u64(..3) > 0;
        let kind = if stream { OwnerKind::Stream } else { OwnerKind::Reply };
        let mut owner = None;
        self.log.record(&id, Op::Attach { stream }, || {
            outcome(session.attach(kind, Some(LEASE_MS)), |token| {
                owner = Some(token);
                Outcome::Owner(token.to_string())
            })
        });
        let Some(owner) = owner else { return };
        let shared = format!("owner.{}", self.random.u64(..4));
        let _ = session.attributes().set(&shared, &format!("\"{owner}\""));
        let mut sent = Vec::new();
        for _ in 0..3 + self.random.u64(..12) {
            self.step(&id, &session, &owner, &mut sent);
            if self.random.u64(..3) == 0 {
                std::thread::sleep(Duration::from_micros(self.random.u64(..1500)));
            }
        }
        for request in sent {
            self.claim(&id, &session, &owner, request);
        }
        self.take(&id, &session, &owner, 1000);
        if self.random.u64(..20) > 0 {
            self.log.record(&id, Op::Detach(owner.to_string()), || {
                outcome(session.detach(&owner), |detached| match detached {
                    Some(detached) => Outcome::Detached { dropped: detached.dropped_messages },
                    None => Outcome::Done,
                })
            });
        }
    }

    fn step(&mut self, id: &str, session: &Session, owner: &OwnerToken, sent: &mut Vec<i64>) {
        let value = self.name();
        let time = (self.worker.until.saturating_sub(now())) / 300_000_000;
        let key = format!("k{time}.{}", self.random.u64(..3));
        let own = owner.to_string();
        match self.random.u64(..24) {
            0 | 1 => {
                self.log.record(id, Op::Set(key.clone(), value), || {
                    outcome(session.attributes().set(&key, &value.to_string()), |()| Outcome::Done)
                });
            }
            2 | 3 => {
                let mut current = None;
                self.log.record(id, Op::Get(key.clone()), || {
                    outcome(session.attributes().get(&key), |json| {
                        current = number(json);
                        Outcome::Value(current)
                    })
                });
                self.log.record(id, Op::CompareAndSet(key.clone(), current, value), || {
                    let expected = current.map(|number| number.to_string());
                    let set = session.attributes().compare_and_set(&key, expected.as_deref(), Some(&value.to_string()));
                    outcome(set, Outcome::Whether)
                });
            }
            4 => {
                self.log.record(id, Op::TakeAttribute(key.clone()), || {
                    outcome(session.attributes().take(&key), |json| Outcome::Value(number(json)))
                });
            }
            5..8 => {
                let timeout_ms = [0, 5, 50, 5000][self.random.u64(..4) as usize];
                let mut request = None;
                self.log.record(id, Op::Send { owner: own, timeout_ms }, || {
                    outcome(session.send_request(owner, r#"{"method":"m"}"#, "", timeout_ms), |id| {
                        request = Some(id);
                        Outcome::Id(id)
                    })
                });
                if let Some(request) = request {
                    sent.push(request);
                    let shared = format!("request.{}", self.random.u64(..6));
                    let _ = session.attributes().set(&shared, &request.to_string());
                }
            }
            8..11 => {
                let shared = format!("request.{}", self.random.u64(..6));
                let asked = session.attributes().get(&shared).ok().flatten().and_then(|json| json.parse().ok());
                let request = asked.unwrap_or(self.random.u64(..1000) as i64 + 1);
                self.log.record(id, Op::Deliver(request, value), || {
                    outcome(session.deliver_response(request, &value.to_string()), |delivery| match delivery {
                        Delivery::Delivered => Outcome::Delivered,
                        Delivery::Late(reason) => Outcome::Late(reason.name().to_owned()),
                    })
                });
            }
            11 => {
                self.log.record(id, Op::NextId, || outcome(session.next_request_id(), Outcome::Id));
            }
            12 => {
                let shared = format!("request.{}", self.random.u64(..6));
                let asked = session.attributes().get(&shared).ok().flatten().and_then(|json| json.parse().ok());
                // Perhaps another owner's.
                let request = asked.or(sent.last().copied());
                if let Some(request) = request {
                    self.claim(id, session, owner, request);
                }
            }
            13 => {
                self.log.record(id, Op::ClaimAny(own), || {
                    outcome(session.claim_any(owner), |resolved| {
                        Outcome::Resolved(resolved.map(|resolved| (resolved.id, claimed(&resolved.claim))))
                    })
                });
            }
            14 => {
                self.log
                    .record(id, Op::ResolveTimeouts(own), || outcome(session.resolve_timeouts(owner), Outcome::Ids));
            }
            15 => {
                if let Some(&request) = sent.last() {
                    self.log.record(id, Op::CancelPending(own, request), || {
                        outcome(session.cancel_pending(owner, request), |cancelled: Cancellation| {
                            Outcome::Cancellation(format!("{cancelled:?}"))
                        })
                    });
                }
            }
            16 | 17 => {
                let shared = format!("owner.{}", self.random.u64(..4));
                let other = session.attributes().get(&shared).ok().flatten();
                let other = other.and_then(|json| OwnerToken::parse(json.trim_matches('"')).ok()).unwrap_or(*owner);
                self.log.record(id, Op::Enqueue(other.to_string(), value), || {
                    outcome(session.enqueue_outgoing(&other, &format!("{{\"direct\":{value}}}"), ""), Outcome::Number)
                });
            }
            18 => {
                self.log.record(id, Op::Broadcast(value), || {
                    outcome(session.enqueue_broadcast(&format!("{{\"broadcast\":{value}}}"), ""), Outcome::Number)
                });
            }
            19 => {
                let max = 1 + self.random.u64(..3) as usize;
                self.take(id, session, owner, max);
            }
            20 => {
                let max = 1 + self.random.u64(..3) as usize;
                let mut last = None;
                self.log.record(id, Op::Peek(own.clone(), max), || {
                    outcome(session.peek_outgoing(owner, max), |messages| {
                        last = messages.last().map(|message| message.sequence);
                        seen(messages)
                    })
                });
                if let Some(last) = last {
                    self.log.record(id, Op::Acknowledge(own, last), || {
                        outcome(session.acknowledge(owner, last), Outcome::Number)
                    });
                }
            }
            21 | 22 => {
                let rpc = self.random.u64(..2) as i64 + 1;
                let reject = self.random.u64(..2) == 0;
                let policy = if reject { DuplicatePolicy::Reject } else { DuplicatePolicy::Isolate };
                let mut begun = false;
                self.log.record(id, Op::Begin { owner: own.clone(), id: rpc, reject }, || {
                    outcome(session.begin_request(owner, &RequestId::Int(rpc), policy), |it| {
                        begun = it;
                        Outcome::Whether(it)
                    })
                });
                if begun && self.random.u64(..4) > 0 {
                    self.log.record(id, Op::Finish(own, rpc), || {
                        let finished = session.finish_request(owner, &RequestId::Int(rpc));
                        outcome(finished, |cancelled| Outcome::Value(cancelled.map(u64::from)))
                    });
                } else {
                    self.log.record(id, Op::CancelRequest(rpc), || {
                        outcome(session.cancel_request(&RequestId::Int(rpc)), |cancelled| match cancelled {
                            RequestCancellation::Cancelled(owner) => Outcome::Cancelled(owner.to_string()),
                            RequestCancellation::Unknown => Outcome::Unknown,
                            RequestCancellation::Ambiguous => Outcome::Ambiguous,
                        })
                    });
                }
            }
            _ => {
                let _ = session.wait_slice(owner, Interest::ALL, 0, Duration::from_millis(5));
            }
        }
    }

    fn claim(&self, id: &str, session: &Session, owner: &OwnerToken, request: i64) {
        self.log.record(id, Op::Claim(owner.to_string(), request), || {
            outcome(session.claim(owner, request), |claim| Outcome::Claimed(claimed(&claim)))
        });
    }

    fn take(&self, id: &str, session: &Session, owner: &OwnerToken, max: usize) {
        take(self.log, id, session, owner, max);
    }
}

/// Takes messages. How many.
pub fn take(log: &Log, id: &str, session: &Session, owner: &OwnerToken, max: usize) -> usize {
    let mut count = 0;
    log.record(id, Op::Take(owner.to_string(), max), || {
        outcome(session.take_outgoing(owner, max), |messages| {
            count = messages.len();
            seen(messages)
        })
    });
    count
}

pub fn outcome<T>(result: Result<T, Error>, done: impl FnOnce(T) -> Outcome) -> Outcome {
    match result {
        Ok(value) => done(value),
        Err(Error::SessionNotFound { .. }) => Outcome::SessionNotFound,
        Err(Error::OwnerExpired { .. }) => Outcome::OwnerExpired,
        Err(Error::Limit(_)) => Outcome::Refused,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn number(json: Option<String>) -> Option<u64> {
    json.map(|json| json.parse().expect("values are numbers"))
}

fn claimed(claim: &Claim) -> Claimed {
    match claim {
        Claim::Answered(payload) => Claimed::Answered(payload.parse().expect("payloads are numbers")),
        Claim::Waiting(_) => Claimed::Waiting,
        Claim::TimedOut => Claimed::TimedOut,
        Claim::Cancelled => Claimed::Cancelled,
        Claim::NotOwner => Claimed::NotOwner,
        Claim::Unknown => Claimed::Unknown,
    }
}

fn seen(messages: Vec<Outgoing>) -> Outcome {
    let parse = |message: Outgoing| {
        let json: serde_json::Value = serde_json::from_str(&message.message).expect("messages are JSON");
        let number = |key: &str| json[key].as_u64();
        let message_seen = match (number("direct"), number("broadcast"), json["id"].as_i64()) {
            (Some(direct), ..) => Message::Direct(direct),
            (_, Some(broadcast), _) => Message::Broadcast(broadcast),
            (.., Some(id)) => Message::Request(id),
            _ => panic!("no such message was sent: {json}"),
        };
        (message.sequence, message_seen)
    };
    Outcome::Messages(messages.into_iter().map(parse).collect())
}
