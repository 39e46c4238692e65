//! What is wrong with a template, and where.

use std::fmt;

/// A template that cannot be used. Printed as `line 12: Resources.Hello.Properties.Timeout: what; hint: next step`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// Line of the template, from 1; 0 if it is about the whole.
    pub line: usize,
    /// Keys from the root, joined by dots; may be empty.
    pub path: String,
    /// What is wrong, with the value and what is allowed.
    pub what: String,
    /// The next step, if there is one to propose.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn at(line: usize, what: impl Into<String>) -> Error {
        Error { line, path: String::new(), what: what.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Error {
        Error { hint: Some(hint.into()), ..self }
    }

    /// Says where, unless something further down has.
    pub(crate) fn path(mut self, path: &str) -> Error {
        if self.path.is_empty() {
            path.clone_into(&mut self.path);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
