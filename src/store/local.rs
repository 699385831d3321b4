//! A store of rows on this machine: reads the record, runs the transition, writes the record and its effects, all in one
//! transaction; then rings.

use std::sync::Arc;
use std::time::Duration;

use super::recall::{Known, Recall, decode};
use super::rows::{
    Change, KeyValue, Payloads, Rows, RowsMut, Verdict, add_to_number, delete_all, delete_value, digests, entry_key,
    entry_prefix, get_number, get_value, index_key, index_prefix, payload_key, prefix, principal_key, put_new_value,
    put_value, read_entry_key, read_index_key, record_key,
};
use super::{Access, BusEntries, Ear, Operation, Usage, audit, bus, once};
use crate::bell::{Bell, Counter, Ring, Slept, Ticket};
use crate::clock::{Clock, Millis};
use crate::error::{Error, StoreError};
use crate::fault;
use crate::ids::Digest;
use crate::kind::{
    Census, Channel, Context, Effects, Entry, IndexKey, Kind, PayloadKey, Population, RecordChange, Refusal, Step,
    StoreView, Transition, corrupt,
};
use crate::session::Session;
use crate::settings::{Limit, Settings};

/// A store over rows.
pub(crate) struct LocalStore<R> {
    rows: R,
    settings: Settings,
    clock: Arc<dyn Clock>,
    recall: Recall,
}

/// About what a single-use key takes.
const ONCE_BYTES: u64 = 64;

/// What an operation came to, and what that depended on.
struct Worked<K: Kind> {
    record: Option<Box<K::Record>>,
    effects: Effects<K::Payload>,
    /// By how many bytes the record grows, or shrinks.
    growth: i64,
    /// The record as it was found.
    found: Option<Vec<u8>>,
    now: Millis,
    /// Whether it depended on attributes, which may change while the record stays as it is.
    on_attributes: bool,
}

/// The same of a snapshot.
struct OnSnapshot<K: Kind> {
    worked: Worked<K>,
    revision: u64,
}

impl<R: KeyValue> LocalStore<R> {
    /// A store over `rows`; limits that depend on the store's size are brought down to what fits.
    pub(crate) fn new(rows: R, mut settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let session = settings.limit(Limit::SessionBytes).min(rows.limit_bytes() / 16);
        settings.set_limit(Limit::SessionBytes, session);
        settings.set_limit(Limit::StoreBytes, rows.limit_bytes());
        settings.is_timed = rows.is_timed();
        Self { rows, settings, clock, recall: Recall::default() }
    }

    /// Runs the operation on what `rows` hold now. Nothing is written yet.
    fn run<K: Kind>(
        &self,
        rows: &dyn Rows,
        key: Digest,
        access: Access,
        census: &Census,
        operation: Operation<'_, K>,
    ) -> Step<Worked<K>> {
        let bytes = get_value(rows, &record_key::<K>(key))?;
        let known = bytes.map(|bytes| self.recall.record::<K>(key, &bytes)).transpose()?;
        let (record, found) = known.map(|known| (known.record, known.bytes)).unzip();
        let view = match access {
            Access::Create(principal) => StoreView {
                records: get_number(rows, &[K::TABLES.population])?,
                of_principal: match principal {
                    Some(principal) => get_number(rows, &principal_key::<K>(principal))?,
                    None => 0,
                },
            },
            Access::Read | Access::Write => StoreView::default(),
        };
        let before = footprint::<K>(record.as_deref());
        let values = Payloads::<K>::new(rows, key);
        let now = self.clock.now();
        let mut transition = Transition::new(record, &values, Context { now, settings: &self.settings, census });
        let done = operation(&mut transition, view);
        let (record, effects) = transition.finish();
        let after = if effects.record == RecordChange::Remove { 0 } else { footprint::<K>(record.as_deref()) };
        let on_attributes = values.attributes_were_read();
        let worked = Worked { record, effects, growth: after - before, found, now, on_attributes };
        match done {
            Ok(()) => Ok(worked),
            Err(refusal) => {
                self.keep_unchanged(key, worked);
                Err(refusal)
            }
        }
    }

    /// Remembers the record that an operation has only looked at. What it has to carry out.
    fn keep_unchanged<K: Kind>(&self, key: Digest, worked: Worked<K>) -> Effects<K::Payload> {
        let Worked { record, effects, found, .. } = worked;
        if let (RecordChange::Keep, Some(record), Some(bytes)) = (effects.record, record, found) {
            self.recall.keep(Known::<K> { key, record, bytes });
        }
        effects
    }

