//! All output of the command.
//!
//! Invariant: a failed write is a [`Failure`]: it neither panics nor passes unnoticed. Rust's `stdout()` reports success for
//! a closed standard output, so this module writes to the file descriptor.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Whether standard output was closed when this process started.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, and before Rust's runtime opens `/dev/null` in place of a closed standard output.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static NOTE_CLOSED: extern "C" fn() = note_closed;

extern "C" fn note_closed() {
    // SAFETY: F_GETFD only reads a flag of a descriptor, and fails for one that is not open.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Writes `text` to standard output.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Writes `line` and a newline to standard output.
pub(crate) fn line(line: impl Display) -> Result<(), Failure> {
    text(&format!("{line}\n"))
}

/// Writes `bytes` to standard output.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    write(bytes).map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))
}

fn write(bytes: &[u8]) -> io::Result<()> {
    if CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    File::from(io::stdout().as_fd().try_clone_to_owned()?).write_all(bytes)
}

/// Writes `text` to standard error. A failed write is ignored, since it cannot be reported.
pub(crate) fn error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
