//! Statements of the binary protocol: the proxy gives numbers of its own, and each backend has its own.

use super::command;
use crate::Cursor;

/// Where the number stands in COM_STMT_* and in the answer to COM_STMT_PREPARE, after the first byte.
const AT: usize = 1;

/// The statement's number in a command's payload, or in the answer to COM_STMT_PREPARE.
pub fn statement_id(payload: &[u8]) -> Option<u32> {
    let mut cursor = Cursor::new(payload.get(AT..)?);
    cursor.u32_le()
}

/// Puts another number into a payload that has one. None if the payload is too short for one.
pub fn with_statement_id(payload: &mut [u8], id: u32) -> Option<()> {
    payload.get_mut(AT..AT + 4)?.copy_from_slice(&id.to_le_bytes());
    Some(())
}

/// The cursor flags of COM_STMT_EXECUTE.
pub fn execute_flags(payload: &[u8]) -> Option<u8> {
    payload.get(5).copied()
}

/// COM_STMT_EXECUTE with its parameters' types: a client sends them once, and the backend that it meets next has not seen them.
/// `types` is what was sent before, and is replaced if this payload has its own. None if the payload is malformed or no types are known.
pub fn with_types(payload: &[u8], parameters: u16, types: &mut Vec<u8>) -> Option<Vec<u8>> {
    if payload.first() != Some(&command::STMT_EXECUTE) {
        return None;
    }
    if parameters == 0 {
        return Some(payload.to_vec());
    }
    let flag_at = 10 + usize::from(parameters).div_ceil(8);
    let length = 2 * usize::from(parameters);
    let values_at = flag_at + 1;
    if *payload.get(flag_at)? == 1 {
        types.clear();
        types.extend_from_slice(payload.get(values_at..values_at + length)?);
        return Some(payload.to_vec());
    }
    if types.len() != length {
        return None;
    }
    let mut out = Vec::with_capacity(payload.len() + length);
    out.extend_from_slice(&payload[..flag_at]);
    out.push(1);
    out.extend_from_slice(types);
    out.extend_from_slice(&payload[values_at..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_put_back() {
        // One parameter: number 9, no flags, one iteration, nothing NULL, types bound, LONGLONG, a value.
        let first = [0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 42, 0, 0, 0, 0, 0, 0, 0];
        let later = [0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0];
        let mut types = Vec::new();
        assert_eq!(with_types(&later, 1, &mut types), None);
        assert_eq!(with_types(&first, 1, &mut types).as_deref(), Some(&first[..]));
        assert_eq!(types, [8, 0]);
        assert_eq!(with_types(&later, 1, &mut types).as_deref(), Some(&first[..]));
        assert_eq!(with_types(&first[..11], 1, &mut types), None);
    }

    #[test]
    fn numbers_are_replaced() {
        let mut payload = vec![0x17, 1, 0, 0, 0, 4];
        with_statement_id(&mut payload, 0x0102_0304).expect("long enough");
        assert_eq!(statement_id(&payload), Some(0x0102_0304));
        assert_eq!(execute_flags(&payload), Some(4));
        assert_eq!(statement_id(&[0x17, 1]), None);
        assert_eq!(with_statement_id(&mut [0, 1], 5), None);
    }
}
