//! `danki layer build`: `danki-secrets` as a Lambda layer, from this source tree. The name of the file inside is that of AWS's
//! extension, because tools look for it.

use crate::args::LayerBuild;
use crate::exit::{Exit, Failure};
use crate::paths;
use crate::terminal;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Lambda finds it below `/opt`.
const INSIDE: &str = "extensions/AWSParametersAndSecretsLambdaExtension";

/// Builds the binary, and a layer from it: as a directory, which experiments can name, and as a zip, which Lambda takes.
pub fn build(options: &LayerBuild) -> Result<Exit, Failure> {
    let target = format!("{}-unknown-linux-musl", options.arch.name());
    let source = paths::source_tree().ok_or_else(|| {
        Failure::usage("danki-secrets is built from danki's source tree, which is not here")
            .hint("run it inside a clone of the repository")
    })?;
    let binary = compile(&source, &target, options.arch.name())?;
    let bytes = fs::read(&binary)
        .map_err(|error| Failure::machine(format!("cannot read {}: {error}", binary.display())))?;
    if elf(&bytes) != Some((machine(options.arch.name()), Linked::Statically)) {
        return Err(Failure::machine(format!("{} is no static binary for {target}", binary.display()))
            .hint("RUSTFLAGS and cargo's configuration must not change how it is linked"));
    }
    let out = options.out.clone().unwrap_or_else(|| source.join("target/layers"));
    let folder = out.join(format!("danki-secrets-{}", options.arch.name()));
    let zip = folder.with_extension("zip");
    let cannot =
        |error: &dyn std::fmt::Display| Failure::usage(format!("cannot write {}: {error}", out.display()));
    unpack(&binary, &folder).map_err(|error| cannot(&error))?;
    pack(&binary, &zip).map_err(|error| cannot(&error))?;
    let line = |path: &Path| format!("{} ({} bytes)\n", path.display(), size(path));
    terminal::print(&(line(&zip) + &line(&folder.join(INSIDE))));
    Ok(Exit::Fine)
}

fn compile(source: &Path, target: &str, arch: &str) -> Result<PathBuf, Failure> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(source).args(["build", "--locked", "--profile", "layer", "--package", "danki-secrets"]);
    cargo.args(["--target", target]);
    need_target(source, target)?;
    let underscored = target.replace('-', "_");
    // ring has some C, which needs no C library: any compiler for the architecture does.
    cargo.env(format!("CC_{underscored}"), compiler(arch)?);
    // The linker that comes with the compiler of Rust: the system's may not know the architecture.
    if arch != std::env::consts::ARCH {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", underscored.to_uppercase()), "rust-lld");
    }
    let status = cargo.status().map_err(|error| {
        Failure::machine(format!("cannot start cargo: {error}")).hint("https://rustup.rs installs it")
    })?;
    if !status.success() {
        return Err(Failure::machine(format!("cargo could not build danki-secrets for {target}: {status}")));
    }
    Ok(source.join("target").join(target).join("layer/danki-secrets"))
}

/// Whether a binary needs a loader and libraries of the system that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linked {
    Statically,
    Dynamically,
}

/// ELF's number of an architecture (`e_machine`).
fn machine(arch: &str) -> u16 {
    if arch == "aarch64" { 183 } else { 62 }
}

