//! Private Redis servers for tests, and a proxy that loses connections.
//!
//! A server listens on a Unix socket in a directory of its own (and on a free loopback port where a test asks for one), keeps
//! nothing on disk unless told to, and ends with its value or with this process, however that dies. `REDIS_SERVER` names the
//! program: any Redis since 6.2, or Valkey.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// After so long something that should happen at once counts as never happening.
const PATIENCE: Duration = Duration::from_secs(20);

/// A private server.
pub struct RedisServer {
    directory: TempDir,
    prefix: Vec<String>,
    options: Vec<String>,
    port: u16,
    child: Child,
}

impl RedisServer {
    /// A new, empty server.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// The same with options as redis-server's command line has them: `&["--appendonly", "yes"]`.
    pub fn with(options: &[&str]) -> Self {
        Self::launch(&[], options, Port::None)
    }

    /// The same, that listens on a free loopback port as well.
    pub fn on_port(options: &[&str]) -> Self {
        Self::launch(&[], options, Port::Free)
    }

    /// The same, that listens on this loopback port as well.
    pub fn at_port(port: u16, options: &[&str]) -> Self {
        Self::launch(&[], options, Port::This(port))
    }

    /// A sentinel that watches a server as "main", with others until `quorum` of them call it dead.
    pub fn sentinel_of(master: &RedisServer, quorum: usize) -> Self {
        let directory = directory();
        let file = directory.path().join("sentinel.conf");
        let watched = format!("sentinel monitor main 127.0.0.1 {} {quorum}\n", master.port());
        let times = "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n";
        std::fs::write(&file, watched + times).expect("a configuration");
        let file = file.to_str().expect("its path is UTF-8").to_owned();
        Self::launch_in(directory, vec![], vec![file, "--sentinel".into()], Port::Free)
    }

    /// The same, started by a command that runs its arguments in place of itself.
    pub fn run_by(prefix: &[&str], options: &[&str]) -> Self {
        Self::launch(prefix, options, Port::None)
    }

    fn launch(prefix: &[&str], options: &[&str], port: Port) -> Self {
        let [prefix, options] = [prefix, options].map(|words| words.iter().map(|&word| word.to_owned()).collect());
        Self::launch_in(directory(), prefix, options, port)
    }

    fn launch_in(directory: TempDir, prefix: Vec<String>, options: Vec<String>, port: Port) -> Self {
        let (child, port) = spawn(directory.path(), &prefix, &options, port);
        Self { directory, prefix, options, port, child }
    }

    /// Its DSN by Unix socket, with options.
    pub fn dsn(&self, options: &str) -> String {
        dsn_of(&self.socket(), options)
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// Its loopback port; 0 for a server that has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A directory that ends with the server.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What the server answers to a command.
    pub fn command(&self, words: &[&str]) -> String {
        command(&self.socket(), words)
    }

    /// kill -9: what it has not written to its disk is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
    }

    /// Starts it again, on the same addresses, with what is on its disk.
    pub fn restart(&mut self) {
        let port = if self.port == 0 { Port::None } else { Port::This(self.port) };
        (self.child, self.port) = spawn(self.directory.path(), &self.prefix, &self.options, port);
    }

    /// It holds its connections and answers nothing, until `go_on`.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    /// The processor's time that its main thread has had; nothing where the kernel does not say.
    pub fn processor_time(&self) -> Option<Duration> {
        let statistics = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).ok()?;
        Some(Duration::from_nanos(statistics.split_whitespace().next()?.parse().ok()?))
    }

    fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        // SAFETY: the child has not been waited for, so the pid is still its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "the server can be signalled");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The DSN of a server's Unix socket.
pub fn dsn_of(socket: &Path, options: &str) -> String {
    format!("redis+unix://{}?{options}", socket.display())
}

