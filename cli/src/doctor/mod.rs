//! `doctor`: checks everything that a server depends on, and says how to repair each error.
//!
//! A finding is good, a hint or wrong. Only a wrong one makes the exit status 1.

mod php;
mod pool;
mod store;

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::{Choice, DoctorOptions};
use crate::failure::{FAILED, Failure};
use crate::output;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Good,
    Hint,
    Wrong,
}

/// The result of one check.
#[derive(Clone, Debug)]
struct Finding {
    level: Level,
    what: &'static str,
    seen: String,
    /// How to repair it.
    mend: String,
}

/// All findings.
#[derive(Debug, Default)]
struct Report(Vec<Finding>);

impl Report {
    fn good(&mut self, what: &'static str, seen: impl Into<String>) {
        self.add(Level::Good, what, seen, "");
    }

    fn hint(&mut self, what: &'static str, seen: impl Into<String>, mend: impl Into<String>) {
        self.add(Level::Hint, what, seen, mend);
    }

    fn wrong(&mut self, what: &'static str, seen: impl Into<String>, mend: impl Into<String>) {
        self.add(Level::Wrong, what, seen, mend);
    }

    fn add(&mut self, level: Level, what: &'static str, seen: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { level, what, seen: seen.into(), mend: mend.into() });
    }

    fn has_wrong(&self) -> bool {
        self.0.iter().any(|finding| finding.level == Level::Wrong)
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for Finding { level, what, seen, mend } in &self.0 {
            let mark = match level {
                Level::Good => "ok",
                Level::Hint => "note",
                Level::Wrong => "WRONG",
            };
            let _ = writeln!(text, "{mark:<6} {what:<12} {}", seen.replace('\n', &format!("\n{:20}", "")));
            if !mend.is_empty() {
                let _ = writeln!(text, "{:20}-> {mend}", "");
            }
        }
        text
    }

    fn to_json(&self) -> Value {
        let findings = self.0.iter().map(|finding| {
            let level = match finding.level {
                Level::Good => "ok",
                Level::Hint => "note",
                Level::Wrong => "wrong",
            };
            json!({ "level": level, "what": finding.what, "seen": finding.seen, "mend": finding.mend })
        });
        findings.collect::<Vec<_>>().into()
    }
}

/// Runs all checks. Without a store, only PHP and the pools are checked.
pub(crate) fn run(choice: &Choice, options: &DoctorOptions) -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    report.good("mcp-state", mcp_state::VERSION);
    let located = match choice.stores().next() {
        None => {
            report.hint("store", crate::store::stores_there_are(), "name a store with --store to check it");
            None
        }
        Some(_) => match crate::store::find(choice) {
            Ok(located) => Some(located),
            Err(failure) => {
                report.wrong(
                    "store",
                    failure.to_string(),
                    "name the store with the DSN of the servers; the first server that uses the store makes it",
                );
                None
            }
        },
    };
    // The pools are read before this process becomes the store's owner, who may not have access to them.
    let pools = pool::find(&options.pool)?;
    if let Some(located) = &located {
        store::check(&mut report, located, options.deep);
    }
    php::check(&mut report, &options.php, located.as_ref());
    pool::check(&mut report, &pools, located.as_ref());
    if options.json {
        output::line(format_args!("{:#}", report.to_json()))?;
    } else {
        output::text(&report.to_text())?;
    }
    Ok(if report.has_wrong() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
