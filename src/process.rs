//! The identity of processes, and whether a process is alive.
//!
//! The kernel reuses pids. So a process is identified by its pid, its start time and its pid namespace. `/proc` is trusted only if
//! it shows this process under its own pid: a container may have the `/proc` of another pid namespace, in which a pid belongs to
//! another process. If `/proc` is not trusted, or the process is in another pid namespace, its state is unknown, and only its
//! lease tells whether it is alive.

use std::fs;
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::ids::Digest;
use crate::{fault, fork};

/// The identity of a process. No other process of the same boot has an equal one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// The pid; 0 if the start time or the namespace is unknown.
    pub pid: u32,
    /// The start time, in clock ticks since boot.
    pub started: u64,
    /// The pid namespace: its inode, combined with a digest of the boot id, since machines have equal inodes.
    pub namespace: u64,
}

/// Whether a process is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The process runs or is stopped.
    Alive,
    /// The process has ended; it may be a zombie.
    Dead,
    /// This process cannot observe the other one.
    Unknown,
}

impl Process {
    /// Returns the identity of the calling process. After a fork, the child has another one.
    pub fn current() -> Self {
        static CURRENT: Mutex<Option<(u64, Process)>> = Mutex::new(None);
        let generation = fork::generation();
        // The child of a fork never gets a lock that another thread held. It then reads /proc at each call.
        let Some(mut current) = CURRENT.try_lock_for(std::time::Duration::from_millis(1)) else {
            return Self::read();
        };
        match *current {
            Some((seen, process)) if seen == generation => process,
            _ => {
                let process = Self::read();
                *current = Some((generation, process));
                process
            }
        }
    }

    /// Reads the identity of this process from `/proc`.
    fn read() -> Self {
        let pid = std::process::id();
        match (Stat::of("self"), pid_namespace()) {
            (Some(stat), Some(inode)) if stat.pid == pid && is_of_our_namespace() => {
                Self { pid, started: stat.started, namespace: inode ^ this_boot() }
            }
            _ => Self::default(),
        }
    }

    /// Returns whether the process is alive. The engine releases the owners of a dead process.
    pub fn liveness(&self) -> Liveness {
        let current = Self::current();
        if self.pid == 0 || current.pid == 0 || self.namespace != current.namespace {
            return Liveness::Unknown;
        }
        if *self == current {
            return Liveness::Alive;
        }
        match Stat::of(&self.pid.to_string()) {
            Some(stat) if stat.started.abs_diff(self.started) <= SAME_START && !stat.ended => Liveness::Alive,
            Some(_) => Liveness::Dead,
            // /proc mounted with hidepid does not show the processes of other users.
            None if process_exists(self.pid) => Liveness::Unknown,
            None => Liveness::Dead,
        }
    }
}

/// The greatest difference of two reports of one start time, in clock ticks. Emulators and sandboxes compute start times from other
/// clocks than the kernel. The kernel does not reuse a pid within this time, since it uses all others first.
const SAME_START: u64 = 10;

/// Whether `/proc` is mounted for the pid namespace of this process. `NSpid` lists the pids of a process from the namespace of the
/// mount down to its own, so one pid means that both are equal. Kernels without `NSpid` count as a match.
fn is_of_our_namespace() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("NSpid:")).is_none_or(|pids| pids.split_whitespace().count() == 1)
}

/// Returns 64 bits of a digest of the boot id.
fn this_boot() -> u64 {
    let Digest(digest) = Digest::of(boot_id().as_bytes());
    u64::from_le_bytes(digest[..8].try_into().expect("8 of 16 bytes"))
}

/// Returns the inode of this process's pid namespace.
pub(crate) fn pid_namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino())
}

/// Returns the kernel's random id of this boot; empty if it cannot be read.
pub(crate) fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID
        .get_or_init(|| {
            let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
            fault::pretended("BOOT").unwrap_or_else(read)
        })
        .clone()
}

/// Whether both are the id of one boot. An id that could not be read equals no other.
pub(crate) fn is_same_boot(one: &str, other: &str) -> bool {
    !one.is_empty() && one == other
}

/// Returns the offset of the boot clock in this process's time namespace, in milliseconds.
pub(crate) fn time_offset() -> i64 {
    let pretended = fault::pretended("TIME_OFFSET_MS").and_then(|text| text.parse().ok());
    let read = || parse_time_offset(&fs::read_to_string("/proc/self/timens_offsets").ok()?);
    pretended.or_else(read).unwrap_or(0)
}

/// Parses lines with the name of a clock, seconds and nanoseconds (`time_namespaces(7)`).
fn parse_time_offset(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with("boottime"))?;
    let mut numbers = line.split_whitespace().skip(1).map(str::parse::<i64>);
    let (seconds, nanoseconds) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000))
}

/// Returns the process that holds an exclusive `flock` on a file, from `/proc/locks`.
pub(crate) fn who_locks(file: &fs::File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino();
    find_lock(&fs::read_to_string("/proc/locks").ok()?, inode)
}