/// Architecture and linking of a 64-bit little-endian ELF file: dynamic if there is a program header that names a loader.
fn elf(bytes: &[u8]) -> Option<(u16, Linked)> {
    const LOADER: u64 = 3; // PT_INTERP
    let number = |at: usize, length: usize| {
        let field = bytes.get(at..at.checked_add(length)?)?;
        Some(field.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds = (0..count).map(|index| number(usize::try_from(headers.checked_add(index * size)?).ok()?, 4));
    let kinds = kinds.collect::<Option<Vec<_>>>()?;
    let linked = if kinds.contains(&LOADER) { Linked::Dynamically } else { Linked::Statically };
    Some((u16::try_from(number(18, 2)?).ok()?, linked))
}

fn need_target(source: &Path, target: &str) -> Result<(), Failure> {
    let printed = Command::new("rustc").current_dir(source).args(["--print", "sysroot"]).output();
    let sysroot = printed.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let installed = sysroot.is_some_and(|root| Path::new(&root).join("lib/rustlib").join(target).is_dir());
    if installed {
        return Ok(());
    }
    Err(Failure::machine(format!("Rust's standard library for {target} is not installed"))
        .hint(format!("rustup target add {target}")))
}

fn compiler(arch: &str) -> Result<PathBuf, Failure> {
    let names: &[&str] = match arch {
        _ if arch == std::env::consts::ARCH => &["musl-gcc", "cc"],
        "aarch64" => &["aarch64-linux-gnu-gcc", "aarch64-linux-musl-gcc"],
        _ => &["x86_64-linux-gnu-gcc", "x86_64-linux-musl-gcc"],
    };
    let found = paths::search_path().into_iter().flat_map(|dir| names.iter().map(move |name| dir.join(name)));
    let found = found
        .filter(|path| path.is_file())
        .min_by_key(|path| names.iter().position(|name| path.ends_with(name)));
    found.ok_or_else(|| {
        let package = if arch == "aarch64" { "gcc-aarch64-linux-gnu" } else { "gcc-x86-64-linux-gnu" };
        Failure::machine(format!("no C compiler for {arch}: {}", names.join(", ")))
            .hint(format!("on Debian: apt-get install {package}"))
    })
}

fn unpack(binary: &Path, folder: &Path) -> std::io::Result<()> {
    let inside = folder.join(INSIDE);
    fs::create_dir_all(inside.parent().unwrap_or(folder))?;
    fs::copy(binary, &inside)?;
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755))
}

fn pack(binary: &Path, zip: &Path) -> zip::result::ZipResult<()> {
    let mut writer = zip::ZipWriter::new(File::create(zip)?);
    // Without a date: the same binary makes the same zip.
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
    writer.start_file(INSIDE, options)?;
    writer.write_all(&fs::read(binary)?)?;
    writer.finish()?;
    Ok(())
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map(|found| found.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn architecture_and_linking_are_read() {
        let file = |arch: u8, kind: u8| {
            let mut bytes = vec![0; 64 + 56];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            (bytes[18], bytes[32], bytes[54], bytes[56], bytes[64]) = (arch, 64, 56, 1, kind);
            bytes
        };
        assert_eq!(elf(&file(62, 1)), Some((machine("x86_64"), Linked::Statically)));
        assert_eq!(elf(&file(183, 3)), Some((machine("aarch64"), Linked::Dynamically)));
        assert_eq!(elf(&file(62, 1)[..64]), None);
        assert_eq!(elf(b"#!/bin/sh"), None);
        let test = fs::read(std::env::current_exe().expect("it runs")).expect("readable");
        assert_eq!(elf(&test), Some((machine(std::env::consts::ARCH), Linked::Dynamically)));
    }

    #[test]
    fn a_layer_has_the_extension_where_lambda_looks() {
        let folder = tempfile::tempdir().expect("a folder");
        let binary = folder.path().join("binary");
        fs::write(&binary, b"not really").expect("written");
        let (layer, zip) = (folder.path().join("layer"), folder.path().join("layer.zip"));
        unpack(&binary, &layer).expect("unpacked");
        pack(&binary, &zip).expect("packed");
        let first = fs::read(&zip).expect("a zip");
        pack(&binary, &zip).expect("packed again");
        assert_eq!(first, fs::read(&zip).expect("a zip"));
        let mode = fs::metadata(layer.join(INSIDE)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        let mut archive = zip::ZipArchive::new(File::open(&zip).expect("a zip")).expect("a zip");
        let mut inside =
            archive.by_name("extensions/AWSParametersAndSecretsLambdaExtension").expect("it is there");
        assert_eq!(inside.unix_mode().map(|mode| mode & 0o777), Some(0o755));
        let mut text = String::new();
        inside.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "not really");
    }
}
