//! Every call of a scenario that writes to the store fails, once with each error; or is cut short; or is the process's last.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::common::process::{Result, Worker};
use crate::common::shared_memory;
use crate::tally::{self, Outcome};
use crate::{WRITE_MAP, is_long, seed};

static SHIM: OnceLock<PathBuf> = OnceLock::new();

/// Builds what is preloaded; LMDB needs a C compiler, too.
pub fn build_shim() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let library = directory.path().join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built =
        Command::new(&compiler).args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").status();
    assert!(built.is_ok_and(|status| status.success()), "{compiler} builds tests/faults/shim.c");
    SHIM.get_or_init(|| library);
    directory
}

/// Where the calls of a scenario fail.
#[derive(Clone, Copy, Debug)]
enum Setting {
    /// On a store that is made, and whose commits are written to the disk.
    New,
    /// On one that lives in memory.
    NewInMemory,
    /// On one that an earlier boot has left, which is taken over.
    OfAnotherBoot,
    /// On one that is made to write through its map.
    NewThroughMap,
    /// On one that wrote with calls before. Who comes after it takes it as it is.
    TurnedToMap,
}

/// In each setting, the first call fails, then the second, until the scenario has no more.
pub fn every_call(mode: &str, errno: i32) -> Result {
    let mut bad = Vec::new();
    use Setting::{New, NewInMemory, NewThroughMap, OfAnotherBoot, TurnedToMap};
    for setting in [New, NewInMemory, OfAnotherBoot, NewThroughMap, TurnedToMap] {
        let step = if is_long() { 1 } else { 6 };
        let first = if is_long() { 1 } else { 1 + seed() % step };
        let mut at = first;
        while let Some((outcome, what)) = one_call(setting, at, mode, errno) {
            if tally::is_bad(outcome) {
                bad.push(what);
            }
            at += step;
        }
        let least = match setting {
            // Through a map, only opening the store makes any.
            TurnedToMap => 12,
            NewThroughMap => 25,
            New | NewInMemory | OfAnotherBoot => 40,
        };
        assert!(at > least, "{setting:?}: the scenario makes {at} calls that write");
    }
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n").into()) }
}

/// Runs the scenario with one fault. Nothing when it has fewer calls.
fn one_call(setting: Setting, at: u64, mode: &str, errno: i32) -> Option<(Outcome, String)> {
    let directory = tempfile::tempdir_in(shared_memory()).expect("a directory");
    let base = directory.path().canonicalize().expect("the directory is there");
    let store = base.join("store");
    let with = |options: &str| format!("file://{}?ttl_ms=36000000&{options}", store.display());
    let plain = with("durability=none");
    let (dsn, dsn_after) = match setting {
        Setting::New | Setting::OfAnotherBoot => (with("durability=sync"), with("durability=sync")),
        Setting::NewInMemory => (plain.clone(), plain.clone()),
        Setting::NewThroughMap => (with(WRITE_MAP), with(WRITE_MAP)),
        Setting::TurnedToMap => (with(WRITE_MAP), plain.clone()),
    };
    if matches!(setting, Setting::OfAnotherBoot) {
        let before = [("MCP_STATE_PRETEND_BOOT", "another")];
        assert!(Worker::start_with(&["leave", &dsn], &before).finish().success());
    } else if matches!(setting, Setting::TurnedToMap) {
        assert!(Worker::start(&["leave", &plain]).finish().success());
    }
    let report = base.join("report");
    let shim = SHIM.get().expect("main() has built it");
    let mut worker = Worker::start_with(
        &["scenario", &dsn],
        &[
            ("LD_PRELOAD", &shim.display().to_string()),
            ("SHIM_UNDER", &store.display().to_string()),
            ("SHIM_AT", &at.to_string()),
            ("SHIM_MODE", mode),
            ("SHIM_ERRNO", &errno.to_string()),
            ("SHIM_REPORT", &report.display().to_string()),
        ],
    );
    let told = worker.rest();
    let ended = worker.child.wait().expect("it ends");
    let reached = std::fs::read_to_string(&report).ok()?;
    let what = format!("{setting:?}, {mode} {errno}: {}", reached.trim_end());
    let mut after = Worker::start(&["check", &dsn_after]);
    let lasts = after.rest();
    let checked = after.child.wait().expect("it ends");
    let outcome = judge(mode, &told, ended, &lasts, checked);
    let all = (&told, ended, &lasts, checked);
    Some((tally::count(outcome, &what, &all), format!("{outcome:?} after {what}: {all:?}")))
}

fn judge(
    mode: &str,
    told: &[String],
    ended: std::process::ExitStatus,
    lasts: &[String],
    checked: std::process::ExitStatus,
) -> Outcome {
    let hung = |status: std::process::ExitStatus| status.signal() == Some(libc::SIGALRM);
    let killed = mode.starts_with("kill") && ended.signal() == Some(libc::SIGKILL);
    if hung(ended) || hung(checked) {
        return Outcome::Hang;
    }
    if !(ended.success() || killed) || !checked.success() {
        return Outcome::Crash;
    }
    let of = |lines: &[String], word: &str| -> BTreeSet<String> {
        lines.iter().filter_map(|line| Some(line.strip_prefix(word)?.trim().to_owned())).collect()
    };
    let wrong = !of(told, "wrong").is_empty() || !of(lasts, "wrong").is_empty();
    if wrong || !(killed || told.iter().any(|line| line.starts_with("done"))) {
        return Outcome::Wrong;
    }
    let (did, tried, lasting) = (of(told, "did "), of(told, "try "), of(lasts, "lasts "));
    let mut marks: BTreeSet<_> = ["create", "small", "large", "publish", "once"].map(str::to_owned).into();
    // `b` was made, and destroyed in the end.
    marks.insert(
        if did.contains("destroy-b") || !did.contains("create-b") { "destroy-b" } else { "create-b" }.to_owned(),
    );
    // The one that was cut off may have been done or not.
    let cut_off = told.iter().rev().find_map(|line| line.strip_prefix("try ")).map(|name| name.trim().to_owned());
    for mark in marks {
        let open = killed
            && cut_off.as_ref().is_some_and(|name| name == &mark || name.ends_with("-b") && mark.ends_with("-b"));
        if open {
            continue;
        }
        let expected = did.contains(&mark) || mark == "destroy-b";
        if expected != lasting.contains(&mark) {
            eprintln!("{mark} {}", if expected { "was done and is lost" } else { "was refused and is there" });
            return Outcome::Wrong;
        }
    }
    if mode == "once" && did != tried {
        eprintln!("one fault, and {:?} failed twice", tried.difference(&did).collect::<Vec<_>>());
        return Outcome::Wrong;
    }
    if killed {
        Outcome::Killed
    } else if did.len() == tried.len() && of(told, "refused").is_empty() {
        Outcome::Unharmed
    } else {
        Outcome::Refused
    }
}
