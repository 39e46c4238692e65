//! What a runtime may do when: AWS's state machine of the Runtime API (`lambda-platform.md` §1.5) as a pure table.
//!
//! SnapStart's restore states are absent: danki has no SnapStart.

/// Where a runtime stands with the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its process was started and has not called yet.
    Started,
    /// It reported that its init failed. Nothing is allowed any more.
    InitError,
    /// It waits for an event.
    Ready,
    /// It has an event.
    Running,
    /// It is posting a response.
    InvocationResponse,
    /// It is posting an error.
    InvocationErrorResponse,
    /// Its answer was taken; it has not asked for the next event yet.
    ResponseSent,
}

impl State {
    /// Every state.
    pub const ALL: [State; 7] = [
        State::Started,
        State::InitError,
        State::Ready,
        State::Running,
        State::InvocationResponse,
        State::InvocationErrorResponse,
        State::ResponseSent,
    ];

    /// The name that AWS prints in an `InvalidStateTransition`.
    pub fn name(self) -> &'static str {
        match self {
            State::Started => "Started",
            State::InitError => "InitError",
            State::Ready => "Ready",
            State::Running => "Running",
            State::InvocationResponse => "InvocationResponse",
            State::InvocationErrorResponse => "InvocationErrorResponse",
            State::ResponseSent => "RuntimeResponseSentState",
        }
    }

    /// The state after `step`.
    pub fn after(self, step: Step) -> Result<State, Forbidden> {
        use State::*;
        Ok(match (self, step) {
            // A runtime that asks again before it answered gets the same event again: it stays where it is.
            (Started | Ready | ResponseSent, Step::Next) => Ready,
            (Running, Step::Next) => Running,
            (Ready, Step::Deliver) => Running,
            (Running, Step::Response) => InvocationResponse,
            (Running, Step::Error) => InvocationErrorResponse,
            (InvocationResponse | InvocationErrorResponse, Step::Sent) => ResponseSent,
            (Started, Step::InitError) => InitError,
            _ => return Err(Forbidden { from: self, to: step.target() }),
        })
    }
}

/// What the runtime asks for, or what danki does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `GET /runtime/invocation/next`
    Next,
    /// An event is handed to the waiting runtime.
    Deliver,
    /// `POST …/response` begins.
    Response,
    /// `POST …/error` begins.
    Error,
    /// The post was read, or its connection died.
    Sent,
    /// `POST /runtime/init/error`
    InitError,
}

impl Step {
    /// Every step.
    pub const ALL: [Step; 6] =
        [Step::Next, Step::Deliver, Step::Response, Step::Error, Step::Sent, Step::InitError];

    /// The state that a runtime taking this step is after.
    fn target(self) -> State {
        match self {
            Step::Next => State::Ready,
            Step::Deliver => State::Running,
            Step::Response => State::InvocationResponse,
            Step::Error => State::InvocationErrorResponse,
            Step::Sent => State::ResponseSent,
            Step::InitError => State::InitError,
        }
    }
}

/// A step that is not allowed. Its text is AWS's, capitals and all: clients print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "State transition from {} to {} failed for runtime. Error: State transition is not allowed",
    from.name(),
    to.name()
)]
pub struct Forbidden {
    /// Where the runtime stands.
    pub from: State,
    /// What it was after.
    pub to: State,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows: states in the order of `State::ALL`; columns: steps in the order of `Step::ALL`; `-` is forbidden.
    const TABLE: [&str; 7] = [
        //        next  deliver resp  error sent  init
        "Started  Ready -       -     -     -     InitError",
        "InitErr  -     -       -     -     -     -",
        "Ready    Ready Running -     -     -     -",
        "Running  Running -     InvocationResponse InvocationErrorResponse - -",
        "InvResp  -     -       -     -     RuntimeResponseSentState -",
        "InvErr   -     -       -     -     RuntimeResponseSentState -",
        "Sent     Ready -       -     -     -     -",
    ];

    #[test]
    fn the_table_is_aws_s() {
        for (state, row) in State::ALL.into_iter().zip(TABLE) {
            for (step, expect) in Step::ALL.into_iter().zip(row.split_whitespace().skip(1)) {
                let got = state.after(step).map_or("-", State::name);
                assert_eq!(got, expect, "{state:?} {step:?}");
            }
        }
    }

    #[test]
    fn a_second_post_is_refused_in_aws_s_words() {
        let e = State::ResponseSent.after(Step::Response).expect_err("second post");
        assert_eq!(
            e.to_string(),
            "State transition from RuntimeResponseSentState to InvocationResponse failed for runtime. \
             Error: State transition is not allowed"
        );
    }

    fn step() -> impl Strategy<Value = Step> {
        prop::sample::select(Step::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn whatever_happens_posts_never_outnumber_events(steps in prop::collection::vec(step(), 0..200)) {
            let (mut state, mut delivered, mut posted) = (State::Started, 0, 0);
            for step in steps {
                let Ok(next) = state.after(step) else { continue };
                delivered += u32::from(step == Step::Deliver);
                posted += u32::from(matches!(step, Step::Response | Step::Error));
                state = next;
                prop_assert!(posted <= delivered && delivered <= posted + 1);
                prop_assert_eq!(delivered > posted, state == State::Running);
            }
        }

        #[test]
        fn a_failed_init_is_final(steps in prop::collection::vec(step(), 0..50)) {
            let dead = State::Started.after(Step::InitError).expect("allowed");
            for step in steps {
                prop_assert!(dead.after(step).is_err());
            }
        }
    }
}
