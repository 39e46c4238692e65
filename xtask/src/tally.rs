//! Counting what a stage's output says, without believing more than it says.

/// Tests that passed, failed, or were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// The closing line: `12 passed, 0 failed`, and what was skipped if anything was.
    pub fn line(self) -> String {
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        format!("{} passed, {} failed{skipped}", self.passed, self.failed)
    }
}

/// How a stage's output is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The stage is one test: its exit status decides.
    One,
    /// cargo's `test result:` lines. A test that cannot run here prints a line `skipped: <what>: <why>` and returns.
    Cargo,
    /// The last line that reads `N passed, N failed`, optionally `, N skipped`.
    Closing,
}

/// Counts a finished stage. A stage that failed without saying where, or that counted nothing, is one failure.
pub fn count<'a>(how: Count, lines: impl Iterator<Item = &'a str>, success: bool) -> Tally {
    let mut tally = Tally::default();
    match how {
        Count::One => tally.passed = 1,
        Count::Cargo => lines.for_each(|line| tally.add(cargo_line(line))),
        Count::Closing => tally = lines.filter_map(closing_line).last().unwrap_or_default(),
    }
    if how == Count::Cargo {
        // cargo counts a test that skipped itself among the passed ones.
        tally.passed = tally.passed.saturating_sub(tally.skipped);
    }
    let counted_nothing = tally == Tally::default();
    if (!success || counted_nothing) && tally.failed == 0 {
        tally.failed = 1;
        tally.passed = if how == Count::One { 0 } else { tally.passed };
    }
    tally
}

fn cargo_line(line: &str) -> Tally {
    if line.trim_start().starts_with("skipped: ") {
        return Tally { skipped: 1, ..Tally::default() };
    }
    match line.strip_prefix("test result: ") {
        Some(result) => Tally {
            passed: number_before(result, " passed").unwrap_or(0),
            failed: number_before(result, " failed").unwrap_or(0),
            skipped: number_before(result, " ignored").unwrap_or(0),
        },
        None => Tally::default(),
    }
}

fn closing_line(line: &str) -> Option<Tally> {
    let mut words = line.trim().split(", ");
    let passed = words.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = words.next()?.strip_suffix(" failed")?.parse().ok()?;
    let skipped = words.next().and_then(|word| word.strip_suffix(" skipped")?.parse().ok()).unwrap_or(0);
    Some(Tally { passed, failed, skipped })
}

/// The number that stands directly before `word`: `ok. 12 passed; 0 failed` → 12.
fn number_before(text: &str, word: &str) -> Option<u64> {
    text[..text.find(word)?].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(how: Count, output: &str, success: bool, expect: (u64, u64, u64)) {
        let tally = count(how, output.lines(), success);
        assert_eq!((tally.passed, tally.failed, tally.skipped), expect, "{output}");
    }

    #[test]
    fn cargo_results_add_up() {
        let two = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.0s\n\
                   test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.0s\n";
        check(Count::Cargo, two, true, (14, 0, 1));
        check(
            Count::Cargo,
            "skipped: freezer: no cgroup\ntest result: ok. 2 passed; 0 failed; 0 ignored",
            true,
            (1, 0, 1),
        );
        check(Count::Cargo, "test result: FAILED. 1 passed; 2 failed; 0 ignored", false, (1, 2, 0));
    }

    #[test]
    fn silence_and_unexplained_failure_are_failures() {
        check(Count::Cargo, "", true, (0, 1, 0));
        check(Count::Cargo, "error: could not compile", false, (0, 1, 0));
        check(Count::Cargo, "test result: ok. 5 passed; 0 failed; 0 ignored", false, (5, 1, 0));
        check(Count::Closing, "all good", true, (0, 1, 0));
        check(Count::One, "", false, (0, 1, 0));
    }

    #[test]
    fn closing_lines_count_once() {
        check(Count::Closing, "1 passed, 0 failed\n7 passed, 0 failed, 2 skipped\n", true, (7, 0, 2));
        check(Count::Closing, "7 passed, 1 failed\n", false, (7, 1, 0));
        check(Count::One, "anything", true, (1, 0, 0));
    }

    #[test]
    fn the_line_names_what_was_skipped() {
        assert_eq!(Tally { passed: 3, failed: 0, skipped: 0 }.line(), "3 passed, 0 failed");
        assert_eq!(Tally { passed: 3, failed: 1, skipped: 2 }.line(), "3 passed, 1 failed, 2 skipped");
    }
}
