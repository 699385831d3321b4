//! Processes as owners name them, and whether they are still there.
//!
//! A pid alone is not a name: it is reused. A process is its pid, the time it was started and the pid namespace it lives in.
//! `/proc` is believed only where it shows this process under its own pid: a container may see the `/proc` of another pid
//! namespace, in which every pid means another process. Of a process in another namespace, or where `/proc` is not believed,
//! nothing can be said: its lease is the only sign of life.

use std::fs;
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::ids::Digest;
use crate::{fault, fork};

/// Names a process for as long as the machine runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number, 0 when it could not say more than that.
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub started: u64,
    /// Its pid namespace: the inode, mixed with a digest of the machine's boot id, since inodes repeat on other machines.
    pub namespace: u64,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs (or is stopped, or a zombie's parent has not looked yet: it has not ended).
    Alive,
    /// It has ended.
    Dead,
    /// It cannot be seen from here.
    Unknown,
}

impl Process {
    /// The calling process.
    pub fn current() -> Self {
        static CURRENT: Mutex<Option<(u64, Process)>> = Mutex::new(None);
        let generation = fork::generation();
        // Held by another thread during a fork, the lock is never free again: then this process looks each time.
        let Some(mut current) = CURRENT.try_lock_for(std::time::Duration::from_millis(1)) else {
            return Self::look();
        };
        match *current {
            Some((seen, process)) if seen == generation => process,
            _ => {
                let process = Self::look();
                *current = Some((generation, process));
                process
            }
        }
    }

    fn look() -> Self {
        let pid = std::process::id();
        match (Stat::of("self"), pid_namespace()) {
            (Some(stat), Some(inode)) if stat.pid == pid && is_of_our_namespace() => {
                Self { pid, started: stat.started, namespace: inode ^ this_boot() }
            }
            _ => Self::default(),
        }
    }

    /// Whether the process is still there.
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
            // A mount of /proc with hidepid shows other users' processes to nobody.
            None if process_exists(self.pid) => Liveness::Unknown,
            None => Liveness::Dead,
        }
    }
}

/// How many clock ticks two reports of one start may differ: emulators and sandboxes work the start of their own processes out
/// from other clocks than the kernel's. A pid is not used again within so short a time: the kernel would have to start as many
/// processes as there are pids.
const SAME_START: u64 = 10;

/// Whether `/proc` is mounted for the pid namespace that this process lives in, as far as the kernel says: the processes of an
/// inner namespace have one pid for each namespace from that of the mount down to their own.
fn is_of_our_namespace() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("NSpid:")).is_none_or(|pids| pids.split_whitespace().count() == 1)
}

/// Part of a digest of the boot id.
fn this_boot() -> u64 {
    let Digest(digest) = Digest::of(boot_id().as_bytes());
    u64::from_le_bytes(digest[..8].try_into().expect("8 of 16 bytes"))
}

/// The inode of this process's pid namespace.
pub(crate) fn pid_namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino())
}

/// A random number of this boot of the machine, from the kernel.
pub(crate) fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID
        .get_or_init(|| {
            let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
            fault::pretended("BOOT").unwrap_or_else(read)
        })
        .clone()
}

/// Whether both are the id of one boot: one that could not be read is like no other.
pub(crate) fn is_same_boot(one: &str, other: &str) -> bool {
    !one.is_empty() && one == other
}

/// How far the boot clock of this process's time namespace is from the machine's, in milliseconds.
pub(crate) fn time_offset() -> i64 {
    let pretended = fault::pretended("TIME_OFFSET_MS").and_then(|text| text.parse().ok());
    let read = || parse_time_offset(&fs::read_to_string("/proc/self/timens_offsets").ok()?);
    pretended.or_else(read).unwrap_or(0)
}

/// Lines of a clock's name, seconds and nanoseconds (time_namespaces(7)).
fn parse_time_offset(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with("boottime"))?;
    let mut numbers = line.split_whitespace().skip(1).map(str::parse::<i64>);
    let (seconds, nanoseconds) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000))
}

/// The process that holds an exclusive `flock` on a file, as the kernel's list of locks shows it.
pub(crate) fn who_locks(file: &fs::File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino();
    find_lock(&fs::read_to_string("/proc/locks").ok()?, inode)
}

/// Whether any process that can be seen from here has a `flock` on a file.
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

/// Lines such as `1: FLOCK ADVISORY WRITE 4711 00:19:5678 0 EOF` (proc_locks(5)); a process that cannot be seen from here has no
/// positive number. Devices are not compared: some file systems show another one here.
fn find_lock(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, "WRITE", pid, place] = fields.get(1..6)? else { return None };
        let is_it = place.rsplit(':').next()?.parse() == Ok(inode);
        pid.parse().ok().filter(|&pid| is_it && pid > 0)
    })
}

fn process_exists(pid: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody; the call only checks.
    let found = unsafe { libc::kill(pid as libc::pid_t, 0) } == 0;
    found || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// The kernel's flag of a process that is on its way out (`PF_EXITING`). A killed process closes its sockets, so that its client
/// can answer somebody else, a moment before it is a zombie.
const EXITING: u64 = 0x4;

/// What `/proc/PID/stat` says of a process.
struct Stat {
    pid: u32,
    started: u64,
    ended: bool,
}

impl Stat {
    fn of(pid: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The command in parentheses may hold anything; fields are counted from behind its last parenthesis (proc(5)).
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
