//! The same steps for each peer: those of benches/php/Peer.php.

use std::path::Path;

use mcp_state::{Claim, Delivery, Engine, NewSession, OwnerKind, OwnerToken, Session};

use crate::Result;
use crate::lmdb::{Environment, Transaction};

/// What does the work that is measured.
pub(crate) trait Peer {
    /// Makes `sessions` sessions: the first `measured` hold `content` bytes of attributes, the others 1 kB.
    fn populate(&mut self, sessions: usize, measured: usize, content: usize) -> Result<()>;
    /// Begins to work at the session of this number.
    fn enter(&mut self, session: usize) -> Result<()>;
    /// Registers a request and queues its message. Its id.
    fn send(&mut self, message: &str) -> Result<i64>;
    /// Takes the queued message.
    fn take(&mut self) -> Result<Vec<u8>>;
    /// Keeps the response of a registered request.
    fn deliver(&mut self, id: i64, response: &str) -> Result<()>;
    /// Removes the request with its response.
    fn claim(&mut self, id: i64) -> Result<Vec<u8>>;
    /// Reads the attribute `client.name`.
    fn get(&mut self) -> Result<Vec<u8>>;
    /// Sets the attributes `client.name` and `client.version`.
    fn patch(&mut self, name: &str, version: &str) -> Result<()>;
}

/// The peer of this name.
pub(crate) fn open(name: &str, place: &str) -> Result<Box<dyn Peer>> {
    match name {
        "ours-engine" => Ok(Box::new(Ours { engine: Engine::open(place)?, at: None })),
        "bare-lmdb" => Ok(Box::new(BareLmdb::open(Path::new(place), false)?)),
        "bare-write-map" => Ok(Box::new(BareLmdb::open(Path::new(place), true)?)),
        "bare-copy" => Ok(Box::new(BareCopy::open(Path::new(place))?)),
        _ => Err(format!("there is no peer {name}: ours-engine, bare-lmdb, bare-write-map or bare-copy").into()),
    }
}

fn session_id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Ten attributes that come to `bytes` bytes.
fn content(bytes: usize) -> impl Iterator<Item = (String, String)> {
    (0..10).map(move |number| (format!("content.part{number}"), format!("\"{}\"", "x".repeat(bytes / 10))))
}

/// The engine without PHP.
struct Ours {
    engine: Engine,
    at: Option<(Session, OwnerToken)>,
}

impl Ours {
    fn at(&self) -> (&Session, &OwnerToken) {
        let (session, owner) = self.at.as_ref().expect("a session was entered");
        (session, owner)
    }
}

impl Peer for Ours {
    fn populate(&mut self, sessions: usize, measured: usize, bytes: usize) -> Result<()> {
        for number in 0..sessions {
            let new = NewSession { id: Some(session_id(number)), ..NewSession::default() };
            let session = self.engine.create_session(new)?.ok_or("the session is there already")?;
            let mut set: Vec<_> = content(if number < measured { bytes } else { 1000 }).collect();
            set.push(("client.name".into(), "\"bench\"".into()));
            session.attributes().patch(set.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))))?;
        }
        Ok(())
    }

    fn enter(&mut self, session: usize) -> Result<()> {
        let session = self.engine.open_session(&session_id(session), None)?.ok_or("the session is not there")?;
        let owner = session.attach(OwnerKind::Stream, None)?;
        self.at = Some((session, owner));
        Ok(())
    }

    fn send(&mut self, message: &str) -> Result<i64> {
        let (session, owner) = self.at();
        Ok(session.send_request(owner, message, "", 60_000)?)
    }

    fn take(&mut self) -> Result<Vec<u8>> {
        let (session, owner) = self.at();
        let message = session.take_outgoing(owner, 10)?.pop().ok_or("no message was queued")?;
        Ok(message.message.into_bytes())
    }

    fn deliver(&mut self, id: i64, response: &str) -> Result<()> {
        match self.at().0.deliver_response(id, response)? {
            Delivery::Delivered => Ok(()),
            late => Err(format!("the answer was discarded: {late:?}").into()),
        }
    }

    fn claim(&mut self, id: i64) -> Result<Vec<u8>> {
        let (session, owner) = self.at();
        match session.claim(owner, id)? {
            Claim::Answered(response) => Ok(response.into_bytes()),
            other => Err(format!("the answer was not there: {other:?}").into()),
        }
    }

    fn get(&mut self) -> Result<Vec<u8>> {
        Ok(self.at().0.attributes().get("client.name")?.ok_or("the attribute is not there")?.into_bytes())
    }

    fn patch(&mut self, name: &str, version: &str) -> Result<()> {
        Ok(self.at().0.attributes().patch([("client.name", Some(name)), ("client.version", Some(version))])?)
    }
}

