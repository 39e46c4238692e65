//! The extensions of one env: who registered for what, and who waits for the next event (`lambda-platform.md` §2).

/// Extensions of an env at most, internal and external together (AWS docs and source).
pub const EXTENSIONS_MAX: usize = 10;

/// An extension of an env; numbered anew after each reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionId(pub u32);

/// Where an extension runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtensionKind {
    /// A process of its own, from a file of `/opt/extensions`.
    External,
    /// Inside the runtime's process.
    Internal,
}

/// What an extension registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Which one.
    pub id: ExtensionId,
    /// Where it runs.
    pub kind: ExtensionKind,
    /// It gets INVOKE events.
    pub invoke: bool,
    /// It gets the SHUTDOWN event; external ones only.
    pub shutdown: bool,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crew {
    expected: usize,
    members: Vec<(Registration, bool)>,
}

impl Crew {
    /// Of an env with so many files in `/opt/extensions`.
    pub fn expecting(externals: usize) -> Crew {
        Crew { expected: externals, members: Vec::new() }
    }

    /// External extensions that the env starts.
    pub fn externals(&self) -> usize {
        self.expected
    }

    /// Who has registered.
    pub fn members(&self) -> impl Iterator<Item = Registration> {
        self.members.iter().map(|(member, _)| *member)
    }

    /// No process of an extension runs and none has registered.
    pub fn is_empty(&self) -> bool {
        self.expected == 0 && self.members.is_empty()
    }

    pub(crate) fn register(&mut self, registration: Registration) {
        if self.members().all(|member| member.id != registration.id) {
            self.members.push((registration, false));
        }
    }

    /// Every external extension has registered.
    pub(crate) fn all_registered(&self) -> bool {
        self.members().filter(|member| member.kind == ExtensionKind::External).count() >= self.expected
    }

    /// It asked for its next event.
    pub(crate) fn asked(&mut self, id: ExtensionId) {
        self.members.iter_mut().filter(|(member, _)| member.id == id).for_each(|(_, waits)| *waits = true);
    }

    /// Everybody waits for an event.
    pub(crate) fn all_wait(&self) -> bool {
        self.all_registered() && self.members.iter().all(|(_, waits)| *waits)
    }

    /// An event goes out to those who want it.
    pub(crate) fn invoke(&mut self) {
        self.members.iter_mut().filter(|(member, _)| member.invoke).for_each(|(_, waits)| *waits = false);
    }

    /// Their processes are gone.
    pub(crate) fn reset(&mut self) {
        self.members.clear();
    }
}
