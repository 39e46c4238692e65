//! Hot reload: code in a directory of the user's own is deployed anew when a file there changes.
//!
//! Looked at once a second instead of being told by the kernel: a notification would need a watch per directory, and editors replace
//! files in more ways than one would like to know.

use crate::api::Api;
use crate::deploy;
use crate::store::Version;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const EVERY: Duration = Duration::from_secs(1);
/// Entries looked at per directory; beyond it changes are not noticed.
const ENTRIES: usize = 20_000;

/// What a directory looked like: number of entries, and the newest time.
type Look = (usize, Option<SystemTime>);

/// Watches until aborted.
pub async fn watch(api: Arc<Api>) {
    let mut seen: BTreeMap<(String, String, PathBuf), Look> = BTreeMap::new();
    let mut tick = tokio::time::interval(EVERY);
    loop {
        tick.tick().await;
        let local = local(&api);
        if local.is_empty() {
            seen.clear();
            continue;
        }
        let looked = tokio::task::spawn_blocking(move || {
            local.into_iter().map(|(key, since)| (look(&key.2), key, since)).collect::<Vec<_>>()
        });
        let Ok(looked) = looked.await else { continue };
        let mut now = BTreeMap::new();
        for (look, key, since) in looked {
            let changed = match seen.get(&key) {
                Some(before) => *before != look,
                // Not seen before: a change since the deployment may have come before the first look.
                None => look.1 > Some(since),
            };
            if changed {
                deploy::deploy(&api, &key.0, &key.1);
            }
            now.insert(key, look);
        }
        seen = now;
    }
}

/// Function, version and directory; and since when the version is as it is.
fn local(api: &Api) -> Vec<((String, String, PathBuf), SystemTime)> {
    let account = api.account();
    let functions = account.functions.values();
    let versions = functions.flat_map(|f| f.versions.values().chain([&f.latest]).map(move |v| (f, v)));
    let local = versions.filter(|(_, v)| v.code.local);
    let since = |v: &Version| SystemTime::UNIX_EPOCH + Duration::from_millis(v.modified_ms);
    local.map(|(f, v)| ((f.name.clone(), v.number.clone(), v.code.dir.clone()), since(v))).collect()
}

fn look(dir: &Path) -> Look {
    if let Ok(image) = dir.metadata()
        && image.is_file()
    {
        return (1, image.modified().ok());
    }
    let (mut count, mut newest) = (0, None);
    let mut rest = vec![dir.to_path_buf()];
    while let Some(dir) = rest.pop() {
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            count += 1;
            if count > ENTRIES {
                return (count, newest);
            }
            // The entry itself, not what a link leads to: a link may lead in a circle.
            let Ok(metadata) = entry.metadata() else { continue };
            newest = newest.max(metadata.modified().ok());
            if metadata.is_dir() {
                rest.push(entry.path());
            }
        }
    }
    (count, newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_changes_the_look() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("sub")).expect("made");
        let before = look(dir.path());
        assert_eq!(look(dir.path()), before);
        std::fs::write(dir.path().join("sub/app.py"), "x").expect("written");
        assert_ne!(look(dir.path()), before);
        let image = look(&dir.path().join("sub/app.py"));
        assert!(image.0 == 1 && image.1.is_some(), "a file is looked at itself");
    }
}
