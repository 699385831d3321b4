//! Checks of php-fpm's pools: their sizes and the limits, their users and the store's owner.

use std::fs;
use std::path::PathBuf;

use mcp_state::{Dsn, Limit, Settings};

use super::Report;
use crate::failure::Failure;
use crate::store::{Located, user_name};

/// The number of processes that can have one store open: LMDB's reader slots.
const MOST_PROCESSES: u64 = 4096;
/// With fewer workers, a few waits leave no worker for their answers.
const FEW_WORKERS: u64 = 8;

/// The configuration of a pool.
#[derive(Debug)]
pub(super) struct Pool {
    file: PathBuf,
    name: String,
    user: Option<String>,
    max_children: Option<u64>,
}

/// Reads the pools of the given files, or of the default directories.
pub(super) fn find(given: &[PathBuf]) -> Result<Vec<Pool>, Failure> {
    let mut pools = Vec::new();
    for file in given {
        let text =
            fs::read_to_string(file).map_err(|error| Failure::usage(format!("--pool {}: {error}", file.display())))?;
        pools.extend(parse(file, &text));
    }
    if given.is_empty() {
        let versions = fs::read_dir("/etc/php").into_iter().flatten().flatten();
        let debian = versions.map(|version| version.path().join("fpm/pool.d"));
        for directory in debian.chain(["/usr/local/etc/php-fpm.d".into(), "/etc/php-fpm.d".into()]) {
            let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
            let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "conf")).collect();
            files.sort();
            for file in files {
                pools.extend(fs::read_to_string(&file).map(|text| parse(&file, &text)).unwrap_or_default());
            }
        }
    }
    Ok(pools)
}

fn parse(file: &std::path::Path, text: &str) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    let mut in_pool = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            in_pool = name != "global";
            if in_pool {
                pools.push(Pool { file: file.to_owned(), name: name.to_owned(), user: None, max_children: None });
            }
            continue;
        }
        let (Some(pool), true, Some((name, value))) = (pools.last_mut(), in_pool, line.split_once('=')) else {
            continue;
        };
        let value = value.split(';').next().unwrap_or_default().trim().trim_matches('"');
        match name.trim() {
            "user" => pool.user = Some(value.to_owned()),
            "pm.max_children" => pool.max_children = value.parse().ok(),
            _ => {}
        }
    }
    pools
}

pub(super) fn check(report: &mut Report, pools: &[Pool], store: Option<&Located>) {
    let settings =
        store.and_then(|store| Dsn::parse(&store.dsn).ok()).map_or_else(Settings::default, |dsn| dsn.settings);
    for pool in pools {
        let place = format!("{} in {}", pool.name, pool.file.display());
        if let (Some(user), Some(files)) = (&pool.user, store.and_then(|store| store.files.as_ref()))
            && settings.group.is_none()
            && *user != user_name(files.user)
        {
            let seen = format!("{place} runs as {user}, and the store belongs to {}", user_name(files.user));
            report.hint(
                "pool",
                seen,
                "the pool uses its own user's store with this name; the option group=NAME shares one store between users",
            );
        }
        let Some(children) = pool.max_children else { continue };
        let seen = format!("{place}: pm.max_children = {children}");
        let owners = settings.limit(Limit::Owners);
        if children > MOST_PROCESSES {
            report.wrong(
                "pool",
                seen,
                format!("lower pm.max_children: at most {MOST_PROCESSES} processes can have one store open"),
            );
        } else if children > owners {
            let mend = format!(
                "one session may have {owners} owners; raise max_owners if one client uses more workers at once"
            );
            report.hint("pool", seen, mend);
        } else if children < FEW_WORKERS {
            let mend = "each request that waits for its client occupies a worker, and its answer needs another one; raise pm.max_children above the expected number of waits, and set maxWaiting below pm.max_children";
            report.hint("pool", seen, mend);
        } else {
            report.good("pool", seen);
        }
    }
    let all: u64 =
        pools.iter().filter_map(|pool| pool.max_children).filter(|children| *children <= MOST_PROCESSES).sum();
    if all > MOST_PROCESSES {
        report.hint(
            "pool",
            format!("all pools together may have {all} processes"),
            format!("at most {MOST_PROCESSES} processes can share one store"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_read_as_php_fpm_reads_it() {
        let text = "[global]\nerror_log = x\n; a comment\n[www]\nuser = www-data ; why\n;pm.max_children = 9\npm.max_children = 5\n[b]\nuser=\"deploy\"\n";
        let pools = parse(std::path::Path::new("x.conf"), text);
        let seen: Vec<_> = pools.iter().map(|p| (p.name.as_str(), p.user.as_deref(), p.max_children)).collect();
        assert_eq!(seen, [("www", Some("www-data"), Some(5)), ("b", Some("deploy"), None)]);
    }
}