    /// Whether an operation comes to what it came to on a snapshot, since the state machine is pure: the time is the same, and
    /// nothing was committed since, or nothing that it looked at. Bodies are what they were while the record is: it counts
    /// whatever happens to them.
    fn is_still_so<K: Kind>(&self, rows: &dyn Rows, key: Digest, then: &OnSnapshot<K>) -> Result<bool, StoreError> {
        if then.worked.now != self.clock.now() {
            return Ok(false);
        }
        if then.revision == rows.revision() {
            return Ok(true);
        }
        Ok(!then.worked.on_attributes
            && get_value(rows, &record_key::<K>(key))?.as_deref() == then.worked.found.as_deref())
    }

    /// Carries the operation out: as it was worked out on a snapshot if that is still so; else it runs again.
    fn write<K: Kind>(
        &self,
        key: Digest,
        access: Access,
        census: &Census,
        operation: Operation<'_, K>,
        mut on_snapshot: Option<OnSnapshot<K>>,
    ) -> Step<Effects<K::Payload>> {
        let (effects, written) = self.rows.write(|rows| -> Step<_> {
            let worked = match on_snapshot.take() {
                Some(then) if self.is_still_so(rows, key, &then)? => then.worked,
                _ => self.run(rows, key, access, census, operation)?,
            };
            if worked.effects.is_empty() {
                return Ok(Verdict::Abandon((self.keep_unchanged(key, worked), None)));
            }
            let change = self.has_room(rows, worked.growth)?;
            let Worked { record, effects, .. } = worked;
            let bytes = carry_out::<K>(rows, key, record.as_deref(), &effects)?;
            let written = record.zip(bytes).map(|(record, bytes)| Known::<K> { key, record, bytes });
            Ok(Verdict::Commit { value: (effects, written), change })
        })?;
        if let Some(written) = written {
            self.recall.keep(written);
        }
        Ok(effects)
    }

    /// A change of rows that belong to no record, which may add so many bytes.
    fn change<T>(&self, needed: u64, job: impl Fn(&mut dyn RowsMut) -> Result<T, Error>) -> Result<T, Error> {
        let changed = self.rows.write(|rows| {
            let (used, limit) = (rows.used_bytes()?, self.rows.limit_bytes());
            if needed > 0 && used + needed > limit {
                return Err(StoreError::Full { used, limit, needed, detail: String::new() }.into());
            }
            let change = if needed == 0 { Change::Frees } else { Change::Adds };
            Ok(Verdict::Commit { value: job(rows)?, change })
        });
        changed.inspect_err(|error| self.count_error(error))
    }

    /// What the operation does to the store's size; refuses what adds when the store is full.
    fn has_room(&self, rows: &dyn Rows, growth: i64) -> Result<Change, StoreError> {
        let needed = match u64::try_from(growth) {
            Ok(needed @ 1..) => needed,
            Ok(0) => return Ok(Change::Keeps),
            Err(_) => return Ok(Change::Frees),
        };
        let (used, limit) = (rows.used_bytes()?, self.rows.limit_bytes());
        if used + needed > limit {
            return Err(StoreError::Full { used, limit, needed, detail: String::new() });
        }
        Ok(Change::Adds)
    }

    /// After the commit: wakes who must look, counts what is counted.
    fn follow_up<P>(&self, key: Digest, effects: &Effects<P>) {
        if effects.rings.is_empty() && effects.counts.is_empty() {
            return;
        }
        let bell = self.rows.bell();
        for &channel in &effects.rings {
            bell.ring(ring(key, channel));
        }
        for &count in &effects.counts {
            bell.counters().add(count, 1);
        }
    }

    fn count_refusal(&self, refusal: &Refusal) {
        if let Refusal::Error(error) = refusal {
            self.count_error(error);
        }
    }

    fn count_error(&self, error: &Error) {
        if let Some(counter) = error_counter(error) {
            self.rows.bell().counters().add(counter, 1);
        }
    }
}

