//! What operations on a Redis store cost, beside the same steps in hand-written Lua: `cargo run --release --example redis_rounds`.
//!
//! A private server on a Unix socket, messages of 600 bytes. A round is a question to the client registered and queued, taken,
//! answered, claimed. "Alternating" does each step in another process's place: two engines that share nothing but the server.
//! All kinds of rounds have their turns, twenty of each at a time, so that what else the machine does meets all alike.
//!
//! Lua is written twice. *Plain* does the least: deadlines by the caller's clock, a time to live on one key of four, and nobody
//! is woken. *Several machines* does besides what several machines need: deadlines by the server's clock, a time to live on
//! every key, and a publication for who waits. Neither has limits, owners that end, late answers told apart, or operations that
//! take effect once when an answer is lost.
//!
//! Then: how long an answer takes to wake who waits, eight processes at once on one session, and the memory of a session that
//! waits for nothing.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use mcp_state::{Claim, Delivery, Engine, Interest, NewSession, OwnerKind, OwnerToken, Session};

#[path = "../tests/common/redis.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod server;

const PLAIN: [&str; 4] = [
    "local id = redis.call('HINCRBY', KEYS[1], 'next_request', 1)
     redis.call('HSET', KEYS[1] .. ':pending', id, ARGV[1] .. ' ' .. ARGV[2])
     redis.call('RPUSH', KEYS[1] .. ':queue:' .. ARGV[1], ARGV[3])
     redis.call('EXPIRE', KEYS[1], 3600)
     return id",
    TAKE,
    "local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
     if not pending or tonumber(string.match(pending, ' (%d+)$')) <= tonumber(ARGV[3]) then return 0 end
     return redis.call('HSETNX', KEYS[1] .. ':responses', ARGV[1], ARGV[2])",
    CLAIM,
];
const SEVERAL_MACHINES: [&str; 4] = [
    "local time = redis.call('TIME')
     local id = redis.call('HINCRBY', KEYS[1], 'next_request', 1)
     redis.call('HSET', KEYS[1] .. ':pending', id, ARGV[1] .. ' ' .. (time[1] + 60))
     redis.call('RPUSH', KEYS[1] .. ':queue:' .. ARGV[1], ARGV[3])
     redis.call('EXPIRE', KEYS[1], 3600)
     redis.call('EXPIRE', KEYS[1] .. ':pending', 3600)
     redis.call('EXPIRE', KEYS[1] .. ':queue:' .. ARGV[1], 3600)
     redis.call('PUBLISH', KEYS[1] .. ':wake:' .. ARGV[1], '')
     return id",
    TAKE,
    "local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
     if not pending then return 0 end
     local owner, deadline = string.match(pending, '^(%x+) (%d+)$')
     if tonumber(deadline) <= tonumber(redis.call('TIME')[1]) then return 0 end
     local done = redis.call('HSETNX', KEYS[1] .. ':responses', ARGV[1], ARGV[2])
     redis.call('EXPIRE', KEYS[1] .. ':responses', 3600)
     redis.call('PUBLISH', KEYS[1] .. ':wake:' .. owner, '')
     return done",
    CLAIM,
];
const TAKE: &str = "local queue = KEYS[1] .. ':queue:' .. ARGV[1]
     local messages = redis.call('LRANGE', queue, 0, -1)
     redis.call('DEL', queue)
     return messages";
