//! Files of a store that nobody has open are cut, lengthened, filled with garbage, replaced by something else, or a stranger's.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use tempfile::TempDir;

use crate::common::process::{Result, Worker, is_root};
use crate::common::shared_memory;
use crate::tally::{self, Outcome};
use crate::{KINDS, WRITE_MAP, is_long, seed};

/// The files of a store.
pub const FILES: [&str; 7] = ["init", "guard", "stamp", "1/data.mdb", "1/lock.mdb", "1/bell", "1/ballast"];

/// Random bytes.
fn bytes(random: &mut Rng, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    random.fill(&mut bytes);
    bytes
}

/// A store as [`crate::roles`]' `leave` has left it, copied for each fault.
pub struct Left {
    options: String,
    original: TempDir,
}

impl Left {
    pub fn new(options: &str) -> Self {
        let left =
            Self { options: options.to_owned(), original: tempfile::tempdir_in(shared_memory()).expect("a directory") };
        assert!(Worker::start(&["leave", &left.dsn(&left.path())]).finish().success());
        left
    }

    pub fn path(&self) -> PathBuf {
        self.original.path().canonicalize().expect("the directory is there").join("store")
    }

    pub fn dsn(&self, path: &Path) -> String {
        format!("file://{}?{}", path.display(), self.options)
    }

    /// How many pages of the data file were written: a map is longer than what is in it.
    fn pages_in_use(&self) -> std::io::Result<u64> {
        let data = fs::read(self.path().join("1/data.mdb"))?;
        Ok(data.chunks(4096).rposition(|page| page.iter().any(|&byte| byte != 0)).map_or(0, |last| last as u64 + 1))
    }

    /// Damages a copy, and judges what a process makes of it; and whether a reset mends it.
    pub fn injected(&self, fault: &str, damage: impl FnOnce(&Path)) -> Option<String> {
        let copy = tempfile::tempdir_in(shared_memory()).expect("a directory");
        let path = copy.path().canonicalize().expect("the directory is there").join("store");
        copy_tree(&self.path(), &path);
        damage(&path);
        let dsn = self.dsn(&path);
        let (outcome, told) = probe(&dsn, fault);
        let unnoticed = outcome == Outcome::Altered && !fault.contains("garbage") && !fault.contains("zeros");
        if tally::is_bad(outcome) || unnoticed {
            return Some(format!("{outcome:?} after {fault}: {told:?}"));
        }
        None
    }
}

/// Lets a process look at the store of `dsn`, and counts what came of it.
pub fn probe(dsn: &str, fault: &str) -> (Outcome, Vec<String>) {
    let mut worker = Worker::start(&["probe", dsn]);
    let told = worker.rest();
    let ended = worker.child.wait().expect("it ends");
    let has = |word: &str| told.iter().any(|line| line.starts_with(word));
    let outcome = if ended.signal() == Some(libc::SIGALRM) {
        Outcome::Hang
    } else if !ended.success() {
        Outcome::Crash
    } else if has("wrong") {
        Outcome::Wrong
    } else if has("refused") || has("error") {
        Outcome::Refused
    } else if has("gone") && !has("kept") {
        Outcome::Fresh
    } else if has("damaged") {
        Outcome::Altered
    } else {
        Outcome::Unharmed
    };
    (tally::count(outcome, &fault, &(&told, ended)), told)
}

fn copy_tree(from: &Path, to: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).map(drop).expect("a copy");
        }
    }
}

fn done(bad: Vec<String>) -> Result {
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n").into()) }
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("the file is there");
    file.write_all_at(bytes, at).expect("it can be written");
}

