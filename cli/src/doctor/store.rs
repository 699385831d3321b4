//! Checks of the store: its place, the library that made it, its free space, and the owners of dead processes.

use std::fs;
use std::path::Path;

use mcp_state::{Engine, Limit, Liveness, StoreStats};

use super::Report;
use crate::sessions;
use crate::store::{Files, Located, user_name};
use crate::text;

pub(super) fn check(report: &mut Report, store: &Located, deep: bool) {
    match &store.files {
        Some(files) => {
            let owner = user_name(files.user);
            report.good("store", format!("{} in {}, of user {owner}", store.dsn, files.path.display()));
            stamp(report, files);
            removal_at_logout(report, files);
        }
        None => report.good("store", store.shown()),
    }
    let engine = match store.open() {
        Ok(engine) => engine,
        Err(failure) => {
            let mend = match store.files {
                Some(_) if failure.is_damage() => "servers get the same error; `mcp-state reset` makes an empty store",
                Some(_) => "repair what the error names; servers may get the same error. The sessions are unchanged",
                None if failure.is_missing() => {
                    "name the store as the servers do; a server makes it when it first uses it"
                }
                None => "repair the server or the connection; until then, servers get the same error and answer 503",
            };
            report.wrong("opening", failure.to_string(), mend);
            return;
        }
    };
    match engine.stats() {
        Ok(stats) if store.files.is_some() => {
            space(report, &stats);
            sessions_left(report, &engine, &stats);
            readers(report, &stats);
            refusals(report, &stats);
        }
        Ok(stats) => {
            redis(report, &stats);
            sessions_left(report, &engine, &stats);
            refusals(report, &stats);
        }
        Err(error) => report.wrong("space", error.to_string(), mend_of(&error)),
    }
    owners(report, &engine);
    if deep {
        contradictions(report, &engine);
    }
}

/// Advises a reset, which ends every session, only if the store is damaged.
fn mend_of(error: &mcp_state::Error) -> &'static str {
    match error.kind() {
        mcp_state::ErrorKind::StoreCorrupt => "`mcp-state reset` makes an empty store",
        _ => "repair what the error names; the sessions are unchanged",
    }
}

fn place<'s>(stats: &'s StoreStats, wanted: &str) -> Option<&'s str> {
    stats.place.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str())
}

