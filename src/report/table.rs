//! Plain text tables: columns as wide as their widest cell, two blanks between, the last one free.

/// A table under construction.
#[derive(Debug, Clone)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(|&text| text.to_owned()).collect(),
            rows: Vec::new(),
            right: vec![false; head.len()],
        }
    }

    /// Aligns a column to the right, as numbers are read.
    #[must_use]
    pub fn right(mut self, columns: &[usize]) -> Self {
        for &column in columns {
            self.right[column] = true;
        }
        self
    }

    /// Appends a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, with a rule under the heads.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = std::iter::once(&self.head).chain(&self.rows);
                cells.map(|row| row.get(column).map_or(0, |cell| width(cell))).max().unwrap_or(0)
            })
            .collect();
        let mut text = self.line(&self.head, &widths);
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        text.push_str(rule.join("  ").trim_end());
        text.push('\n');
        for row in &self.rows {
            text.push_str(&self.line(row, &widths));
        }
        text
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(width(cell)));
            if column > 0 {
                line.push_str("  ");
            }
            if self.right[column] {
                line.push_str(&pad);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&pad);
            }
        }
        format!("{}\n", line.trim_end())
    }
}

/// Columns that a text takes in a terminal: two for wide East Asian characters.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match c as u32 {
            0x1100..=0x115F
            | 0x2E80..=0xA4CF
            | 0xAC00..=0xD7A3
            | 0xF900..=0xFAFF
            | 0xFE30..=0xFE6F
            | 0xFF00..=0xFF60
            | 0xFFE0..=0xFFE6
            | 0x20000..=0x3FFFD => 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_also_with_wide_characters() {
        let mut table = Table::new(&["name", "count"]).right(&[1]);
        table.row(["字字".to_owned(), "7".to_owned()]);
        table.row(["ab".to_owned(), "1,234".to_owned()]);
        assert_eq!(table.render(), "name  count\n────  ─────\n字字      7\nab    1,234\n");
    }
}
