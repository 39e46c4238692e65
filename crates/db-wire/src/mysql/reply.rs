//! Where a reply ends. The tracker reads the head of each packet from the server and says which bytes pass as they are and which
//! packets need a look. It knows nothing of rows, and holds no bytes.

use super::{FULL, HEADER, OkPacket, caps, header, status};
use crate::{Cursor, Error};

/// Packets that are looked at are short; a longer one is not what it claims to be.
const LOOKED_AT: usize = 1 << 20;

/// What a command is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// OK, ERR, a file request, or rows; perhaps several times (COM_QUERY, COM_STMT_EXECUTE).
    Results,
    /// Rows without definitions (COM_STMT_FETCH, COM_FIELD_LIST).
    Rows,
    /// The answer to COM_STMT_PREPARE.
    Prepared,
    /// One OK, EOF or ERR.
    Simple,
    /// One packet of text (COM_STATISTICS).
    Text,
}

/// What comes next in the server's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// So many bytes pass unchanged.
    Pass(usize),
    /// A whole OK packet (also the one that ends rows): its payload.
    Ok(&'a [u8]),
    /// A whole EOF packet: its payload.
    Eof(&'a [u8]),
    /// A whole ERR packet: its payload.
    Err(&'a [u8]),
    /// The server wants a file from the client: its payload.
    File(&'a [u8]),
    /// A statement is prepared: its payload.
    Prepared(&'a [u8]),
    /// More bytes are needed.
    More,
    /// The reply has ended; what follows is not part of it.
    End,
}

impl Part<'_> {
    /// How many bytes of the input it covers.
    pub fn length(&self) -> usize {
        match self {
            Self::Pass(length) => *length,
            Self::Ok(p) | Self::Eof(p) | Self::Err(p) | Self::File(p) | Self::Prepared(p) => HEADER + p.len(),
            Self::More | Self::End => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    First,
    Columns(u64),
    ColumnsEnd,
    Rows,
    PrepareFirst,
    Definitions { left: u16, then: u16 },
    DefinitionsEnd { then: u16 },
    Simple,
    Text,
    Done,
}

/// The state of one reply.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    state: State,
    /// Bytes of the present packet that pass unseen.
    skip: usize,
    /// The next packet continues the one before.
    continued: bool,
    capabilities: u32,
    /// Status bits of the last OK or EOF.
    pub status: u16,
    /// Rows passed in the last result set.
    pub rows: u64,
}

impl Reply {
    /// A reply that begins now, on a connection with these capabilities.
    pub fn new(awaits: Awaits, capabilities: u32) -> Self {
        let state = match awaits {
            Awaits::Results => State::First,
            Awaits::Rows => State::Rows,
            Awaits::Prepared => State::PrepareFirst,
            Awaits::Simple => State::Simple,
            Awaits::Text => State::Text,
        };
        Self { state, skip: 0, continued: false, capabilities, status: 0, rows: 0 }
    }

    /// Whether the reply has ended.
    pub fn ended(&self) -> bool {
        self.state == State::Done && self.skip == 0 && !self.continued
    }

    /// The next part of `data`, which begins where the part before ended.
    pub fn next<'a>(&mut self, data: &'a [u8]) -> Result<Part<'a>, Error> {
        let mut at = 0;
        loop {
            let passed = self.skip.min(data.len() - at);
            at += passed;
            self.skip -= passed;
            let rest = &data[at..];
            let so_far = |other| if at > 0 { Part::Pass(at) } else { other };
            if self.skip > 0 {
                return Ok(so_far(Part::More));
            }
            if self.ended() {
                return Ok(so_far(Part::End));
            }
            let Some((length, _)) = header(rest) else { return Ok(so_far(Part::More)) };
            if self.continued {
                self.pass(length);
                continue;
            }
            let Some(&first) = rest.get(HEADER).or((length == 0).then_some(&0)) else {
                return Ok(so_far(Part::More));
            };
            if !self.looks_at(first, length) {
                self.pass(length);
                self.after_passing();
                continue;
            }
            if length > LOOKED_AT {
                return Err(Error::TooLong("a packet of the server"));
            }
            if at > 0 {
                return Ok(Part::Pass(at));
            }
            let Some(payload) = rest.get(HEADER..HEADER + length) else { return Ok(Part::More) };
            match self.look(first, payload)? {
                Some(part) => return Ok(part),
                None => self.pass(length),
            }
        }
    }

    fn pass(&mut self, length: usize) {
        self.skip = HEADER + length;
        self.continued = length == FULL;
    }

    /// Whether a packet must be there as a whole before anything is decided.
    fn looks_at(&self, first: u8, length: usize) -> bool {
        match self.state {
            State::First
            | State::PrepareFirst
            | State::Simple
            | State::ColumnsEnd
            | State::DefinitionsEnd { .. } => true,
            State::Rows => first == 0xFF || (first == 0xFE && length < self.longest_end()),
            State::Columns(_) | State::Definitions { .. } => first == 0xFF,
            State::Text | State::Done => false,
        }
    }

    /// A row may begin with 0xFE too, if its first column is huge.
    fn longest_end(&self) -> usize {
        if self.deprecate_eof() { FULL } else { 9 }
    }

    fn deprecate_eof(&self) -> bool {
        self.capabilities & caps::DEPRECATE_EOF != 0
    }

    fn after_passing(&mut self) {
        self.state = match self.state {
            State::Columns(left) if left > 1 => State::Columns(left - 1),
            State::Columns(_) if self.deprecate_eof() => State::Rows,
            State::Columns(_) => State::ColumnsEnd,
            State::Definitions { left, then } if left > 1 => State::Definitions { left: left - 1, then },
            State::Definitions { then, .. } if self.deprecate_eof() => Self::definitions(then, 0),
            State::Definitions { then, .. } => State::DefinitionsEnd { then },
            State::Text => State::Done,
            State::Rows => {
                self.rows += 1;
                State::Rows
            }
            other => other,
        }
    }

    fn definitions(count: u16, then: u16) -> State {
        match (count, then) {
            (0, 0) => State::Done,
            (0, then) => State::Definitions { left: then, then: 0 },
            (left, then) => State::Definitions { left, then },
        }
    }

    /// A whole packet. None: it passes as it is.
    fn look<'a>(&mut self, first: u8, payload: &'a [u8]) -> Result<Option<Part<'a>>, Error> {
        if first == 0xFF {
            self.state = State::Done;
            return Ok(Some(Part::Err(payload)));
        }
        match self.state {
            State::First if first == 0 && !payload.is_empty() => self.ok(payload).map(Some),
            State::First if first == 0xFB => Ok(Some(Part::File(payload))),
            State::First => {
                let malformed = Error::Malformed("the head of a result set");
                let columns = Cursor::new(payload).lenenc().filter(|&count| count > 0).ok_or(malformed)?;
                self.rows = 0;
                self.state = State::Columns(columns);
                Ok(None)
            }
            State::PrepareFirst => self.prepared(payload).map(Some),
            State::Rows if self.deprecate_eof() => self.ok(payload).map(Some),
            State::Simple if first == 0 => self.ok(payload).map(Some),
            State::Simple | State::ColumnsEnd | State::DefinitionsEnd { .. } | State::Rows => {
                self.eof(payload).map(Some)
            }
            State::Columns(_) | State::Definitions { .. } | State::Text | State::Done => {
                Err(Error::Malformed("a reply"))
            }
        }
    }

    fn prepared<'a>(&mut self, payload: &'a [u8]) -> Result<Part<'a>, Error> {
        let malformed = Error::Malformed("the answer to COM_STMT_PREPARE");
        let mut cursor = Cursor::new(payload);
        cursor.u8().filter(|&first| first == 0).ok_or(malformed)?;
        cursor.take(4).ok_or(malformed)?;
        let columns = cursor.u16_le().ok_or(malformed)?;
        let parameters = cursor.u16_le().ok_or(malformed)?;
        self.state = Self::definitions(parameters, columns);
        Ok(Part::Prepared(payload))
    }

    fn ok<'a>(&mut self, payload: &'a [u8]) -> Result<Part<'a>, Error> {
        let ok = OkPacket::parse(payload, self.capabilities).ok_or(Error::Malformed("an OK packet"))?;
        self.end(ok.status);
        Ok(Part::Ok(payload))
    }

    fn eof<'a>(&mut self, payload: &'a [u8]) -> Result<Part<'a>, Error> {
        let malformed = Error::Malformed("an EOF packet");
        let mut cursor = Cursor::new(payload);
        cursor.u8().filter(|&first| first == 0xFE).ok_or(malformed)?;
        let bits = match cursor.take(2) {
            Some(_) => cursor.u16_le().ok_or(malformed)?,
            None => self.status,
        };
        match self.state {
            State::ColumnsEnd if bits & status::CURSOR_EXISTS == 0 => {
                self.status = bits;
                self.state = State::Rows;
            }
            State::DefinitionsEnd { then } => self.state = Self::definitions(then, 0),
            _ => self.end(bits),
        }
        Ok(Part::Eof(payload))
    }

    fn end(&mut self, bits: u16) {
        self.status = bits;
        self.state = if bits & status::MORE_RESULTS != 0 { State::First } else { State::Done };
    }
}
