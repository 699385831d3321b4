//! A transaction of LMDB, and its rows.
//!
//! A transaction borrows the environment's handle, so the environment is not opened anew while a transaction is live. Read
//! transactions are reset and kept instead of ended: renewing one costs less than beginning another.

use std::cell::OnceCell;
use std::ffi::{c_int, c_uint};
use std::path::Path;
use std::ptr;

use lmdb_master_sys as ffi;
use parking_lot::RwLockReadGuard;

use super::environment::{Environment, Handle, check, failed};
use super::free_pages::Horizon;
use crate::error::StoreError;
use crate::store::rows::{Rows, RowsMut};

/// The offset in `MDB_txn` of the number of the first page past the data: behind two pointers, a count and a mutex. LMDB's API
/// shows this number only for commits, too late to refuse one.
const NEXT_PAGE: usize = (2 * size_of::<usize>() + size_of::<c_uint>())
    .next_multiple_of(align_of::<libc::pthread_mutex_t>())
    .next_multiple_of(align_of::<usize>())
    + size_of::<libc::pthread_mutex_t>();

/// A transaction: of a reader, or of the one writer.
///
/// One cursor serves all rows: the rows of a session are adjacent, and a cursor beside a row finds that row without a search from
/// the root.
pub(super) struct Transaction<'e> {
    path: &'e Path,
    txn: *mut ffi::MDB_txn,
    writes: bool,
    /// Bytes of written keys and values.
    written: u64,
    cursor: OnceCell<Cursor>,
    /// Released after the transaction has ended, see [`Drop`].
    handle: RwLockReadGuard<'e, Handle>,
}

impl<'e> Transaction<'e> {
    pub(super) fn begin(environment: &'e Environment, flags: c_uint) -> Result<Self, StoreError> {
        let path = environment.path();
        let mut handle = environment.handle.read();
        let mut begun = handle.begin_or_renew(flags);
        if matches!(begun, Err(ffi::MDB_READERS_FULL)) && handle.clear_dead_readers(path)? > 0 {
            begun = handle.begin_or_renew(flags);
        }
        if matches!(begun, Err(ffi::MDB_PANIC)) {
            drop(handle);
            environment.revive()?;
            handle = environment.handle.read();
            begun = handle.begin_or_renew(flags);
        }
        match begun {
            Ok((txn, cursor)) => {
                Ok(Self { path, txn, writes: flags & ffi::MDB_RDONLY == 0, written: 0, cursor, handle })
            }
            Err(result) => Err(failed("begin a transaction", path, result)),
        }
    }

    /// Commits the changes, all or nothing.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        crate::fault::point("before-commit");
        self.cursor.take();
        let txn = std::mem::replace(&mut self.txn, ptr::null_mut());
        // SAFETY: the transaction is live and is not used again, whatever the outcome.
        let result = unsafe { ffi::mdb_txn_commit(txn) };
        check("commit", self.path, result)
    }

    /// The number of the snapshot, or of the coming commit.
    pub(super) fn number(&self) -> u64 {
        // SAFETY: the transaction is live.
        unsafe { ffi::mdb_txn_id(self.txn) as u64 }
    }

    /// Bytes of keys and values that the transaction has written.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written
    }

    /// The end of the pages that this snapshot shows.
    pub(super) fn horizon(&self) -> Horizon {
        Horizon { number: self.number(), end_page: self.end_bytes() / self.handle.page_size }
    }

    /// The end of the data file as the transaction leaves it, in bytes, without the list of free pages that its commit writes.
    #[expect(clippy::cast_ptr_alignment, reason = "the offset is that of an aligned number in LMDB's structure")]
    pub(super) fn end_bytes(&self) -> u64 {
        // SAFETY: the transaction is live, and the offset is that of a number in it, as a test checks for this build of LMDB.
        let next_page = unsafe { self.txn.cast::<u8>().add(NEXT_PAGE).cast::<usize>().read() };
        next_page as u64 * self.handle.page_size
    }

    fn cursor(&self) -> Result<*mut ffi::MDB_cursor, StoreError> {
        if let Some(cursor) = self.cursor.get() {
            return Ok(cursor.0);
        }
        let cursor = Cursor::open(self)?;
        Ok(self.cursor.get_or_init(|| cursor).0)
    }

    /// Moves the cursor to a row and returns the row's value.
    fn find(&self, key: &[u8]) -> Result<Option<ffi::MDB_val>, StoreError> {
        let cursor = self.cursor()?;
        let (mut key, mut value) = (value_of(key), NOTHING);
        // SAFETY: the cursor and its transaction are live; LMDB does not write through the key.
        match unsafe { ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut value, ffi::MDB_SET) } {
            ffi::MDB_NOTFOUND => Ok(None),
            result => self.check("read", result).map(|()| Some(value)),
        }
    }

    fn put_at_cursor(&mut self, key: &[u8], value: &[u8], flags: c_uint) -> Result<(), StoreError> {
        let cursor = self.cursor()?;
        self.written += (key.len() + value.len()) as u64;
        let (mut key, mut value) = (value_of(key), value_of(value));
        // SAFETY: the cursor and its transaction are live; LMDB reads key and value and does not keep them.
        let result = unsafe { ffi::mdb_cursor_put(cursor, &raw mut key, &raw mut value, flags) };
        self.check("write", result)
    }

    fn check(&self, action: &'static str, result: c_int) -> Result<(), StoreError> {
        check(action, self.path, result)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let cursor = self.cursor.take();
        if self.txn.is_null() {
            return;
        }
        if let (Some(cursor), false) = (cursor, self.writes) {
            let mut resting = self.handle.resting.lock();
            if resting.len() < RESTING {
                // SAFETY: the transaction reads, is live, and is not used before it is renewed.
                unsafe { ffi::mdb_txn_reset(self.txn) };
                resting.push(Resting { txn: self.txn, cursor });
                return;
            }
        }
        // SAFETY: the transaction is live and is not used again; its cursor is closed.
        unsafe { ffi::mdb_txn_abort(self.txn) };
    }
}

