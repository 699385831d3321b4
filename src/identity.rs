//! The ELF note that identifies a copy of this library. Each program and shared object with the engine contains the note, and a
//! renamed, stripped or deleted file keeps it.

/// An ELF note: the lengths of name and description, the type, the name with its NUL, padded to four bytes.
#[repr(C, align(4))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    name_length: u32,
    description_length: u32,
    kind: u32,
    name: [u8; 20],
}

/// The note of this copy. The code that opens a store refers to it, so no linker removes it.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".note.mcp_state"))]
pub static NOTE: Note = Note { name_length: 17, description_length: 0, kind: 1, name: *b"mcp-state engine\0\0\0\0" };

impl Note {
    /// Returns the bytes of the note in an ELF image.
    pub fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let numbers = [self.name_length, self.description_length, self.kind].map(u32::to_ne_bytes);
        bytes[..12].copy_from_slice(numbers.as_flattened());
        bytes[12..].copy_from_slice(&self.name);
        bytes
    }
}
