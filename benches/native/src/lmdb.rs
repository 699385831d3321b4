//! The little of LMDB that the bare transactions need, called directly: no layer between is part of the floor.

use std::ffi::{CString, c_int, c_uint};
use std::marker::PhantomData;
use std::path::Path;
use std::{ptr, slice};

use lmdb_master_sys as ffi;

use crate::Result;

/// An open environment. It is never closed: the process ends soon.
pub(crate) struct Environment {
    env: *mut ffi::MDB_env,
    rows: ffi::MDB_dbi,
}

impl Environment {
    /// Opens the files of a directory with the flags of a store in shared memory: no durability, written with calls or through
    /// the map, which is sparse here.
    pub(crate) fn open(directory: &Path, write_map: bool) -> Result<Self> {
        let path = CString::new(directory.to_str().ok_or("the directory's name is not UTF-8")?)?;
        let writes = if write_map { ffi::MDB_WRITEMAP } else { 0 };
        let flags = ffi::MDB_NORDAHEAD | ffi::MDB_NOSYNC | ffi::MDB_NOMETASYNC | writes;
        let mut this = Self { env: ptr::null_mut(), rows: 0 };
        // SAFETY: the handle is used after it was made; the path is NUL-terminated and outlives the call.
        unsafe {
            check(ffi::mdb_env_create(&raw mut this.env))?;
            check(ffi::mdb_env_set_mapsize(this.env, 32 << 30))?;
            check(ffi::mdb_env_set_maxreaders(this.env, 4096))?;
            check(ffi::mdb_env_open(this.env, path.as_ptr(), flags, 0o600))?;
        }
        let mut rows = 0;
        let transaction = this.read()?;
        // SAFETY: the transaction is live; a null name means the unnamed database.
        check(unsafe { ffi::mdb_dbi_open(transaction.txn, ptr::null(), 0, &raw mut rows) })?;
        drop(transaction);
        this.rows = rows;
        Ok(this)
    }

    pub(crate) fn read(&self) -> Result<Transaction<'_>> {
        self.begin(ffi::MDB_RDONLY)
    }

    pub(crate) fn write(&self) -> Result<Transaction<'_>> {
        self.begin(0)
    }

    fn begin(&self, flags: c_uint) -> Result<Transaction<'_>> {
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open; there is no parent.
        check(unsafe { ffi::mdb_txn_begin(self.env, ptr::null_mut(), flags, &raw mut txn) })?;
        Ok(Transaction { txn, rows: self.rows, environment: PhantomData })
    }
}

pub(crate) struct Transaction<'e> {
    txn: *mut ffi::MDB_txn,
    rows: ffi::MDB_dbi,
    environment: PhantomData<&'e Environment>,
}

impl Transaction<'_> {
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (mut key, mut found) = (value(key), value(&[]));
        // SAFETY: the transaction is live.
        match unsafe { ffi::mdb_get(self.txn, self.rows, &raw mut key, &raw mut found) } {
            ffi::MDB_NOTFOUND => Ok(None),
            result => {
                check(result)?;
                // SAFETY: LMDB's bytes stay until the transaction writes or ends, and both need `self` back.
                Ok(Some(unsafe { slice::from_raw_parts(found.mv_data.cast(), found.mv_size) }))
            }
        }
    }

    pub(crate) fn put(&mut self, key: &[u8], data: &[u8]) -> Result<()> {
        let (mut key, mut data) = (value(key), value(data));
        // SAFETY: the transaction is live and writes; LMDB copies both.
        check(unsafe { ffi::mdb_put(self.txn, self.rows, &raw mut key, &raw mut data, 0) })
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut key = value(key);
        // SAFETY: the transaction is live and writes; without data the whole row goes.
        check(unsafe { ffi::mdb_del(self.txn, self.rows, &raw mut key, ptr::null_mut()) })
    }

    pub(crate) fn commit(mut self) -> Result<()> {
        let txn = std::mem::replace(&mut self.txn, ptr::null_mut());
        // SAFETY: the transaction is live and not used again.
        check(unsafe { ffi::mdb_txn_commit(txn) })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.txn.is_null() {
            // SAFETY: the transaction is live and not used again.
            unsafe { ffi::mdb_txn_abort(self.txn) };
        }
    }
}

fn value(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

fn check(result: c_int) -> Result<()> {
    if result == 0 { Ok(()) } else { Err(format!("LMDB: error {result}").into()) }
}
