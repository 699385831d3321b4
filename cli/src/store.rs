//! Finds the named store, becomes its owner and opens it.
//!
//! The command makes no store: if the named one does not exist, the error lists the existing ones. It refuses a store of another
//! pid namespace, since opening the store could claim it for this namespace and lock out the servers of the container.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mcp_state::{Dsn, Engine, FoundStore, Place};

use crate::args::Choice;
use crate::failure::Failure;

/// An existing store.
#[derive(Debug)]
pub(crate) struct Located {
    /// The DSN for the engine.
    pub(crate) dsn: String,
    /// The files on this machine; `None` for a store on a server.
    pub(crate) files: Option<Files>,
}

/// The directory of a store and its owner.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) path: PathBuf,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Finds the store, becomes its owner and opens it.
pub(crate) fn open(choice: &Choice) -> Result<Engine, Failure> {
    find(choice)?.open()
}

/// Finds the store that was named.
pub(crate) fn find(choice: &Choice) -> Result<Located, Failure> {
    <[Located; 1]>::try_from(find_all(choice)?).map(|[store]| store).map_err(|found| several(choice, &found))
}

/// The error for several stores where one is needed.
fn several(choice: &Choice, found: &[Located]) -> Failure {
    if choice.stores().count() > 1 {
        return Failure::usage("name one store; only `stats --prometheus` accepts several");
    }
    let users = found.iter().filter_map(|store| store.files.as_ref()).map(|files| user_name(files.user));
    let dsn = choice.stores().map(Dsn::shown).collect::<String>();
    Failure::usage(format!(
        "users {} each have a store {dsn}; name the owner with --user",
        users.collect::<Vec<_>>().join(", ")
    ))
}

/// Finds the named stores, at least one. As root, `shm://NAME` names the stores of all users with this name.
pub(crate) fn find_all(choice: &Choice) -> Result<Vec<Located>, Failure> {
    let user = choice.user.as_deref().map(user_number).transpose()?;
    if user.is_some() && !is_root() {
        return Err(Failure::usage("--user needs root, which can open the stores of all users"));
    }
    let mut found = Vec::new();
    for dsn in choice.stores() {
        if dsn.starts_with('/') {
            found.push(at_path(Path::new(dsn))?);
            continue;
        }
        let parsed = Dsn::parse(dsn).map_err(mcp_state::Error::from)?;
        match &parsed.place {
            Place::SharedMemory(name) => {
                found.extend(in_shared_memory(dsn, name, parsed.settings.group.is_some(), user)?);
            }
            Place::Directory(path) => found.push(in_directory(dsn, path)?),
            Place::Redis(_) => found.push(Located { dsn: dsn.to_owned(), files: None }),
            _ => {
                let why = "a memory:// store is inside one process, and no other process can open it";
                return Err(Failure::usage(why));
            }
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(format!("name a store with --store or MCP_STATE_DSN. {}", stores_there_are())));
    }
    Ok(found)
}

/// Finds the shared-memory stores with this name, at least one.
fn in_shared_memory(dsn: &str, name: &str, grouped: bool, user: Option<u32>) -> Result<Vec<Located>, Failure> {
    let mine = |store: &FoundStore| match user {
        Some(user) => store.user == user,
        None => is_root() || store.user == effective_user() || grouped,
    };
    let mut found = Engine::find_stores();
    found.retain(|store| store.name == name && mine(store) && (!grouped || group_of_base(&store.path).is_some()));
    if found.is_empty() {
        return Err(Failure::not_found(format!("there is no store {dsn}. {}", stores_there_are())));
    }
    // Several places of one user may have a store of this name: the engine opens the first of them.
    let mut users = HashSet::new();
    found.retain(|store| users.insert((store.user, group_of_base(&store.path))));
    let located = found.into_iter().map(|store| {
        let group = group_of_base(&store.path).filter(|_| !grouped);
        let separator = if dsn.contains('?') { '&' } else { '?' };
        Located {
            dsn: group.map_or_else(|| dsn.to_owned(), |group| format!("{dsn}{separator}group={group}")),
            files: Some(Files { path: store.path, user: store.user, group: store.group }),
        }
    });
    Ok(located.collect())
}

/// Finds the store in a directory. Its stamp and its permissions give the options of the DSN.
fn at_path(path: &Path) -> Result<Located, Failure> {
    let mut dsn = String::from("file://");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => dsn.push(char::from(byte)),
            _ => dsn.push_str(&format!("%{byte:02X}")),
        }
    }
    let found = in_directory(&dsn, path)?;
    let files = found.files.as_ref().expect("a directory has files");
    let is_durable = files.stamp().is_some_and(|stamp| stamp["durable"] == true);
    dsn.push_str(if is_durable { "?durability=sync" } else { "?durability=none" });
    let mode = fs::symlink_metadata(path).map_or(0, |metadata| metadata.mode());
    if mode & 0o070 == 0o070 {
        dsn.push_str(&format!("&group={}", files.group));
    }
    Ok(Located { dsn, ..found })
}

