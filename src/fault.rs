//! Fault injection for tests: a process is killed or stopped at a named point, or takes another value for one of the kernel's.
//! Release builds ignore these variables.

/// Kills the process with SIGKILL at the N-th call if the environment variable `MCP_STATE_FAULT` is `name:N`. With `name:N:stop`,
/// SIGSTOP stops the process.
#[inline]
pub(crate) fn point(name: &str) {
    if cfg!(debug_assertions) {
        check(name);
    }
}

/// Returns the value that a test sets for `name` with the environment variable `MCP_STATE_PRETEND_name`.
pub(crate) fn pretended(name: &str) -> Option<String> {
    if cfg!(debug_assertions) { std::env::var(format!("MCP_STATE_PRETEND_{name}")).ok() } else { None }
}

fn check(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static WANTED: OnceLock<Option<(String, u64, libc::c_int)>> = OnceLock::new();
    static VISITS: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let wanted = std::env::var("MCP_STATE_FAULT").ok()?;
        let mut parts = wanted.split(':');
        let (name, visit) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        Some((name, visit, if parts.next() == Some("stop") { libc::SIGSTOP } else { libc::SIGKILL }))
    });
    if let Some((wanted, visit, signal)) = wanted
        && wanted == name
        && VISITS.fetch_add(1, Ordering::SeqCst) + 1 == *visit
    {
        // SAFETY: the signal goes to this process and unwinds nothing.
        unsafe { libc::kill(libc::getpid(), *signal) };
    }
}
