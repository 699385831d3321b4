//! Directories in which somebody else's files are: no store is made among them, and nothing but a store's own is ever removed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use mcp_state::{Engine, ErrorKind};

use crate::KINDS;
use crate::common::process::{Result, Worker, is_root, wait_until_nobody_holds};
use crate::common::shared_memory;
use crate::files::Left;
use crate::live::{new_store, request};

/// Everything beneath a directory, with what is in it.
fn tree(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).expect("a directory").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        if kind.is_dir() {
            found.extend(tree(&path));
            found.insert(path, b"directory".to_vec());
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            found.insert(path, target.into_os_string().into_encoded_bytes());
        } else {
            found.insert(path.clone(), fs::read(path).expect("a file"));
        }
    }
    found
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

/// What may lie in a directory that somebody names by mistake, and what of it the refusal names.
type Layout = (&'static str, &'static str, fn(&Path));
const LAYOUTS: [Layout; 11] = [
    ("numbered folders", "\"", |path| {
        ["2023/03/photo.jpg", "2024/a", "1/y"].iter().for_each(|name| write(&path.join(name), name));
    }),
    ("a numbered folder that is empty", "\"1\"", |path| fs::create_dir(path.join("1")).expect("a directory")),
    ("another program's LMDB", "\"1\"", |path| {
        ["1/data.mdb", "1/lock.mdb"].iter().for_each(|name| write(&path.join(name), "theirs"));
    }),
    ("another program's LMDB, with files named like a store's", "\"1\"", |path| {
        ["1/data.mdb", "1/bell", "init", "guard"].iter().for_each(|name| write(&path.join(name), "theirs"));
    }),
    ("a stamp that is none", "\"stamp\"", |path| write(&path.join("stamp"), "40 ct")),
    ("a file beside one that is named like a store's", "\"photo.jpg\"", |path| {
        ["init", "photo.jpg"].iter().for_each(|name| write(&path.join(name), "theirs"));
    }),
    ("a link to a folder", "\"1\"", |path| {
        write(&path.with_extension("elsewhere").join("data.mdb"), "theirs");
        symlink(path.with_extension("elsewhere"), path.join("1")).expect("a link");
    }),
    ("a number that we would not write so", "\"007\"", |path| write(&path.join("007/bell"), "theirs")),
    ("a file named by a number", "\"2\"", |path| write(&path.join("2"), "theirs")),
    ("a hidden file", "\".hidden\"", |path| write(&path.join(".hidden"), "theirs")),
    ("a name with a line break and an escape sequence", r#""\n\u{1b}[2J""#, |path| {
        write(&path.join("\n\x1b[2J"), "theirs");
    }),
];

/// A directory that holds anything of somebody else's is refused by the name of what it holds, and left as it is.
pub fn strangers_files() -> Result {
    for options in KINDS {
        for (what, named, make) in LAYOUTS {
            let (directory, path, dsn) = new_store(options)?;
            fs::create_dir(&path)?;
            make(&path);
            let before = tree(directory.path());
            for refused in [Engine::open(&dsn).map(drop), Engine::reset(&dsn)] {
                let error = refused.expect_err(what);
                assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{what}: {error}");
                assert!(error.to_string().contains(named), "{what}: {error}");
            }
            assert!(tree(directory.path()) == before, "{what} was changed, {options}");
        }
    }
    for dsn in ["file:///", "file:////", "file:///tmp/.."] {
        let error = Engine::open(dsn).map(drop).expect_err("the root directory");
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    }
    Ok(())
}

