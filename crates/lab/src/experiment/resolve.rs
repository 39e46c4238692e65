//! From what is written to what is run: defaults, ranges, paths, guesses.

use super::database;
use super::guess::{Guess, Versions};
use super::keys::{
    ExpectKeys, File, FunctionKeys, HostKeys, PATH_KEYS, PathKeys, QuickKeys, RegionKeys, VariantKeys,
};
use super::metric::Expect;
use super::payload::Payload;
use super::place::{Source, Step};
use super::taken::Templates;
use super::{Experiment, Region, Variant};
use crate::BadInput;
use crate::error::{self, Error};
use danki_link::Path as LinkPath;
use danki_load::Load;
use danki_model::{CpuChoice, FunctionSpec, ImageSpec, LogFormat, Logging, MemoryMb, Runtime};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue, Deserializer};

/// What the command line says about an experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Shrink it.
    pub quick: bool,
    /// Instead of the file's seed.
    pub seed: Option<u64>,
    /// Instead of the file's divisor.
    pub time_scale: Option<f64>,
    /// Instead of the file's model of the CPU.
    pub cpu_model: Option<CpuChoice>,
    /// Interpreters of this machine.
    pub versions: Versions,
}

/// `--quick` without `[quick]`: most invocations of a variant.
const QUICK_COUNT: u32 = 10;
/// `--quick` without `[quick]`: longest loop.
const QUICK_SECONDS: f64 = 5.0;
/// Lambda's default (AWS API reference, `CreateFunction`).
const TIMEOUT_S: f64 = 3.0;
/// Lambda's default (AWS API reference, `CreateFunction`).
const MEMORY_MB: u32 = 128;
/// Lambda's default (AWS API reference, `CreateFunction`).
const EPHEMERAL_MB: u32 = 512;
/// What most of the world's examples use; any name works.
const REGION: &str = "us-east-1";
/// DESIGN §8: beyond it, what does not scale (timers of clients, RTTs) drowns what does.
const TIME_SCALE: RangeInclusive<f64> = 1.0..=10.0;
const REPETITIONS: RangeInclusive<u32> = 1..=1_000;
/// Longer than an env lives without work it keeps nothing.
const PING_S: RangeInclusive<f64> = 1.0..=3_600.0;
/// Envs that may be kept ready: what this machine may hold.
const PROVISIONED: RangeInclusive<u32> = 1..=1_000;

type Bad<T> = Result<T, BadInput>;

/// Where the code is, who runs it, its handler, and the image that it comes from.
type Code = (PathBuf, Runtime, String, Option<ImageSpec>);

impl Experiment {
    /// Reads an experiment file.
    pub fn read(path: &Path, options: &Options) -> Result<Experiment, Error> {
        let text = fs::read_to_string(path).map_err(error::file("read", path))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        Ok(Experiment::parse(&text, &path.display().to_string(), dir, options)?)
    }

    /// Reads the text of an experiment file. `file` is its name in messages, `dir` what its paths are relative to.
    pub fn parse(text: &str, file: &str, dir: &Path, options: &Options) -> Result<Experiment, BadInput> {
        let source = Source { file, text };
        let (file, paths) = read_keys(&source)?;
        Resolver { source, dir, options }.experiment(file, paths)
    }
}

/// Services that may have a network path of their own.
const SERVICES: [&str; 4] = ["dynamodb", "secretsmanager", "ssm", "database"];

/// Network paths by service.
type Paths = Vec<(&'static str, PathKeys)>;

/// The file's keys; the network path in `[region.SERVICE]` is taken out, the rest of that section is the region crate's.
fn read_keys(source: &Source<'_>) -> Bad<(File, Paths)> {
    let wrong = |error: toml::de::Error| source.explain(&error);
    let mut root = DeTable::parse(source.text).map_err(wrong)?;
    let mut paths = Vec::new();
    if let Some(DeValue::Table(region)) = root.get_mut().get_mut("region").map(|value| value.get_mut()) {
        for service in SERVICES {
            let Some(DeValue::Table(section)) = region.get_mut(service).map(|value| value.get_mut()) else {
                continue;
            };
            let mut path = DeTable::new();
            path.extend(PATH_KEYS.iter().filter_map(|key| section.remove_entry(*key)));
            if !path.is_empty() {
                let path = Deserializer::from(toml::Spanned::new(0..0, path));
                paths.push((service, PathKeys::deserialize(path).map_err(wrong)?));
            }
        }
    }
    let file = File::deserialize(Deserializer::from(root)).map_err(wrong)?;
    Ok((file, paths))
}

/// Everything that a value's reading may need.
pub(super) struct Resolver<'a> {
    pub source: Source<'a>,
    pub dir: &'a Path,
    pub options: &'a Options,
}

