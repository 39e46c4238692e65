//! One environment variable at a time.

use crate::error::Error;
use crate::log::Level;
use crate::route;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The environment, and what there is to say about it.
pub struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    pub notes: Vec<(Level, String)>,
}

impl<'a> Reader<'a> {
    pub fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Reader<'a> {
        Reader { get, notes: Vec::new() }
    }

    /// A value that is not empty.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A number of AWS's contract: what is absent or wrong is the default, and `sentence` says so.
    pub fn number(
        &mut self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
        sentence: impl FnOnce(u64) -> String,
    ) -> u64 {
        let Some(text) = self.text(name) else {
            self.notes.push((Level::Debug, format!("{name} is not present. {}", sentence(default))));
            return default;
        };
        match text.parse().ok().filter(|number| range.contains(number)) {
            Some(number) => number,
            None => {
                self.notes.push((Level::Warn, format!("{name} is {text:?}. {}", sentence(default))));
                default
            }
        }
    }

    /// A number of ours, from 0 to `most`.
    pub fn own(&self, name: &'static str, default: u64, most: u64) -> Result<u64, Error> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| *number <= most);
        number.ok_or(Error::Setting { name, value: text, allowed: own_range(most) })
    }

    /// A switch of ours.
    pub fn flag(&self, name: &'static str) -> Result<bool, Error> {
        let Some(text) = self.text(name) else { return Ok(false) };
        route::boolean(&text).ok_or(Error::Setting { name, value: text, allowed: "true, false" })
    }

    /// A word of ours; the first is the default.
    pub fn choice<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T); 2],
        allowed: &'static str,
    ) -> Result<T, Error> {
        let Some(text) = self.text(name) else { return Ok(words[0].1) };
        let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, value)| *value);
        found.ok_or(Error::Setting { name, value: text, allowed })
    }
}

fn own_range(most: u64) -> &'static str {
    match most {
        60 => "whole seconds, 0 to 60",
        86_400 => "whole seconds, 0 to 86400 (a day)",
        604_800 => "whole seconds, 0 to 604800 (a week)",
        _ => "whole milliseconds, 0 to 8000",
    }
}

/// A duration as Go prints it: `5m0s`, `0s`, `1.5s`.
pub fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = format!("{}.{:03}", seconds % 60, duration.subsec_millis());
    let rest = rest.trim_end_matches('0').trim_end_matches('.');
    match (hours, minutes) {
        (0, 0) if seconds == 0 && duration.subsec_millis() > 0 => format!("{}ms", duration.as_millis()),
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}
