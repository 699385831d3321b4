//! The directories of stores, and whether they are safe.
//!
//! A directory is safe when its path has no symlink, it belongs to the calling user, and no other user can write to it; with
//! `group=`, when it belongs to that group and no other group can. Directories are 0700 (2770 with a group), files 0600 (0660).

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::room::without_size_signal;
use crate::dsn::{Place, is_name};
use crate::error::{Error, InvalidArgument, StoreError};
use crate::fault;
use crate::process::is_locked;

/// Follows no symlink, waits for no other end of a pipe, and does not survive an exec.
const SAFE_FLAGS: libc::c_int = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// The longest text file that is read, in bytes.
const LONGEST_TEXT: u64 = 64 << 10;

/// A checked directory, and the group that may share its files.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// The group that shares the files.
    group: Option<libc::gid_t>,
}

impl Directory {
    /// The directory of a place at one of its paths; makes it when it does not exist.
    pub(super) fn of(place: &Place, path: &Path, group: Option<&str>) -> Result<Self, Error> {
        let group = group.map(find_group).transpose()?;
        let directory = Self { path: path.to_owned(), group };
        if let (Place::SharedMemory(_), Some(base)) = (place, directory.path.parent()) {
            Self { path: base.to_owned(), group }.make()?;
        }
        directory.make()?;
        Ok(directory)
    }

    /// The directory at `path`, if a store was begun there and both the directory and its parent are safe.
    pub(super) fn there(path: &Path, group: Option<&str>) -> Result<Option<Self>, Error> {
        let group = group.map(find_group).transpose()?;
        let is_safe = |path: &Path| Self { path: path.to_owned(), group }.check().is_ok();
        let is_begun = fs::symlink_metadata(path.join("init")).is_ok_and(|metadata| metadata.is_file());
        let is_there = is_begun && path.parent().is_some_and(is_safe) && is_safe(path);
        Ok(is_there.then(|| Self { path: path.to_owned(), group }))
    }

    /// Opens a file only for its locks; `None` when it cannot be opened.
    pub(super) fn open_to_lock(path: &Path) -> Option<File> {
        let file = OpenOptions::new().read(true).custom_flags(SAFE_FLAGS).open(path).ok()?;
        file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
    }

    /// A directory inside this one; makes it when it does not exist.
    pub(super) fn inside(&self, name: &str) -> Result<Self, StoreError> {
        let directory = Self { path: self.path.join(name), group: self.group };
        directory.make()?;
        Ok(directory)
    }

