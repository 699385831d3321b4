//! `doctor`: looks at everything a server depends on, and says how to mend what is wrong.
//!
//! A finding is in order, worth knowing, or wrong; only what is wrong makes the exit status 1.

mod php;
mod pool;
mod store;

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::{Checking, Choice};
use crate::failure::{FAILED, Failure};
use crate::output;

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Good,
    Hint,
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
struct Finding {
    level: Level,
    what: &'static str,
    seen: String,
    /// How to mend it.
    mend: String,
}

/// What was found so far.
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

/// Without a store named, what concerns the machine alone is looked at.
pub(crate) fn run(choice: &Choice, options: &Checking) -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    report.good("mcp-state", mcp_state::VERSION);
    let located = match choice.stores().next() {
        None => {
            report.hint("store", crate::store::stores_there_are(), "name one with --store to have it checked");
            None
        }
        Some(_) => match crate::store::find(choice) {
            Ok(located) => Some(located),
            Err(failure) => {
                report.wrong(
                    "store",
                    failure.to_string(),
                    "name the store as the servers do; it is made when a server first uses it",
                );
                None
            }
        },
    };
    // Pools and login rules are read as whoever was asked; the rest as the store's owner.
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
