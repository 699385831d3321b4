//! A kind for tests: a job in a queue. It uses all that kinds share, and is as small as one can be.

use std::ops::Range;

use super::{
    AttributeKey, BodyKey, BodyTable, Channel, Entry, IndexKey, Kind, PayloadKey, Population, RecordChange, Step,
    StoreView, Tables, Transition, belongs,
};
use crate::clock::Millis;
use crate::ids::Digest;
use crate::settings::Limit;

/// The list of the jobs that wait in a queue.
pub(crate) const QUEUED: u8 = 0;

/// Jobs, as a kind of records.
#[derive(Debug)]
pub(crate) enum Job {}

/// A job: it waits in its queue until somebody takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) principal: Option<Digest>,
    pub(crate) queue: Digest,
    pub(crate) created: Millis,
    pub(crate) indexed: IndexKey,
    pub(crate) is_queued: bool,
    body_bytes: u64,
    attribute_bytes: u64,
}

/// What a job carries: its arguments, and notes of whoever works on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Payload {
    Note(AttributeKey),
    Arguments,
}

impl PayloadKey for Payload {
    fn attribute(&self) -> Option<&AttributeKey> {
        match self {
            Payload::Note(name) => Some(name),
            Payload::Arguments => None,
        }
    }

    fn body(&self) -> BodyKey {
        BodyKey::new(BodyTable { number: 1, letter: b'j' }, [])
    }

    fn stand_in(&self) -> Vec<u8> {
        Vec::new()
    }

    fn of_attribute(name: AttributeKey) -> Option<Self> {
        Some(Payload::Note(name))
    }
}

impl Kind for Job {
    type Record = Record;
    type Payload = Payload;

    const NAME: &'static str = "job";
    const TABLES: Tables = Tables { records: b'0', expiry: b'1', entries: b'2', population: b'3', principals: b'4' };
    const TAG: &'static str = "job:";

    fn decode(bytes: &[u8]) -> Result<Box<Record>, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let [id, principal, queue, numbers @ ..] = &text.split(' ').collect::<Vec<_>>()[..] else {
            return Err("it has too few words".to_owned());
        };
        let number = |text: &str| u128::from_str_radix(text, 16).map_err(|error| error.to_string());
        let numbers = numbers.iter().map(|text| Ok(number(text)? as u64)).collect::<Result<Vec<_>, String>>()?;
        let [created, at, is_queued, body_bytes, attribute_bytes] = numbers[..] else {
            return Err("it has too few numbers".to_owned());
        };
        let digest = |text: &str| Ok::<_, String>(Digest(number(text)?.to_be_bytes()));
        Ok(Box::new(Record {
            id: (*id).to_owned(),
            principal: if *principal == "-" { None } else { Some(digest(principal)?) },
            queue: digest(queue)?,
            created,
            indexed: IndexKey { settled: true, at },
            is_queued: is_queued != 0,
            body_bytes,
            attribute_bytes,
        }))
    }

    fn encode(record: &Record) -> Vec<u8> {
        let hex = |digest: Digest| format!("{:x}", u128::from_be_bytes(digest.0));
        let Record { id, created, body_bytes, attribute_bytes, .. } = record;
        let (principal, queue) = (record.principal.map_or("-".to_owned(), hex), hex(record.queue));
        let (at, is_queued) = (record.indexed.at, u8::from(record.is_queued));
        format!("{id} {principal} {queue} {created:x} {at:x} {is_queued} {body_bytes:x} {attribute_bytes:x}").into()
    }

    fn index_key(record: &Record) -> Option<IndexKey> {
        Some(record.indexed)
    }

    fn principal(record: &Record) -> Option<Digest> {
        record.principal
    }

    fn entries(record: &Record) -> Vec<Entry> {
        let entry = Entry { list: QUEUED, group: record.queue, at: record.created };
        if record.is_queued { vec![entry] } else { vec![] }
    }

    fn footprint(record: &Record) -> u64 {
        128 + record.body_bytes + record.attribute_bytes
    }

    fn steady(_: Option<&Record>, _: Option<&Record>, _: Millis) -> Range<Millis> {
        0..Millis::MAX
    }

    fn gone_by(record: &Record) -> Millis {
        record.indexed.at
    }

    fn bodies(_: &Record) -> Vec<Payload> {
        vec![Payload::Arguments]
    }

    fn accounts(record: &Record) -> (u64, u64) {
        (record.body_bytes, record.attribute_bytes)
    }

    fn id(record: &Record) -> &str {
        &record.id
    }

    fn follow(_: &mut Transition<'_, Self>) {}

    fn move_in_time(record: &mut Record, shift: &dyn Fn(Millis) -> Millis) {
        record.created = shift(record.created);
        record.indexed.at = shift(record.indexed.at);
    }

    fn release_everybody(_: &mut Transition<'_, Self>) -> u64 {
        0
    }
}

