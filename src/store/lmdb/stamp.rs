//! The stamp: what made the store's files, and which processes may share them.
//!
//! A small JSON file beside the generations of a store. Each opening reads it before it maps anything: C libraries lay out LMDB's
//! lock file differently, and opening it with the wrong one would silently break exclusion.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::data_file::{MAP_BYTES, MAP_STEP};
use super::environment::lock_format;
use super::ours;
use super::place::Directory;
use crate::clock::{BootClock, Clock, Millis, wall_now};
use crate::error::StoreError;
use crate::fault;
use crate::process::{boot_id, is_same_boot, pid_namespace, time_offset};
use crate::store::era::Era;

/// The layout of rows and the encoding of what is in them, as this library writes it when it is alone with a store.
const NEWEST_FORMAT: u32 = 5;
/// The first format with times in its records.
pub(super) const TIMED_FORMAT: u32 = 5;
/// The oldest format that it reads.
const OLDEST_FORMAT: u32 = 4;

/// The name of the stamp; a directory with a stamp is a store.
pub(super) const FILE: &str = "stamp";
/// The name of a new stamp before it replaces the old one.
pub(super) const NEW_FILE: &str = "stamp.new";
/// The version of the stamp file itself.
const STAMP_VERSION: u32 = 1;

/// Above the number of every generation.
pub(super) const GENERATIONS: u32 = 1 << 31;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) stamp: u32,
    /// The layout of rows, see [`crate::store::rows`].
    pub(super) format: u32,
    /// The number of the current generation.
    pub(super) generation: u32,
    /// Whether the generation's files are complete; otherwise the next opening makes another generation.
    #[serde(default = "yes")]
    pub(super) settled: bool,
    /// The id of the boot whose clock the times in the rows follow.
    pub(super) boot: String,
    pub(super) c_library: String,
    pub(super) architecture: String,
    pub(super) lock_format: String,
    /// The pid namespace of the processes that have the store open.
    pub(super) pid_namespace: u64,
    /// Whether every process that wrote since the boot did so durably.
    pub(super) durable: bool,
    /// The length of the write map in bytes; `None` when pages are written with calls.
    #[serde(default)]
    pub(super) write_map: Option<u64>,
    /// The offset of the processes' boot clock to the machine's (time namespaces); older libraries leave it out.
    #[serde(default)]
    pub(super) time_offset_ms: Option<i64>,
    /// The inode of the settled data file, which tells that the file was replaced under its processes; older libraries leave it out.
    #[serde(default)]
    pub(super) data_inode: Option<u64>,
    /// Milliseconds from the boot clock to 1970, to carry expiry into another boot.
    pub(super) wall_offset: Millis,
}

impl Stamp {
    /// The stamp that this process makes before it makes the files.
    pub(super) fn new(generation: u32, durable: bool) -> Self {
        Self {
            stamp: STAMP_VERSION,
            format: NEWEST_FORMAT,
            generation,
            settled: false,
            boot: boot_id(),
            c_library: C_LIBRARY.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            lock_format: lock_format(),
            pid_namespace: pid_namespace().unwrap_or_default(),
            durable,
            write_map: None,
            time_offset_ms: Some(time_offset()),
            data_inode: None,
            wall_offset: wall_offset(),
        }
    }

    /// Reads the stamp of a store; a new store has none.
    pub(super) fn read(directory: &Directory) -> Result<Option<Self>, StoreError> {
        let path = directory.path.join(FILE);
        let Some(text) = directory.read(FILE)? else { return Ok(None) };
        Self::parse(&text, &path).map(Some)
    }

