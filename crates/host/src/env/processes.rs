//! The processes of an env: the runtime and the external extensions. Starting them, hearing of what they do and of their exits, ending them.

use super::Env;
use crate::log::Capture;
use crate::{Error, plan};
use danki_model::crew::ExtensionId;
use danki_model::lifecycle::{ExtensionFault, Input};
use danki_model::shutdown::{Shutdown, ShutdownFact, ShutdownOrder, ShutdownReason};
use danki_model::telemetry::Platform;
use danki_record::EnvWhat;
use danki_runtime_api::{ExtensionCall, ExtensionWhat, RuntimeEvent};
use danki_sys::{ExitStatus, ProcessPlan, SandboxEvent, clock};
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::task::block_in_place;
use tokio::time::{Instant, timeout_at};

/// After a process's exit, what it had posted before is still read for this long.
const AFTER_EXIT: Duration = Duration::from_millis(20);
/// Telemetry that is buffered when the env ends has this long to arrive (the SHUTDOWN event does not wait longer).
const LAST_TELEMETRY: Duration = Duration::from_millis(100);

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// Processes, once started and until they are known dead, and all extensions of this generation.
#[derive(Default)]
pub(super) struct Processes {
    runtime: Option<Process>,
    extensions: Vec<Extension>,
    /// One has exited, but what it posted before is not yet dealt with.
    dead: Option<(Who, ExitStatus)>,
}

struct Process {
    inner_pid: i32,
    capture: Capture,
}

struct Extension {
    name: String,
    id: Option<ExtensionId>,
    /// Absent for an internal one, and for one that is dead.
    process: Option<Process>,
    events: Vec<&'static str>,
    state: &'static str,
    error_type: Option<String>,
}

/// Whose process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Runtime,
    /// By its place in the list.
    Extension(usize),
}

/// What the driver of an env waits for.
pub(crate) enum Happening {
    Runtime(RuntimeEvent),
    Exited(Who, ExitStatus),
    Deadline,
}

enum Happened {
    Event(Option<RuntimeEvent>),
    MaybeExit,
}

impl Env {
    /// Executes the runtime's process.
    pub fn start_runtime(&mut self) -> Result<(), Error> {
        let process: ProcessPlan = plan::process(&self.shared, &self.function, self.id, self.initialization);
        let spawned = block_in_place(|| self.sandbox.spawn(&process))?;
        let capture = Capture::start(self.log.clone(), spawned.stdout, spawned.stderr)?;
        self.shared.sampler.runtime(self.id, spawned.pid);
        // 0 is one that is not known.
        self.runtime_pid = u32::try_from(spawned.pid).ok().filter(|pid| *pid > 0);
        self.processes.runtime = Some(Process { inner_pid: spawned.inner_pid, capture });
        self.happened(EnvWhat::Started);
        Ok(())
    }

    /// Executes all external extensions; false if one of them cannot be.
    pub fn start_extensions(&mut self) -> Result<bool, Error> {
        let variables = plan::process(&self.shared, &self.function, self.id, self.initialization).env;
        for (number, name) in self.extensions.clone().into_iter().enumerate() {
            let mut extension = Extension {
                name,
                id: None,
                process: None,
                events: Vec::new(),
                state: "Started",
                error_type: None,
            };
            let why = match number < danki_model::crew::EXTENSIONS_MAX {
                true => self.start_extension(&mut extension, &variables)?,
                false => Some("TooManyExtensions"),
            };
            if let Some(why) = why {
                (extension.state, extension.error_type) = ("LaunchError", Some(why.to_owned()));
            }
            self.processes.extensions.push(extension);
            if why.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells why it cannot be executed, if so.
    fn start_extension(
        &mut self,
        extension: &mut Extension,
        variables: &[(String, String)],
    ) -> Result<Option<&'static str>, Error> {
        let process = plan::extension(&extension.name, variables);
        match block_in_place(|| self.sandbox.spawn(&process)) {
            Ok(spawned) => {
                let capture = Capture::start_extension(self.log.clone(), spawned.stdout, spawned.stderr)?;
                extension.process = Some(Process { inner_pid: spawned.inner_pid, capture });
                Ok(None)
            }
            Err(danki_sys::Error::Exec { source, .. }) => Ok(Some(match source.kind() {
                io::ErrorKind::PermissionDenied => "PermissionDenied",
                _ => "UnknownError",
            })),
            Err(other) => Err(other.into()),
        }
    }

    /// Keeps what an extension did; what follows from it for the env's life.
    pub fn extension_called(&mut self, call: ExtensionCall) -> Option<Input> {
        let ExtensionCall { id, name, what, .. } = call;
        let extensions = &mut self.processes.extensions;
        let place = match extensions.iter().position(|extension| extension.name == name) {
            Some(place) => place,
            None => {
                let (events, process, error_type) = (Vec::new(), None, None);
                let state = "Started";
                extensions.push(Extension {
                    name: name.clone(),
                    id: None,
                    process,
                    events,
                    state,
                    error_type,
                });
                extensions.len() - 1
            }
        };
        let extension = &mut extensions[place];
        let mut fault = |state, error_type, fault| {
            (extension.state, extension.error_type) = (state, Some(error_type));
            Some(Input::ExtensionFault(fault))
        };
        match what {
            ExtensionWhat::Registered(registration) => {
                let wanted = [("INVOKE", registration.invoke), ("SHUTDOWN", registration.shutdown)];
                extension.events =
                    wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(event, _)| event).collect();
                (extension.id, extension.state) = (Some(id), "Registered");
                Some(Input::ExtensionRegistered(registration))
            }
            ExtensionWhat::NextRequested => {
                extension.state = "Ready";
                Some(Input::ExtensionNext(id))
            }
            ExtensionWhat::InitError { error_type } => {
                fault("InitError", error_type, ExtensionFault::InitError)
            }
            ExtensionWhat::ExitError { error_type } => {
                fault("ExitError", error_type, ExtensionFault::ExitError)
            }
            ExtensionWhat::Subscribed(subscription) => {
                self.log.event(&Platform::TelemetrySubscription { name, types: subscription.types() });
                match self.sandbox.netns() {
                    Ok(netns) => self.log.telemetry().subscribe(subscription, netns),
                    Err(error) => self.shared.caveat(format!("no telemetry for extensions: {error}")),
                }
                None
            }
        }
    }

