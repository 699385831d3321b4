//! What operations on a Redis store cost, beside the same steps in hand-written Lua: `cargo run --release --example redis_rounds`.
//!
//! A private server on a Unix socket, messages of 600 bytes. A round is a question to the client registered and queued, taken,
//! answered, claimed. "Alternating" does each step in another process's place: two engines that share nothing but the server.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use mcp_state::{Claim, Delivery, Engine, Interest, NewSession, OwnerKind, OwnerToken, Session};

#[path = "../tests/common/redis.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod server;

const SCRIPTS: [&str; 4] = [
    "local id = redis.call('HINCRBY', KEYS[1], 'next_request', 1)
     redis.call('HSET', KEYS[1] .. ':pending', id, ARGV[1] .. ' ' .. ARGV[2])
     redis.call('RPUSH', KEYS[1] .. ':queue:' .. ARGV[1], ARGV[3])
     redis.call('EXPIRE', KEYS[1], 3600)
     return id",
    "local queue = KEYS[1] .. ':queue:' .. ARGV[1]
     local messages = redis.call('LRANGE', queue, 0, -1)
     redis.call('DEL', queue)
     return messages",
    "local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
     if not pending or tonumber(string.match(pending, ' (%d+)$')) <= tonumber(ARGV[3]) then return 0 end
     return redis.call('HSETNX', KEYS[1] .. ':responses', ARGV[1], ARGV[2])",
    "local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
     if not pending or string.sub(pending, 1, #ARGV[2]) ~= ARGV[2] then return false end
     local response = redis.call('HGET', KEYS[1] .. ':responses', ARGV[1])
     if not response then return false end
     redis.call('HDEL', KEYS[1] .. ':responses', ARGV[1])
     redis.call('HDEL', KEYS[1] .. ':pending', ARGV[1])
     return response",
];

fn main() {
    let server = server::RedisServer::start();
    let message = format!(r#"{{"jsonrpc":"2.0","method":"m","params":"{}"}}"#, "x".repeat(560));
    let lua = rounds(&mut lua_round(&server, &message));
    println!("{:<34} {}", "round, hand-written Lua", shown(&lua));
    let engines = [(); 2].map(|()| Engine::open(&server.dsn("")).expect("the store opens"));
    let id = engines[0].create_session(NewSession::default()).unwrap().unwrap().id().to_owned();
    let sessions = engines.each_ref().map(|engine| engine.open_session(&id, None).unwrap().unwrap());
    let stream = sessions[0].attach(OwnerKind::Stream, None).unwrap();
    for (name, with) in [("round, one process", [0, 0]), ("round, alternating between two", [0, 1])] {
        let with = with.map(|at| &sessions[at]);
        let ours = rounds(&mut || round(with, &stream, &message));
        println!("{name:<34} {}   {:.2} x Lua", shown(&ours), median(&ours).as_secs_f64() / median(&lua).as_secs_f64());
    }
    println!("{:<34} {}", "delivered to woken", shown(&wakes(&sessions, &stream, &message)));
    contention(&server, &id, &message);
}

fn round([a, b]: [&Session; 2], stream: &OwnerToken, message: &str) {
    let id = a.send_request(stream, message, "", 60_000).unwrap();
    assert_eq!(b.take_outgoing(stream, 9).unwrap().len(), 1);
    assert_eq!(a.deliver_response(id, message).unwrap(), Delivery::Delivered);
    assert!(matches!(b.claim(stream, id).unwrap(), Claim::Answered(_)));
}

fn lua_round(server: &server::RedisServer, message: &str) -> impl FnMut() {
    let client = redis::Client::open(format!("redis+unix://{}", server.socket().display())).unwrap();
    let mut connection = client.get_connection().unwrap();
    let scripts = SCRIPTS.map(redis::Script::new);
    let message = message.to_owned();
    move || {
        let [send, take, deliver, claim] = &scripts;
        let (owner, deadline) = ("0123456789abcdef0123456789abcdef", 4_000_000_000_u64);
        let key = "mcp:session";
        let id: i64 = send.key(key).arg(owner).arg(deadline).arg(&message).invoke(&mut connection).unwrap();
        let taken: Vec<String> = take.key(key).arg(owner).invoke(&mut connection).unwrap();
        assert_eq!(taken.len(), 1);
        let done: i64 = deliver.key(key).arg(id).arg(&message).arg(1).invoke(&mut connection).unwrap();
        assert_eq!(done, 1);
        let claimed: Option<String> = claim.key(key).arg(id).arg(owner).invoke(&mut connection).unwrap();
        assert!(claimed.is_some());
    }
}

fn rounds(round: &mut dyn FnMut()) -> Vec<Duration> {
    for _ in 0..500 {
        round();
    }
    sorted((0..5_000).map(|_| timed(&mut *round)).collect())
}

/// From the moment the answer was delivered to the moment the waiter has seen it.
fn wakes([deliverer, waiter]: &[Session; 2], stream: &OwnerToken, message: &str) -> Vec<Duration> {
    let barrier = Barrier::new(2);
    let count = 1_000;
    let times = std::thread::scope(|scope| {
        let woken = scope.spawn(|| {
            let mut woken = Vec::new();
            for _ in 0..count {
                let id = waiter.send_request(stream, message, "", 60_000).unwrap();
                waiter.take_outgoing(stream, 9).unwrap();
                barrier.wait();
                waiter.wait(stream, Interest::RESOLUTION, 0, Duration::from_secs(10)).unwrap();
                woken.push(Instant::now());
                assert!(matches!(waiter.claim(stream, id).unwrap(), Claim::Answered(_)));
                barrier.wait();
            }
            woken
        });
        let mut delivered = Vec::new();
        for _ in 0..count {
            barrier.wait();
            std::thread::sleep(Duration::from_millis(2));
            let id = deliverer.pending(None).unwrap()[0].id;
            assert_eq!(deliverer.deliver_response(id, message).unwrap(), Delivery::Delivered);
            delivered.push(Instant::now());
            barrier.wait();
        }
        let woken = woken.join().unwrap();
        woken.into_iter().zip(delivered).map(|(woken, delivered)| woken.saturating_duration_since(delivered)).collect()
    });
    sorted(times)
}

/// Eight at once on one session: how long an operation of each takes, and how much each gets done.
fn contention(server: &server::RedisServer, id: &str, message: &str) {
    let (processes, span) = (8, Duration::from_secs(4));
    let barrier = Barrier::new(processes);
    let times: Vec<Vec<Duration>> = std::thread::scope(|scope| {
        let work = || {
            let engine = Engine::open(&server.dsn("")).unwrap();
            let session = engine.open_session(id, None).unwrap().unwrap();
            let stream = session.attach(OwnerKind::Stream, None).unwrap();
            barrier.wait();
            let end = Instant::now() + span;
            let mut times = Vec::new();
            while Instant::now() < end {
                let mut request = 0;
                times.push(timed(&mut || request = session.send_request(&stream, message, "", 60_000).unwrap()));
                times.push(timed(&mut || assert_eq!(session.take_outgoing(&stream, 9).unwrap().len(), 1)));
                times.push(timed(&mut || {
                    session.deliver_response(request, message).unwrap();
                }));
                times.push(timed(&mut || assert!(matches!(session.claim(&stream, request), Ok(Claim::Answered(_))))));
            }
            times
        };
        let running: Vec<_> = (0..processes).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|running| running.join().unwrap()).collect()
    });
    let done: Vec<String> = times.iter().map(|times| times.len().to_string()).collect();
    println!("{:<34} {}", "operation, eight on one session", shown(&sorted(times.concat())));
    println!("{:<34} {} in {span:?}", "operations of each", done.join(" "));
}

fn timed(job: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    job();
    start.elapsed()
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort_unstable();
    times
}

fn median(times: &[Duration]) -> Duration {
    times[times.len() / 2]
}

fn shown(times: &[Duration]) -> String {
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros();
    format!("p50 {} µs   p99 {} µs   longest {} µs", at(0.5), at(0.99), at(1.0))
}