impl Resolver<'_> {
    fn experiment(&self, file: File, paths: Paths) -> Bad<Experiment> {
        let place = |key| self.source.find(&[Step::Key(key)]);
        name_is_fine("name", &file.name).map_err(|bad| bad.at(place("name")))?;
        let seed = self.options.seed.or(file.seed).unwrap_or(1);
        let time_scale = self.options.time_scale.or(file.time_scale).unwrap_or(1.0);
        in_range("time_scale", time_scale, &TIME_SCALE).map_err(|bad| bad.at(place("time_scale")))?;
        let (load, repetitions, quick_event) = self.load(file.load, file.repetitions, file.quick)?;
        let mut region = self.region(file.region, paths)?;
        self.host(&file.host)?;
        let event = self.event(file.event, file.event_file).map_err(|bad| bad.at(place("event_file")))?;
        let event = quick_event.or(event).unwrap_or_default();
        let mut templates = Templates::default();
        let mut variants =
            self.variants(&file.name, file.variant, &file.function, &region.name, &event, &mut templates)?;
        templates.seed(&mut region);
        database::connect(&mut variants, &region, &self.source)?;
        // Without `[xray]`, a template that says `Tracing: Active` has it with its defaults.
        let xray_sampling = file.xray.map(|xray| xray.sampling).or(templates.traced().then_some(1.0));
        in_range("sampling", xray_sampling.unwrap_or(1.0), &(0.0..=1.0))
            .map_err(|bad| bad.at(self.source.find(&[Step::Key("xray"), Step::Key("sampling")])))?;
        let expect = self.expect(file.expect, &variants)?;
        let (name, description, quick) = (file.name, file.description, self.options.quick);
        let host = HostKeys { cpu_model: self.options.cpu_model.or(file.host.cpu_model), ..file.host };
        Ok(Experiment {
            name,
            description,
            seed,
            repetitions,
            time_scale,
            region,
            xray_sampling,
            host,
            variants,
            load,
            expect,
            quick,
            notes: templates.into_notes(),
        })
    }

    fn load(
        &self,
        load: Option<Load>,
        repetitions: Option<u32>,
        quick: Option<QuickKeys>,
    ) -> Bad<(Load, u32, Option<Payload>)> {
        let asked = (load.unwrap_or_default(), repetitions.unwrap_or(1));
        let ((load, repetitions), event) = match (self.options.quick, quick) {
            (false, _) => (asked, None),
            (true, None) => ((asked.0.capped(QUICK_COUNT, QUICK_SECONDS), 1), None),
            (true, Some(quick)) => {
                let (load, repetitions) =
                    (quick.load.unwrap_or(asked.0), quick.repetitions.unwrap_or(asked.1));
                ((load, repetitions), quick.event.map(|event| to_json(event).into()))
            }
        };
        in_range("repetitions", repetitions, &REPETITIONS)
            .map_err(|bad| bad.at(self.source.find(&[Step::Key("repetitions")])))?;
        Ok((load, repetitions, event))
    }

    fn region(&self, keys: RegionKeys, own: Paths) -> Bad<Region> {
        let RegionKeys {
            name,
            rtt_ms,
            jitter_ms,
            loss,
            bandwidth_mbps,
            dynamodb,
            secretsmanager,
            ssm,
            database,
        } = keys;
        let database =
            database.map(|config| database::resolve(config, &self.source, self.dir)).transpose()?;
        let common = PathKeys { rtt_ms, jitter_ms, loss, bandwidth_mbps };
        let region = Step::Key("region");
        let path =
            link_path(&LinkPath::default(), &common, |key| self.source.find(&[region, Step::Key(key)]))?;
        let one = |(service, keys): (&str, PathKeys)| {
            let place = |key: &str| self.source.find(&[region, Step::Key(service), Step::Key(key)]);
            Ok((service.to_owned(), link_path(&path, &keys, place)?))
        };
        let paths = own.into_iter().map(one).collect::<Bad<_>>()?;
        let name = name.unwrap_or_else(|| REGION.to_owned());
        Ok(Region { name, path: path.clone(), dynamodb, secretsmanager, ssm, database, paths })
    }

    fn host(&self, keys: &HostKeys) -> Bad<()> {
        let place = |key| self.source.find(&[Step::Key("host"), Step::Key(key)]);
        let event_first = keys.event_first.unwrap_or(0.0);
        in_range("event_first", event_first, &(0.0..=1.0)).map_err(|bad| bad.at(place("event_first")))?;
        let limit = keys.account_limit.unwrap_or(1);
        in_range("account_limit", limit, &(1..=100_000)).map_err(|bad| bad.at(place("account_limit")))?;
        let idle = keys.idle_ttl_s.unwrap_or(1.0);
        in_range("idle_ttl_s", idle, &(1.0..=86_400.0)).map_err(|bad| bad.at(place("idle_ttl_s")))?;
        let (key, settle) = ("pc_ready_after_init_s", keys.pc_ready_after_init_s.unwrap_or(1.0));
        in_range(key, settle, &(0.1..=3_600.0)).map_err(|bad| bad.at(place(key)))
    }

    fn variants(
        &self,
        experiment: &str,
        keys: Vec<VariantKeys>,
        function: &FunctionKeys,
        region: &str,
        event: &Payload,
        templates: &mut Templates,
    ) -> Bad<Vec<Variant>> {
        if keys.is_empty() {
            let made = self.deployed(experiment, function.clone(), region, templates);
            let (function, provisioned_concurrency) =
                made.map_err(|bad| self.placed(bad, &[Step::Key("function")]))?;
            let variant = Variant::new("default", function, event.clone());
            return Ok(vec![Variant { provisioned_concurrency, ..variant }]);
        }
        let mut variants: Vec<Variant> = Vec::new();
        for (n, mut variant) in keys.into_iter().enumerate() {
            let path = [Step::Key("variant"), Step::Index(n)];
            name_is_fine("variant name", &variant.name).map_err(|bad| self.placed(bad, &path))?;
            if variants.iter().any(|v| v.name == variant.name) {
                let bad = BadInput::new(format!("two variants are named {:?}", variant.name));
                return Err(self.placed(bad, &path));
            }
            let own = self.event(variant.event.take(), variant.event_file.take());
            let event = own.map_err(|bad| self.placed(bad, &path))?.unwrap_or_else(|| event.clone());
            let name = variant.name.clone();
            let (provisioned, event_first) = (variant.provisioned_concurrency, variant.event_first);
            let (db_proxy, ping_s) = (variant.db_proxy.take(), variant.ping_s);
            in_range("provisioned_concurrency", provisioned.unwrap_or(1), &PROVISIONED)
                .and_then(|()| in_range("event_first", event_first.unwrap_or(0.0), &(0.0..=1.0)))
                .and_then(|()| in_range("ping_s", ping_s.unwrap_or(1.0), &PING_S))
                .map_err(|bad| self.placed(bad, &path))?;
            let made = self.deployed(experiment, variant.over(function), region, templates);
            let (function, of_template) = made.map_err(|bad| self.placed(bad, &path))?;
            let provisioned_concurrency = provisioned.or(of_template);
            let variant = Variant::new(name, function, event);
            variants.push(Variant { provisioned_concurrency, event_first, db_proxy, ping_s, ..variant });
        }
        Ok(variants)
    }

    /// A function, with what its template says of it where there is one, and the provisioned concurrency that the template asks for.
    fn deployed(
        &self,
        experiment: &str,
        keys: FunctionKeys,
        region: &str,
        templates: &mut Templates,
    ) -> Bad<(FunctionSpec, Option<u32>)> {
        if keys.template.is_none() {
            let of_template =
                [("resource", keys.resource.is_some()), ("parameters", !keys.parameters.is_empty())];
            return match of_template.iter().find(|(_, given)| *given) {
                Some((key, _)) => Err(BadInput::new(format!("{key} is of a template; there is none"))
                    .hint("name it: template = \"template.yaml\"")),
                None => Ok((self.function(experiment, keys, region)?, None)),
            };
        }
        let taken = self.taken(keys, region, templates)?;
        Ok((self.function(&taken.name, taken.keys, region)?, taken.provisioned))
    }

    /// The deployed function that the keys describe. Paths are relative to the file; places are the caller's business.
    pub(super) fn function(&self, name: &str, keys: FunctionKeys, region: &str) -> Bad<FunctionSpec> {
        let (code, runtime, handler, image) = match keys.image.clone() {
            Some(archive) => self.image(archive, &keys)?,
            None => self.code(&keys)?,
        };
        let layers: Bad<Vec<PathBuf>> =
            keys.layers.unwrap_or_default().iter().map(|layer| self.directory("layer", layer)).collect();
        let mut logging = Logging::default();
        if keys.json_logs {
            logging.format = LogFormat::Json;
        }
        let spec = FunctionSpec {
            name: name.to_owned(),
            runtime,
            handler,
            code,
            layers: layers?,
            memory: MemoryMb::try_from(keys.memory_mb.unwrap_or(MEMORY_MB))
                .map_err(|e| BadInput::new(e.to_string()))?,
            timeout_ms: milliseconds(keys.timeout_s.unwrap_or(TIMEOUT_S))?,
            ephemeral_mb: keys.ephemeral_mb.unwrap_or(EPHEMERAL_MB),
            environment: keys.environment,
            region: region.to_owned(),
            logging,
            image,
        };
        match spec.validate().into_iter().next() {
            None => Ok(spec),
            Some(wrong) => {
                let what = format!("{} is {}; allowed: {}", wrong.what, wrong.value, wrong.allowed);
                Err(BadInput::new(what).hint(wrong.hint))
            }
        }
    }

    /// A directory, who runs it, and its handler.
    fn code(&self, keys: &FunctionKeys) -> Bad<Code> {
        let of_image =
            keys.entry_point.is_some() || keys.command.is_some() || keys.working_directory.is_some();
        if of_image && keys.template.is_none() {
            return Err(BadInput::new(
                "entry_point, command and working_directory are of an image; there is none",
            ));
        }
        let dir = keys.dir.as_ref().ok_or_else(|| BadInput::new("no dir: where is the function's code?"))?;
        let code = self.directory("dir", dir)?;
        installed(&code)?;
        let guess = match (&keys.runtime, &keys.handler) {
            (Some(_), Some(_)) => None,
            (_, handler) => Some(Guess::of(&code, handler.as_deref(), self.options.versions)?),
        };
        let runtime = match &keys.runtime {
            Some(runtime) => {
                runtime.parse().map_err(|e: danki_model::UnknownRuntime| BadInput::new(e.to_string()))?
            }
            None => guess.as_ref().map(|g| g.runtime).expect("guessed unless both are given"),
        };
        let handler = keys.handler.clone().or(guess.map(|g| g.handler));
        Ok((code, runtime, handler.expect("guessed unless both are given"), None))
    }

    /// An image brings its own runtime; the directory that holds it stands for its code.
    fn image(&self, archive: PathBuf, keys: &FunctionKeys) -> Bad<Code> {
        let also = [
            ("dir", keys.dir.is_some()),
            ("runtime", keys.runtime.is_some()),
            ("handler", keys.handler.is_some()),
        ];
        if let Some((key, _)) = also.iter().find(|(_, given)| *given) {
            return Err(BadInput::new(format!("image and {key} are both given; an image brings its own")));
        }
        let joined = self.dir.join(&archive);
        let archive = fs::canonicalize(&joined)
            .map_err(|error| BadInput::new(format!("image {}: {error}", joined.display())))?;
        if !archive.is_file() {
            let bad = BadInput::new(format!("image {} is not a file", archive.display()));
            return Err(bad.hint("`docker save IMAGE -o FILE`, or an OCI archive"));
        }
        let dir = archive.parent().map(Path::to_path_buf).unwrap_or_default();
        let image = ImageSpec {
            archive,
            entry_point: keys.entry_point.clone(),
            command: keys.command.clone(),
            working_directory: keys.working_directory.clone(),
        };
        Ok((dir, Runtime::Provided, String::new(), Some(image)))
    }

    fn directory(&self, what: &str, path: &Path) -> Bad<PathBuf> {
        let joined = self.dir.join(path);
        match fs::canonicalize(&joined) {
            Ok(found) if found.is_dir() => Ok(found),
            Ok(_) => Err(BadInput::new(format!("{what} {} is not a directory", joined.display()))),
            Err(error) => {
                let bad = BadInput::new(format!("{what} {}: {error}", joined.display()));
                let of_make = path.file_name().is_some_and(|name| name == ".deps");
                Err(if of_make {
                    bad.hint("`make functions` installs what functions depend on")
                } else {
                    bad
                })
            }
        }
    }

    fn event(&self, inline: Option<toml::Value>, file: Option<PathBuf>) -> Bad<Option<Payload>> {
        match (inline, file) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(BadInput::new("event and event_file are both given; one is enough")),
            (Some(value), None) => Ok(Some(to_json(value).into())),
            (None, Some(path)) => Payload::read(&self.dir.join(path)).map(Some),
        }
    }

    fn expect(&self, keys: Vec<ExpectKeys>, variants: &[Variant]) -> Bad<Vec<Expect>> {
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        let one = |(n, keys): (usize, ExpectKeys)| {
            Expect::new(keys, &names).map_err(|bad| self.placed(bad, &[Step::Key("expect"), Step::Index(n)]))
        };
        keys.into_iter().enumerate().map(one).collect()
    }

    /// Says where a mistake is, unless that is known more exactly.
    fn placed(&self, bad: BadInput, path: &[Step<'_>]) -> BadInput {
        if bad.place.is_empty() { bad.at(self.source.find(path)) } else { bad }
    }
}

