//! By what a process knows a copy of this library, whatever the file is called: a note in the ELF image that each program and
//! shared object that has the engine carries, and that stays when the file is renamed, stripped or deleted.

/// An ELF note: the lengths of name and description, the type, the name with its NUL, padded to four bytes.
#[repr(C, align(4))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    name_length: u32,
    description_length: u32,
    kind: u32,
    name: [u8; 20],
}

/// The note of this copy. What opens a store uses it, so no linker leaves it out.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".note.mcp_state"))]
pub static NOTE: Note = Note { name_length: 17, description_length: 0, kind: 1, name: *b"mcp-state engine\0\0\0\0" };

impl Note {
    /// The bytes of the note as they stand in an image.
    pub fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let numbers = [self.name_length, self.description_length, self.kind].map(u32::to_ne_bytes);
        bytes[..12].copy_from_slice(numbers.as_flattened());
        bytes[12..].copy_from_slice(&self.name);
        bytes
    }
}