const CLAIM: &str = "local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
     if not pending or string.sub(pending, 1, #ARGV[2]) ~= ARGV[2] then return false end
     local response = redis.call('HGET', KEYS[1] .. ':responses', ARGV[1])
     if not response then return false end
     redis.call('HDEL', KEYS[1] .. ':responses', ARGV[1])
     redis.call('HDEL', KEYS[1] .. ':pending', ARGV[1])
     return response";

fn main() {
    let message = format!(r#"{{"jsonrpc":"2.0","method":"m","params":"{}"}}"#, "x".repeat(560));
    if let [_, dsn, id] = &std::env::args().collect::<Vec<_>>()[..] {
        return contender(dsn, id, &message);
    }
    let server = server::RedisServer::start();
    let engines = [(); 2].map(|()| Engine::open(&server.dsn("")).expect("the store opens"));
    let id = engines[0].create_session(NewSession::default()).unwrap().unwrap().id().to_owned();
    let sessions = engines.each_ref().map(|engine| engine.open_session(&id, None).unwrap().unwrap());
    let stream = sessions[0].attach(OwnerKind::Stream, None).unwrap();
    let names = ["Lua, plain", "Lua, several machines", "one process", "alternating between two"];
    let times = rounds([
        &mut lua_round(&server, PLAIN, "plain", &message),
        &mut lua_round(&server, SEVERAL_MACHINES, "several", &message),
        &mut || round([&sessions[0]; 2], &stream, &message),
        &mut || round([&sessions[0], &sessions[1]], &stream, &message),
    ]);
    let [plain, several, ..] = times.each_ref().map(|times| median(times).as_secs_f64());
    for (name, times) in names.iter().zip(&times) {
        let ours = median(times).as_secs_f64();
        println!(
            "{name:<34} {}   {:.2} x plain   {:.2} x several machines",
            shown(times),
            ours / plain,
            ours / several
        );
    }
    println!("{:<34} {}", "delivered to woken", shown(&wakes(&sessions, &stream, &message)));
    contention(&server, &id);
    println!("{:<34} {} bytes", "a session that waits for nothing", idle_session());
}

/// What each of many sessions takes of the server's memory, after the handshake and one call.
fn idle_session() -> u64 {
    const SESSIONS: u64 = 5_000;
    let server = server::RedisServer::start();
    let used = || -> u64 {
        let info = server.command(&["INFO", "memory"]);
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("the server tells");
        line.trim().parse().expect("a number")
    };
    let engine = Engine::open(&server.dsn("")).unwrap();
    let make = || {
        let session = engine.create_session(NewSession::default()).unwrap().unwrap();
        session.attributes().set("client_info", r#"{"name":"client","version":"1.0.0"}"#).unwrap();
        session.attributes().set("initialized", "true").unwrap();
        let owner = session.attach(OwnerKind::Reply, None).unwrap();
        session.detach(&owner).unwrap();
    };
    // What is there for all of them.
    make();
    let before = used();
    (0..SESSIONS).for_each(|_| make());
    (used() - before) / SESSIONS
}

fn round([a, b]: [&Session; 2], stream: &OwnerToken, message: &str) {
    let id = a.send_request(stream, message, "", 60_000).unwrap();
    assert_eq!(b.take_outgoing(stream, 9).unwrap().len(), 1);
    assert_eq!(a.deliver_response(id, message).unwrap(), Delivery::Delivered);
    assert!(matches!(b.claim(stream, id).unwrap(), Claim::Answered(_)));
}

fn lua_round(
    server: &server::RedisServer,
    scripts: [&'static str; 4],
    key: &'static str,
    message: &str,
) -> impl FnMut() {
    let client = redis::Client::open(format!("redis+unix://{}", server.socket().display())).unwrap();
    let mut connection = client.get_connection().unwrap();
    let scripts = scripts.map(redis::Script::new);
    let message = message.to_owned();
    move || {
        let [send, take, deliver, claim] = &scripts;
        let (owner, deadline) = ("0123456789abcdef0123456789abcdef", 4_000_000_000_u64);
        let id: i64 = send.key(key).arg(owner).arg(deadline).arg(&message).invoke(&mut connection).unwrap();
        let taken: Vec<String> = take.key(key).arg(owner).invoke(&mut connection).unwrap();
        assert_eq!(taken.len(), 1);
        let done: i64 = deliver.key(key).arg(id).arg(&message).arg(1).invoke(&mut connection).unwrap();
        assert_eq!(done, 1);
        let claimed: Option<String> = claim.key(key).arg(id).arg(owner).invoke(&mut connection).unwrap();
        assert!(claimed.is_some());
    }
}

fn rounds<const N: usize>(mut kinds: [&mut dyn FnMut(); N]) -> [Vec<Duration>; N] {
    let mut times = [const { Vec::new() }; N];
    for turn in 0..210 {
        for (round, times) in kinds.iter_mut().zip(&mut times) {
            // After the others' turn a process looks before each operation until it has not been overtaken for some.
            (0..5).for_each(|_| round());
            let measured = (0..20).map(|_| timed(&mut **round)).collect::<Vec<_>>();
            if turn >= 10 {
                times.extend(measured);
            }
        }
    }
    times.map(sorted)
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

/// Eight processes at once on one session: how many rounds each gets done in the same time.
fn contention(server: &server::RedisServer, id: &str) {
    let program = std::env::current_exe().expect("this program has a file");
    let start = || {
        let mut command = Command::new(&program);
        command.args([&server.dsn(""), id]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
    };
    let mut contenders: Vec<_> = (0..8).map(|_| start()).collect();
    // Each begins when its input ends.
    for contender in &mut contenders {
        drop(contender.stdin.take());
    }
    let outputs = contenders.into_iter().map(|contender| contender.wait_with_output().expect("it ends"));
    let lines: Vec<String> = outputs.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).collect();
    for (number, line) in lines.iter().enumerate() {
        println!("{:<34} {line}", format!("process {} of 8 on one session", number + 1));
    }
}

/// One of those processes.
fn contender(dsn: &str, id: &str, message: &str) {
    let engine = Engine::open(dsn).unwrap();
    let session = engine.open_session(id, None).unwrap().unwrap();
    let stream = session.attach(OwnerKind::Stream, None).unwrap();
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    let end = Instant::now() + Duration::from_secs(4);
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
    let done = times.len();
    println!("{done} operations in 4 s, each {}", shown(&sorted(times)));
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
