//! The account on disk: one JSON file, replaced as a whole, so that a crash leaves the old state or the new one.

use super::Account;
use crate::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the account is kept, if it is.
pub struct Persist {
    dir: PathBuf,
    keep: bool,
}

const FILE: &str = "account.json";

impl Persist {
    /// `keep`: the state survives; otherwise the directory only holds code.
    pub fn open(dir: &Path, keep: bool) -> Result<Persist, Error> {
        fs::create_dir_all(dir.join("code")).map_err(|e| Error::state("create", dir, e))?;
        Ok(Persist { dir: dir.to_path_buf(), keep })
    }

    /// Where code is unpacked.
    pub fn code(&self) -> PathBuf {
        self.dir.join("code")
    }

    /// What was kept.
    pub fn load(&self) -> Result<Account, Error> {
        let path = self.dir.join(FILE);
        if !self.keep {
            return Ok(Account::default());
        }
        match fs::read(&path) {
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|e| Error::State { path, problem: e.to_string() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Account::default()),
            Err(error) => Err(Error::state("read", &path, error)),
        }
    }

    /// Writes the account beside the old one and puts it in its place.
    pub fn save(&self, account: &Account) -> io::Result<()> {
        if !self.keep {
            return Ok(());
        }
        let (path, next) = (self.dir.join(FILE), self.dir.join("account.json.next"));
        let mut file = File::create(&next)?;
        file.write_all(&serde_json::to_vec(account)?)?;
        file.sync_all()?;
        fs::rename(next, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Layer;

    #[test]
    fn state_survives_and_a_broken_file_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let persist = Persist::open(dir.path(), true).expect("opened");
        assert!(persist.load().expect("nothing yet").layers.is_empty());
        let mut account = Account::default();
        account.layers.insert("l".to_owned(), Layer::default());
        persist.save(&account).expect("saved");
        assert!(persist.load().expect("kept").layers.contains_key("l"));
        fs::write(dir.path().join(FILE), "{").expect("written");
        let error = persist.load().expect_err("broken").to_string();
        assert!(error.contains(FILE), "{error}");
    }
}