/// Whatever begins a store afresh removes the store's own files, one by one, and nothing that somebody else has put among them.
pub fn only_its_own() -> Result {
    for options in KINDS {
        let left = Left::new(options);
        let path = left.path();
        let dsn = left.dsn(&path);
        let outside = path.with_extension("outside");
        write(&outside.join("bell"), &"theirs".repeat(20_000));
        let theirs = ["0/data.mdb", "0/photo.jpg", "1/notes.txt", "2/photo.jpg", "4/y", "2023/03/photo.jpg", "readme"];
        theirs.iter().for_each(|name| write(&path.join(name), name));
        symlink(&outside, path.join("3")).expect("a link");
        for _ in 0..3 {
            Engine::reset(&dsn)?;
            let mut server = Worker::start(&["serve", &dsn]);
            assert_eq!(server.line(""), "ready", "{options}");
            server.tell("request");
            assert_eq!(server.line("ok"), "made", "{options}");
            server.kill();
            wait_until_nobody_holds(&path.join("guard"))?;
        }
        // Alone, it has removed what is old.
        let mut server = Worker::start(&["serve", &dsn]);
        assert_eq!(server.line(""), "ready", "{options}");
        for name in theirs {
            assert_eq!(fs::read_to_string(path.join(name))?, name, "{options}");
        }
        assert_eq!(fs::read_to_string(outside.join("bell"))?, "theirs".repeat(20_000), "{options}");
        assert!(fs::symlink_metadata(path.join("3"))?.is_symlink());
        for name in ["1/data.mdb", "1/lock.mdb", "1/bell", "1/ballast"] {
            assert!(!path.join(name).exists(), "{name} is of an old generation, {options}");
        }
        let own = fs::read_dir(&path)?.flatten().filter(|entry| entry.path().join("data.mdb").exists()).count();
        assert_eq!(own, 2, "the store's generation, and what looks like one: {:?}", tree(&path).keys());
    }
    Ok(())
}

/// A place in `/run` that is made on a running server splits no store: what processes have open is the store of its name until
/// the last of them has ended, then a new one is made in the place.
pub fn run_made_later() -> Result {
    let directory = tempfile::tempdir_in(shared_memory())?;
    let run = directory.path().canonicalize()?.join("run");
    let name = format!("place-{}", std::process::id());
    let dsn = format!("shm://{name}");
    // SAFETY: geteuid cannot fail.
    let before = shared_memory().join(format!("mcp-state-{}", unsafe { libc::geteuid() })).join(&name);
    let environment = [("MCP_STATE_PRETEND_RUN", run.to_str().ok_or("a path in UTF-8")?)];
    let start = || {
        let mut server = Worker::start_with(&["serve", &dsn], &environment);
        assert_eq!(server.line(""), "ready");
        server
    };
    let mut first = start();
    assert_eq!(request(&mut first), "ok made");
    fs::create_dir(&run)?;
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700))?;
    let mut second = start();
    assert_eq!(request(&mut second), "ok found");
    first.kill();
    let mut third = start();
    assert_eq!(request(&mut third), "ok found");
    assert!(!run.join(&name).exists());
    second.kill();
    third.kill();
    wait_until_nobody_holds(&before.join("guard"))?;
    let mut servers: Vec<_> = (0..4).map(|_| Worker::start_with(&["serve", &dsn], &environment)).collect();
    servers.iter_mut().for_each(|server| assert_eq!(server.line(""), "ready"));
    let answers: Vec<_> = servers.iter_mut().map(request).collect();
    assert_eq!(answers, ["ok made", "ok found", "ok found", "ok found"]);
    assert!(run.join(&name).join("stamp").exists());
    fs::remove_dir_all(before)?;
    Ok(())
}

/// `/run/mcp-state` of root's has a folder for each user, named by the user's name or number.
pub fn run_of_several_users() -> Result {
    use std::os::unix::process::CommandExt;
    const USER: u32 = 4242;
    if !is_root() {
        return Err("this test becomes another user, which needs root".into());
    }
    let directory = tempfile::tempdir_in(shared_memory())?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    let run = directory.path().canonicalize()?.join("run");
    let own = run.join(USER.to_string());
    fs::create_dir_all(&own)?;
    std::os::unix::fs::chown(&own, Some(USER), Some(USER))?;
    fs::set_permissions(&own, fs::Permissions::from_mode(0o700))?;
    // root's own place would be the directory itself.
    std::os::unix::fs::chown(&run, Some(1), Some(1))?;
    let start = || {
        let mut command = std::process::Command::new(crate::common::process::copy_program());
        command.args(["--role", "serve", "shm://of-several"]).uid(USER).gid(USER).current_dir("/");
        command.env("MCP_STATE_PRETEND_RUN", &run);
        Worker::spawn(command)
    };
    let mut servers = [start(), start()];
    servers.iter_mut().for_each(|server| assert_eq!(server.line(""), "ready"));
    assert_eq!(servers.each_mut().map(request), ["ok made", "ok found"]);
    assert!(own.join("of-several/stamp").exists());
    Ok(())
}
