//! `[function] template = …`: what an experiment takes from a SAM template. What the file itself says goes over it.

use super::Region;
use super::keys::FunctionKeys;
use super::resolve::Resolver;
use crate::BadInput;
use danki_sam::{Code, Deployment, Function, Template};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A template is a text of at most 1 MB; a larger file is something else.
const MAX_BYTES: u64 = 1_048_576;
/// What SAM's tools look for in a directory.
const NAMES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// A function of a template, as keys of an experiment file.
pub(super) struct Taken {
    /// `FunctionName`
    pub name: String,
    pub keys: FunctionKeys,
    /// Of the alias that the template publishes.
    pub provisioned: Option<u32>,
}

/// What templates say about everything but their functions.
#[derive(Default)]
pub(super) struct Templates {
    templates: Vec<Template>,
    notes: BTreeSet<String>,
    traced: bool,
}

impl Templates {
    /// Tables, secrets and parameters exist before functions run.
    pub fn seed(&self, region: &mut Region) {
        self.templates.iter().for_each(|template| region.seed(template));
    }

    /// A function that an experiment takes has `Tracing: Active`.
    pub fn traced(&self) -> bool {
        self.traced
    }

    /// What templates describe and danki does not run, once each.
    pub fn into_notes(self) -> Vec<String> {
        self.notes.into_iter().collect()
    }
}

impl Resolver<'_> {
    /// The keys of a function with those of its template below them.
    pub(super) fn taken(
        &self,
        keys: FunctionKeys,
        region: &str,
        templates: &mut Templates,
    ) -> Result<Taken, BadInput> {
        let file = self.template_file(keys.template.as_deref().unwrap_or(Path::new("")))?;
        let deployment = Deployment {
            region: region.to_owned(),
            parameters: keys.parameters.clone(),
            ..Deployment::default()
        };
        let shown = &file.display().to_string();
        let template = danki_sam::read(&read(&file)?, &deployment).map_err(|error| {
            let (line, hint) = (error.line, error.hint.clone());
            let bad = BadInput::new(danki_sam::Error { line: 0, hint: None, ..error }.to_string());
            let bad = bad.at(format!("{shown}:{line}"));
            hint.into_iter().fold(bad, |bad, hint| bad.hint(hint))
        })?;
        let function = chosen(&template, keys.resource.as_deref()).map_err(|bad| bad.at(shown))?;
        let dir = file.parent().unwrap_or(Path::new(""));
        let mut taken = FunctionKeys {
            memory_mb: Some(function.memory.mb()),
            timeout_s: Some(function.timeout_ms as f64 / 1e3),
            ephemeral_mb: Some(function.ephemeral_mb),
            environment: function.environment.clone(),
            runtime: function.runtime.map(|runtime| runtime.to_string()),
            handler: function.handler.clone(),
            json_logs: function.json_logs,
            ..FunctionKeys::default()
        };
        let problem = |what: String, hint: &str| {
            BadInput::new(what).at(format!("{shown}:{}", function.line)).hint(hint)
        };
        if keys.dir.is_none() && keys.image.is_none() {
            code(&mut taken, function, dir).map_err(|(what, hint)| problem(what, hint))?;
        }
        if keys.layers.is_none() {
            let layers = function.layers.iter().map(|arn| layer(&template, arn, dir));
            let layers: Result<_, (String, &str)> = layers.collect();
            taken.layers = Some(layers.map_err(|(what, hint)| problem(what, hint))?);
        }
        let taken = Taken {
            name: function.name.clone(),
            provisioned: function.aliases.iter().find_map(|alias| alias.provisioned),
            keys: keys.over(taken),
        };
        templates.traced |= function.traced;
        templates.notes.extend(template.warnings.iter().map(|warning| {
            format!("{shown}: line {}: {}: {}", warning.line, warning.resource, warning.what)
        }));
        templates.templates.push(template);
        Ok(taken)
    }

    fn template_file(&self, named: &Path) -> Result<PathBuf, BadInput> {
        let named = self.dir.join(named);
        if !named.is_dir() {
            return Ok(named);
        }
        let found = NAMES.iter().map(|name| named.join(name)).find(|file| file.is_file());
        found.ok_or_else(|| {
            let bad = BadInput::new(format!("there is no template in {}", named.display()));
            bad.hint(format!("looked for: {}", NAMES.join(", ")))
        })
    }
}

fn read(file: &Path) -> Result<String, BadInput> {
    let bad = |error: std::io::Error| BadInput::new(format!("template {}: {error}", file.display()));
    let size = fs::metadata(file).map_err(bad)?.len();
    if size > MAX_BYTES {
        let what = format!("template {}: {size} bytes; a template has at most {MAX_BYTES}", file.display());
        return Err(BadInput::new(what));
    }
    fs::read_to_string(file).map_err(bad)
}

/// The function with that logical id, or the only one.
fn chosen<'t>(template: &'t Template, id: Option<&str>) -> Result<&'t Function, BadInput> {
    let all = template.functions.as_slice();
    let ids = || all.iter().map(|f| f.id.as_str()).collect::<Vec<_>>().join(", ");
    match (id, all) {
        (_, []) => Err(BadInput::new("the template has no function")),
        (Some(id), all) => all.iter().find(|f| f.id == id).ok_or_else(|| {
            BadInput::new(format!("the template has no function {id:?}")).hint(format!("it has: {}", ids()))
        }),
        (None, [one]) => Ok(one),
        (None, all) => {
            let bad = BadInput::new(format!("the template has {} functions", all.len()));
            Err(bad.hint(format!("say which one: resource = \"…\", one of {}", ids())))
        }
    }
}

/// Text and the next step of something that `danki up` can deploy and an experiment cannot take.
type Problem = (String, &'static str);

fn code(keys: &mut FunctionKeys, function: &Function, dir: &Path) -> Result<(), Problem> {
    let id = &function.id;
    match &function.code {
        Code::Path(path) => keys.dir = Some(directory(&format!("the code of {id}"), &dir.join(path))?),
        Code::Image(archive) => keys.image = Some(dir.join(archive)),
        Code::Inline(_) => {
            return Err((
                format!("{id} has its code in the template; an experiment takes a directory"),
                "put the code into a directory and name it: dir = \"…\"",
            ));
        }
        Code::S3 { bucket, key } => {
            return Err((
                format!("the code of {id} is at s3://{bucket}/{key}, which is not on this machine"),
                "name a local directory: dir = \"…\"",
            ));
        }
    }
    let image = &function.image_config;
    (keys.entry_point, keys.command) = (image.entry_point.clone(), image.command.clone());
    keys.working_directory = image.working_directory.clone();
    Ok(())
}

fn layer(template: &Template, arn: &str, dir: &Path) -> Result<PathBuf, Problem> {
    let name = arn.rsplit(':').nth(1).unwrap_or_default();
    match template.layers.iter().find(|layer| layer.name == name) {
        Some(layer) => directory(&format!("layer {name}"), &dir.join(&layer.content)),
        None => Err((
            format!("layer {arn} is not one of the template's own"),
            "name directories instead: layers = […]",
        )),
    }
}

fn directory(what: &str, path: &Path) -> Result<PathBuf, Problem> {
    match path.is_file() {
        true => Err((
            format!("{what} is the file {}; an experiment takes a directory", path.display()),
            "unpack it, and name the directory in the template or here",
        )),
        false => Ok(path.to_path_buf()),
    }
}
