//! `[region.database]` and what variants are told of it.

use super::place::{Source, Step};
use super::{Region, Variant};
use crate::BadInput;
use danki_database::{Config, Error};
use std::path::Path;

/// Checks it; the path of its SQL is relative to `dir`.
pub fn resolve(mut config: Config, source: &Source<'_>, dir: &Path) -> Result<Config, BadInput> {
    let place = |key: &str| source.find(&[Step::Key("region"), Step::Key("database"), Step::Key(key)]);
    config.validate().map_err(|error| {
        let key = match &error {
            Error::Setting { key, .. } => key.split('.').next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        BadInput::new(error.to_string()).at(place(&key))
    })?;
    if let Some(sql) = &config.sql {
        let joined = dir.join(sql);
        let found = joined.canonicalize();
        config.sql =
            Some(found.map_err(|error| {
                BadInput::new(format!("sql {}: {error}", joined.display())).at(place("sql"))
            })?);
    }
    // Written down, so that whoever reads the run's manifest need not know classes.
    config.max_connections = Some(config.max_connections());
    Ok(config)
}

/// Tells each function where its database is. Variables that it has already stay as they are.
pub fn connect(variants: &mut [Variant], region: &Region, source: &Source<'_>) -> Result<(), BadInput> {
    for (n, variant) in variants.iter_mut().enumerate() {
        let proxy = variant.db_proxy.as_deref();
        let known = |config: &Config| proxy.is_none_or(|proxy| config.proxy.iter().any(|p| p.name == proxy));
        match &region.database {
            Some(config) if known(config) => {
                for (name, value) in config.variables(proxy, &region.name) {
                    variant.function.environment.entry(name.to_owned()).or_insert(value);
                }
            }
            None if proxy.is_none() => {}
            database => {
                let names = database.iter().flat_map(|d| &d.proxy).map(|p| p.name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                let bad =
                    BadInput::new(format!("db_proxy {:?} is none of the region", proxy.unwrap_or_default()));
                let place = source.find(&[Step::Key("variant"), Step::Index(n), Step::Key("db_proxy")]);
                return Err(bad.at(place).hint(match names.as_str() {
                    "" => "there is no [[region.database.proxy]]".to_owned(),
                    names => format!("there are: {names}"),
                }));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, Options};

    fn parse(text: &str) -> Result<Experiment, String> {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("index.js"), "").expect("written");
        std::fs::write(dir.path().join("seed.sql"), "").expect("written");
        let text =
            format!("name = 'x'\n[function]\ndir = '.'\nenvironment = {{ DB_USERNAME = 'mine' }}\n{text}");
        Experiment::parse(&text, "x.toml", dir.path(), &Options::default()).map_err(|bad| bad.to_string())
    }

    const DATABASE: &str = "[region.database]\nusers = 1\nrtt_ms = 2.0\nsql = 'seed.sql'\n[[region.database.proxy]]\nname = 'small'\n";

    #[test]
    fn functions_are_told_where_their_database_is() {
        let text =
            format!("{DATABASE}[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\ndb_proxy = 'small'\n");
        let experiment = parse(&text).expect("fine");
        let variable = |n: usize, name: &str| experiment.variants[n].function.environment[name].clone();
        assert_eq!(variable(0, "DB_HOST"), "mydb.cluster-c9akciq32rwa.us-east-1.rds.amazonaws.com");
        assert_eq!(variable(1, "DB_HOST"), "small.proxy-c9akciq32rwa.us-east-1.rds.amazonaws.com");
        assert_eq!((variable(1, "DB_PORT").as_str(), variable(1, "DB_USERNAME").as_str()), ("3306", "mine"));
        assert_eq!(experiment.region.paths["database"].rtt_us, 2_000);
        let sql = experiment.region.database.and_then(|d| d.sql).expect("named");
        assert!(sql.is_absolute(), "{sql:?}");
    }

    #[test]
    fn what_is_wrong_is_placed() {
        let check = |text: &str, expect: &[&str]| {
            let said = parse(text).expect_err(text);
            assert!(expect.iter().all(|part| said.contains(part)), "{said}");
        };
        check("[region.database]\nusers = 99000000\n", &["x.toml:6", "users = 99000000", "10,000,000"]);
        check("[region.database]\nsql = 'absent.sql'\n", &["x.toml:6", "absent.sql"]);
        check("[region.database]\nuser_s = 1\n", &["unknown key \"user_s\""]);
        check("[region.database]\nclass = 'db.x.huge'\n", &["db.x.huge"]);
        let other = format!("{DATABASE}[[variant]]\nname = 'a'\ndb_proxy = 'big'\n");
        check(&other, &["x.toml:13", "db_proxy \"big\" is none of the region"]);
        check("[[variant]]\nname = 'a'\ndb_proxy = 'small'\n", &["db_proxy \"small\""]);
    }
}