    fn make(&self) -> Result<(), StoreError> {
        let made = DirBuilder::new().mode(0o700).create(&self.path);
        match made {
            Ok(()) => self.give_to_group()?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("create the directory", &self.path, error)),
        }
        self.check()
    }

    fn give_to_group(&self) -> Result<(), StoreError> {
        let Some(group) = self.group else { return Ok(()) };
        std::os::unix::fs::chown(&self.path, None, Some(group))
            .and_then(|()| fs::set_permissions(&self.path, fs::Permissions::from_mode(0o2770)))
            .map_err(|error| StoreError::io("give the directory to its group", &self.path, error))
    }

    fn check(&self) -> Result<(), StoreError> {
        let refuse = |reason: String| Err(StoreError::Unsafe { path: self.path.clone(), reason });
        if self.path.parent().is_none() {
            return refuse(
                "it is the root directory; name one of the store's own, such as file:///var/lib/mcp-state".into(),
            );
        }
        let metadata =
            fs::symlink_metadata(&self.path).map_err(|error| StoreError::io("look at", &self.path, error))?;
        let real = fs::canonicalize(&self.path).map_err(|error| StoreError::io("resolve", &self.path, error))?;
        if metadata.is_symlink() || real != self.path {
            return refuse(format!("it is reached through a symlink; name {} instead", real.display()));
        }
        if !metadata.is_dir() {
            return refuse("it is not a directory; choose another name".into());
        }
        let (user, mode) = (effective_user(), metadata.mode() & 0o777);
        match self.group {
            None if metadata.uid() != user => {
                return refuse(format!(
                    "it belongs to user {} and this process runs as user {user}; use another name, or group= to share it",
                    metadata.uid()
                ));
            }
            Some(group) if metadata.gid() != group => {
                return refuse(format!(
                    "it belongs to group {}, not {group}; chgrp it, or use another name",
                    metadata.gid()
                ));
            }
            _ => {}
        }
        let strangers = if self.group.is_some() { 0o002 } else { 0o022 };
        if mode & strangers != 0 {
            let right = if self.group.is_some() { "2770" } else { "700" };
            return refuse(format!("others may write to it (mode {mode:o}); chmod it to {right}"));
        }
        Ok(())
    }

    /// The mode of files here.
    pub(super) fn file_mode(&self) -> u32 {
        if self.group.is_some() { 0o660 } else { 0o600 }
    }

    /// An existing directory inside this one, without a check.
    pub(super) fn beneath(&self, path: PathBuf) -> Self {
        Self { path, group: self.group }
    }

    /// Opens a file for reading and writing, never through a symlink; makes it when it does not exist.
    pub(super) fn open(&self, name: &str) -> Result<File, StoreError> {
        self.open_or(true, name)
    }

    /// The same for a file that exists.
    pub(super) fn open_existing(&self, name: &str) -> Result<File, StoreError> {
        self.open_or(false, name)
    }

    fn open_or(&self, create: bool, name: &str) -> Result<File, StoreError> {
        let path = self.path.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .mode(self.file_mode())
            .custom_flags(SAFE_FLAGS)
            .open(&path)
            .map_err(|error| StoreError::io("open", &path, error))?;
        let metadata = self.check_file(&file, &path)?;
        if self.group.is_some() && metadata.uid() == effective_user() && metadata.mode() & 0o777 != 0o660 {
            // The umask has removed the group's rights.
            file.set_permissions(fs::Permissions::from_mode(0o660))
                .map_err(|error| StoreError::io("set the permissions of", &path, error))?;
        }
        Ok(file)
    }

    /// The first [`LONGEST_TEXT`] bytes of a file; `None` when it does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path.join(name);
        let file = match OpenOptions::new().read(true).custom_flags(SAFE_FLAGS).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("read", path, error)),
        };
        self.check_file(&file, &path)?;
        let mut content = Vec::new();
        let mut limited = file.take(LONGEST_TEXT);
        limited.read_to_end(&mut content).map_err(|error| StoreError::io("read", path, error))?;
        Ok(Some(content))
    }

    /// Refuses what is not a regular file with one name that belongs to this user or group.
    fn check_file(&self, file: &File, path: &Path) -> Result<Metadata, StoreError> {
        let metadata = file.metadata().map_err(|error| StoreError::io("look at", path, error))?;
        let refuse = |reason: String| Err(StoreError::Unsafe { path: path.to_owned(), reason });
        if !metadata.is_file() {
            return refuse("it is not a regular file; remove it".into());
        }
        if metadata.nlink() > 1 {
            return refuse(format!("it has {} names; a store's files are copied, not linked", metadata.nlink()));
        }
        if self.group.is_none() && metadata.uid() != effective_user() {
            return refuse(format!("it belongs to user {}; remove it, or chown it", metadata.uid()));
        }
        Ok(metadata)
    }

    /// Opens a file and allocates its first `bytes`. A mapped page without space would end the process with SIGBUS.
    pub(super) fn open_allocated(&self, name: &str, bytes: u64) -> Result<File, StoreError> {
        let file = self.open(name)?;
        allocate(&file, bytes).map_err(|error| StoreError::io("allocate", self.path.join(name), error))?;
        Ok(file)
    }

    /// The directory itself, held open.
    pub(super) fn handle(&self) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(SAFE_FLAGS | libc::O_DIRECTORY).open(&self.path)
    }

    /// Device and inode of a file, without opening it: another open descriptor of LMDB's lock file would drop the
    /// process's locks when it is closed.
    pub(super) fn identity(&self, name: &str) -> Option<(u64, u64)> {
        let metadata = fs::symlink_metadata(self.path.join(name)).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    /// Whether the file system is in memory, so that no file survives a boot.
    pub(super) fn is_in_memory(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let path =
                CString::new(self.path.as_os_str().as_encoded_bytes()).expect("a path that was opened has no NUL");
            // SAFETY: all-zero bytes are a valid statfs, a struct of integers.
            let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
            // SAFETY: the path is NUL-terminated and `stat` is writable; both live through the call.
            let asked = unsafe { libc::statfs(path.as_ptr(), &raw mut stat) };
            asked == 0 && stat.f_type as i64 == libc::TMPFS_MAGIC
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        false
    }

    /// Bytes that the file system has free for this user.
    pub(super) fn free_bytes(&self) -> Result<u64, StoreError> {
        let path = CString::new(self.path.as_os_str().as_encoded_bytes()).expect("a path that was opened has no NUL");
        // SAFETY: all-zero bytes are a valid statvfs, a struct of integers.
        let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the path is NUL-terminated and `stat` is writable; both live through the call.
        if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
            return Err(StoreError::io("ask for free space of", &self.path, io::Error::last_os_error()));
        }
        // Their types differ from system to system; none is wider than this.
        Ok((stat.f_bavail as u64).saturating_mul(stat.f_frsize as u64))
    }
}

/// Allocates the first `bytes` of a file and keeps its content.
#[cfg(target_vendor = "apple")]
pub(super) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length >= bytes {
        return Ok(());
    }
    let mut store = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: (bytes - length) as libc::off_t,
        fst_bytesalloc: 0,
    };
    // SAFETY: the descriptor is open, and `store` is writable through the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) } == -1 {
        return Err(io::Error::last_os_error());
    }
    file.set_len(bytes)
}

