//! What the injected faults came to, over the whole run: the figures it ends with.

use std::fmt;
use std::sync::Mutex;

/// What one fault came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was lost and nothing failed.
    Unharmed,
    /// Operations were refused with an error of a kind that says what to do.
    Refused,
    /// The store was begun anew, as documented.
    Fresh,
    /// A value was read as a garbage byte within it left it: LMDB keeps no checksums.
    Altered,
    /// The process was to be killed, and nothing was half done afterwards.
    Killed,
    /// A process ended that should not.
    Crash,
    /// A process did not end in its time.
    Hang,
    /// Something was read that was never written, or belongs to another session, or was acknowledged and is lost.
    Wrong,
}

static OUTCOMES: Mutex<Vec<Outcome>> = Mutex::new(Vec::new());

/// Counts an outcome; what must not be is told.
pub fn count(outcome: Outcome, fault: &dyn fmt::Display, told: &dyn fmt::Debug) -> Outcome {
    if is_bad(outcome) {
        eprintln!("{outcome:?} after {fault}: {told:?}");
    }
    OUTCOMES.lock().expect("no test panics while it counts").push(outcome);
    outcome
}

/// Whether the outcome must not be.
pub fn is_bad(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Crash | Outcome::Hang | Outcome::Wrong)
}

/// The figures, as one line.
pub fn line() -> String {
    let outcomes = OUTCOMES.lock().expect("no test panics while it counts");
    let of = |wanted| outcomes.iter().filter(|&&outcome| outcome == wanted).count();
    format!(
        "faults: {} injected ({} refused with a typed error, {} begun anew, {} killed, {} without effect, {} values read with their garbage), {} crashes, {} hangs, {} wrong data",
        outcomes.len(),
        of(Outcome::Refused),
        of(Outcome::Fresh),
        of(Outcome::Killed),
        of(Outcome::Unharmed),
        of(Outcome::Altered),
        of(Outcome::Crash),
        of(Outcome::Hang),
        of(Outcome::Wrong),
    )
}
