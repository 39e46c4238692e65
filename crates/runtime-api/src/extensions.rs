//! Requests of extensions, from head to answer (`lambda-platform.md` §2.2, §2.6).

use crate::answer::{self, Answer, Refusal};
use crate::body;
use crate::desk::Generation;
use crate::event::{ExtensionCall, ExtensionWhat, RuntimeEvent};
use crate::extension_words::{self as words, ExtensionRefusal, Register};
use crate::session::Shared;
use crate::standing::Standing;
use crate::subscription::Subscription;
use danki_model::crew::ExtensionId;
use danki_sys::clock::monotonic_ns;
use hyper::HeaderMap;
use hyper::body::Incoming;

/// Why there is no regular answer.
pub enum Failed {
    /// 403.
    Refused(ExtensionRefusal),
    /// As for a runtime: the process was killed, or its body is no good.
    Broken(Refusal),
}

impl From<ExtensionRefusal> for Failed {
    fn from(refusal: ExtensionRefusal) -> Failed {
        Failed::Refused(refusal)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed::Broken(refusal)
    }
}

/// The answer, whichever way it came about.
pub fn render(result: Result<Answer, Failed>) -> Result<Answer, Refusal> {
    match result {
        Ok(answer) => Ok(answer),
        Err(Failed::Refused(refusal)) => Ok(answer::forbidden(refusal.error_type(), &refusal.to_string())),
        Err(Failed::Broken(refusal)) => Err(refusal),
    }
}

/// `POST /extension/register`
pub async fn register(
    shared: &Shared,
    by: Generation,
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Answer, Failed> {
    let name = text(headers, words::NAME).filter(|name| !name.is_empty());
    let name = name.ok_or(ExtensionRefusal::EmptyName)?;
    let register = Register::parse(&body::read(body).await?.bytes)?;
    let mut facts = shared.function.clone();
    if !accepts(headers, "accountId") {
        facts.account_id = None;
    }
    let room = shared.room().await?;
    let registered = shared.desk().roster(by)?.register(&name, register)?;
    let id = registered.registration.id;
    let what = ExtensionWhat::Registered(registered.registration);
    room.send(call(id, name, what));
    Ok(answer::registered(&registered.identifier, &facts))
}

/// `GET /extension/event/next`: waits without a deadline, like the runtime's.
pub async fn next(shared: &Shared, by: Generation, headers: &HeaderMap) -> Result<Answer, Failed> {
    let identifier = identifier(headers)?;
    let room = shared.room().await?;
    let (id, name) = {
        let mut desk = shared.desk();
        let id = desk.roster(by)?.ask(&identifier)?;
        (id, desk.roster(by)?.name(&identifier)?.1)
    };
    room.send(call(id, name, ExtensionWhat::NextRequested));
    loop {
        let mut changed = std::pin::pin!(shared.changed.notified());
        changed.as_mut().enable();
        let event = shared.desk().roster(by)?.take(&identifier)?;
        if let Some(event) = event {
            return Ok(answer::extension_event(&event));
        }
        changed.await;
    }
}

/// `POST /extension/init/error` and `/extension/exit/error`
pub async fn error(
    shared: &Shared,
    by: Generation,
    headers: &HeaderMap,
    body: &mut Incoming,
    to: Standing,
) -> Result<Answer, Failed> {
    let identifier = identifier(headers)?;
    let error_type = text(headers, words::ERROR_TYPE).filter(|kind| !kind.is_empty());
    let error_type = error_type.ok_or(ExtensionRefusal::MissingHeader)?;
    body::read(body).await?;
    let room = shared.room().await?;
    let (id, name) = {
        let mut desk = shared.desk();
        let id = desk.roster(by)?.error(&identifier, to)?;
        (id, desk.roster(by)?.name(&identifier)?.1)
    };
    let what = match to {
        Standing::InitError => ExtensionWhat::InitError { error_type },
        _ => ExtensionWhat::ExitError { error_type },
    };
    room.send(call(id, name, what));
    Ok(answer::accepted())
}

/// `PUT /telemetry`
pub async fn subscribe(
    shared: &Shared,
    by: Generation,
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Answer, Failed> {
    let identifier = identifier(headers)?;
    let body = body::read(body).await?.bytes;
    let room = shared.room().await?;
    let (id, name) = {
        let mut desk = shared.desk();
        let who = desk.roster(by)?.name(&identifier)?;
        if !desk.roster(by)?.may_subscribe() {
            return Err(ExtensionRefusal::SubscriptionClosed.into());
        }
        who
    };
    match Subscription::parse(&body) {
        Ok(subscription) => {
            room.send(call(id, name, ExtensionWhat::Subscribed(subscription)));
            Ok(answer::ok())
        }
        Err(problem) => Ok(answer::invalid(&problem)),
    }
}

fn call(id: ExtensionId, name: String, what: ExtensionWhat) -> RuntimeEvent {
    RuntimeEvent::Extension(ExtensionCall { at_ns: monotonic_ns(), id, name, what })
}

fn identifier(headers: &HeaderMap) -> Result<String, ExtensionRefusal> {
    let identifier = text(headers, words::IDENTIFIER).filter(|identifier| !identifier.is_empty());
    let identifier = identifier.ok_or(ExtensionRefusal::MissingIdentifier)?;
    match words::is_uuid(&identifier) {
        true => Ok(identifier),
        false => Err(ExtensionRefusal::InvalidIdentifier),
    }
}

fn accepts(headers: &HeaderMap, feature: &str) -> bool {
    text(headers, words::ACCEPT_FEATURE).is_some_and(|list| list.split(',').any(|f| f.trim() == feature))
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