/// See [`super::Store`], whose methods these are.
impl<R: KeyValue> LocalStore<R> {
    pub(super) fn transact<K: Kind>(
        &self,
        key: Digest,
        access: Access,
        census: &Census,
        operation: Operation<'_, K>,
    ) -> Step<()> {
        let mut on_snapshot = None;
        if access == Access::Read {
            on_snapshot = self
                .rows
                .read(|rows| {
                    let worked = self.run::<K>(rows, key, access, census, operation)?;
                    if worked.effects.is_empty() {
                        self.keep_unchanged(key, worked);
                        return Ok(None);
                    }
                    Ok(Some(OnSnapshot { worked, revision: rows.revision() }))
                })
                .inspect_err(|refusal| self.count_refusal(refusal))?;
            if on_snapshot.is_none() {
                return Ok(());
            }
        }
        let effects = self
            .write::<K>(key, access, census, operation, on_snapshot)
            .inspect_err(|refusal| self.count_refusal(refusal))?;
        fault::point("before-wake");
        self.follow_up(key, &effects);
        Ok(())
    }

    pub(super) fn recall<K: Kind>(&self, key: Digest, look: &mut dyn FnMut(&K::Record)) {
        self.recall.look::<K>(key, look);
    }

    pub(super) fn due<K: Kind>(
        &self,
        settled: bool,
        until: Millis,
        max: usize,
    ) -> Result<Vec<(IndexKey, Digest)>, StoreError> {
        let prefix = index_prefix::<K>(settled);
        self.rows.read(|rows| {
            let mut due = Vec::new();
            rows.scan(&prefix, &mut |key, _| match read_index_key::<K>(key) {
                Some((place, record)) if place.settled == settled && place.at <= until && due.len() < max => {
                    due.push((place, record));
                    true
                }
                _ => false,
            })?;
            Ok(due)
        })
    }

    pub(super) fn listed<K: Kind>(
        &self,
        (list, group): (u8, Digest),
        after: Option<(u64, Digest)>,
        max: usize,
    ) -> Result<Vec<(u64, Digest)>, StoreError> {
        let prefix = entry_prefix::<K>(list, group);
        // Behind the entry itself, when there is one.
        let from = match after {
            Some((at, record)) => [&entry_key::<K>(&Entry { list, group, at }, record)[..], &[0]].concat(),
            None => prefix.to_vec(),
        };
        self.rows.read(|rows| {
            let mut listed = Vec::new();
            rows.scan(&from, &mut |key, _| match read_entry_key::<K>(key) {
                Some((entry, record)) if key.starts_with(&prefix) && listed.len() < max => {
                    listed.push((entry.at, record));
                    true
                }
                _ => false,
            })?;
            Ok(listed)
        })
    }

    pub(super) fn records<K: Kind>(
        &self,
        after: Option<Digest>,
        max: usize,
    ) -> Result<Vec<(Digest, K::Record)>, StoreError> {
        self.rows.read(|rows| {
            // The waiting room is among the sessions, and is none.
            let mut found = Vec::new();
            for record in digests(rows, K::TABLES.records, after, max.saturating_add(1))? {
                let bytes =
                    get_value(rows, &record_key::<K>(record))?.ok_or_else(|| corrupt::<K>("its record is missing"))?;
                let decoded = decode::<K>(&bytes)?;
                if K::index_key(&decoded).is_some() && found.len() < max {
                    found.push((record, *decoded));
                }
            }
            Ok(found)
        })
    }

    pub(super) fn publish(&self, topic: Digest, message: &str) -> Result<u64, Error> {
        let number = self.change(message.len() as u64, |rows| {
            bus::publish(rows, &self.settings, self.clock.now(), topic, message)
        })?;
        self.rows.bell().ring(Ring::Record(topic));
        Ok(number)
    }

    pub(super) fn cursor(&self, topic: Digest) -> Result<u64, StoreError> {
        self.rows.read(|rows| bus::cursor(rows, topic))
    }

    pub(super) fn since(&self, topic: Digest, cursor: u64, max: usize) -> Result<BusEntries, StoreError> {
        self.rows.read(|rows| bus::since(rows, topic, cursor, max))
    }

    pub(super) fn consume_once(&self, key: Digest, ttl: Millis) -> Result<bool, Error> {
        self.change(ONCE_BYTES, |rows| once::consume(rows, &self.settings, self.clock.now(), key, ttl))
    }

    pub(super) fn collect_leftovers(&self, max: usize) -> Result<bool, Error> {
        self.change(0, |rows| {
            let now = self.clock.now();
            bus::collect(rows, now)?;
            Ok(once::clear(rows, now, max)? == max)
        })
    }

