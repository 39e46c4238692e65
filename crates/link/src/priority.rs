//! The priority of the link's thread.

pub(crate) fn raise() -> Result<(), std::io::Error> {
    Err(std::io::ErrorKind::Unsupported.into())
}
