//! What belongs to one PHP request: the stores it uses, and the owners attached in it, which end with it at the latest.
//!
//! RSHUTDOWN runs however the request ends, after a fatal error or `exit` too, when destructors do not. A process that PHP
//! code forked inherits the list, but not the owners: each is kept with the process that attached it.
//!
//! A request may last as long as its process, as in a worker: whenever the list has doubled, owners that ended in another way
//! than by `detach` leave it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::rc::Rc;
use std::sync::Arc;

use ext_php_rs::zend::{ModuleGlobal, ModuleGlobals};
use mcp_state::{ErrorKind, OwnerToken, Session};

use crate::failure::Failure;
use crate::ini;
use crate::stores::Used;

/// The request that this thread serves. It is there before any PHP code runs.
pub(crate) static REQUEST: ModuleGlobals<Request> = ModuleGlobals::new();

#[derive(Default)]
pub(crate) struct Request {
    /// Kept for the requests that follow, which most often use the same.
    stores: RefCell<Vec<Rc<Used>>>,
    owners: RefCell<HashMap<OwnerToken, Attached>>,
    /// How many owners there are when it is looked for those that have ended.
    look_at: Cell<usize>,
}

struct Attached {
    process: u32,
    session: Arc<Session>,
}

impl ModuleGlobal for Request {}

/// The store of `dsn` as this request uses it.
pub(crate) fn store(dsn: &str) -> Result<Rc<Used>, Failure> {
    let (stores, options) = (&REQUEST.get().stores, ini::options());
    if let Some(used) = stores.borrow().iter().find(|used| used.is(dsn, &options)) {
        used.current()?;
        return Ok(used.clone());
    }
    let used = Rc::new(Used::open(dsn, options)?);
    stores.borrow_mut().push(used.clone());
    Ok(used)
}

/// Notes an owner that was attached.
pub(crate) fn attached(owner: OwnerToken, session: &Arc<Session>) {
    let attached = Attached { process: process::id(), session: session.clone() };
    let request = REQUEST.get();
    let mut owners = request.owners.borrow_mut();
    if owners.len() >= request.look_at.get().max(LEAST) {
        owners.retain(|owner, attached| attached.process == process::id() && !has_ended(owner, attached));
        request.look_at.set(owners.len() * 2);
    }
    owners.insert(owner, attached);
}

/// Fewer owners than this are not looked through.
const LEAST: usize = 64;

fn has_ended(owner: &OwnerToken, attached: &Attached) -> bool {
    let seen = attached.session.pending(Some(owner));
    seen.is_err_and(|error| matches!(error.kind(), ErrorKind::SessionNotFound | ErrorKind::OwnerExpired))
}

/// Notes that an owner has ended.
pub(crate) fn detached(owner: &OwnerToken) {
    REQUEST.get().owners.borrow_mut().remove(owner);
}

/// More stores than this are not kept for the next request.
const MOST: usize = 8;

/// RSHUTDOWN: ends the owners that are left, and forgets which stores were seen to.
pub(crate) unsafe extern "C" fn shutdown(_type: i32, _module: i32) -> i32 {
    let request = REQUEST.get();
    {
        let mut stores = request.stores.borrow_mut();
        if stores.len() > MOST {
            stores.clear();
        }
        stores.iter().for_each(|used| used.end_request());
    }
    if !request.owners.borrow().is_empty() {
        let owners = request.owners.take();
        let this_process = process::id();
        // A store that is not there is waited for once, not for each owner.
        let mut gone = Vec::new();
        for (owner, Attached { session, .. }) in owners.into_iter().filter(|(_, a)| a.process == this_process) {
            if gone.iter().any(|dsn| dsn == session.engine().dsn()) {
                continue;
            }
            // Nobody is left to be told of a failure or a panic; the owner's lease ends it in that case.
            if let Ok(Err(error)) = catch_unwind(AssertUnwindSafe(|| session.detach(&owner)))
                && matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::OutcomeUnknown)
            {
                gone.push(session.engine().dsn().to_owned());
            }
        }
    }
    0
}
