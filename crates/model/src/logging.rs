//! A function's logging configuration: format and levels (`lambda-platform.md` §5.4).

use serde::{Deserialize, Serialize};
use std::fmt;

/// `LoggingConfig` of a function. Levels count in JSON format only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logging {
    /// How lines are written.
    pub format: LogFormat,
    /// The function's own lines from this level on (`ApplicationLogLevel`).
    pub application: AppLevel,
    /// The platform's lines from this level on (`SystemLogLevel`).
    pub system: SystemLevel,
    /// Another group than `/aws/lambda/<function>`.
    pub group: Option<String>,
}

/// `LogFormat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// Lines as they are.
    #[default]
    Text,
    /// One JSON object per line.
    #[serde(rename = "JSON")]
    Json,
}

/// `ApplicationLogLevel`, least severe first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AppLevel {
    /// Everything.
    Trace,
    /// …
    Debug,
    /// Lambda's default in JSON format.
    #[default]
    Info,
    /// …
    Warn,
    /// …
    Error,
    /// The gravest only.
    Fatal,
}

/// `SystemLogLevel`, least severe first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SystemLevel {
    /// Everything.
    Debug,
    /// Lambda's default in JSON format.
    #[default]
    Info,
    /// What went wrong.
    Warn,
}

impl AppLevel {
    /// Every level.
    pub const ALL: [AppLevel; 6] =
        [AppLevel::Trace, AppLevel::Debug, AppLevel::Info, AppLevel::Warn, AppLevel::Error, AppLevel::Fatal];

    /// The word in `AWS_LAMBDA_LOG_LEVEL` and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            AppLevel::Trace => "TRACE",
            AppLevel::Debug => "DEBUG",
            AppLevel::Info => "INFO",
            AppLevel::Warn => "WARN",
            AppLevel::Error => "ERROR",
            AppLevel::Fatal => "FATAL",
        }
    }
}

impl fmt::Display for AppLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl LogFormat {
    /// The word in `AWS_LAMBDA_LOG_FORMAT`.
    pub fn as_str(self) -> &'static str {
        match self {
            LogFormat::Text => "Text",
            LogFormat::Json => "JSON",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lambda_s() {
        let text = r#"{"format":"JSON","application":"WARN","system":"DEBUG","group":null}"#;
        let logging: Logging = serde_json::from_str(text).expect("Lambda's words");
        let expect = Logging {
            format: LogFormat::Json,
            application: AppLevel::Warn,
            system: SystemLevel::Debug,
            group: None,
        };
        assert_eq!(logging, expect);
        assert_eq!(serde_json::to_string(&logging).expect("JSON"), text);
        for level in AppLevel::ALL {
            assert_eq!(serde_json::to_string(&level).expect("JSON"), format!("\"{level}\""));
        }
        assert!(AppLevel::Trace < AppLevel::Fatal && SystemLevel::Debug < SystemLevel::Warn);
    }
}
