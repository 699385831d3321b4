//! The terminal and its signals.
//!
//! Signals are blocked except between two snapshots of the store, so only SIGKILL and SIGSTOP, which no process can block, reach
//! this process during a transaction.

use std::io::{IsTerminal, stdout};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::failure::Failure;
use crate::output;

/// Restores the default action of SIGPIPE: a closed pipe ends the process silently, as with other commands.
pub(crate) fn restore_sigpipe() {
    // SAFETY: the call replaces no handler; Rust's runtime ignores SIGPIPE.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// The reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The time has passed, or the size of the window has changed.
    Redraw,
    /// The user suspends the command (ctrl-Z).
    Suspend,
    /// A signal asks the process to end.
    Quit,
}

/// The signals that end a wait.
const SIGNALS: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH];

static CAUGHT: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    // A change of the window's size must not replace a signal to end.
    if signal != libc::SIGWINCH || CAUGHT.load(Ordering::Relaxed) == 0 {
        CAUGHT.store(signal, Ordering::Relaxed);
    }
}

/// Blocks the signals while the value lives.
pub(crate) struct Signals {
    before: libc::sigset_t,
}

impl Signals {
    pub(crate) fn hold() -> Self {
        // SAFETY: the sets and the action are plain data that the calls fill or read while they live; the handler only stores
        // into an atomic, which is safe at any moment.
        unsafe {
            let mut held: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as libc::sighandler_t;
            libc::sigemptyset(&raw mut held);
            for signal in SIGNALS {
                libc::sigaddset(&raw mut held, signal);
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            Self { before }
        }
    }

    /// Waits for a signal, for at most `time`.
    pub(crate) fn wait(&self, time: Duration) -> Woken {
        let span =
            libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: libc::c_long::from(time.subsec_nanos()) };
        // SAFETY: no sets of descriptors are given; span and mask live through the call.
        unsafe {
            libc::pselect(0, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &raw const span, &raw const self.before)
        };
        match CAUGHT.swap(0, Ordering::Relaxed) {
            0 | libc::SIGWINCH => Woken::Redraw,
            libc::SIGTSTP => Woken::Suspend,
            _ => Woken::Quit,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the mask is the one that was in force before.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}

/// Stops this process as ctrl-Z does, until it is continued.
pub(crate) fn stop() {
    // SAFETY: the call only sends a signal to this process.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// The alternate screen of the terminal. The main screen keeps its contents.
pub(crate) struct Screen;

impl Screen {
    /// Opens the alternate screen; `None` if the output is not a terminal.
    pub(crate) fn open() -> Result<Option<Self>, Failure> {
        if !stdout().is_terminal() {
            return Ok(None);
        }
        output::text("\x1b[?1049h\x1b[?25l")?;
        Ok(Some(Self))
    }

    /// Shows the lines, cut to the size of the terminal.
    pub(crate) fn draw(&self, lines: &[String]) -> Result<(), Failure> {
        let (columns, rows) = size();
        let mut frame = String::from("\x1b[H");
        for line in lines.iter().take(rows.saturating_sub(1)) {
            frame.extend(line.chars().take(columns));
            frame.push_str("\x1b[K\r\n");
        }
        frame.push_str("\x1b[J");
        output::text(&frame)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = output::text("\x1b[?25h\x1b[?1049l");
    }
}

/// Returns the columns and rows of the terminal.
fn size() -> (usize, usize) {
    // SAFETY: all-zero bytes are a valid winsize, a struct of integers.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes a winsize to `size`, which is one.
    let known = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) } == 0;
    if known && size.ws_col > 0 && size.ws_row > 0 { (size.ws_col.into(), size.ws_row.into()) } else { (80, 24) }
}

/// A progress bar on standard error, shown if that is a terminal.
pub(crate) struct Bar {
    shown: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { shown: std::io::stderr().is_terminal() }
    }

    /// Shows the progress, from 0 to 1, and the current step.
    pub(crate) fn set(&self, done: f64, what: &str) {
        const WIDTH: usize = 30;
        if self.shown {
            let filled = (done.clamp(0.0, 1.0) * WIDTH as f64) as usize;
            output::error(&format!("\r[{}{}] {what}\x1b[K", "#".repeat(filled), " ".repeat(WIDTH - filled)));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.shown {
            output::error("\r\x1b[K");
        }
    }
}
