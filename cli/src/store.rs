//! Finding the store that is meant, becoming its owner, opening it.
//!
//! Nothing is made: a store that is not there is an error that lists those that are. A store of another pid namespace is not
//! opened, since a tool that is alone with it would take it over from the container it belongs to, and keep that container's
//! servers out for as long as it looks.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mcp_state::{Dsn, Engine, FoundStore, Place};

use crate::args::Choice;
use crate::failure::Failure;

/// A store that is there.
#[derive(Debug)]
pub(crate) struct Located {
    /// What the engine opens it by.
    pub(crate) dsn: String,
    /// Where it lies on this machine; nothing for a store that a server keeps.
    pub(crate) files: Option<Files>,
}

/// A store's directory, and whose it is.
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

/// Why one store cannot be told from those that were found.
fn several(choice: &Choice, found: &[Located]) -> Failure {
    if choice.stores().count() > 1 {
        return Failure::usage("name one store; only `stats --prometheus` looks at several");
    }
    let users = found.iter().filter_map(|store| store.files.as_ref()).map(|files| user_name(files.user));
    let dsn = choice.stores().map(Dsn::shown).collect::<String>();
    Failure::usage(format!(
        "users {} each have a store {dsn}; say whose with --user",
        users.collect::<Vec<_>>().join(", ")
    ))
}

/// Finds the stores that were named, at least one: as root, `shm://NAME` names one of each user.
pub(crate) fn find_all(choice: &Choice) -> Result<Vec<Located>, Failure> {
    let user = choice.user.as_deref().map(user_number).transpose()?;
    if user.is_some() && !is_root() {
        return Err(Failure::usage("--user is for root, who finds the stores of all users"));
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
                let why = "a memory:// store is inside one process; there is nothing to see from another one";
                return Err(Failure::usage(why));
            }
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(format!("name a store with --store or MCP_STATE_DSN. {}", stores_there_are())));
    }
    Ok(found)
}

/// The stores of this name, at least one.
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

/// The store in a directory, wherever that is, as its stamp and its permissions say it is opened.
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
        Err(error) => Err(Failure::new(format!("cannot look at {}: {error}", path.display()))),
    }
}

impl Located {
    /// The DSN, without a password.
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
    /// As root: becomes the store's user for good, so that nothing in it comes to belong to root.
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

    /// What the file `stamp` says of who made the store.
    pub(crate) fn stamp(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&read(&self.path.join("stamp")).ok()?).ok()
    }

    /// Refuses a store whose servers live in another pid namespace.
    fn check_namespace(&self, dsn: &str) -> Result<(), Failure> {
        let its = self.stamp().and_then(|stamp| stamp["pid_namespace"].as_u64());
        let mine = fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino());
        match (its, mine) {
            (Some(its), Some(mine)) if its != mine && its != 0 => Err(Failure::new(format!(
                "the servers of {dsn} live in another container (pid namespace {its}, this is {mine}); run mcp-state in there, as with `docker exec`"
            ))),
            _ => Ok(()),
        }
    }
}

/// Reads a text file that its owner may have put there for us to follow, wait for or swallow.
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

/// The stores of this machine, in a sentence or a list.
pub(crate) fn stores_there_are() -> String {
    let found = Engine::find_stores();
    let hint = if is_root() { "" } else { " Root sees those of other users, too." };
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
        "There are:{}{}",
        lines.collect::<String>(),
        if hint.is_empty() { String::new() } else { format!("\n{}", hint.trim()) }
    )
}

/// The group whose stores are in the same place as this one.
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

/// A user's name, or the number where there is none.
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
