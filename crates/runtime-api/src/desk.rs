//! What lies on the table between host and runtime: the state, the event that waits and the attempt under way. Pure.

use crate::answer::Refusal;
use crate::event::{Attempt, Invoke};
use crate::roster::Roster;
use crate::state::{State, Step};
use danki_model::RequestId;
use std::sync::Arc;

/// Which runtime process a connection belongs to: counts resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Generation(u64);

/// See the module.
#[derive(Debug)]
pub struct Desk {
    state: State,
    generation: Generation,
    attempts: u64,
    queued: Option<Invoke>,
    current: Option<Arc<Attempt>>,
    roster: Roster,
}

impl Desk {
    /// Of a runtime that was just started, or whose extensions were.
    pub fn new(roster: Roster) -> Desk {
        Desk {
            state: State::Started,
            generation: Generation::default(),
            attempts: 0,
            queued: None,
            current: None,
            roster,
        }
    }

    /// The current runtime process.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The process was killed: its connections count no more, a fresh one starts over. A waiting event is dropped.
    pub fn reset(&mut self) {
        self.generation = Generation(self.generation.0 + 1);
        (self.state, self.queued, self.current) = (State::Started, None, None);
        self.roster.reset();
    }

    /// Puts an event down for the next `/next`; refused with the id of the one that is in the way.
    pub fn deliver(&mut self, invoke: Invoke) -> Result<(), Option<RequestId>> {
        if let Some(queued) = &self.queued {
            return Err(Some(queued.request_id.clone()));
        }
        match self.state {
            State::Started | State::Ready | State::ResponseSent => {
                self.roster.invoke(&invoke);
                self.queued = Some(invoke);
            }
            _ => return Err(self.current.as_ref().map(|a| a.invoke.request_id.clone())),
        }
        Ok(())
    }

    /// The extensions, for a request of one.
    pub fn roster(&mut self, by: Generation) -> Result<&mut Roster, Refusal> {
        self.check(by)?;
        Ok(&mut self.roster)
    }

    /// The extensions, for the host.
    pub fn crew(&mut self) -> &mut Roster {
        &mut self.roster
    }

    /// Whether the caller of the current invocation takes a streamed response as it comes.
    pub fn streams(&self) -> bool {
        self.current.as_ref().is_some_and(|attempt| attempt.invoke.stream)
    }

    /// `/next` arrived. True: the runtime begins to wait just now (it was not waiting already).
    pub fn ask(&mut self, by: Generation) -> Result<bool, Refusal> {
        self.check(by)?;
        let before = self.state;
        self.state = before.after(Step::Next)?;
        self.roster.close_registration();
        Ok(self.state == State::Ready && before != State::Ready)
    }

    /// The event for a waiting `/next`, if there is one; the same again while it is not answered.
    pub fn take(&mut self, by: Generation) -> Result<Option<Arc<Attempt>>, Refusal> {
        self.check(by)?;
        if self.state == State::Running {
            return Ok(self.current.clone());
        }
        let Some(invoke) = self.queued.take() else { return Ok(None) };
        self.state = self.state.after(Step::Deliver)?;
        self.attempts += 1;
        let invocation_id = format!("{}-{}", invoke.request_id, self.attempts);
        self.current = Some(Arc::new(Attempt { invoke, invocation_id }));
        Ok(self.current.clone())
    }

    /// A post begins. `invocation_id` is what newer runtimes echo. As on AWS, the id is checked before the state.
    pub fn post(
        &mut self,
        by: Generation,
        id: &str,
        invocation_id: Option<&[u8]>,
        step: Step,
    ) -> Result<RequestId, Refusal> {
        self.check(by)?;
        let current = self.current.as_ref();
        if invocation_id.is_some_and(|echo| current.is_none_or(|a| a.invocation_id.as_bytes() != echo)) {
            return Err(Refusal::Gone);
        }
        let Some(current) = current.filter(|a| a.invoke.request_id.0 == id) else {
            return Err(Refusal::InvalidRequestId);
        };
        self.state = self.state.after(step)?;
        Ok(current.invoke.request_id.clone())
    }

    /// The post was read, or broke off.
    pub fn sent(&mut self, by: Generation) -> Result<(), Refusal> {
        self.check(by)?;
        self.state = self.state.after(Step::Sent)?;
        Ok(())
    }

