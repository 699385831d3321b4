//! What a test can only see from inside: where LMDB's transaction ends, and the pages it leaves free.

use std::sync::Arc;

use super::{Files, Lmdb};
use crate::dsn::Dsn;
use crate::error::StoreError;
use crate::store::rows::{Change, Transactions, Verdict};

fn files() -> (tempfile::TempDir, Arc<Files>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let dsn = Dsn::parse(&format!("file://{}/store?durability=none", path.display())).unwrap();
    let files = Lmdb::open(&dsn.place, &dsn.settings).unwrap().files().unwrap();
    (directory, files)
}

/// Writes rows of 4 kB each, or removes them.
fn change(files: &Files, numbers: std::ops::Range<u32>, puts: bool) {
    let done = files.write(|rows| -> Result<_, StoreError> {
        for number in numbers.clone() {
            let key = number.to_be_bytes();
            if puts {
                rows.put(&key, &[7; 4000])?;
            } else {
                rows.delete(&key)?;
            }
        }
        Ok(Verdict::Commit { value: (), change: Change::Frees })
    });
    if let Err(error) = done {
        panic!("{error}");
    }
}

fn length(files: &Files) -> u64 {
    files.data.metadata().unwrap().len()
}

#[test]
fn a_transaction_tells_where_the_file_will_end_before_it_is_committed() {
    let (_directory, files) = files();
    for number in 0..20 {
        let mut transaction = files.environment.write().unwrap();
        let before = transaction.end_bytes();
        assert_eq!(before, files.environment.read().unwrap().end_bytes());
        use crate::store::rows::RowsMut;
        for row in 0..10_u32 {
            transaction.put(&(number * 10 + row).to_be_bytes(), &[1; 3000]).unwrap();
        }
        let end = transaction.end_bytes();
        transaction.commit().unwrap();
        let (told, real) = (end.max(before), files.environment.read().unwrap().end_bytes());
        // Its own list of free pages comes on top.
        assert!(real >= told && real - told <= 4 * 4096, "{told} was told, {real} it is");
        assert!(length(&files) <= real);
    }
    assert!(files.environment.read().unwrap().end_bytes() > 100 * 4096);
}

#[test]
fn what_is_freed_goes_back_to_the_file_system_but_for_what_a_snapshot_shows() {
    let (_directory, files) = files();
    change(&files, 0..4000, true);
    let full = files.data_bytes();
    assert!(full > 15 << 20, "{full}");
    // A reader in another thread keeps a snapshot of all rows.
    let (begin, begun) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let reader = {
        let files = files.clone();
        std::thread::spawn(move || {
            let counted = files.read(|rows| -> Result<_, StoreError> {
                begin.send(()).unwrap();
                ended.recv().unwrap();
                let mut count = 0;
                rows.scan(&[0], &mut |_, value| {
                    count += u32::from(value == [7; 4000]);
                    true
                })?;
                Ok(count)
            });
            counted.map_err(|error| error.to_string())
        })
    };
    begun.recv().unwrap();
    change(&files, 0..3990, false);
    files.give_back_all().unwrap();
    assert!(files.data_bytes() >= full, "the reader needs it all");
    end.send(()).unwrap();
    assert_eq!(reader.join().unwrap(), Ok(4000));
    files.give_back_all().unwrap();
    assert!(files.data_bytes() < 2 << 20, "{} of {full} bytes are left", files.data_bytes());
    // Nothing is missing, and what is free can be used again.
    change(&files, 6000..8000, true);
    let sum = files.read(|rows| -> Result<_, StoreError> {
        let mut count = 0;
        rows.scan(&[0], &mut |_, value| {
            count += u32::from(value == [7; 4000]);
            true
        })?;
        Ok(count)
    });
    assert!(matches!(sum, Ok(2010)));
    let page_size = 4096;
    super::pages::check(&files.data, page_size).unwrap();
}
