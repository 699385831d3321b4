//! The check that the paths of a store still lead to the open files. Every request makes it, so it must be cheap.
//!
//! Removing, replacing or moving a file changes the ctime of its directory, which no process can set. The identity of the
//! generation's directory tells whether a directory above it was moved. So two `stat` calls on the directories replace four on the
//! files: the directories *vouch* for the files while they show what they showed before the last check of the files. When they
//! show anything else, the files decide.
//!
//! Times have the grain of a clock: two changes in quick succession may leave the same time. So only times vouch that were old
//! when the files were checked, and only on a file system that keeps more than whole seconds. A file system that is mounted over a
//! file changes no time; the check does not see it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

use super::place::Directory;

/// The least age of a time, in seconds. The clock of file systems advances every 10 ms at the latest.
const OLD: i64 = 2;

/// The paths of a generation's files, and what was opened there.
pub(super) struct PathCheck {
    /// The store's directory.
    directory: Directory,
    /// The generation's directory.
    generation: Directory,
    /// The files that were opened.
    identity: Identity,
    vouching: RwLock<Vouching>,
}

/// Device and inode of the files that all processes of a store must share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) data: Option<(u64, u64)>,
    lock: Option<(u64, u64)>,
    bell: Option<(u64, u64)>,
    guard: Option<(u64, u64)>,
}

#[derive(Default)]
struct Vouching {
    by: Option<Directories>,
    /// The second of the last attempt: an attempt each second is enough for a directory that changes all the time.
    tried: i64,
}

/// The directories at the last check of the files.
struct Directories {
    /// The store's directory, held open: `fstat` needs no path.
    store: File,
    state: DirectoryState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct DirectoryState {
    /// Device and inode of the generation's directory.
    generation: (u64, u64),
    /// The ctime in seconds and nanoseconds, of the store's directory and of the generation's: when an entry was made, removed or
    /// replaced, or the directory itself changed.
    changed: [(i64, i64); 2],
}

impl PathCheck {
    /// Remembers the files, which must be open already.
    pub(super) fn new(directory: &Directory, generation: &Directory) -> Self {
        Self {
            directory: directory.clone(),
            generation: generation.clone(),
            identity: Identity::of(directory, generation),
            vouching: RwLock::default(),
        }
    }

    /// The files that were opened.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether the paths still lead to the files that were opened.
    pub(super) fn finds_the_same(&self) -> bool {
        self.is_vouched_for() || self.check_files()
    }

    fn is_vouched_for(&self) -> bool {
        let vouching = self.vouching.read();
        vouching.by.as_ref().is_some_and(|by| DirectoryState::of(&by.store, &self.generation) == Some(by.state))
    }

    fn check_files(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        let is_tried = std::mem::replace(&mut self.vouching.write().tried, now) == now;
        // The directories come first, so that the next check sees a change that happens from here on.
        let found = if is_tried { None } else { Directories::read(&self.directory, &self.generation) };
        let is_same = Identity::of(&self.directory, &self.generation) == self.identity;
        self.vouching.write().by = found.filter(|found| is_same && found.state.is_old(now));
        is_same
    }
}

impl Identity {
    /// Whether processes with these files exclude and wake processes with `other` files.
    pub(super) fn excludes_like(&self, other: &Self) -> bool {
        (self.lock, self.bell) == (other.lock, other.bell)
    }

    pub(super) fn of(directory: &Directory, generation: &Directory) -> Self {
        Self {
            data: generation.identity("data.mdb"),
            lock: generation.identity("lock.mdb"),
            bell: generation.identity("bell"),
            guard: directory.identity("guard"),
        }
    }
}

impl Directories {
    fn read(directory: &Directory, generation: &Directory) -> Option<Self> {
        let store = directory.handle().ok()?;
        Some(Self { state: DirectoryState::of(&store, generation)?, store })
    }
}

impl DirectoryState {
    fn of(store: &File, generation: &Directory) -> Option<Self> {
        let (store, generation) = (store.metadata().ok()?, fs::symlink_metadata(&generation.path).ok()?);
        let changed = [&store, &generation].map(|directory| (directory.ctime(), directory.ctime_nsec()));
        Some(Self { generation: (generation.dev(), generation.ino()), changed })
    }