impl Transition<'_, Job> {
    /// Queues a job, unless its id is taken.
    pub(crate) fn queue(
        &mut self,
        (id, principal): (&str, Option<Digest>),
        queue: Digest,
        arguments: &str,
        store: StoreView,
    ) -> Step<bool> {
        if self.record.is_some() {
            return Ok(false);
        }
        self.within(Limit::Sessions, store.records + 1)?;
        let now = self.now();
        let indexed = IndexKey { settled: true, at: now + 1000 };
        let (created, body_bytes) = (now, arguments.len() as u64);
        let id = id.to_owned();
        let record = Record { id, principal, queue, created, indexed, is_queued: true, body_bytes, attribute_bytes: 0 };
        self.effects.entries = Job::entries(&record).into_iter().map(|entry| (entry, true)).collect();
        self.effects.index = Some((None, Some(indexed)));
        self.effects.population = Some((Population::Added, principal));
        self.effects.record = RecordChange::Write;
        self.effects.rings.push(Channel::Shared(queue));
        self.record = Some(Box::new(record));
        self.put(Payload::Arguments, arguments.as_bytes().to_vec());
        Ok(true)
    }

    /// Takes the job out of its queue: what it carries; nothing when somebody else has it, or it is not there for `principal`.
    pub(crate) fn take_job(&mut self, principal: Option<Digest>) -> Step<Option<String>> {
        let is_free = |record: &Record| record.is_queued && belongs(record.principal, principal);
        if !self.record.as_deref().is_some_and(is_free) {
            return Ok(None);
        }
        let entries = Job::entries(self.record());
        self.effects.entries = entries.into_iter().map(|entry| (entry, false)).collect();
        self.edit().is_queued = false;
        self.effects.rings.push(Channel::Record);
        Ok(Some(String::from_utf8_lossy(&self.payload_of_record(&Payload::Arguments)?).into_owned()))
    }

    /// Notes something under a name: what was noted before.
    pub(crate) fn note(&mut self, name: &AttributeKey, text: &str) -> Step<Option<String>> {
        let key = Payload::Note(name.clone());
        let before = self.payload(&key)?;
        let bytes = |length: usize| (name.as_str().len() + length) as u64;
        let record = self.edit();
        record.attribute_bytes -= before.as_ref().map_or(0, |before| bytes(before.len()));
        record.attribute_bytes += bytes(text.len());
        self.put(key, text.as_bytes().to_vec());
        Ok(before.map(|before| String::from_utf8_lossy(&before).into_owned()))
    }

    /// Removes the job.
    pub(crate) fn drop_job(&mut self) -> Step<()> {
        let record = self.record();
        let (indexed, principal, entries) = (record.indexed, record.principal, Job::entries(record));
        self.effects.entries = entries.into_iter().map(|entry| (entry, false)).collect();
        self.effects.index = Some((Some(indexed), None));
        self.effects.population = Some((Population::Removed, principal));
        self.effects.record = RecordChange::Remove;
        Ok(())
    }
}
