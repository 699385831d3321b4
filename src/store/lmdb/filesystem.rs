//! The file systems that a store refuses.
//!
//! A store allocates what it maps, so that no write to the map lacks space: the kernel would end the process with SIGBUS. On a
//! copy-on-write file system, or on another machine, an allocated block guarantees nothing. So a store there is refused by the
//! name of the file system, before anything is made.

use std::path::Path;

use crate::error::StoreError;

/// File systems on which a write to an allocated block may still lack space: the magic number of statfs(2), and the name.
#[cfg(target_os = "linux")]
const REFUSED: [(u32, &str); 15] = [
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "ZFS"),
    (0xca45_1a4e, "bcachefs"),
    (0x0000_3434, "NILFS2"),
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0000_517b, "SMB"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x0bd0_0bd0, "Lustre"),
];

/// The file systems that keep files in memory.
#[cfg(target_os = "linux")]
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Refuses a path, existing or not, on one of these file systems.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    let Some(name) = path.ancestors().find_map(magic).and_then(refused) else { return Ok(()) };
    let reason = format!(
        "it is on {name}, where writing to a mapped file can end the process when space is short, whatever is allocated; use shm://, or a directory on ext4, XFS or tmpfs (copy the store there while no process uses it)"
    );
    Err(StoreError::Unsafe { path: path.to_owned(), reason })
}

#[cfg(target_os = "linux")]
fn refused(magic: u32) -> Option<&'static str> {
    REFUSED.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn refused(_magic: u32) -> Option<&'static str> {
    None
}

/// Whether files in a directory are memory, which counts against the memory cgroup of whoever writes them.
#[cfg(target_os = "linux")]
pub(super) fn is_in_memory(directory: &Path) -> bool {
    magic(directory).is_some_and(|magic| IN_MEMORY.contains(&magic))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_in_memory(_directory: &Path) -> bool {
    false
}

/// The number of the file system that a path is on, if it is there.
#[cfg(target_os = "linux")]
fn magic(path: &Path) -> Option<u32> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero bytes are a valid statfs, a struct of integers.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated and `stat` is writable; both live through the call.
    let known = unsafe { libc::statfs(path.as_ptr(), &raw mut stat) } == 0;
    // The number has 32 bits, in a field of as many as the C library likes.
    known.then_some(stat.f_type as u32)
}

#[cfg(not(target_os = "linux"))]
fn magic(_path: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_system_on_which_allocated_space_can_be_missing_is_refused_by_name() {
        assert_eq!(refused(libc::BTRFS_SUPER_MAGIC as u32), Some("btrfs"));
        assert_eq!(refused(libc::NFS_SUPER_MAGIC as u32), Some("NFS"));
        assert_eq!(refused(libc::FUSE_SUPER_MAGIC as u32), Some("FUSE"));
        for magic in [libc::EXT4_SUPER_MAGIC, libc::XFS_SUPER_MAGIC, libc::TMPFS_MAGIC, libc::OVERLAYFS_SUPER_MAGIC] {
            assert_eq!(refused(magic as u32), None);
        }
    }

    #[test]
    fn a_place_that_is_not_there_is_judged_by_what_it_would_be_made_in() {
        let directory = tempfile::tempdir().unwrap();
        assert!(check(&directory.path().join("not/there")).is_ok());
        assert!(check(Path::new("/")).is_ok());
    }
}