fn value_of(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

pub(super) const NOTHING: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: ptr::null_mut() };

/// The bytes of a row.
///
/// # Safety
/// `value` must have been filled by LMDB in a transaction that lives at least as long as `'t` and that does not write to the
/// row meanwhile.
pub(super) unsafe fn bytes_of<'t>(value: &ffi::MDB_val) -> &'t [u8] {
    if value.mv_size == 0 {
        return &[];
    }
    // SAFETY: LMDB points to mv_size readable bytes of the map or of a dirty page, which stay while the caller's promise holds.
    unsafe { std::slice::from_raw_parts(value.mv_data.cast(), value.mv_size) }
}

impl Rows for Transaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, StoreError> {
        // SAFETY: the bytes are borrowed with self; writing needs `&mut self`.
        Ok(self.find(key)?.map(|value| unsafe { bytes_of(&value) }))
    }

    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        let cursor = Cursor::open(self)?;
        let (mut key, mut value) = (value_of(from), NOTHING);
        let mut operation = ffi::MDB_SET_RANGE;
        loop {
            // SAFETY: the cursor and its transaction are live; LMDB sets key and value, and reads only the key.
            match unsafe { ffi::mdb_cursor_get(cursor.0, &raw mut key, &raw mut value, operation) } {
                ffi::MDB_NOTFOUND => return Ok(()),
                result => self.check("scan", result)?,
            }
            // SAFETY: both are borrowed only for the visit, and nothing is written during the scan.
            if !visit(unsafe { bytes_of(&key) }, unsafe { bytes_of(&value) }) {
                return Ok(());
            }
            operation = ffi::MDB_NEXT;
        }
    }

    fn used_bytes(&self) -> Result<u64, StoreError> {
        // SAFETY: all-zero bytes are a valid MDB_stat, a struct of integers.
        let mut stat: ffi::MDB_stat = unsafe { std::mem::zeroed() };
        // SAFETY: the transaction is live and belongs to this environment; `stat` is writable.
        let result = unsafe { ffi::mdb_stat(self.txn, self.handle.dbi, &raw mut stat) };
        self.check("read statistics", result)?;
        let pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
        Ok(pages as u64 * u64::from(stat.ms_psize))
    }

    fn revision(&self) -> u64 {
        // A writer has the number that its commit will have.
        (self.number() - u64::from(self.writes)) ^ self.handle.salt
    }
}

impl RowsMut for Transaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put_at_cursor(key, value, 0)
    }

    fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<Option<usize>, StoreError> {
        let before = self.find(key)?.map(|before| before.mv_size);
        self.put_at_cursor(key, value, if before.is_some() { ffi::MDB_CURRENT } else { 0 })?;
        Ok(before)
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, StoreError> {
        let Some(before) = self.find(key)? else { return Ok(None) };
        // SAFETY: the cursor and its transaction are live, and the cursor stands on the row.
        self.check("delete", unsafe { ffi::mdb_cursor_del(self.cursor()?, 0) })?;
        Ok(Some(before.mv_size))
    }
}

/// A read transaction that was reset, and its cursor. It holds no pages; its reader slot belongs to the next transaction.
pub(super) struct Resting {
    txn: *mut ffi::MDB_txn,
    cursor: Cursor,
}

/// How many read transactions are kept at most: as many as threads that read at once.
const RESTING: usize = 8;

impl Resting {
    /// Renews the transaction for the current snapshot; LMDB's number when that fails.
    pub(super) fn renew(self) -> Result<(*mut ffi::MDB_txn, Cursor), c_int> {
        // SAFETY: the transaction was reset and is this value's own; the cursor was opened in it and is renewed with it.
        let renewed = unsafe {
            match ffi::mdb_txn_renew(self.txn) {
                ffi::MDB_SUCCESS => ffi::mdb_cursor_renew(self.txn, self.cursor.0),
                failed => failed,
            }
        };
        match renewed {
            ffi::MDB_SUCCESS => Ok((self.txn, self.cursor)),
            failed => {
                self.end();
                Err(failed)
            }
        }
    }

    pub(super) fn end(self) {
        drop(self.cursor);
        // SAFETY: the transaction is this value's own and is not used again; its cursor is closed.
        unsafe { ffi::mdb_txn_abort(self.txn) };
    }
}

/// A transaction that is aborted at the end.
pub(super) struct Ended(pub(super) *mut ffi::MDB_txn);

impl Drop for Ended {
    fn drop(&mut self) {
        // SAFETY: the transaction is this value's own and live.
        unsafe { ffi::mdb_txn_abort(self.0) };
    }
}

/// A cursor that is closed before its transaction ends.
pub(super) struct Cursor(pub(super) *mut ffi::MDB_cursor);

impl Cursor {
    fn open(transaction: &Transaction<'_>) -> Result<Self, StoreError> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is live.
        let result = unsafe { ffi::mdb_cursor_open(transaction.txn, transaction.handle.dbi, &raw mut cursor) };
        transaction.check("open a cursor", result)?;
        Ok(Self(cursor))
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: the cursor is live and its transaction has not ended: callers hold both.
        unsafe { ffi::mdb_cursor_close(self.0) };
    }
}
