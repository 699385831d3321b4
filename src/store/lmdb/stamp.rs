//! The stamp: who made the store's files, and who may share them.
//!
//! A small text file beside the generations of a store. It is read before anything is mapped, since LMDB's lock file is laid
//! out differently by different C libraries: opening it with the wrong one would break exclusion without a word.

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
/// The oldest that it reads.
const OLDEST_FORMAT: u32 = 4;

/// The name of the stamp: a directory with one is a store.
pub(super) const FILE: &str = "stamp";
/// The next one, before it takes that name.
pub(super) const NEW_FILE: &str = "stamp.new";
/// The version of the stamp file itself.
const STAMP_VERSION: u32 = 1;

/// Beyond the number of every generation that was ever made.
pub(super) const GENERATIONS: u32 = 1 << 31;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) stamp: u32,
    /// The layout of rows, see [`crate::store::rows`].
    pub(super) format: u32,
    /// Which directory of files is the store's now.
    pub(super) generation: u32,
    /// Whether that directory's files were made to the end: else the next to open makes others.
    #[serde(default = "yes")]
    pub(super) settled: bool,
    /// The boot whose clock the times in the records are of.
    pub(super) boot: String,
    pub(super) c_library: String,
    pub(super) architecture: String,
    pub(super) lock_format: String,
    /// Where the processes live that have the store open.
    pub(super) pid_namespace: u64,
    /// Whether every process that wrote since the boot did so durably.
    pub(super) durable: bool,
    /// How long the map is through which pages are written; none when they are written with calls.
    #[serde(default)]
    pub(super) write_map: Option<u64>,
    /// How far the boot clock of those who have the store open is from the machine's; older libraries do not say.
    #[serde(default)]
    pub(super) time_offset_ms: Option<i64>,
    /// The inode of the settled data file, by which newcomers tell that it was replaced under those who have it open; older
    /// libraries do not say.
    #[serde(default)]
    pub(super) data_inode: Option<u64>,
    /// Milliseconds from the boot clock to 1970, to carry expiry into another boot.
    pub(super) wall_offset: Millis,
}

impl Stamp {
    /// The stamp this library makes here and now, before it makes the files.
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

    /// The stamp of a store: none in a new one.
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

    /// Puts the stamp in place, all or nothing.
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

    /// The time and place that the rows of a store written under this stamp belong to.
    pub(super) fn era(&self) -> Era {
        Era { boot: self.boot.clone(), wall_offset: self.wall_offset, pid_namespace: self.pid_namespace }
    }

    /// Whether its times are of the boot that this process runs in.
    pub(super) fn is_of_boot(&self, mine: &Self) -> bool {
        is_same_boot(&self.boot, &mine.boot)
    }

    /// What keeps a process whose boot clock is set otherwise from reading the times of one boot.
    pub(super) fn time_difference(&self, other: &Self) -> Option<String> {
        let mine = self.time_offset_ms.unwrap_or(0);
        // An older library was in this time namespace if its offset to the wall clock is nearer to this one's.
        let moved = other.wall_offset.abs_diff(self.wall_offset) > mine.unsigned_abs() / 2;
        let its = other.time_offset_ms.unwrap_or(if moved { 0 } else { mine });
        (its != mine).then(|| {
            format!("it is of a time namespace whose boot clock is {its} ms from the machine's, and this process's is {mine} ms; use it from there, or name another store")
        })
    }

    /// What keeps a process of this library, here, from sharing the store with those that made the stamp.
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