    /// Reads the text of a stamp that is at `path`.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<Self, StoreError> {
        // A newer stamp may have other fields; its version says so before they are missed.
        #[derive(Deserialize)]
        struct Version {
            stamp: u32,
        }
        let damaged = |error: serde_json::Error| {
            StoreError::corrupt(path, format!("its stamp cannot be read ({error}); reset the store"))
        };
        let Version { stamp } = serde_json::from_slice(text).map_err(damaged)?;
        if stamp > STAMP_VERSION {
            return Err(newer(path, format!("stamp version {stamp}")));
        }
        let stamp: Self = serde_json::from_slice(text).map_err(damaged)?;
        if stamp.format > NEWEST_FORMAT {
            return Err(newer(path, format!("format {}", stamp.format)));
        }
        if stamp.format < OLDEST_FORMAT {
            let reason = format!("it was written by an older mcp-state (format {}); reset the store", stamp.format);
            return Err(StoreError::corrupt(path, reason));
        }
        if stamp.generation >= GENERATIONS {
            let reason = format!("its stamp names generation {}, which nobody made; reset the store", stamp.generation);
            return Err(StoreError::corrupt(path, reason));
        }
        if let Some(bytes) = stamp.write_map
            && (bytes == 0 || bytes > MAP_BYTES || !bytes.is_multiple_of(MAP_STEP))
        {
            let reason = format!("its stamp names a map of {bytes} bytes, which nobody made; reset the store");
            return Err(StoreError::corrupt(path, reason));
        }
        Ok(stamp)
    }

    /// Replaces the stamp, all or nothing.
    pub(super) fn write(&self, directory: &Directory) -> Result<(), StoreError> {
        use std::io::Write;
        let (new, path) = (directory.path.join(NEW_FILE), directory.path.join(FILE));
        let text = serde_json::to_vec_pretty(self).expect("a stamp is plain data");
        ours::remove_file(&new)?;
        let mut file = directory.open(NEW_FILE)?;
        file.write_all(&text)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&new, &path))
            .and_then(|()| fs::File::open(&directory.path)?.sync_all())
            .map_err(|error| StoreError::io("write", path, error))
    }

    /// The era of the rows that are written under this stamp.
    pub(super) fn era(&self) -> Era {
        Era { boot: self.boot.clone(), wall_offset: self.wall_offset, pid_namespace: self.pid_namespace }
    }

    /// Whether the stamp's times belong to the boot of this process.
    pub(super) fn is_of_boot(&self, mine: &Self) -> bool {
        is_same_boot(&self.boot, &mine.boot)
    }

    /// The reason why a process with another boot clock cannot read the times of this boot.
    pub(super) fn time_difference(&self, other: &Self) -> Option<String> {
        let mine = self.time_offset_ms.unwrap_or(0);
        // An older library was in this time namespace if its offset to the wall clock is nearer to this one's.
        let moved = other.wall_offset.abs_diff(self.wall_offset) > mine.unsigned_abs() / 2;
        let its = other.time_offset_ms.unwrap_or(if moved { 0 } else { mine });
        (its != mine).then(|| {
            format!("it is of a time namespace whose boot clock is {its} ms from the machine's, and this process's is {mine} ms; use it from there, or name another store")
        })
    }

    /// The reason why this process cannot share the store with the processes that made the stamp.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        [
            ("C library", &self.c_library, &other.c_library),
            ("architecture", &self.architecture, &other.architecture),
            ("lock layout", &self.lock_format, &other.lock_format),
        ]
        .into_iter()
        .find(|(_, mine, its)| mine != its)
        .map(|(what, mine, its)| {
            format!("running processes use it with {what} {its} and this one has {mine}; use the same build, or another store")
        })
    }
}

fn yes() -> bool {
    true
}

pub(super) fn wall_offset() -> Millis {
    let pretended = fault::pretended("WALL_OFFSET_MS").and_then(|text| text.parse().ok()).unwrap_or(0);
    wall_now().saturating_sub(BootClock.now()).saturating_add_signed(pretended)
}

fn newer(path: &Path, what: String) -> StoreError {
    StoreError::Incompatible {
        path: path.parent().unwrap_or(path).to_owned(),
        reason: format!("it was written by a newer mcp-state ({what}); upgrade this one, or use another store"),
    }
}

const C_LIBRARY: &str = if cfg!(target_env = "musl") {
    "musl"
} else if cfg!(target_env = "gnu") {
    "glibc"
} else {
    std::env::consts::OS
};