/// What the server behind a socket answers to a command.
pub fn command(socket: &Path, words: &[&str]) -> String {
    let output = Command::new("redis-cli").arg("-s").arg(socket).args(words).output().expect("redis-cli runs");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Waits until something holds that sends no event.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A free loopback port. Somebody else may take it before it is used.
pub fn free_port() -> u16 {
    let probe = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    probe.local_addr().expect("it has an address").port()
}

fn directory() -> TempDir {
    // Not in $TMPDIR: a Unix socket's path ends at 107 bytes.
    tempfile::Builder::new().prefix("mcp-state-redis-").tempdir_in("/tmp").expect("a directory")
}

/// Where a server listens besides its socket.
#[derive(Clone, Copy)]
enum Port {
    None,
    Free,
    This(u16),
}

fn spawn(directory: &Path, prefix: &[String], options: &[String], port: Port) -> (Child, u16) {
    let program = program();
    // A file with a configuration comes before the options.
    let (file, options) = options.split_at(usize::from(options.first().is_some_and(|option| !option.starts_with('-'))));
    let words: Vec<_> = prefix.iter().chain([&program]).chain(file).collect();
    for _ in 0..5 {
        let port = match port {
            Port::None => 0,
            Port::Free => free_port(),
            Port::This(port) => port,
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("--port").arg(port.to_string()).args(["--bind", "127.0.0.1", "--unixsocket"]);
        command.arg(directory.join("redis.sock")).arg("--dir").arg(directory);
        command.args(["--save", "", "--logfile"]).arg(directory.join("log")).args(options);
        let mut child = spawn_for_life(command);
        let deadline = Instant::now() + PATIENCE;
        loop {
            // While it reads what is on its disk it answers with an error.
            if self::command(&directory.join("redis.sock"), &["ping"]).contains("PONG") {
                return (child, port);
            }
            if child.try_wait().expect("the child is ours").is_some() {
                break;
            }
            assert!(Instant::now() < deadline, "{}", log(directory));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(log(directory).contains("Address already in use"), "{}", log(directory));
    }
    panic!("no free port: {}", log(directory));
}

fn log(directory: &Path) -> String {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    format!("redis-server did not start (REDIS_SERVER names another program):\n{text}")
}

/// Starts a child that the kernel kills when this process dies. A child's death goes by the thread that made it, so one thread,
/// which never ends, makes them all.
fn spawn_for_life(command: Command) -> Child {
    type Job = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                let parent = std::process::id();
                let last_wish = move || {
                    // SAFETY: prctl and getppid are async-signal-safe and touch no memory.
                    let orphaned = unsafe {
                        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                        libc::getppid() as u32 != parent
                    };
                    if orphaned { Err(std::io::ErrorKind::Other.into()) } else { Ok(()) }
                };
                // SAFETY: between fork and exec the closure only makes two system calls.
                unsafe { command.pre_exec(last_wish) };
                command.stdin(Stdio::null()).stdout(Stdio::null());
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(jobs)
    });
    let (reply, child) = channel();
    spawner.lock().expect("nobody panicked with it").send((command, reply)).expect("the spawner never ends");
    child.recv().expect("the spawner answers").expect("redis-server starts: is it installed?")
}

/// Where a connection is lost, as seen from a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server never gets the request.
    Unsent,
    /// The server gets half of it.
    HalfSent,
    /// The server gets it after the client was told of the loss, when [`Proxy::let_the_late_through`] is called: what has been
    /// sent may still be on its way.
    Late,
    /// The server carries it out, the client never gets the answer.
    Unanswered,
    /// The client gets half of the answer.
    HalfAnswered,
}

impl Cut {
    pub const ALL: [Cut; 5] = [Cut::Unsent, Cut::HalfSent, Cut::Late, Cut::Unanswered, Cut::HalfAnswered];
}

/// Stands between clients and a server and loses one connection: at the n-th request that comes through, over all connections.
/// A request is what arrives at once, so the greetings of a new connection count as well.
pub struct Proxy {
    directory: TempDir,
    state: Arc<State>,
}

