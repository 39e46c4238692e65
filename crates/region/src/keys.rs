//! RSA-2048 keys of the CA, kept from run to run.
//!
//! AWS's chains are RSA-2048, and verifying them is CPU that a small function pays, so these must be RSA too. `ring`
//! signs with RSA keys but cannot make them; the `rsa` crate can, in a few hundred ms each. Its advisory about timing
//! (RUSTSEC-2023-0071) concerns private-key operations, which are `ring`'s here: it only makes keys.

use crate::Error;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use rsa::rand_core::OsRng;
use std::io::Write;
use std::path::Path;
use std::thread;

/// Size of all keys, as in AWS's chains.
const BITS: usize = 2048;

/// The CA's private keys as PKCS#8 PEM.
pub(crate) struct Keys {
    pub(crate) root: String,
    pub(crate) intermediate: String,
    pub(crate) leaf: String,
}

/// Takes the keys from `dir`, makes those that are missing (side by side) and keeps them there.
pub(crate) fn load_or_make(dir: Option<&Path>) -> Result<Keys, Error> {
    if let Some(dir) = dir {
        std::fs::create_dir_all(dir).map_err(|source| Error::KeyFile { path: dir.to_owned(), source })?;
    }
    thread::scope(|scope| {
        let [root, intermediate, leaf] =
            ["root", "intermediate", "leaf"].map(|name| scope.spawn(move || one(dir, name)));
        let join = |made: thread::ScopedJoinHandle<'_, Result<String, Error>>| {
            made.join()
                .unwrap_or_else(|_| Err(Error::Broken("the thread that makes a key panicked".to_owned())))
        };
        Ok(Keys { root: join(root)?, intermediate: join(intermediate)?, leaf: join(leaf)? })
    })
}

fn one(dir: Option<&Path>, name: &str) -> Result<String, Error> {
    let Some(dir) = dir else { return make() };
    let path = dir.join(format!("{name}-key.pem"));
    match std::fs::read_to_string(&path) {
        // A file that holds no key (cut off, emptied) is made anew rather than complained about.
        Ok(pem) if rcgen::KeyPair::from_pem(&pem).is_ok() => return Ok(pem),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::KeyFile { path, source }),
    }
    let pem = make()?;
    keep(dir, &path, &pem).map_err(|source| Error::KeyFile { path, source })?;
    Ok(pem)
}

fn make() -> Result<String, Error> {
    let key = rsa::RsaPrivateKey::new(&mut OsRng, BITS).map_err(|e| Error::Key(e.to_string()))?;
    let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(|e| Error::Key(e.to_string()))?;
    Ok(pem.as_str().to_owned())
}

/// Written beside and renamed: another danki starting now sees a whole key or none. The file is the owner's only.
fn keep(dir: &Path, path: &Path, pem: &str) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(pem.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