    /// Whether every change from `now` on, in seconds, certainly leaves other times.
    fn is_old(&self, now: i64) -> bool {
        self.changed.iter().all(|&(seconds, nanoseconds)| nanoseconds != 0 && now.saturating_sub(seconds) >= OLD)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::super::{Files, Lmdb};
    use super::*;
    use crate::dsn::Dsn;

    /// A store in a directory of its own: `parent/store`.
    struct Opened {
        directory: tempfile::TempDir,
        files: Arc<Files>,
    }

    impl Opened {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let parent = directory.path().canonicalize().unwrap().join("parent");
            std::fs::create_dir(&parent).unwrap();
            let dsn = Dsn::parse(&format!("file://{}/store?durability=none", parent.display())).unwrap();
            let files = Lmdb::open(&dsn.place, &dsn.settings).unwrap().files().unwrap();
            Self { directory, files }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join("parent").join(name)
        }

        /// Repeats the check until the directories vouch for the files.
        fn wait_until_vouched_for(&self) {
            let begun = Instant::now();
            while !self.files.paths.is_vouched_for() {
                assert!(self.files.is_current());
                assert!(begun.elapsed() < Duration::from_secs(60), "the directories never vouch");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn copy_over(path: &Path) {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        fs::rename(copy, path).unwrap();
    }

    #[test]
    fn what_is_removed_replaced_or_moved_is_seen_at_the_next_look_whether_directories_vouch_or_not() {
        type Change = (&'static str, fn(&Opened));
        let changes: [Change; 13] = [
            ("the data file is removed", |store| fs::remove_file(store.path("store/1/data.mdb")).unwrap()),
            ("the lock file is removed", |store| fs::remove_file(store.path("store/1/lock.mdb")).unwrap()),
            ("the bell is removed", |store| fs::remove_file(store.path("store/1/bell")).unwrap()),
            ("the guard is removed", |store| fs::remove_file(store.path("store/guard")).unwrap()),
            ("the data file is replaced", |store| copy_over(&store.path("store/1/data.mdb"))),
            ("the lock file is replaced", |store| copy_over(&store.path("store/1/lock.mdb"))),
            ("the bell is replaced", |store| copy_over(&store.path("store/1/bell"))),
            ("the guard is replaced", |store| copy_over(&store.path("store/guard"))),
            ("the generation is moved", |store| fs::rename(store.path("store/1"), store.path("store/2")).unwrap()),
            ("the store is moved", |store| fs::rename(store.path("store"), store.path("moved")).unwrap()),
            ("what the store is in is moved", |store| {
                fs::rename(store.path(""), store.directory.path().join("moved")).unwrap();
            }),
            ("the store is removed", |store| fs::remove_dir_all(store.path("store")).unwrap()),
            ("another process resets the store", |store| {
                let place = crate::dsn::Place::Directory(store.files.directory.path.clone());
                super::super::reset(&place, &Default::default()).unwrap();
            }),
        ];
        for (change, make) in changes {
            let young = Opened::new();
            assert!(young.files.is_current());
            make(&young);
            assert!(!young.files.is_current(), "{change}, in a young store");
        }
        let old = changes.map(|(change, make)| (change, make, Opened::new()));
        for (change, make, store) in &old {
            store.wait_until_vouched_for();
            make(store);
            assert!(!store.files.is_current(), "{change}");
            assert!(!store.files.is_current(), "{change}, looked at again");
        }
    }

    #[test]
    fn what_else_happens_in_the_directories_is_taken_for_no_change_of_the_files() {
        let store = Opened::new();
        store.wait_until_vouched_for();
        for name in ["store/other", "store/1/other"] {
            fs::write(store.path(name), "").unwrap();
            assert!(!store.files.paths.is_vouched_for());
            store.wait_until_vouched_for();
        }
    }

    #[test]
    fn times_vouch_only_if_no_later_change_can_have_the_same() {
        let is_old = |times, now| DirectoryState { generation: (1, 1), changed: times }.is_old(now);
        assert!(is_old([(100, 1), (100, 999_999_999)], 102));
        assert!(!is_old([(100, 1), (101, 1)], 102), "one of them may be less than a second old");
        assert!(!is_old([(101, 1), (100, 1)], 102));
        assert!(!is_old([(100, 1), (103, 1)], 102), "the clock was set back");
        assert!(!is_old([(100, 1), (i64::MIN, 0)], 102), "the file system keeps whole seconds");
    }
}
