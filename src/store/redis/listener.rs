//! Waiting for rings: one connection of the process, subscribed to the channels its waiters listen on.
//!
//! A writer's script publishes to the channel of each owner it rings, in the same step in which it writes. A waiter's channel is
//! subscribed to before it looks at the state, so whatever is written after the look reaches the connection, and is read during
//! the sleep (G9). A connection that is lost ends every sleep: who waits looks, and subscribes anew.
//!
//! Whichever waiter comes first reads the connection, for all: what is for others it hands to them through their channel
//! (crossbeam), and when it leaves it tells another one to read on. So one waiter needs no thread and no second hop, and many
//! need no second connection. A waiter whose channel is new while somebody else reads asks the reader, by a message to a
//! channel of the process's own, to subscribe for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use redis::{Connection, ProtocolVersion, PushInfo, PushKind, RedisResult, Value};

use super::connection::{Connections, PROBE, SILENCE};
use super::trouble::is_interrupted;
use crate::bell::{SLICE, Slept};
use crate::ids::random_bytes;
use crate::store::Ear;

/// How many channels stay subscribed to that nobody listens on, for the next wait of the same owner.
const KEPT: usize = 64;
/// How long a waiter leaves it to a reader to subscribe before it sees whether it can itself.
const HANDOVER: Duration = Duration::from_millis(20);

/// What a waiter is told: a flag, then a wake-up. One wake-up may stand for several flags.
struct Bed {
    /// Look again.
    rung: AtomicBool,
    /// The channel is subscribed to.
    subscribed: AtomicBool,
    /// Nobody reads the connection: read it.
    read: AtomicBool,
    wake: Sender<()>,
}

impl Bed {
    fn tell(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::SeqCst);
        // When it is full, a wake-up is on its way.
        let _ = self.wake.try_send(());
    }
}

/// The waiters of a process.
pub(super) struct Listener {
    connections: Arc<Connections>,
    waiters: Mutex<Waiters>,
    /// Held by whoever reads.
    line: Mutex<Option<Line>>,
}

#[derive(Default)]
struct Waiters {
    by_channel: HashMap<String, Vec<Arc<Bed>>>,
    /// Channels that the reader is asked to subscribe to, and who asks.
    wanted: Vec<(String, Arc<Bed>)>,
}

impl Waiters {
    fn ring(&self, channel: &str) {
        for waiter in self.by_channel.get(channel).into_iter().flatten() {
            waiter.tell(&waiter.rung);
        }
    }

    fn ring_everybody(&self) {
        for waiter in self.by_channel.values().flatten() {
            waiter.tell(&waiter.rung);
        }
    }

    /// Tells another waiter to read on.
    fn hand_over(&self, from: &Arc<Bed>) {
        if let Some(other) = self.by_channel.values().flatten().find(|waiter| !Arc::ptr_eq(waiter, from)) {
            other.tell(&other.read);
        }
    }
}

/// A subscribed connection.
struct Line {
    connection: Connection,
    pushes: mpsc::Receiver<PushInfo>,
    /// The channels it is subscribed to, the oldest first; the first is the process's own.
    channels: Vec<String>,
    /// When something came last.
    heard: Instant,
    /// How long an answer may take.
    answer: Duration,
}

/// A waiter's place.
struct Waiter {
    listener: Arc<Listener>,
    channel: String,
    bed: Arc<Bed>,
    woken: Receiver<()>,
}

