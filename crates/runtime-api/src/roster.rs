//! The extensions of one env, as the API knows them. Pure.

use crate::event::Invoke;
use crate::extension_words::{ExtensionRefusal, Register};
use crate::standing::Standing;
use bytes::Bytes;
use danki_model::RequestId;
use danki_model::crew::{EXTENSIONS_MAX, ExtensionId, ExtensionKind, Registration};
use danki_model::shutdown::ShutdownReason;
use serde::Serialize;

/// What `register` answers with.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionFacts {
    /// Function name.
    pub function_name: String,
    /// `$LATEST` or a number.
    pub function_version: String,
    /// Handler.
    pub handler: String,
    /// Told only to those that accept it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Roster {
    externals: Vec<String>,
    members: Vec<Member>,
    /// Of all process generations, so that identifiers are never used again.
    numbered: u32,
    seed: u64,
    registration: bool,
    subscription: bool,
}

#[derive(Debug)]
struct Member {
    registration: Registration,
    name: String,
    identifier: String,
    standing: Standing,
    queued: Option<ExtensionEvent>,
}

/// An event that waits to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionEvent {
    /// `Lambda-Extension-Event-Identifier`
    pub identifier: String,
    /// JSON.
    pub body: Bytes,
}

/// One that registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// For `Lambda-Extension-Identifier`.
    pub identifier: String,
    /// For the env's lifecycle.
    pub registration: Registration,
}

impl Roster {
    /// Nobody has registered; these names are external.
    pub fn new(externals: Vec<String>, seed: u64) -> Roster {
        Roster { externals, members: Vec::new(), numbered: 0, seed, registration: true, subscription: true }
    }

    /// The processes were killed.
    pub fn reset(&mut self) {
        self.members.clear();
        (self.registration, self.subscription) = (true, true);
    }

    /// The runtime asked for its first event: no extension may register any more.
    pub fn close_registration(&mut self) {
        self.registration = false;
    }

    /// Init is over: nobody may subscribe to telemetry any more.
    pub fn close_subscription(&mut self) {
        self.subscription = false;
    }

    /// Whether telemetry may still be subscribed to.
    pub fn may_subscribe(&self) -> bool {
        self.subscription
    }

    /// `POST /extension/register`
    pub fn register(&mut self, name: &str, register: Register) -> Result<Registered, ExtensionRefusal> {
        let external = self.externals.iter().any(|external| external == name);
        let kind = if external { ExtensionKind::External } else { ExtensionKind::Internal };
        register.check(kind)?;
        if let Some(member) = self.members.iter().find(|member| member.name == name) {
            return Err(match kind {
                ExtensionKind::External => {
                    ExtensionRefusal::state(member.standing, Standing::Registered, name)
                }
                ExtensionKind::Internal => ExtensionRefusal::NameTaken,
            });
        }
        if kind == ExtensionKind::Internal {
            if !self.registration {
                return Err(ExtensionRefusal::RegistrationClosed);
            }
            let internal = self.members.iter().filter(|m| m.registration.kind == ExtensionKind::Internal);
            if internal.count() + self.externals.len() >= EXTENSIONS_MAX {
                return Err(ExtensionRefusal::TooMany);
            }
        }
        let id = ExtensionId(self.numbered);
        self.numbered += 1;
        let registration =
            Registration { id, kind, invoke: register.invoke(), shutdown: register.shutdown() };
        let identifier = uuid(self.seed, u64::from(id.0));
        self.members.push(Member {
            registration,
            name: name.to_owned(),
            identifier: identifier.clone(),
            standing: Standing::Registered,
            queued: None,
        });
        Ok(Registered { identifier, registration })
    }

    /// `GET /extension/event/next` begins to wait.
    pub fn ask(&mut self, identifier: &str) -> Result<ExtensionId, ExtensionRefusal> {
        self.go(identifier, Standing::Ready)
    }

    /// The event for one that waits.
    pub fn take(&mut self, identifier: &str) -> Result<Option<ExtensionEvent>, ExtensionRefusal> {
        let member = self.member(identifier)?;
        let event = member.queued.take();
        if event.is_some() {
            member.standing = Standing::Running;
        }
        Ok(event)
    }

    /// `POST /extension/init/error` and `/extension/exit/error`
    pub fn error(&mut self, identifier: &str, to: Standing) -> Result<ExtensionId, ExtensionRefusal> {
        self.go(identifier, to)
    }

    /// The name and number behind an identifier.
    pub fn name(&mut self, identifier: &str) -> Result<(ExtensionId, String), ExtensionRefusal> {
        let member = self.member(identifier)?;
        Ok((member.registration.id, member.name.clone()))
    }

    /// An invocation begins: its event for all that want it.
    pub fn invoke(&mut self, invoke: &Invoke) {
        if self.members.iter().all(|member| !member.registration.invoke) {
            return;
        }
        let body = invoke_event(invoke);
        self.queue(|member| member.registration.invoke, &body);
    }

    /// The env ends: the event for these.
    pub fn shutdown(&mut self, reason: ShutdownReason, deadline_epoch_ms: u64, to: &[ExtensionId]) {
        let reason = reason.as_str();
        let body = format!(
            "{{\"eventType\":\"SHUTDOWN\",\"shutdownReason\":\"{reason}\",\"deadlineMs\":{deadline_epoch_ms}}}"
        );
        self.queue(|member| to.contains(&member.registration.id), &Bytes::from(body));
    }

    fn queue(&mut self, wanted: impl Fn(&Member) -> bool, body: &Bytes) {
        for member in self.members.iter_mut().filter(|member| wanted(member)) {
            // The event's identifier: a number of its own beside the extension's.
            let n = (u64::from(member.registration.id.0) + 1) << 32 | u64::from(self.numbered);
            self.numbered += 1;
            member.queued = Some(ExtensionEvent { identifier: uuid(self.seed, n), body: body.clone() });
        }
    }

    fn go(&mut self, identifier: &str, to: Standing) -> Result<ExtensionId, ExtensionRefusal> {
        let member = self.member(identifier)?;
        if !member.standing.allows(to) {
            return Err(ExtensionRefusal::state(member.standing, to, identifier));
        }
        member.standing = to;
        Ok(member.registration.id)
    }

    fn member(&mut self, identifier: &str) -> Result<&mut Member, ExtensionRefusal> {
        self.members
            .iter_mut()
            .find(|member| member.identifier == identifier)
            .ok_or_else(|| ExtensionRefusal::Unknown(identifier.to_owned()))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvokeEvent<'a> {
    event_type: &'static str,
    deadline_ms: u64,
    request_id: &'a str,
    invoked_function_arn: &'a str,
    tracing: Tracing<'a>,
}

#[derive(Serialize)]
struct Tracing<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    value: &'a str,
}

fn invoke_event(invoke: &Invoke) -> Bytes {
    let event = InvokeEvent {
        event_type: "INVOKE",
        deadline_ms: invoke.deadline_epoch_ms,
        request_id: &invoke.request_id.0,
        invoked_function_arn: &invoke.function_arn,
        tracing: Tracing { kind: "X-Amzn-Trace-Id", value: invoke.trace_id.as_deref().unwrap_or_default() },
    };
    serde_json::to_vec(&event).expect("strings and numbers are JSON").into()
}

/// A UUID of seed and number; its bits need to differ, not to be secret.
fn uuid(seed: u64, n: u64) -> String {
    // splitmix64, twice.
    let mix = |x: u64| {
        let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let high = mix(seed ^ mix(n));
    RequestId::from_bits(u128::from(high) << 64 | u128::from(mix(high))).0
}