/// The LMDB transactions that write the fewest keys the operations need, and nothing else: the session's record (of the size
/// that ours has, its contents meaningless) and one row for each payload.
///
/// | operation | reads | writes |
/// |---|---|---|
/// | send | record | record, message |
/// | take | record, message | record, message (deleted) |
/// | deliver | record | record, response |
/// | claim | record, response | record, response (deleted) |
/// | get | record, attribute | |
/// | patch of two | record | record, attribute, attribute |
struct BareLmdb {
    rows: Environment,
    /// The keys of the session's rows begin with it.
    session: [u8; 17],
    next: u64,
}

/// The record of a session with one owner and one pending request is about as long.
const RECORD: [u8; 330] = [7; 330];

impl BareLmdb {
    fn open(directory: &Path, write_map: bool) -> Result<Self> {
        Ok(Self { rows: Environment::open(directory, write_map)?, session: [0; 17], next: 0 })
    }

    fn key(&self, table: u8, number: u64) -> [u8; 26] {
        let mut key = [0; 26];
        key[..17].copy_from_slice(&self.session);
        key[17] = table;
        key[18..].copy_from_slice(&number.to_be_bytes());
        key
    }

    fn set_session(&mut self, number: usize) {
        // Spread like the digests of ours.
        let digest = (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.session[0] = b'S';
        self.session[1..].copy_from_slice(&digest.to_be_bytes());
    }

    fn read_record(&self, transaction: &Transaction<'_>) -> Result<()> {
        transaction.get(&self.key(RECORDS, 0))?.ok_or("the record is not there")?;
        Ok(())
    }

    /// Reads the record and writes it again with a payload.
    fn put(&self, table: u8, number: u64, value: &[u8]) -> Result<()> {
        let mut transaction = self.rows.write()?;
        self.read_record(&transaction)?;
        transaction.put(&self.key(RECORDS, 0), &RECORD)?;
        transaction.put(&self.key(table, number), value)?;
        transaction.commit()
    }

    /// The same taking a payload away.
    fn remove(&self, table: u8, number: u64) -> Result<Vec<u8>> {
        let mut transaction = self.rows.write()?;
        self.read_record(&transaction)?;
        let key = self.key(table, number);
        let value = transaction.get(&key)?.ok_or("the payload is not there")?.to_vec();
        transaction.put(&self.key(RECORDS, 0), &RECORD)?;
        transaction.delete(&key)?;
        transaction.commit()?;
        Ok(value)
    }
}

/// In the order of ours: the rows of an operation stand on one page where they can.
const RECORDS: u8 = 0;
const MESSAGES: u8 = 1;
const RESPONSES: u8 = 3;
const ATTRIBUTES: u8 = 4;

impl Peer for BareLmdb {
    fn populate(&mut self, sessions: usize, measured: usize, bytes: usize) -> Result<()> {
        for number in 0..sessions {
            self.set_session(number);
            let mut transaction = self.rows.write()?;
            transaction.put(&self.key(RECORDS, 0), &RECORD)?;
            transaction.put(&self.key(ATTRIBUTES, 0), b"\"bench\"")?;
            for (part, (_, value)) in content(if number < measured { bytes } else { 1000 }).enumerate() {
                // In chunks, as ours.
                for (chunk, value) in value.as_bytes().chunks(64 << 10).enumerate() {
                    transaction.put(&self.key(ATTRIBUTES, (2 + part * 100 + chunk) as u64), value)?;
                }
            }
            transaction.commit()?;
        }
        Ok(())
    }