    /// Init is over: the log says how each extension came out of it.
    pub fn log_extensions(&self) {
        for extension in &self.processes.extensions {
            self.log.event(&Platform::Extension {
                name: extension.name.clone(),
                state: extension.state,
                events: extension.events.clone(),
                error_type: extension.error_type.clone(),
            });
        }
    }

    /// Waits for the next thing that one of the processes does, until the deadline.
    pub async fn happening(&mut self, deadline: Instant) -> Happening {
        self.happening_after(deadline, AFTER_EXIT).await
    }

    async fn happening_after(&mut self, deadline: Instant, after_exit: Duration) -> Happening {
        if let Some((who, status)) = self.processes.dead {
            return match self.events.try_next() {
                Some(event) => Happening::Runtime(event),
                None => self.met_death(who, status).await,
            };
        }
        loop {
            let waited = timeout_at(deadline, async {
                tokio::select! {
                    biased;
                    event = self.events.next() => Happened::Event(event),
                    _ = self.exits.readable() => Happened::MaybeExit,
                }
            });
            match waited.await {
                Err(_) => return Happening::Deadline,
                Ok(Happened::Event(Some(event))) => return Happening::Runtime(event),
                Ok(Happened::Event(None)) => return Happening::Exited(Who::Runtime, ExitStatus::Code(0)),
                Ok(Happened::MaybeExit) => {
                    if let Some(happening) = self.process_exit(after_exit).await {
                        return happening;
                    }
                }
            }
        }
    }

    /// Reads exits; one counts only after what its process posted before.
    async fn process_exit(&mut self, after_exit: Duration) -> Option<Happening> {
        let mut exited = None;
        while let (None, Some(event)) = (exited, self.next_exit()) {
            exited = match event {
                SandboxEvent::Exited { inner_pid, status } => {
                    self.processes.whose(inner_pid).map(|who| (who, status))
                }
                SandboxEvent::PidOneGone => Some((Who::Runtime, ExitStatus::Signal(SIGKILL))),
            };
        }
        let (who, status) = exited?;
        self.processes.dead = exited;
        let posted = timeout_at(Instant::now() + after_exit, self.events.next()).await;
        Some(match posted {
            Ok(Some(event)) => Happening::Runtime(event),
            _ => self.met_death(who, status).await,
        })
    }

    /// The next exit that is there already; tells tokio when there is none.
    fn next_exit(&self) -> Option<SandboxEvent> {
        let read =
            || self.sandbox.try_event().map_err(io::Error::other)?.ok_or(io::ErrorKind::WouldBlock.into());
        self.exits.try_io(Interest::READABLE, read).ok()
    }

    async fn met_death(&mut self, who: Who, status: ExitStatus) -> Happening {
        self.processes.dead = None;
        if let Some(process) = self.processes.take(who) {
            process.capture.flush().await;
        }
        Happening::Exited(who, status)
    }

    /// What the processes wrote so far is in the log.
    pub async fn flush_log(&self) {
        for process in self.processes.all() {
            process.capture.flush().await;
        }
    }

