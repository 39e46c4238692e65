//! Tables in plain text that fit the terminal.

use crate::style::Style;

/// How a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table: columns, then rows of as many cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// Space between columns.
const GAP: usize = 2;
/// A column is not cut below this width.
const NARROWEST: usize = 8;

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(title, align)| ((*title).to_owned(), *align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// One more column, to the right.
    pub fn column(&mut self, title: &str, align: Align) {
        self.columns.push((title.to_owned(), align));
    }

    /// One more row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as lines, each with its newline. Where it is too wide, the widest columns of words are cut.
    pub fn render(&self, style: &Style) -> String {
        let widths = self.widths(style.width);
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let mut text = style.faint(&self.line(&titles, &widths));
        text.push('\n');
        for row in &self.rows {
            text.push_str(&self.line(row, &widths));
            text.push('\n');
        }
        text
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let cell = |row: &Vec<String>, n: usize| row.get(n).map_or(0, |c| c.chars().count());
        let natural = self.columns.iter().enumerate().map(|(n, (title, _))| {
            self.rows.iter().map(|row| cell(row, n)).max().unwrap_or(0).max(title.chars().count())
        });
        let mut widths: Vec<usize> = natural.collect();
        loop {
            let total: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            let words = self.columns.iter().enumerate().filter(|(_, (_, align))| *align == Align::Left);
            let widest = words.map(|(n, _)| n).filter(|n| widths[*n] > NARROWEST).max_by_key(|n| widths[*n]);
            match widest {
                Some(n) if total > width => widths[n] -= 1,
                _ => return widths,
            }
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let empty = String::new();
        let mut line = String::new();
        for (n, ((_, align), width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = cut(cells.get(n).unwrap_or(&empty), *width);
            let pad = " ".repeat(width - cell.chars().count());
            if n > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            match align {
                Align::Left => line.extend([cell, pad]),
                Align::Right => line.extend([pad, cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    cell.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A number with about three significant digits, thousands separated.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 || v == 0.0 => 2,
        v if v >= 0.01 => 3,
        _ => 5,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) && digits.len() > 4 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

/// [`number`], or a dash for what there is not.
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_short() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(26_260.4, "26,260");
        check(1_220.41, "1220");
        check(99.96, "100.0");
        check(20.232, "20.2");
        check(5.0, "5.00");
        check(0.0723, "0.072");
        check(0.000_41, "0.00041");
        check(-12_345.0, "-12,345");
        check(0.0, "0.00");
    }

    proptest! {
        #[test]
        fn a_table_fits_if_its_numbers_leave_room(words in proptest::collection::vec("[a-zé ]{0,40}", 1..6), width in 40usize..120) {
            let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("why", Align::Left)]);
            for word in &words {
                table.row([word.clone(), "12".to_owned(), word.repeat(3)]);
            }
            let style = Style { color: false, width };
            for line in table.render(&style).lines() {
                prop_assert!(line.chars().count() <= width, "{line:?}");
            }
        }
    }
}
