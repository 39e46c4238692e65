//! An archive is somebody else's bytes: it becomes files inside of its root, or is refused. What lies beside the root stays as it was.
//! The input is the archive; or, after a first byte of 1, one layer of an archive that is otherwise right.
#![no_main]

use danki_image::{Limits, unpack_from};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::OnceLock;

fuzz_target!(|data: &[u8]| {
    static DIR: OnceLock<tempfile::TempDir> = OnceLock::new();
    let dir = DIR.get_or_init(|| tempfile::tempdir().expect("a directory")).path();
    let root = dir.join("root");
    fs::create_dir(&root).expect("made");
    fs::write(dir.join("kept"), "x").expect("written");
    let archive = match data.split_first() {
        Some((1, layer)) => saved(layer),
        _ => data.to_vec(),
    };
    let _ = unpack_from(Cursor::new(archive), &root, Limits { bytes: 1 << 20, entries: 1_000 });
    assert_eq!(fs::read(dir.join("kept")).expect("still there"), b"x");
    assert_eq!(names(dir), 2, "something beside the root");
    fs::remove_dir_all(&root).expect("nothing in it resists");
});

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).expect("readable").count()
}

/// An archive of one layer, as `docker save` writes it.
fn saved(layer: &[u8]) -> Vec<u8> {
    let files: [(&str, &[u8]); 3] = [
        ("c.json", br#"{"architecture":"amd64","os":"linux"}"#),
        ("layer.tar", layer),
        ("manifest.json", br#"[{"Config":"c.json","Layers":["layer.tar"]}]"#),
    ];
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, bytes).expect("in memory");
    }
    tar.into_inner().expect("in memory")
}
