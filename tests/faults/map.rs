//! A store that writes through its map: how long that is stands in its stamp, and all of it is allocated. Writing where there is
//! nothing ends a process, so nobody may shorten the file, and what there is no room for must be refused.

use std::fs;
use std::path::Path;

use mcp_state::Engine;
use serde_json::{Value, json};

use crate::WRITE_MAP;
use crate::common::process::{Mount, Result, Worker, cannot_mount, wait_until_nobody_holds};
use crate::files::Left;
use crate::live::{count, new_store, request};
use crate::tally::Outcome;

const MAP: u64 = 16 << 20;

/// What a stamp may name instead; nothing is what it names that writes with calls.
fn other_maps() -> Vec<Value> {
    let numbers =
        [0, 1, 4096, 1 << 20, MAP - 1, MAP - 4096, MAP - (1 << 20), MAP + 1, MAP + (1 << 20), 1 << 40, u64::MAX];
    numbers.into_iter().map(Value::from).chain([Value::Null, json!("16M"), json!(-1)]).collect()
}

fn rewrite_stamp(store: &Path, field: &str, value: &Value) {
    let path = store.join("stamp");
    let mut stamp: Value = serde_json::from_slice(&fs::read(&path).expect("a stamp")).expect("it is JSON");
    stamp[field] = value.clone();
    fs::write(path, stamp.to_string()).expect("it can be written");
}

fn serve(dsn: &str) -> Worker {
    let mut server = Worker::start(&["serve", dsn]);
    assert_eq!(server.line(""), "ready");
    server
}

/// Lets a server write all over its map.
fn grow(server: &mut Worker) -> String {
    server.tell("grow");
    server.line("")
}

/// Whoever comes to a store whose stamp is wrong is refused, or takes what is there; those who have it open go on.
pub fn stamps() -> Result {
    let left = Left::new(WRITE_MAP);
    let bad: Vec<_> = other_maps()
        .iter()
        .filter_map(|map| {
            left.injected(&format!("the stamp names a map of {map}"), |store| rewrite_stamp(store, "write_map", map))
        })
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
    for map in other_maps() {
        let (_directory, store, dsn) = new_store(WRITE_MAP)?;
        let mut server = serve(&dsn);
        request(&mut server);
        let stamp = fs::read(store.join("stamp"))?;
        rewrite_stamp(&store, "write_map", &map);
        let mut late = Worker::start(&["serve", &dsn]);
        let mut told = vec![late.line("")];
        if told[0].starts_with("ready") {
            told.push(request(&mut late));
        }
        told.extend([grow(&mut server), request(&mut server)]);
        let outcome = match told[0].starts_with("refused StoreCorrupt") {
            _ if told.iter().any(String::is_empty) => Outcome::Crash,
            _ if told[1..].iter().any(|line| !line.starts_with("ok")) => Outcome::Wrong,
            true => Outcome::Refused,
            false => Outcome::Unharmed,
        };
        count(outcome, &format!("the stamp of a running server names a map of {map}"), &told);
        fs::write(store.join("stamp"), stamp)?;
        let mut again = serve(&dsn);
        assert!(request(&mut again).starts_with("ok found") && grow(&mut again).starts_with("ok"), "{map}");
    }
    Ok(())
}

/// What was not made to the end, as far as anybody can tell, is begun anew, once for all who have it open.
pub fn unsettled() -> Result {
    let left = Left::new(WRITE_MAP);
    let not_settled = |store: &Path| rewrite_stamp(store, "settled", &Value::Bool(false));
    assert_eq!(left.injected("the stamp of a map is not settled", not_settled), None);
    let (_directory, store, dsn) = new_store(WRITE_MAP)?;
    let mut servers = vec![serve(&dsn), serve(&dsn)];
    servers.iter_mut().for_each(|server| assert!(request(server).starts_with("ok")));
    not_settled(&store);
    servers.push(serve(&dsn));
    let told: Vec<_> = servers.iter_mut().rev().map(request).collect();
    assert_eq!(told, ["ok made", "ok found", "ok found"]);
    assert!(servers.iter_mut().map(grow).all(|line| line.starts_with("ok")));
    count(Outcome::Fresh, "the stamp of running servers that write through their map is not settled", &told);
    Ok(())
}

/// All servers end up on one new store, which writes through a map of its own.
pub fn reset() -> Result {
    let (_directory, store, dsn) = new_store(WRITE_MAP)?;
    let mut servers = vec![serve(&dsn), serve(&dsn)];
    for generation in 1..4 {
        let told: Vec<_> = servers.iter_mut().map(request).collect();
        assert_eq!(told.iter().filter(|line| *line == "ok made").count(), 1, "{told:?}");
        assert!(servers.iter_mut().map(grow).all(|line| line.starts_with("ok")));
        assert_eq!(fs::metadata(store.join(format!("{generation}/data.mdb")))?.len(), MAP);
        count(Outcome::Fresh, "a store is reset under servers that write through its map", &told);
        // Who resets need not know how the store writes.
        Engine::reset(dsn.split('?').next().expect("a DSN"))?;
        servers.push(serve(&dsn));
    }
    Ok(())
}

/// There is room for one map, not for two. What is refused takes no room; when the servers have ended there is enough.
pub fn no_room() -> Result {
    let Some(mount) = Mount::tmpfs("24M") else { return cannot_mount() };
    let with = |options: &str| format!("file://{}/store?{options}", mount.path().display());
    let too_large = with("durability=none&write_map=1&max_store_bytes=8M");
    let refused = |told: &str| assert!(told.starts_with("refused StoreFull") && told.contains("write map"), "{told}");
    let open_too_large = || refused(&Worker::start(&["serve", &too_large]).line(""));
    open_too_large();
    let before = mount.taken()?;
    (0..20).for_each(|_| open_too_large());
    assert_eq!(mount.taken()?, before, "what is refused while nobody has the store open");

    let dsn = with(WRITE_MAP);
    let mut servers = [serve(&dsn), serve(&dsn)];
    servers.iter_mut().for_each(|server| assert!(request(server).starts_with("ok")));
    Engine::reset(&dsn)?;
    let told: Vec<_> = servers.iter_mut().map(request).collect();
    told.iter().for_each(|told| refused(told));
    let before = mount.taken()?;
    (0..10).for_each(|_| servers.iter_mut().for_each(|server| refused(&request(server))));
    assert_eq!(mount.taken()?, before, "what is refused while others have the old store open");
    count(Outcome::Refused, "a store is reset that has no room for another map", &told);
    servers.iter_mut().for_each(Worker::kill);
    wait_until_nobody_holds(&mount.path().join("store/guard"))?;
    let mut server = serve(&dsn);
    assert!(request(&mut server).starts_with("ok made") && grow(&mut server).starts_with("ok"));
    count(Outcome::Fresh, "the servers of a store that had no room end", &told);
    Ok(())
}
