//! LMDB behind a safe interface: the one place that calls its C functions.
//!
//! Invariants: an [`Environment`] is opened once per file and process and never closed while the process lives (closing would
//! drop this process's locks on the lock file); no transaction outlives the call that began it; a thread has at most one
//! transaction. All rows are in the unnamed database.
//!
//! One exception to "never closed": when writing a meta page has failed, LMDB lets nobody use that environment again. It is
//! then closed and opened anew while no thread has a transaction; the guard, which stays locked, tells other processes that
//! this one still has the store.

use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use lmdb_master_sys as ffi;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::room::address_space_limit;
use crate::error::StoreError;
use crate::ids::random_bytes;
use crate::store::rows::{Rows, RowsMut};

/// An open LMDB environment.
pub(super) struct Environment {
    opening: Opening,
    /// Shared by transactions; exclusive while the environment is opened anew.
    handle: RwLock<Handle>,
}

/// LMDB's handle; null when it could not be opened anew.
struct Handle {
    env: *mut ffi::MDB_env,
    dbi: ffi::MDB_dbi,
    /// Bytes of a page.
    page_size: u64,
    /// Random, so that revisions of different files are different.
    salt: u64,
    /// Snapshots that have been read and given back: to renew one is less than to begin another.
    resting: Mutex<Vec<Resting>>,
}

/// A read transaction that was reset, and its cursor. It keeps no pages; its reader slot belongs to whoever renews it.
struct Resting {
    txn: *mut ffi::MDB_txn,
    cursor: Cursor,
}

/// How many snapshots rest at most: threads that read at once.
const RESTING: usize = 8;

// SAFETY: LMDB environments may be used from any thread; transactions stay on the thread that began them, since they hold a
// guard that is not Send.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// How an environment is opened.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) directory: PathBuf,
    pub(super) map_bytes: usize,
    pub(super) readers: u32,
    pub(super) sync: bool,
    /// Pages are written through the map, all of which must be allocated: LMDB makes the file as long as the map.
    pub(super) write_map: bool,
    pub(super) mode: libc::mode_t,
}

impl Environment {
    /// Opens the files of a directory. They must belong to no other environment of this process.
    pub(super) fn open(opening: Opening) -> Result<Self, StoreError> {
        let handle = RwLock::new(Handle::open(&opening)?);
        Ok(Self { opening, handle })
    }

    /// Closes an environment that was opened in vain: nobody else of this process has its files open.
    pub(super) fn close(self) {
        self.handle.into_inner().close();
    }

    fn path(&self) -> &Path {
        &self.opening.directory
    }

    /// Opens the environment anew, unless another thread has.
    fn revive(&self) -> Result<(), StoreError> {
        let mut handle = self.handle.write();
        if handle.is_usable() {
            return Ok(());
        }
        std::mem::replace(&mut *handle, Handle::none()).close();
        *handle = Handle::open(&self.opening)?;
        Ok(())
    }

    /// A snapshot to read.
    pub(super) fn read(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(self, ffi::MDB_RDONLY)
    }

    /// The right to write, once no other process has it.
    pub(super) fn write(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(self, 0)
    }

    /// Frees the reader slots of processes that have ended. How many.
    pub(super) fn clear_dead_readers(&self) -> Result<u32, StoreError> {
        self.handle.read().clear_dead_readers(self.path())
    }

    /// The table of readers.
    pub(super) fn readers(&self) -> Vec<Reader> {
        self.handle.read().readers()
    }