/// Whether `/proc/locks` shows a `flock` on a file.
pub(crate) fn is_locked(file: &fs::File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = file.metadata() else { return false };
    let place = format!(":{}", metadata.ino());
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1) == Some(&"FLOCK") && fields.get(5).is_some_and(|field| field.ends_with(&place))
    })
}

/// Parses lines such as `1: FLOCK ADVISORY WRITE 4711 00:19:5678 0 EOF` (`proc_locks(5)`). The kernel writes no positive pid for a
/// process of another pid namespace. Devices are not compared, since some file systems show another one here.
fn find_lock(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, "WRITE", pid, place] = fields.get(1..6)? else { return None };
        let is_match = place.rsplit(':').next()?.parse() == Ok(inode);
        pid.parse().ok().filter(|&pid| is_match && pid > 0)
    })
}

fn process_exists(pid: u32) -> bool {
    // SAFETY: kill with signal 0 sends no signal and only checks the pid.
    let found = unsafe { libc::kill(pid as libc::pid_t, 0) } == 0;
    found || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// The kernel's flag of an exiting process (`PF_EXITING`). A killed process closes its sockets before it becomes a zombie, so its
/// client may already send the answer to another process.
const EXITING: u64 = 0x4;

/// The fields of `/proc/PID/stat`.
struct Stat {
    pid: u32,
    started: u64,
    ended: bool,
}

impl Stat {
    fn of(pid: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The command in parentheses may contain any character, so fields are counted from the last parenthesis on (proc(5)).
    fn parse(line: &str) -> Option<Self> {
        let pid = line.split_whitespace().next()?.parse().ok()?;
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        let ended = matches!(*fields.first()?, "Z" | "X" | "x") || flags & EXITING != 0;
        Some(Self { pid, started: fields.get(19)?.parse().ok()?, ended })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn this_process_is_alive_and_the_same_pid_of_another_time_is_dead() {
        let current = Process::current();
        assert_eq!(current.liveness(), Liveness::Alive);
        assert_eq!(Process { started: current.started + SAME_START + 1, ..current }.liveness(), Liveness::Dead);
        assert_eq!(Process { namespace: current.namespace + 1, ..current }.liveness(), Liveness::Unknown);
        assert_eq!(Process::default().liveness(), Liveness::Unknown);
    }

    #[test]
    fn a_start_that_another_clock_puts_some_ticks_away_is_the_same_start() {
        let current = Process::current();
        for ticks in 1..=SAME_START {
            for started in [current.started + ticks, current.started.saturating_sub(ticks)] {
                assert_eq!(Process { started, ..current }.liveness(), Liveness::Alive, "{ticks} ticks");
            }
        }
    }

    #[test]
    fn a_child_is_alive_until_it_has_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let stat = Stat::of(&child.id().to_string()).unwrap();
        let process = Process { pid: child.id(), started: stat.started, ..Process::current() };
        assert_eq!(process.liveness(), Liveness::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process.liveness(), Liveness::Dead);
    }

    #[test]
    fn the_boot_clocks_offset_is_read_in_milliseconds() {
        let read = |text| parse_time_offset(text);
        assert_eq!(read("monotonic           0         0\nboottime            0         0\n"), Some(0));
        assert_eq!(read("monotonic           0         0\nboottime            100000 500000000\n"), Some(100_000_500));
        assert_eq!(read("boottime -3 0"), Some(-3000));
        assert_eq!(read("boottime later"), None);
    }

    #[test]
    fn the_holder_of_a_lock_is_the_one_that_has_it_not_one_that_waits_for_it() {
        let locks = "1: POSIX  ADVISORY  WRITE 1 00:19:42 0 EOF\n\
            2: FLOCK  ADVISORY  READ 2 00:19:42 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 3 00:19:421 0 EOF\n\
            4: FLOCK  ADVISORY  WRITE 4711 00:19:42 0 EOF\n\
            4: -> FLOCK  ADVISORY  WRITE 5 00:19:43 0 EOF\n\
            5: FLOCK  ADVISORY  WRITE 0 00:19:44 0 EOF\n";
        let found = [42, 421, 43, 44].map(|inode| find_lock(locks, inode));
        assert_eq!(found, [Some(4711), Some(3), None, None]);
    }

    #[test]
    fn a_command_may_hold_parentheses_and_spaces() {
        let line = "7 (a ) (b) S 1 7 7 0 -1 64 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.pid, stat.started, stat.ended), (7, 4242, false));
    }

    #[test]
    fn a_process_that_is_on_its_way_out_has_ended() {
        for (state, flags, ended) in [("R", 64, false), ("R", 68, true), ("Z", 64, true), ("T", 64, false)] {
            let line = format!("7 (a) {state} 1 7 7 0 -1 {flags} 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1");
            assert_eq!(Stat::parse(&line).unwrap().ended, ended, "{line}");
        }
    }
}