struct State {
    plan: Mutex<Plan>,
    target: Mutex<PathBuf>,
    clients: Mutex<HashMap<i32, UnixStream>>,
    ended: AtomicBool,
}

#[derive(Default)]
struct Plan {
    requests: usize,
    cut: Option<(usize, Cut)>,
    was_cut: bool,
    /// Nobody gets through.
    closed: bool,
    /// Nobody gets through once the connection has been lost.
    closes_at_cut: bool,
    /// How many connections there have been.
    connections: usize,
    /// Of so many of them, the first ones, nothing goes through in either direction, and nobody is told.
    swallowed: usize,
    late: Vec<(UnixStream, Vec<u8>)>,
}

impl Proxy {
    pub fn before(server: &RedisServer) -> Self {
        let directory = tempfile::Builder::new().prefix("mcp-state-proxy-").tempdir_in("/tmp").expect("a directory");
        let listener = UnixListener::bind(directory.path().join("redis.sock")).expect("a socket");
        let state = Arc::new(State {
            plan: Mutex::default(),
            target: Mutex::new(server.socket()),
            clients: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                let shared = shared.clone();
                std::thread::spawn(move || shared.serve(client));
            }
        });
        Self { directory, state }
    }

    pub fn dsn(&self, options: &str) -> String {
        dsn_of(&self.directory.path().join("redis.sock"), options)
    }

    /// Counts requests anew and loses the connection of the n-th, the first being 1.
    pub fn cut_at(&self, number: usize, cut: Cut) {
        self.plan(|plan| *plan = Plan { cut: Some((number, cut)), ..Plan::default() });
    }

    /// The same, and nobody gets through from then on, until `open`.
    pub fn cut_and_close_at(&self, number: usize, cut: Cut) {
        self.plan(|plan| *plan = Plan { cut: Some((number, cut)), closes_at_cut: true, ..Plan::default() });
    }

    /// Everybody gets through again, and nothing is cut any more. Whether it had come to the cut.
    pub fn open(&self) -> bool {
        self.plan(|plan| std::mem::take(plan).was_cut)
    }

    pub fn was_cut(&self) -> bool {
        self.plan(|plan| plan.was_cut)
    }

    /// Loses all connections; new ones lead to `server`.
    pub fn lead_to(&self, server: &RedisServer) {
        *self.state.target.lock().expect("nobody panicked with it") = server.socket();
        self.lose_all();
    }

    /// From now on nothing goes through on the connections there are, and nobody is told: as a load balancer does to connections
    /// that were idle for too long. New ones go through. How many there have been.
    pub fn swallow(&self) -> usize {
        self.plan(|plan| {
            plan.swallowed = plan.connections;
            plan.connections
        })
    }

    /// How many connections there have been since requests were counted anew.
    pub fn connections(&self) -> usize {
        self.plan(|plan| plan.connections)
    }

    /// Nobody gets through until `open`.
    pub fn close(&self) {
        self.plan(|plan| plan.closed = true);
        self.lose_all();
    }

    /// Loses all connections there are.
    pub fn lose_all(&self) {
        for client in self.state.clients.lock().expect("nobody panicked with it").values() {
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    /// Hands the server what was held back by [`Cut::Late`], and waits until it was carried out.
    pub fn let_the_late_through(&self) {
        for (mut server, request) in self.plan(|plan| std::mem::take(&mut plan.late)) {
            if server.write_all(&request).is_ok() {
                let _ = server.set_read_timeout(Some(Duration::from_millis(500)));
                let _ = server.read(&mut [0; 4096]);
            }
        }
    }

    fn plan<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        change(&mut self.state.plan.lock().expect("nobody panicked with it"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(self.directory.path().join("redis.sock"));
    }
}

impl State {
    /// Whether the connection of the request that has just come is to be lost; None when nobody gets through.
    fn count(&self) -> Option<Option<Cut>> {
        let mut plan = self.plan.lock().expect("nobody panicked with it");
        plan.requests += 1;
        match plan.cut {
            _ if plan.closed => None,
            Some((number, cut)) if number == plan.requests => {
                plan.was_cut = true;
                plan.closed = plan.closes_at_cut;
                Some(Some(cut))
            }
            _ => Some(None),
        }
    }

    fn serve(&self, client: UnixStream) {
        let Ok(twin) = client.try_clone() else { return };
        let number = twin.as_raw_fd();
        self.clients.lock().expect("nobody panicked with it").insert(number, twin);
        let (closed, connection) = {
            let mut plan = self.plan.lock().expect("nobody panicked with it");
            plan.connections += 1;
            (plan.closed, plan.connections)
        };
        if !closed {
            self.pass_on(&client, connection);
        }
        let _ = client.shutdown(Shutdown::Both);
        self.clients.lock().expect("nobody panicked with it").remove(&number);
    }

    fn pass_on(&self, mut client: &UnixStream, connection: usize) {
        let target = self.target.lock().expect("nobody panicked with it").clone();
        let Ok(mut server) = UnixStream::connect(target) else { return };
        let mut bytes = vec![0; 1 << 20];
        let mut lose_answer = None;
        while let Some([from_client, from_server]) = readable(client, &server) {
            if connection <= self.plan.lock().expect("nobody panicked with it").swallowed {
                let mut from = if from_server { &server } else { client };
                if from.read(&mut bytes).unwrap_or(0) == 0 {
                    return;
                }
            } else if from_server {
                let count = server.read(&mut bytes).unwrap_or(0);
                let sent = match lose_answer {
                    None => count,
                    Some(Cut::HalfAnswered) => count / 2,
                    Some(_) => 0,
                };
                if count == 0 || client.write_all(&bytes[..sent]).is_err() || lose_answer.is_some() {
                    return;
                }
            } else if from_client {
                let count = client.read(&mut bytes).unwrap_or(0);
                if count == 0 {
                    return;
                }
                let Some(cut) = self.count() else { return };
                let sent = match cut {
                    Some(Cut::Unsent) => return,
                    Some(Cut::HalfSent) => count / 2,
                    Some(Cut::Late) => {
                        let late = (server, bytes[..count].to_vec());
                        self.plan.lock().expect("nobody panicked with it").late.push(late);
                        return;
                    }
                    Some(Cut::Unanswered | Cut::HalfAnswered) | None => count,
                };
                if server.write_all(&bytes[..sent]).is_err() || cut == Some(Cut::HalfSent) {
                    return;
                }
                lose_answer = cut;
            }
        }
    }
}

/// Waits until one of two streams can be read, or has ended: which.
fn readable(one: &UnixStream, two: &UnixStream) -> Option<[bool; 2]> {
    let entry = |stream: &UnixStream| libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut entries = [entry(one), entry(two)];
    // SAFETY: `entries` are two valid entries, and both descriptors stay open meanwhile.
    (unsafe { libc::poll(entries.as_mut_ptr(), 2, -1) } > 0).then(|| entries.map(|entry| entry.revents != 0))
}

/// A new, empty store in a server that the tests of this program share, each with a prefix of its own.
pub fn shared(options: &str) -> String {
    static SERVER: OnceLock<RedisServer> = OnceLock::new();
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let prefix = NEXT.fetch_add(1, Ordering::Relaxed);
    SERVER.get_or_init(RedisServer::start).dsn(&format!("prefix=t{prefix}:&{options}"))
}

/// Whether there is a server to test with; says so once if not.
pub fn is_installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let installed = Command::new(program()).arg("--version").stdout(Stdio::null()).status().is_ok();
        assert!(installed || std::env::var_os("REDIS_SERVER").is_none(), "REDIS_SERVER names no program: {}", program());
        if !installed {
            eprintln!("left out: the tests of redis:// stores, for want of a redis-server (REDIS_SERVER names another program)");
        }
        installed
    })
}

fn program() -> String {
    std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into())
}