    /// Keeps writers out while `job` is given the pages, in rising order, that are free and that no snapshot shows, and how many
    /// bytes a page has. `horizon` lets it see past old snapshots, see [`Horizon`].
    pub(super) fn with_free_pages<T>(
        &self,
        horizon: Option<Horizon>,
        job: impl FnOnce(&[u64], u64) -> T,
    ) -> Result<T, StoreError> {
        let (handle, path) = (self.handle.read(), self.path());
        let writer = Ended(handle.begin(0).map_err(|result| failed("begin a transaction", path, result))?);
        // SAFETY: the transaction is live.
        let last_commit = unsafe { ffi::mdb_txn_id(writer.0) as u64 } - 1;
        // A reader that comes now gets the last commit: there is no other before the writer has ended.
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

/// What a commit left behind it. The snapshots of that commit, and of those before, show no page from its end on: such a page can
/// be given back although LMDB does not use it again while they are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Horizon {
    /// The number of the commit.
    pub(super) number: u64,
    /// The first page behind its data.
    pub(super) end_page: u64,
}

impl Handle {
    /// The table of readers, one text line each, as LMDB shows it: pid, thread, transaction.
    fn readers(&self) -> Vec<Reader> {
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

    /// The free pages of the last commit that transactions before `oldest` freed, as far as `is_wanted` says of transaction and
    /// page.
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
    fn begin_or_renew(&self, flags: c_uint) -> Result<(*mut ffi::MDB_txn, OnceCell<Cursor>), c_int> {
        let resting = if flags & ffi::MDB_RDONLY == 0 { None } else { self.resting.lock().pop() };
        match resting {
            Some(resting) => resting.renew().map(|(txn, cursor)| (txn, OnceCell::from(cursor))),
            None => self.begin(flags).map(|txn| (txn, OnceCell::new())),
        }
    }

    /// Begins a transaction; LMDB's number when it cannot.
    fn begin(&self, flags: c_uint) -> Result<*mut ffi::MDB_txn, c_int> {
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

    fn clear_dead_readers(&self, path: &Path) -> Result<u32, StoreError> {
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

/// Sees to it that no program started from this process has the data file open: of all its descriptors, LMDB opens this one to
/// last beyond an exec.
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

/// A transaction that is only looked at, and aborted at the end.
struct Ended(*mut ffi::MDB_txn);

impl Drop for Ended {
    fn drop(&mut self) {
        // SAFETY: the transaction is this value's own and live.
        unsafe { ffi::mdb_txn_abort(self.0) };
    }
}

impl Resting {
    /// A snapshot of now; LMDB's number when there can be none.
    fn renew(self) -> Result<(*mut ffi::MDB_txn, Cursor), c_int> {
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

    fn end(self) {
        drop(self.cursor);
        // SAFETY: the transaction is this value's own and is not used again; its cursor is closed.
        unsafe { ffi::mdb_txn_abort(self.txn) };
    }
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

/// Where LMDB's transaction holds the number of the first page behind the data: behind two pointers, a count and a mutex
/// (`MDB_txn`). LMDB shows that number of what is committed only, when it is too late to refuse.
const NEXT_PAGE: usize = (2 * size_of::<usize>() + size_of::<c_uint>())
    .next_multiple_of(align_of::<libc::pthread_mutex_t>())
    .next_multiple_of(align_of::<usize>())
    + size_of::<libc::pthread_mutex_t>();

/// A transaction: of a reader, or of the one writer.
///
/// One cursor serves its rows: rows of one session stand together, and a cursor that stands beside a row finds it without a
/// search from the root.
pub(super) struct Transaction<'e> {
    path: &'e Path,
    txn: *mut ffi::MDB_txn,
    writes: bool,
    /// Bytes of keys and values that it has written.
    written: u64,
    cursor: OnceCell<Cursor>,
    /// Given back after the transaction has ended, see [`Drop`].
    handle: RwLockReadGuard<'e, Handle>,
}

impl<'e> Transaction<'e> {
    fn begin(environment: &'e Environment, flags: c_uint) -> Result<Self, StoreError> {
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

    /// Makes the changes last, all at once.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        crate::fault::point("before-commit");
        self.cursor.take();
        let txn = std::mem::replace(&mut self.txn, ptr::null_mut());
        // SAFETY: the transaction is live and is not used again, whatever the outcome.
        let result = unsafe { ffi::mdb_txn_commit(txn) };
        check("commit", self.path, result)
    }

    /// The number of the snapshot, or of the commit to be.
    pub(super) fn number(&self) -> u64 {
        // SAFETY: the transaction is live.
        unsafe { ffi::mdb_txn_id(self.txn) as u64 }
    }

    /// Bytes of keys and values that the transaction has written.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written
    }

    /// What the snapshot shows no page of.
    pub(super) fn horizon(&self) -> Horizon {
        Horizon { number: self.number(), end_page: self.end_bytes() / self.handle.page_size }
    }

    /// Where the data file ends as the transaction leaves it, but for the list of free pages that its commit writes.
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

    /// Puts the cursor on a row: its value, if it is there.
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

const NOTHING: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: ptr::null_mut() };

/// The bytes of a row.
///
/// # Safety
/// `value` must have been filled by LMDB in a transaction that lives at least as long as `'t` and that does not write to the
/// row meanwhile.
unsafe fn bytes_of<'t>(value: &ffi::MDB_val) -> &'t [u8] {
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

/// LMDB's own numbers, as many as there are.
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(size_of::<usize>());
    words.map(|word| usize::from_ne_bytes(word.try_into().expect("as many bytes")) as u64)
}

/// A cursor that is closed before its transaction ends.
struct Cursor(*mut ffi::MDB_cursor);

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

/// The error of a call that did not succeed.
fn failed(action: &'static str, path: &Path, result: c_int) -> StoreError {
    check(action, path, result).expect_err("it failed")
}

/// What opening an environment came to: of what a process has too little is told by the number alone.
fn check_opened(opening: &Opening, result: c_int) -> Result<(), StoreError> {
    let path = opening.directory.as_path();
    match result {
        // LMDB takes one of the process's thread-specific keys for each environment.
        libc::EAGAIN => Err(StoreError::TooManyOpen { path: path.to_owned() }),
        libc::ENOMEM => Err(StoreError::NoAddressSpace { path: path.to_owned(), limit: address_space_limit() }),
        result => check("open", path, result),
    }
}

/// The one place where LMDB's numbers become errors.
fn check(action: &'static str, path: &Path, result: c_int) -> Result<(), StoreError> {
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

/// LMDB's version, and the size of the lock that processes share: what must be equal for two libraries to share a store.
pub(super) fn lock_format() -> String {
    // SAFETY: null pointers mean that the numbers are not wanted; the string is static.
    let version = unsafe { CStr::from_ptr(ffi::mdb_version(ptr::null_mut(), ptr::null_mut(), ptr::null_mut())) };
    let version = version.to_string_lossy();
    let number = version.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(':');
    format!("lmdb {number}, mutex of {} bytes", size_of::<libc::pthread_mutex_t>())
}
