use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Settings, Error> {
    let get =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Settings::read(&get)
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    read(variables).expect("valid settings")
}

fn notes(settings: &Settings) -> Vec<&str> {
    settings.notes.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn defaults_are_awss() {
    let settings = settings(&[]);
    let policy = &settings.policy;
    assert_eq!((settings.port, settings.level, settings.max_connections), (2773, Level::Info, 3));
    assert_eq!(
        (policy.capacity, policy.secret_ttl.as_secs(), policy.parameter_ttl.as_secs()),
        (1000, 300, 300)
    );
    assert!(settings.secrets_timeout.is_zero() && settings.parameters_timeout.is_zero());
    assert!(!settings.ready_at_init && !settings.metrics && !policy.detailed && settings.prefetch.is_empty());
    assert!(
        policy.stale_if_error.is_zero()
            && policy.stale_while_revalidate.is_zero()
            && policy.negative.is_zero()
    );
    // AWS's own lines, as captured.
    let notes = notes(&settings);
    for line in [
        "PARAMETERS_SECRETS_EXTENSION_LOG_LEVEL is not present. Log level set to info.",
        "PARAMETERS_SECRETS_EXTENSION_CACHE_ENABLED is not present. Cache is enabled by default.",
        "PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE is not present. Using default cache size: 1000 objects.",
        "SECRETS_MANAGER_TTL is not present. Setting default time-to-live: 5m0s.",
        "SECRETS_MANAGER_TIMEOUT_MILLIS is not present. Setting default timeout: 0s.",
    ] {
        assert!(notes.contains(&line), "{line}");
    }
}

#[test]
fn awss_settings_are_taken_in_their_ranges() {
    let check = |name: &'static str, value: &'static str, of: &dyn Fn(&Settings) -> u64, expect: u64| {
        let settings = settings(&[(name, value)]);
        assert_eq!(of(&settings), expect, "{name}={value}");
    };
    let port = |settings: &Settings| u64::from(settings.port);
    check("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "8080", &port, 8080);
    check("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "0", &port, 2773);
    check("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "65536", &port, 2773);
    let capacity = |settings: &Settings| settings.policy.capacity as u64;
    check("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", "0", &capacity, 0);
    check("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", "7", &capacity, 7);
    check("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", "1001", &capacity, 1000);
    check("PARAMETERS_SECRETS_EXTENSION_CACHE_ENABLED", "FALSE", &capacity, 0);
    check("PARAMETERS_SECRETS_EXTENSION_CACHE_ENABLED", "TRUE", &capacity, 1000);
    let connections = |settings: &Settings| settings.max_connections as u64;
    check("PARAMETERS_SECRETS_EXTENSION_MAX_CONNECTIONS", "0", &connections, 3);
    check("PARAMETERS_SECRETS_EXTENSION_MAX_CONNECTIONS", "10", &connections, 10);
    let ttl = |settings: &Settings| settings.policy.secret_ttl.as_secs();
    check("SECRETS_MANAGER_TTL", "0", &ttl, 0);
    check("SECRETS_MANAGER_TTL", "299", &ttl, 299);
    check("SECRETS_MANAGER_TTL", "2700", &ttl, 300);
    check("SECRETS_MANAGER_TTL", "soon", &ttl, 300);
    check("SSM_PARAMETER_STORE_TTL", "5", &|settings| settings.policy.parameter_ttl.as_secs(), 5);
    let timeout = |settings: &Settings| u64::try_from(settings.secrets_timeout.as_millis()).expect("small");
    check("SECRETS_MANAGER_TIMEOUT_MILLIS", "1500", &timeout, 1500);
    check("SECRETS_MANAGER_TIMEOUT_MILLIS", "-1", &timeout, 0);
}

#[test]
fn a_ttl_above_the_limit_is_said_in_awss_words() {
    let capped = settings(&[("SECRETS_MANAGER_TTL", "2700")]);
    let line = "SECRETS_MANAGER_TTL exceeds max limit. Setting Secrets Manger TTL to 5m0s.";
    assert!(capped.notes.contains(&(Level::Warn, line.to_owned())));
    let raised = settings(&[("SECRETS_MANAGER_TTL", "2700"), ("DANKI_SECRETS_MAX_TTL", "3600")]);
    assert_eq!(raised.policy.secret_ttl.as_secs(), 2700);
}

#[test]
fn our_own_settings_work_or_are_refused() {
    let settings = settings(&[
        ("DANKI_SECRETS_READY", "init"),
        ("DANKI_SECRETS_PREFETCH", "secretId=a name=/b&withDecryption=true"),
        ("DANKI_SECRETS_STALE_IF_ERROR", "60"),
        ("DANKI_SECRETS_STALE_WHILE_REVALIDATE", "30"),
        ("DANKI_SECRETS_NEGATIVE_TTL", "2"),
        ("DANKI_SECRETS_DETAILED_ERRORS", "true"),
        ("DANKI_SECRETS_METRICS", "1"),
    ]);
    assert!(settings.ready_at_init && settings.metrics && settings.policy.detailed);
    assert_eq!(settings.prefetch.len(), 2);
    assert_eq!(
        settings.policy.stale_if_error.as_secs() + settings.policy.stale_while_revalidate.as_secs(),
        90
    );
    assert_eq!(settings.policy.negative.as_secs(), 2);
    for (name, value) in [
        ("DANKI_SECRETS_READY", "later"),
        ("DANKI_SECRETS_PREFETCH", "prod/db"),
        ("DANKI_SECRETS_NEGATIVE_TTL", "61"),
        ("DANKI_SECRETS_METRICS", "maybe"),
        ("AWS_ENDPOINT_URL", "http://example.com"),
        ("AWS_REGION", "eu central"),
    ] {
        let error = read(&[(name, value)]).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("hint: "), "{error}");
    }
}

#[test]
fn endpoints_follow_region_and_overrides() {
    let host = |variables: &[(&str, &str)]| {
        let settings = settings(variables);
        (settings.secrets.authority(), settings.parameters.authority())
    };
    assert_eq!(
        host(&[("AWS_REGION", "cn-north-1")]),
        (
            "secretsmanager.cn-north-1.amazonaws.com.cn".to_owned(),
            "ssm.cn-north-1.amazonaws.com.cn".to_owned()
        )
    );
    let overridden = [("AWS_ENDPOINT_URL", "https://a:1"), ("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:2")];
    assert_eq!(host(&overridden), ("a:1".to_owned(), "127.0.0.1:2".to_owned()));
}

#[test]
fn credentials_are_found_where_lambda_has_them() {
    let source = |variables: &[(&str, &str)]| settings(variables).credentials;
    assert!(matches!(
        source(&[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]),
        Source::Fixed(_)
    ));
    let uri = |uri| source(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri)]);
    match uri("http://169.254.100.1:9001/2021-04-23/credentials") {
        Source::Container { address, path, .. } => {
            assert_eq!((address.as_str(), path.as_str()), ("169.254.100.1:9001", "/2021-04-23/credentials"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(uri("http://example.com/x"), Source::None(_)));
    assert!(matches!(source(&[]), Source::None(_)));
}
