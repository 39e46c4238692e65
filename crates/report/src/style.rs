//! What the terminal can show.

/// Width and colours of where the report goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours may be used.
    pub color: bool,
    /// Columns.
    pub width: usize,
}

impl Default for Style {
    /// A file or pipe: no colours, wide enough for all tables.
    fn default() -> Self {
        Style { color: false, width: 140 }
    }
}

impl Style {
    /// A heading.
    pub fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Something of less weight.
    pub fn faint(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Something as it should be.
    pub fn good(&self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Something that is not as it should be.
    pub fn bad(&self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Words folded to the width, later lines indented by `indent`.
    pub fn fold(&self, text: &str, indent: usize) -> String {
        let width = self.width.max(indent + 20);
        let mut folded = String::new();
        let mut column = indent;
        for (n, word) in text.split_whitespace().enumerate() {
            let length = word.chars().count();
            if n > 0 && column + 1 + length > width {
                folded.push('\n');
                folded.push_str(&" ".repeat(indent));
                column = indent;
            } else if n > 0 {
                folded.push(' ');
                column += 1;
            }
            folded.push_str(word);
            column += length;
        }
        folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fold_at_the_width() {
        let style = Style { color: false, width: 24 };
        assert_eq!(style.fold("one two three four five six", 2), "one two three four\n  five six");
        assert_eq!(Style { color: true, width: 80 }.good("✓"), "\x1b[32m✓\x1b[0m");
    }
}
