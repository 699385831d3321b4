//! `stats --prometheus`: one or several stores in the text exposition format, version 0.0.4.
//!
//! Invariant: no two series are equal, since a scraper would refuse all of them. Each store has unique labels, the series of a
//! family follow one HELP and one TYPE, and a store that is named twice is shown once.
//!
//! A process becomes the owner of its store permanently, so several stores need one process each.

use std::fmt::Write;
use std::process::{Command, Stdio};

use mcp_state::{Dsn, Layout, Limit, Place};
use serde_json::Value;

use crate::args::Choice;
use crate::failure::Failure;
use crate::output;
use crate::stats::{self, Totals};
use crate::store::{self, Located};

/// A label's name and value.
type Label = (&'static str, String);

/// A store: its labels, and its object of `stats --json`.
struct Sample {
    labels: Vec<Label>,
    stats: Value,
}

pub(crate) fn run(choice: &Choice) -> Result<(), Failure> {
    let mut stores: Vec<(Vec<Label>, Located)> = Vec::new();
    for store in store::find_all(choice)? {
        let labels = labels(&store);
        if stores.iter().all(|(known, _)| *known != labels) {
            stores.push((labels, store));
        }
    }
    let alone = stores.len() == 1;
    let samples = stores.into_iter().map(|(labels, store)| {
        let stats = if alone { stats::snapshot(&store.open()?)? } else { ask(&store)? };
        Ok(Sample { labels, stats })
    });
    output::text(&exposition(&samples.collect::<Result<Vec<_>, Failure>>()?))
}

/// Returns `stats --json` of another process of this command. The DSN is in its environment, which other users cannot read.
fn ask(store: &Located) -> Result<Value, Failure> {
    let told = |why: String| Failure::new(format!("cannot read {}: {why}", store.shown()));
    let mut command = Command::new(std::env::current_exe().map_err(|error| told(error.to_string()))?);
    command.args(["stats", "--json"]).env("MCP_STATE_DSN", &store.dsn).stdin(Stdio::null());
    if let (true, Some(files)) = (store::is_root(), &store.files) {
        command.args(["--user", &files.user.to_string()]);
    }
    let done = command.output().map_err(|error| told(error.to_string()))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(told(said.trim().trim_start_matches("mcp-state: ").to_owned()));
    }
    serde_json::from_slice(&done.stdout).map_err(|error| told(error.to_string()))
}

/// Returns labels that no other store has.
fn labels(store: &Located) -> Vec<Label> {
    let shown = store.shown();
    let mut labels = vec![("store", shown.split('?').next().unwrap_or(&shown).to_owned())];
    let place = Dsn::parse(&store.dsn).map(|dsn| dsn.place);
    if let Some(files) = &store.files {
        labels.push(("user", store::user_name(files.user)));
        if matches!(place, Ok(Place::SharedMemory(_))) {
            labels.push(("directory", files.path.display().to_string()));
        }
    }
    if let Ok(Place::Redis(server)) = place {
        labels.push(("prefix", server.prefix));
        labels.push(("db", server.database.to_string()));
        if let Layout::Sentinel(master) = server.layout {
            labels.push(("sentinel", master));
        }
    }
    labels
}

/// The store, an additional label, and the value.
type Series<'a> = (&'a Sample, Option<(&'a str, &'a str)>, u64);

/// A family of series.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
    series: Vec<Series<'a>>,
}

impl Family<'_> {
    fn write(&self, text: &mut String) {
        let Family { name, kind, help, series } = self;
        let _ = writeln!(text, "# HELP mcp_state_{name} {help}\n# TYPE mcp_state_{name} {kind}");
        for (sample, own, value) in series {
            let labels = sample.labels.iter().map(|(name, value)| (*name, value.as_str()));
            let labels: Vec<_> =
                labels.chain(*own).map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let _ = writeln!(text, "mcp_state_{name}{{{}}} {value}", labels.join(","));
        }
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn exposition(samples: &[Sample]) -> String {
    let mut text = String::new();
    let mut gauge = |path: &[&str], name: &str, help: &str| {
        let value = |stats: &Value| path.iter().try_fold(stats, |value, key| value.get(key))?.as_u64();
        let series = samples.iter().filter_map(|sample| Some((sample, None, value(&sample.stats)?))).collect();
        Family { name, kind: "gauge", help, series }.write(&mut text);
    };
    gauge(&["sessions"], "sessions", "Sessions, with expired ones that are not collected yet.");
    for (name, _, help) in Totals::default().rows() {
        gauge(&["totals", name], name, help);
    }
    gauge(&["used_bytes"], "used_bytes", "Bytes in use.");
    gauge(&["limit_bytes"], "limit_bytes", "The limit of the bytes in use.");
    gauge(&["waiting"], "waiting", "Exchanges that wait for their clients, if max_waiting limits them.");
    gauge(&["max_waiting"], "max_waiting", "How many exchanges may wait for their clients at once.");
    let sessions = Limit::Sessions;
    gauge(&["limits", sessions.name()], sessions.name(), sessions.description());

    // Stores of different kinds have different counters.
    let counters = |sample: &'_ Sample| sample.stats["counters"].as_object().cloned().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for name in samples.iter().flat_map(|sample| counters(sample).into_iter().map(|(name, _)| name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let count = |sample: &Sample, name: &str| sample.stats["counters"][name].as_u64();
    let reasons = names.iter().filter_map(|name| Some((name, name.strip_prefix("late_")?)));
    let late = samples.iter().flat_map(|sample| {
        reasons.clone().filter_map(move |(name, reason)| Some((sample, Some(("reason", reason)), count(sample, name)?)))
    });
    let help = "Responses that were discarded, by reason.";
    Family { name: "late_responses_total", kind: "counter", help, series: late.collect() }.write(&mut text);
    for name in names.iter().filter(|name| !name.starts_with("late_")) {
        let help = format!("The counter {name} of the store, since its files were made.");
        let series = samples.iter().filter_map(|sample| Some((sample, None, count(sample, name)?))).collect();
        Family { name: &format!("{name}_total"), kind: "counter", help: &help, series }.write(&mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn families_are_whole_whatever_each_store_counts() {
        let sample = |store: &str, counters: Value| Sample {
            labels: vec![("store", store.to_owned())],
            stats: json!({ "sessions": 2, "used_bytes": 3, "limit_bytes": 4, "counters": counters }),
        };
        let text = exposition(&[
            sample("a\"\\\n", json!({ "late_unknown": 5, "waits": 6 })),
            sample("b", json!({ "waits": 7, "late_expired": 8 })),
        ]);
        let lines: Vec<_> =
            text.lines().filter(|line| line.starts_with("mcp_state_waits") || line.contains("late_")).collect();
        assert_eq!(
            lines,
            [
                "# HELP mcp_state_late_responses_total Responses that were discarded, by reason.",
                "# TYPE mcp_state_late_responses_total counter",
                r#"mcp_state_late_responses_total{store="a\"\\\n",reason="unknown"} 5"#,
                r#"mcp_state_late_responses_total{store="b",reason="expired"} 8"#,
                r#"mcp_state_waits_total{store="a\"\\\n"} 6"#,
                r#"mcp_state_waits_total{store="b"} 7"#,
            ]
        );
    }
}
