//! Processes that tests start: each under a deadline, so that a hang is seen as a hang.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use tempfile::TempDir;

/// What a test or a part of one comes to.
pub type Result<T = ()> = std::result::Result<T, Failed>;

/// How long a worker may run.
pub const WORKER_SECONDS: u32 = 180;
/// How long a whole test program may run.
pub const TEST_SECONDS: u32 = 840;

/// Ends this process by SIGALRM after so many seconds.
pub fn deadline(seconds: u32) {
    // SAFETY: alarm touches no memory.
    unsafe { libc::alarm(seconds) };
}

static COPY: OnceLock<TempDir> = OnceLock::new();

/// A copy of this program where every user can run it: it may be where only root can read. To be made before there are threads,
/// since a file cannot be run while a child that another thread has just forked has it open for writing.
pub fn copy_program() -> PathBuf {
    let copy = COPY.get_or_init(|| {
        let readable = std::fs::Permissions::from_mode(0o755);
        let copy = tempfile::Builder::new().permissions(readable).tempdir().expect("a directory");
        std::fs::copy(std::env::current_exe().expect("this program"), copy.path().join("worker")).expect("a copy");
        copy
    });
    copy.path().join("worker")
}

/// Removes the copy at the end: nothing in a static is dropped.
pub fn remove_copy() {
    if let Some(copy) = COPY.get() {
        let _ = std::fs::remove_dir_all(copy.path());
    }
}

/// A worker process; it is killed when the test is done with it.
pub struct Worker {
    pub child: Child,
    output: BufReader<std::process::ChildStdout>,
    input: ChildStdin,
}

impl Worker {
    pub fn start(role: &[&str]) -> Self {
        Self::start_with(role, &[])
    }

    pub fn start_with(role: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("--role").args(role).envs(environment.iter().copied());
        Self::spawn(command)
    }

    pub fn in_namespace(role: &[&str]) -> Self {
        Self::unshared(&["--mount-proc"], role)
    }

    /// A worker in a pid namespace of its own that sees the `/proc` of this process's namespace.
    pub fn with_foreign_proc(role: &[&str]) -> Self {
        Self::unshared(&[], role)
    }

    fn unshared(options: &[&str], role: &[&str]) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).args(options);
        command.arg(std::env::current_exe().expect("this program")).arg("--role").args(role);
        Self::spawn(command)
    }

    pub fn as_user(role: &[&str], user: u32, group: u32) -> Self {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(copy_program());
        command.arg("--role").args(role).uid(user).gid(group).current_dir("/");
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a worker starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let input = child.stdin.take().expect("piped");
        Self { child, output, input }
    }

    /// Tells the worker something.
    pub fn tell(&mut self, line: &str) {
        // In one piece: it may do all it has to and be gone before a second one is written.
        self.input.write_all(format!("{line}\n").as_bytes()).expect("the worker listens");
    }

    /// The worker's next line; empty when it has ended.
    pub fn any_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// The rest of the worker's next line, which begins with `word`.
    pub fn line(&mut self, word: &str) -> String {
        let line = self.any_line();
        match line.strip_prefix(word) {
            Some(rest) => rest.trim_start().to_owned(),
            None if line.is_empty() => panic!("expected {word:?}, the worker ended: {}", self.end()),
            None => panic!("expected {word:?}, the worker said {line:?}"),
        }
    }

    /// Waits for the worker's end, and says what it was.
    pub fn end(&mut self) -> String {
        let status = self.child.wait().expect("the worker ends");
        if status.signal() == Some(libc::SIGALRM) { format!("it hung ({status})") } else { status.to_string() }
    }

    /// All lines that are left, once the worker has ended.
    pub fn rest(&mut self) -> Vec<String> {
        self.output.by_ref().lines().map_while(std::result::Result::ok).collect()
    }

    pub fn and_then_line(mut self, word: &str) -> String {
        self.line(word)
    }

    /// What the worker said went wrong, if it did; to be asked when it has ended.
    pub fn complaint(&mut self) -> Option<String> {
        let lines = self.output.by_ref().lines().map_while(std::result::Result::ok);
        lines.into_iter().find(|line| line.starts_with("wrong"))
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the worker is this process's own").is_none()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("the worker can be killed");
        self.child.wait().expect("the worker ends");
    }

    pub fn finish(mut self) -> ExitStatus {
        self.child.wait().expect("the worker ends")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A mounted file system, unmounted at the end.
pub struct Mount(TempDir);

impl Mount {
    pub fn tmpfs(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "none"]).arg(directory.path());
        command.stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success()).then(|| Self(directory))
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().canonicalize().expect("the mount is there")
    }

    /// Bytes that the file system has given away.
    pub fn taken(&self) -> Result<u64> {
        let shown = Command::new("df").args(["--output=used", "--block-size=1"]).arg(self.path()).output()?;
        Ok(String::from_utf8(shown.stdout)?.lines().nth(1).ok_or("df shows a line")?.trim().parse()?)
    }
}

