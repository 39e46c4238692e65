//! A container image without Docker: this machine's bash with what it links, and one script.

use crate::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tar::{Builder, EntryType, Header};

const BASH: &str = "/bin/bash";

/// Writes an image as `docker save` does: a layer of bash, and one of `script` as `/app/run`, which is its entry point. Below it, the
/// first layer has files that the second takes away and replaces.
///
/// # Errors
/// This machine has no bash or no `ldd`, or the file cannot be written.
pub fn bash_image(archive: &Path, script: &str) -> Result<(), Error> {
    Ok(write(archive, script)?)
}

fn write(archive: &Path, script: &str) -> io::Result<()> {
    let mut base = Builder::new(Vec::new());
    let mut whole: Vec<PathBuf> = linked()?;
    whole.push(BASH.into());
    for path in whole {
        let mut file = File::open(&path)?;
        base.append_file(path.strip_prefix("/").unwrap_or(&path), &mut file)?;
    }
    add(&mut base, "app/run", b"of the layer below", 0o755)?;
    add(&mut base, "app/secret", b"taken away above", 0o644)?;
    link(&mut base, "etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf")?;
    let mut above = Builder::new(Vec::new());
    add(&mut above, "app/run", script.as_bytes(), 0o755)?;
    add(&mut above, "app/.wh.secret", b"", 0o644)?;

    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = serde_json::json!({
        "architecture": architecture, "os": "linux",
        "config": {
            "Entrypoint": ["./run"], "Cmd": ["app.handler"], "WorkingDir": "/app",
            "Env": ["PATH=/app:/bin", "GREETING=from the image", "AWS_REGION=mars"],
        },
    });
    let manifest = serde_json::json!([{ "Config": "config.json", "Layers": ["0/layer.tar", "1/layer.tar"] }]);
    let mut image = Builder::new(File::create(archive)?);
    add(&mut image, "config.json", config.to_string().as_bytes(), 0o644)?;
    add(&mut image, "0/layer.tar", &base.into_inner()?, 0o644)?;
    add(&mut image, "1/layer.tar", &above.into_inner()?, 0o644)?;
    add(&mut image, "manifest.json", manifest.to_string().as_bytes(), 0o644)?;
    image.finish()
}

fn add<W: io::Write>(tar: &mut Builder<W>, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    tar.append_data(&mut header, path, bytes)
}

fn link<W: io::Write>(tar: &mut Builder<W>, path: &str, to: &str) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, path, to)
}

/// The libraries and the loader that bash needs, as `ldd` says.
fn linked() -> io::Result<Vec<PathBuf>> {
    let told = Command::new("ldd").arg(BASH).output()?;
    let words = String::from_utf8_lossy(&told.stdout).into_owned();
    Ok(words.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}
