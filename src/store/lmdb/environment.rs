//! LMDB behind a safe interface. Only this module, [`super::transaction`] and [`super::free_pages`] call its C functions.
//!
//! Invariants: an [`Environment`] is opened once per file and process and never closed while the process lives (closing would
//! drop this process's locks on the lock file); no transaction outlives the call that began it; a thread has at most one
//! transaction. All rows are in the unnamed database.
//!
//! One exception to "never closed": after a failed write of a meta page LMDB refuses every further use of the environment. This
//! process then closes it and opens it anew while no thread has a transaction. The guard stays locked and tells other processes
//! that this one still has the store.

use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use lmdb_master_sys as ffi;
use parking_lot::{Mutex, RwLock};

use super::room::address_space_limit;
use super::transaction::{Cursor, Resting, Transaction};
use crate::error::StoreError;
use crate::ids::random_bytes;

/// An open LMDB environment.
pub(super) struct Environment {
    opening: Opening,
    /// Transactions hold it shared; opening anew holds it exclusively.
    pub(super) handle: RwLock<Handle>,
}

/// LMDB's handle; null when opening anew has failed.
pub(super) struct Handle {
    pub(super) env: *mut ffi::MDB_env,
    pub(super) dbi: ffi::MDB_dbi,
    /// Bytes of a page.
    pub(super) page_size: u64,
    /// Random, so that revisions of different files are different.
    pub(super) salt: u64,
    /// Read transactions that are reset: renewing one costs less than beginning another.
    pub(super) resting: Mutex<Vec<Resting>>,
}

// SAFETY: LMDB environments may be used from any thread; transactions stay on the thread that began them, since they hold a
// guard that is not Send.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// The parameters of an environment.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) directory: PathBuf,
    pub(super) map_bytes: usize,
    pub(super) readers: u32,
    pub(super) sync: bool,
    /// Whether pages are written through the map, all of which must be allocated: LMDB makes the file as long as the map.
    pub(super) write_map: bool,
    pub(super) mode: libc::mode_t,
}

impl Environment {
    /// Opens the files of a directory. They must belong to no other environment of this process.
    pub(super) fn open(opening: Opening) -> Result<Self, StoreError> {
        let handle = RwLock::new(Handle::open(&opening)?);
        Ok(Self { opening, handle })
    }

    /// Closes an environment whose files nothing else in this process has open.
    pub(super) fn close(self) {
        self.handle.into_inner().close();
    }

    pub(super) fn path(&self) -> &Path {
        &self.opening.directory
    }

    /// Opens the environment anew, unless another thread has.
    pub(super) fn revive(&self) -> Result<(), StoreError> {
        let mut handle = self.handle.write();
        if handle.is_usable() {
            return Ok(());
        }
        std::mem::replace(&mut *handle, Handle::none()).close();
        *handle = Handle::open(&self.opening)?;
        Ok(())
    }

    /// Begins a read transaction.
    pub(super) fn read(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(self, ffi::MDB_RDONLY)
    }

    /// Begins the write transaction, after every other writer has ended.
    pub(super) fn write(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(self, 0)
    }

    /// Frees the reader slots of processes that have ended. Returns how many.
    pub(super) fn clear_dead_readers(&self) -> Result<u32, StoreError> {
        self.handle.read().clear_dead_readers(self.path())
    }

    /// The readers in LMDB's reader table.
    pub(super) fn readers(&self) -> Vec<Reader> {
        self.handle.read().readers()
    }
}

impl Handle {
    /// The reader table as LMDB prints it, one line a reader: pid, thread, transaction.
    pub(super) fn readers(&self) -> Vec<Reader> {
        extern "C" fn collect(line: *const std::ffi::c_char, lines: *mut c_void) -> c_int {
            // SAFETY: LMDB passes a NUL-terminated line, and back the pointer to the String below.
            let (line, lines) = unsafe { (CStr::from_ptr(line), &mut *lines.cast::<String>()) };
            lines.push_str(&line.to_string_lossy());
            0
        }
        let mut lines = String::new();
        if !self.env.is_null() {
            // SAFETY: the environment is open; `lines` outlives the call, which calls back on this thread only.
            unsafe { ffi::mdb_reader_list(self.env, Some(collect), (&raw mut lines).cast()) };
        }
        lines.lines().filter_map(Reader::parse).collect()
    }

    fn none() -> Self {
        Self { env: ptr::null_mut(), dbi: 0, page_size: 1, salt: 0, resting: Mutex::default() }
    }

