//! `danki bench DIR` and `danki run DIR`: an experiment made of a directory alone.

use super::keys::{FunctionKeys, HostKeys};
use super::payload::Payload;
use super::place::Source;
use super::resolve::{Options, Resolver};
use super::{Experiment, Region, Variant};
use crate::BadInput;
use danki_host::Forced;
use danki_link::Path as LinkPath;
use danki_load::Load;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the command line says about a function's directory.
#[derive(Clone, Debug, Default)]
pub struct FunctionChoice {
    /// The directory.
    pub dir: PathBuf,
    /// Memory sizes in MB: one variant each; none: Lambda's default.
    pub memory_mb: Vec<u32>,
    /// Handler, if not to be guessed.
    pub handler: Option<String>,
    /// Runtime, if not to be guessed.
    pub runtime: Option<String>,
    /// Timeout in seconds, if not Lambda's default.
    pub timeout_s: Option<f64>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Payload; `event.json` of the directory, or `{}`, if absent.
    pub event: Option<Payload>,
    /// Invocations of each variant.
    pub count: u32,
    /// In which state each invocation shall find its env.
    pub forced: Option<Forced>,
}

/// The experiment: each memory size once, a sequence without gaps, a region with an empty DynamoDB.
pub fn single(choice: &FunctionChoice, options: &Options) -> Result<Experiment, BadInput> {
    let dir = &choice.dir;
    let event = match (&choice.event, dir.join("event.json")) {
        (Some(event), _) => event.clone(),
        (None, file) if file.is_file() => Payload::read(&file)?,
        (None, _) => Payload::default(),
    };
    let name = name(dir);
    let file = dir.display().to_string();
    let resolver = Resolver { source: Source { file: &file, text: "" }, dir: Path::new(""), options };
    let sizes = if choice.memory_mb.is_empty() {
        vec![None]
    } else {
        choice.memory_mb.iter().copied().map(Some).collect()
    };
    let mut variants = Vec::new();
    for memory_mb in sizes {
        let keys = FunctionKeys {
            dir: Some(dir.clone()),
            runtime: choice.runtime.clone(),
            handler: choice.handler.clone(),
            memory_mb,
            timeout_s: choice.timeout_s,
            environment: choice.environment.clone(),
            ..FunctionKeys::default()
        };
        let function = resolver.function(&name, keys, REGION)?;
        let name = format!("{}mb", function.memory.mb());
        if variants.iter().all(|v: &Variant| v.name != name) {
            let variant = Variant::new(name, function, event.clone());
            variants.push(Variant { forced: choice.forced, ..variant });
        }
    }
    let load = Load::Sequence { count: choice.count.max(1), gaps_ms: vec![0.0] };
    Ok(Experiment {
        name,
        description: String::new(),
        seed: options.seed.unwrap_or(1),
        repetitions: 1,
        time_scale: options.time_scale.unwrap_or(1.0),
        region: Region {
            name: REGION.to_owned(),
            path: LinkPath::default(),
            dynamodb: Some(danki_region::DynamoDb::default()),
            secretsmanager: Some(danki_region::SecretsManager::default()),
            ssm: Some(danki_region::Ssm::default()),
            database: None,
            paths: Default::default(),
        },
        xray_sampling: None,
        host: HostKeys { cpu_model: options.cpu_model, ..HostKeys::default() },
        variants,
        load: if options.quick { load.capped(QUICK_COUNT, 5.0) } else { load },
        expect: Vec::new(),
        quick: options.quick,
        notes: Vec::new(),
    })
}

/// As in an experiment file without `[region]`.
pub const REGION: &str = "us-east-1";
/// `--quick`: enough for a first look.
const QUICK_COUNT: u32 = 5;

/// A name made of the directory's.
fn name(dir: &Path) -> String {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let last = real.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = last.chars().map(legal).take(40).collect();
    if name.is_empty() { "function".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_an_experiment() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("My Function");
        std::fs::create_dir(&dir).expect("made");
        let mut choice = FunctionChoice {
            dir: dir.clone(),
            memory_mb: vec![512, 128, 512],
            count: 3,
            ..Default::default()
        };
        let bad = single(&choice, &Options::default()).expect_err("empty");
        assert!(bad.to_string().contains("no function found"), "{bad}");
        std::fs::write(dir.join("index.js"), "").expect("written");
        std::fs::write(dir.join("event.json"), r#"{"id": 1}"#).expect("written");
        let experiment = single(&choice, &Options::default()).expect("a function");
        let names: Vec<&str> = experiment.variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!((experiment.name.as_str(), names), ("my-function", vec!["512mb", "128mb"]));
        assert_eq!(experiment.variants[0].event.as_str(), r#"{"id": 1}"#);
        choice.memory_mb = vec![64];
        let bad = single(&choice, &Options::default()).expect_err("too small");
        assert!(bad.to_string().contains("128 to 10240"), "{bad}");
    }
}
