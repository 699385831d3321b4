//! One process waits, another wakes it: the protocol of benches/php/wake.php.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_state::{Claim, Engine, Interest, NewSession, OwnerKind, OwnerToken, Session};

use crate::Result;
use crate::process::{fork, now, read_line};
use crate::samples::Samples;

const LEAST: usize = 3;
const SESSION: &str = "bench";
/// Nothing waits for longer than this, in seconds.
const PATIENCE: u64 = 10;

/// Both sides of a wait, each in a process of its own.
trait Pair {
    /// Begins in a process, after the fork.
    fn begin(&mut self) -> Result<()>;
    /// The waiting side asks. What the other side needs to answer.
    fn ask(&mut self) -> Result<i64>;
    /// Returns as soon as the answer is there.
    fn wait(&mut self) -> Result<()>;
    /// Takes the answer.
    fn finish(&mut self, question: i64) -> Result<()>;
    /// The other side answers.
    fn answer(&mut self, question: i64) -> Result<()>;
}

/// Serves `run MILLISECONDS IDLE-MICROSECONDS` lines.
pub(crate) fn serve(peer: &str, place: &str) -> Result<()> {
    let mut pair: Box<dyn Pair> = match peer {
        "ours-engine" => Box::new(Ours { dsn: place.into(), session: None, owner: None, cursor: 0 }),
        "futex" => Box::new(Futex::new()?),
        "eventfd" => Box::new(EventFd::new()?),
        _ => return Err(format!("there is no peer {peer}: ours-engine, futex or eventfd").into()),
    };
    if peer == "ours-engine" {
        let mut preparing = fork(|mut out| {
            let new = NewSession { id: Some(SESSION.into()), ..NewSession::default() };
            Engine::open(place)?.create_session(new)?;
            Ok(writeln!(out, "prepared")?)
        })?;
        read_line(&mut preparing.1)?;
    }
    let (mut to_waiting, mut waiting) = fork(|other| wait(&mut *pair, other))?;
    let (mut to_answering, mut answering) = fork(|mut driver| {
        pair.begin()?;
        let pid: u32 = read_line(&mut waiting)?.parse()?;
        writeln!(driver, "ready")?;
        for line in BufReader::new(driver.try_clone()?).lines() {
            let line = line?;
            let words: Vec<u64> = line.split(' ').skip(1).map(str::parse).collect::<std::result::Result<_, _>>()?;
            let [milliseconds, idle] = words[..] else { return Err("two numbers are expected".into()) };
            let idle = Duration::from_micros(idle);
            let (wake, after) = slice(&mut *pair, &mut to_waiting, &mut waiting, milliseconds, idle)?;
            writeln!(driver, r#"{{"pids":[{pid},{}],"wake":{wake},"after":{after}}}"#, std::process::id())?;
        }
        Ok(())
    })?;
    drop((to_waiting, waiting));
    read_line(&mut answering)?;
    println!("ready");
    for line in std::io::stdin().lines() {
        writeln!(to_answering, "{}", line?)?;
        println!("[{}]", read_line(&mut answering)?);
    }
    Ok(())
}

fn wait(pair: &mut dyn Pair, mut other: UnixStream) -> Result<()> {
    pair.begin()?;
    writeln!(other, "{}", std::process::id())?;
    for line in BufReader::new(other.try_clone()?).lines() {
        line?;
        let question = pair.ask()?;
        writeln!(other, "{question}")?;
        pair.wait()?;
        let woken = now();
        pair.finish(question)?;
        writeln!(other, "{woken}")?;
    }
    Ok(())
}

/// Times from the call that answers, and from its return.
fn slice(
    pair: &mut dyn Pair,
    to_waiting: &mut UnixStream,
    waiting: &mut BufReader<UnixStream>,
    milliseconds: u64,
    idle: Duration,
) -> Result<(Samples, Samples)> {
    let (mut wake, mut after) = (Samples::default(), Samples::default());
    let end = now() + milliseconds * 1_000_000;
    while now() < end || wake.len() < LEAST {
        writeln!(to_waiting, "ask")?;
        let question = read_line(waiting)?.parse()?;
        if !idle.is_zero() {
            std::thread::sleep(idle);
        }
        let start = now();
        pair.answer(question)?;
        let done = now();
        let woken: u64 = read_line(waiting)?.parse()?;
        wake.add(Duration::from_nanos(woken.saturating_sub(start)));
        after.add(Duration::from_nanos(woken.saturating_sub(done)));
    }
    Ok((wake, after))
}

/// The engine without PHP.
struct Ours {
    dsn: String,
    session: Option<Session>,
    owner: Option<OwnerToken>,
    cursor: u64,
}

impl Ours {
    fn session(&self) -> &Session {
        self.session.as_ref().expect("it has begun")
    }

    fn owner(&self) -> &OwnerToken {
        self.owner.as_ref().expect("it has begun")
    }
}

impl Pair for Ours {
    fn begin(&mut self) -> Result<()> {
        let session = Engine::open(&self.dsn)?.open_session(SESSION, None)?.ok_or("the session is not there")?;
        self.owner = Some(session.attach(OwnerKind::Stream, None)?);
        self.session = Some(session);
        Ok(())
    }

    fn ask(&mut self) -> Result<i64> {
        let request = r#"{"jsonrpc":"2.0","method":"elicitation/create"}"#;
        let id = self.session().send_request(self.owner(), request, "", 60_000)?;
        self.session().take_outgoing(self.owner(), 1)?;
        Ok(id)
    }

    fn wait(&mut self) -> Result<()> {
        let patience = Duration::from_secs(PATIENCE);
        self.cursor = self.session().wait(self.owner(), Interest::RESOLUTION, self.cursor, patience)?.cursor;
        Ok(())
    }

    fn finish(&mut self, question: i64) -> Result<()> {
        match self.session().claim(self.owner(), question)? {
            Claim::Answered(_) => Ok(()),
            other => Err(format!("there was no answer: {other:?}").into()),
        }
    }

    fn answer(&mut self, question: i64) -> Result<()> {
        self.session().deliver_response(question, r#"{"action":"accept"}"#)?;
        Ok(())
    }
}

/// A futex in shared memory, and nothing else.
struct Futex(&'static AtomicU32);

impl Futex {
    fn new() -> Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, never unmapped.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        // SAFETY: the page is zeroed and aligned, lives as long as the process, and is only used as this atomic.
        Ok(Self(unsafe { &*memory.cast::<AtomicU32>() }))
    }
}

impl Pair for Futex {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn ask(&mut self) -> Result<i64> {
        self.0.store(0, Ordering::SeqCst);
        Ok(0)
    }

    fn wait(&mut self) -> Result<()> {
        let patience = libc::timespec { tv_sec: PATIENCE as i64, tv_nsec: 0 };
        while self.0.load(Ordering::SeqCst) == 0 {
            // SAFETY: the word and the time live through the call.
            let result =
                unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT, 0, &raw const patience) };
            if result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
                return Err("there was no answer".into());
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: i64) -> Result<()> {
        Ok(())
    }

    fn answer(&mut self, _: i64) -> Result<()> {
        self.0.store(1, Ordering::SeqCst);
        // SAFETY: the word lives through the call.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, 1) };
        Ok(())
    }
}

/// An eventfd that both processes have.
struct EventFd(File);

impl EventFd {
    fn new() -> Result<Self> {
        // SAFETY: the call has no memory to touch.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }
}

impl Pair for EventFd {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn ask(&mut self) -> Result<i64> {
        Ok(0)
    }

    fn wait(&mut self) -> Result<()> {
        Ok(self.0.read_exact(&mut [0; 8])?)
    }

    fn finish(&mut self, _: i64) -> Result<()> {
        Ok(())
    }

    fn answer(&mut self, _: i64) -> Result<()> {
        Ok(self.0.write_all(&1u64.to_ne_bytes())?)
    }
}