impl Listener {
    pub(super) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, waiters: Mutex::default(), line: Mutex::default() }
    }

    /// Listens on a channel: whatever is published from now on ends the ear's sleep. Where nothing can be heard, the ear sleeps
    /// but for a moment: what a waiter waits for may be there all the same, and only the look at the state says whether it can
    /// be had.
    pub(super) fn listen(self: &Arc<Self>, channel: String) -> Box<dyn Ear> {
        let (wake, woken) = bounded(1);
        let [rung, subscribed, read] = [(); 3].map(|()| AtomicBool::new(false));
        let bed = Arc::new(Bed { rung, subscribed, read, wake });
        self.waiters.lock().by_channel.entry(channel.clone()).or_default().push(bed.clone());
        // From here on the waiter is forgotten when it is dropped.
        let waiter = Waiter { listener: self.clone(), channel, bed, woken };
        loop {
            if let Some(mut line) = self.line.try_lock() {
                let subscribed = self.subscribe(&mut line, std::slice::from_ref(&waiter.channel));
                drop(line);
                return if subscribed.is_ok() { Box::new(waiter) } else { Box::new(Deaf) };
            }
            self.waiters.lock().wanted.push((waiter.channel.clone(), waiter.bed.clone()));
            let own = own_channel(&self.connections);
            if self.connections.read(|link| link.ask(redis::cmd("PUBLISH").arg(&own).arg(""))).is_err() {
                return Box::new(Deaf);
            }
            let end = Instant::now() + HANDOVER;
            while waiter.woken.recv_deadline(end).is_ok() {
                if waiter.bed.subscribed.load(Ordering::SeqCst) {
                    return Box::new(waiter);
                }
            }
        }
    }

    /// Makes sure that the line is there and subscribed to `channels`.
    fn subscribe(&self, line: &mut Option<Line>, channels: &[String]) -> RedisResult<()> {
        let subscribed = self.try_subscribe(line, channels);
        // The line may have been closed while nobody read it.
        let subscribed = if subscribed.is_err() && line.is_some() {
            self.give_up(line);
            self.try_subscribe(line, channels)
        } else {
            subscribed
        };
        if subscribed.is_err() {
            self.give_up(line);
        }
        subscribed
    }

    fn try_subscribe(&self, line: &mut Option<Line>, channels: &[String]) -> RedisResult<()> {
        if line.is_none() {
            let mut connection = self.connections.connect_one(ProtocolVersion::RESP3)?;
            let (sender, pushes) = mpsc::channel();
            connection.set_push_sender(sender);
            let answer = Duration::from_millis(self.connections.server().timeout_ms);
            let mut new = Line { connection, pushes, channels: Vec::new(), heard: Instant::now(), answer };
            let listening = self.waiters.lock().by_channel.keys().cloned().collect::<Vec<_>>();
            new.subscribe([own_channel(&self.connections)].into_iter().chain(listening).collect())?;
            *line = Some(new);
        }
        let line = line.as_mut().expect("it was just made");
        if line.heard.elapsed() > SILENCE {
            line.ping(PROBE)?;
        }
        let new: Vec<_> = channels.iter().filter(|channel| !line.channels.contains(channel)).cloned().collect();
        if !new.is_empty() {
            self.forget_some(line)?;
            line.subscribe(new)?;
        }
        self.deal_out(line);
        Ok(())
    }

    /// Unsubscribes from what nobody has listened on for the longest time.
    fn forget_some(&self, line: &mut Line) -> RedisResult<()> {
        let waiters = self.waiters.lock();
        let silent = line.channels.iter().skip(1).filter(|channel| !waiters.by_channel.contains_key(*channel));
        let silent: Vec<String> = silent.cloned().collect();
        drop(waiters);
        let Some(surplus @ 1..) = silent.len().checked_sub(KEPT) else { return Ok(()) };
        line.connection.unsubscribe_resp3(&silent[..surplus])?;
        line.channels.retain(|channel| !silent[..surplus].contains(channel));
        Ok(())
    }

    /// Hands what was read to whom it is for.
    fn deal_out(&self, line: &Line) {
        while let Ok(push) = line.pushes.try_recv() {
            if push.kind == PushKind::Message
                && let Some(Value::BulkString(channel)) = push.data.first()
                && let Ok(channel) = std::str::from_utf8(channel)
            {
                self.waiters.lock().ring(channel);
            }
        }
    }

    /// Does what waiters have asked of the reader.
    fn serve(&self, line: &mut Option<Line>) {
        let wanted = std::mem::take(&mut self.waiters.lock().wanted);
        let (channels, askers): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
        if !channels.is_empty() && self.subscribe(line, &channels).is_ok() {
            for asker in askers {
                asker.tell(&asker.subscribed);
            }
        }
    }

    /// The line is lost: everybody looks, and whoever listens next makes a new one.
    fn give_up(&self, line: &mut Option<Line>) {
        *line = None;
        self.waiters.lock().ring_everybody();
    }

    /// Reads for everybody until `waiter` is told something, or the time is over.
    fn read(&self, line: &mut Option<Line>, waiter: &Waiter, end: Instant) -> Slept {
        loop {
            self.serve(line);
            if waiter.bed.rung.load(Ordering::SeqCst) {
                return Slept::Rung;
            }
            let Some(open) = line else { return Slept::Rung };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Slept::TimedOut;
            }
            match open.wait(left) {
                Ok(()) => self.deal_out(open),
                Err(error) if error.is_timeout() => {}
                Err(error) if is_interrupted(&error) => return Slept::Interrupted,
                Err(_) => self.give_up(line),
            }
        }
    }
}

impl Line {
    fn subscribe(&mut self, channels: Vec<String>) -> RedisResult<()> {
        self.connection.subscribe_resp3(&channels)?;
        self.channels.extend(channels);
        // Its answer comes after all channels are subscribed to.
        self.ping(self.answer)
    }

    fn ping(&mut self, patience: Duration) -> RedisResult<()> {
        self.connection.set_read_timeout(Some(patience.min(self.answer)))?;
        let answered = redis::cmd("PING").query::<String>(&mut self.connection).map(|_| ());
        self.connection.set_read_timeout(Some(self.answer))?;
        if answered.is_ok() {
            self.heard = Instant::now();
        }
        answered
    }

