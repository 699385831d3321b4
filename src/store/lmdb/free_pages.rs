//! The pages of the data file that hold nothing: LMDB's table of free pages, and which of them no snapshot shows.

use std::path::Path;
use std::ptr;

use lmdb_master_sys as ffi;

use super::environment::{Environment, Handle, check, failed};
use super::transaction::{Cursor, Ended, NOTHING, bytes_of};
use crate::error::StoreError;

/// A commit and the end of its data. The snapshots of this commit, and of those before, show no page from that end on. Such a page
/// can be given back although LMDB does not reuse it while the snapshots are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Horizon {
    /// The number of the commit.
    pub(super) number: u64,
    /// The first page past its data.
    pub(super) end_page: u64,
}

impl Environment {
    /// Excludes writers while `job` runs with the free pages that no snapshot shows, in rising order, and the bytes of a page. With a
    /// `horizon` that includes pages younger than old snapshots, see [`Horizon`].
    pub(super) fn with_free_pages<T>(
        &self,
        horizon: Option<Horizon>,
        job: impl FnOnce(&[u64], u64) -> T,
    ) -> Result<T, StoreError> {
        let (handle, path) = (self.handle.read(), self.path());
        let writer = Ended(handle.begin(0).map_err(|result| failed("begin a transaction", path, result))?);
        // SAFETY: the transaction is live.
        let last_commit = unsafe { ffi::mdb_txn_id(writer.0) as u64 } - 1;
        // A reader that begins now gets the last commit, since this writer has not ended.
        let snapshots: Vec<_> = handle.readers().iter().filter_map(|reader| reader.transaction).collect();
        let oldest_after = |number| snapshots.iter().copied().filter(|&of| of > number).fold(last_commit, u64::min);
        let oldest = snapshots.iter().copied().fold(last_commit, u64::min);
        let (first_new, oldest_new) =
            horizon.map_or((u64::MAX, oldest), |horizon| (horizon.end_page, oldest_after(horizon.number)));
        let mut pages = handle.pages_freed_before(oldest_new.max(oldest), path, |transaction, page| {
            transaction < oldest || (page >= first_new && transaction < oldest_new)
        })?;
        pages.sort_unstable();
        Ok(job(&pages, handle.page_size))
    }
}

impl Handle {
    /// The free pages of the last commit that were freed by transactions before `oldest`, filtered by transaction and page.
    fn pages_freed_before(
        &self,
        oldest: u64,
        path: &Path,
        is_wanted: impl Fn(u64, u64) -> bool,
    ) -> Result<Vec<u64>, StoreError> {
        const FREE_PAGES: ffi::MDB_dbi = 0;
        let snapshot = Ended(self.begin(ffi::MDB_RDONLY).map_err(|result| failed("read", path, result))?);
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is live; LMDB lets readers open a cursor on its own table of free pages.
        check("open a cursor", path, unsafe { ffi::mdb_cursor_open(snapshot.0, FREE_PAGES, &raw mut cursor) })?;
        let cursor = Cursor(cursor);
        let (mut pages, mut key, mut list) = (Vec::new(), NOTHING, NOTHING);
        loop {
            // SAFETY: the cursor and its transaction are live; LMDB sets key and value.
            match unsafe { ffi::mdb_cursor_get(cursor.0, &raw mut key, &raw mut list, ffi::MDB_NEXT) } {
                ffi::MDB_NOTFOUND => break,
                result => check("read", path, result)?,
            }
            // SAFETY: both are borrowed only here, and nothing is written meanwhile.
            let (key, list) = unsafe { (bytes_of(&key), bytes_of(&list)) };
            // The key is the number of the transaction that freed them, the value their count and their numbers.
            let Some(transaction) = words_of(key).next().filter(|&transaction| transaction < oldest) else { break };
            let mut numbers = words_of(list);
            let count = numbers.next().unwrap_or(0) as usize;
            pages.extend(numbers.take(count).filter(|&page| is_wanted(transaction, page)));
        }
        Ok(pages)
    }
}

/// LMDB's own numbers, as many as there are.
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(size_of::<usize>());
    words.map(|word| usize::from_ne_bytes(word.try_into().expect("as many bytes")) as u64)
}
