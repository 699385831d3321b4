//! Another user of the machine, before there is a store and while there is one.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::common::process::{Result, Worker, is_root};
use crate::common::shared_memory;
use crate::tally::{self, Outcome};

/// Two users that nobody else is, not even the same test of another run.
fn users() -> (u32, u32) {
    let user = 100_000 + std::process::id() % 100_000 * 2;
    (user, user + 1)
}

fn needs_root() -> Result {
    Err("this test becomes two other users, which needs root".into())
}

struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where a user's shared-memory stores will be is made by somebody else first, in each way there is: the user is told, and
/// puts nothing there.
pub fn squatters() -> Result {
    if !is_root() {
        return needs_root();
    }
    let (user, squatter) = users();
    let base = shared_memory().join(format!("mcp-state-{user}"));
    let aside = Removed(shared_memory().join(format!("aside-{user}")));
    fs::create_dir(&aside.0)?;
    chown(&aside.0, Some(user), Some(user))?;
    let make = |path: &Path, mode: u32, owner: u32| {
        fs::DirBuilder::new().create(path)?;
        chown(path, Some(owner), Some(owner))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    type Squat<'a> = (&'a str, Box<dyn Fn() -> std::io::Result<()> + 'a>);
    let squats: [Squat; 7] = [
        ("a directory of another user", Box::new(|| make(&base, 0o700, squatter))),
        ("a directory of another user that everybody may use", Box::new(|| make(&base, 0o777, squatter))),
        ("the user's own, that everybody may write to", Box::new(|| make(&base, 0o777, user))),
        ("the user's own, that a group may write to", Box::new(|| make(&base, 0o770, user))),
        ("a symlink to a directory of the user's", Box::new(|| symlink(&aside.0, &base))),
        ("a file", Box::new(|| fs::write(&base, "").and_then(|()| chown(&base, Some(squatter), None)))),
        (
            "a store of another user in the user's own directory",
            Box::new(|| {
                make(&base, 0o700, user)?;
                make(&base.join("squatted"), 0o777, squatter)
            }),
        ),
    ];
    for (what, squat) in squats {
        let removed = Removed(base.clone());
        squat()?;
        let mut worker = Worker::as_user(&["probe", "shm://squatted"], user, user);
        let told = worker.line("refused");
        assert!(told.starts_with("StoreUnavailable"), "{what}: {told}");
        tally::count(Outcome::Refused, &what, &told);
        assert_eq!(fs::read_dir(&aside.0)?.count(), 0, "{what}: nothing was put there");
        drop(removed);
    }
    Ok(())
}

/// A store of one user, and every way another has of reading, writing, replacing or removing it.
pub fn snoopers() -> Result {
    if !is_root() {
        return needs_root();
    }
    let (user, snooper) = users();
    let directory = Removed(shared_memory().join(format!("snooped-{user}")));
    // As open as a place for stores may be: everybody may put things there, like in /dev/shm itself.
    fs::DirBuilder::new().mode(0o700).create(&directory.0)?;
    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o1777))?;
    let path = directory.0.join("store");
    let dsn = format!("file://{}?durability=none", path.display());
    assert!(Worker::as_user(&["leave", &dsn], user, user).finish().success());
    let mut snoop = Worker::as_user(&["snoop", &path.display().to_string()], snooper, snooper);
    let told = snoop.rest();
    assert!(snoop.child.wait()?.success());
    let (tried, succeeded): (Vec<_>, Vec<_>) = told.iter().partition(|line| line.starts_with("refused"));
    assert!(succeeded.is_empty(), "{succeeded:?}");
    assert!(tried.len() > 40, "{tried:?}");
    for line in tried {
        tally::count(Outcome::Refused, line, &line);
    }
    let mut open = Worker::as_user(&["probe", &dsn], snooper, snooper);
    assert!(open.line("refused").starts_with("StoreUnavailable"));
    let mut owner = Worker::as_user(&["probe", &dsn], user, user);
    assert_eq!(owner.rest(), ["kept s", "kept t", "done "]);
    Ok(())
}