    fn open(opening: &Opening) -> Result<Self, StoreError> {
        let path = opening.directory.as_path();
        let directory = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| StoreError::io("open", path, std::io::Error::other(error)))?;
        let mut env = ptr::null_mut();
        // SAFETY: `env` receives a handle that is only used after the call succeeded, and is closed on every failure before
        // anything else was opened with it; the directory is a NUL-terminated string that outlives the calls.
        unsafe {
            check("create an environment", path, ffi::mdb_env_create(&raw mut env))?;
            let mut flags = ffi::MDB_NORDAHEAD;
            if !opening.sync {
                flags |= ffi::MDB_NOSYNC | ffi::MDB_NOMETASYNC;
            }
            if opening.write_map {
                flags |= ffi::MDB_WRITEMAP;
            }
            let opened = check("set the map size", path, ffi::mdb_env_set_mapsize(env, opening.map_bytes))
                .and_then(|()| check("set the readers", path, ffi::mdb_env_set_maxreaders(env, opening.readers)))
                .and_then(|()| check_opened(opening, ffi::mdb_env_open(env, directory.as_ptr(), flags, opening.mode)));
            let opened = opened.and_then(|()| close_on_exec(env, path));
            if let Err(error) = opened {
                ffi::mdb_env_close(env);
                return Err(error);
            }
        }
        let salt = u64::from_le_bytes(random_bytes());
        let mut handle = Self { env, dbi: 0, page_size: 1, salt, resting: Mutex::default() };
        match handle.open_database(path) {
            Ok((dbi, page_size)) => {
                (handle.dbi, handle.page_size) = (dbi, page_size);
                Ok(handle)
            }
            Err(error) => {
                handle.close();
                Err(error)
            }
        }
    }

    /// The unnamed database, and the size of its pages in bytes.
    fn open_database(&self, path: &Path) -> Result<(ffi::MDB_dbi, u64), StoreError> {
        // SAFETY: all-zero bytes are a valid MDB_stat, a struct of integers.
        let mut stat: ffi::MDB_stat = unsafe { std::mem::zeroed() };
        let (mut dbi, txn) = (0, self.begin(ffi::MDB_RDONLY));
        let txn = txn.map_err(|result| failed("begin a transaction", path, result))?;
        // SAFETY: the transaction is live and ends here; a null name means the unnamed database, which always exists.
        let opened = unsafe {
            let mut opened = ffi::mdb_dbi_open(txn, ptr::null(), 0, &raw mut dbi);
            if opened == ffi::MDB_SUCCESS {
                opened = ffi::mdb_stat(txn, dbi, &raw mut stat);
            }
            ffi::mdb_txn_abort(txn);
            opened
        };
        check("open the database", path, opened).map(|()| (dbi, u64::from(stat.ms_psize)))
    }

    /// Closes the environment; no transaction of it may be live.
    fn close(self) {
        self.resting.into_inner().into_iter().for_each(Resting::end);
        // SAFETY: transactions borrow a handle, and this one is owned; a null handle is allowed.
        unsafe { ffi::mdb_env_close(self.env) };
    }

    /// Begins what [`Transaction`] is made of; LMDB's number when it cannot.
    pub(super) fn begin_or_renew(&self, flags: c_uint) -> Result<(*mut ffi::MDB_txn, OnceCell<Cursor>), c_int> {
        let resting = if flags & ffi::MDB_RDONLY == 0 { None } else { self.resting.lock().pop() };
        match resting {
            Some(resting) => resting.renew().map(|(txn, cursor)| (txn, OnceCell::from(cursor))),
            None => self.begin(flags).map(|txn| (txn, OnceCell::new())),
        }
    }

    /// Begins a transaction; LMDB's number when it cannot.
    pub(super) fn begin(&self, flags: c_uint) -> Result<*mut ffi::MDB_txn, c_int> {
        if self.env.is_null() {
            return Err(ffi::MDB_PANIC);
        }
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open; there is no parent transaction.
        match unsafe { ffi::mdb_txn_begin(self.env, ptr::null_mut(), flags, &raw mut txn) } {
            ffi::MDB_SUCCESS => Ok(txn),
            result => Err(result),
        }
    }

    fn is_usable(&self) -> bool {
        match self.begin(ffi::MDB_RDONLY) {
            Ok(txn) => {
                // SAFETY: the transaction is live and is not used again.
                unsafe { ffi::mdb_txn_abort(txn) };
                true
            }
            Err(result) => result != ffi::MDB_PANIC,
        }
    }

    pub(super) fn clear_dead_readers(&self, path: &Path) -> Result<u32, StoreError> {
        if self.env.is_null() {
            return Ok(0);
        }
        let mut dead: c_int = 0;
        // SAFETY: the environment is open.
        let result = unsafe { ffi::mdb_reader_check(self.env, &raw mut dead) };
        check("check readers", path, result)?;
        Ok(dead as u32)
    }
}