impl Mount {
    /// A new btrfs of so many bytes in a file, where the machine has loop devices and the tool to make one.
    pub fn btrfs(bytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let image = directory.path().with_extension("btrfs");
        let file = std::fs::File::create(&image).expect("an image");
        file.set_len(bytes).expect("its length");
        let run = |program: &str, arguments: &[&str], on: &[&Path]| {
            let mut command = Command::new(program);
            command.args(arguments).args(on).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let mounted = run("mkfs.btrfs", &["--quiet"], &[&image])
            && run("mount", &["-t", "btrfs", "-o", "loop"], &[&image, directory.path()]);
        // The mount keeps it.
        let _ = std::fs::remove_file(image);
        mounted.then(|| Self(directory))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

/// A memory cgroup, removed at the end.
pub struct MemoryCgroup(PathBuf);

impl MemoryCgroup {
    /// One that may take so many bytes; why not, where none can be made.
    pub fn new(bytes: u64) -> std::result::Result<Self, String> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("mcp-state-test-{}-{number}", std::process::id());
        let mut why = Vec::new();
        for (top, limit) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")] {
            // Version 2 lets a cgroup have the controllers that the one above hands down.
            let _ = std::fs::write(Path::new(top).join("cgroup.subtree_control"), "+memory");
            let cgroup = Self(Path::new(top).join(&name));
            let made = std::fs::create_dir(&cgroup.0);
            match made.and_then(|()| std::fs::OpenOptions::new().write(true).open(cgroup.0.join(limit))) {
                Ok(mut file) => match file.write_all(bytes.to_string().as_bytes()) {
                    Ok(()) => return Ok(cgroup),
                    Err(error) => why.push(format!("{limit}: {error}")),
                },
                Err(error) => why.push(format!("{}: {error}", cgroup.0.display())),
            }
        }
        Err(why.join("; "))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        // The kernel needs a moment to see that its processes have ended.
        let since = Instant::now();
        while std::fs::remove_dir(&self.0).is_err() && self.0.exists() && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The kernel drops a killed process's locks a moment after its parent has been told.
pub fn wait_until_nobody_holds(guard: &Path) -> Result {
    use std::os::fd::AsRawFd;
    let guard = std::fs::File::open(guard)?;
    let deadline = Instant::now() + Duration::from_secs(20);
    // SAFETY: the descriptor is open; flock touches no memory.
    while unsafe { libc::flock(guard.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        assert!(Instant::now() < deadline, "the guard is never free");
        std::thread::yield_now();
    }
    Ok(())
}

pub fn cannot_mount() -> Result {
    Err("this test mounts a small file system, which needs root".into())
}

pub fn is_root() -> bool {
    // SAFETY: geteuid cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Writes a file until the file system has no byte left.
pub fn fill(path: &Path) -> Result {
    let mut file = std::fs::File::create(path)?;
    for size in [65_536, 4_096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    Ok(())
}
