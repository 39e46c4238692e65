//! The link's thread: waits, moves packets, obeys.
//!
//! It sleeps until shortly before the next release and spins the rest, because a sleeping thread comes back tens of µs late.

use crate::Error;
use crate::awake::Awake;
use crate::config::Config;
use crate::handle::{Ack, Command, Snapshot};
use crate::ledger::Ledger;
use crate::margin::Margin;
use crate::packet::Segment;
use crate::pcap::Capture;
use crate::poller::{Poller, Ready};
use crate::router::{PortId, Router};
use crate::stats::{Stats, lateness_histogram};
use danki_model::ConnId;
use danki_record::{Event, Recorder};
use danki_sys::clock;
use hdrhistogram::Histogram;
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// In the last part of the spinning not even the descriptors are looked at.
const BLIND_SPIN_NS: u64 = 3_000;
/// `struct virtio_net_hdr` (linux/virtio_net.h) as a TUN with `IFF_VNET_HDR` passes it.
const VNET_HEADER: usize = 10;
/// The longest IPv4 packet, its header, and a little.
const BUFFER: usize = 65_535 + VNET_HEADER + 64;

/// A packet inside the link, with the header its TUN wants.
pub(crate) struct Parcel {
    pub data: Vec<u8>,
    pub tracked: Option<(ConnId, Segment)>,
}

pub(crate) struct Worker {
    pub router: Router<Parcel>,
    pub ledger: Ledger,
    pub tuns: HashMap<PortId, OwnedFd>,
    /// What held envs have sent meanwhile, in order; see `held`.
    pub waiting: HashMap<PortId, VecDeque<Vec<u8>>>,
    /// Packets of one held env that may wait.
    pub hold_bound_packets: usize,
    pub region: OwnedFd,
    pub poller: Poller,
    pub stats: Stats,
    pub lateness: Histogram<u64>,
    pub capture: Option<Capture>,
    pub epoch_offset_ns: u64,
    pub events: Vec<Event>,
    pub buffer: Vec<u8>,
    /// Bytes before each packet.
    pub header: usize,
    recorder: Recorder,
    pub commands: Receiver<Command>,
    pub wake: Arc<OwnedFd>,
    pub stopping: Option<Ack<Snapshot>>,
    keep_awake: bool,
}

impl Worker {
    pub(crate) fn new(
        config: &Config,
        region: OwnedFd,
        recorder: Recorder,
        commands: Receiver<Command>,
        wake: Arc<OwnedFd>,
    ) -> Result<Worker, Error> {
        let poller = Poller::new(wake.as_fd())?;
        poller.add_region(region.as_fd())?;
        Ok(Worker {
            router: Router::new(config),
            ledger: Ledger::default(),
            tuns: HashMap::new(),
            waiting: HashMap::new(),
            hold_bound_packets: config.hold_bound_packets,
            region,
            poller,
            stats: Stats::default(),
            lateness: lateness_histogram(),
            capture: config.pcap.as_deref().map(Capture::create).transpose()?,
            epoch_offset_ns: clock::epoch_offset_ns(),
            events: Vec::new(),
            buffer: vec![0; BUFFER],
            header: if config.offload { VNET_HEADER } else { 0 },
            recorder,
            commands,
            wake,
            stopping: None,
            keep_awake: config.keep_awake,
        })
    }

    /// Works until told to stop, or until every handle is gone.
    pub(crate) fn run(mut self) {
        match danki_sys::raise_priority() {
            Ok(()) => self.stats.realtime = true,
            Err(error) => self.caveat(format!("the link runs without real-time priority: {error}")),
        }
        let awake = self.keep_awake.then(Awake::request);
        match &awake {
            Some(Err(error)) => {
                self.caveat(format!("idle CPUs may sleep deeply, which delays packets: {error}"))
            }
            Some(Ok(_)) => self.stats.awake = true,
            None => {}
        }
        if let Err(error) = self.serve() {
            self.caveat(format!("the link ended: {error}"));
        }
        self.finish();
    }

    fn serve(&mut self) -> Result<(), Error> {
        let (mut ready, mut margin) = (Vec::new(), Margin::default());
        loop {
            self.deliver();
            self.record();
            let next_ns = self.router.next_ns();
            let left_ns = next_ns.map(|next_ns| next_ns.saturating_sub(clock::monotonic_ns()));
            match left_ns {
                Some(left_ns) if left_ns <= BLIND_SPIN_NS => {
                    std::hint::spin_loop();
                    if left_ns > 0 {
                        continue;
                    }
                    // Something is due again already: do not forget the descriptors.
                    self.poller.wait(false, None, &mut ready)?;
                }
                Some(left_ns) if left_ns <= margin.ns() => self.poller.wait(false, None, &mut ready)?,
                _ => {
                    let wake_ns = next_ns.map(|next_ns| next_ns - margin.ns());
                    self.poller.wait(true, wake_ns, &mut ready)?;
                    if let (Some(wake_ns), true) = (wake_ns, ready.contains(&Ready::Timer)) {
                        margin.woke(clock::monotonic_ns().saturating_sub(wake_ns));
                    }
                }
            }
            for event in ready.drain(..) {
                match event {
                    Ready::Command => {
                        if !self.obey() {
                            return Ok(());
                        }
                    }
                    Ready::Timer => {}
                    Ready::Region => {
                        self.read_region();
                    }
                    Ready::Env(port) => {
                        self.read_env(PortId(port));
                    }
                    Ready::Broken(port) => {
                        if let Some(tun) = self.tuns.get(&PortId(port)) {
                            self.poller.remove(tun.as_fd());
                        }
                    }
                }
            }
        }
    }

    fn finish(mut self) {
        self.ledger.end(clock::monotonic_ns(), &mut self.events);
        self.record();
        let snapshot = self.snapshot();
        if let Some(Err(error)) = self.capture.take().map(Capture::close) {
            self.caveat(format!("the capture is not complete: {error}"));
        }
        if let Some(ack) = self.stopping.take() {
            ack.send(snapshot);
        }
    }

    fn record(&mut self) {
        for event in self.events.drain(..) {
            self.recorder.record(event);
        }
    }

    pub(crate) fn caveat(&self, text: String) {
        self.recorder.record(Event::Caveat { text });
    }
}