/// Each file has each of many lengths.
pub fn lengths() -> Result {
    let mut bad = Vec::new();
    for options in KINDS {
        let left = Left::new(options);
        for name in FILES {
            let length = fs::metadata(left.path().join(name))?.len();
            let pages = [1, 2, 3, 4, 8, length / 4096 / 2, (length / 4096).saturating_sub(1)].map(|page| page * 4096);
            let odd = [
                0,
                1,
                17,
                100,
                4095,
                8191,
                12_289,
                length.saturating_sub(1),
                length + 1,
                length + 4096,
                length + (1 << 20),
            ];
            for new in pages.into_iter().chain(odd).filter(|&new| new != length) {
                bad.extend(left.injected(&format!("{name} of {length} bytes has {new}, {options}"), |store| {
                    let file = fs::OpenOptions::new().write(true).open(store.join(name)).expect("the file is there");
                    file.set_len(new).expect("it can be cut");
                }));
            }
        }
    }
    done(bad)
}

/// Each file is garbage from end to end, has a page of it, or a few bytes; and each page of the data file is damaged in turn.
pub fn garbage() -> Result {
    let mut bad = Vec::new();
    for options in ["durability=sync", WRITE_MAP] {
        bad.extend(garbage_in(&Left::new(options))?);
    }
    done(bad)
}

fn garbage_in(left: &Left) -> std::io::Result<Vec<String>> {
    let mut bad = Vec::new();
    let mut random = Rng::with_seed(seed());
    let rounds = if is_long() { 40 } else { 2 };
    for name in FILES {
        let length = fs::metadata(left.path().join(name))?.len();
        for round in 0..rounds {
            let all = bytes(&mut random, length as usize);
            bad.extend(
                left.injected(&format!("{name} is garbage {round}"), |store| write_at(&store.join(name), 0, &all)),
            );
            bad.extend(left.injected(&format!("{name} begins with garbage {round}"), |store| {
                write_at(&store.join(name), 0, &all[..all.len().min(4096)]);
            }));
            bad.extend(left.injected(&format!("{name} is zeros"), |store| {
                write_at(&store.join(name), 0, &vec![0; length as usize]);
            }));
            let at = random.u64(..length.saturating_sub(64).max(1));
            let some = bytes(&mut random, 64.min(length as usize));
            bad.extend(
                left.injected(&format!("{name} has garbage at {at}"), |store| write_at(&store.join(name), at, &some)),
            );
        }
    }
    // What decides where LMDB goes: headers, offsets and page numbers, in every page.
    let pages = left.pages_in_use()?;
    for page in 0..pages {
        for round in 0..if is_long() { 20 } else { 1 } {
            let (at, count) = (random.u64(..64), 1 + random.u64(..8));
            let some = bytes(&mut random, count as usize);
            let fault = format!("byte {at} of page {page} and {count} bytes are garbage {round}");
            bad.extend(left.injected(&fault, |store| write_at(&store.join("1/data.mdb"), page * 4096 + at, &some)));
        }
        let zeros = [0; 4096];
        bad.extend(left.injected(&format!("page {page} is zeros"), |store| {
            write_at(&store.join("1/data.mdb"), page * 4096, &zeros);
        }));
    }
    Ok(bad)
}

/// Each file is replaced by something that is no file of its own.
pub fn other_kinds() -> Result {
    let mut bad = Vec::new();
    for options in KINDS {
        let left = Left::new(options);
        for name in FILES {
            let inject = |kind: &str, make: &dyn Fn(&Path)| {
                left.injected(&format!("{name} is {kind}, {options}"), |store| {
                    let path = store.join(name);
                    fs::remove_file(&path).expect("it can be removed");
                    make(&path);
                })
            };
            bad.extend(inject("missing", &|_| ()));
            bad.extend(inject("a symlink to a file of somebody else", &|path| {
                symlink("/etc/hostname", path).expect("a link");
            }));
            bad.extend(inject("a symlink to nothing", &|path| symlink("/nonexistent/file", path).expect("a link")));
            bad.extend(inject("a directory", &|path| fs::create_dir(path).expect("a directory")));
            bad.extend(inject("a pipe", &|path| {
                let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
                // SAFETY: the path is NUL-terminated and lives through the call.
                assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
            }));
            bad.extend(left.injected(&format!("{name} has two names, {options}"), |store| {
                fs::hard_link(store.join(name), store.join("another")).expect("a link");
            }));
        }
        for what in ["a symlink", "a file"] {
            bad.extend(left.injected(&format!("the generation is {what}, {options}"), |store| {
                let (place, aside) = (store.join("1"), store.join("aside"));
                fs::rename(&place, &aside).expect("moved");
                if what == "a file" {
                    fs::write(&place, "").expect("a file");
                } else {
                    symlink(&aside, &place).expect("a link");
                }
            }));
        }
    }
    done(bad)
}

