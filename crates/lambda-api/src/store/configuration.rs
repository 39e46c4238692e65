//! The settings of a version, and changes to them.

use crate::fault::Fault;
use danki_model::{environment, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is fixed when a version is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    pub description: String,
    pub role: String,
    pub handler: String,
    pub runtime: String,
    pub memory_mb: u32,
    pub timeout_s: u32,
    pub ephemeral_mb: u32,
    pub environment: Option<BTreeMap<String, String>>,
    /// ARNs of layer versions.
    pub layers: Vec<String>,
    pub tracing: String,
    pub architecture: String,
    pub vpc: Option<Value>,
    pub dead_letter: Option<String>,
    pub kms_key: Option<String>,
    pub logging: LogSettings,
    /// `Zip` or `Image`.
    pub package_type: String,
    /// Instead of what an image itself says.
    #[serde(default)]
    pub image: ImageSettings,
}

/// `ImageConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ImageSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_point: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

/// `LoggingConfig`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LogSettings {
    #[serde(default = "text")]
    pub log_format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_log_level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_log_level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_group: Option<String>,
}

fn text() -> String {
    "Text".to_owned()
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            log_format: text(),
            application_log_level: None,
            system_log_level: None,
            log_group: None,
        }
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Configuration {
            description: String::new(),
            role: String::new(),
            handler: String::new(),
            runtime: String::new(),
            memory_mb: 128,
            timeout_s: 3,
            ephemeral_mb: 512,
            environment: None,
            layers: Vec::new(),
            tracing: "PassThrough".to_owned(),
            architecture: "x86_64".to_owned(),
            vpc: None,
            dead_letter: None,
            kms_key: None,
            logging: LogSettings::default(),
            package_type: "Zip".to_owned(),
            image: ImageSettings::default(),
        }
    }
}