    /// `/init/error`
    pub fn init_error(&mut self, by: Generation) -> Result<(), Refusal> {
        self.check(by)?;
        self.state = self.state.after(Step::InitError)?;
        Ok(())
    }

    fn check(&self, by: Generation) -> Result<(), Refusal> {
        if by == self.generation { Ok(()) } else { Err(Refusal::Stale) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn invoke(id: &str) -> Invoke {
        Invoke {
            request_id: RequestId(id.to_owned()),
            deadline_epoch_ms: 1,
            function_arn: String::new(),
            trace_id: None,
            client_context: None,
            cognito_identity: None,
            payload: Bytes::new(),
            stream: false,
        }
    }

    fn running(id: &str) -> (Desk, Generation, Arc<Attempt>) {
        let mut desk = Desk::new(Roster::new(Vec::new(), 1));
        let g = desk.generation();
        desk.deliver(invoke(id)).expect("free");
        assert!(desk.ask(g).expect("allowed"));
        let attempt = desk.take(g).expect("allowed").expect("queued");
        (desk, g, attempt)
    }

    #[test]
    fn an_unanswered_event_is_handed_out_again_and_again() {
        let (mut desk, g, first) = running("a");
        for _ in 0..3 {
            assert!(!desk.ask(g).expect("allowed"));
            assert!(Arc::ptr_eq(&first, &desk.take(g).expect("allowed").expect("same")));
        }
    }

    #[test]
    fn the_id_is_checked_before_the_state() {
        let (mut desk, g, _) = running("a");
        let post = |desk: &mut Desk, id| desk.post(g, id, None, Step::Response).map(|id| id.0);
        assert_eq!(post(&mut desk, "b"), Err(Refusal::InvalidRequestId));
        assert_eq!(post(&mut desk, "a"), Ok("a".to_owned()));
        assert!(matches!(post(&mut desk, "a"), Err(Refusal::Forbidden(_))));
        assert_eq!(post(&mut desk, "b"), Err(Refusal::InvalidRequestId));
        desk.sent(g).expect("posting");
        assert!(
            matches!(post(&mut desk, "a"), Err(Refusal::Forbidden(_))),
            "the id stays valid until the next event"
        );
    }

    #[test]
    fn one_event_at_a_time() {
        let (mut desk, g, _) = running("a");
        assert_eq!(desk.deliver(invoke("b")), Err(Some(RequestId("a".to_owned()))));
        desk.post(g, "a", None, Step::Error).expect("running");
        assert!(desk.deliver(invoke("b")).is_err());
        desk.sent(g).expect("posting");
        desk.deliver(invoke("b")).expect("free");
        assert_eq!(desk.deliver(invoke("c")), Err(Some(RequestId("b".to_owned()))));
        assert!(desk.ask(g).expect("allowed"));
        assert!(!desk.ask(g).expect("reconnected"), "one wait, one report");
        assert_eq!(desk.take(g).expect("allowed").expect("queued").invoke.request_id.0, "b");
    }

    #[test]
    fn a_late_post_of_an_earlier_attempt_is_gone() {
        let (mut desk, _, first) = running("a");
        desk.reset();
        let g = desk.generation();
        desk.deliver(invoke("a")).expect("free");
        desk.ask(g).expect("allowed");
        let second = desk.take(g).expect("allowed").expect("queued");
        assert_ne!(first.invocation_id, second.invocation_id);
        let mut post = |attempt: &Attempt| {
            desk.post(g, "a", Some(attempt.invocation_id.as_bytes()), Step::Response).map(|id| id.0)
        };
        assert_eq!(post(&first), Err(Refusal::Gone));
        assert_eq!(post(&second), Ok("a".to_owned()));
    }

    #[test]
    fn a_killed_process_has_no_say() {
        let (mut desk, old, _) = running("a");
        desk.reset();
        assert_eq!(desk.ask(old), Err(Refusal::Stale));
        assert_eq!(desk.post(old, "a", None, Step::Response), Err(Refusal::Stale));
        assert_eq!(desk.sent(old), Err(Refusal::Stale));
        assert_eq!(desk.init_error(old), Err(Refusal::Stale));
        let new = desk.generation();
        assert_eq!(desk.post(new, "a", None, Step::Response), Err(Refusal::InvalidRequestId));
        desk.init_error(new).expect("a fresh process starts over");
    }
}
