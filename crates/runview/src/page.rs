//! `report.html`: one file with everything in it. The page is built from TypeScript in `web/` and committed beside this crate
//! (a fresh clone needs no npm; the `web` stage proves that the file equals what the source builds); the run's data go in
//! as deflated JSON, which a browser inflates by itself.

mod data;
mod encode;
mod rows;

pub use data::{
    Calls, Columns, Connections, Cost, Database, EnvLife, Invocations, Page, Spans, assemble, build,
};
pub use rows::DETAILS;

use crate::read::{Error, Run};
use std::fs;
use std::path::{Path, PathBuf};

/// The built page.
const TEMPLATE: &str = include_str!("../assets/report.html");
/// Where the data go.
const MARK: &str = "%DANKI-DATA%";

/// The page of a run.
pub fn html(page: &Page) -> String {
    let json = serde_json::to_vec(page).expect("plain data with string keys");
    let title = format!("{} – danki", page.manifest.name);
    TEMPLATE.replacen("%DANKI-TITLE%", &escape(&title), 1).replacen(MARK, &encode::packed(&json), 1)
}

/// Writes `report.html` into a run directory, from the files in it.
pub fn write_html(dir: &Path) -> Result<PathBuf, Error> {
    let run = Run::read(dir)?;
    let path = dir.join("report.html");
    fs::write(&path, html(&build(&run))).map_err(|e| Error::File {
        what: "write",
        path: path.clone(),
        source: e,
    })?;
    Ok(path)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
