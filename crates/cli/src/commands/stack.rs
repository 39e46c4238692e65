//! `danki up TEMPLATE`: what a SAM template says, on this machine.

use crate::args::Up;
use crate::exit::Failure;
use crate::terminal;
use danki_lab::{Experiment, World};
use danki_lambda_api::{Endpoint, Route};
use danki_sam::{Deployment, Template};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Where fronts listen if a template has routes and nobody says otherwise; SAM's local front has the first.
const HTTP_PORT: u16 = 3000;
const HTTPS_PORT: u16 = 3443;
/// A template is a text of at most 1 MB; a larger file is something else.
const MAX_BYTES: u64 = 1_048_576;

/// A template that was read, and the directory that its paths are relative to.
pub struct Stack {
    template: Template,
    dir: PathBuf,
}

impl Stack {
    /// Reads the template of the command line, if there is one.
    pub fn read(args: &Up) -> Result<Option<Stack>, Failure> {
        let Some(file) = &args.template else { return Ok(None) };
        let file = if file.is_dir() { inside(file)? } else { file.clone() };
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let size = std::fs::metadata(&file).map_err(|e| Failure::usage(named(&e)))?.len();
        if size > MAX_BYTES {
            let what = named(&format!("{size} bytes; a template has at most {MAX_BYTES}"));
            return Err(Failure::usage(what));
        }
        let text = std::fs::read_to_string(&file).map_err(|e| Failure::usage(named(&e)))?;
        let parameters: BTreeMap<String, String> = args.parameter.iter().cloned().collect();
        let deployment = Deployment {
            region: args.region.clone(),
            stack: args.stack_name.clone(),
            parameters,
            ..account()
        };
        let template = danki_sam::read(&text, &deployment).map_err(|error| {
            let hint = error.hint.clone();
            let failure = Failure::usage(named(&danki_sam::Error { hint: None, ..error }));
            hint.into_iter().fold(failure, |failure, hint| failure.hint(hint))
        })?;
        for warning in &template.warnings {
            let (line, resource, what) = (warning.line, &warning.resource, &warning.what);
            terminal::note(&format!("{}: line {line}: {resource}: {what}", file.display()));
        }
        let dir =
            file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
        Ok(Some(Stack { template, dir }))
    }

    /// Tables, secrets and parameters exist before functions run.
    pub fn seed(&self, experiment: &mut Experiment) {
        experiment.region.seed(&self.template);
    }

    /// Deploys everything and says where it is reached.
    pub async fn deploy(&self, endpoint: &Endpoint, fronts: &Fronts) -> Result<(), Failure> {
        let made = endpoint.deploy_stack(&self.template, &self.dir).await;
        let stack = made.map_err(|error| Failure::usage(error.to_string()))?;
        for function in &stack.functions {
            terminal::note(&format!("function {function}"));
        }
        for (function, id) in &stack.urls {
            for base in &fronts.bases {
                terminal::note(&format!("URL      {base}/_danki/url/{id}/  ({function})"));
            }
        }
        for route in &stack.routes {
            for base in &fronts.bases {
                terminal::note(&format!(
                    "{:8} {base}{}  ({})",
                    route.method,
                    shown_path(route),
                    route.function
                ));
            }
        }
        for (name, value) in &self.template.outputs {
            terminal::note(&format!("output   {name} = {value}"));
        }
        Ok(())
    }
}

/// A REST API has its stage in the path.
fn shown_path(route: &Route) -> String {
    let path = if route.path == "$default" { "/" } else { &route.path };
    if route.stage == "$default" { path.to_owned() } else { format!("/{}{path}", route.stage) }
}

/// The template of a directory, by the names that SAM's tools look for.
fn inside(dir: &Path) -> Result<PathBuf, Failure> {
    let names = ["template.yaml", "template.yml", "template.json"];
    let found = names.iter().map(|name| dir.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let what = format!("{}: there is no template here", dir.display());
        Failure::usage(what).hint(format!("looked for: {}", names.join(", ")))
    })
}

fn account() -> Deployment {
    Deployment { account: danki_lambda_api::ACCOUNT.to_owned(), ..Deployment::default() }
}

/// The listeners of function URLs and routes.
pub struct Fronts {
    /// `http://127.0.0.1:3000` and the like.
    bases: Vec<String>,
}

impl Fronts {
    /// Listens where the command line says; by default only if there is a template.
    pub fn listen(args: &Up, endpoint: &mut Endpoint, world: &World, dir: &Path) -> Result<Fronts, Failure> {
        let default = |port| args.template.as_ref().map(|_| port);
        let mut bases = Vec::new();
        if let Some(port) = args.http_port.or(default(HTTP_PORT)) {
            let address =
                endpoint.serve_fronts(bind(port, "--http-port")?, None).map_err(super::up::unusable)?;
            bases.push(format!("http://{address}"));
        }
        if let Some(port) = args.https_port.or(default(HTTPS_PORT)) {
            let listener = bind(port, "--https-port")?;
            let address =
                endpoint.serve_fronts(listener, Some(world.front_tls()?)).map_err(super::up::unusable)?;
            bases.push(format!("https://{address}"));
            let ca = dir.join("ca.pem");
            std::fs::write(&ca, world.root_pem())
                .map_err(|error| Failure::machine(format!("{}: {error}", ca.display())))?;
            terminal::note(&format!("HTTPS certificates are signed by {}", ca.display()));
        }
        for base in &bases {
            terminal::note(&format!("fronts at {base}"));
        }
        Ok(Fronts { bases })
    }
}

fn bind(port: u16, flag: &str) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).map_err(|error| {
        Failure::usage(format!("{address}: {error}")).hint(format!("{flag} 0 takes a free port"))
    })
}