/// Allocates the first `bytes` of a file and keeps its content.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call touches nothing else.
    let try_once = || unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) };
    loop {
        match without_size_signal(try_once) {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// The paths of a place, in the order in which a new store is made. Makes and checks nothing.
pub(super) fn paths_of(place: &Place, group: Option<&str>) -> Result<Vec<PathBuf>, Error> {
    match place {
        Place::SharedMemory(name) => {
            let group = group.map(find_group).transpose()?;
            Ok(bases(group).into_iter().map(|base| base.join(name)).collect())
        }
        Place::Directory(path) => Ok(vec![path.clone()]),
        Place::Memory | Place::Redis(_) => unreachable!("these have no directory"),
    }
}

const RUN: &str = "/run/mcp-state";
const SHM: &str = "/dev/shm";
/// The prefix of the directories of users and groups in `/dev/shm`.
const PREFIX: &str = "mcp-state-";

fn run() -> PathBuf {
    fault::pretended("RUN").unwrap_or_else(|| RUN.to_owned()).into()
}

/// The directories that hold the shared-memory stores of this user or group: `/run/mcp-state` if it belongs to them, otherwise the
/// directory in it that is named like the user or group and belongs to them; and always one in `/dev/shm`.
fn bases(group: Option<libc::gid_t>) -> Vec<PathBuf> {
    let (run, user) = (run(), effective_user());
    let is_ours = |path: &PathBuf| {
        fs::symlink_metadata(path)
            .is_ok_and(|metadata| metadata.is_dir() && (metadata.uid() == user || group == Some(metadata.gid())))
    };
    let mut bases = Vec::new();
    if is_ours(&run) {
        bases.push(run);
    } else if run.is_dir() {
        let (accounts, number) = group.map_or(("/etc/passwd", user), |group| ("/etc/group", group));
        let names = [account_named(accounts, number), Some(number.to_string())];
        bases.extend(names.into_iter().flatten().map(|name| run.join(name)).find(is_ours));
    }
    let name = match group {
        Some(group) => format!("{PREFIX}group-{group}"),
        None => format!("{PREFIX}{user}"),
    };
    bases.push(Path::new(SHM).join(name));
    bases
}

/// The name of a user or group in a file of lines such as `name:x:number:`.
fn account_named(file: &str, number: u32) -> Option<String> {
    let accounts = fs::read_to_string(file).ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number) && is_name(name)).then(|| name.to_owned())
    })
}

/// A store that was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundStore {
    /// Its name: the store is `shm://NAME` for its user.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// The user it belongs to.
    pub user: u32,
    /// The user's group.
    pub group: u32,
    /// Whether a process has it open: such a one is the store of its name, where several places have one.
    pub in_use: bool,
}

/// The stores in the places where shared-memory stores are, as far as this user can see them. What no store can be named, or is
/// reached through a link, is not listed: anybody may make that.
pub(super) fn find() -> Vec<FoundStore> {
    let directories = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let named = entries.filter(is_directory).filter(|entry| entry.file_name().to_str().is_some_and(is_name));
        named.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let has_stamp = |path: &PathBuf| fs::symlink_metadata(path.join(super::stamp::FILE)).is_ok();
    let is_base = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str()?.strip_prefix(PREFIX))
            .is_some_and(|name| name.strip_prefix("group-").unwrap_or(name).bytes().all(|byte| byte.is_ascii_digit()))
    };
    let run = run();
    let users = directories(&run).into_iter().filter(|path| !has_stamp(path));
    // In the order in which the places of one name are tried.
    let bases: Vec<_> =
        [run.clone()].into_iter().chain(users).chain(directories(Path::new(SHM)).into_iter().filter(is_base)).collect();
    let mut found: Vec<_> = bases
        .iter()
        .flat_map(|base| {
            let mut stores = directories(base);
            stores.sort();
            stores
        })
        .filter(has_stamp)
        .filter_map(|path| {
            let metadata = fs::symlink_metadata(&path).ok()?;
            let name = path.file_name()?.to_str()?.to_owned();
            let guard = Directory::open_to_lock(&path.join("guard"));
            let in_use = guard.is_some_and(|guard| is_locked(&guard));
            Some(FoundStore { name, path, user: metadata.uid(), group: metadata.gid(), in_use })
        })
        .collect();
    // A store that processes have open has its name before others, see `choice`.
    found.sort_by_key(|store| !store.in_use);
    found
}

fn effective_user() -> libc::uid_t {
    // SAFETY: geteuid cannot fail and touches no memory.
    unsafe { libc::geteuid() }
}

fn find_group(name: &str) -> Result<libc::gid_t, InvalidArgument> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    groups
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(group, _)| *group == name)
        .and_then(|(_, rest)| rest.split(':').nth(1)?.parse().ok())
        .ok_or_else(|| InvalidArgument::new("group", name, "there is no such group; create it or give its number"))
}
