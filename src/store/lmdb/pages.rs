//! The check of a data file's pages before LMDB maps them.
//!
//! LMDB trusts its pages: a wrong page number or offset would end the process. So a process that is alone with a store walks the
//! trees of the newest snapshot first. The check guarantees that every reachable page is in the file, has the right kind and is
//! reached once; every node lies within its page; keys rise; no free page is in use; and the meta page counts the pages
//! correctly. It does not read values.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a page's header: number (u64), pad, flags, lower, upper (u16 each; of an overflow page, its pages as u32).
const HEADER: usize = 16;
const NODE_HEADER: usize = 8;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
/// Flags that LMDB sets on pages in memory only.
const IN_MEMORY: u16 = 0x10 | 0x4000 | 0x8000;
const BIG_DATA: u16 = 0x01;
const LONGEST_KEY: usize = 511;
const DEEPEST: u16 = 32;
/// The root of an empty tree.
const NO_PAGE: u64 = u64::MAX;
/// The flag of the tree of free pages: its keys are integers.
const INTEGER_KEYS: u16 = 0x08;

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    /// What is wrong, and where.
    Damage(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

fn damage<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Damage(what.into()))
}

/// One of the two trees, as a meta page describes it.
#[derive(Debug)]
struct Tree {
    flags: u16,
    depth: u16,
    branches: u64,
    leaves: u64,
    overflows: u64,
    entries: u64,
    root: u64,
}