/// Settings as CreateFunction and UpdateFunctionConfiguration carry them; what is absent stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Change {
    pub description: Option<String>,
    pub role: Option<String>,
    pub handler: Option<String>,
    pub runtime: Option<String>,
    pub memory_size: Option<i64>,
    pub timeout: Option<i64>,
    pub ephemeral_storage: Option<Size>,
    pub environment: Option<Variables>,
    pub layers: Option<Vec<String>>,
    pub tracing_config: Option<Mode>,
    pub vpc_config: Option<Value>,
    pub dead_letter_config: Option<Target>,
    #[serde(rename = "KMSKeyArn")]
    pub kms_key_arn: Option<String>,
    pub logging_config: Option<LogSettings>,
    pub snap_start: Option<ApplyOn>,
    pub file_system_configs: Option<Vec<Value>>,
    pub image_config: Option<ImageSettings>,
    pub revision_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Size {
    pub size: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Variables {
    pub variables: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Mode {
    pub mode: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Target {
    pub target_arn: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ApplyOn {
    pub apply_on: String,
}

impl Change {
    /// The settings after the change, or what is wrong with it.
    pub fn apply(self, now: &Configuration) -> Result<Configuration, Fault> {
        self.refuse_what_is_missing()?;
        let mut next = now.clone();
        next.memory_mb = within(self.memory_size, next.memory_mb, "memorySize", 128, 10_240)?;
        next.timeout_s = within(self.timeout, next.timeout_s, "timeout", 1, 900)?;
        let size = self.ephemeral_storage.map(|s| s.size);
        next.ephemeral_mb = within(size, next.ephemeral_mb, "ephemeralStorage.size", 512, 10_240)?;
        set(&mut next.description, self.description);
        set(&mut next.handler, self.handler);
        if let Some(role) = self.role {
            next.role = checked_role(role)?;
        }
        if let Some(runtime) = self.runtime {
            next.runtime = checked_runtime(runtime)?;
        }
        if let Some(mode) = self.tracing_config {
            next.tracing = one_of(mode.mode, "tracingConfig.mode", &["Active", "PassThrough"])?;
        }
        if let Some(Variables { variables }) = self.environment {
            check_environment(&variables)?;
            next.environment = (!variables.is_empty()).then_some(variables);
        }
        if let Some(layers) = self.layers {
            if layers.len() > limits::LAYERS {
                return Err(Fault::invalid("Cannot reference more than 5 layers."));
            }
            next.layers = layers;
        }
        next.vpc = self.vpc_config.or(next.vpc);
        if let Some(target) = self.dead_letter_config {
            next.dead_letter = target.target_arn.filter(|arn| !arn.is_empty());
        }
        next.kms_key = self.kms_key_arn.or(next.kms_key);
        if let Some(logging) = self.logging_config {
            next.logging = checked_logging(logging)?;
        }
        if let Some(image) = self.image_config {
            next.image = checked_image(image)?;
        }
        Ok(next)
    }

    fn refuse_what_is_missing(&self) -> Result<(), Fault> {
        if self.snap_start.as_ref().is_some_and(|s| s.apply_on != "None") {
            return Err(Fault::invalid("danki does not offer SnapStart; leave SnapStart out"));
        }
        if self.file_system_configs.as_ref().is_some_and(|f| !f.is_empty()) {
            return Err(Fault::invalid("danki does not offer EFS; leave FileSystemConfigs out"));
        }
        Ok(())
    }
}

fn set(value: &mut String, next: Option<String>) {
    if let Some(next) = next {
        *value = next;
    }
}

fn within(asked: Option<i64>, now: u32, member: &str, low: u32, high: u32) -> Result<u32, Fault> {
    let Some(asked) = asked else { return Ok(now) };
    if asked < i64::from(low) {
        let constraint = format!("Member must have value greater than or equal to {low}");
        return Err(Fault::constraint(&asked.to_string(), member, &constraint));
    }
    match u32::try_from(asked) {
        Ok(value) if value <= high => Ok(value),
        _ => {
            let constraint = format!("Member must have value less than or equal to {high}");
            Err(Fault::constraint(&asked.to_string(), member, &constraint))
        }
    }
}

fn one_of(value: String, member: &str, allowed: &[&str]) -> Result<String, Fault> {
    if allowed.contains(&value.as_str()) {
        return Ok(value);
    }
    let constraint = format!("Member must satisfy enum value set: [{}]", allowed.join(", "));
    Err(Fault::constraint(&value, member, &constraint))
}

fn checked_role(role: String) -> Result<String, Fault> {
    let parts: Vec<&str> = role.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", _, "iam", _, account, name]
            if account.len() == 12 && name.len() > 5 && name.starts_with("role/") =>
        {
            Ok(role)
        }
        _ => {
            let pattern = "Member must satisfy regular expression pattern: \
                           arn:(aws[a-zA-Z-]*)?:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+";
            Err(Fault::constraint(&role, "role", pattern))
        }
    }
}

fn checked_runtime(runtime: String) -> Result<String, Fault> {
    match runtime.parse::<danki_model::Runtime>() {
        Ok(_) => Ok(runtime),
        Err(unknown) => Err(Fault::invalid(format!(
            "Value {runtime} at 'runtime' failed to satisfy constraint: {unknown}"
        ))),
    }
}

/// AWS's limits: 1,500 arguments each, 1,000 characters of a path.
fn checked_image(image: ImageSettings) -> Result<ImageSettings, Fault> {
    let lists = [("entryPoint", &image.entry_point), ("command", &image.command)];
    for (member, list) in lists {
        let length = list.as_ref().map_or(0, Vec::len);
        if length > 1_500 {
            let constraint = "Member must have length less than or equal to 1500";
            return Err(Fault::constraint(&length.to_string(), &format!("imageConfig.{member}"), constraint));
        }
    }
    if let Some(dir) = image.working_directory.as_ref().filter(|dir| dir.len() > 1_000) {
        let constraint = "Member must have length less than or equal to 1000";
        return Err(Fault::constraint(dir, "imageConfig.workingDirectory", constraint));
    }
    Ok(image)
}

fn checked_logging(mut logging: LogSettings) -> Result<LogSettings, Fault> {
    logging.log_format = one_of(logging.log_format, "loggingConfig.logFormat", &["JSON", "Text"])?;
    let json = logging.log_format == "JSON";
    if !json && (logging.application_log_level.is_some() || logging.system_log_level.is_some()) {
        return Err(Fault::invalid(
            "To use ApplicationLogLevel or SystemLogLevel, you must set LogFormat to JSON.",
        ));
    }
    let app = ["DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"];
    let level = |level: Option<String>, member: &str, allowed: &[&str]| match level {
        Some(level) => one_of(level, member, allowed).map(Some),
        None => Ok(json.then(|| "INFO".to_owned())),
    };
    logging.application_log_level =
        level(logging.application_log_level, "loggingConfig.applicationLogLevel", &app)?;
    logging.system_log_level =
        level(logging.system_log_level, "loggingConfig.systemLogLevel", &["DEBUG", "INFO", "WARN"])?;
    Ok(logging)
}

fn check_environment(variables: &BTreeMap<String, String>) -> Result<(), Fault> {
    let reserved: Vec<&str> =
        variables.keys().map(String::as_str).filter(|name| environment::is_reserved(name)).collect();
    let unable = "Lambda was unable to configure your environment variables because the environment variables \
                  you have provided";
    if !reserved.is_empty() {
        return Err(Fault::invalid(format!(
            "{unable} contains reserved keys that are currently not supported for modification. Reserved keys used \
             in this request: {}",
            reserved.join(", ")
        )));
    }
    let measured = json!(variables).to_string();
    let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limits::ENVIRONMENT_BYTES {
        return Err(Fault::invalid(format!("{unable} exceeded the 4KB limit. String measured: {measured}")));
    }
    let legal = |name: &String| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && name.len() >= 2
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match variables.keys().find(|name| !legal(name)) {
        None => Ok(()),
        Some(name) => Err(Fault::constraint(
            name,
            "environment.variables",
            "Map keys must satisfy constraint: [Member must satisfy regular expression pattern: [a-zA-Z]([a-zA-Z0-9_])+]",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: Value) -> String {
        let change: Change = serde_json::from_value(change).expect("the shape is right");
        change.apply(&Configuration::default()).expect_err("refused").message
    }

    #[test]
    fn limits_are_named() {
        for (change, expect) in [
            (json!({"MemorySize": 127}), "Value '127' at 'memorySize'"),
            (json!({"MemorySize": 10_241}), "less than or equal to 10240"),
            (json!({"Timeout": 0}), "greater than or equal to 1"),
            (json!({"Timeout": 901}), "less than or equal to 900"),
            (json!({"EphemeralStorage": {"Size": 511}}), "'ephemeralStorage.size'"),
            (json!({"Role": "r"}), "at 'role'"),
            (json!({"Runtime": "cobol"}), "cobol"),
            (json!({"Layers": ["a", "b", "c", "d", "e", "f"]}), "more than 5 layers"),
            (json!({"TracingConfig": {"Mode": "Maybe"}}), "enum value set: [Active, PassThrough]"),
            (json!({"SnapStart": {"ApplyOn": "PublishedVersions"}}), "SnapStart"),
            (json!({"LoggingConfig": {"ApplicationLogLevel": "WARN"}}), "LogFormat to JSON"),
            (json!({"Environment": {"Variables": {"AWS_REGION": "x"}}}), "this request: AWS_REGION"),
            (json!({"Environment": {"Variables": {"BIG": "v".repeat(4_094)}}}), "4KB limit"),
            (json!({"Environment": {"Variables": {"1A": "v"}}}), "Map keys"),
        ] {
            let message = refused(change.clone());
            assert!(message.contains(expect), "{change}: {message}");
        }
    }

    #[test]
    fn what_is_absent_stays() {
        let before = Configuration { memory_mb: 512, timeout_s: 9, ..Configuration::default() };
        let change: Change = serde_json::from_value(json!({"Timeout": 5})).expect("the shape is right");
        let after = change.apply(&before).expect("fine");
        assert_eq!((after.memory_mb, after.timeout_s), (512, 5));
        let json: Change = serde_json::from_value(json!({"LoggingConfig": {"LogFormat": "JSON"}}))
            .expect("the shape is right");
        let logging = json.apply(&before).expect("fine").logging;
        assert_eq!(logging.application_log_level.as_deref(), Some("INFO"));
    }
}
