//! What an extension may do when: AWS's state machine of the Extensions API (`lambda-platform.md` §2.2) as a pure table.

/// Where an extension stands with the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its process was started, or, if internal, it is unknown as yet.
    Started,
    /// It has registered.
    Registered,
    /// It waits for an event.
    Ready,
    /// It has an event.
    Running,
    /// It reported that its init failed.
    InitError,
    /// It reported that it must end.
    ExitError,
}

impl Standing {
    /// Every state.
    pub const ALL: [Standing; 6] = [
        Standing::Started,
        Standing::Registered,
        Standing::Ready,
        Standing::Running,
        Standing::InitError,
        Standing::ExitError,
    ];

    /// The name that AWS prints.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Started => "Started",
            Standing::Registered => "Registered",
            Standing::Ready => "Ready",
            Standing::Running => "Running",
            Standing::InitError => "InitError",
            Standing::ExitError => "ExitError",
        }
    }

    /// Whether an extension that stands here may get to `to`. An error may be reported again; the first one counts.
    pub fn allows(self, to: Standing) -> bool {
        use Standing::*;
        matches!(
            (self, to),
            (Started, Registered)
                | (Registered | Running, Ready)
                | (Ready, Running)
                | (Registered | InitError, InitError)
                | (Registered | Ready | Running | ExitError, ExitError)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aws_s() {
        // Columns in the order of `Standing::ALL`.
        let table = ["-+----", "--+-++", "---+-+", "--+--+", "----+-", "-----+"];
        for (from, row) in Standing::ALL.into_iter().zip(table) {
            for (to, expect) in Standing::ALL.into_iter().zip(row.chars()) {
                assert_eq!(from.allows(to), expect == '+', "{from:?} to {to:?}");
            }
        }
    }
}