fn in_directory(dsn: &str, path: &Path) -> Result<Located, Failure> {
    let there = fs::symlink_metadata(path.join("stamp")).and_then(|_| fs::symlink_metadata(path));
    match there {
        Ok(metadata) => {
            let files = Files { path: path.to_owned(), user: metadata.uid(), group: metadata.gid() };
            Ok(Located { dsn: dsn.to_owned(), files: Some(files) })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::not_found(format!("there is no store in {}. {}", path.display(), stores_there_are())))
        }
        Err(error) => Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
    }
}

impl Located {
    /// Returns the DSN without its passwords.
    pub(crate) fn shown(&self) -> String {
        Dsn::shown(&self.dsn)
    }

    /// Becomes the owner and opens the store.
    pub(crate) fn open(&self) -> Result<Engine, Failure> {
        if let Some(files) = &self.files {
            files.become_owner()?;
            files.check_namespace(&self.dsn)?;
        }
        Ok(Engine::open_existing(&self.dsn)?)
    }
}

impl Files {
    /// As root: changes the user of this process to the store's owner permanently, so that root owns no file of the store.
    pub(crate) fn become_owner(&self) -> Result<(), Failure> {
        if !is_root() || self.user == 0 {
            return Ok(());
        }
        let check = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: the calls take numbers; the empty list of groups is not read.
        let become_user = || unsafe {
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setgid(self.group))?;
            check(libc::setuid(self.user))
        };
        become_user().map_err(|error| {
            Failure::new(format!(
                "cannot become user {}, who owns {}: {error}",
                user_name(self.user),
                self.path.display()
            ))
        })
    }

    /// Reads the file `stamp`, which describes the library that made the store.
    pub(crate) fn stamp(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&read(&self.path.join("stamp")).ok()?).ok()
    }

    /// Refuses a store whose servers run in another pid namespace.
    fn check_namespace(&self, dsn: &str) -> Result<(), Failure> {
        let its = self.stamp().and_then(|stamp| stamp["pid_namespace"].as_u64());
        let mine = fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino());
        match (its, mine) {
            (Some(its), Some(mine)) if its != mine && its != 0 => Err(Failure::new(format!(
                "the servers of {dsn} run in another container (pid namespace {its}, this is {mine}); run mcp-state in that container, for example with `docker exec`"
            ))),
            _ => Ok(()),
        }
    }
}

/// Reads a text file of another user: no symlink is followed, no FIFO blocks, and at most 64 KiB are read.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    const LONGEST_TEXT: u64 = 64 << 10;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(LONGEST_TEXT).read_to_end(&mut content)?;
    Ok(content)
}

/// Describes the shared-memory stores of this machine, in a sentence or a list.
pub(crate) fn stores_there_are() -> String {
    let found = Engine::find_stores();
    let hint = if is_root() { "" } else { " Root also finds the stores of other users." };
    if found.is_empty() {
        return format!("No store in shared memory was found.{hint}");
    }
    let lines = found.iter().map(|store| {
        let group = group_of_base(&store.path).map(|group| format!("?group={group}")).unwrap_or_default();
        format!(
            "\n  --store shm://{}{group}   of user {}, in {}",
            store.name,
            user_name(store.user),
            store.path.display()
        )
    });
    format!(
        "Existing stores:{}{}",
        lines.collect::<String>(),
        if hint.is_empty() { String::new() } else { format!("\n{}", hint.trim()) }
    )
}

/// Returns the group of the directory that contains a store.
fn group_of_base(path: &Path) -> Option<u32> {
    path.parent()?.file_name()?.to_str()?.strip_prefix("mcp-state-group-")?.parse().ok()
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid cannot fail and touches no memory.
    unsafe { libc::geteuid() }
}

pub(crate) fn is_root() -> bool {
    effective_user() == 0
}

/// Returns a user's name, or the number if the user has no name.
pub(crate) fn user_name(user: u32) -> String {
    accounts().into_iter().find(|(_, number)| *number == user).map_or_else(|| user.to_string(), |(name, _)| name)
}

fn user_number(user: &str) -> Result<u32, Failure> {
    let known = accounts().into_iter().find(|(name, _)| name == user).map(|(_, number)| number);
    known.or_else(|| user.parse().ok()).ok_or_else(|| Failure::usage(format!("there is no user {user}")))
}

fn accounts() -> Vec<(String, u32)> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let account = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
    };
    passwd.lines().filter_map(account).collect()
}