    fn enter(&mut self, session: usize) -> Result<()> {
        self.set_session(session);
        // Processes on one session have rows of their own in it.
        self.next = u64::from(std::process::id()) << 32;
        Ok(())
    }

    fn send(&mut self, message: &str) -> Result<i64> {
        self.next += 1;
        self.put(MESSAGES, self.next, message.as_bytes())?;
        Ok(self.next as i64)
    }

    fn take(&mut self) -> Result<Vec<u8>> {
        self.remove(MESSAGES, self.next)
    }

    fn deliver(&mut self, id: i64, response: &str) -> Result<()> {
        self.put(RESPONSES, id as u64, response.as_bytes())
    }

    fn claim(&mut self, id: i64) -> Result<Vec<u8>> {
        self.remove(RESPONSES, id as u64)
    }

    fn get(&mut self) -> Result<Vec<u8>> {
        let transaction = self.rows.read()?;
        self.read_record(&transaction)?;
        Ok(transaction.get(&self.key(ATTRIBUTES, 0))?.ok_or("the attribute is not there")?.to_vec())
    }

    fn patch(&mut self, name: &str, version: &str) -> Result<()> {
        let mut transaction = self.rows.write()?;
        self.read_record(&transaction)?;
        transaction.put(&self.key(RECORDS, 0), &RECORD)?;
        transaction.put(&self.key(ATTRIBUTES, 0), name.as_bytes())?;
        transaction.put(&self.key(ATTRIBUTES, 1), version.as_bytes())?;
        transaction.commit()
    }
}

/// The floor: the bytes are copied into shared memory and out again, with nothing that would make that safe.
struct BareCopy {
    memory: *mut u8,
    length: usize,
}

const COPY_BYTES: usize = 1 << 20;

impl BareCopy {
    fn open(directory: &Path) -> Result<Self> {
        use std::os::fd::AsRawFd;
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(directory.join("copy"))?;
        file.set_len(COPY_BYTES as u64)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that is as long and that nobody truncates; it is never unmapped.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), COPY_BYTES, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(Self { memory: memory.cast(), length: 0 })
    }

    fn write(&mut self, bytes: &[u8]) {
        self.length = bytes.len().min(COPY_BYTES);
        // SAFETY: at most as many bytes as are mapped; the source is no part of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory, self.length) };
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length);
        // SAFETY: both hold `length` bytes, all of which are written before the length is set.
        unsafe {
            std::ptr::copy_nonoverlapping(self.memory, bytes.as_mut_ptr(), self.length);
            bytes.set_len(self.length);
        }
        bytes
    }
}

impl Peer for BareCopy {
    fn populate(&mut self, _: usize, _: usize, _: usize) -> Result<()> {
        Ok(())
    }

    fn enter(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, message: &str) -> Result<i64> {
        self.write(message.as_bytes());
        Ok(1)
    }

    fn take(&mut self) -> Result<Vec<u8>> {
        Ok(self.read())
    }

    fn deliver(&mut self, _: i64, response: &str) -> Result<()> {
        self.write(response.as_bytes());
        Ok(())
    }

    fn claim(&mut self, _: i64) -> Result<Vec<u8>> {
        Ok(self.read())
    }

    fn get(&mut self) -> Result<Vec<u8>> {
        Ok(self.read())
    }

    fn patch(&mut self, name: &str, version: &str) -> Result<()> {
        self.write(name.as_bytes());
        self.write(version.as_bytes());
        Ok(())
    }
}