    pub(super) fn usage(&self) -> Result<Usage, StoreError> {
        self.rows.read(|rows| {
            Ok(Usage {
                sessions: get_number(rows, &[Session::TABLES.population])?,
                used_bytes: rows.used_bytes()?,
                limit_bytes: self.rows.limit_bytes(),
            })
        })
    }

    /// A reset rings everybody, so a waiter follows it at once.
    pub(super) fn listen(&self, ring: Ring) -> Result<Box<dyn Ear>, StoreError> {
        loop {
            let bell = self.rows.bell();
            let ticket = bell.listen(ring);
            self.rows.refresh()?;
            if Arc::ptr_eq(&bell, &self.rows.bell()) {
                return Ok(Box::new(AtBell { bell, ticket }));
            }
        }
    }

    pub(super) fn count(&self, counter: Counter, by: u64) {
        self.rows.bell().counters().add(counter, by);
    }

    pub(super) fn counted(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let bell = self.rows.bell();
        Ok(Counter::ALL.iter().map(|&(name, counter)| (name, bell.counters().get(counter))).collect())
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    pub(super) fn refresh(&self) -> Result<(), StoreError> {
        self.rows.refresh()
    }

    pub(super) fn maintain(&self) -> Result<(), StoreError> {
        self.rows.maintain()
    }

    pub(super) fn contradictions(&self) -> Result<Vec<String>, StoreError> {
        self.rows.read(audit::contradictions)
    }

    pub(super) fn describe(&self) -> Vec<(&'static str, String)> {
        self.rows.describe()
    }
}

struct AtBell {
    bell: Arc<Bell>,
    ticket: Ticket,
}

impl Ear for AtBell {
    fn sleep(&self, timeout: Duration) -> Slept {
        self.bell.sleep(self.ticket, timeout)
    }
}

/// About what a record takes of the store.
fn footprint<K: Kind>(record: Option<&K::Record>) -> i64 {
    record.map_or(0, |record| K::footprint(record) as i64)
}

/// What to ring for a channel of a record.
pub(super) fn ring(key: Digest, channel: Channel) -> Ring {
    match channel {
        Channel::Owner(owner) => Ring::Owner(key, owner),
        Channel::Record => Ring::Record(key),
        Channel::Shared(shared) => Ring::Shared(shared),
    }
}

/// Writes what an operation came to. The record as it was written, if it was.
pub(super) fn carry_out<K: Kind>(
    rows: &mut dyn RowsMut,
    key: Digest,
    record: Option<&K::Record>,
    effects: &Effects<K::Payload>,
) -> Result<Option<Vec<u8>>, StoreError> {
    if effects.purge || effects.record == RecordChange::Remove {
        delete_all(rows, &prefix::<K>(key))?;
    }
    let mut written = None;
    if let (RecordChange::Write, Some(record)) = (effects.record, record) {
        put_value(rows, &record_key::<K>(key), written.insert(K::encode(record)))?;
    }
    for (payload, value) in effects.payloads.iter() {
        fault::point("between-rows");
        let row = payload_key::<K>(key, payload);
        match value {
            Some(value) if payload.attribute().is_some() => put_value(rows, &row, value)?,
            // Nothing is there: bodies are deleted before their keys are used again.
            Some(value) => put_new_value(rows, &row, value)?,
            None => delete_value(rows, &row)?,
        }
    }
    if let Some((before, after)) = effects.index {
        if let Some(before) = before {
            rows.delete(&index_key::<K>(before, key))?;
        }
        if let Some(after) = after {
            rows.put(&index_key::<K>(after, key), &[])?;
        }
    }
    for (entry, is_in) in &effects.entries {
        let row = entry_key::<K>(entry, key);
        if *is_in {
            rows.put(&row, &[])?;
        } else {
            rows.delete(&row)?;
        }
    }
    if let Some((change, principal)) = effects.population {
        let (records, of_principal) = match change {
            Population::Added => (1, 1),
            Population::Removed => (-1, -1),
            Population::Replaced(before) => {
                if let Some(before) = before {
                    add_to_number(rows, &principal_key::<K>(before), -1)?;
                }
                (0, 1)
            }
        };
        if records != 0 {
            add_to_number(rows, &[K::TABLES.population], records)?;
        }
        if let Some(principal) = principal {
            add_to_number(rows, &principal_key::<K>(principal), of_principal)?;
        }
    }
    Ok(written)
}

/// Where an operation that failed is counted.
pub(super) fn error_counter(error: &Error) -> Option<Counter> {
    match error {
        Error::Limit(_) => Some(Counter::LimitsHit),
        Error::Store(StoreError::Full { .. }) => Some(Counter::StoreFull),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock::ManualClock;
    use crate::dsn::Dsn;
    use crate::ids::{OwnerToken, SessionId};
    use crate::kind::AttributeKey;
    use crate::process::Process;
    use crate::session::{NewRecord, OwnerKind, Record, Transition};
    use crate::store::Store;
    use crate::store::memory::Memory;
    use crate::store::rows::Transactions;

    /// A store with one session, and its clock; the directory goes with the guard.
    fn store_with_a_session() -> (tempfile::TempDir, Store, Arc<ManualClock>) {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::at(1 << 40)));
        let dsn = format!("file://{}/store?durability=none", directory.path().display());
        let store = crate::store::open(&Dsn::parse(&dsn).unwrap(), Some(clock.clone())).unwrap();
        create(&store, SESSION, "s").unwrap();
        (directory, store, clock)
    }

