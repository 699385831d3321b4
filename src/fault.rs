//! What tests make happen: a process killed at a certain place, another boot. In a release build, nothing.

/// Ends the process as `kill -9` does when the environment variable `MCP_STATE_FAULT` is `name:N` and this is the N-th visit;
/// stops it, with `name:N:stop`.
#[inline]
pub(crate) fn point(name: &str) {
    if cfg!(debug_assertions) {
        check(name);
    }
}

/// What a test wants this process to take `name` for, by the environment variable `MCP_STATE_PRETEND_name`.
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
        // SAFETY: a signal to this very process; nothing of Rust is unwound.
        unsafe { libc::kill(libc::getpid(), *signal) };
    }
}