/// A package that names dependencies but has none installed fails with an import error deep inside; better said here.
fn installed(dir: &Path) -> Bad<()> {
    let Ok(package) = fs::read_to_string(dir.join("package.json")) else { return Ok(()) };
    let package: Value = serde_json::from_str(&package).unwrap_or_default();
    let needs = package.get("dependencies").and_then(Value::as_object).is_some_and(|d| !d.is_empty());
    if needs && !dir.ancestors().take(4).any(|d| d.join("node_modules").is_dir()) {
        let bad = BadInput::new("package.json names dependencies, but none are installed").at(dir.display());
        return Err(bad.hint("`make functions` (or `npm ci` there) installs them"));
    }
    Ok(())
}

fn link_path(base: &LinkPath, keys: &PathKeys, place: impl Fn(&str) -> String) -> Bad<LinkPath> {
    let check = |key: &str, value: Option<f64>, range: RangeInclusive<f64>| match value {
        Some(value) => in_range(key, value, &range).map_err(|bad| bad.at(place(key))),
        None => Ok(()),
    };
    check("rtt_ms", keys.rtt_ms, 0.0..=1_000.0)?;
    check("jitter_ms", keys.jitter_ms, 0.0..=1_000.0)?;
    check("loss", keys.loss, 0.0..=1.0)?;
    check("bandwidth_mbps", keys.bandwidth_mbps, 0.001..=1_000_000.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0 to 1,000")]
    let us = |ms: f64| (ms * 1_000.0).round() as u64;
    Ok(LinkPath {
        rtt_us: keys.rtt_ms.map_or(base.rtt_us, us),
        jitter_us: keys.jitter_ms.map_or(base.jitter_us, us),
        loss: keys.loss.unwrap_or(base.loss),
        bandwidth_mbps: keys.bandwidth_mbps.or(base.bandwidth_mbps),
    })
}

pub(super) fn name_is_fine(what: &str, name: &str) -> Bad<()> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if (1..=40).contains(&name.len()) && name.chars().all(legal) {
        return Ok(());
    }
    Err(BadInput::new(format!("{what} {name:?} is not 1 to 40 of a-z 0-9 - _")))
}

fn in_range<T: PartialOrd + std::fmt::Display>(key: &str, value: T, range: &RangeInclusive<T>) -> Bad<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(BadInput::new(format!("{key} = {value} is outside {} to {}", range.start(), range.end())))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 1 to 900")]
fn milliseconds(timeout_s: f64) -> Bad<u64> {
    in_range("timeout_s", timeout_s, &(1.0..=900.0))?;
    Ok((timeout_s * 1_000.0).round() as u64)
}

/// TOML's values are JSON's, but for dates, which become strings, and infinities, which become null.
fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(s) => s.into(),
        toml::Value::Integer(n) => n.into(),
        toml::Value::Float(x) => x.into(),
        toml::Value::Boolean(b) => b.into(),
        toml::Value::Datetime(d) => d.to_string().into(),
        toml::Value::Array(array) => array.into_iter().map(to_json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(k, v)| (k, to_json(v))).collect::<serde_json::Map<_, _>>().into()
        }
    }
}

#[cfg(test)]
mod tests;