    /// Ends every process of the function in Lambda's order; `/tmp` stays.
    pub async fn reset(&mut self, reason: ShutdownReason) -> Result<(), Error> {
        self.end_processes(reason).await?;
        while let Some(SandboxEvent::Exited { .. }) = self.next_exit() {}
        self.session.reset();
        self.log.telemetry().reset();
        while self.events.try_next().is_some() {}
        self.processes = Processes::default();
        self.happened(EnvWhat::Reset { reason: reason.as_str().to_owned() });
        Ok(())
    }

    /// Performs what [`Shutdown`] decides. The env is not frozen.
    pub(super) async fn end_processes(&mut self, reason: ShutdownReason) -> Result<(), Error> {
        let begun = Instant::now();
        let deadline_epoch_ms = |budget_ms| clock::epoch_ns() / 1_000_000 + budget_ms;
        let running: Vec<ExtensionId> = self.processes.running().collect();
        let mut runs = self.processes.runtime.is_some();
        let (mut shutdown, mut orders) = Shutdown::begin(self.lifecycle.crew(), runs, &running);
        let end_epoch_ms = deadline_epoch_ms(shutdown.budget_ms());
        loop {
            for order in orders {
                match order {
                    ShutdownOrder::TermRuntime => self.signal(Who::Runtime, SIGTERM)?,
                    ShutdownOrder::KillRuntime => self.signal(Who::Runtime, SIGKILL)?,
                    ShutdownOrder::Notify(to) => {
                        self.flush_log().await;
                        self.log.telemetry().flush(LAST_TELEMETRY).await;
                        self.session.shutdown(reason, end_epoch_ms, &to);
                    }
                    ShutdownOrder::KillExtensions(ids) => {
                        for place in self.processes.places(&ids) {
                            self.signal(place, SIGKILL)?;
                        }
                    }
                    ShutdownOrder::KillAll => return self.kill_all().await,
                }
            }
            let Some(deadline_ms) = shutdown.deadline_ms() else { return self.kill_all().await };
            let deadline = begun + Duration::from_millis(deadline_ms);
            orders = match self.happening_after(deadline, Duration::ZERO).await {
                Happening::Deadline => shutdown.step(ShutdownFact::Elapsed),
                // Told again, the env as a whole is gone.
                Happening::Exited(Who::Runtime, _) if !std::mem::take(&mut runs) => {
                    return self.kill_all().await;
                }
                Happening::Exited(Who::Runtime, _) => shutdown.step(ShutdownFact::RuntimeGone),
                Happening::Exited(Who::Extension(place), _) => match self.processes.extensions[place].id {
                    Some(id) => shutdown.step(ShutdownFact::ExtensionGone(id)),
                    None => Vec::new(),
                },
                Happening::Runtime(_) => Vec::new(),
            };
        }
    }

    fn signal(&self, who: Who, signal: i32) -> Result<(), Error> {
        if let Some(process) = self.processes.get(who) {
            block_in_place(|| self.sandbox.signal(process.inner_pid, signal))?;
        }
        Ok(())
    }

    async fn kill_all(&mut self) -> Result<(), Error> {
        block_in_place(|| self.sandbox.kill_processes(SIGKILL))?;
        self.flush_log().await;
        self.processes.dead = None;
        (self.processes.runtime, self.runtime_pid) = (None, None);
        self.processes.extensions.iter_mut().for_each(|extension| extension.process = None);
        Ok(())
    }
}

impl Processes {
    fn whose(&self, inner_pid: i32) -> Option<Who> {
        let is = |process: &Option<Process>| process.as_ref().is_some_and(|p| p.inner_pid == inner_pid);
        match is(&self.runtime) {
            true => Some(Who::Runtime),
            false => self.extensions.iter().position(|e| is(&e.process)).map(Who::Extension),
        }
    }

    fn get(&self, who: Who) -> Option<&Process> {
        match who {
            Who::Runtime => self.runtime.as_ref(),
            Who::Extension(place) => self.extensions[place].process.as_ref(),
        }
    }

    fn take(&mut self, who: Who) -> Option<Process> {
        match who {
            Who::Runtime => self.runtime.take(),
            Who::Extension(place) => self.extensions[place].process.take(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Process> {
        self.runtime.iter().chain(self.extensions.iter().filter_map(|extension| extension.process.as_ref()))
    }

    fn running(&self) -> impl Iterator<Item = ExtensionId> {
        self.extensions.iter().filter(|extension| extension.process.is_some()).filter_map(|e| e.id)
    }

    fn places(&self, ids: &[ExtensionId]) -> Vec<Who> {
        let wanted = |extension: &Extension| extension.id.is_some_and(|id| ids.contains(&id));
        let places = self.extensions.iter().enumerate().filter(|(_, extension)| wanted(extension));
        places.map(|(place, _)| Who::Extension(place)).collect()
    }
}
