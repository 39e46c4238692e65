//! Log lines as AWS's extension writes them. A value is never an argument of anything here.

use crate::clock::now;
use crate::date::Utc;
use std::fmt;
use std::sync::Arc;

/// From all to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Debug,
    /// What happens once.
    Info,
    /// What is probably not meant.
    Warn,
    /// What failed.
    Error,
    /// Nothing.
    None,
}

impl Level {
    /// By its name, in any case.
    pub fn parse(text: &str) -> Option<Level> {
        let names = [
            ("debug", Level::Debug),
            ("info", Level::Info),
            ("warn", Level::Warn),
            ("error", Level::Error),
            ("none", Level::None),
        ];
        names.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, level)| level)
    }

    fn word(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG ",
            Level::Info => "INFO ",
            Level::Warn => "WARN ",
            Level::Error => "ERROR ",
            Level::None => "",
        }
    }
}

/// Where lines go; each call is one write.
pub type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// A log that all threads may use.
#[derive(Clone)]
pub struct Log {
    level: Level,
    sink: Sink,
}

impl Log {
    /// Writes lines of this level and above.
    pub fn new(level: Level, sink: Sink) -> Log {
        Log { level, sink }
    }

    /// Writes a line.
    pub fn line(&self, level: Level, text: impl fmt::Display) {
        if level >= self.level && self.level != Level::None {
            let at = Utc::of(now().epoch).log();
            (self.sink)(&format!(
                "[AWS Parameters and Secrets Lambda Extension] {at} {}{text}\n",
                level.word()
            ));
        }
    }

    /// Writes a line that is made for programs.
    pub fn raw(&self, line: &str) {
        (self.sink)(&format!("{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn lines_have_awss_form_and_levels_hold() {
        let lines = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&lines);
        let log =
            Log::new(Level::Info, Arc::new(move |line: &str| kept.lock().expect("sound").push_str(line)));
        log.line(Level::Debug, "hidden");
        log.line(Level::Info, "Serving on port 2773");
        let written = lines.lock().expect("sound").clone();
        let (prefix, rest) = written.split_at("[AWS Parameters and Secrets Lambda Extension] ".len());
        assert_eq!(prefix, "[AWS Parameters and Secrets Lambda Extension] ");
        let (date, rest) = rest.split_at("2024/06/26 01:02:03 ".len());
        assert!(date.bytes().all(|byte| byte.is_ascii_digit() || b"/: ".contains(&byte)), "{date}");
        assert_eq!(rest, "INFO Serving on port 2773\n");
    }

    #[test]
    fn none_is_silent() {
        let log = Log::new(Level::None, Arc::new(|line: &str| panic!("{line}")));
        log.line(Level::Error, "x");
        assert_eq!(Level::parse("WaRn"), Some(Level::Warn));
        assert_eq!(Level::parse("all"), None);
    }
}
