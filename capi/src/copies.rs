//! One copy of mcp-state in a process. A second one, loaded from another file, would not know which files the first has open, and
//! closing one of them would drop the first one's locks (they belong to the process). The copy that comes later refuses. A copy
//! is known by the note in its image (`mcp_state::identity`), whatever its file is called; a copy from before the note by its name.

use std::ffi::{CStr, c_char, c_int, c_void};
#[cfg(target_os = "linux")]
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;

use mcp_state::ErrorKind;
#[cfg(target_os = "linux")]
use mcp_state::identity::NOTE;

use crate::error::Failure;

/// Fails if another copy was loaded before this one was first used.
pub(crate) fn check() -> Result<(), Failure> {
    static OTHER: OnceLock<Option<String>> = OnceLock::new();
    match OTHER.get_or_init(other) {
        None => Ok(()),
        Some(other) => Err(Failure::new(
            ErrorKind::StoreUnavailable,
            format!(
                "this process has {other} loaded already, and two copies of mcp-state would damage each other's locks; load one"
            ),
        )),
    }
}

#[cfg(target_os = "linux")]
fn other() -> Option<String> {
    let mut search = Search { own: check as *const () as usize, other: None };
    // SAFETY: the callback has the type asked for, keeps no pointer, and gets `search` for as long as the call lasts.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.other
}

#[cfg(not(target_os = "linux"))]
fn other() -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
struct Search {
    /// An address inside this copy.
    own: usize,
    other: Option<String>,
}

/// What `dl_iterate_phdr` calls for each object of the process.
#[cfg(target_os = "linux")]
unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    let visited = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: both are valid for the call: the first from the C library, the second from `other`.
        let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
        if object.dlpi_name.is_null() {
            return;
        }
        // SAFETY: a C string that lives as long as the object is loaded.
        let path = unsafe { CStr::from_ptr(object.dlpi_name.cast::<c_char>()) }.to_string_lossy();
        if (is_a_copy(&path) || has_note(object)) && !contains(object, search.own) {
            // The program itself has no name here.
            search.other =
                Some(if path.is_empty() { "another copy of mcp-state".to_owned() } else { path.into_owned() });
        }
    }));
    visited.is_err().into()
}

/// The addresses of an object's segments of one type.
#[cfg(target_os = "linux")]
fn segments(object: &libc::dl_phdr_info, kind: u32) -> impl Iterator<Item = Range<usize>> {
    // SAFETY: the C library says how many headers there are.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
    let base = object.dlpi_addr as usize;
    headers.iter().filter(move |header| header.p_type == kind).map(move |header| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        start..start.saturating_add(header.p_memsz as usize)
    })
}

#[cfg(target_os = "linux")]
fn contains(object: &libc::dl_phdr_info, address: usize) -> bool {
    segments(object, libc::PT_LOAD).any(|segment| segment.contains(&address))
}

/// Whether an object has the note of mcp-state.
#[cfg(target_os = "linux")]
fn has_note(object: &libc::dl_phdr_info) -> bool {
    let note = NOTE.bytes();
    segments(object, libc::PT_NOTE).any(|notes| {
        // Only what is loaded can be read.
        let is_loaded = |segment: &Range<usize>| segment.start <= notes.start && notes.end <= segment.end;
        if notes.is_empty() || !segments(object, libc::PT_LOAD).any(|segment| is_loaded(&segment)) {
            return false;
        }
        // SAFETY: the notes are within a segment that the loader has mapped, readable since notes are data of the image, and
        // that stays while the C library visits the object.
        let bytes = unsafe { std::slice::from_raw_parts(notes.start as *const u8, notes.len()) };
        bytes.windows(note.len()).any(|window| window == note)
    })
}

/// Whether a file is the library or the extension, by their names: `libmcp_state.so`, `libmcp_state.so.1`, `mcp_state.so`.
fn is_a_copy(path: &str) -> bool {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_prefix("lib").unwrap_or(name);
    name == "mcp_state.so" || name.starts_with("mcp_state.so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_known_by_their_names() {
        assert!(
            ["/usr/lib/libmcp_state.so.1", "/x/libmcp_state.so", "/usr/lib/php/20220829/mcp_state.so"].map(is_a_copy)
                == [true; 3]
        );
        assert!(
            ["", "/usr/lib/libc.so.6", "/x/my_mcp_state.so", "/x/libmcp_state_client.so"].map(is_a_copy) == [false; 4]
        );
    }

    #[test]
    fn this_copy_is_no_other() {
        assert!(check().is_ok());
    }
}