/// Checks a data file that has LMDB's meta pages and the length that they name.
pub(super) fn check(file: &File, page_size: usize) -> Result<(), Fault> {
    let mut metas = [vec![0; page_size], vec![0; page_size]];
    for (number, meta) in metas.iter_mut().enumerate() {
        file.read_exact_at(meta, (number * page_size) as u64)?;
        for (flags, at) in [(INTEGER_KEYS, 40), (0, 88)] {
            if tree_at(meta, at).flags != flags {
                return damage(format!("meta page {number} has flags that are not ours"));
            }
        }
        // A transaction writes the meta page that its number's last bit names; both of a new file are of none.
        let transaction = u64_at(meta, 144);
        let in_place = transaction == 0 || (transaction % 2 == number as u64 && transaction < 1 << 60);
        if !in_place || u64_at(meta, 40) & 0xffff_ffff != page_size as u64 {
            return damage(format!("meta page {number} is of another file"));
        }
    }
    let newest = &metas[usize::from(u64_at(&metas[0], 144) < u64_at(&metas[1], 144))];
    let last = u64_at(newest, 136);
    let used = vec![0; (last / 64 + 1) as usize];
    let mut walk = Walk { file, page_size, last, used, transaction: u64_at(newest, 144), free: Vec::new() };
    walk.tree(&tree_at(newest, 88), false)?;
    walk.tree(&tree_at(newest, 40), true)?;
    for page in std::mem::take(&mut walk.free) {
        walk.take(page)?;
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A tree in the data of a meta page: pad (u32), flags, depth (u16), then five numbers (u64).
fn tree_at(meta: &[u8], at: usize) -> Tree {
    let number = |index: usize| u64_at(meta, at + 8 + index * 8);
    Tree {
        flags: u16_at(meta, at + 4),
        depth: u16_at(meta, at + 6),
        branches: number(0),
        leaves: number(1),
        overflows: number(2),
        entries: number(3),
        root: number(4),
    }
}

/// A walk over the pages of one snapshot.
struct Walk<'f> {
    file: &'f File,
    page_size: usize,
    /// The last page there is.
    last: u64,
    /// A bit for each page: whether it has been reached.
    used: Vec<u64>,
    transaction: u64,
    free: Vec<u64>,
}

/// What the walk of one tree has seen.
#[derive(Default)]
struct Seen {
    branches: u64,
    leaves: u64,
    overflows: u64,
    entries: u64,
    /// The key before, and the separator that the next ones must not be below.
    key: Option<Vec<u8>>,
    floor: Vec<u8>,
    integer_keys: bool,
}

impl Walk<'_> {
    fn tree(&mut self, tree: &Tree, is_free: bool) -> Result<(), Fault> {
        let mut seen = Seen { integer_keys: is_free, ..Seen::default() };
        if tree.root != NO_PAGE {
            if !(1..=DEEPEST).contains(&tree.depth) {
                return damage(format!("a tree is {} pages deep", tree.depth));
            }
            self.page(tree.root, tree.depth, &mut seen)?;
        }
        let counted = (seen.branches, seen.leaves, seen.overflows, seen.entries);
        if counted != (tree.branches, tree.leaves, tree.overflows, tree.entries) {
            return damage("a tree holds something else than its meta page counts");
        }
        Ok(())
    }

    /// Notes that a page is reached.
    fn take(&mut self, page: u64) -> Result<(), Fault> {
        if !(2..=self.last).contains(&page) {
            return damage(format!("page {page} is named and does not exist"));
        }
        let (word, bit) = (&mut self.used[(page / 64) as usize], 1 << (page % 64));
        if *word & bit != 0 {
            return damage(format!("page {page} is used twice"));
        }
        *word |= bit;
        Ok(())
    }

    fn read(&mut self, page: u64) -> Result<Vec<u8>, Fault> {
        self.take(page)?;
        let mut bytes = vec![0; self.page_size];
        self.file.read_exact_at(&mut bytes, page * self.page_size as u64)?;
        if u64_at(&bytes, 0) != page {
            return damage(format!("page {page} says that it is another"));
        }
        Ok(bytes)
    }

    /// A page of a tree that is so many pages deep from here.
    fn page(&mut self, number: u64, depth: u16, seen: &mut Seen) -> Result<(), Fault> {
        let page = self.read(number)?;
        let wrong = |what: &str| damage(format!("page {number}: {what}"));
        let kind = u16_at(&page, 10) & !IN_MEMORY;
        if kind != if depth == 1 { LEAF } else { BRANCH } {
            return wrong("it is of another kind than its place");
        }
        let (lower, upper) = (usize::from(u16_at(&page, 12)), usize::from(u16_at(&page, 14)));
        if lower < HEADER || lower % 2 != 0 || lower > upper || upper > self.page_size {
            return wrong("its bounds are not a page's");
        }
        let nodes = (lower - HEADER) / 2;
        if nodes < if kind == LEAF { 1 } else { 2 } {
            return wrong("it has too few nodes");
        }
        for index in 0..nodes {
            let at = usize::from(u16_at(&page, HEADER + index * 2));
            if at < upper || at % 2 != 0 || at + NODE_HEADER > self.page_size {
                return wrong("a node is outside of it");
            }
            let key_length = usize::from(u16_at(&page, at + 6));
            let data = at + NODE_HEADER + key_length;
            if key_length > LONGEST_KEY || data > self.page_size {
                return wrong("a key is too long");
            }
            let key = &page[at + NODE_HEADER..data];
            let (low, flags) =
                (u64::from(u16_at(&page, at)) | u64::from(u16_at(&page, at + 2)) << 16, u16_at(&page, at + 4));
            if kind == BRANCH {
                // The first separator of a branch is not looked at.
                if index > 0 && !seen.separate(key) {
                    return wrong("its keys do not rise");
                }
                self.page(low | u64::from(flags) << 32, depth - 1, seen)?;
                continue;
            }
            if !seen.next(key) {
                return wrong("its keys do not rise");
            }
            let size = low as usize;
            match flags {
                0 if data + size <= self.page_size => {
                    if seen.integer_keys {
                        self.free_pages(key, &page[data..data + size])?;
                    }
                }
                BIG_DATA if data + 8 <= self.page_size => {
                    seen.overflows += self.overflow(u64_at(&page, data), size, seen.integer_keys.then_some(key))?;
                }
                _ => return wrong("a value is outside of it"),
            }
        }
        if kind == LEAF {
            seen.leaves += 1;
            seen.entries += nodes as u64;
        } else {
            seen.branches += 1;
        }
        Ok(())
    }

    /// A value of `size` bytes in pages of its own; a list of free pages if it belongs to the transaction `free`. How many pages.
    fn overflow(&mut self, first: u64, size: usize, free: Option<&[u8]>) -> Result<u64, Fault> {
        let head = self.read(first)?;
        let pages = u64::from(u32::from_le_bytes(head[12..16].try_into().expect("four bytes")));
        let needed = ((HEADER - 1 + size) / self.page_size + 1) as u64;
        if u16_at(&head, 10) & !IN_MEMORY != OVERFLOW || pages < needed || pages > self.last {
            return damage(format!("page {first} does not begin a large value"));
        }
        for page in first + 1..first + pages {
            self.take(page)?;
        }
        if let Some(transaction) = free {
            let mut list = vec![0; size];
            self.file.read_exact_at(&mut list, first * self.page_size as u64 + HEADER as u64)?;
            self.free_pages(transaction, &list)?;
        }
        Ok(pages)
    }

    /// A list of pages that a transaction has freed: how many, then their numbers, falling.
    fn free_pages(&mut self, transaction: &[u8], list: &[u8]) -> Result<(), Fault> {
        let mut numbers = list.chunks_exact(8).map(|bytes| u64_at(bytes, 0));
        let count = numbers.next().unwrap_or(u64::MAX);
        let pages: Vec<_> = numbers.take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
        let is_list = pages.len() as u64 == count && pages.is_sorted_by(|one, next| one > next);
        if !is_list || transaction.len() != 8 || u64_at(transaction, 0) > self.transaction {
            return damage("a list of free pages is none");
        }
        self.free.extend(pages);
        Ok(())
    }
}

impl Seen {
    fn rises(&self, one: &[u8], next: &[u8]) -> bool {
        if self.integer_keys && one.len() == 8 && next.len() == 8 {
            u64_at(one, 0) < u64_at(next, 0)
        } else {
            one < next
        }
    }

    /// The next key of a leaf. Whether it is in order.
    fn next(&mut self, key: &[u8]) -> bool {
        let ordered = self.key.as_ref().is_none_or(|before| self.rises(before, key))
            && (self.floor.is_empty() || !self.rises(key, &self.floor))
            && !key.is_empty();
        self.key = Some(key.to_vec());
        ordered
    }

    /// A separator between two pages. Whether it is above all before.
    fn separate(&mut self, key: &[u8]) -> bool {
        let ordered = self.key.as_ref().is_some_and(|before| self.rises(before, key));
        self.floor = key.to_vec();
        ordered
    }
}