    /// Waits until something was pushed.
    fn wait(&mut self, timeout: Duration) -> RedisResult<()> {
        let before = Some(timeout.max(Duration::from_millis(1)));
        self.connection.set_read_timeout(before)?;
        let mut subscribed = self.connection.as_pubsub();
        let result = subscribed.get_message();
        // Dropping it would unsubscribe; it holds nothing else.
        std::mem::forget(subscribed);
        self.connection.set_read_timeout(Some(self.answer))?;
        if result.is_ok() {
            self.heard = Instant::now();
        }
        result.map(|_| ())
    }
}

/// The ear of who cannot listen.
struct Deaf;

impl Ear for Deaf {
    fn sleep(&self, timeout: Duration) -> Slept {
        let longest = i32::try_from(timeout.min(PROBE).as_millis()).unwrap_or(0);
        // SAFETY: with no entries nothing is read or written. Unlike the standard library's sleep, it ends when a signal comes.
        match unsafe { libc::poll(std::ptr::null_mut(), 0, longest) } {
            0 => Slept::TimedOut,
            _ => Slept::Interrupted,
        }
    }
}

impl Ear for Waiter {
    fn sleep(&self, timeout: Duration) -> Slept {
        let end = Instant::now() + timeout.min(SLICE);
        loop {
            if self.bed.rung.load(Ordering::SeqCst) {
                return Slept::Rung;
            }
            if let Some(mut line) = self.listener.line.try_lock() {
                let slept = self.listener.read(&mut line, self, end);
                drop(line);
                self.listener.waiters.lock().hand_over(&self.bed);
                return slept;
            }
            if self.woken.recv_deadline(end).is_err() {
                return Slept::TimedOut;
            }
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self.listener.waiters.lock();
        if let Some(listening) = waiters.by_channel.get_mut(&self.channel) {
            listening.retain(|bed| !Arc::ptr_eq(bed, &self.bed));
            if listening.is_empty() {
                waiters.by_channel.remove(&self.channel);
            }
        }
        // What it was told to do is another's to do now.
        if self.bed.read.load(Ordering::SeqCst) {
            waiters.hand_over(&self.bed);
        }
    }
}

/// The channel on which the reader of this process is asked to look.
fn own_channel(connections: &Connections) -> String {
    static OWN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let own = OWN.get_or_init(|| u64::from_le_bytes(random_bytes()));
    format!("{}reader:{own:016x}", connections.server().prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsn::{Dsn, Place};
    use crate::store::redis::private_server as server;

    fn listener(server: &server::RedisServer) -> Arc<Listener> {
        let Place::Redis(server) = Dsn::parse(&server.dsn("")).unwrap().place else { panic!("it is a server's") };
        Arc::new(Listener::new(Arc::new(Connections::new(*server))))
    }

    /// Until it rings; there is nothing here that would look at the state.
    fn sleep(ear: &dyn Ear) {
        assert!((0..30).any(|_| ear.sleep(SLICE) == Slept::Rung), "the ring was lost");
    }

    #[test]
    fn g9_of_many_waiters_of_a_process_each_hears_its_own_ring() {
        let server = server::RedisServer::start();
        let listener = listener(&server);
        let channels: Vec<_> = (0..6).map(|number| format!("channel{number}")).collect();
        // In both orders: the one who reads leaves first, or last.
        for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]] {
            let (rang, heard) = mpsc::channel();
            std::thread::scope(|scope| {
                let (ready, listens) = mpsc::channel();
                for (number, channel) in channels.iter().enumerate() {
                    let (ready, rang, listener) = (ready.clone(), rang.clone(), listener.clone());
                    scope.spawn(move || {
                        let ear = listener.listen(channel.clone());
                        ready.send(()).unwrap();
                        sleep(&*ear);
                        rang.send(number).unwrap();
                    });
                }
                for _ in &channels {
                    listens.recv().unwrap();
                }
                for number in order {
                    assert_eq!(server.command(&["PUBLISH", &channels[number], ""]), "1");
                    assert_eq!(heard.recv().unwrap(), number, "nobody else's ring wakes");
                }
            });
        }
    }

    #[test]
    fn g9_a_lost_connection_ends_the_sleep_of_every_waiter() {
        let server = server::RedisServer::start();
        let listener = listener(&server);
        std::thread::scope(|scope| {
            let (ready, listens) = mpsc::channel();
            for number in 0..3 {
                let (ready, listener) = (ready.clone(), listener.clone());
                scope.spawn(move || {
                    let ear = listener.listen(format!("channel{number}"));
                    ready.send(()).unwrap();
                    sleep(&*ear);
                });
            }
            for _ in 0..3 {
                listens.recv().unwrap();
            }
            server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        });
    }
}
