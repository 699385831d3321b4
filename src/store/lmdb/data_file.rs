//! The data file and the map over it: their lengths, and that nothing is mapped that has no space behind it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::pages::{self, Fault};
use super::place::{Directory, allocate};
use super::room::address_space_limit;
use crate::error::{LEAST_MAP, StoreError};
use crate::settings::{Limit, Settings};

/// The length of the map, the same for every process whatever its limits: only the written part takes memory.
pub(super) const MAP_BYTES: u64 = if cfg!(target_pointer_width = "64") { 32 << 30 } else { 1 << 30 };
/// The length of a map that pages are written through is a multiple of this.
pub(super) const MAP_STEP: u64 = 1 << 20;

/// The length of the map, of which only the written part takes memory: [`MAP_BYTES`], or less where the address space of this
/// process is limited. The map is never shorter than the data, of `needed` bytes.
pub(super) fn map_bytes(needed: u64) -> u64 {
    let Some(limit) = address_space_limit() else { return MAP_BYTES };
    let mut bytes = MAP_BYTES;
    while bytes > LEAST_MAP && bytes > limit / 2 {
        bytes /= 2;
    }
    bytes.max(needed.next_multiple_of(MAP_STEP))
}

/// The length of a map that pages are written through: four times the logical limit, and never shorter than the data file, which
/// would lose its end.
pub(super) fn write_map_bytes(generation: &Directory, settings: &Settings) -> u64 {
    let limit = settings.limit(Limit::StoreBytes).min(MAP_BYTES / 4);
    let has = fs::symlink_metadata(generation.path.join("data.mdb")).map_or(0, |metadata| metadata.len());
    (4 * limit).max(has).next_multiple_of(MAP_STEP)
}

/// Allocates the whole map, so that no write to it lacks space: the kernel would end the process.
pub(super) fn allocate_map(file: &File, path: &Path, bytes: u64) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt;
    const BLOCK: u64 = 512;
    let metadata = file.metadata().map_err(|error| StoreError::io("look at", path, error))?;
    if metadata.len() >= bytes && metadata.blocks() * BLOCK >= bytes {
        return Ok(());
    }
    let before = metadata.len();
    allocate(file, bytes).map_err(|source| {
        // What was allocated on the way to a failure is given back.
        let _ = file.set_len(before);
        StoreError::NoRoomForMap { path: path.to_owned(), needed: bytes, source }
    })
}

/// Shortens a file to `needed` bytes when it is longer.
pub(super) fn give_back(file: &File, needed: u64) -> io::Result<()> {
    if file.metadata()?.len() > needed { file.set_len(needed) } else { Ok(()) }
}

pub(super) fn is_empty(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() == 0)
}

/// Lengthens the data file to what its meta pages say, at most `most` bytes: a read of the map behind the file's end would end the
/// process. LMDB itself leaves the file shorter when it allocated and freed the last page within one transaction. Returns whether
/// the file was too short, and the length that it needs. A process that is `alone` also checks the pages, which nobody changes
/// meanwhile.
pub(super) fn complete(file: &File, path: &Path, alone: bool, most: u64) -> Result<(bool, u64), StoreError> {
    use std::os::unix::fs::FileExt;
    const HEADER: usize = 16;
    const META_BYTES: usize = 160;
    const MAGIC: u64 = 0xBEEF_C0DE;
    let length = |file: &File| file.metadata().map(|metadata| metadata.len());
    let io_error = |action, error| StoreError::io(action, path, error);
    let before = length(file).map_err(|error| io_error("look at", error))?;
    if before == 0 {
        return Ok((false, 0));
    }
    let mut pages = vec![0; before.min(2 * 65_536) as usize];
    file.read_exact_at(&mut pages, 0).map_err(|error| io_error("read", error))?;
    let number = |page: usize, offset: usize| -> Option<u64> {
        let at = page + HEADER + offset;
        Some(u64::from_le_bytes(pages.get(at..at + 8)?.try_into().ok()?))
    };
    let damaged = |reason: String| StoreError::corrupt(path, format!("{reason}; reset the store"));
    let reject = |reason| Err(damaged(reason));
    // MDB_meta: magic and version (u32 each), address, map size, two MDB_db of 48 bytes, last page, transaction. The page size
    // stands in the first MDB_db's pad field.
    let Some(page_size) = number(0, 24).map(|word| (word & 0xffff_ffff) as usize) else {
        return reject(format!("the data file is only {before} bytes long"));
    };
    if !(512..=65_536).contains(&page_size) || !page_size.is_power_of_two() || pages.len() < page_size + META_BYTES {
        return reject("its first page is not one of LMDB's".into());
    }
    for page in [0, page_size] {
        if number(page, 0).map(|word| word & 0xffff_ffff) != Some(MAGIC) {
            return reject("its first page is not one of LMDB's".into());
        }
    }
    let last = [0, page_size].into_iter().filter_map(|page| number(page, 120)).max().unwrap_or(u64::MAX);
    let needed = last.saturating_add(1).saturating_mul(page_size as u64);
    // After the meta pages: a writer lengthens the file before it names the new pages.
    let now = length(file).map_err(|error| io_error("look at", error))?;
    if needed > most {
        return reject(format!("its meta pages name a page at byte {needed}"));
    }
    let is_short = now < needed;
    if is_short {
        allocate(file, needed).map_err(|error| io_error("lengthen", error))?;
    }
    if alone {
        pages::check(file, page_size).map_err(|fault| match fault {
            Fault::Io(error) => io_error("read", error),
            Fault::Damage(what) => damaged(what),
        })?;
    }
    Ok((is_short, needed))
}
