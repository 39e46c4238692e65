//! A run directory, read back.

use danki_record::{Event, Manifest, SCHEMA, Summary};
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// What can be wrong with a run directory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// `read`, `write`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is not a run's: {why}", path.display())]
    NotARun {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Written by another version.
    #[error("{} has schema {found}; this danki reads {SCHEMA}", path.display())]
    Schema {
        /// Which.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
}

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its directory.
    pub dir: PathBuf,
    /// `manifest.json`.
    pub manifest: Manifest,
    /// `summary.json`.
    pub summary: Summary,
    /// `events.jsonl`; the last line of a killed run may be cut off and is left out.
    pub events: Vec<Event>,
}

impl Run {
    /// Reads all of a run directory.
    pub fn read(dir: &Path) -> Result<Run, Error> {
        let (manifest, summary) = Run::read_head(dir)?;
        Ok(Run { dir: dir.to_path_buf(), manifest, summary, events: events(&dir.join("events.jsonl"))? })
    }

    /// Reads `manifest.json` and `summary.json`.
    pub fn read_head(dir: &Path) -> Result<(Manifest, Summary), Error> {
        let path = dir.join("manifest.json");
        let manifest: Manifest = json(&path)?;
        if manifest.schema != SCHEMA {
            return Err(Error::Schema { path, found: manifest.schema });
        }
        Ok((manifest, json(&dir.join("summary.json"))?))
    }
}

impl Error {
    /// The next step.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::File { what: "read", .. } => Some(
                "a run directory has manifest.json, summary.json and events.jsonl; `danki runs` lists them"
                    .to_owned(),
            ),
            Error::Schema { .. } => Some("run the experiment again".to_owned()),
            _ => None,
        }
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(reading(path))?;
    serde_json::from_str(&text).map_err(|e| Error::NotARun { path: path.to_path_buf(), why: e.to_string() })
}

/// Events of a file; lines that this version does not know are left out.
pub fn events(path: &Path) -> Result<Vec<Event>, Error> {
    let lines = BufReader::new(File::open(path).map_err(reading(path))?).lines();
    let mut events = Vec::new();
    for line in lines {
        events.extend(serde_json::from_str(&line.map_err(reading(path))?).ok());
    }
    Ok(events)
}

fn reading(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::File { what: "read", path, source }
}
