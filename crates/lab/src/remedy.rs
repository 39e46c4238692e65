//! A finding's remedy, applied to a variant: what `danki bench --verify-advice` runs.

use crate::{Experiment, Variant};
use danki_model::MemoryMb;
use danki_record::Change;

/// SDK v2 for JavaScript keeps connections if it is told so by this.
const SDK_V2: (&str, &str) = ("AWS_NODEJS_CONNECTION_REUSE_ENABLED", "1");
/// All else in Node, by a file that danki puts there.
const KEEP_ALIVE: &str = "--require /var/runtime/keepalive.cjs";

/// The variant with the change, under a name of its own. Nothing where the experiment has no such variant, or cannot have the change.
pub fn remedied(experiment: &Experiment, base: &str, change: &Change) -> Option<Variant> {
    let mut variant = experiment.variants.iter().find(|v| v.name == base)?.clone();
    let what = match change {
        Change::Memory { mb } => {
            variant.function.memory = MemoryMb::try_from(*mb).ok()?;
            format!("{mb}mb")
        }
        Change::Environment { name, value } => {
            variant.function.environment.insert(name.clone(), value.clone());
            "env".to_owned()
        }
        Change::KeepAlive => {
            keep_alive(&mut variant);
            "keep-alive".to_owned()
        }
        Change::ProvisionedConcurrency { envs } => {
            variant.provisioned_concurrency = Some(*envs);
            format!("pc-{envs}")
        }
        Change::NoDbProxy => {
            variant.db_proxy.as_ref()?;
            meet(experiment, &mut variant, None)?;
            "no-proxy".to_owned()
        }
        Change::DbProxy => {
            let proxy =
                experiment.region.database.as_ref()?.proxy.first().filter(|_| variant.db_proxy.is_none())?;
            meet(experiment, &mut variant, Some(&proxy.name))?;
            "proxy".to_owned()
        }
        Change::Ping { every_s } => {
            variant.ping_s = Some(every_s * experiment.time_scale);
            "ping".to_owned()
        }
    };
    variant.name = format!("{base}-{what}");
    Some(variant)
}

fn keep_alive(variant: &mut Variant) {
    let environment = &mut variant.function.environment;
    environment.insert(SDK_V2.0.to_owned(), SDK_V2.1.to_owned());
    let options = environment.entry("NODE_OPTIONS".to_owned()).or_default();
    *options = format!("{options} {KEEP_ALIVE}").trim_start().to_owned();
}

/// The function is told of that proxy, or of the database itself, where it was told of the one or the other.
fn meet(experiment: &Experiment, variant: &mut Variant, proxy: Option<&str>) -> Option<()> {
    let database = experiment.region.database.as_ref()?;
    let before = std::mem::replace(&mut variant.db_proxy, proxy.map(str::to_owned));
    let told = |proxy| database.variables(proxy, &experiment.region.name);
    for (was, is) in told(before.as_deref()).into_iter().zip(told(proxy)) {
        let environment = &mut variant.function.environment;
        if environment.get(was.0) == Some(&was.1) {
            environment.insert(is.0.to_owned(), is.1);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    const TEXT: &str = "name = 'x'\ntime_scale = 10\n[function]\ndir = '.'\nenvironment = { NODE_OPTIONS = '--no-warnings' }\n\
                        [region.database]\nusers = 1\n[[region.database.proxy]]\nname = 'pool'\n\
                        [[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\ndb_proxy = 'pool'\n";

    fn experiment() -> Experiment {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("index.js"), "").expect("written");
        Experiment::parse(TEXT, "x", dir.path(), &Options::default()).expect("fine")
    }

    #[test]
    fn a_remedy_is_a_variant_beside_what_it_is_to_improve() {
        let experiment = experiment();
        let with = |base: &str, change: Change| remedied(&experiment, base, &change);
        let more = with("a", Change::Memory { mb: 512 }).expect("a variant");
        assert_eq!((more.name.as_str(), more.function.memory.mb()), ("a-512mb", 512));
        assert!(with("a", Change::Memory { mb: 1 }).is_none());
        assert!(with("c", Change::KeepAlive).is_none());
        let ready = with("a", Change::ProvisionedConcurrency { envs: 3 }).expect("a variant");
        assert_eq!((ready.name.as_str(), ready.provisioned_concurrency), ("a-pc-3", Some(3)));
        let pinged = with("a", Change::Ping { every_s: 5.0 }).expect("a variant");
        assert_eq!((pinged.name.as_str(), pinged.ping_s), ("a-ping", Some(50.0)));
        let kept = with("a", Change::KeepAlive).expect("a variant").function.environment;
        assert_eq!(kept["NODE_OPTIONS"], "--no-warnings --require /var/runtime/keepalive.cjs");
        assert_eq!(kept["AWS_NODEJS_CONNECTION_REUSE_ENABLED"], "1");
    }

    #[test]
    fn with_and_without_a_proxy_the_function_meets_the_other() {
        let experiment = experiment();
        let direct = remedied(&experiment, "b", &Change::NoDbProxy).expect("a variant");
        let [a, b] = experiment.variants.as_slice() else { panic!("two variants") };
        assert_ne!(a.function.environment["DB_HOST"], b.function.environment["DB_HOST"]);
        assert_eq!(direct.function.environment, a.function.environment);
        assert_eq!((direct.name.as_str(), direct.db_proxy), ("b-no-proxy", None));
        assert!(remedied(&experiment, "a", &Change::NoDbProxy).is_none());
        let shared = remedied(&experiment, "a", &Change::DbProxy).expect("a variant");
        assert_eq!(shared.function.environment, b.function.environment);
        assert_eq!((shared.name.as_str(), shared.db_proxy.as_deref()), ("a-proxy", Some("pool")));
        assert!(remedied(&experiment, "b", &Change::DbProxy).is_none());
    }
}
