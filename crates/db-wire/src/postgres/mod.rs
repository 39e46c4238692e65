//! PostgreSQL's frontend/backend protocol, version 3.0.

mod message;
mod startup;

pub use message::{
    ErrorFields, bind_names, close_target, command_tag, error_response, parameter_status, parse_parts,
    put_close, put_message, put_parse, put_query, rename_bind, rename_describe,
};
pub use startup::{Startup, cancel_request, put_startup};

/// Length of a message's head: its type and its length.
pub const HEAD: usize = 5;

/// Whether a session is in a transaction, as ReadyForQuery says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// Not in one.
    Idle,
    /// In one.
    Open,
    /// In one that has failed.
    Failed,
}

impl Transaction {
    /// From ReadyForQuery's byte.
    pub fn read(byte: u8) -> Option<Self> {
        match byte {
            b'I' => Some(Self::Idle),
            b'T' => Some(Self::Open),
            b'E' => Some(Self::Failed),
            _ => None,
        }
    }

    /// ReadyForQuery's byte.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Open => b'T',
            Self::Failed => b'E',
        }
    }
}

/// A message's type and its whole length (head included), once its head is there. None of the length is trusted yet.
pub fn head(bytes: &[u8]) -> Option<(u8, usize)> {
    let head = bytes.get(..HEAD)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    Some((head[0], length + 1))
}
