//! MySQL's client/server protocol (classic), MariaDB's dialect included.

mod login;
mod ok;
mod reply;
mod stmt;

pub use login::{AuthSwitch, Greeting, LoginResponse, auth_more, auth_switch, ssl_request};
pub use ok::{ErrPacket, OkPacket, Tracked, err_packet, ok_packet};
pub use reply::{Awaits, Part, Reply};
pub use stmt::{execute_flags, statement_id, with_statement_id, with_types};

/// Length of a packet's header: three bytes of length, one of sequence.
pub const HEADER: usize = 4;
/// Payload of a packet that has a continuation.
pub const FULL: usize = 0xFF_FFFF;

/// Capability bits of both sides (`CLIENT_*` in MySQL's headers).
pub mod caps {
    #![allow(missing_docs, reason = "names and values are MySQL's")]
    pub const LONG_PASSWORD: u32 = 1;
    pub const FOUND_ROWS: u32 = 1 << 1;
    pub const LONG_FLAG: u32 = 1 << 2;
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub const NO_SCHEMA: u32 = 1 << 4;
    pub const COMPRESS: u32 = 1 << 5;
    pub const ODBC: u32 = 1 << 6;
    pub const LOCAL_FILES: u32 = 1 << 7;
    pub const IGNORE_SPACE: u32 = 1 << 8;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const INTERACTIVE: u32 = 1 << 10;
    pub const SSL: u32 = 1 << 11;
    pub const IGNORE_SIGPIPE: u32 = 1 << 12;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    pub const MULTI_RESULTS: u32 = 1 << 17;
    pub const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub const CAN_HANDLE_EXPIRED_PASSWORDS: u32 = 1 << 22;
    pub const SESSION_TRACK: u32 = 1 << 23;
    pub const DEPRECATE_EOF: u32 = 1 << 24;
}

/// Status bits of OK and EOF packets (`SERVER_*`).
pub mod status {
    #![allow(missing_docs, reason = "names and values are MySQL's")]
    pub const IN_TRANS: u16 = 1;
    pub const AUTOCOMMIT: u16 = 1 << 1;
    pub const MORE_RESULTS: u16 = 1 << 3;
    pub const CURSOR_EXISTS: u16 = 1 << 6;
    pub const LAST_ROW_SENT: u16 = 1 << 7;
    pub const SESSION_STATE_CHANGED: u16 = 1 << 14;
}

/// First byte of a command (`COM_*`).
pub mod command {
    #![allow(missing_docs, reason = "names and values are MySQL's")]
    pub const QUIT: u8 = 0x01;
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const STATISTICS: u8 = 0x09;
    pub const PROCESS_KILL: u8 = 0x0C;
    pub const PING: u8 = 0x0E;
    pub const CHANGE_USER: u8 = 0x11;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub const STMT_CLOSE: u8 = 0x19;
    pub const STMT_RESET: u8 = 0x1A;
    pub const SET_OPTION: u8 = 0x1B;
    pub const STMT_FETCH: u8 = 0x1C;
    pub const RESET_CONNECTION: u8 = 0x1F;
}

/// A packet's payload length and sequence number, once its header is there.
pub fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let head = bytes.get(..HEADER)?;
    Some((u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize, head[3]))
}

/// The first packet's sequence number and payload, and its length with header, if it is complete.
pub fn packet(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (length, sequence) = header(bytes)?;
    let payload = bytes.get(HEADER..HEADER + length)?;
    Some((sequence, payload, HEADER + length))
}

/// Appends one packet. The payload is what this proxy says itself, and short.
pub fn put_packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    assert!(payload.len() < FULL, "own packets need no continuation");
    let length = (payload.len() as u32).to_le_bytes();
    out.extend_from_slice(&[length[0], length[1], length[2], sequence]);
    out.extend_from_slice(payload);
}

/// Appends a command of the proxy's own.
pub fn put_command(out: &mut Vec<u8>, command: u8, argument: &[u8]) {
    let mut payload = Vec::with_capacity(argument.len() + 1);
    payload.push(command);
    payload.extend_from_slice(argument);
    put_packet(out, 0, &payload);
}
