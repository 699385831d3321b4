//! Processes, what they say to each other, and a clock they share.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

use crate::Result;

/// Runs `job` in a process of its own, which ends with it; the parent's end of the sockets between them.
pub(crate) fn fork(job: impl FnOnce(UnixStream) -> Result<()>) -> Result<(UnixStream, BufReader<UnixStream>)> {
    let (ours, theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread and never opens a store.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().into()),
        0 => {
            drop(ours);
            let done = job(theirs);
            if let Err(error) = &done {
                eprintln!("mcp-state-bench: {error}");
            }
            std::process::exit(i32::from(done.is_err()));
        }
        _ => Ok((ours.try_clone()?, BufReader::new(ours))),
    }
}

/// The next line from another process.
pub(crate) fn read_line(reader: &mut BufReader<UnixStream>) -> Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    if line.is_empty() {
        return Err("a process ended early".into());
    }
    Ok(line.trim_end().to_owned())
}

/// Nanoseconds of a clock that all processes share, PHP's `hrtime` included.
pub(crate) fn now() -> u64 {
    // SAFETY: all-zero bytes are a valid timespec.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is writable through the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