    const SESSION: Digest = Digest([1; 16]);

    fn create(store: &Store, session: Digest, id: &str) -> Step<()> {
        let id = SessionId::new(id).unwrap();
        let new = NewRecord { id, incarnation: 1, first_request: 1, ttl: 1000, principal: None };
        let create = &mut |session: &mut Transition<'_>, view| session.create(&new, view).map(drop);
        store.transact(session, Access::Create(None), &Census::default(), create)
    }

    /// How often an operation that changes something runs when `meanwhile` happens during its first run, and how many owners
    /// there are in the end.
    fn runs(meanwhile: impl Fn(&Store, Digest, &ManualClock)) -> (u32, usize) {
        let (_directory, store, clock) = store_with_a_session();
        let mut runs = 0;
        let operation = &mut |seen: &mut Transition<'_>, _| {
            runs += 1;
            if runs == 1 {
                meanwhile(&store, SESSION, &clock);
            }
            attach(seen, 1)
        };
        store.transact(SESSION, Access::Read, &Census::default(), operation).unwrap();
        let owners = store.records::<Session>(None, 1).unwrap()[0].1.owners.len();
        (runs, owners)
    }

    fn attach(session: &mut Transition<'_>, token: u8) -> Step<()> {
        session.attach(OwnerToken([token; 16]), OwnerKind::Reply, 1000, Process::default())
    }

    #[test]
    fn what_was_worked_out_on_a_snapshot_is_carried_out_without_running_again() {
        assert_eq!(runs(|_, _, _| {}), (1, 1));
    }

    #[test]
    fn g1_what_was_worked_out_before_another_commit_runs_again() {
        let other = |store: &Store, session, _: &ManualClock| {
            let census = Census::default();
            let write = || store.transact(session, Access::Write, &census, &mut |session, _| attach(session, 2));
            // A thread has one transaction at a time.
            std::thread::scope(|scope| scope.spawn(write).join().unwrap()).unwrap();
        };
        assert_eq!(runs(other), (2, 2));
    }

    #[test]
    fn what_was_worked_out_before_a_commit_to_another_session_is_carried_out() {
        let other = |store: &Store, _, _: &ManualClock| {
            std::thread::scope(|scope| scope.spawn(|| create(store, Digest([2; 16]), "t")).join().unwrap()).unwrap();
        };
        assert_eq!(runs(other), (1, 1));
    }

    #[test]
    fn g1_what_depends_on_an_attribute_runs_again_though_the_record_is_the_same() {
        let (_directory, store, _) = store_with_a_session();
        let key = AttributeKey::new("a").unwrap();
        let set = |json: &'static str| {
            let key = key.clone();
            move |seen: &mut Transition<'_>, _| seen.set(&key, json)
        };
        store.transact(SESSION, Access::Write, &Census::default(), &mut set("1")).unwrap();
        let (mut taken, mut runs) = (None, 0);
        let take = &mut |seen: &mut Transition<'_>, _| {
            runs += 1;
            if runs == 1 {
                let census = Census::default();
                let write = || store.transact(SESSION, Access::Write, &census, &mut set("2"));
                std::thread::scope(|scope| scope.spawn(write).join().unwrap()).unwrap();
            }
            taken = seen.take(&key)?;
            Ok(())
        };
        store.transact(SESSION, Access::Read, &Census::default(), take).unwrap();
        assert_eq!((taken.as_deref(), runs), (Some("2"), 2));
    }

    #[test]
    fn what_a_process_saw_last_of_a_session_foresees_what_it_will_find() {
        let (_directory, store, _) = store_with_a_session();
        let (census, token) = (Census::default(), OwnerToken([1; 16]));
        let run =
            |operation: Operation<'_, Session>| store.transact(SESSION, Access::Write, &census, operation).unwrap();
        let foresees = || {
            let mut seen = None;
            store.recall::<Session>(SESSION, &mut |record: &Record| {
                seen = Some((record.foresees_message(&token), record.foresees_end(&token, Some(7))));
                assert_eq!(record.foresees_delivery(8), None);
                assert_eq!(record.foresees_delivery(7).is_some(), record.pending.len() == 1 && !seen.unwrap().1);
            });
            seen
        };
        run(&mut |session, _| attach(session, 1));
        assert_eq!(foresees(), Some((false, false)));
        run(&mut |session, _| {
            session.enqueue_outgoing(&token, "{}", "")?;
            session.register_pending(&token, 7, 1000, "").map(drop)
        });
        assert_eq!(foresees(), Some((true, false)));
        run(&mut |session, _| session.take_outgoing(&token, 1).map(drop));
        assert_eq!(foresees(), Some((false, false)));
        run(&mut |session, _| session.cancel_pending(&token, 7).map(drop));
        assert_eq!(foresees(), Some((false, true)));
        create(&store, Digest([2; 16]), "t").unwrap();
        assert_eq!(foresees(), None, "another session was used since");
    }

    #[test]
    fn what_was_worked_out_for_another_time_runs_again() {
        assert_eq!(runs(|_, _, clock| clock.advance(1)), (2, 1));
    }

    /// Rows that count what is read of them.
    struct Counted<'r>(&'r dyn Rows, &'r Cell<(usize, usize)>);

    impl Rows for Counted<'_> {
        fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, StoreError> {
            let (gets, scans) = self.1.get();
            self.1.set((gets + 1, scans));
            self.0.get(key)
        }

        fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
            let (gets, scans) = self.1.get();
            self.1.set((gets, scans + 1));
            self.0.scan(from, visit)
        }

        fn used_bytes(&self) -> Result<u64, StoreError> {
            self.0.used_bytes()
        }

        fn revision(&self) -> u64 {
            self.0.revision()
        }
    }

    /// Rows read, scans, and whether anything is to be written, when somebody opens a session.
    fn cost(store: &LocalStore<Memory>, id: &str, principal: Option<&str>) -> (bool, (usize, usize), bool) {
        let id = SessionId::new(id).unwrap();
        let principal = principal.map(|name| Digest::of(name.as_bytes()));
        let (read, mut found) = (Cell::default(), false);
        let changes_nothing: Step<bool> = store.rows.read(|rows| {
            let mut open = |session: &mut Transition<'_>, _| {
                found = session.open(&id, principal)?.is_some();
                Ok(())
            };
            let key = Digest::of(id.as_str().as_bytes());
            let rows = Counted(rows, &read);
            let worked = store.run(&rows, key, Access::Read, &Census::default(), &mut open)?;
            Ok(worked.effects.is_empty())
        });
        (found, read.get(), changes_nothing.unwrap())
    }

    #[test]
    fn g12_a_session_of_another_costs_what_one_that_never_was_costs() {
        let settings = Settings::default();
        let memory = Memory::new(settings.limit(Limit::StoreBytes)).unwrap();
        let store = LocalStore::new(memory, settings, Arc::new(ManualClock::at(1_000)));
        let record = NewRecord {
            id: SessionId::new("there").unwrap(),
            incarnation: 1,
            first_request: 1,
            ttl: 1_000,
            principal: Some(Digest::of(b"ann")),
        };
        let key = Digest::of(b"there");
        let created =
            store.transact(key, Access::Create(record.principal), &Census::default(), &mut |session, view| {
                session.create(&record, view).map(drop)
            });
        assert!(created.is_ok());
        assert!(cost(&store, "there", Some("ann")).0);
        let unknown = cost(&store, "never", Some("mallory"));
        assert_eq!(unknown, (false, (1, 0), true));
        for principal in [Some("mallory"), None] {
            assert_eq!(cost(&store, "there", principal), unknown);
        }
    }
}
