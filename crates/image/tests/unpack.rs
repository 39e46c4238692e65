//! Images as tools write them, and as nobody should.
#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_image::{Config, Error, Limits, unpack, unpack_from};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::json;
use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// One entry of a layer.
#[derive(Clone, Debug)]
enum Entry {
    File(&'static str, &'static str, u32),
    Dir(&'static str),
    Symlink(&'static str, &'static str),
    HardLink(&'static str, &'static str),
}
use Entry::{Dir, File, HardLink, Symlink};

fn tar_of(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_gnu();
        header.set_mtime(1_600_000_000);
        header.set_mode(0o755);
        let (name, content, kind, target) = match entry {
            File(name, content, mode) => {
                header.set_mode(*mode);
                (name, *content, EntryType::Regular, None)
            }
            Dir(name) => (name, "", EntryType::Directory, None),
            Symlink(name, target) => (name, "", EntryType::Symlink, Some(target)),
            HardLink(name, target) => (name, "", EntryType::Link, Some(target)),
        };
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        // As they are: the builder would refuse names that climb.
        raw(&mut header.as_old_mut().name, name);
        if let Some(target) = target {
            raw(&mut header.as_old_mut().linkname, target);
        }
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap()
}

fn raw(field: &mut [u8], text: &str) {
    field[..text.len()].copy_from_slice(text.as_bytes());
}

fn files(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    tar.into_inner().unwrap()
}

fn configuration() -> Vec<u8> {
    let process = json!({
        "Entrypoint": ["/lambda-entrypoint.sh"], "Cmd": ["app.handler"], "WorkingDir": "/var/task",
        "Env": ["PATH=/usr/bin", "EMPTY=", "LONG=a=b"],
    });
    json!({ "architecture": "amd64", "os": "linux", "config": process }).to_string().into_bytes()
}

/// As the older `docker save` writes it.
fn saved(layers: &[Vec<u8>]) -> Vec<u8> {
    let names: Vec<String> = (0..layers.len()).map(|n| format!("{n}/layer.tar")).collect();
    let manifest = json!([{ "Config": "c.json", "RepoTags": ["x:latest"], "Layers": names }]);
    let mut all = vec![("c.json".to_owned(), configuration())];
    all.extend(names.into_iter().zip(layers.iter().cloned()));
    all.push(("manifest.json".to_owned(), manifest.to_string().into_bytes()));
    files(&all)
}

fn sha256(bytes: &[u8]) -> String {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// An OCI archive: an index of two platforms and an attestation.
fn oci(layers: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let blob = |bytes: &[u8]| (format!("blobs/sha256/{}", sha256(bytes)), bytes.to_vec());
    let describe =
        |bytes: &[u8]| json!({ "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len() });
    let config = configuration();
    let described: Vec<_> = layers.iter().map(|layer| describe(layer)).collect();
    let manifest =
        json!({ "schemaVersion": 2, "config": describe(&config), "layers": described }).to_string();
    let platform = |os: &str, architecture: &str| {
        let mut descriptor = describe(manifest.as_bytes());
        descriptor["platform"] = json!({ "os": os, "architecture": architecture });
        descriptor
    };
    let inner = json!({ "manifests": [platform("linux", "arm64"), platform("linux", "amd64"), platform("unknown", "unknown")] });
    let inner = inner.to_string();
    let mut top = describe(inner.as_bytes());
    top["mediaType"] = json!("application/vnd.oci.image.index.v1+json");
    let mut all = vec![blob(&config), blob(manifest.as_bytes()), blob(inner.as_bytes())];
    all.extend(layers.iter().map(|layer| blob(layer)));
    all.push(("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
    all.push(("index.json".to_owned(), json!({ "manifests": [top] }).to_string().into_bytes()));
    all
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Two frames and one to be skipped between them, as chunked layers have them.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let frame =
        |part: &[u8]| ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest);
    let (one, two) = bytes.split_at(bytes.len() / 2);
    let skipped = [&0x184d_2a5a_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
    [frame(one), skipped, frame(two)].concat()
}

/// A directory whose `root` is the image's, and what it looks like.
fn unpacked(archive: &[u8]) -> (tempfile::TempDir, Result<Config, Error>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    let config = unpack_from(Cursor::new(archive), &root, Limits { bytes: 1 << 20, entries: 1_000 });
    (dir, config)
}

fn listed(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = vec![root.to_path_buf()];
    while let Some(dir) = rest.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => {
                    all.push(format!("{name}/"));
                    rest.push(path);
                }
                kind if kind.is_symlink() => {
                    all.push(format!("{name} -> {}", fs::read_link(path).unwrap().display()));
                }
                _ => all.push(format!("{name} = {}", fs::read_to_string(path).unwrap())),
            }
        }
    }
    all.sort();
    all
}

#[test]
fn layers_go_over_each_other_with_whiteouts() {
    let base = tar_of(&[
        Dir("usr"),
        Dir("usr/lib"),
        Symlink("lib", "/usr/lib"),
        File("usr/lib/a", "one", 0o644),
        File("usr/lib/gone", "x", 0o644),
        Dir("opaque"),
        Dir("opaque/deep"),
        File("opaque/deep/old", "x", 0o644),
        File("etc/was-a-file", "x", 0o644),
        File("bin/run", "#!", 0o4755),
        HardLink("bin/also", "bin/run"),
    ]);
    let above = tar_of(&[
        // What the same layer adds stays, wherever the whiteout stands.
        File("opaque/new", "y", 0o644),
        File("opaque/.wh..wh..opq", "", 0o644),
        File("lib/.wh.gone", "", 0o644),
        // Through the base's link, into its directory.
        File("lib/b", "two", 0o600),
        Dir("etc/was-a-file"),
        File("etc/was-a-file/now", "in a directory", 0o644),
        File(".wh..wh.plnk", "", 0o644),
    ]);
    let expect = [
        "bin/",
        "bin/also = #!",
        "bin/run = #!",
        "etc/",
        "etc/was-a-file/",
        "etc/was-a-file/now = in a directory",
        "lib -> /usr/lib",
        "opaque/",
        "opaque/new = y",
        "usr/",
        "usr/lib/",
        "usr/lib/a = one",
        "usr/lib/b = two",
    ];
    let forms = [
        ("saved", saved(&[base.clone(), above.clone()])),
        ("gzip", saved(&[gzipped(&base), above.clone()])),
        ("zstd", saved(&[base.clone(), zstd(&above)])),
        ("oci", files(&oci(&[gzipped(&base), zstd(&above)]))),
    ];
    for (form, archive) in forms {
        let (dir, config) = unpacked(&archive);
        let config = config.unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(config.command(None, None), ["/lambda-entrypoint.sh", "app.handler"]);
        let root = dir.path().join("root");
        assert_eq!(listed(&root), expect, "{form}");
        let run = fs::metadata(root.join("bin/run")).unwrap();
        // Not setuid, with its time, and one file with two names.
        assert_eq!(
            (run.permissions().mode() & 0o7777, run.mtime(), run.nlink()),
            (0o755, 1_600_000_000, 2),
            "{form}"
        );
    }
}

#[test]
fn commands_are_replaced_as_docker_does() {
    let (_dir, config) = unpacked(&saved(&[]));
    let config = config.unwrap();
    let (entry, command) = (["/e".to_owned()], ["c".to_owned()]);
    assert_eq!(config.command(None, Some(&command)), ["/lambda-entrypoint.sh", "c"]);
    assert_eq!(config.command(Some(&entry), None), ["/e"]);
    assert_eq!(config.command(Some(&entry), Some(&command)), ["/e", "c"]);
    let variables = config.variables();
    assert_eq!((variables["LONG"].as_str(), variables["EMPTY"].as_str()), ("a=b", ""));
}

#[test]
fn an_image_is_unpacked_once() {
    let dir = tempfile::tempdir().unwrap();
    let (file, into) = (dir.path().join("image.tar"), dir.path().join("images"));
    fs::write(&file, files(&oci(&[tar_of(&[File("a", "x", 0o644)])]))).unwrap();
    let first = unpack(&file, &into, "amd64").unwrap();
    fs::write(first.root.join("mark"), "").unwrap();
    assert_eq!(unpack(&file, &into, "amd64").unwrap(), first);
    assert!(first.root.join("mark").exists() && first.root.join("a").exists());
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1, "nothing partial stays");
    let other = unpack(&file, &into, "riscv64").unwrap_err().to_string();
    assert!(other.contains("linux/arm64, linux/amd64") && other.contains("linux/riscv64"), "{other}");
}

#[test]
fn what_is_no_image_says_so() {
    let layer = tar_of(&[File("a", "x", 0o644)]);
    let told = |archive: &[u8]| unpacked(archive).1.unwrap_err().to_string();
    let mut cut = oci(std::slice::from_ref(&layer));
    let place = cut.iter().position(|(_, bytes)| *bytes == layer).unwrap();
    cut[place].1[600] ^= 1;
    let mut missing = oci(std::slice::from_ref(&layer));
    missing.remove(place);
    let two = json!([{ "Config": "c", "Layers": [] }, { "Config": "c", "Layers": [] }]).to_string();
    for (archive, expect) in [
        (files(&[("x".to_owned(), Vec::new())]), "neither manifest.json nor index.json"),
        (gzipped(&saved(&[])), "gunzip it"),
        (b"not a tar at all".repeat(100), "cannot be read"),
        (files(&cut), "do not have this digest"),
        (files(&missing), "is not in the archive"),
        (files(&[("manifest.json".to_owned(), two.into_bytes())]), "2 images"),
        (files(&[("index.json".to_owned(), b"{}".to_vec())]), "index.json: missing field"),
        (saved(&[tar_of(&[File("../evil", "x", 0o644)])]), "the path climbs"),
        (saved(&[tar_of(&[HardLink("a", "../../etc/passwd")])]), "a link that climbs"),
        (saved(&[tar_of(&[HardLink("a", "nothing")])]), "No such file"),
        (saved(&[gzipped(&vec![0; 16 << 20])]), "bytes of layers"),
    ] {
        let said = told(&archive);
        assert!(said.contains(expect), "{said}\nlacks {expect}");
    }
    let long: Vec<Entry> = vec![File("f", "0123456789", 0o644); 3];
    let (_dir, small) = {
        let dir = tempfile::tempdir().unwrap();
        let archive = saved(&[tar_of(&long)]);
        let result = unpack_from(Cursor::new(archive), dir.path(), Limits { bytes: 25, entries: 100 });
        (dir, result)
    };
    assert!(small.unwrap_err().to_string().contains("bytes of files"));
}

/// Names, and targets of links, that lead everywhere.
const NAMES: [&str; 16] = [
    "a",
    "b",
    "a/b",
    "a/b/c",
    "l",
    "l/x",
    "l/../x",
    "../x",
    "/x",
    "..",
    ".wh.a",
    "a/.wh..wh..opq",
    "l/.wh.x",
    ".wh...",
    ".wh..",
    "l/.wh...",
];
const TARGETS: [&str; 9] =
    ["/", "..", "../..", "../outside", "/outside", "a", "l", "/proc/self/root", "../../../../tmp"];

fn entry() -> impl Strategy<Value = Entry> {
    let name = || prop::sample::select(&NAMES[..]);
    let target = || prop::sample::select(&TARGETS[..]);
    prop_oneof![
        name().prop_map(|name| File(name, "content", 0o644)),
        name().prop_map(Dir),
        (name(), target()).prop_map(|(name, target)| Symlink(name, target)),
        (name(), target()).prop_map(|(name, target)| HardLink(name, target)),
        (name(), name()).prop_map(|(name, target)| HardLink(name, target)),
    ]
}

proptest! {
    /// Beside the root lies a directory that links lead to; it and all around it stays as it was.
    #[test]
    fn nothing_outside_of_the_root_is_touched(layers in prop::collection::vec(prop::collection::vec(entry(), 0..8), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        for made in [&root, &outside] {
            fs::create_dir(made).unwrap();
        }
        fs::write(outside.join("x"), "kept").unwrap();
        symlink(&outside, dir.path().join("l")).unwrap();
        let before = listed(&outside);
        let layers: Vec<Vec<u8>> = layers.iter().map(|layer| tar_of(layer)).collect();
        let _ = unpack_from(Cursor::new(saved(&layers)), &root, Limits { bytes: 1 << 16, entries: 100 });
        prop_assert_eq!(listed(&outside), before);
        let mut beside: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        beside.sort();
        prop_assert_eq!(beside, ["l", "outside", "root"]);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_unpacked(change in any::<u8>(), at in 0_usize..6_000, cut in 0_usize..6_000) {
        let mut archive = saved(&[tar_of(&[File("a", "x", 0o644), Symlink("l", "a")])]);
        if let Some(byte) = archive.get_mut(at) {
            *byte ^= change;
        }
        archive.truncate(archive.len().saturating_sub(cut / 4));
        let _ = unpacked(&archive);
    }
}