fn number(stats: &StoreStats, name: &str) -> u64 {
    place(stats, name).and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Checks the settings of the server that decide whether sessions survive.
fn redis(report: &mut Report, stats: &StoreStats) {
    if let Some(rule) = place(stats, "missing_rights") {
        let seen = "the user lacks rights: what needs them is slower, or fails";
        report.wrong("rights", seen, format!("as the server's administrator: {rule}"));
    }
    if let Some(problem) = place(stats, "problem") {
        let mend = "allow the user to run INFO (+info), or check on the server that maxmemory-policy is noeviction";
        report.hint("server", format!("its settings cannot be read: {problem}"), mend);
        return;
    }
    let name = if place(stats, "valkey_version").is_some() { "Valkey" } else { "Redis" };
    let version = place(stats, "valkey_version").or(place(stats, "redis_version")).unwrap_or("unknown");
    let role = place(stats, "role").unwrap_or("unknown");
    let seen = format!("{name} {version}, {}, {role}", place(stats, "redis_mode").unwrap_or("unknown"));
    match role {
        "master" => report.good("server", seen),
        _ => {
            report.wrong("server", seen, "a replica refuses writes; name the master, or the sentinels (sentinel=NAME)");
        }
    }
    let (used, limit) = (stats.used_bytes, stats.limit_bytes);
    let seen = format!("{} of {} used", text::bytes(used), text::bytes(limit));
    if number(stats, "maxmemory") == 0 {
        let mend = "set maxmemory, so that a full server returns an error before the kernel kills it";
        report.hint("memory", format!("{seen}; maxmemory is not set"), mend);
    } else if used > limit / 10 * 9 {
        report.wrong("memory", seen, "raise maxmemory, destroy sessions, or shorten ttl_ms");
    } else {
        report.good("memory", seen);
    }
    let policy = place(stats, "maxmemory_policy").unwrap_or("unknown");
    if policy == "noeviction" {
        report.good("eviction", policy);
    } else {
        let mend =
            "set maxmemory-policy noeviction; any other policy removes parts of living sessions when memory is low";
        report.wrong("eviction", format!("maxmemory-policy is {policy}"), mend);
    }
    match place(stats, "aof_enabled") {
        Some("1") => report.good("durability", "appendonly yes: sessions survive a restart of the server"),
        _ => report.hint(
            "durability",
            "appendonly no: a restart of the server ends every session",
            "set appendonly yes, unless clients may start new sessions",
        ),
    }
}

fn stamp(report: &mut Report, files: &Files) {
    let Some(stamp) = files.stamp() else {
        let mend = "the next finding says whether the store opens; if it does, the sessions are unchanged";
        report.wrong("stamp", format!("{} cannot be read", files.path.join("stamp").display()), mend);
        return;
    };
    let field = |name: &str| match &stamp[name] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    report.good(
        "stamp",
        format!(
            "format {}, generation {}, {} {}, {}",
            field("format"),
            field("generation"),
            field("c_library"),
            field("architecture"),
            field("lock_format"),
        ),
    );
}

/// The bytes that a store keeps in its data file besides twice the bytes in use.
const SPACE_KEPT: u64 = 1 << 20;

fn space(report: &mut Report, stats: &StoreStats) {
    let (used, limit, free) = (stats.used_bytes, stats.limit_bytes, number(stats, "free_bytes"));
    let (data, writes) = (number(stats, "data_bytes"), place(stats, "writes").unwrap_or("unknown"));
    let seen = format!(
        "{} of {} used; the data file takes {}; {} left by {}; writes {writes}; generation {}",
        text::bytes(used),
        text::bytes(limit),
        text::bytes(data),
        text::bytes(free),
        place(stats, "free_bound").unwrap_or("the file system"),
        place(stats, "generation").unwrap_or("unknown"),
    );
    if used > limit / 10 * 9 {
        let mend =
            "destroy sessions, shorten ttl_ms, or raise max_store_bytes; `mcp-state gc` removes what has expired";
        report.wrong("space", seen, mend);
    } else if data > 2 * limit + SPACE_KEPT && writes != "through the map" {
        let mend = match place(stats, "old_reader") {
            Some(pid) => {
                format!(
                    "process {pid} was stopped during a read transaction and keeps old pages in use; continue it (SIGCONT) or end it"
                )
            }
            None => "`mcp-state gc` gives back free pages to the file system".to_owned(),
        };
        report.wrong("space", seen, mend);
    } else if free < 4 << 20 {
        let mend = "free or add space there: a container's /dev/shm grows with --shm-size, its memory with --memory";
        report.wrong("space", seen, mend);
    } else {
        report.good("space", seen);
    }
    let from = place(stats, "limit_from").unwrap_or("max_store_bytes");
    if from != "max_store_bytes" {
        let seen = format!("the store may use {}: {from}", text::bytes(limit));
        report.hint("space", seen, "add space there if the store needs more");
    }
}

fn sessions_left(report: &mut Report, engine: &Engine, stats: &StoreStats) {
    let most = engine.settings().limit(Limit::Sessions);
    let seen = format!("{} of {most}", stats.sessions);
    if stats.sessions >= most / 10 * 9 {
        report.hint(
            "sessions",
            seen,
            "at the limit, the longest-idle sessions are evicted; shorten ttl_ms or raise max_sessions",
        );
    } else {
        report.good("sessions", seen);
    }
}

fn readers(report: &mut Report, stats: &StoreStats) {
    report.good(
        "readers",
        format!("{} of 4096 slots in use, one for each process that has read the store", number(stats, "readers")),
    );
}

fn refusals(report: &mut Report, stats: &StoreStats) {
    let advice = [
        (
            "limits_hit",
            "operations were refused by a limit",
            "raise the limit that the server's log names with its value",
        ),
        (
            "store_full",
            "operations were refused because the store was full",
            "raise max_store_bytes or destroy sessions",
        ),
        ("sessions_evicted", "sessions were evicted for new ones", "raise max_sessions, or shorten ttl_ms"),
    ];
    for (name, what, mend) in advice {
        let count = stats.counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        if count > 0 {
            report.hint("counters", format!("{name} {count}: {what} since the store was made"), mend);
        }
    }
}

/// Checks for owners of dead processes, which are not released yet.
fn owners(report: &mut Report, engine: &Engine) {
    let mut ids = Vec::new();
    if let Err(failure) = sessions::for_each(engine, |session| {
        if session.owners > 0 {
            ids.push(session.id);
        }
    }) {
        report.wrong("owners", failure.to_string(), "`mcp-state doctor --deep` lists inconsistent records");
        return;
    }
    let (mut living, mut dead, mut hidden) = (0, 0, 0);
    for id in ids {
        // A session that was removed in the meantime has no owners.
        let Ok(Some((_, seen))) = engine.inspect(&id) else { continue };
        for owner in seen.owners {
            match owner.process.liveness() {
                Liveness::Alive => living += 1,
                Liveness::Dead => dead += 1,
                Liveness::Unknown => hidden += 1,
            }
        }
    }
    let seen =
        format!("{living} of living processes, {dead} of processes that have ended, {hidden} that cannot be seen");
    if dead > 0 {
        report.hint(
            "owners",
            seen,
            "the engine releases them after the end of their lease; `mcp-state gc` also does this",
        );
    } else {
        report.good("owners", seen);
    }
}

fn contradictions(report: &mut Report, engine: &Engine) {
    match engine.contradictions() {
        Ok(found) if found.is_empty() => report.good("contents", "nothing contradicts itself"),
        Ok(found) => {
            let mend = "report this with the list as a bug; destroy the sessions that it names, the others are whole";
            report.wrong("contents", found.join("\n"), mend);
        }
        Err(error) => report.wrong("contents", error.to_string(), mend_of(&error)),
    }
}

/// systemd's logind removes a login user's files in /dev/shm at logout, unless `RemoveIPC` is off.
fn removal_at_logout(report: &mut Report, files: &Files) {
    const FIRST_LOGIN_USER: u32 = 1000;
    let is_system = files.user < FIRST_LOGIN_USER || files.user == 65534;
    if is_system || !files.path.starts_with("/dev/shm") || !Path::new("/run/systemd/system").exists() {
        return;
    }
    if !removes_ipc() {
        return;
    }
    let seen = format!("logind removes the store when user {} logs out (RemoveIPC)", user_name(files.user));
    let mend = "set RemoveIPC=no in /etc/systemd/logind.conf, or run the servers as a system user, or make the directory /run/mcp-state for them";
    report.hint("logout", seen, mend);
}

/// Whether `RemoveIPC` is on in logind's configuration. The default is on.
fn removes_ipc() -> bool {
    let snippets = fs::read_dir("/etc/systemd/logind.conf.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = snippets.collect();
    files.sort();
    files.insert(0, "/etc/systemd/logind.conf".into());
    let said = files.iter().filter_map(|file| fs::read_to_string(file).ok()).flat_map(|text| {
        let values = text.lines().filter_map(|line| line.trim().strip_prefix("RemoveIPC=").map(str::to_owned));
        values.collect::<Vec<_>>()
    });
    said.last().is_none_or(|value| !matches!(value.as_str(), "no" | "false" | "0" | "off"))
}
