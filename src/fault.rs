//! What tests make happen: a process killed at a certain place, another boot. In a release build, nothing.

/// Ends the process as `kill -9` does when the environment variable `MCP_STATE_FAULT` is `name:N` and this is the N-th visit.
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
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static VISITS: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let (name, visit) =
            std::env::var("MCP_STATE_FAULT").ok()?.split_once(':').map(|(n, v)| (n.to_owned(), v.parse()))?;
        Some((name, visit.ok()?))
    });
    if let Some((wanted, visit)) = wanted
        && wanted == name
        && VISITS.fetch_add(1, Ordering::SeqCst) + 1 == *visit
    {
        // SAFETY: a signal to this very process; nothing of Rust is unwound.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}