/// Each file belongs to somebody else.
pub fn strangers() -> Result {
    if !is_root() {
        return Err("this test gives files to another user, which needs root".into());
    }
    let left = Left::new("durability=none");
    let mut bad = Vec::new();
    for name in FILES.into_iter().chain(["1", ""]) {
        bad.extend(left.injected(&format!("{name:?} belongs to user 4242"), |store| {
            std::os::unix::fs::chown(store.join(name), Some(4242), Some(4242)).expect("root may");
        }));
    }
    done(bad)
}

/// Each field of each meta page, and of both at once, has each of many values.
pub fn meta_pages() -> Result {
    let mut bad = Vec::new();
    for options in ["durability=sync", WRITE_MAP] {
        bad.extend(meta_pages_of(&Left::new(options)));
    }
    done(bad)
}

fn meta_pages_of(left: &Left) -> Vec<String> {
    let mut bad = Vec::new();
    let mut random = Rng::with_seed(seed());
    // Header and MDB_meta: (offset, bytes).
    let fields =
        [0, 8, 10, 12, 16, 20, 24, 32, 40, 44, 46, 48, 56, 64, 72, 80, 88, 92, 94, 96, 104, 112, 120, 128, 136, 144];
    for at in fields {
        for value in [0, 1, 2, 3, 0xffff, u64::MAX, 1 << 40, random.u64(..)] {
            let size = if at == 8 || at == 10 || at == 44 || at == 46 || at == 92 || at == 94 {
                2
            } else if at < 24 && at > 0 || at == 40 || at == 88 {
                4
            } else {
                8
            };
            for metas in [&[0_u64][..], &[1], &[0, 1]] {
                if !is_long() && metas.len() == 1 && random.u64(..3) != 0 {
                    continue;
                }
                bad.extend(left.injected(&format!("byte {at} of meta pages {metas:?} is {value:#x}"), |store| {
                    for meta in metas {
                        write_at(&store.join("1/data.mdb"), meta * 4096 + at, &value.to_le_bytes()[..size]);
                    }
                }));
            }
        }
    }
    bad
}

/// The check of pages refuses no store that is sound: after each of many random histories it opens, with all that is in it.
pub fn sound() -> Result {
    let rounds = if is_long() { 200 } else { 10 };
    let mut random = Rng::with_seed(seed());
    for round in 0..rounds {
        let directory = tempfile::tempdir_in(shared_memory())?;
        let path = directory.path().canonicalize()?.join("store");
        let map = if round % 2 == 0 { "" } else { "&write_map=1&max_store_bytes=64M" };
        let dsn = format!("file://{}?durability=none&max_attribute_bytes=16M{map}", path.display());
        for _ in 0..3 {
            let (seed, steps) = (random.u64(..).to_string(), (20 + random.u64(..200)).to_string());
            assert!(Worker::start(&["history", &dsn, &seed, &steps]).finish().success(), "round {round}, seed {seed}");
        }
        let mut worker = Worker::start(&["probe", &dsn]);
        let told = worker.rest();
        assert!(
            !told.iter().any(|line| line.starts_with("refused") || line.starts_with("error")),
            "round {round}: {told:?}"
        );
    }
    Ok(())
}