/// Makes the descriptor of the data file close on exec, so that no started program has it open. LMDB sets the flag on all its other
/// descriptors.
///
/// # Safety
/// The environment must be open.
unsafe fn close_on_exec(env: *mut ffi::MDB_env, path: &Path) -> Result<(), StoreError> {
    let mut descriptor = 0;
    // SAFETY: the caller's promise; `descriptor` is writable.
    check("ask for the descriptor of", path, unsafe { ffi::mdb_env_get_fd(env, &raw mut descriptor) })?;
    // SAFETY: the descriptor is open; the calls take and return flags only.
    let done = unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFD);
        flags != -1 && libc::fcntl(descriptor, libc::F_SETFD, flags | libc::FD_CLOEXEC) != -1
    };
    if done { Ok(()) } else { Err(StoreError::io("open", path, std::io::Error::last_os_error())) }
}

/// A process that has, or had, a snapshot open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    pub(super) pid: u32,
    /// The transaction whose snapshot it holds; none when it reads nothing now.
    pub(super) transaction: Option<u64>,
}

impl Reader {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let pid = fields.next()?.parse().ok()?;
        Some(Self { pid, transaction: fields.nth(1)?.parse().ok() })
    }
}

/// The error of a call that did not succeed.
pub(super) fn failed(action: &'static str, path: &Path, result: c_int) -> StoreError {
    check(action, path, result).expect_err("it failed")
}

/// Turns the result of opening an environment into an error that names the exhausted resource.
fn check_opened(opening: &Opening, result: c_int) -> Result<(), StoreError> {
    let path = opening.directory.as_path();
    match result {
        // LMDB takes one of the process's thread-specific keys for each environment.
        libc::EAGAIN => Err(StoreError::TooManyOpen { path: path.to_owned() }),
        libc::ENOMEM => Err(StoreError::NoAddressSpace { path: path.to_owned(), limit: address_space_limit() }),
        result => check("open", path, result),
    }
}

/// The one place that turns LMDB's numbers into errors.
pub(super) fn check(action: &'static str, path: &Path, result: c_int) -> Result<(), StoreError> {
    match result {
        ffi::MDB_SUCCESS => Ok(()),
        ffi::MDB_MAP_FULL => Err(StoreError::Full {
            used: 0,
            limit: 0,
            needed: 0,
            detail: " (the map is full: old snapshots keep its pages)".to_owned(),
        }),
        ffi::MDB_MAP_RESIZED => Err(StoreError::NoAddressSpace { path: path.to_owned(), limit: address_space_limit() }),
        ffi::MDB_VERSION_MISMATCH | ffi::MDB_INVALID => Err(StoreError::Incompatible {
            path: path.to_owned(),
            reason: format!("{}; stop what else uses it, then start again", describe(result)),
        }),
        ffi::MDB_CORRUPTED | ffi::MDB_PAGE_NOTFOUND => Err(StoreError::corrupt(path, describe(result))),
        // Positive numbers are the operating system's.
        1.. => Err(StoreError::io(action, path, std::io::Error::from_raw_os_error(result))),
        _ => Err(StoreError::Lmdb { action, code: result, message: describe(result) }),
    }
}

fn describe(result: c_int) -> String {
    // SAFETY: mdb_strerror returns a NUL-terminated string that lives at least until the next call on this thread.
    unsafe { CStr::from_ptr(ffi::mdb_strerror(result)) }.to_string_lossy().into_owned()
}

/// LMDB's version and the size of a mutex: two libraries share a store only when both are equal.
pub(super) fn lock_format() -> String {
    // SAFETY: null pointers mean that the numbers are not wanted; the string is static.
    let version = unsafe { CStr::from_ptr(ffi::mdb_version(ptr::null_mut(), ptr::null_mut(), ptr::null_mut())) };
    let version = version.to_string_lossy();
    let number = version.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(':');
    format!("lmdb {number}, mutex of {} bytes", size_of::<libc::pthread_mutex_t>())
}
